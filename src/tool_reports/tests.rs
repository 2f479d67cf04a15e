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

#[test]
fn a_suppressed_result_is_still_seen() {
    let log = r#"{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "t"}}, "results": [
        {"ruleId": "A", "message": {"text": "m"}, "suppressions": [{"kind": "inSource"}]},
        {"ruleId": "B", "message": {"text": "m"}, "suppressions": [{"kind": "external", "status": "rejected"}]},
        {"ruleId": "C", "message": {"text": "m"}, "suppressions": [{"kind": "inSource"}], "baselineState": "absent"},
        {"ruleId": "D", "message": {"text": "m"}, "suppressions": [{"kind": "inSource"}], "kind": "pass"}]}]}"#;
    let report = parse_one(ReportFormat::Sarif, log);
    let rules = |problems: &[ToolProblem]| -> Vec<String> { problems.iter().map(|it| it.rule.clone()).collect() };
    assert_eq!((rules(&report.problems), rules(&report.silenced)), (vec!["B".to_owned()], vec!["A".to_owned()]));
    assert_eq!(report.suppressed, 3);
}

#[test]
fn a_base_may_stand_below_another_one() {
    let bases = r#"{"ROOT": {"uri": "file:///repo/"}, "SUB": {"uri": "sub/", "uriBaseId": "ROOT"},
        "DEEP": {"uri": "de%20ep", "uriBaseId": "SUB"}, "LONE": {"uri": "lone/"},
        "A": {"uri": "a/", "uriBaseId": "B"}, "B": {"uri": "b/", "uriBaseId": "A"}}"#;
    for (uri, base, path, root) in [
        ("a.py", "ROOT", "a.py", "file:///repo/"),
        ("a.py", "SUB", "sub/a.py", "file:///repo/"),
        ("a.py", "DEEP", "sub/de ep/a.py", "file:///repo/"),
        ("file:a.py", "SUB", "sub/a.py", "file:///repo/"),
        ("file:///repo/a.py", "SUB", "file:///repo/a.py", ""),
        ("/repo/a.py", "SUB", "/repo/a.py", ""),
        ("a.py", "LONE", "lone/a.py", ""),
        ("a.py", "NONE", "a.py", ""),
        ("a.py", "A", "b/a/b/a/b/a/b/a/b/a/a.py", ""),
    ] {
        let log = format!(
            r#"{{"version": "2.1.0", "runs": [{{"tool": {{"driver": {{"name": "t"}}}}, "originalUriBaseIds": {bases},
            "results": [{{"message": {{"text": "m"}}, "locations": [{{"physicalLocation":
                {{"artifactLocation": {{"uri": "{uri}", "uriBaseId": "{base}"}}}}}}]}}]}}]}}"#
        );
        let problem = parse_one(ReportFormat::Sarif, &log).problems.remove(0);
        assert_eq!((problem.path.path.as_str(), problem.path.base.as_str()), (path, root), "{uri} {base}");
    }
}

#[test]
fn a_score_outside_of_its_scale_says_nothing() {
    for (score, expected) in [
        (r#""9.8""#, Severity::Critical),
        ("10", Severity::Critical),
        ("0", Severity::Low),
        (r#""NaN""#, Severity::High),
        (r#""-5""#, Severity::High),
        ("10.1", Severity::High),
        (r#""inf""#, Severity::High),
        (r#""much""#, Severity::High),
    ] {
        let log = format!(
            r#"{{"version": "2.1.0", "runs": [{{"tool": {{"driver": {{"name": "t", "rules": [
                {{"id": "A", "properties": {{"tags": ["security"], "security-severity": {score}}}}}]}}}},
            "results": [{{"ruleId": "A", "level": "error", "message": {{"text": "m"}}}}]}}]}}"#
        );
        assert_eq!(parse_one(ReportFormat::Sarif, &log).problems[0].severity, expected, "{score}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_report() {
    for (format, text) in [
        (ReportFormat::Sarif, r#"{"version": "2.1.0", "runs": [{"results": [{"message": {"text": "m"}}]}]}"#),
        (ReportFormat::Rdjsonl, r#"{"message": "m", "location": {"path": "a.py"}}"#),
        (ReportFormat::Rdjsonl, r#"{"diagnostics": [{"message": "m", "location": {"path": "a.py"}}]}"#),
        (ReportFormat::Checkstyle, r#"<checkstyle><file name="a.py"><error message="m"/></file></checkstyle>"#),
    ] {
        assert_eq!(parse_one(format, &format!("\u{feff}{text}")).problems.len(), 1, "{text}");
    }
}

#[test]
fn a_name_is_decoded_only_as_a_uri() {
    for (name, expected) in
        [("a%20b.py", "a%20b.py"), ("file:///repo/a%20b.py", "file:///repo/a b.py"), ("FILE:a%20b.py", "FILE:a b.py")]
    {
        let xml = format!(r#"<checkstyle><file name="{name}"/></checkstyle>"#);
        assert_eq!(parse_one(ReportFormat::Checkstyle, &xml).covered[0].path, expected);
        let line = format!(r#"{{"message": "m", "location": {{"path": "{name}"}}}}"#);
        assert_eq!(parse_one(ReportFormat::Rdjsonl, &line).covered[0].path, expected);
    }
}

#[test]
fn a_report_names_a_limited_number_of_tools() {
    let sarif = |count: usize, tools: usize| {
        let run = |n: usize| format!(r#"{{"tool": {{"driver": {{"name": "t{}"}}}}}}"#, n % tools);
        let runs: Vec<String> = (0..count).map(run).collect();
        let log = format!(r#"{{"version": "2.1.0", "runs": [{}]}}"#, runs.join(","));
        parse_report(ReportFormat::Sarif, log.as_bytes()).map(|reports| reports.len())
    };
    assert_eq!(sarif(MAX_TOOLS, MAX_TOOLS), Ok(MAX_TOOLS));
    assert_eq!(sarif(200, MAX_TOOLS), Ok(200), "a tool may run several times");
    assert_eq!(sarif(MAX_TOOLS + 1, MAX_TOOLS + 1), Err(ReportError::TooManyTools));
    let line = |n: usize| format!(r#"{{"message": "m", "location": {{"path": "a"}}, "source": {{"name": "t{n}"}}}}"#);
    let lines = |count: usize| (0..count).map(line).collect::<Vec<_>>().join("\n");
    let rdjsonl = |count| parse_report(ReportFormat::Rdjsonl, lines(count).as_bytes()).map(|reports| reports.len());
    assert_eq!(rdjsonl(MAX_TOOLS), Ok(MAX_TOOLS));
    assert_eq!(rdjsonl(MAX_TOOLS + 1), Err(ReportError::TooManyTools));
    assert_eq!(rdjsonl(200), Err(ReportError::TooManyTools));
}
