//! Describes a setting: its name, the type of its value and who may set it. Files, environment and flags are checked
//! against the description; [`KEYS`] lists all settings.

use super::{Dollars, KEYS};
use crate::domain::{Priority, QuietHours, Scope};

/// Layers that may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Only the user: the key costs money, starts programs, or affects other repositories.
    User,
    /// Also a reviewed repository: the key can do no harm.
    Repository,
}

/// Type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingType {
    /// Text that is not empty.
    Text,
    /// Any text; an empty text means none.
    OptionalText,
    Flag,
    Count {
        min: u64,
        max: u64,
    },
    /// Amount in US dollars.
    Money {
        /// Maximum in whole dollars.
        max: u32,
    },
    OneOf(&'static [&'static str]),
    /// A scope, or `auto`.
    Scope,
    /// A priority, or `none`.
    FailOn,
    /// List of patterns in .gitignore syntax. A list in the repository's file is added to the user's list instead of
    /// replacing it.
    Patterns,
    /// Address of a service: http or https, without user name or key.
    Address,
    /// Name of an environment variable.
    Variable,
    /// Program and its arguments.
    Program,
    /// List with any of these words; may be empty.
    AnyOf(&'static [&'static str]),
    /// Hours of the day, for example `22:00-07:00`, or an empty text.
    Hours,
}

/// Row of [`KEYS`].
#[derive(Debug, Clone, Copy)]
pub struct SettingKey {
    /// Dotted name, as in the settings file.
    pub name: &'static str,
    pub form: SettingType,
    pub trust: Trust,
}

/// Defines a table of settings: a struct that serde reads, and its `KEYS`, a row for each field.
///
/// A field is `name: type, allowed values, who may set it;`. The fields behind `besides` are no settings with a single
/// value.
macro_rules! setting_table {
    (
        $(#[$meta:meta])* $name:ident at $prefix:literal {
            $($(#[$doc:meta])* $field:ident: $type:ty, $form:expr, $trust:ident;)+
        }
        $(besides { $($(#[$other_doc:meta])* $other:ident: $other_type:ty;)+ })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Deserialize)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)+
            $($($(#[$other_doc])* pub $other: $other_type,)+)?
        }

        impl $name {
            pub(in crate::config) const KEYS: &'static [$crate::config::SettingKey] = &[$($crate::config::SettingKey {
                name: concat!($prefix, stringify!($field)),
                form: $form,
                trust: $crate::config::Trust::$trust,
            }),+];
        }
    };
}
pub(super) use setting_table;

/// Value that has the type of its key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum SettingValue {
    Text(String),
    Count(u64),
    Money(Dollars),
    Flag(bool),
    List(Vec<String>),
}

/// Returns the index in [`KEYS`] of the key with this name.
pub fn find_key_index(name: &str) -> Option<usize> {
    KEYS.iter().position(|key| key.name == name)
}

/// Returns true if a known key begins with this name and a dot, so that the name is a table.
pub fn is_group(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// Returns true if the repository's value would pass a gate that the user's value closes. Only a value that is at
/// least as strict is accepted. `ignored_paths` needs no such rule: a repository only adds to the user's list, and
/// every run's coverage lists the omitted files.
pub fn is_weaker_gate(name: &str, repositorys: &SettingValue, users: &SettingValue) -> bool {
    match (name, repositorys, users) {
        ("fail_on", SettingValue::Text(theirs), SettingValue::Text(own)) => {
            // The least urgent priority is the strictest gate; `none` is no gate.
            let strictness = |text: &str| text.parse::<Priority>().ok();
            strictness(theirs) < strictness(own)
        }
        ("max_file_bytes", SettingValue::Count(theirs), SettingValue::Count(own)) => theirs < own,
        // A repository cannot turn learning on for a user who turned it off.
        ("learning.enabled", SettingValue::Flag(theirs), SettingValue::Flag(own)) => *theirs && !*own,
        _ => false,
    }
}

impl SettingValue {
    /// Returns true for an empty text or list.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Count(_) | Self::Money(_) | Self::Flag(_) => false,
        }
    }
}

impl SettingKey {
    /// Returns the environment variable of the key: `REVDECK_WINDOW_MAX_TURNS` for `window.max_turns`.
    pub fn environment_variable(&self) -> String {
        format!("REVDECK_{}", self.name.replace('.', "_").to_uppercase())
    }
}

impl SettingType {
    /// Describes the allowed values for a person.
    pub fn describe_allowed(self) -> String {
        match self {
            SettingType::Text | SettingType::OptionalText => "a text in quotes".to_owned(),
            SettingType::Flag => "true or false".to_owned(),
            SettingType::Count { min, max } => format!("a whole number from {min} to {max}"),
            SettingType::Money { max } => format!("an amount of US dollars from 0 to {max}, as in 0.5"),
            SettingType::OneOf(words) => words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", "),
            SettingType::Scope => {
                "\"auto\", \"worktree\", \"staged\", \"commit:REV\", \"range:A..B\", \"range:A...B\", \"branch\", \
                 \"branch:BASE\" or \"all\""
                    .to_owned()
            }
            SettingType::FailOn => "\"p0\", \"p1\", \"p2\", \"p3\" or \"none\"".to_owned(),
            SettingType::Patterns => "a list of texts, as in [\"docs/\", \"*.snap\"]".to_owned(),
            SettingType::Address => "\"https://...\" or \"http://...\", without a name or a key in it".to_owned(),
            SettingType::Variable => "the name of a variable, as in \"ANTHROPIC_API_KEY\"".to_owned(),
            SettingType::Program => "a list: [\"program\", \"argument\"]".to_owned(),
            SettingType::AnyOf(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                format!("a list with any of {}", words.join(", "))
            }
            SettingType::Hours => "hours as in \"22:00-07:00\", or \"\"".to_owned(),
        }
    }

    /// Checks the type and range of a value and returns it, converted where needed.
    ///
    /// # Errors
    ///
    /// Returns a description of the mistake.
    pub fn check(self, value: SettingValue) -> Result<SettingValue, String> {
        match (self, &value) {
            (SettingType::Text, SettingValue::Text(text)) if text.is_empty() => Err("is empty".to_owned()),
            (SettingType::Text | SettingType::OptionalText, SettingValue::Text(_))
            | (SettingType::Flag, SettingValue::Flag(_))
            | (SettingType::Patterns, SettingValue::List(_)) => Ok(value),
            (SettingType::Count { min, max }, SettingValue::Count(count)) if !(min..=max).contains(count) => {
                Err(format!("{count} is out of range"))
            }
            (SettingType::Count { .. }, SettingValue::Count(_)) => Ok(value),
            (SettingType::Money { max }, SettingValue::Money(amount)) if amount.as_f64() > f64::from(max) => {
                Err(format!("{amount} is out of range"))
            }
            (SettingType::Money { .. }, SettingValue::Money(_)) => Ok(value),
            // Whole dollar amounts need no decimal point.
            (SettingType::Money { max }, SettingValue::Count(count)) => match Dollars::new(*count as f64) {
                Some(amount) if *count <= u64::from(max) => Ok(SettingValue::Money(amount)),
                _ => Err(format!("{count} is out of range")),
            },
            (SettingType::OneOf(words), SettingValue::Text(text)) if words.contains(&text.as_str()) => Ok(value),
            (SettingType::Scope, SettingValue::Text(text)) if text == "auto" || text.parse::<Scope>().is_ok() => {
                Ok(value)
            }
            (SettingType::FailOn, SettingValue::Text(text)) if text == "none" || text.parse::<Priority>().is_ok() => {
                Ok(value)
            }
            (SettingType::OneOf(_) | SettingType::Scope | SettingType::FailOn, SettingValue::Text(text)) => {
                Err(format!("{text:?} is not allowed"))
            }
            (SettingType::Address, SettingValue::Text(text)) => match parse_authority(text) {
                None | Some("") => Err("is no address".to_owned()),
                Some(authority) if authority.contains('@') => Err("holds a name or a key".to_owned()),
                Some(_) => Ok(value),
            },
            (SettingType::Variable, SettingValue::Text(text)) if is_variable_name(text) => Ok(value),
            (SettingType::Variable, SettingValue::Text(_)) => Err("is not the name of a variable".to_owned()),
            (SettingType::Program, SettingValue::List(words)) if words.first().is_some_and(|word| !word.is_empty()) => {
                Ok(value)
            }
            (SettingType::Program, _) => Err("is no command".to_owned()),
            (SettingType::AnyOf(words), SettingValue::List(list)) => {
                match list.iter().find(|word| !words.contains(&word.as_str())) {
                    Some(word) => Err(format!("{word:?} is not allowed")),
                    None => Ok(value),
                }
            }
            (SettingType::Hours, SettingValue::Text(text)) if text.is_empty() => Ok(value),
            (SettingType::Hours, SettingValue::Text(text)) => text.parse::<QuietHours>().map(|_| value),
            _ => Err("has a value of the wrong sort".to_owned()),
        }
    }

    /// Parses a value in the notation of the environment and of flags: bare words, lists separated by commas.
    ///
    /// # Errors
    ///
    /// Returns a description of the mistake.
    pub fn parse(self, text: &str) -> Result<SettingValue, String> {
        let value = match self {
            SettingType::Flag => match text {
                "true" | "1" | "yes" => SettingValue::Flag(true),
                "false" | "0" | "no" => SettingValue::Flag(false),
                _ => return Err(format!("{text:?} is neither true nor false")),
            },
            SettingType::Count { .. } => {
                SettingValue::Count(text.parse().map_err(|_| format!("{text:?} is no whole number"))?)
            }
            SettingType::Patterns | SettingType::AnyOf(_) => SettingValue::List(
                text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            ),
            SettingType::Money { .. } => {
                let amount = text.parse().ok().and_then(Dollars::new);
                SettingValue::Money(amount.ok_or_else(|| format!("{text:?} is no amount of money"))?)
            }
            SettingType::Text
            | SettingType::OptionalText
            | SettingType::OneOf(_)
            | SettingType::Scope
            | SettingType::FailOn
            | SettingType::Address
            | SettingType::Variable
            | SettingType::Program
            | SettingType::Hours => SettingValue::Text(text.to_owned()),
        };
        self.check(value)
    }
}

/// Returns the authority of an http or https address: the part between the slashes and the path. `None` for another
/// scheme.
pub fn parse_authority(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://")?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    rest.split(['/', '?', '#']).next()
}

fn is_variable_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_held_against_their_form() {
        let text = |text: &str| SettingValue::Text(text.to_owned());
        let money = |amount| SettingValue::Money(Dollars::new(amount).expect("an amount"));
        for (name, value, good) in [
            ("default_reviewer", text("builtin"), true),
            ("default_reviewer", text(""), false),
            ("default_reviewer", SettingValue::Flag(true), false),
            ("max_parallel_runs", SettingValue::Count(0), false),
            ("max_parallel_runs", SettingValue::Count(64), true),
            ("max_parallel_runs", SettingValue::Count(65), false),
            ("ledger_tokens", SettingValue::Count(0), true),
            ("ledger_tokens", SettingValue::Count(1201), false),
            ("fail_on", text("p1"), true),
            ("fail_on", text("p4"), false),
            ("fail_on", text("none"), true),
            ("default_scope", text("range:a..b"), true),
            ("default_scope", text("auto"), true),
            ("default_scope", text("rnage:a..b"), false),
            ("color", text("always"), true),
            ("color", text("green"), false),
            ("ignored_paths", SettingValue::List(vec![]), true),
            ("ignored_paths", text("docs"), false),
            ("budget.run_cost", SettingValue::Count(3), true),
            ("budget.run_cost", SettingValue::Count(u64::MAX), false),
            ("budget.run_cost", money(0.5), true),
            ("budget.run_cost", money(1_000_000.01), false),
            ("budget.run_cost", text("1"), false),
            ("budget.run_tokens", money(0.5), false),
        ] {
            let key = &KEYS[find_key_index(name).expect(name)];
            assert_eq!(key.form.check(value.clone()).is_ok(), good, "{name} = {value:?}");
        }
    }

    #[test]
    fn addresses_variables_and_programs_are_what_they_say() {
        let text = |text: &str| SettingValue::Text(text.to_owned());
        let list = |words: &[&str]| SettingValue::List(words.iter().map(|word| (*word).to_owned()).collect());
        for (form, value, good) in [
            (SettingType::Address, text("https://api.example.org/v1"), true),
            (SettingType::Address, text("http://[::1]:8080"), true),
            (SettingType::Address, text("https://"), false),
            (SettingType::Address, text("https://name:secret@example.org"), false),
            (SettingType::Address, text("https://example.org/@team"), true),
            (SettingType::Address, text("ftp://example.org"), false),
            (SettingType::Address, text("example.org"), false),
            (SettingType::Variable, text("A_KEY2"), true),
            (SettingType::Variable, text("2KEYS"), false),
            (SettingType::Variable, text("sk-ant-1"), false),
            (SettingType::Program, list(&["claude", "-p"]), true),
            (SettingType::Program, list(&[]), false),
            (SettingType::Program, list(&[""]), false),
            (SettingType::Program, text("claude -p"), false),
            (SettingType::AnyOf(&["a", "b"]), list(&[]), true),
            (SettingType::AnyOf(&["a", "b"]), list(&["b", "a"]), true),
            (SettingType::AnyOf(&["a", "b"]), list(&["c"]), false),
            (SettingType::AnyOf(&["a", "b"]), text("a"), false),
            (SettingType::Hours, text(""), true),
            (SettingType::Hours, text("22:00-07:00"), true),
            (SettingType::Hours, text("22-07"), false),
        ] {
            assert_eq!(form.check(value.clone()).is_ok(), good, "{form:?}: {value:?}");
        }
    }

    #[test]
    fn a_repository_makes_no_gate_weaker() {
        let text = |text: &str| SettingValue::Text(text.to_owned());
        for (name, theirs, own, weaker) in [
            ("fail_on", text("none"), text("p1"), true),
            ("fail_on", text("p0"), text("p1"), true),
            ("fail_on", text("p1"), text("p1"), false),
            ("fail_on", text("p3"), text("p1"), false),
            ("fail_on", text("p0"), text("none"), false),
            ("max_file_bytes", SettingValue::Count(1), SettingValue::Count(5), true),
            ("max_file_bytes", SettingValue::Count(9), SettingValue::Count(5), false),
            ("ignored_paths", SettingValue::List(vec!["a".to_owned()]), SettingValue::List(vec![]), false),
            ("learning.enabled", SettingValue::Flag(true), SettingValue::Flag(false), true),
            ("learning.enabled", SettingValue::Flag(false), SettingValue::Flag(true), false),
        ] {
            assert_eq!(is_weaker_gate(name, &theirs, &own), weaker, "{name} {theirs:?} over {own:?}");
        }
    }

    #[test]
    fn the_environment_writes_bare_words() {
        for (name, text, expected) in [
            ("ascii", "1", Some(SettingValue::Flag(true))),
            ("ascii", "maybe", None),
            ("max_file_bytes", "5000", Some(SettingValue::Count(5000))),
            ("max_file_bytes", "-1", None),
            ("budget.day_cost", "2.5", Dollars::new(2.5).map(SettingValue::Money)),
            ("budget.day_cost", "-2.5", None),
            ("budget.day_cost", "lots", None),
            (
                "watch.on",
                "commit, worktree",
                Some(SettingValue::List(vec!["commit".to_owned(), "worktree".to_owned()])),
            ),
            ("watch.on", "push", None),
            ("watch.quiet_hours", "22:00-07:00", Some(SettingValue::Text("22:00-07:00".to_owned()))),
            ("ignored_paths", "a/, *.snap,", Some(SettingValue::List(vec!["a/".to_owned(), "*.snap".to_owned()]))),
        ] {
            assert_eq!(KEYS[find_key_index(name).expect(name)].form.parse(text).ok(), expected, "{name}={text}");
        }
        assert_eq!(
            KEYS[find_key_index("window.max_turns").expect("a key")].environment_variable(),
            "REVDECK_WINDOW_MAX_TURNS"
        );
    }
}
