//! Estimates what a server does not report: the tokens of a request and its answer, by the token counter of the model.

use crate::domain::{ChatMessage, ChatRequest, ChatResponse, Encoding, StopReason, Usage};
use crate::tokens;

/// Tokens of a message in addition to its text, from OpenAI's cookbook ("How to count tokens").
const MESSAGE_OVERHEAD_TOKENS: u64 = 3;

/// Fills in the counts that the usage of a response lacks, and marks it as estimated. A count of 0 is not reported,
/// unless there was nothing to count; the count of an answer that broke off is that of its beginning.
pub(in crate::runner) fn fill_missing_usage(request: &ChatRequest, response: &mut ChatResponse, encoding: Encoding) {
    let count = |text: &str| tokens::count_tokens(encoding, text) as u64;
    let Usage { input, output, reasoning, .. } = response.usage;
    if input == 0 {
        response.usage.input = count_request(request, &count);
        response.usage.estimated = true;
    }
    let is_partial = response.stop == StopReason::Interrupted;
    if output.saturating_add(reasoning) == 0 || is_partial {
        let estimate = count_message(&response.to_message(), &count);
        if estimate > output.saturating_add(reasoning) {
            response.usage.output = estimate.saturating_sub(reasoning);
            response.usage.estimated = true;
        }
    }
}

/// Returns the tokens of a request, by a function that counts those of a text.
pub(in crate::runner) fn count_request(request: &ChatRequest, count: &dyn Fn(&str) -> u64) -> u64 {
    let messages = request.messages.iter().map(|message| count_message(message, count) + MESSAGE_OVERHEAD_TOKENS);
    let tools = request.tools.iter().map(|tool| count(&serde_json::to_string(tool).unwrap_or_default()));
    messages.chain(tools).fold(count(&request.system), u64::saturating_add)
}

fn count_message(message: &ChatMessage, count: &dyn Fn(&str) -> u64) -> u64 {
    match message {
        ChatMessage::User { text } | ChatMessage::Tool { text, .. } => count(text),
        ChatMessage::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| count(&call.name) + count(&call.arguments));
            calls.fold(count(text), u64::saturating_add)
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing_reported((0, 0), StopReason::Done, true, true)]
    #[case::all_reported((900, 7), StopReason::Done, false, false)]
    #[case::no_output((900, 0), StopReason::Done, false, true)]
    #[case::an_answer_that_broke_off((900, 1), StopReason::Interrupted, false, true)]
    #[case::a_whole_short_answer((900, 1), StopReason::Done, false, false)]
    fn what_is_not_reported_is_estimated(
        #[case] (input, output): (u64, u64),
        #[case] stop: StopReason,
        #[case] counts_input: bool,
        #[case] counts_output: bool,
    ) {
        let request = ChatRequest {
            system: "You review.".to_owned(),
            messages: vec![ChatMessage::User { text: "one two three ".repeat(40) }],
            ..ChatRequest::default()
        };
        let mut response = ChatResponse {
            text: "four five six ".repeat(20),
            calls: Vec::new(),
            opaque: Vec::new(),
            stop,
            usage: Usage { input, output, ..Usage::default() },
            model: String::new(),
        };
        fill_missing_usage(&request, &mut response, Encoding::O200kBase);
        assert_eq!(response.usage.estimated, counts_input || counts_output);
        assert_eq!((120..140).contains(&response.usage.input), counts_input, "{:?}", response.usage);
        assert_eq!((60..70).contains(&response.usage.output), counts_output, "{:?}", response.usage);
    }
}
