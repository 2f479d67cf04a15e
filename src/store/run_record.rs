//! Reads the latest record of a run in `runs.ndjson`, and merges changes so that unknown fields are kept.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use memchr::memmem;
use serde_json::{Map, Value};

use super::{StoreError, StoreView, files, lines, parse};
use crate::domain::{RunId, RunRecord};

/// Latest lines of a run: the raw JSON, which a newer revdeck may have written, and the last record that this version
/// can read.
#[derive(Debug)]
pub(super) struct LatestRecord {
    pub(super) raw: Map<String, Value>,
    pub(super) record: RunRecord,
}

/// Finds the latest record of a run. The file is read from its end, because most changes affect recent runs.
pub(super) fn find_latest_record(path: &Path, id: &RunId) -> Result<Option<LatestRecord>, StoreError> {
    let Some(file) = files::open_read(path)? else { return Ok(None) };
    let finder = memmem::Finder::new(id.as_str().as_bytes());
    let (mut raw, mut found) = (None, None);
    lines::read_backwards(&file, |line| {
        // The id can also occur in lines of other runs, for example in `superseded_by`, so this is only a prefilter.
        if finder.find(line).is_none() {
            return ControlFlow::Continue(());
        }
        let Ok(Value::Object(object)) = serde_json::from_slice(line) else { return ControlFlow::Continue(()) };
        if object.get("run_id").and_then(Value::as_str) != Some(id.as_str()) {
            return ControlFlow::Continue(());
        }
        let record = serde_json::from_slice::<RunRecord>(line);
        raw.get_or_insert(object);
        match record {
            Ok(record) => {
                found = Some(record);
                ControlFlow::Break(())
            }
            Err(_) => ControlFlow::Continue(()),
        }
    })
    .map_err(StoreError::io("read", path))?;
    Ok(match (raw, found) {
        (Some(raw), Some(record)) => Some(LatestRecord { raw, record }),
        _ => None,
    })
}

/// Reads the record of a run that has ended in the view, at the position that the view has; `None` for another run, when its
/// line is not there, or when this version cannot read it.
pub(super) fn read_record_in(path: &Path, view: &StoreView, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
    let ended = view.run_index(id.as_str()).filter(|index| view.run_status(*index).is_terminal());
    let Some((at, bytes)) = ended.and_then(|index| view.run_line(index)) else { return Ok(None) };
    let Some(file) = files::open_read(path)? else { return Ok(None) };
    let mut line = vec![0; bytes];
    // The file may have been written anew, and be shorter.
    let is_read = files::read_at(&file, at, &mut line).is_ok();
    let record = is_read.then(|| serde_json::from_slice::<RunRecord>(&line).ok()).flatten();
    Ok(record.filter(|record| record.run_id == *id))
}

/// Returns the latest records of these runs. The file is read once, from its end, and only as far as needed.
pub(super) fn find_latest_records(
    path: &Path,
    wanted: &HashSet<&RunId>,
) -> Result<HashMap<RunId, RunRecord>, StoreError> {
    let mut found: HashMap<RunId, RunRecord> = HashMap::new();
    let Some(file) = files::open_read(path)?.filter(|_| !wanted.is_empty()) else { return Ok(found) };
    lines::read_backwards(&file, |line| {
        // Most lines need no parsing.
        let id = parse::peek_run_id(line).and_then(|id| id.parse::<RunId>().ok());
        if id.is_some_and(|id| !wanted.contains(&id) || found.contains_key(&id)) {
            return ControlFlow::Continue(());
        }
        if let Ok(record) = serde_json::from_slice::<RunRecord>(line)
            && wanted.contains(&record.run_id)
        {
            found.entry(record.run_id.clone()).or_insert(record);
        }
        if found.len() < wanted.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .map_err(StoreError::io("read", path))?;
    Ok(found)
}

/// Converts a record to a JSON object.
pub(super) fn to_object(record: &RunRecord) -> Result<Map<String, Value>, StoreError> {
    match serde_json::to_value(record) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Ok(Map::new()),
        Err(source) => Err(StoreError::Encode { what: "a run's record", source }),
    }
}

/// Applies the difference between `before` and `after`, both in the form of this version, to `raw`, the JSON in the
/// file. Keys unknown to this version are kept at any depth; known keys can also be removed.
pub(super) fn merge_changes(raw: &mut Map<String, Value>, before: &Map<String, Value>, after: &Map<String, Value>) {
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        raw.shift_remove(key);
    }
    for (key, new) in after {
        match (raw.get_mut(key), before.get(key), new) {
            (Some(_), Some(old), new) if old == new => {}
            (Some(Value::Object(raw)), Some(Value::Object(old)), Value::Object(new)) => merge_changes(raw, old, new),
            (Some(slot), _, new) => *slot = new.clone(),
            (None, _, new) => {
                raw.insert(key.clone(), new.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_latest_records_of_many_runs_are_those_of_each() {
        let id = |n: u32| -> RunId { format!("ar_{n:026}").parse().expect("an id") };
        let line = |n: u32, epoch: u64| {
            let at = "2026-01-02T03:04:05Z";
            json!({
                "run_id": id(n), "status": "completed", "created_at": at, "updated_at": at, "source": "cli", "scope": "all",
                "reviewer": "builtin", "scope_hash": "s", "worktree": "/w", "epoch": epoch,
            })
        };
        let mut text: String =
            [(1, 1), (2, 1), (1, 2), (3, 1), (2, 7)].map(|(n, epoch)| format!("{}\n", line(n, epoch))).concat();
        // The id at another place, a line of a later version, and no line.
        let moved = line(4, 5).to_string().replacen(&format!("\"run_id\":\"{}\",", id(4)), "", 1);
        text.push_str(&format!("{{\"x\":1,\"run_id\":\"{}\",{}\n", id(4), moved.trim_start_matches('{')));
        text.push_str(&format!("{{\"run_id\":\"{}\",\"status\":7}}\nrubbish\n", id(2)));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runs.ndjson");
        std::fs::write(&path, text).expect("written");
        let ids: Vec<RunId> = [1, 2, 4, 9].map(id).into();
        let found = find_latest_records(&path, &ids.iter().collect()).expect("readable");
        for id in &ids {
            let alone = find_latest_record(&path, id).expect("readable").map(|latest| latest.record);
            assert_eq!(found.get(id), alone.as_ref(), "{id}");
        }
        assert_eq!((found.len(), found[&ids[0]].subject.epoch), (3, 2));
        assert!(find_latest_records(&path, &HashSet::new()).expect("readable").is_empty());
    }

    #[test]
    fn what_is_not_known_stays_and_what_is_known_can_go() {
        let object = |value: Value| match value {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        for (raw, before, after, expected) in [
            (json!({"a":1,"x":9}), json!({"a":1}), json!({"a":2}), json!({"a":2,"x":9})),
            (json!({"a":1,"x":9}), json!({"a":1}), json!({}), json!({"x":9})),
            (json!({"x":9}), json!({}), json!({"b":3}), json!({"x":9,"b":3})),
            (
                json!({"o":{"k":1,"x":{"y":2}}}),
                json!({"o":{"k":1}}),
                json!({"o":{"k":5}}),
                json!({"o":{"k":5,"x":{"y":2}}}),
            ),
            (
                json!({"l":[{"k":1,"x":2}]}),
                json!({"l":[{"k":1}]}),
                json!({"l":[{"k":1}]}),
                json!({"l":[{"k":1,"x":2}]}),
            ),
            // A status written by a newer version stays until this version changes it.
            (json!({"s":"paused"}), json!({"s":"reviewing"}), json!({"s":"reviewing"}), json!({"s":"paused"})),
            (json!({"s":"paused"}), json!({"s":"reviewing"}), json!({"s":"cancelled"}), json!({"s":"cancelled"})),
        ] {
            let mut merged = object(raw.clone());
            merge_changes(&mut merged, &object(before), &object(after));
            assert_eq!(Value::Object(merged), expected, "{raw}");
        }
    }
}
