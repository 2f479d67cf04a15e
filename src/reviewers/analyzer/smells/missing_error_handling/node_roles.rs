//! Roles of syntax nodes that can lose an error: the section `errors` of each language's file.

use serde::Deserialize;

use super::super::syntax::SmellFieldIds;
use crate::syntax::definition::kind_groups;
use crate::syntax::language::Language;
use crate::syntax::role_map::RoleMap;
use crate::syntax::source::KindSet;

/// Role of a node for lost errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorNodeRole {
    #[default]
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

/// Roles, kind sets and field ids of one language.
pub struct ErrorNodeRoles {
    map: RoleMap<ErrorNodeRole>,
    blocks: KindSet,
    raises: KindSet,
    members: KindSet,
    functions: KindSet,
    pub fields: SmellFieldIds,
}

impl ErrorNodeRoles {
    pub fn new(language: Language) -> Self {
        let groups = kind_groups(language);
        Self {
            map: RoleMap::from_section(language, "errors"),
            blocks: KindSet::new(language, &groups.blocks),
            raises: KindSet::new(language, &groups.raises),
            members: KindSet::new(language, &groups.members),
            functions: KindSet::new(language, &groups.function_values),
            fields: SmellFieldIds::new(language),
        }
    }

    pub fn role(&self, kind: u16) -> ErrorNodeRole {
        self.map.get(kind)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_comments() {
        for language in Language::ALL {
            let roles = ErrorNodeRoles::new(language);
            let count = language.grammar().node_kind_count() as u16;
            assert!((0..count).any(|kind| roles.role(kind) == ErrorNodeRole::Comment), "{language:?}");
        }
    }
}
