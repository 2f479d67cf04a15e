//! What differs between two trees: the smallest pairs of nodes that hold all of a change, statements put in, statements taken
//! out. By the digests of subtrees, so that layout and comments are no change.
//!
//! Invariant: each pair of nodes is compared once; how much is compared at once is bounded.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::node_marks::{NodeMark, NodeMarks};
use super::node_roles::{DECLARATION, LIST};
use super::sites::is_site;
use crate::reviewers::analyzer::source::NodeIndex;

/// Changes of a file at most. Own: what changes a file in more places is no fix of one thing.
const MAX_TREE_CHANGES: usize = 256;
/// Children times children that are compared at once: what differs in a list of more than a thousand on both sides is
/// made by a program.
const MAX_COMPARED_CELLS: usize = 1 << 20;
/// Statements put in or taken out at once that are looked at. Own: more are a new feature and not a missing statement.
const MAX_STATEMENTS: usize = 3;
/// Statements on a side of which some were rewritten and some are new, that are paired by what they have in common.
const MAX_ALIGNED: usize = 8;

/// One change. Nodes of the old tree first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TreeChange {
    /// All of it is below these.
    Changed(NodeIndex, NodeIndex),
    /// The old statements stand now in the new one.
    Wrapped(NodeIndex, NodeIndex),
    /// New statements before an old one, which stands there still.
    InsertedBefore { old: NodeIndex, new: Vec<NodeIndex>, next: NodeIndex },
    /// New statements after the last one.
    InsertedAfter { old: NodeIndex, previous: NodeIndex, new: Vec<NodeIndex> },
    /// A statement is gone.
    Removed(NodeIndex),
}

/// The changes from `old` to `new`, in no order that means something.
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

/// Compares the children of two nodes that differ and are of the same kind.
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
                // Not to be told apart below: the whole of it is the change.
                found.push(TreeChange::Changed(left, right));
                return;
            }
        }
    }
    open.extend(inner);
}

type DifferingRanges = (Range<usize>, Range<usize>);

/// Where two lists differ.
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

/// Whether a change in one of them is told by what is below: of a kind, and not told as one token.
fn is_comparable(old: &NodeMarks<'_, '_>, new: &NodeMarks<'_, '_>, left: NodeIndex, right: NodeIndex) -> bool {
    old.source.nodes[left].kind == new.source.nodes[right].kind
        && old.mark(left) == NodeMark::Descend
        && new.mark(right) == NodeMark::Descend
}

/// A run of a list of statements that is not pair by pair of a kind.
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

/// Whether some statements stand now, all of them, in another one.
fn is_wrapped(old: &NodeMarks<'_, '_>, new: &NodeMarks<'_, '_>, gone: &[NodeIndex], come: NodeIndex) -> bool {
    let is_below = |node: NodeIndex| {
        new.source.descendants(come).any(|other| new.subtree_digest(other) == old.subtree_digest(node))
    };
    (1..=MAX_STATEMENTS).contains(&gone.len())
        && is_site(new, come)
        && gone.iter().all(|&node| is_site(old, node) && is_below(node))
}

/// Whether two nodes have half of their tokens in common, of the first ones.
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

/// Whether these are statements that may be missing or needless, and few.
fn is_learnable(marks: &NodeMarks<'_, '_>, statements: &[NodeIndex]) -> bool {
    (1..=MAX_STATEMENTS).contains(&statements.len())
        && statements.iter().all(|&node| is_site(marks, node) && !marks.has_role(node, DECLARATION))
}
