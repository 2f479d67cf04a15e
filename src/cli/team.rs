//! `revdeck team`: joins and leaves a team, and shows its machines.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, Subcommand};
use serde_json::json;

use self::machine_name::ChosenName;
use self::place::TeamPlace;
use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::{Invocation, Session};
use super::sync::{count_records, format_counts};
use crate::config::RequiredAssets;
use crate::domain::text::{format_count, sanitize_line};
use crate::domain::{MachineName, ShareMode};
use crate::git::hide_credentials;
use crate::runner::{Services, SyncError};
use crate::store::{DisputeSide, OtherTeamPlace, SetAsideEntry, TeamMembership, TeamProgress};
use crate::team::postgres::{full_sql, is_database};

mod budget;
mod machine_name;
pub(super) mod place;

/// Arguments of `team`.
#[derive(Debug, Args)]
pub struct TeamArgs {
    #[command(subcommand)]
    action: Option<TeamAction>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Actions of `team`.
#[derive(Debug, Subcommand)]
enum TeamAction {
    /// Take part in the team of this repository: say what will leave this machine, and let `revdeck sync` send it
    Join(JoinArgs),
    /// Take part no longer; what was received stays
    Leave,
    /// Use the records of a machine no longer
    Forget(ForgetArgs),
    /// Use the records of a forgotten machine again
    Remember(MachineArgs),
    /// Show or set what the team may spend in a day; only with a database
    Budget(BudgetArgs),
    /// Print the SQL that prepares a database, for an administrator who does not let `team join` do it
    Schema,
}

/// Arguments of `team join`.
#[derive(Debug, Args)]
struct JoinArgs {
    /// Where the records are kept: the name of a git remote, a URL, the path of a repository, or the address of a database
    /// (postgres://...) [default: the database of `[team]`, otherwise where this machine took part last, otherwise origin]
    place: Option<String>,
    /// Name of this machine in the team; without it, made from the name of the host
    #[arg(long, value_name = "NAME")]
    machine: Option<MachineName>,
    /// With a database: name of this repository among those that share it; without it, made from the URL of `origin`
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
}

/// Arguments of `team budget`.
#[derive(Debug, Args)]
struct BudgetArgs {
    /// US dollars that all machines together may spend in a day (UTC)
    #[arg(long, value_name = "USD")]
    day_cost: Option<f64>,
    /// Tokens that all machines together may use in a day (UTC)
    #[arg(long, value_name = "TOKENS")]
    day_tokens: Option<u64>,
    /// Set no limit
    #[arg(long, conflicts_with_all = ["day_cost", "day_tokens"])]
    none: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Arguments of `team forget`.
#[derive(Debug, Args)]
struct ForgetArgs {
    /// Name of the machine, as `revdeck team` shows it; `ci` for all jobs
    machine: MachineName,
    /// Also if nothing of the machine has come yet
    #[arg(long)]
    unseen: bool,
}

/// Arguments of `team remember`.
#[derive(Debug, Args)]
struct MachineArgs {
    /// Name of the machine, as `revdeck team` shows it
    machine: MachineName,
}

/// Runs `revdeck team`.
///
/// # Errors
///
/// Returns an error if an assistant wants to join, the place or machine is unknown, or the store fails.
pub fn run(invocation: &Invocation, arguments: &TeamArgs) -> Result<CliExitCode, CliError> {
    if matches!(arguments.action, Some(TeamAction::Schema)) {
        // An administrator of the database needs no repository.
        output::print(&full_sql())?;
        return Ok(CliExitCode::Done);
    }
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let Some(action) = &arguments.action else { return show(session, arguments.format) };
    invocation.actor()?.require_person("decide what leaves this machine")?;
    match action {
        TeamAction::Schema => Ok(CliExitCode::Done),
        TeamAction::Budget(limits) => budget::run(session, limits),
        TeamAction::Join(join) => join_team(session, join),
        TeamAction::Leave => leave_team(&session),
        TeamAction::Forget(forgotten) => forget(session, forgotten),
        TeamAction::Remember(MachineArgs { machine }) => remember(session, machine),
    }
}

fn join_team(session: Session, arguments: &JoinArgs) -> Result<CliExitCode, CliError> {
    let (services, look) = session.into_runner();
    let Some(_lock) = services.store.lock_team()? else { return Err(SyncError::Busy.into()) };
    let before = services.store.team_membership()?;
    let resolved = place::resolve(&services, arguments, before.as_ref())?;
    // An author is part of every record.
    if services.team().person().label().is_empty() {
        return Err(CliError::usage("git has no user.name here, so decisions would have no author")
            .hint("`git config user.name NAME` and `git config user.email ADDRESS` set them, also in a job"));
    }
    let mut progress = services.store.team_progress()?;
    let is_here = |before: &TeamMembership| before.place == resolved.place && before.project == resolved.project;
    let has_sent = before.as_ref().is_some_and(is_here) && !progress.own_version.is_empty();
    let ChosenName { machine, log, is_renamed } =
        machine_name::choose(&services, arguments, &resolved, before.as_ref(), has_sent)?;
    // What cannot be used is not joined.
    let prepared = place::prepare(&resolved)?;
    let now = services.ambient.now();
    let TeamPlace { place, project, is_former } = resolved;
    let team = TeamMembership { machine, log, place, project, joined_at: now, left_at: None };
    let is_checked = has_sent || machine_name::check_free(&services, &team)?;
    let is_elsewhere = |before: &TeamMembership| {
        before.place != team.place || before.project != team.project || before.log != team.log
    };
    if before.as_ref().is_some_and(is_elsewhere) {
        // Another place, or another log, has nothing of this machine yet. What came from the old one stays here.
        // Under another name, all is collected anew.
        let collected = if is_renamed { TeamProgress::default() } else { progress.clone() };
        progress = TeamProgress {
            triage_bytes: collected.triage_bytes,
            runs_bytes: collected.runs_bytes,
            outgoing_rules: collected.outgoing_rules,
            held_back: collected.held_back,
            forgotten: progress.forgotten,
            has_unsynced_results: progress.has_unsynced_results,
            ..TeamProgress::default()
        };
        services.store.write_team_progress(&progress)?;
    }
    if is_renamed {
        services.store.remove_own_team_lines()?;
        services.store.forget_other_places()?;
    }
    services.store.write_team_membership(&team)?;
    progress.shares_reviews = services.settings.team.share != ShareMode::Decisions;
    progress.has_budget = prepared.has_budget;
    services.store.write_team_progress(&progress)?;
    let waiting = count_records(&services.team().preview()?);
    let dot = look.separator();
    let mut said = format!("{} takes part{dot}records are kept in {}\n", team.machine, show_place(&team));
    if is_former {
        said.push_str(
            "this machine took part there last: `revdeck team join REMOTE` takes another place, such as origin\n",
        );
    }
    if prepared.added > 0 {
        said.push_str("the database has got its tables\n");
    }
    if !is_checked {
        said.push_str(
            "the place cannot be reached now: the first `revdeck sync` says if another machine has this name\n",
        );
    }
    said.push('\n');
    said.push_str(&describe_sharing(&services));
    let (yet, next) = if progress.own_version.is_empty() { ("Nothing has left yet. ", "first") } else { ("", "next") };
    said.push_str(&format!(
        "\n{yet}The {next} `revdeck sync` sends {}; `revdeck sync --dry-run --show` prints it.\n{}\
         What was sent cannot be called back.\n",
        format_counts(waiting),
        match is_database(&team.place) {
            true => "An open cockpit, `sync --follow` and the end of a review send by themselves.\n",
            false => "",
        }
    ));
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

fn describe_sharing(services: &Services) -> String {
    let settings = &services.settings.team;
    let what = match settings.share {
        ShareMode::Decisions => "decisions about findings: id, status, reason, author and time",
        ShareMode::Findings => {
            "decisions about findings (id, status, reason, author, time), and completed reviews: commits, branch, paths, \
             the words of findings, coverage, tokens and cost; no code"
        }
        ShareMode::All => {
            "decisions about findings (id, status, reason, author, time), and completed reviews: commits, branch, paths, \
             the words of findings with the quoted code and proposed changes, coverage, tokens and cost"
        }
    };
    let mut said = format!(
        "Leaves with share = \"{}\": {what}.\nNever leaves: secrets (masked), prompts, answers of models, other code, settings.\n",
        settings.share
    );
    if settings.patterns {
        said.push_str("Learned patterns of all your repositories, too: abstract shapes of code with counts.\n");
    }
    if !settings.exclude.is_empty() {
        let globs: Vec<String> = settings.exclude.iter().map(|glob| sanitize_line(glob).into_owned()).collect();
        said.push_str(&format!("Excluded paths: {}\n", globs.join(", ")));
    }
    said
}

/// Returns a place on one line, without the credentials of a URL, and the project in a database.
fn show_place(team: &TeamMembership) -> String {
    let place = hide_credentials(&sanitize_line(&team.place));
    match team.project.as_str() {
        "" => place,
        project => format!("{place}, project {}", sanitize_line(project)),
    }
}

fn leave_team(session: &Session) -> Result<CliExitCode, CliError> {
    let Some(_lock) = session.store.lock_team()? else { return Err(SyncError::Busy.into()) };
    let Some(team) = session.store.active_membership()? else {
        output::print("takes part in no team\n")?;
        return Ok(CliExitCode::Done);
    };
    let place = show_place(&team);
    let progress = session.store.team_progress()?;
    let rest = match (progress.own_version.is_empty(), is_database(&team.place)) {
        (true, _) => format!("nothing was sent to {place}"),
        (false, true) => format!("what was sent stays in {place}"),
        (false, false) => format!(
            "what was sent stays in {place}: `git push {place} --delete refs/revdeck/team/{}` removes it there",
            team.log
        ),
    };
    let team = TeamMembership { left_at: Some(session.ambient.now()), ..team };
    session.store.write_team_membership(&team)?;
    session.store.forget_other_places()?;
    // Open cockpits and followers watch this file, not the membership.
    session.store.write_team_progress(&progress)?;
    output::print(&format!("{} takes part no longer{}{rest}\n", team.machine, session.look.separator()))?;
    Ok(CliExitCode::Done)
}

fn forget(session: Session, ForgetArgs { machine, unseen }: &ForgetArgs) -> Result<CliExitCode, CliError> {
    let (services, look) = session.into_runner();
    let team = services.store.team_membership()?.ok_or(SyncError::NotJoined)?;
    if *machine == team.machine || *machine == team.log {
        return Err(CliError::usage(format!(
            "{machine} is this machine: without its own records, it would lose its decisions"
        ))
        .hint("`revdeck team leave` takes part no longer"));
    }
    let known = services.team().known_machines()?;
    // A machine of a job has no log of its own, and jobs come all the time.
    let is_job = machine.is_ci() || machine.as_str() == MachineName::CI_LOG;
    if !*unseen && !is_job && !known.contains(machine) {
        return Err(unknown_machine_error(machine, &known, &team));
    }
    let forgotten = services.team().forget(machine)?;
    let what = match is_job || known.contains(machine) {
        true => "what it has said counts no longer",
        false => "nothing of it has come yet, and nothing will be read",
    };
    let mut said = format!("{machine} is forgotten{}{what}\n", look.separator());
    if forgotten.changed > 0 {
        let n = format_count(forgotten.changed, "finding");
        said.push_str(&format!("{n} with another status, without its decisions\n"));
    }
    if forgotten.retired > 0 {
        let n = format_count(forgotten.retired, "finding");
        said.push_str(&format!("{n} obsolete now, which nobody else has reported or decided about\n"));
    }
    said.push_str(&format!("`revdeck team remember {machine}` takes it back\n"));
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

/// Refuses a name that no machine has here: it may be mistyped. Names the known machines.
fn unknown_machine_error(machine: &MachineName, known: &BTreeSet<MachineName>, team: &TeamMembership) -> CliError {
    let others = known.iter().filter(|name| **name != team.machine && **name != team.log);
    let names: Vec<&str> = others.map(MachineName::as_str).collect();
    let there_are = match names.is_empty() {
        true => "no other machine has sent anything yet".to_owned(),
        false => format!("known are: {}", names.join(", ")),
    };
    CliError::usage(format!("no machine {machine} is known here")).hint(format!(
        "{there_are}; `revdeck team forget {machine} --unseen` forgets a machine before its records come"
    ))
}

fn remember(session: Session, machine: &MachineName) -> Result<CliExitCode, CliError> {
    let (services, _) = session.into_runner();
    if !services.team().remember(machine)? {
        output::print(&format!("{machine} was not forgotten\n"))?;
        return Ok(CliExitCode::Done);
    }
    let mut said = format!("{machine} is read again from the next `revdeck sync` on\n");
    // Nobody knows what it has there before that place is read.
    for other in services.store.other_team_places()? {
        let place = hide_credentials(&sanitize_line(&other.place));
        said.push_str(&format!("what it has sent to {place} is read by `revdeck sync {place}`\n"));
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

fn show(session: Session, format: PlainFormat) -> Result<CliExitCode, CliError> {
    let (services, look) = session.into_runner();
    let team = services.store.team_membership()?;
    let mut progress = services.store.team_progress()?;
    services.team().refresh_signatures(&mut progress);
    if format == PlainFormat::Json {
        let waiting = match services.team().membership() {
            Ok(_) => Some(services.store.count_unsent(&progress)?.total()),
            Err(_) => None,
        };
        output::print_json(&crate::report::json::build_versioned([
            ("membership", json!(team.map(|team| TeamMembership { place: hide_credentials(&team.place), ..team }))),
            ("share", services.settings.team.share.word().into()),
            ("to_send", json!(waiting)),
            ("synced_at", json!(progress.synced_at)),
            ("failure", json!(progress.failure)),
            ("machines", json!(progress.logs)),
            ("forgotten", json!(progress.forgotten)),
            ("disputes", json!(progress.disputes)),
            ("set_aside", json!(progress.set_aside)),
            ("other_places", services.store.other_team_places()?.iter().map(other_place_to_json).collect()),
        ]))?;
        return Ok(CliExitCode::Done);
    }
    let Some(team) = team.filter(|team| team.left_at.is_none()) else {
        output::print("takes part in no team: nothing leaves this machine\n`revdeck team join` says what would\n")?;
        return Ok(CliExitCode::Done);
    };
    let dot = look.separator();
    let mut said = format!("{}{dot}{}", team.machine, show_place(&team));
    said.push_str(&match progress.synced_at {
        Some(at) => format!("{dot}synced {} ago", look.format_age(at)),
        None => format!("{dot}never synced"),
    });
    let waiting = services.store.count_unsent(&progress)?.total();
    said.push_str(&format!(
        "{dot}{}\n",
        if waiting == 0 { "all sent".to_owned() } else { format!("{waiting} to send") }
    ));
    if let Some(failure) = &progress.failure {
        said.push_str(&format!("the last exchange failed: {}\n", sanitize_line(failure)));
    }
    for other in services.store.other_team_places()? {
        let place = hide_credentials(&sanitize_line(&other.place));
        said.push_str(&format!("exchanges with {place}, too, when you name it{dot}"));
        said.push_str(&match (&other.progress.failure, other.progress.synced_at) {
            (Some(failure), _) => format!("the last exchange failed: {}\n", sanitize_line(failure)),
            (None, Some(at)) => format!("synced {} ago\n", look.format_age(at)),
            (None, None) => "never synced\n".to_owned(),
        });
    }
    said.push_str(&format!("\n{}", describe_sharing(&services)));
    said.push_str(&format_machines(&progress, &look));
    said.push_str(&format_disputes(&progress));
    for SetAsideEntry { segment, count } in &progress.set_aside {
        said.push_str(&format!(
            "set aside {} of {}: {}{}\n",
            sanitize_line(&segment.segment),
            segment.log,
            sanitize_line(&segment.reason),
            if *count > 1 { format!("{dot}{count} times") } else { String::new() }
        ));
    }
    if !progress.set_aside.is_empty() {
        said.push_str(super::sync::SET_ASIDE_HINT);
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

fn other_place_to_json(other: &OtherTeamPlace) -> serde_json::Value {
    // Of the others, only the signers are known there.
    let machines: BTreeMap<_, _> = other.progress.logs.iter().filter(|(_, log)| !log.version.is_empty()).collect();
    json!({
        "place": hide_credentials(&other.place),
        "allowed_at": other.allowed_at,
        "synced_at": other.progress.synced_at,
        "failure": other.progress.failure,
        "machines": machines,
        "set_aside": other.progress.set_aside,
    })
}

fn format_machines(progress: &TeamProgress, look: &crate::report::TextOptions) -> String {
    let dot = look.separator();
    let mut said = String::from(if progress.logs.is_empty() { "\nno other machine yet\n" } else { "\n" });
    for (name, log) in &progress.logs {
        let age = log.received_at.map(|at| format!("{dot}{} ago", look.format_age(at))).unwrap_or_default();
        let records = format_count(usize::try_from(log.records).unwrap_or(usize::MAX), "record");
        said.push_str(&format!("{name}  {records}{age}{dot}{}\n", sanitize_line(&log.signed.to_string())));
    }
    for name in &progress.forgotten {
        said.push_str(&format!("{name}  forgotten\n"));
    }
    said
}

fn format_disputes(progress: &TeamProgress) -> String {
    let mut said = String::new();
    for (finding, sides) in &progress.disputes {
        said.push_str(&format!("{finding}  disputed: {}\n", describe_dispute(sides)));
    }
    if said.is_empty() { said } else { format!("\n{said}") }
}

/// Says who has decided what about a finding on which people disagree.
pub fn describe_dispute(sides: &[DisputeSide]) -> String {
    let words: Vec<String> = sides
        .iter()
        .map(|side| format!("{} ({}) says {}", sanitize_line(&side.person), side.machine, side.status))
        .collect();
    format!("{}; the first one stands", words.join(", "))
}
