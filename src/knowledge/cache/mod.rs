//! Stores what was learned on this machine: `<home>/knowledge_cache/<language>_accumulated.json`.
//!
//! - One writer at a time, guarded by a lock whose file is never unlinked.
//! - Writes are atomic: a reader sees the old or the new file, never a part.
//! - The same commit, fix or finding counts once; from a history only as much as can be told apart by digests.
//! - At most [`MAX_PATTERNS_PER_LANGUAGE`] patterns per language; the least useful are removed first (see
//!   [`super::rank::select_evicted`]).
//! - A forgotten pattern is neither learned nor merged again.
//! - Reading creates no files.
//!
//! | file | content |
//! |---|---|
//! | `<language>_accumulated.json` | patterns, tombstones, tallies by kind, digests; see `knowledge_file` |
//! | `metrics.jsonl`, `metrics.1.jsonl` | events of patterns, see [`super::event_log`] |
//! | `origin` | random id under which this machine counts |
//! | `lock` | held during changes |
//! | `*.damaged`, `*.damaged-N` | unreadable files, set aside |
//! | `notices` | messages about such files, until a person has seen them |

mod language_update;

pub(crate) use language_update::{
    LearningSummary, MergeSummary, PatternObservation, PatternOutcome, PatternOutcomeKind,
};

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use self::language_update::LanguageUpdate;
use super::error::KnowledgeError;
use super::event_log::{self, PatternEventKind};
use super::kind_tallies::{KindTallies, KindVerdict};
use super::knowledge_file::{FORMAT_VERSION, KnowledgeFile, KnowledgeFileError, MAX_FILE_BYTES};
use super::matcher::is_wrong_import;
use super::pattern::{EditKind, Pattern};
use super::{builtin_patterns, clustering, privacy_gate};
use crate::domain::{Kind, MuteAction, PatternId, Time};
use crate::store::StoreError;
use crate::store::files::{self, ExistingPolicy};
use crate::syntax::language::Language;

/// Maximum number of patterns per language, including curated ones; a project requirement.
pub const MAX_PATTERNS_PER_LANGUAGE: usize = 1000;
/// Maximum number of damaged files kept under one name.
const MAX_DAMAGED_FILES: u32 = 9;

/// Knowledge cache in its folder. Opening creates no files.
#[derive(Debug)]
pub struct KnowledgeCache {
    folder: PathBuf,
}

/// Knowledge about one language.
#[derive(Debug, Default)]
pub struct LanguageKnowledge {
    pub patterns: Vec<Pattern>,
    pub kinds: KindTallies,
    /// Patterns that the user forgot, with the time.
    pub forgotten: BTreeMap<PatternId, Time>,
}

/// Lock on the cache, released on drop. The lock file is never unlinked.
struct KnowledgeCacheLock {
    file: File,
}

impl Drop for KnowledgeCacheLock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Returns true if the observation is worth storing. Of declarations, only those that may become hints are stored;
/// the others would fill the cache.
fn is_useful(observation: &PatternObservation) -> bool {
    observation.edit != EditKind::WrongDeclaration
        || is_wrong_import(observation.language.name(), &observation.broken, &observation.fixed)
}

impl KnowledgeCache {
    pub fn open(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Takes the messages about files that were set aside since the last call, by any process. For callers that can
    /// show them to a person.
    pub fn take_notices(&self) -> Vec<String> {
        let path = self.folder.join(NOTICES_FILE);
        if !path.exists() {
            return Vec::new();
        }
        let take = || -> Result<Vec<String>, KnowledgeError> {
            let _held = self.lock()?;
            let lines = self.read_notices()?;
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            Ok(lines)
        };
        take().unwrap_or_else(|error| vec![error.to_string()])
    }

    fn read_notices(&self) -> Result<Vec<String>, KnowledgeError> {
        let text = files::read(&self.folder.join(NOTICES_FILE))?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
    }

    /// Stores a message for [`Self::take_notices`]. The caller holds the lock.
    fn append_notice(&self, line: String) -> Result<(), KnowledgeError> {
        let mut lines = self.read_notices()?;
        lines.push(line);
        let older = lines.len().saturating_sub(MAX_DAMAGED_FILES as usize);
        let text = lines[older..].join("\n") + "\n";
        Ok(files::write_atomically(&self.folder.join(NOTICES_FILE), text.as_bytes(), ExistingPolicy::Replace)?)
    }

    /// Returns the patterns of a language, see [`Self::load_language`].
    ///
    /// # Errors
    ///
    /// Fails if the cache cannot be read, or if a newer revdeck wrote it.
    pub fn patterns(&self, language: Language) -> Result<Vec<Pattern>, KnowledgeError> {
        self.load_language(language).map(|known| known.patterns)
    }

    /// Loads the knowledge about a language. Patterns are sorted by id: curated patterns with their local counts,
    /// learned patterns and imported patterns. Muted patterns are included, forgotten ones are not.
    ///
    /// # Errors
    ///
    /// Fails if the cache cannot be read, or if a newer revdeck wrote it.
    pub fn load_language(&self, language: Language) -> Result<LanguageKnowledge, KnowledgeError> {
        let document = self.read(language)?;
        let mut all = document.patterns;
        for curated in builtin_patterns::patterns(language) {
            if !document.forgotten.contains_key(&curated.id) {
                let mut merged = curated.clone();
                if let Some(known) = all.remove(&curated.id) {
                    merged.merge(&known);
                    // The curated count belongs to no machine and takes no machine's place.
                    let mut counts = known.counts;
                    counts.append(&mut curated.counts.clone());
                    merged = Pattern {
                        counts,
                        last_matched: known.last_matched,
                        months: known.months,
                        setbacks: known.setbacks,
                        muted: known.muted,
                        ..merged
                    };
                }
                all.insert(merged.id.clone(), merged);
            }
        }
        if let Some(origin) = self.origin()? {
            all.values_mut().for_each(|pattern| pattern.set_local_count(&origin));
        }
        clustering::group_similar(&mut all);
        Ok(LanguageKnowledge {
            patterns: all.into_values().collect(),
            kinds: document.kinds,
            forgotten: document.forgotten,
        })
    }

    /// Returns the time at which the first pattern was learned on this machine, as far as the event log reaches back.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn learning_since(&self) -> Result<Option<Time>, KnowledgeError> {
        Ok(event_log::first_event_at(&self.folder, PatternEventKind::Learned)?)
    }

    /// Counts observations and creates patterns for new ones.
    ///
    /// # Errors
    ///
    /// Fails if the cache cannot be read or written, or if a newer revdeck wrote it.
    pub fn learn(&self, observations: &[PatternObservation], now: Time) -> Result<LearningSummary, KnowledgeError> {
        let mut learned = LearningSummary::default();
        let mut admitted = Vec::with_capacity(observations.len());
        for observation in observations.iter().filter(|observation| is_useful(observation)) {
            match privacy_gate::admit_pair(observation.language.name(), &observation.broken, &observation.fixed) {
                Ok(()) => admitted.push(observation),
                Err(_) => learned.refused += 1,
            }
        }
        let evicted = self.update_by_language(
            &admitted,
            |observation| observation.language,
            now,
            |change, observation| {
                change.learn(observation, &mut learned);
            },
        )?;
        Ok(LearningSummary { evicted, ..learned })
    }

    /// Counts the outcomes of findings, each once. Returns the number of new outcomes.
    ///
    /// # Errors
    ///
    /// Fails if the cache cannot be read or written, or if a newer revdeck wrote it.
    pub fn record_outcomes(&self, outcomes: &[PatternOutcome], now: Time) -> Result<usize, KnowledgeError> {
        let mut counted = 0;
        self.update_by_language(
            outcomes,
            |happened| happened.language,
            now,
            |change, happened| {
                counted += usize::from(change.record_outcome(happened));
            },
        )?;
        Ok(counted)
    }

    /// Counts verdicts on findings by kind, each finding once per verdict. Returns the number of new verdicts.
    ///
    /// # Errors
    ///
    /// Fails if the cache cannot be read or written, or if a newer revdeck wrote it.
    pub fn record_verdicts(&self, judged: &[KindVerdict], now: Time) -> Result<usize, KnowledgeError> {
        let admitted: Vec<&KindVerdict> =
            judged.iter().filter(|judged| privacy_gate::admit_kind(judged.kind.word()).is_ok()).collect();
        let mut counted = 0;
        self.update_by_language(
            &admitted,
            |judged| judged.language,
            now,
            |change, judged| {
                counted += usize::from(change.record_verdict(judged));
            },
        )?;
        Ok(counted)
    }

    /// Resets the tally of a kind; verdicts counted before do not count again. Returns true if there was a tally.
    ///
    /// # Errors
    ///
    /// Fails if the cache cannot be read or written, or if a newer revdeck wrote it.
    pub fn forget_kind(&self, language: Language, kind: Kind, now: Time) -> Result<bool, KnowledgeError> {
        self.update_kinds(language, now, |kinds| kinds.remove(&kind).is_some())
    }

    /// Prevents a counted kind from being lowered, or allows it again. Returns true if this changed the tally.
    ///
    /// # Errors
    ///
    /// Fails if the cache cannot be read or written, or if a newer revdeck wrote it.
    pub fn mute_kind(
        &self,
        language: Language,
        kind: Kind,
        action: MuteAction,
        now: Time,
    ) -> Result<bool, KnowledgeError> {
        let muted = action == MuteAction::Mute;
        self.update_kinds(language, now, |kinds| {
            kinds.get_mut(&kind).is_some_and(|tally| std::mem::replace(&mut tally.muted, muted) != muted)
        })
    }

    fn update_kinds(
        &self,
        language: Language,
        now: Time,
        work: impl FnOnce(&mut KindTallies) -> bool,
    ) -> Result<bool, KnowledgeError> {
        let mut is_changed = false;
        let _held = self.lock()?;
        self.update_language(language, now, |change| {
            is_changed = work(&mut change.document.kinds);
            change.is_changed |= is_changed;
        })?;
        Ok(is_changed)
    }

    /// Records that code matched these patterns at `now`.
    ///
    /// # Errors
    ///
    /// Fails if the cache cannot be read or written, or if a newer revdeck wrote it.
    pub fn record_matches(&self, language: Language, patterns: &[PatternId], now: Time) -> Result<(), KnowledgeError> {
        self.update_by_language(
            patterns,
            |_| language,
            now,
            |change, id| {
                if let Some(pattern) = change.entry(id) {
                    pattern.last_matched = pattern.last_matched.max(Some(now));
                    change.log_event(PatternEventKind::Matched, id, 1);
                }
            },
        )
        .map(drop)
    }

    /// Removes patterns for good: they are neither learned nor merged again. Returns the number of removed patterns.
    ///
    /// # Errors
    ///
    /// Returns [`KnowledgeError::NoPattern`] with the first unknown pattern, and then forgets none; also fails if the
    /// cache cannot be read or written.
    pub fn forget(&self, language: Language, patterns: &[PatternId], now: Time) -> Result<usize, KnowledgeError> {
        let mut gone = 0;
        self.update_known(language, patterns, now, |change, id| {
            if change.document.forgotten.insert(id.clone(), now).is_none() {
                change.document.patterns.remove(id);
                change.log_event(PatternEventKind::Forgotten, id, 1);
                gone += 1;
            }
        })?;
        Ok(gone)
    }

    /// Stops patterns from being used, or allows it again. Returns the number of changed patterns.
    ///
    /// # Errors
    ///
    /// Returns [`KnowledgeError::NoPattern`] with the first unknown pattern, and then changes none; also fails if the
    /// cache cannot be read or written.
    pub fn mute(
        &self,
        language: Language,
        patterns: &[PatternId],
        action: MuteAction,
        now: Time,
    ) -> Result<usize, KnowledgeError> {
        let (muted, event) = match action {
            MuteAction::Mute => (true, PatternEventKind::Muted),
            MuteAction::Unmute => (false, PatternEventKind::Unmuted),
        };
        let mut changed = 0;
        self.update_known(language, patterns, now, |change, id| {
            let Some(pattern) = change.entry(id) else { return };
            if std::mem::replace(&mut pattern.muted, muted) != muted {
                change.log_event(event, id, 1);
                changed += 1;
            }
        })?;
        Ok(changed)
    }

    /// Merges checked patterns from another machine, see [`super::exchange`].
    pub(super) fn merge(&self, patterns: &[(Language, Pattern)], now: Time) -> Result<MergeSummary, KnowledgeError> {
        let mut merged = MergeSummary::default();
        let evicted = self.update_by_language(
            patterns,
            |(language, _)| *language,
            now,
            |change, (_, pattern)| {
                change.merge(pattern, &mut merged);
            },
        )?;
        Ok(MergeSummary { evicted, ..merged })
    }

    /// Removes everything that was learned, counted, imported, muted and forgotten, and this machine's id. Keeps the
    /// empty lock file and files that are not revdeck's. Returns the number of removed files.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be locked or read, or if a file cannot be removed.
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
                || name.contains(PATTERN_FILE_SUFFIX)
                || name.starts_with(files::TEMPORARY_PREFIX);
            if ours {
                let path = entry.path();
                fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Returns the id under which this machine counts; `None` before anything was learned.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn origin(&self) -> Result<Option<String>, KnowledgeError> {
        let text = files::read(&self.folder.join(ORIGIN_FILE))?.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.map(|text| text.trim_end().to_owned()).filter(|id| is_origin(id)))
    }

    fn path(&self, language: Language) -> PathBuf {
        self.folder.join(format!("{}{PATTERN_FILE_SUFFIX}", language.name()))
    }

    /// Reads the file of a language. Sets a damaged file aside and leaves a notice.
    fn read(&self, language: Language) -> Result<KnowledgeFile, KnowledgeError> {
        match self.parse_file(language)? {
            Ok(document) => Ok(document),
            Err(KnowledgeFileError::Newer { found }) => Err(newer_version_error(self.path(language), found)),
            Err(KnowledgeFileError::Damaged) => {
                let _held = self.lock()?;
                self.read_locked(language)
            }
        }
    }

    /// Reads the file like [`Self::read`]; the caller holds the lock.
    fn read_locked(&self, language: Language) -> Result<KnowledgeFile, KnowledgeError> {
        match self.parse_file(language)? {
            Ok(document) => Ok(document),
            Err(KnowledgeFileError::Newer { found }) => Err(newer_version_error(self.path(language), found)),
            Err(KnowledgeFileError::Damaged) => {
                self.quarantine_file(&self.path(language))?;
                Ok(KnowledgeFile::default())
            }
        }
    }

    fn parse_file(&self, language: Language) -> Result<Result<KnowledgeFile, KnowledgeFileError>, KnowledgeError> {
        let path = self.path(language);
        if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > MAX_FILE_BYTES) {
            return Ok(Err(KnowledgeFileError::Damaged));
        }
        Ok(files::read(&path)?
            .map_or(Ok(KnowledgeFile::default()), |bytes| KnowledgeFile::parse(language.name(), &bytes)))
    }

    fn quarantine_file(&self, path: &Path) -> Result<(), KnowledgeError> {
        let aside = |n: u32| {
            let mut name = path.as_os_str().to_owned();
            name.push(if n == 1 { ".damaged".to_owned() } else { format!(".damaged-{n}") });
            PathBuf::from(name)
        };
        let free =
            (1..MAX_DAMAGED_FILES).map(aside).find(|path| !path.exists()).unwrap_or_else(|| aside(MAX_DAMAGED_FILES));
        fs::rename(path, &free).map_err(|source| KnowledgeError::Damaged { path: path.to_owned(), source })?;
        let line =
            format!("{} was damaged and is now {}: its patterns are learned anew", path.display(), free.display());
        tracing::warn!("{line}");
        self.append_notice(line)
    }

    fn lock(&self) -> Result<KnowledgeCacheLock, KnowledgeError> {
        files::make_folder(&self.folder)?;
        let path = self.folder.join("lock");
        let file = files::open_lock_file(&path)?;
        file.lock().map_err(StoreError::io("lock", &path))?;
        Ok(KnowledgeCacheLock { file })
    }

    /// Returns this machine's id and creates it if needed. The caller holds the lock.
    fn ensure_origin(&self) -> Result<String, KnowledgeError> {
        if let Some(origin) = self.origin()? {
            return Ok(origin);
        }
        let origin = format!("m_{}", ulid::Ulid::generate().to_string().to_lowercase());
        files::write_atomically(
            &self.folder.join(ORIGIN_FILE),
            format!("{origin}\n").as_bytes(),
            ExistingPolicy::Replace,
        )?;
        Ok(origin)
    }

    /// Changes the file of a language and returns the number of evicted patterns. The caller holds the lock.
    fn update_language(
        &self,
        language: Language,
        now: Time,
        work: impl FnOnce(&mut LanguageUpdate<'_>),
    ) -> Result<usize, KnowledgeError> {
        let document = self.read_locked(language)?;
        let origin = self.ensure_origin()?;
        let mut change =
            LanguageUpdate { document, language, origin: &origin, now, lines: Vec::new(), is_changed: false };
        work(&mut change);
        if !change.is_changed {
            return Ok(0);
        }
        let evicted = change.evict_surplus();
        let bytes = change
            .document
            .encode(language.name())
            .map_err(|source| StoreError::Encode { what: "the knowledge of a language", source })?;
        self.remove_temporaries();
        files::write_atomically(&self.path(language), &bytes, ExistingPolicy::Replace)?;
        // The patterns are stored already, so a failure to write the log is not an error.
        if let Err(error) = event_log::append_events(&self.folder, &change.lines) {
            tracing::warn!("knowledge: {error}");
        }
        Ok(evicted)
    }

    /// Removes temporary files of killed processes. The caller holds the lock, so no other process is writing.
    fn remove_temporaries(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(files::TEMPORARY_PREFIX) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Changes the files of all languages of the items. Returns the number of evicted patterns.
    fn update_by_language<T>(
        &self,
        items: &[T],
        language: impl Fn(&T) -> Language,
        now: Time,
        mut each: impl FnMut(&mut LanguageUpdate<'_>, &T),
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
            evicted += self
                .update_language(language(items[0]), now, |change| items.iter().for_each(|item| each(change, item)))?;
        }
        Ok(evicted)
    }

    /// Applies a change to patterns if all of them are known.
    fn update_known(
        &self,
        language: Language,
        patterns: &[PatternId],
        now: Time,
        mut each: impl FnMut(&mut LanguageUpdate<'_>, &PatternId),
    ) -> Result<(), KnowledgeError> {
        let mut missing = None;
        let _held = self.lock()?;
        self.update_language(language, now, |change| {
            missing = patterns.iter().find(|id| !change.is_known(id)).cloned();
            if missing.is_none() {
                patterns.iter().for_each(|id| each(change, id));
            }
        })?;
        missing.map_or(Ok(()), |id| Err(KnowledgeError::NoPattern { id: id.into() }))
    }
}

const PATTERN_FILE_SUFFIX: &str = "_accumulated.json";
const ORIGIN_FILE: &str = "origin";
const NOTICES_FILE: &str = "notices";

fn newer_version_error(path: PathBuf, found: u32) -> KnowledgeError {
    StoreError::Newer { path, found, known: FORMAT_VERSION }.into()
}

/// Returns true if the text is the id of a machine.
pub(super) fn is_origin(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.strip_prefix("m_").is_some_and(|rest| rest.len() == 26 && rest.bytes().all(is_plain))
}

#[cfg(test)]
mod tests;
