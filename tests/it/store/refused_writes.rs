//! Stores that cannot be written: read-only folders, a full disk. Rights of new files.

use super::*;

#[test]
fn where_nothing_can_be_written_reads_work_and_writes_say_why() {
    let place = Place::new();
    fs::write(place.state(), "a file where the folder should be").expect("written");
    let store = place.store();
    assert_eq!(store.view().expect("a view").run_count(), 0);
    assert_eq!(store.recent_view(3).expect("a view").run_count(), 0);
    let error = store.with_lock(|locked| locked.create_run(&record(1, RunStatus::Pending))).expect_err("no folder");
    assert!(error.to_string().contains("auto-review"), "{error}");
    assert!(error.hint().contains("in the way"), "{}", error.hint());
}

#[cfg(unix)]
#[test]
fn a_read_only_store_is_read_and_says_so_when_written() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let store = place.store();
    for n in 1..=40 {
        create(&store, n, RunStatus::Pending);
        finish(&store, n, &[n]);
    }
    let all: Vec<PathBuf> = files_below(store.root());
    let folders = [store.root().to_owned(), store.root().join("outputs")];
    let protect = |files, folder| {
        for path in &all {
            fs::set_permissions(path, fs::Permissions::from_mode(files)).expect("set");
        }
        for path in &folders {
            fs::set_permissions(path, fs::Permissions::from_mode(folder)).expect("set");
        }
    };
    protect(0o400, 0o500);
    // Root may write everywhere; then only the reading half of this test has an effect.
    let can_write_anyway = fs::write(store.root().join("probe"), "").is_ok();
    assert_eq!(ids(&place.store().view().expect("a view")).len(), 40);
    assert!(!place.store().is_live(&run_id(1)).expect("asked"));
    if !can_write_anyway {
        assert!(!store.root().join("view.cache").exists());
        let line = [disposition(1, FindingStatus::Dismissed, "g")];
        let error = store.append_dispositions(&line).expect_err("read-only");
        assert!(error.hint().contains("access"), "{}", error.hint());
    }
    protect(0o600, 0o700);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_clear_error_and_leaves_nothing_half_written() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    store.append_dispositions(&[disposition(1, FindingStatus::Addressed, "g")]).expect("appended");
    let path = store.root().join("triage.ndjson");
    let before = fs::read(&path).expect("read");
    // The limit has room for some whole lines and a part of one.
    let done = helper("limit", &place.state(), before.len() + 1000).output().expect("a process");
    assert!(
        done.status.success(),
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(fs::read(&path).expect("read"), before);
    assert_eq!(store.read_journal(&run_id(1)).expect("read").len(), 1);
    assert!(store.verify().expect("verified").is_clean());

    fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
    let error = store.append_dispositions(&[disposition(2, FindingStatus::Addressed, "g")]).expect_err("full");
    assert!(error.to_string().contains("triage.ndjson"), "{error}");
    assert!(error.hint().contains("disk is full"), "{}", error.hint());
}

#[cfg(unix)]
#[test]
fn everything_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    finish(&store, 1, &[1]);
    store.append_dispositions(&[disposition(1, FindingStatus::Addressed, "g")]).expect("appended");
    store.open_journal(&run_id(1)).expect("opens").append(at(1), RunEvent::Unknown).expect("appended");
    let _lock = store.lock_run(&run_id(1)).expect("locks").expect("free");
    store.advance_epoch().expect("advanced");
    store.checkpoint_now().expect("written");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let files = files_below(store.root());
    assert_eq!(files.len(), 10, "{files:?}");
    for path in &files {
        assert_eq!(mode(path), 0o600, "{}", path.display());
        let mut folder = path.parent();
        while let Some(path) = folder.filter(|path| path.starts_with(place.state())) {
            assert_eq!(mode(path), 0o700, "{}", path.display());
            folder = path.parent();
        }
    }
    fs::set_permissions(store.root().join("triage.ndjson"), fs::Permissions::from_mode(0o644)).expect("opened up");
    assert_eq!(store.verify().expect("verified").problems.len(), 1);
    assert!(store.repair().expect("repaired").is_clean());
    assert_eq!(mode(&store.root().join("triage.ndjson")), 0o600);
}
