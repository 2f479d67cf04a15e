//! Describes each kind of finding as a rule, for programs that show a rule beside its findings.

use crate::domain::Kind;

/// Rule of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleDescription {
    /// Name of the problem, without a full stop.
    pub title: &'static str,
    /// Reason why it is a problem, and advice; whole sentences.
    pub help: &'static str,
    /// Topic in the words of code scanning: `security`, `correctness`, `maintainability` and the like.
    pub tag: &'static str,
}

/// Returns the rule of a kind.
pub fn describe_rule(kind: Kind) -> RuleDescription {
    RuleDescription { title: rule_title(kind), help: rule_help(kind), tag: rule_tag(kind) }
}

fn rule_title(kind: Kind) -> &'static str {
    match kind {
        Kind::LongMethod => "Function is too long",
        Kind::MagicNumbers => "Number without a name",
        Kind::DuplicateCode => "Code is duplicated",
        Kind::GodClass => "Class does too much",
        Kind::DeadCode => "Code is never used",
        Kind::GlobalVariables => "Variable is global",
        Kind::MutableSharedState => "Shared state is changed",
        Kind::ComplexFunctions => "Function is too complex",
        Kind::MissingErrorHandling => "Error is ignored",
        Kind::TightCoupling => "Code is coupled tightly",
        Kind::HardcodedConfiguration => "Configuration stands in the code",
        Kind::Correctness => "Code does not do what it should",
        Kind::Security => "Code can be attacked",
        Kind::Concurrency => "Code goes wrong when run at the same time",
        Kind::Performance => "Code wastes time or memory",
        Kind::ErrorHandling => "Failure is handled wrongly",
        Kind::Api => "Interface is broken or misleading",
        Kind::Tests => "Test is missing or proves nothing",
        Kind::Docs => "Documentation is wrong or missing",
    }
}

fn rule_help(kind: Kind) -> &'static str {
    match kind {
        Kind::LongMethod => {
            "A long function is hard to understand and to test. Extract steps into functions with names."
        }
        Kind::MagicNumbers => {
            "A reader cannot tell the meaning of the number, and a change may miss one of its copies. Name it."
        }
        Kind::DuplicateCode => "A change to one copy may miss the others. Move the common part to one place.",
        Kind::GodClass => "A class with many tasks is changed for many reasons. Split it by task.",
        Kind::DeadCode => "Unused code misleads readers and must be maintained. Remove it, or use it.",
        Kind::GlobalVariables => "Any code may depend on a global variable. Pass the value to the code that needs it.",
        Kind::MutableSharedState => {
            "State that is changed from several places is hard to follow and may be a race. Limit who changes it."
        }
        Kind::ComplexFunctions => {
            "Each branch is a case to understand and to test. Extract functions, return early, or use a table."
        }
        Kind::MissingErrorHandling => {
            "An ignored error shows up later, elsewhere. Handle it, report it, or pass it on."
        }
        Kind::TightCoupling => {
            "Code that knows many others changes with each of them. Depend on fewer, or on an interface."
        }
        Kind::HardcodedConfiguration => {
            "An address, a path or a secret in code cannot be changed without a release, and a secret is known to every \
             reader. Read it from the configuration; revoke a secret that was published."
        }
        Kind::Correctness => "The explanation of the finding names a case in which the result is wrong.",
        Kind::Security => "The explanation of the finding names who can attack and by which input.",
        Kind::Concurrency => {
            "The explanation of the finding names an order of events that leads to a race or a deadlock."
        }
        Kind::Performance => "The explanation of the finding names the input for which it is slow or large.",
        Kind::ErrorHandling => "The explanation of the finding names a failure and what it leads to.",
        Kind::Api => "The explanation of the finding names the caller that is affected.",
        Kind::Tests => "The explanation of the finding names the behaviour that no test would notice.",
        Kind::Docs => "The explanation of the finding names the statement that is not true, or that is missing.",
    }
}

fn rule_tag(kind: Kind) -> &'static str {
    match kind {
        Kind::LongMethod
        | Kind::MagicNumbers
        | Kind::DuplicateCode
        | Kind::GodClass
        | Kind::DeadCode
        | Kind::GlobalVariables
        | Kind::MutableSharedState
        | Kind::ComplexFunctions
        | Kind::TightCoupling
        | Kind::Api => "maintainability",
        Kind::MissingErrorHandling | Kind::ErrorHandling => "reliability",
        Kind::HardcodedConfiguration | Kind::Security => "security",
        Kind::Correctness | Kind::Concurrency => "correctness",
        Kind::Performance => "performance",
        Kind::Tests => "tests",
        Kind::Docs => "documentation",
    }
}
