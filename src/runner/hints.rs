//! What a run's model is told of what was learned, for the change it reviews.
//!
//! Invariant: whatever goes wrong with it, the review goes on without it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Runner;
use super::gather::Subject;
use crate::domain::LineRange;
use crate::git::FileChange;
use crate::knowledge::cache::Cache;
use crate::knowledge::hints::{Changed, hints};
use crate::knowledge::pattern::Pattern;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::Parsers;

/// Changed files that are looked at; the rest is likely to be more of the same. Own.
const MOST_FILES: usize = 200;
/// Larger files nobody wrote by hand. Bytes; as for what is learned.
const MOST_BYTES: usize = 1 << 20;
/// Bytes of all that are looked at. Own: half a second, which nobody is asked about before the first request.
const MOST_TOGETHER: usize = 4 << 20;

/// Takes the room that a file of so many bytes needs; whether there is so much.
fn takes(room: &mut usize, bytes: usize) -> bool {
    let left = room.checked_sub(bytes).filter(|_| bytes <= MOST_BYTES);
    *room = left.unwrap_or(*room);
    left.is_some()
}

/// The patterns of such a text, a line each.
pub(super) fn listed(told: &str) -> Vec<String> {
    told.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
}

impl Runner {
    /// The patterns that help most with the open hunks of a change, as text for a prompt of at most `room` tokens; empty
    /// when nothing is known.
    pub(super) fn hints(&self, subject: &Subject<'_>, room: u64, count: &dyn Fn(&str) -> u64) -> String {
        // Files are a stranger's: what makes their analysis panic costs this and nothing else.
        let told = catch_unwind(AssertUnwindSafe(|| {
            let (changed, patterns) = self.known_of(subject);
            hints(&patterns, &changed, self.ambient.now(), room, count)
        }));
        told.unwrap_or_else(|_| {
            tracing::error!("revdeck failed to find out which patterns bear on the change");
            String::new()
        })
    }

    fn known_of(&self, subject: &Subject<'_>) -> (Changed, Vec<Pattern>) {
        let cache = Cache::open(&self.paths.knowledge);
        let (mut changed, mut parsers) = (Changed::default(), Parsers::default());
        // By name: two languages may share one.
        let mut patterns: BTreeMap<&str, Vec<Pattern>> = BTreeMap::new();
        let open = |file: &FileChange| -> Vec<LineRange> {
            let hunks = file.hunks.iter().enumerate().filter(|(at, _)| subject.is_open(file, *at));
            hunks.map(|(_, hunk)| hunk.new_range()).collect()
        };
        let mut room = MOST_TOGETHER;
        let files = subject.change.files.iter().map(|file| (file, open(file))).filter(|(_, lines)| !lines.is_empty());
        for (file, lines) in files.take(MOST_FILES) {
            let Ok(Some(text)) = self.repo.file_at(&subject.record.snapshot_commit, &file.path) else { continue };
            if !takes(&mut room, text.len()) {
                continue;
            }
            let Some(language) = Language::detect(&file.path, &text) else { continue };
            patterns.entry(language.name()).or_insert_with(|| {
                cache.patterns(language).unwrap_or_else(|error| {
                    tracing::warn!(%error, "the model is told nothing of what was learned of {}", language.name());
                    Vec::new()
                })
            });
            if let Ok(source) = parsers.parse(&file.path, language, &text) {
                changed.add(&source, &lines);
            }
        }
        (changed, patterns.into_values().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_change_is_looked_at_in_part() {
        let mut room = MOST_TOGETHER;
        assert!(!takes(&mut room, MOST_BYTES + 1));
        assert_eq!(room, MOST_TOGETHER, "what is passed over takes no room");
        assert_eq!((0..9).filter(|_| takes(&mut room, MOST_BYTES)).count(), MOST_TOGETHER / MOST_BYTES);
        assert!(!takes(&mut room, 1) && takes(&mut room, 0));
    }
}
