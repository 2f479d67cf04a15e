//! Looks up keys: the action of a key sequence in a context, and the keys of an action.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::sequence::KeySequence;
use super::{Action, KeyContext};
use crate::config::CustomCommand;
use crate::tui::input::KeyEvent;

/// Key sequence with its action in a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBinding {
    /// Context that the file names; [`KeyContext::Global`] for an inherited binding.
    pub context: KeyContext,
    /// Keys to press.
    pub keys: KeySequence,
    /// `None` for a key that is taken away from this context, although the global context has it.
    pub action: Option<Action>,
    /// Place that binds the keys.
    pub origin: BindingOrigin,
}

/// Place that binds a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindingOrigin {
    /// Index of the file in [`Keymap::files`].
    pub file: usize,
    /// Line in the file, 1-based.
    pub line: usize,
}

/// File with keys of a [`Keymap`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeymapSource {
    /// Path of the user's file, or name of a file in the source code of revdeck.
    pub name: String,
    /// True for a file in the source code, which its user does not have.
    pub is_built_in: bool,
}

impl KeymapSource {
    /// Returns the name for the user: the path, or `built-in`.
    pub fn shown_name(&self) -> &str {
        if self.is_built_in { "built-in" } else { &self.name }
    }

    /// Returns the place of a line (1-based) for the user: path and line, or `built-in`.
    pub fn describe_line(&self, line: usize) -> String {
        match self.is_built_in {
            true => self.shown_name().to_owned(),
            false => format!("{}:{line}", self.name),
        }
    }
}

/// Meaning of the keys pressed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyMatch {
    /// The keys run an action.
    Action(Action),
    /// A sequence begins with these keys.
    Prefix,
    /// The keys do nothing.
    Unbound,
}

/// Active key bindings.
#[derive(Debug, Clone, Default)]
pub struct Keymap {
    /// Files, lowest layer first; those of the user come last.
    pub files: Vec<KeymapSource>,
    /// Commands of the user.
    pub commands: Vec<CustomCommand>,
    /// Bindings that can be reached in each context, inherited ones included; those of the context come first.
    contexts: Vec<(KeyContext, Vec<KeyBinding>)>,
}

impl Keymap {
    /// Creates a keymap from the bindings that the files leave.
    pub(super) fn new(
        files: Vec<KeymapSource>,
        commands: Vec<CustomCommand>,
        contexts: Vec<KeyContext>,
        bindings: &[KeyBinding],
    ) -> Self {
        let contexts = contexts.into_iter().map(|context| (context, list_reachable(context, bindings)));
        Self { files, commands, contexts: contexts.collect() }
    }

    /// Returns all contexts in the order of the help.
    pub fn contexts(&self) -> impl Iterator<Item = KeyContext> {
        self.contexts.iter().map(|(context, _)| *context)
    }

    /// Returns the label of an action in the footer.
    pub fn label(&self, action: Action) -> Cow<'static, str> {
        match action {
            Action::Custom(index) => {
                self.commands.get(index).map_or_else(String::new, CustomCommand::display_name).into()
            }
            action => action.footer_label().into(),
        }
    }

    /// Returns the help text of an action.
    pub fn help_text(&self, action: Action) -> Cow<'static, str> {
        match action {
            Action::Custom(index) => self.commands.get(index).map_or_else(String::new, CustomCommand::describe).into(),
            action => action.help_text().into(),
        }
    }

    /// Returns the help text of an action in a context, see [`Action::help_text_in`].
    pub fn help_text_in(&self, context: KeyContext, action: Action) -> Cow<'static, str> {
        match action {
            Action::Custom(_) => self.help_text(action),
            action => action.help_text_in(context).into(),
        }
    }

    /// Returns the name of an action in the keymap, or the table of a command in the settings.
    pub fn name(&self, action: Action) -> Cow<'static, str> {
        match action {
            Action::Custom(index) => {
                let name = self.commands.get(index).map_or_else(String::new, CustomCommand::display_name);
                format!("commands.{name}").into()
            }
            action => action.name().into(),
        }
    }

    /// Returns the bindings that can be reached in a context, inherited ones included, in the order of the files.
    pub fn bindings(&self, context: KeyContext) -> &[KeyBinding] {
        self.contexts.iter().find(|(known, _)| *known == context).map_or(&[], |(_, bindings)| bindings)
    }

    /// Looks up the keys pressed so far.
    pub fn find(&self, context: KeyContext, keys: &[KeyEvent]) -> KeyMatch {
        let bindings = self.bindings(context);
        match bindings.iter().find(|binding| binding.keys.keys() == keys) {
            Some(binding) => binding.action.map_or(KeyMatch::Unbound, KeyMatch::Action),
            None if bindings.iter().any(|binding| binding.keys.continues(keys)) => KeyMatch::Prefix,
            None => KeyMatch::Unbound,
        }
    }

    /// Returns the action of a single key in a context.
    pub fn action(&self, context: KeyContext, key: KeyEvent) -> Option<Action> {
        match self.find(context, &[key]) {
            KeyMatch::Action(action) => Some(action),
            KeyMatch::Prefix | KeyMatch::Unbound => None,
        }
    }

    /// Returns the bindings that continue the keys pressed so far.
    pub fn continuations<'a>(
        &'a self,
        context: KeyContext,
        keys: &'a [KeyEvent],
    ) -> impl Iterator<Item = &'a KeyBinding> {
        self.bindings(context).iter().filter(move |binding| binding.action.is_some() && binding.keys.continues(keys))
    }

    /// Returns the keys of an action in a context, inherited ones included: those of the context first, then the
    /// shortest, then the user's.
    pub fn keys_of(&self, context: KeyContext, action: Action) -> Vec<&KeySequence> {
        let mut found: Vec<&KeyBinding> =
            self.bindings(context).iter().filter(|binding| binding.action == Some(action)).collect();
        found.sort_by_cached_key(|binding| (binding.keys.to_string().len(), Reverse(binding.origin.file)));
        found.into_iter().map(|binding| &binding.keys).collect()
    }

    /// Returns the key to display if there is room for only one.
    pub fn key_of(&self, context: KeyContext, action: Action) -> Option<&KeySequence> {
        self.keys_of(context, action).first().copied()
    }

    /// Returns the name of the key to display; empty if the action has none.
    pub fn key_text(&self, context: KeyContext, action: Action) -> String {
        self.key_of(context, action).map_or_else(String::new, ToString::to_string)
    }
}

/// Lists the bindings of a context, then the global ones that none of them hides.
fn list_reachable(context: KeyContext, bindings: &[KeyBinding]) -> Vec<KeyBinding> {
    let own: Vec<KeyBinding> = bindings.iter().filter(|binding| binding.context == context).cloned().collect();
    if !context.has_global_fallback() {
        return own;
    }
    let inherited = bindings.iter().filter(|binding| binding.context == KeyContext::Global);
    let inherited: Vec<KeyBinding> =
        inherited.filter(|binding| !own.iter().any(|own| own.keys.collides_with(&binding.keys))).cloned().collect();
    own.into_iter().chain(inherited).collect()
}
