//! Tells which texts may hold a secret that only a syntax tree reveals.

use std::sync::LazyLock;

use regex::Regex;

use super::super::syntax::is_word_byte;
use super::{HardcodedConfigurationLimits, secrets};
use crate::reviewers::analyzer::limits::Limits;

/// Returns the default limits, for texts without project settings.
fn default_limits() -> &'static HardcodedConfigurationLimits {
    static LIMITS: LazyLock<Limits> = LazyLock::new(Limits::default);
    &LIMITS.hardcoded_configuration
}

/// Part of every name that may be the name of a secret.
static SECRET_NAME_PART: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("(?i)pass|pwd|secret|token|key|credential").unwrap_or_else(|_| unreachable!("a constant"))
});

/// Part that every URL with a password has, see [`addresses::find_url_password`].
static CREDENTIALS_HINT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"://[^/? #"'\n<]*@"#).unwrap_or_else(|_| unreachable!("a constant")));

/// Maximum number of quotes to try as the end of a quoted text. Beyond it the text counts as a possible secret.
const MAX_CLOSING_QUOTES: usize = 8;

/// Returns whether a text may contain a secret that only a syntax tree reveals, at any distance from its name. It
/// contains none if no URL has a password and, in addition, no identifier may name a secret or no quoted text may be a
/// secret.
pub fn needs_parsing(text: &str) -> bool {
    has_secret_name(text) && has_quoted_secret(text) || CREDENTIALS_HINT.is_match(text)
}

/// Returns whether an identifier in the text may be the name of a secret.
fn has_secret_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(part) = SECRET_NAME_PART.find_at(text, at) {
        let start = bytes[..part.start()].iter().rposition(|byte| !is_word_byte(*byte)).map_or(0, |before| before + 1);
        let length = bytes[part.end()..].iter().position(|byte| !is_word_byte(*byte));
        at = length.map_or(bytes.len(), |length| part.end() + length);
        // Words end at ASCII bytes, so the slice ends at character boundaries.
        if text.get(start..at).is_none_or(secrets::is_possible_secret_name) {
            return true;
        }
    }
    false
}

/// Returns whether a text between two quotes may be a secret, whatever the language does with quotes.
fn has_quoted_secret(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_one = |start: usize| {
        let mut ends = 0;
        for (at, byte) in bytes.iter().enumerate().skip(start + 1) {
            // A quote of another kind may end an outer text.
            if matches!(byte, b'"' | b'\'' | b'`') {
                ends += 1;
                let may_be_one = |quoted: &str| secrets::is_possible_secret(quoted, default_limits());
                let quoted = text.get(start + 1..at).unwrap_or_default();
                // Quotes and `#` at the ends may be delimiters, depending on the language: try the text without them
                // too.
                let within = quoted.trim_matches(['"', '\'', '`', '#']);
                if ends > MAX_CLOSING_QUOTES || may_be_one(quoted) || may_be_one(within) {
                    return true;
                }
            } else if secrets::NON_SECRET_CHARS.contains(&char::from(*byte)) {
                return false;
            }
        }
        false
    };
    memchr::memchr3_iter(b'"', b'\'', b'`', bytes).any(is_one)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::reviewers::analyzer::Builtin;
    use crate::syntax::source::Parsers;

    const RANDOM: &str = concat!("q7Rt2Yp9", "Lk4Wn6Zc8Vb3Xs");

    #[rstest]
    #[case::no_name("monkey = tokenize(passes, keys, '@@')", false)]
    #[case::a_key_of_nothing("static robj *lookupKey(sds key, int keyspace, \"@@\")", false)]
    #[case::a_key_of_something("let api_key = x(\"@@\");", true)]
    #[case::in_capitals("SESSION_KEYS `@@`", true)]
    #[case::in_parts("the accessToken and \n '@@'", true)]
    #[case::behind_a_word_that_is_none("keys, password '@@'", true)]
    #[case::beside_letters_of_others("«ünï_password» \"@@\"", true)]
    #[case::at_the_end("\"@@\" is a secret", true)]
    #[case::not_in_quotes("secret = @@", false)]
    #[case::words("password: 'none' \"some words and @@\" 'an_identifier'", false)]
    #[case::between_other_quotes("password `json:\"a\" default:\"@@\"`", true)]
    #[case::cut_by_the_end_of_what_it_is_in("password `json:\"a\" default:\"@@`{\"", true)]
    #[case::behind_a_quote_that_ends_nothing("it's a token \"@@\"", true)]
    #[case::a_quote_inside("password = \"x\\\"q7Rt2Yp\"", true)]
    #[case::doubled_quotes("password = @\"q7\"\"Rt2Yp\"", true)]
    #[case::signs_of_raw_texts("token = r##\"@@\"##", true)]
    #[case::more_quotes_than_are_looked_at("token \"\"\"\"\"\"\"\"\"\"", true)]
    #[case::an_address("see https://example.org/a and mail@example.org", false)]
    #[case::an_address_with_a_password("x://u:p@h", true)]
    #[case::nothing("", false)]
    fn what_may_hold_a_secret_is_parsed(#[case] text: &str, #[case] expected: bool) {
        let text = text.replace("@@", RANDOM);
        assert_eq!(needs_parsing(&text), expected, "{text}");
    }

    /// How languages assign a value to a name, or write a password in a URL; `@@` is the value.
    const GIVEN: [(&str, &str); 14] = [
        ("a.py", "db_password = (\n    \"@@\"\n)\n"),
        ("a.py", "f(apiKey='@@')\n"),
        ("a.py", "t = {'secret': \"\"\"@@\"\"\"}\n"),
        ("a.rs", "const AUTH_TOKEN: &str = r##\"@@\"##;\n"),
        ("a.rs", "fn f() { let token: &str =\n // why\n \"@@\"; }\n"),
        ("a.js", "const a = { 'access-token': `@@` };\n"),
        ("a.ts", "class A { private apiKey: string = '@@' }\n"),
        ("a.go", "package a\n\ntype A struct { Password string `json:\"a\" default:\"@@\"` }\n"),
        ("a.java", "class A { String pwd = \"@@\"; }\n"),
        ("a.cs", "class A { string secret = @\"@@\"; }\n"),
        ("a.c", "char *token = \"@@\";\n"),
        ("a.sh", "export DB_PASSWORD='@@'\n"),
        ("a.php", "<?php $dbPassword = '@@';\n"),
        ("a.py", "url = \"postgres://admin:@@@db.acme.io/x\"\n"),
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_a_syntax_tree_hides_is_worth_parsing(
            value in prop_oneof!["[a-zA-Z0-9]{6,24}", "[!-~]{6,24}", r#"[a-z0-9#'"`\\\\]{6,16}"#],
            given in 0..GIVEN.len(),
        ) {
            let (path, code) = GIVEN[given];
            let text = code.replace("@@", &value);
            let hidden = Builtin::default().find_secrets(&mut Parsers::default(), path, text.as_bytes());
            let is_told = hidden.iter().any(|(_, sort)| matches!(*sort, "a secret" | "a password in an address"));
            prop_assert!(!is_told || needs_parsing(&text), "{}", text);
        }
    }
}
