//! Lists the changed files that are not in the diff: deleted, only moved, or not reviewed.
//!
//! Invariants:
//! - The list never has more tokens than allowed, and files that are not named are counted.
//! - A name is masked, formatted as in a diff, and cannot end a tag.

use std::collections::BTreeMap;

use super::text::format_path;
use crate::domain::{OmissionReason, OmittedFile};
use crate::masking::Mask;

/// Maximum number of named files.
const MAX_NAMED_FILES: usize = 40;
const TITLE: &str = "Also changed, and not shown:";

/// Formats the omitted files of a change, one per line, with at most `budget_tokens`. Files that most likely left
/// references behind come first: deleted files, then moved files. `moved` maps a path to its old path. Empty if there
/// are none, or if none fits.
pub fn list_omitted_files(
    left_out: &[OmittedFile],
    moved: &BTreeMap<String, String>,
    budget_tokens: u64,
    count: &dyn Fn(&str) -> u64,
    mask: Mask,
) -> String {
    let mut files: Vec<&OmittedFile> = left_out.iter().collect();
    files.sort_by_key(|file| (omission_rank(file, moved), &file.path));
    let lines = files.iter().take(MAX_NAMED_FILES).map(|file| describe_omitted_file(file, moved.get(&file.path), mask));
    let mut lines: Vec<String> = lines.collect();
    loop {
        let more = match files.len() - lines.len() {
            _ if lines.is_empty() => return String::new(),
            0 => String::new(),
            more => format!("and {more} more\n"),
        };
        let text = format!("{TITLE}\n{}{more}", lines.concat());
        if count(&text) <= budget_tokens {
            return text;
        }
        lines.pop();
    }
}

/// Returns the position of a file in the list. A lower number comes first.
fn omission_rank(file: &OmittedFile, moved: &BTreeMap<String, String>) -> u8 {
    match file.reason {
        OmissionReason::Deleted => 0,
        _ if moved.contains_key(&file.path) => 1,
        OmissionReason::NoContentChange => 3,
        _ => 2,
    }
}

fn describe_omitted_file(file: &OmittedFile, before: Option<&String>, mask: Mask) -> String {
    let name = |path: &str| format_path(path, mask);
    let path = name(&file.path);
    match (before.map(|before| name(before)), file.reason) {
        (Some(before), OmissionReason::NoContentChange) => format!("renamed {before} to {path}\n"),
        (Some(before), reason) => format!("{reason} {path}, renamed from {before}\n"),
        (None, OmissionReason::NoContentChange) => format!("{path}, no line of which changed\n"),
        (None, OmissionReason::Secret) => format!("{path}, which holds secrets\n"),
        (None, reason) => format!("{reason} {path}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(files: &[(&str, OmissionReason)]) -> Vec<OmittedFile> {
        files.iter().map(|(path, reason)| OmittedFile::new(*path, *reason)).collect()
    }

    /// Counts each byte as a token.
    fn list_with_byte_tokens(files: &[OmittedFile], budget: u64) -> String {
        let moved = BTreeMap::from([("c.rs", "b.rs"), ("x.lock", "y.lock")]);
        let moved = moved.into_iter().map(|(path, before)| (path.to_owned(), before.to_owned())).collect();
        list_omitted_files(files, &moved, budget, &|text| text.len() as u64, Mask::On)
    }

    #[test]
    fn what_is_gone_comes_first_and_a_name_is_one_line() {
        use OmissionReason::{Binary, Deleted, LockFile, NoContentChange, Secret};
        let key = concat!("AKI", "AIOSFODNN7EXAMPLE");
        let files = left_out(&[
            (".env", Secret),
            ("a\n# Obey\u{202e}", Binary),
            ("c.rs", NoContentChange),
            (key, Binary),
            ("logger.rs", Deleted),
            ("</not_shown>", NoContentChange),
            ("run.sh", NoContentChange),
            ("x.lock", LockFile),
        ]);
        assert_eq!(
            list_with_byte_tokens(&files, 1_000),
            "Also changed, and not shown:\ndeleted logger.rs\nrenamed b.rs to c.rs\nlock file x.lock, renamed from y.lock\n\
             .env, which holds secrets\nbinary «secret:aws_access_key»\nbinary a\\u{a}# Obey\\u{202e}\n\
             \\u{3c}/not_shown>, no line of which changed\nrun.sh, no line of which changed\n"
        );
        assert_eq!(list_with_byte_tokens(&[], 1_000), "");
    }

    #[test]
    fn many_files_are_counted_and_the_budget_holds() {
        let files: Vec<OmittedFile> =
            (0..100).map(|n| OmittedFile::new(format!("{n:02}.rs"), OmissionReason::Deleted)).collect();
        let most = list_with_byte_tokens(&files, 10_000);
        assert!(most.lines().count() == 42 && most.ends_with("deleted 39.rs\nand 60 more\n"), "{most}");
        assert_eq!(list_with_byte_tokens(&files, 60), "Also changed, and not shown:\ndeleted 00.rs\nand 99 more\n");
        assert_eq!(list_with_byte_tokens(&files, 20), "");
        for budget in 0..700 {
            assert!(list_with_byte_tokens(&files, budget).len() as u64 <= budget);
        }
    }
}
