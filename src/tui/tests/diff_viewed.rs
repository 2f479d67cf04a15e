//! Tests the marks of what the user has viewed in a diff.

use super::diff::{of_run, place};
use super::support::*;
use crate::domain::{Time, ViewedFile};
use crate::tui::app::App;
use crate::tui::message::{AppCommand, AppMessage, Tab};

#[test]
fn a_viewed_file_is_folded_when_its_mark_is_stored() {
    let mut app = of_run(160, 48);
    let commands = press(&mut app, "g Space");
    let marks: Vec<_> = commands
        .into_iter()
        .filter_map(|command| match command {
            AppCommand::MarkViewed(mark) => Some(mark),
            _ => None,
        })
        .collect();
    assert_eq!(marks.len(), 1);
    assert_eq!(
        (marks[0].path.as_str(), marks[0].content.as_str()),
        ("src/invoice/total.rs", "new-src/invoice/total.rs")
    );
    assert!(!screen(&app).contains("✓ viewed"), "it is not stored yet");
    send(&mut app, AppMessage::ViewedFile { mark: marks[0].clone(), result: Ok(()) });
    let shown = screen(&app);
    assert!(
        shown.contains("✓ viewed") && !shown.contains("let step_41") && shown.contains("viewed 1 of 2 files"),
        "{shown}"
    );
    assert_eq!(place(&app), "mail.rs:1", "the next file is at the cursor");
    let mut mark = marks[0].clone();
    mark.viewed = false;
    send(&mut app, AppMessage::ViewedFile { mark, result: Ok(()) });
    assert!(screen(&app).contains("more = 1"));
    send(&mut app, AppMessage::ViewedFile { mark: marks[0].clone(), result: Err("the disk is full".into()) });
    assert!(screen(&app).contains("not marked as viewed: the disk is full"));
}

#[test]
fn the_diff_is_read_again_when_another_cockpit_has_marked_one_of_its_files() {
    let mut app = of_run(160, 48);
    let path = "src/invoice/total.rs".to_owned();
    let is_read = |app: &mut App, contents: &[&str]| {
        let viewed = contents.iter().map(|content| (path.clone(), (*content).to_owned())).collect();
        let commands = send(app, AppMessage::ViewedFiles(viewed));
        commands.iter().any(|command| matches!(command, AppCommand::Load { tab: Tab::Diff, .. }))
    };
    assert!(!is_read(&mut app, &[]) && !is_read(&mut app, &["another content"]));
    let (path, content) = (path.clone(), "new-src/invoice/total.rs".to_owned());
    let mark = ViewedFile { path, content, viewed: true, at: Time::UNIX_EPOCH };
    assert!(is_read(&mut app, &[mark.content.as_str()]));
    // The mark of this cockpit is shown already.
    send(&mut app, AppMessage::ViewedFile { mark, result: Ok(()) });
    assert!(!is_read(&mut app, &["new-src/invoice/total.rs"]));
}
