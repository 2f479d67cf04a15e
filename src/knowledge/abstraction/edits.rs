//! Converts an edit of a file to pairs of forms, from the smallest changed site up to the statement, at each level of
//! detail.

use super::classify::classify_edit;
use super::declaration_heads::is_head;
use super::form_writer::{PlaceholderNumbers, write_form};
use super::node_marks::NodeMarks;
use super::node_roles::{BLOCK, HEAD, STATEMENT};
use super::sites::is_site;
use super::tree_diff::{TreeChange, diff_trees};
use super::{AbstractionDetail, LearnedEdit, is_bracket, is_informative};
use crate::domain::LineRange;
use crate::knowledge::form::{Form, FormToken, Placeholder};
use crate::knowledge::pattern::EditKind;
use crate::knowledge::privacy_gate;
use crate::syntax::language::Language;
use crate::syntax::source::{NodeIndex, Parsers};

/// Maximum file size in bytes, the same as in [`crate::git`]; larger files are not written by hand.
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of sites learned per change: the smallest ones, and the enclosing statement.
const MAX_SITES_PER_CHANGE: usize = 3;
/// Maximum number of nodes between a change and its statement.
const MAX_ANCESTOR_STEPS: usize = 32;

/// Extracts the forms that an edit of a file teaches. Returns nothing if one side does not parse, if only layout,
/// comments, names or unwritten parts changed, or if the gate refuses the forms.
pub fn extract_edits(parsers: &mut Parsers, language: Language, before: &[u8], after: &[u8]) -> Vec<LearnedEdit> {
    if before.len().max(after.len()) > MAX_BYTES || before == after {
        return Vec::new();
    }
    let Ok([before, after]) = parsers.parse_pair(language, before, after) else { return Vec::new() };
    let (old, new) = (NodeMarks::new(&before), NodeMarks::new(&after));
    let mut pieces = diff_trees(&old, &new);
    let at = |piece: &TreeChange| match *piece {
        TreeChange::Changed(old, _) | TreeChange::Wrapped(old, _) | TreeChange::Removed(old) => old,
        TreeChange::InsertedBefore { old, .. } | TreeChange::InsertedAfter { old, .. } => old,
    };
    pieces.sort_by_key(at);
    let mut learned: Vec<LearnedEdit> = Vec::new();
    let (mut hunk, mut first, mut within) = (0, 0, None);
    for piece in &pieces {
        // Differences in one statement are one change.
        let statement = enclosing_statement(&old, at(piece));
        if within.replace(statement) != Some(statement) {
            hunk += usize::from(learned.len() > first);
            first = learned.len();
        }
        for pair in pair_sites(&old, &new, piece) {
            for detail in AbstractionDetail::ALL {
                let Some((broken, fixed)) = build_forms(&old, &new, &pair, detail) else { continue };
                let is_known = |edit: &LearnedEdit| edit.broken == broken && edit.fixed == fixed;
                if learned[first..].iter().any(is_known) || !is_worth_learning(&broken, &fixed, pair.change) {
                    continue;
                }
                if privacy_gate::admit_pair(language.name(), &broken, &fixed).is_err() {
                    continue;
                }
                let edit = match old.has_role(pair.old, HEAD) {
                    true => EditKind::WrongDeclaration,
                    false => classify_edit(&broken, &fixed, pair.change),
                };
                let node = &before.nodes[at(piece)];
                let lines = LineRange::new(node.row + 1, node.end_row + 1);
                learned.push(LearnedEdit { broken, fixed, edit, detail, lines, hunk });
            }
        }
    }
    learned
}

/// Returns the enclosing statement of a node, which may be the node itself.
fn enclosing_statement(marks: &NodeMarks<'_, '_>, node: NodeIndex) -> NodeIndex {
    let is_statement = |node: &NodeIndex| marks.has_role(*node, STATEMENT | HEAD);
    std::iter::successors(Some(node), |&node| marks.parent(node))
        .take(MAX_ANCESTOR_STEPS)
        .find(is_statement)
        .unwrap_or(node)
}

/// Relation between the sides of a [`SitePair`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StructuralChange {
    /// The change is inside the node.
    Inside,
    Wrapped,
    Added,
    Removed,
}

/// Old site and the new nodes in its place.
struct SitePair {
    old: NodeIndex,
    new: Vec<NodeIndex>,
    change: StructuralChange,
}

fn pair_sites(old: &NodeMarks<'_, '_>, new: &NodeMarks<'_, '_>, piece: &TreeChange) -> Vec<SitePair> {
    let is_sound = |pair: &SitePair| is_site(old, pair.old) && pair.new.iter().all(|&node| is_site(new, node));
    let pairs = match piece {
        &TreeChange::Changed(left, right) => return pair_enclosing_sites(old, new, left, right),
        &TreeChange::Wrapped(left, right) => {
            vec![SitePair { old: left, new: vec![right], change: StructuralChange::Wrapped }]
        }
        TreeChange::InsertedBefore { old, new, next } => {
            let new = new.iter().chain([next]).copied().collect();
            vec![SitePair { old: *old, new, change: StructuralChange::Added }]
        }
        TreeChange::InsertedAfter { old, previous, new } => {
            let new = [previous].into_iter().chain(new).copied().collect();
            vec![SitePair { old: *old, new, change: StructuralChange::Added }]
        }
        &TreeChange::Removed(left) => vec![SitePair { old: left, new: Vec::new(), change: StructuralChange::Removed }],
    };
    pairs.into_iter().filter(is_sound).collect()
}

/// Returns the sites around a change, smallest first, up to the first statement.
fn pair_enclosing_sites(
    old: &NodeMarks<'_, '_>,
    new: &NodeMarks<'_, '_>,
    mut left: NodeIndex,
    mut right: NodeIndex,
) -> Vec<SitePair> {
    let mut rungs: Vec<SitePair> = Vec::new();
    for step in 0..MAX_ANCESTOR_STEPS {
        let is_alike = step == 0 || old.source.nodes[left].kind == new.source.nodes[right].kind;
        if !is_alike || old.has_role(left, BLOCK) {
            break;
        }
        let is_last = old.has_role(left, STATEMENT | HEAD);
        let are = |is: fn(&NodeMarks<'_, '_>, NodeIndex) -> bool| is(old, left) && is(new, right);
        if are(is_site) || are(is_head) {
            // If there are many sites, keep the two smallest and the statement.
            if rungs.len() == MAX_SITES_PER_CHANGE {
                rungs.pop();
            }
            rungs.push(SitePair { old: left, new: vec![right], change: StructuralChange::Inside });
        }
        match (old.parent(left), new.parent(right)) {
            (Some(up), Some(other)) if !is_last => (left, right) = (up, other),
            _ => break,
        }
    }
    rungs
}

fn build_forms(
    old: &NodeMarks<'_, '_>,
    new: &NodeMarks<'_, '_>,
    pair: &SitePair,
    detail: AbstractionDetail,
) -> Option<(Form, Form)> {
    let mut numbers = PlaceholderNumbers::default();
    let (mut broken, mut fixed) = (Vec::new(), Vec::new());
    if !write_form(old, pair.old, detail, &[], &mut numbers, &mut broken) {
        return None;
    }
    // An expression that the broken form does not write out is not written out in the fixed form either.
    let untold = numbers.expressions();
    for &node in &pair.new {
        if !write_form(new, node, detail, &untold, &mut numbers, &mut fixed) {
            return None;
        }
    }
    Some((Form::new(broken).ok()?, Form::new(fixed).ok()?))
}

/// Returns true if the forms differ in something that they show. A different unwritten expression, block or argument
/// list is not enough. A changed name or literal that stands nowhere else in the forms is not enough either. If a
/// change inside a site keeps no token, the code was replaced, not corrected.
fn is_worth_learning(broken: &Form, fixed: &Form, change: StructuralChange) -> bool {
    let (old, new) = (broken.tokens(), fixed.tokens());
    let is_untold = |before: &FormToken, after: &FormToken| match (before, after) {
        (FormToken::Hole { kind, .. }, FormToken::Hole { kind: other, .. }) if kind == other => {
            matches!(kind, Placeholder::Expression | Placeholder::Body | Placeholder::Args)
                || !old.contains(after) && old.iter().filter(|token| *token == before).count() == 1
        }
        _ => false,
    };
    let is_same = |(before, after): (&FormToken, &FormToken)| before == after || is_untold(before, after);
    let stays = |token: &FormToken| !is_bracket(token) && new.contains(token);
    is_informative(broken)
        && (change != StructuralChange::Inside || old.iter().any(stays))
        && (old.len() != new.len() || !old.iter().zip(new).all(is_same))
}
