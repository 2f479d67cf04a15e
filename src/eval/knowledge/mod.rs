//! Measures how well learned patterns point at buggy lines, on one-line fixes.
//!
//! The fixes of a source are ordered by time. Patterns and their weights are learned from the earlier part. For every
//! fix of the later part, the lines of the file before the fix are ranked. The measure is how often the fixed line is
//! among the first five. The patterns are compared with
//!
//! - *chance, any line*: five distinct lines of the file, drawn blindly; computed from the number of lines, as the
//!   mean over the cases;
//! - *chance, line of code*: the same among the lines of code. A line is a line of code if code begins on it; blank
//!   lines and comments are not, a bracket alone is;
//! - *trigrams*: the lines that surprise a trigram model most, trained on the files of the learning part;
//! - *1,000 patterns*: only as many patterns as the cache keeps per language, the most frequent ones.
//!
//! Almost half of the public one-line fixes change declarations: imports, packages, heads of classes and functions,
//! fields. Therefore all results are given for all fixes and for fixes of statements. For the latter, the strictest
//! chance is given too: five of the lines on which a statement or an expression begins. A small file proves little:
//! in twenty lines, chance finds a quarter. Therefore the results for statements are also given by file size.
//!
//! - Nothing of the later part is learned from.
//! - A later case is skipped if its file before or after the fix, or its pair of lines, is in the earlier part.
//! - Equal sources give equal results.

pub(crate) mod cases;
mod file_features;
mod ngram;
#[cfg(test)]
mod privacy_corpus;
mod training;
mod weights;

use std::collections::BTreeMap;
use std::path::PathBuf;

use thiserror::Error;

use self::cases::{FixCase, FixCases};
use self::file_features::{
    FormNumber, SHARED_FEATURES, code_lines, code_tokens, collect_line_forms, extract_line_features, hash_form_key,
    line_count, statement_lines,
};
use self::ngram::{NumberMap, Trigrams};
use self::training::{CaseFingerprints, TrainedPattern, TrainedPatterns};
use self::weights::FormWeights;
use crate::git::GitError;
use crate::knowledge::abstraction::digest_form;
use crate::knowledge::pattern::EditKind;
use crate::parallel;
use crate::syntax::source::Parsers;

/// Number of lines at the top of a ranking that count as hits.
pub const TOP_LINES: usize = 5;
/// Number of patterns kept per language, as in the cache.
pub const MAX_KEPT_PATTERNS: usize = 1_000;
/// Bounds of the file size classes, in lines of code.
pub const SIZE_BOUNDS: [usize; 3] = [50, 100, 300];
/// Number of cases read per batch, by all threads together.
const CASES_PER_BATCH: usize = 256;

/// Reason why nothing could be measured.
#[derive(Debug, Error)]
pub enum EvaluateError {
    #[error("{}: {cases} fixes of one line are too few to learn from some and to ask about others", source_path.display())]
    TooFew { source_path: PathBuf, cases: usize },
    #[error("cannot read the folder {}: {error}", path.display())]
    Folder { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Limits of an evaluation; cases are sampled evenly.
#[derive(Debug, Clone, Copy)]
pub struct EvaluationPlan {
    /// Maximum number of cases to learn from.
    pub learn: usize,
    /// Maximum number of cases to test.
    pub ask: usize,
    /// Maximum number of training files for the trigrams, whose memory grows with every file.
    pub trigram_files: usize,
}

/// Number of cases, and how often the fixed line was among the first five.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RankingHits {
    pub cases: usize,
    /// Number of hits; for chance, the expected number.
    pub hits: f64,
}

impl RankingHits {
    fn add(&mut self, hits: f64) {
        self.cases += 1;
        self.hits += hits;
    }

    /// Returns the share of hits, from 0 to 1; 0 without cases.
    pub fn rate(&self) -> f64 {
        self.hits / self.cases.max(1) as f64
    }
}

/// Results of one ranking: for all cases, for cases whose line begins a statement or an expression, and for the
/// latter by file size in the order of [`SIZE_BOUNDS`], starting with files below the first bound.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RankingRow {
    pub all: RankingHits,
    pub statements: RankingHits,
    pub by_size: [RankingHits; SIZE_BOUNDS.len() + 1],
}

/// Line counts of a later case: all lines, lines of code, and lines on which a statement or an expression begins.
/// `is_statement` tells if the fixed line is one of the latter.
#[derive(Debug, Clone, Copy)]
struct CaseLineCounts {
    any: usize,
    code: usize,
    statements: usize,
    is_statement: bool,
}

impl RankingRow {
    fn add(&mut self, asked: CaseLineCounts, hits: f64) {
        self.all.add(hits);
        if asked.is_statement {
            self.statements.add(hits);
            self.by_size[SIZE_BOUNDS.partition_point(|size| *size <= asked.code)].add(hits);
        }
    }
}

/// Statistics of the learning part of one source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrainingStats {
    /// Number of fixes read; `telling` is the number of those that taught something.
    pub fixes: usize,
    pub telling: usize,
    /// Number of patterns of statements and expressions.
    pub patterns: usize,
    pub declarations: usize,
    /// Number of distinct broken forms of statements and expressions.
    pub forms: usize,
    /// Number of patterns with a token that is neither a language's token, nor a placeholder, nor in the list.
    pub leaks: usize,
}

impl TrainingStats {
    /// Returns the share of patterns that leak, from 0 to 1.
    pub fn leak_rate(&self) -> f64 {
        self.leaks as f64 / (self.patterns + self.declarations).max(1) as f64
    }
}

/// Results for one source.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternEvaluation {
    pub learned: TrainingStats,
    /// Number of later cases skipped because they are also in the earlier part.
    pub shared: usize,
    /// Number of invalid later cases: the file cannot be parsed, or the line has no code.
    pub unread: usize,
    /// Result of the patterns of statements and expressions, which reviews use.
    pub patterns: RankingRow,
    /// Result of the most frequent [`MAX_KEPT_PATTERNS`] of these patterns.
    pub kept: RankingRow,
    /// Result of all patterns, including those of declarations.
    pub with_declarations: RankingRow,
    pub trigrams: RankingRow,
    /// Chance with five of all lines, including blank lines and comments.
    pub chance_of_any: RankingRow,
    /// Chance with five of the lines of code.
    pub chance: RankingRow,
    /// Chance with five of the lines on which a statement or an expression begins.
    pub chance_of_statements: RankingRow,
}

/// Evaluates one source. Calls `progress` from time to time with the current step and its count.
pub fn evaluate_patterns(
    cases: &FixCases,
    plan: EvaluationPlan,
    progress: &mut dyn FnMut(&str, usize),
) -> PatternEvaluation {
    let earlier = sample_evenly(cases.training_range(), plan.learn);
    let later = sample_evenly(cases.test_range(), plan.ask);
    let (book, seen) = TrainedPatterns::learn(cases, &earlier, progress);
    let mut with_declarations = WeightedForms::new(&book.patterns);
    let statements = || book.patterns.iter().filter(|pattern| pattern.edit != EditKind::WrongDeclaration);
    let (mut all, mut kept) =
        (WeightedForms::new(statements()), WeightedForms::new(statements().take(MAX_KEPT_PATTERNS)));
    let (patterns, forms) = (statements().count(), all.numbers.len());
    let declarations = book.patterns.len() - patterns;
    let learned = TrainingStats { fixes: earlier.len(), patterns, forms, declarations, ..book.learned };
    drop(book);
    train_weights(cases, &earlier, &mut [&mut all, &mut kept, &mut with_declarations], progress);
    let files: Vec<usize> =
        sample_evenly(0..earlier.len(), plan.trigram_files).into_iter().map(|at| earlier[at]).collect();
    let trigrams = train_trigrams(cases, &files, progress);

    let mut measured = PatternEvaluation {
        learned,
        shared: 0,
        unread: 0,
        patterns: RankingRow::default(),
        kept: RankingRow::default(),
        with_declarations: RankingRow::default(),
        trigrams: RankingRow::default(),
        chance_of_any: RankingRow::default(),
        chance: RankingRow::default(),
        chance_of_statements: RankingRow::default(),
    };
    let mut asked = 0;
    let ask = |parsers: &mut Parsers, case: FixCase| {
        evaluate_case(parsers, &case, &seen, [&all, &kept, &with_declarations], &trigrams)
    };
    map_cases_in_order(cases, &later, &ask, &mut |answer| {
        match answer {
            CaseResult::Shared => measured.shared += 1,
            CaseResult::Unread => measured.unread += 1,
            CaseResult::Ranked { asked, patterns: [patterns, kept, with_declarations], trigrams } => {
                let hit = |is_hit: bool| f64::from(u8::from(is_hit));
                let five_of = |lines: usize| (TOP_LINES as f64 / lines as f64).min(1.0);
                measured.patterns.add(asked, hit(patterns));
                measured.kept.add(asked, hit(kept));
                measured.with_declarations.add(asked, hit(with_declarations));
                measured.trigrams.add(asked, hit(trigrams));
                measured.chance_of_any.add(asked, five_of(asked.any));
                measured.chance.add(asked, five_of(asked.code));
                let blind = if asked.is_statement { five_of(asked.statements) } else { 0.0 };
                measured.chance_of_statements.add(asked, blind);
            }
        }
        asked += 1;
        if asked % CASES_PER_BATCH == 0 {
            progress("cases asked about", asked);
        }
    });
    measured
}

/// Samples at most `most` numbers of a range, evenly spread.
fn sample_evenly(numbers: std::ops::Range<usize>, most: usize) -> Vec<usize> {
    let (all, most) = (numbers.len(), most.min(numbers.len()));
    (0..most).map(|at| numbers.start + at * all / most).collect()
}

/// Works on cases with several threads and passes the results on in case order. Cases that cannot be read are left
/// out.
fn map_cases_in_order<T: Send>(
    cases: &FixCases,
    numbers: &[usize],
    work: &(impl Fn(&mut Parsers, FixCase) -> T + Sync),
    each: &mut dyn FnMut(T),
) {
    for numbers in numbers.chunks(CASES_PER_BATCH) {
        let work_on = |parsers: &mut Parsers, number: &usize| cases.read_case(*number).map(|case| work(parsers, case));
        parallel::map_init(numbers, Parsers::default, work_on).into_iter().flatten().for_each(&mut *each);
    }
}

/// Broken forms of patterns by digest, with their weights.
struct WeightedForms {
    numbers: NumberMap<u64, FormNumber>,
    weights: FormWeights,
}

impl WeightedForms {
    fn new<'p>(patterns: impl IntoIterator<Item = &'p TrainedPattern>) -> Self {
        let mut numbers = NumberMap::default();
        for pattern in patterns {
            let next = numbers.len() as FormNumber;
            numbers.entry(hash_form_key(pattern.language, digest_form(&pattern.broken))).or_insert(next);
        }
        let weights = FormWeights::new(numbers.len() + SHARED_FEATURES);
        Self { numbers, weights }
    }
}

fn train_weights(
    cases: &FixCases,
    numbers: &[usize],
    known: &mut [&mut WeightedForms],
    progress: &mut dyn FnMut(&str, usize),
) {
    let mut weights: Vec<FormWeights> = known.iter().map(|known| known.weights.clone()).collect();
    let work = |parsers: &mut Parsers, case: FixCase| {
        let source = parsers.parse("", case.language, &case.before).ok()?;
        let code = code_lines(&source).len();
        let looks = extract_line_features(&source);
        let lines: Vec<_> = known.iter().map(|known| collect_line_forms(&source, &looks, &known.numbers)).collect();
        Some((lines, code, case.line))
    };
    let mut done = 0;
    map_cases_in_order(cases, numbers, &work, &mut |file| {
        if let Some((lines, code, fixed)) = file {
            for (lines, weights) in lines.iter().zip(&mut weights) {
                weights.learn(lines, code.saturating_sub(lines.len()), fixed);
            }
        }
        done += 1;
        if done % (4 * CASES_PER_BATCH) == 0 {
            progress("files weighed", done);
        }
    });
    for (known, weights) in known.iter_mut().zip(weights) {
        known.weights = weights;
    }
}

fn train_trigrams(cases: &FixCases, numbers: &[usize], progress: &mut dyn FnMut(&str, usize)) -> Trigrams {
    let mut model = Trigrams::default();
    let work = |parsers: &mut Parsers, case: FixCase| {
        let source = parsers.parse("", case.language, &case.before).ok()?;
        let ends: Vec<Vec<u8>> = code_tokens(&source).map(|(_, token)| token.to_vec()).collect();
        Some(ends)
    };
    let mut done = 0;
    map_cases_in_order(cases, numbers, &work, &mut |file| {
        if let Some(tokens) = file {
            model.learn(tokens.iter().map(Vec::as_slice));
        }
        done += 1;
        if done % (4 * CASES_PER_BATCH) == 0 {
            progress("files of the trigrams", done);
        }
    });
    model
}

/// Result of one later case.
enum CaseResult {
    Shared,
    Unread,
    /// For each ranking, true if the fixed line is among the first lines.
    Ranked {
        asked: CaseLineCounts,
        patterns: [bool; 3],
        trigrams: bool,
    },
}

fn evaluate_case(
    parsers: &mut Parsers,
    case: &FixCase,
    seen: &CaseFingerprints,
    known: [&WeightedForms; 3],
    model: &Trigrams,
) -> CaseResult {
    if seen.contains(case) {
        return CaseResult::Shared;
    }
    let Ok(source) = parsers.parse("", case.language, &case.before) else { return CaseResult::Unread };
    let code = code_lines(&source);
    if code.binary_search(&case.line).is_err() {
        return CaseResult::Unread;
    }
    let looks = extract_line_features(&source);
    let points_at = |known: &WeightedForms| {
        let lines = collect_line_forms(&source, &looks, &known.numbers);
        known.weights.rank_lines(&lines, TOP_LINES).contains(&case.line)
    };
    let mut lines: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
    let of: Vec<(u32, &[u8])> = code_tokens(&source).collect();
    model.visit_surprise(of.iter().map(|(_, token)| *token), &mut |at, nats| {
        let (sum, count) = lines.entry(of[at].0).or_default();
        (*sum, *count) = (*sum + nats, *count + 1);
    });
    let mut surprising: Vec<(f64, u32)> =
        lines.into_iter().map(|(line, (sum, count))| (sum / count as f64, line)).collect();
    surprising.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let trigrams = surprising.iter().take(TOP_LINES).any(|(_, line)| *line == case.line);
    let statements = statement_lines(&source);
    let asked = CaseLineCounts {
        any: line_count(&case.before),
        code: code.len(),
        statements: statements.len(),
        is_statement: statements.binary_search(&case.line).is_ok(),
    };
    CaseResult::Ranked { asked, patterns: known.map(points_at), trigrams }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::cases::EvaluationSplit;
    use super::*;
    use crate::syntax::language::Language;

    /// Writes fixes of one mistake in long files, in CodRep's layout. The patterns of the first folder point at the
    /// mistakes of the second.
    fn corpus(folder: &std::path::Path) {
        for (dataset, range) in [(1, 0..40), (2, 0..10)] {
            for name in ["Tasks", "Solutions"] {
                fs::create_dir_all(folder.join(format!("Dataset{dataset}/{name}"))).expect("a folder");
            }
            for number in range {
                let words = ["total", "index", "reader", "limit", "state"];
                let word = format!("{}{dataset}{number}", words[number % words.len()]);
                let wrong = 20 + number * 7 % 60;
                let line = |at: usize| match at {
                    at if at == wrong => format!("    if ({word} == \"{number}\") {{ g{at}(); }}"),
                    at if at % 3 == 0 => format!("    {word} = {word} + {at};"),
                    at => format!("    g{at}({word}, {at});"),
                };
                let body: Vec<String> = (0..100).map(line).collect();
                let file = format!("class K{number} {{\n  void f() {{\n{}\n  }}\n}}\n", body.join("\n"));
                let fixed = format!("if (\"{number}\".equals({word})) {{ g{wrong}(); }}");
                let write = |name: &str, text: String| {
                    fs::write(folder.join(format!("Dataset{dataset}/{name}/{number}.txt")), text).expect("a file");
                };
                write("Tasks", format!("{fixed}\n\n{file}"));
                write("Solutions", format!("{}\n", wrong + 3));
            }
        }
    }

    #[test]
    fn what_was_learned_points_at_the_mistake_and_nothing_leaks() {
        let folder = tempfile::tempdir().expect("a folder");
        corpus(folder.path());
        // A case in both parts.
        let copy = |name: &str| {
            let (from, to) = (format!("Dataset1/{name}/0.txt"), format!("Dataset2/{name}/0.txt"));
            fs::copy(folder.path().join(from), folder.path().join(to)).map(drop).expect("a copy");
        };
        ["Tasks", "Solutions"].into_iter().for_each(copy);
        let cases = FixCases::from_folder(folder.path(), Language::Java, EvaluationSplit::Test).expect("cases");
        let plan = EvaluationPlan { learn: 1_000, ask: 1_000, trigram_files: 100 };
        let measured = evaluate_patterns(&cases, plan, &mut |_, _| ());
        assert_eq!((measured.learned.fixes, measured.learned.telling, measured.learned.leaks), (40, 40, 0));
        assert_eq!((measured.shared, measured.unread, measured.chance.all.cases), (1, 0, 9));
        assert!((measured.patterns.all.rate() - 1.0).abs() < 1e-9, "{measured:?}");
        assert_eq!(measured.patterns.statements, measured.patterns.all);
        assert!(measured.chance.all.rate() < 0.06, "{measured:?}");
        assert_eq!(measured.patterns.by_size[2].cases, 9, "files of 100 to 299 lines");
        assert_eq!(evaluate_patterns(&cases, plan, &mut |_, _| ()), measured, "equal sources give equal figures");
    }

    #[test]
    fn cases_are_spread_evenly() {
        assert_eq!(sample_evenly(10..20, 5), [10, 12, 14, 16, 18]);
        assert_eq!(sample_evenly(3..5, 9), [3, 4]);
    }
}
