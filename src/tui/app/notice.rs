//! Holds the message above the footer: how long it stays, and how a second one joins it.

use std::borrow::Cow;

use super::App;
use crate::tui::doc::shorten_middle;
use crate::tui::draw::painter::to_shown_text;

/// Severity of a message to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    /// An action has succeeded.
    Success,
    /// A hint, or an action in progress.
    Info,
    /// An action failed, or the store has a problem.
    Error,
}

/// Message line above the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Severity, which decides the glyph and the colour.
    pub level: NoticeLevel,
    /// Text, wrapped to the width of the screen when it is drawn.
    pub text: String,
    /// Time at which the message goes, in milliseconds since 1970; `None` for a message that stays until a key is
    /// pressed.
    pub until: Option<i64>,
}

impl Notice {
    /// Minimum time that a message stays, in milliseconds.
    pub const MIN_SHOWN_MS: i64 = 6_000;
    /// Further time for each character, in milliseconds. People read about 15 to 20 characters a second.
    const MS_PER_CHARACTER: i64 = 60;

    /// Creates a message that is shown from `now` on. An error stays: nobody may have looked when it came.
    pub(super) fn new(level: NoticeLevel, text: String, now: i64) -> Self {
        let reading = Self::MS_PER_CHARACTER.saturating_mul(i64::try_from(text.chars().count()).unwrap_or(i64::MAX));
        let until = now.saturating_add(reading.max(Self::MIN_SHOWN_MS));
        Self { until: (level != NoticeLevel::Error).then_some(until), level, text }
    }
}

/// Text before the path of a repository that is not there.
const GONE: &str = "the repository is gone: ";

impl App {
    /// Returns the message above the footer: the notice, else that the repository is gone, else the store problem, else that
    /// a part of the cockpit has stopped.
    pub fn current_notice(&self) -> Option<(NoticeLevel, Cow<'_, str>)> {
        if let Some(notice) = &self.notice {
            return Some((notice.level, notice.text.as_str().into()));
        }
        let trouble = || self.store.trouble.as_deref().map(Cow::Borrowed);
        let stopped = || self.stopped_part.as_deref().map(Cow::Borrowed);
        let standing = self.describe_gone_repository().map(Cow::Owned).or_else(trouble).or_else(stopped);
        standing.map(|text| (NoticeLevel::Error, text))
    }

    /// Says in one line which repository is gone; the path is masked, then cut in its middle. `None` while it is there.
    fn describe_gone_repository(&self) -> Option<String> {
        // Half a key has no shape that a mask knows.
        let root = to_shown_text(self, self.store.gone_repository.as_deref()?);
        // A plain screen writes the word for the level in front.
        let room = self.layout_without_notice().notice_width().saturating_sub(if self.display.plain { 8 } else { 0 });
        let path = shorten_middle(&root, room.saturating_sub(GONE.len()), self.display.glyphs.ellipsis);
        Some(format!("{GONE}{path}"))
    }

    /// Shows a message above the footer in place of the present one.
    pub fn show_notice(&mut self, tone: NoticeLevel, text: impl Into<String>) {
        self.notice = Some(Notice::new(tone, text.into(), self.now));
    }

    /// Keeps the present message until a key is pressed: it is told only once.
    pub fn keep_notice(&mut self) {
        if let Some(notice) = &mut self.notice {
            notice.until = None;
        }
    }

    /// Takes away a message that is over.
    pub fn expire_notice(&mut self) {
        self.notice.take_if(|notice| notice.until.is_some_and(|until| until <= self.now));
    }

    /// Shows a message beside the present one, which nobody has read yet; the worse level decides.
    pub fn append_notice(&mut self, tone: NoticeLevel, text: impl Into<String>) {
        let text = text.into();
        let dot = self.display.glyphs.dot;
        self.notice = Some(match self.notice.take() {
            Some(Notice { level, text: before, until }) => {
                let level = if level == NoticeLevel::Error { level } else { tone };
                let both = Notice::new(level, format!("{before} {dot} {text}"), self.now);
                Notice { until: until.and(both.until), ..both }
            }
            None => Notice::new(tone, text, self.now),
        });
    }
}
