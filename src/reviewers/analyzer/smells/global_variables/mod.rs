//! GLOBAL_VARIABLES: reports variables outside of functions to which a function assigns new values. The severity
//! depends on the number of functions in the file that use the variable.
//!
//! - Constants and variables that are never assigned again are not reported.
//! - A variable that several functions change is worse: MUTABLE_SHARED_STATE reports it. No variable is reported by
//!   both.

pub(super) mod declarations;
pub(super) mod module_variables;

use self::module_variables::{ModuleVariable, ModuleVariableKind};
use super::Smell;
use crate::domain::{Confidence, Kind, Priority, Severity, text};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::FileFacts;
use crate::syntax::source::ParsedFile;

/// Reports the global variables of a file.
pub fn check(source: &ParsedFile<'_>, facts: &FileFacts, limits: &Limits, out: &mut Vec<Smell>) {
    for state in module_variables::collect(source, facts).iter().filter(|state| state.is_global(limits)) {
        out.push(build_smell(source, facts, limits, state));
    }
}

fn build_smell(source: &ParsedFile<'_>, facts: &FileFacts, limits: &Limits, state: &ModuleVariable) -> Smell {
    let node = &source.nodes[state.name];
    let name = source.text(node);
    let limit = &limits.global_variables;
    let touched = state.touched_by.len() as u32;
    let (priority, severity) = match touched {
        many if many >= limit.high_functions => (Priority::P2, Severity::High),
        some if some >= limit.medium_functions => (Priority::P2, Severity::Medium),
        _ => (Priority::P3, Severity::Low),
    };
    let writer = writer_names(facts, state);
    let (what, why) = match state.kind {
        ModuleVariableKind::StaticMut => ("`static mut`", "every use of it is unsafe"),
        ModuleVariableKind::Static => ("static field", "its value outlives objects and tests"),
        ModuleVariableKind::Global => ("global variable", "any code can change it"),
        ModuleVariableKind::Module | ModuleVariableKind::ClassVariable => {
            ("mutable global", "its value depends on what ran before")
        }
    };
    let changes = if writer.is_empty() { String::new() } else { format!(", {writer} changes it") };
    Smell {
        kind: Kind::GlobalVariables,
        priority,
        severity,
        confidence: if state.kind == ModuleVariableKind::StaticMut { Confidence::High } else { Confidence::Medium },
        line_start: node.row + 1,
        line_end: node.end_row + 1,
        title: format!("{what} `{name}`, touched by {}", text::format_count(touched as usize, "function")),
        explanation: format!(
            "{} of this file {} `{name}`{changes}: {why}.",
            text::format_count(touched as usize, "function"),
            if touched == 1 { "touches" } else { "touch" }
        ),
        subject: name.to_owned(),
        anchor: (node.row + 1, node.row + 1),
        figure: Some(f64::from(touched)),
        quote: None,
        pattern: None,
        suggestion: None,
    }
}

/// Lists the functions that change a variable, for a sentence: up to three names, or two names and the number of the
/// rest.
pub(super) fn writer_names(facts: &FileFacts, state: &ModuleVariable) -> String {
    let names: Vec<String> = state
        .writers
        .iter()
        .filter_map(|&function| facts.functions.get(function as usize))
        .map(|function| format!("`{}`", function.name))
        .collect();
    match names.len() {
        0 => String::new(),
        1..=3 => names.join(", "),
        more => format!("{} and {} more", names[..2].join(", "), more - 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reviewers::analyzer::smells::tests::find_smells;

    #[test]
    fn globals_that_a_function_changes() {
        for (path, code, expected) in [
            ("a.js", "let x = 0;\nexport function f() { x = 1; }\nexport function g() { return x; }\n", &["x"][..]),
            ("a.js", "let x = 0;\nconst y = 1;\nexport function f() { let x; x = 2; return y; }\n", &[]),
            ("a.ts", "let cache: string | undefined;\nexport function f(cache: string) { cache = ''; }\n", &[]),
            ("a.ts", "export let cache: string | undefined;\nexport function f() { cache = ''; }\n", &["cache"]),
            ("a.py", "x = None\ny = 0\ndef f():\n    global x\n    x = 1\ndef g():\n    y = 2\n    return y\n", &["x"]),
            ("a.py", "LIMIT = 10\ndef f():\n    return LIMIT\n", &[]),
            (
                "a.go",
                "package a\nvar x, y = 1, 2\nvar ErrA = errors.New(\"a\")\nfunc F() { x = 2 }\nfunc G() int { y := 3; return y }\n",
                &["x"],
            ),
            ("a.go", "package a\nvar x int\nfunc init() { x = 2 }\n", &[]),
            ("a.go", "package a\nvar x int\nvar mu sync.Mutex\nfunc F() { mu.Lock(); x = 2; mu.Unlock() }\n", &[]),
            (
                "A.java",
                "class A { static int n = 0; static final int M = 1; private static int k; int o; void f() { n++; o = 1; } }\n",
                &["n"],
            ),
            (
                "a.cs",
                "class A { private static int n; static readonly int M = 1; void F() { A.n = 1; } int G() { return -n; } }\n",
                &["n"],
            ),
            (
                "a.c",
                "static int n;\nconst int m = 1;\nint k = 2;\nextern int e;\nint f(int k) { n = 1; e = 2; k = 3; return m; }\n",
                &["n"],
            ),
            (
                "a.cpp",
                "namespace a { int n = 0; constexpr int m = 1; thread_local int t; }\nint f() { a::n = 1; t = 2; return 0; }\n",
                &["n"],
            ),
            (
                "a.rs",
                "static mut N: u32 = 0;\nstatic M: Mutex<u32> = Mutex::new(0);\nfn f() { unsafe { N += 1 } }\n",
                &["N"],
            ),
            ("a.rb", "$x = 1\n$stdout = nil\ndef f\n  $x = 2\nend\n", &["$x"]),
            (
                "a.php",
                "<?php\n$g = 1;\nfunction f() { global $g; $g = 2; }\nfunction h() { $g = 3; return $g; }\n",
                &["g"],
            ),
            ("a.sh", "n=0\nm=1\nf() { n=1; local m=2; echo $m; }\n", &["n"]),
            ("tests/a.js", "let x = 0;\nexport function f() { x = 1; }\n", &[]),
        ] {
            let smells = find_smells(Kind::GlobalVariables, path, code, check);
            let subjects: Vec<&str> = smells.iter().map(|smell| smell.subject.as_str()).collect();
            assert_eq!(subjects, expected, "{path}:\n{code}");
        }
    }

    #[test]
    fn more_functions_make_it_worse() {
        let code = |readers: usize| {
            let readers: String = (0..readers).map(|n| format!("export function r{n}() {{ return x; }}\n")).collect();
            format!("let x = 0;\nexport function f() {{ x = 1; }}\n{readers}")
        };
        for (readers, severity) in [(0, Severity::Low), (2, Severity::Medium), (5, Severity::High)] {
            let smells = find_smells(Kind::GlobalVariables, "a.js", &code(readers), check);
            assert_eq!((smells.len(), smells[0].severity, smells[0].figure), (1, severity, Some(readers as f64 + 1.0)));
        }
    }
}
