//! Secrets and strange files in tasks and repositories.

use super::shop;
use crate::env::DONE;

#[test]
fn a_secret_in_the_task_is_masked_where_it_is_sent() {
    let test = shop();
    let task = "lookup_price fails with ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    for budget in [&["--budget", "2000"][..], &[]] {
        let ask = [&["context", "--at", "HEAD", "--task", task, "--format", "json"], budget].concat();
        let context = test.json(&ask, DONE);
        // The secret must be in no field, whatever the rest of the answer is.
        assert!(!context.to_string().contains("ghp_0123"), "{context:#}");
        let told = &context["sections"][0];
        assert_eq!(
            (&told["kind"], told["text"].as_str()),
            (&"task".into(), Some("lookup_price fails with «secret:github_token»\n"))
        );
    }
}

#[test]
fn secrets_and_strange_files_are_survived() {
    let test = shop();
    test.write(
        "src/keys.py",
        "lookup_price = 'AKIAIOSFODNN7EXAMPLE'\ntoken = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'\n",
    );
    test.write("src/long.js", format!("var lookup_price = '{}';\n", "x".repeat(1 << 20)));
    test.write("src/binary.py", b"lookup_price\0\xff\xfe".as_slice());
    test.write("src/latin.py", b"# caf\xe9\nlookup_price = 1\n".as_slice());
    test.write("src/empty.py", "");
    test.commit("Strange");
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--task", "lookup_price", "--budget", "4000"];
    let context = test.json(&[&ask[..], &["--format", "json"]].concat(), DONE);
    assert!(context["total_tokens"].as_u64() <= Some(4_000));
    // The secret must be in no field, whatever the rest of the answer is.
    assert!(!context.to_string().contains("ghp_0123456789abcdefghijklmnopqrstuvwxyz"));
}
