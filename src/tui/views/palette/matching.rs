//! Finds the rows that match a query, on a thread of their own: 100,000 findings take longer than a key press may.
//!
//! nucleo-matcher matches several words in any order and gives the matched positions, without an allocation per
//! candidate. frizbee 0.13, which builds in about the same time (8 s to 10 s), takes one word and wants all candidates
//! as a list of texts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::{PaletteEntry, PaletteRow, PaletteTarget};
use crate::domain::{Panel, text};
use crate::store::{FindingRow, RunRow, StoreView};
use crate::tui::effects::spawn_worker;
use crate::tui::event_source::MessageSender;
use crate::tui::filter::contains_ignore_case;
use crate::tui::message::AppMessage;
use crate::tui::run_label::{RunSubjects, TitleQuotes, describe_reviewed_change};
use crate::tui::views::ViewReply;

/// Most rows of a result: a few screens. Who wants a later row types another letter.
const MAX_ROWS: usize = 100;

/// Query with everything that it searches.
#[derive(Debug, Clone)]
pub struct PaletteQuery {
    /// Serial number, which the result repeats.
    pub serial: u64,
    pub text: String,
    /// Commands, settings and files.
    pub entries: Arc<[PaletteEntry]>,
    /// Runs and findings.
    pub view: Arc<StoreView>,
    /// Commits that runs reviewed, by run id, as far as they are read.
    pub subjects: Arc<RunSubjects>,
    /// Quotation marks around the title of a commit.
    pub quotes: TitleQuotes,
}

impl PaletteQuery {
    /// Names a run by what it reviewed and by its reviewer: `a0c3bec “Retry on 429” by sonnet`, `3 commits, latest “Retry on
    /// 429” by sonnet`.
    fn name_run(&self, run: &RunRow<'_>) -> String {
        let subject = self.subjects.get(run.id).and_then(Option::as_ref);
        let change = describe_reviewed_change(run, subject, self.quotes);
        format!("{change} by {}", Panel::describe_reviewer(run.reviewer))
    }
}

/// Rows that match a query, best first.
#[derive(Debug)]
pub struct PaletteMatches {
    pub serial: u64,
    pub rows: Vec<PaletteRow>,
}

/// Starts the thread that answers queries; only the newest of several pending queries is answered.
pub fn start_worker(messages: &MessageSender) -> Sender<PaletteQuery> {
    let (queries, incoming): (_, Receiver<PaletteQuery>) = mpsc::channel();
    let replies = messages.clone();
    spawn_worker("palette", messages.clone(), move || {
        while let Ok(first) = incoming.recv() {
            let Some(query) = std::iter::once(first).chain(incoming.try_iter()).last() else { continue };
            let reply = AppMessage::View(ViewReply::Palette(find_matches(&query)));
            if replies.send(reply).is_err() {
                return;
            }
        }
    });
    queries
}

/// Candidate: its kind and its index among the candidates of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PaletteCandidate {
    Entry(usize),
    Run(usize),
    Finding(usize),
}

/// Points added to the score of commands and settings, so that `dismiss` comes before findings that contain the word.
/// A matched letter counts 16.
const ENTRY_BONUS: u32 = 24;

/// Points added to the score of a command, setting or file whose shown text contains the typed one: `snoo` means `snooze the
/// finding` before the command with another text whose name is `snooze`.
const SHOWN_TEXT_BONUS: u32 = 8;

/// Finds the best rows. Without text, those are the commands and settings in their order.
pub fn find_matches(query: &PaletteQuery) -> PaletteMatches {
    let serial = query.serial;
    let pattern = Pattern::new(&query.text, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
    if pattern.atoms.is_empty() {
        let entries = query.entries.iter().filter(|entry| entry.target.is_command());
        return PaletteMatches { serial, rows: entries.map(|entry| entry.to_row(Vec::new())).collect() };
    }
    let typed = query.text.trim().to_lowercase();
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut best: BinaryHeap<Reverse<(u32, Reverse<PaletteCandidate>)>> = BinaryHeap::with_capacity(MAX_ROWS + 1);
    let (mut haystack, mut characters) = (String::new(), Vec::new());
    let mut offer = |candidate: PaletteCandidate, haystack: &str| {
        let score = pattern.score(Utf32Str::new(haystack, &mut characters), &mut matcher);
        let Some(score) = score else { return };
        let bonus = match candidate {
            PaletteCandidate::Entry(index) => {
                let is_shown = contains_ignore_case(&query.entries[index].text, &typed);
                ENTRY_BONUS + if is_shown { SHOWN_TEXT_BONUS } else { 0 }
            }
            PaletteCandidate::Run(_) | PaletteCandidate::Finding(_) => 0,
        };
        best.push(Reverse((score + bonus, Reverse(candidate))));
        if best.len() > MAX_ROWS {
            best.pop();
        }
    };
    for (index, entry) in query.entries.iter().enumerate() {
        entry.write_haystack(&mut haystack);
        offer(PaletteCandidate::Entry(index), &haystack);
    }
    for index in 0..query.view.run_count() {
        write_run(query, &query.view.run(index), &mut haystack);
        offer(PaletteCandidate::Run(index), &haystack);
    }
    for index in 0..query.view.finding_count() {
        write_finding(&query.view.finding(index), &mut haystack);
        offer(PaletteCandidate::Finding(index), &haystack);
    }
    let mut found: Vec<_> = best.into_iter().map(|Reverse(found)| found).collect();
    found.sort_unstable_by_key(|found| Reverse(*found));
    let rows = found.into_iter().map(|(_, Reverse(candidate))| {
        let mut row = build_row(query, candidate);
        // The whole haystack decides whether a row matches; letters outside of the shown text light nothing up.
        let mut positions = Vec::new();
        for atom in &pattern.atoms {
            atom.indices(Utf32Str::new(&row.text, &mut characters), &mut matcher, &mut positions);
        }
        positions.sort_unstable();
        positions.dedup();
        row.matched = positions;
        row
    });
    PaletteMatches { serial, rows: rows.collect() }
}

/// Writes the searched text of a run into `out`: the shown text first.
fn write_run(query: &PaletteQuery, run: &RunRow<'_>, out: &mut String) {
    out.clear();
    let _ = write!(out, "{} {} {} {} {}", query.name_run(run), run.scope, run.status, run.branch, run.id);
}

/// Writes the searched text of a finding into `out`: the shown text first.
fn write_finding(finding: &FindingRow<'_>, out: &mut String) {
    out.clear();
    let _ = write!(
        out,
        "{}:{} {} {} {} {}",
        finding.path, finding.line_start, finding.title, finding.kind, finding.priority, finding.id
    );
}

fn build_row(query: &PaletteQuery, candidate: PaletteCandidate) -> PaletteRow {
    match candidate {
        PaletteCandidate::Entry(index) => query.entries[index].to_row(Vec::new()),
        PaletteCandidate::Run(index) => {
            let run = query.view.run(index);
            PaletteRow {
                target: PaletteTarget::Run(run.id.to_owned()),
                text: clean(&query.name_run(&run)),
                hint: run.status.to_string(),
                matched: Vec::new(),
            }
        }
        PaletteCandidate::Finding(index) => {
            let finding = query.view.finding(index);
            PaletteRow {
                target: PaletteTarget::Finding(finding.id.to_owned()),
                text: clean(&format!("{}:{} {}", finding.path, finding.line_start, finding.title)),
                hint: format!("{} {}", finding.priority, finding.status),
                matched: Vec::new(),
            }
        }
    }
}

fn clean(text: &str) -> String {
    text::sanitize_line(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::app::RunSubject;
    use crate::tui::keymap::Action;
    use crate::tui::tests::support::{finding_id, many, run_id, view};

    fn entries() -> Arc<[PaletteEntry]> {
        let entry = |action: Action| PaletteEntry {
            target: PaletteTarget::Action(action),
            text: action.help_text().to_owned(),
            words: action.name().to_owned(),
            hint: String::new(),
        };
        [Action::Dismiss, Action::Undo, Action::Zoom, Action::Snooze, Action::SnoozeFinding].map(entry).into()
    }

    fn query(text: &str, view: Arc<StoreView>) -> PaletteQuery {
        let subject = RunSubject { commits: 1, title: "Retry on 429".to_owned() };
        PaletteQuery {
            serial: 7,
            text: text.to_owned(),
            entries: entries(),
            view,
            subjects: Arc::new(RunSubjects::from([(run_id(1), Some(subject))])),
            quotes: ("“", "”"),
        }
    }

    fn find(text: &str) -> Vec<PaletteRow> {
        find_matches(&query(text, view())).rows
    }

    #[test]
    fn words_find_commands_runs_and_findings() {
        let finding = |n| PaletteTarget::Finding(finding_id(n));
        for (text, first, lit) in [
            ("dismiss", PaletteTarget::Action(Action::Dismiss), "dismiss"),
            ("undo", PaletteTarget::Action(Action::Undo), "undo"),
            ("unzoom", PaletteTarget::Action(Action::Zoom), "unzoom"),
            ("snoo", PaletteTarget::Action(Action::SnoozeFinding), "snoo"),
            ("rate total", finding(3), "totalrate"),
            ("retry 84", finding(5), "retry84"),
            (&finding_id(2), finding(2), ""),
            ("HEAD~1 claude", PaletteTarget::Run(run_id(1)), "claude"),
            ("on 429 claude", PaletteTarget::Run(run_id(1)), "on429claude"),
        ] {
            let rows = find(text);
            let row = rows.first().unwrap_or_else(|| panic!("nothing for {text:?}"));
            assert_eq!(row.target, first, "{text:?}: {rows:?}");
            let is_lit = |at: usize| row.matched.contains(&u32::try_from(at).unwrap_or(u32::MAX));
            let shown: String =
                row.text.chars().enumerate().filter(|(at, _)| is_lit(*at)).map(|(_, character)| character).collect();
            assert_eq!(shown.replace(' ', ""), lit, "{text:?}");
        }
        assert_eq!(find("zzzz"), []);
        let all: Vec<PaletteTarget> = find("  ").into_iter().map(|row| row.target).collect();
        assert_eq!(all, entries().iter().map(|entry| entry.target.clone()).collect::<Vec<_>>());
    }

    #[test]
    fn a_result_is_bounded_and_the_first_findings_win_a_tie() {
        let found = find_matches(&query("unused", many(1000)));
        assert_eq!((found.serial, found.rows.len()), (7, MAX_ROWS));
        assert_eq!(found.rows[0].target, PaletteTarget::Finding(finding_id(0)), "{:?}", found.rows[0]);
    }
}
