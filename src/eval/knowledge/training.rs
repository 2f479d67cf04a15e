//! Trains on the earlier part: collects its patterns, and the fingerprints that later cases must not share.
//!
//! - The forms of a pattern passed the gate as usual; only forms and hashes of a case are kept.

use std::collections::{HashMap, HashSet};

use super::cases::{FixCase, FixCases};
use super::{CASES_PER_BATCH, TrainingStats, map_cases_in_order};
use crate::domain::PatternId;
use crate::knowledge::abstraction::{LearnedEdit, extract_edits};
use crate::knowledge::form::{Form, FormToken};
use crate::knowledge::pattern::EditKind;
use crate::knowledge::privacy_gate;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Hashes of the earlier cases, to exclude copies from the later part.
#[derive(Default)]
pub struct CaseFingerprints(HashSet<u64>);

impl CaseFingerprints {
    /// Hashes the parts that copies of a case share: the file before, the file after, and the pair of lines without
    /// white space.
    fn fingerprint_case(case: &FixCase) -> [u64; 3] {
        let line = |text: &[u8]| -> Vec<u8> {
            let lines = text.split(|byte| *byte == b'\n').nth(case.line.saturating_sub(1) as usize);
            lines.unwrap_or_default().split(u8::is_ascii_whitespace).collect::<Vec<_>>().concat()
        };
        let pair = [line(&case.before), line(&case.after)].join(&b'\n');
        [hash_bytes(&case.before), hash_bytes(&case.after), hash_bytes(&pair)]
    }

    /// Returns true if the case shares a file or its pair of lines with an earlier case.
    pub fn contains(&self, case: &FixCase) -> bool {
        Self::fingerprint_case(case).iter().any(|key| self.0.contains(key))
    }
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let digest = blake3::hash(bytes);
    let (first, _) = digest.as_bytes().split_at(8);
    first.iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// Learned pattern with its language, its broken form and the number of fixes that taught it.
pub struct TrainedPattern {
    pub language: Language,
    pub broken: Form,
    pub edit: EditKind,
    fixes: u32,
}

/// Patterns of the earlier part, most frequent first.
pub struct TrainedPatterns {
    pub patterns: Vec<TrainedPattern>,
    /// Number of fixes that taught something, and number of leaks.
    pub learned: TrainingStats,
}

impl TrainedPatterns {
    /// Learns patterns and fingerprints from the given cases.
    pub fn learn(
        cases: &FixCases,
        numbers: &[usize],
        progress: &mut dyn FnMut(&str, usize),
    ) -> (Self, CaseFingerprints) {
        type LearnedCase = ([u64; 3], Language, Vec<LearnedEdit>);
        let work = |parsers: &mut Parsers, case: FixCase| -> LearnedCase {
            let edits = extract_edits(parsers, case.language, &case.before, &case.after);
            (CaseFingerprints::fingerprint_case(&case), case.language, edits)
        };
        let (mut seen, mut learned, mut read) = (CaseFingerprints::default(), TrainingStats::default(), 0);
        let mut patterns: HashMap<PatternId, TrainedPattern> = HashMap::new();
        map_cases_in_order(cases, numbers, &work, &mut |(keys, language, edits)| {
            seen.0.extend(keys);
            learned.telling += usize::from(!edits.is_empty());
            for LearnedEdit { broken, fixed, edit, .. } in edits {
                let id = PatternId::from_forms(language.name(), &broken.to_string(), &fixed.to_string());
                let pattern = patterns.entry(id).or_insert_with(|| {
                    learned.leaks += usize::from(has_leak(language, &broken) || has_leak(language, &fixed));
                    TrainedPattern { language, broken, edit, fixes: 0 }
                });
                pattern.fixes += 1;
            }
            read += 1;
            if read % (4 * CASES_PER_BATCH) == 0 {
                progress("fixes learned from", read);
            }
        });
        let mut patterns: Vec<(PatternId, TrainedPattern)> = patterns.into_iter().collect();
        patterns.sort_by(|(id, pattern), (other, than)| than.fixes.cmp(&pattern.fixes).then_with(|| id.cmp(other)));
        (Self { patterns: patterns.into_iter().map(|(_, pattern)| pattern).collect(), learned }, seen)
    }
}

/// Returns true if a form has a token that is not allowed in forms.
fn has_leak(language: Language, form: &Form) -> bool {
    let is_own = |token: &FormToken| {
        let alone = Form::new(vec![token.clone()]);
        matches!(token, FormToken::Kept(_))
            && !alone.is_ok_and(|alone| privacy_gate::admit(language.name(), &alone).is_ok())
    };
    form.tokens().iter().any(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_somebody_is_a_leak() {
        let form = |text: &str| text.parse().expect("a form");
        assert!(!has_leak(Language::Java, &form("if ( VARIABLE == null ) BODY")));
        assert!(has_leak(Language::Java, &form("if ( apiKey == null ) BODY")));
    }
}
