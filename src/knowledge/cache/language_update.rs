//! What learning, outcomes and imports do to one language's patterns. Nothing here reads or writes a file.

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
use crate::reviewers::analyzer::language::Language;

/// Months of which outcomes are kept. Own: two years.
pub(super) const MAX_MONTHS: usize = 24;

word_enum!(
    /// What became of a finding that was raised because of a pattern.
    PatternOutcomeKind {
        /// It was addressed; of a false alarm: dismissed.
        Success = "success",
        /// It was dismissed; of a false alarm: addressed.
        Failure = "failure",
    }
);

/// Something that teaches a pattern.
#[derive(Debug, Clone)]
pub struct PatternObservation {
    pub language: Language,
    pub stance: PatternStance,
    pub broken: Form,
    /// Empty for a false alarm.
    pub fixed: Form,
    pub edit: EditKind,
    /// Of the finding, or what one would be raised as.
    pub kind: Kind,
    pub evidence: PatternEvidence,
    /// The commit, fix or finding that taught it, by its id. It counts once for a pattern; only a salted digest is kept.
    pub source: String,
    /// When that was.
    pub at: Time,
}

/// An outcome of a pattern.
#[derive(Debug, Clone)]
pub struct PatternOutcome {
    pub language: Language,
    pub pattern: PatternId,
    pub outcome: PatternOutcomeKind,
    /// The finding, by its id. It counts once for a pattern and an outcome.
    pub source: String,
}

/// What came of learning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LearningSummary {
    /// Patterns that were not known.
    pub new: usize,
    /// Observations of known ones.
    pub again: usize,
    /// Observations that had been counted before.
    pub counted: usize,
    /// Of patterns that somebody does not want to have.
    pub forgotten: usize,
    /// Of a history, when as many as are told apart were counted of the language.
    pub too_much: usize,
    /// Of forms that the gate does not let through.
    pub refused: usize,
    /// Patterns that had to go.
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

/// What came of merging patterns from elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MergeSummary {
    pub new: usize,
    /// Known ones of which more is known now.
    pub more: usize,
    pub unchanged: usize,
    pub forgotten: usize,
    pub evicted: usize,
}

/// One language's file while the lock is held.
pub(super) struct LanguageUpdate<'a> {
    pub document: KnowledgeFile,
    pub language: Language,
    /// Of this machine.
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

    /// The pattern as it is kept here; one of the base begins without its curated count, which is added at each read.
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

    /// Something happened to a pattern: the file is to be written.
    pub fn log_event(&mut self, event: PatternEventKind, id: &PatternId, count: u32) {
        self.is_changed = true;
        let language = self.language.name();
        // One line says that it was seen a thousand times.
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

    /// Whether this is the first time that a source says this of a pattern or a kind. The digest is salted with this
    /// machine's id: it does not tell others which commits were seen.
    fn remember_source(&mut self, what: &str, source: &str, id: &str) -> bool {
        let digest = self.digest_salted([what, source, id]);
        self.document.remember_digest(digest)
    }

    fn digest_salted<const N: usize>(&self, parts: [&str; N]) -> u64 {
        let salted = [self.origin].into_iter().chain(parts).map(str::as_bytes);
        u64::from_str_radix(&content_hash(salted)[..16], 16).unwrap_or_default()
    }

    /// Changes what this machine has counted of a pattern.
    fn update_count(&mut self, id: &PatternId, change: impl FnOnce(&mut PatternCount)) {
        let origin = self.origin.to_owned();
        let Some(Pattern { counts, .. }) = self.entry(id) else { return };
        // Room is made for this machine's own count: whoever counted least goes.
        if counts.len() >= MAX_ORIGINS && !counts.contains_key(&origin) {
            let least = counts.iter().min_by_key(|(_, count)| count.frequency).map(|(name, _)| name.clone());
            least.map(|name| counts.remove(&name));
        }
        change(counts.entry(origin).or_default());
    }

    pub fn learn(&mut self, observation: &PatternObservation, learned: &mut LearningSummary) {
        let name = self.language.name();
        let (broken, fixed) = (observation.broken.to_string(), observation.fixed.to_string());
        let PatternObservation { stance, edit, kind, evidence, at, .. } = *observation;
        // As of an import: a clock that goes wrong must not make a pattern recent for ever.
        let at = at.min(self.now);
        let id = stance.pattern_id(name, kind, &broken, &fixed);
        if self.document.forgotten.contains_key(&id) {
            learned.forgotten += 1;
            return;
        }
        // History can be read again and again: an edit that drove out the digest of another one would have it count again.
        let is_too_much = evidence == PatternEvidence::History && self.document.is_full();
        if is_too_much && !self.document.has_counted(self.digest_salted(["seen", &observation.source, id.as_str()])) {
            learned.too_much += 1;
            return;
        }
        if !self.remember_source("seen", &observation.source, id.as_str()) {
            // That it was seen counts once, but what is known of it can get better.
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
            self.count_outcome(&id, PatternOutcomeKind::Success);
        }
    }

    pub fn record_outcome(&mut self, happened: &PatternOutcome) -> bool {
        let PatternOutcome { pattern: id, outcome, source, .. } = happened;
        if self.entry(id).is_none() || !self.remember_source(outcome.word(), source, id.as_str()) {
            return false;
        }
        self.count_outcome(id, *outcome);
        true
    }

    /// Counts a verdict by its kind; whether it is new. The caller has asked the gate.
    pub fn record_verdict(&mut self, judged: &KindVerdict) -> bool {
        let is_new = self.remember_source(judged.verdict.word(), &judged.source, judged.kind.word());
        if is_new {
            let file = self.digest_salted([&judged.file]) as u32;
            self.document.kinds.entry(judged.kind).or_default().record_verdict(judged.verdict, file, self.now);
            self.is_changed = true;
        }
        is_new
    }

    /// Counts what a finding came to.
    fn count_outcome(&mut self, id: &PatternId, outcome: PatternOutcomeKind) {
        let month = self.now.strftime("%Y-%m").to_string();
        if let Some(pattern) = self.entry(id) {
            let month: &mut MonthlyOutcomes = pattern.months.entry(month).or_default();
            match outcome {
                PatternOutcomeKind::Success => month.successes = month.successes.saturating_add(1),
                PatternOutcomeKind::Failure => month.failures = month.failures.saturating_add(1),
            }
            while pattern.months.len() > MAX_MONTHS {
                pattern.months.pop_first();
            }
        }
        self.update_count(id, |count| match outcome {
            PatternOutcomeKind::Success => count.successes = count.successes.saturating_add(1),
            PatternOutcomeKind::Failure => count.failures = count.failures.saturating_add(1),
        });
        let event = match outcome {
            PatternOutcomeKind::Success => PatternEventKind::Succeeded,
            PatternOutcomeKind::Failure => PatternEventKind::Failed,
        };
        self.log_event(event, id, 1);
    }

    pub fn merge(&mut self, theirs: &Pattern, merged: &mut MergeSummary) {
        let id = &theirs.id;
        if self.document.forgotten.contains_key(id) {
            merged.forgotten += 1;
            return;
        }
        // What this machine has seen it knows better than any file.
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

    /// Takes out what says nothing more than the base does and what there is no room for.
    pub fn evict_surplus(&mut self) -> usize {
        let says_nothing = |pattern: &Pattern| {
            pattern.origin == PatternOrigin::Base
                && pattern.counts.is_empty()
                && !pattern.muted
                && pattern.last_matched.is_none()
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
        // What came and went in one change was never there: a long history would drive all other lines out.
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
