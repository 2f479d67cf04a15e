//! Installs, inspects and uninstalls the git hooks that request a review of every commit and notice rewritten ones.
//!
//! Invariants:
//! - Nothing outside of the repository is written.
//! - An existing hook runs as before, with its exit code.
//! - Uninstalling restores the original bytes and mode. When a person edited the file since, only revdeck's own lines
//!   are removed.
//! - A hook that existed has its file at every moment, even when revdeck is killed.
//!
//! Each hook of [`HookName`] is treated alike:
//!
//! | existing hook | action |
//! |---|---|
//! | none | create a script |
//! | a shell script | insert revdeck's lines after its first line |
//! | another language, a program, a link, a disabled script | move it to `NAME.before-revdeck`; a new script calls it |
//! | husky from v9 on | as above, for `.husky/NAME` |
//! | a hook of lefthook | add an entry for each hook to `lefthook-local.yml` |
//! | a hook of pre-commit | as above, for `NAME.legacy`, which pre-commit runs first |

mod block;
mod location;

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::{GitError, Repo, path_bytes};
pub(crate) use block::BlockOrigin;
use block::{BlockPlace, BlockSearch, BlockState, HookBlock, HookLanguage};
pub use block::{HookCall, HookName};
pub use location::HookManager;
use location::{HookLocation, read_hook, with_suffix};

/// File suffix of a hook that was moved aside.
const ASIDE_SUFFIX: &str = "before-revdeck";
/// Content, without the block, of a file that revdeck creates.
const SCRIPT_HEAD: &[u8] = b"#!/bin/sh\n";

/// Error that prevents installing or uninstalling the hook.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// An error of the git module, except that of a bare repository.
    #[error(transparent)]
    Git(GitError),
    /// The repository is bare, so that no commits are made in it.
    #[error("{} has no working tree: nobody commits there", path.display())]
    Bare {
        /// Git dir of the repository.
        path: PathBuf,
    },
    /// The program `git` could not be started.
    #[error("git cannot be run: {source}")]
    NoGit {
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// git ran, but did not name its hooks folder.
    #[error("git does not say where the hooks of {} are: {what}", path.display())]
    Refused {
        /// Root of the repository.
        path: PathBuf,
        /// Message of git.
        what: String,
    },
    /// The hooks are outside of the repository.
    #[error("the hooks are in {}, outside of this repository{}", folder.display(),
        origin.as_ref().map_or(String::new(), |origin| format!(" (core.hooksPath in {origin})")))]
    Outside {
        /// Hooks folder as git names it.
        folder: PathBuf,
        /// Settings file with `core.hooksPath`, as git names it; `None` when the setting is not set.
        origin: Option<String>,
    },
    /// A file has only a part of the block, so that it can be neither updated nor removed.
    #[error("{} has only a part of revdeck's lines", path.display())]
    Damaged {
        /// File with the incomplete block.
        path: PathBuf,
    },
    /// The existing file cannot be extended automatically.
    #[error("{} cannot take revdeck's lines: {why}", path.display())]
    ByHand {
        /// The hook, or the settings file of lefthook.
        path: PathBuf,
        /// Reason, such as "it is a symbolic link".
        why: &'static str,
    },
    /// The hook must be moved aside, but the new name is in use.
    #[error("{} is there already, so that {} cannot be moved aside", aside.display(), path.display())]
    AsideTaken {
        /// The hook file.
        path: PathBuf,
        /// Path to which the hook would be moved.
        aside: PathBuf,
    },
    /// A path with a line break cannot be written into a hook.
    #[error("a hook cannot name {}, which has a line break in it", path.display())]
    LineBreak {
        /// Path of the revdeck program or of its home folder.
        path: PathBuf,
    },
    /// A file or folder could not be read or changed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Failed action, such as "move aside".
        action: &'static str,
        /// File or folder of the operation.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

impl HookError {
    fn io<'a>(action: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> Self + use<'a> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// Returns a sentence with a remedy; `None` when there is no specific remedy.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Git(error) => return error.hint(),
            Self::Bare { .. } => "install it in a clone, or in a worktree of this repository".to_owned(),
            Self::NoGit { .. } => "install git, or put it into PATH".to_owned(),
            Self::Outside { folder, .. } => format!(
                "other repositories use them too, so revdeck leaves them alone: have {} call `revdeck hook run \
                 post-commit`, or give this repository hooks of its own with `git config --local core.hooksPath \
                 .git/hooks`",
                folder.join(HookName::PostCommit.word()).display()
            ),
            Self::Damaged { .. } => {
                "take out by hand what is left between `# >>> revdeck >>>` and `# <<< revdeck <<<`".to_owned()
            }
            Self::ByHand { .. } => {
                "add a command to its post-commit: `revdeck hook run post-commit`, and one to its post-rewrite: \
                 `revdeck hook run post-rewrite`"
                    .to_owned()
            }
            Self::AsideTaken { .. } => "look which of the two is the hook you want, and remove the other".to_owned(),
            Self::LineBreak { .. } => "install revdeck into another folder".to_owned(),
            Self::Io { source, .. } => match source.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    "nothing was changed: the hook needs a folder that you may write to".to_owned()
                }
                _ => return None,
            },
            Self::Refused { .. } => return None,
        })
    }
}

/// Result of installing a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookInstallation {
    /// The hook.
    pub hook: HookName,
    /// File with the block, as an absolute path.
    pub file: PathBuf,
    /// Hook manager to which the file belongs.
    pub manager: HookManager,
    /// Change of the file; only planned in a dry run.
    pub outcome: InstallOutcome,
    /// True when the file is part of the repository, so that other people can get it.
    pub is_shared: bool,
    /// Content of the file after the installation.
    pub content: Vec<u8>,
}

/// Change made by the installation, or that a dry run would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallOutcome {
    /// The file already contained the same block.
    Unchanged,
    /// The block existed and was rewritten, for example because it named another program.
    Updated,
    /// The file did not exist and was created.
    CreatedFile,
    /// The block was inserted into an existing file.
    Inserted,
    /// The existing hook was moved to this file.
    MovedAside(PathBuf),
}

/// Choice between applying a change and a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookWriteMode {
    /// Writes the files.
    Apply,
    /// Only computes the result; no file is written.
    DryRun,
}

/// A file from which a hook was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRemoval {
    /// File that contained the block, as an absolute path.
    pub file: PathBuf,
    /// State of the file after the removal.
    pub left: HookRemainder,
}

/// Remainder of the file after the removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookRemainder {
    /// No file; revdeck had created it.
    Nothing,
    /// The original file, byte for byte.
    AsBefore,
    /// The file without revdeck's lines; a person edited it after the installation.
    Edited,
    /// Like [`HookRemainder::Edited`]; the file still calls the hook that was moved aside.
    EditedWithCall,
}

/// A file with a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledHook {
    /// The hook; for the settings of lefthook, which name all hooks, the first one.
    pub hook: HookName,
    /// File with the block, as an absolute path.
    pub file: PathBuf,
    /// True when git or the hook manager runs this file.
    pub runs: bool,
    /// True when the rest of the file was changed since the block was inserted.
    pub edited: bool,
    /// The revdeck program that the hook calls; `None` for the program in `PATH`.
    pub program: Option<PathBuf>,
}

/// Status of the hooks in a repository.
#[derive(Debug)]
pub struct HookStatus {
    /// Files with a complete block.
    pub present: Vec<InstalledHook>,
    /// Files with a part of revdeck's lines.
    pub damaged: Vec<PathBuf>,
    /// The hook manager; an error when the hook cannot be installed.
    pub manager: Result<HookManager, HookError>,
}

impl HookCall {
    /// Creates a call of `program` with `home` as its `REVDECK_HOME`.
    ///
    /// # Errors
    /// Returns an error when a path contains a line break.
    pub fn new(program: &Path, home: Option<&Path>) -> Result<Self, HookError> {
        for path in [Some(program), home].into_iter().flatten() {
            if path_bytes::from_path(path).contains(&b'\n') {
                return Err(HookError::LineBreak { path: path.to_owned() });
            }
        }
        Ok(Self { program: Some(path_bytes::from_path(program)), home: home.map(path_bytes::from_path) })
    }

    /// Creates a call without paths of this machine, for a file that other people get with the repository.
    fn new_portable() -> Self {
        Self { program: None, home: None }
    }
}

impl Repo {
    /// Installs all hooks; a dry run only reports the changes. Installing them again changes nothing. Writes nothing if
    /// one of them cannot be installed.
    ///
    /// # Errors
    /// Returns the first error of [`Repo::install_hook`].
    pub fn install_hooks(&self, call: &HookCall, really: HookWriteMode) -> Result<Vec<HookInstallation>, HookError> {
        let mut planned = Vec::new();
        for hook in HookName::ALL {
            let installed = self.install_hook(hook, call, HookWriteMode::DryRun)?;
            // One block in the settings of lefthook names all hooks.
            if planned.iter().all(|known: &HookInstallation| known.file != installed.file) {
                planned.push(installed);
            }
        }
        match really {
            HookWriteMode::DryRun => Ok(planned),
            HookWriteMode::Apply => {
                planned.into_iter().map(|planned| self.install_hook(planned.hook, call, really)).collect()
            }
        }
    }

    /// Installs one hook; a dry run only reports the change. Installing it again changes nothing.
    ///
    /// # Errors
    /// Returns an error when the repository has no worktree, when its hooks are outside of it, or when a file cannot
    /// take the hook or be written.
    pub fn install_hook(
        &self,
        hook: HookName,
        call: &HookCall,
        really: HookWriteMode,
    ) -> Result<HookInstallation, HookError> {
        let place = self.hook_location(hook)?;
        let portable = HookCall::new_portable();
        let call = if place.is_shared { &portable } else { call };
        let file = place.file.as_path();
        let there = symlink_metadata(file)?;
        let content = read_hook(file)?;
        let (done, content) = match content.as_deref().map_or(BlockSearch::None, block::find_block) {
            BlockSearch::Damaged => return Err(HookError::Damaged { path: file.to_owned() }),
            BlockSearch::Found(found) => {
                let now = content.unwrap_or_default();
                let wanted = call.update_block(hook, &found, place.language);
                (if wanted == now { InstallOutcome::Unchanged } else { InstallOutcome::Updated }, wanted)
            }
            BlockSearch::None if there.is_none() => {
                let head = if place.language == HookLanguage::Shell { SCRIPT_HEAD } else { b"" };
                let origin = BlockOrigin::CreatedFile;
                let block = BlockPlace { at: head.len(), origin, language: place.language };
                (InstallOutcome::CreatedFile, call.insert_into(hook, head, block))
            }
            BlockSearch::None => self.insert_beside((hook, call), &place, content)?,
        };
        if really == HookWriteMode::Apply {
            match &done {
                InstallOutcome::Unchanged => {}
                InstallOutcome::CreatedFile => replace_file(file, &content, 0o755)?,
                InstallOutcome::Updated | InstallOutcome::Inserted => replace_file(file, &content, mode(file)?)?,
                InstallOutcome::MovedAside(aside) => {
                    // The hard link keeps the hook's file present under one of its names at every moment.
                    if fs::hard_link(file, aside).is_err() {
                        fs::rename(file, aside).map_err(HookError::io("move aside", file))?;
                    }
                    replace_file(file, &content, 0o755)?;
                }
            }
        }
        Ok(HookInstallation {
            hook,
            file: place.file,
            manager: place.manager,
            outcome: done,
            is_shared: place.is_shared,
            content,
        })
    }

    /// Inserts the block into an existing file, or plans to move the file aside.
    fn insert_beside(
        &self,
        (hook, call): (HookName, &HookCall),
        place: &HookLocation,
        content: Option<Vec<u8>>,
    ) -> Result<(InstallOutcome, Vec<u8>), HookError> {
        let file = place.file.as_path();
        let is_link = file.is_symlink();
        let by_hand = |why| HookError::ByHand { path: file.to_owned(), why };
        if place.language == HookLanguage::Yaml {
            let yaml = file.extension().is_some_and(|extension| extension == "yml" || extension == "yaml");
            let content = content.filter(|_| yaml && !is_link);
            let content = content.ok_or_else(|| by_hand("it is no plain YAML file"))?;
            let has = |hook: HookName| {
                let key = [hook.word().as_bytes(), b":"].concat();
                content.split(|byte| *byte == b'\n').any(|line| line.starts_with(&key))
            };
            if has(HookName::PostCommit) {
                return Err(by_hand("it has a post-commit of its own"));
            }
            if has(HookName::PostRewrite) {
                return Err(by_hand("it has a post-rewrite of its own"));
            }
            let (at, origin) = (content.len(), BlockOrigin::Inserted);
            let block = BlockPlace { at, origin, language: HookLanguage::Yaml };
            return Ok((InstallOutcome::Inserted, call.insert_into(hook, &content, block)));
        }
        let Some(content) = content.or_else(|| is_link.then(Vec::new)) else {
            return Err(by_hand("it is not a file"));
        };
        let first_line = content.iter().position(|byte| *byte == b'\n').map_or(content.len(), |end| end + 1);
        let at = match place.manager {
            // husky runs the hook with `sh`, regardless of its first line and its mode.
            HookManager::Husky if is_link => return Err(by_hand("it is a symbolic link")),
            HookManager::Husky => Some(if content.starts_with(b"#!") { first_line } else { 0 }),
            _ if is_link || !is_executable(file) => None,
            _ => block::insertion_offset(&content),
        };
        if let Some(at) = at {
            let block = BlockPlace { at, origin: BlockOrigin::Inserted, language: HookLanguage::Shell };
            return Ok((InstallOutcome::Inserted, call.insert_into(hook, &content, block)));
        }
        let aside = with_suffix(file, ASIDE_SUFFIX);
        if symlink_metadata(&aside)?.is_some() {
            return Err(HookError::AsideTaken { path: file.to_owned(), aside });
        }
        let around = wrapper_script(&aside);
        let (at, origin) = (SCRIPT_HEAD.len(), BlockOrigin::MovedAside);
        let block = BlockPlace { at, origin, language: HookLanguage::Shell };
        Ok((InstallOutcome::MovedAside(aside), call.insert_into(hook, &around, block)))
    }

    /// Removes the hooks from every file that contains one; a dry run only reports the files.
    ///
    /// # Errors
    /// Returns an error when a file is damaged, or cannot be read or written.
    pub fn uninstall_hooks(&self, really: HookWriteMode) -> Result<Vec<HookRemoval>, HookError> {
        let mut removed = Vec::new();
        for (_, file) in self.hook_files() {
            let found = match block::find_block(&read_hook(&file)?.unwrap_or_default()) {
                BlockSearch::Found(found) => found,
                BlockSearch::Damaged => return Err(HookError::Damaged { path: file }),
                BlockSearch::None => continue,
            };
            let aside = with_suffix(&file, ASIDE_SUFFIX);
            let pristine = found.state == BlockState::Untouched;
            let left = match found.origin {
                BlockOrigin::CreatedFile if pristine => HookRemainder::Nothing,
                BlockOrigin::MovedAside if pristine => match symlink_metadata(&aside)? {
                    Some(_) => HookRemainder::AsBefore,
                    None => HookRemainder::Nothing,
                },
                BlockOrigin::Inserted if pristine => HookRemainder::AsBefore,
                BlockOrigin::MovedAside => HookRemainder::EditedWithCall,
                BlockOrigin::CreatedFile | BlockOrigin::Inserted => HookRemainder::Edited,
            };
            if really == HookWriteMode::Apply {
                match (left, found.origin) {
                    (HookRemainder::Nothing, _) => fs::remove_file(&file).map_err(HookError::io("remove", &file))?,
                    (HookRemainder::AsBefore, BlockOrigin::MovedAside) => {
                        fs::rename(&aside, &file).map_err(HookError::io("move back", &aside))?;
                    }
                    _ => replace_file(&file, &found.around, mode(&file)?)?,
                }
            }
            removed.push(HookRemoval { file, left });
        }
        Ok(removed)
    }

    /// Returns the status of the hooks.
    ///
    /// # Errors
    /// Returns an error when the repository has no worktree or a file cannot be read.
    pub fn hook_status(&self) -> Result<HookStatus, HookError> {
        self.worktree_root()?;
        let places = HookName::ALL.map(|hook| self.hook_location(hook));
        let runs = |file: &Path| places.iter().flatten().any(|place| place.file == file && place.is_active(file));
        let mut standing = HookStatus { present: Vec::new(), damaged: Vec::new(), manager: Ok(HookManager::Git) };
        for (hook, file) in self.hook_files() {
            match block::find_block(&read_hook(&file)?.unwrap_or_default()) {
                BlockSearch::Found(HookBlock { state, program, .. }) => standing.present.push(InstalledHook {
                    hook,
                    runs: runs(&file),
                    edited: state == BlockState::Edited,
                    program: program.map(|program| path_bytes::to_path(&program).into_owned()),
                    file,
                }),
                BlockSearch::Damaged => standing.damaged.push(file),
                BlockSearch::None => {}
            }
        }
        let [first, _] = places;
        standing.manager = first.map(|place| place.manager);
        Ok(standing)
    }
}

impl HookLocation {
    /// Returns true when git or the hook manager runs this file in its present state.
    fn is_active(&self, file: &Path) -> bool {
        match self.manager {
            HookManager::Git | HookManager::PreCommit => is_executable(file),
            HookManager::Husky | HookManager::Lefthook => true,
        }
    }
}

/// Returns a script that calls the hook that was moved aside and returns its exit code. Like git, the script runs the
/// hook only when it is executable.
fn wrapper_script(aside: &Path) -> Vec<u8> {
    let name = aside.file_name().unwrap_or_default().to_string_lossy();
    let tail = format!("hook=\"${{0%/*}}/{name}\"\n[ -x \"$hook\" ] || exit 0\nexec \"$hook\" \"$@\"\n");
    [SCRIPT_HEAD, tail.as_bytes()].concat()
}

fn symlink_metadata(path: &Path) -> Result<Option<fs::Metadata>, HookError> {
    match path.symlink_metadata() {
        Ok(seen) => Ok(Some(seen)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(HookError::io("read", path)(error)),
    }
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_executable(_file: &Path) -> bool {
    true
}

#[cfg(unix)]
fn mode(file: &Path) -> Result<u32, HookError> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(file.metadata().map_err(HookError::io("read", file))?.permissions().mode() & 0o7777)
}

#[cfg(not(unix))]
fn mode(_file: &Path) -> Result<u32, HookError> {
    Ok(0o755)
}

/// Replaces a file atomically.
fn replace_file(file: &Path, content: &[u8], mode: u32) -> Result<(), HookError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(HookError::io("make", folder))?;
    let failed = HookError::io("write", file);
    let mut temporary = tempfile::Builder::new().prefix(".revdeck-").tempfile_in(folder).map_err(&failed)?;
    temporary.write_all(content).map_err(&failed)?;
    let mut permissions = temporary.as_file().metadata().map_err(&failed)?.permissions();
    set_mode(&mut permissions, mode);
    temporary.as_file().set_permissions(permissions).map_err(&failed)?;
    temporary.as_file().sync_all().map_err(&failed)?;
    temporary.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(unix)]
fn set_mode(permissions: &mut Permissions, mode: u32) {
    std::os::unix::fs::PermissionsExt::set_mode(permissions, mode);
}

#[cfg(not(unix))]
fn set_mode(_permissions: &mut Permissions, _mode: u32) {}
