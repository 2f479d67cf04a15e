//! `revdeck reviewers`: lists, tests and discovers reviewers.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use serde_json::{Value, json};

use super::args::PlainFormat;
use super::discover::{self, DiscoverArgs};
use super::error::{CliError, CliExitCode};
use super::session::{Invocation, detect_look, read_variable};
use super::{complete, output};
use crate::config::{
    ApiKeySource, ModelCatalog, ModelFacts, ModelMatch, PanelSettings, RequiredAssets, ReviewerKind, ReviewerSettings,
    Settings,
};
use crate::domain::text::sanitize_line;
use crate::report::{TextStyle, TextTable, json as report};
use crate::runner::{ReviewerProbe, ToolProbe, probe_reviewer};

/// Arguments of `reviewers`.
#[derive(Debug, Args)]
pub struct ReviewersArgs {
    #[command(subcommand)]
    command: ReviewersCommand,
}

#[derive(Debug, Subcommand)]
enum ReviewersCommand {
    /// List reviewers with model, context window, price and key status
    List {
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Send one small request to a reviewer and report the result (a paid model charges for it)
    Test {
        /// Name of the reviewer in the settings
        #[arg(value_name = "NAME", add = ArgValueCandidates::new(complete::list_reviewers))]
        name: String,
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Find models of Ollama, llama.cpp and similar servers on this machine, and make reviewers of them
    Discover(DiscoverArgs),
}

/// Runs `revdeck reviewers`.
///
/// # Errors
///
/// Returns an error if the reviewer is unknown or does not answer.
pub fn run(invocation: &Invocation, arguments: &ReviewersArgs) -> Result<CliExitCode, CliError> {
    let loaded = invocation.load_settings(None, RequiredAssets::None)?;
    let models = ModelCatalog::load(&invocation.paths)?;
    match &arguments.command {
        ReviewersCommand::List { format } => {
            let rows = list_reviewers(&loaded.settings, &models);
            match format {
                PlainFormat::Json => {
                    let reviewers: Vec<Value> = rows.iter().map(ReviewerRow::to_json).collect();
                    let panels = panels_to_json(&loaded.settings);
                    output::print_json(&report::build_versioned([
                        ("reviewers", Value::from(reviewers)),
                        ("panels", panels),
                    ]))?;
                }
                PlainFormat::Text => {
                    let mut table = TextTable::default();
                    for row in &rows {
                        let mark = if row.default { "*" } else { " " };
                        let name = format!("{mark} {}", row.name);
                        let paint = if row.missing { TextStyle::Notice } else { TextStyle::Faint };
                        table.push_row([
                            (TextStyle::Plain, name.as_str()),
                            (TextStyle::Faint, row.kind),
                            (TextStyle::Plain, row.model.as_str()),
                            (TextStyle::Faint, row.window.as_str()),
                            (TextStyle::Faint, row.price.as_str()),
                            (paint, row.key.as_str()),
                        ]);
                    }
                    let look = detect_look(&loaded, invocation.clock_and_ids()?.now());
                    output::print(&format!("{}{}", table.render(&look), format_panels(&loaded.settings)))?;
                }
            }
            Ok(CliExitCode::Done)
        }
        ReviewersCommand::Test { name, format } => {
            let settings = find_reviewer(&loaded.settings, name)?;
            let facts = models.facts_for_reviewer(settings);
            super::interrupt::exit_on_interrupt(format!("{} was not waited for", sanitize_line(name)));
            let trial = probe_reviewer(name, settings, &models, &invocation.paths, &|| false).map_err(|error| {
                CliError::failed(format!("{name} does not answer: {}", error.summary))
                    .hint(format!("that is an error of class {}; `revdeck doctor` checks the settings", error.class))
            })?;
            match format {
                PlainFormat::Json => output::print_json(&trial_to_json(name, settings, &facts, &trial))?,
                PlainFormat::Text => output::print(&format_trial(name, settings, &facts, &trial))?,
            }
            Ok(CliExitCode::Done)
        }
        ReviewersCommand::Discover(arguments) => discover::run(invocation, arguments, &loaded, &models),
    }
}

fn find_reviewer<'a>(settings: &'a Settings, name: &str) -> Result<&'a ReviewerSettings, CliError> {
    let models = || settings.reviewers.iter().filter(|(_, reviewer)| reviewer.kind != ReviewerKind::Builtin);
    match settings.reviewers.get(name) {
        Some(reviewer) if reviewer.kind != ReviewerKind::Builtin => Ok(reviewer),
        Some(_) => Err(builtin_error()),
        None if name == "builtin" => Err(builtin_error()),
        None => {
            let known: Vec<&str> = models().map(|(name, _)| name.as_str()).collect();
            let hint = match known.is_empty() {
                true => {
                    "describe one in your config.toml: `revdeck config defaults` shows how, and `revdeck reviewers \
                         discover` finds models on this machine"
                        .to_owned()
                }
                false => format!("there are: {}", known.join(", ")),
            };
            Err(CliError::usage(format!("there is no reviewer named {name:?} that talks to a model")).hint(hint))
        }
    }
}

fn builtin_error() -> CliError {
    CliError::usage("the built-in reviewer talks to nobody: there is nothing to test".to_owned())
        .hint("`revdeck review --wait` tries it")
}

/// Reviewer in the output of `reviewers list`.
struct ReviewerRow {
    name: String,
    default: bool,
    kind: &'static str,
    model: String,
    window: String,
    price: String,
    key: String,
    /// The API key is missing.
    missing: bool,
    facts: Option<ModelFacts>,
}

impl ReviewerRow {
    fn to_json(&self) -> Value {
        let facts = self.facts.as_ref();
        json!({
            "name": self.name, "default": self.default, "kind": self.kind, "model": self.model, "key": self.key,
            "ready": !self.missing,
            "context_window": facts.map(|facts| facts.context_window),
            "max_output": facts.map(|facts| facts.max_output),
            "known": facts.is_some_and(|facts| facts.known != ModelMatch::Guess),
            "price": facts.and_then(|facts| facts.price.as_ref()).map(|price| json!({
                "input": price.input.as_f64(), "cached": price.cached.as_f64(), "output": price.output.as_f64(),
                "from": price.from,
            })),
        })
    }
}

fn panels_to_json(settings: &Settings) -> Value {
    let panel_to_json = |(name, panel): (&String, &PanelSettings)| {
        json!({
            "name": name,
            "default": *name == settings.default_panel,
            "reviewers": panel.reviewers,
            "max_cost": panel.max_cost.map(|cost| cost.as_f64()),
            "judge": panel.judge,
            "escalate_to": panel.escalate.as_ref().map(|opinion| &opinion.reviewer),
        })
    };
    settings.panels.iter().map(panel_to_json).collect()
}

/// Formats the panels, one on each line, and says who reviews when nobody is named.
fn format_panels(settings: &Settings) -> String {
    let mut said = String::new();
    for (name, panel) in &settings.panels {
        let mut parts = vec![panel.reviewers.join(", ")];
        parts.extend(panel.escalate.iter().map(|opinion| format!("escalates to {}", opinion.reviewer)));
        parts.extend(panel.judge.iter().map(|judge| format!("judge {judge}")));
        parts.extend(panel.max_cost.map(|cost| format!("at most ${cost} a run")));
        said.push_str(&format!("panel {}: {}\n", sanitize_line(name), sanitize_line(&parts.join("; "))));
    }
    said.push_str(&match settings.default_panel.as_str() {
        "" => "* reviews when nobody else is named\n".to_owned(),
        panel if !settings.panels.contains_key(panel) => {
            format!("default_panel names {}, and there is no such panel\n", sanitize_line(panel))
        }
        panel => format!("the panel {} reviews when you name nobody, * when an assistant does\n", sanitize_line(panel)),
    });
    said
}

fn list_reviewers(settings: &Settings, models: &ModelCatalog) -> Vec<ReviewerRow> {
    let default = |name: &str| settings.default_reviewer == name;
    let mut rows = vec![ReviewerRow {
        name: "builtin".to_owned(),
        default: default("builtin"),
        kind: "builtin",
        model: "-".to_owned(),
        window: "-".to_owned(),
        price: "free".to_owned(),
        key: NO_KEY_NEEDED.to_owned(),
        missing: false,
        facts: None,
    }];
    for (name, reviewer) in &settings.reviewers {
        if reviewer.kind == ReviewerKind::Builtin {
            continue;
        }
        let facts = (reviewer.kind != ReviewerKind::Command).then(|| models.facts_for_reviewer(reviewer));
        let (key, missing) = describe_key(reviewer);
        rows.push(ReviewerRow {
            name: sanitize_line(name).into_owned(),
            default: default(name),
            kind: reviewer.kind.word(),
            model: match reviewer.kind {
                ReviewerKind::Command => sanitize_line(&reviewer.command.join(" ")).into_owned(),
                _ => sanitize_line(&reviewer.model).into_owned(),
            },
            window: facts.as_ref().map_or("-".to_owned(), |facts| format_window(reviewer, facts)),
            price: facts.as_ref().map_or("its own".to_owned(), format_price),
            key,
            missing,
            facts,
        });
    }
    rows
}

/// Says that a reviewer is asked without an API key.
const NO_KEY_NEEDED: &str = "key not needed";

/// Describes the source of the API key and returns true if the key is missing. Does not run `api_key_cmd`.
fn describe_key(reviewer: &ReviewerSettings) -> (String, bool) {
    match (reviewer.kind, reviewer.key_source()) {
        (ReviewerKind::Command, _) => ("its own".to_owned(), false),
        (_, ApiKeySource::None) => (NO_KEY_NEEDED.to_owned(), false),
        (_, ApiKeySource::Command(_)) => ("key from api_key_cmd".to_owned(), false),
        (_, ApiKeySource::Variable(name)) => match read_variable(name).is_some_and(|key| !key.trim().is_empty()) {
            true => (format!("{name} is set"), false),
            false => (format!("{name} is not set"), true),
        },
    }
}

/// Returns true if neither the settings nor models.toml say how large the window of a model is.
pub(super) fn is_window_guessed(reviewer: &ReviewerSettings, facts: &ModelFacts) -> bool {
    facts.known == ModelMatch::Guess && reviewer.context_window.is_none()
}

fn format_window(reviewer: &ReviewerSettings, facts: &ModelFacts) -> String {
    let guess = if is_window_guessed(reviewer, facts) { " (guess)" } else { "" };
    format!("{}k window{guess}", facts.context_window / 1000)
}

fn format_price(facts: &ModelFacts) -> String {
    match &facts.price {
        None => "price not known".to_owned(),
        Some(price) if price.is_free() => "free".to_owned(),
        Some(price) => format!("${} in, ${} out per M ({})", price.input, price.output, sanitize_line(&price.from)),
    }
}

fn tools_word(trial: &ReviewerProbe) -> &'static str {
    match trial.tools {
        ToolProbe::Called => "called as asked",
        ToolProbe::NotCalled => "given and not called",
        ToolProbe::NotGiven => "none given",
    }
}

fn format_trial(name: &str, settings: &ReviewerSettings, facts: &ModelFacts, trial: &ReviewerProbe) -> String {
    let answered = if trial.model.is_empty() { &settings.model } else { &trial.model };
    let usage = &trial.usage;
    let about = if usage.estimated { "~" } else { "" };
    let cost = trial.cost.map_or("price not known".to_owned(), |cost| format!("${cost:.6}"));
    let lines = [
        format!("{} answers", sanitize_line(name)),
        format!("  model      {} (asked for {})", sanitize_line(answered), sanitize_line(&settings.model)),
        format!("  latency    {} ms to the first byte, {} ms in all", trial.first.as_millis(), trial.total.as_millis()),
        format!(
            "  window     {} tokens, answers up to {}{}",
            facts.context_window,
            facts.max_output,
            if is_window_guessed(settings, facts) { " (a guess: the model is not in models.toml)" } else { "" }
        ),
        format!("  tools      {}", tools_word(trial)),
        format!("  streaming  {}", if trial.pieces > 1 { "yes" } else { "in one piece" }),
        format!("  used       {about}{} tokens in, {about}{} out; {cost}", usage.input, usage.output + usage.reasoning),
    ];
    lines.join("\n") + "\n"
}

fn trial_to_json(name: &str, settings: &ReviewerSettings, facts: &ModelFacts, trial: &ReviewerProbe) -> Value {
    report::build_versioned([
        ("reviewer", json!(name)),
        ("kind", json!(settings.kind.word())),
        ("model", json!(settings.model)),
        ("answered_by", json!(trial.model)),
        ("first_ms", json!(trial.first.as_millis() as u64)),
        ("total_ms", json!(trial.total.as_millis() as u64)),
        ("context_window", json!(facts.context_window)),
        ("max_output", json!(facts.max_output)),
        (
            "tools",
            json!(match trial.tools {
                ToolProbe::Called => "called",
                ToolProbe::NotCalled => "not_called",
                ToolProbe::NotGiven => "not_given",
            }),
        ),
        ("streaming", json!(trial.pieces > 1)),
        ("tokens", json!(trial.usage)),
        ("cost", json!(trial.cost)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_the_settings_is_no_guess() {
        let models = ModelCatalog::default();
        for (model, context_window, expected) in
            [("no-such-model", None, "32k window (guess)"), ("gemma2:2b-of-nobody", Some(8_192), "8k window")]
        {
            let model = model.to_owned();
            let reviewer = ReviewerSettings { model, context_window, ..ReviewerSettings::new(ReviewerKind::Ollama) };
            assert_eq!(format_window(&reviewer, &models.facts_for_reviewer(&reviewer)), expected);
        }
    }

    #[test]
    fn a_key_that_is_not_needed_is_not_taken_for_a_missing_one() {
        let reviewer = |kind, variable: Option<&str>| ReviewerSettings {
            api_key_env: variable.map(str::to_owned),
            ..ReviewerSettings::new(kind)
        };
        let unset = "REVDECK_TEST_KEY_THAT_IS_NOT_SET";
        for (kind, variable, expected) in [
            (ReviewerKind::Ollama, None, (NO_KEY_NEEDED.to_owned(), false)),
            (ReviewerKind::Command, None, ("its own".to_owned(), false)),
            (ReviewerKind::Openai, Some(unset), (format!("{unset} is not set"), true)),
        ] {
            assert_eq!(describe_key(&reviewer(kind, variable)), expected, "{}", kind.word());
        }
    }
}
