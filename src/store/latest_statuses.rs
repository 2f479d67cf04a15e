//! Reads the current statuses of given findings from the end of `triage.ndjson`.
//!
//! Invariant: the search reads no more lines than needed, and at most a given number of bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use super::tables::{FindingIdBytes, pad_bytes};
use super::{lines, parse};
use crate::domain::FindingStatus;

/// The findings to search for.
pub(super) struct WantedFindings<'a> {
    pub(super) contains: &'a dyn Fn(&str) -> bool,
    /// Number of findings; the search ends when all are found.
    pub(super) count: usize,
}

/// Returns the status in the last line of each wanted finding, searching at most the last `within` bytes.
pub(super) fn read_latest_statuses(
    file: &File,
    wanted: &WantedFindings<'_>,
    within: u64,
) -> io::Result<BTreeMap<FindingIdBytes, FindingStatus>> {
    let mut found = BTreeMap::new();
    let mut left = within;
    if wanted.count == 0 {
        return Ok(found);
    }
    lines::read_backwards(file, |line| {
        let Some(rest) = left.checked_sub(line.len() as u64 + 1) else { return ControlFlow::Break(()) };
        left = rest;
        // In lines that this version writes, the id is the first field. Most lines are about other findings and need no
        // parsing.
        let other = |id: &str| !(wanted.contains)(id) || found.contains_key(&pad_bytes(id));
        if parse::peek_finding_id(line).is_some_and(other) {
            return ControlFlow::Continue(());
        }
        if let Some(line) = parse::parse_triage(line)
            && !other(&line.finding_id)
        {
            found.insert(pad_bytes(&line.finding_id), line.status);
        }
        if found.len() < wanted.count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn id(n: u8) -> String {
        format!("f_{n:016}")
    }

    /// Returns a line of `triage.ndjson`; some lines have the id at another position, are invalid, or are empty.
    fn line(n: u8, status: FindingStatus, sort: u8) -> String {
        let (id, status) = (id(n), status.word());
        match sort {
            0 => format!("{{\"status\":\"{status}\",\"finding_id\":\"{id}\"}}\n"),
            1 => format!("{{\"finding_id\":\"{id}\",\"status\":\"of tomorrow\"}}\n"),
            2 => "rubbish\n".to_owned(),
            3 => "\n".to_owned(),
            _ => format!("{{\"finding_id\":\"{id}\",\"status\":\"{status}\",\"reason\":\"none\"}}\n"),
        }
    }

    fn sample_file(text: &str) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        file
    }

    /// Reads forwards over all lines, as the reference result.
    fn latest_by_forward_scan(text: &str, wanted: u8, within: usize) -> BTreeMap<FindingIdBytes, FindingStatus> {
        let whole: Vec<&str> =
            text.split_inclusive('\n').filter(|line| line.ends_with('\n') && *line != "\n").collect();
        let mut left = within;
        let kept = whole.iter().rev().take_while(|line| {
            let fits = left >= line.len();
            left = left.saturating_sub(line.len());
            fits
        });
        let mut found = BTreeMap::new();
        for line in
            whole[whole.len() - kept.count()..].iter().filter_map(|line| parse::parse_triage(line.trim().as_bytes()))
        {
            if (0..wanted).any(|n| id(n) == line.finding_id) {
                found.insert(pad_bytes(&line.finding_id), line.status);
            }
        }
        found
    }

    proptest! {
        #[test]
        fn backwards_is_what_forwards_says(
            lines in prop::collection::vec((0u8..6, 0usize..FindingStatus::ALL.len(), 0u8..8), 0..60),
            wanted in 0u8..6,
            within in 0usize..6_000,
            torn: bool,
        ) {
            let mut text: String =
                lines.into_iter().map(|(n, status, sort)| line(n, FindingStatus::ALL[status], sort)).collect();
            if torn {
                text.push_str(line(0, FindingStatus::Dismissed, 9).trim_end());
            }
            let contains = |id: &str| (0..wanted).any(|n| self::id(n) == id);
            let asked = WantedFindings { contains: &contains, count: usize::from(wanted) };
            let found = read_latest_statuses(&sample_file(&text), &asked, within as u64).expect("read");
            prop_assert_eq!(found, latest_by_forward_scan(&text, wanted, within));
        }
    }

    #[test]
    fn with_the_last_wanted_finding_the_search_ends() {
        let mut text = line(0, FindingStatus::Open, 9);
        text.extend((0..50_000).map(|_| line(9, FindingStatus::Addressed, 9)));
        text.push_str(&(line(0, FindingStatus::Dismissed, 9) + &line(1, FindingStatus::Addressed, 9)));
        let asked = Cell::new(0);
        let contains = |id: &str| {
            asked.set(asked.get() + 1);
            [self::id(0), self::id(1)].iter().any(|wanted| wanted == id)
        };
        let found =
            read_latest_statuses(&sample_file(&text), &WantedFindings { contains: &contains, count: 2 }, u64::MAX)
                .expect("read");
        assert_eq!(found.get(&pad_bytes(&self::id(0))), Some(&FindingStatus::Dismissed));
        assert!(asked.get() <= 4, "asked about {} lines", asked.get());
    }
}
