//! Describes the voices behind a finding of a panel: who said what, what followed from it, and what is disputed.

use super::text::format_masked;
use crate::domain::{Finding, Voice};

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
pub fn describe_voices(finding: &Finding) -> Vec<DescribedVoice> {
    let own = finding.own_voice();
    let own_voice = own.and_then(|own| finding.voices.get(own));
    let others = finding.voices.iter().enumerate().filter(|(at, _)| Some(*at) != own).map(|(_, voice)| voice);
    let describe = |voice: &Voice, is_own: bool| {
        let also = if own.is_some() && !is_own { "also " } else { "" };
        let mut facts = vec![voice.priority.to_string(), format!("confidence {}", voice.confidence)];
        if voice.kind != finding.kind {
            facts.push(voice.kind.to_string());
        }
        if voice.line_start != finding.line_start {
            facts.push(format!("line {}", voice.line_start));
        }
        let lead = format!("{also}said by {} ({})", format_masked(&voice.reviewer), facts.join(", "));
        let words = match (is_own, format_masked(&voice.explanation)) {
            (true, _) => String::new(),
            (false, explanation) if explanation.is_empty() => format_masked(&voice.title),
            (false, explanation) => format!("{}: {explanation}", format_masked(&voice.title)),
        };
        DescribedVoice { lead, words }
    };
    let own_voice = own_voice.map(|voice| describe(voice, true));
    own_voice.into_iter().chain(others.map(|voice| describe(voice, false))).collect()
}

/// Describes the changes of priority and confidence that followed, one sentence each.
pub fn describe_steps(finding: &Finding) -> Vec<String> {
    finding.steps.iter().map(|step| format_masked(&step.to_string())).collect()
}

/// Describes the contradictions between the reviewers, one sentence each.
pub fn describe_disputes(finding: &Finding) -> Vec<String> {
    finding.disputed.iter().map(|dispute| format_masked(&dispute.to_string())).collect()
}

/// Returns all of this as lines: voices with their words, steps, disputes.
pub fn list_lines(finding: &Finding) -> Vec<String> {
    let voices = describe_voices(finding).into_iter().map(|voice| match voice.words.is_empty() {
        true => voice.lead,
        false => format!("{}: {}", voice.lead, voice.words),
    });
    let disputes = describe_disputes(finding).into_iter().map(|dispute| format!("disputed: {dispute}"));
    voices.chain(describe_steps(finding)).chain(disputes).collect()
}
