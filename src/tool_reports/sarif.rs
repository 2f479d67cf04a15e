//! Parses SARIF 2.1.0. Keys that mean nothing to a finding are skipped without being kept in memory.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Deserializer};

use super::path::{is_absolute, strip_scheme};
use super::rule_kinds::kind_for_rule;
use super::{
    MAX_PROBLEMS, MAX_TEXT_CHARS, ReportError, ReportedPath, ToolFix, ToolProblem, ToolReport, cut, decode,
    severity_from_level, tool_name,
};
use crate::domain::{Confidence, Kind, LineRange, Severity};

/// Maximum number of bases that stand below each other. Not from the literature: scanners name one or two.
const MAX_BASE_DEPTH: usize = 10;

/// Reads a value that may be missing, null, or of another type in the files of careless tools only if it is not needed.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(input: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(input)?.unwrap_or_default())
}

macro_rules! sarif_objects {
    ($($name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty),+ $(,)? })+) => {
        $(
            #[derive(Debug, Default, Deserialize)]
            #[serde(default, rename_all = "camelCase")]
            struct $name { $($(#[$attribute])* #[serde(deserialize_with = "or_default")] $field: $type),+ }
        )+
    };
}

sarif_objects! {
    SarifLog { version: String, runs: Vec<SarifRun> }
    SarifRun {
        tool: SarifTool,
        results: Vec<SarifResult>,
        artifacts: Vec<SarifArtifact>,
        invocations: Vec<SarifInvocation>,
        original_uri_base_ids: BTreeMap<String, ArtifactLocation>,
    }
    SarifTool { driver: ToolComponent, extensions: Vec<ToolComponent> }
    ToolComponent { name: String, rules: Vec<SarifRule> }
    SarifRule {
        id: String,
        short_description: SarifMessage,
        full_description: SarifMessage,
        help: SarifMessage,
        help_uri: String,
        message_strings: BTreeMap<String, SarifMessage>,
        default_configuration: RuleConfiguration,
        properties: RuleProperties,
    }
    RuleConfiguration { level: String }
    RuleProperties {
        tags: Vec<String>,
        precision: String,
        #[serde(rename = "security-severity")] security_severity: serde_json::Value,
    }
    SarifResult {
        rule_id: String,
        rule_index: Option<i64>,
        rule: RuleReference,
        level: String,
        kind: String,
        message: SarifMessage,
        locations: Vec<SarifLocation>,
        suppressions: Vec<SarifSuppression>,
        baseline_state: String,
        fixes: Vec<SarifFix>,
    }
    RuleReference { id: String, index: Option<i64> }
    SarifSuppression { status: String }
    SarifMessage { text: String, id: String, arguments: Vec<String> }
    SarifLocation { physical_location: PhysicalLocation }
    PhysicalLocation { artifact_location: ArtifactLocation, region: SarifRegion }
    ArtifactLocation { uri: String, uri_base_id: String, index: Option<i64> }
    SarifArtifact { location: ArtifactLocation }
    SarifRegion { start_line: Option<u32>, start_column: Option<u32>, end_line: Option<u32>, end_column: Option<u32> }
    SarifInvocation {
        execution_successful: Option<bool>,
        exit_code_description: String,
        tool_execution_notifications: Vec<SarifNotification>,
    }
    SarifNotification { level: String, message: SarifMessage }
    SarifFix { description: SarifMessage, artifact_changes: Vec<ArtifactChange> }
    ArtifactChange { artifact_location: ArtifactLocation, replacements: Vec<SarifReplacement> }
    SarifReplacement { deleted_region: SarifRegion, inserted_content: InsertedContent }
    InsertedContent { text: String }
}

/// Parses a log.
///
/// # Errors
///
/// Returns an error if the bytes are no log of version 2.1.0, or if it has too many results.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<ToolReport>, ReportError> {
    let malformed = |reason: String| ReportError::Malformed { format: "SARIF", reason };
    let log: SarifLog = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    if !log.version.starts_with("2.1") {
        return Err(malformed(format!("version is {:?}, and 2.1.0 is needed", cut(&log.version, 20))));
    }
    if log.runs.iter().map(|run| run.results.len()).sum::<usize>() > MAX_PROBLEMS {
        return Err(ReportError::TooManyProblems);
    }
    Ok(log.runs.into_iter().map(SarifRun::into_report).collect())
}

impl SarifRun {
    fn into_report(self) -> ToolReport {
        let tool = tool_name(&self.tool.driver.name);
        let components = || std::iter::once(&self.tool.driver).chain(&self.tool.extensions);
        let rules: HashMap<&str, &SarifRule> =
            components().flat_map(|component| &component.rules).map(|rule| (rule.id.as_str(), rule)).collect();
        let mut report = ToolReport { tool, failure: self.find_failure(), ..ToolReport::default() };
        report.covered = self.artifacts.iter().map(|artifact| self.resolve(&artifact.location)).collect();
        for result in &self.results {
            let is_problem = matches!(result.kind.as_str(), "" | "fail" | "open" | "review");
            let is_suppressed =
                result.suppressions.iter().any(|it| !matches!(it.status.as_str(), "rejected" | "underReview"));
            if !is_problem || is_suppressed || result.baseline_state == "absent" {
                report.suppressed += 1;
                if is_problem && is_suppressed && result.baseline_state != "absent" {
                    let problem = self.read_problem(&report.tool, result, &rules);
                    report.silenced.push(ToolProblem { fix: None, ..problem });
                }
                continue;
            }
            report.problems.push(self.read_problem(&report.tool, result, &rules));
        }
        report.covered.extend(report.problems.iter().map(|problem| problem.path.clone()));
        report.covered.retain(|path| !path.path.is_empty());
        report.covered.sort();
        report.covered.dedup();
        report
    }

    /// Returns the tool's own message that it failed.
    fn find_failure(&self) -> Option<String> {
        let failed = self.invocations.iter().find(|invocation| invocation.execution_successful == Some(false))?;
        let notified = failed.tool_execution_notifications.iter().filter(|it| it.level == "error");
        let notified = notified.map(|it| it.message.text.as_str());
        let said = notified.chain([failed.exit_code_description.as_str()]).find(|text| !text.is_empty());
        Some(cut(said.unwrap_or("the tool says that it failed"), MAX_TEXT_CHARS))
    }

    fn resolve(&self, location: &ArtifactLocation) -> ReportedPath {
        let indexed = location.index.and_then(|index| self.artifacts.get(usize::try_from(index).ok()?));
        let location = match (location.uri.is_empty(), indexed) {
            (true, Some(artifact)) => &artifact.location,
            _ => location,
        };
        let path = decode(&location.uri);
        if path.is_empty() || is_absolute(&path) {
            return ReportedPath { path, base: String::new() };
        }
        let (root, below) = self.find_base(&location.uri_base_id);
        ReportedPath { path: join_uris(&path, &below), base: root }
    }

    /// Returns the absolute folder of a base, which may be unknown and empty, and the path of the base below it. A base
    /// may be relative to another one. Bases in a circle give a path that no file has.
    fn find_base(&self, id: &str) -> (String, String) {
        let (mut id, mut below) = (id, String::new());
        for _ in 0..MAX_BASE_DEPTH {
            let Some(base) = self.original_uri_base_ids.get(id) else { break };
            let uri = decode(&base.uri);
            if is_absolute(&uri) {
                return (uri, below);
            }
            below = join_uris(&below, &uri);
            id = &base.uri_base_id;
        }
        (String::new(), below)
    }

    fn read_problem(&self, tool: &str, result: &SarifResult, rules: &HashMap<&str, &SarifRule>) -> ToolProblem {
        let index = result.rule_index.or(result.rule.index).and_then(|index| usize::try_from(index).ok());
        let named = [&result.rule_id, &result.rule.id].into_iter().find(|id| !id.is_empty());
        let rule = named.and_then(|id| rules.get(id.as_str()).copied());
        // The index counts the rules of the driver, unless the reference names another component.
        let rule = rule.or_else(|| self.tool.driver.rules.get(index.filter(|_| named.is_none())?));
        let id = named.or(rule.map(|rule| &rule.id)).map_or("", String::as_str);
        let properties = rule.map(|rule| &rule.properties);
        let tags = properties.iter().flat_map(|properties| &properties.tags).map(String::as_str);
        let location = result.locations.first().map(|location| &location.physical_location);
        let lines = location.and_then(|location| read_lines(&location.region));
        let kind = kind_for_rule(tool, id, tags);
        ToolProblem {
            rule: cut(id, 100),
            path: location.map(|location| self.resolve(&location.artifact_location)).unwrap_or_default(),
            lines,
            message: cut(&read_message(&result.message, rule), MAX_TEXT_CHARS),
            help: cut(&rule.map(SarifRule::describe).unwrap_or_default(), MAX_TEXT_CHARS),
            kind,
            severity: read_severity(result, rule, kind),
            confidence: read_confidence(properties.map_or("", |properties| &properties.precision)),
            fix: location.and_then(|location| self.read_fix(result, &location.artifact_location)),
        }
    }

    /// Returns the first fix, if it is one replacement in the file of the problem.
    fn read_fix(&self, result: &SarifResult, file: &ArtifactLocation) -> Option<ToolFix> {
        let fix = result.fixes.first()?;
        let ([change], [replacement]) =
            (fix.artifact_changes.as_slice(), fix.artifact_changes.first()?.replacements.as_slice())
        else {
            return None;
        };
        if self.resolve(&change.artifact_location) != self.resolve(file) {
            return None;
        }
        let region = &replacement.deleted_region;
        let start = region.start_line?;
        Some(ToolFix {
            description: cut(&fix.description.text, MAX_TEXT_CHARS),
            start: (start, region.start_column.unwrap_or(1)),
            end: (region.end_line.unwrap_or(start), region.end_column),
            text: replacement.inserted_content.text.clone(),
        })
    }
}

impl SarifRule {
    /// Returns the longest description of the rule, and the address of its page.
    fn describe(&self) -> String {
        let texts = [&self.help.text, &self.full_description.text, &self.short_description.text];
        let text = texts.into_iter().find(|text| !text.is_empty()).map_or("", |text| text.trim());
        [text, self.help_uri.trim()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

fn read_lines(region: &SarifRegion) -> Option<LineRange> {
    let start = region.start_line.filter(|line| *line > 0)?;
    let end = region.end_line.unwrap_or(start).max(start);
    // A region that ends before the first column of a line does not contain the line.
    let excluded = u32::from(end > start && region.end_column == Some(1));
    Some(LineRange::new(start, end - excluded))
}

/// Returns the text of a message. A message with an id is a template of its rule with `{0}` for arguments.
fn read_message(message: &SarifMessage, rule: Option<&SarifRule>) -> String {
    let template = rule.and_then(|rule| rule.message_strings.get(&message.id)).map(|template| template.text.as_str());
    let text = if message.text.is_empty() { template.unwrap_or_default() } else { &message.text };
    let arguments = message.arguments.iter().take(10).enumerate();
    let text = arguments.fold(cut(text, MAX_TEXT_CHARS), |text, (n, argument)| {
        text.replace(&format!("{{{n}}}"), &cut(argument, MAX_TEXT_CHARS / 10))
    });
    match text.trim() {
        "" => rule.map_or("", |rule| rule.short_description.text.trim()).to_owned(),
        text => text.to_owned(),
    }
}

fn read_severity(result: &SarifResult, rule: Option<&SarifRule>, kind: Kind) -> Severity {
    let score = rule.and_then(|rule| match &rule.properties.security_severity {
        serde_json::Value::String(text) => text.parse::<f64>().ok(),
        value => value.as_f64(),
    });
    // The scale of CVSS. Another number, or no number, says nothing.
    match score.filter(|score| (0.0..=10.0).contains(score)) {
        Some(score) if score >= 9.0 => Severity::Critical,
        Some(score) if score >= 7.0 => Severity::High,
        Some(score) if score >= 4.0 => Severity::Medium,
        Some(_) => Severity::Low,
        None => {
            let default = rule.map_or("", |rule| rule.default_configuration.level.as_str());
            let levels = [result.level.as_str(), default, "warning"];
            severity_from_level(levels.into_iter().find(|level| !level.is_empty()).unwrap_or_default(), kind)
        }
    }
}

fn read_confidence(precision: &str) -> Confidence {
    match precision {
        "low" => Confidence::Low,
        "medium" => Confidence::Medium,
        _ => Confidence::High,
    }
}

/// Joins a relative URI to the folder that it starts from.
fn join_uris(relative: &str, folder: &str) -> String {
    let relative = strip_scheme(relative).unwrap_or(relative);
    match folder.trim_end_matches('/') {
        "" => relative.to_owned(),
        folder => format!("{}/{relative}", strip_scheme(folder).unwrap_or(folder)),
    }
}
