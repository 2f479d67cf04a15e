//! Finds the values of Kubernetes secrets: everything below `data` and `stringData` of a document of the kind `Secret`,
//! whatever its name.

use super::SecretSpan;

/// Shortest value, in bytes. Shorter ones are numbers and flags.
const MIN_VALUE_BYTES: usize = 4;

/// Finds the values of all secrets in a YAML text.
pub(super) fn find_manifest_secrets(text: &str, found: &mut Vec<SecretSpan>) {
    if !text.contains("Secret") || !text.contains("ata:") {
        return;
    }
    let mut start = 0;
    let mut document = 0..0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if line.trim_end() == "---" {
            find_in_document(text, document.start, document.end, found);
            document = end..end;
        } else {
            document.end = end;
        }
        start = end;
    }
    find_in_document(text, document.start, document.end, found);
}

fn find_in_document(text: &str, start: usize, end: usize, found: &mut Vec<SecretSpan>) {
    let document = text.get(start..end).unwrap_or_default();
    let is_secret = |line: &str| {
        let line = line.trim_start_matches(['+', '-', ' ']).trim_end();
        line.strip_prefix("kind:").is_some_and(|kind| kind.trim().trim_matches(['"', '\'']) == "Secret")
    };
    if !document.lines().any(is_secret) {
        return;
    }
    let mut at = start;
    // Indentation of `data:`, while its lines are read.
    let mut data = None;
    for line in document.split_inclusive('\n') {
        let content = line.trim_end();
        let indent = content.len() - content.trim_start().len();
        let trimmed = content.trim_start();
        match data {
            Some(above) if !trimmed.is_empty() && indent > above => {
                let value = trimmed.split_once(": ").map_or(trimmed, |(_, value)| value).trim();
                let value = value.trim_matches(['"', '\'']);
                if value.len() >= MIN_VALUE_BYTES
                    && !value.starts_with(['|', '>', '#', '{', '$'])
                    && !trimmed.ends_with(':')
                {
                    let offset = value.as_ptr() as usize - text.as_ptr() as usize;
                    found.push((offset..offset + value.len(), "a secret"));
                }
            }
            _ if matches!(trimmed, "data:" | "stringData:") => data = Some(indent),
            _ if !trimmed.is_empty() => data = None,
            _ => {}
        }
        at += line.len();
    }
    debug_assert_eq!(at, end);
}
