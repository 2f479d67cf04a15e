//! The hook that asks for a review of every commit: put into a repository, looked at, and taken out again.
//!
//! Invariants: nothing outside of the repository is written; what was there runs on as before, with its exit code; what is
//! taken out leaves the bytes and the mode that were there, or, when somebody has edited the file since, everything but
//! our own lines. A hook that is there is never without its file, whenever we are killed.
//!
//! | what is there | what is done |
//! |---|---|
//! | nothing | a script of our own |
//! | a script of the shell | our lines behind its first one |
//! | anything else: another language, a program, a link, a script that is switched off | it is moved to `NAME.before-revdeck`, and a script of ours calls it last |
//! | husky from v9 on | as above, for `.husky/post-commit` |
//! | a hook of lefthook | an entry in `lefthook-local.yml` |
//! | a hook of pre-commit | as above, for `post-commit.legacy`, which pre-commit runs first |

mod block;
mod place;

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::{GitError, Repo, bytes};
pub use block::{Call, Origin};
use block::{Found, Language, Look, State};
pub use place::Manager;
use place::{Place, read, with_suffix};

/// The hook's name.
const HOOK: &str = "post-commit";
/// What a hook that is moved aside is called.
const ASIDE: &str = "before-revdeck";
/// A file that we made, without the block.
const HEAD: &[u8] = b"#!/bin/sh\n";

/// Why a hook cannot be put in or taken out.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error(transparent)]
    Git(GitError),
    #[error("{} has no working tree: nobody commits there", path.display())]
    Bare { path: PathBuf },
    #[error("git cannot be run: {source}")]
    NoGit { source: std::io::Error },
    #[error("git does not say where the hooks of {} are: {what}", path.display())]
    Refused { path: PathBuf, what: String },
    /// With the file of settings that says so.
    #[error("the hooks are in {}, outside of this repository{}", folder.display(),
        origin.as_ref().map_or(String::new(), |origin| format!(" (core.hooksPath in {origin})")))]
    Outside { folder: PathBuf, origin: Option<String> },
    #[error("{} has only a part of revdeck's lines", path.display())]
    Damaged { path: PathBuf },
    #[error("{} cannot take revdeck's lines: {why}", path.display())]
    ByHand { path: PathBuf, why: &'static str },
    #[error("{} is there already, so that {} cannot be moved aside", aside.display(), path.display())]
    AsideTaken { path: PathBuf, aside: PathBuf },
    #[error("a hook cannot name {}, which has a line break in it", path.display())]
    LineBreak { path: PathBuf },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

impl HookError {
    fn io<'a>(action: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> Self + use<'a> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// What somebody can do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Git(error) => return error.hint(),
            Self::Bare { .. } => "install it in a clone, or in a worktree of this repository".to_owned(),
            Self::NoGit { .. } => "install git, or put it into PATH".to_owned(),
            Self::Outside { folder, .. } => format!(
                "other repositories use them too, so revdeck leaves them alone: have {} call `revdeck hook run \
                 post-commit`, or give this repository hooks of its own with `git config --local core.hooksPath \
                 .git/hooks`",
                folder.join(HOOK).display()
            ),
            Self::Damaged { .. } => {
                "take out by hand what is left between `# >>> revdeck >>>` and `# <<< revdeck <<<`".to_owned()
            }
            Self::ByHand { .. } => "add a command to its post-commit: `revdeck hook run post-commit`".to_owned(),
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

/// What putting a hook in comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub file: PathBuf,
    pub manager: Manager,
    pub done: Done,
    /// Others may get the file with the repository.
    pub is_shared: bool,
    /// The file as it is now, or would be.
    pub content: Vec<u8>,
}

/// What was done, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    Already,
    /// The block was there and named another program.
    Updated,
    Made,
    Added,
    /// What was there is in this file now.
    Moved(PathBuf),
}

/// Whether to change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Really {
    Do,
    OnlySay,
}

/// A file that the hook was taken out of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub file: PathBuf,
    pub left: Left,
}

/// What is left of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Nothing: it was ours.
    Nothing,
    /// What was there before, byte for byte.
    AsBefore,
    /// Somebody has edited it since: everything but our lines.
    Edited,
    /// As [`Left::Edited`]; it goes on to call the hook that was moved aside.
    EditedAndCalling,
}

/// A hook that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    pub file: PathBuf,
    /// Whether git, or who looks after the hooks, runs this file.
    pub runs: bool,
    pub edited: bool,
    /// The revdeck that it calls; `None` for the one in `PATH`.
    pub program: Option<PathBuf>,
}

/// How it stands with the hook.
#[derive(Debug)]
pub struct Standing {
    pub present: Vec<Present>,
    /// Files with a part of our lines.
    pub damaged: Vec<PathBuf>,
    /// Who looks after the hooks; an error where none can be put in.
    pub manager: Result<Manager, HookError>,
}

impl Call {
    /// A call of the program, with the home that it has now.
    pub fn new(program: &Path, home: Option<&Path>) -> Result<Self, HookError> {
        for path in [Some(program), home].into_iter().flatten() {
            if bytes::of_path(path).contains(&b'\n') {
                return Err(HookError::LineBreak { path: path.to_owned() });
            }
        }
        Ok(Self { program: Some(bytes::of_path(program)), home: home.map(bytes::of_path) })
    }

    /// For a file that others get with the repository: names no place of this machine.
    fn portable() -> Self {
        Self { program: None, home: None }
    }
}

impl Repo {
    /// Puts the hook in, or says what that would do. Twice is as once.
    pub fn install_hook(&self, call: &Call, really: Really) -> Result<Installed, HookError> {
        let place = self.hook_place()?;
        let portable = Call::portable();
        let call = if place.is_shared { &portable } else { call };
        let file = place.file.as_path();
        let there = symlink_metadata(file)?;
        let content = read(file)?;
        let (done, content) = match content.as_deref().map_or(Look::None, block::find) {
            Look::Damaged => return Err(HookError::Damaged { path: file.to_owned() }),
            Look::Found(found) => {
                let now = content.unwrap_or_default();
                let wanted = call.renew(&found, place.language);
                (if wanted == now { Done::Already } else { Done::Updated }, wanted)
            }
            Look::None if there.is_none() => {
                let head = if place.language == Language::Shell { HEAD } else { b"" };
                (Done::Made, call.put(head, head.len(), Origin::Made, place.language))
            }
            Look::None => self.beside(call, &place, content)?,
        };
        if really == Really::Do {
            match &done {
                Done::Already => {}
                Done::Made => write(file, &content, 0o755)?,
                Done::Updated | Done::Added => write(file, &content, mode(file)?)?,
                Done::Moved(aside) => {
                    // The file is there under one of its names at every moment.
                    if fs::hard_link(file, aside).is_err() {
                        fs::rename(file, aside).map_err(HookError::io("move aside", file))?;
                    }
                    write(file, &content, 0o755)?;
                }
            }
        }
        Ok(Installed { file: place.file, manager: place.manager, done, is_shared: place.is_shared, content })
    }

    /// How the block gets into a file that others wrote.
    fn beside(&self, call: &Call, place: &Place, content: Option<Vec<u8>>) -> Result<(Done, Vec<u8>), HookError> {
        let file = place.file.as_path();
        let is_link = file.is_symlink();
        let by_hand = |why| HookError::ByHand { path: file.to_owned(), why };
        if place.language == Language::Yaml {
            let yaml = file.extension().is_some_and(|extension| extension == "yml" || extension == "yaml");
            let content = content.filter(|_| yaml && !is_link);
            let content = content.ok_or_else(|| by_hand("it is no plain YAML file"))?;
            if content.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"post-commit:")) {
                return Err(by_hand("it has a post-commit of its own"));
            }
            return Ok((Done::Added, call.put(&content, content.len(), Origin::Added, Language::Yaml)));
        }
        let Some(content) = content.or_else(|| is_link.then(Vec::new)) else {
            return Err(by_hand("it is not a file"));
        };
        let first_line = content.iter().position(|byte| *byte == b'\n').map_or(content.len(), |end| end + 1);
        let at = match place.manager {
            // Runs it with `sh`, whatever its first line and its mode say.
            Manager::Husky if is_link => return Err(by_hand("it is a symbolic link")),
            Manager::Husky => Some(if content.starts_with(b"#!") { first_line } else { 0 }),
            _ if is_link || !is_executable(file) => None,
            _ => block::place_in(&content),
        };
        if let Some(at) = at {
            return Ok((Done::Added, call.put(&content, at, Origin::Added, Language::Shell)));
        }
        let aside = with_suffix(file, ASIDE);
        if symlink_metadata(&aside)?.is_some() {
            return Err(HookError::AsideTaken { path: file.to_owned(), aside });
        }
        let around = calling(&aside);
        Ok((Done::Moved(aside), call.put(&around, HEAD.len(), Origin::Moved, Language::Shell)))
    }

    /// Takes the hook out of every file that has it.
    pub fn uninstall_hook(&self, really: Really) -> Result<Vec<Removed>, HookError> {
        let mut removed = Vec::new();
        for file in self.hook_files() {
            let found = match block::find(&read(&file)?.unwrap_or_default()) {
                Look::Found(found) => found,
                Look::Damaged => return Err(HookError::Damaged { path: file }),
                Look::None => continue,
            };
            let aside = with_suffix(&file, ASIDE);
            let pristine = found.state == State::Untouched;
            let left = match found.origin {
                Origin::Made if pristine => Left::Nothing,
                Origin::Moved if pristine => match symlink_metadata(&aside)? {
                    Some(_) => Left::AsBefore,
                    None => Left::Nothing,
                },
                Origin::Added if pristine => Left::AsBefore,
                Origin::Moved => Left::EditedAndCalling,
                Origin::Made | Origin::Added => Left::Edited,
            };
            if really == Really::Do {
                match (left, found.origin) {
                    (Left::Nothing, _) => fs::remove_file(&file).map_err(HookError::io("remove", &file))?,
                    (Left::AsBefore, Origin::Moved) => {
                        fs::rename(&aside, &file).map_err(HookError::io("move back", &aside))?;
                    }
                    _ => write(&file, &found.around, mode(&file)?)?,
                }
            }
            removed.push(Removed { file, left });
        }
        Ok(removed)
    }

    /// How it stands with the hook.
    pub fn hook_standing(&self) -> Result<Standing, HookError> {
        self.worktree()?;
        let place = self.hook_place();
        let mut standing = Standing { present: Vec::new(), damaged: Vec::new(), manager: Ok(Manager::Git) };
        for file in self.hook_files() {
            match block::find(&read(&file)?.unwrap_or_default()) {
                Look::Found(Found { state, program, .. }) => standing.present.push(Present {
                    runs: place.as_ref().is_ok_and(|place| place.file == file && place.runs(&file)),
                    edited: state == State::Edited,
                    program: program.map(|program| bytes::to_path(&program).into_owned()),
                    file,
                }),
                Look::Damaged => standing.damaged.push(file),
                Look::None => {}
            }
        }
        standing.manager = place.map(|place| place.manager);
        Ok(standing)
    }
}

impl Place {
    /// Whether who looks after the hooks runs this file as it is.
    fn runs(&self, file: &Path) -> bool {
        match self.manager {
            Manager::Git | Manager::PreCommit => is_executable(file),
            Manager::Husky | Manager::Lefthook => true,
        }
    }
}

/// A script that ends as the hook that was moved aside, which git would have run only if it is executable.
fn calling(aside: &Path) -> Vec<u8> {
    let name = aside.file_name().unwrap_or_default().to_string_lossy();
    let tail = format!("hook=\"${{0%/*}}/{name}\"\n[ -x \"$hook\" ] || exit 0\nexec \"$hook\" \"$@\"\n");
    [HEAD, tail.as_bytes()].concat()
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

/// Puts a file in the place of what is there, in one step.
fn write(file: &Path, content: &[u8], mode: u32) -> Result<(), HookError> {
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
