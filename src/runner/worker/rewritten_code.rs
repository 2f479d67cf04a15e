//! Finds code that a change puts into a language that the reviewer does not know.
//!
//! - It is rewritten: a file of a known language goes, and a file with the same name but for its extension comes into the
//!   same folder. Git sees a move only if half of the text stays. Without this check, a gate passes whatever the new file
//!   says.
//! - It is moved without an edit. There is nothing to review in it now, but later changes to it would not be seen.

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

/// Marks the files that were moved without an edit from a known language to one that the reviewer does not know. `read`
/// returns the content of a file of the change.
pub(in crate::runner) fn mark_moved_code(change: &mut Changeset, read: impl Fn(&str) -> Option<Vec<u8>>) {
    let Changeset { left_out, moved, unedited_moves, .. } = change;
    for file in left_out.iter_mut().filter(|file| unedited_moves.contains(&file.path)) {
        let Some(before) = moved.get(&file.path) else { continue };
        // A script may tell its language in its first line.
        let content = read(&file.path).unwrap_or_default();
        if Language::detect(before, &content).is_some() && Language::detect(&file.path, &content).is_none() {
            (file.reason, file.hidden) = (OmissionReason::UnsupportedLanguage, true);
        }
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
    fn code_that_is_moved_as_it_is_to_an_unknown_language_is_hidden() {
        for (before, after, content, expected) in [
            ("run.py", "run.xyz", "import os\n", true),
            ("run.py", "run.toml", "import os\n", true),
            ("run.py", "lib/run.py", "import os\n", false),
            ("run.py", "run", "#!/usr/bin/env python3\n", false),
            ("run.txt", "run.xyz", "", false),
        ] {
            let mut change = Changeset {
                left_out: vec![OmittedFile::new(after, OmissionReason::NoContentChange)],
                moved: [(after.to_owned(), before.to_owned())].into(),
                unedited_moves: vec![after.to_owned()],
                ..Changeset::default()
            };
            mark_moved_code(&mut change, |_| Some(content.into()));
            assert_eq!(change.left_out[0].hidden, expected, "{before} {after}");
            change.unedited_moves.clear();
            change.left_out[0] = OmittedFile::new(after, OmissionReason::NoContentChange);
            mark_moved_code(&mut change, |_| Some(content.into()));
            assert!(!change.left_out[0].hidden, "the base left it out, too");
        }
    }

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
