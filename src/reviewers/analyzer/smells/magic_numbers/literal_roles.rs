//! Roles of syntax nodes for the literals inside them: the section `literals` of each language's file.

use serde::Deserialize;

use super::super::syntax::SmellFieldIds;
use crate::syntax::language::Language;
use crate::syntax::role_map::RoleMap;

/// Role of a node for the literals in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiteralRole {
    /// Unknown: the walk up the tree ends here.
    #[default]
    None,
    Number,
    /// A quoted string.
    Text,
    Comment,
    /// Without its own meaning: parentheses, signs, casts, lists with one item.
    Transparent,
    Binary,
    /// The argument list of a call.
    Arguments,
    /// A call, a member access, a constructor expression: the walk up the tree continues.
    Call,
    /// Gives its value a name: declarations, assignments, keyword arguments, pairs, default values.
    Named,
    /// A declaration whose head may have `const`, `final` or `static`.
    Declaration,
    /// Explains or tabulates the literal: lists of data, indices, ranges, enums, annotations, types, constants.
    Skip,
    /// A constant that is not a number: true, false, null.
    Constant,
    /// Code inside a string: such a string does not count as a repetition.
    Interpolation,
    /// A statement that is only an expression: a string in it is a doc string.
    Statement,
    /// A key, a type or a path: a string in it is already a name.
    Key,
}

/// Roles and field ids of one language.
pub struct LiteralRoles {
    map: RoleMap<LiteralRole>,
    pub fields: SmellFieldIds,
}

impl LiteralRoles {
    pub fn new(language: Language) -> Self {
        Self { map: RoleMap::from_section(language, "literals"), fields: SmellFieldIds::new(language) }
    }

    pub fn role(&self, kind: u16) -> LiteralRole {
        self.map.get(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_numbers_and_strings() {
        for language in Language::ALL {
            let roles = LiteralRoles::new(language);
            for role in [LiteralRole::Number, LiteralRole::Text] {
                let count = language.grammar().node_kind_count() as u16;
                assert!((0..count).any(|kind| roles.role(kind) == role), "{language:?} {role:?}");
            }
        }
    }
}
