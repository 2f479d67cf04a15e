//! What a review would send of a change and of the code around it, without asking a model; and the same under a budget, or
//! for a tree, that no review has.
//!
//! Invariants: it is put together by what puts reviews together, so that both are the same; nothing is written into the
//! store. Told is a review from scratch: what earlier ones looked at is not left away.

use std::ops::RangeInclusive;

use super::gather::{Gathered, Sizes, Subject};
use super::indexing::Indexing;
use super::model::Who;
use super::surround::{Wish, withheld};
use super::{ReviewRequest, Runner, RunnerError};
use crate::config::{Models, ReviewerKind, ReviewerSettings};
use crate::context::index::Index;
use crate::context::mask::Mask;
use crate::context::material::Measure;
use crate::context::pack::Packed;
use crate::domain::{Encoding, RunRecord, Scope, Source};
use crate::git::Change;
use crate::provider::chat::Tools;
use crate::review::{Plan, PlannedFile};

/// Budgets that can be asked for: in less there is no place for anything, and the largest window that is used has 150,000
/// tokens, of which 20,000 are kept for the answer.
pub const BUDGETS: RangeInclusive<u32> = 200..=130_000;
/// Said when there is nothing to look for.
const NO_TASK: &str = "there is no change, and neither --task nor --focus says what to look for";

/// What a context is asked for of.
#[derive(Debug, Clone)]
pub enum Target {
    /// A change; without a scope the one that is reviewed by default.
    Scope(Option<Scope>),
    /// The tree of a revision, in which nothing is changed.
    Tree(String),
}

/// A wish for a context.
#[derive(Debug, Clone)]
pub struct ContextRequest {
    pub target: Target,
    /// `None` for the one that is asked by default. Where that one is sent nothing, another is taken whose settings are
    /// there, and without one what holds for any model.
    pub reviewer: Option<String>,
    /// All of it in so many tokens, one of [`BUDGETS`]. Without it what a review would send; of a tree, which no review
    /// has, what a review has for the code alone.
    pub budget: Option<u32>,
}

/// What a review would send, and to whom.
#[derive(Debug, Clone)]
pub struct Preview {
    pub packed: Packed,
    /// A reviewer by its name in the settings; `None` where none is set up that is sent anything.
    pub reviewer: Option<String>,
    /// What tokens are counted in.
    pub encoding: Encoding,
    /// The commit whose tree it is of, where the index does not know all of that: see [`Runner::index_later`].
    pub unindexed: Option<String>,
}

/// A reviewer that is sent something.
struct SpokenTo {
    name: Option<String>,
    settings: ReviewerSettings,
    /// Said where it stands in for another.
    note: Option<String>,
}

impl Runner {
    /// What a review would send.
    ///
    /// # Errors
    /// No such reviewer or revision, and whatever keeps git from working.
    pub fn preview(&self, request: &ContextRequest, wish: &Wish) -> Result<Preview, RunnerError> {
        let SpokenTo { name, settings, note } = self.spoken_to(request.reviewer.as_deref())?;
        let facts = Models::load(&self.paths)?.of(&settings);
        let (record, change) = self.subject(&request.target)?;
        let mask = if settings.mask_secrets { Mask::On } else { Mask::Off };
        let plan = all_of(&change);
        let mut ready = self.ready_index(&record.snapshot_commit, &|| false);
        let budget = match request.target {
            Target::Scope(_) => request.budget,
            Target::Tree(_) => Some(request.budget.unwrap_or(self.settings.context.tokens)),
        };
        let mut packed = match budget {
            Some(budget) => {
                let subject = Subject::new(&record, &change, &plan, (facts.encoding, mask), &|| false);
                let budget = budget.clamp(*BUDGETS.start(), *BUDGETS.end());
                self.within(budget, &subject, (ready.index.as_ref(), wish))?
            }
            None => {
                let tools = if settings.kind == ReviewerKind::Command { Tools::None } else { Tools::Native };
                let who = Who { settings: &settings, facts: &facts, mask, tools };
                self.task(who, &record, &change, (plan, Vec::new()), (&ready, wish, &|| false))?.packed
            }
        };
        if change.files.is_empty() && change.left_out.is_empty() && wish.focus.is_empty() && wish.text.is_empty() {
            packed.notes.push(NO_TASK.to_owned());
        }
        packed.notes.splice(0..0, note);
        let late = ready.indexing.take().and_then(Indexing::end);
        let unindexed = (late.is_none() && ready.is_short()).then_some(record.snapshot_commit);
        packed.notes.extend(ready.repaired.or(late.and_then(|refreshed| refreshed.repaired)));
        Ok(Preview { packed, reviewer: name, encoding: facts.encoding, unindexed })
    }

    /// All that a request tells, in one budget.
    fn within(
        &self,
        budget: u32,
        subject: &Subject<'_>,
        (index, wish): (Option<&Index>, &Wish),
    ) -> Result<Packed, RunnerError> {
        let sizes = Sizes::within(budget, &wish.text, subject.encoding);
        let mut gathered = self.gather(subject, &sizes, &self.prompts()?, wish);
        let pack = |gathered: &Gathered| {
            self.around(subject, (budget, gathered.pieces(usize::MAX)), gathered.documents(), (index, wish))
        };
        let mut packed = pack(&gathered);
        // What nothing else wants is the change's.
        let left = u64::from(budget.saturating_sub(packed.total_tokens));
        if !gathered.material.beyond.is_empty() && left >= Measure::MIN_PART {
            gathered.material = self.told_of_change(subject, &sizes.with_more(left), &gathered);
            packed = pack(&gathered);
        }
        packed.notes.extend(gathered.notes());
        let left_out = [subject.change.left_out.as_slice(), &gathered.material.left_out].concat();
        packed.notes.extend(withheld(&gathered.material.beyond, &left_out));
        Ok(packed)
    }

    /// The record of a run that is never to be, and its change.
    fn subject(&self, target: &Target) -> Result<(RunRecord, Change), RunnerError> {
        let scope = match target {
            Target::Scope(scope) => scope.clone(),
            Target::Tree(revision) => Some(Scope::Range { from: revision.clone(), to: revision.clone() }),
        };
        let request =
            ReviewRequest { scope, reviewer: Some(Self::BUILTIN.to_owned()), source: Source::Cli, force: true };
        let (snapshot, mut record) = self.rehearse(&request)?;
        if matches!(target, Target::Tree(_)) {
            record.head_commit.clone_from(&record.snapshot_commit);
        }
        Ok((record, snapshot.change))
    }

    fn spoken_to(&self, reviewer: Option<&str>) -> Result<SpokenTo, RunnerError> {
        let (reviewers, default) = (&self.settings.reviewers, self.settings.default_reviewer.as_str());
        let meant = reviewer.unwrap_or(default);
        let is_model = |settings: &&ReviewerSettings| settings.kind != ReviewerKind::Builtin;
        let (name, settings, which) = if let Some(name) = reviewer.filter(|name| *name != Self::BUILTIN) {
            (name, self.model_settings(name)?, "")
        } else if let Some(settings) = reviewers.get(default).filter(is_model) {
            (default, settings, "")
        } else if let Some((name, settings)) = reviewers.iter().find(|(_, settings)| settings.kind.is_http()) {
            (name.as_str(), settings, ", the first by name of those that are")
        } else {
            return Ok(SpokenTo { name: None, settings: ReviewerSettings::new(ReviewerKind::Openai), note: None });
        };
        let note = (name != meant).then(|| format!("reviewer {meant} is sent nothing: this is for {name}{which}"));
        Ok(SpokenTo { name: Some(name.to_owned()), settings: settings.clone(), note })
    }
}

/// A review of which nothing was looked at yet.
fn all_of(change: &Change) -> Plan {
    let planned = |file: &crate::git::FileChange| PlannedFile {
        path: file.path.clone(),
        hunks: file.hunks.iter().map(|hunk| hunk.new_range()).collect(),
        keys: Vec::new(),
        added_lines: 0,
    };
    Plan {
        files: change.files.iter().map(planned).collect(),
        left_out: change.left_out.clone(),
        unit_files: 1,
        whole: false,
        carried: Vec::new(),
    }
}
