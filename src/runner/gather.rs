//! What a model is told beside the code around a change: the constitution, the rules of the house, what was learned, and
//! the change itself. The same for a review and for who asks what a review would send.

use std::collections::{HashMap, HashSet};

use super::Runner;
use super::surround::Wish;
use crate::config::{PromptName, Prompts};
use crate::context::house_documents::{constitution, house_documents};
use crate::context::house_rules::{HouseRules, house_rules};
use crate::context::mask::Mask;
use crate::context::material::{Material, Measure, material};
use crate::context::pack::{Need, Piece, SectionKind};
use crate::context::retrieve::unified;
use crate::context::surroundings::{TASK_PART, piece};
use crate::context::tokens;
use crate::domain::{Encoding, LineRange, RunRecord, text};
use crate::git::{Change, FileChange, Hunk};
use crate::knowledge::hints;
use crate::review::Plan;
use crate::review::dialog::Limits;

/// What the project's own rules may take of a request. Tokens.
const RULES_TOKENS: u64 = 3_000;
/// The constitution is whole up to this part of what is pinned, or of a budget: a quarter.
const CONSTITUTION_PART: u64 = 4;
/// Of a budget, the change may take this part: a half.
const DIFF_PART: u64 = 2;
/// Of a budget, rules and patterns may each take this part: an eighth.
const ASIDE_PART: u64 = 8;

/// What a context is about.
pub(super) struct Subject<'a> {
    pub record: &'a RunRecord,
    pub change: &'a Change,
    /// Of the change, the hunks that are to be looked at, by path.
    pub open: HashMap<String, HashSet<LineRange>>,
    pub encoding: Encoding,
    pub mask: Mask,
    /// Whether nobody waits for it any more; once yes, always yes.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl<'a> Subject<'a> {
    pub fn new(
        record: &'a RunRecord,
        change: &'a Change,
        plan: &Plan,
        (encoding, mask): (Encoding, Mask),
        cancelled: &'a dyn Fn() -> bool,
    ) -> Self {
        let open = plan.open().into_iter().map(|file| (file.path, file.hunks.into_iter().collect()));
        Self { record, change, open: open.collect(), encoding, mask, cancelled }
    }

    pub fn is_open(&self, file: &FileChange, hunk: usize) -> bool {
        let lines = file.hunks.get(hunk).map(Hunk::new_range);
        lines.is_some_and(|lines| self.open.get(&file.path).is_some_and(|open| open.contains(&lines)))
    }
}

/// The most that there may be of each, in tokens.
pub(super) struct Sizes {
    diff: u64,
    /// One part of the diff.
    part: u64,
    rules: u64,
    constitution: u64,
    patterns: u64,
    /// All of it together: the diff takes what the others leave.
    all: u64,
}

impl Sizes {
    pub fn of_review(limits: &Limits) -> Self {
        Self {
            // As much as the turns can take at all.
            diff: limits.pinned_tokens() + limits.part_tokens() * u64::from(limits.max_turns),
            part: limits.part_tokens(),
            rules: RULES_TOKENS,
            constitution: limits.pinned_tokens() / CONSTITUTION_PART,
            patterns: hints::MOST_TOKENS,
            all: u64::MAX,
        }
    }

    /// In `budget` tokens, in which a task's text is told as well.
    pub fn within(budget: u32, task: &str, encoding: Encoding) -> Self {
        let task = (tokens::count(encoding, task) as u64).min(u64::from(budget / TASK_PART));
        let budget = u64::from(budget);
        Self {
            diff: budget / DIFF_PART,
            part: budget / DIFF_PART,
            rules: RULES_TOKENS.min(budget / ASIDE_PART),
            constitution: budget / CONSTITUTION_PART,
            patterns: budget / ASIDE_PART,
            all: budget - task,
        }
    }
}

/// What is told.
pub(super) struct Gathered {
    pub constitution: Option<String>,
    pub rules: Option<HouseRules>,
    /// What was learned; empty when nothing is told of it.
    pub patterns: String,
    pub material: Material,
    /// A prompt of the user's own may do without the rules.
    tells_rules: bool,
}

impl Runner {
    pub(super) fn gather(&self, subject: &Subject<'_>, sizes: &Sizes, prompts: &Prompts, wish: &Wish) -> Gathered {
        let Subject { record, change, encoding, mask, .. } = *subject;
        let count = move |text: &str| tokens::count(encoding, text) as u64;
        // A task may be about files that are not changed.
        let of_task = if change.files.is_empty() { unified::parse(&wish.text) } else { Vec::new() };
        let paths = change.files.iter().map(|file| &file.path).chain(of_task.iter().map(|given| &given.path));
        let paths: Vec<&str> = paths.chain(wish.focus.iter().map(|focus| &focus.path)).map(String::as_str).collect();
        let commit = &record.snapshot_commit;
        let rules = wish.options.documentation.then(|| {
            let documents = self.repo.listing(commit).map(|listing| house_documents(&listing)).unwrap_or_default();
            house_rules(&self.repo, commit, &paths, &documents, sizes.rules, &count, mask)
        });
        let constitution = constitution(&self.repo, commit, sizes.constitution, &count, mask);
        let mut patterns = String::new();
        if prompts.has(PromptName::Task, "patterns") {
            patterns = self.hints(subject, sizes.patterns, &count);
        }
        let mut gathered = Gathered {
            constitution,
            rules: rules.flatten(),
            patterns,
            material: Material::default(),
            tells_rules: prompts.has(PromptName::Task, "rules"),
        };
        let told: u64 = gathered.pieces(0).iter().map(|piece| count(&piece.text)).sum();
        let measure = Measure {
            budget_tokens: sizes.diff.min(sizes.all.saturating_sub(told)),
            max_part_tokens: sizes.part,
            context_lines: Measure::CONTEXT_LINES,
        };
        let is_open = |file: &FileChange, hunk: usize| subject.is_open(file, hunk);
        gathered.material = material(&self.repo, change, measure, &count, mask, &is_open);
        gathered
    }
}

impl Gathered {
    /// Constitution and rules as one text.
    pub fn rules_in_words(&self) -> String {
        let rules = self.rules.as_ref().map(|rules| rules.text.as_str());
        self.constitution.as_deref().into_iter().chain(rules).collect::<Vec<_>>().join("\n")
    }

    /// The documents that are told.
    pub fn documents(&self) -> &[String] {
        self.rules.as_ref().map(|rules| rules.sources.as_slice()).unwrap_or_default()
    }

    /// All of it, in the order in which a request tells it; so many parts of the change are told with the first one.
    pub fn pieces(&self, first: usize) -> Vec<Piece> {
        let must = |kind, text: &str, reason: &str| piece(kind, Need::Must, text.to_owned(), reason);
        let mut pieces = Vec::new();
        if self.tells_rules {
            let rules = |text: &str, reason| must(SectionKind::Rules, text, reason);
            pieces.extend(self.constitution.as_ref().map(|text| rules(text, "the constitution, pinned")));
            pieces.extend(self.rules.as_ref().map(|told| rules(&told.text, "the project's rules")));
        }
        if !self.patterns.is_empty() {
            pieces.push(must(SectionKind::Patterns, &self.patterns, "learned from earlier findings and fixes"));
        }
        pieces.extend(self.material.parts.iter().enumerate().map(|(number, part)| {
            let later = if number < first { "" } else { ", with a later request" };
            let reason = format!("the change of {}{later}", text::one_line(&part.path));
            must(SectionKind::Diff, &part.text, &reason)
        }));
        pieces
    }
}
