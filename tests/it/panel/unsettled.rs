//! Integration tests of reused lists that cannot be applied to the findings of the store.

use super::*;
use crate::env::err;

#[test]
fn a_reused_list_with_a_member_that_cannot_be_read_is_no_clean_review() {
    let panel = Panel::start(vec![answer(&[])], vec![answer(&[])], "");
    let review = |more: &[&str]| {
        let arguments = [&["review", "--reviewer", "one,two"], more].concat();
        panel.place.test.revdeck(&arguments)
    };
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    // Nobody can tell any more what this member has held back.
    let member = panel.member(&run, "two").run_id;
    let output = panel.place.output_path(&member);
    std::fs::remove_file(&output).and_then(|()| std::fs::create_dir(&output)).expect("in the way");
    for more in [&["--wait", "--fail-on", "p0", "--format", "json"][..], &[]] {
        let asked = review(more);
        assert_eq!(asked.status.code(), Some(INCOMPLETE), "{}", err(&asked));
        assert!(err(&asked).contains(&format!("{member}.json: Is a directory")), "{}", err(&asked));
        assert!(err(&asked).contains("revdeck store verify"), "{}", err(&asked));
        assert_eq!(out(&asked), "", "nothing looks like a result");
    }
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 1));
}
