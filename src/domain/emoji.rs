//! Shows an emoji that is made of several as those beside each other.
//!
//! The character that joins emoji and the letters of a flag's region are invisible, so that other places of a text must not
//! have them. Terminals do not agree on the width of what they make.

use std::borrow::Cow;

/// Joins the emoji before and after it.
const JOINER: char = '\u{200d}';
/// Flag behind which invisible letters may name a region, such as Scotland.
const REGION_FLAG: char = '\u{1f3f4}';
/// End of the letters that name a region.
const REGION_END: char = '\u{e007f}';
/// Most letters that name a region: two for a country and three for a part of it, as in ISO 3166-2.
const MAX_REGION_LETTERS: usize = 5;

/// Leaves out the joiners between emoji, and the letters that name the region of a flag.
pub(super) fn separate_emoji(text: &str) -> Cow<'_, str> {
    if !text.contains(JOINER) && !text.contains(REGION_END) {
        return text.into();
    }
    let mut separate = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == JOINER {
            let next = rest.clone().next();
            // Variation selectors and skin tones belong to the emoji before them.
            let before = separate.chars().rev().find(|c| !matches!(c, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}'));
            if before.is_some_and(is_emoji) && next.is_some_and(is_emoji) {
                continue;
            }
        }
        separate.push(c);
        if c == REGION_FLAG {
            let letters =
                rest.clone().take_while(|c| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}'));
            let letters = letters.take(MAX_REGION_LETTERS).count();
            if letters > 0 && rest.clone().nth(letters) == Some(REGION_END) {
                rest.nth(letters);
            }
        }
    }
    separate.into()
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{21ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_joiners_between_emoji_are_left_out() {
        for (text, expected) in [
            ("a family: 👨\u{200d}👩\u{200d}👧.", "a family: 👨👩👧."),
            ("👩🏽\u{200d}💻 🏳\u{fe0f}\u{200d}🌈", "👩🏽💻 🏳\u{fe0f}🌈"),
            ("🙋\u{200d}♀\u{fe0f}", "🙋♀\u{fe0f}"),
            ("a\u{200d}b 👨\u{200d} \u{200d}👩", "a\u{200d}b 👨\u{200d} \u{200d}👩"),
            ("👨\u{200d}\u{200d}👩", "👨\u{200d}\u{200d}👩"),
            ("\u{200d}", "\u{200d}"),
            ("plain", "plain"),
        ] {
            assert_eq!(separate_emoji(text), expected, "{text:?}");
        }
    }

    #[test]
    fn only_the_letters_of_a_region_behind_a_flag_are_left_out() {
        let tags = |letters: &str| -> String {
            letters.chars().filter_map(|c| char::from_u32(0xe0000 + u32::from(c))).collect()
        };
        let scotland = format!("🏴{}\u{e007f}", tags("gbsct"));
        assert_eq!(separate_emoji(&format!("a {scotland}!")), "a 🏴!");
        // A text that is hidden from people must be noticed.
        for hidden in [
            format!("🏴{}\u{e007f}", tags("ignoreall")),
            format!("🏴{}\u{e007f}", tags("ignore")),
            format!("🏴{}", tags("gbsct")),
            format!("🏴{}\u{e007f}", tags("GB")),
            "🏴\u{e007f}".to_owned(),
            format!("👩{}\u{e007f}", tags("gbsct")),
        ] {
            assert_eq!(separate_emoji(&hidden), hidden, "{hidden:?}");
        }
    }
}
