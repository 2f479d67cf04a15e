//! Computes the similarity of two findings from the words and concepts of their titles and explanations, and from their
//! quoted code.
//!
//! There are three answers to whether two reports describe one problem: they say the same, they clearly describe two
//! problems, or the words do not decide. Where they do not decide, the place does.

use super::defect_concepts::ConceptSet;
use crate::domain::{Finding, Kind};

/// Minimum similarity (Jaccard index in thousandths) at which titles or texts say the same. Not from the literature:
/// "null check missing for user" and "user is not checked for null" have 600, two problems with one common phrase about
/// 300.
const MIN_SIMILARITY: u32 = 500;

/// Minimum similarity (Jaccard index in thousandths) of almost equal code. Not from the literature: one word in a line
/// differs.
const MIN_CODE_SIMILARITY: u32 = 800;

/// Minimum similarity (Jaccard index in thousandths) of two titles without their names at which they are one sentence
/// about two things. Not from the literature: "the error of `read` is ignored" and "the error of `write` is ignored".
const MIN_SIBLING_SIMILARITY: u32 = 600;

/// Similarity (Jaccard index in thousandths) from which different concepts do not make two problems. Not from the
/// literature: two of five words are common; two problems with the same empty words have 300.
const MAX_DISTINCT_SIMILARITY: u32 = 400;

/// Similarity (Jaccard index in thousandths) from which texts without concepts are not two problems. Not from the
/// literature: hardly more than the name of the function is common.
const MAX_UNRELATED_SIMILARITY: u32 = 100;

/// Similarity (Jaccard index in thousandths) of two titles below which reports of one answer are two problems. Not from
/// the literature: "unchecked index" and "unchecked division" have 333, and a model lists no problem twice in an answer
/// without naming it in the same words.
const MAX_OTHER_TITLE_SIMILARITY: u32 = 350;

/// First words of a title that names the remedy instead of the problem.
const REMEDY_VERBS: [&str; 8] = ["add", "avoid", "consider", "extract", "prefer", "remove", "replace", "use"];

/// Minimum number of words of a text without concepts that clearly says something else. Not from the literature: a
/// sentence.
const MIN_UNRELATED_WORDS: usize = 8;

/// Maximum number of words that are compared. Not from the literature: a long explanation.
const MAX_COMPARED_WORDS: usize = 400;

/// Words without meaning for the comparison.
const STOP_WORDS: [&str; 26] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "for", "from", "has", "in", "is", "it", "its", "of", "on",
    "or", "that", "the", "this", "to", "was", "which", "with",
];

/// The words of a finding, as sorted hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FindingWords {
    title: Vec<u32>,
    text: Vec<u32>,
    /// Names and numbers in the title.
    telling: Vec<u32>,
    /// Names in the title; numbers, too, where the number is the problem.
    subjects: Vec<u32>,
    /// Words of the title that are no names and no numbers.
    sentence: Vec<u32>,
    title_concepts: ConceptSet,
    /// Concepts of title and explanation.
    concepts: ConceptSet,
    code: Vec<u32>,
}

/// The similarity of two findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FindingSimilarity {
    /// The findings say the same in other words.
    pub alike: bool,
    /// Both titles contain names or numbers, and have none in common.
    pub told_apart: bool,
    /// The words clearly describe two problems.
    pub distinct: ProblemDistinction,
    pub same_code: bool,
    /// Both have code, without a word in common.
    pub other_code: bool,
    /// The titles have hardly a word in common, and the texts do not say the same.
    pub other_title: bool,
    /// The defects that the texts name are, in part, the same.
    pub shares_concepts: bool,
    /// The defects that the titles name are, in part, the same.
    pub shares_title_concepts: bool,
    /// Both texts are long enough that two reports of one problem have words in common.
    pub says_enough: bool,
    /// Jaccard index in thousandths.
    pub similarity: u32,
}

impl FindingSimilarity {
    /// Returns `true` if two overlapping reports of one kind are two findings. Concepts are coarse: they show that a later
    /// report means the same problem in other words, but two reports of one answer under different titles are two
    /// problems, except smells, which a function has once.
    pub fn separates(&self, is_one_answer: bool, one: &Finding, other: &Finding) -> bool {
        self.distinct.separates(one, other) || (is_one_answer && self.other_title && !one.kind.is_smell())
    }
}

/// The reason why two reports describe two problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProblemDistinction {
    /// They describe one problem, or the words do not decide.
    None,
    /// The titles are one sentence about two things.
    Siblings,
    /// The texts are about different defects.
    Unrelated,
}

impl ProblemDistinction {
    /// Returns `true` if two overlapping reports of one kind are two findings. A smell of a function contains the smells
    /// of the functions inside, so two such smells must have the same lines.
    pub fn separates(self, one: &Finding, other: &Finding) -> bool {
        match self {
            Self::None => false,
            Self::Siblings => !one.kind.is_smell() || one.lines() == other.lines(),
            Self::Unrelated => true,
        }
    }
}

/// Returns `true` if two titles of findings of one kind probably mean the same problem.
pub fn is_alike(kind: Kind, title: &str, other: &str) -> bool {
    let words = |title| FindingWords::from_texts(kind, title, "", "");
    words(title).compare(&words(other)).alike
}

impl FindingWords {
    /// Collects the words of a finding; its explanation is given separately.
    pub fn from_finding(finding: &Finding, explanation: &str) -> Self {
        Self::from_texts(finding.kind, &finding.title, explanation, &finding.quoted_code)
    }

    /// Collects the words of a report.
    pub fn from_texts(kind: Kind, title: &str, explanation: &str, code: &str) -> Self {
        let (title_text, title) = (title, hash_words(title));
        let mut text = hash_words(explanation);
        text.extend(&title);
        let telling = hash_names(title_text);
        let sentence = hash_words(&remove_names(title_text));
        let title_concepts = match names_remedy(title_text) {
            true => ConceptSet::default(),
            false => ConceptSet::from_text(title_text),
        };
        let counts_numbers = kind == Kind::MagicNumbers;
        Self {
            subjects: to_sorted_set(
                telling.iter().filter(|(_, is_number)| counts_numbers || !is_number).map(|(name, _)| *name),
            ),
            sentence: to_sorted_set(sentence),
            concepts: title_concepts.union(ConceptSet::from_text(explanation)),
            title_concepts,
            text: to_sorted_set(text),
            title: to_sorted_set(title),
            telling: to_sorted_set(telling.into_iter().map(|(name, _)| name)),
            code: to_sorted_set(code.split(|c: char| !is_word_char(c)).filter(|word| !word.is_empty()).map(hash_word)),
        }
    }

    pub fn compare(&self, other: &Self) -> FindingSimilarity {
        let similarity = self.text_similarity(other);
        let told_apart =
            !self.telling.is_empty() && !other.telling.is_empty() && count_common(&self.telling, &other.telling) == 0;
        let alike = similarity >= MIN_SIMILARITY && !told_apart;
        let have_titles = !self.title.is_empty() && !other.title.is_empty();
        FindingSimilarity {
            alike,
            told_apart,
            other_title: !alike
                && have_titles
                && jaccard_permille(&self.title, &other.title) < MAX_OTHER_TITLE_SIMILARITY,
            distinct: self.distinguish(other, similarity),
            same_code: jaccard_permille(&self.code, &other.code) >= MIN_CODE_SIMILARITY,
            other_code: !self.code.is_empty() && !other.code.is_empty() && count_common(&self.code, &other.code) == 0,
            shares_concepts: self.main_concepts().overlaps(other.concepts)
                || other.main_concepts().overlaps(self.concepts),
            shares_title_concepts: self.title_concepts.overlaps(other.title_concepts),
            says_enough: self.says_enough(other),
            similarity,
        }
    }

    fn says_enough(&self, other: &Self) -> bool {
        self.text.len().min(other.text.len()) >= MIN_UNRELATED_WORDS
    }

    /// Returns the similarity of the titles or of the whole texts, whichever is greater, in thousandths.
    fn text_similarity(&self, other: &Self) -> u32 {
        jaccard_permille(&self.title, &other.title).max(jaccard_permille(&self.text, &other.text))
    }

    /// Decides whether two reports with this similarity of their texts clearly describe two problems.
    fn distinguish(&self, other: &Self, similarity: u32) -> ProblemDistinction {
        let has_other_subject = !self.subjects.is_empty()
            && !other.subjects.is_empty()
            && count_common(&self.subjects, &other.subjects) == 0;
        if has_other_subject && jaccard_permille(&self.sentence, &other.sentence) >= MIN_SIBLING_SIMILARITY {
            return ProblemDistinction::Siblings;
        }
        let is_unrelated = match (self.main_concepts(), other.main_concepts()) {
            (one, another) if one.is_empty() || another.is_empty() => {
                similarity < MAX_UNRELATED_SIMILARITY && self.says_enough(other)
            }
            // The cause in one report may be the effect in the other.
            (one, another) => {
                similarity < MAX_DISTINCT_SIMILARITY
                    && !one.overlaps(other.concepts)
                    && !another.overlaps(self.concepts)
            }
        };
        if is_unrelated { ProblemDistinction::Unrelated } else { ProblemDistinction::None }
    }

    /// Returns the concepts of the title, or of the whole text if the title has none or only says what follows.
    fn main_concepts(&self) -> ConceptSet {
        if self.title_concepts.has_causes() { self.title_concepts } else { self.concepts }
    }
}

/// Returns whether a title names the remedy, as in "Use None".
fn names_remedy(title: &str) -> bool {
    let first = title.split(|c: char| !is_word_char(c)).find(|word| !word.is_empty());
    first.is_some_and(|first| REMEDY_VERBS.contains(&first.to_lowercase().as_str()))
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn to_sorted_set(words: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut words: Vec<u32> = words.into_iter().take(MAX_COMPARED_WORDS).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Hashes the words of a text without stop words and without word endings.
fn hash_words(text: &str) -> Vec<u32> {
    let words = text.split(|c: char| !is_word_char(c)).filter(|word| !word.is_empty()).take(MAX_COMPARED_WORDS);
    let mut lower = String::new();
    let mut hashes = Vec::new();
    for word in words {
        push_lower_case(&mut lower, word);
        if !STOP_WORDS.contains(&lower.as_str()) {
            hashes.push(hash_word(stem(&lower)));
        }
        lower.clear();
    }
    hashes
}

/// Appends a word in lower case.
pub(super) fn push_lower_case(text: &mut String, word: &str) {
    match word.is_ascii() {
        true => text.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase()))),
        false => text.push_str(&word.to_lowercase()),
    }
}

fn stem(word: &str) -> &str {
    let endings = ["ing", "ed", "es", "s"];
    endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.len() >= 3)).unwrap_or(word)
}

/// Splits a title into words, each with its class.
fn classify_words(title: &str) -> impl Iterator<Item = (&str, TitleWord)> {
    let quoted = title
        .split('`')
        .enumerate()
        .flat_map(|(index, part)| part.split(|c: char| !is_word_char(c)).map(move |word| (index % 2 == 1, word)));
    quoted.filter(|(_, word)| !word.is_empty()).map(|(quoted, word)| {
        let has_inner_capital = word.chars().skip(1).any(|c| c.is_uppercase()) && word.contains(char::is_lowercase);
        let class = if word.chars().all(|c| c.is_ascii_digit()) {
            TitleWord::Number
        } else if quoted || has_inner_capital || word.contains(|c: char| c.is_ascii_digit() || c == '_') {
            TitleWord::Name
        } else {
            TitleWord::Plain
        };
        (word, class)
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TitleWord {
    Plain,
    /// A word in backticks, with digits or underscores, or with a capital inside.
    Name,
    Number,
}

/// Hashes the names and numbers in a title. The flag is true for numbers.
fn hash_names(title: &str) -> Vec<(u32, bool)> {
    let names = classify_words(title).filter(|(_, class)| *class != TitleWord::Plain);
    names.map(|(word, class)| (hash_word(word), class == TitleWord::Number)).collect()
}

/// Returns the words of a title that are no names and no numbers.
fn remove_names(title: &str) -> String {
    let plain = classify_words(title).filter(|(_, class)| *class == TitleWord::Plain).map(|(word, _)| word);
    plain.collect::<Vec<_>>().join(" ")
}

/// Computes FNV-1a, which is the same on every machine. Nobody gains anything from a collision.
fn hash_word(word: &str) -> u32 {
    word.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn count_common(one: &[u32], other: &[u32]) -> usize {
    one.iter().filter(|word| other.binary_search(word).is_ok()).count()
}

/// Returns the Jaccard index (common words divided by all words) in thousandths; 0 for no words.
fn jaccard_permille(one: &[u32], other: &[u32]) -> u32 {
    let common = count_common(one, other);
    let either = one.len() + other.len() - common;
    (common * 1_000).checked_div(either).and_then(|part| u32::try_from(part).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::review::unit_engine::tests::finding;
    use ProblemDistinction::{None as Together, Siblings, Unrelated};

    fn words_of(title: &str, explanation: &str, code: &str) -> FindingWords {
        let mut finding = finding("a.rs", 1, 1, 2);
        (finding.title, finding.quoted_code) = (title.into(), code.into());
        FindingWords::from_finding(&finding, explanation)
    }

    #[rstest]
    #[case::the_same("Lock is never released", "Lock is never released", true)]
    #[case::reworded("Null check missing for user", "User is not checked for null", true)]
    #[case::endings("Unhandled errors when reading", "Unhandled error on read", true)]
    #[case::another_problem("Lock is never released", "File is never closed", false)]
    #[case::another_name("Result of `read` is ignored", "Result of `write` is ignored", false)]
    #[case::another_number("Magic number 42", "Magic number 17", false)]
    #[case::another_camel("Error of readAll ignored", "Error of writeAll ignored", false)]
    #[case::one_of_them_names_it("Result is ignored", "The result of `read` is ignored", true)]
    #[case::nothing("", "", false)]
    fn titles(#[case] one: &str, #[case] other: &str, #[case] alike: bool) {
        let (one, other) = (words_of(one, "", ""), words_of(other, "", ""));
        assert_eq!(one.compare(&other).alike, alike, "{:?}", one.compare(&other));
        assert_eq!(one.compare(&other), other.compare(&one));
    }

    #[test]
    fn explanations_count_where_titles_differ() {
        let why = "The mutex guard lives until the end of the function, so every caller waits for the network.";
        let (one, other) = (words_of("Guard kept too long", why, ""), words_of("Contention", why, ""));
        assert!(one.compare(&other).alike);
    }

    #[rstest]
    #[case("let x = read(path)?;", "let x  =  read( path )?;", true)]
    #[case(
        "let total = sum(a, b, c, d) + tax(rate, year, zone);",
        "let total = sum(a, b, c, d) + tax(rate, year);",
        true
    )]
    #[case("let x = 1;", "let y = 2;", false)]
    #[case("}", "}", false)]
    #[case("", "", false)]
    fn codes(#[case] one: &str, #[case] other: &str, #[case] same: bool) {
        assert_eq!(words_of("", "", one).compare(&words_of("", "", other)).same_code, same);
    }

    /// Pairs of reports about one line. A text is a title, and after a bar an explanation.
    #[rstest]
    // One problem in other words.
    #[case::bounds("Off by one", "Wrong bound", Together)]
    #[case::bounds_and_effect("Loop runs one step too far", "Reads past the end of `items`", Together)]
    #[case::null("`user` may be null", "Missing None check before the dereference", Together)]
    #[case::leak("File handle is never closed", "Descriptor leaks when parsing fails", Together)]
    #[case::leak_of_a_connection("Connection is not released", "Pool runs dry | The connection stays open.", Together)]
    #[case::injection("SQL built by string concatenation", "Query is open to injection", Together)]
    #[case::race("Counter is incremented without a lock", "Data race on `counter`", Together)]
    #[case::overflow("Sum may exceed u32", "Integer overflow in `total`", Together)]
    #[case::errors("The error of `write` is ignored", "A failed `write` goes unnoticed", Together)]
    #[case::secret("Password is written to the log", "Credentials are exposed in log output", Together)]
    #[case::traversal("Path traversal", "`name` with `..` leaves the upload folder", Together)]
    #[case::retry("Retry loop never ends on 429", "Infinite loop when the server throttles", Together)]
    #[case::time("Naive datetime is compared with UTC", "Timezone of `start` is lost", Together)]
    #[case::arguments(
        "Arguments are swapped",
        "`resize` is called with width and height in the wrong order | The parameters are height, width.",
        Together
    )]
    #[case::cause_and_effect(
        "Off by one in the loop | The last index is out of range, so it panics.",
        "Panics on an empty list | `items[len]` is read.",
        Together
    )]
    #[case::figures("Function `f` is 60 lines long", "Function `f` is 61 lines long", Together)]
    #[case::figures_without_names("Function is 60 lines long", "Function is 61 lines long", Together)]
    #[case::one_names_it("The result is ignored", "The result of `read` is ignored", Together)]
    #[case::names_of_one_problem("`parse` may panic on empty input", "`unwrap` on the first byte", Together)]
    #[case::nothing_known("Surprising outcome", "Hard to follow", Together)]
    #[case::empty("", "", Together)]
    // Two problems.
    #[case::bound_and_lock("Wrong bound", "Lock kept over an await", Unrelated)]
    #[case::bound_and_leak("Off by one", "File handle leaks", Unrelated)]
    #[case::injection_and_leak("SQL injection through `name`", "Connection is never closed", Unrelated)]
    #[case::injection_and_permission(
        "Query is built from user input",
        "Any caller may delete | Permission of the user is not looked at.",
        Unrelated
    )]
    #[case::null_and_time("`user` may be null", "Timezone of `created` is lost", Unrelated)]
    #[case::overflow_and_stale("Sum overflows", "Cache is stale after the update", Unrelated)]
    #[case::secret_and_hash(
        "Token is written to the log",
        "MD5 is no password hash for this | It is predictable.",
        Together
    )]
    #[case::encoding_and_retry("Decodes as latin1, not utf", "Retries for ever", Unrelated)]
    #[case::path_and_crypt("Path leaves the upload folder", "Predictable random numbers", Unrelated)]
    #[case::condition_and_leak("Condition is inverted", "Descriptor leaks", Unrelated)]
    #[case::redirect_and_random("Open redirect to any host", "Nonce is reused | It is predictable.", Unrelated)]
    #[case::tests_and_docs("Test asserts nothing", "Docstring names the old default", Unrelated)]
    #[case::await_and_division("Promise is not awaited", "Divides by zero for no rows", Unrelated)]
    #[case::siblings("The error of `read` is ignored", "The error of `write` is ignored", Siblings)]
    #[case::siblings_of_null("`user` may be null", "`account` may be null", Siblings)]
    #[case::siblings_unused("unused import `os`", "unused import `sys`", Siblings)]
    #[case::unrelated_without_concepts(
        "Discount applies before tax | Customers in Norway pay less than the law demands of the shop.",
        "Wrong plural | Swedish needs another ending behind numerals above two, which nobody wrote.",
        Unrelated
    )]
    fn distinctions(#[case] one: &str, #[case] other: &str, #[case] expected: ProblemDistinction) {
        let words = |text: &str| {
            let (title, explanation) = text.split_once(" | ").unwrap_or((text, ""));
            words_of(title, explanation, "")
        };
        let (one, other) = (words(one), words(other));
        assert_eq!(one.compare(&other).distinct, expected, "{one:?}\n{other:?}");
        assert_eq!(other.compare(&one).distinct, expected);
    }

    /// Pairs of titles that a model gave to two defects of one kind on one line, in one answer.
    #[rstest]
    #[case::secrets("Password is logged", "Token never expires", true)]
    #[case::injections("Query built by string concatenation", "HTML is not escaped", true)]
    #[case::locks("Lock is never released", "Race on counter", true)]
    #[case::waits("Missing await", "Callback runs twice", true)]
    #[case::conditions("Condition is inverted", "Assignment instead of comparison", true)]
    #[case::errors("Exception swallowed", "Function throws on empty input", true)]
    #[case::unchecked("Unchecked index", "Unchecked division", true)]
    #[case::arguments("The y argument may be zero", "The other argument is mutable", true)]
    #[case::null("Use None", "Missing null check", true)]
    #[case::reworded("Null check missing for user", "User is not checked for null", false)]
    #[case::one_names_it("The result is ignored", "The result of `read` is ignored", false)]
    #[case::no_title("", "Lock is never released", false)]
    fn reports_of_one_answer(#[case] one: &str, #[case] other: &str, #[case] expected: bool) {
        let told = |title: &str| Finding { kind: Kind::Correctness, title: title.into(), ..finding("a.rs", 3, 3, 2) };
        let (one, other) = (told(one), told(other));
        let words = |finding: &Finding| FindingWords::from_finding(finding, "");
        for (one, other) in [(&one, &other), (&other, &one)] {
            let compared = words(one).compare(&words(other));
            assert_eq!(compared.separates(true, one, other), expected, "{compared:?}");
        }
    }

    #[test]
    fn a_title_that_names_the_remedy_has_no_concept() {
        let compare = |one: &str, other: &str| words_of(one, "", "").compare(&words_of(other, "", "")).distinct;
        let why = "The default list is mutable and every later call gets the same one again.";
        let (one, other) = (words_of("Use None", why, ""), words_of("Missing null check", "", ""));
        assert_eq!(one.compare(&other).distinct, Unrelated);
        assert_eq!(compare("Use None", "Missing null check"), Together, "short words decide nothing");
    }

    #[test]
    fn numbers_tell_magic_numbers_apart_and_smells_only_on_the_same_lines() {
        let number = |kind: Kind, lines: (u32, u32), title: &str| {
            let mut finding = finding("a.rs", lines.0, lines.1, 2);
            (finding.kind, finding.title) = (kind, title.to_owned());
            finding
        };
        let separates = |one: &Finding, other: &Finding| {
            let words = |finding: &Finding| FindingWords::from_finding(finding, "");
            words(one).compare(&words(other)).distinct.separates(one, other)
        };
        for (kind, lines, expected) in [
            (Kind::MagicNumbers, (3, 3), true),
            (Kind::MagicNumbers, (3, 4), false),
            (Kind::LongMethod, (3, 3), false),
            (Kind::Correctness, (3, 4), false),
        ] {
            let one = number(kind, (3, 3), "42 is not explained");
            assert_eq!(separates(&one, &number(kind, lines, "17 is not explained")), expected, "{kind} {lines:?}");
        }
    }
}
