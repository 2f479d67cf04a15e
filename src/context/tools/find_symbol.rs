//! The tool `find_symbol`: lists where a name is defined and used, in the languages of the built-in reviewer.

use std::collections::HashSet;
use std::ops::ControlFlow;

use memchr::memmem::Finder;
use serde_json::json;

use super::arguments::ToolArguments;
use super::index_prefilter::IndexPrefilter;
use super::line_metadata::LineRemarks;
use super::pager::{Pager, ShownLines};
use super::scan::{MAX_SCAN_BYTES, scan_files};
use super::symbols::{SymbolOccurrence, SymbolRole, find_occurrences, strip_sigils};
use super::text_cache::MaskedTextCache;
use super::{Tool, ToolAnswer, ToolError, Toolbox, quote};
use crate::context::text::format_line;
use crate::domain::text::format_count;
use crate::domain::{LineRange, ToolSpec};
use crate::git::{Repo, TreeListingEntry};
use crate::masking::unmasked_ranges;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

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

impl FoundSymbol {
    fn is_definition(&self) -> bool {
        matches!(self.occurrence.role, SymbolRole::Definition(_))
    }
}

/// Search for a name in the files of a scan.
struct SymbolSearch<'a> {
    name: &'a str,
    finder: Finder<'a>,
    repo: &'a Repo,
    texts: &'a mut MaskedTextCache,
    parsers: &'a mut Parsers,
    found: Vec<FoundSymbol>,
    parsed_bytes: usize,
    /// Number of files with the name that could not be parsed.
    unparsed: usize,
    is_over_budget: bool,
}

impl SymbolSearch<'_> {
    /// Searches one file.
    fn visit(&mut self, entry: &TreeListingEntry, content: &[u8]) -> Result<(), ToolError> {
        if self.finder.find(content).is_none() {
            return Ok(());
        }
        let Some(language) = Language::detect(&entry.path, content) else { return Ok(()) };
        if self.parsed_bytes + content.len() > MAX_PARSED_BYTES || self.found.len() >= MAX_OCCURRENCES {
            self.is_over_budget = true;
            return Ok(());
        }
        self.parsed_bytes += content.len();
        let text = self.texts.get(self.repo, entry)?;
        let bytes = text.as_str().as_bytes();
        let Ok(source) = self.parsers.parse(&entry.path, language, bytes) else {
            // Text that occurs only inside a secret is not reported.
            let mut parts = unmasked_ranges(text.as_str()).into_iter();
            let has_name = parts.any(|part| bytes.get(part).is_some_and(|part| self.finder.find(part).is_some()));
            self.unparsed += usize::from(has_name);
            return Ok(());
        };
        self.found.extend(find_occurrences(&source, self.name).into_iter().map(|place| FoundSymbol {
            path: entry.path.clone(),
            occurrence: place,
            text: format_line(text.line(place.line).trim()),
        }));
        Ok(())
    }

    /// Returns notes about the files whose occurrences are not listed.
    fn notes(&self) -> String {
        let mut notes = String::new();
        if self.unparsed > 0 {
            let files = format_count(self.unparsed, "more file");
            notes.push_str(&format!("Too complex to parse: {files} with this text; codebase_search finds it there.\n"));
        }
        if self.is_over_budget {
            notes.push_str("Not all files with this text were parsed: codebase_search finds it in the others.\n");
        }
        notes
    }
}

/// Returns false for files that cannot be in a known language.
fn may_have_symbols(entry: &TreeListingEntry) -> bool {
    // A script without a file extension is recognized only by its content.
    Language::detect(&entry.path, b"").is_some() || !entry.path.rsplit('/').next().is_some_and(|n| n.contains('.'))
}

/// Runs the tool.
///
/// # Errors
/// Fails if an argument is invalid or when `cancelled` returns true.
pub fn run(
    toolbox: &mut Toolbox,
    arguments: &mut ToolArguments,
    cancelled: &dyn Fn() -> bool,
) -> Result<ToolAnswer, ToolError> {
    let asked = arguments.take_required_text("name")?;
    let page = arguments.take_page()?;
    let name = parse_name(&asked)?;
    let (repo, files) = (&toolbox.repo, &toolbox.files);
    let mut search = SymbolSearch {
        name,
        finder: Finder::new(name),
        repo,
        texts: &mut toolbox.texts,
        parsers: &mut toolbox.parsers,
        found: Vec::new(),
        parsed_bytes: 0,
        unparsed: 0,
        is_over_budget: false,
    };
    let sieve = IndexPrefilter::for_name(toolbox.index.as_ref(), name);
    let mut visit = |entry: &TreeListingEntry, content: &[u8]| {
        search.visit(entry, content)?;
        Ok(ControlFlow::Continue(()))
    };
    let scanned = scan_files((repo, files), sieve.as_ref(), MAX_SCAN_BYTES, &may_have_symbols, cancelled, &mut visit)?;
    let notes = scanned.notes() + &search.notes();
    let mut found = search.found;
    // Definitions first; within each group, the nearest to the change first.
    found.sort_by_key(|found| !found.is_definition());
    let paths: HashSet<&str> = found.iter().map(|found| found.path.as_str()).collect();
    let mut remarks = toolbox.line_metadata.find_remarks(repo, files, &paths, cancelled);
    let mut pager = Pager::new(page);
    let shown = list_symbols(&found, &mut remarks, &mut pager, cancelled)?;
    let head = summarize(name, &found);
    match (pager.text(), found.is_empty()) {
        (Some(text), _) => {
            let more = if pager.has_more { format!("More on page {}.\n", page + 1) } else { String::new() };
            Ok(ToolAnswer { text: format!("{head}\n{text}{more}{notes}"), summary: head, shown: shown.0 })
        }
        (None, true) => {
            let hint = "codebase_search finds it in comments, strings and other languages";
            Ok(ToolAnswer { text: format!("{head}; {hint}.\n{notes}"), summary: head, shown: Vec::new() })
        }
        (None, false) => Err(ToolError::failed(format!("there is no page {page}; there are {}", pager.page_count()))),
    }
}

/// Returns the name with the numbers of its definitions and references.
fn summarize(name: &str, found: &[FoundSymbol]) -> String {
    let definitions = found.iter().filter(|found| found.is_definition()).count();
    format!(
        "{}: {}, {}",
        quote(name),
        format_count(definitions, "definition"),
        format_count(found.len() - definitions, "reference")
    )
}

/// Lists the symbols until the wanted page is full, and returns the lines that are on it.
fn list_symbols(
    found: &[FoundSymbol],
    remarks: &mut LineRemarks<'_>,
    pager: &mut Pager,
    cancelled: &dyn Fn() -> bool,
) -> Result<ShownLines, ToolError> {
    let mut shown = ShownLines::default();
    for FoundSymbol { path, occurrence: place, text } in found {
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
    Ok(shown)
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
