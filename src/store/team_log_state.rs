//! Defines the states of another machine's log that something follows from: who has signed it, and why a part of it was set aside.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::domain::word_enum;

word_enum!(
    /// Class of the reason for which something was set aside.
    #[derive(Default)]
    SetAsideCause {
        /// The content is damaged or does not count. A reading of the log without a fault ends it.
        #[default]
        Fault = "fault",
        /// Another key than before has signed the log. A person may accept it.
        OtherSigner = "other_signer",
        /// The clocks of decisions are too far ahead. Their time ends it.
        Ahead = "ahead",
    }
);

/// Signature of a log as the last exchange has found it. Files, JSON and the screen have it in words, such as `signed by Ada`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum LogSignatureState {
    /// The log was not read yet, or a person has accepted whoever signs it next. Written as nothing.
    #[default]
    Unseen,
    /// There is none.
    Unsigned,
    /// By a key that git trusts, and its owner.
    SignedBy(String),
    /// By a key that git does not know.
    UnknownKey,
    /// It does not fit the content.
    Bad,
}

impl LogSignatureState {
    const UNSIGNED: &'static str = "unsigned";
    const SIGNED_BY: &'static str = "signed by ";
    const UNKNOWN_KEY: &'static str = "signed by an unknown key";
    const BAD: &'static str = "bad signature";
}

impl fmt::Display for LogSignatureState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unseen => Ok(()),
            Self::Unsigned => f.write_str(Self::UNSIGNED),
            Self::SignedBy(owner) => write!(f, "{}{owner}", Self::SIGNED_BY),
            Self::UnknownKey => f.write_str(Self::UNKNOWN_KEY),
            Self::Bad => f.write_str(Self::BAD),
        }
    }
}

impl From<LogSignatureState> for String {
    fn from(state: LogSignatureState) -> Self {
        state.to_string()
    }
}

impl From<String> for LogSignatureState {
    /// Reads the words. Those of a later version mean that the log must be looked at again, as if it was not signed.
    fn from(words: String) -> Self {
        match words.as_str() {
            "" => Self::Unseen,
            Self::UNKNOWN_KEY => Self::UnknownKey,
            Self::BAD => Self::Bad,
            words => match words.strip_prefix(Self::SIGNED_BY) {
                Some(owner) => Self::SignedBy(owner.to_owned()),
                None => Self::Unsigned,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_keep_the_words_of_earlier_versions() {
        let owner = "ada@example.org".to_owned();
        for (state, words) in [
            (LogSignatureState::Unseen, ""),
            (LogSignatureState::Unsigned, "unsigned"),
            (LogSignatureState::SignedBy(owner), "signed by ada@example.org"),
            (LogSignatureState::UnknownKey, "signed by an unknown key"),
            (LogSignatureState::Bad, "bad signature"),
        ] {
            assert_eq!(serde_json::to_value(&state).expect("JSON"), words);
            assert_eq!(serde_json::from_value::<LogSignatureState>(words.into()).expect("a state"), state);
        }
    }
}
