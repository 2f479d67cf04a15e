//! Masks keys in the names that a page shows: paths, branches, scopes and the texts that name them.
//!
//! The lists and the header have no page. Their names are masked where they are drawn, see
//! [`Painter`](crate::tui::draw::painter::Painter).

use crate::domain::{
    ContextRecord, Coverage, Finding, FindingQuestion, QuestionOutcome, RunEvent, RunOutput, RunRecord, Scope,
};
use crate::masking::mask_name;
use crate::tui::page_data::{FileDiffPage, FindingPage, PageData};

/// Masks the texts of a question and its answer.
fn mask_question(line: &mut FindingQuestion) {
    mask(&mut line.request.question);
    match &mut line.outcome {
        QuestionOutcome::Answer(answer) => mask(&mut answer.text),
        QuestionOutcome::Failure(reason) => mask(reason),
    }
}

/// Masks all names of a page.
pub fn mask_page_names(page: &mut PageData) {
    match page {
        PageData::Finding(page) => mask_finding_page(page),
        PageData::Run(page) => {
            mask_run(&mut page.run);
            page.output.iter_mut().for_each(mask_output);
            page.journal.iter_mut().for_each(|entry| mask_event_names(&mut entry.event));
        }
        PageData::Turns(page) | PageData::Context(page) => mask_run(&mut page.run),
        PageData::File(page) => {
            mask_run(&mut page.run);
            mask(&mut page.path);
            page.findings.iter_mut().for_each(mask_place);
        }
        PageData::Fix(page) => {
            page.diffs.iter_mut().for_each(mask_diff_names);
            page.fix.files.iter_mut().for_each(|file| mask(&mut file.path));
        }
        PageData::Log { run, entries } => {
            run.iter_mut().for_each(|run| mask_run(run));
            entries.iter_mut().for_each(|entry| mask_event_names(&mut entry.event));
        }
        // The names of a diff are needed to read its texts, and are masked where they are drawn. The ledger is masked where it
        // is composed.
        PageData::Diff(_) | PageData::Ledger(_) => {}
        PageData::Failed(error) => mask(error),
    }
}

/// Masks the names in an entry of a journal.
pub fn mask_event_names(event: &mut RunEvent) {
    match event {
        RunEvent::Planned { left_out, .. } => left_out.iter_mut().for_each(|file| mask(&mut file.path)),
        RunEvent::Finding { finding } | RunEvent::Restated { finding, .. } => mask_place(finding),
        RunEvent::Covered { file } => mask(&mut file.path),
        RunEvent::Carried { carried } => mask(&mut carried.file.path),
        RunEvent::LeftOut { file, .. } => mask(&mut file.path),
        RunEvent::Rejected { rejected, .. } => mask(&mut rejected.report.path),
        RunEvent::Surrounded { context } => mask_context(context),
        _ => {}
    }
}

fn mask(text: &mut String) {
    if let std::borrow::Cow::Owned(masked) = mask_name(text) {
        *text = masked;
    }
}

fn mask_finding_page(page: &mut FindingPage) {
    mask_place(&mut page.finding);
    page.history.iter_mut().for_each(|disposition| mask(&mut disposition.reason));
    page.notes.iter_mut().for_each(|note| mask(&mut note.text));
    page.pending.iter_mut().for_each(|request| mask(&mut request.question));
    page.questions.iter_mut().for_each(mask_question);
    let first = page.first_report.as_mut().map(|first| &mut first.run);
    page.run.iter_mut().chain(first).chain(&mut page.carried_from).for_each(mask_run);
    if let Some(relocation) = &mut page.relocation {
        mask_run(&mut relocation.run);
        mask(&mut relocation.reported);
    }
}

fn mask_place(finding: &mut Finding) {
    mask(&mut finding.repo_relative_path);
}

/// Masks the names in the record of a run.
pub fn mask_run(run: &mut RunRecord) {
    let subject = &mut run.subject;
    mask(&mut subject.branch);
    mask(&mut subject.worktree);
    mask_scope(&mut subject.scope);
    subject.changed_paths.iter_mut().for_each(mask);
    [&mut run.outcome.summary, &mut run.decision, &mut run.ending.error_summary].into_iter().for_each(mask);
}

fn mask_scope(scope: &mut Scope) {
    match scope {
        Scope::Commit(revision) | Scope::Branch(Some(revision)) => mask(revision),
        Scope::Range { from, to } | Scope::Since { from, to } => [from, to].into_iter().for_each(mask),
        Scope::Worktree | Scope::Staged | Scope::Branch(None) | Scope::All => {}
    }
}

fn mask_output(output: &mut RunOutput) {
    mask_coverage(&mut output.coverage);
    output.findings.iter_mut().for_each(mask_place);
    output.rejected.iter_mut().for_each(|rejected| mask(&mut rejected.report.path));
}

fn mask_coverage(coverage: &mut Coverage) {
    coverage.files.iter_mut().for_each(|file| mask(&mut file.path));
    coverage.left_out.iter_mut().for_each(|file| mask(&mut file.path));
    coverage.partial.iter_mut().for_each(mask);
}

fn mask_context(context: &mut ContextRecord) {
    for section in context.sections.iter_mut().chain(&mut context.left_out) {
        [&mut section.path, &mut section.reason].into_iter().for_each(mask);
    }
}

fn mask_diff_names(diff: &mut FileDiffPage) {
    mask(&mut diff.path);
    diff.old_path.iter_mut().for_each(mask);
}
