//! What decisions about findings teach: dismissals, findings that a review saw fixed, fixes that a person applied.
//!
//! Invariants: nobody waits for it and no run fails by it; a finding teaches a pattern once, however often it is decided
//! about; what was taken back before it was read teaches nothing; what cannot be read any more teaches nothing and is
//! not tried again; what was decided while learning was off is never read. A dismissed finding that [may be
//! grave](crate::domain::Kind::is_never_lowered) teaches nothing: knowledge hides no such thing.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thiserror::Error;

use super::Runner;
use crate::domain::{
    Actor, Disposition, Finding, FindingId, FindingStatus, Fix, FixStatus, LineRange, PatternId, RunId,
};
use crate::git::Repo;
use crate::knowledge::abstraction::{Places, edits};
use crate::knowledge::cache::{Cache, Happened, Learned, Observation, Outcome};
use crate::knowledge::error::KnowledgeError;
use crate::knowledge::form::Form;
use crate::knowledge::pattern::{EditKind, Evidence, Stance};
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::Parsers;
use crate::store::{StoreError, View};

/// Decisions that one reading looks at; the rest waits for the next. Own: a few seconds' work at most.
const AT_ONCE: usize = 500;
/// An edit this many lines from a finding is still about it. Own: what is missing is put in before or behind.
const NEAR: u32 = 2;
/// Reasons of a dismissal that say nothing of the code's shape.
const ABOUT_OTHER_THINGS: [&str; 2] = ["fixed elsewhere", "generated or vendored code"];

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
                // Code is a stranger's: what makes its analysis panic costs this lesson and no other.
                match catch_unwind(AssertUnwindSafe(|| lesson.read(line))) {
                    Ok(read) => read?,
                    Err(_) => {
                        tracing::error!(finding = %line.finding_id, "revdeck failed to learn from what was decided");
                        lesson.parsers = Parsers::default();
                    }
                }
            }
            let now = self.ambient.now();
            taught.findings = last.len();
            taught.learned = cache.learn(&lesson.observations, now)?;
            taught.outcomes = cache.record_outcomes(&lesson.outcomes, now)?;
        }
        if lessons.end != lessons.start {
            self.store.learned(lessons.end)?;
        }
        Ok(taught)
    }

    /// That code of a run matched patterns just now; in the worker's log when it cannot be kept.
    pub(super) fn remember_matches(&self, run: &RunId) {
        if !self.settings.learning.enabled {
            return;
        }
        let findings = match self.store.output(run) {
            Ok(output) => output.map(|output| output.findings).unwrap_or_default(),
            Err(error) => return tracing::warn!(%run, %error, "which patterns matched is not known"),
        };
        let snapshot = match self.store.view() {
            Ok(view) => view.run_index(run.as_str()).map(|run| view.run(run).snapshot_commit.to_owned()),
            Err(error) => return tracing::warn!(%run, %error, "which patterns matched is not known"),
        };
        let mut matched: HashMap<Language, Vec<PatternId>> = HashMap::new();
        for finding in &findings {
            let Some(pattern) = &finding.pattern else { continue };
            if let Some(language) = language(&self.repo, snapshot.as_deref(), finding) {
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

    /// As [`Runner::learn`], for a worker: says what goes wrong in its log only.
    pub(super) fn learn_by_the_way(&self) {
        if !self.settings.learning.enabled {
            return;
        }
        let cache = Cache::open(&self.paths.knowledge);
        match self.learn(&cache) {
            Ok(taught) if taught.findings > 0 => tracing::info!(?taught, "learned"),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "nothing was learned"),
        }
        for notice in cache.notices() {
            tracing::warn!("{notice}");
        }
    }
}

/// What is made of decisions.
struct Lesson<'a> {
    runner: &'a Runner,
    view: Arc<View>,
    /// Newest first.
    fixes: Vec<Fix>,
    parsers: Parsers,
    observations: Vec<Observation>,
    outcomes: Vec<Happened>,
}

impl<'a> Lesson<'a> {
    fn new(runner: &'a Runner) -> Result<Self, StoreError> {
        Ok(Self {
            runner,
            view: runner.store.view()?,
            fixes: runner.store.fixes()?,
            parsers: Parsers::default(),
            observations: Vec::new(),
            outcomes: Vec::new(),
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
            (FindingStatus::Dismissed, Actor::User) => {
                self.outcome(&finding, placed.as_deref(), Outcome::Failure);
                if let Some(snapshot) = placed {
                    self.false_alarm(&finding, said, &snapshot);
                }
            }
            // Somebody says that it is fixed: by a patch of ours the edit is known.
            (FindingStatus::Addressed, Actor::User | Actor::Assistant) => {
                let applied = |fix: &&Fix| fix.status == FixStatus::Applied && fix.fixed().any(|fixed| fixed == id);
                let fix = self.fixes.iter().find(applied);
                let Some(fix) = fix else { return Ok(()) };
                let (before, after) = (fix.snapshot_commit.clone(), fix.fixed_commit.clone());
                // The edit is told by the lines of the snapshot that the fix was made in.
                let then = match placed {
                    Some(placed) if placed == before => Some(finding),
                    _ => self.runner.store.reported(&fix.run_id, id)?,
                };
                if let Some(finding) = then {
                    self.no_false_alarm(&finding, &before);
                    self.mistake(&finding, said, Evidence::Applied, &before, &after);
                }
            }
            (FindingStatus::Addressed, Actor::Engine) => {
                self.outcome(&finding, placed.as_deref(), Outcome::Success);
                if let Some(before) = placed {
                    self.no_false_alarm(&finding, &before);
                    if let Some(after) = self.snapshot(said.run_id.as_ref()) {
                        self.mistake(&finding, said, Evidence::Addressed, &before, &after);
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

    /// What the edit of a finding's place between two snapshots teaches.
    fn mistake(&mut self, finding: &Finding, said: &Disposition, evidence: Evidence, before: &str, after: &str) {
        let text = |commit| text(&self.runner.repo, commit, finding);
        let (Some(before), Some(after)) = (text(before), text(after)) else { return };
        let Some(language) = Language::detect(&finding.repo_relative_path, &before) else { return };
        let lines = finding.lines();
        let near = LineRange::new(lines.start.saturating_sub(NEAR).max(1), lines.end.saturating_add(NEAR));
        for edit in edits(&mut self.parsers, language, &before, &after) {
            if edit.lines.overlaps(near) {
                self.observations.push(Observation {
                    language,
                    stance: Stance::Mistake,
                    broken: edit.broken,
                    fixed: edit.fixed,
                    edit: edit.edit,
                    kind: finding.kind,
                    evidence,
                    source: finding.finding_id.to_string(),
                    at: said.at,
                });
            }
        }
    }

    fn false_alarm(&mut self, finding: &Finding, said: &Disposition, snapshot: &str) {
        if finding.kind.is_never_lowered() || ABOUT_OTHER_THINGS.contains(&said.reason.as_str()) {
            return;
        }
        let Some((language, broken)) = self.shape(finding, snapshot) else { return };
        self.observations.push(Observation {
            language,
            stance: Stance::FalseAlarm,
            broken,
            fixed: Form::default(),
            edit: EditKind::Other,
            kind: finding.kind,
            evidence: Evidence::Dismissed,
            source: finding.finding_id.to_string(),
            at: said.at,
        });
    }

    /// Somebody put right what others like it were dismissed for.
    fn no_false_alarm(&mut self, finding: &Finding, snapshot: &str) {
        if finding.kind.is_never_lowered() {
            return;
        }
        let Some((language, broken)) = self.shape(finding, snapshot) else { return };
        self.outcomes.push(Happened {
            language,
            pattern: PatternId::of(language.name(), &broken.to_string(), ""),
            stance: Stance::FalseAlarm,
            kind: finding.kind,
            outcome: Outcome::Failure,
            source: finding.finding_id.to_string(),
        });
    }

    /// The form of the code that a finding is about.
    fn shape(&mut self, finding: &Finding, snapshot: &str) -> Option<(Language, Form)> {
        let text = text(&self.runner.repo, snapshot, finding)?;
        let path = &finding.repo_relative_path;
        let language = Language::detect(path, &text)?;
        let source = self.parsers.parse(path, language, &text).ok()?;
        Some((language, Places::of(&source).form(finding.lines())?))
    }

    /// What a finding that knowledge raised came to.
    fn outcome(&mut self, finding: &Finding, snapshot: Option<&str>, outcome: Outcome) {
        let Some(pattern) = &finding.pattern else { return };
        let Some(language) = language(&self.runner.repo, snapshot, finding) else { return };
        self.outcomes.push(Happened {
            language,
            pattern: pattern.clone(),
            stance: Stance::Mistake,
            kind: finding.kind,
            outcome,
            source: finding.finding_id.to_string(),
        });
    }
}

/// The text of a finding's file in a snapshot; `None` where it is not there, or the snapshot is gone.
fn text(repo: &Repo, commit: &str, finding: &Finding) -> Option<Vec<u8>> {
    repo.file_at(commit, &finding.repo_relative_path).ok().flatten()
}

/// The language of a finding's file, by the whole of it: a few lines do not say what a header or a script is. Where it
/// cannot be read any more, by what was quoted.
fn language(repo: &Repo, snapshot: Option<&str>, finding: &Finding) -> Option<Language> {
    let whole = snapshot.and_then(|commit| text(repo, commit, finding));
    let text = whole.as_deref().unwrap_or(finding.quoted_code.as_bytes());
    Language::detect(&finding.repo_relative_path, text)
}
