//! What was learned on this machine: `<home>/knowledge_cache/<language>_accumulated.json`.
//!
//! Invariants: one writer at a time, by a lock whose file is never unlinked; a file is the old or the new one, never half
//! of one; the same commit, fix or finding counts once, and of a history only as much as can be told apart; at most [`MOST_PATTERNS`] of a language, the least useful out
//! first (see [`super::rank::evicted`]); what was forgotten is neither learned nor merged again; a read makes nothing.
//!
//! | file | for |
//! |---|---|
//! | `<language>_accumulated.json` | patterns, tombstones of forgotten ones, counts of kinds, digests of what was counted; see `document` |
//! | `metrics.jsonl`, `metrics.1.jsonl` | what happened to patterns, see [`super::metrics`] |
//! | `origin` | the random id under which this machine counts |
//! | `lock` | held while something is changed |
//! | `*.damaged`, `*.damaged-N` | files that could not be read, set aside |
//! | `notices` | that they were, until a person is told |

mod change;

pub use change::{Happened, Learned, Merged, Observation, Outcome};

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use self::change::Change;
use super::document::{Document, MOST_BYTES, Unread, VERSION};
use super::error::KnowledgeError;
use super::kinds::{Judged, Tallies};
use super::matcher::is_wrong_import;
use super::metrics::{self, Event};
use super::pattern::{EditKind, Pattern};
use super::{base, gate, group};
use crate::domain::{Kind, MuteAction, PatternId, Time};
use crate::provider::builtin::language::Language;
use crate::store::StoreError;
use crate::store::files::{self, Existing};

/// Patterns of a language, those that came with revdeck among them. From the issue.
pub const MOST_PATTERNS: usize = 1000;
/// Damaged files of one name that are kept. Own.
const MOST_DAMAGED: u32 = 9;

/// The cache in its folder. Opening makes nothing.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// What is known of a language.
#[derive(Debug, Default)]
pub struct Known {
    pub patterns: Vec<Pattern>,
    pub kinds: Tallies,
    /// What a person does not want to have, and since when.
    pub forgotten: BTreeMap<PatternId, Time>,
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
        Self { folder: folder.into() }
    }

    /// What had to be set aside since this was asked last, by whatever process, a line each: for whoever has a person to tell.
    pub fn notices(&self) -> Vec<String> {
        let path = self.folder.join(NOTICES_FILE);
        if !path.exists() {
            return Vec::new();
        }
        let take = || -> Result<Vec<String>, KnowledgeError> {
            let _held = self.lock()?;
            let lines = self.untold()?;
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            Ok(lines)
        };
        take().unwrap_or_else(|error| vec![error.to_string()])
    }

    fn untold(&self) -> Result<Vec<String>, KnowledgeError> {
        let text = files::read(&self.folder.join(NOTICES_FILE))?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
    }

    /// Keeps a line for [`Self::notices`]. The caller holds the lock.
    fn tell_later(&self, line: String) -> Result<(), KnowledgeError> {
        let mut lines = self.untold()?;
        lines.push(line);
        let older = lines.len().saturating_sub(MOST_DAMAGED as usize);
        let text = lines[older..].join("\n") + "\n";
        Ok(files::write_atomically(&self.folder.join(NOTICES_FILE), text.as_bytes(), Existing::Replace)?)
    }

    /// The patterns of a language, see [`Self::known`].
    pub fn patterns(&self, language: Language) -> Result<Vec<Pattern>, KnowledgeError> {
        self.known(language).map(|known| known.patterns)
    }

    /// What is known of a language. The patterns are in the order of their ids: the base with what is known of it here, what
    /// was learned and what was imported. Muted ones are among them, forgotten ones are not.
    pub fn known(&self, language: Language) -> Result<Known, KnowledgeError> {
        let document = self.read(language)?;
        let mut all = document.patterns;
        for curated in base::patterns(language) {
            if !document.forgotten.contains_key(&curated.id) {
                let mut merged = curated.clone();
                if let Some(known) = all.remove(&curated.id) {
                    merged.absorb(&known);
                    // The curated count is no machine's and takes nobody's place.
                    let mut counts = known.counts;
                    counts.append(&mut curated.counts.clone());
                    merged = Pattern {
                        counts,
                        last_matched: known.last_matched,
                        months: known.months,
                        muted: known.muted,
                        ..merged
                    };
                }
                all.insert(merged.id.clone(), merged);
            }
        }
        if let Some(origin) = self.origin()? {
            all.values_mut().for_each(|pattern| pattern.find_here(&origin));
        }
        group::regroup(&mut all);
        Ok(Known { patterns: all.into_values().collect(), kinds: document.kinds, forgotten: document.forgotten })
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

    /// Counts by kind what was decided about findings, each once for a verdict; how many were new.
    pub fn judge(&self, judged: &[Judged], now: Time) -> Result<usize, KnowledgeError> {
        let admitted: Vec<&Judged> =
            judged.iter().filter(|judged| gate::admit_kind(judged.kind.word()).is_ok()).collect();
        let mut counted = 0;
        self.by_language(
            &admitted,
            |judged| judged.language,
            now,
            |change, judged| {
                counted += usize::from(change.judge(judged));
            },
        )?;
        Ok(counted)
    }

    /// Begins to count a kind anew; what was counted is not counted again. Whether anything was.
    pub fn forget_kind(&self, language: Language, kind: Kind, now: Time) -> Result<bool, KnowledgeError> {
        self.change_kinds(language, now, |kinds| kinds.remove(&kind).is_some())
    }

    /// Keeps a kind that is counted from being lowered, or has it lowered again when it is always dismissed. Whether it was
    /// otherwise.
    pub fn mute_kind(
        &self,
        language: Language,
        kind: Kind,
        action: MuteAction,
        now: Time,
    ) -> Result<bool, KnowledgeError> {
        let muted = action == MuteAction::Mute;
        self.change_kinds(language, now, |kinds| {
            kinds.get_mut(&kind).is_some_and(|tally| std::mem::replace(&mut tally.muted, muted) != muted)
        })
    }

    fn change_kinds(
        &self,
        language: Language,
        now: Time,
        work: impl FnOnce(&mut Tallies) -> bool,
    ) -> Result<bool, KnowledgeError> {
        let mut is_changed = false;
        let _held = self.lock()?;
        self.change(language, now, |change| {
            is_changed = work(&mut change.document.kinds);
            change.is_changed |= is_changed;
        })?;
        Ok(is_changed)
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
            let ours = [ORIGIN_FILE, NOTICES_FILE].contains(&&*name)
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

    /// The language's file. A damaged one is set aside, and a person is told.
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
        tracing::warn!("{line}");
        self.tell_later(line)
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
const NOTICES_FILE: &str = "notices";

fn newer(path: PathBuf, found: u32) -> KnowledgeError {
    StoreError::Newer { path, found, known: VERSION }.into()
}

/// Whether a text is the id of a machine that counts.
pub(super) fn is_origin(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.strip_prefix("m_").is_some_and(|rest| rest.len() == 26 && rest.bytes().all(is_plain))
}

#[cfg(test)]
mod tests;
