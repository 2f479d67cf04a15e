//! The document of a file for the ranking: its words by line, its declared and imported names, and its passages.
//!
//! - The passages of a document cover all of its lines in order, each line once.
//! - Reading takes time linear in the length of the text.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::vocabulary::{Vocabulary, Word};
use super::words::{MAX_LINE_BYTES, identifiers};
use crate::index::codec::{PackedReader, PackedWriter};

/// Longest passage in lines. Measured with 5, 8, 10 and 16: shorter passages find fewer relevant lines for the same
/// price, because each stands alone; longer passages spend tokens on lines that nobody changed.
const MAX_PASSAGE_LINES: usize = 8;
/// Passage length in lines from which a blank line or a declaration ends a passage.
const MIN_PASSAGE_LINES: usize = 3;

/// Lines of a passage, 0-based; `end` is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    pub start: u32,
    pub end: u32,
}

/// Words, names and passages of a file.
#[derive(Debug)]
pub struct Document {
    /// Number of words, repeated words included.
    length: u32,
    words: OnceLock<LineWords>,
    /// Source of `words` for an unpacked document; decoded on first use.
    packed: Option<PackedWords>,
    /// (word, number of occurrences), sorted by word.
    pub counts: Vec<(Word, u32)>,
    /// (line, declared name), sorted by line; lines are 0-based.
    pub declarations: Vec<(u32, Word)>,
    /// For each line: true if it is an import.
    pub imports: Vec<bool>,
    /// Words of the import lines.
    pub imported: Vec<Word>,
    pub passages: Vec<Passage>,
}

/// Words of each line.
#[derive(Debug, Default)]
struct LineWords {
    words: Vec<Word>,
    /// Start of each line's words, followed by the number of words.
    starts: Vec<u32>,
}

/// Words of each line in the encoding of [`Document::pack`].
#[derive(Debug)]
struct PackedWords {
    /// Distinct words in the order of first use.
    names: Vec<Word>,
    lines: Vec<u8>,
}

impl Document {
    /// Encoding version, part of the cache key. Increase it with every change of what is read from a text.
    pub const VERSION: &str = "2";

    /// Reads a text.
    pub fn read(text: &str, vocabulary: &mut Vocabulary) -> Self {
        let mut words = LineWords { words: Vec::new(), starts: vec![0] };
        let (mut declarations, mut imports, mut imported) = (Vec::new(), Vec::new(), Vec::new());
        let mut shapes = Vec::new();
        for line in text.split_inclusive('\n') {
            let number = shapes.len() as u32;
            let before = words.words.len();
            words.words.extend(identifiers(line).map(|name| vocabulary.intern(name)));
            words.starts.push(words.words.len() as u32);
            let code = line.trim();
            let is_import = is_import(code);
            let own = match is_import || words.words.len() == before {
                true => None,
                false => find_declaration(code, line.len() - line.trim_start().len()),
            };
            if let Some(own) = &own {
                declarations.push((number, vocabulary.intern(own.name)));
            }
            if is_import {
                imported.extend(words.words.get(before..).unwrap_or_default());
            }
            imports.push(is_import);
            shapes.push(LineShape {
                is_blank: code.is_empty(),
                closes: code.starts_with(['}', ')', ']']) || code.starts_with("end"),
                declares: own.is_some_and(|own| own.is_body),
            });
        }
        let counts = count_words(words.words.iter().copied());
        Self {
            length: words.words.len() as u32,
            counts,
            words: OnceLock::from(words),
            packed: None,
            declarations,
            imports,
            imported,
            passages: cut_passages(&shapes),
        }
    }

    /// Encodes the document; [`Document::unpack`] decodes it.
    pub fn pack(&self, vocabulary: &Vocabulary) -> Vec<u8> {
        let LineWords { words, starts } = self.words();
        let mut numbers: HashMap<Word, u32> = HashMap::new();
        let mut names: Vec<(Word, u32)> = Vec::new();
        let mut lines = PackedWriter::default();
        for bounds in starts.windows(2) {
            let line = words.get(bounds[0] as usize..bounds[1] as usize).unwrap_or_default();
            lines.write_varint(line.len() as u32);
            for word in line {
                let number = *numbers.entry(*word).or_insert_with(|| {
                    names.push((*word, 0));
                    names.len() as u32 - 1
                });
                names[number as usize].1 += 1;
                lines.write_varint(number);
            }
        }
        let mut writer = PackedWriter::default();
        writer.write_varint(names.len() as u32);
        for (word, count) in &names {
            writer.write_str(vocabulary.name(*word));
            writer.write_varint(*count);
        }
        let number = |word: &Word| numbers.get(word).copied().unwrap_or(0);
        writer.write_varints(self.declarations.iter().map(|(line, _)| *line));
        writer.write_varints(self.declarations.iter().map(|(_, word)| number(word)));
        writer.write_varints(self.imports.iter().map(|is_import| u32::from(*is_import)));
        writer.write_varints(self.imported.iter().map(number));
        writer.write_varints(self.passages.iter().map(|passage| passage.end - passage.start));
        let mut bytes = writer.finish();
        bytes.extend(lines.finish());
        bytes
    }

    /// Decodes a packed document. Words get the same numbers as if the text were read again. Returns `None` for invalid
    /// bytes.
    pub fn unpack(bytes: &[u8], vocabulary: &mut Vocabulary) -> Option<Self> {
        let mut reader = PackedReader(bytes);
        let words = reader.read_count()?;
        let (mut names, mut counts, mut length) = (Vec::with_capacity(words), Vec::with_capacity(words), 0u32);
        for _ in 0..words {
            let word = vocabulary.intern(reader.read_str()?);
            let count = reader.read_varint()?;
            length = length.checked_add(count)?;
            names.push(word);
            counts.push((word, count));
        }
        counts.sort_unstable();
        let word = |number: u32| names.get(number as usize).copied();
        let lines = reader.read_varints()?;
        let declaring = reader.read_varints()?.into_iter().map(word).collect::<Option<Vec<Word>>>()?;
        let imports: Vec<bool> = reader.read_varints()?.into_iter().map(|is_import| is_import != 0).collect();
        let imported = reader.read_varints()?.into_iter().map(word).collect::<Option<Vec<Word>>>()?;
        let mut passages: Vec<Passage> = Vec::new();
        for length in reader.read_varints()? {
            let start = passages.last().map_or(0, |last| last.end);
            passages.push(Passage { start, end: start.checked_add(length)? });
        }
        let is_whole = passages.last().map_or(0, |last| last.end) as usize == imports.len();
        (is_whole && lines.len() == declaring.len()).then(|| Self {
            length,
            counts,
            words: OnceLock::new(),
            packed: Some(PackedWords { names, lines: reader.0.to_vec() }),
            declarations: lines.into_iter().zip(declaring).collect(),
            imports,
            imported,
            passages,
        })
    }

    fn words(&self) -> &LineWords {
        self.words.get_or_init(|| self.packed.as_ref().map(|packed| packed.unpack(self.length)).unwrap_or_default())
    }

    pub fn line_count(&self) -> u32 {
        self.imports.len() as u32
    }

    /// Returns the document length for BM25: words, repeated words included.
    pub fn word_count(&self) -> u32 {
        self.length
    }

    /// Returns the words of a 0-based line.
    pub fn line_words(&self, number: u32) -> &[Word] {
        let LineWords { words, starts } = self.words();
        let at = number as usize;
        let bounds = starts.get(at).zip(starts.get(at + 1));
        bounds.and_then(|(start, end)| words.get(*start as usize..*end as usize)).unwrap_or_default()
    }

    pub fn has_word(&self, word: Word) -> bool {
        self.counts.binary_search_by_key(&word, |(word, _)| *word).is_ok()
    }

    /// Returns the declared names without duplicates.
    pub fn declared_names(&self) -> Vec<Word> {
        let mut names: Vec<Word> = self.declarations.iter().map(|(_, word)| *word).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl PackedWords {
    fn unpack(&self, length: u32) -> LineWords {
        let mut unpacked = LineWords { words: Vec::with_capacity(length as usize), starts: vec![0] };
        let mut reader = PackedReader(&self.lines);
        while let Some(count) = reader.read_varint() {
            let words = (0..count).map_while(|_| self.names.get(reader.read_varint()? as usize));
            unpacked.words.extend(words);
            unpacked.starts.push(unpacked.words.len() as u32);
        }
        unpacked
    }
}

fn count_words(words: impl Iterator<Item = Word>) -> Vec<(Word, u32)> {
    let mut sorted: Vec<Word> = words.collect();
    sorted.sort_unstable();
    let mut counts: Vec<(Word, u32)> = Vec::new();
    for word in sorted {
        match counts.last_mut() {
            Some((last, count)) if *last == word => *count += 1,
            _ => counts.push((word, 1)),
        }
    }
    counts
}

/// Properties of a line that decide where a passage ends.
struct LineShape {
    is_blank: bool,
    closes: bool,
    declares: bool,
}

fn cut_passages(lines: &[LineShape]) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut start = 0;
    for (at, line) in lines.iter().enumerate().skip(1) {
        let length = at - start;
        let after_blank = lines[at - 1].is_blank && !line.closes;
        if length >= MAX_PASSAGE_LINES || length >= MIN_PASSAGE_LINES && (after_blank || line.declares) {
            passages.push(Passage { start: start as u32, end: at as u32 });
            start = at;
        }
    }
    if start < lines.len() {
        passages.push(Passage { start: start as u32, end: lines.len() as u32 });
    }
    passages
}

/// Returns true if a line imports another file or module.
fn is_import(code: &str) -> bool {
    const IMPORT_PREFIXES: [&str; 10] =
        ["import ", "use ", "from ", "#include", "require", "using ", "pub use ", "mod ", "pub mod ", "load "];
    IMPORT_PREFIXES.iter().any(|beginning| code.starts_with(beginning))
        || code.contains("require(")
        || code.starts_with("export ") && code.contains(" from ")
}

struct LineDeclaration<'a> {
    name: &'a str,
    /// True for a declaration with a body (function, type); false for a variable.
    is_body: bool,
}

/// Finds the declaration in a line with a heuristic for all languages. Good enough for ranking, and needs no parser.
fn find_declaration(code: &str, indent: usize) -> Option<LineDeclaration<'_>> {
    const BODY_KEYWORDS: [&str; 17] = [
        "fn",
        "def",
        "class",
        "function",
        "func",
        "struct",
        "enum",
        "trait",
        "interface",
        "type",
        "module",
        "impl",
        "macro_rules",
        "namespace",
        "record",
        "union",
        "package",
    ];
    const VALUE_KEYWORDS: [&str; 6] = ["const", "define", "static", "let", "var", "val"];
    const CONTROL_KEYWORDS: [&str; 24] = [
        "if", "for", "while", "switch", "catch", "return", "else", "elif", "with", "match", "foreach", "using", "lock",
        "unless", "until", "do", "try", "new", "throw", "await", "yield", "sizeof", "assert", "case",
    ];
    let is_comment =
        code.starts_with("//") || code.starts_with('*') || code.starts_with('#') && !code.starts_with("#define");
    if code.len() > MAX_LINE_BYTES || is_comment {
        return None;
    }
    let words: Vec<&str> = identifiers(code).take(8).collect();
    for pair in words.windows(2).take(6) {
        let (keyword, name) = (pair[0], pair[1]);
        let is_body = BODY_KEYWORDS.contains(&keyword);
        let is_local = matches!(keyword, "let" | "var" | "val") && indent > 0;
        if (is_body || VALUE_KEYWORDS.contains(&keyword))
            && !BODY_KEYWORDS.contains(&name)
            && !VALUE_KEYWORDS.contains(&name)
            && name != "mut"
        {
            return (!is_local).then_some(LineDeclaration { name, is_body });
        }
    }
    // A method without a keyword: `int size() {`, `async load(path) {`, `void run(`.
    let before = &code[..code.find('(')?];
    let opens = code.ends_with('{');
    let continues = code.ends_with([')', ',']) && before.trim().contains(' ');
    let is_plain = !before.contains(['.', '"', '\'', '=']) && !code.contains(" = ") && !code.contains("=>");
    let is_call = words.first().is_none_or(|first| CONTROL_KEYWORDS.contains(first));
    if is_call || !is_plain || !(opens || continues) {
        return None;
    }
    let name = identifiers(before).last().filter(|name| !CONTROL_KEYWORDS.contains(name))?;
    Some(LineDeclaration { name, is_body: true })
}
