//! Parsing, bounded whatever the text is: on a thread of its own, by what the parser does and by what it asks for.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tree_sitter::{ParseOptions, Parser, Tree, TreeCursor};

use super::allowance;
use super::{Node, Source};
use crate::provider::builtin::Unread;
use crate::provider::builtin::language::Language;

/// Keeps parsers between files: making one per file costs more than parsing a small file.
#[derive(Default)]
pub struct Parsers(Option<Worker>);

impl Parsers {
    /// Parses a file; partial trees are kept.
    ///
    /// # Errors
    /// [`Unread::TooComplex`] when the grammar gives up, which takes a file that was made for it: the work and the
    /// memory for a file are bounded by its size. 4 GiB are too complex as well.
    pub fn parse<'a>(&mut self, path: &'a str, language: Language, text: &'a [u8]) -> Result<Source<'a>, Unread> {
        u32::try_from(text.len()).map_err(|_| Unread::TooComplex)?;
        let worker = self.0.take().map_or_else(Worker::start, Ok).map_err(|_| Unread::Failed)?;
        match worker.parse(language, text) {
            Answer::Nodes(nodes) => {
                self.0 = Some(worker);
                Ok(Source::new(path, language, text, nodes))
            }
            Answer::TooComplex => {
                self.0 = Some(worker);
                Err(Unread::TooComplex)
            }
            Answer::Stopped => Err(Unread::TooComplex),
            Answer::Gone => Err(Unread::Failed),
        }
    }
}

/// Stack of a parsing thread, in bytes, taken as it is used: the library recurses over ambiguities.
const STACK: usize = 64 << 20;

/// A thread with a parser for each language. It may be stopped in the midst of a text and is then of no use any more;
/// otherwise it ends with this.
struct Worker {
    texts: Sender<(Language, Arc<[u8]>)>,
    answers: Receiver<Answer>,
}

/// What became of a text.
enum Answer {
    Nodes(Vec<Node>),
    TooComplex,
    /// Too complex as well, and the thread sleeps for ever.
    Stopped,
    /// The thread ended; that is a fault of ours.
    Gone,
}

impl Worker {
    fn start() -> std::io::Result<Self> {
        allowance::install();
        let (texts, todo) = channel::<(Language, Arc<[u8]>)>();
        let (answer, answers) = channel();
        std::thread::Builder::new().name("parser".to_owned()).stack_size(STACK).spawn(move || {
            let stopped = answer.clone();
            allowance::when_stopped(move || {
                let _ = stopped.send(Answer::Stopped);
            });
            let mut grammars: [Option<Grammar>; Language::ALL.len()] = Default::default();
            for (language, text) in todo {
                let grammar = grammars[language.index()].get_or_insert_with(|| Grammar::new(language));
                let nodes = grammar.nodes(&text, Allowed::for_bytes(text.len()));
                if answer.send(nodes.map_or(Answer::TooComplex, Answer::Nodes)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { texts, answers })
    }

    fn parse(&self, language: Language, text: &[u8]) -> Answer {
        let sent = self.texts.send((language, text.into()));
        sent.ok().and_then(|()| self.answers.recv().ok()).unwrap_or(Answer::Gone)
    }
}

/// What a text may cost, in figures that are the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allowed {
    /// Pieces of text read, and hundreds of operations of the parser.
    steps: u64,
    /// Bytes asked for, see [`allowance::grant`].
    bytes: u64,
}

impl Allowed {
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
const PIECE: usize = 4096;

/// A parser, and which kinds of its nodes are named.
struct Grammar {
    parser: Parser,
    named: Box<[bool]>,
}

impl Grammar {
    fn new(language: Language) -> Self {
        let mut parser = Parser::new();
        let grammar = language.grammar();
        // The grammars are compiled in and of a version the library knows: a test parses with each of them.
        let _ = parser.set_language(&grammar);
        let named = (0..grammar.node_kind_count()).map(|kind| grammar.node_kind_is_named(kind as u16)).collect();
        Self { parser, named }
    }

    /// The nodes of a text, within what is allowed; on this thread from now on nothing else is.
    fn nodes(&mut self, text: &[u8], allowed: Allowed) -> Option<Vec<Node>> {
        allowance::grant(allowed.bytes);
        let tree = self.tree(text, allowed.steps)?;
        Some(flatten(&mut tree.walk(), &self.named, text.len() / 3))
    }

    fn tree(&mut self, text: &[u8], allowed_steps: u64) -> Option<Tree> {
        let steps = Cell::new(0u64);
        let mut read = |at: usize, _| {
            steps.set(steps.get() + 1);
            text.get(at..(at + PIECE).min(text.len())).unwrap_or_default()
        };
        let mut look = |_: &tree_sitter::ParseState| {
            steps.set(steps.get() + 1);
            match steps.get() > allowed_steps || allowance::is_spent() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let options = ParseOptions::new().progress_callback(&mut look);
        let tree = self.parser.parse_with_options(&mut read, None, Some(options));
        if tree.is_none() {
            // Otherwise it would go on with this text the next time.
            self.parser.reset();
        }
        tree
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
    use super::*;

    fn grammar(language: Language) -> Grammar {
        allowance::install();
        Grammar::new(language)
    }

    #[test]
    fn steps_are_bounded_and_the_parser_is_fit_afterwards() {
        let mut bash = grammar(Language::Bash);
        let code = "f() { echo \"$1\"; }\n".repeat(2_000);
        let allowed = Allowed::for_bytes(code.len());
        assert!(bash.nodes(code.as_bytes(), Allowed { steps: 20, ..allowed }).is_none());
        let nodes = bash.nodes(code.as_bytes(), allowed).expect("ordinary code");
        assert_eq!(nodes.iter().skip(1).filter(|node| node.parent == 0).count(), 2_000);
        // The scanner of this grammar looks ahead to the end from every one of these.
        let hostile = format!("a{}\n", ".b(1)".repeat(20_000));
        assert!(bash.nodes(hostile.as_bytes(), Allowed::for_bytes(hostile.len())).is_none());
        assert!(bash.nodes(b"", Allowed::for_bytes(0)).is_some());
    }

    #[test]
    fn memory_is_bounded_and_the_parser_is_fit_afterwards() {
        let mut java = grammar(Language::Java);
        let code = format!("class A {{ {} }}\n", "void f() { g(1); }\n".repeat(2_000));
        let allowed = Allowed::for_bytes(code.len());
        assert!(java.nodes(code.as_bytes(), Allowed { bytes: 1 << 20, ..allowed }).is_none());
        assert!(java.nodes(code.as_bytes(), allowed).is_some());
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
            assert_eq!(read.err(), Some(Unread::TooComplex), "{language:?} {unit:?}");
            assert!(parsers.parse("a", language, b"x").is_ok(), "{language:?} after {unit:?}");
        }
    }

    #[test]
    fn the_largest_file_of_the_default_settings_stays_below_half_a_gigabyte() {
        assert!(Allowed::for_bytes(1_000_000).bytes < 400 << 20);
    }
}
