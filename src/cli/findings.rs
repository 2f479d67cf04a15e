//! `revdeck findings`: lists the findings of this repository, most urgent first.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::error::{CliError, CliExitCode};
use super::export::MissingFindings;
use super::session::{Invocation, Session};
use super::{complete, export, mute, output, resolve_id, runs};
use crate::config::RequiredAssets;
use crate::domain::text::{format_count, path_from_bytes, sanitize_line};
use crate::domain::{FindingStatus, Kind, Priority, ReviewReach, RunRecord};
use crate::masking::mask_name;
use crate::report::{OutputFormat, TextOptions, TextStyle, TextTable, json, load_findings, markdown, text};
use crate::runner::SnoozedFindings;
use crate::store::{FindingRow, StoreView};

/// Arguments of `findings`.
#[derive(Debug, Args)]
pub struct FindingsArgs {
    /// Show only findings with this status, `snoozed`, `disputed` (people of the team disagree) or `all`; may be repeated
    /// [default: open and unresolved that are not snoozed; with --run, all]
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<StatusFilter>,
    /// Show only findings that this run reported
    #[arg(long, value_name = "RUN", add = ArgValueCandidates::new(complete::list_runs))]
    run: Option<String>,
    /// Show only findings of this priority (p0 to p3) or a more urgent one
    #[arg(long, value_name = "P")]
    priority: Option<Priority>,
    /// Show only findings of this kind; may be repeated
    #[arg(long, value_name = "KIND", value_delimiter = ',', ignore_case = true, value_parser = parse_kind)]
    kind: Vec<Kind>,
    /// Show only findings in this file or folder. A path that exists in the current folder is relative to that folder,
    /// any other path to the repository root
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Maximum number of findings; 0 shows all
    #[arg(long, short = 'n', value_name = "N", default_value_t = 0)]
    limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: OutputFormat,
}

/// Value of `--status`: a status, `snoozed`, `disputed` or `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatusFilter {
    All,
    One(FindingStatus),
    /// Findings that are out of sight for a time.
    Snoozed,
    /// Findings about which people of the team disagree.
    Disputed,
}

/// Findings that the store lists apart from their status.
struct MarkedFindings {
    snoozed: SnoozedFindings,
    disputed: HashSet<String>,
}

impl std::str::FromStr for StatusFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "snoozed" => Ok(Self::Snoozed),
            "disputed" => Ok(Self::Disputed),
            text => text.parse().map(Self::One).map_err(|error| format!("{error}, snoozed, disputed, all")),
        }
    }
}

/// Parses a kind of finding, in any case and with dashes or underscores.
///
/// # Errors
///
/// Returns a message with the known kinds if there is no such kind.
pub fn parse_kind(text: &str) -> Result<Kind, String> {
    text.to_uppercase().replace('-', "_").parse()
}

impl FindingsArgs {
    /// Returns true if a finding has one of the wanted statuses.
    fn has_wanted_status(&self, row: &FindingRow<'_>, reported: Option<&[String]>, marked: &MarkedFindings) -> bool {
        let is_snoozed = || marked.snoozed.hides(row.id, row.status);
        match self.status.as_slice() {
            // The findings of one run are shown with every status.
            [] => reported.is_some() || (row.status.is_undecided() && !is_snoozed()),
            filters => filters.iter().any(|filter| match filter {
                StatusFilter::All => true,
                StatusFilter::One(status) => *status == row.status,
                StatusFilter::Snoozed => is_snoozed(),
                StatusFilter::Disputed => marked.disputed.contains(row.id),
            }),
        }
    }

    fn is_wanted(&self, row: &FindingRow<'_>, path: Option<&str>, reported: Option<&[String]>) -> bool {
        self.priority.is_none_or(|limit| row.priority <= limit)
            && (self.kind.is_empty() || self.kind.contains(&row.kind))
            && path.is_none_or(|path| is_below(row.path, path))
            && reported.is_none_or(|ids| ids.iter().any(|id| id == row.id))
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || folder == "."
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Converts a path to the form in the store: relative to the repository root. A path that exists in the current folder,
/// or contains `..`, is relative to that folder. Any other path, such as a deleted file, is relative to the root.
fn to_repo_path(root: &Path, here: &Path, given: &str) -> Result<String, CliError> {
    let path = Path::new(given);
    let upwards = path.components().any(|part| part == Component::ParentDir);
    if !path.is_absolute() && !upwards && here.join(path).symlink_metadata().is_err() {
        return Ok(given.trim_start_matches("./").trim_end_matches('/').to_owned());
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // Resolve `..` by components, not by asking the disk: if the path names a symbolic link, the link itself is meant.
    let mut whole = if path.is_absolute() { PathBuf::new() } else { real(here) };
    for part in path.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    match whole.strip_prefix(real(root)).or_else(|_| whole.strip_prefix(root)) {
        Ok(inside) => Ok(path_from_bytes(inside.as_os_str().as_encoded_bytes())),
        Err(_) => Err(CliError::usage(format!("{:?} is not in this repository", sanitize_line(given)))
            .hint("paths are relative to the current folder, or to the repository")),
    }
}

/// Runs `revdeck findings`.
///
/// # Errors
///
/// Returns an error if the run is unknown, the path is outside of the repository or the store cannot be read.
pub fn run(invocation: &Invocation, arguments: &FindingsArgs) -> Result<CliExitCode, CliError> {
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let store = &session.store;
    let path = match &arguments.path {
        Some(given) => Some(to_repo_path(&session.repo.root(), &Invocation::current_folder()?, given)?),
        None => None,
    };
    let reported: Option<Vec<String>> = match &arguments.run {
        Some(given) => {
            let id = resolve_id::resolve_run(store, given)?;
            let output = store.output(&id)?;
            let damage = output.as_ref().filter(|output| output.findings.is_empty()).and_then(|it| it.damage.as_ref());
            if let Some(damage) = damage {
                return Err(export::lost_result_error(&id, damage));
            }
            let findings = output.map(|output| output.findings).unwrap_or_default();
            Some(findings.into_iter().map(|finding| finding.finding_id.into()).collect())
        }
        None => None,
    };
    let view = store.view()?;
    runs::print_notices(&view);
    let marked = MarkedFindings {
        snoozed: SnoozedFindings::read(Some(&session.repo), store, &view, session.ambient.now())?,
        disputed: store.team_disputes()?.into_keys().map(|id| id.to_string()).collect(),
    };
    let (mut chosen, mut hidden): (Vec<usize>, usize) = (Vec::new(), 0);
    for index in 0..view.finding_count() {
        let row = view.finding(index);
        if !arguments.is_wanted(&row, path.as_deref(), reported.as_deref()) {
            continue;
        }
        if arguments.has_wanted_status(&row, reported.as_deref(), &marked) {
            chosen.push(index);
        } else if arguments.status.is_empty() && marked.snoozed.hides(row.id, row.status) {
            hidden += 1;
        }
    }
    chosen.sort_by(|&a, &b| {
        let key = |index: usize| {
            let row = view.finding(index);
            (row.priority, row.path, row.line_start)
        };
        key(a).cmp(&key(b))
    });
    if arguments.limit > 0 {
        chosen.truncate(arguments.limit);
    }
    let review = find_review(&session, &view, arguments)?;
    let missing = match (&review, &arguments.run) {
        (None, Some(_)) => MissingFindings::default(),
        (review, _) => MissingFindings::load(&session, review.as_ref())?,
    };
    // Of a run, or of a store without findings, silence is said to be what it is.
    let has_none = reported.as_ref().map_or(view.finding_count() == 0, Vec::is_empty);
    let silence = review.as_ref().filter(|_| has_none).and_then(describe_silence);
    let code = print_findings(&session, &view, &chosen, arguments, (missing, hidden), silence.as_deref())?;
    if hidden > 0 && arguments.format == OutputFormat::Text {
        let hidden = format_count(hidden, "finding");
        output::print_note(&format!("note: {hidden} snoozed; --status snoozed lists them"));
    }
    Ok(code)
}

fn print_findings(
    session: &Session,
    view: &StoreView,
    chosen: &[usize],
    arguments: &FindingsArgs,
    (mut missing, snoozed): (MissingFindings, usize),
    silence: Option<&str>,
) -> Result<CliExitCode, CliError> {
    let store = &session.store;
    let code = |missing: &MissingFindings| if missing.has_lost { CliExitCode::Incomplete } else { CliExitCode::Done };
    if arguments.format == OutputFormat::Text {
        let said = missing.sentence.as_deref().map(|said| format_missing(&session.look, said)).unwrap_or_default();
        let listed = match silence {
            Some(silence) => format!("{silence}\n"),
            None => format_findings(&session.look, view, chosen),
        };
        output::print(&(listed + &said))?;
        if let Some(offer) = mute::find_offers(store, view)?.first() {
            output::print_note(&format!("note: {}", mute::format_offer(offer)));
        }
        return Ok(code(&missing));
    }
    let findings = load_findings(store, view, chosen)?;
    missing.add_unreadable(chosen.len() - findings.len());
    let code = code(&missing);
    let incomplete = missing.sentence;
    if let Some(render) = arguments.format.exporter() {
        output::print(&render(&export::build_export(store, &findings, incomplete)?))?;
        return Ok(code);
    }
    if arguments.format == OutputFormat::Markdown {
        output::print(&markdown::render_findings(&findings, incomplete.as_deref()))?;
        return Ok(code);
    }
    let findings: Vec<serde_json::Value> = findings.iter().map(json::encode_finding).collect();
    output::print_json(&json::build_versioned([
        ("findings", findings.into()),
        ("incomplete", incomplete.into()),
        ("snoozed", snoozed.into()),
    ]))?;
    Ok(code)
}

/// Returns the review that the findings come from: the named run, else the newest review in this worktree.
fn find_review(session: &Session, view: &StoreView, arguments: &FindingsArgs) -> Result<Option<RunRecord>, CliError> {
    match &arguments.run {
        Some(given) => Ok(session.store.run(&resolve_id::resolve_run(&session.store, given)?)?),
        None => export::find_newest_review(session, view),
    }
}

/// Says what an empty list of a review means if it does not mean that the code is clean: `not reviewed: it failed: timeout`.
fn describe_silence(run: &RunRecord) -> Option<String> {
    let reason = run.describe_unreviewed().unwrap_or_default();
    match run.review_reach() {
        ReviewReach::Whole => None,
        ReviewReach::Unfinished => Some(format!("no findings yet: the review is {}", run.state_word())),
        ReviewReach::Nothing => Some(format!("not reviewed: {reason}")),
        ReviewReach::Part => Some(format!("no findings in the reviewed part: {reason}")),
    }
}

/// Formats the sentence about an incomplete review.
fn format_missing(look: &TextOptions, said: &str) -> String {
    let said = format!("the review is incomplete: {}", sanitize_line(&mask_name(said)));
    format!("{}\n", look.paint(TextStyle::Bad, look.wrap(&said, 0).trim_end()))
}

/// Formats the chosen findings (indices into `view`) as a table, or a sentence if there are none.
pub fn format_findings(look: &TextOptions, view: &StoreView, chosen: &[usize]) -> String {
    if chosen.is_empty() {
        return match view.finding_count() {
            0 => "no findings\n".to_owned(),
            total => format!("no finding is like that; there are {total} in all (--status all)\n"),
        };
    }
    let mut table = TextTable::default();
    for &index in chosen {
        let row = view.finding(index);
        table.push_row([
            (TextStyle::Plain, row.id),
            (TextStyle::from_priority(row.priority), ["p0", "p1", "p2", "p3"][row.priority.index()]),
            (TextStyle::from_finding_status(row.status), row.status.word()),
            (TextStyle::Plain, row.kind.word()),
            (
                TextStyle::Location,
                &format!("{}:{}", mask_name(row.path), text::format_line_range(row.line_start, row.line_end)),
            ),
            (TextStyle::Strong, &mask_name(row.title)),
        ]);
    }
    table.render(look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_file_or_everything_below_a_folder() {
        for (path, folder, expected) in [
            ("src/a.rs", "src", true),
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/a", false),
            ("srcs/a.rs", "src", false),
            ("a.rs", ".", true),
        ] {
            assert_eq!(is_below(path, folder), expected, "{path} below {folder}");
        }
    }
}
