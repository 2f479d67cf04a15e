//! `revdeck doctor`: checks the environment of revdeck and suggests remedies.

use std::io::IsTerminal;
use std::path::Path;

use clap::Args;
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::session::{self, Invocation, read_variable};
use super::{output, variables};
use crate::config::{
    self, ConfigError, KeyPreset, LoadedSettings, ModelCatalog, Paths, Prompts, Settings, UserGuidelines, load_keymaps,
};
use crate::domain::text::{format_count, sanitize_line};
use crate::git::Repo;
use crate::masking::mask_name;
use crate::report::{TextOptions, TextStyle, json};
use crate::reviewers::analyzer::limits::Limits;
use crate::runner::open_store;
use crate::tui;
use crate::tui::theme::ColorDepth;

mod reviewers;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckStatus {
    Good,
    /// Works, but the user may want to know.
    Notice,
    /// revdeck cannot work.
    Bad,
}

impl CheckStatus {
    fn word(self) -> &'static str {
        match self {
            CheckStatus::Good => "ok",
            CheckStatus::Notice => "notice",
            CheckStatus::Bad => "problem",
        }
    }

    fn paint(self) -> TextStyle {
        match self {
            CheckStatus::Good => TextStyle::Good,
            CheckStatus::Notice => TextStyle::Notice,
            CheckStatus::Bad => TextStyle::Bad,
        }
    }
}

struct DoctorCheck {
    name: &'static str,
    verdict: CheckStatus,
    text: String,
}

/// Runs `revdeck doctor`. Exits with 2 if a check is [`CheckStatus::Bad`].
///
/// # Errors
///
/// Returns an error if the current folder is gone or standard output cannot be written.
pub fn run(invocation: &Invocation, arguments: &DoctorArgs) -> Result<CliExitCode, CliError> {
    let mut checks = Vec::new();
    let mut check = |name, verdict, text: String| checks.push(DoctorCheck { name, verdict, text });
    check("version", CheckStatus::Good, format!("revdeck {}", env!("CARGO_PKG_VERSION")));

    let repo = Repo::discover(&Invocation::current_folder()?);
    let root = repo.as_ref().ok().map(Repo::root);
    // The keymap, the theme and the environment are checked on their own.
    let settings = invocation.load_plain_settings(root.as_deref());
    let look = match &settings {
        Ok(loaded) => session::detect_look(loaded, invocation.clock_and_ids()?.now()),
        Err(_) => TextOptions { color: false, ascii: false, width: None, now: invocation.clock_and_ids()?.now() },
    };
    match &settings {
        Ok(loaded) => {
            let (verdict, text) = judge_settings(loaded);
            check("settings", verdict, text);
        }
        Err(error) => check("settings", CheckStatus::Bad, format_error(error)),
    }
    let (verdict, text) = judge_variables();
    check("environment", verdict, text);
    for (name, folder) in [("state", &invocation.paths.state), ("cache", &invocation.paths.cache)] {
        let (verdict, text) = judge_folder(folder);
        check(name, verdict, text);
    }
    match repo {
        Ok(repo) => {
            let branch = repo.branch();
            let branch = if branch.is_empty() { "detached".to_owned() } else { format!("branch {branch}") };
            let place = format!("{}, {branch}", repo.root().display());
            check("repository", CheckStatus::Good, mask_name(&place).into_owned());
            let (verdict, text) = judge_store(invocation, &repo);
            check("store", verdict, text);
        }
        Err(error) => check("repository", CheckStatus::Bad, format_error(&error.into())),
    }
    let (verdict, text) = judge_terminal();
    check("terminal", verdict, text);
    let (verdict, text) = match &settings {
        Ok(loaded) => judge_keymap(&invocation.paths, &loaded.settings),
        // Without settings, the keys of the default preset are checked.
        Err(_) => judge_keymap(&invocation.paths, &Settings::default()),
    };
    check("keymap", verdict, text);
    let theme = settings.as_ref().map_or("auto", |loaded| loaded.settings.theme.as_str());
    let (verdict, text) = judge_theme(&invocation.paths, theme);
    check("theme", verdict, text);
    let models = ModelCatalog::load(&invocation.paths);
    for (name, error) in
        [("models", models.as_ref().err()), ("prompts", Prompts::load(&invocation.paths).err().as_ref())]
    {
        match error {
            Some(error) => check(name, CheckStatus::Bad, format!("{error}; {}", error.hint())),
            None => check(name, CheckStatus::Good, "readable".to_owned()),
        }
    }
    for set in config::list_prompt_sets(&invocation.paths) {
        match config::describe_prompt_set(&invocation.paths, &set) {
            Ok(said) => check("prompts", CheckStatus::Good, said),
            Err(error) => check("prompts", CheckStatus::Bad, format!("{error}; {}", error.hint())),
        }
    }
    for unknown in Prompts::find_unknown_files(&invocation.paths) {
        check("prompts", CheckStatus::Bad, crate::domain::text::sanitize_line(&unknown).into_owned());
    }
    if let Some((verdict, text)) = judge_guidelines(&UserGuidelines::load(&invocation.paths)) {
        check("guidelines", verdict, text);
    }
    if let Ok(loaded) = &settings {
        for (verdict, text) in reviewers::judge_reviewers(&loaded.settings, &models.unwrap_or_default()) {
            check("reviewers", verdict, text);
        }
    }

    let healthy = checks.iter().all(|check| check.verdict != CheckStatus::Bad);
    print_checks(&checks, healthy, arguments.format, &look)?;
    Ok(if healthy { CliExitCode::Done } else { CliExitCode::Usage })
}

fn print_checks(
    checks: &[DoctorCheck],
    healthy: bool,
    format: PlainFormat,
    look: &TextOptions,
) -> Result<(), CliError> {
    match format {
        PlainFormat::Text => {
            let mut text = String::new();
            for DoctorCheck { name, verdict, text: said } in checks {
                let word = look.paint(verdict.paint(), &format!("{:<8}", verdict.word()));
                text.push_str(&format!("{word}{name:<12} {}\n", sanitize_line(said)));
            }
            output::print(&text)
        }
        PlainFormat::Json => {
            let list: Vec<_> = checks
                .iter()
                .map(|check| json!({ "name": check.name, "verdict": check.verdict.word(), "text": check.text }))
                .collect();
            output::print_json(&json::build_versioned([("healthy", json!(healthy)), ("checks", list.into())]))
        }
    }
}

fn format_error(error: &CliError) -> String {
    match &error.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message.clone(),
    }
}

fn judge_settings(loaded: &LoadedSettings) -> (CheckStatus, String) {
    if let Err(error) = Limits::from_layers([("smells.toml", loaded.settings.smells.as_str())]) {
        return (CheckStatus::Bad, error.to_string());
    }
    match loaded.warnings.len() {
        0 => (CheckStatus::Good, "readable".to_owned()),
        warnings => {
            (CheckStatus::Notice, format!("{}: {}", format_count(warnings, "warning"), loaded.warnings.join("; ")))
        }
    }
}

/// Checks environment variables. An unknown variable that starts with `REVDECK_` is probably misspelt.
fn judge_variables() -> (CheckStatus, String) {
    let set = variables::list_set();
    match variables::describe_unknown(&set) {
        Some(unknown) => (CheckStatus::Notice, unknown),
        None => {
            (CheckStatus::Good, if set.is_empty() { "no REVDECK_ variable is set".to_owned() } else { set.join(", ") })
        }
    }
}

/// Checks that a file can be created in the folder, or in its nearest existing parent.
fn judge_folder(folder: &Path) -> (CheckStatus, String) {
    let there = folder.ancestors().find(|folder| folder.is_dir());
    let Some(there) = there else { return (CheckStatus::Bad, format!("{} cannot be made", folder.display())) };
    match tempfile::Builder::new().prefix(".revdeck-doctor-").tempfile_in(there) {
        Ok(_) if there == folder => (CheckStatus::Good, format!("{} can be written", folder.display())),
        Ok(_) => (CheckStatus::Good, format!("{} can be made", folder.display())),
        Err(error) => (
            CheckStatus::Bad,
            format!("{} cannot be written: {error}; set REVDECK_HOME to another folder", there.display()),
        ),
    }
}

fn judge_keymap(paths: &Paths, settings: &Settings) -> (CheckStatus, String) {
    let files = match load_keymaps(paths, settings.keys) {
        Ok(files) => files,
        Err(error) => return (CheckStatus::Bad, format!("{error}; {}", error.hint())),
    };
    let file = paths.keymap_file();
    let is_own = files.last().is_some_and(|last| last.name == file.display().to_string());
    match tui::check_keymap(&files, &settings.commands) {
        (errors, _) if !errors.is_empty() => (CheckStatus::Bad, errors.join("; ")),
        (_, remarks) if !remarks.is_empty() => (CheckStatus::Notice, remarks.join("; ")),
        _ if is_own => (CheckStatus::Good, format!("{} is readable", file.display())),
        _ if settings.keys == KeyPreset::Vim => (CheckStatus::Good, "the default keys".to_owned()),
        _ => (CheckStatus::Good, format!("the {} keys", settings.keys)),
    }
}

/// Checks that the theme of the settings exists, and that the user's theme files are readable.
fn judge_theme(paths: &Paths, theme: &str) -> (CheckStatus, String) {
    if let Some(fault) = tui::find_theme_fault(paths, theme) {
        return (CheckStatus::Bad, fault);
    }
    match tui::find_theme_file_faults(paths).as_slice() {
        [] => (CheckStatus::Good, theme.to_owned()),
        faults => (CheckStatus::Bad, faults.join("; ")),
    }
}

fn judge_store(invocation: &Invocation, repo: &Repo) -> (CheckStatus, String) {
    let checked = open_store(repo, &invocation.paths).and_then(|store| {
        let report = store.verify()?;
        let view = store.view()?;
        Ok((store, report, view))
    });
    match checked {
        Ok((store, report, view)) => {
            let text = format!(
                "{}: {}, {}",
                store.root().display(),
                format_count(view.run_count(), "run"),
                format_count(view.finding_count(), "finding")
            );
            if let Some(schema) = store.newer_schema() {
                return (CheckStatus::Notice, format!("{text}; {}", super::store::describe_read_only(schema)));
            }
            let losses: String = store.loss_notices().iter().map(|notice| format!("; {notice}")).collect();
            match report.problems.len() {
                0 => (CheckStatus::Good, text),
                problems => (
                    CheckStatus::Notice,
                    format!("{text}, {}; `revdeck store verify` names them{losses}", format_count(problems, "problem")),
                ),
            }
        }
        Err(error) => (CheckStatus::Bad, format_error(&error.into())),
    }
}

/// Names the user's constitution and rules; `None` if there are none.
fn judge_guidelines(loaded: &Result<UserGuidelines, ConfigError>) -> Option<(CheckStatus, String)> {
    match loaded {
        Ok(own) if own.is_empty() => None,
        Ok(own) => {
            let paths: Vec<String> = own.documents().map(|document| document.path.display().to_string()).collect();
            Some((CheckStatus::Good, format!("for all repositories: {}", paths.join(", "))))
        }
        Err(error) => Some((CheckStatus::Bad, format!("{error}; {}", error.hint()))),
    }
}

fn judge_terminal() -> (CheckStatus, String) {
    if !std::io::stdout().is_terminal() {
        return (CheckStatus::Notice, "standard output is no terminal: `revdeck` prints a summary there".to_owned());
    }
    describe_terminal(crossterm::terminal::size().ok(), read_variable)
}

/// Describes a terminal by its columns and rows and by the variables of the environment: its colours, and whether the
/// cockpit draws ASCII in it.
fn describe_terminal(size: Option<(u16, u16)>, variable: impl Fn(&str) -> Option<String>) -> (CheckStatus, String) {
    let term = variable("TERM").unwrap_or_default();
    if matches!(term.as_str(), "dumb" | "") {
        let text = format!("TERM is {term:?}: the cockpit needs a terminal that can move its cursor");
        return (CheckStatus::Notice, text);
    }
    let size = size.map_or("unknown size".to_owned(), |(columns, rows)| format!("{columns}x{rows}"));
    let colors = match ColorDepth::detect(&variable) {
        ColorDepth::TrueColor => "24-bit colours",
        ColorDepth::Indexed256 => "256 colours",
        ColorDepth::Ansi16 => "16 colours",
        ColorDepth::None => "no colours",
    };
    let text = format!("{term}, {size}, {colors}");
    match tui::can_show_unicode(&variable) {
        true => (CheckStatus::Good, text),
        false => {
            let why = "the cockpit draws ASCII: the locale is not UTF-8, or this is the Linux console";
            (CheckStatus::Notice, format!("{text}; {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_is_described_by_its_colours_and_characters() {
        const ASCII: &str = "; the cockpit draws ASCII: the locale is not UTF-8, or this is the Linux console";
        let utf8 = ("LANG", "en_US.UTF-8");
        for (variables, status, expected) in [
            (&[("TERM", "xterm"), utf8][..], CheckStatus::Good, "xterm, 120x40, 16 colours".to_owned()),
            (&[("TERM", "xterm-256color"), utf8], CheckStatus::Good, "xterm-256color, 120x40, 256 colours".to_owned()),
            (
                &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), utf8],
                CheckStatus::Good,
                "xterm-256color, 120x40, 24-bit colours".to_owned(),
            ),
            (
                &[("TERM", "xterm-256color"), ("COLORTERM", "24bit"), utf8],
                CheckStatus::Good,
                "xterm-256color, 120x40, 24-bit colours".to_owned(),
            ),
            // Windows Terminal sets no COLORTERM.
            (
                &[("TERM", "xterm-256color"), ("WT_SESSION", "2c2b8f4e"), utf8],
                CheckStatus::Good,
                "xterm-256color, 120x40, 24-bit colours".to_owned(),
            ),
            // GNU screen hands the variable of the terminal around it on.
            (
                &[("TERM", "screen-256color"), ("COLORTERM", "truecolor"), ("STY", "1.pts-0.host"), utf8],
                CheckStatus::Good,
                "screen-256color, 120x40, 256 colours".to_owned(),
            ),
            (
                &[("TERM", "screen-256color"), ("COLORTERM", "truecolor"), ("TMUX", "/tmp/tmux"), utf8],
                CheckStatus::Good,
                "screen-256color, 120x40, 24-bit colours".to_owned(),
            ),
            (
                &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1"), utf8],
                CheckStatus::Good,
                "xterm-256color, 120x40, no colours".to_owned(),
            ),
            (
                &[("TERM", "xterm-256color"), ("NO_COLOR", ""), utf8],
                CheckStatus::Good,
                "xterm-256color, 120x40, 256 colours".to_owned(),
            ),
            (&[("TERM", "vt220"), utf8], CheckStatus::Good, "vt220, 120x40, no colours".to_owned()),
            // Without a locale, the terminal is taken to show Unicode, as the cockpit does.
            (&[("TERM", "xterm")], CheckStatus::Good, "xterm, 120x40, 16 colours".to_owned()),
            (&[("TERM", "xterm"), ("LANG", "C")], CheckStatus::Notice, format!("xterm, 120x40, 16 colours{ASCII}")),
            (&[("TERM", "linux"), utf8], CheckStatus::Notice, format!("linux, 120x40, 16 colours{ASCII}")),
            (
                &[("TERM", "dumb"), ("COLORTERM", "truecolor"), utf8],
                CheckStatus::Notice,
                "TERM is \"dumb\": the cockpit needs a terminal that can move its cursor".to_owned(),
            ),
            (
                &[utf8],
                CheckStatus::Notice,
                "TERM is \"\": the cockpit needs a terminal that can move its cursor".to_owned(),
            ),
        ] {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(describe_terminal(Some((120, 40)), variable), (status, expected), "{variables:?}");
        }
        let (_, unknown) = describe_terminal(None, |name| (name == "TERM").then(|| "xterm".to_owned()));
        assert_eq!(unknown, "xterm, unknown size, 16 colours");
    }
}
