//! Validates the reports of a model against the files of the snapshot.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use super::standing_code::{KnownPlace, StandingCode, StandingGround};
use super::visible_findings::VisibleFindings;
use crate::domain::{Finding, FindingId, LineRange, ReportedProblem, RunId, RunRecord, Source};
use crate::git::{Changeset, Repo};
use crate::index::chunk::chunk_file;
use crate::masking::{Mask, has_secret_marker};
use crate::review::{
    FileText, FindingIdentities, ProblemText, ReportValidation, ScopeLines, apply_replacement, validate_report,
};
use crate::reviewers::analyzer::SyntaxBaseline;
use crate::runner::{RunnerError, Services};
use crate::store::Store;
use crate::syntax::facts::{FileFacts, Function, symbol_around};
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Maximum number of files in the cache.
const MAX_CACHED_FILES: usize = 64;
/// Maximum number of changed files that are read for the names of changed symbols.
const MAX_SYMBOL_FILES: usize = 100;
/// Maximum size of such a file, in bytes.
const MAX_SYMBOL_FILE_BYTES: usize = 1 << 20;

/// The validator, with the files of the snapshot that it has read.
pub(in crate::runner) struct ReportValidator {
    repo: Repo,
    run_id: RunId,
    commit: String,
    scope: ScopeLines,
    symbols: SymbolState,
    files: HashMap<String, Option<SnapshotFile>>,
    identities: FindingIdentities,
    standing_code: StandingCode,
    store: Store,
    /// The findings of earlier runs, as of the begin of the review.
    earlier: VisibleFindings,
}

/// States whether the names of changed symbols are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SymbolState {
    NotRead,
    Read,
}

#[derive(Clone)]
struct SnapshotFile {
    text: Rc<str>,
    /// The text as findings quote it. Secrets are always masked, even if the model may see them.
    shown: Rc<FileText>,
    /// The syntax errors of the text, counted for the first suggestion.
    syntax: Rc<OnceCell<SyntaxBaseline>>,
    /// Functions with masked names, read for the first finding.
    functions: Rc<OnceCell<Vec<Function>>>,
}

impl ReportValidator {
    /// Creates the validator for a run.
    ///
    /// # Errors
    ///
    /// If the repository or the store cannot be opened.
    pub fn new(services: &Services, record: &RunRecord, change: &Changeset) -> Result<Self, RunnerError> {
        let lines = |file: &crate::git::FileChange| -> Vec<LineRange> {
            file.hunks.iter().map(|hunk| hunk.new_range()).collect()
        };
        Self::for_files(services, record, change.files.iter().map(|file| (file.path.clone(), lines(file))))
    }

    /// Creates the validator for reports about these lines of these files.
    ///
    /// # Errors
    ///
    /// If the repository or the store cannot be opened.
    pub fn for_files(
        services: &Services,
        record: &RunRecord,
        files: impl IntoIterator<Item = (String, Vec<LineRange>)>,
    ) -> Result<Self, RunnerError> {
        let scope = ScopeLines::new(files);
        let root = services.repo.root().to_string_lossy().into_owned();
        Ok(Self {
            repo: services.repo.discover_again()?,
            run_id: record.run_id.clone(),
            commit: record.subject.snapshot_commit.clone(),
            scope: scope.with_roots([root, record.subject.worktree.clone()]),
            symbols: SymbolState::NotRead,
            files: HashMap::new(),
            identities: FindingIdentities::default(),
            standing_code: StandingCode::default(),
            earlier: VisibleFindings::load(services, record)?,
            store: services.store.clone(),
        })
    }

    /// Begins an answer, whose reports are told apart by their titles.
    pub fn begin_answer(&mut self) {
        self.identities.begin_answer();
    }

    /// Validates a report. A suggestion keeps only its words if the file would no longer parse with the suggested code.
    pub fn validate(&mut self, report: &ReportedProblem) -> ReportValidation {
        let mut examined = self.examine(report);
        if let ReportValidation::Finding { finding, .. } = &mut examined {
            let report = finding.clone();
            let ground = StandingGround { repo: &self.repo, known: &self.earlier, snapshot: &self.commit };
            let is_elsewhere =
                |id: &FindingId| self.standing_code.find_place(ground, id, &report) == KnownPlace::Elsewhere;
            self.identities.assign(finding, |id| load_earlier(&self.store, ground.known, id), is_elsewhere);
        }
        examined
    }

    /// Validates a report like [`ReportValidator::validate`]. The id of the finding comes from its code alone, even if
    /// another problem at the same code has it.
    pub fn examine(&mut self, report: &ReportedProblem) -> ReportValidation {
        // Secrets that a model was shown or invented must not reach the store either.
        let mut report = mask_report(report);
        if self.symbols == SymbolState::NotRead && self.scope.is_outside(&report.path) {
            self.read_symbols();
        }
        let mut examined = self.validate_in_scope(&report);
        if let ReportValidation::Finding { finding, .. } = &examined
            && let Some(problem) = self.find_parse_problem(finding)
        {
            // The texts of the report keep the code that does not become the replacement.
            (report.replacement, report.replaced) = (None, None);
            examined = self.validate_in_scope(&report);
            if let ReportValidation::Finding { notes, .. } = &mut examined {
                notes.push(problem);
            }
        }
        if let ReportValidation::Finding { finding, .. } = &mut examined {
            finding.symbol = self.find_symbol(finding);
        }
        examined
    }

    /// Returns the name of the function around a finding; see [`symbol_around`].
    fn find_symbol(&mut self, finding: &Finding) -> Option<String> {
        let path = &finding.repo_relative_path;
        let file = self.file(path)?;
        let functions = file.functions.get_or_init(|| list_functions(path, &file.text));
        symbol_around(functions, finding.line_start, &finding.title).map(str::to_owned)
    }

    /// Returns true if the code of the known finding with this id stands at another place than a report about the same
    /// code.
    pub fn stands_elsewhere(&mut self, id: &FindingId, report: &Finding) -> bool {
        let ground = StandingGround { repo: &self.repo, known: &self.earlier, snapshot: &self.commit };
        self.standing_code.find_place(ground, id, report) == KnownPlace::Elsewhere
    }

    /// Returns the text of a file of the snapshot.
    pub fn text(&mut self, path: &str) -> Option<Rc<str>> {
        self.file(path).map(|file| file.text)
    }

    fn validate_in_scope(&mut self, report: &ReportedProblem) -> ReportValidation {
        let scope = std::mem::take(&mut self.scope);
        let run_id = self.run_id.clone();
        let examined = validate_report(report, &scope, &run_id, |path| self.file(path).map(|file| file.shown));
        self.scope = scope;
        examined
    }

    /// Reads the names of changed symbols. Called for the first report about unchanged code, which must name one of
    /// these symbols.
    fn read_symbols(&mut self) {
        self.symbols = SymbolState::Read;
        let mut symbols = Vec::new();
        for (path, hunks) in self.scope.files().take(MAX_SYMBOL_FILES) {
            let Ok(Some(bytes)) = self.repo.file_at(&self.commit, path) else { continue };
            if bytes.len() > MAX_SYMBOL_FILE_BYTES {
                continue;
            }
            let text = String::from_utf8_lossy(&bytes);
            let chunks = chunk_file(path, &text, Language::detect(path, &bytes));
            let changed = chunks.into_iter().filter(|chunk| hunks.iter().any(|hunk| hunk.overlaps(chunk.lines)));
            symbols.extend(changed.flat_map(|chunk| [chunk.name, chunk.parent]));
        }
        self.scope = std::mem::take(&mut self.scope).with_symbols(symbols);
    }

    /// Returns a message if the file would no longer parse with the suggested code.
    fn find_parse_problem(&mut self, finding: &Finding) -> Option<String> {
        let suggestion = finding.suggestion.as_ref()?;
        let replacement = suggestion.replacement.as_ref()?;
        let path = &finding.repo_relative_path;
        let file = self.file(path)?;
        let after = apply_replacement(&file.text, suggestion.lines.unwrap_or(finding.lines()), replacement);
        let parses = file.syntax.get_or_init(|| SyntaxBaseline::new(path, &file.text)).allows(path, &after);
        (!parses)
            .then(|| format!("{path}:{}: the suggested code would not parse; its words are kept", finding.line_start))
    }

    fn file(&mut self, path: &str) -> Option<SnapshotFile> {
        if let Some(file) = self.files.get(path) {
            return file.clone();
        }
        if self.files.len() >= MAX_CACHED_FILES {
            self.files.clear();
        }
        let file = self.repo.file_at(&self.commit, path).ok().flatten().map(|bytes| load_file(path, &bytes));
        self.files.insert(path.to_owned(), file.clone());
        file
    }
}

/// Returns the words of a finding of an earlier run. If its output cannot be read, only the title is known.
fn load_earlier(store: &Store, known: &VisibleFindings, id: &FindingId) -> Option<ProblemText> {
    let index = known.index(id)?;
    let (row, last) = (known.view().finding(index), known.last_run(index));
    let last_run: Option<RunId> = last.parse().ok();
    let finding = last_run.as_ref().and_then(|run| store.finding_in_run(run, id).ok().flatten());
    // The row has the words of the last report of all.
    let own_title = finding.as_ref().filter(|_| last != row.last_run).map(|finding| finding.title.clone());
    let title = own_title.unwrap_or_else(|| row.title.to_owned());
    let (explanation, suggestion) =
        finding.map(|finding| (finding.explanation, finding.suggestion)).unwrap_or_default();
    let replacement = suggestion.and_then(|suggestion| suggestion.replacement);
    let is_import = |run: RunId| store.run(&run).ok().flatten().is_some_and(|run| run.source == Source::Import);
    let is_imported = last_run.is_some_and(is_import);
    Some(ProblemText { title, explanation, replacement, is_imported })
}

fn load_file(path: &str, bytes: &[u8]) -> SnapshotFile {
    let text = String::from_utf8_lossy(bytes);
    let masked = Mask::On.mask_text(Some(path), &text);
    let mut lines = masked.split('\n');
    let shown = FileText::with_hidden(text.as_bytes(), |line, _| {
        // Masking keeps the line structure of the text.
        let masked = lines.next()?.trim_end_matches('\r');
        let line = String::from_utf8_lossy(line);
        (masked != line.trim_end_matches(['\n', '\r'])).then(|| masked.to_owned())
    });
    SnapshotFile { text: text.as_ref().into(), shown: Rc::new(shown), syntax: Rc::default(), functions: Rc::default() }
}

/// Returns the functions of a file in document order, with masked names; none if the file cannot be parsed.
fn list_functions(path: &str, text: &str) -> Vec<Function> {
    let read = || {
        let language = Language::detect(path, text.as_bytes())?;
        let mut parsers = Parsers::default();
        let source = parsers.parse(path, language, text.as_bytes()).ok()?;
        let mut functions = FileFacts::from_parsed(&source).functions;
        for function in &mut functions {
            function.name = Mask::On.mask_words(&function.name).into_owned();
        }
        Some(functions)
    };
    // A file that makes the analysis panic has no names, as in a review.
    catch_unwind(AssertUnwindSafe(read)).ok().flatten().unwrap_or_default()
}

fn mask_report(report: &ReportedProblem) -> ReportedProblem {
    let clean = |text: &str| Mask::On.mask_words(text).into_owned();
    // A fix would write the marker of a secret into the file.
    let clean_code = |code: &str| Mask::On.mask_key_shapes(code).into_owned();
    let replacement = report.replacement.as_deref().map(clean_code).filter(|code| !has_secret_marker(code));
    ReportedProblem {
        title: clean(&report.title),
        explanation: clean(&report.explanation),
        suggestion: clean(&report.suggestion),
        replaced: report.replaced.filter(|_| replacement.is_some() || report.replacement.is_none()),
        replacement,
        ..report.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ChatResponse, StopReason, Usage};
    use crate::review::extract_reports;

    const PATH: &str = "src/client.py";
    const SECRET: &str = "sk_live_9aT4vQ1xZ8mB3nK7pL2w";

    /// Returns the findings of an answer that the file confirms, and the reasons why the others are rejected.
    fn examined(text: &str) -> (Vec<Finding>, Vec<String>) {
        let code = format!("import net\n\nAPI_KEY = \"{SECRET}\"\n\n\ndef send(body):\n    net.post(API_KEY, body)\n");
        let file = load_file(PATH, code.as_bytes()).shown;
        let answer = ChatResponse {
            text: text.to_owned(),
            calls: Vec::new(),
            opaque: Vec::new(),
            stop: StopReason::Done,
            usage: Usage::default(),
            model: String::new(),
        };
        let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id");
        let scope = ScopeLines::new([(PATH.to_owned(), vec![LineRange::new(3, 7)])]);
        let (mut findings, mut reasons) = (Vec::new(), Vec::new());
        for report in extract_reports(&answer).reports {
            match validate_report(&mask_report(&report), &scope, &run, |_| Some(Rc::clone(&file))) {
                ReportValidation::Finding { finding, .. } => findings.push(*finding),
                ReportValidation::Rejected(rejected) => reasons.push(rejected.reason),
            }
        }
        (findings, reasons)
    }

    #[test]
    fn a_line_has_the_name_of_the_innermost_function_around_it() {
        let text = "class Client:\n    def get(self):\n        return 1\n\n\ndef send(body):\n    def one():\n        pass\n    return body\n\nX = 1\n";
        let functions = list_functions(PATH, text);
        for (line, expected) in [
            (1, None),
            (2, Some("Client.get")),
            (3, Some("Client.get")),
            (6, Some("send")),
            (9, Some("send")),
            (11, None),
        ] {
            assert_eq!(symbol_around(&functions, line, ""), expected, "{line}: {functions:?}");
        }
        assert!(list_functions("notes.txt", text).is_empty());
    }

    #[test]
    fn a_replacement_with_a_secret_or_its_marker_keeps_only_its_words() {
        for code in [format!("net.post('{SECRET}', body)"), "net.post('«secret:stripe_key»', body)".to_owned()] {
            let (findings, _) = examined(&format!(
                "```json\n[{{\"path\": \"{PATH}\", \"line\": 7, \"type\": \"security\", \"title\": \"Key\",
                    \"quoted_code\": \"net.post(API_KEY, body)\", \"suggestion\": \"Use another key.\",
                    \"replacement\": \"{code}\"}}]\n```"
            ));
            let suggestion = findings[0].suggestion.as_ref().expect("the words stay");
            assert_eq!((suggestion.text.as_str(), &suggestion.replacement), ("Use another key.", &None), "{code}");
        }
    }

    #[test]
    fn a_secret_that_a_model_repeats_is_shown_nowhere() {
        let told = format!(
            "```json\n[{{\"path\": \"{PATH}\", \"line\": 3, \"type\": \"security\", \"title\": \"Key {SECRET} in code\",
                \"explanation\": \"{SECRET} can be read by everybody.\", \"quoted_code\": \"API_KEY = '{SECRET}'\",
                \"suggestion\": \"Not {SECRET}.\", \"replacement\": \"API_KEY = env('K', '{SECRET}')\"}},
              {{\"path\": \"{PATH}\", \"line\": 3, \"type\": \"security\", \"title\": \"Key in code\",
                \"quoted_code\": \"API_KEY = \\\"{SECRET}\\\"\"}}]\n```"
        );
        let (findings, reasons) = examined(&told);
        // The first report quotes text that is not in the file: its quotation marks differ.
        assert_eq!(reasons, [format!("the quoted code does not stand in {PATH}")]);
        assert_eq!(findings.len(), 1);
        let told = told.replace(&format!("'{SECRET}'"), &format!("\\\"{SECRET}\\\""));
        let (findings, reasons) = examined(&told);
        assert_eq!((findings.len(), reasons), (2, Vec::new()));
        for finding in &findings {
            assert_eq!(finding.line_start, 3);
            let shown = serde_json::to_string(finding).expect("JSON");
            assert!(shown.contains("API_KEY") && !shown.contains(&SECRET[..12]), "{shown}");
            assert_eq!(finding.suggestion.as_ref().and_then(|suggestion| suggestion.replacement.as_ref()), None);
        }
        assert_eq!(findings[0].finding_id, findings[1].finding_id);
    }
}
