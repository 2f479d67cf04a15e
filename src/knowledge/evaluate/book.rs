//! What the earlier part teaches: its patterns, and what the later part must not share with it.
//!
//! Invariant: a pattern's forms came through the gate as everywhere; nothing of a case is kept but forms and hashes.

use std::collections::{HashMap, HashSet};

use super::cases::{Case, Cases};
use super::{AT_ONCE, Learned, in_order};
use crate::domain::PatternId;
use crate::knowledge::abstraction::{LearnedEdit, edits};
use crate::knowledge::form::{Form, Token};
use crate::knowledge::gate;
use crate::knowledge::pattern::EditKind;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::Parsers;

/// What of the earlier part the later one must not share, as hashes.
#[derive(Default)]
pub struct Seen(HashSet<u64>);

impl Seen {
    /// What a case shares with its copies: the file before, the file after, or the pair of lines, white space aside.
    fn keys(case: &Case) -> [u64; 3] {
        let line = |text: &[u8]| -> Vec<u8> {
            let lines = text.split(|byte| *byte == b'\n').nth(case.line.saturating_sub(1) as usize);
            lines.unwrap_or_default().split(u8::is_ascii_whitespace).collect::<Vec<_>>().concat()
        };
        let pair = [line(&case.before), line(&case.after)].join(&b'\n');
        [hash(&case.before), hash(&case.after), hash(&pair)]
    }

    pub fn has(&self, case: &Case) -> bool {
        Self::keys(case).iter().any(|key| self.0.contains(key))
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let digest = blake3::hash(bytes);
    let (first, _) = digest.as_bytes().split_at(8);
    first.iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// A pattern that was learned: language, broken and fixed form, and how many fixes taught it.
pub struct Pattern {
    pub language: Language,
    pub broken: Form,
    pub edit: EditKind,
    fixes: u32,
}

/// All patterns of the earlier part, the most frequent first.
pub struct Book {
    pub patterns: Vec<Pattern>,
    /// Fixes that taught something, and leaks.
    pub learned: Learned,
}

impl Book {
    pub fn learn(cases: &Cases, numbers: &[usize], progress: &mut dyn FnMut(&str, usize)) -> (Self, Seen) {
        type Taught = ([u64; 3], Language, Vec<LearnedEdit>);
        let work = |parsers: &mut Parsers, case: Case| -> Taught {
            let edits = edits(parsers, case.language, &case.before, &case.after);
            (Seen::keys(&case), case.language, edits)
        };
        let (mut seen, mut learned, mut read) = (Seen::default(), Learned::default(), 0);
        let mut patterns: HashMap<PatternId, Pattern> = HashMap::new();
        in_order(cases, numbers, &work, &mut |(keys, language, edits)| {
            seen.0.extend(keys);
            learned.telling += usize::from(!edits.is_empty());
            for LearnedEdit { broken, fixed, edit, .. } in edits {
                let id = PatternId::of(language.name(), &broken.to_string(), &fixed.to_string());
                let pattern = patterns.entry(id).or_insert_with(|| {
                    learned.leaks += usize::from(leaks(language, &broken) || leaks(language, &fixed));
                    Pattern { language, broken, edit, fixes: 0 }
                });
                pattern.fixes += 1;
            }
            read += 1;
            if read % (4 * AT_ONCE) == 0 {
                progress("fixes learned from", read);
            }
        });
        let mut patterns: Vec<(PatternId, Pattern)> = patterns.into_iter().collect();
        patterns.sort_by(|(id, pattern), (other, than)| than.fixes.cmp(&pattern.fixes).then_with(|| id.cmp(other)));
        (Self { patterns: patterns.into_iter().map(|(_, pattern)| pattern).collect(), learned }, seen)
    }
}

/// Whether a form has a token that is somebody's own.
fn leaks(language: Language, form: &Form) -> bool {
    let is_own = |token: &Token| {
        let alone = Form::new(vec![token.clone()]);
        matches!(token, Token::Kept(_)) && !alone.is_ok_and(|alone| gate::admit(language.name(), &alone).is_ok())
    };
    form.tokens().iter().any(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_somebody_is_a_leak() {
        let form = |text: &str| text.parse().expect("a form");
        assert!(!leaks(Language::Java, &form("if ( VARIABLE == null ) BODY")));
        assert!(leaks(Language::Java, &form("if ( apiKey == null ) BODY")));
    }
}
