//! Rules for secrets as data: `assets/secrets.toml`, which the build converts to JSON.
//!
//! A text is searched once for the keywords of all rules. Only around a keyword is the pattern of its rule tried, so that a
//! rule costs nothing in a text without its keyword. Patterns are compiled when they are first needed.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::{SecretSpan, values};

/// `assets/secrets.toml` as JSON.
const RULES: &str = include_str!(concat!(env!("OUT_DIR"), "/secrets.json"));
/// Bytes before and behind a keyword in which its rule is tried. The largest distance of a pattern's parts is about 300.
const WINDOW_BEFORE: usize = 420;
const WINDOW_AFTER: usize = 700;
/// Bytes behind a keyword that are searched at once, so that close keywords do not search the same text again and again.
const SEARCHED_AFTER: usize = 3 * WINDOW_AFTER;
/// Longest secret, in bytes, that a rule finds. Sessions and web tokens have up to some thousand.
const MAX_MATCH_BYTES: usize = 16 << 10;
/// Bits per character by which masks go below the lower limit of a rule: a mask too many costs less than a secret.
const MASK_ENTROPY_DISCOUNT: f64 = 0.5;
/// Number of bytes after which a process searches with a faster automaton. It takes 3 ms and 1.4 MB to build instead of
/// 1 ms and 0.1 MB, and searches 380 MB/s instead of 150.
const MIN_BYTES_FOR_FAST_SEARCH: usize = 512 << 10;
/// Name, assignment and quote between `near` and `value` of a rule.
const ASSIGNMENT: &str = r#"(?:[ \t\w.-]{0,20})[\s'"\\]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=\\]{0,5}"#;
/// End of a value, so that no longer text is cut.
const VALUE_END: &str = r"(?:[^0-9A-Za-z]|\z)";

/// A match of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleMatch {
    /// Byte range of the secret.
    pub range: Range<usize>,
    /// Label for people: "an AWS access key".
    pub label: &'static str,
    /// Lower-case letters joined by hyphens; see `assets/secrets.toml`.
    pub rule: &'static str,
    /// True if it is the key of a provider, or an example of one.
    is_reported: bool,
    /// True if masks hide it.
    is_masked: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rules: Vec<RuleText>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    id: String,
    label: String,
    pattern: Option<String>,
    near: Option<String>,
    value: Option<String>,
    keywords: Vec<String>,
    #[serde(default)]
    min_entropy: f64,
    value_check: Option<ValueCheck>,
    #[serde(default = "default_is_reported")]
    is_reported: bool,
}

fn default_is_reported() -> bool {
    true
}

/// A condition that a pattern cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ValueCheck {
    /// Chosen by a person, and no placeholder.
    Password,
    /// Not made of words.
    Random,
    /// Base64 of a user and a password.
    BasicAuth,
}

struct Rule {
    id: String,
    label: String,
    pattern: String,
    compiled: OnceLock<Option<Regex>>,
    min_entropy: f64,
    check: Option<ValueCheck>,
    is_reported: bool,
    /// True if the pattern contains names and assignments, so that words may match its value.
    has_context: bool,
}

impl Rule {
    fn new(text: RuleText) -> Self {
        let RuleText { id, label, pattern, near, value, min_entropy, value_check, is_reported, .. } = text;
        let has_context = near.is_some();
        let pattern = pattern.unwrap_or_else(|| {
            format!("(?i:{}){ASSIGNMENT}({}){VALUE_END}", near.unwrap_or_default(), value.unwrap_or_default())
        });
        let is_reported = is_reported && !has_context && value_check.is_none();
        Self {
            id,
            label,
            pattern,
            compiled: OnceLock::new(),
            min_entropy,
            check: value_check,
            is_reported,
            has_context,
        }
    }

    fn regex(&self) -> Option<&Regex> {
        let compile = || RegexBuilder::new(&self.pattern).unicode(false).size_limit(32 << 20).build();
        // A test compiles all patterns.
        self.compiled
            .get_or_init(|| compile().inspect_err(|error| tracing::error!(rule = self.id, %error, "a rule")).ok())
            .as_ref()
    }

    /// Returns whether a matched text is reported, as the key of a provider or an example of one.
    fn reports(&self, text: &str) -> bool {
        self.is_reported && values::shannon_entropy(text) >= self.min_entropy
    }

    /// Returns whether a matched text is a secret.
    fn accepts(&self, text: &str) -> bool {
        let is_accepted = match self.check {
            None => !self.has_context || !values::is_made_of_words(text),
            Some(ValueCheck::Password) => values::is_password(text),
            Some(ValueCheck::Random) => values::is_random(text),
            Some(ValueCheck::BasicAuth) => values::is_basic_credential(text),
        };
        is_accepted
            && (self.min_entropy == 0.0 || values::shannon_entropy(text) >= self.min_entropy - MASK_ENTROPY_DISCOUNT)
    }
}

/// All rules, and the search for their keywords.
struct RuleSet {
    rules: Vec<Rule>,
    keywords: Vec<String>,
    search: AhoCorasick,
    /// Built once [`MIN_BYTES_FOR_FAST_SEARCH`] were searched.
    fast_search: OnceLock<AhoCorasick>,
    searched_bytes: AtomicUsize,
    /// Rules of each keyword.
    rules_by_keyword: Vec<Vec<u16>>,
}

static RULE_SET: LazyLock<RuleSet> = LazyLock::new(|| {
    // The file is part of the program and a test reads it.
    let file: RuleFile =
        serde_json::from_str(RULES).unwrap_or_else(|error| unreachable!("assets/secrets.toml: {error}"));
    let mut keywords: Vec<String> = Vec::new();
    let mut rules_by_keyword: Vec<Vec<u16>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    let mut rules = Vec::new();
    for (number, text) in (0..).zip(file.rules) {
        for keyword in &text.keywords {
            let place = *places.entry(keyword.clone()).or_insert_with(|| {
                keywords.push(keyword.clone());
                rules_by_keyword.push(Vec::new());
                keywords.len() - 1
            });
            if let Some(rules) = rules_by_keyword.get_mut(place) {
                rules.push(number);
            }
        }
        rules.push(Rule::new(text));
    }
    let search = build_keyword_search(&keywords, AhoCorasickKind::ContiguousNFA);
    RuleSet {
        rules,
        keywords,
        search,
        fast_search: OnceLock::new(),
        searched_bytes: AtomicUsize::new(0),
        rules_by_keyword,
    }
});

fn build_keyword_search(keywords: &[String], kind: AhoCorasickKind) -> AhoCorasick {
    let mut builder = AhoCorasick::builder();
    let built = builder.ascii_case_insensitive(true).kind(Some(kind)).build(keywords);
    built.unwrap_or_else(|error| unreachable!("{error}"))
}

impl RuleSet {
    /// Returns the search for the keywords in a text of this length.
    fn keyword_search(&self, bytes: usize) -> &AhoCorasick {
        if self.searched_bytes.fetch_add(bytes, Ordering::Relaxed) < MIN_BYTES_FOR_FAST_SEARCH {
            return &self.search;
        }
        self.fast_search.get_or_init(|| build_keyword_search(&self.keywords, AhoCorasickKind::DFA))
    }
}

/// Finds the keys of providers and the credentials of clients with all rules, in one search. [`select_reported`] and
/// [`select_masked`] tell them apart.
pub fn find_keys_by_rules(text: &[u8]) -> Vec<RuleMatch> {
    search(text, |_| true)
}

/// Finds the keys of providers, in order and without overlaps. Examples and placeholders are included; private keys are
/// not.
pub fn find_reported(text: &[u8]) -> Vec<RuleMatch> {
    select_reported(&search(text, |rule| rule.is_reported))
}

/// Selects the keys of providers, in order and without overlaps. Examples and placeholders are included.
pub fn select_reported(keys: &[RuleMatch]) -> Vec<RuleMatch> {
    let mut found: Vec<RuleMatch> = keys.iter().filter(|key| key.is_reported).cloned().collect();
    found.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
    let mut end = 0;
    found.retain(|found| {
        let is_apart = found.range.start >= end;
        end = end.max(found.range.end);
        is_apart
    });
    found
}

/// Selects the keys that are masked.
pub fn select_masked(keys: &[RuleMatch]) -> impl Iterator<Item = SecretSpan> {
    keys.iter().filter(|key| key.is_masked).map(|key| (key.range.clone(), key.label))
}

/// Searches with the rules that are `wanted`.
fn search(text: &[u8], wanted: impl Fn(&Rule) -> bool) -> Vec<RuleMatch> {
    let set: &'static RuleSet = &RULE_SET;
    let mut found = Vec::new();
    // Position up to which each rule has searched.
    let mut searched: Vec<usize> = Vec::new();
    for hit in set.keyword_search(text.len()).find_overlapping_iter(text) {
        if searched.is_empty() {
            searched = vec![0; set.rules.len()];
        }
        for &number in &set.rules_by_keyword[hit.pattern().as_usize()] {
            let Some(rule) = set.rules.get(usize::from(number)).filter(|rule| wanted(rule)) else { continue };
            let Some(done) = searched.get_mut(usize::from(number)) else { continue };
            if *done < hit.end() {
                *done = search_around(text, rule, (*done, hit.start()..hit.end()), |range| {
                    let secret = text.get(range.clone()).and_then(|secret| std::str::from_utf8(secret).ok());
                    let Some(secret) = secret else { return };
                    let (is_reported, is_masked) = (rule.reports(secret), rule.accepts(secret));
                    if is_reported || is_masked {
                        found.push(RuleMatch { range, label: &rule.label, rule: &rule.id, is_reported, is_masked });
                    }
                });
            }
        }
    }
    found
}

/// Tries a rule around a keyword. Returns the position up to which it need not be tried again.
fn search_around(
    text: &[u8],
    rule: &Rule,
    (done, keyword): (usize, Range<usize>),
    mut take: impl FnMut(Range<usize>),
) -> usize {
    let Some(regex) = rule.regex() else { return text.len() };
    let mut at = keyword.start.saturating_sub(WINDOW_BEFORE).max(done);
    let mut end = (keyword.end + SEARCHED_AFTER).min(text.len());
    let mut last = done;
    while at <= end {
        let Some(groups) = text.get(..end).and_then(|window| regex.captures_at(window, at)) else {
            // A word that reaches the end of the window may match as a whole.
            let is_word = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`');
            let is_cut = end < text.len() && end - keyword.end < MAX_MATCH_BYTES;
            if is_cut && text.get(keyword.end..end).is_some_and(|rest| rest.iter().all(is_word)) {
                end = (end + 2 * SEARCHED_AFTER).min(text.len());
                continue;
            }
            break;
        };
        let Some(whole) = groups.get(0) else { break };
        // A match that reaches the end of the window may go on behind it.
        if whole.end() >= end && end < text.len() && end - keyword.end < MAX_MATCH_BYTES {
            end = (end + 4 * WINDOW_AFTER).min(text.len());
            continue;
        }
        let secret = (1..groups.len()).find_map(|group| groups.get(group)).unwrap_or(whole);
        take(secret.range());
        last = whole.end();
        at = if whole.end() > whole.start() { secret.end().max(whole.start() + 1) } else { whole.end() + 1 };
    }
    // A keyword in this part has its whole window in the text that was searched.
    last.max(keyword.end).max(end.saturating_sub(WINDOW_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles_and_its_keywords_are_lower_case() {
        for (rule, keywords) in RULE_SET.rules.iter().zip(serde_json::from_str::<RuleFile>(RULES).expect("rules").rules)
        {
            assert!(rule.regex().is_some(), "{}: {}", rule.id, rule.pattern);
            assert!(!keywords.keywords.is_empty(), "{}", rule.id);
            for keyword in keywords.keywords {
                assert_eq!(keyword, keyword.to_ascii_lowercase(), "{}", rule.id);
            }
        }
    }

    #[test]
    fn the_converted_rules_are_those_of_the_file() {
        let written = include_str!("../../assets/secrets.toml");
        let from_toml: serde_json::Value = toml::from_str(written).expect("TOML");
        assert_eq!(serde_json::from_str::<serde_json::Value>(RULES).expect("JSON"), from_toml);
        assert_eq!(RULE_SET.rules.len(), written.lines().filter(|line| line.starts_with("    { id = ")).count());
    }

    #[test]
    fn ids_of_rules_are_unique() {
        let mut ids: Vec<&str> = RULE_SET.rules.iter().map(|rule| rule.id.as_str()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn a_long_match_is_found_whole() {
        let token = format!("eyJ{}.eyJ{}.{}", "a1B".repeat(20), "c2D".repeat(1_500), "e3F".repeat(30));
        let text = format!("x {token} y");
        assert_eq!(find_reported(text.as_bytes())[0].range, 2..2 + token.len());
    }

    #[test]
    fn neighbours_are_found_each() {
        let key = |letter: &str| format!("{}{}", concat!("AK", "IA"), letter.repeat(16));
        let text = format!("{} {}\n{}", key("B"), key("C"), key("D"));
        let found: Vec<Range<usize>> = find_reported(text.as_bytes()).into_iter().map(|found| found.range).collect();
        assert_eq!(found, [0..20, 21..41, 42..62]);
    }
}
