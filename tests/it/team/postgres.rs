//! Teams over a real PostgreSQL: the same records as over git, rights of roles, logins, and news as they happen.

use std::process::{Child, Stdio};

use serde_json::json;

use super::machines::{machine, member};
use super::postgres_server::{OWNER, PASSWORD, database};
use super::{ids, review, status, sync};
use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, err, out, run};
use crate::runner::place::wait_for;

#[test]
fn a_database_carries_reviews_and_decisions() {
    let Some(database) = database() else { return };
    let ada = machine("Ada");
    let joined = run(&ada, &["team", "join", &database.address(OWNER), "--machine", "ada-1"], DONE);
    let shown = database.address(OWNER).replace("owner@", "");
    insta::assert_snapshot!(joined.replace(&shown, "DATABASE"), @r#"
    ada-1 takes part · records are kept in DATABASE, project git.example.org/team/app
    the database has got its tables

    Leaves with share = "findings": decisions about findings (id, status, reason, author, time), and completed reviews: commits, branch, paths, the words of findings, coverage, tokens and cost; no code.
    Never leaves: secrets (masked), prompts, answers of models, other code, settings.

    Nothing has left yet. The first `revdeck sync` sends nothing; `revdeck sync --dry-run --show` prints it.
    An open cockpit, `sync --follow` and the end of a review send by themselves.
    What was sent cannot be called back.
    "#);
    let bob = member(&database, "Bob");
    let reviewed = review(&ada);
    let found = ids(&reviewed);
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended: the caller copes"], DONE);
    sync(&ada);
    let received = sync(&bob);
    assert_eq!((&received["received"], &received["applied"]), (&json!({"decisions": 1, "reviews": 1}), &json!(1)));
    let again = review(&bob);
    assert_eq!((&again["decision"]["action"], &again["run"]["team"]["machine"]), (&json!("reuse"), &json!("ada-1")));
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("dismissed".into(), "open".into()));
    // Nothing new is nothing done.
    assert_eq!(sync(&bob)["received"], json!({"decisions": 0, "reviews": 0}));
    // What Bob decides comes back, and an undo does, too.
    run(&bob, &["triage", &found[1], "dismissed", "--reason", "not ours"], DONE);
    sync(&bob);
    sync(&ada);
    assert_eq!(status(&ada, &found[1]), "dismissed");
    run(&bob, &["undo"], DONE);
    sync(&bob);
    sync(&ada);
    assert_eq!(status(&ada, &found[1]), "open");
    let content = "SELECT string_agg(convert_from(content, 'UTF8'), '') FROM revdeck.segments";
    assert!(!database.sql(content).contains("path.read()"), "no code travels by default");
    assert_eq!(database.sql("SELECT DISTINCT project FROM revdeck.segments"), "git.example.org/team/app");
}

#[test]
fn a_machine_joins_its_database_again_without_the_address() {
    let Some(database) = database() else { return };
    let ada = machine("Ada");
    let place = || {
        let mut shown = ada.json(&["team", "--format", "json"], DONE);
        ["place", "project"].map(|key| shown["membership"][key].take())
    };
    run(&ada, &["team", "join", &database.address(OWNER), "--machine", "ada-1", "--project", "app"], DONE);
    let first = place();
    assert_eq!(first[1], "app");
    run(&ada, &["team", "leave"], DONE);
    let joined = run(&ada, &["team", "join"], DONE);
    assert!(joined.contains("this machine took part there last"), "{joined}");
    assert_eq!(place(), first);
    // The database of the settings goes before it, and keeps the name of the repository if it is the same one.
    ada.settings(&format!("[team]\nbackend = \"postgres\"\ndatabase = \"{}\"\n", database.address(OWNER)));
    let joined = run(&ada, &["team", "join"], DONE);
    assert!(!joined.contains("this machine took part there last"), "{joined}");
    assert_eq!(place(), first);
}

#[test]
fn repositories_that_share_a_database_stay_apart() {
    let Some(database) = database() else { return };
    let (ada, other) = (member(&database, "Ada"), machine("Bob"));
    run(&other, &["team", "join", &database.address(OWNER), "--machine", "bob-1", "--project", "other"], DONE);
    review(&ada);
    sync(&ada);
    assert_eq!(sync(&other)["machines"], 0);
}

#[test]
fn members_may_append_to_their_own_logs_and_nothing_else() {
    let Some(database) = database() else { return };
    database.create_member_role();
    let ada = member(&database, "Ada");
    let (writer, stranger) = (format!("writer_{}", database.name), format!("stranger_{}", database.name));
    database.create_role(&writer, "revdeck_member");
    database.create_role(&stranger, "");
    let bob = machine("Bob");
    run(&bob, &["team", "join", &database.address(&writer), "--machine", "bob-1"], DONE);
    review(&ada);
    sync(&ada);
    assert_eq!(sync(&bob)["received"]["reviews"], 1);
    review(&bob);
    run(&bob, &["triage", &ids(&review(&bob))[0], "addressed"], DONE);
    assert_eq!(sync(&bob)["sent"]["decisions"], 1);
    // Tables are not written past the functions.
    for forbidden in [
        "INSERT INTO revdeck.segments VALUES ('p', 'eve-1', 1, 'x', 'owner')",
        "UPDATE revdeck.segments SET content = 'x'",
        "DELETE FROM revdeck.segments",
        "UPDATE revdeck.claims SET ends_at = now()",
        "DELETE FROM revdeck.spending",
        "SELECT revdeck.set_budget('git.example.org/team/app', 1e9, NULL)",
        "CREATE TABLE revdeck.more (x int)",
    ] {
        let refused = database.sql_as(&writer, forbidden).expect_err(forbidden);
        assert!(refused.contains("permission denied"), "{forbidden}: {refused}");
    }
    let own = "SELECT revdeck.append_segments('git.example.org/team/app', 'ada-1', 1, ARRAY['x'::bytea])";
    let refused = database.sql_as(&writer, own).expect_err("another's log");
    assert!(refused.contains("the log ada-1 belongs to the role owner"), "{refused}");
    let refused = database.sql_as(&stranger, "SELECT * FROM revdeck.list_logs('x')").expect_err("a stranger");
    assert!(refused.contains("permission denied"), "{refused}");
    let eve = machine("Eve");
    let refused = eve.fails(&["team", "join", &database.address(&stranger), "--machine", "eve-1"], INCOMPLETE);
    insta::assert_snapshot!(refused.replace(&database.address(&stranger), "DATABASE"), @"
    error: DATABASE does not let this role go on with reading the version of its tables: permission denied for schema revdeck
      hint: docs/teams.md names the rights of members and owners
    ");
    // The budget is the owner's.
    let refused = bob.fails(&["team", "budget", "--day-cost", "900"], INCOMPLETE);
    insta::assert_snapshot!(refused.replace(&database.address(&writer), "DATABASE"), @"
    error: DATABASE does not let this role go on with setting the team's budget: permission denied for function set_budget
      hint: docs/teams.md names the rights of members and owners
    ");
    // The database vouches for who has written.
    sync(&ada);
    let told = ada.output(&["team"], DONE);
    assert!(told.contains(&format!("signed by role {writer}")), "{told}");
}

#[test]
fn an_administrator_can_prepare_the_database() {
    let Some(database) = database() else { return };
    database.create_member_role();
    let writer = format!("writer_{}", database.name);
    database.create_role(&writer, "revdeck_member");
    let ada = machine("Ada");
    let address = database.address(&writer);
    let refused = ada.fails(&["team", "join", &address, "--machine", "ada-1"], INCOMPLETE);
    assert!(
        refused.contains("`revdeck team schema` prints the SQL for an administrator")
            || refused.contains("docs/teams.md"),
        "{refused}"
    );
    database.sql(&run(&ada, &["team", "schema"], DONE));
    run(&ada, &["team", "join", &address, "--machine", "ada-1"], DONE);
    review(&ada);
    // A review is sent by its worker, without a command.
    wait_for("the review", || (database.sql("SELECT count(*) FROM revdeck.segments") == "1").then_some(()));
    // Tables of a newer program are left alone.
    database.sql("INSERT INTO revdeck.migrations (version, oldest_client) VALUES (99, 99)");
    insta::assert_snapshot!(ada.fails(&["sync"], INCOMPLETE).replace(&address, "DATABASE"), @"
    error: DATABASE has tables for a newer revdeck: they need version 99, and this one knows version 3
      hint: take a newer revdeck on this machine
    ");
    // One that only adds something is no obstacle.
    database.sql("UPDATE revdeck.migrations SET oldest_client = 3 WHERE version = 99");
    sync(&ada);
}

#[test]
fn a_login_over_tls_needs_the_password_and_a_certificate_to_trust() {
    let Some(database) = database() else { return };
    let ada = machine("Ada");
    let authority = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/http/testdata/ca.pem");
    let trusted = database.tcp_address(OWNER, &format!("?sslmode=verify-full&sslrootcert={}", authority.display()));
    let join = |address: &str, password: &str| {
        let mut command = ada.command(env!("CARGO_BIN_EXE_revdeck"));
        command.args(["team", "join", address, "--machine", "ada-1"]).env("PGPASSWORD", password);
        command.output().expect("revdeck starts")
    };
    let fails = |address: &str, password: &str, words: &str| {
        let output = join(address, password);
        assert_eq!(output.status.code(), Some(INCOMPLETE), "{}", out(&output));
        let said = err(&output);
        assert!(said.contains(words), "{said}");
        assert!(!said.contains(PASSWORD), "{said}");
    };
    fails(&trusted, "wrong", "password authentication failed");
    fails(&trusted, "", "put the password into PGPASSWORD or ~/.pgpass");
    // The system does not trust the certificate.
    fails(&database.tcp_address(OWNER, "?sslmode=require"), PASSWORD, "certificate");
    fails(
        &database.tcp_address(OWNER, "?sslmode=require&sslrootcert=/nowhere.pem"),
        PASSWORD,
        "sslrootcert /nowhere.pem",
    );
    let in_address = ada.fails(&["team", "join", &trusted.replace("owner@", "owner:word@")], USAGE);
    assert!(in_address.contains("it holds a password") && !in_address.contains("owner:word"), "{in_address}");
    let joined = join(&trusted, PASSWORD);
    assert_eq!(joined.status.code(), Some(DONE), "{}", err(&joined));
    // From the file of passwords, with the signs that it escapes.
    let file = ada.repo().parent().expect("a folder").join(".pgpass");
    let escaped = PASSWORD.replace(':', "\\:");
    std::fs::write(&file, format!("127.0.0.1:{}:*:{OWNER}:{escaped}\n", database.port())).expect("a file");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
    sync(&ada);
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name LIKE 'revdeck%'";
    let mut follower = follow(&ada);
    wait_for("an encrypted connection", || (database.sql(encrypted) != "0").then_some(()));
    follower.kill().expect("killed");
    follower.wait().expect("an end");
}

#[test]
fn a_database_that_is_away_loses_nothing() {
    let Some(database) = database() else { return };
    let ada = member(&database, "Ada");
    let found = ids(&review(&ada));
    run(&ada, &["triage", &found[0], "addressed"], DONE);
    database.refuse_connections(true);
    let said = ada.fails(&["sync"], INCOMPLETE).replace(&database.address(OWNER), "DATABASE");
    insta::assert_snapshot!(said.replace(&database.name, "NAME"), @r#"
    error: no connection to DATABASE: database "NAME" is not currently accepting connections
      hint: nothing is lost: what waits is sent by the next `revdeck sync`
    "#);
    assert!(ada.output(&["team"], DONE).contains("1 to send"), "{}", ada.output(&["team"], DONE));
    database.refuse_connections(false);
    assert_eq!(sync(&ada)["sent"]["decisions"], 1);
}

#[test]
fn a_database_that_was_restored_from_a_backup_gets_its_records_again() {
    let Some(database) = database() else { return };
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    let found = ids(&review(&ada));
    for finding in &found {
        run(&ada, &["triage", finding, "addressed"], DONE);
        sync(&ada);
    }
    sync(&bob);
    // The backup is older than the last two segments.
    database.sql("DELETE FROM revdeck.segments WHERE log = 'ada-1' AND number > 1");
    run(&ada, &["triage", &found[0], "open"], DONE);
    assert_eq!(sync(&ada)["restored"], true);
    assert_eq!(sync(&bob)["received"]["decisions"], 1);
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("open".into(), "addressed".into()));
    let cleo = member(&database, "Cleo");
    assert_eq!(sync(&cleo)["received"], json!({ "decisions": 3, "reviews": 1 }));
}

#[test]
fn learned_patterns_travel_only_where_both_say_so() {
    let Some(database) = database() else { return };
    let (ada, bob, cleo) = (member(&database, "Ada"), member(&database, "Bob"), member(&database, "Cleo"));
    for machine in [&ada, &bob] {
        machine.settings("[team]\npatterns = true\n");
    }
    let says_so = |machine: &TestEnvironment| {
        run(machine, &["team"], DONE).contains("Learned patterns of all your repositories, too")
    };
    assert!(says_so(&ada) && !says_so(&cleo));
    let check = |check: &str| {
        let lines: String = (0..6).map(|line| format!("    step_{line}(item)\n")).collect();
        format!("def f(item):\n{lines}    if item {check} None:\n        return 0\n{lines}")
    };
    for number in 0..4 {
        ada.write(&format!("part_{number}.py"), check("=="));
        ada.commit("Add a part");
        ada.write(&format!("part_{number}.py"), check("is"));
        ada.commit("Fix the check of a part");
    }
    run(&ada, &["knowledge", "learn", "--history", "20"], DONE);
    let learned = |machine: &TestEnvironment| {
        machine.json(&["knowledge", "export"], DONE)["patterns"].as_array().expect("patterns").len()
    };
    assert!(learned(&ada) > 0, "nothing was learned");
    let sent = sync(&ada);
    assert_eq!(sent["sent"]["patterns"], 1, "{sent}");
    assert!(sync(&ada)["sent"]["patterns"].is_null(), "the same is not sent again");
    sync(&bob);
    sync(&cleo);
    assert_eq!((learned(&bob), learned(&cleo)), (learned(&ada), 0));
    let text = "SELECT string_agg(convert_from(content, 'UTF8'), '') FROM revdeck.segments";
    let sent = database.sql(text);
    assert!(!sent.contains("step_"), "names of the code left");
    assert!(sent.contains("T00:00:00Z\",\"language\":\"python\""), "the day is missing: {sent}");
}

fn follow(machine: &TestEnvironment) -> Child {
    let mut command = machine.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(["sync", "--follow", "--until-input-ends"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("revdeck starts")
}

#[test]
fn news_come_by_themselves() {
    let Some(database) = database() else { return };
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    let mut followers = [follow(&ada), follow(&bob)];
    let found = ids(&review(&ada));
    wait_for("the review at Bob's", || {
        let runs = bob.json(&["runs", "--format", "json"], DONE);
        (runs["runs"].as_array()?.len() == 1).then_some(())
    });
    run(&bob, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    wait_for("the decision at Ada's", || (status(&ada, &found[0]) == "dismissed").then_some(()));
    // After a lost connection, too.
    database.cut_connections();
    run(&ada, &["triage", &found[1], "dismissed", "--reason", "intended"], DONE);
    wait_for("the second decision at Bob's", || (status(&bob, &found[1]) == "dismissed").then_some(()));
    // They end with whoever has started them.
    for follower in &mut followers {
        drop(follower.stdin.take());
    }
    for mut follower in followers {
        assert!(follower.wait().expect("an end").success());
    }
    let git = super::Team::new();
    let cleo = git.member("Cleo");
    insta::assert_snapshot!(cleo.fails(&["sync", "--follow"], USAGE), @"
    error: only a team with a database tells news: a git remote must be asked
      hint: `revdeck sync` exchanges records now; `revdeck team join postgres://...` takes a database
    ");
}

#[test]
fn whoever_follows_says_that_the_database_is_away_until_it_is_back() {
    let Some(database) = database() else { return };
    let ada = member(&database, "Ada");
    let mut follower = follow(&ada);
    let team = || ada.json(&["team", "--format", "json"], DONE);
    wait_for("the first exchange", || team()["synced_at"].is_string().then_some(()));
    database.go_away();
    let failure = wait_for("the failure", || team()["failure"].as_str().map(str::to_owned));
    assert!(failure.starts_with("no connection to postgres://"), "{failure}");
    database.refuse_connections(false);
    wait_for("the next exchange", || team()["failure"].is_null().then_some(()));
    drop(follower.stdin.take());
    assert!(follower.wait().expect("an end").success());
}
