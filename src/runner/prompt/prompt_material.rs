//! Collects the texts that a model receives in addition to the code around a change: the constitution, the project's
//! rules, learned patterns, and the change itself. Reviews and `revdeck context` use the same code.

use std::collections::{HashMap, HashSet};

use crate::config::{PromptName, Prompts};
use crate::context::builder::{TASK_BUDGET_DIVISOR, standalone_piece};
use crate::context::diff_parts::{DiffLimits, DiffParts, build_diff_parts, is_secret};
use crate::context::guidelines::{Guidelines, collect_guidelines};
use crate::context::omitted_files::list_omitted_files;
use crate::context::pack::{ContextPiece, Need, SectionKind};
use crate::context::project_documents::{Constitution, list_project_documents, quote_constitution};
use crate::context::retrieve::unified_diff;
use crate::domain::{Encoding, LineRange, OmissionReason, OmittedFile, RunRecord, text};
use crate::git::{Changeset, FileChange, Hunk};
use crate::knowledge::prompt_hints;
use crate::masking::Mask;
use crate::review::ReviewPlan;
use crate::review::conversation::ConversationLimits;
use crate::runner::PromptBuilder;
use crate::runner::prompt::code_context::ContextTaskInput;
use crate::tokens;

/// Maximum size of the project's own rules in a request, in tokens.
const MAX_RULES_TOKENS: u64 = 3_000;
/// Divisor of the pinned tokens, or of a budget, that limits the constitution: a quarter.
const CONSTITUTION_DIVISOR: u64 = 4;
/// Divisor of a budget that limits the diff: a half. The diff gets more if the other parts need less.
const DIFF_DIVISOR: u64 = 2;
/// Maximum size of the list of changes without a diff (by name), in tokens. Not from the literature.
const MAX_OMITTED_TOKENS: u64 = 1_000;
/// Divisor of a budget that limits each of rules, patterns and the list of changes without a diff: an eighth. For that
/// list it applies to the pinned tokens, too.
const SIDE_PART_DIVISOR: u64 = 8;

/// The subject of a prompt.
pub(in crate::runner) struct PromptSubject<'a> {
    pub record: &'a RunRecord,
    pub change: &'a Changeset,
    /// The hunks to review, by path.
    pub open: HashMap<String, HashSet<LineRange>>,
    /// The files of the change that a review does not read.
    pub left_out: Vec<OmittedFile>,
    pub encoding: Encoding,
    pub mask: Mask,
    /// Returns `true` if nobody waits for the result any more; stays `true` afterwards.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl<'a> PromptSubject<'a> {
    pub fn new(
        record: &'a RunRecord,
        change: &'a Changeset,
        plan: &ReviewPlan,
        (encoding, mask): (Encoding, Mask),
        cancelled: &'a dyn Fn() -> bool,
    ) -> Self {
        let open = plan.open_files().into_iter().map(|file| (file.path, file.hunks.into_iter().collect()));
        let left_out = plan.left_out.clone();
        Self { record, change, open: open.collect(), left_out, encoding, mask, cancelled }
    }

    fn token_counter(&self) -> impl Fn(&str) -> u64 + 'static {
        let encoding = self.encoding;
        move |text: &str| tokens::count_tokens(encoding, text) as u64
    }

    pub fn is_open(&self, file: &FileChange, hunk: usize) -> bool {
        let lines = file.hunks.get(hunk).map(Hunk::new_range);
        lines.is_some_and(|lines| self.open.get(&file.path).is_some_and(|open| open.contains(&lines)))
    }
}

/// The maximum size of each part, in tokens.
pub(in crate::runner) struct PromptTokenLimits {
    diff: u64,
    /// One part of the diff.
    part: u64,
    rules: u64,
    constitution: u64,
    patterns: u64,
    omitted_files: u64,
    /// Maximum of all parts together: the diff gets the tokens that the other parts leave.
    total: u64,
}

impl PromptTokenLimits {
    pub fn for_review(limits: &ConversationLimits) -> Self {
        Self {
            // As much as all turns together can send.
            diff: limits.pinned_tokens() + limits.part_tokens() * u64::from(limits.max_turns),
            part: limits.part_tokens(),
            rules: MAX_RULES_TOKENS,
            constitution: limits.pinned_tokens() / CONSTITUTION_DIVISOR,
            patterns: prompt_hints::MAX_HINT_TOKENS,
            omitted_files: MAX_OMITTED_TOKENS.min(limits.pinned_tokens() / SIDE_PART_DIVISOR),
            total: u64::MAX,
        }
    }

    /// Returns the limits for a budget of `budget` tokens, which includes the text of the task.
    pub fn for_budget(budget: u32, task: &str, encoding: Encoding) -> Self {
        let task = Mask::On.mask_text(None, task);
        let task = (tokens::count_tokens(encoding, &task) as u64).min(u64::from(budget / TASK_BUDGET_DIVISOR));
        let budget = u64::from(budget);
        Self {
            diff: budget / DIFF_DIVISOR,
            part: budget / DIFF_DIVISOR,
            rules: MAX_RULES_TOKENS.min(budget / SIDE_PART_DIVISOR),
            constitution: budget / CONSTITUTION_DIVISOR,
            patterns: budget / SIDE_PART_DIVISOR,
            omitted_files: MAX_OMITTED_TOKENS.min(budget / SIDE_PART_DIVISOR),
            total: budget - task,
        }
    }

    /// Returns the limits with `tokens` more for the diff.
    pub fn with_extra_diff(self, tokens: u64) -> Self {
        Self { diff: self.diff + tokens, part: self.part + tokens, ..self }
    }
}

/// The collected texts.
pub(in crate::runner) struct PromptMaterial {
    constitution: Option<Constitution>,
    pub rules: Option<Guidelines>,
    /// The learned patterns; empty if there are none or the prompt does not use them.
    pub patterns: String,
    /// The list of changes without a diff; empty if there are none or the prompt does not use it.
    pub omitted_files: String,
    pub material: DiffParts,
    /// A user's own prompt may omit the rules.
    includes_rules: bool,
}

impl PromptBuilder<'_> {
    pub(in crate::runner) fn gather_prompt_material(
        &self,
        subject: &PromptSubject<'_>,
        sizes: &PromptTokenLimits,
        prompts: &Prompts,
        wish: &ContextTaskInput,
    ) -> PromptMaterial {
        let PromptSubject { record, change, mask, .. } = *subject;
        let count = subject.token_counter();
        // A task may name files that are not changed.
        let of_task = if change.files.is_empty() { unified_diff::parse_unified_diff(&wish.text) } else { Vec::new() };
        let paths = change.files.iter().map(|file| &file.path).chain(of_task.iter().map(|given| &given.path));
        let paths: Vec<&str> = paths.chain(wish.focus.iter().map(|focus| &focus.path)).map(String::as_str).collect();
        let commit = &record.subject.snapshot_commit;
        let rules = wish.options.documentation.then(|| {
            let documents = self
                .services
                .repo
                .list_tree(commit)
                .map(|listing| list_project_documents(&listing))
                .unwrap_or_default();
            collect_guidelines(&self.services.repo, commit, &paths, &documents, sizes.rules, &count, mask)
        });
        let constitution = quote_constitution(&self.services.repo, commit, sizes.constitution, &count, mask);
        let mut patterns = String::new();
        if prompts.has_placeholder(PromptName::Task, "patterns") {
            patterns = self.render_hints(subject, sizes.patterns, &count);
        }
        let mut besides = String::new();
        if prompts.has_placeholder(PromptName::Task, "not_shown") {
            let secret = change.files.iter().filter(|file| is_secret(file));
            let secret = secret.map(|file| OmittedFile { path: file.path.clone(), reason: OmissionReason::Secret });
            let left_out: Vec<OmittedFile> = subject.left_out.iter().cloned().chain(secret).collect();
            besides = list_omitted_files(&left_out, &change.moved, sizes.omitted_files, &count, mask);
        }
        let mut gathered = PromptMaterial {
            constitution,
            rules: rules.flatten(),
            patterns,
            omitted_files: besides,
            material: DiffParts::default(),
            includes_rules: prompts.has_placeholder(PromptName::Task, "rules"),
        };
        gathered.material = self.build_change_material(subject, sizes, &gathered);
        gathered
    }

    /// Returns the text of the change, in the tokens that the other parts leave.
    pub(in crate::runner) fn build_change_material(
        &self,
        subject: &PromptSubject<'_>,
        sizes: &PromptTokenLimits,
        beside: &PromptMaterial,
    ) -> DiffParts {
        let count = subject.token_counter();
        let told: u64 = beside.side_pieces().iter().map(|piece| count(&piece.text)).sum();
        let measure = DiffLimits {
            budget_tokens: sizes.diff.min(sizes.total.saturating_sub(told)),
            max_part_tokens: sizes.part,
            context_lines: DiffLimits::DEFAULT_CONTEXT_LINES,
        };
        let is_open = |file: &FileChange, hunk: usize| subject.is_open(file, hunk);
        build_diff_parts(
            &self.services.repo,
            subject.change,
            measure,
            &count,
            subject.mask,
            &is_open,
            subject.cancelled,
        )
    }
}

impl PromptMaterial {
    /// Returns the constitution and the rules as one text.
    pub fn rules_text(&self) -> String {
        let rules = self.rules.as_ref().map(|rules| rules.text.as_str());
        self.constitution().into_iter().chain(rules).collect::<Vec<_>>().join("\n")
    }

    fn constitution(&self) -> Option<&str> {
        self.constitution.as_ref().map(|told| told.text.as_str()).filter(|text| !text.is_empty())
    }

    /// Returns a note for each text that should be included but is missing or cut, one line each.
    pub fn notes(&self) -> Vec<String> {
        let cut = self.constitution.as_ref().filter(|told| self.includes_rules && !told.is_whole);
        let said = cut.map(|told| match told.text.is_empty() {
            true => "nothing of the constitution is told: there is no room for it",
            false => "of the constitution only the beginning is told: it is over its part of the budget",
        });
        said.into_iter().map(str::to_owned).collect()
    }

    /// Returns the paths of the included documents.
    pub fn documents(&self) -> &[String] {
        self.rules.as_ref().map(|rules| rules.sources.as_slice()).unwrap_or_default()
    }

    /// Returns all texts in the order of the request. The first `first` parts of the change belong to the first
    /// request.
    pub fn pieces(&self, first: usize) -> Vec<ContextPiece> {
        let mut pieces = self.side_pieces();
        pieces.extend(self.material.parts.iter().enumerate().map(|(number, part)| {
            let later = if number < first { "" } else { ", with a later request" };
            let reason = format!("the change of {}{later}", text::sanitize_line(&part.path));
            required_piece(SectionKind::Diff, &part.text, &reason)
        }));
        pieces
    }

    fn side_pieces(&self) -> Vec<ContextPiece> {
        let mut pieces = Vec::new();
        if self.includes_rules {
            let rules = |text: &str, reason| required_piece(SectionKind::Rules, text, reason);
            pieces.extend(self.constitution().map(|text| rules(text, "the constitution, pinned")));
            pieces.extend(self.rules.as_ref().map(|told| rules(&told.text, "the project's rules")));
        }
        if !self.patterns.is_empty() {
            pieces.push(required_piece(
                SectionKind::Patterns,
                &self.patterns,
                "learned from earlier findings and fixes",
            ));
        }
        if !self.omitted_files.is_empty() {
            pieces.push(required_piece(SectionKind::Diff, &self.omitted_files, "what the change has besides its diff"));
        }
        pieces
    }
}

fn required_piece(kind: SectionKind, text: &str, reason: &str) -> ContextPiece {
    standalone_piece(kind, Need::Must, text.to_owned(), reason)
}
