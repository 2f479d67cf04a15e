//! Parsing, bounded whatever the text is: on a thread of its own, by what the parser does and by what it asks for.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tree_sitter::{InputEdit, ParseOptions, Parser, Point, Tree, TreeCursor};

use super::memory_limit;
use super::{Node, ParsedFile};
use crate::reviewers::analyzer::AnalyzeError;
use crate::reviewers::analyzer::language::Language;

/// Keeps parsers between files: making one per file costs more than parsing a small file.
#[derive(Default)]
pub struct Parsers {
    worker: Option<ParserThread>,
    has_failed: bool,
}

impl Parsers {
    /// Parses a file; partial trees are kept.
    ///
    /// # Errors
    /// [`Unread::TooComplex`] when the grammar gives up, which takes a file that was made for it: the work and the
    /// memory for a file are bounded by its size. 4 GiB are too complex as well.
    pub fn parse<'a>(
        &mut self,
        path: &'a str,
        language: Language,
        text: &'a [u8],
    ) -> Result<ParsedFile<'a>, AnalyzeError> {
        let [nodes] = self.parse_versions(language, [text])?;
        Ok(ParsedFile::new(path, language, text, nodes))
    }

    /// Parses a file before and after an edit, the second time with what the first tree tells of the unchanged rest:
    /// what comes out is as from [`Parsers::parse`].
    ///
    /// # Errors
    /// As [`Parsers::parse`], for either side.
    pub fn parse_pair<'a>(
        &mut self,
        language: Language,
        before: &'a [u8],
        after: &'a [u8],
    ) -> Result<[ParsedFile<'a>; 2], AnalyzeError> {
        let [old, new] = self.parse_versions(language, [before, after])?;
        Ok([ParsedFile::new("", language, before, old), ParsedFile::new("", language, after, new)])
    }

    /// Whether a text was not parsed since this was asked last for a reason that is not its own, [`Unread::Failed`]: another
    /// time it may be.
    pub fn take_failure(&mut self) -> bool {
        std::mem::take(&mut self.has_failed)
    }

    /// Those whose thread is gone.
    #[cfg(test)]
    pub fn with_dead_thread() -> Self {
        let ((texts, _), (_, answers)) = (channel(), channel());
        Self { worker: Some(ParserThread { texts, answers }), has_failed: false }
    }

    /// The nodes of a file's versions.
    fn parse_versions<const N: usize>(
        &mut self,
        language: Language,
        versions: [&[u8]; N],
    ) -> Result<[Vec<Node>; N], AnalyzeError> {
        if versions.iter().any(|text| u32::try_from(text.len()).is_err()) {
            return Err(AnalyzeError::TooComplex);
        }
        let Ok(worker) = self.worker.take().map_or_else(ParserThread::spawn, Ok) else {
            self.has_failed = true;
            return Err(AnalyzeError::Failed);
        };
        let _ = worker.texts.send((language, versions.map(Arc::from).into()));
        let mut found = [const { Vec::new() }; N];
        for nodes in &mut found {
            match worker.answers.recv().unwrap_or(ParseReply::Gone) {
                ParseReply::Nodes(read) => *nodes = read,
                ParseReply::TooComplex => {
                    self.worker = Some(worker);
                    return Err(AnalyzeError::TooComplex);
                }
                ParseReply::Stopped => return Err(AnalyzeError::TooComplex),
                ParseReply::Gone => {
                    self.has_failed = true;
                    return Err(AnalyzeError::Failed);
                }
            }
        }
        self.worker = Some(worker);
        Ok(found)
    }
}

/// Stack of a parsing thread, in bytes, taken as it is used: the library recurses over ambiguities.
const THREAD_STACK_BYTES: usize = 64 << 20;

/// A thread with a parser for each language. It may be stopped in the midst of a text and is then of no use any more;
/// otherwise it ends with this.
struct ParserThread {
    texts: Sender<(Language, FileVersions)>,
    answers: Receiver<ParseReply>,
}

/// A file's versions, of which each is parsed with the tree of the one before.
type FileVersions = Box<[Arc<[u8]>]>;

/// What became of a version; none of those behind one that is too complex is looked at.
enum ParseReply {
    Nodes(Vec<Node>),
    TooComplex,
    /// Too complex as well, and the thread sleeps for ever.
    Stopped,
    /// The thread ended; that is a fault of ours.
    Gone,
}

impl ParserThread {
    fn spawn() -> std::io::Result<Self> {
        memory_limit::install();
        let (texts, todo) = channel::<(Language, FileVersions)>();
        let (answer, answers) = channel();
        std::thread::Builder::new().name("parser".to_owned()).stack_size(THREAD_STACK_BYTES).spawn(move || {
            let stopped = answer.clone();
            memory_limit::on_stop(move || {
                let _ = stopped.send(ParseReply::Stopped);
            });
            let mut grammars: [Option<LanguageParser>; Language::ALL.len()] = Default::default();
            for (language, versions) in todo {
                let grammar = grammars[language.index()].get_or_insert_with(|| LanguageParser::new(language));
                let mut last: Option<(&[u8], Tree)> = None;
                for text in &versions {
                    let Some(tree) = grammar.parse_version(text, last.take()) else {
                        let _ = answer.send(ParseReply::TooComplex);
                        break;
                    };
                    // Whoever asked may have ended: then so does the list of texts.
                    let _ = answer.send(ParseReply::Nodes(grammar.flatten_tree(text, &tree)));
                    last = Some((text, tree));
                }
            }
        })?;
        Ok(Self { texts, answers })
    }
}

/// What a text may cost, in figures that are the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ParseBudget {
    /// Pieces of text read, and hundreds of operations of the parser.
    steps: u64,
    /// Bytes asked for, see [`allowance::grant`].
    bytes: u64,
}

impl ParseBudget {
    /// Measured on 58,000 files of all languages (among them efcore, symfony, rails, folly, playwright, hugo and
    /// redis): the file that comes closest takes a third of the steps and 36 % of the bytes; those of 100 KB and more
    /// take up to 0.02 steps and 200 bytes per byte. The densest tables of numbers take 0.1 steps and 560 bytes.
    fn for_bytes(bytes: usize) -> Self {
        let bytes = bytes as u64;
        Self { steps: 1_000 + bytes / 8, bytes: (48 << 20) + 320 * bytes }
    }
}

/// Bytes that a parser is given at once. A scanner that looks ahead over the same text again and again asks for the same
/// pieces again and again.
const READ_CHUNK_BYTES: usize = 4096;

/// A parser, and which kinds of its nodes are named.
struct LanguageParser {
    parser: Parser,
    named: Box<[bool]>,
}

impl LanguageParser {
    fn new(language: Language) -> Self {
        let mut parser = Parser::new();
        let grammar = language.grammar();
        // The grammars are compiled in and of a version the library knows: a test parses with each of them.
        let _ = parser.set_language(&grammar);
        let named = (0..grammar.node_kind_count()).map(|kind| grammar.node_kind_is_named(kind as u16)).collect();
        Self { parser, named }
    }

    /// The tree of a text, within what its size allows, by the tree of the text `before` it if there is one. What a
    /// parser makes of a mistake may depend on what it has read: such trees are neither used nor made so.
    fn parse_version(&mut self, text: &[u8], before: Option<(&[u8], Tree)>) -> Option<Tree> {
        let allowed = ParseBudget::for_bytes(text.len());
        if let Some((old, mut tree)) = before.filter(|(_, tree)| !tree.root_node().has_error()) {
            tree.edit(&compute_edit(old, text));
            // Both trees are there at once: what is asked for is added to what the first one took.
            let again = self.parse_tree(text, Some(&tree), allowed.steps).filter(|tree| !tree.root_node().has_error());
            if again.is_some() {
                return again;
            }
        }
        self.parse_fresh(text, allowed)
    }

    /// The tree of a text by itself; on this thread from now on nothing more is allowed.
    fn parse_fresh(&mut self, text: &[u8], allowed: ParseBudget) -> Option<Tree> {
        memory_limit::grant(allowed.bytes);
        self.parse_tree(text, None, allowed.steps)
    }

    fn flatten_tree(&self, text: &[u8], tree: &Tree) -> Vec<Node> {
        flatten(&mut tree.walk(), &self.named, text.len() / 3)
    }

    fn parse_tree(&mut self, text: &[u8], old: Option<&Tree>, allowed_steps: u64) -> Option<Tree> {
        let steps = Cell::new(0u64);
        let mut read = |at: usize, _| {
            steps.set(steps.get() + 1);
            text.get(at..(at + READ_CHUNK_BYTES).min(text.len())).unwrap_or_default()
        };
        let mut look = |_: &tree_sitter::ParseState| {
            steps.set(steps.get() + 1);
            match steps.get() > allowed_steps || memory_limit::is_spent() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let options = ParseOptions::new().progress_callback(&mut look);
        let tree = self.parser.parse_with_options(&mut read, old, Some(options));
        if tree.is_none() {
            // Otherwise it would go on with this text the next time.
            self.parser.reset();
        }
        tree
    }
}

/// The edit that makes `new` of `old`: from the first byte that differs to the last.
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

/// The kind of a node that the parser could not make sense of.
const ERROR_KIND: u16 = u16::MAX;

/// `named` says of each kind whether it is named: a look into a table instead of a call per node.
fn flatten(cursor: &mut TreeCursor<'_>, named: &[bool], expected: usize) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::with_capacity(expected);
    let mut open: Vec<u32> = Vec::with_capacity(64);
    loop {
        let node = cursor.node();
        let index = nodes.len() as u32;
        let kind = node.kind_id();
        let is_named = named.get(usize::from(kind)).copied().unwrap_or(true);
        let (start, end) = (node.start_byte() as u32, node.end_byte() as u32);
        // Only what has no text can be missing.
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

    fn grammar(language: Language) -> LanguageParser {
        memory_limit::install();
        LanguageParser::new(language)
    }

    fn parse_nodes(grammar: &mut LanguageParser, text: &[u8], allowed: ParseBudget) -> Option<Vec<Node>> {
        grammar.parse_fresh(text, allowed).map(|tree| grammar.flatten_tree(text, &tree))
    }

    #[test]
    fn that_there_was_no_thread_is_known_and_the_next_text_is_parsed() {
        let mut parsers = Parsers::with_dead_thread();
        assert_eq!(parsers.parse("a.rs", Language::Rust, b"fn a() {}").err(), Some(AnalyzeError::Failed));
        assert_eq!((parsers.take_failure(), parsers.take_failure()), (true, false));
        assert!(parsers.parse("a.rs", Language::Rust, b"fn a() {}").is_ok() && !parsers.take_failure());
    }

    #[test]
    fn steps_are_bounded_and_the_parser_is_fit_afterwards() {
        let mut bash = grammar(Language::Bash);
        let code = "f() { echo \"$1\"; }\n".repeat(2_000);
        let allowed = ParseBudget::for_bytes(code.len());
        assert!(parse_nodes(&mut bash, code.as_bytes(), ParseBudget { steps: 20, ..allowed }).is_none());
        let read = parse_nodes(&mut bash, code.as_bytes(), allowed).expect("ordinary code");
        assert_eq!(read.iter().skip(1).filter(|node| node.parent == 0).count(), 2_000);
        // The scanner of this grammar looks ahead to the end from every one of these.
        let hostile = format!("a{}\n", ".b(1)".repeat(20_000));
        assert!(parse_nodes(&mut bash, hostile.as_bytes(), ParseBudget::for_bytes(hostile.len())).is_none());
        assert!(parse_nodes(&mut bash, b"", ParseBudget::for_bytes(0)).is_some());
    }

    #[test]
    fn memory_is_bounded_and_the_parser_is_fit_afterwards() {
        let mut java = grammar(Language::Java);
        let code = format!("class A {{ {} }}\n", "void f() { g(1); }\n".repeat(2_000));
        let allowed = ParseBudget::for_bytes(code.len());
        assert!(parse_nodes(&mut java, code.as_bytes(), ParseBudget { bytes: 1 << 20, ..allowed }).is_none());
        assert!(parse_nodes(&mut java, code.as_bytes(), allowed).is_some());
    }

    /// Each of these takes gigabytes or minutes without a bound, most of them between two looks at what was spent.
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
        ] {
            let text = format!("{head}{}{tail}", unit.repeat(count));
            let read = parsers.parse("a", language, text.as_bytes());
            assert_eq!(read.err(), Some(AnalyzeError::TooComplex), "{language:?} {unit:?}");
            assert!(parsers.parse("a", language, b"x").is_ok(), "{language:?} after {unit:?}");
        }
    }

    /// Pieces of code, whole ones and broken ones, of which a file is put together.
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

        /// Whatever was edited: what the first tree tells changes nothing.
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

    #[test]
    fn the_largest_file_of_the_default_settings_stays_below_half_a_gigabyte() {
        assert!(ParseBudget::for_bytes(1_000_000).bytes < 400 << 20);
    }
}
