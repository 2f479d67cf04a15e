//! Recognises what a report is about from its words: bounds, locks, leaks, injection and so on.
//!
//! Reports of one problem often share no word ("off by one", "reads past the end"), and neither do reports of two
//! problems. Concepts tell them apart. They are chosen for revdeck from reports of models; a word may stand in several
//! rows, and rows are merged rather than split, because a missing concept only keeps two reports together.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::similarity::push_lower_case;

/// A set of concepts, one bit for each row of [`CONCEPTS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ConceptSet(u32);

impl ConceptSet {
    /// Returns the concepts of a text.
    pub fn from_text(text: &str) -> Self {
        let words = normalize_words(text);
        let is_space = |at: usize| words.as_bytes().get(at) == Some(&b' ');
        let terms = &*CONCEPT_TERMS;
        let found = terms.automaton.find_overlapping_iter(&words).fold(0, |found, place| {
            let term = terms.terms[place.pattern()];
            let begins = place.start().checked_sub(1).is_some_and(is_space);
            if begins && (term.is_prefix || is_space(place.end())) { found | 1 << term.row } else { found }
        });
        Self(found)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if both have a concept in common. Consequences count only if one of them has nothing else: a program
    /// crashes for many reasons.
    pub fn overlaps(self, other: Self) -> bool {
        let common = self.0 & other.0;
        if self.has_causes() && other.has_causes() { common & !CONSEQUENCES != 0 } else { common != 0 }
    }

    /// Returns true if there is more than a consequence.
    pub fn has_causes(self) -> bool {
        self.0 & !CONSEQUENCES != 0
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Words of each concept in lower case, with commas between them. A word that ends with `*` also stands for longer words;
/// several words stand for the phrase.
const CONCEPTS: [&str; 28] = [
    // Bounds of loops, slices and buffers.
    "off by one, bound*, out of range, past the end, beyond the end, overrun, overread, fencepost, too far, one \
     too many, one too few, one step, last element, first element, empty list, empty array, index*, iterat*, buffer*, \
     slice*",
    // Missing values.
    "null*, none, nil, undefined, unset, dereference*, optional*, missing value, absent, uninitiali*",
    // Numbers that do not fit.
    "overflow*, underflow*, truncat*, wraps, wrap around, narrowing, cast*, precision, signed, unsigned, exceed*",
    // Numbers that are not exact.
    "precision, round*, float*, double, decimal*",
    // Numbers without a quotient or with the wrong sign.
    "divi*, zero, negative",
    // Locks, races and order of threads.
    "lock*, mutex*, deadlock*, race*, racy, thread*, synchron*, atomic*, concurren*, guard*, semaphore*, \
     simultaneous*, interleav*, unsynchron*, goroutine*, coroutine*",
    // Resources that are not given back.
    "leak*, close, closed, closes, closing, unclosed, release, released, dispose*, descriptor*, file handle*, \
     free, freed, cleanup, clean up, stays open, pool*, unsubscrib*, dangling, lifetime*, deallocat*, subscription*",
    // Errors that are lost.
    "error*, exception*, ignor*, swallow*, unnoticed, unhandled, unchecked, discard*, unwrap*, rejection*, fail*, \
     propagat*",
    // Input that becomes code.
    "inject*, sql, query, queries, concatenat*, interpolat*, escap*, saniti*, parameteri*, xss, shell, eval, \
     html, template*, quot*, unquot*, unescap*, unsanit*, markup, script*, cross site",
    // Paths under foreign control.
    "traversal, path*, directory, symlink*, folder*, outside the, upload*",
    // Who may do what.
    "permission*, authori*, authenti*, access, admin, role, roles, privilege*, owner*, login, session*, csrf, \
     unauth*, caller may, permit*, forge*, bypass*, csrf, tenant*, verif*",
    // Secrets in the wrong place.
    "secret*, password*, credential*, token*, api key, private key, plaintext, plain text, sensitive, leaks into, \
     expos*, redact*, personal data",
    // Weak cryptography.
    "md5, sha1, hash, hashed, hashing, cipher*, crypt*, encrypt*, random*, predictable, salt*, iv, nonce, \
     certificate*, tls",
    // Work without need.
    "slow, quadratic, n 1, every iteration, each iteration, in a loop, per row, repeatedly, again and again, \
     copies, copied, copy, clone*, allocat*, performance, expensive, inefficien*, batch*",
    // Data without a bound.
    "cache, cached, memory, allocat*, performance, unbounded, unlimited, without bound, without limit, no limit, \
     evict*, paginat*, grows, growth",
    // Waiting.
    "timeout*, time out, times out, hang*, retry, retries, retried, backoff, forever, infinite, never ends, \
     endless, block*",
    // Asynchronous code.
    "await*, async*, promise*, future*, callback*, event loop",
    // Conditions and branches.
    "condition*, negat*, invert*, comparison, compares, operator*, boolean, always true, always false, branch*, \
     equality, assign*, short circuit*",
    // Time and dates.
    "timezone*, time zone, utc, daylight, date*, clock*, calendar, leap, epoch",
    // Text and encodings.
    "encod*, decod*, utf, unicode, charset, byte order, locale, case sensitive, newline*, whitespace",
    // Arguments, contracts and types of an interface.
    "argument*, parameter*, swapped, signature, contract, breaking, incompatible, caller*, return type, renamed, \
     public api, schema, wire format",
    // State that is stale, shared or lost.
    "stale, invalidat*, outdated, shared state, global*, mutable, mutat*, reset*, lost update, overwrit*, \
     duplicate*, twice",
    // Untrusted data that becomes objects.
    "deseriali*, pickle*, yaml, untrusted, xml, xxe, prototype pollution",
    // Requests to foreign addresses.
    "ssrf, redirect*, url, urls, host, address*, cors, origin",
    // Tests.
    "test, tests, tested, untested, assert*, coverage, flaky, mock*, fixture*",
    // Documentation and messages.
    "doc, docs, docstring*, documentation, comment*, readme, typo*, misspell*, wording, log message",
    // Size and structure.
    "long, too many lines, complex*, nest*, god class, does too much, responsibilit*, unused, dead code, \
     unreachable",
    // The end of the program or the request.
    "panic*, crash*, abort*, throw*, exception*, unwrap*, fail*",
];

/// Concepts that are the consequence of many defects: the last row of [`CONCEPTS`].
const CONSEQUENCES: u32 = 1 << (CONCEPTS.len() - 1);

/// Term of a concept.
#[derive(Debug, Clone, Copy)]
struct ConceptTerm {
    /// Index into [`CONCEPTS`].
    row: usize,
    /// The term also stands for longer words.
    is_prefix: bool,
}

/// All terms of all concepts, searched at once.
struct ConceptTerms {
    automaton: AhoCorasick,
    /// By the number of the pattern in `automaton`.
    terms: Vec<ConceptTerm>,
}

static CONCEPT_TERMS: LazyLock<ConceptTerms> = LazyLock::new(|| {
    let rows = CONCEPTS.iter().enumerate().flat_map(|(row, terms)| terms.split(", ").map(move |term| (row, term)));
    let (words, terms): (Vec<&str>, Vec<ConceptTerm>) = rows
        .map(|(row, term)| match term.strip_suffix('*') {
            Some(start) => (start, ConceptTerm { row, is_prefix: true }),
            None => (term, ConceptTerm { row, is_prefix: false }),
        })
        .unzip();
    let automaton = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .build(words)
        .unwrap_or_else(|error| unreachable!("{error}"));
    ConceptTerms { automaton, terms }
});

/// Returns the words of a text in lower case, each between two spaces. Names (with underscores or inner capitals) are
/// left out: they tell where a problem is, not which.
fn normalize_words(text: &str) -> String {
    let mut words = String::with_capacity(text.len() + 2);
    words.push(' ');
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
        let is_camel = word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase);
        if word.contains('_') || is_camel {
            continue;
        }
        push_lower_case(&mut words, word);
        words.push(' ');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lower_case_and_every_row_is_reached() {
        assert!(CONCEPTS.len() <= 32, "a concept is a bit");
        for (row, concept) in CONCEPTS.iter().enumerate() {
            for word in concept.split(", ") {
                let text = word.trim_end_matches('*');
                assert_eq!(text, text.to_lowercase());
                assert_ne!(ConceptSet::from_text(text).0 & (1 << row), 0, "{word}");
            }
        }
    }

    #[test]
    fn names_and_parts_of_words_are_no_concepts() {
        for text in ["", "`token_count` is wrong", "`readLock` is wrong", "the clock-like block", "unlocked"] {
            let found = ConceptSet::from_text(text);
            assert!(!found.overlaps(ConceptSet::from_text("mutex")), "{text}: {found:?}");
            assert!(!found.overlaps(ConceptSet::from_text("secret")), "{text}: {found:?}");
        }
        assert!(ConceptSet::from_text("`token_count` is wrong").is_empty());
        assert!(ConceptSet::from_text("`unwrap()` here").overlaps(ConceptSet::from_text("It PANICS.")));
    }
}
