//! Receives file system events for a watcher, or polls where the system cannot send events.
//!
//! On Linux each folder is watched separately, so that ignored folders cost nothing. Other systems watch whole trees,
//! and events of ignored paths are dropped. Events of opened and read files are dropped at once, so that the watcher's
//! own reading does not wake it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{CreateKind, ModifyKind, RenameMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::queue::{PathEventKind, WatchEvents, WatchQueue};
use crate::domain::WatchMode;
use crate::git::WatchedFolders;

/// `true` if folders are watched one by one.
const WATCHES_EACH_FOLDER: bool = cfg!(any(target_os = "linux", target_os = "android"));

pub(super) enum FsEventSource {
    Events(RecommendedWatcher),
    Polling { reason: String, every: Duration },
}

impl FsEventSource {
    /// Opens a source of events; falls back to polling every `every` if that fails. `snooze` is the file whose change
    /// is reported separately.
    pub fn open(mail: &Arc<WatchQueue>, snooze: &Path, every: Duration) -> Self {
        let (mail, snooze) = (Arc::clone(mail), snooze.to_owned());
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            mail.update(|news| match event {
                Ok(event) => queue_event(news, event, &snooze),
                Err(error) => news.broken = Some(describe_error(&error)),
            });
        });
        match watcher {
            Ok(watcher) => Self::Events(watcher),
            Err(error) => Self::Polling { reason: describe_error(&error), every },
        }
    }

    pub fn mode(&self) -> WatchMode {
        match self {
            Self::Events(_) => WatchMode::Events,
            Self::Polling { reason, .. } => WatchMode::Polling { reason: reason.clone() },
        }
    }

    /// Returns the polling interval; `None` if the system sends events.
    pub fn poll_interval(&self) -> Option<Duration> {
        match self {
            Self::Events(_) => None,
            Self::Polling { every, .. } => Some(*every),
        }
    }

    /// Watches the direct content of a folder, if the folder exists.
    ///
    /// # Errors
    ///
    /// The reason, in words, why no more folders can be watched.
    pub fn watch_folder(&mut self, folder: &Path) -> Result<(), String> {
        self.watch_path(folder, RecursiveMode::NonRecursive)
    }

    /// Watches a folder with everything below it, if the folder exists.
    ///
    /// # Errors
    ///
    /// The reason, in words, why no more folders can be watched.
    pub fn watch_tree(&mut self, folder: &Path) -> Result<(), String> {
        self.watch_path(folder, RecursiveMode::Recursive)
    }

    /// Watches a folder of a worktree and all folders below it that git does not ignore.
    ///
    /// # Errors
    ///
    /// The reason, in words, why no more folders can be watched.
    pub fn watch_worktree_folder(
        &mut self,
        folders: &mut WatchedFolders,
        folder: &Path,
        root: &Path,
    ) -> Result<(), String> {
        if WATCHES_EACH_FOLDER {
            return folders.enter(folder, &mut |folder| self.watch_folder(folder));
        }
        folders.enter(folder, &mut |_| Ok::<_, String>(()))?;
        if folder == root { self.watch_tree(root) } else { Ok(()) }
    }

    /// Stops watching folders that are gone.
    pub fn unwatch(&mut self, folders: &[PathBuf]) {
        if let (Self::Events(watcher), true) = (self, WATCHES_EACH_FOLDER) {
            // The system may have stopped watching them already.
            folders.iter().for_each(|folder| drop(watcher.unwatch(folder)));
        }
    }

    fn watch_path(&mut self, folder: &Path, how: RecursiveMode) -> Result<(), String> {
        let Self::Events(watcher) = self else { return Ok(()) };
        match watcher.watch(folder, how) {
            Ok(()) => Ok(()),
            // The folder was removed meanwhile, or never existed.
            Err(_) if !folder.is_dir() => Ok(()),
            // An unreadable folder sends no events; git cannot read it either.
            Err(error) if is_denied(&error) => Ok(()),
            Err(error) => Err(describe_error(&error)),
        }
    }
}

fn is_denied(error: &notify::Error) -> bool {
    matches!(&error.kind, notify::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Describes for the user why the system sends no more events.
fn describe_error(error: &notify::Error) -> String {
    use rustix::io::Errno;
    let errno = match &error.kind {
        notify::ErrorKind::MaxFilesWatch => Some(Errno::NOSPC),
        notify::ErrorKind::Io(error) => Errno::from_io_error(error),
        _ => None,
    };
    match errno {
        Some(Errno::NOSPC) => {
            "the system's limit of watched folders is reached (fs.inotify.max_user_watches)".to_owned()
        }
        Some(Errno::MFILE | Errno::NFILE) => {
            "the system's limit of watchers is reached (fs.inotify.max_user_instances)".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Queues an event.
fn queue_event(news: &mut WatchEvents, event: notify::Event, snooze: &Path) {
    if event.need_rescan() {
        news.overflowed = true;
        return;
    }
    let happened = match event.kind {
        // Both halves of a rename were reported separately before.
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return,
        EventKind::Create(CreateKind::Folder | CreateKind::Any)
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => PathEventKind::Made,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => PathEventKind::Gone,
        EventKind::Modify(ModifyKind::Name(_)) => PathEventKind::Made,
        _ => PathEventKind::Changed,
    };
    let store = snooze.parent();
    for path in event.paths {
        if path == snooze {
            news.snooze_changed = true;
        } else if path.parent() != store && Some(path.as_path()) != store {
            news.push_path(path, happened);
        }
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, AccessMode, DataChange, Flag, RemoveKind};

    use super::*;

    #[test]
    fn events_in_the_words_of_a_watcher() {
        let snooze = Path::new("/s/auto-review/snooze.json");
        let open = EventKind::Access(AccessKind::Open(AccessMode::Any));
        let write = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        for (kind, path, expected) in [
            (open, "/w/src", None),
            (write, "/w/src/a.rs", Some(PathEventKind::Changed)),
            (EventKind::Create(CreateKind::File), "/w/src/a.rs", Some(PathEventKind::Changed)),
            (EventKind::Create(CreateKind::Folder), "/w/src", Some(PathEventKind::Made)),
            (EventKind::Modify(ModifyKind::Name(RenameMode::To)), "/w/b", Some(PathEventKind::Made)),
            (EventKind::Modify(ModifyKind::Name(RenameMode::From)), "/w/a", Some(PathEventKind::Gone)),
            (EventKind::Remove(RemoveKind::Folder), "/w/src", Some(PathEventKind::Gone)),
            (write, "/s/auto-review/runs.ndjson", None),
            (EventKind::Create(CreateKind::Folder), "/s/auto-review", None),
        ] {
            let mut news = WatchEvents::default();
            queue_event(&mut news, notify::Event::new(kind).add_path(path.into()), snooze);
            assert_eq!(news.paths.first().map(|(_, happened)| *happened), expected, "{kind:?} {path}");
        }
        let mut news = WatchEvents::default();
        queue_event(&mut news, notify::Event::new(write).add_path(snooze.to_owned()), snooze);
        assert!(news.snooze_changed && news.paths.is_empty());
        queue_event(&mut news, notify::Event::new(EventKind::Other).set_flag(Flag::Rescan), snooze);
        assert!(news.overflowed);
    }

    #[test]
    fn limits_are_told_by_their_names() {
        let io = |errno: rustix::io::Errno| notify::Error::io(errno.into());
        for (error, name) in [
            (notify::Error::new(notify::ErrorKind::MaxFilesWatch), "max_user_watches"),
            (io(rustix::io::Errno::NOSPC), "max_user_watches"),
            (io(rustix::io::Errno::MFILE), "max_user_instances"),
        ] {
            assert!(describe_error(&error).contains(name), "{error:?}");
        }
        assert!(is_denied(&io(rustix::io::Errno::ACCESS)));
    }
}
