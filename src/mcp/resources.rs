//! Resources: ledger, runs and findings under addresses that a client can attach, read and subscribe to.

use std::fmt;
use std::str::FromStr;

use rmcp::model::{Resource, ResourceContents, ResourceTemplate};

use super::clean::{clean_text, cut_text};
use super::tools::{
    DetailsSubject, FindingSelection, RunSelection, build_details, compose_for_client, list_findings, list_runs,
};
use super::{OpenPurpose, RepositoryAccess, ToolFailure};
use crate::domain::{FindingId, RunId};
use crate::store::StoreView;

const SCHEME: &str = "revdeck://";
const JSON: &str = "application/json";
const XML: &str = "application/xml";
/// Maximum number of runs and of findings that are listed as resources of their own.
const MAX_LISTED_RUNS: usize = 10;
const MAX_LISTED_FINDINGS: usize = 50;
/// Maximum number of rows in the resources of all runs and all findings.
const MAX_RUN_ROWS: usize = 50;
const MAX_FINDING_ROWS: usize = 200;
/// Maximum size of a run or finding, in bytes; as the default of `auto_review_details`.
const MAX_DETAILS_BYTES: usize = 12_000;
/// Maximum length of the title of a resource, in bytes.
const MAX_TITLE_BYTES: usize = 120;

/// Address of a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceUri {
    /// The ledger.
    Ledger,
    /// The newest runs.
    Runs,
    /// The undecided findings.
    Findings,
    /// A run with its findings.
    Run(RunId),
    /// A finding.
    Finding(FindingId),
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledger => write!(f, "{SCHEME}ledger"),
            Self::Runs => write!(f, "{SCHEME}runs"),
            Self::Findings => write!(f, "{SCHEME}findings"),
            Self::Run(run) => write!(f, "{SCHEME}runs/{run}"),
            Self::Finding(finding) => write!(f, "{SCHEME}findings/{finding}"),
        }
    }
}

impl FromStr for ResourceUri {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "{:?} is no resource; there are {SCHEME}ledger, {SCHEME}runs, {SCHEME}findings, {SCHEME}runs/RUN and \
                 {SCHEME}findings/FINDING",
                cut_text(&clean_text(text), MAX_TITLE_BYTES)
            )
        };
        let path = text.strip_prefix(SCHEME).ok_or_else(unknown)?;
        match path.split_once('/') {
            None if path == "ledger" => Ok(Self::Ledger),
            None if path == "runs" => Ok(Self::Runs),
            None if path == "findings" => Ok(Self::Findings),
            Some(("runs", id)) => id.parse().map(Self::Run).map_err(|_| unknown()),
            Some(("findings", id)) => id.parse().map(Self::Finding).map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}

/// Returns the addresses of a view that are listed: fixed ones, the newest runs, the most urgent undecided findings.
pub fn list_uris(view: &StoreView) -> Vec<ResourceUri> {
    let mut uris = vec![ResourceUri::Ledger, ResourceUri::Runs, ResourceUri::Findings];
    let runs = (0..view.run_count()).take(MAX_LISTED_RUNS).filter_map(|index| view.run(index).id.parse().ok());
    uris.extend(runs.map(ResourceUri::Run));
    let mut findings: Vec<_> = (0..view.finding_count())
        .map(|index| (view.finding(index), index))
        .filter(|(row, _)| row.status.is_undecided())
        .map(|(row, index)| (row.priority, index))
        .collect();
    findings.sort_unstable();
    let findings = findings.into_iter().take(MAX_LISTED_FINDINGS);
    uris.extend(findings.filter_map(|(_, index)| view.finding(index).id.parse().ok()).map(ResourceUri::Finding));
    uris
}

/// Lists the resources. Without a repository these are the fixed ones, whose reading says what is wrong.
pub fn list_resources(access: &RepositoryAccess) -> Vec<Resource> {
    let view = access.open(OpenPurpose::Read).and_then(|services| Ok(services.store.view()?));
    let view = view.unwrap_or_default();
    list_uris(&view).iter().map(|uri| describe_resource(uri, &view)).collect()
}

/// Lists the addresses with a part that the client fills in.
pub fn list_templates() -> Vec<ResourceTemplate> {
    [
        ("runs/{run_id}", "run", "A review with its findings"),
        ("findings/{finding_id}", "finding", "A finding with explanation, code, suggestion and history"),
    ]
    .map(|(path, name, description)| {
        ResourceTemplate::new(format!("{SCHEME}{path}"), name).with_description(description).with_mime_type(JSON)
    })
    .into()
}

fn describe_resource(uri: &ResourceUri, view: &StoreView) -> Resource {
    let (name, title, mime) = match uri {
        ResourceUri::Ledger => ("ledger".to_owned(), "State of the reviews in a few lines".to_owned(), XML),
        ResourceUri::Runs => ("runs".to_owned(), "Newest reviews".to_owned(), JSON),
        ResourceUri::Findings => ("findings".to_owned(), "Findings that nobody has decided about".to_owned(), JSON),
        ResourceUri::Run(run) => {
            let title = view.run_index(run.as_str()).map_or(String::new(), |index| {
                let row = view.run(index);
                format!("Review of {}: {}", row.scope, row.status)
            });
            (run.to_string(), title, JSON)
        }
        ResourceUri::Finding(finding) => {
            let title = view.finding_index(finding.as_str()).map_or(String::new(), |index| {
                let row = view.finding(index);
                format!("{} {}:{} {}", row.priority, row.path, row.line_start, row.title)
            });
            (finding.to_string(), title, JSON)
        }
    };
    Resource::new(uri.to_string(), name)
        .with_title(cut_text(&clean_text(&title).replace(['\n', '\t'], " "), MAX_TITLE_BYTES))
        .with_mime_type(mime)
}

/// Reads a resource.
///
/// # Errors
///
/// If the repository or the store cannot be read, or the run or finding is not in it.
pub fn read_resource(
    access: &RepositoryAccess,
    uri: &ResourceUri,
    client: &str,
) -> Result<ResourceContents, ToolFailure> {
    let services = access.open(OpenPurpose::Read)?;
    let (text, mime) = match uri {
        // Nobody knows whether an assistant or its user reads a resource, so it is no delivery.
        ResourceUri::Ledger => (clean_text(compose_for_client(&services, client)?.text()), XML),
        ResourceUri::Runs => {
            let selection = RunSelection { limit: MAX_RUN_ROWS, ..RunSelection::default() };
            (list_runs(&services, &selection)?.structured.to_string(), JSON)
        }
        ResourceUri::Findings => {
            let selection = FindingSelection { limit: MAX_FINDING_ROWS, ..FindingSelection::default() };
            (list_findings(&services, &selection)?.structured.to_string(), JSON)
        }
        ResourceUri::Run(run) => {
            if services.store.run(run)?.is_none() {
                return Err(not_there("run", run.as_str()));
            }
            let subject = DetailsSubject { run: run.clone(), finding: None };
            (build_details(&services, &subject, MAX_DETAILS_BYTES)?.structured.to_string(), JSON)
        }
        ResourceUri::Finding(finding) => {
            if services.store.view()?.finding_index(finding.as_str()).is_none() {
                return Err(not_there("finding", finding.as_str()));
            }
            let subject = DetailsSubject::of_finding(&services, finding)?;
            (build_details(&services, &subject, MAX_DETAILS_BYTES)?.structured.to_string(), JSON)
        }
    };
    Ok(ResourceContents::text(text, uri.to_string()).with_mime_type(mime))
}

fn not_there(noun: &str, id: &str) -> ToolFailure {
    ToolFailure::new(format!("there is no {noun} {id} in this repository")).hint(format!("{SCHEME}{noun}s lists them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for text in [
            "revdeck://ledger",
            "revdeck://runs",
            "revdeck://findings",
            "revdeck://runs/ar_01JD3Z8Q6M7S5V2K4T9XWB1C01",
            "revdeck://findings/f_0000000000000001",
        ] {
            assert_eq!(text.parse::<ResourceUri>().map(|uri| uri.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "file:///etc/passwd", "revdeck://", "revdeck://runs/", "revdeck://runs/../x", "revdeck://fixes"]
        {
            let error = text.parse::<ResourceUri>().expect_err(text);
            assert!(error.contains("there are revdeck://ledger"), "{error}");
        }
    }
}
