//! Applies observations, outcomes and imports to the patterns of one language in memory. This module reads and writes
//! no files.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::MAX_PATTERNS_PER_LANGUAGE;
use crate::domain::{Kind, PatternId, Time, content_hash, word_enum};
use crate::knowledge::event_log::{self, PatternEventKind};
use crate::knowledge::form::Form;
use crate::knowledge::kind_tallies::KindVerdict;
use crate::knowledge::knowledge_file::KnowledgeFile;
use crate::knowledge::pattern::{
    EditKind, MAX_ORIGINS, MonthlyOutcomes, Pattern, PatternCount, PatternEvidence, PatternOrigin, PatternStance,
};
use crate::knowledge::{builtin_patterns, rank};
use crate::syntax::language::Language;

/// Maximum number of months with outcomes: two years.
pub(super) const MAX_MONTHS: usize = 24;

word_enum!(
    /// Outcome of a finding that a pattern raised.
    PatternOutcomeKind {
        /// The finding was addressed; for a false alarm: dismissed.
        Success = "success",
        /// The finding was dismissed; for a false alarm: addressed.
        Failure = "failure",
        /// A fix for the finding failed its check, was dropped or was undone.
        Setback = "setback",
    }
);

/// Observation that teaches a pattern.
#[derive(Debug, Clone)]
pub struct PatternObservation {
    pub language: Language,
    pub stance: PatternStance,
    pub broken: Form,
    /// Fixed form; empty for a false alarm.
    pub fixed: Form,
    pub edit: EditKind,
    /// Kind of the finding, or the kind under which the pattern is raised.
    pub kind: Kind,
    pub evidence: PatternEvidence,
    /// Id of the commit, fix or finding. It counts once per pattern; only a salted digest is stored.
    pub source: String,
    /// Time of the observation.
    pub at: Time,
}

/// Outcome of one pattern.
#[derive(Debug, Clone)]
pub struct PatternOutcome {
    pub language: Language,
    pub pattern: PatternId,
    pub outcome: PatternOutcomeKind,
    /// Id of the finding, or of the fix for a setback. It counts once per pattern and outcome.
    pub source: String,
}

/// Result of learning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LearningSummary {
    /// Number of new patterns.
    pub new: usize,
    /// Number of observations of known patterns.
    pub again: usize,
    /// Number of observations that were counted before.
    pub counted: usize,
    /// Number of observations of forgotten patterns.
    pub forgotten: usize,
    /// Number of observations from history that were skipped, because the language has as many digests as are kept.
    pub too_much: usize,
    /// Number of observations whose forms the gate refused.
    pub refused: usize,
    /// Number of evicted patterns.
    pub evicted: usize,
}

impl std::ops::AddAssign for LearningSummary {
    fn add_assign(&mut self, more: Self) {
        self.new += more.new;
        self.again += more.again;
        self.counted += more.counted;
        self.forgotten += more.forgotten;
        self.too_much += more.too_much;
        self.refused += more.refused;
        self.evicted += more.evicted;
    }
}

/// Result of merging patterns from another machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MergeSummary {
    pub new: usize,
    /// Number of known patterns that gained information.
    pub more: usize,
    pub unchanged: usize,
    pub forgotten: usize,
    pub evicted: usize,
}

/// Change to one language's file while the lock is held.
pub(super) struct LanguageUpdate<'a> {
    pub document: KnowledgeFile,
    pub language: Language,
    /// Origin of this machine.
    pub origin: &'a str,
    pub now: Time,
    pub lines: Vec<event_log::PatternEvent>,
    pub is_changed: bool,
}

impl LanguageUpdate<'_> {
    fn find_builtin(&self, id: &PatternId) -> Option<&'static Pattern> {
        builtin_patterns::patterns(self.language).iter().find(|pattern| pattern.id == *id)
    }

    pub fn is_known(&self, id: &PatternId) -> bool {
        self.document.patterns.contains_key(id)
            || self.document.forgotten.contains_key(id)
            || self.find_builtin(id).is_some()
    }

    /// Returns the stored pattern. A curated pattern is stored without its curated count, which is added at each
    /// read.
    pub fn entry(&mut self, id: &PatternId) -> Option<&mut Pattern> {
        if self.document.forgotten.contains_key(id) {
            return None;
        }
        if !self.document.patterns.contains_key(id)
            && let Some(curated) = self.find_builtin(id)
        {
            self.document.patterns.insert(id.clone(), Pattern { counts: BTreeMap::new(), ..curated.clone() });
        }
        self.document.patterns.get_mut(id)
    }

    /// Logs an event of a pattern and marks the file as changed.
    pub fn log_event(&mut self, event: PatternEventKind, id: &PatternId, count: u32) {
        self.is_changed = true;
        let language = self.language.name();
        // One line covers repeated events of a pattern.
        match self.lines.last_mut().filter(|line| line.event == event && line.pattern == *id) {
            Some(line) => line.count = line.count.saturating_add(count),
            None => self.lines.push(event_log::PatternEvent {
                at: self.now,
                event,
                language: language.to_owned(),
                pattern: id.clone(),
                count,
            }),
        }
    }

    /// Returns true if this source says this about the pattern or kind for the first time. The digest is salted with
    /// this machine's id, so that it does not reveal which commits were seen.
    fn remember_source(&mut self, what: &str, source: &str, id: &str) -> bool {
        let digest = self.digest_salted([what, source, id]);
        self.document.remember_digest(digest)
    }

    fn digest_salted<const N: usize>(&self, parts: [&str; N]) -> u64 {
        let salted = [self.origin].into_iter().chain(parts).map(str::as_bytes);
        u64::from_str_radix(&content_hash(salted)[..16], 16).unwrap_or_default()
    }

    /// Changes this machine's count of a pattern.
    fn update_count(&mut self, id: &PatternId, change: impl FnOnce(&mut PatternCount)) {
        let origin = self.origin.to_owned();
        let Some(Pattern { counts, .. }) = self.entry(id) else { return };
        // Make room for this machine's count: the origin with the lowest frequency is removed.
        if counts.len() >= MAX_ORIGINS && !counts.contains_key(&origin) {
            let least = counts.iter().min_by_key(|(_, count)| count.frequency).map(|(name, _)| name.clone());
            least.map(|name| counts.remove(&name));
        }
        change(counts.entry(origin).or_default());
    }

    /// Counts an observation, or creates a pattern for it, and updates `learned`.
    pub fn learn(&mut self, observation: &PatternObservation, learned: &mut LearningSummary) {
        let name = self.language.name();
        let (broken, fixed) = (observation.broken.to_string(), observation.fixed.to_string());
        let PatternObservation { stance, edit, kind, evidence, at, .. } = *observation;
        // A wrong clock must not make a pattern recent forever; imports apply the same rule.
        let at = at.min(self.now);
        let id = stance.pattern_id(name, kind, &broken, &fixed);
        if self.document.forgotten.contains_key(&id) {
            learned.forgotten += 1;
            return;
        }
        // History can be read repeatedly. If a new digest replaced an old one, the old edit would count again.
        let is_too_much = evidence == PatternEvidence::History && self.document.is_full();
        if is_too_much && !self.document.has_counted(self.digest_salted(["seen", &observation.source, id.as_str()])) {
            learned.too_much += 1;
            return;
        }
        if !self.remember_source("seen", &observation.source, id.as_str()) {
            // A sighting counts once, but its evidence can become stronger.
            if let Some(known) = self.entry(&id) {
                let better = rank::stronger_evidence(known.evidence, evidence);
                self.is_changed |= std::mem::replace(&mut known.evidence, better) != better;
            }
            learned.counted += 1;
            return;
        }
        let event = match self.entry(&id) {
            Some(known) => {
                known.record_sighting(at);
                known.add_related_kind(kind);
                known.evidence = rank::stronger_evidence(known.evidence, evidence);
                PatternEventKind::Seen
            }
            None => {
                let PatternObservation { broken, fixed, .. } = observation;
                let pattern = Pattern {
                    evidence,
                    first_seen: at,
                    last_seen: at,
                    ..Pattern::from_forms(name, stance, edit, kind, broken, fixed)
                };
                self.document.patterns.insert(id.clone(), pattern);
                PatternEventKind::Learned
            }
        };
        self.update_count(&id, |count| count.frequency = count.frequency.saturating_add(1));
        *(if event == PatternEventKind::Learned { &mut learned.new } else { &mut learned.again }) += 1;
        self.log_event(event, &id, 1);
        if event == PatternEventKind::Seen && stance == PatternStance::FalseAlarm {
            self.count_success(&id);
        }
    }

    /// Counts an outcome and returns true if it is new and the pattern is known.
    pub fn record_outcome(&mut self, happened: &PatternOutcome) -> bool {
        let PatternOutcome { pattern: id, outcome, source, .. } = happened;
        if self.entry(id).is_none() || !self.remember_source(outcome.word(), source, id.as_str()) {
            return false;
        }
        match outcome {
            PatternOutcomeKind::Success => self.count_success(id),
            PatternOutcomeKind::Failure => self.count_failure(id),
            PatternOutcomeKind::Setback => self.count_setback(id),
        }
        true
    }

    /// Counts a verdict by kind and returns true if it is new. The caller has asked the gate.
    pub fn record_verdict(&mut self, judged: &KindVerdict) -> bool {
        let is_new = self.remember_source(judged.verdict.word(), &judged.source, judged.kind.word());
        if is_new {
            let file = self.digest_salted([&judged.file]) as u32;
            self.document.kinds.entry(judged.kind).or_default().record_verdict(judged.verdict, file, self.now);
            self.is_changed = true;
        }
        is_new
    }

    fn count_success(&mut self, id: &PatternId) {
        self.update_month(id, |month| month.successes = month.successes.saturating_add(1));
        self.update_count(id, |count| count.successes = count.successes.saturating_add(1));
        self.log_event(PatternEventKind::Succeeded, id, 1);
    }

    fn count_failure(&mut self, id: &PatternId) {
        self.update_month(id, |month| month.failures = month.failures.saturating_add(1));
        self.update_count(id, |count| count.failures = count.failures.saturating_add(1));
        self.log_event(PatternEventKind::Failed, id, 1);
    }

    /// Counts a fix that came to nothing. It says little about the pattern: it lowers its confidence (see
    /// [`rank::assess_pattern`]) and is no outcome of a month.
    fn count_setback(&mut self, id: &PatternId) {
        if let Some(pattern) = self.entry(id) {
            pattern.setbacks = pattern.setbacks.saturating_add(1);
        }
        self.log_event(PatternEventKind::SetBack, id, 1);
    }

    /// Changes the outcomes of a pattern in the current month.
    fn update_month(&mut self, id: &PatternId, change: impl FnOnce(&mut MonthlyOutcomes)) {
        let month = self.now.strftime("%Y-%m").to_string();
        let Some(Pattern { months, .. }) = self.entry(id) else { return };
        change(months.entry(month).or_default());
        while months.len() > MAX_MONTHS {
            months.pop_first();
        }
    }

    /// Merges a pattern from another machine and updates `merged`.
    pub fn merge(&mut self, theirs: &Pattern, merged: &mut MergeSummary) {
        let id = &theirs.id;
        if self.document.forgotten.contains_key(id) {
            merged.forgotten += 1;
            return;
        }
        // This machine knows its own counts better than any file.
        let mut theirs = theirs.clone();
        if theirs.counts.remove(self.origin).is_some() && theirs.counts.is_empty() {
            merged.unchanged += 1;
            return;
        }
        let was_there = self.document.patterns.contains_key(id);
        match self.entry(id) {
            Some(known) => {
                let before = known.clone();
                known.merge(&theirs);
                if *known == before {
                    merged.unchanged += 1;
                    return;
                }
                *(if was_there { &mut merged.more } else { &mut merged.new }) += 1;
                self.log_event(PatternEventKind::Imported, id, 1);
            }
            None => {
                self.document.patterns.insert(id.clone(), theirs);
                merged.new += 1;
                self.log_event(PatternEventKind::Imported, id, 1);
            }
        }
    }

    /// Removes stored patterns that add nothing to the curated ones, and patterns beyond the limit. Returns the
    /// number of evicted patterns.
    pub fn evict_surplus(&mut self) -> usize {
        let says_nothing = |pattern: &Pattern| {
            pattern.origin == PatternOrigin::Base
                && pattern.counts.is_empty()
                && !pattern.muted
                && pattern.last_matched.is_none()
                && pattern.setbacks == 0
        };
        self.document.patterns.retain(|_, pattern| !says_nothing(pattern));
        let base: BTreeSet<&PatternId> =
            builtin_patterns::patterns(self.language).iter().map(|pattern| &pattern.id).collect();
        let room =
            MAX_PATTERNS_PER_LANGUAGE - base.iter().filter(|id| !self.document.forgotten.contains_key(id)).count();
        for pattern in self.document.patterns.values_mut() {
            pattern.set_local_count(self.origin);
        }
        let others = self.document.patterns.values().filter(|pattern| !base.contains(&pattern.id));
        let evicted: Vec<PatternId> =
            rank::select_evicted(others, self.now, room).into_iter().map(|pattern| pattern.id.clone()).collect();
        // A pattern that came and went in one change was never stored. Without this, a long history would drive out
        // all other log lines.
        let gone: HashSet<&PatternId> = evicted.iter().collect();
        self.lines.retain(|line| !gone.contains(&line.pattern) || self.document.is_from_file(&line.pattern));
        for id in &evicted {
            self.document.patterns.remove(id);
            if self.document.is_from_file(id) {
                self.log_event(PatternEventKind::Evicted, id, 1);
            }
        }
        evicted.len()
    }
}
