//! Measures the speed of pattern matching: parsing and matching 1,000 patterns of each language, compared with
//! tree-sitter parsing of the same files, both on two threads. The ratio must stay below 3.
//!
//! The patterns are forms from the files themselves, up to that number for each language. This is the worst case,
//! because code without a match costs only the look-up. A second figure shows the case without matches.
//!
//! ```text
//! cargo bench --bench matching                                      # a generated corpus of all languages
//! REVDECK_BENCH_CORPUS=~/src/project cargo bench --bench matching   # the files of a real folder
//! ```

#![allow(clippy::print_stdout)]

#[path = "support/corpus.rs"]
mod corpus;

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use corpus::{File, corpus, on_threads, parse_all};
use revdeck::domain::Kind;
use revdeck::knowledge::abstraction::visit_sites;
use revdeck::knowledge::form::Form;
use revdeck::knowledge::matcher::{PatternMatcher, TrustedPattern};
use revdeck::knowledge::pattern::{EditKind, Pattern, PatternStance};
use revdeck::syntax::source::Parsers;

const ROUNDS: usize = 5;
/// The number of patterns per language: the maximum that the store keeps.
const PATTERNS: usize = 1_000;

fn main() {
    let lines: usize = corpus().iter().map(|file| file.text.split(|byte| *byte == b'\n').count()).sum();
    let best = |run: fn()| -> Duration {
        let time = || {
            let start = Instant::now();
            run();
            start.elapsed()
        };
        (0..ROUNDS).map(|_| time()).min().unwrap_or_default()
    };
    let parse = best(parse_all);
    let (_, patterns) = matchers();
    println!("{} files, {lines} lines, {patterns} patterns", corpus().len());
    let (matching, silent) = (best(|| match_all(&matchers().0[0])), best(|| match_all(&matchers().0[1])));
    let found = FOUND.load(Ordering::Relaxed) / ROUNDS;
    let ratio = |time: Duration| time.as_secs_f64() / parse.as_secs_f64();
    let per_million = |time: Duration| time.mul_f64(1e6 / lines as f64);
    println!(
        "best of {ROUNDS}, for a million lines: parsing {:.1?}, with matching {:.1?} ({found} matches), ratio {:.2} (limit 3); \
         of patterns that match nothing {:.1?}, ratio {:.2}",
        per_million(parse),
        per_million(matching),
        ratio(matching),
        per_million(silent),
        ratio(silent)
    );
}

/// The number of matches in all rounds.
static FOUND: AtomicUsize = AtomicUsize::new(0);

fn match_all(matcher: &'static PatternMatcher) {
    on_threads(|| {
        let mut parsers = Parsers::default();
        move |file: &File| {
            let Ok(source) = parsers.parse(&file.path, file.language, &file.text) else { return };
            FOUND.fetch_add(black_box(matcher.find_matches(&source, None)).len(), Ordering::Relaxed);
        }
    });
}

/// Returns a matcher of patterns that occur in the files, a matcher of patterns that do not, and the number of
/// patterns.
fn matchers() -> &'static ([PatternMatcher; 2], usize) {
    static MATCHERS: OnceLock<([PatternMatcher; 2], usize)> = OnceLock::new();
    MATCHERS.get_or_init(|| {
        let mut forms: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        let mut parsers = Parsers::default();
        for file in corpus() {
            let Ok(source) = parsers.parse(&file.path, file.language, &file.text) else { continue };
            let forms = forms.entry(file.language.name()).or_default();
            let mut seen = BTreeSet::new();
            visit_sites(&source, None, &mut |site| {
                if forms.len() < PATTERNS && seen.insert(site.digest) {
                    forms.insert(site.form().to_string());
                }
            });
        }
        let count = forms.values().map(BTreeSet::len).sum();
        let used = |suffix: &'static str| {
            let all = forms.iter().flat_map(|(language, forms)| forms.iter().map(|form| (*language, form)));
            PatternMatcher::new(all.filter_map(|(language, form)| used(language, &format!("{form}{suffix}"))))
        };
        ([used(""), used(" nowhere")], count)
    })
}

/// Returns the pattern, or `None` if its form is too long.
fn used(language: &str, broken: &str) -> Option<TrustedPattern> {
    let (stance, edit, kind) = (PatternStance::Mistake, EditKind::Other, Kind::Correctness);
    let pattern = Pattern::from_forms(language, stance, edit, kind, &broken.parse().ok()?, &Form::default());
    Some(TrustedPattern { pattern, confidence: 0.9 })
}
