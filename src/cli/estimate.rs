//! Prints the forecast of a review: before it starts, and for `revdeck review --estimate` instead of it.

use super::error::{CliError, CliExitCode};
use super::output;
use crate::domain::text::sanitize_line;
use crate::report::forecast::{describe_costs, describe_decision, describe_size, encode_forecast, list_request_notes};
use crate::report::{OutputFormat, json};
use crate::runner::RequestPreview;

/// Prints to standard error what the review will probably cost and may cost at most, and what no limit can count. Prints
/// nothing if nothing starts.
pub fn announce_costs(preview: &RequestPreview) {
    let costs = describe_costs(preview).map(|costs| format!("forecast: {costs}"));
    let notes = list_request_notes(preview).into_iter().map(|note| format!("note: {note}"));
    for line in costs.into_iter().chain(notes) {
        output::print_note(&sanitize_line(&line));
    }
}

/// Prints a forecast: the size of the change, the decision, the costs, what no limit can count, and who has no key.
///
/// # Errors
///
/// Returns an error if standard output cannot be written.
pub fn print_estimate(preview: &RequestPreview, format: OutputFormat) -> Result<CliExitCode, CliError> {
    if format == OutputFormat::Json {
        output::print_json(&json::build_versioned([("forecast", encode_forecast(preview))]))?;
        return Ok(CliExitCode::Done);
    }
    let size = describe_size(&preview.scope.to_string(), preview);
    let decision = describe_decision(&preview.decision, ToString::to_string);
    let lines = [size, decision].into_iter().chain(describe_costs(preview)).chain(list_request_notes(preview));
    let lines: String = lines.map(|line| format!("{}\n", sanitize_line(&line))).collect();
    output::print(&lines)?;
    Ok(CliExitCode::Done)
}
