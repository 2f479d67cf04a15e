//! `revdeck store`: where the store of this repository is, whether it is sound, and how to make it smaller.

use clap::{Args, Subcommand};
use serde_json::json;

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use super::session::{Invocation, Session};
use crate::config::Texts;
use crate::domain::SCHEMA_VERSION;
use crate::domain::text::{count, one_line};
use crate::report::json;
use crate::runner::{Cleared, Keep};
use crate::store::{Report, Store};

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
        /// Only runs that have not changed for so long, as in 90d, 12w or 1y; with --keep both must hold. With neither,
        /// [retention] of the settings says what is old
        #[arg(long, value_name = "AGE", alias = "keep-days", value_parser = parse_days)]
        older_than: Option<u32>,
        /// Keep this many of the newest runs
        #[arg(long, value_name = "N", alias = "keep-runs")]
        keep: Option<usize>,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    let session = invocation.reading_session(Texts::None)?;
    match &arguments.command {
        Command::Path => {
            output::print(&format!("{}\n", output::path(session.store.root())))?;
            Ok(Exit::Done)
        }
        Command::Verify { format } => report(&session.store, &session.store.verify()?, *format),
        Command::Repair { format } => report(&session.store, &session.store.repair()?, *format),
        Command::Prune { older_than, keep, dry_run, format } => {
            let keep = match (older_than, keep) {
                (None, None) => Keep::from(session.loaded.settings.retention),
                (days, runs) => Keep { days: *days, runs: *runs },
            };
            prune(session, keep, *dry_run, *format)
        }
    }
}

/// What a store of a newer schema means for this revdeck.
pub fn read_only(schema: u32) -> String {
    format!(
        "a newer revdeck made this store (schema {schema}, this one knows {SCHEMA_VERSION}): it can be read, not written"
    )
}

fn report(store: &Store, report: &Report, format: PlainFormat) -> Result<Exit, CliError> {
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
                ("newer_schema", json!(store.newer_schema())),
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
            if let Some(schema) = store.newer_schema() {
                text.push_str(&format!("{}\n", read_only(schema)));
            }
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

/// An age in days.
fn parse_days(text: &str) -> Result<u32, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let days = match unit {
        "" | "d" => 1,
        "w" => 7,
        "y" => 365,
        _ => return Err("write a number with d, w or y, as in 90d".to_owned()),
    };
    let days = number.parse::<u32>().ok().and_then(|number| number.checked_mul(days));
    days.ok_or_else(|| "write a number with d, w or y, as in 90d".to_owned())
}

/// Bytes for a person.
fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["bytes", "kB", "MB"] {
        if size < 1000.0 {
            return if unit == "bytes" { count(bytes as usize, "byte") } else { format!("{size:.1} {unit}") };
        }
        size /= 1000.0;
    }
    format!("{size:.1} GB")
}

fn prune(session: Session, keep: Keep, dry_run: bool, format: PlainFormat) -> Result<Exit, CliError> {
    let (runner, _) = session.into_runner();
    let cleared = runner.prune(keep, dry_run)?;
    let Cleared { pruned, snapshots, held, worktrees } = &cleared;
    let left = runner.store.bytes();
    match format {
        PlainFormat::Json => output::print_json(&json::versioned([
            ("dry_run", json!(dry_run)),
            ("journals", json!(pruned.journals)),
            ("lines", json!(pruned.lines)),
            ("bytes", json!(pruned.bytes)),
            ("snapshots", json!(snapshots)),
            ("snapshots_held", json!(held)),
            ("worktrees", json!(worktrees)),
            ("store_bytes", json!(left)),
        ]))?,
        PlainFormat::Text => {
            let mut said = format!(
                "{} {}, {}, {}, {}: {}\n",
                if dry_run { "would remove" } else { "removed" },
                count(pruned.journals, "journal"),
                count(pruned.lines, "replaced line"),
                count(snapshots.len(), "snapshot"),
                count(*worktrees, "leftover worktree"),
                size(pruned.bytes)
            );
            if *held > 0 {
                said.push_str(&format!(
                    "kept {} of old runs: findings stand in their code\n",
                    count(*held, "snapshot")
                ));
            }
            said.push_str(&format!("the store has {}\n", size(left)));
            output::print(&said)?;
        }
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_are_for_people() {
        for (text, days) in [("90d", Some(90)), ("12w", Some(84)), ("2y", Some(730)), ("7", Some(7)), ("0d", Some(0))] {
            assert_eq!(parse_days(text).ok(), days, "{text}");
        }
        for text in ["", "d", "-1d", "1h", "90 d", "99999999999", "4294967295w"] {
            assert!(parse_days(text).is_err(), "{text}");
        }
        for (bytes, text) in
            [(0, "0 bytes"), (1, "1 byte"), (1500, "1.5 kB"), (2_340_000, "2.3 MB"), (5_000_000_000, "5.0 GB")]
        {
            assert_eq!(size(bytes), text);
        }
    }
}
