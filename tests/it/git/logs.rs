//! Logs of a team as git keeps them.

use super::open;
use crate::env::TestEnvironment;

#[test]
fn what_is_no_id_of_a_commit_is_no_option_of_git() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("Begin");
    let repo = open(&test);
    let file = test.home().join("written-by-git");
    std::fs::create_dir_all(test.home()).expect("a folder");
    let head = test.git(&["rev-parse", "HEAD"]);
    let option = format!("--output={}", file.display());
    for version in [option.as_str(), "HEAD", "1:tag", ""] {
        assert!(repo.list_log_signers(version, &[], None).is_err(), "{version:?}");
        assert!(repo.log_commit_signature(version).is_err(), "{version:?}");
        let known = repo.list_log_signers(head.trim(), &[version], None).expect("a log");
        assert_eq!(known.len(), 1, "{version:?} contains no commit");
    }
    assert!(!file.exists());
    assert_eq!(repo.list_log_signers(head.trim(), &[head.trim()], None).expect("a log"), []);
}
