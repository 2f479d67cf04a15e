//! Threads that parse: each has one parser per language and a stack that is deep enough for any text.
//!
//! A parser looks at its time between two steps. A single step of error recovery may take seconds, so the waiting side
//! looks as well: it leaves a thread to itself whose step takes too long, and the next text gets a new thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::Node;
use super::parsers::{LanguageParser, ParseBudget};
use crate::syntax::language::Language;
use crate::syntax::parse_log::LoggedParse;
use crate::syntax::work_budget::thread_time;

/// Stack size of a parser thread, in bytes: the library recurses over ambiguities. Memory is committed only when used.
const THREAD_STACK_BYTES: usize = 64 << 20;
/// Processor time beyond that of a text's budget after which its thread is left. Within it a parser ends by itself, if its
/// steps are short.
const LEAVING_GRACE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 100 });
/// Waiting time between two looks at the processor time of a thread that is over its budget.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Factor of the budget after which a thread is left whose processor time cannot be read.
const UNKNOWN_TIME_FACTOR: u32 = 8;
/// Maximum number of left threads that still work. A thread beyond it is awaited: each may take a core and memory.
const MAX_LEFT_THREADS: usize = 2;

/// Versions of a file; each is parsed with the tree of the previous one.
pub(super) type FileVersions = Box<[Arc<[u8]>]>;

/// Result for one version. Versions after a too complex one are not parsed.
pub(super) enum ParseReply {
    Nodes(Vec<Node>),
    TooComplex,
    /// The thread ended, which is a bug in revdeck.
    Gone,
}

/// State that a parser thread shares with the side that waits for it.
#[derive(Default)]
struct ThreadProgress {
    /// Id of the thread in its process; 0 where there is none.
    #[cfg(target_os = "linux")]
    thread_id: std::sync::atomic::AtomicI32,
    /// Processor time of the thread when it began the present version, in nanoseconds.
    version_start: AtomicU64,
    /// Log entry of a text whose thread was left; it ends with the thread.
    left_text: Mutex<Option<LoggedParse>>,
}

impl ThreadProgress {
    fn begin_version(&self) {
        let now = u64::try_from(thread_time().as_nanos()).unwrap_or(u64::MAX);
        self.version_start.store(now, Ordering::Release);
    }

    #[cfg(target_os = "linux")]
    fn register_thread(&self) {
        self.thread_id.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
    }

    #[cfg(not(target_os = "linux"))]
    fn register_thread(&self) {}

    /// Returns the processor time that the thread has spent on the present version; `None` where it cannot be read.
    #[cfg(target_os = "linux")]
    fn version_time(&self) -> Option<Duration> {
        let thread_id = self.thread_id.load(Ordering::Acquire);
        // The first number of the file is the time on a processor, in nanoseconds.
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread_id}/schedstat")).ok()?;
        let total: u64 = stat.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(total.saturating_sub(self.version_start.load(Ordering::Acquire))))
    }

    #[cfg(not(target_os = "linux"))]
    fn version_time(&self) -> Option<Duration> {
        None
    }
}

/// Threads that were left and may still work.
struct LeftThreads(Mutex<Vec<Weak<ThreadProgress>>>);

/// Left threads of the process.
static LEFT_THREADS: LeftThreads = LeftThreads(Mutex::new(Vec::new()));

impl LeftThreads {
    /// Counts a thread as left. Returns false if too many left threads still work.
    fn register(&self, progress: &Arc<ThreadProgress>) -> bool {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|progress| progress.strong_count() > 0);
        let has_room = left.len() < MAX_LEFT_THREADS;
        if has_room {
            left.push(Arc::downgrade(progress));
        }
        has_room
    }
}

/// A thread with one parser per language. It ends when this value is dropped, after the text that it parses.
pub(super) struct ParserThread {
    jobs: Sender<(Language, FileVersions)>,
    replies: Receiver<ParseReply>,
    progress: Arc<ThreadProgress>,
    /// Processor time beyond the budget after which the thread is left.
    grace: Duration,
}

impl ParserThread {
    pub fn spawn() -> std::io::Result<Self> {
        let (jobs, todo) = channel::<(Language, FileVersions)>();
        let (reply, replies) = channel();
        let progress = Arc::new(ThreadProgress::default());
        let own = Arc::clone(&progress);
        let thread = std::thread::Builder::new().name("parser".to_owned()).stack_size(THREAD_STACK_BYTES);
        thread.spawn(move || {
            own.register_thread();
            serve_jobs(&todo, &reply, &own);
        })?;
        Ok(Self { jobs, replies, progress, grace: LEAVING_GRACE })
    }

    /// Creates a thread that is dead.
    #[cfg(test)]
    pub fn dead() -> Self {
        Self { jobs: channel().0, replies: channel().1, progress: Arc::default(), grace: LEAVING_GRACE }
    }

    pub fn send(&self, language: Language, versions: FileVersions) {
        // A dead thread shows in its missing reply.
        let _ = self.jobs.send((language, versions));
    }

    /// Waits for the reply to the next version. Returns `None` if the thread works on it for longer than `time`; the
    /// thread must be left then.
    pub fn wait_for_reply(&self, time: Duration) -> Option<ParseReply> {
        let allowed = time.saturating_add(self.grace);
        let started = Instant::now();
        // The processor time grows no faster than the time.
        let mut patience = allowed;
        loop {
            match self.replies.recv_timeout(patience) {
                Ok(reply) => return Some(reply),
                Err(RecvTimeoutError::Disconnected) => return Some(ParseReply::Gone),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let is_late = match self.progress.version_time() {
                Some(spent) => spent > allowed,
                None => started.elapsed() > allowed.saturating_mul(UNKNOWN_TIME_FACTOR),
            };
            if is_late && LEFT_THREADS.register(&self.progress) {
                return None;
            }
            patience = LOOK_INTERVAL;
        }
    }

    /// Leaves the thread to itself. The log entry of its text stays open until the thread has ended, because the text may
    /// still exhaust the memory of the process.
    pub fn leave(self, logged: LoggedParse) {
        *self.progress.left_text.lock().unwrap_or_else(PoisonError::into_inner) = Some(logged);
    }
}

fn serve_jobs(jobs: &Receiver<(Language, FileVersions)>, reply: &Sender<ParseReply>, progress: &ThreadProgress) {
    let mut grammars: [Option<LanguageParser>; Language::ALL.len()] = Default::default();
    for (language, versions) in jobs {
        let grammar = grammars[language.index()].get_or_insert_with(|| LanguageParser::new(language));
        let mut last = None;
        for text in &versions {
            progress.begin_version();
            let Some(tree) = grammar.parse_version(text, last.take(), ParseBudget::for_bytes(text.len())) else {
                let _ = reply.send(ParseReply::TooComplex);
                break;
            };
            // The receiver may be gone; then the loop over jobs ends too.
            let _ = reply.send(ParseReply::Nodes(grammar.flatten_tree(&tree)));
            last = Some((&**text, tree));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_whose_step_does_not_end_is_left() {
        let (jobs, _todo) = channel();
        let (_reply, replies) = channel();
        let stuck = ParserThread { jobs, replies, progress: Arc::default(), grace: Duration::ZERO };
        assert!(stuck.wait_for_reply(Duration::ZERO).is_none());
        assert!(matches!(ParserThread::dead().wait_for_reply(Duration::ZERO), Some(ParseReply::Gone)));
    }

    #[test]
    fn few_threads_are_left_at_once() {
        let left = LeftThreads(Mutex::default());
        let mut threads: Vec<Arc<ThreadProgress>> = (0..MAX_LEFT_THREADS).map(|_| Arc::default()).collect();
        assert!(threads.iter().all(|thread| left.register(thread)));
        let another = Arc::default();
        assert!(!left.register(&another));
        threads.pop();
        assert!(left.register(&another), "a left thread has ended");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_processor_time_of_a_thread_is_seen_from_outside() {
        let progress = Arc::new(ThreadProgress::default());
        assert_eq!(progress.version_time(), None, "no thread has registered");
        let own = Arc::clone(&progress);
        let (told, seen) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            own.register_thread();
            own.begin_version();
            let begun = thread_time();
            while thread_time().saturating_sub(begun) < Duration::from_millis(5) {}
            told.send(()).expect("a receiver");
            let _ = ended.recv();
        });
        seen.recv().expect("the thread has worked");
        assert!(progress.version_time() >= Some(Duration::from_millis(4)), "{:?}", progress.version_time());
        drop(end);
        thread.join().expect("it ends");
    }
}
