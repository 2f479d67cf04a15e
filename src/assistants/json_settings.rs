//! Inserts, finds and removes revdeck's entries in a text of JSON with comments.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Value, json};

use super::Assistant;
use super::catalog::{FoundEntry, SERVER_NAME, SettingsEntry, SettingsFault};
use super::own_call::{MCP_WORDS, ProgramCall, STATUS_WORDS, hook_words, is_own_call};

/// JSON with comments and trailing commas, and nothing that is looser than that.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Names of the object that holds the events of hooks, and of the status line.
const HOOKS: &str = "hooks";
const STATUS_LINE: &str = "statusLine";
/// Paths of the objects that hold the MCP servers of the assistants.
const SERVER_PARENTS: [&[&str]; 3] = [&["mcpServers"], &["mcp", "servers"], &["mcp"]];

/// Inserts the entries into a text without any of revdeck's. Returns the text and notes about entries of others that
/// stay in place of revdeck's.
///
/// # Errors
///
/// Returns an error if the text cannot be parsed, or if a part of it has another form than the assistant's.
pub(super) fn insert(text: &str, entries: &[SettingsEntry]) -> Result<(String, Vec<String>), SettingsFault> {
    let root = parse(text)?;
    let object = match root.value() {
        None => root.object_value_or_set(),
        Some(_) => root.object_value().ok_or_else(|| by_hand("its root is not an object"))?,
    };
    let mut notes = Vec::new();
    for entry in entries {
        match entry {
            SettingsEntry::Hook { event, matcher, handler } => {
                let hooks = child_object(&object, HOOKS)?;
                let groups = child_array(&hooks, event)?;
                let mut group = Vec::new();
                if let Some(matcher) = matcher {
                    group.push(("matcher".to_owned(), CstInputValue::from(*matcher)));
                }
                group.push((HOOKS.to_owned(), CstInputValue::Array(vec![to_input(handler)])));
                groups.append(CstInputValue::Object(group));
            }
            SettingsEntry::Server { parents, value } => {
                let parents = choose_parents(&object, parents);
                let mut servers = object.clone();
                for parent in parents {
                    servers = child_object(&servers, parent)?;
                }
                insert_member(&servers, SERVER_NAME, value, &mut notes)?;
            }
            SettingsEntry::StatusLine { value } => insert_member(&object, STATUS_LINE, value, &mut notes)?,
        }
    }
    let mut edited = root.to_string();
    if text.trim().is_empty() && !edited.ends_with('\n') {
        edited.push('\n');
    }
    Ok((edited, notes))
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
    let root = parse(text)?;
    let mut removed = Vec::new();
    let Some(object) = root.object_value() else { return Ok((text.to_owned(), removed)) };
    remove_hooks(&object, assistant, own, &mut removed);
    for parents in SERVER_PARENTS {
        remove_server(&object, parents, own, &mut removed);
    }
    let line = object.get(STATUS_LINE).filter(|line| is_own(line.value(), STATUS_WORDS, own));
    if let Some(line) = line {
        removed.push(FoundEntry { name: STATUS_LINE.to_owned(), content: to_json(line.value()) });
        line.remove();
    }
    Ok(if removed.is_empty() { (text.to_owned(), removed) } else { (root.to_string(), removed) })
}

fn parse(text: &str) -> Result<CstRootNode, SettingsFault> {
    CstRootNode::parse(text, &OPTIONS).map_err(|error| SettingsFault::Damaged(error.to_string()))
}

fn by_hand(why: impl Into<String>) -> SettingsFault {
    SettingsFault::ByHand(why.into())
}

fn to_json(value: Option<CstNode>) -> Value {
    value.and_then(|value| value.to_serde_value()).unwrap_or_default()
}

fn is_own(value: Option<CstNode>, words: &str, own: &ProgramCall) -> bool {
    is_own_call(&to_json(value), words, own)
}

/// Returns the members with this name: a reader takes the last of several.
fn members(object: &CstObject, name: &str) -> Vec<CstObjectProp> {
    let is_named = |member: &CstObjectProp| member.decoded_name().is_some_and(|found| found == name);
    object.properties().into_iter().filter(is_named).collect()
}

fn refuse_twins(object: &CstObject, name: &str) -> Result<(), SettingsFault> {
    if members(object, name).len() > 1 { Err(by_hand(format!("it has {name:?} more than once"))) } else { Ok(()) }
}

fn child_object(object: &CstObject, name: &str) -> Result<CstObject, SettingsFault> {
    refuse_twins(object, name)?;
    object.object_value_or_create(name).ok_or_else(|| by_hand(format!("{name:?} is not an object")))
}

fn child_array(object: &CstObject, name: &str) -> Result<CstArray, SettingsFault> {
    refuse_twins(object, name)?;
    object.array_value_or_create(name).ok_or_else(|| by_hand(format!("{name:?} is not a list")))
}

/// Inserts a member, unless somebody has one with the same name.
fn insert_member(object: &CstObject, name: &str, value: &Value, notes: &mut Vec<String>) -> Result<(), SettingsFault> {
    refuse_twins(object, name)?;
    if object.get(name).is_some() {
        notes.push(format!("{name:?} is somebody else's and stays as it is"));
    } else {
        object.append(name, to_input(value));
    }
    Ok(())
}

/// Returns the object of the servers: that of the newer form where the file has it.
fn choose_parents(object: &CstObject, parents: &'static [&'static str]) -> &'static [&'static str] {
    let has_newer = object.object_value("mcp").and_then(|servers| servers.object_value("servers")).is_some();
    if parents == ["mcp"] && has_newer { &["mcp", "servers"] } else { parents }
}

fn to_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(to_input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), to_input(value))).collect())
        }
    }
}

/// Removes the own handlers; then groups, events and the object of the hooks that have become empty by that.
fn remove_hooks(object: &CstObject, assistant: Assistant, own: &ProgramCall, removed: &mut Vec<FoundEntry>) {
    let words = hook_words(assistant);
    for hooks_member in members(object, HOOKS) {
        let Some(hooks) = hooks_member.object_value() else { continue };
        let mut emptied = false;
        for event_member in hooks.properties() {
            let (Some(event), Some(groups)) = (event_member.decoded_name(), event_member.array_value()) else {
                continue;
            };
            let contents = remove_handlers(&groups, &words, own);
            if contents.is_empty() {
                continue;
            }
            let name = format!("{HOOKS}.{event}");
            removed.extend(contents.into_iter().map(|content| FoundEntry { name: name.clone(), content }));
            if groups.elements().is_empty() {
                event_member.remove();
                emptied = true;
            }
        }
        if emptied && hooks.properties().is_empty() {
            hooks_member.remove();
        }
    }
}

/// Removes the own handlers of an event, and groups that have no other. Returns each removed handler with its matcher.
fn remove_handlers(groups: &CstArray, words: &str, program: &ProgramCall) -> Vec<Value> {
    let mut removed = Vec::new();
    for group in groups.elements() {
        let Some(object) = group.as_object() else { continue };
        let Some(handlers) = object.array_value(HOOKS) else { continue };
        let matcher = to_json(object.get("matcher").and_then(|matcher| matcher.value()));
        let all = handlers.elements();
        let is_own = |handler: &&CstNode| is_own(Some((*handler).clone()), words, program);
        let own: Vec<_> = all.iter().filter(is_own).cloned().collect();
        removed.extend(own.iter().map(|handler| json!([matcher, to_json(Some(handler.clone()))])));
        if own.is_empty() {
            continue;
        }
        if own.len() == all.len() {
            group.remove();
        } else {
            own.into_iter().for_each(CstNode::remove);
        }
    }
    removed
}

fn remove_server(object: &CstObject, parents: &[&str], own: &ProgramCall, removed: &mut Vec<FoundEntry>) {
    let mut path = Vec::new();
    let mut servers = object.clone();
    for parent in parents {
        let Some(member) = servers.get(parent) else { return };
        let Some(child) = member.object_value() else { return };
        path.push(member);
        servers = child;
    }
    let is_own = |server: &CstObjectProp| is_own(server.value(), MCP_WORDS, own);
    let Some(server) = servers.get(SERVER_NAME).filter(is_own) else { return };
    let name = format!("{}.{SERVER_NAME}", parents.join("."));
    removed.push(FoundEntry { name, content: to_json(server.value()) });
    server.remove();
    for member in path.into_iter().rev() {
        if member.object_value().is_some_and(|object| object.properties().is_empty()) {
            member.remove();
        }
    }
}
