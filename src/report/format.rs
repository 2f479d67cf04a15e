//! Names the output formats of findings and the renderer of each.

use clap::ValueEnum;

use super::export::FindingExport;
use super::{agent_prompt, github, gitlab, junit, quickfix, rdjsonl, sarif};

/// Output format of a command that prints findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Text for a person
    #[default]
    Text,
    /// One JSON object, see docs/json.md
    Json,
    /// Markdown for a pull request, an issue or a file
    Markdown,
    /// SARIF 2.1.0 for code scanning
    Sarif,
    /// Workflow annotations of GitHub Actions
    Github,
    /// Diagnostics for reviewdog, one JSON object on each line
    Rdjsonl,
    /// Code quality report of GitLab
    Gitlab,
    /// JUnit XML: each finding is a failed test case
    Junit,
    /// One line for each finding, for the quickfix list of Vim and the compilation mode of Emacs
    Quickfix,
    /// Prompt for a coding agent
    Prompt,
}

/// Renders findings for another program.
pub type ExportRenderer = fn(&FindingExport) -> String;

impl OutputFormat {
    /// Returns the renderer of a format that other programs read. `None` for text, JSON and Markdown, which each command
    /// renders with more than its findings.
    pub fn exporter(self) -> Option<ExportRenderer> {
        match self {
            Self::Text | Self::Json | Self::Markdown => None,
            Self::Sarif => Some(sarif::render_sarif),
            Self::Github => Some(github::render_github),
            Self::Rdjsonl => Some(rdjsonl::render_rdjsonl),
            Self::Gitlab => Some(gitlab::render_gitlab),
            Self::Junit => Some(junit::render_junit),
            Self::Quickfix => Some(quickfix::render_quickfix),
            Self::Prompt => Some(agent_prompt::export_prompt),
        }
    }

    /// Returns the name of the format on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
