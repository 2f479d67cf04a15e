//! Defines the ids of runs, findings, fixes and patterns. Parsing checks the form, so that an id is safe as a file
//! name.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Kind;

/// Error for a text that does not have the form of a revdeck id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not a {what} id; {what} ids look like {example}")]
pub struct BadId {
    text: String,
    what: &'static str,
    example: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $prefix:literal, $example:literal, $length:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns true if `text` has the prefix of this id type, the right length, and only ASCII letters and
            /// digits after the prefix.
            pub fn is_valid(text: &str) -> bool {
                text.strip_prefix($prefix).is_some_and(|rest| {
                    $length.contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
                })
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::try_from(text.to_owned())
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;

            fn try_from(text: String) -> Result<Self, BadId> {
                if Self::is_valid(&text) {
                    Ok(Self(text))
                } else {
                    Err(BadId { text, what: $what, example: $example })
                }
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

id!(
    /// Id of a run: `ar_` and a ULID, so that ids sort by creation time.
    RunId, "run", "ar_", "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E", (26..=26)
);
id!(
    /// Id of a finding: `f_` and the first 16 hexadecimal digits of a hash over kind, path, anchored code and
    /// ordinal, or over the id of another problem of that kind at the same code and a number.
    FindingId, "finding", "f_", "f_3b1f0c9d2a7e4851", (16..=16)
);
id!(
    /// Id of a fix: `fx_` and a ULID.
    FixId, "fix", "fx_", "fx_01JD3Z8Q6M7S5V2K4T9XWB1C0E", (26..=26)
);
id!(
    /// Id of a learned pattern: `k_` and 16 hexadecimal digits of a hash over the language, the broken form and the
    /// fixed form. For a false alarm, the hash covers the language, the form and the finding kind.
    PatternId, "pattern", "k_", "k_3b1f0c9d2a7e4851", (16..=16)
);

/// Returns the BLAKE3 hash of the parts as 64 lower-case hexadecimal digits. Each part is preceded by its length, so
/// that different splits of the same bytes differ.
pub fn content_hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex().to_string()
}

impl FindingId {
    /// Computes the identity of a problem from its kind, its path and the code at its anchor (normalized by
    /// [`crate::domain::text::normalize_code`]).
    ///
    /// Line numbers and runs are left out on purpose: the same problem keeps its id when it moves or is reported
    /// again. `ordinal` separates equal anchors in one file, counted from the top; the first is 0.
    pub fn from_parts(kind: &str, path: &str, anchor: &str, ordinal: u32) -> Self {
        let normal = crate::domain::text::normalize_code(anchor);
        let ordinal = ordinal.to_le_bytes();
        let hash = content_hash([kind.as_bytes(), path.as_bytes(), normal.as_bytes(), &ordinal]);
        Self(format!("f_{}", &hash[..16]))
    }

    /// Maximum number of problems of one kind with the same code, beyond which reports share an id. Chosen for revdeck:
    /// more problems at one place are not told apart by words.
    pub const MAX_VARIANTS: u32 = 8;

    /// Maximum number of problems of one kind with the same code in a file, counting those at other places, beyond which
    /// reports share an id. Chosen for revdeck: a person would look for the pattern, not for each place.
    pub const MAX_PLACES: u32 = 64;

    /// Returns the id of the nth problem of the same kind at the same code (0-based). The first one has the id itself.
    pub fn variant(&self, n: u32) -> Self {
        match n {
            0 => self.clone(),
            n => Self(format!("f_{}", &content_hash([self.0.as_bytes(), b"variant", &n.to_le_bytes()])[..16])),
        }
    }

    /// Returns true if one id is that of the first problem at some code and the other is that of a further problem of the
    /// same kind there. Two further problems are told by [`FindingVariants`], which also knows the first one.
    pub fn is_variant_of(&self, other: &Self) -> bool {
        self != other && {
            let has = |base: &Self, id: &Self| (1..Self::MAX_VARIANTS).any(|n| base.variant(n) == *id);
            has(self, other) || has(other, self)
        }
    }
}

/// Ids of problems of one kind at the same code.
#[derive(Debug, Default)]
pub struct FindingVariants {
    /// From the id of a further problem to that of the first problem.
    first: HashMap<FindingId, FindingId>,
}

impl FindingVariants {
    /// Prepares to compare ids. `known` should hold the id of the first problem at each code: without it, two further
    /// problems are not recognised, because an id does not tell from which one it was made.
    pub fn from_ids<'a>(known: impl IntoIterator<Item = &'a FindingId>) -> Self {
        let variants =
            known.into_iter().flat_map(|id| (1..FindingId::MAX_VARIANTS).map(|n| (id.variant(n), id.clone())));
        Self { first: variants.collect() }
    }

    /// Returns true if both ids stand for different problems of one kind at the same code.
    pub fn are_variants(&self, one: &FindingId, other: &FindingId) -> bool {
        one != other && self.first.get(one).unwrap_or(one) == self.first.get(other).unwrap_or(other)
    }
}

impl PatternId {
    /// Computes the identity of a pattern. Equal forms in the same language give the same id on every machine.
    pub fn from_forms(language: &str, broken: &str, fixed: &str) -> Self {
        let hash = content_hash([language.as_bytes(), broken.as_bytes(), fixed.as_bytes()]);
        Self(format!("k_{}", &hash[..16]))
    }

    /// Computes the identity of a known false alarm. The kind is part of the hash, because code dismissed under one
    /// kind may be a real problem under another.
    pub fn from_false_alarm(language: &str, form: &str, kind: Kind) -> Self {
        let hash = content_hash([language, form, "", kind.word()].map(str::as_bytes));
        Self(format!("k_{}", &hash[..16]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_leave_their_folder_are_refused() {
        for bad in ["", "ar_", "ar_../../etc/passwd", "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0/", "f_3b1f0c9d2a7e4851", "ar_01"] {
            assert!(bad.parse::<RunId>().is_err(), "{bad:?}");
        }
        assert!("ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse::<RunId>().is_ok());
    }

    #[test]
    fn a_finding_keeps_its_id_when_it_is_reindented_and_loses_it_when_the_code_differs() {
        let here = FindingId::from_parts("MAGIC_NUMBERS", "a.rs", "    let x = 42;", 0);
        assert_eq!(here, FindingId::from_parts("MAGIC_NUMBERS", "a.rs", "let x  = 42;\n", 0));
        assert_ne!(here, FindingId::from_parts("MAGIC_NUMBERS", "a.rs", "let x = 43;", 0));
        assert_ne!(here, FindingId::from_parts("MAGIC_NUMBERS", "b.rs", "let x = 42;", 0));
        assert_ne!(here, FindingId::from_parts("MAGIC_NUMBERS", "a.rs", "let x = 42;", 1));
    }

    #[test]
    fn problems_at_the_same_code_have_ids_of_their_own() {
        let first = FindingId::from_parts("CORRECTNESS", "a.rs", "x[i + 1]", 0);
        let variants: std::collections::BTreeSet<_> = (0..FindingId::MAX_VARIANTS).map(|n| first.variant(n)).collect();
        assert_eq!(variants.len(), FindingId::MAX_VARIANTS as usize);
        assert_eq!(first.variant(0), first);
        assert!(first.variant(2).as_str().parse::<FindingId>().is_ok());
        let other = FindingId::from_parts("CORRECTNESS", "b.rs", "x[i + 1]", 0);
        let is_variant = |a: &FindingId, b: &FindingId| (a.is_variant_of(b), b.is_variant_of(a));
        assert_eq!(is_variant(&first, &first.variant(1)), (true, true));
        let siblings = (first.variant(1), first.variant(2));
        assert_eq!(is_variant(&siblings.0, &siblings.1), (false, false), "the first problem is not known here");
        let variants = FindingVariants::from_ids([&first, &other]);
        assert!(variants.are_variants(&siblings.0, &siblings.1) && variants.are_variants(&first, &siblings.1));
        assert!(!variants.are_variants(&first, &first) && !variants.are_variants(&other, &siblings.0));
        assert_eq!((is_variant(&first, &other), is_variant(&first, &first)), ((false, false), (false, false)));
    }
}
