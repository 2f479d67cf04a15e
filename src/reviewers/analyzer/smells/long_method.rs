//! LONG_METHOD: reports functions with too many lines of code, counted as lizard counts them. A closure with its own
//! metrics (JavaScript, TypeScript, Go) does not count into the enclosing function.

use super::Smell;
use crate::domain::{Confidence, Kind};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::FileFacts;
use crate::syntax::source::ParsedFile;

/// Reports each function over the limit. The limit of test code is multiplied by `test_factor`.
pub fn check(source: &ParsedFile<'_>, facts: &FileFacts, limits: &Limits, out: &mut Vec<Smell>) {
    for function in &facts.functions {
        let limit = limits.grading.limit(limits.long_method.max_code_lines, function.is_test);
        if function.nloc <= limit {
            continue;
        }
        let ratio = f64::from(function.nloc) / f64::from(limit.max(1));
        let (priority, severity) = limits.grading.grade(ratio);
        out.push(Smell {
            kind: Kind::LongMethod,
            priority,
            severity,
            confidence: Confidence::High,
            line_start: function.line_start,
            line_end: function.line_end,
            title: format!("function `{}` is {} code lines long", function.name, function.nloc),
            explanation: format!(
                "{} code lines without blank lines and comments, {limit} are the limit{}: it is hard to see what \
                 belongs together and to test the parts alone.",
                function.nloc,
                if function.is_test { " for test code" } else { "" },
            ),
            subject: function.name.clone(),
            anchor: super::head_lines(source, function),
            figure: Some(f64::from(function.nloc)),
            quote: None,
            pattern: None,
            suggestion: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::find_smells;
    use crate::domain::{Kind, Priority};

    fn function(lines: usize) -> String {
        format!("def f():\n{}", "    x = 1  # a comment\n\n    # only a comment\n".repeat(lines - 1))
    }

    #[test]
    fn only_code_lines_over_the_limit_count_and_the_priority_grows_with_them() {
        for (path, lines, expected) in [
            ("a.py", 60, None),
            ("a.py", 61, Some(Priority::P3)),
            ("a.py", 90, Some(Priority::P2)),
            ("a.py", 180, Some(Priority::P1)),
            ("test_a.py", 180, None),
            ("test_a.py", 181, Some(Priority::P3)),
        ] {
            let smells = find_smells(Kind::LongMethod, path, &function(lines), super::check);
            assert_eq!(smells.first().map(|smell| smell.priority), expected, "{path} {lines}");
            if let Some(smell) = smells.first() {
                assert_eq!(smell.title, format!("function `f` is {lines} code lines long"));
                assert_eq!((smell.subject.as_str(), smell.anchor, smell.figure), ("f", (1, 1), Some(lines as f64)));
            }
        }
    }
}
