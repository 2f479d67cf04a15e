//! The interface of a code host: requests are built and answers are read here, but sent elsewhere.

use std::collections::HashSet;

use serde_json::Value;

use super::api_client::{ApiClient, ApiFailure, ApiRequest, ApiResponse};
use super::comment::SuggestionSyntax;
use super::diff_lines::DiffLines;
use super::error::PublishError;
use crate::domain::{FindingId, LineRange};

/// Pull request or merge request as the host knows it.
#[derive(Debug, Clone, Default)]
pub struct ReviewedChange {
    /// Commit at the head of the change.
    pub head: String,
    /// Lines of its diff.
    pub diff: DiffLines,
}

/// Inline comment to be posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineComment {
    /// Finding that the comment is about.
    pub finding: FindingId,
    /// Path of the file in the head.
    pub path: String,
    /// Path on the old side of the diff.
    pub old_path: String,
    /// Lines in the head, all in one hunk.
    pub lines: LineRange,
    /// The last of these lines on the old side; `None` for an added line.
    pub old_line: Option<u32>,
    /// Text of the comment.
    pub body: String,
}

/// Lines that a comment was posted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentedLines {
    /// Head of the change at that time, as the host says.
    pub commit: String,
    /// Path in that commit.
    pub path: String,
    /// Lines in that commit.
    pub lines: LineRange,
}

impl CommentedLines {
    /// Creates the lines from the words of a host; `None` if a part is missing. `start` is missing for a single line.
    pub fn from_parts(commit: &Value, path: &Value, start: &Value, end: &Value) -> Option<Self> {
        let number = |value: &Value| u32::try_from(value.as_u64()?).ok().filter(|line| *line > 0);
        let end = number(end)?;
        let lines = LineRange::new(number(start).unwrap_or(end), end);
        Some(Self { commit: commit.as_str()?.to_owned(), path: path.as_str()?.to_owned(), lines })
    }
}

/// Inline comment of revdeck that the host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedComment {
    /// Finding that the comment is about.
    pub finding: FindingId,
    /// Id of the comment.
    pub comment: String,
    /// Id of the thread that the comment began; `None` before [`ReviewHost::load_threads`], or if the host has none.
    pub thread: Option<String>,
    /// `true` if the thread is resolved.
    pub is_resolved: bool,
    /// Lines that the comment was posted for, if the host tells them.
    pub lines: Option<CommentedLines>,
    /// `true` if somebody has answered in the thread.
    pub has_answers: bool,
}

/// Summary that the host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedSummary {
    /// Id of the comment.
    pub comment: String,
    /// Text of the comment.
    pub body: String,
}

/// Comments of revdeck by the account of the token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedComments {
    /// Inline comments, oldest first.
    pub inline: Vec<PublishedComment>,
    /// The oldest summary.
    pub summary: Option<PublishedSummary>,
}

impl PublishedComments {
    /// Returns the comments about findings that have an older one, except for those with answers.
    pub fn find_duplicates(&self) -> Vec<PublishedComment> {
        let mut comments: Vec<&PublishedComment> = self.inline.iter().collect();
        // All machines must keep the same one. Ids grow; they are numbers.
        comments.sort_by_key(|comment| (comment.comment.len(), &comment.comment));
        let mut seen = HashSet::new();
        let later = comments.into_iter().filter(|comment| !seen.insert(&comment.finding));
        later.filter(|comment| !comment.has_answers).cloned().collect()
    }

    /// Returns `true` if there is a comment about a finding.
    pub fn has(&self, finding: &FindingId) -> bool {
        self.inline.iter().any(|known| known.finding == *finding)
    }
}

/// The reason why a thread was not resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolveFailure {
    /// The token may not resolve threads.
    NotAllowed(String),
    /// The host answered something else.
    Failed(String),
}

/// A code host.
pub trait ReviewHost {
    /// Returns the name of the change, for example `pull request 7 of octo/hello`.
    fn describe(&self) -> String;

    /// Returns the command that fetches the head of the change.
    fn fetch_command(&self) -> String;

    /// Returns the way in which the host writes suggestions.
    fn syntax(&self) -> SuggestionSyntax;

    /// Returns the maximum number of inline comments in one request.
    fn max_batch(&self) -> usize;

    /// Loads the head and the diff of the change.
    ///
    /// # Errors
    ///
    /// Returns an error if the host refuses a request or cannot be reached.
    fn load_change(&mut self, client: &mut ApiClient) -> Result<ReviewedChange, PublishError>;

    /// Lists the comments of revdeck by the account of the token: all pages, or an error.
    ///
    /// # Errors
    ///
    /// Returns an error if the host refuses a request or cannot be reached.
    fn list_comments(&mut self, client: &mut ApiClient) -> Result<PublishedComments, PublishError>;

    /// Adds the threads of the inline comments, where listing does not tell them.
    ///
    /// # Errors
    ///
    /// Returns an error if the host refuses a request or cannot be reached.
    fn load_threads(&self, client: &mut ApiClient, known: &mut PublishedComments) -> Result<(), ApiFailure>;

    /// Builds the request that posts inline comments, at most [`ReviewHost::max_batch`], at a head. The host stores all of
    /// them or none.
    fn inline_request(&self, head: &str, comments: &[InlineComment]) -> ApiRequest;

    /// Builds the request that posts the summary, or replaces the text of a known one.
    fn summary_request(&self, known: Option<&PublishedSummary>, body: &str) -> ApiRequest;

    /// Builds the request that resolves a thread.
    fn resolve_request(&self, thread: &str) -> ApiRequest;

    /// Builds the request that removes an inline comment.
    fn remove_request(&self, comment: &PublishedComment) -> ApiRequest;

    /// Checks the answer to the request that resolves a thread.
    ///
    /// # Errors
    ///
    /// Returns the reason if the thread is not resolved.
    fn check_resolved(&self, answer: Result<ApiResponse, ApiFailure>) -> Result<(), ResolveFailure>;

    /// Returns `true` if a refusal, with its status and the words of the host, is about the lines of the comments.
    fn is_line_refusal(&self, status: u16, message: &str) -> bool;
}
