//! Defines model properties that several modules share: the token encoding, the reasoning effort, and who summarizes
//! a conversation.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;

/// Encoding with which a model's tokens are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Exact encoding of GPT-4o and later models.
    #[default]
    O200kBase,
    /// Exact encoding of GPT-4 and GPT-3.5.
    Cl100kBase,
    /// Approximation for a model whose tokenizer is not public or not part of revdeck: `percent` hundredths of the
    /// [`Encoding::O200kBase`] count, rounded up.
    Approximate {
        /// Factor in hundredths, for example 130 for 1.3 times as many tokens.
        percent: u32,
    },
}

impl Encoding {
    /// Encodings with exact token counts.
    pub const EXACT: [Self; 2] = [Self::O200kBase, Self::Cl100kBase];

    /// Returns the tokenizer's name as OpenAI spells it, or `approximate`.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
            Self::Approximate { .. } => "approximate",
        }
    }

    /// Returns true if counts are estimates.
    pub fn is_approximate(self) -> bool {
        matches!(self, Self::Approximate { .. })
    }
}

impl std::str::FromStr for Encoding {
    type Err = String;

    /// Parses the name of an encoding in [`Encoding::EXACT`].
    fn from_str(text: &str) -> Result<Self, String> {
        Self::EXACT.into_iter().find(|encoding| encoding.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::EXACT.iter().map(|encoding| encoding.name()).collect();
            format!("{text:?} is no encoding that can be counted; there are {}", names.join(" and "))
        })
    }
}

word_enum!(
    /// Reasoning effort of a model, in the providers' words. Each model accepts only some of these words.
    Effort {
        Off = "none",
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
        Xhigh = "xhigh",
        Max = "max",
    }
);
word_enum!(
    /// Author of the summary of messages that slide out of the window.
    SummaryAuthor {
        /// revdeck, from its own record of the conversation, without a request.
        Local = "local",
        /// The model, in a separate request.
        Model = "model",
    }
);
