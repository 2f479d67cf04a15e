//! Current findings of one repository, and their places in texts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use gen_lsp_types::Range;

use super::document::{ColumnUnit, DocumentText};
use super::text_match::{ReviewedText, TextMatch};
use crate::domain::quoted_code::CodeLines;
use crate::domain::{Finding, FindingId, FindingStatus, LineRange, Priority, is_repository_path};
use crate::report::{ExportedFinding, load_findings};
use crate::runner::Services;
use crate::store::{FindingRow, StoreError, StoreView, TailStopper};

/// Maximum number of findings that are shown, the most urgent ones first. Own choice: editors become slow with more.
const MAX_SHOWN_FINDINGS: usize = 2_000;
/// Maximum number of lines that are marked as a whole; as many as a finding quotes.
const MAX_MARKED_LINES: u32 = Finding::MAX_QUOTE_LINES as u32;

/// Finding that nobody has decided about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentFinding {
    /// Finding with masked and harmless texts.
    pub exported: Arc<ExportedFinding>,
    /// Row from which it was loaded.
    row: RowKey,
}

/// State of a row that decides whether a finding must be loaded again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RowKey {
    last_run: String,
    path: String,
    lines: LineRange,
    is_open: bool,
    /// Commit with the code at these lines; empty if unknown.
    base: String,
}

/// Finding at its place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedFinding {
    /// Finding with masked and harmless texts.
    pub exported: Arc<ExportedFinding>,
    /// Lines in the text.
    pub lines: LineRange,
    /// Range that editors mark.
    pub range: Range,
}

impl PlacedFinding {
    /// Places a finding at lines of a text. Of more than [`MAX_MARKED_LINES`] lines, the first one is marked: nobody can
    /// read a function of 200 lines that is underlined.
    pub fn new(exported: Arc<ExportedFinding>, lines: LineRange, text: &DocumentText, unit: ColumnUnit) -> Self {
        let lines = text.clamp(lines);
        let marked = if lines.count() > MAX_MARKED_LINES { LineRange::new(lines.start, lines.start) } else { lines };
        Self { exported, lines, range: text.range_of(marked, unit) }
    }
}

/// Text in which findings are located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextVersion {
    /// Text of an open document: the number of its changes.
    Open(u64),
    /// File on disk: its time of change and its size in bytes.
    Disk(Option<SystemTime>, u64),
}

/// Findings located in one version of a file.
struct LocatedFile {
    version: TextVersion,
    findings: Vec<CurrentFinding>,
    placed: Arc<Vec<PlacedFinding>>,
}

/// Repository with its findings.
pub struct ReviewedRepository {
    pub services: Services,
    /// Root of the worktree, as the system spells it.
    pub root: PathBuf,
    /// Root as the client spells it.
    pub client_root: PathBuf,
    /// Ends the thread that watches the store.
    pub watch: TailStopper,
    least: Option<Priority>,
    view: Option<Arc<StoreView>>,
    known: HashMap<FindingId, CurrentFinding>,
    by_path: BTreeMap<String, Vec<FindingId>>,
    reviewed: HashMap<(String, String), Option<Arc<ReviewedText>>>,
    located: HashMap<String, LocatedFile>,
    unit: ColumnUnit,
}

impl Drop for ReviewedRepository {
    fn drop(&mut self) {
        self.watch.stop();
    }
}

impl ReviewedRepository {
    /// Creates a repository without findings; [`ReviewedRepository::refresh`] reads them.
    pub fn new(
        services: Services,
        client_root: PathBuf,
        watch: TailStopper,
        (least, unit): (Option<Priority>, ColumnUnit),
    ) -> Self {
        Self {
            root: services.repo.root(),
            services,
            client_root,
            watch,
            least,
            view: None,
            known: HashMap::new(),
            by_path: BTreeMap::new(),
            reviewed: HashMap::new(),
            located: HashMap::new(),
            unit,
        }
    }

    /// Reads the findings of this worktree that nobody has decided about.
    ///
    /// # Errors
    ///
    /// If the store cannot be read. The findings stay as they were.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        let store = &self.services.store;
        let view = match &self.view {
            Some(view) => store.refresh_view(view)?,
            None => store.view()?,
        };
        let worktree = self.root.to_string_lossy().into_owned();
        let mut chosen: Vec<usize> =
            (0..view.finding_count()).filter(|&index| self.is_shown(&view, index, &worktree)).collect();
        let order = |&index: &usize| {
            let row = view.finding(index);
            (row.priority, row.path.to_owned(), row.line_start)
        };
        if chosen.len() > MAX_SHOWN_FINDINGS {
            chosen.sort_by_cached_key(order);
            tracing::info!(findings = chosen.len(), shown = MAX_SHOWN_FINDINGS, "not all findings are shown");
            chosen.truncate(MAX_SHOWN_FINDINGS);
        }
        let rows: Vec<(usize, RowKey)> = chosen.into_iter().map(|index| (index, RowKey::new(&view, index))).collect();
        let is_known = |index: usize, row: &RowKey| {
            let id = view.finding(index).id.parse::<FindingId>().ok();
            id.is_some_and(|id| self.known.get(&id).is_some_and(|known| known.row == *row))
        };
        let missing: Vec<usize> =
            rows.iter().filter(|(index, row)| !is_known(*index, row)).map(|(index, _)| *index).collect();
        let mut loaded: HashMap<FindingId, Arc<ExportedFinding>> = load_findings(store, &view, &missing)?
            .iter()
            .map(|finding| (finding.finding_id.clone(), Arc::new(ExportedFinding::new(finding, None))))
            .collect();
        let mut before = std::mem::take(&mut self.known);
        self.by_path.clear();
        for (index, row) in rows {
            let Ok(id) = view.finding(index).id.parse::<FindingId>() else { continue };
            let known = match (loaded.remove(&id), before.remove(&id)) {
                (Some(exported), _) => CurrentFinding { exported, row },
                (None, Some(known)) if known.row == row => known,
                (None, _) => continue,
            };
            self.by_path.entry(known.row.path.clone()).or_default().push(id.clone());
            self.known.insert(id, known);
        }
        let Self { reviewed, located, known, by_path, .. } = self;
        reviewed
            .retain(|(base, path), _| known.values().any(|known| known.row.base == *base && known.row.path == *path));
        located.retain(|path, _| by_path.contains_key(path));
        self.view = Some(view);
        Ok(())
    }

    fn is_shown(&self, view: &StoreView, index: usize, worktree: &str) -> bool {
        let row: FindingRow<'_> = view.finding(index);
        row.status.is_undecided()
            && self.least.is_none_or(|least| row.priority <= least)
            && view.last_reporting_run(index).is_some_and(|run| view.run(run).worktree == worktree)
            // A finding of others could name any path, and the editor would open it.
            && is_repository_path(row.path)
    }

    /// Returns the paths with findings, relative to the root.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.by_path.keys().map(String::as_str)
    }

    /// Returns true if a file has findings that nobody has decided about.
    pub fn has_findings(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// Returns a finding that nobody has decided about.
    pub fn finding(&self, id: &FindingId) -> Option<&ExportedFinding> {
        self.known.get(id).map(|known| &*known.exported)
    }

    /// Returns the path of a file below the root, as findings name it; `None` if it is outside.
    pub fn relative_path(&self, file: &Path) -> Option<String> {
        let real = file.parent().and_then(|folder| folder.canonicalize().ok()).zip(file.file_name());
        let real = real.map_or_else(|| file.to_owned(), |(folder, name)| folder.join(name));
        let inside = real.strip_prefix(&self.root).or_else(|_| file.strip_prefix(&self.client_root)).ok()?;
        let parts: Option<Vec<&str>> = inside.components().map(|part| part.as_os_str().to_str()).collect();
        parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join("/"))
    }

    /// Returns the place of a file as the client spells it.
    pub fn client_path(&self, path: &str) -> PathBuf {
        self.client_root.join(path)
    }

    /// Locates the findings of a file on disk. Reads the file only if it has changed.
    pub fn locate_on_disk(&mut self, path: &str) -> Arc<Vec<PlacedFinding>> {
        let seen = std::fs::symlink_metadata(self.root.join(path)).ok().filter(std::fs::Metadata::is_file);
        let Some(seen) = seen else { return Arc::default() };
        let version = TextVersion::Disk(seen.modified().ok(), seen.len());
        let findings = self.findings_of(path);
        if let Some(placed) = self.find_located(path, version, &findings) {
            return placed;
        }
        let Some(text) = self.read_file(path) else { return Arc::default() };
        let placed = self.locate_in(path, version, findings, &text);
        // Another version of the file is seldom compared soon.
        self.reviewed.retain(|(_, reviewed), _| reviewed != path);
        placed
    }

    /// Locates the findings of a file in an open document, ordered by line. Findings whose code does not stand there are
    /// left out.
    pub fn locate(&mut self, path: &str, version: TextVersion, text: &DocumentText) -> Arc<Vec<PlacedFinding>> {
        let findings = self.findings_of(path);
        match self.find_located(path, version, &findings) {
            Some(placed) => placed,
            None => self.locate_in(path, version, findings, text),
        }
    }

    /// Reads a file of the worktree. Follows no link and leaves no worktree, whatever a record names.
    pub fn read_file(&self, path: &str) -> Option<DocumentText> {
        let file = self.services.repo.worktree_files().and_then(|files| files.read(path)).ok().flatten()?;
        Some(DocumentText::new(String::from_utf8_lossy(&file.content).into_owned()))
    }

    fn findings_of(&self, path: &str) -> Vec<CurrentFinding> {
        let ids = self.by_path.get(path).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.known.get(id)).cloned().collect()
    }

    fn find_located(
        &self,
        path: &str,
        version: TextVersion,
        findings: &[CurrentFinding],
    ) -> Option<Arc<Vec<PlacedFinding>>> {
        let located = self.located.get(path)?;
        (located.version == version && located.findings == findings).then(|| Arc::clone(&located.placed))
    }

    fn locate_in(
        &mut self,
        path: &str,
        version: TextVersion,
        findings: Vec<CurrentFinding>,
        text: &DocumentText,
    ) -> Arc<Vec<PlacedFinding>> {
        let bases: BTreeSet<&str> = findings.iter().map(|finding| finding.row.base.as_str()).collect();
        let mut placed = Vec::new();
        for base in bases {
            let reviewed = self.reviewed_text(base, path);
            let compared = reviewed.as_deref().and_then(|old| TextMatch::new(&self.services.repo, old, text.text()));
            for finding in findings.iter().filter(|finding| finding.row.base == base) {
                let quoted = &finding.exported.finding.quoted_code;
                let lines = match &compared {
                    Some(compared) => compared.locate(finding.row.lines),
                    None => CodeLines::new(text.text()).contain(quoted).then_some(finding.row.lines),
                };
                let exported = &finding.exported;
                placed.extend(lines.map(|lines| PlacedFinding::new(Arc::clone(exported), lines, text, self.unit)));
            }
        }
        placed.sort_by_key(|placed| {
            let finding = &placed.exported.finding;
            (placed.lines.start, placed.lines.end, finding.priority, finding.finding_id.clone())
        });
        let placed = Arc::new(placed);
        let located = LocatedFile { version, findings, placed: Arc::clone(&placed) };
        self.located.insert(path.to_owned(), located);
        placed
    }

    /// Locates the lines that a finding's fix replaces; `None` if there is no exact fix, or if the lines have changed.
    pub fn locate_fix(&mut self, id: &FindingId, text: &DocumentText) -> Option<LineRange> {
        let CurrentFinding { exported, row } = self.known.get(id)?.clone();
        let suggestion = exported.finding.suggestion.as_ref().filter(|one| one.replacement.is_some())?;
        let lines = suggestion.lines.unwrap_or(row.lines);
        let reviewed = self.reviewed_text(&row.base, &row.path)?;
        TextMatch::new(&self.services.repo, &reviewed, text.text())?.locate_exactly(lines)
    }

    fn reviewed_text(&mut self, base: &str, path: &str) -> Option<Arc<ReviewedText>> {
        let repo = &self.services.repo;
        let read = |(base, path): &(String, String)| {
            // Without a commit, nothing can be asked.
            let content = if base.is_empty() { None } else { repo.regular_file_at(base, path).ok().flatten() };
            ReviewedText::new(&content?).map(Arc::new)
        };
        self.reviewed.entry((base.to_owned(), path.to_owned())).or_insert_with_key(read).clone()
    }
}

impl RowKey {
    fn new(view: &StoreView, index: usize) -> Self {
        let row = view.finding(index);
        let base = view.locating_run(index).map(|run| view.run(run).snapshot_commit.to_owned());
        Self {
            last_run: row.last_run.to_owned(),
            path: row.path.to_owned(),
            lines: row.lines(),
            is_open: row.status == FindingStatus::Open,
            base: base.unwrap_or_default(),
        }
    }
}
