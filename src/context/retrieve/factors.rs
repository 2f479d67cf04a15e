//! The figures that the ranking weighs, by name: of files, and of passages within a file.
//!
//! Invariants: all are finite, and 0 where nothing is known; the weights in `assets/retrieval.toml` have the same names.

/// A struct of `f32` that knows the names of its fields.
macro_rules! factors {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $field:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct $name {
            $($(#[$of])* pub $field: f32,)*
        }

        impl $name {
            pub const NAMES: &[&str] = &[$(stringify!($field)),*];

            pub fn values(&self) -> [f32; [$(stringify!($field)),*].len()] {
                [$(self.$field),*]
            }
        }
    };
}

factors!(
    /// What speaks for a file. `_first` is 1 / (rank + 2) by that figure: reciprocal ranks are how signals of unlike
    /// scales are put together.
    FileFactors {
        /// The probability that it changes when the given files do, from the commits of each: the recent ones count most.
        together,
        /// The highest of one given file.
        together_most,
        /// As `together`, small commits counting more.
        together_small,
        /// How often its commits changed a given file.
        together_back,
        /// How recent the latest of those commits is.
        together_latest,
        /// How many there were.
        together_count,
        together_first,
        /// `together`, in proportion to the highest of all files.
        together_part,
        together_log,
        /// Its folder's part in those commits.
        together_folder,
        /// Commits whose lines have words as the task's changed it.
        alike,
        alike_first,
        /// BM25 of the words by role, in proportion to all of them.
        removed,
        added,
        changed,
        near,
        enclosing,
        /// BM25 of the parts of words.
        parts,
        parts_first,
        parts_part,
        words_first,
        words_part,
        /// Its best passage.
        passage,
        passage_first,
        passage_part,
        /// One by the number of files that have the rarest word of a role.
        rare_removed,
        rare_added,
        rare_changed,
        rare_near,
        rare_enclosing,
        /// The same of names that changed lines declare.
        rare_declared,
        /// It declares words of changed lines.
        declares,
        declares_edited,
        /// One by the number of files that declare it.
        declares_alone,
        /// It uses names that changed lines declare.
        uses_declared,
        /// A given file imports it: by the root of how many it imports.
        imported,
        /// It imports a given file: by the root of how many of those that lead do.
        importing,
        /// A line of a given file that imports something names it; a line of it a given file. In any language.
        imported_word,
        importing_word,
        same_folder,
        /// How near its folder is to one of a given file.
        folder,
        /// How much its path has in common with that of a given file.
        path,
        path_first,
        /// A test and what it tests.
        pair,
        is_test,
        /// A test while no given file is one.
        is_missing_test,
        same_language,
        /// How often and how recently it changed.
        changes,
        changes_first,
        latest,
        size,
        /// `together` and words in one.
        together_and_words,
        /// How near its nearest piece is to the change, in what vectors say it means: from 0 to 1; 0 without them.
        meaning,
        meaning_first,
    }
);

factors!(
    /// What speaks for a passage, given that its file is right.
    PassageFactors {
        /// Words of the query that stand in it, by role.
        removed,
        added,
        changed,
        near,
        enclosing,
        parts,
        /// The line that is most like one that was taken away, and like one around changes.
        like_removed,
        like_near,
        /// How many lines are.
        likes_removed,
        /// How many lines have words of a role.
        lines_removed,
        lines_added,
        lines_changed,
        rare_removed,
        rare_added,
        rare_changed,
        /// It declares words of changed lines, or the names around them.
        declares,
        declares_enclosing,
        /// It stands in something of a name that is looked for.
        inside,
        has_declaration,
        words_first,
        words_part,
        like_first,
        /// Those of the passages beside it.
        beside_words,
        beside_past,
        /// What commits did to its lines, see [`super::history::LinePast`].
        past,
        past_together,
        past_alike,
        past_latest,
        past_first,
        past_part,
        is_first,
        is_last,
        imports,
        place,
        tokens,
        lines,
        /// As that of files, of the piece that it is of.
        meaning,
    }
);

/// A figure that is 1 or 0.
pub fn to_figure(is_so: bool) -> f32 {
    f32::from(u8::from(is_so))
}
