//! Logs with much that is new: they are read in pieces, and nothing is left out.

use serde_json::json;

use super::hostile::{decision, push_tree, store_blob};
use super::machines::member;
use super::postgres_server::{OWNER, database};
use super::{Team, ids, review, status, sync};
use crate::env::TestEnvironment;
use crate::runner::place::wait_for;

/// Number of segments that hold more than 256 MB together.
const SEGMENTS: usize = 17;
/// Size of the two records of each of them in bytes. This version does not know their type, so they cost no more than reading.
const RECORD_BYTES: usize = 8_000_000;

/// Checks that a machine takes the decision that stands behind all the rest of Eve's log.
fn check_reads_all(machine: &TestEnvironment, finding: &str) {
    let received = sync(machine);
    assert_eq!(received["set_aside"], json!([]));
    assert_eq!(
        (&received["received"]["decisions"], &received["skipped"]),
        (&json!(1), &json!(2 * SEGMENTS)),
        "{received}"
    );
    assert_eq!(status(machine, finding), "dismissed");
    let again = sync(machine);
    assert_eq!((&again["received"]["decisions"], &again["skipped"]), (&json!(0), &json!(0)), "{again}");
}

#[test]
fn a_log_of_hundreds_of_megabytes_in_a_remote_is_read_whole() {
    let team = Team::new();
    let (ada, eve) = (team.member("Ada"), team.machine("Eve"));
    let found = ids(&review(&ada));
    let record = format!("{{\"type\":\"oracle\",\"deep\":\"{}\"}}\n", "a".repeat(RECORD_BYTES));
    let filler = store_blob(&eve, &record.repeat(2));
    let last = store_blob(&eve, &format!("{}\n", decision("eve-1", &found[0], "intended")));
    let mut tree: String = (0..SEGMENTS).map(|n| format!("100644 blob {filler}\t{n:06}-x.ndjson\n")).collect();
    tree.push_str(&format!("100644 blob {last}\t{SEGMENTS:06}-x.ndjson\n"));
    push_tree(&eve, "eve-1", &tree);
    check_reads_all(&ada, &found[0]);
}

#[test]
fn a_log_of_hundreds_of_megabytes_in_a_database_is_read_whole() {
    let Some(database) = database() else { return };
    let ada = member(&database, "Ada");
    let found = ids(&review(&ada));
    // The worker sends the review, and has received before.
    wait_for("the review", || (database.sql("SELECT count(*) FROM revdeck.segments") == "1").then_some(()));
    let insert = "INSERT INTO revdeck.segments (project, log, number, tag, content, written_by)";
    database.sql(&format!(
        "{insert} SELECT 'git.example.org/team/app', 'eve-1', number, 't', convert_to(repeat(
            '{{\"type\":\"oracle\",\"deep\":\"' || repeat('a', {RECORD_BYTES}) || E'\"}}\\n', 2), 'UTF8'), '{OWNER}'
        FROM generate_series(1, {SEGMENTS}) AS numbers (number)"
    ));
    let last = decision("eve-1", &found[0], "intended");
    database.sql(&format!(
        "{insert} VALUES ('git.example.org/team/app', 'eve-1', {SEGMENTS} + 1, 't', convert_to($r${last}$r$ || E'\\n', 'UTF8'), \
         '{OWNER}')"
    ));
    check_reads_all(&ada, &found[0]);
}
