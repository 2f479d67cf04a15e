//! From code to forms, by syntax tree: what an edit teaches, and where in a file a form could stand.
//!
//! Invariants: what the parser did not understand, or stands beside such a thing, has no form; equal code has equal forms,
//! and so has code that differs in names, literals, comments and layout only; whatever the file, the work is bounded by its
//! size. What comes out of [`edits`] was held against the [gate](super::gate).
//!
//! `kinds` says what the kinds of nodes are, `vocabulary` which tokens stay, `marks` reads a tree once, `walk` makes forms of
//! it, `sites` names the places that have one, `heads` says which declarations are among them, `places` finds the one of some
//! lines, `pieces` compares two trees, `edits` makes pairs of forms of what differs, `classify` names it.

mod classify;
mod declaration_heads;
mod edits;
mod form_writer;
mod line_forms;
mod node_marks;
mod node_roles;
mod sites;
mod tree_diff;
mod vocabulary;

pub use edits::extract_edits;
pub use form_writer::digest_form;
pub use line_forms::LineForms;
pub use sites::{CodeSite, CodeSiteKind, visit_sites};

use super::form::{Form, FormToken};
use super::pattern::EditKind;
use crate::domain::LineRange;

/// How much of a site its form tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AbstractionDetail {
    /// All but what is long.
    Full,
    /// What stands in an expression is EXPRESSION unless it is a name or a literal, blocks are BODY.
    Outline,
}

impl AbstractionDetail {
    pub const ALL: [Self; 2] = [Self::Full, Self::Outline];
}

/// Tokens of a form at least. Own: less is in every line.
pub const MIN_FORM_TOKENS: usize = 3;

/// What one place of an edit teaches at one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedEdit {
    pub broken: Form,
    /// Empty where code is to go.
    pub fixed: Form,
    pub edit: EditKind,
    pub detail: AbstractionDetail,
    /// Of the old side, counted from 1: where the change is.
    pub lines: LineRange,
    /// Which change of the file it is from, counted from 0. Several sites and levels are learned of one change: they share
    /// it, and count as one edit.
    pub hunk: usize,
}

/// Whether a form is more than brackets around names: it has a word or an operator, or some length.
pub fn is_informative(form: &Form) -> bool {
    /// Own: `FUNCTION_NAME ( VARIABLE , VARIABLE_2 )` and more.
    const LONG: usize = 6;
    let says = |token: &FormToken| matches!(token, FormToken::Kept(_)) && !is_bracket(token);
    let count = form.tokens().len();
    count >= MIN_FORM_TOKENS && (count >= LONG || form.tokens().iter().any(says))
}

/// Whether a token only holds others together.
fn is_bracket(token: &FormToken) -> bool {
    const BRACKETS: &[&str] = &["(", ")", "[", "]", "{", "}", ",", ";", ".", ":", "::", "$", "->"];
    matches!(token, FormToken::Kept(text) if BRACKETS.contains(&&**text))
}

#[cfg(test)]
mod tests;
