//! A fix by a program: it edits a copy of the snapshot, and what it changed there is the patch.

use super::make::{Made, Material, NoPatch};
use super::spend::Wanted;
use crate::config::Prompt;
use crate::domain::{ChatRequest, Fix, Message};
use crate::git::{HarvestError, Most};
use crate::provider::command::SETTINGS_OF_AGENTS;
use crate::runner::identity::open_fixer;
use crate::runner::{Runner, RunnerError};

/// Content of changed files that is read; own: patches are smaller, but their files need not be.
const MOST: Most = Most { files: Fix::MAX_FILES, bytes: 32 * 1024 * 1024 };

impl Runner {
    pub(super) fn make_by_program(&self, material: &Material) -> Result<Made, NoPatch> {
        let fix = &material.fix;
        let settings = self.model_settings(&fix.reviewer)?;
        let facts = self.fixer_facts(&fix.reviewer)?;
        let wanted = Wanted::new(self, fix);
        let folder = self.fix_checkouts();
        self.sweep_fix_checkouts(&folder);
        let folder = folder.join(fix.fix_id.as_str());
        let checkout = self.repo.throwaway(material.on(), &folder, &SETTINGS_OF_AGENTS, &|| wanted.is_dropped())?;
        let checkout = checkout.ok_or(NoPatch::Dropped)?;
        let sown = checkout.sow()?;
        let prompts = self.prompts()?;
        let request = ChatRequest {
            system: format!("{}\n\n{}", prompts.render(&Prompt::Resolve), prompts.render(&Prompt::ResolveAgent)),
            messages: vec![Message::User {
                text: prompts.render(&Prompt::ResolveTask {
                    findings: &material.in_words(),
                    code: "",
                    again: &material.again,
                }),
            }],
            pinned: 1,
            ..ChatRequest::default()
        };
        let mut made = Made::default();
        let mut agent = open_fixer(&fix.reviewer, settings, checkout.folder()).map_err(RunnerError::from)?;
        let answered = self.ask_fixer(&mut agent, &request, (material, &facts, &wanted), &mut made);
        // With it goes everything that it has started: nobody writes any more.
        drop(agent);
        // Also what it may have put beside its folder.
        self.sweep_fix_checkouts(&self.fix_checkouts());
        match answered {
            Ok(_) => {}
            Err(NoPatch::Because(why)) => return Err(self.paid_for_nothing(material, made, why)),
            Err(other) => return Err(other),
        }
        match checkout.reap(&sown, &self.repo, material.on(), &SETTINGS_OF_AGENTS, MOST) {
            Ok(harvest) => {
                made.changes = harvest.changes;
                made.notes = harvest.notes;
                Ok(made)
            }
            Err(HarvestError::Git(error)) => Err(error.into()),
            Err(error) => Err(self.paid_for_nothing(material, made, error.to_string())),
        }
    }
}
