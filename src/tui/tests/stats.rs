//! Tests the statistics page: requests, updates, leaving, screens.

use std::any::{Any, TypeId};
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::looks::{SIZES, assert_looks};
use super::support::*;
use crate::domain::{Actor, DismissalReason, FindingDecision, FindingStatus, Kind, RunFigures, Time};
use crate::ledger::metrics::{
    FindingFact, Metrics, MetricsDetail, MetricsInput, MetricsSelection, MisjudgedKind, compute_metrics, measure_worth,
};
use crate::store::{StoreView, StoreViewBuilder};
use crate::tui::app::App;
use crate::tui::message::{AppCommand, AppMessage};
use crate::tui::views::ViewReply;
use crate::tui::views::ViewRequest;
use crate::tui::views::load::FailedLoad;
use crate::tui::views::stats::{LoadFigures, LoadedFigures, StatsView};

const DAY: i64 = 86_400_000;

/// Builds metrics of three weeks of reviews, offline and by a model.
fn figures() -> Metrics {
    let at = |ms: i64| Time::from_millisecond(ms).unwrap_or_default();
    let runs: Vec<RunFigures> = (0..40)
        .map(|n| {
            let by_model = n % 3 == 0;
            let status = ["completed", "completed", "failed", "completed", "cancelled"][n as usize % 5];
            serde_json::from_value(serde_json::json!({
                "run_id": run_id(n), "status": status, "attempt": 1, "source": "watch", "scope": "worktree",
                "created_at": at(NOW - 20 * DAY + i64::from(n) * DAY / 2), "updated_at": at(NOW),
                "reviewer": if by_model { "claude" } else { "builtin" },
                "tokens": {"input": if by_model { 21_000 + 900 * n } else { 0 }, "output": if by_model { 1_200 } else { 0 }},
                "cost": if by_model { 0.07 } else { 0.0 }, "saved_token_estimate": 4_000 * (n % 4), "reuse_count": n % 4,
                "cancel_reason": (status == "cancelled").then_some("user_stop"),
            }))
            .expect("a record")
        })
        .collect();
    let ids: Vec<(String, u32)> = (0..90).map(|n| (finding_id(n), n % 40)).collect();
    let kinds = [Kind::MissingErrorHandling, Kind::DeadCode, Kind::MagicNumbers, Kind::Security, Kind::DeadCode];
    let findings: Vec<FindingFact<'_>> = ids
        .iter()
        .enumerate()
        .map(|(n, (id, run))| {
            let kind = kinds[n % 5];
            let status = match (kind, n % 7) {
                (_, 0) => FindingStatus::Open,
                (Kind::MagicNumbers, 1..=5) => FindingStatus::Dismissed,
                (_, 1) => FindingStatus::Dismissed,
                _ => FindingStatus::Addressed,
            };
            let actor = if n % 2 == 0 { Actor::User } else { Actor::Engine };
            let reason = DismissalReason::ALL[n % 4];
            let decided = (status != FindingStatus::Open).then(|| FindingDecision {
                actor,
                at: at(NOW - (n as i64 % 19) * DAY),
                reason,
            });
            FindingFact { id, first_run: Some(*run), kind, language: ["rust", "python", ""][n % 3], status, decided }
        })
        .collect();
    let reports: Vec<(u32, u32)> = ids.iter().enumerate().map(|(n, (_, run))| (*run, n as u32)).collect();
    let input = MetricsInput { runs: &runs, findings: &findings, reports: &reports, scanned: &[], handed: &[] };
    let all = MetricsSelection::default();
    let worth = measure_worth(&input, &all);
    Metrics { worth, ..compute_metrics(&input, (&all, MetricsDetail::Sums), &TimeZone::UTC) }
}

fn open_stats(columns: u16, rows: u16, metrics: Metrics) -> App {
    let mut app = showing(columns, rows, view());
    press(&mut app, "S");
    send(&mut app, loaded(Ok(Arc::new(metrics))));
    app
}

/// Returns the reply of the thread that computes the figures.
fn loaded(figures: LoadedFigures) -> AppMessage {
    AppMessage::View(ViewReply::Loaded(Box::new(figures)))
}

fn stats_requests(commands: &[AppCommand]) -> Vec<&Arc<StoreView>> {
    let requests = commands.iter().filter_map(|command| {
        let AppCommand::View(ViewRequest::Load(load)) = command else { return None };
        let load: &dyn Any = &**load;
        load.downcast_ref::<LoadFigures>().map(|load| &load.view)
    });
    requests.collect()
}

#[test]
fn figures_at_all_sizes() {
    for (columns, rows) in SIZES {
        let mut app = open_stats(columns, rows, figures());
        assert_looks("stats", &mut app);
        press(&mut app, "G");
        assert_looks("stats-end", &mut app);
        press(&mut app, "o o");
        assert_looks("stats-kinds", &mut app);
    }
}

#[test]
fn o_shows_what_reviewers_models_kinds_and_languages_are_worth() {
    let mut app = open_stats(100, 16, figures());
    let footer = |app: &App| screen(app).lines().last().unwrap_or_default().to_owned();
    assert!(footer(&app).contains("o group") && footer(&app).contains("? help"), "{}", footer(&app));
    // The first key shows the bars, the further ones change what they are by.
    for (keys, title, row) in [
        ("o", "Worth by reviewer", "claude"),
        ("o", "Worth by model", "claude"),
        ("o", "Worth by kind", "magic numbers"),
        ("o", "Worth by language", "python"),
        ("o", "Worth by reviewer", "builtin"),
    ] {
        press(&mut app, keys);
        let shown = screen(&app);
        let below: Vec<&str> = shown.lines().skip_while(|line| !line.contains(title)).collect();
        assert!(below.iter().any(|line| line.trim_start().starts_with(row) && line.contains("accepted")), "{shown}");
    }
    let shown = screen(&app);
    press(&mut app, "G");
    assert_eq!(screen(&app), shown, "the bars stand at the end of the page");
    // Without figures there is nothing to group.
    let mut app = open_stats(80, 24, Metrics::default());
    assert!(!footer(&app).contains("o group"));
    press(&mut app, "o");
    assert!(screen(&app).contains("No runs yet"));
}

#[test]
fn an_empty_store_has_a_sentence() {
    let mut app = showing(80, 24, complete(StoreViewBuilder::default()));
    press(&mut app, "S");
    assert!(screen(&app).contains("counting"));
    send(&mut app, loaded(Ok(Arc::default())));
    assert!(screen(&app).contains("No runs yet"), "{}", screen(&app));
}

#[test]
fn the_page_is_asked_for_once_and_again_when_the_store_has_changed_meanwhile() {
    let mut app = showing(160, 48, view());
    assert_eq!(stats_requests(&press(&mut app, "S")).len(), 1);
    let viewed = |app: &mut App| {
        let view = view();
        let commands = send(app, AppMessage::StoreRead { view: Arc::clone(&view), written: 0 });
        (stats_requests(&commands).len(), view)
    };
    // While the first request is pending, changes are remembered and not requested one by one.
    assert_eq!(viewed(&mut app).0, 0);
    let (count, newest) = viewed(&mut app);
    assert_eq!(count, 0);
    let commands = send(&mut app, loaded(Ok(Arc::new(figures()))));
    let again = stats_requests(&commands);
    assert!(again.len() == 1 && Arc::ptr_eq(again[0], &newest), "the newest view is counted");
    let before = screen(&app);
    assert!(stats_requests(&send(&mut app, loaded(Ok(Arc::new(figures()))))).is_empty());
    assert_eq!(screen(&app), before, "the same figures draw nothing new");
    assert_eq!(viewed(&mut app).0, 1, "nothing is on its way: the next change is asked about");
    // Replies after the page was closed are ignored.
    press(&mut app, "Esc");
    assert!(app.views.is_empty());
    assert!(stats_requests(&send(&mut app, loaded(Ok(Arc::new(figures()))))).is_empty());
    assert_eq!(viewed(&mut app).0, 0);
}

#[test]
fn figures_that_cannot_be_read_say_so_and_the_old_ones_stay() {
    let mut app = open_stats(160, 48, figures());
    send(&mut app, loaded(Err("cannot read /s/runs.ndjson".into())));
    let text = screen(&app);
    assert!(text.contains("cannot read /s/runs.ndjson") && text.contains("launched"), "{text}");
}

#[test]
fn the_figures_of_tables_stand_below_their_titles_at_any_width() {
    for columns in [24, 32, 44, 56, 60, 72, 80, 90, 100, 120, 160] {
        let mut app = open_stats(columns, 48, figures());
        press(&mut app, "G");
        let shown = screen(&app);
        let lines: Vec<&str> = shown.lines().collect();
        for title in ["By kind", "By reviewer"] {
            let at = lines.iter().position(|line| line.contains(title) && line.contains("found"));
            let at = at.unwrap_or_else(|| panic!("{columns}: no {title} in {shown}"));
            assert!(!lines[at].contains('…'), "{columns}: a title is cut: {shown}");
            // Each title ends where the figures below it end.
            let columns_of = |line: &str| line.chars().collect::<Vec<char>>();
            let (head, row) = (columns_of(lines[at]), columns_of(lines[at + 1]));
            for name in ["found", "addressed", "dismissed", "precision", "at least"] {
                let Some(start) = lines[at].find(name) else { continue };
                let end = lines[at][..start + name.len()].chars().count();
                assert!(row.len() >= end && row[end - 1] != ' ', "{columns}: nothing below {name}: {shown}");
                assert!(row.get(end).is_none_or(|c| *c == ' ') && head.len() >= end, "{columns}: {name}: {shown}");
            }
        }
    }
}

#[test]
fn figures_whose_computation_broke_off_say_so_and_are_asked_for_again() {
    let mut app = showing(160, 48, view());
    assert_eq!(stats_requests(&press(&mut app, "S")).len(), 1);
    let failed = |kind| {
        let error = "internal error: no such figure".to_owned();
        AppMessage::View(ViewReply::LoadFailed(FailedLoad { kind, error }))
    };
    send(&mut app, failed(TypeId::of::<String>()));
    assert!(!screen(&app).contains("no such figure"), "the load of another view: {}", screen(&app));
    send(&mut app, failed(TypeId::of::<LoadFigures>()));
    assert!(screen(&app).contains("internal error: no such figure"), "{}", screen(&app));
    let commands = send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
    assert_eq!(stats_requests(&commands).len(), 1, "nothing is on its way");
    send(&mut app, loaded(Ok(Arc::new(figures()))));
    assert!(!screen(&app).contains("no such figure") && screen(&app).contains("launched"), "{}", screen(&app));
}

#[test]
fn every_key_that_leaves_it_leaves_it_and_the_others_scroll() {
    for key in ["Esc", "q", "S", "h"] {
        let mut app = open_stats(80, 24, figures());
        assert!(press(&mut app, key).is_empty(), "{key} does nothing else");
        assert!(app.views.is_empty(), "{key}");
    }
    let mut app = open_stats(80, 16, figures());
    let offset = |app: &App| match app.views.front_as::<StatsView>() {
        Some(stats) => stats.offset,
        _ => usize::MAX,
    };
    let mut seen = vec![offset(&app)];
    for key in ["j", "j", "k", "Ctrl-d", "G", "j", "g", "k"] {
        press(&mut app, key);
        seen.push(offset(&app));
    }
    let end = seen[5];
    assert_eq!((&seen[..4], seen[6], seen[7], seen[8]), (&[0, 1, 2, 1][..], end, 0, 0), "{seen:?}");
    assert!(end > seen[4] && screen(&app).contains("launched"));
    // A larger screen shows the whole page from the top.
    press(&mut app, "G");
    send(&mut app, AppMessage::Resized { columns: 160, rows: 60 });
    assert_eq!(offset(&app), 0);
}

#[test]
fn hostile_names_of_reviewers_reach_no_terminal() {
    let mut metrics = figures();
    let hostile = "\u{1b}[2J漢字かな交じり文の長い名前の審査員\u{202e}".to_owned();
    metrics.by_reviewer[0].reviewer.clone_from(&hostile);
    metrics.worth.by_reviewer[0].name.clone_from(&hostile);
    metrics.worth.almost_always_wrong =
        vec![MisjudgedKind { reviewer: hostile, kind: Kind::MagicNumbers, accepted: 1, wrong: 19, at_most: 0.24 }];
    for columns in [30, 40, 61, 80, 119, 160, 200] {
        for rows in [10, 24, 48] {
            let text = screen(&open_stats(columns, rows, metrics.clone()));
            assert!(!text.chars().any(|c| c != '\n' && crate::domain::text::is_unsafe(c)), "{columns}x{rows}");
        }
    }
}
