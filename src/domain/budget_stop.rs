//! Defines the limit at which a run stopped, for records, journals and screens.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::text::{format_limit_dollars, format_thousands, sanitize_line};

word_enum!(
    /// Kind of a limit that a run can reach.
    BudgetKind {
        /// US dollars of the run: `budget.run_cost`.
        RunCost = "run_cost",
        /// Tokens of the run: `budget.run_tokens`.
        RunTokens = "run_tokens",
        /// US dollars of all runs of a day: `budget.day_cost`.
        DayCost = "day_cost",
        /// Tokens of all runs of a day: `budget.day_tokens`.
        DayTokens = "day_tokens",
        /// Turns of the run: `window.max_turns`.
        Turns = "turns",
        /// US dollars of all members of a panel: `max_cost` of the panel.
        PanelCost = "panel_cost",
        /// US dollars of all machines of a team in a day: `revdeck team budget`.
        TeamCost = "team_cost",
        /// Tokens of all machines of a team in a day: `revdeck team budget`.
        TeamTokens = "team_tokens",
    }
);

impl BudgetKind {
    /// Returns the name of the limit for a sentence: `budget of the day`.
    pub fn limit_name(self) -> &'static str {
        match self {
            Self::RunCost | Self::RunTokens => "budget",
            Self::DayCost | Self::DayTokens => "budget of the day",
            Self::Turns => "turn limit",
            Self::PanelCost => "budget of the panel",
            Self::TeamCost | Self::TeamTokens => "budget of the team",
        }
    }

    /// Returns true for a limit in US dollars.
    pub fn is_money(self) -> bool {
        matches!(self, Self::RunCost | Self::DayCost | Self::PanelCost | Self::TeamCost)
    }
}

/// Limit at which a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BudgetStop {
    /// Kind of the limit, and with it the unit of the numbers: US dollars, tokens or turns.
    #[serde(rename = "budget")]
    pub kind: BudgetKind,
    /// Amount that was used when the run stopped. It is below the limit if the next request did not fit.
    pub reached: f64,
    /// The limit.
    pub limit: f64,
}

impl BudgetStop {
    /// Describes the stop as a part of a sentence: `budget reached at $1.00 of $1.00`, `budget of the panel (max_cost) reached
    /// at $1.20 of $1.25`.
    pub fn describe(&self) -> String {
        self.describe_in_panel(None)
    }

    /// Describes the stop as [`Self::describe`] does, with the setting of a panel: `budget of the panel (max_cost of
    /// panels.trio) reached at $1.20 of $1.25`. `panel` is its name, if it is known.
    pub fn describe_in_panel(&self, panel: Option<&str>) -> String {
        let count = |amount: f64| format_thousands(amount.max(0.0) as u64);
        let (format, unit): (&dyn Fn(f64) -> String, _) = match self.kind {
            kind if kind.is_money() => (&format_limit_dollars, ""),
            BudgetKind::Turns => (&count, " turns"),
            _ => (&count, " tokens"),
        };
        let setting = match (self.kind, panel) {
            (BudgetKind::PanelCost, Some(panel)) => format!(" (max_cost of panels.{})", sanitize_line(panel)),
            (BudgetKind::PanelCost, None) => " (max_cost)".to_owned(),
            _ => String::new(),
        };
        let limit = self.kind.limit_name();
        format!("{limit}{setting} reached at {} of {}{unit}", format(self.reached), format(self.limit))
    }

    /// Returns what a person can do so that the review goes on, as a part of a sentence.
    pub fn next_step(&self) -> &'static str {
        match self.kind {
            BudgetKind::RunCost => "ask again with a higher budget.run_cost",
            BudgetKind::RunTokens => "ask again with a higher budget.run_tokens",
            BudgetKind::DayCost => "ask again after midnight, or with a higher budget.day_cost",
            BudgetKind::DayTokens => "ask again after midnight, or with a higher budget.day_tokens",
            BudgetKind::Turns => "ask again with a higher window.max_turns",
            BudgetKind::PanelCost => "ask again with a higher max_cost of the panel, or begin anew (--force)",
            BudgetKind::TeamCost | BudgetKind::TeamTokens => {
                "ask again after midnight UTC, or with a higher limit (`revdeck team budget`)"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(BudgetKind::RunCost, 1.0, 1.0, "budget reached at $1.00 of $1.00")]
    #[case(BudgetKind::RunTokens, 61_000.0, 70_000.0, "budget reached at 61,000 of 70,000 tokens")]
    #[case(BudgetKind::DayCost, 5.024, 5.0, "budget of the day reached at $5.02 of $5.00")]
    #[case(
        BudgetKind::DayTokens,
        2_000_000.0,
        2_000_000.0,
        "budget of the day reached at 2,000,000 of 2,000,000 tokens"
    )]
    #[case(BudgetKind::PanelCost, 1.2, 1.25, "budget of the panel (max_cost) reached at $1.20 of $1.25")]
    #[case(BudgetKind::PanelCost, 0.0, 0.001, "budget of the panel (max_cost) reached at $0.00 of $0.001")]
    #[case(BudgetKind::RunCost, 0.00094, 0.002, "budget reached at $0.00094 of $0.002")]
    #[case(BudgetKind::TeamCost, 19.9, 20.0, "budget of the team reached at $19.90 of $20.00")]
    #[case(BudgetKind::TeamTokens, 9_000.0, 10_000.0, "budget of the team reached at 9,000 of 10,000 tokens")]
    #[case(BudgetKind::Turns, 20.0, 20.0, "turn limit reached at 20 of 20 turns")]
    fn each_kind_of_budget_has_its_words(
        #[case] kind: BudgetKind,
        #[case] reached: f64,
        #[case] limit: f64,
        #[case] words: &str,
    ) {
        assert_eq!(BudgetStop { kind, reached, limit }.describe(), words);
    }

    #[test]
    fn the_limit_of_a_panel_names_its_setting() {
        let stop = |kind| BudgetStop { kind, reached: 0.0, limit: 0.0001 };
        let of_panel = stop(BudgetKind::PanelCost);
        assert_eq!(
            of_panel.describe_in_panel(Some("trio")),
            "budget of the panel (max_cost of panels.trio) reached at $0.00 of $0.0001"
        );
        let of_run = stop(BudgetKind::RunCost);
        assert_eq!(of_run.describe_in_panel(Some("trio")), of_run.describe());
    }
}
