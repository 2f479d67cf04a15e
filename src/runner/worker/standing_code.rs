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
use crate::runner::worker::visible_findings::VisibleFindings;

/// Maximum size of a file in which known findings are located, in bytes. Not from the literature: in a larger file, code is
/// no evidence.
const MAX_BYTES: usize = 4 << 20;
/// Maximum number of compared files that are kept; findings come file by file.
const MAX_KEPT_FILES: usize = 64;

/// Place of the code of a known finding, as a report about the same code sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownPlace {
    /// No run that is known has reported the finding.
    New,
    /// At the lines of the report.
    Here,
    /// At other lines or in another file, for the most part unchanged.
    Elsewhere,
    /// Changed, gone, or not known.
    Unknown,
}

/// Two versions of a file and the edits between them.
type Versions = (HashedLines, HashedLines, Vec<AnchorEdit>);

/// The files that were compared.
#[derive(Debug, Default)]
pub struct StandingCode {
    /// By commit and path.
    blobs: HashMap<(String, String), Option<String>>,
    /// By both blobs.
    compared: HashMap<(String, String), Option<Rc<Versions>>>,
}

/// Repository and snapshot of a review, and the findings that it knows.
#[derive(Clone, Copy)]
pub struct StandingGround<'a> {
    pub repo: &'a Repo,
    pub known: &'a VisibleFindings,
    /// Commit of the reviewed snapshot.
    pub snapshot: &'a str,
}

impl StandingCode {
    /// Returns the id for a report whose id comes from its code: that of the known problem at its lines, else of a known
    /// one whose code is no longer at its place, else a free one. `is_foreign` returns true for ids that the report must
    /// not take.
    pub fn choose_id(
        &mut self,
        ground: StandingGround<'_>,
        finding: &Finding,
        is_foreign: impl Fn(&FindingId) -> bool,
    ) -> FindingId {
        let (mut left_over, mut free) = (None, None);
        for n in 0..FindingId::MAX_PLACES {
            // A variant may be missing between others.
            if n >= FindingId::MAX_VARIANTS && (left_over.is_some() || free.is_some()) {
                break;
            }
            let id = finding.finding_id.variant(n);
            match self.find_place(ground, &id, finding) {
                KnownPlace::New if n == 0 => return id,
                KnownPlace::New => free = free.or(Some(id)),
                _ if is_foreign(&id) => {}
                KnownPlace::Here => return id,
                KnownPlace::Elsewhere => {}
                KnownPlace::Unknown => left_over = left_over.or(Some(id)),
            }
        }
        left_over.or(free).unwrap_or_else(|| finding.finding_id.clone())
    }

    /// Finds the code of the known finding with this id, as a report about the same code sees it.
    pub fn find_place(&mut self, ground: StandingGround<'_>, id: &FindingId, report: &Finding) -> KnownPlace {
        let Some(index) = ground.known.index(id) else { return KnownPlace::New };
        let view = ground.known.view();
        let known = view.finding(index);
        let Some(run) = view.locating_run(index).map(|run| view.run(run)) else {
            return KnownPlace::Unknown;
        };
        match self.map(ground, run.snapshot_commit, known.path, known.lines()) {
            // The finding was followed into a renamed file.
            Some(_) if known.path != report.repo_relative_path => KnownPlace::Elsewhere,
            Some(lines) if lines.overlaps(report.lines()) => KnownPlace::Here,
            Some(_) => KnownPlace::Elsewhere,
            None => KnownPlace::Unknown,
        }
    }

    /// Maps lines of a file from another commit to the snapshot; `None` if most of their code is not there any more.
    fn map(&mut self, ground: StandingGround<'_>, from: &str, path: &str, lines: LineRange) -> Option<LineRange> {
        let (old, new) = (self.blob(ground.repo, from, path)?, self.blob(ground.repo, ground.snapshot, path)?);
        if old == new {
            return Some(lines);
        }
        if self.compared.len() >= MAX_KEPT_FILES {
            self.compared.clear();
        }
        let versions = self.compared.entry((old, new)).or_insert_with_key(|(old, new)| compare(ground.repo, old, new));
        let versions = versions.as_deref()?;
        match map_lines(&versions.0, &versions.1, &versions.2, lines) {
            MappedLines::Unchanged(lines) => Some(lines),
            MappedLines::Changed { lines, unchanged_weight, total_weight } => {
                (unchanged_weight * 2 > total_weight).then_some(lines)
            }
            MappedLines::Gone { .. } => None,
        }
    }

    fn blob(&mut self, repo: &Repo, commit: &str, path: &str) -> Option<String> {
        if self.blobs.len() >= 2 * MAX_KEPT_FILES {
            self.blobs.clear();
        }
        let blob = || repo.blob_at(commit, path).ok().flatten();
        self.blobs.entry((commit.to_owned(), path.to_owned())).or_insert_with(blob).clone()
    }
}

fn compare(repo: &Repo, old: &str, new: &str) -> Option<Rc<Versions>> {
    let text = |blob: &str| repo.blob(blob).ok().filter(|text| text.len() <= MAX_BYTES);
    let (old, new) = (text(old)?, text(new)?);
    let edits = repo.diff_texts(&old, &new).ok()?.into_iter().map(AnchorEdit::from).collect();
    Some(Rc::new((HashedLines::from_text(&old), HashedLines::from_text(&new), edits)))
}
