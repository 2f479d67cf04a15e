//! The list of all repositories of a home.

use super::*;

/// Makes another repository beside that of the test, with a reviewed commit.
fn second_repository(test: &TestEnvironment, name: &str, file: &str, content: &str) {
    let folder = test.repo().with_file_name(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(file), content).expect("a file");
    let git = |arguments: &[&str]| {
        let output = test.command("git").current_dir(&folder).args(arguments).output().expect("git");
        assert!(output.status.success(), "{arguments:?}: {}", err(&output));
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    let mut review = test.command(env!("CARGO_BIN_EXE_revdeck"));
    let output = review.current_dir(&folder).args(["review", "--wait"]).output().expect("revdeck starts");
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
}

#[test]
fn every_repository_is_listed_with_what_waits_there() {
    let test = TestEnvironment::new();
    assert_snapshot!(test.output(&["repos"], DONE), @"no repository yet: run `revdeck` in one");
    second_repository(&test, "calm", "a.py", "print(1)\n");
    second_repository(&test, "gone", "b.py", &wide_function("wide"));
    fs::remove_dir_all(test.repo().with_file_name("gone")).expect("it is there");
    second_repository(&test, "evil\x1b[2J", "c.py", "print(2)\n");
    test.write("long.py", long_function("long"));
    test.commit("long");
    run(&test, &["review", "--wait"], DONE);
    assert_snapshot!(test.output(&["repos"], DONE));
    assert_eq!(test.output(&["--all-repos"], DONE), test.output(&["repos"], DONE));
    let listed = test.json(&["repos", "--format", "json"], DONE);
    let waiting: Vec<(&str, bool, u64)> = list(&listed, "repos")
        .iter()
        .map(|repo| {
            let name = repo["name"].as_str().expect("a name");
            (name, repo["gone"] == true, repo["undecided"]["p1"].as_u64().expect("a number"))
        })
        .collect();
    assert_eq!(waiting[0], ("repo", false, 1));
    assert_eq!(waiting.iter().filter(|(_, gone, _)| *gone).map(|(name, ..)| *name).collect::<Vec<_>>(), ["gone"]);
    assert_snapshot!(test.fails(&["--all-repos", "runs"], USAGE), @"
    error: --all-repos stands alone
      hint: `revdeck repos` does the same
    ");
}

#[test]
fn a_store_that_cannot_be_read_is_listed_with_the_reason() {
    let test = TestEnvironment::new();
    second_repository(&test, "newer", "a.py", "print(1)\n");
    let info = crate::env::files_below(&test.home()).into_iter().find(|file| file.ends_with("repo.json"));
    let info = info.expect("a store");
    let mut content: Value = serde_json::from_slice(&fs::read(&info).expect("a file")).expect("JSON");
    content["version"] = 9.into();
    fs::write(&info, content.to_string()).expect("a file");
    let listed = test.output(&["repos"], DONE);
    assert!(listed.contains("its store cannot be read: a newer revdeck has written its store"), "{listed}");
}
