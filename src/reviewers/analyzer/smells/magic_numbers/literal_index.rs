//! Tells for each node what follows it, so that a question about a part of the tree costs no look at its nodes.

use super::super::syntax::is_upper_case;
use super::literal_roles::{LiteralRole, LiteralRoles};
use super::literal_text::is_operator;
use crate::syntax::source::{Node, NodeIndex, ParsedFile};

/// For each node, the next node of a kind, itself included.
pub(super) struct NextNodes(Vec<u32>);

impl NextNodes {
    /// Finds the nodes for which `is_one` returns true, in one pass.
    pub fn new(source: &ParsedFile<'_>, is_one: impl Fn(&Node) -> bool) -> Self {
        let mut next = vec![u32::MAX; source.nodes.len() + 1];
        let mut last = u32::MAX;
        for (at, node) in source.nodes.iter().enumerate().rev() {
            if is_one(node) {
                last = at as u32;
            }
            next[at] = last;
        }
        Self(next)
    }

    /// Returns the first of the nodes from `at` on; a number above all nodes if there is none.
    pub fn from(&self, at: NodeIndex) -> NodeIndex {
        self.0[at] as usize
    }
}

/// For each node, the next nodes that matter to the arguments of a call, itself included.
pub(super) struct LiteralIndex {
    variables: Vec<u32>,
    texts: NextNodes,
}

impl LiteralIndex {
    /// Builds the index in one pass from the last node to the first. `interpolations` are the nodes with code in texts.
    pub fn new(source: &ParsedFile<'_>, roles: &LiteralRoles, interpolations: &NextNodes) -> Self {
        let texts = NextNodes::new(source, |node| roles.role(node.kind) == LiteralRole::Text);
        let mut variables = vec![u32::MAX; source.nodes.len() + 1];
        for (at, node) in source.nodes.iter().enumerate().rev() {
            let role = roles.role(node.kind);
            let end = node.end_index as usize;
            let has_code = interpolations.from(at + 1) < end;
            let is_literal = match role {
                LiteralRole::Number | LiteralRole::Constant => true,
                LiteralRole::Text => !has_code,
                _ => false,
            };
            let is_variable = role == LiteralRole::Interpolation
                || (role == LiteralRole::Text && has_code)
                || (!is_literal && is_variable_name(source, at, node));
            let next = if is_literal { end } else { at + 1 };
            variables[at] = if is_variable { at as u32 } else { variables[next] };
        }
        Self { variables, texts }
    }

    /// Returns the first node from `at` on that makes an expression no constant: a name in lower case or code in a
    /// string. Nodes inside of literals do not count.
    pub fn next_variable(&self, at: NodeIndex) -> NodeIndex {
        self.variables[at] as usize
    }

    /// Returns the first string from `at` on.
    pub fn next_text(&self, at: NodeIndex) -> NodeIndex {
        self.texts.from(at)
    }
}

/// Returns whether a node is a leaf that stands for a value: no operator, no constant in upper case.
fn is_variable_name(source: &ParsedFile<'_>, at: NodeIndex, node: &Node) -> bool {
    let is_leaf = node.end_index as usize == at + 1;
    node.is_named() && is_leaf && {
        let bytes = source.bytes(node);
        !is_operator(bytes) && !is_upper_case(bytes)
    }
}
