//! Decides whether a question to a reviewer fits the budgets.

use std::fmt;
use std::ops::AddAssign;

use crate::domain::BudgetKind;
use crate::domain::text::format_thousands;

/// Limits of a run and of a day; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QuestionLimits {
    /// US dollars of a run.
    pub run_cost: Option<f64>,
    /// Tokens of a run.
    pub run_tokens: Option<u64>,
    /// US dollars of a day.
    pub day_cost: Option<f64>,
    /// Tokens of a day.
    pub day_tokens: Option<u64>,
}

/// Amount of money and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetAmount {
    /// US dollars; 0 if the price is unknown.
    pub cost: f64,
    /// Tokens of requests and answers.
    pub tokens: u64,
}

impl AddAssign for BudgetAmount {
    fn add_assign(&mut self, other: Self) {
        self.cost += other.cost;
        self.tokens = self.tokens.saturating_add(other.tokens);
    }
}

/// Reason why a question is not asked: the most that it may take does not fit a budget any more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuestionOverBudget {
    /// Budget that would be passed; it tells the unit of the amounts.
    pub kind: BudgetKind,
    /// The most that the question may take.
    pub most: f64,
    /// Amount that is used already.
    pub used: f64,
    /// The limit.
    pub limit: f64,
}

/// Checks the most that a question may take against what the questions about the same run and everything of the day
/// have taken.
///
/// # Errors
///
/// Returns the first budget that the question could pass.
pub fn check_question_budget(
    limits: QuestionLimits,
    run: BudgetAmount,
    day: BudgetAmount,
    most: BudgetAmount,
) -> Result<(), QuestionOverBudget> {
    let tokens = |tokens: u64| tokens as f64;
    let budgets = [
        (BudgetKind::RunCost, limits.run_cost, run.cost, most.cost),
        (BudgetKind::RunTokens, limits.run_tokens.map(tokens), tokens(run.tokens), tokens(most.tokens)),
        (BudgetKind::DayCost, limits.day_cost, day.cost, most.cost),
        (BudgetKind::DayTokens, limits.day_tokens.map(tokens), tokens(day.tokens), tokens(most.tokens)),
    ];
    for (kind, limit, used, most) in budgets {
        if let Some(limit) = limit.filter(|limit| used + most > *limit) {
            return Err(QuestionOverBudget { kind, most, used, limit });
        }
    }
    Ok(())
}

impl fmt::Display for QuestionOverBudget {
    /// Writes `it may cost $0.0312, and $0.985 of $1.00 are used (budget.run_cost)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, most, used, limit } = *self;
        let count = |amount: f64| format_thousands(amount as u64);
        match kind {
            BudgetKind::RunCost | BudgetKind::DayCost | BudgetKind::PanelCost | BudgetKind::TeamCost => {
                let (most, used, limit) = (format_dollars(most), format_dollars(used), format_dollars(limit));
                write!(f, "it may cost {most}, and {used} of {limit} are used (budget.{kind})")
            }
            BudgetKind::RunTokens | BudgetKind::DayTokens | BudgetKind::TeamTokens | BudgetKind::Turns => {
                let (most, used, limit) = (count(most), count(used), count(limit));
                write!(f, "it may take {most} tokens, and {used} of {limit} are used (budget.{kind})")
            }
        }
    }
}

/// Formats an amount with two digits behind the point, and with up to four where they are not zero.
fn format_dollars(amount: f64) -> String {
    let text = format!("${amount:.4}");
    match text.strip_suffix("00") {
        Some(short) => short.to_owned(),
        None => text.strip_suffix('0').unwrap_or(&text).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing_used((0.0, 0), (0.0, 0), None)]
    #[case::up_to_the_limit((0.75, 7_000), (9.75, 97_000), None)]
    #[case::run_cost((0.8, 0), (0.8, 0), Some("it may cost $0.25, and $0.80 of $1.00 are used (budget.run_cost)"))]
    #[case::run_tokens(
        (0.0, 7_001),
        (0.0, 7_001),
        Some("it may take 3,000 tokens, and 7,001 of 10,000 are used (budget.run_tokens)")
    )]
    #[case::day_cost((0.0, 0), (9.9012, 0), Some("it may cost $0.25, and $9.9012 of $10.00 are used (budget.day_cost)"))]
    #[case::day_tokens(
        (0.0, 0),
        (0.0, 100_000),
        Some("it may take 3,000 tokens, and 100,000 of 100,000 are used (budget.day_tokens)")
    )]
    fn a_question_fits_or_is_refused_with_figures(
        #[case] run: (f64, u64),
        #[case] day: (f64, u64),
        #[case] refused: Option<&str>,
    ) {
        let limits = QuestionLimits {
            run_cost: Some(1.0),
            run_tokens: Some(10_000),
            day_cost: Some(10.0),
            day_tokens: Some(100_000),
        };
        let amount = |(cost, tokens)| BudgetAmount { cost, tokens };
        let check = |limits| check_question_budget(limits, amount(run), amount(day), amount((0.25, 3_000)));
        assert_eq!(check(limits).err().map(|refusal| refusal.to_string()).as_deref(), refused);
        assert_eq!(check(QuestionLimits::default()), Ok(()), "no limit");
    }
}
