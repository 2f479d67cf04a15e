//! Roles of the node kinds of one language for one reader of syntax trees, from a section of the language's file.

use std::collections::HashMap;
use std::ops::BitOr;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use super::definition;
use super::language::Language;

/// Role that the kinds of the group `comments` have in each section whose reader knows it.
const COMMENT_ROLE: &str = "comment";

/// Role of each node kind of a grammar. A lookup reads one element of an array.
#[derive(Debug)]
pub struct RoleMap<R> {
    roles: Box<[R]>,
}

impl<R: Copy + Default> RoleMap<R> {
    /// Builds the map from a section that lists each kind under at most one role. The roles are the variants of the
    /// enum `R` as serde names them; other kinds have the default role. Comments need not be listed: the kinds of the group
    /// `comments` have the role `comment`, if `R` has it.
    ///
    /// # Panics
    ///
    /// If the section has a role that `R` lacks, or a kind with two roles. A test of each section builds it for all
    /// languages.
    pub fn from_section(language: Language, section: &str) -> Self
    where
        R: for<'de> Deserialize<'de>,
    {
        let parse = |name: &str| {
            let name: StrDeserializer<'_, Error> = name.into_deserializer();
            R::deserialize(name).ok()
        };
        Self::build(language, section, parse, |_, _| None)
    }

    /// Returns the role of a kind; the default role for an unknown kind.
    pub fn get(&self, kind: u16) -> R {
        self.find(kind).unwrap_or_default()
    }

    /// Returns the role of a kind; `None` for ids that the grammar does not list, such as errors.
    pub fn find(&self, kind: u16) -> Option<R> {
        self.roles.get(usize::from(kind)).copied()
    }

    /// Builds the map; `merge` returns the role of a kind that is listed twice, if that is allowed.
    fn build(
        language: Language,
        section: &str,
        parse: impl Fn(&str) -> Option<R>,
        merge: impl Fn(R, R) -> Option<R>,
    ) -> Self {
        let fail = |problem: String| -> ! { panic!("{language:?}, section [{section}]: {problem}") };
        let mut by_name: HashMap<&str, R> = HashMap::new();
        let is_named = !section.ends_with("_tokens");
        let listed = definition::sections(language).roles.get(section);
        let comments = listed.filter(|_| is_named).map(|_| (COMMENT_ROLE, &definition::kind_groups(language).comments));
        let listed = listed.into_iter().flatten().map(|(name, kinds)| (name.as_str(), kinds));
        // A section whose reader knows no comments has no such role.
        for (name, kinds) in listed.chain(comments.filter(|(name, _)| parse(name).is_some())) {
            let Some(role) = parse(name) else { fail(format!("unknown role {name:?}")) };
            for kind in kinds {
                let merged = by_name.get(kind.as_str()).map_or(Some(role), |&other| merge(other, role));
                let Some(merged) = merged else { fail(format!("{kind:?} has two roles")) };
                by_name.insert(kind, merged);
            }
        }
        let grammar = language.grammar();
        let role = |id: u16| {
            let kind = grammar.node_kind_for_id(id).filter(|_| grammar.node_kind_is_named(id) == is_named)?;
            by_name.get(kind).copied()
        };
        Self { roles: (0..grammar.node_kind_count() as u16).map(|id| role(id).unwrap_or_default()).collect() }
    }
}

impl<R: Copy + Default + BitOr<Output = R>> RoleMap<R> {
    /// Builds the map from a section that may list a kind under several roles. `names` gives the flags of each role; the
    /// map holds the flags of all roles of a kind.
    ///
    /// # Panics
    ///
    /// If the section has a role that `names` lacks.
    pub fn of_flags(language: Language, section: &str, names: &[(&str, R)]) -> Self {
        let parse = |name: &str| names.iter().find(|(known, _)| *known == name).map(|(_, flags)| *flags);
        Self::build(language, section, parse, |a, b| Some(a | b))
    }

    /// Builds the map from the names of the kinds.
    pub fn of_kinds(language: Language, flags: impl Fn(&str) -> R) -> Self {
        let grammar = language.grammar();
        let ids = 0..grammar.node_kind_count() as u16;
        Self { roles: ids.map(|id| grammar.node_kind_for_id(id).map_or_else(R::default, &flags)).collect() }
    }

    /// Returns the flags of both maps, which belong to the same language.
    pub fn merge(&self, other: &Self) -> Self {
        Self { roles: self.roles.iter().zip(&other.roles).map(|(&a, &b)| a | b).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Unrelated {
        #[default]
        None,
    }

    #[test]
    #[should_panic(expected = "Rust, section [metrics]: unknown role")]
    fn an_unknown_role_is_named() {
        assert_eq!(RoleMap::<Unrelated>::from_section(Language::Rust, "metrics").get(0), Unrelated::None);
    }

    #[test]
    fn an_unlisted_kind_has_the_default_role() {
        let map = RoleMap::<Unrelated>::from_section(Language::Rust, "no_such_section");
        assert_eq!((map.get(1), map.find(u16::MAX)), (Unrelated::None, None));
    }
}
