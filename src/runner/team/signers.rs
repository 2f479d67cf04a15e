//! Decides whether the signatures of a log count, where only signed logs do (`[team] accept = "signed"`).
//!
//! - Every commit that is new since the last exchange is verified: the signature of the last one says nothing about who has
//!   written those before it.
//! - A log belongs to its first signer. Another one counts when a person says so, also if git trusts the key: whoever is
//!   trusted as one person must not write as another one. Jobs of continuous integration share a log, so it belongs to nobody.

use super::TeamSync;
use crate::config::AcceptedRecords;
use crate::domain::MachineName;
use crate::git::LogSignature;
use crate::store::{SetAsideEntry, TeamMembership, TeamProgress};
use crate::team::postgres::is_database;
use crate::team::segment::CI_LOG;
use crate::team::{LogVersion, TeamBackend, TeamError};

/// Begin of the reason for which a log with another signer is set aside.
const OTHER_SIGNER: &str = "another key than before has signed the log";
/// Begin of the words for the signature of a known key.
const SIGNED_BY: &str = "signed by ";
/// Words for the signature of a key that git does not know.
const UNKNOWN_SIGNER: &str = "signed by an unknown key";

impl TeamSync<'_> {
    /// Returns why what is new in a fetched log does not count; `None` if it does. `tip` is the signature of its last commit.
    ///
    /// # Errors
    ///
    /// If the log cannot be read.
    pub(super) fn find_signature_fault(
        &self,
        backend: &dyn TeamBackend,
        team: &TeamMembership,
        log: &LogVersion,
        tip: &LogSignature,
        progress: &TeamProgress,
    ) -> Result<Option<String>, TeamError> {
        if *tip == LogSignature::Bad {
            return Ok(Some("the signature of the log does not fit its content".to_owned()));
        }
        if self.services.settings.team.accept != AcceptedRecords::Signed {
            return Ok(None);
        }
        let is_own = log.name == team.log;
        if is_own && !team.machine.is_ci() && progress.own_received.is_empty() && progress.own_version.is_empty() {
            // The first exchange has compared the records themselves with those of this store.
            return Ok(None);
        }
        let state = progress.logs.get(&log.name);
        let known = match is_own {
            true => progress.own_received.as_str(),
            false => state.map_or("", |state| state.version.as_str()),
        };
        let own = Some(progress.own_version.as_str()).filter(|version| is_own && !version.is_empty());
        let mut signatures = backend.new_signatures(log, known, own)?;
        if signatures.is_empty() && !is_own {
            signatures.push(tip.clone());
        }
        let mut signers = Vec::new();
        for signature in &signatures {
            match (signature, is_database(&team.place)) {
                (LogSignature::Trusted(_), _) => signers.push(describe_signature(signature)),
                (_, true) => return Ok(Some("more than one role of the database has written the log".to_owned())),
                (_, false) => {
                    return Ok(Some("no key that git trusts has signed all that is new in the log".to_owned()));
                }
            }
        }
        if is_own || log.name.as_str() == CI_LOG || is_database(&team.place) {
            return Ok(None);
        }
        let before = state.map(|state| state.signed.as_str());
        if before == Some("") {
            // A person has accepted whoever signs it now.
            return Ok(None);
        }
        let is_signer = |words: &&str| words.starts_with(SIGNED_BY) && *words != UNKNOWN_SIGNER;
        let first = before.filter(is_signer).or(signers.first().map(String::as_str)).unwrap_or_default();
        Ok(signers.iter().find(|signer| *signer != first).map(|signer| {
            format!("{OTHER_SIGNER}: it is {signer}, not {first}; `revdeck team remember {}` accepts that", log.name)
        }))
    }
}

/// Describes a signature in the words of `revdeck team`.
pub(super) fn describe_signature(signature: &LogSignature) -> String {
    match signature {
        LogSignature::None => "unsigned".to_owned(),
        LogSignature::Trusted(signer) => format!("{SIGNED_BY}{signer}"),
        LogSignature::Unknown => UNKNOWN_SIGNER.to_owned(),
        LogSignature::Bad => "bad signature".to_owned(),
    }
}

/// Lets another signer own a log from the next exchange on, because a person says so. Returns false if there is none.
pub(super) fn accept_other_signer(log: &MachineName, progress: &mut TeamProgress) -> bool {
    let is_meant =
        |SetAsideEntry { segment, .. }: &SetAsideEntry| segment.log == *log && segment.reason.starts_with(OTHER_SIGNER);
    if !progress.set_aside.iter().any(is_meant) {
        return false;
    }
    progress.set_aside.retain(|entry| !is_meant(entry));
    progress.logs.entry(log.clone()).or_default().signed.clear();
    true
}
