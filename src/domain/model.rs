//! Words about models that several rooms share: how their tokens are counted, how hard they are to think.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;

/// How the tokens of a model are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// GPT-4o and later. Exact.
    #[default]
    O200kBase,
    /// GPT-4 and GPT-3.5. Exact.
    Cl100kBase,
    /// The model's own tokenizer is not public, or not in this program: so many hundredths of the count for
    /// [`Encoding::O200kBase`], rounded up.
    Approximate { percent: u32 },
}

impl Encoding {
    /// Those that can be counted exactly.
    pub const EXACT: [Self; 2] = [Self::O200kBase, Self::Cl100kBase];

    pub fn name(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
            Self::Approximate { .. } => "approximate",
        }
    }

    pub fn is_approximate(self) -> bool {
        matches!(self, Self::Approximate { .. })
    }
}

impl std::str::FromStr for Encoding {
    type Err = String;

    /// One of [`Encoding::EXACT`].
    fn from_str(text: &str) -> Result<Self, String> {
        Self::EXACT.into_iter().find(|encoding| encoding.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::EXACT.iter().map(|encoding| encoding.name()).collect();
            format!("{text:?} is no encoding that can be counted; there are {}", names.join(" and "))
        })
    }
}

word_enum!(
    /// How hard a model is to think, in the words of the providers. Which words a model takes differs.
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
