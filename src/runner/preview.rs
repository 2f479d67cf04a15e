//! What a review would send of a change and of the code around it, without sending anything.
//!
//! Invariants: it is put together by what puts reviews together, so that both are the same; nothing is written into the
//! store. Told is a review from scratch: what earlier ones looked at is not left away.

use std::collections::BTreeMap;

use super::model::{Prepared, Who};
use super::surround::Wish;
use super::{ReviewRequest, Runner, RunnerError};
use crate::config::{Models, ReviewerKind, ReviewerSettings};
use crate::context::mask::Mask;
use crate::context::pack::{Because, Packed, Section, SectionKind};
use crate::context::tokens;
use crate::domain::text::one_line;
use crate::domain::{Encoding, FileCoverage, LeftOut, Scope, Source};
use crate::provider::chat::Tools;
use crate::review::{Plan, PlannedFile};

/// Said when there is nothing to look for.
pub const NO_TASK: &str = "there is no change, and neither --task nor --focus says what to look for";
/// So many files are named for each reason why they are not sent.
const MOST_NAMED: usize = 8;

impl Runner {
    /// What a review by `reviewer`, else by the one that is asked by default, would send of a scope. Where that one is
    /// sent nothing, another is taken whose settings are there, and without one what holds for any model.
    ///
    /// # Errors
    /// No such reviewer or revision, and whatever keeps git from working.
    pub fn preview(&self, scope: Option<Scope>, reviewer: Option<&str>, wish: &Wish) -> Result<Packed, RunnerError> {
        let settings = self.spoken_to(reviewer)?;
        let facts = Models::load(&self.paths)?.of(&settings);
        let request =
            ReviewRequest { scope, reviewer: Some(Self::BUILTIN.to_owned()), source: Source::Cli, force: true };
        let (snapshot, record) = self.rehearse(&request)?;
        let mask = if settings.mask_secrets { Mask::On } else { Mask::Off };
        let tools = if settings.kind == ReviewerKind::Command { Tools::None } else { Tools::Native };
        let who = Who { settings: &settings, facts: &facts, mask, tools };
        let change = &snapshot.change;
        let planned = |file: &crate::git::FileChange| PlannedFile {
            path: file.path.clone(),
            hunks: file.hunks.iter().map(|hunk| hunk.new_range()).collect(),
            keys: Vec::new(),
            added_lines: 0,
        };
        let plan = Plan {
            files: change.files.iter().map(planned).collect(),
            left_out: change.left_out.clone(),
            unit_files: 1,
            whole: false,
            carried: Vec::new(),
        };
        let toolbox = self.toolbox(&record, change, mask)?;
        let index = self.index(&record.snapshot_commit);
        let prepared = self.task(who, &record, change, (plan, Vec::new()), &toolbox, (index.as_ref(), wish))?;
        let mut packed = packed(prepared, wish, facts.encoding);
        if change.files.is_empty() && wish.focus.is_empty() && wish.text.is_empty() {
            packed.notes.push(NO_TASK.to_owned());
        }
        Ok(packed)
    }

    /// What the models of reviews count in, see [`Runner::preview`].
    ///
    /// # Errors
    /// No such reviewer.
    pub fn encoding(&self, reviewer: Option<&str>) -> Result<Encoding, RunnerError> {
        Ok(Models::load(&self.paths)?.of(&self.spoken_to(reviewer)?).encoding)
    }

    fn spoken_to(&self, reviewer: Option<&str>) -> Result<ReviewerSettings, RunnerError> {
        let is_model = |settings: &&ReviewerSettings| settings.kind != ReviewerKind::Builtin;
        if let Some(name) = reviewer.filter(|name| *name != Self::BUILTIN) {
            return Ok(self.model_settings(name)?.clone());
        }
        let reviewers = &self.settings.reviewers;
        let default = reviewers.get(&self.settings.default_reviewer).filter(is_model);
        let found = default.or_else(|| reviewers.values().find(|settings| settings.kind.is_http()));
        Ok(found.cloned().unwrap_or_else(|| ReviewerSettings::new(ReviewerKind::Openai)))
    }
}

/// The rules and the diff before the code around the change, in the order in which a request tells them.
fn packed(prepared: Prepared, wish: &Wish, encoding: Encoding) -> Packed {
    let Prepared { task, around, constitution, rules, beyond } = prepared;
    let tokens = |text: &str| tokens::count(encoding, text) as u32;
    let section = |kind: SectionKind, mut text: String, reason: &str| {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Section {
            path: String::new(),
            lines: None,
            kind,
            tokens: tokens(&text),
            text,
            score: 1.0,
            because: Because { factors: Vec::new(), reason: reason.to_owned() }.into(),
            pieces: 1,
            coverage: None,
        }
    };
    let rules = rules.filter(|_| wish.options.documentation).map(|rules| rules.text);
    let mut front: Vec<Section> = Vec::new();
    front.extend(constitution.map(|text| section(SectionKind::Rules, text, "the constitution, pinned")));
    front.extend(rules.map(|text| section(SectionKind::Rules, text, "the project's rules")));
    front.extend(task.parts.into_iter().map(|part| section(SectionKind::Diff, part.text, "the change")));
    let (mut packed, notes) = match around {
        Some(around) => (around.packed, around.context.notes),
        None => (Packed::default(), vec!["it is told nothing of the code around the change".to_owned()]),
    };
    let around = packed.total_tokens;
    packed.included += front.len() as u32;
    packed.sections.splice(0..0, front);
    packed.total_tokens = tokens(&packed.text());
    // What comes before has no bound of this budget.
    packed.budget += packed.total_tokens - around.min(packed.total_tokens);
    packed.notes = notes;
    packed.notes.extend(withheld(&beyond, &task.plan.left_out));
    packed
}

/// What of a change is not sent, a line for each reason.
pub fn withheld(beyond: &[FileCoverage], left_out: &[LeftOut]) -> Vec<String> {
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in beyond {
        let reason = "over the budget, at least in part".to_owned();
        by_reason.entry(reason).or_default().push(one_line(&file.path).into_owned());
    }
    for file in left_out {
        by_reason.entry(file.reason.to_string()).or_default().push(one_line(&file.path).into_owned());
    }
    let line = |(reason, mut names): (String, Vec<String>)| {
        let more = names.len().saturating_sub(MOST_NAMED);
        names.truncate(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("of the change not sent, {reason}: {}{more}", names.join(", "))
    };
    by_reason.into_iter().map(line).collect()
}
