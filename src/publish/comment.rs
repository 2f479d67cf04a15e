//! Formats findings as comments for code hosts, and reads the markers of comments.
//!
//! - The marker is the first line. Text of a finding comes behind it, so that no finding can forge one.
//! - Nothing in the text of a finding becomes markup, a link, a mention, a reference, or a command of a bot or of GitLab
//!   at the beginning of a line.
//! - A suggestion is exact or absent: a replacement that cannot be shown unchanged and harmless keeps its words only.

use crate::domain::text::{format_count, is_unsafe, sanitize_line};
use crate::domain::{Finding, FindingId, LineRange, Priority};
use crate::report::markdown::{escape, format_code_span};
use crate::report::{ExportedFinding, text};

/// Beginning of the marker of an inline comment; the id of its finding and ` -->` follow.
const FINDING_MARKER: &str = "<!-- revdeck:finding ";
/// Marker of the summary.
const SUMMARY_MARKER: &str = "<!-- revdeck:summary -->";
/// Maximum length of a comment in bytes. GitHub allows 65,536 characters, GitLab more; the rest is for the host's own
/// additions.
const MAX_COMMENT_BYTES: usize = 60_000;
/// Maximum length of an explanation in characters. Longer ones are read with `revdeck show`.
const MAX_EXPLANATION_CHARS: usize = 8_000;
/// Maximum size of a suggested replacement in bytes.
const MAX_REPLACEMENT_BYTES: usize = 20_000;
/// Maximum number of lines that a suggestion of GitLab may reach above the line of its comment.
const MAX_GITLAB_LINES_ABOVE: u32 = 100;

/// Finding that stands in the head of the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishableFinding {
    /// Masked and harmless texts, with the lines in the head.
    pub exported: ExportedFinding,
    /// Path in the head, unmasked: the host compares it with names of files.
    pub path: String,
}

impl PublishableFinding {
    /// Masks the texts of a finding.
    pub fn new(finding: &Finding) -> Self {
        Self { exported: ExportedFinding::new(finding, None), path: finding.repo_relative_path.clone() }
    }

    /// Returns the finding with masked texts.
    pub fn finding(&self) -> &Finding {
        &self.exported.finding
    }
}

/// Way in which a host writes suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuggestionSyntax {
    /// A `suggestion` block replaces the lines of its comment.
    CommentLines,
    /// A `suggestion:-N+0` block replaces the line of its comment and the N lines above.
    LinesAbove,
}

/// Kind of a comment of revdeck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommentMarker {
    /// Inline comment about a finding.
    Finding(FindingId),
    /// Summary of the change.
    Summary,
}

/// Reads the marker in the first line of a comment. `None` for any other comment.
pub fn parse_marker(body: &str) -> Option<CommentMarker> {
    let first = body.trim_start_matches('\u{feff}').lines().next()?.trim_end();
    if first == SUMMARY_MARKER {
        return Some(CommentMarker::Summary);
    }
    let id = first.strip_prefix(FINDING_MARKER)?.strip_suffix(" -->")?;
    id.parse().ok().map(CommentMarker::Finding)
}

/// Formats an inline comment. `suggested` are the lines that the suggestion replaces; `None` leaves the block out.
pub fn format_inline(finding: &PublishableFinding, syntax: SuggestionSyntax, suggested: Option<LineRange>) -> String {
    let found = finding.finding();
    let mut body = format!(
        "{FINDING_MARKER}{} -->\n**{} {}**: {}\n",
        found.finding_id,
        found.priority,
        format_text_line(found.kind.label()),
        format_text_line(&found.title)
    );
    if !found.explanation.is_empty() {
        body.push_str(&format!("\n{}\n", format_paragraphs(&found.explanation)));
    }
    if let Some(suggestion) = &found.suggestion {
        if !suggestion.text.is_empty() {
            body.push_str(&format!("\nSuggestion: {}\n", format_text_line(&suggestion.text)));
        }
        if let Some((lines, replacement)) = suggested.zip(suggestion.replacement.as_deref()) {
            body.push_str(&format!("\n{}", format_suggestion(syntax, lines, replacement)));
        }
    }
    body.push_str(&format!("\nrevdeck {}\n", format_code_span(found.finding_id.as_str())));
    body
}

/// Returns the lines that a suggestion block may replace; `None` if there is no replacement, or if its text would not
/// arrive unchanged and harmless.
pub fn suggested_lines(finding: &Finding, syntax: SuggestionSyntax) -> Option<LineRange> {
    let suggestion = finding.suggestion.as_ref()?;
    let replacement = suggestion.replacement.as_deref()?;
    let lines = suggestion.lines.unwrap_or(finding.lines());
    let is_short = replacement.len() <= MAX_REPLACEMENT_BYTES;
    let is_near = syntax == SuggestionSyntax::CommentLines || lines.count() <= MAX_GITLAB_LINES_ABOVE + 1;
    (is_short && is_near && is_harmless_code(replacement)).then_some(lines)
}

/// Returns `true` for code that a fenced block shows unchanged: no fence, no invisible characters, and no line that a bot
/// or GitLab takes for a command, because they look into fenced blocks, too.
fn is_harmless_code(code: &str) -> bool {
    let is_command = |line: &str| {
        let mut chars = line.trim_start().chars();
        chars.next() == Some('/') && chars.next().is_some_and(char::is_alphabetic)
    };
    let is_marker = |line: &str| line.contains("<!-- revdeck:");
    !code.contains("```")
        && !code.contains("~~~")
        && !code.chars().any(|c| is_unsafe(c) && !matches!(c, '\n' | '\t'))
        && !code.lines().any(|line| is_command(line) || is_marker(line))
}

fn format_suggestion(syntax: SuggestionSyntax, lines: LineRange, replacement: &str) -> String {
    let range = match syntax {
        SuggestionSyntax::CommentLines => String::new(),
        SuggestionSyntax::LinesAbove => format!(":-{}+0", lines.count().saturating_sub(1)),
    };
    let code = replacement.strip_suffix('\n').unwrap_or(replacement);
    // An empty replacement deletes the lines; one empty line replaces them by an empty line.
    let end = if replacement.is_empty() { "" } else { "\n" };
    format!("```suggestion{range}\n{code}{end}```\n")
}

/// Formats the text of a finding as one harmless line of Markdown.
fn format_text_line(text: &str) -> String {
    let text = sanitize_line(text);
    // An invisible space ends mentions and references on every host, and within all their filters.
    let escaped = escape(text.trim()).replace("<!-- -->", "\u{200b}");
    // A line that begins with a command of a bot or of GitLab would be obeyed.
    match escaped.strip_prefix('/') {
        Some(rest) => format!("\\/{rest}"),
        None => escaped,
    }
}

/// Formats a text of several lines. Empty lines separate paragraphs.
fn format_paragraphs(text: &str) -> String {
    let shown: String = text.chars().take(MAX_EXPLANATION_CHARS).collect();
    let mut lines: Vec<String> = Vec::new();
    for line in shown.lines().map(format_text_line) {
        if !line.is_empty() || lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(line);
        }
    }
    if shown.len() < text.len() {
        lines.push("…".to_owned());
    }
    lines.join("\n").trim_end().to_owned()
}

/// Parts of the summary.
#[derive(Debug, Clone, Copy)]
pub struct SummaryParts<'a> {
    /// Commit that was reviewed.
    pub head: &'a str,
    /// Priorities of the findings with an inline comment.
    pub inline: &'a [Priority],
    /// Findings without an inline comment, in the order of their output, each with the reason if it is not the place.
    pub elsewhere: &'a [(&'a PublishableFinding, Option<&'a str>)],
    /// Sentence about what was not reviewed.
    pub incomplete: Option<&'a str>,
}

/// Formats the summary. Findings that do not fit into [`MAX_COMMENT_BYTES`] are counted.
pub fn format_summary(parts: &SummaryParts<'_>) -> String {
    let SummaryParts { head, inline, elsewhere, incomplete } = *parts;
    let mut body = format!("{SUMMARY_MARKER}\n### Review by revdeck\n\n");
    if let Some(said) = incomplete {
        body.push_str(&format!("**The review is incomplete: {}**\n\n", format_text_line(said)));
    }
    let priorities: Vec<Priority> =
        inline.iter().copied().chain(elsewhere.iter().map(|(found, _)| found.finding().priority)).collect();
    let short = head.get(..7).unwrap_or(head);
    body.push_str(&match priorities.len() {
        0 => format!("No open finding at {short}.\n"),
        count => format!("{} at {short}: {}.", format_count(count, "open finding"), count_by_priority(&priorities)),
    });
    if !priorities.is_empty() && !inline.is_empty() {
        let verb = if inline.len() == 1 { "has" } else { "have" };
        body.push_str(&format!(" {} {verb} a comment beside the code.", inline.len()));
    }
    body.push('\n');
    if elsewhere.is_empty() {
        return body;
    }
    body.push_str("\nWithout a comment beside the code:\n\n");
    for (shown, (found, reason)) in elsewhere.iter().enumerate() {
        let row = format_summary_row(found, *reason);
        if body.len() + row.len() > MAX_COMMENT_BYTES {
            let left = format_count(elsewhere.len() - shown, "more finding");
            body.push_str(&format!("- {left}: {}\n", format_code_span("revdeck findings")));
            break;
        }
        body.push_str(&row);
    }
    body
}

fn format_summary_row(found: &PublishableFinding, reason: Option<&str>) -> String {
    let finding = found.finding();
    let place = format!("{}:{}", finding.repo_relative_path, text::format_finding_lines(finding));
    let reason = reason.map_or_else(String::new, |reason| format!(" ({})", format_text_line(reason)));
    format!(
        "- **{} {}** {} {}{reason} {}\n",
        finding.priority,
        format_text_line(finding.kind.label()),
        format_code_span(&place),
        format_text_line(&finding.title),
        format_code_span(finding.finding_id.as_str())
    )
}

fn count_by_priority(priorities: &[Priority]) -> String {
    let count = |wanted: Priority| priorities.iter().filter(|found| **found == wanted).count();
    let counts = Priority::ALL.map(|priority| (priority, count(priority)));
    let shown = counts.iter().filter(|(_, count)| *count > 0).map(|(priority, count)| format!("{count} {priority}"));
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::Suggestion;
    use crate::publish::test_support::finding;

    #[rstest]
    #[case::finding("<!-- revdeck:finding f_0123456789abcdef -->\ntext", true)]
    #[case::windows("<!-- revdeck:finding f_0123456789abcdef -->\r\ntext", true)]
    #[case::later("text\n<!-- revdeck:finding f_0123456789abcdef -->", false)]
    #[case::indented("  <!-- revdeck:finding f_0123456789abcdef -->", false)]
    #[case::quoted("> <!-- revdeck:finding f_0123456789abcdef -->", false)]
    #[case::bad_id("<!-- revdeck:finding f_../../etc -->", false)]
    #[case::more("<!-- revdeck:finding f_0123456789abcdef --> -->", false)]
    #[case::empty("", false)]
    fn markers_stand_in_the_first_line(#[case] body: &str, #[case] is_marker: bool) {
        assert_eq!(parse_marker(body).is_some(), is_marker);
        assert_eq!(parse_marker(SUMMARY_MARKER), Some(CommentMarker::Summary));
    }

    #[rstest]
    #[case::mention("ask @admin", "ask @\u{200b}admin")]
    #[case::reference("see #12", "see \\#\u{200b}12")]
    #[case::link("https://evil.example", "https:\u{200b}//evil.example")]
    #[case::html("<b onclick=x>", "&lt;b onclick\\=x&gt;")]
    #[case::image("![a](b)", "\\!\\[a\\]\\(b\\)")]
    #[case::command("/approve", "\\/approve")]
    #[case::indented_command("  /close", "\\/close")]
    #[case::control("a\x1b[2Jb", "a\u{fffd}\\[2Jb")]
    fn text_is_harmless(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(format_text_line(text), expected);
    }

    #[test]
    fn paragraphs_keep_their_lines_within_bounds() {
        assert_eq!(format_paragraphs("one\n\n\n  two\n/merge\n"), "one\n\ntwo\n\\/merge");
        let long = format_paragraphs(&"x".repeat(MAX_EXPLANATION_CHARS + 1));
        assert_eq!((long.chars().count(), long.ends_with("\n…")), (MAX_EXPLANATION_CHARS + 2, true));
    }

    fn suggesting(replacement: &str, lines: Option<LineRange>) -> Finding {
        let suggestion =
            Suggestion { text: "Write it so.".to_owned(), replacement: Some(replacement.to_owned()), lines };
        Finding { suggestion: Some(suggestion), ..finding("title", "a.rs", (3, 4)) }
    }

    #[rstest]
    #[case::plain("let x = 1;\n", true)]
    #[case::comment("// x\n/* y */", true)]
    #[case::tab("\tx", true)]
    #[case::fence("a\n```\n/merge", false)]
    #[case::command("x\n  /approve", false)]
    #[case::marker("<!-- revdeck:summary -->", false)]
    #[case::escape("\x1b[2J", false)]
    #[case::carriage_return("a\r\nb", false)]
    #[case::invisible("a\u{202e}b", false)]
    fn suggestions_are_exact_or_absent(#[case] replacement: &str, #[case] is_shown: bool) {
        let lines = suggested_lines(&suggesting(replacement, None), SuggestionSyntax::CommentLines);
        assert_eq!(lines, is_shown.then(|| LineRange::new(3, 4)));
    }

    #[test]
    fn suggestions_have_the_syntax_of_their_host() {
        let lines = LineRange::new(3, 5);
        for (syntax, replacement, expected) in [
            (SuggestionSyntax::CommentLines, "a\nb\n", "```suggestion\na\nb\n```\n"),
            (SuggestionSyntax::LinesAbove, "a", "```suggestion:-2+0\na\n```\n"),
            (SuggestionSyntax::CommentLines, "", "```suggestion\n```\n"),
            (SuggestionSyntax::CommentLines, "\n", "```suggestion\n\n```\n"),
        ] {
            assert_eq!(format_suggestion(syntax, lines, replacement), expected);
        }
        let far = suggesting("x", Some(LineRange::new(1, 102)));
        assert_eq!(suggested_lines(&far, SuggestionSyntax::LinesAbove), None);
    }

    #[test]
    fn a_summary_is_bounded_and_counts_the_rest() {
        let found: Vec<PublishableFinding> =
            (0..2_000).map(|line| PublishableFinding::new(&finding("title", "a.rs", (line, line)))).collect();
        let rows: Vec<_> = found.iter().map(|found| (found, None)).collect();
        let parts = SummaryParts { head: "0123456789", inline: &[Priority::P0], elsewhere: &rows, incomplete: None };
        let body = format_summary(&parts);
        assert!(body.len() < MAX_COMMENT_BYTES + 200, "{}", body.len());
        let shown = body.lines().filter(|line| line.starts_with("- **p")).count();
        assert!(body.ends_with(&format!("- {} more findings: `revdeck findings`\n", 2_000 - shown)), "{body}");
        assert!(body.contains("2001 open findings at 0123456: 1 p0, 2000 p2."), "{body}");
    }
}
