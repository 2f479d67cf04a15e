//! A file in pieces that make sense by themselves: declarations by its syntax tree, windows by blank lines where there is
//! no tree to go by.
//!
//! Invariants: the chunks of a file, its summaries left away, cover all of its lines in order, each line once; whatever
//! the text is, this takes time and memory by its length.

mod cut;
mod lines;
mod outline;
mod roles;
mod row_tokens;
mod uses;
mod windows;

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use cut::CutPiece;
pub(super) use lines::RowRange;
use lines::RowTable;
pub(super) use outline::last_row;
use outline::{Outline, OutlineItem};
use uses::FileUses;
pub(super) use uses::IdentifierUse;

use crate::domain::{LineRange, word_enum};
use crate::reviewers::analyzer::facts::FileFacts;
use crate::reviewers::analyzer::language::Language;
use crate::reviewers::analyzer::source::{ParsedFile, Parsers};

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
        select_text(file, self.kind, self.lines, &self.outline)
    }
}

/// As [`Chunk::text`].
pub(super) fn select_text(file: &str, kind: ChunkKind, lines: LineRange, outline: &[LineRange]) -> String {
    match kind {
        ChunkKind::Summary => select_lines(file, outline),
        _ => select_lines(file, &[lines]),
    }
}

/// The lines of a file that are asked for, in order. Lines end with `\n` only, as in git.
fn select_lines(file: &str, wanted: &[LineRange]) -> String {
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

/// The chunks of a file, by lines; a summary comes before its parts. None for an empty file. A language comes with its
/// parser, see [`Language::detect`]; without one, and for what does not parse, the chunks are windows.
pub fn chunk_file(path: &str, text: &str, language: Option<Language>) -> Vec<Chunk> {
    let cut = cut_text(&mut Parsers::default(), path, text, language);
    let mut uses = cut.uses.names.iter().peekable();
    let mut imports = cut.uses.imports;
    let mut chunks: Vec<Chunk> = Vec::with_capacity(cut.pieces.len());
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for piece in &cut.pieces {
        let mut references = Vec::new();
        if piece.kind != ChunkKind::Summary {
            let end = cut.lines.end(piece.rows.1);
            let mut seen = HashSet::new();
            while let Some((_, name)) = uses.next_if(|(at, _)| *at < end) {
                if seen.insert(*name) {
                    references.push((*name).to_owned());
                }
            }
        }
        chunks.push(Chunk {
            path: path.to_owned(),
            lines: lines::to_line_range(piece.rows),
            kind: piece.kind,
            name: piece.name.to_owned(),
            parent: piece.parent.to_owned(),
            tokens: piece.tokens,
            imports: std::mem::take(&mut imports),
            exports: owned(&piece.exports),
            references,
            complexity: piece.complexity,
            outline: piece.outline.iter().copied().map(lines::to_line_range).collect(),
        });
    }
    chunks
}

/// A function, class, type, test or constant, however long it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    pub kind: ChunkKind,
    /// May be empty.
    pub name: String,
    /// The name of what it stands in or belongs to, or empty.
    pub scope: String,
    /// With the comments and attributes above it.
    pub lines: LineRange,
    /// From its first word to where its body begins, a few lines at most.
    pub head: LineRange,
}

/// More tokens than this come in several chunks.
pub const MAX_TOKENS_PER_CHUNK: u32 = cut::MAX_TOKENS_PER_CHUNK;

/// The lines of a chunk, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkExtent {
    pub kind: ChunkKind,
    pub lines: LineRange,
}

/// What a file says by its syntax tree; where there is no tree to go by, in which windows it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSyntax {
    /// Its chunks, summaries left away: all of its lines in order, each once.
    pub chunks: Arc<[ChunkExtent]>,
    /// By their first line, those in others behind these.
    pub declarations: Arc<[Declaration]>,
    /// As [`Chunk::imports`].
    pub imports: Arc<[String]>,
}

pub fn parse_syntax(parsers: &mut Parsers, path: &str, text: &str) -> FileSyntax {
    let language = Language::detect(path, text.as_bytes());
    let CutFile { pieces, uses: imports, declarations: declared, .. } =
        cut_with(parsers, path, text, language, |source| source.map(uses::read_imports).unwrap_or_default());
    let declaration = |item: OutlineItem<'_>| Declaration {
        kind: item.kind,
        name: item.name.to_owned(),
        scope: item.scope.to_owned(),
        lines: lines::to_line_range(item.rows),
        head: lines::to_line_range(item.head),
    };
    let parts = pieces.iter().filter(|piece| piece.kind != ChunkKind::Summary);
    FileSyntax {
        chunks: parts.map(|piece| ChunkExtent { kind: piece.kind, lines: lines::to_line_range(piece.rows) }).collect(),
        declarations: declared.into_iter().map(declaration).collect(),
        imports: imports.into(),
    }
}

/// A file in pieces, and what it uses.
pub(super) struct CutFile<'a, U = FileUses<'a>> {
    pub lines: RowTable<'a>,
    pub pieces: Vec<CutPiece<'a>>,
    pub uses: U,
    /// As [`Syntax::declared`].
    pub declarations: Vec<OutlineItem<'a>>,
}

/// Cuts a file. What is read of the text is borrowed from it.
pub(super) fn cut_text<'a>(
    parsers: &mut Parsers,
    path: &'a str,
    text: &'a str,
    language: Option<Language>,
) -> CutFile<'a> {
    cut_with(parsers, path, text, language, |source| {
        source.map_or_else(|| uses::read_uses_from_words(text), uses::read_uses)
    })
}

/// With what `uses` finds in the syntax tree, where there is one to go by.
fn cut_with<'a, U>(
    parsers: &mut Parsers,
    path: &'a str,
    text: &'a str,
    language: Option<Language>,
    uses: impl FnOnce(Option<&ParsedFile<'a>>) -> U,
) -> CutFile<'a, U> {
    let lines = RowTable::new(text);
    let parsed = language.and_then(|language| parsers.parse(path, language, text.as_bytes()).ok());
    if let Some(source) = parsed {
        let facts = FileFacts::from_parsed(&source);
        let outline = outline::read_outline(&source, &facts);
        if !is_broken(&source, &outline, &lines) {
            let pieces = cut::cut_by_outline(&lines, &outline, &source, &facts);
            return CutFile { lines, pieces, uses: uses(Some(&source)), declarations: outline.items };
        }
    }
    let kind = match is_config_file(path) {
        true => ChunkKind::Config,
        false => ChunkKind::Window,
    };
    let pieces = cut::cut_by_blank_lines(&lines, kind);
    CutFile { lines, pieces, uses: uses(None), declarations: Vec::new() }
}

/// Whether most of a file makes no sense to its parser and no declarations are found in it.
fn is_broken(source: &ParsedFile<'_>, outline: &Outline<'_>, lines: &RowTable<'_>) -> bool {
    let (mut at, mut wrong) = (0, 0);
    while let Some(node) = source.nodes.get(at) {
        at = match node.is_error() {
            true => {
                wrong += node.end - node.start;
                node.end_index as usize
            }
            false => at + 1,
        };
    }
    let top = outline.items.iter().filter(|item| item.parent.is_none());
    let declared: u32 = top.map(|item| item.rows.1 - item.rows.0 + 1).sum();
    wrong as usize * 2 > source.text.len() && declared * 2 < lines.count()
}

/// Whether a file holds settings, by its name.
fn is_config_file(path: &str) -> bool {
    const EXTENSIONS: [&str; 18] = [
        "cfg",
        "conf",
        "config",
        "csproj",
        "editorconfig",
        "gradle",
        "ini",
        "json",
        "json5",
        "jsonc",
        "mk",
        "properties",
        "props",
        "targets",
        "toml",
        "xml",
        "yaml",
        "yml",
    ];
    const NAMES: [&str; 9] = [
        "Dockerfile",
        "Makefile",
        "makefile",
        "GNUmakefile",
        "CMakeLists.txt",
        "Gemfile",
        "Procfile",
        "Vagrantfile",
        "go.mod",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    NAMES.contains(&name) || EXTENSIONS.contains(&ending) || name.starts_with("Dockerfile.") || is_dot_file(name)
}

/// `.gitignore`, `.rubocop`: settings of a program.
fn is_dot_file(name: &str) -> bool {
    name.strip_prefix('.').is_some_and(|name| !name.contains('.'))
}

#[cfg(test)]
mod tests;
