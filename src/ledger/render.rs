//! Renders the elements of a ledger as XML or as plain text, one line each.
//!
//! Texts from code and models are masked, made harmless and cut before they are escaped.

use std::fmt::Write;

use super::{DetailsCall, LedgerFinding, LedgerFormat, LedgerRun, LedgerView, LedgerWorld, SurfacedState};
use crate::domain::Time;
use crate::domain::text::{format_count, sanitize_line};

/// Maximum lengths in characters. Longer texts are cut; paths keep their end.
const MAX_TITLE_CHARS: usize = 120;
const MAX_PATH_CHARS: usize = 160;
const MAX_SUMMARY_CHARS: usize = 200;
const MAX_WORD_CHARS: usize = 64;
/// Word of a run that is about the code as it is.
const CURRENT: &str = "current";

/// Renders elements in one format.
pub(super) struct LedgerRenderer<'a> {
    pub(super) repo: &'a str,
    pub(super) world: &'a LedgerWorld<'a>,
}

impl<'a> LedgerRenderer<'a> {
    pub(super) fn new(view: &'a LedgerView<'_>, world: &'a LedgerWorld<'a>) -> Self {
        Self { repo: &view.repo, world }
    }

    /// Joins elements to the text of a ledger.
    pub(super) fn page(&self, elements: &[String]) -> String {
        let mut text = String::new();
        let _ = match self.world.format {
            LedgerFormat::Xml => {
                writeln!(text, "<auto_review_ledger version=\"1\" repo=\"{}\">", self.value(self.repo, MAX_WORD_CHARS))
            }
            LedgerFormat::Text => writeln!(text, "Automatic review of {}", self.value(self.repo, MAX_WORD_CHARS)),
        };
        for element in elements {
            text.push_str(element);
        }
        text.push_str(match (self.world.format, self.world.details) {
            (LedgerFormat::Xml, DetailsCall::McpTool) => {
                "  <details available=\"auto_review_details(run_id, finding_id)\"/>\n</auto_review_ledger>\n"
            }
            (LedgerFormat::Xml, DetailsCall::Shell) => {
                "  <details available=\"revdeck details RUN FINDING\"/>\n</auto_review_ledger>\n"
            }
            (LedgerFormat::Text, DetailsCall::McpTool) => "details: auto_review_details(run_id, finding_id)\n",
            (LedgerFormat::Text, DetailsCall::Shell) => "details: revdeck details RUN FINDING\n",
        });
        text
    }

    /// Renders the one line of a ledger whose reader knows the rest: how many of the findings still stand, and the
    /// active run.
    pub(super) fn unchanged(&self, standing: usize, active: Option<&LedgerRun>) -> String {
        let repo = self.value(self.repo, MAX_WORD_CHARS);
        match self.world.format {
            LedgerFormat::Xml => {
                let active = active.map_or(String::new(), |run| {
                    let runtime = format_elapsed(self.world.now, run.created_at);
                    format!(" active=\"{}\" phase=\"{}\" runtime=\"{runtime}\"", run.id, run.status)
                });
                format!(
                    "<auto_review_ledger version=\"1\" repo=\"{repo}\" unchanged=\"true\" findings=\"{standing}\"{active}/>\n"
                )
            }
            LedgerFormat::Text => {
                let active = active.map_or(String::new(), |run| {
                    format!("; run {} {} for {}", run.id, run.status, format_elapsed(self.world.now, run.created_at))
                });
                format!("Automatic review of {repo}: unchanged, {}{active}\n", format_count(standing, "finding"))
            }
        }
    }

    pub(super) fn active_run(&self, run: &LedgerRun) -> String {
        let now = self.world.now;
        let snapshot = self.short_commit(&run.snapshot);
        let runtime = format_elapsed(now, run.created_at);
        let last_activity = format_elapsed(now, run.last_activity);
        let freshness = self.value(&run.freshness, MAX_WORD_CHARS);
        let scope = self.value(&run.scope, MAX_WORD_CHARS);
        let (id, phase) = (&run.id, run.status);
        match self.world.format {
            LedgerFormat::Xml => format!(
                "  <active run=\"{id}\" phase=\"{phase}\" snapshot=\"{snapshot}\" runtime=\"{runtime}\" \
                 last_activity=\"{last_activity}\" freshness=\"{freshness}\" scope=\"{scope}\"/>\n"
            ),
            LedgerFormat::Text => format!(
                "active run {id}: {phase} {snapshot} for {runtime}, last activity {last_activity} ago, {freshness}, \
                 {scope}\n"
            ),
        }
    }

    pub(super) fn latest_run(&self, run: &LedgerRun) -> String {
        let (id, status, findings) = (&run.id, run.status, run.findings);
        let snapshot = self.short_commit(&run.snapshot);
        let incomplete = self.value(&run.incomplete, MAX_SUMMARY_CHARS);
        // That the result is about the code as it is needs no words.
        let freshness = self.value(&run.freshness, MAX_WORD_CHARS);
        let freshness = Some(freshness).filter(|word| !word.is_empty() && word != CURRENT);
        let summary = self.value(&run.summary, MAX_SUMMARY_CHARS);
        match self.world.format {
            LedgerFormat::Xml => {
                let incomplete = match incomplete.as_str() {
                    "" => String::new(),
                    gaps => format!(" incomplete=\"{gaps}\""),
                };
                let surfaced = run.surfaced == SurfacedState::Yes;
                let freshness = freshness.map_or(String::new(), |word| format!(" freshness=\"{word}\""));
                format!(
                    "  <latest run=\"{id}\" status=\"{status}\"{incomplete}{freshness} snapshot=\"{snapshot}\" \
                     findings=\"{findings}\" surfaced=\"{surfaced}\" summary=\"{summary}\"/>\n"
                )
            }
            LedgerFormat::Text => {
                let incomplete = match incomplete.as_str() {
                    "" => String::new(),
                    gaps => format!(" (incomplete: {gaps})"),
                };
                let freshness = freshness.map_or(String::new(), |word| format!(" ({word})"));
                format!("latest run {id}: {status} {snapshot}{incomplete}{freshness}: {summary}\n")
            }
        }
    }

    pub(super) fn finding(&self, finding: &LedgerFinding<'_>) -> String {
        let (id, line, priority) = (&finding.id, finding.line, finding.priority);
        let run = self.value(&finding.run, MAX_WORD_CHARS);
        let path = self.value(&truncate_start(&(self.world.mask)(&finding.path), MAX_PATH_CHARS), MAX_PATH_CHARS);
        let title = self.value(&finding.title, MAX_TITLE_CHARS);
        match self.world.format {
            LedgerFormat::Xml => format!(
                "  <finding id=\"{id}\" run=\"{run}\" p=\"{}\" path=\"{path}\" line=\"{line}\" title=\"{title}\"/>\n",
                priority.index(),
            ),
            LedgerFormat::Text => format!("{priority} {path}:{line} {title} [{run} {id}]\n"),
        }
    }

    /// Returns the first seven digits of a commit id.
    fn short_commit(&self, commit: &str) -> String {
        self.value(commit.get(..7).unwrap_or(commit), MAX_WORD_CHARS)
    }

    /// Makes a text a value of the format: masked, on one line, without control characters, at most `limit` characters.
    fn value(&self, text: &str, limit: usize) -> String {
        let masked = (self.world.mask)(text);
        match self.world.format {
            LedgerFormat::Xml => escape_attribute(&masked, limit),
            LedgerFormat::Text => truncate_end(&sanitize_line(&masked), limit),
        }
    }
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

/// Cuts a text at its end to `limit` characters.
fn truncate_end(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => text.chars().take(limit.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Escapes text for an attribute: one line, no control characters, at most `limit` characters.
fn escape_attribute(text: &str, limit: usize) -> String {
    let text = truncate_end(&sanitize_line(text), limit);
    let mut value = String::with_capacity(text.len());
    for c in text.chars() {
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
    value
}
