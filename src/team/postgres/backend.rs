//! Keeps the logs of a team in a table. The version of a log is number and tag of its last segment.

use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::address::DatabaseAddress;
use super::connection::{Database, DatabaseError};
use crate::domain::MachineName;
use crate::git::LogSignature;
use crate::team::backend::{
    AppendOutcome, LogList, LogVersion, PageReceiver, ReceivedSegment, TeamBackend, TeamError, UnreadSegment,
};
use crate::team::segment::MAX_SEGMENT_BYTES;

/// Size of the segments that one call sends or reads at most, in bytes, unless one segment is larger.
const MAX_CALL_BYTES: usize = 2 * MAX_SEGMENT_BYTES;
/// Maximum number of segments that one call reads.
const MAX_CALL_SEGMENTS: i64 = 500;

/// Lists the logs of a project. There is a row without a log, too, which says whether there is a budget.
const LIST_LOGS: &str = "SELECT logs.log, logs.number, logs.tag, EXISTS (
        SELECT FROM revdeck.budgets
        WHERE project = $1 AND (day_cost IS NOT NULL OR day_tokens IS NOT NULL))
    FROM (VALUES (1)) AS once LEFT JOIN revdeck.list_logs($1) AS logs ON true";
/// Step that fails when the logs cannot be listed.
const LISTING: &str = "listing the logs";

/// Logs of a team in a database.
pub struct PostgresBackend {
    database: Arc<Database>,
    /// Identity of the repository among those that share the database.
    project: String,
}

impl PostgresBackend {
    /// Connects to the logs of a project, and lists them.
    ///
    /// # Errors
    /// Returns an error when the database cannot be reached or used.
    pub fn open(address: &DatabaseAddress, project: &str) -> Result<(Self, LogList), DatabaseError> {
        let (database, rows) = Database::connect_and_query(address, LISTING, LIST_LOGS, &[(&project, Type::TEXT)])?;
        Ok((Self { database: Arc::new(database), project: project.to_owned() }, read_log_list(&rows)))
    }

    /// Lists the logs of a project over a connection that is there already.
    ///
    /// # Errors
    /// Returns an error when the database cannot be asked.
    pub fn over(database: Arc<Database>, project: &str) -> Result<(Self, LogList), DatabaseError> {
        let backend = Self { database, project: project.to_owned() };
        let list = backend.query_logs()?;
        Ok((backend, list))
    }

    fn query_logs(&self) -> Result<LogList, DatabaseError> {
        let rows = self.database.query(LISTING, LIST_LOGS, &[(&self.project, Type::TEXT)])?;
        Ok(read_log_list(&rows))
    }
}

/// Reads the rows of [`LIST_LOGS`].
fn read_log_list(rows: &[Row]) -> LogList {
    let named = rows.iter().filter_map(|row| {
        let name = row.get::<_, Option<&str>>(0)?.parse().ok()?;
        Some(LogVersion { name, version: format!("{}:{}", row.get::<_, i32>(1), row.get::<_, &str>(2)) })
    });
    let has_budget = rows.first().is_some_and(|row| row.get(3));
    LogList { logs: named.collect(), left_out: 0, has_budget }
}

/// Returns number and tag of the segment that a version means; 0 for none or for the version of another place.
fn read_version(version: Option<&str>) -> (i32, &str) {
    let parts = version.and_then(|version| version.split_once(':'));
    parts.and_then(|(number, tag)| Some((number.parse().ok()?, tag))).unwrap_or((0, ""))
}

impl TeamBackend for PostgresBackend {
    fn place(&self) -> &str {
        self.database.place()
    }

    fn list_logs(&self, _own: &MachineName) -> Result<LogList, TeamError> {
        Ok(self.query_logs()?)
    }

    fn fetch_logs(&self, _logs: &[LogVersion]) -> Result<(), TeamError> {
        // They are read where they are.
        Ok(())
    }

    fn read_segments(
        &self,
        log: &LogVersion,
        since: Option<&str>,
        take: &mut PageReceiver<'_>,
    ) -> Result<(), TeamError> {
        let (last, _) = read_version(Some(&log.version));
        // A log that has not the version any more, because the database was restored, is read from its start.
        let (mut number, mut tag) = match read_version(since) {
            (_, "") => (0, ""),
            known => known,
        };
        // The sizes first: only what fits is brought here.
        let sql = "SELECT s.number, s.size, CASE WHEN s.size <= $5 AND s.sum <= $6 THEN s.content END FROM (
                SELECT number, content, octet_length(content) AS size,
                    sum(octet_length(content)) OVER (ORDER BY number) AS sum
                FROM revdeck.segments
                WHERE project = $1 AND log = $2 AND number <= $4 AND number > CASE
                    WHEN $8 = '' OR EXISTS (
                        SELECT FROM revdeck.segments WHERE project = $1 AND log = $2 AND number = $3 AND tag = $8
                    ) THEN $3 ELSE 0 END
                ORDER BY number LIMIT $7
            ) s ORDER BY s.number";
        while number < last || !tag.is_empty() {
            let rows = self.database.query(
                "reading a log",
                sql,
                &[
                    (&self.project, Type::TEXT),
                    (&log.name.as_str(), Type::TEXT),
                    (&number, Type::INT4),
                    (&last, Type::INT4),
                    (&(MAX_SEGMENT_BYTES as i32), Type::INT4),
                    (&(MAX_CALL_BYTES as i64), Type::INT8),
                    (&MAX_CALL_SEGMENTS, Type::INT8),
                    (&tag, Type::TEXT),
                ],
            )?;
            tag = "";
            let mut page = Vec::new();
            for row in rows {
                let (size, content) = (row.get::<_, i32>(1), row.get::<_, Option<&[u8]>>(2));
                let size = u64::try_from(size).unwrap_or(u64::MAX);
                let content = match content {
                    Some(bytes) => Ok(bytes.to_vec()),
                    // It did not fit into this call.
                    None if size <= MAX_SEGMENT_BYTES as u64 => break,
                    None => Err(UnreadSegment::TooLarge { bytes: size }),
                };
                number = row.get(0);
                page.push(ReceivedSegment { name: number.to_string(), content });
            }
            // Without a row, the rest of the log has disappeared.
            if page.is_empty() || take(page).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn has_version(&self, log: &LogVersion, version: &str) -> Result<bool, TeamError> {
        let (number, tag) = read_version(Some(version));
        let rows = self.database.query(
            "reading a log",
            "SELECT FROM revdeck.segments WHERE project = $1 AND log = $2 AND number = $3 AND tag = $4",
            &[(&self.project, Type::TEXT), (&log.name.as_str(), Type::TEXT), (&number, Type::INT4), (&tag, Type::TEXT)],
        )?;
        Ok(!rows.is_empty())
    }

    fn log_signature(&self, log: &LogVersion) -> Result<LogSignature, TeamError> {
        // The database has checked who the writer is.
        let rows = self.database.query(
            "reading who has written a log",
            "SELECT DISTINCT written_by::text FROM revdeck.segments WHERE project = $1 AND log = $2 ORDER BY 1 LIMIT 20",
            &[(&self.project, Type::TEXT), (&log.name.as_str(), Type::TEXT)],
        )?;
        // A log has one role, except that of continuous integration.
        let roles: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
        Ok(LogSignature::Trusted(format!("role {}", roles.join(", "))))
    }

    fn new_signatures(
        &self,
        log: &LogVersion,
        _known: &str,
        _own: Option<&str>,
    ) -> Result<Vec<LogSignature>, TeamError> {
        Ok(vec![self.log_signature(log)?])
    }

    fn is_own(&self, _log: &LogVersion, _known: &str) -> Result<bool, TeamError> {
        // No other role can write it.
        Ok(true)
    }

    fn append(
        &self,
        log: &MachineName,
        segments: &[Vec<u8>],
        base: Option<&str>,
        _known: &str,
    ) -> Result<AppendOutcome, TeamError> {
        let (mut number, _) = read_version(base);
        let mut rest = segments;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |segment: &&Vec<u8>| {
                bytes += segment.len();
                bytes <= MAX_CALL_BYTES
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at(count);
            let contents: Vec<&[u8]> = now.iter().map(Vec::as_slice).collect();
            let row = self.database.query_one(
                "appending to a log",
                "SELECT revdeck.append_segments($1, $2, $3, $4)",
                &[
                    (&self.project, Type::TEXT),
                    (&log.as_str(), Type::TEXT),
                    (&number, Type::INT4),
                    (&contents, Type::BYTEA_ARRAY),
                ],
            )?;
            match row.get::<_, Option<i32>>(0) {
                Some(last) => number = last,
                None => return Ok(AppendOutcome::Moved),
            }
            rest = later;
        }
        let tag = self.database.query_one(
            "reading a log",
            "SELECT tag FROM revdeck.segments WHERE project = $1 AND log = $2 AND number = $3",
            &[(&self.project, Type::TEXT), (&log.as_str(), Type::TEXT), (&number, Type::INT4)],
        )?;
        Ok(AppendOutcome::Appended(format!("{number}:{}", tag.get::<_, &str>(0))))
    }
}
