//! What a run's model is told of what was learned, for the change it reviews.
//!
//! Invariant: whatever goes wrong with it, the review goes on without it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Runner;
use super::prompt_material::PromptSubject;
use crate::domain::LineRange;
use crate::git::FileChange;
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::pattern::Pattern;
use crate::knowledge::prompt_hints::{ChangedForms, render_hints};
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Changed files that are looked at; the rest is likely to be more of the same. Own.
const MAX_HINT_FILES: usize = 200;
/// Larger files nobody wrote by hand. Bytes; as for what is learned.
const MAX_HINT_FILE_BYTES: usize = 1 << 20;
/// Bytes of all that are looked at. Own: half a second, which nobody is asked about before the first request.
const MAX_HINT_TOTAL_BYTES: usize = 4 << 20;

/// Takes the room that a file of so many bytes needs; whether there is so much.
fn reserve_bytes(room: &mut usize, bytes: usize) -> bool {
    let left = room.checked_sub(bytes).filter(|_| bytes <= MAX_HINT_FILE_BYTES);
    *room = left.unwrap_or(*room);
    left.is_some()
}

/// The patterns of such a text, a line each.
pub(super) fn parse_pattern_lines(told: &str) -> Vec<String> {
    told.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
}

impl Runner {
    /// The patterns that help most with the open hunks of a change, as text for a prompt of at most `room` tokens; empty
    /// when nothing is known.
    pub(super) fn render_hints(&self, subject: &PromptSubject<'_>, room: u64, count: &dyn Fn(&str) -> u64) -> String {
        // Files are a stranger's: what makes their analysis panic costs this and nothing else.
        let told = catch_unwind(AssertUnwindSafe(|| {
            let (changed, patterns) = self.load_patterns(subject);
            render_hints(&patterns, &changed, self.ambient.now(), room, count)
        }));
        told.unwrap_or_else(|_| {
            tracing::error!("revdeck failed to find out which patterns bear on the change");
            String::new()
        })
    }

    fn load_patterns(&self, subject: &PromptSubject<'_>) -> (ChangedForms, Vec<Pattern>) {
        let cache = KnowledgeCache::open(&self.paths.knowledge);
        let (mut changed, mut parsers) = (ChangedForms::default(), Parsers::default());
        // By name: two languages may share one.
        let mut patterns: BTreeMap<&str, Vec<Pattern>> = BTreeMap::new();
        let open = |file: &FileChange| -> Vec<LineRange> {
            let hunks = file.hunks.iter().enumerate().filter(|(at, _)| subject.is_open(file, *at));
            hunks.map(|(_, hunk)| hunk.new_range()).collect()
        };
        let mut room = MAX_HINT_TOTAL_BYTES;
        let files = subject.change.files.iter().map(|file| (file, open(file))).filter(|(_, lines)| !lines.is_empty());
        for (file, lines) in files.take(MAX_HINT_FILES) {
            let Ok(Some(text)) = self.repo.file_at(&subject.record.snapshot_commit, &file.path) else { continue };
            if !reserve_bytes(&mut room, text.len()) {
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
