//! `revdeck mute` and `unmute`: kinds of findings that are not raised in this repository. The list belongs to the user
//! and is kept in the store. Notes of every run count the findings that were held back.

use clap::Args;
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::findings::parse_kind;
use super::output;
use super::session::{Invocation, Session};
use crate::config::RequiredAssets;
use crate::domain::text::format_count;
use crate::domain::{Kind, MuteAction};
use crate::policy::{self, MuteOffer};
use crate::store::{Store, StoreError, StoreView};

/// Arguments of `mute`.
#[derive(Debug, Args)]
pub struct MuteArgs {
    /// Kinds, for instance MAGIC_NUMBERS; without one, list muted kinds and kinds that are always dismissed
    #[arg(value_name = "KIND", ignore_case = true, value_parser = parse_kind)]
    kinds: Vec<Kind>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", conflicts_with = "kinds")]
    format: PlainFormat,
}

/// Arguments of `unmute`.
#[derive(Debug, Args)]
pub struct UnmuteArgs {
    /// Kinds, for instance MAGIC_NUMBERS
    #[arg(value_name = "KIND", required = true, num_args = 1.., ignore_case = true, value_parser = parse_kind)]
    kinds: Vec<Kind>,
}

/// Runs `revdeck mute`.
///
/// # Errors
///
/// Returns an error if a kind must not be muted, or the store fails.
pub fn mute(invocation: &Invocation, arguments: &MuteArgs) -> Result<CliExitCode, CliError> {
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    if arguments.kinds.is_empty() {
        return list_mutes(&session, arguments.format);
    }
    invocation.actor()?.require_person("mute kinds of findings")?;
    for &kind in &arguments.kinds {
        policy::may_mute(kind).map_err(|refusal| {
            CliError::usage(refusal.to_string()).hint("dismiss the findings that are no problem, each with its reason")
        })?;
    }
    change_mutes(&session, &arguments.kinds, MuteAction::Mute)
}

/// Runs `revdeck unmute`.
///
/// # Errors
///
/// Returns an error if the store fails.
pub fn unmute(invocation: &Invocation, arguments: &UnmuteArgs) -> Result<CliExitCode, CliError> {
    invocation.actor()?.require_person("unmute kinds of findings")?;
    change_mutes(&invocation.open_reading_session(RequiredAssets::None)?, &arguments.kinds, MuteAction::Unmute)
}

fn change_mutes(session: &Session, kinds: &[Kind], action: MuteAction) -> Result<CliExitCode, CliError> {
    let changed = session.store.set_muted(kinds, action, session.ambient.now())?;
    let (is_now, hint) = match action {
        MuteAction::Mute => ("muted", "from the next review on they are held back and counted"),
        MuteAction::Unmute => ("raised again", "from the next review on"),
    };
    let mut said = String::new();
    for kind in kinds {
        said.push_str(&match changed.contains(kind) {
            true => format!("{kind}  {is_now}{}{hint}\n", session.look.separator()),
            false => format!("{kind}  is so already\n"),
        });
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

fn list_mutes(session: &Session, format: PlainFormat) -> Result<CliExitCode, CliError> {
    let muted = session.store.muted_kinds()?;
    let offers = find_offers(&session.store, &*session.store.view()?)?;
    if format == PlainFormat::Json {
        let muted: Vec<_> = muted.iter().map(|(kind, since)| json!({ "kind": kind, "since": since })).collect();
        let offers: Vec<_> =
            offers.iter().map(|offer| json!({ "kind": offer.kind, "dismissed": offer.dismissed })).collect();
        output::print_json(&crate::report::json::build_versioned([
            ("muted", muted.into()),
            ("offers", offers.into()),
        ]))?;
        return Ok(CliExitCode::Done);
    }
    let mut said = String::new();
    for (kind, since) in &muted {
        said.push_str(&format!("{kind}  muted {} ago\n", session.look.format_age(*since)));
    }
    if muted.is_empty() {
        said.push_str("nothing is muted\n");
    }
    for offer in &offers {
        said.push_str(&format!("{}\n", format_offer(offer)));
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

/// Finds kinds that could be muted, because all decisions about them so far were dismissals.
///
/// # Errors
///
/// Returns an error if the store cannot be read.
pub fn find_offers(store: &Store, view: &StoreView) -> Result<Vec<MuteOffer>, StoreError> {
    let muted = store.muted_kinds()?;
    let rows = (0..view.finding_count()).map(|index| view.finding(index));
    Ok(policy::list_mute_offers(rows.map(|row| (row.kind, row.status)), |kind| muted.contains_key(&kind)))
}

/// Formats an offer to mute a kind on one line.
pub fn format_offer(offer: &MuteOffer) -> String {
    let dismissed = format_count(offer.dismissed as usize, &format!("{} finding", offer.kind));
    format!("{dismissed} dismissed, none addressed: `revdeck mute {}` holds them back from now on", offer.kind)
}
