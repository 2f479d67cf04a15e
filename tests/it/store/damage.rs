//! Damaged stores: whatever happens to the files, `verify` and `repair` end without a panic, nothing that can be read is
//! lost, and the repaired store goes on working.
//!
//! The campaign: `cargo test --test it -- --ignored campaign_of_damaged_stores --nocapture`. `REVDECK_TEST_STORES` sets
//! the number of stores (350), `REVDECK_TEST_SEED` the seed.

use std::collections::BTreeSet;

use super::*;
use crate::chance::{Dice, variable};

/// Creates a store with runs in every state, findings, decisions, mutes, deliveries and journals.
fn fill(store: &Store) {
    for n in 1..8 {
        create(store, n, RunStatus::Reviewing);
        let mut journal = store.open_journal(&run_id(n)).expect("a journal");
        for found in [n * 3, n * 3 + 1] {
            let event = RunEvent::Finding { finding: Box::new(finding(found, n)) };
            journal.append(at(1), event).expect("appended");
        }
        match n % 3 {
            0 => {}
            1 => finish(store, n, &[n * 3, n * 3 + 1]),
            _ => drop(store.update_run(&run_id(n), at(2), |run| run.status = RunStatus::Lost).expect("lost")),
        }
        let lines = [disposition(n * 3, FindingStatus::Dismissed, &format!("t_{n}"))];
        store.append_dispositions(&lines).expect("decided");
    }
    store.set_muted(&[Kind::DeadCode], MuteAction::Mute, at(1)).expect("muted");
    store.advance_epoch().expect("advanced");
    drop(store.lock_run(&run_id(1)).expect("locked"));
    store.checkpoint_now().expect("written");
}

/// Damages a file in one of many ways. Returns a description.
fn damage(path: &Path, dice: &mut Dice) -> String {
    let mut bytes = fs::read(path).expect("a file");
    let place = dice.below(bytes.len() as u64) as usize;
    let end = (place + 1 + dice.below(200) as usize).min(bytes.len());
    let kind = dice.below(12);
    match kind {
        0 => bytes.truncate(place),
        1 => bytes.clear(),
        2 => bytes[place..end].fill(0),
        3 => bytes[place..end].fill(b'\n'),
        4 => bytes[place..end].iter_mut().for_each(|byte| *byte = dice.below(256) as u8),
        5 => drop(bytes.drain(place..end)),
        6 => {
            let copy = bytes[place..end].to_vec();
            bytes.splice(place..place, copy);
        }
        7 => drop(bytes.splice(place..place, b"\xff\xfe{\"run_id\":7}\n".iter().copied())),
        8 => bytes.extend_from_slice(b"{\"torn\":"),
        9 => bytes.reverse(),
        10 => {
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << dice.below(8);
            }
        }
        _ => {
            fs::remove_file(path).expect("removed");
            return format!("{} removed", path.display());
        }
    }
    fs::write(path, bytes).expect("written");
    format!("{} in way {kind} at {place}..{end}", path.display())
}

/// Returns the lines of the store's line files that are JSON objects, by the name of the file without `.corrupt-N`.
fn readable_lines(store: &Store) -> BTreeSet<(String, String)> {
    let mut lines = BTreeSet::new();
    for file in files_below(store.root()) {
        let name = file.strip_prefix(store.root()).expect("below").display().to_string();
        let name = name.split(".corrupt-").next().unwrap_or_default().to_owned();
        if !(name.ends_with(".ndjson") || name.ends_with(".jsonl")) || name == "losses.ndjson" {
            continue;
        }
        for line in String::from_utf8_lossy(&fs::read(&file).expect("a file")).lines() {
            if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line).is_ok() {
                lines.insert((name.clone(), line.to_owned()));
            }
        }
    }
    lines
}

fn known_ids(store: &Store) -> BTreeSet<String> {
    let view = store.view().expect("a view");
    let runs = (0..view.run_count()).map(|index| view.run(index).id.to_owned());
    runs.chain((0..view.finding_count()).map(|index| view.finding(index).id.to_owned())).collect()
}

/// Damages one store, checks and repairs it. Returns the numbers of problems found and left.
fn try_store(seed: u64) -> (usize, usize) {
    let mut dice = Dice(seed);
    let place = Place::new();
    fill(&place.store());
    let root = place.store().root().to_owned();
    let mut done = Vec::new();
    for _ in 0..=dice.below(4) {
        let mut files = files_below(&root);
        files.retain(|file| file.file_name().is_none_or(|name| name != "store.lock"));
        files.sort();
        let file = files.swap_remove(dice.below(files.len() as u64) as usize);
        done.push(damage(&file, &mut dice));
    }
    let hint = format!("seed {seed}: {done:?}");
    let store = Store::open(&place.state(), info(1)).unwrap_or_else(|error| panic!("{hint}: {error}"));
    if store.newer_schema().is_some() {
        // The damage made a number of it that only a newer revdeck writes: such a store is read, not written.
        assert!(matches!(store.repair(), Err(StoreError::Newer { .. })), "{hint}");
        return (0, 0);
    }
    // Without the cached view, which may still hold what the files have lost.
    let _ = fs::remove_file(root.join("view.cache"));
    let before = (readable_lines(&store), known_ids(&store));
    let found = store.verify().unwrap_or_else(|error| panic!("{hint}: {error}"));
    assert_eq!((readable_lines(&store), known_ids(&store)), before, "verify changes something; {hint}");
    let repaired = store.repair().unwrap_or_else(|error| panic!("{hint}: {error}"));
    let after = (readable_lines(&store), known_ids(&store));
    let lost: Vec<_> = before.0.difference(&after.0).collect();
    assert!(lost.is_empty(), "a repair loses lines: {lost:#?}; {hint}");
    let lost: Vec<_> = before.1.difference(&after.1).collect();
    assert!(lost.is_empty(), "a repair loses runs or findings: {lost:?}; {hint}");
    let left = repaired.problems.iter().filter(|problem| !problem.repaired).count();
    let again = store.verify().expect("verified");
    assert_eq!(again.problems.len(), left, "{:#?}; {hint}", again.problems);
    // The store goes on working.
    let store = Store::open(&place.state(), info(1)).expect("opens");
    create(&store, 9, RunStatus::Pending);
    finish(&store, 9, &[90]);
    store.append_dispositions(&[disposition(90, FindingStatus::Addressed, "t_90")]).expect("decided");
    assert_eq!(store.status(&finding_id(90)).expect("a status"), FindingStatus::Addressed, "{hint}");
    assert_eq!(store.verify().expect("verified").problems.len(), left, "{hint}");
    (found.problems.len(), left)
}

fn try_stores(count: usize, seed: u64) -> (usize, usize) {
    let tried: Vec<(usize, usize)> = (0..count as u64).map(|number| try_store(seed + number * 7919 + 1)).collect();
    tried.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[test]
fn some_damaged_stores_lose_nothing_that_can_be_read() {
    let (found, _) = try_stores(24, 0x5eed);
    assert!(found > 24, "{found} problems");
}

#[test]
#[ignore = "takes a minute"]
#[allow(clippy::print_stdout, reason = "the figures are what one looks for")]
fn campaign_of_damaged_stores() {
    let (count, seed) = (variable("REVDECK_TEST_STORES", 350), variable("REVDECK_TEST_SEED", 0x5eed) as u64);
    let (found, left) = try_stores(count, seed);
    println!(
        "{count} damaged stores, {found} problems, {left} beyond repair: no panic, nothing readable lost (seed {seed})"
    );
}
