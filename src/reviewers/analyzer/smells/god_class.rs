//! GOD_CLASS: reports classes that do too much. In Rust and Go the parts of a type in one file are one class.

use serde::Deserialize;

use super::{CheckedFile, GrowthComparison, Smell, SmellBuilder, SmellDefinition, SmellGrade, SmellGrowth};
use crate::domain::{Confidence, Kind, LineRange};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::Class;

/// GOD_CLASS in the registry.
pub const SMELL: SmellDefinition =
    SmellDefinition { kind: Kind::GodClass, check, growth: GrowthComparison::OfClass(describe_growth) };

/// Thresholds of GOD_CLASS: the table `god_class` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GodClassLimits {
    pub enabled: bool,
    pub max_methods: u32,
    pub max_fields: u32,
    pub max_lines: u32,
    pub min_methods_for_fields: u32,
}

/// Reports each class over a limit. The limits of test code are multiplied by `test_factor`.
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, limits, .. } = *file;
    for class in &facts.classes {
        let over = exceeded_limits(class, limits);
        let ratio = |&(value, limit, _): &(u32, u32, &str)| f64::from(value) / f64::from(limit.max(1));
        let Some(worst) = over.iter().map(ratio).max_by(f64::total_cmp) else { continue };
        let (priority, severity) = limits.grading.grade(worst);
        let short: Vec<String> = over.iter().map(|(value, _, what)| format!("{value} {what}")).collect();
        let long: Vec<String> =
            over.iter().map(|(value, limit, what)| format!("{value} {what} (limit {limit})")).collect();
        let confidence = if over.len() > 1 { Confidence::High } else { Confidence::Medium };
        let builder = SmellBuilder {
            kind: Kind::GodClass,
            grade: SmellGrade::new(priority, severity, confidence),
            lines: LineRange::new(class.line_start, class.line_end),
            title: format!("class `{}` does too much: {}", class.name, short.join(", ")),
            explanation: format!("{}: it likely has more than one reason to change.", long.join(", ")),
            subject: class.name.clone(),
        };
        let anchor = (class.line_start, class.line_start.min(super::last_line(source)));
        out.push(builder.build().with_anchor(anchor).with_figure(worst));
    }
}

fn describe_growth(before: &Class, after: &Class, limits: &Limits) -> Option<SmellGrowth> {
    let figure_before = |what: &str| match what {
        "methods" => before.methods,
        "fields" => before.fields,
        _ => before.nloc,
    };
    let grown: Vec<String> = exceeded_limits(after, limits)
        .into_iter()
        .map(|(value, _, what)| (figure_before(what), value, what))
        .filter(|(before, value, _)| value > before)
        .map(|(before, value, what)| format!("from {before} to {value} {what}"))
        .collect();
    let list = grown.join(", ");
    (!grown.is_empty()).then(|| SmellGrowth {
        title: format!("Class `{}` grew {list}", after.name),
        clause: format!("class grew {list}"),
    })
}

/// Returns the figures over their limits, as (value, limit, name).
fn exceeded_limits(class: &Class, limits: &Limits) -> Vec<(u32, u32, &'static str)> {
    let own = &limits.god_class;
    let fields = if class.methods < own.min_methods_for_fields { 0 } else { class.fields };
    [
        (class.methods, own.max_methods, "methods"),
        (fields, own.max_fields, "fields"),
        (class.nloc, own.max_lines, "code lines"),
    ]
    .into_iter()
    .map(|(value, limit, what)| (value, limits.grading.limit(limit, class.is_test), what))
    .filter(|(value, limit, _)| value > limit)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::test_support::check_samples;
    use super::*;

    /// For each language: the head of a class `A` with `MARK` where a smell begins, a method and a field with `N` for a
    /// number, and the end of the class. Without a field the methods declare them.
    const CLASSES: [(&str, &str, &str, &str, &str); 10] = [
        ("a.rs", "struct A { FIELDS }\nimpl A { MARK\n", "fn mN(&self) {}\n", "fN: u8,\n", "}\n"),
        ("a.py", "class A: MARK\n", "    def mN(self):\n        self.fN = 1\n", "", ""),
        ("a.js", "class A { MARK\n", "mN() { this.fN = 1; }\n", "", "}\n"),
        ("a.ts", "class A { MARK\nFIELDS", "mN() {}\n", "fN: number;\n", "}\n"),
        ("a.go", "package a\ntype A struct { MARK\nFIELDS}\n", "func (a *A) mN() {}\n", "fN int\n", ""),
        ("A.java", "class A { MARK\nFIELDS", "void mN() {}\n", "int fN;\n", "}\n"),
        ("a.cpp", "class A { MARK\nFIELDS", "void mN() {}\n", "int fN;\n", "};\n"),
        ("a.cs", "class A { MARK\nFIELDS", "void mN() {}\n", "int fN;\n", "}\n"),
        ("a.rb", "class A MARK\n", "def mN\n@fN = 1\nend\n", "", "end\n"),
        ("a.php", "<?php class A { MARK\nFIELDS", "function mN() {}\n", "public $fN;\n", "}\n"),
    ];

    #[test]
    fn methods_fields_and_lines_over_their_limits_in_every_language_with_classes() {
        for (path, head, method, field, tail) in CLASSES {
            let repeat = |text: &str, count: usize| -> String {
                (0..count).map(|number| text.replace('N', &number.to_string())).collect()
            };
            let sample = |methods: usize, fields: usize, mark: &str| {
                let head = head.replace("FIELDS", &repeat(field, fields)).replace("MARK", mark);
                format!("//- {path}\n{head}{}{tail}", repeat(method, methods))
            };
            let (fine, mark) = match field.is_empty() {
                true => (10, "//~ p2 class `A` does too much: 16 methods, 16 fields"),
                false => (15, "//~ p3 class `A` does too much: 16 methods, 11 fields"),
            };
            check_samples(&SMELL, &sample(fine, 10, ""));
            check_samples(&SMELL, &sample(16, 11, mark));
        }
    }
}
