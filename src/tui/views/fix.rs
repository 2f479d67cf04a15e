//! Fixes: the index of fixes by finding, the key and its menu, reading a patch, and the page of a fix.

use std::collections::HashMap;

use super::confirm::{ConfirmAction, confirm_if_idle};
use super::menu::{MenuChoice, MenuItem, MenuView};
use super::patch;
use crate::domain::patch::{FilePatch, PatchHunk, PatchLineKind, parse_patch};
use crate::domain::{FindingId, Fix, FixId, FixStatus, text};
use crate::masking::Mask;
use crate::runner::BUILTIN_REVIEWER;
use crate::tui::app::{App, NoticeLevel};
use crate::tui::doc::{Doc, DocLine};
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::message::{AppCommand, DetailSubject, Tab};
use crate::tui::page_data::{DiffPageHunk, DiffPageLine, DiffSide, FileDiffPage, FixPage, HighlightSpans, PageData};
use crate::tui::page_loader::{MAX_HIGHLIGHTED_DIFF_LINES, MAX_HIGHLIGHTED_LINE, PageLoader, secrets};
use crate::tui::pages::{NAMES, format_brief, format_dollars, render_diff};
use crate::tui::theme::Role;
use crate::tui::update::commit_mark_range;

/// Every fix, and the fix to show for each finding.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct FixIndex {
    /// Newest first.
    all: Vec<Fix>,
    by_finding: HashMap<FindingId, usize>,
}

/// Request of the user about fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixOrder {
    Make(Vec<FindingId>),
    /// Makes a patch of the exact suggestions and applies it.
    ApplySuggestions(Vec<FindingId>),
    Apply(FixId),
    Undo(FixId),
    Drop(FixId),
}

/// Facts known before a fix is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixPlan {
    pub findings: Vec<FindingId>,
    /// Reviewer that would make the fix.
    pub reviewer: String,
    /// Reviewer that would review the patch.
    pub patch_reviewer: String,
}

impl FixIndex {
    /// Builds the index. `all` is newest first, as [`crate::store::Store::fixes`] returns it. A failed or dropped fix
    /// is shown only if the finding has no other.
    pub fn new(all: Vec<Fix>) -> Self {
        let mut by_finding = HashMap::new();
        let (gone, there): (Vec<_>, Vec<_>) =
            all.iter().enumerate().partition(|(_, fix)| matches!(fix.status, FixStatus::Failed | FixStatus::Dropped));
        for (index, fix) in there.into_iter().chain(gone) {
            for finding in fix.fixed_findings() {
                by_finding.entry(finding.clone()).or_insert(index);
            }
        }
        Self { all, by_finding }
    }

    /// Returns a fix that was in progress in `before` and is offered or failed now.
    pub fn ended_since<'a>(&'a self, before: &Self) -> Option<&'a Fix> {
        let was_made = |fix: &&Fix| before.all.iter().any(|old| old.fix_id == fix.fix_id && old.status.is_working());
        self.all.iter().filter(|fix| matches!(fix.status, FixStatus::Offered | FixStatus::Failed)).find(was_made)
    }

    /// Returns the fix to show with a finding.
    pub fn for_finding(&self, finding: &str) -> Option<&Fix> {
        if self.by_finding.is_empty() {
            return None;
        }
        let id = finding.parse().ok()?;
        self.by_finding.get(&id).and_then(|index| self.all.get(*index))
    }
}

/// Handles the key: opens the menu of the selected finding's fix, else requests a fix of the marked or selected
/// findings.
pub fn handle_key(app: &mut App, commands: &mut Vec<AppCommand>) {
    let targets = collect_targets(app);
    if targets.is_empty() {
        return app.show_notice(NoticeLevel::Info, "no finding is selected");
    }
    let known = match &app.detail.subject {
        DetailSubject::Finding(id) if app.finding_list.marks.is_empty() => {
            app.store.fixes.for_finding(id).filter(|fix| fix.status != FixStatus::Dropped)
        }
        _ => None,
    };
    if let Some(menu) = known.filter(|fix| fix.status != FixStatus::Failed).map(|fix| build_menu(app, fix)) {
        return app.views.open(menu);
    }
    match targets.as_slice() {
        [finding] if patch::has_loaded_suggestion(app, finding) => patch::open(app, finding),
        _ => request_plan(app, targets, commands),
    }
}

/// Handles the key for a finding that a view shows in place of the panes: opens the menu of its fix, without the page of the
/// fix behind the view, else requests a fix.
pub fn handle_key_in_view(app: &mut App, finding: FindingId, commands: &mut Vec<AppCommand>) {
    let known = app.store.fixes.for_finding(finding.as_str());
    let menu = known.filter(|fix| !matches!(fix.status, FixStatus::Dropped | FixStatus::Failed)).map(|fix| {
        let mut menu = build_menu(app, fix);
        menu.items.retain(|item| !matches!(item.choice, MenuChoice::ShowFix));
        menu.selected = 0;
        menu
    });
    match menu {
        Some(menu) => app.views.open(menu),
        None => request_plan(app, vec![finding], commands),
    }
}

/// Requests the reviewer for a fix; the confirmation follows with the reply.
fn request_plan(app: &mut App, findings: Vec<FindingId>, commands: &mut Vec<AppCommand>) {
    app.show_notice(NoticeLevel::Info, format!("looking at who can fix it{}", app.display.glyphs.ellipsis));
    commands.push(AppCommand::PlanFix(findings));
}

/// Returns the marked findings, else the selected one.
fn collect_targets(app: &mut App) -> Vec<FindingId> {
    commit_mark_range(app);
    app.finding_list.mark_range_start = None;
    if app.finding_list.marks.is_empty() {
        let DetailSubject::Finding(id) = &app.detail.subject else { return Vec::new() };
        return id.parse().into_iter().collect();
    }
    let mut ids: Vec<&String> = app.finding_list.marks.iter().collect();
    ids.sort_by_key(|id| app.store.view.finding_index(id));
    ids.into_iter().filter_map(|id| id.parse().ok()).collect()
}

fn build_menu(app: &App, fix: &Fix) -> MenuView {
    let item = |label: &str, hint: String, choice| MenuItem { label: label.to_owned(), hint, choice };
    let ask = |question: &str, order| MenuChoice::AskFix { text: question.to_owned(), order };
    let (id, size) = (&fix.fix_id, fix.format_diff_stat());
    let apply = |hint| {
        let text = format!("Write the patch into your files ({size})?");
        item("apply it", hint, ask(&text, FixOrder::Apply(id.clone())))
    };
    let undo = || {
        let text = format!("Take the patch out of your files again ({size})?");
        item("undo it", "what you changed since stays".to_owned(), ask(&text, FixOrder::Undo(id.clone())))
    };
    let drop = |hint: &str| item("drop it", hint.to_owned(), MenuChoice::Fix(FixOrder::Drop(id.clone())));
    let look = || item("look at it", "the patch".to_owned(), MenuChoice::ShowFix);
    let again =
        || item("make another", "who makes it is asked first".to_owned(), MenuChoice::PlanFix(fix.findings.clone()));
    let items = match fix.status {
        _ if fix.is_half_applied() => vec![apply("it is half applied: finish".to_owned()), undo()],
        FixStatus::Offered | FixStatus::Undone => {
            vec![look(), apply(format!("{size}, into your files")), drop("the patch is let go"), again()]
        }
        FixStatus::Applied => vec![look(), undo()],
        FixStatus::Working | FixStatus::Reviewing => vec![drop("stop making it")],
        FixStatus::Dropped | FixStatus::Failed => vec![again()],
    };
    // If the patch is already on the screen, the next item is preselected.
    let at =
        usize::from(app.detail.tab == Tab::Fix && items.len() > 1 && matches!(items[0].choice, MenuChoice::ShowFix));
    MenuView { title: "Fix".into(), items, selected: at }
}

/// Asks to undo or redo a step that was a fix: its files and its findings together.
pub fn confirm_step(app: &mut App, fix: &Fix) {
    let (id, size) = (fix.fix_id.clone(), fix.format_diff_stat());
    let (text, order) = match fix.status {
        FixStatus::Applied => {
            (format!("Your last step applied a fix. Take it out of your files again ({size})?"), FixOrder::Undo(id))
        }
        _ => (format!("Your last step took a fix out. Write it into your files again ({size})?"), FixOrder::Apply(id)),
    };
    confirm_if_idle(app, ConfirmAction::Fix(order), text, "that step is of a fix: ask for it again");
}

/// Asks for confirmation when the reviewer of the fix is known.
pub fn confirm_plan(app: &mut App, plan: Result<FixPlan, String>) {
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return app.show_notice(NoticeLevel::Error, format!("no fix: {error}")),
    };
    if let [finding] = plan.findings.as_slice()
        && plan.reviewer == BUILTIN_REVIEWER
        && patch::has_loaded_suggestion(app, finding)
        && !app.views.has_window()
    {
        // The page with the suggestion was not there when the key was pressed.
        return patch::open(app, finding);
    }
    let what = text::format_count(plan.findings.len(), "finding");
    let text = if plan.reviewer == BUILTIN_REVIEWER {
        format!("Fix {what} with exact suggestions? It costs nothing.")
    } else {
        let budget = app.session.budget;
        let most = match (budget.cost, budget.tokens) {
            (Some(cost), _) => format!("It may cost up to {}.", format_dollars(cost)),
            (None, Some(tokens)) => format!("It may take up to {} tokens.", format_brief(tokens)),
            (None, None) => "Nothing limits what it costs.".to_owned(),
        };
        let reviewed = match plan.patch_reviewer.as_str() {
            BUILTIN_REVIEWER => String::new(),
            name if name == plan.reviewer => String::new(),
            name => format!(" {} reviews the patch, with a limit of its own.", text::sanitize_line(name)),
        };
        format!("Have {} fix {what}? {most}{reviewed}", text::sanitize_line(&plan.reviewer))
    };
    app.notice = None;
    confirm_if_idle(
        app,
        ConfirmAction::Fix(FixOrder::Make(plan.findings)),
        text,
        "a fix can be made: ask for it again",
    );
}

/// Sends a request and shows a notice.
pub fn send_order(app: &mut App, order: FixOrder, commands: &mut Vec<AppCommand>) {
    let what = match &order {
        FixOrder::Make(_) => "asking for a fix",
        FixOrder::Apply(_) | FixOrder::ApplySuggestions(_) => "applying the patch",
        FixOrder::Undo(_) => "taking the patch back",
        FixOrder::Drop(_) => "dropping the fix",
    };
    app.show_notice(NoticeLevel::Info, format!("{what}{}", app.display.glyphs.ellipsis));
    if matches!(order, FixOrder::Make(_)) {
        app.finding_list.marks.clear();
    }
    commands.push(AppCommand::Fix(order));
}

/// Shows a notice if a fix has ended since the last read.
pub fn notify_ended(app: &mut App, fixes: &FixIndex) {
    let Some(fix) = fixes.ended_since(&app.store.fixes) else { return };
    match fix.status {
        FixStatus::Failed => {
            app.show_notice(NoticeLevel::Error, format!("no fix: {}", text::sanitize_line(&fix.reason)))
        }
        _ => app.show_notice(NoticeLevel::Success, format!("a fix is offered: {}", fix.format_diff_stat())),
    }
}

/// Shows the result of a fix request.
pub fn show_result(app: &mut App, result: &Result<Box<Fix>, String>) {
    let fix = match result {
        Ok(fix) => fix,
        Err(error) => return app.show_notice(NoticeLevel::Error, error.as_str()),
    };
    let key = app.keymap.key_text(KeyContext::Global, Action::Undo);
    let dot = app.display.glyphs.dot;
    let text = match fix.status {
        FixStatus::Working | FixStatus::Reviewing => {
            "the fix is being made; it is offered here when it is ready".to_owned()
        }
        FixStatus::Applied => format!("applied: {} {dot} {key} undoes", fix.format_diff_stat()),
        FixStatus::Undone => format!("the patch is out of your files: {}", fix.format_diff_stat()),
        status => format!("the fix is {status}"),
    };
    app.show_notice(NoticeLevel::Success, text);
}

impl PageLoader {
    /// Loads the fix of a finding with its patch, highlighted if the fixed commit still exists.
    pub(in crate::tui) fn load_fix(&mut self, finding: &str, mask: Mask) -> Result<PageData, String> {
        let fixes = FixIndex::new(self.store.fixes().map_err(|error| error.to_string())?);
        let fix = fixes.for_finding(finding).ok_or("there is no fix of this finding")?.clone();
        let patch = self.store.patch(&fix.fix_id).map_err(|error| error.to_string())?.ok_or("the patch is gone")?;
        let files = parse_patch(&patch).map_err(|damage| damage.to_string())?;
        let (mut diffs, mut lines) = (Vec::new(), 0);
        for (file, patch) in fix.files.iter().zip(&files) {
            let mut diff = build_diff(&fix, &file.path, patch);
            mask_patch(&mut diff, &file.path, mask);
            lines += diff.hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>();
            let last = diff.hunks.last().map_or(0, |hunk| (hunk.new_start + hunk.new_lines) as usize);
            if lines <= MAX_HIGHLIGHTED_DIFF_LINES && last <= MAX_HIGHLIGHTED_LINE {
                self.highlight_hunks(&fix.fixed_commit, &file.path, &mut diff.hunks, last, mask);
            }
            diffs.push(diff);
        }
        Ok(PageData::Fix(Box::new(FixPage { fix, diffs })))
    }
}

fn build_diff(fix: &Fix, path: &str, patch: &FilePatch) -> FileDiffPage {
    FileDiffPage {
        path: text::sanitize_line(path).into_owned(),
        from: fix.snapshot_commit.clone(),
        to: fix.fixed_commit.clone(),
        hunks: patch.hunks.iter().map(build_hunk).collect(),
        ..FileDiffPage::default()
    }
}

/// Masks the secrets in a patch, on each side of its own.
fn mask_patch(diff: &mut FileDiffPage, path: &str, mask: Mask) {
    for shown in [DiffSide::Old, DiffSide::New] {
        let lines = diff.hunks.iter_mut().flat_map(|hunk| &mut hunk.lines);
        let lines = lines.filter(|line| line.side == shown || line.side == DiffSide::Both);
        secrets::mask_patch_side(mask, path, lines.map(|line| &mut line.text));
    }
}

fn build_hunk(hunk: &PatchHunk) -> DiffPageHunk {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    let count = |origin| u32::try_from(hunk.lines_on_side(origin).count()).unwrap_or(u32::MAX);
    let lines = hunk.lines.iter().map(|line| {
        let (side, numbers) = match line.kind {
            PatchLineKind::Context => (DiffSide::Both, (Some(old), Some(new))),
            PatchLineKind::Removed => (DiffSide::Old, (Some(old), None)),
            PatchLineKind::Added => (DiffSide::New, (None, Some(new))),
        };
        old += u32::from(numbers.0.is_some());
        new += u32::from(numbers.1.is_some());
        let shown = text::sanitize_lines(&String::from_utf8_lossy(&line.text), 4);
        DiffPageLine {
            side,
            old: numbers.0,
            new: numbers.1,
            text: shown.replace('\n', " "),
            spans: HighlightSpans::new(),
        }
    });
    let lines = lines.collect();
    DiffPageHunk {
        old_start: hunk.old_start,
        new_start: hunk.new_start,
        old_lines: count(PatchLineKind::Removed),
        new_lines: count(PatchLineKind::Added),
        lines,
    }
}

fn role_of_status(status: FixStatus) -> Role {
    match status {
        FixStatus::Offered => Role::Accent,
        FixStatus::Applied => Role::Good,
        FixStatus::Failed => Role::Warn,
        FixStatus::Working | FixStatus::Reviewing => Role::Normal,
        FixStatus::Dropped | FixStatus::Undone => Role::Muted,
    }
}

/// Renders one line about the fix of a finding, for the finding's page.
pub fn render_state(app: &App, fix: &Fix, width: usize, doc: &mut Doc) {
    let dot = format!(" {} ", app.display.glyphs.dot);
    let mut parts = vec![match fix.status {
        _ if fix.is_half_applied() => "half applied".to_owned(),
        FixStatus::Working => format!("being made by {}", fix.reviewer),
        FixStatus::Reviewing => "made, and being reviewed".to_owned(),
        status => format!("{status}, made by {}", fix.reviewer),
    }];
    if !fix.files.is_empty() {
        parts.push(fix.format_diff_stat());
    }
    if !fix.verdict.is_empty() {
        parts.push(format!("review of the fix: {}", fix.verdict));
    }
    if fix.status == FixStatus::Failed {
        parts.push(fix.reason.clone());
    }
    if let Some(key) = app.keymap.key_of(KeyContext::Findings, Action::Fix) {
        match fix.status {
            _ if fix.is_half_applied() => parts.push(format!("{key} finishes or undoes it")),
            FixStatus::Offered => parts.push(format!("{key} to look, apply or drop")),
            FixStatus::Applied => parts.push(format!("{key} to undo it")),
            _ => {}
        }
    }
    doc.push_field("fix", NAMES, role_of_status(fix.status), &parts.join(&dot), width);
}

pub fn render_fix(app: &App, page: &FixPage, width: usize, doc: &mut Doc) {
    let fix = &page.fix;
    render_state(app, fix, width, doc);
    let mut who = fix.reviewer.clone();
    if !fix.model.is_empty() {
        who = format!("{who} ({})", fix.model);
    }
    if fix.tokens.total() > 0 {
        who = format!("{who}, {} tokens", format_brief(fix.tokens.total()));
    }
    if fix.cost > 0.0 {
        who = format!("{who}, {}", format_dollars(fix.cost));
    }
    doc.push_field("by", NAMES, Role::Normal, &who, width);
    doc.push_field("for", NAMES, Role::Normal, &text::format_count(fix.fixed_findings().count(), "finding"), width);
    for unfixed in &fix.left_out {
        let what = format!("{}: {}", unfixed.finding_id, unfixed.reason);
        doc.push_field("not fixed", NAMES, Role::Warn, &what, width);
    }
    if fix.follow_up_count > 0 {
        let times = text::format_count(fix.follow_up_count as usize, "time");
        doc.push_field("made again", NAMES, Role::Normal, &format!("{times}, after its review"), width);
    }
    if !fix.reason.is_empty() && fix.status != FixStatus::Failed {
        doc.push_field("note", NAMES, Role::Muted, &fix.reason, width);
    }
    if !fix.worktree.is_empty() {
        doc.push_field("in", NAMES, Role::Muted, &fix.worktree, width);
    }
    for diff in &page.diffs {
        doc.push(DocLine::default());
        render_diff(app, diff, width, doc);
    }
}
