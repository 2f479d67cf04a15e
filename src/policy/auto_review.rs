//! Decides if a movement of the repository is reviewed automatically: now, later, or not at all.
//!
//! Invariants:
//! - Only a movement can start a review, never the passing of time alone.
//! - A movement that waits is reviewed when the reason to wait ends.
//! - A movement that is refused stays refused until the next movement.
//! - This decision only limits the number of requests. [`super::decide()`] decides if a request costs anything.

use std::fmt;

use crate::domain::{GitOperation, QuietHours, Scope, WatchTrigger};

/// Minimum time without a movement before a review, in milliseconds: closer movements count as one. A rebase of many
/// commits, or `git commit` with its index, HEAD and log, writes several times a second, and nobody notices a wait of a
/// third of a second.
pub const MIN_SETTLE_MS: u64 = 300;

/// Settings of the user for automatic reviews.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoReviewRules {
    /// Movements that may start a review.
    pub on: Vec<WatchTrigger>,
    /// Time, in milliseconds, for which the worktree must not change before a review.
    pub quiet_ms: u64,
    /// Minimum time between two reviews of the worktree, in milliseconds.
    pub interval_ms: u64,
    /// Minimum number of added and removed lines.
    pub min_changed_lines: u64,
    /// Hours of the day without automatic reviews.
    pub quiet_hours: Option<QuietHours>,
    /// Maximum number of tokens per day.
    pub day_tokens: Option<u64>,
    /// Maximum cost per day in US dollars.
    pub day_cost: Option<f64>,
}

/// A movement, and the current state of everything that matters for the decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoReviewInput {
    pub movement: WatchTrigger,
    /// Milliseconds since the last movement.
    pub still_ms: u64,
    /// Git operation that is in progress, such as a rebase.
    pub operation: Option<GitOperation>,
    /// Remaining time of a snooze, in milliseconds.
    pub snoozed_ms: Option<u64>,
    /// Minute of the day in the user's time zone.
    pub minute: u16,
    /// Expenses of today. `None` for a reviewer that costs nothing.
    pub spent_today: Option<DailySpend>,
    /// Milliseconds since a watcher last requested a review of the worktree.
    pub asked_ms_ago: Option<u64>,
    pub change: ChangeSize,
}

/// Expenses of today, over all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DailySpend {
    pub tokens: u64,
    /// Cost in US dollars.
    pub cost: f64,
}

/// Size of the change to review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeSize {
    /// Not known. Measuring costs a snapshot, so it is done only after all other checks passed.
    NotMeasured,
    Measured {
        files: usize,
        /// Number of added and removed lines.
        lines: u64,
    },
}

/// Decision about a movement.
#[derive(Debug, Clone, PartialEq)]
pub enum AutoReviewVerdict {
    Review(Scope),
    /// Keep the movement and decide again later.
    Wait(RetryAt, NoReviewReason),
    /// Discard the movement.
    NotNow(NoReviewReason),
}

/// Time of the next decision. Any movement makes it earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAt {
    /// After this many milliseconds.
    Ms(u64),
    /// At the next movement only.
    Movement,
}

/// Reason for no review now. Its text completes the sentence "not reviewed: ".
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoReviewReason {
    NotWatched,
    NotQuiet,
    Operation(GitOperation),
    Snoozed,
    QuietHours(QuietHours),
    TooSoon,
    NothingChanged,
    TooSmall { lines: u64, least: u64 },
    TokensSpent { most: u64 },
    MoneySpent { most: f64 },
}

impl fmt::Display for NoReviewReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWatched => f.write_str("watch.on does not name it"),
            Self::NotQuiet => f.write_str("files are still moving"),
            Self::Operation(operation) => write!(f, "waits for the end of the {operation}"),
            Self::Snoozed => f.write_str("snoozed"),
            Self::QuietHours(hours) => write!(f, "waits for the end of the quiet hours at {}", hours.end()),
            Self::TooSoon => f.write_str("the last review of the worktree was a moment ago"),
            Self::NothingChanged => f.write_str("nothing differs from what is committed"),
            Self::TooSmall { lines, least } => {
                write!(f, "{} changed, watch.min_changed_lines is {least}", format_line_count(*lines))
            }
            Self::TokensSpent { most } => write!(f, "today's {most} tokens are used up"),
            Self::MoneySpent { most } => write!(f, "today's ${most:.2} are used up"),
        }
    }
}

fn format_line_count(lines: u64) -> String {
    crate::domain::text::format_count(usize::try_from(lines).unwrap_or(usize::MAX), "line")
}

/// Decides about one movement. Checked first is whether the movement is over, then reasons against any review, then
/// reasons against this one.
pub fn decide_auto_review(rules: &AutoReviewRules, now: &AutoReviewInput) -> AutoReviewVerdict {
    let movement = now.movement;
    if !rules.on.contains(&movement) {
        return AutoReviewVerdict::NotNow(NoReviewReason::NotWatched);
    }
    let quiet = match movement {
        WatchTrigger::Worktree => rules.quiet_ms.max(MIN_SETTLE_MS),
        WatchTrigger::Commit | WatchTrigger::Amend | WatchTrigger::Rebase | WatchTrigger::Checkout => MIN_SETTLE_MS,
    };
    if now.still_ms < quiet {
        return AutoReviewVerdict::Wait(RetryAt::Ms(quiet - now.still_ms), NoReviewReason::NotQuiet);
    }
    if let Some(operation) = now.operation {
        return AutoReviewVerdict::Wait(RetryAt::Movement, NoReviewReason::Operation(operation));
    }
    if let Some(left) = now.snoozed_ms.filter(|left| *left > 0) {
        return AutoReviewVerdict::Wait(RetryAt::Ms(left), NoReviewReason::Snoozed);
    }
    if let Some((hours, left)) = rules.quiet_hours.and_then(|hours| Some((hours, hours.minutes_left(now.minute)?))) {
        return AutoReviewVerdict::Wait(RetryAt::Ms(u64::from(left) * 60_000), NoReviewReason::QuietHours(hours));
    }
    if let Some(why) = now.spent_today.and_then(|spent| check_daily_limits(rules, spent)) {
        return AutoReviewVerdict::NotNow(why);
    }
    if let (WatchTrigger::Worktree, Some(ago)) = (movement, now.asked_ms_ago)
        && ago < rules.interval_ms
    {
        return AutoReviewVerdict::Wait(RetryAt::Ms(rules.interval_ms - ago), NoReviewReason::TooSoon);
    }
    match now.change {
        ChangeSize::Measured { files: 0, .. } => AutoReviewVerdict::NotNow(NoReviewReason::NothingChanged),
        ChangeSize::Measured { lines, .. } if lines < rules.min_changed_lines => {
            AutoReviewVerdict::NotNow(NoReviewReason::TooSmall { lines, least: rules.min_changed_lines })
        }
        ChangeSize::Measured { .. } | ChangeSize::NotMeasured => {
            AutoReviewVerdict::Review(scope_for_movement(movement))
        }
    }
}

/// Returns the scope to review after a movement. After a rebase all commits of the branch are new, and after a checkout
/// the whole branch is: any commit may hold code that no review has seen.
fn scope_for_movement(movement: WatchTrigger) -> Scope {
    match movement {
        WatchTrigger::Commit | WatchTrigger::Amend => Scope::Commit("HEAD".to_owned()),
        WatchTrigger::Rebase | WatchTrigger::Checkout => Scope::Branch(None),
        WatchTrigger::Worktree => Scope::Worktree,
    }
}

/// Returns the reason to refuse a review because a daily limit is reached.
fn check_daily_limits(rules: &AutoReviewRules, spent: DailySpend) -> Option<NoReviewReason> {
    let tokens = rules.day_tokens.filter(|most| spent.tokens >= *most).map(|most| NoReviewReason::TokensSpent { most });
    tokens.or_else(|| rules.day_cost.filter(|most| spent.cost >= *most).map(|most| NoReviewReason::MoneySpent { most }))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    use WatchTrigger::*;

    fn rules() -> AutoReviewRules {
        AutoReviewRules {
            on: vec![Commit, Amend, Rebase, Worktree],
            quiet_ms: 10_000,
            interval_ms: 30_000,
            min_changed_lines: 3,
            quiet_hours: "22:00-07:00".parse().ok(),
            day_tokens: Some(1000),
            day_cost: Some(2.5),
        }
    }

    const NOON: u16 = 12 * 60;
    const EDITED: AutoReviewInput = AutoReviewInput {
        movement: Worktree,
        still_ms: 10_000,
        operation: None,
        snoozed_ms: None,
        minute: NOON,
        spent_today: Some(DailySpend { tokens: 999, cost: 2.4 }),
        asked_ms_ago: None,
        change: ChangeSize::Measured { files: 1, lines: 3 },
    };
    const COMMITTED: AutoReviewInput = AutoReviewInput { movement: Commit, still_ms: MIN_SETTLE_MS, ..EDITED };

    fn review(scope: &str) -> AutoReviewVerdict {
        AutoReviewVerdict::Review(scope.parse().expect("a scope"))
    }

    fn wait(ms: u64, why: NoReviewReason) -> AutoReviewVerdict {
        AutoReviewVerdict::Wait(RetryAt::Ms(ms), why)
    }

    fn night() -> QuietHours {
        "22:00-07:00".parse().expect("hours")
    }

    #[rstest]
    #[case::quiet_worktree(EDITED, review("worktree"))]
    #[case::not_measured_yet(AutoReviewInput { change: ChangeSize::NotMeasured, ..EDITED }, review("worktree"))]
    #[case::commit(COMMITTED, review("commit:HEAD"))]
    #[case::amend(AutoReviewInput { movement: Amend, ..COMMITTED }, review("commit:HEAD"))]
    #[case::rebase_end(AutoReviewInput { movement: Rebase, ..COMMITTED }, review("branch"))]
    #[case::checkout_is_not_asked_for(
        AutoReviewInput { movement: Checkout, ..COMMITTED }, AutoReviewVerdict::NotNow(NoReviewReason::NotWatched)
    )]
    #[case::still_typing(AutoReviewInput { still_ms: 4_000, ..EDITED }, wait(6_000, NoReviewReason::NotQuiet))]
    #[case::commits_in_a_row(AutoReviewInput { still_ms: 100, ..COMMITTED }, wait(MIN_SETTLE_MS - 100, NoReviewReason::NotQuiet))]
    #[case::a_commit_waits_for_no_quiet_worktree(AutoReviewInput { still_ms: 400, ..COMMITTED }, review("commit:HEAD"))]
    #[case::in_a_rebase(
        AutoReviewInput { operation: Some(GitOperation::Rebase), ..EDITED },
        AutoReviewVerdict::Wait(RetryAt::Movement, NoReviewReason::Operation(GitOperation::Rebase))
    )]
    #[case::in_a_merge(
        AutoReviewInput { operation: Some(GitOperation::Merge), ..COMMITTED },
        AutoReviewVerdict::Wait(RetryAt::Movement, NoReviewReason::Operation(GitOperation::Merge))
    )]
    #[case::snoozed(AutoReviewInput { snoozed_ms: Some(60_000), ..COMMITTED }, wait(60_000, NoReviewReason::Snoozed))]
    #[case::snoozed_longer_than_the_night(
        AutoReviewInput { snoozed_ms: Some(60_000), minute: 0, ..EDITED }, wait(60_000, NoReviewReason::Snoozed)
    )]
    #[case::snooze_is_over(AutoReviewInput { snoozed_ms: Some(0), ..COMMITTED }, review("commit:HEAD"))]
    #[case::at_night(AutoReviewInput { minute: 23 * 60, ..COMMITTED }, wait(8 * 3_600_000, NoReviewReason::QuietHours(night())))]
    #[case::early(AutoReviewInput { minute: 6 * 60 + 59, ..EDITED }, wait(60_000, NoReviewReason::QuietHours(night())))]
    #[case::tokens_spent(
        AutoReviewInput { spent_today: Some(DailySpend { tokens: 1000, cost: 0.0 }), ..COMMITTED },
        AutoReviewVerdict::NotNow(NoReviewReason::TokensSpent { most: 1000 })
    )]
    #[case::money_spent(
        AutoReviewInput { spent_today: Some(DailySpend { tokens: 0, cost: 2.5 }), ..EDITED },
        AutoReviewVerdict::NotNow(NoReviewReason::MoneySpent { most: 2.5 })
    )]
    #[case::free_of_charge(AutoReviewInput { spent_today: None, ..EDITED }, review("worktree"))]
    #[case::asked_a_moment_ago(AutoReviewInput { asked_ms_ago: Some(12_000), ..EDITED }, wait(18_000, NoReviewReason::TooSoon))]
    #[case::asked_long_ago(AutoReviewInput { asked_ms_ago: Some(30_000), ..EDITED }, review("worktree"))]
    #[case::commits_have_no_interval(AutoReviewInput { asked_ms_ago: Some(0), ..COMMITTED }, review("commit:HEAD"))]
    #[case::all_of_it_undone(
        AutoReviewInput { change: ChangeSize::Measured { files: 0, lines: 0 }, ..EDITED }, AutoReviewVerdict::NotNow(NoReviewReason::NothingChanged)
    )]
    #[case::too_small(
        AutoReviewInput { change: ChangeSize::Measured { files: 1, lines: 2 }, ..EDITED },
        AutoReviewVerdict::NotNow(NoReviewReason::TooSmall { lines: 2, least: 3 })
    )]
    #[case::too_small_a_commit(
        AutoReviewInput { change: ChangeSize::Measured { files: 1, lines: 2 }, ..COMMITTED },
        AutoReviewVerdict::NotNow(NoReviewReason::TooSmall { lines: 2, least: 3 })
    )]
    fn verdicts(#[case] now: AutoReviewInput, #[case] expected: AutoReviewVerdict) {
        assert_eq!(decide_auto_review(&rules(), &now), expected);
    }

    #[rstest]
    #[case::no_limits(AutoReviewRules { day_tokens: None, day_cost: None, ..rules() }, DailySpend { tokens: 9_999_999, cost: 99.0 })]
    #[case::no_tokens_limit(AutoReviewRules { day_tokens: None, ..rules() }, DailySpend { tokens: 9_999_999, cost: 0.0 })]
    fn without_a_limit_nothing_is_too_much(#[case] rules: AutoReviewRules, #[case] spent: DailySpend) {
        let now = AutoReviewInput { spent_today: Some(spent), ..EDITED };
        assert_eq!(decide_auto_review(&rules, &now), review("worktree"));
    }

    #[test]
    fn without_rules_git_still_settles() {
        let rules = AutoReviewRules { quiet_ms: 0, interval_ms: 0, min_changed_lines: 0, quiet_hours: None, ..rules() };
        let now = AutoReviewInput { still_ms: 0, minute: 0, asked_ms_ago: Some(0), ..EDITED };
        assert_eq!(decide_auto_review(&rules, &now), wait(MIN_SETTLE_MS, NoReviewReason::NotQuiet));
        let mode_only =
            AutoReviewInput { still_ms: MIN_SETTLE_MS, change: ChangeSize::Measured { files: 1, lines: 0 }, ..now };
        assert_eq!(decide_auto_review(&rules, &mode_only), review("worktree"));
    }

    #[test]
    fn where_checkouts_are_watched_what_is_there_is_reviewed() {
        let rules = AutoReviewRules { on: vec![Checkout], ..rules() };
        assert_eq!(decide_auto_review(&rules, &AutoReviewInput { movement: Checkout, ..COMMITTED }), review("branch"));
        assert_eq!(decide_auto_review(&rules, &COMMITTED), AutoReviewVerdict::NotNow(NoReviewReason::NotWatched));
    }
}
