//! Roles of node kinds for the smells about names and control flow: the section `statements` of each language's file.

use serde::Deserialize;

use crate::syntax::conventions::conventions;
use crate::syntax::definition::PerLanguage;
use crate::syntax::language::Language;
use crate::syntax::role_map::RoleMap;
use crate::syntax::source::{field_id, fields};

/// Role of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SmellNodeRole {
    #[default]
    None,
    Comment,
    Import,
    Function,
    Class,
    /// Declares one name; in some languages through a list of declarators below it.
    Declarator,
    Assignment,
    /// `x += 1`, `x++`.
    Update,
    /// Makes later statements of the same block unreachable.
    Terminator,
    /// Has a condition and branches once.
    Branch,
    Loop,
    Call,
    /// `x.y`.
    Member,
    /// The `y` of `x.y`, if the grammar has a kind for it.
    MemberName,
    /// `x[y]`.
    Index,
    /// Holds statements in order.
    Block,
    /// Reachable even if the statement before it ends the block: declarations, labels, cases.
    Reachable,
}

fields! {
    pub,
    name = "name", alias = "alias", parameters = "parameters", body = "body", left = "left", right = "right",
    pattern = "pattern", value = "value", condition = "condition", declarator = "declarator", function = "function",
    method = "method", attribute = "attribute", field = "field", object = "object", path = "path", kind = "type",
    receiver = "receiver", property = "property", superclass = "superclass", parameter = "parameter",
    operator = "operator",
}

/// Roles, field ids and kind ids of one language.
pub struct SmellNodeRoles {
    grammar: tree_sitter::Language,
    roles: RoleMap<SmellNodeRole>,
    pub fields: Fields,
    pub kinds: Kinds,
    /// Kind of the parent and field of nodes that name a member.
    member_names: Vec<(Ids, u16)>,
}

/// Ids of a kind, at most four: aliases give a kind several ids.
#[derive(Debug, Clone, Copy)]
pub struct Ids([u16; 4]);

impl Ids {
    fn new(language: Language, name: &str) -> Self {
        let grammar = language.grammar();
        let mut ids = [u16::MAX; 4];
        let all = (0..grammar.node_kind_count() as u16)
            .filter(|&id| grammar.node_kind_is_named(id) && grammar.node_kind_for_id(id) == Some(name));
        for (slot, id) in ids.iter_mut().zip(all) {
            *slot = id;
        }
        Self(ids)
    }

    pub fn is(&self, kind: u16) -> bool {
        self.0.contains(&kind)
    }
}

macro_rules! kinds {
    ($($name:ident),+ $(,)?) => {
        /// Kinds that the smells look up by name.
        pub struct Kinds { $(pub $name: Ids),+ }

        impl Kinds {
            fn new(language: Language) -> Self {
                Self { $($name: Ids::new(language, stringify!($name))),+ }
            }
        }
    };
}

kinds! {
    aliased_import, ambient_declaration, arrow_function, asterisk, attribute, block, body_statement, break_statement, call,
    case_statement, class, class_body, class_definition, class_variable, command, declaration, decorated_definition,
    default_parameter, dictionary, dotted_name, export_statement, expression_statement, field_declaration, function_declarator, function_definition, function_expression, global_declaration,
    global_statement, global_variable, identifier, impl_item, import_clause, import_specifier, list,
    local_declaration_statement, local_variable_declaration, method_definition, mod_item,
    mutable_specifier, name, namespace_import, namespace_selectors, namespace_wildcard, object_pattern,
    parenthesized_expression, property_declaration, property_delegate, rest_pattern, scoped_identifier, set,
    shorthand_property_identifier_pattern, simple_identifier, statement_list, statements, static_item,
    trait_item, try_statement, typed_default_parameter, use_as_clause, use_wildcard, variable_declaration,
    variable_name,
}

impl SmellNodeRoles {
    pub fn for_language(language: Language) -> &'static Self {
        static ALL: PerLanguage<SmellNodeRoles> = PerLanguage::new(SmellNodeRoles::new);
        ALL.get(language)
    }

    fn new(language: Language) -> Self {
        Self {
            grammar: language.grammar(),
            roles: RoleMap::from_section(language, "statements"),
            fields: Fields::new(language),
            kinds: Kinds::new(language),
            member_names: conventions(language)
                .member_names
                .iter()
                .map(|[parent, field]| (Ids::new(language, parent), field_id(language, field)))
                .collect(),
        }
    }

    /// Returns whether a node with this field below a parent of this kind names a member.
    pub fn names_member(&self, parent: u16, field: u16) -> bool {
        self.member_names.iter().any(|(kinds, known)| *known == field && kinds.is(parent))
    }

    /// Returns the grammar's name of a kind.
    pub fn kind_name(&self, kind: u16) -> &str {
        self.grammar.node_kind_for_id(kind).unwrap_or("")
    }

    pub fn role(&self, kind: u16) -> SmellNodeRole {
        self.roles.get(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_functions() {
        for language in Language::ALL {
            let roles = SmellNodeRoles::for_language(language);
            let count = language.grammar().node_kind_count() as u16;
            assert!((0..count).any(|kind| roles.role(kind) == SmellNodeRole::Function), "{language:?}");
        }
    }
}
