//! What is told of the files that lead: their passages masked and counted, each found out once.
//!
//! Invariants: nothing that is told or kept holds a secret that [`Mask`] knows, or what a terminal obeys; what was kept
//! is the same as what would be found out, nothing that failed.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::slice;
use std::sync::Arc;

use super::chunk::{ChunkKind, Declaration, Extent, Syntax, syntax};
use super::imports::Tree;
use super::index::Index;
use super::library::content;
use super::mask::Mask;
use super::retrieve::SourceFile;
use super::retrieve::document::Document;
use super::retrieve::told::{Texts, Told};
use super::shelf::{Key, Reader, Shelf, Writer};
use super::text::{Text, visible};
use super::threads::{self, Begun};
use super::tokens::count;
use crate::domain::{Encoding, LineRange};
use crate::git::Repo;
use crate::provider::builtin::source::Parsers;

/// Bytes of what is kept: the texts of a few thousand files, and what they say.
const MOST_KEPT: u64 = 96 << 20;
/// To be raised with any change of masks, and of what a record holds.
const VERSION: &str = "10";

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
    /// What another thread finds out meanwhile: what files say, and their masked texts.
    expected: Cell<Option<ToFind<Unmasked, Syntax>>>,
    expected_texts: Cell<Option<Begun<(), Unmasked, Text>>>,
    /// Texts that were expected, and masked.
    masked: RefCell<HashMap<Place, (String, Text)>>,
}

/// A file and its text.
type Unmasked = (Place, String);

/// What another thread finds out of files.
type ToFind<T, F> = Begun<Parsers, T, Found<F>>;

/// What is known of a file before it is told.
enum Known {
    Told(Told),
    Text(String),
    /// Its text, and how another thread has masked it.
    Masked(String, Text),
    Nothing,
}

/// What was found out, and whether it is all that there is: a thread may have failed.
type Found<T> = (T, bool);

impl<'a> Telling<'a> {
    /// With what is kept in a folder.
    pub fn open(repo: &'a Repo, encoding: Encoding, folder: Option<&Path>) -> Self {
        let kept = Shelf::open(folder, "texts", MOST_KEPT);
        let (read, expected, expected_texts, masked) = Default::default();
        Self { repo, encoding, kept, index: None, read, expected, expected_texts, masked }
    }

    /// What files declare and import is told by an index where it has them.
    pub fn with_index(self, index: Option<&'a Index>) -> Self {
        Self { index, ..self }
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// What belongs to a file besides `more`. Masks depend on the path.
    fn key(&self, path: &str, blob: &str, more: &[&str]) -> Key {
        let encoding = format!("{:?}", self.encoding);
        let own = ["told", VERSION, Document::VERSION, &encoding, blob, path];
        Key::of(&[&own, more].concat())
    }

    /// A file as it is sent.
    pub fn told(&self, file: &SourceFile) -> Told {
        self.all_told(&[file], &|| false).pop().unwrap_or_default()
    }

    /// Files as they are sent, worked on by several threads; without their texts once it is cancelled.
    pub fn all_told(&self, files: &[&SourceFile], cancelled: &dyn Fn() -> bool) -> Vec<Told> {
        let encoding = self.encoding;
        let count = |text: &str| count(encoding, text);
        let mut all = Vec::with_capacity(files.len());
        for batch in files.chunks(AT_ONCE) {
            let is_over = cancelled();
            let known = batch.iter().map(|file| {
                let key = self.key(&file.path, &file.blob, &[]);
                let known = match self.kept.get(key).and_then(|bytes| unpack_told(&bytes)) {
                    Some(told) => Known::Told(told),
                    None if is_over => Known::Nothing,
                    None => self.text(file),
                };
                (*file, key, known)
            });
            let known: Vec<_> = known.collect();
            let tell = |(): &mut (), (file, _, known): &(&SourceFile, Key, Known)| match known {
                Known::Told(told) => told.clone(),
                Known::Text(text) => told(file, text, &masked_text(&file.path, text), &count),
                Known::Masked(text, masked) => told(file, text, masked, &count),
                Known::Nothing => Told::plain(&file.document, "", &count),
            };
            for (told, (_, key, known)) in threads::each(&known, || (), tell).into_iter().zip(&known) {
                if matches!(known, Known::Text(_) | Known::Masked(..)) {
                    self.kept.put(*key, pack_told(&told));
                }
                all.push(told);
            }
        }
        all
    }

    fn text(&self, file: &SourceFile) -> Known {
        let place = (file.path.clone(), file.blob.clone());
        if let Some(expected) = self.expected_texts.take() {
            match expected.things().iter().any(|(expected, _)| *expected == place) {
                true => {
                    let texts = expected.things().to_vec().into_iter().zip(expected.finish().unwrap_or_default());
                    self.masked.borrow_mut().extend(texts.map(|((place, text), masked)| (place, (text, masked))));
                }
                false => self.expected_texts.set(Some(expected)),
            }
        }
        match self.masked.borrow_mut().remove(&place) {
            Some((text, masked)) => Known::Masked(text, masked),
            None => content(self.repo, &file.blob).ok().flatten().map_or(Known::Nothing, Known::Text),
        }
    }

    /// Lets another thread mask files that will be told, while this one does something else.
    pub fn expect_texts(&self, places: &[Place]) {
        let is_new = |(path, blob): &&Place| !self.kept.has(self.key(path, blob, &[]));
        let text = |place: &Place| Some((place.clone(), content(self.repo, &place.1).ok().flatten()?));
        let unknown: Vec<Unmasked> = places.iter().filter(is_new).filter_map(text).collect();
        if !unknown.is_empty() {
            let find = |(): &mut (), ((path, _), text): &Unmasked| masked_text(path, text);
            self.expected_texts.set(Begun::new("masks", unknown, || (), find));
        }
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

    /// What a file says; no name holds a secret.
    pub fn syntax(&self, path: &str, blob: &str) -> Syntax {
        let place = (path.to_owned(), blob.to_owned());
        self.prepare(slice::from_ref(&place), &|| false);
        self.read.borrow().get(&place).cloned().unwrap_or_default()
    }

    /// Finds out what files declare and import, on several threads; some of them once it is cancelled. Of a file that git
    /// does not have it is nothing.
    pub fn prepare(&self, places: &[Place], cancelled: &dyn Fn() -> bool) {
        let unknown = self.unknown(places);
        if let Some(expected) = self.expected.take() {
            match expected.things().iter().any(|(place, _)| unknown.contains(place)) {
                true => self.take_over(expected),
                false => self.expected.set(Some(expected)),
            }
        }
        for places in self.unknown(&unknown).chunks(AT_ONCE) {
            if cancelled() {
                return;
            }
            let found = threads::each(&self.texts(places), Parsers::default, read);
            self.keep(places, found);
        }
    }

    /// Lets another thread find out what files declare and import, while this one does something else.
    pub fn expect(&self, places: &[Place]) {
        let places = self.unknown(places);
        if places.is_empty() {
            return;
        }
        // Without a thread they are found out when they are asked for.
        self.expected.set(Begun::new("syntax", self.texts(&places), Parsers::default, read));
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

    /// Files with their texts; empty ones of those that are not to be had.
    fn texts(&self, places: &[Place]) -> Vec<Unmasked> {
        let text = |place: &Place| (place.clone(), content(self.repo, &place.1).ok().flatten().unwrap_or_default());
        places.iter().map(text).collect()
    }

    /// A fault in the thread is everybody's: who asks again finds it as well.
    fn take_over(&self, expected: ToFind<Unmasked, Syntax>) {
        let places: Vec<Place> = expected.things().iter().map(|(place, _)| place.clone()).collect();
        self.keep(&places, expected.finish().unwrap_or_default());
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

    /// Keeps what was found out for the next question.
    pub fn close(self) {
        if let Some(expected) = self.expected.take().filter(Begun::is_finished) {
            self.take_over(expected);
        }
        self.kept.close();
    }
}

/// A file's text as it is sent.
fn told(file: &SourceFile, text: &str, masked: &Text, count: &dyn Fn(&str) -> usize) -> Told {
    let said = |first, last| {
        let lines = (first..=last).flat_map(|number| [visible(masked.line(number)), "\n".into()]);
        lines.collect::<String>()
    };
    Told::masked(&file.document, text, &said, count)
}

fn masked_text(path: &str, text: &str) -> Text {
    Text::new(path, text.as_bytes(), Mask::On)
}

fn read(parsers: &mut Parsers, ((path, _), text): &Unmasked) -> Found<Syntax> {
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
        chunks: found.chunks,
        declared: found.declared.iter().map(declaration).collect(),
        imports: found.imports.iter().map(masked).collect(),
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

fn pack_syntax(Syntax { chunks, declared, imports }: &Syntax) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.number(chunks.len() as u32);
    for Extent { kind, lines } in chunks.iter() {
        writer.text(kind.word());
        writer.number(lines.start);
        writer.number(lines.end);
    }
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
    let chunk = |reader: &mut Reader<'_>| {
        let kind: ChunkKind = reader.text()?.parse().ok()?;
        Some(Extent { kind, lines: LineRange::new(reader.number()?, reader.number()?) })
    };
    let chunks = (0..reader.count()?).map(|_| chunk(&mut reader)).collect::<Option<_>>()?;
    let imports = (0..reader.count()?).map(|_| reader.text().map(str::to_owned)).collect::<Option<_>>()?;
    let declaration = |reader: &mut Reader<'_>| {
        let kind: ChunkKind = reader.text()?.parse().ok()?;
        let (name, scope) = (reader.text()?.to_owned(), reader.text()?.to_owned());
        let mut lines = || Some(LineRange::new(reader.number()?, reader.number()?));
        Some(Declaration { kind, name, scope, lines: lines()?, head: lines()? })
    };
    let declared = (0..reader.count()?).map(|_| declaration(&mut reader)).collect::<Option<_>>()?;
    Some(Syntax { chunks, declared, imports })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::retrieve::words::Vocabulary;

    const TEXT: &str = "fn walk() {\n    // Why.\n    step();\n}\n";

    #[test]
    fn a_file_is_told_the_same_whichever_thread_masks_it_and_not_at_all_once_nobody_waits() {
        let (folder, kept) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let repo = Repo::discover(folder.path()).expect("a repository");
        let mut vocabulary = Vocabulary::default();
        let mut file = |number: usize| {
            let secret = concat!("q7Rt2Yp9", "Lk4Wn6Zc8");
            let text = format!("{TEXT}// {number}\nconst DB_PASSWORD: &str =\n    \"{secret}\";\n");
            SourceFile {
                path: format!("{number}.rs"),
                blob: git.blob(text.as_bytes()).expect("a blob").to_string(),
                document: Arc::new(Document::read(&text, &mut vocabulary)),
            }
        };
        let files: Vec<SourceFile> = (0..AT_ONCE + 4).map(&mut file).collect();
        let all: Vec<&SourceFile> = files.iter().collect();
        let telling = || Telling::open(&repo, Encoding::O200kBase, Some(kept.path()));
        assert!(telling().all_told(&all, &|| true).iter().all(|told| told.texts.all.is_empty()));
        let alone: Vec<Told> = files.iter().map(|file| telling().told(file)).collect();
        let beside = telling();
        // The last one is of a file that nobody asks for.
        let place = |file: &SourceFile| (file.path.clone(), file.blob.clone());
        beside.expect_texts(
            &files[..3].iter().map(place).chain([("x.rs".to_owned(), "0".repeat(40))]).collect::<Vec<_>>(),
        );
        assert_eq!(beside.all_told(&all, &|| false), alone);
        beside.close();
        assert_eq!(telling().all_told(&all, &|| true), alone, "what is kept costs no time");
        let is_masked = |told: &Told| told.texts.all.contains("«secret»") && !told.texts.all.contains("q7Rt2Yp9");
        assert!(alone.iter().all(is_masked), "{}", alone[0].texts.all);
    }

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
            telling.keep(std::slice::from_ref(&place), vec![read(&mut parsers, &(place.clone(), TEXT.to_owned()))]);
            telling.close();
            assert_eq!(open().unknown(std::slice::from_ref(&place)).is_empty(), is_found);
        }
    }
}
