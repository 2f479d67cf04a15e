//! A file as the ranking sees it: its words by line, what it declares and imports, and the passages it is cut into.
//!
//! Invariants: the passages of a document cover all of its lines, in order, each line once; reading takes time by the
//! text's length whatever it is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::words::{MAX_LINE, Vocabulary, Word, identifiers};

/// A passage has at most so many lines: measured with 5, 8, 10 and 16; shorter ones find fewer lines for the same price
/// because each stands alone, longer ones pay for lines that nobody changed.
const MOST_LINES: usize = 8;
/// A blank line or a declaration ends a passage that has so many lines.
const FEWEST_LINES: usize = 3;

/// Where a passage is: lines from 0, the end not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    pub start: u32,
    pub end: u32,
}

/// A file's words.
#[derive(Debug)]
pub struct Document {
    text: Arc<str>,
    /// Where each line begins; and the end of the text.
    starts: Vec<u32>,
    words: Vec<Word>,
    /// Where the words of each line begin; and their number.
    word_starts: Vec<u32>,
    /// How often each word stands in it, by word.
    pub counts: Vec<(Word, u32)>,
    /// The same of the parts of words.
    pub part_counts: Vec<(Word, u32)>,
    /// Names with the lines that declare them, by line.
    pub declared: Vec<(u32, Word)>,
    /// By line, whether it imports something.
    pub imports: Vec<bool>,
    pub passages: Vec<Passage>,
}

impl Document {
    pub fn read(text: &str, vocabulary: &mut Vocabulary) -> Self {
        let mut document = Self {
            text: text.into(),
            starts: vec![0],
            words: Vec::new(),
            word_starts: vec![0],
            counts: Vec::new(),
            part_counts: Vec::new(),
            declared: Vec::new(),
            imports: Vec::new(),
            passages: Vec::new(),
        };
        let mut shapes = Vec::new();
        for line in text.split_inclusive('\n') {
            let number = shapes.len() as u32;
            document.starts.push(document.starts.last().copied().unwrap_or(0) + line.len() as u32);
            let before = document.words.len();
            document.words.extend(identifiers(line).map(|name| vocabulary.word(name)));
            document.word_starts.push(document.words.len() as u32);
            let code = line.trim();
            let imports = is_import(code);
            let declared = match imports || document.words.len() == before {
                true => None,
                false => declaration(code, line.len() - line.trim_start().len()),
            };
            if let Some(declared) = &declared {
                document.declared.push((number, vocabulary.word(declared.name)));
            }
            document.imports.push(imports);
            shapes.push(Shape {
                is_blank: code.is_empty(),
                closes: code.starts_with(['}', ')', ']']) || code.starts_with("end"),
                declares: declared.is_some_and(|declared| declared.is_body),
            });
        }
        document.passages = cut(&shapes);
        document.counts = counted(document.words.iter().copied());
        let parts = document.counts.iter();
        let mut by_part: HashMap<Word, u32> = HashMap::new();
        for (word, count) in parts {
            for part in vocabulary.parts(*word) {
                *by_part.entry(*part).or_default() += count;
            }
        }
        document.part_counts = by_part.into_iter().collect();
        document.part_counts.sort_unstable();
        document
    }

    pub fn lines(&self) -> u32 {
        self.imports.len() as u32
    }

    /// The length for BM25: words, repeated ones included.
    pub fn length(&self) -> u32 {
        self.words.len() as u32
    }

    /// The words of a line, counted from 0.
    pub fn line(&self, number: u32) -> &[Word] {
        let at = number as usize;
        let bounds = self.word_starts.get(at).zip(self.word_starts.get(at + 1));
        bounds.and_then(|(start, end)| self.words.get(*start as usize..*end as usize)).unwrap_or_default()
    }

    /// The text of lines, from 0, the end not included.
    pub fn text(&self, start: u32, end: u32) -> &str {
        let at = |line: u32| self.starts.get(line as usize).copied().unwrap_or(self.text.len() as u32) as usize;
        self.text.get(at(start)..at(end)).unwrap_or_default()
    }

    pub fn has(&self, word: Word) -> bool {
        self.counts.binary_search_by_key(&word, |(word, _)| *word).is_ok()
    }

    /// Whether one of the lines, from 0, declares a type.
    pub fn declares_type(&self, start: u32, end: u32) -> bool {
        const TYPES: [&str; 9] =
            ["class", "struct", "enum", "trait", "interface", "type", "record", "union", "typedef"];
        (start..end).any(|line| {
            let code = self.text(line, line + 1);
            self.declared.iter().any(|(at, _)| *at == line)
                && identifiers(code).take(5).any(|word| TYPES.contains(&word))
        })
    }

    /// The names that it declares, each once.
    pub fn names(&self) -> HashSet<Word> {
        self.declared.iter().map(|(_, word)| *word).collect()
    }
}

fn counted(words: impl Iterator<Item = Word>) -> Vec<(Word, u32)> {
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

/// What a line means for where passages end.
struct Shape {
    is_blank: bool,
    closes: bool,
    declares: bool,
}

fn cut(lines: &[Shape]) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut start = 0;
    for (at, line) in lines.iter().enumerate().skip(1) {
        let length = at - start;
        let after_blank = lines[at - 1].is_blank && !line.closes;
        if length >= MOST_LINES || length >= FEWEST_LINES && (after_blank || line.declares) {
            passages.push(Passage { start: start as u32, end: at as u32 });
            start = at;
        }
    }
    if start < lines.len() {
        passages.push(Passage { start: start as u32, end: lines.len() as u32 });
    }
    passages
}

/// Whether a line names another file or module.
fn is_import(code: &str) -> bool {
    const BEGINNINGS: [&str; 10] =
        ["import ", "use ", "from ", "#include", "require", "using ", "pub use ", "mod ", "pub mod ", "load "];
    BEGINNINGS.iter().any(|beginning| code.starts_with(beginning))
        || code.contains("require(")
        || code.starts_with("export ") && code.contains(" from ")
}

struct Declared<'a> {
    name: &'a str,
    /// Something with a body: a function, a type, not a variable.
    is_body: bool,
}

/// What a line declares, by the looks of it, in any language: good enough to rank by, and it needs no parser.
fn declaration(code: &str, indent: usize) -> Option<Declared<'_>> {
    const BODIES: [&str; 17] = [
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
    const VALUES: [&str; 6] = ["const", "define", "static", "let", "var", "val"];
    const NOT_CALLED: [&str; 24] = [
        "if", "for", "while", "switch", "catch", "return", "else", "elif", "with", "match", "foreach", "using", "lock",
        "unless", "until", "do", "try", "new", "throw", "await", "yield", "sizeof", "assert", "case",
    ];
    let is_comment =
        code.starts_with("//") || code.starts_with('*') || code.starts_with('#') && !code.starts_with("#define");
    if code.len() > MAX_LINE || is_comment {
        return None;
    }
    let words: Vec<&str> = identifiers(code).take(8).collect();
    for pair in words.windows(2).take(6) {
        let (keyword, name) = (pair[0], pair[1]);
        let is_body = BODIES.contains(&keyword);
        let is_local = matches!(keyword, "let" | "var" | "val") && indent > 0;
        if (is_body || VALUES.contains(&keyword)) && !BODIES.contains(&name) && !VALUES.contains(&name) && name != "mut"
        {
            return (!is_local).then_some(Declared { name, is_body });
        }
    }
    // A method without a keyword: `int size() {`, `async load(path) {`, `void run(`.
    let before = &code[..code.find('(')?];
    let opens = code.ends_with('{');
    let continues = code.ends_with([')', ',']) && before.trim().contains(' ');
    let is_plain = !before.contains(['.', '"', '\'', '=']) && !code.contains(" = ") && !code.contains("=>");
    let is_call = words.first().is_none_or(|first| NOT_CALLED.contains(first));
    if is_call || !is_plain || !(opens || continues) {
        return None;
    }
    let name = identifiers(before).last().filter(|name| !NOT_CALLED.contains(name))?;
    Some(Declared { name, is_body: true })
}
