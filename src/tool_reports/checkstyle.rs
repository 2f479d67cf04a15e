//! Parses Checkstyle XML: `<checkstyle><file name="…"><error line="…" severity="…" message="…" source="…"/></file>`.

use roxmltree::{Document, Node, ParsingOptions};

use super::rule_kinds::kind_for_rule;
use super::{
    MAX_PROBLEMS, MAX_TEXT_CHARS, ReportError, ReportedPath, ToolProblem, ToolReport, cut, severity_from_level,
    tool_name,
};
use crate::domain::{Confidence, LineRange};

/// Maximum number of XML nodes: a problem has one, and its attributes and line ends are counted, too.
const MAX_NODES: u32 = 8 * MAX_PROBLEMS as u32;
/// Beginnings of the names of rules that name their tool, with the name of the tool.
const RULE_BEGINNINGS: [(&str, &str); 4] = [
    ("eslint.rules.", "eslint"),
    ("ShellCheck.", "shellcheck"),
    ("com.puppycrawl.tools.checkstyle.checks.", "checkstyle"),
    ("detekt.", "detekt"),
];

/// Parses a report. Every `file` element is a file that the tool has checked, with problems or without.
///
/// # Errors
///
/// Returns an error if the text is no XML, has a DTD, or has another root element.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<ToolReport>, ReportError> {
    let malformed = |reason: String| ReportError::Malformed { format: "checkstyle", reason };
    let text = std::str::from_utf8(bytes).map_err(|error| malformed(format!("it is not UTF-8: {error}")))?;
    // Without a DTD there are no entities that could expand.
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| malformed(error.to_string()))?;
    let root = document.root_element();
    if !root.has_tag_name("checkstyle") {
        return Err(malformed(format!("its root element is {:?}", cut(root.tag_name().name(), 40))));
    }
    let mut report = ToolReport { tool: find_tool(&root), ..ToolReport::default() };
    for file in root.children().filter(|node| node.has_tag_name("file")) {
        let path = ReportedPath::from_name(file.attribute("name").unwrap_or_default());
        for error in file.children().filter(|node| node.has_tag_name("error")) {
            if report.problems.len() >= MAX_PROBLEMS {
                return Err(ReportError::TooManyProblems);
            }
            let problem = read_error(&report.tool, &path, &error);
            report.problems.push(problem);
        }
        report.covered.push(path);
    }
    Ok(vec![report])
}

/// Returns the tool that the names of all rules begin with; empty if they begin with none or with several.
fn find_tool(root: &Node<'_, '_>) -> String {
    let sources =
        || root.descendants().filter(|node| node.has_tag_name("error")).filter_map(|node| node.attribute("source"));
    let named = RULE_BEGINNINGS.iter().find(|(begin, _)| sources().all(|source| source.starts_with(begin)));
    match sources().next() {
        Some(_) => named.map(|(_, tool)| tool_name(tool)).unwrap_or_default(),
        None => String::new(),
    }
}

fn read_error(tool: &str, path: &ReportedPath, error: &Node<'_, '_>) -> ToolProblem {
    let attribute = |name: &str| error.attribute(name).unwrap_or_default();
    let source = attribute("source");
    let rule = RULE_BEGINNINGS.iter().find_map(|(begin, _)| source.strip_prefix(begin)).unwrap_or(source);
    let kind = kind_for_rule(tool, rule, []);
    // ESLint's formatter ends each message with the rule. Without it, the title is the same as from ESLint's SARIF.
    let message = attribute("message").trim();
    let plain =
        message.strip_suffix(')').and_then(|text| text.strip_suffix(rule)).and_then(|text| text.strip_suffix(" ("));
    let message = plain.filter(|_| !rule.is_empty()).unwrap_or(message);
    let line = attribute("line").parse::<u32>().ok().filter(|line| *line > 0);
    ToolProblem {
        rule: cut(rule, 100),
        path: path.clone(),
        lines: line.map(|line| LineRange::new(line, line)),
        message: cut(message, MAX_TEXT_CHARS),
        help: String::new(),
        kind,
        severity: severity_from_level(attribute("severity"), kind),
        confidence: Confidence::High,
        fix: None,
    }
}
