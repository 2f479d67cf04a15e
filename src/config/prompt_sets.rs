//! Reads the user's prompt sets: folders `prompts/NAME/` next to `config.toml`, so that prompts can be compared.
//!
//! - A set replaces the prompts of which it has a file; the others are the user's own ones, or the embedded ones.
//! - A set is for reviews: it has no prompts of fixes and questions.
//! - A set with a mistake is refused: a comparison with it would not be about what its user thinks.

use std::path::{Path, PathBuf};

use super::closest_word::did_you_mean;
use super::prompts::{describe_unknown_file, list_prompt_files};
use super::{ConfigError, Paths, PromptName, Prompts};
use crate::domain::text::sanitize_line;

/// Name for the prompts outside of a set.
pub const DEFAULT_PROMPT_SET: &str = "default";
/// Explains what a set is, for errors.
const ADVICE: &str = "a prompt set is a folder prompts/NAME next to config.toml, with files like system.md; \
                      `revdeck config defaults prompts/system` prints a text to begin with";

impl Prompts {
    /// Loads the prompts of a set, or those outside of a set for `None`.
    ///
    /// # Errors
    ///
    /// Fails as [`Prompts::load`], if there is no such set, and if the set has no prompt or a file that is none.
    pub fn load_set(paths: &Paths, set: Option<&str>) -> Result<Self, ConfigError> {
        let mut prompts = Self::load(paths)?;
        let Some(set) = set else { return Ok(prompts) };
        let folder = find_prompt_set(paths, set)?;
        list_set_prompts(&folder)?;
        prompts.replace_from(&folder, review_prompts())?;
        Ok(prompts)
    }
}

/// Lists the names of the user's prompt sets, sorted.
pub fn list_prompt_sets(paths: &Paths) -> Vec<String> {
    let entries = std::fs::read_dir(paths.prompts_folder()).into_iter().flatten().flatten();
    // Follows symbolic links, as the files of a set may be links, too.
    let folders = entries.filter(|entry| entry.path().is_dir());
    let names = folders.filter_map(|entry| entry.file_name().to_str().map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| is_set_name(name)).collect();
    names.sort();
    names
}

/// Describes a set: the prompts that it replaces.
///
/// # Errors
///
/// As [`Prompts::load_set`].
pub fn describe_prompt_set(paths: &Paths, set: &str) -> Result<String, ConfigError> {
    Prompts::load_set(paths, Some(set))?;
    Ok(format!("the set {set} replaces {}", list_set_prompts(&find_prompt_set(paths, set)?)?.join(", ")))
}

/// Returns true for the name of a set: it stands in prompt-policy versions, which have separators.
fn is_set_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain) && name != DEFAULT_PROMPT_SET
}

fn find_prompt_set(paths: &Paths, set: &str) -> Result<PathBuf, ConfigError> {
    let folder = paths.prompts_folder();
    let known = list_prompt_sets(paths);
    if known.iter().any(|name| name == set) {
        return Ok(folder.join(set));
    }
    let meant = did_you_mean(set, known.iter().map(String::as_str));
    let advice = if known.is_empty() { ADVICE.to_owned() } else { format!("there are: {}", known.join(", ")) };
    let problem = format!("there is no prompt set {:?}{meant}", sanitize_line(set));
    Err(ConfigError::PromptSet { folder, problem, advice })
}

/// Returns the prompts of a review, which a set can replace.
fn review_prompts() -> impl Iterator<Item = PromptName> + Clone {
    PromptName::ALL.iter().copied().filter(|name| name.is_of_review())
}

/// Lists the files of a set, and refuses one that is no prompt of a review.
fn list_set_prompts(folder: &Path) -> Result<Vec<String>, ConfigError> {
    let wrong =
        |problem: String| Err(ConfigError::PromptSet { folder: folder.to_owned(), problem, advice: ADVICE.to_owned() });
    let files = list_prompt_files(folder);
    if files.is_empty() {
        return wrong("this prompt set has no prompt".to_owned());
    }
    match files.iter().find(|file| review_prompts().all(|known| known.file() != file.as_str())) {
        Some(unknown) if PromptName::ALL.iter().any(|known| known.file() == unknown) => {
            wrong(format!("{unknown}.md is no prompt of a review; move it to prompts/"))
        }
        Some(unknown) => wrong(describe_unknown_file(unknown, review_prompts())),
        None => Ok(files),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::Prompt;

    #[test]
    fn a_set_replaces_the_prompts_of_which_it_has_a_file() {
        let home = tempfile::tempdir().expect("a folder");
        let paths = Paths::from_home(home.path());
        assert_eq!(list_prompt_sets(&paths), [""; 0]);
        for (file, text) in [
            ("more.md", "Own.\n{{diff}}"),
            ("last.md", "Own last."),
            ("strict/last.md", "Strict last."),
            ("empty/README", "no prompt"),
            ("typo/sytem.md", "Role."),
            ("other/ask.md", "Answer."),
            ("wrong/task.md", "Without the diff."),
            ("default/last.md", "Not a set."),
            (".hidden/last.md", "Not a set."),
        ] {
            let path = paths.prompts_folder().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        assert_eq!(list_prompt_sets(&paths), ["empty", "other", "strict", "typo", "wrong"]);
        let own = Prompts::load_set(&paths, None).expect("sound");
        assert_eq!(own, Prompts::load(&paths).expect("sound"));
        let strict = Prompts::load_set(&paths, Some("strict")).expect("sound");
        assert_eq!(strict.render(&Prompt::Last), "Strict last.");
        assert_eq!(strict.render(&Prompt::More { diff: "D", later: "" }), "Own.\nD");
        assert_ne!(strict.version(), own.version());
        assert_eq!(describe_prompt_set(&paths, "strict").expect("sound"), "the set strict replaces last");
        for (set, problem) in [
            (
                "strickt",
                "there is no prompt set \"strickt\"; did you mean \"strict\"?; there are: empty, other, strict",
            ),
            ("default", "there is no prompt set \"default\""),
            ("../prompts", "there is no prompt set \"../prompts\""),
            ("empty", "empty: this prompt set has no prompt; a prompt set is a folder"),
            ("typo", "typo: sytem.md is no prompt; there are: system.md"),
            ("other", "other: ask.md is no prompt of a review; move it to prompts/"),
            ("wrong", "task.md:1:1: task.md needs {{diff}}"),
        ] {
            let error = Prompts::load_set(&paths, Some(set)).expect_err(set);
            let said = format!("{error}; {}", error.hint());
            assert!(said.contains(problem), "{said}");
        }
    }
}
