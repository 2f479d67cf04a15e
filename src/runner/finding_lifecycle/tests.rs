//! Settles runs of non-deterministic reviewers in a real repository and store.

mod answers;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use super::*;
use crate::domain::{
    Actor, Confidence, Coverage, FileCoverage, FindingNote, Kind, NoteKind, Panel, PhaseTimings, Priority, RatingWish,
    RunId, RunOutput, Severity, Suggestion, SuppressionReason, Time, TriageAction, Voice,
};
use crate::git::Snapshot;
use crate::review::summarize_run;
use crate::runner::fixture::RunnerFixture;
use crate::runner::{SnoozeWish, StatusChange, rate_findings, set_status, snooze_findings, write_note};

struct LifecycleFixture {
    folder: tempfile::TempDir,
    services: Services,
}

/// A report of a model.
#[derive(Clone, Copy)]
struct ReportFixture<'a> {
    priority: Priority,
    lines: (u32, u32),
    title: &'a str,
    replacement: Option<&'a str>,
    /// It stands on the list of a panel, because revdeck's own search found it.
    is_scanned: bool,
}

fn report(priority: Priority, lines: (u32, u32), title: &str) -> ReportFixture<'_> {
    ReportFixture { priority, lines, title, replacement: None, is_scanned: false }
}

const BODY: &str =
    "def total(items):\n    result = 0\n    for item in items:\n        result += item.price\n    return result\n";

impl LifecycleFixture {
    fn new() -> Self {
        let RunnerFixture { folder, services } = RunnerFixture::new();
        Self { folder, services }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("repo/a.py")
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path(), text).expect("written");
    }

    /// Records a new run over the working tree and concludes it with `status`.
    fn run(&self, reviewer: &str, status: RunStatus, reports: &[ReportFixture<'_>]) -> RunOutput {
        self.run_from(Source::Cli, reviewer, status, reports)
    }

    /// Does the same as [`LifecycleFixture::run`] for a run of a source.
    fn run_from(&self, source: Source, reviewer: &str, status: RunStatus, reports: &[ReportFixture<'_>]) -> RunOutput {
        let Services { repo, store, .. } = &self.services;
        let snapshot = self.take_snapshot();
        let run_id = self.services.ambient.new_run_id();
        repo.keep_snapshot(&run_id, &snapshot.snapshot_commit).expect("kept");
        let record = self.draft(&run_id, &snapshot, source, reviewer);
        store.with_lock(|locked| locked.create_run(&record)).expect("recorded");
        let findings: Vec<Finding> = reports.iter().map(|report| self.finding(&run_id, report)).collect();
        let counts = FindingCounts::from_findings(&findings);
        let coverage = cover_all(&snapshot);
        let mut outcome = ReviewOutcome {
            status,
            summary: summarize_run(status, &counts, &coverage),
            findings,
            unraised: Vec::new(),
            moved_ids: BTreeMap::new(),
            counts,
            coverage,
            notes: Vec::new(),
            rejected: Vec::new(),
            failure: None,
            cancel: None,
            budget_stop: None,
            spent: Default::default(),
        };
        self.services.closer().conclude_run(&run_id, &mut outcome, PhaseTimings::default()).expect("concluded");
        store.output(&run_id).expect("readable").expect("an output")
    }

    fn take_snapshot(&self) -> Snapshot {
        let Services { repo, .. } = &self.services;
        repo.take_snapshot(&crate::domain::Scope::Worktree, &self.services.filter()).expect("a snapshot")
    }

    /// Returns the record of a run over a snapshot that is at work.
    fn draft(&self, run_id: &RunId, snapshot: &Snapshot, source: Source, reviewer: &str) -> RunRecord {
        let now = self.services.ambient.now();
        let triage_bytes = self.services.store.triage_bytes().expect("a length");
        serde_json::from_value(serde_json::json!({
            "run_id": run_id, "status": "reviewing", "created_at": now, "updated_at": now, "source": source,
            "scope": "worktree", "reviewer": reviewer, "model": "m", "branch": snapshot.branch, "attempt": 1,
            "worktree": snapshot.worktree, "base_commit": snapshot.base_commit, "head_commit": snapshot.head_commit,
            "snapshot_commit": snapshot.snapshot_commit, "triage_bytes": triage_bytes,
        }))
        .expect("a record")
    }

    fn finding(&self, run: &RunId, report: &ReportFixture<'_>) -> Finding {
        let text = std::fs::read_to_string(self.path()).expect("a file");
        let (first, last) = report.lines;
        let quoted: Vec<&str> = text.lines().skip(first as usize - 1).take((last + 1 - first) as usize).collect();
        let quoted_code = quoted.join("\n");
        let id = FindingId::from_parts("CORRECTNESS", "a.py", &quoted_code, 0);
        let view = self.services.store.view().expect("a view");
        let first_run = view.finding_index(id.as_str()).map(|index| view.finding(index).first_run.parse());
        let scanned = Voice {
            reviewer: Voice::SECRET_SCAN.to_owned(),
            run_id: run.clone(),
            finding_id: id.clone(),
            priority: report.priority,
            confidence: Confidence::High,
            kind: Kind::Correctness,
            title: report.title.to_owned(),
            explanation: String::new(),
            line_start: first,
            line_end: last,
            held_back: None,
        };
        Finding {
            lowered: None,
            detail_ref: format!("outputs/{run}.json#{id}"),
            finding_id: id,
            first_run_id: first_run.map_or_else(|| run.clone(), |run| run.expect("an id")),
            last_run_id: run.clone(),
            priority: report.priority,
            severity: Severity::Medium,
            confidence: Confidence::High,
            kind: Kind::Correctness,
            title: report.title.to_owned(),
            explanation: "It is.".to_owned(),
            repo_relative_path: "a.py".to_owned(),
            line_start: first,
            line_end: last,
            quoted_code,
            pattern: None,
            suggestion: report.replacement.map(|replacement| Suggestion {
                text: "Write it so.".to_owned(),
                replacement: Some(replacement.to_owned()),
                lines: None,
            }),
            status: FindingStatus::Open,
            reported_at: Time::UNIX_EPOCH,
            voices: report.is_scanned.then_some(scanned).into_iter().collect(),
            steps: Vec::new(),
            disputed: Vec::new(),
            symbol: None,
        }
    }

    fn triage(&self, id: &FindingId, status: FindingStatus) {
        let line = Disposition {
            finding_id: id.clone(),
            status,
            previous: FindingStatus::Open,
            actor: Actor::User,
            reason: "it is meant so".to_owned(),
            at: self.services.ambient.now(),
            action: TriageAction::Set,
            group: "g".to_owned(),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        };
        self.services.store.append_dispositions(&[line]).expect("stored");
    }

    fn status(&self, id: &FindingId) -> FindingStatus {
        self.services.store.status(id).expect("readable")
    }
}

/// Returns the coverage of a review that has read the whole change.
fn cover_all(snapshot: &Snapshot) -> Coverage {
    let files = snapshot.change.files.iter().map(|file| FileCoverage {
        keys: Vec::new(),
        path: file.path.clone(),
        hunks: file.hunks.iter().map(|h| h.new_range()).collect(),
    });
    Coverage { files_total: 1, files_covered: 1, files: files.collect(), ..Coverage::default() }
}

fn titles(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.title.as_str()).collect()
}

fn held_back_titles(output: &RunOutput) -> Vec<(&str, SuppressionReason)> {
    output.held_back.iter().map(|held| (held.finding.title.as_str(), held.because)).collect()
}

#[test]
fn what_a_second_look_finds_where_nothing_changed_is_held_back_unless_it_is_urgent() {
    use Priority::{P1, P2, P3};
    let bench = LifecycleFixture::new();
    bench.write(BODY);
    let known = report(P3, (5, 5), "known");
    let first = bench.run("opus", RunStatus::Completed, &[known]);
    assert_eq!((first.findings.len(), first.held_back.len()), (1, 0), "a first look is never late");
    bench.write(&format!("import decimal\n\n\n{}", BODY.replace("result = 0", "result = decimal.Decimal()")));
    let second = [
        report(P3, (8, 8), "known"),
        report(P2, (6, 6), "an unchanged line"),
        report(P1, (4, 4), "an unchanged line, and urgent"),
        report(P3, (5, 5), "an edited line"),
    ];
    let output = bench.run("opus", RunStatus::Completed, &second);
    assert_eq!(titles(&output.findings), ["known", "an unchanged line, and urgent", "an edited line"]);
    assert_eq!(held_back_titles(&output), [("an unchanged line", SuppressionReason::Late)]);
    let note = output.notes.first().expect("a note");
    let expected = format!("1 finding held back: new and not urgent, about lines that are as run {}", first.run.run_id);
    assert!(note.starts_with(&expected), "{note}");
    assert_eq!((output.run.outcome.finding_counts.total(), output.run.outcome.finding_counts.p2), (3, 0));
    assert!(
        output.run.outcome.summary.starts_with("3 findings in 1 file: 1 p1, 2 p3"),
        "{}",
        output.run.outcome.summary
    );

    // The report is late the third time, too, but not for another reviewer.
    let third = bench.run("opus", RunStatus::Completed, &[second[1]]);
    assert_eq!(held_back_titles(&third), [("an unchanged line", SuppressionReason::Late)]);
    for reviewer in ["haiku", DETERMINISTIC_REVIEWER] {
        let other = LifecycleFixture::new();
        other.write(BODY);
        other.run("opus", RunStatus::Completed, &[]);
        let output = other.run(reviewer, RunStatus::Completed, &[report(P2, (4, 4), "new")]);
        let output = if reviewer == DETERMINISTIC_REVIEWER {
            other.run(reviewer, RunStatus::Completed, &[report(P2, (4, 4), "new"), report(P2, (2, 2), "another")])
        } else {
            output
        };
        assert_eq!(held_back_titles(&output), [], "{reviewer}");
    }
}

#[test]
fn a_review_that_did_not_look_at_the_lines_makes_nothing_late() {
    let bench = LifecycleFixture::new();
    bench.write(BODY);
    bench.run("opus", RunStatus::Cancelled, &[]);
    let output = bench.run("opus", RunStatus::Completed, &[report(Priority::P3, (4, 4), "new")]);
    assert_eq!(
        (titles(&output.findings), held_back_titles(&output)),
        (vec!["new"], vec![]),
        "the first one did not complete"
    );
}

#[test]
fn a_dismissal_holds_in_other_words_and_at_slightly_other_lines() {
    let bench = LifecycleFixture::new();
    bench.write(BODY);
    let first = bench.run("opus", RunStatus::Completed, &[report(Priority::P1, (3, 4), "the sum may overflow")]);
    let id = first.findings[0].finding_id.clone();
    bench.triage(&id, FindingStatus::Dismissed);
    bench.write(&format!("# prices\n{BODY}"));
    let reworded = [report(Priority::P1, (4, 6), "adding floats loses cents")];
    let output = bench.run("opus", RunStatus::Completed, &reworded);
    assert_eq!(
        (titles(&output.findings), held_back_titles(&output)),
        (vec![], vec![("adding floats loses cents", SuppressionReason::Dismissed)])
    );
    assert_eq!(output.held_back[0].finding.finding_id, id);
    assert_eq!(output.held_back[0].reason, "dismissed on 2026-03-04 because it is meant so");
    // At another place, or in substantially changed code, it is a new finding.
    bench.write(&format!("# prices\n{}", BODY.replace("item.price", "item.price * item.count")));
    let output = bench.run("opus", RunStatus::Completed, &[report(Priority::P1, (4, 5), "adding floats loses cents")]);
    assert_eq!((output.findings.len(), output.held_back.len()), (1, 0));
    assert_ne!(output.findings[0].finding_id, id);
}

#[test]
fn a_dismissed_report_that_gave_way_to_a_finding_is_not_opened_when_both_are_reported() {
    let bench = LifecycleFixture::new();
    bench.write(BODY);
    let reports =
        [report(Priority::P1, (2, 2), "the sum may overflow"), report(Priority::P1, (4, 4), "adding loses cents")];
    let first = bench.run("opus", RunStatus::Completed, &reports);
    let [one, listed] = [0, 1].map(|at| first.findings[at].finding_id.clone());
    [&one, &listed].into_iter().for_each(|id| bench.triage(id, FindingStatus::Dismissed));
    let at = bench.services.ambient.now();
    let merge = Disposition::from_merge(&one, FindingStatus::Dismissed, &listed, &first.run.run_id, at);
    bench.services.store.append_dispositions(&[merge]).expect("stored");
    let output = bench.run("opus", RunStatus::Completed, &reports);
    assert_eq!([bench.status(&one), bench.status(&listed)], [FindingStatus::Obsolete, FindingStatus::Dismissed]);
    assert_eq!(titles(&output.findings), Vec::<&str>::new());
    let reasons: Vec<&str> = output.held_back.iter().map(|held| held.reason.as_str()).collect();
    let merged = format!("dismissed, and since 2026-03-04 listed by a panel as {listed}");
    assert_eq!(reasons, [merged.as_str(), "dismissed on 2026-03-04 because it is meant so"]);
}

#[test]
fn only_the_reviewer_that_reported_it_confirms_by_saying_nothing() {
    let bench = LifecycleFixture::new();
    bench.write(BODY);
    let first = bench.run("opus", RunStatus::Completed, &[report(Priority::P1, (2, 2), "not exact")]);
    let id = first.findings[0].finding_id.clone();
    let versions = ["result = 1 - 1", "result = 2 - 2", "result = 3 - 3"].map(|line| BODY.replace("result = 0", line));
    for (text, reviewer, status, expected) in [
        (&versions[0], "haiku", RunStatus::Completed, FindingStatus::Open),
        (&versions[1], "opus", RunStatus::Cancelled, FindingStatus::Open),
        (&versions[2], "opus", RunStatus::Completed, FindingStatus::Addressed),
    ] {
        bench.write(text);
        bench.run(reviewer, status, &[]);
        assert_eq!(bench.status(&id), expected, "{reviewer} {status}");
    }
    // The same place, reported with other words, is the same finding.
    let again = bench.run("opus", RunStatus::Completed, &[report(Priority::P1, (2, 2), "not exact")]);
    assert_ne!(again.findings[0].finding_id, id, "what was confirmed is over; other code is another finding");
    bench.triage(&again.findings[0].finding_id, FindingStatus::Addressed);
    bench.write(&BODY.replace("result = 0", "result = 4 - 4"));
    let last = bench.run("opus", RunStatus::Completed, &[report(Priority::P1, (2, 2), "still not exact")]);
    assert_eq!(last.findings[0].finding_id, again.findings[0].finding_id, "what is only claimed is not");
    assert_eq!(last.findings[0].status, FindingStatus::Unresolved);
}

#[test]
fn only_a_run_of_a_model_confirms_that_a_secret_is_gone_which_only_the_search_found() {
    let bench = LifecycleFixture::new();
    bench.write(BODY);
    let scanned = ReportFixture { is_scanned: true, ..report(Priority::P0, (2, 2), "a key in a comment") };
    let first = bench.run("panel:opus+haiku", RunStatus::Completed, &[scanned]);
    let id = first.findings[0].finding_id.clone();
    let versions = ["result = 1 - 1", "result = 2 - 2"].map(|line| BODY.replace("result = 0", line));
    for (text, source, reviewer, expected) in [
        (BODY, Source::Import, "ruff", FindingStatus::Open),
        (versions[0].as_str(), Source::Cli, DETERMINISTIC_REVIEWER, FindingStatus::Open),
        (versions[1].as_str(), Source::Cli, "haiku", FindingStatus::Addressed),
    ] {
        bench.write(text);
        bench.run_from(source, reviewer, RunStatus::Completed, &[]);
        assert_eq!(bench.status(&id), expected, "{reviewer}");
    }
}

#[test]
fn a_finding_that_asks_for_the_code_before_a_fix_is_a_flip_flop() {
    let bench = LifecycleFixture::new();
    bench.write(BODY);
    let asks = |replacement| ReportFixture { replacement: Some(replacement), ..report(Priority::P1, (2, 2), "not so") };
    let first = bench.run("opus", RunStatus::Completed, &[asks("    result = Decimal()")]);
    let id = first.findings[0].finding_id.clone();
    bench.write(&BODY.replace("result = 0", "result = Decimal()"));
    bench.run("opus", RunStatus::Completed, &[]);
    assert_eq!(bench.status(&id), FindingStatus::Addressed);
    let output = bench.run("opus", RunStatus::Completed, &[asks("    result  =  0\n")]);
    let flip = output.flip_flops.first().expect("a flip-flop");
    assert_eq!((&flip.finding_id, &flip.undoes), (&output.findings[0].finding_id, &id));
    assert!(
        output.findings[0]
            .explanation
            .ends_with(&format!("This asks to undo what {id} asked for, which was addressed."))
    );
    assert!(output.notes.iter().any(|note| note.contains("is a flip-flop")), "{:?}", output.notes);
    let output = bench.run("opus", RunStatus::Completed, &[asks("    result = Fraction()")]);
    assert_eq!(output.flip_flops, [], "another way to write it is none");
}

#[test]
fn what_a_person_says_meanwhile_is_not_overruled() {
    let bench = LifecycleFixture::new();
    bench.write(BODY);
    let first = bench.run(
        "opus",
        RunStatus::Completed,
        &[report(Priority::P1, (2, 2), "one"), report(Priority::P1, (5, 5), "two")],
    );
    let ids: Vec<FindingId> = first.findings.iter().map(|finding| finding.finding_id.clone()).collect();
    let store = &bench.services.store;
    let said = store.latest_dispositions(&ids.iter().map(FindingId::as_str).collect::<HashSet<_>>()).expect("readable");
    bench.triage(&ids[0], FindingStatus::Dismissed);
    let evidence = Evidence {
        seen: ReviewObservation::NotRaised,
        run: &first.run.run_id,
        order: ClaimOrder::ClaimFirst,
        at: Time::UNIX_EPOCH,
    };
    let lines = ids.iter().filter_map(|id| policy::next_status(id, FindingState::Open, &evidence)).collect();
    let stored = store.append_unless_newer(lines, &said).expect("stored");
    assert_eq!(stored.len(), 1);
    assert_eq!((bench.status(&ids[0]), bench.status(&ids[1])), (FindingStatus::Dismissed, FindingStatus::Addressed));
}

#[test]
fn settling_the_findings_is_measured() {
    let bench = LifecycleFixture::new();
    bench.write("a\nb\n");
    let timings = bench.run("m", RunStatus::Completed, &[]).run.usage.phase_timings;
    // The clock moves by a second at each reading, and settling reads it at its begin and its end.
    assert!(timings.resolve_ms >= 1_000, "{timings:?}");
    assert_eq!((timings.resolve_ms % 1_000, timings.review_ms), (0, 0));
}

#[test]
fn replacements_are_put_into_the_text_as_they_would_be() {
    let bench = LifecycleFixture::new();
    bench.write("a\nb\nc");
    let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A".parse().expect("an id");
    for (lines, replacement, expected) in [
        ((2, 2), "B", Some("a\nB\nc")),
        ((2, 2), "B\nB\n", Some("a\nB\nB\nc")),
        ((1, 2), "", Some("c")),
        ((3, 3), "C", Some("a\nb\nC\n")),
        ((4, 4), "D", None),
    ] {
        let report = ReportFixture { replacement: Some(replacement), ..report(Priority::P1, lines, "x") };
        let text = replace_lines(b"a\nb\nc", &bench.finding(&run, &report));
        assert_eq!(text.as_deref(), expected.map(str::as_bytes), "{lines:?} {replacement:?}");
    }
}

#[test]
fn the_last_reports_before_a_panel_are_found_together() {
    let fixture = LifecycleFixture::new();
    fixture.write(BODY);
    let both = [report(Priority::P2, (3, 4), "slow"), report(Priority::P2, (2, 2), "a bad start")];
    let first = fixture.run("one", RunStatus::Completed, &both);
    fixture.run("two", RunStatus::Completed, &both[..1]);
    let own = fixture.run("three", RunStatus::Completed, &both);
    let ids: Vec<FindingId> = first.findings.iter().map(|finding| finding.finding_id.clone()).collect();
    let unknown = FindingId::from_parts("CORRECTNESS", "b.py", "gone", 0);
    let view = fixture.services.store.view().expect("a view");
    let asked = ids.iter().chain([&unknown]).collect();
    let own = HashSet::from([own.run.run_id.as_str()]);
    let found = fixture.services.find_earlier_reports(&view, &own, &asked).expect("readable");
    assert_eq!(found.len(), 2);
    for finding in &first.findings {
        let expected = if finding.title == "slow" { &["one", "two"][..] } else { &["one"] };
        let before = &found[&finding.finding_id];
        let reporters: Vec<&str> = before.reporters.iter().map(String::as_str).collect();
        assert_eq!((before.quoted_code.as_str(), reporters.as_slice()), (finding.quoted_code.as_str(), expected));
    }
}

#[test]
fn a_report_that_two_panels_have_merged_gets_the_id_of_the_last_list() {
    let life = LifecycleFixture::new();
    life.write(BODY);
    let titles = ["one", "two", "three"];
    let reports = titles.map(|title| {
        let line = 2 + titles.iter().position(|one| *one == title).expect("a title") as u32;
        report(Priority::P1, (line, line), title)
    });
    let output = life.run("m", RunStatus::Completed, &reports);
    let [one, two, three] = titles.map(|title| {
        let found = output.findings.iter().find(|finding| finding.title == title);
        found.expect("raised").clone()
    });
    let merge = |report: &Finding, listed: &Finding| {
        let (run, at) = (&output.run.run_id, life.services.ambient.now());
        Disposition::from_merge(&report.finding_id, FindingStatus::Open, &listed.finding_id, run, at)
    };
    let lines = vec![merge(&one, &two), merge(&two, &three)];
    life.services.store.decide(|_| Ok::<_, crate::store::StoreError>(lines)).expect("stored");
    let settlement =
        FindingSettlement::new(&life.services, &output.run, RunStatus::Completed, ReviewExtent::Whole).expect("a run");
    let follow = |mut findings: Vec<Finding>| {
        settlement.follow_merged(&mut findings).expect("readable");
        findings.into_iter().map(|finding| finding.finding_id).collect::<Vec<_>>()
    };
    let ids = [&one, &three].map(|finding| finding.finding_id.clone());
    assert_eq!(follow(vec![one.clone()]), ids[1..]);
    assert_eq!(follow(vec![one, three]), ids, "who reports both has told them apart");
}

#[test]
fn what_people_decide_while_a_panel_settles_holds_for_the_finding_of_its_list() {
    let life = LifecycleFixture::new();
    life.write(BODY);
    let both = [report(Priority::P3, (2, 2), "one"), report(Priority::P3, (3, 3), "two")];
    let output = life.run("m", RunStatus::Completed, &both);
    let [report, listed] = [0, 1].map(|at: usize| output.findings[at].finding_id.clone());
    let mut run = output.run.clone();
    run.links.panel = Some(Panel { name: "all".to_owned(), ..Panel::default() });
    let settlement =
        FindingSettlement::new(&life.services, &run, RunStatus::Completed, ReviewExtent::Whole).expect("a run");
    let Services { store, ambient, .. } = &life.services;
    // The panel has read the log up to here.
    let end = store.triage_bytes().expect("a length");
    let dismissal = StatusChange { actor: Actor::User, status: FindingStatus::Dismissed, reason: "intended" };
    set_status((None, store), ambient, std::slice::from_ref(&report), dismissal).expect("allowed");
    let merged = [(report.clone(), listed.clone())];
    for _ in 0..2 {
        settlement.follow_late_decisions(&merged, &merged, &Coverage::default(), end).expect("stored");
    }
    let log = store.triage_log().expect("readable");
    let lines: Vec<(&FindingId, FindingStatus, &str)> =
        log.iter().map(|line| (&line.finding_id, line.status, line.group.as_str())).collect();
    let group = lines[0].2;
    assert_eq!(lines, [(&report, FindingStatus::Dismissed, group), (&listed, FindingStatus::Dismissed, group)]);
    assert_eq!(log[1].run_id.as_ref(), Some(&run.run_id), "the list has taken it over");
    // A decision about the finding itself is the last one, so that the report gives way.
    let end = store.triage_bytes().expect("a length");
    let reopening = StatusChange { actor: Actor::User, status: FindingStatus::Open, reason: "" };
    set_status((None, store), ambient, std::slice::from_ref(&listed), reopening).expect("allowed");
    settlement.follow_late_decisions(&merged, &merged, &Coverage::default(), end).expect("stored");
    let statuses = [&report, &listed].map(|id| store.status(id).expect("readable"));
    assert_eq!(statuses, [FindingStatus::Obsolete, FindingStatus::Open]);
}

#[test]
fn what_is_written_about_a_merged_report_stands_with_the_finding_of_the_list() {
    let life = LifecycleFixture::new();
    life.write(BODY);
    let both = [report(Priority::P3, (2, 2), "one"), report(Priority::P3, (3, 3), "two")];
    let output = life.run("m", RunStatus::Completed, &both);
    assert_eq!(output.findings.len(), 2, "{:#?}", output.findings);
    let Services { repo, store, ambient, .. } = &life.services;
    let [report, listed] = [0, 1].map(|at: usize| output.findings[at].finding_id.clone());
    let merge = Disposition::from_merge(&report, FindingStatus::Open, &listed, &output.run.run_id, ambient.now());
    store.decide(|_| Ok::<_, crate::store::StoreError>(vec![merge])).expect("stored");
    let both = [report.clone(), listed.clone()];
    let day = Time::from_second(ambient.now().as_second() + 86_400).expect("a time");
    let snoozed = snooze_findings((repo, store), ambient, &both, SnoozeWish::Until(day), Actor::User);
    let snoozed: Vec<FindingId> = snoozed.expect("allowed").into_iter().map(|line| line.finding_id).collect();
    assert_eq!(snoozed, std::slice::from_ref(&listed));
    let wish = RatingWish::parse("p1").expect("a rating");
    let rated = rate_findings(store, ambient, &both, wish, Actor::User).expect("allowed");
    assert_eq!(rated.into_iter().map(|line| line.finding_id).collect::<Vec<_>>(), std::slice::from_ref(&listed));
    for (kind, actor) in [(NoteKind::Dispute, Actor::Assistant), (NoteKind::Remark, Actor::User)] {
        let note = FindingNote { finding_id: report.clone(), kind, actor, text: "no".to_owned(), at: ambient.now() };
        let (note, is_new) = write_note(store, note).expect("stored");
        assert_eq!((&note.finding_id, is_new), (&listed, true));
    }
    assert_eq!(store.notes(&listed).expect("readable").len(), 2);
    assert_eq!(store.notes(&report).expect("readable"), []);
}
