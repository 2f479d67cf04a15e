//! Decisions about a finding as people read them.
//!
//! The last line about a finding in `triage.ndjson` is its status. So when the team sends a decision that does not stand, the one
//! that stands is appended once more behind it. A history shows that one once, behind the decisions that it beats.

use super::{Store, StoreError};
use crate::domain::{Disposition, FindingId};

impl Store {
    /// Returns the decisions about a finding for people, oldest first: as [`Store::dispositions`], without repetitions.
    ///
    /// # Errors
    /// Returns an error when `triage.ndjson` cannot be read.
    pub fn decision_history(&self, id: &FindingId) -> Result<Vec<Disposition>, StoreError> {
        Ok(merge_repeated(self.dispositions(id)?))
    }
}

/// Returns the lines about one finding with each repeated decision once, at its last place. `previous` follows the new order.
fn merge_repeated(lines: Vec<Disposition>) -> Vec<Disposition> {
    let begin = lines.first().map(|line| line.previous);
    let mut shown: Vec<Disposition> = Vec::new();
    let mut has_moved = false;
    for line in lines {
        match find_repeated(&shown, &line) {
            Some(index) => {
                let decision = shown.remove(index);
                shown.push(decision);
                has_moved = true;
            }
            None => shown.push(line),
        }
    }
    if has_moved && let Some(mut previous) = begin {
        for line in &mut shown {
            line.previous = std::mem::replace(&mut previous, line.status);
        }
    }
    shown
}

/// Returns the index of the line that `line` only repeats: between the two stands nothing but decisions that the team sent. After
/// a decision of this machine or evidence of the engine, the repetition had an effect of its own.
fn find_repeated(shown: &[Disposition], line: &Disposition) -> Option<usize> {
    let origin = line.team.as_ref()?;
    for (index, earlier) in shown.iter().enumerate().rev() {
        let is_same = match &earlier.team {
            Some(earlier) => earlier.id == origin.id,
            // A decision of this machine has its identity only in the team.
            None => {
                (earlier.actor, earlier.status, earlier.action, earlier.at)
                    == (line.actor, line.status, line.action, line.at)
            }
        };
        if is_same {
            return Some(index);
        }
        earlier.team.as_ref()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Actor, DecisionId, FindingStatus, TeamClock, TeamOrigin, TeamPerson, Time, TriageAction};

    /// Builds lines from words such as `ada:1:dismissed`: author, time and status. `you` decides here, and `engine` sees something.
    fn lines(words: &str) -> Vec<Disposition> {
        let mut previous = FindingStatus::Open;
        let line = |word: &str| {
            let parts: Vec<&str> = word.split(':').collect();
            let [author, ms, status] = parts.as_slice() else { panic!("{word}") };
            let ms: i64 = ms.parse().expect("a time");
            let status: FindingStatus = status.parse().expect("a status");
            let origin = TeamOrigin {
                id: DecisionId {
                    clock: TeamClock { ms, count: 0 },
                    machine: author.trim_start_matches("again-").parse().expect("a name"),
                },
                person: TeamPerson::default(),
            };
            Disposition {
                finding_id: "f_00000000000000aa".parse().expect("an id"),
                status,
                previous: std::mem::replace(&mut previous, status),
                actor: if *author == "engine" { Actor::Engine } else { Actor::User },
                reason: String::new(),
                at: Time::from_millisecond(ms).expect("a time"),
                action: TriageAction::Set,
                group: String::new(),
                run_id: None,
                merged_into: None,
                team: Some(origin).filter(|_| !matches!(*author, "you" | "engine")),
                ci: false,
            }
        };
        words.split_whitespace().map(line).collect()
    }

    #[test]
    fn a_decision_that_stands_again_is_shown_once_behind_those_that_it_beats() {
        for (words, expected) in [
            ("", ""),
            ("you:2:addressed", "open>addressed"),
            ("you:2:addressed ada:1:dismissed again-you:2:addressed", "open>dismissed dismissed>addressed"),
            ("bob:2:addressed ada:1:dismissed bob:2:addressed", "open>dismissed dismissed>addressed"),
            (
                "bob:3:addressed ada:1:dismissed cleo:2:open bob:3:addressed",
                "open>dismissed dismissed>open open>addressed",
            ),
            // The engine had another view in between, so the repetition changed something.
            (
                "bob:3:addressed engine:4:unresolved ada:1:dismissed bob:3:addressed",
                "open>addressed addressed>unresolved unresolved>dismissed dismissed>addressed",
            ),
            // A person may say the same twice.
            ("you:1:dismissed you:2:open you:3:dismissed", "open>dismissed dismissed>open open>dismissed"),
        ] {
            let shown = merge_repeated(lines(words));
            let steps: Vec<String> = shown.iter().map(|line| format!("{}>{}", line.previous, line.status)).collect();
            assert_eq!(steps.join(" "), expected, "{words}");
        }
    }
}
