//! Asks the built-in reviewer whether a problem is still in changed code.
//!
//! The reviewer reports only what a change adds. It says nothing about a problem that is already in the base of the
//! change, so this module asks for it directly.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::domain::{Finding, Kind, LineRange};
use crate::policy::is_edited_anchor;
use crate::reviewers::analyzer::Builtin;
use crate::reviewers::analyzer::learned_rules::LearnedRules;
use crate::reviewers::analyzer::limits::Limits;
use crate::store::StoreError;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// The smells of the files that were checked.
pub(super) struct Recheck {
    builtin: Option<Builtin>,
    lessons: Arc<dyn LearnedRules>,
    parsers: Parsers,
    files: HashMap<String, Option<FileSmells>>,
}

/// The smells of one file.
struct FileSmells {
    language: Language,
    text: Vec<u8>,
    found: Vec<(Kind, LineRange)>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecheckResult {
    /// The problem is still there, at these lines.
    StillThere(LineRange),
    NotThere,
    /// The file or the report cannot be read, or no rule looks for the problem any more.
    Unknown,
}

impl Recheck {
    /// Creates the check with thresholds (as TOML) and learned rules.
    pub fn new(smells: &str, lessons: Arc<dyn LearnedRules>) -> Self {
        let limits = Limits::from_layers([("the settings in force", smells)]);
        let builtin = limits.ok().map(|limits| Builtin::new(limits).with_learned_rules(Arc::clone(&lessons)));
        Self { builtin, lessons, parsers: Parsers::default(), files: HashMap::new() }
    }

    /// Checks whether a problem of `kind`, which had `was` lines, is still at `lines` of a file, or at the place to
    /// which its code moved. Calls `reported` for the original finding only if the problem is not seen.
    pub fn check(
        &mut self,
        (path, text): (&str, impl FnOnce() -> Option<Vec<u8>>),
        kind: Kind,
        (lines, was): (LineRange, u32),
        reported: impl FnOnce() -> Result<Option<Finding>, StoreError>,
    ) -> RecheckResult {
        if !self.files.contains_key(path) {
            let smells = text().and_then(|text| self.analyze_file(path, text));
            self.files.insert(path.to_owned(), smells);
        }
        let Some(Some(FileSmells { language, text, found })) = self.files.get(path) else {
            return RecheckResult::Unknown;
        };
        let is_here = |at: &LineRange| is_edited_anchor(lines, was, *at);
        if let Some((_, at)) = found.iter().find(|(found, at)| *found == kind && is_here(at)) {
            return RecheckResult::StillThere(*at);
        }
        let pattern = match reported() {
            Ok(Some(finding)) => finding.pattern,
            Ok(None) if kind.is_smell() => None,
            // Only patterns raise other kinds, and the pattern is unknown now.
            Ok(None) => return RecheckResult::Unknown,
            Err(error) => {
                tracing::warn!(%error, "whether a problem is still there is not known");
                return RecheckResult::Unknown;
            }
        };
        let Some(pattern) = pattern else { return RecheckResult::NotThere };
        // A muted or forgotten pattern finds nothing in any code. A pattern with many matches does not raise all of
        // them, so its matches are checked directly.
        let source = self.parsers.parse(path, *language, text).ok();
        match source.and_then(|source| self.lessons.locate_pattern(&pattern, &source)) {
            Some(places) => places.into_iter().find(is_here).map_or(RecheckResult::NotThere, RecheckResult::StillThere),
            None => RecheckResult::Unknown,
        }
    }

    fn analyze_file(&mut self, path: &str, text: Vec<u8>) -> Option<FileSmells> {
        let (builtin, parsers) = (self.builtin.as_ref()?, &mut self.parsers);
        // If a file makes the analysis panic, only this file is lost, as in a review.
        match catch_unwind(AssertUnwindSafe(|| builtin.analyze_file(parsers, path, &text))) {
            Ok(report) => {
                let report = report.ok()?;
                let places = report.smells.iter();
                let found =
                    places.map(|smell| (smell.kind, LineRange::new(smell.line_start, smell.line_end))).collect();
                Some(FileSmells { language: report.language, text, found })
            }
            Err(_) => {
                self.parsers = Parsers::default();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::PatternId;
    use crate::reviewers::analyzer::learned_rules::{DismissalRule, LearnedMatch};
    use crate::syntax::source::ParsedFile;

    /// Knows one pattern, which matches nothing.
    struct LearnedRulesStub(&'static str);

    impl LearnedRules for LearnedRulesStub {
        fn find_mistakes(&self, _: &ParsedFile<'_>) -> Vec<LearnedMatch> {
            Vec::new()
        }

        fn find_dismissed(&self, _: &ParsedFile<'_>, asked: &[(Kind, LineRange)]) -> Vec<Option<DismissalRule>> {
            vec![None; asked.len()]
        }

        fn locate_pattern(&self, pattern: &PatternId, _: &ParsedFile<'_>) -> Option<Vec<LineRange>> {
            (*pattern == named(self.0)).then(Vec::new)
        }
    }

    fn named(form: &str) -> PatternId {
        PatternId::from_forms("python", form, "")
    }

    fn finding(kind: Kind, pattern: Option<&str>) -> Result<Option<Finding>, StoreError> {
        let run = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E";
        let finding = serde_json::json!({
            "finding_id": "f_0000000000000001", "first_run_id": run, "last_run_id": run, "priority": 3,
            "severity": "low", "confidence": "low", "kind": kind, "title": "", "explanation": "",
            "repo_relative_path": "a.py", "line_start": 1, "line_end": 1, "quoted_code": "", "suggestion": null,
            "pattern": pattern.map(named), "status": "open", "detail_ref": "", "reported_at": "2026-03-04T05:06:07Z",
        });
        Ok(Some(serde_json::from_value(finding).expect("a finding")))
    }

    fn unreadable() -> Result<Option<Finding>, StoreError> {
        Err(StoreError::Io { action: "read", path: "outputs".into(), source: std::io::Error::other("it is damaged") })
    }

    #[rstest]
    #[case::a_smell(Kind::LongMethod, finding(Kind::LongMethod, None), RecheckResult::NotThere)]
    #[case::of_a_pattern(Kind::Correctness, finding(Kind::Correctness, Some("known")), RecheckResult::NotThere)]
    #[case::of_a_pattern_without_use(
        Kind::Correctness,
        finding(Kind::Correctness, Some("muted")),
        RecheckResult::Unknown
    )]
    #[case::a_smell_that_nobody_knows_more_of(Kind::LongMethod, Ok(None), RecheckResult::NotThere)]
    #[case::which_pattern_is_not_known(Kind::Correctness, Ok(None), RecheckResult::Unknown)]
    #[case::unreadable(Kind::Correctness, unreadable(), RecheckResult::Unknown)]
    #[case::unreadable_smell(Kind::LongMethod, unreadable(), RecheckResult::Unknown)]
    fn what_cannot_be_read_is_not_taken_for_gone(
        #[case] kind: Kind,
        #[case] reported: Result<Option<Finding>, StoreError>,
        #[case] expected: RecheckResult,
    ) {
        let mut recheck = Recheck::new("", Arc::new(LearnedRulesStub("known")));
        let file = ("a.py", || Some(b"x = 1\n".to_vec()));
        assert_eq!(recheck.check(file, kind, (LineRange::new(1, 1), 1), || reported), expected);
    }
}
