//! COMPLEX_FUNCTIONS: reports functions with too many paths, too deep nesting or too many parameters. Each function has
//! at most one finding, which names every figure over its limit.

use super::Smell;
use crate::domain::{Confidence, Kind, Priority, Severity};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::{FileFacts, Function};
use crate::syntax::source::ParsedFile;

/// A metric of a function and its limit.
pub(in crate::reviewers::analyzer) struct FunctionMetric {
    pub name: &'static str,
    pub value: u32,
    pub limit: u32,
}

/// Returns the metrics of a function that COMPLEX_FUNCTIONS checks.
pub(in crate::reviewers::analyzer) fn measure_function(function: &Function, limits: &Limits) -> [FunctionMetric; 4] {
    let own = &limits.complex_functions;
    let measure =
        |name, value, limit| FunctionMetric { name, value, limit: limits.grading.limit(limit, function.is_test) };
    [
        measure("cyclomatic complexity", function.cyclomatic, own.max_cyclomatic),
        measure("cognitive complexity", function.cognitive, own.max_cognitive),
        measure("nesting", function.nesting, own.max_nesting),
        measure("parameters", function.parameters, own.max_parameters),
    ]
}

/// Reports each function with a metric over its limit. The limits of test code are multiplied by `test_factor`.
pub fn check(source: &ParsedFile<'_>, facts: &FileFacts, limits: &Limits, out: &mut Vec<Smell>) {
    for function in &facts.functions {
        let measures = measure_function(function, limits);
        let over = || measures.iter().filter(|measure| measure.value > measure.limit);
        let ratio = |measure: &FunctionMetric| f64::from(measure.value) / f64::from(measure.limit.max(1));
        let Some(worst) = over().map(ratio).max_by(f64::total_cmp) else { continue };
        let (mut priority, mut severity) = limits.grading.grade(worst);
        let is_flat = over().all(|measure| measure.name != "cognitive complexity" && measure.name != "nesting");
        if is_flat && priority < Priority::P3 {
            // Many parallel paths (a long `match`) or many parameters are easier to follow than nested paths.
            (priority, severity) = (Priority::P3, Severity::Low);
        }
        let short: Vec<String> = over()
            .map(|measure| match measure.name {
                "parameters" => format!("{} parameters", measure.value),
                name => format!("{} {}", name.trim_end_matches(" complexity"), measure.value),
            })
            .collect();
        let long: Vec<String> = over()
            .map(|measure| match measure.name {
                "parameters" => format!("{} parameters (limit {})", measure.value, measure.limit),
                name => format!("{name} {} (limit {})", measure.value, measure.limit),
            })
            .collect();
        out.push(Smell {
            kind: Kind::ComplexFunctions,
            priority,
            severity,
            confidence: Confidence::High,
            line_start: function.line_start,
            line_end: function.line_end,
            title: format!("function `{}` is complex: {}", function.name, short.join(", ")),
            explanation: format!("{}: every path has to be understood and tested.", long.join(", ")),
            subject: function.name.clone(),
            anchor: super::head_lines(source, function),
            figure: Some(worst),
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

    #[test]
    fn one_finding_names_all_figures_over_their_limits() {
        let nested = "function f(a) {\n".to_owned() + &"if (a) {\n".repeat(6) + &"}\n".repeat(6) + "}\n";
        let flat = "int f(int a) {\nswitch (a) {\n".to_owned() + &"case 1: return 2;\n".repeat(40) + "}\n}\n";
        for (path, code, expected) in [
            ("a.js", nested.as_str(), Some((Priority::P2, "function `f` is complex: cognitive 21, nesting 6"))),
            ("a.test.js", nested.as_str(), None),
            ("a.c", flat.as_str(), Some((Priority::P3, "function `f` is complex: cyclomatic 41"))),
            (
                "a.py",
                "class A:\n    def f(self, a, b, c, d, e, f, g, h): pass\n",
                Some((Priority::P3, "function `A.f` is complex: 8 parameters")),
            ),
            ("a.py", "class A:\n    def f(self, a, b, c, d, e, f, g): pass\n", None),
        ] {
            let smells = find_smells(Kind::ComplexFunctions, path, code, super::check);
            assert!(smells.len() <= 1, "{path}: {smells:?}");
            let found = smells.first().map(|smell| (smell.priority, smell.title.as_str()));
            assert_eq!(found, expected, "{path} {code}");
        }
    }
}
