//! `revdeck reviewers`: who can review, and whether it answers.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use super::session::{Invocation, look, variable};
use crate::config::{KeySource, Known, ModelFacts, Models, ReviewerKind, ReviewerSettings, Settings, Texts};
use crate::domain::text::one_line;
use crate::report::{Paint, Table, json as report};
use crate::runner::{ToolsTried, Trial, try_out};

/// Arguments of `reviewers`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// All reviewers with model, window and price, and whether the key is there
    List {
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Send one tiny request, and say how it went (a model that costs money costs a little)
    Test {
        /// The reviewer's name in the settings
        #[arg(value_name = "NAME")]
        name: String,
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let loaded = invocation.settings(None, Texts::None)?;
    let models = Models::load(&invocation.paths)?;
    match &arguments.command {
        Command::List { format } => {
            let rows = rows(&loaded.settings, &models);
            match format {
                PlainFormat::Json => {
                    let reviewers: Vec<Value> = rows.iter().map(Row::json).collect();
                    output::print_json(&report::versioned([("reviewers", reviewers.into())]))?;
                }
                PlainFormat::Text => {
                    let mut table = Table::default();
                    for row in &rows {
                        let mark = if row.default { "*" } else { " " };
                        let name = format!("{mark} {}", row.name);
                        let paint = if row.missing { Paint::Notice } else { Paint::Faint };
                        table.row([
                            (Paint::Plain, name.as_str()),
                            (Paint::Faint, row.kind),
                            (Paint::Plain, row.model.as_str()),
                            (Paint::Faint, row.window.as_str()),
                            (Paint::Faint, row.price.as_str()),
                            (paint, row.key.as_str()),
                        ]);
                    }
                    let look = look(&loaded, invocation.ambient()?.now());
                    output::print(&format!("{}* reviews when nobody else is named\n", table.render(&look)))?;
                }
            }
            Ok(Exit::Done)
        }
        Command::Test { name, format } => {
            let settings = settings_of(&loaded.settings, name)?;
            let facts = models.of(settings);
            super::interrupt::leave_with(format!("{} was not waited for", one_line(name)));
            let trial = try_out(name, settings, &models, &invocation.paths, &|| false).map_err(|error| {
                CliError::failed(format!("{name} does not answer: {}", error.summary))
                    .hint(format!("that is an error of class {}; `revdeck doctor` checks the settings", error.class))
            })?;
            match format {
                PlainFormat::Json => output::print_json(&trial_json(name, settings, &facts, &trial))?,
                PlainFormat::Text => output::print(&trial_text(name, settings, &facts, &trial))?,
            }
            Ok(Exit::Done)
        }
    }
}

fn settings_of<'a>(settings: &'a Settings, name: &str) -> Result<&'a ReviewerSettings, CliError> {
    let models = || settings.reviewers.iter().filter(|(_, reviewer)| reviewer.kind != ReviewerKind::Builtin);
    match settings.reviewers.get(name) {
        Some(reviewer) if reviewer.kind != ReviewerKind::Builtin => Ok(reviewer),
        Some(_) => Err(builtin()),
        None if name == "builtin" => Err(builtin()),
        None => {
            let known: Vec<&str> = models().map(|(name, _)| name.as_str()).collect();
            let hint = match known.is_empty() {
                true => "describe one in your config.toml: `revdeck config defaults` shows how".to_owned(),
                false => format!("there are: {}", known.join(", ")),
            };
            Err(CliError::usage(format!("there is no reviewer named {name:?} that talks to a model")).hint(hint))
        }
    }
}

fn builtin() -> CliError {
    CliError::usage("the built-in reviewer talks to nobody: there is nothing to test".to_owned())
        .hint("`revdeck review --wait` tries it")
}

/// A reviewer in the list.
struct Row {
    name: String,
    default: bool,
    kind: &'static str,
    model: String,
    window: String,
    price: String,
    key: String,
    /// Something it needs is not there.
    missing: bool,
    facts: Option<ModelFacts>,
}

impl Row {
    fn json(&self) -> Value {
        let facts = self.facts.as_ref();
        json!({
            "name": self.name, "default": self.default, "kind": self.kind, "model": self.model, "key": self.key,
            "ready": !self.missing,
            "context_window": facts.map(|facts| facts.context_window),
            "max_output": facts.map(|facts| facts.max_output),
            "known": facts.is_some_and(|facts| facts.known != Known::Guess),
            "price": facts.and_then(|facts| facts.price.as_ref()).map(|price| json!({
                "input": price.input.as_f64(), "cached": price.cached.as_f64(), "output": price.output.as_f64(),
                "from": price.from,
            })),
        })
    }
}

fn rows(settings: &Settings, models: &Models) -> Vec<Row> {
    let default = |name: &str| settings.default_reviewer == name;
    let mut rows = vec![Row {
        name: "builtin".to_owned(),
        default: default("builtin"),
        kind: "builtin",
        model: "-".to_owned(),
        window: "-".to_owned(),
        price: "free".to_owned(),
        key: "needs none".to_owned(),
        missing: false,
        facts: None,
    }];
    for (name, reviewer) in &settings.reviewers {
        if reviewer.kind == ReviewerKind::Builtin {
            continue;
        }
        let facts = (reviewer.kind != ReviewerKind::Command).then(|| models.of(reviewer));
        let (key, missing) = key(reviewer);
        rows.push(Row {
            name: one_line(name).into_owned(),
            default: default(name),
            kind: reviewer.kind.word(),
            model: match reviewer.kind {
                ReviewerKind::Command => one_line(&reviewer.command.join(" ")).into_owned(),
                _ => one_line(&reviewer.model).into_owned(),
            },
            window: facts.as_ref().map_or("-".to_owned(), window),
            price: facts.as_ref().map_or("its own".to_owned(), price),
            key,
            missing,
            facts,
        });
    }
    rows
}

/// Where the key comes from, and whether it is missing. A command for it is not run.
fn key(reviewer: &ReviewerSettings) -> (String, bool) {
    match (reviewer.kind, reviewer.key_source()) {
        (ReviewerKind::Command, _) => ("its own".to_owned(), false),
        (_, KeySource::None) => ("no key".to_owned(), false),
        (_, KeySource::Command(_)) => ("key from api_key_cmd".to_owned(), false),
        (_, KeySource::Variable(name)) => match variable(name).is_some_and(|key| !key.trim().is_empty()) {
            true => (format!("{name} is set"), false),
            false => (format!("{name} is not set"), true),
        },
    }
}

fn window(facts: &ModelFacts) -> String {
    let guess = if facts.known == Known::Guess { " (guess)" } else { "" };
    format!("{}k window{guess}", facts.context_window / 1000)
}

fn price(facts: &ModelFacts) -> String {
    match &facts.price {
        None => "price not known".to_owned(),
        Some(price) if price.is_free() => "free".to_owned(),
        Some(price) => format!("${} in, ${} out per M ({})", price.input, price.output, one_line(&price.from)),
    }
}

fn tools_word(trial: &Trial) -> &'static str {
    match trial.tools {
        ToolsTried::Called => "called as asked",
        ToolsTried::NotCalled => "given and not called",
        ToolsTried::NotGiven => "none given",
    }
}

fn trial_text(name: &str, settings: &ReviewerSettings, facts: &ModelFacts, trial: &Trial) -> String {
    let answered = if trial.model.is_empty() { &settings.model } else { &trial.model };
    let usage = &trial.usage;
    let cost = trial.cost.map_or("price not known".to_owned(), |cost| format!("${cost:.6}"));
    let lines = [
        format!("{} answers", one_line(name)),
        format!("  model      {} (asked for {})", one_line(answered), one_line(&settings.model)),
        format!("  latency    {} ms to the first byte, {} ms in all", trial.first.as_millis(), trial.total.as_millis()),
        format!(
            "  window     {} tokens, answers up to {}{}",
            facts.context_window,
            facts.max_output,
            if facts.known == Known::Guess { " (a guess: the model is not in models.toml)" } else { "" }
        ),
        format!("  tools      {}", tools_word(trial)),
        format!("  streaming  {}", if trial.pieces > 1 { "yes" } else { "in one piece" }),
        format!("  used       {} tokens in, {} out; {cost}", usage.input, usage.output + usage.reasoning),
    ];
    lines.join("\n") + "\n"
}

fn trial_json(name: &str, settings: &ReviewerSettings, facts: &ModelFacts, trial: &Trial) -> Value {
    report::versioned([
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
                ToolsTried::Called => "called",
                ToolsTried::NotCalled => "not_called",
                ToolsTried::NotGiven => "not_given",
            }),
        ),
        ("streaming", json!(trial.pieces > 1)),
        ("tokens", json!(trial.usage)),
        ("cost", json!(trial.cost)),
    ])
}
