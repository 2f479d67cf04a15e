//! Compares two trees: finds the smallest pairs of nodes that contain a whole change, inserted statements and removed
//! statements. Compares digests of subtrees, so that layout and comments make no difference.
//!
//! - Each pair of nodes is compared once; the size of a single comparison is bounded.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::node_marks::{NodeMark, NodeMarks};
use super::node_roles::{DECLARATION, LIST};
use super::sites::is_site;
use crate::syntax::source::NodeIndex;

/// Maximum number of changes in a file; a file with more changes is not a fix of one thing.
const MAX_TREE_CHANGES: usize = 256;
/// Maximum number of child pairs compared at once. If both lists differ in more than a thousand children, a program
/// made the change.
const MAX_COMPARED_CELLS: usize = 1 << 20;
/// Maximum number of adjacent statements that count as inserted or removed; more are a new feature, not a missing
/// statement.
const MAX_STATEMENTS: usize = 3;
/// Maximum number of statements per side for pairing rewritten statements by common tokens.
const MAX_ALIGNED: usize = 8;

/// Change between two trees. Nodes of the old tree come first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TreeChange {
    /// The whole change is inside these two nodes.
    Changed(NodeIndex, NodeIndex),
    /// The new statement contains the old statement, and possibly old statements after it.
    Wrapped(NodeIndex, NodeIndex),
    /// Statements were inserted before an old statement, which is unchanged.
    InsertedBefore { old: NodeIndex, new: Vec<NodeIndex>, next: NodeIndex },
    /// Statements were inserted after the last statement.
    InsertedAfter { old: NodeIndex, previous: NodeIndex, new: Vec<NodeIndex> },
    /// A statement was removed.
    Removed(NodeIndex),
}

/// Finds the changes from `old` to `new`, in no particular order.
pub(super) fn diff_trees(old: &NodeMarks<'_, '_>, new: &NodeMarks<'_, '_>) -> Vec<TreeChange> {
    let mut found = Vec::new();
    let mut open = vec![(0, 0)];
    while let Some((left, right)) = open.pop() {
        if found.len() >= MAX_TREE_CHANGES {
            return Vec::new();
        }
        compare_children(old, new, left, right, &mut open, &mut found);
    }
    found
}

/// Compares the children of two nodes that differ and have the same kind.
fn compare_children(
    old: &NodeMarks<'_, '_>,
    new: &NodeMarks<'_, '_>,
    left: NodeIndex,
    right: NodeIndex,
    open: &mut Vec<(NodeIndex, NodeIndex)>,
    found: &mut Vec<TreeChange>,
) {
    let (olds, news): (Vec<_>, Vec<_>) = (old.children(left).collect(), new.children(right).collect());
    let Some(runs) = find_differing_ranges(old, new, &olds, &news) else { return };
    let is_list = old.has_role(left, LIST) && new.has_role(right, LIST);
    let mut inner = Vec::new();
    for (before, after) in &runs {
        let (gone, come) = (&olds[before.clone()], &news[after.clone()]);
        let is_pairwise =
            gone.len() == come.len() && gone.iter().zip(come).all(|(&gone, &come)| is_comparable(old, new, gone, come));
        match (gone, come) {
            _ if is_pairwise => inner.extend(gone.iter().copied().zip(come.iter().copied())),
            _ if is_list => {
                diff_statement_list(old, new, (&olds, before.clone()), (&news, after.clone()), &mut inner, found)
            }
            (&[gone], &[come]) if runs.len() == 1 && is_site(old, gone) && is_site(new, come) => {
                found.push(TreeChange::Changed(gone, come));
            }
            _ => {
                // The children cannot be matched, so the whole node is the change.
                found.push(TreeChange::Changed(left, right));
                return;
            }
        }
    }
    open.extend(inner);
}

type DifferingRanges = (Range<usize>, Range<usize>);

/// Returns the ranges in which two lists differ; `None` if the comparison is too large.
fn find_differing_ranges(
    old: &NodeMarks<'_, '_>,
    new: &NodeMarks<'_, '_>,
    olds: &[NodeIndex],
    news: &[NodeIndex],
) -> Option<Vec<DifferingRanges>> {
    let left: Vec<u64> = olds.iter().map(|&node| old.subtree_digest(node)).collect();
    let right: Vec<u64> = news.iter().map(|&node| new.subtree_digest(node)).collect();
    let start = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
    let (left, right) = (&left[start..], &right[start..]);
    let same = left.iter().rev().zip(right.iter().rev()).take_while(|(left, right)| left == right).count();
    let (left, right) = (&left[..left.len() - same], &right[..right.len() - same]);
    if left.len().checked_mul(right.len()).is_none_or(|compared| compared > MAX_COMPARED_CELLS) {
        return None;
    }
    let moved = |range: Range<usize>| range.start + start..range.end + start;
    let runs = capture_diff_slices(Algorithm::Myers, left, right).into_iter().filter_map(|op| match op {
        DiffOp::Equal { .. } => None,
        _ => Some((moved(op.old_range()), moved(op.new_range()))),
    });
    Some(runs.collect())
}

/// Returns true if a change between the nodes can be found in their children: same kind, and neither is written as
/// one token.
fn is_comparable(old: &NodeMarks<'_, '_>, new: &NodeMarks<'_, '_>, left: NodeIndex, right: NodeIndex) -> bool {
    old.source.nodes[left].kind == new.source.nodes[right].kind
        && old.mark(left) == NodeMark::Descend
        && new.mark(right) == NodeMark::Descend
}

/// Compares a differing range in a list of statements that does not match pair by pair.
fn diff_statement_list(
    old: &NodeMarks<'_, '_>,
    new: &NodeMarks<'_, '_>,
    (olds, before): (&[NodeIndex], Range<usize>),
    (news, after): (&[NodeIndex], Range<usize>),
    inner: &mut Vec<(NodeIndex, NodeIndex)>,
    found: &mut Vec<TreeChange>,
) {
    let (gone, come) = (&olds[before.clone()], &news[after.clone()]);
    match (gone, come) {
        ([], added) if is_learnable(new, added) => {
            let next = olds.get(before.end).zip(news.get(after.end)).filter(|(old_next, _)| is_site(old, **old_next));
            let last = before.start.checked_sub(1).zip(after.start.checked_sub(1)).map(|(at, to)| (olds[at], news[to]));
            if let Some((&old, &next)) = next {
                found.push(TreeChange::InsertedBefore { old, new: added.to_vec(), next });
            } else if let Some((node, previous)) = last.filter(|(node, _)| is_site(old, *node)) {
                found.push(TreeChange::InsertedAfter { old: node, previous, new: added.to_vec() });
            }
        }
        (gone, []) if is_learnable(old, gone) => found.extend(gone.iter().map(|&node| TreeChange::Removed(node))),
        (gone, &[come]) if is_wrapped(old, new, gone, come) => found.push(TreeChange::Wrapped(gone[0], come)),
        (gone, come) if gone.len() == come.len() => {
            for (&gone, &come) in gone.iter().zip(come) {
                match is_comparable(old, new, gone, come) {
                    _ if is_wrapped(old, new, &[gone], come) => found.push(TreeChange::Wrapped(gone, come)),
                    true if old.subtree_digest(gone) != new.subtree_digest(come) => inner.push((gone, come)),
                    true => {}
                    false => found.push(TreeChange::Changed(gone, come)),
                }
            }
        }
        (gone, come) if gone.len().max(come.len()) <= MAX_ALIGNED => {
            let mut rest = come;
            for &gone in gone {
                let is_like =
                    |&come: &NodeIndex| is_comparable(old, new, gone, come) && is_similar(old, new, gone, come);
                if let Some(at) = rest.iter().position(is_like) {
                    inner.push((gone, rest[at]));
                    rest = &rest[at + 1..];
                }
            }
        }
        _ => {}
    }
}

/// Returns true if all of these statements are now inside another statement.
fn is_wrapped(old: &NodeMarks<'_, '_>, new: &NodeMarks<'_, '_>, gone: &[NodeIndex], come: NodeIndex) -> bool {
    let is_below = |node: NodeIndex| {
        new.source.descendants(come).any(|other| new.subtree_digest(other) == old.subtree_digest(node))
    };
    (1..=MAX_STATEMENTS).contains(&gone.len())
        && is_site(new, come)
        && gone.iter().all(|&node| is_site(old, node) && is_below(node))
}

/// Returns true if the first tokens of two nodes agree by at least half.
fn is_similar(old: &NodeMarks<'_, '_>, new: &NodeMarks<'_, '_>, left: NodeIndex, right: NodeIndex) -> bool {
    const MAX_COMPARED_LEAVES: usize = 64;
    let leaves = |marks: &NodeMarks<'_, '_>, node: NodeIndex| -> Vec<u64> {
        let leaves = marks
            .source
            .descendants(node)
            .filter(|&node| !matches!(marks.mark(node), NodeMark::Descend | NodeMark::Skipped));
        leaves.take(MAX_COMPARED_LEAVES).map(|leaf| marks.subtree_digest(leaf)).collect()
    };
    let (left, mut right) = (leaves(old, left), leaves(new, right));
    let most = left.len().max(right.len());
    let common = left
        .iter()
        .filter(|leaf| right.iter().position(|other| other == *leaf).map(|at| right.swap_remove(at)).is_some());
    2 * common.count() >= most
}

/// Returns true if these are few statements that may be missing or needless.
fn is_learnable(marks: &NodeMarks<'_, '_>, statements: &[NodeIndex]) -> bool {
    (1..=MAX_STATEMENTS).contains(&statements.len())
        && statements.iter().all(|&node| is_site(marks, node) && !marks.has_role(node, DECLARATION))
}
