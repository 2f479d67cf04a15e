//! Decisions about a finding as people read them: in the order of the team's clock, each once.
//!
//! `triage.ndjson` has decisions in the order in which this machine has learned of them, and its last line about a finding is the
//! status. So when the team sends a decision that does not stand, the one that stands is appended once more behind it. Machines
//! that have the same decisions have them in different orders, and must show the same history:
//!
//! - Decisions stand in the order of the hybrid logical clock; ties are broken by the name of the machine.
//! - A decision behind the one that stands does not count, and says so: a claim after a person's decision, for example.
//! - What reviews have seen is known to this machine alone. It stands before the decisions that came after it, so that the last
//!   line that counts gives the status.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use super::{Store, StoreError, files, lines};
use crate::domain::{
    DecisionClock, DecisionId, Disposition, FindingId, FindingStatus, MachineName, TeamOrigin, TeamPerson, word_enum,
};

word_enum!(
    /// Reason why a decision of a history does not count.
    VoidCause {
        /// Another decision stands, although it is earlier.
        Beaten = "beaten",
        /// The records of its machine are not used any more.
        Forgotten = "forgotten",
    }
);

impl VoidCause {
    /// Returns the reason in the words of a history.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Beaten => "does not stand",
            Self::Forgotten => "no longer counts: machine forgotten",
        }
    }
}

/// Decisions about a finding, and what reviews of this machine have seen, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecisionHistory {
    /// Lines, in their order. `previous` follows this order.
    pub lines: Vec<Disposition>,
    /// Decisions that do not count, by their index in `lines`.
    pub void: BTreeMap<usize, VoidCause>,
}

/// Line about a finding with its place in the order of all decisions.
struct IdentifiedLine {
    id: DecisionId,
    line: Disposition,
}

/// Builds the history of a finding from all lines of a log, because the times of own decisions follow from all lines before them.
pub(crate) struct HistoryBuilder<'a> {
    finding: &'a FindingId,
    machine: &'a MachineName,
    clock: DecisionClock,
    lines: Vec<IdentifiedLine>,
}

impl<'a> HistoryBuilder<'a> {
    /// Begins the history of a finding in the log of `machine`.
    pub(crate) fn new(finding: &'a FindingId, machine: &'a MachineName) -> Self {
        Self { finding, machine, clock: DecisionClock::default(), lines: Vec::new() }
    }

    /// Takes the next line of the log.
    pub(crate) fn add(&mut self, line: Disposition) {
        let id = self.clock.identify(&line, self.machine);
        if line.finding_id == *self.finding {
            self.lines.push(IdentifiedLine { id, line });
        }
    }

    /// Returns the history. Own decisions get an origin if `author` returns the person of a decision.
    pub(crate) fn finish(
        self,
        forgotten: &[MachineName],
        author: impl Fn(&DecisionId) -> Option<TeamPerson>,
    ) -> DecisionHistory {
        let (ordered, void) = order_lines(self.lines, forgotten);
        let lines = ordered.into_iter().map(|IdentifiedLine { id, line }| {
            if !line.is_decision() || line.team.is_some() {
                return line;
            }
            let team = author(&id).map(|person| TeamOrigin { id, person });
            Disposition { team, ..line }
        });
        DecisionHistory { lines: lines.collect(), void }
    }
}

impl Store {
    /// Returns the decisions about a finding for people. Reads the clock of own decisions only if others have decided, too.
    ///
    /// # Errors
    /// Returns an error when `triage.ndjson` cannot be read.
    pub fn decision_history(&self, id: &FindingId) -> Result<DecisionHistory, StoreError> {
        let lines = self.dispositions(id)?;
        if lines.iter().all(|line| line.team.is_none()) {
            return Ok(DecisionHistory { lines, void: BTreeMap::new() });
        }
        // The name of this machine only breaks ties, so a damaged file does no harm.
        let team = self.team_membership().unwrap_or_default();
        let machine = team.map_or_else(|| MachineName::from_host("", ""), |team| team.machine);
        self.order_history(id, &machine, |_| None)
    }

    /// Does the same as [`Store::decision_history`]. While this machine takes part in a team, its own decisions have their origin
    /// as on other machines, so that both show the same. `person` is the author of what was not sent yet.
    ///
    /// # Errors
    /// Returns an error when a file of the store cannot be read.
    pub fn shared_decision_history(&self, id: &FindingId, person: &TeamPerson) -> Result<DecisionHistory, StoreError> {
        let Some(team) = self.active_membership()? else {
            return self.decision_history(id);
        };
        if !self.dispositions(id)?.iter().any(Disposition::is_decision) {
            return self.decision_history(id);
        }
        let authors = self.sent_authors(id)?;
        self.order_history(id, &team.machine, |id| Some(authors.get(id).unwrap_or(person).clone()))
    }

    fn order_history(
        &self,
        id: &FindingId,
        machine: &MachineName,
        author: impl Fn(&DecisionId) -> Option<TeamPerson>,
    ) -> Result<DecisionHistory, StoreError> {
        let mut builder = HistoryBuilder::new(id, machine);
        let path = self.triage_path();
        if let Some(file) = files::open_read(&path)? {
            lines::read_forwards(&file, 0, |_, line| {
                if let Ok(line) = serde_json::from_slice(line) {
                    builder.add(line);
                }
            })
            .map_err(StoreError::io("read", &path))?;
        }
        let forgotten = self.team_progress().map(|progress| progress.forgotten).unwrap_or_default();
        Ok(builder.finish(&forgotten, author))
    }
}

/// Orders the lines about one finding, which stand as in the file; returns those that do not count by their new index.
fn order_lines(
    lines: Vec<IdentifiedLine>,
    forgotten: &[MachineName],
) -> (Vec<IdentifiedLine>, BTreeMap<usize, VoidCause>) {
    let mut previous = lines.first().map_or(FindingStatus::Open, |first| first.line.previous);
    let end = lines.len();
    // Each decision with the last of its places, and what reviews have seen with its place.
    let mut decisions: BTreeMap<DecisionId, (usize, Disposition)> = BTreeMap::new();
    let mut seen: Vec<(usize, IdentifiedLine)> = Vec::new();
    for (place, IdentifiedLine { id, line }) in lines.into_iter().enumerate() {
        if !line.is_decision() {
            seen.retain(|(_, earlier)| !is_repeated(&earlier.line, &line));
            seen.push((place, IdentifiedLine { id, line }));
            continue;
        }
        match decisions.entry(id) {
            Entry::Vacant(entry) => {
                entry.insert((place, line));
            }
            Entry::Occupied(mut entry) => {
                let (last, known) = entry.get_mut();
                *last = place;
                // The own words of this machine are whole. Of two different decisions with one identity, the later line stands.
                if known.team.is_some() || known.decision_facts() != line.decision_facts() {
                    *known = line;
                }
            }
        }
    }
    // A machine that is used again needs no line that says that it is not, unless that still gives the status.
    seen.retain(|(place, entry)| {
        entry.line.forgotten_machine().is_none_or(|machine| place + 1 == end || machine.is_forgotten(forgotten))
    });
    let is_forgotten = |id: &DecisionId, line: &Disposition| line.team.is_some() && id.machine.is_forgotten(forgotten);
    let counting = decisions.iter().filter(|(id, (_, line))| !is_forgotten(id, line));
    let standing = counting.max_by_key(|(_, (last, _))| *last).map(|(id, _)| id.clone());
    let (mut ordered, mut void) = (Vec::new(), BTreeMap::new());
    let mut seen = seen.into_iter().peekable();
    for (id, (last, line)) in decisions {
        while let Some((_, entry)) = seen.next_if(|(place, _)| *place < last) {
            ordered.push(entry);
        }
        if is_forgotten(&id, &line) {
            void.insert(ordered.len(), VoidCause::Forgotten);
        } else if standing.as_ref().is_some_and(|standing| id > *standing) {
            void.insert(ordered.len(), VoidCause::Beaten);
        }
        ordered.push(IdentifiedLine { id, line });
    }
    ordered.extend(seen.map(|(_, entry)| entry));
    for (index, entry) in ordered.iter_mut().enumerate() {
        // The decision that such a line takes back has no effect here any more.
        if entry.line.forgotten_machine().is_none() {
            entry.line.previous = previous;
        }
        if !void.contains_key(&index) {
            previous = entry.line.status;
        }
    }
    (ordered, void)
}

/// Returns true if evidence of a review was appended once more, behind decisions that arrived late.
fn is_repeated(earlier: &Disposition, line: &Disposition) -> bool {
    let fields = |line: &Disposition| (line.at, line.status, line.action, line.run_id.clone(), line.group.clone());
    fields(earlier) == fields(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Actor, TeamClock, Time, TriageAction};

    /// Builds lines from words such as `ada:1:dismissed`: author, time and status. `you` decides here, `engine` sees something, and
    /// `forget-ada` is the line that follows from forgetting Ada.
    fn lines(words: &str) -> Vec<IdentifiedLine> {
        let mut previous = FindingStatus::Open;
        let line = |word: &str| {
            let parts: Vec<&str> = word.split(':').collect();
            let [author, ms, status] = parts.as_slice() else { panic!("{word}") };
            let is_own = *author == "you";
            let is_seen = *author == "engine" || author.starts_with("forget-");
            let forgotten: Option<MachineName> =
                author.strip_prefix("forget-").map(|name| name.parse().expect("a name"));
            let ms: i64 = ms.parse().expect("a time");
            let status: FindingStatus = status.parse().expect("a status");
            let name = if is_own || is_seen { "me" } else { *author };
            let machine: MachineName = name.parse().expect("a name");
            let id = DecisionId { clock: TeamClock { ms, count: 0 }, machine };
            let origin = TeamOrigin { id: id.clone(), person: TeamPerson::default() };
            let line = Disposition {
                finding_id: "f_00000000000000aa".parse().expect("an id"),
                status,
                previous: std::mem::replace(&mut previous, status),
                actor: if is_seen { Actor::Engine } else { Actor::User },
                reason: String::new(),
                at: Time::from_millisecond(ms).expect("a time"),
                action: TriageAction::Set,
                group: forgotten.as_ref().map(Disposition::forget_group).unwrap_or_default(),
                run_id: None,
                merged_into: None,
                team: Some(origin).filter(|_| !is_own && !is_seen),
                ci: false,
            };
            IdentifiedLine { id, line }
        };
        words.split_whitespace().map(line).collect()
    }

    fn describe(words: &str, forgotten: &[MachineName]) -> String {
        let (ordered, void) = order_lines(lines(words), forgotten);
        let describe = |(index, IdentifiedLine { line, .. }): (usize, &IdentifiedLine)| {
            let mark = void.get(&index).map_or(String::new(), |cause| format!(" ({cause})"));
            format!("{}>{}{mark}", line.previous, line.status)
        };
        ordered.iter().enumerate().map(describe).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn decisions_stand_in_the_order_of_the_clock_whatever_came_first() {
        for (words, expected) in [
            ("", ""),
            ("you:2:addressed", "open>addressed"),
            // A decision that stands again is told once, behind those that it beats.
            ("you:2:addressed ada:1:dismissed you:2:addressed", "open>dismissed, dismissed>addressed"),
            ("bob:2:addressed ada:1:dismissed bob:2:addressed", "open>dismissed, dismissed>addressed"),
            (
                "bob:3:addressed ada:1:dismissed cleo:2:open bob:3:addressed",
                "open>dismissed, dismissed>open, open>addressed",
            ),
            // One time: the name of the machine decides, also against the own one.
            ("you:2:open bob:2:dismissed you:2:open", "open>dismissed, dismissed>open"),
            ("zoe:2:dismissed you:2:open zoe:2:dismissed", "open>open, open>dismissed"),
            // A later decision that does not stand, such as a claim after a person's decision.
            ("ada:1:dismissed bob:2:addressed ada:1:dismissed", "open>dismissed, dismissed>addressed (beaten)"),
            ("bob:2:addressed ada:1:dismissed", "open>dismissed, dismissed>addressed (beaten)"),
            // What a review has seen stays before what came after it.
            (
                "bob:3:addressed engine:4:unresolved ada:1:dismissed bob:3:addressed",
                "open>unresolved, unresolved>dismissed, dismissed>addressed",
            ),
            ("engine:4:addressed ada:1:dismissed", "open>addressed, addressed>dismissed"),
            // A late decision changes nothing about newer evidence, which is repeated behind it.
            ("engine:4:unresolved ada:1:addressed engine:4:unresolved", "open>addressed, addressed>unresolved"),
            // A person may say the same twice.
            ("you:1:dismissed you:2:open you:3:dismissed", "open>dismissed, dismissed>open, open>dismissed"),
        ] {
            assert_eq!(describe(words, &[]), expected, "{words}");
        }
    }

    #[test]
    fn decisions_of_a_forgotten_machine_say_that_they_do_not_count() {
        let eve: MachineName = "eve".parse().expect("a name");
        for (words, is_forgotten, expected) in [
            ("eve:1:dismissed forget-eve:2:open", true, "open>dismissed (forgotten), dismissed>open"),
            ("you:1:dismissed eve:2:open you:1:dismissed", true, "open>dismissed, dismissed>open (forgotten)"),
            // Between `team remember` and the next exchange, the line still gives the status.
            ("eve:1:dismissed forget-eve:2:open", false, "open>dismissed, dismissed>open"),
            ("eve:1:dismissed forget-eve:2:open eve:1:dismissed", false, "open>dismissed"),
        ] {
            let forgotten: &[MachineName] = if is_forgotten { std::slice::from_ref(&eve) } else { &[] };
            assert_eq!(describe(words, forgotten), expected, "{words}");
        }
    }
}
