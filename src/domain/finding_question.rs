//! Defines questions of the user to the reviewer of a finding, with their answers. An answer changes no status: also a
//! withdrawal is a claim about which the user decides.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{FindingId, RunId, Time, Usage};

word_enum!(
    /// Opinion of a reviewer about its report after a question.
    QuestionVerdict {
        /// The reviewer holds to its report.
        Stands = "stands",
        /// The reviewer explains its report, or its answer has no verdict.
        Explained = "explained",
        /// The reviewer takes its report back. The user decides.
        Withdrawn = "withdrawn",
    }
);

/// Question about a finding, before there is an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionRequest {
    /// Finding that the question is about; of a report that a panel lists under another id, the finding of the list.
    pub finding_id: FindingId,
    /// Run that reported the finding; the reviewer sees the code of its snapshot.
    pub run_id: RunId,
    /// Question on one line, at most [`QuestionRequest::MAX_CHARS`] characters. Secrets are masked, unless
    /// the reviewer has `mask_secrets = false`.
    pub question: String,
    /// Name of the reviewer that is asked.
    pub reviewer: String,
    /// Time of the question.
    pub at: Time,
    /// The most tokens that the question takes. Reserved in the budgets until it has its result.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reserved_tokens: u64,
    /// The most that the question costs, in millionths of a dollar. Reserved like the tokens.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reserved_microdollars: u64,
    /// Report of a panel's member that the reviewer is shown; `None` for that of `finding_id`. The list of the panel has its problem as
    /// `finding_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_as: Option<FindingId>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl QuestionRequest {
    /// Maximum length of a question in characters. Own choice: several sentences, but no page.
    pub const MAX_CHARS: usize = 2_000;
}

/// Result of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionOutcome {
    /// The reviewer has answered.
    Answer(QuestionAnswer),
    /// There is no answer, for this reason.
    Failure(String),
}

/// Answer of a reviewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswer {
    /// Opinion of the reviewer about its report.
    pub verdict: QuestionVerdict,
    /// Text of one or more lines without control characters, at most [`QuestionAnswer::MAX_CHARS`] characters.
    pub text: String,
    /// True if the answer did not have the requested form: the verdict is a default, and the text is all of the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstructured: bool,
}

impl QuestionAnswer {
    /// Maximum length of an answer in characters; the rest is cut off. Own choice: two pages.
    pub const MAX_CHARS: usize = 8_000;
}

/// Line of `questions.ndjson`: a question and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindingQuestion {
    /// The question.
    #[serde(flatten)]
    pub request: QuestionRequest,
    /// Model that answered, as it names itself; empty if none did.
    #[serde(default)]
    pub model: String,
    /// The answer, or the reason why there is none.
    #[serde(flatten)]
    pub outcome: QuestionOutcome,
    /// Tokens of the request and the answer.
    #[serde(default)]
    pub tokens: Usage,
    /// Cost in US dollars; 0 if the price is unknown.
    #[serde(default)]
    pub cost: f64,
    /// Time from the question to its result in milliseconds.
    #[serde(default)]
    pub took_ms: u64,
}

impl FindingQuestion {
    /// Creates the line of a question that nobody answered and nobody paid for.
    pub fn failed(request: QuestionRequest, reason: String) -> Self {
        let (model, tokens) = (String::new(), Usage::default());
        Self { request, model, outcome: QuestionOutcome::Failure(reason), tokens, cost: 0.0, took_ms: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_flat_json_with_an_answer_or_a_failure() {
        let request = QuestionRequest {
            finding_id: "f_0000000000000001".parse().expect("an id"),
            run_id: "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id"),
            question: "Why?".to_owned(),
            reviewer: "m".to_owned(),
            at: Time::UNIX_EPOCH,
            reserved_tokens: 0,
            reserved_microdollars: 0,
            reported_as: None,
        };
        let failed = FindingQuestion::failed(request, "no network".to_owned());
        let answer = QuestionAnswer {
            verdict: QuestionVerdict::Withdrawn,
            text: "It is checked.".to_owned(),
            unstructured: false,
        };
        let answered = FindingQuestion { outcome: QuestionOutcome::Answer(answer), cost: 0.25, ..failed.clone() };
        for (line, key, value) in [
            (&failed, "failure", serde_json::json!("no network")),
            (&answered, "answer", serde_json::json!({ "verdict": "withdrawn", "text": "It is checked." })),
        ] {
            let json = serde_json::to_value(line).expect("JSON");
            assert_eq!((&json["question"], &json[key]), (&serde_json::json!("Why?"), &value));
            assert_eq!(&serde_json::from_value::<FindingQuestion>(json).expect("a line"), line);
        }
    }
}
