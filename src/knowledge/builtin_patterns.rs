//! Provides the curated patterns of revdeck, `assets/knowledge/<language>.json`. They are merged with learned
//! patterns at run time; their counts are stored in the user's cache.
//!
//! - Each pattern is the abstraction of an example in `tests/knowledge/<language>.toml` (tested).

use serde::Deserialize;

use super::pattern::Pattern;
use crate::syntax::definition::PerLanguage;
use crate::syntax::language::Language;

/// Origin under which a curated pattern is counted.
pub const ORIGIN: &str = "base";

#[derive(Deserialize)]
struct PatternFile {
    patterns: Vec<Pattern>,
}

/// Returns the languages with knowledge, each name once; of languages that share a name, the first.
pub fn languages() -> impl Iterator<Item = Language> {
    Language::ALL.into_iter().filter(|language| find_language(language.name()) == Some(*language))
}

/// Returns the language with this name; of those that share it, the first.
pub fn find_language(name: &str) -> Option<Language> {
    Language::ALL.into_iter().find(|language| language.name() == name)
}

/// Returns the curated patterns of a language.
pub fn patterns(language: Language) -> &'static [Pattern] {
    static PARSED: PerLanguage<Vec<Pattern>> = PerLanguage::new(|language| {
        serde_json::from_str::<PatternFile>(language.curated_patterns()).map(|file| file.patterns).unwrap_or_default()
    });
    PARSED.get(find_language(language.name()).unwrap_or(language))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::domain::{Kind, PatternId, Time, text};
    use crate::knowledge::abstraction::{LearnedEdit, extract_edits, visit_sites};
    use crate::knowledge::pattern::{PatternCount, PatternEvidence, PatternOrigin, PatternStance};
    use crate::knowledge::rank::{Inclusion, assess_pattern};
    use crate::knowledge::{knowledge_file, privacy_gate};
    use crate::syntax::source::Parsers;

    /// Environment variable that makes the test write `assets/knowledge` anew from the examples.
    const WRITE: &str = "REVDECK_WRITE_BASE";

    #[derive(Deserialize)]
    struct PatternExamples {
        /// Code around both sides of an example, which stand at the `@`.
        code: String,
        pattern: Vec<PatternExample>,
    }

    #[derive(Deserialize)]
    struct PatternExample {
        kind: Kind,
        description: String,
        instruction: String,
        before: String,
        after: String,
        /// Broken form to use instead of the smallest learned form.
        broken: Option<String>,
    }

    impl PatternExample {
        fn edits(&self, parsers: &mut Parsers, language: Language, code: &str) -> Vec<LearnedEdit> {
            let [before, after] = [&self.before, &self.after].map(|side| code.replacen('@', side.trim_end(), 1));
            extract_edits(parsers, language, before.as_bytes(), after.as_bytes())
        }
    }

    fn examples(language: Language) -> PatternExamples {
        let path = folder("tests/knowledge").join(format!("{}.toml", language.name()));
        toml::from_str(&std::fs::read_to_string(&path).expect("examples")).expect("sound ones")
    }

    /// Returns true if the code contains the form.
    fn stands(parsers: &mut Parsers, language: Language, code: &str, form: &str) -> bool {
        let source = parsers.parse("", language, code.as_bytes()).expect("it parses");
        let mut found = false;
        visit_sites(&source, None, &mut |site| found |= site.form().to_string() == form);
        found
    }

    fn folder(path: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
    }

    fn build_patterns(language: Language) -> Vec<Pattern> {
        let name = language.name();
        let examples = examples(language);
        let mut parsers = Parsers::default();
        let made = |example: &PatternExample| {
            let edits = example.edits(&mut parsers, language, &examples.code);
            let edit = match &example.broken {
                None => edits.first()?,
                Some(broken) => edits.iter().find(|edit| edit.broken.to_string() == *broken)?,
            };
            Some(Pattern {
                description: example.description.clone(),
                instruction: example.instruction.clone(),
                evidence: PatternEvidence::Curated,
                origin: PatternOrigin::Base,
                counts: [(ORIGIN.to_owned(), PatternCount { frequency: 1, ..PatternCount::default() })].into(),
                ..Pattern::from_forms(name, PatternStance::Mistake, edit.edit, example.kind, &edit.broken, &edit.fixed)
            })
        };
        let all: Vec<Option<Pattern>> = examples.pattern.iter().map(made).collect();
        let missing: Vec<&str> = examples
            .pattern
            .iter()
            .zip(&all)
            .filter(|(_, made)| made.is_none())
            .map(|(example, _)| &*example.before)
            .collect();
        if std::env::var_os(WRITE).is_none() {
            assert_eq!(missing, Vec::<&str>::new(), "{name}: nothing is learned of these");
        }
        all.into_iter().flatten().collect()
    }

    #[test]
    fn each_pattern_is_what_abstraction_makes_of_its_example() {
        for language in languages() {
            let made = build_patterns(language);
            if std::env::var_os(WRITE).is_some() {
                let lines: Vec<String> = made.iter().map(|pattern| json!(pattern).to_string()).collect();
                let name = language.name();
                let text =
                    format!("{{\"version\":1,\"language\":\"{name}\",\"patterns\":[\n{}\n]}}\n", lines.join(",\n"));
                std::fs::write(folder("assets/knowledge").join(format!("{name}.json")), text).expect("written");
                continue;
            }
            assert_eq!(patterns(language), made, "{}: {WRITE}=1 writes it anew", language.name());
        }
    }

    #[test]
    fn each_pattern_is_found_in_its_example_and_not_in_the_cure() {
        let mut parsers = Parsers::default();
        for language in languages() {
            let examples = examples(language);
            for (pattern, example) in patterns(language).iter().zip(&examples.pattern) {
                let [before, after] =
                    [&example.before, &example.after].map(|side| examples.code.replacen('@', side.trim_end(), 1));
                let name = language.name();
                assert!(stands(&mut parsers, language, &before, &pattern.broken), "{name}: {before}");
                assert!(!stands(&mut parsers, language, &after, &pattern.broken), "{name}: {after}");
            }
        }
    }

    #[test]
    fn each_pattern_is_sound_and_used_at_once() {
        for language in languages() {
            let name = language.name();
            let file: PatternFile = serde_json::from_str(language.curated_patterns()).expect("an asset");
            let ids: HashSet<&PatternId> = file.patterns.iter().map(|pattern| &pattern.id).collect();
            assert_eq!(ids.len(), file.patterns.len(), "{name}: twice the same");
            assert!((5..=20).contains(&ids.len()), "{name}: {}", ids.len());
            for pattern in &file.patterns {
                let (broken, fixed) =
                    knowledge_file::parse_admitted_forms(pattern).unwrap_or_else(|| panic!("{pattern:?}"));
                assert_eq!(privacy_gate::admit_pair(name, &broken, &fixed), Ok(()));
                assert_eq!(pattern.language, name);
                assert_eq!(assess_pattern(pattern, Time::UNIX_EPOCH).inclusion, Inclusion::Now);
                for said in [&pattern.description, &pattern.instruction] {
                    assert!(!said.is_empty() && said.len() <= 120 && text::sanitize_line(said) == *said, "{said}");
                }
            }
        }
    }

    #[test]
    fn each_language_is_known_by_its_name() {
        assert_eq!(languages().count() + 1, Language::ALL.len(), "only TSX has the name of another language");
        for this in languages() {
            assert_eq!(find_language(this.name()), Some(this));
            assert!(!patterns(this).is_empty(), "{}", this.name());
        }
        assert_eq!(patterns(Language::Tsx), patterns(Language::TypeScript));
        assert_eq!(find_language("cobol"), None);
    }
}
