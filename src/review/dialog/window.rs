//! The window: which messages the next request holds, and what stands for those it does not.
//!
//! Invariants: the pinned task stays, first; no tool result is sent without its call; what is composed never exceeds
//! the limit, whatever the messages are. Counts are by the model's encoding, corrected by what the provider billed for
//! the requests so far where that was more.

use super::{Count, Limits, summary};
use crate::domain::{Message, Response, Usage, WindowUse};

/// What a message costs beside its text, by OpenAI's cookbook ("How to count tokens"). Tokens.
const PER_MESSAGE: u64 = 3;
/// What a tool call costs beside its name and arguments. Tokens; own: what providers bill differs by a few.
const PER_CALL: u64 = 2;
/// What was billed for a request, in thousandths of what was counted: within these the difference is taken for words of
/// the provider's own, which do not grow with the text ...
const WORDS_OF_ITS_OWN: std::ops::RangeInclusive<u64> = 900..=1_100;
/// ... within these for another encoding, and outside for something that has nothing to do with the request.
const BELIEVED: std::ops::RangeInclusive<u64> = 500..=3_000;
/// Old tool results are masked from this part of the limit on ... (percent)
const MASK_FROM: u64 = 85;
/// ... until so much is left: the next turns fit without another cut, and the provider's cache holds. (percent)
const MASK_TO: u64 = 60;

/// A message of the conversation and what it takes.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub message: Message,
    tokens: u64,
    /// For a tool result: the line that can stand for it.
    mask: Option<(String, u64)>,
    masked: bool,
}

/// All that was said, and how much of it is still sent.
pub(super) struct Window {
    count: Count,
    limits: Limits,
    /// System prompt and tools.
    fixed: u64,
    /// The pinned task first.
    items: Vec<Item>,
    /// The items `1..start` have slid out.
    start: usize,
    summary: Option<(String, u64)>,
    /// Billed tokens for counted ones, in thousandths.
    scale: u64,
    /// Billed tokens that no text accounts for; negative where less was billed.
    offset: i64,
    /// Counted tokens of the request that is on its way.
    asked: u64,
}

/// A request's messages and what was done to make them fit.
#[derive(Debug)]
pub(super) struct Composed {
    pub messages: Vec<Message>,
    pub usage: WindowUse,
    /// How many messages slid out just now, and how many were kept.
    pub slid: Option<(usize, usize)>,
}

impl Window {
    pub fn new(count: Count, limits: Limits, fixed: u64) -> Self {
        Self { count, limits, fixed, items: Vec::new(), start: 1, summary: None, scale: 1_000, offset: 0, asked: 0 }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Tokens of a text, as far as is known by now.
    pub fn count(&self, text: &str) -> u64 {
        self.scaled((self.count)(text))
    }

    /// The request was refused as too long: from now on less is sent.
    pub fn shrink(&mut self) {
        self.limits.window_tokens = self.limits.window_tokens * 7 / 10;
    }

    pub fn push(&mut self, message: Message, mask: Option<String>) {
        let tokens = self.measure(&message);
        let mask = mask.map(|line| {
            let tokens = (self.count)(&line) + PER_MESSAGE;
            (line, tokens)
        });
        self.items.push(Item { message, tokens, mask, masked: false });
    }

    /// Says something to the model; joined with what was said just before, as some providers want turns to alternate.
    pub fn say(&mut self, text: &str) {
        match self.items.last_mut() {
            Some(Item { message: Message::User { text: last }, tokens, .. }) => {
                last.push_str("\n\n");
                last.push_str(text);
                *tokens += (self.count)(text) + 1;
            }
            _ => self.push(Message::User { text: text.to_owned() }, None),
        }
    }

    /// The text of the tool result, cut to what the turn's results may take together.
    pub fn cut(&self, text: String, tokens: u64) -> String {
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

    /// The provider billed so much input for the last request: what is counted from now on is corrected by it.
    pub fn billed(&mut self, usage: &Usage) {
        let Some(ratio) = usage.input.saturating_mul(1_000).checked_div(self.asked) else { return };
        if WORDS_OF_ITS_OWN.contains(&ratio) && self.scale == 1_000 && !self.limits.approximate {
            self.offset = usage.input as i64 - self.asked as i64;
        } else if BELIEVED.contains(&ratio) {
            (self.scale, self.offset) = (ratio.max(1), 0);
        }
    }

    /// What an answer used, by our own count, where the provider does not say.
    pub fn estimated(&self, response: &Response) -> Usage {
        let output = self.measure(&response.message()).saturating_sub(PER_MESSAGE);
        Usage {
            input: self.scaled(self.asked).saturating_add_signed(self.offset),
            output: self.scaled(output),
            ..Usage::default()
        }
    }

    /// The messages of the next request.
    pub fn compose(&mut self, turn: u32, found: &[String]) -> Composed {
        let mut slid = None;
        let before = self.start;
        if turn > self.limits.slide_after_turn && self.sent() > self.limits.slide_over_messages {
            self.slide_to(self.limits.keep_messages, found);
        }
        let limit = self.limits.window_tokens;
        if self.tokens() > limit * MASK_FROM / 100 {
            self.mask_old(limit * MASK_TO / 100);
        }
        while self.tokens() > limit && self.slide_one(found) {}
        if self.tokens() > limit {
            self.mask_new(limit);
        }
        if self.tokens() > limit {
            self.cut_longest(limit);
        }
        if self.start > before {
            slid = Some((self.start - before, self.items.len() - self.start + 1));
        }
        let mut messages = Vec::with_capacity(self.sent() + 1);
        messages.extend(self.items.first().map(|item| item.message.clone()));
        if let Some((text, _)) = &self.summary {
            messages.push(Message::User { text: text.clone() });
        }
        messages.extend(self.items.iter().skip(self.start).map(Item::shown));
        self.asked = self.counted();
        let pinned = self.fixed + self.items.first().map_or(0, |item| item.tokens);
        let usage = WindowUse {
            tokens: self.tokens(),
            limit,
            pinned: self.scaled(pinned),
            summarized: self.summary.as_ref().map_or(0, |(_, tokens)| self.scaled(*tokens)),
            messages: u32::try_from(messages.len()).unwrap_or(u32::MAX),
            masked: self.kept().filter(|item| item.masked).count() as u32,
            removed: self.start.saturating_sub(1) as u32,
            approximate: self.limits.approximate || self.scale != 1_000,
        };
        Composed { messages, usage, slid }
    }

    /// What has slid out, as text for whoever sums it up, at most `tokens` of it; the newest stays.
    pub fn gone(&self, tokens: u64) -> String {
        let mut text = String::new();
        for item in self.items.iter().take(self.start).skip(1).rev() {
            let line = match &item.message {
                Message::User { text } => format!("user: {text}\n"),
                Message::Assistant { text, calls, .. } => {
                    let calls: Vec<String> =
                        calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect();
                    format!("assistant: {text} {}\n", calls.join(", "))
                }
                Message::Tool { name, text, .. } => format!("result of {name}: {text}\n"),
            };
            text.insert_str(0, &line);
            if self.count(&text) > tokens {
                return self.cut(text, tokens);
            }
        }
        text
    }

    /// A summary in the place of the local one, cut to what it may take.
    pub fn summarise(&mut self, by_model: &str) {
        let text = by_model.replace('<', "‹").replace('>', "›");
        let text = summary::framed(&self.cut(text, Limits::SUMMARY_TOKENS - 8 * PER_MESSAGE));
        let tokens = (self.count)(&text) + PER_MESSAGE;
        self.summary = Some((text, tokens));
    }

    fn kept(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().skip(self.start)
    }

    /// Messages that are sent, the summary aside.
    fn sent(&self) -> usize {
        (self.items.len().saturating_sub(self.start) + 1).min(self.items.len())
    }

    fn scaled(&self, tokens: u64) -> u64 {
        (tokens * self.scale).div_ceil(1_000)
    }

    fn counted(&self) -> u64 {
        let pinned = self.items.first().map_or(0, |item| item.tokens);
        let summary = self.summary.as_ref().map_or(0, |(_, tokens)| *tokens);
        self.fixed + pinned + summary + self.kept().map(Item::sent_tokens).sum::<u64>()
    }

    fn tokens(&self) -> u64 {
        self.scaled(self.counted()).saturating_add_signed(self.offset)
    }

    fn measure(&self, message: &Message) -> u64 {
        PER_MESSAGE
            + match message {
                Message::User { text } => (self.count)(text),
                Message::Assistant { text, calls, opaque } => {
                    let calls =
                        calls.iter().map(|call| (self.count)(&call.name) + (self.count)(&call.arguments) + PER_CALL);
                    let opaque = opaque.iter().map(|value| (self.count)(&value.to_string()));
                    (self.count)(text) + calls.sum::<u64>() + opaque.sum::<u64>()
                }
                Message::Tool { text, name, .. } => (self.count)(text) + (self.count)(name),
            }
    }

    /// The first kept item such that at most `keep` messages are sent with the pinned one aside, moved back until no
    /// tool result is without its call.
    fn slide_to(&mut self, keep: usize, found: &[String]) {
        let mut start = self.items.len().saturating_sub(keep).max(1);
        while start > self.start
            && matches!(self.items.get(start).map(|item| &item.message), Some(Message::Tool { .. }))
        {
            start -= 1;
        }
        self.start_at(start, found);
    }

    /// Lets the oldest exchange go; `false` when only the last one is left.
    fn slide_one(&mut self, found: &[String]) -> bool {
        let next =
            (self.start + 1..self.items.len()).find(|&at| !matches!(self.items[at].message, Message::Tool { .. }));
        // The last answer with its results, and what was said after it, stay.
        let last = self.items.iter().rposition(|item| matches!(item.message, Message::Assistant { .. }));
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
        let text = summary::of(gone, found, Limits::SUMMARY_TOKENS - PER_MESSAGE, &|text| (self.count)(text));
        let tokens = (self.count)(&text) + PER_MESSAGE;
        self.summary = Some((text, tokens));
    }

    /// Masks the results of all turns but the last, the oldest first, until `goal` is reached.
    fn mask_old(&mut self, goal: u64) {
        let last = self.items.iter().rposition(|item| matches!(item.message, Message::Assistant { .. }));
        for at in self.start..last.unwrap_or(self.start) {
            if self.tokens() <= goal {
                return;
            }
            self.items[at].hide();
        }
    }

    /// Masks the results of the last turn as well, the longest first.
    fn mask_new(&mut self, goal: u64) {
        let mut results: Vec<usize> = (self.start..self.items.len()).filter(|&at| self.items[at].can_hide()).collect();
        results.sort_by_key(|&at| std::cmp::Reverse(self.items[at].tokens));
        for at in results {
            if self.tokens() <= goal {
                return;
            }
            self.items[at].hide();
        }
    }

    /// The last resort, for messages that alone are more than a window: each is cut to an equal share.
    fn cut_longest(&mut self, limit: u64) {
        self.summary = self.summary.take().filter(|_| self.tokens() <= limit);
        let others = self.fixed + self.items.first().map_or(0, |item| item.tokens);
        let room = limit.saturating_add_signed(-self.offset).saturating_mul(1_000) / self.scale.max(1);
        let many = self.kept().count().max(1) as u64;
        let share = room.saturating_sub(others) / many;
        for at in self.start..self.items.len() {
            if self.items[at].sent_tokens() <= share {
                continue;
            }
            // `cut` counts scaled tokens.
            let to = self.scaled(share.saturating_sub(PER_MESSAGE + 2 * PER_CALL));
            let mut message = self.items[at].shown();
            match &mut message {
                Message::User { text } | Message::Tool { text, .. } => *text = self.cut(std::mem::take(text), to),
                Message::Assistant { text, calls, opaque } => {
                    opaque.clear();
                    for call in calls.iter_mut() {
                        call.arguments = "{}".to_owned();
                    }
                    *text = self.cut(std::mem::take(text), to);
                }
            }
            let tokens = self.measure(&message);
            self.items[at] = Item { message, tokens, mask: None, masked: false };
        }
    }
}

impl Item {
    fn can_hide(&self) -> bool {
        !self.masked && self.mask.as_ref().is_some_and(|(_, tokens)| *tokens < self.tokens)
    }

    fn hide(&mut self) {
        self.masked |= self.can_hide();
    }

    fn sent_tokens(&self) -> u64 {
        match &self.mask {
            Some((_, tokens)) if self.masked => *tokens,
            _ => self.tokens,
        }
    }

    fn shown(&self) -> Message {
        match (&self.message, &self.mask) {
            (Message::Tool { call_id, name, .. }, Some((line, _))) if self.masked => {
                Message::Tool { call_id: call_id.clone(), name: name.clone(), text: line.clone() }
            }
            (message, _) => message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::ToolCall;

    fn limits(window: u64) -> Limits {
        Limits {
            max_turns: 20,
            window_tokens: window,
            output_tokens: 1_000,
            slide_after_turn: 5,
            slide_over_messages: 15,
            keep_messages: 10,
            budget: super::super::Budget::default(),
            input_price: None,
            approximate: false,
            summary: super::super::SummaryBy::Local,
            opinion: None,
        }
    }

    /// One token a byte: easy to reckon with.
    fn window(limit: u64) -> Window {
        let mut window = Window::new(Box::new(|text| text.len() as u64), limits(limit), 100);
        window.say("task");
        window
    }

    fn exchange(window: &mut Window, number: usize, results: &[usize]) {
        let calls: Vec<ToolCall> = (0..results.len())
            .map(|call| ToolCall { id: format!("{number}-{call}"), name: "t".to_owned(), arguments: "{}".to_owned() })
            .collect();
        window.push(
            Message::Assistant { text: format!("answer {number}"), calls: calls.clone(), opaque: Vec::new() },
            None,
        );
        for (call, length) in calls.into_iter().zip(results) {
            let text = "r".repeat(*length);
            window.push(
                Message::Tool { call_id: call.id, name: call.name, text },
                Some(format!("[result {number} is gone]")),
            );
        }
    }

    fn is_sound(messages: &[Message]) -> bool {
        let mut known: Vec<&str> = Vec::new();
        messages.iter().all(|message| match message {
            Message::Assistant { calls, .. } => {
                known.extend(calls.iter().map(|call| call.id.as_str()));
                true
            }
            Message::Tool { call_id, .. } => known.contains(&call_id.as_str()),
            Message::User { .. } => true,
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
        // Of the last ten the first one is a result, so its call comes along; task and summary are on top.
        assert_eq!(late.slid, Some((12, 13)));
        assert_eq!(late.messages.len(), 14);
        assert!(is_sound(&late.messages));
        assert!(matches!(&late.messages[1], Message::User { text } if text.starts_with("<conversation_summary>")));
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
                .any(|message| matches!(message, Message::Tool { text, .. } if text == "[result 1 is gone]"))
        );
        assert!(composed.usage.tokens <= 600);
    }

    #[test]
    fn what_the_provider_billed_corrects_the_count() {
        let mut window = window(10_000);
        exchange(&mut window, 1, &[1_000]);
        let first = window.compose(1, &[]).usage;
        window.billed(&Usage { input: first.tokens * 3 / 2, ..Usage::default() });
        let second = window.compose(2, &[]).usage;
        assert_eq!((first.approximate, second.approximate), (false, true));
        assert!(second.tokens.abs_diff(first.tokens * 3 / 2) <= 2, "{} {}", first.tokens, second.tokens);
        window.billed(&Usage { input: 1, ..Usage::default() });
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
                    window.say(&"s".repeat(*said));
                }
                let composed = window.compose(number as u32 + 1, &["a finding".to_owned()]);
                prop_assert!(composed.usage.tokens <= limit, "{} of {}", composed.usage.tokens, limit);
                prop_assert!(is_sound(&composed.messages));
                let pinned = matches!(&composed.messages[0], Message::User { text } if text.starts_with("task"));
                prop_assert!(pinned);
                window.billed(&Usage { input: window.asked * scale / 1_000, ..Usage::default() });
            }
        }
    }
}
