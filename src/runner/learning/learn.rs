//! Learns from decisions about findings: dismissals, findings that a review saw fixed, fixes that the user applied.
//!
//! - Nobody waits for the learning, and no run fails because of it.
//! - A finding teaches a pattern once, however often the user decides about it.
//! - A decision that was revoked before it was read teaches nothing.
//! - An unreadable decision teaches nothing and is not tried again.
//! - A decision is never read if it was made while learning was off, or belongs to a run that was requested while
//!   learning was off.
//! - A dismissed finding that [may be grave](crate::domain::Kind::is_never_lowered) teaches nothing, because knowledge
//!   must not hide it.
//! - Decisions about smells of the built-in reviewer also count by kind of smell.
//! - A fix that failed its check, was dropped or was undone counts against the pattern that raised its findings, against
//!   the patterns of its edits, and by kind of smell. It weighs a third of a dismissal and teaches no new pattern.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use thiserror::Error;

use crate::domain::{
    Actor, Disposition, Finding, FindingId, FindingStatus, Fix, FixStatus, PatternId, RunId, RunRecord,
};
use crate::git::Repo;
use crate::knowledge::cache::{KnowledgeCache, LearningSummary, PatternOutcome, PatternOutcomeKind};
use crate::knowledge::error::KnowledgeError;
use crate::knowledge::kind_tallies::{FindingVerdict, KindVerdict};
use crate::knowledge::pattern::PatternEvidence;
use crate::runner::prompt::pattern_queries::{EditLesson, FormLesson, PatternQueries};
use crate::runner::{BUILTIN_REVIEWER, Learning, Services};
use crate::store::{StoreError, StoreView};
use crate::syntax::language::Language;

/// Maximum number of decisions in one call; the rest waits for the next call. Not from the literature: a few seconds of
/// work.
const MAX_DECISIONS_PER_READ: usize = 500;

/// The result of reading decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LearningReport {
    /// Number of findings with decisions.
    pub findings: usize,
    pub learned: LearningSummary,
    /// Number of outcomes for findings that learned patterns had raised, and of setbacks of patterns.
    pub outcomes: usize,
    /// Number of fixes that failed their check, were dropped or were undone.
    pub fixes: usize,
    /// `true` if there are more decisions to read.
    pub more: bool,
}

/// The reason why learning failed.
#[derive(Debug, Error)]
pub enum LearnError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
}

impl Learning<'_> {
    /// Learns from the decisions since the last call.
    ///
    /// # Errors
    ///
    /// If the decisions cannot be read or the knowledge cannot be written; both then stay unchanged.
    pub fn learn(&self, cache: &KnowledgeCache) -> Result<LearningReport, LearnError> {
        let lessons = self.services.store.pending_lessons(MAX_DECISIONS_PER_READ)?;
        let mut taught = LearningReport { more: lessons.more, ..LearningReport::default() };
        // The last decision about a finding counts.
        let last: BTreeMap<&FindingId, &Disposition> =
            lessons.decided.iter().map(|line| (&line.finding_id, line)).collect();
        let fixes = self.services.store.pending_fixes()?;
        let set_back: Vec<&Fix> = fixes.changed.iter().filter(|fix| !fix.setback_findings().is_empty()).collect();
        if !last.is_empty() || !set_back.is_empty() {
            let mut lesson = DecisionReader::new(self.services)?;
            for line in last.values() {
                lesson.read_decision(line)?;
            }
            for fix in &set_back {
                lesson.read_setback(fix)?;
            }
            let (observations, outcomes) =
                lesson.queries.run_queries(&|commit, path| read_text(&self.services.repo, commit, path));
            lesson.outcomes.extend(outcomes);
            let now = self.services.ambient.now();
            (taught.findings, taught.fixes) = (last.len(), set_back.len());
            taught.learned = cache.learn(&observations, now)?;
            taught.outcomes = cache.record_outcomes(&lesson.outcomes, now)?;
            cache.record_verdicts(&lesson.judged, now)?;
        }
        if lessons.end != lessons.start {
            self.services.store.mark_learned(lessons.end)?;
        }
        if fixes.end != fixes.start {
            self.services.store.mark_fixes_learned(fixes.end)?;
        }
        Ok(taught)
    }

    /// Records that code of a snapshot matched patterns. Logs a failure.
    pub(in crate::runner) fn record_matches(&self, snapshot: &str, findings: &[Finding]) {
        let mut matched: HashMap<Language, Vec<PatternId>> = HashMap::new();
        for finding in findings {
            let Some(pattern) = &finding.pattern else { continue };
            if let Some(language) = detect_language(&self.services.repo, Some(snapshot), finding) {
                matched.entry(language).or_default().push(pattern.clone());
            }
        }
        let (cache, now) = (KnowledgeCache::open(&self.services.paths.knowledge), self.services.ambient.now());
        for (language, patterns) in matched {
            if let Err(error) = cache.record_matches(language, &patterns, now) {
                tracing::warn!(%error, "that patterns matched is not kept");
            }
        }
    }

    /// Returns `false` if the requester of the run opted out of learning, or the settings disable it now.
    pub(in crate::runner) fn may_learn_from(&self, run: &RunRecord) -> bool {
        self.services.settings.learning.enabled && !run.private
    }

    /// Learns like [`crate::runner::Learning::learn`], for a worker: only logs a failure.
    pub(in crate::runner) fn learn_after_run(&self) {
        match self.learn(&KnowledgeCache::open(&self.services.paths.knowledge)) {
            Ok(taught) if taught.findings + taught.fixes > 0 => tracing::info!(?taught, "learned"),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "nothing was learned"),
        }
    }
}

/// Reads decisions and collects the lessons.
struct DecisionReader<'a> {
    services: &'a Services,
    view: Arc<StoreView>,
    /// Newest first.
    fixes: Vec<Fix>,
    queries: PatternQueries,
    outcomes: Vec<PatternOutcome>,
    judged: Vec<KindVerdict>,
    /// By snapshot and path.
    languages: HashMap<(Option<String>, String), Option<Language>>,
}

impl<'a> DecisionReader<'a> {
    fn new(services: &'a Services) -> Result<Self, StoreError> {
        Ok(Self {
            services,
            view: services.store.view()?,
            fixes: services.store.fixes()?,
            queries: PatternQueries::default(),
            outcomes: Vec::new(),
            judged: Vec::new(),
            languages: HashMap::new(),
        })
    }

    /// Reads the last decision about a finding. Ignores the decision if the finding has another status by now.
    fn read_decision(&mut self, said: &Disposition) -> Result<(), StoreError> {
        let id = &said.finding_id;
        let Some(index) = self.view.finding_index(id.as_str()) else { return Ok(()) };
        if self.view.finding(index).status != said.status {
            return Ok(());
        }
        let Some(finding) = self.services.store.finding_in(&self.view, id)? else { return Ok(()) };
        let placed = self.view.locating_run(index).map(|run| self.view.run(run).snapshot_commit.to_owned());
        match (said.status, said.actor) {
            (FindingStatus::Dismissed, Actor::User) if said.is_unrelated_to_code() => {}
            (FindingStatus::Dismissed, Actor::User) => {
                self.record_outcome(&finding, placed.as_deref(), PatternOutcomeKind::Failure);
                self.record_judgement(&finding, placed.as_deref(), FindingVerdict::Dismissed);
                if let Some(snapshot) = placed {
                    self.query_false_alarm(&finding, said, &snapshot);
                }
            }
            // The user or the assistant claims that it is fixed. If a patch of revdeck fixed it, the edit is known.
            (FindingStatus::Addressed, Actor::User | Actor::Assistant) => {
                let applied =
                    |fix: &&Fix| fix.status == FixStatus::Applied && fix.fixed_findings().any(|fixed| fixed == id);
                let fix = self.fixes.iter().find(applied).cloned();
                if fix.as_ref().is_some_and(|fix| fix.private) {
                    return Ok(());
                }
                // The claim of an assistant alone is not enough.
                if fix.is_some() || said.actor == Actor::User {
                    self.record_judgement(&finding, placed.as_deref(), FindingVerdict::Addressed);
                }
                let Some(Fix { run_id, snapshot_commit: before, fixed_commit: after, .. }) = fix else { return Ok(()) };
                // The edit is described by the lines of the snapshot in which the fix was made.
                let then = match placed {
                    Some(placed) if placed == before => Some(finding),
                    _ => self.services.store.finding_in_run(&run_id, id)?,
                };
                if let Some(finding) = then {
                    self.query_no_false_alarm(&finding, &before);
                    let lesson = EditLesson::Fixed { evidence: PatternEvidence::Applied, at: said.at };
                    self.queries.query_edits(&finding, [&before, &after], lesson);
                }
            }
            (FindingStatus::Addressed, Actor::Engine) => {
                self.record_outcome(&finding, placed.as_deref(), PatternOutcomeKind::Success);
                self.record_judgement(&finding, placed.as_deref(), FindingVerdict::Addressed);
                if let Some(before) = placed {
                    self.query_no_false_alarm(&finding, &before);
                    if let Some(after) = self.snapshot_of_run(said.run_id.as_ref()) {
                        let lesson = EditLesson::Fixed { evidence: PatternEvidence::Addressed, at: said.at };
                        self.queries.query_edits(&finding, [&before, &after], lesson);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the end of a fix that came to nothing.
    fn read_setback(&mut self, fix: &Fix) -> Result<(), StoreError> {
        let before = Some(fix.snapshot_commit.as_str());
        for id in fix.setback_findings() {
            let then = self.services.store.finding_in_run(&fix.run_id, id)?;
            let finding = match then {
                Some(finding) => finding,
                None => match self.services.store.finding_in(&self.view, id)? {
                    Some(finding) => finding,
                    None => continue,
                },
            };
            if let Some(pattern) = &finding.pattern
                && let Some(language) = self.file_language(before, &finding)
            {
                self.outcomes.push(PatternOutcome {
                    language,
                    pattern: pattern.clone(),
                    outcome: PatternOutcomeKind::Setback,
                    source: fix.fix_id.to_string(),
                });
            }
            self.record_judgement(&finding, before, FindingVerdict::SetBack);
            // The edits of a patch that failed its check are not kept.
            if fix.status != FixStatus::Failed && !fix.fixed_commit.is_empty() {
                let lesson = EditLesson::SetBack { fix: fix.fix_id.to_string() };
                self.queries.query_edits(&finding, [&fix.snapshot_commit, &fix.fixed_commit], lesson);
            }
        }
        Ok(())
    }

    fn snapshot_of_run(&self, run: Option<&RunId>) -> Option<String> {
        let run = self.view.run_index(run?.as_str())?;
        Some(self.view.run(run).snapshot_commit.to_owned())
    }

    fn query_false_alarm(&mut self, finding: &Finding, said: &Disposition, snapshot: &str) {
        if finding.kind.is_never_lowered() {
            return;
        }
        self.queries.query_form(finding, snapshot, FormLesson::FalseAlarm(said.at));
    }

    /// Adds a query that counts against the false-alarm patterns which match the fixed code.
    fn query_no_false_alarm(&mut self, finding: &Finding, snapshot: &str) {
        if finding.kind.is_never_lowered() {
            return;
        }
        self.queries.query_form(finding, snapshot, FormLesson::NoFalseAlarm);
    }

    /// Counts a decision by kind of smell. Skips findings of patterns and models, which are no smells.
    fn record_judgement(&mut self, finding: &Finding, snapshot: Option<&str>, verdict: FindingVerdict) {
        let run = self.view.run_index(finding.last_run_id.as_str()).map(|run| self.view.run(run).reviewer);
        if finding.pattern.is_some() || run != Some(BUILTIN_REVIEWER) {
            return;
        }
        let Some(language) = self.file_language(snapshot, finding) else { return };
        self.judged.push(KindVerdict {
            language,
            kind: finding.kind,
            verdict,
            file: format!("{} {}", self.services.repo.key(), finding.repo_relative_path),
            source: finding.finding_id.to_string(),
        });
    }

    /// Returns the language of a finding's file. Each file is read once.
    fn file_language(&mut self, snapshot: Option<&str>, finding: &Finding) -> Option<Language> {
        let file = (snapshot.map(str::to_owned), finding.repo_relative_path.clone());
        *self.languages.entry(file).or_insert_with(|| detect_language(&self.services.repo, snapshot, finding))
    }

    /// Records an outcome for the pattern that raised the finding.
    fn record_outcome(&mut self, finding: &Finding, snapshot: Option<&str>, outcome: PatternOutcomeKind) {
        let Some(pattern) = &finding.pattern else { return };
        let Some(language) = self.file_language(snapshot, finding) else { return };
        self.outcomes.push(PatternOutcome {
            language,
            pattern: pattern.clone(),
            outcome,
            source: finding.finding_id.to_string(),
        });
    }
}

/// Returns the text of a file in a snapshot; `None` if the file or the snapshot does not exist.
fn read_text(repo: &Repo, commit: &str, path: &str) -> Option<Vec<u8>> {
    repo.file_at(commit, path).ok().flatten()
}

/// Detects the language of a finding's file from the whole file, because a few lines do not identify a header or a
/// script. If the file cannot be read any more, uses the quoted code.
fn detect_language(repo: &Repo, snapshot: Option<&str>, finding: &Finding) -> Option<Language> {
    let whole = snapshot.and_then(|commit| read_text(repo, commit, &finding.repo_relative_path));
    let text = whole.as_deref().unwrap_or(finding.quoted_code.as_bytes());
    Language::detect(&finding.repo_relative_path, text)
}
