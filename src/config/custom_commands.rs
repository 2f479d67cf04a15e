//! Reads the user's own commands of the cockpit: `[commands.NAME]` tables. A repository cannot define any.

use std::fmt;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::closest_word::did_you_mean;
use super::command_prompts::{CommandPrompt, parse_prompts};
use super::error::{ConfigError, SettingLocation};
use super::keys::SettingValue;
use super::settings_file::{SettingsFile, parse_value};
use crate::domain::{text, word_enum};

word_enum!(
    /// Place in which a program of the user runs.
    CommandPlace {
        /// Beside the cockpit, which shows its result in one line.
        Background = "background",
        /// In the terminal, in place of the cockpit, until it ends.
        Terminal = "terminal",
    }
);

word_enum!(
    /// Field of the selected item that a command receives.
    CommandField {
        /// Path relative to the root of the repository.
        Path = "path",
        /// First line, 1-based.
        Line = "line",
        /// Last line, 1-based.
        EndLine = "end_line",
        /// Finding id.
        Id = "id",
        Kind = "kind",
        Priority = "priority",
        Status = "status",
        Title = "title",
        /// Id of the run.
        Run = "run",
    }
);

/// Command that runs a program with fields of the selected item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomCommand {
    /// Name of the table.
    pub name: String,
    /// Key sequence in the words of a keymap; empty for a command of the palette.
    pub key: String,
    /// Program and arguments; with `shell`, the only word is a command line.
    pub run: Vec<CommandWord>,
    /// True if a shell runs the command line.
    pub shell: bool,
    /// Place in which the program runs.
    pub place: CommandPlace,
    /// True if what the program has printed in the terminal stays until the user presses Enter.
    pub pause: bool,
    /// Questions that are asked before the program runs, in their order.
    pub prompts: Vec<CommandPrompt>,
    /// Place of the key in the settings, else of the table.
    pub location: SettingLocation,
}

impl CustomCommand {
    /// Returns the name, safe for a terminal.
    pub fn display_name(&self) -> String {
        text::sanitize_line(&self.name).into_owned()
    }

    /// Describes the command for the help: its name and its program.
    pub fn describe(&self) -> String {
        let words: Vec<String> = self.run.iter().map(ToString::to_string).collect();
        text::sanitize_line(&format!("{}: {}", self.name, words.join(" "))).into_owned()
    }
}

/// Argument of a command, in the order of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWord(pub Vec<CommandPart>);

/// Part of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandPart {
    /// Text as it is.
    Text(String),
    /// Value of a field.
    Field(CommandField),
    /// Answer to the question with this name.
    Answer(String),
}

impl fmt::Display for CommandWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            CommandPart::Text(text) => f.write_str(text),
            CommandPart::Field(field) => write!(f, "{{{field}}}"),
            CommandPart::Answer(name) => write!(f, "{{{name}}}"),
        })
    }
}

impl CommandWord {
    /// Parses a text with fields and names of questions in braces; `{{` and `}}` are braces.
    fn parse(text: &str, prompts: &[CommandPrompt]) -> Result<Self, String> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = behind;
                continue;
            }
            let Some((name, behind)) = rest.split_once('}').filter(|_| brace == "{") else {
                return Err(format!("has a single {brace} in {text:?}; write {brace}{brace} for a brace"));
            };
            let part = match name.parse::<CommandField>() {
                Ok(field) => CommandPart::Field(field),
                Err(_) if prompts.iter().any(|prompt| prompt.name == name) => CommandPart::Answer(name.to_owned()),
                Err(_) => {
                    let meant = did_you_mean(name, list_names(prompts));
                    return Err(format!("has {{{name}}}, which is no field{meant}"));
                }
            };
            if !plain.is_empty() {
                parts.push(CommandPart::Text(std::mem::take(&mut plain)));
            }
            parts.push(part);
            rest = behind;
        }
        plain.push_str(rest);
        if !plain.is_empty() || parts.is_empty() {
            parts.push(CommandPart::Text(plain));
        }
        Ok(Self(parts))
    }
}

/// Lists the names that may stand in braces: those of the fields and of the questions.
fn list_names(prompts: &[CommandPrompt]) -> impl Iterator<Item = &str> {
    CommandField::WORDS.iter().copied().chain(prompts.iter().map(|prompt| prompt.name.as_str()))
}

const FIELDS: [&str; 6] = ["key", "run", "shell", "where", "pause", "prompts"];

/// Parses a `[commands.NAME]` table.
///
/// # Errors
///
/// Fails at the first field that is unknown or has an unusable value.
pub fn parse_command(
    document: &SettingsFile,
    name: &Spanned<std::borrow::Cow<'_, str>>,
    found: &Spanned<DeValue<'_>>,
) -> Result<CustomCommand, ConfigError> {
    let table_key = format!("commands.{}", name.get_ref());
    let start = name.span().start;
    let DeValue::Table(table) = found.get_ref() else {
        return Err(document.value_error(start, &table_key, "is no table", describe_table()));
    };
    let value_of = |field: &str| find_field(table, field);
    for (field, value) in table {
        if !FIELDS.contains(&field.get_ref().as_ref()) {
            let problem = format!(
                "there is no key {:?}{}",
                text::sanitize_line(field.get_ref()),
                did_you_mean(field.get_ref(), FIELDS)
            );
            let key = format!("{table_key}.{}", field.get_ref());
            let _ = value;
            return Err(document.value_error(field.span().start, &key, problem, FIELDS.join(", ")));
        }
    }
    let wrong = |field: &str, offset: usize, problem: String, allowed: &str| {
        document.value_error(offset, &format!("{table_key}.{field}"), problem, allowed.to_owned())
    };
    let key = match value_of("key") {
        None => String::new(),
        Some((value, offset)) => match value {
            Ok(SettingValue::Text(key)) if !key.trim().is_empty() => key,
            other => return Err(wrong("key", offset, describe_wrong(other), "a key or a sequence, such as \"g b\"")),
        },
    };
    let flag = |field: &str, default: bool| match value_of(field) {
        None => Ok(default),
        Some((Ok(SettingValue::Flag(flag)), _)) => Ok(flag),
        Some((other, offset)) => Err(wrong(field, offset, describe_wrong(other), "true or false")),
    };
    let (shell, pause) = (flag("shell", false)?, flag("pause", true)?);
    let place = match value_of("where") {
        None => CommandPlace::Background,
        Some((value, offset)) => match &value {
            Ok(SettingValue::Text(word)) if word.parse::<CommandPlace>().is_ok() => {
                word.parse().unwrap_or(CommandPlace::Background)
            }
            _ => return Err(wrong("where", offset, describe_wrong(value), &CommandPlace::WORDS.join(", "))),
        },
    };
    let (run, run_offset) = match value_of("run") {
        None => return Err(document.value_error(start, &table_key, "needs run", describe_table())),
        Some((Ok(SettingValue::List(words)), offset)) if !words.is_empty() && !words[0].trim().is_empty() => {
            (words, offset)
        }
        Some((other, offset)) => {
            return Err(wrong("run", offset, describe_wrong(other), "a list: [\"program\", \"{path}\"]"));
        }
    };
    if shell && run.len() > 1 {
        let problem = "has several words beside shell = true".to_owned();
        return Err(wrong("run", run_offset, problem, "one command line: [\"git log {path} | head\"]"));
    }
    let prompts = match table.iter().find(|(field, _)| field.get_ref() == "prompts") {
        Some((_, found)) => parse_prompts(document, &table_key, found)?,
        None => Vec::new(),
    };
    let words = run.iter().map(|word| CommandWord::parse(word, &prompts));
    let run = words.collect::<Result<Vec<_>, _>>().map_err(|problem| {
        let fields: Vec<String> = list_names(&prompts).map(|word| format!("{{{word}}}")).collect();
        wrong("run", run_offset, problem, &fields.join(", "))
    })?;
    let at = table.iter().find(|(field, _)| field.get_ref() == "key").map_or(start, |(field, _)| field.span().start);
    let (name, location) = (name.get_ref().to_string(), document.location_at(at));
    Ok(CustomCommand { name, key, run, shell, place, pause, prompts, location })
}

/// Returns the value of a field and its byte offset.
pub(super) fn find_field(table: &DeTable<'_>, name: &str) -> Option<(Result<SettingValue, String>, usize)> {
    let (_, value) = table.iter().find(|(field, _)| field.get_ref() == name)?;
    Some((parse_value(value.get_ref()), value.span().start))
}

fn describe_wrong(value: Result<SettingValue, String>) -> String {
    match value {
        Ok(SettingValue::Text(text)) => format!("is {:?}", text::sanitize_line(&text)),
        Ok(SettingValue::Count(number)) => format!("is {number}"),
        Ok(SettingValue::Money(amount)) => format!("is {amount}"),
        Ok(SettingValue::Flag(flag)) => format!("is {flag}"),
        Ok(SettingValue::List(_)) => "is a list without a program".to_owned(),
        Err(problem) => problem,
    }
}

fn describe_table() -> String {
    "a table with run = [\"program\", \"{path}\"] and, if you like, key, shell, where, pause, prompts".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_out_of_words() {
        let text = |text: &str| CommandPart::Text(text.to_owned());
        for (word, parts) in [
            ("plain", vec![text("plain")]),
            ("", vec![text("")]),
            ("{path}", vec![CommandPart::Field(CommandField::Path)]),
            (
                "+{line}:{path}!",
                vec![
                    text("+"),
                    CommandPart::Field(CommandField::Line),
                    text(":"),
                    CommandPart::Field(CommandField::Path),
                    text("!"),
                ],
            ),
            ("a{{path}}{{{id}", vec![text("a{path}{"), CommandPart::Field(CommandField::Id)]),
        ] {
            assert_eq!(CommandWord::parse(word, &[]), Ok(CommandWord(parts)), "{word}");
        }
        let prompt = |name: &str| CommandPrompt {
            name: name.to_owned(),
            title: "Why?".to_owned(),
            default: String::new(),
            choices: Vec::new(),
        };
        let prompts = [prompt("reason"), prompt("label")];
        let parsed = CommandWord::parse("{id}: {reason}", &prompts).expect("a word");
        let answer = CommandPart::Answer("reason".to_owned());
        assert_eq!(parsed.0, [CommandPart::Field(CommandField::Id), text(": "), answer]);
        assert_eq!(parsed.to_string(), "{id}: {reason}");
        let problem = "has {lable}, which is no field; did you mean \"label\"?";
        assert_eq!(CommandWord::parse("{lable}", &prompts), Err(problem.to_owned()));
        for (word, problem) in [
            ("{pth}", "has {pth}, which is no field; did you mean \"path\"?"),
            ("a{path", "has a single { in \"a{path\"; write {{ for a brace"),
            ("a}b", "has a single } in \"a}b\"; write }} for a brace"),
        ] {
            assert_eq!(CommandWord::parse(word, &[]), Err(problem.to_owned()), "{word}");
        }
    }
}
