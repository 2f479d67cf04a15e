//! Built-in reviewer: finds eleven code smells in tree-sitter syntax trees, without network access.
//!
//! Each file is parsed once, and its tree is flattened once into an array of [`crate::syntax::source::Node`]s. Every smell reads that
//! array.

mod change;
mod findings;
mod folder;
pub(crate) mod learned_rules;
pub mod limits;
pub(crate) mod other_files;
pub mod reviewer;
pub mod smells;

pub use crate::syntax::syntax_check::SyntaxBaseline;
pub use findings::to_findings;
pub use folder::FolderReport;
pub(crate) use smells::duplicate_code::search::{FINGERPRINT_VERSION, FingerprintSource, file_fingerprints};
pub use smells::hardcoded_configuration::{FileRedactor, FileSecrets};
pub(crate) use smells::hardcoded_configuration::{TestCodeCheck, choose_text_form, find_text_secrets, needs_parsing};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::secrets::SecretSpan;
use crate::syntax::ParseFailure;
use crate::syntax::facts::{Class, FileFacts, Function};
use crate::syntax::language::Language;
use crate::syntax::source::{ParsedFile, Parsers};
use crate::syntax::work_budget::{WorkBudget, WorkClock, thread_time};
use learned_rules::LearnedRules;
use limits::Limits;
use other_files::{FileSource, NeighbourFiles, OtherFiles};
use smells::hardcoded_configuration::HardcodedValues;
use smells::{InFileClones, Smell};

/// Built-in reviewer with its thresholds and, optionally, the rules learned from earlier reviews.
#[derive(Clone, Default)]
pub struct Builtin {
    limits: Limits,
    lessons: Option<Arc<dyn LearnedRules>>,
    work_limit: WorkLimit,
    other_files: Option<Arc<OtherFiles>>,
}

/// Bound on the work of checking one file.
#[derive(Debug, Clone, Copy)]
pub struct WorkLimit {
    /// Steps per node of the tree. None of 1,602 files of flask, gson, ripgrep, caddy and tokio needs 400.
    pub steps_per_node: u64,
    /// Processor time for any file, however short it is.
    pub min_time: Duration,
    /// Additional processor time per byte.
    pub time_per_byte: Duration,
    /// Clock of the time.
    pub clock: WorkClock,
}

/// Steps that any file may take, however short it is.
const MIN_STEPS: u64 = 100_000;

/// Factor on the time of a build without optimisation.
const SLOW_BUILD_FACTOR: u32 = if cfg!(debug_assertions) { 20 } else { 1 };

impl Default for WorkLimit {
    fn default() -> Self {
        Self {
            steps_per_node: 400,
            min_time: Duration::from_millis(200) * SLOW_BUILD_FACTOR,
            time_per_byte: Duration::from_micros(2) * SLOW_BUILD_FACTOR,
            clock: thread_time,
        }
    }
}

impl WorkLimit {
    /// Returns the budget of a file with this number of nodes and this length in bytes.
    fn budget(&self, nodes: usize, bytes: usize) -> WorkBudget {
        let steps = MIN_STEPS.saturating_add(self.steps_per_node.saturating_mul(nodes as u64));
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        WorkBudget::new(steps, self.min_time.saturating_add(self.time_per_byte.saturating_mul(bytes)), self.clock)
    }
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
    /// Secrets of the file, which must not be shown.
    pub secrets: FileSecrets,
}

impl Builtin {
    /// Creates the reviewer without learned rules.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns the reviewer with another bound on the work of checking one file.
    #[must_use]
    pub fn with_work_limit(self, work_limit: WorkLimit) -> Self {
        Self { work_limit, ..self }
    }

    /// Returns the reviewer with `lessons`, the rules learned from earlier code.
    #[must_use]
    pub fn with_learned_rules(self, lessons: Arc<dyn LearnedRules>) -> Self {
        Self { lessons: Some(lessons), ..self }
    }

    /// Returns the reviewer with access to the files around those that it checks.
    #[must_use]
    pub(crate) fn with_other_files(self, files: Box<dyn FileSource>) -> Self {
        Self { other_files: Some(Arc::new(OtherFiles::new(files))), ..self }
    }

    /// Returns the thresholds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Analyzes one file with all enabled smells and with the learned rules.
    ///
    /// # Errors
    ///
    /// Returns [`ParseFailure`] if the language is unknown, the file is too complex to parse or to check, or the parser
    /// fails.
    pub fn analyze_file(&self, parsers: &mut Parsers, path: &str, text: &[u8]) -> Result<FileReport, ParseFailure> {
        let (mut report, surest) = self.analyze(parsers, path, text, InFileClones::Reported)?;
        learned_rules::keep_surest(&mut report.smells, &surest);
        Ok(report)
    }

    /// Finds the secrets that the syntax tree of a file reveals: keys with the shape of a provider's key, values with the
    /// name of a secret, and passwords in URLs. Returns nothing if the language is unknown or the file cannot be parsed.
    pub fn find_secrets(&self, parsers: &mut Parsers, path: &str, text: &[u8]) -> Vec<SecretSpan> {
        let source = Language::detect(path, text).and_then(|language| parsers.parse(path, language, text).ok());
        source.map_or_else(Vec::new, |source| {
            HardcodedValues::scan(&source, &FileFacts::from_parsed(&source), &self.limits)
                .into_secrets()
                .into_reported()
        })
    }

    /// Redacts the secrets in `smells` of one file, and applies the learned dismissals.
    fn redact_and_lower(&self, source: &ParsedFile<'_>, facts: &FileFacts, smells: &mut [Smell]) {
        let secrets = HardcodedValues::scan(source, facts, &self.limits).into_secrets();
        secrets.redactor(source.text).redact_smells(smells, source.text);
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
        let mut source = match &self.other_files {
            Some(files) => files.parse(parsers, path, language, text)?,
            None => parsers.parse(path, language, text)?,
        };
        source.limit_work(self.work_limit.budget(source.nodes.len(), text.len()));
        let facts = FileFacts::from_parsed(&source);
        let other_files = self.other_files.as_deref();
        let near = other_files.map(|files| NeighbourFiles::new(files, path, std::mem::take(parsers), self.work_limit));
        let (mut smells, hidden) = smells::check_all(&source, &facts, &self.limits, copies, near.as_ref());
        if let Some(near) = near {
            *parsers = near.into_parsers();
        }
        let mut surest = Vec::new();
        if let Some(known) = &self.lessons {
            let mut learned = learned_rules::find_learned_smells(known.as_ref(), &source, &smells);
            surest.extend(learned.iter().map(|smell| smell.line_start));
            if !learned.is_empty() {
                hidden.redactor(text).redact_smells(&mut learned, text);
            }
            self.lower_dismissed(&source, &mut smells);
            smells.extend(learned);
            smells.sort_by_key(|smell| (smell.line_start, smell.kind, smell.line_end));
        }
        if !source.work().is_left() {
            return Err(ParseFailure::TooComplexToCheck);
        }
        if let Some(files) = &self.other_files {
            files.keep_checked(source);
        }
        let FileFacts { functions, classes, .. } = facts;
        Ok((FileReport { path: path.to_owned(), language, smells, functions, classes, secrets: hidden }, surest))
    }
}
