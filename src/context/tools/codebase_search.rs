//! The tool `codebase_search`: finds lines of the snapshot that contain a text or match a regular expression.
//!
//! - A search never reveals a secret. In a masked line only text outside the secrets can match, and the match must not
//!   depend on the secrets. So a file's own unmasked text shows whether masking it is worthwhile.
//! - Search time is linear in text and pattern size (guaranteed by [`regex`]). A larger pattern searches less text.

use std::ops::ControlFlow;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{Look, LookSet};
use serde_json::json;

use super::arguments::ToolArguments;
use super::index_prefilter::IndexPrefilter;
use super::pager::{Pager, ShownLines};
use super::scan::{MAX_SCAN_BYTES, scan_files};
use super::{Tool, ToolAnswer, ToolError, Toolbox, files, quote};
use crate::context::text::{self, format_line};
use crate::domain::text::format_count;
use crate::domain::{LineRange, ToolOutcome, ToolSpec};
use crate::git::TreeListingEntry;
use crate::masking::unmasked_ranges;

/// Longest query in characters.
const MAX_QUERY_CHARS: usize = 1_000;
/// Compiled pattern size in bytes that may search the whole budget; twice the size searches half of the budget, and so
/// on. Few patterns need more than 2 KB (`fn \w+\(.*parse` needs less than 1 KB). Patterns designed to be slow take 1
/// ms per MB for every 10 bytes.
const FULL_BUDGET_PATTERN_BYTES: usize = 2 << 10;
/// Largest compiled pattern in bytes: `.{400}` fits, `.{1000}` does not.
const MAX_PATTERN_BYTES: usize = 64 << 10;
/// Factor by which Unicode makes classes such as `\w` larger.
const UNICODE_SIZE_FACTOR: usize = 8;
/// Largest compiled text query in bytes.
const MAX_TEXT_PATTERN_BYTES: usize = 1 << 20;
/// Most matches shown per file, unless the search names a single file.
const MAX_MATCHES_PER_FILE: usize = 20;
/// Bytes shown before the match in a long line.
const BYTES_BEFORE_MATCH: usize = 120;
/// Assertions for the start and end of the whole text instead of a line: `\A`, `\z`, and `^` and `$` with flags turned
/// off.
const WHOLE_TEXT_ANCHORS: [Look; 4] = [Look::Start, Look::End, Look::StartLF, Look::EndLF];
/// Bytes searched between two calls of `cancelled`.
const CANCEL_CHECK_BYTES: usize = 16 << 10;
/// Bytes searched of each line; longer lines are not written by hand.
const MAX_SEARCHED_LINE_BYTES: usize = 64 << 10;

pub fn spec() -> ToolSpec {
    Tool::CodebaseSearch.build_spec(
        "Lines of the snapshot's files that hold a text, or match a regular expression (within one line; case counts \
         unless the expression begins with (?i)). Secrets are masked and not searched: look for what stands before them. \
         Changed files come first, then those near them.",
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "regex": {"type": "boolean", "description": "Whether query is a regular expression. Default: false."},
                "path": {"type": "string", "description": "Only files that match: a file, a folder, or a glob such as *.rs or src/**/*.ts."},
                "page": {"type": "integer", "description": "From 1."},
            },
            "required": ["query"],
        }),
    )
}

/// Compiled query with its search budget.
struct CodeSearchPattern {
    pattern: Regex,
    /// True if the pattern has assertions, so that text around a match matters.
    looks_around: bool,
    budget: u64,
}

impl CodeSearchPattern {
    fn new(query: &str, is_regex: bool) -> Result<Self, ToolError> {
        if query.chars().count() > MAX_QUERY_CHARS {
            return Err(ToolError::failed(format!("`query` is longer than {MAX_QUERY_CHARS} characters")));
        }
        if query.contains(['\n', '\r']) || (is_regex && has_line_end(query)) {
            return Err(ToolError::failed("matches lie within one line: look for one of the lines"));
        }
        let wrong = |error| ToolError::failed(describe_error(&error));
        if !is_regex {
            let pattern = compile_pattern(&regex::escape(query), PatternAlphabet::Ascii, MAX_TEXT_PATTERN_BYTES)
                .map_err(wrong)?;
            return Ok(Self { pattern, looks_around: false, budget: MAX_SCAN_BYTES });
        }
        let assertions = find_assertions(query);
        if WHOLE_TEXT_ANCHORS.into_iter().any(|end| assertions.contains(end)) {
            return Err(ToolError::failed("matches lie within one line: its ends are ^ and $"));
        }
        // The size of the pattern without Unicode classes tells how slow it can be.
        let (pattern, budget) = match Self::compile_within(query, PatternAlphabet::Ascii, FULL_BUDGET_PATTERN_BYTES) {
            Ok((pattern, budget)) => (
                compile_pattern(query, PatternAlphabet::Unicode, MAX_PATTERN_BYTES * UNICODE_SIZE_FACTOR)
                    .unwrap_or(pattern),
                budget,
            ),
            // The pattern may need Unicode.
            Err(regex::Error::Syntax(_)) => {
                Self::compile_within(query, PatternAlphabet::Unicode, FULL_BUDGET_PATTERN_BYTES * UNICODE_SIZE_FACTOR)
                    .map_err(wrong)?
            }
            Err(error) => return Err(wrong(error)),
        };
        Ok(Self { pattern, looks_around: !assertions.is_empty(), budget })
    }

    /// Compiles a pattern within `size` bytes, or within twice the size and half the budget, and so on. Returns the
    /// pattern and its search budget in bytes.
    fn compile_within(query: &str, alphabet: PatternAlphabet, mut size: usize) -> Result<(Regex, u64), regex::Error> {
        let (largest, mut budget) = (size * (MAX_PATTERN_BYTES / FULL_BUDGET_PATTERN_BYTES), MAX_SCAN_BYTES);
        loop {
            match compile_pattern(query, alphabet, size) {
                Err(regex::Error::CompiledTooBig(_)) if size < largest => (size, budget) = (size * 2, budget / 2),
                made => return made.map(|pattern| (pattern, budget)),
            }
        }
    }

    /// Returns the display form of a line if it matches; a long line starts shortly before the match. `is_masked` says
    /// that the line differs from the file because secrets are replaced.
    fn match_line(&self, line: &str, is_masked: bool) -> Option<String> {
        let searched = line.as_bytes().get(..MAX_SEARCHED_LINE_BYTES).unwrap_or(line.as_bytes());
        let start = match is_masked {
            true => self.match_beside_secrets(line)?,
            false if line.len() > text::MAX_LINE_CHARS => self.pattern.find(searched)?.start(),
            false => self.pattern.is_match(searched).then_some(0)?,
        };
        if line.len() <= text::MAX_LINE_CHARS {
            return Some(format_line(line));
        }
        let start = line.floor_char_boundary(start.saturating_sub(BYTES_BEFORE_MATCH));
        Some(match start {
            0 => format_line(line),
            start => format!("…{}", format_line(line.get(start..).unwrap_or_default())),
        })
    }

    /// Returns where a masked line matches independently of its secrets: the match neither contains nor looks at a
    /// secret.
    fn match_beside_secrets(&self, line: &str) -> Option<usize> {
        unmasked_ranges(line).into_iter().take_while(|part| part.start < MAX_SEARCHED_LINE_BYTES).find_map(|part| {
            let end = part.end.min(MAX_SEARCHED_LINE_BYTES);
            if !self.looks_around {
                return Some(part.start + self.pattern.find(line.as_bytes().get(part.start..end)?)?.start());
            }
            let start = match part.start {
                0 => 0,
                start => start + line.get(start..)?.chars().next()?.len_utf8(),
            };
            // The cut is not a real line end: a match that reaches it does not count.
            let text = line.as_bytes().get(..end).filter(|text| start <= text.len())?;
            let matched = self.pattern.shortest_match_at(text, start)?;
            let counts = matched < end || end == line.len();
            counts.then(|| self.pattern.find_at(text, start).map(|found| found.start()))?
        })
    }

    /// Returns true if the file may contain a match.
    fn may_match(&self, mut content: &[u8], cancelled: &dyn Fn() -> bool) -> Result<bool, ToolError> {
        while !content.is_empty() {
            if cancelled() {
                return Err(ToolError::cancelled());
            }
            // Cut after a line end, so that no match is split.
            let end = content
                .get(CANCEL_CHECK_BYTES..)
                .and_then(|rest| memchr::memchr(b'\n', rest))
                .map_or(content.len(), |at| CANCEL_CHECK_BYTES + at + 1);
            let (step, rest) = content.split_at(end);
            let step = step.get(..CANCEL_CHECK_BYTES + MAX_SEARCHED_LINE_BYTES).unwrap_or(step);
            if self.pattern.is_match(step) {
                return Ok(true);
            }
            content = rest;
        }
        Ok(false)
    }
}

/// Characters that classes such as `\w` contain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternAlphabet {
    Ascii,
    Unicode,
}

fn compile_pattern(pattern: &str, alphabet: PatternAlphabet, size: usize) -> Result<Regex, regex::Error> {
    let mut builder = RegexBuilder::new(pattern);
    builder.multi_line(true).crlf(true).unicode(alphabet == PatternAlphabet::Unicode).size_limit(size).build()
}

/// Returns the look-around assertions of a pattern; empty for an invalid pattern.
fn find_assertions(pattern: &str) -> LookSet {
    let parsed = |unicode| {
        let mut builder = regex_syntax::ParserBuilder::new();
        builder.multi_line(true).crlf(true).unicode(unicode).utf8(false).build().parse(pattern).ok()
    };
    let parsed = parsed(true).or_else(|| parsed(false));
    parsed.map_or_else(LookSet::empty, |parsed| parsed.properties().look_set())
}

/// Returns true if the pattern contains an escaped line end such as `\n`.
fn has_line_end(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|c| {
        let found = escaped && matches!(c, 'n' | 'r');
        escaped = c == '\\' && !escaped;
        found
    })
}

/// Describes a pattern error in one line. The last line of the `regex` message states the problem; the other lines draw
/// it.
fn describe_error(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "the pattern is too large: use smaller repetitions".to_owned(),
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!(
                "`query` is no valid regular expression: {}; set regex to false to look for it as text",
                format_line(last)
            )
        }
    }
}

/// Files to search.
enum CodeSearchScope {
    AllFiles,
    File(String),
    /// Folder path with a trailing slash.
    Below(String),
    Glob(Gitignore),
}

impl CodeSearchScope {
    fn new(toolbox: &Toolbox, path: Option<&str>) -> Result<Self, ToolError> {
        let Some(path) = path.map(files::normalize_path).transpose()?.filter(|path| !path.is_empty()) else {
            return Ok(Self::AllFiles);
        };
        match toolbox.files.find_file(&toolbox.repo, &path) {
            Ok(entry) => return Ok(Self::File(entry.path.clone())),
            Err(stopped) if stopped.outcome != ToolOutcome::Failed => return Err(stopped),
            Err(_) => {}
        }
        if toolbox.files.find_folder(&toolbox.repo, &path).is_ok() {
            return Ok(Self::Below(path + "/"));
        }
        let mut builder = GitignoreBuilder::new("");
        // `src/a` means this place and not any `src/a` in the tree; `**/` is available for that.
        let glob = if path.contains('/') { format!("/{path}") } else { path.clone() };
        let added = builder.add_line(None, glob.trim_start_matches('!')).map(drop);
        match added.and_then(|()| builder.build()) {
            Ok(glob) => Ok(Self::Glob(glob)),
            Err(_) => Err(ToolError::failed(format!("{} is no valid glob", quote(&path)))),
        }
    }

    fn includes(&self, entry: &TreeListingEntry) -> bool {
        match self {
            Self::AllFiles => true,
            Self::File(path) => entry.path == *path,
            Self::Below(folder) => entry.path.starts_with(folder),
            Self::Glob(glob) => glob.matched_path_or_any_parents(&entry.path, false).is_ignore(),
        }
    }
}

/// Runs the tool.
///
/// # Errors
/// Fails if an argument is invalid, if no file matches `path`, or when `cancelled` returns true.
pub fn run(
    toolbox: &mut Toolbox,
    arguments: &mut ToolArguments,
    cancelled: &dyn Fn() -> bool,
) -> Result<ToolAnswer, ToolError> {
    let query_text = arguments.take_required_text("query")?;
    let is_regex = arguments.take_flag("regex")?;
    let query = CodeSearchPattern::new(&query_text, is_regex)?;
    let path = arguments.take_text("path")?;
    let page = arguments.take_page()?;
    let scope = CodeSearchScope::new(toolbox, path.as_deref())?;
    let most = if matches!(scope, CodeSearchScope::File(_)) { usize::MAX } else { MAX_MATCHES_PER_FILE };

    let mut pager = Pager::new(page);
    let mut shown = ShownLines::default();
    let (repo, files, texts) = (&toolbox.repo, &toolbox.files, &mut toolbox.texts);
    let mut matched = 0;
    let sieve = if is_regex { None } else { IndexPrefilter::for_text(toolbox.index.as_ref(), &query_text) };
    let wanted = |entry: &TreeListingEntry| scope.includes(entry);
    let scanned =
        scan_files((repo, files), sieve.as_ref(), query.budget, &wanted, cancelled, &mut |entry, content| {
            // The same conversion as for the displayed text.
            let unmasked = String::from_utf8_lossy(content);
            if !query.may_match(unmasked.as_bytes(), cancelled)? {
                return Ok(ControlFlow::Continue(()));
            }
            let text = texts.get(repo, entry)?;
            let heading = format_line(&entry.path);
            let (mut here, mut left) = (0, 0);
            for (number, own) in (1..=text.line_count()).zip(unmasked.split('\n')) {
                if cancelled() {
                    return Err(ToolError::cancelled());
                }
                let line = text.line(number);
                let is_masked = own.strip_suffix('\r').unwrap_or(own) != line;
                let Some(line) = query.match_line(line, is_masked) else { continue };
                if here == most {
                    left += 1;
                    continue;
                }
                here += 1;
                if pager.push_below(&heading, &format!("{number:>5}: {line}")).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                if pager.is_on_wanted_page() {
                    shown.add(&entry.path, LineRange::new(number, number));
                }
            }
            matched += here + left;
            if left > 0 {
                let line =
                    format!("       {} of this file: name it with `path` to see all", format_count(left, "more line"));
                return Ok(pager.push_below(&heading, &line));
            }
            Ok(ControlFlow::Continue(()))
        })?;
    if scanned.is_empty() {
        return Err(ToolError::failed(format!(
            "no file matches the path {}",
            quote(path.as_deref().unwrap_or_default())
        )));
    }
    let notes = scanned.notes();
    let what = quote(&query_text);
    let Some(found) = pager.text() else {
        let summary = match pager.page_count() {
            1 if matched == 0 => format!("no line matches {what}"),
            pages => format!("no page {page} of lines that match {what}; there are {pages}"),
        };
        return Ok(ToolAnswer { text: format!("{}.\n{notes}", summary), summary, shown: Vec::new() });
    };
    let more = if pager.has_more { format!("More on page {}.\n", page + 1) } else { String::new() };
    let lines: u32 = shown.0.iter().map(|(_, range)| range.end - range.start + 1).sum();
    let summary = format!(
        "{} for {what}, page {page}{}",
        format_count(lines as usize, "line"),
        if more.is_empty() { "" } else { " of more" }
    );
    Ok(ToolAnswer { text: format!("{found}{more}{notes}"), summary, shown: shown.0 })
}
