//! Writes the reasons of decisions as sentences for a person.

use std::fmt;

use crate::domain::text::format_count;
use crate::domain::{RunId, RunStatus};

use super::decide::MAX_ATTEMPTS;
use super::known_run::KnownRun;
use super::supersede::SupersedeVerdict;

/// Reason of a decision. `run` is the id of the run to which the request is compared; the text is by
/// [`fmt::Display`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecisionReason<'a> {
    /// No file would reach the reviewer; `left_out` changed files are left out.
    NothingToReview {
        left_out: usize,
    },
    /// The request was forced, although `same` shows or will show the same.
    Forced {
        same: Option<&'a str>,
    },
    /// The run is active, and may wait for its start. `attempt` counts the starts of its worker so far.
    UnderReview {
        run: &'a str,
        waits: bool,
        attempt: u32,
    },
    Reviewed {
        run: &'a str,
    },
    /// The run could not read some files, and another attempt could not either.
    StaysUnread {
        run: &'a str,
        files: u32,
    },
    /// The run has reviewed all but files that the change itself puts out of sight.
    ReviewedInSight {
        run: &'a str,
        files: u32,
    },
    /// The run ended early, and the new run carries over what it reviewed.
    GoesOn {
        run: &'a str,
        reviewed: u32,
        hunks: u32,
    },
    /// A part of the review failed in the last attempt.
    StaysPartial {
        run: &'a str,
        attempt: u32,
    },
    /// An automatic request repeats a run that a person stopped, or that ended early in its last attempt.
    Duplicate {
        run: &'a str,
        stopped: bool,
    },
    /// The session of an assistant has started this many reviews, which is its limit.
    SessionQuota {
        limit: u32,
    },
    /// Assistants have started this many reviews within an hour, which is their limit.
    HourQuota {
        limit: u32,
    },
    /// The new run takes over the records of this run.
    TakesOver {
        run: &'a KnownRun<'a>,
    },
    /// The run ended early, and its journal or its snapshot is gone.
    CannotGoOn {
        run: &'a str,
    },
    OutOfAttempts {
        run: &'a str,
    },
    /// The run has reviewed everything, and this many findings of its result cannot be read any more.
    ResultLost {
        run: &'a str,
        findings: u32,
    },
    NoEquivalentRun,
}

impl fmt::Display for DecisionReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NothingToReview { left_out: 0 } => f.write_str("nothing to review: no changed file is in scope"),
            Self::NothingToReview { left_out: 1 } => f.write_str("nothing to review: the one changed file is left out"),
            Self::NothingToReview { left_out } => {
                write!(f, "nothing to review: all {left_out} changed files are left out")
            }
            Self::Forced { same: Some(run) } => {
                write!(f, "reviewed again because that was asked for, although {run} shows the same")
            }
            Self::Forced { same: None } => {
                f.write_str("asked for without regard to earlier reviews; there is no equivalent one")
            }
            Self::UnderReview { run, waits, attempt } => {
                let attempt = attempt + u32::from(waits);
                let doing = match (waits, attempt > 1) {
                    (true, false) => "waits to review",
                    (false, false) => "is reviewing",
                    (true, true) => "waits to go on with",
                    (false, true) => "goes on with",
                };
                write!(f, "{run} {doing} exactly this")?;
                match attempt {
                    0 | 1 => Ok(()),
                    attempt => write!(f, ", in attempt {attempt} of {MAX_ATTEMPTS} because its worker ended early"),
                }
            }
            Self::Reviewed { run } => write!(f, "{run} has reviewed exactly this; no line of it has changed since"),
            Self::StaysUnread { run, files } => {
                let stay = if files == 1 { "stays" } else { "stay" };
                let files = format_count(files as usize, "file");
                write!(f, "{run} has reviewed all but {files} that {stay} unreadable; `--force` tries again")
            }
            Self::ReviewedInSight { run, files } => {
                let files = format_count(files as usize, "file");
                write!(f, "{run} has reviewed all but {files} that the change puts out of sight")
            }
            Self::GoesOn { run, reviewed, hunks } => {
                let hunks = format_count(hunks as usize, "hunk");
                write!(f, "{run} has reviewed {reviewed} of {hunks}; this run goes on with the rest")
            }
            Self::StaysPartial { run, attempt } => {
                write!(f, "{run} could review only a part, in attempt {attempt}; `--force` begins anew")
            }
            Self::Duplicate { run, stopped } => {
                let ended = if stopped { "was stopped by a person" } else { "ended early in its last attempt" };
                write!(
                    f,
                    "a duplicate: {run} was about exactly this and {ended}; ask for it yourself to have it reviewed"
                )
            }
            Self::SessionQuota { limit } => {
                let reviews = format_count(limit as usize, "review");
                write!(
                    f,
                    "refused: this session has started {reviews}, as many as `assistants.reviews_per_session` allows; \
                     the user can ask for one with `revdeck review`"
                )
            }
            Self::HourQuota { limit } => {
                let reviews = format_count(limit as usize, "review");
                write!(
                    f,
                    "refused: assistants have started {reviews} within an hour, as many as \
                     `assistants.reviews_per_hour` allows; ask again later, or the user asks with `revdeck review`"
                )
            }
            Self::TakesOver { run } => write_takeover(f, run),
            Self::CannotGoOn { run } => {
                write!(f, "{run} ended early and cannot go on: its journal or its snapshot is gone")
            }
            Self::OutOfAttempts { run } => {
                write!(f, "{run} ended early in its last attempt; the review begins anew")
            }
            Self::ResultLost { run, findings } => {
                let are = if findings == 1 { "is" } else { "are" };
                let findings = format_count(findings as usize, "finding");
                write!(
                    f,
                    "{run} has reviewed exactly this, but its result is damaged and {findings} {are} lost; the review begins anew"
                )
            }
            Self::NoEquivalentRun => f.write_str("no review of exactly this exists"),
        }
    }
}

fn write_takeover(f: &mut fmt::Formatter<'_>, run: &KnownRun<'_>) -> fmt::Result {
    let ended = match run.status {
        RunStatus::Failed => "failed",
        RunStatus::Completed => "could review only a part",
        _ => "was lost",
    };
    let (id, attempt, findings) = (run.id, run.attempt, format_count(run.findings as usize, "finding"));
    write!(
        f,
        "{id} {ended} in attempt {attempt} of {MAX_ATTEMPTS}; this run takes over what it recorded ({findings}) and goes on"
    )
}

/// Describes older runs: with the reason if there is one run, else with the number of runs.
pub(super) fn describe_older_runs(older: &[(RunId, SupersedeVerdict)]) -> String {
    let (mut ended, mut finishing) = (Vec::new(), Vec::new());
    for (run, verdict) in older {
        match verdict {
            SupersedeVerdict::Cancel(why) => ended.push((run, why)),
            SupersedeVerdict::Finish(why) => finishing.push((run, why)),
        }
    }
    let ended = match ended.as_slice() {
        [] => String::new(),
        [(_, why)] => format!("; it replaces a run whose code has changed since ({why})"),
        several => format!("; it replaces {} runs whose code has changed since", several.len()),
    };
    let finishing = finishing.iter().map(|(run, why)| format!("; {run} may finish: {why}"));
    ended + &finishing.collect::<String>()
}

/// Describes that the new run waits for an older one that may finish.
pub(super) fn describe_wait(run: &RunId) -> String {
    format!("; it begins when {run} has ended, to carry over what it yields")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(DecisionReason::NothingToReview { left_out: 2 }, "nothing to review: all 2 changed files are left out")]
    #[case(DecisionReason::UnderReview { run: "ar_1", waits: true, attempt: 0 }, "ar_1 waits to review exactly this")]
    #[case(DecisionReason::UnderReview { run: "ar_1", waits: false, attempt: 1 }, "ar_1 is reviewing exactly this")]
    #[case(
        DecisionReason::UnderReview { run: "ar_1", waits: true, attempt: 1 },
        "ar_1 waits to go on with exactly this, in attempt 2 of 3 because its worker ended early"
    )]
    #[case(
        DecisionReason::UnderReview { run: "ar_1", waits: false, attempt: 3 },
        "ar_1 goes on with exactly this, in attempt 3 of 3 because its worker ended early"
    )]
    #[case(
        DecisionReason::StaysUnread { run: "ar_1", files: 2 },
        "ar_1 has reviewed all but 2 files that stay unreadable; `--force` tries again"
    )]
    #[case(
        DecisionReason::Duplicate { run: "ar_1", stopped: false },
        "a duplicate: ar_1 was about exactly this and ended early in its last attempt; ask for it yourself to have it \
         reviewed"
    )]
    #[case(
        DecisionReason::ReviewedInSight { run: "ar_1", files: 1 },
        "ar_1 has reviewed all but 1 file that the change puts out of sight"
    )]
    #[case(
        DecisionReason::GoesOn { run: "ar_1", reviewed: 139, hunks: 1168 },
        "ar_1 has reviewed 139 of 1168 hunks; this run goes on with the rest"
    )]
    #[case(
        DecisionReason::OutOfAttempts { run: "ar_1" },
        "ar_1 ended early in its last attempt; the review begins anew"
    )]
    fn a_reason_is_a_sentence(#[case] reason: DecisionReason<'_>, #[case] text: &str) {
        assert_eq!(reason.to_string(), text);
    }
}
