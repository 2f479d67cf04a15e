//! From a model's answer to findings: parsed, checked against files with masked secrets, accumulated, applied.

use std::rc::Rc;

use revdeck::domain::{ChatResponse, LineRange, RunId, StopReason, Usage};
use revdeck::review::{
    Admission, FileText, FindingAccumulator, ReportValidation, ScopeLines, apply_replacement, extract_reports,
    validate_report,
};
use revdeck::reviewers::analyzer::{Builtin, FileRedactor, has_no_new_syntax_errors};
use revdeck::syntax::source::Parsers;

const PATH: &str = "src/client.py";
const SECRET: &str = "sk_live_9aT4vQ1xZ8mB3nK7pL2w";

fn code() -> String {
    format!("import net\n\nAPI_KEY = \"{SECRET}\"\n\n\ndef send(body):\n    net.post(API_KEY, body)\n    return True\n")
}

fn hidden() -> FileRedactor {
    let code = code();
    let file = Builtin::default().analyze_file(&mut Parsers::default(), PATH, code.as_bytes()).expect("Python");
    file.secrets.redactor(code.as_bytes()).clone()
}

fn answer(text: &str) -> ChatResponse {
    ChatResponse {
        text: text.to_owned(),
        calls: Vec::new(),
        opaque: Vec::new(),
        stop: StopReason::Done,
        usage: Usage::default(),
        model: String::new(),
    }
}

/// Returns the findings that the file confirms, and the reasons why the others are rejected.
fn examined(text: &str) -> (Vec<revdeck::domain::Finding>, Vec<String>) {
    let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id");
    let (hidden, text_of_file) = (hidden(), code());
    let file = FileText::with_hidden(text_of_file.as_bytes(), |line, at| Some(hidden.redact_slice(line, at)));
    let file = Rc::new(file);
    let scope = ScopeLines::new([(PATH.to_owned(), vec![LineRange::new(3, 8)])]);
    let (mut findings, mut reasons) = (Vec::new(), Vec::new());
    for report in extract_reports(&answer(text)).reports {
        match validate_report(&report, &scope, &run, |path| (path == PATH).then(|| Rc::clone(&file))) {
            ReportValidation::Finding { mut finding, notes } => {
                hidden.redact_finding(&mut finding);
                findings.push(*finding);
                reasons.extend(notes);
            }
            ReportValidation::Rejected(rejected) => reasons.push(rejected.reason),
        }
    }
    (findings, reasons)
}

#[test]
fn a_secret_that_a_model_repeats_is_shown_nowhere() {
    let told = format!(
        "```json\n[{{\"path\": \"{PATH}\", \"line\": 3, \"type\": \"security\", \"title\": \"Key {SECRET} in code\",
            \"explanation\": \"{SECRET} can be read by everybody.\", \"quoted_code\": \"API_KEY = '{SECRET}'\",
            \"suggestion\": \"Not {SECRET}.\", \"replacement\": \"API_KEY = env('K', '{SECRET}')\"}},
          {{\"path\": \"{PATH}\", \"line\": 3, \"type\": \"security\", \"title\": \"Key in code\",
            \"quoted_code\": \"API_KEY = \\\"{SECRET}\\\"\"}}]\n```"
    );
    let (findings, reasons) = examined(&told);
    // The first report quotes text that is not in the file: its quotation marks differ.
    assert_eq!(reasons, [format!("the quoted code does not stand in {PATH}")]);
    assert_eq!(findings.len(), 1);
    let told = told.replace(&format!("'{SECRET}'"), &format!("\\\"{SECRET}\\\""));
    let (findings, reasons) = examined(&told);
    assert_eq!(findings.len(), 2, "{reasons:?}");
    for finding in &findings {
        assert_eq!(finding.line_start, 3);
        let shown = serde_json::to_string(finding).expect("JSON");
        assert!(shown.contains("API_KEY") && !shown.contains(&SECRET[..12]), "{shown}");
        assert_eq!(finding.suggestion.as_ref().and_then(|suggestion| suggestion.replacement.as_ref()), None);
    }
    assert_eq!(findings[0].finding_id, findings[1].finding_id);
}

#[test]
fn a_suggestion_is_applied_and_parsed() {
    let told = format!(
        "Found: {{\"issues\": [
            {{path: '{PATH}', line: 7, type: 'error handling', title: 'Errors of the network are not handled',
              code: 'net.post(API_KEY, body)', improvement: 'Catch it.',
              replacement: '    try:\\n        net.post(API_KEY, body)\\n    except net.Error:\\n        return False'}},
            {{path: '{PATH}', line: 8, category: 'MISSING_ERROR_HANDLING', title: 'Network errors not handled', severity: 'critical',
              code: 'return True', replacement: 'return (True'}},]}}"
    );
    let (findings, reasons) = examined(&told);
    assert_eq!((findings.len(), reasons.as_slice()), (2, [].as_slice()));
    let parses: Vec<bool> = findings
        .iter()
        .map(|finding| {
            let suggestion = finding.suggestion.as_ref().expect("a suggestion");
            let lines = suggestion.lines.unwrap_or(finding.lines());
            let after = apply_replacement(&code(), lines, suggestion.replacement.as_deref().expect("a replacement"));
            assert_ne!(after, code());
            has_no_new_syntax_errors(PATH, &code(), &after)
        })
        .collect();
    assert_eq!(parses, [true, false]);

    let mut known = FindingAccumulator::default();
    assert_eq!(known.admit(&findings[0]), Admission::New);
    let Admission::Restated(both) = known.admit(&findings[1]) else { panic!("{:?}", known.findings()) };
    assert_eq!((both.finding_id, both.severity.word()), (findings[0].finding_id.clone(), "critical"));
}
