//! Decisions about findings like the shown one: of the same kind, with a title of the same shape.

use crate::domain::FindingStatus;
use crate::store::{FindingRow, StoreView};

/// Numbers of decisions about similar findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimilarDecisions {
    pub addressed: usize,
    pub dismissed: usize,
    /// Most frequent reason of the dismissals; empty if no reason is known.
    pub reason: String,
}

impl SimilarDecisions {
    /// Describes the decisions in words: `2 addressed, 1 dismissed (generated)`; `None` if there is none.
    pub fn describe(&self) -> Option<String> {
        let reason = if self.reason.is_empty() { String::new() } else { format!(" ({})", self.reason) };
        let said = [(self.addressed, "addressed", ""), (self.dismissed, "dismissed", &reason)];
        let said: Vec<String> = said
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, word, more)| format!("{count} {word}{more}"))
            .collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// Counts the decisions about these findings. `decision_of` returns the status of a finding after the newest decision,
    /// which the view may lack; `reason_of` the reason of a dismissal, empty if it is unknown.
    pub fn count(
        similar: &[FindingRow<'_>],
        decision_of: impl Fn(&FindingRow<'_>) -> FindingStatus,
        reason_of: impl Fn(&str) -> String,
    ) -> Self {
        let decided: Vec<(&FindingRow<'_>, FindingStatus)> =
            similar.iter().map(|row| (row, decision_of(row))).collect();
        let with = |status| decided.iter().filter(move |(_, now)| *now == status).map(|(row, _)| *row);
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for row in with(FindingStatus::Dismissed) {
            let reason = reason_of(row.id);
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                _ if reason.is_empty() => {}
                Some((_, count)) => *count += 1,
                None => reasons.push((reason, 1)),
            }
        }
        // Of equally frequent reasons the first, which is the one of the newest finding.
        let most = reasons.into_iter().rev().max_by_key(|(_, count)| *count);
        Self {
            addressed: with(FindingStatus::Addressed).count(),
            dismissed: with(FindingStatus::Dismissed).count(),
            reason: most.map(|(reason, _)| reason).unwrap_or_default(),
        }
    }
}

/// Returns true if two findings are alike: of one kind, with titles of one shape.
pub fn is_similar(one: &FindingRow<'_>, other: &FindingRow<'_>) -> bool {
    one.kind == other.kind && one.id != other.id && title_shape(one.title) == title_shape(other.title)
}

/// Returns the findings that are like finding `index` of the view: of its kind, with a title of its shape.
pub fn find_similar(view: &StoreView, index: usize) -> Vec<FindingRow<'_>> {
    let this = view.finding(index);
    let shape = title_shape(this.title);
    let is_like = |row: &FindingRow<'_>| row.kind == this.kind && row.id != this.id && title_shape(row.title) == shape;
    (0..view.finding_count()).map(|index| view.finding(index)).filter(is_like).collect()
}

/// Returns a title without its names and numbers: "function `fold` is complex: cyclomatic 21" and "function `new` is
/// complex: cyclomatic 17" have the same shape.
fn title_shape(title: &str) -> String {
    let mut shape = String::with_capacity(title.len());
    for (at, part) in title.split('`').enumerate() {
        if at % 2 == 1 {
            shape.push('`');
            continue;
        }
        let mut is_number = false;
        for c in part.chars() {
            if c.is_ascii_digit() {
                if !is_number {
                    shape.push('0');
                }
                is_number = true;
            } else {
                is_number = false;
                shape.extend(c.to_lowercase());
            }
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Kind;
    use crate::store::StoreViewBuilder;
    use crate::tui::tests::support::{complete, finding_id, finding_row, run_id, run_row};

    #[test]
    fn titles_have_a_shape_without_names_and_numbers() {
        for (one, other, same) in [
            ("unused parameter `rate`", "unused parameter `x y`", true),
            ("function `fold` is complex: cyclomatic 21", "Function `new` is complex: cyclomatic 7", true),
            ("unused parameter `rate`", "unused variable `rate`", false),
            ("3600 is not explained", "60 is not explained", true),
            ("a `b", "a `c", true),
            ("", "x", false),
        ] {
            assert_eq!(title_shape(one) == title_shape(other), same, "{one} and {other}");
        }
    }

    #[test]
    fn decisions_about_the_same_kind_and_shape_count() {
        use FindingStatus as S;
        let run = run_id(1);
        let mut builder = StoreViewBuilder::default();
        builder.run(run_row(&run));
        for (number, status, kind, title) in [
            (1, S::Open, Kind::DeadCode, "unused parameter `rate`"),
            (2, S::Addressed, Kind::DeadCode, "unused parameter `tax`"),
            (3, S::Dismissed, Kind::DeadCode, "unused parameter `a`"),
            (4, S::Dismissed, Kind::DeadCode, "unused parameter `b`"),
            (5, S::Dismissed, Kind::DeadCode, "unused parameter `c`"),
            (6, S::Dismissed, Kind::LongMethod, "unused parameter `d`"),
            (7, S::Dismissed, Kind::DeadCode, "unused import `d`"),
            (8, S::Open, Kind::DeadCode, "unused parameter `e`"),
        ] {
            let id = finding_id(number);
            builder.finding(FindingRow { status, kind, title, ..finding_row(&id, &run) });
        }
        let view = complete(builder);
        let index = view.finding_index(&finding_id(1)).expect("a finding");
        let reasons = [(3, "intended"), (4, "generated"), (5, "generated"), (6, "x")];
        let reason_of = |id: &str| {
            let known = reasons.iter().find(|(number, _)| finding_id(*number) == id);
            known.map(|(_, reason)| (*reason).to_owned()).unwrap_or_default()
        };
        let similar = find_similar(&view, index);
        let found = SimilarDecisions::count(&similar, |row| row.status, reason_of);
        assert_eq!(found.describe().as_deref(), Some("1 addressed, 3 dismissed (generated)"));
        // Decided since the view was read.
        let newest = |row: &FindingRow<'_>| if row.id == finding_id(8) { S::Addressed } else { row.status };
        let found = SimilarDecisions::count(&similar, newest, reason_of);
        assert_eq!(found.describe().as_deref(), Some("2 addressed, 3 dismissed (generated)"));
        assert_eq!(SimilarDecisions::default().describe(), None);
    }
}
