//! Trace of a run: the reads, reports and coverage of each turn, collected from journal entries.
//!
//! - Entries are applied as they arrive, so a growing journal is never read twice.
//! - Paths have the form of [`path_key`]. Line numbers are 1-based, ranges are inclusive, and belong to the new side.
//! - A hunk counts as read at the turn whose answer covers it: the journal does not tell when it was sent.
//! - Turn 0 stands for everything before the first turn, and for all of a reviewer without turns.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use crate::domain::{
    ContextRecord, FileCoverage, Finding, FindingId, JournalEntry, LineRange, Opinion, Priority, RunEvent, RunOutput,
    ToolOutcome, text,
};
use crate::masking::mask_name;
use crate::tui::turns::{TurnHistory, sanitize};

/// Unchanged lines that the reviewer sees around each sent hunk, as in git.
const CONTEXT_LINES: u32 = 3;
/// Range that contains every line of a file.
const WHOLE_FILE: LineRange = LineRange { start: 1, end: u32::MAX };

/// Trace of a run so far.
#[derive(Debug, Clone, Default)]
pub struct ReviewTrace {
    /// Requests, answers and tool calls of each turn.
    pub history: TurnHistory,
    /// Number of entries that were applied.
    entries: usize,
    /// Number of hunks in the files to review, according to the plan.
    planned_hunks: u32,
    /// Number of hunks of each file that the reviewer left out, so that they are not to be reviewed.
    omitted_hunks: BTreeMap<String, u32>,
    /// Files that are not reviewed.
    left_out: BTreeSet<String>,
    reads: Vec<TracedRead>,
    /// Files with sent hunks, and hunks that were carried over: a worker that starts again records them a second time.
    known_hunks: HashSet<(ReadKind, String, Vec<LineRange>)>,
    findings: Vec<TracedFinding>,
}

/// Lines of a file that a turn put before the reviewer.
#[derive(Debug, Clone)]
struct TracedRead {
    turn: u32,
    path: String,
    lines: Vec<LineRange>,
    kind: ReadKind,
}

/// Way in which lines came before the reviewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ReadKind {
    /// Hunks of the change, which now count as covered.
    Sent,
    /// Hunks that an earlier run reviewed unchanged.
    Carried,
    /// Lines that a tool or the context of the first request shows.
    Shown,
}

/// Finding with the turns that reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedFinding {
    /// Finding id.
    pub id: String,
    /// Turn of the first report.
    pub turn: u32,
    /// Later turns that reported it again.
    again: Vec<u32>,
    /// Turn whose second opinion called it false.
    withdrawn: Option<u32>,
    /// Urgency of the newest report.
    pub priority: Priority,
    /// Path of the newest report.
    pub path: String,
    /// First line of the newest report.
    pub line: u32,
    /// Title of the newest report, sanitized and masked.
    pub title: String,
}

/// State of a run at the end of one of its turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceMoment {
    /// Files that were read or are to be reviewed, by path.
    pub files: BTreeMap<String, FileMoment>,
    /// Covered hunks.
    pub hunks: HunkCounts,
    /// Report times of the findings, by finding id.
    pub reports: HashMap<String, ReportTime>,
    /// Number of reported findings by priority, P0 to P3.
    pub counts: [u32; 4],
}

/// Numbers of hunks of a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HunkCounts {
    /// Hunks that the selected turn covered.
    pub now: u32,
    /// Hunks that earlier turns covered.
    pub before: u32,
    /// Hunks that an earlier run reviewed unchanged.
    pub carried: u32,
    /// All hunks to review.
    pub total: u32,
}

impl HunkCounts {
    /// Returns the number of hunks that some reviewer has seen.
    pub fn covered(self) -> u32 {
        self.now + self.before + self.carried
    }
}

/// Lines that were read, with the number of unchanged lines around them that were shown with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReadRange {
    lines: LineRange,
    around: u32,
}

/// Reads of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileMoment {
    /// Lines that the selected turn read.
    now: Vec<ReadRange>,
    /// Lines that earlier turns or earlier runs read.
    before: Vec<ReadRange>,
    /// The file is a part of the change.
    pub is_changed: bool,
    is_left_out: bool,
    /// Hunks of the file were carried over.
    is_carried: bool,
    /// An earlier turn read lines of the file.
    is_read_before: bool,
}

/// Reading of lines, as seen from the selected turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineReading {
    /// The selected turn read them.
    Now,
    /// An earlier turn or run read them.
    Before,
    /// Nobody has read them so far.
    Unread,
}

/// Reading of a file, as seen from the selected turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileReading {
    /// The selected turn read a part of it.
    Now,
    /// An earlier turn read a part of it.
    Before,
    /// An earlier run reviewed it unchanged.
    Carried,
    /// It is not reviewed.
    LeftOut,
    /// Nobody has read it so far.
    Unread,
}

impl FileReading {
    /// Every reading with its name in the legend, in the order of the legend.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Now, "this turn"),
        (Self::Before, "read"),
        (Self::Carried, "carried"),
        (Self::LeftOut, "left out"),
        (Self::Unread, "nobody yet"),
    ];

    /// Returns the name in the legend.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(reading, _)| *reading == self).map_or("", |(_, name)| name)
    }
}

/// Time of the report of a finding, as seen from the selected turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportTime {
    /// The selected turn reported it.
    Now,
    /// An earlier turn reported it.
    Before,
    /// A later turn reports it, or a second opinion has called it false.
    Hidden,
}

/// Returns the form of a path in a trace: without keys and control characters.
pub fn path_key(path: &str) -> String {
    text::sanitize_line(&mask_name(path)).into_owned()
}

impl ReviewTrace {
    /// Returns true if no entry was applied.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Returns the findings in the order of their first reports.
    pub fn findings(&self) -> &[TracedFinding] {
        &self.findings
    }

    /// Returns the number of the last turn; 0 before the first one.
    pub fn last_turn(&self) -> u32 {
        self.history.turns.last().map_or(0, |turn| turn.number)
    }

    /// Returns the number of reports of all turns, by which a change of the findings is noticed.
    pub fn report_count(&self) -> usize {
        self.findings.iter().map(|finding| 1 + finding.again.len() + usize::from(finding.withdrawn.is_some())).sum()
    }

    /// Returns the numbers of files and hunks of the change that a turn covered.
    pub fn count_sent(&self, turn: u32) -> (usize, usize) {
        let sent = self.reads.iter().filter(|read| read.turn == turn && read.kind == ReadKind::Sent);
        sent.fold((0, 0), |(files, hunks), read| (files + 1, hunks + read.lines.len()))
    }

    /// Applies the next journal entry.
    pub fn apply_entry(&mut self, entry: JournalEntry) {
        self.entries += 1;
        let turn = self.last_turn();
        match &entry.event {
            RunEvent::Planned { hunks, left_out, .. } => {
                self.planned_hunks = *hunks;
                self.left_out.extend(left_out.iter().map(|file| path_key(&file.path)));
            }
            RunEvent::Surrounded { context } => self.add_context(context),
            RunEvent::Covered { file } => self.add_hunks(turn, file, ReadKind::Sent),
            RunEvent::Carried { carried } => self.add_hunks(turn, &carried.file, ReadKind::Carried),
            RunEvent::LeftOut { file, hunks } => {
                let path = path_key(&file.path);
                if !file.is_gap() {
                    self.omitted_hunks.insert(path.clone(), *hunks);
                }
                self.left_out.insert(path);
            }
            RunEvent::ToolAnswered { turn, name, arguments, outcome: ToolOutcome::Answered, result, .. } => {
                if let Some((path, lines)) = parse_tool_read(name, arguments, result) {
                    self.reads.push(TracedRead { turn: *turn, path, lines: vec![lines], kind: ReadKind::Shown });
                }
            }
            RunEvent::Finding { finding } => self.add_finding(turn, finding),
            RunEvent::Restated { turn, finding } => {
                self.mark_again(&finding.finding_id, *turn);
                self.update_finding(finding);
            }
            RunEvent::Repeated { turn, finding_id, .. } => self.mark_again(finding_id, *turn),
            RunEvent::Judged { finding_id, opinion: Opinion::False, .. } => {
                let known = self.findings.iter_mut().find(|known| known.id == finding_id.as_str());
                known.into_iter().for_each(|known| known.withdrawn = Some(turn));
            }
            _ => {}
        }
        self.history.apply_entry(entry);
    }

    /// Fills the trace of a run whose journal is gone from its result.
    pub fn apply_output(&mut self, output: &RunOutput) {
        let coverage = &output.coverage;
        self.planned_hunks = coverage.hunks_total;
        self.left_out.extend(coverage.left_out.iter().map(|file| path_key(&file.path)));
        coverage.files.iter().for_each(|file| self.add_hunks(0, file, ReadKind::Sent));
        coverage.carried.iter().for_each(|carried| self.add_hunks(0, &carried.file, ReadKind::Carried));
        output.findings.iter().for_each(|finding| self.add_finding(0, finding));
    }

    /// Adds the hunks of a file, once for a sent file and once for the same carried hunks.
    fn add_hunks(&mut self, turn: u32, file: &FileCoverage, kind: ReadKind) {
        let path = path_key(&file.path);
        let hunks = if kind == ReadKind::Sent { Vec::new() } else { file.hunks.clone() };
        if self.known_hunks.insert((kind, path.clone(), hunks)) {
            self.reads.push(TracedRead { turn, path, lines: file.hunks.clone(), kind });
        }
    }

    /// Adds the code around the change that the first request contains.
    fn add_context(&mut self, context: &ContextRecord) {
        let is_known = |read: &TracedRead| read.kind == ReadKind::Shown && read.turn == 1;
        if self.reads.iter().any(is_known) {
            return;
        }
        for section in context.sections.iter().filter(|section| !section.path.is_empty() && section.start_line > 0) {
            let (path, lines) = (path_key(&section.path), LineRange::new(section.start_line, section.end_line));
            self.reads.push(TracedRead { turn: 1, path, lines: vec![lines], kind: ReadKind::Shown });
        }
    }

    fn add_finding(&mut self, turn: u32, finding: &Finding) {
        if self.findings.iter().any(|known| known.id == finding.finding_id.as_str()) {
            return self.update_finding(finding);
        }
        self.findings.push(TracedFinding {
            id: finding.finding_id.to_string(),
            turn,
            again: Vec::new(),
            withdrawn: None,
            priority: finding.priority,
            path: path_key(&finding.repo_relative_path),
            line: finding.line_start,
            title: sanitize(&finding.title),
        });
    }

    fn update_finding(&mut self, finding: &Finding) {
        let known = self.findings.iter_mut().find(|known| known.id == finding.finding_id.as_str());
        if let Some(known) = known {
            (known.priority, known.line) = (finding.priority, finding.line_start);
            known.path = path_key(&finding.repo_relative_path);
            known.title = sanitize(&finding.title);
        }
    }

    fn mark_again(&mut self, finding: &FindingId, turn: u32) {
        let known = self.findings.iter_mut().find(|known| known.id == finding.as_str());
        known.into_iter().for_each(|known| known.again.push(turn));
    }

    /// Returns the state at the end of a turn; without a turn, that after all entries. `changed` has the paths of the
    /// change that are known otherwise.
    pub fn moment(&self, turn: Option<u32>, changed: &[String]) -> TraceMoment {
        let last = turn.unwrap_or(u32::MAX);
        let mut moment = TraceMoment::default();
        let in_change = self.reads.iter().filter(|read| read.kind != ReadKind::Shown).map(|read| &read.path);
        for path in changed.iter().chain(&self.left_out).chain(in_change) {
            moment.files.entry(path.clone()).or_default().is_changed = true;
        }
        for path in &self.left_out {
            moment.files.entry(path.clone()).or_default().is_left_out = true;
        }
        for read in self.reads.iter().filter(|read| read.turn <= last) {
            moment.add_read(read, turn == Some(read.turn));
        }
        let omitted: u32 = self.omitted_hunks.values().sum();
        moment.hunks.total = self.planned_hunks.saturating_sub(omitted).max(moment.hunks.covered());
        for finding in &self.findings {
            let time = finding.time_at(turn);
            if time != ReportTime::Hidden {
                moment.counts[finding.priority.index()] += 1;
            }
            moment.reports.insert(finding.id.clone(), time);
        }
        moment
    }
}

impl TracedFinding {
    fn time_at(&self, turn: Option<u32>) -> ReportTime {
        let last = turn.unwrap_or(u32::MAX);
        if self.turn > last || self.withdrawn.is_some_and(|withdrawn| withdrawn <= last) {
            return ReportTime::Hidden;
        }
        let is_now = |reported: u32| turn == Some(reported);
        if is_now(self.turn) || self.again.iter().copied().any(is_now) { ReportTime::Now } else { ReportTime::Before }
    }
}

impl TraceMoment {
    fn add_read(&mut self, read: &TracedRead, is_now: bool) {
        let hunks = u32::try_from(read.lines.len()).unwrap_or(u32::MAX);
        let file = self.files.entry(read.path.clone()).or_default();
        let around = match read.kind {
            ReadKind::Shown => 0,
            ReadKind::Sent | ReadKind::Carried => CONTEXT_LINES,
        };
        let lines = read.lines.iter().map(|lines| ReadRange { lines: *lines, around });
        match (read.kind, is_now) {
            (ReadKind::Carried, _) => {
                file.before.extend(lines);
                file.is_carried = true;
                self.hunks.carried += hunks;
            }
            (kind, true) => {
                file.now.extend(lines);
                self.hunks.now += if kind == ReadKind::Sent { hunks } else { 0 };
            }
            (kind, false) => {
                file.before.extend(lines);
                file.is_read_before = true;
                self.hunks.before += if kind == ReadKind::Sent { hunks } else { 0 };
            }
        }
    }
}

impl FileMoment {
    /// Returns the reading of lines; of a hidden part of a file, that of the line that was read last.
    pub fn reading_of(&self, lines: LineRange) -> LineReading {
        let reads = |ranges: &[ReadRange]| ranges.iter().any(|range| range.lines.distance(lines) <= range.around);
        match (reads(&self.now), reads(&self.before)) {
            (true, _) => LineReading::Now,
            (false, true) => LineReading::Before,
            (false, false) => LineReading::Unread,
        }
    }

    /// Returns the reading of the file.
    pub fn reading(&self) -> FileReading {
        match self {
            Self { now, .. } if !now.is_empty() => FileReading::Now,
            Self { is_read_before: true, .. } => FileReading::Before,
            Self { is_carried: true, .. } => FileReading::Carried,
            Self { is_left_out: true, .. } => FileReading::LeftOut,
            _ => FileReading::Unread,
        }
    }

    /// Returns the lines that were read: those of the selected turn, and those read before.
    pub fn ranges(&self) -> (Vec<LineRange>, Vec<LineRange>) {
        let lines = |ranges: &[ReadRange]| ranges.iter().map(|range| range.lines).collect();
        (lines(&self.now), lines(&self.before))
    }
}

/// Returns the file and the lines that a tool has shown, from its call and the one-line summary of its result; `None` for
/// a tool whose summary does not name them.
fn parse_tool_read(name: &str, arguments: &str, result: &str) -> Option<(String, LineRange)> {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let path = arguments.get("path").and_then(Value::as_str);
    match name {
        "read_file" => match parse_shown_lines(result) {
            Some((path, lines)) => Some((path_key(path), lines)),
            None => Some((path_key(path?), WHOLE_FILE)),
        },
        "show_diff" => {
            let shown = result.strip_prefix("the diff of ").and_then(|rest| rest.rsplit_once(", page "));
            // Without a path, the result shows as many files as fit on a page.
            path.map(|path| (path_key(shown.map_or(path, |(shown, _)| shown)), WHOLE_FILE))
        }
        _ => None,
    }
}

/// Parses `src/client.rs, lines 1 to 120 of 412`.
pub fn parse_shown_lines(result: &str) -> Option<(&str, LineRange)> {
    let (path, rest) = result.rsplit_once(", lines ")?;
    let mut words = rest.split(' ');
    let (start, to, end) = (words.next()?, words.next()?, words.next()?);
    let lines = LineRange::new(start.parse().ok()?, end.parse().ok()?);
    (to == "to").then_some((path, lines))
}
