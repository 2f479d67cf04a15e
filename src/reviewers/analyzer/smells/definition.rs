//! Interface between the registry of smells and a smell's file.

use std::cell::OnceCell;

use super::Smell;
use super::global_variables::module_variables::ModuleVariable;
use super::hardcoded_configuration::HardcodedValues;
use crate::domain::Kind;
use crate::reviewers::analyzer::limits::Limits;
use crate::reviewers::analyzer::other_files::NeighbourFiles;
use crate::syntax::facts::{Class, FileFacts, Function};
use crate::syntax::source::ParsedFile;

/// A smell as the registry knows it: the constant `SMELL` of the smell's file. Its label and synonyms are in the row of
/// its [`Kind`], its thresholds in a table of `assets/smells.toml`.
pub struct SmellDefinition {
    /// Kind of the findings.
    pub kind: Kind,
    /// Pushes the smells of a file to the list.
    pub check: fn(&CheckedFile<'_, '_>, &mut Vec<Smell>),
    /// Tells by how much a change made the subject of a smell worse.
    pub growth: GrowthComparison,
}

/// A parsed file with everything that a check reads.
#[derive(Clone, Copy)]
pub struct CheckedFile<'f, 't> {
    /// Text and syntax nodes.
    pub source: &'f ParsedFile<'t>,
    /// Functions, classes and tests of the file.
    pub facts: &'f FileFacts,
    /// Thresholds of all smells.
    pub limits: &'f Limits,
    /// Secrets and addresses of the file.
    pub hardcoded: &'f HardcodedValues<'t>,
    /// Policy for copies within the file.
    pub in_file_clones: InFileClones,
    /// Files around this one; `None` if only its text is known.
    pub other_files: Option<&'f NeighbourFiles<'f>>,
    /// Module variables that a smell reports, collected by the first smell that asks.
    pub module_variables: &'f OnceCell<Vec<ModuleVariable>>,
}

/// Controls the search for copies within the file. A review of a change ignores them here, because it searches copies
/// across all of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFileClones {
    /// Copies within the file are smells.
    Reported,
    /// Copies within the file are no smells.
    Ignored,
}

/// Comparison of a smell's subject before and after a change: both versions, and the thresholds. `None` if nothing grew.
pub enum GrowthComparison {
    /// The smell has no texts about growth.
    None,
    /// Compares the function.
    OfFunction(fn(before: &Function, after: &Function, limits: &Limits) -> Option<SmellGrowth>),
    /// Compares the class.
    OfClass(fn(before: &Class, after: &Class, limits: &Limits) -> Option<SmellGrowth>),
}

/// Texts about a subject that a change made worse, with the figures before and after.
pub struct SmellGrowth {
    /// Replaces the title of the smell.
    pub title: String,
    /// End of the sentence "With this change the …": "class grew from 12 to 16 methods".
    pub clause: String,
}
