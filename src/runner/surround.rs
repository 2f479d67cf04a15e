//! What a run's model is told of the code around the change, and what the journal keeps of that.
//!
//! Invariants: it is never more than the budget that the window leaves; whatever goes wrong with it, the review goes on
//! without it and says so.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Runner;
use super::identity::open_meaning;
use crate::context::given::given;
use crate::context::index::{Index, Reach};
use crate::context::pack::{LeftAway, Packed, Section};
use crate::context::retrieve::{task, unified};
use crate::context::surroundings::{Options, Question, ToldDiff, surroundings};
use crate::domain::{Encoding, LineRange, RunRecord, Surrounding, Surroundings};
use crate::git::{Change, GitError};

/// In less there is no place for anything worth reading. Tokens.
const LEAST: u64 = 200;
/// Of a window this part at most: a fifth.
const WINDOW_SHARE: u64 = 5;

/// What is in a request's window, in tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// All of the window.
    pub window: u64,
    /// Of that, what is pinned.
    pub pinned: u64,
    /// Pinned in any case: system prompt, tools, task.
    pub fixed: u64,
    /// Kept for the first part of the diff.
    pub diff: u64,
}

impl Room {
    /// What the surroundings may take of it, `most` at most; 0 where that would be next to nothing.
    pub fn budget(self, most: u32) -> u32 {
        let left = self.pinned.saturating_sub(self.fixed).saturating_sub(self.diff);
        let budget = u64::from(most).min(self.window / WINDOW_SHARE).min(left);
        if budget < LEAST { 0 } else { budget as u32 }
    }
}

/// The code around a change.
#[derive(Debug, Default)]
pub(super) struct Around {
    pub packed: Packed,
    /// For the journal.
    pub context: Surroundings,
}

/// What the code around a change is asked for of besides the change. A review asks for nothing more.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    pub focus: Vec<task::Focus>,
    /// What is to be done.
    pub text: String,
    pub options: Options,
}

impl Runner {
    /// The code around the changed files of which something is to be reviewed, in at most `budget` tokens.
    pub(super) fn around(
        &self,
        record: &RunRecord,
        change: &Change,
        is_open: &dyn Fn(&str) -> bool,
        (budget, encoding): (u32, Encoding),
        (index, wish): (Option<&Index>, &Wish),
    ) -> Around {
        let mut around = Around::default();
        around.context.budget = budget;
        if budget == 0 {
            around.context.notes.push("the model's window has no room for code around the change".to_owned());
            return around;
        }
        if index.is_none_or(|index| index.reach() != Reach::Whole) {
            let note = "the index of this repository is not ready: until it is, searches look at files one by one";
            around.context.notes.push(note.to_owned());
        }
        // Files are a stranger's: what makes their analysis panic costs this and nothing else.
        let packed =
            catch_unwind(AssertUnwindSafe(|| self.pack(record, change, is_open, (budget, encoding), (index, wish))));
        match packed {
            Ok(Ok(packed)) => {
                around.context.notes.extend(packed.notes.iter().cloned());
                around.context = Surroundings { notes: around.context.notes, ..in_short(&packed) };
                around.packed = packed;
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the review goes on without the code around the change");
                around.context.notes.push("git cannot read the code around the change".to_owned());
            }
            Err(_) => around.context.notes.push("revdeck failed to look at the code around the change".to_owned()),
        }
        around
    }

    fn pack(
        &self,
        record: &RunRecord,
        change: &Change,
        is_open: &dyn Fn(&str) -> bool,
        (budget, encoding): (u32, Encoding),
        (index, wish): (Option<&Index>, &Wish),
    ) -> Result<Packed, GitError> {
        let files = change.files.iter().filter(|file| is_open(&file.path));
        let mut given = given(&self.repo, files)?;
        if given.is_empty() {
            given = unified::parse(&wish.text);
        }
        let history = if record.head_commit.is_empty() { &record.snapshot_commit } else { &record.head_commit };
        let folder = self.paths.history_folder(&self.repo.key());
        let meaning = self.settings.context.embeddings.as_ref();
        let meaning = meaning.map(|settings| open_meaning(settings, &self.paths));
        let question = Question {
            tree: &record.snapshot_commit,
            history,
            task: task::Task { given, focus: wish.focus.clone(), text: wish.text.clone() },
            // The task tells of the change by itself.
            diff: &ToldDiff::default,
            budget,
            encoding,
            options: wish.options.clone(),
            folder: Some(&folder),
            index,
            meaning: meaning.as_ref().and_then(|meaning| meaning.as_ref().ok()),
        };
        let mut packed = surroundings(&self.repo, question)?;
        packed.notes.extend(meaning.and_then(Result::err).map(|error| format!("without what code means: {error}")));
        Ok(packed)
    }
}

/// What is sent and left away, without the texts.
fn in_short(packed: &Packed) -> Surroundings {
    let place = |lines: Option<LineRange>| lines.map_or((0, 0), |lines| (lines.start, lines.end));
    let sent = |section: &Section| {
        let (start_line, end_line) = place(section.lines);
        Surrounding {
            path: section.path.clone(),
            start_line,
            end_line,
            kind: section.kind.word().to_owned(),
            tokens: section.tokens,
            score: section.score,
            reason: section.because.reason.clone(),
        }
    };
    let left = |piece: &LeftAway| {
        let (start_line, end_line) = place(piece.lines);
        Surrounding {
            path: piece.path.clone(),
            start_line,
            end_line,
            kind: piece.kind.word().to_owned(),
            tokens: piece.tokens,
            score: piece.score,
            reason: piece.reason.word().to_owned(),
        }
    };
    Surroundings {
        budget: packed.budget,
        total_tokens: packed.total_tokens,
        compression: packed.compression.map_or_else(String::new, |strength| strength.word().to_owned()),
        notes: Vec::new(),
        sections: packed.sections.iter().take(Surroundings::MAX_LISTED).map(sent).collect(),
        left_out: packed.left_out.iter().take(Surroundings::MAX_LISTED).map(left).collect(),
        left_out_total: packed.left_out.len() as u32,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::as_set(70_000, 4_000, 14_000, 8_000, 8_000)]
    #[case::switched_off(70_000, 4_000, 14_000, 0, 0)]
    #[case::a_fifth_of_the_window(70_000, 4_000, 1_000, 100_000, 14_000)]
    #[case::the_change_comes_first(16_000, 4_000, 3_200, 8_000, 800)]
    #[case::next_to_nothing(16_000, 4_000, 3_900, 8_000, 0)]
    #[case::no_room(8_000, 5_000, 1_600, 8_000, 0)]
    fn the_budget_is_what_the_window_leaves(
        #[case] window: u64,
        #[case] fixed: u64,
        #[case] diff: u64,
        #[case] most: u32,
        #[case] budget: u32,
    ) {
        assert_eq!(Room { window, pinned: window / 2, fixed, diff }.budget(most), budget);
    }
}
