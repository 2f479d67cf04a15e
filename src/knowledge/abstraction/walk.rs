//! From a node to its form: the tokens in order, placeholders numbered by their first appearance.

use super::Detail;
use super::heads::{Aside, aside, is_head};
use super::marks::{Mark, Marks};
use super::vocabulary::{digest, mix};
use crate::knowledge::form::{Form, MAX_TOKENS, Placeholder, Token};
use crate::provider::builtin::source::NodeIndex;

/// Which placeholders were given out, for what.
pub(super) struct Numbers {
    seen: [(Placeholder, u64, u16); MAX],
    used: usize,
}

/// Broken and fixed form together.
const MAX: usize = 2 * MAX_TOKENS;

impl Default for Numbers {
    fn default() -> Self {
        Self { seen: [(Placeholder::Variable, 0, 0); MAX], used: 0 }
    }
}

impl Numbers {
    /// The number of a thing among those of its kind, from 1. The caller asks at most [`MAX`] times.
    fn of(&mut self, kind: Placeholder, ident: u64) -> u16 {
        let mut last = 0;
        for &(seen, other, number) in &self.seen[..self.used] {
            if seen == kind {
                if other == ident {
                    return number;
                }
                last = number;
            }
        }
        if self.used < MAX {
            self.seen[self.used] = (kind, ident, last + 1);
            self.used += 1;
        }
        last + 1
    }

    /// The expressions that were given a number.
    pub fn expressions(&self) -> Vec<u64> {
        let seen = self.seen[..self.used].iter();
        seen.filter(|(kind, ..)| *kind == Placeholder::Expression).map(|&(_, ident, _)| ident).collect()
    }

    fn clear(&mut self) {
        self.used = 0;
    }
}

/// One token as the tree has it.
pub(super) enum Seen {
    Kept(super::vocabulary::Kept),
    Hole(Placeholder, u64),
}

/// Calls `each` with the tokens of a node and the node that each stands for, until it says stop. The expressions in
/// `untold` are EXPRESSION wherever they stand.
fn tokens(
    marks: &Marks<'_, '_>,
    site: NodeIndex,
    detail: Detail,
    untold: &[u64],
    each: &mut impl FnMut(Seen, NodeIndex) -> bool,
) -> bool {
    let nodes = &marks.source.nodes;
    let end = nodes[site].end_index as usize;
    let in_head = is_head(marks, site);
    let mut at = site;
    while at < end {
        let after = nodes[at].end_index as usize;
        let aside = if in_head && at != site { aside(marks, at) } else { None };
        let fold = match aside {
            Some(Aside::Skipped) => {
                at = after;
                continue;
            }
            Some(Aside::Folded(kind)) => Some(kind),
            None if untold.contains(&marks.ident(at)) => Some(Placeholder::Expression),
            None if at == site => None,
            None => marks.fold(at, detail),
        };
        let (go_on, next) = match (fold, marks.mark(at)) {
            (Some(Placeholder::Args), _) => (args(marks, at, each), after),
            (Some(kind), _) => (each(Seen::Hole(kind, marks.ident(at)), at), after),
            (None, Mark::Inside) => (true, at + 1),
            (None, Mark::Skipped) => (true, after),
            (None, Mark::Kept(kept)) => (each(Seen::Kept(kept), at), after),
            (None, Mark::KeptTwo(first, second)) => {
                (each(Seen::Kept(first), at) && each(Seen::Kept(second), at), after)
            }
            (None, Mark::Hole(kind)) => (each(Seen::Hole(kind, marks.ident(at)), at), after),
        };
        if !go_on {
            return false;
        }
        at = next;
    }
    true
}

/// Parentheses stay, where there are some.
fn args(marks: &Marks<'_, '_>, node: NodeIndex, each: &mut impl FnMut(Seen, NodeIndex) -> bool) -> bool {
    let hole = Seen::Hole(Placeholder::Args, marks.ident(node));
    let ends = marks.opens_with(node, "(").zip(marks.children(node).last());
    match ends.map(|(open, last)| (open, marks.mark(last))) {
        Some((open, Mark::Kept(close))) => {
            each(Seen::Kept(open), node) && each(hole, node) && each(Seen::Kept(close), node)
        }
        _ => each(hole, node),
    }
}

/// What a form comes to: equal for equal forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest {
    pub digest: u64,
    pub tokens: usize,
    /// The node that the first token stands for.
    pub first: NodeIndex,
    /// The node that the last token before the first BODY stands for: what is said of the site is said up to there.
    pub head: NodeIndex,
}

fn hole_digest(kind: Placeholder, number: u16) -> u64 {
    mix(kind as u64 + 1, u64::from(number))
}

/// The digest of a site's form; `None` when it has no form.
pub(super) fn site_digest(
    marks: &Marks<'_, '_>,
    site: NodeIndex,
    detail: Detail,
    numbers: &mut Numbers,
) -> Option<Digest> {
    numbers.clear();
    let mut found = Digest { digest: 0, tokens: 0, first: site, head: site };
    let mut in_head = true;
    let is_whole = tokens(marks, site, detail, &[], &mut |token, node| {
        if found.tokens == 0 {
            found.first = node;
        }
        found.tokens += 1;
        if found.tokens > MAX_TOKENS {
            return false;
        }
        let token = match token {
            Seen::Kept(kept) => marks.vocabulary.digest(kept),
            Seen::Hole(kind, ident) => {
                in_head &= kind != Placeholder::Body;
                hole_digest(kind, numbers.of(kind, ident))
            }
        };
        if in_head {
            found.head = node;
        }
        found.digest = mix(found.digest, token);
        true
    });
    is_whole.then_some(found)
}

/// The digest of a form: that of every site which has it.
pub fn form_digest(form: &Form) -> u64 {
    form.tokens().iter().fold(0, |all, token| {
        let token = match token {
            Token::Kept(text) => digest(text.as_bytes()),
            Token::Hole { kind, number } => hole_digest(*kind, *number),
        };
        mix(all, token)
    })
}

/// Writes a node's tokens behind those that are there; `false` when they are too many. For `untold` see [`tokens`].
pub(super) fn write(
    marks: &Marks<'_, '_>,
    site: NodeIndex,
    detail: Detail,
    untold: &[u64],
    numbers: &mut Numbers,
    into: &mut Vec<Token>,
) -> bool {
    tokens(marks, site, detail, untold, &mut |token, _| {
        if into.len() == MAX_TOKENS {
            return false;
        }
        into.push(match token {
            Seen::Kept(kept) => Token::Kept(marks.vocabulary.text(kept).into()),
            Seen::Hole(kind, ident) => Token::Hole { kind, number: numbers.of(kind, ident) },
        });
        true
    })
}
