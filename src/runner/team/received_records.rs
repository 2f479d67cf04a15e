//! Takes over what other machines have sent: reviews become runs of the store, decisions become its dispositions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::own_records::walk_decisions;
use super::signers::describe_signature;
use super::{SyncError, SyncReport, TeamSync};
use crate::domain::text::sanitize_line;
use crate::domain::{
    Actor, DecisionId, Disposition, Finding, FindingCounts, FindingId, FindingStatus, MachineName, RunId, RunOrigin,
    RunOutput, RunRecord, SharedDecision, SharedReview, TeamClock, TeamOrigin, TeamRecord,
};
use crate::git::LogSignature;
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::exchange;
use crate::policy::{MergedDecision, merge_decisions};
use crate::store::triage::team_group;
use crate::store::{
    DisputeSide, LearningPolicy, RefusedTeamRun, SetAsideSegment, Store, StoreError, TeamMembership, TeamProgress,
};
use crate::team::LogVersion;
use crate::team::outgoing::detach_from_machine;

/// Number of equal places in a file that are tried when the id of a finding is compared with the code of HEAD.
const MAX_ORDINALS: u32 = 8;
/// Greatest number of tokens or milliseconds of a run of others.
const MAX_FIGURE: u64 = 1_000_000_000_000;
/// Greatest cost of a run of others, in US dollars.
const MAX_COST: f64 = 1_000_000.0;
/// Greatest number of attempts of a run of others.
const MAX_ATTEMPTS: u32 = 1_000;
/// How long a decision from the future may have to wait so that it is looked at again by itself: 31 days, in milliseconds. Clocks of
/// honest machines differ by less.
const MAX_WAIT_MS: i64 = 31 * 86_400_000;
/// Maximum number of findings whose decisions wait.
const MAX_WAITING: usize = 1_000;
/// Maximum number of reviewers that answered in a run of others.
const MAX_ANSWERERS: usize = 100;

/// Records that are new here and not taken over yet.
#[derive(Debug, Default)]
pub struct ReceivedRecords {
    /// Size of the records in bytes.
    pub(super) bytes: usize,
    pub(super) reviews: Vec<SharedReview>,
    /// Learned patterns, in the form of an export.
    pub(super) patterns: Vec<serde_json::Value>,
    /// Findings that the new decisions are about.
    pub(super) decided: BTreeSet<FindingId>,
    /// Logs that were read. They count as read only when their records are taken over.
    pub(super) logs: Vec<ReadLog>,
}

/// Log that was read, with the number of its records.
#[derive(Debug)]
pub(super) struct ReadLog {
    pub(super) log: LogVersion,
    pub(super) signature: LogSignature,
    /// Number of records that this exchange has received.
    pub(super) new: u64,
    /// Number of records that earlier exchanges have received; 0 if this one has read nothing.
    pub(super) known: u64,
}

impl TeamSync<'_> {
    /// Takes over what is left of the new records, and records that the logs were read.
    pub(super) fn apply_received(
        &self,
        team: &TeamMembership,
        mut received: ReceivedRecords,
        progress: &mut TeamProgress,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        self.apply_records(team, &mut received, progress, report)?;
        let now = self.services.ambient.now();
        progress.reader = env!("CARGO_PKG_VERSION").to_owned();
        let read: Vec<MachineName> = received.logs.iter().map(|read| read.log.name.clone()).collect();
        for ReadLog { log, signature, new, known } in received.logs {
            if log.name == team.log {
                progress.own_received = log.version;
                continue;
            }
            let state = progress.logs.entry(log.name).or_default();
            state.version = log.version;
            // What was received before this machine was elsewhere is still here.
            state.records = state.records.max(known) + new;
            state.signed = describe_signature(&signature);
            if new > 0 {
                state.received_at = Some(now);
            }
        }
        progress.note_set_aside(&report.set_aside, &read);
        Ok(())
    }

    /// Takes over new records, and leaves none of them: reviews first, because decisions are about their findings.
    pub(super) fn apply_records(
        &self,
        team: &TeamMembership,
        received: &mut ReceivedRecords,
        progress: &mut TeamProgress,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        received.bytes = 0;
        let reviews = std::mem::take(&mut received.reviews);
        let outputs: Vec<_> = reviews.into_iter().map(|review| self.build_output(review)).collect();
        if Store::leaves_results_unsynced(outputs.len()) {
            progress.has_unsynced_results = true;
            self.services.store.write_team_progress(progress)?;
        }
        let refused = self.import_runs(outputs, progress)?;
        self.note_refused(&refused, report);
        self.take_patterns(&std::mem::take(&mut received.patterns));
        report.applied += self.apply_decisions(team, &std::mem::take(&mut received.decided), progress, report)?;
        Ok(())
    }

    /// Writes the results again that the last exchange has received, and that were lost because the machine went down.
    pub(super) fn restore_results(&self, progress: &mut TeamProgress) -> Result<(), SyncError> {
        let store = &self.services.store;
        let lost = store.find_lost_team_results()?;
        let mut outputs = Vec::new();
        if !lost.is_empty() {
            for log in store.received_team_logs()? {
                store.visit_received_team_lines(&log, |line| {
                    if let Ok(TeamRecord::Review(review)) = serde_json::from_str(line)
                        && lost.contains(&review.run.run_id)
                    {
                        outputs.push(self.build_output(*review));
                    }
                })?;
            }
        }
        let are_unsynced = Store::leaves_results_unsynced(outputs.len());
        // The mark stays if this fails: a failed exchange stores its progress, too.
        self.import_runs(outputs, progress)?;
        progress.has_unsynced_results = are_unsynced;
        Ok(())
    }

    /// Records runs of others, and returns those that were refused. If that has rewritten `runs.ndjson`, the own runs are looked
    /// for from its start again.
    fn import_runs(
        &self,
        outputs: Vec<(RunOutput, RunOrigin)>,
        progress: &mut TeamProgress,
    ) -> Result<Vec<RefusedTeamRun>, StoreError> {
        let import = self.services.store.import_team_runs(outputs, &progress.forgotten)?;
        if import.is_rewritten {
            progress.runs_bytes = 0;
        }
        Ok(import.refused)
    }

    /// Names the reviews that claim the ids of others, once for each pair of machines.
    fn note_refused(&self, refused: &[RefusedTeamRun], report: &mut SyncReport) {
        let mut by_machines: BTreeMap<(&MachineName, Option<&MachineName>), Vec<&RunId>> = BTreeMap::new();
        for RefusedTeamRun { run, claimant, maker } in refused {
            by_machines.entry((claimant, maker.as_ref())).or_default().push(run);
        }
        for ((claimant, maker), runs) in by_machines {
            let Some(first) = runs.first() else { continue };
            let segment = match runs.len() {
                1 => format!("the review {first}"),
                n => format!("{n} reviews, the first {first},"),
            };
            let maker = maker.map_or("this machine", MachineName::as_str);
            report.set_aside.push(SetAsideSegment {
                log: claimant.clone(),
                segment,
                reason: format!("it claims the id of a review of {maker}; forget the machine that you do not trust"),
                at: self.services.ambient.now(),
            });
        }
    }

    /// Merges learned patterns of others into those of this machine, if it learns at all. They count for what they are:
    /// patterns of elsewhere, each of which the import checks. A failure is logged.
    fn take_patterns(&self, exports: &[serde_json::Value]) {
        if !self.services.settings.learning.enabled || !self.services.settings.team.patterns {
            return;
        }
        let cache = KnowledgeCache::open(&self.services.paths.knowledge);
        let now = self.services.ambient.now();
        for export in exports {
            match exchange::merge_export(&cache, export.to_string().as_bytes(), now) {
                Ok(taken) if !taken.refused.is_empty() => {
                    tracing::warn!(refused = ?taken.refused, "patterns of the team")
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "patterns of the team are not taken over"),
            }
        }
    }

    /// Builds the result of a run from its record. Code that did not travel is taken from the repository where it is the same.
    fn build_output(&self, review: SharedReview) -> (RunOutput, RunOrigin) {
        let SharedReview { machine, person, mut run, mut findings, coverage } = review;
        detach_from_machine(&mut run);
        bound_figures(&mut run);
        run.outcome.finding_counts = FindingCounts::from_findings(&findings);
        let mut code = CodeSource::new(self, &run.subject.snapshot_commit);
        for finding in &mut findings {
            finding.detail_ref = format!("outputs/{}.json#{}", run.run_id, finding.finding_id);
            finding.pattern = None;
            if finding.quoted_code.is_empty() {
                finding.quoted_code = code.quote(finding).unwrap_or_default();
            }
        }
        run.outcome.coverage.clone_from(&coverage);
        let said = sanitize_line(person.label()).into_owned();
        let mut output = RunOutput::new(run);
        output.run.outcome.coverage.files.clear();
        output.run.outcome.coverage.carried.clear();
        output.run.outcome.coverage.left_out.clear();
        (output.findings, output.coverage) = (findings, coverage);
        output.notes.push(format!("reviewed on {machine} by {said}"));
        (output, RunOrigin { machine, person })
    }

    /// Merges the decisions about findings, and appends what the log lacks, with what stands at the end. Returns the number of
    /// findings whose status changed.
    fn apply_decisions(
        &self,
        team: &TeamMembership,
        findings: &BTreeSet<FindingId>,
        progress: &mut TeamProgress,
        report: &mut SyncReport,
    ) -> Result<usize, SyncError> {
        if findings.is_empty() {
            return Ok(0);
        }
        let store = self.services.store.clone().with_learning(LearningPolicy::Refused);
        let LoadedDecisions { decisions: all, ahead } = self.load_decisions(findings, &progress.forgotten)?;
        progress.waiting.retain(|finding, _| !findings.contains(finding));
        self.note_ahead(&ahead, progress, report);
        let person = self.person();
        let mut applied = 0;
        store.with_lock_as(|_| -> Result<(), SyncError> {
            let log = store.triage_log()?;
            // Decisions that were made since the own records were collected count, too.
            let mut decisions = all;
            let local = super::own_records::number_decisions(&log, team, &person);
            let known: HashSet<DecisionId> = decisions.iter().map(|decision| decision.id.clone()).collect();
            decisions.extend(
                local.into_iter().filter(|line| findings.contains(&line.finding_id) && !known.contains(&line.id)),
            );
            let mut by_finding: HashMap<&FindingId, Vec<&SharedDecision>> = HashMap::new();
            for decision in &decisions {
                by_finding.entry(&decision.finding_id).or_default().push(decision);
            }
            let merged = merge_decisions(&decisions);
            let known = find_known_lines(&log, team, findings);
            let mut lines = Vec::new();
            for (finding, outcome) in &merged {
                let about = by_finding.get(*finding).into_iter().flatten().copied();
                let missing = missing_lines(about, outcome.standing, known.get(finding));
                let before = missing.first().map(|line| line.previous);
                applied += usize::from(before != missing.last().map(|line| line.status));
                lines.extend(missing);
            }
            let is_collected = store.triage_bytes()? == progress.triage_bytes;
            store.append_dispositions(&lines)?;
            if is_collected {
                // None of these lines is a decision of this machine, so the next exchange need not look at them.
                progress.triage_bytes = store.triage_bytes()?;
            }
            for (finding, outcome) in &merged {
                match outcome.disputed.is_empty() {
                    true => drop(progress.disputes.remove(*finding)),
                    false => drop(progress.disputes.insert((*finding).clone(), describe_dispute(outcome))),
                }
            }
            Ok(())
        })?;
        Ok(applied)
    }

    /// Names the decisions that are too far ahead of this machine's clock, and remembers those whose time comes soon.
    fn note_ahead(
        &self,
        ahead: &BTreeMap<MachineName, Vec<(FindingId, TeamClock)>>,
        progress: &mut TeamProgress,
        report: &mut SyncReport,
    ) {
        let now = self.services.ambient.now();
        for (log, decisions) in ahead {
            for (finding, clock) in decisions {
                let from_ms = clock.ms.saturating_sub(TeamClock::MAX_AHEAD_MS);
                let is_soon = from_ms <= now.as_millisecond().saturating_add(MAX_WAIT_MS);
                if is_soon && (progress.waiting.len() < MAX_WAITING || progress.waiting.contains_key(finding)) {
                    let known = progress.waiting.entry(finding.clone()).or_insert(from_ms);
                    *known = from_ms.min(*known);
                }
            }
            let Some((first, _)) = decisions.first() else { continue };
            let segment = match decisions.len() {
                1 => format!("the decision about {first}"),
                n => format!("{n} decisions, the first about {first},"),
            };
            let days = TeamClock::MAX_AHEAD_MS / 86_400_000;
            let reason = format!("the clock is more than {days} days ahead: check the clock of its machine");
            // Records of a large log are taken over in several steps.
            if !report.set_aside.iter().any(|known| (&known.log, &known.reason) == (log, &reason)) {
                report.set_aside.push(SetAsideSegment { log: log.clone(), segment, reason, at: now });
            }
        }
    }

    /// Returns the decisions of all machines about these findings, own ones among them.
    fn load_decisions(
        &self,
        findings: &BTreeSet<FindingId>,
        forgotten: &[MachineName],
    ) -> Result<LoadedDecisions, SyncError> {
        let now = self.services.ambient.now();
        let store = &self.services.store;
        let mut decisions: BTreeMap<DecisionId, SharedDecision> = BTreeMap::new();
        let mut ahead: BTreeMap<MachineName, Vec<(FindingId, TeamClock)>> = BTreeMap::new();
        let mut take_line = |line: &str, log: Option<&MachineName>| {
            if line.contains("\"decision\"")
                && let Ok(TeamRecord::Decision(decision)) = serde_json::from_str::<TeamRecord>(line)
                && findings.contains(&decision.finding_id)
                && !forgotten.contains(&decision.id.machine)
            {
                if decision.id.clock.is_ahead_of(now) {
                    if let Some(log) = log {
                        ahead.entry(log.clone()).or_default().push((decision.finding_id, decision.id.clock));
                    }
                    return;
                }
                // Two decisions with one id are a mistake; every machine takes the same one.
                let kept = decisions.entry(decision.id.clone()).or_insert_with(|| decision.clone());
                if decision < *kept {
                    *kept = decision;
                }
            }
        };
        store.own_team_lines(0)?.0.iter().for_each(|line| take_line(line, None));
        for log in store.received_team_logs()? {
            store.visit_received_team_lines(&log, |line| take_line(line, Some(&log)))?;
        }
        Ok(LoadedDecisions { decisions: decisions.into_values().collect(), ahead })
    }
}

/// Decisions about some findings.
struct LoadedDecisions {
    decisions: Vec<SharedDecision>,
    /// Decisions that are too far ahead of this machine's clock and do not count, by log.
    ahead: BTreeMap<MachineName, Vec<(FindingId, TeamClock)>>,
}

/// Keeps the figures of a run of others in ranges that sums of them do not leave.
fn bound_figures(run: &mut RunRecord) {
    let usage = &mut run.usage;
    // Savings count where a request was answered without a review.
    usage.saved_token_estimate = 0;
    let numbers = [
        &mut usage.prompt_estimate,
        &mut usage.window_peak,
        &mut usage.window_limit,
        &mut usage.tokens.input,
        &mut usage.tokens.cached,
        &mut usage.tokens.output,
        &mut usage.tokens.reasoning,
        &mut usage.phase_timings.queued_ms,
        &mut usage.phase_timings.snapshot_ms,
        &mut usage.phase_timings.review_ms,
        &mut usage.phase_timings.resolve_ms,
    ];
    numbers.into_iter().for_each(|number| *number = (*number).min(MAX_FIGURE));
    usage.cost = if usage.cost.is_finite() { usage.cost.clamp(0.0, MAX_COST) } else { 0.0 };
    usage.answered_by.truncate(MAX_ANSWERERS);
    for answerer in &mut usage.answered_by {
        let tokens = &mut answerer.tokens;
        for number in [&mut tokens.input, &mut tokens.cached, &mut tokens.output, &mut tokens.reasoning] {
            *number = (*number).min(MAX_FIGURE);
        }
    }
    run.attempt = run.attempt.min(MAX_ATTEMPTS);
    run.outcome.finding_digests.truncate(RunRecord::MAX_DIGESTS);
    run.outcome.scanned_findings.truncate(RunRecord::MAX_DIGESTS);
    run.outcome.listed_as.truncate(RunRecord::MAX_DIGESTS);
    run.subject.changed_paths.truncate(RunRecord::MAX_PATHS);
}

/// Lines about a finding in the triage log.
#[derive(Default)]
struct KnownLines<'a> {
    /// Identities of the decisions that the log has.
    ids: HashSet<DecisionId>,
    /// Last line, with its identity.
    last: Option<(&'a Disposition, DecisionId)>,
}

fn find_known_lines<'a>(
    log: &'a [Disposition],
    team: &TeamMembership,
    findings: &BTreeSet<FindingId>,
) -> HashMap<&'a FindingId, KnownLines<'a>> {
    let mut known: HashMap<&FindingId, KnownLines<'_>> = HashMap::new();
    walk_decisions(log, team, |line, id, _| {
        if findings.contains(&line.finding_id) {
            let lines = known.entry(&line.finding_id).or_default();
            lines.last = Some((line, id.clone()));
            if line.actor != Actor::Engine {
                lines.ids.insert(id.clone());
            }
        }
    });
    known
}

/// Returns the lines that the log lacks about a finding: what others have decided, earliest first, and at the end the decision
/// that stands, unless the engine of this machine has newer evidence.
fn missing_lines<'a>(
    decisions: impl Iterator<Item = &'a SharedDecision>,
    standing: &SharedDecision,
    known: Option<&KnownLines<'_>>,
) -> Vec<Disposition> {
    let last = known.and_then(|known| known.last.as_ref());
    // The engine never moves what a person has decided.
    let is_binding = standing.actor == Actor::User && !standing.status.is_undecided();
    let is_newer_evidence =
        |(line, id): &(&Disposition, DecisionId)| line.actor == Actor::Engine && *id > standing.id && !is_binding;
    if last.is_some_and(is_newer_evidence) {
        return Vec::new();
    }
    let is_known = |decision: &&SharedDecision| known.is_some_and(|known| known.ids.contains(&decision.id));
    let mut missing: Vec<&SharedDecision> = decisions.filter(|decision| !is_known(decision)).collect();
    missing.sort_unstable();
    let last_id = missing.last().map(|decision| &decision.id).or(last.map(|(_, id)| id));
    if last_id != Some(&standing.id) {
        missing.retain(|decision| decision.id != standing.id);
        missing.push(standing);
    }
    let mut previous = last.map_or(FindingStatus::Open, |(line, _)| line.status);
    let to_line = |decision: &SharedDecision| {
        let line = build_line(decision, previous);
        previous = line.status;
        line
    };
    missing.into_iter().map(to_line).collect()
}

fn build_line(decision: &SharedDecision, previous: FindingStatus) -> Disposition {
    let DecisionId { clock, machine } = &decision.id;
    Disposition {
        finding_id: decision.finding_id.clone(),
        status: decision.status,
        previous,
        actor: decision.actor,
        reason: sanitize_line(&decision.reason).into_owned(),
        at: decision.at,
        action: decision.action,
        group: match decision.group.is_empty() {
            true => team_group(machine, &format!("{}_{}", clock.ms, clock.count)),
            false => team_group(machine, &decision.group),
        },
        run_id: None,
        merged_into: None,
        team: Some(TeamOrigin { id: decision.id.clone(), person: decision.person.clone() }),
        ci: decision.ci,
    }
}

fn describe_dispute(outcome: &MergedDecision<'_>) -> Vec<DisputeSide> {
    let sides = std::iter::once(&outcome.standing).chain(&outcome.disputed);
    sides
        .map(|decision| DisputeSide {
            person: sanitize_line(decision.person.label()).into_owned(),
            machine: decision.id.machine.clone(),
            status: decision.status,
            reason: sanitize_line(&decision.reason).into_owned(),
            at: decision.at,
        })
        .collect()
}

/// Code of the commit that a run reviewed, or of HEAD, for findings whose code did not travel.
struct CodeSource<'a> {
    sync: &'a TeamSync<'a>,
    snapshot: Option<&'a str>,
    files: HashMap<String, Option<(String, bool)>>,
}

impl<'a> CodeSource<'a> {
    fn new(sync: &'a TeamSync<'a>, snapshot: &'a str) -> Self {
        let is_here = !snapshot.is_empty() && sync.services.repo.tree_id(snapshot).is_ok();
        Self { sync, snapshot: Some(snapshot).filter(|_| is_here), files: HashMap::new() }
    }

    /// Returns the lines of a finding. From HEAD, they count only if they give the finding its id.
    fn quote(&mut self, finding: &Finding) -> Option<String> {
        let path = &finding.repo_relative_path;
        let (sync, snapshot) = (self.sync, self.snapshot);
        let file = self.files.entry(path.clone()).or_insert_with(|| {
            let read = |commit: &str| sync.services.repo.regular_file_at(commit, path).ok().flatten();
            let of_snapshot = snapshot.and_then(read).map(|bytes| (bytes, true));
            let of_head = || Some((read(&sync.services.repo.head())?, false));
            let (bytes, is_certain) = of_snapshot.or_else(of_head)?;
            Some((String::from_utf8_lossy(&bytes).into_owned(), is_certain))
        });
        let (text, is_certain) = file.as_ref()?;
        let first = usize::try_from(finding.line_start).ok()?.checked_sub(1)?;
        let count = usize::try_from(finding.line_end.saturating_sub(finding.line_start).saturating_add(1))
            .ok()?
            .min(Finding::MAX_QUOTE_LINES);
        let lines: Vec<&str> = text.lines().skip(first).take(count).collect();
        let quote = lines.join("\n");
        let gives_id = || {
            (0..MAX_ORDINALS)
                .any(|ordinal| FindingId::from_parts(finding.kind.word(), path, &quote, ordinal) == finding.finding_id)
        };
        (!lines.is_empty() && (*is_certain || gives_id())).then_some(quote)
    }
}
