//! Positions of findings that a later run saw at another place.

use super::*;

fn sees(store: &Store, n: usize, findings: &[usize], moved: &[(usize, &str, u32)]) {
    let run = store.update_run(&run_id(n), at(0), |run| run.status = RunStatus::Resolving).expect("resolving");
    let moved =
        moved.iter().map(|&(f, path, line)| MovedFinding::new(finding_id(f), path, LineRange::new(line, line + 2)));
    let output = RunOutput {
        findings: findings.iter().map(|f| finding(*f, n)).collect(),
        moved: moved.collect(),
        ..RunOutput::new(run)
    };
    store.write_output(&output).expect("the output");
    store.update_run(&run_id(n), at(0), |run| run.status = RunStatus::Completed).expect("completed");
}

/// Returns the path, the first line, the run that reported the finding and the run that saw it there.
fn place_of(view: &StoreView, n: usize) -> (String, u32, String, String) {
    let index = view.finding_index(finding_id(n).as_str()).expect("there");
    let row = view.finding(index);
    let run = |index: Option<usize>| view.run(index.expect("a run")).id.to_owned();
    (row.path.to_owned(), row.line_start, run(view.last_reporting_run(index)), run(view.locating_run(index)))
}

#[test]
fn the_latest_run_that_saw_a_finding_says_where_it_stands() {
    let place = Place::new();
    let store = place.store();
    for n in 1..=5 {
        create(&store, n, RunStatus::Pending);
    }
    let at_place = |path: &str, line, reported, seen| {
        (path.to_owned(), line, run_id(reported).to_string(), run_id(seen).to_string())
    };
    sees(&store, 1, &[1, 2], &[]);
    let mut view = store.view().expect("a view");
    assert_eq!(place_of(&view, 1), at_place("src/file1.rs", 2, 1, 1));
    // The cases go run by run, in another order than the requests; an invalid place is ignored.
    for (n, findings, moved, first, second) in [
        (
            4,
            &[][..],
            &[(1, "src/moved.rs", 40), (2, "src/file2.rs", 0), (9, "src/unknown.rs", 7)][..],
            ("src/moved.rs", 40, 1, 4),
            ("src/file2.rs", 3, 1, 1),
        ),
        (
            3,
            &[][..],
            &[(1, "src/older.rs", 7), (2, "src/other.rs", 9)][..],
            ("src/moved.rs", 40, 1, 4),
            ("src/other.rs", 9, 1, 3),
        ),
        (2, &[1][..], &[][..], ("src/moved.rs", 40, 2, 4), ("src/other.rs", 9, 1, 3)),
        (5, &[1][..], &[(2, "src/last.rs", 1)][..], ("src/file1.rs", 2, 5, 5), ("src/last.rs", 1, 1, 5)),
    ] {
        sees(&store, n, findings, moved);
        view = store.refresh_view(&view).expect("a view");
        assert_eq!(place_of(&view, 1), at_place(first.0, first.1, first.2, first.3), "after run {n}");
        assert_eq!(place_of(&view, 2), at_place(second.0, second.1, second.2, second.3), "after run {n}");
        assert_eq!(dump(&view), dump(&store.view().expect("a view")), "after run {n}");
    }
    store.checkpoint_now().expect("written");
    let kept = store.view().expect("a view");
    assert_eq!((dump(&kept), place_of(&kept, 2)), (dump(&view), at_place("src/last.rs", 1, 1, 5)));
    let recent = store.recent_view(5).expect("a view");
    assert_eq!(place_of(&recent, 2), place_of(&kept, 2));
    assert_eq!(store.verify().expect("verified").problems, []);
}

#[test]
fn a_finding_is_shown_where_it_stands_and_as_it_was_reported() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    create(&store, 2, RunStatus::Pending);
    let run = store.update_run(&run_id(1), at(0), |run| run.status = RunStatus::Completed).expect("completed");
    let mut reported = finding(1, 1);
    let lines = Some(LineRange::new(3, 4));
    reported.suggestion = Some(Suggestion { text: "so".into(), replacement: Some("x".into()), lines });
    let output = RunOutput { findings: vec![reported.clone()], ..RunOutput::new(run) };
    store.write_output(&output).expect("the output");
    sees(&store, 2, &[], &[(1, "src/moved.rs", 40)]);
    let shown = store.finding(&finding_id(1)).expect("read").expect("there");
    assert_eq!((shown.repo_relative_path.as_str(), shown.line_start, shown.line_end), ("src/moved.rs", 40, 42));
    assert_eq!(shown.suggestion.and_then(|suggestion| suggestion.lines), Some(LineRange::new(41, 42)));
    assert_eq!(store.finding_in_run(&run_id(1), &finding_id(1)).expect("read"), Some(reported));
}
