//! Recognizes names of secrets by their words.

use super::values::Strictness;
use crate::domain::text::has_word;

/// Words that mark a name as the name of a secret.
const SECRET_WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "credential",
    "pwd",
    "privatekey",
    "accesskey",
    "authkey",
];
/// Words that mark a name as the name of a secret together with `key`.
const KEY_WORDS: &[&str] =
    &["api", "secret", "private", "access", "auth", "encryption", "signing", "master", "session"];
/// Words that mark a name as a description of a secret, not its value.
pub(crate) const DESCRIPTIVE_WORDS: &[&str] = &[
    "name",
    "field",
    "label",
    "header",
    "url",
    "uri",
    "path",
    "file",
    "type",
    "kind",
    "prefix",
    "suffix",
    "regex",
    "pattern",
    "hint",
    "placeholder",
    "message",
    "msg",
    "error",
    "help",
    "description",
    "title",
    "text",
    "id",
    "identifier",
    "address",
    "contract",
    "param",
    "parameter",
    "env",
    "var",
    "endpoint",
    "policy",
    "format",
    "length",
    "min",
    "max",
    "csrf",
    "cookie",
    "input",
    "selector",
    "class",
    "command",
    "lexer",
    "parser",
    "next",
    "end",
    "start",
    "reset",
];

/// Names of passwords, which people choose.
const PASSWORD_WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "pass",
    "pw",
    "psw",
    "passwort",
    "requirepass",
    "masterauth",
];
/// The same as parts of names without a boundary between words: `PGPASSWORD`, `rootpw`.
const PASSWORD_PARTS: [&str; 5] = ["password", "passwd", "passphrase", "rootpw", "bindpw"];
/// More names of secrets, for masks.
const MORE_SECRET_WORDS: &[&str] = &["psk", "jwt", "bearer", "cred", "creds", "authtoken", "secretkey", "pat"];
/// Parts of names of secrets without a boundary between words.
const SECRET_PARTS: [&str; 9] = [
    "apikey",
    "secretkey",
    "accesskey",
    "privatekey",
    "authtoken",
    "clientsecret",
    "accesstoken",
    "signingkey",
    "encryptionkey",
];
/// More words that mark a name as the name of a secret together with `key`, for masks.
const MORE_KEY_WORDS: &[&str] = &[
    "client",
    "account",
    "storage",
    "service",
    "shared",
    "preshared",
    "crypt",
    "hmac",
    "jwt",
    "ssh",
    "app",
    "application",
    "deploy",
    "webhook",
    "admin",
    "root",
    "license",
    "licence",
    "crypto",
    "cipher",
    "aes",
    "rsa",
    "wrapping",
    "backup",
    "server",
    "subscription",
    "functions",
    "ssl",
    "tls",
    "recovery",
    "root",
    "pre",
    "cookie",
];
/// Words whose names may hold a secret, if the value is random.
const WEAK_WORDS: &[&str] =
    &["key", "auth", "sig", "signature", "salt", "authorization", "pepper", "seed", "otp", "totp", "sid"];
/// Words that mark the value as public or as a part of a protocol.
const PUBLIC_WORDS: &[&str] =
    &["public", "pub", "primary", "foreign", "sort", "partition", "cache", "map", "dict", "publishable", "socket"];

/// Returns whether a name may be the name of a secret.
pub(crate) fn is_possible_secret_name(name: &str) -> bool {
    has_word(name, SECRET_WORDS) || (has_word(name, &["key"]) && has_word(name, KEY_WORDS))
}

/// Returns how strictly a value with this name is judged; `None` if the name is no name of a secret.
pub(super) fn classify_name(name: &str) -> Option<Strictness> {
    let mut lower = String::with_capacity(name.len());
    lower.extend(name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()));
    let strictness = if has_word(name, PASSWORD_WORDS) || PASSWORD_PARTS.iter().any(|part| lower.contains(part)) {
        Strictness::Password
    } else if has_word(name, SECRET_WORDS)
        || has_word(name, MORE_SECRET_WORDS)
        || SECRET_PARTS.iter().any(|part| lower.contains(part))
        || (has_word(name, &["key"]) && (has_word(name, KEY_WORDS) || has_word(name, MORE_KEY_WORDS)))
    {
        Strictness::Named
    } else if has_word(name, WEAK_WORDS) {
        Strictness::Random
    } else {
        return None;
    };
    if has_word(name, PUBLIC_WORDS) {
        return None;
    }
    // What describes a secret may still hold one, if nothing else looks like its value.
    if has_word(name, DESCRIPTIVE_WORDS) { Some(Strictness::Random) } else { Some(strictness) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_how_strictly_their_values_are_judged() {
        for (name, expected) in [
            ("DB_PASSWORD", Some(Strictness::Password)),
            ("PGPASSWORD", Some(Strictness::Password)),
            ("smtp_pass", Some(Strictness::Password)),
            ("spring.datasource.password", Some(Strictness::Password)),
            ("apiKey", Some(Strictness::Named)),
            ("X-Api-Key", Some(Strictness::Named)),
            ("STORAGE_ACCOUNT_KEY", Some(Strictness::Named)),
            ("client-key-data", Some(Strictness::Named)),
            ("key", Some(Strictness::Random)),
            ("password_file", Some(Strictness::Random)),
            ("public_key", None),
            ("primaryKey", None),
            ("bindpw", Some(Strictness::Password)),
            ("Sec-WebSocket-Key", None),
            ("compass", None),
            ("monkey", None),
            ("tokenize", None),
            ("author", None),
        ] {
            assert_eq!(classify_name(name), expected, "{name}");
        }
    }
}
