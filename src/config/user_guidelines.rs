//! Reads the user's constitution and rules, which apply to reviews in all repositories.
//!
//! They stand beside the settings and have the names that a repository's documents have: `CONSTITUTION.md` or
//! `constitution.md`, `REVIEW.md`, and every Markdown file in `rules/`. No repository can change or hide them.

use std::path::{Path, PathBuf};

use super::Paths;
use super::error::ConfigError;
use super::settings_file::{SettingsFile, SymlinkPolicy};
use crate::domain::content_hash;

/// Names of the constitution; the first existing file is used.
const CONSTITUTION_FILES: [&str; 2] = ["CONSTITUTION.md", "constitution.md"];
/// File with rules for reviewers.
const REVIEW_FILE: &str = "REVIEW.md";
/// Folder with further rules.
const RULES_FOLDER: &str = "rules";
/// Maximum number of files in the folder. Not from the literature: more than a request can hold.
const MAX_RULE_FILES: usize = 100;

/// A document of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDocument {
    /// Path relative to the folder of the settings, with `/` between names.
    pub name: String,
    pub path: PathBuf,
    /// Text without surrounding white space; not empty.
    pub text: String,
}

/// The user's constitution and rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserGuidelines {
    pub constitution: Option<UserDocument>,
    /// `REVIEW.md` first, then the files of the folder by name.
    pub rules: Vec<UserDocument>,
}

impl UserGuidelines {
    /// Loads the user's documents. Empty files count as missing.
    ///
    /// # Errors
    ///
    /// Fails if a file exists and cannot be read, is too large or is no text, or if there are more than
    /// `MAX_RULE_FILES` rules.
    pub fn load(paths: &Paths) -> Result<Self, ConfigError> {
        let read = |name: String| -> Result<Option<UserDocument>, ConfigError> {
            let found = SettingsFile::read(paths.config.join(&name), SymlinkPolicy::Follow)?;
            Ok(found.and_then(|SettingsFile { path, text }| {
                let text = text.trim();
                (!text.is_empty()).then(|| UserDocument { name, path, text: text.to_owned() })
            }))
        };
        let mut constitution = None;
        for name in CONSTITUTION_FILES {
            if constitution.is_none() {
                constitution = read(name.to_owned())?;
            }
        }
        let mut rules: Vec<UserDocument> = read(REVIEW_FILE.to_owned())?.into_iter().collect();
        for name in list_rule_files(&paths.config.join(RULES_FOLDER))? {
            rules.extend(read(format!("{RULES_FOLDER}/{name}"))?);
        }
        Ok(Self { constitution, rules })
    }

    /// Returns true if the user has neither a constitution nor rules.
    pub fn is_empty(&self) -> bool {
        self.constitution.is_none() && self.rules.is_empty()
    }

    /// Returns the documents, the constitution first.
    pub fn documents(&self) -> impl Iterator<Item = &UserDocument> {
        self.constitution.iter().chain(&self.rules)
    }

    /// Returns a hash that changes with any of the documents; `None` if there are none. It is a part of the prompt-policy
    /// version of reviewers that talk to a model.
    pub fn version(&self) -> Option<String> {
        let parts = self.documents().flat_map(|document| [document.name.as_bytes(), document.text.as_bytes()]);
        (!self.is_empty()).then(|| content_hash(parts))
    }
}

/// Returns the names of the Markdown files in the folder, sorted; nothing if there is no folder.
fn list_rule_files(folder: &Path) -> Result<Vec<String>, ConfigError> {
    let fail = |source| ConfigError::Read { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(fail(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        // Editors leave files that begin with a dot.
        let is_rule = |name: &&str| name.ends_with(".md") && !name.starts_with('.');
        names.extend(name.to_str().filter(is_rule).map(str::to_owned));
    }
    if names.len() > MAX_RULE_FILES {
        let problem = format!("it has {} Markdown files; {MAX_RULE_FILES} is the most", names.len());
        return Err(ConfigError::NotAFile { path: folder.to_owned(), problem });
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_in_order_and_every_change_shows_in_the_version() {
        let home = tempfile::tempdir().expect("a folder");
        let paths = Paths::from_home(home.path());
        let load = || UserGuidelines::load(&paths).expect("readable");
        assert_eq!((load(), load().version()), (UserGuidelines::default(), None));
        let write = |name: &str, text: &str| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("written");
        };
        write("rules/b.md", "No unwrap.\n");
        write("rules/a.md", "Tabs.\n");
        write("rules/empty.md", " \n");
        write("rules/.a.md.swp", "x");
        write("rules/notes.txt", "x");
        write("REVIEW.md", "Look at money first.\n");
        write("constitution.md", "\nNever lose data.\n");
        let known = load();
        let names: Vec<&str> = known.documents().map(|document| document.name.as_str()).collect();
        assert_eq!(names, ["constitution.md", "REVIEW.md", "rules/a.md", "rules/b.md"]);
        assert_eq!(known.constitution.as_ref().map(|document| document.text.as_str()), Some("Never lose data."));
        let version = known.version();
        assert_eq!(load().version(), version);
        write("rules/b.md", "No unwrap, no expect.\n");
        assert_ne!(load().version(), version);
    }

    #[test]
    fn a_document_that_is_no_text_is_an_error_with_its_path() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("constitution.md"), b"\xff\xfe").expect("written");
        let error = UserGuidelines::load(&Paths::from_home(home.path())).expect_err("no text").to_string();
        assert!(error.contains("constitution.md"), "{error}");
    }
}
