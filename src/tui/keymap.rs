//! Defines key bindings as data: context, key, action. Help and footer are generated from the map that also
//! resolves keys.
//!
//! - Each mistake in a user's map is described. The composition root refuses such a map; the parser applies the other
//!   bindings.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use super::input::{KeyCode, KeyEvent};
use crate::config::did_you_mean;

/// Default keymap with documentation; binds every action.
pub const DEFAULT: &str = include_str!("../../assets/keymap.toml");

/// Context of a key press. Contexts declared before [`KeyContext::Menu`] fall back to [`KeyContext::Global`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyContext {
    /// Fallback for the contexts of panes and of full-screen views.
    Global,
    /// The list of runs has the focus.
    Runs,
    /// The list of findings has the focus.
    Findings,
    /// The list of files has the focus.
    Files,
    /// The detail pane has the focus.
    Detail,
    /// The statistics are shown.
    Stats,
    /// The learned patterns are shown.
    Knowledge,
    /// A menu is open.
    Menu,
    /// A question with yes or no is open.
    Confirm,
    /// A line of text is edited.
    Prompt,
    /// The help is shown.
    Help,
}

impl KeyContext {
    const ALL: [(Self, &'static str); 11] = [
        (Self::Global, "global"),
        (Self::Runs, "runs"),
        (Self::Findings, "findings"),
        (Self::Files, "files"),
        (Self::Detail, "detail"),
        (Self::Stats, "stats"),
        (Self::Knowledge, "knowledge"),
        (Self::Menu, "menu"),
        (Self::Confirm, "confirm"),
        (Self::Prompt, "prompt"),
        (Self::Help, "help"),
    ];

    fn has_global_fallback(self) -> bool {
        matches!(self, Self::Runs | Self::Findings | Self::Files | Self::Detail | Self::Stats | Self::Knowledge)
    }
}

macro_rules! actions {
    ($($group:literal { $($variant:ident $name:literal $short:literal $long:literal),+ $(,)? })+) => {
        /// Action of a key.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Action {
            $($(
                #[doc = concat!("Action `", $name, "` of the keymap; help text: \"", $long, "\".")]
                $variant
            ),+),+
        }

        impl Action {
            /// Every action in the order of the help: action, group, name in the keymap, footer label, help text.
            pub const TABLE: &'static [(Self, &'static str, &'static str, &'static str, &'static str)] =
                &[$($((Self::$variant, $group, $name, $short, $long)),+),+];
        }
    };
}

actions! {
    "Move" {
        Down "down" "down" "down; 12j: 12 rows",
        Up "up" "up" "up",
        Top "top" "top" "to the top; 7g: to row 7",
        Bottom "bottom" "bottom" "to the bottom",
        HalfPageDown "half_page_down" "half page" "half a page down",
        HalfPageUp "half_page_up" "half page" "half a page up",
        PageDown "page_down" "page" "a page down",
        PageUp "page_up" "page" "a page up",
        NextMatch "next_match" "next" "next match of the search",
        PreviousMatch "previous_match" "previous" "previous match of the search",
    }
    "Panes" {
        Runs "runs" "runs" "runs",
        Findings "findings" "findings" "findings",
        Files "files" "files" "files of the run",
        NextPane "next_pane" "next pane" "next pane",
        PreviousPane "previous_pane" "previous pane" "previous pane",
        Left "left" "left" "previous tab, back to the list",
        Right "right" "detail" "into the detail, next tab",
        Open "open" "open" "open what is selected",
        Back "back" "back" "one step back; never quits",
        NextTab "next_tab" "next tab" "next tab",
        PreviousTab "previous_tab" "previous tab" "previous tab",
        Reveal "reveal" "secrets" "show or mask the secrets of the page",
        Ledger "ledger" "ledger" "ledger for the assistant",
        LeftOut "left_out" "left out" "context: sent and left out",
        Stats "stats" "stats" "cost, outcomes, precision",
        Knowledge "knowledge" "knowledge" "learned patterns",
        Unfold "unfold" "unfold" "fold or unfold runs, a language",
        Zoom "zoom" "zoom" "zoom the pane, or unzoom",
    }
    "Decide" {
        Mark "mark" "mark" "mark or unmark, and go down",
        MarkRange "mark_range" "range" "mark a range: move, then decide",
        MarkAll "mark_all" "all" "mark all in the list, or none",
        Addressed "addressed" "addressed" "addressed: it is fixed",
        Dismiss "dismiss" "dismiss" "dismiss, with a reason",
        Reopen "reopen" "reopen" "open again",
        Undo "undo" "undo" "undo the last decision",
        Redo "redo" "redo" "redo",
        Fix "fix" "fix" "fix: make, apply, undo or drop a patch",
    }
    "Find" {
        Filter "filter" "filter" "filter by status, kind, path, text",
        Search "search" "search" "search",
    }
    "Knowledge" {
        Mute "mute" "mute" "mute or unmute the pattern",
        Forget "forget" "forget" "delete the pattern (asks)",
        Export "export" "export" "export patterns to a file",
        Reload "reload" "reload" "reload",
    }
    "Act" {
        Review "review" "review" "review: choose a scope",
        Cancel "cancel" "cancel run" "cancel the run (asks)",
        Pause "pause" "pause" "pause or resume the run",
        Watch "watch" "watch" "toggle watch mode",
        Snooze "snooze" "snooze" "pause automatic reviews",
        Copy "copy" "copy" "copy place, finding or id",
        CopyPrompt "copy_prompt" "prompt" "copy findings as a prompt",
        Edit "edit" "edit" "open the editor at the line",
        Help "help" "help" "this help",
        Redraw "redraw" "redraw" "redraw the screen",
        Suspend "suspend" "suspend" "suspend to the shell",
        Quit "quit" "quit" "quit; reviews continue",
    }
    "Answer" {
        Accept "accept" "accept" "accept",
        Abort "abort" "back" "cancel",
        Complete "complete" "complete" "complete the word",
        CursorLeft "cursor_left" "left" "left",
        CursorRight "cursor_right" "right" "right",
        CursorStart "cursor_start" "start" "to the start",
        CursorEnd "cursor_end" "end" "to the end",
        DeleteLeft "delete_left" "delete" "delete to the left",
        DeleteRight "delete_right" "delete" "delete to the right",
        DeleteWord "delete_word" "delete word" "delete a word",
        DeleteLine "delete_line" "delete line" "delete the line",
    }
}

impl Action {
    /// Returns the label of the action in the footer.
    pub fn footer_label(self) -> &'static str {
        Self::TABLE.iter().find(|row| row.0 == self).map_or("", |row| row.3)
    }
}

impl FromStr for Action {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::TABLE.iter().find(|row| row.2 == name).map(|row| row.0).ok_or_else(|| {
            let meant = did_you_mean(name, Self::TABLE.iter().map(|row| row.2));
            format!("{name:?} is no action{meant}")
        })
    }
}

const NAMED_KEYS: [(KeyCode, &str); 15] = [
    (KeyCode::Enter, "Enter"),
    (KeyCode::Esc, "Esc"),
    (KeyCode::Tab, "Tab"),
    (KeyCode::Char(' '), "Space"),
    (KeyCode::Backspace, "Backspace"),
    (KeyCode::Delete, "Delete"),
    (KeyCode::Insert, "Insert"),
    (KeyCode::Up, "Up"),
    (KeyCode::Down, "Down"),
    (KeyCode::Left, "Left"),
    (KeyCode::Right, "Right"),
    (KeyCode::Home, "Home"),
    (KeyCode::End, "End"),
    (KeyCode::PageUp, "PageUp"),
    (KeyCode::PageDown, "PageDown"),
];

impl FromStr for KeyEvent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut key = KeyEvent::plain(KeyCode::Esc);
        let mut rest = text;
        loop {
            let modifiers = [("ctrl-", 0), ("c-", 0), ("alt-", 1), ("a-", 1), ("meta-", 1), ("shift-", 2), ("s-", 2)];
            let lower = rest.to_ascii_lowercase();
            let Some((prefix, which)) =
                modifiers.into_iter().find(|(prefix, _)| lower.starts_with(prefix) && rest.len() > prefix.len())
            else {
                break;
            };
            match which {
                0 => key.ctrl = true,
                1 => key.alt = true,
                _ => key.shift = true,
            }
            rest = &rest[prefix.len()..];
        }
        let mut characters = rest.chars();
        key.code = match (characters.next(), characters.next()) {
            (Some(c), None) if key.ctrl => KeyCode::Char(c.to_ascii_lowercase()),
            (Some(c), None) if key.shift => {
                key.shift = false;
                KeyCode::Char(c.to_ascii_uppercase())
            }
            (Some(c), None) => KeyCode::Char(c),
            _ => NAMED_KEYS
                .iter()
                .find(|(_, name)| name.eq_ignore_ascii_case(rest))
                .map(|(code, _)| *code)
                .or_else(|| {
                    let n = rest.strip_prefix(['F', 'f'])?.parse().ok()?;
                    (1..=12).contains(&n).then_some(KeyCode::F(n))
                })
                .ok_or_else(|| {
                    let meant = did_you_mean(rest, NAMED_KEYS.iter().map(|(_, name)| *name));
                    format!("{text:?} is no key{meant}")
                })?,
        };
        Ok(key)
    }
}

impl fmt::Display for KeyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (held, prefix) in [(self.ctrl, "Ctrl-"), (self.alt, "Alt-"), (self.shift, "Shift-")] {
            if held {
                f.write_str(prefix)?;
            }
        }
        match (NAMED_KEYS.iter().find(|(code, _)| *code == self.code), self.code) {
            (Some((_, name)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(n)) => write!(f, "F{n}"),
            (None, _) => Ok(()),
        }
    }
}

/// Active key bindings.
#[derive(Debug, Clone, Default)]
pub struct Keymap {
    keys: HashMap<(KeyContext, KeyEvent), Action>,
    order: Vec<(KeyContext, KeyEvent, Action)>,
}

impl Keymap {
    /// Parses a keymap in TOML and returns one notice per mistake. A TOML syntax error gives the default keymap.
    pub fn parse(text: &str) -> (Self, Vec<String>) {
        let mut map = Self::default();
        let mut notices = Vec::new();
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                notices.push(format!("keymap: {}; the defaults are used", error.to_string().replace('\n', " ")));
                let (map, _) = Self::parse(DEFAULT);
                return (map, notices);
            }
        };
        for (section, keys) in &table {
            let Some((context, _)) = KeyContext::ALL.into_iter().find(|(_, name)| name == section) else {
                let meant = did_you_mean(section, KeyContext::ALL.into_iter().map(|(_, name)| name));
                notices.push(format!("keymap: there is no context {section:?}{meant}"));
                continue;
            };
            let Some(keys) = keys.as_table() else {
                notices.push(format!("keymap: [{section}] must hold keys"));
                continue;
            };
            for (name, action) in keys {
                if let Err(text) = map.bind(context, name, action.as_str().unwrap_or("")) {
                    notices.push(format!("keymap: [{section}] {text}"));
                }
            }
        }
        for action in [Action::Quit, Action::Help] {
            if map.keys_of(KeyContext::Global, action).is_empty() {
                notices.push(format!("keymap: no key is left to {}", action.footer_label()));
            }
        }
        (map, notices)
    }

    fn bind(&mut self, context: KeyContext, name: &str, action: &str) -> Result<(), String> {
        let key: KeyEvent = name.parse()?;
        if action == "none" {
            self.keys.remove(&(context, key));
            self.order.retain(|(c, k, _)| (*c, *k) != (context, key));
            return Ok(());
        }
        let action: Action = action.parse().map_err(|error| format!("{name}: {error}"))?;
        match self.keys.get(&(context, key)) {
            Some(other) if *other != action => {
                return Err(format!(
                    "{key} is bound twice: to {} and to {}",
                    other.footer_label(),
                    action.footer_label()
                ));
            }
            Some(_) => return Ok(()),
            None => {}
        }
        self.keys.insert((context, key), action);
        self.order.push((context, key, action));
        Ok(())
    }

    /// Returns the action of a key in a context.
    pub fn action(&self, context: KeyContext, key: KeyEvent) -> Option<Action> {
        self.keys
            .get(&(context, key))
            .or_else(|| context.has_global_fallback().then(|| self.keys.get(&(KeyContext::Global, key))).flatten())
            .copied()
    }

    /// Returns the keys of an action in a context, inherited ones included, shortest name first.
    pub fn keys_of(&self, context: KeyContext, action: Action) -> Vec<KeyEvent> {
        let of = |wanted: KeyContext| {
            self.order.iter().filter(move |(c, _, a)| *c == wanted && *a == action).map(|(_, key, _)| *key)
        };
        let mut keys: Vec<KeyEvent> = of(context).collect();
        if context.has_global_fallback() {
            keys.extend(of(KeyContext::Global).filter(|key| !self.keys.contains_key(&(context, *key))));
        }
        keys.sort_by_key(|key| key.to_string().len());
        keys
    }

    /// Returns the key to display if there is room for only one.
    pub fn key_of(&self, context: KeyContext, action: Action) -> Option<KeyEvent> {
        self.keys_of(context, action).first().copied()
    }

    /// Returns every key of an action in the contexts of the panes and the knowledge view, for the help.
    pub fn all_keys_of(&self, action: Action) -> Vec<KeyEvent> {
        let mut keys: Vec<KeyEvent> = Vec::new();
        for context in
            [KeyContext::Runs, KeyContext::Findings, KeyContext::Files, KeyContext::Detail, KeyContext::Knowledge]
        {
            for key in self.keys_of(context, action) {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> KeyEvent {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_default_map_is_without_fault_and_every_action_has_a_key() {
        let (map, notices) = Keymap::parse(DEFAULT);
        assert_eq!(notices, Vec::<String>::new());
        for (action, group, name, ..) in Action::TABLE {
            let reachable = map.order.iter().any(|(_, _, bound)| bound == action);
            assert!(reachable, "no key does {group}/{name}");
        }
    }

    #[test]
    fn the_keys_of_the_issue_do_what_it_says() {
        let (map, _) = Keymap::parse(DEFAULT);
        use Action as A;
        for (context, name, action) in [
            (KeyContext::Findings, "j", A::Down),
            (KeyContext::Findings, "k", A::Up),
            (KeyContext::Runs, "g", A::Top),
            (KeyContext::Files, "G", A::Bottom),
            (KeyContext::Detail, "Ctrl-d", A::HalfPageDown),
            (KeyContext::Detail, "Ctrl-u", A::HalfPageUp),
            (KeyContext::Detail, "Tab", A::NextPane),
            (KeyContext::Findings, "1", A::Runs),
            (KeyContext::Findings, "h", A::Left),
            (KeyContext::Findings, "l", A::Right),
            (KeyContext::Findings, "Enter", A::Open),
            (KeyContext::Findings, "Esc", A::Back),
            (KeyContext::Findings, "Space", A::Mark),
            (KeyContext::Findings, "v", A::MarkRange),
            (KeyContext::Findings, "*", A::MarkAll),
            (KeyContext::Detail, "a", A::Addressed),
            (KeyContext::Findings, "x", A::Dismiss),
            (KeyContext::Findings, "o", A::Reopen),
            (KeyContext::Findings, "u", A::Undo),
            (KeyContext::Findings, "Ctrl-r", A::Redo),
            (KeyContext::Findings, "F", A::Fix),
            (KeyContext::Findings, "f", A::Filter),
            (KeyContext::Findings, "/", A::Search),
            (KeyContext::Findings, "n", A::NextMatch),
            (KeyContext::Findings, "N", A::PreviousMatch),
            (KeyContext::Runs, "r", A::Review),
            (KeyContext::Runs, "C", A::Cancel),
            (KeyContext::Detail, "p", A::Pause),
            (KeyContext::Detail, "s", A::LeftOut),
            (KeyContext::Findings, "s", A::LeftOut),
            (KeyContext::Findings, "w", A::Watch),
            (KeyContext::Runs, "W", A::Snooze),
            (KeyContext::Runs, "L", A::Ledger),
            (KeyContext::Runs, "K", A::Knowledge),
            (KeyContext::Knowledge, "m", A::Mute),
            (KeyContext::Knowledge, "D", A::Forget),
            (KeyContext::Knowledge, "x", A::Forget),
            (KeyContext::Knowledge, "e", A::Export),
            (KeyContext::Knowledge, "r", A::Reload),
            (KeyContext::Runs, "y", A::Copy),
            (KeyContext::Runs, "e", A::Edit),
            (KeyContext::Runs, "z", A::Zoom),
            (KeyContext::Runs, "?", A::Help),
            (KeyContext::Runs, "q", A::Quit),
        ] {
            assert_eq!(map.action(context, key(name)), Some(action), "{name} in {context:?}");
        }
        assert_eq!(map.action(KeyContext::Prompt, key("q")), None, "in a prompt letters are text");
    }

    #[test]
    fn faults_of_a_map_are_told_and_the_rest_of_it_holds() {
        let text = "[global]\n\"q\" = \"quit\"\n\"?\" = \"help\"\n\"w\" = \"fly\"\n\"Hyper-x\" = \"down\"\n\"Ctrl-d\" = \"down\"\n\
                    \"C-d\" = \"up\"\n[bridge]\n\"x\" = \"quit\"\n";
        let (map, notices) = Keymap::parse(text);
        assert_eq!(notices.len(), 4, "{notices:?}");
        for (text, notice) in ["\"fly\" is no action", "\"Hyper-x\" is no key", "bound twice", "no context \"bridge\""]
            .iter()
            .map(|text| (text, notices.iter().any(|notice| notice.contains(text))))
        {
            assert!(notice, "{text} in {notices:?}");
        }
        assert_eq!(map.action(KeyContext::Runs, key("q")), Some(Action::Quit));
        let (map, notices) = Keymap::parse("[global");
        assert_eq!(notices.len(), 1);
        assert_eq!(map.action(KeyContext::Runs, key("q")), Some(Action::Quit), "the defaults stand in");
        let (map, _) = Keymap::parse(&format!("{DEFAULT}\n").replace("\"x\" = \"dismiss\"", "\"x\" = \"none\""));
        assert_eq!(map.action(KeyContext::Findings, key("x")), None);
    }

    #[test]
    fn keys_read_back_as_they_are_written() {
        for name in ["j", "G", "Ctrl-d", "Shift-Tab", "Space", "Esc", "F12", "?", "Alt-x", "PageDown", "-", "漢"] {
            assert_eq!(key(name).to_string(), name);
        }
        assert_eq!(key("C-D"), key("Ctrl-d"));
        assert_eq!(key("Shift-g"), key("G"));
    }
}
