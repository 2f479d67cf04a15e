//! Lists the rules for reviews that one version of a repository's settings loosens compared with another.

use super::strictness::ThresholdStrictness;
use super::{REPOSITORY_FILE, Settings, embedded, settings_file};
use crate::domain::text::sanitize_line;

/// Maximum number of rules, and of new patterns or words of a rule, that are named.
const MAX_NAMED: usize = 3;

/// Describes in one line the rules for reviews that `changed` loosens compared with `base`: patterns of ignored paths, the
/// size limit, the gate and the thresholds of the built-in reviewer. Returns `None` if nothing is looser.
pub(crate) fn describe_loosened_rules(base: &Settings, changed: &Settings) -> Option<String> {
    let mut rules = Vec::new();
    let ignored = missing_items(&changed.ignored_paths, &base.ignored_paths);
    if !ignored.is_empty() {
        let quoted: Vec<String> = ignored.iter().map(|pattern| format!("{pattern:?}")).collect();
        rules.push(format!("ignored_paths gains {}", list_first(&quoted)));
    }
    if changed.max_file_bytes < base.max_file_bytes {
        rules.push(format!("max_file_bytes from {} to {}", base.max_file_bytes, changed.max_file_bytes));
    }
    // A gate for p2 also fails for p1, and no gate is the loosest.
    if changed.fail_on < base.fail_on {
        let word =
            |limit: Option<crate::domain::Priority>| limit.map_or_else(|| "none".to_owned(), |it| it.to_string());
        rules.push(format!("fail_on from {} to {}", word(base.fail_on), word(changed.fail_on)));
    }
    rules.extend(list_looser_thresholds(&base.smells, &changed.smells));
    (!rules.is_empty()).then(|| {
        let rules = sanitize_line(&list_first(&rules)).into_owned();
        format!(
            "this change loosens {REPOSITORY_FILE}: {rules}; it is reviewed by the rules of its base, later changes are not"
        )
    })
}

/// Lists the thresholds that are looser in `changed` than in `base`, both as in `assets/smells.toml`.
fn list_looser_thresholds(base: &str, changed: &str) -> Vec<String> {
    if base == changed {
        return Vec::new();
    }
    let strictness = ThresholdStrictness::from_toml(embedded::SMELLS);
    let (base, changed) = (settings_file::parse_embedded(base), settings_file::parse_embedded(changed));
    let mut looser = Vec::new();
    for (group, keys) in &changed {
        let (Some(toml::Value::Table(own)), toml::Value::Table(keys)) = (base.get(group), keys) else { continue };
        for (name, new) in keys {
            let Some(old) = own.get(name).filter(|old| strictness.is_looser(&format!("{group}.{name}"), new, old))
            else {
                continue;
            };
            looser.push(format!("smells.{group}.{name} {}", describe_difference(old, new)));
        }
    }
    looser
}

fn describe_difference(old: &toml::Value, new: &toml::Value) -> String {
    let (toml::Value::Array(old), toml::Value::Array(new)) = (old, new) else { return format!("from {old} to {new}") };
    let words = |items: Vec<&toml::Value>| list_first(&items.iter().map(ToString::to_string).collect::<Vec<_>>());
    let (gained, lost) = (missing_items(new, old), missing_items(old, new));
    match (gained.is_empty(), lost.is_empty()) {
        (false, true) => format!("gains {}", words(gained)),
        (true, _) => format!("loses {}", words(lost)),
        (false, false) => format!("gains {} and loses {}", words(gained), words(lost)),
    }
}

/// Returns the items of `all` that are not in `known`.
fn missing_items<'a, T: PartialEq>(all: &'a [T], known: &[T]) -> Vec<&'a T> {
    all.iter().filter(|item| !known.contains(item)).collect()
}

/// Joins the first [`MAX_NAMED`] texts and counts the others.
fn list_first(texts: &[String]) -> String {
    let named = texts.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match texts.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing("", "", None)]
    #[case::figure(
        "",
        "[long_method]\nmax_code_lines = 1000",
        Some("smells.long_method.max_code_lines from 60 to 1000")
    )]
    #[case::stricter("", "[long_method]\nmax_code_lines = 20", None)]
    #[case::off("", "[dead_code]\nenabled = false", Some("smells.dead_code.enabled from true to false"))]
    #[case::taken_away(
        "[long_method]\nmax_code_lines = 20",
        "",
        Some("smells.long_method.max_code_lines from 20 to 60")
    )]
    #[case::list(
        "[magic_numbers]\nallowed = [0]",
        "[magic_numbers]\nallowed = [0, 7, 8, 9, 10]",
        Some("smells.magic_numbers.allowed gains 7, 8, 9 and 1 more")
    )]
    #[case::words(
        "[tight_coupling]\nservice_words = [\"api\", \"dao\"]",
        "[tight_coupling]\nservice_words = [\"dao\"]",
        Some("smells.tight_coupling.service_words loses \"api\"")
    )]
    fn thresholds(#[case] base: &str, #[case] changed: &str, #[case] expected: Option<&str>) {
        let merged = |text: &str| {
            let mut all = settings_file::parse_embedded(embedded::SMELLS);
            settings_file::merge_tables(&mut all, text.parse().expect("TOML"));
            all.to_string()
        };
        assert_eq!(list_looser_thresholds(&merged(base), &merged(changed)), Vec::from_iter(expected));
    }
}
