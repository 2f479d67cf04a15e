//! Decides which hunks of a run are not sent again, because earlier runs with the same reviewer profile have reviewed
//! them unchanged.
//!
//! The worker decides once in a run's life, before it sends anything, and writes the decision into the journal.
//!
//! - The rules are those of [`crate::policy::carry`].
//! - Every finding of a carried hunk is carried too, at its place in this snapshot. A hunk is sent if one of its
//!   findings cannot be located.
//! - Duplicate-code findings of the built-in reviewer are not carried: every run searches the whole snapshot for
//!   duplicates.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::domain::{
    CarriedFile, Coverage, FileCoverage, Finding, FindingId, JournalEntry, Kind, LineRange, RunEvent, RunId, RunOutput,
    RunRecord, RunStatus, text::format_count,
};
use crate::git::{ChangeKind, Changeset, FileChange};
use crate::policy::ReviewerProfile;
use crate::policy::anchor::AnchorLocation;
use crate::policy::carry::{self, HunkDecision, HunkToReview, MAX_EARLIER_RUNS, ReviewedHunk, SendReason};
use crate::review::{JournalState, ReviewPlan};
use crate::runner::finding_lifecycle::SnapshotFiles;
use crate::runner::known_runs::MAX_SEARCHED_RUNS;
use crate::runner::reviewer_access::reviewer_identity;
use crate::runner::worker::RunWorker;
use crate::runner::{BUILTIN_REVIEWER, RunnerError, Worker, hunk_keys, known_runs};
use crate::store::StoreError;

/// An ended run with its hunks, which are loaded on demand.
struct EarlierRun {
    run: RunId,
    hunks: OnceCell<Vec<EarlierHunk>>,
}

/// A hunk that an earlier run has reviewed or carried over.
struct EarlierHunk {
    path: String,
    lines: LineRange,
    key: String,
    /// The run that put the hunk before its reviewer.
    from: RunId,
}

/// A hunk of this run's change that is not reviewed yet.
struct OpenHunk<'a> {
    file: &'a FileChange,
    lines: LineRange,
    key: &'a str,
}

/// A finding that may be carried over.
struct CarriedFinding {
    finding: Finding,
    /// Index of the hunk to which the finding belongs; `None` for a finding outside of all hunks.
    hunk: Option<usize>,
}

impl Worker<'_> {
    /// Returns the keys of a change's hunks for a reviewer, in the order of the files.
    pub(in crate::runner) fn hunk_keys(&self, reviewer: &str, change: &Changeset) -> Vec<hunk_keys::HunkKeys> {
        match reviewer {
            BUILTIN_REVIEWER => hunk_keys::compute_file_keys(change),
            _ => hunk_keys::compute_hunk_keys(&self.services.repo, change),
        }
    }

    /// Counts the hunks of a change that an ended run with the reviewer profile of `run` has reviewed unchanged. A run
    /// carries over at most these: it sends hunks again whose findings have moved or wait for a verdict.
    pub(in crate::runner) fn count_reviewed_hunks(
        &self,
        run: &RunRecord,
        change: &Changeset,
    ) -> Result<usize, RunnerError> {
        let earlier = self.find_earlier_runs(run)?;
        if earlier.is_empty() {
            return Ok(0);
        }
        let keys = self.hunk_keys(&run.reviewed_by.name, change);
        let open: Vec<OpenHunk<'_>> = change
            .files
            .iter()
            .zip(&keys)
            .flat_map(|(file, keys)| {
                let keyed = file.hunks.iter().zip(keys);
                keyed.map(move |(hunk, key)| OpenHunk { file, lines: hunk.new_range(), key })
            })
            .collect();
        let wanted: Vec<HunkToReview<'_>> = open.iter().map(to_wanted).collect();
        let fates = carry::carry_over(&wanted, self.reviewed_hunks(&earlier));
        Ok(fates.iter().filter(|fate| matches!(fate, HunkDecision::Carry { .. })).count())
    }

    /// Returns the hunks of each run, loaded when they are needed.
    fn reviewed_hunks<'a>(&self, earlier: &'a [EarlierRun]) -> impl Iterator<Item = Vec<ReviewedHunk<'a>>> {
        earlier.iter().map(|earlier| {
            let hunks = earlier.hunks.get_or_init(|| self.load_reviewed_hunks(&earlier.run));
            hunks.iter().map(|hunk| ReviewedHunk { path: &hunk.path, key: &hunk.key }).collect()
        })
    }

    /// Returns the newest ended runs with the same reviewer profile as `run`.
    fn find_earlier_runs(&self, run: &RunRecord) -> Result<Vec<EarlierRun>, RunnerError> {
        let view = self.services.store.runs_view()?;
        let eyes = ReviewerProfile {
            reviewer: &run.reviewed_by.name,
            model: &run.reviewed_by.model,
            reasoning_effort: &run.reviewed_by.reasoning_effort,
            policy_version: &run.subject.prompt_policy_version,
        };
        let alike = known_runs::run_rows(&view).filter(|row| {
            let its = ReviewerProfile {
                reviewer: row.reviewer,
                model: row.model,
                reasoning_effort: row.reasoning_effort,
                policy_version: row.policy_version,
            };
            row.status.is_terminal() && row.status != RunStatus::Skipped && its == eyes && row.id != run.run_id.as_str()
        });
        let alike: Vec<&str> = alike.map(|row| row.id).take(MAX_SEARCHED_RUNS).collect();
        let forgotten = self.services.team().find_forgotten_runs(alike.iter().copied())?;
        let counting = alike.into_iter().filter(|run| !forgotten.contains(*run));
        let ids = counting.filter_map(|run| run.parse::<RunId>().ok()).take(MAX_EARLIER_RUNS);
        Ok(ids.map(|run| EarlierRun { run, hunks: OnceCell::new() }).collect())
    }

    /// Returns the hunks that a run has reviewed or carried over. Returns no hunks if the output of the run is missing
    /// or unreadable, or findings of it are lost.
    fn load_reviewed_hunks(&self, run: &RunId) -> Vec<EarlierHunk> {
        let store = &self.services.store;
        let load = || match store.output_damage(run)? {
            Some(damage) if damage.lost > 0 => Ok(None),
            _ => store.coverage(run),
        };
        let coverage = load().unwrap_or_else(|error: StoreError| {
            tracing::warn!(%run, %error, "nothing is carried over from this run");
            None
        });
        let Coverage { files, carried, .. } = coverage.unwrap_or_default();
        let own = files.into_iter().map(|file| (file, run.clone()));
        let files = own.chain(carried.into_iter().map(|carried| (carried.file, carried.from)));
        let hunks = files.flat_map(|(file, from)| {
            let FileCoverage { path, hunks, keys } = file;
            hunks.into_iter().zip(keys).map(move |(lines, key)| EarlierHunk {
                path: path.clone(),
                lines,
                key,
                from: from.clone(),
            })
        });
        hunks.collect()
    }
}

impl RunWorker<'_> {
    /// Removes the hunks from the plan that need not be sent: those in the journal, or those decided now, which are
    /// then written into the journal. Returns the carried findings.
    pub(in crate::runner) fn carry_over(
        &mut self,
        change: &Changeset,
        plan: &mut ReviewPlan,
        entries: &[JournalEntry],
    ) -> Result<Vec<Finding>, RunnerError> {
        let replayed = JournalState::from_events(entries.iter().map(|entry| &entry.event));
        // After something was sent, the rest of the conversation depends on the hunks that were sent.
        let is_decided =
            |entry: &JournalEntry| matches!(entry.event, RunEvent::Planned { .. } | RunEvent::TurnAnswered { .. });
        plan.carried = replayed.carried().to_vec();
        if !self.record.full && !entries.iter().any(is_decided) {
            let done: HashSet<&str> = replayed
                .covered()
                .iter()
                .chain(plan.carried.iter().map(|carried| &carried.file))
                .map(|file| file.path.as_str())
                .collect();
            let (carried, findings) = self.decide_carry(change, plan, &done)?;
            let recorded: HashSet<FindingId> =
                replayed.findings().into_iter().map(|finding| finding.finding_id).collect();
            let new = findings.into_iter().filter(|finding| !recorded.contains(&finding.finding_id));
            self.buffer.extend(new.map(|finding| RunEvent::Finding { finding: Box::new(finding) }));
            let events = carried.iter().cloned().map(|carried| RunEvent::Carried { carried: Box::new(carried) });
            self.buffer.extend(events);
            plan.carried.extend(carried);
            self.flush()?;
            if self.record.outcome.coverage.hunks_carried == 0 {
                self.record_carried(plan)?;
            }
        }
        if plan.carried.is_empty() {
            return Ok(Vec::new());
        }
        let ids: HashSet<&FindingId> = plan.carried.iter().flat_map(|carried| &carried.findings).collect();
        let mut known = self.services.replay_journal(&self.record.run_id)?.findings();
        known.retain(|finding| ids.contains(&finding.finding_id));
        Ok(known)
    }

    fn decide_carry(
        &mut self,
        change: &Changeset,
        plan: &ReviewPlan,
        done: &HashSet<&str>,
    ) -> Result<(Vec<CarriedFile>, Vec<Finding>), RunnerError> {
        let earlier = self.services.worker().find_earlier_runs(&self.record)?;
        if earlier.is_empty() {
            return Ok(Default::default());
        }
        let files: HashMap<&str, &FileChange> = change.files.iter().map(|file| (file.path.as_str(), file)).collect();
        let open: Vec<OpenHunk<'_>> = plan
            .files
            .iter()
            .filter(|file| !done.contains(file.path.as_str()))
            .filter_map(|planned| Some((planned, *files.get(planned.path.as_str())?)))
            .flat_map(|(planned, file)| {
                let keys = planned.keys.iter().map(String::as_str).chain(std::iter::repeat(""));
                planned.hunks.iter().zip(keys).map(move |(lines, key)| OpenHunk { file, lines: *lines, key })
            })
            .collect();
        let wanted: Vec<HunkToReview<'_>> = open.iter().map(to_wanted).collect();
        let worker = self.services.worker();
        let mut fates = carry::carry_over(&wanted, worker.reviewed_hunks(&earlier));
        let guests = self.collect_carried_findings(&earlier, &open, &mut fates)?;
        self.send_hunks_to_judge(&open, &guests, &mut fates)?;
        let found = |fate: HunkDecision| carry_source(&earlier, fate);
        let mut carried: BTreeMap<(&str, &RunId), CarriedFile> = BTreeMap::new();
        for (hunk, fate) in open.iter().zip(&fates) {
            let Some(from) = found(*fate) else { continue };
            let path = hunk.file.path.as_str();
            let file = carried.entry((path, from)).or_insert_with(|| CarriedFile {
                file: FileCoverage { path: path.to_owned(), hunks: Vec::new(), keys: Vec::new() },
                from: from.clone(),
                findings: Vec::new(),
            });
            file.file.hunks.push(hunk.lines);
            file.file.keys.push(hunk.key.to_owned());
        }
        let mut findings = Vec::new();
        for CarriedFinding { finding, hunk } in guests {
            let with = match hunk {
                Some(hunk) => {
                    found(fates[hunk]).and_then(|from| carried.get_mut(&(open[hunk].file.path.as_str(), from)))
                }
                None => carried.values_mut().next(),
            };
            if let Some(with) = with {
                with.findings.push(finding.finding_id.clone());
                findings.push(finding);
            }
        }
        tracing::debug!(?fates, "what is carried over");
        Ok((carried.into_values().collect(), findings))
    }

    /// Collects the findings of carried hunks at their places in this snapshot. Marks a hunk as sent if the code of one
    /// of its findings has changed.
    fn collect_carried_findings(
        &mut self,
        earlier: &[EarlierRun],
        open: &[OpenHunk<'_>],
        fates: &mut [HunkDecision],
    ) -> Result<Vec<CarriedFinding>, RunnerError> {
        let mut by_source: BTreeMap<usize, HashMap<usize, usize>> = BTreeMap::new();
        for (index, fate) in fates.iter().enumerate() {
            if let HunkDecision::Carry { run, hunk } = *fate {
                by_source.entry(run).or_default().insert(hunk, index);
            }
        }
        let (mut guests, mut taken): (Vec<CarriedFinding>, HashSet<FindingId>) = (Vec::new(), HashSet::new());
        let services = self.services;
        let snapshot = self.record.subject.snapshot_commit.clone();
        let mut ground: Option<SnapshotFiles<'_>> = None;
        for (source, carried) in by_source {
            let Some(EarlierRun { run, hunks }) = earlier.get(source) else { continue };
            let Some(output) = services.store.output(run)? else { continue };
            let hunks = hunks.get().map(Vec::as_slice).unwrap_or_default();
            let then = output.run.subject.snapshot_commit.clone();
            // A run of another machine may have reviewed code that was never committed.
            let is_known = services.repo.tree_id(&then).is_ok();
            for mut finding in self.collect_reported_findings(output) {
                let path = finding.repo_relative_path.clone();
                let (numbers, lines): (Vec<usize>, Vec<LineRange>) = hunks
                    .iter()
                    .enumerate()
                    .filter(|(_, hunk)| hunk.path == path)
                    .map(|(at, hunk)| (at, hunk.lines))
                    .unzip();
                let of = carry::find_nearest_hunk(finding.lines(), &lines).and_then(|at| numbers.get(at));
                let hunk = match of {
                    Some(of) => match carried.get(of) {
                        Some(hunk) => Some(*hunk),
                        // The hunk is sent, or is no longer part of the change.
                        None => continue,
                    },
                    None => None,
                };
                let place = if self.record.reviewed_by.name == BUILTIN_REVIEWER {
                    // The keys of the built-in reviewer cover whole files.
                    Some((path, finding.lines()))
                } else if !is_known {
                    let from = of.and_then(|of| hunks.get(*of)).map(|hunk| hunk.lines);
                    let to = hunk.map(|hunk| open[hunk].lines);
                    from.zip(to).and_then(|(from, to)| Some((path, shift_with_hunk(finding.lines(), from, to)?)))
                } else {
                    if ground.is_none() {
                        let made = SnapshotFiles::new(&services.repo, &then, &snapshot);
                        ground = made
                            .or_else(|_| {
                                SnapshotFiles::new(&services.repo, &self.record.subject.base_commit, &snapshot)
                            })
                            .ok();
                    }
                    match ground.as_mut().and_then(|ground| ground.locate_lines(&then, &path, finding.lines())) {
                        Some(AnchorLocation::Unchanged { path, lines }) => Some((path, lines)),
                        _ => None,
                    }
                };
                let place = place.filter(|(path, _)| hunk.is_none_or(|hunk| open[hunk].file.path == *path));
                match (place, hunk) {
                    (Some((path, lines)), _) => {
                        if taken.insert(finding.finding_id.clone()) {
                            self.move_finding(&mut finding, path, lines)?;
                            guests.push(CarriedFinding { finding, hunk });
                        }
                    }
                    (None, Some(hunk)) => fates[hunk] = HunkDecision::Send(SendReason::Touched),
                    (None, None) => {}
                }
            }
        }
        guests.retain(|guest| guest.hunk.is_none_or(|hunk| matches!(fates[hunk], HunkDecision::Carry { .. })));
        Ok(guests)
    }

    /// Returns everything that a run reported about the code, raised or held back. Each finding gets the id that its
    /// own code gives, because the end of this run matches it with older findings again.
    fn collect_reported_findings(&self, output: RunOutput) -> impl Iterator<Item = Finding> + use<> {
        let builtin = self.record.reviewed_by.name == BUILTIN_REVIEWER;
        let own: HashMap<FindingId, FindingId> =
            output.recognised.into_iter().map(|known| (known.finding_id, known.reported_as)).collect();
        let listed = self.services.find_listed_ids(&output.run);
        let reports = output.findings.into_iter().chain(output.held_back.into_iter().map(|held| held.finding));
        // Every run searches the files that it leaves out again.
        let left_out: HashSet<String> = output.coverage.left_out.into_iter().map(|file| file.path).collect();
        let reports = reports.filter(move |finding| {
            let is_found_again = builtin && finding.kind == Kind::DuplicateCode;
            !is_found_again && !left_out.contains(&finding.repo_relative_path)
        });
        reports.map(move |mut finding| {
            // The id in the run of a member may be that of another problem.
            let id = listed.get(&finding.finding_id).or_else(|| own.get(&finding.finding_id));
            if let Some(id) = id {
                finding.finding_id.clone_from(id);
            }
            finding
        })
    }

    /// Moves a finding of an earlier run to its place in this run.
    fn move_finding(&mut self, finding: &mut Finding, path: String, lines: LineRange) -> Result<(), RunnerError> {
        let reported_at = finding.reported_at;
        self.stamp(finding)?;
        finding.reported_at = reported_at;
        if let Some(replaced) = finding.suggestion.as_mut().and_then(|suggestion| suggestion.lines.as_mut()) {
            let moved = |line: u32| line.saturating_sub(finding.line_start).saturating_add(lines.start);
            // The suggestion replaces lines before the anchor, which is rare.
            *replaced = match replaced.start >= finding.line_start {
                true => LineRange::new(moved(replaced.start), moved(replaced.end)),
                false => {
                    let before = finding.line_start - replaced.start;
                    let first = lines.start.saturating_sub(before).max(1);
                    LineRange::new(first, first.saturating_add(replaced.end.saturating_sub(replaced.start)))
                }
            };
        }
        (finding.repo_relative_path, finding.line_start, finding.line_end) = (path, lines.start, lines.end);
        Ok(())
    }

    /// Marks hunks as sent that contain a finding from a later run about other code, because only a new review shows
    /// its current state. The built-in reviewer checks such findings at the end of every run.
    fn send_hunks_to_judge(
        &self,
        open: &[OpenHunk<'_>],
        guests: &[CarriedFinding],
        fates: &mut [HunkDecision],
    ) -> Result<(), RunnerError> {
        if self.record.reviewed_by.name == BUILTIN_REVIEWER {
            return Ok(());
        }
        let is_carried = |fate: &HunkDecision| matches!(fate, HunkDecision::Carry { .. });
        let files = open.iter().zip(fates.iter()).filter(|(_, fate)| is_carried(fate)).map(|(hunk, _)| hunk.file);
        let paths: HashSet<&str> =
            files.flat_map(|file| [Some(file.path.as_str()), file.old_path.as_deref()]).flatten().collect();
        if paths.is_empty() {
            return Ok(());
        }
        let here: HashSet<&FindingId> = guests.iter().map(|guest| &guest.finding.finding_id).collect();
        for (id, path, lines) in self.services.findings().find_places_to_judge(&self.record, &paths)? {
            for (hunk, fate) in open.iter().zip(fates.iter_mut()) {
                if is_carried(fate) && !here.contains(&id) && hunk.file.path == path && hunk.lines.overlaps(lines) {
                    *fate = HunkDecision::Send(SendReason::ToJudge);
                }
            }
        }
        Ok(())
    }

    /// Records the number of carried hunks and the saved tokens.
    fn record_carried(&mut self, plan: &ReviewPlan) -> Result<(), RunnerError> {
        let mut from: BTreeMap<&RunId, usize> = BTreeMap::new();
        for carried in &plan.carried {
            *from.entry(&carried.from).or_default() += carried.file.hunks.len();
        }
        let Some((most, _)) = from.iter().max_by_key(|(_, hunks)| **hunks) else { return Ok(()) };
        let most = (*most).clone();
        let others = match from.len() {
            1 => String::new(),
            n => format!(" and {}", format_count(n - 1, "other run")),
        };
        let carried: usize = from.values().sum();
        let all: usize = plan.files.iter().map(|file| file.hunks.len()).sum();
        let open = plan.open_files();
        let left = all.saturating_sub(carried);
        let rest = if left == 0 { "nothing is left to review".to_owned() } else { format!("{left} to review") };
        let said = format!("; {carried} of {} carried over from {most}{others}, {rest}", format_count(all, "hunk"));
        let hunks = plan.carried.iter().flat_map(|carried| &carried.file.hunks);
        let saved: u64 = hunks.map(|hunk| u64::from(hunk.count())).sum();
        let saved = reviewer_identity::estimate_saved_tokens(&self.record.reviewed_by.name, saved, open.is_empty());
        let mut coverage = self.record.outcome.coverage.clone();
        coverage.set_carried(&plan.carried);
        let (files_carried, hunks_carried) = (coverage.files_carried, coverage.hunks_carried);
        self.record = self.services.store.update_run(&self.record.run_id, self.now(), |record| {
            (record.outcome.coverage.files_carried, record.outcome.coverage.hunks_carried) =
                (files_carried, hunks_carried);
            record.links.carried_over_from.get_or_insert(most);
            record.usage.saved_token_estimate = record.usage.saved_token_estimate.saturating_add(saved);
            record.usage.prompt_estimate = record.usage.prompt_estimate.saturating_sub(saved);
            record.decision.push_str(&said);
        })?;
        Ok(())
    }
}

/// Returns the run that put a carried hunk before its reviewer.
fn carry_source(earlier: &[EarlierRun], fate: HunkDecision) -> Option<&RunId> {
    match fate {
        HunkDecision::Carry { run, hunk } => Some(&earlier.get(run)?.hunks.get()?.get(hunk)?.from),
        HunkDecision::Send(_) => None,
    }
}

/// Returns the lines of a finding after its hunk has moved. Equal keys of both hunks mean equal code in the hunk and a few lines
/// around it; `None` for lines beyond these.
fn shift_with_hunk(lines: LineRange, from: LineRange, to: LineRange) -> Option<LineRange> {
    let margin = hunk_keys::MIN_KEY_CONTEXT_LINES;
    let known = LineRange::new(from.start.saturating_sub(margin).max(1), from.end.saturating_add(margin));
    let shifted = |line: u32| u32::try_from(i64::from(line) + i64::from(to.start) - i64::from(from.start)).ok();
    known.contains(lines).then_some(())?;
    Some(LineRange::new(shifted(lines.start)?.max(1), shifted(lines.end)?.max(1)))
}

fn to_wanted<'a>(hunk: &OpenHunk<'a>) -> HunkToReview<'a> {
    let renamed = hunk.file.kind == ChangeKind::Renamed;
    HunkToReview { path: &hunk.file.path, old_path: hunk.file.old_path.as_deref().filter(|_| renamed), key: hunk.key }
}
