//! Tests how the page of a diff and its texts are read: late, again, and many of them.

use std::sync::Arc;

use super::diff::{Sides, of_run, place, sample, sample_finding};
use super::support::*;
use crate::domain::{OmissionReason, Priority, RunStatus, Time};
use crate::store::{RunRow, StoreViewBuilder};
use crate::tui::diff::{DiffFile, DiffPage, DiffRequest, DiffTexts};
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab};

#[test]
fn a_key_before_the_texts_are_there_does_not_go_to_the_end_of_the_file() {
    let mut app = showing(100, 30, view());
    press(&mut app, "1");
    let sides = sample();
    let mut page = DiffPage::clone(&sides.page(None));
    // As for a file that was left out of the review: its changes are found with its texts.
    for file in &mut page.files {
        file.blocks.clear();
        file.findings.clear();
    }
    let subject = DetailSubject::Run(run_id(3));
    app.detail.tab = Tab::Diff;
    let reads = send(&mut app, AppMessage::Loaded { subject, tab: Tab::Diff, loaded: Box::new(Arc::new(page).into()) });
    press(&mut app, "Shift-Tab j");
    for command in reads {
        if let AppCommand::Diff(DiffRequest::Read { page, file }) = command {
            let (old, new) = sides.texts[file].clone();
            let blocks = sides.files[file].blocks.clone();
            let texts = DiffTexts::new(file as u64 + 1, &page.files[file].path, old, new, &blocks);
            let texts = DiffTexts { found_blocks: Some(blocks), ..texts };
            send(&mut app, AppMessage::DiffFile { page, file, texts: Ok(Arc::new(texts)) });
        }
    }
    assert!(app.detail.diff.row_count() > 20, "{}", screen(&app));
    assert_eq!((app.detail.diff.cursor(), app.detail.diff.top()), (1, 0), "{}", screen(&app));
}

#[test]
fn cursor_and_folds_stay_when_the_page_is_read_again() {
    let mut app = of_run(160, 48);
    press(&mut app, "] d ] d Enter Enter");
    let before = (place(&app), screen(&app));
    let mut sample = sample();
    // A new finding above, and texts that are the same.
    sample.files[0].findings.insert(0, sample_finding(7, Priority::P3, (1, 1), "new"));
    let commands = send(
        &mut app,
        AppMessage::Loaded {
            subject: DetailSubject::Run(run_id(3)),
            tab: Tab::Diff,
            loaded: Box::new(sample.page(None).into()),
        },
    );
    assert!(
        !commands.iter().any(|command| matches!(command, AppCommand::Diff(DiffRequest::Read { .. }))),
        "nothing is read again"
    );
    assert_eq!(place(&app), before.0);
    assert!(screen(&app).contains("counts as 0.0"), "the text stays open");
}

#[test]
fn the_texts_of_a_file_are_read_again_for_a_review_that_left_it_out() {
    // The texts say who has read them, and a content that the snapshot lacks is another one in another review.
    let changes: [fn(&mut DiffFile); 3] = [
        |file| file.left_out = Some(OmissionReason::Oversized),
        |file| file.is_unstored = true,
        |file| file.reviewed_at = Some(Time::UNIX_EPOCH),
    ];
    for change in changes {
        let mut app = of_run(160, 48);
        let mut sample = sample();
        change(&mut sample.files[0]);
        let loaded = Box::new(sample.page(None).into());
        let commands =
            send(&mut app, AppMessage::Loaded { subject: DetailSubject::Run(run_id(3)), tab: Tab::Diff, loaded });
        let read: Vec<usize> = commands
            .iter()
            .filter_map(|command| match command {
                AppCommand::Diff(DiffRequest::Read { file, .. }) => Some(*file),
                _ => None,
            })
            .collect();
        assert_eq!(read, [0]);
    }
}

#[test]
fn many_files_open_at_once_and_texts_are_read_as_they_come_into_sight() {
    let mut sides = Sides::default();
    for n in 0..5_000 {
        sides = sides.file(&format!("src/part_{n}.rs"), "a\nb\nc\n", &format!("a\nb{n}\nc\n"), Vec::new());
    }
    let mut app = showing(160, 48, view());
    press(&mut app, "1");
    app.detail.tab = Tab::Diff;
    let subject = DetailSubject::Run(run_id(3));
    let page = sides.page(None);
    let commands = send(&mut app, AppMessage::Loaded { subject, tab: Tab::Diff, loaded: Box::new(page.into()) });
    let reads = |commands: &[AppCommand]| {
        commands.iter().filter(|command| matches!(command, AppCommand::Diff(DiffRequest::Read { .. }))).count()
    };
    assert!((1..40).contains(&reads(&commands)), "{}", reads(&commands));
    sides.answer(&mut app, commands);
    press(&mut app, "Shift-Tab");
    let commands = press(&mut app, "G");
    assert!((1..40).contains(&reads(&commands)), "{}", reads(&commands));
    sides.answer(&mut app, commands);
    assert!(screen(&app).contains("+ b4999") && screen(&app).contains("part_4999.rs"), "{}", screen(&app));
    assert!(!screen(&app).contains("more files follow"));
    // A search says that it does not know all texts.
    press(&mut app, "/");
    type_text(&mut app, "nowhere");
    press(&mut app, "Enter n");
    assert!(screen(&app).contains("\"nowhere\" is not in what was read; 4"), "{}", screen(&app));
}

#[test]
fn the_diff_follows_the_view_of_a_large_store_and_not_the_one_before() {
    let with = |findings: u32| {
        let run = run_id(3);
        let mut builder = StoreViewBuilder::default();
        builder.run(run_row(&run));
        for n in 0..findings {
            builder.finding(finding_row(&finding_id(n), &run));
        }
        complete(builder)
    };
    let reads_diff = |commands: &[AppCommand]| {
        commands.iter().any(|command| matches!(command, AppCommand::Load { tab: Tab::Diff, .. }))
    };
    let mut app = showing(160, 48, with(10));
    press(&mut app, "1");
    sample().show(&mut app, DetailSubject::Run(run_id(3)), None);
    let commands = send(&mut app, AppMessage::StoreRead { view: with(5_000), written: 0 });
    assert!(!reads_diff(&commands), "the view is not shown yet");
    let asked = commands.into_iter().find_map(|command| match command {
        AppCommand::Filter { serial, view, query } => Some((serial, view, query)),
        _ => None,
    });
    let (serial, view, query) = asked.expect("a request");
    let listed = query.list(&view);
    assert!(reads_diff(&send(&mut app, AppMessage::Filtered { serial, view, listed })));
}

#[test]
fn a_diff_that_waits_for_a_snapshot_is_read_again_when_the_run_has_ended_meanwhile() {
    let with = |status| {
        let run = run_id(3);
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow { status, ..run_row(&run) });
        complete(builder)
    };
    let mut app = showing(160, 48, with(RunStatus::Pending));
    press(&mut app, "1");
    app.detail.tab = Tab::Diff;
    let page = DiffPage { run: run_id(3), note: Some("There is no snapshot yet.".to_owned()), ..DiffPage::default() };
    let subject = DetailSubject::Run(run_id(3));
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Diff, loaded: Box::new(Arc::new(page).into()) });
    for is_read in [true, false] {
        let commands = send(&mut app, AppMessage::StoreRead { view: with(RunStatus::Completed), written: 0 });
        let reads = commands.iter().any(|command| matches!(command, AppCommand::Load { tab: Tab::Diff, .. }));
        assert_eq!(reads, is_read, "{}", screen(&app));
    }
}
