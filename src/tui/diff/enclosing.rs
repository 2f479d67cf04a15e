//! Finds the declaration or heading that encloses each line of a text, for the separators between changes.
//!
//! Like git's function context it goes by the look of lines, so that it works in every language, also in code that does
//! not parse: a declaration encloses the lines below it that are indented more.

use super::model::LineTable;

/// Words that declare something.
const DECLARING_WORDS: [&str; 24] = [
    "fn",
    "def",
    "class",
    "struct",
    "enum",
    "trait",
    "impl",
    "mod",
    "module",
    "interface",
    "func",
    "function",
    "fun",
    "object",
    "namespace",
    "union",
    "record",
    "protocol",
    "extension",
    "extend",
    "macro_rules",
    "sub",
    "defmodule",
    "defp",
];
/// Words that begin a statement and no declaration.
const STATEMENT_WORDS: [&str; 28] = [
    "if", "else", "for", "foreach", "while", "switch", "match", "catch", "try", "do", "return", "with", "elif",
    "unless", "until", "case", "when", "loop", "await", "throw", "new", "assert", "lock", "using", "let", "yield",
    "unsafe", "raise",
];
/// Longest line that is looked at, in bytes.
const MAX_LINE_BYTES: usize = 300;

/// Declarations and headings of a text by the lines that they enclose.
#[derive(Debug, Default)]
pub struct EnclosingLines {
    /// For each line the number of the declaration above it; 0 for none.
    above: Vec<u32>,
}

/// Sort of text, by the name of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextSort {
    Code,
    Markdown,
    /// Sections in brackets.
    Sections,
    /// Keys that enclose what is indented below them.
    Keys,
    /// Text without declarations.
    Prose,
}

impl TextSort {
    fn from_path(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension.to_ascii_lowercase().as_str() {
            "md" | "markdown" | "mdx" => Self::Markdown,
            "toml" | "ini" | "cfg" | "conf" | "editorconfig" | "service" => Self::Sections,
            "yml" | "yaml" => Self::Keys,
            "txt" | "json" | "csv" | "lock" | "log" | "rst" | "adoc" | "html" | "xml" | "svg" | "css" => Self::Prose,
            _ => Self::Code,
        }
    }
}

impl EnclosingLines {
    /// Finds the declarations of a text.
    pub fn new(path: &str, lines: &LineTable) -> Self {
        let all = lines.lines(1, u32::MAX);
        let above = match TextSort::from_path(path) {
            TextSort::Code => find_in_code(all, is_declaration),
            TextSort::Keys => find_in_code(all, |line| line.ends_with(':') && !line.starts_with(['-', '#'])),
            TextSort::Markdown => find_headings(all, is_heading),
            TextSort::Sections => find_headings(all, |line| line.starts_with('[') && line.trim_end().ends_with(']')),
            TextSort::Prose => Vec::new(),
        };
        Self { above }
    }

    /// Returns the declaration that encloses a line (1-based) and stands above line `shown`.
    pub fn find(&self, line: u32, shown: u32) -> Option<u32> {
        let mut at = line;
        loop {
            at = self.above.get(at.checked_sub(1)? as usize).copied().filter(|above| *above > 0)?;
            if at < shown {
                return Some(at);
            }
        }
    }
}

/// Takes the last line above that is a heading.
fn find_headings<'a>(lines: impl Iterator<Item = &'a str>, is_heading: impl Fn(&str) -> bool) -> Vec<u32> {
    let mut last = 0;
    let mut is_fenced = false;
    let mut above = Vec::new();
    for (line, number) in lines.zip(1..) {
        above.push(last);
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && is_heading(line) {
            last = number;
        }
    }
    above
}

fn is_heading(line: &str) -> bool {
    let text = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - text.len())) && text.starts_with(' ')
}

/// Takes the nearest declaration above that is indented less.
fn find_in_code<'a>(lines: impl Iterator<Item = &'a str>, is_declaration: impl Fn(&str) -> bool) -> Vec<u32> {
    let mut open: Vec<(usize, u32)> = Vec::new();
    let mut above = Vec::new();
    for (line, number) in lines.zip(1..) {
        let code = line.trim();
        let indent = line.len() - line.trim_start().len();
        if !code.is_empty() && !is_outside_of_blocks(code, indent) {
            // What ends or continues a declaration stands below it as its code does.
            let ends_above = if is_continuation(code) { indent + 1 } else { indent };
            open.truncate(open.partition_point(|(known, _)| *known < ends_above));
        }
        above.push(open.last().map_or(0, |(_, number)| *number));
        if matches!(code, "}" | "};" | "end") {
            open.truncate(open.partition_point(|(known, _)| *known < indent));
        }
        if line.len() <= MAX_LINE_BYTES && is_declaration(code) {
            open.push((indent, number));
        }
    }
    above
}

/// Returns true for lines at the left edge that say nothing about the blocks around them: labels and the preprocessor.
fn is_outside_of_blocks(code: &str, indent: usize) -> bool {
    let is_label = || code.strip_suffix(':').is_some_and(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'));
    let is_directive = || code.strip_prefix('#').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    indent == 0 && (is_label() || is_directive())
}

fn is_continuation(code: &str) -> bool {
    code.starts_with(['{', '}', ')', ']']) || first_word(code) == "where" || first_word(code) == "end"
}

fn first_word(code: &str) -> &str {
    let end = code.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(code.len());
    &code[..end]
}

/// Returns true for a line that looks like a declaration in a language of the usual sort.
fn is_declaration(code: &str) -> bool {
    let first = first_word(code);
    if first.is_empty() || STATEMENT_WORDS.contains(&first) || code.ends_with(';') {
        return false;
    }
    // What stands in front of parameters, body and value declares; a statement calls, or assigns.
    let end = code.find(['(', '{', '=', '"', '\'', ':', '<']).unwrap_or(code.len());
    let head = &code[..end];
    let words = || head.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    if words().any(|word| DECLARING_WORDS.contains(&word)) || (first == "pub" && code.contains(" fn ")) {
        return true;
    }
    if matches!(first, "const" | "var" | "export")
        && code.ends_with('{')
        && (code.contains("=>") || code.contains("function"))
    {
        return true;
    }
    // `int total(int a)` and `total(a) {`: a name with parameters, and in front of it only names.
    let Some((before, rest)) = code.split_once('(') else { return false };
    let is_named = before.chars().all(|c| c.is_alphanumeric() || "_*&:<>[]~, @".contains(c));
    let names = before.split_whitespace().count();
    let is_open = rest.matches(')').count() <= rest.matches('(').count();
    is_named && (names >= 2 && (is_open || !rest.ends_with(',')) || names == 1 && code.ends_with('{') && !is_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the declaration that encloses the line with `<-`, and stands above it.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &str) {
        let table = LineTable::new(text.to_owned());
        let line = (1..=table.count()).find(|line| table.line(*line).is_some_and(|text| text.contains("<-")));
        let line = line.expect("a marked line");
        let found = EnclosingLines::new(path, &table).find(line, line);
        assert_eq!(found.and_then(|at| table.line(at)).map_or("", str::trim), expected, "{text}");
    }

    #[test]
    fn the_declaration_that_encloses_a_line_is_found_by_indentation() {
        for (path, text, expected) in [
            ("a.rs", "impl A {\n    fn one() {\n        if x {\n            y(); // <-\n", "fn one() {"),
            ("a.rs", "impl A {\n    fn one() {\n    }\n\n    fn two() {} // <-\n", "impl A {"),
            ("a.rs", "fn one() {\n}\n\nfn two() {} // <-\n", ""),
            ("a.rs", "fn one(\n    a: u8,\n) -> u8\nwhere\n    u8: X,\n{\n    a // <-\n", "fn one("),
            ("a.rs", "    pub(crate) async fn one() {\n        a // <-\n", "pub(crate) async fn one() {"),
            ("a.rs", "fn one() {\n    a();\n} // <-\n", "fn one() {"),
            ("a.rs", "fn one() {\n}\n    a(); // <-\n", ""),
            ("a.rs", "fn one() {\n    let f = |x| {\n        a(x) // <-\n", "fn one() {"),
            ("a.py", "class A:\n    def one(self):\n        x = 1\n\n        y = 2 # <-\n", "def one(self):"),
            ("a.py", "def one():\n    try:\n        x() # <-\n", "def one():"),
            ("a.py", "def one():\n    pass\n\nx = 1 # <-\n", ""),
            ("a.c", "static int\none(int a,\n    int b)\n{\n    x(); // <-\n", ""),
            ("a.c", "static int one(int a,\n               int b)\n{\n    x(); // <-\n", "static int one(int a,"),
            ("a.c", "int one(int a)\n{\n    x();\n#ifdef Y\n    y();\nout:\n    z(); // <-\n", "int one(int a)"),
            ("a.c", "int one(int a);\n  x(); // <-\n", ""),
            ("A.java", "class A {\n  void one(int a) throws E {\n    b(); // <-\n", "void one(int a) throws E {"),
            ("a.ts", "export class A {\n  one(a) {\n    b(); // <-\n", "one(a) {"),
            ("a.ts", "export const one = async (a) => {\n  b(); // <-\n", "export const one = async (a) => {"),
            ("a.ts", "function one() {\n  call(a, () => {\n    b(); // <-\n", "function one() {"),
            ("a.go", "func (a *A) One() error {\n    if err != nil { // <-\n", "func (a *A) One() error {"),
            ("a.rb", "class A\n  def one\n    b # <-\n", "def one"),
            ("a.md", "# One\n\n```\n# no\n```\n## Two\n\ntext <-\n", "## Two"),
            ("Cargo.toml", "[a]\nb = 1\n[c.d]\ne = 2 # <-\n", "[c.d]"),
            ("a.yml", "jobs:\n  build:\n    - run: x # <-\n", "build:"),
            ("a.txt", "fn one() {\n    a <-\n", ""),
        ] {
            check(path, text, expected);
        }
        let table = LineTable::new("impl A {\n    fn one() {\n        a\n    }\n}\n".to_owned());
        let enclosing = EnclosingLines::new("a.rs", &table);
        assert_eq!(enclosing.find(3, 3), Some(2));
        assert_eq!(enclosing.find(3, 2), Some(1), "what is shown already needs no label");
        assert_eq!((enclosing.find(1, 1), enclosing.find(0, 0), enclosing.find(99, 99)), (None, None, None));
    }
}
