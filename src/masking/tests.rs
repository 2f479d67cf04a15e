use proptest::prelude::*;

use super::*;

/// Returns a key of a real shape that nobody ever owned.
fn key_shape() -> impl Strategy<Value = String> {
    prop_oneof![
        "AKIA[A-Z2-7]{16}",
        "gh[pousr]_[A-Za-z0-9]{36}",
        "github_pat_[A-Za-z0-9_]{59}[a-z0-9]",
        "glpat-[A-Za-z0-9_-]{19}[a-z0-9]",
        "xox[bp]-[A-Za-z0-9-]{24}",
        "https://hooks\\.slack\\.com/services/T[A-Z0-9]{8}/B[A-Z0-9]{8}/[A-Za-z0-9]{24}",
        "[sr]k_live_[A-Za-z0-9]{24}",
        "AIza[A-Za-z0-9_-]{35}",
        "npm_[A-Za-z0-9]{36}",
        "sk-ant-api03-[A-Za-z0-9_-]{48}",
        "sk-proj-[A-Za-z0-9]{40}",
        "SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}",
        "pypi-[A-Za-z0-9_-]{64}",
        "eyJ[A-Za-z0-9_-]{16}\\.eyJ[A-Za-z0-9_-]{16}\\.[A-Za-z0-9_-]{24}",
    ]
}

/// Kinds of lines in which keys appear. `KEY` marks the place.
const LINES: [&str; 12] = [
    "let x = \"KEY\";",
    "x = 'KEY'",
    "// KEY",
    "# see KEY, and more",
    "  api_token: KEY",
    "export TOKEN=KEY",
    "{\"password\": \"KEY\", \"n\": 1}",
    "curl -H \"Authorization: KEY\" https://h/x?token=KEY&y=1",
    "fn f() { g(\"a\", \"KEY\") }",
    "ünï «KEY» 漢",
    "",
    "KEY",
];

#[test]
fn what_stands_beside_secrets_is_all_but_their_markers() {
    for (masked, expected) in [
        ("", &[""][..]),
        ("a = 1", &["a = 1"]),
        ("a = «secret»", &["a = ", ""]),
        ("«secret:github_token»«secret», «secrets»", &["", "", ", «secrets»"]),
    ] {
        let parts: Vec<&str> = unmasked_ranges(masked).into_iter().map(|part| &masked[part]).collect();
        assert_eq!(parts, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_shape_survives_lines_stay_and_once_is_enough(
        keys in proptest::collection::vec((key_shape(), 0..LINES.len()), 1..6),
        path in prop_oneof![
            Just(None), Just(Some("a.rs")), Just(Some("a.py")), Just(Some("a.sh")), Just(Some("b.yaml")), Just(Some("c.js")),
        ],
        ending in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        let lines: Vec<String> = keys.iter().map(|(key, line)| LINES[*line].replace("KEY", key)).collect();
        let text = lines.join(ending);
        let masked = Mask::On.mask_text(path, &text);
        for (key, line) in &keys {
            prop_assert!(LINES[*line].is_empty() || !masked.contains(key.as_str()), "{key} in {masked}");
        }
        prop_assert_eq!(masked.split('\n').count(), text.split('\n').count());
        prop_assert_eq!(Mask::On.mask_text(path, &masked), masked.as_ref());
        prop_assert_eq!(Mask::On.mask_key_shapes(&masked), masked.as_ref());
        prop_assert_eq!(Mask::Off.mask_text(path, &text), text.as_str());
    }

    #[test]
    fn any_text_keeps_its_lines(text in "(?s).{0,400}") {
        for path in [None, Some("a.rs"), Some("a.sh")] {
            prop_assert_eq!(Mask::On.mask_text(path, &text).split('\n').count(), text.split('\n').count());
        }
    }
}

const RANDOM: &str = concat!("q7Rt2Yp9", "Lk4Wn6Zc8Vb3Xs");

#[test]
fn secrets_are_known_by_their_names_where_they_stand() {
    for (path, line, masked) in [
        ("a.py", "connect(user, password=\"@@\")", "connect(user, password=\"«secret»\")"),
        ("a.py", "password = (\n    \"@@\"\n)", "password = (\n    \"«secret»\"\n)"),
        ("a.py", "# password = \"@@\"", "# password = \"«secret»\""),
        ("a.ts", "class A { private apiKey: string = '@@' }", "class A { private apiKey: string = '«secret»' }"),
        ("a.js", "config[\"secret_token\"] = \"@@\"", "config[\"secret_token\"] = \"«secret»\""),
        ("a.py", "token = @@.attribute", "token = @@.attribute"),
        ("a.sh", "DB_PASSWORD=@@", "DB_PASSWORD=«secret»"),
        ("application.yml", "  db.password: @@ # old", "  db.password: «secret» # old"),
        ("settings.json", "{\"apiKey\": \"@@\"}", "{\"apiKey\": \"«secret»\"}"),
        ("Dockerfile", "ENV API_KEY=@@", "ENV API_KEY=«secret»"),
        ("a.toml", "url = \"postgres://u:@@@db.acme.io/x\"", "url = \"postgres://u:«secret:password»@db.acme.io/x\""),
        (
            "a.go",
            "type A struct { Password string `json:\"password\"` }",
            "type A struct { Password string `json:\"password\"` }",
        ),
        (
            "a.go",
            "type A struct { AuthToken string `json:\"auth_token,omitempty\" validate:\"min=8,max=72\"` }",
            "type A struct { AuthToken string `json:\"auth_token,omitempty\" validate:\"min=8,max=72\"` }",
        ),
        (
            "a.go",
            "type A struct { Password string `binding:\"required,min=8,max=72\"` }",
            "type A struct { Password string `binding:\"required,min=8,max=72\"` }",
        ),
        (
            "a.go",
            "type A struct { Password string `json:\"password\" envDefault:\"@@\"` }",
            "type A struct { Password string `json:\"password\" envDefault:\"«secret»\"` }",
        ),
        ("a.go", "type A struct { Password string `@@` }", "type A struct { Password string `«secret»` }"),
        ("a.go", "var c = A{Password: `a:\"@@`}", "var c = A{Password: `«secret»`}"),
        ("a.go", "var c = A{Password: `@@`}", "var c = A{Password: `«secret»`}"),
        ("a.ts", "const oauth2Token = 'oauth2-token'", "const oauth2Token = 'oauth2-token'"),
        ("a.yml", "db.oauth2_token: oauth2Token", "db.oauth2_token: oauth2Token"),
        ("a.yml", "oauth2_token: oauth2Token@@", "oauth2_token: «secret»"),
        ("a.md", "the id @@ is no secret", "the id @@ is no secret"),
        ("a.yml", "password: changeme", "password: changeme"),
    ] {
        let text = format!("one\n{}\nthree\n", line.replace("@@", RANDOM));
        let expected = format!("one\n{}\nthree\n", masked.replace("@@", RANDOM));
        assert_eq!(Mask::On.mask_text(Some(path), &text), expected, "{path}: {line}");
        assert_eq!(Mask::On.mask_text(Some(path), &expected), expected, "{path}: {line}");
    }
}

#[test]
fn private_keys_are_masked_and_nothing_behind_them() {
    let base64 = "MIICXAIBAAKBgQDNwqLEe9wgTXCbC7Zx4Vb8Nm3Lp6Rt1Gh5Jf0Yc2Ua7Se4Ti9W";
    let (begin, end) = (concat!("-----BEGIN RSA PRIV", "ATE KEY-----"), concat!("-----END RSA PRIV", "ATE KEY-----"));
    let mask = "«secret:private_key»";
    for (text, masked) in [
        (format!("{begin}\n{base64}\n{base64}\nabcd==\n{end}\nimport os here\n"), {
            format!("{begin}\n{mask}\n{mask}\n{mask}\n{end}\nimport os here\n")
        }),
        (format!("K = (\"{begin}\\n\"\n  \"{base64}\\n\" +\n  \"{end}\")\n"), {
            format!("K = (\"{begin}\\n\"\n  \"{mask}\\n\" +\n  \"{end}\")\n")
        }),
        (format!("{{\"k\": \"{begin}\\n{base64}\\n{base64}\\n{end}\\n\"}}"), {
            format!("{{\"k\": \"{begin}\\{mask}\\{mask}\\n{end}\\n\"}}")
        }),
        // The key is cut off before its end.
        (format!("{begin}\n{base64}\n{base64}\nlet unrelatedWord2WithMore = 1;\n\nfn f() {{}}\n"), {
            format!("{begin}\n{mask}\n{mask}\nlet {mask} = 1;\n\nfn f() {{}}\n")
        }),
        // Code about keys, without a key.
        (format!("const BEGIN = \"{begin}\";\nfn decodeTheBody(x) {{}}\nconst END = \"{end}\";\n"), {
            format!("const BEGIN = \"{begin}\";\nfn decodeTheBody(x) {{}}\nconst END = \"{end}\";\n")
        }),
    ] {
        for path in [None, Some("a.pem.txt"), Some("a.py"), Some("a.js")] {
            assert_eq!(Mask::On.mask_text(path, &text), masked, "{path:?}");
            assert_eq!(Mask::On.mask_text(path, &masked), masked, "{path:?}");
        }
    }
}

#[test]
fn examples_are_masked_and_hints_are_not() {
    let example = concat!("AKI", "AIOSFODNN7EXAMPLE");
    assert_eq!(Mask::On.mask_text(None, example), "«secret:aws_access_key»");
    for harmless in ["task-management", "the AKIA prefix", "sk-learn", "eyJ.x", "npm_config_registry"] {
        assert!(matches!(Mask::On.mask_text(None, harmless), Cow::Borrowed(_)), "{harmless}");
    }
}

#[test]
fn the_label_of_a_marker_is_the_most_exact_one() {
    let url = concat!("url = \"postgres://admin:hunter", "2x9Q@db.acme.io/x\"\n");
    for path in [None, Some("a.py")] {
        let masked = Mask::On.mask_text(path, url);
        assert!(masked.contains("«secret:") && !masked.contains("hunter2"), "{path:?}: {masked}");
    }
}
