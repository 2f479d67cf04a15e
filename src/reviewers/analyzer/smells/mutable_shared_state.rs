//! MUTABLE_SHARED_STATE: reports module or static state that several functions change, and Python's default arguments
//! and class attributes that are one object for all calls and instances.
//!
//! State that all of its writers change under a lock is not reported. GLOBAL_VARIABLES reports state that one function
//! changes.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::global_variables::declarations::is_python_container;
use super::global_variables::module_variables::{ModuleVariable, ModuleVariableKind};
use super::global_variables::{reported_variables, writer_names};
use super::{CheckedFile, GrowthComparison, Smell, SmellBuilder, SmellDefinition, SmellGrade};
use crate::domain::{Confidence, Kind, LineRange, Priority, Severity, Suggestion, text};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::node_roles::{SmellNodeRole, SmellNodeRoles};
use crate::syntax::occurrences::{NameOccurrence, NameOccurrences};
use crate::syntax::source::{NodeIndex, ParsedFile};

/// MUTABLE_SHARED_STATE in the registry.
pub const SMELL: SmellDefinition =
    SmellDefinition { kind: Kind::MutableSharedState, check, growth: GrowthComparison::None };

/// Thresholds of MUTABLE_SHARED_STATE: the table `mutable_shared_state` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MutableSharedStateLimits {
    pub enabled: bool,
    pub min_writers: u32,
    pub high_writers: u32,
    pub mutable_defaults: bool,
}

/// Reports the mutable shared state of a file.
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, limits, .. } = *file;
    for state in reported_variables(file).iter().filter(|state| state.is_shared(limits)) {
        out.push(build_shared_state_smell(source, facts, limits, state));
    }
    if source.language == Language::Python {
        if limits.mutable_shared_state.mutable_defaults {
            check_default_arguments(source, facts, out);
        }
        check_class_attributes(source, facts, out);
    }
}

fn build_shared_state_smell(
    source: &ParsedFile<'_>,
    facts: &FileFacts,
    limits: &Limits,
    state: &ModuleVariable,
) -> Smell {
    let name = source.text(&source.nodes[state.name]);
    let writers = state.writers.len();
    let high = writers as u32 >= limits.mutable_shared_state.high_writers;
    let (what, scope) = match state.kind {
        ModuleVariableKind::ClassVariable => ("class variable", "shared by the class and all that inherit from it"),
        ModuleVariableKind::Static => ("static field", "shared by all objects"),
        ModuleVariableKind::StaticMut => ("`static mut`", "shared by all threads without a lock"),
        ModuleVariableKind::Module | ModuleVariableKind::Global => ("module state", "shared by all callers"),
    };
    let priority = if high || state.kind == ModuleVariableKind::StaticMut { Priority::P2 } else { Priority::P3 };
    let severity = if high { Severity::High } else { Severity::Medium };
    let builder = SmellBuilder {
        kind: Kind::MutableSharedState,
        grade: SmellGrade::new(priority, severity, Confidence::Medium),
        lines: source.node_lines(state.name),
        title: format!("{what} `{name}` is changed by {}", text::format_count(writers, "function")),
        explanation: format!(
            "{} change `{name}`, which is {scope}, and {}{} touch it (limit {}).",
            writer_names(facts, state),
            state.describe_uses(),
            if state.other_files == 0 { " of this file" } else { "" },
            limits.mutable_shared_state.min_writers
        ),
        subject: name.to_owned(),
    };
    builder.build().with_figure(writers as f64)
}

/// Reports default arguments such as `def f(x=[])`: one list for all calls.
fn check_default_arguments(source: &ParsedFile<'_>, facts: &FileFacts, out: &mut Vec<Smell>) {
    let roles = SmellNodeRoles::for_language(source.language);
    let (fields, kinds) = (roles.fields, &roles.kinds);
    for (index, node) in source.walk() {
        let typed = kinds.typed_default_parameter.is(node.kind);
        if !(typed || kinds.default_parameter.is(node.kind)) || node.is_error() {
            continue;
        }
        let (Some(name), Some(value)) =
            (source.child_by_field(index, fields.name), source.child_by_field(index, fields.value))
        else {
            continue;
        };
        let function = source.nodes[node.parent as usize].parent as usize;
        if !is_python_container(source, roles, value) || !kinds.function_definition.is(source.nodes[function].kind) {
            continue;
        }
        let (parameter, default) = (source.text(&source.nodes[name]), source.text(&source.nodes[value]));
        let of = source.child_by_field(function, fields.name).map_or("", |name| source.text(&source.nodes[name]));
        let (priority, severity) = match facts.is_test_at(index) {
            true => (Priority::P3, Severity::Low),
            false => (Priority::P2, Severity::Medium),
        };
        let builder = SmellBuilder {
            kind: Kind::MutableSharedState,
            grade: SmellGrade::new(priority, severity, Confidence::High),
            lines: source.node_lines(index),
            title: format!("default `{parameter}={default}` of `{of}` is one object for all calls"),
            explanation: format!(
                "The default of `{parameter}` is made once, when `{of}` is defined: what one call puts into it the next call finds."
            ),
            subject: format!("default {of} {parameter}"),
        };
        let suggestion = suggest_none_default(source, roles, function, value, typed, parameter, default);
        out.push(builder.build().with_suggestion(Some(suggestion)));
    }
}

/// Suggests `None` as the default and the creation of the object in the body. The suggestion has a replacement if the
/// function's head is one line and the parameter has no type.
fn suggest_none_default(
    source: &ParsedFile<'_>,
    roles: &SmellNodeRoles,
    function: NodeIndex,
    value: NodeIndex,
    typed: bool,
    parameter: &str,
    default: &str,
) -> Suggestion {
    let words = format!("Make `None` the default and `{default}` in the body when `{parameter}` is `None`.");
    let exact = || {
        let body = source.child_by_field(function, roles.fields.body)?;
        let (head, value) = (&source.nodes[function], &source.nodes[value]);
        let statement = source.children(body).find(|&child| source.nodes[child].is_named())?;
        // `async def` and decorators start elsewhere: only a plain head on one line is certain.
        let first = &source.nodes[statement];
        let line_start = memchr::memrchr(b'\n', &source.text[..head.start as usize]).map_or(0, |at| at + 1);
        let indent = source.text.get(line_start..head.start as usize)?;
        if typed || first.row != head.row + 1 || value.row != head.row || !indent.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let body_start = memchr::memrchr(b'\n', &source.text[..first.start as usize])? + 1;
        let inner = source.text.get(body_start..first.start as usize)?;
        let step = inner.get(indent.len()..).filter(|step| !step.is_empty())?;
        // A doc string must stay first.
        let is_doc = source.bytes(first).starts_with(b"\"") || source.bytes(first).starts_with(b"'");
        let last = if is_doc { first.end_row } else { head.row };
        let end = if is_doc { first.end as usize } else { body_start - 1 };
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
        let inner = text(inner)?;
        let replacement = format!(
            "{}None{}\n{inner}if {parameter} is None:\n{inner}{}{parameter} = {default}",
            text(source.text.get(line_start..value.start as usize)?)?,
            text(source.text.get(value.end as usize..end)?)?,
            text(step)?,
        );
        Some((replacement, LineRange::new(head.row + 1, last + 1)))
    };
    match exact() {
        Some((replacement, lines)) => Suggestion { text: words, replacement: Some(replacement), lines: Some(lines) },
        None => Suggestion { text: words, replacement: None, lines: None },
    }
}

/// A collection that a class body assigns to a name: one object for all instances.
#[derive(Debug, Clone, Copy)]
struct ClassAttribute {
    name: NodeIndex,
    class: NodeIndex,
}

/// Reports collections in a class body that methods change through `self` or `cls`.
fn check_class_attributes(source: &ParsedFile<'_>, facts: &FileFacts, out: &mut Vec<Smell>) {
    let roles = SmellNodeRoles::for_language(source.language);
    let attributes = collect_class_attributes(source, facts, roles);
    if attributes.is_empty() {
        return;
    }
    let mut names = NameOccurrences::default();
    for attribute in &attributes {
        names.request(source.bytes(&source.nodes[attribute.name]));
    }
    names.scan(source);
    let mut known: HashMap<(NodeIndex, &[u8]), usize> = HashMap::new();
    for attribute in attributes {
        // A class may assign a name many times.
        let key = (attribute.class, source.bytes(&source.nodes[attribute.name]));
        let find = || find_attribute_writers(source, facts, roles, &names, attribute).len();
        let writers = *known.entry(key).or_insert_with(find);
        if writers > 0 {
            out.push(build_class_attribute_smell(source, roles, attribute, writers));
        }
    }
}

fn collect_class_attributes(source: &ParsedFile<'_>, facts: &FileFacts, roles: &SmellNodeRoles) -> Vec<ClassAttribute> {
    let (fields, kinds) = (roles.fields, &roles.kinds);
    let mut attributes = Vec::new();
    for (index, node) in source.walk() {
        if roles.role(node.kind) != SmellNodeRole::Assignment || node.is_error() {
            continue;
        }
        let statement = source.nodes[node.parent as usize];
        let class = source.nodes[statement.parent as usize].parent as usize;
        let (Some(name), Some(value)) =
            (source.child_by_field(index, fields.left), source.child_by_field(index, fields.right))
        else {
            continue;
        };
        if kinds.class_definition.is(source.nodes[class].kind)
            && kinds.identifier.is(source.nodes[name].kind)
            && is_python_container(source, roles, value)
            && !facts.is_test_at(index)
        {
            attributes.push(ClassAttribute { name, class });
        }
    }
    attributes
}

/// Returns the functions of the class that change an attribute. The set is empty if a method assigns
/// the attribute to `self`: then each instance has its own object.
fn find_attribute_writers(
    source: &ParsedFile<'_>,
    facts: &FileFacts,
    roles: &SmellNodeRoles,
    names: &NameOccurrences,
    attribute: ClassAttribute,
) -> HashSet<u32> {
    let (fields, kinds) = (roles.fields, &roles.kinds);
    let bytes = source.bytes(&source.nodes[attribute.name]);
    let end = source.nodes[attribute.class].end_index as usize;
    let mut writers: HashSet<u32> = HashSet::new();
    for &place in names.occurrences_in(bytes, attribute.class, end).iter().take_while(|_| source.work().spend(1)) {
        let NameOccurrence::Name(node) = place else { continue };
        let member = source.nodes[node].parent as usize;
        let object = source.child_by_field(member, fields.object).map(|object| source.bytes(&source.nodes[object]));
        if !kinds.attribute.is(source.nodes[member].kind) || !matches!(object, Some(b"self" | b"cls")) {
            continue;
        }
        let parent = source.nodes[source.nodes[member].parent as usize];
        if roles.role(parent.kind) == SmellNodeRole::Assignment && source.nodes[member].field == fields.left {
            if object == Some(b"self") {
                return HashSet::new();
            }
        } else if is_changed(source, roles, member)
            && let Some(&function) = facts.innermost_function.get(node)
        {
            writers.insert(function);
        }
    }
    writers
}

fn build_class_attribute_smell(
    source: &ParsedFile<'_>,
    roles: &SmellNodeRoles,
    attribute: ClassAttribute,
    writers: usize,
) -> Smell {
    let name = source.text(&source.nodes[attribute.name]);
    let class = source.child_by_field(attribute.class, roles.fields.name);
    let class = class.map_or("", |name| source.text(&source.nodes[name]));
    let builder = SmellBuilder {
        kind: Kind::MutableSharedState,
        grade: SmellGrade::new(Priority::P2, Severity::Medium, Confidence::Medium),
        lines: source.node_lines(attribute.name),
        title: format!("class attribute `{class}.{name}` is changed through its objects"),
        explanation: format!(
            "`{name}` is one object for all of `{class}`, and {} of it change it through `self` or `cls`.",
            text::format_count(writers, "method")
        ),
        subject: format!("{class}.{name}"),
    };
    builder.build().with_figure(writers as f64)
}

/// Returns whether a member is changed: `self.x.append(…)`, `self.x[…] = …`, `self.x += …`, `del self.x[…]`.
fn is_changed(source: &ParsedFile<'_>, roles: &SmellNodeRoles, member: NodeIndex) -> bool {
    let fields = roles.fields;
    let this = &source.nodes[member];
    let parent_index = this.parent as usize;
    let parent = &source.nodes[parent_index];
    let outer = &source.nodes[parent.parent as usize];
    match roles.role(parent.kind) {
        SmellNodeRole::Update => this.field == fields.left,
        SmellNodeRole::Index => {
            this.start == parent.start
                && ((matches!(roles.role(outer.kind), SmellNodeRole::Assignment | SmellNodeRole::Update)
                    && parent.field == fields.left)
                    || source.bytes(outer).starts_with(b"del "))
        }
        SmellNodeRole::Member => {
            let method =
                source.child_by_field(parent_index, fields.attribute).map(|method| source.text(&source.nodes[method]));
            roles.role(outer.kind) == SmellNodeRole::Call
                && parent.field == fields.function
                && method.is_some_and(|method| {
                    matches!(
                        method,
                        "append"
                            | "extend"
                            | "insert"
                            | "update"
                            | "setdefault"
                            | "add"
                            | "remove"
                            | "pop"
                            | "clear"
                            | "discard"
                            | "popitem"
                            | "appendleft"
                    )
                })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{check_samples, find_smells};
    use super::*;
    use crate::reviewers::analyzer::smells::global_variables;

    const STATE: &str = r#"
//- a.js
let x = 0; //~ p3 module state `x` is changed by 2 functions
const m = new Map(); //~ p3 module state `m` is changed by 2 functions
const r = [];
export function f() { x = 1; m.set(1, 2); }
export function g() { x++; m.delete(1); return r; }
//- a.js
const m = new Map();
export function f() { m.set(1, 2); }
export function g() { return m.get(1); }
//- a.ts
const m: Record<string, string> = {}; //~ p3 module state `m` is changed by 2 functions
export function f() { m['a'] = ''; }
export const g = () => { delete m['a']; };
//- a.py
cache = {} //~ p3 module state `cache` is changed by 2 functions
n = 0 //~ p3 module state `n` is changed by 2 functions
def f(k):
    cache[k] = 1
def g():
    global n
    cache.clear()
    n += 1
def h():
    global n
    n = 0
def i(cache):
    cache[1] = 2
//- a.py
cache = {}
def f(k):
    with lock:
        cache[k] = 1
def g(k):
    with _lock:
        del cache[k]
//- a.go
package a
var m = map[string]int{} //~ p3 module state `m` is changed by 2 functions
var n int //~ p3 module state `n` is changed by 2 functions
func F() { m["a"] = 1; n++ }
func G() { delete(m, "a"); n = 0 }
//- a.go
package a
var m = map[string]int{}
var mu sync.Mutex
func F() { mu.Lock(); m["a"] = 1 }
func G() { mu.Lock(); delete(m, "a") }
//- A.java
class A { static int n; static final List<String> l = new ArrayList<>(); void f() { n++; l.add("a"); } void g() { A.n = 0; l.clear(); } synchronized void h() { } }
//~ p3 static field `n` is changed by 2 functions
//~ p3 static field `l` is changed by 2 functions
//- a.cs
class A { static int n; static readonly List<int> l = new(); void F() { n++; l.Add(1); } void G() { n = 0; l.Clear(); } }
//~ p3 static field `n` is changed by 2 functions
//~ p3 static field `l` is changed by 2 functions
//- a.c
static int n; //~ p3 module state `n` is changed by 2 functions
static struct s st; //~ p3 module state `st` is changed by 2 functions
void f(void) { n = 1; st.a = 1; }
void g(void) { n++; st.a = 2; }
//- a.rs
static mut N: u32 = 0; //~ p2 `static mut` `N` is changed by 2 functions
fn f() { unsafe { N += 1 } }
fn g() { unsafe { N = 0 } }
//- a.rb
class A
  @@x = 1 //~ p3 class variable `@@x` is changed by 1 function
  def f
    @@x += 1
  end
  def g
    @@y
  end
end
//- a.php
<?php
class A { private static $n = 0; function f() { self::$n++; } function g() { self::$n = 0; $n = 1; } }
//~ p3 static field `n` is changed by 2 functions
//- a.sh
n=0 //~ p3 module state `n` is changed by 2 functions
f() { n=1; }
g() { n=2; }
"#;

    #[test]
    fn state_that_several_functions_change() {
        for smell in check_samples(&SMELL, STATE) {
            assert!(smell.title.contains(&format!("`{}` is changed by", smell.subject)), "{smell:?}");
        }
    }

    #[test]
    fn state_is_not_reported_as_a_global_variable_too() {
        // The samples without their marks, and so without any global variable.
        let unmarked = |line: &str| line.split("//~ ").next().unwrap_or_default().to_owned() + "\n";
        check_samples(&global_variables::SMELL, &STATE.lines().map(unmarked).collect::<String>());
    }

    #[test]
    fn default_arguments_are_made_once() {
        let found = check_samples(
            &SMELL,
            r#"
//- a.py
def f(a, x=[], y={}, z=None, w=()):
//~ p2 default `x=[]` of `f` is one object for all calls
//~ p2 default `y={}` of `f` is one object for all calls
    return x
//- a.py
def f(x: list = list(), *, y=set()): return x
//~ p2 default `x=list()` of `f` is one object for all calls
//~ p2 default `y=set()` of `f` is one object for all calls
//- a.py
f = lambda x=[]: x
"#,
        );
        let subjects: Vec<&str> = found.iter().map(|smell| smell.subject.as_str()).collect();
        assert_eq!(subjects, ["default f x", "default f y", "default f x", "default f y"]);
    }

    #[test]
    fn the_suggestion_for_a_default_is_code() {
        for (code, expected, lines) in [
            (
                "class A:\n    def f(self, x=[]):\n        return x\n",
                Some("    def f(self, x=None):\n        if x is None:\n            x = []"),
                Some(LineRange::new(2, 2)),
            ),
            (
                "def f(x={}, y=1):\n  \"\"\"A.\n  B.\"\"\"\n  return x\n",
                Some("def f(x=None, y=1):\n  \"\"\"A.\n  B.\"\"\"\n  if x is None:\n    x = {}"),
                Some(LineRange::new(1, 3)),
            ),
            ("def f(x: list = []):\n    return x\n", None, None),
            ("def f(x=[]): return x\n", None, None),
            ("def f(\n    x=[],\n):\n    return x\n", None, None),
        ] {
            let smells = find_smells(&SMELL, "a.py", code);
            let suggestion = smells[0].suggestion.as_ref().expect("a suggestion");
            assert_eq!((suggestion.replacement.as_deref(), suggestion.lines), (expected, lines), "{code}");
        }
    }

    #[test]
    fn attributes_of_a_class_are_one_for_all_objects() {
        check_samples(
            &SMELL,
            r#"
//- a.py
class A:
    x = [] //~ p2 class attribute `A.x` is changed through its objects
    def f(self):
        self.x.append(1)
//- a.py
class A:
    x = {} //~ p2 class attribute `A.x` is changed through its objects
    @classmethod
    def f(cls):
        cls.x['a'] = 1
//- a.py
class A:
    x = []
    def __init__(self):
        self.x = []
    def f(self):
        self.x.append(1)
//- a.py
class A:
    x = ['a']
    def f(self):
        return self.x[0]
//- a.py
class A:
    x = 1
    def f(self):
        self.x += 1
"#,
        );
    }
}
