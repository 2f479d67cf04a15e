//! What a run's model is told of what was learned, for the change it reviews.
//!
//! Invariant: whatever goes wrong with it, the review goes on without it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Runner;
use crate::domain::{LineRange, RunRecord};
use crate::git::{Change, Hunk};
use crate::knowledge::cache::Cache;
use crate::knowledge::hints::{Changed, hints};
use crate::knowledge::pattern::Pattern;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::Parsers;

/// Changed files that are looked at; the rest is likely to be more of the same. Own: some tenths of a second.
const MOST_FILES: usize = 200;
/// Larger files nobody wrote by hand. Bytes; as for what is learned.
const MOST_BYTES: usize = 1 << 20;

impl Runner {
    /// The patterns that help most with a change, as text for a prompt; empty when nothing is known.
    pub(super) fn hints(&self, record: &RunRecord, change: &Change, count: &dyn Fn(&str) -> u64) -> String {
        // Files are a stranger's: what makes their analysis panic costs this and nothing else.
        let told = catch_unwind(AssertUnwindSafe(|| {
            let (changed, patterns) = self.known_of(record, change);
            hints(&patterns, &changed, self.ambient.now(), count)
        }));
        told.unwrap_or_else(|_| {
            tracing::error!("revdeck failed to find out which patterns bear on the change");
            String::new()
        })
    }

    fn known_of(&self, record: &RunRecord, change: &Change) -> (Changed, Vec<Pattern>) {
        let cache = Cache::open(&self.paths.knowledge);
        let (mut changed, mut parsers) = (Changed::default(), Parsers::default());
        // By name: two languages may share one.
        let mut patterns: BTreeMap<&str, Vec<Pattern>> = BTreeMap::new();
        for file in change.files.iter().take(MOST_FILES) {
            let Ok(Some(text)) = self.repo.file_at(&record.snapshot_commit, &file.path) else { continue };
            if text.len() > MOST_BYTES {
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
                let lines: Vec<LineRange> = file.hunks.iter().map(Hunk::new_range).collect();
                changed.add(&source, &lines);
            }
        }
        for notice in cache.notices() {
            tracing::warn!("{notice}");
        }
        (changed, patterns.into_values().flatten().collect())
    }
}
