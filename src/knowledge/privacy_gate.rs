//! Checks a form before it leaves the machine or is stored: each token must be a word of the grammar, a placeholder,
//! or a name of the published list.
//!
//! - Every form that is learned, stored, exported or imported has passed this check.
//! - The check shares no code with `abstraction`, so that a bug there cannot let a name through.
//! - An error names the position of a token, never its text.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use thiserror::Error;

use super::form::{Form, FormToken, MAX_TOKENS, Placeholder};
use super::stdlib_names;
use crate::domain::Kind;
use crate::syntax::language::Language;

/// Reason why a form is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AdmissionError {
    #[error("revdeck knows no language of that name")]
    Language,
    #[error("a form has at most {MAX_TOKENS} tokens")]
    TooLong,
    #[error("the form is empty")]
    Empty,
    /// Position of the token (1-based).
    #[error("token {0} is neither of the language, nor a placeholder, nor in the list of its standard library")]
    Token(usize),
    #[error("placeholder {0} is not numbered by its first appearance")]
    Number(usize),
    #[error("it is no kind of finding that may be lowered")]
    Kind,
}

/// Checks one canonical form, for example a broken form.
///
/// # Errors
///
/// Returns the first reason to refuse the form.
#[cfg(feature = "eval")]
pub fn admit(language: &str, form: &Form) -> Result<(), AdmissionError> {
    if form.is_empty() {
        return Err(AdmissionError::Empty);
    }
    check_tokens(language, form, &mut HashMap::new())
}

/// Checks a broken and a fixed form that share one numbering. The fixed form may be empty.
///
/// # Errors
///
/// Returns the first reason to refuse the forms.
pub fn admit_pair(language: &str, broken: &Form, fixed: &Form) -> Result<(), AdmissionError> {
    let mut given = HashMap::new();
    if broken.is_empty() {
        return Err(AdmissionError::Empty);
    }
    check_tokens(language, broken, &mut given)?;
    check_tokens(language, fixed, &mut given)
}

/// Parses the word of a kind whose verdicts are counted: only a smell that may be lowered.
///
/// # Errors
///
/// Returns [`AdmissionError::Kind`] for any other word.
pub fn admit_kind(word: &str) -> Result<Kind, AdmissionError> {
    let kind = word.parse().ok().filter(|kind: &Kind| kind.is_smell() && !kind.is_never_lowered());
    kind.ok_or(AdmissionError::Kind)
}

/// Checks the tokens of a form. `given` holds the highest placeholder numbers so far. Numbers must follow the first
/// appearance, because free numbers could encode data.
fn check_tokens(language: &str, form: &Form, given: &mut HashMap<Placeholder, u16>) -> Result<(), AdmissionError> {
    let words = ALLOWED_WORDS.get(language).ok_or(AdmissionError::Language)?;
    if form.tokens().len() > MAX_TOKENS {
        return Err(AdmissionError::TooLong);
    }
    for (at, token) in form.tokens().iter().enumerate() {
        match token {
            FormToken::Kept(text) if words.contains(&**text) => {}
            FormToken::Kept(_) => return Err(AdmissionError::Token(at + 1)),
            FormToken::Hole { kind, number } => {
                let last = given.entry(*kind).or_default();
                if *number == 0 || *number > *last + 1 {
                    return Err(AdmissionError::Number(at + 1));
                }
                *last = (*last).max(*number);
            }
        }
    }
    Ok(())
}

/// All token texts that forms of a language may hold, by language name.
static ALLOWED_WORDS: LazyLock<HashMap<&'static str, HashSet<String>>> = LazyLock::new(|| {
    let mut all: HashMap<&'static str, HashSet<String>> = HashMap::new();
    for language in Language::ALL {
        let words = all.entry(language.name()).or_default();
        let grammar = language.grammar();
        for kind in 0..grammar.node_kind_count() as u16 {
            if grammar.node_kind_is_named(kind) || !grammar.node_kind_is_visible(kind) {
                continue;
            }
            // An unnamed node kind is the text that stands in the code.
            for word in grammar.node_kind_for_id(kind).unwrap_or("").split_whitespace() {
                if word.chars().all(|c| c.is_ascii_graphic()) {
                    words.insert(word.to_owned());
                }
            }
        }
        for line in stdlib_names::list_text(language.name()).lines() {
            if !line.starts_with(['#', '[']) {
                words.extend(line.split_whitespace().map(str::to_owned));
            }
        }
    }
    all
});

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("java", "if ( VARIABLE == null ) BODY", Ok(()))]
    #[case("java", "VARIABLE . FUNCTION_NAME ( VARIABLE_2 , STRING )", Ok(()))]
    #[case("java", "Integer . parseInt ( VARIABLE )", Ok(()))]
    #[case::a_name_of_somebody("java", "if ( apiKey == null ) BODY", Err(AdmissionError::Token(3)))]
    #[case::a_literal("java", "VARIABLE + 42", Err(AdmissionError::Token(3)))]
    #[case::a_string("java", "VARIABLE + \"x\"", Err(AdmissionError::Token(3)))]
    #[case::a_comment("java", "// todo", Err(AdmissionError::Token(1)))]
    #[case::of_another_language("python", "VARIABLE && VARIABLE_2", Err(AdmissionError::Token(2)))]
    #[case::numbers_that_carry_something("java", "VARIABLE + VARIABLE_3", Err(AdmissionError::Number(3)))]
    #[case::no_language("cobol", "VARIABLE", Err(AdmissionError::Language))]
    #[case::nothing("java", "", Err(AdmissionError::Empty))]
    fn a_form_passes_or_not(#[case] language: &str, #[case] form: &str, #[case] expected: Result<(), AdmissionError>) {
        assert_eq!(admit(language, &form.parse().expect("a form")), expected);
    }

    #[rstest]
    #[case("LONG_METHOD", Ok(Kind::LongMethod))]
    #[case::never_lowered("HARDCODED_CONFIGURATION", Err(AdmissionError::Kind))]
    #[case::no_smell("PERFORMANCE", Err(AdmissionError::Kind))]
    #[case::a_name_of_somebody("launchCodes", Err(AdmissionError::Kind))]
    fn a_kind_is_counted_or_not(#[case] word: &str, #[case] expected: Result<Kind, AdmissionError>) {
        assert_eq!(admit_kind(word), expected);
    }

    #[test]
    fn a_refusal_does_not_say_what_it_refuses() {
        let form = "if ( apiKey == null ) BODY".parse().expect("a form");
        let said = admit("java", &form).expect_err("a name of somebody").to_string();
        assert!(!said.contains("apiKey"), "{said}");
    }

    #[test]
    fn the_fixed_form_goes_on_with_the_numbers_of_the_broken() {
        let form = |text: &str| text.parse::<Form>().expect("a form");
        assert_eq!(admit_pair("java", &form("VARIABLE ++"), &form("VARIABLE_2 ++")), Ok(()));
        assert_eq!(admit_pair("java", &form("VARIABLE ++"), &Form::default()), Ok(()));
        assert_eq!(admit_pair("java", &form("VARIABLE ++"), &form("VARIABLE_3 ++")), Err(AdmissionError::Number(1)));
    }
}
