//! Finds the places in a file that have a form, so that a pattern can be compared with them.

use super::declaration_heads::is_head;
use super::form_writer::{PlaceholderNumbers, SiteDigest, digest_site, write_form};
use super::node_marks::{NodeMark, NodeMarks};
use super::node_roles::{BLOCK, BRACKETS, EXPRESSION, ITEM, STATEMENT};
use super::{AbstractionDetail, MIN_FORM_TOKENS};
use crate::domain::LineRange;
use crate::knowledge::form::Form;
use crate::syntax::source::{NodeIndex, ParsedFile};

/// Kind of a site.
#[cfg(feature = "eval")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeSiteKind {
    /// Statement or expression.
    Code,
    /// Declaration without its body.
    Head,
}

/// Place in a file at one level of detail.
pub struct CodeSite<'m> {
    marks: &'m NodeMarks<'m, 'm>,
    pub node: NodeIndex,
    pub detail: AbstractionDetail,
    /// [`super::digest_form`] of the site's form. A crafted file can contain different forms with equal digests, so a
    /// caller that reports something must compare [`CodeSite::form`].
    pub digest: u64,
    /// Number of tokens in the form.
    pub tokens: usize,
    /// Lines from the first token to the start of the first block.
    pub lines: LineRange,
}

impl CodeSite<'_> {
    pub fn form(&self) -> Form {
        build_form(self.marks, self.node, self.detail).unwrap_or_default()
    }

    #[cfg(feature = "eval")]
    pub fn kind(&self) -> CodeSiteKind {
        if is_site(self.marks, self.node) { CodeSiteKind::Code } else { CodeSiteKind::Head }
    }
}

/// Calls `each` with the sites whose lines overlap `within` (`None` for all), in document order. A site comes once
/// per level of detail at which its form differs.
pub fn visit_sites(source: &ParsedFile<'_>, within: Option<&[LineRange]>, each: &mut dyn FnMut(&CodeSite<'_>)) {
    let marks = NodeMarks::new(source);
    let within = within.map(sort_ranges);
    let is_wanted = |lines: LineRange| within.as_ref().is_none_or(|within| overlaps_any(within, lines));
    let mut numbers = PlaceholderNumbers::default();
    let mut at = 0;
    while at < source.nodes.len() {
        let node = &source.nodes[at];
        let next = at + 1;
        if !is_wanted(LineRange::new(node.row + 1, node.end_row + 1)) || marks.mark(at) != NodeMark::Descend {
            at = node.end_index as usize;
            continue;
        }
        if is_site(&marks, at) || is_head(&marks, at) {
            let mut before = None;
            for detail in AbstractionDetail::ALL {
                let Some(SiteDigest { digest, tokens, first, head }) = digest_site(&marks, at, detail, &mut numbers)
                else {
                    continue;
                };
                let start = source.nodes[first].row + 1;
                let lines = LineRange::new(start, (source.nodes[head].end_row + 1).max(start));
                if tokens >= MIN_FORM_TOKENS && before != Some(digest) && is_wanted(lines) {
                    each(&CodeSite { marks: &marks, node: at, detail, digest, tokens, lines });
                }
                before = Some(digest);
            }
        }
        at = next;
    }
}

/// Sorts ranges by start and drops ranges inside other ranges, so that the ends are sorted, too.
fn sort_ranges(ranges: &[LineRange]) -> Vec<LineRange> {
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    ranges.dedup_by(|next, kept| next.end <= kept.end);
    ranges
}

/// Returns true if any range overlaps these lines. The ranges come from [`sort_ranges`].
fn overlaps_any(ranges: &[LineRange], lines: LineRange) -> bool {
    let at = ranges.partition_point(|range| range.end < lines.start);
    ranges.get(at).is_some_and(|range| range.start <= lines.end)
}

/// Returns true if a node is a statement or expression that the parser understood, including its surroundings.
pub(super) fn is_site(marks: &NodeMarks<'_, '_>, node: NodeIndex) -> bool {
    let bits = marks.roles(node);
    bits & (EXPRESSION | STATEMENT) != 0
        && bits & (BLOCK | BRACKETS | ITEM) == 0
        && marks.mark(node) == NodeMark::Descend
        && marks.is_understood(node)
}

/// Builds the canonical form of a node; `None` if it is too long.
pub(super) fn build_form(marks: &NodeMarks<'_, '_>, node: NodeIndex, detail: AbstractionDetail) -> Option<Form> {
    let mut tokens = Vec::new();
    let is_whole = write_form(marks, node, detail, &[], &mut PlaceholderNumbers::default(), &mut tokens);
    is_whole.then(|| Form::new(tokens).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_in_any_order_are_searched_as_one_by_one(
            ranges in prop::collection::vec((1..40_u32, 0..9_u32), 0..12),
            (start, count) in (1..50_u32, 0..9_u32),
        ) {
            let ranges: Vec<LineRange> = ranges.iter().map(|(start, n)| LineRange::new(*start, start + n)).collect();
            let lines = LineRange::new(start, start + count);
            let expected = ranges.iter().any(|range| range.overlaps(lines));
            prop_assert_eq!(overlaps_any(&sort_ranges(&ranges), lines), expected);
        }
    }
}
