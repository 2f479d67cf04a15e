//! Analyzes files for the context and caches the results: masked passages with token counts, declarations and imports.
//!
//! Invariants:
//! - Nothing that is sent or cached holds a secret that [`Mask`] detects or a character that controls a terminal.
//! - A cached result equals a new one. Failed results are not cached.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::slice;
use std::sync::Arc;

use super::background_map::BackgroundMap;
use super::import_resolver::ImportResolver;
use super::retrieve::masked_text::{MaskedFile, PassageTexts};
use super::text::{BlobText, escape_unsafe};
use crate::domain::{Encoding, LineRange};
use crate::git::Repo;
use crate::index::Index;
use crate::index::chunk;
use crate::index::chunk::{ChunkExtent, ChunkKind, Declaration, FileSyntax};
use crate::index::codec::{PackedReader, PackedWriter};
use crate::index::document::Document;
use crate::index::document_store::SourceFile;
use crate::index::document_store::read_text;
use crate::index::fact_store::{FactKey, FactStore};
use crate::masking::Mask;
use crate::parallel;
use crate::syntax::source::Parsers;
use crate::tokens::count_tokens;

/// Maximum size of the cache in bytes: the texts and syntax of a few thousand files.
const MAX_CACHE_BYTES: u64 = 96 << 20;
/// Version of the cached records. Raise it with any change of the masks or of the content of a record.
const CACHE_VERSION: &str = "11";

/// Number of files between two checks for cancellation.
const FILES_PER_BATCH: usize = 16;

/// Path and blob id of a file.
pub type FileVersion = (String, String);

/// Analyzes files and caches the results.
pub struct FileAnalyzer<'a> {
    repo: &'a Repo,
    encoding: Encoding,
    cache: FactStore,
    index: Option<&'a Index>,
    syntax_by_file: RefCell<HashMap<FileVersion, FileSyntax>>,
    /// Results that a background thread computes: syntax of files, and masked texts.
    pending_syntax: Cell<Option<BackgroundAnalysis<FileVersionText, FileSyntax>>>,
    pending_texts: Cell<Option<BackgroundMap<(), FileVersionText, BlobText>>>,
    /// Texts masked by a background thread, with their originals.
    masked_texts: RefCell<HashMap<FileVersion, (String, BlobText)>>,
}

/// A file and its original text.
type FileVersionText = (FileVersion, String);

/// Analysis that runs in a background thread.
type BackgroundAnalysis<T, F> = BackgroundMap<Parsers, T, AnalysisResult<F>>;

/// Available input for a file's masked passages.
enum MaskingInput {
    Cached(MaskedFile),
    Text(String),
    /// Original text, and the text that a background thread masked.
    Masked(String, BlobText),
    Missing,
}

/// Result, and true if it is complete. It is incomplete if a parser thread failed.
type AnalysisResult<T> = (T, bool);

impl<'a> FileAnalyzer<'a> {
    /// Opens the analyzer with the cache in `folder`.
    pub fn open(repo: &'a Repo, encoding: Encoding, folder: Option<&Path>) -> Self {
        let cache = FactStore::open(folder, "texts", MAX_CACHE_BYTES);
        let (syntax_by_file, pending_syntax, pending_texts, masked_texts) = Default::default();
        Self { repo, encoding, cache, index: None, syntax_by_file, pending_syntax, pending_texts, masked_texts }
    }

    /// Sets an index, which then supplies the syntax of files that it holds.
    pub fn with_index(self, index: Option<&'a Index>) -> Self {
        Self { index, ..self }
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns the cache key of a file, with `more` as further parts. The path is included because masks depend on it.
    fn key(&self, path: &str, blob: &str, more: &[&str]) -> FactKey {
        let encoding = format!("{:?}", self.encoding);
        let own = ["told", CACHE_VERSION, Document::VERSION, &encoding, blob, path];
        FactKey::from_parts(&[&own, more].concat())
    }

    /// Returns a file as it is sent: masked passages with token counts.
    pub fn mask_file(&self, file: &SourceFile) -> MaskedFile {
        self.mask_files(&[file], &|| false).pop().unwrap_or_default()
    }

    /// Masks several files on several threads. After cancellation, uncached files have empty texts.
    pub fn mask_files(&self, files: &[&SourceFile], cancelled: &dyn Fn() -> bool) -> Vec<MaskedFile> {
        let encoding = self.encoding;
        let count = |text: &str| count_tokens(encoding, text);
        let mut all = Vec::with_capacity(files.len());
        for batch in files.chunks(FILES_PER_BATCH) {
            let is_over = cancelled();
            let known = batch.iter().map(|file| {
                let key = self.key(&file.path, &file.blob, &[]);
                let known = match self.cache.get(key).and_then(|bytes| decode_masked_file(&bytes)) {
                    Some(told) => MaskingInput::Cached(told),
                    None if is_over => MaskingInput::Missing,
                    None => self.load_text(file),
                };
                (*file, key, known)
            });
            let known: Vec<_> = known.collect();
            let tell = |(file, _, known): &(&SourceFile, FactKey, MaskingInput)| match known {
                MaskingInput::Cached(told) => told.clone(),
                MaskingInput::Text(text) => build_masked_file(file, text, &mask_file_text(&file.path, text), &count),
                MaskingInput::Masked(text, masked) => build_masked_file(file, text, masked, &count),
                MaskingInput::Missing => MaskedFile::from_text(&file.document, "", &count),
            };
            for (told, (_, key, known)) in parallel::map(&known, tell).into_iter().zip(&known) {
                if matches!(known, MaskingInput::Text(_) | MaskingInput::Masked(..)) {
                    self.cache.insert(*key, encode_masked_file(&told));
                }
                all.push(told);
            }
        }
        all
    }

    /// Returns the masked text from the background thread if there is one, else the original text.
    fn load_text(&self, file: &SourceFile) -> MaskingInput {
        let place = (file.path.clone(), file.blob.clone());
        if let Some(expected) = self.pending_texts.take() {
            match expected.items().iter().any(|(expected, _)| *expected == place) {
                true => {
                    let texts = expected.items().to_vec().into_iter().zip(expected.finish().unwrap_or_default());
                    self.masked_texts.borrow_mut().extend(texts.map(|((place, text), masked)| (place, (text, masked))));
                }
                false => self.pending_texts.set(Some(expected)),
            }
        }
        match self.masked_texts.borrow_mut().remove(&place) {
            Some((text, masked)) => MaskingInput::Masked(text, masked),
            None => read_text(self.repo, &file.blob).ok().flatten().map_or(MaskingInput::Missing, MaskingInput::Text),
        }
    }

    /// Starts to mask files in a background thread. [`FileAnalyzer::mask_files`] collects the results.
    pub fn prefetch_masked_texts(&self, places: &[FileVersion]) {
        let is_new = |(path, blob): &&FileVersion| !self.cache.contains(self.key(path, blob, &[]));
        let text = |place: &FileVersion| Some((place.clone(), read_text(self.repo, &place.1).ok().flatten()?));
        let unknown: Vec<FileVersionText> = places.iter().filter(is_new).filter_map(text).collect();
        if !unknown.is_empty() {
            let find = |(): &mut (), ((path, _), text): &FileVersionText| mask_file_text(path, text);
            self.pending_texts.set(BackgroundMap::spawn("masks", unknown, || (), find));
        }
    }

    /// Returns the declarations of a file from its syntax tree. No name holds a secret.
    pub fn declarations(&self, path: &str, blob: &str) -> Arc<[Declaration]> {
        self.syntax(path, blob).declarations
    }

    /// Returns the files of the tree that each file imports, in the order of `paths`. Files for which `place` returns
    /// `None` import nothing. After cancellation, results may be empty.
    pub fn resolve_imports(
        &self,
        tree: &ImportResolver<'_>,
        paths: &[&str],
        place: &dyn Fn(&str) -> Option<FileVersion>,
        cancelled: &dyn Fn() -> bool,
    ) -> Vec<Vec<String>> {
        self.load_syntax(&paths.iter().filter_map(|path| place(path)).collect::<Vec<_>>(), cancelled);
        let of = |path: &&str| match place(path).filter(|_| !cancelled()) {
            Some((path, blob)) => tree.resolve_imports(&path, &self.syntax(&path, &blob).imports),
            None => Vec::new(),
        };
        paths.iter().map(of).collect()
    }

    /// Returns the syntax of a file: chunks, declarations and imports. No name holds a secret.
    pub fn syntax(&self, path: &str, blob: &str) -> FileSyntax {
        let place = (path.to_owned(), blob.to_owned());
        self.load_syntax(slice::from_ref(&place), &|| false);
        self.syntax_by_file.borrow().get(&place).cloned().unwrap_or_default()
    }

    /// Loads the syntax of files on several threads. Stops after cancellation. The syntax of a file that git does not
    /// have is empty.
    pub fn load_syntax(&self, places: &[FileVersion], cancelled: &dyn Fn() -> bool) {
        let unknown = self.find_uncached(places);
        if let Some(expected) = self.pending_syntax.take() {
            match expected.items().iter().any(|(place, _)| unknown.contains(place)) {
                true => self.collect_pending(expected),
                false => self.pending_syntax.set(Some(expected)),
            }
        }
        for places in self.find_uncached(&unknown).chunks(FILES_PER_BATCH) {
            if cancelled() {
                return;
            }
            let found = parallel::map_init(&self.read_texts(places), Parsers::default, parse_masked_syntax);
            self.store_syntax(places, found);
        }
    }

    /// Starts to parse files in a background thread. [`FileAnalyzer::load_syntax`] collects the results.
    pub fn prefetch_syntax(&self, places: &[FileVersion]) {
        let places = self.find_uncached(places);
        if places.is_empty() {
            return;
        }
        // If no thread can be started, the files are parsed on demand.
        self.pending_syntax.set(BackgroundMap::spawn(
            "syntax",
            self.read_texts(&places),
            Parsers::default,
            parse_masked_syntax,
        ));
    }

    /// Returns the files whose syntax is neither loaded nor in the index or the cache, without duplicates.
    fn find_uncached(&self, places: &[FileVersion]) -> Vec<FileVersion> {
        let mut read = self.syntax_by_file.borrow_mut();
        let mut unknown: Vec<FileVersion> = Vec::new();
        let mut seen: HashSet<&FileVersion> = HashSet::new();
        for place in places.iter().filter(|place| seen.insert(place)) {
            if read.contains_key(place) {
                continue;
            }
            let kept = || self.cache.get(self.syntax_key(place)).and_then(|bytes| decode_syntax(&bytes));
            match self.syntax_from_index(place).or_else(kept) {
                Some(found) => drop(read.insert(place.clone(), found)),
                None => unknown.push(place.clone()),
            }
        }
        unknown
    }

    /// Returns the syntax from the index, masked. A damaged index returns `None`; the next refresh rebuilds it.
    fn syntax_from_index(&self, (path, blob): &FileVersion) -> Option<FileSyntax> {
        let found = self.index?.file_syntax(path, blob);
        found.inspect_err(|error| tracing::warn!("the index is of no use: {error}")).ok()?.map(mask_syntax)
    }

    fn syntax_key(&self, (path, blob): &FileVersion) -> FactKey {
        self.key(path, blob, &["syntax"])
    }

    /// Reads the texts of files. A missing blob gives an empty text.
    fn read_texts(&self, places: &[FileVersion]) -> Vec<FileVersionText> {
        let text =
            |place: &FileVersion| (place.clone(), read_text(self.repo, &place.1).ok().flatten().unwrap_or_default());
        places.iter().map(text).collect()
    }

    /// Stores the results of the background thread. If it failed, the results are computed again on demand.
    fn collect_pending(&self, expected: BackgroundAnalysis<FileVersionText, FileSyntax>) {
        let places: Vec<FileVersion> = expected.items().iter().map(|(place, _)| place.clone()).collect();
        self.store_syntax(&places, expected.finish().unwrap_or_default());
    }

    fn store_syntax(&self, places: &[FileVersion], found: Vec<AnalysisResult<FileSyntax>>) {
        for (place, (found, is_sound)) in places.iter().zip(found) {
            // A blob that git does not have may be fetched later, so its empty syntax is not cached.
            if is_sound && self.repo.blob_size(&place.1).is_ok() {
                self.cache.insert(self.syntax_key(place), encode_syntax(&found));
            }
            self.syntax_by_file.borrow_mut().insert(place.clone(), found);
        }
    }

    /// Writes new results to the cache.
    pub fn close(self) {
        if let Some(expected) = self.pending_syntax.take().filter(BackgroundMap::is_finished) {
            self.collect_pending(expected);
        }
        self.cache.close();
    }
}

/// Builds the masked passages of a file.
fn build_masked_file(file: &SourceFile, text: &str, masked: &BlobText, count: &dyn Fn(&str) -> usize) -> MaskedFile {
    let said = |first, last| {
        let lines = (first..=last).flat_map(|number| [escape_unsafe(masked.line(number)), "\n".into()]);
        lines.collect::<String>()
    };
    MaskedFile::with_masked_lines(&file.document, text, &said, count)
}

fn mask_file_text(path: &str, text: &str) -> BlobText {
    BlobText::new(path, text.as_bytes(), Mask::On)
}

fn parse_masked_syntax(parsers: &mut Parsers, ((path, _), text): &FileVersionText) -> AnalysisResult<FileSyntax> {
    let found = mask_syntax(chunk::parse_syntax(parsers, path, text));
    (found, !parsers.take_failure())
}

/// Masks secrets in the names of declarations and in imports. A test can have any text as its name.
fn mask_syntax(found: FileSyntax) -> FileSyntax {
    let names = |found: &Declaration| format!("{}\n{}\n", found.name, found.scope);
    let mut all: String = found.declarations.iter().map(names).collect();
    found.imports.iter().for_each(|import| all.extend([import, "\n"]));
    if matches!(Mask::On.mask_key_shapes(&all), Cow::Borrowed(_)) {
        return found;
    }
    let masked = |name: &String| Mask::On.mask_key_shapes(name).into_owned();
    let declaration =
        |one: &Declaration| Declaration { name: masked(&one.name), scope: masked(&one.scope), ..one.clone() };
    FileSyntax {
        chunks: found.chunks,
        declarations: found.declarations.iter().map(declaration).collect(),
        imports: found.imports.iter().map(masked).collect(),
    }
}

fn encode_texts(writer: &mut PackedWriter, texts: &PassageTexts) {
    writer.write_str(&texts.all);
    writer.write_varints(texts.ends.iter().copied());
    writer.write_varints(texts.tokens.iter().copied());
}

fn decode_texts(reader: &mut PackedReader<'_>) -> Option<PassageTexts> {
    let texts =
        PassageTexts { all: reader.read_str()?.into(), ends: reader.read_varints()?, tokens: reader.read_varints()? };
    (texts.ends.len() == texts.tokens.len()).then_some(texts)
}

fn encode_masked_file(told: &MaskedFile) -> Vec<u8> {
    let mut writer = PackedWriter::default();
    encode_texts(&mut writer, &told.texts);
    writer.write_varints(told.tokens.iter().copied());
    writer.write_varints(told.declares_type.iter().map(|is_type| u32::from(*is_type)));
    writer.finish()
}

fn decode_masked_file(bytes: &[u8]) -> Option<MaskedFile> {
    let mut reader = PackedReader(bytes);
    let texts = Arc::new(decode_texts(&mut reader)?);
    let tokens = reader.read_varints()?;
    let types = reader.read_varints()?.into_iter().map(|is_type| is_type != 0).collect();
    Some(MaskedFile { texts, tokens, declares_type: types })
}

fn encode_syntax(FileSyntax { chunks, declarations: declared, imports }: &FileSyntax) -> Vec<u8> {
    let mut writer = PackedWriter::default();
    writer.write_varint(chunks.len() as u32);
    for ChunkExtent { kind, lines } in chunks.iter() {
        writer.write_str(kind.word());
        writer.write_varint(lines.start);
        writer.write_varint(lines.end);
    }
    writer.write_varint(imports.len() as u32);
    imports.iter().for_each(|import| writer.write_str(import));
    writer.write_varint(declared.len() as u32);
    for Declaration { kind, name, scope, lines, head } in declared.iter() {
        for text in [kind.word(), name, scope] {
            writer.write_str(text);
        }
        for number in [lines.start, lines.end, head.start, head.end] {
            writer.write_varint(number);
        }
    }
    writer.finish()
}

fn decode_syntax(bytes: &[u8]) -> Option<FileSyntax> {
    let mut reader = PackedReader(bytes);
    let chunk = |reader: &mut PackedReader<'_>| {
        let kind: ChunkKind = reader.read_str()?.parse().ok()?;
        Some(ChunkExtent { kind, lines: LineRange::new(reader.read_varint()?, reader.read_varint()?) })
    };
    let chunks = (0..reader.read_count()?).map(|_| chunk(&mut reader)).collect::<Option<_>>()?;
    let imports = (0..reader.read_count()?).map(|_| reader.read_str().map(str::to_owned)).collect::<Option<_>>()?;
    let declaration = |reader: &mut PackedReader<'_>| {
        let kind: ChunkKind = reader.read_str()?.parse().ok()?;
        let (name, scope) = (reader.read_str()?.to_owned(), reader.read_str()?.to_owned());
        let mut lines = || Some(LineRange::new(reader.read_varint()?, reader.read_varint()?));
        Some(Declaration { kind, name, scope, lines: lines()?, head: lines()? })
    };
    let declared = (0..reader.read_count()?).map(|_| declaration(&mut reader)).collect::<Option<_>>()?;
    Some(FileSyntax { chunks, declarations: declared, imports })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::vocabulary::Vocabulary;

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
        let files: Vec<SourceFile> = (0..FILES_PER_BATCH + 4).map(&mut file).collect();
        let all: Vec<&SourceFile> = files.iter().collect();
        let telling = || FileAnalyzer::open(&repo, Encoding::O200kBase, Some(kept.path()));
        assert!(telling().mask_files(&all, &|| true).iter().all(|told| told.texts.all.is_empty()));
        let alone: Vec<MaskedFile> = files.iter().map(|file| telling().mask_file(file)).collect();
        let beside = telling();
        // The last file is one that nobody requests.
        let place = |file: &SourceFile| (file.path.clone(), file.blob.clone());
        beside.prefetch_masked_texts(
            &files[..3].iter().map(place).chain([("x.rs".to_owned(), "0".repeat(40))]).collect::<Vec<_>>(),
        );
        assert_eq!(beside.mask_files(&all, &|| false), alone);
        beside.close();
        assert_eq!(telling().mask_files(&all, &|| true), alone, "what is kept costs no time");
        let is_masked = |told: &MaskedFile| told.texts.all.contains("«secret»") && !told.texts.all.contains("q7Rt2Yp9");
        assert!(alone.iter().all(is_masked), "{}", alone[0].texts.all);
    }

    #[test]
    fn what_failed_is_not_kept() {
        let (folder, kept) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let blob = git.blob(TEXT.as_bytes()).expect("a blob").to_string();
        let repo = Repo::discover(folder.path()).expect("a repository");
        let open = || FileAnalyzer::open(&repo, Encoding::O200kBase, Some(kept.path()));
        let place = ("a.rs".to_owned(), blob.clone());
        for (parsers, is_found) in [(Parsers::with_dead_thread(), false), (Parsers::default(), true)] {
            let telling = open();
            let mut parsers = parsers;
            telling.store_syntax(
                std::slice::from_ref(&place),
                vec![parse_masked_syntax(&mut parsers, &(place.clone(), TEXT.to_owned()))],
            );
            telling.close();
            assert_eq!(open().find_uncached(std::slice::from_ref(&place)).is_empty(), is_found);
        }
    }
}
