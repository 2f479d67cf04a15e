//! Roles of syntax nodes for the outline of a file: the section `outline` of each language's file.

use serde::Deserialize;

use crate::syntax::definition::{PerLanguage, kind_groups};
use crate::syntax::language::Language;
use crate::syntax::role_map::RoleMap;
use crate::syntax::source::{KindSet, fields};

/// Role of a node in the outline of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutlineRole {
    /// The node is skipped.
    #[default]
    Other,
    /// Punctuation or a keyword.
    Token,
    /// Contains declarations, but is none.
    Scope,
    /// Like [`OutlineRole::Scope`]; its first line also belongs to the next declaration.
    Condition,
    /// Like [`OutlineRole::Scope`]; its name is the scope of its content.
    Namespace,
    /// Like [`OutlineRole::Scope`], but only inside a test block.
    TestScope,
    /// Belongs to the single declaration that it contains.
    Wrapper,
    /// Belongs to the declaration that follows it, as comments do.
    #[serde(alias = "comment")]
    Leading,
    Function,
    Class,
    Interface,
    Type,
    Constant,
    /// Declares a name, but is not a chunk: a field or a variable.
    Field,
    /// May be a declaration; its content decides.
    Ambiguous,
}

/// Roles and field ids of a language.
pub struct OutlineRoles {
    roles: RoleMap<OutlineRole>,
    /// Leaf nodes that are names.
    pub names: KindSet,
    pub imports: KindSet,
    pub calls: KindSet,
    pub modules: KindSet,
    pub functions: KindSet,
    pub strings: KindSet,
    pub fields: Fields,
}

fields! {
    pub,
    name = "name", body = "body", declarator = "declarator", kind = "type", receiver = "receiver", left = "left",
    right = "right", value = "value", function = "function", method = "method", arguments = "arguments",
    source = "source", superclasses = "superclasses", property = "property",
    binding = "binding", pattern = "pattern", path = "path", module_name = "module_name", argument = "argument",
}

impl OutlineRoles {
    pub fn for_language(language: Language) -> &'static Self {
        static ROLES: PerLanguage<OutlineRoles> = PerLanguage::new(OutlineRoles::new);
        ROLES.get(language)
    }

    fn new(language: Language) -> Self {
        let groups = kind_groups(language);
        Self {
            roles: RoleMap::from_section(language, "outline"),
            names: KindSet::new(language, &[groups.names.as_slice(), &groups.symbols].concat()),
            imports: KindSet::new(language, &groups.imports),
            calls: KindSet::new(language, &groups.calls),
            modules: KindSet::new(language, &groups.file_references),
            functions: KindSet::new(language, &groups.anonymous_functions),
            strings: KindSet::new(language, &groups.plain_strings),
            fields: Fields::new(language),
        }
    }

    /// Returns the role of a node kind id; [`OutlineRole::Scope`] for an unknown id.
    pub fn role(&self, kind: u16) -> OutlineRole {
        self.roles.find(kind).unwrap_or(OutlineRole::Scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_functions() {
        for language in Language::ALL {
            let roles = OutlineRoles::for_language(language);
            let count = language.grammar().node_kind_count() as u16;
            assert!((0..count).any(|kind| roles.role(kind) == OutlineRole::Function), "{language:?}");
        }
    }
}
