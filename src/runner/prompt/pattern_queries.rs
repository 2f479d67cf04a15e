//! Answers the questions that user decisions raise about files: the form of the code at some lines, and the edits near
//! some lines.
//!
//! - Each file is read and parsed once, for all of its queries.
//! - Code is untrusted: if its analysis panics, only the queries about that file are lost.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::domain::{Finding, Kind, LineRange, PatternId, Time};
use crate::knowledge::abstraction::{LineForms, extract_edits};
use crate::knowledge::cache::{PatternObservation, PatternOutcome, PatternOutcomeKind};
use crate::knowledge::form::Form;
use crate::knowledge::pattern::{EditKind, PatternEvidence, PatternStance};
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Maximum distance in lines between a finding and an edit that is about the finding. Not from the literature: missing
/// code is inserted before or behind the finding.
const MAX_EDIT_DISTANCE: u32 = 2;

/// The lesson of a finding's form.
#[derive(Debug, Clone, Copy)]
pub(in crate::runner) enum FormLesson {
    /// The finding was dismissed at this time.
    FalseAlarm(Time),
    /// Somebody fixed a finding like those that were dismissed as false alarms.
    NoFalseAlarm,
}

/// The lesson of the edits near a finding.
#[derive(Debug, Clone)]
pub(in crate::runner) enum EditLesson {
    /// The edits fixed the finding.
    Fixed { evidence: PatternEvidence, at: Time },
    /// A fix with the edits was dropped or undone; `fix` is its id.
    SetBack { fix: String },
}

/// A query about one finding.
#[derive(Debug)]
struct FindingQuery<T> {
    lines: LineRange,
    kind: Kind,
    source: String,
    what: T,
}

impl<T> FindingQuery<T> {
    fn new(finding: &Finding, what: T) -> Self {
        Self { lines: finding.lines(), kind: finding.kind, source: finding.finding_id.to_string(), what }
    }
}

/// Returns the text of a path in a commit; `None` if the file or the commit does not exist.
pub(in crate::runner) type CommitFileLookup<'a> = dyn Fn(&str, &str) -> Option<Vec<u8>> + 'a;

/// The queries of each file.
type QueriesByFile<File, T> = BTreeMap<File, Vec<FindingQuery<T>>>;

/// All queries, grouped by file.
#[derive(Debug, Default)]
pub(in crate::runner) struct PatternQueries {
    /// By path and commit.
    forms: QueriesByFile<(String, String), FormLesson>,
    /// By path and the commits before and after.
    edits: QueriesByFile<(String, [String; 2]), EditLesson>,
}

impl PatternQueries {
    /// Adds a query for the form of a finding's code.
    pub fn query_form(&mut self, finding: &Finding, commit: &str, teaches: FormLesson) {
        let file = (finding.repo_relative_path.clone(), commit.to_owned());
        self.forms.entry(file).or_default().push(FindingQuery::new(finding, teaches));
    }

    /// Adds a query for the edits between two commits that are about a finding.
    pub fn query_edits(&mut self, finding: &Finding, commits: [&str; 2], lesson: EditLesson) {
        let files = (finding.repo_relative_path.clone(), commits.map(str::to_owned));
        self.edits.entry(files).or_default().push(FindingQuery::new(finding, lesson));
    }

    /// Runs all queries and returns the observations and the outcomes for known patterns.
    pub fn run_queries(&self, text: &CommitFileLookup<'_>) -> (Vec<PatternObservation>, Vec<PatternOutcome>) {
        let (mut observations, mut outcomes, mut parsers) = (Vec::new(), Vec::new(), Parsers::default());
        for ((path, commit), asked) in &self.forms {
            let read = |parsers: &mut Parsers| {
                let text = text(commit, path)?;
                let language = Language::detect(path, &text)?;
                let source = parsers.parse(path, language, &text).ok()?;
                let places = LineForms::new(&source);
                let forms = asked.iter().filter_map(|about| Some((about, places.form_at(about.lines)?)));
                Some((language, forms.collect::<Vec<_>>()))
            };
            let Some((language, forms)) = catch_panic(path, &mut parsers, read) else { continue };
            for (about, form) in forms {
                match about.what {
                    FormLesson::FalseAlarm(at) => observations.push(about.to_observation(language, form, at)),
                    FormLesson::NoFalseAlarm => outcomes.push(about.to_failure(language, &form)),
                }
            }
        }
        for ((path, [before, after]), asked) in &self.edits {
            let read = |parsers: &mut Parsers| {
                let (before, after) = (text(before, path)?, text(after, path)?);
                let language = Language::detect(path, &before)?;
                Some((language, extract_edits(parsers, language, &before, &after)))
            };
            let Some((language, edits)) = catch_panic(path, &mut parsers, read) else { continue };
            for about in asked {
                let LineRange { start, end } = about.lines;
                let near = LineRange::new(
                    start.saturating_sub(MAX_EDIT_DISTANCE).max(1),
                    end.saturating_add(MAX_EDIT_DISTANCE),
                );
                for edit in edits.iter().filter(|edit| edit.lines.overlaps(near)) {
                    let (broken, fixed) = (edit.broken.clone(), edit.fixed.clone());
                    match &about.what {
                        EditLesson::Fixed { evidence, at } => observations.push(PatternObservation {
                            language,
                            stance: PatternStance::Mistake,
                            broken,
                            fixed,
                            edit: edit.edit,
                            kind: about.kind,
                            evidence: *evidence,
                            source: about.source.clone(),
                            at: *at,
                        }),
                        EditLesson::SetBack { fix } => outcomes.push(PatternOutcome {
                            language,
                            pattern: PatternId::from_forms(language.name(), &broken.to_string(), &fixed.to_string()),
                            outcome: PatternOutcomeKind::Setback,
                            source: fix.clone(),
                        }),
                    }
                }
            }
        }
        (observations, outcomes)
    }
}

impl FindingQuery<FormLesson> {
    fn to_observation(&self, language: Language, broken: Form, at: Time) -> PatternObservation {
        PatternObservation {
            language,
            stance: PatternStance::FalseAlarm,
            broken,
            fixed: Form::default(),
            edit: EditKind::Other,
            kind: self.kind,
            evidence: PatternEvidence::Dismissed,
            source: self.source.clone(),
            at,
        }
    }

    fn to_failure(&self, language: Language, form: &Form) -> PatternOutcome {
        PatternOutcome {
            language,
            pattern: PatternId::from_false_alarm(language.name(), &form.to_string(), self.kind),
            outcome: PatternOutcomeKind::Failure,
            source: self.source.clone(),
        }
    }
}

fn catch_panic<T>(path: &str, parsers: &mut Parsers, read: impl FnOnce(&mut Parsers) -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(|| read(parsers))).unwrap_or_else(|_| {
        tracing::error!(path, "revdeck failed to learn from what was decided about this file");
        *parsers = Parsers::default();
        None
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::json;

    use super::*;

    fn finding(n: u32, line: u32) -> Finding {
        let run = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E";
        let value = json!({
            "finding_id": format!("f_{n:016x}"), "first_run_id": run, "last_run_id": run, "priority": 3,
            "severity": "low", "confidence": "high", "kind": "MAGIC_NUMBERS", "title": "", "explanation": "",
            "repo_relative_path": "a.py", "line_start": line, "line_end": line, "quoted_code": "", "status": "open",
            "detail_ref": "", "reported_at": "2026-11-01T00:00:00Z",
        });
        serde_json::from_value(value).expect("a finding")
    }

    const BEFORE: &str = "def a(x):\n    y = 30\n    z = x == None\n    return y + z\n";
    const AFTER: &str = "def a(x):\n    y = 30\n    z = x is None\n    return y + z\n";

    #[test]
    fn a_file_is_read_once_however_much_is_asked_of_it() {
        let read = RefCell::new(Vec::new());
        let text = |commit: &str, path: &str| {
            read.borrow_mut().push(format!("{commit} {path}"));
            Some(if commit == "old" { BEFORE } else { AFTER }.as_bytes().to_vec())
        };
        let mut asked = PatternQueries::default();
        let at = Time::UNIX_EPOCH;
        for n in 0..40 {
            let about = finding(n, 2);
            asked.query_form(&about, "old", if n == 0 { FormLesson::NoFalseAlarm } else { FormLesson::FalseAlarm(at) });
            asked.query_edits(&about, ["old", "new"], EditLesson::Fixed { evidence: PatternEvidence::Applied, at });
        }
        let (observations, outcomes) = asked.run_queries(&text);
        assert_eq!(*read.borrow(), ["old a.py", "old a.py", "new a.py"]);
        let of = |stance| observations.iter().filter(|one| one.stance == stance).collect::<Vec<_>>();
        assert_eq!((of(PatternStance::FalseAlarm).len(), outcomes.len()), (39, 1));
        assert_eq!(of(PatternStance::FalseAlarm)[0].broken.to_string(), "VARIABLE = NUMBER");
        let sources: std::collections::BTreeSet<&str> =
            of(PatternStance::Mistake).iter().map(|one| one.source.as_str()).collect();
        assert_eq!(sources.len(), 40, "each finding teaches the edit near it");
        assert!(of(PatternStance::Mistake).iter().any(|one| one.fixed.to_string() == "VARIABLE is None"));
    }

    #[test]
    fn only_edits_near_a_finding_are_about_it() {
        let text = |commit: &str, _: &str| {
            let (lines, last) = ("\n    g()".repeat(9), if commit == "old" { "==" } else { "is" });
            Some(format!("def a(x):{lines}\n    return x {last} None\n").into_bytes())
        };
        for (line, expected) in [(2, false), (8, false), (9, true), (11, true)] {
            let mut asked = PatternQueries::default();
            let lesson = EditLesson::Fixed { evidence: PatternEvidence::Applied, at: Time::UNIX_EPOCH };
            asked.query_edits(&finding(1, line), ["old", "new"], lesson);
            let (fixed, none) = asked.run_queries(&text);
            assert_eq!((!fixed.is_empty(), none.len()), (expected, 0), "line {line}");
            // The same edits of a fix that was undone count against their patterns.
            let mut asked = PatternQueries::default();
            asked.query_edits(&finding(1, line), ["old", "new"], EditLesson::SetBack { fix: "fx_1".to_owned() });
            let (none, set_back) = asked.run_queries(&text);
            let id = |one: &PatternObservation| {
                PatternId::from_forms("python", &one.broken.to_string(), &one.fixed.to_string())
            };
            assert_eq!(
                (none.len(), set_back.iter().map(|one| one.pattern.clone()).collect::<Vec<_>>()),
                (0, fixed.iter().map(id).collect())
            );
        }
    }
}
