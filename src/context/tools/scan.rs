//! Looking through the contents of many files, within a budget that depends on nothing but the snapshot.

use std::ops::ControlFlow;

use super::Stopped;
use super::files::Files;
use crate::context::text::{MAX_BYTES, is_binary};
use crate::domain::text::count;
use crate::git::{Entry, Repo};

/// Bytes that one call reads at most.
const BUDGET: u64 = 512 << 20;
/// A file counts as this many bytes at least: opening it costs as much as reading them.
const LEAST: u64 = 4 << 10;

/// What a scan did not look into.
#[derive(Default)]
pub struct Scanned {
    files: usize,
    of: usize,
    withheld: usize,
    oversized: usize,
    unreadable: usize,
    is_over_budget: bool,
}

/// Hands the files that may be seen and are text to `visit`, the nearest to the change first, until it breaks.
///
/// # Errors
/// When `cancelled` says so.
pub fn scan(
    (repo, files): (&Repo, &Files),
    wanted: &dyn Fn(&Entry) -> bool,
    cancelled: &dyn Fn() -> bool,
    visit: &mut dyn FnMut(&Entry, &[u8]) -> Result<ControlFlow<()>, Stopped>,
) -> Result<Scanned, Stopped> {
    let entries: Vec<&Entry> = files.nearest().filter(|entry| wanted(entry)).collect();
    let mut scanned = Scanned { of: entries.len(), ..Scanned::default() };
    let mut read = 0;
    for entry in entries {
        if cancelled() {
            return Err(Stopped::cancelled());
        }
        if files.withheld(entry).is_some() {
            scanned.withheld += 1;
            continue;
        }
        if read > BUDGET {
            scanned.is_over_budget = true;
            break;
        }
        scanned.files += 1;
        match repo.blob_size(&entry.id) {
            Ok(size) if size > MAX_BYTES => {
                scanned.oversized += 1;
                continue;
            }
            Ok(size) => read += size.max(LEAST),
            Err(_) => {
                scanned.unreadable += 1;
                continue;
            }
        }
        let Ok(content) = repo.blob(&entry.id) else {
            scanned.unreadable += 1;
            continue;
        };
        if !is_binary(&content) && visit(entry, &content)?.is_break() {
            break;
        }
    }
    Ok(scanned)
}

impl Scanned {
    /// Whether no file was wanted.
    pub fn is_empty(&self) -> bool {
        self.of == 0
    }

    /// What a reader of the results must know, a line each.
    pub fn notes(&self) -> String {
        let mut notes = String::new();
        if self.is_over_budget {
            notes.push_str(&format!(
                "Only {} of {} were searched, those near the change first: name a folder with `path` for others.\n",
                self.files,
                count(self.of, "file")
            ));
        }
        for (number, what) in [
            (self.withheld, "not searched: they hold secrets or are ignored by .gitignore"),
            (self.oversized, "not searched: too large"),
            (self.unreadable, "not searched: git does not have their content here"),
        ] {
            if number > 0 {
                notes.push_str(&format!("{} {what}.\n", count(number, "file")));
            }
        }
        notes
    }
}
