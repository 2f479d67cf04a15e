//! Collects the texts that a model receives in addition to the code around a change: the user's constitution and rules,
//! those of the project, learned patterns, and the change itself. Reviews and `revdeck context` use the same code.

use std::collections::{HashMap, HashSet};

use crate::config::{PromptName, Prompts, UserGuidelines};
use crate::context::builder::{TASK_BUDGET_DIVISOR, standalone_piece};
use crate::context::diff_parts::{DiffLimits, DiffParts, build_diff_parts, is_secret};
use crate::context::guidelines::{ExternalDocument, Guidelines, collect_guidelines, quote_documents};
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
/// Divisor of the pinned tokens that limits the project's own rules in a small window: a quarter.
const RULES_DIVISOR: u64 = 4;
/// Divisor of the pinned tokens, or of a budget, that limits the constitution: a quarter.
const CONSTITUTION_DIVISOR: u64 = 4;
/// Divisor of a budget that limits the diff: a half. The diff gets more if the other parts need less.
const DIFF_DIVISOR: u64 = 2;
/// Maximum size of the list of changes without a diff (by name), in tokens. Not from the literature.
const MAX_OMITTED_TOKENS: u64 = 1_000;
/// Divisor of a budget that limits each of rules, patterns and the list of changes without a diff: an eighth. For
/// patterns and that list it applies to the pinned tokens, too.
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
            rules: MAX_RULES_TOKENS.min(limits.pinned_tokens() / RULES_DIVISOR),
            constitution: limits.pinned_tokens() / CONSTITUTION_DIVISOR,
            patterns: prompt_hints::MAX_HINT_TOKENS.min(limits.pinned_tokens() / SIDE_PART_DIVISOR),
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

    /// Returns the limits with `tokens` fewer for learned patterns, because something else stands in their place.
    pub fn with_fewer_patterns(self, tokens: u64) -> Self {
        Self { patterns: self.patterns.saturating_sub(tokens), ..self }
    }

    /// Returns the limits with `tokens` more for the diff.
    pub fn with_extra_diff(self, tokens: u64) -> Self {
        Self { diff: self.diff + tokens, part: self.part + tokens, ..self }
    }
}

/// Labels of the user's documents for a model.
const USER_CONSTITUTION_LABEL: &str =
    "The user's constitution for all repositories, which holds where the project's documents say otherwise";
const USER_RULES_LABEL: &str =
    "The user's rules for all repositories, which hold where the project's documents say otherwise";

/// The collected texts.
pub(in crate::runner) struct PromptMaterial {
    /// The user's constitution and rules for all repositories.
    user_constitution: Option<Guidelines>,
    user_rules: Option<Guidelines>,
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
        // A change does not write the rules of its own review.
        let commit = match record.subject.base_commit.is_empty() {
            true => &record.subject.snapshot_commit,
            false => &record.subject.base_commit,
        };
        let [user_constitution, user_rules] = self.quote_user_documents(sizes, &count, mask);
        let left = |limit: u64, used: &Option<Guidelines>| {
            limit.saturating_sub(used.as_ref().map_or(0, |used| count(&used.text)))
        };
        let rules_left = left(sizes.rules, &user_rules);
        let constitution_left = left(sizes.constitution, &user_constitution);
        let rules = wish.options.documentation.then(|| {
            let documents = self
                .services
                .repo
                .list_tree(commit)
                .map(|listing| list_project_documents(&listing))
                .unwrap_or_default();
            collect_guidelines(&self.services.repo, commit, &paths, &documents, rules_left, &count, mask)
        });
        let constitution = quote_constitution(&self.services.repo, commit, constitution_left, &count, mask);
        let mut patterns = String::new();
        if prompts.has_placeholder(PromptName::Task, "patterns") {
            patterns = self.render_hints(subject, sizes.patterns, &count);
        }
        let mut besides = String::new();
        if prompts.has_placeholder(PromptName::Task, "not_shown") {
            let secret = change.files.iter().filter(|file| is_secret(file));
            let secret = secret.map(|file| OmittedFile::new(&file.path, OmissionReason::Secret));
            let left_out: Vec<OmittedFile> = subject.left_out.iter().cloned().chain(secret).collect();
            besides = list_omitted_files(&left_out, &change.moved, sizes.omitted_files, &count, mask);
        }
        let mut gathered = PromptMaterial {
            user_constitution,
            user_rules,
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

    /// Quotes the user's constitution and the user's rules, which apply to all repositories.
    fn quote_user_documents(
        &self,
        sizes: &PromptTokenLimits,
        count: &dyn Fn(&str) -> u64,
        mask: Mask,
    ) -> [Option<Guidelines>; 2] {
        // The identity of the reviewer was resolved with the same files, so an error was told before.
        let own = UserGuidelines::load(&self.services.paths).unwrap_or_else(|error| {
            tracing::warn!(%error, "the user's rules are left out");
            UserGuidelines::default()
        });
        let parts = [
            (own.constitution.as_slice(), USER_CONSTITUTION_LABEL, sizes.constitution),
            (own.rules.as_slice(), USER_RULES_LABEL, sizes.rules),
        ];
        parts.map(|(documents, label, budget)| {
            let documents: Vec<_> =
                documents.iter().map(|own| ExternalDocument { name: &own.name, text: &own.text }).collect();
            quote_documents(&documents, label, budget, count, mask)
        })
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
    /// Returns the constitutions and the rules as one text, the user's first.
    pub fn rules_text(&self) -> String {
        let rules = self.rules.as_ref().map(|rules| rules.text.as_str());
        let own = self.user_documents().map(|(told, _)| told.text.as_str());
        own.chain(self.constitution()).chain(rules).collect::<Vec<_>>().join("\n")
    }

    /// Returns the user's documents, each with its name for a person.
    fn user_documents(&self) -> impl Iterator<Item = (&Guidelines, &'static str)> {
        let constitution = self.user_constitution.iter().map(|told| (told, "your constitution for all repositories"));
        let rules = self.user_rules.iter().map(|told| (told, "your rules for all repositories"));
        constitution.chain(rules).filter(|(told, _)| !told.text.is_empty())
    }

    fn constitution(&self) -> Option<&str> {
        self.constitution.as_ref().map(|told| told.text.as_str()).filter(|text| !text.is_empty())
    }

    /// Returns a note for each text that should be included but is missing or cut, one line each.
    pub fn notes(&self) -> Vec<String> {
        let cut = self.constitution.as_ref().filter(|told| self.includes_rules && !told.is_whole);
        let said = cut.map(|told| match told.text.is_empty() {
            true => "nothing of the constitution is told: there is no room for it".to_owned(),
            false => "of the constitution only the beginning is told: it is over its part of the budget".to_owned(),
        });
        let own = [(&self.user_constitution, "constitution"), (&self.user_rules, "rules")];
        let own = own.into_iter().filter_map(|(told, name)| {
            let told = told.as_ref().filter(|told| self.includes_rules && !told.is_whole)?;
            Some(match told.text.is_empty() {
                true => format!("nothing of your {name} for all repositories is told: there is no room"),
                false => format!("of your {name} for all repositories only the beginning is told: over the budget"),
            })
        });
        own.chain(said).collect()
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
            let rules = |text: &str, reason: &str| required_piece(SectionKind::Rules, text, reason);
            for (told, name) in self.user_documents() {
                let sources: Vec<_> = told.sources.iter().map(|source| text::sanitize_line(source)).collect();
                pieces.push(rules(&told.text, &format!("{name}: {}", sources.join(", "))));
            }
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
