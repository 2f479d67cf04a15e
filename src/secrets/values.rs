//! Judges whether a text is the value of a secret: placeholders, words, paths and templates are not.

/// How strictly a value is judged, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// A password: people choose them, so they are short and have words in them.
    Password,
    /// A key or token: long, and not made of words.
    Named,
    /// Any other name: only a random text.
    Random,
}

/// Least length of a password, of a key with the name of a secret, and of a random text, in characters.
const MIN_PASSWORD_CHARS: usize = 6;
const MIN_NAMED_CHARS: usize = 8;
const MIN_RANDOM_CHARS: usize = 16;
/// Least length of a password of letters alone, in characters, and its greatest share of words. Own choice: shorter ones
/// cannot be told from abbreviations.
const MIN_LETTERS_CHARS: usize = 12;
const MAX_LETTERS_WORD_SHARE: f64 = 0.3;
/// Least share of neighbours of different case in random letters of mixed case. Random ones have 0.5, names in camel case 0.3.
const MIN_CASE_CHANGES: f64 = 0.4;
/// Least entropy, in bits per character, of a password, a named key, a named key of hexadecimal digits and a random text.
/// 16 random characters of Base64 have 3.7 on the average, 16 hexadecimal digits 3.0.
const MIN_PASSWORD_ENTROPY: f64 = 2.2;
const MIN_NAMED_ENTROPY: f64 = 2.7;
const MIN_HEX_ENTROPY: f64 = 2.4;
const MIN_RANDOM_ENTROPY: f64 = 3.2;
/// Share of a text's letters and digits in words from which the text is made of words. Random Base62 has about 0.2.
const MAX_NAMED_WORD_SHARE: f64 = 0.62;
const MAX_RANDOM_WORD_SHARE: f64 = 0.5;
/// Least length of a text, in bytes, that may have a larger share of short words, and its share of words with four letters
/// or more.
const MIN_LONG_BYTES: usize = 20;
const MAX_LONG_WORD_SHARE: f64 = 0.4;
/// Share of neighbours in the alphabet from which a text is an alphabet or a sequence.
const MAX_SEQUENCE_SHARE: f64 = 0.3;

impl Strictness {
    /// Returns whether a value is a secret. `name` is the name that it has.
    pub(super) fn accepts(self, name: &str, value: &str) -> bool {
        if is_echo_of_name(name, value) {
            return false;
        }
        match self {
            Self::Password => is_password(value),
            Self::Named => is_named_key(value),
            Self::Random => is_random(value),
        }
    }
}

/// Returns whether a text may be a password.
pub(super) fn is_password(text: &str) -> bool {
    let text = text.trim_end_matches(['.', ',']);
    if text.chars().count() < MIN_PASSWORD_CHARS || is_no_value(text) || shannon_entropy(text) < MIN_PASSWORD_ENTROPY {
        return false;
    }
    let has_letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    let is_joint = |byte: u8| matches!(byte, b'_' | b'-' | b'.' | b':' | b'/' | b'|' | b',' | b'=' | b'\\');
    let has_sign = text.bytes().any(|byte| !byte.is_ascii_alphanumeric() && !is_joint(byte));
    let has_joint = text.bytes().any(is_joint);
    if !has_letter {
        // Ports, times, versions, counts.
        return has_sign && has_digit && text.len() >= 8 && !text.contains(['(', '[', '*', '+']);
    }
    if has_sign && !is_code_like(text) {
        return has_digit || text.bytes().any(|byte| matches!(byte, b'!' | b'@' | b'#' | b'^' | b'&' | b'~'));
    }
    if !has_digit && !has_sign && !has_joint {
        return is_random_letters(text);
    }
    // `min:8`, `sha256`, `oauth2_token` are words with a number.
    has_digit && !has_sign && (!has_joint || word_share(text, 3) < MAX_NAMED_WORD_SHARE) && !is_term(text)
}

/// Returns whether letters are random: long, and without words. In mixed case hardly any part may be pronounced; in one
/// case, where words have no borders, there are too few vowels for words of any language.
fn is_random_letters(text: &str) -> bool {
    let count = |test: fn(&u8) -> bool| text.bytes().filter(test).count();
    let vowels = count(|byte| matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y'));
    let is_mixed = count(u8::is_ascii_uppercase) >= 2 && count(u8::is_ascii_lowercase) >= 2;
    let is_wordless = match is_mixed {
        true => word_share(text, 3) < MAX_LETTERS_WORD_SHARE && case_changes(text) >= MIN_CASE_CHANGES,
        false => vowels * 6 < text.len(),
    };
    text.len() >= MIN_LETTERS_CHARS && text.is_ascii() && is_wordless && !is_sequence(text)
}

/// Returns the share of neighbouring letters that differ in case.
fn case_changes(text: &str) -> f64 {
    let bytes = text.as_bytes();
    let changes = bytes.windows(2).filter(|pair| pair[0].is_ascii_uppercase() != pair[1].is_ascii_uppercase()).count();
    changes as f64 / (bytes.len().max(2) - 1) as f64
}

/// Returns whether a text with the name of a key or token is one.
fn is_named_key(text: &str) -> bool {
    let count = text.chars().count();
    if count < MIN_NAMED_CHARS || is_no_value(text) || is_identifier(text) || is_code_like(text) || is_term(text) {
        return false;
    }
    let entropy = shannon_entropy(text);
    if is_hex(text) {
        return count >= MIN_RANDOM_CHARS && entropy >= MIN_HEX_ENTROPY && !is_sequence(text);
    }
    entropy >= MIN_NAMED_ENTROPY && !is_wordy(text, MAX_NAMED_WORD_SHARE) && !is_sequence(text)
}

/// Returns whether a text is random: long, with digits, not made of words, no hash and no sequence.
pub(super) fn is_random(text: &str) -> bool {
    text.chars().count() >= MIN_RANDOM_CHARS
        && !is_no_value(text)
        && !is_code_like(text)
        && text.bytes().filter(u8::is_ascii_digit).count() >= 2
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !(is_hex(text) && text.len() < 32)
        && shannon_entropy(text) >= if is_hex(text) { 3.0 } else { MIN_RANDOM_ENTROPY }
        && !is_wordy(text, MAX_RANDOM_WORD_SHARE)
        && !is_sequence(text)
}

/// Returns whether a text has the form of a checksum: hexadecimal digits, an algorithm before it, or Base64 of the length
/// of one.
pub(super) fn is_hash(text: &str) -> bool {
    let algorithms = ["sha", "md5", "h1:", "blake", "$"];
    let is_base64_hash = matches!((text.len(), text.ends_with('=')), (24 | 28 | 44 | 64 | 88, true));
    is_hex(text) || algorithms.iter().any(|name| text.starts_with(name)) || is_base64_hash
}

/// Returns whether a text is made of words, where `most` is the largest share of words of three letters or more.
fn is_wordy(text: &str, most: f64) -> bool {
    let is_long = text.len() >= MIN_LONG_BYTES;
    word_share(text, 3) >= most && !(is_long && word_share(text, 4) < MAX_LONG_WORD_SHARE)
}

/// Returns whether a text is Base64 of `user:password`, where the password may be anything.
pub(super) fn is_basic_credential(text: &str) -> bool {
    decode_base64(text).and_then(|bytes| String::from_utf8(bytes).ok()).is_some_and(|pair| {
        let Some((user, password)) = pair.split_once(':') else { return false };
        !user.is_empty() && !password.is_empty() && pair.chars().all(|c| !c.is_control())
    })
}

/// Decodes standard Base64 with or without padding; `None` for anything else.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).unwrap_or_default());
        }
    }
    Some(bytes)
}

/// Returns whether a text is no value of anything: a placeholder, a template, a path, an address or a sentence.
fn is_no_value(text: &str) -> bool {
    text.contains([' ', '\t', '\n', '<', '>', '«', '…'])
        || text.contains("://")
        || text.starts_with(['/', '.', '%', '~', '$', '@', ':', '|', '?', '-', '*', '+', '=']) && !is_mixed(text)
        || has_template(text)
        || has_placeholder_word(text)
            && (text.len() < 2 * MIN_RANDOM_CHARS || word_share(text, 3) > MAX_RANDOM_WORD_SHARE)
        || is_uniform(text)
}

/// Returns whether a text has letters of both cases, digits and a sign, as a generated password has.
fn is_mixed(text: &str) -> bool {
    let has = |test: fn(&u8) -> bool| text.as_bytes().iter().any(test);
    text.len() >= 10
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
        && word_share(text, 3) < MAX_RANDOM_WORD_SHARE
}

/// Returns whether a text is one character over and over, or stars.
fn is_uniform(text: &str) -> bool {
    let first = text.bytes().next();
    text.bytes().all(|byte| Some(byte) == first) || text.contains("***") || text.contains("...")
}

/// Returns whether a text contains the place of a value: `${NAME}`, `{{ name }}`, `%(name)s`, `#{name}`, `$NAME`.
pub(super) fn has_template(text: &str) -> bool {
    let is_name =
        |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    ["${", "{{", "%(", "#{", "$(", "%{", "@{", "<%", "{}", "%s", "%d", "%v"].iter().any(|open| text.contains(open))
        || text.starts_with('{') && text.ends_with('}')
        || text.starts_with('[') && text.ends_with(']')
        || text.strip_prefix('$').is_some_and(|rest| is_name(rest) && is_identifier(rest))
        || text.strip_prefix('%').and_then(|rest| rest.strip_suffix('%')).is_some_and(is_name)
        || text.strip_prefix("__").and_then(|rest| rest.strip_suffix("__")).is_some_and(is_name)
}

/// Returns whether a text is a call, a field access, a type or a regular expression.
fn is_code_like(text: &str) -> bool {
    text.contains("()")
        || text.contains("::")
        || text.contains("->")
        || text.contains("=>")
        || text.contains("\\w")
        || text.contains("\\d")
        || text.contains("\\s")
        || text.contains(".*")
        || text.contains("[^")
        || text.contains("(?")
        || text.contains("a-z")
        || text.contains("urn:")
        || text.ends_with("[]")
        || text.ends_with(';')
        || is_access_path(text)
}

/// Returns whether a text is words joined by dots, as in `config.secrets.token2`.
fn is_access_path(text: &str) -> bool {
    let mut parts = text.split('.');
    let is_word = |part: &str| {
        part.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            && word_share(part, 3) > MAX_NAMED_WORD_SHARE
    };
    text.contains('.') && parts.by_ref().all(is_word)
}

/// Returns whether a text is a term with a number in it, which many programs use: `sha256`, `utf8mb4`, `aes-256-gcm`,
/// `v1.2.3`, `2024-01-31`.
fn is_term(text: &str) -> bool {
    const TERMS: [&str; 25] = [
        "sha1",
        "sha2",
        "sha3",
        "sha5",
        "md5",
        "utf8",
        "utf-8",
        "base64",
        "oauth",
        "aes",
        "rsa",
        "hs256",
        "rs256",
        "es256",
        "ed25519",
        "x509",
        "http",
        "bcrypt",
        "argon2",
        "pbkdf2",
        "hmac",
        "localhost",
        "latin1",
        "latin-1",
        "iso-8859",
    ];
    let lower = text.to_ascii_lowercase();
    let is_version = {
        let rest = lower.trim_start_matches('v');
        rest.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b':' | b'/' | b'x' | b'_'))
    };
    // Terms are written in one case, but for the first letter.
    let rest = text.get(1..).unwrap_or_default();
    let is_one_case = rest.to_ascii_lowercase() == rest || rest.to_ascii_uppercase() == rest;
    is_version
        || text.len() <= 24 && is_one_case && TERMS.iter().any(|term| lower.starts_with(term))
        || text.len() <= 40
            && lower.len() >= 3
            && TERMS.iter().any(|term| lower.contains(term))
            && word_share(text, 3) > MAX_NAMED_WORD_SHARE
}

fn is_hex(text: &str) -> bool {
    let text = text.strip_prefix("0x").unwrap_or(text);
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether a text is an alphabet or counts: neighbours in the text are neighbours in the alphabet.
pub(super) fn is_sequence(text: &str) -> bool {
    let bytes = text.as_bytes();
    let steps = bytes.windows(2).filter(|pair| pair[1] == pair[0].wrapping_add(1) || pair[1] == pair[0]).count();
    steps as f64 > (bytes.len().max(2) - 1) as f64 * MAX_SEQUENCE_SHARE
}

/// Returns the share of a text's letters and digits that stand in words: at least `min_letters` letters, one of them a vowel,
/// of one case or with a capital first.
pub(super) fn word_share(text: &str, min_letters: usize) -> f64 {
    let bytes = text.as_bytes();
    let (mut in_words, mut all) = (0usize, 0usize);
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphabetic() {
            all += usize::from(bytes[at].is_ascii_digit());
            at += 1;
            continue;
        }
        let start = at;
        at += 1;
        if bytes[start].is_ascii_uppercase() && bytes.get(at).is_some_and(u8::is_ascii_uppercase) {
            while bytes.get(at).is_some_and(u8::is_ascii_uppercase)
                && !bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase)
            {
                at += 1;
            }
        } else {
            while bytes.get(at).is_some_and(u8::is_ascii_lowercase) {
                at += 1;
            }
        }
        let word = &bytes[start..at];
        all += word.len();
        if word.len() >= min_letters && is_pronounceable(word) {
            in_words += word.len();
        }
    }
    in_words as f64 / all.max(1) as f64
}

/// Returns whether letters have vowels as words have them: a quarter at least, and no four consonants in a row.
fn is_pronounceable(word: &[u8]) -> bool {
    let is_vowel = |byte: &u8| matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
    let rare = word.iter().filter(|byte| matches!(byte.to_ascii_lowercase(), b'q' | b'x' | b'z' | b'j')).count();
    let vowels = word.iter().filter(|byte| is_vowel(byte)).count();
    vowels * 4 >= word.len() && word.split(is_vowel).all(|row| row.len() < 4) && rare * 5 <= word.len()
}

/// Returns whether a text is made of words and not of random characters: `auth.token.missing`, `access_token`,
/// `X-Api-Key`.
pub(crate) fn is_identifier(text: &str) -> bool {
    // Words have neither digits nor characters that are unusual in identifiers.
    !text.bytes().any(|byte| byte.is_ascii_digit())
        && !text.bytes().any(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'.' | b':' | b'/'))
}

/// Returns whether a match of a rule with a context is made of words, which no key is.
pub(super) fn is_made_of_words(text: &str) -> bool {
    is_placeholder(text) || is_wordy(text, MAX_NAMED_WORD_SHARE) || is_sequence(text) || text.contains(' ')
}

/// Returns whether a text only repeats its name, as in `oauth2Token = "oauth2_token"`: the name of a value that comes
/// later.
pub(crate) fn is_echo_of_name(name: &str, text: &str) -> bool {
    let letters = |text: &str| -> Vec<u8> {
        let letters = text.bytes().filter(u8::is_ascii_alphanumeric);
        letters.map(|byte| byte.to_ascii_lowercase()).collect()
    };
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    is_name && (letters(text) == letters(name) || letters(text) == letters(last))
}

/// Words of texts that are placeholders for a secret.
const PLACEHOLDERS: &[&str] = &[
    "changeme",
    "change-me",
    "change_me",
    "placeholder",
    "example",
    "your-",
    "your_",
    "yourapi",
    "dummy",
    "sample",
    "insert",
    "replace",
    "xxxx",
    "****",
    "todo",
    "redacted",
    "not-a-real",
    "notreal",
    "fake",
    "test",
    "foobar",
    "secret_key_here",
    "12345678",
    "abcdefgh",
    "lorem",
    "process.env",
    "getenv",
    "environ",
    "undefined",
];

/// Returns whether a text is a placeholder: one of the usual words, a template, or one character over and over.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let bytes = text.as_bytes();
    let same = bytes.first().is_some_and(|first| bytes.iter().all(|byte| byte.eq_ignore_ascii_case(first)));
    same || has_placeholder_word(text) || text.starts_with(['<', '$', '%', '{']) || text.contains("${")
}

/// Returns whether the first 200 bytes of a text contain one of the words that stand for a secret.
fn has_placeholder_word(text: &str) -> bool {
    let lower = text.get(..text.floor_char_boundary(200)).unwrap_or(text).to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|word| lower.contains(word))
}

/// Returns the Shannon entropy of the bytes, in bits per byte (per character of an ASCII text).
pub(crate) fn shannon_entropy(text: &str) -> f64 {
    let mut counts = [0u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = text.len().max(1) as f64;
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| f64::from(count) / length)
        .map(|share| -share * share.log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_differ_from_words_terms_and_templates() {
        for text in
            ["hunter2x", "Tr0ub4dor&3", "S3cure!Pass", "kX9mP2vL5nQ8", "$Ab12cdEf34x", "p@ss w0rd", "admin2024!"]
        {
            let expected = !text.contains(' ');
            assert_eq!(is_password(text), expected, "{text}");
        }
        for text in ["KjdhQwXzTyUiOpLkJhGf", "xkqzvbnmwrtpdf", "QWRTPSDFGHJKLZXC", "bTzQmWkRvXpL"] {
            assert!(is_password(text), "{text}");
        }
        for text in [
            "CheckLengthStrength",
            "MinLengthStrength",
            "getPasswordFromEnvironment",
            "correcthorsebatterystaple",
            "PASSWORDREQUIRED",
            "UserPassword",
            "abcdefghijklmnop",
            "password",
            "changeme",
            "${DB_PASSWORD}",
            "$PASSWORD",
            "{{ password }}",
            "%(password)s",
            "min:8",
            "required|min:8",
            "sha256",
            "utf8mb4",
            "aes-256-gcm",
            "v1.2.3",
            "2024-01-31",
            "/run/secrets/db2",
            "oauth2_token",
            "os.environ",
            "get_password()",
            "********",
            "http://x/y1",
            "<password1>",
            "^[a-z0-9]+$",
        ] {
            assert!(!is_password(text), "{text}");
        }
    }

    #[test]
    fn keys_differ_from_identifiers_and_alphabets() {
        for text in ["q7Rt2Yp9Lk4Wn6Zc8Vb3Xs", "9f86d081884c7d659a2feaa0c55ad015", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz12"]
        {
            assert!(is_named_key(text), "{text}");
        }
        for text in [
            "oauth2-token",
            "accessToken2",
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
            "config.secrets.token2",
            "TokenKind::Ident2",
            "00000000000000000000000000000001",
        ] {
            assert!(!is_named_key(text), "{text}");
        }
    }

    #[test]
    fn words_are_counted_by_their_letters() {
        assert!(word_share("accessTokenProvider", 3) > 0.99);
        assert!(word_share("q7Rt2Yp9Lk4Wn6Zc8Vb3Xs", 3) < 0.01);
        assert!(is_basic_credential("dXNlcjpwYXNz"));
        assert!(!is_basic_credential("authentication"));
    }
}
