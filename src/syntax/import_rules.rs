//! Rules for the text of an import: the section `imports` of each language's file.

use serde::Deserialize;

use super::definition;
use super::language::Language;

/// Form of an import statement, by which its reader finds the imported names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportForm {
    /// The field `source`, or else the first string.
    #[default]
    Source,
    /// The field `path`.
    Field,
    /// Text with braces around several names: `use a::{b, c};`.
    Braces,
    /// Text with one path: `import a.b;`, `using A = b.c;`, `import a.b as c`.
    Path,
    /// Text whose last word is the name: `import struct A.B`.
    LastWord,
    /// The fields `module_name` and `name`: `from a import b, c`.
    ModuleAndNames,
}

/// How a language imports names and files.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImportRules {
    pub form: ImportForm,
    /// Words before the path.
    pub keywords: Vec<String>,
    /// Text between the parts of a path.
    pub separator: String,
    /// Sign that gives a name in braces another name, besides `as`.
    pub rename: Option<String>,
    /// Ends of a path that stand for all names in it.
    pub wildcards: Vec<String>,
    /// Functions and commands that import the file that their first argument names.
    pub calls: Vec<String>,
    /// Functions whose argument is relative to the folder of the file.
    pub relative_calls: Vec<String>,
    /// True if every node of the group `calls` imports a file.
    pub any_call: bool,
    /// Start of the path of a module that a declaration without a body names; `None` if such declarations name a file.
    pub child_modules: Option<String>,
}

/// Returns the rules of a language.
pub fn import_rules(language: Language) -> &'static ImportRules {
    &definition::sections(language).imports
}
