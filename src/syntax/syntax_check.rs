//! Checks that a suggested change leaves a file that can still be parsed.

use super::language::Language;
use super::source::{Node, Parsers};

/// The syntax errors of a file before it is changed, so that several changes of it are checked with one parse each.
#[derive(Debug, Clone, Copy)]
pub struct SyntaxBaseline {
    /// The language, and the number of errors; `None` for an unknown language, and if the parser gives up.
    errors: Option<(Language, usize)>,
}

impl SyntaxBaseline {
    /// Counts the errors of a file.
    pub fn new(path: &str, text: &str) -> Self {
        let language = Language::detect(path, text.as_bytes());
        Self { errors: language.and_then(|language| Some((language, count_errors(path, language, text)?))) }
    }

    /// Returns whether the changed file has at most as many errors. Files with some errors are common, so the counts are
    /// compared instead of requiring none. Also returns `true` for an unknown language, and if the parser gives up on the
    /// file before the change.
    pub fn allows(&self, path: &str, after: &str) -> bool {
        self.errors
            .is_none_or(|(language, before)| count_errors(path, language, after).is_some_and(|errors| errors <= before))
    }
}

/// Returns the number of errors; `None` if the parser gives up.
fn count_errors(path: &str, language: Language, text: &str) -> Option<usize> {
    let source = Parsers::default().parse(path, language, text.as_bytes()).ok()?;
    Some(source.nodes.iter().filter(|node| Node::is_error(node)).count())
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
        assert_eq!(SyntaxBaseline::new(path, before).allows(path, after), expected);
    }
}
