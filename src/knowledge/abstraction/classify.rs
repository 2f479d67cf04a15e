//! What an edit does, read off its forms.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::edits::Change;
use crate::knowledge::form::{Form, Placeholder, Token};
use crate::knowledge::pattern::EditKind;

const ERROR_HANDLING: &[&str] =
    &["try", "catch", "except", "rescue", "ensure", "finally", "with", "using", "defer", "recover"];
const CONDITIONALS: &[&str] = &["if", "unless", "elif", "elsif", "while", "until", "for", "assert", "when", "guard"];
const LOGICAL: &[&str] = &["&&", "||", "and", "or"];
const WORD_OPERATORS: &[&str] = &["and", "or", "not", "is", "in", "instanceof", "xor"];
const BRACKETS: &[&str] = &["(", ")", "[", "]", "{", "}", ",", ";", ".", ":", "::", "$"];
const MEMBER_OPERATORS: &[&str] = &["->", "?.", "?->", "=>"];

fn word(token: &Token) -> &str {
    match token {
        Token::Kept(text) => text,
        Token::Hole { .. } => "",
    }
}

fn is_operator(token: &Token) -> bool {
    let text = word(token);
    let is_sign = !text.is_empty() && !text.contains(|c: char| c.is_alphanumeric() || matches!(c, '_' | '#' | '@'));
    WORD_OPERATORS.contains(&text) || is_sign && !BRACKETS.contains(&text) && !MEMBER_OPERATORS.contains(&text)
}

fn is_hole(token: &Token, wanted: Placeholder) -> bool {
    matches!(token, Token::Hole { kind, .. } if *kind == wanted)
}

/// Whether a token is the name of what is called: a function's, or a kept one before a parenthesis.
fn is_callee(tokens: &[Token], at: usize) -> bool {
    let is_name = word(&tokens[at]).starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_called =
        tokens.get(at + 1).is_some_and(|next| word(next) == "(") && !CONDITIONALS.contains(&word(&tokens[at]));
    is_hole(&tokens[at], Placeholder::FunctionName) || is_name && is_called
}

/// Whether a place is between the parentheses of a call.
fn is_in_arguments(tokens: &[Token], at: usize) -> bool {
    let mut open = Vec::new();
    for (index, token) in tokens.iter().enumerate().take(at) {
        match word(token) {
            "(" => open.push(index > 0 && is_callee(tokens, index - 1)),
            ")" => {
                open.pop();
            }
            _ => {}
        }
    }
    open.last() == Some(&true)
}

/// Names an edit by what differs between its forms.
pub(super) fn classify(broken: &Form, fixed: &Form, change: Change) -> EditKind {
    let (old, new) = (broken.tokens(), fixed.tokens());
    let ops = capture_diff_slices(Algorithm::Myers, old, new);
    let changed = |op: &&DiffOp| !matches!(op, DiffOp::Equal { .. });
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    for op in ops.iter().filter(changed) {
        gone.extend(op.old_range());
        come.extend(op.new_range());
    }
    let comes = |words: &[&str]| come.iter().any(|&at| words.contains(&word(&new[at])));
    let goes = |words: &[&str]| gone.iter().any(|&at| words.contains(&word(&old[at])));
    let handles = comes(ERROR_HANDLING);
    match change {
        Change::Removed => return EditKind::NeedlessStatement,
        Change::Added | Change::Wrapped if handles => return EditKind::MissingErrorHandling,
        Change::Added | Change::Wrapped if comes(CONDITIONALS) => return EditKind::MissingCheck,
        Change::Added => return EditKind::MissingStatement,
        Change::Wrapped | Change::Inside => {}
    }
    if handles && gone.is_empty() {
        return EditKind::MissingErrorHandling;
    }
    let in_condition = old.first().is_some_and(|first| CONDITIONALS.contains(&word(first)));
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
    let types = |token: &Token| is_hole(token, Placeholder::TypeName);
    if gone.iter().any(|&at| types(&old[at])) || come.iter().any(|&at| types(&new[at])) {
        return EditKind::WrongType;
    }
    if in_arguments {
        return EditKind::WrongArgument;
    }
    if in_condition {
        return EditKind::WrongCondition;
    }
    let is_value = |token: &Token| {
        matches!(
            token,
            Token::Hole {
                kind: Placeholder::Variable | Placeholder::String | Placeholder::Number | Placeholder::Expression,
                ..
            }
        ) || word(token).starts_with(|c: char| c.is_alphabetic())
    };
    let has_value = |at: &[usize], tokens: &[Token]| at.iter().any(|&at| is_value(&tokens[at]));
    let computes = come.iter().any(|&at| is_operator(&new[at]));
    if has_value(&gone, old) || computes && has_value(&come, new) {
        return EditKind::WrongValue;
    }
    EditKind::Other
}
