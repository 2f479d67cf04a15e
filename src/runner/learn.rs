//! What decisions about findings teach: dismissals, findings that a review saw fixed, fixes that a person applied.
//!
//! Invariants: nobody waits for it and no run fails by it; a finding teaches a pattern once, however often it is decided
//! about; what was taken back before it was read teaches nothing; what cannot be read any more teaches nothing and is
//! not tried again; what was decided while learning was off, or by a run that was asked for while it was, is never read,
//! whoever works on that run. A dismissed finding that [may be
//! grave](crate::domain::Kind::is_never_lowered) teaches nothing: knowledge hides no such thing. What was decided about
//! smells that the built-in reviewer found counts by their kind as well.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use thiserror::Error;

use super::Runner;
use super::asked::{Asked, Teaches};
use crate::domain::{
    Actor, Disposition, Finding, FindingId, FindingStatus, Fix, FixStatus, PatternId, RunId, RunRecord,
};
use crate::git::Repo;
use crate::knowledge::cache::{Cache, Happened, Learned, Outcome};
use crate::knowledge::error::KnowledgeError;
use crate::knowledge::kinds::{Judged, Verdict};
use crate::knowledge::pattern::Evidence;
use crate::provider::builtin::language::Language;
use crate::store::{StoreError, View};

/// Decisions that one reading looks at; the rest waits for the next. Own: a few seconds' work.
const AT_ONCE: usize = 500;

/// What came of reading decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taught {
    /// Findings that were decided about.
    pub findings: usize,
    pub learned: Learned,
    /// What became of findings that knowledge had raised.
    pub outcomes: usize,
    /// Whether there is more to read.
    pub more: bool,
}

/// Why decisions taught nothing.
#[derive(Debug, Error)]
pub enum LearnError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
}

impl Runner {
    /// Learns from what was decided since this was called last.
    ///
    /// # Errors
    /// When the decisions cannot be read or the knowledge cannot be written; both stay as they were.
    pub fn learn(&self, cache: &Cache) -> Result<Taught, LearnError> {
        let lessons = self.store.lessons(AT_ONCE)?;
        let mut taught = Taught { more: lessons.more, ..Taught::default() };
        // What was said last about a finding counts.
        let last: BTreeMap<&FindingId, &Disposition> =
            lessons.decided.iter().map(|line| (&line.finding_id, line)).collect();
        if !last.is_empty() {
            let mut lesson = Lesson::new(self)?;
            for line in last.values() {
                lesson.read(line)?;
            }
            let (observations, outcomes) = lesson.asked.answers(&|commit, path| text(&self.repo, commit, path));
            lesson.outcomes.extend(outcomes);
            let now = self.ambient.now();
            taught.findings = last.len();
            taught.learned = cache.learn(&observations, now)?;
            taught.outcomes = cache.record_outcomes(&lesson.outcomes, now)?;
            cache.judge(&lesson.judged, now)?;
        }
        if lessons.end != lessons.start {
            self.store.learned(lessons.end)?;
        }
        Ok(taught)
    }

    /// That code of a snapshot matched patterns just now; in the worker's log when it cannot be kept.
    pub(super) fn remember_matches(&self, snapshot: &str, findings: &[Finding]) {
        let mut matched: HashMap<Language, Vec<PatternId>> = HashMap::new();
        for finding in findings {
            let Some(pattern) = &finding.pattern else { continue };
            if let Some(language) = language(&self.repo, Some(snapshot), finding) {
                matched.entry(language).or_default().push(pattern.clone());
            }
        }
        let (cache, now) = (Cache::open(&self.paths.knowledge), self.ambient.now());
        for (language, patterns) in matched {
            if let Err(error) = cache.matched(language, &patterns, now) {
                tracing::warn!(%error, "that patterns matched is not kept");
            }
        }
    }

    /// Whether a run teaches anything: whoever asked for it may have opted out, or the settings do by now.
    pub(super) fn may_learn_from(&self, run: &RunRecord) -> bool {
        self.settings.learning.enabled && !run.private
    }

    /// As [`Runner::learn`], for a worker: says what goes wrong in its log only.
    pub(super) fn learn_by_the_way(&self) {
        match self.learn(&Cache::open(&self.paths.knowledge)) {
            Ok(taught) if taught.findings > 0 => tracing::info!(?taught, "learned"),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "nothing was learned"),
        }
    }
}

/// What is made of decisions.
struct Lesson<'a> {
    runner: &'a Runner,
    view: Arc<View>,
    /// Newest first.
    fixes: Vec<Fix>,
    asked: Asked,
    outcomes: Vec<Happened>,
    judged: Vec<Judged>,
    /// By snapshot and path.
    languages: HashMap<(Option<String>, String), Option<Language>>,
}

impl<'a> Lesson<'a> {
    fn new(runner: &'a Runner) -> Result<Self, StoreError> {
        Ok(Self {
            runner,
            view: runner.store.view()?,
            fixes: runner.store.fixes()?,
            asked: Asked::default(),
            outcomes: Vec::new(),
            judged: Vec::new(),
            languages: HashMap::new(),
        })
    }

    /// Takes in what was said last about a finding, unless something else holds by now.
    fn read(&mut self, said: &Disposition) -> Result<(), StoreError> {
        let id = &said.finding_id;
        let Some(index) = self.view.finding_index(id.as_str()) else { return Ok(()) };
        if self.view.finding(index).status != said.status {
            return Ok(());
        }
        let Some(finding) = self.runner.store.finding_in(&self.view, id)? else { return Ok(()) };
        let placed = self.view.placed_by(index).map(|run| self.view.run(run).snapshot_commit.to_owned());
        match (said.status, said.actor) {
            (FindingStatus::Dismissed, Actor::User) if said.is_about_other_things() => {}
            (FindingStatus::Dismissed, Actor::User) => {
                self.outcome(&finding, placed.as_deref(), Outcome::Failure);
                self.judge(&finding, placed.as_deref(), Verdict::Dismissed);
                if let Some(snapshot) = placed {
                    self.false_alarm(&finding, said, &snapshot);
                }
            }
            // Somebody says that it is fixed: by a patch of ours the edit is known.
            (FindingStatus::Addressed, Actor::User | Actor::Assistant) => {
                let applied = |fix: &&Fix| fix.status == FixStatus::Applied && fix.fixed().any(|fixed| fixed == id);
                let fix = self.fixes.iter().find(applied).cloned();
                if fix.as_ref().is_some_and(|fix| fix.private) {
                    return Ok(());
                }
                // An assistant only claims.
                if fix.is_some() || said.actor == Actor::User {
                    self.judge(&finding, placed.as_deref(), Verdict::Addressed);
                }
                let Some(Fix { run_id, snapshot_commit: before, fixed_commit: after, .. }) = fix else { return Ok(()) };
                // The edit is told by the lines of the snapshot that the fix was made in.
                let then = match placed {
                    Some(placed) if placed == before => Some(finding),
                    _ => self.runner.store.reported(&run_id, id)?,
                };
                if let Some(finding) = then {
                    self.no_false_alarm(&finding, &before);
                    self.asked.edits(&finding, [&before, &after], Evidence::Applied, said.at);
                }
            }
            (FindingStatus::Addressed, Actor::Engine) => {
                self.outcome(&finding, placed.as_deref(), Outcome::Success);
                self.judge(&finding, placed.as_deref(), Verdict::Addressed);
                if let Some(before) = placed {
                    self.no_false_alarm(&finding, &before);
                    if let Some(after) = self.snapshot(said.run_id.as_ref()) {
                        self.asked.edits(&finding, [&before, &after], Evidence::Addressed, said.at);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn snapshot(&self, run: Option<&RunId>) -> Option<String> {
        let run = self.view.run_index(run?.as_str())?;
        Some(self.view.run(run).snapshot_commit.to_owned())
    }

    fn false_alarm(&mut self, finding: &Finding, said: &Disposition, snapshot: &str) {
        if finding.kind.is_never_lowered() {
            return;
        }
        self.asked.form(finding, snapshot, Teaches::FalseAlarm(said.at));
    }

    /// Somebody put right what others like it were dismissed for.
    fn no_false_alarm(&mut self, finding: &Finding, snapshot: &str) {
        if finding.kind.is_never_lowered() {
            return;
        }
        self.asked.form(finding, snapshot, Teaches::NoFalseAlarm);
    }

    /// Counts by its kind what was decided about a smell. What a pattern or a model said is no smell.
    fn judge(&mut self, finding: &Finding, snapshot: Option<&str>, verdict: Verdict) {
        let run = self.view.run_index(finding.last_run_id.as_str()).map(|run| self.view.run(run).reviewer);
        if finding.pattern.is_some() || run != Some(Runner::BUILTIN) {
            return;
        }
        let Some(language) = self.language(snapshot, finding) else { return };
        self.judged.push(Judged {
            language,
            kind: finding.kind,
            verdict,
            file: format!("{} {}", self.runner.repo.key(), finding.repo_relative_path),
            source: finding.finding_id.to_string(),
        });
    }

    /// The language of a finding's file, which is read once.
    fn language(&mut self, snapshot: Option<&str>, finding: &Finding) -> Option<Language> {
        let file = (snapshot.map(str::to_owned), finding.repo_relative_path.clone());
        *self.languages.entry(file).or_insert_with(|| language(&self.runner.repo, snapshot, finding))
    }

    /// What a finding that knowledge raised came to.
    fn outcome(&mut self, finding: &Finding, snapshot: Option<&str>, outcome: Outcome) {
        let Some(pattern) = &finding.pattern else { return };
        let Some(language) = self.language(snapshot, finding) else { return };
        self.outcomes.push(Happened {
            language,
            pattern: pattern.clone(),
            outcome,
            source: finding.finding_id.to_string(),
        });
    }
}

/// The text of a file in a snapshot; `None` where it is not there, or the snapshot is gone.
fn text(repo: &Repo, commit: &str, path: &str) -> Option<Vec<u8>> {
    repo.file_at(commit, path).ok().flatten()
}

/// The language of a finding's file, by the whole of it: a few lines do not say what a header or a script is. Where it
/// cannot be read any more, by what was quoted.
fn language(repo: &Repo, snapshot: Option<&str>, finding: &Finding) -> Option<Language> {
    let whole = snapshot.and_then(|commit| text(repo, commit, &finding.repo_relative_path));
    let text = whole.as_deref().unwrap_or(finding.quoted_code.as_bytes());
    Language::detect(&finding.repo_relative_path, text)
}
