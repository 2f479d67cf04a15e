//! Torn and corrupt lines, and lines of a newer version.

use super::*;

/// Removes what the store remembers of how far its files had grown.
fn forget_lengths(store: &Store) {
    let is_length = |path: &PathBuf| path.ends_with("extents") || path.extension().is_some_and(|end| end == "extent");
    for path in files_below(store.root()).into_iter().filter(is_length) {
        fs::remove_file(path).expect("removed");
    }
}

#[test]
fn a_line_torn_at_any_byte_is_sealed_and_hides_no_other() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    let mut journal = store.open_journal(&run_id(1)).expect("opens");
    journal.append(at(1), RunEvent::Finding { finding: Box::new(finding(1, 1)) }).expect("appended");
    store.append_dispositions(&[disposition(1, FindingStatus::Dismissed, "g")]).expect("appended");
    let files: Vec<(PathBuf, Vec<u8>)> = ["runs.ndjson", "triage.ndjson", &format!("events/{}.jsonl", run_id(1))]
        .iter()
        .map(|name| store.root().join(name))
        .map(|path| (path.clone(), fs::read(&path).expect("read")))
        .collect();
    for (path, whole) in &files {
        for cut in (0..whole.len()).step_by(if path.extension().is_some_and(|e| e == "jsonl") { 3 } else { 7 }) {
            for (path, whole) in &files {
                fs::write(path, whole).expect("as it was");
            }
            // A second line that is only partly written. Its writer died before it could remember the new size.
            forget_lengths(&store);
            let torn = [whole.as_slice(), &whole[..cut]].concat();
            fs::write(path, &torn).expect("torn");
            let view = store.view().expect("a view");
            assert_eq!((view.run_count(), view.finding_count()), (1, 1), "{} cut at {cut}", path.display());

            create(&store, 2, RunStatus::Pending);
            store.append_dispositions(&[disposition(2, FindingStatus::Addressed, "g")]).expect("appended");
            let mut journal = store.open_journal(&run_id(1)).expect("opens");
            let entry =
                journal.append(at(2), RunEvent::Finding { finding: Box::new(finding(2, 1)) }).expect("appended");
            assert_eq!(entry.seq, 1, "{} cut at {cut}", path.display());
            let view = store.view().expect("a view");
            assert_eq!((view.run_count(), view.finding_count()), (2, 2), "{} cut at {cut}", path.display());
            let status = |n| view.finding(view.finding_index(finding_id(n).as_str()).expect("there")).status;
            assert_eq!((status(1), status(2)), (FindingStatus::Dismissed, FindingStatus::Addressed));
            let report = store.verify().expect("verified");
            assert_eq!(report.problems.len(), usize::from(cut > 0), "{} cut at {cut}: {report:?}", path.display());
            assert_eq!(view.notices.len(), usize::from(cut > 0), "{:?}", view.notices);
        }
    }
}

#[test]
fn repair_sets_corrupt_lines_aside_and_keeps_the_rest() {
    let place = Place::new();
    let store = place.store();
    for n in 1..=3 {
        create(&store, n, RunStatus::Pending);
    }
    finish(&store, 1, &[1, 2]);
    finish(&store, 2, &[3]);
    let mut journal = store.open_journal(&run_id(3)).expect("opens");
    journal.append(at(1), RunEvent::Finding { finding: Box::new(finding(4, 3)) }).expect("appended");
    store.append_dispositions(&[disposition(1, FindingStatus::Dismissed, "g")]).expect("appended");
    let before = dump(&store.view().expect("a view"));

    let newer = r#"{"finding_id":"f_0000000000000001","status":"snoozed","x":1}"#;
    for (name, rubbish) in [
        ("runs.ndjson", &b"\xff\xfe\x00garbage\n{\"run_id\":\"../../etc\",\"status\":\"pending\"}\n{}\n"[..]),
        ("triage.ndjson", format!("[1,2]\n{newer}\nnull\n").as_bytes()),
        (&format!("events/{}.jsonl", run_id(3)), b"not json\n{\"seq\":\n"),
    ] {
        let path = store.root().join(name);
        let whole = fs::read(&path).expect("read");
        fs::write(&path, [rubbish, &whole, rubbish].concat()).expect("written");
    }
    // This test is about single lines; that files were overwritten is another problem.
    forget_lengths(&store);
    store.advance_epoch().expect("made");
    fs::write(store.root().join("epoch"), "many").expect("written");
    // The journal replaces a damaged output.
    let damaged = store.root().join("outputs").join(format!("{}.json", run_id(2)));
    let mut journal = store.open_journal(&run_id(2)).expect("opens");
    journal.append(at(1), RunEvent::Finding { finding: Box::new(finding(3, 2)) }).expect("appended");
    journal.append(at(1), RunEvent::Finished { status: RunStatus::Completed }).expect("appended");
    fs::write(&damaged, "{\"version\":1,\"findi").expect("written");

    let view = store.view().expect("a view");
    assert_eq!(dump(&view), before);
    assert_eq!(view.notices.len(), 3, "{:?}", view.notices);
    let found = store.verify().expect("verified");
    assert_eq!(found.newer_lines, 2);
    assert_eq!(found.problems.len(), 6 + 4 + 4 + 1 + 1, "{found:#?}");
    assert!(!found.is_clean());
    assert!(store.verify().expect("verified") == found, "verify changes nothing");

    let repaired = store.repair().expect("repaired");
    assert!(repaired.is_clean(), "{repaired:#?}");
    let after = store.verify().expect("verified");
    assert_eq!((after.problems, after.newer_lines), (vec![], 2));
    let view = store.view().expect("a view");
    assert_eq!(dump(&view), before);
    assert_eq!(store.epoch().expect("read"), 1);
    let aside = fs::read(store.root().join("runs.ndjson.corrupt-1")).expect("kept");
    assert_eq!(aside.iter().filter(|byte| **byte == b'\n').count(), 6);
    assert!(damaged.with_file_name(format!("{}.json.corrupt-1", run_id(2))).exists());
    assert!(fs::read_to_string(store.root().join("triage.ndjson")).expect("read").contains(newer));
}

#[test]
fn what_a_newer_version_wrote_survives_a_change() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    let path = store.root().join("runs.ndjson");
    let line = fs::read_to_string(&path)
        .expect("read")
        .replace("\"coverage\":{", "\"mood\":[1,{\"a\":2}],\"coverage\":{\"depth\":7,");
    fs::write(&path, &line).expect("written");
    for step in 1..=3_u32 {
        let run = store.update_run(&run_id(1), at(1), |run| run.outcome.coverage.files_total = step).expect("updated");
        assert_eq!(run.outcome.coverage.files_total, step);
    }
    let last = fs::read_to_string(&path).expect("read").lines().last().map(str::to_owned).expect("a line");
    let last: serde_json::Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!(last["mood"], serde_json::json!([1, {"a": 2}]));
    assert_eq!((&last["coverage"]["depth"], &last["coverage"]["files_total"]), (&7.into(), &3.into()));
}

#[test]
fn words_of_a_newer_version_hide_only_their_own_line() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    create(&store, 2, RunStatus::Pending);
    finish(&store, 1, &[1, 2, 3]);
    let output = store.root().join("outputs").join(format!("{}.json", run_id(1)));
    let text = fs::read_to_string(&output).expect("read").replace(finding(2, 1).kind.word(), "TIME_TRAVEL");
    fs::write(&output, text).expect("written");
    store.open_journal(&run_id(2)).expect("made");
    append_raw(&store.root().join("runs.ndjson"), &{
        let mut paused = serde_json::to_value(record(2, RunStatus::Pending)).expect("JSON");
        paused["status"] = "paused".into();
        paused.to_string()
    });
    store.append_dispositions(&[disposition(9, FindingStatus::Open, "g")]).expect("made");
    append_raw(&store.root().join("triage.ndjson"), r#"{"finding_id":"f_0000000000000001","status":"snoozed"}"#);
    append_raw(
        &store.root().join("events").join(format!("{}.jsonl", run_id(2))),
        r#"{"seq":0,"at":"2026-01-01T00:00:00Z","event":"dreamt","of":"sheep"}"#,
    );
    let view = store.view().expect("a view");
    assert_eq!((view.run_count(), ids(&view).len()), (2, 2));
    assert_eq!(view.notices.len(), 3, "{:?}", view.notices);
    let output = store.output(&run_id(1)).expect("read").expect("there");
    assert_eq!(output.findings.len(), 2);
    assert_eq!(store.reported_findings(&run_id(1)).expect("read"), output.findings);
    assert_eq!(store.read_journal(&run_id(2)).expect("read")[0].event, RunEvent::Unknown);
    assert_eq!(store.verify().expect("verified").problems, []);
    // A change by this version starts from the newest line, even if it can read only an older one.
    let run = store.update_run(&run_id(2), at(9), |run| run.attempt = 2).expect("updated");
    assert_eq!((run.status, run.attempt), (RunStatus::Pending, 2));
    assert!(fs::read_to_string(store.root().join("runs.ndjson")).expect("read").ends_with("\n"));
    assert_eq!(fs::read_to_string(store.root().join("runs.ndjson")).expect("read").matches("paused").count(), 2);
}

#[test]
fn a_store_of_a_newer_schema_is_read_and_never_written() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    finish(&store, 1, &[1]);
    let path = store.root().join("repo.json");
    let mut repo: serde_json::Value = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    repo["version"] = 2.into();
    repo["zone"] = "new".into();
    fs::write(&path, repo.to_string()).expect("written");
    let listing = |folder: &Path| {
        let mut names: Vec<_> = files_below(folder).into_iter().map(|path| (fs::read(&path).ok(), path)).collect();
        names.sort();
        names
    };
    let before = listing(store.root());
    // Both a store that was open when the other version wrote, and one that is opened now.
    for store in [store, place.store()] {
        let id = run_id(1);
        let refused: Vec<Result<(), StoreError>> = vec![
            store.with_lock(|_| Ok(())),
            store.update_run(&id, at(1), |_| {}).map(drop),
            store.open_journal(&id).map(drop),
            store.write_output(&store.output(&id).expect("read").expect("there")),
            store.append_dispositions(&[disposition(1, FindingStatus::Dismissed, "g")]),
            store.lock_run(&id).map(drop),
            store.advance_epoch().map(drop),
            store.repair().map(drop),
            store.prune(None, Some(0), at(0), false).map(drop),
        ];
        for (index, result) in refused.into_iter().enumerate() {
            let error = result.expect_err(&format!("write {index} is refused"));
            assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }), "{error}");
            assert!(error.hint().contains("upgrade revdeck"));
        }
        assert_eq!(ids(&store.view().expect("a view")).len(), 1);
        assert!(store.finding(&finding_id(1)).expect("read").is_some());
    }
    assert!(place.store().view().expect("a view").notices[0].contains("newer revdeck"));
    assert_eq!(listing(place.store().root()), before);
}
