//! Examples to fit weights to: the figures of ranked files and passages, with which of them a commit changed.

use super::softmax::ChoiceList;
use crate::context::retrieve::RankedFile;
use crate::context::retrieve::task::GivenFile;
use crate::eval::retrieval::cases::RankedCase;
use crate::eval::retrieval::metrics::changed_lines;

/// Examples of all commits that weights are fitted to.
#[derive(Debug, Default)]
pub struct FitExamples {
    /// A list for each case: its leading files, with equal shares for the hidden ones among them.
    pub files: Vec<ChoiceList>,
    /// A list for each hidden file among the leading ones: its passages, with their shares of the changed lines.
    pub passages: Vec<ChoiceList>,
}

impl FitExamples {
    /// Adds the examples of a case.
    pub fn add_case(&mut self, case: &RankedCase<'_>) {
        let hidden = |file: &RankedFile| case.case.hidden.iter().find(|hidden| hidden.path == file.path);
        let rows: Vec<_> = case
            .ranked
            .iter()
            .map(|file| (file.factors.values(), f64::from(u8::from(hidden(file).is_some()))))
            .collect();
        self.files.extend(ChoiceList::from_rows(&rows));
        let found = case.ranked.iter().filter_map(|file| Some((file, hidden(file)?)));
        self.passages.extend(found.filter_map(|(file, change)| list_passages(file, change)));
    }
}

/// Returns the passages of a file with the number of their lines that a change concerns.
fn list_passages(file: &RankedFile, change: &GivenFile) -> Option<ChoiceList> {
    let changed = changed_lines(change, file.document.line_count());
    let rows: Vec<_> = file
        .passages
        .iter()
        .map(|passage| {
            let lines = passage.range.start + 1..=passage.range.end;
            (passage.factors.values(), changed.iter().filter(|line| lines.contains(line)).count() as f64)
        })
        .collect();
    ChoiceList::from_rows(&rows)
}
