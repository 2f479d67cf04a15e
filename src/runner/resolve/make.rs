//! The body of `revdeck fixer FIX`: the patch is made, reviewed, and offered.

use std::collections::HashMap;

use super::FixError;
use crate::domain::patch::{Origin, parse};
use crate::domain::{Finding, FindingId, Fix, FixId, FixStatus, FixedFile, Unfixed, Usage};
use crate::git::Put;
use crate::runner::settle::milliseconds;
use crate::runner::{Runner, RunnerError, process};

/// What a fix is made from.
pub(super) struct Material {
    pub fix: Fix,
    pub findings: Vec<Finding>,
    /// The snapshot in which each finding stands at its lines.
    pub seen_in: HashMap<FindingId, String>,
}

/// What came of an attempt to make a fix.
#[derive(Debug, Default)]
pub(super) struct Made {
    pub changes: Vec<(String, Put)>,
    pub left_out: Vec<Unfixed>,
    pub tokens: Usage,
    pub cost: f64,
    /// The model that answered, by its own word.
    pub model: String,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// Why there is no patch.
#[derive(Debug)]
pub(super) enum NoPatch {
    /// In words for a person.
    Because(String),
    /// Somebody dropped the fix meanwhile.
    Dropped,
    Failed(RunnerError),
}

impl<E: Into<RunnerError>> From<E> for NoPatch {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Runner {
    /// Makes a fix and reviews it. Returns at once when somebody else does, or when it is over. The caller's standard
    /// input is the fix's lock.
    pub fn work_on_fix(&self, id: &FixId) -> Result<(), RunnerError> {
        process::ignore_the_terminal();
        let worked = self.make_and_offer(id);
        let ended = match worked {
            Ok(()) | Err(NoPatch::Dropped) => Ok(()),
            Err(NoPatch::Because(reason)) => self.fail(id, &reason),
            Err(NoPatch::Failed(error)) => {
                tracing::error!(fix = %id, %error, "a fix cannot be made");
                self.fail(id, &error.to_string())
            }
        };
        process::unlock_input();
        ended
    }

    fn make_and_offer(&self, id: &FixId) -> Result<(), NoPatch> {
        let Some(fix) = self.store.fix(id)? else { return Err(FixError::Unknown { id: id.clone() }.into()) };
        if fix.status != FixStatus::Working {
            return Ok(());
        }
        let material = self.material(fix)?;
        let began = self.ambient.now();
        let made = self.make(&material)?;
        let fix = self.record_patch(&material, made, milliseconds(began, self.ambient.now()))?;
        self.update_working(&fix.fix_id, |fix| fix.status = FixStatus::Offered)?;
        Ok(())
    }

    fn make(&self, material: &Material) -> Result<Made, NoPatch> {
        Ok(self.make_exactly(material)?)
    }

    fn fail(&self, id: &FixId, reason: &str) -> Result<(), RunnerError> {
        self.store.update_fix(id, self.ambient.now(), |fix| {
            if fix.status.is_working() {
                fix.status = FixStatus::Failed;
                reason.clone_into(&mut fix.reason);
            }
        })?;
        Ok(())
    }

    /// Changes a fix that is being made; that it was dropped meanwhile ends it.
    pub(super) fn update_working(&self, id: &FixId, change: impl FnOnce(&mut Fix)) -> Result<Fix, NoPatch> {
        let mut is_working = false;
        let updated = self.store.update_fix(id, self.ambient.now(), |fix| {
            is_working = fix.status.is_working();
            if is_working {
                change(fix);
            }
        })?;
        updated.filter(|_| is_working).ok_or(NoPatch::Dropped)
    }

    /// The findings of a fix, where they stand, and in which snapshots.
    pub(super) fn material(&self, fix: Fix) -> Result<Material, RunnerError> {
        let view = self.store.view()?;
        let (mut findings, mut seen_in) = (Vec::new(), HashMap::new());
        for id in &fix.findings {
            let finding = self.store.finding_in(&view, id)?.ok_or_else(|| FixError::NoDetails(id.clone()))?;
            let placed = view.finding_index(id.as_str()).and_then(|index| view.placed_by(index));
            if let Some(placed) = placed {
                seen_in.insert(id.clone(), view.run(placed).snapshot_commit.to_owned());
            }
            findings.push(finding);
        }
        Ok(Material { fix, findings, seen_in })
    }

    /// Writes the patch that the changes come to, and then what is known of it.
    pub(super) fn record_patch(&self, material: &Material, made: Made, took_ms: u64) -> Result<Fix, NoPatch> {
        let fix = &material.fix;
        let account = |fix: &mut Fix| {
            for (sum, more) in [
                (&mut fix.tokens.input, made.tokens.input),
                (&mut fix.tokens.cached, made.tokens.cached),
                (&mut fix.tokens.output, made.tokens.output),
                (&mut fix.tokens.reasoning, made.tokens.reasoning),
            ] {
                *sum = sum.saturating_add(more);
            }
            fix.cost += made.cost;
            fix.resolve_ms = fix.resolve_ms.saturating_add(took_ms);
            if !made.model.is_empty() {
                fix.model.clone_from(&made.model);
            }
        };
        let fixed = self.repo.with_changes(&fix.snapshot_commit, &made.changes)?;
        let patch = self.repo.patch(&fix.snapshot_commit, &fixed)?;
        let files = parse(&patch.text).filter(|files| files.len() == patch.paths.len());
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
            self.update_working(&fix.fix_id, account)?;
            return Err(NoPatch::Because(reason));
        }
        let files = patch.paths.iter().zip(files.unwrap_or_default()).map(|(path, file)| FixedFile {
            path: path.clone(),
            added: file.count(Origin::Added),
            removed: file.count(Origin::Removed),
        });
        let files: Vec<FixedFile> = files.collect();
        self.store.write_patch(&fix.fix_id, &patch.text)?;
        self.update_working(&fix.fix_id, |fix| {
            account(fix);
            fix.status = FixStatus::Reviewing;
            fix.files = files;
            fix.fixed_commit = fixed;
            fix.left_out.clone_from(&made.left_out);
            fix.reason = made.notes.join("; ");
        })
    }
}
