//! Decides which of two hook calls answers an event, where the user's settings and the project's files both have the hook.
//!
//! An assistant runs both at the same time or one after the other, with the same input. The first one claims the event
//! in a file of the session; the other one finds the claim and stays silent. A claim holds only against the other scope,
//! because a call of the same scope is a new event: a prompt may be sent twice.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};

use serde::{Deserialize, Serialize};

use super::{AgentSessionKey, HookEvent, InstallScope};
use crate::domain::Time;

/// Time after which a claim no longer holds: longer than hooks of one event take one after the other.
const MAX_CLAIM_MS: i64 = 10_000;

/// Claim of an event.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EventClaim {
    /// Hash of the event and its prompt.
    event: String,
    /// Scope of the call that has claimed it.
    scope: String,
    at: Time,
}

/// Claims an event for the call of one scope. Returns false if the call of the other scope answers it. Where no claim can
/// be written, every call answers.
pub(crate) fn claim_event(key: &AgentSessionKey, scope: InstallScope, event: &HookEvent, now: Time) -> bool {
    let path = key.claim_file();
    let Some(folder) = path.parent() else { return true };
    let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let opened = fs::create_dir_all(folder).and_then(|()| open()).and_then(|file| file.lock().map(|()| file));
    let Ok(mut file) = opened else { return true };
    let mut bytes = Vec::new();
    let _ = file.read_to_end(&mut bytes);
    let claim = EventClaim { event: event.fingerprint(), scope: scope.word().to_owned(), at: now };
    if serde_json::from_slice(&bytes).is_ok_and(|known| is_claimed(&known, &claim)) {
        return false;
    }
    if let Ok(bytes) = serde_json::to_vec(&claim) {
        // A claim that cannot be written binds nobody.
        let _ = file.rewind().and_then(|()| file.set_len(0)).and_then(|()| file.write_all(&bytes));
    }
    true
}

/// Returns whether `known` is the claim of the other scope for the event of `claim`.
fn is_claimed(known: &EventClaim, claim: &EventClaim) -> bool {
    let age = claim.at.as_millisecond() - known.at.as_millisecond();
    known.event == claim.event && known.scope != claim.scope && age.abs() < MAX_CLAIM_MS
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::assistants::{Assistant, read_hook_event};

    fn event(name: &str, prompt: &str) -> HookEvent {
        let json = serde_json::json!({ "hook_event_name": name, "cwd": "/r", "session_id": "s", "prompt": prompt });
        read_hook_event(json.to_string().as_bytes(), Assistant::ClaudeCode).expect("an event")
    }

    #[test]
    fn one_of_two_scopes_answers_each_event() {
        use InstallScope::{Project, User};
        let folder = tempfile::tempdir().expect("a folder");
        let key = AgentSessionKey::new(folder.path(), Assistant::ClaudeCode, "s", Path::new("/r"));
        let turn = "UserPromptSubmit";
        for (step, (seconds, scope, name, prompt, expected)) in [
            (0, User, turn, "go on", true),
            (0, Project, turn, "go on", false),
            // The same prompt again: either scope may come first, and one of them answers.
            (2, User, turn, "go on", true),
            (2, Project, turn, "go on", false),
            (4, Project, turn, "go on", false),
            (4, User, turn, "go on", true),
            (5, Project, turn, "other", true),
            (5, User, turn, "other", false),
            (6, Project, "Stop", "", true),
            (6, User, "Stop", "", false),
            // The hook of one scope was removed.
            (30, User, "Stop", "", true),
            (60, Project, "Stop", "", true),
        ]
        .into_iter()
        .enumerate()
        {
            let now = Time::from_millisecond(seconds * 1000).expect("a time");
            assert_eq!(claim_event(&key, scope, &event(name, prompt), now), expected, "step {step}");
        }
    }

    #[test]
    fn calls_at_the_same_moment_have_one_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = AgentSessionKey::new(folder.path(), Assistant::ClaudeCode, "s", Path::new("/r"));
        for turn in 0..50 {
            let event = event("UserPromptSubmit", &format!("turn {turn}"));
            let now = Time::from_millisecond(turn).expect("a time");
            let claim = |scope| claim_event(&key, scope, &event, now);
            let answers = std::thread::scope(|threads| {
                [InstallScope::User, InstallScope::Project]
                    .map(|scope| threads.spawn(move || claim(scope)))
                    .map(|thread| thread.join().expect("an answer"))
            });
            assert_eq!(answers.into_iter().filter(|answers| *answers).count(), 1, "turn {turn}");
        }
    }

    #[test]
    fn without_a_place_for_the_claim_every_call_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        let key = AgentSessionKey::new(&file, Assistant::ClaudeCode, "s", Path::new("/r"));
        for scope in [InstallScope::User, InstallScope::Project] {
            assert!(claim_event(&key, scope, &event("Stop", ""), Time::UNIX_EPOCH));
        }
    }
}
