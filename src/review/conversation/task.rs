//! The input of a review by a model, and the prompts that the engine needs.

use std::collections::HashSet;

use super::diff_delivery::count_fitting;
use super::{ConversationLimits, PromptTokenCounter};
use crate::domain::{DiffPart, Finding, ToolCall, ToolSpec, TurnPhase, text};
use crate::review::conversation::AnswerProblem;
use crate::review::{PlannedFile, ReviewPlan};

/// Divisor of the pinned tokens that limits the list of known findings: an eighth.
const KNOWN_FINDINGS_DIVISOR: u64 = 8;
/// Maximum length of a known finding's title in the prompt.
const MAX_KNOWN_TITLE_CHARS: usize = 120;

/// The input of a review: the code, the prompts and the limits.
pub struct ReviewTask {
    /// Changed files to review.
    pub plan: ReviewPlan,
    /// Findings that belong to `plan.carried`.
    pub known_findings: Vec<Finding>,
    /// The parts of the diff, in the order of delivery.
    pub parts: Vec<DiffPart>,
    /// System prompt, the same for all requests.
    pub system: String,
    /// The tools; empty for a model that takes none.
    pub tools: Vec<ToolSpec>,
    /// Limits on turns, tokens and cost.
    pub limits: ConversationLimits,
    /// Token counter of the model.
    pub count: PromptTokenCounter,
    /// Renders a prompt.
    pub render_prompt: Box<dyn Fn(ConversationPrompt<'_>) -> String>,
    /// Tokens that the fixed parts cost in addition to their text, because providers bill tool schemas in their own
    /// form.
    pub overhead: u64,
}

/// A prompt that the engine needs.
#[derive(Debug, Clone, Copy)]
pub enum ConversationPrompt<'a> {
    /// The pinned task, with the first parts of the diff and a note about later parts.
    Task {
        /// First parts of the diff.
        diff: &'a str,
        /// Note about later parts; empty if there are none.
        later: &'a str,
        /// Findings of earlier reviews in the hunks that are not sent again, one per line; may be empty.
        known: &'a str,
    },
    /// The next part of the diff.
    More {
        /// Next parts of the diff.
        diff: &'a str,
        /// Note about further parts; empty if there are none.
        later: &'a str,
    },
    /// The model reported completion, but these paths (one per line) were not reviewed.
    Uncovered {
        /// Paths, one per line.
        hunks: &'a str,
    },
    /// The notice that a phase begins.
    Phase {
        /// New phase.
        phase: TurnPhase,
        /// Current turn, from 1.
        turn: u32,
        /// Maximum number of turns.
        of: u32,
    },
    /// The last allowed turn.
    Last,
    /// The answer was cut because of its length.
    Cut,
    /// The request to repeat an unusable answer.
    Retry {
        /// Problem with the answer.
        trouble: AnswerProblem,
        /// Description of the problem.
        reason: &'a str,
    },
    /// The replacement line for an old tool result.
    Masked {
        /// Call that the old result belongs to.
        call: &'a ToolCall,
        /// Size of the old result in tokens.
        tokens: u64,
    },
    /// A side request: summarize these messages in a few lines.
    Summarise {
        /// Messages that slid out of the window, as text.
        messages: &'a str,
    },
    /// A side request: is this finding real?
    Opinion {
        /// Finding to judge.
        finding: &'a Finding,
    },
}

impl ReviewTask {
    /// Creates a review without anything to send. It ends as soon as it starts.
    pub fn nothing_to_send(plan: ReviewPlan, known_findings: Vec<Finding>) -> Self {
        Self {
            plan,
            known_findings,
            parts: Vec::new(),
            system: String::new(),
            tools: Vec::new(),
            limits: ConversationLimits::empty(),
            count: Box::new(|_| 0),
            render_prompt: Box::new(|_| String::new()),
            overhead: 0,
        }
    }

    /// Returns the tokens that are the same in every request: system prompt, tools, and their overhead.
    pub fn fixed_tokens(&self) -> u64 {
        let specs = self.tools.iter().map(|tool| (self.count)(&serde_json::to_string(tool).unwrap_or_default()));
        (self.count)(&self.system) + specs.sum::<u64>() + self.overhead
    }

    /// Returns the maximum number of tokens for known findings in the pinned task.
    pub fn known_tokens(&self) -> u64 {
        if self.known_findings.is_empty() { 0 } else { self.limits.pinned_tokens() / KNOWN_FINDINGS_DIVISOR }
    }

    /// Returns the number of diff parts in the first request.
    pub fn first_part_count(&self) -> usize {
        count_fitting(self.parts.iter(), self.plan_first_request().1)
    }

    /// Returns the known findings of the first request, and the tokens that remain for the diff.
    pub(super) fn plan_first_request(&self) -> (String, u64) {
        let known =
            format_known_findings(&self.known_findings, &self.plan.open_files(), self.known_tokens(), &self.count);
        let words =
            (self.count)(&(self.render_prompt)(ConversationPrompt::Task { diff: "", later: "", known: &known }));
        (known, self.limits.pinned_tokens().saturating_sub(self.fixed_tokens() + words))
    }
}

impl std::fmt::Debug for ReviewTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("plan", &self.plan).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Lists findings, one line each, in at most `tokens` tokens. Findings in files that are sent come first.
fn format_known_findings(known: &[Finding], open: &[PlannedFile], tokens: u64, count: &PromptTokenCounter) -> String {
    let sent: HashSet<&str> = open.iter().map(|file| file.path.as_str()).collect();
    let mut findings: Vec<&Finding> = known.iter().collect();
    findings.sort_by_key(|finding| !sent.contains(finding.repo_relative_path.as_str()));
    let (mut lines, mut used): (Vec<String>, u64) = (Vec::new(), 0);
    for finding in &findings {
        let title: String = finding.title.chars().take(MAX_KNOWN_TITLE_CHARS).collect();
        let (path, line) = (&finding.repo_relative_path, finding.line_start);
        let line = text::sanitize_line(&format!("{path}:{line} {} {title}", finding.kind)).into_owned();
        used = used.saturating_add(count(&line) + 1);
        if used > tokens {
            break;
        }
        lines.push(line);
    }
    if lines.len() < findings.len() {
        lines.push(format!("and {} more", findings.len() - lines.len()));
    }
    lines.join("\n")
}
