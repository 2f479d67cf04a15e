//! Projects stored records to a ledger of bounded size, and computes [`metrics`]. No IO, no clock; only `domain` is
//! imported.
//!
//! Invariants:
//! - Without anything to say, the ledger has not one byte. It never exceeds its limit.
//! - The text is always well-formed XML, one element per line. An element is included completely or not at all.
//! - There are no diffs, no bodies and no history. Text from code and models is data: escaped, on one line.

pub(crate) mod metrics;

use std::borrow::Cow;

use crate::domain::text::sanitize_line;
use crate::domain::{FindingId, FindingStatus, Priority, RunId, RunStatus, Time};

/// Maximum size of a ledger in tokens. A higher limit counts as this one.
pub const MAX_LEDGER_TOKENS: usize = 1200;

/// Lowest priority of findings that a ledger names.
pub const MIN_LEDGER_PRIORITY: Priority = Priority::P1;

/// Maximum lengths in characters. Longer texts are cut; paths keep their end.
const MAX_TITLE_CHARS: usize = 120;
const MAX_PATH_CHARS: usize = 160;
const MAX_SUMMARY_CHARS: usize = 200;
const MAX_WORD_CHARS: usize = 64;

/// Records from which a ledger is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerView<'a> {
    /// The repository's name.
    pub repo: String,
    /// Runs of this worktree, in any order.
    pub runs: Vec<LedgerRun>,
    /// Findings that apply to this worktree, in any order.
    pub findings: Vec<LedgerFinding<'a>>,
}

/// Run with the fields that a ledger needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRun {
    pub id: RunId,
    pub status: RunStatus,
    pub created_at: Time,
    /// Time of the last recorded activity.
    pub last_activity: Time,
    /// Commit of the snapshot.
    pub snapshot: String,
    /// Freshness from `policy::derive_freshness`.
    pub freshness: String,
    /// Short description of the scope, such as `4 files`.
    pub scope: String,
    /// Gaps of a completed run, such as `139 of 1,168 hunks reviewed (turn limit)`; empty without gaps.
    pub incomplete: String,
    /// Number of reported findings.
    pub findings: u32,
    /// State of the result's delivery to an assistant.
    pub surfaced: SurfacedState,
    pub summary: String,
}

/// State of a delivery to an assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SurfacedState {
    Yes,
    No,
}

/// Finding with the fields that a ledger needs. Texts are borrowed, because there may be very many findings and few
/// fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerFinding<'a> {
    pub id: Cow<'a, str>,
    /// Id of the run that reported it last, for a call that asks for its details.
    pub run: Cow<'a, str>,
    pub status: FindingStatus,
    pub priority: Priority,
    pub path: Cow<'a, str>,
    pub line: u32,
    pub title: Cow<'a, str>,
}

/// Clock value for the projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerClock {
    pub now: Time,
}

/// Ledger for an assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    pub text: String,
    /// Number of tokens by the caller's counter.
    pub tokens: usize,
    /// Ended run whose result the ledger reports.
    pub run: Option<RunId>,
    /// Findings that the ledger names.
    pub surfaced: Vec<FindingId>,
    /// Number of elements that did not fit.
    pub left_out: usize,
}

/// Builds the ledger that a coding assistant receives, with at most `cap` tokens as counted by `count`. `None` if there
/// is nothing to say or no room for it.
pub fn project_ledger(
    view: &LedgerView<'_>,
    world: &LedgerClock,
    cap: usize,
    count: &dyn Fn(&str) -> usize,
) -> Option<Ledger> {
    let cap = cap.min(MAX_LEDGER_TOKENS);
    let active = view.runs.iter().filter(|run| !run.status.is_terminal()).max_by_key(|run| {
        // A working run comes first, then the newest.
        (run.status.is_working(), run.created_at, &run.id)
    });
    let mut findings: Vec<&LedgerFinding> = view
        .findings
        .iter()
        .filter(|finding| finding.status.is_undecided() && finding.priority <= MIN_LEDGER_PRIORITY)
        .collect();
    let all = findings.len();
    let by_weight = |a: &&LedgerFinding<'_>, b: &&LedgerFinding<'_>| {
        (a.priority, &a.path, a.line, &a.id).cmp(&(b.priority, &b.path, b.line, &b.id))
    };
    // An element has more than one token, so no more elements than tokens fit, and only these are sorted.
    if all > MAX_LEDGER_TOKENS {
        findings.select_nth_unstable_by(MAX_LEDGER_TOKENS, by_weight);
        findings.truncate(MAX_LEDGER_TOKENS);
    }
    let beyond = all - findings.len();
    findings.sort_by(by_weight);
    let latest = select_latest_run(view);

    // Elements in order of importance.
    let mut elements = Vec::new();
    elements.extend(
        active.map(|run| LedgerElement { text: render_active_run(run, world), subject: ElementSubject::Nothing }),
    );
    elements.extend(
        latest.map(|run| LedgerElement { text: render_latest_run(run), subject: ElementSubject::Run(&run.id) }),
    );
    elements.extend(
        findings.into_iter().map(|finding| LedgerElement {
            text: render_finding(finding),
            subject: ElementSubject::Finding(&finding.id),
        }),
    );
    if elements.is_empty() {
        return None;
    }
    let (mut kept, mut ledger) = (0, None);
    while kept < elements.len() {
        let text = render_page(&view.repo, &elements[..=kept]);
        let tokens = count(&text);
        if tokens > cap {
            break;
        }
        kept += 1;
        ledger = Some((text, tokens));
    }
    let (text, tokens) = ledger?;
    let mut ledger = Ledger { text, tokens, run: None, surfaced: Vec::new(), left_out: elements.len() - kept + beyond };
    for element in &elements[..kept] {
        match element.subject {
            ElementSubject::Nothing => {}
            ElementSubject::Run(run) => ledger.run = Some(run.clone()),
            ElementSubject::Finding(finding) => ledger.surfaced.extend(finding.parse::<FindingId>()),
        }
    }
    Some(ledger)
}

struct LedgerElement<'a> {
    text: String,
    subject: ElementSubject<'a>,
}

/// Subject that an assistant has seen once it has read an element.
enum ElementSubject<'a> {
    /// Nothing lasting.
    Nothing,
    /// Result of the run.
    Run(&'a RunId),
    Finding(&'a str),
}

/// Returns the newest ended run, if its result still matters. Skipped runs do not count. A run without
/// undecided findings matters only if it failed, was lost or is incomplete, or if it is current and was not surfaced yet.
fn select_latest_run<'a>(view: &'a LedgerView<'_>) -> Option<&'a LedgerRun> {
    let newest = view
        .runs
        .iter()
        .filter(|run| run.status.is_terminal() && run.status != RunStatus::Skipped)
        .max_by_key(|run| (run.created_at, &run.id))?;
    let undecided = view.findings.iter().any(|finding| finding.status.is_undecided());
    let news = newest.surfaced == SurfacedState::No && newest.freshness == "current";
    let broken = matches!(newest.status, RunStatus::Failed | RunStatus::Lost) || !newest.incomplete.is_empty();
    ((newest.findings > 0 && undecided) || news || broken).then_some(newest)
}

fn render_page(repo: &str, elements: &[LedgerElement<'_>]) -> String {
    let mut text = format!("<auto_review_ledger version=\"1\" repo=\"{}\">\n", escape_attribute(repo, MAX_WORD_CHARS));
    for element in elements {
        text.push_str(&element.text);
    }
    text.push_str("  <details available=\"auto_review_details(run_id, finding_id)\"/>\n</auto_review_ledger>\n");
    text
}

fn render_active_run(run: &LedgerRun, world: &LedgerClock) -> String {
    format!(
        "  <active run=\"{}\" phase=\"{}\" snapshot=\"{}\" runtime=\"{}\" last_activity=\"{}\" freshness=\"{}\" \
         scope=\"{}\"/>\n",
        run.id,
        run.status,
        short_commit(&run.snapshot),
        format_elapsed(world.now, run.created_at),
        format_elapsed(world.now, run.last_activity),
        escape_attribute(&run.freshness, MAX_WORD_CHARS),
        escape_attribute(&run.scope, MAX_WORD_CHARS)
    )
}

fn render_latest_run(run: &LedgerRun) -> String {
    let surfaced = match run.surfaced {
        SurfacedState::Yes => "true",
        SurfacedState::No => "false",
    };
    let incomplete = match run.incomplete.as_str() {
        "" => String::new(),
        gaps => format!(" incomplete=\"{}\"", escape_attribute(gaps, MAX_SUMMARY_CHARS)),
    };
    format!(
        "  <latest run=\"{}\" status=\"{}\"{incomplete} snapshot=\"{}\" findings=\"{}\" surfaced=\"{surfaced}\" \
         summary=\"{}\"/>\n",
        run.id,
        run.status,
        short_commit(&run.snapshot),
        run.findings,
        escape_attribute(&run.summary, MAX_SUMMARY_CHARS)
    )
}

fn render_finding(finding: &LedgerFinding<'_>) -> String {
    format!(
        "  <finding id=\"{}\" run=\"{}\" p=\"{}\" path=\"{}\" line=\"{}\" title=\"{}\"/>\n",
        finding.id,
        escape_attribute(&finding.run, MAX_WORD_CHARS),
        finding.priority.index(),
        escape_attribute(&truncate_start(&finding.path, MAX_PATH_CHARS), MAX_PATH_CHARS),
        finding.line,
        escape_attribute(&finding.title, MAX_TITLE_CHARS)
    )
}

/// Returns the first seven digits of a commit id.
fn short_commit(commit: &str) -> String {
    escape_attribute(commit.get(..7).unwrap_or(commit), MAX_WORD_CHARS)
}

/// Formats the time since `moment` in its largest unit. A moment in the future gives `0s`.
fn format_elapsed(now: Time, moment: Time) -> String {
    let seconds = now.as_second().saturating_sub(moment.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Cuts a path at its start to `limit` characters.
fn truncate_start(path: &str, limit: usize) -> String {
    match path.chars().count().checked_sub(limit) {
        None | Some(0) => path.to_owned(),
        Some(over) => format!("…{}", path.chars().skip(over + 1).collect::<String>()),
    }
}

/// Escapes text for an attribute: one line, no control characters, at most `limit` characters.
fn escape_attribute(text: &str, limit: usize) -> String {
    let text = sanitize_line(text);
    let mut value = String::with_capacity(text.len());
    let over = text.chars().nth(limit).is_some();
    for c in text.chars().take(if over { limit.saturating_sub(1) } else { limit }) {
        match c {
            '&' => value.push_str("&amp;"),
            '<' => value.push_str("&lt;"),
            '>' => value.push_str("&gt;"),
            '"' => value.push_str("&quot;"),
            '\'' => value.push_str("&apos;"),
            // These characters are not allowed in XML, even escaped.
            '\u{fffe}' | '\u{ffff}' => value.push('\u{fffd}'),
            c => value.push(c),
        }
    }
    if over {
        value.push('…');
    }
    value
}

#[cfg(test)]
mod tests;
