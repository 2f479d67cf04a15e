//! Finds the known word that a mistyped one was meant to be.

/// Maximum share of a word's characters that a typo changes, as a divisor: one in three. From clap's and git's practice:
/// more is another word.
const MAX_TYPO_DIVISOR: usize = 3;

/// Returns the known word with the fewest typos between it and `word`, else the first that begins with `word`; `None` if
/// none is close. Upper case, and `-` for `_`, are no typos. A word of one letter is too short for either.
pub fn closest_word<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().replace('-', "_");
    let wanted = plain(word);
    let length = wanted.chars().count();
    if length < 2 {
        return None;
    }
    let most = (length / MAX_TYPO_DIVISOR).max(1);
    let rate = |known: &str| {
        let typos = strsim::osa_distance(&wanted, &plain(known));
        if typos <= most { Some(typos) } else { plain(known).starts_with(&wanted).then_some(usize::MAX) }
    };
    let rated = known.into_iter().filter_map(|known| Some((rate(known)?, known)));
    rated.min_by_key(|(typos, _)| *typos).map(|(_, known)| known)
}

/// Formats the question after a message: `; did you mean "theme"?`, or nothing if no known word is close.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    closest_word(word, known).map_or_else(String::new, |known| format!("; did you mean {known:?}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_has_a_closest_word_and_another_word_has_none() {
        let known = ["theme", "default_scope", "window.max_turns", "dark", "0"];
        for (word, expected) in [
            ("them", Some("theme")),
            ("tehme", Some("theme")),
            ("Default-Scope", Some("default_scope")),
            ("window.turns", Some("window.max_turns")),
            ("drak", Some("dark")),
            ("def", Some("default_scope")),
            ("colour", None),
            ("9", None),
            ("", None),
        ] {
            assert_eq!(closest_word(word, known), expected, "{word}");
        }
        assert_eq!(did_you_mean("them", known), "; did you mean \"theme\"?");
    }
}
