//! Tells a new problem from a known one that has the same code, kind and file, and so the same id.
//!
//! - A known finding whose code still stands at another place is another problem: a report that took its id would take its
//!   place, and the known problem would be lost.
//! - Code that was cut out and put back elsewhere does not stand at its old place, so its finding moves with it.
//! - Code that cannot be read is no evidence.

use std::collections::HashMap;
use std::rc::Rc;

use crate::domain::{Finding, FindingId, LineRange};
use crate::git::Repo;
use crate::policy::anchor::{AnchorEdit, HashedLines, MappedLines, map_lines};
use crate::store::StoreView;

/// Maximum size of a file in which known findings are located, in bytes. Not from the literature: no review reads files of
/// this size.
const MAX_BYTES: usize = 4 << 20;

/// Place of the code of a known finding, as a report about the same code sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownPlace {
    /// No run has reported the finding.
    New,
    /// At the lines of the report.
    Here,
    /// At other lines, unchanged.
    Elsewhere,
    /// Changed, gone, or not known.
    Unknown,
}

/// Two versions of a file and the edits between them.
type Versions = (HashedLines, HashedLines, Vec<AnchorEdit>);

/// The versions of files that were compared, by their blobs.
#[derive(Debug, Default)]
pub struct StandingCode {
    compared: HashMap<(String, String), Option<Rc<Versions>>>,
}

impl StandingCode {
    /// Returns the id for a report whose id comes from its code: that of the known problem at its lines, else of a known
    /// one whose code is no longer at its place, else a free one. `snapshot` is the commit that was reviewed, `view` has
    /// the findings before the review.
    pub fn choose_id(&mut self, repo: &Repo, view: &StoreView, snapshot: &str, finding: &Finding) -> FindingId {
        let mut left_over = None;
        for n in 0..FindingId::MAX_VARIANTS {
            let id = finding.finding_id.variant(n);
            match self.find_place(repo, view, snapshot, (&id, finding)) {
                KnownPlace::New => return left_over.unwrap_or(id),
                KnownPlace::Here => return id,
                KnownPlace::Elsewhere => {}
                KnownPlace::Unknown => left_over = left_over.or(Some(id)),
            }
        }
        left_over.unwrap_or_else(|| finding.finding_id.clone())
    }

    /// Finds the code of the known finding with this id, as a report about the same code sees it.
    pub fn find_place(
        &mut self,
        repo: &Repo,
        view: &StoreView,
        snapshot: &str,
        (id, report): (&FindingId, &Finding),
    ) -> KnownPlace {
        let Some(index) = view.finding_index(id.as_str()) else { return KnownPlace::New };
        let known = view.finding(index);
        if known.path != report.repo_relative_path {
            return KnownPlace::Unknown;
        }
        let Some(run) = view.locating_run(index).map(|run| view.run(run)) else { return KnownPlace::Unknown };
        match self.map(repo, (run.snapshot_commit, snapshot), known.path, known.lines()) {
            Some(lines) if lines.overlaps(report.lines()) => KnownPlace::Here,
            Some(_) => KnownPlace::Elsewhere,
            None => KnownPlace::Unknown,
        }
    }

    /// Maps lines of a file from one commit to another; `None` if they differ there.
    fn map(&mut self, repo: &Repo, commits: (&str, &str), path: &str, lines: LineRange) -> Option<LineRange> {
        let blob = |commit: &str| repo.blob_at(commit, path).ok().flatten();
        let (old, new) = (blob(commits.0)?, blob(commits.1)?);
        if old == new {
            return Some(lines);
        }
        let versions = self.compared.entry((old, new)).or_insert_with_key(|(old, new)| compare(repo, old, new));
        let versions = versions.as_deref()?;
        match map_lines(&versions.0, &versions.1, &versions.2, lines) {
            MappedLines::Unchanged(lines) => Some(lines),
            MappedLines::Changed { .. } | MappedLines::Gone { .. } => None,
        }
    }
}

fn compare(repo: &Repo, old: &str, new: &str) -> Option<Rc<Versions>> {
    let text = |blob: &str| repo.blob(blob).ok().filter(|text| text.len() <= MAX_BYTES);
    let (old, new) = (text(old)?, text(new)?);
    let edits = repo.diff_texts(&old, &new).ok()?.into_iter().map(AnchorEdit::from).collect();
    Some(Rc::new((HashedLines::from_text(&old), HashedLines::from_text(&new), edits)))
}
