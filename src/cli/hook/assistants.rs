//! `revdeck hook install|uninstall|status` for coding assistants: shows the changes of their settings, asks, and makes
//! them.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use similar::TextDiff;

use super::super::error::{CliError, CliExitCode};
use super::super::output;
use super::super::session::Invocation;
use crate::assistants::{
    Assistant, AssistantError, AssistantFolders, AssistantInstaller, AssistantPlan, FileState, FileStatus,
    InstallScope, PlanOutcome, PlannedSettings, ProgramCall, StopHook,
};
use crate::domain::text::{sanitize_line, sanitize_lines};
use crate::git::Repo;
use crate::masking::Mask;

/// Number of unchanged lines around a change in a shown diff.
const DIFF_CONTEXT_LINES: usize = 3;

/// Choice how the changes are confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// The user is asked; without a terminal nothing is changed.
    Ask,
    /// The changes are made without a question.
    Given,
    /// The changes are only shown.
    DryRun,
}

/// Change of an assistant's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsAction {
    Install(StopHook),
    Uninstall,
}

impl From<AssistantError> for CliError {
    fn from(error: AssistantError) -> Self {
        let message = error.to_string();
        let failure = match &error {
            AssistantError::Io { .. } | AssistantError::Moved { .. } => Self::failed(message),
            _ => Self::usage(message),
        };
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Shows the changes of an assistant's settings, and makes them after a confirmation.
///
/// # Errors
///
/// Returns an error if a settings file is damaged, out of place or cannot be written, or if there is nobody to ask.
pub(super) fn change(
    invocation: &Invocation,
    assistant: Assistant,
    scope: InstallScope,
    action: SettingsAction,
    confirmation: Confirmation,
) -> Result<CliExitCode, CliError> {
    let folders = find_folders(invocation)?;
    let program = find_program(scope)?;
    let installer = AssistantInstaller { assistant, scope, folders: &folders, program: &program };
    let plan = match action {
        SettingsAction::Install(stop) => installer.plan_install(stop)?,
        SettingsAction::Uninstall => installer.plan_uninstall()?,
    };
    let mut said = String::new();
    if confirmation != Confirmation::Given {
        plan.files.iter().filter(|file| file.is_change()).for_each(|file| said.push_str(&format_diff(file)));
    }
    for note in &plan.notes {
        said.push_str(&format!("note: {}\n", sanitize_line(note)));
    }
    output::print(&said)?;
    if plan.is_change() && confirmation == Confirmation::Ask && !ask()? {
        output::print("nothing was changed\n")?;
        return Ok(CliExitCode::Done);
    }
    let mut said = describe(&plan, &folders, action, confirmation);
    let is_change = plan.is_change();
    if confirmation != Confirmation::DryRun {
        installer.apply(plan)?;
    }
    if let SettingsAction::Install(stop) = action
        && is_change
    {
        said.push_str(&list_next_steps(assistant, scope, stop, &program));
    }
    if let SettingsAction::Install(_) = action {
        let states = read_states(assistant, &folders)?;
        if states.iter().any(|(other, files)| *other != scope && has_hooks(files)) {
            said.push_str(&format!("note: {}\n", describe_both_scopes(assistant)));
        }
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

/// Asks whether to make the changes.
fn ask() -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CliError::usage("nothing was changed: there is no terminal to ask on")
            .hint("add --yes to make these changes, or --dry-run to only see them"));
    }
    output::print("make these changes? [y/N] ")?;
    let mut answer = String::new();
    let _ = std::io::stdout().flush();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| CliError::failed(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn format_diff(file: &PlannedSettings) -> String {
    let name = file.path().to_string_lossy().into_owned();
    let diff = TextDiff::from_lines(file.before().unwrap_or_default(), file.after().unwrap_or_default());
    let old = if file.before().is_some() { name.as_str() } else { "/dev/null" };
    let new = if file.after().is_some() { name.as_str() } else { "/dev/null" };
    let text = diff.unified_diff().context_radius(DIFF_CONTEXT_LINES).header(old, new).to_string();
    // Settings can hold keys, and a terminal's user may share the screen.
    sanitize_lines(&Mask::On.mask_key_shapes(&text), 4)
}

fn describe(
    plan: &AssistantPlan,
    folders: &AssistantFolders,
    action: SettingsAction,
    confirmation: Confirmation,
) -> String {
    let would = if confirmation == Confirmation::DryRun { "would be " } else { "" };
    let mut said = String::new();
    for file in &plan.files {
        let name = format_place(file.path(), folders);
        let line = match file.outcome {
            PlanOutcome::Unchanged if file.before().is_none() || action == SettingsAction::Uninstall => continue,
            PlanOutcome::Unchanged => "has revdeck's entries already".to_owned(),
            PlanOutcome::Created => format!("{would}made"),
            PlanOutcome::Added => format!("revdeck's entries {would}added"),
            PlanOutcome::Updated => format!("revdeck's entries {would}updated"),
            PlanOutcome::Removed => format!("{would}removed, it was made by revdeck"),
            PlanOutcome::Restored => format!("{would}as it was before"),
            PlanOutcome::TakenOut => {
                format!("was changed since; only revdeck's entries {would}taken out, the rest stays")
            }
            PlanOutcome::LeftEdited => "was changed since, so it stays: remove it by hand".to_owned(),
        };
        said.push_str(&format!("{name}: {line}\n"));
    }
    if said.is_empty() {
        said.push_str("no entries of revdeck: nothing to do\n");
    }
    said
}

fn list_next_steps(assistant: Assistant, scope: InstallScope, stop: StopHook, program: &ProgramCall) -> String {
    let name = assistant.name();
    let mut said = format!(
        "each turn of {name} gets what reviews found; `revdeck hook uninstall {name}{}` takes it back\n",
        if scope == InstallScope::Project { " --scope project" } else { "" }
    );
    match assistant {
        Assistant::Codex => said.push_str(
            "next: start codex and trust the hooks when it asks, or in `/hooks`; until then it skips them without a \
             word, and again after each change of their command\n",
        ),
        Assistant::ClaudeCode | Assistant::Gemini | Assistant::OpenCode => {
            said.push_str(&format!("next: restart running sessions of {name}\n"));
        }
    }
    if scope == InstallScope::Project {
        said.push_str(
            "note: the files are in the working tree: where there is no revdeck in PATH the hooks do nothing\n",
        );
        if assistant == Assistant::Codex {
            said.push_str("note: codex reads them only in a project that it trusts\n");
        }
    }
    if let ProgramCall::At(path) = program {
        said.push_str(&format!(
            "note: PATH has no revdeck or another one, so {} is called\n",
            output::format_path(path)
        ));
    }
    if stop == StopHook::On && !assistant.has_stop_hook() {
        said.push_str(&format!("note: {name} has no hook for its stop, so --stop adds nothing\n"));
    }
    said
}

/// Shows the state of each assistant in both scopes as text lines.
///
/// # Errors
///
/// Returns an error if the home folder is unknown.
pub(super) fn list_states(invocation: &Invocation) -> Result<String, CliError> {
    let folders = find_folders(invocation)?;
    let mut said = String::new();
    for assistant in Assistant::ALL {
        let mut lines = Vec::new();
        let states = read_states(assistant, &folders)?;
        for (scope, files) in &states {
            lines.extend(files.iter().filter_map(|file| describe_state(assistant, *scope, file, &folders)));
        }
        if is_in_both_scopes(&states) {
            lines.push(describe_both_scopes(assistant));
        }
        let name = assistant.name();
        if lines.is_empty() {
            lines.push(format!("not in: `revdeck hook install {name}` puts it in"));
        }
        for line in lines {
            said.push_str(&format!("{name}  {line}\n"));
        }
    }
    Ok(said)
}

/// Returns the state of each assistant in both scopes for `hook status --format json`.
///
/// # Errors
///
/// Returns an error if the home folder is unknown.
pub(super) fn build_states_json(invocation: &Invocation) -> Result<Vec<Value>, CliError> {
    let folders = find_folders(invocation)?;
    let mut states = Vec::new();
    for assistant in Assistant::ALL {
        let scopes = read_states(assistant, &folders)?;
        let is_twice = is_in_both_scopes(&scopes);
        for (scope, files) in scopes {
            let is_in = |file: &FileStatus| !file.entries.is_empty();
            let all: Vec<Value> = files
                .iter()
                .map(|file| {
                    json!({
                        "file": file.path.to_string_lossy(),
                        "state": state_word(&file.state),
                        "entries": file.entries,
                        "obstacle": match &file.state {
                            FileState::Unreadable(error) => Value::from(error.to_string()),
                            _ => Value::Null,
                        },
                    })
                })
                .collect();
            states.push(json!({
                "host": assistant.name(),
                "scope": scope.word(),
                "installed": files.iter().any(is_in),
                "also_in_other_scope": is_twice,
                "files": all,
            }));
        }
    }
    Ok(states)
}

/// Returns whether files have entries that an assistant calls at its turns.
fn has_hooks(files: &[FileStatus]) -> bool {
    files.iter().flat_map(|file| &file.entries).any(|entry| entry.starts_with("hooks.") || entry == "plugin")
}

fn is_in_both_scopes(states: &[(InstallScope, Vec<FileStatus>)]) -> bool {
    states.len() > 1 && states.iter().all(|(_, files)| has_hooks(files))
}

/// Returns the sentence for hooks in the settings of the user and in the files of the repository.
fn describe_both_scopes(assistant: Assistant) -> String {
    let name = assistant.name();
    format!(
        "in your settings and in this repository: {name} calls both at each turn, and the second call prints nothing; \
         `revdeck hook uninstall {name} --scope user` or `--scope project` takes one out"
    )
}

type ScopedStates = Vec<(InstallScope, Vec<FileStatus>)>;

fn read_states(assistant: Assistant, folders: &AssistantFolders) -> Result<ScopedStates, CliError> {
    let mut states = Vec::new();
    for scope in [InstallScope::User, InstallScope::Project] {
        if scope == InstallScope::Project && folders.project.is_none() {
            continue;
        }
        let program = find_program(scope)?;
        let installer = AssistantInstaller { assistant, scope, folders, program: &program };
        states.push((scope, installer.status()?));
    }
    Ok(states)
}

fn state_word(state: &FileState) -> &'static str {
    match state {
        FileState::Absent => "absent",
        FileState::Current => "current",
        FileState::Outdated => "outdated",
        FileState::Edited => "edited",
        FileState::Unreadable(_) => "unreadable",
    }
}

fn describe_state(
    assistant: Assistant,
    scope: InstallScope,
    file: &FileStatus,
    folders: &AssistantFolders,
) -> Option<String> {
    let name = format_place(&file.path, folders);
    let update = format!("`revdeck hook install {} --scope {}`", assistant.name(), scope.word());
    let facts = match &file.state {
        FileState::Absent => return None,
        FileState::Unreadable(error) => return Some(sanitize_line(&error.to_string()).into_owned()),
        FileState::Current => "in",
        FileState::Outdated => "outdated",
        FileState::Edited => "changed by somebody",
    };
    let mut line = format!("{name}: {facts}; {}", sanitize_line(&file.entries.join(", ")));
    match file.state {
        FileState::Outdated => line.push_str(&format!("; {update} updates it")),
        FileState::Edited => line.push_str(&format!("; remove it by hand, then {update} makes it anew")),
        _ => {}
    }
    if assistant == Assistant::Codex && file.entries.iter().any(|entry| entry.starts_with("hooks.")) {
        line.push_str(if is_trusted_by_codex(folders, &file.path) {
            "; trusted in codex, which asks again when their command changes"
        } else {
            "; not trusted yet, so codex skips them: start codex, which asks, or open `/hooks` in it"
        });
    }
    Some(line)
}

/// Returns whether the user has trusted the hooks of a file. Codex notes that in its settings, under the path of the file
/// and the name of the event.
fn is_trusted_by_codex(folders: &AssistantFolders, file: &Path) -> bool {
    let own = folders.codex.clone().unwrap_or_else(|| folders.home.join(".codex"));
    let settings = std::fs::read_to_string(own.join("config.toml")).unwrap_or_default();
    let names = |file: &Path| settings.contains(&format!("{}:user_prompt_submit:", file.display()));
    names(file) || file.canonicalize().is_ok_and(|file| names(&file))
}

/// Formats a path: relative in the repository, with `~` in the home folder.
fn format_place(file: &Path, folders: &AssistantFolders) -> String {
    if let Some(path) = folders.project.as_ref().and_then(|root| file.strip_prefix(root).ok()) {
        return output::format_path(path);
    }
    match file.strip_prefix(&folders.home) {
        Ok(path) => output::format_path(&Path::new("~").join(path)),
        Err(_) => output::format_path(file),
    }
}

fn find_folders(invocation: &Invocation) -> Result<AssistantFolders, CliError> {
    let home = std::env::home_dir().filter(|home| home.is_absolute()).ok_or_else(|| {
        CliError::usage("the home folder is unknown, and with it where assistants keep their settings").hint("set HOME")
    })?;
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| named(name).and_then(|path| std::path::absolute(path).ok());
    let assistants = invocation.paths.state.join("assistants");
    Ok(AssistantFolders {
        home,
        project: Repo::discover(&Invocation::current_folder()?).ok().map(|repo| repo.root()),
        claude: absolute("CLAUDE_CONFIG_DIR"),
        codex: absolute("CODEX_HOME"),
        xdg_config: absolute("XDG_CONFIG_HOME"),
        records: assistants.join("installs"),
    })
}

/// Returns the call of revdeck for settings of a scope: by name where `PATH` finds this program, so that the command
/// stays the same when revdeck is updated.
fn find_program(scope: InstallScope) -> Result<ProgramCall, CliError> {
    if scope == InstallScope::Project {
        return Ok(ProgramCall::IfPresent);
    }
    let program = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("revdeck does not find its own file: {error}")))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join("revdeck")).find(|file| file.is_file());
    let is_this = in_path.and_then(|file| file.canonicalize().ok()) == program.canonicalize().ok();
    Ok(if is_this { ProgramCall::InPath } else { ProgramCall::At(program) })
}
