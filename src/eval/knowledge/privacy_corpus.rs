//! Runs the privacy tests over real edits from other repositories: `REVDECK_LEAK_REPOS` lists their paths, separated
//! by colons, and `REVDECK_LEAK_COMMITS` is the number of newest commits to read from each. A folder in CodRep's
//! layout can replace a repository.
//! ```text
//! REVDECK_LEAK_REPOS=~/src/a:~/src/b.git:~/codrep/Datasets REVDECK_LEAK_COMMITS=5000 \
//!     cargo test --release --lib eval::knowledge::privacy_corpus -- --ignored --nocapture
//! ```

use std::path::Path;
use std::time::{Duration, Instant};

use super::cases::{EvaluationSplit, FixCases};
use crate::git::Repo;
use crate::knowledge::abstraction::{LineForms, extract_edits};
use crate::knowledge::history_mining;
use crate::knowledge::privacy::stored_text::StoredTextAudit;
use crate::knowledge::privacy::{AllowedWords, LeakTally, assert_pair_is_two_files, assert_sites_pass};
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Number of observations learned at once.
const OBSERVATIONS_PER_BATCH: usize = 5_000;

struct Corpus {
    allowed: AllowedWords,
    parsers: Parsers,
    tally: LeakTally,
    kept: StoredTextAudit,
    learning: Duration,
    files: usize,
}

impl Corpus {
    fn add_file(&mut self, language: Language, before: &[u8], after: &[u8]) {
        let start = Instant::now();
        let learned = extract_edits(&mut self.parsers, language, before, after);
        self.learning += start.elapsed();
        self.files += 1;
        assert_pair_is_two_files(&mut self.parsers, language, before, after);
        self.tally.add_edits(&self.allowed, language, [before, after], &learned);
        let source = self.parsers.parse("", language, before);
        let places = source.as_ref().ok().map(LineForms::new);
        let lines = learned.iter().map(|edit| edit.lines).step_by(4).take(3);
        let dismissed = places.iter().flat_map(|places| lines.clone().filter_map(|lines| places.form_at(lines)));
        self.kept.add_observations(language, &learned, dismissed);
        if self.kept.pending_count() >= OBSERVATIONS_PER_BATCH {
            self.kept.learn_and_check(&self.allowed);
        }
    }

    fn add_repository(&mut self, repo: &Repo, commits: usize) {
        let each = &mut |file: history_mining::FixedFileVersions| {
            self.add_file(file.language, &file.before, &file.after);
            std::ops::ControlFlow::Continue(())
        };
        history_mining::visit_fixed_files(repo, commits, each).expect("a history");
        let head = repo.resolve_commit("HEAD").expect("a commit");
        for file in repo.tree_files(&head).expect("files").into_iter().step_by(37).take(100) {
            let text = repo.blob(&file.blob).expect("a blob");
            assert_sites_pass(&self.allowed, &mut self.parsers, &file.path, &text);
        }
    }

    fn add_folder(&mut self, path: &Path) {
        let cases = FixCases::from_folder(path, Language::Java, EvaluationSplit::Test).expect("CodRep's layout");
        for case in cases.training_range().chain(cases.test_range()).filter_map(|number| cases.read_case(number)) {
            self.add_file(case.language, &case.before, &case.after);
        }
    }
}

#[test]
#[ignore = "takes repositories from REVDECK_LEAK_REPOS"]
#[allow(clippy::print_stdout)]
fn corpus() {
    let repos = std::env::var("REVDECK_LEAK_REPOS").expect("REVDECK_LEAK_REPOS names repositories");
    let commits =
        std::env::var("REVDECK_LEAK_COMMITS").map_or(2_000, |text| text.parse().expect("a number of commits"));
    let (allowed, tally, kept) = (AllowedWords::new(), LeakTally::default(), StoredTextAudit::new());
    let mut corpus = Corpus { allowed, parsers: Parsers::default(), tally, kept, learning: Duration::ZERO, files: 0 };
    for path in repos.split(':').map(Path::new) {
        let before = (corpus.tally.edits, corpus.files, corpus.learning);
        match Repo::discover(path) {
            Ok(repo) => corpus.add_repository(&repo, commits),
            Err(_) => corpus.add_folder(path),
        }
        let (edits, files) = (corpus.tally.edits - before.0, corpus.files - before.1);
        let seconds = (corpus.learning - before.2).as_secs_f64();
        println!("{}: {files} files, {edits} edits in {seconds:.1} s", path.display());
    }
    corpus.kept.check_all(&corpus.allowed);
    let Corpus { tally, kept, .. } = &corpus;
    let LeakTally { edits, forms, distinct, again, by_kind, leaks } = tally;
    println!("{edits} edits, {forms} pairs of forms, {} different ones, {} leaks", distinct.len(), leaks.len());
    println!("{} texts of stores and exports read, {} leaks in them and in hints", kept.read, kept.leaks.len());
    println!("{by_kind:?}");
    println!("{} are seen more than once", again.values().filter(|count| **count > 1).count());
    assert!(*edits >= 10_000, "{edits} edits; the promise is about 10,000");
    tally.assert_nothing_leaked();
    assert_eq!(kept.leaks, [""; 0]);
}
