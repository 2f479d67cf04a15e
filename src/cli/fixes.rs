//! `revdeck fixes`: lists the fixes of this repository, newest first.

use clap::Args;
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::output;
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::{Fix, FixStatus, SCHEMA_VERSION, text};
use crate::store::StoreView;

/// Arguments of `fixes`.
#[derive(Debug, Args)]
pub struct FixesArgs {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: PlainFormat,
}

/// Runs `revdeck fixes`.
///
/// # Errors
///
/// Returns an error if the store cannot be read.
pub fn run(invocation: &Invocation, arguments: &FixesArgs) -> Result<CliExitCode, CliError> {
    let (services, _) = invocation.open_reading_session(RequiredAssets::Smells)?.into_runner();
    // Fixes whose worker has died must not be listed as in progress. A read-only store is listed unchanged.
    let _ = services.fixer().reconcile_fixes();
    let fixes = services.store.fixes()?;
    if arguments.format == PlainFormat::Json {
        output::print_json(&json!({ "version": SCHEMA_VERSION, "fixes": fixes }))?;
        return Ok(CliExitCode::Done);
    }
    let mut said = String::new();
    let view = services.store.view()?;
    for fix in &fixes {
        said.push_str(&format_line(fix, &view));
        said.push('\n');
    }
    if fixes.is_empty() {
        said.push_str("no fixes yet: `revdeck fix FINDING` makes one\n");
    }
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

/// Formats a fix on one line without control characters.
pub fn format_line(fix: &Fix, view: &StoreView) -> String {
    let mut parts = vec![format!("{}, by {}", describe_target(fix, view), fix.reviewer)];
    if !fix.files.is_empty() {
        parts.push(fix.format_diff_stat());
    }
    if !fix.verdict.is_empty() {
        parts.push(format!("review of the fix: {}", fix.verdict));
    }
    if fix.is_half_applied() {
        parts.push("half applied: `fix apply` finishes it, `fix undo` takes it back".to_owned());
    }
    if !fix.reason.is_empty() && matches!(fix.status, FixStatus::Failed | FixStatus::Offered) {
        parts.push(fix.reason.clone());
    }
    text::sanitize_line(&format!("{}  {:<9}  {}", fix.fix_id, fix.status, parts.join("; "))).into_owned()
}

/// Describes the findings of a fix: the first one with its file, and the number of others.
fn describe_target(fix: &Fix, view: &StoreView) -> String {
    let mut fixed = fix.fixed_findings();
    let Some(first) = fixed.next() else { return "no finding".to_owned() };
    let said = match view.finding_index(first.as_str()) {
        Some(index) => {
            let finding = view.finding(index);
            format!("{} in {}", finding.title, finding.path)
        }
        None => first.to_string(),
    };
    match fixed.count() {
        0 => said,
        more => format!("{said} and {more} more"),
    }
}
