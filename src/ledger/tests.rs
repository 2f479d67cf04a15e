//! Tests the ledger with tables and properties. A count of characters replaces tokens: the ledger must hold for any
//! counter.

use proptest::prelude::*;

use super::*;

const NOW: i64 = 1_790_000_000;

fn time_at(seconds: i64) -> Time {
    Time::from_second(seconds).expect("a moment")
}

#[test]
fn an_incomplete_run_says_so_until_a_newer_one_is_whole() {
    let gaps = "139 of 1,168 hunks reviewed (turn limit)".to_owned();
    let half = LedgerRun { incomplete: gaps, surfaced: SurfacedState::Yes, ..run(1, RunStatus::Completed, 0) };
    let view = view(vec![half], Vec::new());
    let ledger = project(&view, 1200).expect("a ledger");
    assert!(
        ledger.text.contains("status=\"completed\" incomplete=\"139 of 1,168 hunks reviewed (turn limit)\""),
        "{}",
        ledger.text
    );
}

fn run(number: u8, status: RunStatus, findings: u32) -> LedgerRun {
    LedgerRun {
        incomplete: String::new(),
        id: format!("ar_01JD3Z8Q6M7S5V2K4T9XWB1C{number:02}").parse().expect("an id"),
        status,
        created_at: time_at(NOW - 540 + i64::from(number)),
        last_activity: time_at(NOW - 38),
        snapshot: "abc1234def".to_owned(),
        freshness: "current".to_owned(),
        scope: "4 files".to_owned(),
        findings,
        surfaced: SurfacedState::No,
        summary: "as it is".to_owned(),
    }
}

fn finding(number: u8, priority: Priority, status: FindingStatus, title: &str) -> LedgerFinding<'static> {
    LedgerFinding {
        id: format!("f_{number:016x}").into(),
        run: format!("ar_01JD3Z8Q6M7S5V2K4T9XWB1C{:02}", 1).into(),
        status,
        priority,
        kind: Kind::Correctness,
        path: "src/a.rs".into(),
        line: u32::from(number),
        title: title.to_owned().into(),
        in_change: false,
        reported_ms: 0,
    }
}

/// Builds a view as the store gives it: findings of p0 and p1 only, and whether there are others.
fn view(runs: Vec<LedgerRun>, findings: Vec<LedgerFinding<'static>>) -> LedgerView<'static> {
    let has_undecided = findings.iter().any(|finding| finding.status.is_undecided());
    let findings = findings.into_iter().filter(|finding| finding.priority <= Priority::P1).collect();
    LedgerView { repo: "code".to_owned(), runs, findings, beyond: 0, has_undecided }
}

/// Circumstances of a reader with a shell and no memory.
fn world(memory: Option<&SessionMemory>) -> LedgerWorld<'_> {
    LedgerWorld {
        now: time_at(NOW),
        format: LedgerFormat::Xml,
        details: DetailsCall::McpTool,
        memory,
        count: &estimate_tokens,
        mask: &str::to_owned,
        told_to_any: &BTreeSet::new,
    }
}

fn project(view: &LedgerView<'_>, cap: usize) -> Option<Ledger> {
    project_ledger(view, &world(None), cap)
}

fn estimate_tokens(text: &str) -> usize {
    text.chars().count() / 4
}

fn ledger_text(view: &LedgerView<'_>) -> String {
    project(view, MAX_LEDGER_TOKENS).map_or(String::new(), |ledger| ledger.text)
}

/// Checks that every line is one element with quoted and escaped attributes. This is stricter than XML, so that a
/// reader needs no parser.
fn is_well_formed(text: &str) -> bool {
    let attributes = |mut rest: &str| {
        while let Some(after) = rest.strip_prefix(' ') {
            let Some((name, value)) = after.split_once("=\"") else { return false };
            let Some((value, tail)) = value.split_once('"') else { return false };
            let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&apos;"];
            let escaped =
                value.split('&').skip(1).all(|part| entities.iter().any(|entity| part.starts_with(&entity[1..])));
            let harmless = !value.contains('<') && !value.chars().any(crate::domain::text::is_unsafe);
            if !name.chars().all(|c| c.is_ascii_lowercase() || c == '_') || !escaped || !harmless {
                return false;
            }
            rest = tail;
        }
        rest.is_empty()
    };
    let lines: Vec<&str> = text.lines().collect();
    let [head, inner @ .., end] = lines.as_slice() else { return false };
    let element = |line: &str| {
        ["active", "latest", "finding", "details"].iter().any(|name| {
            line.strip_prefix("  <")
                .and_then(|line| line.strip_prefix(name))
                .and_then(|line| line.strip_suffix("/>"))
                .is_some_and(attributes)
        })
    };
    *end == "</auto_review_ledger>"
        && text.ends_with('\n')
        && head.strip_prefix("<auto_review_ledger").and_then(|head| head.strip_suffix('>')).is_some_and(attributes)
        && inner.iter().all(|line| element(line))
}

#[test]
fn it_looks_as_documented() {
    let mut latest = run(1, RunStatus::Completed, 3);
    latest.snapshot = "def5678".to_owned();
    let view = view(
        vec![run(2, RunStatus::Reviewing, 0), latest],
        vec![
            finding(7, Priority::P1, FindingStatus::Open, "a \"quoted\" <b> & 'c'"),
            finding(148, Priority::P0, FindingStatus::Unresolved, "first"),
        ],
    );
    insta::assert_snapshot!(ledger_text(&view), @r#"
    <auto_review_ledger version="1" repo="code">
      <active run="ar_01JD3Z8Q6M7S5V2K4T9XWB1C02" phase="reviewing" snapshot="abc1234" runtime="8m" last_activity="38s" freshness="current" scope="4 files"/>
      <latest run="ar_01JD3Z8Q6M7S5V2K4T9XWB1C01" status="completed" snapshot="def5678" findings="3" surfaced="false" summary="as it is"/>
      <finding id="f_0000000000000094" run="ar_01JD3Z8Q6M7S5V2K4T9XWB1C01" p="0" path="src/a.rs" line="148" title="first"/>
      <finding id="f_0000000000000007" run="ar_01JD3Z8Q6M7S5V2K4T9XWB1C01" p="1" path="src/a.rs" line="7" title="a &quot;quoted&quot; &lt;b&gt; &amp; &apos;c&apos;"/>
      <details available="auto_review_details(run_id, finding_id)"/>
    </auto_review_ledger>
    "#);
}

#[test]
fn the_newest_that_ended_may_be_a_replaced_run() {
    let view = view(
        vec![run(1, RunStatus::Completed, 1), run(2, RunStatus::Superseded, 2), run(3, RunStatus::Reviewing, 0)],
        vec![finding(1, Priority::P1, FindingStatus::Open, "t")],
    );
    let text = ledger_text(&view);
    let latest = text.lines().find(|line| line.contains("<latest ")).expect("a latest run");
    assert!(latest.contains("run=\"ar_01JD3Z8Q6M7S5V2K4T9XWB1C02\" status=\"superseded\""), "{latest}");
}

#[test]
fn what_is_said_and_what_is_not() {
    use FindingStatus::*;
    let stale = |status, findings| LedgerRun { freshness: "obsolete".to_owned(), ..run(1, status, findings) };
    let told = |findings| LedgerRun { surfaced: SurfacedState::Yes, ..run(1, RunStatus::Completed, findings) };
    let replaced = |number| LedgerRun { freshness: "superseded".to_owned(), ..run(number, RunStatus::Superseded, 2) };
    let high = |status| vec![finding(1, Priority::P1, status, "t")];
    for (name, view, expected) in [
        ("nothing at all", view(vec![], vec![]), vec![]),
        ("replaced and skipped", view(vec![replaced(1), run(2, RunStatus::Skipped, 0)], vec![]), vec![]),
        ("replaced last, with open findings", view(vec![replaced(2), told(1)], high(Open)), vec!["latest", "finding"]),
        ("a clean run of old code", view(vec![stale(RunStatus::Completed, 0)], vec![]), vec![]),
        ("a clean run, told", view(vec![told(0)], vec![]), vec![]),
        ("a clean run, new", view(vec![run(1, RunStatus::Completed, 0)], vec![]), vec!["latest"]),
        ("all decided", view(vec![told(1)], high(Dismissed)), vec![]),
        ("told and open", view(vec![told(1)], high(Open)), vec!["latest", "finding"]),
        ("failed on old code", view(vec![stale(RunStatus::Failed, 0)], vec![]), vec!["latest"]),
        ("cancelled", view(vec![stale(RunStatus::Cancelled, 0)], vec![]), vec![]),
        ("only low priority", view(vec![told(1)], vec![finding(1, Priority::P2, Open, "t")]), vec!["latest"]),
        ("obsolete finding", view(vec![], high(Obsolete)), vec![]),
        (
            "one active run of many",
            view(
                vec![run(3, RunStatus::Pending, 0), run(1, RunStatus::Reviewing, 0), run(2, RunStatus::Reviewing, 0)],
                vec![],
            ),
            vec!["active"],
        ),
        (
            "one latest run of many",
            view(vec![run(1, RunStatus::Completed, 1), run(2, RunStatus::Failed, 0)], high(Open)),
            vec!["latest", "finding"],
        ),
    ] {
        let text = ledger_text(&view);
        let said: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("  <")?.split(' ').next())
            .filter(|name| *name != "details")
            .collect();
        assert_eq!(said, expected, "{name}: {text}");
        if !text.is_empty() {
            assert!(is_well_formed(&text), "{name}: {text}");
        }
    }
}

#[test]
fn the_active_run_is_the_one_at_work() {
    let view = view(vec![run(3, RunStatus::Pending, 0), run(1, RunStatus::Resolving, 0)], vec![]);
    assert!(ledger_text(&view).contains("phase=\"resolving\""));
}

#[test]
fn a_title_cannot_push_the_others_out() {
    let view = view(
        vec![],
        vec![
            finding(1, Priority::P0, FindingStatus::Open, &"x".repeat(100_000)),
            finding(2, Priority::P1, FindingStatus::Open, "second"),
        ],
    );
    let text = ledger_text(&view);
    assert!(text.contains("second") && text.contains("xxx…"), "{text}");
}

/// Generates texts with everything that could break out of an attribute.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,40}",
        "[<>&\"'/= a]{0,40}",
        "[\u{0}-\u{9f}\u{202e}\u{2028}\u{fffe}\u{ffff}]{0,20}",
        Just("\"/><injected/>".to_owned()),
        Just("x".repeat(5000)),
    ]
}

fn statuses() -> impl Strategy<Value = RunStatus> {
    proptest::sample::select(RunStatus::ALL.to_vec())
}

/// Far more findings than fit: the most urgent ones are named, and all others are counted.
#[test]
fn of_very_many_findings_the_most_urgent_are_named() {
    let finding = |number: u32| LedgerFinding {
        id: format!("f_{number:016x}").into(),
        priority: if number.is_multiple_of(997) { Priority::P0 } else { Priority::P1 },
        line: 100_000 - number,
        ..finding(1, Priority::P1, FindingStatus::Open, "as it is")
    };
    let findings: Vec<_> = (1..20_000).map(finding).collect();
    let ledger = project(&view(Vec::new(), findings), MAX_LEDGER_TOKENS).expect("a ledger");
    let expected: Vec<FindingId> =
        (1..=20).rev().map(|n: u32| format!("f_{:016x}", n * 997).parse().expect("an id")).collect();
    assert!(ledger.surfaced.len() > expected.len());
    assert!(ledger.surfaced.starts_with(&expected), "{:?}", ledger.surfaced);
    assert_eq!(ledger.surfaced.len() + ledger.left_out, 19_999);
}

prop_compose! {
    fn runs()(number in 0u8..90, status in statuses(), findings in 0u32..9, snapshot in hostile(), freshness in hostile(),
              scope in hostile(), summary in hostile(), ago in -100i64..1_000_000) -> LedgerRun {
        LedgerRun { snapshot, freshness, scope, summary, last_activity: time_at(NOW - ago), ..run(number, status, findings) }
    }
}

prop_compose! {
    fn findings()(number in 0u8..90, priority in 0u8..4, status in proptest::sample::select(FindingStatus::ALL.to_vec()),
                  path in hostile(), title in hostile(), line in any::<u32>()) -> LedgerFinding<'static> {
        let priority = Priority::try_from(priority).expect("0 to 3");
        LedgerFinding { path: path.into(), line, ..finding(number, priority, status, &title) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_in_it_is_well_formed_and_below_the_cap(
        repo in hostile(),
        runs in proptest::collection::vec(runs(), 0..5),
        findings in proptest::collection::vec(findings(), 0..30),
        cap in 0usize..1500,
    ) {
        let view = LedgerView { repo, ..view(runs, findings) };
        if let Some(ledger) = project(&view, cap) {
            prop_assert!(is_well_formed(&ledger.text), "{}", ledger.text);
            prop_assert!(ledger.tokens <= cap.min(MAX_LEDGER_TOKENS));
            prop_assert_eq!(ledger.tokens, estimate_tokens(&ledger.text));
            prop_assert_eq!(ledger.text.matches("<finding ").count(), ledger.surfaced.len());
        }
    }

    #[test]
    fn in_a_session_it_is_well_formed_in_both_formats_and_the_second_one_is_a_line(
        repo in hostile(),
        runs in proptest::collection::vec(runs(), 0..5),
        findings in proptest::collection::vec(findings(), 0..30),
        known in proptest::collection::vec(0u8..90, 0..30),
        cap in 0usize..1500,
        format in proptest::sample::select(LedgerFormat::ALL.to_vec()),
    ) {
        let view = LedgerView { repo, ..view(runs, findings) };
        let told = known.into_iter().map(|number| format!("f_{number:016x}")).collect();
        let mut memory = SessionMemory { told, state: String::new() };
        let mut last: Option<Ledger> = None;
        // Each ledger is told to the session, until there is nothing new that fits.
        for _ in 0..40 {
            let world = LedgerWorld { format, ..world(Some(&memory)) };
            let Some(ledger) = project_ledger(&view, &world, cap) else { break };
            prop_assert!(ledger.tokens <= cap.min(MAX_LEDGER_TOKENS));
            prop_assert_eq!(ledger.tokens, estimate_tokens(&ledger.text));
            check_format(&ledger, format)?;
            memory.told.extend(ledger.surfaced.iter().map(ToString::to_string));
            memory.state.clone_from(&ledger.state);
            let is_end = ledger.form == LedgerForm::Unchanged;
            last = Some(ledger);
            if is_end {
                break;
            }
        }
        if let Some(last) = last.filter(|last| last.form == LedgerForm::Unchanged) {
            prop_assert_eq!(last.text.lines().count(), 1, "{}", last.text);
        }
    }

    #[test]
    fn more_room_never_says_less(
        runs in proptest::collection::vec(runs(), 0..4),
        findings in proptest::collection::vec(findings(), 0..20),
        cap in 0usize..1200,
        more in 0usize..600,
    ) {
        let view = view(runs, findings);
        let small = project(&view, cap);
        let large = project(&view, cap + more);
        if let Some(small) = small {
            let large = large.expect("what fits into less fits into more");
            prop_assert!(large.surfaced.starts_with(&small.surfaced));
            for line in small.text.lines() {
                prop_assert!(large.text.contains(line), "{line} is missing in {}", large.text);
            }
        }
    }
}

/// Checks a ledger with a parser of XML, or line by line where it is text.
fn check_format(ledger: &Ledger, format: LedgerFormat) -> Result<(), TestCaseError> {
    let text = &ledger.text;
    prop_assert!(text.ends_with('\n'), "{text:?}");
    prop_assert!(text.lines().all(|line| !line.chars().any(crate::domain::text::is_unsafe)), "{text:?}");
    if format == LedgerFormat::Text {
        // The head, a line for each element, and nothing that looks like one of them.
        let named = ledger.surfaced.iter().filter(|id| text.lines().any(|line| line.ends_with(&format!("{id}]"))));
        prop_assert_eq!(named.count(), ledger.surfaced.len(), "{}", text);
        return Ok(());
    }
    let document = roxmltree::Document::parse(text);
    prop_assert!(document.is_ok(), "{document:?} in {text}");
    let Ok(document) = document else { return Ok(()) };
    let root = document.root_element();
    prop_assert_eq!(root.tag_name().name(), "auto_review_ledger");
    prop_assert_eq!(root.attribute("version"), Some("1"));
    prop_assert_eq!(root.attribute("unchanged").is_some(), ledger.form == LedgerForm::Unchanged);
    let elements: Vec<&str> = root.children().filter(|node| node.is_element()).map(|it| it.tag_name().name()).collect();
    prop_assert!(elements.iter().all(|name| ["active", "latest", "finding", "details"].contains(name)), "{elements:?}");
    let ids: Vec<&str> =
        root.children().filter_map(|node| node.attribute("id")).filter(|id| id.starts_with("f_")).collect();
    prop_assert_eq!(ids, ledger.surfaced.iter().map(FindingId::as_str).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_session_that_knows_everything_gets_one_line_that_a_parser_reads() {
    let view = view(vec![run(1, RunStatus::Completed, 1)], vec![finding(7, Priority::P1, FindingStatus::Open, "<b>")]);
    for format in LedgerFormat::ALL.iter().copied() {
        let mut memory = SessionMemory::default();
        for expected in [LedgerForm::Whole, LedgerForm::Unchanged, LedgerForm::Unchanged] {
            let world = LedgerWorld { format, ..world(Some(&memory)) };
            let ledger = project_ledger(&view, &world, MAX_LEDGER_TOKENS).expect("a ledger");
            assert_eq!(ledger.form, expected, "{format}: {}", ledger.text);
            check_format(&ledger, format).expect("well-formed");
            assert_eq!(ledger.text.lines().count() == 1, expected == LedgerForm::Unchanged, "{}", ledger.text);
            memory.told.extend(ledger.surfaced.iter().map(ToString::to_string));
            memory.state = ledger.state;
        }
    }
}

/// Returns the names of the elements of a ledger, with the numbers of its findings.
fn named(ledger: &Ledger) -> Vec<u64> {
    let number = |id: &FindingId| u64::from_str_radix(&id.as_str()[2..], 16).expect("a number");
    ledger.surfaced.iter().map(number).collect()
}

#[test]
fn danger_comes_before_place_and_place_before_age() {
    let with = |number, priority, kind, in_change, reported_ms| LedgerFinding {
        kind,
        in_change,
        reported_ms,
        ..finding(number, priority, FindingStatus::Open, "t")
    };
    let complex = |number| with(number, Priority::P1, Kind::ComplexFunctions, true, 9_000);
    let mut findings: Vec<_> = (10..19).map(complex).collect();
    findings.extend([
        with(1, Priority::P1, Kind::HardcodedConfiguration, false, 0),
        with(2, Priority::P1, Kind::Security, false, 0),
        with(3, Priority::P1, Kind::Performance, false, 0),
        with(4, Priority::P1, Kind::ComplexFunctions, false, 9_999),
        with(5, Priority::P0, Kind::LongMethod, false, 0),
        with(6, Priority::P1, Kind::Correctness, true, 0),
        with(7, Priority::P1, Kind::ComplexFunctions, true, 9_999),
    ]);
    let ledger = project(&view(Vec::new(), findings), MAX_LEDGER_TOKENS).expect("a ledger");
    assert_eq!(named(&ledger), [5, 6, 2, 1, 3, 7, 10, 11, 12, 13, 14, 15, 16, 17, 18, 4]);
}

/// Delivers the next ledger of a session.
fn deliver(view: &LedgerView<'_>, memory: &mut SessionMemory, cap: usize) -> Option<Ledger> {
    let ledger = project_ledger(view, &world(Some(memory)), cap)?;
    memory.told.extend(ledger.surfaced.iter().map(ToString::to_string));
    memory.state.clone_from(&ledger.state);
    Some(ledger)
}

#[test]
fn what_a_session_knows_is_one_line_until_something_changes() {
    let mut memory = SessionMemory::default();
    let open = |number| finding(number, Priority::P1, FindingStatus::Open, "t");
    let told = LedgerRun { surfaced: SurfacedState::Yes, ..run(1, RunStatus::Completed, 2) };
    let now = view(vec![run(1, RunStatus::Completed, 2)], vec![open(1), open(2)]);
    let first = deliver(&now, &mut memory, 1200).expect("a ledger");
    assert_eq!((first.form, named(&first)), (LedgerForm::Whole, vec![1, 2]));
    let active = LedgerRun { created_at: time_at(NOW - 540), ..run(2, RunStatus::Reviewing, 0) };
    let same = view(vec![active, told.clone()], vec![open(2), open(1)]);
    let second = deliver(&same, &mut memory, 1200).expect("a ledger");
    assert_eq!(second.form, LedgerForm::Unchanged);
    insta::assert_snapshot!(second.text, @r#"<auto_review_ledger version="1" repo="code" unchanged="true" findings="2" active="ar_01JD3Z8Q6M7S5V2K4T9XWB1C02" phase="reviewing" runtime="9m"/>"#);
    // One is gone, then nothing is left.
    let fewer = view(vec![told.clone()], vec![open(2)]);
    let third = deliver(&fewer, &mut memory, 1200).expect("a ledger");
    assert_eq!((third.form, named(&third)), (LedgerForm::Whole, vec![2]));
    assert_eq!(deliver(&fewer, &mut memory, 1200).map(|ledger| ledger.form), Some(LedgerForm::Unchanged));
    assert_eq!(deliver(&view(vec![told.clone()], vec![]), &mut memory, 1200), None);
    // After a compaction, all comes back.
    let mut memory = SessionMemory::default();
    let again = deliver(&fewer, &mut memory, 1200).expect("a ledger");
    assert_eq!((again.form, named(&again)), (LedgerForm::Whole, vec![2]));
    // A result that is no news any more is missed by nobody.
    let clean = view(vec![run(3, RunStatus::Completed, 0)], vec![open(2)]);
    assert_eq!(deliver(&clean, &mut memory, 1200).map(|ledger| ledger.form), Some(LedgerForm::Whole));
    let clean =
        view(vec![LedgerRun { surfaced: SurfacedState::Yes, ..run(3, RunStatus::Completed, 0) }], vec![open(2)]);
    assert_eq!(deliver(&clean, &mut memory, 1200).map(|ledger| ledger.form), Some(LedgerForm::Unchanged));
}

#[test]
fn findings_that_did_not_fit_take_their_turn_and_old_ones_only_if_nobody_was_told() {
    let open =
        |number, in_change| LedgerFinding { in_change, ..finding(number, Priority::P1, FindingStatus::Open, "t") };
    let mut findings: Vec<_> = (1..=20).map(|number| open(number, true)).collect();
    findings.extend((50..=60).map(|number| open(number, false)));
    let now = view(Vec::new(), findings);
    let all_but = |new: u64| {
        move || -> BTreeSet<String> { (50..=60).filter(|n| *n != new).map(|n| format!("f_{n:016x}")).collect() }
    };
    for (told_to_any, expected) in [
        (&BTreeSet::new as &dyn Fn() -> BTreeSet<String>, (1..=20).chain(50..=60).collect::<BTreeSet<u64>>()),
        (&all_but(57), (1..=20).chain([57]).collect()),
    ] {
        let mut memory = SessionMemory::default();
        let (mut told, mut forms) = (BTreeSet::new(), Vec::new());
        for _ in 0..12 {
            let world = LedgerWorld { told_to_any, ..world(Some(&memory)) };
            let ledger = project_ledger(&now, &world, 250).expect("a ledger");
            memory.told.extend(ledger.surfaced.iter().map(ToString::to_string));
            memory.state.clone_from(&ledger.state);
            forms.push(ledger.form);
            told.extend(named(&ledger));
        }
        assert!(told.is_superset(&expected), "{told:?}: {forms:?}");
        // The last one is filled up with what comes first.
        assert!(told.len() <= expected.len() + 4, "{told:?}: {forms:?}");
        assert_eq!(forms.last(), Some(&LedgerForm::Unchanged), "{forms:?}");
    }
}

#[test]
fn a_repository_with_very_many_findings_does_not_cost_a_whole_ledger_at_every_turn() {
    let mut memory = SessionMemory::default();
    let open = |number: u32| LedgerFinding {
        id: format!("f_{number:016x}").into(),
        in_change: true,
        line: number,
        ..finding(1, Priority::P1, FindingStatus::Open, "t")
    };
    let now = view(Vec::new(), (1..=1000).map(open).collect());
    let forms: Vec<LedgerForm> = (0..40).map(|_| deliver(&now, &mut memory, 600).expect("a ledger").form).collect();
    let whole = forms.iter().filter(|form| **form == LedgerForm::Whole).count();
    assert!((4..=12).contains(&whole), "{whole} whole ledgers");
    assert!(forms[whole..].iter().all(|form| *form == LedgerForm::Unchanged), "{forms:?}");
}

#[test]
fn the_call_for_details_is_the_readers_own() {
    let now = view(Vec::new(), vec![finding(1, Priority::P1, FindingStatus::Open, "a & b")]);
    let text = |details, format| {
        let world = LedgerWorld { details, format, ..world(None) };
        project_ledger(&now, &world, 1200).expect("a ledger").text
    };
    assert!(
        text(DetailsCall::Shell, LedgerFormat::Xml).contains("<details available=\"revdeck details RUN FINDING\"/>")
    );
    insta::assert_snapshot!(text(DetailsCall::McpTool, LedgerFormat::Text), @r"
    Automatic review of code
    p1 src/a.rs:1 a & b [ar_01JD3Z8Q6M7S5V2K4T9XWB1C01 f_0000000000000001]
    details: auto_review_details(run_id, finding_id)
    ");
}
