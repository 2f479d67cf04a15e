use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;

use proptest::prelude::*;
use tempfile::TempDir;

use super::segment_builder::SegmentBuilder;
use super::*;
use crate::domain::OmissionReason;
use crate::index::chunk::{ChunkKind, cut_text, parse_syntax};
use crate::reviewers::analyzer::{FingerprintSource, file_fingerprints};
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// A bare repository and an index folder.
struct IndexFixture {
    folder: TempDir,
    git: git2::Repository,
    files: BTreeMap<String, (Vec<u8>, i32)>,
}

const FILE: i32 = 0o100_644;
const LINK: i32 = 0o120_000;

impl IndexFixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path().join("a.git")).expect("a repository");
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (text.as_bytes().to_vec(), FILE))).collect();
        Self { folder, git, files }
    }

    fn set(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.insert(path.to_owned(), (content.into(), FILE));
    }

    fn commit(&self) -> String {
        let mut index = git2::Index::new().expect("an index");
        let zero = git2::IndexTime::new(0, 0);
        for (path, (content, mode)) in &self.files {
            let id = self.git.blob(content).expect("a blob");
            index
                .add(&git2::IndexEntry {
                    ctime: zero,
                    mtime: zero,
                    dev: 0,
                    ino: 0,
                    mode: *mode as u32,
                    uid: 0,
                    gid: 0,
                    file_size: 0,
                    id,
                    flags: 0,
                    flags_extended: 0,
                    path: path.clone().into_bytes(),
                })
                .expect("an entry");
        }
        let tree = index.write_tree_to(&self.git).expect("a tree");
        let tree = self.git.find_tree(tree).expect("the tree");
        let who = git2::Signature::new("a", "a@example.org", &git2::Time::new(0, 0)).expect("a name");
        self.git.commit(None, &who, &who, "a", &tree, &[]).expect("a commit").to_string()
    }

    fn repo(&self) -> Repo {
        Repo::discover(self.git.path()).expect("the repository")
    }

    fn index_folder(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn refresh(&self) -> RefreshReport {
        Index::refresh(&self.index_folder(), &self.repo(), &self.commit(), &keep_going).expect("a refresh")
    }

    fn open(&self) -> Option<Index> {
        Index::open(&self.index_folder(), &self.repo(), &self.commit()).expect("readable")
    }

    fn segments(&self) -> Vec<PathBuf> {
        let names = view::list_files(&self.index_folder()).expect("a folder");
        names.into_iter().filter(|(name, _)| Segment::is_file_name(name)).map(|(_, path)| path).collect()
    }
}

/// Returns the files of the tree that the index leaves out, with their reasons, sorted by path.
fn left_out(fixture: &IndexFixture) -> Vec<(String, OmissionReason)> {
    let tree = fixture.repo().tree_id(&fixture.commit()).expect("a tree");
    let folder = fixture.index_folder();
    let view = IndexView::read(&IndexView::path_of_tree(&folder, &tree)).expect("sound").expect("a view");
    let open = |name: &String| Segment::open(&folder.join(name)).expect("sound").expect("a segment");
    let segments: Vec<Segment> = view.segments.iter().map(open).collect();
    let files = view.files.iter().filter_map(|[at, number]| {
        let segment = &segments[*at as usize];
        let file = segment.file(*number)?;
        Some((segment.path(file).to_owned(), file.left_out()?))
    });
    files.collect()
}

fn keep_going(_: IndexProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Returns the paths of files that an index found.
fn paths(index: &Index, found: Result<Vec<FileId>, IndexError>) -> Vec<&str> {
    found.expect("sound").into_iter().map(|file| index.file(file).expect("a file").path).collect()
}

fn hex(blob: [u8; 20]) -> String {
    blob.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sample() -> IndexFixture {
    IndexFixture::new(&[
        (
            "src/shape.rs",
            "use crate::unit::Meter;\n\npub struct Shape { side_length: Meter }\n\nimpl Shape {\n    pub fn area(&self) -> Meter {\n        if self.side_length > LIMIT { LIMIT } else { self.side_length }\n    }\n}\n",
        ),
        ("src/unit.rs", "pub struct Meter(u32);\n\npub const LIMIT: Meter = Meter(9);\n"),
        ("tests/shape_test.py", "import shape\n\ndef test_area():\n    assert shape.area() == 1\n"),
        ("README.md", "# Shapes\n\nCall `area()`: the side length of a shape, the area.\n"),
        ("Cargo.lock", "version = 4\n"),
        (".env", "KEY=1\n"),
    ])
}

/// Files by word, for one way in which a file has a word.
type ExpectedPostings = BTreeMap<String, Vec<String>>;

/// Asserts that the index returns the same data as cutting each file directly.
fn assert_agrees(sample: &IndexFixture, index: &Index) {
    let known = sample.open().expect("an index").into_fingerprints().expect("sound");
    let [mut texts, mut declared, mut used]: [ExpectedPostings; 3] = Default::default();
    for file in index.files() {
        let text = String::from_utf8_lossy(&sample.files[file.path].0).into_owned();
        let mut parsers = Parsers::default();
        let cut = cut_text(&mut parsers, file.path, &text, Language::detect(file.path, text.as_bytes()));
        let names = cut.pieces.iter().flat_map(|piece| &piece.exports).map(|name| (*name).to_owned());
        let uses = cut.uses.names.iter().map(|(_, name)| (*name).to_owned());
        for (files, words) in
            [(&mut texts, split_words(&text)), (&mut declared, names.collect()), (&mut used, uses.collect())]
        {
            for word in words {
                let files = files.entry(word).or_default();
                if files.last().is_none_or(|last| last != file.path) {
                    files.push(file.path.to_owned());
                }
            }
        }
        let read = parse_syntax(&mut Parsers::default(), file.path, &text);
        let is_tree = |kind: ChunkKind| !matches!(kind, ChunkKind::Window | ChunkKind::Config);
        assert_eq!(file.has_syntax_tree, cut.pieces.iter().any(|piece| is_tree(piece.kind)), "{}", file.path);
        assert_eq!(index.file_syntax(file.path, &hex(file.blob)).expect("sound"), Some(read));
        assert_eq!(index.file_syntax(file.path, "0").expect("sound"), None);
        assert_eq!(index.file_at(file.path), Some(file));
        assert!(file.is_blob(&hex(file.blob)) && !file.is_blob("0"));
        // The same bytes in two languages are known in one of them, and read again in the other.
        let language = |path| Language::detect(path, b"");
        let has_twin =
            index.files().any(|other| other.blob == file.blob && language(other.path) != language(file.path));
        let prints = file_fingerprints(file.path, &sample.files[file.path].0);
        let known = known.fingerprints(file.path, &hex(file.blob));
        assert!(known == Some(prints.as_slice()) || has_twin && known.is_none(), "{}", file.path);
    }
    let words: BTreeSet<&String> = texts.keys().chain(declared.keys()).chain(used.keys()).collect();
    for word in words {
        let expected = |files: &ExpectedPostings| files.get(word).cloned().unwrap_or_default();
        assert_eq!(paths(index, index.files_with(word)), expected(&texts), "{word}");
        assert_eq!(paths(index, index.files_that_declare(word)), expected(&declared), "{word}");
        assert_eq!(paths(index, index.files_that_use(word)), expected(&used), "{word}");
    }
}

#[test]
fn an_index_knows_files_chunks_names_and_words() {
    let sample = sample();
    assert!(sample.open().is_none());
    let refreshed = sample.refresh();
    assert_eq!((refreshed.read, refreshed.known, refreshed.repaired), (6, 0, None));
    let index = sample.open().expect("an index");
    assert_eq!(index.completeness(), IndexCompleteness::Whole);
    assert_agrees(&sample, &index);
    let expected = [(".env", OmissionReason::Secret), ("Cargo.lock", OmissionReason::LockFile)];
    assert_eq!(left_out(&sample), expected.map(|(path, reason)| (path.to_owned(), reason)));
    assert_eq!(paths(&index, index.files_that_declare("area")), ["src/shape.rs"]);
    assert_eq!(paths(&index, index.files_that_declare("Meter")), ["src/unit.rs"]);
    assert_eq!(paths(&index, index.files_that_use("area")), ["README.md", "src/shape.rs", "tests/shape_test.py"]);
    assert_eq!(paths(&index, index.files_with("length")), ["README.md", "src/shape.rs"]);
    assert_eq!(paths(&index, index.files_with("nothing")), [""; 0]);
    let shape = index.file_at("src/shape.rs").expect("a file");
    let syntax = index.file_syntax(shape.path, &hex(shape.blob)).expect("sound").expect("known");
    assert_eq!(syntax.imports[..], ["crate::unit::Meter"]);
    let without_tree: Vec<&str> = index.files().filter(|file| !file.has_syntax_tree).map(|file| file.path).collect();
    assert_eq!(without_tree, ["README.md"]);
}

/// Returns code that is long enough for the clone search.
fn long() -> String {
    let line = |n| format!("    if path[{n}] > limit.most(side) {{ total += weigh(path, side)?; }}\n");
    format!("fn walk(path: &Path) -> u32 {{\n{}}}\n", (0..9).map(line).collect::<String>())
}

#[test]
fn files_with_the_same_bytes_in_two_languages_are_indexed_as_they_are_cut() {
    let mut sample = IndexFixture::new(&[]);
    for path in ["a.rs", "b.py", "c.rs"] {
        sample.set(path, "");
    }
    assert_agrees(&sample, &sample.refresh().index);
}

#[test]
fn fingerprints_are_known_by_what_a_file_holds() {
    let mut sample = sample();
    sample.set("src/long.rs", long());
    sample.set("src/made.rs", format!("// @generated\n{}", long()));
    let index = sample.refresh().index;
    let made = sample.git.blob(&sample.files["src/made.rs"].0).expect("a blob").to_string();
    let long = hex(index.file_at("src/long.rs").expect("a file").blob);
    let known = index.into_fingerprints().expect("sound");
    let of_long = known.fingerprints("src/long.rs", &long).expect("known");
    assert!(!of_long.is_empty());
    assert_eq!(known.fingerprints("src/moved.rs", &long), Some(of_long), "known under another name");
    assert_eq!(known.fingerprints("src/long.py", &long), None, "other tokens");
    assert_eq!(known.fingerprints("src/made.rs", &made), Some(&[][..]), "nothing to read");
    assert_eq!(known.fingerprints("src/new.rs", &"0".repeat(40)), None);
}

#[test]
fn only_what_is_not_known_is_read() {
    let mut sample = sample();
    let before = sample.refresh().index;
    let again = sample.refresh();
    assert_eq!((again.read, again.known), (0, 6));
    sample.set("src/unit.rs", "pub struct Foot(u32);\n");
    assert_eq!(sample.open().map(|index| index.completeness()), Some(IndexCompleteness::Other));
    let changed = sample.refresh();
    assert_eq!((changed.read, changed.known), (1, 5));
    assert_agrees(&sample, &changed.index);
    assert_eq!(changed.index.files_that_declare("Meter").expect("sound"), []);
    assert_eq!(changed.index.files_that_declare("Foot").expect("sound").len(), 1);
    // An open old index stays usable, and another worktree may still need it.
    assert_eq!(before.files_that_declare("Meter").expect("sound").len(), 1);
    sample.set("src/unit.rs", "pub struct Meter(u32);\n\npub const LIMIT: Meter = Meter(9);\n");
    assert_eq!(sample.refresh().read, 0);
    sample.files.remove("src/unit.rs");
    let gone = sample.refresh();
    assert_eq!((gone.read, gone.index.files_that_declare("Meter").expect("sound").len()), (0, 0));
}

#[test]
fn a_file_whose_name_is_a_secret_is_not_read_again_and_is_stored_masked() {
    let mut sample = sample();
    let path = format!("keys/ghp_{}.txt", "A1b2C3d4E5f6".repeat(3));
    sample.set(&path, "a key\n");
    assert_eq!(sample.refresh().read, 7);
    sample.set("src/unit.rs", "pub struct Foot(u32);\n");
    let changed = sample.refresh();
    assert_eq!((changed.read, changed.known), (1, 6));
    let secret: Vec<String> = left_out(&sample).into_iter().map(|(path, _)| path).collect();
    assert!(secret.iter().any(|stored| stored.starts_with("keys/")) && !secret.contains(&path), "{secret:?}");
}

#[test]
fn many_small_segments_become_one_and_old_ones_go() {
    let mut sample = sample();
    sample.set("src/long.rs", long());
    sample.refresh();
    for round in 0..30 {
        sample.set("src/unit.rs", format!("pub struct Unit{round}(u32);\n"));
        sample.set(&format!("src/more{}.rs", round % 4), format!("pub fn more{round}() {{ area(); }}\n"));
        let refreshed = sample.refresh();
        assert_eq!(refreshed.read, 2, "{round}");
    }
    let index = sample.open().expect("an index");
    assert_agrees(&sample, &index);
    assert!(index.segments.len() <= 9, "{}", index.segments.len());
    assert!(sample.segments().len() <= 20, "{}", sample.segments().len());
    assert_eq!(IndexView::list_latest(&sample.index_folder()).expect("a folder").len(), 8);
    assert_eq!(index.files_that_declare("Unit28").expect("sound"), []);
    assert_eq!(index.files_that_declare("more26").expect("sound").len(), 1);
}

#[test]
fn what_a_segment_takes_over_counts_as_if_it_were_read() {
    let sample = sample();
    sample.refresh();
    let mut builder = SegmentBuilder::default();
    for path in sample.segments() {
        let segment = Segment::open(&path).expect("sound").expect("a segment");
        builder.absorb(&segment, &|_| true, &|| false).expect("sound");
    }
    let is_read = |(path, _): &(&String, &(Vec<u8>, i32))| !matches!(path.as_str(), "Cargo.lock" | ".env");
    let read = sample.files.iter().filter(is_read).map(|(_, (text, _))| text.len());
    assert_eq!(builder.bytes, read.sum::<usize>());
}

#[test]
fn a_damaged_index_is_rebuilt_and_that_is_said_once() {
    let sample = sample();
    sample.refresh();
    let files = |sample: &IndexFixture| -> Vec<PathBuf> {
        let names = view::list_files(&sample.index_folder()).expect("a folder");
        names.into_iter().filter(|(name, _)| name != "lock").map(|(_, path)| path).collect()
    };
    let mut repaired = 0;
    for number in 0..files(&sample).len() {
        let path = files(&sample)[number].clone();
        let whole = fs::read(&path).expect("a file");
        // Missing, empty, truncated, bit-flipped and outdated files.
        let mut broken: Vec<Option<Vec<u8>>> = vec![None, Some(Vec::new()), Some(whole[..whole.len() - 1].to_vec())];
        for at in (0..whole.len()).step_by(whole.len() / 60 + 1) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            broken.push(Some(flipped));
        }
        for content in broken {
            match &content {
                Some(content) => fs::write(&path, content).expect("written"),
                None => fs::remove_file(&path).expect("removed"),
            }
            if let Some(index) = sample.open() {
                // Sections are read late, so damage is found late; but wrong data is never returned.
                let sound = index.files_with("area").is_ok()
                    && index.files().all(|file| index.file_syntax(file.path, &hex(file.blob)).is_ok())
                    && sample.open().is_some_and(|index| index.into_fingerprints().is_ok());
                if sound {
                    assert_agrees(&sample, &index);
                }
            }
            let refreshed = sample.refresh();
            repaired += usize::from(refreshed.repaired.is_some());
            assert_agrees(&sample, &refreshed.index);
            assert_eq!(sample.refresh().repaired, None);
        }
    }
    assert!(repaired > 20, "{repaired}");
}

#[test]
fn what_a_reader_finds_damaged_is_said_by_the_next_refresh() {
    let sample = sample();
    sample.refresh();
    let names = view::list_files(&sample.index_folder()).expect("a folder");
    for (_, path) in names.into_iter().filter(|(name, _)| name != "lock") {
        let mut bytes = fs::read(&path).expect("a file");
        *bytes.last_mut().expect("a byte") ^= 1;
        fs::write(&path, &bytes).expect("written");
        if let Some(index) = sample.open() {
            let mut found = vec![index.files_with("area").map(drop)];
            found.extend(index.files().map(|file| index.file_syntax(file.path, &hex(file.blob)).map(drop)));
            found.push(index.into_fingerprints().map(drop));
            assert!(found.iter().any(Result::is_err), "a damaged part");
            assert!(!path.exists());
        }
        assert!(sample.refresh().repaired.is_some(), "{}", path.display());
        let again = sample.refresh();
        assert_eq!((again.read, again.repaired), (0, None));
        assert_agrees(&sample, &again.index);
    }
}

#[test]
fn what_a_refresh_found_damaged_is_said_by_the_next_one_when_it_was_given_up() {
    let sample = sample();
    sample.refresh();
    fs::write(&sample.segments()[0], "no segment").expect("written");
    let stop = |_| ControlFlow::Break(());
    let given_up = Index::refresh(&sample.index_folder(), &sample.repo(), &sample.commit(), &stop);
    assert!(matches!(given_up, Err(IndexError::Cancelled)));
    assert!(sample.refresh().repaired.is_some());
    assert_eq!(sample.refresh().repaired, None);
}

#[test]
fn an_index_of_another_version_is_rebuilt_without_a_word() {
    let sample = sample();
    sample.refresh();
    let names = view::list_files(&sample.index_folder()).expect("a folder");
    for (_, path) in names.into_iter().filter(|(name, _)| name != "lock") {
        let mut bytes = fs::read(&path).expect("a file");
        bytes[size_of::<u64>()] ^= 1;
        fs::write(&path, &bytes).expect("written");
    }
    assert!(sample.open().is_none());
    let refreshed = sample.refresh();
    assert_eq!((refreshed.read, refreshed.repaired), (6, None));
    assert_agrees(&sample, &refreshed.index);
}

#[test]
fn what_is_no_file_is_taken_away_and_that_is_said_once() {
    let sample = sample();
    sample.refresh();
    let folder = sample.index_folder();
    let half = folder.join(format!("{}xyz", sealed_file::TEMPORARY_PREFIX));
    fs::write(&half, "half").expect("written");
    for (name, path) in view::list_files(&folder).expect("a folder") {
        crate::index::disk::with_others_in_place(&path, |sort| {
            sample.open();
            assert!(Index::find_write_error(&folder).is_none(), "{sort} for {name}");
            let refreshed = sample.refresh();
            let is_said = name.starts_with("view-") || Segment::is_file_name(&name);
            assert_eq!(refreshed.repaired.is_some(), is_said, "{sort} for {name}");
            let again = sample.refresh();
            assert_eq!((again.read, again.repaired), (0, None), "{sort} for {name}");
            assert_agrees(&sample, &again.index);
        });
    }
}

#[test]
fn what_keeps_an_index_from_being_written_is_said() {
    let sample = sample();
    let folder = sample.index_folder();
    assert!(Index::find_write_error(&folder).is_none());
    fs::remove_dir_all(&folder).expect("removed");
    fs::write(&folder, "a file").expect("written");
    assert!(matches!(Index::find_write_error(&folder), Some(IndexError::Io { .. })));
}

#[test]
fn what_a_dead_process_left_is_taken_away() {
    let sample = sample();
    fs::create_dir_all(sample.index_folder()).expect("a folder");
    let half = sample.index_folder().join(format!("{}xyz", sealed_file::TEMPORARY_PREFIX));
    fs::write(&half, "half").expect("written");
    assert_agrees(&sample, &sample.refresh().index);
    assert!(!half.exists());
}

#[test]
fn nobody_waits_for_small_segments_to_be_merged_and_the_next_one_merges_them() {
    let mut sample = sample();
    sample.refresh();
    let segments = |sample: &IndexFixture| {
        let tree = sample.repo().tree_id(&sample.commit()).expect("a tree");
        let view =
            IndexView::read(&IndexView::path_of_tree(&sample.index_folder(), &tree)).expect("sound").expect("a view");
        view.segments.len()
    };
    let mut number = 0;
    let mut add = |sample: &mut IndexFixture, most: u32| {
        number += 1;
        sample.set(&format!("more/part_{number}.rs"), format!("fn part_{number}() {{ other(); }}\n"));
        let asked = std::cell::Cell::new(0);
        let go_on = |_| {
            asked.set(asked.get() + 1);
            if asked.get() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let index = Index::refresh(&sample.index_folder(), &sample.repo(), &sample.commit(), &go_on);
        assert_agrees(sample, &index.expect("all is read").index);
        asked.get()
    };
    let before = loop {
        let before = segments(&sample);
        // A read file is reported once.
        if add(&mut sample, 1) > 1 {
            break before;
        }
    };
    assert_eq!(segments(&sample), before + 1, "nothing was merged");
    let looks = add(&mut sample, u32::MAX);
    assert!(looks > 5, "each file is a look: {looks}");
    assert_eq!(segments(&sample), 1);
}

#[test]
fn one_at_a_time_refreshes_and_waiting_can_be_given_up() {
    let sample = sample();
    let commit = sample.commit();
    let (folder, repo) = (sample.index_folder(), sample.repo());
    fs::create_dir_all(&folder).expect("a folder");
    let lock = fs::File::create(folder.join("lock")).expect("a file");
    lock.lock().expect("the lock");
    let asked = Mutex::new(Vec::new());
    let give_up = |progress| {
        asked.lock().expect("no panic").push(progress);
        ControlFlow::Break(())
    };
    let refused = Index::refresh(&folder, &repo, &commit, &give_up);
    assert!(matches!(refused, Err(IndexError::Cancelled)), "{refused:?}");
    assert_eq!(asked.into_inner().expect("no panic"), [IndexProgress::Waiting]);
    // Readers do not wait for the lock.
    assert!(sample.open().is_none());
    lock.unlock().expect("unlocked");
    let stopped = Index::refresh(&folder, &repo, &commit, &|_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(IndexError::Cancelled)), "{stopped:?}");

    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (folder, repo, commit) = (folder.clone(), repo.reopen().expect("again"), commit.clone());
            std::thread::spawn(move || Index::refresh(&folder, &repo, &commit, &keep_going).expect("a refresh").read)
        })
        .collect();
    let read: Vec<u32> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    assert!(read.iter().filter(|read| **read > 0).count() <= 1, "{read:?}");
    assert_agrees(&sample, &sample.open().expect("an index"));
}

#[test]
fn files_that_nobody_wrote_are_left_out_or_bounded() {
    let mut sample = sample();
    sample.set("big.json", vec![b'1'; 50 << 20]);
    sample.set("one_line.txt", "word ".repeat(190_000));
    sample.set("app.min.js", "function a(b){return b+1}".repeat(4_000));
    sample.set("bundle.js", "function a(b){return b+1}".repeat(4_000));
    sample.set("picture.png", b"\x89PNG\0\0\0".to_vec());
    sample.set("latin1.py", b"# gr\xfc\xdfe\ndef ma\xdf(): pass\n\ndef plain(): pass\n".to_vec());
    sample.set("utf16.cs", "class A { }\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    sample.set("empty.rs", "");
    sample.set("a.pb.go", "package a\n");
    sample.files.insert("loop".to_owned(), (b"loop".to_vec(), LINK));
    sample.files.insert("up".to_owned(), (b"..".to_vec(), LINK));
    let index = sample.refresh().index;
    let left_out: BTreeMap<String, OmissionReason> = left_out(&sample).into_iter().collect();
    for (path, reason) in [
        ("big.json", OmissionReason::Oversized),
        ("app.min.js", OmissionReason::Minified),
        ("bundle.js", OmissionReason::Minified),
        ("picture.png", OmissionReason::Binary),
        ("utf16.cs", OmissionReason::Binary),
        ("a.pb.go", OmissionReason::Generated),
    ] {
        assert_eq!(left_out.get(path), Some(&reason), "{path}");
    }
    assert!(index.file_at("loop").is_none() && index.file_at("one_line.txt").is_some());
    assert_eq!(index.files_that_declare("plain").expect("sound").len(), 1);
    let empty = index.file_at("empty.rs").expect("indexed");
    assert_eq!(index.file_syntax("empty.rs", &hex(empty.blob)).expect("sound"), Some(FileSyntax::default()));
    assert_agrees(&sample, &index);
}

#[test]
fn files_that_vanish_are_left_out_and_come_back() {
    let sample = sample();
    let commit = sample.commit();
    let id = sample.git.blob(&sample.files["src/unit.rs"].0).expect("a blob").to_string();
    let object = sample.git.path().join("objects").join(&id[..2]).join(&id[2..]);
    let away = sample.folder.path().join("away");
    fs::rename(&object, &away).expect("moved");
    let refresh = || Index::refresh(&sample.index_folder(), &sample.repo(), &commit, &keep_going).expect("a refresh");
    let refreshed = refresh();
    let vanished = || left_out(&sample).contains(&("src/unit.rs".to_owned(), OmissionReason::Unreadable));
    assert!(vanished() && refreshed.index.file_at("src/unit.rs").is_none());
    fs::rename(&away, &object).expect("moved");
    fs::remove_dir_all(sample.index_folder()).expect("removed");
    let refreshed = refresh();
    assert!(!vanished() && refreshed.index.file_at("src/unit.rs").is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_indexed_as_it_is_cut(texts in prop::collection::vec("[a-zA-Z_0-9 (){};.\\n\u{e9}\u{4e2d}]{0,200}", 1..6)) {
        let mut sample = IndexFixture::new(&[]);
        for (number, text) in texts.iter().enumerate() {
            let ending = ["rs", "py", "ts", "md", "c"][number % 5];
            sample.set(&format!("f{number}.{ending}"), text.as_str());
        }
        assert_agrees(&sample, &sample.refresh().index);
    }
}
