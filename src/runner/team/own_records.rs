//! Collects the decisions and reviews of this machine that are not records for the team yet.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::SyncError;
use super::held_back::is_held_back;
use crate::domain::{
    DecisionClock, DecisionId, Disposition, FindingId, RunId, RunRecord, SharedDecision, SharedPatterns, SharedReview,
    SuppressedReport, SuppressionReason, TeamPerson, TeamRecord, content_hash,
};
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::exchange;
use crate::knowledge::pattern::truncate_to_day;
use crate::runner::Services;
use crate::store::triage::team_group;
use crate::store::{StoreError, StoreView, TeamMembership, TeamProgress};
use crate::team::OutgoingFilter;
use crate::team::outgoing::{is_own_decision, keep_sent_reports, make_partial};
use crate::team::segment::{MAX_RECORD_BYTES, MAX_REPLACED, check_record};

/// New records of this machine, and the lengths of the files that they were read from.
#[derive(Debug, Default)]
pub struct OwnDecisions {
    pub records: Vec<TeamRecord>,
    pub triage_bytes: u64,
    pub runs_bytes: u64,
    /// Hashes of the learned patterns, by language, as in [`TeamProgress::patterns`].
    pub patterns: BTreeMap<String, String>,
    /// Settings by which records were kept here, as in [`TeamProgress::outgoing_rules`].
    pub outgoing_rules: String,
    /// Reviews and decisions that others could not read, with the reasons.
    pub refused: Vec<String>,
}

/// Collects the records that `team/own.ndjson` does not have. When the settings have changed that keep records here, looks at all
/// decisions and reviews again, and compares each with those in the file; otherwise at what came since the last exchange.
pub fn collect(
    services: &Services,
    team: &TeamMembership,
    person: &TeamPerson,
    filter: &OutgoingFilter,
    progress: &TeamProgress,
) -> Result<OwnDecisions, SyncError> {
    let store = &services.store;
    let outgoing_rules = filter.rules().to_owned();
    let has_other_rules = progress.outgoing_rules.as_ref().is_some_and(|known| *known != outgoing_rules);
    let mut own = OwnDecisions { triage_bytes: store.triage_bytes()?, outgoing_rules, ..OwnDecisions::default() };
    let (ended, runs_bytes) = store.completed_runs_since(if has_other_rules { 0 } else { progress.runs_bytes })?;
    // A review that may not leave now may leave later.
    own.runs_bytes = if filter.shares_reviews() { runs_bytes } else { progress.runs_bytes };
    own.patterns.clone_from(&progress.patterns);
    if filter.shares_patterns() {
        own.add_patterns(services, team, person)?;
    }
    let has_decisions = own.triage_bytes != progress.triage_bytes;
    if !has_decisions && ended.is_empty() && !has_other_rules {
        return Ok(own);
    }
    let known = KnownRecords::load(services, &progress.held_back)?;
    if has_decisions || has_other_rules {
        let view = store.view()?;
        let log = store.triage_log()?;
        for decision in number_decisions(&log, team, person) {
            let is_new = match has_other_rules {
                true => !known.has(&decision),
                false => known.is_new(&decision.id),
            };
            if is_new && may_leave(&view, filter, &decision.finding_id) {
                own.add(TeamRecord::Decision(filter.clean_decision(decision)));
            }
        }
    }
    if filter.shares_reviews() {
        let unknown: Vec<&RunId> = ended.iter().filter(|run| !known.runs.contains(*run)).collect();
        let mut records = store.runs_of(&unknown.iter().copied().collect())?;
        for run in unknown {
            let Some(record) = records.remove(run) else { continue };
            if let Some(review) = build_review(services, team, person, filter, record)? {
                own.add(review);
            }
        }
    }
    Ok(own)
}

impl OwnDecisions {
    /// Adds the patterns that this machine has learned, of each language in which they have changed.
    fn add_patterns(
        &mut self,
        services: &Services,
        team: &TeamMembership,
        person: &TeamPerson,
    ) -> Result<(), SyncError> {
        let cache = KnowledgeCache::open(&services.paths.knowledge);
        // Patterns say days alone, and a dry run prints what leaves later on the same day.
        let at = Some(truncate_to_day(services.ambient.now()));
        for (language, export) in exchange::export_own_patterns(&cache)? {
            let hash = content_hash([export.to_string().as_bytes()]);
            if self.patterns.get(language) == Some(&hash) {
                continue;
            }
            self.patterns.insert(language.to_owned(), hash);
            let (machine, person, language) = (team.machine.clone(), person.clone(), language.to_owned());
            self.add(TeamRecord::Patterns(Box::new(SharedPatterns { machine, person, at, language, export })));
        }
        Ok(())
    }

    /// Adds a record, unless others would refuse it.
    fn add(&mut self, record: TeamRecord) {
        match check_record(&record).and_then(|()| check_length(&record)) {
            Ok(()) => self.records.push(record),
            Err(fault) => self.refused.push(match &record {
                TeamRecord::Decision(decision) => format!("the decision about {}: {fault}", decision.finding_id),
                TeamRecord::Review(review) => format!("the review {}: {fault}", review.run.run_id),
                TeamRecord::Patterns(patterns) => format!("the patterns of {}: {fault}", patterns.language),
            }),
        }
    }
}

/// Checks that a record fits into a segment as others read it. A decision is short, because its fields are.
fn check_length(record: &TeamRecord) -> Result<(), String> {
    if matches!(record, TeamRecord::Decision(_)) {
        return Ok(());
    }
    let bytes = serde_json::to_vec(record).map_err(|error| error.to_string())?.len();
    match bytes <= MAX_RECORD_BYTES {
        true => Ok(()),
        false => Err(format!("it has {bytes} bytes, and a record may have {MAX_RECORD_BYTES}")),
    }
}

/// Records that this machine has made already.
#[derive(Default)]
struct KnownRecords {
    /// Latest decision whose clock is not far ahead.
    last_decision: Option<DecisionId>,
    /// Decisions whose clocks are far ahead, because they followed the clock of somebody else. The walk gives these lines other
    /// times, and they are sent again.
    ahead: HashSet<DecisionId>,
    /// Decisions that were not held back.
    decisions: HashSet<(FindingId, DecisionId)>,
    /// Reviews that were not held back.
    runs: HashSet<RunId>,
}

impl KnownRecords {
    fn load(services: &Services, held_back: &[(u64, u64)]) -> Result<Self, StoreError> {
        let mut known = Self::default();
        let now = services.ambient.now();
        for (place, line) in services.store.own_team_lines_at(0)?.0 {
            let is_held_back = is_held_back(held_back, place);
            match serde_json::from_str(&line) {
                Ok(TeamRecord::Decision(decision)) => {
                    if !is_held_back {
                        known.decisions.insert((decision.finding_id, decision.id.clone()));
                    }
                    if decision.id.clock.is_ahead_of(now) {
                        known.ahead.insert(decision.id);
                    } else {
                        known.last_decision = known.last_decision.max(Some(decision.id));
                    }
                }
                Ok(TeamRecord::Review(review)) if !is_held_back => drop(known.runs.insert(review.run.run_id)),
                Ok(TeamRecord::Review(_) | TeamRecord::Patterns(_)) => {}
                Err(error) => tracing::warn!(%error, "a line of team/own.ndjson is not readable"),
            }
        }
        Ok(known)
    }

    /// Returns true if the decision is a record that was not held back.
    fn has(&self, decision: &SharedDecision) -> bool {
        self.decisions.contains(&(decision.finding_id.clone(), decision.id.clone()))
    }

    fn is_new(&self, id: &DecisionId) -> bool {
        self.last_decision.as_ref().is_none_or(|last| id > last) && !self.ahead.contains(id)
    }
}

/// Returns true if the path of a finding may be named. The path of a finding that the store does not know may be an excluded
/// one.
pub fn may_leave(view: &StoreView, filter: &OutgoingFilter, finding: &FindingId) -> bool {
    match view.finding_index(finding.as_str()) {
        Some(index) => filter.may_name(view.finding(index).path),
        None => !filter.excludes_paths(),
    }
}

/// Gives each decision of this machine its time and what it replaces. The lines stand in the order in which the machine has
/// learned of them, and name the decisions of others that it has taken over.
pub fn number_decisions(log: &[Disposition], team: &TeamMembership, person: &TeamPerson) -> Vec<SharedDecision> {
    let mut numbered = Vec::new();
    walk_decisions(log, team, |line, id, over| {
        if is_own_decision(line) {
            numbered.push(SharedDecision {
                id: id.clone(),
                person: person.clone(),
                actor: line.actor,
                finding_id: line.finding_id.clone(),
                status: line.status,
                reason: line.reason.clone(),
                at: line.at,
                action: line.action,
                over: over.to_vec(),
                group: line.group.clone(),
                ci: line.ci,
            });
        }
    });
    numbered
}

/// Calls `visit` for each line with its identity and those of the decisions that its author knew and nobody there had replaced.
pub fn walk_decisions<'a>(
    log: &'a [Disposition],
    team: &TeamMembership,
    mut visit: impl FnMut(&'a Disposition, &DecisionId, &[DecisionId]),
) {
    let mut clock = DecisionClock::default();
    let mut competing: HashMap<&FindingId, Vec<KnownDecision<'a>>> = HashMap::new();
    // On the person's other machines, the groups of this one have another name, and what is redone there comes back with it.
    let prefix = team_group(&team.machine, "");
    for line in log {
        let id = clock.identify(line, &team.machine);
        let known = competing.entry(&line.finding_id).or_default();
        // Whoever takes a decision back does not speak about those of others. A person takes back the own ones of another
        // machine by their group.
        let is_withdrawal = line.is_withdrawal();
        let own_name = |group: &'a str| group.strip_prefix(prefix.as_str()).unwrap_or(group);
        let is_same_step = |group: &'a str| !group.is_empty() && own_name(group) == own_name(&line.group);
        let is_replaced =
            |known: &KnownDecision<'a>| !is_withdrawal || known.id.machine == team.machine || is_same_step(known.group);
        let replaced: Vec<DecisionId> =
            known.iter().filter(|known| is_replaced(known)).map(|known| known.id.clone()).collect();
        visit(line, &id, &replaced[replaced.len().saturating_sub(MAX_REPLACED)..]);
        if is_own_decision(line) {
            known.retain(|known| !is_replaced(known));
        }
        if (line.team.is_some() || is_own_decision(line)) && !known.iter().any(|known| known.id == id) {
            known.push(KnownDecision { id, group: &line.group });
        }
    }
}

/// Decision that nobody on this machine has replaced yet.
struct KnownDecision<'a> {
    id: DecisionId,
    /// Group of its line.
    group: &'a str,
}

/// Builds the record of a completed run; `None` if nothing of it may leave, or its result is damaged.
fn build_review(
    services: &Services,
    team: &TeamMembership,
    person: &TeamPerson,
    filter: &OutgoingFilter,
    record: RunRecord,
) -> Result<Option<TeamRecord>, SyncError> {
    // The record may have got more than the one in the output: which run replaced it.
    let Some(output) = services.store.output_of(&record)? else { return Ok(None) };
    // What a panel has merged travels with the panel's own run.
    if output.damage.is_some() || record.links.member_of.is_some() {
        return Ok(None);
    }
    let held_back = services.list_held_back(&record, &output)?;
    let is_muted_here = |held: &SuppressedReport| held.because != SuppressionReason::Dismissed;
    let is_partial = held_back.reports.iter().any(is_muted_here);
    let mut coverage = output.coverage;
    if is_partial {
        // Others have not muted these kinds, so the review is not the one that they would get.
        (coverage.files, coverage.carried, coverage.partial) = (Vec::new(), Vec::new(), Vec::new());
    }
    let Some((mut run, findings, coverage)) = filter.clean_review(record, output.findings, coverage) else {
        return Ok(None);
    };
    if is_partial {
        make_partial(&mut run);
    }
    run.owner = person.label().to_owned();
    let held_back_places = filter.clean_held_back(held_back.into_places());
    keep_sent_reports(&mut run, &findings, held_back_places.as_deref());
    let (machine, person) = (team.machine.clone(), person.clone());
    let review = SharedReview { machine, person, run, findings, coverage, held_back_places };
    Ok(Some(TeamRecord::Review(Box::new(review))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Actor, FindingStatus, TeamClock, TeamOrigin, Time, TriageAction};

    fn team() -> TeamMembership {
        TeamMembership {
            machine: "ada-1".parse().expect("a name"),
            log: "ada-1".parse().expect("a name"),
            place: "origin".to_owned(),
            project: String::new(),
            joined_at: Time::UNIX_EPOCH,
            left_at: None,
        }
    }

    fn line(finding: char, actor: Actor, ms: i64, from: Option<(i64, &str)>) -> Disposition {
        let origin = from.map(|(ms, machine)| TeamOrigin {
            id: DecisionId { clock: TeamClock { ms, count: 0 }, machine: machine.parse().expect("a name") },
            person: TeamPerson::default(),
        });
        Disposition {
            finding_id: format!("f_{}", String::from(finding).repeat(16)).parse().expect("an id"),
            status: FindingStatus::Dismissed,
            previous: FindingStatus::Open,
            actor,
            reason: String::new(),
            at: Time::from_millisecond(ms).expect("a time"),
            action: TriageAction::Set,
            group: String::new(),
            run_id: None,
            merged_into: None,
            team: origin,
            ci: false,
        }
    }

    #[test]
    fn decisions_are_later_than_all_that_was_known_and_name_what_they_replace() {
        let log = [
            line('a', Actor::User, 100, None),
            line('a', Actor::Engine, 100, None),
            line('b', Actor::Assistant, 100, None),
            // Bob's clock is days ahead.
            line('a', Actor::User, 900_000, Some((900_000, "bob-1"))),
            line('a', Actor::User, 200, None),
            line('b', Actor::User, 900_001, None),
        ];
        let numbered = number_decisions(&log, &team(), &TeamPerson::default());
        let ids: Vec<String> = numbered
            .iter()
            .map(|decision| {
                let name = |id: &DecisionId| format!("{}.{}@{}", id.clock.ms, id.clock.count, id.machine);
                let over: Vec<String> = decision.over.iter().map(name).collect();
                format!("{} over {}", name(&decision.id), over.join(", "))
            })
            .collect();
        assert_eq!(
            ids,
            [
                "100.0@ada-1 over ",
                "100.2@ada-1 over ",
                "900000.1@ada-1 over 100.0@ada-1, 900000.0@bob-1",
                "900001.0@ada-1 over 100.2@ada-1",
            ]
        );
    }

    #[test]
    fn an_undo_takes_back_what_another_own_machine_has_redone() {
        use FindingStatus::{Dismissed, Open};
        use TriageAction::{Redo, Set, Undo};
        let step = |ms: i64, from: Option<&str>, (action, status): (TriageAction, FindingStatus), group: &str| {
            let from = from.map(|machine| (ms, machine));
            Disposition { action, status, group: group.to_owned(), ..line('a', Actor::User, ms, from) }
        };
        // Ada's other machine has undone and redone the decision of this one; there, its group has the name of this machine.
        for (group, expected) in [("team_ada-1_t_1", "1@ada-1 3@ada-2"), ("team_ada-2_t_1", "1@ada-1"), ("", "1@ada-1")]
        {
            let log = [
                step(1, None, (Set, Dismissed), "t_1"),
                step(2, Some("ada-2"), (Undo, Open), "team_bob-1_t_1"),
                step(3, Some("ada-2"), (Redo, Dismissed), group),
                step(4, None, (Undo, Open), "t_1"),
            ];
            let numbered = number_decisions(&log, &team(), &TeamPerson::default());
            let over = numbered.last().map(|last| last.over.iter().map(|id| format!("{}@{}", id.clock.ms, id.machine)));
            assert_eq!(over.expect("an undo").collect::<Vec<_>>().join(" "), expected, "{group}");
        }
    }

    #[test]
    fn the_clock_of_own_decisions_follows_others_up_to_a_year_ahead() {
        const NOW: i64 = 1_764_237_272_000;
        let limit = NOW + TeamClock::MAX_AHEAD_MS;
        for (theirs, expected) in [
            (NOW + 8 * 86_400_000, [(NOW + 8 * 86_400_000, 1_u32), (NOW + 8 * 86_400_000, 2)]),
            (limit, [(limit, 1), (limit, 2)]),
            // It waits until the wall clock comes near it.
            (limit + 1, [(NOW, 0), (limit + 1, 1)]),
            (limit + 2, [(NOW, 0), (NOW + 1, 0)]),
            (7_258_118_399_999, [(NOW, 0), (NOW + 1, 0)]),
        ] {
            let log = [
                line('a', Actor::User, theirs, Some((theirs, "eve-1"))),
                line('a', Actor::User, NOW, None),
                line('b', Actor::User, NOW + 1, None),
            ];
            let numbered = number_decisions(&log, &team(), &TeamPerson::default());
            let clocks: Vec<(i64, u32)> = numbered.iter().map(|decision| decision.id.clock.into()).collect();
            assert_eq!(clocks, expected, "{theirs}");
        }
    }

    #[test]
    fn a_decision_that_followed_a_clock_without_end_is_sent_again_with_its_new_time() {
        let id = |ms: i64| DecisionId { clock: TeamClock { ms, count: 0 }, machine: team().machine };
        let known = KnownRecords {
            last_decision: Some(id(100)),
            ahead: HashSet::from([id(7_258_118_399_999)]),
            ..KnownRecords::default()
        };
        for (ms, expected) in [(99, false), (100, false), (101, true), (7_258_118_399_999, false)] {
            assert_eq!(known.is_new(&id(ms)), expected, "{ms}");
        }
    }

    #[test]
    fn a_record_that_is_too_large_is_named() {
        let patterns = |bytes: usize| {
            let export = serde_json::Value::String("x".repeat(bytes));
            let (machine, person, language) = (team().machine, TeamPerson::default(), "rust".to_owned());
            TeamRecord::Patterns(Box::new(SharedPatterns { machine, person, at: None, language, export }))
        };
        let around = serde_json::to_vec(&patterns(0)).expect("a line").len();
        for (bytes, records, expected) in [
            (MAX_RECORD_BYTES - around, 1, ""),
            (
                MAX_RECORD_BYTES - around + 1,
                0,
                "the patterns of rust: it has 8388609 bytes, and a record may have 8388608",
            ),
        ] {
            let mut own = OwnDecisions::default();
            own.add(patterns(bytes));
            assert_eq!((own.records.len(), own.refused.concat().as_str()), (records, expected));
        }
    }
}
