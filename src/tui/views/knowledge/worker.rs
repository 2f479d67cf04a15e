//! Reads and changes learned patterns on a worker thread, so that updating and drawing never touch a file.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use notify::{RecursiveMode, Watcher as _};

use super::{
    ExportOverwrite, KnowledgeOrder, KnowledgeOutcome, LanguagePatterns, LearningMode, PatternLibrary, PatternLocation,
    RankedPattern,
};
use crate::config::ClockAndIds;
use crate::domain::{MuteAction, PatternId, text};
use crate::knowledge::cache::{self, KnowledgeCache};
use crate::knowledge::error::KnowledgeError;
use crate::knowledge::{builtin_patterns, exchange, rank};
use crate::runner::{BUILTIN_REVIEWER, Services};
use crate::store::{Store, StoreView, files};
use crate::tui::effects::spawn_worker;
use crate::tui::event_source::MessageSender;
use crate::tui::message::AppMessage;
use crate::tui::views::ViewReply;

/// Most runs searched for locations of patterns. Chosen here: older locations are of little use.
const MAX_SEARCHED_RUNS: usize = 50;

/// Time in which several file changes count as one; learning writes several files in a row.
const CHANGE_DEBOUNCE: Duration = Duration::from_millis(300);

/// Worker for knowledge requests.
pub struct KnowledgeWorker {
    pub cache: KnowledgeCache,
    /// Folder of the cache.
    pub folder: PathBuf,
    /// Store of this repository, for locations of findings.
    pub store: Store,
    pub learning: LearningMode,
    pub ambient: ClockAndIds,
    /// Folder for which a leading `~` stands.
    pub home: Option<PathBuf>,
}

/// Starts the threads that execute requests and that report changes of the patterns.
pub fn start_worker(services: &Services, messages: &MessageSender) -> Sender<(KnowledgeOrder, Arc<StoreView>)> {
    let (requests, orders) = channel();
    let (touched, touches) = channel();
    let (worker, send) = (KnowledgeWorker::new(services), messages.clone());
    spawn_worker("knowledge", messages.clone(), move || serve_orders(&worker, &orders, touched, &send));
    let send = messages.clone();
    spawn_worker("learned", messages.clone(), move || notify_changes(&touches, &send));
    requests
}

/// Executes requests in order; after each read or change, sends the library again.
fn serve_orders(
    librarian: &KnowledgeWorker,
    orders: &Receiver<(KnowledgeOrder, Arc<StoreView>)>,
    touched: Sender<()>,
    messages: &MessageSender,
) {
    let mut eye = None;
    let mut touched = Some(touched);
    while let Ok((order, view)) = orders.recv() {
        // The cache is watched only after the first request.
        if let Some(touched) = touched.take() {
            eye = CacheWatcher::new(&librarian.folder, touched);
        }
        if let Some(eye) = &mut eye {
            eye.update_watch();
        }
        let outcome = librarian.execute(&order);
        let reads = matches!(order, KnowledgeOrder::Read | KnowledgeOrder::Mute { .. } | KnowledgeOrder::Forget { .. });
        if reads
            && messages.send(AppMessage::View(ViewReply::Knowledge(Arc::new(librarian.read_library(&view))))).is_err()
        {
            return;
        }
        if let Some(outcome) = outcome
            && messages.send(AppMessage::View(ViewReply::KnowledgeFinished(outcome))).is_err()
        {
            return;
        }
    }
}

/// Reports changes of the cache after [`CHANGE_DEBOUNCE`].
fn notify_changes(touches: &Receiver<()>, messages: &MessageSender) {
    while touches.recv().is_ok() {
        thread::sleep(CHANGE_DEBOUNCE);
        while touches.try_recv().is_ok() {}
        if messages.send(AppMessage::View(ViewReply::KnowledgeChanged)).is_err() {
            return;
        }
    }
}

/// Watches the files of the cache, which reviews, commands and other cockpits change.
pub struct CacheWatcher {
    folder: PathBuf,
    watched: Option<PathBuf>,
    watcher: notify::RecommendedWatcher,
}

impl CacheWatcher {
    /// Creates the watcher. Returns `None` if the system has no file notifications; then only the reload key reads
    /// again.
    pub fn new(folder: &Path, touched: Sender<()>) -> Option<Self> {
        let of = folder.to_owned();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event
                .is_ok_and(|event| !event.kind.is_access() && event.paths.iter().any(|path| is_pattern_path(path, &of)))
            {
                let _ = touched.send(());
            }
        });
        match watcher {
            Ok(watcher) => Some(Self { folder: folder.to_owned(), watched: None, watcher }),
            Err(error) => {
                tracing::warn!(%error, "knowledge is not watched");
                None
            }
        }
    }

    /// Watches the cache folder, or its parent while the folder does not exist.
    pub fn update_watch(&mut self) {
        let places = [Some(self.folder.as_path()), self.folder.parent()];
        let wanted = places.into_iter().flatten().find(|folder| folder.is_dir()).map(Path::to_owned);
        if wanted != self.watched {
            if let Some(before) = self.watched.take() {
                let _ = self.watcher.unwatch(&before);
            }
            self.watched = wanted.filter(|folder| self.watcher.watch(folder, RecursiveMode::NonRecursive).is_ok());
        }
    }
}

/// Returns true if a path is the cache folder or a pattern file in it.
fn is_pattern_path(path: &Path, folder: &Path) -> bool {
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    path == folder || (is_json && path.parent() == Some(folder))
}

impl KnowledgeWorker {
    pub fn new(services: &Services) -> Self {
        Self {
            cache: KnowledgeCache::open(&services.paths.knowledge),
            folder: services.paths.knowledge.clone(),
            store: services.store.clone(),
            learning: if services.settings.learning.enabled { LearningMode::On } else { LearningMode::Off },
            ambient: ClockAndIds::system(),
            home: std::env::home_dir(),
        }
    }

    /// Executes a request. Returns `None` for a read, whose result is the library itself.
    pub fn execute(&self, order: &KnowledgeOrder) -> Option<KnowledgeOutcome> {
        let now = self.ambient.now();
        let done = match order {
            KnowledgeOrder::Read => return None,
            KnowledgeOrder::Mute { language, pattern, action } => {
                self.cache.mute(*language, std::slice::from_ref(pattern), *action, now).map(|_| match action {
                    MuteAction::Mute => "muted: it is not used, and not exported".to_owned(),
                    MuteAction::Unmute => "not muted any more".to_owned(),
                })
            }
            KnowledgeOrder::Forget { language, pattern } => self
                .cache
                .forget(*language, std::slice::from_ref(pattern), now)
                .map(|_| "forgotten: it is neither learned nor imported again".to_owned()),
            KnowledgeOrder::Export { path, existing } => return Some(self.export(path, *existing)),
        };
        Some(match done {
            Ok(text) => KnowledgeOutcome::Done(text),
            Err(error) => KnowledgeOutcome::Failed(describe_error(&error)),
        })
    }

    /// Reads the patterns of all languages, the most useful first. Read errors are recorded in the library.
    pub fn read_library(&self, view: &StoreView) -> PatternLibrary {
        let now = self.ambient.now();
        let mut library = PatternLibrary { learning: self.learning, ..PatternLibrary::default() };
        for language in builtin_patterns::languages() {
            match self.cache.load_language(language) {
                Ok(cache::LanguageKnowledge { patterns, .. }) if patterns.is_empty() => {}
                Ok(cache::LanguageKnowledge { patterns, kinds, .. }) => {
                    let leader =
                        |known: &RankedPattern| known.pattern.group.clone().unwrap_or_else(|| known.pattern.id.clone());
                    let mut members = HashMap::new();
                    let mut patterns: Vec<(f64, RankedPattern)> = patterns
                        .into_iter()
                        .map(|pattern| {
                            let (useful, standing) =
                                (rank::usefulness(&pattern, now), rank::assess_pattern(&pattern, now));
                            (useful, RankedPattern { pattern, standing, similar: 0 })
                        })
                        .collect();
                    patterns.iter().for_each(|(_, known)| *members.entry(leader(known)).or_insert(0) += 1);
                    patterns.sort_by(|(a, one), (b, other)| {
                        b.total_cmp(a).then_with(|| one.pattern.id.cmp(&other.pattern.id))
                    });
                    let similar = |known: &RankedPattern| members.get(&leader(known)).map_or(0, |members| members - 1);
                    let patterns = patterns
                        .into_iter()
                        .map(|(_, known)| RankedPattern { similar: similar(&known), ..known })
                        .collect();
                    let lowered =
                        kinds.iter().filter_map(|(kind, tally)| Some((*kind, tally.lowering_dismissals()?))).collect();
                    library.languages.push(LanguagePatterns { language, patterns, lowered });
                }
                Err(error) => library.troubles.push(describe_error(&error)),
            }
        }
        library
            .languages
            .sort_by_key(|shelf| Reverse(shelf.patterns.iter().map(|known| u64::from(known.seen())).sum::<u64>()));
        library.troubles.extend(self.cache.take_notices());
        library.locations = self.find_locations(view, &library);
        library
    }

    /// Finds the newest location of each pattern in the outputs of the newest runs.
    fn find_locations(&self, view: &StoreView, library: &PatternLibrary) -> HashMap<PatternId, PatternLocation> {
        let all = library.languages.iter().flat_map(|shelf| &shelf.patterns);
        let mut wanted: HashSet<&PatternId> = all.map(|known| &known.pattern.id).collect();
        let mut places = HashMap::new();
        // Only the built-in reviewer uses patterns to find problems.
        let runs = (0..view.run_count()).map(|index| view.run(index)).filter(|run| run.reviewer == BUILTIN_REVIEWER);
        for run in runs.filter(|run| run.counts.iter().any(|count| *count > 0)).take(MAX_SEARCHED_RUNS) {
            let output = run.id.parse().ok().and_then(|id| self.store.output(&id).ok().flatten());
            for finding in output.into_iter().flat_map(|output| output.findings) {
                if let Some(pattern) = finding.pattern.filter(|pattern| wanted.remove(pattern)) {
                    let (path, line, at) = (finding.repo_relative_path, finding.line_start, finding.reported_at);
                    places.insert(pattern, PatternLocation { path, line, at });
                }
            }
        }
        places
    }

    fn export(&self, given: &str, existing: ExportOverwrite) -> KnowledgeOutcome {
        let path = match (given.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(given),
        };
        let path = std::path::absolute(&path).unwrap_or(path);
        let failed = |why: String| KnowledgeOutcome::Failed(format!("nothing was exported: {why}"));
        if path.is_dir() {
            return failed(format!("{} is a folder", path.display()));
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
            return failed(format!("there is no folder {}", folder.display()));
        }
        let export = match exchange::export_patterns(&self.cache, None) {
            Ok(export) => export,
            Err(error) => return failed(describe_error(&error)),
        };
        let count = export["patterns"].as_array().map_or(0, Vec::len);
        if count == 0 {
            return failed("there is nothing that was learned; what came with revdeck everybody has".to_owned());
        }
        match write_export(&path, format!("{export:#}\n").as_bytes(), existing) {
            Ok(ExportWrite::Written) => {
                KnowledgeOutcome::Done(format!("{} in {}", text::format_count(count, "pattern"), path.display()))
            }
            Ok(ExportWrite::AlreadyExists) => KnowledgeOutcome::Exists(path.display().to_string()),
            Err(why) => failed(why),
        }
    }
}

enum ExportWrite {
    Written,
    /// The file already existed.
    AlreadyExists,
}

/// Writes an export completely or not at all: a new file is removed after a write error, an old one is replaced
/// atomically.
fn write_export(path: &Path, bytes: &[u8], existing: ExportOverwrite) -> Result<ExportWrite, String> {
    if existing == ExportOverwrite::Replace {
        files::write_atomically(path, bytes, files::ExistingPolicy::Replace).map_err(|error| error.to_string())?;
        return Ok(ExportWrite::Written);
    }
    let in_words = |error| format!("cannot write {}: {error}", path.display());
    let mut file = match File::create_new(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(ExportWrite::AlreadyExists),
        Err(error) => return Err(in_words(error)),
    };
    file.write_all(bytes).and_then(|()| file.sync_all()).map(|()| ExportWrite::Written).map_err(|error| {
        let _ = std::fs::remove_file(path);
        in_words(error)
    })
}

/// Describes an error with a hint.
fn describe_error(error: &KnowledgeError) -> String {
    format!("{error}; {}", error.hint())
}
