//! Executes commands on background threads; results return as messages.
//!
//! - Each kind of work has its own thread, started with the cockpit: following the store, reading pages, storing
//!   decisions, runner requests, filtering, copying, comparing the code with what was reviewed, statistics, knowledge.
//! - A panicking thread reports the panic in a message; the cockpit continues.

mod dead_workers;
mod store_follower;
mod store_writes;

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use store_follower::follow_store;
use store_writes::{StoreWrite, serve_writes};

use super::app::{FileSource, RunSubject, sort_files};
use super::clipboard;
use super::custom_commands::{CommandCall, run_in_background};
use super::diff::DiffRequest;
use super::event_source::MessageSender;
use super::finding_order::FindingQuery;
use super::highlight::PartlyParsedTexts;
use super::message::{AppCommand, AppMessage, CopyOrder, DetailSubject, RunFile, RunSubjectQuery, Tab};
use super::page_loader::PageLoader;
use super::repository_presence::RepositoryPresence;
use super::runner_requests::{RunnerRequest, serve_runner_requests};
use super::views::ViewWorkers;
use crate::config::ClockAndIds;
use crate::domain::text::sanitize_line;
use crate::domain::{FindingId, Scope, Time, ViewedFile};
use crate::git::Repo;
use crate::masking::Mask;
use crate::report::render_prompt;
use crate::runner::{ScopeComparer, Services};
use crate::store::{Store, StoreView};

/// Name prefix of the threads whose panics are caught, so that a panic does not reset the terminal.
pub const WORKER: &str = "revdeck-cockpit-";

/// Dispatches commands to worker threads.
pub struct Effects {
    messages: MessageSender,
    /// Root of the working tree, in which the user's commands run.
    root: PathBuf,
    reader: Sender<PageRequest>,
    writer: Sender<StoreWrite>,
    requests: Sender<RunnerRequest>,
    /// Runner requests that must not wait behind other runner work.
    control: Sender<RunnerRequest>,
    filter: Sender<ListRequest>,
    copier: Sender<ClipboardRequest>,
    historian: Sender<Vec<RunSubjectQuery>>,
    comparer: Sender<(u64, Vec<Scope>)>,
    views: ViewWorkers,
}

/// Sentence about a thread that takes no work any more.
const PART_STOPPED: &str = "a part of the cockpit has stopped; start it again";

/// Longest time that the end waits for decisions and comments on their way to the store. Each takes some milliseconds.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);

/// Time without movement after which a selection counts as settled; well below what a person notices.
const SELECTION_DEBOUNCE: Duration = Duration::from_millis(60);

enum PageRequest {
    Page { view: Arc<StoreView>, subject: DetailSubject, tab: Tab, mask: Mask },
    Files { view: Arc<StoreView>, run: String },
    ReviewedFiles { view: Arc<StoreView>, runs: Vec<String> },
    Reported { run: String },
    Diff(DiffRequest),
    Viewed(ViewedFile),
    ViewedChanges(Vec<ViewedFile>),
    MarkFiles { files: Vec<RunFile>, viewed: bool, at: Time },
}

enum ListRequest {
    Findings { serial: u64, view: Arc<StoreView>, query: FindingQuery },
    Files { serial: u64, view: Arc<StoreView>, source: FileSource },
}

enum ClipboardRequest {
    Text(CopyOrder),
    /// Findings, by id, as a prompt for a coding agent.
    Prompt {
        view: Arc<StoreView>,
        findings: Vec<String>,
    },
}

impl Effects {
    /// Starts the threads, reads the store and repairs what dead processes left behind. `control` is a second runner
    /// for urgent requests; without it, the first runner handles them too.
    pub fn start(
        loader: PageLoader,
        services: Services,
        control: Option<Services>,
        (ambient, zone): (ClockAndIds, TimeZone),
        messages: MessageSender,
    ) -> Self {
        let written = Arc::new(AtomicU64::new(0));
        let local = zone.clone();
        let views = ViewWorkers::start(&services, zone, &messages);
        let (root, store) = (services.repo.root(), services.store.clone());
        let (repo, writer_repo) = (services.repo.reopen().ok(), services.repo.reopen().ok());
        let history_repo = services.repo.reopen().ok();
        let looker = services.open_again();
        let (reader, reads) = channel();
        let (writer, orders) = channel();
        let (asker, asks) = channel();
        let (filter, filters) = channel();
        let send = messages.clone();
        let counter = Arc::clone(&written);
        let (watched, copied) = (store.clone(), store.clone());
        let presence = RepositoryPresence::new(&services.repo, messages.clone());
        let present = Arc::clone(&presence);
        spawn_worker("store", messages.clone(), move || {
            follow_store((repo.as_ref(), &present), (&watched, &local), &counter, &send);
        });
        let (send, present) = (messages.clone(), Arc::clone(&presence));
        spawn_worker("pages", messages.clone(), move || serve_pages(loader, &reads, &present, &send));
        let send = messages.clone();
        spawn_worker("triage", messages.clone(), move || {
            serve_writes((writer_repo.as_ref(), &store), &ambient, &orders, &written, &send);
        });
        let (send, present) = (messages.clone(), Arc::clone(&presence));
        spawn_worker("runner", messages.clone(), move || serve_runner_requests(&services, &asks, &present, &send));
        let control = match control {
            Some(services) => {
                let (control, asks) = channel();
                let (send, present) = (messages.clone(), Arc::clone(&presence));
                spawn_worker("control", messages.clone(), move || {
                    serve_runner_requests(&services, &asks, &present, &send);
                });
                control
            }
            None => asker.clone(),
        };
        let send = messages.clone();
        spawn_worker("filter", messages.clone(), move || serve_lists(&filters, &send));
        let (copier, copies) = channel();
        let send = messages.clone();
        spawn_worker("clipboard", messages.clone(), move || serve_copies(&copied, &copies, &send));
        let send = messages.clone();
        let (historian, queries) = channel();
        spawn_worker("history", messages.clone(), move || serve_run_subjects(history_repo.as_ref(), &queries, &send));
        let (comparer, wanted) = channel();
        if let Some(services) = looker {
            let send = messages.clone();
            spawn_worker("comparer", messages.clone(), move || serve_comparisons(&services, &wanted, &presence, &send));
        }
        let effects = Self {
            messages,
            root,
            reader,
            writer,
            requests: asker,
            control,
            filter,
            copier,
            historian,
            comparer,
            views,
        };
        effects.send_to(&effects.requests, RunnerRequest::Reconcile);
        effects
    }

    /// Sends a command to its worker thread. Commands that need the terminal are ignored here.
    pub fn dispatch(&self, command: AppCommand, view: &Arc<StoreView>) {
        match command {
            AppCommand::Load { subject, tab } => {
                self.send_to(&self.reader, PageRequest::Page { view: Arc::clone(view), subject, tab, mask: Mask::On });
            }
            AppCommand::Reveal { subject, tab } => {
                self.send_to(&self.reader, PageRequest::Page { view: Arc::clone(view), subject, tab, mask: Mask::Off });
            }
            AppCommand::Diff(request) => self.send_to(&self.reader, PageRequest::Diff(request)),
            AppCommand::WriteFinding { finding, rewrites } => {
                self.send_to(&self.control, RunnerRequest::WriteFinding { finding, rewrites });
            }
            AppCommand::MarkViewed(mark) => self.send_to(&self.reader, PageRequest::Viewed(mark)),
            AppCommand::MarkChanges(marks) => self.send_to(&self.reader, PageRequest::ViewedChanges(marks)),
            AppCommand::MarkFiles { files, viewed, at } => {
                self.send_to(&self.reader, PageRequest::MarkFiles { files, viewed, at });
            }
            AppCommand::LoadFiles { run } => {
                self.send_to(&self.reader, PageRequest::Files { view: Arc::clone(view), run })
            }
            AppCommand::LoadReviewedFiles { runs } => {
                self.send_to(&self.reader, PageRequest::ReviewedFiles { view: Arc::clone(view), runs });
            }
            AppCommand::LoadRunSubjects(queries) => self.send_to(&self.historian, queries),
            AppCommand::LoadReported { run } => self.send_to(&self.reader, PageRequest::Reported { run }),
            AppCommand::Filter { serial, view, query } => {
                self.send_to(&self.filter, ListRequest::Findings { serial, view, query });
            }
            AppCommand::ListFiles { serial, view, source } => {
                self.send_to(&self.filter, ListRequest::Files { serial, view, source });
            }
            AppCommand::View(request) => self.report_unless(self.views.send(request, view)),
            AppCommand::Triage(order) => self.send_to(&self.writer, StoreWrite::Triage(order)),
            AppCommand::SnoozeFindings { findings, wish } => {
                self.send_to(&self.writer, StoreWrite::Snooze { findings, wish });
            }
            AppCommand::RateFindings { findings, wish } => {
                self.send_to(&self.writer, StoreWrite::Rate { findings, wish });
            }
            AppCommand::Note { finding, text } => self.send_to(&self.writer, StoreWrite::Note { finding, text }),
            AppCommand::Review { scope, reviewer, force } => {
                self.send_to(&self.requests, RunnerRequest::Review { scope, reviewer, force });
            }
            // Without its thread, nothing is known, which the page says.
            AppCommand::CompareScopes { epoch, scopes } => drop(self.comparer.send((epoch, scopes))),
            AppCommand::ReviewOnOpen => self.send_to(&self.requests, RunnerRequest::ReviewOnOpen),
            AppCommand::Cancel(run) => self.send_to(&self.control, RunnerRequest::Cancel(run)),
            AppCommand::Pause(run) => self.send_to(&self.control, RunnerRequest::Pause(run)),
            AppCommand::Resume(run) => self.send_to(&self.control, RunnerRequest::Resume(run)),
            AppCommand::Sync => self.send_to(&self.control, RunnerRequest::Sync),
            // The follower belongs to the thread of this lane.
            AppCommand::FollowTeam => self.send_to(&self.requests, RunnerRequest::FollowTeam),
            AppCommand::Watch => self.send_to(&self.control, RunnerRequest::Watch),
            AppCommand::Snooze(text) => self.send_to(&self.control, RunnerRequest::Snooze(text)),
            AppCommand::SaveFilter(change) => self.send_to(&self.control, RunnerRequest::SaveFilter(change)),
            AppCommand::KeepTheme(name) => self.send_to(&self.control, RunnerRequest::KeepTheme(name)),
            AppCommand::PlanFix(findings) => self.send_to(&self.control, RunnerRequest::PlanFix(findings)),
            AppCommand::Fix(order) => self.send_to(&self.control, RunnerRequest::Fix(order)),
            AppCommand::PlanQuestion { finding, reviewer } => {
                self.send_to(&self.control, RunnerRequest::PlanQuestion { finding, reviewer });
            }
            AppCommand::StopQuestion(finding) => self.send_to(&self.control, RunnerRequest::StopQuestion(finding)),
            AppCommand::Ask { finding, reviewer, question } => {
                self.send_to(&self.control, RunnerRequest::Ask { finding, reviewer, question });
            }
            AppCommand::Copy(order) => self.send_to(&self.copier, ClipboardRequest::Text(order)),
            AppCommand::CopyPrompt(findings) => {
                self.send_to(&self.copier, ClipboardRequest::Prompt { view: Arc::clone(view), findings });
            }
            AppCommand::RunProgram(call) => self.run_program(call),
            AppCommand::CopyToTerminal(_)
            | AppCommand::Notify(_)
            | AppCommand::Edit { .. }
            | AppCommand::EditSettings { .. }
            | AppCommand::Suspend
            | AppCommand::SetMouse(_)
            | AppCommand::Redraw
            | AppCommand::Quit(_) => {}
        }
    }

    /// Runs a command of the user on a thread of its own, because nobody knows how long it takes. A failure of the thread is one
    /// of the command: no other command needs the thread.
    fn run_program(&self, call: CommandCall) {
        let (messages, root, name) = (self.messages.clone(), self.root.clone(), call.name.clone());
        let spawned = spawn_thread("program", move || {
            let ended = end_program(&call.name, || run_in_background(&call, &root));
            let _ = messages.send(AppMessage::ProgramEnded(ended));
        });
        if let Err(error) = spawned {
            let ended = Err(format!("{}: cannot start a thread: {error}", sanitize_line(&name)));
            let _ = self.messages.send(AppMessage::ProgramEnded(ended));
        }
    }

    /// Waits until what the user has decided and written is stored.
    pub fn await_writes(&self) {
        let (done, ends) = channel();
        let sent = [
            self.writer.send(StoreWrite::Flush(done.clone())).is_ok(),
            self.control.send(RunnerRequest::Flush(done)).is_ok(),
        ];
        let deadline = Instant::now() + WRITE_PATIENCE;
        for _ in sent.iter().filter(|sent| **sent) {
            if ends.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_err() {
                tracing::warn!("the last decisions and comments may not be stored");
                return;
            }
        }
    }

    fn send_to<T>(&self, lane: &Sender<T>, work: T) {
        self.report_unless(lane.send(work).is_ok());
    }

    /// Reports a thread that does not take work any more.
    fn report_unless(&self, sent: bool) {
        if !sent {
            // The thread has panicked and has reported that, or could not be started.
            let _ = self.messages.send(AppMessage::PartStopped(PART_STOPPED.to_owned()));
        }
    }
}

/// Returns the message of a caught panic on one line.
pub fn describe_panic(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    sanitize_line(text).into_owned()
}

/// Runs work on a thread of its own. A panic ends the thread, and is reported in a message.
pub fn spawn_worker(name: &str, messages: MessageSender, work: impl FnOnce() + Send + 'static) {
    let named = name.to_owned();
    let spawned = spawn_thread(name, move || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            let text = format!("{PART_STOPPED} (internal error in {named}: {})", describe_panic(&*panic));
            let _ = messages.send(AppMessage::PartStopped(text));
        }
    });
    if let Err(error) = spawned {
        tracing::error!(%error, name, "no thread");
    }
}

/// Starts a thread whose panics the hook leaves to `work`, which has to catch them.
fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(format!("{WORKER}{name}")).spawn(work).map(drop)
}

/// Runs a command of the user, and returns its result in one line; a panic is a failure of the command.
fn end_program(name: &str, run: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(format!("{}: internal error: {}", sanitize_line(name), describe_panic(&*panic))))
}

/// Serves page requests, newest first: older requests are no longer on the screen.
fn serve_pages(
    mut loader: PageLoader,
    reads: &Receiver<PageRequest>,
    presence: &Arc<RepositoryPresence>,
    messages: &MessageSender,
) {
    let mut last: Option<Tab> = None;
    let mut parsed = PartlyParsedTexts::default();
    while let Ok(first) = reads.recv() {
        let (mut page, mut files, mut reported, mut diffs) = (None, None, Vec::new(), Vec::new());
        let mut reviewed = None;
        let mut wish = Some(first);
        // A change of tab is shown at once. While the selection moves, only the page where it settles is read; pages
        // in between would be replaced unseen, and a held key would make the terminal draw pages instead of rows.
        let moves = matches!(&wish, Some(PageRequest::Page { tab, mask: Mask::On, .. }) if last == Some(*tab));
        loop {
            match wish {
                Some(PageRequest::Page { view, subject, tab, mask }) => page = Some((view, subject, tab, mask)),
                Some(PageRequest::Files { view, run }) => files = Some((view, run)),
                Some(PageRequest::ReviewedFiles { view, runs }) => reviewed = Some((view, runs)),
                Some(PageRequest::Reported { run }) => reported.push(run),
                Some(PageRequest::Diff(request)) => diffs.push(request),
                Some(PageRequest::Viewed(mark)) => {
                    let result =
                        loader.store.mark_viewed(std::slice::from_ref(&mark)).map_err(|error| error.to_string());
                    let _ = messages.send(AppMessage::ViewedFile { mark, result });
                }
                Some(PageRequest::ViewedChanges(marks)) => {
                    let result = loader.store.mark_viewed(&marks).map_err(|error| error.to_string());
                    let _ = messages.send(AppMessage::ChangesMarked { marks, result });
                }
                Some(PageRequest::MarkFiles { files, viewed, at }) => {
                    let result = loader.mark_files(&files, viewed, at);
                    let _ = messages.send(AppMessage::FilesMarked { files, result });
                }
                None => break,
            }
            wish = if moves { reads.recv_timeout(SELECTION_DEBOUNCE).ok() } else { reads.try_recv().ok() };
        }
        for run in reported {
            let findings = loader.read_reported(&run);
            let _ = messages.send(AppMessage::Reported { run, findings });
        }
        last = page.as_ref().map(|(_, _, tab, _)| *tab).or(last);
        if let Some((view, subject, tab, mask)) = page {
            loader.load(&view, &subject, tab, mask, &mut |loaded| {
                let (subject, loaded) = (subject.clone(), Box::new(loaded));
                let _ = messages.send(match mask {
                    Mask::On => AppMessage::Loaded { subject, tab, loaded },
                    Mask::Off => AppMessage::Revealed { subject, tab, loaded },
                });
            });
        }
        // The newest request is about what is on the screen now.
        for request in diffs.into_iter().rev() {
            let _ = messages.send(loader.serve_diff(request, &mut parsed));
        }
        if let Some((view, run)) = files {
            let mut files = loader.read_files(&view, &run);
            files.as_deref_mut().into_iter().for_each(sort_files);
            let _ = messages.send(AppMessage::Files { run, files });
        }
        if let Some((view, runs)) = reviewed {
            let _ = messages.send(AppMessage::ReviewedFiles(loader.read_reviewed_files(&view, &runs)));
        }
        presence.look();
    }
}

fn serve_copies(store: &Store, requests: &Receiver<ClipboardRequest>, messages: &MessageSender) {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    while let Ok(request) = requests.recv() {
        let order = match request {
            ClipboardRequest::Text(order) => Ok(order),
            ClipboardRequest::Prompt { view, findings } => build_prompt(store, &view, &findings),
        };
        let message = match order {
            Ok(order) => {
                let program = clipboard::copy_with_program(&order.text, &is_set);
                AppMessage::Copied { order, program }
            }
            Err(error) => AppMessage::CopyFailed(error),
        };
        if messages.send(message).is_err() {
            return;
        }
    }
}

/// Builds the prompt for a coding agent from the findings that can be read.
fn build_prompt(store: &Store, view: &StoreView, ids: &[String]) -> Result<CopyOrder, String> {
    let mut findings = Vec::with_capacity(ids.len());
    for id in ids.iter().filter_map(|id| id.parse::<FindingId>().ok()) {
        let read = store.finding_in(view, &id).map_err(|error| format!("nothing was copied: {error}"))?;
        findings.extend(read);
    }
    if findings.is_empty() {
        return Err(
            "nothing was copied: the details cannot be read; `revdeck store verify` looks for damage".to_owned()
        );
    }
    let text = Mask::On.mask_words(&render_prompt(&findings.iter().collect::<Vec<_>>())).into_owned();
    Ok(CopyOrder { text, what: if findings.len() == 1 { "the prompt" } else { "the prompt for all marked" } })
}

/// Lists findings, then the files of the listed findings; of several pending requests of a sort only the newest is executed.
fn serve_lists(requests: &Receiver<ListRequest>, messages: &MessageSender) {
    while let Ok(first) = requests.recv() {
        let (mut findings, mut files) = (None, None);
        for request in std::iter::once(first).chain(requests.try_iter()) {
            match request {
                ListRequest::Findings { serial, view, query } => findings = Some((serial, view, query)),
                ListRequest::Files { serial, view, source } => files = Some((serial, view, source)),
            }
        }
        if let Some((serial, view, query)) = findings {
            let listed = query.list(&view);
            if messages.send(AppMessage::Filtered { serial, view, listed }).is_err() {
                return;
            }
        }
        if let Some((serial, view, source)) = files {
            let listed = source.collect_files(&view);
            if messages.send(AppMessage::FilesListed { serial, listed }).is_err() {
                return;
            }
        }
    }
}

/// Looks at the worktree, one look at a time.
fn serve_comparisons(
    services: &Services,
    wanted: &Receiver<(u64, Vec<Scope>)>,
    presence: &Arc<RepositoryPresence>,
    messages: &MessageSender,
) {
    let mut comparer = ScopeComparer::default();
    while let Ok((epoch, scopes)) = wanted.recv() {
        presence.look();
        let began = Instant::now();
        let result = comparer.compare(services, epoch, &scopes).map_err(|error| error.to_string());
        let took_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        if messages.send(AppMessage::ScopesCompared { result, took_ms }).is_err() {
            return;
        }
    }
}

/// Reads the commits that runs reviewed; a run whose commits git does not have gets no answer.
fn serve_run_subjects(repo: Option<&Repo>, requests: &Receiver<Vec<RunSubjectQuery>>, messages: &MessageSender) {
    while let Ok(queries) = requests.recv() {
        let Some(repo) = repo else { continue };
        let read = |query: &RunSubjectQuery| {
            let (message, _) = repo.commit_message(&query.tip).ok()?;
            let commits = repo.count_commits(&query.base, &query.tip, RunSubject::MAX_COMMITS).ok()?;
            let title = Mask::On.mask_text(None, message.trim_start().lines().next().unwrap_or_default()).into_owned();
            Some((query.run.clone(), RunSubject { commits, title }))
        };
        let subjects: Vec<(String, RunSubject)> = queries.iter().filter_map(read).collect();
        if !subjects.is_empty() && messages.send(AppMessage::RunSubjects(subjects)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Run = fn() -> Result<String, String>;

    #[test]
    fn a_command_whose_thread_panics_has_failed() {
        let cases: [(Run, Result<&str, &str>); 3] = [
            (|| Ok("where: done".to_owned()), Ok("where: done")),
            (|| Err("where: ended with exit status: 1".to_owned()), Err("where: ended with exit status: 1")),
            (|| panic!("no such\u{1b}[2J pipe"), Err("wh\u{fffd}ere: internal error: no such\u{fffd}[2J pipe")),
        ];
        for (run, expected) in cases {
            let ended = end_program("wh\u{1b}ere", run);
            assert_eq!(ended.as_deref().map_err(String::as_str), expected);
        }
    }
}
