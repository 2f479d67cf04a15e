//! Logs of others that are damaged or hostile: set aside and named, without an effect.

use jiff::Timestamp;
use revdeck::domain::RunId;
use serde_json::{Value, json};

use super::{Team, ids, review, status, sync};
use crate::env::{DONE, TestEnvironment, run};

/// Puts segments into a log of the remote, as whoever may push can.
pub fn push_log(by: &TestEnvironment, log: &str, segments: &[(&str, String)]) {
    let entries = segments.iter().map(|(name, content)| format!("100644 blob {}\t{name}\n", store_blob(by, content)));
    push_tree(by, log, &entries.collect::<String>());
}

/// Stores a content in the repository, and returns its id.
pub fn store_blob(by: &TestEnvironment, content: &str) -> String {
    let file = by.write("segment.tmp", content);
    let blob = by.git(&["hash-object", "-w", file.to_str().expect("text")]);
    std::fs::remove_file(file).expect("a file");
    blob.trim().to_owned()
}

/// Puts a tree, given as `git mktree` reads it, into a log of the remote.
pub fn push_tree(by: &TestEnvironment, log: &str, tree: &str) {
    let list = by.write("tree.tmp", tree);
    let made = by
        .command("git")
        .arg("mktree")
        .stdin(std::fs::File::open(&list).expect("a file"))
        .output()
        .expect("git starts");
    std::fs::remove_file(list).expect("a file");
    let tree = String::from_utf8(made.stdout).expect("text");
    let commit = by.git(&["commit-tree", tree.trim(), "-m", "x"]);
    by.git(&["push", "-q", "-f", "origin", &format!("{}:refs/revdeck/team/{log}", commit.trim())]);
}

/// Returns a decision by a clock that is months ahead.
pub fn decision(machine: &str, finding: &str, reason: &str) -> Value {
    let clock = Timestamp::now().as_millisecond() + 100 * 86_400_000;
    json!({
        "type": "decision", "clock": [clock, 0], "machine": machine, "person": {"name": "Eve"},
        "actor": "user", "finding_id": finding, "status": "dismissed", "reason": reason,
        "at": "2026-11-27T10:00:00Z", "action": "set",
    })
}

#[test]
fn bad_segments_are_set_aside_and_good_ones_are_taken() {
    let team = Team::new();
    let (ada, eve) = (team.member("Ada"), team.machine("Eve"));
    let found = ids(&review(&ada));
    let good = decision("eve-1", &found[0], "intended \u{1b}[2J\u{202e}by Eve");
    let with_path = |path: &str| {
        let finding = json!({
            "finding_id": "f_00000000000000aa", "first_run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E",
            "last_run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E", "priority": 0, "severity": "critical", "confidence": "high",
            "kind": "SECURITY", "title": "t", "explanation": "e", "repo_relative_path": path, "line_start": 1,
            "line_end": 1, "quoted_code": "", "status": "open", "detail_ref": "../../x",
            "reported_at": "2026-11-27T10:00:00Z",
        });
        json!({
            "type": "review", "machine": "eve-1", "person": {"name": "Eve"}, "findings": [finding], "coverage": {},
            "run": {"run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E", "status": "completed", "created_at": "2026-11-27T10:00:00Z",
                    "updated_at": "2026-11-27T10:01:00Z", "source": "cli", "scope": "worktree", "reviewer": "builtin"},
        })
    };
    push_log(
        &eve,
        "eve-1",
        &[
            ("000000-good.ndjson", format!("{good}\n")),
            ("000001-torn.ndjson", good.to_string()[..40].to_owned()),
            ("000002-else.ndjson", format!("{}\n", decision("ada-1", &found[1], "as Ada"))),
            ("000003-path.ndjson", format!("{}\n", with_path("../../../etc/passwd"))),
            ("000004-late.ndjson", format!("{}\n", json!({"type": "prophecy", "machine": "eve-1"}))),
            ("notes.txt", "no segment".to_owned()),
        ],
    );
    push_log(&eve, "Bad_Name", &[("000000-x.ndjson", "x\n".to_owned())]);
    let received = sync(&ada);
    assert_eq!((&received["received"]["decisions"], &received["skipped"]), (&json!(1), &json!(1)), "{received}");
    let reasons: Vec<String> = received["set_aside"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            format!("{}: {}", one["segment"].as_str().expect("a name"), one["reason"].as_str().expect("a reason"))
        })
        .collect();
    insta::assert_snapshot!(reasons.join("\n"), @r#"
    000001-torn.ndjson: line 1 is no record: EOF while parsing a list at line 1 column 40
    000002-else.ndjson: line 1 is by ada-1, but stands in the log of eve-1
    000003-path.ndjson: line 1 is no record: "../../../etc/passwd" is not a path of the repository
    "#);
    // What was taken is shown harmless, and names its author.
    assert_eq!((status(&ada, &found[0]), status(&ada, &found[1])), ("dismissed".into(), "open".into()));
    let shown = run(&ada, &["show", &found[0]], DONE);
    assert!(shown.contains("Eve on eve-1") && !shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    // The next exchange does not repeat it.
    assert_eq!(sync(&ada)["set_aside"], json!([]));
    assert!(run(&ada, &["team"], DONE).contains("set aside 000001-torn.ndjson of eve-1"));
    // A clock that is months ahead does not keep a person from deciding again.
    run(&ada, &["triage", &found[0], "open"], DONE);
    let bob = team.member("Bob");
    sync(&ada);
    sync(&bob);
    assert_eq!(status(&ada, &found[0]), "open");
    assert_eq!(bob.json(&["team", "--format", "json"], DONE)["disputes"], json!({}));
    // What was set aside goes with its machine.
    let kept = || std::fs::read_dir(ada.store().root().join("team/set-aside")).expect("a folder").count();
    assert_eq!(kept(), 3);
    assert!(run(&ada, &["team"], DONE).contains("`revdeck team forget NAME`"));
    run(&ada, &["team", "forget", "eve-1"], DONE);
    assert_eq!(kept(), 0);
    assert!(!run(&ada, &["team"], DONE).contains("set aside"));
}

#[test]
fn folders_links_and_submodules_in_a_log_are_set_aside_and_named() {
    let team = Team::new();
    let (ada, eve) = (team.member("Ada"), team.machine("Eve"));
    let found = ids(&review(&ada));
    let good = store_blob(&eve, &format!("{}\n", decision("eve-1", &found[0], "intended")));
    let (tree, commit) = (eve.git(&["rev-parse", "HEAD^{tree}"]), eve.git(&["rev-parse", "HEAD"]));
    let entries = [
        format!("100644 blob {good}\t000000-good.ndjson\n"),
        format!("040000 tree {}\t000001-folder.ndjson\n", tree.trim()),
        format!("160000 commit {}\tmodule\n", commit.trim()),
        format!("120000 blob {good}\t000002-link.ndjson\n"),
    ];
    push_tree(&eve, "eve-1", &entries.concat());
    let received = sync(&ada);
    assert_eq!(received["received"]["decisions"], 1, "{received}");
    let named = received["set_aside"].as_array().expect("a list").iter();
    let named: Vec<[&str; 2]> =
        named.map(|one| ["segment", "reason"].map(|key| one[key].as_str().expect("text"))).collect();
    let no_files = ["000001-folder.ndjson", "000002-link.ndjson", "module"].map(|name| [name, "it is no file"]);
    assert_eq!(named, no_files);
    assert!(run(&ada, &["team"], DONE).contains("set aside module of eve-1: it is no file"));
    assert_eq!(sync(&ada)["set_aside"], json!([]), "it is named once");
    // In the own log they are named, too, and keep no record back.
    let own = "refs/revdeck/team/ada-1";
    eve.git(&["fetch", "-q", "origin", &format!("+{own}:refs/x/log")]);
    let before = eve.git(&["ls-tree", "refs/x/log"]);
    push_tree(&eve, "ada-1", &[before.as_str(), &entries[2]].concat());
    run(&ada, &["triage", &found[1], "addressed"], DONE);
    let received = sync(&ada);
    assert_eq!(received["sent"]["decisions"], 1, "{received}");
    assert!(received["set_aside"].to_string().contains("it is no file"), "{received}");
}

#[test]
fn a_review_that_another_machine_has_claimed_lands_when_that_one_is_forgotten() {
    for (claimant, first) in [("aaa-1", "aaa-1"), ("zzz-1", "ada-1")] {
        let team = Team::new();
        let (ada, bob, eve) = (team.member("Ada"), team.member("Bob"), team.machine("Eve"));
        let reviewed = review(&ada);
        let id: RunId = reviewed["run"]["run_id"].as_str().expect("an id").parse().expect("an id");
        sync(&ada);
        let sent = team.everything();
        let mut claim: Value = serde_json::from_str(sent.lines().next().expect("a line")).expect("a record");
        (claim["machine"], claim["findings"]) = (json!(claimant), json!([]));
        push_log(&eve, claimant, &[("000000-x.ndjson", format!("{claim}\n"))]);
        let received = sync(&bob);
        assert!(received["set_aside"].to_string().contains("it claims the id of a review of"), "{received}");
        let maker = || {
            let record = bob.store().run(&id).expect("readable").expect("a run");
            record.team.expect("an origin").machine.to_string()
        };
        assert_eq!(maker(), first);
        run(&bob, &["team", "forget", claimant], DONE);
        assert_eq!(sync(&bob)["set_aside"], json!([]), "{claimant}");
        assert_eq!(maker(), "ada-1");
        assert_eq!(bob.json(&["runs", "--format", "json"], DONE)["runs"].as_array().map(Vec::len), Some(1));
        assert_eq!(ids(&review(&bob)), ids(&reviewed));
    }
}

#[test]
fn a_log_that_git_does_not_fetch_keeps_no_other_one_away() {
    let team = Team::new();
    let (ada, bob, eve) = (team.member("Ada"), team.member("Bob"), team.machine("Eve"));
    bob.git(&["config", "transfer.fsckObjects", "true"]);
    let found = ids(&review(&ada));
    run(&ada, &["triage", &found[0], "addressed"], DONE);
    sync(&ada);
    // git takes this tree from whoever pushes it, and Bob's refuses it with all that comes in the same fetch.
    push_tree(&eve, "eve-1", &format!("100644 blob {}\t.git\n", store_blob(&eve, "x")));
    let received = sync(&bob);
    assert_eq!(received["received"], json!({ "decisions": 1, "reviews": 1 }), "{received}");
    assert!(received["set_aside"].to_string().contains("the log cannot be fetched: git fetch with"), "{received}");
    // Alone, it is named, too, and keeps no own record here.
    run(&bob, &["triage", &found[1], "addressed"], DONE);
    assert_eq!(sync(&bob)["sent"]["decisions"], 1);
    assert!(run(&bob, &["team"], DONE).contains("of eve-1: the log cannot be fetched"));
    push_log(&eve, "eve-1", &[("000000-good.ndjson", format!("{}\n", decision("eve-1", &found[0], "intended")))]);
    assert_eq!(sync(&bob)["received"]["decisions"], 1);
    assert!(!run(&bob, &["team"], DONE).contains("set aside"));
}
