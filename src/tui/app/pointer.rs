//! State of the mouse: what the button holds, and the last press, for double clicks.

use super::Pane;

/// Longest time between the two presses of a double click, in milliseconds.
const DOUBLE_CLICK_MS: i64 = 400;

/// Part of the screen that the button holds: an edge of panes, which moves, or a line of code, where a range begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldPart {
    /// The rule between the lists and the detail.
    Divider,
    /// The title of a list below another one.
    TopOf(Pane),
    /// A line of the diff.
    DiffLine,
}

/// State of the mouse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PointerState {
    /// True if the terminal reports the mouse.
    pub is_on: bool,
    /// Part that the button holds.
    pub held: Option<HeldPart>,
    /// Time (in milliseconds since 1970), column and row of the last press that was no second one.
    last_press: Option<(i64, u16, u16)>,
}

impl PointerState {
    /// Creates the state before the first event.
    pub fn new(is_on: bool) -> Self {
        Self { is_on, ..Self::default() }
    }

    /// Notes a press. Returns true if it is the second one at this place within a short time.
    pub fn press(&mut self, now: i64, column: u16, row: u16) -> bool {
        let is_second = self
            .last_press
            .is_some_and(|(at, x, y)| now.saturating_sub(at) <= DOUBLE_CLICK_MS && row == y && column.abs_diff(x) <= 1);
        // A third press begins anew.
        self.last_press = (!is_second).then_some((now, column, row));
        is_second
    }
}
