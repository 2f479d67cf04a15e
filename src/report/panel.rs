//! Describes the voices behind a finding of a panel: who said what, what followed from it, and what is disputed.

use super::text::format_masked;
use crate::domain::text::join_names;
use crate::domain::{Dispute, Finding, FindingStep, Voice, WordStyle};

/// Report of a reviewer, as texts on one line each, masked and harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedVoice {
    /// Reviewer with what it said about urgency and place, as in `also said by gpt (p1, confidence high, line 42)`.
    pub lead: String,
    /// Title and explanation; empty if they are those of the finding.
    pub words: String,
}

/// Describes the reports of a finding: the one whose words the finding has first, then the others by reviewer. Empty for
/// the finding of a single reviewer.
pub fn describe_voices(finding: &Finding, style: WordStyle) -> Vec<DescribedVoice> {
    let has_own = finding.own_voice().is_some();
    let describe = |(number, voice): (usize, &Voice)| {
        let is_own = has_own && number == 0;
        let also = if has_own && !is_own { "also " } else { "" };
        let mut facts = vec![style.priority(voice.priority), format!("confidence {}", voice.confidence)];
        if voice.kind != finding.kind {
            facts.push(style.kind(voice.kind));
        }
        if voice.line_start != finding.line_start {
            facts.push(format!("line {}", voice.line_start));
        }
        facts.extend(voice.held_back.map(|reason| format!("held back: {}", reason.word().replace('_', " "))));
        let lead = format!("{also}said by {} ({})", format_masked(&voice.reviewer), facts.join(", "));
        let words = match (is_own, format_masked(&voice.explanation)) {
            (true, _) => String::new(),
            (false, explanation) if explanation.is_empty() => format_masked(&voice.title),
            (false, explanation) => format!("{}: {explanation}", format_masked(&voice.title)),
        };
        DescribedVoice { lead, words }
    };
    finding.voices_own_first().enumerate().map(describe).collect()
}

/// Says in a few words which reviewers of a panel report a finding: `sonnet and builtin agree`; `None` for the finding of a
/// single reviewer, and where a dispute says the same.
pub fn describe_agreement(finding: &Finding) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for voice in finding.voices_own_first().filter(|voice| !voice.is_secret_scan()) {
        let name = format_masked(&voice.reviewer);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let is_said = finding.disputed.iter().any(|dispute| matches!(dispute, Dispute::Alone { .. }));
    match names.as_slice() {
        [] => None,
        [_] if is_said => None,
        [one] => Some(format!("only {one} reports it")),
        names => Some(format!("{} agree", join_names(names))),
    }
}

/// Describes the changes of priority and confidence that followed, one sentence each.
pub fn describe_steps(finding: &Finding, style: WordStyle) -> Vec<String> {
    finding.steps.iter().map(|step| format_masked(&step.describe(style))).collect()
}

/// Contradiction between reviewers, with what a second opinion said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedDispute {
    /// True if a second opinion has settled it.
    pub is_settled: bool,
    /// One sentence without a full stop, masked and harmless: `the priorities go from p0 to p3; opus finds it real`.
    pub text: String,
}

impl DescribedDispute {
    /// Returns the word before the sentence.
    pub fn word(&self) -> &'static str {
        if self.is_settled { "settled" } else { "disputed" }
    }

    /// Returns the word and the sentence.
    pub fn to_line(&self) -> String {
        format!("{}: {}", self.word(), self.text)
    }
}

/// Describes the contradictions between the reviewers, and who has settled them. The reasons of second opinions are among the
/// steps.
pub fn describe_disputes(finding: &Finding, style: WordStyle) -> Vec<DescribedDispute> {
    let verdict = finding.steps.iter().rev().find(|step| step.is_verdict());
    let ruling = match verdict {
        Some(verdict) => verdict.describe_ruling(),
        None => finding.steps.iter().rev().find_map(FindingStep::describe_ruling),
    };
    let ruling = ruling.map_or_else(String::new, |ruling| format!("; {ruling}"));
    let describe = |dispute: &Dispute| DescribedDispute {
        is_settled: verdict.is_some(),
        text: format_masked(&format!("{}{ruling}", dispute.describe(style))),
    };
    finding.disputed.iter().map(describe).collect()
}

/// Returns all of this as lines: voices with their words, steps, disputes.
pub fn list_lines(finding: &Finding) -> Vec<String> {
    let voices = describe_voices(finding, WordStyle::Plain).into_iter().map(|voice| match voice.words.is_empty() {
        true => voice.lead,
        false => format!("{}: {}", voice.lead, voice.words),
    });
    let disputes = describe_disputes(finding, WordStyle::Plain).into_iter().map(|dispute| dispute.to_line());
    voices.chain(describe_steps(finding, WordStyle::Plain)).chain(disputes).collect()
}
