//! Tests the table of views: their keys, and the contexts that they bring along.

use ratatui::layout::Rect;

use super::*;
use crate::config::{KeyPreset, KeymapFile, embedded_keymaps};
use crate::tui::keymap::Keymap;
use crate::tui::tests::support::{press, screen, showing, view};
use crate::tui::theme::Role;

/// Row of a view, as a file of its own has it.
static COUNTER: ViewEntry = ViewEntry {
    action: "counter",
    group: "Panes",
    label: "counter",
    help: "counts the rows that were marked",
    key: "Ctrl-k",
    open: |app, _commands| app.views.open(CounterView::default()),
    context: Some(&COUNTER_KEYS),
};

static COUNTER_KEYS: ViewContext = ViewContext {
    name: "counter",
    title: "the counter",
    keys: &[("m", "mark"), ("q", "abort"), ("Esc", "abort")],
    help: &[(Action::Mark, "count one more")],
    group: "",
    place: (file!(), line!()),
};

#[derive(Debug, Default)]
struct CounterView {
    count: usize,
}

impl View for CounterView {
    fn key_context(&self) -> KeyContext {
        KeyContext::View(&COUNTER_KEYS)
    }

    fn is_window(&self) -> bool {
        false
    }

    fn handle_key(&mut self, _app: &mut App, press: KeyPress, _commands: &mut Vec<AppCommand>) -> ViewFlow {
        match press.action {
            Some(Action::Abort) => return ViewFlow::Close,
            Some(Action::Mark) => self.count += 1,
            Some(Action::Down) => self.count += 10,
            _ => {}
        }
        ViewFlow::Open
    }

    fn draw(&self, painter: &mut Painter<'_>, layout: &ScreenLayout) {
        painter.fill(Rect::new(0, 1, layout.header.width, 20), painter.style(Role::Normal));
        painter.draw_text(1, 2, 40, &format!("counted {}", self.count), Role::Normal);
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        with_labels([Action::Mark, Action::Abort, Action::Help])
    }
}

#[test]
fn a_view_brings_the_keys_of_its_context_in_its_own_file() {
    let contexts: Vec<&'static ViewContext> =
        VIEWS.iter().copied().chain([&COUNTER]).filter_map(|entry| entry.context).collect();
    let mut files = embedded_keymaps(KeyPreset::Vim);
    let text = "[counter]\nM = 'mark'\nq = false\n";
    files.push(KeymapFile { name: "mine.toml".to_owned(), text: text.into() });
    let (keymap, faults) = Keymap::from_views(&contexts, &files, &[]);
    assert_eq!(faults, []);
    let mut app = showing(160, 48, view());
    app.keymap = keymap;
    (COUNTER.open)(&mut app, &mut Vec::new());
    // A key of the view, one of the user's keymap, one of all views, and one that the user has taken away.
    press(&mut app, "m M j q");
    assert!(screen(&app).contains("counted 12"), "{}", screen(&app));
    press(&mut app, "?");
    let help = screen(&app);
    assert!(help.contains("Here: the counter") && help.contains("count one more"), "{help}");
    press(&mut app, "Esc Esc");
    assert!(app.views.is_empty(), "{}", screen(&app));
    let bindings = app.keymap.bindings(KeyContext::View(&COUNTER_KEYS));
    let own = bindings.iter().find(|binding| binding.action == Some(Action::Mark)).expect("a key");
    assert_eq!(app.keymap.files[own.origin.file].name, file!());
    assert_eq!(own.origin.line, COUNTER_KEYS.place.1 as usize);
}

#[test]
fn mistakes_in_the_keys_of_a_view_are_told_with_its_file() {
    static BROKEN: ViewContext = ViewContext {
        name: "broken",
        title: "the broken view",
        keys: &[("m", "mark"), ("m", "abort"), ("Hyper-x", "down"), ("x", "fly"), ("n", "next_match")],
        help: &[],
        group: "",
        place: ("src/tui/views/broken.rs", 7),
    };
    let (keymap, faults) = Keymap::from_views(&[&BROKEN], &embedded_keymaps(KeyPreset::Vim), &[]);
    let said: Vec<String> = faults.iter().map(ToString::to_string).filter(|fault| fault.contains("broken")).collect();
    let place = "src/tui/views/broken.rs:7:1: [broken]";
    assert_eq!(
        said,
        [
            format!("{place} m: collides with m"),
            format!("{place} Hyper-x: \"Hyper-x\" is no key"),
            format!("{place} x: \"fly\" is no action"),
        ]
    );
    let context = KeyContext::View(&BROKEN);
    assert_eq!(keymap.key_text(context, Action::Mark), "m");
    assert!(keymap.contexts().any(|known| known == context));
}

#[test]
fn views_have_contexts_of_their_own() {
    let views: Vec<&str> = VIEWS.iter().filter_map(|entry| entry.context).map(|context| context.name).collect();
    let keymap = Keymap::from_preset(KeyPreset::Vim);
    let mut names: Vec<&str> = keymap.contexts().map(KeyContext::name).collect();
    assert!(views.iter().all(|view| names.contains(view)), "{names:?}");
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "each name stands for one context: {names:?}");
}

#[test]
fn the_key_of_a_row_opens_its_view_and_closes_it() {
    for (index, entry) in VIEWS.iter().enumerate() {
        let mut app = showing(160, 48, view());
        press(&mut app, entry.key);
        assert!(app.views.covers_panes() && app.views.len() == 1, "{}: {}", entry.action, screen(&app));
        press(&mut app, "?");
        assert!(app.keymap.help_text(Action::View(index)) == entry.help, "{}", entry.action);
        press(&mut app, "Esc");
        press(&mut app, entry.key);
        assert!(app.views.is_empty(), "{}: {}", entry.action, screen(&app));
    }
}
