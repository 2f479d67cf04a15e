//! Tests the privacy promise: no word of a user's code gets into a form. The allowed content of forms is written down
//! here a second time, by hand and not from the grammars, so that the test does not depend on the grammars or the
//! gate: the published names and the section `vocabulary` of each language's file.
//!
//! `templates` holds the test data, `stored_text` reads what is stored, sent and exported.
//! `eval::knowledge::privacy_corpus` runs everything over real edits.

pub(crate) mod stored_text;
mod templates;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use self::stored_text::StoredTextAudit;
use self::templates::{TEMPLATES, arbitrary_words, fill_template};
use super::abstraction::{LearnedEdit, LineForms, digest_form, extract_edits, visit_sites};
use super::form::{Form, FormToken, Placeholder};
use super::{history_mining, privacy_gate, stdlib_names};
use crate::domain::LineRange;
use crate::git::Repo;
use crate::syntax::definition::vocabulary;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Words that forms of each language may contain.
pub(crate) struct AllowedWords(BTreeMap<&'static str, HashSet<&'static str>>);

impl AllowedWords {
    pub fn new() -> Self {
        let words = |language| stdlib_names::parse_names(language).map(|(name, _)| name).chain(keywords(language));
        Self(stdlib_names::languages().map(|language| (language, words(language).collect())).collect())
    }

    /// Returns the words of a form that are not allowed.
    fn find_leaks<'f>(&self, language: Language, form: &'f Form) -> Vec<&'f str> {
        self.disallowed_words(language.name(), form)
    }

    /// Returns the disallowed words by language name; in an unknown language, no word is allowed.
    fn disallowed_words<'f>(&self, language: &str, form: &'f Form) -> Vec<&'f str> {
        let none = HashSet::new();
        let words = self.0.get(language).unwrap_or(&none);
        let is_allowed = |text: &str| {
            let is_sign =
                !text.contains(|c: char| c.is_alphanumeric() || c == '_' || c.is_whitespace() || !c.is_ascii());
            words.contains(text) || text == "_" || is_sign && text.len() <= 4
        };
        let texts = form.tokens().iter().filter_map(|token| match token {
            FormToken::Kept(text) => Some(&**text),
            FormToken::Hole { .. } => None,
        });
        texts.filter(|text| !is_allowed(text)).collect()
    }
}

/// Returns the keywords of a language by its name, and the other words in its grammar.
fn keywords(name: &str) -> impl Iterator<Item = &'static str> {
    let language = Language::ALL.into_iter().find(|language| language.name() == name);
    language.into_iter().flat_map(vocabulary).map(String::as_str)
}

/// Splits a text into words of letters, digits and underscores: names, numbers, parts of strings and comments.
fn split_words(text: &[u8]) -> HashSet<String> {
    let text = String::from_utf8_lossy(text);
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Statistics and leaks found.
#[derive(Default)]
pub(crate) struct LeakTally {
    pub edits: usize,
    pub forms: usize,
    pub distinct: HashSet<(&'static str, String, String)>,
    pub again: BTreeMap<(&'static str, String, String), usize>,
    pub by_kind: BTreeMap<&'static str, usize>,
    pub leaks: Vec<String>,
}

impl LeakTally {
    pub fn add_edits(
        &mut self,
        allowed: &AllowedWords,
        language: Language,
        sides: [&[u8]; 2],
        learned: &[LearnedEdit],
    ) {
        let mut hunks: Vec<usize> = learned.iter().map(|edit| edit.hunk).collect();
        hunks.dedup();
        self.edits += hunks.len();
        let source: HashSet<String> = sides.into_iter().flat_map(split_words).collect();
        for edit in learned {
            self.forms += 1;
            for form in [&edit.broken, &edit.fixed] {
                for word in allowed.find_leaks(language, form) {
                    self.leaks.push(format!("{language:?}: {word:?} in {form}"));
                }
                // Check again in the other direction, with the text as it is stored.
                for word in split_words(form.to_string().as_bytes()).intersection(&source) {
                    let is_placeholder = word == "_" || matches!(word.parse(), Ok(FormToken::Hole { .. }));
                    let is_allowed =
                        |text: &&str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word);
                    if !is_placeholder && !allowed.0[language.name()].iter().any(is_allowed) {
                        self.leaks.push(format!("{language:?}: {word:?} of the source in {form}"));
                    }
                }
            }
            let key = (language.name(), edit.broken.to_string(), edit.fixed.to_string());
            *self.again.entry(key.clone()).or_default() += 1;
            *self.by_kind.entry(edit.edit.word()).or_default() += 1;
            self.distinct.insert(key);
        }
    }

    pub fn assert_nothing_leaked(&self) {
        let leaks = &self.leaks;
        assert!(leaks.is_empty(), "{} leaks, such as {:#?}", leaks.len(), &leaks[..leaks.len().min(20)]);
    }
}

/// Checks that all forms of a file are allowed and pass the gate, so that the promise does not depend on the gate.
/// Returns the number of forms.
pub(crate) fn assert_sites_pass(allowed: &AllowedWords, parsers: &mut Parsers, path: &str, text: &[u8]) -> usize {
    let Some(language) = Language::detect(path, text) else { return 0 };
    let Ok(source) = parsers.parse(path, language, text) else { return 0 };
    let mut count = 0;
    visit_sites(&source, None, &mut |site| {
        let form = site.form();
        count += 1;
        assert_eq!(site.digest, digest_form(&form), "{path}: {form}");
        assert_eq!(privacy_gate::admit(language.name(), &form), Ok(()), "{path}: {form}");
        assert_eq!(form.to_string().parse::<Form>().as_ref(), Ok(&form), "{path}");
        assert!(
            allowed.find_leaks(language, &form).is_empty(),
            "{path}: {form}: {:?}",
            allowed.find_leaks(language, &form)
        );
    });
    count
}

/// Checks that parsing two files as a pair gives the same tree for the second file as parsing it alone.
pub(crate) fn assert_pair_is_two_files(parsers: &mut Parsers, language: Language, before: &[u8], after: &[u8]) {
    let Ok([_, paired]) = parsers.parse_pair(language, before, after) else { return };
    let alone = parsers.parse("", language, after).expect("what parses as one of a pair");
    assert!(paired.nodes == alone.nodes, "{language:?}: {}", String::from_utf8_lossy(after));
}

#[test]
fn no_word_of_this_repository_gets_into_a_form() {
    let (allowed, mut parsers, mut tally) = (AllowedWords::new(), Parsers::default(), LeakTally::default());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src/knowledge"), root.join("src/policy")];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read(&path).expect("a readable file");
                count += assert_sites_pass(&allowed, &mut parsers, "a.rs", &text);
                for changed in mutants(&text) {
                    let learned = extract_edits(&mut parsers, Language::Rust, &text, &changed);
                    tally.add_edits(&allowed, Language::Rust, [&text, &changed], &learned);
                }
            }
        }
    }
    assert!(count > 5_000, "{count} sites");
    assert!(tally.edits > 200, "{} edits", tally.edits);
    // A published package has no history.
    if let Ok(repo) = Repo::discover(root) {
        history_mining::visit_fixed_files(&repo, 50, &mut |file| {
            let learned = extract_edits(&mut parsers, file.language, &file.before, &file.after);
            tally.add_edits(&allowed, file.language, [&file.before, &file.after], &learned);
            std::ops::ControlFlow::Continue(())
        })
        .expect("a history");
    }
    tally.assert_nothing_leaked();
}

/// Returns copies of the file with several mistakes each.
fn mutants(text: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(text);
    let swaps =
        [("==", "!="), (" < ", " <= "), ("&&", "||"), (".is_empty()", ".len() > 1"), ("?;", ".ok();"), ("(&", "(")];
    let mut mutants: Vec<Vec<u8>> = swaps.map(|(from, to)| text.replace(from, to).into_bytes()).into();
    for rest in 0..3 {
        let lines = text.split_inclusive('\n').enumerate();
        let kept = lines.filter(|(at, line)| at % 11 != rest || !line.ends_with(";\n")).map(|(_, line)| line);
        mutants.push(kept.collect::<String>().into_bytes());
    }
    mutants
}

#[test]
fn every_template_teaches_something() {
    let words = ["alphazq", "betazq", "Gammazq", "deltazq", "7", "epsilonzq"].map(str::to_owned);
    for (language, before, after) in TEMPLATES {
        let (before, after) = (fill_template(before, &words), fill_template(after, &words));
        let learned = extract_edits(&mut Parsers::default(), *language, before.as_bytes(), after.as_bytes());
        assert!(learned.len() >= 2, "{language:?}: {learned:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 8,
        failure_persistence: Some(Box::new(FileFailurePersistence::SourceParallel("tests/proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_word_that_somebody_wrote_gets_into_a_store_a_prompt_or_an_export(words in arbitrary_words(), other in arbitrary_words()) {
        let (allowed, mut parsers, mut kept) = (AllowedWords::new(), Parsers::default(), StoredTextAudit::new());
        for (language, before, after) in TEMPLATES {
            let (before, after) = (fill_template(before, &words), fill_template(after, &other));
            let learned = extract_edits(&mut parsers, *language, before.as_bytes(), after.as_bytes());
            let source = parsers.parse("", *language, before.as_bytes()).expect("parses");
            let lines = (1..=before.lines().count() as u32).map(|line| LineRange::new(line, line));
            let places = LineForms::new(&source);
            kept.add_observations(*language, &learned, lines.filter_map(|lines| places.form_at(lines)));
        }
        kept.check_all(&allowed);
        prop_assert!(kept.read > 100, "{} texts", kept.read);
        prop_assert!(kept.leaks.is_empty(), "{:#?}", kept.leaks);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: Some(Box::new(FileFailurePersistence::SourceParallel("tests/proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_word_that_somebody_wrote_gets_into_a_form(words in arbitrary_words(), other in arbitrary_words()) {
        let (allowed, mut parsers, mut tally) = (AllowedWords::new(), Parsers::default(), LeakTally::default());
        for (language, before, after) in TEMPLATES {
            let (before, after) = (fill_template(before, &words), fill_template(after, &other));
            let learned = extract_edits(&mut parsers, *language, before.as_bytes(), after.as_bytes());
            for edit in &learned {
                let said = format!("{} {}", edit.broken, edit.fixed);
                prop_assert!(!said.contains("zq"), "{language:?}: {said}");
            }
            tally.add_edits(&allowed, *language, [before.as_bytes(), after.as_bytes()], &learned);
            let source = parsers.parse("", *language, before.as_bytes()).expect("parses");
            let places = LineForms::new(&source);
            for line in 1..=before.lines().count() as u32 {
                if let Some(form) = places.form_at(LineRange::new(line, line)) {
                    prop_assert_eq!(privacy_gate::admit(language.name(), &form), Ok(()));
                    prop_assert!(!form.to_string().contains("zq"), "{language:?}: {form}");
                }
            }
        }
        prop_assert!(tally.leaks.is_empty(), "{:?}", tally.leaks);
    }

    /// Whatever a file contains, nothing of it gets out and nothing fails.
    #[test]
    fn no_word_of_noise_gets_into_a_form(before in "[a-z(){}\\[\\];:=.,<>\"'`#$@!&|\\n 0-9]{0,200}", cut in 0usize..200) {
        let (allowed, mut parsers, mut tally) = (AllowedWords::new(), Parsers::default(), LeakTally::default());
        let after: String = before.chars().enumerate().filter(|(at, _)| *at != cut).map(|(_, c)| c).collect();
        for language in Language::ALL {
            let learned = extract_edits(&mut parsers, language, before.as_bytes(), after.as_bytes());
            tally.add_edits(&allowed, language, [before.as_bytes(), after.as_bytes()], &learned);
        }
        prop_assert!(tally.leaks.is_empty(), "{:?}", tally.leaks);
    }
}

#[test]
fn the_lists_are_sound() {
    for language in stdlib_names::languages() {
        let text = stdlib_names::list_text(language);
        assert!(text.starts_with("# Names of "), "{language}: no source is given");
        assert!(text.lines().all(|line| line.len() <= 120 && line.trim() == line), "{language}: lines");
        let names: Vec<_> = stdlib_names::parse_names(language).collect();
        assert!(names.len() > 250, "{language}: {} names", names.len());
        for (before, after) in names.iter().zip(&names[1..]) {
            let key = |name: &str| (name.to_ascii_lowercase(), name.to_owned());
            let is_sorted = before.1 != after.1 || key(before.0) < key(after.0);
            assert!(is_sorted, "{language}: {:?} is twice or behind {:?}", after.0, before.0);
        }
        for (name, _) in &names {
            assert!(name.len() <= 40 && name.chars().all(|c| c.is_ascii_graphic()), "{language}: {name:?}");
            let is_placeholder = Placeholder::ALL.iter().any(|kind| name.starts_with(kind.word()));
            assert!(!is_placeholder, "{language}: {name:?} would be read as a placeholder");
            assert_eq!(
                privacy_gate::admit(language, &Form::new(vec![FormToken::Kept((*name).into())]).expect("a form")),
                Ok(()),
                "{name}"
            );
        }
    }
}
