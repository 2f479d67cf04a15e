//! Makes a fix with a command-line agent: the agent edits a copy of the snapshot, and its changes are the patch.

use super::fixer_requests::FixDropWatch;
use super::fixer_worker::{FixAttempt, FixFailure, FixMaterial};
use crate::config::Prompt;
use crate::domain::{ChatMessage, ChatRequest, Fix};
use crate::git::{CheckoutPlan, CollectError, CollectLimits};
use crate::reviewers::command::agent_settings_paths;
use crate::runner::reviewer_access::model_reviewer::is_withheld;
use crate::runner::reviewer_access::reviewer_identity::open_fixer;
use crate::runner::{Fixer, RunnerError};

/// Limits of the changed files that are read. Not from the literature: the files of a patch may be larger than the
/// patch.
const MAX_HARVEST: CollectLimits = CollectLimits { files: Fix::MAX_FILES, bytes: 32 * 1024 * 1024 };

impl Fixer<'_> {
    pub(super) fn make_with_program(&self, material: &FixMaterial) -> Result<FixAttempt, FixFailure> {
        let fix = &material.fix;
        let settings = self.services.reviewers().model_settings(&fix.reviewer)?;
        let facts = self.load_fixer_facts(&fix.reviewer)?;
        let wanted = FixDropWatch::new(self.services, fix);
        let folder = self.fix_checkouts();
        self.sweep_fix_checkouts(&folder);
        let folder = folder.join(fix.fix_id.as_str());
        // The contents are not masked: the patch must fit the real files.
        let plan = CheckoutPlan {
            commit: material.base_commit(),
            base: None,
            unwanted: &agent_settings_paths(),
            is_secret: &is_withheld,
            mask: None,
        };
        let checkout = self.services.repo.create_checkout(&plan, &folder, &|| wanted.is_dropped())?;
        let checkout = checkout.ok_or(FixFailure::Dropped)?;
        let sown = checkout.prepare_for_writing()?;
        let prompts = self.services.reviewers().load_prompts()?;
        let request = ChatRequest {
            system: format!("{}\n\n{}", prompts.render(&Prompt::Resolve), prompts.render(&Prompt::ResolveAgent)),
            messages: vec![ChatMessage::User {
                text: prompts.render(&Prompt::ResolveTask {
                    findings: &material.describe_findings(),
                    code: "",
                    again: &material.retry_reasons,
                }),
            }],
            pinned: 1,
            ..ChatRequest::default()
        };
        let mut made = FixAttempt::default();
        let agent = open_fixer(&fix.reviewer, settings, checkout.folder()).map_err(RunnerError::from)?;
        let mut agent = self.services.team().hold_agent_to_budget(Box::new(agent), &facts);
        let answered = self.ask_fixer(agent.as_mut(), &request, (material, &facts, &wanted), &mut made);
        // Dropping the agent ends all its processes, so that nothing writes any more.
        drop(agent);
        // Removes files that the agent may have put beside its folder.
        self.sweep_fix_checkouts(&self.fix_checkouts());
        match answered {
            Ok(_) => {}
            Err(FixFailure::Reason(why)) => return Err(self.record_failed_attempt(material, made, why)),
            Err(other) => return Err(other),
        }
        match checkout.collect_changes(
            &sown,
            &self.services.repo,
            material.base_commit(),
            &agent_settings_paths(),
            MAX_HARVEST,
        ) {
            Ok(harvest) => {
                made.changes = harvest.changes;
                made.notes = harvest.notes;
                Ok(made)
            }
            Err(CollectError::Git(error)) => Err(error.into()),
            Err(error) => Err(self.record_failed_attempt(material, made, error.to_string())),
        }
    }
}
