//! Figures (features) that the ranking weights, by name: figures of files, and figures of passages within a file.
//!
//! - All figures are finite; a figure is 0 where nothing is known.
//! - `assets/retrieval.toml` has a weight for each field name.

/// Defines a struct of `f32` fields that also lists the field names.
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
    /// Figures of a file. A field with the suffix `_first` is 1 / (rank + 2) by that figure; reciprocal ranks combine
    /// signals on different scales. A field with the suffix `_part` is the figure divided by the highest of all files.
    FileFactors {
        /// Probability that the file changes together with the given files, from the commits of each given file; recent
        /// commits count most.
        together,
        /// Highest such probability for a single given file.
        together_most,
        /// Like `together`, but small commits count more.
        together_small,
        /// Fraction of the file's commits that also changed a given file.
        together_back,
        /// Recency weight of the latest common commit.
        together_latest,
        /// Number of common commits.
        together_count,
        together_first,
        /// `together` divided by the highest of all files.
        together_part,
        together_log,
        /// Weight of the file's folder in the common commits.
        together_folder,
        /// Similarity of the task's words to the lines of commits that changed the file.
        alike,
        alike_first,
        /// BM25 score of the words in each role, divided by the total weight of the role.
        removed,
        added,
        changed,
        near,
        enclosing,
        /// BM25 score of the parts of words.
        parts,
        parts_first,
        parts_part,
        words_first,
        words_part,
        /// Score of the file's best passage.
        passage,
        passage_first,
        passage_part,
        /// Inverse document frequency of the rarest matching word in each role: 1 / number of files with the word.
        rare_removed,
        rare_added,
        rare_changed,
        rare_near,
        rare_enclosing,
        /// The same for names that changed lines declare.
        rare_declared,
        /// The file declares words of changed lines.
        declares,
        declares_edited,
        /// Sum of 1 / number of files that declare the name.
        declares_alone,
        /// The file uses names that changed lines declare.
        uses_declared,
        /// A given file imports the file: 1 / square root of the number of its imports.
        imported,
        /// The file imports a given file: 1 / square root of the number of leading files that import it.
        importing,
        /// `imported_word`: an import line of a given file contains the file's name. `importing_word`: an import line
        /// of the file contains the name of a given file. Works in every language.
        imported_word,
        importing_word,
        same_folder,
        /// Proximity of its folder to the folder of a given file.
        folder,
        /// Similarity of its path to the path of a given file.
        path,
        path_first,
        /// The file is the test of a given file, or a given file is its test.
        pair,
        is_test,
        /// The file is a test and no given file is a test.
        is_missing_test,
        same_language,
        /// Frequency and recency of its changes.
        changes,
        changes_first,
        latest,
        size,
        /// Product of `together` and the word figures.
        together_and_words,
        /// Similarity of its nearest chunk to the change by embedding vectors, from 0 to 1; 0 without vectors.
        meaning,
        meaning_first,
    }
);

factors!(
    /// Figures of a passage, under the assumption that its file is relevant.
    PassageFactors {
        /// Total weight of the query words in the passage, by role.
        removed,
        added,
        changed,
        near,
        enclosing,
        parts,
        /// Highest similarity of a line to a removed line, and to a line around changes.
        like_removed,
        like_near,
        /// Sum of the squared similarities of all lines to removed lines.
        likes_removed,
        /// Sum over the lines of the rarity of the rarest query word in each role.
        lines_removed,
        lines_added,
        lines_changed,
        rare_removed,
        rare_added,
        rare_changed,
        /// The passage declares words of changed lines, or names that enclose changes.
        declares,
        declares_enclosing,
        /// The passage is inside a declaration whose name is a query word.
        inside,
        has_declaration,
        words_first,
        words_part,
        like_first,
        /// Same figures of the neighbouring passages.
        beside_words,
        beside_past,
        /// Changes of the passage's lines by earlier commits; see [`super::line_history::LineHistory`].
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
        /// Like [`FileFactors::meaning`], for the chunk that overlaps the passage.
        meaning,
    }
);

/// Converts a condition to 1 or 0.
pub fn to_figure(is_so: bool) -> f32 {
    f32::from(u8::from(is_so))
}
