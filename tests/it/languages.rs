//! Every smell in a sample file of each language that is defined by its data alone.
//!
//! A comment `// smell: KIND, KIND` marks a line on which findings of these kinds begin. A comment `// times: 70` repeats
//! its line, with the number of the copy for `#`. The comments are removed before the analysis, because a comment explains
//! a number or an empty handler.

use std::collections::BTreeSet;

use revdeck::domain::Kind;
use revdeck::reviewers::analyzer::Builtin;
use revdeck::syntax::source::Parsers;
use rstest::rstest;

/// Returns the code of a sample and its expected findings, as 1-based line and kind.
fn parse_sample(sample: &str) -> (String, BTreeSet<(u32, Kind)>) {
    let (mut code, mut expected, mut number) = (String::new(), BTreeSet::new(), 1);
    for line in sample.lines() {
        let (line, times) = match line.split_once("// times: ") {
            Some((line, times)) => (line, times.trim().parse().expect("a number")),
            None => (line, 1),
        };
        let (line, kinds) = line.split_once("// smell: ").unwrap_or((line, ""));
        for kind in kinds.split(',').map(str::trim).filter(|kind| !kind.is_empty()) {
            expected.insert((number, kind.parse().expect("a kind")));
        }
        for copy in 0..times {
            code += &line.replace('#', &copy.to_string());
            code.push('\n');
        }
        number += times;
    }
    (code, expected)
}

#[rstest]
#[case::kotlin("src/main/kotlin/Shop.kt", include_str!("../languages/shop.kt"))]
#[case::scala("src/main/scala/Shop.scala", include_str!("../languages/shop.scala"))]
#[case::swift("Sources/Shop/Shop.swift", include_str!("../languages/shop.swift"))]
fn the_smells_of_a_sample_stand_on_its_marked_lines(#[case] path: &str, #[case] sample: &str) {
    let (code, expected) = parse_sample(sample);
    let report =
        Builtin::default().analyze_file(&mut Parsers::default(), path, code.as_bytes()).expect("a language of ours");
    let found: BTreeSet<(u32, Kind)> = report.smells.iter().map(|smell| (smell.line_start, smell.kind)).collect();
    let line = |(number, kind): &(u32, Kind)| {
        format!("{number} {kind:?}: {}", code.lines().nth(*number as usize - 1).unwrap_or_default())
    };
    let missing: Vec<String> = expected.difference(&found).map(line).collect();
    let surplus: Vec<String> = found.difference(&expected).map(line).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing: {missing:#?}\nsurplus: {surplus:#?}");
    let kinds: BTreeSet<Kind> = expected.iter().map(|(_, kind)| *kind).collect();
    let smells = Kind::ALL.iter().copied().filter(|kind| kind.is_smell());
    assert_eq!(kinds, smells.collect(), "a kind is missing in the sample");
}
