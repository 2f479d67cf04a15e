//! Teams over a real PostgreSQL: the same records as over git, claims of reviews, budgets, and news as they happen.

use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::postgres_server::{OWNER, PASSWORD, TestDatabase, database};
use super::{CHANGE, ids, review, status, sync};
use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, err, out, run};
use crate::llm::finish;
use crate::llm::server::{Model, Turn, calls};
use crate::runner::place::{gone, signal, wait_for};

/// Returns a machine with the change of the other tests as its last commit; all have the same commits.
pub fn machine(person: &str) -> TestEnvironment {
    let machine = TestEnvironment::new();
    machine.git(&["config", "user.name", person]);
    machine.git(&["config", "user.email", &format!("{}@example.org", person.to_lowercase())]);
    machine.git(&["remote", "add", "origin", "git@git.example.org:team/app.git"]);
    machine.write("a.py", "x = 1\n");
    machine.commit("Begin");
    machine.write("b.py", CHANGE);
    machine.commit("Read files");
    machine
}

/// Returns a machine that has joined under the name of its person.
fn member(database: &TestDatabase, person: &str) -> TestEnvironment {
    let machine = machine(person);
    let name = format!("{}-1", person.to_lowercase());
    run(&machine, &["team", "join", &database.address(OWNER), "--machine", &name], DONE);
    machine
}

/// Settings of a reviewer `mine` that the model plays.
fn use_model(machine: &TestEnvironment, model: &Model) {
    machine.settings(&format!(
        "default_reviewer = \"mine\"\n[reviewers.mine]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = \"{}\"\n\
         api_key_cmd = \"printf made-up\"\nattempts = 1\nprice_input = 2.0\nprice_output = 8.0\nmax_output = 1000\n",
        model.url()
    ));
}

fn report() -> Turn {
    let finding = json!({ "path": "b.py", "line_start": 4, "line_end": 4, "kind": "ERROR_HANDLING", "priority": 1,
        "confidence": 0.8, "title": "Every error is hidden", "explanation": "The bare except hides them all.",
        "quoted_code": "    except:" });
    calls(&[("report_findings", json!({ "findings": [finding] })), finish()])
}

/// Starts a review of the last commit, and does not wait.
fn start_review(machine: &TestEnvironment) -> Child {
    let mut command = machine.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(["review", "--commit", "HEAD", "--wait", "--format", "json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("revdeck starts")
}

fn end_of(review: Child) -> Value {
    let output = review.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    serde_json::from_str(&out(&output)).expect("JSON")
}

fn newest_run(machine: &TestEnvironment) -> Value {
    machine.json(&["runs", "--format", "json"], DONE)["runs"][0].clone()
}

/// Waits until the newest run of a machine has a note.
fn wait_for_note(machine: &TestEnvironment, words: &str) {
    wait_for(words, || {
        let runs = machine.json(&["runs", "--format", "json"], DONE);
        let run = runs["runs"][0]["run_id"].as_str()?.parse().ok()?;
        let entries = machine.store().read_journal(&run).ok()?;
        let has_words = |text: &str| text.contains(words);
        entries
            .iter()
            .any(|entry| matches!(&entry.event, revdeck::domain::RunEvent::Note { text } if has_words(text)))
            .then_some(())
    });
}

/// Ends the time of all claims, as if it had passed.
fn expire_claims(database: &TestDatabase) {
    database.sql("UPDATE revdeck.claims SET ends_at = now() - interval '1 second'");
}

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
fn an_equivalent_review_elsewhere_is_adopted_and_not_paid_twice() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    use_model(&ada, &model);
    use_model(&bob, &model);
    model.hold_after(0);
    let first = start_review(&ada);
    wait_for("the request of Ada", || (model.asked() == 1).then_some(()));
    let second = start_review(&bob);
    wait_for_note(&bob, "waits for ada-1, which reviews the same as ar_");
    assert_eq!(newest_run(&bob)["status"], "reviewing");
    model.let_go();
    let (first, second) = (end_of(first), end_of(second));
    assert_eq!(model.asked(), 1, "the review was paid twice");
    assert_eq!(second["run"]["run_id"], first["run"]["run_id"]);
    assert_eq!((&second["run"]["team"]["machine"], &second["decision"]["action"]), (&json!("ada-1"), &json!("adopt")));
    assert_eq!(second["findings"][0]["title"], "Every error is hidden");
    let own = bob.json(&["runs", "--format", "json"], DONE)["runs"].clone();
    let ended = own.as_array().expect("runs").iter().find(|run| run["status"] == "cancelled").expect("its own run");
    assert_eq!((&ended["cancel_reason"], &ended["reused_from"]), (&json!("duplicate"), &first["run"]["run_id"]));
    assert_eq!(ended["tokens"]["input"].as_u64().unwrap_or(0), 0);
    assert_eq!(database.sql("SELECT count(*) FROM revdeck.claims"), "0", "the claim has ended");
    // Later requests reuse it like any other.
    assert_eq!(review(&bob)["decision"]["action"], "reuse");
    // And a machine that has received nothing yet, too: it claims, receives and takes the result.
    let cleo = member(&database, "Cleo");
    use_model(&cleo, &model);
    let third = end_of(start_review(&cleo));
    assert_eq!((model.asked(), &third["run"]["run_id"]), (1, &first["run"]["run_id"]));
}

#[test]
fn a_forced_review_and_one_of_other_code_wait_for_nobody() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report(), report(), report()]);
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    use_model(&ada, &model);
    use_model(&bob, &model);
    model.hold_after(0);
    let first = start_review(&ada);
    wait_for("the request of Ada", || (model.asked() == 1).then_some(()));
    run(&bob, &["review", "--commit", "HEAD", "--force"], DONE);
    wait_for("the forced request", || (model.asked() == 2).then_some(()));
    bob.write("c.py", CHANGE);
    bob.commit("More");
    run(&bob, &["review", "--commit", "HEAD"], DONE);
    wait_for("the request of other code", || (model.asked() == 3).then_some(()));
    model.let_go();
    end_of(first);
}

#[test]
fn a_killed_worker_goes_on_with_its_claim() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report(), report()]);
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    use_model(&ada, &model);
    use_model(&bob, &model);
    model.hold_after(0);
    let first = start_review(&ada);
    wait_for("the request of Ada", || (model.asked() == 1).then_some(()));
    let run_id = newest_run(&ada)["run_id"].as_str().expect("an id").parse().expect("an id");
    let entries = ada.store().read_journal(&run_id).expect("a journal");
    let worker = entries.iter().find_map(|entry| match entry.event {
        revdeck::domain::RunEvent::Started { worker, .. } => Some(worker),
        _ => None,
    });
    let worker = worker.expect("a worker");
    let second = start_review(&bob);
    wait_for_note(&bob, "waits for ada-1");
    signal(worker, Signal::KILL);
    wait_for("the worker's end", || gone(worker).then_some(()));
    // The waiting command starts a new worker, which has the claim of the old one.
    wait_for("the request that is sent again", || (model.asked() == 2).then_some(()));
    model.let_go();
    let (first, second) = (end_of(first), end_of(second));
    assert_eq!((&first["run"]["attempt"], model.asked()), (&json!(2), 2));
    assert_eq!(second["run"]["run_id"], first["run"]["run_id"]);
}

#[test]
fn a_machine_that_has_died_holds_nobody_for_long() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report(), report()]);
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    use_model(&ada, &model);
    use_model(&bob, &model);
    model.hold_after(0);
    let mut first = start_review(&ada);
    wait_for("the request of Ada", || (model.asked() == 1).then_some(()));
    let run_id: revdeck::domain::RunId = newest_run(&ada)["run_id"].as_str().expect("an id").parse().expect("an id");
    let entries = ada.store().read_journal(&run_id).expect("a journal");
    // The whole machine is gone: nobody there starts a worker again.
    first.kill().expect("killed");
    first.wait().expect("an end");
    for entry in entries {
        if let revdeck::domain::RunEvent::Started { worker, .. } = entry.event {
            signal(worker, Signal::KILL);
            wait_for("the worker's end", || gone(worker).then_some(()));
        }
    }
    let second = start_review(&bob);
    wait_for_note(&bob, "waits for ada-1");
    expire_claims(&database);
    wait_for("the request of Bob", || (model.asked() == 2).then_some(()));
    model.let_go();
    let second = end_of(second);
    assert_eq!(second["run"]["team"], Value::Null);
    assert_eq!(second["findings"].as_array().expect("findings").len(), 1);
}

#[test]
fn a_lost_connection_loses_no_claim() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    use_model(&ada, &model);
    use_model(&bob, &model);
    model.hold_after(0);
    let first = start_review(&ada);
    wait_for("the request of Ada", || (model.asked() == 1).then_some(()));
    let second = start_review(&bob);
    wait_for_note(&bob, "waits for ada-1");
    database.cut_connections();
    assert_eq!(database.sql("SELECT count(*) FROM revdeck.claims WHERE ends_at > now()"), "1");
    model.let_go();
    let (first, second) = (end_of(first), end_of(second));
    assert_eq!(model.asked(), 1);
    assert_eq!(first["run"]["status"], "completed");
    assert_eq!(second["run"]["run_id"], first["run"]["run_id"]);
}

#[test]
fn a_review_without_a_database_goes_on_and_says_so() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let ada = member(&database, "Ada");
    use_model(&ada, &model);
    database.sql("DROP SCHEMA revdeck CASCADE");
    let reviewed = end_of(start_review(&ada));
    assert_eq!(reviewed["findings"].as_array().expect("findings").len(), 1);
    wait_for_note(&ada, "the review goes on without asking the team");
}

#[test]
fn the_budget_of_the_team_holds_exactly_under_concurrency() {
    use revdeck::team::postgres::{Database, DatabaseAddress, TeamReservation};
    let Some(database) = database() else { return };
    member(&database, "Ada");
    let address = DatabaseAddress::parse(&database.address(OWNER)).expect("an address");
    Database::connect(&address).expect("a connection").set_budget("p", Some(1.0), Some(1_000_000)).expect("set");
    let workers: Vec<_> = (0..8)
        .map(|number| {
            let address = address.clone();
            std::thread::spawn(move || {
                let connected = Database::connect(&address).expect("a connection");
                let name = format!("machine-{number}").parse().expect("a name");
                let mut spent = 0.0;
                for request in 0..40 {
                    let id = format!("{number}-{request}");
                    match connected.reserve("p", &name, &id, Some(0.03), 1_000).expect("an answer") {
                        // Some answers cost less than was reserved, and some machines die before they can say so.
                        TeamReservation::Granted if request % 3 == 0 => spent += 0.03,
                        TeamReservation::Granted => {
                            connected.settle("p", &id, 0.01, 500).expect("settled");
                            spent += 0.01;
                        }
                        TeamReservation::MustWait | TeamReservation::Refused(_) | TeamReservation::Unpriced => {}
                    }
                }
                spent
            })
        })
        .collect();
    let spent: f64 = workers.into_iter().map(|worker| worker.join().expect("a sum")).sum();
    let known = Database::connect(&address).expect("a connection").read_budget("p").expect("a budget");
    assert!((known.cost - spent).abs() < 1e-9, "{} is recorded of {spent}", known.cost);
    assert!(spent <= 1.0 + 1e-9 && spent > 0.9, "{spent} of $1 is spent");
}

#[test]
fn a_request_without_a_price_is_not_sent_under_a_limit_in_dollars() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let ada = member(&database, "Ada");
    use_model(&ada, &model);
    let settings = ada.home().join("config.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    let unpriced = text.replace("price_input = 2.0\nprice_output = 8.0\n", "").replace("gpt-4o-test", "made-up");
    std::fs::write(&settings, unpriced).expect("settings");
    run(&ada, &["team", "budget", "--day-cost", "20"], DONE);
    let refused = ada.revdeck(&["review", "--commit", "HEAD", "--wait", "--format", "json"]);
    assert_eq!((refused.status.code(), model.asked()), (Some(INCOMPLETE), 0), "{}", out(&refused));
    run(&ada, &["team", "budget", "--none"], DONE);
    run(&ada, &["team", "budget", "--day-tokens", "9000000"], DONE);
    end_of(start_review(&ada));
    assert_eq!(model.asked(), 1);
}

/// A first turn with a finding, and a second one that ends the review.
fn two_turns() -> Vec<Turn> {
    let Turn::Say { text, calls: said, stop } = report() else { panic!("an answer") };
    let first = said.into_iter().take(1).collect();
    vec![Turn::Say { text, calls: first, stop }, calls(&[finish()])]
}

#[test]
fn a_connection_that_is_lost_between_two_turns_ends_no_review() {
    let Some(database) = database() else { return };
    let model = Model::start(two_turns());
    let ada = member(&database, "Ada");
    use_model(&ada, &model);
    run(&ada, &["team", "budget", "--day-cost", "20"], DONE);
    model.hold_after(0);
    let review = start_review(&ada);
    wait_for("the first request", || (model.asked() == 1).then_some(()));
    database.cut_connections();
    model.let_go();
    assert_eq!((end_of(review)["run"]["status"].clone(), model.asked()), (json!("completed"), 2));
    let settled = "SELECT count(*) FROM revdeck.spending WHERE is_final";
    assert_eq!(database.sql(settled), "2");
}

#[test]
fn a_paused_run_holds_nobody() {
    let Some(database) = database() else { return };
    // The first turn of Ada, and the whole review of Bob.
    let model = Model::start(vec![two_turns().remove(0), report()]);
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    use_model(&ada, &model);
    use_model(&bob, &model);
    model.hold_after(0);
    let first = start_review(&ada);
    wait_for("the request of Ada", || (model.asked() == 1).then_some(()));
    let paused = newest_run(&ada)["run_id"].as_str().expect("an id").to_owned();
    run(&ada, &["pause", &paused], DONE);
    let second = start_review(&bob);
    wait_for_note(&bob, "waits for ada-1");
    model.let_go();
    let second = end_of(second);
    assert_eq!((model.asked(), &second["run"]["team"]), (2, &Value::Null));
    // The paused run finds the result when it goes on.
    run(&ada, &["resume", &paused], DONE);
    let first = end_of(first);
    assert_eq!((model.asked(), &first["run"]["run_id"]), (2, &second["run"]["run_id"]));
}

#[test]
fn a_run_that_waits_for_another_machine_takes_no_slot() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    use_model(&ada, &model);
    use_model(&bob, &model);
    let settings = bob.home().join("config.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    std::fs::write(&settings, format!("max_parallel_runs = 1\n{text}")).expect("settings");
    model.hold_after(0);
    let first = start_review(&ada);
    wait_for("the request of Ada", || (model.asked() == 1).then_some(()));
    let second = start_review(&bob);
    wait_for_note(&bob, "waits for ada-1");
    let other = bob.json(&["review", "--commit", "HEAD", "--reviewer", "builtin", "--wait", "--format", "json"], DONE);
    assert_eq!(other["run"]["status"], "completed");
    assert_eq!(model.asked(), 1);
    model.let_go();
    assert_eq!(end_of(first)["run"]["run_id"], end_of(second)["run"]["run_id"]);
}

#[test]
fn an_assistant_hears_of_the_findings_of_an_adopted_review() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    use_model(&ada, &model);
    use_model(&bob, &model);
    let first = end_of(start_review(&ada));
    let request = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "request_review", "arguments": { "scope": "commit:HEAD", "wait_seconds": 30 } } });
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let mut server = bob.command(env!("CARGO_BIN_EXE_revdeck"));
    let mut server =
        server.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    let mut input = server.stdin.take().expect("input");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(server.stdout.take().expect("output")));
    for message in [begin, ready, request] {
        std::io::Write::write_all(&mut input, format!("{message}\n").as_bytes()).expect("written");
    }
    let answer = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("\"id\":2"))).expect("an answer");
    let answer = answer.expect("a line");
    drop(input);
    server.wait().expect("an end");
    assert!(answer.contains(first["run"]["run_id"].as_str().expect("an id")), "{answer}");
    assert!(answer.contains("auto_review_details") && !answer.contains("nothing to do"), "{answer}");
    assert_eq!(model.asked(), 1);
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
    assert!(!database.sql(text).contains("step_"), "names of the code left");
}

#[test]
fn a_review_ends_at_the_budget_of_the_team() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report(), report()]);
    let (ada, bob) = (member(&database, "Ada"), member(&database, "Bob"));
    use_model(&ada, &model);
    use_model(&bob, &model);
    end_of(start_review(&ada));
    let spent = ada.json(&["team", "budget", "--format", "json"], DONE);
    assert!(spent["cost"].as_f64().expect("a cost") > 0.0 && spent["day_cost"].is_null(), "{spent}");
    let limit = format!("{:.6}", spent["cost"].as_f64().expect("a cost") * 1.1);
    run(&ada, &["team", "budget", "--day-cost", &limit], DONE);
    bob.write("c.py", CHANGE);
    bob.commit("More");
    let refused = bob.revdeck(&["review", "--commit", "HEAD", "--wait", "--format", "json"]);
    assert_eq!(refused.status.code(), Some(INCOMPLETE), "{}", out(&refused));
    let refused: Value = serde_json::from_str(&out(&refused)).expect("JSON");
    assert_eq!((&refused["run"]["cancel_reason"], model.asked()), (&json!("budget_exhausted"), 1));
    assert_eq!(refused["run"]["budget_stop"]["budget"], "team_cost", "{refused}");
    // A limit of the team cannot be passed by taking the database away.
    sync(&bob);
    database.sql("ALTER TABLE revdeck.spending RENAME TO hidden");
    bob.write("d.py", CHANGE);
    bob.commit("Even more");
    bob.revdeck(&["review", "--commit", "HEAD", "--wait"]);
    assert_eq!(model.asked(), 1, "a request was sent without a reservation");
    database.sql("ALTER TABLE revdeck.hidden RENAME TO spending");
    run(&ada, &["team", "budget", "--none"], DONE);
    sync(&bob);
    end_of(start_review(&bob));
    assert_eq!(model.asked(), 2);
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
