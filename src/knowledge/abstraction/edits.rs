//! From an edit of a file to pairs of forms, from the smallest site that changed up to the statement, at each detail.

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
use crate::reviewers::analyzer::language::Language;
use crate::reviewers::analyzer::source::{NodeIndex, Parsers};

/// Larger files are not learned from: nobody wrote them by hand. In bytes, as in [`crate::git`].
const MAX_BYTES: usize = 1 << 20;
/// Sites that are learned of one change: the smallest, and what is around it up to the statement. Own.
const MAX_SITES_PER_CHANGE: usize = 3;
/// Nodes between a change and the statement at most.
const MAX_ANCESTOR_STEPS: usize = 32;

/// What an edit of a file teaches. Nothing where one side does not parse, where nothing but layout, comments, names or what
/// no form tells changed, and where the gate refuses the forms.
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
        // Changes in one statement are one change.
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

/// The statement that a node is or stands in.
fn enclosing_statement(marks: &NodeMarks<'_, '_>, node: NodeIndex) -> NodeIndex {
    let is_statement = |node: &NodeIndex| marks.has_role(*node, STATEMENT | HEAD);
    std::iter::successors(Some(node), |&node| marks.parent(node))
        .take(MAX_ANCESTOR_STEPS)
        .find(is_statement)
        .unwrap_or(node)
}

/// What happened between the sides of a [`Pair`], as far as the trees say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StructuralChange {
    /// Something in it.
    Inside,
    Wrapped,
    Added,
    Removed,
}

/// An old site and the new nodes in its place.
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

/// The sites around a change, the smallest first, up to the first statement.
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
            // Of many, the two smallest and the statement.
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
    // What the broken form does not tell, the fixed one does not tell either.
    let untold = numbers.expressions();
    for &node in &pair.new {
        if !write_form(new, node, detail, &untold, &mut numbers, &mut fixed) {
            return None;
        }
    }
    Some((Form::new(broken).ok()?, Form::new(fixed).ok()?))
}

/// Whether the two differ in something that they tell: not only in which expression, block or arguments are meant, nor in a
/// name or a literal that is another one now, and neither of which stands elsewhere in the forms. Where nothing stays of
/// what changed inside, code was replaced and no mistake mended.
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
