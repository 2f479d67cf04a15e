//! Whether what moved is reviewed without anybody asking for it: now, later, or not at all.
//!
//! Invariants: only that something moved can start a review, never that time passed; what waits is reviewed when the reason
//! to wait is over; what is refused is refused until the next movement. Whether the review then costs anything is
//! [`super::decide`]'s word: this here only keeps the number of questions small.

use std::fmt;

use crate::domain::{Hours, Movement, Operation, Scope};

/// Movements of git that follow each other closer than this are one, in milliseconds. Own: a rebase of many commits, or
/// `git commit` with its index, HEAD and log, writes several times a second, and nobody waits for a third of one.
pub const SETTLE_MS: u64 = 300;

/// What the user wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    pub on: Vec<Movement>,
    /// For how long the worktree has to be left alone.
    pub quiet_ms: u64,
    /// Between two reviews of the worktree.
    pub interval_ms: u64,
    /// Lines added and taken away.
    pub min_changed_lines: u64,
    pub quiet_hours: Option<Hours>,
    /// Tokens of a day.
    pub day_tokens: Option<u64>,
    /// US dollars of a day.
    pub day_cost: Option<f64>,
}

/// Something moved; and how things stand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Situation {
    pub movement: Movement,
    /// How long ago it moved last.
    pub still_ms: u64,
    pub operation: Option<Operation>,
    /// How long somebody wants to be left alone from now on.
    pub snoozed_ms: Option<u64>,
    /// Of the day, where the user is.
    pub minute: u16,
    /// `None` for a reviewer that costs nothing.
    pub spent_today: Option<Spent>,
    /// How long ago a review of the worktree was asked for by a watcher.
    pub asked_ms_ago: Option<u64>,
    pub change: Change,
}

/// What was paid today, all runs counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    pub tokens: u64,
    /// US dollars.
    pub cost: f64,
}

/// What there would be to review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nobody has looked: that costs a snapshot and is left until everything else is settled.
    NotMeasured,
    Measured {
        files: usize,
        /// Added and taken away.
        lines: u64,
    },
}

/// What is done about a movement.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Review(Scope),
    /// It is kept, and decided about again.
    Wait(Until, Why),
    /// It is forgotten.
    NotNow(Why),
}

/// When to decide again; earlier when something moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// So many milliseconds from now.
    Ms(u64),
    /// Only when something moves.
    Movement,
}

/// Why nothing is reviewed now. As text it goes on after "not reviewed: ".
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Why {
    NotWatched,
    NotQuiet,
    Operation(Operation),
    Snoozed,
    QuietHours(Hours),
    TooSoon,
    NothingChanged,
    TooSmall { lines: u64, least: u64 },
    TokensSpent { most: u64 },
    MoneySpent { most: f64 },
}

impl fmt::Display for Why {
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
                write!(f, "{} changed, watch.min_changed_lines is {least}", count(*lines))
            }
            Self::TokensSpent { most } => write!(f, "today's {most} tokens are used up"),
            Self::MoneySpent { most } => write!(f, "today's ${most:.2} are used up"),
        }
    }
}

fn count(lines: u64) -> String {
    crate::domain::text::count(usize::try_from(lines).unwrap_or(usize::MAX), "line")
}

/// Decides about one movement. First whether it is over, then what keeps everything back, then what keeps this back.
pub fn rate(rules: &Rules, now: &Situation) -> Verdict {
    let movement = now.movement;
    if !rules.on.contains(&movement) {
        return Verdict::NotNow(Why::NotWatched);
    }
    let quiet = match movement {
        Movement::Worktree => rules.quiet_ms.max(SETTLE_MS),
        Movement::Commit | Movement::Amend | Movement::Rebase | Movement::Checkout => SETTLE_MS,
    };
    if now.still_ms < quiet {
        return Verdict::Wait(Until::Ms(quiet - now.still_ms), Why::NotQuiet);
    }
    if let Some(operation) = now.operation {
        return Verdict::Wait(Until::Movement, Why::Operation(operation));
    }
    if let Some(left) = now.snoozed_ms.filter(|left| *left > 0) {
        return Verdict::Wait(Until::Ms(left), Why::Snoozed);
    }
    if let Some((hours, left)) = rules.quiet_hours.and_then(|hours| Some((hours, hours.left(now.minute)?))) {
        return Verdict::Wait(Until::Ms(u64::from(left) * 60_000), Why::QuietHours(hours));
    }
    if let Some(why) = now.spent_today.and_then(|spent| too_much(rules, spent)) {
        return Verdict::NotNow(why);
    }
    if let (Movement::Worktree, Some(ago)) = (movement, now.asked_ms_ago)
        && ago < rules.interval_ms
    {
        return Verdict::Wait(Until::Ms(rules.interval_ms - ago), Why::TooSoon);
    }
    match now.change {
        Change::Measured { files: 0, .. } => Verdict::NotNow(Why::NothingChanged),
        Change::Measured { lines, .. } if lines < rules.min_changed_lines => {
            Verdict::NotNow(Why::TooSmall { lines, least: rules.min_changed_lines })
        }
        Change::Measured { .. } | Change::NotMeasured => Verdict::Review(scope(movement)),
    }
}

/// What a movement makes worth a look. After a rebase all commits of the branch are others, and after a checkout all of
/// them are new here: what no review has seen can be in any of them.
fn scope(movement: Movement) -> Scope {
    match movement {
        Movement::Commit | Movement::Amend => Scope::Commit("HEAD".to_owned()),
        Movement::Rebase | Movement::Checkout => Scope::Branch(None),
        Movement::Worktree => Scope::Worktree,
    }
}

fn too_much(rules: &Rules, spent: Spent) -> Option<Why> {
    let tokens = rules.day_tokens.filter(|most| spent.tokens >= *most).map(|most| Why::TokensSpent { most });
    tokens.or_else(|| rules.day_cost.filter(|most| spent.cost >= *most).map(|most| Why::MoneySpent { most }))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    use Movement::*;

    fn rules() -> Rules {
        Rules {
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
    const EDITED: Situation = Situation {
        movement: Worktree,
        still_ms: 10_000,
        operation: None,
        snoozed_ms: None,
        minute: NOON,
        spent_today: Some(Spent { tokens: 999, cost: 2.4 }),
        asked_ms_ago: None,
        change: Change::Measured { files: 1, lines: 3 },
    };
    const COMMITTED: Situation = Situation { movement: Commit, still_ms: SETTLE_MS, ..EDITED };

    fn review(scope: &str) -> Verdict {
        Verdict::Review(scope.parse().expect("a scope"))
    }

    fn wait(ms: u64, why: Why) -> Verdict {
        Verdict::Wait(Until::Ms(ms), why)
    }

    fn night() -> Hours {
        "22:00-07:00".parse().expect("hours")
    }

    #[rstest]
    #[case::quiet_worktree(EDITED, review("worktree"))]
    #[case::not_measured_yet(Situation { change: Change::NotMeasured, ..EDITED }, review("worktree"))]
    #[case::commit(COMMITTED, review("commit:HEAD"))]
    #[case::amend(Situation { movement: Amend, ..COMMITTED }, review("commit:HEAD"))]
    #[case::rebase_end(Situation { movement: Rebase, ..COMMITTED }, review("branch"))]
    #[case::checkout_is_not_asked_for(
        Situation { movement: Checkout, ..COMMITTED }, Verdict::NotNow(Why::NotWatched)
    )]
    #[case::still_typing(Situation { still_ms: 4_000, ..EDITED }, wait(6_000, Why::NotQuiet))]
    #[case::commits_in_a_row(Situation { still_ms: 100, ..COMMITTED }, wait(SETTLE_MS - 100, Why::NotQuiet))]
    #[case::a_commit_waits_for_no_quiet_worktree(Situation { still_ms: 400, ..COMMITTED }, review("commit:HEAD"))]
    #[case::in_a_rebase(
        Situation { operation: Some(Operation::Rebase), ..EDITED },
        Verdict::Wait(Until::Movement, Why::Operation(Operation::Rebase))
    )]
    #[case::in_a_merge(
        Situation { operation: Some(Operation::Merge), ..COMMITTED },
        Verdict::Wait(Until::Movement, Why::Operation(Operation::Merge))
    )]
    #[case::snoozed(Situation { snoozed_ms: Some(60_000), ..COMMITTED }, wait(60_000, Why::Snoozed))]
    #[case::snoozed_longer_than_the_night(
        Situation { snoozed_ms: Some(60_000), minute: 0, ..EDITED }, wait(60_000, Why::Snoozed)
    )]
    #[case::snooze_is_over(Situation { snoozed_ms: Some(0), ..COMMITTED }, review("commit:HEAD"))]
    #[case::at_night(Situation { minute: 23 * 60, ..COMMITTED }, wait(8 * 3_600_000, Why::QuietHours(night())))]
    #[case::early(Situation { minute: 6 * 60 + 59, ..EDITED }, wait(60_000, Why::QuietHours(night())))]
    #[case::tokens_spent(
        Situation { spent_today: Some(Spent { tokens: 1000, cost: 0.0 }), ..COMMITTED },
        Verdict::NotNow(Why::TokensSpent { most: 1000 })
    )]
    #[case::money_spent(
        Situation { spent_today: Some(Spent { tokens: 0, cost: 2.5 }), ..EDITED },
        Verdict::NotNow(Why::MoneySpent { most: 2.5 })
    )]
    #[case::free_of_charge(Situation { spent_today: None, ..EDITED }, review("worktree"))]
    #[case::asked_a_moment_ago(Situation { asked_ms_ago: Some(12_000), ..EDITED }, wait(18_000, Why::TooSoon))]
    #[case::asked_long_ago(Situation { asked_ms_ago: Some(30_000), ..EDITED }, review("worktree"))]
    #[case::commits_have_no_interval(Situation { asked_ms_ago: Some(0), ..COMMITTED }, review("commit:HEAD"))]
    #[case::all_of_it_undone(
        Situation { change: Change::Measured { files: 0, lines: 0 }, ..EDITED }, Verdict::NotNow(Why::NothingChanged)
    )]
    #[case::too_small(
        Situation { change: Change::Measured { files: 1, lines: 2 }, ..EDITED },
        Verdict::NotNow(Why::TooSmall { lines: 2, least: 3 })
    )]
    #[case::too_small_a_commit(
        Situation { change: Change::Measured { files: 1, lines: 2 }, ..COMMITTED },
        Verdict::NotNow(Why::TooSmall { lines: 2, least: 3 })
    )]
    fn verdicts(#[case] now: Situation, #[case] expected: Verdict) {
        assert_eq!(rate(&rules(), &now), expected);
    }

    #[rstest]
    #[case::no_limits(Rules { day_tokens: None, day_cost: None, ..rules() }, Spent { tokens: 9_999_999, cost: 99.0 })]
    #[case::no_tokens_limit(Rules { day_tokens: None, ..rules() }, Spent { tokens: 9_999_999, cost: 0.0 })]
    fn without_a_limit_nothing_is_too_much(#[case] rules: Rules, #[case] spent: Spent) {
        let now = Situation { spent_today: Some(spent), ..EDITED };
        assert_eq!(rate(&rules, &now), review("worktree"));
    }

    #[test]
    fn without_rules_git_still_settles() {
        let rules = Rules { quiet_ms: 0, interval_ms: 0, min_changed_lines: 0, quiet_hours: None, ..rules() };
        let now = Situation { still_ms: 0, minute: 0, asked_ms_ago: Some(0), ..EDITED };
        assert_eq!(rate(&rules, &now), wait(SETTLE_MS, Why::NotQuiet));
        let mode_only = Situation { still_ms: SETTLE_MS, change: Change::Measured { files: 1, lines: 0 }, ..now };
        assert_eq!(rate(&rules, &mode_only), review("worktree"));
    }

    #[test]
    fn where_checkouts_are_watched_what_is_there_is_reviewed() {
        let rules = Rules { on: vec![Checkout], ..rules() };
        assert_eq!(rate(&rules, &Situation { movement: Checkout, ..COMMITTED }), review("branch"));
        assert_eq!(rate(&rules, &COMMITTED), Verdict::NotNow(Why::NotWatched));
    }
}
