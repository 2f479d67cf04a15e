//! What decisions ask of files: the form of the code at some lines, and the edits near some lines.
//!
//! Invariants: a file is read and parsed once, however much is asked of it; code is a stranger's: what makes its analysis
//! panic costs what was asked of this file and nothing else.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::domain::{Finding, Kind, LineRange, PatternId, Time};
use crate::knowledge::abstraction::{Places, edits};
use crate::knowledge::cache::{Happened, Observation, Outcome};
use crate::knowledge::form::Form;
use crate::knowledge::pattern::{EditKind, Evidence, Stance};
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::Parsers;

/// An edit this many lines from a finding is still about it. Own: what is missing is put in before or behind.
const NEAR: u32 = 2;

/// What the form of a finding's code teaches.
#[derive(Debug, Clone, Copy)]
pub(super) enum Teaches {
    /// Dismissed then.
    FalseAlarm(Time),
    /// Somebody put right what others like it were dismissed for.
    NoFalseAlarm,
}

/// A finding, as far as it is asked about.
#[derive(Debug)]
struct About<T> {
    lines: LineRange,
    kind: Kind,
    source: String,
    what: T,
}

impl<T> About<T> {
    fn new(finding: &Finding, what: T) -> Self {
        Self { lines: finding.lines(), kind: finding.kind, source: finding.finding_id.to_string(), what }
    }
}

/// The text of a path in a commit; `None` where it is not there, or the commit is gone.
pub(super) type Text<'a> = dyn Fn(&str, &str) -> Option<Vec<u8>> + 'a;

/// What is asked of each file.
type By<File, T> = BTreeMap<File, Vec<About<T>>>;

/// All that is asked, by the files that it is asked of.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// By path and commit.
    forms: By<(String, String), Teaches>,
    /// By path and the commits before and after.
    edits: By<(String, [String; 2]), (Evidence, Time)>,
}

impl Asked {
    /// Asks for the form of a finding's code.
    pub fn form(&mut self, finding: &Finding, commit: &str, teaches: Teaches) {
        let file = (finding.repo_relative_path.clone(), commit.to_owned());
        self.forms.entry(file).or_default().push(About::new(finding, teaches));
    }

    /// Asks which edits of a finding's file between two commits are about it.
    pub fn edits(&mut self, finding: &Finding, commits: [&str; 2], evidence: Evidence, at: Time) {
        let files = (finding.repo_relative_path.clone(), commits.map(str::to_owned));
        self.edits.entry(files).or_default().push(About::new(finding, (evidence, at)));
    }

    /// What it teaches.
    pub fn answers(&self, text: &Text<'_>) -> (Vec<Observation>, Vec<Happened>) {
        let (mut observations, mut outcomes, mut parsers) = (Vec::new(), Vec::new(), Parsers::default());
        for ((path, commit), asked) in &self.forms {
            let read = |parsers: &mut Parsers| {
                let text = text(commit, path)?;
                let language = Language::detect(path, &text)?;
                let source = parsers.parse(path, language, &text).ok()?;
                let places = Places::of(&source);
                let forms = asked.iter().filter_map(|about| Some((about, places.form(about.lines)?)));
                Some((language, forms.collect::<Vec<_>>()))
            };
            let Some((language, forms)) = guarded(path, &mut parsers, read) else { continue };
            for (about, form) in forms {
                match about.what {
                    Teaches::FalseAlarm(at) => observations.push(about.false_alarm(language, form, at)),
                    Teaches::NoFalseAlarm => outcomes.push(about.no_false_alarm(language, &form)),
                }
            }
        }
        for ((path, [before, after]), asked) in &self.edits {
            let read = |parsers: &mut Parsers| {
                let (before, after) = (text(before, path)?, text(after, path)?);
                let language = Language::detect(path, &before)?;
                Some((language, edits(parsers, language, &before, &after)))
            };
            let Some((language, edits)) = guarded(path, &mut parsers, read) else { continue };
            for about in asked {
                let LineRange { start, end } = about.lines;
                let near = LineRange::new(start.saturating_sub(NEAR).max(1), end.saturating_add(NEAR));
                for edit in edits.iter().filter(|edit| edit.lines.overlaps(near)) {
                    let (evidence, at) = about.what;
                    observations.push(Observation {
                        language,
                        stance: Stance::Mistake,
                        broken: edit.broken.clone(),
                        fixed: edit.fixed.clone(),
                        edit: edit.edit,
                        kind: about.kind,
                        evidence,
                        source: about.source.clone(),
                        at,
                    });
                }
            }
        }
        (observations, outcomes)
    }
}

impl About<Teaches> {
    fn false_alarm(&self, language: Language, broken: Form, at: Time) -> Observation {
        Observation {
            language,
            stance: Stance::FalseAlarm,
            broken,
            fixed: Form::default(),
            edit: EditKind::Other,
            kind: self.kind,
            evidence: Evidence::Dismissed,
            source: self.source.clone(),
            at,
        }
    }

    fn no_false_alarm(&self, language: Language, form: &Form) -> Happened {
        Happened {
            language,
            pattern: PatternId::of_false_alarm(language.name(), &form.to_string(), self.kind),
            outcome: Outcome::Failure,
            source: self.source.clone(),
        }
    }
}

fn guarded<T>(path: &str, parsers: &mut Parsers, read: impl FnOnce(&mut Parsers) -> Option<T>) -> Option<T> {
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
        let mut asked = Asked::default();
        let at = Time::UNIX_EPOCH;
        for n in 0..40 {
            let about = finding(n, 2);
            asked.form(&about, "old", if n == 0 { Teaches::NoFalseAlarm } else { Teaches::FalseAlarm(at) });
            asked.edits(&about, ["old", "new"], Evidence::Applied, at);
        }
        let (observations, outcomes) = asked.answers(&text);
        assert_eq!(*read.borrow(), ["old a.py", "old a.py", "new a.py"]);
        let of = |stance| observations.iter().filter(|one| one.stance == stance).collect::<Vec<_>>();
        assert_eq!((of(Stance::FalseAlarm).len(), outcomes.len()), (39, 1));
        assert_eq!(of(Stance::FalseAlarm)[0].broken.to_string(), "VARIABLE = NUMBER");
        let sources: std::collections::BTreeSet<&str> =
            of(Stance::Mistake).iter().map(|one| one.source.as_str()).collect();
        assert_eq!(sources.len(), 40, "each finding teaches the edit near it");
        assert!(of(Stance::Mistake).iter().any(|one| one.fixed.to_string() == "VARIABLE is None"));
    }

    #[test]
    fn only_edits_near_a_finding_are_about_it() {
        let text = |commit: &str, _: &str| {
            let (lines, last) = ("\n    g()".repeat(9), if commit == "old" { "==" } else { "is" });
            Some(format!("def a(x):{lines}\n    return x {last} None\n").into_bytes())
        };
        for (line, expected) in [(2, false), (8, false), (9, true), (11, true)] {
            let mut asked = Asked::default();
            asked.edits(&finding(1, line), ["old", "new"], Evidence::Applied, Time::UNIX_EPOCH);
            assert_eq!(!asked.answers(&text).0.is_empty(), expected, "line {line}");
        }
    }
}
