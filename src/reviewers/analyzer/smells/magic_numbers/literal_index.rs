//! Tells for each node what follows it, so that a question about a part of the tree costs no look at its nodes.

use super::super::syntax::is_upper_case;
use super::is_operator;
use super::literal_roles::{LiteralRole, LiteralRoles};
use crate::syntax::source::{Node, NodeIndex, ParsedFile};

/// For each node, the next nodes of certain roles, itself included.
pub(super) struct LiteralIndex {
    variables: Vec<u32>,
    texts: Vec<u32>,
    interpolations: Vec<u32>,
}

impl LiteralIndex {
    /// Builds the index in one pass from the last node to the first.
    pub fn new(source: &ParsedFile<'_>, roles: &LiteralRoles) -> Self {
        let count = source.nodes.len();
        let none = || vec![u32::MAX; count + 1];
        let mut index = Self { variables: none(), texts: none(), interpolations: none() };
        for (at, node) in source.nodes.iter().enumerate().rev() {
            let role = roles.role(node.kind);
            let here = |is_one: bool, next: &[u32], after: usize| if is_one { at as u32 } else { next[after] };
            index.texts[at] = here(role == LiteralRole::Text, &index.texts, at + 1);
            index.interpolations[at] = here(role == LiteralRole::Interpolation, &index.interpolations, at + 1);
            let end = node.end_index as usize;
            let has_code = index.interpolations[at + 1] < node.end_index;
            let is_literal = match role {
                LiteralRole::Number | LiteralRole::Constant => true,
                LiteralRole::Text => !has_code,
                _ => false,
            };
            let is_variable = role == LiteralRole::Interpolation
                || (role == LiteralRole::Text && has_code)
                || (!is_literal && is_variable_name(source, at, node));
            index.variables[at] = here(is_variable, &index.variables, if is_literal { end } else { at + 1 });
        }
        index
    }

    /// Returns the first node from `at` on that makes an expression no constant: a name in lower case or code in a
    /// string. Nodes inside of literals do not count.
    pub fn next_variable(&self, at: NodeIndex) -> NodeIndex {
        self.variables[at] as usize
    }

    /// Returns the first string from `at` on.
    pub fn next_text(&self, at: NodeIndex) -> Option<NodeIndex> {
        Some(self.texts[at] as usize)
    }

    /// Returns the first code in a string from `at` on.
    pub fn next_interpolation(&self, at: NodeIndex) -> NodeIndex {
        self.interpolations[at] as usize
    }
}

/// Returns whether a node is a leaf that stands for a value: no operator, no constant in upper case.
fn is_variable_name(source: &ParsedFile<'_>, at: NodeIndex, node: &Node) -> bool {
    let is_leaf = node.end_index as usize == at + 1;
    node.is_named() && is_leaf && !is_operator(source.bytes(node)) && !is_upper_case(source.text(node))
}
