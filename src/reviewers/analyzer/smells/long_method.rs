//! LONG_METHOD: reports functions with too many lines of code, counted as lizard counts them. A closure with its own
//! metrics (JavaScript, TypeScript, Go) does not count into the enclosing function.

use serde::Deserialize;

use super::{CheckedFile, GrowthComparison, Smell, SmellBuilder, SmellDefinition, SmellGrade, SmellGrowth};
use crate::domain::{Confidence, Kind, LineRange};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::Function;

/// LONG_METHOD in the registry.
pub const SMELL: SmellDefinition =
    SmellDefinition { kind: Kind::LongMethod, check, growth: GrowthComparison::OfFunction(describe_growth) };

/// Thresholds of LONG_METHOD: the table `long_method` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongMethodLimits {
    pub enabled: bool,
    pub max_code_lines: u32,
}

/// Reports each function over the limit. The limit of test code is multiplied by `test_factor`.
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, limits, .. } = *file;
    for function in &facts.functions {
        let limit = limits.grading.limit(limits.long_method.max_code_lines, function.is_test);
        if function.nloc <= limit {
            continue;
        }
        let ratio = f64::from(function.nloc) / f64::from(limit.max(1));
        let (priority, severity) = limits.grading.grade(ratio);
        let builder = SmellBuilder {
            kind: Kind::LongMethod,
            grade: SmellGrade::new(priority, severity, Confidence::High),
            lines: LineRange::new(function.line_start, function.line_end),
            title: format!("function `{}` is {} code lines long", function.name, function.nloc),
            explanation: format!(
                "{} code lines without blank lines and comments, {limit} are the limit{}: it is hard to see what \
                 belongs together and to test the parts alone.",
                function.nloc,
                if function.is_test { " for test code" } else { "" },
            ),
            subject: function.name.clone(),
        };
        let smell = builder.build().with_figure(f64::from(function.nloc));
        out.push(smell.with_anchor(super::head_lines(source, function)));
    }
}

fn describe_growth(before: &Function, after: &Function, _: &Limits) -> Option<SmellGrowth> {
    let grown = format!("grew from {} to {} code lines", before.nloc, after.nloc);
    (after.nloc > before.nloc).then(|| SmellGrowth {
        title: format!("Function `{}` {grown}", after.name),
        clause: format!("function {grown}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_support::check_samples;
    use super::*;

    #[test]
    fn only_code_lines_over_the_limit_count_and_the_priority_grows_with_them() {
        for (path, lines, priority) in [
            ("a.py", 60, None),
            ("a.py", 61, Some("p3")),
            ("a.py", 90, Some("p2")),
            ("a.py", 180, Some("p1")),
            ("test_a.py", 180, None),
            ("test_a.py", 181, Some("p3")),
        ] {
            let mark = priority.map(|priority| format!("//~ {priority} function `f` is {lines} code lines long"));
            let body = "    x = 1  # a comment\n\n    # only a comment\n".repeat(lines - 1);
            let sample = format!("//- {path}\ndef f(): {}\n{body}", mark.unwrap_or_default());
            for smell in check_samples(&SMELL, &sample) {
                assert_eq!((smell.subject.as_str(), smell.anchor, smell.figure), ("f", (1, 1), Some(lines as f64)));
            }
        }
    }
}
