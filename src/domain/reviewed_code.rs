//! Names the code of a review as people name changes: a commit by its hash, a branch by its name.

use std::borrow::Cow;

use super::{ReviewSubject, RunRecord};

/// Digits of a commit id in a name.
const SHORT_ID_DIGITS: usize = 7;

/// Code of a review, as a record or a row of a list has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewedCode<'a> {
    /// Scope in the text form of [`super::Scope`].
    pub scope: &'a str,
    /// Hash of the scope's settings; it tells a review of a patch.
    pub scope_hash: &'a str,
    /// Id of the commit with the reviewed code; empty if it is not known.
    pub snapshot_commit: &'a str,
    /// Short name of the branch; empty if HEAD is detached.
    pub branch: &'a str,
}

impl<'a> ReviewedCode<'a> {
    /// Returns the label for a list: `worktree`, `a0c3bec`, `main..topic`, `topic since main`, `whole tree`. Commits between
    /// two ids are `commits`.
    pub fn label(self) -> Cow<'a, str> {
        if self.is_patch_of_fix() {
            return "patch of a fix".into();
        }
        if self.is_unnamed_range() {
            return "commits".into();
        }
        let branch = if self.branch.is_empty() { "HEAD" } else { self.branch };
        match self.scope.split_once(':') {
            Some(("commit", revision)) => self.snapshot_commit.get(..SHORT_ID_DIGITS).unwrap_or(revision).into(),
            Some(("range", range)) => range.into(),
            Some(("branch", base)) => format!("{branch} since {base}").into(),
            _ => match self.scope {
                "all" => "whole tree".into(),
                "branch" => branch.into(),
                scope => scope.into(),
            },
        }
    }

    /// Returns the name for a sentence: as the label, but `the whole tree`, `the patch of a fix`, `a range of commits`.
    pub fn name(self) -> Cow<'a, str> {
        if self.is_unnamed_range() {
            return "a range of commits".into();
        }
        match self.is_patch_of_fix() || self.scope == "all" {
            true => format!("the {}", self.label()).into(),
            false => self.label(),
        }
    }

    /// Returns true for commits between two ids: nobody knows them by their ids.
    fn is_unnamed_range(self) -> bool {
        let range = self.scope.strip_prefix("range:").filter(|_| !self.is_patch_of_fix());
        range.is_some_and(|range| range.split("..").all(is_commit_id))
    }

    /// Returns true for commits that people know by their number and the title of the latest: those between two ids, and
    /// those counted from HEAD, which has moved on since: `HEAD~5..HEAD`.
    pub fn is_counted_range(self) -> bool {
        let range = self.scope.strip_prefix("range:").filter(|_| !self.is_patch_of_fix());
        range.is_some_and(|range| range.contains("..") && range.split("..").all(is_id_or_counted_from_head))
    }

    fn is_patch_of_fix(self) -> bool {
        self.scope_hash.starts_with(RunRecord::FIX_SCOPE_PREFIX)
    }
}

impl ReviewSubject {
    /// Returns the name of the code for a sentence, as [`ReviewedCode::name`] does.
    pub fn name(&self) -> String {
        let code = ReviewedCode {
            scope: &self.scope.to_string(),
            scope_hash: &self.scope_hash,
            snapshot_commit: &self.snapshot_commit,
            branch: &self.branch,
        };
        code.name().into_owned()
    }
}

/// Returns true for a text that git takes for the id of a commit, whole or short.
fn is_commit_id(text: &str) -> bool {
    let text = text.trim_start_matches('.');
    text.len() >= SHORT_ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true for the id of a commit, for HEAD, and for an ancestor of either: `HEAD~5`, `@^`, `a0c3bec~1`. An omitted end
/// of a range is HEAD.
fn is_id_or_counted_from_head(revision: &str) -> bool {
    let revision = revision.trim_start_matches('.');
    let (name, steps) = revision.split_at(revision.find(['~', '^']).unwrap_or(revision.len()));
    let is_step = |character: char| matches!(character, '~' | '^') || character.is_ascii_digit();
    (matches!(name, "" | "HEAD" | "@") || is_commit_id(name)) && steps.chars().all(is_step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviewed_code_has_a_label_and_a_name_for_a_sentence() {
        for (scope, branch, label, name) in [
            ("worktree", "main", "worktree", "worktree"),
            ("staged", "main", "staged", "staged"),
            ("all", "main", "whole tree", "the whole tree"),
            ("commit:v1.0", "main", "3fa2c1d", "3fa2c1d"),
            ("range:a0c3bec..topic", "main", "a0c3bec..topic", "a0c3bec..topic"),
            ("range:a0c3bec..7e1328b", "main", "commits", "a range of commits"),
            ("range:a0c3bec...7e1328b", "main", "commits", "a range of commits"),
            ("range:HEAD~3..HEAD", "main", "HEAD~3..HEAD", "HEAD~3..HEAD"),
            ("branch:main", "topic", "topic since main", "topic since main"),
            ("branch:main", "", "HEAD since main", "HEAD since main"),
            ("branch", "topic", "topic", "topic"),
            // A branch may be called like commits without a name.
            ("branch", "commits", "commits", "commits"),
        ] {
            let code = ReviewedCode { scope, scope_hash: "", snapshot_commit: "3fa2c1d09b7e4851aa", branch };
            assert_eq!((code.label().as_ref(), code.name().as_ref()), (label, name), "{scope}");
            let fix = ReviewedCode { scope_hash: "fix:fx_1", ..code };
            assert_eq!((fix.label().as_ref(), fix.name().as_ref()), ("patch of a fix", "the patch of a fix"));
        }
        let unborn = ReviewedCode { scope: "commit:v1.0", scope_hash: "", snapshot_commit: "", branch: "main" };
        assert_eq!(unborn.label(), "v1.0");
    }

    #[test]
    fn commits_between_ids_or_counted_from_head_are_known_by_their_number() {
        for (scope, is_counted) in [
            ("range:HEAD~5..HEAD", true),
            ("range:HEAD~5..", true),
            ("range:HEAD^^..HEAD~1", true),
            ("range:@~3...@", true),
            ("range:a0c3bec..7e1328b", true),
            ("range:a0c3bec~1..HEAD", true),
            ("range:main..HEAD", false),
            ("range:HEAD~5..topic", false),
            ("range:v1.0..v1.1", false),
            ("range:HEAD~x..HEAD", false),
            ("range:HEAD@{1}..HEAD", false),
            ("commit:HEAD~5", false),
            ("branch:HEAD~5", false),
        ] {
            let code = ReviewedCode { scope, scope_hash: "", snapshot_commit: "3fa2c1d09b7e4851aa", branch: "main" };
            assert_eq!(code.is_counted_range(), is_counted, "{scope}");
            assert!(!ReviewedCode { scope_hash: "fix:fx_1", ..code }.is_counted_range(), "{scope}");
        }
    }
}
