//! Stores the kinds of findings that the user does not want reported, in `mutes.ndjson`. The file is append-only.

use std::collections::{BTreeMap, BTreeSet};

use super::extents::TrackedFile;
use super::{Store, StoreError, files, lines};
use crate::domain::{Kind, Mute, MuteAction, Time};

impl Store {
    /// Returns the muted kinds with the time since when. Lines that this version cannot read are ignored.
    ///
    /// # Errors
    /// Returns an error when `mutes.ndjson` cannot be read.
    pub fn muted_kinds(&self) -> Result<BTreeMap<Kind, Time>, StoreError> {
        let path = self.mutes_path();
        let mut muted = BTreeMap::new();
        if let Some(file) = files::open_read(&path)? {
            lines::read_forwards(&file, 0, |_, line| match serde_json::from_slice(line) {
                Ok(Mute { kind, action: MuteAction::Mute, at }) => drop(muted.entry(kind).or_insert(at)),
                Ok(Mute { kind, action: MuteAction::Unmute, .. }) => drop(muted.remove(&kind)),
                Err(_) => {}
            })
            .map_err(StoreError::io("read", &path))?;
        }
        Ok(muted)
    }

    /// Returns the kinds that the file says anything about.
    pub(super) fn kinds_with_mute_lines(&self) -> Result<BTreeSet<Kind>, StoreError> {
        let bytes = files::read(&self.mutes_path())?.unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Mute>(line).ok());
        Ok(lines.map(|mute| mute.kind).collect())
    }

    /// Mutes or unmutes kinds, synced, and returns the kinds that changed.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn set_muted(&self, kinds: &[Kind], action: MuteAction, at: Time) -> Result<Vec<Kind>, StoreError> {
        self.with_lock(|_| {
            let muted = self.muted_kinds()?;
            let (mut bytes, mut changed) = (Vec::new(), Vec::new());
            for &kind in kinds {
                if muted.contains_key(&kind) == (action == MuteAction::Mute) || changed.contains(&kind) {
                    continue;
                }
                serde_json::to_writer(&mut bytes, &Mute { kind, action, at })
                    .map_err(|source| StoreError::Encode { what: "a muted kind", source })?;
                bytes.push(b'\n');
                changed.push(kind);
            }
            if !bytes.is_empty() {
                self.append_tracked(TrackedFile::Mutes, &bytes)?;
            }
            Ok(changed)
        })
    }
}
