//! Commands of actions: decisions about findings, with the same rules as on the command line.

use serde::Deserialize;

use crate::domain::text::sanitize_line;
use crate::domain::{Actor, FindingId, FindingStatus};
use crate::masking::Mask;
use crate::runner::{Services, SetStatusError, StatusChange, set_status};

/// Maximum length of a reason in characters. Own choice; the reasons that are offered have at most 30.
const MAX_REASON_CHARS: usize = 500;

/// Command of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditorCommand {
    /// Dismisses a finding with a reason.
    Dismiss,
    /// Marks a finding as addressed; for an assistant, it is a claim.
    MarkAddressed,
    /// Shows a finding in a message.
    ShowDetails,
}

impl EditorCommand {
    /// All commands.
    pub const ALL: [Self; 3] = [Self::Dismiss, Self::MarkAddressed, Self::ShowDetails];

    /// Returns the name by which clients call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dismiss => "revdeck.dismiss",
            Self::MarkAddressed => "revdeck.markAddressed",
            Self::ShowDetails => "revdeck.showDetails",
        }
    }

    /// Returns the command with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.name() == name)
    }
}

/// Argument of a command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CommandArgument {
    /// Id of the finding.
    pub finding: String,
    /// Root of the repository, as an action names it; `None` for the first one with this finding.
    #[serde(default)]
    pub repository: Option<String>,
    /// Reason, required for a dismissal.
    #[serde(default)]
    pub reason: String,
}

/// Author of decisions.
#[derive(Debug, Clone, Copy)]
pub struct Decider<'a> {
    pub actor: Actor,
    /// Says to an assistant why it may not decide.
    pub refusal_hint: &'a str,
}

/// Dismisses a finding.
///
/// # Errors
///
/// Returns a message if there is no reason, if the actor may not dismiss, or if the store cannot be written.
pub fn dismiss(services: &Services, id: &FindingId, reason: &str, decider: Decider<'_>) -> Result<(), String> {
    let reason = reason.trim();
    if reason.is_empty() {
        return Err("a dismissal needs its reason, for example {\"reason\": \"intended\"}".to_owned());
    }
    if reason.chars().count() > MAX_REASON_CHARS {
        return Err(format!("the reason has more than {MAX_REASON_CHARS} characters: write it shorter"));
    }
    decide(services, id, (FindingStatus::Dismissed, reason), decider)
}

/// Marks a finding as addressed.
///
/// # Errors
///
/// Returns a message if the actor may not do so, or if the store cannot be written.
pub fn mark_addressed(services: &Services, id: &FindingId, reason: &str, decider: Decider<'_>) -> Result<(), String> {
    decide(services, id, (FindingStatus::Addressed, reason.trim()), decider)
}

fn decide(
    services: &Services,
    id: &FindingId,
    (status, reason): (FindingStatus, &str),
    decider: Decider<'_>,
) -> Result<(), String> {
    let change = StatusChange { actor: decider.actor, status, reason };
    let places = (Some(&services.repo), &services.store);
    let decided = set_status(places, &services.ambient, std::slice::from_ref(id), change);
    decided.map(drop).map_err(|error| {
        let hint = match &error {
            SetStatusError::Store(error) => error.hint(),
            SetStatusError::Refused { .. } if decider.actor == Actor::Assistant => decider.refusal_hint.to_owned(),
            SetStatusError::Refused { .. } => String::new(),
        };
        clean_message(&if hint.is_empty() { error.to_string() } else { format!("{error}; {hint}") })
    })
}

/// Makes a message harmless: secrets are masked, control characters replaced.
pub fn clean_message(message: &str) -> String {
    sanitize_line(&Mask::On.mask_words(message)).into_owned()
}
