//! Defines key bindings as data: context, key, action. Help and footer are generated from the map that also
//! resolves keys.
//!
//! To add an action: its row in the table below, its key in `assets/keymap.toml`, and the code that runs it. The action
//! that opens a full-screen view has its row, key included, in the file of the view, and so have the keys of the view's
//! own; see `views::VIEWS`.

mod bindings;
mod files;
mod sequence;
#[cfg(test)]
mod tests;

use std::str::FromStr;

pub use bindings::{BindingOrigin, KeyBinding, KeyMatch, Keymap};
pub use files::{KeymapFault, KeymapFaultLevel};
pub use sequence::{KeySequence, MAX_SEQUENCE_KEYS};

use super::views::VIEWS;
use crate::config::did_you_mean;

/// Common keymap with documentation; the presets lie over it.
pub const DEFAULT: &str = include_str!("../../assets/keymap.toml");

/// Context of a key press. The contexts of panes and of full-screen views fall back to [`KeyContext::Global`].
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
    /// A full-screen view with these keys is shown.
    View(&'static ViewContext),
    /// Findings are decided one by one.
    Triage,
    /// A menu is open.
    Menu,
    /// The form of a review request is open.
    ReviewForm,
    /// A question with yes or no is open.
    Confirm,
    /// A line of text is edited.
    Prompt,
    /// The help is shown.
    Help,
}

/// Keys of a full-screen view, declared in its file; its row, a `views::ViewEntry`, names them.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ViewContext {
    /// Name of the context in keymaps.
    pub name: &'static str,
    /// Name of the context in a sentence.
    pub title: &'static str,
    /// Keys with their actions, both as a keymap writes them. The keys of a preset and of the user lie over these.
    pub keys: &'static [(&'static str, &'static str)],
    /// Help texts of actions that do something else here than elsewhere.
    pub help: &'static [(Action, &'static str)],
    /// Group of the actions that only this view has; empty if there are none.
    pub group: &'static str,
    /// File and line of the declaration: `(file!(), line!())`.
    pub place: (&'static str, u32),
}

impl KeyContext {
    /// Contexts besides those of views, with their names in the keymap, in the order of the help.
    const FIXED: [(Self, &'static str); 11] = [
        (Self::Global, "global"),
        (Self::Runs, "runs"),
        (Self::Findings, "findings"),
        (Self::Files, "files"),
        (Self::Detail, "detail"),
        (Self::Triage, "triage"),
        (Self::Menu, "menu"),
        (Self::ReviewForm, "review_form"),
        (Self::Confirm, "confirm"),
        (Self::Prompt, "prompt"),
        (Self::Help, "help"),
    ];

    /// Lists every context in the order of the help, with those of these views.
    fn list(views: &[&'static ViewContext]) -> Vec<Self> {
        let fixed = || Self::FIXED.into_iter().map(|(context, _)| context);
        let views = views.iter().copied().map(Self::View);
        let before = fixed().filter(|context| *context < Self::Triage);
        before.chain(views).chain(fixed().filter(|context| *context >= Self::Triage)).collect()
    }

    /// Returns true if a key that the context does not name is looked up in [`KeyContext::Global`].
    pub fn has_global_fallback(self) -> bool {
        self < Self::Menu && self != Self::Global
    }

    /// Returns the name of the context in the keymap.
    pub fn name(self) -> &'static str {
        match self {
            Self::View(view) => view.name,
            _ => Self::FIXED.into_iter().find(|(context, _)| *context == self).map_or("", |(_, name)| name),
        }
    }

    /// Returns the name of the context in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Global => "everywhere",
            Self::View(view) => view.title,
            Self::Triage => "triage mode",
            Self::ReviewForm => "the review form",
            Self::Menu => "menus",
            Self::Confirm => "questions",
            Self::Prompt => "prompts",
            Self::Help => "this help",
            _ => self.name(),
        }
    }

    /// Returns true for an action that certainly does nothing in this context.
    fn ignores(self, action: Action) -> bool {
        match self {
            _ if matches!(action, Action::Redraw | Action::Suspend | Action::Help) => false,
            Self::Runs | Self::Findings | Self::Files | Self::Detail => action.group() == "Answer",
            Self::Menu | Self::Confirm | Self::Prompt => !matches!(action.group(), "Answer" | "Move"),
            Self::Help => action != Action::Ask && !matches!(action.group(), "Answer" | "Move" | "Find"),
            _ => false,
        }
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
            ),+),+,
            /// Opens a view, by its index in the table of views.
            View(usize),
            /// Command of the user, by its index in [`Keymap::commands`].
            Custom(usize),
        }

        impl Action {
            /// Every action but those that open views, in the order of the help: action, group, name in the keymap, footer
            /// label, help text.
            pub const TABLE: &'static [ActionRow] =
                &[$($((Self::$variant, $group, $name, $short, $long)),+),+];
        }
    };
}

/// Row of [`Action::rows`].
pub type ActionRow = (Action, &'static str, &'static str, &'static str, &'static str);

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
        NextHunk "next_hunk" "change" "diff: next change",
        PreviousHunk "previous_hunk" "change" "diff: previous change",
        NextUnviewed "next_unviewed" "unviewed" "diff: next change that is not viewed",
        PreviousUnviewed "previous_unviewed" "unviewed" "diff: previous change that is not viewed",
        NextFile "next_file" "file" "diff: next file",
        PreviousFile "previous_file" "file" "diff: previous file",
        NextFinding "next_finding" "finding" "diff: next finding",
        PreviousFinding "previous_finding" "finding" "diff: previous finding",
        ScrollLeft "scroll_left" "left" "code of the diff to the left; else left",
        ScrollRight "scroll_right" "right" "code of the diff to the right; else right",
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
        Diff "diff" "diff" "diff of what is selected, and back",
        Reveal "reveal" "secrets" "show or mask the secrets of the page",
        Ledger "ledger" "ledger" "ledger for the assistant",
        LeftOut "left_out" "left out" "context: sent and left out",
        Unfold "unfold" "unfold" "fold or unfold runs, a language",
        Zoom "zoom" "zoom" "zoom the pane, or unzoom",
        SideBySide "side_by_side" "sides" "diff: unified or side by side",
        Wrap "wrap" "wrap" "diff: long lines continue in the next row, or are cut",
        IgnoreSpace "ignore_space" "space" "diff: ignore white space, or show it",
        Viewed "viewed" "viewed" "file viewed; diff: finding's text, or a page",
        ViewedChange "viewed_change" "viewed" "diff: change viewed, and on to the next",
    }
    "Decide" {
        Mark "mark" "mark" "mark or unmark, and go down",
        MarkRange "mark_range" "range" "mark a range: move, then decide",
        MarkAll "mark_all" "all" "mark all in the list, or none",
        Addressed "addressed" "addressed" "addressed: it is fixed",
        Dismiss "dismiss" "dismiss" "dismiss; x1 to x6 with a reason at once",
        Repeat "repeat" "repeat" "repeat the last verdict with its reason",
        Reopen "reopen" "reopen" "open again",
        Note "note" "note" "write a note; it decides nothing",
        Ask "ask" "ask" "ask its reviewer; says the cost first",
        AskOrHelp "ask_or_help" "ask" "ask its reviewer if it can; else help",
        SnoozeFinding "snooze_finding" "snooze" "snooze the finding until a date or a change",
        Rate "rate" "rate" "change priority or kind; later reports keep it",
        Triage "triage" "triage" "triage mode: one finding at a time",
        Undo "undo" "undo" "undo the last decision",
        Redo "redo" "redo" "redo",
        Fix "fix" "fix" "fix: make, apply, undo or drop a patch",
    }
    "Triage mode" {
        Reason1 "reason_1" "not worth it" "dismiss: not worth it",
        Reason2 "reason_2" "false alarm" "dismiss: false alarm",
        Reason3 "reason_3" "intended" "dismiss: intended",
        Reason4 "reason_4" "generated" "dismiss: generated",
        Reason5 "reason_5" "other" "dismiss: another reason",
        Later "later" "later" "later: go on without a verdict",
        Skip "skip" "next" "next finding",
        Return "return" "previous" "previous finding",
    }
    "Live view" {
        PreviousTurn "previous_turn" "turn" "previous turn",
        NextTurn "next_turn" "turn" "next turn",
        FirstTurn "first_turn" "first turn" "first turn",
        Follow "follow" "follow" "last turn, and follow the run",
    }
    "Find" {
        Filter "filter" "filter" "filter by status, kind, path, text",
        Search "search" "search" "search",
        Order "order" "sort" "sort and group the lists; group the figures",
    }
    "Knowledge" {
        Mute "mute" "mute" "mute or unmute the pattern",
        Forget "forget" "forget" "delete the pattern (asks)",
        Export "export" "export" "export patterns to a file",
        Reload "reload" "reload" "reload",
    }
    "Act" {
        Review "review" "review" "review: choose scope and reviewer",
        Cancel "cancel" "cancel run" "cancel the run (asks)",
        Pause "pause" "pause" "pause or resume the run",
        Watch "watch" "watch" "toggle watch mode",
        Sync "sync" "sync" "exchange records with the team",
        Snooze "snooze" "snooze" "pause automatic reviews",
        Copy "copy" "copy" "copy place, finding or id",
        CopyPrompt "copy_prompt" "prompt" "copy findings as a prompt",
        Edit "edit" "edit" "open the editor at the line",
        Comment "comment" "comment" "write a finding of your own at the line",
        Rewrite "rewrite" "rewrite" "rewrite or withdraw a finding of your own",
        Palette "palette" "commands" "go to anything: commands, findings, files",
        Help "help" "help" "this help",
        Mouse "mouse" "mouse" "mouse on or off",
        NextTheme "next_theme" "theme" "next theme",
        KeepTheme "keep_theme" "keep theme" "keep the theme in the settings",
        Redraw "redraw" "redraw" "redraw the screen",
        Suspend "suspend" "suspend" "suspend to the shell",
        Quit "quit" "quit" "quit; reviews continue",
    }
    "Answer" {
        Accept "accept" "accept" "accept",
        Abort "abort" "back" "cancel",
        NewLine "new_line" "next line" "begin the next line of a comment",
        NextReviewer "next_reviewer" "reviewer" "next reviewer",
        PreviousReviewer "previous_reviewer" "reviewer" "previous reviewer",
        Force "force" "force" "review again although it was reviewed",
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
    /// Returns the rows of all actions: those of the table, then those that open views.
    pub fn rows() -> impl Iterator<Item = ActionRow> {
        let views = VIEWS.iter().enumerate();
        let views = views.map(|(index, view)| (Self::View(index), view.group, view.action, view.label, view.help));
        Self::TABLE.iter().copied().chain(views)
    }

    /// Returns the label of the action in the footer; [`Keymap::label`] knows the names of the user's commands.
    pub fn footer_label(self) -> &'static str {
        self.row().map_or("", |row| row.3)
    }

    /// Returns the name of the action in the keymap.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.2)
    }

    /// Returns the group of the action in the help.
    pub fn group(self) -> &'static str {
        self.row().map_or("", |row| row.1)
    }

    /// Returns the help text of the action.
    pub fn help_text(self) -> &'static str {
        self.row().map_or("", |row| row.4)
    }

    /// Returns the help text of the action in a context: `Accept` begins a review in the form and opens a row of a menu.
    pub fn help_text_in(self, context: KeyContext) -> &'static str {
        use KeyContext as C;
        if let C::View(view) = context
            && let Some((_, text)) = view.help.iter().find(|(action, _)| *action == self)
        {
            return text;
        }
        match (self, context) {
            (Self::Abort, C::View(_) | C::Triage) => "leave the view",
            (Self::Abort, C::Help) => "leave the help",
            (Self::Abort, C::Menu) => "back",
            (Self::Abort, C::Confirm) => "no, back",
            (Self::Accept, C::Triage) => "apply the patch; leave after the last finding",
            (Self::Accept, C::Menu) => "open or do what is selected",
            (Self::Accept, C::ReviewForm) => "begin the review",
            (Self::Accept, C::Confirm) => "yes",
            _ => self.help_text(),
        }
    }

    fn row(self) -> Option<ActionRow> {
        Self::rows().find(|row| row.0 == self)
    }
}

impl FromStr for Action {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::rows().find(|row| row.2 == name).map(|row| row.0).ok_or_else(|| {
            let meant = did_you_mean(name, Self::rows().map(|row| row.2));
            format!("{name:?} is no action{meant}")
        })
    }
}
