//! What leaves a machine in each sharing mode.

use serde_json::json;

use super::{CHANGE, Team, review, sync};
use crate::env::{DONE, TestEnvironment, executable, run};

/// Secret of one form: its value, and a line of code that holds it.
struct PlantedSecret {
    value: String,
    code: String,
}

impl PlantedSecret {
    /// Returns true if a text holds the value, or a line of it.
    fn is_in(&self, text: &str) -> bool {
        self.value.split("\\n").any(|line| text.contains(line))
    }
}

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const DIGITS: &str = "0123456789";

/// Returns a secret of each of 25 forms. They are put together here, so that no file of the project holds one.
fn secrets() -> Vec<PlantedSecret> {
    let mut state = 5u64;
    let mut random = |length: usize, letters: &str| -> String {
        let letters = letters.as_bytes();
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        (0..length).map(|_| char::from(letters[next() % letters.len()])).collect()
    };
    let basic = ["SzlQ", "cTdS", "WDNt", "dzVa", "TGs4", "cEQy"];
    let values = [
        ["AKIA", &random(16, BASE32)].concat(),
        random(40, LETTERS),
        ["github", "_pat_", &random(22, LETTERS), "_", &random(59, LETTERS)].concat(),
        ["ghs", "_", &random(36, LETTERS)].concat(),
        ["AIza", &random(35, LETTERS)].concat(),
        ["sk", "_live_", &random(24, LETTERS)].concat(),
        ["SK", &random(32, HEX)].concat(),
        ["SG.", &random(22, LETTERS), ".", &random(43, LETTERS)].concat(),
        ["npm", "_", &random(36, LETTERS)].concat(),
        ["pypi-", "AgEIcHlwaS5vcmc", &random(80, LETTERS)].concat(),
        ["eyJ", &random(30, LETTERS), ".eyJ", &random(60, LETTERS), ".", &random(43, LETTERS)].concat(),
        ["https://hooks.slack.com/services/T", &random(8, BASE32), "/B", &random(8, BASE32), "/", &random(24, LETTERS)]
            .concat(),
        ["sk", "-ant-api03-", &random(93, LETTERS)].concat(),
        ["S3cr", &random(12, LETTERS)].concat(),
        ["Pw!", &random(12, LETTERS)].concat(),
        format!("{}==", random(86, LETTERS)),
        random(64, HEX),
        format!("{}.{}.{}", random(24, LETTERS), random(6, LETTERS), random(27, LETTERS)),
        format!("{}:AA{}", random(9, DIGITS), random(33, LETTERS)),
        ["dop_v1_", &random(64, HEX)].concat(),
        ["hf", "_", &random(34, LETTERS)].concat(),
        ["hvs.", &random(90, LETTERS)].concat(),
        ["shpat_", &random(32, HEX)].concat(),
        format!("{}\\n{}", random(64, LETTERS), random(64, LETTERS)),
        // "user:" with a password of letters and digits.
        [
            "dXNlcjp4",
            &(0..5).map(|_| basic[random(1, "012345").parse::<usize>().expect("a digit")]).collect::<String>(),
        ]
        .concat(),
    ];
    let plant = |(number, value): (usize, String)| {
        let code = match number {
            1 => format!("aws_secret_access_key = \"{value}\""),
            13 => format!("url = \"postgres://ada:{value}@db.example.org/app\""),
            14 => format!("password = \"{value}\""),
            15 => format!("connection = \"AccountName=shop;AccountKey={value}\""),
            16 => format!("secret_key = \"{value}\""),
            23 => {
                let kind = "RSA PRIVATE KEY";
                format!("key = \"\"\"-----BEGIN {kind}-----\\n{value}\\n-----END {kind}-----\"\"\"")
            }
            24 => format!("headers = {{\"Authorization\": \"Basic {value}\"}}"),
            _ => format!("token = \"{value}\""),
        };
        PlantedSecret { value, code }
    };
    values.into_iter().enumerate().map(plant).collect()
}

/// Path of the file that holds a secret.
fn path_of(number: usize) -> String {
    format!("src/part{number}.py")
}

/// Writes files that hold the secrets, and reviews them by a program that names each secret in all of its words. Each finding
/// is then dismissed with a reason that names the secret. Some secrets stand where nobody looks for them, too: in the names of
/// a file, a branch and a tag, in an address, in subjects of commits, and in code from which patterns are learned. `settings`
/// are those of the team.
fn reviewed(team: &Team, settings: &str) -> (TestEnvironment, Vec<PlantedSecret>) {
    let secrets = secrets();
    let ada = team.member("Ada");
    ada.git(&["config", "user.email", &format!("{}@example.org", secrets[3].value)]);
    let check = |check: &str| {
        let lines: String = (0..6).map(|line| format!("    step_{line}(item, \"{}\")\n", secrets[8].value)).collect();
        format!("def f(item):\n{lines}    if item {check} None:\n        return 0\n{lines}")
    };
    for number in 0..4 {
        ada.write(&format!("learned_{number}.py"), check("=="));
        ada.commit("Add a part");
        ada.write(&format!("learned_{number}.py"), check("is"));
        ada.commit(&format!("Fix the check beside {}", secrets[0].value));
    }
    run(&ada, &["knowledge", "learn", "--history", "20"], DONE);
    ada.git(&["checkout", "-q", "-b", &format!("feature/{}", secrets[2].value)]);
    let mut findings = Vec::new();
    for (number, PlantedSecret { value, code }) in secrets.iter().enumerate() {
        ada.write(&path_of(number), format!("def load_{number}(path):\n    {code}\n    return open(path)\n"));
        findings.push(json!({
            "path": path_of(number), "line_start": 2, "line_end": 3, "kind": "SECURITY", "severity": "high",
            "title": format!("use env instead of {value}"),
            "explanation": format!("Everybody can read `{value}` in part {number}."),
            "quoted_code": format!("    {code}\n    return open(path)"),
            "suggestion": format!("Revoke {value} and read it from the environment."),
        }));
    }
    ada.write("src/plain.py", "def load(path):\n    return open(path)\n");
    findings.push(json!({
        "path": "src/plain.py", "line_start": 2, "line_end": 2, "kind": "SECURITY", "severity": "high",
        "title": "path is read without a check", "explanation": "Any file can be read.",
        "quoted_code": "    return open(path)",
    }));
    ada.write(&format!("keys/{}.py", secrets[3].value), CHANGE);
    ada.write("contracts/secret_customer.py", CHANGE);
    ada.commit(&format!("Write {} down", secrets[0].value));
    ada.git(&["tag", &secrets[3].value]);
    let script = ada.home().join("agent.sh");
    let answer = json!({ "findings": findings });
    executable(&script, format!("#!/bin/sh\ncat > /dev/null\ncat <<'END'\n{answer}\nEND\n"));
    let agent = format!("[reviewers.agent]\nkind = \"command\"\ncommand = [\"{}\"]\n", script.display());
    ada.settings(&format!("default_reviewer = \"agent\"\n{agent}{settings}"));
    let found = ada.json(&["review", "--commit", &secrets[3].value, "--wait", "--format", "json"], DONE);
    let found = found["findings"].as_array().expect("findings");
    for (number, PlantedSecret { value, .. }) in secrets.iter().enumerate() {
        let finding = found.iter().find(|finding| finding["repo_relative_path"] == path_of(number));
        let id = finding.and_then(|finding| finding["finding_id"].as_str()).expect("a finding for each secret");
        run(&ada, &["triage", id, "dismissed", "--reason", &format!("intended: {value} is revoked")], DONE);
    }
    (ada, secrets)
}

/// The table of docs/teams.md is what this measures.
#[test]
fn no_secret_leaves_in_any_mode_and_code_only_if_asked_for() {
    let mut rows = Vec::new();
    for mode in ["decisions", "findings", "all"] {
        let team = Team::new();
        let settings = format!("[team]\nshare = \"{mode}\"\nexclude = [\"contracts/\"]\npatterns = true\n");
        let (ada, secrets) = reviewed(&team, &settings);
        let shown = run(&ada, &["sync", "--dry-run", "--show"], DONE);
        let counts = sync(&ada)["sent"].clone();
        let sent = team.everything();
        let parsed = |text: &str| {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<serde_json::Value>>()
        };
        assert_eq!(parsed(&shown), parsed(&sent), "--show prints exactly what is sent");
        let has_code = parsed(&sent).iter().any(|record| {
            let findings = record["findings"].as_array().cloned().unwrap_or_default();
            findings
                .iter()
                .any(|finding| finding["quoted_code"] != "" || !finding["suggestion"]["replacement"].is_null())
        });
        let leaked: Vec<&str> =
            secrets.iter().filter(|secret| secret.is_in(&sent)).map(|secret| secret.code.as_str()).collect();
        assert_eq!(leaked, [""; 0], "sent with {mode}");
        let count = |name: &str| counts[name].as_u64().unwrap_or(0);
        rows.push(format!(
            "| `{mode}` | {} | {} | {} | {} of {} | {} | {} | {} |",
            count("decisions"),
            count("reviews"),
            count("patterns"),
            leaked.len(),
            secrets.len(),
            if has_code { "masked" } else { "none" },
            if sent.contains("is revoked") { "masked" } else { "none" },
            sent.matches("secret_customer").count(),
        ));
    }
    let documented = include_str!("../../../docs/teams.md");
    let missing: Vec<&String> = rows.iter().filter(|row| !documented.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "docs/teams.md should say:\n{}", rows.join("\n"));
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
