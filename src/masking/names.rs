//! Masks keys in names and in short texts of the store, such as paths and titles.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::Mask;

/// Minimum length of a word that may be a secret, in bytes. Own choice, below the shortest key of a provider.
const MIN_KEY_BYTES: usize = 16;

/// Ids of runs, fixes and findings. They are as random as secrets, and without them nobody can ask for anything.
static RECORD_ID: LazyLock<Regex> = LazyLock::new(|| {
    let ids = Regex::new(r"\b(?:(?:ar|fx)_[0-9A-Z]{26}|f_[0-9a-f]{16})\b");
    ids.unwrap_or_else(|_| unreachable!("a constant"))
});

/// Masks keys in a name or a short text, besides the ids in it. Most names have no word that is long enough for a key, and
/// are returned as they are.
pub(crate) fn mask_name(text: &str) -> Cow<'_, str> {
    if may_contain_key(text) { mask_besides_ids(text) } else { text.into() }
}

/// Maximum number of names whose masked text is kept, more than a large screen shows.
const MAX_KEPT_NAMES: usize = 1_024;

thread_local! {
    /// Masked texts of the names that were shown last and have a word long enough for a key.
    static SHOWN_NAMES: RefCell<HashMap<String, String>> = RefCell::default();
}

/// Reads the rules for secrets, if a name may have a key, so that [`mask_shown_name`] does not read them for the first one.
pub(crate) fn prepare_for<'n>(mut names: impl Iterator<Item = &'n str>) {
    if names.any(may_contain_key) {
        // If no thread can be started, the first name reads the rules.
        let _ = std::thread::Builder::new().name("masks".to_owned()).spawn(|| mask_besides_ids("").into_owned());
    }
}

/// Returns whether a word is the id of a run, a fix or a finding.
pub(super) fn is_record_id(word: &str) -> bool {
    RECORD_ID.find(word).is_some_and(|id| id.len() == word.len())
}

/// Masks a name like [`mask_name`]. For names that are drawn again and again: each is searched for keys once.
pub(crate) fn mask_shown_name(text: &str) -> Cow<'_, str> {
    if !may_contain_key(text) {
        return text.into();
    }
    SHOWN_NAMES.with_borrow_mut(|known| {
        if let Some(masked) = known.get(text) {
            return if masked == text { text.into() } else { masked.clone().into() };
        }
        if known.len() >= MAX_KEPT_NAMES {
            known.clear();
        }
        let masked = mask_besides_ids(text);
        known.insert(text.to_owned(), masked.clone().into_owned());
        masked
    })
}

/// Masks the keys of a text by their shape, see [`Mask::mask_key_shapes`], besides the ids in it.
pub(crate) fn mask_besides_ids(text: &str) -> Cow<'_, str> {
    if !RECORD_ID.is_match(text) {
        return Mask::On.mask_key_shapes(text);
    }
    let (mut masked, mut end) = (String::with_capacity(text.len()), 0);
    for id in RECORD_ID.find_iter(text) {
        masked.push_str(&Mask::On.mask_key_shapes(&text[end..id.start()]));
        masked.push_str(id.as_str());
        end = id.end();
    }
    masked.push_str(&Mask::On.mask_key_shapes(&text[end..]));
    masked.into()
}

/// Returns whether a text has a word that is long enough for a secret and no id of ours. To read the rules for secrets
/// takes longer than to print a ledger.
fn may_contain_key(text: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    // For many bytes at once, because every text of a frame is asked about, and most have no digit.
    let has_digit = |text: &str| text.bytes().fold(false, |so_far, byte| so_far | byte.is_ascii_digit());
    // Bytes, because every letter of a word is ASCII.
    text.len() >= MIN_KEY_BYTES
        && has_digit(text)
        && text.as_bytes().split(|byte| !is_word(byte)).any(|word| {
            word.len() >= MIN_KEY_BYTES
                && word.iter().any(u8::is_ascii_digit)
                && !word.starts_with(b"ar_")
                && !word.starts_with(b"f_")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_names_are_masked_and_ids_stay() {
        let key = ["AKIA", "Q7RT2YPZ", "LK4WN6ZC"].concat();
        for (text, expected) in [
            ("src/a.py".to_owned(), "src/a.py"),
            (format!("{key}.py"), "«secret:aws_access_key».py"),
            (
                format!("undoes f_326e16b6ebedba06 in {key}.py, run ar_01M85FXZAJJ8HH37S1AMJJN2F9"),
                "undoes f_326e16b6ebedba06 in «secret:aws_access_key».py, run ar_01M85FXZAJJ8HH37S1AMJJN2F9",
            ),
        ] {
            assert_eq!(mask_name(&text), expected);
            assert_eq!((mask_shown_name(&text), mask_shown_name(&text)), (expected.into(), expected.into()));
        }
    }
}
