//! Details of the formats that the tests of the command do not reach.

use super::*;

fn parse_one(format: ReportFormat, text: &str) -> ToolReport {
    let mut reports = parse_report(format, text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(reports.len(), 1, "{reports:?}");
    reports.remove(0)
}

#[test]
fn rules_of_extensions_give_severity_tags_and_help() {
    let log = r#"{"version": "2.1.0", "runs": [{
        "tool": {"driver": {"name": "CodeQL", "rules": null}, "extensions": [{"name": "codeql/python", "rules": [{
            "id": "py/sql-injection", "shortDescription": {"text": "SQL injection"}, "helpUri": "https://example.org/sql",
            "messageStrings": {"default": {"text": "Query depends on {0}."}},
            "properties": {"tags": ["security"], "precision": "medium", "security-severity": "9.1"}}]}]},
        "originalUriBaseIds": {"%SRCROOT%": {"uri": "file:///build/"}},
        "artifacts": [{"location": {"uri": "a%20b.py", "uriBaseId": "%SRCROOT%"}}],
        "results": [
            {"rule": {"id": "py/sql-injection", "index": 0}, "message": {"id": "default", "arguments": ["`name`"]},
             "locations": [{"physicalLocation": {"artifactLocation": {"index": 0},
                "region": {"startLine": 3, "endLine": 5, "endColumn": 1}}}]},
            {"ruleId": "x", "kind": "pass", "message": {"text": "fine"}},
            {"ruleId": "x", "message": {"text": "known"}, "suppressions": [{"kind": "inSource"}]},
            {"ruleId": "x", "message": {"text": "old"}, "baselineState": "absent"}]}]}"#;
    let report = parse_one(ReportFormat::Sarif, log);
    assert_eq!((report.tool.as_str(), report.suppressed, report.failure.as_deref()), ("codeql", 3, None));
    let [problem] = report.problems.as_slice() else { panic!("{:?}", report.problems) };
    assert_eq!((problem.path.path.as_str(), problem.path.base.as_str()), ("a b.py", "file:///build/"));
    assert_eq!(problem.lines, Some(LineRange::new(3, 4)), "the last line is not part of it");
    assert_eq!(problem.message, "Query depends on `name`.");
    assert_eq!(problem.help, "SQL injection\nhttps://example.org/sql");
    assert_eq!(
        (problem.kind, problem.severity, problem.confidence),
        (Kind::Security, Severity::Critical, Confidence::Medium)
    );
}

#[test]
fn levels_come_from_the_result_then_the_rule() {
    let log = r#"{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "T", "rules": [
            {"id": "A", "defaultConfiguration": {"level": "note"}}, {"id": "B"}]}},
        "results": [
            {"ruleId": "A", "message": {"text": "m"}}, {"ruleId": "A", "level": "error", "message": {"text": "m"}},
            {"ruleId": "B", "message": {"text": "m"}}, {"ruleIndex": 0, "message": {"text": "m"}}]}]}"#;
    let report = parse_one(ReportFormat::Sarif, log);
    let severities: Vec<Severity> = report.problems.iter().map(|problem| problem.severity).collect();
    assert_eq!(severities, [Severity::Low, Severity::Medium, Severity::Low, Severity::Low]);
    assert_eq!(report.problems[3].rule, "A");
}

#[test]
fn an_error_is_urgent_only_if_it_is_about_security() {
    for (level, kind, expected) in [
        ("error", Kind::Correctness, Severity::Medium),
        ("warning", Kind::Correctness, Severity::Low),
        ("note", Kind::Correctness, Severity::Low),
        ("ERROR", Kind::Security, Severity::High),
        ("warning", Kind::HardcodedConfiguration, Severity::Medium),
        ("INFO", Kind::Security, Severity::Low),
    ] {
        assert_eq!(severity_from_level(level, kind), expected, "{level} {kind}");
    }
}

#[test]
fn texts_are_cut_and_names_are_plain() {
    let long = "ä".repeat(10_000);
    let line = format!(r#"{{"message": "{long}", "location": {{"path": "a.py"}}, "code": {{"value": "{long}"}}}}"#);
    let report = parse_one(ReportFormat::Rdjsonl, &line);
    let problem = &report.problems[0];
    assert_eq!(problem.message.chars().count(), MAX_TEXT_CHARS + 1);
    assert_eq!(problem.rule.chars().count(), 101);
    assert_eq!(problem.title("t").chars().count(), MAX_TITLE_CHARS + 1);
    for (given, expected) in
        [("Semgrep OSS", "semgrep-oss"), ("../../x", "..-..-x"), ("\u{1b}[1m", "1m"), ("漢字", ""), ("", "")]
    {
        assert_eq!(tool_name(given), expected, "{given:?}");
    }
    assert_eq!(tool_name(&"x".repeat(500)).len(), MAX_NAME_CHARS);
}

#[test]
fn an_empty_report_of_reviewdog_is_a_report_without_problems() {
    assert_eq!(parse_one(ReportFormat::Rdjsonl, "\n"), ToolReport::default());
    let whole = r#"{"source": {"name": "golint"}, "severity": "INFO", "diagnostics": [
        {"message": "m", "location": {"path": "a.go", "range": {"start": {"line": 2, "column": 3}, "end": {"line": 3, "column": 1}}},
         "suggestions": [{"range": {"start": {"line": 2, "column": 1}, "end": {"line": 2, "column": 4}}, "text": "x"}]}]}"#;
    let report = parse_one(ReportFormat::Rdjsonl, whole);
    assert_eq!((report.tool.as_str(), report.problems[0].severity), ("golint", Severity::Low));
    assert_eq!(report.problems[0].lines, Some(LineRange::new(2, 2)));
    assert_eq!(report.problems[0].fix.as_ref().map(|fix| (fix.start, fix.end)), Some(((2, 1), (2, Some(4)))));
}

#[test]
fn files_without_errors_are_covered() {
    let xml = "\u{feff}<checkstyle><file name=\"a.sh\"/><file name=\"b.sh\"><error severity=\"info\" message=\"m\" \
               source=\"ShellCheck.SC2086\" line=\"x\"/></file></checkstyle>";
    let report = parse_one(ReportFormat::Checkstyle, xml);
    let covered: Vec<&str> = report.covered.iter().map(|path| path.path.as_str()).collect();
    assert_eq!((report.tool.as_str(), covered), ("shellcheck", vec!["a.sh", "b.sh"]));
    let problem = &report.problems[0];
    assert_eq!((problem.rule.as_str(), problem.lines, problem.severity), ("SC2086", None, Severity::Low));
}
