//! Samples for the tests of smells: code in which marks stand where smells are expected.

use std::cell::OnceCell;

use super::{CheckedFile, InFileClones, Limits, Smell, SmellDefinition};
use crate::reviewers::analyzer::smells::hardcoded_configuration::HardcodedValues;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Start of a line that names the file of the sample below it.
const FILE_MARK: &str = "//- ";

/// Start of a mark: priority and title of a smell that begins on the line. A mark stands at the end of that line or on
/// a line of its own below it. Marks are no part of the code that is checked.
const SMELL_MARK: &str = "//~ ";

/// Checks samples with the default limits. Each sample begins with a line `//- PATH`, and each smell has a mark at the
/// line on which it begins: `//~ PRIORITY TITLE`. Returns the smells of all samples.
///
/// ```text
/// //- a.py
/// import os //~ p3 unused import `os`
/// import sys
/// //~ p3 unused import `sys`
/// def f(): pass
/// ```
///
/// # Panics
///
/// Panics with the sample and its real marks if a smell has no mark or a mark has no smell, and if there is no sample.
pub fn check_samples(smell: &SmellDefinition, samples: &str) -> Vec<Smell> {
    let (_, samples) = samples.split_once(FILE_MARK).expect("a sample");
    let mut all = Vec::new();
    for sample in samples.split(&format!("\n{FILE_MARK}")) {
        let (path, marked) = sample.split_once('\n').expect("code below the path");
        let (code, expected) = read_marks(marked.trim_end_matches('\n'));
        let found = find_smells(smell, path, &code);
        let mut real: Vec<(u32, String)> = found.iter().map(|smell| (smell.line_start, mark_of(smell))).collect();
        real.sort();
        assert_eq!(real, expected, "{FILE_MARK}{path}\n{}", mark_smells(&code, &found));
        all.extend(found);
    }
    all
}

/// Runs one smell on a text with the default limits. Masks secrets, but leaves titles and order as the check made them.
///
/// # Panics
///
/// Panics if the file's language is unknown, if it cannot be parsed, and if a smell has another kind.
pub fn find_smells(smell: &SmellDefinition, path: &str, code: impl AsRef<[u8]>) -> Vec<Smell> {
    let code = code.as_ref();
    let language = Language::detect(path, code).expect("a language of ours");
    let mut parsers = Parsers::default();
    let source = parsers.parse(path, language, code).expect("parses");
    let (facts, limits) = (FileFacts::from_parsed(&source), Limits::default());
    let hardcoded = HardcodedValues::scan(&source, &facts, &limits);
    let in_file_clones = InFileClones::Reported;
    let module_variables = OnceCell::new();
    let file = CheckedFile {
        source: &source,
        facts: &facts,
        limits: &limits,
        hardcoded: &hardcoded,
        in_file_clones,
        other_files: None,
        module_variables: &module_variables,
    };
    let mut found = Vec::new();
    (smell.check)(&file, &mut found);
    hardcoded.redactor().redact_smells(&mut found, code);
    assert!(found.iter().all(|found| found.kind == smell.kind), "{found:?}");
    found
}

/// Separates a sample from its marks. The marks come with the lines (1-based) at which they stand, sorted.
fn read_marks(marked: &str) -> (String, Vec<(u32, String)>) {
    let (mut code, mut marks, mut number) = (String::new(), Vec::new(), 0);
    for line in marked.lines() {
        let (text, mark) = line.split_once(SMELL_MARK).map_or((line, None), |(text, mark)| (text, Some(mark)));
        if mark.is_none() || !text.is_empty() {
            number += 1;
            code.push_str(if mark.is_some() { text.trim_end() } else { text });
            code.push('\n');
        }
        marks.extend(mark.map(|mark| (number, mark.to_owned())));
    }
    marks.sort();
    (code, marks)
}

fn mark_of(smell: &Smell) -> String {
    format!("{} {}", smell.priority, smell.title)
}

/// Returns the code with the marks of its smells on lines of their own.
fn mark_smells(code: &str, found: &[Smell]) -> String {
    let mut marked = String::new();
    for (line, number) in code.lines().zip(1..) {
        marked.extend([line, "\n"]);
        for smell in found.iter().filter(|smell| smell.line_start == number) {
            marked.extend([SMELL_MARK, &mark_of(smell), "\n"]);
        }
    }
    marked
}

mod tests {
    use super::*;
    use crate::reviewers::analyzer::smells::long_method;

    #[test]
    fn marks_are_taken_out_of_the_code() {
        let (code, marks) = read_marks("a  //~ p3 at the end\n//~ p1 below\n\n b \n//~ p2 of b");
        assert_eq!(code, "a\n\n b \n");
        let expected = [(1, "p1 below"), (1, "p3 at the end"), (3, "p2 of b")];
        assert_eq!(marks, expected.map(|(line, mark)| (line, mark.to_owned())));
    }

    #[test]
    #[should_panic = "p3 no smell"]
    fn a_mark_without_a_smell_fails() {
        check_samples(&long_method::SMELL, "//- a.py\ndef f(): pass //~ p3 no smell\n");
    }

    #[test]
    #[should_panic = "p3 function `f` is 61 code lines long"]
    fn a_smell_without_a_mark_fails() {
        check_samples(&long_method::SMELL, &format!("//- a.py\ndef f():\n{}", "    g()\n".repeat(60)));
    }
}
