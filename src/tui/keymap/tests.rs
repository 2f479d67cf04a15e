use super::*;
use crate::config::{KeyPreset, KeymapFile, embedded_keymaps};
use crate::tui::input::KeyEvent;
use crate::tui::views::{knowledge, live};

fn key(text: &str) -> KeyEvent {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_presets_are_without_fault_and_every_action_has_a_key() {
    for preset in KeyPreset::ALL {
        let (map, faults) = Keymap::from_layers(&embedded_keymaps(*preset), &[]);
        assert_eq!(faults, [], "{preset}");
        for (action, group, name, ..) in Action::rows() {
            // Half a page and the search for the next match are luxury.
            let is_optional = matches!(action, Action::HalfPageDown | Action::HalfPageUp | Action::PageDown);
            let is_bound = map.contexts().any(|context| map.key_of(context, action).is_some());
            assert!(is_bound || is_optional && *preset != KeyPreset::Vim, "{preset}: no key does {group}/{name}");
        }
    }
}

#[test]
fn keys_of_views_have_the_places_where_the_common_keymap_names_them() {
    let map = Keymap::from_preset(KeyPreset::Vim);
    for (index, view) in VIEWS.iter().enumerate() {
        let action = Action::View(index);
        assert_eq!(map.action(KeyContext::Findings, key(view.key)), Some(action), "{}", view.action);
        assert_eq!(view.action.parse::<Action>(), Ok(action), "{}", view.action);
        let bindings = map.bindings(KeyContext::Global);
        let binding = bindings.iter().find(|binding| binding.action == Some(action)).expect("a key");
        let line = DEFAULT.lines().nth(binding.origin.line - 1).unwrap_or_default();
        assert!(line.contains(&format!("{:?} = {:?}", view.key, view.action)), "{line}");
        assert_eq!(map.files[binding.origin.file].name, "assets/keymap.toml");
    }
}

#[test]
fn a_users_file_takes_the_keys_of_views_or_moves_them() {
    let mut files = embedded_keymaps(KeyPreset::Vim);
    let text = "[global]\nS = false\nX = 'stats'\nK = 'undo'\n";
    files.push(KeymapFile { name: "mine.toml".to_owned(), text: text.into() });
    let (map, faults) = Keymap::from_layers(&files, &[]);
    assert_eq!(faults, []);
    let found = ["S", "X", "K"].map(|name| map.action(KeyContext::Findings, key(name)).map(Action::name));
    assert_eq!(found, [None, Some("stats"), Some("undo")]);
}

#[test]
fn only_files_of_the_user_are_named_as_the_place_of_a_key() {
    let mut files = embedded_keymaps(KeyPreset::Vim);
    let text = "[stats]\n'q q' = 'top'\n'w' = 'top'\n";
    files.push(KeymapFile { name: "mine.toml".to_owned(), text: text.into() });
    let (map, faults) = Keymap::from_layers(&files, &[]);
    let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["mine.toml:2:1: [stats] qq takes the place of q (built-in)"]);
    for context in map.contexts() {
        for binding in map.bindings(context) {
            let place = map.files[binding.origin.file].describe_line(binding.origin.line);
            let is_mine = ["qq", "w"].contains(&binding.keys.to_string().as_str()) && context.name() == "stats";
            let expected = if is_mine { format!("mine.toml:{}", binding.origin.line) } else { "built-in".to_owned() };
            assert_eq!(place, expected, "{} in {}", binding.keys, context.name());
        }
    }
}

#[test]
fn terminals_and_multiplexers_keep_their_keys() {
    for preset in KeyPreset::ALL {
        let map = Keymap::from_preset(*preset);
        for context in map.contexts() {
            let name = context.name();
            for (taken, owner) in [("Ctrl-s", "XOFF"), ("Ctrl-q", "XON"), ("Ctrl-b", "tmux"), ("Ctrl-a", "screen")] {
                if context == KeyContext::Prompt && taken == "Ctrl-a" {
                    continue;
                }
                let found = map.find(context, &[key(taken)]);
                assert_eq!(found, KeyMatch::Unbound, "{preset}: {taken} in [{name}] belongs to {owner}");
            }
            let suspend = map.find(context, &[key("Ctrl-z")]);
            assert!(matches!(suspend, KeyMatch::Unbound | KeyMatch::Action(Action::Suspend)), "{preset}: [{name}]");
        }
    }
}

#[test]
fn the_preset_of_emacs_undoes_with_the_key_that_terminals_send_for_ctrl_slash() {
    let map = Keymap::from_preset(KeyPreset::Emacs);
    for name in ["Ctrl-_", "Ctrl-/"] {
        assert_eq!(map.action(KeyContext::Findings, key(name)), Some(Action::Undo), "{name}");
    }
}

#[test]
fn the_keys_of_the_issue_do_what_it_says() {
    let map = Keymap::from_preset(KeyPreset::Vim);
    let opening = |view: &str| view.parse::<Action>().unwrap_or_else(|error| panic!("{error}"));
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
        (KeyContext::Findings, "o", A::Order),
        (KeyContext::Findings, "O", A::Reopen),
        (KeyContext::Detail, ".", A::Repeat),
        (KeyContext::Findings, "i", A::Note),
        (KeyContext::Findings, "Z", A::SnoozeFinding),
        (KeyContext::Detail, "t", A::Triage),
        (KeyContext::Triage, "Enter", A::Accept),
        (KeyContext::Triage, "a", A::Addressed),
        (KeyContext::Triage, "1", A::Reason1),
        (KeyContext::Triage, "5", A::Reason5),
        (KeyContext::Triage, "Space", A::Later),
        (KeyContext::Triage, "u", A::Undo),
        (KeyContext::Triage, "j", A::Down),
        (KeyContext::Triage, "n", A::Skip),
        (KeyContext::Triage, "p", A::Return),
        (KeyContext::Triage, "Esc", A::Abort),
        (KeyContext::Runs, "V", opening("live")),
        (KeyContext::Findings, "V", opening("live")),
        (KeyContext::View(&live::CONTEXT), "Left", A::PreviousTurn),
        (KeyContext::View(&live::CONTEXT), "l", A::NextTurn),
        (KeyContext::View(&live::CONTEXT), "Home", A::FirstTurn),
        (KeyContext::View(&live::CONTEXT), "End", A::Follow),
        (KeyContext::View(&live::CONTEXT), "j", A::Down),
        (KeyContext::View(&live::CONTEXT), "Esc", A::Abort),
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
        (KeyContext::Runs, "K", opening("knowledge")),
        (KeyContext::View(&knowledge::CONTEXT), "m", A::Mute),
        (KeyContext::View(&knowledge::CONTEXT), "D", A::Forget),
        (KeyContext::View(&knowledge::CONTEXT), "x", A::Forget),
        (KeyContext::View(&knowledge::CONTEXT), "e", A::Export),
        (KeyContext::View(&knowledge::CONTEXT), "r", A::Reload),
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

/// Lays texts over each other as files `0.toml`, `1.toml` and so on; returns the map, the errors and the remarks.
fn lay(texts: &[&str]) -> (Keymap, Vec<String>, Vec<String>) {
    let file =
        |(index, text): (usize, &&str)| KeymapFile { name: format!("{index}.toml"), text: (*text).to_owned().into() };
    let files: Vec<KeymapFile> = texts.iter().enumerate().map(file).collect();
    let (map, faults) = Keymap::from_layers(&files, &[]);
    let lines = |level| faults.iter().filter(|fault| fault.level == level).map(ToString::to_string).collect();
    (map, lines(KeymapFaultLevel::Error), lines(KeymapFaultLevel::Remark))
}

const QUIT_AND_HELP: &str = "[global]\nq = 'quit'\n'?' = 'help'\n";

#[test]
fn mistakes_are_told_with_their_place_and_the_other_keys_hold() {
    for (text, error) in [
        ("[hovercraft]\nx = 'quit'", "1.toml:1:2: there is no context \"hovercraft\""),
        ("[finding]\nx = 'quit'", "1.toml:1:2: there is no context \"finding\"; did you mean \"findings\"?"),
        ("findings = 'quit'", "1.toml:1:1: [findings] must hold keys"),
        ("[global]\n\nw = 'fly'", "1.toml:3:1: [global] w: \"fly\" is no action"),
        ("[global]\nw = 'dismis'", "1.toml:2:1: [global] w: \"dismis\" is no action; did you mean \"dismiss\"?"),
        ("[global]\nw = true", "1.toml:2:1: [global] w: wanted the name of an action, or false to take the key away"),
        ("[global]\nHyper-x = 'down'", "1.toml:2:1: [global] \"Hyper-x\" is no key"),
        ("[global]\n\"] Entre\" = 'down'", "1.toml:2:1: [global] \"Entre\" is no key; did you mean \"Enter\"?"),
        ("[global]\n'a b c d e' = 'down'", "1.toml:2:1: [global] \"a b c d e\" has more than 4 keys"),
        ("[runs]\nCtrl-d = 'down'\nC-d = 'up'", "1.toml:3:1: [runs] Ctrl-d is bound twice: in line 2, too"),
        ("[runs]\nCtrl-d = 'down'\nC-d = false", "1.toml:3:1: [runs] Ctrl-d is bound twice: in line 2, too"),
        (
            "[runs]\ng = 'top'\n'g g' = 'top'",
            "1.toml:3:1: [runs] g is a key and the beginning of gg: bind one of them (the other is in line 2)",
        ),
        (
            "[runs]\n'g g g' = 'top'\n'gg' = 'top'",
            "1.toml:3:1: [runs] gg is a key and the beginning of g g g: bind one of them (the other is in line 2)",
        ),
        (
            "[global]\n'1 j' = 'down'",
            "1.toml:2:1: [global] 1 j: a sequence cannot begin with a digit, because digits are counts",
        ),
        ("[global]\n'] Esc' = 'down'", "1.toml:2:1: [global] ] Esc: Esc ends a sequence, so it cannot be part of one"),
        ("[prompt]\nx = 'abort'", "1.toml:2:1: [prompt] x: characters are text in a prompt"),
        ("[prompt]\n'Ctrl-x k' = 'abort'", "1.toml:2:1: [prompt] Ctrl-x k: a prompt knows no sequences"),
        ("[runs]\nx = 'accept'", "1.toml:2:1: [runs] x: \"accept\" does nothing in [runs]"),
        ("[confirm]\nx = 'dismiss'", "1.toml:2:1: [confirm] x: \"dismiss\" does nothing in [confirm]"),
        ("[global]\nq = false", "keymap: no key is left to quit"),
    ] {
        let (map, errors, remarks) = lay(&[QUIT_AND_HELP, &format!("{text}\n[detail]\nQ = 'quit'\n")]);
        assert_eq!((errors.as_slice(), remarks.len()), ([error.to_owned()].as_slice(), 0), "{text}");
        assert_eq!(map.action(KeyContext::Detail, key("Q")), Some(Action::Quit), "{text}");
    }
    let (map, errors) = Keymap::parse("[global");
    assert_eq!(errors.len(), 3, "not TOML, and no key to quit or for help: {errors:?}");
    assert_eq!(map.action(KeyContext::Runs, key("q")), Some(Action::Quit), "the embedded keys stand in");
}

#[test]
fn a_file_lies_over_the_files_before_it() {
    const LOWER: &str = "[global]\nq = 'quit'\n'?' = 'help'\n'] t' = 'next_tab'\n'] n' = 'next_match'\nx = 'dismiss'\n[runs]\nx = 'cancel'\n";
    let find = |upper: &str, context, keys: &str| {
        let (map, errors, remarks) = lay(&[LOWER, upper]);
        assert_eq!(errors, Vec::<String>::new(), "{upper}");
        let keys: KeySequence = keys.parse().unwrap_or_else(|error| panic!("{error}"));
        (map.find(context, keys.keys()), remarks)
    };
    use KeyContext::{Files, Global, Runs};
    use KeyMatch::{Prefix, Unbound};
    let none = Vec::<String>::new;
    let remark = |text: &str| vec![format!("1.toml:2:1: {text}")];
    for (upper, context, keys, expected, remarks) in [
        ("", Global, "]", Prefix, none()),
        ("", Files, "] t", KeyMatch::Action(Action::NextTab), none()),
        ("", Files, "x", KeyMatch::Action(Action::Dismiss), none()),
        ("", Runs, "x", KeyMatch::Action(Action::Cancel), none()),
        ("[global]\nx = 'undo'", Files, "x", KeyMatch::Action(Action::Undo), none()),
        ("[global]\nx = 'none'", Files, "x", Unbound, none()),
        ("[global]\nx = false", Runs, "x", KeyMatch::Action(Action::Cancel), none()),
        // In a pane, false takes the pane's key and the global one away.
        ("[runs]\nx = false", Runs, "x", Unbound, none()),
        ("[files]\nx = false", Files, "x", Unbound, none()),
        ("[files]\nx = false", Global, "x", KeyMatch::Action(Action::Dismiss), none()),
        ("[files]\nX = false", Files, "X", Unbound, remark("[files] X is not bound, so there is nothing to take away")),
        // A prefix goes with all its sequences.
        ("[global]\n']' = false", Files, "]", Unbound, none()),
        ("[files]\n']' = false", Files, "]", Unbound, none()),
        ("[files]\n']' = false", Runs, "]", Prefix, none()),
        ("[global]\n'] t' = false", Files, "] t", Unbound, none()),
        ("[global]\n'] t' = false", Files, "]", Prefix, none()),
        (
            "[global]\n']' = 'undo'",
            Files,
            "]",
            KeyMatch::Action(Action::Undo),
            remark("[global] ] takes the place of ]t (0.toml:4), ]n (0.toml:5)"),
        ),
        ("[global]\n'x x' = 'undo'", Files, "x", Prefix, remark("[global] xx takes the place of x (0.toml:6)")),
        // The keys of a pane join the sequences of the global context, or hide them.
        ("[files]\n'] f' = 'undo'", Files, "] f", KeyMatch::Action(Action::Undo), none()),
        ("[files]\n'] f' = 'undo'", Files, "] t", KeyMatch::Action(Action::NextTab), none()),
        ("[files]\n'] f' = 'undo'", Runs, "] f", Unbound, none()),
        ("[files]\n']' = 'undo'", Files, "]", KeyMatch::Action(Action::Undo), none()),
        ("[files]\n'x x' = 'undo'", Files, "x", Prefix, none()),
    ] {
        assert_eq!(find(upper, context, keys), (expected, remarks), "{keys:?} in {context:?} with {upper:?}");
    }
    let (map, ..) = lay(&[LOWER, "[global]\nX = 'dismiss'\n"]);
    let keys: Vec<String> = map.keys_of(Files, Action::Dismiss).iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["X", "x"], "the user's own key is shown first");
}
