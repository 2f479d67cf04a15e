//! Tells a person from a coding assistant and from a job of continuous integration at the command line. An assistant claims
//! fixes and asks for reviews; a person decides. A job does what a person has written into it, and its records say so.

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

/// Variables that services for continuous integration set in their jobs.
const CI_VARIABLES: [&str; 11] = [
    // The marker that most services set: GitHub, GitLab, CircleCI, Travis, Woodpecker, Buildkite and more.
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "BUILDKITE",
    "CIRCLECI",
    "DRONE",
    // Azure Pipelines
    "TF_BUILD",
    "JENKINS_URL",
    "TEAMCITY_VERSION",
    "BITBUCKET_BUILD_NUMBER",
    // AWS CodeBuild
    "CODEBUILD_BUILD_ID",
];

/// Returns true if a variable is set to more than nothing, `0` or `false`.
fn is_switched_on(variable: &impl Fn(&str) -> Option<String>, name: &str) -> bool {
    variable(name).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// Actor of a command, with the variable that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandActor {
    /// A person or an assistant.
    pub actor: Actor,
    /// True if a job of continuous integration acts for the person.
    pub is_ci: bool,
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
            let (actor, is_ci) = match given.as_str() {
                "user" => (Actor::User, false),
                "assistant" => (Actor::Assistant, false),
                "ci" => (Actor::User, true),
                _ => {
                    return Err(CliError::usage(format!("{ACTOR_VARIABLE} is {given:?}, which is nobody who acts"))
                        .hint("set it to user, assistant or ci, or unset it"));
                }
            };
            return Ok(Self { actor, is_ci, shown_by: Some(ACTOR_VARIABLE) });
        }
        if let Some(name) = ASSISTANT_VARIABLES.into_iter().find(|name| is_switched_on(&variable, name)) {
            return Ok(Self { actor: Actor::Assistant, is_ci: false, shown_by: Some(name) });
        }
        let is_ci = CI_VARIABLES.into_iter().any(|name| is_switched_on(&variable, name));
        Ok(Self { actor: Actor::User, is_ci, shown_by: None })
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
    #[case::an_assistant_in_a_job(&[("CI", "true"), ("CLAUDECODE", "1")], Actor::Assistant)]
    fn who_acts(#[case] variables: &[(&str, &str)], #[case] expected: Actor) {
        let found = detect(variables).expect("an actor");
        assert_eq!(found.actor, expected);
        let source = if expected == Actor::User { Source::Cli } else { Source::Assistant };
        assert_eq!(found.source(), source);
        assert_eq!(found.require_person("do this").is_ok(), expected == Actor::User);
    }

    #[rstest]
    #[case::a_terminal(&[], false)]
    #[case::any_service(&[("CI", "true")], true)]
    #[case::woodpecker(&[("CI", "woodpecker")], true)]
    #[case::github(&[("GITHUB_ACTIONS", "true")], true)]
    #[case::gitlab(&[("GITLAB_CI", "true")], true)]
    #[case::azure(&[("TF_BUILD", "True")], true)]
    #[case::jenkins(&[("JENKINS_URL", "https://jenkins.example.org/")], true)]
    #[case::switched_off(&[("CI", "false"), ("GITHUB_ACTIONS", "")], false)]
    #[case::an_assistant_in_a_job(&[("CI", "true"), ("AI_AGENT", "x")], false)]
    #[case::a_person_says_so(&[("CI", "true"), ("REVDECK_ACTOR", "user")], false)]
    #[case::another_service_says_so(&[("REVDECK_ACTOR", "ci")], true)]
    fn jobs_of_continuous_integration_are_known(#[case] variables: &[(&str, &str)], #[case] expected: bool) {
        let found = detect(variables).expect("an actor");
        assert_eq!(found.is_ci, expected);
        assert!(!found.is_ci || found.actor == Actor::User, "a job does what a person has written into it");
    }

    #[test]
    fn nobody_else_acts() {
        for value in ["engine", "User", "me"] {
            let error = detect(&[("REVDECK_ACTOR", value)]).expect_err("refused");
            assert_eq!(error.message, format!("REVDECK_ACTOR is {value:?}, which is nobody who acts"));
        }
    }
}
