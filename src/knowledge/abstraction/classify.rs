//! Classifies an edit by its two forms.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::edits::StructuralChange;
use crate::knowledge::form::{Form, FormToken, Placeholder};
use crate::knowledge::pattern::EditKind;

const ERROR_HANDLING: &[&str] =
    &["try", "catch", "except", "rescue", "ensure", "finally", "with", "using", "defer", "recover"];
const CONDITIONALS: &[&str] = &["if", "unless", "elif", "elsif", "while", "until", "for", "assert", "when", "guard"];
const LOGICAL: &[&str] = &["&&", "||", "and", "or"];
const WORD_OPERATORS: &[&str] = &["and", "or", "not", "is", "in", "instanceof", "xor"];
const BRACKETS: &[&str] = &["(", ")", "[", "]", "{", "}", ",", ";", ".", ":", "::", "$"];
const MEMBER_OPERATORS: &[&str] = &["->", "?.", "?->", "=>"];

fn token_text(token: &FormToken) -> &str {
    match token {
        FormToken::Kept(text) => text,
        FormToken::Hole { .. } => "",
    }
}

fn is_operator(token: &FormToken) -> bool {
    let text = token_text(token);
    let is_sign = !text.is_empty() && !text.contains(|c: char| c.is_alphanumeric() || matches!(c, '_' | '#' | '@'));
    WORD_OPERATORS.contains(&text) || is_sign && !BRACKETS.contains(&text) && !MEMBER_OPERATORS.contains(&text)
}

fn is_hole(token: &FormToken, wanted: Placeholder) -> bool {
    matches!(token, FormToken::Hole { kind, .. } if *kind == wanted)
}

/// Returns true if the token is the name of a called function: a function placeholder, or a kept name before a
/// parenthesis.
fn is_callee(tokens: &[FormToken], at: usize) -> bool {
    let is_name = token_text(&tokens[at]).starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_called = tokens.get(at + 1).is_some_and(|next| token_text(next) == "(")
        && !CONDITIONALS.contains(&token_text(&tokens[at]));
    is_hole(&tokens[at], Placeholder::FunctionName) || is_name && is_called
}

/// Returns true if the position is between the parentheses of a call.
fn is_in_arguments(tokens: &[FormToken], at: usize) -> bool {
    let mut open = Vec::new();
    for (index, token) in tokens.iter().enumerate().take(at) {
        match token_text(token) {
            "(" => open.push(index > 0 && is_callee(tokens, index - 1)),
            ")" => {
                open.pop();
            }
            _ => {}
        }
    }
    open.last() == Some(&true)
}

/// Classifies an edit by the difference between its forms.
pub(super) fn classify_edit(broken: &Form, fixed: &Form, change: StructuralChange) -> EditKind {
    let (old, new) = (broken.tokens(), fixed.tokens());
    let ops = capture_diff_slices(Algorithm::Myers, old, new);
    let changed = |op: &&DiffOp| !matches!(op, DiffOp::Equal { .. });
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    for op in ops.iter().filter(changed) {
        gone.extend(op.old_range());
        come.extend(op.new_range());
    }
    let comes = |words: &[&str]| come.iter().any(|&at| words.contains(&token_text(&new[at])));
    let goes = |words: &[&str]| gone.iter().any(|&at| words.contains(&token_text(&old[at])));
    let handles = comes(ERROR_HANDLING);
    match change {
        StructuralChange::Removed => return EditKind::NeedlessStatement,
        StructuralChange::Added | StructuralChange::Wrapped if handles => return EditKind::MissingErrorHandling,
        StructuralChange::Added | StructuralChange::Wrapped if comes(CONDITIONALS) => return EditKind::MissingCheck,
        StructuralChange::Added => return EditKind::MissingStatement,
        StructuralChange::Wrapped | StructuralChange::Inside => {}
    }
    if handles && gone.is_empty() {
        return EditKind::MissingErrorHandling;
    }
    let in_condition = old.first().is_some_and(|first| CONDITIONALS.contains(&token_text(first)));
    if comes(CONDITIONALS) && !goes(CONDITIONALS) || comes(LOGICAL) && !goes(LOGICAL) {
        return EditKind::MissingCheck;
    }
    let are_operators = gone.iter().all(|&at| is_operator(&old[at])) && come.iter().all(|&at| is_operator(&new[at]));
    if are_operators {
        return EditKind::WrongOperator;
    }
    if goes(LOGICAL) {
        return EditKind::WrongCondition;
    }
    let in_arguments = come.first().is_some_and(|&at| is_in_arguments(new, at))
        || gone.first().is_some_and(|&at| is_in_arguments(old, at));
    if gone.is_empty() && in_arguments && comes(&[","]) {
        return EditKind::MissingArgument;
    }
    if gone.iter().any(|&at| is_callee(old, at)) || come.iter().any(|&at| is_callee(new, at)) {
        return if in_condition { EditKind::WrongCondition } else { EditKind::WrongCall };
    }
    let types = |token: &FormToken| is_hole(token, Placeholder::TypeName);
    if gone.iter().any(|&at| types(&old[at])) || come.iter().any(|&at| types(&new[at])) {
        return EditKind::WrongType;
    }
    if in_arguments {
        return EditKind::WrongArgument;
    }
    if in_condition {
        return EditKind::WrongCondition;
    }
    let is_value = |token: &FormToken| {
        matches!(
            token,
            FormToken::Hole {
                kind: Placeholder::Variable | Placeholder::String | Placeholder::Number | Placeholder::Expression,
                ..
            }
        ) || token_text(token).starts_with(|c: char| c.is_alphabetic())
    };
    let has_value = |at: &[usize], tokens: &[FormToken]| at.iter().any(|&at| is_value(&tokens[at]));
    let computes = come.iter().any(|&at| is_operator(&new[at]));
    if has_value(&gone, old) || computes && has_value(&come, new) {
        return EditKind::WrongValue;
    }
    EditKind::Other
}
