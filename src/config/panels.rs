//! Reads the user's panels: `[panels.NAME]` tables. A repository cannot define any, because a panel costs money.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::DeValue;

use super::closest_word::did_you_mean;
use super::custom_commands::find_field;
use super::error::{ConfigError, SettingLocation};
use super::keys::{SettingType, SettingValue};
use super::money::Dollars;
use super::reviewers::ReviewerKind;
use super::settings_file::{SettingsFile, parse_value};
use crate::domain::{Kind, Panel, PanelOpinion, Voice, text};

/// Name of the built-in reviewer.
const BUILTIN: &str = "builtin";
const FIELDS: [&str; 5] = ["reviewers", "max_cost", "judge", "escalate", "focus"];
/// Maximum of `max_cost` in US dollars, as of `budget.run_cost`.
const MAX_COST: SettingType = SettingType::Money { max: 1_000_000 };

/// Reviewers that look at the same change and give one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanelSettings {
    /// Name of the table.
    pub name: String,
    /// Names of the reviewers, each once.
    pub reviewers: Vec<String>,
    /// Most that the members' requests may cost together; `None` without a limit.
    pub max_cost: Option<Dollars>,
    /// Reviewer that is asked about disputed findings.
    pub judge: Option<String>,
    /// Reviewer that is asked about findings of some priorities, and which.
    pub escalate: Option<PanelOpinion>,
    /// Kinds that a reviewer is asked for; one that is not named looks for all of them.
    pub focus: BTreeMap<String, Vec<Kind>>,
    /// Place of the list of reviewers in the settings.
    pub location: SettingLocation,
    /// Places of `judge` and `escalate` in the settings, by field.
    pub opinion_locations: BTreeMap<&'static str, SettingLocation>,
}

/// Parses a `[panels.NAME]` table. Whether its reviewers exist is checked by [`check_members`].
///
/// # Errors
///
/// Fails at the first field that is unknown or has an unusable value.
pub fn parse_panel(
    document: &SettingsFile,
    name: &Spanned<std::borrow::Cow<'_, str>>,
    found: &Spanned<DeValue<'_>>,
) -> Result<PanelSettings, ConfigError> {
    let table_key = format!("panels.{}", name.get_ref());
    let start = name.span().start;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
        let allowed = "names of letters, digits, - _ and .".to_owned();
        return Err(document.value_error(start, &table_key, "this is no name for a panel", allowed));
    }
    let DeValue::Table(table) = found.get_ref() else {
        return Err(document.value_error(start, &table_key, "is no table", describe_table()));
    };
    for field in table.keys() {
        if !FIELDS.contains(&field.get_ref().as_ref()) {
            let meant = did_you_mean(field.get_ref(), FIELDS);
            let problem = format!("there is no key {:?}{meant}", text::sanitize_line(field.get_ref()));
            let key = format!("{table_key}.{}", field.get_ref());
            return Err(document.value_error(field.span().start, &key, problem, FIELDS.join(", ")));
        }
    }
    let Some((value, offset)) = find_field(table, "reviewers") else {
        return Err(document.value_error(start, &table_key, "needs reviewers", describe_table()));
    };
    let wrong = |field: &str, offset: usize, problem: String, allowed: String| {
        document.value_error(offset, &format!("{table_key}.{field}"), problem, allowed)
    };
    let reviewers = match value {
        Ok(SettingValue::List(names)) => names,
        Ok(_) => return Err(wrong("reviewers", offset, "is no list".to_owned(), describe_reviewers())),
        Err(problem) => return Err(wrong("reviewers", offset, problem, describe_reviewers())),
    };
    check_names(&reviewers).map_err(|problem| wrong("reviewers", offset, problem, describe_reviewers()))?;
    let max_cost = match find_field(table, "max_cost") {
        None => None,
        Some((value, offset)) => match value.and_then(|value| MAX_COST.check(value)) {
            // As in `[budget]`.
            Ok(SettingValue::Money(amount)) => Some(amount).filter(|amount| amount.as_f64() > 0.0),
            Ok(_) => {
                return Err(wrong("max_cost", offset, "is no amount".to_owned(), MAX_COST.describe_allowed()));
            }
            Err(problem) => return Err(wrong("max_cost", offset, problem, MAX_COST.describe_allowed())),
        },
    };
    let judge = match find_field(table, "judge") {
        None => None,
        Some((Ok(SettingValue::Text(name)), _)) if !name.is_empty() => Some(name),
        Some((_, offset)) => {
            return Err(wrong("judge", offset, "is no name".to_owned(), "the name of a reviewer".to_owned()));
        }
    };
    let locate = |field: &'static str| {
        let (_, offset) = find_field(table, field)?;
        Some((field, document.location_at(offset)))
    };
    let opinion_locations = ["judge", "escalate"].into_iter().filter_map(locate).collect();
    let (mut escalate, mut focus) = (None, BTreeMap::new());
    if let Some((_, value)) = table.iter().find(|(field, _)| field.get_ref() == "escalate") {
        let parsed = parse_escalation(value.get_ref());
        let allowed = || "{ to = \"NAME\", when = \"p0,p1 or disputed\" }".to_owned();
        escalate = Some(parsed.map_err(|problem| wrong("escalate", value.span().start, problem, allowed()))?);
    }
    if let Some((_, value)) = table.iter().find(|(field, _)| field.get_ref() == "focus") {
        let parsed = parse_focus(value.get_ref(), &reviewers);
        let example = "{ NAME = [\"SECURITY\", \"CONCURRENCY\"] } for models of the panel";
        let allowed = || format!("{example}; kinds: {}", Kind::WORDS.join(", "));
        focus = parsed.map_err(|problem| wrong("focus", value.span().start, problem, allowed()))?;
    }
    let (name, location) = (name.get_ref().to_string(), document.location_at(offset));
    Ok(PanelSettings { name, reviewers, max_cost, judge, escalate, focus, location, opinion_locations })
}

/// Parses `{ to = "NAME", when = "p0,p1 or disputed" }`.
fn parse_escalation(found: &DeValue<'_>) -> Result<PanelOpinion, String> {
    let DeValue::Table(table) = found else { return Err("is no table".to_owned()) };
    let (mut to, mut when) = (None, None);
    for (field, value) in table {
        match (field.get_ref().as_ref(), value.get_ref()) {
            ("to", DeValue::String(text)) if !text.is_empty() => to = Some(text.to_string()),
            ("when", DeValue::String(text)) => when = Some(text.to_string()),
            ("to" | "when", _) => return Err(format!("{} is no text", field.get_ref())),
            (other, _) => return Err(format!("there is no key {:?}", text::sanitize_line(other))),
        }
    }
    match (to, when) {
        (Some(to), Some(when)) => PanelOpinion::parse(&to, &when).map_err(|problem| format!("when: {problem}")),
        (None, _) => Err("needs to".to_owned()),
        (_, None) => Err("needs when".to_owned()),
    }
}

/// Parses `{ NAME = ["SECURITY"] }`.
fn parse_focus(found: &DeValue<'_>, reviewers: &[String]) -> Result<BTreeMap<String, Vec<Kind>>, String> {
    let DeValue::Table(table) = found else { return Err("is no table".to_owned()) };
    let mut focus = BTreeMap::new();
    for (name, value) in table {
        let shown = text::sanitize_line(name.get_ref()).into_owned();
        if shown == BUILTIN {
            return Err("the built-in reviewer always reports all that it finds".to_owned());
        }
        if !reviewers.iter().any(|reviewer| reviewer == name.get_ref()) {
            return Err(format!("{shown:?} is no reviewer of the panel"));
        }
        let Ok(SettingValue::List(words)) = parse_value(value.get_ref()) else {
            return Err(format!("{shown} has no list of kinds"));
        };
        let meant = |word: &str| did_you_mean(word, Kind::WORDS.iter().copied());
        let kinds =
            words.iter().map(|word| word.parse::<Kind>().map_err(|_| format!("{word:?} is no kind{}", meant(word))));
        let mut kinds = kinds.collect::<Result<Vec<Kind>, String>>()?;
        kinds.sort_unstable();
        kinds.dedup();
        if kinds.is_empty() {
            return Err(format!("{shown} has an empty list"));
        }
        focus.insert(name.get_ref().to_string(), kinds);
    }
    Ok(focus)
}

/// Checks the number of the names, that each is there once, and that none is that of revdeck's own search for secrets: the
/// words of that reviewer would be taken for those of the search.
///
/// # Errors
///
/// Returns a description of the mistake.
pub fn check_names(reviewers: &[String]) -> Result<(), String> {
    if !(Panel::MIN_MEMBERS..=Panel::MAX_MEMBERS).contains(&reviewers.len()) {
        return Err(format!("has {}", text::format_count(reviewers.len(), "reviewer")));
    }
    if reviewers.iter().any(|name| name == Voice::SECRET_SCAN) {
        return Err(format!("names {:?}, under which revdeck says what it finds by itself", Voice::SECRET_SCAN));
    }
    let mut seen = BTreeSet::new();
    match reviewers.iter().find(|name| !seen.insert(name.as_str())) {
        Some(twice) => Err(format!("names {:?} twice", text::sanitize_line(twice))),
        None => Ok(()),
    }
}

/// Returns the mistake of a panel that names a reviewer without a table, or whose judge or escalation is no model: `kind_of`
/// returns the kind of a reviewer that has a table, and `known` are the names of these reviewers.
pub fn check_members(
    panel: &PanelSettings,
    kind_of: impl Fn(&str) -> Option<ReviewerKind>,
    known: &[&str],
) -> Option<ConfigError> {
    // The built-in reviewer has no table, and as a judge it is no model.
    let is_reviewer = |name: &str| name == BUILTIN || kind_of(name).is_some();
    let missing = |names: Vec<&String>| names.into_iter().find(|name| !is_reviewer(name)).cloned();
    let members = missing(panel.reviewers.iter().collect());
    let escalate = panel.escalate.iter().map(|opinion| &opinion.reviewer).collect();
    let unknown = members
        .map(|name| ("reviewers", name))
        .or_else(|| missing(panel.judge.iter().collect()).map(|name| ("judge", name)))
        .or_else(|| missing(escalate).map(|name| ("escalate", name)));
    let Some((field, name)) = unknown else { return find_opinion_without_model(panel, kind_of) };
    let builtin = if field == "reviewers" { "builtin, and " } else { "" };
    let meant = did_you_mean(&name, known.iter().copied());
    let there = if known.is_empty() { String::new() } else { format!("; there are: {}", known.join(", ")) };
    Some(ConfigError::Value {
        place: panel.location_of(field),
        key: format!("panels.{}.{field}", panel.name),
        problem: format!("there is no reviewer named {:?}{meant}", text::sanitize_line(&name)),
        allowed: format!("{builtin}names of [reviewers] tables{}", text::sanitize_line(&there)),
    })
}

/// Returns the mistake of a panel whose judge or escalation is no model: one request with findings is no work for an agent.
fn find_opinion_without_model(
    panel: &PanelSettings,
    kind_of: impl Fn(&str) -> Option<ReviewerKind>,
) -> Option<ConfigError> {
    let judge = panel.judge.iter().map(|name| ("judge", name));
    let escalate = panel.escalate.iter().map(|opinion| ("escalate", &opinion.reviewer));
    let (field, name, kind) = judge.chain(escalate).find_map(|(field, name)| {
        let kind = if name == BUILTIN { Some(ReviewerKind::Builtin) } else { kind_of(name) };
        let kind = kind.filter(|kind| matches!(kind, ReviewerKind::Command | ReviewerKind::Builtin))?;
        Some((field, name, kind))
    })?;
    Some(ConfigError::Value {
        place: panel.location_of(field),
        key: format!("panels.{}.{field}", panel.name),
        problem: match kind {
            ReviewerKind::Builtin => format!("{:?} is the built-in reviewer and no model", text::sanitize_line(name)),
            kind => format!("{:?} has kind = {:?} and is no model", text::sanitize_line(name), kind.word()),
        },
        allowed: "the name of a [reviewers] table of a model, whose kind is not \"command\"".to_owned(),
    })
}

fn describe_table() -> String {
    "a table with reviewers = [\"NAME\", \"builtin\"] and, if you like, max_cost".to_owned()
}

fn describe_reviewers() -> String {
    format!("a list of {} to {} different reviewers", Panel::MIN_MEMBERS, Panel::MAX_MEMBERS)
}

impl PanelSettings {
    /// Creates the panel of a request that names several reviewers.
    pub fn of_request(name: &str, reviewers: Vec<String>) -> Self {
        let location = SettingLocation::Flag("--reviewer".to_owned());
        Self {
            name: name.to_owned(),
            reviewers,
            max_cost: None,
            judge: None,
            escalate: None,
            focus: BTreeMap::new(),
            location,
            opinion_locations: BTreeMap::new(),
        }
    }

    /// Returns the place of a field that names reviewers.
    fn location_of(&self, field: &str) -> SettingLocation {
        self.opinion_locations.get(field).unwrap_or(&self.location).clone()
    }

    /// Returns who is asked for second opinions, and about what: first the reviewer to whom the panel escalates, then the
    /// judge of what is still disputed.
    pub fn opinions(&self) -> Vec<PanelOpinion> {
        let judge = self.judge.iter().map(|name| PanelOpinion {
            reviewer: name.clone(),
            priorities: Vec::new(),
            disputed: true,
        });
        self.escalate.iter().cloned().chain(judge).collect()
    }

    /// Returns the reviewers that give second opinions, each once: one may be the judge and the one to whom the panel escalates.
    pub fn opinion_reviewers(&self) -> Vec<&str> {
        let escalate = self.escalate.as_ref().map(|opinion| opinion.reviewer.as_str());
        let judge = self.judge.as_deref().filter(|judge| escalate != Some(*judge));
        escalate.into_iter().chain(judge).collect()
    }

    /// Returns the settings by field, for a list of what is in effect.
    pub fn list_fields(&self) -> Vec<(&'static str, SettingValue)> {
        let reviewers = ("reviewers", SettingValue::List(self.reviewers.clone()));
        let mut fields = vec![reviewers];
        fields.extend(self.max_cost.map(|cost| ("max_cost", SettingValue::Money(cost))));
        fields.extend(self.judge.clone().map(|name| ("judge", SettingValue::Text(name))));
        fields.extend(self.escalate.as_ref().map(|opinion| {
            let disputed = opinion.disputed.then(|| "disputed".to_owned());
            let words: Vec<String> = opinion.priorities.iter().map(ToString::to_string).chain(disputed).collect();
            ("escalate", SettingValue::Text(format!("{} when {}", opinion.reviewer, words.join(", "))))
        }));
        let focus = self.focus.iter().map(|(name, kinds)| {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
            format!("{name}: {}", kinds.join(", "))
        });
        let focus: Vec<String> = focus.collect();
        fields.extend((!focus.is_empty()).then_some(("focus", SettingValue::List(focus))));
        fields
    }
}
