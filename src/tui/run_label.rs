//! Names runs as people name changes: a commit by its hash and title, a branch by its name, commits by their number.

use std::borrow::Cow;
use std::collections::HashMap;

use super::app::{App, RunSubject};
use crate::domain::text;
use crate::store::RunRow;

/// Name of commits between two ids.
const UNNAMED_RANGE: &str = "commits";
/// Commits that runs reviewed, by run id; `None` while they are being read, or if git does not have them.
pub type RunSubjects = HashMap<String, Option<RunSubject>>;

/// Digits of a commit id in a list.
const SHORT_ID_DIGITS: usize = 7;

/// Returns the name of the change that a run reviews: `worktree`, `a0c3bec`, `main..topic`, `topic since main`. Commits
/// between two ids are `commits`: nobody knows them by their ids.
pub fn format_run_label<'a>(run: &RunRow<'a>) -> Cow<'a, str> {
    if run.is_fix_review() {
        return "patch of a fix".into();
    }
    match run.scope.split_once(':') {
        Some(("commit", revision)) => run.snapshot_commit.get(..SHORT_ID_DIGITS).unwrap_or(revision).into(),
        Some(("range", range)) if range.split("..").all(is_commit_id) => UNNAMED_RANGE.into(),
        Some(("range", range)) => range.into(),
        Some(("branch", base)) => format!("{} since {base}", branch_name(run)).into(),
        _ => match run.scope {
            "all" => "whole tree".into(),
            "branch" => branch_name(run).into(),
            scope => scope.into(),
        },
    }
}

/// Returns true for a text that git takes for the id of a commit, whole or short.
fn is_commit_id(text: &str) -> bool {
    let text = text.trim_start_matches('.');
    text.len() >= SHORT_ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn branch_name<'a>(run: &RunRow<'a>) -> &'a str {
    if run.branch.is_empty() { "HEAD" } else { run.branch }
}

impl App {
    /// Describes the content of the change that a run reviews: the title of its commit, the number of its commits, else
    /// the number of its files; empty when nothing is known yet.
    pub fn describe_run_content(&self, run: &RunRow<'_>) -> String {
        let files = match run.files_total {
            0 => String::new(),
            files => text::format_count(files as usize, "file"),
        };
        let Some(Some(subject)) = self.run_list.subjects.get(run.id) else { return files };
        let (open, close) = self.display.glyphs.quotes;
        let title = match subject.title.is_empty() {
            true => "no title".to_owned(),
            false => format!("{open}{}{close}", subject.title),
        };
        match run.scope.starts_with("commit:") {
            true => title,
            false => format!("{}, latest {title}", text::format_count(subject.commits, "commit")),
        }
    }

    /// Names a run with its title, for a sentence: `a0c3bec “Retry on 429”`.
    pub fn name_run(&self, run: &RunRow<'_>) -> String {
        let label = format_run_label(run);
        match self.run_list.subjects.get(run.id) {
            Some(Some(_)) if run.scope.starts_with("commit:") => {
                format!("{label} {}", self.describe_run_content(run))
            }
            Some(Some(_)) if label == UNNAMED_RANGE => self.describe_run_content(run),
            _ => label.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tui::tests::support::{app, run_row};

    #[test]
    fn runs_are_named_by_what_they_review() {
        let fix = RunRow { scope_hash: "fix:fx_1", ..run_row("ar_1") };
        for (scope, branch, label) in [
            ("worktree", "main", "worktree"),
            ("staged", "main", "staged"),
            ("all", "main", "whole tree"),
            ("commit:v1.0", "main", "3fa2c1d"),
            ("range:a0c3bec..topic", "main", "a0c3bec..topic"),
            ("range:a0c3bec..7e1328b", "main", "commits"),
            ("range:a0c3bec...7e1328b", "main", "commits"),
            ("range:HEAD~3..HEAD", "main", "HEAD~3..HEAD"),
            ("branch:main", "topic", "topic since main"),
            ("branch:main", "", "HEAD since main"),
        ] {
            assert_eq!(format_run_label(&RunRow { scope, branch, ..run_row("ar_1") }), label);
        }
        assert_eq!(format_run_label(&fix), "patch of a fix");
        let unborn = RunRow { scope: "commit:v1.0", snapshot_commit: "", ..run_row("ar_1") };
        assert_eq!(format_run_label(&unborn), "v1.0");
    }

    #[test]
    fn the_content_is_the_title_the_commits_or_the_files() {
        let mut app = app(160, 48);
        let commit = RunRow { scope: "commit:HEAD", ..run_row("ar_1") };
        let range = RunRow { scope: "range:a..b", ..run_row("ar_1") };
        assert_eq!(app.describe_run_content(&commit), "4 files", "until the title is read");
        Arc::make_mut(&mut app.run_list.subjects).insert("ar_1".into(), None);
        assert_eq!(app.describe_run_content(&commit), "4 files");
        let subject = RunSubject { commits: 3, title: "Retry on 429".into() };
        Arc::make_mut(&mut app.run_list.subjects).insert("ar_1".into(), Some(subject));
        assert_eq!(app.describe_run_content(&commit), "“Retry on 429”");
        assert_eq!(app.describe_run_content(&range), "3 commits, latest “Retry on 429”");
        assert_eq!(app.name_run(&commit), "3fa2c1d “Retry on 429”");
        assert_eq!(app.name_run(&range), "a..b");
        let between_ids = RunRow { scope: "range:a0c3bec..7e1328b", ..range };
        assert_eq!(app.name_run(&between_ids), "3 commits, latest “Retry on 429”");
    }
}
