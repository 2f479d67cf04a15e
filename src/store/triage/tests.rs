//! Tests of undo and redo.

use super::UndoDirection::{Redo, Undo};
use super::*;
use crate::domain::{RunId, TeamOrigin, TeamPerson};

fn line(finding: char, group: &str, from: FindingStatus, to: FindingStatus, reason: &str) -> Disposition {
    Disposition {
        finding_id: format!("f_{}", String::from(finding).repeat(16)).parse().expect("an id"),
        status: to,
        previous: from,
        actor: Actor::User,
        reason: reason.into(),
        at: Time::UNIX_EPOCH,
        action: TriageAction::Set,
        group: group.into(),
        run_id: None,
        merged_into: None,
        team: None,
        ci: false,
    }
}

fn undo(log: &[Disposition], at: Time) -> Option<Vec<Disposition>> {
    step(log, Undo, at)
}

fn redo(log: &[Disposition], at: Time) -> Option<Vec<Disposition>> {
    step(log, Redo, at)
}

fn step(log: &[Disposition], direction: UndoDirection, at: Time) -> Option<Vec<Disposition>> {
    let log = TriageLog { decisions: log, ..TriageLog::default() };
    find_next_step(log, UndoAuthor::here(Actor::User), direction, at).map(decisions)
}

fn decisions(step: UndoStep) -> Vec<Disposition> {
    match step {
        UndoStep::Decide(lines) => lines,
        step => panic!("{step:?}"),
    }
}

fn statuses(lines: &Option<Vec<Disposition>>) -> Vec<(String, &'static str)> {
    let lines = lines.iter().flatten();
    lines.map(|line| (line.finding_id.as_str()[2..3].to_owned(), line.status.word())).collect()
}

#[test]
fn undo_and_redo_walk_the_groups() {
    use FindingStatus::{Addressed, Dismissed, Open};
    let at = Time::UNIX_EPOCH;
    let mut log = vec![
        line('a', "1", Open, Dismissed, "noise"),
        line('b', "2", Open, Addressed, ""),
        line('c', "2", Open, Addressed, ""),
        line('a', "3", Dismissed, Addressed, "done"),
    ];
    let mut steps = Vec::new();
    // z is undo and y is redo; each step shows the resulting status of the finding.
    for key in "zzzzyyyyzz".chars() {
        let lines = if key == 'z' { undo(&log, at) } else { redo(&log, at) };
        steps.push(statuses(&lines).iter().map(|(id, status)| format!("{id} {status}")).collect::<Vec<_>>().join(", "));
        log.extend(lines.into_iter().flatten());
    }
    assert_eq!(
        steps,
        [
            "a dismissed",
            "b open, c open",
            "a open",
            "",
            "a dismissed",
            "b addressed, c addressed",
            "a addressed",
            "",
            "a dismissed",
            "b open, c open"
        ]
    );
    assert_eq!(log[4].reason, "noise", "a dismissal that comes back keeps its reason");
    // A new triage ends the possible redos.
    log.push(line('d', "4", Open, Dismissed, "x"));
    assert_eq!(redo(&log, at), None);
    assert_eq!(statuses(&undo(&log, at)), [("d".to_owned(), "open")]);
}

#[test]
fn a_decision_that_a_panel_took_over_goes_back_with_the_decision_itself() {
    use FindingStatus::{Addressed, Dismissed, Open};
    let at = Time::UNIX_EPOCH;
    let run: RunId = format!("ar_{:026}", 7).parse().expect("an id");
    let taken_over = Disposition { run_id: Some(run), ..line('b', "1", Open, Dismissed, "intended") };
    let mut log = vec![line('a', "1", Open, Dismissed, "intended"), line('c', "2", Open, Addressed, ""), taken_over];
    let mut steps = Vec::new();
    for key in "zzzyy".chars() {
        let lines = if key == 'z' { undo(&log, at) } else { redo(&log, at) };
        steps.push(statuses(&lines).iter().map(|(id, status)| format!("{id} {status}")).collect::<Vec<_>>().join(", "));
        log.extend(lines.into_iter().flatten());
    }
    assert_eq!(steps, ["c open", "a open, b open", "", "a dismissed, b dismissed", "c addressed"]);
}

#[test]
fn a_dismissal_that_got_another_reason_gets_the_one_before_back() {
    use FindingStatus::{Addressed, Dismissed, Open};
    let at = Time::UNIX_EPOCH;
    let run: RunId = format!("ar_{:026}", 7).parse().expect("an id");
    let taken_over = |line: Disposition| Disposition { run_id: Some(run.clone()), ..line };
    let mut log = vec![
        line('b', "1", Open, Dismissed, "intended"),
        line('a', "2", Open, Dismissed, "false alarm"),
        taken_over(line('b', "2", Dismissed, Dismissed, "false alarm")),
        line('c', "3", Open, Addressed, "done"),
    ];
    let mut steps = Vec::new();
    for key in "zzyzz".chars() {
        let lines = if key == 'z' { undo(&log, at) } else { redo(&log, at) };
        let said = lines.iter().flatten().map(|line| format!("{} {}", line.status.word(), line.reason));
        steps.push(said.collect::<Vec<_>>().join(", "));
        log.extend(lines.into_iter().flatten());
    }
    assert_eq!(
        steps,
        [
            "open ",
            "open , dismissed intended",
            "dismissed false alarm, dismissed false alarm",
            "open , dismissed intended",
            "open "
        ]
    );
}

#[test]
fn what_a_fix_decided_goes_back_and_forth_with_it() {
    use FindingStatus::{Addressed, Dismissed, Open};
    let fix: FixId = format!("fx_{:026}", 7).parse().expect("an id");
    let at = Time::UNIX_EPOCH;
    let group = fix_group(&fix, "t_1");
    let mut log = vec![
        line('a', &group, Open, Addressed, ""),
        line('b', &group, Open, Addressed, ""),
        line('c', "t_2", Open, Dismissed, "x"),
        line('b', "t_3", Addressed, Dismissed, "x"),
    ];
    let back = undo_or_redo_fix(&log, &fix, Actor::User, Undo, at);
    assert_eq!(statuses(&Some(back.clone())), [("a".to_owned(), "open")], "b is something else meanwhile");
    assert_eq!(undo_or_redo_fix(&log, &fix, Actor::User, Redo, at), []);
    log.extend(back);
    assert_eq!(undo_or_redo_fix(&log, &fix, Actor::User, Undo, at), []);
    assert_eq!(statuses(&Some(undo_or_redo_fix(&log, &fix, Actor::User, Redo, at))), [("a".to_owned(), "addressed")]);
    assert_eq!(parse_fix_group("t_2"), None);
}

#[test]
fn a_person_undoes_here_what_the_same_person_decided_elsewhere() {
    use FindingStatus::{Addressed, Dismissed, Open};
    let here: MachineName = "ada-2".parse().expect("a name");
    let time = |seconds: i64| Time::from_second(seconds).expect("a time");
    let sent = |at: i64, (machine, email): (&str, &str), line: Disposition| Disposition {
        group: team_group(&machine.parse().expect("a name"), &line.group),
        at: time(at),
        team: Some(TeamOrigin {
            id: DecisionId {
                clock: TeamClock { ms: at * 1_000, count: u32::from(line.finding_id.as_str().as_bytes()[2]) },
                machine: machine.parse().expect("a name"),
            },
            person: TeamPerson { name: "Ada".to_owned(), email: email.to_owned() },
        }),
        ..line
    };
    let own = |at: i64, line: Disposition| Disposition { at: time(at), ..line };
    let (ada, bob) = (("ada-1", "Ada@example.org"), ("bob-1", "bob@example.org"));
    let one = || sent(1, ada, line('a', "t_1", Open, Dismissed, "intended"));
    let taken_over = || {
        let run: RunId = format!("ar_{:026}", 7).parse().expect("an id");
        Disposition { finding_id: line('b', "", Open, Dismissed, "").finding_id, run_id: Some(run), ..one() }
    };
    /// Group of the decision about `a` of the other machine, as this one names it.
    const OTHER_GROUP: &str = "team_ada-1_t_1";
    let undone = |group: &str| Disposition { action: TriageAction::Undo, ..line('a', group, Dismissed, Open, "") };
    let redone =
        |group: &str| Disposition { action: TriageAction::Redo, ..line('a', group, Open, Dismissed, "intended") };
    let disputes = BTreeMap::new();
    let elsewhere = OtherMachines { email: "ada@example.org", machine: &here, forgotten: &[], disputes: &disputes };
    let author = UndoAuthor { actor: Actor::User, elsewhere: Some(elsewhere) };
    // z is undo and y is redo.
    for (title, mut log, keys, expected) in [
        ("all of a group", vec![one(), sent(1, ada, line('b', "t_1", Open, Dismissed, "x"))], "zz", "a open, b open|"),
        ("there and back", vec![one()], "zyz", "a open|a dismissed|a open"),
        (
            "one that a panel of this machine took over",
            vec![one(), taken_over()],
            "zyz",
            "a open, b open|a dismissed, b dismissed|a open, b open",
        ),
        (
            "one that the list took over in a line before",
            vec![taken_over(), one()],
            "zyz",
            "b open, a open|b dismissed, a dismissed|b open, a open",
        ),
        (
            "one in place of which the list has followed another person before",
            vec![
                Disposition { run_id: taken_over().run_id, ..sent(0, bob, line('b', "t_9", Open, Dismissed, "x")) },
                sent(1, ada, line('a', "t_1", Open, Addressed, "")),
                Disposition { status: Addressed, previous: Dismissed, reason: String::new(), ..taken_over() },
            ],
            "zy",
            "a open|a addressed",
        ),
        (
            "one that was redone there, and that the list follows once more",
            vec![
                one(),
                taken_over(),
                sent(2, ada, Disposition { action: TriageAction::Undo, ..line('a', "t_1", Dismissed, Open, "") }),
                sent(3, ada, Disposition { action: TriageAction::Redo, ..line('a', "t_1", Open, Dismissed, "x") }),
                Disposition { run_id: taken_over().run_id, ..sent(3, ada, line('b', "t_1", Open, Dismissed, "x")) },
            ],
            "zyz",
            "a open, b open|a dismissed, b dismissed|a open, b open",
        ),
        ("nobody else's", vec![sent(1, bob, line('a', "t_1", Open, Dismissed, "x"))], "z", ""),
        (
            "the later one, although it came first",
            vec![own(2, line('b', "t_2", Open, Addressed, "")), one()],
            "zz",
            "b open|a open",
        ),
        ("a decision that stands again is one step", vec![one(), one()], "zz", "a open|"),
        (
            "one that was undone there",
            vec![
                one(),
                sent(2, ada, Disposition { action: TriageAction::Undo, ..line('a', "t_1", Dismissed, Open, "") }),
            ],
            "zy",
            "|a dismissed",
        ),
        (
            "an own one that was undone there",
            vec![
                own(1, line('a', "t_1", Open, Dismissed, "intended")),
                sent(
                    2,
                    ada,
                    Disposition { action: TriageAction::Undo, ..line('a', "team_ada-2_t_1", Dismissed, Open, "") },
                ),
            ],
            "zy",
            "|a dismissed",
        ),
        (
            "an own one that stands again",
            vec![
                own(1, line('a', "t_1", Open, Addressed, "")),
                sent(2, bob, line('a', "t_9", Addressed, Dismissed, "x")),
                sent(3, ("ada-2", "ada@example.org"), line('a', "t_1", Dismissed, Addressed, "")),
            ],
            "zz",
            "a open|",
        ),
        (
            "one that was undone here, later than it was undone and redone there",
            vec![one(), own(4, undone(OTHER_GROUP)), sent(2, ada, undone("t_1")), sent(3, ada, redone("t_1"))],
            "zzyz",
            "a open||a dismissed|a open",
        ),
        (
            "one that was redone here, earlier than it was undone there",
            vec![
                one(),
                own(2, undone(OTHER_GROUP)),
                own(3, redone(OTHER_GROUP)),
                sent(4, ada, undone("t_1")),
                sent(3, ("ada-2", "ada@example.org"), redone(OTHER_GROUP)),
            ],
            "zzyz",
            "a open||a dismissed|a open",
        ),
        (
            "an own one that was undone here, later than it was redone there",
            vec![
                own(1, line('a', "t_1", Open, Dismissed, "intended")),
                own(4, undone("t_1")),
                sent(2, ada, undone("team_ada-2_t_1")),
                sent(3, ada, redone("team_ada-2_t_1")),
            ],
            "zzyz",
            "a open||a dismissed|a open",
        ),
        (
            "one that was redone on both",
            vec![
                one(),
                own(2, undone(OTHER_GROUP)),
                own(5, redone(OTHER_GROUP)),
                sent(3, ada, undone("t_1")),
                sent(4, ada, redone("t_1")),
                sent(5, ("ada-2", "ada@example.org"), redone(OTHER_GROUP)),
            ],
            "zzyz",
            "a open||a dismissed|a open",
        ),
        (
            "one that was redone there, and after which another one was decided here",
            vec![
                one(),
                own(4, line('b', "t_2", Open, Addressed, "")),
                own(5, undone(OTHER_GROUP)),
                sent(2, ada, undone("t_1")),
                sent(3, ada, redone("t_1")),
            ],
            "zzz",
            "b open|a open|",
        ),
        (
            "one that was undone here with knowledge of the redo there, by a slow wall clock",
            vec![one(), sent(7, ada, undone("t_1")), sent(8, ada, redone("t_1")), own(3, undone(OTHER_GROUP))],
            "zy",
            "|a dismissed",
        ),
        (
            "one of which a part could not be undone, and stands again",
            vec![
                one(),
                sent(1, ada, line('b', "t_1", Open, Dismissed, "x")),
                sent(2, bob, line('b', "t_9", Dismissed, Addressed, "")),
                own(3, undone(OTHER_GROUP)),
                sent(4, bob, Disposition { action: TriageAction::Undo, ..line('b', "t_9", Addressed, Open, "") }),
                sent(1, ada, line('b', "t_1", Open, Dismissed, "x")),
            ],
            "zy",
            "b open|a dismissed, b dismissed",
        ),
        (
            "one that stood behind another person's, and was taken back without deciding as that person",
            vec![
                sent(1, bob, line('a', "t_9", Open, Addressed, "")),
                sent(2, ada, line('a', "t_1", Addressed, Dismissed, "intended")),
                sent(3, bob, Disposition { action: TriageAction::Undo, ..line('a', "t_9", Addressed, Open, "") }),
                sent(2, ada, line('a', "t_1", Open, Dismissed, "intended")),
                own(4, undone(OTHER_GROUP)),
            ],
            "y",
            "a dismissed",
        ),
        (
            "the later one by the clock of the team, although its wall clock is slow",
            vec![sent(8, ada, line('a', "t_1", Open, Dismissed, "x")), own(3, line('b', "t_2", Open, Addressed, ""))],
            "zz",
            "b open|a open",
        ),
    ] {
        let mut steps = Vec::new();
        for (at, key) in (10_i64..).zip(keys.chars()) {
            let all = TriageLog { decisions: &log, ..TriageLog::default() };
            let step = find_next_step(all, author, if key == 'z' { Undo } else { Redo }, time(at));
            let lines = step.map(decisions);
            assert!(
                lines.iter().flatten().all(|line| line.team.is_none()),
                "{title}: it is a decision of this machine"
            );
            let said: Vec<String> = statuses(&lines).iter().map(|(id, status)| format!("{id} {status}")).collect();
            steps.push(said.join(", "));
            log.extend(lines.into_iter().flatten());
        }
        assert_eq!(steps.join("|"), expected, "{title}");
    }
    let log = [one()];
    let all = TriageLog { decisions: &log, ..TriageLog::default() };
    assert_eq!(find_next_step(all, UndoAuthor::here(Actor::User), Undo, time(9)), None, "outside of a team");
    let forgotten: [MachineName; 1] = ["ada-1".parse().expect("a name")];
    let elsewhere =
        OtherMachines { email: "ada@example.org", machine: &here, forgotten: &forgotten, disputes: &disputes };
    let without = UndoAuthor { actor: Actor::User, elsewhere: Some(elsewhere) };
    assert_eq!(find_next_step(all, without, Undo, time(9)), None, "that machine is forgotten");
}

#[test]
fn a_decision_that_another_person_has_beaten_is_taken_back() {
    use FindingStatus::{Addressed, Dismissed, Open};
    let here: MachineName = "ada-1".parse().expect("a name");
    let bob = || TeamOrigin {
        id: DecisionId { clock: TeamClock { ms: 2, count: 0 }, machine: "bob-1".parse().expect("a name") },
        person: TeamPerson { name: "Bob".to_owned(), email: "bob@example.org".to_owned() },
    };
    let by_bob = |status| Disposition { team: Some(bob()), ..line('a', "t_9", Dismissed, status, "by Bob") };
    let side = |machine: &str, status| DisputeSide {
        person: machine.to_owned(),
        machine: machine.parse().expect("a name"),
        status,
        reason: String::new(),
        at: Time::UNIX_EPOCH,
    };
    let early = || line('b', "t_1", Open, Addressed, "");
    let own = || line('a', "t_2", Open, Dismissed, "intended");
    let of_fix = || line('a', &format!("fx_{:026}/t_2", 1), Open, Addressed, "");
    let beaten = || vec![side("bob-1", Addressed), side("ada-1", Dismissed)];
    for (title, log, sides, expected) in [
        ("beaten", vec![early(), own(), by_bob(Addressed)], beaten(), ("a", Addressed, Open)),
        (
            "replaced, or seen otherwise by a review",
            vec![early(), own(), by_bob(Addressed)],
            vec![],
            ("b", Addressed, Open),
        ),
        (
            "another dispute",
            vec![early(), own(), by_bob(Addressed)],
            vec![side("bob-1", Addressed), side("cleo-1", Dismissed)],
            ("b", Addressed, Open),
        ),
        (
            "the one that stands",
            vec![early(), own(), by_bob(Dismissed)],
            vec![side("ada-1", Dismissed), side("bob-1", Addressed)],
            ("a", Dismissed, Open),
        ),
        (
            "a fix",
            vec![early(), of_fix(), by_bob(Dismissed)],
            vec![side("bob-1", Dismissed), side("ada-1", Addressed)],
            ("b", Addressed, Open),
        ),
        (
            "one after an own one, which would stand against Bob's",
            vec![
                early(),
                line('a', "t_0", Open, Addressed, ""),
                line('a', "t_2", Addressed, Dismissed, ""),
                by_bob(Open),
            ],
            vec![side("bob-1", Open), side("ada-1", Dismissed)],
            ("b", Addressed, Open),
        ),
    ] {
        let disputes = BTreeMap::from([(own().finding_id, sides)]);
        let elsewhere = OtherMachines { email: "ada@example.org", machine: &here, forgotten: &[], disputes: &disputes };
        let author = UndoAuthor { actor: Actor::User, elsewhere: Some(elsewhere) };
        let all = TriageLog { decisions: &log, ..TriageLog::default() };
        let step = find_next_step(all, author, Undo, Time::UNIX_EPOCH);
        let lines = step.map(decisions).unwrap_or_default();
        let [undone] = lines.as_slice() else { panic!("{title}: {lines:?}") };
        let letter = &undone.finding_id.as_str()[2..3];
        assert_eq!((letter, undone.previous, undone.status), expected, "{title}");
    }
}

#[test]
fn what_a_review_found_since_is_not_undone() {
    use FindingStatus::{Addressed, Open, Unresolved};
    let mut seen_again = line('b', "e", Addressed, Unresolved, "seen again");
    seen_again.actor = Actor::Engine;
    let log = vec![line('a', "1", Open, Addressed, ""), line('b', "2", Open, Addressed, ""), seen_again];
    assert_eq!(statuses(&undo(&log, Time::UNIX_EPOCH)), [("a".to_owned(), "open")]);
    assert_eq!(undo(&[], Time::UNIX_EPOCH), None);
}

#[test]
fn snoozes_and_decisions_are_undone_in_one_order() {
    let time = |seconds: i64| Time::from_second(seconds).expect("a time");
    let at = |seconds: i64, line: Disposition| Disposition { at: time(seconds), ..line };
    use FindingStatus::{Addressed, Dismissed, Open};
    let log = vec![at(1, line('a', "1", Open, Addressed, "")), at(3, line('c', "3", Open, Dismissed, "intended"))];
    let until = SnoozeEnd::Time(time(900));
    let mut snoozes = vec![FindingSnooze {
        finding_id: log[0].finding_id.clone(),
        until: Some(until.clone()),
        previous: None,
        actor: Actor::User,
        at: time(2),
        action: TriageAction::Set,
        group: "2".into(),
    }];
    let undo = |decisions: &[Disposition], snoozes: &[FindingSnooze], at| {
        find_next_step(TriageLog { decisions, snoozes, ratings: &[] }, UndoAuthor::here(Actor::User), Undo, time(at))
    };
    let Some(UndoStep::Decide(last)) = undo(&log, &snoozes, 4) else { panic!("a decision") };
    assert_eq!(last[0].group, "3");
    let log = [log, last].concat();
    let Some(UndoStep::Snooze(lines)) = undo(&log, &snoozes, 5) else { panic!("a snooze") };
    assert_eq!((&lines[0].until, &lines[0].previous), (&None, &Some(until)));
    snoozes.extend(lines);
    assert!(matches!(undo(&log, &snoozes, 6), Some(UndoStep::Decide(lines)) if lines[0].group == "1"));
    let all = TriageLog { decisions: &log, snoozes: &snoozes, ratings: &[] };
    assert!(matches!(find_next_step(all, UndoAuthor::here(Actor::User), Redo, time(6)), Some(UndoStep::Snooze(_))));
    assert_eq!(undo(&[], &[], 6), None);
}

#[test]
fn ratings_are_undone_with_decisions_and_only_while_they_hold() {
    use FindingStatus::{Addressed, Open};
    let time = |seconds: i64| Time::from_second(seconds).expect("a time");
    let decisions = [Disposition { at: time(2), ..line('a', "2", Open, Addressed, "") }];
    let rating = |seconds, group: &str, rating: Rating, previous: Rating| FindingRating {
        finding_id: decisions[0].finding_id.clone(),
        rating,
        previous,
        actor: Actor::User,
        at: time(seconds),
        action: TriageAction::Set,
        group: group.into(),
    };
    let high = Rating { priority: Some(crate::domain::Priority::P0), kind: None };
    let low = Rating { priority: Some(crate::domain::Priority::P3), kind: None };
    let mut ratings = vec![rating(1, "1", high, Rating::default()), rating(3, "3", low, high)];
    let mut values = Vec::new();
    for seconds in 4..7 {
        let log = TriageLog { decisions: &decisions, snoozes: &[], ratings: &ratings };
        match find_next_step(log, UndoAuthor::here(Actor::User), Undo, time(seconds)).expect("a step") {
            UndoStep::Rate(lines) => {
                values.extend(lines.iter().map(|line| (line.group.clone(), line.rating)));
                ratings.extend(lines);
            }
            UndoStep::Decide(lines) => {
                assert_eq!(lines[0].group, "2");
                break;
            }
            UndoStep::Snooze(lines) => panic!("{lines:?}"),
        }
    }
    assert_eq!(values, [("3".to_owned(), high)]);
    // The rating of another step since then stays.
    ratings.push(FindingRating { actor: Actor::Engine, ..rating(9, "9", low, high) });
    let log = TriageLog { decisions: &[], snoozes: &[], ratings: &ratings };
    assert_eq!(find_next_step(log, UndoAuthor::here(Actor::User), Undo, time(10)), None);
}
