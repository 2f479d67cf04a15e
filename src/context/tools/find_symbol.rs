//! `find_symbol`: where a name is defined and where it is used, in the languages of the built-in reviewer.

use std::collections::HashSet;
use std::ops::ControlFlow;

use memchr::memmem::Finder;
use serde_json::json;

use super::arguments::Arguments;
use super::page::{Pager, Shown};
use super::scan::{BUDGET, scan};
use super::sieve::Sieve;
use super::symbols::{Place, Role, places, plain};
use super::{Answer, Stopped, Tool, Toolbox, quoted};
use crate::context::mask::beside_secrets;
use crate::context::text::shown_line;
use crate::domain::text::count;
use crate::domain::{LineRange, ToolSpec};
use crate::provider::builtin::language::Language;

/// Longer names, in bytes, are none.
const MAX_NAME: usize = 200;
/// Bytes of files that are parsed for one call; two seconds' worth.
const MAX_PARSED: usize = 12 << 20;
/// Places that are listed; a name that has more is better asked for in a folder, with `codebase_search`.
const MAX_PLACES: usize = 4_000;

pub fn spec() -> ToolSpec {
    Tool::FindSymbol.described(
        "Where a function, type, variable or the like is defined and used. By name, not by scope: things of the same \
         name are listed together. Comments and strings do not count. With each place stands when its lines changed last and \
         what tests reach of them, where that is known.",
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Without qualification: parse, not Parser::parse."},
                "page": {"type": "integer", "description": "From 1."},
            },
            "required": ["name"],
        }),
    )
}

struct Found {
    path: String,
    place: Place,
    text: String,
}

pub fn run(toolbox: &mut Toolbox, arguments: &mut Arguments, cancelled: &dyn Fn() -> bool) -> Result<Answer, Stopped> {
    let asked = arguments.required("name")?;
    let page = arguments.page()?;
    let name = last_name(&asked)?;
    let finder = Finder::new(name);
    let (repo, files, texts, parsers) = (&toolbox.repo, &toolbox.files, &mut toolbox.texts, &mut toolbox.parsers);
    let (mut found, mut parsed, mut unparsed, mut is_over_budget) = (Vec::new(), 0, 0, false);
    let may_name = |entry: &crate::git::Entry| {
        // A script without an ending is known by its content only.
        Language::detect(&entry.path, b"").is_some() || !entry.path.rsplit('/').next().is_some_and(|n| n.contains('.'))
    };
    let sieve = Sieve::of_name(toolbox.index.as_ref(), name);
    let scanned = scan((repo, files), sieve.as_ref(), BUDGET, &may_name, cancelled, &mut |entry, content| {
        if finder.find(content).is_none() {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(language) = Language::detect(&entry.path, content) else { return Ok(ControlFlow::Continue(())) };
        if parsed + content.len() > MAX_PARSED || found.len() >= MAX_PLACES {
            is_over_budget = true;
            return Ok(ControlFlow::Continue(()));
        }
        parsed += content.len();
        let text = texts.get(repo, entry)?;
        let bytes = text.as_str().as_bytes();
        let Ok(source) = parsers.parse(&entry.path, language, bytes) else {
            // Of what only a secret has nothing is told.
            let mut parts = beside_secrets(text.as_str()).into_iter();
            unparsed += usize::from(parts.any(|part| bytes.get(part).is_some_and(|part| finder.find(part).is_some())));
            return Ok(ControlFlow::Continue(()));
        };
        found.extend(places(&source, name).into_iter().map(|place| Found {
            path: entry.path.clone(),
            place,
            text: shown_line(text.line(place.line).trim()),
        }));
        Ok(ControlFlow::Continue(()))
    })?;
    let is_definition = |found: &Found| matches!(found.place.role, Role::Definition(_));
    let definitions = found.iter().filter(|found| is_definition(found)).count();
    let head = format!(
        "{}: {}, {}",
        quoted(name),
        count(definitions, "definition"),
        count(found.len() - definitions, "reference")
    );
    // Definitions first; within each the nearest to the change.
    found.sort_by_key(|found| !is_definition(found));
    let paths: HashSet<&str> = found.iter().map(|found| found.path.as_str()).collect();
    let mut remarks = toolbox.standing.of(repo, files, &paths, cancelled);
    let mut pager = Pager::new(page);
    let mut shown = Shown::default();
    for Found { path, place, text } in &found {
        if cancelled() {
            return Err(Stopped::cancelled());
        }
        let (heading, sort) = match place.role {
            Role::Definition(sort) => ("Definitions:", Some(sort.to_owned())),
            Role::Reference => ("References:", None),
        };
        let said: Vec<String> = sort.into_iter().chain(remarks.of_lines(path, place.lines)).collect();
        let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) };
        let line = format!("{}:{}{said}: {text}", shown_line(path), place.line);
        if pager.push_below(heading, &line).is_break() {
            break;
        }
        if pager.is_on_it() {
            shown.add(path, LineRange::new(place.line, place.line));
        }
    }
    let mut notes = scanned.notes();
    if unparsed > 0 {
        let files = count(unparsed, "more file");
        notes.push_str(&format!("Too complex to parse: {files} with this text; codebase_search finds it there.\n"));
    }
    if is_over_budget {
        notes.push_str("Not all files with this text were parsed: codebase_search finds it in the others.\n");
    }
    match (pager.text(), found.is_empty()) {
        (Some(text), _) => {
            let more = if pager.has_more { format!("More on page {}.\n", page + 1) } else { String::new() };
            Ok(Answer { text: format!("{head}\n{text}{more}{notes}"), summary: head, shown: shown.0 })
        }
        (None, true) => {
            let hint = "codebase_search finds it in comments, strings and other languages";
            Ok(Answer { text: format!("{head}; {hint}.\n{notes}"), summary: head, shown: Vec::new() })
        }
        (None, false) => Err(Stopped::failed(format!("there is no page {page}; there are {}", pager.pages()))),
    }
}

/// The name itself of `Parser::parse`, `parser.parse()`, `$parse`.
fn last_name(asked: &str) -> Result<&str, Stopped> {
    let name = asked.trim().trim_end_matches("()");
    let name = name.rsplit(['.', ':', '/', '\\', '>']).next().unwrap_or(name);
    let name = plain(name.trim());
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '?' | '!'));
    match is_name {
        true => Ok(name),
        false => Err(Stopped::failed(format!("{} is no name; codebase_search finds any text", quoted(asked)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_without_their_qualification() {
        for (asked, name) in [
            ("parse", Some("parse")),
            (" Parser::parse() ", Some("parse")),
            ("a.b.c", Some("c")),
            ("$this->x", Some("x")),
            ("@x", Some("x")),
            ("empty?", Some("empty?")),
            ("größe", Some("größe")),
            ("a b", None),
            ("", None),
            ("::", None),
            ("x(1)", None),
        ] {
            assert_eq!(last_name(asked).ok(), name, "{asked}");
        }
    }
}
