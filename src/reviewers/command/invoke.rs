//! Finds the program of an agent and builds its environment.
//!
//! - Nothing in the reviewed code decides which program runs.

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::dialect::{self, AgentDialect};

/// Variables that sessions of several agents, or a shell, set for their commands.
const SESSION_VARIABLES: [&str; 2] = ["AI_AGENT", "OLDPWD"];

/// The reason why a program cannot be started.
#[derive(Debug, PartialEq, Eq)]
pub enum FindProgramError {
    NotInPath,
    /// A path relative to the current folder, which will be a folder with the reviewed code.
    Relative,
    NotThere(PathBuf),
    NotExecutable(PathBuf),
}

/// Finds the program in `path`, the value of `PATH`. Skips relative folders, because they would lead into the reviewed
/// code.
///
/// # Errors
///
/// [`FindProgramError`] if the program does not exist, is not executable, or is given by a relative path.
pub fn find_program(program: &str, path: &OsStr) -> Result<PathBuf, FindProgramError> {
    let given = Path::new(program);
    if given.is_absolute() {
        return match is_executable(given) {
            Some(true) => Ok(given.to_owned()),
            Some(false) => Err(FindProgramError::NotExecutable(given.to_owned())),
            None => Err(FindProgramError::NotThere(given.to_owned())),
        };
    }
    if program.is_empty() || given.components().count() != 1 || program.contains(std::path::is_separator) {
        return Err(FindProgramError::Relative);
    }
    let mut refused = None;
    for folder in split_paths(path).filter(|folder| folder.is_absolute()) {
        let file = folder.join(program);
        match is_executable(&file) {
            Some(true) => return Ok(file),
            Some(false) => refused = refused.or(Some(file)),
            None => {}
        }
    }
    Err(refused.map_or(FindProgramError::NotInPath, FindProgramError::NotExecutable))
}

/// Returns `None` if there is no such file.
fn is_executable(file: &Path) -> Option<bool> {
    let seen = file.metadata().ok()?;
    #[cfg(unix)]
    let allowed = rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    #[cfg(not(unix))]
    let allowed = true;
    Some(seen.is_file() && allowed)
}

/// Builds the environment of a program: the current environment without the variables of revdeck, git and other
/// sessions, plus the variables that a reviewer needs. The variables in `extra` come last and win.
pub fn build_environment(
    ours: impl Iterator<Item = (OsString, OsString)>,
    folder: &Path,
    program: &dyn AgentDialect,
    extra: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsStr| {
        let name = name.to_string_lossy();
        // All variables of git are removed: they name the repository, the index or the settings of the caller.
        !name.starts_with("REVDECK_")
            && !name.starts_with("GIT_")
            && !SESSION_VARIABLES.contains(&name.as_ref())
            && !dialect::all().any(|agent| agent.session_variables().contains(&name.as_ref()))
    };
    let mut environment: Vec<_> = ours.filter(|(name, _)| is_kept(name)).collect();
    let mut set = |name: &OsStr, value: &OsStr| {
        environment.retain(|(known, _)| known != name);
        environment.push((name.to_owned(), value.to_owned()));
    };
    for (name, value) in [
        // revdeck's hooks check it, so that a review does not request reviews.
        ("REVDECK_REVIEW", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("NO_COLOR", "1"),
        ("TERM", "dumb"),
    ] {
        set(name.as_ref(), value.as_ref());
    }
    for (name, value) in program.environment() {
        set(name.as_ref(), value.as_ref());
    }
    set("PWD".as_ref(), folder.as_os_str());
    if let Some(above) = folder.parent() {
        // No git command may take a repository around the checkout for the reviewed repository.
        set("GIT_CEILING_DIRECTORIES".as_ref(), above.as_os_str());
    }
    for (name, value) in extra {
        set(name, value);
    }
    if let Some((_, path)) = environment.iter_mut().find(|(name, _)| name == "PATH") {
        let absolute = split_paths(path.as_os_str()).filter(|folder| folder.is_absolute()).collect::<Vec<_>>();
        *path = std::env::join_paths(absolute).unwrap_or_default();
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::super::dialect::from_setting;
    use super::*;
    use crate::config::CommandDialect;

    #[test]
    fn the_environment_is_ours_without_what_leads_astray() {
        let ours = [
            ("PATH", "/bin:.::relative:/usr/bin"),
            ("HOME", "/h"),
            ("KEY", "k"),
            ("REVDECK_HOME", "/r"),
            ("GIT_DIR", "/g"),
            ("GIT_INDEX_FILE", "/i"),
            ("GIT_CONFIG_COUNT", "1"),
            ("CLAUDECODE", "1"),
            ("TERM", "xterm"),
        ];
        let ours = ours.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let extra = [(OsString::from("KEY"), OsString::from("other")), (OsString::from("TERM"), OsString::from("vt"))];
        let mut found = build_environment(ours, Path::new("/c/one"), from_setting(CommandDialect::Gemini), &extra);
        found.sort();
        let found: Vec<String> = found
            .iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
            .collect();
        assert_eq!(
            found,
            [
                "GEMINI_CLI_TRUST_WORKSPACE=true",
                "GIT_CEILING_DIRECTORIES=/c",
                "GIT_OPTIONAL_LOCKS=0",
                "GIT_TERMINAL_PROMPT=0",
                "HOME=/h",
                "KEY=other",
                "NO_COLOR=1",
                "PATH=/bin:/usr/bin",
                "PWD=/c/one",
                "REVDECK_REVIEW=1",
                "TERM=vt",
            ]
        );
    }

    #[cfg(unix)]
    #[test]
    fn programs_are_found_outside_of_the_reviewed_code_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        for place in [&one, &two] {
            std::fs::create_dir(place).expect("a folder");
            std::fs::write(place.join("agent"), "").expect("a file");
        }
        std::fs::set_permissions(two.join("agent"), std::fs::Permissions::from_mode(0o755)).expect("a mode");
        std::fs::set_permissions(one.join("agent"), std::fs::Permissions::from_mode(0o644)).expect("a mode");
        let path = std::env::join_paths([Path::new("relative"), &one, &two]).expect("a path");
        let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        assert_eq!(find_program("agent", &path), Ok(two.join("agent")));
        assert_eq!(find_program("agent", one.as_os_str()), Err(FindProgramError::NotExecutable(one.join("agent"))));
        assert_eq!(find_program("other", &path), Err(FindProgramError::NotInPath));
        assert_eq!(find_program(&text(&two.join("agent")), &path), Ok(two.join("agent")));
        assert_eq!(find_program(&text(&two.join("none")), &path), Err(FindProgramError::NotThere(two.join("none"))));
        assert_eq!(find_program(&text(&two), &path), Err(FindProgramError::NotExecutable(two.clone())));
        for relative in ["./agent", "two/agent", "../agent", ""] {
            assert_eq!(find_program(relative, &path), Err(FindProgramError::Relative), "{relative:?}");
        }
    }
}
