//! Kinds of findings. One row of `kinds!` holds all words of a kind; every room reads them from here.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;

/// Words and properties of one kind.
#[derive(Debug, Clone, Copy)]
struct KindRow {
    class: KindClass,
    label: &'static str,
    synonyms: &'static [&'static str],
    twin: Option<Kind>,
    dismissals: DismissalEffect,
}

/// Source of the findings of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KindClass {
    /// The built-in reviewer reports it; models may report it, too.
    Smell,
    /// Only models report it, and the rules that were learned from them.
    Defect,
}

/// Effect of dismissed findings on other findings of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DismissalEffect {
    Lowered,
    NeverLowered,
    NeverHidden,
}

impl KindRow {
    const fn smell(label: &'static str, synonyms: &'static [&'static str]) -> Self {
        Self { class: KindClass::Smell, label, synonyms, twin: None, dismissals: DismissalEffect::Lowered }
    }

    const fn defect(label: &'static str, synonyms: &'static [&'static str]) -> Self {
        Self { class: KindClass::Defect, ..Self::smell(label, synonyms) }
    }

    const fn twin(self, defect: Kind) -> Self {
        Self { twin: Some(defect), ..self }
    }

    const fn never_lowered(self) -> Self {
        Self { dismissals: DismissalEffect::NeverLowered, ..self }
    }

    const fn never_hidden(self) -> Self {
        Self { dismissals: DismissalEffect::NeverHidden, ..self }
    }
}

/// Declares [`Kind`] with one row per kind: variant, word in files and commands, and [`KindRow`].
macro_rules! kinds {
    ($($variant:ident = $word:literal => $row:expr),+ $(,)?) => {
        word_enum!(
            /// Kind of problem: one of the smells of the built-in reviewer, or a class of defect.
            Kind { $($variant = $word),+ }
        );

        impl Kind {
            const fn row(self) -> KindRow {
                match self { $(Self::$variant => $row),+ }
            }
        }
    };
}

// Each row: label of at most 14 columns, then the synonyms that models use. A synonym has only lower-case letters.
kinds! {
    LongMethod = "LONG_METHOD" => KindRow::smell(
        "long method",
        &["longfunction", "longmethods", "largemethod", "largefunction", "methodtoolong", "functiontoolong"],
    ),
    MagicNumbers = "MAGIC_NUMBERS" => KindRow::smell(
        "magic number",
        &["magicnumber", "magicvalue", "magicconstant", "magicstring"],
    ),
    DuplicateCode = "DUPLICATE_CODE" => KindRow::smell(
        "duplicate",
        &[
            "duplicatedcode", "duplication", "codeduplication", "duplicate", "copypaste", "copyandpaste",
            "repeatedcode", "dry", "clone",
        ],
    ),
    GodClass = "GOD_CLASS" => KindRow::smell(
        "god class",
        &["godobject", "largeclass", "bigclass", "bloatedclass", "classtoolarge"],
    ),
    DeadCode = "DEAD_CODE" => KindRow::smell(
        "dead code",
        &[
            "unusedcode", "unreachablecode", "unreachable", "unused", "unusedvariable", "unusedimport", "unusedfunction",
        ],
    )
    .twin(Kind::Correctness),
    GlobalVariables = "GLOBAL_VARIABLES" => KindRow::smell(
        "global",
        &["globalvariable", "globalstate", "globals"],
    )
    .twin(Kind::Concurrency),
    MutableSharedState = "MUTABLE_SHARED_STATE" => KindRow::smell(
        "shared state",
        &["sharedmutablestate", "sharedstate", "mutablestate", "mutableglobalstate"],
    )
    .twin(Kind::Concurrency)
    .never_lowered(),
    ComplexFunctions = "COMPLEX_FUNCTIONS" => KindRow::smell(
        "complex",
        &[
            "complexfunction", "complexmethod", "complexity", "highcomplexity", "cyclomaticcomplexity",
            "cognitivecomplexity", "deepnesting",
        ],
    ),
    MissingErrorHandling = "MISSING_ERROR_HANDLING" => KindRow::smell(
        "ignored error",
        &[
            "noerrorhandling", "unhandlederror", "unhandlederrors", "unhandledexception", "swallowedexception",
            "emptycatch", "ignorederror",
        ],
    )
    .twin(Kind::ErrorHandling)
    .never_lowered(),
    TightCoupling = "TIGHT_COUPLING" => KindRow::smell("coupling", &["coupling", "highcoupling", "tightlycoupled"]),
    HardcodedConfiguration = "HARDCODED_CONFIGURATION" => KindRow::smell(
        "hardcoded",
        &[
            "hardcodedconfig", "hardcodedvalue", "hardcodedvalues", "hardcoding", "hardcoded", "hardcodedcredential",
            "hardcodedcredentials", "hardcodedpassword", "hardcodedsecret", "hardcodedsecrets", "hardcodedurl",
            "configuration",
        ],
    )
    .twin(Kind::Security)
    .never_lowered(),
    Correctness = "CORRECTNESS" => KindRow::defect(
        "correctness",
        &[
            "bug", "defect", "logic", "logicerror", "logicbug", "functional", "offbyone", "edgecase", "nullpointer",
            "regression",
        ],
    )
    .never_hidden(),
    Security = "SECURITY" => KindRow::defect(
        "security",
        &[
            "vulnerability", "secure", "injection", "sqlinjection", "commandinjection", "pathtraversal", "xss", "csrf",
            "ssrf", "authentication", "authorization", "cryptography", "secrets", "privacy",
        ],
    )
    .never_hidden(),
    Concurrency = "CONCURRENCY" => KindRow::defect(
        "concurrency",
        &[
            "race", "racecondition", "datarace", "deadlock", "threadsafety", "threading", "synchronization",
            "parallelism", "atomicity", "async",
        ],
    )
    .never_lowered(),
    Performance = "PERFORMANCE" => KindRow::defect(
        "performance",
        &[
            "perf", "efficiency", "inefficiency", "slow", "scalability", "optimization", "memoryleak", "memoryusage",
            "nplusone",
        ],
    ),
    ErrorHandling = "ERROR_HANDLING" => KindRow::defect(
        "error handling",
        &["errors", "exceptions", "exceptionhandling", "errorpropagation", "faulttolerance", "robustness"],
    )
    .never_lowered(),
    Api = "API" => KindRow::defect(
        "api",
        &[
            "apis", "apidesign", "apicontract", "apimisuse", "interface", "contract", "breakingchange", "compatibility",
            "backwardcompatibility",
        ],
    ),
    Tests = "TESTS" => KindRow::defect(
        "tests",
        &["test", "testing", "testcoverage", "missingtest", "missingtests", "unittests", "coverage", "flakytest"],
    ),
    Docs = "DOCS" => KindRow::defect(
        "docs",
        &["doc", "documentation", "docstring", "docstrings", "comments", "comment", "readme"],
    ),
}

impl Kind {
    /// Returns true for the kinds that the built-in reviewer reports.
    pub fn is_smell(self) -> bool {
        self.row().class == KindClass::Smell
    }

    /// Returns a label of at most 14 columns, for lists on the screen.
    pub fn label(self) -> &'static str {
        self.row().label
    }

    /// Returns other names of the kind, without spaces and in lower case. The word of the kind is not among them.
    pub fn synonyms(self) -> &'static [&'static str] {
        self.row().synonyms
    }

    /// Returns the kinds under which other reports describe the same problem: the class of defect of a smell, or the
    /// smells of a class of defect.
    pub fn twins(self) -> impl Iterator<Item = Self> {
        let is_twin = move |other: &Self| self.row().twin == Some(*other) || other.row().twin == Some(self);
        Self::ALL.iter().copied().filter(is_twin)
    }

    /// Returns true if findings of this kind are never suppressed, muted or lowered, whatever was decided about
    /// similar findings.
    pub fn is_never_hidden(self) -> bool {
        self.row().dismissals == DismissalEffect::NeverHidden
    }

    /// Returns true if dismissals of this kind say nothing about other findings of the kind. This holds for the kinds
    /// that are never hidden, and for kinds where a problem may be serious in one place and harmless in similar code
    /// elsewhere. For example, a hardcoded value may be a secret.
    pub fn is_never_lowered(self) -> bool {
        self.row().dismissals != DismissalEffect::Lowered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_fit_the_list_and_synonyms_are_folded() {
        for kind in Kind::ALL {
            assert!((1..=14).contains(&kind.label().len()), "{kind}: {}", kind.label());
            for synonym in kind.synonyms() {
                assert!(synonym.bytes().all(|byte| byte.is_ascii_lowercase()), "{kind}: {synonym}");
            }
        }
    }

    #[test]
    fn twins_are_a_smell_and_a_class_of_defect() {
        let twins = |kind: Kind| kind.twins().collect::<Vec<_>>();
        assert_eq!(twins(Kind::DeadCode), [Kind::Correctness]);
        assert_eq!(twins(Kind::Concurrency), [Kind::GlobalVariables, Kind::MutableSharedState]);
        assert_eq!(twins(Kind::LongMethod), []);
        for &kind in Kind::ALL {
            assert!(kind.twins().all(|twin| twin.is_smell() != kind.is_smell()), "{kind}");
        }
    }

    #[test]
    fn dismissals_count_less_where_a_problem_may_be_serious() {
        for (kind, never_lowered, never_hidden) in [
            (Kind::MagicNumbers, false, false),
            (Kind::MissingErrorHandling, true, false),
            (Kind::HardcodedConfiguration, true, false),
            (Kind::Security, true, true),
            (Kind::Correctness, true, true),
        ] {
            assert_eq!((kind.is_never_lowered(), kind.is_never_hidden()), (never_lowered, never_hidden), "{kind}");
        }
    }
}
