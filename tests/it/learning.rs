//! Learning from decisions, through the real binary and its workers, and the learned rules in a model's prompt.

use revdeck::domain::{Finding, FindingId, FindingStatus, Kind, Priority, RunId, RunStatus};
use rstest::rstest;
use rustix::process::Signal;
use serde_json::Value;

use crate::life::{Life, handles, plain, swallows};
use crate::llm::server::{Model, calls};
use crate::llm::{finish, settings};
use crate::runner::place::{Place, gone, halfway, signal, wait_for};

/// Returns the learned patterns of a stance.
fn learned(place: &Place, stance: &str) -> Vec<Value> {
    let listed = place.revdeck(&["knowledge", "list", "--origin", "learned", "--stance", stance, "--format", "json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    listed["patterns"].as_array().expect("patterns").clone()
}

/// Waits until the worker, which learns after the end of its run, has read all decisions.
fn wait_until_read(life: &Life) {
    let store = life.place.store();
    let triage = store.root().join("triage.ndjson");
    wait_for("the lesson", || {
        let length = std::fs::metadata(&triage).map_or(0, |seen| seen.len());
        let read = std::fs::read_to_string(store.root().join("learned")).ok()?;
        (read.trim().parse::<u64>().ok()? == length).then_some(())
    });
}

/// Runs a worker for an unrelated review.
fn another_review(life: &Life, name: &str) {
    life.write(&format!("{name}.py"), &plain(name));
    life.review(&["--worktree"]);
    wait_until_read(life);
}

fn dismiss(life: &Life, id: &FindingId, reason: &str, more: &[&str]) {
    life.place.revdeck(&[&["triage", id.as_str(), "dismissed", "--reason", reason], more].concat());
}

fn first(findings: &[Finding]) -> FindingId {
    findings.first().expect("a finding").finding_id.clone()
}

/// Returns a module with one function that has code after its end: DEAD_CODE at the last line.
fn goes_on(name: &str) -> String {
    format!("def {name}(source):\n    return source\n    source.{name} = not source\n")
}

fn unreachable(life: &Life, path: &str, name: &str) -> FindingId {
    life.write(path, &goes_on(name));
    finding_in(life, path)
}

fn swallowed(life: &Life, path: &str, name: &str) -> FindingId {
    life.write(path, &swallows(name));
    finding_in(life, path)
}

/// Waits until the worker has ended; it continues to read and write after the end of its run.
fn wait_until_gone(life: &Life, run: &RunId) {
    wait_for("the end of the worker", || life.place.worker(run).is_some_and(gone).then_some(()));
}

fn finding_in(life: &Life, path: &str) -> FindingId {
    let run = life.review(&["--worktree"]);
    // Without this wait the worker could read the next decision while undo is still possible.
    wait_until_gone(life, &run);
    let findings = life.output(&run).findings;
    first(&findings.into_iter().filter(|finding| finding.repo_relative_path == path).collect::<Vec<_>>())
}

/// Checks that the stored knowledge contains none of the user's code.
fn holds_nothing_of(life: &Life, words: &[&str]) {
    let folder = life.place.test.home().join("knowledge_cache");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).expect("knowledge").flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        read += text.len();
        for word in words {
            assert!(!text.contains(word), "{word} is in {}", entry.path().display());
        }
    }
    assert!(read > 0);
}

#[test]
fn a_finding_that_was_fixed_teaches_the_edit_and_a_dismissal_the_shape() {
    let life = Life::new();
    swallowed(&life, "secret_module.py", "launch_codes");
    life.write("secret_module.py", &handles("launch_codes"));
    life.review(&["--worktree"]);
    wait_until_read(&life);
    let mistakes = learned(&life.place, "mistake");
    assert!(!mistakes.is_empty(), "an edit was seen");
    assert!(mistakes.iter().all(|pattern| pattern["evidence"] == "addressed"), "{mistakes:?}");
    assert!(mistakes.iter().any(|pattern| pattern["kind"] == "MISSING_ERROR_HANDLING"), "{mistakes:?}");
    assert!(learned(&life.place, "false_alarm").is_empty());

    // An ignored error can be serious in one place and harmless in the next.
    let id = swallowed(&life, "grave.py", "loud_thing");
    dismiss(&life, &id, "intended", &[]);
    let id = unreachable(&life, "other.py", "quiet_thing");
    dismiss(&life, &id, "nobody needs launch_codes to be told", &[]);
    another_review(&life, "calm");
    let alarms = learned(&life.place, "false_alarm");
    assert_eq!(alarms.len(), 1, "{alarms:?}");
    assert_eq!(alarms[0]["kind"], "DEAD_CODE");
    holds_nothing_of(&life, &["launch_codes", "quiet_thing", "secret_module", "read_", "Unreadable", "nobody needs"]);
}

#[test]
fn a_fix_that_was_undone_or_dropped_is_a_doubt_and_no_dismissal() {
    let life = Life::new();
    let kinds = || {
        let listed = life.place.revdeck(&["knowledge", "list", "--language", "python", "--format", "json"]);
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let kinds = listed["kinds"].as_array().expect("kinds").iter();
        kinds
            .map(|kind| {
                let count = |key: &str| kind[key].as_u64().expect("a number");
                (kind["kind"].as_str().expect("a kind").to_owned(), count("setbacks"), count("dismissed"))
            })
            .collect::<Vec<_>>()
    };
    let unused = |name: &str| format!("import os\n\n\ndef {name}(value):\n    return not value\n");
    for (name, end) in [("one", "undo"), ("two", "drop"), ("three", "drop")] {
        let path = format!("{name}.py");
        life.write(&path, &unused(name));
        let id = finding_in(&life, &path);
        life.place.revdeck(&["fix", id.as_str(), "--wait"]);
        match end {
            "undo" => {
                life.place.revdeck(&["fix", "apply", "latest"]);
                life.place.revdeck(&["fix", "undo", "latest"]);
            }
            _ if name == "three" => {
                life.write(".revdeck.toml", "[learning]\nenabled = false\n");
                life.place.revdeck(&["fix", "drop", "latest"]);
                std::fs::remove_file(life.place.test.repo().join(".revdeck.toml")).expect("removed");
            }
            _ => drop(life.place.revdeck(&["fix", "drop", "latest"])),
        }
    }
    another_review(&life, "calm");
    // The third fix was dropped while learning was off.
    assert_eq!(kinds(), [("DEAD_CODE".to_owned(), 2, 0)]);
    another_review(&life, "again");
    assert_eq!(kinds(), [("DEAD_CODE".to_owned(), 2, 0)], "each fix counts once");
    assert!(learned(&life.place, "false_alarm").is_empty(), "and teaches no pattern");
}

#[test]
fn who_opts_out_teaches_nothing_also_later() {
    let life = Life::new();
    let id = unreachable(&life, "a.py", "one");
    dismiss(&life, &id, "intended", &["--no-learning"]);
    let id = unreachable(&life, "b.py", "two");
    life.write(".revdeck.toml", "[learning]\nenabled = false\n");
    dismiss(&life, &id, "intended", &[]);
    life.write("c.py", &plain("three"));
    life.review(&["--worktree"]);
    std::fs::remove_file(life.place.test.repo().join(".revdeck.toml")).expect("removed");
    another_review(&life, "calm");
    assert!(learned(&life.place, "false_alarm").is_empty());
    assert!(
        !life.place.test.home().join("knowledge_cache/python_accumulated.json").exists(),
        "nothing is made for nothing"
    );
}

/// Returns a method with a known mistake (a pattern that comes with revdeck), or without it.
fn compares(name: &str, check: &str) -> String {
    format!("def {name}(value):\n    if {check}:\n        return 1\n    return value.first\n")
}

#[rstest]
#[case::opted_out(&[], &["--no-learning"], false)]
#[case::behind_one_that_opted_out(&["--no-learning"], &[], true)]
fn whether_a_run_that_waited_is_learned_from_is_the_word_of_who_asked_for_it(
    #[case] first: &[&str],
    #[case] second: &[&str],
    #[case] is_learned: bool,
) {
    let life = Life::new();
    let place = &life.place;
    place.settings("max_parallel_runs = 1\n");
    let commit = place.commit_modules("busy", 150);
    life.write("a.py", &compares("quiet", "value == None"));
    let run = life.review(&["--worktree", "--no-learning"]);
    let found = life.output(&run).findings.into_iter().find(|finding| finding.pattern.is_some());
    let found = found.expect("a finding for a pattern").finding_id;
    wait_until_gone(&life, &run);

    let busy = place.review(&[&["--commit", &commit], first].concat());
    let worker = halfway(place, &busy);
    life.write("a.py", &compares("quiet", "value == 1"));
    life.write("b.py", "def calm(other):\n    return other == None\n");
    let waiting = place.review(&[&["--worktree"], second].concat());
    assert_eq!(place.run(&waiting).status, RunStatus::Pending, "there is no room for it");
    signal(worker, Signal::CONT);
    assert_eq!(place.ended(&waiting).status, RunStatus::Completed);
    wait_until_gone(&life, &waiting);
    place.revdeck(&["knowledge", "learn"]);
    assert_eq!(life.status(&found), FindingStatus::Addressed);
    assert_eq!(learned(place, "mistake").is_empty(), !is_learned);
    let pattern = of_form(place, "VARIABLE == None");
    assert_eq!((pattern["last_matched"].is_string(), pattern["successes"] == 1), (is_learned, is_learned), "{pattern}");
}

#[test]
fn a_fix_of_somebody_who_opts_out_teaches_nothing() {
    let life = Life::new();
    let place = &life.place;
    life.write("a.py", "def collect(value, into=[]):\n    into.append(value)\n    return into\n");
    let run = life.review(&["--worktree"]);
    let id = first(&life.output(&run).findings);
    let made = place.revdeck(&["fix", id.as_str(), "--wait", "--format", "json", "--no-learning"]);
    let made: Value = serde_json::from_str(&made).expect("JSON");
    let reviews: Vec<bool> =
        place.runs().iter().filter(|run| run.follow_up_of.is_some()).map(|run| run.private).collect();
    assert_eq!(reviews, [true], "its review is one that opts out");
    place.revdeck(&["fix", "apply", made["fix"]["fix_id"].as_str().expect("an id")]);
    place.revdeck(&["knowledge", "learn"]);
    assert!(learned(place, "mistake").is_empty());
}

#[test]
fn what_is_about_other_things_or_was_taken_back_teaches_nothing() {
    let life = Life::new();
    let id = unreachable(&life, "a.py", "one");
    dismiss(&life, &id, "fixed elsewhere", &[]);
    let id = unreachable(&life, "b.py", "two");
    dismiss(&life, &id, "intended", &[]);
    life.place.revdeck(&["undo"]);
    another_review(&life, "calm");
    assert!(learned(&life.place, "false_alarm").is_empty());
}

#[test]
fn what_was_wiped_is_not_learned_again_from_the_same_decisions() {
    let life = Life::new();
    let id = unreachable(&life, "a.py", "one");
    dismiss(&life, &id, "intended", &[]);
    another_review(&life, "calm");
    assert_eq!(learned(&life.place, "false_alarm").len(), 1);
    life.place.revdeck(&["knowledge", "wipe", "--yes"]);
    another_review(&life, "calmer");
    life.place.revdeck(&["knowledge", "learn"]);
    assert!(learned(&life.place, "false_alarm").is_empty());
}

#[test]
fn a_fix_that_was_applied_teaches_its_edit() {
    let life = Life::new();
    // A mutable default that all calls share: a finding with an exact suggestion.
    life.write("a.py", "def collect(value, into=[]):\n    into.append(value)\n    return into\n");
    let run = life.review(&["--worktree"]);
    let id = first(&life.output(&run).findings);
    let made = life.place.revdeck(&["fix", id.as_str(), "--wait", "--format", "json"]);
    let made: Value = serde_json::from_str(&made).expect("JSON");
    life.place.revdeck(&["fix", "apply", made["fix"]["fix_id"].as_str().expect("an id")]);
    life.place.revdeck(&["knowledge", "learn"]);
    let mistakes = learned(&life.place, "mistake");
    assert!(mistakes.iter().any(|pattern| pattern["evidence"] == "applied"), "{mistakes:?}");
}

/// Returns the text between two tags.
fn part<'a>(text: &'a str, tag: &str) -> &'a str {
    let from = text.find(&format!("<{tag}>")).expect("a beginning");
    &text[from..text.find(&format!("</{tag}>")).expect("an end")]
}

#[test]
fn a_model_is_told_of_patterns_that_stand_in_the_change_and_of_nothing_else() {
    let model = Model::start(vec![calls(&[finish()]), calls(&[finish()])]);
    let place = Place::new();
    settings(&place, &model, "");
    place.test.write("a.py", "def quiet(value):\n    return value.first\n");
    place.test.commit("one");
    place.review(&["--commit", "HEAD", "--reviewer", "m", "--wait"]);
    // A known mistake: its pattern comes with revdeck.
    place.test.write("a.py", compares("quiet", "value == None"));
    place.review(&["--worktree", "--reviewer", "m", "--wait"]);
    let told: Vec<String> = model.requests().iter().map(Value::to_string).collect();
    assert!(part(&told[0], "patterns").contains("none"), "{}", part(&told[0], "patterns"));
    let second = part(told.last().expect("a request"), "patterns");
    assert!(second.contains("Look here:") && second.contains("compare with None by `is` (well known)"), "{second}");
    assert!(!second.contains("quiet") && !second.contains("value"), "{second}");
}

#[test]
fn a_model_is_told_of_no_pattern_that_stands_in_what_it_is_not_shown() {
    let model = Model::start(vec![calls(&[finish()]), calls(&[finish()])]);
    let place = Place::new();
    settings(&place, &model, "");
    place.test.write("a.py", compares("quiet", "value == None"));
    place.review(&["--worktree", "--reviewer", "m", "--wait"]);
    place.test.write("b.py", plain("calm"));
    place.review(&["--worktree", "--reviewer", "m", "--wait"]);
    let told: Vec<String> = model.requests().iter().map(Value::to_string).collect();
    assert!(part(&told[0], "patterns").contains("Look here:") && part(&told[0], "diff").contains("quiet"));
    let diff = part(&told[1], "diff");
    assert!(diff.contains("calm") && !diff.contains("quiet"), "what was reviewed is not shown again: {diff}");
    assert!(part(&told[1], "patterns").contains("none"), "{}", part(&told[1], "patterns"));
}

/// Raises a finding for a pattern that comes with revdeck, calls `between`, and then changes the finding's code.
fn raised_and_changed(life: &Life, between: impl FnOnce(&str)) -> FindingId {
    life.write("a.py", &compares("quiet", "value == None"));
    let run = life.review(&["--worktree"]);
    let found = life.output(&run).findings.into_iter().find(|finding| finding.pattern.is_some());
    let found = found.expect("a finding for a pattern");
    between(found.pattern.as_ref().expect("an id").as_str());
    life.write("a.py", &compares("quiet", "value == 1"));
    life.review(&["--worktree"]);
    found.finding_id
}

#[test]
fn a_finding_of_a_pattern_that_is_used_is_addressed_when_its_code_changed() {
    let life = Life::new();
    let id = raised_and_changed(&life, |_| {});
    wait_until_read(&life);
    assert_eq!(life.status(&id), FindingStatus::Addressed);
    assert!(!learned(&life.place, "mistake").is_empty(), "and the edit is learned");
}

#[rstest]
#[case("mute")]
#[case("forget")]
fn nobody_claims_that_a_finding_of_a_pattern_without_use_was_addressed(#[case] taken_out: &str) {
    let life = Life::new();
    let id = raised_and_changed(&life, |pattern| {
        life.place.revdeck(&["knowledge", taken_out, pattern]);
    });
    life.place.revdeck(&["knowledge", "learn"]);
    assert_eq!(life.status(&id), FindingStatus::Open);
    assert!(learned(&life.place, "mistake").is_empty(), "and nothing is learned");
}

#[test]
fn nobody_claims_that_a_finding_was_addressed_when_its_mistake_stands_in_too_many_places() {
    let life = Life::new();
    life.write("a.py", "def quiet(value):\n    return value == None\n");
    let run = life.review(&["--worktree"]);
    let found = life.output(&run).findings.into_iter().find(|finding| finding.pattern.is_some());
    let found = found.expect("a finding for a pattern");
    // A review raises only some findings of this pattern per file, and this one is no longer among them.
    let others: String = (0..9).map(|at| format!("def other_{at}(value):\n    return value == None\n")).collect();
    life.write("a.py", &format!("{others}def quiet(value, more):\n    return more or value == None\n"));
    let run = life.review(&["--worktree"]);
    assert!(life.output(&run).findings.iter().all(|other| other.line_start < 19), "it is not raised again");
    life.place.revdeck(&["knowledge", "learn"]);
    assert_eq!(life.status(&found.finding_id), FindingStatus::Open);
}

/// Returns a module with one function that is much too long.
fn long(name: &str) -> String {
    let lines: String = (0..400).map(|at| format!("    value.{name}_{at}()\n")).collect();
    format!("def {name}(value):\n{lines}")
}

/// Reviews new modules with long functions and returns the findings about them.
fn long_ones(life: &Life, names: &[&str]) -> Vec<Finding> {
    for name in names {
        life.write(&format!("{name}.py"), &long(name));
    }
    let is_new = |finding: &Finding| names.iter().any(|name| finding.repo_relative_path == format!("{name}.py"));
    let run = life.review(&["--worktree"]);
    wait_until_gone(life, &run);
    let findings = life.output(&run).findings.into_iter();
    findings.filter(|finding| finding.kind == Kind::LongMethod && is_new(finding)).collect()
}

/// Returns the counted kinds, in the order of the list.
fn kinds(place: &Place) -> Vec<Value> {
    let listed = place.revdeck(&["knowledge", "list", "--format", "json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    listed["kinds"].as_array().expect("kinds").clone()
}

#[test]
fn kinds_that_are_always_dismissed_are_a_priority_lower_until_one_is_right() {
    let life = Life::new();
    let before = long_ones(&life, &["one", "two", "three", "four", "five"]);
    let priority = before.first().expect("a finding").priority;
    assert!(before.len() == 5 && priority < Priority::P3, "{before:#?}");
    for finding in &before {
        dismiss(&life, &finding.finding_id, "not worth the change", &[]);
    }
    life.place.revdeck(&["undo"]);
    life.place.revdeck(&["knowledge", "learn"]);
    assert_eq!(kinds(&life.place)[0]["dismissed"], 4, "what was taken back is not counted");
    dismiss(&life, &before[4].finding_id, "not worth the change", &[]);
    // A second dismissal concerns the same finding.
    dismiss(&life, &before[0].finding_id, "intended", &[]);
    life.place.revdeck(&["knowledge", "learn"]);

    let counted = kinds(&life.place);
    assert_eq!(
        (counted.len(), &counted[0]["kind"], &counted[0]["language"]),
        (1, &"LONG_METHOD".into(), &"python".into())
    );
    assert_eq!((&counted[0]["dismissed"], &counted[0]["lowered"]), (&5.into(), &true.into()));
    holds_nothing_of(&life, &["one", "two", "three", "not worth"]);
    let stats = life.place.revdeck(&["knowledge", "stats", "--format", "json"]);
    let stats: Value = serde_json::from_str(&stats).expect("JSON");
    assert_eq!(stats["totals"]["kinds"], 1);
    assert!(life.place.revdeck(&["knowledge", "list"]).contains("5 dismissed, 0 addressed"));
    assert!(!life.place.revdeck(&["knowledge", "export"]).contains("LONG_METHOD"), "it is this machine's own");

    let lowered = long_ones(&life, &["six"]).remove(0);
    assert!(lowered.priority > priority, "{lowered:#?}");
    assert!(lowered.explanation.contains("always dismissed here (5 times)"), "{lowered:#?}");
    life.place.revdeck(&["knowledge", "mute", "python/long_method"]);
    assert_eq!(long_ones(&life, &["seven"]).remove(0).priority, priority);
    life.place.revdeck(&["knowledge", "unmute", "python/LONG_METHOD"]);
    assert!(long_ones(&life, &["eight"]).remove(0).priority > priority);

    // The user fixes one of them.
    life.write("six.py", &plain("six"));
    life.review(&["--worktree"]);
    wait_until_read(&life);
    assert_eq!(kinds(&life.place)[0]["addressed"], 1);
    assert_eq!(long_ones(&life, &["nine"]).remove(0).priority, priority);
    life.place.revdeck(&["knowledge", "forget", "python/LONG_METHOD"]);
    assert!(kinds(&life.place).is_empty());
}

/// Returns the pattern of a form, as the command lists it.
fn of_form(place: &Place, broken: &str) -> Value {
    let listed = place.revdeck(&["knowledge", "list", "--language", "python", "--format", "json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let mut all = listed["patterns"].as_array().expect("patterns").iter();
    all.find(|pattern| pattern["broken"] == broken).cloned().unwrap_or_default()
}

#[rstest]
#[case("Fixed elsewhere, in #12")]
#[case("generated or vendored code")]
#[case("generated")]
fn a_reason_that_says_nothing_of_the_code_is_no_failure_of_a_pattern(#[case] reason: &str) {
    let life = Life::new();
    life.write("a.py", &compares("quiet", "value == None"));
    let run = life.review(&["--worktree"]);
    let found = life.output(&run).findings.into_iter().find(|finding| finding.pattern.is_some());
    dismiss(&life, &found.expect("a finding for a pattern").finding_id, reason, &[]);
    let id = unreachable(&life, "b.py", "one");
    dismiss(&life, &id, reason, &[]);
    life.place.revdeck(&["knowledge", "learn"]);
    let pattern = of_form(&life.place, "VARIABLE == None");
    assert_eq!(pattern["failures"], 0, "{pattern}");
    assert!(learned(&life.place, "false_alarm").is_empty());
}

#[test]
fn what_came_of_a_script_without_an_ending_is_counted() {
    let life = Life::new();
    life.write("tool", "#!/usr/bin/env python3\ndef quiet(value):\n    return value == None\n");
    let run = life.review(&["--worktree"]);
    let found = life.output(&run).findings.into_iter().find(|finding| finding.pattern.is_some());
    dismiss(&life, &found.expect("a finding for a pattern").finding_id, "intended", &[]);
    life.place.revdeck(&["knowledge", "learn"]);
    wait_until_gone(&life, &run);
    let pattern = of_form(&life.place, "VARIABLE == None");
    assert_eq!(pattern["failures"], 1, "{pattern}");
    assert!(pattern["last_matched"].is_string(), "{pattern}");
}

#[test]
fn a_finding_that_was_addressed_speaks_against_the_false_alarm() {
    let life = Life::new();
    for name in ["one", "two"] {
        let id = unreachable(&life, &format!("{name}.py"), name);
        dismiss(&life, &id, "intended", &[]);
    }
    unreachable(&life, "three.py", "three");
    life.write("three.py", &plain("three"));
    life.review(&["--worktree"]);
    wait_until_read(&life);
    let alarms = learned(&life.place, "false_alarm");
    let counts: Vec<_> =
        alarms.iter().map(|one| [&one["frequency"], &one["successes"], &one["failures"]].map(Value::as_u64)).collect();
    assert_eq!(counts, [[Some(2), Some(1), Some(1)]], "{alarms:?}");
}

#[test]
fn a_fix_teaches_by_the_lines_it_was_made_for_wherever_the_code_is_by_now() {
    let life = Life::new();
    let shared = "def collect(value, into=[]):\n    into.append(value)\n    return into\n";
    life.write("a.py", shared);
    let run = life.review(&["--worktree"]);
    let id = first(&life.output(&run).findings);
    let made = life.place.revdeck(&["fix", id.as_str(), "--wait", "--format", "json"]);
    let made: Value = serde_json::from_str(&made).expect("JSON");
    // The code moves down the file, and another run finds it there.
    life.write("a.py", &format!("{}\n{shared}", plain("above").repeat(10)));
    life.review(&["--worktree"]);
    life.place.revdeck(&["fix", "apply", made["fix"]["fix_id"].as_str().expect("an id")]);
    life.place.revdeck(&["knowledge", "learn"]);
    let mistakes = learned(&life.place, "mistake");
    assert!(mistakes.iter().any(|pattern| pattern["evidence"] == "applied"), "{mistakes:?}");
}
