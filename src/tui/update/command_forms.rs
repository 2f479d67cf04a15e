//! Asks the questions of a command of the user one after another, then runs it with the answers.

use super::super::app::{App, NoticeLevel};
use super::super::custom_commands::CommandForm;
use super::super::line_edit::LineEdit;
use super::super::message::AppCommand;
use super::super::views::menu::{MenuChoice, MenuItem, MenuView};
use super::super::views::prompt::{InputPromptKind, PromptView};
use crate::domain::text;

/// Asks the next question of a command, or runs it if there is none.
pub fn ask_or_run(app: &mut App, form: CommandForm, commands: &mut Vec<AppCommand>) {
    let Some(prompt) = form.next_prompt() else {
        let said = format!("{}{}", form.name(), app.display.glyphs.ellipsis);
        app.show_notice(NoticeLevel::Info, said);
        commands.push(AppCommand::RunProgram(form.into_call()));
        return;
    };
    if prompt.choices.is_empty() {
        let line = match prompt.default.as_str() {
            "" => LineEdit::default(),
            offered => LineEdit::with_suggestion(&text::sanitize_line(offered)),
        };
        return app.views.open(PromptView::new(InputPromptKind::Command { form: Box::new(form) }, line));
    }
    let to_item = |choice: &String| MenuItem {
        label: text::sanitize_line(choice).into_owned(),
        hint: String::new(),
        choice: MenuChoice::Answer(Box::new(form.with_answer(choice))),
    };
    let items: Vec<MenuItem> = prompt.choices.iter().map(to_item).collect();
    let selected = prompt.choices.iter().position(|choice| *choice == prompt.default).unwrap_or(0);
    let step = form.describe_step();
    let title = if step.is_empty() { form.question() } else { format!("{} ({step})", form.question()) };
    app.views.open(MenuView { title: title.into(), items, selected });
}

/// Says that the user has left a question, so that the command does not run.
pub fn say_not_run(app: &mut App, form: &CommandForm) {
    app.show_notice(NoticeLevel::Info, format!("{}: nothing was run", form.name()));
}
