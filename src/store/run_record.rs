//! Reads the latest record of a run in `runs.ndjson`, and merges changes so that unknown fields are kept.

use std::ops::ControlFlow;
use std::path::Path;

use memchr::memmem;
use serde_json::{Map, Value};

use super::{StoreError, files, lines};
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
