//! Takes over what other machines have sent: reviews become runs of the store, decisions become its dispositions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::own_records::walk_decisions;
use super::{SyncError, SyncReport, TeamSync};
use crate::domain::text::sanitize_line;
use crate::domain::{
    Actor, DecisionId, Disposition, Finding, FindingId, FindingStatus, RunOrigin, RunOutput, SharedDecision,
    SharedReview, TeamOrigin, TeamRecord,
};
use crate::git::LogSignature;
use crate::policy::{MergedDecision, merge_decisions};
use crate::store::{DisputeSide, LearningPolicy, SetAsideSegment, StoreError, TeamMembership, TeamProgress};
use crate::team::segment::{ParsedSegment, parse_segment};
use crate::team::{GitBackend, LogVersion, TeamBackend};

/// Lines that a quoted finding has at most before its id is compared with the code of HEAD.
const MAX_ORDINALS: u32 = 8;

/// Records that are new here.
#[derive(Debug, Default)]
pub struct ReceivedRecords {
    pub(super) reviews: Vec<SharedReview>,
    /// Findings that the new decisions are about.
    pub(super) decided: BTreeSet<FindingId>,
    /// Logs that were read. They count as read only when their records are taken over.
    pub(super) logs: Vec<(LogVersion, LogSignature, u64)>,
}

impl TeamSync<'_> {
    /// Reads the new segments of a fetched log and appends their new records to `team/received`.
    pub(super) fn read_log(
        &self,
        backend: &GitBackend<'_>,
        team: &TeamMembership,
        log: &LogVersion,
        progress: &TeamProgress,
        received: &mut ReceivedRecords,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        let store = &self.services.store;
        let is_own = log.name == team.log;
        let known = progress.logs.get(&log.name).cloned().unwrap_or_default();
        let since = if is_own { &progress.own_version } else { &known.version };
        let signature = backend.log_signature(log)?;
        let now = self.services.ambient.now();
        let mut set_aside = |name: &str, bytes: &[u8], reason: String| -> Result<(), StoreError> {
            store.set_aside_segment(&log.name, name, bytes)?;
            let reason = sanitize_line(&reason).into_owned();
            let segment = sanitize_line(name).into_owned();
            report.set_aside.push(SetAsideSegment { log: log.name.clone(), segment, reason, at: now });
            Ok(())
        };
        let mut lines: HashSet<String> = HashSet::new();
        let mut new = ParsedSegment::default();
        for segment in backend.read_segments(log, Some(since.as_str()).filter(|since| !since.is_empty()))? {
            let bytes = match segment.content {
                Ok(bytes) => bytes,
                Err(bytes) => {
                    set_aside(&segment.name, b"", format!("it has {bytes} bytes, which is too much"))?;
                    continue;
                }
            };
            if signature == LogSignature::Bad {
                set_aside(&segment.name, &bytes, "the signature of the log does not fit its content".to_owned())?;
                continue;
            }
            match parse_segment(&bytes, &log.name) {
                Ok(parsed) => {
                    new.unknown += parsed.unknown;
                    new.records.extend(parsed.records.into_iter().filter(|(_, line)| lines.insert(line.clone())));
                }
                Err(fault) => set_aside(&segment.name, &bytes, fault.to_string())?,
            }
        }
        report.unknown += new.unknown;
        // A machine that writes a shared log, or that was copied, has no need of its own records.
        let own: HashSet<String> =
            if is_own { store.own_team_lines(0)?.0.into_iter().collect() } else { HashSet::new() };
        let before: HashSet<String> = match new.records.is_empty() {
            true => HashSet::new(),
            false => store.received_team_lines(&log.name)?.into_iter().collect(),
        };
        let mut fresh = Vec::new();
        let mut count = 0;
        for (record, line) in new.records {
            if own.contains(&line) {
                continue;
            }
            // A known record may not have been taken over, because the process was killed. To do so again changes nothing.
            if !before.contains(&line) {
                fresh.extend_from_slice(line.as_bytes());
                fresh.push(b'\n');
                count += 1;
                report.received.add(&record);
            }
            match record {
                TeamRecord::Decision(decision) => drop(received.decided.insert(decision.finding_id)),
                TeamRecord::Review(review) => received.reviews.push(*review),
            }
        }
        store.append_received_team_lines(&log.name, &fresh)?;
        if !is_own {
            received.logs.push((log.clone(), signature, count));
        }
        Ok(())
    }

    /// Takes over new records: reviews first, because decisions are about their findings.
    pub(super) fn apply_received(
        &self,
        team: &TeamMembership,
        received: ReceivedRecords,
        progress: &mut TeamProgress,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        let outputs = received.reviews.into_iter().map(|review| self.build_output(review)).collect();
        self.services.store.import_team_runs(outputs)?;
        report.applied = self.apply_decisions(team, &received.decided, progress)?;
        let now = self.services.ambient.now();
        for (log, signature, count) in received.logs {
            let state = progress.logs.entry(log.name).or_default();
            state.version = log.version;
            state.records += count;
            state.signed = describe_signature(&signature);
            if count > 0 {
                state.received_at = Some(now);
            }
        }
        for segment in &report.set_aside {
            let is_known = |known: &&SetAsideSegment| (&known.log, &known.segment) == (&segment.log, &segment.segment);
            if !progress.set_aside.iter().any(|known| is_known(&known)) {
                progress.set_aside.push(segment.clone());
            }
        }
        Ok(())
    }

    /// Builds the result of a run from its record. Code that did not travel is taken from the repository where it is the same.
    fn build_output(&self, review: SharedReview) -> (RunOutput, RunOrigin) {
        let SharedReview { machine, person, mut run, mut findings, coverage } = review;
        run.team = None;
        run.subject.worktree = String::new();
        // Savings count where a request was answered without a review.
        run.usage.saved_token_estimate = 0;
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
    ) -> Result<usize, SyncError> {
        if findings.is_empty() {
            return Ok(0);
        }
        let store = self.services.store.clone().with_learning(LearningPolicy::Refused);
        let all = self.load_decisions(findings)?;
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
            store.append_dispositions(&lines)?;
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

    /// Returns the decisions of all machines about these findings, own ones among them.
    fn load_decisions(&self, findings: &BTreeSet<FindingId>) -> Result<Vec<SharedDecision>, SyncError> {
        let store = &self.services.store;
        let mut lines = store.own_team_lines(0)?.0;
        for log in store.received_team_logs()? {
            lines.extend(store.received_team_lines(&log)?);
        }
        let mut decisions: BTreeMap<DecisionId, SharedDecision> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.contains("\"type\":\"decision\"")) {
            if let Ok(TeamRecord::Decision(decision)) = serde_json::from_str::<TeamRecord>(line)
                && findings.contains(&decision.finding_id)
            {
                // Two decisions with one id are a mistake; every machine takes the same one.
                let kept = decisions.entry(decision.id.clone()).or_insert_with(|| decision.clone());
                if decision < *kept {
                    *kept = decision;
                }
            }
        }
        Ok(decisions.into_values().collect())
    }
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
    let is_newer_evidence = |(line, id): &(&Disposition, DecisionId)| line.actor == Actor::Engine && *id > standing.id;
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
        group: format!("team_{machine}_{}_{}", clock.ms, clock.count),
        run_id: None,
        merged_into: None,
        team: Some(TeamOrigin { id: decision.id.clone(), person: decision.person.clone() }),
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

fn describe_signature(signature: &LogSignature) -> String {
    match signature {
        LogSignature::None => "unsigned".to_owned(),
        LogSignature::Trusted(signer) => format!("signed by {signer}"),
        LogSignature::Unknown => "signed by an unknown key".to_owned(),
        LogSignature::Bad => "bad signature".to_owned(),
    }
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
        let count = usize::try_from(finding.line_end - finding.line_start + 1).ok()?.min(Finding::MAX_QUOTE_LINES);
        let lines: Vec<&str> = text.lines().skip(first).take(count).collect();
        let quote = lines.join("\n");
        let gives_id = || {
            (0..MAX_ORDINALS)
                .any(|ordinal| FindingId::from_parts(finding.kind.word(), path, &quote, ordinal) == finding.finding_id)
        };
        (!lines.is_empty() && (*is_certain || gives_id())).then_some(quote)
    }
}
