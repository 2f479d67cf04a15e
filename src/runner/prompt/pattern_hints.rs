//! Renders the learned patterns that are relevant for a change as text for a run's model.
//!
//! Invariant: a failure in this module never fails the review.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::domain::LineRange;
use crate::git::FileChange;
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::pattern::Pattern;
use crate::knowledge::prompt_hints::{ChangedForms, render_hints};
use crate::runner::PromptBuilder;
use crate::runner::prompt::prompt_material::PromptSubject;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Maximum number of changed files that are read. Not from the literature: the rest of a larger change is likely to be
/// similar.
const MAX_HINT_FILES: usize = 200;
/// Maximum size of a file in bytes; larger files are generated. The same limit holds for learning.
const MAX_HINT_FILE_BYTES: usize = 1 << 20;
/// Maximum size of all files together, in bytes. Not from the literature: it takes half a second, and no interaction is
/// possible before the first request.
const MAX_HINT_TOTAL_BYTES: usize = 4 << 20;

/// Subtracts a file's size from the remaining bytes. Returns `false` if the file is too large or there is no room.
fn reserve_bytes(room: &mut usize, bytes: usize) -> bool {
    let left = room.checked_sub(bytes).filter(|_| bytes <= MAX_HINT_FILE_BYTES);
    *room = left.unwrap_or(*room);
    left.is_some()
}

/// Returns the patterns of a rendered text, one per line.
pub(in crate::runner) fn parse_pattern_lines(told: &str) -> Vec<String> {
    told.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
}

impl PromptBuilder<'_> {
    /// Renders the patterns that help most with the open hunks of a change, in at most `room` tokens. Returns an empty
    /// text if no pattern is known.
    pub(in crate::runner) fn render_hints(
        &self,
        subject: &PromptSubject<'_>,
        room: u64,
        count: &dyn Fn(&str) -> u64,
    ) -> String {
        // Files are untrusted: if their analysis panics, only the hints are lost.
        let told = catch_unwind(AssertUnwindSafe(|| {
            let (changed, patterns) = self.load_patterns(subject);
            render_hints(&patterns, &changed, self.services.ambient.now(), room, count)
        }));
        told.unwrap_or_else(|_| {
            tracing::error!("revdeck failed to find out which patterns bear on the change");
            String::new()
        })
    }

    fn load_patterns(&self, subject: &PromptSubject<'_>) -> (ChangedForms, Vec<Pattern>) {
        let cache = KnowledgeCache::open(&self.services.paths.knowledge);
        let (mut changed, mut parsers) = (ChangedForms::default(), Parsers::default());
        // Keyed by name, because two languages may share a name.
        let mut patterns: BTreeMap<&str, Vec<Pattern>> = BTreeMap::new();
        let open = |file: &FileChange| -> Vec<LineRange> {
            let hunks = file.hunks.iter().enumerate().filter(|(at, _)| subject.is_open(file, *at));
            hunks.map(|(_, hunk)| hunk.new_range()).collect()
        };
        let mut room = MAX_HINT_TOTAL_BYTES;
        let files = subject.change.files.iter().map(|file| (file, open(file))).filter(|(_, lines)| !lines.is_empty());
        for (file, lines) in files.take(MAX_HINT_FILES) {
            let Ok(Some(text)) = self.services.repo.file_at(&subject.record.subject.snapshot_commit, &file.path) else {
                continue;
            };
            if !reserve_bytes(&mut room, text.len()) {
                continue;
            }
            let Some(language) = Language::detect(&file.path, &text) else { continue };
            let known = patterns.entry(language.name()).or_insert_with(|| {
                cache.patterns(language).unwrap_or_else(|error| {
                    tracing::warn!(%error, "the model is told nothing of what was learned of {}", language.name());
                    Vec::new()
                })
            });
            if !known.is_empty()
                && let Ok(source) = parsers.parse(&file.path, language, &text)
            {
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
        let mut room = MAX_HINT_TOTAL_BYTES;
        assert!(!reserve_bytes(&mut room, MAX_HINT_FILE_BYTES + 1));
        assert_eq!(room, MAX_HINT_TOTAL_BYTES, "what is passed over takes no room");
        assert_eq!(
            (0..9).filter(|_| reserve_bytes(&mut room, MAX_HINT_FILE_BYTES)).count(),
            MAX_HINT_TOTAL_BYTES / MAX_HINT_FILE_BYTES
        );
        assert!(!reserve_bytes(&mut room, 1) && reserve_bytes(&mut room, 0));
    }
}
