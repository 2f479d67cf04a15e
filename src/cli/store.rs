//! `revdeck store`: where the store of this repository is, whether it is sound, and how to make it smaller.

use clap::{Args, Subcommand};
use serde_json::json;

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use super::session::{Invocation, Session};
use crate::config::Texts;
use crate::domain::text::{count, one_line};
use crate::report::json;
use crate::store::{Pruned, Report};

/// Arguments of `store`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the folder of the store
    Path,
    /// Read everything and say what is wrong; exits with 3 when something is
    Verify {
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Set right what can be set right; what cannot be read is kept beside its file
    Repair {
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Remove the journals and snapshots of old runs; findings, results and decisions stay
    Prune {
        /// Keep runs that changed within this many days
        #[arg(long, value_name = "DAYS", default_value_t = 30)]
        keep_days: u32,
        /// Keep this many of the newest runs whatever their age
        #[arg(long, value_name = "N", default_value_t = 100)]
        keep_runs: usize,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let session = invocation.session(Texts::None)?;
    match &arguments.command {
        Command::Path => {
            output::print(&format!("{}\n", output::path(session.store.root())))?;
            Ok(Exit::Done)
        }
        Command::Verify { format } => report(&session.store.verify()?, *format),
        Command::Repair { format } => report(&session.store.repair()?, *format),
        Command::Prune { keep_days, keep_runs, dry_run, format } => {
            prune(&session, *keep_days, *keep_runs, *dry_run, *format)
        }
    }
}

fn report(report: &Report, format: PlainFormat) -> Result<Exit, CliError> {
    match format {
        PlainFormat::Json => {
            let problems: Vec<_> = report
                .problems
                .iter()
                .map(|problem| {
                    json!({
                        "path": problem.path.to_string_lossy(),
                        "line": problem.line,
                        "what": problem.what,
                        "repair": problem.repair,
                        "repaired": problem.repaired,
                    })
                })
                .collect();
            output::print_json(&json::versioned([
                ("sound", json!(report.is_clean())),
                ("files", json!(report.files)),
                ("lines", json!(report.lines)),
                ("newer_lines", json!(report.newer_lines)),
                ("problems", problems.into()),
            ]))?;
        }
        PlainFormat::Text => {
            let mut text = String::new();
            for problem in &report.problems {
                text.push_str(&format!("{}\n", one_line(&problem.to_string())));
            }
            let left = report.problems.iter().filter(|problem| !problem.repaired).count();
            let verdict = match (left, report.problems.len()) {
                (0, 0) => "the store is sound".to_owned(),
                (0, repaired) => format!("{} repaired, the store is sound", count(repaired, "problem")),
                (left, _) => format!("{} (`revdeck store repair` sets right what it can)", count(left, "problem")),
            };
            let newer = match report.newer_lines {
                0 => String::new(),
                lines => format!(", {} of a newer revdeck", count(lines, "line")),
            };
            text.push_str(&format!(
                "{verdict}: {}, {}{newer}\n",
                count(report.files, "file"),
                count(report.lines, "line")
            ));
            output::print(&text)?;
        }
    }
    Ok(if report.is_clean() { Exit::Done } else { Exit::Incomplete })
}

fn prune(
    session: &Session,
    keep_days: u32,
    keep_runs: usize,
    dry_run: bool,
    format: PlainFormat,
) -> Result<Exit, CliError> {
    let pruned: Pruned = session.store.prune(Some(keep_days), Some(keep_runs), session.ambient.now(), dry_run)?;
    let kept = session.repo.kept()?;
    let released: Vec<_> = pruned.runs.iter().filter(|run| kept.contains(run)).collect();
    if !dry_run {
        for run in &released {
            session.repo.release(run)?;
        }
    }
    match format {
        PlainFormat::Json => output::print_json(&json::versioned([
            ("dry_run", json!(dry_run)),
            ("journals", json!(pruned.journals)),
            ("lines", json!(pruned.lines)),
            ("bytes", json!(pruned.bytes)),
            ("snapshots", json!(released)),
        ]))?,
        PlainFormat::Text => output::print(&format!(
            "{} {}, {}, {}, {} bytes\n",
            if dry_run { "would remove" } else { "removed" },
            count(pruned.journals, "journal"),
            count(pruned.lines, "replaced line"),
            count(released.len(), "snapshot"),
            pruned.bytes
        ))?,
    }
    Ok(Exit::Done)
}
