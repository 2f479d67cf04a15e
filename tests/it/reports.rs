//! From a model's answer to findings: parsed, checked against files, accumulated, applied.

use std::rc::Rc;

use revdeck::domain::{ChatResponse, LineRange, RunId, StopReason, Usage};
use revdeck::review::{
    Admission, FileText, FindingAccumulator, ReportValidation, ScopeLines, apply_replacement, extract_reports,
    validate_report,
};
use revdeck::reviewers::analyzer::SyntaxBaseline;

const PATH: &str = "src/client.py";

fn code() -> String {
    "import net\n\nAPI_KEY = net.key()\n\n\ndef send(body):\n    net.post(API_KEY, body)\n    return True\n".to_owned()
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
    let file = Rc::new(FileText::new(code().as_bytes()));
    let scope = ScopeLines::new([(PATH.to_owned(), vec![LineRange::new(3, 8)])]);
    let (mut findings, mut reasons) = (Vec::new(), Vec::new());
    for report in extract_reports(&answer(text)).reports {
        match validate_report(&report, &scope, &run, |path| (path == PATH).then(|| Rc::clone(&file))) {
            ReportValidation::Finding { finding, notes } => {
                findings.push(*finding);
                reasons.extend(notes);
            }
            ReportValidation::Rejected(rejected) => reasons.push(rejected.reason),
        }
    }
    (findings, reasons)
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
            SyntaxBaseline::new(PATH, &code()).allows(PATH, &after)
        })
        .collect();
    assert_eq!(parses, [true, false]);

    let mut known = FindingAccumulator::default();
    assert_eq!(known.admit(&findings[0]), Admission::New);
    let Admission::Restated(both) = known.admit(&findings[1]) else { panic!("{:?}", known.findings()) };
    assert_eq!((both.finding_id, both.severity.word()), (findings[0].finding_id.clone(), "critical"));
}
