//! `revdeck sync`: exchanges decisions and reviews with the team that the repository has joined.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::Invocation;
use super::team::place::resolve_remote;
use crate::config::RequiredAssets;
use crate::domain::TeamRecord;
use crate::domain::text::{format_count, join_names, sanitize_line};
use crate::git::{MAX_REMOTE_LOGS, hide_credentials};
use crate::report::TextOptions;
use crate::runner::{FollowerProcess, RecordCounts, Services, SyncError, SyncReport};
use crate::team::TeamError;
use crate::team::postgres::{DatabaseError, is_database};

// The cockpit knows a follower that gave up by this code.
const _: () = assert!(FollowerProcess::GAVE_UP == CliExitCode::Usage as i32);

/// Longest time before a review in which a remote may say nothing. Own choice: a remote that is well answers within a few
/// seconds, also over a slow network.
const MAX_SILENCE_BEFORE_REVIEW: Duration = Duration::from_secs(15);

/// Arguments of `sync`.
#[derive(Debug, Args)]
pub struct SyncArgs {
    /// Another git remote (a name, an URL or a path) with which the same records are exchanged this once [default: the place that
    /// this machine has joined]
    #[arg(value_name = "REMOTE")]
    place: Option<String>,
    /// Let records leave for REMOTE; needed once, and again after `team leave`
    #[arg(long, requires = "place", conflicts_with = "dry_run")]
    yes: bool,
    /// Say what would be sent, and exchange nothing
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: print exactly what would be sent, a record on each line
    #[arg(long, requires = "dry_run")]
    show: bool,
    /// With a database: go on, and exchange whenever there is something new on either side
    #[arg(long, conflicts_with = "dry_run")]
    follow: bool,
    /// With --follow: end with the standard input, for a program that starts this one
    #[arg(long, requires = "follow", hide = true)]
    until_input_ends: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", conflicts_with = "show")]
    format: PlainFormat,
}

/// Runs `revdeck sync`.
///
/// # Errors
///
/// Returns an error if the repository has not joined a team, or the place of the records cannot be used.
pub fn run(invocation: &Invocation, arguments: &SyncArgs) -> Result<CliExitCode, CliError> {
    let (services, look) = invocation.open_reading_session(RequiredAssets::None)?.into_runner();
    let joined = services.team().membership()?;
    let services = match &arguments.place {
        Some(place) if *place != joined.place => select_place(invocation, services, place, arguments)?,
        _ => services,
    };
    if arguments.dry_run {
        return preview(&services, &look, arguments);
    }
    if arguments.follow {
        return follow(&services, &look, arguments);
    }
    let report = services.team().sync_when_free()?;
    match arguments.format {
        PlainFormat::Json => output::print_json(&to_json(&report))?,
        PlainFormat::Text => output::print(&format_report(&report, &look))?,
    }
    Ok(CliExitCode::Done)
}

/// Returns the services for an exchange with a git remote beside the place that the machine has joined. Nothing leaves for it
/// before a person has said so once.
fn select_place(
    invocation: &Invocation,
    services: Services,
    place: &str,
    arguments: &SyncArgs,
) -> Result<Services, CliError> {
    if is_database(place) {
        return Err(CliError::usage("a database is no second place of the records")
            .hint("`revdeck team join postgres://...` takes it instead of the present place"));
    }
    let place = resolve_remote(&services, place)?;
    let joined = services.team().membership()?.place;
    // A remote may be spelt by its name, its URL or the path of its repository.
    let address = |place: &str| {
        let url = services.repo.remote_url(place).unwrap_or_else(|| place.to_owned());
        // git finds a relative path from the root of the repository.
        let path = services.repo.root().join(url.strip_prefix("file://").unwrap_or(&url)).canonicalize();
        path.map_or(url, |path| path.to_string_lossy().into_owned())
    };
    let there = address(&place);
    if there == address(&joined) {
        return Ok(services);
    }
    if services.repo.is_discoverable_from(Path::new(&there)) {
        return Err(CliError::usage("this is the repository itself: records that it sends to itself reach nobody")
            .hint("another git remote, a URL or the path of a bare repository works"));
    }
    if arguments.follow {
        return Err(CliError::usage("only a team with a database tells news: a git remote must be asked")
            .hint("without --follow, `revdeck sync REMOTE` exchanges records with it now"));
    }
    let is_allowed = services.store.other_team_place(&place)?.is_some_and(|known| known.allowed_at.is_some());
    let shown = hide_credentials(&sanitize_line(&place));
    let store = services.store.clone().for_team_place(&place);
    let services = Services { store, ..services };
    if arguments.dry_run || is_allowed {
        return Ok(services);
    }
    if !arguments.yes {
        let counts = count_records(&services.team().preview()?);
        return Err(CliError::usage(format!(
            "nothing leaves for {shown} before a person allows it: this machine has joined {}",
            hide_credentials(&sanitize_line(&joined))
        ))
        .hint(format!(
            "`revdeck sync {shown} --yes` sends {} there, and exchanges with it whenever you name it; `revdeck sync {shown} \
             --dry-run --show` prints what would leave",
            format_counts(counts)
        )));
    }
    invocation.actor()?.require_person("decide what leaves this machine")?;
    // A permission for a place that is not there, or mistyped, would stay for whatever comes there later.
    services.team().ask_place()?;
    services.store.allow_team_place(&place, services.ambient.now())?;
    Ok(services)
}

fn follow(services: &Services, look: &TextOptions, arguments: &SyncArgs) -> Result<CliExitCode, CliError> {
    if !services.team().is_live() {
        return Err(CliError::usage("only a team with a database tells news: a git remote must be asked")
            .hint("`revdeck sync` exchanges records now; `revdeck team join postgres://...` takes a database"));
    }
    if arguments.until_input_ends {
        std::thread::spawn(|| {
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            // An exchange that is cut off goes on with the next one.
            std::process::exit(CliExitCode::Done as i32);
        });
    }
    let mut printed = Ok(());
    let mut last_failure = String::new();
    let mut print = |exchange: Result<SyncReport, SyncError>| {
        printed = match (exchange, arguments.format) {
            (Ok(report), PlainFormat::Json) => output::print_json_document(&to_json(&report)),
            (Ok(report), PlainFormat::Text) => {
                last_failure.clear();
                output::print(&format_report(&report, look))
            }
            (Err(error), _) => {
                let error = CliError::from(error);
                // The same failure again and again is said once.
                if error.message != last_failure {
                    output::print_note(&format!("note: {}; trying again", error.message));
                }
                last_failure = error.message;
                Ok(())
            }
        };
        printed.is_ok()
    };
    services.team().follow(&mut print).map_err(|error| {
        let gives_up = error.is_permanent();
        let error = CliError::from(error);
        // A program that starts this one must not start it again.
        if gives_up { CliError { exit: CliExitCode::Usage, ..error } } else { error }
    })?;
    printed?;
    Ok(CliExitCode::Done)
}

fn preview(services: &Services, look: &TextOptions, arguments: &SyncArgs) -> Result<CliExitCode, CliError> {
    let records = services.team().preview()?;
    if arguments.show {
        records.iter().try_for_each(output::print_json_document)?;
        return Ok(CliExitCode::Done);
    }
    let counts = count_records(&records);
    if arguments.format == PlainFormat::Json {
        output::print_json(&crate::report::json::build_versioned([("would_send", counts_to_json(counts))]))?;
        return Ok(CliExitCode::Done);
    }
    let said = match counts.is_empty() {
        true => "nothing to send\n".to_owned(),
        false => format!("would send {}{}{}\n", format_counts(counts), look.separator(), "`--show` prints it"),
    };
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

/// Result of the exchange before a review, for the one after it.
#[derive(Debug, Default)]
pub struct EarlierExchange {
    /// True if the whole time passed in vain.
    is_silent: bool,
    /// Failure that was said.
    failure: Option<String>,
}

/// Exchanges records before a review, and waits less for a remote that says nothing than other commands do: the review waits
/// for it. Returns the services with the result.
pub fn sync_before_review(mut services: Services, look: &TextOptions) -> Result<(Services, EarlierExchange), CliError> {
    let patience = Duration::from_secs(services.settings.git_seconds);
    let limit = patience.min(MAX_SILENCE_BEFORE_REVIEW);
    services.repo = services.repo.with_git_patience(limit);
    let began = Instant::now();
    let failure = sync_beside_review(&services, look, None)?;
    let is_silent = failure.is_some() && began.elapsed() >= limit;
    services.repo = services.repo.with_git_patience(patience);
    Ok((services, EarlierExchange { is_silent, failure }))
}

/// Exchanges records after a review, unless the remote said nothing before it: whoever waits for the result would wait again.
pub fn sync_after_review(services: &Services, look: &TextOptions, earlier: &EarlierExchange) -> Result<(), CliError> {
    if earlier.is_silent {
        output::print_note(
            "note: no exchange with the team after the review, as nothing came from its place before it; \
             the result waits for the next `revdeck sync`",
        );
        return Ok(());
    }
    sync_beside_review(services, look, earlier.failure.as_deref()).map(|_| ())
}

/// Exchanges records before or after a review. A failure does not stop the review: it is said, briefly if it is the one that was said
/// before, and returned.
fn sync_beside_review(
    services: &Services,
    look: &TextOptions,
    known_failure: Option<&str>,
) -> Result<Option<String>, CliError> {
    match services.team().sync_when_free() {
        Ok(report) => {
            output::print_note(format_report(&report, look).trim_end());
            Ok(None)
        }
        Err(error @ (SyncError::NotJoined | SyncError::Left { .. } | SyncError::Exclude(_))) => Err(error.into()),
        Err(error) => {
            let error = CliError::from(error);
            if known_failure == Some(error.message.as_str()) {
                output::print_note(
                    "note: no exchange with the team after the review either; the result waits for the next \
                     `revdeck sync`",
                );
                return Ok(Some(error.message));
            }
            output::print_note(&format!("note: no exchange with the team: {}", error.message));
            if let Some(hint) = error.hint {
                output::print_note(&format!("  hint: {hint}"));
            }
            Ok(Some(error.message))
        }
    }
}

/// Formats counts as a part of a sentence.
pub fn format_counts(counts: RecordCounts) -> String {
    let parts: Vec<String> =
        [(counts.decisions, "decision"), (counts.reviews, "review"), (counts.patterns, "list of patterns")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format_count(count, word))
            .collect();
    if parts.is_empty() { "nothing".to_owned() } else { join_names(&parts) }
}

fn format_report(report: &SyncReport, look: &TextOptions) -> String {
    let dot = look.separator();
    let place = hide_credentials(&sanitize_line(&report.place));
    let mut said = match report.sent.is_empty() && report.received.is_empty() {
        true => format!("nothing new{dot}{place}, {}", format_count(report.logs, "other machine")),
        false => format!(
            "sent {}, received {}{dot}{place}, {}",
            format_counts(report.sent),
            format_counts(report.received),
            format_count(report.logs, "other machine")
        ),
    };
    said.push('\n');
    if report.applied > 0 {
        said.push_str(&format!("{} changed by decisions of the team\n", format_count(report.applied, "finding")));
    }
    if report.disputes > 0 {
        let n = format_count(report.disputes, "finding");
        said.push_str(&format!("people disagree about {n}{dot}`revdeck team` names them\n"));
    }
    if report.restored {
        said.push_str("the records of this machine had disappeared there and were sent again\n");
    }
    if report.left_out > 0 {
        let n = format_count(report.left_out, "log");
        said.push_str(&format!(
            "{n} of other machines not read{dot}at most {MAX_REMOTE_LOGS} of a remote are, known ones first: remove those of machines \
             that are gone with `git push {place} --delete refs/revdeck/team/MACHINE`\n"
        ));
    }
    if report.copied {
        said.push_str(&format!(
            "the log of this machine has records of another copy of its store{dot}let one of the two leave\n"
        ));
    }
    if report.unknown > 0 {
        let n = format_count(report.unknown, "record");
        said.push_str(&format!("{n} of a newer revdeck skipped{dot}a newer version reads them again\n"));
    }
    for refused in &report.refused {
        said.push_str(&format!("not sent: {}\n", sanitize_line(refused)));
    }
    for segment in &report.set_aside {
        said.push_str(&format!("set aside {} of {}: {}\n", segment.segment, segment.log, segment.reason));
    }
    if !report.set_aside.is_empty() {
        said.push_str(SET_ASIDE_HINT);
    }
    said
}

/// Next steps of whoever reads that something was set aside.
pub const SET_ASIDE_HINT: &str =
    "ask the owner of that machine about it; `revdeck team forget NAME` reads the records of a machine no more\n";

fn counts_to_json(counts: RecordCounts) -> Value {
    let mut json = json!({ "decisions": counts.decisions, "reviews": counts.reviews });
    if counts.patterns > 0 {
        json["patterns"] = counts.patterns.into();
    }
    json
}

fn to_json(report: &SyncReport) -> Value {
    crate::report::json::build_versioned([
        ("place", hide_credentials(&report.place).into()),
        ("sent", counts_to_json(report.sent)),
        ("received", counts_to_json(report.received)),
        ("applied", report.applied.into()),
        ("disputes", report.disputes.into()),
        ("machines", report.logs.into()),
        ("restored", report.restored.into()),
        ("copied", report.copied.into()),
        ("left_out", report.left_out.into()),
        ("skipped", report.unknown.into()),
        ("not_sent", json!(report.refused)),
        ("set_aside", json!(report.set_aside)),
    ])
}

impl From<SyncError> for CliError {
    fn from(error: SyncError) -> Self {
        let (message, hint) = (error.to_string(), error.hint());
        let exit = match error {
            SyncError::Team(TeamError::Git(error)) => return error.into(),
            SyncError::Store(error) => return error.into(),
            SyncError::Knowledge(error) => return error.into(),
            SyncError::NotJoined
            | SyncError::Left { .. }
            | SyncError::Exclude(_)
            | SyncError::NameTaken { .. }
            | SyncError::Team(TeamError::Database(DatabaseError::Address { .. })) => CliExitCode::Usage,
            SyncError::Busy
            | SyncError::Team(
                TeamError::Database(_)
                | TeamError::Contended { .. }
                | TeamError::ForeignRecords { .. }
                | TeamError::HiddenLog { .. },
            ) => CliExitCode::Incomplete,
        };
        Self { message, hint, exit, report: None }
    }
}

/// Returns the counts of records.
pub fn count_records(records: &[TeamRecord]) -> RecordCounts {
    let mut counts = RecordCounts::default();
    records.iter().for_each(|record| counts.add(record));
    counts
}
