//! Extracts the answer to a question about a finding: a verdict and a text, as JSON anywhere in the model's words.

use super::lenient_json::{LenientJsonReader, LenientObject, LenientValue, ParseEnd};
use crate::domain::text::sanitize_lines;
use crate::domain::{QuestionAnswer, QuestionVerdict};

/// End of a text that was cut at [`QuestionAnswer::MAX_CHARS`].
const CUT_MARK: &str = " … (cut off)";

/// Parses the last object with `verdict` and `answer` in an answer. Without one, all of the answer is the text, its
/// verdict is `explained`, and it is marked as unstructured. Returns `None` for an answer without text.
pub fn parse_question_answer(answer: &str) -> Option<QuestionAnswer> {
    let mut reader = LenientJsonReader::new(answer);
    let mut found = None;
    while let Some(value) = reader.next_value() {
        if let LenientValue::Object(object) = &value {
            found = read_answer(object).or(found);
        }
    }
    let (verdict, text, unstructured) = match found {
        Some((verdict, text)) => (verdict, text, false),
        None => (QuestionVerdict::Explained, answer.to_owned(), true),
    };
    let text = clean_text(&text);
    (!text.is_empty()).then_some(QuestionAnswer { verdict, text, unstructured })
}

/// Returns verdict and text of an object; `None` if it lacks one, or is not whole.
fn read_answer(object: &LenientObject<'_>) -> Option<(QuestionVerdict, String)> {
    let text = |name: &str| {
        object.members.iter().rev().find_map(|(key, value)| match value {
            LenientValue::Text(text) if key.eq_ignore_ascii_case(name) => Some(text.trim()),
            _ => None,
        })
    };
    if object.end != ParseEnd::Whole {
        return None;
    }
    let verdict = text("verdict")?.to_ascii_lowercase().parse().ok()?;
    let answer = text("answer").filter(|answer| !answer.is_empty())?;
    Some((verdict, answer.to_owned()))
}

/// Returns a text without control characters, of limited length.
fn clean_text(text: &str) -> String {
    let clean = sanitize_lines(text.trim(), 4);
    let cut = clean.char_indices().nth(QuestionAnswer::MAX_CHARS).map(|(at, _)| at);
    match cut {
        Some(at) => format!("{}{CUT_MARK}", clean[..at].trim_end()),
        None => clean,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain_json(
        r#"{"verdict": "stands", "answer": "It can be null."}"#,
        QuestionVerdict::Stands,
        "It can be null."
    )]
    #[case::fence(
        "```json\n{\"verdict\": \"withdrawn\", \"answer\": \"Line 4 checks it.\"}\n```",
        QuestionVerdict::Withdrawn,
        "Line 4 checks it."
    )]
    #[case::prose(
        "Let me look: `if (a) {` is the check.\n\n{\"verdict\":\"explained\",\"answer\":\"a\\nb\"}\nHope this helps!",
        QuestionVerdict::Explained,
        "a\nb"
    )]
    #[case::last_object(
        "{\"verdict\": \"stands\", \"answer\": \"first\"} no: {\"verdict\": \"withdrawn\", \"answer\": \"second\"}",
        QuestionVerdict::Withdrawn,
        "second"
    )]
    #[case::lenient("{verdict: 'Stands', \"Answer\": \"raw\nline\",}", QuestionVerdict::Stands, "raw\nline")]
    fn an_answer_is_found(#[case] answer: &str, #[case] verdict: QuestionVerdict, #[case] text: &str) {
        let expected = QuestionAnswer { verdict, text: text.to_owned(), unstructured: false };
        assert_eq!(parse_question_answer(answer), Some(expected), "{answer}");
    }

    #[rstest]
    #[case::no_json("It is a problem because it can be null.")]
    #[case::no_verdict(r#"{"answer": "It can be null."}"#)]
    #[case::no_answer(r#"{"verdict": "withdrawn"}"#)]
    #[case::empty_answer(r#"{"verdict": "withdrawn", "answer": " "}"#)]
    #[case::unknown_verdict(r#"{"verdict": "dismissed", "answer": "Dismiss it."}"#)]
    #[case::cut_off(r#"{"verdict": "withdrawn", "answer": "The caller"#)]
    #[case::other_types(r#"{"verdict": true, "answer": ["a"]}"#)]
    fn an_answer_of_another_form_is_text(#[case] answer: &str) {
        let verdict = QuestionVerdict::Explained;
        let expected = QuestionAnswer { verdict, text: answer.to_owned(), unstructured: true };
        assert_eq!(parse_question_answer(answer), Some(expected));
    }

    #[test]
    fn a_hostile_answer_is_short_text_without_control_characters() {
        for empty in ["", " \n\t"] {
            assert_eq!(parse_question_answer(empty), None);
        }
        let hostile = "{\"verdict\": \"stands\", \"answer\": \"\\u001b[2Jrun `revdeck triage x dismissed`\\u202e\"}";
        let answer = parse_question_answer(hostile).expect("an answer");
        assert_eq!(answer.text, "\u{fffd}[2Jrun `revdeck triage x dismissed`\u{fffd}");
        let huge = parse_question_answer(&"ä{[\"".repeat(200_000)).expect("a text");
        assert_eq!(huge.text.chars().count(), QuestionAnswer::MAX_CHARS + CUT_MARK.chars().count());
        assert!(huge.unstructured && huge.text.ends_with(CUT_MARK));
    }
}
