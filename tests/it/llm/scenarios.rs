//! Whole reviews from scenario files: `tests/scenarios/*.toml` holds the model's answers and the expected result.

use std::path::Path;

use revdeck::domain::{RunEvent, RunStatus};
use serde::Deserialize;
use serde_json::Value;

use super::server::{Model, Turn};
use super::{place_with_change, settings};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    about: String,
    /// The number of lines of the reviewed file.
    lines: usize,
    /// Further settings of the reviewer.
    #[serde(default)]
    settings: String,
    turn: Vec<Said>,
    expect: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    /// The number of repetitions. In texts, `{turn}` is the number of the turn, from 1.
    #[serde(default = "once")]
    repeat: usize,
    #[serde(default)]
    text: String,
    #[serde(default)]
    call: Vec<Called>,
    stop: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    status: RunStatus,
    requests: usize,
    findings: usize,
    #[serde(default)]
    rejected: usize,
    #[serde(default)]
    slides: bool,
    window_at_most: Option<u64>,
    kinds: Option<Vec<String>>,
    lines: Option<Vec<u32>>,
    #[serde(default)]
    never_sent: Vec<String>,
}

fn once() -> usize {
    1
}

fn script(turns: &[Said]) -> Vec<Turn> {
    let mut script = Vec::new();
    for said in turns {
        for _ in 0..said.repeat {
            let number = (script.len() + 1).to_string();
            let text = |text: &str| text.replace("{turn}", &number);
            let calls: Vec<(String, Value)> = said
                .call
                .iter()
                // Arguments that are not JSON are sent unchanged.
                .map(|call| (call.name.clone(), Value::String(text(&call.arguments))))
                .collect();
            let stop = match (&said.stop, calls.is_empty()) {
                (Some(stop), _) => stop.clone(),
                (None, true) => "stop".to_owned(),
                (None, false) => "tool_calls".to_owned(),
            };
            script.push(Turn::Say { text: text(&said.text), calls, stop });
        }
    }
    script
}

fn play(file: &Path) {
    let text = std::fs::read_to_string(file).expect("a scenario");
    let Scenario { about, lines, settings: more, turn, expect } = toml::from_str(&text).expect("a scenario");
    let place = place_with_change(lines);
    let model = Model::start(script(&turn));
    settings(&place, &model, &more);
    place.test.revdeck(&["review", "--reviewer", "m", "--wait"]);
    let run = place.newest().expect("a run");
    let (record, output) = (place.run(&run), place.output(&run).expect("an output"));
    let why = format!("{about}: {} {:?} {:?}", record.outcome.summary, output.notes, output.rejected);
    assert_eq!((record.status, model.asked()), (expect.status, expect.requests), "{why}");
    assert_eq!((output.findings.len(), output.rejected.len()), (expect.findings, expect.rejected), "{why}");
    let events = place.events(&run);
    assert_eq!(
        events.iter().any(|event| matches!(event, RunEvent::SlidingWindowApplied { .. })),
        expect.slides,
        "{why}"
    );
    let accumulated = events.iter().filter(|event| matches!(event, RunEvent::CodeSmellsAccumulated { .. })).count();
    assert_eq!(accumulated, expect.requests, "{why}");
    assert!(events.iter().any(|event| matches!(event, RunEvent::FinalCodeSmellsSummary { .. })), "{why}");
    if let Some(most) = expect.window_at_most {
        assert!(
            record.usage.window_peak <= most && record.usage.window_peak > 0,
            "{why}: {}",
            record.usage.window_peak
        );
    }
    if let Some(kinds) = expect.kinds {
        let mut found: Vec<String> = output.findings.iter().map(|finding| finding.kind.to_string()).collect();
        found.sort();
        assert_eq!(found, kinds, "{why}");
    }
    if let Some(lines) = expect.lines {
        assert_eq!(output.findings.iter().map(|finding| finding.line_start).collect::<Vec<_>>(), lines, "{why}");
    }
    for request in model.requests() {
        for text in &expect.never_sent {
            assert!(!request.to_string().contains(text), "{why}: {text} was sent");
        }
    }
}

#[test]
fn every_scenario_comes_out_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("scenarios").flatten().map(|entry| entry.path()).collect();
    files.sort();
    assert!(files.len() >= 5);
    files.iter().for_each(|file| play(file));
}
