//! Prepares the first frame: reads the settings and the newest part of the store, and builds the app from both.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::app::{App, AppOptions, MotionMode, Preferences, RunBudget, SessionInfo, TurnLimits};
use super::diff::DiffOptions;
use super::finding_order::FindingArrangement;
use super::keymap::{Keymap, KeymapFault, KeymapFaultLevel};
use super::message::{AppCommand, AppMessage};
use super::terminal::{self, TerminalQuery};
use super::theme::{ColorDepth, ThemeChoice, load_theme};
use super::update::{CodeLooks, update};
use super::{TuiError, glyphs};
use crate::config::{
    ColorChoice, CustomCommand, KeymapFile, OpeningMode, Paths, ReviewerKind, ReviewerSettings, Settings,
};
use crate::masking;
use crate::runner::{BUILTIN_REVIEWER, CostLimit, FreshnessFacts, ReviewerTerms, Services, SnoozedFindings, max_turns};
use crate::store::{LastVisit, StoreView};

/// Fewest runs in the first frame of a large store. Each costs reading a small file.
const MIN_FIRST_FRAME_RUNS: usize = 12;
/// Most runs in that frame.
const MAX_FIRST_FRAME_RUNS: usize = 48;
/// Rows of the screen for each of these runs: the list of runs has a fifth of a tall screen.
const ROWS_PER_FIRST_RUN: usize = 4;

/// Builds the app with all that the first frame shows. `size` is columns and rows of the terminal.
///
/// # Errors
///
/// Returns the first mistake in the keys of the settings.
pub(super) fn build_first_app(services: &Services, size: (u16, u16)) -> Result<App, TuiError> {
    let (settings, paths) = (services.settings.as_ref(), &services.paths);
    let (look, first) = std::thread::scope(|scope| {
        // Both take a part of the time to the first frame: one reads settings, the other one reads the store.
        let look = std::thread::Builder::new().spawn_scoped(scope, || LoadedLook::load(settings, paths));
        let runs = usize::from(size.1) / ROWS_PER_FIRST_RUN;
        let first = FirstView::read(services, runs.clamp(MIN_FIRST_FRAME_RUNS, MAX_FIRST_FRAME_RUNS));
        let look = match look {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => LoadedLook::load(settings, paths),
        };
        (look, first)
    });
    let mut app = App::new(load_options(services, look.map_err(TuiError::Keymap)?, size));
    app.now = services.ambient.now().as_millisecond();
    app.preferences = Preferences::from_settings(settings);
    app.finding_list.row_height = settings.finding_rows;
    app.finding_list.arrangement =
        FindingArrangement { sort: settings.finding_order, grouping: settings.finding_groups };
    app.run_list.order = settings.run_order;
    app.file_list.set_order(settings.file_order);
    app.finding_list.saved_filters.clone_from(&settings.filters);
    Arc::make_mut(&mut app.finding_list.overrides).last_visit = Some(Arc::new(first.visit));
    match first.store {
        Ok((view, facts, snoozed)) => {
            let now = app.now;
            update(&mut app, now, AppMessage::Freshness(Arc::new(facts)));
            // Without it, findings that are out of sight would show for a moment.
            Arc::make_mut(&mut app.finding_list.overrides).snoozed = Arc::new(snoozed);
            // Pages are requested again when the threads run.
            for command in update(&mut app, now, AppMessage::StoreRead { view, written: 0 }) {
                if let AppCommand::Filter { serial, view, query } = command {
                    let listed = query.list(&view);
                    update(&mut app, now, AppMessage::Filtered { serial, view, listed });
                }
            }
            app.detail.loading = None;
            app.file_list.forget_requests();
            app.run_list.subjects = Arc::default();
            app.code_looks = CodeLooks::default();
        }
        Err(error) => app.store.trouble = Some(error),
    }
    Ok(app)
}

/// Keys, colours and time zone, as they are read before the first frame.
struct LoadedLook {
    keymap: Keymap,
    themes: ThemeChoice,
    zone: jiff::tz::TimeZone,
    /// Problems of the theme's file.
    notices: Vec<String>,
}

impl LoadedLook {
    /// Loads the parts, or returns the first mistake in the keymap.
    fn load(settings: &Settings, paths: &Paths) -> Result<Self, String> {
        let variable = |name: &str| std::env::var(name).ok();
        let depth = match settings.color {
            ColorChoice::Never => ColorDepth::None,
            ColorChoice::Auto | ColorChoice::Always => ColorDepth::detect(variable),
        };
        // A theme that is not there was refused with the settings.
        let (themes, notices) = load_theme(settings, paths, depth, variable);
        Ok(Self { keymap: load_keymap(settings)?, themes, zone: local_time_zone(variable), notices })
    }
}

/// Part of the store that the first frame shows.
struct FirstView {
    visit: LastVisit,
    /// The newest runs with their facts, or the reason why they cannot be read.
    store: Result<(Arc<StoreView>, FreshnessFacts, SnoozedFindings), String>,
}

impl FirstView {
    /// Reads the newest `runs` of a large store, and all of a small one.
    fn read(services: &Services, runs: usize) -> Self {
        let now = services.ambient.now();
        // On the first visit, what comes from now on is new.
        let visit = services.store.last_visit();
        let visit = visit.unwrap_or_else(|| LastVisit { left_at: now, ..LastVisit::default() });
        let store = services.store.first_view(runs).map_err(|error| error.to_string()).map(|view| {
            // The rules are read while the rest of the first frame is prepared. That was a third of the time before it.
            let shown = (0..view.finding_count()).map(|index| view.finding(index));
            masking::prepare_for(shown.flat_map(|finding| [finding.path, finding.title]));
            let facts = FreshnessFacts::read(&services.repo, &services.store, &view);
            let snoozed = SnoozedFindings::read(Some(&services.repo), &services.store, &view, now);
            (view, facts, snoozed.unwrap_or_default())
        });
        Self { visit, store }
    }
}

fn load_options(services: &Services, look: LoadedLook, (columns, rows): (u16, u16)) -> AppOptions {
    let variable = |name: &str| std::env::var(name).ok();
    let LoadedLook { keymap, themes, zone, notices } = look;
    AppOptions {
        columns,
        rows,
        zone,
        session: SessionInfo {
            repository: services.repo.name(),
            branch: services.repo.branch(),
            turn_limits: read_turn_limits(&services.settings),
            budget: RunBudget {
                cost: services.settings.budget.run_cost.map(|cost| cost.as_f64()),
                tokens: services.settings.budget.run_tokens,
            },
            answering_reviewers: list_answering_reviewers(&services.settings),
            reviewer: free_default_reviewer(&services.settings),
            reviews_on_open: services.settings.on_open == OpeningMode::Review,
        },
        keymap,
        themes,
        glyphs: match (services.settings.plain, services.settings.ascii) {
            (true, ascii_only) => glyphs::PLAIN.with_ascii_only(ascii_only),
            (false, true) => glyphs::ASCII,
            (false, false) => glyphs::UNICODE,
        },
        motion: match (services.settings.plain, services.settings.motion) {
            (true, _) => MotionMode::Still,
            (false, false) => MotionMode::Reduced,
            (false, true) => MotionMode::Full,
        },
        mouse: services.settings.mouse && !terminal::is_gnu_screen(variable),
        plain: services.settings.plain,
        diff: DiffOptions { wraps: services.settings.diff_wrap, ignores_space: services.settings.diff_ignore_space },
        notices,
    }
}

/// Returns the names of the reviewers that are models: analyzer and agents answer no questions.
fn list_answering_reviewers(settings: &Settings) -> BTreeSet<String> {
    let answers = |own: &ReviewerSettings| !matches!(own.kind, ReviewerKind::Builtin | ReviewerKind::Command);
    settings.reviewers.iter().filter(|(_, own)| answers(own)).map(|(name, _)| name.clone()).collect()
}

/// Returns the terms of the default reviewer if that is the built-in one; what others may cost is looked up later.
fn free_default_reviewer(settings: &Settings) -> Option<ReviewerTerms> {
    let is_builtin = settings.default_panel.is_empty() && settings.default_reviewer == BUILTIN_REVIEWER;
    is_builtin.then(|| ReviewerTerms { name: BUILTIN_REVIEWER.to_owned(), limit: CostLimit::Nothing })
}

fn read_turn_limits(settings: &Settings) -> TurnLimits {
    let limits = settings.reviewers.iter().map(|(name, own)| (name.clone(), max_turns(own, &settings.window)));
    TurnLimits { default: settings.window.max_turns, by_reviewer: limits.collect() }
}

/// Returns the local time zone. Reads `/etc/localtime` directly: a lookup by name walks through all zones, which
/// takes longer than the rest of the start.
fn local_time_zone(variable: impl Fn(&str) -> Option<String>) -> jiff::tz::TimeZone {
    if variable("TZ").is_none()
        && let Ok(bytes) = std::fs::read("/etc/localtime")
        && let Ok(zone) = jiff::tz::TimeZone::tzif("local", &bytes)
    {
        return zone;
    }
    jiff::tz::TimeZone::system()
}

/// Builds the keymap of the settings, or returns the first mistake in it.
///
/// # Errors
///
/// A line that names file and line of the mistake, and the number of further ones.
pub fn load_keymap(settings: &Settings) -> Result<Keymap, String> {
    let (keymap, faults) = Keymap::from_settings(settings);
    let errors = faults.iter().filter(|fault| fault.level == KeymapFaultLevel::Error);
    let errors: Vec<String> = errors.map(ToString::to_string).collect();
    match errors.as_slice() {
        [] => Ok(keymap),
        [error] => Err(error.clone()),
        [error, rest @ ..] => {
            let rest = crate::domain::text::format_count(rest.len(), "further mistake");
            Err(format!("{error} ({rest}: `revdeck keys` lists them)"))
        }
    }
}

/// Checks keymap files and the keys of the user's commands: returns the mistakes, then the remarks, one line each.
pub fn check_keymap(files: &[KeymapFile], commands: &[CustomCommand]) -> (Vec<String>, Vec<String>) {
    let (errors, remarks): (Vec<KeymapFault>, Vec<KeymapFault>) =
        Keymap::from_layers(files, commands).1.into_iter().partition(|fault| fault.level == KeymapFaultLevel::Error);
    let lines = |faults: Vec<KeymapFault>| faults.iter().map(ToString::to_string).collect();
    (lines(errors), lines(remarks))
}

/// Returns false on the Linux console, whose fonts have 256 or 512 characters, and if the locale of the environment has another
/// encoding than UTF-8. Without a locale, the terminal is taken to show Unicode, as nearly all do.
pub fn can_show_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    if variable("TERM").is_some_and(|term| is_linux_console(&term)) {
        return false;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| variable(name).filter(|it| !it.is_empty()));
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Returns true for the terminal type of the Linux console, also in GNU screen, which writes its own name in front of it.
fn is_linux_console(term: &str) -> bool {
    term == "linux" || term.ends_with(".linux")
}

/// Returns the query for the background colour; an empty one without colours, and on the Linux console, which does not
/// know it.
pub(super) fn choose_query(has_colors: bool, variable: impl Fn(&str) -> Option<String>) -> TerminalQuery {
    match has_colors && !is_linux_console(&variable("TERM").unwrap_or_default()) {
        true => terminal::background_query(variable),
        false => TerminalQuery::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linux_console_is_not_asked_for_its_background_and_gets_ascii() {
        for (term, is_console) in [
            (Some("linux"), true),
            (Some("screen.linux"), true),
            (Some("xterm-256color"), false),
            (Some("screen.xterm-256color"), false),
            (Some("tmux-256color"), false),
            (Some("linuxvt"), false),
            (Some(""), false),
            (None, false),
        ] {
            let variable = |name: &str| term.filter(|_| name == "TERM").map(str::to_owned);
            let expected = if is_console { TerminalQuery::default() } else { terminal::background_query(variable) };
            assert_eq!(choose_query(true, variable), expected, "{term:?}");
            assert_eq!(choose_query(false, variable), TerminalQuery::default(), "{term:?} without colours");
            assert_eq!(can_show_unicode(variable), !is_console, "{term:?}");
        }
        assert_ne!(terminal::background_query(|_| None), TerminalQuery::default());
    }

    #[test]
    fn a_locale_of_another_encoding_gets_ascii() {
        for (pairs, expected) in [
            (&[][..], true),
            (&[("LANG", "de_DE.UTF-8")], true),
            (&[("LANG", "de_DE.UTF-8"), ("TERM", "linux")], false),
            (&[("LANG", "de_DE.UTF-8"), ("TERM", "screen.linux"), ("STY", "1.tty1.host")], false),
            (&[("LANG", "de_DE.UTF-8"), ("TERM", "screen.xterm-256color")], true),
            (&[("LANG", "C.utf8")], true),
            (&[("LANG", "C")], false),
            (&[("LANG", "de_DE.ISO-8859-1")], false),
            (&[("LANG", "en_US.UTF-8"), ("LC_ALL", "POSIX")], false),
            (&[("LANG", "C"), ("LC_CTYPE", "en_US.UTF-8"), ("LC_ALL", "")], true),
        ] {
            let variable = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(can_show_unicode(variable), expected, "{pairs:?}");
        }
    }
}
