//! `revdeck knowledge stats`.

use clap::Args;
use serde_json::{Value, json};

use super::{look, told};
use crate::cli::arguments::PlainFormat;
use crate::cli::error::{CliError, Exit};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::knowledge::cache::Cache;
use crate::knowledge::figures::Figures;
use crate::knowledge::{base, rank};
use crate::report::{Paint, Table, json};

/// Arguments of `knowledge stats`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

fn in_json(figures: &Figures, language: Option<&str>) -> Value {
    let mut value = json!(figures);
    let (success_rate, at_least) = figures.rates();
    (value["success_rate"], value["at_least"]) = (json!(success_rate), json!(at_least));
    if let Some(language) = language {
        value["language"] = language.into();
    }
    value
}

pub fn run(invocation: &Invocation, cache: &Cache, arguments: &Arguments) -> Result<Exit, CliError> {
    let look = look(invocation)?;
    let (mut all, mut languages) = (Figures::default(), Vec::new());
    for language in base::languages() {
        let known = cache.known(language)?;
        let kinds = known.kinds.values().filter(|tally| tally.lowers().is_some()).count();
        let mut figures = Figures { forgotten: known.forgotten.len(), kinds, ..Figures::default() };
        for pattern in known.patterns {
            figures.add(&pattern, &rank::standing(&pattern, look.now));
        }
        all.merge(&figures);
        languages.push((language.name(), figures));
    }
    if arguments.format == PlainFormat::Json {
        let languages: Vec<Value> = languages.iter().map(|(name, figures)| in_json(figures, Some(name))).collect();
        output::print_json(&json::versioned([("totals", in_json(&all, None)), ("languages", languages.into())]))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::default();
    let numbers = ["patterns", "learned", "base", "imported", "used", "watched", "muted", "forgotten", "kinds lowered"];
    let head = ["language"].into_iter().chain(numbers).chain(["outcomes"]);
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
            figures.kinds,
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
