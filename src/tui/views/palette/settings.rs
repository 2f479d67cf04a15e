//! Settings of the cockpit in the palette: each with its present value and what choosing its row does. A change holds until
//! the user quits; what counts only at a start, or for other commands, is opened in the editor.

use super::{PaletteEntry, PaletteTarget};
use crate::config::NotifyMode;
use crate::tui::app::{App, MotionMode, NoticeLevel};
use crate::tui::message::AppCommand;
use crate::tui::update;

/// Effect of choosing a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingChange {
    /// Shows findings in this number of lines.
    FindingRows(usize),
    /// Lets clocks step by a second, or by 10 seconds.
    Motion(bool),
    /// Signals outside the screen in this way.
    Notify(NotifyMode),
    /// Continues long lines of a diff, or cuts them.
    DiffWrap,
    /// Ignores white space in a diff, or shows it.
    DiffIgnoreSpace,
    /// Opens the menu of orders and groups of the findings.
    FindingOrder,
    /// Opens the menu of orders of the runs.
    RunOrder,
    /// Opens the menu of orders of the files.
    FileOrder,
    /// Opens the user's settings file in the editor, at this setting if there is one.
    Edit(Option<&'static str>),
}

/// Lists the settings: those that change at once, then those that the editor changes.
pub fn list_settings(app: &App) -> Vec<PaletteEntry> {
    use SettingChange as C;
    let entry = |change, name: &str, effect: &str, words: &str, now: &str| PaletteEntry {
        target: PaletteTarget::Setting(change),
        text: if name.is_empty() { effect.to_owned() } else { format!("{name}: {effect}") },
        words: format!("{words} setting settings preferences"),
        hint: if now.is_empty() { String::new() } else { format!("now {now}") },
    };
    let on_off = |is_on: bool| if is_on { "on" } else { "off" };
    let mut entries = Vec::new();

    let rows = app.finding_list.row_height.max(1);
    let (other, effect) = match rows {
        1 => (2, "two lines for each finding, until you quit"),
        _ => (1, "one line for each finding, until you quit"),
    };
    entries.push(entry(C::FindingRows(other), "finding_rows", effect, "list height", &rows.to_string()));
    let arrangement = app.finding_list.arrangement;
    let choose = "choose from a list, until you quit";
    entries.push(entry(C::FindingOrder, "finding_order", choose, "sort findings", arrangement.sort.word()));
    entries.push(entry(C::FindingOrder, "finding_groups", choose, "group findings", arrangement.grouping.word()));
    entries.push(entry(C::RunOrder, "run_order", choose, "sort runs branch", app.run_list.order.word()));
    entries.push(entry(C::FileOrder, "file_order", choose, "sort files tree folders", app.file_list.order().word()));

    // Nothing moves on a screen of plain lines.
    if !app.display.plain {
        let moves = app.display.motion == MotionMode::Full;
        let effect = match moves {
            true => "clocks step by 10 seconds, until you quit",
            false => "clocks step by a second, until you quit",
        };
        entries.push(entry(C::Motion(!moves), "motion", effect, "animation clock", on_off(moves)));
    }
    let notify = app.preferences.notify;
    for mode in NotifyMode::ALL.iter().filter(|mode| **mode != notify) {
        let effect = match mode {
            NotifyMode::Off => "no signal outside the screen, until you quit",
            NotifyMode::Bell => "ring the bell when a run needs you, until you quit",
            NotifyMode::Desktop => "notify the desktop when a run needs you, until you quit",
        };
        entries.push(entry(C::Notify(*mode), "notify", effect, "notification alert sound", notify.word()));
    }
    let options = app.detail.diff.options();
    let effect = match options.wraps {
        true => "cut long lines of a diff, until you quit",
        false => "continue long lines of a diff in the next row, until you quit",
    };
    entries.push(entry(C::DiffWrap, "diff_wrap", effect, "", on_off(options.wraps)));
    let effect = match options.ignores_space {
        true => "show changes of white space, until you quit",
        false => "leave changes of white space out, until you quit",
    };
    entries.push(entry(C::DiffIgnoreSpace, "diff_ignore_space", effect, "", on_off(options.ignores_space)));

    let in_editor = "in the editor, for the next start";
    let preferences = &app.preferences;
    for (name, words, now) in [
        ("on_open", "start opening review", preferences.on_open.word()),
        ("quit_summary", "today end line", on_off(preferences.quit_summary)),
        ("keys", "preset vim emacs arrows keymap", preferences.keys.word()),
    ] {
        entries.push(entry(C::Edit(Some(name)), name, in_editor, words, now));
    }
    entries.push(entry(C::Edit(None), "", "open config.toml in the editor", "configuration file", ""));
    entries
}

/// Changes a setting. The palette is closed.
pub fn change_setting(app: &mut App, change: SettingChange, commands: &mut Vec<AppCommand>) {
    match change {
        SettingChange::FindingRows(rows) => {
            app.finding_list.row_height = rows;
            update::scroll_to_selection(app);
        }
        SettingChange::Motion(moves) => {
            app.display.motion = if moves { MotionMode::Full } else { MotionMode::Reduced };
        }
        SettingChange::Notify(mode) => {
            app.preferences.notify = mode;
            app.show_notice(NoticeLevel::Info, format!("notify is {} until you quit", mode.word()));
        }
        SettingChange::DiffWrap => drop(app.detail.diff.toggle_wrap()),
        SettingChange::DiffIgnoreSpace => drop(app.detail.diff.toggle_space()),
        SettingChange::FindingOrder => {
            let menu = update::build_order_menu(app);
            app.views.open(menu);
        }
        SettingChange::RunOrder => {
            let menu = update::build_run_order_menu(app);
            app.views.open(menu);
        }
        SettingChange::FileOrder => {
            let menu = update::build_file_order_menu(app);
            app.views.open(menu);
        }
        SettingChange::Edit(setting) => {
            app.show_notice(NoticeLevel::Info, "what you change in config.toml counts from the next start");
            commands.push(AppCommand::EditSettings { setting });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::tests::support::{showing, view};

    #[test]
    fn every_setting_has_its_name_in_the_settings_file() {
        let file = include_str!("../../../../assets/config.toml");
        for entry in list_settings(&showing(80, 24, view())) {
            if let Some((name, _)) = entry.text.split_once(": ") {
                let is_key = |line: &str| line.split_once(" = ").is_some_and(|(key, _)| key == name);
                assert!(file.lines().any(is_key), "{name}");
            }
        }
    }

    #[test]
    fn each_row_says_the_present_value() {
        let mut app = showing(80, 24, view());
        let row = |app: &App, change| {
            let entries = list_settings(app);
            let entry = entries.iter().find(|entry| entry.target == PaletteTarget::Setting(change));
            entry.map(|entry| format!("{} | {}", entry.text, entry.hint)).unwrap_or_default()
        };
        let mut commands = Vec::new();
        for (change, before, back) in [
            (
                SettingChange::FindingRows(2),
                "finding_rows: two lines for each finding, until you quit | now 1",
                SettingChange::FindingRows(1),
            ),
            (
                SettingChange::Motion(false),
                "motion: clocks step by 10 seconds, until you quit | now on",
                SettingChange::Motion(true),
            ),
            (
                SettingChange::Notify(NotifyMode::Bell),
                "notify: ring the bell when a run needs you, until you quit | now none",
                SettingChange::Notify(NotifyMode::Off),
            ),
            (
                SettingChange::DiffWrap,
                "diff_wrap: continue long lines of a diff in the next row, until you quit | now off",
                SettingChange::DiffWrap,
            ),
        ] {
            assert_eq!(row(&app, change), before);
            change_setting(&mut app, change, &mut commands);
            assert_ne!(row(&app, back), "", "{change:?} can be taken back");
            assert_ne!(row(&app, change), before, "{change:?} has an effect");
            change_setting(&mut app, back, &mut commands);
            assert_eq!(row(&app, change), before);
        }
        assert!(commands.is_empty(), "{commands:?}");
        let wanted = "on_open: in the editor, for the next start | now review";
        assert_eq!(row(&app, SettingChange::Edit(Some("on_open"))), wanted);
    }
}
