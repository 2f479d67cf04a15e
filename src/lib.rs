//! revdeck: a review cockpit for the terminal.
//!
//! revdeck reviews code changes in the background, keeps what the reviews found as durable records, and shows all
//! of it on one keyboard-driven screen. One package, one binary, no daemon.
//!
//! # Bird's eye
//!
//! A *request* names a scope (uncommitted changes, a commit, a branch …). The scope is frozen as a *snapshot*: an
//! immutable git tree, taken without touching the user's index or files. `policy` decides with its reason written
//! down: launch a run, adopt a live equivalent one, reuse a completed one, or skip. A launched run is one line in the
//! store and one detached `revdeck worker` that holds the run's lock for its life. The worker drives the engine in
//! `review`; each report of the reviewer is recorded durably before the next step. The cockpit, the command line and
//! the ledger only read the store and write requests and dispositions.
//!
//! ```text
//! key or command ─► runner::request ─► git: snapshot ─► policy::decide ─► store: append the run
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
//! | [`tui`] | the cockpit: state, messages, update, keymap, views, theme |
//! | [`report`] | findings and figures as text, JSON and Markdown |
//! | [`eval`] | measurements: retrieval and learned patterns on real commits, replay of a repository as a coding session |
//! | [`runner`] | processes: request, start, adopt, cancel, recover, watch, fix; executes the engines' effects |
//! | [`review`] | the engines: pure state machines from events to effects, one for the analyzer, one for models; extraction and validation of reports |
//! | [`policy`] | pure decisions: launch, adopt, reuse, resume, skip, supersede; freshness; lifecycle of findings |
//! | [`ledger`] | pure projection: records in, a bounded ledger out; metrics of cost and benefit |
//! | [`context`] | query, rank, select, pack under a token budget; tools and guidelines for models |
//! | [`index`] | repository index and content-addressed caches |
//! | [`knowledge`] | learned patterns: abstraction, storage, matching, export and import; no line of anybody's code |
//! | [`masking`] | secrets in code and paths replaced before a model, an index or a screen gets the text |
//! | [`reviewers`] | who reads the code: the analyzer with its eleven smells, models over HTTP, command-line agents |
//! | [`syntax`] | languages, parsing under limits, metrics of functions and classes, facts about files |
//! | [`tokens`] | token counts by encoding |
//! | [`git`] | repository identity, snapshots, scopes, hunks, line mapping |
//! | [`store`] | append-only journals, sidecars, locks, tailing, verify and repair |
//! | [`config`] | layered settings, folders, clock and ids |
//! | [`domain`] | plain data: ids, runs, findings, events |
//!
//! Entry points: `main` calls [`cli`]; `cli` opens the cockpit in [`tui`] or runs one command; `revdeck worker RUN` is
//! the third, and ends in [`runner::Runner::work`]; `revdeck watch` asks by itself, see [`runner::Watch`]; `revdeck fixer FIX` makes a patch for findings; `revdeck indexer COMMIT` reads a tree into the index; `revdeck keep` stands between a
//! worker and a program that reviews, see [`reviewers::command::supervisor`].
//!
//! # Invariants
//!
//! - The store is the only channel between processes. Closing the cockpit ends nothing.
//! - Lines are appended, never rewritten in place; what carries a finding or a change of state is synced before the
//!   call returns. A worker killed at any instant loses no recorded finding.
//! - A terminal status never changes. A finding is never dropped: it is open, unresolved, addressed, dismissed or
//!   obsolete, and says why. What is not raised is kept with the reason. A status changes by a person's word or by what a
//!   run saw of code that it covered; a claim and its confirmation are two lines.
//! - The user's index, worktree, HEAD, stash and reflog are never touched; after the snapshot nothing is read from
//!   the moving worktree. The exceptions: the patch of a fix, which a person has put into the files of the worktree or taken
//!   out again, see [`runner::resolve`], and reports of test coverage, which are believed of files that still stand there as
//!   in the snapshot, see [`context::covered`].
//! - `review`, `policy` and `ledger` see `domain` only: no IO, no clock, no randomness; time and ids arrive in values.
//! - Freshness is never computed from elapsed time.
//! - A model's answer is in the journal, whole, before anything is made of it: a restart replays the recorded answers
//!   through a fresh engine and asks for the next unpaid one. Findings are taken out of every answer before the window
//!   slides, and no request exceeds the window.
//! - What is sent to a model comes from the snapshot, masked; what it says is held against the snapshot before it is shown.
//! - Text from code, file names and models is data: [`domain::text`] makes it harmless before a terminal sees it.

// What tests share with benches and examples names the crate as these do.
#[cfg(test)]
extern crate self as revdeck;

pub mod cli;
pub mod config;
pub mod context;
pub mod domain;
pub mod eval;
pub mod git;
pub mod index;
pub mod knowledge;
pub mod ledger;
pub mod masking;
pub mod policy;
pub mod report;
pub mod review;
pub mod reviewers;
pub mod runner;
pub mod store;
pub mod syntax;
pub mod tokens;
pub mod tui;
