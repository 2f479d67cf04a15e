//! The line that the cockpit leaves on the terminal when it is quit: what reviews did today.

use std::cell::RefCell;

use jiff::tz::TimeZone;

use super::error::CliError;
use crate::domain::text::format_count;
use crate::domain::{FindingStatus, Kind, Priority, RunId, RunStatus, Time};
use crate::report::figures::format_brief;
use crate::store::{FindingFacts, FindingSelector, Store};

/// Maximum number of runs whose records are read for the saved tokens.
const MAX_SUMMARIZED_RUNS: usize = 200;

/// Counts of a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DayCounts {
    /// Reviews that were requested, without skipped ones, comments and imports.
    reviews: usize,
    /// Estimated tokens that reuse, adoption and carry-over saved.
    saved_tokens: u64,
    /// Findings that were reported for the first time.
    findings: usize,
    /// Secrets among them.
    secrets: usize,
}

/// Returns the line for today in a time zone; `None` if nothing was reviewed today.
///
/// # Errors
///
/// Returns an error if the store cannot be read.
pub fn summarize_today(store: &Store, now: Time, zone: &TimeZone) -> Result<Option<String>, CliError> {
    let midnight = now.to_zoned(zone.clone()).start_of_day().map_or(now, |day| day.timestamp());
    Ok(count_since(store, midnight)?.format())
}

fn count_since(store: &Store, since: Time) -> Result<DayCounts, CliError> {
    let since = since.as_millisecond();
    let counts = RefCell::new(DayCounts::default());
    let view = store.select_findings(|runs| {
        let is_new: Vec<bool> = (0..runs.run_count()).map(|index| runs.run_created_ms(index) >= since).collect();
        let counts = &counts;
        let rank = move |facts: &FindingFacts| -> Option<()> {
            if is_new.get(facts.first_run).copied().unwrap_or(false) {
                counts.borrow_mut().add_finding(facts.status, facts.kind, facts.priority);
            }
            None
        };
        Ok(FindingSelector { paths: Vec::new(), ids: Vec::new(), limit: 0, rank: Box::new(rank) })
    })?;
    let mut counts = counts.into_inner();
    // Findings that changed since the checkpoint are rows of the view.
    for index in 0..view.finding_count() {
        let row = view.finding(index);
        let first = view.run_index(row.first_run).map(|run| view.run(run));
        if first.is_some_and(|run| run.created_ms >= since) {
            counts.add_finding(row.status, row.kind, row.priority);
        }
    }
    let today = (0..view.run_count()).map(|index| view.run(index)).filter(|run| run.created_ms >= since);
    let reviews = today.filter(|run| run.status != RunStatus::Skipped && !run.is_import());
    for (number, run) in reviews.enumerate() {
        counts.reviews += 1;
        let id = run.id.parse::<RunId>().ok().filter(|_| number < MAX_SUMMARIZED_RUNS);
        if let Some(record) = id.map(|id| store.run(&id)).transpose()?.flatten() {
            counts.saved_tokens = counts.saved_tokens.saturating_add(record.usage.saved_token_estimate);
        }
    }
    Ok(counts)
}

impl DayCounts {
    fn add_finding(&mut self, status: FindingStatus, kind: Kind, priority: Priority) {
        if status == FindingStatus::Dismissed {
            return;
        }
        self.findings += 1;
        // The built-in reviewer reports secrets as urgent configuration values.
        self.secrets += usize::from(kind == Kind::HardcodedConfiguration && priority == Priority::P0);
    }

    /// Formats the counts: `today: 6 reviews, 31k tokens saved, 4 findings, 2 secrets caught`.
    fn format(self) -> Option<String> {
        if self.reviews == 0 {
            return None;
        }
        let mut parts = vec![format_count(self.reviews, "review")];
        if self.saved_tokens > 0 {
            parts.push(format!("{} tokens saved", format_brief(self.saved_tokens)));
        }
        if self.findings > 0 {
            parts.push(format_count(self.findings, "finding"));
        }
        if self.secrets > 0 {
            parts.push(format!("{} caught", format_count(self.secrets, "secret")));
        }
        Some(format!("today: {}", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::RunRecord;
    use crate::store::RepoInfo;

    #[rstest]
    #[case::nothing(DayCounts::default(), None)]
    #[case::one(DayCounts { reviews: 1, ..DayCounts::default() }, Some("today: 1 review"))]
    #[case::all(
        DayCounts { reviews: 6, saved_tokens: 31_400, findings: 12, secrets: 2 },
        Some("today: 6 reviews, 31k tokens saved, 12 findings, 2 secrets caught")
    )]
    #[case::few_tokens(
        DayCounts { reviews: 2, saved_tokens: 900, findings: 1, secrets: 0 },
        Some("today: 2 reviews, 900 tokens saved, 1 finding")
    )]
    fn a_day_is_one_line(#[case] counts: DayCounts, #[case] expected: Option<&str>) {
        assert_eq!(counts.format().as_deref(), expected);
    }

    #[test]
    fn a_comment_and_a_skipped_request_are_no_reviews() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "billing".into(), common_dir: "/billing".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        for (number, status, scope_hash) in
            [(1, "completed", "a"), (2, "completed", "import:b"), (3, "skipped", "c"), (4, "failed", "d")]
        {
            let record: RunRecord = serde_json::from_value(serde_json::json!({
                "run_id": format!("ar_{number:026}"), "status": status, "created_at": "2026-03-04T11:00:00Z",
                "updated_at": "2026-03-04T11:00:00Z", "source": "cockpit", "scope": "worktree", "scope_hash": scope_hash,
                "reviewer": "builtin",
            }))
            .expect("a record");
            store.with_lock(|locked| locked.create_run(&record)).expect("a run");
        }
        let counts = count_since(&store, "2026-03-04T00:00:00Z".parse().expect("a time")).expect("counts");
        assert_eq!(counts, DayCounts { reviews: 2, ..DayCounts::default() });
    }

    #[rstest]
    #[case::a_secret(FindingStatus::Open, Kind::HardcodedConfiguration, Priority::P0, (1, 1))]
    #[case::a_fixed_secret(FindingStatus::Addressed, Kind::HardcodedConfiguration, Priority::P0, (1, 1))]
    #[case::an_address(FindingStatus::Open, Kind::HardcodedConfiguration, Priority::P2, (1, 0))]
    #[case::a_false_alarm(FindingStatus::Dismissed, Kind::HardcodedConfiguration, Priority::P0, (0, 0))]
    fn secrets_are_told_from_other_values(
        #[case] status: FindingStatus,
        #[case] kind: Kind,
        #[case] priority: Priority,
        #[case] expected: (usize, usize),
    ) {
        let mut counts = DayCounts::default();
        counts.add_finding(status, kind, priority);
        assert_eq!((counts.findings, counts.secrets), expected);
    }
}
