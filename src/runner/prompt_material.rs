//! What a model is told beside the code around a change: the constitution, the rules of the house, what was learned, and
//! the change itself. The same for a review and for who asks what a review would send.

use std::collections::{HashMap, HashSet};

use super::Runner;
use super::code_context::ContextTaskInput;
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
use crate::tokens;

/// What the project's own rules may take of a request. Tokens.
const MAX_RULES_TOKENS: u64 = 3_000;
/// The constitution is whole up to this part of what is pinned, or of a budget: a quarter.
const CONSTITUTION_DIVISOR: u64 = 4;
/// Of a budget, the change may take this part: a half, and more where nothing else takes it.
const DIFF_DIVISOR: u64 = 2;
/// What the change has besides its diff may take so much of a request, by name. Tokens; own.
const MAX_OMITTED_TOKENS: u64 = 1_000;
/// Of a budget, rules, patterns and what is not shown may each take this part: an eighth. The last of what is pinned, too.
const SIDE_PART_DIVISOR: u64 = 8;

/// What a context is about.
pub(super) struct PromptSubject<'a> {
    pub record: &'a RunRecord,
    pub change: &'a Changeset,
    /// Of the change, the hunks that are to be looked at, by path.
    pub open: HashMap<String, HashSet<LineRange>>,
    /// Of the change, what a review does not read.
    pub left_out: Vec<OmittedFile>,
    pub encoding: Encoding,
    pub mask: Mask,
    /// Whether nobody waits for it any more; once yes, always yes.
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

/// The most that there may be of each, in tokens.
pub(super) struct PromptTokenLimits {
    diff: u64,
    /// One part of the diff.
    part: u64,
    rules: u64,
    constitution: u64,
    patterns: u64,
    omitted_files: u64,
    /// All of it together: the diff takes what the others leave.
    total: u64,
}

impl PromptTokenLimits {
    pub fn for_review(limits: &ConversationLimits) -> Self {
        Self {
            // As much as the turns can take at all.
            diff: limits.pinned_tokens() + limits.part_tokens() * u64::from(limits.max_turns),
            part: limits.part_tokens(),
            rules: MAX_RULES_TOKENS,
            constitution: limits.pinned_tokens() / CONSTITUTION_DIVISOR,
            patterns: prompt_hints::MAX_HINT_TOKENS,
            omitted_files: MAX_OMITTED_TOKENS.min(limits.pinned_tokens() / SIDE_PART_DIVISOR),
            total: u64::MAX,
        }
    }

    /// In `budget` tokens, in which a task's text is told as well.
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

    /// With so many tokens more for the change.
    pub fn with_extra_diff(self, tokens: u64) -> Self {
        Self { diff: self.diff + tokens, part: self.part + tokens, ..self }
    }
}

/// What is told.
pub(super) struct PromptMaterial {
    constitution: Option<Constitution>,
    pub rules: Option<Guidelines>,
    /// What was learned; empty when nothing is told of it.
    pub patterns: String,
    /// What the change has besides its diff; empty when there is nothing, or nothing is told of it.
    pub omitted_files: String,
    pub material: DiffParts,
    /// A prompt of the user's own may do without the rules.
    includes_rules: bool,
}

impl Runner {
    pub(super) fn gather_prompt_material(
        &self,
        subject: &PromptSubject<'_>,
        sizes: &PromptTokenLimits,
        prompts: &Prompts,
        wish: &ContextTaskInput,
    ) -> PromptMaterial {
        let PromptSubject { record, change, mask, .. } = *subject;
        let count = subject.token_counter();
        // A task may be about files that are not changed.
        let of_task = if change.files.is_empty() { unified_diff::parse_unified_diff(&wish.text) } else { Vec::new() };
        let paths = change.files.iter().map(|file| &file.path).chain(of_task.iter().map(|given| &given.path));
        let paths: Vec<&str> = paths.chain(wish.focus.iter().map(|focus| &focus.path)).map(String::as_str).collect();
        let commit = &record.snapshot_commit;
        let rules = wish.options.documentation.then(|| {
            let documents =
                self.repo.list_tree(commit).map(|listing| list_project_documents(&listing)).unwrap_or_default();
            collect_guidelines(&self.repo, commit, &paths, &documents, sizes.rules, &count, mask)
        });
        let constitution = quote_constitution(&self.repo, commit, sizes.constitution, &count, mask);
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

    /// What is told of the change beside all else.
    pub(super) fn build_change_material(
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
        build_diff_parts(&self.repo, subject.change, measure, &count, subject.mask, &is_open, subject.cancelled)
    }
}

impl PromptMaterial {
    /// Constitution and rules as one text.
    pub fn rules_text(&self) -> String {
        let rules = self.rules.as_ref().map(|rules| rules.text.as_str());
        self.constitution().into_iter().chain(rules).collect::<Vec<_>>().join("\n")
    }

    fn constitution(&self) -> Option<&str> {
        self.constitution.as_ref().map(|told| told.text.as_str()).filter(|text| !text.is_empty())
    }

    /// What of it is not told although it should be, a line each.
    pub fn notes(&self) -> Vec<String> {
        let cut = self.constitution.as_ref().filter(|told| self.includes_rules && !told.is_whole);
        let said = cut.map(|told| match told.text.is_empty() {
            true => "nothing of the constitution is told: there is no room for it",
            false => "of the constitution only the beginning is told: it is over its part of the budget",
        });
        said.into_iter().map(str::to_owned).collect()
    }

    /// The documents that are told.
    pub fn documents(&self) -> &[String] {
        self.rules.as_ref().map(|rules| rules.sources.as_slice()).unwrap_or_default()
    }

    /// All of it, in the order in which a request tells it; so many parts of the change are told with the first one.
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
