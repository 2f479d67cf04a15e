//! The tools, one file each.

mod claim_addressed;
mod details;
mod dispute;
mod ledger;
mod list_findings;
mod list_runs;
mod request_cancel;
mod request_review;
mod review_status;

use super::tool::ToolDefinition;

pub(super) use details::{DetailsSubject, build_details};
pub(super) use ledger::compose_for_client;
pub(super) use list_findings::{FindingSelection, is_at_or_below, list_findings, parse_folder};
pub(super) use list_runs::{RunSelection, list_runs};

/// All tools, in the order in which clients list them.
pub const TOOLS: [&ToolDefinition; 9] = [
    &ledger::TOOL,
    &details::TOOL,
    &list_findings::TOOL,
    &list_runs::TOOL,
    &review_status::TOOL,
    &request_review::TOOL,
    &claim_addressed::TOOL,
    &dispute::TOOL,
    &request_cancel::TOOL,
];
