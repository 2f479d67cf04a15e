//! Composes the ledger that one assistant reads at one turn, and records it: the store's records, the assistant's
//! earlier ledgers and the settings in, a text out.
//!
//! [`compose_ledger`] is the only source of ledgers: the command, the hooks, the MCP server and the cockpit call it.
//! It reads and changes nothing. [`LedgerTurn::record`] is called once the assistant has the text.

mod details_call;
mod records;
mod standing_code;

use details_call::find_details_call;

use crate::config::Settings;
use crate::domain::{FindingId, LedgerDelivery, LedgerForm, Time, TokenCountPrecision};
use crate::git::Repo;
use crate::ledger::{
    DetailsCall, Ledger, LedgerFormat, LedgerView, LedgerWorld, MAX_LEDGER_TOKENS, SessionMemory, project_ledger,
};
use crate::masking::Mask;
use crate::store::{Store, StoreError};
use crate::tokens::{self, Encoding};

/// Minimum length of a word that may be a secret, in bytes. Own choice, below the shortest key of a provider.
const MIN_LONG_NAME_BYTES: usize = 16;

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
    /// What the session knows is not repeated.
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
    let cap = request.max_tokens.unwrap_or(sources.settings.ledger_tokens).min(MAX_LEDGER_TOKENS);
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
    let store_view = sources.store.view()?;
    let records = records::read_ledger_records(sources, &store_view)?;
    let memory = match request.recall {
        _ if request.session.is_empty() => None,
        LedgerRecall::Forget => Some(SessionMemory::default()),
        LedgerRecall::Remember => Some(read_memory(sources.store, &request.agent, &request.session)?),
    };
    let (ledger, counted) = fit_budget(&records.view, sources, cap, request, memory.as_ref());
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
        state: if request.session.is_empty() { String::new() } else { ledger.state.clone() },
    });
    let (below_priority, stale) = (records.below_priority, records.stale);
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

/// Projects the ledger within `cap` tokens. A cheap upper bound of the token count decides; the exact tokenizer takes
/// 50 ms to load and is used only if that bound drops an element because of characters that it cannot judge.
fn fit_budget(
    view: &LedgerView<'_>,
    sources: &LedgerSources<'_>,
    cap: usize,
    request: &LedgerRequest,
    memory: Option<&SessionMemory>,
) -> (Option<Ledger>, TokenCountPrecision) {
    let exact = |text: &str| tokens::count_tokens(Encoding::O200kBase, text);
    let world = LedgerWorld {
        now: sources.now,
        format: request.format,
        details: request.details.unwrap_or_else(|| find_details_call(&request.agent, &sources.repo.root())),
        memory,
        count: &tokens::upper_bound,
        mask: &mask_names,
    };
    let bounded = project_ledger(view, &world, cap);
    let is_cut = bounded.as_ref().is_none_or(|ledger| ledger.left_out > 0);
    let texts = || view.findings.iter().flat_map(|finding| [&finding.path, &finding.title]);
    if is_cut && texts().take(2 * MAX_JUDGED_FINDINGS).any(|text| !text.is_ascii()) {
        return (project_ledger(view, &LedgerWorld { count: &exact, ..world }, cap), TokenCountPrecision::Exact);
    }
    match bounded {
        Some(mut ledger) if request.counted == TokenCountPrecision::Exact => {
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
    if may_contain_secret(text) { Mask::On.mask_key_shapes(text).into_owned() } else { text.to_owned() }
}

/// Returns whether a text has a word that is long enough for a secret and no id of ours. Most ledgers have none, and to
/// read the rules for secrets takes longer than to print the ledger.
fn may_contain_secret(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.split(|c: char| !is_word(c)).any(|word| {
        word.len() >= MIN_LONG_NAME_BYTES
            && word.bytes().any(|byte| byte.is_ascii_digit())
            && !word.starts_with("ar_")
            && !word.starts_with("f_")
    })
}

fn worktree_path(repo: &Repo) -> String {
    repo.root().to_string_lossy().into_owned()
}
