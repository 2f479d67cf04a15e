//! Reads the questions that a command of the user asks before it runs: `prompts = [{ name = "reason", title = "Why?" }]`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::closest_word::did_you_mean;
use super::custom_commands::{CommandField, find_field};
use super::error::ConfigError;
use super::keys::SettingValue;
use super::settings_file::SettingsFile;
use crate::domain::text;

/// Question that a command asks before it runs. The answer stands in its arguments as `{NAME}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPrompt {
    /// Name in the arguments: a small letter, then small letters, digits and `_`.
    pub name: String,
    /// Question; the name if the settings have none.
    pub title: String,
    /// Answer that is offered; empty for none.
    pub default: String,
    /// Answers to choose from; none if the answer is typed.
    pub choices: Vec<String>,
}

const FIELDS: [&str; 4] = ["name", "title", "default", "choices"];
const SAMPLE: &str = "a list of tables: [{ name = \"reason\", title = \"Why?\" }]";

/// Parses the list of questions of a command, whose settings begin with `table_key`.
///
/// # Errors
///
/// Fails at the first question that has an unknown field, or an unusable or missing value.
pub(super) fn parse_prompts(
    document: &SettingsFile,
    table_key: &str,
    found: &Spanned<DeValue<'_>>,
) -> Result<Vec<CommandPrompt>, ConfigError> {
    let key = format!("{table_key}.prompts");
    let DeValue::Array(items) = found.get_ref() else {
        return Err(document.value_error(found.span().start, &key, "is no list", SAMPLE.to_owned()));
    };
    let mut prompts: Vec<CommandPrompt> = Vec::new();
    for item in items.iter() {
        let start = item.span().start;
        let DeValue::Table(table) = item.get_ref() else {
            return Err(document.value_error(
                start,
                &key,
                "has something else than tables in its list",
                SAMPLE.to_owned(),
            ));
        };
        let prompt = parse_prompt(document, &key, (table, start))?;
        if prompts.iter().any(|other| other.name == prompt.name) {
            let problem = format!("has the name {:?} twice", prompt.name);
            return Err(document.value_error(start, &key, problem, "another name for each question".to_owned()));
        }
        prompts.push(prompt);
    }
    Ok(prompts)
}

fn parse_prompt(
    document: &SettingsFile,
    key: &str,
    (table, start): (&DeTable<'_>, usize),
) -> Result<CommandPrompt, ConfigError> {
    for field in table.keys() {
        if !FIELDS.contains(&field.get_ref().as_ref()) {
            let meant = did_you_mean(field.get_ref(), FIELDS);
            let problem = format!("there is no key {:?}{meant}", text::sanitize_line(field.get_ref()));
            let key = format!("{key}.{}", field.get_ref());
            return Err(document.value_error(field.span().start, &key, problem, FIELDS.join(", ")));
        }
    }
    let wrong = |field: &str, offset: usize, problem: String, allowed: &str| {
        document.value_error(offset, &format!("{key}.{field}"), problem, allowed.to_owned())
    };
    let read_text = |field: &str| match find_field(table, field) {
        None => Ok(None),
        Some((Ok(SettingValue::Text(text)), offset)) => Ok(Some((text, offset))),
        Some((_, offset)) => Err(wrong(field, offset, "is no text".to_owned(), "a text")),
    };
    let Some((name, offset)) = read_text("name")? else {
        return Err(document.value_error(start, key, "has a question without a name", SAMPLE.to_owned()));
    };
    check_name(&name).map_err(|problem| {
        wrong("name", offset, problem, "a small letter, then small letters, digits and _; no field of a finding")
    })?;
    let title = read_text("title")?.map(|(title, _)| title).filter(|title| !title.trim().is_empty());
    let choices = match find_field(table, "choices") {
        None => Vec::new(),
        Some((Ok(SettingValue::List(choices)), _)) if !choices.is_empty() => choices,
        Some((_, offset)) => {
            let problem = "is no list of answers".to_owned();
            return Err(wrong("choices", offset, problem, "a list of texts: [\"bug\", \"style\"]"));
        }
    };
    let default = match read_text("default")? {
        Some((default, offset)) if !choices.is_empty() && !choices.contains(&default) => {
            let problem = format!("is {:?}, which is none of the choices", text::sanitize_line(&default));
            return Err(wrong("default", offset, problem, "one of the choices"));
        }
        default => default.map(|(default, _)| default).unwrap_or_default(),
    };
    Ok(CommandPrompt { title: title.unwrap_or_else(|| name.clone()), name, default, choices })
}

/// Says why a name cannot stand in the arguments.
fn check_name(name: &str) -> Result<(), String> {
    let shown = text::sanitize_line(name);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match name.chars().next() {
        _ if CommandField::WORDS.contains(&name) => Err(format!("is {shown:?}, a field of the finding")),
        Some(first) if first.is_ascii_lowercase() && name.chars().all(is_plain) => Ok(()),
        _ => Err(format!("is {shown:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word_that_is_no_field() {
        for name in ["reason", "r", "kind_2", "a1"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for (name, problem) in [
            ("title", "is \"title\", a field of the finding"),
            ("", "is \"\""),
            ("Reason", "is \"Reason\""),
            ("2nd", "is \"2nd\""),
            ("a b", "is \"a b\""),
            ("a-b", "is \"a-b\""),
            ("ä", "is \"ä\""),
        ] {
            assert_eq!(check_name(name), Err(problem.to_owned()), "{name}");
        }
    }
}
