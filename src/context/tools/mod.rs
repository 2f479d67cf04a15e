//! Read-only tools that a model may call during a review, answered from the snapshot.
//!
//! - Tools read only the snapshot's tree, whatever path a call names.
//! - The same call gets the same answer, also when a journal is replayed. Exceptions are notes about lines: the last
//!   change is shown only if the history is cached, and test coverage only if a report exists.
//! - An answer has at most [`MAX_ANSWER_BYTES`] bytes, is masked, and contains no terminal control bytes.
//! - An index only saves reading files. It does not change an answer, except that a search may get further before it
//!   reaches its limit.
//! - Arguments are untrusted input; an invalid argument gets an answer that explains the correct form.

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
use super::text::format_line;
use crate::domain::{Finding, LineRange, ToolCall, ToolOutcome, ToolSpec, word_enum};
use crate::git::{Changeset, GitError, Repo};
use crate::index::Index;
use crate::masking::Mask;
use crate::reviewers::Reviewer;
use crate::syntax::source::Parsers;

/// Largest answer in bytes: about 8,000 tokens, a ninth of the default window.
pub const MAX_ANSWER_BYTES: usize = 32 << 10;
/// Longest summary of an answer, in characters.
const MAX_SUMMARY_CHARS: usize = 160;

word_enum!(
    /// Names of the tools.
    Tool {
        ReadFile = "read_file",
        CodebaseSearch = "codebase_search",
        ListFiles = "list_files",
        FindSymbol = "find_symbol",
        ShowDiff = "show_diff",
        StaticFindings = "static_findings",
        /// Executed by the engine, which stores the findings.
        ReportFindings = "report_findings",
        /// Executed by the engine, which ends the review.
        Finish = "finish",
    }
);

impl Tool {
    /// Returns the tool's description for the model.
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

/// Answer to a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Masked answer for the model, at most [`MAX_ANSWER_BYTES`] bytes.
    pub text: String,
    /// Success or failure of the call.
    pub outcome: ToolOutcome,
    /// One-line description for a person.
    pub summary: String,
    /// Lines of snapshot files that the answer shows to the model.
    pub shown: Vec<(String, LineRange)>,
}

/// Inputs of a [`Toolbox`].
pub struct ToolboxSetup {
    /// Repository that holds the snapshot.
    pub repo: Repo,
    /// Empty if the whole snapshot is new.
    pub base_commit: String,
    /// Commit whose tree the tools read.
    pub snapshot_commit: String,
    /// Change under review, from the base to the snapshot.
    pub change: Changeset,
    /// Built-in reviewer of this snapshot, used by `static_findings`.
    pub reviewer: Box<dyn Reviewer>,
    /// Masking of secrets in the answers.
    pub mask: Mask,
    /// Cache folder for facts about this repository.
    pub folder: Option<PathBuf>,
}

/// Tools of one review.
pub struct Toolbox {
    repo: Repo,
    base_commit: String,
    change: Changeset,
    files: VisibleFiles,
    texts: MaskedTextCache,
    parsers: Parsers,
    line_metadata: LineMetadata,
    reviewer: Box<dyn Reviewer>,
    /// Findings of the built-in reviewer, after its first run.
    findings: Option<Vec<Finding>>,
    /// Index of the complete snapshot tree; saves reading files and does not change answers.
    index: Option<Index>,
}

/// Reason why a call ends without the requested result.
struct ToolError {
    outcome: ToolOutcome,
    text: String,
}

impl ToolError {
    /// Creates an error that the model can correct.
    fn failed(text: impl Into<String>) -> Self {
        Self { outcome: ToolOutcome::Failed, text: text.into() }
    }

    /// Creates an error for a request that is not allowed.
    fn refused(text: impl Into<String>) -> Self {
        Self { outcome: ToolOutcome::Refused, text: text.into() }
    }

    /// Creates an answer that replaces the requested one, for example the target of a symbolic link.
    fn redirected(text: impl Into<String>) -> Self {
        Self { outcome: ToolOutcome::Answered, text: text.into() }
    }

    fn cancelled() -> Self {
        Self::failed("cancelled")
    }
}

/// Successful result of a tool.
struct ToolAnswer {
    text: String,
    summary: String,
    shown: Vec<(String, LineRange)>,
}

impl Toolbox {
    /// Creates a toolbox. Lists the snapshot's tree; file contents are read on demand.
    ///
    /// # Errors
    /// Fails if the snapshot cannot be read.
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

    /// Sets the index that searches use to skip files that cannot match. The index must cover the complete snapshot
    /// tree.
    pub fn set_index(&mut self, index: Index) {
        self.index = Some(index);
    }

    /// Returns the descriptions of all tools for the model.
    pub fn specs() -> Vec<ToolSpec> {
        Tool::ALL.iter().map(|tool| tool.spec()).collect()
    }

    /// Answers a call. Calls `cancelled` between files and between lines and stops within a second after it returns
    /// true; the answer then only reports the cancellation.
    pub fn run(&mut self, call: &ToolCall, cancelled: &dyn Fn() -> bool) -> ToolResult {
        // Files are untrusted input: a panic in the analysis fails only this call.
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
        // File names and text written by the model may contain secrets.
        let text = truncate_answer(&mask.mask_key_shapes(&text));
        let summary = mask.mask_key_shapes(&summary);
        ToolResult { text, outcome, summary: format_line(&summary).chars().take(MAX_SUMMARY_CHARS).collect(), shown }
    }

    fn answer(&mut self, call: &ToolCall, cancelled: &dyn Fn() -> bool) -> Result<ToolAnswer, ToolError> {
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

/// Quotes foreign text for a sentence: one line, at most 200 characters.
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

/// Truncates an answer that masking made longer than [`MAX_ANSWER_BYTES`].
fn truncate_answer(text: &str) -> String {
    const NOTE: &str = "\n(The rest did not fit.)";
    match text.len() <= MAX_ANSWER_BYTES {
        true => text.to_owned(),
        false => format!("{}{NOTE}", &text[..text.floor_char_boundary(MAX_ANSWER_BYTES - NOTE.len())]),
    }
}
