//! Describes the forecast of a review: the size of the change, the decision of the policy, and the cost.

use crate::domain::{Panel, RunId, text};
use crate::policy::ReviewAction;
use crate::report::figures::{format_brief, format_thousands};
use crate::runner::{CostLimit, MemberForecast, RequestPreview};
use crate::tui::app::App;
use crate::tui::theme::Role;

/// Characters of a shortened run id: `ar_`, and enough of the time in it to tell the runs of a second apart.
const SHORT_ID_CHARS: usize = 13;

/// Describes a forecast: the size of the change, the decision, and what is sent.
pub fn describe_preview(app: &App, preview: &RequestPreview, limit: Option<CostLimit>) -> Vec<(String, Role)> {
    let RequestPreview { scope, files, hunks, lines, left_out, decision, .. } = preview;
    let mut size = format!(
        "{}: {}, {}, {}",
        app.name_scope(scope),
        text::format_count(*files, "file"),
        text::format_count(*hunks, "hunk"),
        format_changed_lines(*lines)
    );
    if *left_out > 0 {
        size.push_str(&format!(", {} left out", text::format_count(*left_out, "file")));
    }
    let mut described = vec![(size, Role::Normal)];
    let saved = match decision.saved_token_estimate {
        0 => String::new(),
        tokens => format!("; saves about {}", format_tokens(tokens)),
    };
    let starts = decision.action.starts_run();
    let answer = match &decision.action {
        ReviewAction::Launch => format!("starts a review: {}", decision.reason),
        ReviewAction::Resume { from } => format!("goes on with {}", name_answer(app, from, "", &decision.reason)),
        ReviewAction::Adopt { run } => {
            format!("joins {}{saved}", name_answer(app, run, ", 0 tokens", &decision.reason))
        }
        ReviewAction::Reuse { run } => {
            format!("reuses {}{saved}", name_answer(app, run, ", 0 tokens", &decision.reason))
        }
        ReviewAction::Skip => format!("starts nothing: {}", decision.reason),
    };
    described.push((answer, if starts { Role::Normal } else { Role::Good }));
    if starts {
        described.extend(describe_members(&preview.members).map(|line| (line, Role::Normal)));
        described.extend(describe_sending(preview, limit).map(|line| (line, Role::Muted)));
    }
    described
}

/// Describes what becomes of the members of a panel: `sonnet, builtin: reused; gpt, gemini: ~8k tokens`. `None` without
/// members.
fn describe_members(members: &[MemberForecast]) -> Option<String> {
    let list = |wanted: &dyn Fn(&MemberForecast) -> bool, said: &str| {
        let named = members.iter().filter(|member| wanted(member)).map(|member| member.reviewer.as_str());
        let named: Vec<&str> = named.collect();
        (!named.is_empty()).then(|| format!("{}: {said}", named.join(", ")))
    };
    let sends = |member: &MemberForecast| member.starts() && member.tokens > 0;
    let tokens: u64 = members.iter().filter(|member| sends(member)).map(|member| member.tokens).sum();
    let parts = [
        list(&|member| matches!(member.action, ReviewAction::Reuse { .. }), "reused"),
        list(&|member| matches!(member.action, ReviewAction::Adopt { .. }), "under way"),
        list(&|member| matches!(member.action, ReviewAction::Skip), "nothing to review"),
        list(&|member| member.starts() && !sends(member), "0 tokens"),
        list(&sends, &format!("~{}", format_tokens(tokens))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Names the run that answers a request, and gives the reason, which does not name it again: `the review of a0c3bec by sonnet,
/// 0 tokens: it has reviewed exactly this`.
fn name_answer(app: &App, run: &RunId, cost: &str, reason: &str) -> String {
    let row = app.store.view.run_index(run.as_str()).map(|index| app.store.view.run(index));
    let name = row.map_or_else(
        || shorten_id(run).to_owned(),
        |row| format!("the review of {} by {}", app.name_run(&row), Panel::describe_reviewer(row.reviewer)),
    );
    format!("{name}{cost}: {}", reason.replace(run.as_str(), "it"))
}

/// Returns the beginning of a run's id, which commands accept in place of the whole.
fn shorten_id(run: &RunId) -> &str {
    run.as_str().get(..SHORT_ID_CHARS).unwrap_or(run.as_str())
}

/// Formats a number of changed lines: `1 changed line`, `1,204 changed lines`.
fn format_changed_lines(lines: u64) -> String {
    let ending = if lines == 1 { "" } else { "s" };
    format!("{} changed line{ending}", format_thousands(lines))
}

/// Describes the hunks that need not be sent again, the tokens and price of the first request, and the most that the
/// review may cost. Each further request sends the conversation again, and nobody knows how many there will be.
fn describe_sending(preview: &RequestPreview, limit: Option<CostLimit>) -> Option<String> {
    let mut parts = Vec::new();
    match preview.carried_hunks {
        Some(carried) if carried > 0 => {
            let rest = preview.hunks.saturating_sub(carried);
            parts.push(format!("up to {} carried over, {rest} to review", text::format_count(carried, "hunk")));
        }
        _ => {}
    }
    if preview.tokens > 0 {
        let price = match preview.input_cost {
            Some(dollars) if dollars > 0.0 => format!(" (${:.2})", (dollars * 100.0).ceil() / 100.0),
            _ => String::new(),
        };
        let first = if preview.members.is_empty() { "first request" } else { "first requests" };
        parts.push(format!("{first} ~{}{price}", format_tokens(preview.tokens)));
    }
    let sent = parts.join(", ");
    let most = limit.map_or_else(String::new, |limit| limit.to_string());
    let gap = if sent.is_empty() || most.is_empty() { "" } else { "; " };
    let said = format!("{sent}{gap}{most}");
    (!said.is_empty()).then_some(said)
}

/// Formats a number of tokens: `900 tokens`, `24k tokens`.
fn format_tokens(tokens: u64) -> String {
    format!("{} tokens", format_brief(tokens))
}
