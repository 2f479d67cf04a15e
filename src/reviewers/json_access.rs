//! Reads untrusted JSON: a missing field or a field of another type is empty or 0.

use serde_json::Value;

/// Returns the text of a field, or `""`.
pub fn str_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the text at a JSON pointer, or `""`.
pub fn str_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the number of a field, or 0.
pub fn u64_field(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// Returns the number (a token count or an index) at a JSON pointer. Returns `None` above `u32::MAX`, so that sums
/// cannot overflow.
pub fn number_at(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64).filter(|number| *number <= u64::from(u32::MAX))
}

/// Returns the items of the list at a JSON pointer; none if there is no list.
pub fn items_at<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}
