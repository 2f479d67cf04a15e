//! Renders what the reviewers of a panel said about a finding, and what followed from it. All of it is empty for the finding
//! of a single reviewer, except a lowered priority.

use super::NAMES;
use crate::domain::{Finding, WordStyle, text};
use crate::report::panel;
use crate::tui::app::App;
use crate::tui::doc::{Doc, DocLine, shorten, wrap_words};
use crate::tui::theme::Role;

/// Most lines of a reviewer's words where they are in short.
const MAX_SHORT_LINES: usize = 2;

/// Renders who reports the finding, for the line below its place.
pub fn render_agreement(finding: &Finding, width: usize, doc: &mut Doc) {
    if let Some(agreement) = panel::describe_agreement(finding) {
        doc.push_paragraph(Role::Muted, &agreement, width);
    }
}

/// Renders the contradictions between the reviewers. As in the lists, one that a second opinion has settled has no sign.
pub fn render_disputes(app: &App, finding: &Finding, width: usize, doc: &mut Doc) {
    for dispute in panel::describe_disputes(finding, WordStyle::Label) {
        let (name, role) = match dispute.is_settled {
            true => (dispute.word().to_owned(), Role::Normal),
            false => (format!("{} {}", app.display.glyphs.disputed, dispute.word()), Role::Warn),
        };
        doc.push_field(&name, NAMES, role, &dispute.text, width);
    }
}

/// Returns in a sentence by which step the priority was lowered.
pub fn describe_lowered(finding: &Finding) -> Option<String> {
    let lowered = finding.lowered.as_ref()?;
    Some(text::sanitize_line(&lowered.describe(WordStyle::Label)).into_owned())
}

/// Renders the words of every reviewer, and the steps of priority and confidence; of the finding of a single reviewer,
/// whether revdeck's own search for secrets found it.
pub fn render_voices(finding: &Finding, width: usize, doc: &mut Doc) {
    let voices = panel::describe_voices(finding, WordStyle::Label);
    let steps = panel::describe_steps(finding, WordStyle::Label);
    if voices.is_empty() && steps.is_empty() {
        return;
    }
    doc.push_heading("Reviewers", "");
    for voice in voices {
        doc.push_paragraph(Role::Muted, &voice.lead, width);
        if !voice.words.is_empty() {
            doc.push_paragraph(Role::Normal, &voice.words, width);
        }
    }
    for step in steps {
        doc.push_paragraph(Role::Muted, &step, width);
    }
}

/// Renders the same in few lines: each reviewer's words are cut after two.
pub fn render_voices_in_short(app: &App, finding: &Finding, width: usize, doc: &mut Doc) {
    let room = width.saturating_sub(NAMES).max(8);
    let mut name = "reviewers";
    let mut push = |role: Role, said: &str| {
        let short = shorten(said, room * MAX_SHORT_LINES, app.display.glyphs.ellipsis);
        // A break between words may cost a line.
        for line in wrap_words(&short, room).into_iter().take(MAX_SHORT_LINES) {
            doc.push(DocLine::styled(Role::Muted, &format!("{name:<NAMES$}")).with_span(role, &line));
            name = "";
        }
    };
    for voice in panel::describe_voices(finding, WordStyle::Label) {
        match voice.words.is_empty() {
            true => push(Role::Normal, &voice.lead),
            false => push(Role::Normal, &format!("{}: {}", voice.lead, voice.words)),
        }
    }
    for step in panel::describe_steps(finding, WordStyle::Label) {
        push(Role::Muted, &step);
    }
}
