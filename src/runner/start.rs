//! Workers are spawned here; whether a run begins is decided by the worker itself, see [`super::work`].

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use super::{Runner, RunnerError, known, process};
use crate::config::Paths;
use crate::domain::{RunId, RunStatus};
use crate::store::View;

/// A run that waits for a worker.
pub(super) struct Waiting {
    pub run: RunId,
    pub worktree: PathBuf,
}

impl Runner {
    /// Starts workers for pending runs while fewer than `max_parallel_runs` work.
    pub fn start_pending(&self) -> Result<Vec<RunId>, RunnerError> {
        self.start_next(self.store.runs_view()?.as_ref(), None, &[])
    }

    /// As [`Runner::start_pending`], from a view that may be a little old: a run was `added` since, and some were
    /// `ended`. Too many workers cost nothing but their start, because each finds out for itself whether it may begin.
    pub(super) fn start_next(
        &self,
        view: &View,
        added: Option<Waiting>,
        ended: &[RunId],
    ) -> Result<Vec<RunId>, RunnerError> {
        let (mut busy, mut waiting) = (0, Vec::new());
        // Oldest first.
        for row in known::rows(view).collect::<Vec<_>>().into_iter().rev() {
            if row.status.is_terminal() {
                continue;
            }
            let Ok(run) = row.id.parse::<RunId>() else { continue };
            match row.status {
                _ if ended.contains(&run) => {}
                // Its lock is held: a worker is about to begin it.
                RunStatus::Pending if self.store.is_live(&run)? => busy += 1,
                RunStatus::Pending => waiting.push(Waiting { run, worktree: PathBuf::from(row.worktree) }),
                _ if self.store.is_live(&run)? => busy += 1,
                _ => {}
            }
        }
        waiting.extend(added);
        let mut started = Vec::new();
        for next in waiting.into_iter().take(self.settings.max_parallel_runs.max(1).saturating_sub(busy)) {
            self.spawn(&next.run, next.worktree)?;
            started.push(next.run);
        }
        Ok(started)
    }

    /// As [`Runner::start_pending`], for those to whom a run that does not start is no error: the next one who comes by
    /// starts it.
    pub(super) fn start_pending_or_say(&self) {
        if let Err(error) = self.start_pending() {
            tracing::warn!(%error, "no worker was started");
        }
    }

    fn spawn(&self, run: &RunId, worktree: PathBuf) -> Result<(), RunnerError> {
        let program =
            process::program().map_err(|source| RunnerError::Spawn { program: "revdeck".to_owned(), source })?;
        let folder = if worktree.is_dir() { worktree } else { self.repo.root() };
        let arguments = [OsString::from("worker"), OsString::from(run.as_str())];
        let mut command = process::detached(&program, &arguments, &folder, self.log());
        if let Some(home) = self.paths.home() {
            // It may have been given relative to a folder that is not the worker's.
            command.env(Paths::HOME_VARIABLE, home);
        }
        let child = command.spawn();
        let mut child =
            child.map_err(|source| RunnerError::Spawn { program: program.display().to_string(), source })?;
        // A worker that ends while we live must not stay as a zombie. One thread per worker, asleep.
        let reaper = std::thread::Builder::new().name("worker-reaper".to_owned()).stack_size(64 * 1024);
        let _ = reaper.spawn(move || child.wait());
        Ok(())
    }

    /// Where workers write what they have to say, which is only what went wrong; none when it cannot be written.
    fn log(&self) -> Option<File> {
        std::fs::create_dir_all(&self.paths.logs).ok()?;
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.paths.logs.join("worker.log")).ok()
    }
}
