//! Lists what the form offers and forecasts the answers to its requests, on a thread of its own.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::{OfferedCommit, ReviewFormFacts, ReviewFormReply, ReviewFormRequest};
use crate::domain::{Source, text};
use crate::runner::{ReviewDemand, ReviewRequest, Services};
use crate::tui::effects::spawn_worker;
use crate::tui::event_source::MessageSender;
use crate::tui::message::AppMessage;
use crate::tui::views::ViewReply;

/// Number of commits that the picker of commits searches, newest first.
const MAX_PICKED_COMMITS: usize = 2_000;

/// Starts the thread of the form. It answers only the newest of the forecasts that wait.
pub fn start_worker(services: &Services, messages: &MessageSender) -> Sender<ReviewFormRequest> {
    let (requests, orders) = channel();
    if let Some(services) = services.open_again() {
        let send = messages.clone();
        spawn_worker("form", messages.clone(), move || serve_requests(&services, &orders, &send));
    }
    requests
}

fn serve_requests(services: &Services, orders: &Receiver<ReviewFormRequest>, messages: &MessageSender) {
    while let Ok(first) = orders.recv() {
        let mut newest = None;
        for request in std::iter::once(first).chain(orders.try_iter()) {
            let ReviewFormRequest::Facts = request else {
                newest = Some(request);
                continue;
            };
            let facts = read_facts(services).map(Arc::new);
            if messages.send(AppMessage::View(ViewReply::ReviewForm(ReviewFormReply::Facts(facts)))).is_err() {
                return;
            }
        }
        let Some(ReviewFormRequest::Preview { serial, scope, reviewer, force }) = newest else { continue };
        let request = ReviewRequest {
            scope,
            reviewer: reviewer.into_name(),
            prompt_set: None,
            source: Source::Cockpit,
            started_in_session: 0,
            demand: ReviewDemand::anew_if(force),
        };
        let result = services.launcher().preview_request(&request).map_err(|error| error.to_string());
        let reply = ReviewFormReply::Preview { serial, result: Box::new(result) };
        if messages.send(AppMessage::View(ViewReply::ReviewForm(reply))).is_err() {
            return;
        }
    }
}

fn read_facts(services: &Services) -> Result<ReviewFormFacts, String> {
    let reviewers = services.launcher().list_offered_reviewers().map_err(|error| error.to_string())?;
    // A repository without commits has none to pick.
    let commits = services.repo.recent_commits(MAX_PICKED_COMMITS).unwrap_or_default();
    let commits = commits.into_iter().map(|commit| OfferedCommit {
        id: commit.short_id,
        subject: text::sanitize_line(&commit.subject).into_owned(),
        time: commit.time,
    });
    let branches = services.repo.branch_names().unwrap_or_default();
    let tags = services.repo.tag_names().unwrap_or_default();
    Ok(ReviewFormFacts { reviewers, commits: commits.collect(), branches, tags })
}
