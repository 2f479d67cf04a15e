//! `revdeck knowledge stats`.

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::{look, told};
use crate::cli::arguments::PlainFormat;
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::domain::wilson;
use crate::knowledge::base;
use crate::knowledge::cache::Cache;
use crate::knowledge::pattern::{Origin, Pattern};
use crate::knowledge::rank::{self, Inclusion};
use crate::report::{Paint, Table, json};

/// Arguments of `knowledge stats`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Figures of a language, or of all.
#[derive(Debug, Default, Serialize)]
struct Figures {
    patterns: usize,
    learned: usize,
    base: usize,
    imported: usize,
    /// Muted ones are neither used nor watched.
    used: usize,
    watched: usize,
    muted: usize,
    forgotten: usize,
    /// Of each pattern what the machine that saw it most saw.
    frequency: u64,
    successes: u32,
    failures: u32,
}

impl Figures {
    fn add(&mut self, pattern: &Pattern, inclusion: Inclusion) {
        self.patterns += 1;
        match pattern.origin {
            Origin::Learned => self.learned += 1,
            Origin::Base => self.base += 1,
            Origin::Imported => self.imported += 1,
        }
        match inclusion {
            _ if pattern.muted => self.muted += 1,
            Inclusion::Now | Inclusion::AfterThree => self.used += 1,
            Inclusion::Watched => self.watched += 1,
            Inclusion::No => {}
        }
        self.frequency += u64::from(pattern.seen());
        let count = pattern.count();
        self.successes = self.successes.saturating_add(count.successes);
        self.failures = self.failures.saturating_add(count.failures);
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.patterns, other.patterns),
            (&mut self.learned, other.learned),
            (&mut self.base, other.base),
            (&mut self.imported, other.imported),
            (&mut self.used, other.used),
            (&mut self.watched, other.watched),
            (&mut self.muted, other.muted),
            (&mut self.forgotten, other.forgotten),
        ] {
            *mine += theirs;
        }
        self.frequency += other.frequency;
        self.successes = self.successes.saturating_add(other.successes);
        self.failures = self.failures.saturating_add(other.failures);
    }

    fn rates(&self) -> (Option<f64>, Option<f64>) {
        let (successes, outcomes) = (f64::from(self.successes), f64::from(self.successes) + f64::from(self.failures));
        match outcomes > 0.0 {
            true => (Some(successes / outcomes), Some(wilson(successes, outcomes))),
            false => (None, None),
        }
    }

    fn json(&self, language: Option<&str>) -> Value {
        let mut value = json!(self);
        let (success_rate, at_least) = self.rates();
        (value["success_rate"], value["at_least"]) = (json!(success_rate), json!(at_least));
        if let Some(language) = language {
            value["language"] = language.into();
        }
        value
    }
}

pub fn run(invocation: &Invocation, cache: &Cache, arguments: &Arguments) -> Result<Exit, CliError> {
    let look = look(invocation)?;
    let (mut all, mut languages) = (Figures::default(), Vec::new());
    for language in base::languages() {
        let mut figures = Figures { forgotten: cache.forgotten(language)?.len(), ..Figures::default() };
        for pattern in cache.patterns(language)? {
            figures.add(&pattern, rank::standing(&pattern, look.now).inclusion);
        }
        all.merge(&figures);
        languages.push((language.name(), figures));
    }
    if arguments.format == PlainFormat::Json {
        let languages: Vec<Value> = languages.iter().map(|(name, figures)| figures.json(Some(name))).collect();
        output::print_json(&json::versioned([("totals", all.json(None)), ("languages", languages.into())]))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::default();
    let head =
        ["language", "patterns", "learned", "base", "imported", "used", "watched", "muted", "forgotten", "outcomes"];
    table.row(head.map(|name| (Paint::Faint, name)));
    for (name, figures) in languages.iter().map(|(name, figures)| (*name, figures)).chain([("all", &all)]) {
        let numbers = [
            figures.patterns,
            figures.learned,
            figures.base,
            figures.imported,
            figures.used,
            figures.watched,
            figures.muted,
            figures.forgotten,
        ];
        let (rate, bound) = figures.rates();
        let mut cells = vec![name.to_owned()];
        cells.extend(numbers.map(|number| number.to_string()));
        cells.push(told::rate(figures.successes, figures.failures, rate, bound));
        table.row(cells.iter().map(|cell| (Paint::Plain, cell.as_str())));
    }
    output::print(&table.render(&look))?;
    Ok(Exit::Done)
}
