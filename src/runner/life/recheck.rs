//! Asks the built-in reviewer whether a problem is still in changed code.
//!
//! It reports what a change adds, so it says nothing about a problem that the base of the change has already. Whether
//! that is there still has to be asked for.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::domain::{Kind, LineRange, PatternId};
use crate::policy::took_the_place;
use crate::provider::builtin::Builtin;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::lessons::Lessons;
use crate::provider::builtin::limits::Limits;
use crate::provider::builtin::source::Parsers;

/// The smells of the files that were asked about.
pub(super) struct Recheck {
    builtin: Option<Builtin>,
    lessons: Option<Arc<dyn Lessons>>,
    parsers: Parsers,
    files: HashMap<String, Option<Smells>>,
}

/// Of one file.
struct Smells {
    language: Language,
    text: Vec<u8>,
    found: Vec<(Kind, LineRange)>,
}

/// What came of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Here.
    StillThere(LineRange),
    NotThere,
    /// The file cannot be read any more, or nobody looks for the problem any more.
    Unknown,
}

impl Recheck {
    /// With thresholds, as TOML, and what was learned.
    pub fn new(smells: &str, lessons: Option<Arc<dyn Lessons>>) -> Self {
        let limits = Limits::layered([("the settings in force", smells)]);
        let builtin = limits.ok().map(|limits| Builtin::new(limits).taught(lessons.clone()));
        Self { builtin, lessons, parsers: Parsers::default(), files: HashMap::new() }
    }

    /// Whether a problem of `kind`, that was `was` lines long, is still at `lines` of a file, or where its code is now.
    /// `raised_by` says for which pattern it was raised; it is asked when the problem is not seen.
    pub fn ask(
        &mut self,
        (path, text): (&str, impl FnOnce() -> Option<Vec<u8>>),
        kind: Kind,
        (lines, was): (LineRange, u32),
        raised_by: impl FnOnce() -> Option<PatternId>,
    ) -> Answer {
        // Only what was learned raises other kinds; without it there is nobody to ask.
        if !Kind::SMELLS.contains(&kind) && self.lessons.is_none() {
            return Answer::Unknown;
        }
        if !self.files.contains_key(path) {
            let smells = text().and_then(|text| self.smells(path, text));
            self.files.insert(path.to_owned(), smells);
        }
        let Some(Some(Smells { language, text, found })) = self.files.get(path) else { return Answer::Unknown };
        let is_here = |at: &LineRange| took_the_place(lines, was, *at);
        if let Some((_, at)) = found.iter().find(|(found, at)| *found == kind && is_here(at)) {
            return Answer::StillThere(*at);
        }
        let Some(pattern) = raised_by() else { return Answer::NotThere };
        // A pattern that somebody muted or forgot since finds nothing, whatever the code is; and of what it finds in many
        // places not each is raised.
        let source = self.parsers.parse(path, *language, text).ok();
        match source.zip(self.lessons.as_ref()).and_then(|(source, lessons)| lessons.places_of(&pattern, &source)) {
            Some(places) => places.into_iter().find(is_here).map_or(Answer::NotThere, Answer::StillThere),
            None => Answer::Unknown,
        }
    }

    fn smells(&mut self, path: &str, text: Vec<u8>) -> Option<Smells> {
        let (builtin, parsers) = (self.builtin.as_ref()?, &mut self.parsers);
        // As in a review: a file that makes the analysis panic costs this file and nothing else.
        match catch_unwind(AssertUnwindSafe(|| builtin.analyze_file(parsers, path, &text))) {
            Ok(report) => {
                let report = report.ok()?;
                let places = report.smells.iter();
                let found =
                    places.map(|smell| (smell.kind, LineRange::new(smell.line_start, smell.line_end))).collect();
                Some(Smells { language: report.language, text, found })
            }
            Err(_) => {
                self.parsers = Parsers::default();
                None
            }
        }
    }
}
