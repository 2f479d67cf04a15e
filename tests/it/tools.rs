//! The model's tools and the description of a change, with repositories that git created.

mod answers;
mod hostile;
mod index;
mod large;
mod material;

use std::path::PathBuf;

use revdeck::context::tools::{ToolResult, Toolbox, ToolboxSetup};
use revdeck::domain::{ToolCall, ToolOutcome};
use revdeck::git::{FilterSettings, Repo, Snapshot};
use revdeck::masking::Mask;
use revdeck::reviewers::analyzer::reviewer::{self, BuiltinReviewer};
use serde_json::Value;

use crate::env::TestEnvironment;

/// A key with a valid shape that was never in use, in two parts: the whole text would alarm every secret scanner.
const AWS: &str = concat!("AKI", "AQ3EGRVZ7TNWLXJ5D");
const GITHUB: &str = concat!("gh", "p_8rT3kLm9QwXz2VbN6yHs4JdF7cPa1GuE5oKi");
const RANDOM: &str = concat!("q7Rt2Yp9", "Lk4Wn6Zc8Vb3Xs");

fn filter() -> FilterSettings {
    FilterSettings { max_file_bytes: 1_000_000, ignored_paths: Vec::new() }
}

fn snapshot(test: &TestEnvironment, scope: &str) -> (Repo, Snapshot) {
    let repo = Repo::discover(&test.repo()).expect("a repository");
    let snapshot = repo.take_snapshot(&scope.parse().expect("a scope"), &filter()).expect("a snapshot");
    (repo, snapshot)
}

fn toolbox(test: &TestEnvironment, scope: &str, mask: Mask) -> Toolbox {
    toolbox_with(test, scope, mask, None)
}

/// Returns a toolbox that uses a cache folder of the repository.
fn toolbox_with(test: &TestEnvironment, scope: &str, mask: Mask, folder: Option<PathBuf>) -> Toolbox {
    let (repo, snapshot) = snapshot(test, scope);
    let frozen = reviewer::ReviewedSnapshot {
        run_id: "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id"),
        commit: snapshot.snapshot_commit.clone(),
        base: Some(snapshot.base_commit.clone()).filter(|base| !base.is_empty()),
        filter: filter(),
    };
    let other = Repo::discover(&test.repo()).expect("a repository");
    let reviewer = BuiltinReviewer::new(other, frozen, "").expect("sound limits");
    let Snapshot { base_commit, snapshot_commit, change, .. } = snapshot;
    let setup = ToolboxSetup { repo, base_commit, snapshot_commit, change, reviewer: Box::new(reviewer), mask, folder };
    Toolbox::new(setup).expect("a toolbox")
}

fn call(toolbox: &mut Toolbox, name: &str, arguments: &Value) -> ToolResult {
    let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.to_string() };
    let answer = toolbox.run(&call, &|| false);
    assert_eq!(toolbox.run(&call, &|| false), answer, "the same call, the same answer: {name} {arguments}");
    assert_sound(&answer);
    answer
}

/// Checks the rules that hold for every answer.
fn assert_sound(answer: &ToolResult) {
    let harmless = |c: char| matches!(c, '\n' | '\t') || !revdeck::domain::text::is_unsafe(c);
    assert!(answer.text.chars().all(harmless), "{:?}", answer.text);
    assert!(answer.summary.chars().all(|c| !revdeck::domain::text::is_unsafe(c)), "{:?}", answer.summary);
    assert!(answer.text.len() <= revdeck::context::tools::MAX_ANSWER_BYTES && !answer.text.is_empty());
    assert!(answer.summary.chars().count() <= 160 && !answer.summary.is_empty());
    if answer.outcome != ToolOutcome::Answered {
        assert!(answer.shown.is_empty(), "{:?}", answer.shown);
    }
}

fn answered(toolbox: &mut Toolbox, name: &str, arguments: &Value) -> String {
    let answer = call(toolbox, name, arguments);
    assert_eq!(answer.outcome, ToolOutcome::Answered, "{name} {arguments}: {}", answer.text);
    answer.text
}
