//! What is told of the files that lead: their passages masked, counted and compressed, each found out once.
//!
//! Invariants: nothing that is told or kept holds a secret that [`Mask`] knows, or what a terminal obeys; what was kept
//! is the same as what would be found out, nothing that failed; a compressed file has as many lines as the file.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::slice;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::chunk::{ChunkKind, Declaration, Syntax, syntax};
use super::compress::{Cuts, Strength};
use super::imports::Tree;
use super::index::Index;
use super::library::content;
use super::mask::Mask;
use super::retrieve::document::Document;
use super::retrieve::told::{Texts, Told};
use super::retrieve::{RankedFile, SourceFile};
use super::shelf::{Key, Reader, Shelf, Writer};
use super::text::{Text, visible};
use super::threads;
use super::tokens::count;
use crate::domain::{Encoding, LineRange};
use crate::git::Repo;
use crate::provider::builtin::source::Parsers;

/// Bytes of kept texts: those of a few thousand files, each in up to four strengths.
const MOST_KEPT: u64 = 96 << 20;
/// To be raised with any change of masks, of what is compressed how, and of what a record holds.
const VERSION: &str = "6";

/// So many files are worked on before it is looked whether anybody waits.
const AT_ONCE: usize = 16;

/// A file: its path and its blob.
pub type Place = (String, String);

/// Finds out what is told.
pub struct Telling<'a> {
    repo: &'a Repo,
    encoding: Encoding,
    kept: Shelf,
    index: Option<&'a Index>,
    read: RefCell<HashMap<Place, Syntax>>,
    /// What another thread finds out meanwhile.
    expected: Cell<Option<Expected>>,
}

/// Files, and what they say.
struct Expected {
    places: Vec<Place>,
    found: JoinHandle<Vec<Found<Syntax>>>,
}

/// What was found out, and whether it is all that there is: a thread may have failed.
type Found<T> = (T, bool);

impl<'a> Telling<'a> {
    /// With what is kept in a folder.
    pub fn open(repo: &'a Repo, encoding: Encoding, folder: Option<&Path>) -> Self {
        let kept = Shelf::open(folder, "texts", MOST_KEPT);
        Self { repo, encoding, kept, index: None, read: RefCell::default(), expected: Cell::default() }
    }

    /// What files declare and import is told by an index where it has them.
    pub fn with_index(self, index: Option<&'a Index>) -> Self {
        Self { index, ..self }
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
        let said = |first, last| {
            let lines = (first..=last).flat_map(|number| [visible(masked.line(number)), "\n".into()]);
            lines.collect::<String>()
        };
        let told = Told::masked(&file.document, &text, &said, &|text| self.count(text));
        self.kept.put(key, pack_told(&told));
        told
    }

    /// What a file declares, by its syntax tree; no name holds a secret.
    pub fn declarations(&self, path: &str, blob: &str) -> Arc<[Declaration]> {
        self.syntax(path, blob).declared
    }

    /// What each of some files imports of a tree, by path; nothing of those without a place, and of some once it is
    /// cancelled.
    pub fn imported(
        &self,
        tree: &Tree<'_>,
        paths: &[&str],
        place: &dyn Fn(&str) -> Option<Place>,
        cancelled: &dyn Fn() -> bool,
    ) -> Vec<Vec<String>> {
        self.prepare(&paths.iter().filter_map(|path| place(path)).collect::<Vec<_>>(), cancelled);
        let of = |path: &&str| match place(path).filter(|_| !cancelled()) {
            Some((path, blob)) => tree.imported(&path, &self.syntax(&path, &blob).imports),
            None => Vec::new(),
        };
        paths.iter().map(of).collect()
    }

    fn syntax(&self, path: &str, blob: &str) -> Syntax {
        let place = (path.to_owned(), blob.to_owned());
        self.prepare(slice::from_ref(&place), &|| false);
        self.read.borrow().get(&place).cloned().unwrap_or_default()
    }

    /// Finds out what files declare and import, on several threads; some of them once it is cancelled. Of a file that git
    /// does not have it is nothing.
    pub fn prepare(&self, places: &[Place], cancelled: &dyn Fn() -> bool) {
        let unknown = self.unknown(places);
        if let Some(expected) = self.expected.take() {
            match unknown.iter().any(|place| expected.places.contains(place)) {
                true => self.take_over(expected),
                false => self.expected.set(Some(expected)),
            }
        }
        for places in self.unknown(&unknown).chunks(AT_ONCE) {
            if cancelled() {
                return;
            }
            let texts = self.texts(places);
            let find = |parsers: &mut Parsers, (path, text): &(String, String)| read(parsers, path, text);
            let found = threads::each(&texts, Parsers::default, find);
            self.keep(places, found);
        }
    }

    /// Lets another thread find out what files declare and import, while this one does something else.
    pub fn expect(&self, places: &[Place]) {
        let places = self.unknown(places);
        if places.is_empty() {
            return;
        }
        let texts = self.texts(&places);
        let find = move || {
            let mut parsers = Parsers::default();
            texts.iter().map(|(path, text)| read(&mut parsers, path, text)).collect()
        };
        // Without a thread they are found out when they are asked for.
        let found = thread::Builder::new().name("syntax".to_owned()).spawn(find);
        self.expected.set(found.ok().map(|found| Expected { places, found }));
    }

    /// Those of some files of which is not known what they say, each once.
    fn unknown(&self, places: &[Place]) -> Vec<Place> {
        let mut read = self.read.borrow_mut();
        let mut unknown: Vec<Place> = Vec::new();
        let mut seen: HashSet<&Place> = HashSet::new();
        for place in places.iter().filter(|place| seen.insert(place)) {
            if read.contains_key(place) {
                continue;
            }
            let kept = || self.kept.get(self.syntax_key(place)).and_then(|bytes| unpack_syntax(&bytes));
            match self.indexed(place).or_else(kept) {
                Some(found) => drop(read.insert(place.clone(), found)),
                None => unknown.push(place.clone()),
            }
        }
        unknown
    }

    /// What the index knows of a file; a damaged one knows nothing, and is rebuilt by whoever refreshes it.
    fn indexed(&self, (path, blob): &Place) -> Option<Syntax> {
        let found = self.index?.syntax(path, blob);
        found.inspect_err(|error| tracing::warn!("the index is of no use: {error}")).ok()?.map(masked)
    }

    fn syntax_key(&self, (path, blob): &Place) -> Key {
        self.key(path, blob, &["syntax"])
    }

    /// The paths and texts of files.
    fn texts(&self, places: &[Place]) -> Vec<(String, String)> {
        let text = |(path, blob): &Place| (path.clone(), content(self.repo, blob).ok().flatten().unwrap_or_default());
        places.iter().map(text).collect()
    }

    /// A fault in the thread is everybody's: who asks again finds it as well.
    fn take_over(&self, Expected { places, found }: Expected) {
        if let Ok(found) = found.join() {
            self.keep(&places, found);
        }
    }

    fn keep(&self, places: &[Place], found: Vec<Found<Syntax>>) {
        for (place, (found, is_sound)) in places.iter().zip(found) {
            // What git does not have may come.
            if is_sound && self.repo.blob_size(&place.1).is_ok() {
                self.kept.put(self.syntax_key(place), pack_syntax(&found));
            }
            self.read.borrow_mut().insert(place.clone(), found);
        }
    }

    /// The passages of files, each compressed as a whole, on several threads; of some of them once it is cancelled.
    /// Functions on needed lines keep their bodies.
    pub fn compressed(&self, files: &[Asked<'_>], strength: Strength, cancelled: &dyn Fn() -> bool) -> Vec<Texts> {
        let encoding = self.encoding;
        let mut found = Vec::with_capacity(files.len());
        for batch in files.chunks(AT_ONCE) {
            if cancelled() {
                break;
            }
            let kept = |key: Key| self.kept.get(key).and_then(|bytes| Cuts::read(&mut Reader(&bytes)));
            let keyed = batch.iter().map(|asked| (asked, self.key(&asked.0.path, &asked.0.blob, &["cuts"])));
            let keyed: Vec<_> = keyed.map(|(asked, key)| (asked, key, kept(key))).collect();
            let shorten = |parsers: &mut Parsers, ((file, needed), _, kept): &(&Asked<'_>, Key, Option<Cuts>)| {
                let text = &file.told.texts.all;
                let is_needed = |start, end| needed.iter().any(|lines| lines.overlaps(LineRange::new(start, end)));
                let new = kept.is_none().then(|| cuts(parsers, file));
                let known = kept.as_ref().or(new.as_ref().map(|(cuts, _)| cuts));
                let taken = |cuts: &Cuts| cuts.taken_from((parsers, &file.path, text), strength, &is_needed);
                let shorter = known.map_or_else(|| text.to_string(), taken);
                (in_passages(&shorter, file, &|text| count(encoding, text)), new)
            };
            for ((_, key, _), (texts, new)) in keyed.iter().zip(threads::each(&keyed, Parsers::default, shorten)) {
                if let Some((cuts, true)) = new {
                    let mut writer = Writer::default();
                    cuts.write(&mut writer);
                    self.kept.put(*key, writer.finish());
                }
                found.push(texts);
            }
        }
        found
    }

    /// Keeps what was found out for the next question.
    pub fn close(self) {
        if let Some(expected) = self.expected.take().filter(|expected| expected.found.is_finished()) {
            self.take_over(expected);
        }
        self.kept.close();
    }
}

fn read(parsers: &mut Parsers, path: &str, text: &str) -> Found<Syntax> {
    let found = masked(syntax(parsers, path, text));
    (found, !parsers.has_failed())
}

/// Tests may be called by any text, and by what looks like a key; so may what is imported.
fn masked(found: Syntax) -> Syntax {
    let names = |found: &Declaration| format!("{}\n{}\n", found.name, found.scope);
    let mut all: String = found.declared.iter().map(names).collect();
    found.imports.iter().for_each(|import| all.extend([import, "\n"]));
    if matches!(Mask::On.shapes(&all), Cow::Borrowed(_)) {
        return found;
    }
    let masked = |name: &String| Mask::On.shapes(name).into_owned();
    let declaration =
        |one: &Declaration| Declaration { name: masked(&one.name), scope: masked(&one.scope), ..one.clone() };
    Syntax {
        declared: found.declared.iter().map(declaration).collect(),
        imports: found.imports.iter().map(masked).collect(),
    }
}

/// A file to be compressed, and lines that are needed.
type Asked<'a> = (&'a RankedFile, &'a [LineRange]);

/// What can be taken away from a file's text.
fn cuts(parsers: &mut Parsers, file: &RankedFile) -> Found<Cuts> {
    let cuts = Cuts::of(parsers, &file.path, &file.told.texts.all);
    (cuts, !parsers.has_failed())
}

/// A file's text, of as many lines as its own, by its passages.
fn in_passages(text: &str, file: &RankedFile, count: &dyn Fn(&str) -> usize) -> Texts {
    let mut rest = text;
    let passages = file.document.passages.iter().map(|place| {
        let line_ends = memchr::memchr_iter(b'\n', rest.as_bytes());
        let end = line_ends.map(|at| at + 1).nth((place.end - place.start).saturating_sub(1) as usize);
        let (passage, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        passage
    });
    Texts::of(passages, count)
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

fn pack_syntax(Syntax { declared, imports }: &Syntax) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.number(imports.len() as u32);
    imports.iter().for_each(|import| writer.text(import));
    writer.number(declared.len() as u32);
    for Declaration { kind, name, scope, lines, head } in declared.iter() {
        for text in [kind.word(), name, scope] {
            writer.text(text);
        }
        for number in [lines.start, lines.end, head.start, head.end] {
            writer.number(number);
        }
    }
    writer.finish()
}

fn unpack_syntax(bytes: &[u8]) -> Option<Syntax> {
    let mut reader = Reader(bytes);
    let imports = (0..reader.count()?).map(|_| reader.text().map(str::to_owned)).collect::<Option<_>>()?;
    let declaration = |reader: &mut Reader<'_>| {
        let kind: ChunkKind = reader.text()?.parse().ok()?;
        let (name, scope) = (reader.text()?.to_owned(), reader.text()?.to_owned());
        let mut lines = || Some(LineRange::new(reader.number()?, reader.number()?));
        Some(Declaration { kind, name, scope, lines: lines()?, head: lines()? })
    };
    let declared = (0..reader.count()?).map(|_| declaration(&mut reader)).collect::<Option<_>>()?;
    Some(Syntax { declared, imports })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::retrieve::factors::FileFactors;
    use crate::context::retrieve::words::Vocabulary;

    const TEXT: &str = "fn walk() {\n    // Why.\n    step();\n}\n";

    #[test]
    fn what_failed_is_not_kept() {
        let (folder, kept) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let blob = git.blob(TEXT.as_bytes()).expect("a blob").to_string();
        let repo = Repo::discover(folder.path()).expect("a repository");
        let open = || Telling::open(&repo, Encoding::O200kBase, Some(kept.path()));
        let place = ("a.rs".to_owned(), blob.clone());
        for (parsers, is_found) in [(Parsers::without_a_thread(), false), (Parsers::default(), true)] {
            let telling = open();
            let mut parsers = parsers;
            telling.keep(std::slice::from_ref(&place), vec![read(&mut parsers, "a.rs", TEXT)]);
            telling.close();
            assert_eq!(open().unknown(std::slice::from_ref(&place)).is_empty(), is_found);
        }
        let document = Arc::new(Document::read(TEXT, &mut Vocabulary::default()));
        let file = RankedFile {
            path: "a.rs".to_owned(),
            blob,
            told: Told::plain(&document, TEXT, &str::len),
            document,
            probability: 0.5,
            factors: FileFactors::default(),
            passages: Vec::new(),
        };
        let short = |mut parsers: Parsers| {
            let (cuts, is_kept) = cuts(&mut parsers, &file);
            (cuts.taken_from((&mut parsers, "a.rs", TEXT), Strength::Light, &|_, _| false), is_kept)
        };
        assert_eq!(short(Parsers::without_a_thread()), (TEXT.to_owned(), false));
        let (text, is_sound) = short(Parsers::default());
        assert!(!text.contains("Why") && is_sound);
        for is_known in [false, true] {
            let telling = open();
            let key = telling.key("a.rs", &file.blob, &["cuts"]);
            assert_eq!(telling.kept.get(key).is_some(), is_known, "what can be taken away is found out once");
            let texts = telling.compressed(&[(&file, &[])], Strength::Light, &|| false);
            assert!(texts.len() == 1 && &*texts[0].all == text.as_str());
            telling.close();
        }
    }
}
