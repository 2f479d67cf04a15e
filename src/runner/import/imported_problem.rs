//! Converts a problem of another tool into a finding of the snapshot.

use std::collections::{HashMap, HashSet};

use super::OWN_REVIEWER;
use super::duplicates::KnownFindings;
use crate::domain::text::{sanitize_line, sanitize_lines};
use crate::domain::{
    Confidence, Finding, FindingId, Kind, LineRange, RejectedReport, ReportedProblem, RunId, RunRecord,
};
use crate::masking::Mask;
use crate::review::ReportValidation;
use crate::runner::worker::report_validation::ReportValidator;
use crate::runner::{RunnerError, Services};
use crate::tool_reports::path::PathRefusal;
use crate::tool_reports::{ToolFix, ToolProblem};

/// Columns of a tab in texts.
const TAB_COLUMNS: usize = 4;
/// Last line of a file that is not read yet.
const ANY_LINE: u32 = u32::MAX;

/// Maximum sum of the sizes of the texts, in bytes, in which the proposed changes of a report are tried. A file counts once
/// for each change, because it is parsed for each of them: some megabytes in a second.
const MAX_TRIED_BYTES: usize = 16 << 20;

/// Converter of the problems of one report.
pub(super) struct ProblemImporter<'a> {
    services: &'a Services,
    run: RunId,
    tool: &'a str,
    files: &'a HashSet<String>,
    validator: ReportValidator,
    /// Beginning of the title of each id that is given out.
    taken: HashMap<FindingId, String>,
    /// Rest of [`MAX_TRIED_BYTES`].
    bytes_to_try: usize,
    /// Number of proposed changes that were not tried, so that only their words are kept.
    pub untried_fixes: usize,
}

impl<'a> ProblemImporter<'a> {
    pub fn new(
        services: &'a Services,
        record: &RunRecord,
        tool: &'a str,
        files: &'a HashSet<String>,
    ) -> Result<Self, RunnerError> {
        let whole = files.iter().map(|path| (path.clone(), vec![LineRange::new(1, ANY_LINE)]));
        let validator = ReportValidator::for_files(services, record, whole)?;
        Ok(Self {
            services,
            run: record.run_id.clone(),
            tool,
            files,
            validator,
            taken: HashMap::new(),
            bytes_to_try: MAX_TRIED_BYTES,
            untried_fixes: 0,
        })
    }

    /// Returns the finding for a problem in the file `resolved`.
    ///
    /// # Errors
    ///
    /// Returns the problem with the reason why it is refused.
    pub fn import_problem(
        &mut self,
        problem: &ToolProblem,
        resolved: Result<&str, PathRefusal>,
        known: &KnownFindings<'_>,
    ) -> Result<Finding, Box<RejectedReport>> {
        let mut report = self.to_report(problem);
        let path = match resolved {
            Ok(path) if self.files.contains(path) => path.to_owned(),
            Ok(path) => {
                let reason = format!("{} is no file of the repository now", sanitize_line(&mask(path)));
                return Err(Box::new(RejectedReport { report, reason }));
            }
            Err(refusal) => return Err(Box::new(refuse(report, refusal))),
        };
        report.path = path;
        if let Some((fix, text)) = problem.fix.as_ref().zip(self.validator.text(&report.path)) {
            self.propose_fix(&mut report, fix, &text);
        }
        match self.validator.examine(&report) {
            ReportValidation::Finding { mut finding, .. } => {
                finding.confidence = if problem.lines.is_some() { problem.confidence } else { Confidence::Low };
                self.complete(&mut finding, problem, known);
                Ok(*finding)
            }
            ReportValidation::Rejected(rejected) => Err(Box::new(rejected)),
        }
    }

    /// Adds the proposed change, while there is time to try it; else only its words.
    fn propose_fix(&mut self, report: &mut ReportedProblem, fix: &ToolFix, text: &str) {
        let Some(left) = self.bytes_to_try.checked_sub(text.len()) else {
            self.untried_fixes += 1;
            report.suggestion = sanitize_line(&fix.description).into_owned();
            return;
        };
        self.bytes_to_try = left;
        if let Some((lines, new)) = fix.to_lines(text) {
            (report.replacement, report.replaced) = (Some(new), Some(lines));
            report.suggestion = sanitize_line(&fix.description).into_owned();
        }
    }

    fn to_report(&self, problem: &ToolProblem) -> ReportedProblem {
        let lines = problem.lines;
        ReportedProblem {
            path: mask(&problem.path.path),
            line_start: lines.map_or(0, |lines| lines.start),
            line_end: lines.map_or(0, |lines| lines.end),
            kind: problem.kind,
            severity: Some(problem.severity),
            priority: None,
            confidence: Some(problem.confidence),
            title: sanitize_line(&mask(&self.title_of(problem))).into_owned(),
            explanation: match self.tool {
                // The words of the user are the title.
                OWN_REVIEWER => sanitize_lines(&mask(&problem.help), TAB_COLUMNS),
                tool => sanitize_lines(&mask(&problem.explanation(tool)), TAB_COLUMNS),
            },
            quoted_code: String::new(),
            suggestion: String::new(),
            replacement: None,
            replaced: None,
        }
    }

    /// Returns the title of a problem: the words of the user, or those of the tool with its name.
    fn title_of(&self, problem: &ToolProblem) -> String {
        match self.tool {
            OWN_REVIEWER => problem.message.clone(),
            tool => problem.title(tool),
        }
    }

    /// Returns the beginning of the title by which a problem is known again. Each text of the user is a problem of its own.
    fn title_prefix_of(&self, problem: &ToolProblem, finding: &Finding) -> String {
        match self.tool {
            OWN_REVIEWER => finding.title.clone(),
            tool => problem.title_prefix(tool),
        }
    }

    /// Sets id, runs and time. Several rules may report the same code under one kind: each has an id of its own, which the
    /// rule keeps in later imports.
    fn complete(&mut self, finding: &mut Finding, problem: &ToolProblem, known: &KnownFindings<'_>) {
        let prefix = self.title_prefix_of(problem, finding);
        let base = finding.finding_id.clone();
        let mut ids: Vec<FindingId> = (0..FindingId::MAX_VARIANTS).map(|n| base.variant(n)).collect();
        ids.retain(|id| !self.validator.stands_elsewhere(id, finding));
        let variants = || ids.iter().cloned();
        let is_own = |id: &FindingId| match self.taken.get(id) {
            Some(taken) => *taken == prefix,
            None => known.get(id).is_some_and(|(title, own)| match self.tool {
                OWN_REVIEWER => own && title == prefix,
                _ => own && title.starts_with(&prefix),
            }),
        };
        let is_free = |id: &FindingId| {
            !self.taken.contains_key(id) && known.get(id).is_none_or(|(_, own)| !own && finding.kind.is_smell())
        };
        let id = variants().find(is_own).or_else(|| variants().find(is_free)).unwrap_or_else(|| base.clone());
        self.taken.insert(id.clone(), prefix);
        finding.first_run_id = known_first_run(known, &id).unwrap_or_else(|| self.run.clone());
        finding.last_run_id = self.run.clone();
        finding.detail_ref = format!("outputs/{}.json#{id}", self.run);
        finding.reported_at = self.services.ambient.now();
        finding.finding_id = id;
    }
}

fn known_first_run(known: &KnownFindings<'_>, id: &FindingId) -> Option<RunId> {
    known.first_run(id)?.parse().ok()
}

fn mask(text: &str) -> String {
    Mask::On.mask_words(text).into_owned()
}

/// Refuses a problem because of its path, which the reason names.
fn refuse(report: ReportedProblem, refusal: PathRefusal) -> RejectedReport {
    let reason = format!("{}: {refusal}", sanitize_line(&report.path));
    RejectedReport { report, reason }
}

/// Refuses a file that a report names without problems.
pub(super) fn refuse_file(path: &str, refusal: PathRefusal) -> RejectedReport {
    let report = ReportedProblem {
        path: mask(path),
        line_start: 0,
        line_end: 0,
        kind: Kind::Correctness,
        severity: None,
        priority: None,
        confidence: None,
        title: "a file that the tool has checked".to_owned(),
        explanation: String::new(),
        quoted_code: String::new(),
        suggestion: String::new(),
        replacement: None,
        replaced: None,
    };
    refuse(report, refusal)
}
