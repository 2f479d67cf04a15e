//! Finds the program of an agent and builds its arguments and its environment.
//!
//! - Nothing in the reviewed code decides which program runs.
//! - The options restrict an agent to reading, or to writing files of its folder for a fix. They disable other tools,
//!   and settings, hooks and servers from the folder.

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{CommandDialect, FolderAccess};

/// Files and folders with which a repository tells agents which commands to run, where to send data or what to do.
///
/// Claude Code and Codex have options to ignore them. Gemini CLI obeys all of them in a trusted folder, and in an
/// untrusted folder it does not work without a terminal. Therefore [`crate::git::Repo::create_checkout`] leaves them
/// out of the checkout. The diff still shows what a change does to them.
pub const AGENT_SETTINGS_PATHS: [&str; 13] = [
    ".agents",
    ".claude",
    ".codex",
    ".cursor",
    ".env",
    ".env.local",
    ".gemini",
    ".mcp.json",
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.local.md",
    "CLAUDE.md",
    "GEMINI.md",
];

/// Variables that an agent's session sets for its commands. An agent that revdeck starts would take them for its own.
const SESSION_VARIABLES: [&str; 9] = [
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "OLDPWD",
];

const CLAUDE_OPTIONS: &[&[&str]] = &[
    &["-p"],
    &["--output-format", "stream-json"],
    &["--verbose"],
    &["--include-partial-messages"],
    &["--strict-mcp-config"],
    &["--setting-sources", "user"],
    &["--disable-slash-commands"],
    &["--no-session-persistence"],
];
const CODEX_OPTIONS: &[&[&str]] = &[
    &["--skip-git-repo-check"],
    &["--ephemeral"],
    &["--color", "never"],
    &["-c", "project_doc_max_bytes=0"],
    &["-c", "web_search=\"disabled\""],
];
const GEMINI_OPTIONS: &[&[&str]] = &[
    &["--output-format", "stream-json"],
    // No server and no extension has this name.
    &["--allowed-mcp-server-names", "none"],
    &["--extensions", "none"],
    &["-p", "Do what the text from standard input says."],
];

const CLAUDE_READ_OPTIONS: &[&[&str]] = &[&["--permission-mode", "plan"], &["--tools", "Read,Grep,Glob"]];
/// Edits of files in the folder are accepted. Every other permission request is refused, because there is no terminal.
const CLAUDE_WRITE_OPTIONS: &[&[&str]] =
    &[&["--permission-mode", "acceptEdits"], &["--tools", "Read,Grep,Glob,Edit,Write"]];
const CODEX_READ_OPTIONS: &[&[&str]] = &[&["--sandbox", "read-only"]];
/// The sandbox allows writes in the folder. Its default would allow the folders for temporary files too.
const CODEX_WRITE_OPTIONS: &[&[&str]] = &[
    &["--sandbox", "workspace-write"],
    &["-c", "sandbox_workspace_write.exclude_slash_tmp=true"],
    &["-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"],
];
const GEMINI_READ_OPTIONS: &[&[&str]] = &[&["--approval-mode", "plan"]];
const GEMINI_WRITE_OPTIONS: &[&[&str]] = &[&["--approval-mode", "auto_edit"]];

/// Alternative names of options.
const OPTION_ALIASES: [(&str, &str); 8] = [
    ("-p", "--print"),
    ("-p", "--prompt"),
    ("--output-format", "-o"),
    ("--sandbox", "-s"),
    ("--extensions", "-e"),
    ("--model", "-m"),
    ("--tools", "--allowedTools"),
    ("--tools", "--allowed-tools"),
];

impl CommandDialect {
    /// Builds the arguments: the user's arguments first, then the options that make the program a reviewer. An option
    /// that the user gave is not added again.
    pub fn build_arguments(
        self,
        theirs: &[String],
        model: Option<&str>,
        effort: Option<&str>,
        access: FolderAccess,
    ) -> Vec<String> {
        let mut arguments = theirs.to_vec();
        let mut add = |option: &[&str]| {
            if !is_given(theirs, option) {
                arguments.extend(option.iter().map(|&word| word.to_owned()));
            }
        };
        let model = model.filter(|model| !model.is_empty());
        let with_model = |add: &mut dyn FnMut(&[&str])| {
            if let Some(model) = model {
                add(&["--model", model]);
            }
        };
        match self {
            Self::Claude => {
                CLAUDE_OPTIONS.iter().for_each(|option| add(option));
                let may = if access == FolderAccess::Write { CLAUDE_WRITE_OPTIONS } else { CLAUDE_READ_OPTIONS };
                may.iter().for_each(|option| add(option));
                with_model(&mut add);
                if let Some(effort) = effort {
                    add(&["--effort", effort]);
                }
            }
            Self::Codex => {
                add(&["exec"]);
                add(&["--json"]);
                let may = if access == FolderAccess::Write { CODEX_WRITE_OPTIONS } else { CODEX_READ_OPTIONS };
                may.iter().for_each(|option| add(option));
                CODEX_OPTIONS.iter().for_each(|option| add(option));
                with_model(&mut add);
                if let Some(effort) = effort {
                    add(&["-c", &format!("model_reasoning_effort={effort:?}")]);
                }
                // The prompt is on standard input.
                add(&["-"]);
            }
            Self::Gemini => {
                let may = if access == FolderAccess::Write { GEMINI_WRITE_OPTIONS } else { GEMINI_READ_OPTIONS };
                may.iter().for_each(|option| add(option));
                GEMINI_OPTIONS.iter().for_each(|option| add(option));
                with_model(&mut add);
            }
            Self::Plain => {}
        }
        arguments
    }
}

/// Returns `true` if the user's arguments contain the option. For `-c key=value` the key is compared.
fn is_given(theirs: &[String], option: &[&str]) -> bool {
    let name = match option {
        ["-c", pair] => pair.split('=').next().unwrap_or_default(),
        [name, ..] => name,
        [] => return true,
    };
    let aliases = OPTION_ALIASES.iter().filter(|(option, _)| *option == name).map(|(_, alias)| *alias);
    let mut names = aliases.chain([name]);
    names.any(|name| {
        theirs.iter().any(|word| word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
    })
}

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
    dialect: CommandDialect,
    extra: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsStr| {
        let name = name.to_string_lossy();
        // All variables of git are removed: they name the repository, the index or the settings of the caller.
        !name.starts_with("REVDECK_") && !name.starts_with("GIT_") && !SESSION_VARIABLES.contains(&name.as_ref())
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
    if dialect == CommandDialect::Gemini {
        // Safe because of `AGENT_SETTINGS_PATHS`.
        set("GEMINI_CLI_TRUST_WORKSPACE".as_ref(), "true".as_ref());
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
    use rstest::rstest;

    use super::*;

    fn render_arguments(dialect: CommandDialect, theirs: &[&str]) -> String {
        let theirs: Vec<String> = theirs.iter().map(|&word| word.to_owned()).collect();
        dialect.build_arguments(&theirs, Some("m-1"), Some("high"), FolderAccess::Read).join(" ")
    }

    #[rstest]
    #[case(CommandDialect::Claude, &["--permission-mode acceptEdits", "--tools Read,Grep,Glob,Edit,Write"], &["plan", "Bash"])]
    #[case(CommandDialect::Codex, &["--sandbox workspace-write", "exclude_slash_tmp=true"], &["read-only", "danger"])]
    #[case(CommandDialect::Gemini, &["--approval-mode auto_edit"], &["plan", "yolo"])]
    fn agents_that_fix_write_files_and_do_nothing_else(
        #[case] dialect: CommandDialect,
        #[case] has: &[&str],
        #[case] has_not: &[&str],
    ) {
        let words = dialect.build_arguments(&[], None, None, FolderAccess::Write).join(" ");
        assert!(has.iter().all(|word| words.contains(word)), "{words}");
        assert!(!has_not.iter().any(|word| words.contains(word)), "{words}");
        assert_eq!(
            dialect.build_arguments(&["--tools=Read".to_owned()], None, None, FolderAccess::Write)[0],
            "--tools=Read"
        );
    }

    #[test]
    fn agents_are_called_to_read_only() {
        assert_eq!(
            render_arguments(CommandDialect::Claude, &[]),
            "-p --output-format stream-json --verbose --include-partial-messages --strict-mcp-config --setting-sources \
             user --disable-slash-commands --no-session-persistence --permission-mode plan --tools Read,Grep,Glob \
             --model m-1 --effort high"
        );
        assert_eq!(
            render_arguments(CommandDialect::Codex, &[]),
            "exec --json --sandbox read-only --skip-git-repo-check --ephemeral --color never -c \
             project_doc_max_bytes=0 -c web_search=\"disabled\" --model m-1 -c model_reasoning_effort=\"high\" -"
        );
        assert_eq!(
            render_arguments(CommandDialect::Gemini, &[]),
            "--approval-mode plan --output-format stream-json --allowed-mcp-server-names none --extensions none -p Do \
             what the text from standard input says. --model m-1"
        );
        assert_eq!(render_arguments(CommandDialect::Plain, &["--x", "y"]), "--x y");
    }

    #[rstest]
    #[case(CommandDialect::Claude, &["--tools=Read", "--model", "other"], &["--tools Read,Grep,Glob", "m-1"])]
    #[case(CommandDialect::Claude, &["--print"], &["-p"])]
    #[case(CommandDialect::Codex, &["exec", "-s", "workspace-write"], &["exec exec", "read-only"])]
    #[case(CommandDialect::Codex, &["-c", "web_search=\"live\"", "-c", "model_reasoning_effort=low"], &["disabled", "high"])]
    #[case(CommandDialect::Gemini, &["-m", "other", "-o", "json"], &["m-1", "stream-json"])]
    fn what_the_user_chose_is_not_said_again(
        #[case] dialect: CommandDialect,
        #[case] theirs: &[&str],
        #[case] absent: &[&str],
    ) {
        let words = render_arguments(dialect, theirs);
        assert!(words.starts_with(&theirs.join(" ")), "{words}");
        for absent in absent {
            assert!(!format!("{words} ").contains(&format!("{absent} ")), "{words}");
        }
    }

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
        let mut found = build_environment(ours, Path::new("/c/one"), CommandDialect::Gemini, &extra);
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
