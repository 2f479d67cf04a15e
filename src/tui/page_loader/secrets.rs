//! Masks the secrets in what a page shows. A secret is found in a whole file and masked in the lines that are shown.

use crate::domain::{Finding, JournalEntry, RunEvent, RunOutput, Voice};
use crate::masking::{Mask, mask_event_words};

/// Masks a finding, which an older version or an unmasked reviewer may have stored with a secret.
pub fn mask_finding(mut finding: Finding, mask: Mask) -> Finding {
    let path = finding.repo_relative_path.clone();
    let mask_code = |text: &mut String| *text = mask.mask_text(Some(&path), text).into_owned();
    let mask_words = |text: &mut String| *text = mask.mask_words(text).into_owned();
    mask_code(&mut finding.quoted_code);
    [&mut finding.title, &mut finding.explanation].into_iter().for_each(mask_words);
    finding.voices.iter_mut().flat_map(Voice::texts_mut).for_each(mask_words);
    if let Some(suggestion) = &mut finding.suggestion {
        mask_words(&mut suggestion.text);
        if let Some(replacement) = &mut suggestion.replacement {
            mask_code(replacement);
        }
    }
    finding
}

/// Masks the entries of a journal as far as a page shows them. Older versions did not mask what a model had written.
pub fn mask_journal(mut entries: Vec<JournalEntry>) -> Vec<JournalEntry> {
    let mask_words = |text: &mut String| *text = Mask::On.mask_words(text).into_owned();
    for entry in &mut entries {
        mask_event_words(&mut entry.event);
        match &mut entry.event {
            RunEvent::Finding { finding } | RunEvent::Restated { finding, .. } => mask_words(&mut finding.title),
            RunEvent::Repeated { title: text, .. } | RunEvent::TurnAsked { asked: text, .. } => mask_words(text),
            RunEvent::Rejected { rejected, .. } => mask_words(&mut rejected.report.title),
            RunEvent::ToolAnswered { name, arguments, result, .. } => {
                [name, arguments, result].into_iter().for_each(mask_words);
            }
            _ => {}
        }
    }
    entries
}

/// Masks the words of models in the output of a run as far as the run's page shows them.
pub fn mask_output(mut output: RunOutput) -> RunOutput {
    let mask_words = |text: &mut String| *text = Mask::On.mask_words(text).into_owned();
    output.notes.iter_mut().for_each(mask_words);
    for rejected in &mut output.rejected {
        [&mut rejected.report.title, &mut rejected.reason].into_iter().for_each(mask_words);
    }
    output
}

/// Masks lines with their numbers (1-based) on one side of a patch, of which no whole text is at hand.
pub fn mask_patch_side<'a>(mask: Mask, path: &str, lines: impl Iterator<Item = &'a mut String>) {
    let mut lines: Vec<&mut String> = lines.collect();
    let whole = lines.iter().map(|line| line.as_str()).collect::<Vec<_>>().join("\n");
    for (at, masked) in list_masked_lines(mask, path, &whole) {
        if let Some(line) = lines.get_mut(at as usize - 1) {
            **line = masked;
        }
    }
}

/// Returns the lines of a text that contain a secret: number (1-based) and masked text.
fn list_masked_lines(mask: Mask, path: &str, text: &str) -> Vec<(u32, String)> {
    let masked = mask.mask_text(Some(path), text);
    let pairs = (1..).zip(text.split('\n').zip(masked.split('\n')));
    pairs
        .filter(|(_, (line, masked))| line != masked)
        .map(|(number, (_, masked))| (number, masked.to_owned()))
        .collect()
}
