//! Teams over real bare repositories: what travels, what stands, what is refused.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, err, out};

mod adopted_results;
#[cfg(unix)]
mod agents_and_budget;
mod budget;
mod claims;
mod converge;
mod exclusion;
mod forget;
mod history;
#[cfg(unix)]
mod host_profiles;
mod hostile;
mod http_remote;
mod large_logs;
mod machine_names;
pub mod machines;
mod membership;
mod mends;
#[cfg(unix)]
mod merged_reports;
mod packs;
mod postgres;
pub mod postgres_server;
#[cfg(target_os = "linux")]
mod progress_writes;
mod received_findings;
mod reused_reviews;
mod second_place;
#[cfg(unix)]
mod sharing;
mod tampered_logs;
mod transport;
mod uncommitted;
mod undo;

/// A change with two findings of the built-in reviewer: a bare `except` in each function.
const CHANGE: &str = "def first(path):\n    try:\n        return open(path)\n    except:\n        return None\n\n\n\
                      def second(path):\n    try:\n        return path.read()\n    except:\n        return 1\n";

/// A bare repository that several machines use as `origin`.
pub struct Team {
    folder: tempfile::TempDir,
}

impl Team {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let made = Command::new("git")
            .args(["init", "-q", "--bare", "-b", "main"])
            .arg(folder.path().join("team.git"))
            .status();
        assert!(made.expect("git starts").success());
        Self { folder }
    }

    pub fn remote(&self) -> PathBuf {
        self.folder.path().join("team.git")
    }

    /// Runs git in the bare repository and returns its output.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("--git-dir")
            .arg(self.remote())
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git starts");
        assert!(output.status.success(), "git {arguments:?}: {}", err(&output));
        out(&output)
    }

    /// Returns the names of the logs.
    pub fn logs(&self) -> Vec<String> {
        let refs = self.git(&["for-each-ref", "--format=%(refname)", "refs/revdeck/team/"]);
        refs.lines().map(|name| name.trim_start_matches("refs/revdeck/team/").to_owned()).collect()
    }

    /// Returns all segments of all logs as text.
    pub fn everything(&self) -> String {
        let mut text = String::new();
        for log in self.logs() {
            let name = format!("refs/revdeck/team/{log}");
            for file in self.git(&["ls-tree", "--name-only", &name]).lines() {
                text.push_str(&self.git(&["cat-file", "blob", &format!("{name}:{file}")]));
            }
        }
        text
    }

    /// Returns a machine of a person that has the repository's `main`; the first one creates it, with the change on top.
    pub fn machine(&self, person: &str) -> TestEnvironment {
        let machine = machines::empty_machine(person, self.remote().to_str().expect("text"));
        if self.git(&["for-each-ref", "refs/heads/main"]).is_empty() {
            machines::commit_change(&machine);
            machine.git(&["push", "-q", "origin", "main"]);
        } else {
            machine.git(&["fetch", "-q", "origin"]);
            machine.git(&["reset", "-q", "--hard", "origin/main"]);
        }
        machine
    }

    /// Returns a machine that has joined under the name of its person.
    pub fn member(&self, person: &str) -> TestEnvironment {
        let machine = self.machine(person);
        join(&machine, &format!("{}-1", person.to_lowercase()));
        machine
    }
}

pub fn join(machine: &TestEnvironment, name: &str) {
    crate::env::run(machine, &["team", "join", "--machine", name], DONE);
}

pub fn sync(machine: &TestEnvironment) -> Value {
    machine.json(&["sync", "--format", "json"], DONE)
}

/// Reviews the last commit and returns the result as JSON.
pub fn review(machine: &TestEnvironment) -> Value {
    machine.json(&["review", "--commit", "HEAD", "--wait", "--format", "json"], DONE)
}

/// Returns the ids of a review's findings, by line.
pub fn ids(review: &Value) -> Vec<String> {
    let mut found: Vec<(u64, String)> = review["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| {
            (finding["line_start"].as_u64().expect("a line"), finding["finding_id"].as_str().expect("an id").to_owned())
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, id)| id).collect()
}

pub fn status(machine: &TestEnvironment, finding: &str) -> String {
    let shown = machine.json(&["show", finding, "--format", "json"], DONE);
    shown["finding"]["status"].as_str().expect("a status").to_owned()
}

fn with_variable(machine: &TestEnvironment, name: &str, value: &str, arguments: &[&str]) -> Output {
    machine.command(env!("CARGO_BIN_EXE_revdeck")).args(arguments).env(name, value).output().expect("revdeck starts")
}

#[test]
fn nothing_travels_before_a_person_joins() {
    let team = Team::new();
    let ada = team.machine("Ada");
    review(&ada);
    insta::assert_snapshot!(ada.fails(&["sync"], USAGE), @"
    error: this repository has not joined a team here
      hint: `revdeck team join` begins it, and says what will leave this machine; until then nothing does
    ");
    insta::assert_snapshot!(ada.output(&["team"], DONE), @"
    takes part in no team: nothing leaves this machine
    `revdeck team join` says what would
    ");
    let refused = with_variable(&ada, "REVDECK_ACTOR", "assistant", &["team", "join"]);
    assert_eq!(refused.status.code(), Some(USAGE), "{}", err(&refused));
    assert!(team.logs().is_empty());
    insta::assert_snapshot!(ada.output(&["team", "join", "--machine", "ada-1"], DONE), @r#"
    ada-1 takes part · records are kept in origin

    Leaves with share = "findings": decisions about findings (id, status, reason, author, time), and completed reviews: commits, branch, paths, the words of findings, coverage, tokens and cost; no code.
    Never leaves: secrets (masked), prompts, answers of models, other code, settings.

    Nothing has left yet. The first `revdeck sync` sends 1 review; `revdeck sync --dry-run --show` prints it.
    What was sent cannot be called back.
    "#);
    assert!(team.logs().is_empty(), "joining sends nothing");
    assert_eq!(ada.json(&["sync", "--dry-run", "--format", "json"], DONE)["would_send"]["reviews"], 1);
    assert!(team.logs().is_empty(), "a dry run sends nothing");
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 0, "reviews": 1}));
    assert_eq!(team.logs(), ["ada-1"]);
    assert_eq!(ada.git(&["for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes"]).lines().count(), 2);
    insta::assert_snapshot!(ada.output(&["team", "leave"], DONE), @"ada-1 takes part no longer · what was sent stays in origin: `git push origin --delete refs/revdeck/team/ada-1` removes it there");
    ada.fails(&["sync"], USAGE);
}

#[test]
fn a_review_is_not_repeated_and_a_dismissal_holds_elsewhere() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let reviewed = review(&ada);
    let found = ids(&reviewed);
    assert_eq!(found.len(), 2, "{reviewed}");
    crate::env::run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended: the caller copes"], DONE);
    sync(&ada);
    let received = sync(&bob);
    assert_eq!((&received["received"], &received["applied"]), (&json!({"decisions": 1, "reviews": 1}), &json!(1)));

    // The review is there, with code that did not travel, and is used.
    let again = review(&bob);
    assert_eq!(again["decision"]["action"], "reuse");
    assert_eq!(again["run"]["run_id"], reviewed["run"]["run_id"]);
    assert_eq!(again["run"]["team"]["machine"], "ada-1");
    assert!(!team.everything().contains("path.read()"), "no code travels by default");
    assert!(again["findings"][1]["quoted_code"].as_str().expect("code").contains("except:"), "{again}");
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("dismissed".into(), "open".into()));
    assert!(
        bob.output(&["show", &found[0]], DONE)
            .contains("Ada on ada-1 set open -> dismissed: intended: the caller copes")
    );

    // A review of his own holds the finding back, and says who has dismissed it.
    let forced = bob.json(&["review", "--commit", "HEAD", "--wait", "--force", "--format", "json"], DONE);
    let held = &forced["held_back"][0];
    assert_eq!(held["finding"]["finding_id"], found[0].as_str());
    let reason = held["reason"].as_str().expect("a reason");
    assert!(reason.ends_with("by Ada on ada-1 because intended: the caller copes"), "{reason}");
}

#[test]
fn an_undo_undoes_everywhere_and_nobody_undoes_for_others() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    crate::env::run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    sync(&bob);
    // Bob has decided nothing himself.
    assert!(bob.output(&["undo"], DONE).contains("nothing"), "Bob cannot undo for Ada");
    assert_eq!(status(&bob, &found[0]), "dismissed");
    crate::env::run(&ada, &["undo"], DONE);
    sync(&ada);
    assert_eq!(sync(&bob)["applied"], 1);
    assert_eq!(status(&bob, &found[0]), "open");
    // An exchange with nothing new changes nothing.
    let quiet = sync(&bob);
    assert_eq!(
        (&quiet["sent"], &quiet["received"]),
        (&json!({"decisions": 0, "reviews": 0}), &json!({"decisions": 0, "reviews": 0}))
    );
}

#[test]
fn people_who_disagree_are_shown_until_one_decides_knowing_the_other() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    crate::env::run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    crate::env::run(&bob, &["triage", &found[0], "addressed"], DONE);
    sync(&ada);
    assert_eq!(sync(&bob)["disputes"], 1);
    assert_eq!(sync(&ada)["disputes"], 1);
    let sides = |machine: &TestEnvironment| {
        let team = machine.json(&["team", "--format", "json"], DONE);
        let sides = team["disputes"][&found[0]].as_array().expect("sides").clone();
        sides.iter().map(|side| format!("{} {}", side["person"], side["status"])).collect::<Vec<_>>()
    };
    assert_eq!(sides(&ada), sides(&bob));
    assert_eq!((status(&ada, &found[0]), status(&bob, &found[0])), ("addressed".into(), "addressed".into()));
    assert!(ada.output(&["team"], DONE).contains("disputed: Bob (bob-1) says addressed, Ada (ada-1) says dismissed"));
    let shown = ada.output(&["show", &found[0]], DONE);
    assert!(shown.contains("people disagree: Bob (bob-1) says addressed, Ada (ada-1) says dismissed"), "{shown}");
    let listed = ada.json(&["findings", "--status", "disputed", "--format", "json"], DONE);
    assert_eq!(ids(&listed), [found[0].clone()]);
    // Ada knows what Bob said, and agrees.
    crate::env::run(&ada, &["triage", &found[0], "open"], DONE);
    crate::env::run(&ada, &["triage", &found[0], "addressed"], DONE);
    sync(&ada);
    assert_eq!(sync(&bob)["disputes"], 0);
}

#[test]
fn a_review_goes_on_without_the_remote_and_its_records_wait() {
    let team = Team::new();
    let ada = team.member("Ada");
    std::fs::rename(team.remote(), team.folder.path().join("away.git")).expect("moved");
    let output = ada.revdeck(&["review", "--commit", "HEAD", "--wait", "--sync"]);
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    let said = err(&output);
    assert!(said.contains("note: no exchange with the team: git ls-remote with origin failed"), "{said}");
    assert_eq!(said.matches("git ls-remote with origin failed").count(), 1, "it is said once: {said}");
    assert!(said.contains("note: no exchange with the team after the review either"), "{said}");
    let failed = ada.errors(&["sync"], INCOMPLETE);
    assert!(
        failed.contains("hint: nothing is lost; `git ls-remote REMOTE` says whether git itself can reach it"),
        "{failed}"
    );
    assert!(ada.output(&["team"], DONE).contains("1 to send"));
    std::fs::rename(team.folder.path().join("away.git"), team.remote()).expect("moved back");
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
}

#[test]
fn a_remote_that_refuses_refs_is_named_with_the_way_out() {
    let team = Team::new();
    let ada = team.member("Ada");
    review(&ada);
    crate::env::executable(team.remote().join("hooks/update"), "#!/bin/sh\necho 'only branches here' >&2\nexit 1\n");
    let failed = ada.errors(&["sync"], INCOMPLETE);
    insta::assert_snapshot!(failed, @"
    error: origin refuses the ref refs/revdeck/team/ada-1: [remote rejected] (hook declined): only branches here
      hint: a remote of its own for the records works, also a bare repository: `revdeck team join REMOTE`
    ");
    // The way out.
    let other = Team::new();
    crate::env::run(&ada, &["team", "join", other.remote().to_str().expect("text")], DONE);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
    assert_eq!(other.logs(), ["ada-1"]);
}

#[test]
fn a_deleted_log_is_sent_again() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    review(&ada);
    sync(&ada);
    sync(&bob);
    team.git(&["update-ref", "-d", "refs/revdeck/team/ada-1"]);
    let again = sync(&ada);
    assert_eq!((&again["restored"], &again["sent"]["reviews"]), (&json!(true), &json!(1)));
    assert_eq!(sync(&bob)["received"]["reviews"], 0, "nothing is doubled");
    assert_eq!(bob.json(&["runs", "--format", "json"], DONE)["runs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn jobs_of_continuous_integration_share_a_log_and_report_without_a_review() {
    let team = Team::new();
    let job = || {
        let machine = team.machine("Builder");
        let joined = with_variable(&machine, "CI", "true", &["team", "join"]);
        assert_eq!(joined.status.code(), Some(DONE), "{}", err(&joined));
        machine
    };
    let (first, second, third) = (job(), job(), job());
    let gate = ["review", "--branch", "HEAD~1", "--wait", "--sync", "--fail-on", "p0", "--format", "json"];
    let report = ["review", "--branch", "HEAD~1", "--wait", "--from-team", "--format", "json"];
    insta::assert_snapshot!(first.fails(&report, INCOMPLETE), @"
    error: neither this machine nor its team has a review of branch:[hash] as it is now by builtin
      hint: `revdeck sync` fetches what the team has reviewed; without --from-team it is reviewed here
    ");
    assert_eq!(first.json(&gate, DONE)["decision"]["action"], "launch");
    assert_eq!(second.json(&gate, DONE)["decision"]["action"], "reuse");
    third.write("c.py", CHANGE);
    third.commit("More");
    assert_eq!(third.json(&gate, DONE)["decision"]["action"], "launch");
    assert_eq!(team.logs(), ["ci"]);
    sync(&first);
    assert_eq!(first.json(&report, DONE)["decision"]["action"], "reuse");
    // The command waits for nothing, so that it needs no `--wait`; a gate works, too.
    let plain = ["review", "--branch", "HEAD~1", "--from-team", "--fail-on", "p0", "--format", "json"];
    assert_eq!(first.json(&plain, DONE)["decision"]["action"], "reuse");
    assert!(crate::env::run(&first, &["review", "--branch", "HEAD~1", "--from-team"], DONE).contains("b.py"));
    assert_eq!(first.json(&["runs", "--format", "json"], DONE)["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn clones_without_history_or_contents_take_part() {
    let team = Team::new();
    let ada = team.member("Ada");
    review(&ada);
    sync(&ada);
    team.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", team.remote().display());
    for option in ["--depth=1", "--filter=blob:none"] {
        let bob = TestEnvironment::new();
        std::fs::remove_dir_all(bob.repo()).expect("an empty folder");
        let cloned = Command::new("git").args(["clone", "-q", option, &url]).arg(bob.repo()).status();
        assert!(cloned.expect("git starts").success());
        bob.git(&["config", "user.name", "Bob"]);
        join(&bob, "bob-1");
        let received = sync(&bob);
        assert_eq!(received["received"]["reviews"], 1, "{option}");
        let shallow = bob.git(&["rev-parse", "--is-shallow-repository"]);
        assert_eq!(shallow.trim(), (option == "--depth=1").to_string(), "{option}");
    }
}

#[test]
fn a_forgotten_machine_is_read_no_more() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    crate::env::run(&bob, &["team", "forget", "ada-1"], DONE);
    crate::env::run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    assert_eq!(sync(&bob)["received"], json!({"decisions": 0, "reviews": 0}));
    assert_eq!(status(&bob, &found[0]), "obsolete", "nobody else has reported it");
    crate::env::run(&bob, &["team", "remember", "ada-1"], DONE);
    assert_eq!(status(&bob, &found[0]), "open");
    assert_eq!(sync(&bob)["applied"], 1);
    assert_eq!(status(&bob, &found[0]), "dismissed");
}

#[test]
fn a_reused_review_of_another_machine_reaches_the_assistant_here() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    review(&ada);
    sync(&ada);
    sync(&bob);
    assert_eq!(bob.output(&["ledger"], DONE), "", "nobody here has asked about that commit");
    let reused = review(&bob);
    assert_eq!(
        reused["run"]["worktree"].as_str().map(PathBuf::from),
        Some(bob.repo().canonicalize().expect("a folder"))
    );
    let ledger = bob.output(&["ledger"], DONE);
    assert!(ledger.contains("findings=\"2\""), "{ledger}");
    // What was spent there is not what was spent here.
    assert_eq!(bob.json(&["stats", "--format", "json"], DONE)["totals"]["tokens_spent"], 0);
}

/// Lets a machine review with a program that reports one problem in a line of `c.py`, and counts its calls.
#[cfg(unix)]
fn use_agent(machine: &TestEnvironment) -> PathBuf {
    let answer = r#"{"findings":[{"path":"c.py","line_start":2,"line_end":2,"kind":"SECURITY","severity":"high","title":"path is read without a check","explanation":"Any file can be read.","quoted_code":"    return open(path)"}]}"#;
    let (script, calls) = (machine.home().join("agent.sh"), machine.home().join("calls"));
    let text = format!("#!/bin/sh\ncat > /dev/null\necho x >> '{}'\ncat <<'END'\n{answer}\nEND\n", calls.display());
    crate::env::executable(&script, text);
    machine.settings(&format!("[reviewers.agent]\nkind = \"command\"\ncommand = [\"{}\"]\n", script.display()));
    calls
}

#[cfg(unix)]
#[test]
fn hunks_that_another_machine_reviewed_before_they_were_committed_are_carried_over() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    use_agent(&ada);
    let calls = use_agent(&bob);
    ada.write("c.py", "def load(path):\n    return open(path)\n");
    let reviewed = ada.json(&["review", "--reviewer", "agent", "--wait", "--format", "json"], DONE);
    assert_eq!(ids(&reviewed).len(), 1, "{reviewed}");
    sync(&ada);
    ada.commit("Load");
    ada.git(&["push", "-q", "origin", "main"]);
    bob.git(&["fetch", "-q"]);
    bob.git(&["reset", "-q", "--hard", "origin/main"]);
    sync(&bob);
    // The same change, now as a commit: equivalent, so nothing is asked.
    let reused = bob.json(&["review", "--commit", "HEAD", "--reviewer", "agent", "--wait", "--format", "json"], DONE);
    assert_eq!(reused["decision"]["action"], "reuse", "{}", reused["decision"]);
    // With another file beside it, only that file is asked about.
    bob.write("d.py", "y = 2\n");
    bob.commit("More");
    let range = ["review", "--range", "HEAD~2..HEAD", "--reviewer", "agent", "--wait", "--format", "json"];
    let carried = bob.json(&range, DONE);
    assert_eq!(carried["coverage"]["hunks_carried"], 1, "{}", carried["coverage"]);
    assert_eq!(ids(&carried), ids(&reviewed));
    assert_eq!(std::fs::read_to_string(calls).expect("calls").lines().count(), 1);
}
