//! The command line as types; help, man pages and completions are generated from here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    cancel, completions, config, context, context_eval, details, doctor, findings, fix, fixer, fixes, hook, indexer,
    keep, knowledge, ledger, man, mute, pause, replay, resume, review, reviewers, runs, show, smells, snooze, stats,
    store, tokens, triage, undo, watch, worker,
};

/// What `--help` and the man page say at their end.
pub const AFTER_HELP: &str = "\
Exit codes:
    0  done
    1  `review --wait` found something at or above --fail-on
    2  wrong use or configuration, or not in a git repository
    3  the run (or what was asked for) did not complete: never to be read as \"clean\"
  130  interrupted; a review that was being waited for goes on

Ids of runs and findings may be shortened to any prefix that only one of them has; `latest` is the newest run.

Environment:
    REVDECK_HOME       one folder for settings, state, caches and logs, instead of the platform's folders
    REVDECK_<SETTING>  any setting of `revdeck config show`, in capitals with _ for dots: REVDECK_MAX_PARALLEL_RUNS
    REVDECK_LOG        error, warn, info, debug or trace: write a log file into the logs folder
    NO_COLOR           no colours unless --color always";

/// The arguments.
#[derive(Debug, Parser)]
#[command(
    name = "revdeck",
    version,
    about = "A review cockpit for the terminal",
    long_about = "A review cockpit for the terminal: reviews code changes in the background, keeps what was found, and \
                  lets you decide about it from the keyboard.\n\nWithout a command it opens the cockpit; without a \
                  terminal it prints a summary.",
    after_help = AFTER_HELP,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<CliCommand>,
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
pub struct GlobalArgs {
    /// Work as if started in this folder
    #[arg(short = 'C', long, global = true, value_name = "FOLDER")]
    pub directory: Option<PathBuf>,
    /// When to print in colour
    #[arg(long, global = true, value_name = "WHEN")]
    pub color: Option<ColorWhen>,
    /// Only ASCII characters for frames and glyphs
    #[arg(long, global = true)]
    pub ascii: bool,
    /// The cockpit's colours: auto or the name of a theme
    #[arg(long, global = true, value_name = "NAME")]
    pub theme: Option<String>,
    /// Learn nothing from what this command does, as with learning.enabled = false
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

/// Formats of commands that print findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    #[default]
    Text,
    Json,
    Markdown,
}

/// Formats of everything else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    #[default]
    Text,
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Review a change in the background, or wait for the result
    Review(review::ReviewArgs),
    /// List the runs of this repository, newest first
    Runs(runs::RunsArgs),
    /// List the findings of this repository
    Findings(findings::FindingsArgs),
    /// Show one run or one finding with its history
    Show(show::ShowArgs),
    /// Everything about a run or a finding, up to a number of bytes
    Details(details::DetailsArgs),
    /// Decide about findings
    Triage(triage::TriageArgs),
    /// Take back the last decision; that to apply a fix goes back with what it wrote
    Undo(undo::UndoArgs),
    /// Make the decision again that was taken back last
    Redo(undo::RedoArgs),
    /// Make a patch for findings, and apply, undo or drop it
    Fix(fix::FixArgs),
    /// List the fixes of this repository, newest first
    Fixes(fixes::FixesArgs),
    /// Hold findings of a kind back from now on; without a kind, what is muted
    Mute(mute::MuteArgs),
    /// Have findings of a kind raised again
    Unmute(mute::UnmuteArgs),
    /// End a run
    Cancel(cancel::CancelArgs),
    /// Stop a run for a while: it asks its model for nothing until it is resumed
    Pause(pause::PauseArgs),
    /// Let a paused run go on
    Resume(resume::ResumeArgs),
    /// Review what changes as it changes, until it is told to end
    Watch(watch::WatchArgs),
    /// Begin no review unasked for a while
    Snooze(snooze::SnoozeArgs),
    /// What a coding assistant receives about the reviews at each of its turns
    Ledger(ledger::LedgerArgs),
    /// What reviews did, what they cost, and what became of their findings
    Stats(stats::StatsArgs),
    /// What reviews have taught: list, show, share, forget
    Knowledge(knowledge::KnowledgeArgs),
    /// What a review would send of the code around a change
    Context(context::ContextArgs),
    /// How well the code around changes is found, on a repository's own commits
    ContextEval(context_eval::ContextEvalArgs),
    /// Look for smells in files or folders, without a repository
    Smells(smells::SmellsArgs),
    /// The store of this repository: where it is, whether it is sound
    Store(store::StoreArgs),
    /// Have every commit reviewed, by a hook of git
    Hook(hook::HookArgs),
    /// The settings: what they are, where they come from, where they stand
    Config(config::ConfigArgs),
    /// Who can review, and whether it answers
    Reviewers(reviewers::ReviewersArgs),
    /// Count the tokens of files
    Tokens(tokens::TokensArgs),
    /// Play the last commits of a repository as a coding session and measure what the harness saves
    Replay(replay::ReplayArgs),
    /// Check that everything revdeck needs is there
    Doctor(doctor::DoctorArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write all of them into a folder
    Man(man::ManArgs),
    /// Execute one run (started by revdeck itself)
    #[command(hide = true)]
    Worker(worker::WorkerArgs),
    /// Make one fix (started by revdeck itself)
    #[command(hide = true)]
    Fixer(fixer::FixerArgs),
    /// Index a repository (started by revdeck itself)
    #[command(hide = true)]
    Indexer(indexer::IndexerArgs),
    /// Run a program that reviews, for a worker (started by revdeck itself)
    #[command(hide = true)]
    Keep(keep::KeepArgs),
}
