//! Problems of a report, sorted by what becomes of them.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::domain::text::{format_count, format_thousands, sanitize_line};
use crate::domain::{Finding, FindingId, RejectedReport};
use crate::masking::Mask;
use crate::tool_reports::path::PathRefusal;

/// Maximum number of other problems with the identity of a finding that its explanation names. Not from the literature:
/// more of them tell a reader nothing.
const MAX_ALSO_LINES: usize = 10;
/// Maximum number of names of a refused path, counted from its end, that are compared with files of the repository.
const MAX_COMPARED_NAMES: usize = 64;
/// Maximum number of files that a note names.
const MAX_NAMED_FILES: usize = 3;

/// Problems of a report, sorted by what becomes of them.
#[derive(Default)]
pub(super) struct SortedProblems {
    /// Findings that the run reports.
    pub findings: Vec<Finding>,
    /// Problems that the tool still sees, but that are not raised: it suppresses them, or they are known from other
    /// reviewers.
    pub unraised: Vec<Finding>,
    /// Problems and files that cannot be taken.
    pub refused: Vec<RejectedReport>,
    /// Number of problems and files whose path leads out of the repository.
    pub outside: usize,
    /// Notes about problems that are known from other reviewers.
    pub duplicates: Vec<String>,
    /// Number of proposed changes of which only the words are kept.
    pub untried_fixes: usize,
    /// Files of the repository that the tool has checked, but whose missing problems may be the refused ones.
    pub doubtful_files: BTreeSet<String>,
    merged: HashMap<FindingId, MergedFinding>,
    doubts: Vec<RefusedPlace>,
}

/// Finding with the titles of all problems that it stands for.
struct MergedFinding {
    /// Index in the findings.
    index: usize,
    titles: HashSet<String>,
}

/// File of a refused problem.
enum RefusedPlace {
    /// File of the repository, if there is one with this path.
    File(String),
    /// Path that is no path of the repository. Its end may be one, if the tool ran elsewhere.
    Elsewhere(String),
}

impl SortedProblems {
    /// Adds a finding. A second problem with the same identity becomes a part of the first one.
    pub fn add_finding(&mut self, finding: Finding) {
        let Some(merged) = self.merged.get_mut(&finding.finding_id) else {
            let titles = HashSet::from([finding.title.clone()]);
            self.merged.insert(finding.finding_id.clone(), MergedFinding { index: self.findings.len(), titles });
            self.findings.push(finding);
            return;
        };
        let Some(known) = self.findings.get_mut(merged.index) else { return };
        known.priority = known.priority.min(finding.priority);
        known.severity = known.severity.max(finding.severity);
        let also = format!("\nAlso: {}", finding.title);
        if merged.titles.insert(finding.title) && merged.titles.len() <= MAX_ALSO_LINES + 1 {
            known.explanation.push_str(&also);
        }
    }

    /// Ends the explanations with the numbers of problems that they do not name. Called once, after the last finding.
    pub fn count_unnamed(&mut self) {
        for merged in self.merged.values() {
            let unnamed = merged.titles.len().saturating_sub(MAX_ALSO_LINES + 1);
            if unnamed > 0
                && let Some(known) = self.findings.get_mut(merged.index)
            {
                known.explanation.push_str(&format!("\nAlso: {} more", format_thousands(unnamed as u64)));
            }
        }
    }

    /// Remembers the file of a refused problem: as the repository names it, or as the report does.
    pub fn doubt(&mut self, resolved: Result<String, PathRefusal>, reported: &str) {
        self.doubts.push(match resolved {
            Ok(path) => RefusedPlace::File(path),
            Err(_) => RefusedPlace::Elsewhere(reported.replace('\\', "/")),
        });
    }

    /// Removes the files of refused problems from the covered files. The tool still reports something there, so that its
    /// silence is no evidence.
    pub fn withdraw_doubtful(&mut self, covered: &mut BTreeSet<String>) {
        let mut withdraw = |path: &str| self.doubtful_files.extend(covered.take(path));
        for place in &self.doubts {
            match place {
                RefusedPlace::File(path) => withdraw(path),
                RefusedPlace::Elsewhere(path) => {
                    let ends = path.rmatch_indices('/').filter_map(|(at, _)| path.get(at + 1..));
                    ends.take(MAX_COMPARED_NAMES).for_each(&mut withdraw);
                }
            }
        }
    }

    /// Returns a note about the files whose silence is no evidence; `None` if there are none.
    pub fn describe_doubt(&self) -> Option<String> {
        let names =
            || self.doubtful_files.iter().map(|path| sanitize_line(&Mask::On.mask_key_shapes(path)).into_owned());
        let files = match self.doubtful_files.len() {
            0 => return None,
            n if n > MAX_NAMED_FILES => format_count(n, "file"),
            _ => names().collect::<Vec<_>>().join(", "),
        };
        Some(format!("nothing is confirmed as fixed in {files}: a problem there was refused"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_refused_problems_are_no_evidence() {
        let mut sorted = SortedProblems::default();
        sorted.doubt(Ok("lib/a.py".to_owned()), "lib/a.py");
        sorted.doubt(Ok("gone.py".to_owned()), "gone.py");
        sorted.doubt(Err(PathRefusal::Outside), "C:\\build\\src\\b.py");
        let mut covered: BTreeSet<String> =
            ["a.py", "lib/a.py", "src/b.py", "src/c.py", "uild/src/b.py"].map(str::to_owned).into();
        sorted.withdraw_doubtful(&mut covered);
        assert_eq!(covered, ["a.py", "src/c.py", "uild/src/b.py"].map(str::to_owned).into());
        assert_eq!(
            sorted.describe_doubt().as_deref(),
            Some("nothing is confirmed as fixed in lib/a.py, src/b.py: a problem there was refused")
        );
        assert_eq!(SortedProblems::default().describe_doubt(), None);
    }
}
