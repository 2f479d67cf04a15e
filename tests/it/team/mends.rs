//! Faults that were found in teams, each with the case that showed it.

use std::io::Write as _;

use rstest::rstest;
use serde_json::json;

use super::hostile::{decision, push_log};
use super::{CHANGE, Team, ids, join, review, status, sync, with_variable};
use crate::env::{DONE, FINDINGS, INCOMPLETE, TestEnvironment, USAGE, run};

#[test]
fn what_was_collected_under_wider_settings_leaves_as_the_present_ones_say() {
    let team = Team::new();
    let ada = team.member("Ada");
    ada.settings("[team]\nshare = \"all\"\n");
    ada.write("contracts/acme.py", CHANGE);
    ada.commit("Contract");
    let found = ids(&review(&ada));
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "as in contracts/acme.py"], DONE);
    let away = team.remote().with_extension("away");
    std::fs::rename(team.remote(), &away).expect("moved");
    ada.errors(&["sync"], INCOMPLETE);
    std::fs::rename(&away, team.remote()).expect("moved back");
    ada.settings("[team]\nshare = \"decisions\"\nexclude = [\"contracts/\"]\n");
    assert_eq!(run(&ada, &["sync", "--dry-run", "--show"], DONE), "");
    sync(&ada);
    assert!(!team.everything().contains("acme"), "{}", team.everything());
    // Records that were held back leave when the settings allow it.
    ada.write("c.py", CHANGE);
    ada.commit("More");
    review(&ada);
    assert_eq!(sync(&ada)["sent"]["reviews"], 0);
    ada.settings("");
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 1, "reviews": 2}), "with those that were held back");
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 0, "reviews": 0}));
}

#[test]
fn a_review_of_somebody_who_muted_kinds_is_not_the_review_of_others() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    run(&ada, &["mute", "MISSING_ERROR_HANDLING"], DONE);
    assert!(ids(&review(&ada)).is_empty(), "Ada sees nothing");
    sync(&ada);
    sync(&bob);
    let gate = ["review", "--commit", "HEAD", "--wait", "--fail-on", "p3", "--format", "json"];
    assert_eq!(bob.json(&gate, FINDINGS)["decision"]["action"], "launch");
}

#[test]
fn an_undo_takes_back_only_what_its_author_decided() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    run(&bob, &["triage", &found[0], "addressed"], DONE);
    for machine in [&ada, &bob, &ada] {
        sync(machine);
    }
    run(&bob, &["undo"], DONE);
    for machine in [&bob, &ada, &bob] {
        sync(machine);
    }
    assert_eq!((status(&ada, &found[0]), status(&bob, &found[0])), ("dismissed".into(), "dismissed".into()));
}

#[test]
fn a_dismissal_holds_although_the_engine_has_seen_the_code_change() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    review(&bob);
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    bob.write("b.py", CHANGE.replace("    except:\n        return None", "    except OSError:\n        return None"));
    run(&bob, &["review", "--worktree", "--wait"], DONE);
    sync(&bob);
    assert_eq!(status(&bob, &found[0]), "dismissed");
    assert!(run(&bob, &["show", &found[0]], DONE).contains("Ada on ada-1 set"));
}

#[test]
fn a_compacted_store_sends_what_comes_later() {
    let team = Team::new();
    let ada = team.member("Ada");
    review(&ada);
    for _ in 0..5 {
        // Each request that a review answers is a line about it.
        run(&ada, &["review", "--commit", "HEAD", "--wait"], DONE);
    }
    sync(&ada);
    run(&ada, &["store", "prune"], DONE);
    ada.write("c.py", CHANGE);
    ada.commit("More");
    review(&ada);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
}

#[test]
fn a_long_reason_and_a_torn_line_take_nothing_else_with_them() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    run(&ada, &["triage", &found[0], "dismissed", "--reason", &"long ".repeat(1_000)], DONE);
    let own = ada.store().root().join("team/own.ndjson");
    let mut file = std::fs::File::options().append(true).open(own).expect("a file");
    file.write_all(b"{\"type\":\"decision\",\"clo").expect("written");
    drop(file);
    run(&ada, &["triage", &found[1], "addressed"], DONE);
    sync(&ada);
    let received = sync(&bob);
    assert_eq!((&received["received"]["decisions"], &received["set_aside"]), (&json!(2), &json!([])), "{received}");
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("dismissed".into(), "addressed".into()));
}

#[test]
fn odd_refs_and_clocks_without_end_are_named_and_stop_nobody() {
    let team = Team::new();
    let (ada, eve) = (team.member("Ada"), team.machine("Eve"));
    let found = ids(&review(&ada));
    let file = eve.write("x.tmp", "x");
    let blob = eve.git(&["hash-object", "-w", file.to_str().expect("text")]);
    eve.git(&["push", "-q", "origin", &format!("{}:refs/revdeck/team/zz-evil", blob.trim())]);
    let mut late = decision("eve-1", &found[0], "for ever");
    late["clock"] = json!([i64::MAX, u32::MAX]);
    push_log(&eve, "eve-1", &[("000000-late.ndjson", format!("{late}\n"))]);
    let exchanged = sync(&ada);
    assert_eq!(exchanged["sent"]["reviews"], 1, "{exchanged}");
    let reasons = exchanged["set_aside"].to_string();
    assert!(reasons.contains("its clock is out of range") && reasons.contains("the log cannot be read"), "{reasons}");
    assert_eq!(status(&ada, &found[0]), "open");
}

#[test]
fn a_run_of_others_cannot_be_the_latest_nor_break_the_figures() {
    let team = Team::new();
    let (ada, eve) = (team.member("Ada"), team.machine("Eve"));
    let own = review(&ada)["run"]["run_id"].clone();
    let review_of = |run: &str, at: &str| {
        json!({
            "type": "review", "machine": "eve-1", "person": {"name": "Eve"}, "findings": [],
            "coverage": {
                "files_total": u32::MAX, "hunks_total": u32::MAX, "hunks_covered": u32::MAX, "hunks_carried": u32::MAX,
                "gaps": [{"reason": "binary", "files": u32::MAX, "hunks": u32::MAX}],
            },
            "run": {
                "run_id": run, "status": "completed", "created_at": at, "updated_at": at, "source": "cli",
                "scope": "worktree", "reviewer": "builtin", "superseded_by": own, "epoch": u64::MAX,
                "finding_counts": {"p0": u32::MAX, "p1": u32::MAX}, "tokens": {"input": u64::MAX, "output": u64::MAX},
                "cost": 1e300, "attempt": u32::MAX, "member_of": own, "paused": true,
            },
        })
    };
    let now = review_of("ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E", "2026-11-01T10:00:00Z");
    let future = review_of("ar_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "2099-11-01T10:00:00Z");
    push_log(&eve, "eve-1", &[("000000-a.ndjson", format!("{now}\n")), ("000001-b.ndjson", format!("{future}\n"))]);
    let received = sync(&ada);
    assert_eq!(received["received"]["reviews"], 1, "{received}");
    assert!(received["set_aside"].to_string().contains("a time in the future"), "{received}");
    assert_eq!(ada.json(&["show", "latest", "--format", "json"], DONE)["run"]["run_id"], own);
    let runs = ada.json(&["runs", "--format", "json"], DONE);
    let theirs = runs["runs"].as_array().expect("runs").iter().find(|run| run["run_id"] != own).expect("a run").clone();
    assert_eq!(
        (&theirs["superseded_by"], &theirs["member_of"], &theirs["epoch"]),
        (&json!(null), &json!(null), &json!(0))
    );
    assert_eq!(theirs["finding_counts"]["p0"], 0);
    for command in [&["stats"][..], &["stats", "--by", "reviewer"], &["findings"], &["store", "verify"]] {
        run(&ada, command, DONE);
    }
}

#[test]
fn a_machine_of_continuous_integration_is_forgotten_by_its_name() {
    let team = Team::new();
    let (ada, job) = (team.member("Ada"), team.machine("Builder"));
    let joined = with_variable(&job, "CI", "true", &["team", "join", "--machine", "ci-1"]);
    assert_eq!(joined.status.code(), Some(DONE));
    let found = ids(&review(&job));
    sync(&job);
    sync(&ada);
    run(&ada, &["team", "forget", "ci-1"], DONE);
    run(&job, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&job);
    assert_eq!(sync(&ada)["received"]["decisions"], 0);
    assert_eq!(status(&ada, &found[0]), "obsolete", "nobody else has reported it");
    assert!(run(&ada, &["team"], DONE).contains("ci-1  forgotten"));
    ada.fails(&["team", "join", "--machine", "ci"], USAGE);
}

#[test]
fn a_place_is_found_from_every_folder_and_hides_its_password() {
    let team = Team::new();
    let ada = team.machine("Ada");
    let beside = ada.repo().parent().expect("a folder").join("beside.git");
    ada.git(&["init", "-q", "--bare", beside.to_str().expect("text")]);
    run(&ada, &["team", "join", "../beside.git", "--machine", "ada-1"], DONE);
    review(&ada);
    ada.write("sub/x.txt", "x");
    let mut command = ada.command(env!("CARGO_BIN_EXE_revdeck"));
    let below = command.args(["sync"]).current_dir(ada.repo().join("sub")).output().expect("revdeck starts");
    assert_eq!(below.status.code(), Some(DONE), "{}", crate::env::err(&below));
    let joined = run(&ada, &["team", "join", "http://ada:hunter2@127.0.0.1:9/x.git"], DONE);
    let failed = ada.errors(&["sync"], INCOMPLETE);
    let shown = format!("{joined}{failed}{}", run(&ada, &["team", "--format", "json"], DONE));
    assert!(shown.contains("http://127.0.0.1:9/x.git") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn with_signed_logs_alone_nobody_else_counts() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    bob.settings("[team]\naccept = \"signed\"\n");
    let found = ids(&review(&ada));
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    let received = sync(&bob);
    assert_eq!(received["received"], json!({"decisions": 0, "reviews": 0}));
    assert!(received["set_aside"].to_string().contains("no key that git trusts"), "{received}");
    assert_eq!(review(&bob)["decision"]["action"], "launch");
    // What was not taken is read again when it counts.
    bob.settings("");
    assert_eq!(sync(&bob)["received"]["decisions"], 1);
}

#[test]
fn names_of_excluded_paths_do_not_leave_in_words() {
    let team = Team::new();
    let ada = team.member("Ada");
    ada.settings("[team]\nexclude = [\"contracts/\", \"*.secret\"]\n");
    let found = ids(&review(&ada));
    run(
        &ada,
        &["triage", &found[0], "dismissed", "--reason", "see contracts/acme.py:7, (x/deal.secret) and b.py"],
        DONE,
    );
    sync(&ada);
    let sent = team.everything();
    assert!(!sent.contains("acme") && !sent.contains("deal") && sent.contains("and b.py"), "{sent}");
}

#[test]
fn names_of_excluded_paths_leave_in_no_spelling_and_in_no_branch() {
    let team = Team::new();
    let ada = team.member("Ada");
    ada.settings("[team]\nexclude = [\"contracts/**\"]\n");
    ada.git(&["checkout", "-q", "-b", "feature/contracts/bigcustomer"]);
    ada.write("contracts/Acme Deal.py", CHANGE);
    ada.write("contracts/bigcustomer.py", CHANGE);
    ada.write("c.py", CHANGE);
    ada.commit("Contracts");
    let reviewed = review(&ada);
    let found = reviewed["findings"].as_array().expect("findings");
    let named: Vec<&str> = found
        .iter()
        .filter(|finding| finding["repo_relative_path"] == "c.py")
        .filter_map(|finding| finding["finding_id"].as_str())
        .collect();
    let reason =
        r"see contracts/Acme Deal.py, contracts\bigcustomer.py, src/../contracts/zeta.py, BigCustomer.py and c.py";
    run(&ada, &["triage", named[0], "dismissed", "--reason", reason], DONE);
    sync(&ada);
    let sent = team.everything();
    for name in ["acme", "deal.py", "bigcustomer", "zeta"] {
        assert!(!sent.to_lowercase().contains(name), "{name} has left: {sent}");
    }
    assert!(sent.contains("and c.py"), "{sent}");
}

#[test]
fn a_review_waits_once_for_a_remote_that_never_answers() {
    let team = Team::new();
    let ada = team.machine("Ada");
    // The system accepts connections, and nobody reads from them.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = format!("http://{}/x.git", listener.local_addr().expect("an address"));
    ada.settings("git_seconds = 1\n");
    run(&ada, &["team", "join", &place, "--machine", "ada-1"], DONE);
    let output = ada.revdeck(&["review", "--commit", "HEAD", "--wait", "--sync"]);
    let said = crate::env::err(&output);
    assert_eq!(output.status.code(), Some(DONE), "{said}");
    assert_eq!(said.matches("note: no exchange with the team: git ls-remote with").count(), 1, "{said}");
    assert!(said.contains("note: no exchange with the team after the review, as nothing came"), "{said}");
    assert!(ada.output(&["team"], DONE).contains("1 to send"));
    drop(listener);
}

#[test]
fn joining_twice_says_what_the_next_exchange_sends() {
    let team = Team::new();
    let ada: TestEnvironment = team.machine("Ada");
    join(&ada, "ada-1");
    review(&ada);
    sync(&ada);
    let again = run(&ada, &["team", "join"], DONE);
    assert!(
        !again.contains("Nothing has left yet") && again.contains("The next `revdeck sync` sends nothing"),
        "{again}"
    );
}

#[test]
fn runs_of_others_take_no_place_among_those_that_are_kept() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let own = review(&bob)["run"]["run_id"].as_str().expect("an id").to_owned();
    for number in 0..3 {
        ada.write("c.py", CHANGE.replace("first", &format!("first_{number}")));
        run(&ada, &["review", "--worktree", "--wait"], DONE);
    }
    sync(&ada);
    assert_eq!(sync(&bob)["received"]["reviews"], 3);
    run(&bob, &["store", "prune", "--keep", "1"], DONE);
    let journal = bob.store().root().join("events").join(format!("{own}.jsonl"));
    assert!(journal.exists(), "the only run of this machine is the newest one");
}

#[rstest]
#[case::by_the_next_exchange(&[], true)]
#[case::after_joining_elsewhere(&["join"], true)]
#[case::before_its_machine_is_forgotten(&["forget", "ada-1"], false)]
fn a_received_result_that_never_reached_the_disk_is_written_again(#[case] step: &[&str], #[case] exchanges: bool) {
    let (team, elsewhere) = (Team::new(), Team::new());
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let reviewed = review(&ada);
    sync(&ada);
    sync(&bob);
    // The machine went down before the system wrote the file; the first exchange with a large team leaves this mark.
    let store = bob.store();
    let run_id = reviewed["run"]["run_id"].as_str().expect("an id");
    let output = store.root().join("outputs").join(format!("{run_id}.json"));
    std::fs::write(&output, "").expect("emptied");
    let progress = store.team_progress().expect("progress");
    let marked = revdeck::store::TeamProgress { has_unsynced_results: true, ..progress };
    store.write_team_progress(&marked).expect("written");
    let remote = elsewhere.remote();
    match step {
        [] => {}
        ["join"] => drop(run(&bob, &["team", "join", remote.to_str().expect("text")], DONE)),
        more => drop(run(&bob, &[&["team"][..], more].concat(), DONE)),
    }
    if exchanges {
        sync(&bob);
    }
    assert!(std::fs::metadata(&output).is_ok_and(|file| file.len() > 0), "the result is not there again");
    assert_eq!(ids(&review(&bob)), ids(&reviewed));
    assert!(!store.team_progress().expect("progress").has_unsynced_results);
}

#[test]
fn a_decision_of_the_end_of_time_silences_nobody() {
    let team = Team::new();
    let (ada, bob, eve) = (team.member("Ada"), team.member("Bob"), team.machine("Eve"));
    let found = ids(&review(&ada));
    sync(&ada);
    let mut late = decision("eve-1", &found[0], "for ever");
    late["clock"] = json!([7_258_118_399_999_i64, 1 << 30]);
    push_log(&eve, "eve-1", &[("000000-late.ndjson", format!("{late}\n"))]);
    let received = sync(&ada);
    assert!(received["set_aside"].to_string().contains("the clock is more than 366 days ahead"), "{received}");
    assert_eq!(status(&ada, &found[0]), "open");
    sync(&bob);
    for (machine, finding) in [(&ada, &found[0]), (&bob, &found[1])] {
        run(machine, &["triage", finding, "dismissed", "--reason", "intended"], DONE);
        let exchanged = sync(machine);
        assert_eq!((&exchanged["sent"]["decisions"], &exchanged["not_sent"]), (&json!(1), &json!([])), "{exchanged}");
    }
    sync(&ada);
    for machine in [&ada, &bob] {
        assert_eq!((status(machine, &found[0]), status(machine, &found[1])), ("dismissed".into(), "dismissed".into()));
    }
}

#[test]
fn a_clock_without_end_in_the_history_does_not_keep_own_decisions_here() {
    let team = Team::new();
    let ada = team.member("Ada");
    let found = ids(&review(&ada));
    sync(&ada);
    // An earlier version has taken it over.
    let line = json!({
        "finding_id": found[0], "status": "dismissed", "previous": "open", "actor": "user", "reason": "for ever",
        "at": "2026-11-27T10:00:00Z", "action": "set", "group": "team_eve-1",
        "team": {"clock": [7_258_118_399_999_i64, 1 << 30], "machine": "eve-1", "person": {"name": "Eve"}},
    });
    let path = ada.store().root().join("triage.ndjson");
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a log");
    log.write_all(format!("{line}\n").as_bytes()).expect("a line");
    assert_eq!(status(&ada, &found[0]), "dismissed");
    run(&ada, &["triage", &found[0], "open"], DONE);
    let exchanged = sync(&ada);
    assert_eq!((&exchanged["sent"]["decisions"], &exchanged["not_sent"]), (&json!(1), &json!([])), "{exchanged}");
    assert_eq!(status(&ada, &found[0]), "open");
}

#[rstest]
#[case::in_days(10)]
#[case::in_months(100)]
fn a_decision_that_one_clock_finds_too_far_ahead_counts_when_its_time_has_come(#[case] wait: i64) {
    let team = Team::new();
    let (ada, eve) = (team.member("Ada"), team.machine("Eve"));
    let found = ids(&review(&ada));
    sync(&ada);
    let mut ahead = decision("eve-1", &found[0], "intended");
    let clock = jiff::Timestamp::now().as_millisecond() + (366 + wait) * 86_400_000;
    ahead["clock"] = json!([clock, 0]);
    push_log(&eve, "eve-1", &[("000000-x.ndjson", format!("{ahead}\n"))]);
    sync(&ada);
    assert_eq!(status(&ada, &found[0]), "open");
    let is_listed = || run(&ada, &["team"], DONE).contains("the clock is more than 366 days ahead");
    assert!(is_listed());
    // The decision still waits when more of its log is read.
    let more = decision("eve-1", &found[1], "intended");
    push_log(&eve, "eve-1", &[("000000-x.ndjson", format!("{ahead}\n")), ("000001-y.ndjson", format!("{more}\n"))]);
    sync(&ada);
    assert_eq!((status(&ada, &found[1]), is_listed()), ("dismissed".into(), true));
    for (days, expected) in [(wait - 1, "open"), (wait + 1, "dismissed")] {
        let later = jiff::Timestamp::now().as_millisecond() + days * 86_400_000;
        let now = jiff::Timestamp::from_millisecond(later).expect("a time").to_string();
        let synced = with_variable(&ada, "REVDECK_NOW", &now, &["sync"]);
        assert_eq!(synced.status.code(), Some(DONE), "{}", crate::env::err(&synced));
        assert_eq!(status(&ada, &found[0]), expected, "{days}");
        assert_eq!(is_listed(), expected == "open", "{days}");
    }
}

#[test]
fn a_dispute_that_was_ended_without_the_remote_ends_on_every_machine() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    [&ada, &bob].iter().for_each(|machine| drop(sync(machine)));
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    run(&bob, &["triage", &found[0], "addressed"], DONE);
    [&ada, &bob].iter().for_each(|machine| drop(sync(machine)));
    assert_eq!(sync(&ada)["disputes"], 1);
    // Ada agrees, and cannot say so at first.
    run(&ada, &["triage", &found[0], "open"], DONE);
    run(&ada, &["triage", &found[0], "addressed"], DONE);
    let away = team.remote().with_extension("away");
    std::fs::rename(team.remote(), &away).expect("moved");
    ada.errors(&["sync"], INCOMPLETE);
    std::fs::rename(&away, team.remote()).expect("moved back");
    assert_eq!((&sync(&ada)["disputes"], &sync(&bob)["disputes"]), (&json!(0), &json!(0)));
}
