//! Loads the data of views on threads: one thread for each kind of load, started with the first request for it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;

use super::ViewReply;
use crate::store::Store;
use crate::tui::effects::{describe_panic, spawn_worker};
use crate::tui::event_source::MessageSender;
use crate::tui::message::AppMessage;

/// Longest pause between two loads of a kind while requests keep coming, as a store that changes makes them.
const MAX_PAUSE: Duration = Duration::from_secs(3);

/// Error of a load for which no thread could be started.
const NO_THREAD: &str = "the system starts no further thread; the next read tries again";

/// Data of a view, which takes time to read or to compute. The type of the load is its kind.
pub trait ViewLoad: fmt::Debug + Any + Send {
    /// Loads the data. The open views get it in a [`ViewReply::Loaded`]; the one that wants it knows it by its type.
    fn load(self: Box<Self>, inputs: &LoadInputs) -> Box<dyn Any + Send>;
}

/// Load that gave no data, because of an internal error or for want of a thread.
#[derive(Debug)]
pub struct FailedLoad {
    /// Type of the load.
    pub kind: TypeId,
    /// Error, for the view to show.
    pub error: String,
}

impl FailedLoad {
    /// Returns true if the load was of this type.
    pub fn is_of<L: ViewLoad>(&self) -> bool {
        self.kind == TypeId::of::<L>()
    }
}

/// Store that loads read, and the time zone.
#[derive(Clone)]
pub struct LoadInputs {
    pub store: Store,
    /// Time zone of the displayed times.
    pub zone: TimeZone,
}

/// Threads of the kinds that were requested.
pub struct LoadThreads {
    inputs: LoadInputs,
    messages: MessageSender,
    threads: Mutex<HashMap<TypeId, Sender<Box<dyn ViewLoad>>>>,
}

impl LoadThreads {
    pub fn new(inputs: LoadInputs, messages: MessageSender) -> Self {
        Self { inputs, messages, threads: Mutex::default() }
    }

    /// Sends a load to the thread of its kind; one that could not be started, or has ended, is started again. If that is not
    /// possible either, the load is answered with a [`FailedLoad`], and the next load tries again.
    pub fn send(&self, load: Box<dyn ViewLoad>) {
        self.send_or_start(load, || self.start_thread());
    }

    /// Does what [`LoadThreads::send`] does, with this start of a thread. The receiver of a thread that was not started is gone.
    fn send_or_start(&self, load: Box<dyn ViewLoad>, start: impl Fn() -> Sender<Box<dyn ViewLoad>>) {
        let kind = kind_of(&*load);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = threads.entry(kind).or_insert_with(&start);
        let Err(SendError(load)) = thread.send(load) else { return };
        *thread = start();
        if thread.send(load).is_err() {
            let failed = FailedLoad { kind, error: NO_THREAD.to_owned() };
            let _ = self.messages.send(AppMessage::View(ViewReply::LoadFailed(failed)));
        }
    }

    fn start_thread(&self) -> Sender<Box<dyn ViewLoad>> {
        let (sender, loads) = channel();
        let (inputs, messages) = (self.inputs.clone(), self.messages.clone());
        spawn_worker("view-load", self.messages.clone(), move || serve_loads(&inputs, &loads, &messages));
        sender
    }
}

fn kind_of(load: &(dyn ViewLoad + 'static)) -> TypeId {
    let any: &(dyn Any + 'static) = load;
    Any::type_id(any)
}

/// Executes the newest of the pending loads. A load that panics is answered with a [`FailedLoad`], and the thread goes on.
/// After each load it sleeps three times as long as that took (at most [`MAX_PAUSE`]), so that a busy store does not keep a
/// processor busy.
fn serve_loads(inputs: &LoadInputs, loads: &Receiver<Box<dyn ViewLoad>>, messages: &MessageSender) {
    while let Ok(first) = loads.recv() {
        let Some(newest) = std::iter::once(first).chain(loads.try_iter()).last() else { continue };
        let began = Instant::now();
        let kind = kind_of(&*newest);
        let reply = match catch_unwind(AssertUnwindSafe(|| newest.load(inputs))) {
            Ok(data) => ViewReply::Loaded(data),
            Err(panic) => {
                let error = format!("internal error: {}", describe_panic(&*panic));
                ViewReply::LoadFailed(FailedLoad { kind, error })
            }
        };
        if messages.send(AppMessage::View(reply)).is_err() {
            return;
        }
        thread::sleep((began.elapsed() * 3).min(MAX_PAUSE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RepoInfo;
    use crate::tui::event_source::EventSource;

    #[derive(Debug)]
    struct Doubled(u32);

    impl ViewLoad for Doubled {
        fn load(self: Box<Self>, _inputs: &LoadInputs) -> Box<dyn Any + Send> {
            Box::new(self.0 * 2)
        }
    }

    #[derive(Debug)]
    struct Nothing;

    impl ViewLoad for Nothing {
        fn load(self: Box<Self>, _inputs: &LoadInputs) -> Box<dyn Any + Send> {
            Box::new(())
        }
    }

    /// Load that panics if it is told to.
    #[derive(Debug)]
    struct Fragile {
        breaks: bool,
    }

    impl ViewLoad for Fragile {
        fn load(self: Box<Self>, _inputs: &LoadInputs) -> Box<dyn Any + Send> {
            assert!(!self.breaks, "no such\u{1b}[2J figure");
            Box::new("data")
        }
    }

    fn inputs(folder: &tempfile::TempDir) -> LoadInputs {
        let info = RepoInfo { version: 1, key: "k".into(), name: "billing".into(), common_dir: "/billing".into() };
        LoadInputs { store: Store::open(folder.path(), info).expect("a store"), zone: TimeZone::UTC }
    }

    #[test]
    fn the_newest_of_the_pending_loads_of_a_kind_is_executed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut events, _typed, messages) = EventSource::piped();
        let (sender, loads) = channel::<Box<dyn ViewLoad>>();
        for number in [1, 2, 21] {
            sender.send(Box::new(Doubled(number))).expect("a receiver");
        }
        drop(sender);
        serve_loads(&inputs(&folder), &loads, &messages);
        let Some(AppMessage::View(ViewReply::Loaded(data))) = events.try_next() else { panic!("no reply") };
        assert_eq!(data.downcast_ref::<u32>(), Some(&42));
        assert!(events.try_next().is_none());
    }

    fn next_reply(events: &mut EventSource) -> ViewReply {
        match events.wait_next(Some(Duration::from_secs(60))) {
            Some(AppMessage::View(reply)) => reply,
            other => panic!("no reply: {other:?}"),
        }
    }

    #[test]
    fn a_load_that_panics_says_so_to_its_view_and_the_next_one_is_executed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut events, _typed, messages) = EventSource::piped();
        let threads = LoadThreads::new(inputs(&folder), messages);
        for _ in 0..2 {
            threads.send(Box::new(Fragile { breaks: true }));
            let reply = next_reply(&mut events);
            let ViewReply::LoadFailed(failed) = &reply else { panic!("{reply:?}") };
            assert!(failed.is_of::<Fragile>() && !failed.is_of::<Doubled>());
            assert_eq!(failed.error, "internal error: no such\u{fffd}[2J figure");
            threads.send(Box::new(Fragile { breaks: false }));
            let reply = next_reply(&mut events);
            assert!(matches!(&reply, ViewReply::Loaded(data) if data.is::<&str>()), "{reply:?}");
        }
    }

    #[test]
    fn a_thread_that_has_ended_is_started_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut events, _typed, messages) = EventSource::piped();
        let threads = LoadThreads::new(inputs(&folder), messages);
        let (ended, _) = channel();
        threads.threads.lock().expect("a lock").insert(TypeId::of::<Doubled>(), ended);
        threads.send(Box::new(Doubled(21)));
        let reply = next_reply(&mut events);
        assert!(matches!(&reply, ViewReply::Loaded(data) if data.downcast_ref() == Some(&42_u32)), "{reply:?}");
    }

    #[test]
    fn a_load_without_a_thread_says_so_to_its_view_and_the_next_one_tries_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut events, _typed, messages) = EventSource::piped();
        let threads = LoadThreads::new(inputs(&folder), messages);
        for _ in 0..2 {
            threads.send_or_start(Box::new(Doubled(1)), || channel().0);
            let reply = next_reply(&mut events);
            let ViewReply::LoadFailed(failed) = &reply else { panic!("{reply:?}") };
            assert!(failed.is_of::<Doubled>() && failed.error == NO_THREAD, "{failed:?}");
        }
        threads.send(Box::new(Doubled(21)));
        let reply = next_reply(&mut events);
        assert!(matches!(&reply, ViewReply::Loaded(data) if data.downcast_ref() == Some(&42_u32)), "{reply:?}");
    }

    #[test]
    fn each_kind_has_its_own_thread() {
        let folder = tempfile::tempdir().expect("a folder");
        let (_events, _typed, messages) = EventSource::piped();
        let threads = LoadThreads::new(inputs(&folder), messages);
        threads.send(Box::new(Doubled(1)));
        threads.send(Box::new(Nothing));
        threads.send(Box::new(Doubled(2)));
        assert_eq!(threads.threads.lock().expect("a lock").len(), 2);
    }
}
