//! Code in fewer tokens: without comments, without white space that means nothing, without bodies.
//!
//! By syntax tree. Lines are emptied, never taken away: line numbers stay true, and a run of empty lines is a token or
//! two. Invariants: as many lines as before; what parsed without errors still does; identifiers are never renamed; a body
//! that is left out is told from an empty one; what has no tree is given back as it is.

use std::collections::HashSet;

use super::shelf::{Reader, Writer};
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

/// What may stand where something was taken away.
const INSTEAD: [&str; 6] = ["", " ", " /* left out */", " : left out;", "...  # left out", "# left out"];

/// What can be taken away from a file's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cuts {
    comments: Vec<Cut>,
    bodies: Vec<Body>,
    /// Rows, from 0, of texts in quotes that have several: the white space around them is a part of them.
    quoted: Vec<(u32, u32)>,
    /// As much may be taken away that the text, which parses without errors, still does: nothing where it does not. A grammar
    /// may see more in white space and comments than anybody expects.
    most: Option<Strength>,
}

/// The body of a function, on which lines from 1 that one is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Body {
    start_line: u32,
    end_line: u32,
    cut: Cut,
}

/// A stretch of the text, and what of [`INSTEAD`] stands there; line ends stay.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cut {
    start: u32,
    end: u32,
    instead: u32,
}

impl Cut {
    fn new(start: usize, end: usize, instead: &str) -> Self {
        let instead = INSTEAD.iter().position(|known| *known == instead).unwrap_or_default();
        Self { start: start as u32, end: end as u32, instead: instead as u32 }
    }
}

impl Cuts {
    /// Nothing of a text that has no syntax tree, or one with errors; no bodies where nobody asks for them.
    pub fn of(parsers: &mut Parsers, path: &str, text: &str, with_bodies: bool) -> Self {
        let Some(language) = Language::detect(path, text.as_bytes()) else { return Self::default() };
        let mut cuts = match parsers.parse(path, language, text.as_bytes()) {
            Ok(source) if !has_errors(&source) => Self {
                comments: comments(&source),
                bodies: if with_bodies { bodies(&source) } else { Vec::new() },
                quoted: quoted(&source),
                ..Self::default()
            },
            _ => return Self::default(),
        };
        let steps: &[Strength] = if with_bodies { &[Strength::Medium, Strength::Strong] } else { &[Strength::Medium] };
        let is_sound = |strength: &&Strength| {
            let least = cuts.without_them(text, language, **strength, &|_, _| false);
            still_parses(parsers, path, language, &least)
        };
        cuts.most = steps.iter().take_while(is_sound).last().copied();
        cuts
    }

    /// The text of the file with less in it, or as it was where it would not parse. `is_needed` says of a range of lines,
    /// from 1, whether its functions keep their bodies.
    pub fn taken_from(
        &self,
        (path, text): (&str, &str),
        strength: Strength,
        is_needed: &dyn Fn(u32, u32) -> bool,
    ) -> String {
        let language = Language::detect(path, text.as_bytes()).filter(|_| self.most >= Some(strength));
        language.map_or_else(|| text.to_owned(), |language| self.without_them(text, language, strength, is_needed))
    }

    fn without_them(
        &self,
        text: &str,
        language: Language,
        strength: Strength,
        is_needed: &dyn Fn(u32, u32) -> bool,
    ) -> String {
        let mut cuts: Vec<&Cut> = self.comments.iter().collect();
        if strength == Strength::Strong {
            let bodies = self.bodies.iter().filter(|body| !is_needed(body.start_line, body.end_line));
            cuts.extend(bodies.map(|body| &body.cut));
        }
        let shorter = without(text, cuts);
        if strength == Strength::Light { shorter } else { self.tightened(&shorter, language) }
    }

    /// Without white space at the ends of lines, and at their beginnings where nothing depends on it. Lines that begin or
    /// end in a text in quotes stay as they are.
    fn tightened(&self, text: &str, language: Language) -> String {
        let has_meaning = matches!(language, Language::Python | Language::Bash | Language::Ruby | Language::Php);
        let mut quoted = self.quoted.iter().peekable();
        let mut shorter = String::with_capacity(text.len());
        for (line, row) in text.split_inclusive('\n').zip(0..) {
            while quoted.next_if(|(_, end)| *end < row).is_some() {}
            let is_quoted = quoted.peek().is_some_and(|(start, _)| *start <= row);
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

    pub fn write(&self, writer: &mut Writer) {
        let comment = |cut: &Cut| [cut.start, cut.end, cut.instead];
        let body =
            |Body { start_line, end_line, cut }: &Body| [*start_line, *end_line, cut.start, cut.end, cut.instead];
        writer.words(&self.comments.iter().flat_map(comment).collect::<Vec<_>>());
        writer.words(&self.bodies.iter().flat_map(body).collect::<Vec<_>>());
        writer.words(&self.quoted.iter().flat_map(|(start, end)| [*start, *end]).collect::<Vec<_>>());
        writer.text(self.most.map_or("", Strength::word));
    }

    /// Nothing where it was not written by [`Self::write`].
    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let cut = |[start, end, instead]: [u32; 3]| {
            (start <= end && (instead as usize) < INSTEAD.len()).then_some(Cut { start, end, instead })
        };
        let comments = reader.words()?.as_chunks().0.iter().map(|words| cut(*words)).collect::<Option<_>>()?;
        let body = |[start_line, end_line, start, end, instead]: [u32; 5]| {
            Some(Body { start_line, end_line, cut: cut([start, end, instead])? })
        };
        let bodies = reader.words()?.as_chunks().0.iter().map(|words| body(*words)).collect::<Option<_>>()?;
        let quoted = reader.words()?.as_chunks().0.iter().map(|[start, end]| (*start, *end)).collect();
        let most = Some(reader.text()?).filter(|word| !word.is_empty()).map(str::parse).transpose().ok()?;
        Some(Self { comments, bodies, quoted, most })
    }
}

fn has_errors(source: &Source<'_>) -> bool {
    source.nodes.iter().any(Node::is_error)
}

fn still_parses(parsers: &mut Parsers, path: &str, language: Language, text: &str) -> bool {
    parsers.parse(path, language, text.as_bytes()).is_ok_and(|source| !has_errors(&source))
}

fn without(text: &str, mut cuts: Vec<&Cut>) -> String {
    cuts.sort_by_key(|cut| (cut.start, std::cmp::Reverse(cut.end)));
    let mut shorter = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        let (start, end) = (cut.start as usize, cut.end as usize);
        // One within another is gone with it.
        if start < at {
            continue;
        }
        let (Some(kept), Some(gone)) = (text.get(at..start), text.get(start..end)) else { continue };
        shorter.push_str(kept);
        shorter.push_str(INSTEAD[cut.instead as usize]);
        shorter.extend(gone.chars().filter(|c| *c == '\n'));
        at = end;
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
        cuts.push(Cut::new(start, end, if is_between { " " } else { "" }));
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

fn bodies(source: &Source<'_>) -> Vec<Body> {
    let kinds = KindSet::new(
        source.language,
        &["block", "statement_block", "compound_statement", "function_body", "body_statement", "constructor_body"],
    );
    let facts = Facts::of(source);
    let mut bodies = Vec::new();
    for function in &facts.functions {
        let Some(body) =
            source.children(function.node).map(|at| source.nodes[at]).find(|node| kinds.contains(node.kind))
        else {
            continue;
        };
        let text = source.text(&body);
        let (start, end) = (body.start as usize, body.end as usize);
        let cut = match (text.strip_prefix('{'), text.ends_with('}')) {
            (Some(_), true) if text.len() > 2 => {
                let instead = if source.language == Language::Bash { " : left out;" } else { " /* left out */" };
                Cut::new(start + 1, end - 1, instead)
            }
            _ if source.language == Language::Python => Cut::new(start, end, "...  # left out"),
            // On one line, what follows would become part of the comment.
            _ if source.language == Language::Ruby && body.end_row < source.nodes[function.node].end_row => {
                Cut::new(start, end, "# left out")
            }
            _ => continue,
        };
        bodies.push(Body { start_line: function.line_start, end_line: function.line_end, cut });
    }
    bodies
}

/// The rows of leaves that have several, in order: only leaves can hold white space that is part of the program.
fn quoted(source: &Source<'_>) -> Vec<(u32, u32)> {
    let leaves = source.nodes.iter().enumerate().filter(|(at, node)| node.end_index as usize == at + 1);
    let mut quoted: Vec<(u32, u32)> =
        leaves.filter(|(_, node)| node.row != node.end_row).map(|(_, node)| (node.row, node.end_row)).collect();
    quoted.sort_unstable();
    quoted
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn compressed(path: &str, text: &str, strength: Strength) -> String {
        let mut parsers = Parsers::default();
        let cuts = Cuts::of(&mut parsers, path, text, strength == Strength::Strong);
        let mut writer = Writer::default();
        cuts.write(&mut writer);
        assert_eq!(Cuts::read(&mut Reader(&writer.finish())).as_ref(), Some(&cuts));
        cuts.taken_from((path, text), strength, &|_, _| false)
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
    fn where_there_was_no_tree_nothing_is_taken_away_that_parses_by_chance() {
        let text = "class A:\n    x = 1\n";
        for strength in Strength::ALL {
            assert_eq!(Cuts::default().taken_from(("a.py", text), *strength, &|_, _| false), text, "{strength:?}");
        }
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
