//! Tells a person from a coding assistant at the command line. An assistant claims fixes and asks for reviews; a person
//! decides.

use super::error::CliError;
use crate::domain::{Actor, Source};

/// Variable that says who acts; it wins over everything else.
pub const ACTOR_VARIABLE: &str = "REVDECK_ACTOR";

/// Variables that assistants set in the commands they run, checked in this order.
const ASSISTANT_VARIABLES: [&str; 14] = [
    // The marker that several vendors agree on; its value names the assistant.
    "AI_AGENT",
    // Claude Code
    "CLAUDECODE",
    // Codex: the first in every command, the others depending on version and sandbox.
    "CODEX_THREAD_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_CI",
    "GEMINI_CLI",
    "ANTIGRAVITY_AGENT",
    "OPENCODE",
    // The terminal commands of Cursor's agent
    "CURSOR_AGENT",
    "CLINE_ACTIVE",
    "AUGMENT_AGENT",
    "GOOSE_TERMINAL",
    "PI_CODING_AGENT",
];

/// Actor of a command, with the variable that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandActor {
    /// A person or an assistant.
    pub actor: Actor,
    /// Name of the variable; `None` for a person without any.
    shown_by: Option<&'static str>,
}

impl CommandActor {
    /// Detects the actor from environment variables.
    ///
    /// # Errors
    ///
    /// Returns an error if `REVDECK_ACTOR` has an unknown value.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Result<Self, CliError> {
        let given = variable(ACTOR_VARIABLE).filter(|value| !value.is_empty());
        if let Some(given) = given {
            let actor = match given.as_str() {
                "user" => Actor::User,
                "assistant" => Actor::Assistant,
                _ => {
                    return Err(CliError::usage(format!("{ACTOR_VARIABLE} is {given:?}, which is nobody who acts"))
                        .hint("set it to user or assistant, or unset it"));
                }
            };
            return Ok(Self { actor, shown_by: Some(ACTOR_VARIABLE) });
        }
        let is_set = |name: &&str| variable(name).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
        let shown_by = ASSISTANT_VARIABLES.into_iter().find(is_set);
        Ok(Self { actor: if shown_by.is_some() { Actor::Assistant } else { Actor::User }, shown_by })
    }

    /// Returns the source of requests by this actor.
    pub fn source(&self) -> Source {
        if self.is_assistant() { Source::Assistant } else { Source::Cli }
    }

    /// Returns true if an assistant acts.
    pub fn is_assistant(&self) -> bool {
        self.actor == Actor::Assistant
    }

    /// Refuses what only a person may do. `action` completes the sentence "only the user may …".
    ///
    /// # Errors
    ///
    /// Returns an error for an assistant.
    pub fn require_person(&self, action: &str) -> Result<(), CliError> {
        match self.is_assistant() {
            true => Err(CliError::usage(format!("only the user may {action}")).hint(self.hint())),
            false => Ok(()),
        }
    }

    /// Returns the hint of a refusal: why the command counts as an assistant's, and what to do.
    pub fn hint(&self) -> String {
        let because = self.shown_by.map_or(String::new(), |name| format!(" ({name} is set)"));
        format!(
            "this counts as the command of an assistant{because}: an assistant may claim a fix with `revdeck triage \
             FINDING addressed`; the user decides in the cockpit or in a terminal of their own"
        )
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn detect(variables: &[(&str, &str)]) -> Result<CommandActor, CliError> {
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        CommandActor::detect(value)
    }

    #[rstest]
    #[case::nothing(&[], Actor::User)]
    #[case::claude_code(&[("CLAUDECODE", "1")], Actor::Assistant)]
    #[case::codex(&[("CODEX_THREAD_ID", "0198")], Actor::Assistant)]
    #[case::codex_on_a_mac(&[("CODEX_SANDBOX", "seatbelt")], Actor::Assistant)]
    #[case::gemini(&[("GEMINI_CLI", "1")], Actor::Assistant)]
    #[case::opencode(&[("OPENCODE", "1")], Actor::Assistant)]
    #[case::any_that_says_so(&[("AI_AGENT", "some-tool@2")], Actor::Assistant)]
    #[case::switched_off(&[("CLAUDECODE", "0"), ("OPENCODE", ""), ("CLINE_ACTIVE", "false")], Actor::User)]
    #[case::home_of_codex(&[("CODEX_HOME", "/home/ada/.codex")], Actor::User)]
    #[case::the_variable_wins(&[("CLAUDECODE", "1"), ("REVDECK_ACTOR", "user")], Actor::User)]
    #[case::the_variable_alone(&[("REVDECK_ACTOR", "assistant")], Actor::Assistant)]
    #[case::an_empty_variable_is_none(&[("REVDECK_ACTOR", ""), ("GEMINI_CLI", "1")], Actor::Assistant)]
    fn who_acts(#[case] variables: &[(&str, &str)], #[case] expected: Actor) {
        let found = detect(variables).expect("an actor");
        assert_eq!(found.actor, expected);
        let source = if expected == Actor::User { Source::Cli } else { Source::Assistant };
        assert_eq!(found.source(), source);
        assert_eq!(found.require_person("do this").is_ok(), expected == Actor::User);
    }

    #[test]
    fn nobody_else_acts() {
        for value in ["engine", "User", "me"] {
            let error = detect(&[("REVDECK_ACTOR", value)]).expect_err("refused");
            assert_eq!(error.message, format!("REVDECK_ACTOR is {value:?}, which is nobody who acts"));
        }
    }
}
