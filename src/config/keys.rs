//! The settings by name: what form a value has and who may set it. One table, so that files, environment and flags
//! are checked alike and the documentation cannot forget a key (a test holds it against `assets/config.toml`).

use super::Dollars;
use crate::domain::{Hours, Priority, Scope};

/// Who may set a key besides the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Only the user: it costs money, starts programs, or decides about other repositories.
    User,
    /// A reviewed repository as well: it can do no harm.
    Repository,
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Any text that is not empty.
    Text,
    /// Any text; an empty one is nobody.
    Name,
    Flag,
    Count {
        min: u64,
        max: u64,
    },
    /// US dollars.
    Money {
        /// Whole dollars.
        max: u32,
    },
    Words(&'static [&'static str]),
    /// A scope, or `auto`.
    Scope,
    /// A priority, or `none`.
    FailOn,
    /// A list of patterns in the syntax of .gitignore. Layers add to it rather than replace it when the repository
    /// sets it.
    Patterns,
    /// Where a service is: http or https, without a name or a key in it.
    Address,
    /// The name of an environment variable.
    Variable,
    /// A program and its arguments.
    Program,
    /// Some of these words, or none.
    Choices(&'static [&'static str]),
    /// Hours of the day, as `22:00-07:00`, or nothing.
    Hours,
}

/// A setting.
#[derive(Debug)]
pub struct Key {
    /// With dots, as it stands in the file.
    pub name: &'static str,
    pub form: Form,
    pub trust: Trust,
}

/// A value that has the form of its key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum Value {
    Text(String),
    Count(u64),
    Money(Dollars),
    Flag(bool),
    List(Vec<String>),
}

const fn key(name: &'static str, form: Form, trust: Trust) -> Key {
    Key { name, form, trust }
}

/// Every setting with a value of its own, in the order of `assets/config.toml`.
pub const KEYS: &[Key] = &[
    key("default_reviewer", Form::Text, Trust::User),
    key("default_scope", Form::Scope, Trust::Repository),
    key("max_parallel_runs", Form::Count { min: 1, max: 64 }, Trust::User),
    key("ignored_paths", Form::Patterns, Trust::Repository),
    key("max_file_bytes", Form::Count { min: 1, max: 1_000_000_000 }, Trust::Repository),
    key("fail_on", Form::FailOn, Trust::Repository),
    key("ledger_tokens", Form::Count { min: 0, max: 1200 }, Trust::User),
    key("theme", Form::Text, Trust::User),
    key("ascii", Form::Flag, Trust::User),
    key("color", Form::Words(&["auto", "always", "never"]), Trust::User),
    key("window.max_turns", Form::Count { min: 1, max: 20 }, Trust::User),
    key("window.max_tokens", Form::Count { min: 1000, max: 10_000_000 }, Trust::User),
    key("window.slide_after_turn", Form::Count { min: 1, max: 20 }, Trust::User),
    key("window.slide_over_messages", Form::Count { min: 2, max: 1000 }, Trust::User),
    key("window.keep_messages", Form::Count { min: 1, max: 1000 }, Trust::User),
    key("budget.run_tokens", Form::Count { min: 0, max: 1_000_000_000_000 }, Trust::User),
    key("budget.run_cost", Form::Money { max: 1_000_000 }, Trust::User),
    key("budget.day_tokens", Form::Count { min: 0, max: 1_000_000_000_000 }, Trust::User),
    key("budget.day_cost", Form::Money { max: 1_000_000 }, Trust::User),
    key("policy.finish_from", Form::Count { min: 0, max: 101 }, Trust::User),
    key("retention.keep_days", Form::Count { min: 0, max: 36_500 }, Trust::User),
    key("retention.keep_runs", Form::Count { min: 0, max: 1_000_000_000 }, Trust::User),
    key("watch.on", Form::Choices(&["commit", "amend", "rebase", "checkout", "worktree"]), Trust::User),
    key("watch.quiet_seconds", Form::Count { min: 0, max: 86_400 }, Trust::User),
    key("watch.interval_seconds", Form::Count { min: 0, max: 86_400 }, Trust::User),
    key("watch.min_changed_lines", Form::Count { min: 0, max: 1_000_000 }, Trust::User),
    key("watch.quiet_hours", Form::Hours, Trust::User),
    key("watch.ignored_paths", Form::Patterns, Trust::Repository),
    key("watch.reviewer", Form::Text, Trust::User),
    key("watch.day_tokens", Form::Count { min: 0, max: 1_000_000_000_000 }, Trust::User),
    key("watch.day_cost", Form::Money { max: 1_000_000 }, Trust::User),
    key("watch.poll", Form::Flag, Trust::User),
    key("watch.poll_seconds", Form::Count { min: 1, max: 3600 }, Trust::User),
    key("resolve.reviewer", Form::Name, Trust::User),
    key("resolve.follow_ups", Form::Count { min: 0, max: 2 }, Trust::User),
    key("context.tokens", Form::Count { min: 0, max: 130_000 }, Trust::User),
    key("context.embeddings.kind", Form::Words(&["off", "openai", "ollama"]), Trust::User),
    key("context.embeddings.model", Form::Name, Trust::User),
    key("context.embeddings.base_url", Form::Name, Trust::User),
    key("context.embeddings.api_key_env", Form::Name, Trust::User),
    key("context.embeddings.api_key_cmd", Form::Name, Trust::User),
    key("context.embeddings.seconds", Form::Count { min: 1, max: 600 }, Trust::User),
    key("learning.enabled", Form::Flag, Trust::Repository),
];

/// The key of this name.
pub fn find(name: &str) -> Option<usize> {
    KEYS.iter().position(|key| key.name == name)
}

/// Whether keys of this name and a dot are known: a table.
pub fn is_group(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// Whether a gate that holds with the user's value could be passed with the repository's: only what is at least as
/// strict is obeyed. `ignored_paths` need no such rule, as a repository adds to the user's, and what it leaves out is
/// listed in every run's coverage.
pub fn hides_more(name: &str, repositorys: &Value, users: &Value) -> bool {
    match (name, repositorys, users) {
        ("fail_on", Value::Text(theirs), Value::Text(own)) => {
            // The least urgent priority is the strictest gate; `none` is no gate at all.
            let strictness = |text: &str| text.parse::<Priority>().ok();
            strictness(theirs) < strictness(own)
        }
        ("max_file_bytes", Value::Count(theirs), Value::Count(own)) => theirs < own,
        // Whoever does not want to learn does not learn from a repository that asks for it.
        ("learning.enabled", Value::Flag(theirs), Value::Flag(own)) => *theirs && !*own,
        _ => false,
    }
}

impl Key {
    /// `REVDECK_WINDOW_MAX_TURNS` for `window.max_turns`.
    pub fn variable(&self) -> String {
        format!("REVDECK_{}", self.name.replace('.', "_").to_uppercase())
    }
}

impl Form {
    /// What may stand there, for a person.
    pub fn allowed(self) -> String {
        match self {
            Form::Text | Form::Name => "a text in quotes".to_owned(),
            Form::Flag => "true or false".to_owned(),
            Form::Count { min, max } => format!("a whole number from {min} to {max}"),
            Form::Money { max } => format!("an amount of US dollars from 0 to {max}, as in 0.5"),
            Form::Words(words) => words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", "),
            Form::Scope => {
                "\"auto\", \"worktree\", \"staged\", \"commit:REV\", \"range:A..B\", \"range:A...B\", \"branch\", \
                 \"branch:BASE\" or \"all\""
                    .to_owned()
            }
            Form::FailOn => "\"p0\", \"p1\", \"p2\", \"p3\" or \"none\"".to_owned(),
            Form::Patterns => "a list of texts, as in [\"docs/\", \"*.snap\"]".to_owned(),
            Form::Address => "\"https://...\" or \"http://...\", without a name or a key in it".to_owned(),
            Form::Variable => "the name of a variable, as in \"ANTHROPIC_API_KEY\"".to_owned(),
            Form::Program => "a list: [\"program\", \"argument\"]".to_owned(),
            Form::Choices(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                format!("a list with any of {}", words.join(", "))
            }
            Form::Hours => "hours as in \"22:00-07:00\", or \"\"".to_owned(),
        }
    }

    /// Holds a value against the form; the error says what is wrong with it.
    pub fn check(self, value: Value) -> Result<Value, String> {
        match (self, &value) {
            (Form::Text, Value::Text(text)) if text.is_empty() => Err("is empty".to_owned()),
            (Form::Text | Form::Name, Value::Text(_))
            | (Form::Flag, Value::Flag(_))
            | (Form::Patterns, Value::List(_)) => Ok(value),
            (Form::Count { min, max }, Value::Count(count)) if !(min..=max).contains(count) => {
                Err(format!("{count} is out of range"))
            }
            (Form::Count { .. }, Value::Count(_)) => Ok(value),
            (Form::Money { max }, Value::Money(amount)) if amount.as_f64() > f64::from(max) => {
                Err(format!("{amount} is out of range"))
            }
            (Form::Money { .. }, Value::Money(_)) => Ok(value),
            // Whole dollars need no point.
            (Form::Money { max }, Value::Count(count)) => match Dollars::new(*count as f64) {
                Some(amount) if *count <= u64::from(max) => Ok(Value::Money(amount)),
                _ => Err(format!("{count} is out of range")),
            },
            (Form::Words(words), Value::Text(text)) if words.contains(&text.as_str()) => Ok(value),
            (Form::Scope, Value::Text(text)) if text == "auto" || text.parse::<Scope>().is_ok() => Ok(value),
            (Form::FailOn, Value::Text(text)) if text == "none" || text.parse::<Priority>().is_ok() => Ok(value),
            (Form::Words(_) | Form::Scope | Form::FailOn, Value::Text(text)) => Err(format!("{text:?} is not allowed")),
            (Form::Address, Value::Text(text)) => match authority(text) {
                None | Some("") => Err("is no address".to_owned()),
                Some(authority) if authority.contains('@') => Err("holds a name or a key".to_owned()),
                Some(_) => Ok(value),
            },
            (Form::Variable, Value::Text(text)) if is_variable(text) => Ok(value),
            (Form::Variable, Value::Text(_)) => Err("is not the name of a variable".to_owned()),
            (Form::Program, Value::List(words)) if words.first().is_some_and(|word| !word.is_empty()) => Ok(value),
            (Form::Program, _) => Err("is no command".to_owned()),
            (Form::Choices(words), Value::List(list)) => {
                match list.iter().find(|word| !words.contains(&word.as_str())) {
                    Some(word) => Err(format!("{word:?} is not allowed")),
                    None => Ok(value),
                }
            }
            (Form::Hours, Value::Text(text)) if text.is_empty() => Ok(value),
            (Form::Hours, Value::Text(text)) => text.parse::<Hours>().map(|_| value),
            _ => Err("has a value of the wrong sort".to_owned()),
        }
    }

    /// Reads a value as the environment and flags write it: bare words, lists separated by commas.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        let value = match self {
            Form::Flag => match text {
                "true" | "1" | "yes" => Value::Flag(true),
                "false" | "0" | "no" => Value::Flag(false),
                _ => return Err(format!("{text:?} is neither true nor false")),
            },
            Form::Count { .. } => Value::Count(text.parse().map_err(|_| format!("{text:?} is no whole number"))?),
            Form::Patterns | Form::Choices(_) => {
                Value::List(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect())
            }
            Form::Money { .. } => {
                let amount = text.parse().ok().and_then(Dollars::new);
                Value::Money(amount.ok_or_else(|| format!("{text:?} is no amount of money"))?)
            }
            Form::Text
            | Form::Name
            | Form::Words(_)
            | Form::Scope
            | Form::FailOn
            | Form::Address
            | Form::Variable
            | Form::Program
            | Form::Hours => Value::Text(text.to_owned()),
        };
        self.check(value)
    }
}

/// What stands in an http address between the slashes and the path.
pub fn authority(address: &str) -> Option<&str> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    rest.split(['/', '?', '#']).next()
}

fn is_variable(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_held_against_their_form() {
        let text = |text: &str| Value::Text(text.to_owned());
        let money = |amount| Value::Money(Dollars::new(amount).expect("an amount"));
        for (name, value, good) in [
            ("default_reviewer", text("builtin"), true),
            ("default_reviewer", text(""), false),
            ("default_reviewer", Value::Flag(true), false),
            ("max_parallel_runs", Value::Count(0), false),
            ("max_parallel_runs", Value::Count(64), true),
            ("max_parallel_runs", Value::Count(65), false),
            ("ledger_tokens", Value::Count(0), true),
            ("ledger_tokens", Value::Count(1201), false),
            ("fail_on", text("p1"), true),
            ("fail_on", text("p4"), false),
            ("fail_on", text("none"), true),
            ("default_scope", text("range:a..b"), true),
            ("default_scope", text("auto"), true),
            ("default_scope", text("rnage:a..b"), false),
            ("color", text("always"), true),
            ("color", text("green"), false),
            ("ignored_paths", Value::List(vec![]), true),
            ("ignored_paths", text("docs"), false),
            ("budget.run_cost", Value::Count(3), true),
            ("budget.run_cost", Value::Count(u64::MAX), false),
            ("budget.run_cost", money(0.5), true),
            ("budget.run_cost", money(1_000_000.01), false),
            ("budget.run_cost", text("1"), false),
            ("budget.run_tokens", money(0.5), false),
        ] {
            let key = &KEYS[find(name).expect(name)];
            assert_eq!(key.form.check(value.clone()).is_ok(), good, "{name} = {value:?}");
        }
    }

    #[test]
    fn addresses_variables_and_programs_are_what_they_say() {
        let text = |text: &str| Value::Text(text.to_owned());
        let list = |words: &[&str]| Value::List(words.iter().map(|word| (*word).to_owned()).collect());
        for (form, value, good) in [
            (Form::Address, text("https://api.example.org/v1"), true),
            (Form::Address, text("http://[::1]:8080"), true),
            (Form::Address, text("https://"), false),
            (Form::Address, text("https://name:secret@example.org"), false),
            (Form::Address, text("https://example.org/@team"), true),
            (Form::Address, text("ftp://example.org"), false),
            (Form::Address, text("example.org"), false),
            (Form::Variable, text("A_KEY2"), true),
            (Form::Variable, text("2KEYS"), false),
            (Form::Variable, text("sk-ant-1"), false),
            (Form::Program, list(&["claude", "-p"]), true),
            (Form::Program, list(&[]), false),
            (Form::Program, list(&[""]), false),
            (Form::Program, text("claude -p"), false),
            (Form::Choices(&["a", "b"]), list(&[]), true),
            (Form::Choices(&["a", "b"]), list(&["b", "a"]), true),
            (Form::Choices(&["a", "b"]), list(&["c"]), false),
            (Form::Choices(&["a", "b"]), text("a"), false),
            (Form::Hours, text(""), true),
            (Form::Hours, text("22:00-07:00"), true),
            (Form::Hours, text("22-07"), false),
        ] {
            assert_eq!(form.check(value.clone()).is_ok(), good, "{form:?}: {value:?}");
        }
    }

    #[test]
    fn a_repository_makes_no_gate_weaker() {
        let text = |text: &str| Value::Text(text.to_owned());
        for (name, theirs, own, weaker) in [
            ("fail_on", text("none"), text("p1"), true),
            ("fail_on", text("p0"), text("p1"), true),
            ("fail_on", text("p1"), text("p1"), false),
            ("fail_on", text("p3"), text("p1"), false),
            ("fail_on", text("p0"), text("none"), false),
            ("max_file_bytes", Value::Count(1), Value::Count(5), true),
            ("max_file_bytes", Value::Count(9), Value::Count(5), false),
            ("ignored_paths", Value::List(vec!["a".to_owned()]), Value::List(vec![]), false),
            ("learning.enabled", Value::Flag(true), Value::Flag(false), true),
            ("learning.enabled", Value::Flag(false), Value::Flag(true), false),
        ] {
            assert_eq!(hides_more(name, &theirs, &own), weaker, "{name} {theirs:?} over {own:?}");
        }
    }

    #[test]
    fn the_environment_writes_bare_words() {
        for (name, text, expected) in [
            ("ascii", "1", Some(Value::Flag(true))),
            ("ascii", "maybe", None),
            ("max_file_bytes", "5000", Some(Value::Count(5000))),
            ("max_file_bytes", "-1", None),
            ("budget.day_cost", "2.5", Dollars::new(2.5).map(Value::Money)),
            ("budget.day_cost", "-2.5", None),
            ("budget.day_cost", "lots", None),
            ("watch.on", "commit, worktree", Some(Value::List(vec!["commit".to_owned(), "worktree".to_owned()]))),
            ("watch.on", "push", None),
            ("watch.quiet_hours", "22:00-07:00", Some(Value::Text("22:00-07:00".to_owned()))),
            ("ignored_paths", "a/, *.snap,", Some(Value::List(vec!["a/".to_owned(), "*.snap".to_owned()]))),
        ] {
            assert_eq!(KEYS[find(name).expect(name)].form.parse(text).ok(), expected, "{name}={text}");
        }
        assert_eq!(KEYS[find("window.max_turns").expect("a key")].variable(), "REVDECK_WINDOW_MAX_TURNS");
    }
}
