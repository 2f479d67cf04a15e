//! Defines the errors of settings. Each error names the file (with line and column) or variable, the key and the
//! allowed values.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::domain::text;

/// Location of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingLocation {
    /// `line` and `column` are 1-based; the column counts characters.
    File {
        path: PathBuf,
        line: usize,
        column: usize,
    },
    Variable(String),
    Flag(String),
}

impl SettingLocation {
    /// Returns the location of byte `offset` in `content`.
    pub(super) fn from_offset(path: &Path, content: &str, offset: usize) -> Self {
        let before = content.get(..offset).unwrap_or(content);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self::File {
            path: path.to_owned(),
            // Fast, because every start looks up the line of every setting.
            line: memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// Returns the path of the file, or the name of the variable or flag.
    pub fn file_name(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Variable(name) | Self::Flag(name) => name.clone(),
        }
    }

    /// Returns the line (1-based); 0 outside of files.
    pub fn line(&self) -> usize {
        match self {
            Self::File { line, .. } => *line,
            Self::Variable(_) | Self::Flag(_) => 0,
        }
    }
}

impl fmt::Display for SettingLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingLocation::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            SettingLocation::Variable(name) => write!(f, "variable {name}"),
            SettingLocation::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// Error in the settings or in a file next to them.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("cannot read {}: {problem}", path.display())]
    NotAFile { path: PathBuf, problem: String },
    #[error("{place}: this is not TOML: {}", text::sanitize_line(problem))]
    Syntax { place: SettingLocation, problem: String },
    #[error("{place}: {}: {}", text::sanitize_line(key), text::sanitize_line(problem))]
    Value { place: SettingLocation, key: String, problem: String, allowed: String },
    /// A file next to the settings has invalid content.
    #[error("{place}: {}", text::sanitize_line(problem))]
    Content { place: SettingLocation, problem: String, allowed: String },
    /// There is no such prompt set, or it has a mistake.
    #[error("{}: {}", folder.display(), text::sanitize_line(problem))]
    PromptSet { folder: PathBuf, problem: String, advice: String },
    #[error("cannot tell where this user's files are kept: there is no home directory")]
    NoHome,
    #[error("REVDECK_HOME is {value:?}, and the current folder it would start from is not known: {source}")]
    RelativeHome { value: String, source: std::io::Error },
    #[error("REVDECK_NOW is {value:?}, which is no moment as RFC 3339 writes them")]
    Now { value: String },
}

impl ConfigError {
    /// Returns advice on one line.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { .. } | Self::NotAFile { .. } => {
                "make it a readable file, or move it away: the defaults then apply".to_owned()
            }
            Self::Write { .. } => "make its folder writable, or edit the file yourself".to_owned(),
            Self::Syntax { problem, .. } => syntax_hint(problem).to_owned(),
            Self::Value { allowed, .. } | Self::Content { allowed, .. } => {
                format!("allowed: {}", text::sanitize_line(allowed))
            }
            Self::PromptSet { advice, .. } => text::sanitize_line(advice).into_owned(),
            Self::NoHome => "set HOME, or set REVDECK_HOME to a folder that revdeck may use".to_owned(),
            Self::RelativeHome { .. } => "set REVDECK_HOME to an absolute path".to_owned(),
            Self::Now { .. } => "for tests only; for example 2026-01-02T03:04:05Z".to_owned(),
        }
    }
}

/// Returns advice for a message of the TOML parser.
fn syntax_hint(problem: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|word| problem.contains(word));
    if says(&["duplicate"]) {
        "each key and each table may stand only once: remove one of them"
    } else if says(&["quoted", "must be quoted", "literal string", "missing value", "no value"]) {
        "a value stands behind the equals sign, texts in quotes: key = \"text\""
    } else if says(&["unclosed", "missing closing", "expected `]`", "expected `\"`", "expected `'`", "expected `}`"]) {
        "close what was opened there: a quote or a bracket is missing"
    } else if says(&["expected `=`", "invalid key", "unquoted key"]) {
        "a line is key = value, or the name of a table in brackets: [window]"
    } else {
        "the place says where reading stopped; `revdeck config defaults` prints a file that can be read"
    }
}
