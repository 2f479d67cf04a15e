//! Answers of models as tables, and these properties: no text causes a panic, a cut loses only the incomplete report,
//! noise changes nothing.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::domain::{Confidence, Kind, LineRange, Priority, Severity, StopReason, ToolCall, Usage};

fn answer(text: &str, calls: &[(&str, &str)]) -> ChatResponse {
    let calls = calls.iter().enumerate().map(|(index, (name, arguments))| ToolCall {
        id: format!("c{index}"),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    });
    ChatResponse {
        text: text.to_owned(),
        calls: calls.collect(),
        opaque: Vec::new(),
        stop: StopReason::Done,
        usage: Usage::default(),
        model: String::new(),
    }
}

fn read(text: &str) -> ExtractedReports {
    extract_reports(&answer(text, &[]))
}

/// Returns `path:line title` of each report.
fn report_lines(extracted: &ExtractedReports) -> Vec<String> {
    extracted.reports.iter().map(|report| format!("{}:{} {}", report.path, report.line_start, report.title)).collect()
}

const A: &str = r#"{"path": "a.rs", "line": 1, "title": "A"}"#;
const B: &str = r#"{"path": "b.rs", "line": 2, "title": "B"}"#;

#[rstest]
#[case::findings(r#"{"findings": [@A, @B]}"#)]
#[case::issues(r#"{"issues": [@A, @B]}"#)]
#[case::bare_array("[@A, @B]")]
#[case::nested(r#"{"result": {"findings": [@A, @B]}}"#)]
#[case::nested_deeper(r#"[{"data": {"review": {"issues": [@A, @B]}}}]"#)]
#[case::two_lists(r#"{"findings": [@A], "issues": [@B]}"#)]
#[case::by_file(r#"{"files": [{"path": "a.rs", "issues": [{"line": 1, "title": "A"}]}, {"path": "b.rs", "issues": [{"line": 2, "title": "B"}]}]}"#)]
#[case::fenced("Here:\n```json\n[@A, @B]\n```\nDone.")]
#[case::fenced_otherwise("~~~\n[@A, @B]\n~~~")]
#[case::several_blocks("```json\n{\"findings\": [@A]}\n```\ntext\n```\n{\"findings\": [@B]}\n```")]
#[case::bare_in_prose("I found [1] two: {\"findings\": [@A, @B]} and that is all {really}.")]
#[case::one_by_line("@A\n@B\n")]
#[case::a_list_of_lists("[[@A], [@B]]")]
#[case::trailing_commas("[@A, @B,],")]
#[case::comments("[@A, // the first [\n /* and { */ @B]")]
#[case::no_commas("[@A\n@B]")]
#[case::no_closing_brackets(r#"{"findings": [@A, @B}"#)]
#[case::unfinished_fence("```json\n[@A, @B\n```\nMore prose. [")]
#[case::written_twice(r#"{"findings": "[{\"path\":\"a.rs\",\"line\":1,\"title\":\"A\"},{\"path\":\"b.rs\",\"line\":2,\"title\":\"B\"}]"}"#)]
#[case::a_tool_call_as_text(
    r#"<tool_call>{"name": "report_findings", "arguments": {"findings": [@A, @B]}}</tool_call>"#
)]
#[case::a_tool_call_as_text_twice(r#"{"name": "report_findings", "arguments": "{\"findings\":[{\"path\":\"a.rs\",\"line\":1,\"title\":\"A\"},{\"path\":\"b.rs\",\"line\":2,\"title\":\"B\"}]}"}"#)]
#[case::single_quotes("[{'path': 'a.rs', 'line': 1, 'title': 'A'}, {'path': 'b.rs', 'line': 2, 'title': 'B'}]")]
#[case::curly_quotes("[{“path”: “a.rs”, “line”: 1, “title”: “A”}, {‘path’: ‘b.rs’, ‘line’: 2, ‘title’: ‘B’}]")]
#[case::no_quotes("{findings: [{path: a.rs, line: 1, title: A}, {path: b.rs, line: 2, title: B}]}")]
#[case::python(
    "{'findings': [{'path': 'a.rs', 'line': 1, 'title': 'A', 'fix': None, 'ok': True}, {'path': 'b.rs', 'line': 2, 'title': 'B', 'score': NaN}]}"
)]
#[case::code_before("fn f() { let x = map[\"k\" + i]; g({ key: \"b\" + c }) }\n[@A, @B]")]
#[case::an_apostrophe_before("[don't worry, it's 'fine]\n[@A, @B]")]
#[case::an_open_string_before("{\"note\": \"never closed\n```json\n[@A, @B]\n```")]
#[case::an_open_comment_before("{ /* never closed\n```json\n[@A, @B]\n```")]
#[case::unreadable_between("[@A, {\"path\": \"x.rs\", \"title\": =}, @B]")]
fn shapes(#[case] text: &str) {
    let text = text.replace("@A", A).replace("@B", B);
    let extracted = read(&text);
    assert_eq!(report_lines(&extracted), ["a.rs:1 A", "b.rs:2 B"], "{text}\n{:?}", extracted.problems);
}

#[rstest]
#[case::nothing("")]
#[case::prose("No problems found in `src/a.rs` [1], see {this} and it's fine.")]
#[case::an_empty_list(r#"{"findings": []}"#)]
#[case::other_json(r#"{"name": "pkg", "files": ["a", "b"], "scripts": {"test": "x"}}"#)]
#[case::a_tool_call(r#"{"name": "read_file", "arguments": {"path": "a.rs", "line_start": 1}}"#)]
#[case::code("```rust\nlet x = Foo { path: \"a\", title };\n```")]
#[case::the_example(r#"{"findings": [{"path": "path/to/file.rs", "line": 1, "title": "One line"}]}"#)]
#[case::the_example_with_dots("```json\n{\"findings\": [{\"path\": \"...\", \"title\": \"...\"}, {...}]}\n```")]
#[case::a_schema(r#"{"type": "object", "properties": {"findings": {"type": "array", "items": {"type": "object", "properties": {"path": {"type": "string"}, "title": {"type": "string", "description": "One line"}}}}}}"#)]
#[case::brackets(&"[".repeat(500))]
fn nothing_to_report(#[case] text: &str) {
    let extracted = read(text);
    assert_eq!((extracted.reports, extracted.problems), (Vec::new(), Vec::new()));
}

#[rstest]
#[case::cut_in_a_report(r#"{"findings": [@A, {"path": "b.rs", "title": "Lo"#, &["the answer, line 1: report \"Lo\" was cut off and is dropped"])]
#[case::cut_in_a_report_without_a_title("\n\n[@A, {\"path\": \"b.rs\", \"line\": 1", &["the answer, line 3: report \"b.rs\" was cut off and is dropped"])]
#[case::cut_between_reports(r#"{"findings": [@A,"#, &[])]
#[case::unreadable(r#"[@A, {"path": "b.rs", "title": =}]"#, &["the answer, line 1: report \"b.rs\" cannot be read to its end and is dropped"])]
#[case::neither_file_nor_problem(r#"{"findings": [@A, {"severity": "high", "line": 3}]}"#, &["the answer, line 1: a report that names neither a file nor a problem is dropped"])]
#[case::no_object(r#"{"findings": [@A, "and more", 3]}"#, &["the answer, line 1: report 2 is no object", "the answer, line 1: report 3 is no object"])]
fn what_cannot_be_read_is_said(#[case] text: &str, #[case] problems: &[&str]) {
    let extracted = read(&text.replace("@A", A));
    assert_eq!(
        (report_lines(&extracted), extracted.problems),
        (vec!["a.rs:1 A".to_owned()], problems.iter().map(|p| (*p).to_owned()).collect())
    );
}

#[test]
fn problems_are_told_up_to_a_bound() {
    let text = format!("{{\"findings\": [{}]}}", vec!["1"; 500].join(", "));
    let problems = read(&text).problems;
    assert_eq!((problems.len(), problems[20].as_str()), (21, "480 problems more of this answer"));
}

#[test]
fn tool_calls_come_first_and_are_read_although_they_were_cut_off() {
    let cut = r#"{"findings": [{"path": "c.rs", "line": 3, "title": "C"}, {"path": "d.rs""#;
    let calls = [("read_file", B), ("report_findings", cut), ("report_findings", "not json"), ("report_findings", "")];
    let extracted = extract_reports(&answer(&format!("[{A}]"), &calls));
    assert_eq!(report_lines(&extracted), ["c.rs:3 C", "a.rs:1 A"]);
    assert_eq!(
        extracted.problems,
        [
            "the arguments of report_findings, line 1: report \"d.rs\" was cut off and is dropped",
            "the arguments of report_findings are no JSON: nothing was reported by this call",
        ]
    );
}

fn one(json: &str) -> ReportedProblem {
    let extracted = read(&format!("{{\"findings\": [{json}]}}"));
    assert_eq!((extracted.reports.len(), extracted.problems.as_slice()), (1, [].as_slice()), "{json}");
    extracted.reports.into_iter().next().expect("a report")
}

fn reported(path: &str, lines: (u32, u32), title: &str) -> ReportedProblem {
    ReportedProblem {
        path: path.to_owned(),
        line_start: lines.0,
        line_end: lines.1,
        kind: Kind::Correctness,
        severity: None,
        priority: None,
        confidence: None,
        title: title.to_owned(),
        explanation: String::new(),
        quoted_code: String::new(),
        suggestion: String::new(),
        replacement: None,
        replaced: None,
    }
}

#[rstest]
#[case::ours(
    r#"{"priority": 1, "severity": "high", "confidence": "low", "kind": "CONCURRENCY", "title": "Lock kept", "explanation": "Over an await.",
        "repo_relative_path": "src/a.rs", "line_start": 3, "line_end": 5, "quoted_code": "\tlet g = m.lock();", "suggestion": "Drop it.",
        "replacement": "drop(g);\n", "replaced": {"start": 4, "end": 4}}"#,
    ReportedProblem {
        kind: Kind::Concurrency,
        priority: Some(Priority::P1),
        severity: Some(Severity::High),
        confidence: Some(Confidence::Low),
        explanation: "Over an await.".into(),
        quoted_code: "    let g = m.lock();".into(),
        suggestion: "Drop it.".into(),
        replacement: Some("drop(g);\n".into()),
        replaced: Some(LineRange::new(4, 4)),
        ..reported("src/a.rs", (3, 5), "Lock kept")
    }
)]
#[case::of_smell_reviewers(
    r#"{"path": "./src/a.ts", "severity": "major", "codeSmellType": "longMethod", "message": "Too long.", "improvement": "Split it.",
        "range": {"startLine": 10, "endLine": "90"}}"#,
    ReportedProblem {
        kind: Kind::LongMethod,
        severity: Some(Severity::High),
        suggestion: "Split it.".into(),
        ..reported("./src/a.ts", (10, 90), "Too long.")
    }
)]
#[case::a_line_and_its_range(
    r#"{"path": "src/a.ts", "line": 10, "codeSmellType": "longMethod", "title": "Too long", "range": {"startLine": 10, "endLine": 90}}"#,
    ReportedProblem { kind: Kind::LongMethod, ..reported("src/a.ts", (10, 90), "Too long") }
)]
#[case::of_sarif(
    r#"{"ruleId": "race-condition", "level": "error", "message": {"text": "Two threads write `n`."}, "locations": [
        {"physicalLocation": {"artifactLocation": {"uri": "src/a.ts"}, "region": {"startLine": 10, "endLine": 12}}},
        {"physicalLocation": {"artifactLocation": {"uri": "src/b.ts"}, "region": {"startLine": 90}}}]}"#,
    ReportedProblem {
        kind: Kind::Concurrency,
        severity: Some(Severity::High),
        ..reported("src/a.ts", (10, 12), "Two threads write `n`.")
    }
)]
#[case::of_github(
    r#"{"path": "src/a.ts", "start_line": 10, "line": 12, "side": "RIGHT", "body": "Two threads write `n`."}"#,
    ReportedProblem { explanation: String::new(), ..reported("src/a.ts", (10, 12), "Two threads write `n`.") }
)]
#[case::of_reviewdog(
    r#"{"message": "err is ignored", "location": {"path": "a/b.go", "range": {"start": {"line": 3, "column": 2}, "end": {"line": 4}}}, "severity": "WARNING", "code": {"value": "errcheck"}}"#,
    ReportedProblem { severity: Some(Severity::Medium), ..reported("a/b.go", (3, 4), "err is ignored") }
)]
#[case::a_place_in_one_text(r#"{"location": "a/b.go:10-20", "title": "x"}"#, reported("a/b.go", (10, 20), "x"))]
#[case::of_codex(
    r#"{"title": "[P1] Close the file", "body": "It leaks.\nAlways.", "confidence_score": 0.9, "priority": 1,
        "code_location": {"absolute_file_path": "/w/src/a.py", "line_range": {"start": 7, "end": 8}}}"#,
    ReportedProblem {
        priority: Some(Priority::P1),
        confidence: Some(Confidence::High),
        explanation: "It leaks.\nAlways.".into(),
        ..reported("/w/src/a.py", (7, 8), "Close the file")
    }
)]
#[case::of_linters(
    r#"{"file": "a/b.go:12:3", "type": "error handling", "severity": "warning", "description": "err is ignored"}"#,
    ReportedProblem {
        kind: Kind::ErrorHandling,
        severity: Some(Severity::Medium),
        ..reported("a/b.go", (12, 12), "err is ignored")
    }
)]
#[case::a_suggestion_with_code(
    r#"{"location": {"file": "a.c", "line": "L4"}, "title": "x", "suggestion": {"text": "Check it.", "replacement": "```c\nif (!p) return;\n```", "lines": [4, 5]}}"#,
    ReportedProblem {
        suggestion: "Check it.".into(),
        replacement: Some("if (!p) return;".into()),
        replaced: Some(LineRange::new(4, 5)),
        ..reported("a.c", (4, 4), "x")
    }
)]
#[case::a_suggestion_block(
    r#"{"path": "a.c", "range": {"startLine": 4, "endLine": 5}, "line": 4, "title": "x", "improvement": "Check it.\n```suggestion\n\tif (!p)\n\t\treturn;\n```"}"#,
    ReportedProblem {
        suggestion: "Check it.\n```suggestion\n    if (!p)\n        return;\n```".into(),
        replacement: Some("\tif (!p)\n\t\treturn;\n".into()),
        ..reported("a.c", (4, 5), "x")
    }
)]
#[case::a_suggestion_block_with_carriage_returns(
    r#"{"path": "a.c", "line": 4, "title": "x", "explanation": "Bad.\r\n````suggestion c\r\n/* ``` */\r\n````\r\n"}"#,
    ReportedProblem {
        explanation: "Bad.\n````suggestion c\n/* ``` */\n````".into(),
        replacement: Some("/* ``` */\n".into()),
        ..reported("a.c", (4, 4), "x")
    }
)]
#[case::a_suggestion_block_of_gitlab(
    r#"{"path": "a.c", "line": 4, "title": "x", "suggestion": {"text": "```suggestion:-1+2\ny();\n```"}}"#,
    ReportedProblem {
        suggestion: "```suggestion:-1+2\ny();\n```".into(),
        replacement: Some("y();\n".into()),
        replaced: Some(LineRange::new(3, 6)),
        ..reported("a.c", (4, 4), "x")
    }
)]
#[case::a_suggestion_block_beside_a_replacement(
    r#"{"path": "a.c", "line": 4, "title": "x", "suggestion": "```suggestion\ny();\n```", "replacement": "z();"}"#,
    ReportedProblem {
        suggestion: "```suggestion\ny();\n```".into(),
        replacement: Some("z();".into()),
        ..reported("a.c", (4, 4), "x")
    }
)]
#[case::a_code_block_is_no_replacement(
    r#"{"path": "a.c", "line": 4, "title": "x", "improvement": "Like this:\n```c\ny();\n```"}"#,
    ReportedProblem { suggestion: "Like this:\n```c\ny();\n```".into(), ..reported("a.c", (4, 4), "x") }
)]
#[case::a_fenced_replacement_with_more_backticks(
    r#"{"path": "a.c", "line": 4, "title": "x", "replacement": "````suggestion\r\n/* ``` */\r\n````"}"#,
    ReportedProblem { replacement: Some("/* ``` */".into()), ..reported("a.c", (4, 4), "x") }
)]
#[case::lists_of_lines(
    r#"{"path": "a.c", "title": "x", "code": ["a();", "b();"], "recommendation": ["One.", "Two."]}"#,
    ReportedProblem {
        quoted_code: "a();\nb();".into(),
        suggestion: "One.\nTwo.".into(),
        ..reported("a.c", (0, 0), "x")
    }
)]
#[case::lines_that_go("{\"path\": \"a.c\", \"title\": \"x\", \"replacement\": \"\"}", ReportedProblem { replacement: Some(String::new()), ..reported("a.c", (0, 0), "x") })]
#[case::no_title("{\"path\": \"a.c\", \"explanation\": \"\\n## **It breaks**\\nbadly\"}", ReportedProblem { explanation: "## **It breaks**\nbadly".into(), ..reported("a.c", (0, 0), "It breaks") })]
#[case::only_a_kind("{\"path\": \"a.c\", \"type\": \"GodClass\"}", ReportedProblem { kind: Kind::GodClass, ..reported("a.c", (0, 0), "") })]
#[case::an_index_is_no_priority("{\"path\": \"a.c\", \"title\": \"[0] is read twice\"}", reported("a.c", (0, 0), "[0] is read twice"))]
#[case::a_title_of_two_lines("{\"path\": \"a.c\", \"title\": \"It breaks.\\nBadly.\"}", ReportedProblem { explanation: "It breaks.\nBadly.".into(), ..reported("a.c", (0, 0), "It breaks.") })]
#[case::no_path("{\"title\": \"x\"}", reported("", (0, 0), "x"))]
#[case::hostile(
    "{\"path\": \"a\\u001b[2J\\n.c\", \"title\": \"\\u001b]52;x\\u0007 two\\nlines\", \"explanation\": \"\\u202e\\tz\"}",
    ReportedProblem { explanation: "\u{fffd}    z".into(), ..reported("a\u{fffd}[2J .c", (0, 0), "\u{fffd}]52;x\u{fffd} two") }
)]
fn fields_by_all_their_names(#[case] json: &str, #[case] expected: ReportedProblem) {
    assert_eq!(one(json), expected);
}

#[rstest]
#[case::raw_line_ends("{\"path\": \"a\", \"title\": \"x\", \"code\": \"a();\n  b();\"}", "a();\n  b();")]
#[case::unescaped_quotes(
    r#"{"path": "a", "title": "x", "code": "let s = "b"; f("c", s)", "line": 2}"#,
    r#"let s = "b"; f("c", s)"#
)]
#[case::unescaped_quotes_at_the_end(r#"{"path": "a", "title": "x", "code": "f(x, "c")"}"#, r#"f(x, "c")"#)]
#[case::an_apostrophe(r#"{'path': 'a', 'title': 'x', 'code': 'it's = don't'}"#, "it's = don't")]
#[case::json_as_code(
    r#"{"path": "a", "title": "x", "code": "{\"findings\": [{\"path\": \"b\", \"title\": \"no\"}]}"}"#,
    r#"{"findings": [{"path": "b", "title": "no"}]}"#
)]
#[case::a_fence_within(r#"{"path": "a", "title": "x", "code": "```json\n[1]\n```"}"#, "[1]")]
#[case::escapes(r#"{"path": "a", "title": "x", "code": "\u00e4\ud83e\udd80\ud800\/\d\t|"}"#, "ä🦀\u{fffd}/\\d    |")]
fn quotes_within_strings(#[case] json: &str, #[case] code: &str) {
    assert_eq!(one(json).quoted_code, code);
}

#[test]
fn texts_are_bounded() {
    let long = "ä b\n".repeat(30_000);
    let report = json!({"path": "p".repeat(5_000), "title": "t".repeat(5_000), "explanation": long, "quoted_code": long,
        "suggestion": long, "replacement": "r".repeat(20_000)});
    let kept = one(&report.to_string());
    let length = |text: &str| text.chars().count();
    assert_eq!((length(&kept.path), length(&kept.title), length(&kept.explanation)), (1_000, 200, 4_000));
    assert_eq!((length(&kept.quoted_code), length(&kept.suggestion)), (3_999, 4_000));
    assert_eq!(kept.replacement.map(|code| code.len()), Some(20_000));
    for (code, why) in [("r".repeat(20_001), "too long"), ("a\u{202e}b".into(), "cannot be seen")] {
        let report = json!([{"path": "p", "line": 1, "title": "t", "replacement": code}]);
        let extracted = read(&report.to_string());
        assert_eq!(extracted.reports.first().and_then(|report| report.replacement.as_ref()), None);
        assert!(extracted.problems[0].contains(why), "{:?}", extracted.problems);
    }
}

prop_compose! {
    /// Generates text with all characters that have a meaning in JSON, Markdown or code.
    fn tricky()(text in "[a-z0-9 \"'\\\\{}\\[\\],:/*`~“’\n\tü🦀-]{0,40}") -> String { text }
}

prop_compose! {
    fn report()(file in "[a-z]{1,8}", line in 1..5_000u32, title in tricky(), explanation in tricky(), code in tricky())
        -> serde_json::Value
    {
        json!({"path": format!("src/{file}.rs"), "line": line, "title": format!("t {title}"), "explanation": explanation,
            "quoted_code": code, "range": {"startLine": line, "endLine": line}, "severity": "high", "tags": ["a", {"b": null}]})
    }
}

/// Generates the text around the reports, and whether they are indented.
fn envelopes() -> impl Strategy<Value = (&'static str, &'static str, bool)> {
    let envelopes = prop::sample::select(vec![
        ("{\"findings\":[", "]}"),
        ("[", "]"),
        ("Some words [1] first:\n```json\n{\"result\": {\"issues\": [\n", "\n]}}\n```\nAnd after {it}."),
    ]);
    (envelopes, any::<bool>()).prop_map(|((before, after), indented)| (before, after, indented))
}

/// Returns the text and the end of each report in it.
fn written(reports: &[serde_json::Value], (before, after, indented): (&str, &str, bool)) -> (String, Vec<usize>) {
    let (mut text, mut ends) = (before.to_owned(), Vec::new());
    for (index, report) in reports.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&if indented { format!("{report:#}") } else { report.to_string() });
        ends.push(text.len());
    }
    text.push_str(after);
    (text, ends)
}

/// Writes the same JSON with the deviations of models; `noise` chooses their places.
fn noisy(value: &serde_json::Value, noise: &mut impl FnMut() -> usize, out: &mut String) {
    let gap = ["", " ", "\n", " // it's a \"comment\" {[\n", "/* , ] } \" */", "\u{a0}"];
    let blank = |out: &mut String, noise: &mut dyn FnMut() -> usize| out.push_str(gap[noise() % gap.len()]);
    blank(out, noise);
    match value {
        serde_json::Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                noisy(item, noise, out);
            }
            out.push_str(["", ",", ", "][noise() % 3]);
            blank(out, noise);
            out.push(']');
        }
        serde_json::Value::Object(members) => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                blank(out, noise);
                match noise() % 3 {
                    0 => out.push_str(name),
                    1 => out.push_str(&format!("'{name}'")),
                    _ => out.push_str(&format!("\"{name}\"")),
                }
                blank(out, noise);
                out.push(':');
                noisy(value, noise, out);
            }
            out.push_str(["", ",", ", "][noise() % 3]);
            blank(out, noise);
            out.push('}');
        }
        serde_json::Value::String(text) if noise().is_multiple_of(3) => {
            let escaped = text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('\t', "\\t");
            out.push_str(&format!("'{escaped}'"));
        }
        // Raw line ends.
        serde_json::Value::String(text) if noise().is_multiple_of(3) => {
            out.push_str(&format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
        }
        serde_json::Value::Null => out.push_str(["null", "None", "NaN"][noise() % 3]),
        other => out.push_str(&other.to_string()),
    }
    blank(out, noise);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic_or_invent(text in ".*", signs in "[\\[\\]{}\"',:/*`~\\\\a1 \n“’u-]{0,300}") {
        for text in [text, signs] {
            let twice = extract_reports(&answer(&text, &[(REPORT_FINDINGS_TOOL, &text)]));
            let begun = extract_reports(&answer(&format!("{{\"findings\": [{text}"), &[]));
            // Each report is an object of its own.
            let objects = text.matches('{').count();
            prop_assert!(twice.reports.len() <= 2 * objects, "{:?}", twice.reports);
            prop_assert!(begun.reports.len() <= objects + 1, "{:?}", begun.reports);
        }
    }

    #[test]
    fn a_cut_loses_what_it_tore_and_nothing_else(reports in prop::collection::vec(report(), 1..4), envelope in envelopes()) {
        let (text, ends) = written(&reports, envelope);
        let whole = read(&text);
        prop_assert_eq!(whole.reports.len(), reports.len(), "{}", text);
        prop_assert!(whole.problems.is_empty(), "{:?}", whole.problems);
        for cut in (0..text.len()).filter(|&cut| text.is_char_boundary(cut)) {
            let kept = ends.iter().filter(|&&end| end <= cut).count();
            let extracted = read(&text[..cut]);
            prop_assert_eq!(&extracted.reports, &whole.reports[..kept], "cut to {}", &text[..cut]);
            let as_call = extract_reports(&answer("", &[(REPORT_FINDINGS_TOOL, &text[..cut])]));
            prop_assert_eq!(&as_call.reports, &extracted.reports);
        }
    }

    #[test]
    fn noise_changes_nothing(reports in prop::collection::vec(report(), 1..4), seed in any::<u64>()) {
        let mut state = seed;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let plain = json!({ "findings": reports });
        let mut text = "It's \"here\" [see `a[0]`, {x}]:\n".to_owned();
        noisy(&plain, &mut noise, &mut text);
        text.push_str("\nThat's it, isn't it? { [");
        let (noisy, plain) = (read(&text), read(&plain.to_string()));
        prop_assert_eq!(noisy, plain, "{}", text);
    }
}
