//! Code in fewer tokens: without comments, without white space that means nothing, without bodies.
//!
//! By syntax tree. Lines are emptied, never taken away: line numbers stay true, and a run of empty lines is a token or
//! two. Invariants: as many lines as before; what parsed without errors still does; identifiers are never renamed; a body
//! that is left out is told from an empty one; what has no tree is given back as it is.

use std::collections::HashSet;

use crate::domain::word_enum;
use crate::provider::builtin::facts::Facts;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::{KindSet, Node, Parsers, Source};

use serde::{Deserialize, Serialize};

word_enum!(
    /// How much is taken away; each step does what those before it do.
    Strength {
        /// Comments that are neither documentation nor a note of something to do.
        Light = "light",
        /// White space at the ends of lines; indentation where it has no meaning.
        Medium = "medium",
        /// Bodies of functions that are hardly relevant.
        Strong = "strong",
    }
);

/// What somebody left to be done stays.
const NOTES: [&str; 4] = ["TODO", "FIXME", "XXX", "HACK"];

/// A file's text with less in it. `is_needed` says of a range of lines, from 1, whether its functions keep their bodies.
pub fn compress(
    parsers: &mut Parsers,
    path: &str,
    text: &str,
    strength: Strength,
    is_needed: &dyn Fn(u32, u32) -> bool,
) -> String {
    let Some(language) = Language::detect(path, text.as_bytes()) else { return text.to_owned() };
    let Ok(source) = parsers.parse(path, language, text.as_bytes()) else { return text.to_owned() };
    let had_errors = source.nodes.iter().any(Node::is_error);
    if had_errors {
        return text.to_owned();
    }
    let mut cuts = comments(&source);
    if strength == Strength::Strong {
        cuts.extend(bodies(&source, is_needed));
    }
    let mut shorter = without(text, cuts);
    if strength != Strength::Light {
        shorter = tightened(&source, &shorter);
    }
    // A grammar may see more in white space and comments than anybody expects: then the text stays as it was.
    let still_parses =
        parsers.parse(path, language, shorter.as_bytes()).is_ok_and(|source| !source.nodes.iter().any(Node::is_error));
    if still_parses { shorter } else { text.to_owned() }
}

/// A stretch of the text, and what stands there instead; line ends stay.
struct Cut {
    start: usize,
    end: usize,
    instead: &'static str,
}

fn without(text: &str, mut cuts: Vec<Cut>) -> String {
    cuts.sort_by_key(|cut| (cut.start, std::cmp::Reverse(cut.end)));
    let mut shorter = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        // One within another is gone with it.
        if cut.start < at {
            continue;
        }
        let (Some(kept), Some(gone)) = (text.get(at..cut.start), text.get(cut.start..cut.end)) else { continue };
        shorter.push_str(kept);
        shorter.push_str(cut.instead);
        shorter.extend(gone.chars().filter(|c| *c == '\n'));
        at = cut.end;
    }
    shorter.push_str(text.get(at..).unwrap_or_default());
    shorter
}

fn comments(source: &Source<'_>) -> Vec<Cut> {
    let kinds = KindSet::new(source.language, &["comment", "line_comment", "block_comment"]);
    let comments: Vec<&Node> = source.nodes.iter().filter(|node| kinds.contains(node.kind)).collect();
    let documenting = documenting(source, &comments);
    let mut cuts = Vec::new();
    for node in comments {
        let text = source.text(node);
        let is_note = NOTES.iter().any(|note| text.contains(note));
        if is_documentation(text) || documenting.contains(&node.start) || is_note || is_directive(text) {
            continue;
        }
        // A line comment's node may hold its line end.
        let (start, end) = (node.start as usize, node.start as usize + text.trim_end_matches(['\n', '\r']).len());
        let touches = |neighbour: Option<&u8>| neighbour.is_some_and(|byte| !byte.is_ascii_whitespace());
        let before = start.checked_sub(1).and_then(|before| source.text.get(before));
        let is_between = touches(before) && touches(source.text.get(end));
        cuts.push(Cut { start, end, instead: if is_between { " " } else { "" } });
    }
    cuts
}

/// What declares something, in languages whose documentation looks like any comment.
fn declarations(language: Language) -> &'static [&'static str] {
    match language {
        Language::Go => &[
            "package_clause",
            "function_declaration",
            "method_declaration",
            "type_declaration",
            "const_declaration",
            "var_declaration",
            "type_spec",
            "const_spec",
            "var_spec",
            "field_declaration",
            "method_elem",
        ],
        Language::Ruby => &["method", "singleton_method", "class", "module", "assignment"],
        Language::Bash => &["function_definition"],
        Language::C => &[
            "function_definition",
            "declaration",
            "type_definition",
            "struct_specifier",
            "union_specifier",
            "enum_specifier",
            "field_declaration",
            "enumerator",
            "preproc_def",
            "preproc_function_def",
        ],
        _ => &[],
    }
}

/// Where the comments begin that stand on lines of their own right above a declaration, in those languages.
fn documenting(source: &Source<'_>, comments: &[&Node]) -> HashSet<u32> {
    let kinds = KindSet::new(source.language, declarations(source.language));
    let mut rows: HashSet<u32> =
        source.nodes.iter().filter(|node| kinds.contains(node.kind)).map(|node| node.row).collect();
    let is_alone = |node: &Node| {
        let before = source.text.get(..node.start as usize).unwrap_or_default();
        before.iter().rev().take_while(|byte| **byte != b'\n').all(u8::is_ascii_whitespace)
    };
    let mut found = HashSet::new();
    for node in comments.iter().rev().filter(|node| is_alone(node)) {
        let end_row = node.row + source.text(node).trim_end().matches('\n').count() as u32;
        if rows.contains(&(end_row + 1)) {
            rows.insert(node.row);
            found.insert(node.start);
        }
    }
    found
}

/// `///`, `/** */`, `//!`.
fn is_documentation(text: &str) -> bool {
    const MARKS: [&str; 5] = ["///", "//!", "/**", "/*!", "##"];
    MARKS.iter().any(|mark| text.starts_with(mark))
}

/// What tools obey: `#!/bin/sh`, `//go:build`, `# noqa`, `// eslint-disable`.
fn is_directive(text: &str) -> bool {
    const MARKS: [&str; 9] =
        ["#!", "//go:", "noqa", "eslint", "prettier-", "@ts-", "type: ignore", "rubocop:", "coding:"];
    MARKS.iter().any(|mark| text.contains(mark))
}

fn bodies(source: &Source<'_>, is_needed: &dyn Fn(u32, u32) -> bool) -> Vec<Cut> {
    let kinds = KindSet::new(
        source.language,
        &["block", "statement_block", "compound_statement", "function_body", "body_statement", "constructor_body"],
    );
    let facts = Facts::of(source);
    let mut cuts = Vec::new();
    for function in facts.functions.iter().filter(|function| !is_needed(function.line_start, function.line_end)) {
        let Some(body) =
            source.children(function.node).map(|at| source.nodes[at]).find(|node| kinds.contains(node.kind))
        else {
            continue;
        };
        let text = source.text(&body);
        match (text.strip_prefix('{'), text.ends_with('}')) {
            (Some(_), true) if text.len() > 2 => {
                let instead = if source.language == Language::Bash { " : left out;" } else { " /* left out */" };
                cuts.push(Cut { start: body.start as usize + 1, end: body.end as usize - 1, instead });
            }
            _ if source.language == Language::Python => {
                let instead = "...  # left out";
                cuts.push(Cut { start: body.start as usize, end: body.end as usize, instead });
            }
            // On one line, what follows would become part of the comment.
            _ if source.language == Language::Ruby && body.end_row < source.nodes[function.node].end_row => {
                let instead = "# left out";
                cuts.push(Cut { start: body.start as usize, end: body.end as usize, instead });
            }
            _ => {}
        }
    }
    cuts
}

/// Without white space at the ends of lines, and at their beginnings where nothing depends on it. Lines that begin or
/// end in a text in quotes stay as they are.
fn tightened(source: &Source<'_>, text: &str) -> String {
    let has_meaning = matches!(source.language, Language::Python | Language::Bash | Language::Ruby | Language::Php);
    let mut is_quoted = vec![false; text.lines().count() + 1];
    // Only leaves can hold white space that is part of the program; rows are those of the text before, and the same.
    for (at, node) in source.nodes.iter().enumerate() {
        let is_leaf = node.end_index as usize == at + 1;
        if is_leaf && node.row != node.end_row {
            for row in node.row..=node.end_row {
                if let Some(quoted) = is_quoted.get_mut(row as usize) {
                    *quoted = true;
                }
            }
        }
    }
    let mut shorter = String::with_capacity(text.len());
    for (line, is_quoted) in text.split_inclusive('\n').zip(is_quoted) {
        let end = if line.ends_with('\n') { "\n" } else { "" };
        let kept = match (is_quoted, has_meaning) {
            (true, _) => line.strip_suffix('\n').unwrap_or(line),
            (false, true) => line.trim_end(),
            (false, false) => line.trim(),
        };
        shorter.push_str(kept);
        shorter.push_str(end);
    }
    shorter
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn compressed(path: &str, text: &str, strength: Strength) -> String {
        compress(&mut Parsers::default(), path, text, strength, &|_, _| false)
    }

    #[rstest]
    #[case::rust_light(
        "a.rs",
        Strength::Light,
        "/// Doc.\nfn f() {\n    // why\n    g(); // x\n    // TODO: y\n}\n",
        "/// Doc.\nfn f() {\n    \n    g(); \n    // TODO: y\n}\n"
    )]
    #[case::rust_medium(
        "a.rs",
        Strength::Medium,
        "fn f() {\n    // why\n    g();  \n\n    let s = \"a\n      b\";\n}\n",
        "fn f() {\n\ng();\n\n    let s = \"a\n      b\";\n}\n"
    )]
    #[case::rust_strong(
        "a.rs",
        Strength::Strong,
        "fn f() -> u8 {\n    g();\n    1\n}\n",
        "fn f() -> u8 { /* left out */\n\n\n}\n"
    )]
    #[case::python_keeps_indentation(
        "a.py",
        Strength::Medium,
        "def f():\n    # why\n    return 1  \n",
        "def f():\n\n    return 1\n"
    )]
    #[case::python_strong(
        "a.py",
        Strength::Strong,
        "def f(x):\n    y = x\n    return y\n\nz = 1\n",
        "def f(x):\n    ...  # left out\n\n\nz = 1\n"
    )]
    #[case::bash_strong(
        "a.sh",
        Strength::Strong,
        "f() {\n  g\n}\nh() { i; }\n",
        "f() { : left out;\n\n}\nh() { : left out;}\n"
    )]
    #[case::go_strong(
        "a.go",
        Strength::Strong,
        "package a\n\nfunc F() {}\n\nfunc G() { h(1) }\n",
        "package a\n\nfunc F() {}\n\nfunc G() { /* left out */}\n"
    )]
    #[case::words_stay_apart(
        "a.c",
        Strength::Light,
        "int f(void) {\n  return/* c */x;\n}\n",
        "int f(void) {\n  return x;\n}\n"
    )]
    #[case::ruby_documentation(
        "a.rb",
        Strength::Light,
        "# Licence.\n\n# Class.\nclass A\n  # old = 1\n\n  # Doc,\n  # more.\n  def f\n    # why\n    g\n  end\nend\n",
        "\n\n# Class.\nclass A\n  \n\n  # Doc,\n  # more.\n  def f\n    \n    g\n  end\nend\n"
    )]
    #[case::go_documentation(
        "a.go",
        Strength::Light,
        "// Licence.\n\n// Doc.\npackage a\n\n// f()\n\nvar x = 1 // x\n// Y.\nvar y = 2\n",
        "\n\n// Doc.\npackage a\n\n\n\nvar x = 1 \n// Y.\nvar y = 2\n"
    )]
    #[case::ruby_strong(
        "a.rb",
        Strength::Strong,
        "class A\n  def f(x)\n    g\n    x\n  end\n\n  def h; i; end\nend\n",
        "class A\n  def f(x)\n    # left out\n\n  end\n\n  def h; i; end\nend\n"
    )]
    #[case::unknown("a.xyz", Strength::Strong, "# what\n  ever\n", "# what\n  ever\n")]
    #[case::broken("a.rs", Strength::Strong, "fn f( {\n // x\n", "fn f( {\n // x\n")]
    fn less_is_left(#[case] path: &str, #[case] strength: Strength, #[case] text: &str, #[case] expected: &str) {
        assert_eq!(compressed(path, text, strength), expected);
    }

    #[test]
    fn lines_stay_where_they_are_and_the_result_parses() {
        let samples = [
            ("a.rs", include_str!("compress.rs")),
            ("a.go", "package a\n\n// Doc.\nfunc F() int {\n\t// why\n\treturn 1\n}\n"),
            ("a.ts", "class A {\n  // why\n  f(): string {\n    return `a\n  b`; /* x */\n  }\n}\n"),
            ("a.java", "class A {\n  /** Doc. */\n  int f() {\n    return 1; // x\n  }\n}\n"),
            ("a.c", "#define X 1\nint f(void) {\n  /* why */\n  return X;\n}\n"),
        ];
        for (path, text) in samples {
            for strength in Strength::ALL {
                let shorter = compressed(path, text, *strength);
                assert_eq!(shorter.matches('\n').count(), text.matches('\n').count(), "{path} {strength}");
                assert!(shorter.len() < text.len(), "{path} {strength}");
                let language = Language::detect(path, shorter.as_bytes()).expect("a known language");
                let mut parsers = Parsers::default();
                let source = parsers.parse(path, language, shorter.as_bytes()).expect("a tree");
                assert!(!source.nodes.iter().any(Node::is_error), "{path} {strength}:\n{shorter}");
            }
        }
    }
}
