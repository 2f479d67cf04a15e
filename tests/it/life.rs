//! Integration tests: the lifecycle of findings, in real repositories, reviewed by the real binary.

mod follow;
mod hold;
mod status;

use revdeck::domain::{Actor, Disposition, Finding, FindingId, FindingStatus, Kind, RunId, RunOutput};
use serde_json::Value;

use crate::runner::place::Place;

/// Returns a module with one function that swallows an error: MISSING_ERROR_HANDLING at its `except:`.
pub fn swallows(name: &str) -> String {
    format!("def {name}(source):\n    try:\n        return source.read_{name}()\n    except:\n        pass\n")
}

/// Returns the module of [`swallows`] with the error handled.
pub fn handles(name: &str) -> String {
    swallows(name)
        .replace("except:\n        pass", "except OSError as error:\n        raise Unreadable(source) from error")
}

/// Returns code without findings.
pub fn plain(name: &str) -> String {
    format!("def {name}(value):\n    return value.{name}\n")
}

/// A repository and its findings in their present state.
pub struct Life {
    pub place: Place,
}

impl Life {
    pub fn new() -> Self {
        Self { place: Place::new() }
    }

    pub fn write(&self, path: &str, text: &str) {
        self.place.test.write(path, text);
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.place.test.repo().join(path)).expect("a file")
    }

    pub fn commit(&self, message: &str) -> String {
        self.place.test.commit(message)
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        self.place.test.git(arguments)
    }

    pub fn review(&self, arguments: &[&str]) -> RunId {
        self.place.review(&[arguments, &["--wait"]].concat())
    }

    pub fn output(&self, run: &RunId) -> RunOutput {
        self.place.output(run).expect("an output")
    }

    /// Reviews HEAD and returns its only finding of a kind.
    pub fn found(&self, kind: Kind) -> Finding {
        let output = self.output(&self.review(&["--commit", "HEAD"]));
        let mut found = output.findings.into_iter().filter(|finding| finding.kind == kind);
        let finding = found.next().expect("a finding");
        assert_eq!(found.next(), None, "one finding of the kind");
        finding
    }

    /// Writes and commits a file, reviews the commit and returns the finding about its swallowed error.
    pub fn swallowed(&self, path: &str, text: &str) -> FindingId {
        self.write(path, text);
        self.commit(path);
        self.found(Kind::MissingErrorHandling).finding_id
    }

    pub fn show(&self, id: &FindingId) -> Value {
        serde_json::from_str(&self.place.revdeck(&["show", id.as_str(), "--format", "json"])).expect("JSON")
    }

    pub fn status(&self, id: &FindingId) -> FindingStatus {
        self.show(id)["finding"]["status"].as_str().expect("a status").parse().expect("a status")
    }

    /// Returns the path and first line of a finding.
    pub fn place(&self, id: &FindingId) -> (String, u64) {
        let finding = &self.show(id)["finding"];
        let path = finding["repo_relative_path"].as_str().expect("a path").to_owned();
        (path, finding["line_start"].as_u64().expect("a line"))
    }

    pub fn at(&self, id: &FindingId) -> String {
        let (path, line) = self.place(id);
        format!("{} at {path}:{line}", self.status(id))
    }

    pub fn history(&self, id: &FindingId) -> Vec<Disposition> {
        self.place.store().dispositions(id).expect("readable")
    }

    /// Returns the latest disposition of a finding: actor, status and reason.
    pub fn last(&self, id: &FindingId) -> (Actor, FindingStatus, String) {
        let last = self.history(id).pop().expect("something was said");
        (last.actor, last.status, last.reason)
    }

    pub fn triage(&self, id: &FindingId, status: &str, reason: &str) {
        self.place.revdeck(&["triage", id.as_str(), status, "--reason", reason]);
    }
}
