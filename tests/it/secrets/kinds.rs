//! Kinds of secrets as data, and values that are made from a seed.

use serde::Deserialize;

use crate::chance::Dice;

/// Number of consecutive characters of a value that give it away.
const GIVEAWAY_CHARS: usize = 8;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretKind {
    pub name: String,
    value: String,
    #[serde(default)]
    encode: String,
    path: String,
    text: String,
}

#[derive(Deserialize)]
struct KindFile {
    kinds: Vec<SecretKind>,
}

/// A secret in a file.
#[derive(Debug, Clone)]
pub struct PlantedSecret {
    pub name: String,
    pub value: String,
    pub path: String,
    pub text: String,
}

impl PlantedSecret {
    /// Returns the path that tells the language, without a secret in it.
    pub fn masked_path(&self) -> String {
        self.path.replace(&self.value, "folder")
    }
}

/// Returns all kinds: those for which the rules were written, and those held back.
pub fn all_kinds() -> Vec<SecretKind> {
    let texts = [include_str!("../../secrets/kinds.toml"), include_str!("../../secrets/held_back.toml")];
    texts.into_iter().flat_map(|text| toml::from_str::<KindFile>(text).expect("kinds").kinds).collect()
}

/// Makes a value for each kind and writes it into its text.
pub fn plant(kinds: &[SecretKind], seed: u64) -> Vec<PlantedSecret> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..64).for_each(|_| {
        dice.below(2);
    });
    kinds.iter().map(|kind| kind.plant(&mut dice)).collect()
}

impl SecretKind {
    fn plant(&self, dice: &mut Dice) -> PlantedSecret {
        let made = fill(&self.value, dice);
        let value = if self.encode == "base64" { to_base64(made.as_bytes()) } else { made };
        let (one, two) = value.split_at(value.len() / 2);
        // The backquote keeps scanners from taking the text itself for a key.
        let write = |text: &str| {
            text.replace("PRIV`ATE", "PRIVATE").replace("@@", &value).replace("@1", one).replace("@2", two)
        };
        PlantedSecret { name: self.name.clone(), path: write(&self.path), text: write(&self.text), value }
    }
}

fn charset(name: &str) -> &'static str {
    match name {
        "w" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "l" => "abcdefghijklmnopqrstuvwxyz0123456789",
        "u" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "h" => "0123456789abcdef",
        "b" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "-" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        "2" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "age" => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        "d" => "0123456789",
        "p" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*_+-~",
        _ => panic!("no charset {name}"),
    }
}

/// Replaces each `{CHARSET:COUNT}` by random characters.
fn fill(template: &str, dice: &mut Dice) -> String {
    let mut value = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        let (slot, behind) = behind.split_once('}').expect("a closed slot");
        let (name, count) = slot.split_once(':').expect("a charset and a count");
        value.push_str(before);
        value.push_str(&random_text(charset(name), count.parse().expect("a count"), dice));
        rest = behind;
    }
    value + rest
}

/// Returns random characters. As a generator of passwords does, it tries again until there are digits and letters of both
/// cases, if the charset has them.
fn random_text(charset: &str, count: usize, dice: &mut Dice) -> String {
    let letters: Vec<char> = charset.chars().collect();
    loop {
        let pick = |_| letters[usize::try_from(dice.below(letters.len() as u64)).expect("an index")];
        let text: String = (0..count).map(pick).collect();
        let has = |test: fn(&char) -> bool| {
            !charset.chars().any(|c| test(&c)) || text.chars().filter(test).count() * 10 >= count
        };
        let starts = text.chars().next().is_none_or(|c| c.is_ascii_alphanumeric());
        let ends = text.chars().next_back().is_none_or(|c| c.is_ascii_alphanumeric());
        if count < 10
            || has(char::is_ascii_digit)
                && has(char::is_ascii_lowercase)
                && has(char::is_ascii_uppercase)
                && starts
                && ends
        {
            return text;
        }
    }
}

fn to_base64(bytes: &[u8]) -> String {
    let letters: Vec<char> = charset("b").chars().collect();
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for digit in 0..4 {
            let is_padding = digit > chunk.len();
            text.push(if is_padding { '=' } else { letters[(bits >> (18 - 6 * digit)) as usize & 63] });
        }
    }
    text
}

/// Returns the kinds of which a text holds the value or a part of it, each with the part.
pub fn find_leaks(secrets: &[PlantedSecret], text: &[u8]) -> Vec<String> {
    let leaks = secrets.iter().filter_map(|secret| {
        let value = secret.value.as_bytes();
        let parts = value.windows(GIVEAWAY_CHARS.min(value.len()));
        let found = parts.into_iter().find(|part| memchr::memmem::find(text, part).is_some())?;
        Some(format!("{}: {} ({})", secret.name, String::from_utf8_lossy(found), secret.value))
    });
    leaks.collect()
}
