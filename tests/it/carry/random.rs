//! Random sessions of edits: carried reviews report the same findings about the final code as a full review.
//!
//! The pieces of code have smells inside one file, smells that need a whole file, and copies across files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use revdeck::domain::{Finding, RunId};

use super::reported;
use crate::runner::place::Place;

const FILES: [&str; 4] = ["a.py", "b.py", "lib/c.py", "lib/d.py"];

/// A step of a session. Its numbers select among the pieces and files that exist.
#[derive(Debug, Clone)]
enum Step {
    Put {
        file: usize,
        piece: usize,
        at: usize,
    },
    Edit {
        file: usize,
        at: usize,
    },
    Remove {
        file: usize,
        at: usize,
    },
    /// Moves a piece to another file.
    Move {
        from: usize,
        at: usize,
        to: usize,
    },
    Swap {
        one: usize,
        other: usize,
    },
    Delete {
        file: usize,
    },
    Commit,
    Amend,
    Restore,
    Review(Scope),
}

#[derive(Debug, Clone, Copy)]
enum Scope {
    Worktree,
    Branch,
}

impl Scope {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Worktree => &["--worktree", "--wait"],
            Self::Branch => &["--branch", "main", "--wait"],
        }
    }
}

/// A piece of code: its sort, its name, and the number of its edits.
type Piece = (usize, usize, usize);

fn render((sort, name, edits): Piece) -> String {
    let mut text = format!("def piece_{name}(value):\n");
    for edit in 0..edits {
        let _ = writeln!(text, "    log(\"edit {edit} of {name}\")");
    }
    match sort % 6 {
        0 => text.push_str("    try:\n        risky(value)\n    except Exception:\n        pass\n"),
        1 => text.push_str(&format!("    return value * {} + {}\n", 7531 + name, 86_417 + name)),
        2 => (0..65).for_each(|line| text.push_str(&format!("    step_{name}_{line}(value)\n"))),
        3 => {
            let indent = |level: usize| "    ".repeat(level);
            (1..7).for_each(|level| text.push_str(&format!("{}if value > limit_{level}:\n", indent(level))));
            text.push_str(&format!("{}act_{name}()\n", indent(7)));
        }
        4 => text.push_str("    return value\n    print(\"never\")\n"),
        // This text is the same in every file.
        _ => (0..20).for_each(|line| {
            text.push_str(&format!("    total_{line} = compute_{line}(value, first_{line}) + other_{line}(value)\n"));
        }),
    }
    text + "\n\n"
}

struct Session {
    place: Place,
    files: BTreeMap<usize, Vec<Piece>>,
    committed: BTreeMap<usize, Vec<Piece>>,
    names: usize,
    /// The number of hunks that were carried over in total.
    carried: u32,
}

fn chosen(pieces: &[Piece], at: usize) -> Option<usize> {
    at.checked_rem(pieces.len())
}

impl Session {
    fn new() -> Self {
        let place = Place::new();
        place.test.git(&["checkout", "-q", "-b", "topic"]);
        let mut session = Self { place, files: BTreeMap::new(), committed: BTreeMap::new(), names: 0, carried: 0 };
        for piece in 0..8 {
            session.take(&Step::Put { file: piece % FILES.len(), piece, at: 0 });
        }
        session.take(&Step::Review(Scope::Worktree));
        session
    }

    fn name(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    fn pieces(&mut self, file: usize) -> &mut Vec<Piece> {
        self.files.entry(file).or_default()
    }

    fn write(&self) {
        for (file, path) in FILES.iter().enumerate() {
            match self.files.get(&file).filter(|pieces| !pieces.is_empty()) {
                Some(pieces) => {
                    let text: String = pieces.iter().copied().map(render).collect();
                    self.place.test.write(path, text);
                }
                None => drop(std::fs::remove_file(self.place.test.repo().join(path))),
            }
        }
    }

    fn review(&mut self, scope: Scope) -> RunId {
        let run = self.place.review(scope.arguments());
        self.carried += self.place.run(&run).outcome.coverage.hunks_carried;
        run
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Put { file, piece, at } => {
                let name = self.name();
                let pieces = self.pieces(file);
                pieces.insert(at % (pieces.len() + 1), (piece, name, 0));
            }
            Step::Edit { file, at } => {
                let pieces = self.pieces(file);
                if let Some(at) = chosen(pieces, at) {
                    pieces[at].2 += 1;
                }
            }
            Step::Remove { file, at } => {
                let pieces = self.pieces(file);
                chosen(pieces, at).map(|at| pieces.remove(at));
            }
            Step::Move { from, at, to } => {
                let pieces = self.pieces(from);
                if let Some(piece) = chosen(pieces, at).map(|at| pieces.remove(at)) {
                    self.pieces(to).push(piece);
                }
            }
            Step::Swap { one, other } => {
                let (first, second) = (self.files.remove(&one), self.files.remove(&other));
                self.files.extend(first.map(|pieces| (other, pieces)));
                self.files.extend(second.map(|pieces| (one, pieces)));
            }
            Step::Delete { file } => drop(self.files.remove(&file)),
            Step::Commit | Step::Amend => {
                let git = |arguments: &[&str]| self.place.test.git(arguments);
                git(&["add", "-A"]);
                let first = git(&["rev-list", "--count", "main..HEAD"]).trim() == "0";
                let amend: &[&str] = if matches!(step, Step::Amend) && !first { &["--amend"] } else { &[] };
                git(&[&["commit", "-q", "--allow-empty", "-m", "a step"], amend].concat());
                self.committed.clone_from(&self.files);
            }
            Step::Restore => self.files.clone_from(&self.committed),
            Step::Review(scope) => drop(self.review(scope)),
        }
        self.write();
    }

    /// Reviews the final code, which has no review in this state, with and without the results of earlier reviews,
    /// and compares both.
    fn check(&mut self) {
        let name = self.name();
        self.pieces(0).push((0, name, 0));
        self.write();
        let incremental = self.review(Scope::Worktree);
        let full = self.place.review(&["--worktree", "--wait", "--force"]);
        assert_ne!(incremental, full);
        assert_eq!(self.place.run(&full).outcome.coverage.hunks_carried, 0);
        self.compare(&incremental, &full);
        self.take(&Step::Commit);
        let incremental = self.review(Scope::Branch);
        let full = self.place.review(&["--branch", "main", "--wait", "--force"]);
        self.compare(&incremental, &full);
    }

    fn compare(&self, incremental: &RunId, full: &RunId) {
        let place = &self.place;
        let decision = place.run(incremental).decision;
        let told = |run: &RunId, other: &RunId| -> Vec<String> {
            let known = place.finding_ids(other);
            let output = place.output(run).expect("an output");
            let only = output.findings.iter().filter(|finding| !known.contains(&finding.finding_id));
            only.map(|finding| format!("{} {} {}", finding.finding_id, at(finding), finding.title)).collect()
        };
        let (only_one, only_other) = (told(incremental, full), told(full, incremental));
        assert!(
            only_one.is_empty() && only_other.is_empty(),
            "only in {incremental}: {only_one:#?}, only in {full}: {only_other:#?}; {decision}"
        );
        assert_eq!(reported(place, incremental), reported(place, full), "with what is held back; {decision}");
    }
}

fn at(finding: &Finding) -> String {
    format!("{} {}:{}-{}", finding.kind, finding.repo_relative_path, finding.line_start, finding.line_end)
}

fn step() -> impl Strategy<Value = Step> {
    let file = || 0..FILES.len();
    prop_oneof![
        4 => (file(), 0..6_usize, 0..9_usize).prop_map(|(file, piece, at)| Step::Put { file, piece, at }),
        3 => (file(), 0..9_usize).prop_map(|(file, at)| Step::Edit { file, at }),
        1 => (file(), 0..9_usize).prop_map(|(file, at)| Step::Remove { file, at }),
        1 => (file(), 0..9_usize, file()).prop_map(|(from, at, to)| Step::Move { from, at, to }),
        1 => (file(), file()).prop_map(|(one, other)| Step::Swap { one, other }),
        1 => file().prop_map(|file| Step::Delete { file }),
        1 => Just(Step::Commit),
        1 => Just(Step::Amend),
        1 => Just(Step::Restore),
        3 => Just(Step::Review(Scope::Worktree)),
        1 => Just(Step::Review(Scope::Branch)),
    ]
}

/// Plays this number of sessions and checks that at least one hunk was carried over: otherwise the test proves
/// nothing.
fn play(cases: u32, steps: usize) {
    let carried = std::cell::Cell::new(0);
    let config = Config { cases, max_shrink_iters: 40, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let played = runner.run(&proptest::collection::vec(step(), 3..=steps), |steps| {
        let mut session = Session::new();
        for step in &steps {
            session.take(step);
        }
        session.check();
        carried.set(carried.get() + session.carried);
        Ok(())
    });
    if let Err(error) = played {
        panic!("{error}");
    }
    assert!(carried.get() >= cases, "{} hunks were carried over in {cases} sessions", carried.get());
}

#[test]
fn carried_reviews_report_what_full_ones_do() {
    play(12, 10);
}

/// Runs by hand: `cargo test --test it -- --ignored carried_reviews`.
#[test]
#[ignore = "takes minutes"]
fn carried_reviews_report_what_full_ones_do_at_length() {
    play(150, 40);
}
