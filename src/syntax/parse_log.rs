//! Records which texts this process is parsing, so that the text that ended the process is known afterwards.
//!
//! A parse may need more memory than the process may have, in spite of all limits. Then an allocation fails, and
//! tree-sitter and Rust both abort the process. The next process must not parse the text again:
//!
//! ```text
//! process 1: ParseLog::start ─► begin a.c ─► begin b.c ─► end b.c ─► no memory: SIGABRT appends the mark
//! process 2: ParseLog::read_interrupted ─► a.c ─► recorded durably ─► refuse_texts ─► ParseLog::start
//!            Parsers::parse(a.c) ─► ParseFailure::OutOfMemory
//! ```
//!
//! - The log is a file of lines that are never synced: the page cache survives the death of the process.
//! - Only SIGABRT leaves a mark. After a kill, a cancellation or a power failure, no text is blamed.
//! - All texts that were being parsed at that moment are blamed: several threads parse at once, and nothing tells whose
//!   allocation took the memory.
//! - A text is known by its content, so that a renamed copy is refused, too.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::ParseFailure;
use crate::domain::{InterruptedParse, content_hash};

/// Length in bytes above which the log is emptied when no parse is under way.
const MAX_IDLE_LOG_BYTES: u64 = 64 << 10;
/// Maximum length in bytes of a log that is read; no process writes a longer one.
const MAX_LOG_BYTES: u64 = 16 << 20;
/// Byte that the handler of SIGABRT appends. [`signal_hook`] determines it.
const ABORT_MARK: char = 'X';

/// Line of a log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LogLine {
    /// A parse begins; `id` is unique in the log.
    Begin {
        id: u64,
        #[serde(flatten)]
        text: InterruptedParse,
    },
    End {
        id: u64,
    },
}

/// Open log of the parses of this process. Dropping it removes the file.
#[derive(Debug)]
pub struct ParseLog {
    file: Arc<LogFile>,
    path: PathBuf,
    #[cfg(unix)]
    handler: signal_hook::SigId,
}

/// File of a log, shared with the parses that are under way.
#[derive(Debug)]
struct LogFile {
    file: File,
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    last_id: u64,
    /// Number of parses under way.
    open: usize,
    length: u64,
}

/// Open logs and refused texts of this process.
#[derive(Default)]
struct Registry {
    logs: Vec<Arc<LogFile>>,
    refused: HashSet<String>,
}

/// False while there is neither a log nor a refused text, as in most processes.
static IS_USED: AtomicBool = AtomicBool::new(false);
static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with_registry<T>(change: impl FnOnce(&mut Registry) -> T) -> T {
    let mut registry = lock(&REGISTRY);
    let registry = registry.get_or_insert_default();
    let changed = change(registry);
    IS_USED.store(!registry.logs.is_empty() || !registry.refused.is_empty(), Ordering::Relaxed);
    changed
}

/// Makes every later parse of these texts in this process fail with [`ParseFailure::OutOfMemory`]. A text is given by
/// [`InterruptedParse::content`].
pub fn refuse_texts(contents: impl IntoIterator<Item = String>) {
    with_registry(|registry| registry.refused.extend(contents));
}

impl ParseLog {
    /// Reads which texts an aborted process was parsing. Returns nothing for a process that ended in another way, and
    /// for a log that is missing or unreadable.
    pub fn read_interrupted(path: &Path) -> Vec<InterruptedParse> {
        let is_log = fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_LOG_BYTES);
        match is_log.then(|| fs::read(path)) {
            Some(Ok(bytes)) => find_interrupted(&String::from_utf8_lossy(&bytes)),
            _ => Vec::new(),
        }
    }

    /// Starts a log of all parses of this process. Replaces the log of an earlier process.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or the handler of SIGABRT cannot be set.
    #[cfg(unix)]
    pub fn start(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt as _;

        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = File::options().append(true).create_new(true).mode(0o600).open(path)?;
        let handler = signal_hook::low_level::pipe::register(signal_hook::consts::SIGABRT, file.try_clone()?)?;
        let file = Arc::new(LogFile { file, state: Mutex::default() });
        with_registry(|registry| registry.logs.push(Arc::clone(&file)));
        Ok(Self { file, path: path.to_owned(), handler })
    }

    /// Fails: other systems have no SIGABRT.
    ///
    /// # Errors
    ///
    /// Always.
    #[cfg(not(unix))]
    pub fn start(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Drop for ParseLog {
    fn drop(&mut self) {
        with_registry(|registry| registry.logs.retain(|log| !Arc::ptr_eq(log, &self.file)));
        #[cfg(unix)]
        signal_hook::low_level::unregister(self.handler);
        let _ = fs::remove_file(&self.path);
    }
}

impl LogFile {
    /// Appends the begin of a parse and returns its id.
    fn begin(&self, text: &InterruptedParse) -> u64 {
        let mut state = lock(&self.state);
        if state.open == 0 && state.length > MAX_IDLE_LOG_BYTES && self.file.set_len(0).is_ok() {
            state.length = 0;
        }
        state.last_id += 1;
        state.open += 1;
        let id = state.last_id;
        self.append(&mut state, &LogLine::Begin { id, text: text.clone() });
        id
    }

    fn end(&self, id: u64) {
        let mut state = lock(&self.state);
        state.open = state.open.saturating_sub(1);
        self.append(&mut state, &LogLine::End { id });
    }

    /// Appends a line. After a failed write, the text is not blamed if the process dies.
    fn append(&self, state: &mut LogState, line: &LogLine) {
        let Ok(mut bytes) = serde_json::to_vec(line) else { return };
        bytes.push(b'\n');
        if (&self.file).write_all(&bytes).is_ok() {
            state.length += bytes.len() as u64;
        }
    }
}

/// A parse under way, in the logs of this process. Dropping it logs the end.
#[derive(Default)]
pub(super) struct LoggedParse(Vec<(Arc<LogFile>, u64)>);

impl LoggedParse {
    /// Logs that the versions of a file are about to be parsed. `path` may be empty.
    ///
    /// # Errors
    ///
    /// Returns [`ParseFailure::OutOfMemory`] if one of them was refused.
    pub(super) fn begin(path: &str, versions: &[&[u8]]) -> Result<Self, ParseFailure> {
        if !IS_USED.load(Ordering::Relaxed) {
            return Ok(Self::default());
        }
        let contents: Vec<String> = versions.iter().map(|text| content_hash([*text])).collect();
        let logs = with_registry(|registry| {
            let is_refused = contents.iter().any(|content| registry.refused.contains(content));
            (!is_refused).then(|| registry.logs.clone())
        });
        let mut logged = Self::default();
        for log in logs.ok_or(ParseFailure::OutOfMemory)? {
            for content in &contents {
                let id = log.begin(&InterruptedParse { path: path.to_owned(), content: content.clone() });
                logged.0.push((Arc::clone(&log), id));
            }
        }
        Ok(logged)
    }
}

impl Drop for LoggedParse {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|(log, id)| log.end(id));
    }
}

/// Returns the texts that a log says were being parsed when the process aborted, without repetitions.
fn find_interrupted(log: &str) -> Vec<InterruptedParse> {
    let Some((lines, last)) = log.rsplit_once('\n') else { return Vec::new() };
    if last.is_empty() || !last.chars().all(|c| c == ABORT_MARK) {
        return Vec::new();
    }
    let mut open: Vec<(u64, InterruptedParse)> = Vec::new();
    for line in lines.lines() {
        match serde_json::from_str(line) {
            Ok(LogLine::Begin { id, text }) => open.push((id, text)),
            Ok(LogLine::End { id }) => open.retain(|(begun, _)| *begun != id),
            Err(_) => {}
        }
    }
    let mut found: Vec<InterruptedParse> = Vec::new();
    for (_, text) in open {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::language::Language;
    use crate::syntax::source::Parsers;

    fn text(path: &str, content: &[u8]) -> InterruptedParse {
        InterruptedParse { path: path.to_owned(), content: content_hash([content]) }
    }

    #[test]
    fn only_an_aborted_process_blames_the_texts_that_it_was_parsing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        assert!(ParseLog::read_interrupted(&path).is_empty(), "no log");
        let log = ParseLog::start(&path).expect("a log");
        let slow = LoggedParse::begin("log/slow.c", &[b"slow"]).expect("nothing is refused");
        drop(LoggedParse::begin("log/quick.c", &[b"quick"]).expect("nothing is refused"));
        let pair = LoggedParse::begin("", &[b"old", b"slow"]).expect("nothing is refused");
        assert!(ParseLog::read_interrupted(&path).is_empty(), "the process was killed");
        (&log.file.file).write_all(b"XX").expect("a mark");
        let found = ParseLog::read_interrupted(&path);
        // Other tests of this process parse meanwhile.
        for expected in [text("log/slow.c", b"slow"), text("", b"old"), text("", b"slow")] {
            assert_eq!(found.iter().filter(|found| **found == expected).count(), 1, "{expected:?}: {found:?}");
        }
        assert!(!found.contains(&text("log/quick.c", b"quick")));
        drop((slow, pair, log));
        assert!(!path.exists(), "the log goes with the process");
    }

    #[test]
    fn a_refused_text_fails_under_any_name_and_others_do_not() {
        let (mut parsers, code) = (Parsers::default(), b"int refused_text;");
        assert!(parsers.parse("a.c", Language::C, code).is_ok());
        refuse_texts([text("a.c", code).content]);
        for path in ["a.c", "b.c"] {
            assert_eq!(parsers.parse(path, Language::C, code).err(), Some(ParseFailure::OutOfMemory));
        }
        assert_eq!(parsers.parse_pair(Language::C, b"int a;", code).err(), Some(ParseFailure::OutOfMemory));
        assert!(parsers.parse("a.c", Language::C, b"int accepted_text;").is_ok() && !parsers.take_failure());
    }

    #[test]
    fn a_log_does_not_grow_for_ever() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = File::options().append(true).create(true).open(folder.path().join("log")).expect("a file");
        let log = LogFile { file, state: Mutex::default() };
        for _ in 0..2_000 {
            log.end(log.begin(&text("a/name/of/a/file.c", b"")));
        }
        let length = log.file.metadata().expect("there").len();
        assert!(length < MAX_IDLE_LOG_BYTES + 1_000, "{length}");
    }

    #[test]
    fn a_damaged_log_blames_nothing_it_does_not_say() {
        let begin = r#"{"begin":{"id":1,"path":"a.c","content":"00"}}"#;
        let expected = InterruptedParse { path: "a.c".to_owned(), content: "00".to_owned() };
        for (log, found) in [
            (format!("{begin}\nX"), vec![expected.clone()]),
            (format!("nonsense\n{begin}\nX"), vec![expected]),
            (format!("{begin}\n"), vec![]),
            (format!("{begin}\n{{\"begin\""), vec![]),
            (format!("{begin}\n{{\"end\":{{\"id\":1}}}}\nX"), vec![]),
            ("X".to_owned(), vec![]),
            (String::new(), vec![]),
        ] {
            assert_eq!(find_interrupted(&log), found, "{log}");
        }
    }
}
