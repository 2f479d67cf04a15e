//! Describes the forecast of a review before it starts: the policy's answer, and what is sent and paid.

use serde_json::{Value, json};

use crate::domain::{RunId, text};
use crate::policy::{Decision, ReviewAction};
use crate::report::figures::{format_brief, format_thousands};
use crate::runner::{CostLimit, MemberForecast, RequestPreview, ReviewerTerms};

/// Describes the size of the change: `worktree: 2 files, 3 hunks, 40 changed lines, 1 file left out`.
pub fn describe_size(scope: &str, preview: &RequestPreview) -> String {
    let RequestPreview { files, hunks, lines, left_out, .. } = preview;
    let mut size = format!(
        "{scope}: {}, {}, {}",
        text::format_count(*files, "file"),
        text::format_count(*hunks, "hunk"),
        format_changed_lines(*lines)
    );
    if *left_out > 0 {
        size.push_str(&format!(", {} left out", text::format_count(*left_out, "file")));
    }
    size
}

/// Formats a number of changed lines: `1 changed line`, `1,204 changed lines`.
fn format_changed_lines(lines: u64) -> String {
    let ending = if lines == 1 { "" } else { "s" };
    format!("{} changed line{ending}", format_thousands(lines))
}

/// Describes what the policy will do and why, without naming the answering run twice: `reuses the review of a0c3bec by sonnet,
/// 0 tokens: it has reviewed exactly this`.
pub fn describe_decision(decision: &Decision, name_run: impl Fn(&RunId) -> String) -> String {
    let saved = match decision.saved_token_estimate {
        0 => String::new(),
        tokens => format!("; saves about {}", format_tokens(tokens)),
    };
    let answer =
        |run: &RunId, cost: &str| format!("{}{cost}: {}", name_run(run), decision.reason.replace(run.as_str(), "it"));
    match &decision.action {
        ReviewAction::Launch => format!("starts a review: {}", decision.reason),
        ReviewAction::Resume { from } => format!("goes on with {}", answer(from, "")),
        ReviewAction::Adopt { run } => format!("joins {}{saved}", answer(run, ", 0 tokens")),
        ReviewAction::Reuse { run } => format!("reuses {}{saved}", answer(run, ", 0 tokens")),
        ReviewAction::Skip => format!("starts nothing: {}", decision.reason),
    }
}

/// Describes what becomes of the members of a panel, and who may give second opinions: `sonnet, builtin: reused; gpt, gemini:
/// ~8k tokens; opus for opinions`. `None` without members.
pub fn describe_members(preview: &RequestPreview) -> Option<String> {
    let members = preview.members.as_slice();
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
        (!preview.opinions.is_empty()).then(|| {
            let names: Vec<&str> = preview.opinions.iter().map(|opinion| opinion.name.as_str()).collect();
            format!("{} for opinions", names.join(", "))
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Part of the costs of a panel whose prices are known, if others are not.
struct KnownCosts {
    /// Price of the first requests in US dollars.
    input: f64,
    /// Most that the reviews and second opinions may cost in US dollars.
    limit: f64,
    /// Reviewers that are left out, because they or their fallbacks have no known price.
    left_out: Vec<String>,
}

impl KnownCosts {
    /// Adds up the known prices of the members that start, and of second opinions; `None` if all are known, and for a single
    /// reviewer.
    fn from_preview(preview: &RequestPreview) -> Option<Self> {
        if preview.members.is_empty() {
            return None;
        }
        let members = preview.members.iter().filter(|member| member.starts());
        let members = members.map(|member| (&member.reviewer, member.limit, member.input_cost));
        let opinions = preview.opinions.iter().map(|opinion| (&opinion.name, opinion.limit, Some(0.0)));
        let mut known = Self { input: 0.0, limit: 0.0, left_out: Vec::new() };
        for (name, limit, input) in members.chain(opinions) {
            match known_dollars(limit) {
                Some(dollars) => known.limit += dollars,
                None if !known.left_out.contains(name) => known.left_out.push(name.clone()),
                None => {}
            }
            known.input += input.unwrap_or(0.0);
        }
        (!known.left_out.is_empty()).then_some(known)
    }

    /// Describes the most that it may cost: `at most $1.30 without agent, whose price is not known`.
    fn describe_limit(&self) -> String {
        let most = match self.limit {
            dollars if dollars > 0.0 => format!("at most {}", format_up(dollars)),
            _ => "at no cost".to_owned(),
        };
        let whose = if self.left_out.len() == 1 { "whose price is" } else { "whose prices are" };
        format!("{most} without {}, {whose} not known", text::join_names(&self.left_out))
    }
}

/// Describes the hunks that need not be sent again, the tokens and price of the first request, and the most that the
/// review may cost; of a panel with members without a known price, the known part. Each further request sends the conversation
/// again, and nobody knows how many there will be.
pub fn describe_sending(preview: &RequestPreview, limit: Option<CostLimit>) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(carried) = preview.carried_hunks.filter(|carried| *carried > 0) {
        let rest = preview.hunks.saturating_sub(carried);
        parts.push(format!("up to {} carried over, {rest} to review", text::format_count(carried, "hunk")));
    }
    let known = KnownCosts::from_preview(preview);
    if preview.tokens > 0 {
        let first = if preview.members.is_empty() { "first request" } else { "first requests" };
        let price = preview.input_cost.or(known.as_ref().map(|known| known.input));
        parts.push(format!("{first} {}", format_sent(preview.tokens, price)));
    }
    let sent = Some(parts.join(", ")).filter(|sent| !sent.is_empty());
    let limit = match (limit, &known) {
        (Some(CostLimit::Unknown { tokens }), Some(known)) => {
            let most = tokens.map(|tokens| format!(", at most {} tokens", format_thousands(tokens)));
            Some(known.describe_limit() + &most.unwrap_or_default())
        }
        (limit, _) => limit.map(|limit| limit.to_string()).filter(|limit| !limit.is_empty()),
    };
    let sentences: Vec<String> = sent.into_iter().chain(limit).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Returns what stands in the way of the review, and what limits say about the costs: who has no key, who cannot be counted, and
/// that nothing can be sent.
pub fn list_request_notes(preview: &RequestPreview) -> Vec<String> {
    let refused = preview.missing_key.as_ref().map(|missing| format!("it would be refused: {missing}"));
    let uncounted = preview.uncounted.as_ref().map(ToString::to_string);
    refused.into_iter().chain(uncounted).chain(preview.no_room.clone()).collect()
}

/// Describes what each member of a panel and all of them together will probably send first and may cost at most:
/// `one reused, 0 tokens; two ~4k tokens ($0.012), at most $0.40; together first requests ~4k tokens ($0.012); at most $0.40`. For a
/// single reviewer, only the last part. `None` if nothing starts.
pub fn describe_costs(preview: &RequestPreview) -> Option<String> {
    if !preview.decision.action.starts_run() {
        return None;
    }
    let sum = describe_sending(preview, preview.limit)?;
    if preview.members.is_empty() {
        return Some(sum);
    }
    let opinions = preview.opinions.iter().map(|ReviewerTerms { name, limit }| format!("{name} for opinions, {limit}"));
    let parts: Vec<String> = preview.members.iter().map(describe_member_cost).chain(opinions).collect();
    Some(format!("{}; together {sum}", parts.join("; ")))
}

fn describe_member_cost(member: &MemberForecast) -> String {
    let MemberForecast { reviewer, action, tokens, input_cost, limit } = member;
    match action {
        ReviewAction::Reuse { .. } => format!("{reviewer} reused, 0 tokens"),
        ReviewAction::Adopt { .. } => format!("{reviewer} under way, 0 tokens"),
        ReviewAction::Skip => format!("{reviewer} has nothing to review"),
        ReviewAction::Launch | ReviewAction::Resume { .. } if *tokens > 0 => {
            format!("{reviewer} {}, {limit}", format_sent(*tokens, *input_cost))
        }
        ReviewAction::Launch | ReviewAction::Resume { .. } => format!("{reviewer} {limit}"),
    }
}

/// Formats what is sent and its price, if that is known and not zero: `~24k tokens ($0.08)`.
fn format_sent(tokens: u64, cost: Option<f64>) -> String {
    let price = match cost {
        Some(dollars) if dollars > 0.0 => format!(" ({})", format_up(dollars)),
        _ => String::new(),
    };
    format!("~{}{price}", format_tokens(tokens))
}

/// Formats an amount in US dollars, rounded up.
fn format_up(dollars: f64) -> String {
    text::format_limit_dollars(text::round_up_dollars(dollars))
}

/// Formats a number of tokens: `900 tokens`, `24k tokens`.
fn format_tokens(tokens: u64) -> String {
    format!("{} tokens", format_brief(tokens))
}

/// Encodes a forecast for JSON, with every key (see docs/json.md).
pub fn encode_forecast(preview: &RequestPreview) -> Value {
    let members = preview.members.iter().map(|member| {
        json!({
            "reviewer": member.reviewer,
            "action": member.action.word(),
            "run_id": answering_run(&member.action),
            "tokens": member.tokens,
            "input_cost": member.input_cost,
            "cost_limit": known_dollars(member.limit),
        })
    });
    let opinions = preview
        .opinions
        .iter()
        .map(|opinion| json!({ "reviewer": opinion.name, "cost_limit": known_dollars(opinion.limit) }));
    let uncounted = preview
        .uncounted
        .as_ref()
        .map(|uncounted| json!({ "limits": uncounted.limits, "reviewers": uncounted.reviewers }));
    let known = KnownCosts::from_preview(preview);
    let known_part = known.map(|known| {
        json!({ "input_cost": known.input, "cost_limit": text::round_up_dollars(known.limit), "without": known.left_out })
    });
    json!({
        "scope": preview.scope.to_string(),
        "files": preview.files,
        "hunks": preview.hunks,
        "lines": preview.lines,
        "left_out": preview.left_out,
        "action": preview.decision.action.word(),
        "run_id": answering_run(&preview.decision.action),
        "reason": preview.decision.reason,
        "carried_hunks": preview.carried_hunks,
        "tokens": preview.tokens,
        "input_cost": preview.input_cost,
        "cost_limit": known_dollars(preview.limit.unwrap_or(CostLimit::Nothing)),
        "known_part": known_part,
        "members": members.collect::<Vec<Value>>(),
        "opinions": opinions.collect::<Vec<Value>>(),
        "continues": preview.continues.as_ref().map(RunId::as_str),
        "spent_before": preview.spent_before,
        "uncounted": uncounted,
        "no_room": preview.no_room,
        "missing_key": preview.missing_key,
    })
}

/// Returns the id of the run that answers, or that a new run continues.
fn answering_run(action: &ReviewAction) -> Option<&str> {
    match action {
        ReviewAction::Adopt { run } | ReviewAction::Reuse { run } | ReviewAction::Resume { from: run } => {
            Some(run.as_str())
        }
        ReviewAction::Launch | ReviewAction::Skip => None,
    }
}

/// Returns a limit in US dollars; `None` if a price is unknown.
fn known_dollars(limit: CostLimit) -> Option<f64> {
    match limit {
        CostLimit::Nothing => Some(0.0),
        CostLimit::AtMost { dollars } => Some(dollars),
        CostLimit::Unknown { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Scope, UncountedCost};

    const RUN: &str = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A";

    fn run() -> RunId {
        RUN.parse().expect("an id")
    }

    fn preview(action: ReviewAction) -> RequestPreview {
        RequestPreview {
            scope: Scope::Worktree,
            files: 2,
            hunks: 3,
            lines: 1_204,
            left_out: 1,
            decision: Decision {
                action,
                reason: format!("{RUN} has reviewed exactly this"),
                saved_token_estimate: 9_000,
                older: Vec::new(),
                duplicate_of: None,
            },
            carried_hunks: Some(0),
            tokens: 4_100,
            input_cost: Some(0.0123),
            members: Vec::new(),
            opinions: Vec::new(),
            limit: Some(CostLimit::AtMost { dollars: 0.4 }),
            continues: None,
            spent_before: 0.0,
            uncounted: None,
            no_room: None,
            missing_key: None,
        }
    }

    fn panel() -> RequestPreview {
        let member = |reviewer: &str, action, sent: (u64, Option<f64>), limit| MemberForecast {
            reviewer: reviewer.to_owned(),
            action,
            tokens: sent.0,
            input_cost: sent.1,
            limit,
        };
        let nothing = (0, Some(0.0));
        RequestPreview {
            members: vec![
                member("one", ReviewAction::Reuse { run: run() }, nothing, CostLimit::Nothing),
                member("two", ReviewAction::Launch, (2_000, Some(0.0123)), CostLimit::AtMost { dollars: 0.3 }),
                member("agent", ReviewAction::Launch, (2_100, None), CostLimit::Unknown { tokens: None }),
                member("builtin", ReviewAction::Launch, nothing, CostLimit::Nothing),
                member("local", ReviewAction::Adopt { run: run() }, nothing, CostLimit::Nothing),
            ],
            opinions: vec![ReviewerTerms { name: "dear".to_owned(), limit: CostLimit::AtMost { dollars: 1.0 } }],
            input_cost: None,
            limit: Some(CostLimit::Unknown { tokens: None }),
            uncounted: UncountedCost::new(vec!["max_cost".to_owned()], vec!["agent".to_owned()]),
            ..preview(ReviewAction::Launch)
        }
    }

    #[test]
    fn one_line_says_what_each_member_and_all_of_them_may_cost() {
        assert_eq!(
            describe_costs(&panel()).as_deref(),
            Some(
                "one reused, 0 tokens; two ~2k tokens ($0.013), at most $0.30; agent ~2.1k tokens, its price is not known; \
                 builtin at no cost; local under way, 0 tokens; dear for opinions, at most $1.00; together first requests \
                 ~4.1k tokens ($0.013); at most $1.30 without agent, whose price is not known"
            )
        );
        let single = describe_costs(&preview(ReviewAction::Launch));
        assert_eq!(single.as_deref(), Some("first request ~4.1k tokens ($0.013); at most $0.40"));
        assert_eq!(describe_costs(&preview(ReviewAction::Reuse { run: run() })), None, "nothing starts");
    }

    #[test]
    fn a_decision_names_its_run_once() {
        let reuses = preview(ReviewAction::Reuse { run: run() }).decision;
        assert_eq!(
            describe_decision(&reuses, |run| run.to_string()),
            format!("reuses {RUN}, 0 tokens: it has reviewed exactly this; saves about 9k tokens")
        );
        assert_eq!(
            describe_size("worktree", &preview(ReviewAction::Launch)),
            "worktree: 2 files, 3 hunks, 1,204 changed lines, 1 file left out"
        );
    }

    #[test]
    fn json_has_every_figure_and_null_for_what_is_not_known() {
        let encoded = encode_forecast(&panel());
        assert_eq!(
            (&encoded["action"], &encoded["run_id"], &encoded["cost_limit"], &encoded["input_cost"]),
            (&json!("launch"), &Value::Null, &Value::Null, &Value::Null)
        );
        assert_eq!(
            encoded["members"][0],
            json!({ "reviewer": "one", "action": "reuse", "run_id": RUN, "tokens": 0, "input_cost": 0.0, "cost_limit": 0.0 })
        );
        assert_eq!(encoded["members"][1]["cost_limit"], json!(0.3));
        assert_eq!(encoded["known_part"], json!({ "input_cost": 0.0123, "cost_limit": 1.3, "without": ["agent"] }));
        assert_eq!(encoded["opinions"], json!([{ "reviewer": "dear", "cost_limit": 1.0 }]));
        assert_eq!(encoded["uncounted"], json!({ "limits": ["max_cost"], "reviewers": ["agent"] }));
        let reused = encode_forecast(&RequestPreview { limit: None, ..preview(ReviewAction::Reuse { run: run() }) });
        assert_eq!((&reused["run_id"], &reused["cost_limit"]), (&json!(RUN), &json!(0.0)));
        assert_eq!(reused["known_part"], Value::Null);
    }

    #[test]
    fn of_a_panel_with_unknown_prices_the_known_part_is_said_with_who_is_left_out() {
        let sent = |unknown: &[usize], opinion: CostLimit| {
            let mut preview = panel();
            for at in unknown {
                let member = &mut preview.members[*at];
                (member.input_cost, member.limit) = (None, CostLimit::Unknown { tokens: None });
            }
            preview.opinions[0].limit = opinion;
            describe_sending(&preview, preview.limit).expect("something is sent")
        };
        let (known, unknown) = (CostLimit::AtMost { dollars: 1.0 }, CostLimit::Unknown { tokens: None });
        for (members, opinion, expected) in [
            (&[][..], known, "($0.013); at most $1.30 without agent, whose price is not known"),
            (
                &[1][..],
                CostLimit::Nothing,
                "~4.1k tokens; at no cost without two and agent, whose prices are not known",
            ),
            (&[][..], unknown, "($0.013); at most $0.30 without agent and dear, whose prices are not known"),
            (&[1][..], unknown, "at no cost without two, agent and dear, whose prices are not known"),
        ] {
            let said = sent(members, opinion);
            assert!(said.ends_with(expected), "{said}");
        }
    }
}
