//! Palette, help, commands of the user, and prompts that keep their text to themselves.

use proptest::prelude::*;

use super::looks::{SIZES, assert_looks};
use super::support::{finding_id, many, press, run_id, screen, send, showing, type_text, view};
use crate::config::{
    CommandPart, CommandPlace, CommandPrompt, CommandWord, CustomCommand, KeyPreset, NotifyMode, SettingLocation,
    embedded_keymaps,
};
use crate::tui::app::{App, MotionMode, Pane};
use crate::tui::custom_commands::CommandCall;
use crate::tui::glyphs;
use crate::tui::input::{KeyCode, KeyEvent, TerminalInput};
use crate::tui::keymap::{Action, Keymap};
use crate::tui::message::{AppCommand, AppMessage};
use crate::tui::theme::{Background, ColorDepth, Role, ThemeChoice, ThemeName};
use crate::tui::views::menu::MenuView;
use crate::tui::views::palette::PaletteView;
use crate::tui::views::palette::matching::find_matches;
use crate::tui::views::prompt::PromptView;
use crate::tui::views::{ViewReply, ViewRequest};

/// Types text and plays the palette's thread; returns the other commands.
fn type_and_answer(app: &mut App, text: &str) -> Vec<AppCommand> {
    let commands = type_text(app, text);
    answer(app, commands)
}

/// Plays the palette's thread for the queries among commands; returns the other commands.
fn answer(app: &mut App, commands: Vec<AppCommand>) -> Vec<AppCommand> {
    let mut others = Vec::new();
    for command in commands {
        match command {
            AppCommand::View(ViewRequest::Palette(query)) => {
                let reply = ViewReply::Palette(find_matches(&query));
                others.extend(send(app, AppMessage::View(reply)));
            }
            other => others.push(other),
        }
    }
    others
}

#[test]
fn the_palette_lists_commands_with_their_keys_and_finds_everything_else() {
    for (columns, rows) in SIZES {
        let mut app = showing(columns, rows, view());
        press(&mut app, ":");
        assert_looks("palette", &mut app);
        type_and_answer(&mut app, "total");
        assert_looks("palette-typed", &mut app);
        assert_eq!(app.views.len(), 1);
        press(&mut app, "Esc");
        assert!(app.views.is_empty());
    }
}

#[test]
fn enter_runs_a_command_or_goes_there() {
    let mut app = showing(100, 30, view());
    press(&mut app, "Ctrl-p");
    type_and_answer(&mut app, "zoom the pane");
    press(&mut app, "Enter");
    assert!(app.panes.zoomed && app.views.is_empty());

    press(&mut app, ":");
    type_and_answer(&mut app, &run_id(1));
    press(&mut app, "Enter");
    assert_eq!(app.panes.focus, Pane::Runs);
    assert_eq!(app.selected_run().map(|run| run.id.to_owned()), Some(run_id(1)));

    press(&mut app, ":");
    type_and_answer(&mut app, "retry 84");
    press(&mut app, "Enter");
    assert_eq!(app.panes.focus, Pane::Findings);
    assert_eq!(app.selected_finding().map(|row| row.id.to_owned()), Some(finding_id(5)));

    // A finding that the filter hides is listed until the filter changes.
    press(&mut app, ":");
    type_and_answer(&mut app, &finding_id(4));
    press(&mut app, "Enter");
    assert_eq!(app.selected_finding().map(|row| row.id.to_owned()), Some(finding_id(4)));

    press(&mut app, ":");
    type_and_answer(&mut app, "ascii");
    press(&mut app, "Enter");
    assert_eq!(app.display.glyphs, glyphs::ASCII);
}

#[test]
fn settings_are_found_changed_and_opened_in_the_editor() {
    let mut app = showing(100, 30, view());
    let choose = |app: &mut App, text: &str| {
        press(app, ":");
        type_and_answer(app, text);
        let shown = screen(app);
        (shown, press(app, "Enter"))
    };
    let (shown, _) = choose(&mut app, "finding_rows");
    assert!(shown.contains("setting finding_rows: two lines for each finding, until you quit"), "{shown}");
    assert!(shown.contains("now 1"), "{shown}");
    assert_eq!(app.finding_list.row_height, 2);
    choose(&mut app, "motion: clocks");
    assert_eq!(app.display.motion, MotionMode::Reduced);
    choose(&mut app, "notify: ring the bell");
    assert_eq!(app.preferences.notify, NotifyMode::Bell);
    choose(&mut app, "finding_order");
    assert!(app.views.front_as::<MenuView>().is_some(), "{}", screen(&app));
    press(&mut app, "Esc");
    let (shown, commands) = choose(&mut app, "on_open");
    assert!(shown.contains("now review"), "{shown}");
    let edits = |commands: &[AppCommand], wanted: Option<&str>| {
        commands.iter().any(|command| matches!(command, AppCommand::EditSettings { setting } if *setting == wanted))
    };
    assert!(edits(&commands, Some("on_open")), "{commands:?}");
    let (_, commands) = choose(&mut app, "open config.toml");
    assert!(edits(&commands, None), "{commands:?}");
}

#[test]
fn enter_waits_for_the_rows_of_the_typed_text() {
    let mut app = showing(100, 30, view());
    press(&mut app, ":");
    let query = type_text(&mut app, "zoom the pane");
    assert_eq!(press(&mut app, "Enter").len(), 0);
    assert!(!app.panes.zoomed, "the rows of an older text are not run");
    assert!(app.views.front_as::<PaletteView>().is_some());
    answer(&mut app, query);
    assert!(app.panes.zoomed && app.views.is_empty());

    // More text, and the order is off.
    press(&mut app, ":");
    let mut queries = type_text(&mut app, "zoom");
    press(&mut app, "Enter");
    queries.extend(type_text(&mut app, " the"));
    answer(&mut app, queries);
    assert!(app.views.front_as::<PaletteView>().is_some());
}

#[test]
fn an_action_from_the_palette_reaches_the_view_behind_it() {
    let mut app = showing(100, 30, view());
    press(&mut app, "S");
    assert_eq!(app.views.len(), 1);
    press(&mut app, ":");
    assert_eq!(app.views.len(), 2);
    let commands = type_and_answer(&mut app, "redraw the screen");
    assert_eq!(commands.len(), 0);
    let commands = press(&mut app, "Enter");
    assert!(matches!(commands.as_slice(), [AppCommand::Redraw]), "{commands:?}");
    assert_eq!(app.views.len(), 1, "the statistics stay");
    press(&mut app, "?");
    assert_eq!(app.views.len(), 2, "help opens in front of any view");
}

#[test]
fn a_key_press_in_the_palette_does_not_search_a_hundred_thousand_findings() {
    let mut app = showing(100, 30, many(3_000));
    press(&mut app, ":");
    let commands = press(&mut app, "u");
    assert!(
        matches!(commands.as_slice(), [AppCommand::View(ViewRequest::Palette(query))] if query.text == "u"),
        "{commands:?}"
    );
}

#[test]
fn help_begins_with_the_present_place_and_is_searched_by_typing() {
    for (columns, rows) in SIZES {
        let mut app = showing(columns, rows, view());
        press(&mut app, "?");
        assert_looks("help-here", &mut app);
        press(&mut app, "d i s m");
        assert_looks("help-search", &mut app);
        press(&mut app, "Esc");
        assert_eq!(app.views.len(), 1, "Esc ends the search first");
        press(&mut app, "/ q u i t");
        assert!(screen(&app).contains("quit; reviews continue"));
        press(&mut app, "Esc q");
        assert!(app.views.is_empty());
    }
}

#[test]
fn a_long_text_of_the_help_is_found_and_shown_whole() {
    for (columns, rows) in SIZES {
        let mut app = showing(columns, rows, view());
        press(&mut app, "? / g r o u p Space t h e Space f i g u r e s");
        let shown = screen(&app);
        assert!(shown.contains("sort and group the lists; group the"), "{columns}x{rows}:\n{shown}");
        // In the line of the search, and below the beginning of the text.
        assert_eq!(shown.matches("figures").count(), 2, "{columns}x{rows}:\n{shown}");
    }
}

#[test]
fn help_explains_the_glyphs_and_scrolls_to_its_end() {
    let mut app = showing(80, 24, view());
    press(&mut app, "?");
    let mut seen = screen(&app);
    for _ in 0..20 {
        press(&mut app, "PageDown");
        seen.push_str(&screen(&app));
    }
    for text in [
        "finding: open",
        "finding: disputed in a panel",
        "run: completed",
        "delete a word",
        "position in a list",
        "frames",
    ] {
        assert!(seen.contains(text), "{text}");
    }
    let end = screen(&app);
    press(&mut app, "j");
    assert_eq!(screen(&app), end, "the last line is the last");
    press(&mut app, "g");
    assert!(screen(&app).contains("Here: findings"));
}

fn command(name: &str, key: &str, parts: Vec<CommandPart>, shell: bool) -> CustomCommand {
    CustomCommand {
        name: name.to_owned(),
        key: key.to_owned(),
        run: vec![CommandWord(vec![CommandPart::Text("echo".to_owned())]), CommandWord(parts)],
        shell,
        pause: false,
        place: CommandPlace::Background,
        prompts: Vec::new(),
        location: SettingLocation::File { path: "config.toml".into(), line: 3, column: 1 },
    }
}

#[test]
fn a_command_of_the_user_gets_the_fields_of_the_finding() {
    use crate::config::CommandField as Field;
    let place = [Field::Path, Field::Line].map(CommandPart::Field);
    let [path, line] = place.clone();
    let parts = vec![path, CommandPart::Text(":".to_owned()), line];
    let commands = [command("where", "g w", parts.clone(), false), command("shell", "Ctrl-t", parts, true)];
    let (keymap, faults) = Keymap::from_layers(&embedded_keymaps(KeyPreset::Arrows), &commands);
    assert_eq!(faults, []);
    let mut app = showing(100, 30, view());
    app.keymap = keymap;
    let first = app.selected_finding().map(|row| (row.path.to_owned(), row.line_start)).expect("a finding");
    let sent = press(&mut app, "g w");
    let [AppCommand::RunProgram(call)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(call.words, ["echo".to_owned(), format!("{}:{}", first.0, first.1)]);
    assert!(call.variables.contains(&("REVDECK_PATH".to_owned(), first.0)), "{call:?}");

    // A shell gets no field as text.
    let sent = press(&mut app, "Ctrl-t");
    let [AppCommand::RunProgram(call)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(call.words[..2], ["sh".to_owned(), "-c".to_owned()]);
    assert_eq!(call.words[3], "\"${REVDECK_PATH}\":\"${REVDECK_LINE}\"");

    send(&mut app, AppMessage::ProgramEnded(Ok("where: done: src/config.rs:7".to_owned())));
    assert!(screen(&app).contains("where: done: src/config.rs:7"));
    press(&mut app, "? w h e r e");
    assert!(screen(&app).contains("where: echo {path}:{line}"), "{}", screen(&app));

    let mut empty = showing(100, 30, many(0));
    empty.keymap = app.keymap.clone();
    assert_eq!(press(&mut empty, "g w").len(), 0);
    assert!(screen(&empty).contains("where needs {path}, which nothing selected has"), "{}", screen(&empty));
}

/// A command with two questions: a typed one and one with choices, both with an offered answer.
fn asking_command(key: &str, shell: bool) -> CustomCommand {
    let prompt = |name: &str, title: &str, default: &str, choices: &[&str]| CommandPrompt {
        name: name.to_owned(),
        title: title.to_owned(),
        default: default.to_owned(),
        choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
    };
    let answer = |name: &str| CommandPart::Answer(name.to_owned());
    let text = |text: &str| CommandPart::Text(text.to_owned());
    let id = CommandPart::Field(crate::config::CommandField::Id);
    let parts = vec![id, text(" "), answer("reason"), text("/"), answer("kind_of")];
    let prompts = vec![
        prompt("reason", "Why is it not now?", "no time", &[]),
        prompt("kind_of", "What kind?", "style", &["bug", "style"]),
    ];
    CustomCommand { prompts, ..command("report", key, parts, shell) }
}

/// Creates an app whose key Ctrl-t calls a command with questions.
fn asking_app(shell: bool) -> App {
    let (keymap, faults) = Keymap::from_layers(&embedded_keymaps(KeyPreset::Vim), &[asking_command("Ctrl-t", shell)]);
    assert_eq!(faults, []);
    let mut app = showing(100, 30, view());
    app.keymap = keymap;
    app
}

/// Returns the calls of programs among the commands.
fn calls(commands: Vec<AppCommand>) -> Vec<CommandCall> {
    let calls = commands.into_iter().filter_map(|command| match command {
        AppCommand::RunProgram(call) => Some(call),
        _ => None,
    });
    calls.collect()
}

#[test]
fn a_command_of_the_user_asks_before_it_runs_and_gets_the_answers_as_they_are() {
    let mut app = asking_app(false);
    let id = app.selected_finding().map(|row| row.id.to_owned()).expect("a finding");
    assert_eq!(calls(press(&mut app, "Ctrl-t")), []);
    let shown = screen(&app);
    assert!(shown.contains("Why is it not now?  no time") && shown.contains("1 of 2"), "{shown}");
    // What is typed takes the place of the offered answer, and is no key.
    assert_eq!(calls(type_text(&mut app, "$(touch x) {id} q")), []);
    assert_eq!(calls(press(&mut app, "Enter")), []);
    let shown = screen(&app);
    assert!(shown.contains("What kind? (2 of 2)") && shown.contains("1  bug"), "{shown}");
    let sent = calls(press(&mut app, "1"));
    assert!(app.views.is_empty(), "{}", screen(&app));
    let [call] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(call.words, ["echo".to_owned(), format!("{id} $(touch x) {{id}} q/bug")]);
    for (name, value) in [("REASON", "$(touch x) {id} q"), ("KIND_OF", "bug")] {
        let variable = (format!("REVDECK_ANSWER_{name}"), value.to_owned());
        assert!(call.variables.contains(&variable), "{call:?}");
    }

    // The offered answers, in a shell, which gets none of them as text.
    let mut app = asking_app(true);
    let sent = calls(press(&mut app, "Ctrl-t Enter Enter"));
    let [call] = sent.as_slice() else { panic!("{sent:?}") };
    let line = "\"${REVDECK_ID}\" \"${REVDECK_ANSWER_REASON}\"/\"${REVDECK_ANSWER_KIND_OF}\"";
    assert_eq!(call.words[3], line);
    for (name, value) in [("REASON", "no time"), ("KIND_OF", "style")] {
        let variable = (format!("REVDECK_ANSWER_{name}"), value.to_owned());
        assert!(call.variables.contains(&variable), "{call:?}");
    }
    // An answer may be empty.
    let sent = calls(press(&mut app, "Ctrl-t Ctrl-u Enter Enter"));
    assert!(sent[0].variables.contains(&("REVDECK_ANSWER_REASON".to_owned(), String::new())), "{sent:?}");
}

#[test]
fn a_command_that_is_left_at_a_question_does_not_run() {
    for keys in ["Ctrl-t Esc", "Ctrl-t Enter Esc", "Ctrl-t Enter q"] {
        let mut app = asking_app(false);
        assert_eq!(calls(press(&mut app, keys)), [], "{keys}");
        assert!(app.views.is_empty(), "{keys}");
        let said = app.notice.as_ref().map(|notice| notice.text.as_str());
        assert_eq!(said, Some("report: nothing was run"), "{keys}");
    }
    // What the command lacks is said before anything is asked.
    let mut empty = showing(100, 30, many(0));
    empty.keymap = asking_app(false).keymap.clone();
    assert_eq!(calls(press(&mut empty, "Ctrl-t")), []);
    assert!(empty.views.is_empty());
    assert!(screen(&empty).contains("report needs {id}, which nothing selected has"), "{}", screen(&empty));
}

#[test]
fn a_question_that_is_too_long_for_its_line_stands_above_it() {
    let question = "Why can this finding wait until the next release, and who has agreed to that?";
    let mut asking = asking_command("Ctrl-t", false);
    asking.prompts[0].title = question.to_owned();
    let (keymap, faults) = Keymap::from_layers(&embedded_keymaps(KeyPreset::Vim), &[asking]);
    assert_eq!(faults, []);
    for (columns, rows) in [(100, 30), (80, 24), (40, 16)] {
        let mut app = showing(columns, rows, view());
        app.keymap = keymap.clone();
        press(&mut app, "Ctrl-t");
        let shown = screen(&app);
        let words: String = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(question), "{columns}x{rows}: {shown}");
        let line = shown.lines().rev().find(|line| line.contains("report  no time"));
        assert!(line.is_some(), "{columns}x{rows}: {shown}");
    }
    // The lowest screen has no row for it.
    let mut app = showing(20, 5, view());
    app.keymap = keymap;
    press(&mut app, "Ctrl-t");
    assert!(screen(&app).contains("Why can"), "{}", screen(&app));
}

#[test]
fn keys_of_commands_are_checked_like_a_keymap() {
    let keys = |key: &str, other: &str| {
        let commands = [command("one", other, Vec::new(), false), command("two", key, Vec::new(), false)];
        let (map, faults) = Keymap::from_layers(&embedded_keymaps(KeyPreset::Vim), &commands);
        (map, faults.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    for (key, fault) in [
        ("Entre", Some("config.toml:3:1: [commands.two] key: \"Entre\" is no key; did you mean \"Enter\"?")),
        (
            "1 x",
            Some(
                "config.toml:3:1: [commands.two] key: 1x: a sequence cannot begin with a digit, because digits are counts",
            ),
        ),
        ("Ctrl-t x", Some("config.toml:3:1: [commands.two] Ctrl-t x collides with Ctrl-t in line 3")),
        ("Ctrl-y", None),
        ("", None),
    ] {
        assert_eq!(keys(key, "Ctrl-t").1, fault.map(str::to_owned).into_iter().collect::<Vec<_>>(), "{key}");
    }
    let (map, _) = keys("a", "");
    let a: KeyEvent = "a".parse().expect("a key");
    assert_eq!(
        map.action(crate::tui::keymap::KeyContext::Findings, a),
        Some(Action::Custom(1)),
        "it lies over revdeck's"
    );
}

/// Returns true for a command that a prompt may send while text is typed.
fn is_harmless(command: &AppCommand) -> bool {
    matches!(
        command,
        AppCommand::Filter { .. }
            | AppCommand::Load { .. }
            | AppCommand::LoadFiles { .. }
            | AppCommand::ListFiles { .. }
            | AppCommand::LoadReported { .. }
            | AppCommand::View(ViewRequest::Palette(_))
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn text_that_is_typed_into_a_prompt_runs_nothing(typed in "\\PC{1,30}") {
        for preset in KeyPreset::ALL {
            for opener in ["f", "/", "x", "W", "r 6", "r 7", ":"] {
                // The first digit in the window of dismissals is a choice; behind a letter it is text.
                let typed = if opener == "x" { format!("v{typed}") } else { typed.clone() };
                let mut app = showing(100, 30, view());
                app.keymap = Keymap::from_preset(*preset);
                press(&mut app, opener);
                press(&mut app, "Ctrl-u");
                let (focus, tab, zoomed) = (app.panes.focus, app.detail.tab, app.panes.zoomed);
                prop_assert_eq!(app.views.len(), 1);
                for character in typed.chars() {
                    let key = KeyEvent::plain(KeyCode::Char(character));
                    let commands = send(&mut app, AppMessage::Input(TerminalInput::Key(key)));
                    prop_assert!(commands.iter().all(is_harmless), "{preset} {opener}: {commands:?}");
                }
                prop_assert_eq!(app.views.len(), 1);
                prop_assert_eq!((app.panes.focus, app.detail.tab, app.panes.zoomed), (focus, tab, zoomed));
                let line = match app.views.front_as::<PromptView>() {
                    Some(prompt) => prompt.line.text().to_owned(),
                    None => app.views.front_as::<PaletteView>().map_or_else(String::new, |view| view.text().to_owned()),
                };
                let mut expected = crate::tui::line_edit::LineEdit::default();
                typed.chars().for_each(|character| expected.insert(character.encode_utf8(&mut [0; 4])));
                prop_assert_eq!(line, expected.text(), "{} {}", preset, opener);
            }
        }
    }
}

#[test]
fn the_theme_picker_shows_each_theme_at_once_and_keeps_it_only_with_enter() {
    let kept = |commands: &[AppCommand]| -> Vec<String> {
        let name = |command: &AppCommand| match command {
            AppCommand::KeepTheme(name) => Some(name.clone()),
            _ => None,
        };
        commands.iter().filter_map(name).collect()
    };
    let mut app = showing(100, 30, view());
    let open = |app: &mut App| {
        press(app, ":");
        type_and_answer(app, "theme choose");
        press(app, "Enter");
        assert!(screen(app).contains(" Theme "), "{}", screen(app));
    };
    open(&mut app);
    let accent = |app: &App| app.display.theme.style(Role::Accent);
    let before = accent(&app);
    press(&mut app, "Down Down");
    assert_eq!(app.display.themes.name(), "light");
    assert_ne!(accent(&app), before, "the screen shows it");
    assert_eq!(kept(&press(&mut app, "Esc")), [""; 0]);
    assert_eq!((app.display.themes.name(), app.views.is_empty()), ("auto", true));
    assert_eq!(accent(&app), before);
    open(&mut app);
    press(&mut app, "Up");
    assert_eq!(app.display.themes.name(), "auto", "there is none above");
    let commands = press(&mut app, "Down Enter");
    assert_eq!(kept(&commands), ["dark"]);
    send(&mut app, AppMessage::ThemeKept(Ok("theme dark is kept".to_owned())));
    open(&mut app);
    assert!(screen(&app).lines().any(|line| line.contains("dark") && line.contains("kept")), "{}", screen(&app));
    // Without colours there is nothing to choose.
    app.display.themes = ThemeChoice::new(ThemeName::Auto, Background::Dark, ColorDepth::None);
    press(&mut app, "Esc :");
    type_and_answer(&mut app, "theme choose");
    press(&mut app, "Enter");
    assert!(app.views.is_empty() && screen(&app).contains("only one theme"), "{}", screen(&app));
}

#[test]
fn the_theme_picker_fits_every_screen() {
    for (columns, rows) in SIZES {
        let mut app = showing(columns, rows, view());
        press(&mut app, ":");
        type_and_answer(&mut app, "theme choose");
        press(&mut app, "Enter Down");
        assert_looks("theme_picker", &mut app);
    }
}

#[test]
fn a_small_screen_shows_as_many_rows_as_it_has_and_the_selection_moves_among_them() {
    for (columns, rows, expected) in [(20, 5, 2), (36, 8, 4)] {
        let mut app = showing(columns, rows, view());
        press(&mut app, ":");
        let listed = |app: &App| -> Vec<String> {
            screen(app).lines().filter(|line| line.starts_with(" command ")).map(str::to_owned).collect()
        };
        let before = listed(&app);
        assert_eq!(before.len(), expected, "{}", screen(&app));
        press(&mut app, "Down");
        assert_eq!(listed(&app), before, "{}", screen(&app));
    }
}
