//! What the end of a run means for the findings there are: recognised, held back, followed and judged.
//!
//! Invariants: the policy decides, this room brings it the code and the records; what cannot be read is no evidence;
//! nothing here keeps a run from ending. A run that is settled a second time, because whoever did it first died, comes to
//! the same: what it has said already stands behind its snapshot.

mod answer;
mod earlier;
mod ground;
mod hold;
mod judge;
mod recheck;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use self::earlier::Known;
pub(super) use self::ground::Ground;
use self::hold::Held;
use self::recheck::{Answer, Recheck};
use super::{Runner, RunnerError};
use crate::domain::text::count;
use crate::domain::{
    Disposition, Finding, FindingCounts, FindingId, FindingStatus, FlipFlop, HeldBack, LeftOutReason, LineRange, Moved,
    Recognised, RunRecord, RunStatus,
};
use crate::policy::anchor::Stand;
use crate::policy::{self, ClaimOrder, DETERMINISTIC, Evidence, Extent, Present, Reach, Seen, Sight, Silence};
use crate::review::Outcome;
use crate::store::{LastSaid, Learning, Store, View};

/// What a run's output says about findings that it does not raise.
#[derive(Debug, Default)]
pub(super) struct Life {
    pub held_back: Vec<HeldBack>,
    pub moved: Vec<Moved>,
    pub flip_flops: Vec<FlipFlop>,
    pub recognised: Vec<Recognised>,
}

/// A run that is being settled.
struct Settling<'a> {
    runner: &'a Runner,
    run: &'a RunRecord,
    view: Arc<View>,
    /// The run's scope, written.
    scope: String,
    status: RunStatus,
    extent: Extent,
}

/// What the run put before its reviewer.
struct Coverage {
    hunks: HashMap<String, Vec<LineRange>>,
    /// Hunks that an earlier run has reviewed as they are. They show what the code is; that nothing was said about them
    /// is no news.
    carried: HashMap<String, Vec<LineRange>>,
    /// Paths that its change takes away.
    deleted: HashSet<String>,
}

impl Runner {
    /// Lets the end of a run act on all findings: those that it reports get the id and the status that they have, those
    /// that are not to be raised are taken out, and the earlier ones that it can judge are judged. Dispositions are
    /// stored when this returns; the rest is for the output.
    pub(super) fn settle_findings(&self, run: &RunRecord, outcome: &mut Outcome) -> Result<Life, RunnerError> {
        // One that never began has seen nothing.
        if run.attempt == 0 && outcome.findings.is_empty() {
            return Ok(Life::default());
        }
        if let Some(fix) = &run.follow_up_of {
            return Ok(hold::all(outcome, fix));
        }
        let whole = outcome.status == RunStatus::Completed && outcome.failure.is_none();
        let extent = if whole { Extent::Whole } else { Extent::Partial };
        Settling::new(self, run, outcome.status, extent)?.settle(outcome)
    }

    /// The store for what a run says: whoever settles it, whether that may be learned from is the run's.
    fn store_of_run(&self, run: &RunRecord) -> Store {
        let store = self.store.clone();
        if run.private { store.with_learning(Learning::Refused) } else { store }
    }
}

/// What evidence makes of a finding, given what was said about it last.
fn judge(
    runner: &Runner,
    run: &RunRecord,
    id: &FindingId,
    present: Present,
    seen: Seen,
    said: &LastSaid,
) -> Option<Disposition> {
    let later = said.about(id).is_some_and(|(place, last)| match run.triage_bytes {
        Some(bytes) => *place >= bytes,
        None => last.at > run.created_at,
    });
    let order = if later { ClaimOrder::SnapshotFirst } else { ClaimOrder::ClaimFirst };
    policy::next_status(id, present, &Evidence { seen, run: &run.run_id, order, at: runner.ambient.now() })
}

impl<'a> Settling<'a> {
    fn new(runner: &'a Runner, run: &'a RunRecord, status: RunStatus, extent: Extent) -> Result<Self, RunnerError> {
        let (view, scope) = (runner.store.view()?, run.scope.to_string());
        Ok(Self { runner, run, view, scope, status, extent })
    }

    fn settle(&self, outcome: &mut Outcome) -> Result<Life, RunnerError> {
        let mut ground = self.ground();
        let candidates = ground.as_ref().map(|ground| self.candidates(ground, outcome)).unwrap_or_default();
        let concerned = candidates.iter().map(|candidate| self.view.finding(candidate.index).id);
        let about: HashSet<&str> = concerned.chain(ids(&outcome.findings)).collect();
        let said = self.runner.store.last_said(&about)?;
        let (mut known, mut recognised) = (Vec::new(), Vec::new());
        if let Some(ground) = &mut ground {
            known = candidates.iter().filter_map(|candidate| self.look_up(candidate, &said, ground)).collect();
            let before: Vec<FindingId> = outcome.findings.iter().map(|finding| finding.finding_id.clone()).collect();
            self.recognise(ground, &known, &mut outcome.findings);
            recognised = renamed(outcome, &before);
        }
        let raised: HashSet<FindingId> = outcome.findings.iter().map(|finding| finding.finding_id.clone()).collect();
        let mut life = Life { recognised, ..Life::default() };
        let mut dispositions = Vec::new();
        for finding in &mut outcome.findings {
            let present = Present::of(said.about(&finding.finding_id).map(|(_, last)| last));
            finding.status = present.status();
            // That nobody looked at again: what became of it is seen by its code alone, and that is what it was.
            let carried = outcome.coverage.carried_from(&finding.finding_id).is_some();
            let says = !carried || matches!(present, Present::Confirmed | Present::Obsolete);
            // Old code tells nothing about what became of a finding since.
            if says
                && self.sight().layer() > policy::Layer::Past
                && let Some(line) = self.judge(&finding.finding_id, present, Seen::Raised, &said)
            {
                finding.status = line.status;
                dispositions.push(line);
            }
        }
        if let Some(ground) = &mut ground {
            let coverage = Coverage::of(outcome, &self.run.reviewer);
            let mut recheck = None;
            for known in known.iter().filter(|known| !raised.contains(&known.id)) {
                let (seen, moved) = self.look_at(known, ground, &coverage, &mut recheck);
                dispositions.extend(seen.and_then(|seen| self.judge(&known.id, known.present, seen, &said)));
                life.moved.extend(moved);
            }
            life.flip_flops = self.flip_flops(ground, &outcome.findings);
        }
        let reports = std::mem::take(&mut outcome.findings);
        let before = FindingCounts::of(&reports);
        let Held { raised, held_back } = self.hold_back(reports, &said, ground.as_mut())?;
        (outcome.findings, life.held_back) = (raised, held_back);
        self.tell(outcome, &mut life, &dispositions, before);
        self.runner.store_of_run(self.run).append_unless_said(dispositions, &said)?;
        Ok(life)
    }

    fn sight(&self) -> Sight<'_> {
        Sight {
            scope: &self.scope,
            branch: &self.run.branch,
            worktree: &self.run.worktree,
            head: &self.run.head_commit,
            snapshot: &self.run.snapshot_commit,
        }
    }

    fn judge(&self, id: &FindingId, present: Present, seen: Seen, said: &LastSaid) -> Option<Disposition> {
        judge(self.runner, self.run, id, present, seen, said)
    }

    /// What the run saw of a finding that it did not report, and where that stands now if it has moved.
    fn look_at(
        &self,
        known: &Known,
        ground: &mut Ground<'_>,
        coverage: &Coverage,
        recheck: &mut Option<Recheck>,
    ) -> (Option<Seen>, Option<Moved>) {
        let Some(reach) = known.reach else { return (None, None) };
        let moved = |path: &str, lines: LineRange| {
            (path != known.path || lines != known.lines).then(|| Moved::new(known.id.clone(), path, lines))
        };
        let touched = reach == Reach::Everywhere || coverage.shows(&known.path, &known.stand);
        match &known.stand {
            Stand::Unchanged { path, lines } => (None, moved(path, *lines)),
            _ if known.present == Present::Dismissed => (None, None),
            Stand::Changed { path, lines } if coverage.has(&known.path, &known.stand) => {
                let silence = Silence { reviewer: &self.run.reviewer, status: self.status, extent: self.extent };
                if !policy::confirms(&silence, &known.reviewer, known.kind) {
                    return (None, None);
                }
                if self.run.reviewer != DETERMINISTIC {
                    return (Some(Seen::NotRaised), None);
                }
                let recheck =
                    recheck.get_or_insert_with(|| Recheck::new(&self.runner.settings.smells, self.runner.lessons()));
                let reported = || self.runner.store.finding_in(&self.view, &known.id);
                let problem = (*lines, known.lines.count());
                match recheck.ask((path, || ground.content(path)), known.kind, problem, reported) {
                    Answer::StillThere(lines) => (Some(Seen::StillThere), moved(path, lines)),
                    Answer::NotThere => (Some(Seen::NotRaised), None),
                    Answer::Unknown => (None, None),
                }
            }
            Stand::Changed { .. } => (None, None),
            Stand::Deleted { .. } => (touched.then_some(Seen::CodeDeleted), None),
            Stand::FileGone => (touched.then_some(Seen::FileGone), None),
        }
    }

    /// Findings that ask for the code as it was before an earlier finding was addressed.
    fn flip_flops(&self, ground: &mut Ground<'_>, findings: &[Finding]) -> Vec<FlipFlop> {
        let replacing: Vec<&Finding> = findings.iter().filter(|finding| replacement(finding).is_some()).collect();
        if replacing.is_empty() {
            return Vec::new();
        }
        let paths: HashSet<&str> = replacing.iter().map(|finding| finding.repo_relative_path.as_str()).collect();
        let addressed = self.addressed(ground, &paths);
        let mut found = Vec::new();
        for finding in replacing {
            let path = finding.repo_relative_path.as_str();
            let there = |stand: &Stand| stand.place().is_none_or(|(place, _)| place == path);
            let mut candidates = addressed.iter().filter(|known| known.id != finding.finding_id && there(&known.stand));
            let Some(text) = ground.content(path).and_then(|text| applied(&text, finding)) else { continue };
            let undone = candidates.find(|known| {
                let changed = !matches!(known.stand, Stand::Unchanged { .. });
                let then = ground.would_stand(&known.snapshot, &known.path, known.lines, (path, &text));
                changed && matches!(then, Some(Stand::Unchanged { .. }))
            });
            found.extend(
                undone.map(|known| FlipFlop { finding_id: finding.finding_id.clone(), undoes: known.id.clone() }),
            );
        }
        found
    }

    /// Puts into words what was done, for whoever looks at the run.
    fn tell(&self, outcome: &mut Outcome, life: &mut Life, dispositions: &[Disposition], before: FindingCounts) {
        for flip in &life.flip_flops {
            let finding = outcome.findings.iter_mut().find(|finding| finding.finding_id == flip.finding_id);
            let text = format!("This asks to undo what {} asked for, which was addressed.", flip.undoes);
            // One that was carried over says it already.
            if let Some(finding) = finding.filter(|finding| !finding.explanation.ends_with(&text)) {
                finding.explanation = [finding.explanation.as_str(), &text].join(" ").trim().to_owned();
            }
            outcome
                .notes
                .push(format!("{} is a flip-flop: it asks to undo what {} asked for", flip.finding_id, flip.undoes));
        }
        let raised: HashSet<&str> = ids(&outcome.findings).collect();
        let judged = |status| {
            let earlier = dispositions.iter().filter(|line| !raised.contains(line.finding_id.as_str()));
            earlier.filter(|line| line.status == status).count()
        };
        for (status, what) in [
            (FindingStatus::Addressed, "confirmed as addressed"),
            (FindingStatus::Obsolete, "obsolete: the code is gone"),
            (FindingStatus::Unresolved, "unresolved: the problem is still there"),
        ] {
            match judged(status) {
                0 => {}
                n => outcome.notes.push(format!("{} {what}", count(n, "earlier finding"))),
            }
        }
        hold::tell(outcome, &life.held_back, before);
    }
}

impl Coverage {
    /// Of the built-in reviewer carried hunks count as covered ones: it is asked again about every finding whose code has
    /// changed.
    fn of(outcome: &Outcome, reviewer: &str) -> Self {
        let (mut hunks, mut carried): (HashMap<String, Vec<LineRange>>, HashMap<String, Vec<LineRange>>) =
            Default::default();
        for file in &outcome.coverage.files {
            hunks.entry(file.path.clone()).or_default().extend(&file.hunks);
        }
        let asked = if reviewer == DETERMINISTIC { &mut hunks } else { &mut carried };
        for file in outcome.coverage.carried.iter().map(|carried| &carried.file) {
            asked.entry(file.path.clone()).or_default().extend(&file.hunks);
        }
        let deleted = outcome.coverage.left_out.iter().filter(|file| file.reason == LeftOutReason::Deleted);
        Self {
            hunks,
            carried,
            // Of a run that did not come to its end the list is only a plan.
            deleted: match outcome.status {
                RunStatus::Completed => deleted.map(|file| file.path.clone()).collect(),
                _ => HashSet::new(),
            },
        }
    }

    /// Whether the run shows the code, as it is now, at a place where something stood.
    fn shows(&self, old_path: &str, stand: &Stand) -> bool {
        self.has(old_path, stand) || self.is_among(&self.carried, stand)
    }

    /// Whether the run covered the place at which something stands or stood, in a file that was called `old_path`.
    fn has(&self, old_path: &str, stand: &Stand) -> bool {
        match stand {
            Stand::FileGone => self.deleted.contains(old_path),
            _ => self.is_among(&self.hunks, stand),
        }
    }

    fn is_among(&self, hunks: &HashMap<String, Vec<LineRange>>, stand: &Stand) -> bool {
        let (path, lines) = match stand {
            Stand::Unchanged { path, lines } | Stand::Changed { path, lines } => (path, *lines),
            // A hunk that only takes away names the line before it.
            Stand::Deleted { path, after } => (path, LineRange::new((*after).max(1), after.saturating_add(1))),
            Stand::FileGone => return false,
        };
        hunks.get(path).is_some_and(|hunks| hunks.iter().any(|hunk| hunk.overlaps(lines)))
    }
}

/// The findings that got another id; carried ones are still the carried ones. `before` are the ids that they had.
fn renamed(outcome: &mut Outcome, before: &[FindingId]) -> Vec<Recognised> {
    let renamed = before.iter().zip(&outcome.findings).filter(|(old, finding)| **old != finding.finding_id);
    let renamed =
        renamed.map(|(old, finding)| Recognised { finding_id: finding.finding_id.clone(), reported_as: old.clone() });
    let renamed: Vec<Recognised> = renamed.collect();
    for id in outcome.coverage.carried.iter_mut().flat_map(|carried| &mut carried.findings) {
        if let Some(new) = renamed.iter().find(|renamed| renamed.reported_as == *id) {
            *id = new.finding_id.clone();
        }
    }
    renamed
}

fn ids(findings: &[Finding]) -> impl Iterator<Item = &str> {
    findings.iter().map(|finding| finding.finding_id.as_str())
}

fn replacement(finding: &Finding) -> Option<(&str, LineRange)> {
    let suggestion = finding.suggestion.as_ref()?;
    Some((suggestion.replacement.as_deref()?, suggestion.lines.unwrap_or(finding.lines())))
}

/// A text with a finding's replacement in it.
fn applied(text: &[u8], finding: &Finding) -> Option<Vec<u8>> {
    let (replacement, lines) = replacement(finding)?;
    let mut starts = vec![0];
    starts.extend(memchr::memchr_iter(b'\n', text).map(|at| at + 1));
    let (from, to) = (lines.start.checked_sub(1)? as usize, lines.end as usize);
    let begin = *starts.get(from)?;
    let end = starts.get(to).copied().unwrap_or(text.len());
    let mut changed = text.get(..begin)?.to_vec();
    changed.extend_from_slice(replacement.as_bytes());
    if !replacement.is_empty() && !replacement.ends_with('\n') {
        changed.push(b'\n');
    }
    changed.extend_from_slice(text.get(end..)?);
    Some(changed)
}

#[cfg(test)]
mod tests;
