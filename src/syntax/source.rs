//! Represents a parsed file as a flat array of syntax nodes in document order, so that a smell is a loop and not a tree
//! walk.

mod parser_thread;
mod parsers;
mod preflight;

pub use parsers::Parsers;

use super::field_rules::{self, FieldRules};
use super::language::Language;
use super::work_budget::WorkBudget;

/// Maximum length of a head, a line or another part of a text that a check searches for words, in bytes. Functions may be
/// nested in heads, and the text before a call may be as long as the file: `f(1)(2)(3)`.
pub const MAX_SEARCHED_BYTES: usize = 4_096;

/// Index of a [`Node`] in [`ParsedFile::nodes`].
pub type NodeIndex = usize;

/// A syntax node, named or anonymous. The children of node `i` start at `i + 1`; the next sibling is at `end_index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Kind id of the grammar.
    pub kind: u16,
    /// Field id in the parent; 0 for none.
    pub field: u16,
    flags: u8,
    /// Index of the parent; the root is its own parent.
    pub parent: u32,
    /// One past the last node of its subtree.
    pub end_index: u32,
    /// Start byte in the text.
    pub start: u32,
    /// One past the last byte in the text.
    pub end: u32,
    /// Row of the start, 0-based.
    pub row: u32,
    /// Row of the end, 0-based.
    pub end_row: u32,
}

impl Node {
    const NAMED: u8 = 1;
    const ERROR: u8 = 2;

    /// Returns whether the node is named in the grammar; tokens such as `"&&"` are not.
    pub fn is_named(&self) -> bool {
        self.flags & Self::NAMED != 0
    }

    /// Returns whether the parser could not interpret the text of the node, or inserted it as missing.
    pub fn is_error(&self) -> bool {
        self.flags & Self::ERROR != 0
    }
}

/// A parsed file.
pub struct ParsedFile<'a> {
    /// Path of the file as it was passed to the parser; empty for a text without a file.
    pub path: &'a str,
    /// Language of the grammar.
    pub language: Language,
    /// Content of the file, which may not be UTF-8.
    pub text: &'a [u8],
    /// Nodes in preorder; index 0 is the root.
    pub nodes: Vec<Node>,
    /// Parts of the text that are valid UTF-8, with their start bytes. The check runs once per file: a check per node
    /// takes quadratic time for nested nodes.
    valid: Vec<(usize, &'a str)>,
    /// Budget of the readers of the nodes.
    budget: WorkBudget,
}

impl<'a> ParsedFile<'a> {
    fn new(path: &'a str, language: Language, text: &'a [u8], mut nodes: Vec<Node>) -> Self {
        FieldRules::for_language(language).apply(&mut nodes);
        Self::from_nodes(path, language, text, nodes)
    }

    /// Creates a parsed file from the nodes of an earlier parse of the same text.
    pub(crate) fn from_nodes(path: &'a str, language: Language, text: &'a [u8], nodes: Vec<Node>) -> Self {
        let mut start = 0;
        let stretches = text.utf8_chunks().map(|stretch| {
            let at = start;
            start += stretch.valid().len() + stretch.invalid().len();
            (at, stretch.valid())
        });
        let valid = stretches.filter(|(_, stretch)| !stretch.is_empty()).collect();
        Self { path, language, text, nodes, valid, budget: WorkBudget::unlimited() }
    }

    /// Limits the work of all readers of this file together.
    pub fn limit_work(&mut self, budget: WorkBudget) {
        self.budget = budget;
    }

    /// Returns the budget that the readers of this file share.
    pub fn work(&self) -> &WorkBudget {
        &self.budget
    }

    /// Returns all nodes in order with their indices, as long as the budget lasts. The main loop of a check goes over
    /// them, so that the check ends with the budget.
    pub fn walk(&self) -> impl Iterator<Item = (NodeIndex, &Node)> {
        self.nodes.iter().enumerate().take_while(|_| self.budget.spend(1))
    }

    /// Returns the bytes of a node.
    pub fn bytes(&self, node: &Node) -> &'a [u8] {
        &self.text[node.start as usize..node.end as usize]
    }

    /// Returns the text of a node; empty if it is not UTF-8.
    pub fn text(&self, node: &Node) -> &'a str {
        self.slice_text(node.start as usize, node.end as usize)
    }

    /// Returns about the first `bytes` bytes of a node, cut at a character boundary, for checks that need only its
    /// beginning.
    pub fn text_prefix(&self, node: &Node, bytes: usize) -> &'a str {
        let (start, end) = (node.start as usize, node.end as usize);
        let cut = (start + bytes).min(end);
        let cut = (cut..end).take(3).find(|&at| self.text[at] & 0xc0 != 0x80).unwrap_or(end);
        self.slice_text(start, cut)
    }

    /// Returns the text between two bytes; empty if it is not UTF-8. Costs no look at the text.
    pub fn slice_text(&self, start: usize, end: usize) -> &'a str {
        let after = self.valid.partition_point(|&(at, _)| at <= start);
        let stretch = after.checked_sub(1).and_then(|index| self.valid.get(index));
        stretch.and_then(|&(at, text)| text.get(start - at..end.checked_sub(at)?)).unwrap_or("")
    }

    /// Returns the indices of a node's children, anonymous ones included.
    pub fn children(&self, parent: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        let end = self.nodes[parent].end_index as usize;
        let mut next = parent + 1;
        std::iter::from_fn(move || {
            (next < end && self.budget.spend(1)).then(|| {
                let child = next;
                next = self.nodes[child].end_index as usize;
                child
            })
        })
    }

    /// Returns the previous sibling of a node, anonymous ones included; `None` for a first child. Calls for all nodes
    /// of a file together take as many steps as there are nodes, because each node is on the last edge of only one
    /// sibling.
    pub fn prev_sibling(&self, index: NodeIndex) -> Option<NodeIndex> {
        let parent = self.nodes[index].parent;
        // The node at `index - 1` is the parent, or the last node inside the sibling.
        let mut at = index.checked_sub(1).filter(|&at| at != parent as usize)?;
        while self.nodes[at].parent != parent {
            self.budget.spend(1);
            at = self.nodes[at].parent as usize;
        }
        Some(at)
    }

    /// Returns the indices of all nodes below a node.
    pub fn descendants(&self, parent: NodeIndex) -> std::ops::Range<NodeIndex> {
        parent + 1..self.nodes[parent].end_index as usize
    }

    /// Returns the first child with this field id (see [`field_id`]); `None` for field 0.
    pub fn child_by_field(&self, parent: NodeIndex, field: u16) -> Option<NodeIndex> {
        (field != 0).then(|| self.children(parent).find(|&child| self.nodes[child].field == field))?
    }
}

/// Set of node kinds of one language, built from their names. A lookup tests one bit.
#[derive(Debug, Clone, Default)]
pub struct KindSet(Vec<u64>);

impl KindSet {
    /// Builds the set of the kinds with these names. A kind may have several ids; the set has all of them. Names of
    /// anonymous nodes are written as in the code (`"&&"`).
    pub fn new<S: AsRef<str>>(language: Language, names: &[S]) -> Self {
        let grammar = language.grammar();
        let is_named = |kind: &str| names.iter().any(|name| name.as_ref() == kind);
        Self::from_ids(language, |id| grammar.node_kind_for_id(id).is_some_and(is_named))
    }

    /// Builds the set of the kind ids for which `has` returns true.
    pub fn from_ids(language: Language, has: impl Fn(u16) -> bool) -> Self {
        let count = language.grammar().node_kind_count();
        let mut bits = vec![0u64; count.div_ceil(64)];
        for id in (0..count).filter(|id| has(*id as u16)) {
            bits[id / 64] |= 1 << (id % 64);
        }
        Self(bits)
    }

    /// Returns whether the set has this kind id; false for an id outside of the grammar.
    pub fn contains(&self, kind: u16) -> bool {
        self.0.get(usize::from(kind) / 64).is_some_and(|word| word >> (kind % 64) & 1 == 1)
    }
}

/// Returns the id of a field by its name; 0 if neither the grammar nor the language's file has such a field.
pub fn field_id(language: Language, name: &str) -> u16 {
    let id = language.grammar().field_id_for_name(name).map(|id| id.get());
    id.or_else(|| field_rules::added_field_id(language, name)).unwrap_or(0)
}

/// Returns whether a field comes from the language's file, because the grammar has none of this name.
pub fn is_added_field(language: Language, name: &str) -> bool {
    language.grammar().field_id_for_name(name).is_none() && field_rules::added_field_id(language, name).is_some()
}

/// Defines `Fields`: the ids of a language's fields under short names; 0 for fields that the language lacks.
macro_rules! fields {
    ($visibility:vis, $($name:ident = $text:literal),+ $(,)?) => {
        /// Ids of the fields that this module reads; 0 if the language has no such field.
        #[derive(Debug, Clone, Copy)]
        $visibility struct Fields { $(pub $name: u16),+ }

        impl Fields {
            fn new(language: $crate::syntax::language::Language) -> Self {
                Self { $($name: $crate::syntax::source::field_id(language, $text)),+ }
            }
        }
    };
}
pub(crate) use fields;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grammar_parses_and_flattening_keeps_the_tree() {
        let mut parsers = Parsers::default();
        for language in Language::ALL {
            let source = parsers.parse("x", language, b"x = 1\n").expect("parses");
            let root = &source.nodes[0];
            assert_eq!(root.end_index as usize, source.nodes.len(), "{language:?}");
            for (index, node) in source.nodes.iter().enumerate().skip(1) {
                let parent = &source.nodes[node.parent as usize];
                assert!((node.parent as usize) < index && parent.end_index >= node.end_index, "{language:?}");
                assert!(parent.start <= node.start && node.end <= parent.end, "{language:?}");
            }
        }
    }

    #[test]
    fn siblings_are_found_backwards() {
        let source = Parsers::default().parse("a.c", Language::C, b"{}\n{ f(1, (2)); }\nint x;\n{}\n").expect("parses");
        for parent in 0..source.nodes.len() {
            let children: Vec<NodeIndex> = source.children(parent).collect();
            for (number, &child) in children.iter().enumerate() {
                let before = number.checked_sub(1).map(|before| children[before]);
                assert_eq!(source.prev_sibling(child), before, "{child}");
            }
        }
        assert_eq!(source.prev_sibling(0), None);
    }

    #[test]
    fn text_is_what_is_utf_8_and_starts_end_between_characters() {
        let code = b"a = '\xff\xc3\xa9'; bc = '\xc3\xa9\xc3\xa9';\n";
        let source = Parsers::default().parse("a.js", Language::JavaScript, code).expect("parses");
        for node in &source.nodes {
            let text = std::str::from_utf8(source.bytes(node)).unwrap_or("");
            assert_eq!(source.text(node), text);
            for bytes in 0..8 {
                let start = source.text_prefix(node, bytes);
                if !text.is_empty() {
                    assert!(text.starts_with(start) && start.len() >= bytes.min(text.len()), "{start}");
                }
                assert!(start.len() < bytes + 4, "{start}");
            }
        }
        let empty = Parsers::default().parse("a.js", Language::JavaScript, b"\xff").expect("parses");
        assert_eq!(empty.text(&empty.nodes[0]), "");
    }

    #[test]
    fn children_and_fields() {
        let mut parsers = Parsers::default();
        let source = parsers.parse("a.rs", Language::Rust, b"fn f(a: u8) { g(a) }").expect("parses");
        let functions = KindSet::new(Language::Rust, &["function_item"]);
        let index = (0..source.nodes.len()).find(|&i| functions.contains(source.nodes[i].kind)).expect("a function");
        let name = source.child_by_field(index, field_id(Language::Rust, "name")).expect("a name");
        assert_eq!(source.text(&source.nodes[name]), "f");
    }
}
