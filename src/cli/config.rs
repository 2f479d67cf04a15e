//! `revdeck config`: prints settings, their origins, the paths of settings files, and the default files.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::{self, Invocation};
use crate::config::{
    LoadedSettings, PromptName, REPOSITORY_FILE, RequiredAssets, SettingOrigin, SettingValue as Given, embedded,
};
use crate::git::Repo;
use crate::report::{TextOptions, TextStyle, TextTable, json};

/// Arguments of `config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the effective settings
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Print the paths of the settings files and folders
    Path {
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Print a default file with comments, as a template for your own
    Defaults {
        /// File to print: config, smells, keymap, keymaps/NAME, models or prompts/NAME
        #[arg(default_value = "config", value_name = "FILE", value_parser = default_file)]
        file: DefaultFile,
    },
}

/// Default file that is embedded in the program.
#[derive(Debug, Clone, Copy)]
struct DefaultFile {
    text: &'static str,
}

fn default_file(name: &str) -> Result<DefaultFile, String> {
    let files = [
        ("config", embedded::CONFIG),
        ("smells", embedded::SMELLS),
        ("keymap", embedded::KEYMAP),
        ("keymaps/vim", embedded::KEYMAP_VIM),
        ("keymaps/emacs", embedded::KEYMAP_EMACS),
        ("keymaps/arrows", embedded::KEYMAP_ARROWS),
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

/// Runs `revdeck config`.
///
/// # Errors
///
/// Returns an error if a settings file cannot be read.
pub fn run(invocation: &Invocation, arguments: &ConfigArgs) -> Result<CliExitCode, CliError> {
    match &arguments.command {
        ConfigCommand::Path { format } => print_paths(invocation, *format)?,
        ConfigCommand::Defaults { file } => output::print(file.text)?,
        ConfigCommand::Show { origin, format } => {
            let repo = Repo::discover(&Invocation::current_folder()?).ok();
            let root = repo.as_ref().map(Repo::root);
            let loaded = invocation.load_reading_settings(root.as_deref(), RequiredAssets::All)?;
            session::warn_of_keymap_faults(&loaded);
            let head = repo.and_then(|repo| invocation.load_settings_at_head(&repo));
            let differing = head.map_or_else(Vec::new, |head| list_differing(&loaded, &head));
            match format {
                PlainFormat::Text => {
                    let look = session::detect_look(&loaded, invocation.clock_and_ids()?.now());
                    let text = as_text(&look, &loaded, *origin) + &differing_as_text(&look, &differing, *origin);
                    output::print(&text)?;
                }
                PlainFormat::Json => output::print_json(&as_json(&loaded, &differing))?,
            }
        }
    }
    Ok(CliExitCode::Done)
}

fn format_origin(origin: &SettingOrigin) -> String {
    match origin {
        SettingOrigin::Default => "default".to_owned(),
        SettingOrigin::User(place) => format!("user, {place}"),
        SettingOrigin::Repository(place) => format!("repository, {place}"),
        SettingOrigin::Environment(place) | SettingOrigin::Flag(place) => place.to_string(),
    }
}

fn format_value(value: &Given) -> String {
    match value {
        Given::Text(text) => format!("{text:?}"),
        Given::Count(number) => number.to_string(),
        Given::Money(amount) => amount.to_string(),
        Given::Flag(flag) => flag.to_string(),
        Given::List(items) => format!("{items:?}"),
    }
}

/// Keys that a review reads at the base of its change, besides the thresholds.
const KEYS_OF_THE_BASE: [&str; 3] = ["ignored_paths", "max_file_bytes", "fail_on"];

/// Setting with its printed value.
struct PrintedSetting {
    key: String,
    /// As in a settings file.
    value: String,
    origin: SettingOrigin,
}

/// Lists the settings that reviews of uncommitted changes obey as they are at HEAD, and that the file in the worktree
/// sets otherwise.
fn list_differing(worktree: &LoadedSettings, head: &LoadedSettings) -> Vec<PrintedSetting> {
    let list = |loaded: &LoadedSettings| {
        let entries = loaded.entries.iter().filter(|entry| KEYS_OF_THE_BASE.contains(&entry.key.as_str()));
        let entries = entries.map(|entry| PrintedSetting {
            key: entry.key.clone(),
            value: format_value(&entry.value),
            origin: entry.origin.clone(),
        });
        let thresholds = loaded.thresholds.iter().map(|(key, value, origin)| PrintedSetting {
            key: key.clone(),
            value: value.clone(),
            origin: origin.clone(),
        });
        entries.chain(thresholds).collect::<Vec<_>>()
    };
    let (here, there) = (list(worktree), list(head));
    let find = |list: &[PrintedSetting], key: &str| list.iter().find(|one| one.key == key).map(|one| one.value.clone());
    // A threshold is only listed where it is changed.
    let gone = here.iter().filter(|one| find(&there, &one.key).is_none()).map(|one| PrintedSetting {
        key: one.key.clone(),
        value: "default".to_owned(),
        origin: SettingOrigin::Default,
    });
    let gone: Vec<PrintedSetting> = gone.collect();
    let changed = there.into_iter().filter(|one| find(&here, &one.key).as_ref() != Some(&one.value));
    changed.chain(gone).collect()
}

fn differing_as_text(look: &TextOptions, differing: &[PrintedSetting], origin: bool) -> String {
    if differing.is_empty() {
        return String::new();
    }
    let mut table = TextTable::default();
    for PrintedSetting { key, value, origin: from } in differing {
        let line = format!("{key} = {value}");
        let from = origin.then(|| format_origin(from));
        let stricter = (key == "fail_on").then(|| "the stricter of both holds".to_owned());
        let notes = from.into_iter().chain(stricter).collect::<Vec<_>>().join("; ");
        let notes = if notes.is_empty() { notes } else { format!("# {notes}") };
        table.push_row([(TextStyle::Plain, line.as_str()), (TextStyle::Faint, notes.as_str())]);
    }
    let head = format!(
        "\n# {REPOSITORY_FILE} of the worktree is not the one at HEAD. Reviews of uncommitted changes obey HEAD's:\n"
    );
    head + &table.render(look)
}

fn as_text(look: &TextOptions, loaded: &LoadedSettings, origin: bool) -> String {
    let mut table = TextTable::default();
    let mut row = |key: &str, value: &str, from: &str| {
        let line = format!("{key} = {value}");
        let from = if origin { format!("# {from}") } else { String::new() };
        table.push_row([(TextStyle::Plain, line.as_str()), (TextStyle::Faint, from.as_str())]);
    };
    for setting in loaded.entries.iter().chain(&loaded.reviewers) {
        row(&setting.key, &format_value(&setting.value), &format_origin(&setting.origin));
    }
    for (key, value, from) in &loaded.thresholds {
        row(key, value, &format_origin(from));
    }
    table.render(look)
}

fn as_json(loaded: &LoadedSettings, differing: &[PrintedSetting]) -> Value {
    let from = |origin: &SettingOrigin| {
        let (layer, place) = match origin {
            SettingOrigin::Default => ("default", Value::Null),
            SettingOrigin::User(place) => ("user", json!(place.to_string())),
            SettingOrigin::Repository(place) => ("repository", json!(place.to_string())),
            SettingOrigin::Environment(place) => ("environment", json!(place.to_string())),
            SettingOrigin::Flag(place) => ("flag", json!(place.to_string())),
        };
        (layer, place)
    };
    let mut settings = Map::new();
    for setting in loaded.entries.iter().chain(&loaded.reviewers) {
        let (layer, place) = from(&setting.origin);
        settings.insert(setting.key.clone(), json!({ "value": setting.value, "origin": layer, "place": place }));
    }
    for (key, value, origin) in &loaded.thresholds {
        let (layer, place) = from(origin);
        settings.insert(key.clone(), json!({ "value": value, "origin": layer, "place": place }));
    }
    let reviewers = loaded.settings.reviewers.iter().map(|(name, reviewer)| {
        let fields: Map<String, Value> =
            reviewer.list_fields().into_iter().map(|(field, value)| (field.to_owned(), json!(value))).collect();
        (name.clone(), Value::Object(fields))
    });
    let reviewers: Map<String, Value> = reviewers.collect();
    let obeyed = differing.iter().map(|one| {
        let (layer, place) = from(&one.origin);
        (one.key.clone(), json!({ "value": one.value, "origin": layer, "place": place }))
    });
    json::build_versioned([
        ("settings", Value::Object(settings)),
        ("reviewers", Value::Object(reviewers)),
        ("warnings", json!(loaded.warnings)),
        ("obeyed_at_head", Value::Object(obeyed.collect())),
    ])
}

fn print_paths(invocation: &Invocation, format: PlainFormat) -> Result<(), CliError> {
    let paths = &invocation.paths;
    let repository = Repo::discover(&Invocation::current_folder()?).ok().map(|repo| repo.root().join(REPOSITORY_FILE));
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
            output::print_json(&json::build_versioned([("paths", Value::Object(object))]))
        }
        PlainFormat::Text => {
            let mut text = String::new();
            for (name, path) in listed {
                let missing = if path.exists() { "" } else { "  (not there)" };
                text.push_str(&format!("{name:<11} {}{missing}\n", output::format_path(&path)));
            }
            output::print(&text)
        }
    }
}
