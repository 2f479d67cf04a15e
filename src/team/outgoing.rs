//! Decides what leaves this machine: which records, without which paths and texts.
//!
//! - Secrets never leave: every text is masked, as in what a model gets, and a path whose name holds a secret is left out.
//! - Code leaves only with [`ShareMode::All`]. Prompts and answers of models never do.
//! - A review of which a part is left out does not answer requests elsewhere: it does not say that the rest is clean.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::domain::{
    Actor, Coverage, Disposition, Finding, FindingCounts, FindingStep, Kind, RunEnding, RunLinks, RunRecord, RunReuse,
    ShareMode, SharedDecision, Voice, content_hash,
};
use crate::masking::{Mask, has_secret_name};

/// Prefix of the scope hash of a review of which a part is not shared.
const PARTIAL_SCOPE_PREFIX: &str = "part:";

/// What leaves this machine.
pub struct OutgoingFilter {
    mode: ShareMode,
    excluded: Gitignore,
}

impl OutgoingFilter {
    /// Builds the filter. `excluded` are globs in `.gitignore` syntax for paths that never leave.
    ///
    /// # Errors
    /// Returns the globs' fault.
    pub fn new(mode: ShareMode, excluded: &[String]) -> Result<Self, ignore::Error> {
        let mut builder = GitignoreBuilder::new("");
        for glob in excluded {
            builder.add_line(None, glob)?;
        }
        Ok(Self { mode, excluded: builder.build()? })
    }

    /// Returns true if reviews leave this machine.
    pub fn shares_reviews(&self) -> bool {
        self.mode != ShareMode::Decisions
    }

    /// Returns true if a path may be named elsewhere.
    pub fn may_name(&self, path: &str) -> bool {
        !self.excluded.matched_path_or_any_parents(path, false).is_ignore() && !has_secret_name(path)
    }

    /// Masks the texts of a decision.
    pub fn clean_decision(&self, mut decision: SharedDecision) -> SharedDecision {
        decision.reason = mask_words(&decision.reason);
        decision
    }

    /// Returns a review without what must not leave: the run, its findings and its coverage. `None` if nothing is left.
    pub fn clean_review(
        &self,
        mut run: RunRecord,
        findings: Vec<Finding>,
        mut coverage: Coverage,
    ) -> Option<(RunRecord, Vec<Finding>, Coverage)> {
        if !self.shares_reviews() {
            return None;
        }
        let before = findings.len();
        let mut findings: Vec<Finding> =
            findings.into_iter().filter(|finding| self.may_name(&finding.repo_relative_path)).collect();
        let hidden = before - findings.len() + self.drop_paths(&mut run, &mut coverage);
        if hidden > 0 {
            if findings.is_empty() && before > 0 {
                return None;
            }
            let identity = content_hash([run.run_id.as_str().as_bytes()]);
            run.subject.scope_hash = format!("{PARTIAL_SCOPE_PREFIX}{}", identity.get(..16).unwrap_or_default());
            coverage.incomplete = true;
            run.outcome.finding_digests.retain(|id| findings.iter().any(|finding| finding.finding_id == *id));
            run.outcome.finding_counts = FindingCounts::from_findings(&findings);
        }
        for finding in &mut findings {
            self.clean_finding(finding);
        }
        clean_run(&mut run);
        coverage.incomplete |= run.outcome.coverage.incomplete;
        Some((run, findings, coverage))
    }

    /// Removes paths that may not be named; returns how many there were.
    fn drop_paths(&self, run: &mut RunRecord, coverage: &mut Coverage) -> usize {
        let mut hidden = 0;
        let mut may_stay = |path: &str| {
            let may_stay = self.may_name(path);
            hidden += usize::from(!may_stay);
            may_stay
        };
        run.subject.changed_paths.retain(|path| may_stay(path));
        for coverage in [coverage, &mut run.outcome.coverage] {
            coverage.files.retain(|file| may_stay(&file.path));
            coverage.left_out.retain(|file| may_stay(&file.path));
            coverage.carried.retain(|carried| may_stay(&carried.file.path));
        }
        hidden
    }

    fn clean_finding(&self, finding: &mut Finding) {
        let path = finding.repo_relative_path.clone();
        // The place of a secret is said, and nothing of its code.
        let shares_code = self.mode == ShareMode::All && finding.kind != Kind::HardcodedConfiguration;
        finding.title = mask_words(&finding.title);
        finding.explanation = mask_words(&finding.explanation);
        finding.quoted_code = if shares_code { mask_code(&path, &finding.quoted_code) } else { String::new() };
        // A pattern is knowledge of this machine.
        finding.pattern = None;
        if let Some(suggestion) = &mut finding.suggestion {
            suggestion.text = mask_words(&suggestion.text);
            suggestion.replacement = match suggestion.replacement.take() {
                // A change with a masked part would not be the change that was proposed.
                Some(code) if shares_code && mask_code(&path, &code) == code => Some(code),
                _ => None,
            };
        }
        for text in finding.voices.iter_mut().flat_map(Voice::texts_mut) {
            *text = mask_words(text);
        }
        for step in &mut finding.steps {
            if let FindingStep::Ruled { reason, .. } = step {
                *reason = mask_words(reason);
            }
        }
    }
}

/// Removes what is about this machine, and masks the texts.
fn clean_run(run: &mut RunRecord) {
    run.subject.worktree = String::new();
    run.subject.triage_bytes = None;
    run.subject.epoch = 0;
    run.reuse = RunReuse::default();
    let links = std::mem::take(&mut run.links);
    run.links = RunLinks { member_of: links.member_of, panel: links.panel, ..RunLinks::default() };
    let ending = std::mem::take(&mut run.ending);
    run.ending = RunEnding {
        error_class: ending.error_class,
        error_summary: mask_words(&ending.error_summary),
        budget_stop: ending.budget_stop,
        ..RunEnding::default()
    };
    run.outcome.summary = mask_words(&run.outcome.summary);
    run.decision = mask_words(&run.decision);
    run.subject.branch = mask_words(&run.subject.branch);
    run.team = None;
    run.paused = false;
}

fn mask_words(text: &str) -> String {
    Mask::On.mask_words(text).into_owned()
}

fn mask_code(path: &str, code: &str) -> String {
    Mask::On.mask_text(Some(path), code).into_owned()
}

/// Returns true if a disposition is a decision for the team: by a person or an assistant of this machine.
pub fn is_own_decision(line: &Disposition) -> bool {
    line.team.is_none() && line.actor != Actor::Engine
}
