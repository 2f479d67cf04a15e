//! What is told of the files that lead: their passages masked, counted and compressed, each found out once.
//!
//! Invariants: nothing that is told or kept holds a secret that [`Mask`] knows; what was kept is the same as what would
//! be found out; a compressed file has as many lines as the file.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::chunk::{ChunkKind, Declaration, declarations};
use super::compress::{Strength, compress};
use super::library::content;
use super::mask::Mask;
use super::retrieve::document::Document;
use super::retrieve::told::{Texts, Told};
use super::retrieve::{RankedFile, SourceFile};
use super::shelf::{Key, Reader, Shelf, Writer};
use super::text::Text;
use super::tokens::count;
use crate::domain::{Encoding, LineRange};
use crate::git::Repo;
use crate::provider::builtin::source::Parsers;

/// Bytes of kept texts: those of a few thousand files, each in up to four strengths.
const MOST_KEPT: u64 = 96 << 20;
/// To be raised with any change of masks, of what is compressed how, and of what a record holds.
const VERSION: &str = "2";

/// What files declare, by path and blob.
type Declared = HashMap<(String, String), Arc<[Declaration]>>;

/// Finds out what is told.
pub struct Telling<'a> {
    repo: &'a Repo,
    encoding: Encoding,
    kept: Shelf,
    parsers: RefCell<Parsers>,
    declared: RefCell<Declared>,
}

impl<'a> Telling<'a> {
    /// With what is kept in a folder.
    pub fn open(repo: &'a Repo, encoding: Encoding, folder: Option<&Path>) -> Self {
        let kept = Shelf::open(folder, "texts", MOST_KEPT);
        Self { repo, encoding, kept, parsers: RefCell::default(), declared: RefCell::default() }
    }

    fn count(&self, text: &str) -> usize {
        count(self.encoding, text)
    }

    /// What belongs to a file besides `more`. Masks depend on the path.
    fn key(&self, path: &str, blob: &str, more: &[&str]) -> Key {
        let encoding = format!("{:?}", self.encoding);
        let own = ["told", VERSION, Document::VERSION, &encoding, blob, path];
        Key::of(&[&own, more].concat())
    }

    /// A file as it is sent.
    pub fn told(&self, file: &SourceFile) -> Told {
        let key = self.key(&file.path, &file.blob, &[]);
        if let Some(told) = self.kept.get(key).and_then(|bytes| unpack_told(&bytes)) {
            return told;
        }
        let Ok(Some(text)) = content(self.repo, &file.blob) else {
            return Told::plain(&file.document, "", &|text| self.count(text));
        };
        let masked = Text::new(&file.path, text.as_bytes(), Mask::On);
        let said = |first, last| masked.lines_of(LineRange::new(first, last));
        let told = Told::masked(&file.document, &text, &said, &|text| self.count(text));
        self.kept.put(key, pack_told(&told));
        told
    }

    /// What a file declares, by its syntax tree; no name holds a secret.
    pub fn declarations(&self, path: &str, blob: &str) -> Arc<[Declaration]> {
        let place = (path.to_owned(), blob.to_owned());
        if let Some(known) = self.declared.borrow().get(&place) {
            return Arc::clone(known);
        }
        let key = self.key(path, blob, &["declarations"]);
        let kept = self.kept.get(key).and_then(|bytes| unpack_declarations(&bytes));
        let found: Arc<[Declaration]> = match kept {
            Some(found) => found.into(),
            None => match content(self.repo, blob) {
                Ok(text) => {
                    let text = text.unwrap_or_default();
                    let mut found = declarations(&mut self.parsers.borrow_mut(), path, &text);
                    for declaration in &mut found {
                        // Tests may be called by any text.
                        for name in [&mut declaration.name, &mut declaration.scope] {
                            *name = Mask::On.shapes(name).into_owned();
                        }
                    }
                    self.kept.put(key, pack_declarations(&found));
                    found.into()
                }
                Err(_) => Arc::default(),
            },
        };
        self.declared.borrow_mut().insert(place, Arc::clone(&found));
        found
    }

    /// The passages of a file, compressed as a whole. Functions on needed lines keep their bodies.
    pub fn compressed(
        &self,
        parsers: &mut Parsers,
        file: &RankedFile,
        strength: Strength,
        needed: &[LineRange],
    ) -> Arc<Texts> {
        let needed = if strength == Strength::Strong { needed } else { &[] };
        let lines: Vec<String> = needed.iter().map(|lines| format!("{}-{}", lines.start, lines.end)).collect();
        let key = self.key(&file.path, &file.blob, &[strength.word(), &lines.join(" ")]);
        if let Some(texts) = self.kept.get(key).and_then(|bytes| unpack_texts(&mut Reader(&bytes))) {
            return Arc::new(texts);
        }
        let is_needed = |start, end| needed.iter().any(|lines| lines.overlaps(LineRange::new(start, end)));
        let shorter = compress(parsers, &file.path, &file.told.texts.all, strength, &is_needed);
        let mut rest = shorter.as_str();
        let passages = file.document.passages.iter().map(|place| {
            let line_ends = memchr::memchr_iter(b'\n', rest.as_bytes());
            let end = line_ends.map(|at| at + 1).nth((place.end - place.start).saturating_sub(1) as usize);
            let (passage, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            passage
        });
        let texts = Texts::of(passages, &|text| self.count(text));
        let mut writer = Writer::default();
        pack_texts(&mut writer, &texts);
        self.kept.put(key, writer.finish());
        Arc::new(texts)
    }

    /// Keeps what was found out for the next question.
    pub fn close(self) {
        self.kept.close();
    }
}

fn pack_texts(writer: &mut Writer, texts: &Texts) {
    writer.text(&texts.all);
    writer.numbers(texts.ends.iter().copied());
    writer.numbers(texts.tokens.iter().copied());
}

fn unpack_texts(reader: &mut Reader<'_>) -> Option<Texts> {
    let texts = Texts { all: reader.text()?.into(), ends: reader.numbers()?, tokens: reader.numbers()? };
    (texts.ends.len() == texts.tokens.len()).then_some(texts)
}

fn pack_told(told: &Told) -> Vec<u8> {
    let mut writer = Writer::default();
    pack_texts(&mut writer, &told.texts);
    writer.numbers(told.tokens.iter().copied());
    writer.numbers(told.types.iter().map(|is_type| u32::from(*is_type)));
    writer.finish()
}

fn unpack_told(bytes: &[u8]) -> Option<Told> {
    let mut reader = Reader(bytes);
    let texts = Arc::new(unpack_texts(&mut reader)?);
    let tokens = reader.numbers()?;
    let types = reader.numbers()?.into_iter().map(|is_type| is_type != 0).collect();
    Some(Told { texts, tokens, types })
}

fn pack_declarations(declarations: &[Declaration]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.number(declarations.len() as u32);
    for Declaration { kind, name, scope, lines, head } in declarations {
        for text in [kind.word(), name, scope] {
            writer.text(text);
        }
        for number in [lines.start, lines.end, head.start, head.end] {
            writer.number(number);
        }
    }
    writer.finish()
}

fn unpack_declarations(bytes: &[u8]) -> Option<Vec<Declaration>> {
    let mut reader = Reader(bytes);
    let declaration = |reader: &mut Reader<'_>| {
        let kind: ChunkKind = reader.text()?.parse().ok()?;
        let (name, scope) = (reader.text()?.to_owned(), reader.text()?.to_owned());
        let mut lines = || Some(LineRange::new(reader.number()?, reader.number()?));
        Some(Declaration { kind, name, scope, lines: lines()?, head: lines()? })
    };
    (0..reader.count()?).map(|_| declaration(&mut reader)).collect()
}
