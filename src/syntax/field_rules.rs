//! Fields that a grammar lacks or names otherwise: the section `fields` of a language's file.
//!
//! Readers of syntax trees find a child by the name of its field, such as `body` or `left`. The section lists, by field,
//! which nodes have it, so that such a language needs no code of its own:
//!
//! | rule | node that gets the field |
//! |---|---|
//! | `KIND` | each node of this kind |
//! | `PARENT/KIND` | each node of this kind directly below a node of kind `PARENT` |
//! | `PARENT/<` | the first named child of a node of kind `PARENT`, comments left out |
//! | `PARENT/>` | the last named child that no other rule gives a field, unless it is the first |
//! | `PARENT/@FIELD` | the children to which the grammar gives the field `FIELD` |
//! | `=KIND`, `PARENT/=KIND` | like `KIND`, even if the grammar gives the node another field |
//!
//! A node keeps the field of the grammar unless a rule with `@` or `=` replaces it. If several rules fit, the field that is first
//! in the alphabet wins.

use std::collections::BTreeMap;

use super::definition::{self, PerLanguage, kind_groups};
use super::language::Language;
use super::source::{KindSet, Node, field_id};

/// Rules by field, as the section has them.
pub(super) type FieldSection = BTreeMap<String, Vec<String>>;

/// Position of a node among its siblings, or what else a rule asks of it.
enum ChildSelector {
    Kind(KindSet),
    /// A kind that has the field even if the grammar gives it another one.
    OnlyKind(KindSet),
    First,
    Last,
    /// Id of the field in the grammar.
    Field(u16),
}

/// A rule for the children of nodes of certain kinds.
struct FieldRule {
    /// `None` for any parent.
    parents: Option<KindSet>,
    child: ChildSelector,
    field: u16,
}

/// Rules of one language.
pub(super) struct FieldRules {
    rules: Vec<FieldRule>,
    comments: KindSet,
}

impl FieldRules {
    pub fn for_language(language: Language) -> &'static Self {
        static ALL: PerLanguage<FieldRules> = PerLanguage::new(FieldRules::new);
        ALL.get(language)
    }

    fn new(language: Language) -> Self {
        let mut rules = Vec::new();
        for (field, texts) in &definition::sections(language).fields {
            let field = field_id(language, field);
            rules.extend(texts.iter().map(|text| FieldRule::parse(language, field, text)));
        }
        Self { rules, comments: KindSet::new(language, &kind_groups(language).comments) }
    }

    /// Gives the nodes of a tree the fields of the rules.
    pub fn apply(&self, nodes: &mut [Node]) {
        if self.rules.is_empty() {
            return;
        }
        let mut children = Vec::new();
        for parent in 0..nodes.len() {
            children.clear();
            let mut next = parent + 1;
            while next < nodes[parent].end_index as usize {
                if nodes[next].is_named() && !self.comments.contains(nodes[next].kind) {
                    children.push(next);
                }
                next = nodes[next].end_index as usize;
            }
            let kind = nodes[parent].kind;
            let rules = || {
                let is_for = |rule: &&FieldRule| rule.parents.as_ref().is_none_or(|parents| parents.contains(kind));
                self.rules.iter().filter(is_for)
            };
            for (at, &child) in children.iter().enumerate() {
                let node = &nodes[child];
                let fits = |rule: &&FieldRule| match &rule.child {
                    ChildSelector::Kind(kinds) => node.field == 0 && kinds.contains(node.kind),
                    ChildSelector::OnlyKind(kinds) => kinds.contains(node.kind),
                    ChildSelector::First => node.field == 0 && at == 0,
                    ChildSelector::Last => false,
                    ChildSelector::Field(field) => node.field == *field,
                };
                if let Some(rule) = rules().find(fits) {
                    nodes[child].field = rule.field;
                }
            }
            let last = children.iter().skip(1).rfind(|&&child| nodes[child].field == 0);
            if let (Some(rule), Some(&last)) = (rules().find(|rule| matches!(rule.child, ChildSelector::Last)), last) {
                nodes[last].field = rule.field;
            }
        }
    }
}

impl FieldRule {
    fn parse(language: Language, field: u16, text: &str) -> Self {
        let (parent, child) = text.split_once('/').map_or((None, text), |(parent, child)| (Some(parent), child));
        let child = match (child.split_at(1), child) {
            (("@", field), _) => ChildSelector::Field(field_id(language, field)),
            (("=", kind), _) => ChildSelector::OnlyKind(KindSet::new(language, &[kind])),
            (_, "<") => ChildSelector::First,
            (_, ">") => ChildSelector::Last,
            (_, kind) => ChildSelector::Kind(KindSet::new(language, &[kind])),
        };
        Self { parents: parent.map(|parent| KindSet::new(language, &[parent])), child, field }
    }
}

/// Returns the id of a field that only the section `fields` has; `None` if it does not have it either.
pub(super) fn added_field_id(language: Language, name: &str) -> Option<u16> {
    let position = definition::sections(language).fields.keys().position(|field| field == name)?;
    Some((language.grammar().field_count() + 1 + position) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_kinds_and_fields_of_their_grammar() {
        for language in Language::ALL {
            let grammar = language.grammar();
            let is_kind = |kind: &str| grammar.id_for_node_kind(kind, true) != 0;
            for text in definition::sections(language).fields.values().flatten() {
                let (parent, child) = text.split_once('/').unwrap_or(("", text));
                if !parent.is_empty() {
                    assert!(is_kind(parent), "{language:?} {text:?}");
                }
                let is_known = match child.split_at(1) {
                    ("@", field) => grammar.field_id_for_name(field).is_some(),
                    ("=", kind) => is_kind(kind),
                    _ => (matches!(child, "<" | ">") && !parent.is_empty()) || is_kind(child),
                };
                assert!(is_known, "{language:?} {text:?}");
            }
        }
    }
}
