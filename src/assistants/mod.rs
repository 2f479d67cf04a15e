//! Puts revdeck's hooks, MCP entry and status line into the settings of coding assistants, and takes them out again.
//!
//! Invariants:
//! - Comments, order, line endings and other people's entries in a file stay as they are.
//! - A file that cannot be parsed is named and not touched. All files of an assistant are planned before the first is
//!   written.
//! - A file is replaced atomically and keeps its mode. A link is followed only to a file below the same place: the home
//!   folder, or the repository.
//! - Uninstalling restores the bytes from before the installation. When the file was changed since, only revdeck's
//!   entries are taken out.
//! - An entry with revdeck's name, or a status line, that calls something else is left alone.
//!
//! | file | for |
//! |---|---|
//! | `catalog` | the files and entries of each assistant: a new assistant is added there |
//! | `own_call` | the commands that the entries call, and how they are recognised |
//! | `json_settings`, `toml_settings` | insert, find and remove entries in one text |
//! | `line_endings` | edits that keep line endings and a byte order mark |
//! | `settings_file` | reading and replacing a file below its place |
//! | `install_record` | how to restore a file that was not changed since |
//! | `hook_event` | the input of a hook and the form of its answer |
//! | `agent_session` | memory of one session of an assistant, for the Stop hook |
//! | `turn_claim` | which of two calls for one event answers, where both scopes have the hook |

mod agent_session;
mod catalog;
mod hook_event;
mod install_record;
mod json_settings;
mod line_endings;
mod own_call;
mod settings_file;
mod toml_settings;
mod turn_claim;

use std::path::{Path, PathBuf};

pub(crate) use agent_session::{AgentSession, AgentSessionKey};
pub(crate) use catalog::AssistantFolders;
use catalog::{FileFormat, SettingsTarget};
pub(crate) use hook_event::{HookEvent, HookEventKind, MAX_HOOK_ANSWER_CHARS, read_hook_event};
use install_record::InstallRecord;
pub(crate) use own_call::ProgramCall;
use settings_file::AssistantFile;
pub(crate) use turn_claim::claim_event;

/// Coding assistant with settings that revdeck knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assistant {
    ClaudeCode,
    Codex,
    Gemini,
    OpenCode,
}

impl Assistant {
    /// All assistants, in the order in which they are listed.
    pub(crate) const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Gemini, Self::OpenCode];

    /// Returns the name on the command line and in hook commands. The name is stable: Codex runs a hook only as long
    /// as its command stays the same.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns whether the assistant has a hook at the end of its answer that can ask for more work.
    pub(crate) fn has_stop_hook(self) -> bool {
        self != Self::OpenCode
    }
}

/// Settings into which the entries go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallScope {
    /// The user's settings, for all repositories.
    User,
    /// Files of the repository, for everybody who works in it.
    Project,
}

impl InstallScope {
    /// Returns the word on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// Choice whether the assistant is asked, when it stops, to look at new findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopHook {
    Off,
    On,
}

/// Error that prevents the installation in, or the removal from, a file. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssistantError {
    /// The file cannot be parsed.
    #[error("{} is damaged: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
    /// The file can be parsed, but revdeck's entries do not fit in.
    #[error("{} cannot take revdeck's entries: {why}", path.display())]
    ByHand { path: PathBuf, why: String },
    /// The file belongs to somebody else.
    #[error("{} exists and was not made by revdeck", path.display())]
    Foreign { path: PathBuf },
    /// The file was made by revdeck and changed by somebody, or by another revdeck.
    #[error("{} was made by revdeck and changed since", path.display())]
    Edited { path: PathBuf },
    /// The path leads out of the place of the settings.
    #[error("{} leads to {}, outside of {}", path.display(), target.display(), place.display())]
    Outside { path: PathBuf, target: PathBuf, place: PathBuf },
    /// The file was changed by somebody else since it was read.
    #[error("{} was changed meanwhile by another program", path.display())]
    Moved { path: PathBuf },
    /// The path of the program cannot be written into a command.
    #[error("a hook cannot name {}, which has a quote or a line break in it", path.display())]
    Unquotable { path: PathBuf },
    /// The entries that call the program would not be recognised as revdeck's.
    #[error("entries that call {program} could not be found again in {}", path.display())]
    Unrecognisable { path: PathBuf, program: String },
    /// Project scope was asked for outside of a repository.
    #[error("there is no repository here, so that there are no project settings")]
    NoProject,
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

impl AssistantError {
    fn io<'a>(action: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> Self + use<'a> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// Returns a sentence with a remedy; `None` when there is no specific remedy.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Damaged { .. } => "nothing was changed: mend the file, or move it away, and run the command again",
            Self::ByHand { .. } => "nothing was changed: docs/assistants.md shows the entries to add by hand",
            Self::Foreign { .. } => "nothing was changed: move the file away and run the command again",
            Self::Edited { .. } => "nothing was changed: remove the file by hand and run the command again",
            Self::Outside { .. } => {
                "nothing was changed: a link may only lead to a file below that folder; add the entries to the file \
                 behind it by hand (docs/assistants.md)"
            }
            Self::Moved { .. } => "close the assistant, or wait until it is idle, and run the command again",
            Self::Unquotable { .. } => "install revdeck into another folder",
            Self::Unrecognisable { .. } => "nothing was changed: install revdeck as a file with the name revdeck",
            Self::NoProject => "change to a repository, or use --scope user",
            Self::Io { .. } => return None,
        })
    }
}

/// One file of a plan.
#[derive(Debug)]
pub(crate) struct PlannedSettings {
    file: AssistantFile,
    /// Content after the plan; `None` for a file that is removed.
    after: Option<String>,
    record: RecordChange,
    /// Result for the user.
    pub(crate) outcome: PlanOutcome,
}

/// Change of a file's install record.
#[derive(Debug)]
enum RecordChange {
    Save(InstallRecord),
    Forget,
    Keep,
}

/// Result of planning a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanOutcome {
    /// The file already is as wanted.
    Unchanged,
    /// A file that does not exist is made.
    Created,
    /// Entries are added to an existing file.
    Added,
    /// Existing entries of revdeck are replaced, for example because they name another program.
    Updated,
    /// The file is removed, because revdeck made it.
    Removed,
    /// The file gets the bytes from before the installation.
    Restored,
    /// The file was changed since the installation; only revdeck's entries are taken out.
    TakenOut,
    /// The file was made by revdeck and changed by somebody: it stays.
    LeftEdited,
}

impl PlannedSettings {
    /// Returns the path as the assistant knows it.
    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns the content before the change; `None` without a file.
    pub(crate) fn before(&self) -> Option<&str> {
        self.file.text.as_deref()
    }

    /// Returns the content after the change; `None` without a file.
    pub(crate) fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// Returns whether the plan changes the file.
    pub(crate) fn is_change(&self) -> bool {
        self.before() != self.after()
    }
}

/// Changes of all files of an assistant, before they are made.
#[derive(Debug)]
pub(crate) struct AssistantPlan {
    pub(crate) files: Vec<PlannedSettings>,
    /// Sentences about entries that are left alone.
    pub(crate) notes: Vec<String>,
}

impl AssistantPlan {
    /// Returns whether any file changes.
    pub(crate) fn is_change(&self) -> bool {
        self.files.iter().any(PlannedSettings::is_change)
    }
}

/// State of one file in `hook status`.
#[derive(Debug)]
pub(crate) struct FileStatus {
    pub(crate) path: PathBuf,
    /// Names of revdeck's entries in the file, such as `hooks.UserPromptSubmit`.
    pub(crate) entries: Vec<String>,
    pub(crate) state: FileState,
}

/// Comparison of a file with an installation of today.
#[derive(Debug)]
pub(crate) enum FileState {
    /// None of revdeck's entries.
    Absent,
    /// Exactly what an installation would write.
    Current,
    /// Entries are missing, or differ from those of an installation of today.
    Outdated,
    /// The file is revdeck's as a whole and was changed since: no command updates or removes it.
    Edited,
    /// The file cannot be read or parsed.
    Unreadable(AssistantError),
}

/// Writes to the settings of one assistant in one scope.
pub(crate) struct AssistantInstaller<'a> {
    pub(crate) assistant: Assistant,
    pub(crate) scope: InstallScope,
    pub(crate) folders: &'a AssistantFolders,
    /// Call of revdeck that the entries name.
    pub(crate) program: &'a ProgramCall,
}

impl AssistantInstaller<'_> {
    /// Plans the installation.
    ///
    /// # Errors
    ///
    /// Returns an error if a file is damaged, out of place or somebody else's, or if it cannot be read.
    pub(crate) fn plan_install(&self, stop: StopHook) -> Result<AssistantPlan, AssistantError> {
        let mut plan = AssistantPlan { files: Vec::new(), notes: Vec::new() };
        for target in catalog::list_targets(self.assistant, self.scope, self.folders, self.program, stop)? {
            let file = target.read()?;
            let record = InstallRecord::load(&self.folders.records, &file.path);
            let base = find_base(&target, &file, record.as_ref())?;
            let (mut after, notes) = target.insert(&file.path, base.text.as_deref())?;
            plan.notes.extend(notes);
            // Entries that somebody has moved stay where they are.
            if let Some(text) = &file.text
                && base.has_entries
                && target.is_current(&file.path, text)?
            {
                after = Some(text.clone());
            }
            let outcome = match (&file.text, base.has_entries) {
                (before, _) if *before == after => PlanOutcome::Unchanged,
                (None, _) => PlanOutcome::Created,
                (_, true) => PlanOutcome::Updated,
                (_, false) => PlanOutcome::Added,
            };
            let record = match (&after, outcome) {
                (_, PlanOutcome::Unchanged) | (None, _) => RecordChange::Keep,
                (Some(after), _) => RecordChange::Save(InstallRecord::new(
                    &file,
                    base.text.as_deref(),
                    after,
                    record.map(|record| record.made_folders).unwrap_or_default(),
                )),
            };
            plan.files.push(PlannedSettings { file, after, record, outcome });
        }
        Ok(plan)
    }

    /// Plans the removal of everything that [`AssistantInstaller::plan_install`] adds.
    ///
    /// # Errors
    ///
    /// Returns an error if a file is damaged or out of place, or if it cannot be read.
    pub(crate) fn plan_uninstall(&self) -> Result<AssistantPlan, AssistantError> {
        let mut plan = AssistantPlan { files: Vec::new(), notes: Vec::new() };
        for target in catalog::list_targets(self.assistant, self.scope, self.folders, self.program, StopHook::On)? {
            let file = target.read()?;
            let record = InstallRecord::load(&self.folders.records, &file.path);
            let base = find_base(&target, &file, record.as_ref())?;
            let outcome = match (&base.text, base.is_exact) {
                (after, _) if *after == file.text && base.has_entries => PlanOutcome::LeftEdited,
                (after, _) if *after == file.text => PlanOutcome::Unchanged,
                (None, _) => PlanOutcome::Removed,
                (_, true) => PlanOutcome::Restored,
                (_, false) => PlanOutcome::TakenOut,
            };
            let record = if record.is_some() && outcome != PlanOutcome::LeftEdited {
                RecordChange::Forget
            } else {
                RecordChange::Keep
            };
            plan.files.push(PlannedSettings { file, after: base.text, record, outcome });
        }
        Ok(plan)
    }

    /// Makes the changes of a plan, file by file.
    ///
    /// # Errors
    ///
    /// Returns an error if a file was changed since it was planned, or cannot be written. Files before it are written:
    /// the same command goes on with the others.
    pub(crate) fn apply(&self, plan: AssistantPlan) -> Result<(), AssistantError> {
        // Two files may share a folder, which is empty once both are gone.
        let mut made_folders = Vec::new();
        for planned in plan.files {
            let PlannedSettings { file, after, record, .. } = planned;
            let records = &self.folders.records;
            match record {
                // Before the file, so that a kill in between leaves nothing that cannot be restored.
                RecordChange::Save(mut record) => {
                    record.made_folders.extend(file.missing_folders());
                    record.save(records, &file.path)?;
                    file.replace(after.as_deref())?;
                }
                RecordChange::Forget => {
                    let made = InstallRecord::load(records, &file.path).map(|record| record.made_folders);
                    file.replace(after.as_deref())?;
                    made_folders.extend(made.unwrap_or_default());
                    InstallRecord::forget(records, &file.path)?;
                }
                RecordChange::Keep => file.replace(after.as_deref())?,
            }
        }
        settings_file::remove_empty_folders(&made_folders);
        Ok(())
    }

    /// Returns the state of each file of the assistant.
    ///
    /// # Errors
    ///
    /// Returns an error in project scope without a repository.
    pub(crate) fn status(&self) -> Result<Vec<FileStatus>, AssistantError> {
        let mut states = Vec::new();
        for target in catalog::list_targets(self.assistant, self.scope, self.folders, self.program, StopHook::On)? {
            let path = target.path.clone();
            let (entries, state) = match self.compare(&target) {
                Ok((entries, state)) => (entries, state),
                Err(error) => (Vec::new(), FileState::Unreadable(error)),
            };
            states.push(FileStatus { path, entries, state });
        }
        Ok(states)
    }

    /// Compares a file with the installation that has the same kind of Stop hook.
    fn compare(&self, target: &SettingsTarget) -> Result<(Vec<String>, FileState), AssistantError> {
        let file = target.read()?;
        let Some(text) = &file.text else { return Ok((Vec::new(), FileState::Absent)) };
        let (_, found) = target.remove(&file.path, text)?;
        let entries: Vec<String> = found.into_iter().map(|entry| entry.name).collect();
        if entries.is_empty() {
            return Ok((entries, FileState::Absent));
        }
        let can_restore = || InstallRecord::load(&self.folders.records, &file.path)?.restore(text);
        if target.is_edited(text) && can_restore().is_none() {
            return Ok((entries, FileState::Edited));
        }
        let has_stop = entries.iter().any(|entry| catalog::is_stop_entry(entry));
        let stop = if has_stop { StopHook::On } else { StopHook::Off };
        let targets = catalog::list_targets(self.assistant, self.scope, self.folders, self.program, stop)?;
        let Some(wanted) = targets.into_iter().find(|wanted| wanted.path == target.path) else {
            return Ok((entries, FileState::Outdated));
        };
        let is_current = wanted.is_current(&file.path, text)?;
        Ok((entries, if is_current { FileState::Current } else { FileState::Outdated }))
    }
}

/// Content of a file without revdeck's entries.
struct FileBase {
    /// `None` without a file.
    text: Option<String>,
    /// True if the bytes are those from before the installation.
    is_exact: bool,
    has_entries: bool,
}

fn find_base(
    target: &SettingsTarget,
    file: &AssistantFile,
    record: Option<&InstallRecord>,
) -> Result<FileBase, AssistantError> {
    let Some(text) = &file.text else {
        return Ok(FileBase { text: None, is_exact: true, has_entries: false });
    };
    // Also where a record would do: a damaged file is refused in either case.
    let (rest, entries) = target.remove(&file.path, text)?;
    let has_entries = !entries.is_empty();
    if let Some(original) = record.and_then(|record| record.restore(text)) {
        return Ok(FileBase { text: original, is_exact: true, has_entries });
    }
    let text = if target.format == FileFormat::Whole { rest } else { Some(rest.unwrap_or_default()) };
    Ok(FileBase { text, is_exact: false, has_entries })
}
