//! Finds environment variables of revdeck that have no meaning, probably because they are misspelt.

use super::{actor, complete, publish};
use crate::config::{KEYS, did_you_mean};
use crate::tui;

/// Prefix of revdeck's variables.
const PREFIX: &str = "REVDECK_";

/// Returns the names of the set variables that begin with `REVDECK_`.
pub fn list_set() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

/// Describes the variables that are set but have no meaning; `None` if there are none.
pub fn describe_unknown(set: &[String]) -> Option<String> {
    let known: Vec<String> = KEYS
        .iter()
        .map(crate::config::SettingKey::environment_variable)
        .chain(["REVDECK_HOME", "REVDECK_LOG", "REVDECK_NOW", actor::ACTOR_VARIABLE].map(str::to_owned))
        .chain([complete::SHELL_VARIABLE.to_owned()])
        .chain(publish::OWN_VARIABLES.map(str::to_owned))
        // A command of the user may call revdeck.
        .chain(tui::custom_commands::list_variables())
        .collect();
    let is_known = |name: &String| known.contains(name) || name.starts_with(tui::custom_commands::ANSWER_VARIABLES);
    let unknown: Vec<&str> = set.iter().filter(|name| !is_known(name)).map(String::as_str).collect();
    let first = unknown.first()?;
    // The prefix, which all have, would make every name look like every other.
    let plain = |name: &str| name.strip_prefix(PREFIX).unwrap_or_default().to_owned();
    let keys: Vec<String> = known.iter().map(|name| plain(name)).collect();
    let meant = did_you_mean(&plain(first), keys.iter().map(String::as_str)).replacen('"', "\"REVDECK_", 1);
    Some(format!("set but not known: {}{meant}", unknown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_named_with_what_it_may_mean() {
        let describe = |names: &[&str]| {
            let set: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            describe_unknown(&set).unwrap_or_default()
        };
        assert_eq!(describe(&["REVDECK_HOME", "REVDECK_THEME", "REVDECK_COMPLETE", "REVDECK_PATH"]), "");
        assert_eq!(describe(&["REVDECK_ANSWER_REASON"]), "", "an answer of a command of the user");
        let meant = "set but not known: REVDECK_THEMEE; did you mean \"REVDECK_THEME\"?";
        assert_eq!(describe(&["REVDECK_THEMEE", "REVDECK_HOME"]), meant);
        assert_eq!(describe(&["REVDECK_BOGUS"]), "set but not known: REVDECK_BOGUS");
    }
}
