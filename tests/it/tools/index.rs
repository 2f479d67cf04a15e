//! Tools give the same answers with an index as without one.

use std::ops::ControlFlow;

use revdeck::index::{Index, IndexCompleteness};
use revdeck::masking::Mask;
use serde_json::json;

use super::{AWS, answered, snapshot, toolbox};
use crate::env::TestEnvironment;

/// Creates code in several languages, names in comments and strings, and files that the index covers partly or not at
/// all.
fn project() -> TestEnvironment {
    let test = TestEnvironment::new();
    for (path, text) in [
        ("src/a.rs", "use b::parse_text;\n\nfn main() {\n    let parsed = parse_text(\"x\");\n    drop(parsed);\n}\n"),
        (
            "src/b.rs",
            "/// parse_text reads.\npub fn parse_text(text: &str) -> usize { text.len() }\nstruct Größe { parse_text: u8 }\n",
        ),
        ("src/only_words.rs", "// parse_text ( of old )\nfn other() {}\n"),
        ("src/jump.c", "int f(int x) {\nagain:\n    if (x) goto again;\n    return parse_text(x);\n}\n"),
        ("src/broken.py", "def ((( parse_text [[[ \n"),
        ("src/glued.py", "parse_text—x = 1\nx = '0xparse_text(1)'\n"),
        ("src/latin.rb", "def parse_text; 1; end\n"),
        ("lib/app.min.js", "function parse_text(){return 1}\n"),
        ("vendor/v.go", "package v\nfunc parse_text() {}\n"),
        ("docs/guide.md", "call parse_text(x) to parse\nGröße, größer (Größe)\n"),
        ("run", "#!/bin/sh\nparse_text() { :; }\nparse_text\n"),
        ("conf.toml", "name = \"parse_text\"\n"),
        (".env", "parse_text=1\n"),
        ("Cargo.lock", "name = \"parse_text\"\n"),
        ("long.txt", ""),
    ] {
        test.write(path, text);
    }
    test.write("src/secret.py", format!("parse_text = \"{AWS}\"\nkey = 1\n"));
    test.write("src/bytes.rb", b"# caf\xe9\nx = parse_text\xe9\ny = f parse_text (1)\n");
    test.write("long.txt", format!("{}_parse_text {} parse_text (\n", "x".repeat(300), "y".repeat(300)));
    test.commit("one");
    test.write("src/a.rs", "use b::parse_text;\n\nfn main() {\n    drop(parse_text(\"y\"));\n}\n");
    test
}

#[test]
fn an_index_changes_no_answer() {
    let test = project();
    let (repo, snapshot) = snapshot(&test, "worktree");
    let folder = test.home().join("index");
    let go_on = |_| ControlFlow::Continue(());
    let refreshed = Index::refresh(&folder, &repo, &snapshot.snapshot_commit, &go_on).expect("an index");
    assert_eq!(refreshed.index.completeness(), IndexCompleteness::Whole);
    let is_indexed = |path: &str| refreshed.index.file_at(path).is_some();
    assert_eq!(["src/a.rs", "docs/guide.md", ".env", "Cargo.lock"].map(is_indexed), [true, true, false, false]);
    let mut without = toolbox(&test, "worktree", Mask::On);
    let mut with = toolbox(&test, "worktree", Mask::On);
    with.set_index(refreshed.index);
    let names = ["parse_text", "again", "main", "text", "Größe", "x", "f", "key", "nowhere", "parse", "other", "AWS"];
    for name in names {
        let asked = json!({ "name": name });
        let (expected, found) =
            (answered(&mut without, "find_symbol", &asked), answered(&mut with, "find_symbol", &asked));
        assert_eq!(found, expected, "{name}");
    }
    let said = answered(&mut with, "find_symbol", &json!({ "name": "parse_text" }));
    assert!(said.contains("src/b.rs:2") && said.contains("src/jump.c:4") && said.contains("vendor/v.go:2"), "{said}");
    for query in [
        "parse_text",
        " parse_text(",
        "(parse_text(",
        "fn parse_text(text",
        " parse_text ",
        "goto again;",
        "(Größe)",
        "größer (",
        "call parse_text(x",
        "name = \"parse_text\"",
        "nowhere at all (",
        " parse_text (",
        "",
        AWS,
        "= \"AKI",
        "#!/bin/sh",
    ] {
        for more in [json!({}), json!({ "path": "src" }), json!({ "path": "*.rb" }), json!({ "regex": true })] {
            let mut asked = json!({ "query": query });
            asked.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let (expected, found) = (
                super::call(&mut without, "codebase_search", &asked),
                super::call(&mut with, "codebase_search", &asked),
            );
            assert_eq!(found, expected, "{asked}");
        }
    }
}
