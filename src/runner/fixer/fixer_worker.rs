//! Runs `revdeck fixer FIX`: makes a patch, reviews it and offers it.

use std::collections::HashMap;

use super::FixError;
use crate::config::ReviewerKind;
use crate::domain::patch::{PatchLineKind, parse_patch};
use crate::domain::{
    FileDiffStat, Finding, FindingId, Fix, FixId, FixStatus, UnfixedFinding, Usage, content_hash, text,
};
use crate::git::FileEdit;
use crate::runner::conclude::elapsed_ms;
use crate::runner::{BUILTIN_REVIEWER, Fixer, RunnerError, process};

/// The input of a fix.
pub(super) struct FixMaterial {
    pub fix: Fix,
    pub findings: Vec<Finding>,
    /// The snapshot that contains each finding at its lines.
    pub seen_in: HashMap<FindingId, String>,
    /// Problems that the review of an earlier patch found; empty for the first attempt.
    pub retry_reasons: String,
}

impl FixMaterial {
    /// Returns the commit that this attempt changes: the snapshot, or the result of an earlier attempt.
    pub fn base_commit(&self) -> &str {
        if self.retry_reasons.is_empty() { &self.fix.snapshot_commit } else { &self.fix.fixed_commit }
    }

    /// Describes the findings for a model.
    pub fn describe_findings(&self) -> String {
        let mut words = String::new();
        for finding in &self.findings {
            words.push_str(&format!("{} {}\n", finding.finding_id, finding_headline(finding)));
            words.push_str(&text::sanitize_lines(finding.explanation.trim_end(), 4));
            if !finding.quoted_code.is_empty() {
                words.push_str(&format!("\nIt is about:\n{}", text::sanitize_lines(finding.quoted_code.trim_end(), 4)));
            }
            if let Some(suggestion) = &finding.suggestion {
                words.push_str(&format!("\nSuggested: {}", text::sanitize_lines(&suggestion.text, 4)));
                if let Some(new) = &suggestion.replacement {
                    words.push_str(&format!("\n{}", text::sanitize_lines(new.trim_end(), 4)));
                }
            }
            words.push_str("\n\n");
        }
        words.trim_end().to_owned()
    }
}

/// Describes a finding on one line.
pub(super) fn finding_headline(finding: &Finding) -> String {
    let Finding { kind, repo_relative_path: path, line_start, line_end, title, priority, .. } = finding;
    text::sanitize_line(&format!("{priority} {kind} at {path}:{line_start}-{line_end}: {title}")).into_owned()
}

/// The result of an attempt to make a fix.
#[derive(Debug, Default)]
pub(super) struct FixAttempt {
    pub changes: Vec<(String, FileEdit)>,
    pub left_out: Vec<UnfixedFinding>,
    pub tokens: Usage,
    pub cost: f64,
    /// The name of the model that answered, as it reports itself.
    pub model: String,
    /// Number of answered requests.
    pub requests: u32,
    /// Messages for the user.
    pub notes: Vec<String>,
}

/// The reason why there is no patch.
#[derive(Debug)]
pub(super) enum FixFailure {
    /// An explanation for the user.
    Reason(String),
    /// The fix was dropped meanwhile.
    Dropped,
    Failed(RunnerError),
}

impl<E: Into<RunnerError>> From<E> for FixFailure {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Fixer<'_> {
    /// Makes a fix and reviews it. Returns at once if the fix is not in the status `working`. The caller's standard
    /// input is the fix's lock.
    ///
    /// # Errors
    ///
    /// If the failure of the fix cannot be recorded; all other failures are recorded in the fix.
    pub fn run_fixer(&self, id: &FixId) -> Result<(), RunnerError> {
        process::ignore_the_terminal();
        let worked = self.make_and_offer(id);
        let ended = match worked {
            Ok(()) | Err(FixFailure::Dropped) => Ok(()),
            Err(FixFailure::Reason(reason)) => self.fail_fix(id, &reason),
            Err(FixFailure::Failed(error)) => {
                tracing::error!(fix = %id, %error, "a fix cannot be made");
                self.fail_fix(id, &error.to_string())
            }
        };
        process::unlock_input();
        ended
    }

    fn make_and_offer(&self, id: &FixId) -> Result<(), FixFailure> {
        let Some(fix) = self.services.store.fix(id)? else { return Err(FixError::Unknown { id: id.clone() }.into()) };
        if fix.status != FixStatus::Working {
            return Ok(());
        }
        let mut material = self.load_fix_material(fix)?;
        loop {
            let fix = self.make_attempt(&material)?;
            let verdict = self.review_fix(&material, &fix)?;
            let again = !verdict.retry_reasons.is_empty()
                && fix.follow_up_count < self.services.settings.resolve.follow_ups
                && fix.reviewer != BUILTIN_REVIEWER;
            material.fix = self.update_working_fix(id, |fix| {
                fix.verdict = verdict.summary;
                match again {
                    true => {
                        fix.status = FixStatus::Working;
                        fix.follow_up_count += 1;
                    }
                    false => fix.status = FixStatus::Offered,
                }
            })?;
            if !again {
                return Ok(());
            }
            material.retry_reasons = verdict.retry_reasons;
        }
    }

    fn make_attempt(&self, material: &FixMaterial) -> Result<Fix, FixFailure> {
        let began = self.services.ambient.now();
        let fix = &material.fix;
        let kind = self.services.settings.reviewers.get(&fix.reviewer).map(|settings| settings.kind);
        let made = match kind {
            _ if fix.reviewer == BUILTIN_REVIEWER => self.make_from_suggestions(material)?,
            Some(ReviewerKind::Command) => self.make_with_program(material)?,
            _ => self.make_with_model(material)?,
        };
        self.record_patch(material, made, elapsed_ms(began, self.services.ambient.now()))
    }

    /// Records the costs of a failed attempt.
    pub(super) fn record_failed_attempt(&self, material: &FixMaterial, made: FixAttempt, why: String) -> FixFailure {
        match self.update_working_fix(&material.fix.fix_id, |fix| add_costs(fix, &made, 0)) {
            Ok(_) => FixFailure::Reason(why),
            Err(error) => error,
        }
    }

    /// Records the costs of an attempt whose edits failed the check.
    pub(super) fn record_unfit_attempt(&self, material: &FixMaterial, made: FixAttempt, why: String) -> FixFailure {
        let recorded = self.update_working_fix(&material.fix.fix_id, |fix| {
            add_costs(fix, &made, 0);
            fix.unfit = true;
        });
        match recorded {
            Ok(_) => FixFailure::Reason(why),
            Err(error) => error,
        }
    }

    /// Ends a fix that cannot continue. Offers the patch of an earlier attempt, if there is one.
    pub(super) fn fail_fix(&self, id: &FixId, reason: &str) -> Result<(), RunnerError> {
        self.services.store.update_fix(id, self.services.ambient.now(), |fix| {
            match (fix.status.is_working(), fix.files.is_empty()) {
                (false, _) => {}
                (true, true) => (fix.status, fix.reason) = (FixStatus::Failed, reason.to_owned()),
                (true, false) => {
                    fix.status = FixStatus::Offered;
                    fix.reason = format!("it was not made better: {reason}");
                    if fix.verdict.is_empty() {
                        fix.verdict = "not reviewed".to_owned();
                    }
                }
            }
        })?;
        Ok(())
    }

    /// Changes a fix in progress. Returns [`FixFailure::Dropped`] if the fix was dropped meanwhile.
    pub(super) fn update_working_fix(&self, id: &FixId, change: impl FnOnce(&mut Fix)) -> Result<Fix, FixFailure> {
        let mut is_working = false;
        let updated = self.services.store.update_fix(id, self.services.ambient.now(), |fix| {
            is_working = fix.status.is_working();
            if is_working {
                change(fix);
            }
        })?;
        updated.filter(|_| is_working).ok_or(FixFailure::Dropped)
    }

    /// Loads the findings of a fix, with the snapshot that contains each of them.
    pub(super) fn load_fix_material(&self, fix: Fix) -> Result<FixMaterial, RunnerError> {
        let view = self.services.store.view()?;
        let (mut findings, mut seen_in) = (Vec::new(), HashMap::new());
        for id in &fix.findings {
            let finding = self.services.store.finding_in(&view, id)?.ok_or_else(|| FixError::NoDetails(id.clone()))?;
            let placed = view.finding_index(id.as_str()).and_then(|index| view.locating_run(index));
            if let Some(placed) = placed {
                seen_in.insert(id.clone(), view.run(placed).snapshot_commit.to_owned());
            }
            findings.push(finding);
        }
        Ok(FixMaterial { fix, findings, seen_in, retry_reasons: String::new() })
    }

    /// Writes the patch of the changes, and then records it in the fix.
    pub(super) fn record_patch(
        &self,
        material: &FixMaterial,
        made: FixAttempt,
        took_ms: u64,
    ) -> Result<Fix, FixFailure> {
        let fix = &material.fix;
        let fixed = self.services.repo.commit_with_edits(material.base_commit(), &made.changes)?;
        let patch = self.services.repo.diff_as_patch(&fix.snapshot_commit, &fixed)?;
        let files = parse_patch(&patch.text).ok().filter(|files| files.len() == patch.paths.len());
        let trouble = match &files {
            _ if patch.paths.is_empty() && made.left_out.is_empty() => Some("it changes nothing".to_owned()),
            _ if patch.paths.is_empty() => {
                let reasons: Vec<String> =
                    made.left_out.iter().map(|unfixed| format!("{}: {}", unfixed.finding_id, unfixed.reason)).collect();
                Some(format!("it changes nothing; {}", reasons.join("; ")))
            }
            _ if patch.text.len() > Fix::MAX_PATCH_BYTES => {
                Some(format!("the patch has {} bytes; {} is the most", patch.text.len(), Fix::MAX_PATCH_BYTES))
            }
            _ if patch.paths.len() > Fix::MAX_FILES => {
                Some(format!("the patch changes {} files; {} is the most", patch.paths.len(), Fix::MAX_FILES))
            }
            None => Some("the patch changes what is no text".to_owned()),
            Some(_) => None,
        };
        if let Some(reason) = trouble {
            self.update_working_fix(&fix.fix_id, |fix| {
                add_costs(fix, &made, took_ms);
                // An exact suggestion that no longer fits only says that the code has changed.
                fix.unfit = fix.reviewer != BUILTIN_REVIEWER;
            })?;
            return Err(FixFailure::Reason(reason));
        }
        let files = patch.paths.iter().zip(files.unwrap_or_default()).map(|(path, file)| FileDiffStat {
            path: path.clone(),
            added: file.count_lines(PatchLineKind::Added),
            removed: file.count_lines(PatchLineKind::Removed),
        });
        let files: Vec<FileDiffStat> = files.collect();
        self.services.store.write_patch(&fix.fix_id, &patch.text)?;
        self.update_working_fix(&fix.fix_id, |fix| {
            add_costs(fix, &made, took_ms);
            fix.status = FixStatus::Reviewing;
            fix.unfit = false;
            fix.verdict.clear();
            fix.files = files;
            fix.patch_hash = content_hash([patch.text.as_slice()]);
            fix.fixed_commit = fixed;
            fix.left_out.clone_from(&made.left_out);
            fix.reason = made.notes.join("; ");
        })
    }
}

/// Adds the costs of an attempt to the fix.
fn add_costs(fix: &mut Fix, made: &FixAttempt, took_ms: u64) {
    fix.tokens += made.tokens;
    fix.cost += made.cost;
    fix.resolve_ms = fix.resolve_ms.saturating_add(took_ms);
    if !made.model.is_empty() {
        fix.model.clone_from(&made.model);
    }
}
