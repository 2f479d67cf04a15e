//! `revdeck fit-weights` with the real binary and a repository whose files change in pairs.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use revdeck::context::retrieve::weights::RankingWeights;
use serde_json::Value;

use crate::env::{TestEnvironment, USAGE, err, out, run};

/// Number of commits that change a pair of files: 8 to fit to, and the 40 newest, which are held out.
const PAIRED_COMMITS: usize = 48;

/// Creates a repository with 40 files that change alone, then three pairs of files that change together.
fn paired_history() -> TestEnvironment {
    let test = TestEnvironment::new();
    let module = |name: &str, versions: [usize; 3]| -> String {
        let function = |(at, version): (usize, usize)| {
            format!("def {name}_{at}(value):\n    checked = value + {version}\n    return checked * {at}\n\n\n")
        };
        versions.into_iter().enumerate().map(function).collect()
    };
    test.write("src/start.py", "import reader\n");
    test.commit("Start");
    let alone = (0..110).map(|number| {
        let text = format!("def walk_{number}(road):\n    return road.next_{number}\n");
        vec![(format!("other/part_{}.py", number % 40), text)]
    });
    let pairs = [["reader", "writer"], ["parser", "printer"], ["client", "server"]];
    let first = pairs.as_flattened().iter().map(|name| (format!("src/{name}.py"), module(name, [0; 3]))).collect();
    let paired = (1..=PAIRED_COMMITS).map(|number| {
        // The commits of a pair change its functions in turn.
        let (turn, mut versions) = (number / 3, [number / 9; 3]);
        versions[turn % 3] = 100 + number;
        pairs[number % 3].iter().map(|name| (format!("src/{name}.py"), module(name, versions))).collect()
    });
    let commits: Vec<Vec<(String, String)>> = std::iter::once(first).chain(alone).chain(paired).collect();
    test.import(&commits);
    test
}

fn shipped_weights() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/retrieval.toml");
    fs::read_to_string(path).expect("the weights that are shipped")
}

/// Returns the text without its numbers.
fn without_numbers(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| line.split_once(" = ").filter(|_| !line.starts_with('#')).map_or(line, |(key, _)| key))
        .collect()
}

#[test]
fn weights_are_fitted_to_older_commits_and_written() {
    let test = paired_history();
    let fit = |file: &str| {
        let asked = ["fit-weights", ".", "--commits", "9", "--measured", "3", "--output", file, "--format", "json"];
        let output = test.revdeck(&asked);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (said, err(&output), fs::read_to_string(test.repo().join(file)).expect("the weights"))
    };
    let (said, notes, text) = fit("first.toml");
    assert_eq!(said["fitted"], serde_json::json!([{"repository": ".", "commits": 8}]), "{said:#}");
    assert!(notes.contains("only 8 of 9 commits fit"), "{notes}");
    assert_eq!(
        (&said["held_out"][0]["commits"], &said["held_out"][0]["fitted"]),
        (&3.into(), &true.into()),
        "{said:#}"
    );
    assert_eq!((&said["worse"], &said["written"]), (&false.into(), &"first.toml".into()), "{said:#}");
    let mrr = said["mean"]["after"]["mrr"].as_f64();
    assert!(mrr > Some(0.9) && mrr >= said["mean"]["before"]["mrr"].as_f64(), "{said:#}");

    let weights = RankingWeights::parse(&text).expect("a weights file");
    let shipped = shipped_weights();
    assert_eq!(without_numbers(&text), without_numbers(&shipped));
    assert_ne!(text, shipped);
    let written = weights.calibration.own;
    assert!(said["weights"]["own"].as_f64().is_some_and(|own| (own - f64::from(written)).abs() < 1e-6), "{said:#}");
    // Without vectors all figures of meaning are 0, and so nothing can be said of their weights.
    assert!(said["unvaried"].as_array().is_some_and(|names| names.contains(&"files.meaning".into())), "{said:#}");
    for line in ["meaning = 1.0", "meaning_first = 1.5", "meaning = 0.8", "confidence = 1.0", "first = 0.2"] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }

    assert_eq!(fit("second.toml").2, text);
}

#[test]
fn weights_that_find_less_are_written_by_force_only() {
    let test = paired_history();
    // So strong a penalty makes all weights 0.
    let asked = ["fit-weights", ".", "--commits", "2", "--measured", "3", "--penalty", "1e9", "--output", "new.toml"];
    let output = test.revdeck(&asked);
    assert_eq!(output.status.code(), Some(3), "{}{}", out(&output), err(&output));
    assert!(err(&output).contains("the fitted weights find less: new.toml is as it was"), "{}", err(&output));
    assert!(err(&output).contains("hint: ") && out(&output).contains("nothing is written"), "{}", out(&output));
    assert!(!test.repo().join("new.toml").exists());

    let said = run(&test, &[&asked[..], &["--force"]].concat(), 0);
    assert!(said.contains("written to new.toml"), "{said}");
    let weights = fs::read_to_string(test.repo().join("new.toml")).expect("the weights");
    let weights = RankingWeights::parse(&weights).expect("a weights file");
    assert_eq!(weights.calibration.own, 0.0);

    fs::remove_file(test.repo().join("new.toml")).expect("the file goes");
    let said = run(&test, &["fit-weights", ".", "--commits", "2", "--measured", "1", "--dry-run"], 0);
    assert!(said.contains("nothing is written") && said.contains("fitted to 2 commits"), "{said}");
    assert!(!test.repo().join("assets").exists() && !test.repo().join("new.toml").exists());
}

#[test]
fn what_cannot_be_fitted_to_is_named_with_what_to_do() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("first");
    fs::create_dir_all(test.home()).expect("a folder");
    let home = test.home();
    let home = home.to_str().expect("a plain path");
    let errors = [
        &["fit-weights", ".", "--dry-run"][..],
        &["fit-weights", "."],
        &["fit-weights", ".", "--held-out", ".", "--dry-run"],
        &["fit-weights", home, "--dry-run"],
        &["fit-weights", "nowhere", "--dry-run"],
    ]
    .map(|arguments| test.errors(arguments, USAGE));
    assert_snapshot!(errors.concat(), @"
    error: .: no commit can be used to fit weights
      hint: name a repository with more history: behind the newest 40 there must be a commit that modifies 2 to 15 files of code, deletes none, and has 100 commits behind it
    error: cannot write assets/retrieval.toml: there is no such folder
      hint: run the command in a checkout of revdeck, name another file with --output, or pass --dry-run
    error: . is named twice
      hint: name each repository once: to fit to it, or with --held-out
    error: [home] is not in a git repository
      hint: change into a repository, or make one with `git init`
    error: nowhere is not in a git repository
      hint: change into a repository, or make one with `git init`
    ");
    for wrong in [
        &["--penalty", "0"][..],
        &["--penalty", "x"],
        &["--measured", "41"],
        &["--commits", "0"],
        &["--dry-run", "--force"],
    ] {
        let output = test.revdeck(&[&["fit-weights", "."], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", err(&output));
    }
}
