//! Meaning of node kinds for the metrics: bit flags per kind id, from the sections `metrics` and `metric_tokens` of each
//! language's file.

use serde::Deserialize;

use super::definition::{self, PerLanguage};
use super::language::Language;
use super::role_map::RoleMap;
#[cfg(feature = "eval")]
use super::source::KindSet;
use super::source::fields;

pub(super) type KindFlags = u64;

/// Function with its own entry and metrics, if it has a body.
pub(super) const FUNCTION: KindFlags = 1;
/// Closure that counts into the enclosing function.
pub(super) const LAMBDA: KindFlags = 1 << 1;
/// Container of methods and fields.
pub(super) const CLASS: KindFlags = 1 << 2;
/// Comment: not code, and its children are skipped.
pub(super) const COMMENT: KindFlags = 1 << 3;
/// String: all of its lines are code, even lines without a leaf node.
pub(super) const STRING: KindFlags = 1 << 4;
/// Decision: one more path through the function (cyclomatic complexity).
pub(super) const DECISION: KindFlags = 1 << 5;
/// Control structure that counts for the nesting depth.
pub(super) const NESTS: KindFlags = 1 << 6;
/// Adds 1 plus the nesting level to cognitive complexity, and opens a nesting level.
pub(super) const STRUCTURAL: KindFlags = 1 << 7;
/// `else`, `elif`: adds 1 to cognitive complexity at any nesting level.
pub(super) const ELSE: KindFlags = 1 << 8;
/// `if`: directly below an `else` it is an `else if`.
pub(super) const IF: KindFlags = 1 << 9;
/// Wrapper of the branch after an `else`.
pub(super) const ELSE_CLAUSE: KindFlags = 1 << 10;
/// Binary expression, possibly a logical one.
pub(super) const BINARY: KindFlags = 1 << 11;
/// `&&`, `||`, `and`, `or`: sequences of them count for cognitive complexity.
pub(super) const LOGICAL: KindFlags = 1 << 12;
/// `break` or `continue`: adds 1 to cognitive complexity if a label follows.
pub(super) const JUMP: KindFlags = 1 << 13;
/// `goto`: adds 1 to cognitive complexity.
pub(super) const GOTO: KindFlags = 1 << 14;
/// Conditional expression: its `?` is a decision.
pub(super) const TERNARY: KindFlags = 1 << 15;
/// `?`: a decision below a [`TERNARY`].
pub(super) const QUESTION: KindFlags = 1 << 16;
/// Parameter or pattern with a default value: its `=` is a decision.
pub(super) const DEFAULTED: KindFlags = 1 << 17;
/// `=`: a decision below a [`DEFAULTED`].
pub(super) const EQUALS: KindFlags = 1 << 18;
/// Declaration of one or several fields of the enclosing class.
pub(super) const FIELD: KindFlags = 1 << 19;
/// Name in a [`FIELD`]: each name is one field.
pub(super) const FIELD_NAME: KindFlags = 1 << 20;
/// Assignment, possibly `self.x = ...`, which creates a field.
pub(super) const ASSIGNMENT: KindFlags = 1 << 21;
/// Attribute that may mark the next item as test code.
pub(super) const ATTRIBUTE: KindFlags = 1 << 22;
/// Call.
pub(super) const CALL: KindFlags = 1 << 23;
/// Node whose own `else` does not count: conditional expressions, `case`.
pub(super) const NO_ELSE: KindFlags = 1 << 24;
/// Rust's `mod`, which may have `#[cfg(test)]`.
pub(super) const MODULE: KindFlags = 1 << 25;
/// Token with text that is not code: a line end.
pub(super) const LAYOUT: KindFlags = 1 << 26;
/// Statement that is only an expression: a string in it is a doc string.
pub(super) const EXPRESSION_STATEMENT: KindFlags = 1 << 27;
/// Child of a parameter list that is not a parameter: the receiver, separators.
pub(super) const NO_PARAMETER: KindFlags = 1 << 28;
/// Parentheses, which do not end a sequence of logical operators.
pub(super) const PARENTHESES: KindFlags = 1 << 29;
/// Block: outside of functions it may be the body of a function that a macro defines.
pub(super) const BLOCK: KindFlags = 1 << 30;

/// Declaration that is a field directly in the body of a class, and a variable elsewhere.
pub(super) const MEMBER_FIELD: KindFlags = 1 << 31;
/// Operator whose text tells what it does: `&&` of Scala.
pub(super) const OPERATOR: KindFlags = 1 << 32;

/// Roles of the sections, with their flags. `if` and `loop` (which includes `match` and `switch`) open a nesting level
/// and count for it.
const FLAG_NAMES: &[(&str, KindFlags)] = &[
    ("function", FUNCTION),
    ("lambda", LAMBDA),
    ("class", CLASS),
    ("module", MODULE),
    ("comment", COMMENT),
    ("string", STRING),
    ("decision", DECISION),
    ("if", NESTS | STRUCTURAL | IF),
    ("loop", NESTS | STRUCTURAL),
    ("nests", NESTS),
    ("structural", STRUCTURAL),
    ("conditional", STRUCTURAL | TERNARY | NO_ELSE),
    ("logical", DECISION | LOGICAL),
    ("question", QUESTION),
    ("equals", EQUALS),
    ("else", ELSE),
    ("else_clause", ELSE_CLAUSE),
    ("no_else", NO_ELSE),
    ("binary", BINARY),
    ("parentheses", PARENTHESES),
    ("jump", JUMP),
    ("goto", GOTO),
    ("defaulted", DEFAULTED),
    ("field", FIELD),
    ("field_name", FIELD_NAME),
    ("member_field", MEMBER_FIELD),
    ("operator", OPERATOR),
    ("assignment", ASSIGNMENT),
    ("attribute", ATTRIBUTE),
    ("call", CALL),
    ("expression_statement", EXPRESSION_STATEMENT),
    ("no_parameter", NO_PARAMETER),
    ("block", BLOCK),
];

/// How functions inside of functions count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FunctionNesting {
    /// Metrics begin at the function's name; inner functions count into the outer one (C, C++, C#).
    Flat,
    /// Metrics begin at the function's name or keyword; inner functions have their own metrics.
    #[default]
    Nested,
}

/// Meaning of the node kinds and fields of one language.
pub(super) struct NodeKinds {
    flags: RoleMap<KindFlags>,
    pub style: FunctionNesting,
    pub fields: Fields,
    /// True if lines that begin with `#` belong to the preprocessor.
    pub preprocessor: bool,
}

fields! {
    pub(super),
    name = "name", parameters = "parameters", parameter = "parameter", body = "body", receiver = "receiver",
    declarator = "declarator", alternative = "alternative", condition = "condition", initializer = "initializer",
    update = "update", increment = "increment", init = "init", left = "left", right = "right", value = "value",
    subject = "subject", pattern = "pattern", kind = "type", key = "key", property = "property", function = "function",
    object = "object", method = "method", resources = "resources", arguments = "arguments",
    accessor = "accessor",
}

impl Fields {
    /// Returns whether a field belongs to the head of a control structure, so that its node is not nested in the
    /// structure.
    pub fn is_head(&self, field: u16) -> bool {
        field != 0
            && [
                self.condition,
                self.initializer,
                self.update,
                self.increment,
                self.init,
                self.left,
                self.right,
                self.value,
                self.subject,
                self.pattern,
                self.kind,
                self.name,
                self.declarator,
                self.resources,
            ]
            .contains(&field)
    }
}

impl NodeKinds {
    pub fn for_language(language: Language) -> &'static Self {
        static ALL: PerLanguage<NodeKinds> = PerLanguage::new(NodeKinds::new);
        ALL.get(language)
    }

    fn new(language: Language) -> Self {
        let head = definition::head(language);
        Self {
            flags: RoleMap::of_flags(language, "metrics", FLAG_NAMES)
                .merge(&RoleMap::of_flags(language, "metric_tokens", FLAG_NAMES))
                .merge(&RoleMap::of_kinds(language, |kind| if kind.trim().is_empty() { LAYOUT } else { 0 })),
            style: head.function_nesting,
            fields: Fields::new(language),
            preprocessor: head.preprocessor,
        }
    }

    pub fn flags(&self, kind: u16) -> KindFlags {
        self.flags.get(kind)
    }
}

/// Returns the kinds of comments as the metrics know them, first lines of scripts included.
#[cfg(feature = "eval")]
pub fn comment_kinds(language: Language) -> KindSet {
    let kinds = NodeKinds::for_language(language);
    KindSet::from_ids(language, |kind| kinds.flags(kind) & COMMENT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_functions() {
        for language in Language::ALL {
            let kinds = NodeKinds::for_language(language);
            let count = language.grammar().node_kind_count() as u16;
            assert!((0..count).any(|kind| kinds.flags(kind) & FUNCTION != 0), "{language:?}");
        }
    }
}
