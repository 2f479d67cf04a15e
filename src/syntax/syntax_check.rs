//! Checks that a suggested change leaves a file that can still be parsed.

use super::language::Language;
use super::source::{Node, Parsers};

/// Returns whether `after` has at most as many syntax errors as `before`. Files with some errors are common, so the
/// counts are compared instead of requiring none. Also returns `true` for an unknown language, and if the parser gives
/// up on `before`.
pub fn has_no_new_syntax_errors(path: &str, before: &str, after: &str) -> bool {
    let Some(language) = Language::detect(path, before.as_bytes()) else { return true };
    let mut parsers = Parsers::default();
    let mut errors = |text: &str| {
        let source = parsers.parse(path, language, text.as_bytes()).ok()?;
        Some(source.nodes.iter().filter(|node| Node::is_error(node)).count())
    };
    match (errors(before), errors(after)) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(before), Some(after)) => after <= before,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::still_whole("a.rs", "fn f() { g(); }\n", "fn f() { h(); }\n", true)]
    #[case::a_bracket_too_few("a.rs", "fn f() { g(); }\n", "fn f() { if x { g(); }\n", false)]
    #[case::broken_before_and_after("a.rs", "fn f( { g(); }\n", "fn f( { h(); }\n", true)]
    #[case::put_right("a.py", "def f(:\n    pass\n", "def f():\n    pass\n", true)]
    #[case::indentation("a.py", "def f():\n    pass\n", "def f():\npass)\n", false)]
    #[case::a_missing_sign("a.c", "int x = 1;\n", "int x = 1\n", false)]
    #[case::emptied("a.go", "package a\n", "", true)]
    #[case::not_ours("a.txt", "x", "}}}}", true)]
    #[case::known_by_its_first_line("run", "#!/bin/sh\nif a; then b; fi\n", "#!/bin/sh\nif a; then b;\n", false)]
    fn changes(#[case] path: &str, #[case] before: &str, #[case] after: &str, #[case] expected: bool) {
        assert_eq!(has_no_new_syntax_errors(path, before, after), expected);
    }
}
