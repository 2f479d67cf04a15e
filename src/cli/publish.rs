//! `revdeck publish`: posts findings as comments of a pull request or merge request.

mod address;
mod outcome;

use std::collections::HashSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;

use self::outcome::PublishOutcome;
use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::export::MissingFindings;
use super::session::{Invocation, Session};
use super::{complete, export, output, resolve_id};
use crate::config::RequiredAssets;
use crate::domain::{FindingId, FindingStatus, Priority, RunRecord};
use crate::publish::{
    ApiClient, ApiConnection, CommentedLines, DEFAULT_MAX_WAIT, PublishError, PublishRequest, PublishableFinding,
    ReviewHost, SkippedFinding, publish_findings,
};
use crate::reviewers::http::SystemBackoffClock;
use crate::runner::{CodeComparison, CodeState, LocatedFinding, is_commit_id, locate_findings};
use crate::store::StoreView;

/// Variables that only this command reads, for `revdeck doctor`.
pub const OWN_VARIABLES: [&str; 4] =
    ["REVDECK_GITHUB_TOKEN", "REVDECK_GITHUB_API", "REVDECK_GITLAB_TOKEN", "REVDECK_GITLAB_API"];

/// Default of `--max-comments`: more than this many comments are read by nobody.
const DEFAULT_MAX_COMMENTS: usize = 50;

const GITHUB_HELP: &str = "\
Environment:
  REVDECK_GITHUB_TOKEN, GITHUB_TOKEN, GH_TOKEN  the token; the first that is set
  REVDECK_GITHUB_API, GITHUB_API_URL            address of the API [default: https://api.github.com]
  GITHUB_REPOSITORY, GITHUB_REF                 repository and pull request, set by GitHub Actions

The token needs `pull-requests: write`, and `contents: write` to resolve threads.

Exit codes:
  0  published, or nothing to do
  2  a mistake in the command, the token or the address
  3  a part failed: run the same command again, it goes on where it stopped";

const GITLAB_HELP: &str = "\
Environment:
  REVDECK_GITLAB_TOKEN, GITLAB_TOKEN, CI_JOB_TOKEN  the token; the first that is set
  REVDECK_GITLAB_API, CI_API_V4_URL                 address of the API [default: https://gitlab.com/api/v4]
  CI_PROJECT_ID, CI_MERGE_REQUEST_IID               project and merge request, set by GitLab CI

The token needs the scope `api` and the role Developer. Most servers let the token of a job not comment.

Exit codes:
  0  published, or nothing to do
  2  a mistake in the command, the token or the address
  3  a part failed: run the same command again, it goes on where it stopped";

/// Arguments of `publish`.
#[derive(Debug, Args)]
pub struct PublishArgs {
    #[command(subcommand)]
    host: PublishTarget,
}

#[derive(Debug, Subcommand)]
enum PublishTarget {
    /// Comment on a pull request of GitHub or GitHub Enterprise
    #[command(after_help = GITHUB_HELP)]
    Github {
        /// Number of the pull request [default: that of the job in GitHub Actions]
        #[arg(long, value_name = "N")]
        pr: Option<u64>,
        /// Repository [default: that of the job in GitHub Actions, or of the remote `origin`]
        #[arg(long, value_name = "OWNER/NAME")]
        repo: Option<String>,
        #[command(flatten)]
        options: PublishOptions,
    },
    /// Comment on a merge request of GitLab
    #[command(after_help = GITLAB_HELP)]
    Gitlab {
        /// Number of the merge request [default: that of the job in GitLab CI]
        #[arg(long, value_name = "N")]
        mr: Option<u64>,
        /// Project, by number or path [default: that of the job in GitLab CI, or of the remote `origin`]
        #[arg(long, value_name = "PROJECT")]
        repo: Option<String>,
        #[command(flatten)]
        options: PublishOptions,
    },
}

/// Options for every host.
#[derive(Debug, Args)]
struct PublishOptions {
    /// Publish only findings that this run reported [default: all open findings]
    #[arg(long, value_name = "RUN", add = ArgValueCandidates::new(complete::list_runs))]
    run: Option<String>,
    /// Publish only findings of this priority (p0 to p3) or a more urgent one
    #[arg(long, value_name = "P", default_value = "p3")]
    min_priority: Priority,
    /// Maximum number of comments beside the code, earlier ones included, most urgent first; 0 for no maximum. The summary
    /// lists the others
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_COMMENTS)]
    max_comments: usize,
    /// Maximum wait for rate limits and failures of the host, all together
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_MAX_WAIT.as_secs())]
    max_wait: u64,
    /// Show the requests that would be sent, and send none of them
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

impl From<PublishError> for CliError {
    fn from(error: PublishError) -> Self {
        let exit = if error.is_usage() { CliExitCode::Usage } else { CliExitCode::Incomplete };
        Self { message: error.to_string(), hint: Some(error.hint()), exit, report: None }
    }
}

/// Runs `revdeck publish`.
///
/// # Errors
///
/// Returns an error if an assistant publishes, the arguments, the token or the address are unusable, or the host does not
/// answer.
pub fn run(invocation: &Invocation, arguments: &PublishArgs) -> Result<CliExitCode, CliError> {
    let options = match &arguments.host {
        PublishTarget::Github { options, .. } | PublishTarget::Gitlab { options, .. } => options,
    };
    if !options.dry_run {
        // Comments reach other people under the name of the user.
        invocation.actor()?.require_person("publish findings")?;
    }
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let (mut host, connection) = match &arguments.host {
        PublishTarget::Github { pr, repo, .. } => address::open_github(&session.repo, *pr, repo.as_deref())?,
        PublishTarget::Gitlab { mr, repo, .. } => address::open_gitlab(&session.repo, *mr, repo.as_deref())?,
    };
    publish(&session, host.as_mut(), connection, options)
}

fn publish(
    session: &Session,
    host: &mut dyn ReviewHost,
    connection: ApiConnection,
    options: &PublishOptions,
) -> Result<CliExitCode, CliError> {
    let note = |line: &str| output::print_note(&format!("note: {line}"));
    let max_wait = Duration::from_secs(options.max_wait);
    let mut client = ApiClient::open(connection, Box::new(SystemBackoffClock), max_wait, Box::new(note))?;
    let change = host.load_change(&mut client)?;
    if !is_commit_id(&change.head) || session.repo.tree_id(&change.head).is_err() {
        let short: String = change.head.chars().take(12).filter(char::is_ascii_hexdigit).collect();
        let message = format!("the head of {}, {short}, is not in this repository", host.describe());
        return Err(CliError::usage(message).hint(format!("fetch it with `{}`, and review it", host.fetch_command())));
    }
    let view = session.store.view()?;
    let (chosen, mut skipped) = choose_findings(session, &view, options)?;
    let (findings, unpublishable) =
        split_located(locate_findings(&session.repo, &session.store, &view, &chosen, &change.head)?);
    skipped.extend(unpublishable);
    let review = find_review(session, &view, options)?;
    let incomplete = describe_missing(session, review.as_ref(), &change.head)?;
    let mut code = CodeComparison::new(&session.repo, &change.head);
    let reviewed = review.filter(|_| incomplete.is_none()).map(|record| record.subject.changed_paths);
    let mut is_fixed = |place: &CommentedLines| match code.compare(&place.commit, &place.path, place.lines) {
        Some(CodeState::Gone) => true,
        // The review of the new code does not report it any more.
        Some(CodeState::Changed) => reviewed.as_ref().is_some_and(|paths| paths.contains(&place.path)),
        Some(CodeState::Unchanged) | None => false,
    };
    let request = PublishRequest {
        findings,
        closed: list_ids(&view, |status| !status.is_undecided()),
        open: list_ids(&view, FindingStatus::is_undecided),
        incomplete,
        max_comments: (options.max_comments > 0).then_some(options.max_comments),
        dry_run: options.dry_run,
    };
    let mut report = publish_findings(host, &mut client, &change, &request, &mut is_fixed)?;
    skipped.append(&mut report.skipped);
    report.skipped = skipped;
    let outcome =
        PublishOutcome { change: host.describe(), head: &change.head, dry_run: options.dry_run, report: &report };
    match options.format {
        PlainFormat::Text => output::print(&outcome.to_text())?,
        PlainFormat::Json => output::print_json(&outcome.to_json())?,
    }
    if !report.is_incomplete() {
        return Ok(CliExitCode::Done);
    }
    output::print_note("a part was not published: run the same command again, it goes on where it stopped");
    Ok(CliExitCode::Incomplete)
}

/// Chooses the undecided findings, most urgent first, and those that `--min-priority` leaves out.
fn choose_findings(
    session: &Session,
    view: &StoreView,
    options: &PublishOptions,
) -> Result<(Vec<usize>, Vec<SkippedFinding>), CliError> {
    let reported: Option<Vec<FindingId>> = match &options.run {
        Some(given) => {
            let run = resolve_id::resolve_run(&session.store, given)?;
            let reported = session.store.reported_findings(&run)?;
            Some(reported.into_iter().map(|finding| finding.finding_id).collect())
        }
        None => None,
    };
    let is_wanted = |index: &usize| {
        let row = view.finding(*index);
        let is_reported = reported.as_ref().is_none_or(|ids| ids.iter().any(|id| id.as_str() == row.id));
        row.status.is_undecided() && is_reported
    };
    let open = (0..view.finding_count()).filter(is_wanted);
    let (mut chosen, minor): (Vec<usize>, Vec<usize>) =
        open.partition(|&index| view.finding(index).priority <= options.min_priority);
    chosen.sort_by_key(|&index| {
        let row = view.finding(index);
        (row.priority, row.path.to_owned(), row.line_start)
    });
    let reason = format!("less urgent than --min-priority {}", options.min_priority);
    let ids = minor.into_iter().filter_map(|index| view.finding(index).id.parse().ok());
    Ok((chosen, ids.map(|finding| SkippedFinding { finding, reason: reason.clone() }).collect()))
}

/// Splits findings into those that stand in the head and the others, each with the reason.
fn split_located(located: Vec<LocatedFinding>) -> (Vec<PublishableFinding>, Vec<SkippedFinding>) {
    let (mut findings, mut skipped) = (Vec::with_capacity(located.len()), Vec::new());
    for found in located {
        let (finding, reason) = match found {
            LocatedFinding::Stands(finding) => {
                findings.push(PublishableFinding::new(&finding));
                continue;
            }
            LocatedFinding::Changed(id) => (id, "its code has changed since the review: review again"),
            LocatedFinding::Gone(id) => (id, "its code is not in the head"),
            LocatedFinding::Unknown(id) => (id, "the code that was reviewed cannot be read: review again"),
        };
        skipped.push(SkippedFinding { finding, reason: reason.to_owned() });
    }
    (findings, skipped)
}

/// Returns the findings with a status.
fn list_ids(view: &StoreView, is_wanted: impl Fn(FindingStatus) -> bool) -> HashSet<FindingId> {
    let rows = (0..view.finding_count()).map(|index| view.finding(index));
    rows.filter(|row| is_wanted(row.status)).filter_map(|row| row.id.parse().ok()).collect()
}

/// Returns the review that speaks for the change: the run of `--run`, or the newest review in this worktree.
fn find_review(session: &Session, view: &StoreView, options: &PublishOptions) -> Result<Option<RunRecord>, CliError> {
    match &options.run {
        Some(given) => Ok(session.store.run(&resolve_id::resolve_run(&session.store, given)?)?),
        None => export::find_newest_review(session, view),
    }
}

/// Returns a sentence if the review is not complete, or is not of the head of the change.
fn describe_missing(session: &Session, review: Option<&RunRecord>, head: &str) -> Result<Option<String>, CliError> {
    let missing = MissingFindings::load(session, review)?;
    let Some(record) = review.filter(|_| missing.sentence.is_none()) else { return Ok(missing.sentence) };
    // A job of CI reviews the merge of the head into its base.
    let reviewed = &record.subject.head_commit;
    let is_of_head = reviewed == head || session.repo.is_in_history(head, reviewed);
    let short = |id: &str| id.chars().take(7).collect::<String>();
    Ok((!is_of_head).then(|| format!("the newest review is of {}, not of the head {}", short(reviewed), short(head))))
}
