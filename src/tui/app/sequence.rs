//! Holds the first keys of a sequence until the next key is pressed.

use std::borrow::Cow;

use super::{App, PendingCount};
use crate::tui::doc::TextColumns;
use crate::tui::input::KeyEvent;
use crate::tui::keymap::KeyContext;

/// First keys of a sequence. They wait for the next key without a clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingKeys {
    /// Keys pressed so far, at least one.
    pub keys: Vec<KeyEvent>,
    /// Context in which they were pressed.
    pub context: KeyContext,
    /// Number of views that were open.
    pub views: usize,
    /// Number typed before the first key.
    pub count: Option<PendingCount>,
}

impl PendingKeys {
    /// Returns the names of the keys.
    pub fn text(&self) -> String {
        self.keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// Key that continues a sequence, with the label of its action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceHint {
    /// The key, which a click on the hint presses.
    pub event: KeyEvent,
    /// Name of the key.
    pub key: String,
    /// Label of the action, or an ellipsis if more keys follow.
    pub label: Cow<'static, str>,
}

impl SequenceHint {
    /// Columns between two hints.
    pub const GAP: usize = 3;

    /// Returns the columns that the hint needs.
    pub fn width(&self) -> usize {
        self.key.width() + 1 + self.label.width()
    }
}

impl App {
    /// Returns the keys that may follow, in lines that fit on the screen behind the pressed keys; no line without a
    /// pending sequence.
    pub fn sequence_hints(&self) -> Vec<Vec<SequenceHint>> {
        let Some(pending) = &self.pending_keys else { return Vec::new() };
        let room = usize::from(self.display.columns).saturating_sub(pending.text().width() + SequenceHint::GAP + 2);
        let mut lines: Vec<Vec<SequenceHint>> = vec![Vec::new()];
        let (mut used, mut seen) = (0, Vec::new());
        for binding in self.keymap.continuations(pending.context, &pending.keys) {
            let keys = binding.keys.keys();
            let Some(next) = keys.get(pending.keys.len()).filter(|next| !seen.contains(*next)) else { continue };
            seen.push(*next);
            let ends = keys.len() == pending.keys.len() + 1;
            let label = match binding.action {
                Some(action) if ends => self.keymap.label(action),
                _ => self.display.glyphs.ellipsis.into(),
            };
            let hint = SequenceHint { event: *next, key: next.to_string(), label };
            if used > 0 && used + hint.width() > room {
                lines.push(Vec::new());
                used = 0;
            }
            used += hint.width() + SequenceHint::GAP;
            if let Some(line) = lines.last_mut() {
                line.push(hint);
            }
        }
        lines
    }
}
