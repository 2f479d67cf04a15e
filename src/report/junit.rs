//! Renders findings as JUnit XML, in which each standing finding is a failed test case of its file.
//!
//! The suite `review` has one test case more, which passes if everything was reviewed. So a report without findings still
//! says that there was a review, and an incomplete review is an error.

use std::collections::BTreeMap;

use super::export::{ExportedFinding, FindingExport};

/// Renders the report.
pub fn render_junit(export: &FindingExport) -> String {
    let mut files: BTreeMap<&str, Vec<&ExportedFinding>> = BTreeMap::new();
    for exported in export.standing() {
        files.entry(&exported.finding.repo_relative_path).or_default().push(exported);
    }
    let failures: usize = files.values().map(Vec::len).sum();
    let errors = usize::from(export.incomplete.is_some());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"revdeck\" tests=\"{}\" failures=\"{failures}\" \
         errors=\"{errors}\">\n  <testsuite name=\"review\" tests=\"1\" failures=\"0\" errors=\"{errors}\">\n",
        failures + 1
    );
    match &export.incomplete {
        None => text.push_str("    <testcase classname=\"revdeck\" name=\"the review is complete\"/>\n"),
        Some(said) => text.push_str(&format!(
            "    <testcase classname=\"revdeck\" name=\"the review is complete\">\n      <error message=\"{said}\" \
             type=\"incomplete\">{said}</error>\n    </testcase>\n",
            said = escape_xml(said)
        )),
    }
    text.push_str("  </testsuite>\n");
    for (path, findings) in files {
        text.push_str(&format!(
            "  <testsuite name=\"{}\" tests=\"{n}\" failures=\"{n}\" errors=\"0\">\n",
            escape_xml(path),
            n = findings.len()
        ));
        findings.into_iter().for_each(|exported| text.push_str(&render_case(exported)));
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn render_case(exported: &ExportedFinding) -> String {
    let finding = &exported.finding;
    let (path, title) = (escape_xml(&finding.repo_relative_path), escape_xml(&finding.title));
    let (line, kind, id) = (finding.line_start, finding.kind, &finding.finding_id);
    format!(
        "    <testcase classname=\"{kind}\" name=\"{title} ({id})\" file=\"{path}\" line=\"{line}\">\n      <failure \
         message=\"{title}\" type=\"{}\">{path}:{line}\n{}</failure>\n    </testcase>\n",
        finding.priority,
        escape_xml(&exported.describe())
    )
}

/// Escapes text for an attribute or an element. Characters that XML 1.0 does not allow, not even escaped, become
/// `\u{fffd}`; line ends in an attribute stay line ends.
fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            // `]]>` must not stand in text.
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            c if crate::domain::text::is_unsafe(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
