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

mod language_update;

pub use language_update::{LearningSummary, MergeSummary, PatternObservation, PatternOutcome, PatternOutcomeKind};

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
use crate::reviewers::analyzer::language::Language;
use crate::store::StoreError;
use crate::store::files::{self, ExistingPolicy};

/// Patterns of a language, those that came with revdeck among them. From the issue.
pub const MAX_PATTERNS_PER_LANGUAGE: usize = 1000;
/// Damaged files of one name that are kept. Own.
const MAX_DAMAGED_FILES: u32 = 9;

/// The cache in its folder. Opening makes nothing.
#[derive(Debug)]
pub struct KnowledgeCache {
    folder: PathBuf,
}

/// What is known of a language.
#[derive(Debug, Default)]
pub struct LanguageKnowledge {
    pub patterns: Vec<Pattern>,
    pub kinds: KindTallies,
    /// What a person does not want to have, and since when.
    pub forgotten: BTreeMap<PatternId, Time>,
}

/// The lock; given up on drop. The file is never unlinked.
struct KnowledgeCacheLock {
    file: File,
}

impl Drop for KnowledgeCacheLock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Of declarations only those are kept that may become hints: the others would fill the store.
fn is_useful(observation: &PatternObservation) -> bool {
    observation.edit != EditKind::WrongDeclaration
        || is_wrong_import(observation.language.name(), &observation.broken, &observation.fixed)
}

impl KnowledgeCache {
    pub fn open(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// What had to be set aside since this was asked last, by whatever process, a line each: for whoever has a person to tell.
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

    /// Keeps a line for [`Self::notices`]. The caller holds the lock.
    fn append_notice(&self, line: String) -> Result<(), KnowledgeError> {
        let mut lines = self.read_notices()?;
        lines.push(line);
        let older = lines.len().saturating_sub(MAX_DAMAGED_FILES as usize);
        let text = lines[older..].join("\n") + "\n";
        Ok(files::write_atomically(&self.folder.join(NOTICES_FILE), text.as_bytes(), ExistingPolicy::Replace)?)
    }

    /// The patterns of a language, see [`Self::known`].
    pub fn patterns(&self, language: Language) -> Result<Vec<Pattern>, KnowledgeError> {
        self.load_language(language).map(|known| known.patterns)
    }

    /// What is known of a language. The patterns are in the order of their ids: the base with what is known of it here, what
    /// was learned and what was imported. Muted ones are among them, forgotten ones are not.
    pub fn load_language(&self, language: Language) -> Result<LanguageKnowledge, KnowledgeError> {
        let document = self.read(language)?;
        let mut all = document.patterns;
        for curated in builtin_patterns::patterns(language) {
            if !document.forgotten.contains_key(&curated.id) {
                let mut merged = curated.clone();
                if let Some(known) = all.remove(&curated.id) {
                    merged.merge(&known);
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
            all.values_mut().for_each(|pattern| pattern.set_local_count(&origin));
        }
        clustering::group_similar(&mut all);
        Ok(LanguageKnowledge {
            patterns: all.into_values().collect(),
            kinds: document.kinds,
            forgotten: document.forgotten,
        })
    }

    /// Counts observations, and makes patterns of those that are new.
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

    /// Counts what became of findings, each once; how many were new.
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

    /// Counts by kind what was decided about findings, each once for a verdict; how many were new.
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

    /// Begins to count a kind anew; what was counted is not counted again. Whether anything was.
    pub fn forget_kind(&self, language: Language, kind: Kind, now: Time) -> Result<bool, KnowledgeError> {
        self.update_kinds(language, now, |kinds| kinds.remove(&kind).is_some())
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

    /// Code matched these patterns just now.
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

    /// Takes patterns out for good: they are neither learned nor merged again. How many were there.
    ///
    /// # Errors
    /// [`KnowledgeError::NoPattern`] with the first that is not known; then none is forgotten.
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

    /// Takes in patterns from elsewhere that were checked, see [`super::exchange`].
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

    /// The id under which this machine counts; `None` before anything was learned.
    pub fn origin(&self) -> Result<Option<String>, KnowledgeError> {
        let text = files::read(&self.folder.join(ORIGIN_FILE))?.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.map(|text| text.trim_end().to_owned()).filter(|id| is_origin(id)))
    }

    fn path(&self, language: Language) -> PathBuf {
        self.folder.join(format!("{}{PATTERN_FILE_SUFFIX}", language.name()))
    }

    /// The language's file. A damaged one is set aside, and a person is told.
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

    /// As [`Self::read`], for whoever holds the lock.
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

    /// This machine's id; made when there is none. The caller holds the lock.
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

    /// Changes a language's file; the caller holds the lock. How many patterns had to go.
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
        // What is learned is stored: that the figures are not must not make it look otherwise.
        if let Err(error) = event_log::append_events(&self.folder, &change.lines) {
            tracing::warn!("knowledge: {error}");
        }
        Ok(evicted)
    }

    /// Removes what a killed process left half-written. The caller holds the lock: nobody is writing now.
    fn remove_temporaries(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(files::TEMPORARY_PREFIX) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Changes the files of all languages that something is about. How many patterns had to go.
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

    /// Does something to patterns that are all known.
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

/// Whether a text is the id of a machine that counts.
pub(super) fn is_origin(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.strip_prefix("m_").is_some_and(|rest| rest.len() == 26 && rest.bytes().all(is_plain))
}

#[cfg(test)]
mod tests;
