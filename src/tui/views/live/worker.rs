//! Follows the journal of a run and reads its diff, on a thread of its own.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::LivePage;
use crate::domain::{RunRecord, RunStatus};
use crate::masking::Mask;
use crate::runner::Services;
use crate::store::StoreView;
use crate::tui::diff::DiffPage;
use crate::tui::effects::spawn_worker;
use crate::tui::event_source::MessageSender;
use crate::tui::message::{AppMessage, DetailSubject};
use crate::tui::page_data::PageData;
use crate::tui::page_loader::{LedgerSource, PageLoader};
use crate::tui::views::ViewReply;

/// Request for the newest entries of a run's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRequest {
    /// Run id.
    pub run: String,
    /// The view has no diff yet.
    pub wants_diff: bool,
}

/// Message of the thread.
#[derive(Debug)]
pub enum LiveReply {
    /// Run with the trace of its journal so far.
    Run {
        /// Run id.
        run: String,
        /// The run, or the reason why it could not be read.
        page: Result<Arc<LivePage>, String>,
    },
    /// Diff of the run with its findings so far.
    Diff(Arc<DiffPage>),
}

/// Facts on which the diff of a run depends: run id, snapshot, number of reports, status.
type DiffKey = (String, String, usize, RunStatus);

/// Reads runs for the view.
pub struct LiveLoader {
    pages: PageLoader,
    /// Key of the diff that was read last.
    diff: Option<DiffKey>,
}

impl LiveLoader {
    pub fn new(pages: PageLoader) -> Self {
        Self { pages, diff: None }
    }

    /// Reads the new entries of a run. Reads its diff, too, if the view has none or the run has reported something new.
    pub fn answer(&mut self, request: &LiveRequest, view: &Arc<StoreView>, send: &mut dyn FnMut(LiveReply)) {
        let LiveRequest { run, wants_diff } = request;
        let page = self.pages.load_live(run).map(Arc::new);
        let key = page.as_ref().ok().map(|page| compute_key(&page.record, page.trace.report_count()));
        send(LiveReply::Run { run: run.clone(), page });
        if key.is_none() || (key == self.diff && !wants_diff) {
            return;
        }
        self.diff = key;
        let diff = self.pages.load_diff(view, &DetailSubject::Run(run.clone()), Mask::On);
        if let Ok(PageData::Diff(page)) = diff {
            send(LiveReply::Diff(page));
        }
    }
}

fn compute_key(record: &RunRecord, reports: usize) -> DiffKey {
    (record.run_id.to_string(), record.subject.snapshot_commit.clone(), reports, record.status)
}

/// Starts the thread.
pub fn start_worker(services: &Services, messages: &MessageSender) -> Sender<(LiveRequest, Arc<StoreView>)> {
    let (requests, wanted) = channel();
    let (store, repo) = (services.store.clone(), services.repo.reopen().ok());
    let no_ledger: LedgerSource = Box::new(|| Err("no ledger in the Live view".to_owned()));
    let loader = LiveLoader::new(PageLoader::new(store, repo, Box::new(services.filter()), no_ledger));
    let send = messages.clone();
    spawn_worker("live", messages.clone(), move || serve_requests(loader, &wanted, &send));
    requests
}

/// Serves requests; only the newest of several pending requests is executed.
fn serve_requests(
    mut loader: LiveLoader,
    requests: &Receiver<(LiveRequest, Arc<StoreView>)>,
    messages: &MessageSender,
) {
    while let Ok(first) = requests.recv() {
        let Some((request, view)) = std::iter::once(first).chain(requests.try_iter()).last() else { continue };
        loader.answer(&request, &view, &mut |reply| {
            // Without a receiver, the cockpit ends.
            let _ = messages.send(AppMessage::View(ViewReply::Live(reply)));
        });
    }
}
