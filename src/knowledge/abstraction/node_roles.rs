//! Roles of syntax nodes for learned patterns: the section `patterns` of each language's file.

use crate::syntax::definition::PerLanguage;
use crate::syntax::language::Language;
use crate::syntax::role_map::RoleMap;
use crate::syntax::source::field_id;

pub(super) type NodeRoleBits = u32;

/// Node that is not code and is not descended into.
pub(super) const COMMENT: NodeRoleBits = 1;
/// Node that becomes one STRING, whatever it contains.
pub(super) const STRING: NodeRoleBits = 1 << 1;
/// Node that becomes one NUMBER. A single character is a NUMBER too: code may compare it by value, which is often
/// wrong for strings.
pub(super) const NUMBER: NodeRoleBits = 1 << 2;
/// Expression: may be a site, and may become EXPRESSION inside another node.
pub(super) const EXPRESSION: NodeRoleBits = 1 << 3;
/// Expression that says little by itself: its contents are written as if they stood alone.
pub(super) const THIN: NodeRoleBits = 1 << 4;
/// Statement: a site, and the end of the way up from a change.
pub(super) const STATEMENT: NodeRoleBits = 1 << 5;
/// Block of statements, which may become BODY.
pub(super) const BLOCK: NodeRoleBits = 1 << 6;
/// List of arguments or parameters, which may become ARGS.
pub(super) const ARGS: NodeRoleBits = 1 << 7;
/// Wrapper of one argument or element.
pub(super) const ITEM: NodeRoleBits = 1 << 8;
/// Call; the name in it is a function name.
pub(super) const CALL: NodeRoleBits = 1 << 9;
/// Declaration of a function.
pub(super) const FUNCTION: NodeRoleBits = 1 << 10;
/// Node whose direct names are type names.
pub(super) const TYPE: NodeRoleBits = 1 << 11;
/// Path or member access; its last name is the one that it refers to.
pub(super) const MEMBER: NodeRoleBits = 1 << 12;
/// Node whose children are statements.
pub(super) const LIST: NodeRoleBits = 1 << 13;
/// Declaration or import, which is never a missing or needless statement.
pub(super) const DECLARATION: NodeRoleBits = 1 << 14;
/// Node that is a type name by itself.
pub(super) const TYPE_NAME: NodeRoleBits = 1 << 15;
/// Brackets around an expression, without a form of their own.
pub(super) const BRACKETS: NodeRoleBits = 1 << 16;
/// Declaration whose head is a site.
pub(super) const HEAD: NodeRoleBits = 1 << 17;
/// Head that names a path.
pub(super) const IMPORT: NodeRoleBits = 1 << 19;
/// Annotation before a declaration; a site of its own.
pub(super) const ANNOTATION: NodeRoleBits = 1 << 18;

/// Roles of the section, with their bits.
const ROLE_NAMES: &[(&str, NodeRoleBits)] = &[
    ("comment", COMMENT),
    ("string", STRING),
    ("number", NUMBER),
    ("expression", EXPRESSION),
    ("thin", EXPRESSION | THIN),
    ("statement", STATEMENT),
    ("block", BLOCK),
    ("args", ARGS),
    ("item", ITEM),
    ("call", CALL),
    ("function", FUNCTION),
    ("type", TYPE),
    ("member", MEMBER),
    ("list", LIST),
    ("declaration", DECLARATION),
    ("type_name", TYPE_NAME),
    ("brackets", BRACKETS),
    ("head", HEAD),
    ("annotation", ANNOTATION),
    ("import", IMPORT),
];

/// Ids of the fields that hold names; 0 if the language has no such field.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeFieldIds {
    pub function: u16,
    pub method: u16,
    pub name: u16,
    pub macro_: u16,
    pub declarator: u16,
    pub kind: u16,
    pub return_type: u16,
    pub returns: u16,
    pub result: u16,
    pub trait_: u16,
    pub field: u16,
    pub property: u16,
    pub attribute: u16,
    pub body: u16,
    pub consequence: u16,
    pub alternative: u16,
    pub constructor: u16,
}

/// Roles of node kinds and ids of fields in one language.
pub(super) struct NodeRoles {
    bits: RoleMap<NodeRoleBits>,
    pub fields: NodeFieldIds,
}

impl NodeRoles {
    pub fn for_language(language: Language) -> &'static Self {
        static ALL: PerLanguage<NodeRoles> = PerLanguage::new(NodeRoles::new);
        ALL.get(language)
    }

    fn new(language: Language) -> Self {
        let field = |name| field_id(language, name);
        let fields = NodeFieldIds {
            function: field("function"),
            method: field("method"),
            name: field("name"),
            macro_: field("macro"),
            declarator: field("declarator"),
            kind: field("type"),
            return_type: field("return_type"),
            returns: field("returns"),
            result: field("result"),
            trait_: field("trait"),
            field: field("field"),
            property: field("property"),
            attribute: field("attribute"),
            body: field("body"),
            consequence: field("consequence"),
            alternative: field("alternative"),
            constructor: field("constructor"),
        };
        Self { bits: RoleMap::of_flags(language, "patterns", ROLE_NAMES), fields }
    }

    /// Returns the roles of a node kind; 0 for a kind without a role.
    pub fn roles_of(&self, kind: u16) -> NodeRoleBits {
        self.bits.get(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_statements() {
        for language in Language::ALL {
            let roles = NodeRoles::for_language(language);
            let count = language.grammar().node_kind_count() as u16;
            assert!((0..count).any(|kind| roles.roles_of(kind) & (STATEMENT | LIST) != 0), "{language:?}");
        }
    }
}
