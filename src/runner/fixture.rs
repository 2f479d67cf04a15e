//! Services over an empty repository and a store, for tests of this room.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{ClockAndIds, Paths, Settings};
use crate::domain::{RunId, RunRecord, RunStatus};
use crate::git::Repo;
use crate::runner::{RepositoryRules, Services};
use crate::store::{RepoInfo, Store};

/// A repository with one empty commit, and the services over it. The clock advances by a second at each look.
pub(in crate::runner) struct RunnerFixture {
    pub folder: tempfile::TempDir,
    pub services: Services,
}

impl RunnerFixture {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("repo");
        std::fs::create_dir_all(&root).expect("a folder");
        let git = |arguments: &[&str]| {
            let done = Command::new("git").current_dir(&root).args(arguments).env("HOME", folder.path()).output();
            assert!(done.expect("git starts").status.success(), "{arguments:?}");
        };
        git(&["init", "-q", "-b", "main"]);
        git(&["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "begin"]);
        let repo = Repo::discover(&root).expect("a repository");
        let info = RepoInfo { version: 1, key: repo.key(), name: repo.name(), common_dir: String::new() };
        let paths = Paths::from_home(&folder.path().join("home"));
        let store = Store::open(&paths.state, info).expect("a store");
        let ambient = ClockAndIds::fixed("2026-03-04T05:06:07Z".parse().expect("a moment"), Duration::from_secs(1));
        let settings = Arc::new(Settings::default());
        let rules = RepositoryRules::fixed(Arc::clone(&settings));
        let services = Services { repo, store, settings, rules, paths, ambient };
        Self { folder, services }
    }

    /// Writes files and commits them.
    pub fn commit_files(&self, files: &[(&str, &[u8])]) -> String {
        let root = self.folder.path().join("repo");
        for (path, content) in files {
            std::fs::write(root.join(path), content).expect("written");
        }
        for arguments in
            [&["add", "-A"][..], &["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "more"]]
        {
            let mut git = Command::new("git");
            let done = git.current_dir(&root).args(arguments).env("HOME", self.folder.path()).output();
            assert!(done.expect("git starts").status.success(), "{arguments:?}");
        }
        self.services.repo.head()
    }

    /// Records a run of a model that is working, and returns its id.
    pub fn record_working_run(&self, change: impl FnOnce(&mut RunRecord)) -> RunId {
        let (run_id, now) = (self.services.ambient.new_run_id(), self.services.ambient.now());
        let mut record: RunRecord = serde_json::from_value(serde_json::json!({
            "run_id": run_id, "status": RunStatus::Reviewing, "created_at": now, "updated_at": now, "source": "cli",
            "scope": "worktree", "reviewer": "m", "model": "m", "branch": "main", "attempt": 1,
        }))
        .expect("a record");
        change(&mut record);
        self.services.store.with_lock(|locked| locked.create_run(&record)).expect("recorded");
        run_id
    }

    pub fn record(&self, run: &RunId) -> RunRecord {
        self.services.store.run(run).expect("readable").expect("the run")
    }
}
