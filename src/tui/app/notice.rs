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
    /// Messages of which the text consists, in the order in which they came.
    parts: Vec<NoticePart>,
}

/// Message that stands in a notice, perhaps beside others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NoticePart {
    text: String,
    /// Runs, by id, whose ends tell this again.
    runs: Vec<String>,
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
        let parts = vec![NoticePart { text: text.clone(), runs: Vec::new() }];
        Self { until: (level != NoticeLevel::Error).then_some(until), level, text, parts }
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
        self.append_interim_notice(tone, text, Vec::new());
    }

    /// Shows a message beside the present one until the end of one of these runs, given by their ids, says it again; see
    /// [`App::drop_interim_notice`].
    pub fn append_interim_notice(&mut self, tone: NoticeLevel, text: impl Into<String>, runs: Vec<String>) {
        let part = NoticePart { text: text.into(), runs };
        self.notice = Some(match self.notice.take() {
            Some(Notice { level, until, mut parts, .. }) => {
                let level = if level == NoticeLevel::Error { level } else { tone };
                parts.push(part);
                self.join_notice(level, until, parts)
            }
            None => Notice { parts: vec![part.clone()], ..Notice::new(tone, part.text, self.now) },
        });
    }

    /// Takes what was told about a working run, given by its id, out of the present message: its end says it again.
    pub fn drop_interim_notice(&mut self, run: &str) {
        let Some(Notice { level, until, mut parts, text }) = self.notice.take() else { return };
        let before = parts.len();
        parts.retain(|part| part.runs.iter().all(|other| other != run));
        self.notice = match parts.len() {
            0 => None,
            left if left == before => Some(Notice { level, until, parts, text }),
            _ => Some(self.join_notice(level, until, parts)),
        };
    }

    /// Joins messages into one, which is shown from now on. One that stays until a key is pressed (`until` is `None`) still does.
    fn join_notice(&self, level: NoticeLevel, until: Option<i64>, parts: Vec<NoticePart>) -> Notice {
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        let both = Notice::new(level, texts.join(&format!(" {} ", self.display.glyphs.dot)), self.now);
        Notice { until: until.and(both.until), parts, ..both }
    }
}
