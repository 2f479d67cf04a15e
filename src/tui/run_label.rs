//! Names runs as people name changes: a commit by its hash and title, a branch by its name, commits by their number.

use std::borrow::Cow;
use std::collections::HashMap;

use super::app::{App, RunSubject};
use crate::domain::{ReviewedCode, RunRecord, Scope, text};
use crate::masking::mask_shown_name;
use crate::store::RunRow;

/// Commits that runs reviewed, by run id; `None` while they are being read, or if git does not have them.
pub type RunSubjects = HashMap<String, Option<RunSubject>>;

/// Returns the name of the change that a run reviews, for a list: `worktree`, `a0c3bec`, `main..topic`, `topic since main`.
pub fn format_run_label<'a>(run: &RunRow<'a>) -> Cow<'a, str> {
    reviewed_code(run).label()
}

fn reviewed_code<'a>(run: &RunRow<'a>) -> ReviewedCode<'a> {
    let RunRow { scope, scope_hash, snapshot_commit, branch, .. } = *run;
    ReviewedCode { scope, scope_hash, snapshot_commit, branch }
}

/// Quotation marks around the title of a commit.
pub type TitleQuotes = (&'static str, &'static str);

fn quote_title(subject: &RunSubject, (open, close): TitleQuotes) -> String {
    match subject.title.is_empty() {
        true => "no title".to_owned(),
        false => format!("{open}{}{close}", subject.title),
    }
}

/// Describes the commits of a scope: the title of the only one, or their number and the title of the latest.
fn describe_subject(subject: &RunSubject, scope: &str, quotes: TitleQuotes) -> String {
    let title = quote_title(subject, quotes);
    match scope.starts_with("commit:") {
        true => title,
        false => format!("{}, latest {title}", text::format_count(subject.commits, "commit")),
    }
}

/// Names the change that a run reviews with all that is known of its commits: `a0c3bec “Retry on 429”`, `3 commits, latest
/// “Retry on 429”`, `topic since main, 3 commits, latest “Retry on 429”`. `subject` are the commits, once they are read.
pub fn describe_reviewed_change(run: &RunRow<'_>, subject: Option<&RunSubject>, quotes: TitleQuotes) -> String {
    let label = format_run_label(run);
    let Some(subject) = subject else { return label.into_owned() };
    let content = describe_subject(subject, run.scope, quotes);
    match run.scope.starts_with("commit:") {
        _ if reviewed_code(run).is_counted_range() => content,
        true => format!("{label} {content}"),
        false => format!("{label}, {content}"),
    }
}

impl App {
    /// Describes the content of the change that a run reviews: the title of its commit, the number of its commits, else
    /// the number of its files; empty when nothing is known yet.
    pub fn describe_run_content(&self, run: &RunRow<'_>) -> String {
        match self.run_list.subjects.get(run.id) {
            Some(Some(subject)) => describe_subject(subject, run.scope, self.display.glyphs.quotes),
            _ if run.files_total == 0 => String::new(),
            _ => text::format_count(run.files_total as usize, "file"),
        }
    }

    /// Names the change that a run reviews, for a list, as [`format_run_label`] does; commits between two ids, and those
    /// counted from HEAD, are named by their number once it is read: `3 commits`.
    pub fn label_run<'a>(&self, run: &RunRow<'a>) -> Cow<'a, str> {
        match self.run_list.subjects.get(run.id) {
            Some(Some(subject)) if reviewed_code(run).is_counted_range() => {
                text::format_count(subject.commits, "commit").into()
            }
            _ => format_run_label(run),
        }
    }

    /// Describes the content of the change beside [`App::label_run`], without what that says already: `latest “Retry on 429”`.
    pub fn describe_content_beside_label(&self, run: &RunRow<'_>) -> String {
        match self.run_list.subjects.get(run.id) {
            Some(Some(subject)) if reviewed_code(run).is_counted_range() => match subject.commits {
                1 => quote_title(subject, self.display.glyphs.quotes),
                _ => format!("latest {}", quote_title(subject, self.display.glyphs.quotes)),
            },
            _ => self.describe_run_content(run),
        }
    }

    /// Names a run with its title, for a sentence: `a0c3bec “Retry on 429”`, `the whole tree`.
    pub fn name_run(&self, run: &RunRow<'_>) -> String {
        self.name_code(run.id, reviewed_code(run))
    }

    /// Names the run of a record as [`App::name_run`] does, without control characters, and with masked secrets.
    pub fn name_record(&self, run: &RunRecord) -> String {
        let subject = &run.subject;
        let code = ReviewedCode {
            scope: &subject.scope.to_string(),
            scope_hash: &subject.scope_hash,
            snapshot_commit: &subject.snapshot_commit,
            branch: &subject.branch,
        };
        let name = self.name_code(run.run_id.as_str(), code);
        text::sanitize_line(&mask_shown_name(&name)).into_owned()
    }

    fn name_code(&self, run: &str, code: ReviewedCode<'_>) -> String {
        let quotes = self.display.glyphs.quotes;
        match self.run_list.subjects.get(run) {
            Some(Some(subject)) if code.scope.starts_with("commit:") => {
                format!("{} {}", code.label(), describe_subject(subject, code.scope, quotes))
            }
            Some(Some(subject)) if code.is_counted_range() => describe_subject(subject, code.scope, quotes),
            _ => code.name().into_owned(),
        }
    }

    /// Names a scope for a sentence before anything is known of its code: `HEAD~1`, `main..topic`, `the whole tree`.
    pub fn name_scope(&self, scope: &Scope) -> String {
        let code = ReviewedCode {
            scope: &scope.to_string(),
            scope_hash: "",
            snapshot_commit: "",
            branch: &self.session.branch,
        };
        code.name().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tui::tests::support::{app, run_id, run_row};

    #[test]
    fn records_and_scopes_are_named_as_people_say_it() {
        let mut app = app(160, 48);
        let record = |scope: &str| -> RunRecord {
            serde_json::from_value(serde_json::json!({
                "run_id": run_id(1), "status": "completed", "created_at": "2026-03-04T05:06:07Z",
                "updated_at": "2026-03-04T05:06:07Z", "source": "cli", "scope": scope, "reviewer": "builtin",
                "snapshot_commit": "b82fa4f09b7e4851aa", "branch": "topic",
            }))
            .expect("a record")
        };
        for (scope, name) in [
            ("all", "the whole tree"),
            ("commit:HEAD", "b82fa4f"),
            ("range:HEAD~3..HEAD", "HEAD~3..HEAD"),
            ("branch:main", "topic since main"),
        ] {
            assert_eq!(app.name_record(&record(scope)), name);
        }
        for (scope, name) in [("all", "the whole tree"), ("commit:HEAD~1", "HEAD~1"), ("branch", "main")] {
            assert_eq!(app.name_scope(&scope.parse().expect("a scope")), name);
        }
        // The title of the commit is named once it is read.
        let subject = RunSubject { commits: 1, title: "Retry on 429\u{1b}[2J".into() };
        Arc::make_mut(&mut app.run_list.subjects).insert(run_id(1), Some(subject));
        assert_eq!(app.name_record(&record("commit:HEAD")), "b82fa4f “Retry on 429\u{fffd}[2J”");
        assert_eq!(app.name_record(&record("range:a0c3bec..7e1328b")), "1 commit, latest “Retry on 429\u{fffd}[2J”");
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
        let typed = RunRow { scope: "range:HEAD~3..HEAD", ..range };
        assert_eq!(app.name_run(&typed), "3 commits, latest “Retry on 429”", "HEAD has moved on since");
        // Label and content together say each thing once.
        for (commits, label, content) in [(3, "3 commits", "latest “Retry on 429”"), (1, "1 commit", "“Retry on 429”")]
        {
            let subject = RunSubject { commits, title: "Retry on 429".into() };
            Arc::make_mut(&mut app.run_list.subjects).insert("ar_1".into(), Some(subject));
            for run in [&between_ids, &typed] {
                assert_eq!(app.label_run(run), label);
                assert_eq!(app.describe_content_beside_label(run), content);
            }
        }
        assert_eq!(app.label_run(&commit), "3fa2c1d");
        assert_eq!(app.describe_content_beside_label(&commit), "“Retry on 429”");
        Arc::make_mut(&mut app.run_list.subjects).clear();
        assert_eq!(app.label_run(&between_ids), "commits", "until their number is read");
        assert_eq!(app.label_run(&typed), "HEAD~3..HEAD", "until their number is read");
        assert_eq!(app.describe_content_beside_label(&between_ids), "4 files");
    }

    #[test]
    fn a_run_is_found_and_read_by_all_that_is_known_of_its_commits() {
        let subject = RunSubject { commits: 5, title: "Retry on 429".into() };
        for (scope, before, after) in [
            ("commit:HEAD", "3fa2c1d", "3fa2c1d “Retry on 429”"),
            ("range:HEAD~5..HEAD", "HEAD~5..HEAD", "5 commits, latest “Retry on 429”"),
            ("range:a0c3bec..7e1328b", "commits", "5 commits, latest “Retry on 429”"),
            ("range:main..topic", "main..topic", "main..topic, 5 commits, latest “Retry on 429”"),
            ("branch:main", "main since main", "main since main, 5 commits, latest “Retry on 429”"),
        ] {
            let run = RunRow { scope, ..run_row("ar_1") };
            assert_eq!(describe_reviewed_change(&run, None, ("“", "”")), before);
            assert_eq!(describe_reviewed_change(&run, Some(&subject), ("“", "”")), after);
        }
    }
}
