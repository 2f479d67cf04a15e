//! Renders findings as Markdown for a pull request, an issue or a file.
//!
//! - Text from code, file names and models cannot become markup, a link or a mention, and cannot leave its code
//!   fence.

use std::collections::BTreeMap;

use super::panel;
use super::text::{self, ShownReview, format_masked};
use super::text_style::TextOptions;
use crate::domain::text::{sanitize_line, sanitize_lines};
use crate::domain::{Finding, FindingStatus, RunStatus};

/// Renders a review with its findings grouped by file.
pub fn render_review(look: &TextOptions, review: ShownReview<'_>) -> String {
    let ShownReview { run, findings, coverage, notes, rejected } = review;
    let mut page = format!("## Review of {}\n\n", format_code_span(&format_masked(&run.subject.scope.to_string())));
    if run.status != RunStatus::Completed {
        page.push_str(&format!("**{}**\n\n", escape(&text::describe_ending(&without_color(look), run))));
    }
    if run.is_incomplete()
        && let Some(said) = text::describe_incomplete(run, coverage)
    {
        page.push_str(&format!("**{}**\n\n", escape(&said)));
    }
    page.push_str(&format!("{}\n\n", escape(&text::describe_findings(&without_color(look), run, findings, coverage))));
    let left_out = text::list_left_out(run, coverage);
    for line in &left_out {
        page.push_str(&format!("- {}\n", escape(line)));
    }
    if !left_out.is_empty() {
        page.push('\n');
    }
    page.push_str(&render_by_file(findings));
    for note in notes {
        page.push_str(&format!("> {}\n", escape(&format_masked(note))));
    }
    if !rejected.is_empty() {
        page.push_str(&format!("> {}\n", escape(&text::describe_set_aside(rejected.len()))));
    }
    page
}

/// Renders findings grouped by file, below the sentence about what was not reviewed.
pub fn render_findings(findings: &[Finding], incomplete: Option<&str>) -> String {
    let missing = incomplete.map(|said| format!("**The review is incomplete: {}**\n\n", escape(&format_masked(said))));
    format!("{}{}", missing.unwrap_or_default(), render_by_file(findings))
}

/// Renders findings grouped by file, ordered by path and line.
pub fn render_by_file(findings: &[Finding]) -> String {
    let mut files: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        files.entry(&finding.repo_relative_path).or_default().push(finding);
    }
    let mut page = String::new();
    for (path, mut findings) in files {
        findings.sort_by_key(|finding| (finding.line_start, finding.line_end, finding.priority));
        page.push_str(&format!("### {}\n\n", format_code_span(&format_masked(path))));
        for finding in findings {
            page.push_str(&self::render_finding(finding));
        }
    }
    page
}

/// Renders a finding as a list item.
pub fn render_finding(finding: &Finding) -> String {
    let status = match finding.status {
        FindingStatus::Open => String::new(),
        status => format!(" ({status})"),
    };
    let mut item = format!(
        "- **{} {}** line {}: {}{status}\n\n",
        finding.priority,
        escape(finding.kind.word()),
        text::format_finding_lines(finding),
        escape(&format_masked(&finding.title))
    );
    if !finding.explanation.is_empty() {
        item.push_str(&format!("  {}\n\n", escape(&format_masked(&finding.explanation))));
    }
    if !finding.quoted_code.is_empty() {
        item.push_str(&format_fence(&finding.quoted_code, fence_language(&finding.repo_relative_path)));
    }
    if let Some(suggestion) = &finding.suggestion {
        item.push_str(&format!("  Suggestion: {}\n\n", escape(&format_masked(&suggestion.text))));
        if let Some(replacement) = &suggestion.replacement {
            item.push_str(&format_fence(replacement, fence_language(&finding.repo_relative_path)));
        }
    }
    item.push_str(&render_panel(finding));
    item.push_str(&format!("  {}\n\n", format_code_span(finding.finding_id.as_str())));
    item
}

/// Renders what the reviewers of a panel said about a finding, as a list inside its item; empty for the finding of a single
/// reviewer.
fn render_panel(finding: &Finding) -> String {
    let list: String = panel::list_lines(finding).iter().map(|line| format!("  - {}\n", escape(line))).collect();
    if list.is_empty() { list } else { format!("{list}\n") }
}

fn without_color(look: &TextOptions) -> TextOptions {
    TextOptions { color: false, ..*look }
}

/// Escapes `text` so that nothing in it is markup. An empty HTML comment, which renders as nothing, breaks
/// mentions, issue numbers and bare URLs, because code hosts link them in spite of a backslash.
pub fn escape(text: &str) -> String {
    let text = sanitize_line(text);
    let mut escaped = String::with_capacity(text.len() + 8);
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '!' | '|' | '~' | '+' | '-' | '=' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '#' => escaped.push_str("\\#<!-- -->"),
            '@' => escaped.push_str("@<!-- -->"),
            ':' if after.starts_with("//") => escaped.push_str(":<!-- -->"),
            '.' if escaped.as_bytes().last_chunk::<3>().is_some_and(|end| end.eq_ignore_ascii_case(b"www")) => {
                escaped.push_str("<!-- -->.");
            }
            // `1.` and `1)` at the start of a line would begin a list.
            '.' if escaped.chars().all(|c| c.is_ascii_digit()) => escaped.push_str("\\."),
            c => escaped.push(c),
        }
        rest = after;
    }
    escaped
}

/// Wraps `text` in a code span with more backticks than any run of them in the text.
pub fn format_code_span(text: &str) -> String {
    let text = sanitize_line(text);
    let ticks = "`".repeat(longest_run(&text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.trim().is_empty() { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Renders a fenced block inside a list item. The fence is longer than any run of backticks in the code.
pub fn format_fence(code: &str, language: &str) -> String {
    let code = sanitize_lines(code, 4);
    let ticks = "`".repeat((longest_run(&code, '`') + 1).max(3));
    let mut block = format!("  {ticks}{language}\n");
    for line in code.trim_end_matches('\n').split('\n') {
        block.push_str(format!("  {line}").trim_end());
        block.push('\n');
    }
    block.push_str(&format!("  {ticks}\n\n"));
    block
}

fn longest_run(text: &str, wanted: char) -> usize {
    text.split(|c| c != wanted).map(str::len).max().unwrap_or(0)
}

/// Returns the file's extension if it is at most 8 ASCII letters and digits, else an empty string.
pub fn fence_language(path: &str) -> &str {
    match path.rsplit_once('.') {
        Some((_, ending)) if ending.len() <= 8 && ending.chars().all(|c| c.is_ascii_alphanumeric()) => ending,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup() {
        for (hostile, expected) in [
            ("plain words", "plain words"),
            ("<script>&", "&lt;script&gt;&amp;"),
            ("`x` **b** _i_", "\\`x\\` \\*\\*b\\*\\* \\_i\\_"),
            ("[a](b) ![c](d)", "\\[a\\]\\(b\\) \\!\\[c\\]\\(d\\)"),
            ("ask @admin in #12", "ask @<!-- -->admin in \\#<!-- -->12"),
            ("see https://evil.example", "see https:<!-- -->//evil.example"),
            ("WWW.evil.example", "WWW<!-- -->.evil.example"),
            ("1. item\n# head", "1\\. item \\#<!-- --> head"),
            ("a | b ~~c~~", "a \\| b \\~\\~c\\~\\~"),
        ] {
            assert_eq!(escape(hostile), expected, "{hostile:?}");
        }
    }

    #[test]
    fn code_cannot_end_its_span_or_fence() {
        assert_eq!(format_code_span("a.rs"), "`a.rs`");
        assert_eq!(format_code_span("a`b``c"), "```a`b``c```");
        assert_eq!(format_code_span("`x`"), "`` `x` ``");
        let block = format_fence("x\n````\n</details>\n", "rs");
        assert_eq!(block, "  `````rs\n  x\n  ````\n  </details>\n  `````\n\n");
        assert_eq!(fence_language("a/b.rs"), "rs");
        assert_eq!(fence_language("a/b.r`s"), "");
        assert_eq!(fence_language("Makefile"), "");
    }
}
