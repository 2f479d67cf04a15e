//! Constitution, rules and documents of the project in a context.

use insta::{allow_duplicates, assert_snapshot};

use super::{lines_from, notes, shop};
use crate::env::DONE;

#[test]
fn the_constitution_is_there_whatever_else_is() {
    let test = shop();
    let article = "No price is ever rounded twice.";
    test.write(".specify/memory/constitution.md", format!("# Articles\n\n{article}\n"));
    test.write("AGENTS.md", "Rules of the house.\n".repeat(100));
    test.commit("Articles");
    test.write(
        "src/price.py",
        "class PriceList:\n    # why\n    def lookup_price(self, item, day):\n        return self.table[item, day]\n"
            .repeat(400),
    );
    for budget in ["200", "400", "2000", "20000"] {
        let ask = ["context", "worktree", "--budget", budget, "--no-documentation", "--format", "json"];
        let context = test.json(&ask, DONE);
        let first = &context["sections"][0];
        assert_eq!((first["kind"].as_str(), first["path"].as_str()), (Some("rules"), None), "{budget}: {context:#}");
        assert_eq!(lines_from(first["text"].as_str().expect("text"), article), [article], "{budget}: {first}");
        assert!(context["total_tokens"].as_u64() <= context["budget"].as_u64());
    }
}

#[test]
fn a_constitution_that_is_cut_says_so() {
    let test = shop();
    test.write("CONSTITUTION.md", "No price is ever rounded twice, and none is shared. ".repeat(2_000));
    test.commit("Articles");
    test.write("src/price.py", "class PriceList:\n    pass\n");
    let mut said = String::new();
    for budget in ["200", "2000", "130000"] {
        let context = test.json(&["context", "worktree", "--budget", budget, "--format", "json"], DONE);
        said += &format!("{budget}: {:?}\n", notes(&context));
        let first = context["sections"][0]["text"].as_str().expect("text");
        assert_eq!(
            lines_from(first, "No price is ever rounded twice, and none is shared. ").len(),
            1,
            "{budget}: {first}"
        );
    }
    assert_snapshot!(said, @r#"
    200: "of the constitution only the beginning is told: it is over its part of the budget"
    2000: "of the constitution only the beginning is told: it is over its part of the budget"
    130000: ""
    "#);
}

#[test]
fn the_rules_around_what_a_task_is_about_are_told() {
    let test = shop();
    test.write("src/AGENTS.md", "Prices are never rounded.\n");
    test.write("other/AGENTS.md", "Roads are long.\n");
    test.commit("Rules");
    let diff = "--- a/src/price.py\n+++ b/src/price.py\n@@ -2 +2 @@\n-    def lookup_price(self, item):\n+    def price_of(self, item):\n";
    for about in [["--focus", "src/price.py"], ["--task", diff]] {
        for more in [&["worktree"][..], &["worktree", "--budget", "4000"], &["--at", "HEAD"]] {
            let context = test.json(&[&["context", "--format", "json"], more, &about].concat(), DONE);
            let sections = context["sections"].as_array().expect("sections").iter();
            let rules = sections.filter(|section| section["kind"] == "rules");
            let rules: Vec<&str> = rules.filter_map(|section| section["text"].as_str()).collect();
            let [rules] = rules[..] else { panic!("{more:?} {about:?}: {context:#}") };
            allow_duplicates!(assert_snapshot!(rules, @"
            From src/AGENTS.md:
            ```
            Prices are never rounded.
            ```
            "));
        }
    }
}

#[test]
fn a_large_budget_begins_with_the_tree_and_the_documents() {
    let test = shop();
    test.write("AGENTS.md", "Prices are exact.\n");
    test.write("other/AGENTS.md", "Roads are long.\n");
    test.commit("Rules");
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--format", "json"];
    let context = test.json(&ask, DONE);
    assert_eq!(context["budget"], 8_000, "as a review has");
    let texts = |kind: &str| -> Vec<String> {
        let sections = context["sections"].as_array().expect("sections").iter();
        let texts = sections.filter(|section| section["kind"] == kind).filter_map(|section| section["text"].as_str());
        texts.map(str::to_owned).collect()
    };
    let [overview] = &texts("overview")[..] else { panic!("{context:#}") };
    assert_snapshot!(overview, @"
    other/ (40 files)
    src/price.py
    src/store.py
    tests/ (1 file)
    ");
    let [documents] = &texts("documentation")[..] else { panic!("{context:#}") };
    assert_snapshot!(documents, @"
    ```
    Documents of the project that can be asked for:
      other/: AGENTS.md
    ```
    ");
    assert_snapshot!(texts("rules")[0], @"
    From AGENTS.md:
    ```
    Prices are exact.
    ```
    ");
}
