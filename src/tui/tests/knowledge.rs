//! Tests the knowledge view: opening, reading, leaving, requests of its keys, screens.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rstest::rstest;
use unicode_width::UnicodeWidthStr;

use super::looks::{SIZES, assert_looks, assert_looks_at_all_sizes};
use super::mouse::{click, find};
use super::support::*;
use crate::domain::{Kind, MuteAction, Time};
use crate::knowledge::form::Form;
use crate::knowledge::pattern::{
    EditKind, MonthlyOutcomes, Pattern, PatternCount, PatternEvidence, PatternOrigin, PatternStance,
};
use crate::knowledge::rank;
use crate::syntax::language::Language;
use crate::tui::app::{App, NoticeLevel};
use crate::tui::message::{AppCommand, AppMessage};
use crate::tui::views::ViewReply;
use crate::tui::views::ViewRequest;
use crate::tui::views::knowledge::KnowledgeView;
use crate::tui::views::knowledge::{
    ExportOverwrite, KnowledgeOrder, KnowledgeOutcome, KnowledgePane, LanguagePatterns, LearningMode, PatternLibrary,
    PatternLocation, RankedPattern,
};
use crate::tui::views::prompt::PromptView;

const DAY: i64 = 86_400_000;

fn time_at_day(days: i64) -> Time {
    Time::from_millisecond(NOW - days * DAY).unwrap_or_default()
}

/// Builds a pattern with forms, times seen, successes and failures.
fn pattern(
    language: Language,
    edit: EditKind,
    (broken, fixed): (&str, &str),
    (frequency, successes, failures): (u32, u32, u32),
) -> Pattern {
    let [broken, fixed]: [Form; 2] = [broken, fixed].map(|text| text.parse().expect("a form"));
    let (stance, kind) = match fixed.is_empty() && edit == EditKind::Other {
        true => (PatternStance::FalseAlarm, Kind::MagicNumbers),
        false => (PatternStance::Mistake, edit.default_kind()),
    };
    let counted = PatternCount { frequency, successes, failures };
    Pattern {
        evidence: if stance == PatternStance::FalseAlarm {
            PatternEvidence::Dismissed
        } else {
            PatternEvidence::Addressed
        },
        counts: BTreeMap::from([("m_1".to_owned(), counted)]),
        here: counted,
        first_seen: time_at_day(200),
        last_seen: time_at_day(2),
        last_matched: (successes > 0).then(|| time_at_day(1)),
        ..Pattern::from_forms(language.name(), stance, edit, kind, &broken, &fixed)
    }
}

fn shelf(language: Language, patterns: Vec<Pattern>) -> LanguagePatterns {
    let now = time_at_day(0);
    let known = |pattern: Pattern| RankedPattern { standing: rank::assess_pattern(&pattern, now), similar: 0, pattern };
    LanguagePatterns { language, patterns: patterns.into_iter().map(known).collect(), lowered: Vec::new() }
}

/// Builds a library of three languages with every origin and both stances.
pub(super) fn library() -> PatternLibrary {
    let month = |successes, failures| MonthlyOutcomes { successes, failures };
    let python = Language::Python;
    let mut none = pattern(python, EditKind::WrongOperator, ("VARIABLE == None", "VARIABLE is None"), (12, 8, 2));
    none.months = BTreeMap::from([
        ("2025-09".to_owned(), month(1, 1)),
        ("2025-10".to_owned(), month(1, 1)),
        ("2025-12".to_owned(), month(2, 0)),
        ("2026-01".to_owned(), month(0, 0)),
        ("2026-02".to_owned(), month(3, 0)),
        ("2026-03".to_owned(), month(1, 0)),
    ]);
    none.related = vec![Kind::DeadCode, Kind::MissingErrorHandling];
    none.counts.insert("m_2".to_owned(), PatternCount { frequency: 3, successes: 0, failures: 0 });
    let mut quiet = pattern(python, EditKind::Other, ("VARIABLE = NUMBER", ""), (6, 4, 0));
    quiet.muted = true;
    let mut open = pattern(
        python,
        EditKind::MissingErrorHandling,
        ("VARIABLE = open ( STRING ) ; return VARIABLE . read ( )", "with open ( STRING ) as VARIABLE : BODY"),
        (3, 0, 0),
    );
    open.origin = PatternOrigin::Imported;
    open.evidence = PatternEvidence::History;
    let rust = Language::Rust;
    let mut unwrap = pattern(
        rust,
        EditKind::MissingErrorHandling,
        ("VARIABLE . FUNCTION_NAME ( ) . unwrap ( )", "VARIABLE . FUNCTION_NAME ( ) ?"),
        (4, 1, 3),
    );
    unwrap.origin = PatternOrigin::Base;
    unwrap.evidence = PatternEvidence::Curated;
    unwrap.first_seen = Time::UNIX_EPOCH;
    unwrap.last_seen = Time::UNIX_EPOCH;
    let needless = pattern(rust, EditKind::NeedlessStatement, ("FUNCTION_NAME ( VARIABLE ) ;", ""), (2, 0, 0));
    let go = pattern(
        Language::Go,
        EditKind::MissingCheck,
        ("VARIABLE . FUNCTION_NAME ( )", "if VARIABLE != nil BODY"),
        (41_000, 120, 4),
    );
    let place = PatternLocation { path: "billing/total.py".to_owned(), line: 31, at: time_at_day(1) };
    PatternLibrary {
        locations: HashMap::from([(none.id.clone(), place)]),
        languages: vec![
            shelf(rust, vec![unwrap, needless]),
            shelf(python, vec![none, quiet, open]),
            shelf(Language::Go, vec![go]),
        ],
        ..PatternLibrary::default()
    }
}

pub(super) fn open_knowledge(columns: u16, rows: u16, library: PatternLibrary) -> App {
    let mut app = showing(columns, rows, view());
    press(&mut app, "K");
    send(&mut app, AppMessage::View(ViewReply::Knowledge(Arc::new(library))));
    app
}

fn orders(commands: &[AppCommand]) -> Vec<&KnowledgeOrder> {
    commands
        .iter()
        .filter_map(|command| match command {
            AppCommand::View(ViewRequest::Knowledge(order)) => Some(order),
            _ => None,
        })
        .collect()
}

/// Returns the description of the selected pattern.
fn chosen(app: &App) -> String {
    let chosen = app.views.find::<KnowledgeView>().and_then(|view| view.selected_pattern());
    chosen.map_or_else(String::new, |(_, known)| known.pattern.description.clone())
}

fn is_open(app: &App) -> bool {
    app.views.find::<KnowledgeView>().is_some()
}

#[test]
fn what_is_known_at_all_sizes() {
    for (columns, rows) in SIZES {
        let mut app = open_knowledge(columns, rows, library());
        // Past the language to the pattern with the most facts.
        press(&mut app, "] t j");
        assert_looks("knowledge", &mut app);
        press(&mut app, "Tab G");
        assert_looks("knowledge-page", &mut app);
        press(&mut app, "Tab k");
        assert_looks("knowledge-language", &mut app);
    }
}

#[test]
fn the_names_of_the_columns_end_where_their_figures_end() {
    for columns in [44, 60, 66, 70, 80, 100, 160] {
        let app = open_knowledge(columns, 24, library());
        let shown = screen(&app);
        let ends = |line: &str, texts: [&str; 2]| -> [usize; 2] {
            let line = shown.lines().find(|shown| shown.contains(line)).unwrap_or_else(|| panic!("{line}: {shown}"));
            texts.map(|text| {
                let at = line.find(text).unwrap_or_else(|| panic!("{columns}: {text:?} in {shown}"));
                line[..at + text.len()].chars().count()
            })
        };
        assert_eq!(ends("Knowledge  ", [" seen ", " success"]), ends(" 80 %", [" 12 ", " 80 %"]), "{columns}: {shown}");
    }
}

#[test]
fn its_prompts_fit_every_screen() {
    for (name, keys) in [("knowledge-filter", "f"), ("knowledge-export", "e")] {
        assert_looks_at_all_sizes(name, |columns, rows| {
            let mut app = open_knowledge(columns, rows, library());
            press(&mut app, keys);
            assert!(app.views.front_as::<PromptView>().is_some(), "{name}");
            app
        });
    }
}

#[test]
fn the_page_of_a_language_says_which_kinds_are_lowered() {
    let mut library = library();
    library.languages[0].lowered = vec![(Kind::LongMethod, 7), (Kind::TightCoupling, 5)];
    let mut app = open_knowledge(150, 40, library);
    press(&mut app, "k");
    let shown = screen(&app);
    assert!(shown.contains("always dismissed: long method (7 times)"), "{shown}");
    assert!(shown.contains("coupling (5 times)"), "{shown}");
}

#[test]
fn nothing_known_says_what_knowledge_is_and_how_it_grows() {
    assert_looks_at_all_sizes("knowledge-empty", |columns, rows| {
        let library = PatternLibrary { learning: LearningMode::Off, ..PatternLibrary::default() };
        open_knowledge(columns, rows, library)
    });
    let app = open_knowledge(80, 24, PatternLibrary::default());
    assert!(!screen(&app).contains("switched off") && screen(&app).contains("knowledge learn --history 500"));
}

#[test]
fn it_is_read_when_it_is_opened_and_when_somebody_asks() {
    let mut app = showing(160, 48, view());
    assert_eq!(orders(&press(&mut app, "K")), [&KnowledgeOrder::Read]);
    assert!(screen(&app).contains("reading"));
    let known = Arc::new(library());
    send(&mut app, AppMessage::View(ViewReply::Knowledge(Arc::clone(&known))));
    press(&mut app, "] t j");
    let before = screen(&app);
    assert_eq!(orders(&press(&mut app, "r")), [&KnowledgeOrder::Read]);
    send(&mut app, AppMessage::View(ViewReply::Knowledge(known)));
    assert_eq!(screen(&app), before, "the same patterns draw nothing new");
    // Another process changed the patterns: the notice about a local change stays.
    app.show_notice(NoticeLevel::Success, "muted");
    assert_eq!(orders(&send(&mut app, AppMessage::View(ViewReply::KnowledgeChanged))), [&KnowledgeOrder::Read]);
    send(&mut app, AppMessage::View(ViewReply::Knowledge(Arc::new(library()))));
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text == "muted"));
    // Replies after the view was closed are ignored.
    press(&mut app, "Esc");
    send(&mut app, AppMessage::View(ViewReply::Knowledge(Arc::default())));
    assert!(!is_open(&app));
    assert!(orders(&send(&mut app, AppMessage::View(ViewReply::KnowledgeChanged))).is_empty());
}

#[test]
fn every_key_that_leaves_it_leaves_it_and_the_panes_are_as_before() {
    let mut app = showing(160, 48, view());
    let before = screen(&app);
    for key in ["Esc", "q", "K"] {
        press(&mut app, "K");
        send(&mut app, AppMessage::View(ViewReply::Knowledge(Arc::new(library()))));
        assert_ne!(screen(&app), before);
        assert!(press(&mut app, key).is_empty(), "{key} does nothing else");
        assert!(!is_open(&app), "{key}");
        app.notice = None;
        assert_eq!(screen(&app), before);
    }
}

#[test]
fn a_click_selects_a_row_and_a_double_click_opens_it() {
    for (columns, rows) in SIZES {
        let mut app = open_knowledge(columns, rows, library());
        let (x, y) = find(&app, "magic number");
        click(&mut app, x, y);
        assert!(chosen(&app).contains("VARIABLE = NUMBER"), "{columns}x{rows}: {}", chosen(&app));
        let view = |app: &App| app.views.find::<KnowledgeView>().cloned().expect("the view");
        assert_eq!(view(&app).focus, KnowledgePane::List, "{columns}x{rows}");
        click(&mut app, x, y);
        assert_eq!(view(&app).focus, KnowledgePane::Page, "{columns}x{rows}");
        // A language is folded by a double click.
        let (x, y) = find(&app, "python  3");
        click(&mut app, x, y);
        assert_eq!((view(&app).focus, chosen(&app).as_str()), (KnowledgePane::List, ""), "{columns}x{rows}");
        assert!(view(&app).folded.is_empty(), "{columns}x{rows}");
        click(&mut app, x, y);
        assert!(view(&app).folded.contains(&Language::Python), "{columns}x{rows}");
    }
}

#[test]
fn one_goes_up_and_down_from_language_to_language_and_into_the_page() {
    let mut app = open_knowledge(160, 48, library());
    assert!(chosen(&app).contains("unwrap"), "the most useful pattern is selected first");
    press(&mut app, "j");
    assert!(chosen(&app).contains("was taken out"));
    press(&mut app, "] t");
    assert_eq!(chosen(&app), "", "a language");
    press(&mut app, "] t j");
    assert!(chosen(&app).contains("missing check"));
    press(&mut app, "[ t [ t j");
    assert!(chosen(&app).contains("is None"));
    press(&mut app, "G");
    assert!(chosen(&app).contains("became"));
    press(&mut app, "g j");
    assert!(chosen(&app).contains("unwrap"));
    let side = |app: &App| app.views.find::<KnowledgeView>().map(|view| view.focus);
    for (key, expected) in [
        ("Tab", KnowledgePane::Page),
        ("Tab", KnowledgePane::List),
        ("Enter", KnowledgePane::Page),
        ("h", KnowledgePane::List),
        ("l", KnowledgePane::Page),
    ] {
        press(&mut app, key);
        assert_eq!(side(&app), Some(expected), "{key}");
    }
    press(&mut app, "Esc");
    assert!(is_open(&app) && side(&app) == Some(KnowledgePane::List), "one step back");
}

#[test]
fn a_page_longer_than_the_screen_scrolls_and_another_one_begins_at_its_top() {
    let mut app = open_knowledge(80, 24, library());
    let scroll = |app: &App| app.views.find::<KnowledgeView>().map_or(usize::MAX, |view| view.scroll);
    press(&mut app, "] t j Tab G");
    let end = scroll(&app);
    assert!(end > 0);
    press(&mut app, "j");
    assert_eq!(scroll(&app), end, "there is nothing below the end");
    press(&mut app, "k g");
    assert_eq!(scroll(&app), 0);
    press(&mut app, "Ctrl-d Tab");
    assert!(scroll(&app) > 0, "the page stays where it is");
    press(&mut app, "j");
    assert_eq!(scroll(&app), 0);
}

#[test]
fn a_language_folds_to_one_row() {
    let mut app = open_knowledge(160, 48, library());
    let rows = |app: &App| app.views.find::<KnowledgeView>().map_or(0, |view| view.rows.len());
    let all = rows(&app);
    press(&mut app, "j Space");
    assert_eq!((rows(&app), chosen(&app).as_str()), (all - 2, ""), "its own row is selected");
    press(&mut app, "Space");
    assert_eq!(rows(&app), all);
}

#[test]
fn words_narrow_the_list_while_they_are_typed_and_go_again() {
    let mut app = open_knowledge(160, 48, library());
    press(&mut app, "] t j");
    let selected = chosen(&app);
    let rows = |app: &App| app.views.find::<KnowledgeView>().map_or(0, |view| view.rows.len());
    let all = rows(&app);
    for (typed, expected) in [
        ("python", 4),
        ("PYTHON mistake", 3),
        ("false alarm", 2),
        ("muted", 2),
        ("imported", 2),
        ("base", 2),
        ("nothing like it", 0),
    ] {
        press(&mut app, "/");
        type_text(&mut app, typed);
        assert_eq!(rows(&app), expected, "{typed}");
        press(&mut app, "Esc");
        assert_eq!((rows(&app), chosen(&app)), (all, chosen(&app)), "{typed} is taken back");
    }
    press(&mut app, "/");
    type_text(&mut app, "is none");
    assert_eq!(chosen(&app), selected, "what is listed still stays selected");
    press(&mut app, "Enter");
    assert_eq!(rows(&app), 2);
    assert!(screen(&app).contains("is none"), "the filter is told");
    press(&mut app, "Esc");
    assert_eq!(rows(&app), all);
    assert!(is_open(&app));
}

#[test]
fn muting_shows_after_it_is_stored() {
    let mut app = open_knowledge(160, 48, library());
    press(&mut app, "] t j");
    let commands = press(&mut app, "m");
    let [KnowledgeOrder::Mute { language: Language::Python, pattern, action: MuteAction::Mute }] =
        orders(&commands)[..]
    else {
        panic!("{commands:?}")
    };
    assert!(screen(&app).contains("used"), "nothing is stored yet");
    let mut after = library();
    let known = after.languages.iter_mut().flat_map(|shelf| &mut shelf.patterns);
    known.filter(|known| known.pattern.id == *pattern).for_each(|known| known.pattern.muted = true);
    // A less useful pattern moves in the list and stays selected.
    after.languages[1].patterns.rotate_left(1);
    let selected = chosen(&app);
    send(&mut app, AppMessage::View(ViewReply::Knowledge(Arc::new(after))));
    send(
        &mut app,
        AppMessage::View(ViewReply::KnowledgeFinished(KnowledgeOutcome::Done(
            "muted: it is not used, and not exported".into(),
        ))),
    );
    assert_eq!(chosen(&app), selected);
    let text = screen(&app);
    assert!(text.contains("muted: it is not used") && text.contains("unmute"), "{text}");
    let commands = press(&mut app, "m");
    assert!(matches!(orders(&commands)[..], [KnowledgeOrder::Mute { action: MuteAction::Unmute, .. }]), "{commands:?}");
}

#[rstest]
#[case("D")]
#[case("x")]
fn forgetting_asks_first(#[case] key: &str) {
    let mut app = open_knowledge(80, 24, library());
    press(&mut app, "j");
    assert!(orders(&press(&mut app, key)).is_empty());
    assert!(screen(&app).contains("for good"), "{}", screen(&app));
    assert!(orders(&press(&mut app, "n")).is_empty());
    assert!(is_open(&app) && !app.views.has_window(), "no is back to where one was");
    press(&mut app, key);
    let commands = press(&mut app, "y");
    let [KnowledgeOrder::Forget { language: Language::Rust, .. }] = orders(&commands)[..] else {
        panic!("{commands:?}")
    };
    let mut after = library();
    after.languages[0].patterns.remove(1);
    send(&mut app, AppMessage::View(ViewReply::Knowledge(Arc::new(after))));
    send(&mut app, AppMessage::View(ViewReply::KnowledgeFinished(KnowledgeOutcome::Done("forgotten".into()))));
    assert!(screen(&app).contains("5 patterns"), "{}", screen(&app));
}

#[test]
fn a_language_can_be_neither_muted_nor_forgotten() {
    let mut app = open_knowledge(80, 24, library());
    for key in ["m", "D"] {
        assert!(press(&mut app, &format!("g {key}")).is_empty());
        assert!(screen(&app).contains("no pattern is selected"), "{key}");
        assert!(!app.views.has_window());
    }
}

#[test]
fn an_export_asks_where_to_and_before_it_replaces() {
    let mut app = open_knowledge(160, 48, library());
    press(&mut app, "e");
    let Some(PromptView { line, .. }) = app.views.front_as() else { panic!("a prompt") };
    assert_eq!(line.text(), "~/revdeck-knowledge.json");
    press(&mut app, "Ctrl-u");
    type_text(&mut app, "/tmp/team file.json");
    let commands = press(&mut app, "Enter");
    let path = "/tmp/team file.json".to_owned();
    assert_eq!(orders(&commands), [&KnowledgeOrder::Export { path: path.clone(), existing: ExportOverwrite::Keep }]);
    send(&mut app, AppMessage::View(ViewReply::KnowledgeFinished(KnowledgeOutcome::Exists(path.clone()))));
    assert!(screen(&app).contains("There is a file /tmp/team file.json. Replace it?"), "{}", screen(&app));
    let commands = press(&mut app, "Enter");
    assert_eq!(orders(&commands), [&KnowledgeOrder::Export { path, existing: ExportOverwrite::Replace }]);
    send(
        &mut app,
        AppMessage::View(ViewReply::KnowledgeFinished(KnowledgeOutcome::Done(
            "6 patterns in /tmp/team file.json".into(),
        ))),
    );
    assert!(screen(&app).contains("6 patterns in /tmp/team file.json"));
    // A confirmation that is already open is not replaced.
    press(&mut app, "j D");
    send(
        &mut app,
        AppMessage::View(ViewReply::KnowledgeFinished(KnowledgeOutcome::Exists("/tmp/team file.json".into()))),
    );
    assert!(screen(&app).contains("Forget this pattern for good?") && screen(&app).contains("export again"));
    press(&mut app, "Esc");
    // An empty path requests nothing.
    assert!(press(&mut app, "e Ctrl-u Enter").is_empty());
    assert!(press(&mut app, "e Esc").is_empty() && is_open(&app));
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_there() {
    let library = PatternLibrary { troubles: vec!["cannot read /h/go_accumulated.json".into()], ..library() };
    let text = screen(&open_knowledge(160, 48, library));
    assert!(text.contains("cannot read /h/go_accumulated.json") && text.contains("unwrap"), "{text}");
}

#[test]
fn who_has_learned_nothing_yet_is_told_how_to() {
    let mut only = library();
    only.languages = vec![only.languages.remove(0)];
    only.languages[0].patterns.truncate(1);
    let known = &mut only.languages[0].patterns[0];
    known.pattern.counts =
        BTreeMap::from([("base".to_owned(), PatternCount { frequency: 1, successes: 0, failures: 0 })]);
    let text = screen(&open_knowledge(160, 48, only));
    assert!(text.contains("revdeck knowledge learn --history 500"), "{text}");
    assert!(!screen(&open_knowledge(160, 48, library())).contains("--history"));
}

#[test]
fn learning_that_is_off_is_said() {
    let text = screen(&open_knowledge(160, 48, PatternLibrary { learning: LearningMode::Off, ..library() }));
    assert!(text.contains("learning is off") && text.contains("switched off"), "{text}");
}

#[test]
fn help_is_in_front_of_it_and_names_its_keys() {
    let mut app = open_knowledge(160, 60, library());
    press(&mut app, "?");
    let text = screen(&app);
    for said in ["learned patterns", "mute or unmute the pattern", "delete the pattern", "export patterns"] {
        assert!(text.contains(said), "{said} in {text}");
    }
    press(&mut app, "Esc");
    assert!(is_open(&app) && !app.views.has_window());
}

#[test]
fn hostile_patterns_reach_no_terminal_and_break_no_line() {
    let mut library = library();
    let nasty = "\u{1b}[2J漢字かな交じり文\u{202e}\r\n \u{7} ".repeat(40);
    for known in library.languages.iter_mut().flat_map(|shelf| &mut shelf.patterns) {
        known.pattern.description.clone_from(&nasty);
        known.pattern.instruction.clone_from(&nasty);
        known.pattern.broken.clone_from(&nasty);
        known.pattern.fixed = "x".repeat(5_000);
        known.pattern.language.clone_from(&nasty);
        known.pattern.counts.clear();
        known
            .pattern
            .counts
            .insert(nasty.clone(), PatternCount { frequency: u32::MAX, successes: u32::MAX, failures: u32::MAX });
        let month = MonthlyOutcomes { successes: u32::MAX, failures: u32::MAX };
        known.pattern.months =
            ["0000-00", "9999-12", "1970-01", "-", &nasty].map(|name| (name.to_owned(), month)).into();
        known.standing = rank::assess_pattern(&known.pattern, time_at_day(0));
        let place = PatternLocation { path: nasty.clone(), line: u32::MAX, at: Time::MAX };
        library.locations.insert(known.pattern.id.clone(), place);
    }
    for columns in [40, 61, 79, 80, 119, 120, 160, 240] {
        for rows in [10, 18, 24, 48] {
            let mut app = open_knowledge(columns, rows, library.clone());
            for keys in ["] t j", "Tab G", "Tab k", "j m", "D", "n", "e", "Esc", "/", "Esc", "?", "Esc"] {
                press(&mut app, keys);
                let text = screen(&app);
                assert!(
                    !text.chars().any(|c| c != '\n' && crate::domain::text::is_unsafe(c)),
                    "{columns}x{rows} {keys}"
                );
                let widest = text.lines().map(|line| line.width()).max().unwrap_or(0);
                assert!(widest <= usize::from(columns), "{columns}x{rows} {keys}");
            }
        }
    }
}
