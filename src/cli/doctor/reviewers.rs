//! Checks of reviewers for `revdeck doctor`. API keys are looked up but never printed.

use std::path::{Path, PathBuf};

use super::super::reviewers::is_window_guessed;
use super::super::session::read_variable;
use super::CheckStatus;
use crate::config::{
    ApiKeySource, ModelCatalog, ModelFacts, ModelMatch, PanelSettings, ReviewerKind, ReviewerSettings, Settings,
    ToolUse,
};

/// Checks that the default reviewer and the default panel exist and that each configured reviewer has its program, model facts
/// and key.
pub(super) fn judge_reviewers(settings: &Settings, models: &ModelCatalog) -> Vec<(CheckStatus, String)> {
    let default = settings.default_reviewer.as_str();
    let mut judged = Vec::new();
    if default == "builtin" {
        judged.push((CheckStatus::Good, "builtin (offline, no key needed)".to_owned()));
    } else if !settings.reviewers.contains_key(default) {
        let others = settings.reviewers.keys().map(String::as_str).filter(|name| *name != "builtin");
        let there: Vec<&str> = std::iter::once("builtin").chain(others).collect();
        let text =
            format!("there is no reviewer named {default:?}, the default_reviewer; there are: {}", there.join(", "));
        judged.push((CheckStatus::Bad, text));
    }
    judged.extend(find_missing_panel(settings));
    let panel = settings.panels.get(&settings.default_panel);
    let opinions = panel.map(PanelSettings::opinion_reviewers).unwrap_or_default();
    let is_default = |name: &str| {
        name == default
            || panel.is_some_and(|panel| panel.reviewers.iter().any(|member| member == name))
            || opinions.contains(&name)
    };
    for (name, reviewer) in &settings.reviewers {
        let (verdict, text) = judge_reviewer(reviewer, models);
        // A reviewer that nobody is asked for by default may still lack its key.
        let verdict = if verdict == CheckStatus::Bad && !is_default(name) { CheckStatus::Notice } else { verdict };
        judged.push((verdict, format!("{name}: {text}")));
    }
    judged
}

/// Returns the problem of a default panel that the settings do not have.
fn find_missing_panel(settings: &Settings) -> Option<(CheckStatus, String)> {
    let name = settings.default_panel.as_str();
    if name.is_empty() || settings.panels.contains_key(name) {
        return None;
    }
    let there: Vec<&str> = settings.panels.keys().map(String::as_str).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    let text = format!("there is no panel named {name:?}, the default_panel; there are: {there}");
    Some((CheckStatus::Bad, text))
}

/// Messages about a reviewer, with the worst result.
#[derive(Default)]
struct ReviewerDiagnosis {
    parts: Vec<String>,
    noticed: bool,
    bad: bool,
}

impl ReviewerDiagnosis {
    fn add_good(&mut self, text: impl Into<String>) {
        self.parts.push(text.into());
    }

    fn add_notice(&mut self, text: impl Into<String>) {
        self.noticed = true;
        self.add_good(text);
    }

    fn add_bad(&mut self, text: impl Into<String>) {
        self.bad = true;
        self.add_good(text);
    }
}

fn judge_reviewer(reviewer: &ReviewerSettings, models: &ModelCatalog) -> (CheckStatus, String) {
    let mut said = ReviewerDiagnosis::default();
    match reviewer.kind {
        ReviewerKind::Builtin => said.add_good("builtin"),
        ReviewerKind::Command => {
            let program = reviewer.command.first().map_or("", String::as_str);
            let speaks = reviewer.dialect().word();
            match find_program(program) {
                Some(path) => said.add_good(format!("command {} ({speaks})", path.display())),
                None => said.add_bad(format!("the command {program:?} ({speaks}) is not found in PATH")),
            }
        }
        _ => {
            judge_model(reviewer, &models.facts_for_reviewer(reviewer), &mut said);
            judge_key(reviewer, &mut said);
            if let Some(file) = reviewer.ca_file.as_ref().filter(|file| !file.is_file()) {
                said.add_bad(format!("ca_file {} is not there", file.display()));
            }
        }
    }
    let verdict = match (said.bad, said.noticed) {
        (true, _) => CheckStatus::Bad,
        (false, true) => CheckStatus::Notice,
        (false, false) => CheckStatus::Good,
    };
    (verdict, said.parts.join(", "))
}

fn judge_model(reviewer: &ReviewerSettings, facts: &ModelFacts, said: &mut ReviewerDiagnosis) {
    said.add_good(format!("{} {}", reviewer.kind.word(), reviewer.model));
    let (window, guessed) = (facts.context_window, is_window_guessed(reviewer, facts));
    let counted = if facts.encoding.is_approximate() { "counted approximately" } else { "counted exactly" };
    let guess = if guessed { "guessed, not in models.toml; " } else { "" };
    said.add_good(format!("window {window} tokens ({guess}{counted})"));
    match &facts.price {
        Some(price) if price.is_free() => said.add_good("costs nothing"),
        Some(price) => {
            said.add_good(format!("{} in, {} out per million tokens ({})", price.input, price.output, price.from));
        }
        None => said.add_notice("no known price: only limits on tokens hold; set price_input and price_output"),
    }
    if facts.tools == ToolUse::Responses && reviewer.kind == ReviewerKind::Openai {
        said.add_notice("takes tools with kind = \"openai-responses\" only");
    }
    if let Some(effort) = reviewer.effort
        && facts.known != ModelMatch::Guess
        && !facts.effort.contains(&effort)
    {
        said.add_notice(format!("is not known to take effort = {:?}", effort.word()));
    }
}

/// Checks the source of the API key. Never prints the line of `api_key_cmd`, because it may contain a key.
fn judge_key(reviewer: &ReviewerSettings, said: &mut ReviewerDiagnosis) {
    let source = reviewer.key_source();
    match source {
        ApiKeySource::None => said.add_good("no key needed"),
        ApiKeySource::Variable(name) if read_variable(name).is_some_and(|key| !key.is_empty()) => {
            said.add_good(format!("key in {name}"));
        }
        ApiKeySource::Variable(name) => said.add_bad(format!("the variable {name}, which holds its key, is not set")),
        ApiKeySource::Command(line) => match find_program(line.split_whitespace().next().unwrap_or_default()) {
            Some(_) => said.add_good("key from api_key_cmd"),
            None => said.add_notice("key from api_key_cmd, which does not begin with a program in PATH"),
        },
    }
    if reviewer.exposes_key() {
        said.add_bad("is refused, as its key would be sent unencrypted: use https, or set insecure_http = true");
    } else if reviewer.is_plaintext() && source != ApiKeySource::None {
        said.add_notice("key and code are sent unencrypted: use https");
    }
}

/// Finds the program in PATH, or checks the given path. Returns `None` if it is not executable.
fn find_program(program: &str) -> Option<PathBuf> {
    if program.is_empty() {
        return None;
    }
    if program.contains(std::path::MAIN_SEPARATOR) {
        return Some(PathBuf::from(program)).filter(|path| is_program(path));
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file()
}
