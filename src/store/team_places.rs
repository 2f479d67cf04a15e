//! Stores how far the exchange has come with places beside the one that this machine has joined: git remotes with which a person
//! lets it exchange the same records when the person names them. Each has a file in the folder `team/places`.
//!
//! The file of a place says what was sent there and what was read there. Facts that are the same for all places (which decisions are
//! collected, which records were held back, about what people disagree) stay in `team.json`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::team::read_json;
use super::{LogProgress, Store, StoreError, TeamProgress, files};
use crate::domain::{Time, content_hash};

/// Number of characters of a place's hash in the name of its file.
const HASH_CHARS: usize = 16;

/// Place beside the joined one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherTeamPlace {
    /// Name of a git remote, URL or path.
    pub place: String,
    /// Time at which a person let records leave for it.
    pub allowed_at: Option<Time>,
    /// How far the exchange with it has come; empty in what does not depend on a place.
    pub progress: TeamProgress,
}

impl TeamProgress {
    /// Returns the progress of an exchange with another place, see [`TeamProgress::at_place_of`]. Who has signed the logs of the
    /// joined place is known there, too, so that no other key takes over the name of a machine.
    pub(super) fn seen_at(self, mut place: Self) -> Self {
        for (name, log) in &self.logs {
            let known = || LogProgress { signed: log.signed.clone(), ..LogProgress::default() };
            place.logs.entry(name.clone()).or_insert_with(known);
        }
        self.at_place_of(place)
    }

    /// Returns the progress with what depends on a place taken from `place`, and all else from `self`.
    #[must_use]
    pub(super) fn at_place_of(self, place: Self) -> Self {
        Self {
            sent_bytes: place.sent_bytes,
            own_version: place.own_version,
            own_received: place.own_received,
            reader: place.reader,
            has_budget: place.has_budget,
            logs: place.logs,
            unfetched: place.unfetched,
            set_aside: place.set_aside,
            synced_at: place.synced_at,
            failure: place.failure,
            ..self
        }
    }
}

impl Store {
    /// Returns the store as an exchange with another place sees it: membership and progress are those of that place.
    pub fn for_team_place(self, place: &str) -> Self {
        Self { team_place: Some(place.to_owned()), ..self }
    }

    fn team_places_folder(&self) -> PathBuf {
        self.root.join("team").join("places")
    }

    pub(super) fn team_place_path(&self, place: &str) -> PathBuf {
        let hash: String = content_hash([place.as_bytes()]).chars().take(HASH_CHARS).collect();
        self.team_places_folder().join(format!("{hash}.json"))
    }

    /// Returns a place beside the joined one; `None` if no person has let records leave for it.
    ///
    /// # Errors
    /// Returns an error when its file cannot be read or is damaged.
    pub fn other_team_place(&self, place: &str) -> Result<Option<OtherTeamPlace>, StoreError> {
        read_json(&self.team_place_path(place))
    }

    /// Lists the places beside the joined one, sorted by name. A damaged file is left out: its exchange names it.
    ///
    /// # Errors
    /// Returns an error when the folder cannot be listed.
    pub fn other_team_places(&self) -> Result<Vec<OtherTeamPlace>, StoreError> {
        let folder = self.team_places_folder();
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("list", &folder)(error)),
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
        let mut places: Vec<OtherTeamPlace> = paths.filter_map(|path| read_json(&path).ok().flatten()).collect();
        places.sort_by(|a, b| a.place.cmp(&b.place));
        Ok(places)
    }

    /// Records that a person lets records leave for a place beside the joined one.
    ///
    /// # Errors
    /// Returns an error when its file cannot be written.
    pub fn allow_team_place(&self, place: &str, now: Time) -> Result<(), StoreError> {
        let allowed = OtherTeamPlace {
            place: place.to_owned(),
            allowed_at: Some(now),
            ..self.other_team_place(place)?.unwrap_or_default()
        };
        self.write_other_place(&allowed)
    }

    pub(super) fn write_other_place(&self, place: &OtherTeamPlace) -> Result<(), StoreError> {
        files::make_folder(&self.team_places_folder())?;
        self.write_team_file(&self.team_place_path(&place.place), place)
    }

    /// Changes how far the exchange with each place beside the joined one has come. The caller must hold the lock of
    /// [`Store::lock_team`].
    ///
    /// # Errors
    /// Returns an error when a file cannot be written.
    pub fn update_other_places(&self, mut change: impl FnMut(&mut TeamProgress)) -> Result<(), StoreError> {
        for mut place in self.other_team_places()? {
            change(&mut place.progress);
            self.write_other_place(&place)?;
        }
        Ok(())
    }

    /// Forgets all places beside the joined one: nothing leaves for them before a person allows it again. The caller must hold
    /// the lock of [`Store::lock_team`].
    ///
    /// # Errors
    /// Returns an error when a file cannot be removed.
    pub fn forget_other_places(&self) -> Result<(), StoreError> {
        match std::fs::remove_dir_all(self.team_places_folder()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::io("remove", &self.team_places_folder())(error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::MachineName;

    #[test]
    fn what_depends_on_a_place_is_kept_apart() {
        let text = |text: &str| text.to_owned();
        let joined = TeamProgress {
            triage_bytes: 1,
            runs_bytes: 2,
            sent_bytes: 3,
            own_version: text("a"),
            failure: Some(text("away")),
            ..TeamProgress::default()
        };
        let other = TeamProgress { triage_bytes: 9, sent_bytes: 7, own_version: text("b"), ..TeamProgress::default() };
        let seen = joined.clone().at_place_of(other);
        assert_eq!((seen.triage_bytes, seen.sent_bytes, seen.own_version.as_str()), (1, 7, "b"));
        assert_eq!(seen.failure, None);
        // What the exchange with the other place collected counts for both; the rest of the joined place stays.
        let after = TeamProgress { triage_bytes: 5, sent_bytes: 8, ..seen };
        let back = after.at_place_of(joined.clone());
        assert_eq!((back.triage_bytes, back.sent_bytes, back.own_version), (5, 3, joined.own_version));
        assert_eq!(back.failure, joined.failure);
    }

    #[test]
    fn the_owner_of_a_name_is_the_same_at_every_place() {
        let name = |name: &str| name.parse::<MachineName>().expect("a name");
        let log = |version: &str, signed: &str| LogProgress {
            version: version.to_owned(),
            signed: signed.to_owned().into(),
            ..LogProgress::default()
        };
        let progress = |logs: &[(&str, LogProgress)]| TeamProgress {
            logs: logs.iter().map(|(machine, log)| (name(machine), log.clone())).collect(),
            ..TeamProgress::default()
        };
        let joined = progress(&[("ada-1", log("a", "signed by ada")), ("bob-1", log("b", "signed by bob"))]);
        let there = progress(&[("bob-1", log("x", "signed by carol")), ("cyd-1", log("y", "unsigned"))]);
        let seen = joined.seen_at(there);
        let logs: Vec<String> =
            seen.logs.iter().map(|(name, log)| format!("{name} {} {}", log.version, log.signed)).collect();
        assert_eq!(logs, ["ada-1  signed by ada", "bob-1 x signed by carol", "cyd-1 y unsigned"]);
    }

    #[test]
    fn a_place_is_remembered_until_it_is_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = crate::store::RepoInfo {
            version: crate::domain::SCHEMA_VERSION,
            key: "k".to_owned(),
            name: "n".to_owned(),
            common_dir: "/n".to_owned(),
        };
        let store = Store::open(folder.path(), info).expect("a store");
        assert_eq!(store.other_team_place("backup").expect("read"), None);
        let now = Time::from_second(60).expect("a time");
        store.allow_team_place("backup", now).expect("stored");
        let of_backup = store.clone().for_team_place("backup");
        let progress = TeamProgress { triage_bytes: 4, sent_bytes: 5, ..TeamProgress::default() };
        of_backup.write_team_progress(&progress).expect("stored");
        assert_eq!(of_backup.team_progress().expect("read"), progress);
        let joined = store.team_progress().expect("read");
        assert_eq!((joined.triage_bytes, joined.sent_bytes), (4, 0));
        // An exchange without anything new puts only the file of its place in place.
        let progress = TeamProgress { triage_bytes: 6, ..progress };
        of_backup.prepare_team_progress(progress).expect("stored").put_in_place().expect("renamed");
        assert_eq!(store.team_progress().expect("read").triage_bytes, 6);
        let places = store.other_team_places().expect("read");
        let known: Vec<_> = places.iter().map(|place| (place.place.as_str(), place.progress.sent_bytes)).collect();
        assert_eq!(known, [("backup", 5)]);
        assert_eq!(places[0].allowed_at, Some(now));
        store.forget_other_places().expect("removed");
        store.forget_other_places().expect("nothing to remove");
        assert_eq!(store.other_team_places().expect("read"), []);
    }
}
