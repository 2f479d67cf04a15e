//! The `[reviewers.NAME]` tables: checked for their form here; who can run them is decided where they are asked for.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{Document, value};
use super::error::ConfigError;
use super::keys::Value;
use crate::domain::text;

/// How a reviewer is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewerKind {
    Builtin,
    Openai,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Ollama,
    Command,
}

impl ReviewerKind {
    const ALL: [(&str, Self); 7] = [
        ("builtin", Self::Builtin),
        ("openai", Self::Openai),
        ("openai-responses", Self::OpenaiResponses),
        ("anthropic", Self::Anthropic),
        ("gemini", Self::Gemini),
        ("ollama", Self::Ollama),
        ("command", Self::Command),
    ];

    /// The word in the settings.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// A reviewer as the user described it. Keys to services are never in here, only where to get them.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ReviewerSettings {
    pub kind: ReviewerKind,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_cmd: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

const FIELDS: &str = "kind, model, base_url, api_key_env, api_key_cmd, command, effort";

/// One table of `[reviewers]`. `name` and `table` with their places.
pub fn parse(
    document: &Document,
    name: &Spanned<toml::de::DeString<'_>>,
    table: &Spanned<DeValue<'_>>,
) -> Result<ReviewerSettings, ConfigError> {
    let key = format!("reviewers.{}", name.get_ref());
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
        let allowed = "names of letters, digits, - _ and .".to_owned();
        return Err(document.error(name.span().start, &key, "this is no name for a reviewer", allowed));
    }
    let DeValue::Table(fields) = table.get_ref() else {
        let allowed = format!("a table with {FIELDS}");
        return Err(document.error(table.span().start, &key, "is no table", allowed));
    };
    let kind = kind(document, &key, table.span().start, fields)?;
    let mut reviewer = ReviewerSettings {
        kind,
        model: String::new(),
        base_url: None,
        api_key_env: None,
        api_key_cmd: None,
        command: Vec::new(),
        effort: None,
    };
    for (field, field_value) in fields {
        let field_key = format!("{key}.{}", field.get_ref());
        let wrong = |problem: &str, allowed: &str| {
            Err(document.error(field_value.span().start, &field_key, problem, allowed.to_owned()))
        };
        let checked = match value(field_value.get_ref()) {
            Ok(checked) => checked,
            Err(problem) => return wrong(&problem, "a text, or for command a list of texts"),
        };
        match (field.get_ref().as_ref(), checked) {
            ("kind", _) => {}
            ("model", Value::Text(text)) => reviewer.model = text,
            ("base_url", Value::Text(text)) if text.starts_with("https://") || text.starts_with("http://") => {
                if has_user_part(&text) {
                    return wrong("holds a name or a key", "an address without a user part");
                }
                reviewer.base_url = Some(text);
            }
            ("base_url", _) => return wrong("is no address", "\"https://...\" or \"http://...\""),
            ("api_key_env", Value::Text(text)) if is_variable(&text) => reviewer.api_key_env = Some(text),
            ("api_key_env", _) => return wrong("is not the name of a variable", "a name like ANTHROPIC_API_KEY"),
            ("api_key_cmd", Value::Text(text)) => reviewer.api_key_cmd = Some(text),
            ("command", Value::List(words)) if !words.is_empty() => reviewer.command = words,
            ("command", _) => return wrong("is no command", "a list: [\"program\", \"argument\"]"),
            ("effort", Value::Text(text)) if matches!(text.as_str(), "low" | "medium" | "high") => {
                reviewer.effort = Some(text);
            }
            ("effort", _) => return wrong("is not allowed", "\"low\", \"medium\", \"high\""),
            ("api_key", _) => {
                return wrong("a key does not belong into a settings file", "api_key_env or api_key_cmd");
            }
            ("model" | "api_key_cmd", _) => return wrong("has a value of the wrong sort", "a text in quotes"),
            (unknown, _) => {
                let problem = format!("there is no key {:?}", text::one_line(unknown));
                return Err(document.error(field.span().start, &field_key, problem, FIELDS.to_owned()));
            }
        }
    }
    let missing = |field: &str| {
        let problem = format!("needs {field} for kind = {:?}", kind.word());
        Err(document.error(table.span().start, &key, problem, format!("a table with {FIELDS}")))
    };
    match kind {
        ReviewerKind::Command if reviewer.command.is_empty() => missing("command"),
        ReviewerKind::Builtin | ReviewerKind::Command => Ok(reviewer),
        _ if reviewer.model.is_empty() => missing("model"),
        _ => Ok(reviewer),
    }
}

fn kind(document: &Document, key: &str, start: usize, fields: &DeTable<'_>) -> Result<ReviewerKind, ConfigError> {
    let words: Vec<String> = ReviewerKind::ALL.iter().map(|(word, _)| format!("{word:?}")).collect();
    let found = fields.iter().find(|(field, _)| field.get_ref() == "kind");
    let Some((_, kind)) = found else {
        return Err(document.error(start, key, "needs kind", format!("kind = one of {}", words.join(", "))));
    };
    ReviewerKind::ALL
        .iter()
        .find(|(word, _)| kind.get_ref().as_str() == Some(word))
        .map(|(_, kind)| *kind)
        .ok_or_else(|| document.error(kind.span().start, &format!("{key}.kind"), "is not allowed", words.join(", ")))
}

fn is_variable(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn has_user_part(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}
