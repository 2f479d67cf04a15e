//! Tells the filter of outgoing records about the repository: the code that they are about, and the paths.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::domain::FindingId;
use crate::runner::Services;
use crate::store::StoreView;
use crate::team::RepositoryFacts;

/// Maximum size of a file that is searched for secrets, in bytes. Larger ones are data or generated.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Facts from the repository and the store of this machine. Reads the store at the first question.
pub struct LocalFacts<'a> {
    services: &'a Services,
    view: OnceCell<Option<Arc<StoreView>>>,
}

impl<'a> LocalFacts<'a> {
    /// Reads nothing yet.
    pub fn new(services: &'a Services) -> Self {
        Self { services, view: OnceCell::new() }
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
        let index = view.finding_index(finding.as_str())?;
        let commit = view.locating_run(index).map(|run| view.run(run).snapshot_commit.to_owned()).unwrap_or_default();
        Some((commit, view.finding(index).path.to_owned()))
    }

    fn list_files(&self) -> Vec<String> {
        let repo = &self.services.repo;
        let files = repo.tree_files(&repo.head()).unwrap_or_default();
        files.into_iter().map(|file| file.path).collect()
    }
}
