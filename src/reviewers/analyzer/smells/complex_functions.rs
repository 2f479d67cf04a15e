//! COMPLEX_FUNCTIONS: reports functions with too many paths, too deep nesting or too many parameters. Each function has
//! at most one finding, which names every figure over its limit.

use serde::Deserialize;

use super::{CheckedFile, GrowthComparison, Smell, SmellBuilder, SmellDefinition, SmellGrade, SmellGrowth};
use crate::domain::{Confidence, Kind, LineRange, Priority, Severity};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::Function;

/// COMPLEX_FUNCTIONS in the registry.
pub const SMELL: SmellDefinition =
    SmellDefinition { kind: Kind::ComplexFunctions, check, growth: GrowthComparison::OfFunction(describe_growth) };

/// Thresholds of COMPLEX_FUNCTIONS: the table `complex_functions` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComplexFunctionsLimits {
    pub enabled: bool,
    pub max_cyclomatic: u32,
    pub max_cognitive: u32,
    pub max_nesting: u32,
    pub max_parameters: u32,
}

/// A metric of a function and its limit.
struct FunctionMetric {
    name: &'static str,
    value: u32,
    limit: u32,
}

/// Returns the metrics of a function that COMPLEX_FUNCTIONS checks.
fn measure_function(function: &Function, limits: &Limits) -> [FunctionMetric; 4] {
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
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, limits, .. } = *file;
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
        let builder = SmellBuilder {
            kind: Kind::ComplexFunctions,
            grade: SmellGrade::new(priority, severity, Confidence::High),
            lines: LineRange::new(function.line_start, function.line_end),
            title: format!("function `{}` is complex: {}", function.name, short.join(", ")),
            explanation: format!("{}: every path has to be understood and tested.", long.join(", ")),
            subject: function.name.clone(),
        };
        out.push(builder.build().with_anchor(super::head_lines(source, function)).with_figure(worst));
    }
}

fn describe_growth(before: &Function, after: &Function, limits: &Limits) -> Option<SmellGrowth> {
    let grown: Vec<String> = measure_function(after, limits)
        .iter()
        .zip(measure_function(before, limits))
        .filter(|(after, before)| after.value > before.value && after.value > after.limit)
        .map(|(after, before)| format!("{} grew from {} to {}", after.name, before.value, after.value))
        .collect();
    let list = grown.join(", ");
    (!grown.is_empty()).then(|| SmellGrowth {
        title: format!("Function `{}` got more complex: {list}", after.name),
        clause: format!("function got more complex: {list}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_support::check_samples;
    use super::*;

    #[test]
    fn one_finding_names_all_figures_over_their_limits() {
        check_samples(
            &SMELL,
            r#"
//- a.js
function f(a) { //~ p2 function `f` is complex: cognitive 21, nesting 6
  if (a) {
    if (a) {
      if (a) {
        if (a) {
          if (a) {
            if (a) {
            }
          }
        }
      }
    }
  }
}
//- a.test.js
function f(a) {
  if (a) {
    if (a) {
      if (a) {
        if (a) {
          if (a) {
            if (a) {
            }
          }
        }
      }
    }
  }
}
//- a.py
class A:
    def f(self, a, b, c, d, e, f, g, h): pass //~ p3 function `A.f` is complex: 8 parameters
//- a.py
class A:
    def f(self, a, b, c, d, e, f, g): pass
"#,
        );
    }

    #[test]
    fn many_parallel_paths_have_the_lowest_priority() {
        let cases = "case 1: return 2;\n".repeat(40);
        let head = "int f(int a) { //~ p3 function `f` is complex: cyclomatic 41\nswitch (a) {\n";
        check_samples(&SMELL, &format!("//- a.c\n{head}{cases}}}\n}}\n"));
    }
}
