//! Undo and redo of triage: pure functions over the lines of `triage.ndjson`, `snoozes.ndjson` and `ratings.ndjson`, and a
//! store operation that reads the lines, decides, and appends.
//!
//! An undo or redo is an ordinary disposition with the group of the `set` that it reverts or repeats. A reader that
//! ignores undo and redo still finds the right status, because the last line of a finding wins.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{DisputeSide, Store, StoreError, TeamMembership, TeamProgress};
use crate::domain::{
    Actor, DecisionClock, DecisionId, Disposition, FindingId, FindingRating, FindingSnooze, FindingStatus, Fix, FixId,
    FixStatus, MachineName, Rating, SnoozeEnd, TeamClock, Time, TriageAction,
};

/// Direction of a step through what an author has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoDirection {
    /// Takes back the last step that is not undone yet.
    Undo,
    /// Makes the step again that was undone last, unless the author has decided since.
    Redo,
}

impl UndoDirection {
    /// Returns the action of the lines of a step.
    pub fn action(self) -> TriageAction {
        match self {
            Self::Undo => TriageAction::Undo,
            Self::Redo => TriageAction::Redo,
        }
    }

    /// Returns the status of a fix for which a step also changes files.
    fn fix_status(self) -> FixStatus {
        match self {
            Self::Undo => FixStatus::Applied,
            Self::Redo => FixStatus::Undone,
        }
    }

    /// Returns the value of a finding before and after a step, given those that the author set: `before` in place of `after`.
    fn orient<T>(self, before: T, after: T) -> (T, T) {
        match self {
            Self::Undo => (after, before),
            Self::Redo => (before, after),
        }
    }
}

/// Result of an undo or redo.
#[derive(Debug, Clone, PartialEq)]
pub enum UndoOutcome {
    /// There was nothing to undo or redo.
    Nothing,
    /// The recorded dispositions. Where a decision of the team stands although the own one was taken back, the line has the author,
    /// the status and the reason of that decision, and its origin as `team`.
    Decided(Vec<Disposition>),
    /// The recorded snooze lines.
    Snoozed(Vec<FindingSnooze>),
    /// The recorded ratings.
    Rated(Vec<FindingRating>),
    /// The step belongs to a fix, whose files must be changed before its findings; nothing was recorded.
    Fix(Box<Fix>),
}

/// Lines that undo or redo a group.
#[derive(Debug, Clone, PartialEq)]
pub enum UndoStep {
    /// Lines for `triage.ndjson`.
    Decide(Vec<Disposition>),
    /// Lines for `snoozes.ndjson`.
    Snooze(Vec<FindingSnooze>),
    /// Lines for `ratings.ndjson`.
    Rate(Vec<FindingRating>),
}

/// Lines of a step about decisions, before what follows from them is known.
#[derive(Debug, Clone, PartialEq)]
pub struct StepDraft {
    /// Lines that undo or redo decisions.
    pub lines: Vec<Disposition>,
    /// Lines by which undone reports give way to the findings of panels' lists again.
    pub merges: Vec<Disposition>,
}

/// Record of a step about decisions.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// Lines for `triage.ndjson`.
    pub appended: Vec<Disposition>,
    /// Outcome for each finding, for [`UndoOutcome::Decided`]. If it is empty, nothing is recorded.
    pub said: Vec<Disposition>,
}

/// All lines that undo and redo walk through, oldest first in each list.
#[derive(Debug, Clone, Copy, Default)]
pub struct TriageLog<'a> {
    /// Lines of `triage.ndjson`.
    pub decisions: &'a [Disposition],
    /// Lines of `snoozes.ndjson`.
    pub snoozes: &'a [FindingSnooze],
    /// Lines of `ratings.ndjson`.
    pub ratings: &'a [FindingRating],
}

/// Author whose decisions undo and redo walk through.
#[derive(Debug, Clone, Copy)]
pub struct UndoAuthor<'a> {
    /// The person or an assistant.
    pub actor: Actor,
    /// Where the person decides, too; `None` outside of a team.
    pub elsewhere: Option<OtherMachines<'a>>,
}

/// The other machines of a person in a team.
#[derive(Debug, Clone, Copy)]
pub struct OtherMachines<'a> {
    /// Address of the person, as git knows it; not empty.
    pub email: &'a str,
    /// Name of this machine, which is none of them.
    pub machine: &'a MachineName,
    /// Machines and logs whose records do not count.
    pub forgotten: &'a [MachineName],
    /// Findings about which people disagree, as the last exchange has found them.
    pub disputes: &'a BTreeMap<FindingId, Vec<DisputeSide>>,
}

impl OtherMachines<'_> {
    /// Returns true for a decision that competes with the one of another person that stands. The other person did not know of it.
    fn is_overruled(&self, line: &Disposition) -> bool {
        let machine = line.team.as_ref().map_or(self.machine, |origin| &origin.id.machine);
        let is_side = |side: &DisputeSide| side.machine == *machine && side.status == line.status;
        self.disputes.get(&line.finding_id).is_some_and(|sides| sides.iter().skip(1).any(is_side))
    }
}

impl UndoAuthor<'_> {
    /// Returns the author of what an actor has decided on this machine.
    pub fn here(actor: Actor) -> Self {
        Self { actor, elsewhere: None }
    }

    /// Returns true for a decision that can be taken back although another one stands. A fix is undone with its files.
    fn may_withdraw(&self, line: &Disposition) -> bool {
        parse_fix_group(&line.group).is_none() && self.elsewhere.is_some_and(|other| other.is_overruled(line))
    }

    /// Returns true for a decision of the actor on this machine, or on another machine of the same person. A line that
    /// repeats a decision of this machine, because it stands again, is none.
    fn has_written(&self, line: &Disposition) -> bool {
        line.actor == self.actor
            && line.team.as_ref().is_none_or(|origin| {
                self.elsewhere.is_some_and(|other| {
                    origin.id.machine != *other.machine
                        && !origin.id.machine.is_forgotten(other.forgotten)
                        && origin.person.email.eq_ignore_ascii_case(other.email)
                })
            })
    }

    /// Returns true for a decision of the actor on any machine of the person, also for the line by which one of this machine stands
    /// again.
    fn has_decided(&self, line: &Disposition) -> bool {
        let repeats_own = |other: OtherMachines<'_>| {
            line.actor == self.actor && line.team.as_ref().is_some_and(|origin| origin.id.machine == *other.machine)
        };
        self.has_written(line) || self.elsewhere.is_some_and(repeats_own)
    }

    /// Returns the group of a line as this machine names it: on the person's other machines, the groups of this one have another name.
    fn name_group<'b>(&self, line: &'b Disposition) -> &'b str {
        let strip = |other: OtherMachines<'_>| {
            let name = line.group.strip_prefix(TEAM_GROUP)?;
            name.strip_prefix(other.machine.as_str())?.strip_prefix('_')
        };
        self.elsewhere.filter(|_| line.team.is_some()).and_then(strip).unwrap_or(&line.group)
    }
}

/// Returns the group of a decision of the team on the machines that receive it. `group` is the group on the machine that made
/// it; a group that names another machine already stays.
pub fn team_group(machine: &MachineName, group: &str) -> String {
    if group.starts_with(TEAM_GROUP) { group.to_owned() } else { format!("{TEAM_GROUP}{machine}_{group}") }
}

/// Begin of the groups of decisions of other machines.
const TEAM_GROUP: &str = "team_";

/// Author and place of a line in the order of undo.
#[derive(Debug, Clone, Copy)]
struct LineStep<'a> {
    at: Time,
    actor: Actor,
    action: TriageAction,
    group: &'a str,
}

/// Line that gives a finding a value beside its status, and names the value before.
trait ValueLine: Clone {
    type Value: Clone + PartialEq;

    fn finding(&self) -> &FindingId;
    fn step(&self) -> LineStep<'_>;
    fn value(&self) -> &Self::Value;
    fn previous(&self) -> &Self::Value;
    /// Returns the line with another value.
    fn with(&self, value: Self::Value, previous: Self::Value, at: Time, action: TriageAction) -> Self;
}

impl ValueLine for FindingSnooze {
    type Value = Option<SnoozeEnd>;

    fn finding(&self) -> &FindingId {
        &self.finding_id
    }

    fn step(&self) -> LineStep<'_> {
        LineStep { at: self.at, actor: self.actor, action: self.action, group: &self.group }
    }

    fn value(&self) -> &Self::Value {
        &self.until
    }

    fn previous(&self) -> &Self::Value {
        &self.previous
    }

    fn with(&self, until: Self::Value, previous: Self::Value, at: Time, action: TriageAction) -> Self {
        Self { until, previous, at, action, ..self.clone() }
    }
}

impl ValueLine for FindingRating {
    type Value = Rating;

    fn finding(&self) -> &FindingId {
        &self.finding_id
    }

    fn step(&self) -> LineStep<'_> {
        LineStep { at: self.at, actor: self.actor, action: self.action, group: &self.group }
    }

    fn value(&self) -> &Self::Value {
        &self.rating
    }

    fn previous(&self) -> &Self::Value {
        &self.previous
    }

    fn with(&self, rating: Self::Value, previous: Self::Value, at: Time, action: TriageAction) -> Self {
        Self { rating, previous, at, action, ..self.clone() }
    }
}

impl Store {
    /// Calls `decide` with all dispositions so far and appends its result, under the store's lock, so that a second
    /// process sees the decision of the first. Returns the appended lines.
    ///
    /// # Errors
    /// Returns the error of `decide`, or an error when the store cannot be locked, read or written.
    pub fn decide<E: From<StoreError>>(
        &self,
        decide: impl FnOnce(&[Disposition]) -> Result<Vec<Disposition>, E>,
    ) -> Result<Vec<Disposition>, E> {
        self.with_lock_as(|_| {
            let lines = decide(&self.triage_log()?)?;
            self.append_dispositions(&lines)?;
            Ok(lines)
        })
    }

    /// Undoes the actor's own last triage, or redoes what was undone last; in a team also that of another machine of the person with
    /// this address that is not forgotten. For the decisions of a fix whose files the step changes, the caller must change them.
    ///
    /// `complete` gets the log so far and the lines of the step, and decides which lines record it.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written, or the error of `complete`.
    pub fn undo_or_redo(
        &self,
        direction: UndoDirection,
        actor: Actor,
        email: Option<&str>,
        at: Time,
        complete: impl FnOnce(&[Disposition], StepDraft) -> Result<StepRecord, StoreError>,
    ) -> Result<UndoOutcome, StoreError> {
        if [self.triage_path(), self.snoozes_path(), self.ratings_path()].iter().all(|path| !path.exists()) {
            // Nothing was ever decided, so the store need not be created.
            return Ok(UndoOutcome::Nothing);
        }
        self.with_lock(|_| {
            let (decisions, snoozes, ratings) = (self.triage_log()?, self.snooze_log()?, self.rating_log()?);
            let log = TriageLog { decisions: &decisions, snoozes: &snoozes, ratings: &ratings };
            let team = self.load_author_team(email)?;
            let author = UndoAuthor { actor, elsewhere: team.as_ref().map(AuthorTeam::other_machines) };
            let lines = match find_next_step(log, author, direction, at) {
                None => return Ok(UndoOutcome::Nothing),
                Some(UndoStep::Snooze(lines)) => {
                    self.append_snoozes(&lines)?;
                    return Ok(UndoOutcome::Snoozed(lines));
                }
                Some(UndoStep::Rate(lines)) => {
                    self.append_ratings(&lines)?;
                    return Ok(UndoOutcome::Rated(lines));
                }
                Some(UndoStep::Decide(lines)) => lines,
            };
            if let Some(id) = lines.first().and_then(|line| parse_fix_group(&line.group)) {
                if let Some(fix) = self.fix(&id)?.filter(|fix| fix.status == direction.fix_status()) {
                    return Ok(UndoOutcome::Fix(Box::new(fix)));
                }
                // A fix that was dropped cannot address a finding, so its redo records nothing.
                if direction == UndoDirection::Redo {
                    return Ok(UndoOutcome::Nothing);
                }
            }
            let merges = self.merge_undone_reports(&decisions, &lines)?;
            let StepRecord { appended, said } = complete(&decisions, StepDraft { lines, merges })?;
            if said.is_empty() {
                return Ok(UndoOutcome::Nothing);
            }
            self.append_dispositions(&appended)?;
            Ok(UndoOutcome::Decided(said))
        })
    }

    /// Loads the team of a person with this address; `None` outside of a team. Whoever has left the team takes back nothing
    /// there: no exchange would tell the other machine.
    fn load_author_team<'a>(&self, email: Option<&'a str>) -> Result<Option<AuthorTeam<'a>>, StoreError> {
        let Some(team) = self.active_membership()? else { return Ok(None) };
        let Some(email) = email.filter(|email| !email.is_empty()) else { return Ok(None) };
        // If the file is damaged, no machine is forgotten.
        let TeamProgress { forgotten, disputes, .. } = self.team_progress().unwrap_or_default();
        Ok(Some(AuthorTeam { email, team, forgotten, disputes }))
    }
}

/// Team of a person who undoes, as this machine knows it.
struct AuthorTeam<'a> {
    email: &'a str,
    team: TeamMembership,
    forgotten: Vec<MachineName>,
    disputes: BTreeMap<FindingId, Vec<DisputeSide>>,
}

impl AuthorTeam<'_> {
    fn other_machines(&self) -> OtherMachines<'_> {
        let (machine, forgotten) = (&self.team.machine, self.forgotten.as_slice());
        OtherMachines { email: self.email, machine, forgotten, disputes: &self.disputes }
    }
}

/// Returns the group of the dispositions that applying a fix creates; `step` distinguishes repeated applications.
pub fn fix_group(fix: &FixId, step: &str) -> String {
    format!("{fix}/{step}")
}

fn parse_fix_group(group: &str) -> Option<FixId> {
    group.split_once('/')?.0.parse().ok()
}

/// Returns the lines that undo or redo the actor's last dispositions of this fix; empty when there are none.
pub fn undo_or_redo_fix(
    log: &[Disposition],
    fix: &FixId,
    actor: Actor,
    direction: UndoDirection,
    at: Time,
) -> Vec<Disposition> {
    let log_of_decisions = TriageLog { decisions: log, ..TriageLog::default() };
    let stacks = UndoStacks::from_log(log_of_decisions, UndoAuthor::here(actor));
    let group = stacks.groups(direction).iter().rev().find(|group| parse_fix_group(group).as_ref() == Some(fix));
    group.and_then(|group| stacks.build_decisions(log, group, direction, at)).unwrap_or_default()
}

/// Returns the lines that undo the author's last triage that is not undone yet, or redo the one that was undone last; `None` when there
/// is none.
///
/// Findings whose status was changed since by another actor, such as a later review, are not changed. A
/// group without remaining findings is skipped. A decision that the one of another person has beaten, who did not know of it, is taken
/// back, so that the two no longer disagree. A group of which a decision stands can be undone, although another machine of the person has
/// undone it without knowing of that decision.
pub fn find_next_step(
    log: TriageLog<'_>,
    author: UndoAuthor<'_>,
    direction: UndoDirection,
    at: Time,
) -> Option<UndoStep> {
    let stacks = UndoStacks::from_log(log, author);
    stacks.groups(direction).iter().rev().find_map(|group| stacks.build_step(log, group, direction, at))
}

/// Returns the steps of the author, earliest first, in the order of the team's clock: a step that was made with knowledge of another one
/// is later, whatever the wall clocks say. A snooze or a rating comes after what was decided on this machine before.
fn list_steps<'a>(log: TriageLog<'a>, author: UndoAuthor<'a>) -> Vec<LineStep<'a>> {
    // Outside of a team, the name orders nothing.
    let machine = author.elsewhere.map_or_else(|| MachineName::from_host("", ""), |other| other.machine.clone());
    let mut clock = DecisionClock::default();
    let mut steps: Vec<(DecisionId, LineStep<'a>)> = Vec::new();
    // Wall clock and time of each line of this machine.
    let mut passed: Vec<(Time, TeamClock)> = Vec::new();
    let mut known = HashSet::new();
    for line in log.decisions {
        let id = clock.identify(line, &machine);
        if line.team.is_none() {
            let wall = passed.last().map_or(line.at, |(wall, _)| line.at.max(*wall));
            passed.push((wall, id.clock));
        }
        // A panel's list took it over: it goes with the decision itself, which may have been made long before, and which may stand
        // behind it.
        let is_step = author.has_written(line) && (line.action != TriageAction::Set || !line.is_taken_over());
        // The line of a decision that stands again is no step.
        if is_step && (line.team.is_none() || known.insert(id.clone())) {
            let group = author.name_group(line);
            steps.push((id, LineStep { at: line.at, actor: line.actor, action: line.action, group }));
        }
    }
    let find_place = |step: &LineStep<'a>| {
        let wall = TeamClock { ms: step.at.as_millisecond(), count: 0 };
        let before = passed.partition_point(|(wall, _)| *wall <= step.at).checked_sub(1);
        let before = before.and_then(|index| passed.get(index));
        let clock = before.map_or(wall, |(_, clock)| wall.max(*clock));
        DecisionId { clock, machine: machine.clone() }
    };
    let values = log.snoozes.iter().map(ValueLine::step).chain(log.ratings.iter().map(ValueLine::step));
    let own = values.filter(|step| step.actor == author.actor);
    steps.extend(own.map(|step| (find_place(&step), step)));
    steps.sort_by(|(one, first), (other, second)| one.cmp(other).then(first.at.cmp(&second.at)));
    steps.into_iter().map(|(_, step)| step).collect()
}

/// Returns the groups of which a decision of the author stands: it is the last decision about its finding, and gives the finding its
/// status, which `present` has.
fn list_standing_groups<'a>(
    last_decisions: &HashMap<&'a FindingId, &'a Disposition>,
    present: &HashMap<&'a FindingId, FindingStatus>,
    author: UndoAuthor<'a>,
) -> HashSet<&'a str> {
    let is_standing = |line: &&'a Disposition| {
        line.action != TriageAction::Undo
            && !line.is_taken_over()
            && present.get(&line.finding_id) == Some(&line.status)
            && author.has_decided(line)
    };
    last_decisions.values().copied().filter(is_standing).map(|line| author.name_group(line)).collect()
}

/// The groups of one author in the order in which undo and redo process them.
struct UndoStacks<'a> {
    author: UndoAuthor<'a>,
    done: Vec<&'a str>,
    undone: Vec<&'a str>,
    /// Last status of each finding, set by any actor.
    present: HashMap<&'a FindingId, FindingStatus>,
    /// Last decision about each finding, by any person or assistant.
    last_decisions: HashMap<&'a FindingId, &'a Disposition>,
}

impl<'a> UndoStacks<'a> {
    fn from_log(log: TriageLog<'a>, author: UndoAuthor<'a>) -> Self {
        let (mut done, mut undone): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        let present: HashMap<&'a FindingId, FindingStatus> =
            log.decisions.iter().map(|line| (&line.finding_id, line.status)).collect();
        let decisions = log.decisions.iter().filter(|line| line.is_decision());
        let last_decisions: HashMap<&'a FindingId, &'a Disposition> =
            decisions.map(|line| (&line.finding_id, line)).collect();
        let standing = list_standing_groups(&last_decisions, &present, author);
        for LineStep { action, group, .. } in list_steps(log, author) {
            let list = match action {
                TriageAction::Set => {
                    undone.clear();
                    &mut done
                }
                TriageAction::Undo => {
                    // Another machine of the person, which did not know of the undo, has redone the step: there is something to
                    // take back.
                    if !standing.contains(group) {
                        done.retain(|other| *other != group);
                    }
                    &mut undone
                }
                TriageAction::Redo => {
                    undone.retain(|other| *other != group);
                    &mut done
                }
            };
            if list.last() != Some(&group) {
                list.push(group);
            }
        }
        Self { author, done, undone, present, last_decisions }
    }

    /// Returns true if the author has taken this decision back, and nothing has happened since. Where it stood in the log behind one of
    /// somebody else, the finding has another status than before it.
    fn is_withdrawn_since(&self, set: &Disposition, present: FindingStatus) -> bool {
        let is_same_step = |last: &Disposition| self.author.name_group(last) == set.group;
        self.last_decisions.get(&set.finding_id).is_some_and(|last| {
            last.is_withdrawal() && last.status == present && self.author.has_decided(last) && is_same_step(last)
        })
    }

    /// Returns the groups that can be undone or redone, the next one last.
    fn groups(&self, direction: UndoDirection) -> &[&'a str] {
        match direction {
            UndoDirection::Undo => &self.done,
            UndoDirection::Redo => &self.undone,
        }
    }

    /// Returns the lines that undo or redo a group; `None` when no finding of the group can be changed.
    fn build_step(&self, log: TriageLog<'_>, group: &str, direction: UndoDirection, at: Time) -> Option<UndoStep> {
        let snoozes = self.build_values(log.snoozes, group, direction, at).map(UndoStep::Snooze);
        let ratings = || self.build_values(log.ratings, group, direction, at).map(UndoStep::Rate);
        let decisions = || self.build_decisions(log.decisions, group, direction, at).map(UndoStep::Decide);
        snoozes.or_else(ratings).or_else(decisions)
    }

    /// Returns the lines of one kind that undo or redo a group; `None` when it has none that can be changed.
    fn build_values<L: ValueLine>(&self, log: &[L], group: &str, direction: UndoDirection, at: Time) -> Option<Vec<L>> {
        let is_set = |line: &&L| {
            let step = line.step();
            step.actor == self.author.actor && step.action == TriageAction::Set && step.group == group
        };
        let sets: Vec<&L> = log.iter().filter(is_set).collect();
        if sets.is_empty() {
            return None;
        }
        let present: HashMap<&FindingId, &L::Value> = log.iter().map(|line| (line.finding(), line.value())).collect();
        let lines: Vec<L> = sets
            .into_iter()
            .filter_map(|set| {
                let (from, to) = direction.orient(set.previous(), set.value());
                let is_unchanged = present.get(set.finding()) == Some(&from);
                is_unchanged.then(|| set.with(to.clone(), from.clone(), at, direction.action()))
            })
            .collect();
        (!lines.is_empty()).then_some(lines)
    }

    /// Returns the dispositions that undo or redo a group; `None` when no finding of the group can be changed.
    fn build_decisions(
        &self,
        log: &[Disposition],
        group: &str,
        direction: UndoDirection,
        at: Time,
    ) -> Option<Vec<Disposition>> {
        // A finding of a panel's list has the origin of the decision that it took over.
        let mut known = HashSet::new();
        let sets = log
            .iter()
            .enumerate()
            .filter(|(_, line)| {
                line.action == TriageAction::Set && line.group == group && self.author.has_written(line)
            })
            .filter(|(_, line)| line.team.as_ref().is_none_or(|origin| known.insert((&line.finding_id, &origin.id))));
        // Where a finding of a panel's list has followed another decision before, it follows that one again. To give it back here would
        // be a decision about the finding itself.
        let sets = sets.filter(|(_, line)| !line.follows_report() || line.previous.is_undecided());
        let changes = sets.filter_map(|(place, set)| {
            let (from, to) = direction.orient(set.previous, set.status);
            let present = *self.present.get(&set.finding_id)?;
            let is_withdrawn =
                || direction == UndoDirection::Undo && to.is_undecided() && self.author.may_withdraw(set);
            let is_redone = || direction == UndoDirection::Redo && self.is_withdrawn_since(set, present);
            (present == from || is_withdrawn() || is_redone()).then_some((place, set, present, to))
        });
        // It has followed the decision once more for each time that another machine has redone it.
        let mut followers = HashSet::new();
        let changes = changes.filter(|(_, set, ..)| !set.follows_report() || followers.insert(&set.finding_id));
        let changes: Vec<(usize, &Disposition, FindingStatus, FindingStatus)> = changes.collect();
        if changes.is_empty() {
            return None;
        }
        // The last reason of each status before the step, so that a restored dismissal keeps its reason, also if the step gave
        // it another one.
        let mut reasons: HashMap<(&FindingId, FindingStatus), &str> = HashMap::new();
        let mut walked = 0;
        let lines = changes.into_iter().map(|(place, set, from, to)| {
            let before = log.get(walked..place).unwrap_or_default();
            reasons.extend(before.iter().map(|line| ((&line.finding_id, line.status), line.reason.as_str())));
            walked = place;
            let reason = match direction {
                UndoDirection::Undo => reasons.get(&(&set.finding_id, to)).copied().unwrap_or_default(),
                UndoDirection::Redo => set.reason.as_str(),
            };
            let (reason, action) = (reason.to_owned(), direction.action());
            Disposition { status: to, previous: from, reason, at, action, team: None, ..set.clone() }
        });
        Some(lines.collect())
    }
}

#[cfg(test)]
mod tests;
