//! Descriptions of the tools `report_findings` and `finish` for the model. The engine executes them.

use serde_json::{Value, json};

use super::Tool;
use crate::domain::{Confidence, Kind, Severity, ToolSpec};

pub fn report_findings_spec() -> ToolSpec {
    Tool::ReportFindings.build_spec(
        "Report problems as soon as you are sure of them; they are kept, whatever becomes of the conversation. Several \
         for one place are welcome. Do not report the same problem twice.",
        json!({
            "type": "object",
            "properties": {
                "findings": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "path": {"type": "string", "description": "Relative to the repository's root."},
                            "line_start": {"type": "integer", "description": "First line, in the snapshot."},
                            "line_end": {"type": "integer", "description": "Last line, included."},
                            "kind": {"type": "string", "enum": Kind::ALL.iter().map(|kind| kind.word()).collect::<Vec<_>>()},
                            "title": {"type": "string", "description": "The problem in one line."},
                            "explanation": {"type": "string", "description": "Why it is one, and when it shows."},
                            "quoted_code": {"type": "string", "description": "The lines it is about, copied exactly."},
                            "severity": {
                                "type": "string",
                                "enum": Severity::ALL.iter().map(|word| word.word()).collect::<Vec<_>>(),
                            },
                            "confidence": {
                                "type": "string",
                                "enum": Confidence::ALL.iter().map(|word| word.word()).collect::<Vec<_>>(),
                            },
                            "priority": {"type": "integer", "description": "0 (now) to 3 (when there is time)."},
                            "suggestion": {"type": "string", "description": "What to do, in words."},
                            "replacement": {
                                "type": "string",
                                "description": "New text for exactly line_start to line_end, if you are certain of it.",
                            },
                        },
                        "required": ["path", "line_start", "line_end", "kind", "title", "explanation", "quoted_code"],
                    },
                },
            },
            "required": ["findings"],
        }),
    )
}

pub fn finish_spec() -> ToolSpec {
    Tool::Finish
        .build_spec("End the review: everything was looked at, and everything found is reported.", finish_parameters())
}

fn finish_parameters() -> Value {
    json!({
        "type": "object",
        "properties": {"summary": {"type": "string", "description": "What was reviewed and what came of it."}},
        "required": ["summary"],
    })
}
