//! A file in pieces that make sense by themselves: declarations by its syntax tree, windows by blank lines where there is
//! no tree to go by.
//!
//! Invariants: the chunks of a file, its summaries left away, cover all of its lines in order, each line once; whatever
//! the text is, this takes time and memory by its length.

mod windows;

use serde::{Deserialize, Serialize};

use crate::domain::{LineRange, word_enum};
use crate::provider::builtin::language::Language;

word_enum!(
    /// What a chunk is.
    ChunkKind {
        Function = "function",
        /// A class, or what stands in for one: a struct with methods, an `impl`. Of a class in parts, what is between its
        /// methods.
        Class = "class",
        Interface = "interface",
        /// What stands between the declarations of a file; all of a file without any.
        Module = "module",
        Type = "type",
        Constant = "constant",
        Test = "test",
        /// Of a file of settings.
        Config = "config",
        /// A declaration that comes in parts: its head, its fields, the heads of its methods. It lies over its parts.
        Summary = "summary",
        /// Lines between blank lines: of an unknown language, of code that does not parse, of what is too long for a chunk.
        Window = "window",
    }
);

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub path: String,
    /// Of a summary those of the whole declaration.
    pub lines: LineRange,
    pub kind: ChunkKind,
    /// The declared name, empty for windows and modules.
    pub name: String,
    /// The name of the class, module or function around it, or empty.
    pub parent: String,
    /// Exact, by `o200k_base`, of [`Chunk::text`].
    pub tokens: u32,
    /// What the file imports, as written, without quotes and white space; on the first chunk of a file only.
    pub imports: Vec<String>,
    /// The names declared here that others may use: not those inside of functions.
    pub exports: Vec<String>,
    /// The identifiers used here, each once, by first use.
    pub references: Vec<String>,
    /// Cyclomatic, of all functions in it together; 0 where there is none.
    pub complexity: u32,
    /// The lines that say what it is: the head of a function; of a class its head, its fields and the heads of its
    /// methods. Empty where nothing does. In order.
    pub outline: Vec<LineRange>,
}

impl Chunk {
    /// The chunk's text, taken from its file's: its lines; of a summary its outline.
    pub fn text(&self, file: &str) -> String {
        text_of(file, self.kind, self.lines, &self.outline)
    }
}

/// As [`Chunk::text`].
pub(super) fn text_of(file: &str, kind: ChunkKind, lines: LineRange, outline: &[LineRange]) -> String {
    match kind {
        ChunkKind::Summary => select(file, outline),
        _ => select(file, &[lines]),
    }
}

/// The lines of a file that are asked for, in order. Lines end with `\n` only, as in git.
fn select(file: &str, wanted: &[LineRange]) -> String {
    let mut wanted = wanted.iter().peekable();
    let mut text = String::new();
    for (line, number) in file.split_inclusive('\n').zip(1u32..) {
        while wanted.peek().is_some_and(|range| range.end < number) {
            wanted.next();
        }
        match wanted.peek() {
            None => break,
            Some(range) if range.start <= number => text.push_str(line),
            Some(_) => {}
        }
    }
    text
}

/// The chunks of a file, by lines; a summary comes before its parts. None for an empty file.
pub fn chunks(path: &str, text: &str, _language: Option<Language>) -> Vec<Chunk> {
    windows::of(text)
        .into_iter()
        .map(|lines| Chunk {
            path: path.to_owned(),
            lines,
            kind: ChunkKind::Window,
            name: String::new(),
            parent: String::new(),
            tokens: super::tokens::count(super::tokens::Encoding::O200kBase, &select(text, &[lines])) as u32,
            imports: Vec::new(),
            exports: Vec::new(),
            references: Vec::new(),
            complexity: 0,
            outline: Vec::new(),
        })
        .collect()
}
