//! Renders the questions about a finding, with their answers.

use super::{format_dollars, format_thousands};
use crate::domain::{FindingQuestion, QuestionOutcome, QuestionRequest, QuestionVerdict, text};
use crate::report::describe_answer;
use crate::tui::app::App;
use crate::tui::doc::Doc;
use crate::tui::page_data::FindingPage;
use crate::tui::theme::Role;
use crate::tui::update::dismiss_hint;

/// Renders the questions of a page, oldest first, and the one that has no answer yet.
pub fn render_questions(app: &App, page: &FindingPage, width: usize, doc: &mut Doc) {
    if page.questions.is_empty() && page.pending.is_none() {
        return;
    }
    doc.push_heading("Questions", "");
    for line in &page.questions {
        doc.push_blank();
        push_question(&line.request, width, doc);
        push_answer(app, line, width, doc);
    }
    if let Some(request) = &page.pending {
        doc.push_blank();
        push_question(request, width, doc);
        let asking = format!("asking {}{}", text::sanitize_line(&request.reviewer), app.display.glyphs.ellipsis);
        doc.push_paragraph(Role::Accent, &asking, width);
    }
}

fn push_question(request: &QuestionRequest, width: usize, doc: &mut Doc) {
    doc.push_paragraph(Role::Strong, &request.question, width);
}

fn push_answer(app: &App, line: &FindingQuestion, width: usize, doc: &mut Doc) {
    let is_withdrawn =
        matches!(&line.outcome, QuestionOutcome::Answer(answer) if answer.verdict == QuestionVerdict::Withdrawn);
    let role = match &line.outcome {
        QuestionOutcome::Failure(_) => Role::Bad,
        QuestionOutcome::Answer(_) if is_withdrawn => Role::Warn,
        QuestionOutcome::Answer(_) => Role::Normal,
    };
    doc.push_paragraph(role, &describe_answer(line), width);
    if is_withdrawn {
        doc.push_paragraph(Role::Muted, &format!("It is for you to decide{}.", dismiss_hint(app)), width);
    }
    let mut facts = vec![line.request.reviewer.clone(), app.format_date_time(line.request.at)];
    if line.tokens.total() > 0 {
        let estimated = if line.tokens.estimated { "~" } else { "" };
        facts.push(format!("{estimated}{} tokens", format_thousands(line.tokens.total())));
        facts.push(format_dollars(line.cost));
    }
    doc.push_facts(Role::Faint, &facts, &format!(" {} ", app.display.glyphs.dot), width);
}
