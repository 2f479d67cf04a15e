//! Writes reviewers as `[reviewers.NAME]` tables, for the user to paste or into the user's settings file.

use std::path::Path;

use toml_edit::{DocumentMut, Item, Table};

use super::error::{ConfigError, SettingLocation};
use super::kept_setting::replace_file;
use super::keys::SettingValue;
use super::reviewers::ReviewerSettings;
use super::settings_file::{SettingsFile, SymlinkPolicy};

/// Returns a reviewer as a table: its kind, and the settings that differ from the defaults of the kind, in the order of
/// the documentation. The text ends with a line end.
pub fn render_reviewer(name: &str, reviewer: &ReviewerSettings) -> String {
    let defaults = ReviewerSettings::new(reviewer.kind).list_fields();
    let mut table = Table::new();
    for field in reviewer.list_fields() {
        if field.0 == "kind" || !defaults.contains(&field) {
            table.insert(field.0, Item::Value(to_toml(&field.1)));
        }
    }
    let mut tables = Table::new();
    tables.set_implicit(true);
    tables.insert(name, Item::Table(table));
    let mut document = DocumentMut::new();
    document.insert("reviewers", Item::Table(tables));
    document.to_string()
}

fn to_toml(value: &SettingValue) -> toml_edit::Value {
    match value {
        SettingValue::Text(text) => text.as_str().into(),
        SettingValue::Count(count) => i64::try_from(*count).unwrap_or(i64::MAX).into(),
        // A whole amount needs no decimal point.
        SettingValue::Money(amount) if amount.as_f64().fract() == 0.0 => (amount.as_f64() as i64).into(),
        SettingValue::Money(amount) => amount.as_f64().into(),
        SettingValue::Flag(flag) => (*flag).into(),
        SettingValue::List(list) => list.iter().map(String::as_str).collect::<toml_edit::Array>().into(),
    }
}

/// Appends reviewers to the user's settings file; everything that stands there stays as it is, comments too. A missing
/// file is created. A link stays a link: the file to which it points is replaced.
///
/// # Errors
///
/// Fails if the file is not TOML, has a table of that name already or `reviewers` in a form to which nothing can be
/// appended, or cannot be read or written; it is then unchanged.
pub fn add_reviewers(path: &Path, reviewers: &[(&str, &ReviewerSettings)]) -> Result<(), ConfigError> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = SettingsFile::read(real.clone(), SymlinkPolicy::Follow)?.map_or(String::new(), |file| file.text);
    parse(path, &before)?;
    let mut text = before;
    for (name, reviewer) in reviewers {
        if !text.is_empty() {
            text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
        }
        let start = text.len();
        text.push_str(&render_reviewer(name, reviewer));
        // The parser refuses a second table of one name, and a table in an inline table.
        parse(path, &text).map_err(|_| ConfigError::Value {
            place: SettingLocation::from_offset(path, &text, start),
            key: format!("reviewers.{name}"),
            problem: "cannot be appended: the name is taken, or [reviewers] is no table with a line of its own"
                .to_owned(),
            allowed: format!("a table [reviewers.{name}] that nothing else defines"),
        })?;
    }
    replace_file(path, &real, &text)
}

fn parse(path: &Path, text: &str) -> Result<DocumentMut, ConfigError> {
    text.parse().map_err(|error: toml_edit::TomlError| ConfigError::Syntax {
        place: SettingLocation::from_offset(path, text, error.span().map_or(0, |span| span.start)),
        problem: error.message().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Dollars, ReviewerKind};
    use super::*;

    fn local() -> ReviewerSettings {
        ReviewerSettings {
            model: "qwen3-coder:30b".to_owned(),
            base_url: Some("http://127.0.0.1:8080/v1/".to_owned()),
            context_window: Some(8192),
            price_input: Some(Dollars::ZERO),
            price_output: Dollars::new(0.5),
            tools: Some(false),
            ..ReviewerSettings::new(ReviewerKind::Openai)
        }
    }

    #[test]
    fn a_reviewer_is_written_without_its_defaults() {
        let expected = "[reviewers.\"qwen3.5\"]\nkind = \"openai\"\nmodel = \"qwen3-coder:30b\"\n\
                        base_url = \"http://127.0.0.1:8080/v1/\"\ncontext_window = 8192\nprice_input = 0\n\
                        price_output = 0.5\ntools = false\n";
        assert_eq!(render_reviewer("qwen3.5", &local()), expected);
    }

    #[test]
    fn a_reviewer_is_appended_and_everything_else_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("new").join("config.toml");
        let table = render_reviewer("a", &local());
        for (before, expected) in [
            (None, table.clone()),
            (Some("# mine"), format!("# mine\n\n{table}")),
            (Some("[window]\nmax_turns = 3\n# the end\n"), format!("[window]\nmax_turns = 3\n# the end\n\n{table}")),
        ] {
            if let Some(before) = before {
                std::fs::write(&file, before).expect("a file");
            }
            add_reviewers(&file, &[("a", &local())]).expect("it is written");
            assert_eq!(std::fs::read_to_string(&file).expect("a file"), expected, "{before:?}");
        }
        for before in ["reviewers = { b = { kind = 'builtin' } }\n", "[reviewers.a]\nkind = 'builtin'\n", "[window"] {
            std::fs::write(&file, before).expect("a file");
            add_reviewers(&file, &[("b", &local()), ("a", &local())]).expect_err(before);
            assert_eq!(std::fs::read_to_string(&file).expect("a file"), before, "it is unchanged");
        }
    }
}
