//! What a model is told beside the code around a change: the constitution, the rules of the house, what was learned, and
//! the change itself. The same for a review and for who asks what a review would send.

use std::collections::{HashMap, HashSet};

use super::Runner;
use super::surround::Wish;
use crate::config::{PromptName, Prompts};
use crate::context::house_documents::{Constitution, constitution, house_documents};
use crate::context::house_rules::{HouseRules, house_rules};
use crate::context::mask::Mask;
use crate::context::material::{Material, Measure, is_secret, material};
use crate::context::not_shown::not_shown;
use crate::context::pack::{Need, Piece, SectionKind};
use crate::context::retrieve::unified;
use crate::context::surroundings::{TASK_PART, piece};
use crate::context::tokens;
use crate::domain::{Encoding, LeftOut, LeftOutReason, LineRange, RunRecord, text};
use crate::git::{Change, FileChange, Hunk};
use crate::knowledge::hints;
use crate::review::Plan;
use crate::review::dialog::Limits;

/// What the project's own rules may take of a request. Tokens.
const RULES_TOKENS: u64 = 3_000;
/// The constitution is whole up to this part of what is pinned, or of a budget: a quarter.
const CONSTITUTION_PART: u64 = 4;
/// Of a budget, the change may take this part: a half, and more where nothing else takes it.
const DIFF_PART: u64 = 2;
/// What the change has besides its diff may take so much of a request, by name. Tokens; own.
const NOT_SHOWN_TOKENS: u64 = 1_000;
/// Of a budget, rules, patterns and what is not shown may each take this part: an eighth. The last of what is pinned, too.
const ASIDE_PART: u64 = 8;

/// What a context is about.
pub(super) struct Subject<'a> {
    pub record: &'a RunRecord,
    pub change: &'a Change,
    /// Of the change, the hunks that are to be looked at, by path.
    pub open: HashMap<String, HashSet<LineRange>>,
    /// Of the change, what a review does not read.
    pub left_out: Vec<LeftOut>,
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
        let left_out = plan.left_out.clone();
        Self { record, change, open: open.collect(), left_out, encoding, mask, cancelled }
    }

    fn counter(&self) -> impl Fn(&str) -> u64 + 'static {
        let encoding = self.encoding;
        move |text: &str| tokens::count(encoding, text) as u64
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
    not_shown: u64,
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
            not_shown: NOT_SHOWN_TOKENS.min(limits.pinned_tokens() / ASIDE_PART),
            all: u64::MAX,
        }
    }

    /// In `budget` tokens, in which a task's text is told as well.
    pub fn within(budget: u32, task: &str, encoding: Encoding) -> Self {
        let task = Mask::On.text(None, task);
        let task = (tokens::count(encoding, &task) as u64).min(u64::from(budget / TASK_PART));
        let budget = u64::from(budget);
        Self {
            diff: budget / DIFF_PART,
            part: budget / DIFF_PART,
            rules: RULES_TOKENS.min(budget / ASIDE_PART),
            constitution: budget / CONSTITUTION_PART,
            patterns: budget / ASIDE_PART,
            not_shown: NOT_SHOWN_TOKENS.min(budget / ASIDE_PART),
            all: budget - task,
        }
    }

    /// With so many tokens more for the change.
    pub fn with_more(self, tokens: u64) -> Self {
        Self { diff: self.diff + tokens, part: self.part + tokens, ..self }
    }
}

/// What is told.
pub(super) struct Gathered {
    constitution: Option<Constitution>,
    pub rules: Option<HouseRules>,
    /// What was learned; empty when nothing is told of it.
    pub patterns: String,
    /// What the change has besides its diff; empty when there is nothing, or nothing is told of it.
    pub not_shown: String,
    pub material: Material,
    /// A prompt of the user's own may do without the rules.
    tells_rules: bool,
}

impl Runner {
    pub(super) fn gather(&self, subject: &Subject<'_>, sizes: &Sizes, prompts: &Prompts, wish: &Wish) -> Gathered {
        let Subject { record, change, mask, .. } = *subject;
        let count = subject.counter();
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
        let mut besides = String::new();
        if prompts.has(PromptName::Task, "not_shown") {
            let secret = change.files.iter().filter(|file| is_secret(file));
            let secret = secret.map(|file| LeftOut { path: file.path.clone(), reason: LeftOutReason::Secret });
            let left_out: Vec<LeftOut> = subject.left_out.iter().cloned().chain(secret).collect();
            besides = not_shown(&left_out, &change.moved, sizes.not_shown, &count, mask);
        }
        let mut gathered = Gathered {
            constitution,
            rules: rules.flatten(),
            patterns,
            not_shown: besides,
            material: Material::default(),
            tells_rules: prompts.has(PromptName::Task, "rules"),
        };
        gathered.material = self.told_of_change(subject, sizes, &gathered);
        gathered
    }

    /// What is told of the change beside all else.
    pub(super) fn told_of_change(&self, subject: &Subject<'_>, sizes: &Sizes, beside: &Gathered) -> Material {
        let count = subject.counter();
        let told: u64 = beside.beside_the_diff().iter().map(|piece| count(&piece.text)).sum();
        let measure = Measure {
            budget_tokens: sizes.diff.min(sizes.all.saturating_sub(told)),
            max_part_tokens: sizes.part,
            context_lines: Measure::CONTEXT_LINES,
        };
        let is_open = |file: &FileChange, hunk: usize| subject.is_open(file, hunk);
        material(&self.repo, subject.change, measure, &count, subject.mask, &is_open, subject.cancelled)
    }
}

impl Gathered {
    /// Constitution and rules as one text.
    pub fn rules_in_words(&self) -> String {
        let rules = self.rules.as_ref().map(|rules| rules.text.as_str());
        self.constitution().into_iter().chain(rules).collect::<Vec<_>>().join("\n")
    }

    fn constitution(&self) -> Option<&str> {
        self.constitution.as_ref().map(|told| told.text.as_str()).filter(|text| !text.is_empty())
    }

    /// What of it is not told although it should be, a line each.
    pub fn notes(&self) -> Vec<String> {
        let cut = self.constitution.as_ref().filter(|told| self.tells_rules && !told.is_whole);
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
    pub fn pieces(&self, first: usize) -> Vec<Piece> {
        let mut pieces = self.beside_the_diff();
        pieces.extend(self.material.parts.iter().enumerate().map(|(number, part)| {
            let later = if number < first { "" } else { ", with a later request" };
            let reason = format!("the change of {}{later}", text::one_line(&part.path));
            must(SectionKind::Diff, &part.text, &reason)
        }));
        pieces
    }

    fn beside_the_diff(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if self.tells_rules {
            let rules = |text: &str, reason| must(SectionKind::Rules, text, reason);
            pieces.extend(self.constitution().map(|text| rules(text, "the constitution, pinned")));
            pieces.extend(self.rules.as_ref().map(|told| rules(&told.text, "the project's rules")));
        }
        if !self.patterns.is_empty() {
            pieces.push(must(SectionKind::Patterns, &self.patterns, "learned from earlier findings and fixes"));
        }
        if !self.not_shown.is_empty() {
            pieces.push(must(SectionKind::Diff, &self.not_shown, "what the change has besides its diff"));
        }
        pieces
    }
}

fn must(kind: SectionKind, text: &str, reason: &str) -> Piece {
    piece(kind, Need::Must, text.to_owned(), reason)
}
