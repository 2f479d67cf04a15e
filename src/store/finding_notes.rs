//! Stores notes about findings in `notes.ndjson`. The file is append-only. A note changes no status.

use std::collections::HashSet;

use super::extents::TrackedFile;
use super::{Store, StoreError, files, lines};
use crate::domain::{FindingId, FindingNote, NoteKind};

impl Store {
    /// Appends a note, synced. Returns `false` when the same author has already left the same text about the finding.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn append_note(&self, note: &FindingNote) -> Result<bool, StoreError> {
        self.with_lock(|_| {
            let mut repeats = false;
            self.read_notes(|known| {
                repeats |= known.finding_id == note.finding_id
                    && (known.kind, known.actor, &known.text) == (note.kind, note.actor, &note.text);
            })?;
            if repeats {
                return Ok(false);
            }
            let mut line = serde_json::to_vec(note)
                .map_err(|source| StoreError::Encode { what: "a note about a finding", source })?;
            line.push(b'\n');
            self.append_tracked(TrackedFile::Notes, &line)?;
            Ok(true)
        })
    }

    /// Returns the notes about a finding, oldest first. Lines that this version cannot read are ignored.
    ///
    /// # Errors
    /// Returns an error when `notes.ndjson` cannot be read.
    pub fn notes(&self, id: &FindingId) -> Result<Vec<FindingNote>, StoreError> {
        self.notes_where(|note| note.finding_id == *id)
    }

    /// Returns the notes that are wanted, oldest first. Lines that this version cannot read are ignored.
    ///
    /// # Errors
    /// Returns an error when `notes.ndjson` cannot be read.
    pub fn notes_where(&self, is_wanted: impl Fn(&FindingNote) -> bool) -> Result<Vec<FindingNote>, StoreError> {
        let mut notes = Vec::new();
        self.read_notes(|note| {
            if is_wanted(&note) {
                notes.push(note);
            }
        })?;
        Ok(notes)
    }

    /// Returns the findings whose report somebody has disputed.
    ///
    /// # Errors
    /// Returns an error when `notes.ndjson` cannot be read.
    pub fn disputed_findings(&self) -> Result<HashSet<FindingId>, StoreError> {
        let mut findings = HashSet::new();
        self.read_notes(|note| {
            if note.kind == NoteKind::Dispute {
                findings.insert(note.finding_id);
            }
        })?;
        Ok(findings)
    }

    fn read_notes(&self, mut take: impl FnMut(FindingNote)) -> Result<(), StoreError> {
        let path = self.notes_path();
        let Some(file) = files::open_read(&path)? else { return Ok(()) };
        lines::read_forwards(&file, 0, |_, line| {
            if let Ok(note) = serde_json::from_slice(line) {
                take(note);
            }
        })
        .map_err(StoreError::io("read", &path))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::domain::{Actor, Time};
    use crate::store::RepoInfo;

    #[test]
    fn a_note_is_kept_once_and_found_by_its_finding() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "n".into(), common_dir: "/n".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        let id = |n: u8| format!("f_00000000000000{n:02}").parse::<FindingId>().expect("an id");
        let note = |n: u8, text: &str| FindingNote {
            finding_id: id(n),
            kind: NoteKind::Dispute,
            actor: Actor::Assistant,
            text: text.to_owned(),
            at: Time::UNIX_EPOCH,
        };
        assert!(store.notes(&id(1)).expect("no file").is_empty());
        for (n, text, is_new) in [(1, "a", true), (2, "a", true), (1, "b", true), (1, "a", false)] {
            assert_eq!(store.append_note(&note(n, text)).expect("stored"), is_new, "{n} {text}");
        }
        assert_eq!(store.notes(&id(1)).expect("notes"), [note(1, "a"), note(1, "b")]);
        assert_eq!(store.disputed_findings().expect("findings"), HashSet::from([id(1), id(2)]));
        let remark = FindingNote { kind: NoteKind::Remark, actor: Actor::User, ..note(3, "later") };
        assert!(store.append_note(&remark).expect("stored"));
        assert_eq!(store.notes(&id(3)).expect("notes"), [remark]);
        assert!(!store.disputed_findings().expect("findings").contains(&id(3)), "a remark disputes nothing");
        assert!(store.verify().expect("verified").is_clean());
        let mut file = std::fs::OpenOptions::new().append(true).open(store.notes_path()).expect("there");
        file.write_all(b"{\"torn").expect("written");
        assert_eq!(store.notes(&id(2)).expect("notes"), [note(2, "a")]);
        assert!(!store.verify().expect("verified").is_clean());
        assert!(store.repair().expect("repaired").problems.iter().all(|problem| problem.repaired));
        assert_eq!(store.notes(&id(1)).expect("notes"), [note(1, "a"), note(1, "b")]);
    }
}
