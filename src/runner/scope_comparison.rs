//! Compares the code of the worktree and the index with what runs have reviewed, so that a run is known to be outdated
//! although nobody has requested a review and no watcher runs.
//!
//! - A look is one `stat` call for each file, as `git status` does it. Contents are read only where that shows a change,
//!   and only those of changed files.
//! - Nothing is written, neither to the repository nor to the store.

use crate::domain::Scope;
use crate::git::{GitError, GitState, WatchExclusions, WorktreeFingerprint};
use crate::runner::Services;

/// Content of scopes of a worktree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeFingerprints {
    /// Counter of the repository's movements before the look. After a later movement, the comparison says nothing.
    pub epoch: u64,
    /// Root of the worktree.
    pub worktree: String,
    /// Short name; empty when HEAD is detached.
    pub branch: String,
    /// Id of HEAD's commit; empty when HEAD is unborn.
    pub head: String,
    /// Scopes in text form with the fingerprints of their changes.
    pub fingerprints: Vec<(String, String)>,
}

/// Looks at a worktree again and again.
#[derive(Debug, Default)]
pub struct ScopeComparer {
    last: Option<SeenCode>,
}

/// State at the last look.
#[derive(Debug)]
struct SeenCode {
    scopes: Vec<Scope>,
    git: GitState,
    files: Option<WorktreeFingerprint>,
    fingerprints: Vec<(String, String)>,
}

impl ScopeComparer {
    /// Computes the fingerprints of these scopes, or takes the last ones if nothing has moved since. Scopes of commits are
    /// left out: they change only with HEAD.
    ///
    /// # Errors
    ///
    /// If git cannot read the worktree or the index.
    pub fn compare(
        &mut self,
        services: &Services,
        epoch: u64,
        scopes: &[Scope],
    ) -> Result<ScopeFingerprints, GitError> {
        let repo = &services.repo;
        let git = repo.read_git_state(self.last.as_ref().map(|last| &last.git))?;
        let reads_files = scopes.iter().any(|scope| matches!(scope, Scope::Worktree | Scope::All));
        let files = reads_files.then(|| repo.compute_worktree_fingerprint(&WatchExclusions::new(&[]))).transpose()?;
        let is_known = self
            .last
            .as_ref()
            .is_some_and(|last| !git.differs_from(&last.git) && files == last.files && scopes == last.scopes);
        if !is_known {
            let filter = services.filter();
            let mut fingerprints = Vec::with_capacity(scopes.len());
            for scope in scopes {
                let fingerprint = repo.compute_scope_fingerprint(scope, &filter)?;
                fingerprints.extend(fingerprint.map(|fingerprint| (scope.to_string(), fingerprint)));
            }
            self.last = Some(SeenCode { scopes: scopes.to_vec(), git, files, fingerprints });
        }
        let (branch, head, fingerprints) = match &self.last {
            Some(last) => (last.git.branch.clone(), last.git.head.clone(), last.fingerprints.clone()),
            None => Default::default(),
        };
        let worktree = repo.root().to_string_lossy().into_owned();
        Ok(ScopeFingerprints { epoch, worktree, branch, head, fingerprints })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Freshness;
    use crate::runner::FreshnessFacts;
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn a_run_is_outdated_while_the_worktree_differs_from_what_it_reviewed() {
        let fixture = RunnerFixture::new();
        let head = fixture.commit_files(&[("a.rs", b"one\n")]);
        let services = &fixture.services;
        let root = services.repo.root();
        let edit = |text: &str| std::fs::write(root.join("a.rs"), text).expect("written");
        edit("two\n");
        let reviewed = services.repo.take_snapshot(&Scope::Worktree, &services.filter()).expect("a snapshot");
        let run = fixture.record_working_run(|record| {
            record.status = crate::domain::RunStatus::Completed;
            record.subject.worktree = root.to_string_lossy().into_owned();
            record.subject.head_commit = head.clone();
            record.subject.epoch = 1;
            record.subject.diff_fingerprint = reviewed.diff_fingerprint.clone();
        });
        let view = services.store.view().expect("a view");
        let row = view.run(view.run_index(run.as_str()).expect("the run"));
        let read = || FreshnessFacts::read(&services.repo, &services.store, &view);
        let (mut facts, mut comparer) = (read(), ScopeComparer::default());
        let mut freshness_after = |text: &str| {
            edit(text);
            let seen = comparer.compare(services, facts.epoch(), &[Scope::Worktree, Scope::Staged]).expect("compared");
            facts.observe(&seen);
            facts.derive(&row, None, services.ambient.now())
        };
        for (text, expected) in [
            ("two\n", Freshness::Current),
            ("three\n", Freshness::Obsolete),
            ("two\n", Freshness::Current),
            ("one\n", Freshness::Obsolete),
        ] {
            assert_eq!(freshness_after(text), expected, "{text:?}");
        }
        // Facts that are read again keep what was seen; after a movement it says nothing.
        let mut again = read();
        again.keep_observed(&facts);
        assert_eq!(again.derive(&row, None, services.ambient.now()), Freshness::Obsolete);
        services.store.advance_epoch().expect("advanced");
        let mut moved = read();
        moved.keep_observed(&facts);
        assert_ne!(moved.derive(&row, None, services.ambient.now()), Freshness::Obsolete);
        let late = comparer.compare(services, facts.epoch(), &[Scope::Worktree]).expect("compared");
        moved.observe(&late);
        assert_ne!(moved.derive(&row, None, services.ambient.now()), Freshness::Obsolete, "it was seen before");
    }
}
