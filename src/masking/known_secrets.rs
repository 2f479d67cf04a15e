//! Masks values that are known to be secrets, also where a text names them without the name that gave them away.

use std::collections::{HashMap, HashSet};

use super::{find_secrets, find_secrets_in_words, replace_secrets};
use crate::domain::text::is_separate_word;
use crate::secrets::{self, SecretSpan};

/// Length of the parts of a secret that are masked, too, in bytes: texts often name only the beginning of a key. The analyzer
/// takes shorter ones: its texts are about one file alone.
const FRAGMENT_BYTES: usize = 8;
/// Minimum length of a value that is masked, in bytes. Shorter ones stand in many words.
const MIN_VALUE_BYTES: usize = 4;
/// Minimum length of a part without a digit, in bytes. Shorter ones are words.
const MIN_WORDLESS_BYTES: usize = 16;
/// Words in the place of a secret that are no secret.
const NAMES_OF_SECRETS: [&str; 7] = ["password", "passwd", "secret", "token", "none", "null", "true"];

/// Secrets of pieces of code, for texts about that code.
#[derive(Debug, Default)]
pub struct KnownSecrets {
    /// Whole values, each with its label.
    values: HashMap<String, &'static str>,
    /// Parts of the values that have a digit: no word has one.
    fragments: HashMap<[u8; FRAGMENT_BYTES], &'static str>,
}

impl KnownSecrets {
    /// Adds the secrets of code. `path` is its file.
    pub fn add_code(&mut self, path: &str, code: &str) {
        for (range, sort) in find_secrets(Some(path), code) {
            let value = code.get(range).unwrap_or_default();
            self.add_value(value, sort);
            for part in split_value(value) {
                if part.len() >= MIN_WORDLESS_BYTES || part.bytes().any(|byte| byte.is_ascii_digit()) {
                    self.add_value(part, sort);
                }
            }
            if let Some(password) = find_url_password(value) {
                self.add_value(password, sort);
            }
        }
    }

    fn add_value(&mut self, value: &str, sort: &'static str) {
        let value = value.trim_matches(|c: char| c.is_whitespace() || is_quote(c));
        let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
        let is_name = NAMES_OF_SECRETS.contains(&value.to_ascii_lowercase().as_str());
        if value.len() < MIN_VALUE_BYTES || is_name || (!has_digit && secrets::is_placeholder(value)) {
            return;
        }
        self.values.entry(value.to_owned()).or_insert(sort);
        for part in value.as_bytes().windows(FRAGMENT_BYTES) {
            if part.iter().any(u8::is_ascii_digit)
                && let Ok(part) = <[u8; FRAGMENT_BYTES]>::try_from(part)
            {
                self.fragments.entry(part).or_insert(sort);
            }
        }
    }

    /// Adds all secrets of another list.
    pub fn extend(&mut self, other: &Self) {
        for (value, sort) in &other.values {
            self.values.entry(value.clone()).or_insert(*sort);
        }
        for (part, sort) in &other.fragments {
            self.fragments.entry(*part).or_insert(*sort);
        }
    }

    /// Masks the known secrets in words that people and models write, and those that [`super::Mask::mask_words`] finds.
    pub fn mask_words(&self, text: &str) -> String {
        let mut found = find_secrets_in_words(text);
        found.extend(self.find(text));
        replace_secrets(text, found).into_owned()
    }

    /// Masks the known secrets alone, for text that is masked otherwise, too.
    pub fn mask_known(&self, text: &str) -> String {
        replace_secrets(text, self.find(text)).into_owned()
    }

    /// Returns true if a text holds a known secret, or a part of one.
    pub fn are_in(&self, text: &str) -> bool {
        !self.find(text).is_empty()
    }

    fn find(&self, text: &str) -> Vec<SecretSpan> {
        let mut found: Vec<SecretSpan> = Vec::new();
        for (value, sort) in &self.values {
            for (start, _) in text.match_indices(value.as_str()) {
                let end = start + value.len();
                if value.len() >= FRAGMENT_BYTES || is_separate_word(text, start..end) {
                    found.push((start..end, *sort));
                }
            }
        }
        if !self.fragments.is_empty() {
            for (start, part) in text.as_bytes().windows(FRAGMENT_BYTES).enumerate() {
                let part = <[u8; FRAGMENT_BYTES]>::try_from(part).ok();
                if let Some(sort) = part.and_then(|part| self.fragments.get(&part)) {
                    let end = text.ceil_char_boundary(start + FRAGMENT_BYTES);
                    found.push((text.floor_char_boundary(start)..end, *sort));
                }
            }
        }
        // The order of a hash map must not choose the label.
        found.sort_by_key(|(range, sort)| (range.start, range.end, *sort));
        let mut seen = HashSet::new();
        found.retain(|(range, _)| seen.insert((range.start, range.end)));
        found
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}

/// Splits a secret of several lines or words into its parts. A line break may be written as in a string of code.
fn split_value(value: &str) -> impl Iterator<Item = &str> {
    value.split("\\n").flat_map(|line| line.split(|c: char| c.is_whitespace() || is_quote(c)))
}

/// Returns the password of a URL, as in `postgres://ada:PASSWORD@host`.
fn find_url_password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let (credentials, _) = rest.rsplit_once('@')?;
    credentials.split_once(':').map(|(_, password)| password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_the_code_is_masked_in_words_and_ordinary_words_stay() {
        let value = ["Pw!", "kX93mmQ", "z71Lv"].concat();
        let mut known = KnownSecrets::default();
        known.add_code(
            "src/a.py",
            &format!("def connect():\n    password = \"{value}\"\n    return open_it(password)\n"),
        );
        for (text, stays) in [
            (format!("do not use {value} here"), "do not use "),
            (format!("`{value}` is a password"), " is a password"),
            (format!("it begins with {}", &value[..12]), "it begins with "),
        ] {
            let masked = known.mask_words(&text);
            assert!(masked.contains(stays) && masked.contains("«secret"), "{masked}");
            assert!(!masked.contains("kX93mmQ"), "{masked}");
            assert_eq!(known.mask_words(&masked), masked);
            assert!(known.are_in(&text) && !known.are_in(&masked));
        }
        for text in ["connect reads src/a.py", "connect returns open_it in 12345678 ms"] {
            assert_eq!(known.mask_words(text), text);
        }
    }

    #[test]
    fn the_password_of_an_url_and_the_lines_of_a_key_are_parts() {
        assert_eq!(find_url_password("postgres://ada:pw:1@db.example.org/app"), Some("pw:1"));
        assert_eq!(find_url_password("postgres://ada@db.example.org/app"), None);
        assert_eq!(split_value("one\\ntwo three\n\"four\"").filter(|part| !part.is_empty()).count(), 4);
    }

    #[test]
    fn a_short_value_is_masked_as_a_whole_word_alone() {
        let mut known = KnownSecrets::default();
        known.add_value("ruby7", "a secret");
        assert_eq!(known.mask_words("ruby7, ruby70 and «ruby7»"), "«secret», ruby70 and ««secret»»");
    }
}
