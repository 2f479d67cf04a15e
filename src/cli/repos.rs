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
use crate::domain::{FindingCounts, SCHEMA_VERSION, Time};
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
    /// Number of runs that have not ended.
    active_runs: usize,
    /// Time of the newest change of a run; `None` without runs.
    newest: Option<Time>,
    /// Reason why the store cannot be read.
    problem: Option<String>,
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
        (std::cmp::Reverse(repo.undecided.by_priority()), std::cmp::Reverse(repo.newest), repo.path.clone())
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
        active_runs: 0,
        newest: None,
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
            (repo.active_runs, repo.newest) = summarize_runs(&view);
        }
        Err(error) => repo.problem = Some(error.message),
    }
    repo
}

/// Returns the number of active runs, and the time of the newest change of a run.
fn summarize_runs(view: &StoreView) -> (usize, Option<Time>) {
    let rows = || (0..view.run_count()).map(|index| view.run(index));
    let active = rows().filter(|row| !row.status.is_terminal()).count();
    let newest = rows().map(|row| row.updated_ms).max();
    (active, newest.and_then(|ms| Time::from_millisecond(ms).ok()))
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
    if repo.active_runs > 0 {
        let verb = if repo.active_runs == 1 { "runs" } else { "run" };
        parts.push(format!("{} {verb}", format_count(repo.active_runs, "review")));
    }
    if let Some(newest) = repo.newest {
        let minutes = now.as_millisecond().saturating_sub(newest.as_millisecond()).max(0) / 60_000;
        parts.push(format!("last review {} ago", super::status::format_minutes(minutes)));
    }
    parts.join(" · ")
}

fn to_json(repo: &KnownRepo) -> serde_json::Value {
    let counts = repo.undecided.by_priority();
    json!({
        "name": repo.info.name, "path": repo.path, "key": repo.info.key, "gone": repo.is_gone,
        "undecided": { "p0": counts[0], "p1": counts[1], "p2": counts[2], "p3": counts[3] },
        "active_runs": repo.active_runs, "newest_activity": repo.newest, "problem": repo.problem,
    })
}
