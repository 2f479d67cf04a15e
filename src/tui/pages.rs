//! Builds the pages of the detail pane: loaded values in, a laid-out document out.

mod context;
mod history;
mod journal_entry;
mod ledger;
mod members;
mod panel;
mod questions;
mod run;
mod turns;
mod window;

use super::app::{App, OpeningLook};
use super::diff::compare_lines;
use super::doc::{Doc, DocLine, DocSpan, wrap_words};
use super::empty_list::{EmptyList, explain_empty_list};
use super::keymap::{Action, KeyContext};
use super::message::{DetailSubject, Tab};
use super::page_data::{CodeExcerpt, DiffSide, FileDiffPage, FindingPage, PageData};
use super::theme::Role;
use super::views::fix;

pub use history::render_history;
pub use panel::{describe_lowered, render_disputes, render_voices_in_short};
pub use questions::render_questions;

pub(crate) use crate::report::figures::{format_brief, format_dollars, format_thousands};

use crate::domain::{FindingStatus, Priority, ReportedProblem, text};
use crate::report::describe_snooze_end;
use crate::tui::doc::TextColumns;

/// Lines shown of a long anchor if the pane has no room for more, and of them at its end; the middle is omitted.
const MIN_ANCHOR_LINES: usize = 18;
const ANCHOR_TAIL_LINES: usize = 3;
/// Most lines of code that a shown suggestion replaces.
const MAX_REPLACED_LINES: u32 = 200;
/// Lines of code shown before and after the anchor, with and without room for more.
const MIN_CONTEXT_LINES: usize = 4;
/// Column width of names in field lists.
pub const NAMES: usize = 12;
/// Said on the page of a finding about which people of the team disagree.
const TEAM_DISAGREES: &str =
    "People disagree about this finding, see the history. Its status holds until somebody decides again.";

/// Builds the page of the selected item.
pub fn build_page(app: &App, width: usize) -> Doc {
    let mut doc = Doc::default();
    match app.detail.page.as_ref().map(|(.., loaded)| loaded.as_ref()) {
        Some(PageData::Finding(page)) => render_finding(app, page, width, &mut doc),
        Some(PageData::Run(page)) => run::render_run(app, page, width, &mut doc),
        Some(PageData::Turns(page)) => turns::render_turns(app, page, width, &mut doc),
        Some(PageData::Context(page)) => context::render_context(app, page, width, &mut doc),
        Some(PageData::Fix(page)) => fix::render_fix(app, page, width, &mut doc),
        Some(PageData::File(page)) => run::render_file(app, page, width, &mut doc),
        // The diff has rows of its own; only a text in place of files is a page.
        Some(PageData::Diff(diff)) => {
            if let Some(note) = &diff.note {
                doc.push_paragraph(Role::Muted, note, width);
            }
        }
        Some(PageData::Log { run, entries }) => run::render_log(app, run.as_deref(), entries, width, &mut doc),
        Some(PageData::Ledger(ledger)) => ledger::render_ledger(app, ledger, width, &mut doc),
        Some(PageData::Failed(error)) => doc.push_paragraph(Role::Warn, error, width),
        None if app.detail.tab != Tab::Ledger && app.detail.subject == DetailSubject::Nothing => {
            return build_empty_page(app, width);
        }
        None => {}
    }
    doc
}

/// Explains why nothing is selected and what happens next.
pub fn build_empty_page(app: &App, width: usize) -> Doc {
    let mut doc = Doc::default();
    render_empty(app, width, &mut doc);
    doc
}

/// Begins a text with a capital letter.
fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}", letters.as_str())
}

/// Begins a reason with a capital letter and ends it with a full stop, for a page of sentences.
pub fn to_sentence(reason: &str) -> String {
    let end = if reason.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{}{end}", capitalize(reason))
}

fn render_empty(app: &App, width: usize, doc: &mut Doc) {
    if app.store.view.run_count() == 0 {
        let key = app.keymap.key_text(KeyContext::Global, Action::Review);
        let failure = match &app.opening {
            OpeningLook::Failed(why) => Some(why),
            _ => app.store.trouble.as_ref(),
        };
        match &app.opening {
            _ if failure.is_some() => {
                doc.push(DocLine::styled(Role::Bad, "Nothing is reviewed"));
                doc.push_blank();
                doc.push_paragraph(Role::Normal, failure.map_or("", String::as_str), width);
                doc.push_blank();
                let next = format!("When that is fixed, press {key} to review what changed.");
                doc.push_paragraph(Role::Muted, &next, width);
            }
            OpeningLook::Nothing(why) => {
                doc.push(DocLine::styled(Role::Strong, "Nothing to review yet"));
                doc.push_blank();
                doc.push_paragraph(Role::Normal, &to_sentence(why), width);
                doc.push_blank();
                let next = format!("Change or commit something, then press {key} to review it.");
                doc.push_paragraph(Role::Muted, &next, width);
            }
            _ => {
                doc.push(DocLine::styled(Role::Strong, "Welcome"));
                doc.push_blank();
                doc.push_paragraph(
                    Role::Normal,
                    "revdeck reviews what you change, keeps what it finds, and lets you decide about each finding here.",
                    width,
                );
                doc.push_blank();
                let is_coming = app.session.reviews_on_open && app.offered.is_empty();
                let next = match is_coming {
                    true => {
                        "The built-in reviewer works offline and costs nothing: a first review of this repository has \
                         been asked for, and its findings appear as they come."
                            .to_owned()
                    }
                    false => format!("Press {key} to review what changed; the menu says what each review may cost."),
                };
                doc.push_paragraph(Role::Muted, &next, width);
                if let Some(key) = app.keymap.key_of(KeyContext::Global, Action::Help) {
                    doc.push_blank();
                    doc.push_paragraph(Role::Muted, &format!("{key} shows the keys."), width);
                }
            }
        }
    } else if app.finding_list.rows.is_empty() {
        let EmptyList { headline, role, details } = explain_empty_list(app);
        doc.push_paragraph(role, &capitalize(&headline), width);
        for detail in details {
            doc.push_blank();
            doc.push_paragraph(Role::Muted, &detail, width);
        }
    }
}

/// Renders a finding. The code gets the lines that the rest of the page leaves.
fn render_finding(app: &App, page: &FindingPage, width: usize, doc: &mut Doc) {
    let least = ExcerptExtent::default();
    render_finding_with(app, page, least, width, doc);
    let extent = least.extend(page, app.page_rows().saturating_sub(doc.lines.len()));
    if extent != least {
        *doc = Doc::default();
        render_finding_with(app, page, extent, width, doc);
    }
}

/// Number of code lines on the page of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ExcerptExtent {
    /// Most lines of the anchor.
    anchor: usize,
    before: usize,
    after: usize,
}

impl Default for ExcerptExtent {
    fn default() -> Self {
        Self { anchor: MIN_ANCHOR_LINES, before: MIN_CONTEXT_LINES, after: MIN_CONTEXT_LINES }
    }
}

impl ExcerptExtent {
    /// Returns the extent with up to `rows` more lines of the excerpt: of the anchor first, then around it.
    fn extend(self, page: &FindingPage, rows: usize) -> Self {
        let (start, end) = (page.finding.line_start, page.finding.line_end.max(page.finding.line_start));
        let first = page.code.first;
        let available = page.code.lines.len();
        let above = start.saturating_sub(first) as usize;
        let anchor = (end - start) as usize + 1;
        let below = available.saturating_sub(above + anchor);
        let hidden = anchor.saturating_sub(self.anchor);
        let more = hidden.min(rows);
        let rows = rows - more;
        // A line of context that one side lacks goes to the other.
        let (above, below) = (above.saturating_sub(self.before), below.saturating_sub(self.after));
        let up = above.min((rows / 2).max(rows.saturating_sub(below)));
        let down = below.min(rows - up);
        Self { anchor: self.anchor + more, before: self.before + up, after: self.after + down }
    }
}

fn render_finding_with(app: &App, page: &FindingPage, extent: ExcerptExtent, width: usize, doc: &mut Doc) {
    let finding = &page.finding;
    let status = app.finding_by_id(finding.finding_id.as_str()).map_or(finding.status, |row| app.current_status(&row));
    let dot = format!(" {} ", app.display.glyphs.dot);
    let facts = [
        finding.kind.label().to_owned(),
        format!("severity {}", finding.severity),
        format!("confidence {}", finding.confidence),
    ];
    let (title, joined) = (build_title(app, finding.priority, status), facts.join(&dot));
    if title.plain_text().width() + 3 + joined.width() <= width {
        doc.push(title.with_span(Role::Faint, "   ").with_span(Role::Muted, &joined));
    } else {
        doc.push(title);
        doc.push_facts(Role::Muted, &facts, &dot, width);
    }
    doc.push_blank();
    for line in wrap_words(&text::sanitize_line(&finding.title), width) {
        doc.push(DocLine::styled(Role::Strong, &line));
    }
    let place = format_location(&finding.repo_relative_path, finding.line_start, finding.line_end, app);
    for line in wrap_words(&text::sanitize_line(&place), width) {
        doc.push(DocLine::styled(Role::Accent, &line));
    }
    panel::render_agreement(finding, width, doc);
    if !finding.disputed.is_empty() {
        doc.push_blank();
        render_disputes(app, finding, width, doc);
    }
    if let Some(snooze) = app.finding_list.overrides.snoozed.get(finding.finding_id.as_str()) {
        doc.push_blank();
        let end = describe_snooze_end(Some(&snooze.until), &app.display.zone);
        doc.push_paragraph(Role::Muted, &end, width);
    }
    if let Some(last) = page.last_decision().filter(|_| !status.is_undecided())
        && !last.reason.is_empty()
    {
        doc.push_blank();
        doc.push_field(status.word(), NAMES, Role::from_finding_status(status), &last.reason, width);
    }
    if app.finding_list.overrides.disputed.contains(finding.finding_id.as_str()) {
        doc.push_blank();
        doc.push_paragraph(Role::Warn, TEAM_DISAGREES, width);
    }
    if let Some(known) = app.store.fixes.for_finding(finding.finding_id.as_str()) {
        doc.push_blank();
        fix::render_state(app, known, width, doc);
    }
    if let Some(offer) = page.offer.filter(|_| status == FindingStatus::Dismissed) {
        let (kind, times) = (offer.kind, offer.dismissed);
        let text = format!("{times} of this kind dismissed, none addressed: `revdeck mute {kind}` holds them back.");
        doc.push_paragraph(Role::Muted, &text, width);
    }
    if !finding.explanation.is_empty() {
        doc.push_blank();
        doc.push_paragraph(Role::Normal, &finding.explanation, width);
    }
    if let Some(lowered) = describe_lowered(finding) {
        doc.push_blank();
        doc.push_paragraph(Role::Muted, &lowered, width);
    }
    render_code(app, page, extent, width, doc);
    if let Some(suggestion) = &finding.suggestion {
        doc.push_heading("Suggestion", "");
        doc.push_paragraph(Role::Normal, &suggestion.text, width);
        if let Some(replacement) = &suggestion.replacement {
            doc.push_blank();
            let lines = suggestion.lines.unwrap_or(finding.lines());
            render_replacement(&page.code, lines.start, lines.end, replacement, doc);
        }
    }
    panel::render_voices(&page.finding, width, doc);
    render_questions(app, page, width, doc);
    render_history(app, page, width, doc);
}

fn build_title(app: &App, priority: Priority, status: FindingStatus) -> DocLine {
    let glyphs = &app.display.glyphs;
    DocLine::styled(Role::from_priority(priority), priority_label(priority))
        .with_span(Role::Faint, "  ")
        .with_span(Role::from_finding_status(status), &glyphs.sign_before_word(glyphs.finding_status(status)))
        .with_span(Role::from_finding_status(status), status.word())
}

/// Formats the location that a model reported.
fn format_reported_location(report: &ReportedProblem) -> String {
    if report.line_start > 0 { format!("{}:{}", report.path, report.line_start) } else { report.path.clone() }
}

/// Returns the priority as lists show it: `P1`.
pub fn priority_label(priority: Priority) -> &'static str {
    priority.label()
}

/// Formats `DEAD_CODE` as `dead code`.
pub fn format_kind(word: &str) -> String {
    word.to_lowercase().replace('_', " ")
}

fn format_location(path: &str, start: u32, end: u32, app: &App) -> String {
    let dash = app.display.glyphs.dash;
    if end > start { format!("{path}:{start}{dash}{end}") } else { format!("{path}:{start}") }
}

fn render_code(app: &App, page: &FindingPage, extent: ExcerptExtent, width: usize, doc: &mut Doc) {
    let excerpt = &page.code;
    if excerpt.lines.is_empty() {
        if let Some(note) = excerpt.note {
            doc.push_heading("Code", "");
            doc.push_paragraph(Role::Muted, note, width);
        }
        return;
    }
    let placed = page.relocation.as_ref().map(|seen| &seen.run).or(page.run.as_ref());
    let from = placed.map_or("", |run| short_commit(&run.subject.snapshot_commit));
    doc.push_heading("Code", excerpt.note.unwrap_or(from));
    let (start, end) = (page.finding.line_start, page.finding.line_end);
    let digits = count_digits(excerpt.first + excerpt.lines.len() as u32);
    let anchor = usize::try_from(end.saturating_sub(start) + 1).unwrap_or(1);
    for (index, line) in excerpt.lines.iter().enumerate() {
        let number = excerpt.first + index as u32;
        let inside = (start..=end).contains(&number);
        let distance = start.saturating_sub(number) as usize;
        if distance > extent.before || number.saturating_sub(end) as usize > extent.after {
            continue;
        }
        // A long anchor is shown without its middle.
        if inside && anchor > extent.anchor {
            let depth = (number - start) as usize;
            if depth == extent.anchor - ANCHOR_TAIL_LINES {
                let hidden = anchor - extent.anchor;
                let sign = app.display.glyphs.ellipsis;
                let gap = " ".repeat(digits + 2);
                doc.push(DocLine::styled(
                    Role::Faint,
                    &format!("{gap} {sign} {} more", text::format_count(hidden, "line")),
                ));
            }
            if depth >= extent.anchor - ANCHOR_TAIL_LINES && depth < anchor - ANCHOR_TAIL_LINES {
                continue;
            }
        }
        let mut shown = DocLine { source: Some(number), ..DocLine::default() };
        let sign = if inside { app.display.glyphs.bar } else { " " };
        shown = shown.with_span(Role::from_priority(page.finding.priority), sign);
        shown = shown.with_span(if inside { Role::Muted } else { Role::LineNumber }, &format!("{number:>digits$}"));
        shown = shown.with_span(Role::Normal, "  ");
        push_spans(&mut shown, line, excerpt.spans.get(index).map_or(&[][..], Vec::as_slice), Role::Normal);
        if inside {
            shown.fill = Some(Role::Anchor);
        }
        doc.push(shown);
    }
}

pub fn push_spans(line: &mut DocLine, text: &str, spans: &[(u32, u32, Role)], base: Role) {
    let mut at = 0;
    for (start, end, role) in spans {
        let (start, end) = (*start as usize, *end as usize);
        if start < at || end > text.len() || !text.is_char_boundary(start) || !text.is_char_boundary(end) {
            continue;
        }
        if start > at {
            line.spans.push(DocSpan { role: base, text: text[at..start].to_owned() });
        }
        line.spans.push(DocSpan { role: *role, text: text[start..end].to_owned() });
        at = end;
    }
    if at < text.len() {
        line.spans.push(DocSpan { role: base, text: text[at..].to_owned() });
    }
}

pub fn count_digits(n: u32) -> usize {
    n.max(1).ilog10() as usize + 1
}

fn short_commit(commit: &str) -> &str {
    commit.get(..8).unwrap_or(commit)
}

/// Renders a replacement as a small diff with its changed words.
fn render_replacement(excerpt: &CodeExcerpt, start: u32, end: u32, replacement: &str, doc: &mut Doc) {
    let numbers = start..=end.min(start.saturating_add(MAX_REPLACED_LINES));
    let line = |number: u32| excerpt.lines.get(number.checked_sub(excerpt.first)? as usize).map(String::as_str);
    let before: Vec<&str> = numbers.filter_map(line).collect();
    let after = text::sanitize_lines(replacement.trim_end_matches('\n'), 4);
    let after: Vec<&str> = if after.is_empty() { Vec::new() } else { after.split('\n').collect() };
    doc.lines.extend(compare_lines(&before, &after));
}

pub fn render_diff(app: &App, diff: &FileDiffPage, width: usize, doc: &mut Doc) {
    let mut between = String::new();
    if !diff.from.is_empty() || !diff.to.is_empty() {
        let from = if diff.from.is_empty() { "nothing" } else { short_commit(&diff.from) };
        between = format!("{from}..{}", short_commit(&diff.to));
    }
    if let Some(old) = &diff.old_path {
        doc.push_path(0, Role::Muted, old, (Role::Faint, "to"), width);
    }
    doc.push_path(0, Role::Strong, &diff.path, (Role::Faint, &between), width);
    if let Some(note) = &diff.note {
        doc.push(DocLine::default());
        doc.push(DocLine::styled(Role::Muted, note));
    }
    let most =
        diff.hunks.iter().map(|hunk| (hunk.old_start + hunk.old_lines).max(hunk.new_start + hunk.new_lines)).max();
    let digits = count_digits(most.unwrap_or(1));
    let mut anchored = None;
    for hunk in &diff.hunks {
        doc.push(DocLine::default());
        let mut title = DocLine::styled(
            Role::Hunk,
            &format!("@@ -{},{} +{},{} @@", hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines),
        );
        title.source = Some(hunk.new_start);
        doc.push(title);
        for line in &hunk.lines {
            let number = |n: Option<u32>| n.map_or_else(|| " ".repeat(digits), |n| format!("{n:>digits$}"));
            let inside =
                diff.anchor.is_some_and(|(start, end)| line.new.is_some_and(|number| (start..=end).contains(&number)));
            if inside && anchored.is_none() {
                anchored = Some(doc.lines.len());
            }
            let (sign, role) = match line.side {
                DiffSide::Both => (" ", Role::Normal),
                DiffSide::Old => ("-", Role::Removed),
                DiffSide::New => ("+", Role::Added),
            };
            let mut shown = DocLine { source: line.new, ..DocLine::default() }
                .with_span(if inside { Role::Warn } else { Role::Faint }, if inside { ">" } else { " " })
                .with_span(Role::LineNumber, &format!("{} {} ", number(line.old), number(line.new)))
                .with_span(role, sign)
                .with_span(role, " ");
            match line.side {
                DiffSide::Both => push_spans(&mut shown, &line.text, &line.spans, Role::Normal),
                DiffSide::New if app.display.theme.colors_changed_code() && !line.spans.is_empty() => {
                    push_spans(&mut shown, &line.text, &line.spans, Role::Normal);
                }
                DiffSide::New | DiffSide::Old => push_spans(&mut shown, &line.text, &[], role),
            }
            if line.side != DiffSide::Both {
                shown.fill = Some(role);
            }
            doc.push(shown);
        }
    }
    if let Some(line) = anchored {
        doc.start = line.saturating_sub(6);
    }
}
