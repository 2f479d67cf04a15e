//! Defines forms: abstract code as a sequence of kept tokens and placeholders.
//!
//! - A form is written with one space between tokens, and parsing that text gives the same form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::domain::word_enum;

/// Maximum number of tokens in a form; longer code is hardly ever seen twice.
pub const MAX_TOKENS: usize = 64;

word_enum!(
    /// Placeholder for a part of the code.
    Placeholder {
        FunctionName = "FUNCTION_NAME",
        TypeName = "TYPE_NAME",
        /// Arguments or parameters between parentheses that are too long to be written out.
        Args = "ARGS",
        Variable = "VARIABLE",
        String = "STRING",
        Number = "NUMBER",
        /// Expression that is too long to be written out.
        Expression = "EXPRESSION",
        /// Block of statements.
        Body = "BODY",
    }
);

/// Token of a form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FormToken {
    /// Keyword, operator, punctuation or a well-known name of the standard library.
    Kept(Box<str>),
    /// Placeholder for the `number`-th distinct thing of its kind in the pattern (1-based). Number 1 is not written.
    Hole {
        /// Kind of the replaced code.
        kind: Placeholder,
        /// Number among the placeholders of this kind; 0 in comparisons that ignore numbers.
        number: u16,
    },
}

/// Sequence of tokens. The broken and the fixed form of a pattern share one numbering of placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Form(Vec<FormToken>);

/// Error for a text that is not a form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FormError {
    /// The form has this number of tokens, more than [`MAX_TOKENS`].
    #[error("{0} tokens; a form has at most {MAX_TOKENS}")]
    TooLong(usize),
    /// A token is empty, or contains white space or a control character.
    #[error("tokens are separated by one space")]
    Spacing,
    /// This token is a placeholder whose suffix is not a number from 2 to 65,535 in plain digits.
    #[error("{0:?} is a placeholder without a number that it could have")]
    Number(String),
}

impl Form {
    /// Creates a form.
    ///
    /// # Errors
    ///
    /// Fails with more than [`MAX_TOKENS`] tokens.
    pub fn new(tokens: Vec<FormToken>) -> Result<Self, FormError> {
        if tokens.len() > MAX_TOKENS {
            return Err(FormError::TooLong(tokens.len()));
        }
        Ok(Self(tokens))
    }

    /// Returns the tokens in the order of the code.
    pub fn tokens(&self) -> &[FormToken] {
        &self.0
    }

    /// Returns true if the form has no token: the code is to be removed, or there is no fixed form.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the tokens with all placeholder numbers set to 0.
    pub fn without_numbers(&self) -> Vec<FormToken> {
        let plain = |token: &FormToken| match token {
            FormToken::Hole { kind, .. } => FormToken::Hole { kind: *kind, number: 0 },
            kept => kept.clone(),
        };
        self.0.iter().map(plain).collect()
    }
}

impl fmt::Display for FormToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(text) => f.write_str(text),
            Self::Hole { kind, number: 0 | 1 } => f.write_str(kind.word()),
            Self::Hole { kind, number } => write!(f, "{}_{number}", kind.word()),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, token) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{token}")?;
        }
        Ok(())
    }
}

impl FromStr for FormToken {
    type Err = FormError;

    fn from_str(text: &str) -> Result<Self, FormError> {
        for &kind in Placeholder::ALL {
            let Some(rest) = text.strip_prefix(kind.word()) else { continue };
            let bad = || FormError::Number(text.to_owned());
            let number = match rest.strip_prefix('_') {
                None if rest.is_empty() => 1,
                None => continue,
                Some(digits) if digits.starts_with(['0', '+']) || digits == "1" => return Err(bad()),
                Some(digits) => digits.parse().map_err(|_| bad())?,
            };
            return Ok(Self::Hole { kind, number });
        }
        Ok(Self::Kept(text.into()))
    }
}

impl FromStr for Form {
    type Err = FormError;

    fn from_str(text: &str) -> Result<Self, FormError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        // Count first, so that a very long text is refused before anything is stored.
        let count = text.split(' ').count();
        if count > MAX_TOKENS {
            return Err(FormError::TooLong(count));
        }
        if text
            .split(' ')
            .any(|token| token.is_empty() || token.contains(|c: char| c.is_whitespace() || c.is_control()))
        {
            return Err(FormError::Spacing);
        }
        text.split(' ').map(FormToken::from_str).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("")]
    #[case("if VARIABLE . len ( ) == NUMBER BODY")]
    #[case("FUNCTION_NAME ( VARIABLE , VARIABLE_2 )")]
    fn a_form_is_read_back_as_written(#[case] text: &str) {
        assert_eq!(text.parse::<Form>().map(|form| form.to_string()).as_deref(), Ok(text));
    }

    #[rstest]
    #[case::two_spaces("a  b")]
    #[case::a_line_end("a\nb")]
    #[case::a_control_byte("a \u{1b}[2J")]
    #[case::the_first_by_number("VARIABLE_1")]
    #[case::no_number("VARIABLE_x")]
    #[case::a_number_that_is_too_large("VARIABLE_70000")]
    fn what_is_no_form_is_refused(#[case] text: &str) {
        assert!(text.parse::<Form>().is_err(), "{text:?}");
    }

    #[test]
    fn a_form_has_a_longest_length() {
        assert_eq!("a ".repeat(MAX_TOKENS + 1).trim_end().parse::<Form>(), Err(FormError::TooLong(MAX_TOKENS + 1)));
    }
}
