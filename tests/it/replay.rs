//! Replay of a session from a small history: the harness measures a saving and loses no finding.

use serde_json::Value;

use crate::env::TestEnvironment;

/// Creates a repository whose commits each touch two or three places of a few files; most of these places have a
/// finding.
fn past(commits: usize) -> TestEnvironment {
    let test = TestEnvironment::new();
    let function = |file: usize, place: usize, version: usize| {
        let value = 1000 + 17 * file + 31 * place + 101 * version;
        format!(
            "def handler_{file}_{place}(request):\n    import os\n    limit = {value}\n    try:\n        \
             return request.read(limit * {version})\n    except:\n        pass\n\n\n"
        )
    };
    // Each function exists from its first version on.
    let mut versions = [[0_usize; 6]; 4];
    for commit in 0..commits {
        for step in 0..3 {
            let (file, place) = ((commit + step) % 4, (commit * 2 + step * 5) % 6);
            versions[file][place] += 1;
        }
        for (file, places) in versions.iter().enumerate() {
            let text: String = places
                .iter()
                .enumerate()
                .filter(|(_, version)| **version > 0)
                .map(|(place, version)| function(file, place, *version))
                .collect();
            test.write(&format!("src/part_{file}.py"), text);
        }
        if commit % 5 == 3 {
            test.write(&format!("docs/note-{commit}.md"), "A note.\n");
        }
        test.commit(&format!("commit {commit}"));
    }
    test
}

#[test]
fn a_session_costs_a_fraction_and_no_finding() {
    let test = past(14);
    let before = test.git(&["for-each-ref"]);
    let output = test.revdeck(&["replay", ".", "--commits", "12", "--format", "json"]);
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let totals = &said["totals"];
    let number = |key: &str| totals[key].as_u64().unwrap_or_else(|| panic!("{key}: {said}"));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(number("commits"), 12, "{said}");
    assert_eq!(number("reviewed_twice"), 0, "{said}");
    assert_eq!(totals["missing"].as_array().map(Vec::len), Some(0), "{said}");
    // The comparison is not empty, and the session contains the cases that it is made for.
    assert!(number("findings_in_full") > 20, "{said}");
    assert!(number("reused") > 5, "{said}");
    assert!(number("tokens_sent") > 0 && number("tokens_sent") < number("tokens_in_full"), "{said}");
    let asked = ["launched", "adopted", "reused", "resumed", "skipped"].map(number);
    assert_eq!(asked.iter().sum::<u64>(), number("requests"), "{said}");
    // The replay leaves the repository itself unchanged.
    assert_eq!(test.git(&["for-each-ref"]), before);
    assert_eq!(test.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_repository_without_a_past_is_named() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("first");
    let output = test.revdeck(&["replay", "."]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no commits with a parent"), "{said}");
}
