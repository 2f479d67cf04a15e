//! Takes over what other machines have sent: reviews become runs of the store, decisions become its dispositions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::own_records::walk_decisions;
use super::{SyncError, SyncReport, TeamSync};
use crate::config::AcceptedRecords;
use crate::domain::text::sanitize_line;
use crate::domain::{
    Actor, DecisionId, Disposition, Finding, FindingCounts, FindingId, FindingStatus, MachineName, RunOrigin,
    RunOutput, RunRecord, SharedDecision, SharedReview, TeamOrigin, TeamRecord, Time,
};
use crate::git::LogSignature;
use crate::policy::{MergedDecision, merge_decisions};
use crate::store::{DisputeSide, LearningPolicy, SetAsideSegment, StoreError, TeamMembership, TeamProgress};
use crate::team::outgoing::detach_from_machine;
use crate::team::segment::{ParsedSegment, parse_segment};
use crate::team::{LogVersion, TeamBackend};

/// Number of equal places in a file that are tried when the id of a finding is compared with the code of HEAD.
const MAX_ORDINALS: u32 = 8;
/// Maximum number of segments of a log that one exchange names as set aside.
const MAX_SET_ASIDE: usize = 20;
/// How far the clock of another machine may be ahead: two days, in milliseconds.
const MAX_AHEAD_MS: i64 = 2 * 86_400_000;
/// Greatest number of tokens or milliseconds of a run of others.
const MAX_FIGURE: u64 = 1_000_000_000_000;
/// Greatest cost of a run of others, in US dollars.
const MAX_COST: f64 = 1_000_000.0;
/// Greatest number of attempts of a run of others.
const MAX_ATTEMPTS: u32 = 1_000;
/// Maximum number of reviewers that answered in a run of others.
const MAX_ANSWERERS: usize = 100;

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
        backend: &dyn TeamBackend,
        team: &TeamMembership,
        log: &LogVersion,
        progress: &TeamProgress,
        received: &mut ReceivedRecords,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        let store = &self.services.store;
        let is_own = log.name == team.log;
        let known = progress.logs.get(&log.name).cloned().unwrap_or_default();
        let is_same_reader = progress.reader == env!("CARGO_PKG_VERSION");
        let since = if is_own { &progress.own_received } else { &known.version };
        let since = if is_same_reader { since } else { &String::new() };
        let now = self.services.ambient.now();
        let mut faults = 0;
        let mut set_aside = |name: &str, bytes: &[u8], reason: String| -> Result<(), StoreError> {
            faults += 1;
            if faults > MAX_SET_ASIDE {
                return Ok(());
            }
            if !bytes.is_empty() {
                store.set_aside_segment(&log.name, name, bytes)?;
            }
            let reason = match faults == MAX_SET_ASIDE {
                true => "and further segments of this log".to_owned(),
                false => sanitize_line(&reason).into_owned(),
            };
            let segment = sanitize_line(name).into_owned();
            report.set_aside.push(SetAsideSegment { log: log.name.clone(), segment, reason, at: now });
            Ok(())
        };
        // One odd log must not keep the others away.
        let since = Some(since.as_str()).filter(|since| !since.is_empty());
        let read = backend.log_signature(log).and_then(|signature| Ok((signature, backend.read_segments(log, since)?)));
        let (signature, segments) = match read {
            Ok(read) => read,
            Err(error) => {
                set_aside(&log.version, b"", format!("the log cannot be read: {error}"))?;
                return Ok(());
            }
        };
        let is_trusted = matches!(signature, LogSignature::Trusted(_));
        let refused = match (&signature, self.services.settings.team.accept) {
            (LogSignature::Bad, _) => Some("the signature of the log does not fit its content"),
            (_, AcceptedRecords::Signed) if !is_trusted && !is_own => Some("no key that git trusts has signed the log"),
            _ => None,
        };
        if let Some(reason) = refused {
            // Read again when the keys or the settings have changed.
            set_aside(&log.version, b"", reason.to_owned())?;
            return Ok(());
        }
        let mut lines: HashSet<String> = HashSet::new();
        let mut new = ParsedSegment::default();
        for segment in segments {
            let bytes = match segment.content {
                Ok(bytes) => bytes,
                Err(bytes) => {
                    set_aside(&segment.name, b"", format!("it has {bytes} bytes, which is too much for one exchange"))?;
                    continue;
                }
            };
            match parse_segment(&bytes, &log.name) {
                Ok(parsed) => {
                    new.unknown += parsed.unknown;
                    let ahead = parsed.records.iter().find(|(record, _)| is_ahead(record, now));
                    if ahead.is_some() {
                        let reason = "a review of it has a time in the future: check the clock of its machine";
                        set_aside(&segment.name, &bytes, reason.to_owned())?;
                        continue;
                    }
                    let is_wanted = |record: &TeamRecord| !progress.forgotten.contains(record.machine());
                    let records = parsed.records.into_iter().filter(|(record, _)| is_wanted(record));
                    new.records.extend(records.filter(|(_, line)| lines.insert(line.clone())));
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
        received.logs.push((log.clone(), signature, count));
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
        progress.reader = env!("CARGO_PKG_VERSION").to_owned();
        for (log, signature, count) in received.logs {
            if log.name == team.log {
                progress.own_received = log.version;
                continue;
            }
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
    ) -> Result<usize, SyncError> {
        if findings.is_empty() {
            return Ok(0);
        }
        let store = self.services.store.clone().with_learning(LearningPolicy::Refused);
        let all = self.load_decisions(findings, &progress.forgotten)?;
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

    /// Returns the decisions of all machines about these findings, own ones among them.
    fn load_decisions(
        &self,
        findings: &BTreeSet<FindingId>,
        forgotten: &[MachineName],
    ) -> Result<Vec<SharedDecision>, SyncError> {
        let store = &self.services.store;
        let mut lines = store.own_team_lines(0)?.0;
        for log in store.received_team_logs()? {
            lines.extend(store.received_team_lines(&log)?);
        }
        let mut decisions: BTreeMap<DecisionId, SharedDecision> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.contains("\"decision\"")) {
            if let Ok(TeamRecord::Decision(decision)) = serde_json::from_str::<TeamRecord>(line)
                && findings.contains(&decision.finding_id)
                && !forgotten.contains(&decision.id.machine)
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

/// Returns true for a review that would be newer than any review of this machine for a long time.
fn is_ahead(record: &TeamRecord, now: Time) -> bool {
    let TeamRecord::Review(review) = record else { return false };
    let latest = now.as_millisecond().saturating_add(MAX_AHEAD_MS);
    let letters = review.run.run_id.as_str().trim_start_matches("ar_");
    let made = ulid::Ulid::from_string(letters).ok().and_then(|id| i64::try_from(id.timestamp_ms()).ok());
    let made = made.unwrap_or(i64::MAX);
    [made, review.run.created_at.as_millisecond(), review.run.updated_at.as_millisecond()]
        .into_iter()
        .any(|at| at > latest)
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
