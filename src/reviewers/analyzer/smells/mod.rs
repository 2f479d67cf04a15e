//! The smells of the built-in reviewer, one file each: its check, thresholds and tests.
//!
//! To add a smell: its file, its module and its row in `smells!` here, its row in `domain/kind.rs` and its table in
//! `assets/smells.toml`. A test then names the texts for people and models that do not describe it yet.

pub(crate) mod complex_functions;
pub(crate) mod dead_code;
mod definition;
pub(crate) mod duplicate_code;
pub(crate) mod global_variables;
pub(crate) mod god_class;
pub(crate) mod hardcoded_configuration;
pub(crate) mod long_method;
pub(crate) mod magic_numbers;
pub(crate) mod missing_error_handling;
pub(crate) mod mutable_shared_state;
mod smell;
mod syntax;
#[cfg(test)]
mod test_support;
pub(crate) mod tight_coupling;

use std::cell::OnceCell;

use serde::Deserialize;

pub use self::definition::{CheckedFile, GrowthComparison, InFileClones, SmellDefinition, SmellGrowth};
use self::hardcoded_configuration::{FileSecrets, HardcodedValues};
pub use self::smell::{Smell, SmellBuilder, SmellGrade};
use super::limits::Grading;
use super::other_files::NeighbourFiles;
use crate::domain::{Kind, Priority, Severity};
use crate::syntax::facts::{FileFacts, Function, symbol_around};
use crate::syntax::source::{ParsedFile, field_id};

/// Registers the smells: each row is a module, which is also the table in `assets/smells.toml`, and its thresholds.
macro_rules! smells {
    ($($module:ident: $limits:ident),+ $(,)?) => {
        /// All thresholds: the rules for grading, and one table per smell.
        #[derive(Debug, Clone, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Limits {
            /// Rules for grading.
            pub grading: Grading,
            $(#[doc = concat!("Table `[", stringify!($module), "]`.")] pub $module: $module::$limits,)+
        }

        /// All smells, switched on or off.
        pub const SMELLS: &[SmellDefinition] = &[$($module::SMELL),+];

        impl Limits {
            /// Returns the smells that are switched on.
            fn enabled_smells(&self) -> impl Iterator<Item = &'static SmellDefinition> {
                let enabled = [$(self.$module.enabled),+];
                SMELLS.iter().zip(enabled).filter_map(|(smell, enabled)| enabled.then_some(smell))
            }
        }
    };
}

smells! {
    long_method: LongMethodLimits,
    complex_functions: ComplexFunctionsLimits,
    god_class: GodClassLimits,
    magic_numbers: MagicNumbersLimits,
    duplicate_code: DuplicateCodeLimits,
    dead_code: DeadCodeLimits,
    global_variables: GlobalVariablesLimits,
    mutable_shared_state: MutableSharedStateLimits,
    missing_error_handling: MissingErrorHandlingLimits,
    tight_coupling: TightCouplingLimits,
    hardcoded_configuration: HardcodedConfigurationLimits,
}

impl SmellDefinition {
    /// Returns the smell of a kind; `None` for a class of defect.
    pub fn from_kind(kind: Kind) -> Option<&'static Self> {
        SMELLS.iter().find(|smell| smell.kind == kind)
    }
}

/// Runs all enabled smells on one file. Returns the smells sorted by line and without the file's secrets, and the
/// secrets, because texts from other sources must not show them either.
pub fn check_all(
    source: &ParsedFile<'_>,
    facts: &FileFacts,
    limits: &Limits,
    in_file_clones: InFileClones,
    other_files: Option<&NeighbourFiles<'_>>,
) -> (Vec<Smell>, FileSecrets) {
    let hardcoded = HardcodedValues::scan(source, facts, limits);
    let module_variables = OnceCell::new();
    let file = CheckedFile {
        source,
        facts,
        limits,
        hardcoded: &hardcoded,
        in_file_clones,
        other_files,
        module_variables: &module_variables,
    };
    let mut smells = Vec::new();
    for smell in limits.enabled_smells().take_while(|_| source.work().is_left()) {
        (smell.check)(&file, &mut smells);
    }
    smells.sort_by_key(|smell| (smell.line_start, smell.kind, smell.line_end));
    for smell in &mut smells {
        smell.title = syntax::capitalize(&smell.title);
        smell.explanation = syntax::capitalize(&smell.explanation);
        smell.symbol = symbol_around(&facts.functions, smell.line_start, &smell.title).map(str::to_owned);
    }
    let secrets = hardcoded.into_secrets();
    if !smells.is_empty() {
        secrets.redactor(source.text).redact_smells(&mut smells, source.text);
    }
    (smells, secrets)
}

/// Returns the first and last line (1-based) of a function's head: from its name to the start of its body.
pub(super) fn head_lines(source: &ParsedFile<'_>, function: &Function) -> (u32, u32) {
    let body = source.child_by_field(function.node, field_id(source.language, "body")).map(|body| &source.nodes[body]);
    let last = body.map_or(function.line_start, |body| {
        let opens_with_bracket = matches!(source.text.get(body.start as usize), Some(b'{' | b'('));
        if opens_with_bracket { body.row + 1 } else { body.row }
    });
    (function.line_start, last.clamp(function.line_start, function.line_end))
}

/// Returns the number of the file's last line (1-based).
pub(super) fn last_line(source: &ParsedFile<'_>) -> u32 {
    source.nodes.first().map_or(1, |root| root.end_row + 1)
}

impl Grading {
    /// Returns a limit, multiplied by `test_factor` for test code.
    pub fn limit(&self, limit: u32, is_test: bool) -> u32 {
        if is_test { (f64::from(limit) * self.test_factor) as u32 } else { limit }
    }

    /// Returns priority and severity for the ratio of a figure to its limit.
    pub fn grade(&self, ratio: f64) -> (Priority, Severity) {
        if ratio >= self.high_ratio {
            (Priority::P1, Severity::High)
        } else if ratio >= self.medium_ratio {
            (Priority::P2, Severity::Medium)
        } else {
            (Priority::P3, Severity::Low)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reviewers::analyzer::limits::DEFAULT_SMELLS_TOML;

    #[test]
    fn every_smell_is_registered_once_with_its_table() {
        for &kind in Kind::ALL {
            let registered = SMELLS.iter().filter(|smell| smell.kind == kind).count();
            assert_eq!(registered, usize::from(kind.is_smell()), "{kind}");
            let table = format!("\n[{}]\nenabled = true\n", kind.word().to_lowercase());
            assert_eq!(DEFAULT_SMELLS_TOML.contains(&table), kind.is_smell(), "{kind}: {table}");
        }
    }

    #[test]
    fn every_smell_is_described_for_people_and_models() {
        for SmellDefinition { kind, .. } in SMELLS {
            for (text, row) in [
                (include_str!("../../../../docs/reviewers.md"), format!("\n| `{kind}` | ")),
                (include_str!("../../../../assets/prompts/system.md"), format!("\n- {kind}: ")),
            ] {
                assert!(text.contains(&row), "a text does not describe {kind}: {row:?}");
            }
        }
    }
}
