//! Parses texts on a separate thread, with limits on parser steps and time.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tree_sitter::{InputEdit, ParseOptions, Parser, Point, Tree, TreeCursor};

use super::parser_thread::{ParseReply, ParserThread};
use super::{Node, ParsedFile, preflight};
use crate::syntax::ParseFailure;
use crate::syntax::language::Language;
use crate::syntax::parse_log::LoggedParse;
use crate::syntax::work_budget::thread_time;

/// Parsers that are kept between files: creating them per file costs more than parsing a small file.
#[derive(Default)]
pub struct Parsers {
    worker: Option<ParserThread>,
    has_failed: bool,
}

impl Parsers {
    /// Parses a file. Trees with syntax errors are accepted.
    ///
    /// # Errors
    ///
    /// Returns [`ParseFailure::TooComplex`] if the text exceeds a cap of [`super::preflight`], or the parser the steps or
    /// the time for a text of this size, which happens only for texts made for it. Returns
    /// [`ParseFailure::OutOfMemory`] if the text ended an earlier process, and [`ParseFailure::Failed`] if the parser
    /// thread cannot start or has died.
    pub fn parse<'a>(
        &mut self,
        path: &'a str,
        language: Language,
        text: &'a [u8],
    ) -> Result<ParsedFile<'a>, ParseFailure> {
        let [nodes] = self.parse_versions(path, language, [text])?;
        Ok(ParsedFile::new(path, language, text, nodes))
    }

    /// Parses a file before and after an edit. The second parse reuses the first tree for the unchanged text; its
    /// result equals that of [`Parsers::parse`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Parsers::parse`], for either side.
    pub fn parse_pair<'a>(
        &mut self,
        language: Language,
        before: &'a [u8],
        after: &'a [u8],
    ) -> Result<[ParsedFile<'a>; 2], ParseFailure> {
        let [old, new] = self.parse_versions("", language, [before, after])?;
        Ok([ParsedFile::new("", language, before, old), ParsedFile::new("", language, after, new)])
    }

    /// Returns whether a parse has failed with [`ParseFailure::Failed`] since the last call. Such a failure is not
    /// caused by the text, so a later parse may succeed.
    pub fn take_failure(&mut self) -> bool {
        std::mem::take(&mut self.has_failed)
    }

    /// Creates parsers whose thread is dead.
    #[cfg(test)]
    pub fn with_dead_thread() -> Self {
        Self { worker: Some(ParserThread::dead()), ..Self::default() }
    }

    /// Parses the versions of a file and returns the nodes of each.
    fn parse_versions<const N: usize>(
        &mut self,
        path: &str,
        language: Language,
        versions: [&[u8]; N],
    ) -> Result<[Vec<Node>; N], ParseFailure> {
        let is_within_caps = |text: &&[u8]| {
            preflight::is_within_caps(text, language.chain_operators())
                && preflight::has_few_lone_stars(text, language.lone_star_operators())
                && preflight::has_few_leading_operators(text, language.leading_operators())
        };
        if !versions.iter().all(is_within_caps) {
            return Err(ParseFailure::TooComplex);
        }
        let logged = LoggedParse::begin(path, &versions)?;
        let Ok(worker) = self.worker.take().map_or_else(ParserThread::spawn, Ok) else {
            self.has_failed = true;
            return Err(ParseFailure::Failed);
        };
        worker.send(language, versions.map(Arc::from).into());
        let mut found = [const { Vec::new() }; N];
        for (number, (nodes, text)) in found.iter_mut().zip(versions).enumerate() {
            // A later version may be parsed twice: with the tree of the earlier one, and from scratch.
            let parses = if number == 0 { 1 } else { 2 };
            match worker.wait_for_reply(ParseBudget::for_bytes(text.len()).time * parses) {
                Some(ParseReply::Nodes(read)) => *nodes = read,
                Some(ParseReply::TooComplex) => {
                    self.worker = Some(worker);
                    return Err(ParseFailure::TooComplex);
                }
                None => {
                    worker.leave(logged);
                    return Err(ParseFailure::TooComplex);
                }
                Some(ParseReply::Gone) => {
                    self.has_failed = true;
                    return Err(ParseFailure::Failed);
                }
            }
        }
        self.worker = Some(worker);
        Ok(found)
    }
}

/// Processor time that any text may take, however short it is. A build without optimisation takes many times as long.
const MIN_PARSE_TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 5_000 } else { 300 });

/// Limits for parsing one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParseBudget {
    /// Chunks of text read plus progress callbacks, one per hundred parser operations.
    pub steps: u64,
    /// Processor time from the start of the parse, checked at a step once [`TIME_PER_LOOK`] has gone by. An
    /// operation over a long ambiguity takes milliseconds, so a text made for it may stay within its steps for hours.
    pub time: Duration,
}

impl ParseBudget {
    /// Returns the limits for a text of `bytes` bytes.
    ///
    /// Measured on 58,000 files of all languages (among them efcore, symfony, rails, folly, playwright, hugo and
    /// redis): the most expensive file takes a third of the steps. Files of 100 KB and more take up to 0.02 steps per
    /// byte, the densest tables of numbers 0.1. A parse takes 0.1 to 0.5 µs per byte, so a machine may be ten times slower before the time matters.
    pub fn for_bytes(bytes: usize) -> Self {
        let bytes = bytes as u64;
        let time = MIN_PARSE_TIME + Duration::from_micros(5 * bytes);
        Self { steps: 1_000 + bytes / 8, time }
    }
}

/// Size of a chunk that the parser reads at once, in bytes. A scanner that looks ahead over the same text repeatedly
/// reads the same chunks repeatedly, and each read counts as a step.
const READ_CHUNK_BYTES: usize = 4096;

/// Maximum length of a character in UTF-8, in bytes.
const MAX_CHARACTER_BYTES: usize = 4;
/// Bytes in place of a character whose text is not read any more.
const FILLER: &[u8] = b"    ";

/// Time between two looks at the processor time, which is a call of the system. Progress callbacks come every 20 µs in
/// ordinary texts and every second in hostile ones, so their number tells little about the time.
const TIME_PER_LOOK: Duration = Duration::from_millis(1);

/// Counts the steps of a parse and looks at its time.
struct ParseWatch {
    allowed: ParseBudget,
    steps: Cell<u64>,
    started: Duration,
    last_look: Cell<Instant>,
    /// A limit was reached.
    ended: Cell<bool>,
}

impl ParseWatch {
    fn begin(allowed: ParseBudget) -> Self {
        let (steps, last_look) = (Cell::new(0), Cell::new(Instant::now()));
        Self { allowed, steps, started: thread_time(), last_look, ended: Cell::new(false) }
    }

    /// Counts a step. Returns `true` from the first step on that is over a limit.
    fn is_over(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        let is_over = self.ended.get() || self.steps.get() > self.allowed.steps || self.is_late();
        self.ended.set(is_over);
        is_over
    }

    fn is_late(&self) -> bool {
        let now = Instant::now();
        // The processor time grows no faster than the time.
        if now.duration_since(self.last_look.get()) < TIME_PER_LOOK {
            return false;
        }
        self.last_look.set(now);
        thread_time().saturating_sub(self.started) > self.allowed.time
    }
}

/// A parser, and for each kind of its grammar if it is named.
pub(super) struct LanguageParser {
    parser: Parser,
    named: Box<[bool]>,
}

impl LanguageParser {
    pub fn new(language: Language) -> Self {
        let mut parser = Parser::new();
        let grammar = language.grammar();
        // Cannot fail: the grammars are compiled in and have a version that the library supports; a test parses with
        // each.
        let _ = parser.set_language(&grammar);
        let named = (0..grammar.node_kind_count()).map(|kind| grammar.node_kind_is_named(kind as u16)).collect();
        Self { parser, named }
    }

    /// Parses a text within the limits for its size, and reuses the tree of the text `before` if there is one. Error
    /// recovery may depend on earlier input, so a tree with syntax errors is never reused, and a reuse that gives one
    /// is repeated from scratch.
    pub fn parse_version(&mut self, text: &[u8], before: Option<(&[u8], Tree)>, allowed: ParseBudget) -> Option<Tree> {
        if let Some((old, mut tree)) = before.filter(|(_, tree)| !tree.root_node().has_error()) {
            tree.edit(&compute_edit(old, text));
            let again = self.parse_tree(text, Some(&tree), allowed).filter(|tree| !tree.root_node().has_error());
            if again.is_some() {
                return again;
            }
        }
        self.parse_tree(text, None, allowed)
    }

    pub fn flatten_tree(&self, tree: &Tree) -> Vec<Node> {
        flatten(&mut tree.walk(), &self.named, tree.root_node().descendant_count())
    }

    fn parse_tree(&mut self, text: &[u8], old: Option<&Tree>, allowed: ParseBudget) -> Option<Tree> {
        let watch = ParseWatch::begin(allowed);
        let chunk_end = Cell::new(0);
        // A lexer that looks far ahead at every byte reads without end between two progress callbacks. The end of the
        // text is all that it can be told, except where it reads the last character of a chunk again: there the library
        // takes the first byte without looking whether there is one. The tree is dropped, so any bytes will do.
        let mut read = |at: usize, _| -> &[u8] {
            let is_last_character = at < chunk_end.get() && at + MAX_CHARACTER_BYTES > chunk_end.get();
            let chunk = match watch.is_over() {
                false => text.get(at..(at + READ_CHUNK_BYTES).min(text.len())).unwrap_or_default(),
                true if is_last_character => FILLER,
                true => &[],
            };
            chunk_end.set(at + chunk.len());
            chunk
        };
        let mut look = |_: &tree_sitter::ParseState| match watch.is_over() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let options = ParseOptions::new().progress_callback(&mut look);
        let tree = self.parser.parse_with_options(&mut read, old, Some(options)).filter(|_| !watch.ended.get());
        if tree.is_none() {
            // Without a reset the parser would resume this text the next time.
            self.parser.reset();
        }
        tree
    }
}

/// Returns the edit from `old` to `new`: from the first to the last byte that differs.
fn compute_edit(old: &[u8], new: &[u8]) -> InputEdit {
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let ends = old[start..].iter().rev().zip(new[start..].iter().rev());
    let same = ends.take_while(|(old, new)| old == new).count();
    let position = |text: &[u8], at: usize| {
        let (rows, line) = (memchr::memchr_iter(b'\n', &text[..at]).count(), memchr::memrchr(b'\n', &text[..at]));
        Point::new(rows, at - line.map_or(0, |end| end + 1))
    };
    let (old_end, new_end) = (old.len() - same, new.len() - same);
    InputEdit {
        start_byte: start,
        old_end_byte: old_end,
        new_end_byte: new_end,
        start_position: position(old, start),
        old_end_position: position(old, old_end),
        new_end_position: position(new, new_end),
    }
}

/// Kind id of a node that the parser could not interpret.
const ERROR_KIND: u16 = u16::MAX;

/// Flattens a tree into nodes in document order. `named` says for each kind if it is named: a table lookup instead of a
/// call per node.
fn flatten(cursor: &mut TreeCursor<'_>, named: &[bool], expected: usize) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::with_capacity(expected);
    let mut open: Vec<u32> = Vec::with_capacity(64);
    loop {
        let node = cursor.node();
        let index = nodes.len() as u32;
        let kind = node.kind_id();
        let is_named = named.get(usize::from(kind)).copied().unwrap_or(true);
        let (start, end) = (node.start_byte() as u32, node.end_byte() as u32);
        // Only an empty node can be missing.
        let is_error = kind == ERROR_KIND || (start == end && node.is_missing());
        nodes.push(Node {
            kind,
            field: cursor.field_id().map_or(0, |id| id.get()),
            flags: (u8::from(is_named) * Node::NAMED) | (u8::from(is_error) * Node::ERROR),
            parent: open.last().copied().unwrap_or(index),
            end_index: index + 1,
            start,
            end,
            row: node.start_position().row as u32,
            end_row: node.end_position().row as u32,
        });
        if cursor.goto_first_child() {
            open.push(index);
            continue;
        }
        while !cursor.goto_next_sibling() {
            let Some(closed) = open.pop() else { return nodes };
            nodes[closed as usize].end_index = nodes.len() as u32;
            cursor.goto_parent();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_nodes(grammar: &mut LanguageParser, text: &[u8], allowed: ParseBudget) -> Option<Vec<Node>> {
        grammar.parse_tree(text, None, allowed).map(|tree| grammar.flatten_tree(&tree))
    }

    #[test]
    fn that_there_was_no_thread_is_known_and_the_next_text_is_parsed() {
        let mut parsers = Parsers::with_dead_thread();
        assert_eq!(parsers.parse("a.rs", Language::Rust, b"fn a() {}").err(), Some(ParseFailure::Failed));
        assert_eq!((parsers.take_failure(), parsers.take_failure()), (true, false));
        assert!(parsers.parse("a.rs", Language::Rust, b"fn a() {}").is_ok() && !parsers.take_failure());
    }

    #[test]
    fn steps_are_bounded_and_the_parser_is_fit_afterwards() {
        let mut bash = LanguageParser::new(Language::Bash);
        let code = "f() { echo \"$1\"; }\n".repeat(2_000);
        let allowed = ParseBudget::for_bytes(code.len());
        assert!(parse_nodes(&mut bash, code.as_bytes(), ParseBudget { steps: 20, ..allowed }).is_none());
        let read = parse_nodes(&mut bash, code.as_bytes(), allowed).expect("ordinary code");
        assert_eq!(read.iter().skip(1).filter(|node| node.parent == 0).count(), 2_000);
        // The scanner of this grammar looks ahead to the end of the text from each repeated unit.
        let hostile = format!("a{}\n", ".b(1)".repeat(20_000));
        assert!(parse_nodes(&mut bash, hostile.as_bytes(), ParseBudget::for_bytes(hostile.len())).is_none());
        assert!(parse_nodes(&mut bash, b"", ParseBudget::for_bytes(0)).is_some());
    }

    /// The library reads a character that a chunk has cut a second time. Without a byte there it crashed.
    #[test]
    fn steps_may_run_out_inside_of_a_character() {
        for language in [Language::Kotlin, Language::Rust, Language::Python] {
            let mut grammar = LanguageParser::new(language);
            for text in ["xé".to_owned() + &"é".repeat(9_000), "a\nx日本".repeat(3_000), "x\u{1f600}\n".repeat(4_000)]
            {
                for cut in [text.as_bytes(), &text.as_bytes()[2..], &text.as_bytes()[..20_001.min(text.len())]] {
                    for steps in 0..24 {
                        let allowed = ParseBudget { steps, ..ParseBudget::for_bytes(cut.len()) };
                        let _ = grammar.parse_tree(cut, None, allowed);
                    }
                }
            }
        }
    }

    #[test]
    fn time_is_bounded_and_the_parser_is_fit_afterwards() {
        let mut php = LanguageParser::new(Language::Php);
        // Within the caps and the steps, and it takes seconds.
        let slow = format!("<?php {};", "{-".repeat(1_000));
        let allowed = ParseBudget { time: Duration::from_millis(50), ..ParseBudget::for_bytes(slow.len()) };
        assert!(parse_nodes(&mut php, slow.as_bytes(), allowed).is_none());
        assert!(parse_nodes(&mut php, b"<?php f();", allowed).is_some());
    }

    /// Each text takes gigabytes or minutes without limits, most of it between two checks of the steps.
    #[test]
    fn texts_that_were_made_for_it_are_too_complex() {
        let mut parsers = Parsers::default();
        for (language, head, unit, count, tail) in [
            (Language::Java, "class A{int f(){return ", "a<", 100_000, ";}}"),
            (Language::CSharp, "class A{int f(){return ", "a<", 100_000, ""),
            (Language::Java, "", "a=>", 10_000, ""),
            (Language::Rust, "", "%q(", 10_000, ""),
            (Language::Rust, "", "\"", 1_000_000, ""),
            (Language::CSharp, "f(", "&]", 4_000, ")\n"),
            (Language::Php, "<?php ", "{-", 4_000, ";"),
            (Language::Bash, "", "a|", 20_000, ""),
            (Language::Python, "", "/*\n", 20_000, ""),
            (Language::Swift, "", "#", 60_000, ""),
            (Language::C, "int f() {\n", ">'a',", 10_000, ""),
        ] {
            let text = format!("{head}{}{tail}", unit.repeat(count));
            let read = parsers.parse("a", language, text.as_bytes());
            assert_eq!(read.err(), Some(ParseFailure::TooComplex), "{language:?} {unit:?}");
            assert!(parsers.parse("a", language, b"x").is_ok(), "{language:?} after {unit:?}");
        }
    }

    /// Pieces of code, complete and broken, from which the test files are built.
    const PIECES: &[(Language, &[&str])] = &[
        (
            Language::Rust,
            &["fn f(a: &str) -> u8 { g(a)? }\n", "/* c */ ", "mod m {\n", "}\n", "r#\"s\"#;", "x < y > (z);", "é"],
        ),
        (
            Language::Python,
            &["def f(a):\n", "    return a\n", "\tx = 'é'\n", "f'''{a", "'''\n", "if a:\n  b()\n", "# c\n"],
        ),
        (
            Language::Java,
            &["class A { int f() { return 1; } }\n", "a < b > c;", "{", "}\n", "\"\"\"", "(T) -x;", "// é\n"],
        ),
        (
            Language::Cpp,
            &["template <class T> T f(T a) { return a; }\n", "a * b;\n", "#if X\n", "#endif\n", "R\"(", ")\";", "}"],
        ),
        (Language::Ruby, &["def f a\n", "end\n", "x = <<~A\n", "A\n", "f %w(a b)\n", "a /b/ c\n", "\"#{a\"\n"]),
        (Language::JavaScript, &["f(`a${b}`);\n", "const x = <a>b</a>\n", "a\n/b/g\n", "{", "}\n", "return\nx", "'"]),
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The reuse of the first tree changes no result, for any edit.
        #[test]
        fn a_pair_is_parsed_as_two_files_are(
            pieces in proptest::collection::vec(0usize..7, 0..40),
            edit in (0usize..600, 0usize..30, 0usize..7),
        ) {
            let (mut together, mut apart) = (Parsers::default(), Parsers::default());
            for (language, texts) in PIECES {
                let before: Vec<u8> = pieces.iter().flat_map(|&piece| texts[piece].bytes()).collect();
                let start = edit.0.min(before.len());
                let end = (start + edit.1).min(before.len());
                let after = [&before[..start], texts[edit.2].as_bytes(), &before[end..]].concat();
                for (old, new) in [(&before, &after), (&after, &before)] {
                    let pair = together.parse_pair(*language, old, new).expect("parses");
                    let alone = apart.parse("", *language, new).expect("parses");
                    prop_assert_eq!(&pair[1].nodes, &alone.nodes, "{:?}", language);
                }
            }
        }
    }
}
