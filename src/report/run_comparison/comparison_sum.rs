//! Sums the comparisons of all changes that two reviewers, or one reviewer with two prompt sets, have reviewed.
//!
//! A problem counts once, as the newest of its changes has it: the same finding stands in the reviews of many changes.

use std::collections::HashSet;

use serde_json::{Value, json as value};

use super::{ComparedRun, ReviewSpending, RunComparison};
use crate::domain::text::{format_count, format_thousands};
use crate::domain::{Finding, FindingId, FindingStatus};
use crate::report::figures::format_millis;
use crate::report::json::build_versioned;
use crate::report::{TextOptions, TextStyle, TextTable};

/// Names of the columns of [`ProblemSum`].
const OUTCOMES: [&str; 5] = ["found", "addressed", "dismissed", "undecided", "obsolete"];

/// Number of problems by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ProblemSum {
    addressed: u32,
    dismissed: u32,
    undecided: u32,
    obsolete: u32,
}

impl ProblemSum {
    /// Counts a problem. A decision about one of two findings holds for the problem.
    fn count(&mut self, findings: &[&Finding]) {
        let has = |status: FindingStatus| findings.iter().any(|finding| finding.status == status);
        let counted = if has(FindingStatus::Addressed) {
            &mut self.addressed
        } else if has(FindingStatus::Dismissed) {
            &mut self.dismissed
        } else if findings.iter().any(|finding| finding.status.is_undecided()) {
            &mut self.undecided
        } else {
            &mut self.obsolete
        };
        *counted += 1;
    }

    fn found(self) -> u32 {
        self.addressed + self.dismissed + self.undecided + self.obsolete
    }

    /// Returns the numbers in the order of [`OUTCOMES`].
    fn numbers(self) -> [u32; 5] {
        [self.found(), self.addressed, self.dismissed, self.undecided, self.obsolete]
    }

    fn encode(self) -> Value {
        OUTCOMES.iter().zip(self.numbers()).map(|(name, number)| ((*name).to_owned(), value!(number))).collect()
    }
}

/// Sums of the reviews of one side.
#[derive(Debug, Clone)]
struct SideSum {
    reviewer: String,
    /// Model of the newest review.
    model: String,
    prompt_set: Option<String>,
    /// Words of the kinds that the newest review was asked for, separated by commas; empty for all kinds.
    focus: String,
    spending: ReviewSpending,
    took_ms: u64,
    /// Number of reviews that left out a part of what they should have reviewed.
    incomplete: u32,
}

impl Default for SideSum {
    fn default() -> Self {
        let [reviewer, model, focus] = <[String; 3]>::default();
        Self { reviewer, model, prompt_set: None, focus, spending: ReviewSpending::NOTHING, took_ms: 0, incomplete: 0 }
    }
}

/// Sum of comparisons.
#[derive(Debug, Default)]
pub struct ComparisonSum {
    sides: [SideSum; 2],
    changes: u32,
    both: ProblemSum,
    only: [ProblemSum; 2],
    /// Findings of all problems so far.
    known: HashSet<FindingId>,
}

impl ComparisonSum {
    /// Adds two reviews of one change. The newest change comes first.
    pub fn add_change(&mut self, first: &ComparedRun, second: &ComparedRun) {
        let comparison = RunComparison::new(first, second);
        for (side, run) in self.sides.iter_mut().zip(comparison.runs) {
            if self.changes == 0 {
                side.reviewer.clone_from(&run.reviewer);
                side.model.clone_from(&run.model);
                side.prompt_set.clone_from(&run.prompt_set);
                side.focus.clone_from(&run.focus);
            }
            side.spending = side.spending.plus(run.spending);
            side.took_ms = side.took_ms.saturating_add(u64::try_from(run.took_ms).unwrap_or(0));
            side.incomplete += u32::from(!run.is_whole());
        }
        self.changes += 1;
        for pair in &comparison.both {
            if self.insert_problem(pair) {
                self.both.count(pair);
            }
        }
        for (side, found) in comparison.only.iter().enumerate() {
            for finding in found.iter().copied() {
                if self.insert_problem(&[finding]) {
                    self.only[side].count(&[finding]);
                }
            }
        }
    }

    /// Remembers the findings of a problem. Returns true unless one of them was known.
    fn insert_problem(&mut self, findings: &[&Finding]) -> bool {
        let is_known = findings.iter().any(|finding| self.known.contains(&finding.finding_id));
        self.known.extend(findings.iter().map(|finding| finding.finding_id.clone()));
        !is_known
    }

    /// Renders the sum: a table of the two sides, then the problems by who found them and what became of them.
    pub fn render(&self, look: &TextOptions) -> String {
        let changes = format_count(self.changes as usize, "change");
        let mut text = format!("{}\n", look.paint(TextStyle::Strong, &format!("{changes} that both have reviewed")));
        let mut table = TextTable::default();
        let mut push = |name: &str, cells: [String; 2]| {
            table.push_row([(TextStyle::Faint, name), (TextStyle::Plain, &*cells[0]), (TextStyle::Plain, &*cells[1])]);
        };
        push("", [0, 1].map(|side| self.name_side(side)));
        let sides = || self.sides.each_ref();
        push("model", sides().map(|side| side.model.clone()));
        if sides().iter().any(|side| !side.focus.is_empty()) {
            push("asked for", sides().map(|side| super::describe_focus(&side.focus)));
        }
        if sides().iter().any(|side| side.incomplete > 0) {
            push("incomplete", sides().map(|side| format!("{} of {}", side.incomplete, self.changes)));
        }
        push("findings", [0, 1].map(|side| self.count_findings(side).to_string()));
        push("tokens", sides().map(|side| format_thousands(side.spending.tokens)));
        push("cost", sides().map(|side| side.spending.format_cost()));
        push("time", sides().map(|side| format_millis(side.took_ms)));
        text.push_str(&table.render(look));
        let mut table = TextTable::default();
        table.push_row([""].into_iter().chain(OUTCOMES).map(|name| (TextStyle::Faint, name)));
        let only = [0, 1].map(|side| (format!("only {}", self.name_side(side)), self.only[side]));
        for (name, sum) in [("found by both".to_owned(), self.both)].into_iter().chain(only) {
            let numbers = sum.numbers().map(|number| number.to_string());
            let numbers = numbers.iter().map(|number| (TextStyle::Plain, number.as_str()));
            table.push_row([(TextStyle::Plain, name.as_str())].into_iter().chain(numbers));
        }
        text.push('\n');
        text.push_str(&table.render(look));
        text
    }

    /// Returns the name of a side: what the two do not share, the reviewer or the prompt set.
    fn name_side(&self, side: usize) -> String {
        let [first, second] = &self.sides;
        let SideSum { reviewer, prompt_set, .. } = &self.sides[side];
        match first.reviewer == second.reviewer {
            true => format!("{reviewer}, prompts {}", super::name_set(prompt_set.as_deref())),
            false => reviewer.clone(),
        }
    }

    fn count_findings(&self, side: usize) -> u32 {
        self.both.found() + self.only[side].found()
    }

    /// Encodes the output of `compare --all --format json`: `changes`, `sides`, `both`, `only_first`, `only_second`.
    pub fn encode(&self) -> Value {
        let sides = [0, 1].map(|at| {
            let side = &self.sides[at];
            value!({
                "reviewer": side.reviewer,
                "model": side.model,
                "prompt_set": side.prompt_set,
                "focus": super::list_focus(&side.focus),
                "findings": self.count_findings(at),
                "tokens": side.spending.tokens,
                "cost": side.spending.cost,
                "took_ms": side.took_ms,
                "incomplete": side.incomplete,
            })
        });
        build_versioned([
            ("changes", value!(self.changes)),
            ("sides", value!(sides)),
            ("both", self.both.encode()),
            ("only_first", self.only[0].encode()),
            ("only_second", self.only[1].encode()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Kind, Priority, RunStatus, Time};
    use crate::report::tests::finding;

    fn compared(reviewer: &str, findings: Vec<Finding>) -> ComparedRun {
        ComparedRun {
            id: format!("ar_{reviewer}"),
            findings,
            reviewer: reviewer.to_owned(),
            model: format!("{reviewer}-1"),
            prompt_set: None,
            focus: String::new(),
            spending: ReviewSpending { tokens: 1_500, cost: Some(0.25) },
            took_ms: 4_000,
            status: RunStatus::Completed,
            is_incomplete: false,
        }
    }

    #[test]
    fn a_review_that_left_a_part_out_says_so() {
        let look = TextOptions { color: false, ascii: false, width: None, now: Time::UNIX_EPOCH };
        let line = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        let whole = compared("sonnet", Vec::new());
        for (status, is_incomplete, expected) in [
            (RunStatus::Completed, false, None),
            (RunStatus::Completed, true, Some("review completed incomplete")),
            (RunStatus::Failed, false, Some("review completed failed")),
        ] {
            let other = ComparedRun { status, is_incomplete, ..compared("local", Vec::new()) };
            let comparison = RunComparison::new(&whole, &other);
            assert_eq!(line(&comparison.render(&look), "review ").as_deref(), expected);
            let encoded = comparison.encode()["runs"][1].clone();
            assert_eq!((&encoded["status"], &encoded["incomplete"]), (&value!(status.word()), &value!(is_incomplete)));
            let mut sum = ComparisonSum::default();
            sum.add_change(&whole, &other);
            sum.add_change(&whole, &whole);
            let expected = expected.map(|_| "incomplete 0 of 2 1 of 2");
            assert_eq!(line(&sum.render(&look), "incomplete").as_deref(), expected);
            assert_eq!(sum.encode()["sides"][1]["incomplete"], u32::from(expected.is_some()));
        }
    }

    fn found(line: u32, title: &str, status: FindingStatus) -> Finding {
        let finding_id = FindingId::from_parts("CORRECTNESS", "a.rs", &format!("{title} {line}"), 0);
        let quoted_code = format!("let a = read({line});");
        let base = finding(Kind::Correctness, Priority::P2, "a.rs", line, title);
        Finding { finding_id, quoted_code, status, ..base }
    }

    #[test]
    fn a_reviewer_that_was_asked_for_some_kinds_says_so_in_the_sum() {
        let look = TextOptions { color: false, ascii: false, width: None, now: Time::UNIX_EPOCH };
        let whole = || compared("sonnet", Vec::new());
        let focused = ComparedRun { focus: "SECURITY,CONCURRENCY".to_owned(), ..compared("local", Vec::new()) };
        for (second, row, kinds) in [
            (compared("local", Vec::new()), None, value!([])),
            (focused, Some("asked for all kinds SECURITY, CONCURRENCY"), value!(["SECURITY", "CONCURRENCY"])),
        ] {
            let mut sum = ComparisonSum::default();
            sum.add_change(&whole(), &second);
            let text = sum.render(&look);
            let line = text.lines().find(|line| line.starts_with("asked for"));
            let line = line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            assert_eq!(line.as_deref(), row, "{text}");
            let encoded = sum.encode();
            assert_eq!([0, 1].map(|side| encoded["sides"][side]["focus"].clone()), [value!([]), kinds]);
        }
    }

    #[test]
    fn a_sum_with_a_price_that_is_not_known_has_no_cost() {
        let mut sum = ComparisonSum::default();
        let unpriced = ReviewSpending { tokens: 700, cost: None };
        sum.add_change(&compared("sonnet", Vec::new()), &compared("local", Vec::new()));
        sum.add_change(
            &compared("sonnet", Vec::new()),
            &ComparedRun { spending: unpriced, ..compared("local", Vec::new()) },
        );
        let encoded = sum.encode();
        let costs = [0, 1].map(|side| encoded["sides"][side]["cost"].clone());
        assert_eq!((costs, &encoded["sides"][1]["tokens"]), ([value!(0.5), Value::Null], &value!(2_200)));
        let look = TextOptions { color: false, ascii: false, width: None, now: Time::UNIX_EPOCH };
        let text = sum.render(&look);
        let cost = text.lines().find(|line| line.starts_with("cost")).unwrap_or_default();
        assert!(cost.contains("$0.50") && cost.contains("price not known"), "{text}");
    }

    #[test]
    fn a_problem_counts_once_as_its_newest_change_has_it() {
        use FindingStatus::{Addressed, Dismissed, Obsolete, Open};
        let both = || found(10, "Off by one", Addressed);
        let mine = || found(50, "The lock is never released", Dismissed);
        let theirs = || found(90, "User input reaches the shell", Open);
        let gone = found(130, "Result of `write` is ignored", Obsolete);
        let mut sum = ComparisonSum::default();
        sum.add_change(&compared("sonnet", vec![both(), mine()]), &compared("gpt", vec![both(), theirs()]));
        // The older change: one of them had not seen the first problem yet.
        sum.add_change(&compared("sonnet", vec![both()]), &compared("gpt", vec![theirs(), gone]));
        assert_eq!(
            (sum.both.numbers(), sum.only.map(ProblemSum::numbers)),
            ([1, 1, 0, 0, 0], [[1, 0, 1, 0, 0], [2, 0, 0, 1, 1]])
        );
        let encoded = sum.encode();
        assert_eq!((&encoded["changes"], &encoded["sides"][1]["findings"]), (&value!(2), &value!(3)));
        assert_eq!(
            encoded["only_second"],
            value!({
                "found": 2, "addressed": 0, "dismissed": 0, "undecided": 1, "obsolete": 1
            })
        );
        let look = TextOptions { color: false, ascii: false, width: None, now: Time::UNIX_EPOCH };
        insta::assert_snapshot!(sum.render(&look), @r"
        2 changes that both have reviewed
                  sonnet    gpt
        model     sonnet-1  gpt-1
        findings  2         3
        tokens    3,000     3,000
        cost      $0.50     $0.50
        time      8.0 s     8.0 s

                       found  addressed  dismissed  undecided  obsolete
        found by both  1      1          0          0          0
        only sonnet    1      0          1          0          0
        only gpt       2      0          0          1          1
        ");
    }
}
