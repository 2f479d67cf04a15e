//! Finds code that a change rewrites into a language that the reviewer does not know: a file of a known language goes,
//! and a file with the same name but for its extension comes into the same folder.
//!
//! Git sees a move only if half of the text stays. Without this check, a gate passes whatever the new file says.

use crate::domain::{OmissionReason, OmittedFile};
use crate::git::Changeset;
use crate::syntax::language::Language;

/// Extensions of texts that no program runs: settings, data, documents. A script that becomes a settings file is
/// ordinary work.
const TEXT_EXTENSIONS: &[&str] = &[
    "adoc",
    "cfg",
    "conf",
    "css",
    "csv",
    "env",
    "html",
    "ini",
    "json",
    "json5",
    "jsonc",
    "lock",
    "md",
    "properties",
    "rst",
    "svg",
    "toml",
    "tsv",
    "xml",
    "yaml",
    "yml",
];

/// Marks the files that the change itself puts out of the reviewer's sight by their new language.
pub(super) fn mark_rewritten_code(left_out: &mut [OmittedFile], change: &Changeset) {
    let unknown = |file: &&mut OmittedFile| file.reason == OmissionReason::UnsupportedLanguage && !file.hidden;
    for file in left_out.iter_mut().filter(unknown) {
        let (stem, extension) = split_extension(&file.path);
        let is_text = TEXT_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known));
        file.hidden = !is_text && change.left_out.iter().any(|gone| is_code_named(gone, stem));
    }
}

/// Returns true if the change deletes a file of a known language with this path but for its extension.
fn is_code_named(gone: &OmittedFile, stem: &str) -> bool {
    gone.reason == OmissionReason::Deleted
        && split_extension(&gone.path).0 == stem
        && Language::detect(&gone.path, b"").is_some()
}

/// Splits a path before its extension, which is empty if there is none.
fn split_extension(path: &str) -> (&str, &str) {
    match path.rsplit_once('.') {
        Some((stem, extension)) if !extension.contains('/') => (stem, extension),
        _ => (path, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_the_name_of_deleted_code_is_hidden_by_its_new_language() {
        use OmissionReason::{Deleted, UnsupportedLanguage};
        for (gone, new, expected) in [
            ("src/pay.py", "src/pay.xyz", true),
            ("src/pay.py", "src/pay", true),
            ("src/pay.py", "src/pay.toml", false),
            ("src/pay.py", "src/pay.JSON", false),
            ("src/pay.py", "src/other.xyz", false),
            ("src/pay.py", "lib/pay.xyz", false),
            ("src/pay.txt", "src/pay.xyz", false),
        ] {
            let change = Changeset { left_out: vec![OmittedFile::new(gone, Deleted)], ..Changeset::default() };
            let mut left_out = [OmittedFile::new(new, UnsupportedLanguage)];
            mark_rewritten_code(&mut left_out, &change);
            assert_eq!(left_out[0].hidden, expected, "{gone} {new}");
        }
    }
}
