//! `revdeck config`: the settings in force and where each came from; where the files are.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use super::session::{self, Invocation};
use crate::config::{Loaded, Origin, PromptName, REPOSITORY_FILE, Texts, Value as Given, embedded};
use crate::git::Repo;
use crate::report::{Look, Paint, Table, json};

/// Arguments of `config`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the settings in force
    Show {
        /// Say where each value came from
        #[arg(long)]
        origin: bool,
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Print where the settings file and the others are
    Path {
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Print a documented file of defaults, to start your own from
    Defaults {
        /// config, smells, keymap, models, or prompts/NAME
        #[arg(default_value = "config", value_name = "FILE", value_parser = default_file)]
        file: DefaultFile,
    },
}

/// A file that ships inside the program.
#[derive(Debug, Clone, Copy)]
struct DefaultFile {
    text: &'static str,
}

fn default_file(name: &str) -> Result<DefaultFile, String> {
    let files = [
        ("config", embedded::CONFIG),
        ("smells", embedded::SMELLS),
        ("keymap", embedded::KEYMAP),
        ("models", embedded::MODELS),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text)).into_iter();
    let prompts = PromptName::ALL.iter().map(|prompt| (format!("prompts/{}", prompt.file()), prompt.text()));
    let files: Vec<(String, &str)> = files.chain(prompts).collect();
    let found = files.iter().find(|(known, _)| known == name).map(|(_, text)| DefaultFile { text });
    found.ok_or_else(|| {
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        format!("there are {}", names.join(", "))
    })
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    match &arguments.command {
        Command::Path { format } => paths(invocation, *format)?,
        Command::Defaults { file } => output::print(file.text)?,
        Command::Show { origin, format } => {
            let root = Repo::discover(&Invocation::here()?).ok().map(|repo| repo.root());
            let loaded = invocation.reading_settings(root.as_deref(), Texts::All)?;
            match format {
                PlainFormat::Text => {
                    let look = session::look(&loaded, invocation.ambient()?.now());
                    output::print(&as_text(&look, &loaded, *origin))?;
                }
                PlainFormat::Json => output::print_json(&as_json(&loaded))?,
            }
        }
    }
    Ok(Exit::Done)
}

fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::User(place) => format!("user, {place}"),
        Origin::Repository(place) => format!("repository, {place}"),
        Origin::Environment(place) | Origin::Flag(place) => place.to_string(),
    }
}

fn value_text(value: &Given) -> String {
    match value {
        Given::Text(text) => format!("{text:?}"),
        Given::Count(number) => number.to_string(),
        Given::Money(amount) => amount.to_string(),
        Given::Flag(flag) => flag.to_string(),
        Given::List(items) => format!("{items:?}"),
    }
}

fn as_text(look: &Look, loaded: &Loaded, origin: bool) -> String {
    let mut table = Table::default();
    let mut row = |key: &str, value: &str, from: &str| {
        let line = format!("{key} = {value}");
        let from = if origin { format!("# {from}") } else { String::new() };
        table.row([(Paint::Plain, line.as_str()), (Paint::Faint, from.as_str())]);
    };
    for setting in loaded.shown.iter().chain(&loaded.reviewers) {
        row(&setting.key, &value_text(&setting.value), &origin_text(&setting.origin));
    }
    for (key, value, from) in &loaded.thresholds {
        row(key, value, &origin_text(from));
    }
    table.render(look)
}

fn as_json(loaded: &Loaded) -> Value {
    let from = |origin: &Origin| {
        let (layer, place) = match origin {
            Origin::Default => ("default", Value::Null),
            Origin::User(place) => ("user", json!(place.to_string())),
            Origin::Repository(place) => ("repository", json!(place.to_string())),
            Origin::Environment(place) => ("environment", json!(place.to_string())),
            Origin::Flag(place) => ("flag", json!(place.to_string())),
        };
        (layer, place)
    };
    let mut settings = Map::new();
    for setting in loaded.shown.iter().chain(&loaded.reviewers) {
        let (layer, place) = from(&setting.origin);
        settings.insert(setting.key.clone(), json!({ "value": setting.value, "origin": layer, "place": place }));
    }
    for (key, value, origin) in &loaded.thresholds {
        let (layer, place) = from(origin);
        settings.insert(key.clone(), json!({ "value": value, "origin": layer, "place": place }));
    }
    let reviewers = loaded.settings.reviewers.iter().map(|(name, reviewer)| {
        let fields: Map<String, Value> =
            reviewer.shown().into_iter().map(|(field, value)| (field.to_owned(), json!(value))).collect();
        (name.clone(), Value::Object(fields))
    });
    let reviewers: Map<String, Value> = reviewers.collect();
    json::versioned([
        ("settings", Value::Object(settings)),
        ("reviewers", Value::Object(reviewers)),
        ("warnings", json!(loaded.warnings)),
    ])
}

fn paths(invocation: &Invocation, format: PlainFormat) -> Result<(), CliError> {
    let paths = &invocation.paths;
    let repository = Repo::discover(&Invocation::here()?).ok().map(|repo| repo.root().join(REPOSITORY_FILE));
    let mut listed = vec![
        ("config", paths.config_file()),
        ("smells", paths.smells_file()),
        ("keymap", paths.keymap_file()),
        ("models", paths.models_file()),
        ("prompts", paths.prompts_folder()),
        ("themes", paths.config.join("themes")),
        ("state", paths.state.clone()),
        ("cache", paths.cache.clone()),
        ("logs", paths.logs.clone()),
    ];
    listed.extend(repository.map(|path| ("repository", path)));
    match format {
        PlainFormat::Json => {
            let object: Map<String, Value> = listed
                .iter()
                .map(|(name, path)| {
                    ((*name).to_owned(), json!({ "path": path.to_string_lossy(), "exists": path.exists() }))
                })
                .collect();
            output::print_json(&json::versioned([("paths", Value::Object(object))]))
        }
        PlainFormat::Text => {
            let mut text = String::new();
            for (name, path) in listed {
                let missing = if path.exists() { "" } else { "  (not there)" };
                text.push_str(&format!("{name:<11} {}{missing}\n", output::path(&path)));
            }
            output::print(&text)
        }
    }
}
