//! The built-in reviewer: eleven smells over tree-sitter syntax trees, offline.
//!
//! A file is parsed once, its tree flattened once into [`source::Node`]s, and every smell reads that array.

mod change;
mod declarations;
pub mod facts;
mod findings;
mod folder;
pub mod language;
pub mod learned_rules;
pub mod limits;
mod metrics;
mod node_kinds;
pub mod reviewer;
pub mod smells;
pub mod source;
mod syntax_check;

pub use findings::to_findings;
pub use folder::{FolderError, FolderReport};
pub use smells::duplicate_code::search::{FINGERPRINT_VERSION, FingerprintSource, file_fingerprints};
pub use smells::hardcoded_configuration::{
    FileRedactor, ValueQuoting, find_key_shapes, find_named_secrets, needs_parsing, redact,
};
pub use syntax_check::has_no_new_syntax_errors;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use facts::{Class, FileFacts, Function};
use language::Language;
use learned_rules::LearnedRules;
use limits::Limits;
use smells::hardcoded_configuration::HardcodedValues;
use smells::{InFileClones, Smell};
use source::{ParsedFile, Parsers};

/// The built-in reviewer with its thresholds, and what it was taught.
#[derive(Clone, Default)]
pub struct Builtin {
    limits: Limits,
    lessons: Option<Arc<dyn LearnedRules>>,
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_taught = self.lessons.is_some();
        f.debug_struct("Builtin").field("limits", &self.limits).field("is_taught", &is_taught).finish()
    }
}

/// What was found in one file.
#[derive(Debug, Clone)]
pub struct FileReport {
    pub path: String,
    pub language: Language,
    /// By line.
    pub smells: Vec<Smell>,
    /// In document order, with their figures.
    pub functions: Vec<Function>,
    pub classes: Vec<Class>,
    /// What of the file must not be shown.
    pub redactor: FileRedactor,
}

/// Why a file was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AnalyzeError {
    #[error("it is of no language that revdeck reads")]
    UnknownLanguage,
    /// Parsing it would take more work or memory than a file of its size may.
    #[error("it is too complex to parse")]
    TooComplex,
    #[error("the analysis failed on it; that is a fault of revdeck")]
    Failed,
}

impl Builtin {
    pub fn new(limits: Limits) -> Self {
        Self { limits, lessons: None }
    }

    /// With what earlier code taught.
    #[must_use]
    pub fn with_learned_rules(self, lessons: Arc<dyn LearnedRules>) -> Self {
        Self { lessons: Some(lessons), ..self }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reads one file with all eleven smells.
    ///
    /// # Errors
    /// See [`Unread`].
    pub fn analyze_file(&self, parsers: &mut Parsers, path: &str, text: &[u8]) -> Result<FileReport, AnalyzeError> {
        let (mut report, surest) = self.analyze(parsers, path, text, InFileClones::Reported)?;
        learned_rules::keep_surest(&mut report.smells, &surest);
        Ok(report)
    }

    /// What of a file must not be shown: keys by their shape, secrets by their name, passwords in addresses. Nothing for
    /// files that are not in one of our languages but what [`redact`] finds.
    pub fn redactor(&self, parsers: &mut Parsers, path: &str, text: &[u8]) -> FileRedactor {
        let source = Language::detect(path, text).and_then(|language| parsers.parse(path, language, text).ok());
        source.map_or_else(
            || FileRedactor::from_key_shapes(text),
            |source| self.build_redactor(&source, &FileFacts::from_parsed(&source)),
        )
    }

    fn build_redactor(&self, source: &ParsedFile<'_>, facts: &FileFacts) -> FileRedactor {
        HardcodedValues::scan(source, facts, &self.limits).into_redactor()
    }

    /// Hides in the smells of a file what must not be shown, and has them heed what was learned.
    fn redact_and_lower(&self, source: &ParsedFile<'_>, facts: &FileFacts, smells: &mut [Smell]) {
        self.build_redactor(source, facts).redact_smells(smells, source.text);
        self.lower_dismissed(source, smells);
    }

    /// Has smells of a file heed what was learned: see [`lessons`].
    fn lower_dismissed<'s>(&self, source: &ParsedFile<'_>, smells: impl IntoIterator<Item = &'s mut Smell>) {
        if let Some(known) = &self.lessons {
            learned_rules::lower_dismissed(known.as_ref(), source, smells);
        }
    }

    /// With all that lessons add; of these the first lines, for [`lessons::leave_a_few`].
    fn analyze(
        &self,
        parsers: &mut Parsers,
        path: &str,
        text: &[u8],
        copies: InFileClones,
    ) -> Result<(FileReport, Vec<u32>), AnalyzeError> {
        let language = Language::detect(path, text).ok_or(AnalyzeError::UnknownLanguage)?;
        let source = parsers.parse(path, language, text)?;
        let facts = FileFacts::from_parsed(&source);
        let (mut smells, hidden) = smells::check_all(&source, &facts, &self.limits, copies);
        let mut surest = Vec::new();
        if let Some(known) = &self.lessons {
            let mut learned = learned_rules::find_learned_smells(known.as_ref(), &source, &smells);
            surest.extend(learned.iter().map(|smell| smell.line_start));
            hidden.redact_smells(&mut learned, text);
            self.lower_dismissed(&source, &mut smells);
            smells.extend(learned);
            smells.sort_by_key(|smell| (smell.line_start, smell.kind, smell.line_end));
        }
        let FileFacts { functions, classes, .. } = facts;
        Ok((FileReport { path: path.to_owned(), language, smells, functions, classes, redactor: hidden }, surest))
    }
}
