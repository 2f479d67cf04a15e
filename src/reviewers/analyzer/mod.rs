//! Built-in reviewer: finds eleven code smells in tree-sitter syntax trees, without network access.
//!
//! Each file is parsed once, and its tree is flattened once into an array of [`crate::syntax::source::Node`]s. Every smell reads that
//! array.

mod change;
mod findings;
mod folder;
pub(crate) mod learned_rules;
pub mod limits;
pub mod reviewer;
pub mod smells;

pub use crate::syntax::syntax_check::has_no_new_syntax_errors;
pub use findings::to_findings;
pub use folder::FolderReport;
pub(crate) use smells::duplicate_code::search::{FINGERPRINT_VERSION, FingerprintSource, file_fingerprints};
pub use smells::hardcoded_configuration::FileRedactor;
pub(crate) use smells::hardcoded_configuration::{
    ValueQuoting, find_key_shapes, find_named_secrets, find_text_secrets, needs_parsing,
};

use std::fmt;
use std::sync::Arc;

use crate::syntax::ParseFailure;
use crate::syntax::facts::{Class, FileFacts, Function};
use crate::syntax::language::Language;
use crate::syntax::source::{ParsedFile, Parsers};
use learned_rules::LearnedRules;
use limits::Limits;
use smells::hardcoded_configuration::HardcodedValues;
use smells::{InFileClones, Smell};

/// Built-in reviewer with its thresholds and, optionally, the rules learned from earlier reviews.
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

/// Result of analyzing one file.
#[derive(Debug, Clone)]
pub struct FileReport {
    /// Path relative to the repository root, as the caller gave it.
    pub path: String,
    /// Language by the file's name and content.
    pub language: Language,
    /// Sorted by first line, then kind, then last line.
    pub smells: Vec<Smell>,
    /// In document order, with their metrics.
    pub functions: Vec<Function>,
    /// Classes in document order, with their metrics.
    pub classes: Vec<Class>,
    /// Redactor for the secrets of the file, which must not be shown.
    pub redactor: FileRedactor,
}

impl Builtin {
    /// Creates the reviewer without learned rules.
    pub fn new(limits: Limits) -> Self {
        Self { limits, lessons: None }
    }

    /// Returns the reviewer with `lessons`, the rules learned from earlier code.
    #[must_use]
    pub fn with_learned_rules(self, lessons: Arc<dyn LearnedRules>) -> Self {
        Self { lessons: Some(lessons), ..self }
    }

    /// Returns the thresholds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Analyzes one file with all enabled smells and with the learned rules.
    ///
    /// # Errors
    ///
    /// Returns [`ParseFailure`] if the language is unknown, the file is too complex to parse, or the parser fails.
    pub fn analyze_file(&self, parsers: &mut Parsers, path: &str, text: &[u8]) -> Result<FileReport, ParseFailure> {
        let (mut report, surest) = self.analyze(parsers, path, text, InFileClones::Reported)?;
        learned_rules::keep_surest(&mut report.smells, &surest);
        Ok(report)
    }

    /// Finds the secrets of a file: keys with the shape of a provider's key, values with the name of a secret, and
    /// passwords in URLs. If the language is unknown or the file cannot be parsed, only keys with a known shape are
    /// found, as in [`redact`].
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

    /// Redacts the secrets in `smells` of one file, and applies the learned dismissals.
    fn redact_and_lower(&self, source: &ParsedFile<'_>, facts: &FileFacts, smells: &mut [Smell]) {
        self.build_redactor(source, facts).redact_smells(smells, source.text);
        self.lower_dismissed(source, smells);
    }

    /// Lowers the priority of smells that users always dismiss: see [`learned_rules::lower_dismissed`].
    fn lower_dismissed<'s>(&self, source: &ParsedFile<'_>, smells: impl IntoIterator<Item = &'s mut Smell>) {
        if let Some(known) = &self.lessons {
            learned_rules::lower_dismissed(known.as_ref(), source, smells);
        }
    }

    /// Analyzes one file and adds every match of the learned rules. The second value holds the first lines of these
    /// matches, most confident first, for [`learned_rules::keep_surest`].
    fn analyze(
        &self,
        parsers: &mut Parsers,
        path: &str,
        text: &[u8],
        copies: InFileClones,
    ) -> Result<(FileReport, Vec<u32>), ParseFailure> {
        let language = Language::detect(path, text).ok_or(ParseFailure::UnknownLanguage)?;
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
