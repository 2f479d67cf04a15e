//! The tools that a model may call while it reviews: read-only, answered from the snapshot alone.
//!
//! Invariants: nothing outside of the snapshot's tree is read, whatever a path says; the same call gets the same answer,
//! today and when a journal is replayed, but for what is known of a line besides: when it changed last is told where that is
//! kept, what tests reach where a report lies about; each answer is at most [`MAX_ANSWER`], masked, and without a byte that a terminal
//! obeys. An index saves reading files and changes no answer, but that a search which would reach its limit gets further.
//! Arguments are a stranger's: what cannot be understood is answered with how to do it right.

mod arguments;
mod codebase_search;
mod files;
mod find_symbol;
mod index_prefilter;
mod line_metadata;
mod list_files;
mod pager;
mod read_file;
mod report_specs;
mod scan;
mod show_diff;
mod static_findings;
mod symbols;
mod text_cache;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use self::arguments::ToolArguments;
use self::files::VisibleFiles;
use self::line_metadata::LineMetadata;
use self::text_cache::MaskedTextCache;
use super::index::Index;
use super::mask::Mask;
use super::text::format_line;
use crate::domain::{Finding, LineRange, ToolCall, ToolOutcome, ToolSpec, word_enum};
use crate::git::{Changeset, GitError, Repo};
use crate::reviewers::Reviewer;
use crate::reviewers::analyzer::source::Parsers;

/// Bytes of an answer: about 8,000 tokens, a ninth of the default window.
pub const MAX_ANSWER_BYTES: usize = 32 << 10;
/// Characters of an answer's summary.
const MAX_SUMMARY_CHARS: usize = 160;

word_enum!(
    /// The tools by their names.
    Tool {
        ReadFile = "read_file",
        CodebaseSearch = "codebase_search",
        ListFiles = "list_files",
        FindSymbol = "find_symbol",
        ShowDiff = "show_diff",
        StaticFindings = "static_findings",
        /// Carried out by whoever keeps the findings.
        ReportFindings = "report_findings",
        /// Carried out by whoever ends the review.
        Finish = "finish",
    }
);

impl Tool {
    /// What a model is told of the tool.
    pub fn spec(self) -> ToolSpec {
        match self {
            Self::ReadFile => read_file::spec(),
            Self::CodebaseSearch => codebase_search::spec(),
            Self::ListFiles => list_files::spec(),
            Self::FindSymbol => find_symbol::spec(),
            Self::ShowDiff => show_diff::spec(),
            Self::StaticFindings => static_findings::spec(),
            Self::ReportFindings => report_specs::report_findings_spec(),
            Self::Finish => report_specs::finish_spec(),
        }
    }

    fn build_spec(self, description: &str, parameters: serde_json::Value) -> ToolSpec {
        ToolSpec { name: self.word().to_owned(), description: description.to_owned(), parameters }
    }
}

/// What a model is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub text: String,
    pub outcome: ToolOutcome,
    /// One line for a person.
    pub summary: String,
    /// Lines of the snapshot's files that the answer puts before the model.
    pub shown: Vec<(String, LineRange)>,
}

/// What a toolbox answers from.
pub struct ToolboxSetup {
    pub repo: Repo,
    /// Empty when all of the snapshot is new.
    pub base_commit: String,
    pub snapshot_commit: String,
    pub change: Changeset,
    /// The built-in reviewer of this snapshot, for `static_findings`.
    pub reviewer: Box<dyn Reviewer>,
    pub mask: Mask,
    /// Where facts about this repository are kept.
    pub folder: Option<PathBuf>,
}

/// The tools of one review.
pub struct Toolbox {
    repo: Repo,
    base_commit: String,
    change: Changeset,
    files: VisibleFiles,
    texts: MaskedTextCache,
    parsers: Parsers,
    line_metadata: LineMetadata,
    reviewer: Box<dyn Reviewer>,
    /// What the built-in reviewer reports, once it was asked.
    findings: Option<Vec<Finding>>,
    /// Of all of the snapshot's tree: it saves reading files, and changes no answer.
    index: Option<Index>,
}

/// Why a call ends without what it asked for.
struct ToolError {
    outcome: ToolOutcome,
    text: String,
}

impl ToolError {
    /// The model can do it better.
    fn failed(text: impl Into<String>) -> Self {
        Self { outcome: ToolOutcome::Failed, text: text.into() }
    }

    /// It is not allowed.
    fn refused(text: impl Into<String>) -> Self {
        Self { outcome: ToolOutcome::Refused, text: text.into() }
    }

    /// There is a better answer than what was asked for.
    fn redirected(text: impl Into<String>) -> Self {
        Self { outcome: ToolOutcome::Answered, text: text.into() }
    }

    fn cancelled() -> Self {
        Self::failed("cancelled")
    }
}

/// What a tool has to say.
struct ToolOutput {
    text: String,
    summary: String,
    shown: Vec<(String, LineRange)>,
}

impl Toolbox {
    /// Lists the snapshot's tree; everything else is read when it is asked for.
    ///
    /// # Errors
    /// A snapshot that cannot be read.
    pub fn new(setup: ToolboxSetup) -> Result<Self, GitError> {
        let ToolboxSetup { repo, base_commit, snapshot_commit, change, reviewer, mask, folder } = setup;
        let files = VisibleFiles::new(repo.list_tree(&snapshot_commit)?, &change);
        let (texts, parsers) = (MaskedTextCache::new(mask), Parsers::default());
        let standing = LineMetadata::new(&base_commit, &snapshot_commit, folder);
        Ok(Self {
            repo,
            base_commit,
            change,
            files,
            texts,
            parsers,
            line_metadata: standing,
            reviewer,
            findings: None,
            index: None,
        })
    }

    /// From now on searches leave away the files that this index, which must be of all of the snapshot's tree, knows not
    /// to have what is looked for.
    pub fn set_index(&mut self, index: Index) {
        self.index = Some(index);
    }

    /// What a model is told of its tools.
    pub fn specs() -> Vec<ToolSpec> {
        Tool::ALL.iter().map(|tool| tool.spec()).collect()
    }

    /// Answers a call. Asks `cancelled` between files and between lines, and stops within a second; the answer then says
    /// so and nothing else.
    pub fn run(&mut self, call: &ToolCall, cancelled: &dyn Fn() -> bool) -> ToolResult {
        // Files are a stranger's as well: what makes an analysis panic costs this call and nothing else.
        let answered = catch_unwind(AssertUnwindSafe(|| self.answer(call, cancelled)));
        let answered = answered.unwrap_or_else(|_| {
            self.parsers = Parsers::default();
            Err(ToolError::failed("the tool failed on this file; that is a fault of revdeck, go on without it"))
        });
        let mask = self.texts.mask();
        let (text, outcome, summary, shown) = match answered {
            Ok(answer) => (answer.text, ToolOutcome::Answered, answer.summary, answer.shown),
            Err(stopped) => {
                let summary = stopped.text.lines().next().unwrap_or_default().to_owned();
                (stopped.text, stopped.outcome, summary, Vec::new())
            }
        };
        // File names and what a model writes may hold secrets as well.
        let text = truncate_answer(&mask.mask_key_shapes(&text));
        let summary = mask.mask_key_shapes(&summary);
        ToolResult { text, outcome, summary: format_line(&summary).chars().take(MAX_SUMMARY_CHARS).collect(), shown }
    }

    fn answer(&mut self, call: &ToolCall, cancelled: &dyn Fn() -> bool) -> Result<ToolOutput, ToolError> {
        let tool: Tool = call.name.parse().map_err(|_| {
            let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.word()).collect();
            ToolError::failed(format!("there is no tool {}; there are {}", quote(&call.name), names.join(", ")))
        })?;
        let mut arguments = ToolArguments::parse(&tool.spec(), &call.arguments)?;
        match tool {
            Tool::ReadFile => read_file::run(self, &mut arguments),
            Tool::CodebaseSearch => codebase_search::run(self, &mut arguments, cancelled),
            Tool::ListFiles => list_files::run(self, &mut arguments),
            Tool::FindSymbol => find_symbol::run(self, &mut arguments, cancelled),
            Tool::ShowDiff => show_diff::run(self, &mut arguments, cancelled),
            Tool::StaticFindings => static_findings::run(self, &mut arguments, cancelled),
            Tool::ReportFindings | Tool::Finish => Err(ToolError::failed(format!("{tool} is not answered here"))),
        }
    }
}

/// What somebody wrote, in a sentence: one line, not too long.
fn quote(text: &str) -> String {
    let short: String = text.chars().take(200).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("`{}{dots}`", format_line(&short))
}

#[cfg(test)]
const _: () = {
    const fn moves_to_another_thread<T: Send>() {}
    moves_to_another_thread::<Toolbox>();
};

/// Tools keep within their pages; what masking made longer is cut here.
fn truncate_answer(text: &str) -> String {
    const NOTE: &str = "\n(The rest did not fit.)";
    match text.len() <= MAX_ANSWER_BYTES {
        true => text.to_owned(),
        false => format!("{}{NOTE}", &text[..text.floor_char_boundary(MAX_ANSWER_BYTES - NOTE.len())]),
    }
}
