//! Carries a plan out: posts inline comments, resolves threads, writes the summary, and counts what became of each.
//!
//! - A failure of one comment does not keep the others from being posted. A failure that would meet every request ends
//!   the sending; all that is left counts as failed.
//! - Running again goes on where it stopped, because the comments of the host are the only state.

use std::collections::{HashSet, VecDeque};

use super::api_client::{ApiClient, ApiFailure, ApiRequest};
use super::comment::{PublishableFinding, SummaryParts, format_summary};
use super::error::PublishError;
use super::host::{
    CommentedLines, InlineComment, PublishedComments, PublishedSummary, ResolveFailure, ReviewHost, ReviewedChange,
};
use super::plan::{PlanInput, PublishPlan, plan_comments};
use crate::domain::{FindingId, Priority};

/// Maximum number of times that comments with an uncertain outcome are sent.
const MAX_UNCERTAIN_ATTEMPTS: u32 = 6;
/// Reason of findings whose line the host refuses.
const LINE_REFUSED: &str = "the host accepts no comment for its line";

/// Finding that is not published, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFinding {
    /// Id of the finding.
    pub finding: FindingId,
    /// Reason for a person.
    pub reason: String,
}

/// All that is to be published.
#[derive(Debug, Clone, Default)]
pub struct PublishRequest {
    /// Findings that stand in the head, most urgent first.
    pub findings: Vec<PublishableFinding>,
    /// Findings of the store that are decided or gone.
    pub closed: HashSet<FindingId>,
    /// Findings of the store that nobody has decided about.
    pub open: HashSet<FindingId>,
    /// Sentence about what was not reviewed.
    pub incomplete: Option<String>,
    /// Maximum number of inline comments about current findings; `None` for no maximum.
    pub max_comments: Option<usize>,
    /// `true` to send nothing but reading requests.
    pub dry_run: bool,
}

/// Outcome for the summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SummaryOutcome {
    /// There is nothing to say and no summary.
    #[default]
    None,
    /// It was posted.
    Posted,
    /// Its text was replaced.
    Updated,
    /// Its text is the same.
    Unchanged,
    /// It was neither posted nor replaced.
    Failed,
}

/// Outcome for each finding and comment. In a dry run, the outcome that there would be.
#[derive(Debug, Clone, Default)]
pub struct PublishReport {
    /// Findings with a new inline comment.
    pub posted: Vec<FindingId>,
    /// Findings whose comment was there.
    pub already: Vec<FindingId>,
    /// Findings in the summary.
    pub summarized: Vec<FindingId>,
    /// Findings whose threads were resolved.
    pub resolved: Vec<FindingId>,
    /// Findings of which a second comment was removed.
    pub removed: Vec<FindingId>,
    /// Comments and threads that failed, with the reason.
    pub failed: Vec<SkippedFinding>,
    /// Comments and threads that were left out, with the reason.
    pub skipped: Vec<SkippedFinding>,
    /// Outcome for the summary.
    pub summary: SummaryOutcome,
    /// Reason if the summary failed.
    pub summary_failure: Option<String>,
    /// Requests that a dry run would send.
    pub requests: Vec<ApiRequest>,
}

impl PublishReport {
    /// Returns `true` if something is left to do for the next run.
    pub fn is_incomplete(&self) -> bool {
        !self.failed.is_empty() || self.summary == SummaryOutcome::Failed
    }
}

/// Tells whether a comment is about code that was fixed or removed since. The caller knows the code and the reviews.
pub type IsFixed<'a> = dyn FnMut(&CommentedLines) -> bool + 'a;

/// Publishes findings. `is_fixed` is asked about comments on findings that the store does not know: another machine may
/// have found them, or an earlier job whose store is gone.
///
/// # Errors
///
/// Returns an error if the comments that are there cannot be listed. Later failures are in the report.
pub fn publish_findings(
    host: &mut dyn ReviewHost,
    client: &mut ApiClient,
    change: &ReviewedChange,
    request: &PublishRequest,
    is_fixed: &mut IsFixed<'_>,
) -> Result<PublishReport, PublishError> {
    let mut known = host.list_comments(client)?;
    // Whether a thread is resolved decides about its finding; without an answer it counts as open.
    let no_threads = if known.inline.is_empty() { None } else { host.load_threads(client, &mut known).err() };
    let closed = collect_closed(&known, request, is_fixed);
    let input = PlanInput {
        findings: &request.findings,
        diff: &change.diff,
        known: &known,
        closed: &closed,
        max_comments: request.max_comments,
        syntax: host.syntax(),
    };
    let plan = plan_comments(&input);
    let id = |at: usize| request.findings[at].finding().finding_id.clone();
    let mut publisher =
        Publisher { host, client, head: &change.head, dry_run: request.dry_run, report: PublishReport::default() };
    publisher.report.already = plan.already.iter().map(|at| id(*at)).collect();
    let refused = publisher.post_inline(&plan.inline);
    let elsewhere = collect_elsewhere(&plan, &refused);
    for (at, reason) in elsewhere.iter().filter_map(|(at, reason)| Some((*at, (*reason)?))) {
        publisher.report.skipped.push(SkippedFinding { finding: id(at), reason: reason.to_owned() });
    }
    publisher.report.summarized = elsewhere.iter().map(|(at, _)| id(*at)).collect();
    publisher.resolve_threads(&plan, no_threads.as_ref());
    publisher.remove_duplicates(&known);
    let priorities = list_inline_priorities(request, &publisher.report);
    let rows: Vec<_> = elsewhere.iter().map(|(at, reason)| (&request.findings[*at], *reason)).collect();
    let parts = SummaryParts {
        head: &change.head,
        inline: &priorities,
        elsewhere: &rows,
        incomplete: request.incomplete.as_deref(),
    };
    // Silence about an incomplete review would look like praise.
    let has_news = !rows.is_empty() || request.incomplete.is_some() || !priorities.is_empty();
    if has_news || known.summary.is_some() {
        publisher.write_summary(known.summary, &format_summary(&parts));
    }
    Ok(publisher.report)
}

/// Returns the findings whose threads are done: those that are decided or gone, and unknown ones whose code was fixed.
fn collect_closed(
    known: &PublishedComments,
    request: &PublishRequest,
    is_fixed: &mut IsFixed<'_>,
) -> HashSet<FindingId> {
    let mut closed = request.closed.clone();
    for comment in known.inline.iter().filter(|comment| !comment.is_resolved) {
        let is_unknown = !closed.contains(&comment.finding) && !request.open.contains(&comment.finding);
        if is_unknown && comment.lines.as_ref().is_some_and(&mut *is_fixed) {
            closed.insert(comment.finding.clone());
        }
    }
    closed
}

/// Returns the findings for the summary in their order: those of the plan, and those whose line the host refused.
fn collect_elsewhere(plan: &PublishPlan, refused: &[usize]) -> Vec<(usize, Option<&'static str>)> {
    let mut elsewhere = plan.elsewhere.clone();
    elsewhere.extend(refused.iter().map(|at| (*at, Some(LINE_REFUSED))));
    elsewhere.sort_by_key(|(at, _)| *at);
    elsewhere
}

fn list_inline_priorities(request: &PublishRequest, report: &PublishReport) -> Vec<Priority> {
    let with_comment: HashSet<&FindingId> = report.posted.iter().chain(&report.already).collect();
    let inline = request.findings.iter().map(PublishableFinding::finding);
    inline.filter(|found| with_comment.contains(&found.finding_id)).map(|found| found.priority).collect()
}

/// Comments with their positions among the findings.
type Batch = Vec<(usize, InlineComment)>;

/// The outcome of sending a batch.
enum BatchOutcome {
    /// All of it is on the host.
    Stored,
    /// The host refuses the line of one or more comments.
    Refused(Batch),
    /// These were not stored, and no later batch will be.
    Stopped(Batch, String),
    /// These were not stored, but others may be.
    Failed(Batch, String),
}

struct Publisher<'a> {
    host: &'a mut dyn ReviewHost,
    client: &'a mut ApiClient,
    head: &'a str,
    dry_run: bool,
    report: PublishReport,
}

impl Publisher<'_> {
    /// Posts inline comments. Returns the positions of those whose line the host refused.
    fn post_inline(&mut self, comments: &[(usize, InlineComment)]) -> Vec<usize> {
        let size = self.host.max_batch().max(1);
        let mut waiting: VecDeque<Batch> = comments.chunks(size).map(<[_]>::to_vec).collect();
        let mut refused = Vec::new();
        while let Some(batch) = waiting.pop_front() {
            if self.dry_run {
                self.report.requests.push(self.build_inline(&batch));
                self.note_posted(&batch, &[]);
                continue;
            }
            match self.post_batch(&batch) {
                BatchOutcome::Stored => self.note_posted(&batch, &[]),
                BatchOutcome::Refused(rest) if rest.len() == 1 => {
                    self.note_posted(&batch, &rest);
                    refused.extend(rest.iter().map(|(at, _)| *at));
                }
                BatchOutcome::Refused(mut rest) => {
                    self.note_posted(&batch, &rest);
                    let second = rest.split_off(rest.len() / 2);
                    waiting.push_front(second);
                    waiting.push_front(rest);
                }
                BatchOutcome::Failed(rest, reason) => {
                    self.note_posted(&batch, &rest);
                    self.note_failed(&rest, &reason);
                }
                BatchOutcome::Stopped(rest, reason) => {
                    self.note_posted(&batch, &rest);
                    self.note_failed(&rest, &reason);
                    let left: Batch = waiting.drain(..).flatten().collect();
                    self.note_failed(&left, "not tried after the failure above");
                }
            }
        }
        refused
    }

    /// Sends a batch until its outcome is certain.
    fn post_batch(&mut self, batch: &[(usize, InlineComment)]) -> BatchOutcome {
        let mut left: Batch = batch.to_vec();
        let mut attempt = 1;
        loop {
            let request = self.build_inline(&left);
            let (message, asked) = match self.client.send(&request) {
                Ok(_) => return BatchOutcome::Stored,
                Err(ApiFailure::Refused { status, message }) if self.host.is_line_refusal(status, &message) => {
                    return BatchOutcome::Refused(left);
                }
                Err(ApiFailure::Uncertain { message, asked }) => (message, asked),
                Err(failure) => return BatchOutcome::Stopped(left, failure.to_string()),
            };
            if let Err(failure) = self.client.wait_after(attempt, &message, asked) {
                return BatchOutcome::Stopped(left, failure.to_string());
            }
            // The host may have stored the batch all the same.
            match self.host.list_comments(self.client) {
                Ok(known) => left.retain(|(_, comment)| !known.has(&comment.finding)),
                Err(error) => return BatchOutcome::Stopped(left, error.to_string()),
            }
            if left.is_empty() {
                return BatchOutcome::Stored;
            }
            if attempt >= MAX_UNCERTAIN_ATTEMPTS {
                return BatchOutcome::Failed(left, format!("{message} ({attempt} attempts)"));
            }
            attempt += 1;
        }
    }

    fn build_inline(&self, batch: &[(usize, InlineComment)]) -> ApiRequest {
        let comments: Vec<InlineComment> = batch.iter().map(|(_, comment)| comment.clone()).collect();
        self.host.inline_request(self.head, &comments)
    }

    /// Notes the comments of a batch as posted, without those that are left.
    fn note_posted(&mut self, batch: &[(usize, InlineComment)], left: &[(usize, InlineComment)]) {
        let is_left = |at: usize| left.iter().any(|(other, _)| *other == at);
        let posted = batch.iter().filter(|(at, _)| !is_left(*at));
        self.report.posted.extend(posted.map(|(_, comment)| comment.finding.clone()));
    }

    fn note_failed(&mut self, batch: &[(usize, InlineComment)], reason: &str) {
        let failed = batch.iter().map(|(_, comment)| comment.finding.clone());
        let failed = failed.map(|finding| SkippedFinding { finding, reason: reason.to_owned() });
        self.report.failed.extend(failed);
    }

    /// Resolves the threads about findings that are decided or gone. `no_threads` is the reason if the threads could not be
    /// listed.
    fn resolve_threads(&mut self, plan: &PublishPlan, no_threads: Option<&ApiFailure>) {
        let mut not_allowed: Option<String> = None;
        for comment in &plan.resolve {
            let finding = comment.finding.clone();
            let Some(thread) = &comment.thread else {
                let reason = no_threads.map_or_else(|| "its thread is gone".to_owned(), ToString::to_string);
                let list = if no_threads.is_some() { &mut self.report.failed } else { &mut self.report.skipped };
                list.push(SkippedFinding { finding, reason });
                continue;
            };
            if let Some(reason) = &not_allowed {
                self.report.skipped.push(SkippedFinding { finding, reason: reason.clone() });
                continue;
            }
            let request = self.host.resolve_request(thread);
            if self.dry_run {
                self.report.requests.push(request);
                self.report.resolved.push(finding);
                continue;
            }
            let answer = self.client.send(&request);
            match self.host.check_resolved(answer) {
                Ok(()) => self.report.resolved.push(finding),
                Err(ResolveFailure::NotAllowed(reason)) => {
                    self.report.skipped.push(SkippedFinding { finding, reason: reason.clone() });
                    not_allowed = Some(reason);
                }
                Err(ResolveFailure::Failed(reason)) => self.report.failed.push(SkippedFinding { finding, reason }),
            }
        }
    }

    /// Removes second comments about the same finding: another machine may have posted at the same moment, or the host
    /// may have shown a comment too late.
    fn remove_duplicates(&mut self, known: &PublishedComments) {
        let is_changed = !self.dry_run && !self.report.posted.is_empty();
        // Without a new list the next run finds them.
        let listed = if is_changed { self.host.list_comments(self.client).ok() } else { None };
        for comment in listed.as_ref().unwrap_or(known).find_duplicates() {
            let request = self.host.remove_request(&comment);
            let finding = comment.finding;
            if self.dry_run {
                self.report.requests.push(request);
                self.report.removed.push(finding);
                continue;
            }
            match self.client.send(&request) {
                // The other machine was faster.
                Ok(_) | Err(ApiFailure::Refused { status: 404 | 410, .. }) => self.report.removed.push(finding),
                Err(failure) => {
                    let reason = format!("a second comment stays: {failure}");
                    self.report.failed.push(SkippedFinding { finding, reason });
                }
            }
        }
    }

    /// Posts the summary, or replaces the text of the one that is there.
    fn write_summary(&mut self, known: Option<PublishedSummary>, body: &str) {
        // Hosts trim comments and may change line ends.
        let normal = |text: &str| text.replace("\r\n", "\n").trim().to_owned();
        let mut known = known;
        let mut attempt = 1;
        loop {
            if known.as_ref().is_some_and(|known| normal(&known.body) == normal(body)) {
                let is_first = attempt == 1;
                self.report.summary = if is_first { SummaryOutcome::Unchanged } else { SummaryOutcome::Posted };
                return;
            }
            let request = self.host.summary_request(known.as_ref(), body);
            let outcome = if known.is_some() { SummaryOutcome::Updated } else { SummaryOutcome::Posted };
            if self.dry_run {
                self.report.requests.push(request);
                self.report.summary = outcome;
                return;
            }
            let (message, asked) = match self.client.send(&request) {
                Ok(_) => {
                    self.report.summary = outcome;
                    return;
                }
                Err(ApiFailure::Uncertain { message, asked }) if attempt < MAX_UNCERTAIN_ATTEMPTS => (message, asked),
                Err(failure) => return self.note_summary_failure(failure.to_string()),
            };
            if let Err(failure) = self.client.wait_after(attempt, &message, asked) {
                return self.note_summary_failure(failure.to_string());
            }
            match self.host.list_comments(self.client) {
                Ok(comments) => known = comments.summary,
                Err(error) => return self.note_summary_failure(error.to_string()),
            }
            attempt += 1;
        }
    }

    fn note_summary_failure(&mut self, reason: String) {
        self.report.summary = SummaryOutcome::Failed;
        self.report.summary_failure = Some(reason);
    }
}
