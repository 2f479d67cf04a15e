//! Opens the user's editor (`$VISUAL` or `$EDITOR`) at a line; each editor has its own syntax for the line
//! number.

use std::path::Path;
use std::process::Command;

use crate::domain::is_repository_path;
use crate::domain::text::sanitize_line;

/// Builds the command line for a file and a 1-based line. `setting` is the value of `$VISUAL` or `$EDITOR`,
/// arguments included; an empty setting means `vi`.
pub fn build_arguments(setting: &str, file: &Path, line: u32) -> Vec<String> {
    let mut words = split_command(setting);
    if words.is_empty() {
        words.push("vi".to_owned());
    }
    let program =
        Path::new(&words[0]).file_stem().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let path = file.to_string_lossy().into_owned();
    let line = line.max(1);
    match program.as_str() {
        "code" | "code-insiders" | "codium" | "cursor" | "windsurf" => {
            if !words.iter().any(|word| word == "--wait" || word == "-w") {
                words.push("--wait".to_owned());
            }
            words.extend(["--goto".to_owned(), format!("{path}:{line}")]);
        }
        "hx" | "helix" | "zed" | "subl" | "sublime_text" | "lapce" => words.push(format!("{path}:{line}")),
        "idea" | "pycharm" | "clion" | "goland" | "rustrover" | "webstorm" => {
            words.extend(["--line".to_owned(), line.to_string(), path]);
        }
        "kate" => words.extend(["--line".to_owned(), line.to_string(), "--block".to_owned(), path]),
        "mate" => words.extend(["--wait".to_owned(), "--line".to_owned(), line.to_string(), path]),
        // vi, vim, nvim, nano, emacs, emacsclient, kak, micro, joe, mg, ne and most other editors.
        _ => words.extend([format!("+{line}"), path]),
    }
    words
}

/// Runs the editor with a file of the repository, and waits until it exits.
///
/// # Errors
///
/// Returns an error if the path leads out of the repository or to git's own files, as the path of a received finding could; if
/// the file does not exist, the editor cannot be started, or it exits with a failure.
pub fn open_editor(setting: &str, root: &Path, path: &str, line: u32) -> Result<(), String> {
    if !is_repository_path(path) {
        return Err(format!("{} is not a path of the repository", sanitize_line(path)));
    }
    let file = root.join(path);
    if !file.exists() {
        return Err(format!("{} is not in the working tree any more", file.display()));
    }
    run_editor(setting, root, &file, line)
}

/// Runs the editor with a file that need not exist, and waits until it exits.
///
/// # Errors
///
/// Returns an error if the editor cannot be started, or exits with a failure.
pub fn run_editor(setting: &str, root: &Path, file: &Path, line: u32) -> Result<(), String> {
    let words = build_arguments(setting, file, line);
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    match Command::new(program).args(arguments).current_dir(root).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program} ended with {status}")),
        Err(error) => Err(format!("cannot start {program}: {error}; set VISUAL or EDITOR")),
    }
}

/// Returns the line (1-based) of a setting in the text of a settings file; the first line if it is not there.
pub fn find_setting_line(text: &str, setting: &str) -> u32 {
    let is_setting = |line: &str| line.split_once('=').is_some_and(|(key, _)| key.trim() == setting);
    text.lines().position(is_setting).and_then(|at| u32::try_from(at + 1).ok()).unwrap_or(1)
}

/// Splits words like a shell, with quotes and backslashes but no expansion.
fn split_command(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(characters.next()),
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_by_its_name() {
        let text = "theme = \"dark\"\n# notify = \"bell\"\n notify=\"none\"\n\n[budget]\nrun_cost = 1\n";
        for (setting, expected) in [("theme", 1), ("notify", 3), ("run_cost", 6), ("on_open", 1)] {
            assert_eq!(find_setting_line(text, setting), expected, "{setting}");
        }
    }

    #[test]
    fn only_files_of_the_repository_are_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        for place in ["root/.git/config", "root/git~1/config", "root/a.rs", "outside"] {
            let file = folder.path().join(place);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, "").expect("a file");
        }
        let outside = folder.path().join("outside");
        for (path, expected) in [
            ("a.rs", Ok(())),
            (".git/config", Err(".git/config is not a path of the repository".to_owned())),
            ("git~1/config", Err("git~1/config is not a path of the repository".to_owned())),
            ("../outside", Err("../outside is not a path of the repository".to_owned())),
            (&*outside.to_string_lossy(), Err(format!("{} is not a path of the repository", outside.display()))),
            ("b.rs", Err(format!("{} is not in the working tree any more", root.join("b.rs").display()))),
        ] {
            assert_eq!(open_editor("true", &root, path, 1), expected, "{path}");
        }
    }

    #[test]
    fn each_editor_is_told_the_line_in_its_own_way() {
        for (setting, expected) in [
            ("", "vi|+7|/r/a b.rs"),
            ("vim", "vim|+7|/r/a b.rs"),
            ("/usr/bin/nvim -u NONE", "/usr/bin/nvim|-u|NONE|+7|/r/a b.rs"),
            ("nano", "nano|+7|/r/a b.rs"),
            ("emacsclient -nw", "emacsclient|-nw|+7|/r/a b.rs"),
            ("hx", "hx|/r/a b.rs:7"),
            ("code", "code|--wait|--goto|/r/a b.rs:7"),
            ("code -w", "code|-w|--goto|/r/a b.rs:7"),
            ("'/opt/my ed/vim' \"-c\" set\\ nu", "/opt/my ed/vim|-c|set nu|+7|/r/a b.rs"),
        ] {
            assert_eq!(build_arguments(setting, Path::new("/r/a b.rs"), 7).join("|"), expected, "{setting:?}");
        }
    }
}
