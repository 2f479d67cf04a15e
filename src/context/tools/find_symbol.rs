//! The tool `find_symbol`: lists where a name is defined and used, in the languages of the built-in reviewer.

use std::collections::HashSet;
use std::ops::ControlFlow;

use memchr::memmem::Finder;
use serde_json::json;

use super::arguments::ToolArguments;
use super::index_prefilter::IndexPrefilter;
use super::pager::{Pager, ShownLines};
use super::scan::{MAX_SCAN_BYTES, scan_files};
use super::symbols::{SymbolOccurrence, SymbolRole, find_occurrences, strip_sigils};
use super::{Tool, ToolError, ToolOutput, Toolbox, quote};
use crate::context::text::format_line;
use crate::domain::text::format_count;
use crate::domain::{LineRange, ToolSpec};
use crate::masking::unmasked_ranges;
use crate::syntax::language::Language;

/// Longest name in bytes.
const MAX_NAME_BYTES: usize = 200;
/// Bytes of files that are parsed per call; takes about two seconds.
const MAX_PARSED_BYTES: usize = 12 << 20;
/// Most occurrences that are listed. For a more frequent name, `codebase_search` in one folder is better.
const MAX_OCCURRENCES: usize = 4_000;

pub fn spec() -> ToolSpec {
    Tool::FindSymbol.build_spec(
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

struct FoundSymbol {
    path: String,
    occurrence: SymbolOccurrence,
    text: String,
}

/// Runs the tool.
///
/// # Errors
/// Fails if an argument is invalid or when `cancelled` returns true.
pub fn run(
    toolbox: &mut Toolbox,
    arguments: &mut ToolArguments,
    cancelled: &dyn Fn() -> bool,
) -> Result<ToolOutput, ToolError> {
    let asked = arguments.take_required_text("name")?;
    let page = arguments.take_page()?;
    let name = parse_name(&asked)?;
    let finder = Finder::new(name);
    let (repo, files, texts, parsers) = (&toolbox.repo, &toolbox.files, &mut toolbox.texts, &mut toolbox.parsers);
    let (mut found, mut parsed, mut unparsed, mut is_over_budget) = (Vec::new(), 0, 0, false);
    let may_name = |entry: &crate::git::TreeListingEntry| {
        // A script without a file extension is recognized only by its content.
        Language::detect(&entry.path, b"").is_some() || !entry.path.rsplit('/').next().is_some_and(|n| n.contains('.'))
    };
    let sieve = IndexPrefilter::for_name(toolbox.index.as_ref(), name);
    let scanned =
        scan_files((repo, files), sieve.as_ref(), MAX_SCAN_BYTES, &may_name, cancelled, &mut |entry, content| {
            if finder.find(content).is_none() {
                return Ok(ControlFlow::Continue(()));
            }
            let Some(language) = Language::detect(&entry.path, content) else { return Ok(ControlFlow::Continue(())) };
            if parsed + content.len() > MAX_PARSED_BYTES || found.len() >= MAX_OCCURRENCES {
                is_over_budget = true;
                return Ok(ControlFlow::Continue(()));
            }
            parsed += content.len();
            let text = texts.get(repo, entry)?;
            let bytes = text.as_str().as_bytes();
            let Ok(source) = parsers.parse(&entry.path, language, bytes) else {
                // Text that occurs only inside a secret is not reported.
                let mut parts = unmasked_ranges(text.as_str()).into_iter();
                unparsed +=
                    usize::from(parts.any(|part| bytes.get(part).is_some_and(|part| finder.find(part).is_some())));
                return Ok(ControlFlow::Continue(()));
            };
            found.extend(find_occurrences(&source, name).into_iter().map(|place| FoundSymbol {
                path: entry.path.clone(),
                occurrence: place,
                text: format_line(text.line(place.line).trim()),
            }));
            Ok(ControlFlow::Continue(()))
        })?;
    let is_definition = |found: &FoundSymbol| matches!(found.occurrence.role, SymbolRole::Definition(_));
    let definitions = found.iter().filter(|found| is_definition(found)).count();
    let head = format!(
        "{}: {}, {}",
        quote(name),
        format_count(definitions, "definition"),
        format_count(found.len() - definitions, "reference")
    );
    // Definitions first; within each group, the nearest to the change first.
    found.sort_by_key(|found| !is_definition(found));
    let paths: HashSet<&str> = found.iter().map(|found| found.path.as_str()).collect();
    let mut remarks = toolbox.line_metadata.find_remarks(repo, files, &paths, cancelled);
    let mut pager = Pager::new(page);
    let mut shown = ShownLines::default();
    for FoundSymbol { path, occurrence: place, text } in &found {
        if cancelled() {
            return Err(ToolError::cancelled());
        }
        let (heading, sort) = match place.role {
            SymbolRole::Definition(sort) => ("Definitions:", Some(sort.to_owned())),
            SymbolRole::Reference => ("References:", None),
        };
        let said: Vec<String> = sort.into_iter().chain(remarks.describe_lines(path, place.lines)).collect();
        let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) };
        let line = format!("{}:{}{said}: {text}", format_line(path), place.line);
        if pager.push_below(heading, &line).is_break() {
            break;
        }
        if pager.is_on_wanted_page() {
            shown.add(path, LineRange::new(place.line, place.line));
        }
    }
    let mut notes = scanned.notes();
    if unparsed > 0 {
        let files = format_count(unparsed, "more file");
        notes.push_str(&format!("Too complex to parse: {files} with this text; codebase_search finds it there.\n"));
    }
    if is_over_budget {
        notes.push_str("Not all files with this text were parsed: codebase_search finds it in the others.\n");
    }
    match (pager.text(), found.is_empty()) {
        (Some(text), _) => {
            let more = if pager.has_more { format!("More on page {}.\n", page + 1) } else { String::new() };
            Ok(ToolOutput { text: format!("{head}\n{text}{more}{notes}"), summary: head, shown: shown.0 })
        }
        (None, true) => {
            let hint = "codebase_search finds it in comments, strings and other languages";
            Ok(ToolOutput { text: format!("{head}; {hint}.\n{notes}"), summary: head, shown: Vec::new() })
        }
        (None, false) => Err(ToolError::failed(format!("there is no page {page}; there are {}", pager.page_count()))),
    }
}

/// Returns the last name of `Parser::parse`, `parser.parse()` or `$parse`.
fn parse_name(asked: &str) -> Result<&str, ToolError> {
    let name = asked.trim().trim_end_matches("()");
    let name = name.rsplit(['.', ':', '/', '\\', '>']).next().unwrap_or(name);
    let name = strip_sigils(name.trim());
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '?' | '!'));
    match is_name {
        true => Ok(name),
        false => Err(ToolError::failed(format!("{} is no name; codebase_search finds any text", quote(asked)))),
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
            assert_eq!(parse_name(asked).ok(), name, "{asked}");
        }
    }
}
