//! Shows what each known session of an assistant gets at its next turn, and what was delivered last.

use serde::{Deserialize, Serialize};

use super::records::{load_ledger_rows, read_ledger_records};
use super::{LedgerRequest, LedgerSources, compose_from_records, ledger_format};
use crate::domain::{FindingId, LedgerDelivery, LedgerForm, TokenCountPrecision};
use crate::store::StoreError;
use crate::tokens::{self, Encoding};

/// Number of deliveries that a preview lists.
const MAX_LISTED_DELIVERIES: usize = 10;
/// Number of deliveries in which sessions are looked for: days of work.
const MAX_SEARCHED_DELIVERIES: usize = 2000;
/// Number of sessions that a preview shows, those heard of last; more are hardly open at once.
const MAX_SHOWN_SESSIONS: usize = 6;

/// Next ledgers and last deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerPreview {
    /// A session that is not known yet, then the known ones of this worktree, the one heard of last first.
    pub sessions: Vec<SessionPreview>,
    /// Last deliveries, newest first.
    pub recent: Vec<LedgerDelivery>,
}

/// Ledger that a session gets at its next turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPreview {
    /// Name of the assistant; empty for a session that is not known yet.
    pub agent: String,
    pub session: String,
    /// `None` if the session gets nothing.
    pub form: Option<LedgerForm>,
    /// Lines of the text, each with its exact number of tokens in it.
    pub lines: Vec<PreviewLine>,
    /// Exact number of tokens of the text.
    pub tokens: usize,
    /// Limit in tokens.
    pub cap: usize,
    /// Number of elements beyond the limit.
    pub left_out: usize,
    /// First findings beyond the limit.
    pub omitted: Vec<FindingId>,
    /// Findings whose code does not stand in the worktree any more.
    pub stale: Vec<FindingId>,
    /// Number of undecided findings that are less urgent than the setting `ledger_priority`.
    pub below_priority: usize,
}

/// Line of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewLine {
    /// The line with its line feed.
    pub text: String,
    pub tokens: usize,
}

/// Composes the next ledgers of all known sessions, without recording anything.
///
/// # Errors
///
/// If the store cannot be read.
pub fn preview_ledgers(sources: &LedgerSources<'_>) -> Result<LedgerPreview, StoreError> {
    let rows = load_ledger_rows(sources)?;
    let records = read_ledger_records(sources, &rows)?;
    let mut recent = sources.store.recent_deliveries(MAX_SEARCHED_DELIVERIES)?;
    let worktree = super::worktree_path(sources.repo);
    let mut known: Vec<(String, String)> = vec![(String::new(), String::new())];
    for delivery in recent.iter().filter(|delivery| delivery.worktree == worktree && !delivery.session.is_empty()) {
        let session = (delivery.agent.clone(), delivery.session.clone());
        if known.len() <= MAX_SHOWN_SESSIONS && !known.contains(&session) {
            known.push(session);
        }
    }
    let mut sessions = Vec::with_capacity(known.len());
    for (agent, session) in known {
        let is_text_of = |it: &&LedgerDelivery| it.is_text() && it.agent == agent && it.session == session;
        // A session asks at each turn in the way in which it asked at the last one.
        let last = recent.iter().find(is_text_of).filter(|_| !session.is_empty());
        let request = LedgerRequest {
            format: last.and_then(|last| last.format).unwrap_or_else(|| ledger_format(&agent)),
            max_tokens: last.and_then(|last| last.max_tokens).and_then(|tokens| usize::try_from(tokens).ok()),
            counted: TokenCountPrecision::Exact,
            agent,
            session,
            ..LedgerRequest::default()
        };
        let turn = compose_from_records(sources, &records, &request)?;
        let lines = count_lines(turn.text());
        let ledger = turn.ledger.as_ref();
        sessions.push(SessionPreview {
            form: ledger.map(|ledger| ledger.form),
            tokens: ledger.map_or(0, |ledger| ledger.tokens),
            lines,
            cap: turn.cap,
            left_out: ledger.map_or(0, |ledger| ledger.left_out),
            omitted: ledger.map_or(Vec::new(), |ledger| ledger.omitted.clone()),
            stale: turn.stale,
            below_priority: turn.below_priority,
            agent: request.agent,
            session: request.session,
        });
    }
    recent.truncate(MAX_LISTED_DELIVERIES);
    Ok(LedgerPreview { sessions, recent })
}

/// Splits a text into lines with their tokens. A token belongs to the line in which it ends, so the lines add up to the
/// text.
fn count_lines(text: &str) -> Vec<PreviewLine> {
    let mut before = (0, 0);
    text.split_inclusive('\n')
        .map(|line| {
            let end = before.0 + line.len();
            let tokens = tokens::count_tokens(Encoding::O200kBase, &text[..end]);
            let shown = PreviewLine { text: line.to_owned(), tokens: tokens.saturating_sub(before.1) };
            before = (end, tokens);
            shown
        })
        .collect()
}
