//! Services over an empty repository and a store, for tests of this room.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{ClockAndIds, Paths, Settings};
use crate::domain::{Finding, FindingId, RunId, RunOutput, RunRecord, RunStatus, Scope, Source};
use crate::git::Repo;
use crate::runner::{BUILTIN_REVIEWER, RepositoryRules, ReviewDemand, ReviewRequest, Services};
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

    /// Stores the output of a panel whose list has these findings, each with the ids under which members have reported it.
    /// Returns the run of the panel.
    pub fn write_list(&self, list: &[(&FindingId, &[&FindingId])]) -> RunId {
        let run = self.record_working_run(|_| ());
        let voice = |id: &&FindingId| {
            serde_json::json!({
                "reviewer": "m", "run_id": run, "finding_id": id, "priority": 1, "confidence": "high",
                "kind": "SECURITY", "title": "t", "line_start": 1, "line_end": 1,
            })
        };
        let finding = |(id, reports): &(&FindingId, &[&FindingId])| {
            let voices: Vec<serde_json::Value> = reports.iter().map(voice).collect();
            let finding = serde_json::json!({
                "finding_id": id, "first_run_id": run, "last_run_id": run, "priority": 1, "severity": "medium",
                "confidence": "high", "kind": "SECURITY", "title": "t", "explanation": "", "repo_relative_path": "a.rs",
                "line_start": 1, "line_end": 1, "quoted_code": "", "status": "open", "detail_ref": "",
                "reported_at": "2026-11-01T00:00:00Z", "voices": voices,
            });
            serde_json::from_value(finding).expect("a finding")
        };
        let findings: Vec<Finding> = list.iter().map(finding).collect();
        let output = RunOutput { findings, ..RunOutput::new(self.record(&run)) };
        self.services.store.write_output(&output).expect("written");
        run
    }

    /// Returns a request of the cockpit for a review of the last commit by the built-in reviewer.
    pub fn request_head() -> ReviewRequest {
        ReviewRequest {
            scope: Some(Scope::Commit("HEAD".to_owned())),
            reviewer: Some(BUILTIN_REVIEWER.to_owned()),
            prompt_set: None,
            source: Source::Cockpit,
            started_in_session: 0,
            demand: ReviewDemand::AsNeeded,
        }
    }

    pub fn record(&self, run: &RunId) -> RunRecord {
        self.services.store.run(run).expect("readable").expect("the run")
    }
}
