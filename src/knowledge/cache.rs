//! What was learned on this machine: `<home>/knowledge_cache/<language>_accumulated.json`.
//!
//! Invariants: one writer at a time, by a lock whose file is never unlinked; a file is the old or the new one, never half
//! of one; the same commit, fix or finding counts once; at most [`MOST_PATTERNS`] of a language, the least useful out
//! first (see [`rank::evicted`]); what was forgotten is neither learned nor merged again; a read makes nothing.
//!
//! | file | for |
//! |---|---|
//! | `<language>_accumulated.json` | patterns, tombstones of forgotten ones, digests of what was counted; see `document` |
//! | `metrics.jsonl`, `metrics.1.jsonl` | what happened to patterns, see [`super::metrics`] |
//! | `origin` | the random id under which this machine counts |
//! | `lock` | held while something is changed |
//! | `*.damaged`, `*.damaged-N` | files that could not be read, set aside |

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::document::{Document, MOST_BYTES, Unread, VERSION};
use super::error::KnowledgeError;
use super::form::Form;
use super::matcher::is_wrong_import;
use super::metrics::{self, Event};
use super::pattern::{Count, EditKind, Evidence, MAX_ORIGINS, Month, Origin, Pattern, Stance};
use super::{base, gate, group, rank, words};
use crate::domain::{Kind, MuteAction, PatternId, Time, content_hash, word_enum};
use crate::provider::builtin::language::Language;
use crate::store::StoreError;
use crate::store::files::{self, Existing};

/// Patterns of a language that are kept. From the issue.
pub const MOST_PATTERNS: usize = 1000;
/// Months of which outcomes are kept. Own: two years.
const MOST_MONTHS: usize = 24;
/// Damaged files of one name that are kept. Own.
const MOST_DAMAGED: u32 = 9;

word_enum!(
    /// What became of a finding that was raised because of a pattern.
    Outcome {
        /// It was addressed; of a false alarm: dismissed.
        Success = "success",
        /// It was dismissed; of a false alarm: addressed.
        Failure = "failure",
    }
);

/// Something that teaches a pattern.
#[derive(Debug, Clone)]
pub struct Observation {
    pub language: Language,
    pub stance: Stance,
    pub broken: Form,
    /// Empty for a false alarm.
    pub fixed: Form,
    pub edit: EditKind,
    /// Of the finding, or what one would be raised as.
    pub kind: Kind,
    pub evidence: Evidence,
    /// The commit, fix or finding that taught it, by its id. It counts once for a pattern; only a salted digest is kept.
    pub source: String,
    /// When that was.
    pub at: Time,
}

/// An outcome of a pattern.
#[derive(Debug, Clone)]
pub struct Happened {
    pub language: Language,
    pub pattern: PatternId,
    pub outcome: Outcome,
    /// The finding, by its id. It counts once for a pattern and an outcome.
    pub source: String,
}

/// What came of learning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Learned {
    /// Patterns that were not known.
    pub new: usize,
    /// Observations of known ones.
    pub again: usize,
    /// Observations that had been counted before.
    pub counted: usize,
    /// Of patterns that somebody does not want to have.
    pub forgotten: usize,
    /// Of forms that the gate does not let through.
    pub refused: usize,
    /// Patterns that had to go.
    pub evicted: usize,
}

impl std::ops::AddAssign for Learned {
    fn add_assign(&mut self, more: Self) {
        self.new += more.new;
        self.again += more.again;
        self.counted += more.counted;
        self.forgotten += more.forgotten;
        self.refused += more.refused;
        self.evicted += more.evicted;
    }
}

/// What came of merging patterns from elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Merged {
    pub new: usize,
    /// Known ones of which more is known now.
    pub more: usize,
    pub unchanged: usize,
    pub forgotten: usize,
    /// They say the opposite of what is known here.
    pub contradicted: usize,
    pub evicted: usize,
}

/// The cache in its folder. Opening makes nothing.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    /// What was set aside.
    notices: Mutex<Vec<String>>,
}

/// One language's file while the lock is held.
struct Change<'a> {
    document: Document,
    language: Language,
    /// Of this machine.
    origin: &'a str,
    now: Time,
    lines: Vec<metrics::Line>,
    is_changed: bool,
}

/// The lock; given up on drop. The file is never unlinked.
struct Held {
    file: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Of declarations only those are kept that may become hints: the others would fill the store.
fn is_of_use(observation: &Observation) -> bool {
    observation.edit != EditKind::WrongDeclaration
        || is_wrong_import(observation.language.name(), &observation.broken, &observation.fixed)
}

impl Cache {
    pub fn open(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), notices: Mutex::default() }
    }

    /// What had to be set aside since this was asked last, a line each for a person.
    pub fn notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// The patterns of a language, by id: the base with what is known of it here, what was learned and what was imported.
    /// Muted ones are among them, forgotten ones are not.
    pub fn patterns(&self, language: Language) -> Result<Vec<Pattern>, KnowledgeError> {
        let document = self.read(language)?;
        let mut all = document.patterns;
        for curated in base::patterns(language) {
            if !document.forgotten.contains_key(&curated.id) {
                let mut merged = curated.clone();
                if let Some(known) = all.remove(&curated.id) {
                    merged.absorb(&known);
                    merged = Pattern {
                        last_matched: known.last_matched,
                        months: known.months,
                        muted: known.muted,
                        ..merged
                    };
                }
                all.insert(merged.id.clone(), merged);
            }
        }
        group::regroup(&mut all);
        Ok(all.into_values().collect())
    }

    /// What a person does not want to have of a language, and since when.
    pub fn forgotten(&self, language: Language) -> Result<BTreeMap<PatternId, Time>, KnowledgeError> {
        Ok(self.read(language)?.forgotten)
    }

    /// Counts observations, and makes patterns of those that are new.
    pub fn learn(&self, observations: &[Observation], now: Time) -> Result<Learned, KnowledgeError> {
        let mut learned = Learned::default();
        let mut admitted = Vec::with_capacity(observations.len());
        for observation in observations.iter().filter(|observation| is_of_use(observation)) {
            match gate::admit_pair(observation.language.name(), &observation.broken, &observation.fixed) {
                Ok(()) => admitted.push(observation),
                Err(_) => learned.refused += 1,
            }
        }
        let evicted = self.by_language(
            &admitted,
            |observation| observation.language,
            now,
            |change, observation| {
                change.learn(observation, &mut learned);
            },
        )?;
        Ok(Learned { evicted, ..learned })
    }

    /// Counts what became of findings, each once; how many were new.
    pub fn record_outcomes(&self, outcomes: &[Happened], now: Time) -> Result<usize, KnowledgeError> {
        let mut counted = 0;
        self.by_language(
            outcomes,
            |happened| happened.language,
            now,
            |change, happened| {
                counted += usize::from(change.record(happened));
            },
        )?;
        Ok(counted)
    }

    /// Code matched these patterns just now.
    pub fn matched(&self, language: Language, patterns: &[PatternId], now: Time) -> Result<(), KnowledgeError> {
        self.by_language(
            patterns,
            |_| language,
            now,
            |change, id| {
                if let Some(pattern) = change.entry(id) {
                    pattern.last_matched = pattern.last_matched.max(Some(now));
                    change.note(Event::Matched, id, 1);
                }
            },
        )
        .map(drop)
    }

    /// Takes patterns out for good: they are neither learned nor merged again. How many were there.
    ///
    /// # Errors
    /// [`KnowledgeError::NoPattern`] with the first that is not known; then none is forgotten.
    pub fn forget(&self, language: Language, patterns: &[PatternId], now: Time) -> Result<usize, KnowledgeError> {
        let mut gone = 0;
        self.each_known(language, patterns, now, |change, id| {
            if change.document.forgotten.insert(id.clone(), now).is_none() {
                change.document.patterns.remove(id);
                change.note(Event::Forgotten, id, 1);
                gone += 1;
            }
        })?;
        Ok(gone)
    }

    /// Keeps patterns from being used, or has them used again. How many were not so already.
    ///
    /// # Errors
    /// As [`Self::forget`].
    pub fn mute(
        &self,
        language: Language,
        patterns: &[PatternId],
        action: MuteAction,
        now: Time,
    ) -> Result<usize, KnowledgeError> {
        let (muted, event) = match action {
            MuteAction::Mute => (true, Event::Muted),
            MuteAction::Unmute => (false, Event::Unmuted),
        };
        let mut changed = 0;
        self.each_known(language, patterns, now, |change, id| {
            let Some(pattern) = change.entry(id) else { return };
            if std::mem::replace(&mut pattern.muted, muted) != muted {
                change.note(event, id, 1);
                changed += 1;
            }
        })?;
        Ok(changed)
    }

    /// Takes in patterns from elsewhere that were checked, see [`super::exchange`].
    pub(super) fn merge(&self, patterns: &[(Language, Pattern)], now: Time) -> Result<Merged, KnowledgeError> {
        let mut merged = Merged::default();
        let evicted = self.by_language(
            patterns,
            |(language, _)| *language,
            now,
            |change, (_, pattern)| {
                change.merge(pattern, &mut merged);
            },
        )?;
        Ok(Merged { evicted, ..merged })
    }

    /// Removes everything that was learned, counted, imported, muted and forgotten, and this machine's id. What is left
    /// is the empty lock file, and what is none of revdeck's.
    pub fn wipe(&self) -> Result<usize, KnowledgeError> {
        if !self.folder.is_dir() {
            return Ok(0);
        }
        let _held = self.lock()?;
        let fail = StoreError::io("read the folder", &self.folder);
        let mut removed = 0;
        for entry in fs::read_dir(&self.folder).map_err(fail)?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let ours = name == ORIGIN_FILE
                || name.starts_with("metrics.")
                || name.contains(SUFFIX)
                || name.starts_with(files::TEMPORARY);
            if ours {
                let path = entry.path();
                fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// The id under which this machine counts; `None` before anything was learned.
    pub fn origin(&self) -> Result<Option<String>, KnowledgeError> {
        let text = files::read(&self.folder.join(ORIGIN_FILE))?.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.map(|text| text.trim_end().to_owned()).filter(|id| is_origin(id)))
    }

    fn path(&self, language: Language) -> PathBuf {
        self.folder.join(format!("{}{SUFFIX}", language.name()))
    }

    /// The language's file. A damaged one is set aside, and said.
    fn read(&self, language: Language) -> Result<Document, KnowledgeError> {
        match self.parse(language)? {
            Ok(document) => Ok(document),
            Err(Unread::Newer { found }) => Err(newer(self.path(language), found)),
            Err(Unread::Damaged) => {
                let _held = self.lock()?;
                self.read_held(language)
            }
        }
    }

    /// As [`Self::read`], for whoever holds the lock.
    fn read_held(&self, language: Language) -> Result<Document, KnowledgeError> {
        match self.parse(language)? {
            Ok(document) => Ok(document),
            Err(Unread::Newer { found }) => Err(newer(self.path(language), found)),
            Err(Unread::Damaged) => {
                self.set_aside(&self.path(language))?;
                Ok(Document::default())
            }
        }
    }

    fn parse(&self, language: Language) -> Result<Result<Document, Unread>, KnowledgeError> {
        let path = self.path(language);
        if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > MOST_BYTES) {
            return Ok(Err(Unread::Damaged));
        }
        Ok(files::read(&path)?.map_or(Ok(Document::default()), |bytes| Document::parse(language.name(), &bytes)))
    }

    fn set_aside(&self, path: &Path) -> Result<(), KnowledgeError> {
        let aside = |n: u32| {
            let mut name = path.as_os_str().to_owned();
            name.push(if n == 1 { ".damaged".to_owned() } else { format!(".damaged-{n}") });
            PathBuf::from(name)
        };
        let free = (1..MOST_DAMAGED).map(aside).find(|path| !path.exists()).unwrap_or_else(|| aside(MOST_DAMAGED));
        fs::rename(path, &free).map_err(|source| KnowledgeError::Damaged { path: path.to_owned(), source })?;
        let line =
            format!("{} was damaged and is now {}: its patterns are learned anew", path.display(), free.display());
        self.notices.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(line);
        Ok(())
    }

    fn lock(&self) -> Result<Held, KnowledgeError> {
        files::make_folder(&self.folder)?;
        let path = self.folder.join("lock");
        let file = files::open_lock_file(&path)?;
        file.lock().map_err(StoreError::io("lock", &path))?;
        Ok(Held { file })
    }

    /// This machine's id; made when there is none. The caller holds the lock.
    fn own_origin(&self) -> Result<String, KnowledgeError> {
        if let Some(origin) = self.origin()? {
            return Ok(origin);
        }
        let origin = format!("m_{}", ulid::Ulid::generate().to_string().to_lowercase());
        files::write_atomically(&self.folder.join(ORIGIN_FILE), format!("{origin}\n").as_bytes(), Existing::Replace)?;
        Ok(origin)
    }

    /// Changes a language's file; the caller holds the lock. How many patterns had to go.
    fn change(
        &self,
        language: Language,
        now: Time,
        work: impl FnOnce(&mut Change<'_>),
    ) -> Result<usize, KnowledgeError> {
        let document = self.read_held(language)?;
        let origin = self.own_origin()?;
        let mut change = Change { document, language, origin: &origin, now, lines: Vec::new(), is_changed: false };
        work(&mut change);
        if !change.is_changed {
            return Ok(0);
        }
        let evicted = change.tidy();
        let bytes = change
            .document
            .encode(language.name())
            .map_err(|source| StoreError::Encode { what: "the knowledge of a language", source })?;
        self.sweep();
        files::write_atomically(&self.path(language), &bytes, Existing::Replace)?;
        // What is learned is stored: that the figures are not must not make it look otherwise.
        if let Err(error) = metrics::append(&self.folder, &change.lines) {
            tracing::warn!("knowledge: {error}");
        }
        Ok(evicted)
    }

    /// Removes what a killed process left half-written. The caller holds the lock: nobody is writing now.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(files::TEMPORARY) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Changes the files of all languages that something is about. How many patterns had to go.
    fn by_language<T>(
        &self,
        items: &[T],
        language: impl Fn(&T) -> Language,
        now: Time,
        mut each: impl FnMut(&mut Change<'_>, &T),
    ) -> Result<usize, KnowledgeError> {
        let mut parts: BTreeMap<&str, Vec<&T>> = BTreeMap::new();
        for item in items {
            parts.entry(language(item).name()).or_default().push(item);
        }
        if parts.is_empty() {
            return Ok(0);
        }
        let _held = self.lock()?;
        let mut evicted = 0;
        for items in parts.values() {
            evicted +=
                self.change(language(items[0]), now, |change| items.iter().for_each(|item| each(change, item)))?;
        }
        Ok(evicted)
    }

    /// Does something to patterns that are all known.
    fn each_known(
        &self,
        language: Language,
        patterns: &[PatternId],
        now: Time,
        mut each: impl FnMut(&mut Change<'_>, &PatternId),
    ) -> Result<(), KnowledgeError> {
        let mut missing = None;
        let _held = self.lock()?;
        self.change(language, now, |change| {
            missing = patterns.iter().find(|id| !change.is_known(id)).cloned();
            if missing.is_none() {
                patterns.iter().for_each(|id| each(change, id));
            }
        })?;
        missing.map_or(Ok(()), |id| Err(KnowledgeError::NoPattern { id: id.into() }))
    }
}

const SUFFIX: &str = "_accumulated.json";
const ORIGIN_FILE: &str = "origin";

fn newer(path: PathBuf, found: u32) -> KnowledgeError {
    StoreError::Newer { path, found, known: VERSION }.into()
}

/// Whether a text is the id of a machine that counts.
pub(super) fn is_origin(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.strip_prefix("m_").is_some_and(|rest| rest.len() == 26 && rest.bytes().all(is_plain))
}

impl Change<'_> {
    fn base(&self, id: &PatternId) -> Option<&'static Pattern> {
        base::patterns(self.language).iter().find(|pattern| pattern.id == *id)
    }

    fn is_known(&self, id: &PatternId) -> bool {
        self.document.patterns.contains_key(id) || self.document.forgotten.contains_key(id) || self.base(id).is_some()
    }

    /// The pattern as it is kept here; one of the base begins without its curated count, which is added at each read.
    fn entry(&mut self, id: &PatternId) -> Option<&mut Pattern> {
        if self.document.forgotten.contains_key(id) {
            return None;
        }
        if !self.document.patterns.contains_key(id)
            && let Some(curated) = self.base(id)
        {
            self.document.patterns.insert(id.clone(), Pattern { counts: BTreeMap::new(), ..curated.clone() });
        }
        self.document.patterns.get_mut(id)
    }

    /// Something happened to a pattern: the file is to be written.
    fn note(&mut self, event: Event, id: &PatternId, count: u32) {
        self.is_changed = true;
        let language = self.language.name();
        // One line says that it was seen a thousand times.
        match self.lines.last_mut().filter(|line| line.event == event && line.pattern == *id) {
            Some(line) => line.count = line.count.saturating_add(count),
            None => self.lines.push(metrics::Line {
                at: self.now,
                event,
                language: language.to_owned(),
                pattern: id.clone(),
                count,
            }),
        }
    }

    /// Whether this is the first time that a source says this of a pattern. The digest is salted with this machine's id:
    /// it does not tell others which commits were seen.
    fn is_first(&mut self, what: &str, source: &str, id: &PatternId) -> bool {
        let parts = [self.origin.as_bytes(), what.as_bytes(), source.as_bytes(), id.as_str().as_bytes()];
        let digest = u64::from_str_radix(&content_hash(parts)[..16], 16).unwrap_or_default();
        self.document.note(digest)
    }

    fn count(&mut self, id: &PatternId) -> Option<&mut Count> {
        let origin = self.origin.to_owned();
        let counts = &mut self.entry(id)?.counts;
        // Room is made for this machine's own count: whoever counted least goes.
        if counts.len() >= MAX_ORIGINS && !counts.contains_key(&origin) {
            let least = counts.iter().min_by_key(|(_, count)| count.frequency).map(|(name, _)| name.clone());
            least.map(|name| counts.remove(&name));
        }
        Some(counts.entry(origin).or_default())
    }

    fn learn(&mut self, observation: &Observation, learned: &mut Learned) {
        let name = self.language.name();
        let (broken, fixed) = (observation.broken.to_string(), observation.fixed.to_string());
        let id = PatternId::of(name, &broken, &fixed);
        if self.document.forgotten.contains_key(&id) {
            learned.forgotten += 1;
            return;
        }
        if !self.is_first("seen", &observation.source, &id) {
            learned.counted += 1;
            return;
        }
        let Observation { stance, edit, kind, evidence, at, .. } = *observation;
        let event = match self.entry(&id) {
            Some(known) if known.stance != stance => Event::Contradicted,
            Some(known) => {
                known.saw(at);
                known.relate(kind);
                known.evidence = rank::stronger(known.evidence, evidence);
                Event::Seen
            }
            None => {
                let (description, instruction) = (
                    words::description(stance, edit, kind, &observation.broken, &observation.fixed),
                    words::instruction(stance, edit, kind, &observation.broken, &observation.fixed),
                );
                let pattern = Pattern {
                    id: id.clone(),
                    language: name.to_owned(),
                    stance,
                    edit,
                    kind,
                    description,
                    broken,
                    fixed,
                    instruction,
                    evidence,
                    origin: Origin::Learned,
                    counts: BTreeMap::new(),
                    first_seen: at,
                    last_seen: at,
                    last_matched: None,
                    months: BTreeMap::new(),
                    related: Vec::new(),
                    group: None,
                    muted: false,
                };
                self.document.patterns.insert(id.clone(), pattern);
                Event::Learned
            }
        };
        if let Some(count) = self.count(&id) {
            match event {
                // The opposite was seen: for the one that is known this is a failure.
                Event::Contradicted => count.failures = count.failures.saturating_add(1),
                _ => count.frequency = count.frequency.saturating_add(1),
            }
        }
        *(if event == Event::Learned { &mut learned.new } else { &mut learned.again }) += 1;
        self.note(event, &id, 1);
    }

    fn record(&mut self, happened: &Happened) -> bool {
        let id = &happened.pattern;
        if self.entry(id).is_none() || !self.is_first(happened.outcome.word(), &happened.source, id) {
            return false;
        }
        let month = self.now.strftime("%Y-%m").to_string();
        if let Some(pattern) = self.entry(id) {
            let month: &mut Month = pattern.months.entry(month).or_default();
            match happened.outcome {
                Outcome::Success => month.successes = month.successes.saturating_add(1),
                Outcome::Failure => month.failures = month.failures.saturating_add(1),
            }
            while pattern.months.len() > MOST_MONTHS {
                pattern.months.pop_first();
            }
        }
        if let Some(count) = self.count(id) {
            match happened.outcome {
                Outcome::Success => count.successes = count.successes.saturating_add(1),
                Outcome::Failure => count.failures = count.failures.saturating_add(1),
            }
        }
        let event = match happened.outcome {
            Outcome::Success => Event::Succeeded,
            Outcome::Failure => Event::Failed,
        };
        self.note(event, id, 1);
        true
    }

    fn merge(&mut self, theirs: &Pattern, merged: &mut Merged) {
        let id = &theirs.id;
        if self.document.forgotten.contains_key(id) {
            merged.forgotten += 1;
            return;
        }
        let was_there = self.document.patterns.contains_key(id);
        match self.entry(id) {
            Some(known) if known.stance != theirs.stance => merged.contradicted += 1,
            Some(known) => {
                let before = known.clone();
                known.absorb(theirs);
                if *known == before {
                    merged.unchanged += 1;
                    return;
                }
                *(if was_there { &mut merged.more } else { &mut merged.new }) += 1;
                self.note(Event::Imported, id, 1);
            }
            None => {
                self.document.patterns.insert(id.clone(), theirs.clone());
                merged.new += 1;
                self.note(Event::Imported, id, 1);
            }
        }
    }

    /// Takes out what says nothing more than the base does and what there is no room for, and groups the rest.
    fn tidy(&mut self) -> usize {
        let says_nothing = |pattern: &Pattern| {
            pattern.origin == Origin::Base
                && pattern.counts.is_empty()
                && !pattern.muted
                && pattern.last_matched.is_none()
        };
        self.document.patterns.retain(|_, pattern| !says_nothing(pattern));
        let evicted: Vec<PatternId> = rank::evicted(self.document.patterns.values(), self.now, MOST_PATTERNS)
            .into_iter()
            .map(|pattern| pattern.id.clone())
            .collect();
        for id in &evicted {
            self.document.patterns.remove(id);
            self.note(Event::Evicted, id, 1);
        }
        group::regroup(&mut self.document.patterns);
        evicted.len()
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
