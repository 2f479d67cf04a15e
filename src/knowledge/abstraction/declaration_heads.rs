//! Heads of declarations as sites: an import, a package, a class without its body, a function without its body, a field, an
//! annotation.
//!
//! Invariants: a head's form has no annotations (each is a site of its own) and of blocks BODY only; it stands on the line
//! of its first token.

use super::node_marks::{NodeMark, NodeMarks};
use super::node_roles::{ANNOTATION, BLOCK, HEAD};
use crate::knowledge::form::Placeholder;
use crate::reviewers::analyzer::source::NodeIndex;

/// Whether a node declares something and was understood up to its body.
pub(super) fn is_head(marks: &NodeMarks<'_, '_>, node: NodeIndex) -> bool {
    let is_in_error = || marks.parent(node).is_some_and(|parent| marks.source.nodes[parent].is_error());
    marks.has_role(node, HEAD)
        && marks.mark(node) == NodeMark::Descend
        && !is_in_error()
        && marks.children(node).all(|child| marks.has_role(child, BLOCK) || !marks.is_broken(child))
}

/// What stands in a head that is no part of it.
pub(super) enum HeadExclusion {
    Skipped,
    Folded(Placeholder),
}

/// What a node in a head stands for there, where that differs from what it is elsewhere.
pub(super) fn classify_head_child(marks: &NodeMarks<'_, '_>, node: NodeIndex) -> Option<HeadExclusion> {
    match marks.roles(node) {
        bits if bits & ANNOTATION != 0 => Some(HeadExclusion::Skipped),
        bits if bits & BLOCK != 0 => Some(HeadExclusion::Folded(Placeholder::Body)),
        _ => None,
    }
}
