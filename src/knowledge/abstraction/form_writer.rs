//! Writes the form of a node: its tokens in order, with placeholders numbered by first appearance.

use super::AbstractionDetail;
use super::declaration_heads::{HeadExclusion, classify_head_child, is_head};
use super::node_marks::{NodeMark, NodeMarks};
use super::vocabulary::{hash_fnv1a, mix_digests};
use crate::knowledge::form::{Form, FormToken, MAX_TOKENS, Placeholder};
use crate::syntax::source::NodeIndex;

/// Assigned placeholder numbers, by what they stand for.
pub(super) struct PlaceholderNumbers {
    seen: [(Placeholder, u64, u16); MAX_PLACEHOLDERS],
    used: usize,
}

/// Maximum number of placeholders in a broken and a fixed form together.
const MAX_PLACEHOLDERS: usize = 2 * MAX_TOKENS;

impl Default for PlaceholderNumbers {
    fn default() -> Self {
        Self { seen: [(Placeholder::Variable, 0, 0); MAX_PLACEHOLDERS], used: 0 }
    }
}

impl PlaceholderNumbers {
    /// Returns the number of a thing among those of its kind (1-based). The caller asks for at most
    /// [`MAX_PLACEHOLDERS`] things.
    fn assign(&mut self, kind: Placeholder, ident: u64) -> u16 {
        let mut last = 0;
        for &(seen, other, number) in &self.seen[..self.used] {
            if seen == kind {
                if other == ident {
                    return number;
                }
                last = number;
            }
        }
        if self.used < MAX_PLACEHOLDERS {
            self.seen[self.used] = (kind, ident, last + 1);
            self.used += 1;
        }
        last + 1
    }

    /// Returns the digests of the expressions that have a number.
    pub fn expressions(&self) -> Vec<u64> {
        let seen = self.seen[..self.used].iter();
        seen.filter(|(kind, ..)| *kind == Placeholder::Expression).map(|&(_, ident, _)| ident).collect()
    }

    fn clear(&mut self) {
        self.used = 0;
    }
}

/// Token as found in the tree.
pub(super) enum TreeToken {
    Kept(super::vocabulary::TokenId),
    Hole(Placeholder, u64),
}

/// Calls `each` with the tokens of a node and the node that each token stands for, until `each` returns false.
/// Expressions in `untold` become EXPRESSION everywhere. Returns false if `each` stopped the walk.
fn visit_tokens(
    marks: &NodeMarks<'_, '_>,
    site: NodeIndex,
    detail: AbstractionDetail,
    untold: &[u64],
    each: &mut impl FnMut(TreeToken, NodeIndex) -> bool,
) -> bool {
    let nodes = &marks.source.nodes;
    let end = nodes[site].end_index as usize;
    let in_head = is_head(marks, site);
    let mut at = site;
    while at < end {
        let after = nodes[at].end_index as usize;
        let aside = if in_head && at != site { classify_head_child(marks, at) } else { None };
        let fold = match aside {
            Some(HeadExclusion::Skipped) => {
                at = after;
                continue;
            }
            Some(HeadExclusion::Folded(kind)) => Some(kind),
            None if untold.contains(&marks.subtree_digest(at)) => Some(Placeholder::Expression),
            None if at == site => None,
            None => marks.fold(at, detail),
        };
        let (go_on, next) = match (fold, marks.mark(at)) {
            (Some(Placeholder::Args), _) => (visit_args(marks, at, each), after),
            (Some(kind), _) => (each(TreeToken::Hole(kind, marks.subtree_digest(at)), at), after),
            (None, NodeMark::Descend) => (true, at + 1),
            (None, NodeMark::Skipped) => (true, after),
            (None, NodeMark::Kept(kept)) => (each(TreeToken::Kept(kept), at), after),
            (None, NodeMark::KeptTwo(first, second)) => {
                (each(TreeToken::Kept(first), at) && each(TreeToken::Kept(second), at), after)
            }
            (None, NodeMark::Hole(kind)) => (each(TreeToken::Hole(kind, marks.subtree_digest(at)), at), after),
        };
        if !go_on {
            return false;
        }
        at = next;
    }
    true
}

/// Visits an argument list as ARGS, with its parentheses if it has any.
fn visit_args(marks: &NodeMarks<'_, '_>, node: NodeIndex, each: &mut impl FnMut(TreeToken, NodeIndex) -> bool) -> bool {
    let hole = TreeToken::Hole(Placeholder::Args, marks.subtree_digest(node));
    let ends = marks.opening_token(node, "(").zip(marks.children(node).last());
    match ends.map(|(open, last)| (open, marks.mark(last))) {
        Some((open, NodeMark::Kept(close))) => {
            each(TreeToken::Kept(open), node) && each(hole, node) && each(TreeToken::Kept(close), node)
        }
        _ => each(hole, node),
    }
}

/// Digest of a form; equal forms have equal digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SiteDigest {
    pub digest: u64,
    pub tokens: usize,
    /// Node that the first token stands for.
    pub first: NodeIndex,
    /// Node that the last token before the first BODY stands for; the reported lines of a site end there.
    pub head: NodeIndex,
}

fn digest_hole(kind: Placeholder, number: u16) -> u64 {
    mix_digests(kind as u64 + 1, u64::from(number))
}

/// Returns the digest of a site's form; `None` if the form is too long.
pub(super) fn digest_site(
    marks: &NodeMarks<'_, '_>,
    site: NodeIndex,
    detail: AbstractionDetail,
    numbers: &mut PlaceholderNumbers,
) -> Option<SiteDigest> {
    numbers.clear();
    let mut found = SiteDigest { digest: 0, tokens: 0, first: site, head: site };
    let mut in_head = true;
    let is_whole = visit_tokens(marks, site, detail, &[], &mut |token, node| {
        if found.tokens == 0 {
            found.first = node;
        }
        found.tokens += 1;
        if found.tokens > MAX_TOKENS {
            return false;
        }
        let token = match token {
            TreeToken::Kept(kept) => marks.vocabulary.digest(kept),
            TreeToken::Hole(kind, ident) => {
                in_head &= kind != Placeholder::Body;
                digest_hole(kind, numbers.assign(kind, ident))
            }
        };
        if in_head {
            found.head = node;
        }
        found.digest = mix_digests(found.digest, token);
        true
    });
    is_whole.then_some(found)
}

/// Returns the digest of a form, equal to the digest of every site with this form.
pub fn digest_form(form: &Form) -> u64 {
    form.tokens().iter().fold(0, |all, token| {
        let token = match token {
            FormToken::Kept(text) => hash_fnv1a(text.as_bytes()),
            FormToken::Hole { kind, number } => digest_hole(*kind, *number),
        };
        mix_digests(all, token)
    })
}

/// Appends the tokens of a node to `into`. Returns false if there are too many. See [`visit_tokens`] for `untold`.
pub(super) fn write_form(
    marks: &NodeMarks<'_, '_>,
    site: NodeIndex,
    detail: AbstractionDetail,
    untold: &[u64],
    numbers: &mut PlaceholderNumbers,
    into: &mut Vec<FormToken>,
) -> bool {
    visit_tokens(marks, site, detail, untold, &mut |token, _| {
        if into.len() == MAX_TOKENS {
            return false;
        }
        into.push(match token {
            TreeToken::Kept(kept) => FormToken::Kept(marks.vocabulary.text(kept).into()),
            TreeToken::Hole(kind, ident) => FormToken::Hole { kind, number: numbers.assign(kind, ident) },
        });
        true
    })
}
