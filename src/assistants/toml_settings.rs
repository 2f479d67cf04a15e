//! Inserts, finds and removes revdeck's entries in a TOML text.

use serde_json::{Value as Json, json};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};

use super::Assistant;
use super::catalog::{FoundEntry, SERVER_NAME, SettingsEntry, SettingsFault};
use super::own_call::{MCP_WORDS, ProgramCall, hook_words, is_own_call};

const HOOKS: &str = "hooks";
const SERVERS: &str = "mcp_servers";

/// Inserts the entries into a text without any of revdeck's. Returns the text and notes about entries of others that
/// stay in place of revdeck's.
///
/// # Errors
///
/// Returns an error if the text cannot be parsed, or if a part of it has another form than the assistant's.
pub(super) fn insert(text: &str, entries: &[SettingsEntry]) -> Result<(String, Vec<String>), SettingsFault> {
    let mut document = parse(text)?;
    let mut notes = Vec::new();
    let mut is_first = text.trim().is_empty();
    for entry in entries {
        let blank = if is_first { "" } else { "\n" };
        match entry {
            SettingsEntry::Hook { event, matcher, handler } => {
                let hooks = child_table(document.as_table_mut(), HOOKS)?;
                let groups = hooks.entry(event).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
                let groups = groups
                    .as_array_of_tables_mut()
                    .ok_or_else(|| by_hand(format!("{HOOKS}.{event} is not a list of tables [[{HOOKS}.{event}]]")))?;
                let mut group = Table::new();
                group.decor_mut().set_prefix(blank);
                if let Some(matcher) = matcher {
                    group.insert("matcher", (*matcher).into());
                }
                let mut handlers = ArrayOfTables::new();
                handlers.push(to_table(handler));
                group.insert(HOOKS, Item::ArrayOfTables(handlers));
                groups.push(group);
            }
            SettingsEntry::Server { value, .. } => {
                let servers = child_table(document.as_table_mut(), SERVERS)?;
                if servers.contains_key(SERVER_NAME) {
                    notes.push(format!("{SERVERS}.{SERVER_NAME} is somebody else's and stays as it is"));
                    continue;
                }
                let mut table = to_table(value);
                table.decor_mut().set_prefix(blank);
                servers.insert(SERVER_NAME, Item::Table(table));
            }
            SettingsEntry::StatusLine { .. } => continue,
        }
        is_first = false;
    }
    let text = document.to_string();
    // An entry below an inline table would be printed in a form that reads differently.
    parse(&text).map_err(|_| by_hand("its tables cannot be extended"))?;
    Ok((text, notes))
}

/// Removes all entries of revdeck, or of the program of `own`, for an assistant. Returns the text and the removed entries.
///
/// # Errors
///
/// Returns an error if the text cannot be parsed.
pub(super) fn remove(
    text: &str,
    assistant: Assistant,
    own: &ProgramCall,
) -> Result<(String, Vec<FoundEntry>), SettingsFault> {
    let mut document = parse(text)?;
    let mut removed = Vec::new();
    remove_hooks(document.as_table_mut(), &hook_words(assistant), own, &mut removed);
    let is_own = |server: &Item| is_own_call(&to_json(server), MCP_WORDS, own);
    let mut is_empty = false;
    if let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut)
        && servers.get(SERVER_NAME).is_some_and(is_own)
    {
        let content = servers.remove(SERVER_NAME).map_or(Json::Null, |server| to_json(&server));
        removed.push(FoundEntry { name: format!("{SERVERS}.{SERVER_NAME}"), content });
        is_empty = servers.is_empty();
    }
    if is_empty {
        document.remove(SERVERS);
    }
    Ok(if removed.is_empty() { (text.to_owned(), removed) } else { (document.to_string(), removed) })
}

/// Returns whether the text configures hooks of anybody.
pub(super) fn has_hooks(text: &str) -> bool {
    parse(text).is_ok_and(|document| {
        let hooks = document.get(HOOKS).and_then(Item::as_table_like);
        // `hooks.state` is where Codex notes which hooks the user has approved.
        hooks.is_some_and(|hooks| hooks.iter().any(|(name, _)| name != "state"))
    })
}

fn parse(text: &str) -> Result<DocumentMut, SettingsFault> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let first = error.to_string();
        SettingsFault::Damaged(first.lines().next().unwrap_or_default().to_owned())
    })
}

fn by_hand(why: impl Into<String>) -> SettingsFault {
    SettingsFault::ByHand(why.into())
}

fn child_table<'a>(table: &'a mut Table, name: &str) -> Result<&'a mut dyn TableLike, SettingsFault> {
    let child = table.entry(name).or_insert_with(|| {
        let mut child = Table::new();
        child.set_implicit(true);
        Item::Table(child)
    });
    // An inline table ends with its line, so that a table cannot be added to it.
    let child = child.as_table_mut().ok_or_else(|| by_hand(format!("{name:?} is not a table [{name}]")))?;
    Ok(child)
}

fn to_table(value: &Json) -> Table {
    let mut table = Table::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        table.insert(name, Item::Value(to_value(value)));
    }
    table
}

fn to_value(value: &Json) -> Value {
    match value {
        Json::Bool(value) => (*value).into(),
        Json::Number(value) => value.as_i64().unwrap_or_default().into(),
        Json::String(value) => value.as_str().into(),
        Json::Array(values) => Value::Array(values.iter().map(to_value).collect::<Array>()),
        Json::Null | Json::Object(_) => "".into(),
    }
}

/// Returns the texts, numbers and lists of texts of a table: the parts that an entry of revdeck has.
fn to_json(item: &Item) -> Json {
    let Some(table) = item.as_table_like() else { return Json::Null };
    let text = |value: &Value| match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        other => other.to_string().into(),
    };
    let members = table.iter().filter_map(|(name, item)| {
        let value = item.as_value()?;
        let json = value.as_array().map_or_else(|| text(value), |list| list.iter().map(text).collect());
        Some((name.to_owned(), json))
    });
    Json::Object(members.collect())
}

/// Removes the own handlers; then groups, events and the table of the hooks that have become empty by that.
fn remove_hooks(document: &mut Table, words: &str, own: &ProgramCall, removed: &mut Vec<FoundEntry>) {
    let Some(hooks) = document.get_mut(HOOKS).and_then(Item::as_table_mut) else { return };
    let mut emptied = Vec::new();
    for (event, item) in hooks.iter_mut() {
        let Some(groups) = item.as_array_of_tables_mut() else { continue };
        let before = removed.len();
        for group in groups.iter_mut() {
            let matcher = group.get("matcher").and_then(Item::as_str).map(str::to_owned);
            if let Some(handlers) = group.get_mut(HOOKS).and_then(Item::as_array_of_tables_mut) {
                handlers.retain(|handler| {
                    let handler = to_json(&Item::Table(handler.clone()));
                    let is_own = is_own_call(&handler, words, own);
                    if is_own {
                        let name = format!("{HOOKS}.{}", event.get());
                        removed.push(FoundEntry { name, content: json!([matcher, handler]) });
                    }
                    !is_own
                });
            }
        }
        if removed.len() > before {
            let is_used = |group: &Table| {
                group.get(HOOKS).and_then(Item::as_array_of_tables).is_none_or(|handlers| !handlers.is_empty())
            };
            groups.retain(is_used);
            if groups.is_empty() {
                emptied.push(event.get().to_owned());
            }
        }
    }
    for event in &emptied {
        hooks.remove(event);
    }
    if !emptied.is_empty() && hooks.is_empty() {
        document.remove(HOOKS);
    }
}
