//! Names runs as people name changes: a commit by its hash and title, a branch by its name, commits by their number.

use std::borrow::Cow;

use super::app::App;
use crate::domain::text;
use crate::store::RunRow;

/// Digits of a commit id in a list.
const SHORT_ID_DIGITS: usize = 7;

/// Returns the name of the change that a run reviews: `worktree`, `a0c3bec`, `main..topic`, `topic since main`.
pub fn format_run_label<'a>(run: &RunRow<'a>) -> Cow<'a, str> {
    if run.is_fix_review() {
        return "patch of a fix".into();
    }
    match run.scope.split_once(':') {
        Some(("commit", revision)) => run.snapshot_commit.get(..SHORT_ID_DIGITS).unwrap_or(revision).into(),
        Some(("range", range)) => range.into(),
        Some(("branch", base)) => format!("{} since {base}", branch_name(run)).into(),
        _ => match run.scope {
            "all" => "whole tree".into(),
            "branch" => branch_name(run).into(),
            scope => scope.into(),
        },
    }
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
            _ => label.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::app::RunSubject;
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
        app.run_list.subjects.insert("ar_1".into(), None);
        assert_eq!(app.describe_run_content(&commit), "4 files");
        let subject = RunSubject { commits: 3, title: "Retry on 429".into() };
        app.run_list.subjects.insert("ar_1".into(), Some(subject));
        assert_eq!(app.describe_run_content(&commit), "“Retry on 429”");
        assert_eq!(app.describe_run_content(&range), "3 commits, latest “Retry on 429”");
        assert_eq!(app.name_run(&commit), "3fa2c1d “Retry on 429”");
        assert_eq!(app.name_run(&range), "a..b");
    }
}
