//! Converts code to forms by its syntax tree: which forms an edit teaches, and which places of a file have a form.
//!
//! - Code that the parser did not understand, and code next to it, has no form.
//! - Code that differs only in names, literals, comments and layout has equal forms.
//! - The work is bounded by the size of the file.
//! - Forms from [`extract_edits`] have passed the [gate](super::privacy_gate).
//!
//! Modules: `node_roles` maps node kinds to roles, `vocabulary` lists the tokens that stay, `node_marks` reads a tree
//! once, `form_writer` writes forms, `sites` finds the places with a form, `declaration_heads` finds the heads of
//! declarations, `line_forms` finds the form of given lines, `tree_diff` compares two trees, `edits` makes pairs of
//! forms from the differences, `classify` names the edit.

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
pub(crate) use form_writer::digest_form;
pub(crate) use line_forms::LineForms;
#[cfg(feature = "eval")]
pub(crate) use sites::CodeSiteKind;
pub use sites::visit_sites;

use super::form::{Form, FormToken};
use super::pattern::EditKind;
use crate::domain::LineRange;

/// Level of detail of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AbstractionDetail {
    /// Everything is written out, except long parts.
    Full,
    /// Blocks become BODY, and parts of an expression become EXPRESSION unless they are names or literals.
    Outline,
}

impl AbstractionDetail {
    /// All levels, the most detailed first.
    pub const ALL: [Self; 2] = [Self::Full, Self::Outline];
}

/// Minimum number of tokens in a form; shorter forms match almost every line.
pub const MIN_FORM_TOKENS: usize = 3;

/// Pair of forms that one place of an edit teaches at one level of detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedEdit {
    /// Form of the code before the edit.
    pub broken: Form,
    /// Fixed form; empty when the code is to be removed.
    pub fixed: Form,
    /// Kind of edit from the broken to the fixed form.
    pub edit: EditKind,
    /// Level of detail of both forms.
    pub detail: AbstractionDetail,
    /// Lines of the change on the old side (1-based, inclusive).
    pub lines: LineRange,
    /// Index of the change in the file (0-based). A change can teach several sites and levels of detail, which count
    /// as one edit.
    pub hunk: usize,
}

/// Returns true if a form is more than brackets around names: it has a word or an operator, or a certain length.
pub fn is_informative(form: &Form) -> bool {
    /// Minimum length in tokens for a form without words: `FUNCTION_NAME ( VARIABLE , VARIABLE_2 )` has 6.
    const LONG: usize = 6;
    let says = |token: &FormToken| matches!(token, FormToken::Kept(_)) && !is_bracket(token);
    let count = form.tokens().len();
    count >= MIN_FORM_TOKENS && (count >= LONG || form.tokens().iter().any(says))
}

/// Returns true if a token only groups or separates other tokens.
fn is_bracket(token: &FormToken) -> bool {
    const BRACKETS: &[&str] = &["(", ")", "[", "]", "{", "}", ",", ";", ".", ":", "::", "$", "->"];
    matches!(token, FormToken::Kept(text) if BRACKETS.contains(&&**text))
}

#[cfg(test)]
mod tests;
