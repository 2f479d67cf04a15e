use super::*;
use crate::syntax::language::Language;
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

fn find_smells(path: &str, code: &str) -> Vec<Smell> {
    let language = Language::detect(path, code.as_bytes()).expect("a language");
    let mut parsers = Parsers::default();
    let source = parsers.parse(path, language, code.as_bytes()).expect("parses");
    let facts = FileFacts::from_parsed(&source);
    let held = HardcodedValues::scan(&source, &facts, &Limits::default());
    let mut out = Vec::new();
    check(&source, &facts, &held, &mut out);
    held.redactor().redact_smells(&mut out, code.as_bytes());
    out
}

/// Asserts that no part of a smell shows any part of the secret. Three characters may match by chance.
fn assert_redacted(smell: &Smell, secret: &str) {
    let all = format!("{smell:?}");
    let mut windows = secret.as_bytes().windows(4).map(|part| String::from_utf8_lossy(part).into_owned());
    assert!(!windows.any(|part| !part.contains("-----") && all.contains(&part)), "{all}");
    assert!(smell.quote.as_ref().is_some_and(|quote| quote.contains("…(")), "{all}");
}

#[test]
fn keys_of_providers() {
    for (secret, sort) in [
        (AWS, "an AWS access key"),
        (GITHUB, "a GitHub token"),
        (GITHUB_FINE, "a GitHub token"),
        (SLACK, "a Slack token"),
        (STRIPE, "a Stripe key"),
        (GOOGLE, "a Google API key"),
        (NPM, "an npm token"),
        (OPENAI, "an OpenAI key"),
        (ANTHROPIC, "an Anthropic key"),
        (JWT, "a JSON web token"),
        (RSA, "a private key"),
    ] {
        for (path, code) in [
            ("a.py", format!("f(1)\nx = \"{secret}\"\n")),
            ("a.rs", format!("\nfn f() {{ g(\"{secret}\") }}")),
            ("a.go", format!("package a\nvar x = \"{secret}\"")),
            ("a.sh", format!("\nexport X='{secret}'\n")),
            ("a.js", format!("\n// {secret}\n")),
        ] {
            let found = find_smells(path, &code);
            assert_eq!(found.len(), 1, "{path} {sort} {found:?}");
            assert!(
                found[0].title.to_lowercase().starts_with(&sort.to_lowercase()) && found[0].line_start == 2,
                "{path} {:?}",
                found[0]
            );
            assert_eq!((found[0].priority, found[0].severity), (Priority::P0, Severity::Critical), "{path}");
            assert_redacted(&found[0], secret);
        }
        let test = find_smells("tests/a.py", &format!("x = \"{secret}\"\n"));
        assert_eq!(test.iter().map(|smell| smell.priority).collect::<Vec<_>>(), [Priority::P2], "{sort}");
        assert_redacted(&test[0], secret);
        assert!(!redact(&format!("x = \"{secret}\"")).contains(&secret[8..]), "{sort}");
        assert!(is_likely_secret(secret), "{sort}");
    }
}

#[test]
fn secrets_by_their_names() {
    for (path, code) in [
        ("a.py", format!("API_KEY = \"{RANDOM}\"\n")),
        ("a.py", format!("connect(user, password=\"{RANDOM}\")\n")),
        ("a.py", format!("config[\"secret_token\"] = \"{RANDOM}\"\n")),
        ("a.rs", format!("const AUTH_TOKEN: &str = \"{RANDOM}\";")),
        ("a.js", format!("const o = {{ clientSecret: '{RANDOM}' }}")),
        ("a.ts", format!("class A {{ private apiKey = '{RANDOM}' }}")),
        ("a.tsx", format!("const accessToken: string = `{RANDOM}`")),
        ("a.go", format!("package a\nvar apiKey = \"{RANDOM}\"")),
        ("a.go", format!("package a\nvar c = Config{{Password: \"{RANDOM}\"}}")),
        (
            "a.go",
            format!("package a\ntype A struct {{\n\tPassword string `json:\"password\" default:\"{RANDOM}\"`\n}}\n"),
        ),
        ("A.java", format!("class A {{ String password = \"{RANDOM}\"; }}")),
        ("a.c", format!("static const char *password = \"{RANDOM}\";")),
        ("a.cpp", format!("std::string secret_token = \"{RANDOM}\";")),
        ("a.cs", format!("class A {{ string ApiKey = \"{RANDOM}\"; }}")),
        ("a.rb", format!("password = '{RANDOM}'\nx = {{ api_key: '{RANDOM}' }}\n")),
        ("a.php", format!("<?php $password = '{RANDOM}';")),
        ("a.sh", format!("DB_PASSWORD=\"{RANDOM}\"\n")),
    ] {
        let found = find_smells(path, &code);
        assert!(
            !found.is_empty() && found.iter().all(|smell| smell.priority == Priority::P1),
            "{path}: {code} {found:?}"
        );
        found.iter().for_each(|smell| assert_redacted(smell, RANDOM));
        assert!(find_smells(&format!("tests/{path}"), &code).is_empty(), "{path}");
    }
}

#[test]
fn what_is_no_secret() {
    for (path, code) in [
        ("a.py", "PASSWORD = \"changeme-changeme-1\"\nAPI_KEY = \"your-api-key-here-123\"\nSECRET = '<token-goes-here-12>'\n".to_owned()),
        ("a.py", "password = os.environ['DATABASE_PASSWORD_1']\ntoken = getenv(\"SERVICE_TOKEN_2\")\n".to_owned()),
        ("a.py", "PASSWORD_FIELD = 'user[password_1]'\ntoken_url = 'a9/b8/c7/d6/e5/f4'\ntoken_type = 'urn:x9:y8:z7:Q6'\n".to_owned()),
        ("a.js", "const apiKey = `${process.env.API_KEY_1}`; const o = { password: 'Password is required!', token: 'access_token' }".to_owned()),
        ("a.sh", "PASSWORD=\"$1\"\nTOKEN=\"${TOKEN_9x8y7z}\"\n".to_owned()),
        ("a.rs", "const TOKEN: &str = \"identifier\"; let next_token = \"q7Rt2Yp9Lk4W\";".to_owned()),
        ("a.go", "package a\ntype A struct {\n\tPassword string `json:\"password\"`\n\tToken string `validate:\"min=8,max=72\"`\n}\n".to_owned()),
        ("a.js", "const oauth2Token = 'oauth2-token'".to_owned()),
        ("a.py", format!("KEY = '{}'\n", concat!("sk", "_live_xxxxxxxxxxxxxxxxxxxxxxxx"))),
        ("a.py", format!("KEY = '{}EXAMPLE'\n", concat!("AKI", "AIOSFODNN7"))),
        ("a.py", "x = 'sk-learn-estimators-for-everyone-here'\ny = 'task-1234567890abcdefghij'\n".to_owned()),
        ("a.py", format!("HEADER = '{}'\n", concat!("-----BEGIN PRIV", "ATE KEY-----"))),
    ] {
        let found = find_smells(path, &code);
        assert!(found.is_empty(), "{path}: {code}\n{found:?}");
    }
}

#[test]
fn addresses_of_services() {
    for (path, code, sort) in [
        ("a.py", "HOST = '10.1.2.3'", "an IP address"),
        ("a.go", "package a\nfunc f() { dial(\"10.1.2.3:5432\") }", "an IP address"),
        ("a.rs", "fn f() { connect(\"[2a00:1450:4001:81b::200e]:443\") }", "an IP address"),
        ("a.js", "fetch('https://api.acmecorp.io/v1/users')", "an address of a service"),
        ("a.js", "const apiUrl = 'https://shop.acmecorp.io/checkout'", "an address of a service"),
        ("a.js", "axios.get('https://shop.acmecorp.io/checkout')", "an address of a service"),
        ("A.java", "class A { String url = \"http://billing.internal/charge\"; }", "an address of a service"),
        ("a.cs", "class A { string u = \"http://shop.acmecorp.io:8080\"; }", "an address of a service"),
        ("a.rb", "x = 'redis://cache.acmecorp.io/0'", "an address of a service"),
        ("a.php", "<?php $x = 'db.acmecorp.io:5432';", "a host with its port"),
        ("a.sh", "URL=\"https://staging.acmecorp.io\"\n", "an address of a service"),
    ] {
        let found = find_smells(path, code);
        assert!(
            found.len() == 1 && found[0].title.to_lowercase().starts_with(&sort.to_lowercase()),
            "{path}: {code}\n{found:?}"
        );
        assert_eq!(found[0].priority, Priority::P3, "{path}");
        assert!(find_smells(&format!("tests/{path}"), code).is_empty(), "{path}");
    }
    for (path, code) in [
        (
            "a.py",
            "a = '127.0.0.1'; b = '0.0.0.0:80'; c = '::1'; d = '192.0.2.1'; e = '2001:db8::1'; f = '255.255.255.0'; version = '4.1.2.3'",
        ),
        (
            "a.js",
            "fetch('http://localhost:3000'); a('https://www.w3.org/2000/svg'); b('https://api.example.com'); c('http://json-schema.org/draft-07/schema#')",
        ),
        (
            "a.rs",
            "fn f() { g(\"see https://api.acmecorp.io/docs for more\"); h(\"a::b::c\"); i(\"std::io\"); j(\"12:30:15\") }",
        ),
        ("a.go", "package a\nvar x = \"https://pkg.go.dev/net/http\"; var y = \"file.go:120\"; var z = \"a.b.c\""),
        ("a.py", "homepage = 'https://acmecorp.io/'\nhelp_url = 'https://acmecorp.io/help.html'\n"),
    ] {
        let found = find_smells(path, code);
        assert!(found.is_empty(), "{path}: {code}\n{found:?}");
    }
}

#[test]
fn passwords_in_addresses() {
    let code = "x = f(\"postgres://admin:q7Rt2Yp9@db.acmecorp.io:5432/shop\")\n";
    let found = find_smells("a.py", code);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].priority, Priority::P0);
    assert_redacted(&found[0], "q7Rt2Yp9");
    assert_eq!(found[0].quote.as_deref(), Some("x = f(\"postgres://admin:…(8 characters)@db.acmecorp.io:5432/shop\")"));
    for code in [
        "x = 'postgres://user:password@db.acmecorp.io/shop'",
        "x = 'postgres://admin:q7Rt2Yp9@localhost/shop'",
        "x = f'postgres://admin:{password}@{host}/shop'",
        "x = 'postgres://admin:${PASSWORD}@db.acmecorp.io/shop'",
        "x = 'https://user:pass@example.com/'",
    ] {
        assert!(find_smells("a.py", code).iter().all(|smell| smell.priority == Priority::P3), "{code}");
    }
}

#[test]
fn every_secret_of_a_line_is_masked() {
    let code = format!("pair = [\"{AWS}\", \"{STRIPE}\"]; password = \"{RANDOM}\"\n");
    let found = find_smells("a.py", &code);
    assert_eq!(found.len(), 3, "{found:?}");
    for smell in &found {
        [AWS, STRIPE, RANDOM].into_iter().for_each(|secret| assert_redacted(smell, secret));
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
    let hidden = FileRedactor::from_key_shapes(text.as_bytes());
    let mut smell = find_smells("a.py", &text).remove(0);
    smell.kind = Kind::DeadCode;
    smell.title = format!("`{}` is unused", &AWS[..14]);
    smell.explanation = format!("ä{AWS}ä and {AWS}");
    smell.subject = AWS.to_owned();
    smell.suggestion =
        Some(Suggestion { text: format!("Delete {AWS}."), replacement: Some(format!("_ = \"{AWS}\"")), lines: None });
    (smell.quote, smell.anchor) = (None, (2, 2));
    hidden.redact_smells(std::slice::from_mut(&mut smell), text.as_bytes());
    assert_eq!((smell.title.as_str(), smell.explanation.as_str()), ("`…` is unused", "ä…ä and …"));
    assert_eq!((smell.subject.as_str(), smell.quote.as_deref()), ("…", None));
    let suggestion = smell.suggestion.expect("a suggestion");
    assert_eq!((suggestion.text.as_str(), suggestion.replacement), ("Delete ….", None));
}

#[test]
fn bytes_that_are_no_utf8_do_not_shift_the_mask() {
    let mut code = b"x = f() # \xe9\xe8\xe0\xfc\xf6\xe4 ".to_vec();
    code.extend_from_slice(format!("{AWS} \"\"").as_bytes());
    code.extend_from_slice(b" \xe9\n");
    let source = Parsers::default().parse("a.py", Language::Python, &code).expect("parses");
    let facts = FileFacts::from_parsed(&source);
    let held = HardcodedValues::scan(&source, &facts, &Limits::default());
    let mut found = Vec::new();
    check(&source, &facts, &held, &mut found);
    held.redactor().redact_smells(&mut found, &code);
    assert_eq!(found.len(), 1, "{found:?}");
    let quote = found[0].quote.as_deref().unwrap_or_default();
    assert_absent(quote, AWS, "a quote");
    assert!(quote.starts_with("x = f() # \u{fffd}") && quote.contains("…(20 characters) \"\" \u{fffd}"), "{quote}");
}

#[test]
fn an_address_does_not_show_the_key_in_it() {
    let code = format!("x = f(\"https://10.2.3.4:8443/?key={GOOGLE}\")\n");
    let found = find_smells("a.py", &code);
    assert!(found.iter().any(|smell| smell.title.starts_with("An address of a service")), "{found:?}");
    for smell in &found {
        assert_redacted(smell, GOOGLE);
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
    let found = find_smells("a.py", &code);
    assert_eq!(found.len(), 2_000);
    let shown: usize = found.iter().filter_map(|smell| smell.quote.as_ref()).map(String::len).max().unwrap_or(0);
    assert!(shown < 4_000, "{shown}");
}
