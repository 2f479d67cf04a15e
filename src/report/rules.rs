//! Describes each kind of finding as a rule, for programs that show a rule beside its findings.

use crate::domain::Kind;

/// Rule of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleText {
    /// Name of the problem, without a full stop.
    pub title: &'static str,
    /// Reason why it is a problem, and advice; whole sentences.
    pub help: &'static str,
    /// Topic in the words of code scanning: `security`, `correctness`, `maintainability` and the like.
    pub tag: &'static str,
}

/// Returns the rule of a kind.
pub fn describe_rule(kind: Kind) -> RuleText {
    let (title, help, tag) = match kind {
        Kind::LongMethod => (
            "Function is too long",
            "A long function is hard to understand and to test. Extract steps into functions with names.",
            "maintainability",
        ),
        Kind::MagicNumbers => (
            "Number without a name",
            "A reader cannot tell the meaning of the number, and a change may miss one of its copies. Name it.",
            "maintainability",
        ),
        Kind::DuplicateCode => (
            "Code is duplicated",
            "A change to one copy may miss the others. Move the common part to one place.",
            "maintainability",
        ),
        Kind::GodClass => (
            "Class does too much",
            "A class with many tasks is changed for many reasons. Split it by task.",
            "maintainability",
        ),
        Kind::DeadCode => (
            "Code is never used",
            "Unused code misleads readers and must be maintained. Remove it, or use it.",
            "maintainability",
        ),
        Kind::GlobalVariables => (
            "Variable is global",
            "Any code may depend on a global variable. Pass the value to the code that needs it.",
            "maintainability",
        ),
        Kind::MutableSharedState => (
            "Shared state is changed",
            "State that is changed from several places is hard to follow and may be a race. Limit who changes it.",
            "maintainability",
        ),
        Kind::ComplexFunctions => (
            "Function is too complex",
            "Each branch is a case to understand and to test. Extract functions, return early, or use a table.",
            "maintainability",
        ),
        Kind::MissingErrorHandling => (
            "Error is ignored",
            "An ignored error shows up later, elsewhere. Handle it, report it, or pass it on.",
            "reliability",
        ),
        Kind::TightCoupling => (
            "Code is coupled tightly",
            "Code that knows many others changes with each of them. Depend on fewer, or on an interface.",
            "maintainability",
        ),
        Kind::HardcodedConfiguration => (
            "Configuration stands in the code",
            "An address, a path or a secret in code cannot be changed without a release, and a secret is known to every \
             reader. Read it from the configuration; revoke a secret that was published.",
            "security",
        ),
        Kind::Correctness => (
            "Code does not do what it should",
            "The explanation of the finding names a case in which the result is wrong.",
            "correctness",
        ),
        Kind::Security => (
            "Code can be attacked",
            "The explanation of the finding names who can attack and by which input.",
            "security",
        ),
        Kind::Concurrency => (
            "Code goes wrong when run at the same time",
            "The explanation of the finding names an order of events that leads to a race or a deadlock.",
            "correctness",
        ),
        Kind::Performance => (
            "Code wastes time or memory",
            "The explanation of the finding names the input for which it is slow or large.",
            "performance",
        ),
        Kind::ErrorHandling => (
            "Failure is handled wrongly",
            "The explanation of the finding names a failure and what it leads to.",
            "reliability",
        ),
        Kind::Api => (
            "Interface is broken or misleading",
            "The explanation of the finding names the caller that is affected.",
            "maintainability",
        ),
        Kind::Tests => (
            "Test is missing or proves nothing",
            "The explanation of the finding names the behaviour that no test would notice.",
            "tests",
        ),
        Kind::Docs => (
            "Documentation is wrong or missing",
            "The explanation of the finding names the statement that is not true, or that is missing.",
            "documentation",
        ),
    };
    RuleText { title, help, tag }
}
