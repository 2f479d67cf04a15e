//! Loads the cards of a triage session on a thread of its own, ahead of the user.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::card::TriageCard;
use super::similar::{SimilarDecisions, find_similar};
use crate::domain::{FindingId, Scope};
use crate::git::{DiffLine, LineOrigin};
use crate::masking::Mask;
use crate::runner::Services;
use crate::store::{FindingRow, Store, StoreView};
use crate::tui::effects::spawn_worker;
use crate::tui::event_source::MessageSender;
use crate::tui::message::{AppMessage, DetailSubject, Tab};
use crate::tui::page_data::{DiffPageHunk, DiffPageLine, DiffSide, FileDiffPage, FindingPage, PageData};
use crate::tui::page_loader::{LedgerSource, MAX_HIGHLIGHTED_LINE, PageLoader};
use crate::tui::views::ViewReply;

/// Lines of code before and after the anchor, or around a hunk of the diff: as many as a large screen has.
const CONTEXT_LINES: u32 = 40;
/// Most lines of a diff before and after the first line of the finding.
const MAX_DIFF_LINES_AROUND: usize = 400;

/// Findings whose cards are wanted, the most urgent first, and the newest view of the store.
pub type CardRequest = (Vec<String>, Arc<StoreView>);

/// Starts the thread that loads cards.
pub fn start_worker(services: &Services, messages: &MessageSender) -> Sender<CardRequest> {
    let (requests, wanted) = channel();
    let (store, repo) = (services.store.clone(), services.repo.reopen().ok());
    let no_ledger: LedgerSource = Box::new(|| Err("no ledger in triage mode".to_owned()));
    let mut loader = PageLoader::new(store, repo, Box::new(services.filter()), no_ledger);
    loader.context_lines = CONTEXT_LINES;
    let send = messages.clone();
    spawn_worker("triage-cards", messages.clone(), move || serve_requests(loader, &wanted, &send));
    requests
}

/// Serves requests. The cards of a newer request come first; those of older requests follow.
fn serve_requests(mut loader: PageLoader, requests: &Receiver<CardRequest>, messages: &MessageSender) {
    let mut waiting: VecDeque<String> = VecDeque::new();
    let mut newest: Option<Arc<StoreView>> = None;
    loop {
        if waiting.is_empty() {
            let Ok(request) = requests.recv() else { return };
            accept_request(request, &mut waiting, &mut newest);
        }
        while let Ok(request) = requests.try_recv() {
            accept_request(request, &mut waiting, &mut newest);
        }
        let (Some(finding), Some(view)) = (waiting.pop_front(), newest.as_ref()) else { continue };
        let card = load_card(&mut loader, view, &finding).map(Arc::new);
        if messages.send(AppMessage::View(ViewReply::TriageCard { finding, card })).is_err() {
            return;
        }
    }
}

fn accept_request((findings, view): CardRequest, waiting: &mut VecDeque<String>, newest: &mut Option<Arc<StoreView>>) {
    waiting.retain(|known| !findings.contains(known));
    findings.into_iter().rev().for_each(|finding| waiting.push_front(finding));
    *newest = Some(view);
}

fn load_card(loader: &mut PageLoader, view: &Arc<StoreView>, finding: &str) -> Result<TriageCard, String> {
    let subject = DetailSubject::Finding(finding.to_owned());
    let mut loaded = None;
    loader.load(view, &subject, Tab::Page, Mask::On, &mut |data| loaded = Some(data));
    let page = match loaded {
        Some(PageData::Finding(page)) => *page,
        Some(PageData::Failed(error)) => return Err(error),
        _ => return Err("this finding cannot be read".to_owned()),
    };
    let diff = load_diff(loader, &page);
    let similar = count_similar(&loader.store, view, finding);
    Ok(TriageCard { page, diff, similar })
}

/// Loads the diff around a finding in the change of its run; `None` if the change does not show the finding, or its code
/// has moved since. The texts are those of the whole files, so that secrets are masked as everywhere.
fn load_diff(loader: &mut PageLoader, page: &FindingPage) -> Option<FileDiffPage> {
    let run = page.run.as_ref().filter(|run| page.relocation.is_none() && !matches!(run.subject.scope, Scope::All))?;
    let change = loader.read_change(run)?;
    let file = change.files.iter().find(|file| file.path == page.finding.repo_relative_path)?;
    let read = loader.repo.as_ref()?.file_diff(file, CONTEXT_LINES).ok()?;
    let mut read: Vec<DiffLine> = read.into_iter().filter(|line| line.origin != LineOrigin::HunkHeader).collect();
    let first = read.iter().position(|line| line.new_line == Some(page.finding.line_start))?;
    read.truncate(first.saturating_add(MAX_DIFF_LINES_AROUND));
    read.drain(..first.saturating_sub(MAX_DIFF_LINES_AROUND));
    let (base, snapshot) = (&run.subject.base_commit, &run.subject.snapshot_commit);
    let new = loader.read_file_lines(snapshot, &file.path, Mask::On)?;
    let old_path = file.old_path.as_deref().unwrap_or(&file.path);
    let old = loader.read_file_lines(base, old_path, Mask::On).unwrap_or_default();
    let line_of = |lines: &[String], number: Option<u32>| {
        number.and_then(|number| lines.get((number as usize).wrapping_sub(1))).cloned().unwrap_or_default()
    };
    let lines = read.into_iter().map(|line| {
        let (side, text) = match line.origin {
            LineOrigin::Added => (DiffSide::New, line_of(&new, line.new_line)),
            LineOrigin::Removed => (DiffSide::Old, line_of(&old, line.old_line)),
            LineOrigin::Context | LineOrigin::HunkHeader => (DiffSide::Both, line_of(&new, line.new_line)),
        };
        DiffPageLine { side, old: line.old_line, new: line.new_line, text, spans: Vec::new() }
    });
    let lines: Vec<DiffPageLine> = lines.collect();
    let last = lines.iter().filter_map(|line| line.new).max().unwrap_or(0) as usize;
    let mut hunks = vec![DiffPageHunk { lines, ..DiffPageHunk::default() }];
    if last <= MAX_HIGHLIGHTED_LINE {
        loader.highlight_hunks(snapshot, &file.path, &mut hunks, last, Mask::On);
    }
    Some(FileDiffPage { path: file.path.clone(), hunks, ..FileDiffPage::default() })
}

/// Counts the decisions about findings like this one. The view may lack the decisions of this moment, so that the last
/// lines of the store count.
fn count_similar(store: &Store, view: &StoreView, finding: &str) -> SimilarDecisions {
    let Some(index) = view.finding_index(finding) else { return SimilarDecisions::default() };
    let similar = find_similar(view, index);
    let ids: HashSet<&str> = similar.iter().map(|row| row.id).collect();
    let last = store.latest_dispositions(&ids).unwrap_or_default();
    let last_of = |id: &str| id.parse::<FindingId>().ok().and_then(|id| last.get(&id).map(|(_, line)| line));
    let decision_of = |row: &FindingRow<'_>| last_of(row.id).map_or(row.status, |line| line.status);
    let reason_of = |id: &str| {
        let reason = last_of(id).map_or("", |line| line.reason.trim());
        Mask::On.mask_words(reason).into_owned()
    };
    SimilarDecisions::count(&similar, decision_of, reason_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ClockAndIds;
    use crate::domain::{Actor, Disposition, FindingStatus, Time, TriageAction};
    use crate::store::{RepoInfo, StoreViewBuilder};
    use crate::tui::tests::support::{complete, finding_id, finding_row, run_id, run_row};

    #[test]
    fn decisions_that_the_view_lacks_count_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "billing".into(), common_dir: "/billing".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        let run = run_id(1);
        let mut builder = StoreViewBuilder::default();
        builder.run(run_row(&run));
        for number in 1..=3 {
            builder.finding(finding_row(&finding_id(number), &run));
        }
        let view = complete(builder);
        assert_eq!(count_similar(&store, &view, &finding_id(1)), SimilarDecisions::default());
        let line = Disposition {
            finding_id: finding_id(2).parse().expect("an id"),
            status: FindingStatus::Dismissed,
            previous: FindingStatus::Open,
            actor: Actor::User,
            reason: "generated".to_owned(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            group: ClockAndIds::system().new_run_id().as_str().replacen("ar_", "t_", 1),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        };
        store.decide(|_| Ok::<_, crate::store::StoreError>(vec![line])).expect("stored");
        let counted = count_similar(&store, &view, &finding_id(1));
        assert_eq!(counted.describe().as_deref(), Some("1 dismissed (generated)"));
    }

    #[test]
    fn the_cards_of_a_newer_request_come_first_and_none_comes_twice() {
        let (mut waiting, mut newest) = (VecDeque::new(), None);
        let names = |findings: &[&str]| findings.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        for findings in [&["a", "b", "c"][..], &["d", "b"]] {
            accept_request((names(findings), Arc::default()), &mut waiting, &mut newest);
        }
        assert_eq!(Vec::from(waiting), names(&["d", "b", "a", "c"]));
        assert!(newest.is_some());
    }
}
