//! GLOBAL_VARIABLES: reports variables outside of functions to which a function assigns new values. The severity
//! depends on the number of functions that use the variable, in its file and in other files of the repository.
//!
//! - Constants and variables that are never assigned again are not reported.
//! - A variable that several functions change is worse: MUTABLE_SHARED_STATE reports it. No variable is reported by
//!   both.

pub(super) mod declarations;
pub(super) mod module_variables;
mod other_uses;

use serde::Deserialize;

use self::module_variables::{ModuleVariable, ModuleVariableKind};
use super::{CheckedFile, GrowthComparison, Smell, SmellBuilder, SmellDefinition, SmellGrade};
use crate::domain::{Confidence, Kind, Priority, Severity};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::FileFacts;
use crate::syntax::source::ParsedFile;

/// GLOBAL_VARIABLES in the registry.
pub const SMELL: SmellDefinition =
    SmellDefinition { kind: Kind::GlobalVariables, check, growth: GrowthComparison::None };

/// Thresholds of GLOBAL_VARIABLES: the table `global_variables` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GlobalVariablesLimits {
    pub enabled: bool,
    pub min_functions: u32,
    pub medium_functions: u32,
    pub high_functions: u32,
}

/// Reports the global variables of a file.
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, limits, .. } = *file;
    for state in reported_variables(file).iter().filter(|state| state.is_global(limits)) {
        out.push(build_smell(source, facts, limits, state));
    }
}

/// Returns the module variables that this smell or MUTABLE_SHARED_STATE reports, with their uses in other files.
pub(super) fn reported_variables<'f>(file: &CheckedFile<'f, '_>) -> &'f [ModuleVariable] {
    let limits = file.limits;
    file.module_variables.get_or_init(|| {
        let mut found = module_variables::collect(file);
        found.retain(|state| {
            (limits.global_variables.enabled && state.is_global(limits))
                || (limits.mutable_shared_state.enabled && state.is_shared(limits))
        });
        other_uses::add_other_uses(file, &mut found);
        found
    })
}

fn build_smell(source: &ParsedFile<'_>, facts: &FileFacts, limits: &Limits, state: &ModuleVariable) -> Smell {
    let name = source.text(&source.nodes[state.name]);
    let limit = &limits.global_variables;
    let touched = state.count_functions();
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
    let confidence = match state.kind {
        ModuleVariableKind::StaticMut => Confidence::High,
        _ => Confidence::Medium,
    };
    let builder = SmellBuilder {
        kind: Kind::GlobalVariables,
        grade: SmellGrade::new(priority, severity, confidence),
        lines: source.node_lines(state.name),
        title: format!("{what} `{name}`, touched by {}", state.describe_uses()),
        explanation: format!(
            "{}{} {} `{name}`{changes}: {why}.",
            state.describe_uses(),
            if state.other_files == 0 { " of this file" } else { "" },
            if touched == 1 { "touches" } else { "touch" }
        ),
        subject: name.to_owned(),
    };
    builder.build().with_figure(f64::from(touched))
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
    use super::super::test_support::check_samples;
    use super::*;

    #[test]
    fn globals_of_scripts_that_a_function_changes() {
        let found = check_samples(
            &SMELL,
            r#"
//- a.js
let x = 0; //~ p3 mutable global `x`, touched by 2 functions
export function f() { x = 1; }
export function g() { return x; }
//- a.js
let x = 0;
const y = 1;
export function f() { let x; x = 2; return y; }
//- a.ts
let cache: string | undefined;
export function f(cache: string) { cache = ''; }
//- a.ts
export let cache: string | undefined; //~ p3 mutable global `cache`, touched by 1 function
export function f() { cache = ''; }
//- a.py
x = None //~ p3 mutable global `x`, touched by 1 function
y = 0
def f():
    global x
    x = 1
def g():
    y = 2
    return y
//- a.py
LIMIT = 10
def f():
    return LIMIT
//- a.rb
$x = 1 //~ p3 global variable `$x`, touched by 1 function
$stdout = nil
def f
  $x = 2
end
//- a.php
<?php
$g = 1;
function f() { global $g; $g = 2; } //~ p3 global variable `g`, touched by 1 function
function h() { $g = 3; return $g; }
//- a.sh
n=0 //~ p3 mutable global `n`, touched by 1 function
m=1
f() { n=1; local m=2; echo $m; }
//- tests/a.js
let x = 0;
export function f() { x = 1; }
"#,
        );
        for smell in found {
            assert!(smell.title.contains(&format!("`{}`, touched by", smell.subject)), "{smell:?}");
        }
    }

    #[test]
    fn globals_that_a_function_changes() {
        let found = check_samples(
            &SMELL,
            r#"
//- a.go
package a
var x, y = 1, 2 //~ p3 mutable global `x`, touched by 1 function
var ErrA = errors.New("a")
func F() { x = 2 }
func G() int { y := 3; return y }
//- a.go
package a
var x int
func init() { x = 2 }
//- a.go
package a
var x int
var mu sync.Mutex
func F() { mu.Lock(); x = 2; mu.Unlock() }
//- A.java
class A { static int n = 0; static final int M = 1; private static int k; int o; void f() { n++; o = 1; } }
//~ p3 static field `n`, touched by 1 function
//- a.cs
class A { private static int n; static readonly int M = 1; void F() { A.n = 1; } int G() { return -n; } }
//~ p3 static field `n`, touched by 2 functions
//- a.c
static int n; //~ p3 mutable global `n`, touched by 1 function
const int m = 1;
int k = 2;
extern int e;
int f(int k) { n = 1; e = 2; k = 3; return m; }
//- a.cpp
namespace a { int n = 0; constexpr int m = 1; thread_local int t; }
//~ p3 mutable global `n`, touched by 1 function
int f() { a::n = 1; t = 2; return 0; }
//- a.rs
static mut N: u32 = 0; //~ p3 `static mut` `N`, touched by 1 function
static M: Mutex<u32> = Mutex::new(0);
fn f() { unsafe { N += 1 } }
"#,
        );
        for smell in found {
            assert!(smell.title.contains(&format!("`{}`, touched by", smell.subject)), "{smell:?}");
        }
    }

    #[test]
    fn more_functions_make_it_worse() {
        let found = check_samples(
            &SMELL,
            r#"
//- a.js
let x = 0; //~ p3 mutable global `x`, touched by 1 function
export function f() { x = 1; }
//- a.js
let x = 0; //~ p2 mutable global `x`, touched by 3 functions
export function f() { x = 1; }
export function r0() { return x; }
export function r1() { return x; }
//- a.js
let x = 0; //~ p2 mutable global `x`, touched by 6 functions
export function f() { x = 1; }
export function r0() { return x; }
export function r1() { return x; }
export function r2() { return x; }
export function r3() { return x; }
export function r4() { return x; }
"#,
        );
        let grades: Vec<_> = found.iter().map(|smell| (smell.severity, smell.figure)).collect();
        assert_eq!(grades, [(Severity::Low, Some(1.0)), (Severity::Medium, Some(3.0)), (Severity::High, Some(6.0))]);
    }
}
