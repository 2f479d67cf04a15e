//! Compares two reviews of one change: what both found, what one of them found, what became of it, and what they cost.

mod comparison_sum;

pub use comparison_sum::ComparisonSum;

use std::collections::HashMap;

use serde_json::{Value, json as value};

use super::figures::{format_dollars, format_millis};
use super::json::{build_versioned, encode_finding};
use super::{ExportedFinding, TextOptions, TextStyle, TextTable};
use crate::config::DEFAULT_PROMPT_SET;
use crate::domain::text::format_thousands;
use crate::domain::{Finding, FindingStatus, RunReviewer, RunStatus};
use crate::review::merge_reports;
use crate::store::{RunRow, StoreView};

/// Review that is compared.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    /// Id of the run.
    pub id: String,
    /// Its findings, with their present status.
    pub findings: Vec<Finding>,
    reviewer: String,
    model: String,
    prompt_set: Option<String>,
    /// Words of the kinds that it was asked for, separated by commas; empty for all kinds.
    focus: String,
    spending: ReviewSpending,
    took_ms: i64,
    status: RunStatus,
    /// True if it ended by itself without a part of what it should have reviewed.
    is_incomplete: bool,
}

/// Tokens and cost of a review; of a panel those of all its members, too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReviewSpending {
    /// Tokens that were sent and received.
    pub tokens: u64,
    /// Cost in US dollars; `None` if it is not known: of tokens without a known price, or of members that are not here.
    pub cost: Option<f64>,
}

impl ReviewSpending {
    /// A review that has asked nobody.
    pub const NOTHING: Self = Self { tokens: 0, cost: Some(0.0) };

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cost = self.cost.zip(other.cost).map(|(one, other)| one + other);
        Self { tokens: self.tokens.saturating_add(other.tokens), cost }
    }

    /// Formats the cost.
    fn format_cost(self) -> String {
        self.cost.map_or_else(|| "price not known".to_owned(), format_dollars)
    }
}

impl ComparedRun {
    /// Takes what a view knows of a run and of its findings, whose secrets are masked. `merged` are the findings of the view
    /// that panels list under other ids: what became of their problems is said there.
    pub fn new(
        view: &StoreView,
        merged: &HashMap<usize, usize>,
        run: &RunRow<'_>,
        mut findings: Vec<Finding>,
        spending: ReviewSpending,
    ) -> Self {
        // revdeck's own search for secrets finds the same in each run: that says nothing about a reviewer.
        findings.retain(|finding| !finding.is_from_secret_scan());
        for finding in &mut findings {
            *finding = ExportedFinding::new(finding, None).finding;
            if let Some(index) = view.finding_index(finding.finding_id.as_str()) {
                finding.status = view.finding_status(merged.get(&index).copied().unwrap_or(index));
                view.rate_finding(finding);
            }
        }
        let took = |run: &RunRow<'_>| run.updated_ms.saturating_sub(run.created_ms);
        // As for the cost, a member counts that another request has paid for.
        let members = run.panel_members().filter_map(|(id, _)| Some(view.run(view.run_index(id)?)));
        Self {
            id: run.id.to_owned(),
            findings,
            reviewer: run.reviewer.to_owned(),
            model: run.model.to_owned(),
            prompt_set: run.prompt_set().map(str::to_owned),
            focus: RunReviewer::focus_of_version(run.policy_version).to_owned(),
            spending,
            took_ms: members.map(|member| took(&member)).fold(took(run), i64::max),
            status: run.status,
            is_incomplete: run.incomplete,
        }
    }

    /// Returns true if the run has reviewed all that it should have.
    fn is_whole(&self) -> bool {
        self.status == RunStatus::Completed && !self.is_incomplete
    }

    /// Describes how far the review came: `completed`, `incomplete`, or the status of a run that has not ended by itself.
    fn describe_end(&self) -> &'static str {
        if self.is_incomplete { "incomplete" } else { self.status.word() }
    }

    fn set_name(&self) -> &str {
        name_set(self.prompt_set.as_deref())
    }
}

/// Describes the kinds that a reviewer was asked for: `SECURITY, CONCURRENCY`.
fn describe_focus(focus: &str) -> String {
    if focus.is_empty() { "all kinds".to_owned() } else { focus.replace(',', ", ") }
}

/// Lists the kinds that a reviewer was asked for; none for all kinds.
fn list_focus(focus: &str) -> Vec<&str> {
    focus.split(',').filter(|kind| !kind.is_empty()).collect()
}

/// Returns the name of a prompt set, also for the prompts outside of a set.
fn name_set(prompt_set: Option<&str>) -> &str {
    prompt_set.unwrap_or(DEFAULT_PROMPT_SET)
}

/// Two reviews of one change, by problem.
#[derive(Debug)]
pub struct RunComparison<'a> {
    runs: [&'a ComparedRun; 2],
    /// Problems that both reported, each in the words of both.
    both: Vec<[&'a Finding; 2]>,
    /// Problems that only one of them reported.
    only: [Vec<&'a Finding>; 2],
}

impl<'a> RunComparison<'a> {
    /// Compares two reviews; the most urgent problems come first.
    pub fn new(first: &'a ComparedRun, second: &'a ComparedRun) -> Self {
        let runs = [first, second];
        let (mut both, mut only) = (Vec::new(), [Vec::new(), Vec::new()]);
        for group in merge_reports(&[&first.findings, &second.findings]) {
            let found: Vec<&Finding> =
                group.iter().filter_map(|report| runs[report.member].findings.get(report.finding)).collect();
            match (found.as_slice(), group.first()) {
                ([one, other], _) => both.push([*one, *other]),
                ([one], Some(report)) => only[report.member].push(*one),
                _ => {}
            }
        }
        both.sort_by_key(|[one, other]| one.priority.min(other.priority));
        only.iter_mut().for_each(|found| found.sort_by_key(|finding| finding.priority));
        Self { runs, both, only }
    }

    /// Renders the comparison: a table of the two reviews, then the problems.
    pub fn render(&self, look: &TextOptions) -> String {
        let mut table = TextTable::default();
        let row = |table: &mut TextTable, name: &str, of: &dyn Fn(&ComparedRun) -> String| {
            let cells = self.runs.map(of);
            table.push_row([(TextStyle::Faint, name), (TextStyle::Plain, &cells[0]), (TextStyle::Plain, &cells[1])]);
        };
        row(&mut table, "", &|run| run.id.clone());
        row(&mut table, "reviewer", &|run| match run.model.as_str() {
            "" => run.reviewer.clone(),
            model => format!("{} ({model})", run.reviewer),
        });
        if self.runs.iter().any(|run| run.prompt_set.is_some()) {
            row(&mut table, "prompts", &|run| run.set_name().to_owned());
        }
        // Who was not asked for a kind, or has not seen a part of the change, could not find its problems.
        if self.runs.iter().any(|run| !run.focus.is_empty()) {
            row(&mut table, "asked for", &|run| describe_focus(&run.focus));
        }
        if !self.runs.iter().all(|run| run.is_whole()) {
            row(&mut table, "review", &|run| run.describe_end().to_owned());
        }
        row(&mut table, "findings", &|run| run.findings.len().to_string());
        for outcome in ["addressed", "dismissed", "undecided"] {
            let is_counted = |status: FindingStatus| match outcome {
                "addressed" => status == FindingStatus::Addressed,
                "dismissed" => status == FindingStatus::Dismissed,
                _ => status.is_undecided(),
            };
            row(&mut table, outcome, &|run| {
                run.findings.iter().filter(|finding| is_counted(finding.status)).count().to_string()
            });
        }
        row(&mut table, "tokens", &|run| format_thousands(run.spending.tokens));
        row(&mut table, "cost", &|run| run.spending.format_cost());
        row(&mut table, "time", &|run| format_millis(u64::try_from(run.took_ms).unwrap_or(0)));
        let mut text = table.render(look);
        self.render_section(&mut text, look, "found by both", self.both.len(), |table| {
            for [one, other] in &self.both {
                push_finding(table, one);
                if one.title != other.title {
                    let words = format!("{}: {}", other.priority, other.title);
                    table.push_row([
                        (TextStyle::Plain, ""),
                        (TextStyle::Plain, ""),
                        (TextStyle::Faint, ""),
                        (TextStyle::Faint, &words),
                    ]);
                }
            }
        });
        for (member, found) in self.only.iter().enumerate() {
            let heading = self.describe_lone(member);
            self.render_section(&mut text, look, &heading, found.len(), |table| {
                found.iter().for_each(|finding| push_finding(table, finding));
            });
        }
        text
    }

    /// Returns the heading of what only one review found. It names the review by what the two do not share: the
    /// reviewer, the prompt set, else the id.
    fn describe_lone(&self, member: usize) -> String {
        let [first, second] = self.runs;
        let run = self.runs[member];
        if first.reviewer != second.reviewer {
            format!("only {}", run.reviewer)
        } else if first.prompt_set != second.prompt_set {
            format!("only with the prompts {}", run.set_name())
        } else {
            format!("only {}", run.id)
        }
    }

    fn render_section(
        &self,
        text: &mut String,
        look: &TextOptions,
        heading: &str,
        count: usize,
        fill: impl FnOnce(&mut TextTable),
    ) {
        text.push_str(&format!("\n{}\n", look.paint(TextStyle::Strong, &format!("{heading}  {count}"))));
        let mut table = TextTable::default();
        fill(&mut table);
        text.push_str(&table.render(look));
    }

    /// Encodes the output of `compare --format json`: `runs`, `both`, `only_first`, `only_second`.
    pub fn encode(&self) -> Value {
        let encode_run = |run: &&ComparedRun| {
            value!({
                "run_id": run.id,
                "reviewer": run.reviewer,
                "model": run.model,
                "prompt_set": run.prompt_set,
                "focus": list_focus(&run.focus),
                "findings": run.findings.len(),
                "tokens": run.spending.tokens,
                "cost": run.spending.cost,
                "took_ms": run.took_ms,
                "status": run.status.word(),
                "incomplete": run.is_incomplete,
            })
        };
        let encode_all =
            |found: &[&Finding]| Value::from(found.iter().map(|found| encode_finding(found)).collect::<Vec<_>>());
        let both = self.both.iter().map(|found| encode_all(found)).collect::<Vec<_>>();
        build_versioned([
            ("runs", Value::from(self.runs.iter().map(encode_run).collect::<Vec<_>>())),
            ("both", Value::from(both)),
            ("only_first", encode_all(&self.only[0])),
            ("only_second", encode_all(&self.only[1])),
        ])
    }
}

fn push_finding(table: &mut TextTable, finding: &Finding) {
    let place = format!("{}:{}", finding.repo_relative_path, finding.line_start);
    table.push_row([
        (TextStyle::Plain, finding.priority.to_string().as_str()),
        (TextStyle::Location, &place),
        (TextStyle::from_finding_status(finding.status), finding.status.word()),
        (TextStyle::Plain, &finding.title),
    ]);
}
