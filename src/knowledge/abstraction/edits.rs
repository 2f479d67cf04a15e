//! From an edit of a file to pairs of forms, from the smallest site that changed up to the statement, at each detail.

use super::classify::classify;
use super::heads::is_head;
use super::kinds::{BLOCK, HEAD, STATEMENT};
use super::marks::Marks;
use super::pieces::{Piece, pieces};
use super::sites::is_site;
use super::walk::{Numbers, write};
use super::{Detail, LearnedEdit, is_bracket, says_something};
use crate::domain::LineRange;
use crate::knowledge::form::{Form, Placeholder, Token};
use crate::knowledge::gate;
use crate::knowledge::pattern::EditKind;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::{NodeIndex, Parsers};

/// Larger files are not learned from: nobody wrote them by hand. In bytes, as in [`crate::git`].
const MAX_BYTES: usize = 1 << 20;
/// Sites that are learned of one change: the smallest, and what is around it up to the statement. Own.
const MAX_RUNGS: usize = 3;
/// Nodes between a change and the statement at most.
const MAX_STEPS: usize = 32;

/// What an edit of a file teaches. Nothing where one side does not parse, where nothing but layout, comments, names or what
/// no form tells changed, and where the gate refuses the forms.
pub fn edits(parsers: &mut Parsers, language: Language, before: &[u8], after: &[u8]) -> Vec<LearnedEdit> {
    if before.len().max(after.len()) > MAX_BYTES || before == after {
        return Vec::new();
    }
    let Ok([before, after]) = parsers.parse_pair(language, before, after) else { return Vec::new() };
    let (old, new) = (Marks::new(&before), Marks::new(&after));
    let mut pieces = pieces(&old, &new);
    let at = |piece: &Piece| match *piece {
        Piece::Changed(old, _) | Piece::Wrapped(old, _) | Piece::Gone(old) => old,
        Piece::Before { old, .. } | Piece::After { old, .. } => old,
    };
    pieces.sort_by_key(at);
    let mut learned: Vec<LearnedEdit> = Vec::new();
    let (mut hunk, mut first, mut within) = (0, 0, None);
    for piece in &pieces {
        // Changes in one statement are one change.
        let statement = statement(&old, at(piece));
        if within.replace(statement) != Some(statement) {
            hunk += usize::from(learned.len() > first);
            first = learned.len();
        }
        for pair in pairs(&old, &new, piece) {
            for detail in Detail::ALL {
                let Some((broken, fixed)) = forms(&old, &new, &pair, detail) else { continue };
                let is_known = |edit: &LearnedEdit| edit.broken == broken && edit.fixed == fixed;
                if learned[first..].iter().any(is_known) || !is_worth_learning(&broken, &fixed, pair.change) {
                    continue;
                }
                if gate::admit_pair(language.name(), &broken, &fixed).is_err() {
                    continue;
                }
                let edit = match old.is(pair.old, HEAD) {
                    true => EditKind::WrongDeclaration,
                    false => classify(&broken, &fixed, pair.change),
                };
                let node = &before.nodes[at(piece)];
                let lines = LineRange::new(node.row + 1, node.end_row + 1);
                learned.push(LearnedEdit { broken, fixed, edit, detail, lines, hunk });
            }
        }
    }
    learned
}

/// The statement that a node is or stands in.
fn statement(marks: &Marks<'_, '_>, node: NodeIndex) -> NodeIndex {
    let is_statement = |node: &NodeIndex| marks.is(*node, STATEMENT | HEAD);
    std::iter::successors(Some(node), |&node| marks.parent(node)).take(MAX_STEPS).find(is_statement).unwrap_or(node)
}

/// What happened between the sides of a [`Pair`], as far as the trees say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Something in it.
    Inside,
    Wrapped,
    Added,
    Removed,
}

/// An old site and the new nodes in its place.
struct Pair {
    old: NodeIndex,
    new: Vec<NodeIndex>,
    change: Change,
}

fn pairs(old: &Marks<'_, '_>, new: &Marks<'_, '_>, piece: &Piece) -> Vec<Pair> {
    let is_sound = |pair: &Pair| is_site(old, pair.old) && pair.new.iter().all(|&node| is_site(new, node));
    let pairs = match piece {
        &Piece::Changed(left, right) => return ladder(old, new, left, right),
        &Piece::Wrapped(left, right) => vec![Pair { old: left, new: vec![right], change: Change::Wrapped }],
        Piece::Before { old, new, next } => {
            let new = new.iter().chain([next]).copied().collect();
            vec![Pair { old: *old, new, change: Change::Added }]
        }
        Piece::After { old, previous, new } => {
            let new = [previous].into_iter().chain(new).copied().collect();
            vec![Pair { old: *old, new, change: Change::Added }]
        }
        &Piece::Gone(left) => vec![Pair { old: left, new: Vec::new(), change: Change::Removed }],
    };
    pairs.into_iter().filter(is_sound).collect()
}

/// The sites around a change, the smallest first, up to the first statement.
fn ladder(old: &Marks<'_, '_>, new: &Marks<'_, '_>, mut left: NodeIndex, mut right: NodeIndex) -> Vec<Pair> {
    let mut rungs: Vec<Pair> = Vec::new();
    for step in 0..MAX_STEPS {
        let is_alike = step == 0 || old.source.nodes[left].kind == new.source.nodes[right].kind;
        if !is_alike || old.is(left, BLOCK) {
            break;
        }
        let is_last = old.is(left, STATEMENT | HEAD);
        let are = |is: fn(&Marks<'_, '_>, NodeIndex) -> bool| is(old, left) && is(new, right);
        if are(is_site) || are(is_head) {
            // Of many, the two smallest and the statement.
            if rungs.len() == MAX_RUNGS {
                rungs.pop();
            }
            rungs.push(Pair { old: left, new: vec![right], change: Change::Inside });
        }
        match (old.parent(left), new.parent(right)) {
            (Some(up), Some(other)) if !is_last => (left, right) = (up, other),
            _ => break,
        }
    }
    rungs
}

fn forms(old: &Marks<'_, '_>, new: &Marks<'_, '_>, pair: &Pair, detail: Detail) -> Option<(Form, Form)> {
    let mut numbers = Numbers::default();
    let (mut broken, mut fixed) = (Vec::new(), Vec::new());
    if !write(old, pair.old, detail, &[], &mut numbers, &mut broken) {
        return None;
    }
    // What the broken form does not tell, the fixed one does not tell either.
    let untold = numbers.expressions();
    for &node in &pair.new {
        if !write(new, node, detail, &untold, &mut numbers, &mut fixed) {
            return None;
        }
    }
    Some((Form::new(broken).ok()?, Form::new(fixed).ok()?))
}

/// Whether the two differ in something that they tell: not only in which expression, block or arguments are meant, nor in a
/// name or a literal that is another one now, and neither of which stands elsewhere in the forms. Where nothing stays of
/// what changed inside, code was replaced and no mistake mended.
fn is_worth_learning(broken: &Form, fixed: &Form, change: Change) -> bool {
    let (old, new) = (broken.tokens(), fixed.tokens());
    let is_untold = |before: &Token, after: &Token| match (before, after) {
        (Token::Hole { kind, .. }, Token::Hole { kind: other, .. }) if kind == other => {
            matches!(kind, Placeholder::Expression | Placeholder::Body | Placeholder::Args)
                || !old.contains(after) && old.iter().filter(|token| *token == before).count() == 1
        }
        _ => false,
    };
    let is_same = |(before, after): (&Token, &Token)| before == after || is_untold(before, after);
    let stays = |token: &Token| !is_bracket(token) && new.contains(token);
    says_something(broken)
        && (change != Change::Inside || old.iter().any(stays))
        && (old.len() != new.len() || !old.iter().zip(new).all(is_same))
}
