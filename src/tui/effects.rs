//! Commands carried out on background threads; their results come back as messages.
//!
//! Each sort of work has a thread of its own, started when it is first needed: reading pages, writing decisions,
//! asking the runner, filtering. A thread that panics says so in a message; the cockpit goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;

use super::fixes::{FixOrder, FixPlan, Fixes};
use super::knowledge::Order;
use super::load::Loader;
use super::load_knowledge::{self, Librarian};
use super::message::{Asked, Command, Message, Subject, Tab, TriageLine, TriageOrder};
use super::terminal::Mailbox;
use crate::config::Ambient;
use crate::domain::{Actor, Disposition, FindingId, RunId, Scope, Source, TriageAction, WatchMode};
use crate::ledger::metrics::{Metrics, Selection};
use crate::policy;
use crate::report::stats;
use crate::runner::{
    Cancelled, FixRequest, Pausing, Reconciled, Requested, ReviewRequest, Runner, RunnerError, WatchState, parse_snooze,
};
use crate::store::triage::{self, Step};
use crate::store::{Changed, Store, StoreError, View, Watcher, Watching};

/// Names of threads whose panics are caught: the terminal stays as it is.
pub const WORKER: &str = "revdeck-cockpit-";

/// Hands commands to their threads.
pub struct Effects {
    messages: Mailbox,
    reader: Sender<Read>,
    writer: Sender<TriageOrder>,
    runner: Sender<Ask>,
    /// For what must not wait for the runner's other work.
    control: Sender<Ask>,
    filter: Sender<Command>,
    stats: Sender<Arc<View>>,
    knowledge: Sender<(Order, Arc<View>)>,
}

/// A selection has come to rest when it has not moved for so long: well below what a person waits for.
const AT_REST: Duration = Duration::from_millis(60);

/// The most that figures are behind the store while it changes, beside the time that counting takes.
const LONGEST_REST: Duration = Duration::from_secs(3);

enum Read {
    Page { view: Arc<View>, subject: Subject, tab: Tab },
    Files { run: String },
    Reported { run: String },
}

enum Ask {
    Reconcile,
    Review(Option<Scope>),
    Cancel(RunId),
    Pause(RunId),
    Resume(RunId),
    Watch,
    Snooze(String),
    PlanFix(Vec<FindingId>),
    Fix(FixOrder),
}

impl Effects {
    /// Starts the threads. The store is read at once, and what dead processes left is set right.
    /// `control` is a second runner; without one everything is done by the first.
    pub fn start(
        loader: Loader,
        runner: Runner,
        control: Option<Runner>,
        (ambient, zone): (Ambient, TimeZone),
        messages: Mailbox,
    ) -> Self {
        let written = Arc::new(AtomicU64::new(0));
        let librarian = Librarian::new(&runner);
        let (store, counted) = (runner.store.clone(), runner.store.clone());
        let (reader, reads) = channel();
        let (writer, orders) = channel();
        let (asker, asks) = channel();
        let (filter, filters) = channel();
        let send = messages.clone();
        let counter = Arc::clone(&written);
        let watched = store.clone();
        worker("store", messages.clone(), move || watch(&watched, &counter, &send));
        let send = messages.clone();
        worker("pages", messages.clone(), move || read(loader, &reads, &send));
        let send = messages.clone();
        worker("triage", messages.clone(), move || write(&store, &ambient, &orders, &written, &send));
        let send = messages.clone();
        worker("runner", messages.clone(), move || ask(&runner, &asks, &send));
        let control = match control {
            Some(runner) => {
                let (control, asks) = channel();
                let send = messages.clone();
                worker("control", messages.clone(), move || ask(&runner, &asks, &send));
                control
            }
            None => asker.clone(),
        };
        let send = messages.clone();
        worker("filter", messages.clone(), move || sift(&filters, &send));
        let (stats, views) = channel();
        let send = messages.clone();
        worker("stats", messages.clone(), move || count(&counted, &zone, &views, &send));
        let (knowledge, orders) = channel();
        let send = messages.clone();
        let (touched, touches) = channel();
        worker("knowledge", messages.clone(), move || load_knowledge::serve(&librarian, &orders, touched, &send));
        let send = messages.clone();
        worker("learned", messages.clone(), move || load_knowledge::tell_changes(&touches, &send));
        let effects = Self { messages, reader, writer, runner: asker, control, filter, stats, knowledge };
        effects.give(&effects.runner, Ask::Reconcile);
        effects
    }

    /// Hands a command over; those that need the terminal are not for this.
    pub fn run(&self, command: Command, view: &Arc<View>) {
        match command {
            Command::Load { subject, tab } => {
                self.give(&self.reader, Read::Page { view: Arc::clone(view), subject, tab });
            }
            Command::LoadFiles { run } => self.give(&self.reader, Read::Files { run }),
            Command::LoadReported { run } => self.give(&self.reader, Read::Reported { run }),
            command @ Command::Filter { .. } => self.give(&self.filter, command),
            Command::Stats(view) => self.give(&self.stats, view),
            Command::Knowledge(order) => self.give(&self.knowledge, (order, Arc::clone(view))),
            Command::Triage(order) => self.give(&self.writer, order),
            Command::Review(scope) => self.give(&self.runner, Ask::Review(scope)),
            Command::Cancel(run) => self.give(&self.control, Ask::Cancel(run)),
            Command::Pause(run) => self.give(&self.control, Ask::Pause(run)),
            Command::Resume(run) => self.give(&self.control, Ask::Resume(run)),
            Command::Watch => self.give(&self.control, Ask::Watch),
            Command::Snooze(text) => self.give(&self.control, Ask::Snooze(text)),
            Command::PlanFix(findings) => self.give(&self.control, Ask::PlanFix(findings)),
            Command::Fix(order) => self.give(&self.control, Ask::Fix(order)),
            Command::Copy(_) | Command::Edit { .. } | Command::Suspend | Command::Redraw | Command::Quit(_) => {}
        }
    }

    fn give<T>(&self, lane: &Sender<T>, work: T) {
        if lane.send(work).is_err() {
            // The thread has panicked and has said so.
            let _ = self
                .messages
                .send(Message::StoreTrouble("a part of the cockpit has stopped; start it again".to_owned()));
        }
    }
}

fn worker(name: &str, messages: Mailbox, work: impl FnOnce() + Send + 'static) {
    let named = name.to_owned();
    let spawned = thread::Builder::new().name(format!("{WORKER}{name}")).spawn(move || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            let _ = messages.send(Message::StoreTrouble(format!("internal error in {named}: {text}")));
        }
    });
    if let Err(error) = spawned {
        tracing::error!(%error, name, "no thread");
    }
}

/// Tells who watches when that has changed.
struct WatchTeller {
    store: Store,
    messages: Mailbox,
    known: Mutex<WatchState>,
    /// Somebody waits for the end of the watcher there is: one that is killed changes no file.
    awaited: AtomicBool,
}

impl WatchTeller {
    fn tell(self: &Arc<Self>) {
        let Ok(state) = WatchState::of(&self.store, Ambient::system().now()) else { return };
        let watched = state.watcher != Watcher::None;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != state {
            known.clone_from(&state);
            let _ = self.messages.send(Message::Watch(state));
        }
        drop(known);
        if watched && !self.awaited.swap(true, Ordering::AcqRel) {
            let teller = Arc::clone(self);
            worker("watcher", self.messages.clone(), move || {
                let waited = teller.store.await_watcher_end();
                teller.awaited.store(false, Ordering::Release);
                match waited {
                    Ok(()) => teller.tell(),
                    Err(error) => tracing::warn!(%error, "the end of the watcher is not seen"),
                }
            });
        }
    }
}

/// The store as it is, and again whenever it changes.
fn watch(store: &Store, written: &AtomicU64, messages: &Mailbox) {
    let teller = Arc::new(WatchTeller {
        store: store.clone(),
        messages: messages.clone(),
        known: Mutex::default(),
        awaited: AtomicBool::new(false),
    });
    let mut tail = store.tail();
    let mut known: Option<Arc<View>> = None;
    let mut fixes = 0;
    let (mut working, mut pulses) = (Vec::new(), Vec::new());
    let mut changed = Changed::Store;
    loop {
        if changed == Changed::Store {
            if !read_view(store, written, messages, &mut known) {
                return;
            }
            working = known.as_deref().map_or_else(Vec::new, at_work);
            if !read_fixes(store, messages, &mut fixes) {
                return;
            }
        }
        teller.tell();
        let beating = store.pulses(&working);
        if beating != pulses {
            pulses.clone_from(&beating);
            if messages.send(Message::Pulses(beating)).is_err() {
                return;
            }
        }
        changed = tail.wait();
        if changed == Changed::Stopped {
            return;
        }
    }
}

/// The runs whose records say that somebody works on them.
fn at_work(view: &View) -> Vec<RunId> {
    let rows = (0..view.run_count()).map(|index| view.run(index));
    rows.filter(|run| run.status.is_working()).filter_map(|run| run.id.parse().ok()).collect()
}

/// Reads what changed and tells it. False when nobody listens any more.
fn read_view(store: &Store, written: &AtomicU64, messages: &Mailbox, known: &mut Option<Arc<View>>) -> bool {
    let before = written.load(Ordering::Acquire);
    let read = match known.as_ref() {
        None => store.view(),
        Some(view) => store.refresh(view),
    };
    match read {
        Ok(view) if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, &view)) => true,
        Ok(view) => {
            *known = Some(Arc::clone(&view));
            messages.send(Message::Viewed { view, written: before }).is_ok()
        }
        Err(error) => messages.send(Message::StoreTrouble(error.to_string())).is_ok(),
    }
}

/// The fixes, when there is something new about them. False when nobody listens any more.
fn read_fixes(store: &Store, messages: &Mailbox, known: &mut u64) -> bool {
    let length = store.fixes_bytes();
    if length == *known {
        return true;
    }
    match store.fixes() {
        Ok(fixes) => {
            *known = length;
            messages.send(Message::Fixes(Arc::new(Fixes::new(fixes)))).is_ok()
        }
        Err(error) => messages.send(Message::StoreTrouble(error.to_string())).is_ok(),
    }
}

/// Pages, the newest wish first: what was wished for before it is no longer on the screen.
fn read(mut loader: Loader, reads: &Receiver<Read>, messages: &Mailbox) {
    let mut last: Option<Tab> = None;
    while let Ok(first) = reads.recv() {
        let (mut page, mut files, mut reported) = (None, None, Vec::new());
        let mut wish = Some(first);
        // Another tab is shown at once. While the selection moves, only the page where it comes to rest is read: the
        // others would be gone before anybody saw them, and a held key would send the terminal pages instead of rows.
        let moves = matches!(&wish, Some(Read::Page { tab, .. }) if last == Some(*tab));
        loop {
            match wish {
                Some(Read::Page { view, subject, tab }) => page = Some((view, subject, tab)),
                Some(Read::Files { run }) => files = Some(run),
                Some(Read::Reported { run }) => reported.push(run),
                None => break,
            }
            wish = if moves { reads.recv_timeout(AT_REST).ok() } else { reads.try_recv().ok() };
        }
        for run in reported {
            let findings = loader.reported(&run);
            let _ = messages.send(Message::Reported { run, findings });
        }
        last = page.as_ref().map(|(.., tab)| *tab).or(last);
        if let Some((view, subject, tab)) = page {
            loader.load(&view, &subject, tab, &mut |loaded| {
                let _ = messages.send(Message::Loaded { subject: subject.clone(), tab, loaded: Box::new(loaded) });
            });
        }
        if let Some(run) = files {
            let files = loader.files(&run);
            let _ = messages.send(Message::Files { run, files });
        }
    }
}

/// Decisions: stored first, told after.
fn write(store: &Store, ambient: &Ambient, orders: &Receiver<TriageOrder>, written: &AtomicU64, messages: &Mailbox) {
    while let Ok(order) = orders.recv() {
        let result = decide(store, ambient, &order);
        let written = match &result {
            Ok(Step::Decided(_)) => written.fetch_add(1, Ordering::AcqRel) + 1,
            _ => written.load(Ordering::Acquire),
        };
        if messages.send(Message::Triaged { order, result, written }).is_err() {
            return;
        }
    }
}

fn decide(store: &Store, ambient: &Ambient, order: &TriageOrder) -> Result<Step, String> {
    let now = ambient.now();
    let step = match order {
        TriageOrder::Set(lines) => {
            let group = ambient.run_id().as_str().replacen("ar_", "t_", 1);
            // Somebody else may have decided since the screen was drawn: what counts is what the store says now.
            let disposition = |log: &[Disposition], line: &TriageLine| {
                let previous = triage::status_after(log, &line.finding);
                policy::may_set(Actor::User, previous, line.status).map_err(|refusal| Refused(refusal.to_string()))?;
                Ok(Disposition {
                    finding_id: line.finding.clone(),
                    status: line.status,
                    previous,
                    actor: Actor::User,
                    reason: line.reason.clone(),
                    at: now,
                    action: TriageAction::Set,
                    group: group.clone(),
                    run_id: None,
                })
            };
            let decided = store.decide(|log| lines.iter().map(|line| disposition(log, line)).collect::<Result<_, _>>());
            decided.map(Step::Decided)
        }
        TriageOrder::Undo => store.undo(now).map_err(Refused::from),
        TriageOrder::Redo => store.redo(now).map_err(Refused::from),
    };
    step.map_err(|Refused(why)| why)
}

/// Why a decision was not recorded.
struct Refused(String);

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

fn ask(runner: &Runner, asks: &Receiver<Ask>, messages: &Mailbox) {
    while let Ok(wish) = asks.recv() {
        let message = match wish {
            Ask::Reconcile => {
                let reconciled = runner.reconcile();
                // A store that cannot be written is told when somebody wants to write.
                reconciled.trouble.iter().for_each(|trouble| tracing::warn!(%trouble, "not set right"));
                Message::Reconciled(Reconciled { trouble: Vec::new(), ..reconciled }.summary())
            }
            Ask::Review(scope) => {
                let request = ReviewRequest { scope, reviewer: None, source: Source::Cockpit, force: false };
                Message::Requested(match runner.request(&request) {
                    Ok(requested) => Ok(Asked {
                        nothing: matches!(requested.decision.action, policy::Action::Skip),
                        run: Some(requested.run.run_id.as_str().to_owned()),
                        text: told(&requested),
                    }),
                    Err(error) => Err(error.to_string()),
                })
            }
            Ask::Cancel(run) => {
                let result = runner.cancel(&run, "from the cockpit").map_err(|error| error.to_string()).map(|how| {
                    match how {
                        Cancelled::BeforeStart => "cancelled before it began",
                        Cancelled::ByWorker => "cancelled; what it found stays",
                        Cancelled::Killed => "the worker did not answer and was ended; what it found stays",
                        Cancelled::AlreadyOver => "it was over already",
                    }
                    .to_owned()
                });
                Message::Cancelled { run: run.as_str().to_owned(), result }
            }
            Ask::Pause(run) => Message::Paused(told_pausing(runner.pause(&run), "pauses as soon as the answer is in")),
            Ask::Watch => Message::Watched(watch_or_not(runner)),
            Ask::Snooze(text) => Message::Watched(snooze(runner, &text)),
            Ask::PlanFix(findings) => Message::FixPlanned(
                runner.fixer_of(&findings).map(|reviewer| FixPlan { findings, reviewer }).map_err(in_words),
            ),
            Ask::Fix(order) => {
                let done = match &order {
                    FixOrder::Make(findings) => {
                        runner.fix(&FixRequest { findings: findings.clone(), reviewer: None, source: Source::Cockpit })
                    }
                    FixOrder::Apply(fix) => runner.apply_fix(fix),
                    FixOrder::Undo(fix) => runner.undo_fix(fix),
                    FixOrder::Drop(fix) => runner.drop_fix(fix),
                };
                Message::FixDone(done.map(Box::new).map_err(in_words))
            }
            Ask::Resume(run) => Message::Paused(told_pausing(runner.resume(&run), "goes on")),
        };
        if messages.send(message).is_err() {
            return;
        }
    }
}

/// Starts a watcher, or ends the one there is; what came of it.
fn watch_or_not(runner: &Runner) -> Result<String, String> {
    let watcher = runner.store.watcher().map_err(|error| error.to_string())?;
    if watcher != Watcher::None {
        runner.stop_watch().map_err(|error| error.to_string())?;
        return Ok("the watcher has ended".to_owned());
    }
    match runner.start_watch() {
        Ok(Watcher::Known(Watching { mode: WatchMode::Polling { reason }, .. })) => {
            Ok(format!("watching by looking every so often: {reason}"))
        }
        Ok(Watcher::Known(_) | Watcher::Unknown) => {
            Ok("watching: what changes is reviewed, also without the cockpit".to_owned())
        }
        Ok(Watcher::None) => Err(format!("nobody watches: {} says why", runner.watch_log_path().display())),
        Err(error) => Err(format!("nobody watches: {error}")),
    }
}

fn snooze(runner: &Runner, text: &str) -> Result<String, String> {
    let zone = jiff::tz::TimeZone::system();
    let until = parse_snooze(text, runner.ambient.now(), &zone)?;
    runner.store.snooze(until).map_err(|error| error.to_string())?;
    Ok(match until {
        Some(until) => format!("snoozed until {}", until.to_zoned(zone).strftime("%H:%M")),
        None => "not snoozed any more".to_owned(),
    })
}

/// An error about a fix, with what to do about it.
fn in_words(error: RunnerError) -> String {
    match &error {
        RunnerError::Fix(fix) => match fix.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        },
        _ => error.to_string(),
    }
}

/// What came of pausing a run or of letting it go on; `done` when it is on record.
fn told_pausing(result: Result<Pausing, RunnerError>, done: &str) -> Result<String, String> {
    match result {
        Ok(Pausing::Recorded) => Ok(done.to_owned()),
        Ok(Pausing::Already) => Ok("it was so already".to_owned()),
        Ok(Pausing::Over) => Ok("it was over already".to_owned()),
        Ok(Pausing::NoTurns) => Err("this reviewer asks no model: it has nothing to pause".to_owned()),
        Err(error) => Err(format!("nothing changed: {error}")),
    }
}

/// What became of a wish, in a sentence.
fn told(requested: &Requested) -> String {
    let (scope, reason) = (&requested.run.scope, &requested.decision.reason);
    match &requested.decision.action {
        policy::Action::Launch => format!("reviewing {scope}"),
        policy::Action::Adopt { .. } => format!("{scope} is being reviewed already: {reason}"),
        policy::Action::Reuse { .. } => format!("{scope} has been reviewed already: {reason}"),
        policy::Action::Resume { .. } => format!("reviewing {scope}: {reason}"),
        policy::Action::Skip => reason.clone(),
    }
}

/// Figures. Whoever changes the store all the time does not keep a processor busy with counting: between two counts
/// there is a rest of three times as long as one takes.
fn count(store: &Store, zone: &TimeZone, views: &Receiver<Arc<View>>, messages: &Mailbox) {
    while let Ok(first) = views.recv() {
        let Some(view) = std::iter::once(first).chain(views.try_iter()).last() else { continue };
        let began = Instant::now();
        let figures = stats::gather(store, &view, &Selection::default(), zone);
        // The page shows no single run.
        let figures = figures.map(|metrics| Arc::new(Metrics { runs: Vec::new(), ..metrics }));
        if messages.send(Message::Stats(figures.map_err(|error| error.to_string()))).is_err() {
            return;
        }
        thread::sleep((began.elapsed() * 3).min(LONGEST_REST));
    }
}

/// Filters; of several wishes only the newest matters.
fn sift(filters: &Receiver<Command>, messages: &Mailbox) {
    while let Ok(first) = filters.recv() {
        let Some(Command::Filter { serial, view, filter, known }) =
            std::iter::once(first).chain(filters.try_iter()).last()
        else {
            continue;
        };
        let rows = filter.rows(&view, &known);
        if messages.send(Message::Filtered { serial, view, rows }).is_err() {
            return;
        }
    }
}
