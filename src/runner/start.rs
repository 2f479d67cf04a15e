//! Workers are spawned here; whether a run begins is decided by the worker itself, see [`super::work`].

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use super::{Runner, RunnerError, known, process};
use crate::domain::{RunId, RunStatus};

impl Runner {
    /// Starts workers for pending runs while fewer than `max_parallel_runs` work.
    pub fn start_pending(&self) -> Result<Vec<RunId>, RunnerError> {
        let view = self.store.runs_view()?;
        let (mut busy, mut waiting) = (0, Vec::new());
        // Oldest first.
        for row in known::rows(&view).collect::<Vec<_>>().into_iter().rev() {
            let Ok(id) = row.id.parse::<RunId>() else { continue };
            match row.status {
                // Its lock is held: a worker is about to begin it.
                RunStatus::Pending if self.store.is_live(&id)? => busy += 1,
                RunStatus::Pending => waiting.push((id, PathBuf::from(row.worktree))),
                status if status.is_working() && self.store.is_live(&id)? => busy += 1,
                _ => {}
            }
        }
        let mut started = Vec::new();
        for (run, worktree) in waiting.into_iter().take(self.settings.max_parallel_runs.max(1).saturating_sub(busy)) {
            self.spawn(&run, worktree)?;
            started.push(run);
        }
        Ok(started)
    }

    fn spawn(&self, run: &RunId, worktree: PathBuf) -> Result<(), RunnerError> {
        let program =
            process::program().map_err(|source| RunnerError::Spawn { program: "revdeck".to_owned(), source })?;
        let folder = if worktree.is_dir() { worktree } else { self.repo.root() };
        let arguments = [OsString::from("worker"), OsString::from(run.as_str())];
        let child = process::detached(&program, &arguments, &folder, self.log()).spawn();
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
