//! Treats the heads of declarations as sites: an import, a package, a class or function without its body, a field, an
//! annotation.
//!
//! - The form of a head has no annotations (each is its own site), and blocks become BODY.
//! - A head is on the line of its first token.

use super::node_marks::{NodeMark, NodeMarks};
use super::node_roles::{ANNOTATION, BLOCK, HEAD};
use crate::knowledge::form::Placeholder;
use crate::syntax::source::NodeIndex;

/// Returns true if a node is a declaration that the parser understood up to its body.
pub(super) fn is_head(marks: &NodeMarks<'_, '_>, node: NodeIndex) -> bool {
    let is_in_error = || marks.parent(node).is_some_and(|parent| marks.source.nodes[parent].is_error());
    marks.has_role(node, HEAD)
        && marks.mark(node) == NodeMark::Descend
        && !is_in_error()
        && marks.children(node).all(|child| marks.has_role(child, BLOCK) || !marks.is_broken(child))
}

/// Node inside a head that is not part of it.
pub(super) enum HeadExclusion {
    Skipped,
    Folded(Placeholder),
}

/// Returns how a node is treated inside a head, if differently from elsewhere.
pub(super) fn classify_head_child(marks: &NodeMarks<'_, '_>, node: NodeIndex) -> Option<HeadExclusion> {
    match marks.roles(node) {
        bits if bits & ANNOTATION != 0 => Some(HeadExclusion::Skipped),
        bits if bits & BLOCK != 0 => Some(HeadExclusion::Folded(Placeholder::Body)),
        _ => None,
    }
}
