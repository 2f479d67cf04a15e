//! Shows emoji that are joined from several as those beside each other.
//!
//! The character that joins them is invisible, so that other places of a text must not have it. Terminals do not agree on
//! the width of what it joins.

use std::borrow::Cow;

/// Joins the emoji before and after it.
const JOINER: char = '\u{200d}';

/// Leaves out the joiners between emoji.
pub fn separate_emoji(text: &str) -> Cow<'_, str> {
    if !text.contains(JOINER) {
        return text.into();
    }
    let mut separate = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != JOINER {
            separate.push(c);
            continue;
        }
        // Variation selectors and skin tones belong to the emoji before them.
        let before = separate.chars().rev().find(|c| !matches!(c, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}'));
        let is_between = before.is_some_and(is_emoji) && chars.peek().copied().is_some_and(is_emoji);
        if !is_between {
            separate.push(c);
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
            ("\u{200d}", "\u{200d}"),
            ("plain", "plain"),
        ] {
            assert_eq!(separate_emoji(text), expected, "{text:?}");
        }
    }
}
