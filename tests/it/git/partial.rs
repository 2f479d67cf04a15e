//! Partial clones: revdeck fetches missing objects; if it cannot, the error message names the remedy.

use rstest::rstest;

use crate::env::TestEnvironment;

#[rstest]
#[case("blob:none")]
#[case("tree:0")]
fn what_a_partial_clone_lacks_is_brought(#[case] filter: &str) {
    let test = TestEnvironment::new();
    test.git(&["config", "uploadpack.allowFilter", "true"]);
    let mut code = String::new();
    for number in 0..3 {
        code.push_str(&format!("def f{number}(a, b, c, d, e, f, g, h):\n    return a\n\n"));
        test.write("wide.py", &code);
        test.commit(&format!("change {number}"));
    }
    std::fs::create_dir_all(test.home()).expect("a folder");
    let origin = format!("file://{}", test.repo().display());
    let clone = |name: &str| {
        let folder = test.home().join(name);
        let filter = format!("--filter={filter}");
        test.git(&["clone", "-q", &filter, &origin, folder.to_str().expect("UTF-8")]);
        folder
    };
    let review = |folder: &std::path::Path| {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        let output = command.current_dir(folder).args(["review", "--commit", "HEAD", "--wait"]).output();
        let output = output.expect("revdeck starts");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (near, far) = (clone("near"), clone("far"));
    let (code, said, errors) = review(&near);
    assert_eq!(code, Some(0), "{said}{errors}");
    assert!(said.contains("Function `f2`") && !said.contains("`f1`"), "{said}");

    std::fs::rename(test.repo(), test.home().join("moved")).expect("a folder");
    let (code, said, errors) = review(&far);
    assert_eq!((code, said.as_str()), (Some(3), ""), "{errors}");
    assert!(errors.contains("is a partial clone") && errors.contains("  hint: "), "{errors}");
}
