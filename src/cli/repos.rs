//! `revdeck repos` and `revdeck --all-repos`: lists the repositories that revdeck knows, with what waits in each.

use std::path::Path;

use clap::Args;
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::Invocation;
use super::status::count_undecided;
use crate::domain::text::{format_count, sanitize_line};
use crate::domain::{FindingCounts, RunStatus, SCHEMA_VERSION, Time};
use crate::report::{json, text};
use crate::store::{RepoInfo, Store, StoreView};

/// Arguments of `repos`.
#[derive(Debug, Default, Args)]
pub struct ReposArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Repository with what waits in it.
struct KnownRepo {
    info: RepoInfo,
    /// Folder of the main worktree, or the git dir of a bare repository.
    path: String,
    /// The repository is no longer at `path`.
    is_gone: bool,
    /// Undecided findings of all worktrees.
    undecided: FindingCounts,
    /// Runs of all worktrees.
    runs: RepoActivity,
    /// Reason why the store cannot be read.
    problem: Option<String>,
}

/// Current and last activity of the runs of a repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RepoActivity {
    /// Number of runs that have not ended.
    active: usize,
    /// Time of the newest change of a run, also of a comment, an import or a skipped request; `None` without runs.
    newest: Option<Time>,
    /// Time of the newest change of a review; `None` without one.
    last_review: Option<Time>,
}

/// Runs `revdeck repos`.
///
/// # Errors
///
/// Returns an error if the folder of the stores cannot be listed. A store that cannot be read is listed with the reason.
pub fn run(invocation: &Invocation, arguments: &ReposArgs) -> Result<CliExitCode, CliError> {
    let now = invocation.clock_and_ids()?.now();
    let mut repos: Vec<KnownRepo> = Store::list_repositories(&invocation.paths.state)?
        .into_iter()
        .map(|info| read_repo(invocation, info, now))
        .collect();
    // Urgent findings first, then the newest.
    repos.sort_by_key(|repo| {
        (std::cmp::Reverse(repo.undecided.by_priority()), std::cmp::Reverse(repo.runs.newest), repo.path.clone())
    });
    match arguments.format {
        PlainFormat::Text => output::print(&format_text(&repos, now))?,
        PlainFormat::Json => {
            let repos: Vec<_> = repos.iter().map(to_json).collect();
            output::print_json(&json::build_versioned([("repos", json!(repos))]))?;
        }
    }
    Ok(CliExitCode::Done)
}

fn read_repo(invocation: &Invocation, info: RepoInfo, now: Time) -> KnownRepo {
    let common_dir = Path::new(&info.common_dir);
    let folder = if common_dir.ends_with(".git") { common_dir.parent().unwrap_or(common_dir) } else { common_dir };
    let mut repo = KnownRepo {
        path: folder.to_string_lossy().into_owned(),
        is_gone: !common_dir.is_dir(),
        undecided: FindingCounts::default(),
        runs: RepoActivity::default(),
        problem: None,
        info,
    };
    if repo.info.version > SCHEMA_VERSION {
        repo.problem = Some("a newer revdeck has written its store".to_owned());
    }
    let opened = Store::open(&invocation.paths.state, repo.info.clone());
    match opened.map_err(CliError::from).and_then(|store| count_undecided(&store, None, None, now)) {
        Ok((view, undecided)) => {
            repo.undecided = undecided;
            repo.runs = summarize_runs(&view);
        }
        Err(error) => repo.problem = Some(error.message),
    }
    repo
}

/// Sums up the runs of a store. A comment, an import and a skipped request are no reviews.
fn summarize_runs(view: &StoreView) -> RepoActivity {
    let mut activity = RepoActivity::default();
    for run in (0..view.run_count()).map(|index| view.run(index)) {
        activity.active += usize::from(!run.status.is_terminal());
        let changed = Time::from_millisecond(run.updated_ms).ok();
        activity.newest = activity.newest.max(changed);
        if run.status != RunStatus::Skipped && !run.is_import() {
            activity.last_review = activity.last_review.max(changed);
        }
    }
    activity
}

fn format_text(repos: &[KnownRepo], now: Time) -> String {
    if repos.is_empty() {
        return "no repository yet: run `revdeck` in one\n".to_owned();
    }
    let name_width = repos.iter().map(|repo| repo.info.name.chars().count()).max().unwrap_or(0).min(30);
    let mut page = String::new();
    for repo in repos {
        let name = sanitize_line(&repo.info.name);
        page.push_str(&format!("{name:name_width$}  {}\n", describe(repo, now)));
        page.push_str(&format!("{:name_width$}  {}\n", "", sanitize_line(&repo.path)));
    }
    page
}

/// Describes what waits in a repository: `2 p1, 1 p2 to decide · 1 review runs · last review 3 h ago`.
fn describe(repo: &KnownRepo, now: Time) -> String {
    let mut parts = Vec::new();
    if repo.is_gone {
        parts.push("the repository is gone".to_owned());
    }
    if let Some(problem) = &repo.problem {
        parts.push(format!("its store cannot be read: {}", sanitize_line(problem)));
    } else {
        parts.push(match repo.undecided.total() {
            0 => "nothing to decide".to_owned(),
            _ => format!("{} to decide", text::format_counts(&repo.undecided)),
        });
    }
    if repo.runs.active > 0 {
        let verb = if repo.runs.active == 1 { "runs" } else { "run" };
        parts.push(format!("{} {verb}", format_count(repo.runs.active, "review")));
    }
    if let Some(last) = repo.runs.last_review {
        let minutes = now.as_millisecond().saturating_sub(last.as_millisecond()).max(0) / 60_000;
        parts.push(format!("last review {} ago", super::status::format_minutes(minutes)));
    }
    parts.join(" · ")
}

fn to_json(repo: &KnownRepo) -> serde_json::Value {
    let counts = repo.undecided.by_priority();
    json!({
        "name": repo.info.name, "path": repo.path, "key": repo.info.key, "gone": repo.is_gone,
        "undecided": { "p0": counts[0], "p1": counts[1], "p2": counts[2], "p3": counts[3] },
        "active_runs": repo.runs.active, "newest_activity": repo.runs.newest, "problem": repo.problem,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::RunRecord;

    const REVIEW: (&str, &str, &str) = ("completed", "worktree", "2026-03-04T08:00:00Z");

    #[rstest]
    #[case::nothing(&[], (0, None, None))]
    #[case::a_review(&[REVIEW], (0, Some("2026-03-04T08:00:00Z"), Some("2026-03-04T08:00:00Z")))]
    #[case::a_comment_after_it(
        &[REVIEW, ("completed", "import:you", "2026-03-04T11:00:00Z")],
        (0, Some("2026-03-04T11:00:00Z"), Some("2026-03-04T08:00:00Z"))
    )]
    #[case::a_skipped_request_after_it(
        &[REVIEW, ("skipped", "staged", "2026-03-04T09:00:00Z")],
        (0, Some("2026-03-04T09:00:00Z"), Some("2026-03-04T08:00:00Z"))
    )]
    #[case::only_comments(&[("completed", "import:you", "2026-03-04T11:00:00Z")], (0, Some("2026-03-04T11:00:00Z"), None))]
    #[case::one_that_works(
        &[REVIEW, ("reviewing", "all", "2026-03-04T12:00:00Z")],
        (1, Some("2026-03-04T12:00:00Z"), Some("2026-03-04T12:00:00Z"))
    )]
    fn the_last_review_is_no_comment(
        #[case] runs: &[(&str, &str, &str)],
        #[case] expected: (usize, Option<&str>, Option<&str>),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "billing".into(), common_dir: "/billing".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        for (number, (status, scope_hash, at)) in runs.iter().enumerate() {
            let record: RunRecord = serde_json::from_value(serde_json::json!({
                "run_id": format!("ar_{number:026}"), "status": status, "created_at": at, "updated_at": at,
                "source": "cockpit", "scope": "worktree", "scope_hash": scope_hash, "reviewer": "builtin",
            }))
            .expect("a record");
            store.with_lock(|locked| locked.create_run(&record)).expect("a run");
        }
        let time = |text: Option<&str>| text.map(|text| text.parse::<Time>().expect("a time"));
        let activity = summarize_runs(&store.view().expect("a view"));
        let (active, newest, last_review) = expected;
        assert_eq!(activity, RepoActivity { active, newest: time(newest), last_review: time(last_review) });
    }
}
