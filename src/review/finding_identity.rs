//! Gives each of several different problems of one kind at the same code an id of its own.
//!
//! The id of a finding comes from its kind, its path and its code. Two different defects on one line would share it. The
//! first one keeps it, and each further one gets a [variant](FindingId::variant). In later runs the texts of the known
//! findings decide which id a report gets, so the order of the reports does not matter.

use std::collections::HashMap;

use super::accumulate::main_explanation;
use super::similarity::{FindingWords, ProblemDistinction};
use crate::domain::{Finding, FindingId};

/// Maximum number of texts of one problem that are compared: the first and the last ones. Not from the literature: further
/// texts add no new words.
const MAX_TEXTS: usize = 4;

/// The words of a finding of an earlier run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProblemText {
    /// Title on one line.
    pub title: String,
    /// Explanation; empty if it cannot be read.
    pub explanation: String,
    /// Exact replacement of its code, which would be lost with the id.
    pub replacement: Option<String>,
    /// True if another tool reported it, whose words, priority and name would be lost with the id.
    pub is_imported: bool,
}

/// A text under which an id is known.
#[derive(Debug, Clone)]
struct KnownText {
    words: FindingWords,
    /// Number of the answer that has it; 0 for the text of an earlier run.
    answer: u32,
    /// Exact replacement of the finding of an earlier run.
    replacement: Option<String>,
    /// True for a finding of another tool in an earlier run.
    is_imported: bool,
}

impl KnownText {
    /// Returns whether a report must not take the id of the finding with this text: another report of its answer under
    /// another title, or one that would take the place of an exact replacement or of a finding of another tool.
    fn excludes(&self, finding: &Finding, words: &FindingWords, answer: u32) -> bool {
        if !self.words.compare(words).other_title || finding.kind.is_smell() {
            return false;
        }
        let replacement = finding.suggestion.as_ref().and_then(|suggestion| suggestion.replacement.as_ref());
        let loses_replacement = self.replacement.is_some() && self.replacement.as_ref() != replacement;
        self.is_imported || loses_replacement || (answer > 0 && self.answer == answer)
    }
}

/// The texts of the problems that are known, by id.
#[derive(Debug, Clone, Default)]
pub struct FindingIdentities {
    known: HashMap<FindingId, Vec<KnownText>>,
    /// Number of the present answer, 1-based; 0 if answers are not counted.
    answer: u32,
}

impl FindingIdentities {
    /// Begins an answer: of its reports, those with different titles get different ids.
    pub fn begin_answer(&mut self) {
        self.answer += 1;
    }

    /// Sets the id of a finding whose id comes from its code. A known problem keeps its id, and a problem that clearly
    /// differs from all known problems at its code gets the next free one. `earlier` returns the words of the finding of an
    /// earlier run; it is called for ids that no report of this run had before. `is_elsewhere` returns true for the id of a
    /// finding of an earlier run whose code stands unchanged at other lines: that is another problem, whatever its words.
    pub fn assign(
        &mut self,
        finding: &mut Finding,
        mut earlier: impl FnMut(&FindingId) -> Option<ProblemText>,
        mut is_elsewhere: impl FnMut(&FindingId) -> bool,
    ) {
        let words = FindingWords::from_finding(finding, main_explanation(&finding.explanation));
        let of_earlier = |text: ProblemText| KnownText {
            words: FindingWords::from_texts(finding.kind, &text.title, main_explanation(&text.explanation), ""),
            answer: 0,
            replacement: text.replacement,
            is_imported: text.is_imported,
        };
        let base = finding.finding_id.clone();
        let (mut best, mut free) = (None, None);
        for n in 0..FindingId::MAX_PLACES {
            if n >= FindingId::MAX_VARIANTS && (best.is_some() || free.is_some()) {
                break;
            }
            let id = base.variant(n);
            let known =
                self.known.entry(id.clone()).or_insert_with(|| earlier(&id).map(of_earlier).into_iter().collect());
            if known.is_empty() {
                free = free.or(Some(id));
                if n == 0 {
                    break;
                }
                // A variant may be missing between others.
                continue;
            }
            if known.iter().any(|known| known.excludes(finding, &words, self.answer)) || is_elsewhere(&id) {
                continue;
            }
            let compared = known.iter().map(|known| known.words.compare(&words));
            let alike = compared.filter(|compared| compared.distinct == ProblemDistinction::None);
            if let Some(similarity) = alike.map(|compared| compared.similarity).max()
                && best.as_ref().is_none_or(|(most, _)| similarity > *most)
            {
                best = Some((similarity, id));
            }
        }
        let id = best.map(|(_, id)| id).or(free).unwrap_or(base);
        let texts = self.known.entry(id.clone()).or_default();
        let is_told = texts.iter().any(|known| known.words == words && known.answer == self.answer);
        if !is_told {
            if texts.len() >= MAX_TEXTS {
                texts.remove(1);
            }
            texts.push(KnownText { words, answer: self.answer, replacement: None, is_imported: false });
        }
        if id != finding.finding_id {
            finding.detail_ref = finding.detail_ref.replace(finding.finding_id.as_str(), id.as_str());
            finding.finding_id = id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Kind;
    use crate::review::unit_engine::tests::finding;

    fn report(title: &str, explanation: &str) -> Finding {
        let mut told = finding("a.rs", 10, 10, 2);
        told.finding_id = FindingId::from_parts("CORRECTNESS", "a.rs", "query(name)?;", 0);
        told.detail_ref = format!("outputs/RUN.json#{}", told.finding_id);
        (told.kind, told.title, told.explanation) = (Kind::Correctness, title.to_owned(), explanation.to_owned());
        told
    }

    /// Reviews with these reports, and returns the number of the variant of each.
    fn review(known: &mut Vec<Finding>, reports: &[(&str, &str)]) -> Vec<u32> {
        let base = report("", "").finding_id;
        let mut identities = FindingIdentities::default();
        let mut variants = Vec::new();
        let before = known.clone();
        for (title, explanation) in reports {
            let mut told = report(title, explanation);
            identities.assign(
                &mut told,
                |id| {
                    let known = before.iter().find(|known| known.finding_id == *id)?;
                    let replacement = known.suggestion.as_ref().and_then(|suggestion| suggestion.replacement.clone());
                    let (title, explanation) = (known.title.clone(), known.explanation.clone());
                    Some(ProblemText { title, explanation, replacement, is_imported: false })
                },
                |_| false,
            );
            assert!(told.detail_ref.ends_with(told.finding_id.as_str()), "{}", told.detail_ref);
            let variant = (0..FindingId::MAX_VARIANTS).find(|n| base.variant(*n) == told.finding_id);
            variants.push(variant.expect("a variant"));
            known.retain(|known| known.finding_id != told.finding_id);
            known.push(told);
        }
        variants
    }

    const INJECTION: (&str, &str) = ("SQL injection through `name`", "");
    const INJECTION_AGAIN: (&str, &str) = ("The query is concatenated from user input", "");
    const LEAK: (&str, &str) = ("Connection is never closed", "");
    const LEAK_AGAIN: (&str, &str) = ("Descriptor leaks", "");
    const TIME: (&str, &str) = ("Timezone is lost", "");

    #[test]
    fn a_single_problem_keeps_the_id_of_its_code() {
        let mut known = Vec::new();
        assert_eq!(review(&mut known, &[INJECTION]), [0]);
        assert_eq!(review(&mut known, &[INJECTION_AGAIN]), [0]);
        assert_eq!(review(&mut known, &[("Looks odd", "")]), [0], "unclear words are no second problem");
    }

    #[test]
    fn two_problems_keep_their_ids_in_any_order() {
        let mut known = Vec::new();
        assert_eq!(review(&mut known, &[INJECTION, LEAK, INJECTION_AGAIN, LEAK_AGAIN]), [0, 1, 0, 1]);
        assert_eq!(review(&mut known, &[LEAK_AGAIN, INJECTION_AGAIN]), [1, 0]);
        assert_eq!(review(&mut known, &[TIME, LEAK]), [2, 1]);
        assert_eq!(review(&mut known, &[LEAK, TIME, INJECTION]), [1, 2, 0]);
    }

    #[test]
    fn reports_of_one_answer_with_different_titles_get_different_ids() {
        let mut identities = FindingIdentities::default();
        identities.begin_answer();
        let mut ids = Vec::new();
        for title in ["Password is logged", "Token never expires", "The password is logged"] {
            let mut told = report(title, "");
            identities.assign(&mut told, |_| None, |_| false);
            ids.push(told.finding_id);
        }
        assert_ne!(ids[0], ids[1]);
        assert_eq!(ids[0], ids[2]);
    }

    #[test]
    fn the_id_of_an_exact_replacement_goes_to_no_other_title() {
        let suggestion = |replacement: Option<&str>| {
            let replacement = replacement.map(str::to_owned);
            Some(crate::domain::Suggestion { text: "Use None.".into(), replacement, lines: None })
        };
        for (title, replacement, is_same) in [
            ("Missing null check", None, false),
            ("Missing null check", Some("x=None"), true),
            ("Use None here", None, true),
        ] {
            let mut identities = FindingIdentities::default();
            let mut told = report(title, "");
            told.suggestion = suggestion(replacement);
            let base = told.finding_id.clone();
            let known =
                ProblemText { title: "Use None".into(), replacement: Some("x=None".into()), ..ProblemText::default() };
            identities.assign(&mut told, |id| (*id == base).then(|| known.clone()), |_| false);
            assert_eq!(told.finding_id == base, is_same, "{title} {replacement:?}");
        }
    }

    #[test]
    fn the_id_of_a_finding_of_another_tool_goes_to_no_other_title() {
        for (title, is_same) in [("Like a known mistake: eval", false), ("ruff S307: insecure function", true)] {
            let mut identities = FindingIdentities::default();
            let mut told = report(title, "");
            let base = told.finding_id.clone();
            let known = ProblemText {
                title: "ruff S307: insecure function".into(),
                is_imported: true,
                ..ProblemText::default()
            };
            identities.assign(&mut told, |id| (*id == base).then(|| known.clone()), |_| false);
            assert_eq!(told.finding_id == base, is_same, "{title}");
        }
    }

    #[test]
    fn the_id_of_a_problem_whose_code_stands_elsewhere_goes_to_no_report() {
        let known = ProblemText { title: INJECTION.0.into(), ..ProblemText::default() };
        for (stands_elsewhere, expected) in [(false, 0), (true, 1)] {
            let mut identities = FindingIdentities::default();
            let mut told = report(INJECTION.0, "");
            let base = told.finding_id.clone();
            let earlier = |id: &FindingId| (*id == base).then(|| known.clone());
            identities.assign(&mut told, earlier, |id| stands_elsewhere && *id == base);
            assert_eq!(told.finding_id, base.variant(expected));
        }
    }

    #[test]
    fn a_second_problem_does_not_take_the_id_of_the_first_one_when_that_is_not_reported() {
        let mut known = Vec::new();
        assert_eq!(review(&mut known, &[INJECTION]), [0]);
        assert_eq!(review(&mut known, &[LEAK]), [1]);
        assert_eq!(review(&mut known, &[LEAK_AGAIN, INJECTION]), [1, 0]);
    }
}
