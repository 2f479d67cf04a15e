//! Groups the reports of the selected runs by finding.

use super::{FindingFact, MetricsInput};
use crate::domain::RunFigures;

/// Selected runs, and the findings that they reported.
pub(super) struct ReportedFindings<'a> {
    /// The selected runs, newest first.
    pub runs: Vec<&'a RunFigures>,
    findings: &'a [FindingFact<'a>],
    /// Position in `runs` by the index of the input. `None` for a run that is not selected.
    position_of: Vec<Option<u32>>,
    /// For each finding, the end of its part of `reporting`, which begins at the end of the finding before.
    ends: Vec<u32>,
    /// For each finding, the end of the reports that reviewers made in its part of `reporting`. What revdeck's own search for
    /// secrets found comes behind them.
    said_ends: Vec<u32>,
    /// Positions in `runs` of the runs that reported a finding, one finding after the other.
    reporting: Vec<u32>,
}

impl<'a> ReportedFindings<'a> {
    pub fn select(input: &MetricsInput<'a>, is_selected: impl Fn(&RunFigures) -> bool) -> Self {
        let mut runs = Vec::new();
        let mut position_of = Vec::with_capacity(input.runs.len());
        for run in input.runs {
            let position = is_selected(run).then_some(runs.len() as u32);
            position_of.push(position);
            if position.is_some() {
                runs.push(run);
            }
        }
        let position = |run: u32| position_of.get(run as usize).copied().flatten();
        let select = |reports: &[(u32, u32)]| -> Vec<(u32, u32)> {
            let known = reports.iter().filter(|(_, finding)| (*finding as usize) < input.findings.len());
            known.filter_map(|(run, finding)| Some((position(*run)?, *finding))).collect()
        };
        let (said, scanned) = (select(input.reports), select(input.scanned));
        // A counting sort: the numbers of reports become the ends of their parts.
        let mut ends = vec![0_u32; input.findings.len()];
        said.iter().chain(&scanned).for_each(|(_, finding)| ends[*finding as usize] += 1);
        let mut total = 0;
        let mut next: Vec<u32> = Vec::with_capacity(ends.len());
        for end in &mut ends {
            next.push(total);
            total += *end;
            *end = total;
        }
        let mut reporting = vec![0; total as usize];
        let mut put = |reports: Vec<(u32, u32)>, next: &mut [u32]| {
            for (run, finding) in reports {
                let at = &mut next[finding as usize];
                reporting[*at as usize] = run;
                *at += 1;
            }
        };
        put(said, &mut next);
        let said_ends = next.clone();
        put(scanned, &mut next);
        Self { runs, findings: input.findings, position_of, ends, said_ends, reporting }
    }

    /// Returns the findings that a selected run reported, each with the positions of these runs.
    pub fn iter(&self) -> impl Iterator<Item = (&'a FindingFact<'a>, &[u32])> + Clone {
        self.iter_to(&self.ends)
    }

    /// Returns the findings that the reviewer of a selected run reported, each with the positions of these runs.
    pub fn iter_by_reviewers(&self) -> impl Iterator<Item = (&'a FindingFact<'a>, &[u32])> + Clone {
        self.iter_to(&self.said_ends)
    }

    /// Returns the findings with their reports up to these ends, without those that have none.
    fn iter_to<'s>(&'s self, ends: &'s [u32]) -> impl Iterator<Item = (&'a FindingFact<'a>, &'s [u32])> + Clone {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let parts = begins.zip(ends).map(move |(begin, end)| &self.reporting[begin as usize..*end as usize]);
        self.findings.iter().zip(parts).filter(|(_, reporting)| !reporting.is_empty())
    }

    /// Returns the run with an index of the input, if it is selected.
    pub fn selected(&self, index: u32) -> Option<&'a RunFigures> {
        let position = self.position_of.get(index as usize).copied().flatten()?;
        self.runs.get(position as usize).copied()
    }
}

/// Calls `take` with the row of each run that reported a finding; with each row once.
pub(super) fn for_each_row(row_of: &[Option<usize>], reporting: &[u32], mut take: impl FnMut(usize)) {
    let rows = || reporting.iter().filter_map(|run| row_of[*run as usize]);
    // Most findings have one report.
    if let [_] = reporting {
        return rows().for_each(take);
    }
    let mut distinct: Vec<usize> = rows().collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct.into_iter().for_each(&mut take);
}
