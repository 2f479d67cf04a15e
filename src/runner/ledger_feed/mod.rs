//! Composes the ledger that one assistant reads at one turn, and records it: the store's records, the assistant's
//! earlier ledgers and the settings in, a text out.
//!
//! [`compose_ledger`] is the only source of ledgers: the command, the hooks, the MCP server and the cockpit call it.
//! It reads and changes nothing. [`LedgerTurn::record`] is called once the assistant has the text.

mod details_call;
mod mcp_entries;
pub(super) mod preview;
mod records;
mod standing_code;

pub(crate) use details_call::find_details_call;
use records::LedgerRecords;

use crate::config::Settings;
use crate::domain::{FindingId, LedgerDelivery, LedgerForm, Time, TokenCountPrecision};
use crate::git::Repo;
use crate::ledger::{
    DetailsCall, Ledger, LedgerFormat, LedgerView, LedgerWorld, MAX_LEDGER_TOKENS, SessionMemory, project_ledger,
};
use crate::masking::mask_name;
use crate::store::{Store, StoreError};
use crate::tokens::{self, Encoding};

/// Repository whose reviews a ledger reports.
#[derive(Clone, Copy)]
pub struct LedgerSources<'a> {
    /// The worktree; only its runs count.
    pub repo: &'a Repo,
    pub store: &'a Store,
    pub settings: &'a Settings,
    pub now: Time,
}

/// Use of the ledgers that the session got before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LedgerRecall {
    /// Items that the session knows are not repeated.
    #[default]
    Remember,
    /// The session starts, or its context was compacted: the ledger comes whole.
    Forget,
}

/// Request of one assistant for its ledger.
#[derive(Debug, Clone)]
pub struct LedgerRequest {
    /// Maximum size in tokens, at most [`MAX_LEDGER_TOKENS`]; `None` for the setting `ledger_tokens`.
    pub max_tokens: Option<usize>,
    /// Name of the assistant, such as `claude-code`; empty if unknown.
    pub agent: String,
    /// Session of the assistant. An empty session has no memory.
    pub session: String,
    pub format: LedgerFormat,
    /// Call for details that works for this reader; `None` to look into the settings of the assistant `agent`.
    pub details: Option<DetailsCall>,
    pub recall: LedgerRecall,
    /// `AtMost` is much faster and keeps the cap; `Exact` is for people who want to know.
    pub counted: TokenCountPrecision,
}

impl Default for LedgerRequest {
    fn default() -> Self {
        Self {
            max_tokens: None,
            agent: String::new(),
            session: String::new(),
            format: LedgerFormat::Xml,
            details: None,
            recall: LedgerRecall::Remember,
            counted: TokenCountPrecision::AtMost,
        }
    }
}

/// Returns the format in which a hook gives the ledger to an assistant. Gemini CLI escapes each angle bracket in a hook's
/// text, which would make the XML a third longer than its limit.
pub(crate) fn ledger_format(agent: &str) -> LedgerFormat {
    if agent == "gemini" { LedgerFormat::Text } else { LedgerFormat::Xml }
}

/// Ledger for one turn of an assistant.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerTurn {
    /// `None` if there is nothing to say: the assistant gets not one byte.
    pub ledger: Option<Ledger>,
    /// Precision of the ledger's token count.
    pub counted: TokenCountPrecision,
    /// Limit in tokens that was kept.
    pub cap: usize,
    /// Number of undecided findings that are less urgent than the setting `ledger_priority`.
    pub below_priority: usize,
    /// Findings that are not named because their code does not stand in the worktree any more.
    pub stale: Vec<FindingId>,
    delivery: Option<LedgerDelivery>,
}

impl LedgerTurn {
    /// Returns the text; empty if there is nothing to say.
    pub fn text(&self) -> &str {
        self.ledger.as_ref().map_or("", |ledger| &ledger.text)
    }

    /// Records that the assistant has the text. Does nothing for an empty one.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub fn record(&self, store: &Store) -> Result<(), StoreError> {
        match &self.delivery {
            Some(delivery) => store.record_ledger_delivery(delivery),
            None => Ok(()),
        }
    }
}

/// Composes the ledger of one turn.
///
/// # Errors
///
/// If the store cannot be read.
pub fn compose_ledger(sources: &LedgerSources<'_>, request: &LedgerRequest) -> Result<LedgerTurn, StoreError> {
    let cap = token_limit(sources, request);
    if cap == 0 {
        return Ok(LedgerTurn {
            ledger: None,
            counted: TokenCountPrecision::Exact,
            cap,
            below_priority: 0,
            stale: Vec::new(),
            delivery: None,
        });
    }
    let rows = records::load_ledger_rows(sources)?;
    let records = records::read_ledger_records(sources, &rows)?;
    compose_from_records(sources, &records, request)
}

fn token_limit(sources: &LedgerSources<'_>, request: &LedgerRequest) -> usize {
    request.max_tokens.unwrap_or(sources.settings.ledger_tokens).min(MAX_LEDGER_TOKENS)
}

/// Composes the ledger of one turn from records that were read before.
fn compose_from_records(
    sources: &LedgerSources<'_>,
    records: &LedgerRecords<'_>,
    request: &LedgerRequest,
) -> Result<LedgerTurn, StoreError> {
    let cap = token_limit(sources, request);
    let memory = match request.recall {
        _ if request.session.is_empty() => None,
        LedgerRecall::Forget => Some(SessionMemory::default()),
        LedgerRecall::Remember => Some(read_memory(sources.store, &request.agent, &request.session)?),
    };
    let told_to_any = || sources.store.told_findings().unwrap_or_default();
    let world = LedgerWorld {
        told_to_any: &told_to_any,
        now: sources.now,
        format: request.format,
        details: request.details.unwrap_or_else(|| find_details_call(&request.agent, &sources.repo.root())),
        memory: memory.as_ref(),
        count: &tokens::upper_bound,
        mask: &mask_names,
    };
    let (ledger, counted) = fit_budget(&records.view, &world, cap, request.counted);
    let delivery = ledger.as_ref().map(|ledger| LedgerDelivery {
        at: sources.now,
        worktree: worktree_path(sources.repo),
        run_id: ledger.run.clone(),
        findings: ledger.surfaced.clone(),
        tokens: ledger.tokens as u64,
        counted,
        left_out: ledger.left_out as u64,
        agent: request.agent.clone(),
        session: request.session.clone(),
        form: ledger.form,
        format: Some(request.format),
        max_tokens: request.max_tokens.map(|tokens| tokens as u64),
        state: if request.session.is_empty() { String::new() } else { ledger.state.clone() },
    });
    let (below_priority, stale) = (records.below_priority, records.stale.clone());
    Ok(LedgerTurn { ledger, counted, cap, below_priority, stale, delivery })
}

/// Records that a session has dropped its earlier ledgers, for example because its context is compacted: its next
/// ledger comes whole.
///
/// # Errors
///
/// If the store cannot be written.
pub fn forget_ledger_session(sources: &LedgerSources<'_>, agent: &str, session: &str) -> Result<(), StoreError> {
    let known = sources.store.session_deliveries(agent, session)?;
    if session.is_empty() || known.is_empty() {
        return Ok(());
    }
    sources.store.record_ledger_delivery(&LedgerDelivery {
        at: sources.now,
        worktree: worktree_path(sources.repo),
        run_id: None,
        findings: Vec::new(),
        tokens: 0,
        counted: TokenCountPrecision::Exact,
        left_out: 0,
        agent: agent.to_owned(),
        session: session.to_owned(),
        form: LedgerForm::Forgotten,
        format: None,
        max_tokens: None,
        state: String::new(),
    })
}

/// Reads the ledgers that a session still has in its context.
fn read_memory(store: &Store, agent: &str, session: &str) -> Result<SessionMemory, StoreError> {
    let deliveries = store.session_deliveries(agent, session)?;
    let state = deliveries.first().map_or(String::new(), |newest| newest.state.clone());
    let told = deliveries.into_iter().flat_map(|delivery| delivery.findings).map(String::from).collect();
    Ok(SessionMemory { told, state })
}

/// Projects the ledger within `cap` tokens. The cheap upper bound of the token count in `world` decides; the exact
/// tokenizer is used only if that bound drops an element because of characters that it cannot judge, or if `counted`
/// asks for it.
fn fit_budget(
    view: &LedgerView<'_>,
    world: &LedgerWorld<'_>,
    cap: usize,
    counted: TokenCountPrecision,
) -> (Option<Ledger>, TokenCountPrecision) {
    let exact = |text: &str| tokens::count_tokens(Encoding::O200kBase, text);
    let bounded = project_ledger(view, world, cap);
    let is_cut = bounded.as_ref().is_none_or(|ledger| ledger.left_out > 0);
    let texts = || view.findings.iter().flat_map(|finding| [&finding.path, &finding.title]);
    if is_cut && texts().take(2 * MAX_JUDGED_FINDINGS).any(|text| !text.is_ascii()) {
        return (project_ledger(view, &LedgerWorld { count: &exact, ..*world }, cap), TokenCountPrecision::Exact);
    }
    match bounded {
        Some(mut ledger) if counted == TokenCountPrecision::Exact => {
            ledger.tokens = exact(&ledger.text);
            (Some(ledger), TokenCountPrecision::Exact)
        }
        bounded => (bounded, TokenCountPrecision::AtMost),
    }
}

/// Number of findings whose characters decide about the exact tokenizer: no more fit into the largest ledger.
const MAX_JUDGED_FINDINGS: usize = 40;

/// Masks keys in a name or a title. Texts of findings are masked in the store; paths and branches are what they are.
fn mask_names(text: &str) -> String {
    mask_name(text).into_owned()
}

fn worktree_path(repo: &Repo) -> String {
    repo.root().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::domain::{FindingStatus, Kind, Priority};
    use crate::ledger::LedgerFinding;

    prop_compose! {
        fn findings()(path in "[ -~]{0,30}|[a-zé日🎉/]{0,40}", title in "[ -~]{0,80}|\\PC{0,40}|[\u{0}-\u{ff}\u{202e}]{0,40}",
                      number in any::<u64>(), is_first in any::<bool>()) -> LedgerFinding<'static> {
            LedgerFinding {
                id: format!("f_{number:016x}").into(),
                run: "ar_01JD3Z8Q6M7S5V2K4T9XWB1C01".into(),
                status: FindingStatus::Open,
                priority: if is_first { Priority::P0 } else { Priority::P1 },
                kind: Kind::Correctness,
                path: path.into(),
                line: 7,
                title: title.into(),
                in_change: is_first,
                reported_ms: 0,
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_ledger_keeps_its_cap_by_the_real_tokenizer(
            findings in proptest::collection::vec(findings(), 1..25),
            cap in 0usize..700,
            in_xml in any::<bool>(),
        ) {
            let view = LedgerView { repo: "code".to_owned(), findings, has_undecided: true, ..LedgerView::default() };
            // A reader without memory, and a session that is told one ledger after the other.
            let mut memory: Option<SessionMemory> = None;
            for _ in 0..4 {
                let world = LedgerWorld {
                    told_to_any: &BTreeSet::new,
                    now: Time::UNIX_EPOCH,
                    format: if in_xml { LedgerFormat::Xml } else { LedgerFormat::Text },
                    details: DetailsCall::Shell,
                    memory: memory.as_ref(),
                    count: &tokens::upper_bound,
                    mask: &mask_names,
                };
                let (ledger, counted) = fit_budget(&view, &world, cap, TokenCountPrecision::AtMost);
                let mut told = memory.unwrap_or_default();
                if let Some(ledger) = ledger {
                    let tokens = tokens::count_tokens(Encoding::O200kBase, &ledger.text);
                    prop_assert!(tokens <= ledger.tokens && ledger.tokens <= cap, "{tokens}, {}", ledger.tokens);
                    prop_assert!(counted == TokenCountPrecision::AtMost || tokens == ledger.tokens);
                    told.told.extend(ledger.surfaced.iter().map(ToString::to_string));
                    told.state = ledger.state;
                }
                memory = Some(told);
            }
        }
    }
}
