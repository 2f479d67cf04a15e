//! Finds all occurrences of a set of names in one pass over the leaves of a file.
//!
//! Strings count too, word by word: formats, reflection, `__all__`. Occurrences in comments are marked as such.

use crate::syntax::language::Language;
use crate::syntax::node_roles::{SmellNodeRole, SmellNodeRoles};
use crate::syntax::source::{Node, NodeIndex, ParsedFile};

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// Hasher for keys that are hashes already.
#[derive(Default)]
pub struct NameHasher(u64);

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 << 8) ^ u64::from(byte);
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

fn hash_name(name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in name {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^ hash >> 29
}

/// An occurrence of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameOccurrence {
    /// The node is the name.
    Name(NodeIndex),
    /// A word in a string or in another leaf with text.
    Text(NodeIndex),
    Comment(NodeIndex),
}

impl NameOccurrence {
    pub fn node(self) -> NodeIndex {
        match self {
            Self::Name(node) | Self::Text(node) | Self::Comment(node) => node,
        }
    }
}

/// All occurrences of the requested names, in document order.
#[derive(Default)]
pub struct NameOccurrences {
    ids: HashMap<u64, u32, BuildHasherDefault<NameHasher>>,
    places: Vec<NamePlaces>,
}

/// Occurrences of one name.
#[derive(Default)]
struct NamePlaces {
    all: Vec<NameOccurrence>,
    /// First and last node outside of comments.
    code: Option<(NodeIndex, NodeIndex)>,
    has_comment: bool,
    has_text: bool,
}

impl NamePlaces {
    fn push(&mut self, place: NameOccurrence) {
        self.has_comment |= matches!(place, NameOccurrence::Comment(_));
        self.has_text |= matches!(place, NameOccurrence::Text(_));
        if !matches!(place, NameOccurrence::Comment(_)) {
            let first = self.code.map_or(place.node(), |(first, _)| first);
            self.code = Some((first, place.node()));
        }
        self.all.push(place);
    }
}

impl NameOccurrences {
    /// Requests a name. Must be called before [`NameOccurrences::scan`].
    pub fn request(&mut self, name: &[u8]) {
        let next = self.places.len() as u32;
        self.ids.entry(hash_name(name)).or_insert(next);
        if self.ids.len() > self.places.len() {
            self.places.push(NamePlaces::default());
        }
    }

    /// Scans a file for the requested names.
    pub fn scan(&mut self, source: &ParsedFile<'_>) {
        if self.ids.is_empty() {
            return;
        }
        let roles = SmellNodeRoles::for_language(source.language);
        let mut index = 0;
        while let Some(node) = source.nodes.get(index).filter(|_| source.work().spend(1)) {
            let is_leaf = node.end_index as usize == index + 1;
            if roles.role(node.kind) == SmellNodeRole::Comment {
                self.add_words(source.bytes(node), NameOccurrence::Comment(index));
                index = node.end_index as usize;
                continue;
            }
            if is_leaf && node.is_named() && node.end > node.start {
                let bytes = source.bytes(node);
                if bytes.iter().all(|&byte| is_word_byte(byte) || matches!(byte, b'?' | b'!' | b'@' | b'#' | b'$')) {
                    self.add(bytes, NameOccurrence::Name(index));
                } else {
                    self.add_words(bytes, NameOccurrence::Text(index));
                }
            } else if node.is_error() && is_leaf {
                self.add_words(source.bytes(node), NameOccurrence::Text(index));
            }
            index += 1;
        }
    }

    fn add(&mut self, name: &[u8], place: NameOccurrence) {
        if let Some(&id) = self.ids.get(&hash_name(name))
            && let Some(places) = self.places.get_mut(id as usize)
        {
            places.push(place);
        }
    }

    fn add_words(&mut self, bytes: &[u8], place: NameOccurrence) {
        for word in bytes.split(|&byte| !is_word_byte(byte)).filter(|word| !word.is_empty()) {
            self.add(word, place);
        }
    }

    /// Returns the occurrences of a requested name.
    pub fn occurrences(&self, name: &[u8]) -> &[NameOccurrence] {
        self.places_of(name).map_or(&[], |places| &places.all)
    }

    fn places_of(&self, name: &[u8]) -> Option<&NamePlaces> {
        self.ids.get(&hash_name(name)).and_then(|&id| self.places.get(id as usize))
    }

    /// Returns whether a requested name occurs outside of comments and of a range of nodes.
    pub fn has_code_outside(&self, name: &[u8], range: &Range<NodeIndex>) -> bool {
        let code = self.places_of(name).and_then(|places| places.code);
        code.is_some_and(|(first, last)| first < range.start || last >= range.end)
    }

    /// Returns whether a comment mentions a requested name.
    pub fn is_in_comment(&self, name: &[u8]) -> bool {
        self.places_of(name).is_some_and(|places| places.has_comment)
    }

    /// Returns whether a string or another text mentions a requested name.
    pub fn is_in_text(&self, name: &[u8]) -> bool {
        self.places_of(name).is_some_and(|places| places.has_text)
    }

    /// Returns the occurrences of a requested name in a range of nodes, end exclusive.
    pub fn occurrences_in(&self, name: &[u8], start: NodeIndex, end: NodeIndex) -> &[NameOccurrence] {
        let places = self.occurrences(name);
        let first = places.partition_point(|place| place.node() < start);
        let last = places.partition_point(|place| place.node() < end);
        places.get(first..last).unwrap_or(&[])
    }
}

/// Returns whether a byte may be part of a name.
pub fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns whether the bytes contain a word, and not only as a part of another word.
pub fn has_word(bytes: &[u8], word: &str) -> bool {
    let word = word.as_bytes();
    let is_word = !word.is_empty() && word.iter().all(|&byte| is_word_byte(byte));
    is_word && memchr::memmem::find_iter(bytes, word).any(|start| is_whole_word(bytes, start..start + word.len()))
}

/// Returns whether a part of a text is no part of a longer word.
pub fn is_whole_word(text: &[u8], part: Range<usize>) -> bool {
    let is_in_word = |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(|&byte| is_word_byte(byte));
    !is_in_word(part.start.checked_sub(1)) && !is_in_word(Some(part.end))
}

/// The name in front of another one: `json` of `json.load`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qualifier<'a> {
    /// Empty if no plain name is in front: `f().load`.
    pub name: &'a [u8],
    /// True if the name is itself a member: `a.json.load`.
    pub is_member: bool,
}

/// Returns the name before the dot, the colons or the arrow in front of a node; `None` without such a sign.
pub fn qualifier<'a>(source: &ParsedFile<'a>, node: NodeIndex) -> Option<Qualifier<'a>> {
    let before = &source.text[..source.nodes[node].start as usize];
    let before = before.strip_suffix(b"$").unwrap_or(before);
    let before =
        before.strip_suffix(b"::").or_else(|| before.strip_suffix(b".")).or_else(|| before.strip_suffix(b"->"))?;
    let start = before.iter().rposition(|byte| !is_word_byte(*byte)).map_or(0, |at| at + 1);
    let (before, name) = before.split_at(start);
    let is_member = before.last().is_some_and(|byte| matches!(byte, b'.' | b':' | b'>' | b'?' | b'!' | b')'));
    Some(Qualifier { name, is_member })
}

/// Returns whether an occurrence is a member, so that it cannot be a variable of that name: `x.name`, `name:` in a
/// call.
pub fn is_member(source: &ParsedFile<'_>, index: NodeIndex) -> bool {
    let node = &source.nodes[index];
    let roles = SmellNodeRoles::for_language(source.language);
    let parent = &source.nodes[node.parent as usize];
    roles.role(node.kind) == SmellNodeRole::MemberName
        || roles.names_member(parent.kind, node.field)
        || (source.language == Language::Php
            && !roles.kinds.variable_name.is(parent.kind)
            && roles.kinds.name.is(node.kind))
}

/// Returns whether a name follows its owner: `x.f`, `x::f`.
pub fn is_qualified(source: &ParsedFile<'_>, index: NodeIndex) -> bool {
    let node = &source.nodes[index];
    let roles = SmellNodeRoles::for_language(source.language);
    let owner = node.parent as usize;
    roles.role(source.nodes[owner].kind) == SmellNodeRole::Member && source.children(owner).next() != Some(index)
}

/// Returns whether the name of a function is called: `f(...)`, `x.f(...)`.
pub fn is_called(source: &ParsedFile<'_>, index: NodeIndex) -> bool {
    let roles = SmellNodeRoles::for_language(source.language);
    let fields = &roles.fields;
    let mut node: &Node = &source.nodes[index];
    for _ in 0..2 {
        let parent = &source.nodes[node.parent as usize];
        match roles.role(parent.kind) {
            SmellNodeRole::Call => {
                let f = node.field;
                return f != 0 && (f == fields.function || f == fields.name || f == fields.method);
            }
            SmellNodeRole::Member => node = parent,
            _ => return false,
        }
    }
    false
}

/// Maximum distance of a suppression mark from a node, in bytes.
const MAX_MARK_DISTANCE_BYTES: usize = 400;

/// Returns whether a line around a node has a mark that suppresses warnings, such as `noqa`.
pub fn is_suppressed(source: &ParsedFile<'_>, node: &Node) -> bool {
    let start = node.start as usize;
    // Include the line before the node. In lines without an end, search only near the node.
    let near = start.saturating_sub(MAX_MARK_DISTANCE_BYTES);
    let before = source.text.get(near..start).unwrap_or_default();
    let line = memchr::memrchr(b'\n', before);
    let from = line.and_then(|line| memchr::memrchr(b'\n', &before[..line])).map_or(near, |line| near + line + 1);
    let end = node.end as usize;
    let after = &source.text[end..(end + MAX_MARK_DISTANCE_BYTES).min(source.text.len())];
    let to = end + memchr::memchr(b'\n', after).unwrap_or(after.len());
    // For a long statement, its head is enough.
    let lines = &source.text[from..to.min(start + MAX_MARK_DISTANCE_BYTES).max(start).min(source.text.len())];
    [
        "noqa",
        "nolint",
        "NOLINT",
        "eslint-disable",
        "NOSONAR",
        "pylint:",
        "@ts-",
        "biome-ignore",
        "noinspection",
        "allow(unused",
        "allow(dead_code",
        "expect(dead_code",
        "no-unused",
        "maybe_unused",
        "\"unused\"",
        "(unused)",
        "__unused",
        "@SuppressWarnings",
        "pragma: no cover",
        "rubocop:",
        "shellcheck disable",
        "phpcs:",
    ]
    .iter()
    .any(|mark| memchr::memmem::find(lines, mark.as_bytes()).is_some())
}
