//! The window: selects the messages of the next request and the summary of all other messages.
//!
//! - The pinned task stays in the window, as the first message.
//! - No tool result is sent without its call.
//! - The composed request never exceeds the limit, whatever the messages are.
//!
//! Tokens are counted in the model's encoding and corrected by the tokens that the provider billed for earlier
//! requests.

use super::{ConversationLimits, PromptTokenCounter, window_summary};
use crate::domain::{ChatMessage, ChatResponse, Usage, WindowUse};

/// Tokens of a message in addition to its text, from OpenAI's cookbook ("How to count tokens").
const MESSAGE_OVERHEAD_TOKENS: u64 = 3;
/// Tokens of a tool call in addition to its name and arguments. Not from the literature: providers differ by a few
/// tokens.
const CALL_OVERHEAD_TOKENS: u64 = 2;
/// Ratio of billed to counted tokens, in thousandths, within which the difference counts as fixed text of the provider,
/// which does not grow with the request.
const FIXED_OFFSET_RATIO: std::ops::RangeInclusive<u64> = 900..=1_100;
/// Ratio within which the difference counts as another encoding. A ratio outside has nothing to do with the request and
/// is ignored.
const PLAUSIBLE_RATIO: std::ops::RangeInclusive<u64> = 500..=3_000;
/// Percentage of the limit above which old tool results are masked.
const MASK_START_PERCENT: u64 = 85;
/// Percentage of the limit at which masking stops. The distance keeps the next turns without masking, so that the
/// provider's cache stays valid.
const MASK_GOAL_PERCENT: u64 = 60;

/// A message of the conversation with its token count.
#[derive(Debug, Clone)]
pub(super) struct WindowMessage {
    pub message: ChatMessage,
    tokens: u64,
    /// For a tool result: the line that can replace it.
    mask: Option<(String, u64)>,
    masked: bool,
}

/// All messages of the conversation, and the part that is still sent.
pub(super) struct ConversationWindow {
    count: PromptTokenCounter,
    limits: ConversationLimits,
    /// Tokens of system prompt and tools.
    fixed: u64,
    /// All messages; the pinned task is the first.
    items: Vec<WindowMessage>,
    /// The messages `1..start` have left the window.
    start: usize,
    summary: Option<(String, u64)>,
    /// Ratio of billed to counted tokens, in thousandths.
    scale: u64,
    /// Billed tokens beyond the counted text; negative if fewer tokens were billed.
    offset: i64,
    /// Counted tokens of the request that is under way.
    request_tokens: u64,
}

/// The messages of a request and how they were made to fit.
#[derive(Debug)]
pub(super) struct ComposedRequest {
    pub messages: Vec<ChatMessage>,
    pub usage: WindowUse,
    /// Number of messages that just left the window, and number of kept messages.
    pub slid: Option<(usize, usize)>,
}

impl ConversationWindow {
    pub fn new(count: PromptTokenCounter, limits: ConversationLimits, fixed: u64) -> Self {
        Self {
            count,
            limits,
            fixed,
            items: Vec::new(),
            start: 1,
            summary: None,
            scale: 1_000,
            offset: 0,
            request_tokens: 0,
        }
    }

    pub fn limits(&self) -> &ConversationLimits {
        &self.limits
    }

    /// Sets the price of a million tokens that are sent; `None` if it is not known.
    pub fn set_input_price(&mut self, price: Option<f64>) {
        self.limits.input_price = price;
    }

    /// Counts the tokens of a text, with the current correction.
    pub fn count(&self, text: &str) -> u64 {
        self.scale_tokens((self.count)(text))
    }

    /// Reduces the window after a request was rejected as too long.
    pub fn shrink(&mut self) {
        self.limits.window_tokens = self.limits.window_tokens * 7 / 10;
    }

    pub fn push(&mut self, message: ChatMessage, mask: Option<String>) {
        let tokens = self.count_message(&message);
        let mask = mask.map(|line| {
            let tokens = (self.count)(&line) + MESSAGE_OVERHEAD_TOKENS;
            (line, tokens)
        });
        self.items.push(WindowMessage { message, tokens, mask, masked: false });
    }

    /// Adds user text. Joins it with directly preceding user text, because some providers require alternating roles.
    pub fn push_user_text(&mut self, text: &str) {
        match self.items.last_mut() {
            Some(WindowMessage { message: ChatMessage::User { text: last }, tokens, .. }) => {
                last.push_str("\n\n");
                last.push_str(text);
                *tokens += (self.count)(text) + 1;
            }
            _ => self.push(ChatMessage::User { text: text.to_owned() }, None),
        }
    }

    /// Cuts a tool result to its share of the turn's tokens.
    pub fn truncate(&self, text: String, tokens: u64) -> String {
        if self.count(&text) <= tokens {
            return text;
        }
        const NOTE: &str = "\n[cut here: too long for the window; ask for a smaller part]";
        let room = tokens.saturating_sub(self.count(NOTE));
        let (mut fits, mut too_long) = (0, text.len());
        while too_long - fits > 16 {
            let middle = text.floor_char_boundary(fits + (too_long - fits) / 2);
            if middle <= fits {
                break;
            }
            if self.count(&text[..middle]) <= room { fits = middle } else { too_long = middle }
        }
        format!("{}{NOTE}", &text[..fits])
    }

    /// Corrects the count by the input tokens that the provider billed for the last request.
    pub fn calibrate(&mut self, usage: &Usage) {
        let Some(ratio) = usage.input.saturating_mul(1_000).checked_div(self.request_tokens) else { return };
        if FIXED_OFFSET_RATIO.contains(&ratio) && self.scale == 1_000 && !self.limits.approximate {
            self.offset = usage.input as i64 - self.request_tokens as i64;
        } else if PLAUSIBLE_RATIO.contains(&ratio) {
            (self.scale, self.offset) = (ratio.max(1), 0);
        }
    }

    /// Estimates the usage of an answer if the provider does not report it.
    pub fn estimate_usage(&self, response: &ChatResponse) -> Usage {
        let output = self.count_message(&response.to_message()).saturating_sub(MESSAGE_OVERHEAD_TOKENS);
        Usage {
            input: self.scale_tokens(self.request_tokens).saturating_add_signed(self.offset),
            output: self.scale_tokens(output),
            estimated: true,
            ..Usage::default()
        }
    }

    /// Composes the messages of the next request.
    pub fn compose(&mut self, turn: u32, found: &[String]) -> ComposedRequest {
        let mut slid = None;
        let before = self.start;
        if turn > self.limits.slide_after_turn && self.sent_count() > self.limits.slide_over_messages {
            self.slide_to(self.limits.keep_messages, found);
        }
        let limit = self.limits.window_tokens;
        if self.corrected_tokens() > limit * MASK_START_PERCENT / 100 {
            self.mask_old(limit * MASK_GOAL_PERCENT / 100);
        }
        while self.corrected_tokens() > limit && self.slide_one(found) {}
        if self.corrected_tokens() > limit {
            self.mask_new(limit);
        }
        if self.corrected_tokens() > limit {
            self.cut_longest(limit);
        }
        if self.start > before {
            slid = Some((self.start - before, self.items.len() - self.start + 1));
        }
        let mut messages = Vec::with_capacity(self.sent_count() + 1);
        messages.extend(self.items.first().map(|item| item.message.clone()));
        if let Some((text, _)) = &self.summary {
            messages.push(ChatMessage::User { text: text.clone() });
        }
        messages.extend(self.items.iter().skip(self.start).map(WindowMessage::visible_message));
        self.request_tokens = self.counted_tokens();
        let pinned = self.fixed + self.items.first().map_or(0, |item| item.tokens);
        let usage = WindowUse {
            tokens: self.corrected_tokens(),
            limit,
            pinned: self.scale_tokens(pinned),
            summarized: self.summary.as_ref().map_or(0, |(_, tokens)| self.scale_tokens(*tokens)),
            messages: u32::try_from(messages.len()).unwrap_or(u32::MAX),
            masked: self.kept_messages().filter(|item| item.masked).count() as u32,
            removed: self.start.saturating_sub(1) as u32,
            approximate: self.limits.approximate || self.scale != 1_000,
        };
        ComposedRequest { messages, usage, slid }
    }

    /// Returns the messages that left the window as text for a summary, at most `tokens` tokens, newest messages
    /// preferred.
    pub fn slid_out_text(&self, tokens: u64) -> String {
        let mut text = String::new();
        for item in self.items.iter().take(self.start).skip(1).rev() {
            let line = match &item.message {
                ChatMessage::User { text } => format!("user: {text}\n"),
                ChatMessage::Assistant { text, calls, .. } => {
                    let calls: Vec<String> =
                        calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect();
                    format!("assistant: {text} {}\n", calls.join(", "))
                }
                ChatMessage::Tool { name, text, .. } => format!("result of {name}: {text}\n"),
            };
            text.insert_str(0, &line);
            if self.count(&text) > tokens {
                return self.truncate(text, tokens);
            }
        }
        text
    }

    /// Replaces the local summary, cut to the maximum length.
    pub fn set_summary(&mut self, by_model: &str) {
        let text = by_model.replace('<', "‹").replace('>', "›");
        let text = window_summary::wrap_summary(
            &self.truncate(text, ConversationLimits::MAX_SUMMARY_TOKENS - 8 * MESSAGE_OVERHEAD_TOKENS),
        );
        let tokens = (self.count)(&text) + MESSAGE_OVERHEAD_TOKENS;
        self.summary = Some((text, tokens));
    }

    fn kept_messages(&self) -> impl Iterator<Item = &WindowMessage> {
        self.items.iter().skip(self.start)
    }

    /// Returns the number of sent messages without the summary.
    fn sent_count(&self) -> usize {
        (self.items.len().saturating_sub(self.start) + 1).min(self.items.len())
    }

    fn scale_tokens(&self, tokens: u64) -> u64 {
        (tokens * self.scale).div_ceil(1_000)
    }

    fn counted_tokens(&self) -> u64 {
        let pinned = self.items.first().map_or(0, |item| item.tokens);
        let summary = self.summary.as_ref().map_or(0, |(_, tokens)| *tokens);
        self.fixed + pinned + summary + self.kept_messages().map(WindowMessage::sent_tokens).sum::<u64>()
    }

    fn corrected_tokens(&self) -> u64 {
        self.scale_tokens(self.counted_tokens()).saturating_add_signed(self.offset)
    }

    fn count_message(&self, message: &ChatMessage) -> u64 {
        MESSAGE_OVERHEAD_TOKENS
            + match message {
                ChatMessage::User { text } => (self.count)(text),
                ChatMessage::Assistant { text, calls, opaque } => {
                    let calls = calls
                        .iter()
                        .map(|call| (self.count)(&call.name) + (self.count)(&call.arguments) + CALL_OVERHEAD_TOKENS);
                    let opaque = opaque.iter().map(|value| (self.count)(&value.to_string()));
                    (self.count)(text) + calls.sum::<u64>() + opaque.sum::<u64>()
                }
                ChatMessage::Tool { text, name, .. } => (self.count)(text) + (self.count)(name),
            }
    }

    /// Slides the window so that about `keep` messages besides the pinned task stay. Keeps more if the first kept
    /// message would be a tool result without its call.
    fn slide_to(&mut self, keep: usize, found: &[String]) {
        let mut start = self.items.len().saturating_sub(keep).max(1);
        while start > self.start
            && matches!(self.items.get(start).map(|item| &item.message), Some(ChatMessage::Tool { .. }))
        {
            start -= 1;
        }
        self.start_at(start, found);
    }

    /// Removes the oldest exchange from the window. Returns `false` if only the last exchange is left.
    fn slide_one(&mut self, found: &[String]) -> bool {
        let next =
            (self.start + 1..self.items.len()).find(|&at| !matches!(self.items[at].message, ChatMessage::Tool { .. }));
        // The last answer with its results, and everything after it, stay.
        let last = self.items.iter().rposition(|item| matches!(item.message, ChatMessage::Assistant { .. }));
        match next {
            Some(next) if last.is_none_or(|last| next <= last) => {
                self.start_at(next, found);
                true
            }
            _ => false,
        }
    }

    fn start_at(&mut self, start: usize, found: &[String]) {
        if start <= self.start || start >= self.items.len() {
            return;
        }
        self.start = start;
        let gone = self.items[1..start].iter().map(|item| &item.message);
        let text = window_summary::summarize_messages(
            gone,
            found,
            ConversationLimits::MAX_SUMMARY_TOKENS - MESSAGE_OVERHEAD_TOKENS,
            &|text| (self.count)(text),
        );
        let tokens = (self.count)(&text) + MESSAGE_OVERHEAD_TOKENS;
        self.summary = Some((text, tokens));
    }

    /// Masks tool results of all turns but the last, oldest first, until at most `goal` tokens remain.
    fn mask_old(&mut self, goal: u64) {
        let last = self.items.iter().rposition(|item| matches!(item.message, ChatMessage::Assistant { .. }));
        for at in self.start..last.unwrap_or(self.start) {
            if self.corrected_tokens() <= goal {
                return;
            }
            self.items[at].apply_mask();
        }
    }

    /// Masks tool results of the last turn, longest first, until at most `goal` tokens remain.
    fn mask_new(&mut self, goal: u64) {
        let mut results: Vec<usize> = (self.start..self.items.len()).filter(|&at| self.items[at].can_mask()).collect();
        results.sort_by_key(|&at| std::cmp::Reverse(self.items[at].tokens));
        for at in results {
            if self.corrected_tokens() <= goal {
                return;
            }
            self.items[at].apply_mask();
        }
    }

    /// Cuts every message to an equal share. The last resort, if single messages exceed the window.
    fn cut_longest(&mut self, limit: u64) {
        self.summary = self.summary.take().filter(|_| self.corrected_tokens() <= limit);
        let others = self.fixed + self.items.first().map_or(0, |item| item.tokens);
        let room = limit.saturating_add_signed(-self.offset).saturating_mul(1_000) / self.scale.max(1);
        let many = self.kept_messages().count().max(1) as u64;
        let share = room.saturating_sub(others) / many;
        for at in self.start..self.items.len() {
            if self.items[at].sent_tokens() <= share {
                continue;
            }
            // `truncate` expects corrected tokens.
            let to = self.scale_tokens(share.saturating_sub(MESSAGE_OVERHEAD_TOKENS + 2 * CALL_OVERHEAD_TOKENS));
            let mut message = self.items[at].visible_message();
            match &mut message {
                ChatMessage::User { text } | ChatMessage::Tool { text, .. } => {
                    *text = self.truncate(std::mem::take(text), to)
                }
                ChatMessage::Assistant { text, calls, opaque } => {
                    opaque.clear();
                    for call in calls.iter_mut() {
                        call.arguments = "{}".to_owned();
                    }
                    *text = self.truncate(std::mem::take(text), to);
                }
            }
            let tokens = self.count_message(&message);
            self.items[at] = WindowMessage { message, tokens, mask: None, masked: false };
        }
    }
}

impl WindowMessage {
    fn can_mask(&self) -> bool {
        !self.masked && self.mask.as_ref().is_some_and(|(_, tokens)| *tokens < self.tokens)
    }

    fn apply_mask(&mut self) {
        self.masked |= self.can_mask();
    }

    fn sent_tokens(&self) -> u64 {
        match &self.mask {
            Some((_, tokens)) if self.masked => *tokens,
            _ => self.tokens,
        }
    }

    fn visible_message(&self) -> ChatMessage {
        match (&self.message, &self.mask) {
            (ChatMessage::Tool { call_id, name, .. }, Some((line, _))) if self.masked => {
                ChatMessage::Tool { call_id: call_id.clone(), name: name.clone(), text: line.clone() }
            }
            (message, _) => message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{SummaryAuthor, ToolCall};

    fn limits(window: u64) -> ConversationLimits {
        ConversationLimits {
            max_turns: 20,
            window_tokens: window,
            output_tokens: 1_000,
            has_tools: true,
            slide_after_turn: 5,
            slide_over_messages: 15,
            keep_messages: 10,
            budget: super::super::RemainingBudget::default(),
            input_price: None,
            approximate: false,
            summary: SummaryAuthor::Local,
            opinion: None,
        }
    }

    /// One token per byte, which makes sums easy.
    fn window(limit: u64) -> ConversationWindow {
        let mut window = ConversationWindow::new(Box::new(|text| text.len() as u64), limits(limit), 100);
        window.push_user_text("task");
        window
    }

    fn exchange(window: &mut ConversationWindow, number: usize, results: &[usize]) {
        let calls: Vec<ToolCall> = (0..results.len())
            .map(|call| ToolCall { id: format!("{number}-{call}"), name: "t".to_owned(), arguments: "{}".to_owned() })
            .collect();
        window.push(
            ChatMessage::Assistant { text: format!("answer {number}"), calls: calls.clone(), opaque: Vec::new() },
            None,
        );
        for (call, length) in calls.into_iter().zip(results) {
            let text = "r".repeat(*length);
            window.push(
                ChatMessage::Tool { call_id: call.id, name: call.name, text },
                Some(format!("[result {number} is gone]")),
            );
        }
    }

    fn is_sound(messages: &[ChatMessage]) -> bool {
        let mut known: Vec<&str> = Vec::new();
        messages.iter().all(|message| match message {
            ChatMessage::Assistant { calls, .. } => {
                known.extend(calls.iter().map(|call| call.id.as_str()));
                true
            }
            ChatMessage::Tool { call_id, .. } => known.contains(&call_id.as_str()),
            ChatMessage::User { .. } => true,
        })
    }

    #[test]
    fn up_to_the_fifth_turn_everything_is_sent_and_from_the_sixth_the_last_ten() {
        let mut window = window(100_000);
        for turn in 1..=8 {
            exchange(&mut window, turn, &[10, 10]);
        }
        let early = window.compose(5, &[]);
        assert_eq!((early.messages.len(), early.slid.is_none()), (25, true));
        let late = window.compose(6, &[]);
        // The first of the last ten messages is a tool result, so its call stays as well; task and summary are sent in
        // addition.
        assert_eq!(late.slid, Some((12, 13)));
        assert_eq!(late.messages.len(), 14);
        assert!(is_sound(&late.messages));
        assert!(matches!(&late.messages[1], ChatMessage::User { text } if text.starts_with("<conversation_summary>")));
        assert!(window.compose(7, &[]).slid.is_none(), "13 messages are not more than 15");
    }

    #[test]
    fn old_results_are_masked_before_anything_is_dropped() {
        let mut window = window(1_000);
        for turn in 1..=3 {
            exchange(&mut window, turn, &[250]);
        }
        let composed = window.compose(4, &[]);
        assert_eq!((composed.usage.masked, composed.usage.removed), (2, 0));
        assert!(
            composed
                .messages
                .iter()
                .any(|message| matches!(message, ChatMessage::Tool { text, .. } if text == "[result 1 is gone]"))
        );
        assert!(composed.usage.tokens <= 600);
    }

    #[test]
    fn what_the_provider_billed_corrects_the_count() {
        let mut window = window(10_000);
        exchange(&mut window, 1, &[1_000]);
        let first = window.compose(1, &[]).usage;
        window.calibrate(&Usage { input: first.tokens * 3 / 2, ..Usage::default() });
        let second = window.compose(2, &[]).usage;
        assert_eq!((first.approximate, second.approximate), (false, true));
        assert!(second.tokens.abs_diff(first.tokens * 3 / 2) <= 2, "{} {}", first.tokens, second.tokens);
        window.calibrate(&Usage { input: 1, ..Usage::default() });
        assert_eq!(window.compose(3, &[]).usage.tokens, second.tokens, "less is never believed");
    }

    proptest! {
        #[test]
        fn the_window_never_overflows_and_stays_sound(
            limit in 2_000..8_000u64,
            turns in prop::collection::vec((prop::collection::vec(0..6_000usize, 0..4), 0..5_000usize), 1..20),
            scale in 1_000..3_000u64,
        ) {
            let mut window = window(limit);
            for (number, (results, said)) in turns.iter().enumerate() {
                exchange(&mut window, number, results);
                if *said > 0 {
                    window.push_user_text(&"s".repeat(*said));
                }
                let composed = window.compose(number as u32 + 1, &["a finding".to_owned()]);
                prop_assert!(composed.usage.tokens <= limit, "{} of {}", composed.usage.tokens, limit);
                prop_assert!(is_sound(&composed.messages));
                let pinned = matches!(&composed.messages[0], ChatMessage::User { text } if text.starts_with("task"));
                prop_assert!(pinned);
                window.calibrate(&Usage { input: window.request_tokens * scale / 1_000, ..Usage::default() });
            }
        }
    }
}
