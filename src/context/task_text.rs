//! Fits the text of a task into a token limit.
//!
//! Invariants: the text holds no secret that [`Mask`] detects. It is cut only if it does not fit, and a note says so.

use super::pack::TokenCounter;
use super::retrieve::unified_diff;
use super::text::find_max_fitting;
use crate::git::ReviewFilter;
use crate::masking::Mask;

/// Masks the text and shortens it to at most `most` tokens. Diffs of generated, vendored and similar files are removed
/// first; then the text is cut between lines, or inside its first line if that is too long.
pub fn fit_task_text(text: &str, most: u32, count: TokenCounter<'_>) -> String {
    let text = Mask::On.mask_text(None, text);
    if count(&text) as u32 <= most {
        return text.into_owned();
    }
    let mut judge = ReviewFilter::without_attributes(u64::MAX);
    let text = unified_diff::replace_file_diffs(&text, &mut |path| {
        let reason = judge.left_out_reason_by_name(path)?;
        Some(format!("(the diff of {path} is left out: {reason})"))
    });
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = |number: usize| match number == lines.len() {
        true => text.clone(),
        false => format!("{}({} more lines of the task)\n", lines[..number].concat(), lines.len() - number),
    };
    let fitting = find_max_fitting(0, lines.len() + 1, |number| count(&first(number)) as u32 <= most);
    if fitting > 0 { first(fitting) } else { truncate_to_tokens(&text, most, count) }
}

/// Returns a beginning of the text with a note, at most `most` tokens. The length is halved until it fits.
fn truncate_to_tokens(text: &str, most: u32, count: TokenCounter<'_>) -> String {
    let mut end = text.len();
    loop {
        end = text.floor_char_boundary(end / 2);
        let beginning = format!("{} … (the rest of the task is left out)\n", text.get(..end).unwrap_or_default());
        if end == 0 || count(&beginning) as u32 <= most {
            return beginning;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[rstest]
    #[case::whole("one\ntwo\n", 100, "one\ntwo\n")]
    #[case::between_lines(
        "one two\nthree four five six seven\neight nine\n",
        8,
        "one two\n(2 more lines of the task)\n"
    )]
    #[case::within_a_line("one two three four five six seven eight nine ten eleven twelve", 13, "one two three")]
    #[case::nothing("one two three", 1, "")]
    fn a_long_task_keeps_its_beginning(#[case] text: &str, #[case] most: u32, #[case] expected: &str) {
        let told = fit_task_text(text, most, &words);
        assert!(told.starts_with(expected), "{told:?}");
        if !expected.is_empty() {
            assert!(words(&told) as u32 <= most, "{told:?}");
        }
    }

    /// A change of a lock file and a change of code.
    const DIFF: &str = "Fix it.\n\ndiff --git a/Cargo.lock b/Cargo.lock\nindex 1..2 100644\n--- a/Cargo.lock\n\
        +++ b/Cargo.lock\n@@ -1,2 +1,2 @@\n-one\n+two\n three\ndiff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n\
        --- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-four\n+five\n\nThat is all there is to say about it today.\n";

    #[test]
    fn of_a_diff_that_does_not_fit_lock_files_go_first() {
        let without = "Fix it.\n\n(the diff of Cargo.lock is left out: lock file)\ndiff --git a/src/a.rs b/src/a.rs\n\
            index 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-four\n+five\n\nThat is all there is to say about it today.\n";
        assert_eq!(fit_task_text(DIFF, words(DIFF) as u32, &words), DIFF);
        assert_eq!(fit_task_text(DIFF, words(without) as u32, &words), without);
        let short = fit_task_text(DIFF, words(without) as u32 - 1, &words);
        assert!(short.contains("+five\n") && short.ends_with("more lines of the task)\n"), "{short}");
    }

    #[test]
    fn secrets_in_it_are_masked_and_code_stays() {
        let text = "log in with ghp_0123456789abcdefghijklmnopqrstuvwxyz\npassword = \"hunter2hunter2\"\n\
            +    token = request.headers[\"x-token\"]\n";
        let told = fit_task_text(text, 100, &words);
        assert!(!told.contains("ghp_") && !told.contains("hunter2"), "{told}");
        assert!(told.contains("request.headers") && told.lines().count() == 3, "{told}");
    }
}
