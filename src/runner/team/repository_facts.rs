//! Tells the filter of outgoing records about the repository: the code that they are about, and the paths.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::{FindingId, RunId};
use crate::runner::Services;
use crate::store::StoreView;
use crate::team::RepositoryFacts;

/// Maximum size of a file that is searched for secrets, in bytes. Larger ones are data or generated.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Facts from the repository and the store of this machine. Reads the store at the first question.
pub struct LocalFacts<'a> {
    services: &'a Services,
    view: OnceCell<Option<Arc<StoreView>>>,
    /// Snapshots of runs, by run id.
    snapshots: RefCell<HashMap<String, Option<String>>>,
}

impl<'a> LocalFacts<'a> {
    /// Reads nothing yet.
    pub fn new(services: &'a Services) -> Self {
        Self { services, view: OnceCell::new(), snapshots: RefCell::default() }
    }

    fn snapshot_of(&self, run: &str) -> Option<String> {
        if let Some(known) = self.snapshots.borrow().get(run) {
            return known.clone();
        }
        let id = run.parse::<RunId>().ok();
        let record = id.and_then(|id| self.services.store.run(&id).ok().flatten());
        let snapshot = record.map(|record| record.subject.snapshot_commit);
        self.snapshots.borrow_mut().insert(run.to_owned(), snapshot.clone());
        snapshot
    }
}

impl RepositoryFacts for LocalFacts<'_> {
    fn read_file(&self, commit: &str, path: &str) -> Option<String> {
        let repo = &self.services.repo;
        let read = |commit: &str| repo.regular_file_at(commit, path).ok().flatten();
        let of_commit = if commit.is_empty() { None } else { read(commit) };
        let content = of_commit.or_else(|| read(&repo.head()))?;
        (content.len() <= MAX_FILE_BYTES).then(|| String::from_utf8_lossy(&content).into_owned())
    }

    fn locate_finding(&self, finding: &FindingId) -> Option<(String, String)> {
        let view = self.view.get_or_init(|| self.services.store.view().ok()).as_ref()?;
        let row = view.finding(view.finding_index(finding.as_str())?);
        Some((self.snapshot_of(row.last_run).unwrap_or_default(), row.path.to_owned()))
    }

    fn list_files(&self) -> Vec<String> {
        let repo = &self.services.repo;
        let files = repo.tree_files(&repo.head()).unwrap_or_default();
        files.into_iter().map(|file| file.path).collect()
    }
}
