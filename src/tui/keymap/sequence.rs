//! Names keys and key sequences in the way that keymap files write them: `Ctrl-d`, `] h`.

use std::fmt;
use std::str::FromStr;

use crate::config::did_you_mean;
use crate::tui::input::{KeyCode, KeyEvent};

/// Most keys of a sequence: nobody remembers longer ones.
pub const MAX_SEQUENCE_KEYS: usize = 4;

const NAMED_KEYS: [(KeyCode, &str); 15] = [
    (KeyCode::Enter, "Enter"),
    (KeyCode::Esc, "Esc"),
    (KeyCode::Tab, "Tab"),
    (KeyCode::Char(' '), "Space"),
    (KeyCode::Backspace, "Backspace"),
    (KeyCode::Delete, "Delete"),
    (KeyCode::Insert, "Insert"),
    (KeyCode::Up, "Up"),
    (KeyCode::Down, "Down"),
    (KeyCode::Left, "Left"),
    (KeyCode::Right, "Right"),
    (KeyCode::Home, "Home"),
    (KeyCode::End, "End"),
    (KeyCode::PageUp, "PageUp"),
    (KeyCode::PageDown, "PageDown"),
];

impl FromStr for KeyEvent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut key = KeyEvent::plain(KeyCode::Esc);
        let mut rest = text;
        loop {
            let modifiers = [("ctrl-", 0), ("c-", 0), ("alt-", 1), ("a-", 1), ("meta-", 1), ("shift-", 2), ("s-", 2)];
            let lower = rest.to_ascii_lowercase();
            let Some((prefix, which)) =
                modifiers.into_iter().find(|(prefix, _)| lower.starts_with(prefix) && rest.len() > prefix.len())
            else {
                break;
            };
            match which {
                0 => key.ctrl = true,
                1 => key.alt = true,
                _ => key.shift = true,
            }
            rest = &rest[prefix.len()..];
        }
        let mut characters = rest.chars();
        key.code = match (characters.next(), characters.next()) {
            (Some(c), None) if key.ctrl => KeyCode::Char(c.to_ascii_lowercase()),
            (Some(c), None) if key.shift => {
                key.shift = false;
                KeyCode::Char(c.to_ascii_uppercase())
            }
            (Some(c), None) => KeyCode::Char(c),
            _ => NAMED_KEYS
                .iter()
                .find(|(_, name)| name.eq_ignore_ascii_case(rest))
                .map(|(code, _)| *code)
                .or_else(|| {
                    let n = rest.strip_prefix(['F', 'f'])?.parse().ok()?;
                    (1..=12).contains(&n).then_some(KeyCode::F(n))
                })
                .ok_or_else(|| {
                    let meant = did_you_mean(rest, NAMED_KEYS.iter().map(|(_, name)| *name));
                    format!("{text:?} is no key{meant}")
                })?,
        };
        Ok(key)
    }
}

impl fmt::Display for KeyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (held, prefix) in [(self.ctrl, "Ctrl-"), (self.alt, "Alt-"), (self.shift, "Shift-")] {
            if held {
                f.write_str(prefix)?;
            }
        }
        match (NAMED_KEYS.iter().find(|(code, _)| *code == self.code), self.code) {
            (Some((_, name)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(n)) => write!(f, "F{n}"),
            (None, _) => Ok(()),
        }
    }
}

impl KeyEvent {
    /// Returns true for a key that types a character.
    pub fn is_text(self) -> bool {
        self.character().is_some()
    }

    /// Returns the character that the key types.
    pub fn character(self) -> Option<char> {
        match self.code {
            KeyCode::Char(character) if !self.ctrl && !self.alt => Some(character),
            _ => None,
        }
    }
}

/// Keys that are pressed one after the other; at least one, at most [`MAX_SEQUENCE_KEYS`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeySequence(Vec<KeyEvent>);

impl KeySequence {
    /// Returns the keys in the order in which they are pressed.
    pub fn keys(&self) -> &[KeyEvent] {
        &self.0
    }

    /// Returns true if the sequence begins with `keys` and goes on.
    pub fn continues(&self, keys: &[KeyEvent]) -> bool {
        self.0.len() > keys.len() && self.0.starts_with(keys)
    }

    /// Returns true if both cannot be bound at once: they are equal, or one begins with the other.
    pub fn collides_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0) || other.0.starts_with(&self.0)
    }
}

impl From<KeyEvent> for KeySequence {
    fn from(key: KeyEvent) -> Self {
        Self(vec![key])
    }
}

impl FromStr for KeySequence {
    type Err = String;

    /// Reads key names with blanks between them. Two characters may be written together: `]h`.
    fn from_str(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.trim().is_empty() {
            return Ok(KeyEvent::plain(KeyCode::Char(' ')).into());
        }
        let mut keys = Vec::new();
        for word in text.split_whitespace() {
            match (word.parse::<KeyEvent>(), read_two_characters(word)) {
                (Ok(key), _) => keys.push(key),
                (Err(_), Some(pair)) => keys.extend(pair),
                (Err(error), None) => return Err(error),
            }
        }
        match keys.len() {
            0 => Err("an empty text is no key".to_owned()),
            1..=MAX_SEQUENCE_KEYS => Ok(Self(keys)),
            _ => Err(format!("{text:?} has more than {MAX_SEQUENCE_KEYS} keys")),
        }
    }
}

impl fmt::Display for KeySequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        let together = names.concat();
        if names.len() == 2 && together.parse::<KeyEvent>().is_err() && read_two_characters(&together).is_some() {
            return f.write_str(&together);
        }
        f.write_str(&names.join(" "))
    }
}

fn read_two_characters(word: &str) -> Option<[KeyEvent; 2]> {
    let mut characters = word.chars().map(|c| KeyEvent::plain(KeyCode::Char(c)));
    match (characters.next(), characters.next(), characters.next()) {
        (Some(first), Some(second), None) => Some([first, second]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_sequences_read_back_as_they_are_written() {
        for name in [
            "j",
            "G",
            "Ctrl-d",
            "Shift-Tab",
            "Space",
            "Esc",
            "F12",
            "?",
            "Alt-x",
            "PageDown",
            "-",
            "漢",
            "]h",
            "gg",
            "] Space",
            "Ctrl-x Ctrl-c",
            "g g g",
            "F 1",
            "u p",
        ] {
            let keys: KeySequence = name.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(keys.to_string(), name);
        }
        let read = |text: &str| text.parse::<KeySequence>();
        assert_eq!(read("C-D"), read("Ctrl-d"));
        assert_eq!(read("Shift-g"), read("G"));
        assert_eq!(read(" ] \t h "), read("]h"));
        assert_eq!(read(" "), read("Space"));
        assert_eq!(read("F1").map(|keys| keys.keys().len()), Ok(1));
        for (text, error) in [
            ("", "an empty text is no key"),
            ("Entre", "\"Entre\" is no key; did you mean \"Enter\"?"),
            ("] Entre", "\"Entre\" is no key; did you mean \"Enter\"?"),
            ("a b c d e", "\"a b c d e\" has more than 4 keys"),
        ] {
            assert_eq!(read(text), Err(error.to_owned()), "{text:?}");
        }
    }
}
