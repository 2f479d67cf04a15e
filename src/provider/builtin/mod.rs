//! The built-in reviewer: eleven smells over tree-sitter syntax trees, offline.
//!
//! A file is parsed once, its tree flattened once into [`source::Node`]s, and every smell reads that array.

mod change;
pub mod facts;
mod findings;
mod folder;
pub mod language;
pub mod lessons;
pub mod limits;
mod metrics;
mod names;
mod parses;
pub mod reviewer;
pub mod smells;
pub mod source;
mod spec;

pub use findings::to_findings;
pub use folder::{FolderError, FolderReport};
pub use parses::parses_no_worse;
pub use smells::duplicate_code::search::{FINGERPRINTS, Known, fingerprints};
pub use smells::hardcoded_configuration::{Hidden, Values, is_worth_parsing, named, redact, shapes};

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use facts::{Class, Facts, Function};
use language::Language;
use lessons::Lessons;
use limits::Limits;
use smells::hardcoded_configuration::Held;
use smells::{Copies, Smell};
use source::{Parsers, Source};

/// The built-in reviewer with its thresholds, and what it was taught.
#[derive(Clone, Default)]
pub struct Builtin {
    limits: Limits,
    lessons: Option<Arc<dyn Lessons>>,
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
    pub hidden: Hidden,
}

/// Why a file was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unread {
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
    pub fn taught(self, lessons: Arc<dyn Lessons>) -> Self {
        Self { lessons: Some(lessons), ..self }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reads one file with all eleven smells.
    ///
    /// # Errors
    /// See [`Unread`].
    pub fn analyze_file(&self, parsers: &mut Parsers, path: &str, text: &[u8]) -> Result<FileReport, Unread> {
        let (mut report, surest) = self.analyze(parsers, path, text, Copies::Reported)?;
        lessons::leave_a_few(&mut report.smells, &surest);
        Ok(report)
    }

    /// What of a file must not be shown: keys by their shape, secrets by their name, passwords in addresses. Nothing for
    /// files that are not in one of our languages but what [`redact`] finds.
    pub fn hidden(&self, parsers: &mut Parsers, path: &str, text: &[u8]) -> Hidden {
        let source = Language::detect(path, text).and_then(|language| parsers.parse(path, language, text).ok());
        source.map_or_else(|| Hidden::by_shape(text), |source| self.hidden_in(&source, &Facts::of(&source)))
    }

    fn hidden_in(&self, source: &Source<'_>, facts: &Facts) -> Hidden {
        Held::of(source, facts, &self.limits).into_hidden()
    }

    /// Hides in the smells of a file what must not be shown, and has them heed what was learned.
    fn finish(&self, source: &Source<'_>, facts: &Facts, smells: &mut [Smell]) {
        self.hidden_in(source, facts).hide(smells, source.text);
        self.heed(source, smells);
    }

    /// Has smells of a file heed what was learned: see [`lessons`].
    fn heed<'s>(&self, source: &Source<'_>, smells: impl IntoIterator<Item = &'s mut Smell>) {
        if let Some(known) = &self.lessons {
            lessons::lower(known.as_ref(), source, smells);
        }
    }

    /// With all that lessons add; of these the first lines, for [`lessons::leave_a_few`].
    fn analyze(
        &self,
        parsers: &mut Parsers,
        path: &str,
        text: &[u8],
        copies: Copies,
    ) -> Result<(FileReport, Vec<u32>), Unread> {
        let language = Language::detect(path, text).ok_or(Unread::UnknownLanguage)?;
        let source = parsers.parse(path, language, text)?;
        let facts = Facts::of(&source);
        let (mut smells, hidden) = smells::check_all(&source, &facts, &self.limits, copies);
        let mut surest = Vec::new();
        if let Some(known) = &self.lessons {
            let mut learned = lessons::learned(known.as_ref(), &source, &smells);
            surest.extend(learned.iter().map(|smell| smell.line_start));
            hidden.hide(&mut learned, text);
            self.heed(&source, &mut smells);
            smells.extend(learned);
            smells.sort_by_key(|smell| (smell.line_start, smell.kind, smell.line_end));
        }
        let Facts { functions, classes, .. } = facts;
        Ok((FileReport { path: path.to_owned(), language, smells, functions, classes, hidden }, surest))
    }
}
