//! Says what to do about an error of an exchange, and whether trying again can help.

use super::SyncError;
use crate::domain::text::sanitize_line;
use crate::store::StoreError;
use crate::team::TeamError;
use crate::team::postgres::DatabaseError;

impl SyncError {
    /// Returns true if the same process fails again however long it waits: the error comes from the name, the settings or the
    /// version of this machine. What is wrong with the place may be put right there at any time.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::NotJoined | Self::Left { .. } | Self::NameTaken { .. } | Self::Exclude(_) => true,
            Self::Team(TeamError::Database(error)) => {
                matches!(error, DatabaseError::Address { .. } | DatabaseError::TooNew { .. })
            }
            Self::Store(error) => matches!(error, StoreError::Newer { .. }),
            Self::Busy
            | Self::Team(
                TeamError::Git(_)
                | TeamError::Contended { .. }
                | TeamError::ForeignRecords { .. }
                | TeamError::HiddenLog { .. },
            )
            | Self::Knowledge(_) => false,
        }
    }

    /// Returns the next step for the user.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotJoined => {
                "`revdeck team join` begins it, and says what will leave this machine; until then nothing does"
            }
            Self::Left { .. } => {
                "`revdeck team join` takes part again, and says what will leave this machine; until then nothing does, and \
                 other remotes need `revdeck sync REMOTE --yes` again"
            }
            Self::Exclude(_) => "a glob is written as in .gitignore",
            Self::Busy => "wait for its end, and try again",
            Self::NameTaken { .. } => "`revdeck team join --machine NAME` takes another name",
            Self::Team(TeamError::Git(error)) => return error.hint(),
            Self::Team(TeamError::Database(error)) => database_hint(error),
            Self::Team(TeamError::Contended { .. }) => {
                "nothing is lost; try again, and see `git ls-remote REMOTE 'refs/revdeck/team/*'` for a ref in its way"
            }
            Self::Team(TeamError::ForeignRecords { log, place }) => {
                return Some(format!(
                    "`git push {place} --delete refs/revdeck/team/{log}` removes the log, and the next `revdeck sync` sends \
                     your records again; let the owner of the remote protect refs/revdeck/team/*"
                ));
            }
            Self::Team(TeamError::HiddenLog { .. }) => {
                "see uploadpack.hideRefs of the remote; one of its own for the records works, also a bare repository: \
                 `revdeck team join REMOTE`"
            }
            Self::Store(error) => return Some(error.hint()),
            Self::Knowledge(error) => return Some(error.hint()),
        };
        Some(hint.to_owned())
    }

    /// Describes the error on one line; with the next step if nobody tries again by itself.
    pub(super) fn describe(&self) -> String {
        let mut said = self.to_string();
        if self.is_permanent()
            && let Some(hint) = self.hint()
        {
            said.push_str("; ");
            said.push_str(&hint);
        }
        sanitize_line(&said).into_owned()
    }
}

/// Says what to do about an error of the team's database.
fn database_hint(error: &DatabaseError) -> &'static str {
    match error {
        DatabaseError::Address { .. } => {
            "an address is postgres://USER@HOST/DATABASE; a password stands in PGPASSWORD or ~/.pgpass"
        }
        DatabaseError::Connect { is_login: true, .. } => {
            "put the password into PGPASSWORD or ~/.pgpass (mode 600), and see pg_hba.conf of the server"
        }
        DatabaseError::Connect { .. } | DatabaseError::Query { .. } => {
            "nothing is lost: what waits is sent by the next `revdeck sync`"
        }
        DatabaseError::NotPrepared { .. } | DatabaseError::Outdated { .. } => {
            "`revdeck team join` makes them with a role that may; `revdeck team schema` prints the SQL for an administrator"
        }
        DatabaseError::TooNew { .. } => "take a newer revdeck on this machine",
        DatabaseError::Denied { .. } => "docs/teams.md names the rights of members and owners",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_machine_alone_can_put_right_is_permanent_and_says_how() {
        let place = || "DB".to_owned();
        let taken = || SyncError::NameTaken { machine: "ada-1".parse().expect("a name"), place: place() };
        let database = |error: DatabaseError| SyncError::Team(TeamError::Database(error));
        let away = || DatabaseError::Connect { place: place(), what: "refused".into(), is_login: false };
        for (error, is_permanent) in [
            (SyncError::NotJoined, true),
            (SyncError::Left { machine: "ada-1".parse().expect("a name"), place: place() }, true),
            (taken(), true),
            (SyncError::Exclude(ignore::Error::Glob { glob: None, err: "a bracket is open".into() }), true),
            (database(DatabaseError::Address { what: "no host".into() }), true),
            (database(DatabaseError::TooNew { place: place(), found: 9, known: 3 }), true),
            (SyncError::Busy, false),
            (database(away()), false),
            (database(DatabaseError::Connect { place: place(), what: "no".into(), is_login: true }), false),
            (database(DatabaseError::NotPrepared { place: place() }), false),
            (database(DatabaseError::Outdated { place: place(), found: 1, needed: 3 }), false),
            (database(DatabaseError::Denied { place: place(), doing: "a step", what: "no".into() }), false),
        ] {
            assert_eq!(error.is_permanent(), is_permanent, "{error}");
            let hint = error.hint().expect("a next step");
            assert_eq!(error.describe().contains(&hint), is_permanent, "{error}");
        }
        assert_eq!(
            taken().describe(),
            "the name ada-1 is taken in DB: another machine or clone keeps its records there under this name; \
             `revdeck team join --machine NAME` takes another name"
        );
        assert_eq!(database(away()).describe(), "no connection to DB: refused");
    }
}
