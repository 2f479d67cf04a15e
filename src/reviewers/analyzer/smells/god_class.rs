//! GOD_CLASS: reports classes that do too much. In Rust and Go the parts of a type in one file are one class.

use super::Smell;
use crate::domain::{Confidence, Kind};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::{Class, FileFacts};
use crate::syntax::source::ParsedFile;

/// Reports each class over a limit. The limits of test code are multiplied by `test_factor`.
pub fn check(source: &ParsedFile<'_>, facts: &FileFacts, limits: &Limits, out: &mut Vec<Smell>) {
    for class in &facts.classes {
        let over = exceeded_limits(class, limits);
        let ratio = |&(value, limit, _): &(u32, u32, &str)| f64::from(value) / f64::from(limit.max(1));
        let Some(worst) = over.iter().map(ratio).max_by(f64::total_cmp) else { continue };
        let (priority, severity) = limits.grading.grade(worst);
        let short: Vec<String> = over.iter().map(|(value, _, what)| format!("{value} {what}")).collect();
        let long: Vec<String> =
            over.iter().map(|(value, limit, what)| format!("{value} {what} (limit {limit})")).collect();
        out.push(Smell {
            kind: Kind::GodClass,
            priority,
            severity,
            confidence: if over.len() > 1 { Confidence::High } else { Confidence::Medium },
            line_start: class.line_start,
            line_end: class.line_end,
            title: format!("class `{}` does too much: {}", class.name, short.join(", ")),
            explanation: format!("{}: it likely has more than one reason to change.", long.join(", ")),
            subject: class.name.clone(),
            anchor: (class.line_start, class.line_start.min(super::last_line(source))),
            figure: Some(worst),
            quote: None,
            pattern: None,
            suggestion: None,
        });
    }
}

/// Returns the figures over their limits, as (value, limit, name).
pub(in crate::reviewers::analyzer) fn exceeded_limits(class: &Class, limits: &Limits) -> Vec<(u32, u32, &'static str)> {
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
    use super::super::tests::find_smells;
    use crate::domain::Kind;

    #[test]
    fn methods_fields_and_lines_over_their_limits_in_every_language_with_classes() {
        let many = |one: &dyn Fn(usize) -> String, count: usize| (0..count).map(one).collect::<String>();
        for (path, head, method, field, tail) in [
            ("a.rs", "struct A { FIELDS }\nimpl A {\n", "fn mN(&self) {}\n", "fN: u8,\n", "}\n"),
            ("a.py", "class A:\n", "    def mN(self):\n        self.fN = 1\n", "", ""),
            ("a.js", "class A {\n", "mN() { this.fN = 1; }\n", "", "}\n"),
            ("a.ts", "class A {\nFIELDS", "mN() {}\n", "fN: number;\n", "}\n"),
            ("a.go", "package a\ntype A struct {\nFIELDS}\n", "func (a *A) mN() {}\n", "fN int\n", ""),
            ("A.java", "class A {\nFIELDS", "void mN() {}\n", "int fN;\n", "}\n"),
            ("a.cpp", "class A {\nFIELDS", "void mN() {}\n", "int fN;\n", "};\n"),
            ("a.cs", "class A {\nFIELDS", "void mN() {}\n", "int fN;\n", "}\n"),
            ("a.rb", "class A\n", "def mN\n@fN = 1\nend\n", "", "end\n"),
            ("a.php", "<?php class A {\nFIELDS", "function mN() {}\n", "public $fN;\n", "}\n"),
        ] {
            let number = |text: &str, n: usize| text.replace('N', &n.to_string());
            let code = |methods: usize, fields: usize| {
                let fields = many(&|n| number(field, n), fields);
                head.replace("FIELDS", &fields) + &many(&|n| number(method, n), methods) + tail
            };
            let fine = if field.is_empty() { code(10, 0) } else { code(15, 10) };
            let found = find_smells(Kind::GodClass, path, &fine, super::check);
            assert!(found.is_empty(), "{path}: {found:?}\n{fine}");
            let found = find_smells(Kind::GodClass, path, &code(16, 11), super::check);
            let fields = if field.is_empty() { "16 fields" } else { "11 fields" };
            let title = format!("class `A` does too much: 16 methods, {fields}");
            assert_eq!(found.iter().map(|smell| smell.title.as_str()).collect::<Vec<_>>(), [title], "{path}");
        }
    }
}
