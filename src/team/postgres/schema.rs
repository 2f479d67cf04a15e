//! Versions of the tables in the database, and the SQL that makes them.

use super::connection::{Database, DatabaseError};

/// Version of the tables that this version of revdeck works with.
pub const SCHEMA_VERSION: i32 = 3;
/// Smallest version of the tables that older programs must know to use the tables of [`SCHEMA_VERSION`]. It grows only when a
/// migration changes what is there; one that only adds leaves it.
const OLDEST_CLIENT: i32 = 3;

/// SQL of each version, oldest first.
const MIGRATIONS: [&str; SCHEMA_VERSION as usize] = [
    include_str!("../../../assets/team/postgres/1-logs.sql"),
    include_str!("../../../assets/team/postgres/2-claims.sql"),
    include_str!("../../../assets/team/postgres/3-budgets.sql"),
];

/// SQL that comes before the first version.
const BEGIN: &str = "\
CREATE SCHEMA IF NOT EXISTS revdeck;
CREATE TABLE IF NOT EXISTS revdeck.migrations (
    version integer PRIMARY KEY,
    oldest_client integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
";

/// SQL of the rights that a member needs.
const MEMBER_RIGHTS: &str = "\
GRANT USAGE ON SCHEMA revdeck TO revdeck_member;
GRANT SELECT ON ALL TABLES IN SCHEMA revdeck TO revdeck_member;
GRANT EXECUTE ON FUNCTION revdeck.append_segments, revdeck.list_logs, revdeck.claim_review, revdeck.release_claims,
    revdeck.read_budget, revdeck.reserve, revdeck.settle TO revdeck_member;
";

/// Returns the SQL that makes all tables in an empty database, for an administrator who does not let revdeck do it.
pub fn full_sql() -> String {
    let mut sql = format!("BEGIN;\n\n{BEGIN}\n");
    for (version, migration) in (1..).zip(MIGRATIONS) {
        sql.push_str(&format!("-- Version {version}\n\n{migration}\n{}\n", record_version(version)));
    }
    sql.push_str(&format!(
        "-- Rights of a member. People connect by roles of their own that are members of revdeck_member, which must be \
         there:\n-- CREATE ROLE revdeck_member NOLOGIN;\n\n{MEMBER_RIGHTS}\nCOMMIT;\n"
    ));
    sql
}

fn record_version(version: i32) -> String {
    format!(
        "INSERT INTO revdeck.migrations (version, oldest_client) VALUES ({version}, {});\n",
        version.min(OLDEST_CLIENT)
    )
}

impl Database {
    /// Checks that the tables are there and of a version that this program knows.
    ///
    /// # Errors
    /// Returns an error when they are missing, too old or too new, or the database cannot be asked.
    pub fn check_schema(&self) -> Result<(), DatabaseError> {
        self.check_versions(self.schema_version()?)
    }

    /// Checks the version of the tables, and the version that a program must know to use them.
    pub(super) fn check_versions(&self, (version, oldest_client): (i32, i32)) -> Result<(), DatabaseError> {
        let place = || self.place().to_owned();
        if version < SCHEMA_VERSION {
            return Err(DatabaseError::Outdated { place: place(), found: version, needed: SCHEMA_VERSION });
        }
        if oldest_client > SCHEMA_VERSION {
            return Err(DatabaseError::TooNew { place: place(), found: oldest_client, known: SCHEMA_VERSION });
        }
        Ok(())
    }

    /// Makes the tables, or brings them to this version. Does nothing, and needs no rights, if they have it. Several machines
    /// may do this at once. Returns the number of versions that were added.
    ///
    /// # Errors
    /// Returns an error when the role may not do so, or the database cannot be asked.
    pub fn migrate(&self) -> Result<usize, DatabaseError> {
        match self.check_schema() {
            Err(DatabaseError::NotPrepared { .. } | DatabaseError::Outdated { .. }) => {}
            Err(error) => return Err(error),
            Ok(()) => {
                // The role of members may have been made since.
                match self.give_member_rights() {
                    Ok(()) | Err(DatabaseError::Denied { .. }) => return Ok(0),
                    Err(error) => return Err(error),
                }
            }
        }
        // The lock makes the second of two machines see what the first one has made. It ends with the transaction.
        let lock = "SELECT pg_advisory_xact_lock(7311542);\n";
        self.run_script("making its tables", &format!("BEGIN;\n{lock}{BEGIN}COMMIT;\n"))?;
        let mut added = 0;
        for (version, migration) in (1..).zip(MIGRATIONS) {
            // A version that another machine has just added ends the script with an error that is none.
            let script = format!(
                "BEGIN;\n{lock}DO $revdeck$ BEGIN IF EXISTS (SELECT FROM revdeck.migrations WHERE version = {version}) THEN \
                 RAISE EXCEPTION USING ERRCODE = '{ALREADY_ADDED}'; END IF; END $revdeck$;\n{migration}\n{}COMMIT;\n",
                record_version(version)
            );
            match self.run_script("making its tables", &script) {
                Ok(()) => added += 1,
                Err(DatabaseError::Query { code, .. }) if code == ALREADY_ADDED => {
                    self.run_script("", "ROLLBACK;\n")?
                }
                Err(error) => {
                    self.run_script("", "ROLLBACK;\n")?;
                    return Err(error);
                }
            }
        }
        self.give_member_rights()?;
        Ok(added)
    }

    /// Gives the role of members its rights, if there is one.
    fn give_member_rights(&self) -> Result<(), DatabaseError> {
        match self.has_member_role()? {
            true => self.run_script("giving members their rights", MEMBER_RIGHTS),
            false => Ok(()),
        }
    }
}

/// Code of the error that says that a version is there already.
const ALREADY_ADDED: &str = "RD001";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sql_for_administrators_has_every_version_and_no_right_for_everybody() {
        let sql = full_sql();
        for version in 1..=SCHEMA_VERSION {
            assert!(sql.contains(&format!("-- Version {version}\n")), "{version}");
        }
        let functions: Vec<&str> =
            sql.lines().filter_map(|line| line.strip_prefix("CREATE FUNCTION ")?.split('(').next()).collect();
        assert!(functions.len() > 5, "{functions:?}");
        for function in functions {
            let revoked = sql.lines().any(|line| line.starts_with("REVOKE ALL ON FUNCTION") && line.contains(function));
            assert!(revoked, "{function} may be called by everybody");
            let body = sql.split(&format!("CREATE FUNCTION {function}(")).nth(1).expect("a function");
            let head = body.split("$$").next().expect("a head");
            assert!(head.contains("SECURITY DEFINER SET search_path = pg_catalog, pg_temp"), "{function}");
        }
        assert!(!MEMBER_RIGHTS.contains("set_budget"), "the budget is the owner's");
    }
}
