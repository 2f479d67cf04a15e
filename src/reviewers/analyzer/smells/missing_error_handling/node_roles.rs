//! Roles of syntax nodes that can lose an error, per language.

use super::super::syntax::{KindMap, SmellFieldIds};
use crate::syntax::language::Language;
use crate::syntax::source::KindSet;

/// Role of a node for lost errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorNodeRole {
    None,
    Comment,
    /// `catch`, `except`, `rescue`.
    Handler,
    RescueModifier,
    If,
    Call,
    Statement,
    Assignment,
    Function,
    Command,
    Suppression,
}

impl From<ErrorNodeRole> for u8 {
    fn from(part: ErrorNodeRole) -> u8 {
        part as u8
    }
}

const ALL_ROLES: [ErrorNodeRole; 11] = [
    ErrorNodeRole::None,
    ErrorNodeRole::Comment,
    ErrorNodeRole::Handler,
    ErrorNodeRole::RescueModifier,
    ErrorNodeRole::If,
    ErrorNodeRole::Call,
    ErrorNodeRole::Statement,
    ErrorNodeRole::Assignment,
    ErrorNodeRole::Function,
    ErrorNodeRole::Command,
    ErrorNodeRole::Suppression,
];

/// Roles, kind sets and field ids of one language.
pub struct ErrorNodeRoles {
    map: KindMap,
    blocks: KindSet,
    raises: KindSet,
    members: KindSet,
    functions: KindSet,
    pub fields: SmellFieldIds,
}

impl ErrorNodeRoles {
    pub fn new(language: Language) -> Self {
        Self {
            map: KindMap::new(language, role_table(language)),
            blocks: KindSet::new(language, &["block", "compound_statement", "statement_block", "then"]),
            raises: KindSet::new(language, &["raise_statement"]),
            members: KindSet::new(language, &["member_expression", "field_expression", "selector_expression"]),
            functions: KindSet::new(language, &["arrow_function", "function_expression"]),
            fields: SmellFieldIds::new(language),
        }
    }

    pub fn role(&self, kind: u16) -> ErrorNodeRole {
        ALL_ROLES.get(usize::from(self.map.get(kind))).copied().unwrap_or(ErrorNodeRole::None)
    }

    pub fn is_block(&self, kind: u16) -> bool {
        self.blocks.contains(kind)
    }

    pub fn is_raise(&self, kind: u16) -> bool {
        self.raises.contains(kind)
    }

    pub fn is_member(&self, kind: u16) -> bool {
        self.members.contains(kind)
    }

    /// Returns whether a kind is a function without its own name (JavaScript).
    pub fn is_function_value(&self, kind: u16) -> bool {
        self.functions.contains(kind)
    }
}

type ErrorRoleTable = &'static [(ErrorNodeRole, &'static [&'static str])];

fn role_table(language: Language) -> ErrorRoleTable {
    match language {
        Language::Rust => &[
            (ErrorNodeRole::Comment, &["line_comment", "block_comment"]),
            (ErrorNodeRole::Call, &["call_expression"]),
            (ErrorNodeRole::Statement, &["expression_statement"]),
            (ErrorNodeRole::Assignment, &["let_declaration"]),
            (ErrorNodeRole::Function, &["function_item"]),
        ],
        Language::Python => &[(ErrorNodeRole::Comment, &["comment"]), (ErrorNodeRole::Handler, &["except_clause"])],
        Language::JavaScript | Language::TypeScript | Language::Tsx => &[
            (ErrorNodeRole::Comment, &["comment"]),
            (ErrorNodeRole::Handler, &["catch_clause"]),
            (ErrorNodeRole::Call, &["call_expression"]),
            (ErrorNodeRole::Statement, &["expression_statement"]),
            (ErrorNodeRole::Function, &["function_declaration", "method_definition", "variable_declarator"]),
        ],
        Language::Go => &[
            (ErrorNodeRole::Comment, &["comment"]),
            (ErrorNodeRole::If, &["if_statement"]),
            (ErrorNodeRole::Statement, &["expression_statement"]),
            (ErrorNodeRole::Assignment, &["assignment_statement", "short_var_declaration"]),
            (ErrorNodeRole::Function, &["function_declaration", "method_declaration"]),
        ],
        Language::Java => {
            &[(ErrorNodeRole::Comment, &["line_comment", "block_comment"]), (ErrorNodeRole::Handler, &["catch_clause"])]
        }
        Language::C | Language::Cpp => &[
            (ErrorNodeRole::Comment, &["comment"]),
            (ErrorNodeRole::Handler, &["catch_clause"]),
            (ErrorNodeRole::Statement, &["expression_statement"]),
            (ErrorNodeRole::Assignment, &["init_declarator", "assignment_expression"]),
        ],
        Language::CSharp => &[(ErrorNodeRole::Comment, &["comment"]), (ErrorNodeRole::Handler, &["catch_clause"])],
        Language::Ruby => &[
            (ErrorNodeRole::Comment, &["comment"]),
            (ErrorNodeRole::Handler, &["rescue"]),
            (ErrorNodeRole::RescueModifier, &["rescue_modifier"]),
        ],
        Language::Php => &[
            (ErrorNodeRole::Comment, &["comment"]),
            (ErrorNodeRole::Handler, &["catch_clause"]),
            (ErrorNodeRole::Statement, &["expression_statement"]),
            (ErrorNodeRole::Suppression, &["error_suppression_expression"]),
        ],
        Language::Bash => &[(ErrorNodeRole::Comment, &["comment"]), (ErrorNodeRole::Command, &["command"])],
    }
}
