//! Decides what follows from the lines of an undo or redo, and what is said about each finding: its author takes back what was decided,
//! and what others have decided, or a review has seen, may stand behind it.

use std::collections::{HashMap, HashSet};

use crate::domain::text::sanitize_line;
use crate::domain::{Disposition, FindingId, FindingStatus, RunId, SharedDecision, TriageAction};

/// Lines of an undo or redo, and what they meet.
#[derive(Debug, Clone, Copy)]
pub struct UndoLines<'a> {
    /// Lines of `triage.ndjson` before, oldest first.
    pub log: &'a [Disposition],
    /// Lines by which the author takes decisions back or makes them again.
    pub lines: &'a [Disposition],
    /// Those of `lines` that are recorded. A finding that follows its report anyway has none.
    pub recorded: &'a [Disposition],
    /// Lines that are recorded after them: decisions of the team that stand, and what reviews of this machine have seen.
    pub standing: &'a [Disposition],
}

/// Returns true for a line of an undo that decides as somebody has decided before, see [`restore_replaced`].
pub fn restores_decision(line: &Disposition) -> bool {
    line.action == TriageAction::Undo
        && matches!(line.status, FindingStatus::Addressed | FindingStatus::Dismissed)
        && line.run_id.is_none()
}

/// Lets lines that undo decisions of other machines give back only what the authors of those have replaced. In the log, such a decision
/// may stand behind one of somebody else, of which its author knew nothing: that stands by itself, and is not decided by whoever takes
/// the own one back. `decisions` are those of the team about the findings of the lines.
pub fn restore_replaced(log: &[Disposition], lines: &mut [Disposition], decisions: &[SharedDecision]) {
    for line in lines.iter_mut().filter(|line| restores_decision(line)) {
        let Some(undone) = find_undone(log, line, decisions) else { continue };
        let about = decisions.iter().filter(|other| other.finding_id == undone.finding_id);
        let replaced = about.filter(|other| undone.over.contains(&other.id));
        match replaced.max_by(|one, other| one.id.cmp(&other.id)) {
            Some(replaced) => {
                line.status = replaced.status;
                line.reason = sanitize_line(&replaced.reason).into_owned();
            }
            None => {
                line.status = FindingStatus::Open;
                line.reason.clear();
            }
        }
    }
}

/// Returns the decision of another machine that a line takes back; `None` if nobody had decided before it in the log.
fn find_undone<'a>(
    log: &[Disposition],
    line: &Disposition,
    decisions: &'a [SharedDecision],
) -> Option<&'a SharedDecision> {
    let is_undone = |set: &Disposition| {
        set.action == TriageAction::Set && set.finding_id == line.finding_id && set.group == line.group
    };
    let place = log.iter().position(is_undone)?;
    let origin = log.get(place)?.team.as_ref()?;
    let before = log.get(..place)?.iter().rfind(|before| before.finding_id == line.finding_id);
    before.filter(|before| before.is_decision())?;
    decisions.iter().find(|decision| decision.finding_id == line.finding_id && decision.id == origin.id)
}

/// Lets lines of an undo that would make findings obsolete only take back what was decided: that a finding is obsolete is what this
/// machine has seen, and no decision that holds for others. Returns the lines that make the findings obsolete again here; the caller
/// appends them after the others.
pub fn withdraw_from_obsolete(log: &[Disposition], lines: &mut [Disposition]) -> Vec<Disposition> {
    let is_meant = |line: &Disposition| line.action == TriageAction::Undo && line.status == FindingStatus::Obsolete;
    if !lines.iter().any(is_meant) {
        return Vec::new();
    }
    // What follows from forgetting a machine is no evidence.
    let is_evidence = |line: &&Disposition| {
        !line.is_decision() && line.status == FindingStatus::Obsolete && line.forgotten_machine().is_none()
    };
    let seen: HashMap<&FindingId, &Disposition> =
        log.iter().filter(is_evidence).map(|line| (&line.finding_id, line)).collect();
    let mut again = Vec::new();
    for line in lines.iter_mut().filter(|line| is_meant(line)) {
        line.status = FindingStatus::Open;
        line.reason.clear();
        let seen = seen.get(&line.finding_id);
        again.extend(seen.map(|seen| Disposition { previous: FindingStatus::Open, ..(*seen).clone() }));
    }
    again
}

/// Returns what became of the findings of an undo or redo, a line for each; empty when the step changes nothing.
///
/// - After an undo, a line has the status, author and reason of what stands instead.
/// - A redo says what it has made again: a finding that follows its report is left out unless it has got that status.
pub fn describe_undo(step: UndoLines<'_>) -> Vec<Disposition> {
    let recorded: HashSet<(&FindingId, Option<&RunId>)> =
        step.recorded.iter().map(|line| (&line.finding_id, line.run_id.as_ref())).collect();
    let is_recorded = |line: &Disposition| recorded.contains(&(&line.finding_id, line.run_id.as_ref()));
    let (standing, before) = (index_last_lines(step.standing), index_last_lines(step.log));
    let describe = |line: &Disposition| match line.action {
        TriageAction::Undo => {
            let find_before = || before.get(&line.finding_id).filter(|_| !is_recorded(line));
            let other = standing.get(&line.finding_id).or_else(find_before);
            Some(describe_standing(line, other.copied()))
        }
        TriageAction::Set | TriageAction::Redo => {
            let is_made = || standing.get(&line.finding_id).is_some_and(|standing| standing.status == line.status);
            (is_recorded(line) || is_made()).then(|| line.clone())
        }
    };
    step.lines.iter().filter_map(describe).collect()
}

fn index_last_lines(lines: &[Disposition]) -> HashMap<&FindingId, &Disposition> {
    lines.iter().map(|line| (&line.finding_id, line)).collect()
}

/// Returns what became of the finding of an undone line: the decision of the team, or the evidence of a review, that stands.
fn describe_standing(line: &Disposition, standing: Option<&Disposition>) -> Disposition {
    match standing {
        // Nobody has decided so.
        Some(other) if other.is_withdrawal() => Disposition { status: other.status, ..line.clone() },
        // The finding of a panel's list speaks for a report that gave way.
        Some(other) if other.merged_into.is_none() => Disposition {
            status: other.status,
            actor: other.actor,
            reason: other.reason.clone(),
            team: other.team.clone(),
            ci: other.ci,
            ..line.clone()
        },
        Some(_) | None => line.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Actor, DecisionId, TeamClock, TeamOrigin, TeamPerson, Time};
    use FindingStatus::{Addressed, Dismissed, Obsolete, Open, Unresolved};

    fn line(finding: char, from: FindingStatus, to: FindingStatus, reason: &str) -> Disposition {
        Disposition {
            finding_id: format!("f_{}", String::from(finding).repeat(16)).parse().expect("an id"),
            status: to,
            previous: from,
            actor: Actor::User,
            reason: reason.to_owned(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            group: "t_1".to_owned(),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        }
    }

    fn undone(finding: char, from: FindingStatus, to: FindingStatus) -> Disposition {
        Disposition { action: TriageAction::Undo, ..line(finding, from, to, "") }
    }

    fn seen(finding: char, from: FindingStatus, to: FindingStatus, reason: &str) -> Disposition {
        Disposition { actor: Actor::Engine, ..line(finding, from, to, reason) }
    }

    fn by_bob(status: FindingStatus) -> Disposition {
        let id = DecisionId { clock: TeamClock { ms: 2, count: 0 }, machine: "bob-1".parse().expect("a name") };
        let person = TeamPerson { name: "Bob".to_owned(), email: "bob@example.org".to_owned() };
        Disposition { team: Some(TeamOrigin { id, person }), ..line('a', Open, status, "by Bob") }
    }

    fn run(number: u8) -> RunId {
        format!("ar_{number:026}").parse().expect("an id")
    }

    #[test]
    fn an_undo_decides_for_nobody_that_a_finding_is_obsolete() {
        let id = |letter: char| line(letter, Open, Open, "").finding_id;
        let merge = || Disposition::from_merge(&id('a'), Unresolved, &id('b'), &run(7), Time::UNIX_EPOCH);
        let gone = || seen('a', Addressed, Obsolete, "the code is gone");
        let forgotten = || {
            let machine = "eve-1".parse().expect("a name");
            Disposition::from_forgetting(&machine, id('a'), (Open, Obsolete), String::new(), Time::UNIX_EPOCH)
        };
        let again = |line: Disposition| Disposition { previous: Open, ..line };
        let redone = || Disposition { action: TriageAction::Redo, ..line('a', Dismissed, Obsolete, "x") };
        for (title, log, meant, status, expected) in [
            ("a report of a panel", vec![merge()], undone('a', Dismissed, Obsolete), Open, vec![again(merge())]),
            ("code that is gone", vec![gone()], undone('a', Dismissed, Obsolete), Open, vec![again(gone())]),
            ("the later evidence", vec![merge(), gone()], undone('a', Dismissed, Obsolete), Open, vec![again(gone())]),
            ("a forgotten machine is no evidence", vec![forgotten()], undone('a', Dismissed, Obsolete), Open, vec![]),
            ("nor is a decision", vec![by_bob(Obsolete)], undone('a', Dismissed, Obsolete), Open, vec![]),
            ("another finding", vec![seen('b', Open, Obsolete, "")], undone('a', Dismissed, Obsolete), Open, vec![]),
            (
                "evidence of something else",
                vec![seen('a', Open, Unresolved, "")],
                undone('a', Dismissed, Obsolete),
                Open,
                vec![],
            ),
            ("to another status", vec![gone()], undone('a', Dismissed, Addressed), Addressed, vec![]),
            ("a redo", vec![gone()], redone(), Obsolete, vec![]),
        ] {
            let mut lines = vec![Disposition { reason: "as before".to_owned(), ..meant.clone() }];
            assert_eq!(withdraw_from_obsolete(&log, &mut lines), expected, "{title}");
            let is_withdrawn = meant.status != status;
            let reason = if is_withdrawn { "" } else { "as before" };
            assert_eq!(lines, [Disposition { status, reason: reason.to_owned(), ..meant }], "{title}");
            assert_eq!(lines[0].is_withdrawal(), is_withdrawn, "{title}");
        }
    }

    #[test]
    fn an_undo_gives_back_what_the_author_of_the_decision_has_replaced() {
        // `ada:1:dismissed` is in the log as a decision of another machine of the person, `bob:2:addressed` of another person,
        // `here:3:open` of this machine, and `engine` has seen something. A number behind them is a decision that the author has replaced.
        let id = |ms: &str, machine: &str| DecisionId {
            clock: TeamClock { ms: ms.parse().expect("a time"), count: 0 },
            machine: format!("{machine}-1").parse().expect("a name"),
        };
        for (title, words, meant, expected) in [
            ("nobody knew of the other", &["bob:1:addressed", "ada:2:dismissed"][..], Addressed, (Open, "")),
            ("it replaces that", &["bob:1:addressed", "ada:2:dismissed:bob:1"], Addressed, (Addressed, "reason 1")),
            (
                "it replaces an own one, and knew nothing of the other",
                &["ada:1:addressed", "bob:2:dismissed", "ada:3:open:ada:1"],
                Dismissed,
                (Addressed, "reason 1"),
            ),
            (
                "it replaces one that was taken back",
                &["ada:1:open", "bob:2:dismissed", "ada:3:addressed:ada:1"],
                Dismissed,
                (Open, "reason 1"),
            ),
            ("a review has seen that", &["engine:1:addressed", "ada:2:dismissed"], Addressed, (Addressed, "meant")),
            ("one of this machine", &["bob:1:addressed", "here:2:dismissed"], Addressed, (Addressed, "meant")),
            ("nothing is before it", &["ada:2:dismissed"], Addressed, (Addressed, "meant")),
            ("it decides nothing", &["bob:1:addressed", "ada:2:dismissed"], Unresolved, (Unresolved, "meant")),
        ] {
            let (mut log, mut decisions): (Vec<Disposition>, Vec<SharedDecision>) = (Vec::new(), Vec::new());
            for word in words {
                let parts: Vec<&str> = word.split(':').collect();
                let [author, ms, status, over @ ..] = parts.as_slice() else { panic!("{word}") };
                let status = status.parse().expect("a status");
                let told = line('a', Open, status, &format!("reason {ms}"));
                let told = Disposition { group: format!("t_{ms}"), ..told };
                if ["here", "engine"].contains(author) {
                    let actor = if *author == "here" { Actor::User } else { Actor::Engine };
                    log.push(Disposition { actor, ..told });
                    continue;
                }
                let person = TeamPerson { name: (*author).to_owned(), email: String::new() };
                decisions.push(SharedDecision {
                    id: id(ms, author),
                    person: person.clone(),
                    actor: Actor::User,
                    finding_id: told.finding_id.clone(),
                    status,
                    reason: told.reason.clone(),
                    at: told.at,
                    action: TriageAction::Set,
                    over: over.chunks(2).map(|known| id(known[1], known[0])).collect(),
                    group: told.group.clone(),
                    ci: false,
                });
                log.push(Disposition { team: Some(TeamOrigin { id: id(ms, author), person }), ..told });
            }
            let last = log.last().expect("a line");
            let meant = Disposition { reason: "meant".to_owned(), ..undone('a', last.status, meant) };
            let mut lines = [Disposition { group: last.group.clone(), ..meant }];
            // The order in which the records are read changes nothing.
            for _ in 0..2 {
                let before = lines.clone();
                restore_replaced(&log, &mut lines, &decisions);
                assert_eq!((lines[0].status, lines[0].reason.as_str()), expected, "{title}");
                lines = before;
                decisions.reverse();
            }
        }
    }

    #[test]
    fn an_undone_line_says_what_stands() {
        let claim = || Disposition { actor: Actor::Assistant, ..by_bob(Addressed) };
        let taken_back = || Disposition { action: TriageAction::Undo, ..by_bob(Unresolved) };
        let seen_again = || seen('a', Addressed, Unresolved, "seen again");
        let merged_into = Some(line('b', Open, Open, "").finding_id);
        let merge = || Disposition { merged_into: merged_into.clone(), ..seen('a', Addressed, Obsolete, "seen again") };
        let other = || Disposition { finding_id: line('b', Open, Open, "").finding_id, ..by_bob(Addressed) };
        for (title, standing, expected) in [
            ("nothing", vec![], (Open, "", Actor::User, false)),
            ("another finding", vec![other()], (Open, "", Actor::User, false)),
            ("a decision", vec![by_bob(Dismissed)], (Dismissed, "by Bob", Actor::User, true)),
            ("the last of two", vec![by_bob(Addressed), by_bob(Dismissed)], (Dismissed, "by Bob", Actor::User, true)),
            ("a claim", vec![claim()], (Addressed, "by Bob", Actor::Assistant, true)),
            (
                "what a review has seen since",
                vec![claim(), seen_again()],
                (Unresolved, "seen again", Actor::Engine, false),
            ),
            ("a report that gave way", vec![by_bob(Dismissed), merge()], (Open, "", Actor::User, false)),
            ("what Bob took back", vec![by_bob(Dismissed), taken_back()], (Unresolved, "", Actor::User, false)),
        ] {
            let lines = [undone('a', Dismissed, Open)];
            // A line that is recorded stands before them, so the log says nothing about it.
            let log = [by_bob(Addressed)];
            let said = describe_undo(UndoLines { log: &log, lines: &lines, recorded: &lines, standing: &standing });
            let [said] = said.as_slice() else { panic!("{title}: {said:?}") };
            assert_eq!((said.status, said.reason.as_str(), said.actor, said.team.is_some()), expected, "{title}");
            assert_eq!((said.previous, said.action), (Dismissed, TriageAction::Undo), "{title}");
        }
    }

    #[test]
    fn a_finding_that_follows_its_report_says_what_it_follows() {
        let of_list = |line: Disposition| Disposition { run_id: Some(run(7)), ..line };
        let redone = || Disposition { action: TriageAction::Redo, ..line('a', Open, Dismissed, "intended") };
        let taken_back = || of_list(undone('a', Dismissed, Open));
        for (title, lines, is_recorded, standing, expected) in [
            ("undone, and recorded", taken_back(), true, vec![], Some(Open)),
            ("undone, and not recorded", taken_back(), false, vec![], Some(Addressed)),
            ("undone, and it follows another decision", taken_back(), false, vec![by_bob(Dismissed)], Some(Dismissed)),
            ("redone, and recorded", of_list(redone()), true, vec![], Some(Dismissed)),
            ("redone, and it follows that", of_list(redone()), false, vec![by_bob(Dismissed)], Some(Dismissed)),
            ("redone, and it follows something else", of_list(redone()), false, vec![by_bob(Addressed)], None),
            ("redone, and nothing follows", of_list(redone()), false, vec![], None),
        ] {
            let log = [by_bob(Addressed)];
            let lines = [lines];
            // The line of the report has no run.
            let of_report = [Disposition { run_id: None, ..lines[0].clone() }];
            let recorded = if is_recorded { &lines } else { &of_report };
            let said = describe_undo(UndoLines { log: &log, lines: &lines, recorded, standing: &standing });
            assert_eq!(said.first().map(|said| said.status), expected, "{title}");
            assert_eq!(said.len(), usize::from(expected.is_some()), "{title}");
        }
    }
}
