//! Cuts a file into chunks: declarations from its syntax tree, or windows between blank lines if there is no usable
//! tree.
//!
//! - The chunks of a file, without summaries, cover all of its lines in order, each line once.
//! - Time and memory are linear in the length of the text, whatever the text is.

mod cut;
mod lines;
mod outline;
mod roles;
mod uses;
mod windows;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use cut::CutPiece;
use lines::RowTable;
pub(crate) use outline::last_row;
use outline::{Outline, OutlineItem};
use uses::FileUses;

use crate::domain::{LineRange, word_enum};
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::source::{ParsedFile, Parsers};

word_enum!(
    /// Kind of a chunk.
    ChunkKind {
        Function = "function",
        /// A class or its equivalent: a struct with methods, an `impl`. For a class that was split: the code between
        /// its methods.
        Class = "class",
        Interface = "interface",
        /// Code between the declarations of a file, or a complete file without declarations.
        Module = "module",
        Type = "type",
        Constant = "constant",
        Test = "test",
        /// Part of a configuration file.
        Config = "config",
        /// Overview of a declaration that was split: its head, its fields and the heads of its methods. Its lines
        /// overlap the lines of its parts.
        Summary = "summary",
        /// Lines between blank lines: for unknown languages, for code that does not parse, and for declarations that
        /// are too long for one chunk.
        Window = "window",
    }
);

/// Chunk of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// For a summary: the lines of the whole declaration.
    pub lines: LineRange,
    pub kind: ChunkKind,
    /// Declared name; empty for windows and modules.
    pub name: String,
    /// Name of the enclosing class, module or function; may be empty.
    pub parent: String,
}

impl Chunk {
    /// Returns the lines of the chunk, cut from the text of its file. Only `\n` ends a line, as in git.
    pub fn text(&self, file: &str) -> String {
        let (before, count) = (self.lines.start.saturating_sub(1), self.lines.end + 1 - self.lines.start);
        file.split_inclusive('\n').skip(before as usize).take(count as usize).collect()
    }
}

/// Cuts a file into chunks, ordered by line; a summary comes before its parts. Returns no chunks for an empty file.
///
/// The chunks are windows if `language` is `None` (see [`Language::detect`]) or if the text does not parse.
pub fn chunk_file(path: &str, text: &str, language: Option<Language>) -> Vec<Chunk> {
    let chunk = |piece: CutPiece<'_>| Chunk {
        lines: lines::to_line_range(piece.rows),
        kind: piece.kind,
        name: piece.name.to_owned(),
        parent: piece.parent.to_owned(),
    };
    let cut = cut_with(&mut Parsers::default(), path, text, language, |_| ());
    cut.pieces.into_iter().map(chunk).collect()
}

/// Declaration of a function, class, type, test or constant, of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    pub kind: ChunkKind,
    /// May be empty.
    pub name: String,
    /// Name of the enclosing item or of the owner type; may be empty.
    pub scope: String,
    /// Includes the comments and attributes above the declaration.
    pub lines: LineRange,
    /// From the first word to the start of the body; at most a few lines.
    pub head: LineRange,
}

/// Largest chunk, in `o200k_base` tokens. A longer declaration is split.
pub const MAX_TOKENS_PER_CHUNK: u32 = cut::MAX_TOKENS_PER_CHUNK;

/// Kind and lines of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkExtent {
    pub kind: ChunkKind,
    pub lines: LineRange,
}

/// Declarations, imports and chunk ranges of a file. Without a usable syntax tree, it holds only windows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSyntax {
    /// All chunks except summaries; they cover all lines in order, each line once.
    pub chunks: Arc<[ChunkExtent]>,
    /// Ordered by first line; nested declarations follow their parent.
    pub declarations: Arc<[Declaration]>,
    /// As written, without quotes and white space.
    pub imports: Arc<[String]>,
}

/// Reads the declarations, imports and chunk ranges of a file. Detects the language from path and text.
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

/// A file cut into chunks, with the identifiers it uses.
pub(super) struct CutFile<'a, U = FileUses<'a>> {
    pub pieces: Vec<CutPiece<'a>>,
    pub uses: U,
    /// Same order as [`FileSyntax::declarations`].
    pub declarations: Vec<OutlineItem<'a>>,
}

/// Cuts a file and reads its identifiers. The results borrow from `text`.
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

/// Cuts a file. `uses` receives the syntax tree, or `None` if there is no usable tree.
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
            let pieces = cut::cut_by_outline(&lines, &outline);
            return CutFile { pieces, uses: uses(Some(&source)), declarations: outline.items };
        }
    }
    let kind = match is_config_file(path) {
        true => ChunkKind::Config,
        false => ChunkKind::Window,
    };
    let pieces = cut::cut_by_blank_lines(&lines, kind);
    CutFile { pieces, uses: uses(None), declarations: Vec::new() }
}

/// Returns true if more than half of the text is inside syntax errors and declarations cover less than half of the
/// lines.
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

/// Returns true if the file name is that of a configuration file.
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

/// Returns true for names such as `.gitignore` and `.rubocop`: configuration of a program.
fn is_dot_file(name: &str) -> bool {
    name.strip_prefix('.').is_some_and(|name| !name.contains('.'))
}

#[cfg(test)]
mod tests;
