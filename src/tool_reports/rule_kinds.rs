//! Maps the rules of other tools to kinds of findings, by the table `assets/tool_rules.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::domain::Kind;

/// Table for the names of rules and the tags of every tool.
const ANY_TOOL: &str = "any";

type RuleTable = BTreeMap<String, BTreeMap<String, Kind>>;

static RULES: LazyLock<RuleTable> = LazyLock::new(|| {
    // The file is part of the program, and a test reads it.
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/tool_rules.json"))).unwrap_or_default()
});

/// Returns the kind for a rule of a tool: by the beginning of its name, by a part of its name, by a tag; a word of
/// revdeck's own kinds means that kind. A problem of an unknown rule is one of correctness: that is what linters are for.
pub fn kind_for_rule<'a>(tool: &str, rule: &str, tags: impl IntoIterator<Item = &'a str>) -> Kind {
    if let Ok(kind) = rule.parse() {
        return kind;
    }
    let own = RULES.get(tool).into_iter().flatten();
    let begins = own.filter(|(begin, _)| rule.starts_with(begin.as_str())).max_by_key(|(begin, _)| begin.len());
    if let Some((_, kind)) = begins {
        return *kind;
    }
    let any = || RULES.get(ANY_TOOL).into_iter().flatten();
    let find = |text: &str| {
        let text = text.to_ascii_lowercase();
        any().find(|(part, _)| text.contains(part.as_str())).map(|(_, kind)| *kind)
    };
    find(rule).or_else(|| tags.into_iter().find_map(find)).unwrap_or(Kind::Correctness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_whole() {
        let rows: usize = RULES.values().map(BTreeMap::len).sum();
        let lines = include_str!("../../assets/tool_rules.toml").lines().filter(|line| line.starts_with('"')).count();
        assert_eq!(rows, lines);
        assert!(rows > 50, "{rows}");
    }

    #[test]
    fn rules_have_kinds() {
        for (tool, rule, tags, expected) in [
            ("ruff", "F401", &[][..], Kind::DeadCode),
            ("ruff", "S105", &[], Kind::HardcodedConfiguration),
            ("ruff", "S602", &[], Kind::Security),
            ("ruff", "SIM102", &[], Kind::ComplexFunctions),
            ("ruff", "E711", &[], Kind::Correctness),
            ("clippy", "clippy::too_many_lines", &[], Kind::LongMethod),
            ("eslint", "no-unused-vars", &[], Kind::DeadCode),
            ("codeql", "js/sql-injection", &["security", "external/cwe/cwe-089"], Kind::Security),
            ("codeql", "py/some-rule", &["maintainability", "external/cwe/cwe-561"], Kind::Security),
            ("other", "LONG_METHOD", &[], Kind::LongMethod),
            ("other", "", &[], Kind::Correctness),
        ] {
            assert_eq!(kind_for_rule(tool, rule, tags.iter().copied()), expected, "{tool} {rule}");
        }
    }
}
