//! Shows the requests of a review without sending them. Can also fill a given token budget, or use a tree without a
//! change.
//!
//! - The preview uses the code of the review, so that both are equal.
//! - The store is not written.
//! - The preview is that of a full review: hunks that earlier runs reviewed are not left out.

use std::ops::RangeInclusive;

use crate::config::{ModelCatalog, ReviewerKind, ReviewerSettings};
use crate::context::diff_parts::DiffLimits;
use crate::context::pack::PackedContext;
use crate::context::read_ahead::ContextSources;
use crate::domain::{Encoding, RunRecord, Scope, Source};
use crate::git::Changeset;
use crate::masking::Mask;
use crate::review::{PlannedFile, ReviewPlan};
use crate::reviewers::chat::ToolSupport;
use crate::runner::indexing::{BackgroundIndexing, IndexReadiness};
use crate::runner::prompt::code_context::{ContextTaskInput, context_sources, list_withheld};
use crate::runner::prompt::prompt_material::{PromptMaterial, PromptSubject, PromptTokenLimits};
use crate::runner::reviewer_access::model_reviewer::TaskReviewer;
use crate::runner::{BUILTIN_REVIEWER, Launcher, ReviewDemand, ReviewRequest, RunnerError};

/// Allowed budgets in tokens. Below the range there is no room for anything; above it, the largest window in use
/// (150,000 tokens, of which 20,000 are kept for the answer) is exceeded.
pub const BUDGET_RANGE: RangeInclusive<u32> = 200..=130_000;
/// Message for a request without anything to search for.
const NO_TASK: &str = "there is no change, and neither --task nor --focus says what to look for";

/// The subject of a context request.
#[derive(Debug, Clone)]
pub enum ContextTarget {
    /// A change; `None` for the scope that is reviewed by default.
    Scope(Option<Scope>),
    /// The tree of a revision, without changes.
    Tree(String),
}

/// A request for a context.
#[derive(Debug, Clone)]
pub struct ContextRequest {
    pub target: ContextTarget,
    /// The reviewer; `None` for the default reviewer. If that reviewer uses no model, another reviewer of the settings
    /// is used, or generic model settings if there is none.
    pub reviewer: Option<String>,
    /// Total budget in tokens, within [`BUDGET_RANGE`]. `None` for the limits of a review; for a tree, which no review
    /// has, `None` means the review's limit for code.
    pub budget: Option<u32>,
}

/// The preview of a review.
#[derive(Debug, Clone)]
pub struct Preview {
    pub packed: PackedContext,
    /// The reviewer's name in the settings; `None` if no reviewer of the settings uses a model.
    pub reviewer: Option<String>,
    /// The encoding in which tokens are counted.
    pub encoding: Encoding,
    /// The sources that the index and the caches do not cover completely; see [`crate::runner::Indexer::spawn_indexer`].
    pub unread: Option<ContextSources>,
}

/// The reviewer for which a preview is made.
struct PreviewReviewer {
    name: Option<String>,
    settings: ReviewerSettings,
    /// A note if the reviewer replaces the requested one.
    note: Option<String>,
}

impl Launcher<'_> {
    /// Builds the preview of a review.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer or revision, or git fails.
    pub fn preview(&self, request: &ContextRequest, wish: &ContextTaskInput) -> Result<Preview, RunnerError> {
        let PreviewReviewer { name, settings, note } = self.choose_preview_reviewer(request.reviewer.as_deref())?;
        let facts = ModelCatalog::load(&self.services.paths)?.facts_for_reviewer(&settings);
        let (record, change) = self.draft_subject(&request.target)?;
        let mask = if settings.mask_secrets { Mask::On } else { Mask::Off };
        let plan = plan_whole_change(&change);
        let commit = &record.subject.snapshot_commit;
        let ready = self.services.indexer().prepare_index(commit, &|| false);
        let budget = match request.target {
            ContextTarget::Scope(_) => request.budget,
            ContextTarget::Tree(_) => Some(request.budget.unwrap_or(self.services.settings.context.tokens)),
        };
        let (mut packed, mut ready) = match budget {
            Some(budget) => {
                let subject = PromptSubject::new(&record, &change, &plan, (facts.encoding, mask), &|| false);
                let budget = budget.clamp(*BUDGET_RANGE.start(), *BUDGET_RANGE.end());
                (self.pack_within(budget, &subject, (&ready, wish))?, ready)
            }
            None => {
                let tools =
                    if settings.kind == ReviewerKind::Command { ToolSupport::None } else { ToolSupport::Native };
                let who = TaskReviewer { settings: &settings, facts: &facts, mask, tools, misjudged: &[] };
                let prompts = self.services.prompts();
                let plan = (plan, Vec::new());
                let prepared = prompts.prepare_task(who, &record, &change, plan, (|| ready, wish, &|| false))?;
                (prepared.packed, prepared.ready)
            }
        };
        if change.files.is_empty() && change.left_out.is_empty() && wish.focus.is_empty() && wish.text.is_empty() {
            packed.notes.push(NO_TASK.to_owned());
        }
        packed.notes.splice(0..0, note);
        let late = ready.indexing.take().and_then(BackgroundIndexing::stop);
        let is_unread = (late.is_none() && ready.is_incomplete()) || !packed.partial.is_whole();
        let unread = is_unread.then(|| context_sources(&record));
        packed.notes.extend(ready.repaired.or(late.and_then(|refreshed| refreshed.repaired)));
        Ok(Preview { packed, reviewer: name, encoding: facts.encoding, unread })
    }

    /// Packs all texts of a request into one budget.
    fn pack_within(
        &self,
        budget: u32,
        subject: &PromptSubject<'_>,
        (ready, wish): (&IndexReadiness, &ContextTaskInput),
    ) -> Result<PackedContext, RunnerError> {
        let sizes = PromptTokenLimits::for_budget(budget, &wish.text, subject.encoding);
        let mut gathered = self.services.prompts().gather_prompt_material(
            subject,
            &sizes,
            &self.services.reviewers().load_prompts()?,
            wish,
        );
        let pack = |gathered: &PromptMaterial| {
            self.services.prompts().pack_code_context(
                subject,
                (budget, gathered.pieces(usize::MAX)),
                gathered.documents(),
                (ready, wish),
            )
        };
        let mut packed = pack(&gathered);
        // The change gets the tokens that nothing else uses.
        let left = u64::from(budget.saturating_sub(packed.total_tokens));
        if !gathered.material.over_budget.is_empty() && left >= DiffLimits::MIN_PART_TOKENS {
            gathered.material =
                self.services.prompts().build_change_material(subject, &sizes.with_extra_diff(left), &gathered);
            packed = pack(&gathered);
        }
        packed.notes.extend(gathered.notes());
        let left_out = [subject.change.left_out.as_slice(), &gathered.material.left_out].concat();
        packed.notes.extend(list_withheld(&gathered.material.over_budget, &left_out));
        Ok(packed)
    }

    /// Drafts a run record that is never stored, with its change.
    fn draft_subject(&self, target: &ContextTarget) -> Result<(RunRecord, Changeset), RunnerError> {
        let scope = match target {
            ContextTarget::Scope(scope) => scope.clone(),
            ContextTarget::Tree(revision) => Some(Scope::Range { from: revision.clone(), to: revision.clone() }),
        };
        let request = ReviewRequest {
            scope,
            reviewer: Some(BUILTIN_REVIEWER.to_owned()),
            prompt_set: None,
            source: Source::Cli,
            started_in_session: 0,
            demand: ReviewDemand::Anew,
        };
        let (snapshot, mut record) = self.draft_unrecorded_run(&request)?;
        if matches!(target, ContextTarget::Tree(_)) {
            record.subject.head_commit.clone_from(&record.subject.snapshot_commit);
        }
        Ok((record, snapshot.change))
    }

    fn choose_preview_reviewer(&self, reviewer: Option<&str>) -> Result<PreviewReviewer, RunnerError> {
        let (reviewers, default) =
            (&self.services.settings.reviewers, self.services.settings.default_reviewer.as_str());
        let meant = reviewer.unwrap_or(default);
        let is_model = |settings: &&ReviewerSettings| settings.kind != ReviewerKind::Builtin;
        let (name, settings, which) = if let Some(name) = reviewer.filter(|name| *name != BUILTIN_REVIEWER) {
            (name, self.services.reviewers().model_settings(name)?, "")
        } else if let Some(settings) = reviewers.get(default).filter(is_model) {
            (default, settings, "")
        } else if let Some((name, settings)) = reviewers.iter().find(|(_, settings)| settings.kind.is_http()) {
            (name.as_str(), settings, ", the first by name of those that are")
        } else {
            return Ok(PreviewReviewer {
                name: None,
                settings: ReviewerSettings::new(ReviewerKind::Openai),
                note: None,
            });
        };
        let note = (name != meant).then(|| format!("reviewer {meant} is sent nothing: this is for {name}{which}"));
        Ok(PreviewReviewer { name: Some(name.to_owned()), settings: settings.clone(), note })
    }
}

/// Returns a plan in which nothing is reviewed yet.
fn plan_whole_change(change: &Changeset) -> ReviewPlan {
    let planned = |file: &crate::git::FileChange| PlannedFile {
        path: file.path.clone(),
        hunks: file.hunks.iter().map(|hunk| hunk.new_range()).collect(),
        keys: Vec::new(),
        added_lines: 0,
    };
    ReviewPlan {
        files: change.files.iter().map(planned).collect(),
        left_out: change.left_out.clone(),
        unit_files: 1,
        has_whole_unit: false,
        carried: Vec::new(),
    }
}
