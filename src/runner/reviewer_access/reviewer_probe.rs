//! Probes a reviewer with one tiny request: whether it answers, how fast, and whether it can use tools.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::config::{ModelCatalog, Paths, ReviewerSettings};
use crate::domain::{ChatMessage, ChatRequest, ErrorClass, ToolSpec, Usage};
use crate::reviewers::chat::{ChatError, ChatObserver, ChatProgress, ToolSupport};
use crate::runner::reviewer_access::reviewer_identity::connect;
use crate::runner::reviewer_access::usage_estimate::fill_missing_usage;

/// Maximum length of the answer to the probe, in tokens. Not from the literature: enough for a short reasoning before
/// one word.
const MAX_ANSWER_TOKENS: u64 = 2_000;

/// The result of the tool probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolProbe {
    /// The model called the tool as requested.
    Called,
    /// The model got a tool and did not call it.
    NotCalled,
    /// The model takes no tools from revdeck.
    NotGiven,
}

/// The result of the probe.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewerProbe {
    /// The name of the model, as the provider reports it.
    pub model: String,
    pub first: Duration,
    pub total: Duration,
    /// Number of pieces of the answer; more than one means streaming.
    pub pieces: u32,
    pub tools: ToolProbe,
    pub usage: Usage,
    /// Cost in US dollars; `None` if no price is known.
    pub cost: Option<f64>,
}

struct Stopwatch<'a> {
    began: Instant,
    first: Cell<Option<Duration>>,
    pieces: u32,
    stop: &'a dyn Fn() -> bool,
}

impl ChatObserver for Stopwatch<'_> {
    fn on_progress(&mut self, progress: ChatProgress) {
        if let ChatProgress::Bytes(_) = progress {
            self.pieces += 1;
            self.first.set(self.first.get().or(Some(self.began.elapsed())));
        }
    }

    fn is_cancelled(&self) -> bool {
        (self.stop)()
    }
}

/// Asks a reviewer to say hello, with a tool if it supports tools. `stop` is called often; `true` ends the request.
///
/// # Errors
///
/// The reason why the reviewer does not answer, with the next step for the user.
pub fn probe_reviewer(
    name: &str,
    settings: &ReviewerSettings,
    models: &ModelCatalog,
    paths: &Paths,
    stop: &dyn Fn() -> bool,
) -> Result<ReviewerProbe, ChatError> {
    let facts = models.facts_for_reviewer(settings);
    let folder = tempfile::tempdir()
        .map_err(|error| ChatError::new(ErrorClass::Internal, format!("cannot make a temporary folder: {error}")))?;
    let mut chat = connect(name, settings, &facts, paths, folder.path())?;
    let native = chat.tool_support() == ToolSupport::Native && facts.takes_tools(settings.kind);
    let text = match native {
        true => "Call the tool `hello` once, with your name, and say nothing else.",
        false => "Answer with the word hello and nothing else.",
    };
    let hello = ToolSpec {
        name: "hello".to_owned(),
        description: "Says hello.".to_owned(),
        parameters: serde_json::json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
        }),
    };
    let request = ChatRequest {
        system: String::new(),
        messages: vec![ChatMessage::User { text: text.to_owned() }],
        tools: if native { vec![hello] } else { Vec::new() },
        max_output: facts.max_output.min(MAX_ANSWER_TOKENS),
        temperature: None,
        pinned: 0,
    };
    let mut watch = Stopwatch { began: Instant::now(), first: Cell::new(None), pieces: 0, stop };
    let mut response = chat.respond(&request, &mut watch)?;
    let total = watch.began.elapsed();
    fill_missing_usage(&request, &mut response, facts.encoding);
    let called = response.calls.iter().any(|call| call.name == "hello");
    Ok(ReviewerProbe {
        model: response.model,
        first: watch.first.get().unwrap_or(total),
        total,
        pieces: watch.pieces,
        tools: match (native, called) {
            (false, _) => ToolProbe::NotGiven,
            (true, true) => ToolProbe::Called,
            (true, false) => ToolProbe::NotCalled,
        },
        cost: facts.price.as_ref().map(|price| price.cost(&response.usage)),
        usage: response.usage,
    })
}
