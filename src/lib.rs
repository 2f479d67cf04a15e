//! revdeck: a review cockpit for the terminal.
//!
//! revdeck reviews code changes in the background, keeps what the reviews found as durable records, and shows all
//! of it on one keyboard-driven screen. One package, one binary, no daemon.
//!
//! # Overview
//!
//! A *request* names a scope: uncommitted changes, a commit, a branch. The scope is frozen as a *snapshot*, an immutable
//! git tree, without touching the user's index or files. `policy` decides, and writes its reason down: launch a run,
//! adopt a live equivalent run, reuse a completed run, or skip. A launched run is one line in the store and one detached
//! `revdeck worker` process that holds the run's lock for its life. The worker drives the engine in `review`; it records
//! each report of the reviewer durably before the next step. The cockpit, the command line and the ledger only read the
//! store and write requests and dispositions.
//!
//! A *panel* is several reviewers of one snapshot. Each member is such a run of its own; the panel's run waits for them and
//! merges what they found into one list.
//!
//! ```text
//! key or command ─► runner::Launcher ─► git: snapshot ─► policy::decide ─► store: append the run
//!                                                      └► spawn `revdeck worker RUN` (detached, holds the lock)
//! worker: engine.handle(event) ─► effects ─► reviewer, model or tools ─► event ─► engine … ─► journal ─► output ─► record
//! store ─► tail ─► cockpit redraws            store ─► ledger::project ─► cli
//! ```
//!
//! # Code map
//!
//! Imports go downward only; `tests/it/rooms.rs` holds the code against this table.
//!
//! | room | for |
//! |---|---|
//! | [`cli`] | arguments, one file per command, errors as messages and exit codes; the composition root |
//! | [`tui`] | the cockpit: state, messages, update, keymap, theme, and views: a full-screen view is one file and one line of `tui::views::VIEWS` |
//! | `mcp` | server for coding assistants over the Model Context Protocol: the reads and requests of the command line as tools and resources |
//! | `lsp` | server for editors over the Language Server Protocol: findings as diagnostics, fixes and decisions as code actions |
//! | [`publish`] | findings as comments of pull requests (GitHub) and merge requests (GitLab): plan, texts, hosts |
//! | [`report`] | findings and figures as text, JSON and Markdown; findings as SARIF, GitHub and GitLab annotations, rdjsonl, JUnit, quickfix |
//! | [`assistants`] | hooks, MCP entries and status lines in the settings of coding assistants; input and output of their hooks |
//! | `eval` | cargo feature `eval`, not in what users install; measurements: retrieval and learned patterns on real commits, replay of a repository as a coding session; fits the weights of retrieval |
//! | [`runner`] | processes: request, start, adopt, cancel, recover, watch, fix; executes the engines' effects |
//! | [`review`] | the engines: pure state machines from events to effects, one for the analyzer, one for models; extraction and validation of reports |
//! | [`policy`] | pure decisions: launch, adopt, reuse, resume, skip, supersede; freshness; lifecycle of findings |
//! | [`ledger`] | pure projection: records in, a bounded ledger out; metrics of cost and benefit |
//! | `team` | exchange between machines: records as bytes, what may leave, logs in refs of a git remote or in PostgreSQL |
//! | [`context`] | query, rank, select, pack under a token budget; tools and guidelines for models |
//! | [`index`] | repository index and content-addressed caches |
//! | [`knowledge`] | learned patterns: abstraction, storage, matching, export and import; no line of anybody's code |
//! | [`masking`] | secrets in code and paths replaced before a model, an index or a screen gets the text |
//! | [`reviewers`] | who reads the code: the analyzer with its eleven smells, models over HTTP, command-line agents |
//! | [`secrets`] | detection of secrets in texts: rules as data, names, entropy |
//! | [`syntax`] | languages, parsing under limits, metrics of functions and classes, facts about files |
//! | [`tokens`] | token counts by encoding |
//! | [`tool_reports`] | reports of other tools (SARIF, rdjsonl, checkstyle) as plain data |
//! | [`git`] | repository identity, snapshots, scopes, hunks, line mapping |
//! | [`store`] | append-only journals, sidecars, locks, tailing, verify and repair |
//! | [`config`] | layered settings, folders, clock and ids |
//! | [`parallel`] | work on several threads at once, on one shared pool |
//! | [`domain`] | plain data: ids, runs, findings, events |
//!
//! # Entry points
//!
//! `main` calls [`cli`], which opens the cockpit in [`tui`] or runs one command. Six commands are processes that
//! revdeck starts itself:
//!
//! | command | process |
//! |---|---|
//! | `revdeck worker RUN` | reviews one run; ends in [`runner::Services::worker`] |
//! | `revdeck watch` | requests reviews when the code moves; see [`runner::RepoWatcher`] |
//! | `revdeck fixer FIX` | makes a patch for findings |
//! | `revdeck asker FINDING` | sends the user's question about a finding to a model, and stores the answer |
//! | `revdeck indexer COMMIT` | reads a tree into the index |
//! | `revdeck keep` | supervises a command-line agent; see [`reviewers::command::supervisor`] |
//!
//! # Invariants
//!
//! - The store is the only channel between processes. Closing the cockpit ends nothing.
//! - Lines are appended and never rewritten in place. A line that carries a finding or a change of state is synced before
//!   the call returns. A worker killed at any instant loses no recorded finding.
//! - A terminal status never changes. No finding is dropped: it is open, unresolved, addressed, dismissed or obsolete,
//!   and says why. A finding that is held back is stored with the reason. Only a person, or a run that covered the code,
//!   changes a status; a claim and its confirmation are two lines.
//! - The user's index, worktree, HEAD, stash and reflog are never touched, and after the snapshot nothing is read from the
//!   moving worktree. There are three exceptions: a person applies or undoes the patch of a fix (see [`runner::fixer`]),
//!   a test coverage report counts for files that still stand in the worktree as in the snapshot (see
//!   [`context::test_coverage`]), and the diff of the cockpit shows files that were too large for the snapshot as long as
//!   nobody has touched them since the review.
//! - `review`, `policy` and `ledger` see `domain` only: no IO, no clock, no randomness; time and ids arrive in values.
//! - Freshness is never computed from elapsed time.
//! - A model's answer is in the journal, whole, before anything is derived from it: a restart replays the recorded answers
//!   through a fresh engine and sends the next unpaid request. Findings are extracted from every answer before the window
//!   slides, and no request exceeds the window.
//! - Everything that is sent to a model comes from the snapshot, masked. Everything that a model says is validated against
//!   the snapshot before it is shown.
//! - Text from code, file names and models is data: [`domain::text`] makes it harmless before a terminal sees it.

#![warn(missing_docs)]

// Tests, benches and examples share helpers that name this crate `revdeck`.
#[cfg(test)]
extern crate self as revdeck;

mod assistants;
pub mod cli;
pub mod config;
pub mod context;
pub mod domain;
#[cfg(feature = "eval")]
pub mod eval;
pub mod git;
pub mod index;
pub mod knowledge;
mod ledger;
mod lsp;
pub mod masking;
mod mcp;
pub mod parallel;
pub mod policy;
mod publish;
mod report;
pub mod review;
pub mod reviewers;
pub mod runner;
pub mod secrets;
pub mod store;
pub mod syntax;
pub mod team;
pub mod tokens;
mod tool_reports;
pub mod tui;
