//! Command-line arguments as clap types. Help, man pages and shell completions are generated from this file.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    ask, asker, cancel, compare, completions, config, context, details, doctor, findings, fix, fixer, fixes, hook,
    import, indexer, keep, keys, knowledge, ledger, lsp, man, mcp, mute, pause, publish, repos, resume, review,
    reviewers, runs, show, smells, snooze, stats, status, store, sync, team, tokens, triage, undo, watch, worker,
};
#[cfg(feature = "eval")]
use super::{context_eval, fit_weights, replay};

/// Text at the end of `--help` and of the man page: ids, exit codes, environment variables.
pub const AFTER_HELP: &str = "\
Exit codes:
    0  done
    1  `review --wait` found a problem at or above --fail-on
    2  usage or configuration error, or not in a git repository
    3  the run or command did not complete: do not read this as \"no findings\"
  130  interrupted; the review itself continues

Ids of runs and findings may be shortened to a unique prefix; `latest` is the newest run.

Environment:
    REVDECK_HOME       single folder for settings, state, caches and logs (default: the platform's folders)
    REVDECK_<SETTING>  any key of `revdeck config show` in capitals, with _ for dots: REVDECK_MAX_PARALLEL_RUNS
    REVDECK_ACTOR      user, assistant or ci: who acts; else CI and CLAUDECODE tell.
                       An assistant claims fixes and asks for reviews; only the user decides
    REVDECK_GITHUB_TOKEN, REVDECK_GITLAB_TOKEN
                       tokens for `revdeck publish`; see its help for the addresses
    REVDECK_LOG        error, warn, info, debug or trace: write a log file to the logs folder
    NO_COLOR           disable colours, unless --color always is given";

/// The parsed command line.
#[derive(Debug, Default, Parser)]
#[command(
    name = "revdeck",
    version,
    about = "A review cockpit for the terminal",
    long_about = "A review cockpit for the terminal. It reviews code changes in the background, stores every finding \
                  and lets you triage the findings from the keyboard.\n\nWithout a command it opens the \
                  cockpit. Without a terminal it prints a summary.",
    after_help = AFTER_HELP,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<CliCommand>,
    /// List all repositories that revdeck knows, with what waits in each (same as `revdeck repos`)
    #[arg(long)]
    pub all_repos: bool,
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// Global flags: every command accepts them.
#[derive(Debug, Clone, Default, Args)]
pub struct GlobalArgs {
    /// Run as if revdeck had been started in this folder
    #[arg(short = 'C', long, global = true, value_name = "FOLDER")]
    pub directory: Option<PathBuf>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN")]
    pub color: Option<ColorWhen>,
    /// Draw frames and symbols with ASCII characters only
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Show the cockpit as lines of text for a screen reader
    #[arg(long, global = true)]
    pub plain: bool,
    /// Colour theme of the cockpit: auto or the name of a theme
    #[arg(long, global = true, value_name = "NAME")]
    pub theme: Option<String>,
    /// Do not learn patterns from this command (same as learning.enabled = false)
    #[arg(long, global = true)]
    pub no_learning: bool,
}

/// Values of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    Auto,
    Always,
    Never,
}

/// Output formats of commands that do not print findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    #[default]
    Text,
    Json,
}

/// Subcommands of `revdeck`.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Review a change in the background, or wait for the result
    Review(review::ReviewArgs),
    /// List runs of this repository, newest first
    Runs(runs::RunsArgs),
    /// List findings of this repository, most urgent first
    Findings(findings::FindingsArgs),
    /// Show a run with its findings, or a finding with its history
    Show(show::ShowArgs),
    /// Show all details of a run or a finding, limited in bytes
    Details(details::DetailsArgs),
    /// Set the status of findings
    Triage(triage::TriageArgs),
    /// Undo the last decision; undoing an applied fix also restores its files
    Undo(undo::UndoArgs),
    /// Redo the decision that was undone last
    Redo(undo::RedoArgs),
    /// Create a patch for findings; show, apply, undo or drop it
    Fix(fix::FixArgs),
    /// List fixes of this repository, newest first
    Fixes(fixes::FixesArgs),
    /// Ask the reviewer of a finding a question; the answer becomes part of its history
    Ask(ask::AskArgs),
    /// Mute kinds of findings in future reviews; without a kind, list muted kinds
    Mute(mute::MuteArgs),
    /// Unmute kinds of findings
    Unmute(mute::UnmuteArgs),
    /// Cancel a run
    Cancel(cancel::CancelArgs),
    /// Pause a run: it sends no request to its model until it is resumed
    Pause(pause::PauseArgs),
    /// Resume a paused run
    Resume(resume::ResumeArgs),
    /// Review changes automatically until stopped
    Watch(watch::WatchArgs),
    /// Pause automatic reviews
    Snooze(snooze::SnoozeArgs),
    /// Print the state of the reviews in a few words, for status lines
    Status(status::StatusArgs),
    /// List all repositories that revdeck knows, with what waits in each
    Repos(repos::ReposArgs),
    /// Print the review summary that a coding assistant receives at each turn
    Ledger(ledger::LedgerArgs),
    /// Serve coding assistants over the Model Context Protocol (started by the assistant)
    Mcp(mcp::McpArgs),
    /// Show findings in editors over the Language Server Protocol (started by the editor)
    Lsp(lsp::LspArgs),
    /// Show what reviews found, cost and saved, and how precise they were
    Stats(stats::StatsArgs),
    /// Compare two reviews of one change: what both found, what one of them found, and what they cost
    Compare(compare::CompareArgs),
    /// Manage learned patterns
    Knowledge(knowledge::KnowledgeArgs),
    /// Show what a review would send to a model
    Context(context::ContextArgs),
    /// Measure on past commits how well related code is found
    #[cfg(feature = "eval")]
    ContextEval(context_eval::ContextEvalArgs),
    /// Fit the weights of retrieval to past commits
    #[cfg(feature = "eval")]
    FitWeights(fit_weights::FitWeightsArgs),
    /// Find code smells in files or folders, without a repository
    Smells(smells::SmellsArgs),
    /// Locate, verify, repair or prune the store of this repository
    Store(store::StoreArgs),
    /// Import the findings of another tool, such as a linter
    Import(import::ImportArgs),
    /// Publish findings as comments of a pull request or merge request
    Publish(publish::PublishArgs),
    /// Join a team and show its machines; decisions and reviews of a team are shared by `sync`
    Team(team::TeamArgs),
    /// Exchange decisions and reviews with the team
    Sync(sync::SyncArgs),
    /// Manage the git hook that reviews every commit
    Hook(hook::HookArgs),
    /// Show settings, their origins and the locations of their files
    Config(config::ConfigArgs),
    /// Print the keys of the cockpit, with the file that binds each
    Keys(keys::KeysArgs),
    /// List, test and discover reviewers
    Reviewers(reviewers::ReviewersArgs),
    /// Count the tokens of files
    Tokens(tokens::TokensArgs),
    /// Replay past commits as a coding session and measure the tokens saved
    #[cfg(feature = "eval")]
    Replay(replay::ReplayArgs),
    /// Check settings, folders, repository, terminal and reviewers
    Doctor(doctor::DoctorArgs),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write all manual pages to a folder
    Man(man::ManArgs),
    /// Execute one run (started by revdeck itself)
    #[command(hide = true)]
    Worker(worker::WorkerArgs),
    /// Create one fix (started by revdeck itself)
    #[command(hide = true)]
    Fixer(fixer::FixerArgs),
    /// Ask one question (started by revdeck itself)
    #[command(hide = true)]
    Asker(asker::AskerArgs),
    /// Index one commit (started by revdeck itself)
    #[command(hide = true)]
    Indexer(indexer::IndexerArgs),
    /// Run a review program on behalf of a worker (started by revdeck itself)
    #[command(hide = true)]
    Keep(keep::KeepArgs),
}
