//! Parses exact text edits from a model's answer and applies them.
//!
//! - An edit is applied only if its old text occurs exactly once.
//! - All edits are applied, or none.
//! - Nothing is taken from a truncated answer.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;

/// Maximum number of edits in one answer. Not from the literature: a fix is small.
const MAX_EDITS: usize = 200;

/// A replacement of text in a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TextEdit {
    pub path: String,
    pub old: String,
    /// Empty to delete the old text.
    #[serde(default)]
    pub new: String,
}

#[derive(Deserialize)]
struct EditsAnswer {
    edits: Vec<TextEdit>,
}

/// Parses the edits of an answer: those of its last JSON object with an `edits` list. An empty list is valid.
///
/// # Errors
///
/// The reason, in words for the model.
pub fn parse_edits(answer: &str) -> Result<Vec<TextEdit>, String> {
    let mut found: Option<Vec<TextEdit>> = None;
    let mut why = "there is no JSON object with `edits` in your answer".to_owned();
    let mut from = 0;
    while let Some(at) = answer.get(from..).and_then(|rest| rest.find('{')).map(|at| from + at) {
        let mut values = serde_json::Deserializer::from_str(&answer[at..]).into_iter::<EditsAnswer>();
        match values.next() {
            Some(Ok(answer)) => {
                found = Some(answer.edits);
                from = at + values.byte_offset();
            }
            Some(Err(error)) => {
                // Every bracket in code looks like a JSON object; only an object with `edits` is worth an error
                // message.
                if answer[at..].get(..40.min(answer.len() - at)).is_some_and(|head| head.contains("\"edits\"")) {
                    why = format!("the JSON cannot be read: {error}");
                    found = None;
                }
                from = at + 1;
            }
            None => break,
        }
    }
    match found {
        Some(edits) if edits.len() > MAX_EDITS => {
            Err(format!("{} edits are too many; {MAX_EDITS} is the most", edits.len()))
        }
        Some(edits) => Ok(edits),
        None => Err(why),
    }
}

/// Applies all edits and returns the texts that change.
///
/// # Errors
///
/// One line for each edit that cannot be applied; then no edit is applied.
pub fn apply_edits(
    edits: &[TextEdit],
    texts: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Vec<String>> {
    let mut places: BTreeMap<&str, Vec<(Range<usize>, String)>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (number, edit) in (1..).zip(edits) {
        match locate_edit(edit, texts) {
            Ok(place) => places.entry(&edit.path).or_default().push(place),
            Err(why) => wrong.push(format!("edit {number} ({}): {why}", edit.path)),
        }
    }
    for (path, places) in &mut places {
        places.sort_by_key(|(place, _)| (place.start, place.end));
        if places.windows(2).any(|two| two[0].0.end > two[1].0.start) {
            wrong.push(format!("{path}: its edits overlap"));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut made = BTreeMap::new();
    for (path, places) in places {
        let Some(text) = texts.get(path) else { continue };
        let mut new = text.clone();
        for (place, with) in places.into_iter().rev() {
            new.replace_range(place, &with);
        }
        if new != *text {
            made.insert(path.to_owned(), new);
        }
    }
    Ok(made)
}

fn locate_edit(edit: &TextEdit, texts: &BTreeMap<String, String>) -> Result<(Range<usize>, String), String> {
    let text = texts.get(&edit.path).ok_or("this file was not shown")?;
    if edit.old.is_empty() {
        return Err("`old` is empty".to_owned());
    }
    // Models write line feeds, whatever the file uses.
    let has_returns = text.contains("\r\n");
    let fit = |words: &str| match has_returns && !words.contains("\r\n") {
        true => words.replace('\n', "\r\n"),
        false => words.to_owned(),
    };
    let old = fit(&edit.old);
    let mut places = text.match_indices(old.as_str()).map(|(at, _)| at);
    match (places.next(), places.count()) {
        (None, _) => Err("`old` does not stand in the file".to_owned()),
        (Some(at), 0) => Ok((at..at + old.len(), fit(&edit.new))),
        (Some(_), more) => Err(format!("`old` stands at {} places of the file", more + 1)),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn edit(old: &str, new: &str) -> TextEdit {
        TextEdit { path: "a".to_owned(), old: old.to_owned(), new: new.to_owned() }
    }

    #[rstest]
    #[case::fenced("I would:\n```json\n{\"edits\":[{\"path\":\"a\",\"old\":\"x\",\"new\":\"y\"}]}\n```\n", Ok(1))]
    #[case::none_needed("{\"edits\":[]}", Ok(0))]
    #[case::behind_code("fn f() { g() }\n{\"edits\":[{\"path\":\"a\",\"old\":\"{\"}]}", Ok(1))]
    #[case::the_last_counts("{\"edits\":[]} no: {\"edits\":[{\"path\":\"a\",\"old\":\"x\"}]}", Ok(1))]
    #[case::in_words("Replace x with y.", Err("no JSON object"))]
    #[case::cut_off("```json\n{\"edits\":[{\"path\":\"a\",\"old\":\"x\",\"ne", Err("cannot be read"))]
    #[case::another_shape("{\"edits\":{\"path\":\"a\"}}", Err("cannot be read"))]
    #[case::cut_off_after_a_first_try("{\"edits\":[]} better: {\"edits\":[{\"path\"", Err("cannot be read"))]
    #[case::empty("", Err("no JSON object"))]
    fn answers_are_read(#[case] answer: &str, #[case] expected: Result<usize, &str>) {
        match (parse_edits(answer), expected) {
            (Ok(edits), Ok(count)) => assert_eq!(edits.len(), count),
            (Err(why), Err(says)) => assert!(why.contains(says), "{why}"),
            (found, expected) => panic!("{found:?} and not {expected:?}"),
        }
    }

    #[rstest]
    #[case::one("a b c", &[edit("b", "B")], Ok("a B c"))]
    #[case::several("a b c", &[edit("c", "C"), edit("a", "AA")], Ok("AA b C"))]
    #[case::removed("a b c", &[edit("b ", "")], Ok("a c"))]
    #[case::carriage_returns("a\r\nb\r\nc\r\n", &[edit("a\nb\n", "A\nB\n")], Ok("A\r\nB\r\nc\r\n"))]
    #[case::twice("a a", &[edit("a", "b")], Err("stands at 2 places"))]
    #[case::not_there("a", &[edit("b", "c")], Err("does not stand"))]
    #[case::empty_old("a", &[edit("", "c")], Err("is empty"))]
    #[case::overlapping("abc", &[edit("ab", "x"), edit("bc", "y")], Err("overlap"))]
    #[case::another_file("a", &[TextEdit { path: "../b".to_owned(), ..edit("a", "b") }], Err("not shown"))]
    #[case::one_of_two_is_wrong("a b", &[edit("a", "A"), edit("x", "y")], Err("edit 2"))]
    fn edits_fit_or_are_refused(#[case] text: &str, #[case] edits: &[TextEdit], #[case] expected: Result<&str, &str>) {
        let texts = BTreeMap::from([("a".to_owned(), text.to_owned())]);
        match (apply_edits(edits, &texts), expected) {
            (Ok(made), Ok(new)) => assert_eq!(made, BTreeMap::from([("a".to_owned(), new.to_owned())])),
            (Err(why), Err(says)) => assert!(why.join("\n").contains(says), "{why:?}"),
            (found, expected) => panic!("{found:?} and not {expected:?}"),
        }
    }
}
