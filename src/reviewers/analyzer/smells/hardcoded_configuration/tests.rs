use super::super::test_support::{check_samples, find_smells};
use super::*;
use crate::domain::Suggestion;
use crate::syntax::source::Parsers;

/// Keys with the right shape that nobody ever used, in two parts: whole keys would alarm every scanner of this
/// repository.
const AWS: &str = concat!("AKI", "AQ3EGRVZ7TNWLXJ5D");
const GITHUB: &str = concat!("gh", "p_8rT3kLm9QwXz2VbN6yHs4JdF7cPa1GuE5oKi");
const GITHUB_FINE: &str =
    concat!("github", "_pat_11AQ3EGRV0m7Xk2Rt9Yp4L_Wn6Zc8Vb3Xs1Qd5Fg7Hj2Kl9Mn4Bv6Cx8Za3Sd1Fg5Hj7Kl2Qw");
const SLACK: &str = concat!("xo", "xb-281735940612-293847561029-Qm7Rt2Yp9Lk4Wn6Zc8Vb3Xs");
const STRIPE: &str = concat!("sk", "_live_7Gh2Kd9Qw4Zx8Vb3Nm6Lp1Rt");
const GOOGLE: &str = concat!("AI", "zaSyD9kQ2mW7xV4bN8rT3pL6hJ1gF5cZ0aYuE");
const NPM: &str = concat!("np", "m_4hR8tK2mQ9xV7bN3wL6pJ1gF5cZ0aYuEdSiO");
const OPENAI: &str = concat!("sk", "-proj-9Kd2Qw7Zx4Vb8Nm3Lp6Rt1Gh5Jf0Yc2Ua7Se");
const ANTHROPIC: &str = concat!("sk", "-ant-api03-9Kd2Qw7Zx4Vb8Nm3Lp6Rt1Gh5Jf0Yc2Ua7Se4Ti9Wo6Xp3Bq8");
const JWT: &str = concat!("ey", "JhbGciOiJIUzI1NiJ9.ey", "JzdWIiOiI4MjczNDYifQ.Qm7Rt2Yp9Lk4Wn6Zc8Vb3XsTf5Gh1Jd0Ka");
const RSA: &str = concat!(
    "-----BEGIN RSA PRIV",
    "ATE KEY-----\\nMIICXAIBAAKBgQDNwqLEe9wgTXCbC7Zx4Vb8Nm3Lp6Rt1Gh5Jf0Yc2Ua7Se4Ti9Wo6Xp3Bq8Kd2QwMr5\\n-----END"
);
const RANDOM: &str = concat!("q7Rt2Yp9", "Lk4Wn6Zc8Vb3Xs");

/// Asserts that no part of a smell shows any part of the secret. Three characters may match by chance.
fn assert_redacted(smell: &Smell, secret: &str) {
    let all = format!("{smell:?}");
    let mut windows = secret.as_bytes().windows(4).map(|part| String::from_utf8_lossy(part).into_owned());
    assert!(!windows.any(|part| !part.contains("-----") && all.contains(&part)), "{all}");
    assert!(smell.quote.as_ref().is_some_and(|quote| quote.contains("…(")), "{all}");
}

/// Returns samples as files of tests, in which no smell is expected.
fn in_tests(samples: &str) -> String {
    let unmarked = |line: &str| line.split("//~ ").next().unwrap_or_default().trim_end().to_owned() + "\n";
    samples.lines().map(unmarked).collect::<String>().replace("//- ", "//- tests/")
}

#[test]
fn keys_of_providers() {
    for (secret, sort) in [
        (AWS, "An AWS access key"),
        (GITHUB, "A GitHub token"),
        (GITHUB_FINE, "A GitHub token"),
        (SLACK, "A Slack token"),
        (STRIPE, "A Stripe key"),
        (GOOGLE, "A Google API key"),
        (NPM, "An npm token"),
        (OPENAI, "An OpenAI key"),
        (ANTHROPIC, "An Anthropic key"),
        (JWT, "A JSON web token"),
        (RSA, "A private key"),
    ] {
        let title = format!("{sort} stands in the code: {}", mask_secret(secret));
        let samples = r#"
//- a.py
f(1)
x = "SECRET" //~ p0 TITLE
//- a.rs

fn f() { g("SECRET") } //~ p0 TITLE
//- a.go
package a
var x = "SECRET" //~ p0 TITLE
//- a.sh

export X='SECRET' //~ p0 TITLE
//- a.js

// SECRET //~ p0 TITLE
//- tests/a.py
x = "SECRET" //~ p2 TITLE
"#;
        for smell in check_samples(&SMELL, &samples.replace("SECRET", secret).replace("TITLE", &title)) {
            assert_eq!(smell.severity == Severity::Critical, smell.priority == Priority::P0, "{smell:?}");
            assert_redacted(&smell, secret);
        }
        let shown = format!("x = \"{secret}\"");
        let hidden = FileSecrets::from_text(shown.as_bytes(), TextForm::Data);
        assert!(!hidden.redactor(shown.as_bytes()).redact_slice(shown.as_bytes(), 0).contains(&secret[8..]), "{sort}");
        assert!(is_likely_secret(secret), "{sort}");
    }
}

#[test]
fn secrets_by_their_names() {
    let samples = r#"
//- a.py
API_KEY = "RANDOM" //~ p1 A secret for `API_KEY` stands in the code: …(22 characters)
//- a.py
connect(user, password="RANDOM")
//~ p1 A secret for `password` stands in the code: …(22 characters)
//- a.py
config["secret_token"] = "RANDOM"
//~ p1 A secret for `secret_token` stands in the code: …(22 characters)
//- a.rs
const AUTH_TOKEN: &str = "RANDOM";
//~ p1 A secret for `AUTH_TOKEN` stands in the code: …(22 characters)
//- a.js
const o = { clientSecret: 'RANDOM' }
//~ p1 A secret for `clientSecret` stands in the code: …(22 characters)
//- a.ts
class A { private apiKey = 'RANDOM' }
//~ p1 A secret for `apiKey` stands in the code: …(22 characters)
//- a.tsx
const accessToken: string = `RANDOM`
//~ p1 A secret for `accessToken` stands in the code: …(22 characters)
//- a.go
package a
var apiKey = "RANDOM" //~ p1 A secret for `apiKey` stands in the code: …(22 characters)
//- a.go
package a
var c = Config{Password: "RANDOM"}
//~ p1 A secret for `Password` stands in the code: …(22 characters)
//- a.go
package a
type A struct {
	Password string `json:"password" default:"RANDOM"`
//~ p1 A secret for `Password` stands in the code: …(22 characters)
}
//- A.java
class A { String password = "RANDOM"; }
//~ p1 A secret for `password` stands in the code: …(22 characters)
//- a.c
static const char *password = "RANDOM";
//~ p1 A secret for `password` stands in the code: …(22 characters)
//- a.cpp
std::string secret_token = "RANDOM";
//~ p1 A secret for `secret_token` stands in the code: …(22 characters)
//- a.cs
class A { string ApiKey = "RANDOM"; }
//~ p1 A secret for `ApiKey` stands in the code: …(22 characters)
//- a.rb
password = 'RANDOM' //~ p1 A secret for `password` stands in the code: …(22 characters)
x = { api_key: 'RANDOM' } //~ p1 A secret for `api_key` stands in the code: …(22 characters)
//- a.php
<?php $password = 'RANDOM';
//~ p1 A secret for `$password` stands in the code: …(22 characters)
//- a.sh
DB_PASSWORD="RANDOM" //~ p1 A secret for `DB_PASSWORD` stands in the code: …(22 characters)
"#;
    let samples = samples.replace("RANDOM", RANDOM);
    for smell in check_samples(&SMELL, &samples) {
        assert_redacted(&smell, RANDOM);
    }
    check_samples(&SMELL, &in_tests(&samples));
}

#[test]
fn what_is_no_secret() {
    let samples = r#"
//- a.py
PASSWORD = "changeme-changeme-1"
API_KEY = "your-api-key-here-123"
SECRET = '<token-goes-here-12>'
//- a.py
password = os.environ['DATABASE_PASSWORD_1']
token = getenv("SERVICE_TOKEN_2")
//- a.py
PASSWORD_FIELD = 'user[password_1]'
token_url = 'a9/b8/c7/d6/e5/f4'
token_type = 'urn:x9:y8:z7:Q6'
//- a.js
const apiKey = `${process.env.API_KEY_1}`; const o = { password: 'Password is required!', token: 'access_token' }
//- a.sh
PASSWORD="$1"
TOKEN="${TOKEN_9x8y7z}"
//- a.rs
const TOKEN: &str = "identifier"; let next_token = "q7Rt2Yp9Lk4W";
//- a.go
package a
type A struct {
	Password string `json:"password"`
	Token string `validate:"min=8,max=72"`
}
//- a.js
const oauth2Token = 'oauth2-token'
//- a.py
KEY = 'STRIPE_HEADxxxxxxxxxxxxxxxxxxxxxxxx'
//- a.py
KEY = 'AWS_EXAMPLE'
//- a.py
x = 'sk-learn-estimators-for-everyone-here'
y = 'task-1234567890abcdefghij'
//- a.py
HEADER = 'RSA_HEAD'
"#;
    let samples = samples
        .replace("STRIPE_HEAD", concat!("sk", "_live_"))
        .replace("AWS_EXAMPLE", concat!("AKI", "AIOSFODNN7EXAMPLE"))
        .replace("RSA_HEAD", concat!("-----BEGIN PRIV", "ATE KEY-----"));
    assert_eq!(check_samples(&SMELL, &samples), []);
}

#[test]
fn addresses_of_services() {
    let samples = r#"
//- a.py
HOST = '10.1.2.3' //~ p3 An IP address is fixed in the code: 10.1.2.3
//- a.go
package a
func f() { dial("10.1.2.3:5432") } //~ p3 An IP address is fixed in the code: 10.1.2.3:5432
//- a.rs
fn f() { connect("[2a00:1450:4001:81b::200e]:443") }
//~ p3 An IP address is fixed in the code: [2a00:1450:4001:81b::200e]:443
//- a.js
fetch('https://api.acmecorp.io/v1/users')
//~ p3 An address of a service is fixed in the code: https://api.acmecorp.io/v1/users
//- a.js
const apiUrl = 'https://shop.acmecorp.io/checkout'
//~ p3 An address of a service is fixed in the code: https://shop.acmecorp.io/checkout
//- a.js
axios.get('https://shop.acmecorp.io/checkout')
//~ p3 An address of a service is fixed in the code: https://shop.acmecorp.io/checkout
//- A.java
class A { String url = "http://billing.internal/charge"; }
//~ p3 An address of a service is fixed in the code: http://billing.internal/charge
//- a.cs
class A { string u = "http://shop.acmecorp.io:8080"; }
//~ p3 An address of a service is fixed in the code: http://shop.acmecorp.io:8080
//- a.rb
x = 'redis://cache.acmecorp.io/0'
//~ p3 An address of a service is fixed in the code: redis://cache.acmecorp.io/0
//- a.php
<?php $x = 'db.acmecorp.io:5432'; //~ p3 A host with its port is fixed in the code: db.acmecorp.io:5432
//- a.sh
URL="https://staging.acmecorp.io"
//~ p3 An address of a service is fixed in the code: https://staging.acmecorp.io
"#;
    check_samples(&SMELL, samples);
    check_samples(&SMELL, &in_tests(samples));
}

#[test]
fn addresses_that_are_none_of_services() {
    let samples = r#"
//- a.py
a = '127.0.0.1'; b = '0.0.0.0:80'; c = '::1'; d = '192.0.2.1'; e = '2001:db8::1'; f = '255.255.255.0'; version = '4.1.2.3'
//- a.js
fetch('http://localhost:3000'); a('https://www.w3.org/2000/svg'); b('https://api.example.com'); c('http://json-schema.org/draft-07/schema#')
//- a.rs
fn f() { g("see https://api.acmecorp.io/docs for more"); h("a::b::c"); i("std::io"); j("12:30:15") }
//- a.go
package a
var x = "https://pkg.go.dev/net/http"; var y = "file.go:120"; var z = "a.b.c"
//- a.py
homepage = 'https://acmecorp.io/'
help_url = 'https://acmecorp.io/help.html'
"#;
    assert_eq!(check_samples(&SMELL, samples), []);
}

#[test]
fn passwords_in_addresses() {
    let samples = r#"
//- a.py
x = f("postgres://admin:q7Rt2Yp9@db.acmecorp.io:5432/shop")
//~ p0 A password in an address stands in the code: …(8 characters)
//- a.py
x = 'postgres://user:password@db.acmecorp.io/shop'
//~ p3 An address of a service is fixed in the code: postgres://user:password@db.acmecorp.io/shop
//- a.py
x = 'postgres://admin:q7Rt2Yp9@localhost/shop'
//- a.py
x = f'postgres://admin:{password}@{host}/shop'
//- a.py
x = 'postgres://admin:${PASSWORD}@db.acmecorp.io/shop'
//~ p3 An address of a service is fixed in the code: postgres://admin:${PASSWORD}@db.acmecorp.io/shop
//- a.py
x = 'https://user:pass@example.com/'
"#;
    let found = check_samples(&SMELL, samples);
    assert_redacted(&found[0], "q7Rt2Yp9");
    assert_eq!(found[0].quote.as_deref(), Some("x = f(\"postgres://admin:…(8 characters)@db.acmecorp.io:5432/shop\")"));
}

#[test]
fn every_secret_of_a_line_is_masked() {
    let sample = r#"
//- a.py
pair = ["AWS", "STRIPE"]; password = "RANDOM"
//~ p0 An AWS access key stands in the code: …(20 characters)
//~ p0 A Stripe key stands in the code: …(32 characters)
//~ p1 A secret for `password` stands in the code: …(22 characters)
"#;
    let sample = sample.replace("\"AWS", &format!("\"{AWS}")).replace("STRIPE", STRIPE).replace("RANDOM", RANDOM);
    for smell in check_samples(&SMELL, &sample) {
        [AWS, STRIPE, RANDOM].into_iter().for_each(|secret| assert_redacted(&smell, secret));
    }
}

#[test]
fn other_smells_do_not_show_secrets() {
    let url = concat!("postgres://admin:q7Rt2", "Yp9@db.acmecorp.io/shop");
    for (text, expected) in [
        (AWS, true),
        (RANDOM, true),
        (url, true),
        ("reader", false),
        ("Content-Type", false),
        ("a longer Text 1", false),
    ] {
        assert_eq!(is_likely_secret(text), expected, "{text}");
    }
}

#[test]
fn entropy_is_shannons() {
    for (text, bits) in [("", 0.0), ("aaaa", 0.0), ("abab", 1.0), ("abcd", 2.0), ("abcdefgh", 3.0)] {
        assert!((secrets::shannon_entropy(text) - bits).abs() < 1e-9, "{text}");
    }
}

/// Asserts that no six consecutive characters of a secret are shown.
fn assert_absent(shown: &str, secret: &str, what: &str) {
    let parts = secret.as_bytes().windows(6).map(|part| String::from_utf8_lossy(part).into_owned());
    for part in parts {
        assert!(!shown.contains(&part), "{what}: {part} in {shown}");
    }
}

#[test]
fn no_finding_of_any_kind_shows_a_secret() {
    use crate::domain::{RunId, Time};
    use crate::reviewers::analyzer::{Builtin, to_findings};

    let url = concat!("postgres://admin:q7Rt2", "Yp9Lk4@db.acmecorp.io/shop");
    let password = concat!("q7Rt2", "Yp9Lk4");
    let long: String = (0..70).map(|n| format!("    g(x_{n})\n")).collect();
    let same = |name: &str| {
        format!(
            "def {name}(items, k=\"{AWS}\"):\n    total = 0\n    for item in items:\n        if item.price > total:\n            \
             total = item.price + f(item, total)\n        elif item.count < 3 and item.rest:\n            total -= g(item.rest, \
             total)\n        else:\n            total += h(item, \"{AWS}\")\n    return total\n\n"
        )
    };
    let mut kinds = std::collections::HashSet::new();
    for (path, code, secret) in [
        // A long function with a key in its head, an unused local, a repeated text, a number next to it.
        ("a.py", format!("def f(a, key=\"{AWS}\"):\n{long}"), AWS),
        ("a.py", format!("def f(a):\n    unused = \"{STRIPE}\"\n    return 1\n"), STRIPE),
        ("a.py", format!("def f(a):\n    api_key = \"{RANDOM}\"\n    return 1\n"), RANDOM),
        ("a.py", "f(1)\n".to_owned() + &format!("connect(\"{url}\")\n").repeat(4), password),
        ("a.py", format!("a(\"{GITHUB} for you\")\n").repeat(5), GITHUB),
        ("a.py", format!("def f(a):\n    if a > 4711: g(\"{GOOGLE}\")\n"), GOOGLE),
        ("a.py", format!("import os\nstate = [\"{SLACK}\"]\ndef f():\n    state.append(1)\n"), SLACK),
        ("a.py", format!("try:\n    f(\"{NPM}\")\nexcept Exception: pass\n"), NPM),
        ("a.py", format!("try: f(\"{NPM}\")\nexcept: pass  # {NPM}\n"), NPM),
        ("a.py", same("f") + &same("k"), AWS),
        ("tests/a.py", format!("def f(a):\n    password = \"{RANDOM}\"\n    return 1\n"), RANDOM),
    ] {
        let builtin = Builtin::default();
        let report = builtin.analyze_file(&mut Parsers::default(), path, code.as_bytes()).expect("a language of ours");
        let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id");
        let findings = to_findings(&report.smells, path, code.as_bytes(), &run, Time::UNIX_EPOCH);
        kinds.extend(findings.iter().map(|finding| finding.kind));
        assert!(!findings.is_empty(), "{code}");
        assert_absent(&format!("{:?}", report.smells), secret, &code);
        assert_absent(&serde_json::to_string(&findings).expect("JSON"), secret, &code);
        // The same code with another secret has the same ids, because they contain only the masked secret.
        let other: String =
            secret.chars().enumerate().map(|(at, c)| if at >= 4 && c == 'R' { 'T' } else { c }).collect();
        let report = builtin.analyze_file(&mut Parsers::default(), path, code.replace(secret, &other).as_bytes());
        let again = to_findings(
            &report.expect("the same language").smells,
            path,
            code.replace(secret, &other).as_bytes(),
            &run,
            Time::UNIX_EPOCH,
        );
        let ids =
            |findings: &[crate::domain::Finding]| -> Vec<_> { findings.iter().map(|f| f.finding_id.clone()).collect() };
        assert_eq!(ids(&findings), ids(&again), "{code}");
    }
    for kind in [Kind::LongMethod, Kind::DeadCode, Kind::MagicNumbers, Kind::MissingErrorHandling, Kind::DuplicateCode]
    {
        assert!(kinds.contains(&kind), "{kind} is not tried: {kinds:?}");
    }
}

#[test]
fn texts_and_suggestions_are_masked_and_replacements_dropped() {
    let text = format!("key = \"{AWS}\"\nf()\n");
    let secrets = FileSecrets::from_text(text.as_bytes(), TextForm::Data);
    let hidden = secrets.redactor(text.as_bytes());
    let mut smell = find_smells(&SMELL, "a.py", &text).remove(0);
    smell.kind = Kind::DeadCode;
    smell.title = format!("`{}` is unused", &AWS[..14]);
    smell.explanation = format!("ä{AWS}ä and {AWS}");
    smell.subject = AWS.to_owned();
    smell.symbol = Some(AWS.to_owned());
    smell.suggestion =
        Some(Suggestion { text: format!("Delete {AWS}."), replacement: Some(format!("_ = \"{AWS}\"")), lines: None });
    (smell.quote, smell.anchor) = (None, (2, 2));
    hidden.redact_smells(std::slice::from_mut(&mut smell), text.as_bytes());
    assert_eq!((smell.title.as_str(), smell.explanation.as_str()), ("`…` is unused", "ä…ä and …"));
    assert_eq!((smell.subject.as_str(), smell.symbol.as_deref(), smell.quote.as_deref()), ("…", Some("…"), None));
    let suggestion = smell.suggestion.expect("a suggestion");
    assert_eq!((suggestion.text.as_str(), suggestion.replacement), ("Delete ….", None));
}

#[test]
fn bytes_that_are_no_utf8_do_not_shift_the_mask() {
    let mut code = b"x = f() # \xe9\xe8\xe0\xfc\xf6\xe4 ".to_vec();
    code.extend_from_slice(format!("{AWS} \"\"").as_bytes());
    code.extend_from_slice(b" \xe9\n");
    let found = find_smells(&SMELL, "a.py", &code);
    assert_eq!(found.len(), 1, "{found:?}");
    let quote = found[0].quote.as_deref().unwrap_or_default();
    assert_absent(quote, AWS, "a quote");
    assert!(quote.starts_with("x = f() # \u{fffd}") && quote.contains("…(20 characters) \"\" \u{fffd}"), "{quote}");
}

#[test]
fn an_address_does_not_show_the_key_in_it() {
    let sample = r#"
//- a.py
x = f("https://10.2.3.4:8443/?key=GOOGLE")
//~ p0 A Google API key stands in the code: …(39 characters)
//~ p3 An address of a service is fixed in the code: https://10.2.3.4:8443/?key=…(39 characters)
"#;
    for smell in check_samples(&SMELL, &sample.replace("GOOGLE", GOOGLE)) {
        assert_redacted(&smell, GOOGLE);
    }
}

#[test]
fn the_work_of_hiding_does_not_grow_with_the_line() {
    // One line with two thousand keys: quotes are bounded, and are built once for all smells of a line.
    let keys: String = (0..2_000)
        .map(|n: u32| {
            let tail: String = (0..4).map(|at| char::from(b'A' + (n >> (at * 3) & 7) as u8)).collect();
            format!("\"{}{tail}\", ", &AWS[..16])
        })
        .collect();
    let code = format!("x = [{keys}]\n");
    let found = find_smells(&SMELL, "a.py", &code);
    assert_eq!(found.len(), 2_000);
    let shown: usize = found.iter().filter_map(|smell| smell.quote.as_ref()).map(String::len).max().unwrap_or(0);
    assert!(shown < 4_000, "{shown}");
}

#[test]
fn the_search_of_texts_and_the_built_in_reviewer_agree_about_placeholders() {
    // An alphabet in a key is made up, however long the rest is.
    let made_up = concat!("sk", "_live_51H8aKJ2eZvKYlo2C0abcdEFGHijkl");
    let long = concat!("7Rt2Yp9Lk4Wn6Zc8", "Vb3Xs5Qd1Fg7Hj2Kl9");
    for (value, expected) in [(made_up, 0), (STRIPE, 1), (long, 1), (RANDOM, 1)] {
        let text = format!("API_KEY = \"{value}\"\n");
        let lines =
            |smells: &[Smell]| smells.iter().map(|smell| (smell.line_start, smell.priority)).collect::<Vec<_>>();
        let parsed = find_smells(&SMELL, "a.py", &text);
        let searched = find_text_secrets("a.py", text.as_bytes(), TestCodeCheck::Syntax, &|| None);
        assert_eq!(lines(&searched), lines(&parsed), "{value}");
        assert_eq!(parsed.len(), expected, "{value}");
    }
}
