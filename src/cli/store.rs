//! `revdeck store`: locates, verifies, repairs and prunes the store of this repository.

use clap::{Args, Subcommand};
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::{Invocation, Session};
use crate::config::RequiredAssets;
use crate::domain::SCHEMA_VERSION;
use crate::domain::text::{format_count, sanitize_line};
use crate::report::json;
use crate::runner::{RetentionLimits, RetentionReport};
use crate::store::{Store, StoreCheckReport};

/// Arguments of `store`.
#[derive(Debug, Args)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Print the path of the store
    Path,
    /// Check all files and report problems; exits with 3 if there are any
    Verify {
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Repair problems; unreadable lines are moved to a file beside the original
    Repair {
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
    /// Remove journals and snapshots of old runs; findings, results and decisions stay
    Prune {
        /// Prune runs unchanged for this long: 90d, 12w, 1y. With --keep, both conditions must hold; without either
        /// flag, [retention] in the settings applies
        #[arg(long, value_name = "AGE", alias = "keep-days", value_parser = parse_days)]
        older_than: Option<u32>,
        /// Keep this many of the newest runs
        #[arg(long, value_name = "N", alias = "keep-runs")]
        keep: Option<usize>,
        /// Print what would be removed without removing it
        #[arg(long)]
        dry_run: bool,
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: PlainFormat,
    },
}

/// Runs `revdeck store`. Exits with 3 if problems remain.
///
/// # Errors
///
/// Returns an error outside of a repository, or if a file cannot be read or written.
pub fn run(invocation: &Invocation, arguments: &StoreArgs) -> Result<CliExitCode, CliError> {
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    match &arguments.command {
        StoreCommand::Path => {
            output::print(&format!("{}\n", output::format_path(session.store.root())))?;
            Ok(CliExitCode::Done)
        }
        StoreCommand::Verify { format } => print_report(&session.store, &session.store.verify()?, *format),
        StoreCommand::Repair { format } => print_report(&session.store, &session.store.repair()?, *format),
        StoreCommand::Prune { older_than, keep, dry_run, format } => {
            let keep = match (older_than, keep) {
                (None, None) => RetentionLimits::from(session.loaded.settings.retention),
                (days, runs) => RetentionLimits { days: *days, runs: *runs },
            };
            prune(session, keep, *dry_run, *format)
        }
    }
}

/// Formats the message for a store with a newer schema, which can be read but not written.
pub fn describe_read_only(schema: u32) -> String {
    format!(
        "a newer revdeck made this store (schema {schema}, this one knows {SCHEMA_VERSION}): it can be read, not written"
    )
}

fn print_report(store: &Store, report: &StoreCheckReport, format: PlainFormat) -> Result<CliExitCode, CliError> {
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
            output::print_json(&json::build_versioned([
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
                text.push_str(&format!("{}\n", sanitize_line(&problem.to_string())));
            }
            let left = report.problems.iter().filter(|problem| !problem.repaired).count();
            let verdict = match (left, report.problems.len()) {
                (0, 0) => "the store is sound".to_owned(),
                (0, repaired) => format!("{} repaired, the store is sound", format_count(repaired, "problem")),
                (left, _) => {
                    format!("{} (`revdeck store repair` sets right what it can)", format_count(left, "problem"))
                }
            };
            let newer = match report.newer_lines {
                0 => String::new(),
                lines => format!(", {} of a newer revdeck", format_count(lines, "line")),
            };
            if let Some(schema) = store.newer_schema() {
                text.push_str(&format!("{}\n", describe_read_only(schema)));
            }
            text.push_str(&format!(
                "{verdict}: {}, {}{newer}\n",
                format_count(report.files, "file"),
                format_count(report.lines, "line")
            ));
            output::print(&text)?;
        }
    }
    Ok(if report.is_clean() { CliExitCode::Done } else { CliExitCode::Incomplete })
}

/// Parses an age such as `90d`, `12w` or `1y`. Returns days.
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

/// Formats a size in bytes with a decimal unit.
fn format_size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["bytes", "kB", "MB"] {
        if size < 1000.0 {
            return if unit == "bytes" { format_count(bytes as usize, "byte") } else { format!("{size:.1} {unit}") };
        }
        size /= 1000.0;
    }
    format!("{size:.1} GB")
}

fn prune(session: Session, keep: RetentionLimits, dry_run: bool, format: PlainFormat) -> Result<CliExitCode, CliError> {
    let (services, _) = session.into_runner();
    let cleared = services.recovery().prune(keep, dry_run)?;
    let RetentionReport { pruned, snapshots, held, worktrees } = &cleared;
    let left = services.store.total_bytes();
    match format {
        PlainFormat::Json => output::print_json(&json::build_versioned([
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
                format_count(pruned.journals, "journal"),
                format_count(pruned.lines, "replaced line"),
                format_count(snapshots.len(), "snapshot"),
                format_count(*worktrees, "leftover worktree"),
                format_size(pruned.bytes)
            );
            if *held > 0 {
                said.push_str(&format!(
                    "kept {} of old runs: findings stand in their code\n",
                    format_count(*held, "snapshot")
                ));
            }
            said.push_str(&format!("the store has {}\n", format_size(left)));
            output::print(&said)?;
        }
    }
    Ok(CliExitCode::Done)
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
            assert_eq!(format_size(bytes), text);
        }
    }
}
