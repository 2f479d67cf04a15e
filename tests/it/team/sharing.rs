//! What leaves a machine in each sharing mode.

use super::{CHANGE, Team, ids, review, sync};
use crate::env::{DONE, TestEnvironment, run};

/// Returns 25 secrets of different forms. They are put together here, so that no file of the project holds one.
fn secrets() -> Vec<String> {
    let random = |seed: usize, length: usize| -> String {
        let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789";
        (0..length)
            .map(|at| char::from(letters[(seed * 31 + at * at * 7 + at * 13 + seed * at * 5) % letters.len()]))
            .collect()
    };
    let mut all = Vec::new();
    for seed in 0..5 {
        // Such keys have the letters of base32.
        all.push(["AKIA", &random(seed + 3, 16).to_uppercase().replace(['8', '9'], "7")].concat());
        all.push(["ghp", "_", &random(seed + 40, 36)].concat());
        all.push(["sk", "-proj-", &random(seed + 80, 40)].concat());
        all.push(["xoxb", "-", "123456789012-123456789012-", &random(seed + 120, 24)].concat());
        all.push(["glpat", "-", &random(seed + 160, 20)].concat());
    }
    all
}

/// Writes files whose code and comments hold the secrets, next to code that the built-in reviewer reports, and reviews them.
fn reviewed(team: &Team) -> (TestEnvironment, Vec<String>) {
    let secrets = secrets();
    let ada = team.member("Ada");
    for (number, secret) in secrets.iter().enumerate() {
        ada.write(
            &format!("src/part{number}.py"),
            format!("def load_{number}(path):\n    token = \"{secret}\"\n    try:\n        return open(path, token)\n    except:\n        return \"{secret}\"\n"),
        );
    }
    ada.write(&format!("keys/{}.py", secrets[1]), CHANGE);
    ada.write("contracts/secret_customer.py", CHANGE);
    ada.commit("Everything");
    let found = ids(&review(&ada));
    for (secret, finding) in secrets.iter().zip(&found) {
        let reason = format!("intended: the token {secret} is revoked");
        run(&ada, &["triage", finding, "dismissed", "--reason", &reason], DONE);
    }
    (ada, secrets)
}

#[test]
fn no_secret_leaves_in_any_mode_and_code_only_if_asked_for() {
    let mut table = String::from("mode       secrets  code   reasons  excluded path\n");
    for mode in ["decisions", "findings", "all"] {
        let team = Team::new();
        let (ada, secrets) = reviewed(&team);
        ada.settings(&format!("[team]\nshare = \"{mode}\"\nexclude = [\"contracts/\"]\n"));
        let shown = run(&ada, &["sync", "--dry-run", "--show"], DONE);
        sync(&ada);
        let sent = team.everything();
        let lines = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let parsed = |text: &str| {
            lines(text).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<serde_json::Value>>()
        };
        assert_eq!(parsed(&shown), parsed(&sent), "--show prints exactly what is sent");
        let has_code = parsed(&sent).iter().any(|record| {
            let findings = record["findings"].as_array().cloned().unwrap_or_default();
            findings
                .iter()
                .any(|finding| finding["quoted_code"] != "" || !finding["suggestion"]["replacement"].is_null())
        });
        let leaked = secrets.iter().filter(|secret| sent.contains(secret.as_str())).count();
        table.push_str(&format!(
            "{mode:<10} {leaked:<8} {:<6} {:<8} {}\n",
            if has_code { "yes" } else { "no" },
            if sent.contains("is revoked") { "yes" } else { "no" },
            if sent.contains("secret_customer") { "yes" } else { "no" },
        ));
    }
    insta::assert_snapshot!(table, @"
    mode       secrets  code   reasons  excluded path
    decisions  0        no     yes      no
    findings   0        no     yes      no
    all        0        yes    yes      no
    ");
}

#[test]
fn a_review_with_an_excluded_path_answers_no_request_elsewhere() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    ada.settings("[team]\nexclude = [\"b.py\"]\n");
    ada.write("c.py", CHANGE);
    ada.git(&["add", "-A"]);
    ada.git(&["commit", "-q", "--amend", "-m", "Two files"]);
    ada.git(&["push", "-q", "-f", "origin", "main"]);
    bob.git(&["fetch", "-q"]);
    bob.git(&["reset", "-q", "--hard", "origin/main"]);
    review(&ada);
    sync(&ada);
    sync(&bob);
    assert!(!team.everything().contains("b.py"));
    assert_eq!(review(&bob)["decision"]["action"], "launch");
}
