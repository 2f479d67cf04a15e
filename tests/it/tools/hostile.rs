//! Paths that lead out of the repository, withheld files, strange names and contents, and arbitrary arguments.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use revdeck::context::tools::Tool;
use revdeck::domain::{ToolCall, ToolOutcome};
use revdeck::masking::Mask;
use rstest::rstest;
use serde_json::{Value, json};

use super::{GITHUB, answered, assert_sound, call, toolbox};
use crate::env::TestEnvironment;

/// Content that no answer may contain: it is outside the repository and in withheld files.
const OUTSIDE: &str = "the-content-that-must-not-be-told";

fn trap() -> TestEnvironment {
    let test = TestEnvironment::new();
    std::fs::write(test.repo().join("../outside.txt"), OUTSIDE).expect("a file");
    test.write("src/a.rs", "fn a() {}\n");
    test.write("inside.txt", "inside\n");
    test.write(".gitignore", "private/\n*.log\n!kept.log\n");
    for path in [".env", "conf/server.pem", "id_rsa", "credentials.json", "private/notes.txt", "run.log"] {
        test.write(path, OUTSIDE);
    }
    test.write("kept.log", "kept\n");
    for (name, target) in [
        ("out", "../outside.txt"),
        ("absolute", "/etc/passwd"),
        ("folder", ".."),
        ("near", "inside.txt"),
        ("to_src", "src"),
        ("dangling", "nowhere"),
        ("odd\x1b[2J", "x\n\x1b]0;title\x07"),
    ] {
        symlink(target, test.repo().join(name)).expect("a link");
    }
    test.git(&["add", "-A"]);
    test.git(&["add", "-f", "private/notes.txt", "run.log"]);
    test.git(&["commit", "-q", "-m", "one"]);
    test.write("src/a.rs", "fn a() { b() }\n");
    test
}

#[rstest]
#[case("../outside.txt")]
#[case("/etc/passwd")]
#[case("src/../../outside.txt")]
#[case("out")]
#[case("absolute")]
#[case("folder/outside.txt")]
#[case(".git/config")]
#[case(".env")]
#[case("./.env")]
#[case("conf/server.pem")]
#[case("id_rsa")]
#[case("credentials.json")]
#[case("private/notes.txt")]
#[case("run.log")]
#[case("C:\\Windows\\win.ini")]
#[case("~/.ssh/id_rsa")]
fn what_leads_out_or_is_secret_is_refused(#[case] path: &str) {
    let test = trap();
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    for (name, arguments) in [
        ("read_file", json!({"path": path})),
        ("show_diff", json!({"path": path})),
        ("static_findings", json!({"path": path})),
        ("codebase_search", json!({"query": "told", "path": path})),
    ] {
        let answer = call(tools, name, &arguments);
        assert_eq!(answer.outcome, ToolOutcome::Refused, "{name} {path}: {}", answer.text);
        assert!(!answer.text.contains(OUTSIDE) && answer.text.lines().count() == 1, "{}", answer.text);
    }
}

#[test]
fn nothing_that_is_kept_back_is_found_by_looking_for_it() {
    let test = trap();
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let text = answered(tools, "codebase_search", &json!({"query": "content-that"}));
    assert_eq!(
        text,
        "no line matches `content-that`.\nNot searched (they hold secrets, or .gitignore ignores them): 6 files.\n"
    );
    assert!(answered(tools, "read_file", &json!({"path": "kept.log"})).contains("kept"));
}

#[test]
fn links_are_told_and_not_followed() {
    let test = trap();
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    for (path, said) in [
        ("near", "`near` is a symbolic link to `inside.txt`; ask for `inside.txt` instead"),
        ("to_src/a.rs", "`to_src` is a symbolic link to `src`; ask for `src/a.rs` instead"),
        ("dangling", "`dangling` is a symbolic link to `nowhere`, which is not in the snapshot"),
    ] {
        assert_eq!(answered(tools, "read_file", &json!({"path": path})), said);
    }
    let answer = call(tools, "list_files", &json!({"path": "folder"}));
    assert_eq!(
        (answer.outcome, answer.text.as_str()),
        (ToolOutcome::Refused, "`folder` is a symbolic link to `..`, which leads out of the repository")
    );
    assert!(answered(tools, "list_files", &json!({})).contains("odd\\u{1b}[2J -> x\\u{a}\\u{1b}]0;title\\u{7}\n"));
    assert_eq!(call(tools, "read_file", &json!({"path": "odd\\u{1b}[2J"})).outcome, ToolOutcome::Answered);
}

#[test]
fn a_secret_file_under_review_is_not_shown_and_an_ignored_one_is() {
    let test = trap();
    test.write(".env", format!("A={OUTSIDE}2\n"));
    test.write("run.log", "changed on purpose\n");
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    assert_eq!(call(tools, "show_diff", &json!({"path": ".env"})).outcome, ToolOutcome::Refused);
    let all = answered(tools, "show_diff", &json!({}));
    assert!(all.contains("### .env\n`.env` is not shown: by its name it holds secrets\n"), "{all}");
    assert!(all.contains("    1 +changed on purpose"), "{all}");
    assert!(answered(tools, "read_file", &json!({"path": "run.log"})).contains("changed on purpose"));
    assert!(!all.contains(&format!("{OUTSIDE}2")), "{all}");
}

#[test]
fn strange_names_and_contents() {
    let test = TestEnvironment::new();
    test.write("empty", "");
    test.write("binary.bin", b"\x7fELF\0\0\0");
    test.write("latin1.txt", b"caf\xe9 ol\xe9\n");
    test.write("trojan.rs", "let a = 1; // \u{202e}x\u{2066}\n\x1b]52;c;aGk=\x07\rback\n");
    test.write("app/[id]/page.ts", "const here = 1;\n");
    let odd = test.repo().join(std::ffi::OsStr::from_bytes(b"caf\xe9.rs"));
    std::fs::write(odd, "fn latin() {}\n").expect("a file");
    test.write("new\nline.rs", "fn broken() {}\n");
    test.commit("all");
    test.write("other.txt", "x\n");
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    for (path, expected) in [
        ("empty", "empty is empty."),
        ("latin1.txt", "caf\u{fffd} ol\u{fffd}\n"),
        ("trojan.rs", "    1  let a = 1; // \\u{202e}x\\u{2066}\n    2  \\u{1b}]52;c;aGk=\\u{7}\\u{d}back\n"),
        ("caf\\xe9.rs", "caf\\xe9.rs, lines 1 to 1 of 1\n    1  fn latin() {}\n"),
        ("new\nline.rs", "new\\u{a}line.rs, lines 1 to 1 of 1\n"),
        ("new\\u{a}line.rs", "fn broken() {}\n"),
        ("app/[id]/page.ts", "const here = 1;\n"),
    ] {
        let text = answered(tools, "read_file", &json!({"path": path}));
        assert!(text.contains(expected), "{path}: {text}");
    }
    let binary = call(tools, "read_file", &json!({"path": "binary.bin"}));
    assert_eq!(
        (binary.outcome, binary.text.as_str()),
        (ToolOutcome::Failed, "`binary.bin` is binary (7 bytes) and not shown")
    );
    let found = answered(tools, "codebase_search", &json!({"query": "fn "}));
    assert!(found.contains("caf\\xe9.rs\n    1: fn latin") && found.contains("new\\u{a}line.rs\n    1: "), "{found}");
    let found = answered(tools, "codebase_search", &json!({"query": "here", "path": "app/[id]"}));
    assert!(found.starts_with("app/[id]/page.ts\n    1: "), "{found}");
    assert!(answered(tools, "find_symbol", &json!({"name": "latin"})).contains("caf\\xe9.rs:1 (function)"));
}

#[test]
fn submodules_and_trees_made_by_hand_hold_nothing() {
    let test = TestEnvironment::new();
    test.write("a.rs", "fn a() {}\n");
    let commit = test.commit("one");
    // Names that git itself would not write and that lead out of the repository, in a tree made by hand.
    let blob = test.git(&["hash-object", "-w", "a.rs"]).trim().to_owned();
    let mut tree = Vec::new();
    for name in ["..", ".git", "/etc", "a/b", "fine.rs"] {
        tree.extend(format!("100644 {name}\0").bytes());
        tree.extend((0..20).map(|at| u8::from_str_radix(&blob[at * 2..at * 2 + 2], 16).expect("hexadecimal")));
    }
    tree.extend(b"160000 sub\0");
    tree.extend((0..20).map(|at| u8::from_str_radix(&commit[at * 2..at * 2 + 2], 16).expect("hexadecimal")));
    test.write("tree", &tree);
    let tree = test.git(&["hash-object", "--literally", "-t", "tree", "-w", "tree"]).trim().to_owned();
    let made = test.git(&["commit-tree", &tree, "-p", &commit, "-m", "by hand"]).trim().to_owned();
    let tools = &mut toolbox(&test, &format!("commit:{made}"), Mask::On);
    let listed = answered(tools, "list_files", &json!({}));
    assert_eq!(listed, "the root: 2 files\nfine.rs (10 bytes)\nsub (submodule)\n");
    let answer = call(tools, "read_file", &json!({"path": "sub/x"}));
    assert_eq!(answer.text, "`sub` is a submodule; the snapshot does not hold its files");
    assert!(answered(tools, "codebase_search", &json!({"query": "fn a"})).starts_with("fine.rs\n"));
}

#[test]
fn calls_that_make_no_sense_are_answered_with_one_line() {
    let test = trap();
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    for (name, arguments, said) in [
        ("rm_rf", "{}", "there is no tool `rm_rf`; there are read_file, "),
        ("read_file\x1b[2J", "{}", "there is no tool `read_file\\u{1b}[2J`"),
        ("read_file", "{\"path\": \"a", "the arguments of read_file end too early"),
        ("read_file", "{\"file\": \"a\"}", "read_file has no argument `file`; it has path, start_line, end_line"),
        (
            "read_file",
            "{\"path\": \"inside.txt\", \"start_line\": \"1\"}",
            "`start_line` of read_file must be a whole number",
        ),
        ("find_symbol", "{\"name\": \"a b\"}", "`a b` is no name; codebase_search"),
        ("finish", "{\"summary\": \"x\"}", "finish is not answered here"),
    ] {
        let answer = tools.run(&ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() }, &|| false);
        assert_sound(&answer);
        assert_eq!(answer.outcome, ToolOutcome::Failed, "{name} {arguments}");
        assert!(
            answer.text.starts_with(said) && answer.text.lines().count() == 1,
            "{name} {arguments}: {}",
            answer.text
        );
    }
}

/// Generates arguments as a confused or hostile model might write them.
fn arguments() -> impl Strategy<Value = String> {
    let path = prop_oneof![
        4 => "(\\.\\./|/|\\./|src/|out|absolute|folder|near|to_src|\\.git|\\.env|id_rsa|a\\.rs|outside\\.txt|private|\\*|\\[|\\{|!|#){0,5}",
        1 => any::<String>(),
        1 => Just("x/".repeat(3_000)),
    ];
    let leaf = prop_oneof![
        4 => path.prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => "[a-z.*+?(){}|\\\\\\[\\]^$0-9,]{0,24}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("path"),
        Just("query"),
        Just("regex"),
        Just("page"),
        Just("name"),
        Just("depth"),
        Just("start_line"),
        Just("end_line"),
        Just("findings"),
        Just("else"),
    ];
    let object = proptest::collection::vec((name, leaf), 0..4).prop_map(|pairs| {
        Value::Object(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()).to_string()
    });
    prop_oneof![
        8 => object.clone(),
        1 => (object, any::<prop::sample::Index>()).prop_map(|(text, at)| {
            let end = text.floor_char_boundary(at.index(text.len() + 1));
            text[..end].to_owned()
        }),
        1 => any::<String>(),
    ]
}

#[test]
fn no_arguments_panic_or_reach_outside() {
    let test = trap();
    let tools = std::cell::RefCell::new(toolbox(&test, "worktree", Mask::On));
    let config = ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(tool in prop::sample::select(Tool::ALL), arguments in arguments())| {
        let call = ToolCall { id: "1".into(), name: tool.word().into(), arguments };
        let answer = tools.borrow_mut().run(&call, &|| false);
        assert_sound(&answer);
        prop_assert!(!answer.text.contains(OUTSIDE), "{call:?}: {}", answer.text);
        prop_assert!(!answer.text.contains("root:x:"), "{call:?}: {}", answer.text);
        prop_assert!(!answer.text.contains("fault of revdeck"), "{call:?}: {}", answer.text);
        let folder = test.repo().display().to_string();
        prop_assert!(!answer.text.contains(&folder), "{call:?}: {}", answer.text);
    });
}

/// Generates keys with a valid shape that were never in use.
fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "AKIA[A-Z2-7]{16}",
        "gh[pousr]_[A-Za-z0-9]{36}",
        "xox[bp]-[A-Za-z0-9-]{24}",
        "[sr]k_live_[A-Za-z0-9]{24}",
        "AIza[A-Za-z0-9_-]{35}",
        "npm_[A-Za-z0-9]{36}",
        "sk-ant-api03-[A-Za-z0-9_-]{48}",
        "eyJ[A-Za-z0-9_-]{16}\\.eyJ[A-Za-z0-9_-]{16}\\.[A-Za-z0-9_-]{24}",
    ]
}

#[test]
fn no_secret_survives_in_the_answer_of_any_tool() {
    let test = TestEnvironment::new();
    test.write("a.rs", "");
    test.commit("one");
    let config = ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(old in proptest::collection::vec(secret(), 2), new in proptest::collection::vec(secret(), 6))| {
        let code = |keys: &[String]| format!("fn needle() {{\n    let key = \"{}\";\n    // needle {}\n}}\n", keys[0], keys[1]);
        test.write("a.rs", code(&old));
        test.git(&["add", "-A"]);
        test.git(&["commit", "-q", "--allow-empty", "-m", "more"]);
        test.write("a.rs", code(&new));
        test.write("b.py", format!("# needle\nneedle = ['{}',\n  '{}']\n", new[2], new[3]));
        test.write("c.yml", format!("needle: {}\n", new[4]));
        test.write("d.md", format!("the needle is {}.\n", new[5]));
        let tools = &mut toolbox(&test, "worktree", Mask::On);
        for (name, arguments) in [
            ("read_file", json!({"path": "a.rs"})),
            ("read_file", json!({"path": "b.py"})),
            ("read_file", json!({"path": "c.yml"})),
            ("read_file", json!({"path": "d.md"})),
            ("codebase_search", json!({"query": "needle|key|'", "regex": true})),
            ("find_symbol", json!({"name": "needle"})),
            ("find_symbol", json!({"name": "key"})),
            ("show_diff", json!({})),
            ("static_findings", json!({})),
        ] {
            let answer = call(tools, name, &arguments);
            for secret in old.iter().chain(&new) {
                prop_assert!(!answer.text.contains(secret.as_str()), "{name}: {secret} in {}", answer.text);
            }
            if let ("read_file", [(path, lines)]) = (name, answer.shown.as_slice()) {
                let text = std::fs::read_to_string(test.repo().join(path)).expect("a file");
                prop_assert_eq!(lines.end as usize, text.lines().count());
            }
        }
    });
}

/// Creates a repository that contains a key.
fn with_key(key: &str) -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("a.py", format!("# A robot's.\nTOKEN = \"{key}\"  # of the robot\nb = 2\n"));
    test
}

#[test]
fn no_question_about_a_secret_is_answered() {
    let test = with_key(GITHUB);
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let (right, wrong) = (&GITHUB[..6], format!("{}9r", &GITHUB[..4]));
    for masked in [
        "secret:github",
        "(?i)SECRET",
        "«",
        "\\w+»\"",
        "= \"\\B",
        "= \"$",
        "^\"",
        "= \"[^a-z]",
        "\"«s",
        "TOKEN = \"[^g]",
    ] {
        for guess in [right, &wrong] {
            let text =
                answered(tools, "codebase_search", &json!({"query": format!("{masked}|{guess}"), "regex": true}));
            assert!(text.starts_with("no line matches"), "{masked} {guess}: {text}");
        }
    }
    let line = "a.py\n    2: TOKEN = \"«secret:github_token»\"  # of the robot\n";
    for query in ["TOKEN = \"", "TOKEN.*", "\\bTOKEN.*", "^TOKEN", "\"  #", "\\bof\\b", "of .*robot$", "TOKEN\\s*="] {
        assert_eq!(answered(tools, "codebase_search", &json!({"query": query, "regex": true})), line, "{query}");
    }
    assert_eq!(answered(tools, "codebase_search", &json!({"query": "TOKEN = \""})), line);
}

#[test]
fn what_is_found_does_not_depend_on_the_secrets() {
    let other = format!("{}{}", &GITHUB[..4], GITHUB[4..].chars().rev().collect::<String>());
    let (one, two) = (with_key(GITHUB), with_key(&other));
    let tools = std::cell::RefCell::new((toolbox(&one, "worktree", Mask::On), toolbox(&two, "worktree", Mask::On)));
    let owned = |pieces: &[&str]| -> Vec<String> { pieces.iter().map(|piece| (*piece).to_owned()).collect() };
    let of_markers = ["secret", "github_", "«", "»", "»\"", "= \"«", "= \"\\B", "\\W\\w+:", "= \"$", "^\"", "= \"[^g]"];
    let of_secrets = [&GITHUB[..6], &other[..6], &GITHUB[20..23], &other[20..23], "gh"];
    let of_code = [
        "TOKEN", "\"", " = ", "  #", "robot", "^", "$", "\\b", "\\B", ".", ".*", "[a-z]", "[^a]", "\\w+", "(", ")",
        "?", "(?i)",
    ];
    let any = [&of_markers[..], &of_secrets, &of_code].concat();
    let alternative = prop_oneof![
        prop::sample::select(owned(&of_markers)),
        prop::sample::select(owned(&of_secrets)),
        proptest::collection::vec(prop::sample::select(owned(&any)), 1..5).prop_map(|pieces| pieces.concat()),
    ];
    let pattern = proptest::collection::vec(alternative, 1..4).prop_map(|alternatives| alternatives.join("|"));
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(pattern in pattern, is_regex in prop::sample::select(vec![true, true, true, false]))| {
        let (one, two) = &mut *tools.borrow_mut();
        let asked = json!({"query": pattern, "regex": is_regex});
        prop_assert_eq!(call(one, "codebase_search", &asked), call(two, "codebase_search", &asked), "{}", asked);
    });
}

#[test]
fn of_files_that_do_not_parse_no_name_is_told_that_only_a_secret_has() {
    let test = TestEnvironment::new();
    test.write("hostile.java", format!("// needle {GITHUB}\n{}", "a =>\n".repeat(5_000)));
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let note = "Too complex to parse: 1 more file with this text; codebase_search finds it there.\n";
    for (name, is_told) in [("needle", true), (&GITHUB[..6], false), (GITHUB, false), ("secret", false)] {
        let text = answered(tools, "find_symbol", &json!({"name": name}));
        assert_eq!(text.contains(note), is_told, "{name}: {text}");
        assert!(text.contains("0 definitions, 0 references"), "{text}");
    }
}
