//! Merges the coverage of a panel's members: what the panel has reviewed is what all of them have reviewed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::journal_state::to_u32;
use crate::domain::{CarriedFile, Coverage, FileCoverage, FindingId, LineRange, OmissionReason, OmittedFile};

/// File as one member has reviewed it.
#[derive(Debug, Default)]
struct MemberFile<'a> {
    /// Hunks that its reviewer saw in this run or in an earlier one.
    hunks: BTreeSet<LineRange>,
    left_out: Option<&'a OmittedFile>,
}

impl MemberFile<'_> {
    /// Returns true if the member leaves the file out although nothing is missing: its reviewer does not read such files.
    fn is_exempt(&self) -> bool {
        self.hunks.is_empty() && self.left_out.is_some_and(|file| !file.is_gap())
    }

    fn gap(&self) -> Option<OmissionReason> {
        self.left_out.filter(|file| file.is_gap()).map(|file| file.reason)
    }
}

/// Merges the coverage of the members that came to their own end.
///
/// - A hunk is reviewed if every member has reviewed it, apart from members whose reviewer leaves the file out, for
///   example because it does not know the language. So the silence of a panel about reviewed code is that of all of
///   them.
/// - A hunk counts as carried over if no member has reviewed it in its own run.
/// - A file that all members leave out is left out, with the reason of the first. A gap of one member is a gap.
///
/// `listed` returns the id under which the panel lists the finding of a member, which is given by its position.
pub fn merge_coverage(members: &[&Coverage], listed: impl Fn(usize, &FindingId) -> FindingId) -> Coverage {
    let files: Vec<HashMap<&str, MemberFile<'_>>> = members.iter().map(|coverage| collect_files(coverage)).collect();
    let paths: BTreeSet<&str> = files.iter().flat_map(|files| files.keys().copied()).collect();
    let own: BTreeMap<(&str, LineRange), Option<&String>> = collect_hunks(members.iter().flat_map(|one| &one.files));
    let early_end = members.iter().flat_map(|one| &one.gaps).map(|gap| gap.reason).find(|gap| gap.is_early_end());
    let early_end = early_end.unwrap_or(OmissionReason::NotReached);
    let none = MemberFile::default();
    let mut carried_in: HashMap<&str, Vec<(usize, &CarriedFile)>> = HashMap::new();
    for (member, coverage) in members.iter().enumerate() {
        for file in &coverage.carried {
            carried_in.entry(&file.file.path).or_default().push((member, file));
        }
    }
    let mut merged = Coverage::default();
    let mut planned: Vec<(&str, usize)> = Vec::new();
    let mut carried: Vec<CarriedFile> = Vec::new();
    for path in paths {
        let of_members: Vec<&MemberFile<'_>> =
            files.iter().map(|files| files.get(path).unwrap_or(&none)).filter(|file| !file.is_exempt()).collect();
        let all: BTreeSet<LineRange> = of_members.iter().flat_map(|file| file.hunks.iter().copied()).collect();
        let reviewed = all.iter().filter(|hunk| of_members.iter().all(|file| file.hunks.contains(hunk)));
        let reviewed: Vec<LineRange> = reviewed.copied().collect();
        let gap = of_members.iter().find_map(|file| file.gap());
        if reviewed.is_empty() || gap.is_some() {
            let omitted = files.iter().filter_map(|files| files.get(path)?.left_out);
            let chosen = omitted.clone().find(|file| file.is_gap()).or_else(|| omitted.clone().next());
            merged.left_out.extend(chosen.cloned());
        }
        if !all.is_empty() {
            planned.push((path, all.len()));
        }
        let (here, before): (Vec<LineRange>, Vec<LineRange>) =
            reviewed.into_iter().partition(|hunk| own.contains_key(&(path, *hunk)));
        if !here.is_empty() {
            let keys: Option<Vec<String>> = here.iter().map(|hunk| own.get(&(path, *hunk))?.cloned()).collect();
            merged.files.push(FileCoverage { path: path.to_owned(), hunks: here, keys: keys.unwrap_or_default() });
        }
        let carried_here = carried_in.get(path).map(Vec::as_slice).unwrap_or_default();
        carried.extend(collect_carried(carried_here, path, &before, &listed));
    }
    let most = |count: fn(&Coverage) -> u32| members.iter().map(|one| count(one)).max().unwrap_or(0);
    merged.files_total = most(|one| one.files_total);
    merged.hunks_total = most(|one| one.hunks_total).max(to_u32(planned.iter().map(|(_, hunks)| hunks).sum()));
    merged.hunks_left_out = members.iter().map(|one| one.hunks_left_out).min().unwrap_or(0);
    merged.lines_covered = most(|one| one.lines_covered);
    merged.files_covered = to_u32(merged.files.len());
    merged.hunks_covered = to_u32(merged.files.iter().map(|file| file.hunks.len()).sum());
    merged.set_carried(&carried);
    merged.set_gaps(planned, early_end);
    merged
}

fn collect_files(coverage: &Coverage) -> HashMap<&str, MemberFile<'_>> {
    let mut files: HashMap<&str, MemberFile<'_>> = HashMap::new();
    for file in coverage.reviewed_files() {
        files.entry(&file.path).or_default().hunks.extend(&file.hunks);
    }
    for file in &coverage.left_out {
        files.entry(&file.path).or_default().left_out = Some(file);
    }
    files
}

/// Returns the hunks with their keys; the key of a hunk is that of the first member that knows it.
fn collect_hunks<'a>(
    files: impl Iterator<Item = &'a FileCoverage>,
) -> BTreeMap<(&'a str, LineRange), Option<&'a String>> {
    let mut hunks = BTreeMap::new();
    for file in files {
        for (index, hunk) in file.hunks.iter().enumerate() {
            let key: &mut Option<&String> = hunks.entry((file.path.as_str(), *hunk)).or_default();
            *key = key.or(file.keys.get(index));
        }
    }
    hunks
}

/// Returns the hunks of a file that only earlier runs reviewed, by the runs that they come from. `files` is what each member
/// has carried over in the file.
fn collect_carried(
    files: &[(usize, &CarriedFile)],
    path: &str,
    hunks: &[LineRange],
    listed: &impl Fn(usize, &FindingId) -> FindingId,
) -> Vec<CarriedFile> {
    let mut left: BTreeSet<LineRange> = hunks.iter().copied().collect();
    let mut found = Vec::new();
    for &(member, carried) in files {
        let taken: Vec<usize> =
            (0..carried.file.hunks.len()).filter(|at| left.remove(&carried.file.hunks[*at])).collect();
        if taken.is_empty() {
            continue;
        }
        let hunks = taken.iter().map(|at| carried.file.hunks[*at]).collect();
        let keys = taken.iter().filter_map(|at| carried.file.keys.get(*at).cloned()).collect();
        let mut findings: Vec<FindingId> = carried.findings.iter().map(|id| listed(member, id)).collect();
        findings.dedup();
        let file = FileCoverage { path: path.to_owned(), hunks, keys };
        found.push(CarriedFile { file, from: carried.from.clone(), findings });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::CoverageGap;

    fn file(path: &str, hunks: &[u32]) -> FileCoverage {
        let hunks: Vec<LineRange> = hunks.iter().map(|line| LineRange::new(*line, *line)).collect();
        let keys = hunks.iter().map(|hunk| format!("{path}:{}", hunk.start)).collect();
        FileCoverage { path: path.into(), hunks, keys }
    }

    fn covered(files: Vec<FileCoverage>) -> Coverage {
        let hunks = to_u32(files.iter().map(|file| file.hunks.len()).sum());
        let count = to_u32(files.len());
        Coverage {
            files_total: count,
            files_covered: count,
            hunks_total: hunks,
            hunks_covered: hunks,
            files,
            ..Coverage::default()
        }
    }

    #[test]
    fn a_hunk_is_reviewed_if_every_member_has_reviewed_it() {
        let whole = covered(vec![file("a", &[1, 20]), file("b", &[5])]);
        let mut part = covered(vec![file("a", &[1])]);
        part.hunks_total = 3;
        part.set_gaps([("a", 2), ("b", 1)], OmissionReason::TurnLimit);
        for members in [[&whole, &part], [&part, &whole]] {
            let merged = merge_coverage(&members, |_, id| id.clone());
            assert_eq!(merged.files, [file("a", &[1])]);
            assert_eq!((merged.hunks_covered, merged.hunks_total, merged.files_covered), (1, 3, 1));
            assert_eq!(merged.gaps, [CoverageGap { reason: OmissionReason::TurnLimit, files: 2, hunks: 2 }]);
            assert!(merged.is_incomplete());
        }
        let merged = merge_coverage(&[&whole, &whole], |_, id| id.clone());
        assert_eq!((merged.files.clone(), merged.is_incomplete()), (whole.files.clone(), false));
    }

    #[test]
    fn a_reviewer_that_does_not_know_a_language_leaves_no_gap() {
        let model = covered(vec![file("a.rs", &[1]), file("b.sql", &[5])]);
        let mut builtin = covered(vec![file("a.rs", &[1])]);
        builtin.left_out.push(OmittedFile::new("b.sql", OmissionReason::UnsupportedLanguage));
        let merged = merge_coverage(&[&builtin, &model], |_, id| id.clone());
        assert_eq!((merged.hunks_covered, merged.is_incomplete(), merged.left_out.len()), (2, false, 0));
        let mut both = builtin.clone();
        both.left_out.push(OmittedFile::new("Cargo.lock", OmissionReason::LockFile));
        let merged = merge_coverage(&[&both, &both], |_, id| id.clone());
        let paths: Vec<&str> = merged.left_out.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["Cargo.lock", "b.sql"], "what nobody reads is left out");
        assert!(!merged.is_incomplete());
    }

    #[test]
    fn hunks_that_no_member_has_reviewed_anew_are_carried_over() {
        let run = |n: u8| format!("ar_01JD3Z8Q6M7S5V2K4T9XWB1C0{n}").parse::<crate::domain::RunId>().expect("an id");
        let id = |n: u8| format!("f_000000000000000{n}").parse::<FindingId>().expect("an id");
        let mut one = covered(vec![file("a", &[9])]);
        one.set_carried(&[CarriedFile { file: file("a", &[1]), from: run(1), findings: vec![id(1), id(2)] }]);
        let mut two = covered(vec![]);
        two.set_carried(&[CarriedFile { file: file("a", &[1, 9]), from: run(2), findings: vec![] }]);
        let merged = merge_coverage(&[&one, &two], |member, _| id(if member == 0 { 7 } else { 8 }));
        assert_eq!(merged.files, [file("a", &[9])]);
        assert_eq!(merged.carried.len(), 1, "each hunk is counted once: {:?}", merged.carried);
        assert_eq!((merged.carried[0].from.clone(), merged.carried[0].findings.clone()), (run(1), vec![id(7)]));
        assert_eq!((merged.hunks_carried, merged.is_incomplete()), (1, false));
    }
}
