//! Takes over what other machines have sent: reviews become runs of the store, decisions become its dispositions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::merge_log::{LogOwner, update_log};
use super::merged_reports::PanelLists;
use super::signers::to_state;
use super::{SyncError, SyncReport, TeamSync};
use crate::domain::text::sanitize_line;
use crate::domain::{
    Coverage, DecisionId, Finding, FindingCounts, FindingId, HeldBackPlace, MachineName, Panel, RunId, RunOrigin,
    RunOutput, RunRecord, SharedDecision, SharedReview, TeamClock, TeamRecord, Time,
};
use crate::git::{LogSignature, Repo};
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::exchange;
use crate::parallel;
use crate::store::{
    LearningPolicy, RefusedTeamRun, SetAsideCause, SetAsideSegment, Store, StoreError, TeamMembership, TeamProgress,
};
use crate::team::LogVersion;
use crate::team::outgoing::detach_from_machine;

/// Number of equal places in a file that are tried when the id of a finding is compared with the code of HEAD.
const MAX_ORDINALS: u32 = 8;
/// Greatest number of tokens or milliseconds of a run of others.
const MAX_FIGURE: u64 = 1_000_000_000_000;
/// Greatest number of files, hunks or lines of a run of others.
const MAX_CODE_COUNT: u32 = 10_000_000;
/// Maximum number of gaps of a run of others: each has another reason.
const MAX_GAPS: usize = 100;
/// Greatest cost of a run of others, in US dollars.
const MAX_COST: f64 = 1_000_000.0;
/// Greatest number of attempts of a run of others.
const MAX_ATTEMPTS: u32 = 1_000;
/// Maximum number of findings that are remembered because their decisions wait. When the time of some has come, the next ones are.
const MAX_WAITING: usize = 1_000;
/// Size of the kept code of runs of others, in bytes for each core, from which on the next file takes the place of all others.
const MAX_KEPT_CODE_BYTES: usize = 32 << 20;
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
            state.signed = to_state(signature);
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
        // What was decided about their reports may hold for the findings of these lists.
        let merged = reviews.iter().filter_map(|review| review.run.outcome.merged_reports.as_ref()).flatten();
        received.decided.extend(merged.map(|report| report.finding_id.clone()));
        let mut reported = BTreeSet::new();
        if !progress.forgotten.is_empty() {
            reported.extend(reviews.iter().flat_map(|review| &review.findings).map(|one| one.finding_id.clone()));
        }
        let outputs = self.build_outputs(reviews);
        if Store::leaves_results_unsynced(outputs.len()) {
            progress.has_unsynced_results = true;
            self.services.store.write_team_progress(progress)?;
        }
        let refused = self.import_runs(outputs, progress)?;
        self.note_refused(&refused, report);
        if !reported.is_empty() {
            self.reopen_retired(&reported, "another machine has reported it, too")?;
        }
        self.take_patterns(&std::mem::take(&mut received.patterns));
        report.applied += self.apply_decisions(team, &std::mem::take(&mut received.decided), progress, report)?;
        Ok(())
    }

    /// Writes the results again that the last exchange has received, and that were lost because the machine went down.
    pub(super) fn restore_results(&self, progress: &mut TeamProgress) -> Result<(), SyncError> {
        let store = &self.services.store;
        let lost = store.find_lost_team_results()?;
        let mut reviews = Vec::new();
        if !lost.is_empty() {
            for log in store.received_team_logs()? {
                store.visit_received_team_lines(&log, |line| {
                    if let Ok(TeamRecord::Review(review)) = serde_json::from_str(line)
                        && lost.contains(&review.run.run_id)
                    {
                        reviews.push(*review);
                    }
                })?;
            }
        }
        let outputs = self.build_outputs(reviews);
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
                cause: SetAsideCause::Fault,
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

    /// Builds the results of runs from their records, on all cores. Code that did not travel is taken from the repository where it
    /// is the same.
    fn build_outputs(&self, reviews: Vec<SharedReview>) -> Vec<(RunOutput, RunOrigin)> {
        let (root, head) = (self.services.repo.root(), self.services.repo.head());
        let open = || CodeReader::new(Repo::discover(&root).ok(), head.clone());
        parallel::map_owned(reviews, open, |code, review| build_output(review, code))
    }

    /// Merges the decisions about findings, and appends what the log lacks, with what stands at the end. Returns the number of
    /// findings whose status changed.
    pub(super) fn apply_decisions(
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
        let lists = PanelLists::load(&store, &progress.forgotten)?;
        let findings = &lists.reports.add_findings(findings);
        let about = lists.reports.add_reports(findings);
        let LoadedDecisions { decisions, ahead, waiting } = self.load_decisions(&about, &progress.forgotten)?;
        progress.end_waiting(&ahead.keys().cloned().collect());
        self.note_ahead(&ahead, report);
        let person = self.person();
        let now = self.services.ambient.now();
        store.with_lock_as(|_| {
            let log = store.triage_log()?;
            let owner = LogOwner { team, person: &person, forgotten: &progress.forgotten, now };
            let update = update_log(&log, decisions, findings, &lists, owner);
            let is_collected = store.triage_bytes()? == progress.triage_bytes;
            store.append_dispositions(&update.lines)?;
            // Other findings still wait for the next exchange, because of records that this machine has made.
            progress.waiting.retain(|finding, from_ms| *from_ms == 0 && !findings.contains(finding));
            for (finding, from_ms) in waiting {
                progress.waiting.entry(finding).or_insert(from_ms);
            }
            if is_collected {
                // None of these lines is a decision of this machine, so the next exchange need not look at them.
                progress.triage_bytes = store.triage_bytes()?;
            }
            progress.disputes.retain(|finding, _| !findings.contains(finding));
            progress.disputes.extend(update.disputes);
            Ok(update.changed)
        })
    }

    /// Names the decisions about some findings that are too far ahead of this machine's clock.
    fn note_ahead(&self, ahead: &BTreeMap<MachineName, Vec<FindingId>>, report: &mut SyncReport) {
        let now = self.services.ambient.now();
        for (log, findings) in ahead {
            let Some(first) = findings.first() else { continue };
            let segment = match findings.len() {
                1 => format!("the decision about {first}"),
                n => format!("{n} decisions, the first about {first},"),
            };
            let days = TeamClock::MAX_AHEAD_MS / 86_400_000;
            let reason = format!("the clock is more than {days} days ahead: check the clock of its machine");
            // Records of a large log are taken over in several steps.
            if !report.set_aside.iter().any(|known| (&known.log, &known.reason) == (log, &reason)) {
                let cause = SetAsideCause::Ahead;
                report.set_aside.push(SetAsideSegment { log: log.clone(), segment, reason, cause, at: now });
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
        let mut decisions = DecisionsById::new();
        let mut ahead: BTreeMap<MachineName, Vec<FindingId>> = BTreeMap::new();
        let mut waiting: BTreeMap<FindingId, i64> = BTreeMap::new();
        let mut take_line = |line: &str, log: Option<&MachineName>| {
            if let Some(decision) = parse_decision(line, forgotten) {
                let (finding, clock) = (&decision.finding_id, decision.id.clock);
                if clock.is_ahead_of(now) {
                    let Some(log) = log else { return };
                    let about = ahead.entry(log.clone()).or_default();
                    if findings.contains(finding) {
                        about.push(finding.clone());
                    }
                    let from_ms = clock.ms.saturating_sub(TeamClock::MAX_AHEAD_MS);
                    let first = waiting.entry(finding.clone()).or_insert(from_ms);
                    *first = from_ms.min(*first);
                } else if findings.contains(finding) {
                    keep_least(&mut decisions, decision);
                }
            }
        };
        store.own_team_lines(0)?.0.iter().for_each(|line| take_line(line, None));
        for log in store.received_team_logs()? {
            store.visit_received_team_lines(&log, |line| take_line(line, Some(&log)))?;
        }
        let decisions = decisions.into_values().collect();
        Ok(LoadedDecisions { decisions, ahead, waiting: keep_earliest(waiting, MAX_WAITING) })
    }
}

/// Returns the decisions of all machines about these findings that count now, as an exchange would take them.
pub(super) fn load_decisions_about(
    store: &Store,
    findings: &BTreeSet<FindingId>,
    forgotten: &[MachineName],
    now: Time,
) -> Result<Vec<SharedDecision>, StoreError> {
    let ids: HashSet<&str> = findings.iter().map(FindingId::as_str).collect();
    let mut decisions = DecisionsById::new();
    let mut take_line = |line: &str| {
        if may_name(line, &ids)
            && let Some(decision) = parse_decision(line, forgotten)
            && findings.contains(&decision.finding_id)
            && !decision.id.clock.is_ahead_of(now)
        {
            keep_least(&mut decisions, decision);
        }
    };
    store.own_team_lines(0)?.0.iter().for_each(|line| take_line(line));
    for log in store.received_team_logs()? {
        store.visit_received_team_lines(&log, &mut take_line)?;
    }
    Ok(decisions.into_values().collect())
}

/// Decisions by what tells them apart. A copy of a store may have given one identity to decisions about two findings.
type DecisionsById = BTreeMap<(FindingId, DecisionId), SharedDecision>;

/// Adds a decision. Two with one identity are a mistake of their machine; every machine takes the same one.
fn keep_least(decisions: &mut DecisionsById, decision: SharedDecision) {
    let key = (decision.finding_id.clone(), decision.id.clone());
    let kept = decisions.entry(key).or_insert_with(|| decision.clone());
    if decision < *kept {
        *kept = decision;
    }
}

/// Parses the line of a decision of a machine that counts; `None` for another record.
fn parse_decision(line: &str, forgotten: &[MachineName]) -> Option<SharedDecision> {
    if !line.contains("\"decision\"") {
        return None;
    }
    match serde_json::from_str(line) {
        Ok(TeamRecord::Decision(decision)) if !decision.id.machine.is_forgotten(forgotten) => Some(decision),
        _ => None,
    }
}

/// Returns true if a line may be about one of these findings: an id stands in it as it is, or behind an escape of JSON.
fn may_name(line: &str, ids: &HashSet<&str>) -> bool {
    let is_wanted = |(at, _): (usize, &str)| {
        let (mark, letters) = line[at..].split_at("f_".len());
        let length = letters.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(letters.len());
        ids.contains(&line[at..at + mark.len() + length])
    };
    line.contains("\\u") || line.match_indices("f_").any(is_wanted)
}

/// Decisions about some findings.
struct LoadedDecisions {
    decisions: Vec<SharedDecision>,
    /// Logs with decisions that are too far ahead of this machine's clock and do not count, with those of the findings.
    ahead: BTreeMap<MachineName, Vec<FindingId>>,
    /// All findings with such decisions, as in [`TeamProgress::waiting`].
    waiting: BTreeMap<FindingId, i64>,
}

/// Keeps the findings whose time comes first.
fn keep_earliest(waiting: BTreeMap<FindingId, i64>, limit: usize) -> BTreeMap<FindingId, i64> {
    if waiting.len() <= limit {
        return waiting;
    }
    let mut by_time: Vec<(i64, FindingId)> = waiting.into_iter().map(|(finding, from_ms)| (from_ms, finding)).collect();
    by_time.sort_unstable();
    by_time.into_iter().take(limit).map(|(from_ms, finding)| (finding, from_ms)).collect()
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
    usage.cost = bound_cost(usage.cost);
    usage.answered_by.truncate(MAX_ANSWERERS);
    for answerer in &mut usage.answered_by {
        let tokens = &mut answerer.tokens;
        for number in [&mut tokens.input, &mut tokens.cached, &mut tokens.output, &mut tokens.reasoning] {
            *number = (*number).min(MAX_FIGURE);
        }
        answerer.cost = answerer.cost.map(bound_cost);
        answerer.took_ms = answerer.took_ms.map(|ms| ms.min(MAX_FIGURE));
    }
    run.attempt = run.attempt.min(MAX_ATTEMPTS);
    run.outcome.finding_digests.truncate(RunRecord::MAX_DIGESTS);
    run.outcome.scanned_findings.truncate(RunRecord::MAX_DIGESTS);
    run.outcome.listed_as.truncate(RunRecord::MAX_DIGESTS);
    run.subject.changed_paths.truncate(RunRecord::MAX_PATHS);
}

fn bound_cost(cost: f64) -> f64 {
    if cost.is_finite() { cost.clamp(0.0, MAX_COST) } else { 0.0 }
}

/// Keeps the reports that the list of another machine's panel has merged as a list can have them: into findings that the record names,
/// from ids that it does not list, each of which stands for one problem. A member may have held back a report with such an id, which
/// another member has raised. Only a panel merges reports.
fn bound_merged_reports(run: &mut RunRecord, findings: &[Finding], held_back: Option<&[HeldBackPlace]>) {
    let Some(mut reports) = run.outcome.merged_reports.take() else { return };
    if Panel::name_of(&run.reviewed_by.name).is_none() {
        return;
    }
    let held_back = held_back.unwrap_or_default().iter().map(|place| &place.finding_id);
    let listed: HashSet<&FindingId> = findings.iter().map(|finding| &finding.finding_id).collect();
    let named: HashSet<&FindingId> = listed.iter().copied().chain(held_back).collect();
    reports.retain(|report| named.contains(&report.finding_id) && !listed.contains(&report.reported_as));
    reports.sort_unstable();
    reports.dedup();
    let mut problems: HashMap<FindingId, usize> = HashMap::new();
    for report in &reports {
        *problems.entry(report.reported_as.clone()).or_default() += 1;
    }
    reports.retain(|report| problems.get(&report.reported_as) == Some(&1));
    reports.truncate(RunRecord::MAX_DIGESTS);
    run.outcome.merged_reports = Some(reports);
}

/// Keeps the counts of a coverage of others in ranges that sums of them do not leave.
fn bound_coverage(coverage: &mut Coverage) {
    coverage.gaps.truncate(MAX_GAPS);
    let counts = [
        &mut coverage.files_total,
        &mut coverage.files_covered,
        &mut coverage.hunks_total,
        &mut coverage.hunks_covered,
        &mut coverage.files_carried,
        &mut coverage.hunks_carried,
        &mut coverage.hunks_left_out,
        &mut coverage.lines_covered,
    ];
    let of_gaps = coverage.gaps.iter_mut().flat_map(|gap| [&mut gap.files, &mut gap.hunks]);
    counts.into_iter().chain(of_gaps).for_each(|count| *count = (*count).min(MAX_CODE_COUNT));
}

/// Builds the result of a run from its record.
fn build_output(review: SharedReview, code: &mut CodeReader) -> (RunOutput, RunOrigin) {
    let SharedReview { machine, person, mut run, mut findings, mut coverage, held_back_places } = review;
    detach_from_machine(&mut run);
    bound_figures(&mut run);
    bound_coverage(&mut coverage);
    run.outcome.finding_counts = FindingCounts::from_findings(&findings);
    bound_merged_reports(&mut run, &findings, held_back_places.as_deref());
    for finding in &mut findings {
        finding.detail_ref = format!("outputs/{}.json#{}", run.run_id, finding.finding_id);
        finding.pattern = None;
        if finding.quoted_code.is_empty() {
            finding.quoted_code = code.quote(&run.subject.snapshot_commit, finding).unwrap_or_default();
        }
    }
    run.outcome.coverage.clone_from(&coverage);
    let said = sanitize_line(person.label()).into_owned();
    let mut output = RunOutput::new(run);
    output.run.outcome.coverage.files.clear();
    output.run.outcome.coverage.carried.clear();
    output.run.outcome.coverage.left_out.clear();
    output.run.outcome.coverage.partial.clear();
    (output.findings, output.coverage) = (findings, coverage);
    output.held_back_places = held_back_places;
    output.notes.push(format!("reviewed on {machine} by {said}"));
    (output, RunOrigin { machine, person })
}

/// Code of the commits that runs reviewed, and of HEAD, for findings whose code did not travel. Files are kept: the runs of a
/// team are about the same ones.
struct CodeReader {
    repo: Option<Repo>,
    head: String,
    /// Commits that were asked for, and whether they are here.
    commits: HashMap<String, bool>,
    /// Files by commit and path.
    files: HashMap<(String, String), Option<CodeFile>>,
    /// Size of the files in bytes.
    bytes: usize,
    max_bytes: usize,
}

struct CodeFile {
    text: String,
    /// Places of the lines in the text.
    lines: Vec<Range<usize>>,
}

impl CodeReader {
    fn new(repo: Option<Repo>, head: String) -> Self {
        let max_bytes = MAX_KEPT_CODE_BYTES;
        Self { repo, head, commits: HashMap::new(), files: HashMap::new(), bytes: 0, max_bytes }
    }

    /// Returns the lines of a finding in the commit `snapshot`, or in HEAD where that is not here. From HEAD, they count only if
    /// they give the finding its id.
    fn quote(&mut self, snapshot: &str, finding: &Finding) -> Option<String> {
        let path = &finding.repo_relative_path;
        let is_certain = self.has_commit(snapshot) && self.read_file(snapshot, path).is_some();
        let head = self.head.clone();
        let file = self.read_file(if is_certain { snapshot } else { &head }, path)?;
        let first = usize::try_from(finding.line_start).ok()?.checked_sub(1)?;
        let count = usize::try_from(finding.line_end.saturating_sub(finding.line_start).saturating_add(1))
            .ok()?
            .min(Finding::MAX_QUOTE_LINES);
        let lines: Vec<&str> = file.lines.iter().skip(first).take(count).map(|line| &file.text[line.clone()]).collect();
        let quote = lines.join("\n");
        let gives_id = || {
            (0..MAX_ORDINALS)
                .any(|ordinal| FindingId::from_parts(finding.kind.word(), path, &quote, ordinal) == finding.finding_id)
        };
        (!lines.is_empty() && (is_certain || gives_id())).then_some(quote)
    }

    /// Returns true if the repository has a commit.
    fn has_commit(&mut self, commit: &str) -> bool {
        if commit.is_empty() {
            return false;
        }
        if let Some(is_here) = self.commits.get(commit) {
            return *is_here;
        }
        let is_here = self.repo.as_ref().is_some_and(|repo| repo.tree_id(commit).is_ok());
        self.commits.insert(commit.to_owned(), is_here);
        is_here
    }

    /// Returns a file of a commit; `None` if it is not here, or no regular file.
    fn read_file(&mut self, commit: &str, path: &str) -> Option<&CodeFile> {
        let Self { repo, files, bytes, max_bytes, .. } = self;
        let key = (commit.to_owned(), path.to_owned());
        // A file that is larger than all that is kept stays while findings in it follow each other.
        if *bytes > *max_bytes && !files.contains_key(&key) {
            files.clear();
            *bytes = 0;
        }
        let file = files.entry(key).or_insert_with(|| {
            let content = repo.as_ref()?.regular_file_at(commit, path).ok().flatten()?;
            let text = String::from_utf8_lossy(&content).into_owned();
            let start = text.as_ptr() as usize;
            let range = |line: &str| {
                let at = line.as_ptr() as usize - start;
                at..at + line.len()
            };
            let lines: Vec<Range<usize>> = text.lines().map(range).collect();
            *bytes += text.len() + lines.len() * size_of::<Range<usize>>();
            Some(CodeFile { text, lines })
        });
        file.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::MergedReport;
    use crate::runner::fixture::RunnerFixture;
    use crate::team::outgoing::keep_sent_reports;

    #[test]
    fn a_file_that_is_larger_than_all_that_is_kept_is_read_once_for_its_findings() {
        let fixture = RunnerFixture::new();
        let commit = fixture.commit_files(&[("a.rs", b"one\ntwo\n"), ("b.rs", b"three\n")]);
        let repo = Repo::discover(&fixture.services.repo.root()).ok();
        let mut code = CodeReader { max_bytes: 0, ..CodeReader::new(repo, String::new()) };
        let quote = |code: &mut CodeReader, path: &str, line: u32| {
            let finding: Finding = serde_json::from_value(serde_json::json!({
                "finding_id": format!("f_{:016}", 1), "first_run_id": format!("ar_{:026}", 1),
                "last_run_id": format!("ar_{:026}", 1), "priority": 1, "severity": "high", "confidence": "high",
                "kind": "CORRECTNESS", "title": "t", "explanation": "e", "repo_relative_path": path, "line_start": line,
                "line_end": line, "quoted_code": "", "status": "open", "detail_ref": "outputs/x.json",
                "reported_at": "2026-11-27T10:00:00Z",
            }))
            .expect("a finding");
            code.quote(&commit, &finding)
        };
        assert_eq!(quote(&mut code, "b.rs", 1).as_deref(), Some("three"));
        assert_eq!(quote(&mut code, "a.rs", 1).as_deref(), Some("one"));
        // Nothing can be read any more.
        code.repo = None;
        assert_eq!(quote(&mut code, "a.rs", 2).as_deref(), Some("two"));
        assert_eq!(quote(&mut code, "b.rs", 1), None, "it made room");
    }

    #[test]
    fn a_line_that_names_no_wanted_finding_is_not_parsed() {
        let ids = HashSet::from(["f_00000000000000aa"]);
        for (line, expected) in [
            (r#"{"finding_id":"f_00000000000000aa"}"#, true),
            (r#"{"finding_id" : "f_00000000000000aa" }"#, true),
            (r#"{"reason":"f_ff_0","finding_id":"f_00000000000000aa"}"#, true),
            (r#"{"finding_id":"\u0066_00000000000000aa"}"#, true),
            (r#"{"finding_id":"f_00000000000000ab"}"#, false),
            (r#"{"finding_id":"f_00000000000000aa0"}"#, false),
            (r#"{"reason":"éf_"}"#, false),
            ("f_", false),
            ("", false),
        ] {
            assert_eq!(may_name(line, &ids), expected, "{line}");
        }
    }

    /// Checks that a merged report leaves this machine only with a finding that the record names, and that a received one counts
    /// only if a list can have it.
    #[test]
    fn merged_reports_belong_to_findings_that_the_record_names() {
        let id =
            |letter: char| -> FindingId { format!("f_{}", String::from(letter).repeat(16)).parse().expect("an id") };
        let finding: Finding = serde_json::from_value(serde_json::json!({
            "finding_id": id('a'), "first_run_id": format!("ar_{:026}", 1), "last_run_id": format!("ar_{:026}", 1),
            "priority": 1, "severity": "high", "confidence": "high", "kind": "CORRECTNESS", "title": "t",
            "explanation": "e", "repo_relative_path": "src/a.rs", "line_start": 3, "line_end": 4, "quoted_code": "",
            "status": "open", "detail_ref": "outputs/x.json", "reported_at": "2026-11-27T10:00:00Z",
        }))
        .expect("a finding");
        let held_back = [HeldBackPlace { finding_id: id('b'), path: "src/a.rs".to_owned() }];
        // `cb` is the report c of the finding b.
        for (title, reviewer, words, is_held_back, sent, received) in [
            ("of a list", "panel:all", "ca db", true, Some("ca db"), Some("ca db")),
            ("the place may not be named", "panel:all", "ca db", false, Some("ca"), Some("ca")),
            ("of a finding that is not there", "panel:all", "ce", true, Some(""), Some("")),
            ("listed itself", "panel:all", "ab ca", true, Some("ab ca"), Some("ca")),
            ("of two problems", "panel:all", "ca cb da", true, Some("ca cb da"), Some("da")),
            ("twice", "panel:all", "ca ca", true, Some("ca ca"), Some("ca")),
            ("held back by a member, and raised by another one", "panel:all", "ba", true, Some("ba"), Some("ba")),
            ("no panel", "builtin", "ca", true, Some("ca"), None),
        ] {
            let split = |word: &str| -> serde_json::Value {
                let letters: Vec<FindingId> = word.chars().map(id).collect();
                serde_json::json!({ "reported_as": letters[0], "finding_id": letters[1] })
            };
            let mut run: RunRecord = serde_json::from_value(serde_json::json!({
                "run_id": format!("ar_{:026}", 1), "status": "completed", "created_at": "2026-11-27T10:00:00Z",
                "updated_at": "2026-11-27T10:01:00Z", "source": "cli", "scope": "worktree", "reviewer": reviewer,
                "merged_reports": words.split(' ').map(split).collect::<Vec<_>>(),
            }))
            .expect("a run");
            let describe = |run: &RunRecord| {
                let describe = |report: &MergedReport| {
                    [&report.reported_as, &report.finding_id].map(|id| id.as_str()[2..3].to_owned()).concat()
                };
                let reports = run.outcome.merged_reports.as_ref()?;
                Some(reports.iter().map(describe).collect::<Vec<_>>().join(" "))
            };
            let (findings, held_back) = ([finding.clone()], Some(held_back.as_slice()).filter(|_| is_held_back));
            keep_sent_reports(&mut run, &findings, held_back);
            assert_eq!(describe(&run).as_deref(), sent, "{title}: sent");
            bound_merged_reports(&mut run, &findings, held_back);
            assert_eq!(describe(&run).as_deref(), received, "{title}: received");
        }
    }

    #[test]
    fn of_many_decisions_that_wait_the_earliest_are_remembered() {
        let finding = |number: i64| -> FindingId { format!("f_00000000000000{number:02}").parse().expect("an id") };
        let waiting: BTreeMap<FindingId, i64> =
            [(1, 50), (2, 10), (3, 40), (4, 20)].map(|(n, ms)| (finding(n), ms)).into();
        for (limit, expected) in [(0, &[][..]), (2, &[10, 20][..]), (3, &[10, 40, 20][..]), (9, &[50, 10, 40, 20][..])]
        {
            let kept: Vec<i64> = keep_earliest(waiting.clone(), limit).into_values().collect();
            assert_eq!(kept, expected, "{limit}");
        }
    }
}
