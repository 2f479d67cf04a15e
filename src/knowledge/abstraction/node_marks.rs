//! Marks each node of a parsed file with its role in a form: kept, replaced by a placeholder, or descended into. The
//! tree is read once, from the last node to the first, so that the children of a node are done before the node.
//!
//! - The work is proportional to the size of the file, whatever it contains.
//! - No text is stored.

use super::AbstractionDetail;
use super::node_roles::{
    ARGS, BLOCK, CALL, COMMENT, EXPRESSION, FUNCTION, HEAD, IMPORT, ITEM, LIST, MEMBER, NUMBER, NodeRoleBits,
    NodeRoles, STATEMENT, STRING, THIN, TYPE, TYPE_NAME,
};
use super::vocabulary::{KeywordTokens, StdlibName, TokenId, TokenVocabulary, hash_fnv1a, mix_digests};
use crate::knowledge::form::Placeholder;
use crate::syntax::source::{NodeIndex, ParsedFile};

/// Maximum number of tokens that are written out at full detail: of an expression inside another one here, and of a
/// value, a block and an argument list below. Longer shapes are hardly ever seen twice.
const MAX_EXPRESSION_TOKENS: u16 = 12;
const MAX_VALUE_TOKENS: u16 = 24;
const MAX_BLOCK_TOKENS: u16 = 12;
const MAX_ARGS_TOKENS: u16 = 20;
/// Maximum number of tokens of an argument list that is written out in outline: three arguments with commas and
/// parentheses.
const MAX_OUTLINE_ARGS_TOKENS: u16 = 8;
/// Maximum length in bytes of a literal whose text is hashed. A longer one is hashed by its children and its length,
/// so that nested strings are not read repeatedly.
const MAX_HASHED_BYTES: u32 = 256;
/// Maximum number of steps up from a name to the node that decides its role; real paths are shorter.
const MAX_ROLE_STEPS: usize = 8;

/// Role of a node in a form, if no enclosing node replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeMark {
    /// The node is replaced by its children.
    Descend,
    /// The node is left out: comments, line ends.
    Skipped,
    Kept(TokenId),
    KeptTwo(TokenId, TokenId),
    Hole(Placeholder),
}

/// Placeholder that replaces a node, by level of detail.
#[derive(Debug, Clone, Copy, Default)]
struct NodeFolds([Option<Placeholder>; AbstractionDetail::ALL.len()]);

/// Marks of a file.
pub(super) struct NodeMarks<'s, 'a> {
    pub source: &'s ParsedFile<'a>,
    pub kinds: &'static NodeRoles,
    pub vocabulary: &'static TokenVocabulary,
    marks: Vec<NodeMark>,
    folds: Vec<NodeFolds>,
    /// Digests of the nodes, equal for code that differs only in layout and comments.
    idents: Vec<u64>,
    /// True for nodes that contain a syntax error.
    broken: Vec<bool>,
    /// For each node, the result of `is_understood`; empty if the file has no syntax error.
    understood: Vec<bool>,
}

impl<'s, 'a> NodeMarks<'s, 'a> {
    pub fn new(source: &'s ParsedFile<'a>) -> Self {
        let (count, language) = (source.nodes.len(), source.language);
        let mut marks = Self {
            source,
            kinds: NodeRoles::for_language(language),
            vocabulary: TokenVocabulary::for_language(language),
            marks: vec![NodeMark::Descend; count],
            folds: vec![NodeFolds::default(); count],
            idents: vec![0; count],
            broken: vec![false; count],
            understood: Vec::new(),
        };
        let mut weights = vec![[0u16; AbstractionDetail::ALL.len()]; count];
        for node in (0..count).rev() {
            marks.mark_node(node, &mut weights);
        }
        if marks.broken.first().is_some_and(|&is_broken| is_broken) {
            for node in 0..count {
                let is_understood = marks.compute_understood(node);
                marks.understood.push(is_understood);
            }
        }
        marks
    }

    /// Returns the roles of a node.
    pub fn roles(&self, node: NodeIndex) -> NodeRoleBits {
        self.kinds.roles_of(self.source.nodes[node].kind)
    }

    /// Returns true if a node has at least one of these roles.
    pub fn has_role(&self, node: NodeIndex, bits: NodeRoleBits) -> bool {
        self.roles(node) & bits != 0
    }

    pub fn mark(&self, node: NodeIndex) -> NodeMark {
        self.marks[node]
    }

    /// Returns the placeholder that replaces a node inside a larger site; `None` if the node is written out.
    pub fn fold(&self, node: NodeIndex, detail: AbstractionDetail) -> Option<Placeholder> {
        self.folds[node].0[detail as usize]
    }

    /// Returns a digest of the node that ignores layout and comments.
    pub fn subtree_digest(&self, node: NodeIndex) -> u64 {
        self.idents[node]
    }

    /// Returns true if the node contains a syntax error.
    pub fn is_broken(&self, node: NodeIndex) -> bool {
        self.broken[node]
    }

    /// Returns true if the parser understood the statement around a node and its neighbors.
    pub fn is_understood(&self, node: NodeIndex) -> bool {
        self.understood.get(node).is_none_or(|&is_understood| is_understood)
    }

    /// Returns the parent; `None` for the root.
    pub fn parent(&self, node: NodeIndex) -> Option<NodeIndex> {
        (node > 0).then(|| self.source.nodes[node].parent as usize)
    }

    /// Returns the children that are code.
    pub fn children(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.source.children(node).filter(|&child| self.marks[child] != NodeMark::Skipped)
    }

    /// Returns the first child that is code if it is the unnamed token `text`.
    pub fn opening_token(&self, node: NodeIndex, text: &str) -> Option<TokenId> {
        match self.marks[self.children(node).next()?] {
            NodeMark::Kept(kept) if self.vocabulary.text(kept) == text => Some(kept),
            _ => None,
        }
    }

    /// Computes [`Self::is_understood`]; the parent's value must be known.
    fn compute_understood(&self, node: NodeIndex) -> bool {
        let Some(parent) = self.parent(node).filter(|_| !self.is_broken(node)) else { return false };
        if !self.has_role(node, STATEMENT) && !self.has_role(parent, LIST | BLOCK) {
            return self.understood[parent];
        }
        let nodes = &self.source.nodes;
        let after = nodes[node].end_index as usize;
        let is_last = after == nodes[parent].end_index as usize;
        let before = self.source.prev_sibling(node);
        !nodes[parent].is_error()
            && (is_last || !self.is_broken(after))
            && before.is_none_or(|before| !self.is_broken(before))
    }

    fn mark_node(&mut self, node: NodeIndex, weights: &mut [[u16; AbstractionDetail::ALL.len()]]) {
        let this = self.source.nodes[node];
        self.broken[node] |= this.is_error();
        if node > 0 && self.broken[node] {
            self.broken[this.parent as usize] = true;
        }
        let bits = self.roles(node);
        let mark = self.compute_mark(node, bits);
        self.marks[node] = mark;
        let is_whole = mark != NodeMark::Descend;
        if is_whole && this.end - this.start <= MAX_HASHED_BYTES || node + 1 == this.end_index as usize {
            self.idents[node] = hash_fnv1a(self.source.bytes(&this));
        } else {
            let seed = mix_digests(u64::from(this.kind), if is_whole { u64::from(this.end - this.start) } else { 0 });
            self.idents[node] = self.children(node).fold(seed, |ident, child| mix_digests(ident, self.idents[child]));
        }
        for detail in AbstractionDetail::ALL {
            let own = match mark {
                NodeMark::Skipped => 0,
                NodeMark::Kept(_) | NodeMark::Hole(_) => 1,
                NodeMark::KeptTwo(..) => 2,
                NodeMark::Descend => {
                    self.children(node).fold(0u16, |sum, child| sum.saturating_add(weights[child][detail as usize]))
                }
            };
            let fold = match mark {
                NodeMark::Descend => self.compute_fold(node, bits, own, detail),
                _ => None,
            };
            self.folds[node].0[detail as usize] = fold;
            weights[node][detail as usize] = if fold.is_some() { 1 } else { own };
        }
    }

    fn compute_mark(&self, node: NodeIndex, bits: NodeRoleBits) -> NodeMark {
        let this = &self.source.nodes[node];
        if bits & COMMENT != 0 || this.start == this.end {
            return NodeMark::Skipped;
        }
        if !this.is_named() {
            // Some unnamed nodes have children, which the grammar's token does not cover.
            return match self.vocabulary.tokens(this.kind) {
                KeywordTokens::None => NodeMark::Skipped,
                KeywordTokens::One(kept) => NodeMark::Kept(kept),
                KeywordTokens::Two(first, second) => NodeMark::KeptTwo(first, second),
            };
        }
        if bits & STRING != 0 {
            return NodeMark::Hole(Placeholder::String);
        }
        if bits & NUMBER != 0 {
            return NodeMark::Hole(Placeholder::Number);
        }
        if node + 1 != this.end_index as usize {
            return NodeMark::Descend;
        }
        let role = if bits & TYPE_NAME != 0 { Placeholder::TypeName } else { self.find_name_role(node) };
        // A longer text is longer than any name of the list.
        let text = if this.end - this.start <= 64 { self.source.text(this) } else { "" };
        let is_kept = |name: &StdlibName| {
            name.everywhere
                || name.called
                    && (role == Placeholder::FunctionName || self.is_last_name(node) && !self.is_imported(node))
                || name.in_paths && self.is_in_path(node)
        };
        self.vocabulary.name(text).filter(is_kept).map_or(NodeMark::Hole(role), |name| NodeMark::Kept(name.kept))
    }

    fn is_in_path(&self, node: NodeIndex) -> bool {
        self.parent(node).is_some_and(|parent| self.has_role(parent, MEMBER | CALL))
    }

    /// Returns true if a name is in the path of an import; nothing is called there.
    fn is_imported(&self, node: NodeIndex) -> bool {
        let up = std::iter::successors(self.parent(node), |&node| self.parent(node));
        up.take(MAX_ROLE_STEPS)
            .find(|&node| !self.has_role(node, MEMBER))
            .is_some_and(|node| self.has_role(node, IMPORT))
    }

    /// Returns true if a name is the last part of a member access.
    fn is_last_name(&self, node: NodeIndex) -> bool {
        self.parent(node).is_some_and(|parent| self.has_role(parent, MEMBER) && self.is_naming_parent(node))
    }

    /// Returns true if a node is the name that its parent, a [`MEMBER`], refers to.
    fn is_naming_parent(&self, node: NodeIndex) -> bool {
        let (fields, field) = (&self.kinds.fields, self.source.nodes[node].field);
        match field {
            // A wrapper without fields: the first child, or the last one of a path.
            0 => {
                let parent = self.source.nodes[node].parent as usize;
                node == parent + 1 || self.source.nodes[node].end_index == self.source.nodes[parent].end_index
            }
            _ => [fields.field, fields.property, fields.attribute, fields.name, fields.function].contains(&field),
        }
    }

    /// Returns the placeholder for a name by its role: function, type or variable.
    fn find_name_role(&self, name: NodeIndex) -> Placeholder {
        let fields = &self.kinds.fields;
        let mut node = name;
        for _ in 0..MAX_ROLE_STEPS {
            let Some(parent) = self.parent(node) else { break };
            let (bits, field) = (self.roles(parent), self.source.nodes[node].field);
            let is_in = |fields: &[u16]| field != 0 && fields.contains(&field);
            if bits & CALL != 0 && is_in(&[fields.function, fields.method, fields.name, fields.macro_])
                || bits & FUNCTION != 0 && is_in(&[fields.name, fields.declarator])
            {
                return Placeholder::FunctionName;
            }
            if is_in(&[
                fields.kind,
                fields.return_type,
                fields.returns,
                fields.result,
                fields.trait_,
                fields.constructor,
            ]) || bits & TYPE != 0 && (field == 0 || is_in(&[fields.name]))
            {
                return Placeholder::TypeName;
            }
            if bits & MEMBER == 0 || !self.is_naming_parent(node) {
                break;
            }
            node = parent;
        }
        Placeholder::Variable
    }

    /// Returns the placeholder that replaces a node with `weight` tokens inside a larger site.
    fn compute_fold(
        &self,
        node: NodeIndex,
        bits: NodeRoleBits,
        weight: u16,
        detail: AbstractionDetail,
    ) -> Option<Placeholder> {
        let outline = detail == AbstractionDetail::Outline;
        let parent = self.parent(node)?;
        let (above, fields, field) = (self.roles(parent), &self.kinds.fields, self.source.nodes[node].field);
        if bits & BLOCK != 0 {
            return (outline || weight > MAX_BLOCK_TOKENS).then_some(Placeholder::Body);
        }
        if bits & STATEMENT != 0 && above & (STATEMENT | FUNCTION) != 0 && field != 0 {
            let is_body = [fields.body, fields.consequence, fields.alternative].contains(&field);
            return (is_body && (outline || weight > MAX_BLOCK_TOKENS)).then_some(Placeholder::Body);
        }
        if bits & ARGS != 0 {
            let most = match outline {
                // In outline, the head of a function shows only whether it has parameters.
                true if above & HEAD != 0 => 2,
                true => MAX_OUTLINE_ARGS_TOKENS,
                false => MAX_ARGS_TOKENS,
            };
            return (weight > most).then_some(Placeholder::Args);
        }
        if bits & EXPRESSION == 0 || bits & ITEM != 0 {
            return None;
        }
        let is_callee = above & CALL != 0 && field != 0 && [fields.function, fields.name].contains(&field);
        let is_inside = above & (ARGS | ITEM) != 0 || above & EXPRESSION != 0 && above & THIN == 0;
        let is_long = match is_inside && !is_callee {
            true => outline || weight > MAX_EXPRESSION_TOKENS,
            false => weight > MAX_VALUE_TOKENS,
        };
        is_long.then_some(Placeholder::Expression)
    }
}
