//! Compresses code to fewer tokens: removes comments, insignificant white space and function bodies.
//!
//! It works on the syntax tree of one chunk at a time. Removed lines become empty lines, so that line numbers stay
//! true; a run of empty lines costs one or two tokens.
//!
//! Invariants:
//! - The number of lines does not change.
//! - Only code that parses without errors is compressed, and the result parses without errors too.
//! - Identifiers are never renamed.
//! - A removed body is marked, so that it differs from an empty body.

use std::collections::HashSet;

use crate::domain::word_enum;
use crate::syntax::conventions::conventions;
use crate::syntax::definition::{PerLanguage, kind_groups};
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::source::{KindSet, Node, NodeIndex, ParsedFile, Parsers};

use serde::{Deserialize, Serialize};

word_enum!(
    /// Strength of compression. Each step includes the steps before it.
    Strength {
        /// Removes comments that are neither documentation nor notes such as `TODO`.
        Light = "light",
        /// Removes white space at the ends of lines, and indentation if it has no meaning.
        Medium = "medium",
        /// Removes the bodies of functions. Meant for code that is hardly relevant.
        Strong = "strong",
    }
);

/// Markers of comments that describe open work. Such comments stay.
const NOTE_MARKERS: [&str; 4] = ["TODO", "FIXME", "XXX", "HACK"];

/// Compresses a chunk of code, as far as the result still parses. `None` if nothing can be removed. `language` is the
/// language of the chunk's file.
pub fn compress_chunk(parsers: &mut Parsers, language: Language, chunk: &str, strength: Strength) -> Option<String> {
    // A PHP chunk with `?>` may begin outside of the code, and the chunk alone does not show this.
    if language == Language::Php && chunk.contains("?>") {
        return None;
    }
    syntax_wrappers(language)
        .find_map(|(before, after)| {
            let text = format!("{before}{chunk}{after}");
            let cuts = ChunkCuts::find(&parse_without_errors(parsers, language, &text)?, strength);
            let steps = Strength::ALL.iter().rev().filter(|step| **step <= strength);
            // A grammar may give meaning to white space and comments unexpectedly. The strongest step that still parses
            // is used.
            let shorter = steps
                .map(|step| cuts.apply_to(&text, *step))
                .find(|shorter| parse_without_errors(parsers, language, shorter).is_some())?;
            Some(shorter.strip_prefix(before)?.strip_suffix(after)?.to_owned())
        })
        .filter(|shorter| shorter != chunk)
}

/// Returns the wrappers (text before and after, as lines of their own) in which a chunk of the language may parse.
fn syntax_wrappers(language: Language) -> impl Iterator<Item = (&'static str, &'static str)> {
    let wrappers = &conventions(language).wrappers;
    let alone = wrappers.is_empty().then_some(("", ""));
    alone.into_iter().chain(wrappers.iter().map(|[before, after]| (&**before, &**after)))
}

/// Parses a text. `None` if the tree has an error.
fn parse_without_errors<'a>(parsers: &mut Parsers, language: Language, text: &'a str) -> Option<ParsedFile<'a>> {
    parsers.parse("", language, text.as_bytes()).ok().filter(|source| !source.nodes.iter().any(Node::is_error))
}

/// Parts of a text that can be removed.
struct ChunkCuts {
    language: Language,
    comments: Vec<TextCut>,
    bodies: Vec<TextCut>,
    /// Ranges of rows (0-based, inclusive) of string literals that span several lines. Their white space is part of the
    /// program.
    multiline_literals: Vec<(u32, u32)>,
}

/// Byte range to remove, and the text that replaces it. Line ends inside the range stay.
struct TextCut {
    start: usize,
    end: usize,
    replacement: &'static str,
}

impl ChunkCuts {
    fn find(source: &ParsedFile<'_>, strength: Strength) -> Self {
        let kinds = CompressibleKinds::for_language(source.language);
        Self {
            language: source.language,
            comments: find_comment_cuts(source, kinds),
            bodies: if strength == Strength::Strong { find_body_cuts(source, kinds) } else { Vec::new() },
            multiline_literals: find_multiline_literals(source, kinds),
        }
    }

    fn apply_to(&self, text: &str, strength: Strength) -> String {
        let bodies = self.bodies.iter().filter(|_| strength == Strength::Strong);
        let shorter = remove_cuts(text, self.comments.iter().chain(bodies).collect());
        if strength == Strength::Light { shorter } else { self.trim_whitespace(&shorter) }
    }

    /// Removes white space at the ends of lines, and at their beginnings if indentation has no meaning in the language.
    /// Lines that begin or end inside a multi-line string literal stay as they are.
    fn trim_whitespace(&self, text: &str) -> String {
        let has_meaning = conventions(self.language).meaningful_indentation;
        let mut quoted = self.multiline_literals.iter().peekable();
        let mut shorter = String::with_capacity(text.len());
        for (line, row) in text.split_inclusive('\n').zip(0..) {
            while quoted.next_if(|(_, end)| *end < row).is_some() {}
            let is_quoted = quoted.peek().is_some_and(|(start, _)| *start <= row);
            let end = if line.ends_with('\n') { "\n" } else { "" };
            // After a backslash, a blank at the end of the line has a meaning.
            let is_escaped = line.trim_end().ends_with('\\');
            let kept = match (is_quoted || is_escaped, has_meaning) {
                (true, _) => line.strip_suffix('\n').unwrap_or(line),
                (false, true) => line.trim_end(),
                (false, false) => line.trim(),
            };
            shorter.push_str(kept);
            shorter.push_str(end);
        }
        shorter
    }
}

/// Node kinds of a language that compression looks for.
struct CompressibleKinds {
    comments: KindSet,
    declarations: KindSet,
    bodies: KindSet,
}

impl CompressibleKinds {
    fn for_language(language: Language) -> &'static Self {
        static ALL: PerLanguage<CompressibleKinds> = PerLanguage::new(CompressibleKinds::new);
        ALL.get(language)
    }

    fn new(language: Language) -> Self {
        let groups = kind_groups(language);
        Self {
            comments: KindSet::new(language, &groups.comments),
            declarations: KindSet::new(language, &groups.documented),
            bodies: KindSet::new(language, &groups.bodies),
        }
    }
}

/// Removes the cuts from a text. Line ends inside a cut stay.
fn remove_cuts(text: &str, mut cuts: Vec<&TextCut>) -> String {
    cuts.sort_by_key(|cut| (cut.start, std::cmp::Reverse(cut.end)));
    let mut shorter = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        // A cut inside another cut is removed together with it.
        if cut.start < at {
            continue;
        }
        let (Some(kept), Some(gone)) = (text.get(at..cut.start), text.get(cut.start..cut.end)) else { continue };
        shorter.push_str(kept);
        shorter.push_str(cut.replacement);
        shorter.extend(gone.chars().filter(|c| *c == '\n'));
        at = cut.end;
    }
    shorter.push_str(text.get(at..).unwrap_or_default());
    shorter
}

/// Finds the comments that can be removed.
fn find_comment_cuts(source: &ParsedFile<'_>, kinds: &CompressibleKinds) -> Vec<TextCut> {
    let comments: Vec<&Node> = source.nodes.iter().filter(|node| kinds.comments.contains(node.kind)).collect();
    let documenting = find_doc_comments(source, kinds, &comments);
    let mut cuts = Vec::new();
    for node in comments {
        let text = source.text(node);
        let is_note = NOTE_MARKERS.iter().any(|note| text.contains(note));
        if is_documentation(text) || documenting.contains(&node.start) || is_note || is_directive(text) {
            continue;
        }
        // The node of a line comment may include its line end.
        let (start, end) = (node.start as usize, node.start as usize + text.trim_end_matches(['\n', '\r']).len());
        // If code follows a multi-line comment on its last line, the code may belong to the line where the comment
        // begins.
        let mut rest = source.text.get(end..).unwrap_or_default().iter().take_while(|byte| **byte != b'\n');
        if source.text.get(start..end).is_some_and(|text| text.contains(&b'\n'))
            && rest.any(|byte| !byte.is_ascii_whitespace())
        {
            continue;
        }
        let touches = |neighbour: Option<&u8>| neighbour.is_some_and(|byte| !byte.is_ascii_whitespace());
        let before = start.checked_sub(1).and_then(|before| source.text.get(before));
        let is_between = touches(before) && touches(source.text.get(end));
        cuts.push(TextCut { start, end, replacement: if is_between { " " } else { "" } });
    }
    cuts
}

/// Returns the start bytes of comments that stand alone on the lines directly above a declaration, in languages whose documentation
/// comments look like ordinary comments.
fn find_doc_comments(source: &ParsedFile<'_>, kinds: &CompressibleKinds, comments: &[&Node]) -> HashSet<u32> {
    let mut rows: HashSet<u32> =
        source.nodes.iter().filter(|node| kinds.declarations.contains(node.kind)).map(|node| node.row).collect();
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

/// Returns true for documentation comments: `///`, `/** */`, `//!`, `##`.
fn is_documentation(text: &str) -> bool {
    const DOC_MARKERS: [&str; 5] = ["///", "//!", "/**", "/*!", "##"];
    DOC_MARKERS.iter().any(|mark| text.starts_with(mark))
}

/// Returns true for comments that tools read: `#!/bin/sh`, `//go:build`, `# noqa`, `// eslint-disable`.
fn is_directive(text: &str) -> bool {
    const DIRECTIVE_MARKERS: [&str; 21] = [
        "#!",
        "//go:",
        "+build",
        "nolint",
        "NOLINT",
        "noqa",
        "pragma",
        "pylint:",
        "mypy:",
        "fmt:",
        "type: ignore",
        "coding:",
        "eslint",
        "prettier-",
        "@ts-",
        "__PURE__",
        "istanbul",
        "rubocop:",
        "frozen_string_literal:",
        "shellcheck",
        "clang-format",
    ];
    DIRECTIVE_MARKERS.iter().any(|mark| text.contains(mark))
}

/// Minimum size of a removed body, in bytes. A shorter body has no more tokens than the mark that replaces it.
const MIN_BODY_BYTES: usize = 48;

/// Text that stands for a removed body between its braces, in languages without another one.
const BODY_MARK_IN_BRACES: &str = " /* left out */";

/// Returns true if a body contains more than comments and Python docstrings.
fn body_has_code(source: &ParsedFile<'_>, body: NodeIndex, kinds: &CompressibleKinds) -> bool {
    let may_be_text = conventions(source.language).body_may_be_text;
    let is_text = |node: &Node| may_be_text && source.text_prefix(node, 1).starts_with(['"', '\'']);
    let mut inside = source.children(body).map(|at| &source.nodes[at]);
    inside.any(|node| node.is_named() && !kinds.comments.contains(node.kind) && !is_text(node))
}

/// Finds the function bodies that can be removed.
fn find_body_cuts(source: &ParsedFile<'_>, kinds: &CompressibleKinds) -> Vec<TextCut> {
    let facts = FileFacts::from_parsed(source);
    let conventions = conventions(source.language);
    let mut bodies = Vec::new();
    for function in &facts.functions {
        let mut children = source.children(function.node);
        let Some(at) = children.find(|at| kinds.bodies.contains(source.nodes[*at].kind)) else { continue };
        let body = source.nodes[at];
        let text = source.text(&body);
        if text.len() < MIN_BODY_BYTES || !body_has_code(source, at, kinds) {
            continue;
        }
        let (start, end) = (body.start as usize, body.end as usize);
        if text.starts_with('{') && text.ends_with('}') {
            let replacement = conventions.body_mark_in_braces.as_deref().unwrap_or(BODY_MARK_IN_BRACES);
            bodies.push(TextCut { start: start + 1, end: end - 1, replacement });
        } else if let Some(replacement) = conventions.body_mark.as_deref() {
            // A body on one line stays if the code after it would become part of the mark.
            if !conventions.body_mark_ends_line || body.end_row < source.nodes[function.node].end_row {
                bodies.push(TextCut { start, end, replacement });
            }
        }
    }
    bodies
}

/// Returns the rows (0-based, inclusive) of leaf nodes that span several lines, in order. Only leaves can hold white
/// space that is part of the program. Comments are excluded.
fn find_multiline_literals(source: &ParsedFile<'_>, kinds: &CompressibleKinds) -> Vec<(u32, u32)> {
    let leaves = source.nodes.iter().enumerate().filter(|(at, node)| node.end_index as usize == at + 1);
    let is_comment =
        |node: &Node| [node, &source.nodes[node.parent as usize]].iter().any(|node| kinds.comments.contains(node.kind));
    let quoted = leaves.filter(|(_, node)| node.row != node.end_row && !is_comment(node));
    let mut quoted: Vec<(u32, u32)> = quoted.map(|(_, node)| (node.row, node.end_row)).collect();
    quoted.sort_unstable();
    quoted
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn shorter(path: &str, text: &str, strength: Strength) -> String {
        let language = Language::detect(path, text.as_bytes()).expect("a known language");
        compress_chunk(&mut Parsers::default(), language, text, strength).unwrap_or_else(|| text.to_owned())
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
        "fn f() -> u8 {\n    call(first_argument, second_argument, third_argument);\n    1\n}\n",
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
        "def f(x):\n    y = call(first_argument, second_argument, third_argument)\n    return y\n\nz = 1\n",
        "def f(x):\n    ...  # left out\n\n\nz = 1\n"
    )]
    #[case::bash_strong(
        "a.sh",
        Strength::Strong,
        "f() {\n  call first_argument second_argument third_argument fourth\n}\nh() { call first_argument second_argument third_argument fourth; }\n",
        "f() { : left out;\n\n}\nh() { : left out;}\n"
    )]
    #[case::go_strong(
        "a.go",
        Strength::Strong,
        "package a\n\nfunc F() {}\n\nfunc G() { call(first_argument, second_argument, third_argument) }\n",
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
        "class A\n  def f(x)\n    call(first_argument, second_argument, third_argument)\n    x\n  end\n\n  def h; call(first_argument, second_argument, third_argument); end\nend\n",
        "class A\n  def f(x)\n    # left out\n\n  end\n\n  def h; call(first_argument, second_argument, third_argument); end\nend\n"
    )]
    #[case::java_method(
        "A.java",
        Strength::Medium,
        "  @A int f() {\n    // why\n    g();\n  }\n",
        "@A int f() {\n\ng();\n}\n"
    )]
    #[case::typescript_method(
        "a.ts",
        Strength::Light,
        "  f(x: A): B {\n    // why\n  }\n",
        "  f(x: A): B {\n    \n  }\n"
    )]
    #[case::cpp_method(
        "a.cc",
        Strength::Strong,
        "  int f() const { return call(first_argument, second_argument, third_argument); }\n",
        "int f() const { /* left out */}\n"
    )]
    #[case::csharp_property("A.cs", Strength::Light, "  int X { get; } // x\n", "  int X { get; } \n")]
    #[case::python_method(
        "a.py",
        Strength::Light,
        "    def f(self):\n        g()  # x\n",
        "    def f(self):\n        g()  \n"
    )]
    #[case::php_method(
        "a.php",
        Strength::Light,
        "  public function f() { // x\n  }\n",
        "  public function f() { \n  }\n"
    )]
    #[case::php_file("a.php", Strength::Light, "<?php\nf(); // x\n", "<?php\nf(); \n")]
    #[case::php_text("a.php", Strength::Strong, "<p>\n  # x // x\n</p>\n", "<p>\n  # x // x\n</p>\n")]
    #[case::php_around_code(
        "a.php",
        Strength::Light,
        "function f() {} ?>\n# Heading\n",
        "function f() {} ?>\n# Heading\n"
    )]
    #[case::short_bodies_stay(
        "a.rs",
        Strength::Strong,
        "fn f() -> u8 {\n    1\n}\nfn g() {\n}\n",
        "fn f() -> u8 {\n1\n}\nfn g() {\n}\n"
    )]
    #[case::a_body_of_comments_is_empty(
        "a.rs",
        Strength::Strong,
        "fn f() {\n    // Nothing is to be done here, for reasons that nobody knows.\n}\n",
        "fn f() {\n\n}\n"
    )]
    #[case::a_body_that_says_what_it_would_do(
        "a.py",
        Strength::Strong,
        "def f():\n    \"\"\"Nothing is to be done here, for reasons that nobody knows.\"\"\"\n",
        "def f():\n    \"\"\"Nothing is to be done here, for reasons that nobody knows.\"\"\"\n"
    )]
    #[case::cgo(
        "a.go",
        Strength::Light,
        "package a\n\n// int walk(int a);\nimport \"C\"\n",
        "package a\n\n// int walk(int a);\nimport \"C\"\n"
    )]
    #[case::code_behind_a_comment_of_two_lines(
        "a.c",
        Strength::Light,
        "#define X /* a\n b */ f();\n",
        "#define X /* a\n b */ f();\n"
    )]
    #[case::an_escaped_blank("a.sh", Strength::Medium, "f a\\ \ng  \n", "f a\\ \ng\n")]
    #[case::documentation_is_indented_by_nothing(
        "a.rs",
        Strength::Medium,
        "mod a {\n    /// Doc.\n    #[b]\n    fn f() {}\n}\n",
        "mod a {\n/// Doc.\n#[b]\nfn f() {}\n}\n"
    )]
    #[case::broken("a.rs", Strength::Strong, "fn f( {\n // x\n", "fn f( {\n // x\n")]
    fn less_is_left(#[case] path: &str, #[case] strength: Strength, #[case] text: &str, #[case] expected: &str) {
        assert_eq!(shorter(path, text, strength), expected);
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
                let shorter = shorter(path, text, *strength);
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
