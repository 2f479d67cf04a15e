//! `revdeck keys`: prints the keys of the cockpit by context, with the file of the user that binds each, or `built-in`.

use clap::Args;
use serde_json::{Map, Value, json};

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::{self, Invocation};
use crate::config::RequiredAssets;
use crate::git::Repo;
use crate::report::{TextOptions, TextStyle, TextTable, json};
use crate::tui::keymap::{KeyBinding, KeyContext, Keymap};

/// Arguments of `keys`.
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Runs `revdeck keys`.
///
/// # Errors
///
/// Returns an error if the current folder is gone or standard output cannot be written.
pub fn run(invocation: &Invocation, arguments: &KeysArgs) -> Result<CliExitCode, CliError> {
    let root = Repo::discover(&Invocation::current_folder()?).ok().map(|repo| repo.root());
    let loaded = invocation.load_reading_settings(root.as_deref(), RequiredAssets::All)?;
    session::warn_of_keymap_faults(&loaded);
    let (keymap, _) = Keymap::from_settings(&loaded.settings);
    match arguments.format {
        PlainFormat::Text => {
            let look = session::detect_look(&loaded, invocation.clock_and_ids()?.now());
            output::print(&as_text(&keymap, loaded.settings.keys.word(), &look))?;
        }
        PlainFormat::Json => output::print_json(&as_json(&keymap, loaded.settings.keys.word()))?,
    }
    Ok(CliExitCode::Done)
}

/// Returns the bindings that the files make in a context, without the inherited ones.
fn own_bindings(keymap: &Keymap, context: KeyContext) -> impl Iterator<Item = &KeyBinding> {
    keymap.bindings(context).iter().filter(move |binding| binding.context == context)
}

fn as_text(keymap: &Keymap, preset: &str, look: &TextOptions) -> String {
    let mut text = format!("# keys = {preset:?}; a context takes the keys that it does not bind from [global]\n");
    for context in keymap.contexts() {
        let mut table = TextTable::default();
        for binding in own_bindings(keymap, context) {
            let keys = binding.keys.to_string();
            let action = binding.action.map_or("false".into(), |action| keymap.name(action));
            let help = binding.action.map_or("taken away".into(), |action| keymap.help_text_in(context, action));
            let source = keymap.files.get(binding.origin.file);
            let place = source.map_or_else(String::new, |source| source.describe_line(binding.origin.line));
            table.push_row([
                (TextStyle::Plain, keys.as_str()),
                (TextStyle::Plain, &*action),
                (TextStyle::Plain, &*help),
                (TextStyle::Faint, place.as_str()),
            ]);
        }
        if !table.is_empty() {
            text.push_str(&format!("\n[{}]\n{}", context.name(), table.render(look)));
        }
    }
    text
}

fn as_json(keymap: &Keymap, preset: &str) -> Value {
    let contexts = keymap.contexts().map(|context| {
        let bindings = own_bindings(keymap, context).map(|binding| {
            let source = keymap.files.get(binding.origin.file);
            let line = source.filter(|source| !source.is_built_in).map(|_| binding.origin.line);
            json!({
                "keys": binding.keys.to_string(),
                "action": binding.action.map(|action| keymap.name(action)),
                "text": binding.action.map(|action| keymap.help_text_in(context, action)),
                "file": source.map(|source| source.shown_name()),
                "line": line,
            })
        });
        (context.name().to_owned(), bindings.collect::<Vec<_>>().into())
    });
    let mut files: Vec<&str> = keymap.files.iter().map(|source| source.shown_name()).collect();
    // All built-in files lie below those of the user.
    files.dedup();
    json::build_versioned([
        ("preset", json!(preset)),
        ("files", json!(files)),
        ("contexts", Value::Object(contexts.collect::<Map<_, _>>())),
    ])
}
