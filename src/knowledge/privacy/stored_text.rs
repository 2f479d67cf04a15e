//! Reads every stored, sent or exported text word by word: all files of the cache, the hints of a prompt, an export.
//!
//! Whatever was learned from, each word must be an allowed token of a form or a word of revdeck: a key, a word of a
//! fixed list, an id, a time, or the prose listed here.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde_json::{Map, Value};

use super::AllowedWords;
use crate::domain::{Kind, MuteAction, PatternId, Time};
use crate::knowledge::abstraction::LearnedEdit;
use crate::knowledge::builtin_patterns;
use crate::knowledge::cache::{KnowledgeCache, PatternObservation, PatternOutcome, PatternOutcomeKind, is_origin};
use crate::knowledge::event_log::PatternEventKind;
use crate::knowledge::exchange;
use crate::knowledge::form::Form;
use crate::knowledge::kind_tallies::{FindingVerdict, KindVerdict};
use crate::knowledge::pattern::{EditKind, Pattern, PatternCount, PatternEvidence, PatternOrigin, PatternStance};
use crate::knowledge::prompt_hints::{ChangedForms, render_hints};
use crate::knowledge::test_support::time_at_day;
use crate::syntax::language::Language;

const KEYS: &str = "version language patterns forgotten learned id stance edit kind description broken fixed instruction \
                    evidence origin counts frequency successes failures first_seen last_seen last_matched months related \
                    group muted at event pattern count kinds dismissed addressed files";
/// Words in descriptions, instructions and hints.
const PROSE: &str = "Abstract Known Learned Look a abstract alarm alarms and anything argument as became call \
                     capitals check code condition declaration dismissed do earlier else error false findings fixes \
                     for from handling here if in is it known look meant missing mistake needed needless not operator \
                     out put report reported right seen something stand statement take taken the times type unless \
                     value was what whether with words wrong";
/// Counts that [`StoredTextAudit::check_hints`] gives to patterns. `SAMPLE_FIGURES` are the numbers that then appear
/// in the text.
const SAMPLE_COUNT: PatternCount = PatternCount { frequency: 777, successes: 77, failures: 0 };
const SAMPLE_FIGURES: [&str; 2] = ["777", "100"];

/// Cache with learned patterns, and the leaks found in it.
pub(crate) struct StoredTextAudit {
    home: tempfile::TempDir,
    cache: KnowledgeCache,
    waiting: Vec<PatternObservation>,
    sources: usize,
    /// Number of texts read.
    pub read: usize,
    pub leaks: Vec<String>,
}

impl StoredTextAudit {
    pub fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let cache = KnowledgeCache::open(home.path().join("knowledge_cache"));
        Self { home, cache, waiting: Vec::new(), sources: 0, read: 0, leaks: Vec::new() }
    }

    /// Adds what a file taught: its edits, and forms of dismissed findings.
    pub fn add_observations(
        &mut self,
        language: Language,
        learned: &[LearnedEdit],
        dismissed: impl IntoIterator<Item = Form>,
    ) {
        self.sources += 1;
        let observation = |stance, broken, fixed, edit, kind, evidence| PatternObservation {
            language,
            stance,
            broken,
            fixed,
            edit,
            kind,
            evidence,
            source: format!("source {}", self.sources),
            at: time_at_day(0),
        };
        let mistakes = learned.iter().map(|edit| {
            let (broken, fixed, kind) = (edit.broken.clone(), edit.fixed.clone(), edit.edit.default_kind());
            observation(PatternStance::Mistake, broken, fixed, edit.edit, kind, PatternEvidence::History)
        });
        let alarms = dismissed.into_iter().map(|form| {
            let (edit, kind) = (EditKind::Other, Kind::MagicNumbers);
            observation(PatternStance::FalseAlarm, form, Form::default(), edit, kind, PatternEvidence::Dismissed)
        });
        self.waiting.extend(mistakes.chain(alarms).collect::<Vec<_>>());
    }

    pub fn pending_count(&self) -> usize {
        self.waiting.len()
    }

    /// Learns the pending observations and checks all stored and sent texts.
    pub fn learn_and_check(&mut self, allowed: &AllowedWords) {
        self.cache.learn(&std::mem::take(&mut self.waiting), time_at_day(1)).expect("learned");
        self.check_folder(allowed, &self.home.path().join("knowledge_cache"));
        let languages: BTreeMap<&str, Language> = Language::ALL.map(|language| (language.name(), language)).into();
        for &language in languages.values() {
            for pattern in self.cache.patterns(language).expect("patterns") {
                if pattern.origin != PatternOrigin::Base {
                    self.check_hints(allowed, language, pattern);
                }
            }
        }
    }

    /// Runs [`Self::learn_and_check`], then all other operations on patterns, an export and an import, and checks
    /// everything again.
    pub fn check_all(&mut self, allowed: &AllowedWords) {
        self.learn_and_check(allowed);
        for language in Language::ALL {
            let patterns = self.cache.patterns(language).expect("patterns").into_iter();
            let two: Vec<Pattern> = patterns.filter(|pattern| pattern.origin != PatternOrigin::Base).take(2).collect();
            let ids: Vec<PatternId> = two.iter().map(|pattern| pattern.id.clone()).collect();
            if let [one, other] = &ids[..] {
                let outcomes = [PatternOutcomeKind::Success, PatternOutcomeKind::Failure].map(|outcome| {
                    PatternOutcome { language, pattern: one.clone(), outcome, source: "a finding".into() }
                });
                self.cache.record_outcomes(&outcomes, time_at_day(2)).expect("recorded");
                self.cache.record_matches(language, &ids, time_at_day(2)).expect("matched");
                self.cache.mute(language, std::slice::from_ref(one), MuteAction::Mute, time_at_day(2)).expect("muted");
                self.cache.forget(language, std::slice::from_ref(other), time_at_day(2)).expect("forgotten");
            }
        }
        let judged = Language::ALL.map(|language| KindVerdict {
            language,
            kind: Kind::LongMethod,
            verdict: FindingVerdict::Dismissed,
            file: "customers/secret_plan".into(),
            source: "a finding".into(),
        });
        self.cache.record_verdicts(&judged, time_at_day(2)).expect("counted");
        let export = exchange::export_patterns(&self.cache, None).expect("an export");
        self.check_value(allowed, "export", &export);
        let (file, other) = (self.home.path().join("export.json"), self.home.path().join("other"));
        std::fs::write(&file, export.to_string()).expect("written");
        exchange::import_patterns(&KnowledgeCache::open(&other), &file, time_at_day(3)).expect("imported");
        self.check_folder(allowed, &self.home.path().join("knowledge_cache"));
        self.check_folder(allowed, &other);
    }

    fn check_folder(&mut self, allowed: &AllowedWords, folder: &Path) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("a text");
            let values: Vec<Value> = match &*name {
                "lock" if text.is_empty() => Vec::new(),
                "origin" if is_origin(text.trim_end()) => Vec::new(),
                _ => serde_json::Deserializer::from_str(&text).into_iter().map(|value| value.expect("JSON")).collect(),
            };
            for value in &values {
                self.check_value(allowed, &name, value);
            }
        }
    }

    /// Checks the hints for a pattern as if it were the best of all.
    fn check_hints(&mut self, allowed: &AllowedWords, language: Language, mut pattern: Pattern) {
        pattern.counts.values_mut().for_each(|count| *count = SAMPLE_COUNT);
        (pattern.group, pattern.muted) = (None, false);
        let text =
            render_hints(std::slice::from_ref(&pattern), &ChangedForms::default(), time_at_day(1), u64::MAX, &|_| 0);
        assert!(text.contains(&pattern.broken), "{pattern:?} is told: {text}");
        let text = text.replace(&format!("- {}: ", language.name()), "");
        let said = Map::from_iter(
            [("broken", pattern.broken), ("fixed", pattern.fixed), ("description", text)]
                .map(|(key, text)| (key.to_owned(), Value::from(text))),
        );
        self.check_pattern(allowed, language.name(), &said);
    }

    fn check_value(&mut self, allowed: &AllowedWords, key: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                if fields.contains_key("broken") {
                    let language = fields["language"].as_str().unwrap_or_default().to_owned();
                    self.check_pattern(allowed, &language, fields);
                }
                for (name, value) in fields {
                    if !KEYS.split_whitespace().any(|key| key == name) && !is_own_word(name) {
                        self.leaks.push(format!("the key {name:?} in {key}"));
                    }
                    self.check_value(allowed, name, value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.check_value(allowed, key, item)),
            Value::String(text) => {
                self.read += 1;
                let is_allowed = match key {
                    // Checked by `check_pattern`.
                    "broken" | "fixed" | "description" | "instruction" => true,
                    "learned" => is_digits(text, 16),
                    _ => is_own_word(text),
                };
                if !is_allowed {
                    self.leaks.push(format!("{text:?} in {key}"));
                }
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    /// Checks the forms and texts of a pattern.
    fn check_pattern(&mut self, allowed: &AllowedWords, language: &str, fields: &Map<String, Value>) {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        for form in ["broken", "fixed"].map(text) {
            match form.parse::<Form>() {
                Ok(form) => {
                    let leaks = allowed.disallowed_words(language, &form);
                    self.leaks.extend(leaks.into_iter().map(|word| format!("{language}: {word:?} in {form}")));
                }
                Err(error) => self.leaks.push(format!("{language}: {form:?}: {error}")),
            }
        }
        let curated = builtin_patterns::find_language(language).map_or(&[][..], builtin_patterns::patterns);
        let curated = curated.iter().find(|pattern| pattern.id.as_str() == text("id"));
        let kinds: HashSet<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
        for said in ["description", "instruction"].map(text) {
            if curated
                .is_some_and(|pattern| [&pattern.description, &pattern.instruction].iter().any(|own| *own == said))
            {
                continue;
            }
            let forms = ["broken", "fixed"].map(text).map(|form| format!("`{form}`"));
            let rest = forms.iter().fold(said.to_owned(), |rest, form| rest.replace(form, " "));
            let words = rest.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
            let is_leak = |word: &&str| {
                let is_prose = PROSE.split_whitespace().any(|own| own == *word);
                !is_prose && !kinds.contains(word) && !SAMPLE_FIGURES.contains(word)
            };
            self.leaks.extend(words.filter(is_leak).map(|word| format!("{word:?} in {said:?}")));
        }
    }
}

/// Returns true if a text is a word of a fixed list, an id, a time or a month.
fn is_own_word(text: &str) -> bool {
    let lists = [
        PatternStance::ALL.iter().map(|word| word.word()).collect::<Vec<_>>(),
        EditKind::ALL.iter().map(|word| word.word()).collect(),
        Kind::ALL.iter().map(|word| word.word()).collect(),
        PatternEvidence::ALL.iter().map(|word| word.word()).collect(),
        PatternOrigin::ALL.iter().map(|word| word.word()).collect(),
        PatternEventKind::ALL.iter().map(|word| word.word()).collect(),
        Language::ALL.map(Language::name).to_vec(),
    ];
    let is_month = text.len() == 7 && text.chars().all(|c| c.is_ascii_digit() || c == '-');
    let is_time = text.parse::<Time>().is_ok_and(|time| time.to_string() == text);
    let is_id = text.strip_prefix("k_").is_some_and(|digits| is_digits(digits, 16));
    lists.iter().flatten().any(|word| *word == text) || is_month || is_time || is_id || is_origin(text)
}

fn is_digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[test]
fn a_leak_would_be_seen() {
    let allowed = AllowedWords::new();
    let sound = serde_json::json!({ "language": "python", "broken": "VARIABLE == None", "fixed": "VARIABLE is None",
        "description": "wrong operator: `VARIABLE == None` became `VARIABLE is None`" });
    let leaks = |key: &str, text: &str| {
        let mut value = sound.clone();
        value[key] = text.into();
        let mut kept = StoredTextAudit::new();
        kept.check_value(&allowed, "a file", &value);
        kept.leaks.len()
    };
    assert_eq!(leaks("stance", "mistake"), 0);
    for (key, text) in [
        ("broken", "apiKey == None"),
        ("fixed", "VARIABLE is 42"),
        ("description", "wrong operator in apiKey"),
        ("instruction", "look whether `apiKey` is meant"),
        ("kind", "apiKey"),
        ("apiKey", "mistake"),
        ("group", "k_apiKey"),
    ] {
        assert!(leaks(key, text) > 0, "{key}: {text}");
    }
}
