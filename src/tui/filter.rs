//! Parses and applies the filter of the findings list: `status:open p:0,1 kind:DEAD path:src/ run:ar_… words`.
//!
//! - A value or a word with white space stands in quotes: `path:"docs dir/a b.py"`, see `filter_terms`.
//! - Values of the same term widen the result, different terms narrow it.
//! - The prompt begins with `status:undecided`: another status after it takes its place.
//! - An unknown term is reported while it is typed and is otherwise ignored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::filter_terms::{TermKind, last_term_start, split_name, split_terms, split_values, unquote};
use super::saved_filters::SavedFilters;
use crate::config::did_you_mean;
use crate::domain::{FindingStatus, Kind, Priority, RunId};
use crate::runner::{OWN_REVIEWER, SnoozedFindings};
use crate::store::{FindingRow, LastVisit, RunRow, StoreView};

/// Default filter of the list.
pub const DEFAULT: &str = "status:undecided";

/// Parsed filter. An empty set matches every finding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FindingFilter {
    statuses: Vec<FindingStatus>,
    /// Treatment of the findings that are out of sight for a time.
    snoozed: SnoozedTerm,
    /// True for findings about which people disagree only.
    disputed: bool,
    /// True for findings about which the reviewers of a panel contradict each other only.
    panel_disputed: bool,
    priorities: [bool; 4],
    /// Kinds whose name contains one of the typed words.
    kinds: Vec<Kind>,
    paths: Vec<String>,
    runs: Vec<String>,
    /// Lower-case words; each must occur in the title, the path or the kind, or start the id.
    words: Vec<String>,
    /// Terms that could not be parsed.
    pub faults: Vec<String>,
}

/// Part of the snoozed findings in the result of a filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum SnoozedTerm {
    /// They match like others.
    #[default]
    Included,
    /// `status:undecided`, the default list, leaves them out.
    Excluded,
    /// `status:snoozed` asks for them.
    Wanted,
}

/// Knowledge of the cockpit that the view lacks: decisions stored a moment ago, rows that stay visible although
/// decided, and findings that runs reported.
#[derive(Debug, Clone, Default)]
pub struct FilterOverrides {
    /// Current status by finding id, for decisions that the view does not contain yet.
    pub statuses: HashMap<String, FindingStatus>,
    /// Ids of findings that were just decided and stay in the list although the filter excludes them.
    pub pinned: HashSet<String>,
    /// Ids of the findings in the output of each run that the filter names. A finding row knows only its first and
    /// last run.
    pub reported: HashMap<String, Vec<String>>,
    /// End of the user's last visit; without it, no finding is new.
    pub last_visit: Option<Arc<LastVisit>>,
    /// Ids of the new findings that were selected during this visit.
    pub seen: HashSet<String>,
    /// Findings that are out of sight for a time.
    pub snoozed: Arc<SnoozedFindings>,
    /// Ids of the findings about which members of the team disagree.
    pub disputed: Arc<HashSet<String>>,
}

impl FilterOverrides {
    /// Returns the status of a finding after the decisions that the view lacks.
    pub fn status_of(&self, row: &FindingRow<'_>) -> FindingStatus {
        if self.statuses.is_empty() { row.status } else { self.statuses.get(row.id).copied().unwrap_or(row.status) }
    }
}

impl FilterOverrides {
    /// Returns true if a finding, given with its index in the view, was first reported after the last visit and was not
    /// selected since. What the user has written is never new.
    pub fn is_new(&self, view: &StoreView, index: usize, row: &FindingRow<'_>) -> bool {
        self.last_visit.as_ref().is_some_and(|visit| {
            let first = view.first_reporting_run(index);
            let created = first.map_or(0, |run| view.run_created_ms(run));
            visit.is_later(row.id, row.first_run, created)
                && !self.seen.contains(row.id)
                && !first.is_some_and(|run| is_written_by_user(&view.run(run)))
        })
    }
}

/// Returns true for the run of a finding that the user has written.
fn is_written_by_user(run: &RunRow<'_>) -> bool {
    run.reviewer == OWN_REVIEWER && run.is_import()
}

impl FindingFilter {
    /// Parses a filter. Terms that are not understood are in [`FindingFilter::faults`].
    pub fn parse(text: &str) -> Self {
        Self::parse_terms(without_replaced_default(text))
    }

    /// Parses the terms of a filter as they are written.
    fn parse_terms(text: &str) -> Self {
        let mut filter = Self::default();
        for term in split_terms(text) {
            let Some((name, values)) = split_name(term) else {
                filter.words.push(unquote(term).to_lowercase());
                continue;
            };
            let kind = TermKind::from_name(name);
            let values = split_values(values);
            // `run:` alone would narrow nothing.
            if values.is_empty() {
                filter.faults.push(term.to_owned());
            }
            for value in values {
                if kind.is_none_or(|kind| !filter.add_term(kind, &unquote(value))) {
                    filter.faults.push(term.to_owned());
                }
            }
        }
        filter
    }

    /// Adds a value of a term. Returns false if the value means nothing.
    fn add_term(&mut self, kind: TermKind, value: &str) -> bool {
        use FindingStatus as S;
        match kind {
            TermKind::Status => match value {
                "undecided" => {
                    self.statuses.extend([S::Open, S::Unresolved]);
                    if self.snoozed == SnoozedTerm::Included {
                        self.snoozed = SnoozedTerm::Excluded;
                    }
                }
                "snoozed" => self.snoozed = SnoozedTerm::Wanted,
                "disputed" => self.disputed = true,
                "decided" => self.statuses.extend([S::Addressed, S::Dismissed, S::Obsolete]),
                "all" => self.statuses.extend(S::ALL),
                value => {
                    let before = self.statuses.len();
                    self.statuses.extend(S::ALL.iter().filter(|status| status.word().starts_with(value)));
                    return self.statuses.len() > before;
                }
            },
            TermKind::Priority => match value.parse::<Priority>() {
                Ok(priority) => self.priorities[priority.index()] = true,
                Err(_) => return false,
            },
            TermKind::Kind => {
                let wanted = value.to_ascii_uppercase();
                let before = self.kinds.len();
                self.kinds.extend(Kind::ALL.iter().filter(|kind| kind.word().contains(&wanted)));
                return self.kinds.len() > before;
            }
            TermKind::Panel => match value {
                "disputed" => self.panel_disputed = true,
                _ => return false,
            },
            TermKind::Path => self.paths.push(value.to_lowercase()),
            TermKind::Run => self.runs.push(value.to_owned()),
        }
        true
    }

    /// Describes the first term that means nothing, with what is known; `None` if every term means something. A run is
    /// known if `view` has a run whose id begins so.
    pub fn describe_fault(&self, view: &StoreView) -> Option<String> {
        if let Some(term) = self.faults.first() {
            return Some(describe_unknown_term(term));
        }
        let is_known = |run: &&String| {
            !view.complete || (0..view.run_count()).any(|index| view.run(index).id.starts_with(run.as_str()))
        };
        let run = self.runs.iter().find(|run| !is_known(run))?;
        let newest: Vec<&str> = (0..view.run_count().min(MAX_NAMED_RUNS)).map(|index| view.run(index).id).collect();
        Some(match newest.is_empty() {
            true => format!("run:{run} is unknown; there is no run yet"),
            false => format!("run:{run} is unknown; the newest runs are {}", newest.join(", ")),
        })
    }

    /// Returns the run ids in the filter that are complete.
    pub fn named_runs(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(String::as_str).filter(|run| RunId::is_valid(run))
    }

    /// Returns true if a term narrows the status.
    fn has_status(&self) -> bool {
        !self.statuses.is_empty() || self.snoozed != SnoozedTerm::Included || self.disputed
    }

    /// Returns true if the filter lists the findings of some runs only, with any status.
    pub fn lists_whole_runs(&self) -> bool {
        !self.runs.is_empty() && !self.has_status()
    }

    /// Returns true if the filter asks for snoozed findings.
    pub fn wants_snoozed(&self) -> bool {
        self.snoozed == SnoozedTerm::Wanted
    }

    /// Returns true if the filter lists findings with this status.
    pub fn matches_status(&self, status: FindingStatus, is_snoozed: bool) -> bool {
        match (self.snoozed, is_snoozed) {
            (SnoozedTerm::Wanted, true) => true,
            (SnoozedTerm::Wanted, false) => self.statuses.contains(&status),
            (SnoozedTerm::Excluded, true) => false,
            _ => self.statuses.is_empty() || self.statuses.contains(&status),
        }
    }

    /// Returns true if a finding matches apart from its status. `reported` means that one of the named runs is known to
    /// have reported the finding.
    fn matches_rest(&self, row: &FindingRow<'_>, reported: bool) -> bool {
        (self.priorities == [false; 4] || self.priorities[row.priority.index()])
            && (!self.panel_disputed || row.panel_disputed)
            && (self.kinds.is_empty() || self.kinds.contains(&row.kind))
            && (self.runs.is_empty()
                || reported
                || self.runs.iter().any(|run| row.last_run.starts_with(run) || row.first_run.starts_with(run)))
            && (self.paths.is_empty() || self.paths.iter().any(|path| contains_ignore_case(row.path, path)))
            && self.words.iter().all(|word| {
                contains_ignore_case(row.title, word)
                    || contains_ignore_case(row.path, word)
                    || contains_ignore_case(row.kind.word(), word)
                    || row.id.starts_with(word.as_str())
            })
    }

    /// Returns the indices of the matching findings, in the order of the view.
    pub fn matching_rows(&self, view: &StoreView, known: &FilterOverrides) -> Vec<u32> {
        let lists = self.named_runs().filter_map(|run| known.reported.get(run));
        let mut reported: Vec<usize> = lists.flatten().filter_map(|id| view.finding_index(id)).collect();
        reported.sort_unstable();
        let mut reported = reported.into_iter().peekable();
        (0..view.finding_count())
            .filter(|index| {
                let mut is_reported = false;
                while reported.next_if(|next| next <= index).is_some() {
                    is_reported = true;
                }
                let row = view.finding(*index);
                let status = known.status_of(&row);
                ((!self.disputed || known.disputed.contains(row.id))
                    && self.matches_status(status, known.snoozed.hides(row.id, status))
                    && self.matches_rest(&row, is_reported))
                    || (!known.pinned.is_empty() && known.pinned.contains(row.id))
            })
            .filter_map(|index| u32::try_from(index).ok())
            .collect()
    }
}

/// Returns a filter without the default at its beginning if another status follows, as in `status:undecided status:disputed`.
/// A status that means nothing, such as one that is being typed, replaces nothing.
pub fn without_replaced_default(text: &str) -> &str {
    match text.trim_start().strip_prefix(DEFAULT) {
        Some(rest) if rest.starts_with(char::is_whitespace) && FindingFilter::parse_terms(rest).has_status() => {
            rest.trim_start()
        }
        _ => text,
    }
}

/// Maximum number of runs that a message names.
const MAX_NAMED_RUNS: usize = 3;

/// Describes a term that means nothing, with the names or values that do.
fn describe_unknown_term(term: &str) -> String {
    let (name, values) = split_name(term).unwrap_or((term, ""));
    let kind = TermKind::from_name(name);
    let known = kind.map_or_else(Vec::new, TermKind::values);
    let written = split_values(values);
    if written.is_empty() && kind.is_some() {
        let known = if known.is_empty() { String::new() } else { format!("; {}", list_known(&known)) };
        return format!("{name}: has no value{known}");
    }
    if known.is_empty() {
        let meant = did_you_mean(name, TermKind::NAMES.iter().map(|known| known.trim_end_matches(':')));
        let known = format!("there are {}, and words without a colon", TermKind::NAMES.join(" "));
        return format!("{name}: is unknown; {known}{meant}");
    }
    let is_unknown = |value: &&str| kind.is_none_or(|kind| !FindingFilter::default().add_term(kind, &unquote(value)));
    let value = written.into_iter().find(is_unknown).unwrap_or(values);
    let meant = did_you_mean(&unquote(value), known.iter().map(String::as_str));
    format!("{name}:{value} is unknown; {}{meant}", list_known(&known))
}

/// Lists the values of a term: `there are 0, 1, 2, 3`.
fn list_known(values: &[String]) -> String {
    let verb = if values.len() == 1 { "is" } else { "are" };
    format!("there {verb} {}", values.join(", "))
}

/// Returns true if `text` contains the lower-case `word`, ignoring case.
pub fn contains_ignore_case(text: &str, word: &str) -> bool {
    if text.is_ascii() && word.is_ascii() {
        let word = word.as_bytes();
        let Some(first) = word.first() else { return true };
        let upper = first.to_ascii_uppercase();
        let bytes = text.as_bytes();
        return memchr::memchr2_iter(*first, upper, bytes)
            .any(|at| bytes.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word)));
    }
    text.to_lowercase().contains(word)
}

/// Completion candidates of the filter line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Byte offset from which a candidate replaces the text, up to the cursor.
    pub start: usize,
    /// Texts that may replace the part from `start` to the cursor; empty when none fits.
    pub candidates: Vec<String>,
}

/// Returns the candidates that fit at the cursor: terms, values and saved filters.
pub fn complete(text: &str, cursor: usize, saved: &SavedFilters) -> Completion {
    let before = text.get(..cursor).unwrap_or(text);
    let word_start = last_term_start(before);
    let word = &before[word_start..];
    if let Some(begin) = word.strip_prefix('@') {
        let fitting = saved.keys().filter(|name| name.starts_with(begin)).map(|name| format!("@{name}")).collect();
        return Completion { start: word_start, candidates: fitting };
    }
    let Some((name, values)) = split_name(word) else {
        let names = TermKind::NAMES.iter().filter(|name| name.starts_with(word)).map(|name| (*name).to_owned());
        // Where no term has begun yet, a saved filter may come, too.
        let saved = saved.keys().filter(|_| word.is_empty()).map(|name| format!("@{name}"));
        return Completion { start: word_start, candidates: names.chain(saved).collect() };
    };
    let value_start = values.rfind(',').map_or(0, |at| at + 1);
    let value = &values[value_start..];
    let all = TermKind::from_name(name).map_or_else(Vec::new, TermKind::values);
    let wanted = value.to_lowercase();
    let mut candidates: Vec<String> = all.iter().filter(|c| c.to_lowercase().starts_with(&wanted)).cloned().collect();
    if candidates.is_empty() {
        candidates = all.into_iter().filter(|c| c.to_lowercase().contains(&wanted)).collect();
    }
    Completion { start: word_start + name.len() + 1 + value_start, candidates }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Severity;

    fn row<'a>(status: FindingStatus, priority: Priority, kind: Kind, path: &'a str, title: &'a str) -> FindingRow<'a> {
        FindingRow {
            id: "f_0000000000000001",
            first_run: "ar_A1",
            last_run: "ar_B2",
            status,
            priority,
            severity: Severity::Low,
            kind,
            path,
            line_start: 1,
            line_end: 1,
            title,
            symbol: "",
            panel_disputed: false,
        }
    }

    #[test]
    fn terms_of_a_sort_widen_and_sorts_narrow() {
        use FindingStatus as S;
        let finding = row(S::Open, Priority::P1, Kind::DeadCode, "src/Parser.rs", "Unused import Größe");
        for (text, passes) in [
            ("", true),
            (DEFAULT, true),
            ("status:open", true),
            ("status:addr,open", true),
            ("status:dismissed", false),
            ("status:decided", false),
            ("p:0,1", true),
            ("p:0", false),
            ("p:0 p:1", true),
            ("kind:dead", true),
            ("kind:DEAD,magic p:1", true),
            ("kind:magic", false),
            ("path:src/parser", true),
            ("path:tests/", false),
            ("run:ar_B2", true),
            ("run:ar_C", false),
            ("unused größe", true),
            (r#"path:"src/parser""#, true),
            (r#""import größe""#, true),
            (r#""unused größe""#, false),
            ("unused export", false),
            ("status:open kind:dead p:1 path:rs import", true),
            ("panel:disputed", false),
            ("panel:disputed status:open", false),
        ] {
            let filter = FindingFilter::parse(text);
            assert_eq!(filter.faults, Vec::<String>::new(), "{text}");
            let matches = filter.matches_status(finding.status, false) && filter.matches_rest(&finding, false);
            assert_eq!(matches, passes, "{text}");
        }
    }

    #[test]
    fn disputes_of_a_panel_and_of_people_are_different_terms() {
        let said = row(FindingStatus::Open, Priority::P1, Kind::DeadCode, "src/a.rs", "Unused import");
        let disputed = FindingRow { panel_disputed: true, ..said };
        for (text, expected) in [
            ("panel:disputed", [false, true]),
            ("PANEL:disputed p:1", [false, true]),
            ("panel:disputed p:0", [false, false]),
            ("p:1", [true, true]),
            // Which findings people disagree about, no row knows: `matching_rows` asks the team.
            ("status:disputed", [true, true]),
        ] {
            let filter = FindingFilter::parse(text);
            assert_eq!(filter.faults, Vec::<String>::new(), "{text}");
            assert_eq!([said, disputed].map(|row| filter.matches_rest(&row, false)), expected, "{text}");
        }
    }

    #[test]
    fn snoozed_findings_leave_the_default_list_only() {
        for (text, open, dismissed, snoozed) in [
            (DEFAULT, true, false, false),
            ("status:snoozed", false, false, true),
            ("status:snoozed,undecided", true, false, true),
            ("status:undecided,snoozed", true, false, true),
            ("status:open", true, false, true),
            ("status:all", true, true, true),
            ("", true, true, true),
            ("status:dismissed", false, true, false),
        ] {
            let filter = FindingFilter::parse(text);
            assert_eq!(filter.faults, Vec::<String>::new(), "{text}");
            let matches =
                [(FindingStatus::Open, false), (FindingStatus::Dismissed, false), (FindingStatus::Open, true)]
                    .map(|(status, is_snoozed)| filter.matches_status(status, is_snoozed));
            assert_eq!(matches, [open, dismissed, snoozed], "{text}");
        }
    }

    #[test]
    fn another_status_takes_the_place_of_the_default() {
        for (text, meant) in [
            ("status:undecided status:disputed", "status:disputed"),
            (" status:undecided p:0 s:dismissed", "p:0 s:dismissed"),
            ("status:undecided status:snoozed,open", "status:snoozed,open"),
            // Nothing replaces it.
            ("status:undecided p:0", "status:undecided p:0"),
            ("status:undecided status:", "status:undecided status:"),
            ("status:undecided status:qq", "status:undecided status:qq"),
            ("status:undecided,snoozed status:open", "status:undecided,snoozed status:open"),
            ("status:undecided \"status: open\"", "status:undecided \"status: open\""),
            ("status:open status:disputed", "status:open status:disputed"),
        ] {
            assert_eq!(without_replaced_default(text), meant, "{text}");
            assert_eq!(FindingFilter::parse(text), FindingFilter::parse(meant), "{text}");
        }
        let disputed = FindingFilter::parse("status:undecided status:disputed");
        assert!(disputed.disputed && disputed.matches_status(FindingStatus::Dismissed, false));
    }

    #[test]
    fn a_quoted_word_is_no_term_and_short_names_are() {
        for (term, kind, lists_whole_runs) in [
            ("status:open", Some(TermKind::Status), false),
            ("S:open", Some(TermKind::Status), false),
            ("file:a.rs", Some(TermKind::Path), true),
            (r#"path:"a b""#, Some(TermKind::Path), true),
            ("RUN:ar_1", Some(TermKind::Run), true),
            (r#""status: is never read""#, None, true),
            (r#""run:x""#, None, true),
            ("words", None, true),
            ("status:disputed", Some(TermKind::Status), false),
            ("status:snoozed", Some(TermKind::Status), false),
        ] {
            assert_eq!(TermKind::from_term(term), kind, "{term}");
            let filter = FindingFilter::parse(&format!("{term} run:ar_2"));
            assert_eq!(filter.lists_whole_runs(), lists_whole_runs, "{term}");
            let names_run = kind == Some(TermKind::Run);
            assert_eq!(FindingFilter::parse(term).lists_whole_runs(), names_run, "{term} alone");
        }
    }

    #[test]
    fn what_means_nothing_is_told() {
        assert_eq!(
            FindingFilter::parse("p:9 colour:red status:open kind:xyz").faults,
            ["p:9", "colour:red", "kind:xyz"]
        );
        assert_eq!(FindingFilter::parse("run: colour: status:, path:src").faults, ["run:", "colour:", "status:,"]);
    }

    #[test]
    fn an_unknown_term_is_told_with_what_is_known() {
        let mut builder = crate::store::StoreViewBuilder::default();
        builder.run(crate::tui::tests::support::run_row("ar_00000000000000000000000007"));
        let view = builder.build();
        let told = |text: &str| FindingFilter::parse(text).describe_fault(&view);
        for text in [
            "",
            "status:open p:1 kind:dead path:nowhere some words",
            "run:ar_0000",
            "run:ar_00000000000000000000000007",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
        for (text, expected) in [
            ("p:0,9", "p:9 is unknown; there are 0, 1, 2, 3"),
            (
                "colour:red",
                "colour: is unknown; there are status: p: kind: path: run: panel:, and words without a colon",
            ),
            (
                "status:gone",
                "status:gone is unknown; there are undecided, open, unresolved, addressed, dismissed, obsolete, decided, snoozed, disputed, all",
            ),
            (
                "stat:open",
                "stat: is unknown; there are status: p: kind: path: run: panel:, and words without a colon; did you mean \"status\"?",
            ),
            (
                "status:opne",
                "status:opne is unknown; there are undecided, open, unresolved, addressed, dismissed, obsolete, decided, snoozed, disputed, all; did you mean \"open\"?",
            ),
            ("colour:", "colour: is unknown; there are status: p: kind: path: run: panel:, and words without a colon"),
            ("p:", "p: has no value; there are 0, 1, 2, 3"),
            ("run:", "run: has no value"),
            ("File:", "File: has no value"),
            ("panel:", "panel: has no value; there is disputed"),
            ("panel:agreed", "panel:agreed is unknown; there is disputed"),
            ("path:,", "path: has no value"),
            ("run:ar_9", "run:ar_9 is unknown; the newest runs are ar_00000000000000000000000007"),
        ] {
            assert_eq!(told(text).as_deref(), Some(expected));
        }
        let kinds = told("kind:xyz").expect("no such kind");
        assert!(kinds.starts_with("kind:xyz is unknown; there are ") && kinds.contains("DEAD_CODE"), "{kinds}");
    }

    #[test]
    fn help_offers_what_fits_at_the_cursor() {
        let offered = |text: &str| complete(text, text.len(), &SavedFilters::new());
        assert_eq!(offered("st").candidates, ["status:"]);
        assert_eq!(offered("status:open p:").candidates, ["0", "1", "2", "3"]);
        assert_eq!(offered("pa").candidates, ["path:", "panel:"]);
        assert_eq!(offered("panel:").candidates, ["disputed"]);
        assert_eq!(offered("status:un").candidates, ["undecided", "unresolved"]);
        assert_eq!(offered("kind:dead,lon"), Completion { start: 10, candidates: vec!["LONG_METHOD".into()] });
        assert_eq!(offered("kind:error").candidates[0], "ERROR_HANDLING");
        assert_eq!(offered("path:src").candidates, Vec::<String>::new());
        let after_quotes = Completion { start: 11, candidates: vec!["status:".into()] };
        assert_eq!(offered(r#"path:"a b" st"#), after_quotes);
        assert_eq!(offered(r#"path:"docs st"#).candidates, Vec::<String>::new(), "still in the quotes");
        let saved = [("urgent", "p:0"), ("old", "p:3")].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        assert_eq!(complete("p:0 @u", 6, &saved), Completion { start: 4, candidates: vec!["@urgent".into()] });
        assert_eq!(complete("@", 1, &saved).candidates, ["@old", "@urgent"]);
    }
}
