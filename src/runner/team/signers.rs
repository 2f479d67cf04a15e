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
use crate::store::{LogProgress, LogSignatureState, SetAsideCause, SetAsideEntry, TeamMembership, TeamProgress};
use crate::team::postgres::is_database;
use crate::team::{LogVersion, TeamBackend, TeamError};

/// Maximum number of signatures that are looked at again to be shown: git starts a program for each.
const MAX_REFRESHED: usize = 100;

/// Reason why what is new in a log does not count.
pub(super) struct SignatureFault {
    pub(super) reason: String,
    pub(super) cause: SetAsideCause,
}

impl SignatureFault {
    fn new(reason: &str) -> Self {
        Self { reason: reason.to_owned(), cause: SetAsideCause::Fault }
    }
}

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
    ) -> Result<Option<SignatureFault>, TeamError> {
        if *tip == LogSignature::Bad {
            return Ok(Some(SignatureFault::new("the signature of the log does not fit its content")));
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
        let mut signers: Vec<&str> = Vec::new();
        for signature in &signatures {
            match (signature, is_database(&team.place)) {
                (LogSignature::Trusted(owner), _) => signers.push(owner),
                (_, true) => {
                    return Ok(Some(SignatureFault::new("more than one role of the database has written the log")));
                }
                (_, false) => {
                    let reason = "no key that git trusts has signed all that is new in the log";
                    return Ok(Some(SignatureFault::new(reason)));
                }
            }
        }
        if is_own || log.name.as_str() == MachineName::CI_LOG || is_database(&team.place) {
            return Ok(None);
        }
        let first = match state.map(|state| &state.signed) {
            // A person has accepted whoever signs it now.
            Some(LogSignatureState::Unseen) => return Ok(None),
            Some(LogSignatureState::SignedBy(owner)) => owner.as_str(),
            None | Some(LogSignatureState::Unsigned | LogSignatureState::UnknownKey | LogSignatureState::Bad) => {
                signers.first().copied().unwrap_or_default()
            }
        };
        Ok(signers.iter().find(|signer| **signer != first).map(|signer| SignatureFault {
            reason: format!(
                "another key than before has signed the log: it is signed by {signer}, not signed by {first}; \
                 `revdeck team remember {}` accepts that",
                log.name
            ),
            cause: SetAsideCause::OtherSigner,
        }))
    }
}

impl TeamSync<'_> {
    /// Looks again at who has signed the last known versions of logs, because git may trust other keys since the last exchange.
    /// This is for showing: the stored states say whose the logs are.
    pub fn refresh_signatures(&self, progress: &mut TeamProgress) {
        if !self.membership().is_ok_and(|team| !is_database(&team.place)) {
            return;
        }
        let is_signed = |log: &&mut LogProgress| {
            matches!(log.signed, LogSignatureState::SignedBy(_) | LogSignatureState::UnknownKey)
        };
        for log in progress.logs.values_mut().filter(is_signed).take(MAX_REFRESHED) {
            match self.services.repo.log_commit_signature(&log.version) {
                Ok(signature) => log.signed = to_state(signature),
                Err(error) => tracing::debug!(%error, "a signature is shown as it was"),
            }
        }
    }
}

/// Returns the state of a log with this signature.
pub(super) fn to_state(signature: LogSignature) -> LogSignatureState {
    match signature {
        LogSignature::None => LogSignatureState::Unsigned,
        LogSignature::Trusted(owner) => LogSignatureState::SignedBy(owner),
        LogSignature::Unknown => LogSignatureState::UnknownKey,
        LogSignature::Bad => LogSignatureState::Bad,
    }
}

/// Lets another signer own a log from the next exchange on, because a person says so. Returns false if there is none.
pub(super) fn accept_other_signer(log: &MachineName, progress: &mut TeamProgress) -> bool {
    let is_meant = |SetAsideEntry { segment, .. }: &SetAsideEntry| {
        segment.log == *log && segment.cause == SetAsideCause::OtherSigner
    };
    if !progress.set_aside.iter().any(is_meant) {
        return false;
    }
    progress.set_aside.retain(|entry| !is_meant(entry));
    progress.logs.entry(log.clone()).or_default().signed = LogSignatureState::Unseen;
    true
}
