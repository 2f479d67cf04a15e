//! Which syntax nodes can lose an error, by language.

use super::super::syntax::{Fields, KindMap};
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::KindSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
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

impl From<Part> for u8 {
    fn from(part: Part) -> u8 {
        part as u8
    }
}

const ALL: [Part; 11] = [
    Part::None,
    Part::Comment,
    Part::Handler,
    Part::RescueModifier,
    Part::If,
    Part::Call,
    Part::Statement,
    Part::Assignment,
    Part::Function,
    Part::Command,
    Part::Suppression,
];

/// A language's parts and fields.
pub struct Parts {
    map: KindMap,
    blocks: KindSet,
    raises: KindSet,
    members: KindSet,
    functions: KindSet,
    pub fields: Fields,
}

impl Parts {
    pub fn new(language: Language) -> Self {
        Self {
            map: KindMap::new(language, table(language)),
            blocks: KindSet::new(language, &["block", "compound_statement", "statement_block", "then"]),
            raises: KindSet::new(language, &["raise_statement"]),
            members: KindSet::new(language, &["member_expression", "field_expression", "selector_expression"]),
            functions: KindSet::new(language, &["arrow_function", "function_expression"]),
            fields: Fields::new(language),
        }
    }

    pub fn of(&self, kind: u16) -> Part {
        ALL.get(usize::from(self.map.get(kind))).copied().unwrap_or(Part::None)
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

    /// A function without a name of its own (JavaScript).
    pub fn is_function_value(&self, kind: u16) -> bool {
        self.functions.contains(kind)
    }
}

type Table = &'static [(Part, &'static [&'static str])];

fn table(language: Language) -> Table {
    match language {
        Language::Rust => &[
            (Part::Comment, &["line_comment", "block_comment"]),
            (Part::Call, &["call_expression"]),
            (Part::Statement, &["expression_statement"]),
            (Part::Assignment, &["let_declaration"]),
            (Part::Function, &["function_item"]),
        ],
        Language::Python => &[(Part::Comment, &["comment"]), (Part::Handler, &["except_clause"])],
        Language::JavaScript | Language::TypeScript | Language::Tsx => &[
            (Part::Comment, &["comment"]),
            (Part::Handler, &["catch_clause"]),
            (Part::Call, &["call_expression"]),
            (Part::Statement, &["expression_statement"]),
            (Part::Function, &["function_declaration", "method_definition", "variable_declarator"]),
        ],
        Language::Go => &[
            (Part::Comment, &["comment"]),
            (Part::If, &["if_statement"]),
            (Part::Statement, &["expression_statement"]),
            (Part::Assignment, &["assignment_statement", "short_var_declaration"]),
            (Part::Function, &["function_declaration", "method_declaration"]),
        ],
        Language::Java => &[(Part::Comment, &["line_comment", "block_comment"]), (Part::Handler, &["catch_clause"])],
        Language::C | Language::Cpp => &[
            (Part::Comment, &["comment"]),
            (Part::Handler, &["catch_clause"]),
            (Part::Statement, &["expression_statement"]),
            (Part::Assignment, &["init_declarator", "assignment_expression"]),
        ],
        Language::CSharp => &[(Part::Comment, &["comment"]), (Part::Handler, &["catch_clause"])],
        Language::Ruby => {
            &[(Part::Comment, &["comment"]), (Part::Handler, &["rescue"]), (Part::RescueModifier, &["rescue_modifier"])]
        }
        Language::Php => &[
            (Part::Comment, &["comment"]),
            (Part::Handler, &["catch_clause"]),
            (Part::Statement, &["expression_statement"]),
            (Part::Suppression, &["error_suppression_expression"]),
        ],
        Language::Bash => &[(Part::Comment, &["comment"]), (Part::Command, &["command"])],
    }
}
