//! Decides when to look whether the code is still what runs have reviewed: when the terminal gets the focus, with a key or
//! a click after a pause, and when a run has ended. A cockpit that nobody uses looks at nothing.

use std::sync::Arc;

use super::super::app::App;
use super::super::message::AppCommand;
use crate::domain::Scope;
use crate::runner::ScopeFingerprints;

/// Milliseconds from a look to the next one that a key or a click asks for.
const MIN_PAUSE_MS: i64 = 2_000;
/// The pause is at least this many times as long as the last look, so that looks take at most a twentieth of the time of
/// one processor, however large the repository is.
const PAUSE_PER_LOOK: i64 = 20;

/// Most runs whose scopes are looked at, the newest: a key waits for going through them. Older runs are about other
/// commits, nearly always.
const MAX_RUNS: usize = 500;

/// Looks at the code of runs: whether one is under way, and when the last one was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodeLooks {
    is_under_way: bool,
    /// Something has happened since the look that is under way has begun.
    is_outdated: bool,
    /// End of the last look in milliseconds since 1970, and how long it took.
    last: Option<(i64, i64)>,
}

/// Looks after a key or a click, unless somebody has looked a moment ago.
pub fn look_after_input(app: &mut App, commands: &mut Vec<AppCommand>) {
    let is_due = app
        .code_looks
        .last
        .is_none_or(|(at, took)| app.now.saturating_sub(at) >= took.saturating_mul(PAUSE_PER_LOOK).max(MIN_PAUSE_MS));
    if is_due && !app.code_looks.is_under_way {
        look(app, commands);
    }
}

/// Looks at once, or again after the look that is under way.
pub fn look(app: &mut App, commands: &mut Vec<AppCommand>) {
    if app.code_looks.is_under_way {
        app.code_looks.is_outdated = true;
        return;
    }
    let scopes = list_moving_scopes(app);
    if !scopes.is_empty() {
        app.code_looks.is_under_way = true;
        app.code_looks.is_outdated = false;
        commands.push(AppCommand::CompareScopes { epoch: app.store.freshness.epoch(), scopes });
    }
}

/// Takes in what a look has found. If git could not tell, the runs stay what they are.
pub fn apply_look(
    app: &mut App,
    result: Result<ScopeFingerprints, String>,
    took_ms: i64,
    commands: &mut Vec<AppCommand>,
) {
    app.code_looks = CodeLooks { last: Some((app.now, took_ms)), is_under_way: false, ..app.code_looks };
    match result {
        Ok(seen) => Arc::make_mut(&mut app.store.freshness).observe(&seen),
        Err(error) => tracing::warn!(error, "the worktree cannot be looked at"),
    }
    if std::mem::take(&mut app.code_looks.is_outdated) {
        look(app, commands);
    }
}

/// Returns the scopes of the newest runs that change with the worktree or the index.
fn list_moving_scopes(app: &App) -> Vec<Scope> {
    let mut scopes = [Scope::Worktree, Scope::Staged, Scope::All].map(|scope| (scope.to_string(), false, scope));
    for run in (0..app.store.view.run_count().min(MAX_RUNS)).map(|index| app.store.view.run(index)) {
        for (text, is_reviewed, _) in &mut scopes {
            *is_reviewed |= run.scope == text && !run.diff_fingerprint.is_empty();
        }
    }
    scopes.into_iter().filter(|(_, is_reviewed, _)| *is_reviewed).map(|(.., scope)| scope).collect()
}
