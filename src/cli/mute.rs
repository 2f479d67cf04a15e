//! `revdeck mute` and `unmute`: kinds of findings that are not raised in this repository. The user's own, kept in the
//! store; what is held back is counted in every run's notes.

use clap::Args;
use serde_json::json;

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::findings::parse_kind;
use super::output;
use super::session::{Invocation, Session};
use crate::config::Texts;
use crate::domain::text::count;
use crate::domain::{Kind, MuteAction};
use crate::policy::{self, Offer};
use crate::store::{Store, StoreError, View};

/// Arguments of `mute`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The kinds, for instance MAGIC_NUMBERS; without any, what is muted and what is offered
    #[arg(value_name = "KIND", ignore_case = true, value_parser = parse_kind)]
    kinds: Vec<Kind>,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", conflicts_with = "kinds")]
    format: PlainFormat,
}

/// Arguments of `unmute`.
#[derive(Debug, Args)]
pub struct UnmuteArguments {
    /// The kinds, for instance MAGIC_NUMBERS
    #[arg(value_name = "KIND", required = true, num_args = 1.., ignore_case = true, value_parser = parse_kind)]
    kinds: Vec<Kind>,
}

pub fn mute(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let session = invocation.reading_session(Texts::None)?;
    if arguments.kinds.is_empty() {
        return list(&session, arguments.format);
    }
    for &kind in &arguments.kinds {
        policy::may_mute(kind).map_err(|refusal| {
            CliError::usage(refusal.to_string()).hint("dismiss the findings that are no problem, each with its reason")
        })?;
    }
    change(&session, &arguments.kinds, MuteAction::Mute)
}

pub fn unmute(invocation: &Invocation, arguments: &UnmuteArguments) -> Result<Exit, CliError> {
    change(&invocation.reading_session(Texts::None)?, &arguments.kinds, MuteAction::Unmute)
}

fn change(session: &Session, kinds: &[Kind], action: MuteAction) -> Result<Exit, CliError> {
    let changed = session.store.mute(kinds, action, session.ambient.now())?;
    let (is_now, hint) = match action {
        MuteAction::Mute => ("muted", "from the next review on they are held back and counted"),
        MuteAction::Unmute => ("raised again", "from the next review on"),
    };
    let mut said = String::new();
    for kind in kinds {
        said.push_str(&match changed.contains(kind) {
            true => format!("{kind}  {is_now}{}{hint}\n", session.look.dot()),
            false => format!("{kind}  is so already\n"),
        });
    }
    output::print(&said)?;
    Ok(Exit::Done)
}

fn list(session: &Session, format: PlainFormat) -> Result<Exit, CliError> {
    let muted = session.store.muted()?;
    let offers = offers(&session.store, &*session.store.view()?)?;
    if format == PlainFormat::Json {
        let muted: Vec<_> = muted.iter().map(|(kind, since)| json!({ "kind": kind, "since": since })).collect();
        let offers: Vec<_> =
            offers.iter().map(|offer| json!({ "kind": offer.kind, "dismissed": offer.dismissed })).collect();
        output::print_json(&crate::report::json::versioned([("muted", muted.into()), ("offers", offers.into())]))?;
        return Ok(Exit::Done);
    }
    let mut said = String::new();
    for (kind, since) in &muted {
        said.push_str(&format!("{kind}  muted {} ago\n", session.look.age(*since)));
    }
    if muted.is_empty() {
        said.push_str("nothing is muted\n");
    }
    for offer in &offers {
        said.push_str(&format!("{}\n", words(offer)));
    }
    output::print(&said)?;
    Ok(Exit::Done)
}

/// The kinds that could be muted, by what was decided so far.
pub fn offers(store: &Store, view: &View) -> Result<Vec<Offer>, StoreError> {
    let muted = store.muted()?;
    let rows = (0..view.finding_count()).map(|index| view.finding(index));
    Ok(policy::offers(rows.map(|row| (row.kind, row.status)), |kind| muted.contains_key(&kind)))
}

/// An offer in one line.
pub fn words(offer: &Offer) -> String {
    let dismissed = count(offer.dismissed as usize, &format!("{} finding", offer.kind));
    format!("{dismissed} dismissed, none addressed: `revdeck mute {}` holds them back from now on", offer.kind)
}
