//! Computes the similarity of two findings from the word sets of their titles, explanations and quoted code.

use crate::domain::Finding;

/// Minimum similarity (Jaccard index in thousandths) at which titles or texts say the same. Not from the literature:
/// "null check missing for user" and "user is not checked for null" have 600, two problems with one common phrase about
/// 300.
const MIN_SIMILARITY: u32 = 500;

/// Minimum similarity (Jaccard index in thousandths) of almost equal code. Not from the literature: one word in a line
/// differs.
const MIN_CODE_SIMILARITY: u32 = 800;

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
    code: Vec<u32>,
}

/// The similarity of two findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FindingSimilarity {
    /// The findings say the same in other words.
    pub alike: bool,
    /// Both titles contain names or numbers, and have none in common.
    pub told_apart: bool,
    pub same_code: bool,
    /// Jaccard index in thousandths.
    pub similarity: u32,
}

impl FindingWords {
    /// Collects the words of a finding; its explanation is given separately.
    pub fn from_finding(finding: &Finding, explanation: &str) -> Self {
        let title = hash_words(&finding.title);
        let mut text = hash_words(explanation);
        text.extend(&title);
        Self {
            text: to_sorted_set(text),
            title: to_sorted_set(title),
            telling: to_sorted_set(hash_names(&finding.title)),
            code: to_sorted_set(
                finding.quoted_code.split(|c: char| !is_word_char(c)).filter(|word| !word.is_empty()).map(hash_word),
            ),
        }
    }

    pub fn compare(&self, other: &Self) -> FindingSimilarity {
        let similarity = jaccard_permille(&self.title, &other.title).max(jaccard_permille(&self.text, &other.text));
        let told_apart =
            !self.telling.is_empty() && !other.telling.is_empty() && count_common(&self.telling, &other.telling) == 0;
        FindingSimilarity {
            alike: similarity >= MIN_SIMILARITY && !told_apart,
            told_apart,
            same_code: jaccard_permille(&self.code, &other.code) >= MIN_CODE_SIMILARITY,
            similarity,
        }
    }
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
    words
        .map(str::to_lowercase)
        .filter(|word| !STOP_WORDS.contains(&word.as_str()))
        .map(|word| hash_word(stem(&word)))
        .collect()
}

fn stem(word: &str) -> &str {
    let endings = ["ing", "ed", "es", "s"];
    endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.len() >= 3)).unwrap_or(word)
}

/// Hashes the names in a title: words in backticks, with digits or underscores, or with a capital inside.
fn hash_names(title: &str) -> Vec<u32> {
    let quoted = title
        .split('`')
        .enumerate()
        .flat_map(|(index, part)| part.split(|c: char| !is_word_char(c)).map(move |word| (index % 2 == 1, word)));
    let names = quoted.filter(|(quoted, word)| {
        !word.is_empty()
            && (*quoted
                || word.chars().skip(1).any(|c| c.is_uppercase()) && word.contains(char::is_lowercase)
                || word.contains(|c: char| c.is_ascii_digit() || c == '_'))
    });
    names.map(|(_, word)| hash_word(word)).collect()
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
}
