//! Decides which comments are posted and which threads are resolved. Pure: findings, diff and known comments in, plan
//! out.

use std::collections::HashSet;

use super::comment::{PublishableFinding, SuggestionSyntax, format_inline, suggested_lines};
use super::diff_lines::{DiffLines, FileDiff};
use super::host::{InlineComment, PublishedComment, PublishedComments};
use crate::domain::{FindingId, LineRange};

/// Maximum number of lines of an anchor that a comment marks. A comment about a longer one stands at its first changed
/// line: hosts show the marked lines above the comment, and nobody reads a page of them.
const MAX_MARKED_LINES: u32 = 12;

/// Reason of findings that stand although the thread of their comment is resolved. A person may have resolved it, so it
/// stays so.
const THREAD_RESOLVED: &str = "its thread is resolved, but it stands";
/// Reason of findings beyond the maximum number of comments.
const OVER_LIMIT: &str = "more comments than --max-comments";

/// All that a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// Findings that stand in the head, most urgent first.
    pub findings: &'a [PublishableFinding],
    /// Diff of the change.
    pub diff: &'a DiffLines,
    /// Comments that the host has.
    pub known: &'a PublishedComments,
    /// Findings that are decided or gone.
    pub closed: &'a HashSet<FindingId>,
    /// Maximum number of inline comments about current findings, known ones included; `None` for no maximum.
    pub max_comments: Option<usize>,
    /// Way in which the host writes suggestions.
    pub syntax: SuggestionSyntax,
}

/// Comments to be posted and threads to be resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishPlan {
    /// Inline comments in the order of the findings, each with the position of its finding.
    pub inline: Vec<(usize, InlineComment)>,
    /// Positions of findings that have a comment in an open thread.
    pub already: Vec<usize>,
    /// Positions of findings for the summary, each with the reason if it is not the place.
    pub elsewhere: Vec<(usize, Option<&'static str>)>,
    /// Unresolved comments about findings that are decided or gone.
    pub resolve: Vec<PublishedComment>,
}

/// Makes the plan. A finding occurs once in it, even if `findings` holds it twice.
pub fn plan_comments(input: &PlanInput<'_>) -> PublishPlan {
    let mut plan = PublishPlan::default();
    let comments = || input.known.inline.iter();
    let known: HashSet<&FindingId> = comments().map(|comment| &comment.finding).collect();
    let open: HashSet<&FindingId> =
        comments().filter(|comment| !comment.is_resolved).map(|comment| &comment.finding).collect();
    let mut seen = HashSet::new();
    let fresh = input.findings.iter().enumerate().filter(|(_, found)| seen.insert(&found.finding().finding_id));
    let mut unplaced = Vec::new();
    for (at, found) in fresh {
        let id = &found.finding().finding_id;
        if open.contains(id) {
            plan.already.push(at);
        } else if known.contains(id) {
            plan.elsewhere.push((at, Some(THREAD_RESOLVED)));
        } else {
            unplaced.push((at, found));
        }
    }
    let room =
        input.max_comments.map_or(usize::MAX, |most| most.saturating_sub(plan.already.len() + plan.elsewhere.len()));
    for (at, found) in unplaced {
        match place_comment(found, input.diff, input.syntax) {
            Some(comment) if plan.inline.len() < room => plan.inline.push((at, comment)),
            Some(_) => plan.elsewhere.push((at, Some(OVER_LIMIT))),
            None => plan.elsewhere.push((at, None)),
        }
    }
    plan.elsewhere.sort_by_key(|(at, _)| *at);
    let current: HashSet<&FindingId> = input.findings.iter().map(|found| &found.finding().finding_id).collect();
    let is_closed = |comment: &&PublishedComment| {
        !comment.is_resolved && input.closed.contains(&comment.finding) && !current.contains(&comment.finding)
    };
    plan.resolve = input.known.inline.iter().filter(is_closed).cloned().collect();
    plan
}

/// Places a comment on the lines of the diff: on the lines that the suggestion replaces, else on the anchor. `None` if no
/// line of the anchor is in the diff.
fn place_comment(found: &PublishableFinding, diff: &DiffLines, syntax: SuggestionSyntax) -> Option<InlineComment> {
    let file = diff.file(&found.path)?;
    let finding = found.finding();
    let anchor = finding.lines();
    let suggested = suggested_lines(finding, syntax).filter(|lines| file.is_in_one_hunk(*lines));
    let lines = suggested.or_else(|| mark_anchor(file, anchor))?;
    let old_line = file.line(lines.end)?.old_line;
    Some(InlineComment {
        finding: finding.finding_id.clone(),
        path: found.path.clone(),
        old_path: file.old_path.clone(),
        lines,
        old_line,
        body: format_inline(found, syntax, suggested),
    })
}

fn mark_anchor(file: &FileDiff, anchor: LineRange) -> Option<LineRange> {
    let first = file.first_line(anchor)?;
    let is_short = anchor.count() <= MAX_MARKED_LINES && file.is_in_one_hunk(anchor);
    Some(if is_short { anchor } else { LineRange::new(first, first) })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::Suggestion;
    use crate::publish::test_support::{finding, id};

    const PATCH: &str = "@@ -8,5 +8,6 @@\n eight\n-nine\n+neun\n+zehn\n eleven\n twelve\n thirteen";

    fn diff() -> DiffLines {
        let mut diff = DiffLines::default();
        diff.insert("a.rs".to_owned(), FileDiff::parse("old.rs", PATCH));
        diff
    }

    fn publishable(title: &str, path: &str, lines: (u32, u32), suggested: Option<(u32, u32)>) -> PublishableFinding {
        let mut finding = finding(title, path, lines);
        finding.suggestion = suggested.map(|(start, end)| Suggestion {
            text: "Write it so.".to_owned(),
            replacement: Some("x".to_owned()),
            lines: Some(LineRange::new(start, end)),
        });
        PublishableFinding::new(&finding)
    }

    fn plan(findings: &[PublishableFinding], known: &PublishedComments, most: Option<usize>) -> PublishPlan {
        plan_comments(&PlanInput {
            findings,
            diff: &diff(),
            known,
            closed: &HashSet::from([id("closed"), id("again")]),
            max_comments: most,
            syntax: SuggestionSyntax::CommentLines,
        })
    }

    #[rstest]
    #[case::on_an_added_line((9, 9), None, Some((9, 9)))]
    #[case::on_a_line_of_context((12, 12), None, Some((12, 12)))]
    #[case::short_anchor((8, 11), None, Some((8, 11)))]
    #[case::beyond_the_hunk((5, 9), None, Some((9, 9)))]
    #[case::long((1, 200), None, Some((9, 9)))]
    #[case::context_only((12, 40), None, Some((12, 12)))]
    #[case::elsewhere((20, 30), None, None)]
    #[case::suggestion((8, 11), Some((9, 10)), Some((9, 10)))]
    #[case::suggestion_beyond_the_hunk((9, 9), Some((9, 20)), Some((9, 9)))]
    fn comments_stand_on_lines_of_the_diff(
        #[case] anchor: (u32, u32),
        #[case] suggested: Option<(u32, u32)>,
        #[case] expected: Option<(u32, u32)>,
    ) {
        let plan = plan(&[publishable("one", "a.rs", anchor, suggested)], &PublishedComments::default(), None);
        let placed = plan.inline.first().map(|(_, comment)| (comment.lines.start, comment.lines.end));
        assert_eq!(placed, expected);
        assert_eq!(plan.elsewhere.len(), usize::from(expected.is_none()));
        let has_block = plan.inline.iter().any(|(_, comment)| comment.body.contains("```suggestion"));
        assert_eq!(has_block, suggested.is_some() && placed == suggested);
        if let Some((_, comment)) = plan.inline.first() {
            assert_eq!(comment.old_path, "old.rs");
        }
    }

    #[test]
    fn each_finding_is_planned_once_and_the_first_ones_get_the_comments() {
        let known = |title: &str, is_resolved| PublishedComment {
            finding: id(title),
            comment: title.to_owned(),
            thread: None,
            is_resolved,
            lines: None,
            has_answers: false,
        };
        let published = PublishedComments {
            inline: vec![known("known", true), known("closed", false), known("again", false), known("closed", true)],
            summary: None,
        };
        let findings = ["first", "known", "first", "again", "second", "third"]
            .map(|title| publishable(title, "a.rs", (9, 9), None));
        let plan = plan(&findings, &published, Some(3));
        let inline: Vec<usize> = plan.inline.iter().map(|(at, _)| *at).collect();
        assert_eq!((inline, plan.already), (vec![0], vec![3]));
        assert_eq!(plan.elsewhere, [(1, Some(THREAD_RESOLVED)), (4, Some(OVER_LIMIT)), (5, Some(OVER_LIMIT))]);
        // A finding that stands again keeps its open thread, and a resolved thread is not resolved again.
        assert_eq!(plan.resolve, [known("closed", false)]);
    }
}
