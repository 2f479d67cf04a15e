//! `codebase_search`: lines of the snapshot that hold a text or match a regular expression.
//!
//! What matches is decided on masked text, so that no question about a secret is answered. A pattern is searched in time
//! that grows with the text alone ([`regex`]), and large patterns in fewer files.

use std::ops::ControlFlow;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use regex::{Regex, RegexBuilder, bytes};
use serde_json::json;

use super::arguments::Arguments;
use super::page::{Pager, Shown};
use super::scan::scan;
use super::{Answer, Stopped, Tool, Toolbox, files, quoted};
use crate::context::text::shown_line;
use crate::domain::text::count;
use crate::domain::{LineRange, ToolOutcome, ToolSpec};
use crate::git::Entry;

/// Characters of a query.
const MAX_QUERY: usize = 1_000;
/// A compiled pattern is at most this large, in bytes: `\w{40}` fits, `\w{1000}` does not.
const MAX_PATTERN: usize = 256 << 10;
/// Matches shown of a file, unless it is the only one asked for.
const MAX_OF_FILE: usize = 20;
/// Between two questions whether to stop so many bytes are searched.
const STEP: usize = 64 << 10;
/// What stands further on in a line is not searched, in bytes: no person wrote such a line.
const MAX_LINE: usize = 64 << 10;

pub fn spec() -> ToolSpec {
    Tool::CodebaseSearch.described(
        "Lines of the snapshot's files that hold a text, or match a regular expression (within one line; case counts \
         unless the expression begins with (?i)). Changed files come first, then those near them.",
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

/// A query, for whole files and for their masked lines.
struct Query {
    contents: bytes::Regex,
    lines: Regex,
}

impl Query {
    fn new(query: &str, is_regex: bool) -> Result<Self, Stopped> {
        if query.chars().count() > MAX_QUERY {
            return Err(Stopped::failed(format!("`query` is longer than {MAX_QUERY} characters")));
        }
        if query.contains(['\n', '\r']) || (is_regex && has_line_end(query)) {
            return Err(Stopped::failed("matches lie within one line: look for one of the lines"));
        }
        let pattern = if is_regex { query.to_owned() } else { regex::escape(query) };
        let wrong = |error: regex::Error| Stopped::failed(said(&error));
        let contents = bytes::RegexBuilder::new(&pattern).multi_line(true).crlf(true).size_limit(MAX_PATTERN).build();
        let lines = RegexBuilder::new(&pattern).multi_line(true).size_limit(MAX_PATTERN).build();
        Ok(Self { contents: contents.map_err(wrong)?, lines: lines.map_err(wrong)? })
    }

    fn matches(&self, line: &str) -> bool {
        self.lines.is_match(line.get(..line.floor_char_boundary(MAX_LINE)).unwrap_or(line))
    }

    /// Whether a file is worth a closer look.
    fn may_match(&self, mut content: &[u8], cancelled: &dyn Fn() -> bool) -> Result<bool, Stopped> {
        while !content.is_empty() {
            if cancelled() {
                return Err(Stopped::cancelled());
            }
            // Up to a line end, so that no match is cut in two.
            let end = content
                .get(STEP..)
                .and_then(|rest| memchr::memchr(b'\n', rest))
                .map_or(content.len(), |at| STEP + at + 1);
            let (step, rest) = content.split_at(end);
            let step = step.get(..STEP + MAX_LINE).unwrap_or(step);
            if self.contents.is_match(step) {
                return Ok(true);
            }
            content = rest;
        }
        Ok(false)
    }
}

/// `\n` and its like in a pattern.
fn has_line_end(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|c| {
        let found = escaped && matches!(c, 'n' | 'r');
        escaped = c == '\\' && !escaped;
        found
    })
}

/// The last line of a message about a pattern says what is wrong; the others draw it.
fn said(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "the pattern is too large: use smaller repetitions".to_owned(),
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!(
                "`query` is no valid regular expression: {}; set regex to false to look for it as text",
                shown_line(last)
            )
        }
    }
}

/// Which files are searched.
enum Where {
    Everywhere,
    File(String),
    /// With a slash at the end.
    Below(String),
    Glob(Gitignore),
}

impl Where {
    fn new(toolbox: &Toolbox, path: Option<&str>) -> Result<Self, Stopped> {
        let Some(path) = path.map(files::relative).transpose()?.filter(|path| !path.is_empty()) else {
            return Ok(Self::Everywhere);
        };
        match toolbox.files.file(&toolbox.repo, &path) {
            Ok(entry) => return Ok(Self::File(entry.path.clone())),
            Err(stopped) if stopped.outcome != ToolOutcome::Failed => return Err(stopped),
            Err(_) => {}
        }
        if toolbox.files.folder(&toolbox.repo, &path).is_ok() {
            return Ok(Self::Below(path + "/"));
        }
        let mut builder = GitignoreBuilder::new("");
        // `src/a` is that place and not one of this name anywhere, which is what `**/` is for.
        let glob = if path.contains('/') { format!("/{path}") } else { path.clone() };
        let added = builder.add_line(None, glob.trim_start_matches('!')).map(drop);
        match added.and_then(|()| builder.build()) {
            Ok(glob) => Ok(Self::Glob(glob)),
            Err(_) => Err(Stopped::failed(format!("{} is no valid glob", quoted(&path)))),
        }
    }

    fn has(&self, entry: &Entry) -> bool {
        match self {
            Self::Everywhere => true,
            Self::File(path) => entry.path == *path,
            Self::Below(folder) => entry.path.starts_with(folder),
            Self::Glob(glob) => glob.matched_path_or_any_parents(&entry.path, false).is_ignore(),
        }
    }
}

pub fn run(toolbox: &mut Toolbox, arguments: &mut Arguments, cancelled: &dyn Fn() -> bool) -> Result<Answer, Stopped> {
    let query_text = arguments.required("query")?;
    let query = Query::new(&query_text, arguments.flag("regex")?)?;
    let path = arguments.text("path")?;
    let page = arguments.page()?;
    let scope = Where::new(toolbox, path.as_deref())?;
    let most = if matches!(scope, Where::File(_)) { usize::MAX } else { MAX_OF_FILE };

    let mut pager = Pager::new(page);
    let mut shown = Shown::default();
    let (repo, files, texts) = (&toolbox.repo, &toolbox.files, &mut toolbox.texts);
    let mut matched = 0;
    let scanned = scan((repo, files), &|entry| scope.has(entry), cancelled, &mut |entry, content| {
        if !query.may_match(content, cancelled)? {
            return Ok(ControlFlow::Continue(()));
        }
        let text = texts.get(repo, entry)?;
        let heading = shown_line(&entry.path);
        let (mut here, mut left) = (0, 0);
        for number in 1..=text.lines() {
            if number % 1_000 == 0 && cancelled() {
                return Err(Stopped::cancelled());
            }
            if !query.matches(text.line(number)) {
                continue;
            }
            if here == most {
                left += 1;
                continue;
            }
            here += 1;
            if pager.push_below(&heading, &format!("{number:>5}: {}", shown_line(text.line(number)))).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if pager.is_on_it() {
                shown.add(&entry.path, LineRange::new(number, number));
            }
        }
        matched += here + left;
        if left > 0 {
            let line = format!("       {} of this file: name it with `path` to see all", count(left, "more line"));
            return Ok(pager.push_below(&heading, &line));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if scanned.is_empty() {
        return Err(Stopped::failed(format!(
            "no file matches the path {}",
            quoted(path.as_deref().unwrap_or_default())
        )));
    }
    let notes = scanned.notes();
    let what = quoted(&query_text);
    let Some(found) = pager.text() else {
        let summary = match pager.pages() {
            1 if matched == 0 => format!("no line matches {what}"),
            pages => format!("no page {page} of lines that match {what}; there are {pages}"),
        };
        return Ok(Answer { text: format!("{}.\n{notes}", summary), summary, shown: Vec::new() });
    };
    let more = if pager.has_more { format!("More on page {}.\n", page + 1) } else { String::new() };
    let lines: u32 = shown.0.iter().map(|(_, range)| range.end - range.start + 1).sum();
    let summary = format!(
        "{} for {what}, page {page}{}",
        count(lines as usize, "line"),
        if more.is_empty() { "" } else { " of more" }
    );
    Ok(Answer { text: format!("{found}{more}{notes}"), summary, shown: shown.0 })
}
