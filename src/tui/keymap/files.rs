//! Reads keymap files and checks them.
//!
//! - A file lies over the ones before it: its binding takes the place of every binding that it collides with.
//! - Each mistake names its file and line. The composition root refuses a keymap with mistakes; the reader applies the
//!   other bindings.

use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::bindings::{BindingOrigin, KeyBinding, Keymap, KeymapSource};
use super::sequence::KeySequence;
use super::{Action, KeyContext, ViewContext};
use crate::config::{CustomCommand, KeyPreset, KeymapFile, SettingLocation, Settings, did_you_mean, embedded_keymaps};
use crate::tui::input::{KeyCode, KeyEvent};
use crate::tui::views::{VIEWS, ViewEntry};

/// Mistake in a keymap file, or a remark about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeymapFault {
    /// Place of the binding; `None` for a mistake of all files together.
    pub place: Option<SettingLocation>,
    /// Description without the place.
    pub text: String,
    /// Weight.
    pub level: KeymapFaultLevel,
}

/// Weight of a [`KeymapFault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeymapFaultLevel {
    /// The cockpit does not open with it.
    Error,
    /// It changes something that the user may not expect.
    Remark,
}

impl fmt::Display for KeymapFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.text),
            None => write!(f, "keymap: {}", self.text),
        }
    }
}

/// Entry of a keymap file.
struct KeymapEntry {
    context: KeyContext,
    keys: KeySequence,
    /// `None` takes the key away.
    action: Option<Action>,
    /// Byte offset of the key in the file.
    offset: usize,
}

impl Keymap {
    /// Reads one keymap in TOML and returns a line per mistake. A TOML syntax error gives the embedded keymap.
    pub fn parse(text: &str) -> (Self, Vec<String>) {
        let file = KeymapFile { name: "keymap.toml".to_owned(), text: text.to_owned().into() };
        let (map, faults) = Self::from_layers(&[file], &[]);
        let errors = faults.iter().filter(|fault| fault.level == KeymapFaultLevel::Error);
        let errors: Vec<String> = errors.map(ToString::to_string).collect();
        match text.parse::<toml::Table>() {
            Ok(_) => (map, errors),
            Err(_) => (Self::from_preset(KeyPreset::Vim), errors),
        }
    }

    /// Builds the keymap of the settings; whoever loaded them has refused mistakes.
    pub fn from_settings(settings: &Settings) -> (Self, Vec<KeymapFault>) {
        Self::from_layers(&settings.keymap, &settings.commands)
    }

    /// Builds the keymap of a preset, without the user's changes.
    pub fn from_preset(preset: KeyPreset) -> Self {
        Self::from_layers(&embedded_keymaps(preset), &[]).0
    }

    /// Lays keymap files over each other, lowest first, and the keys of the user's commands over them all. Returns the
    /// mistakes and remarks, too.
    pub fn from_layers(files: &[KeymapFile], commands: &[CustomCommand]) -> (Self, Vec<KeymapFault>) {
        let views: Vec<&'static ViewContext> = VIEWS.iter().filter_map(|view| view.context).collect();
        Self::from_views(&views, files, commands)
    }

    /// Builds the keymap as [`Keymap::from_layers`] does, with the contexts of these views. Their keys lie over those of the
    /// common keymap.
    pub(in crate::tui) fn from_views(
        views: &[&'static ViewContext],
        files: &[KeymapFile],
        commands: &[CustomCommand],
    ) -> (Self, Vec<KeymapFault>) {
        let contexts = KeyContext::list(views);
        let mut layers = KeymapLayers { sources: Vec::new(), bindings: Vec::new(), faults: Vec::new() };
        for file in files {
            let index = layers.add_file(&file.name, file.is_embedded());
            let is_common = *file == KeymapFile::common();
            let mut reader = KeymapReader { file, contexts: &contexts, faults: &mut layers.faults };
            let mut entries = reader.read_entries();
            if is_common {
                entries.extend(list_view_entries(file));
                entries.sort_by_key(|entry| entry.offset);
            }
            for entry in reader.drop_colliding(entries) {
                let place = file.location_at(entry.offset);
                layers.lay(index, place, (entry.context, entry.keys, entry.action));
            }
            for view in views.iter().copied().filter(|_| is_common) {
                layers.lay_view(view);
            }
        }
        layers.lay_commands(commands);
        let KeymapLayers { sources, bindings, mut faults } = layers;
        let map = Self::new(sources, commands.to_vec(), contexts, &bindings);
        for action in [Action::Quit, Action::Help] {
            if map.keys_of(KeyContext::Global, action).is_empty() {
                let text = format!("no key is left to {}", action.footer_label());
                faults.push(KeymapFault { place: None, text, level: KeymapFaultLevel::Error });
            }
        }
        (map, faults)
    }
}

struct KeymapReader<'a> {
    file: &'a KeymapFile,
    /// Contexts that the file may name.
    contexts: &'a [KeyContext],
    faults: &'a mut Vec<KeymapFault>,
}

impl KeymapReader<'_> {
    fn report(&mut self, offset: usize, text: String) {
        let place = Some(self.file.location_at(offset));
        self.faults.push(KeymapFault { place, text, level: KeymapFaultLevel::Error });
    }

    /// Reads the entries in the order of the file.
    fn read_entries(&mut self) -> Vec<KeymapEntry> {
        let file = self.file;
        let table = match DeTable::parse(&file.text) {
            Ok(table) => table.into_inner(),
            Err(error) => {
                let offset = error.span().map_or(0, |span| span.start);
                self.report(offset, format!("{}; the file has no effect", error.message().replace('\n', " ")));
                return Vec::new();
            }
        };
        let before = self.faults.len();
        let mut entries = Vec::new();
        for (section, keys) in &table {
            let name: &str = section.get_ref();
            let Some(context) = self.contexts.iter().copied().find(|known| known.name() == name) else {
                let meant = did_you_mean(name, self.contexts.iter().map(|known| known.name()));
                self.report(section.span().start, format!("there is no context {name:?}{meant}"));
                continue;
            };
            let Some(keys) = keys.get_ref().as_table() else {
                self.report(section.span().start, format!("[{name}] must hold keys"));
                continue;
            };
            for (key, value) in keys {
                match read_entry(context, key, value) {
                    Ok(entry) => entries.push(entry),
                    Err(error) => self.report(key.span().start, format!("[{name}] {error}")),
                }
            }
        }
        entries.sort_by_key(|entry| entry.offset);
        self.faults[before..].sort_by_key(|fault| fault.place.as_ref().map(SettingLocation::line));
        entries
    }

    /// Drops the entries that collide with an earlier one of the same file.
    fn drop_colliding(&mut self, entries: Vec<KeymapEntry>) -> Vec<KeymapEntry> {
        let mut kept: Vec<KeymapEntry> = Vec::new();
        for entry in entries {
            let other = kept.iter().find(|other| {
                let both_bind = other.action.is_some() && entry.action.is_some();
                other.context == entry.context
                    && (other.keys == entry.keys || both_bind && other.keys.collides_with(&entry.keys))
            });
            let Some(other) = other else {
                kept.push(entry);
                continue;
            };
            let line = self.file.location_at(other.offset).line();
            let context = entry.context.name();
            let text = if other.keys == entry.keys {
                format!("[{context}] {} is bound twice: in line {line}, too", entry.keys)
            } else {
                let (short, long) = if other.keys.keys().len() < entry.keys.keys().len() {
                    (&other.keys, &entry.keys)
                } else {
                    (&entry.keys, &other.keys)
                };
                format!(
                    "[{context}] {short} is a key and the beginning of {long}: bind one of them (the other is in line \
                     {line})"
                )
            };
            self.report(entry.offset, text);
        }
        kept
    }
}

/// Bindings of the files so far.
struct KeymapLayers {
    /// Files, lowest layer first.
    sources: Vec<KeymapSource>,
    bindings: Vec<KeyBinding>,
    faults: Vec<KeymapFault>,
}

impl KeymapLayers {
    fn report(&mut self, place: &SettingLocation, text: String, level: KeymapFaultLevel) {
        self.faults.push(KeymapFault { place: Some(place.clone()), text, level });
    }

    /// Adds a file above those so far. Returns its index.
    fn add_file(&mut self, name: &str, is_built_in: bool) -> usize {
        self.sources.push(KeymapSource { name: name.to_owned(), is_built_in });
        self.sources.len() - 1
    }

    /// Lays the keys of a view over the bindings of the files below.
    fn lay_view(&mut self, view: &'static ViewContext) {
        let (file, line) = view.place;
        let place = SettingLocation::File { path: file.into(), line: line as usize, column: 1 };
        let (index, context) = (self.add_file(file, true), KeyContext::View(view));
        for &(name, action) in view.keys {
            match self.read_view_key(context, index, (name, action)) {
                Ok((keys, action)) => self.lay(index, place.clone(), (context, keys, Some(action))),
                Err(error) => {
                    self.report(&place, format!("[{}] {name}: {error}", view.name), KeymapFaultLevel::Error);
                }
            }
        }
    }

    /// Reads a key of a view, whose file has this index, with the name of its action.
    fn read_view_key(
        &self,
        context: KeyContext,
        file: usize,
        (keys, action): (&str, &str),
    ) -> Result<(KeySequence, Action), String> {
        let (keys, action) = (keys.parse::<KeySequence>()?, action.parse::<Action>()?);
        let is_other = |binding: &&KeyBinding| binding.origin.file == file && binding.keys.collides_with(&keys);
        if let Some(other) = self.bindings.iter().find(is_other) {
            return Err(format!("collides with {}", other.keys));
        }
        match find_unreachable(context, &keys, Some(action)) {
            Some(reason) => Err(reason),
            None => Ok((keys, action)),
        }
    }

    /// Lays an entry of a file over the bindings of the files below.
    fn lay(
        &mut self,
        file: usize,
        place: SettingLocation,
        (context, keys, action): (KeyContext, KeySequence, Option<Action>),
    ) {
        let is_replaced = |binding: &KeyBinding| {
            let is_hidden = match action {
                Some(_) => binding.keys.collides_with(&keys),
                // Taking a prefix away takes its sequences away.
                None => binding.keys == keys || binding.keys.continues(keys.keys()),
            };
            binding.origin.file < file && binding.context == context && is_hidden
        };
        let replaced: Vec<KeyBinding> = self.bindings.extract_if(.., |binding| is_replaced(&*binding)).collect();
        if action.is_some() {
            let lost: Vec<String> = replaced
                .iter()
                .filter(|binding| binding.keys != keys)
                .map(|binding| {
                    let BindingOrigin { file, line } = binding.origin;
                    let place = self.sources.get(file).map_or_else(String::new, |file| file.describe_line(line));
                    format!("{} ({place})", binding.keys)
                })
                .collect();
            if !lost.is_empty() {
                let text = format!("[{}] {keys} takes the place of {}", context.name(), lost.join(", "));
                self.report(&place, text, KeymapFaultLevel::Remark);
            }
        }
        let hides_global = context.has_global_fallback()
            && self.bindings.iter().any(|binding| {
                binding.context == KeyContext::Global && (binding.keys == keys || binding.keys.continues(keys.keys()))
            });
        if action.is_none() && !hides_global {
            if replaced.is_empty() {
                let text = format!("[{}] {keys} is not bound, so there is nothing to take away", context.name());
                self.report(&place, text, KeymapFaultLevel::Remark);
            }
            return;
        }
        let origin = BindingOrigin { file, line: place.line() };
        self.bindings.push(KeyBinding { context, keys, action, origin });
    }

    /// Lays the keys of the user's commands over all files. They work in the panes and the full-screen views.
    fn lay_commands(&mut self, commands: &[CustomCommand]) {
        for (index, command) in commands.iter().enumerate().filter(|(_, command)| !command.key.is_empty()) {
            let (name, place) = (command.display_name(), &command.location);
            let keys = command.key.parse::<KeySequence>().and_then(|keys| {
                match find_unreachable(KeyContext::Global, &keys, None) {
                    Some(reason) => Err(format!("{keys}: {reason}")),
                    None => Ok(keys),
                }
            });
            let keys = match keys {
                Ok(keys) => keys,
                Err(error) => {
                    self.report(place, format!("[commands.{name}] key: {error}"), KeymapFaultLevel::Error);
                    continue;
                }
            };
            let file_name = place.file_name();
            let file = match self.sources.iter().position(|source| source.name == file_name) {
                Some(file) => file,
                None => self.add_file(&file_name, false),
            };
            let is_same = |binding: &&KeyBinding| {
                binding.origin.file == file
                    && binding.context == KeyContext::Global
                    && binding.keys.collides_with(&keys)
            };
            if let Some(other) = self.bindings.iter().find(is_same) {
                let text =
                    format!("[commands.{name}] {keys} collides with {} in line {}", other.keys, other.origin.line);
                self.report(place, text, KeymapFaultLevel::Error);
                continue;
            }
            self.lay(file, place.clone(), (KeyContext::Global, keys, Some(Action::Custom(index))));
        }
    }
}

/// Lists the keys that open views. They stand in the files of the views; the common keymap names them in comments, so that
/// it lists all keys, and their places are those of the comments.
fn list_view_entries(common: &KeymapFile) -> Vec<KeymapEntry> {
    let entry = |(index, view): (usize, &&ViewEntry)| {
        let keys: KeySequence = view.key.parse().ok()?;
        let comment = format!("# \"{}\" = \"{}\"", view.key, view.action);
        let offset = common.text.find(&comment).unwrap_or(common.text.len());
        Some(KeymapEntry { context: KeyContext::Global, keys, action: Some(Action::View(index)), offset })
    };
    VIEWS.iter().enumerate().filter_map(entry).collect()
}

/// Reads the entry `key = value`; an error is described without its place.
fn read_entry(
    context: KeyContext,
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<KeymapEntry, String> {
    let name = key.get_ref();
    let keys: KeySequence = name.parse()?;
    let action = match value.get_ref() {
        DeValue::Boolean(false) => None,
        DeValue::String(word) if word == "none" => None,
        DeValue::String(word) => Some(word.parse::<Action>().map_err(|error| format!("{name}: {error}"))?),
        _ => return Err(format!("{name}: wanted the name of an action, or false to take the key away")),
    };
    if let Some(reason) = find_unreachable(context, &keys, action) {
        return Err(format!("{name}: {reason}"));
    }
    Ok(KeymapEntry { context, keys, action, offset: key.span().start })
}

/// Returns the reason why a binding could never run.
fn find_unreachable(context: KeyContext, keys: &KeySequence, action: Option<Action>) -> Option<String> {
    let first = keys.keys().first()?;
    let is_sequence = keys.keys().len() > 1;
    if is_sequence && matches!(first.code, KeyCode::Char('0'..='9')) && first.is_text() {
        return Some("a sequence cannot begin with a digit, because digits are counts".to_owned());
    }
    if is_sequence && keys.keys().contains(&KeyEvent::plain(KeyCode::Esc)) {
        return Some("Esc ends a sequence, so it cannot be part of one".to_owned());
    }
    if context == KeyContext::Prompt && is_sequence {
        return Some("a prompt knows no sequences".to_owned());
    }
    if context == KeyContext::Prompt && first.is_text() {
        return Some("characters are text in a prompt".to_owned());
    }
    let action = action?;
    context.ignores(action).then(|| format!("{:?} does nothing in [{}]", action.name(), context.name()))
}
