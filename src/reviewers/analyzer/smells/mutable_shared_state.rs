//! MUTABLE_SHARED_STATE: reports module or static state that several functions change, and Python's default arguments
//! and class attributes that are one object for all calls and instances.
//!
//! State that all of its writers change under a lock is not reported. GLOBAL_VARIABLES reports state that one function
//! changes.

use super::Smell;
use super::global_variables::declarations::is_python_container;
use super::global_variables::module_variables::{self, ModuleVariable, ModuleVariableKind};
use super::global_variables::writer_names;
use crate::domain::{Confidence, Kind, LineRange, Priority, Severity, Suggestion, text};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::node_roles::{SmellNodeRole, SmellNodeRoles};
use crate::syntax::occurrences::{NameOccurrence, NameOccurrences};
use crate::syntax::source::{NodeIndex, ParsedFile};

/// Reports the mutable shared state of a file.
pub fn check(source: &ParsedFile<'_>, facts: &FileFacts, limits: &Limits, out: &mut Vec<Smell>) {
    for state in module_variables::collect(source, facts).iter().filter(|state| state.is_shared(limits)) {
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
    let node = &source.nodes[state.name];
    let name = source.text(node);
    let writers = state.writers.len();
    let high = writers as u32 >= limits.mutable_shared_state.high_writers;
    let (what, scope) = match state.kind {
        ModuleVariableKind::ClassVariable => ("class variable", "shared by the class and all that inherit from it"),
        ModuleVariableKind::Static => ("static field", "shared by all objects"),
        ModuleVariableKind::StaticMut => ("`static mut`", "shared by all threads without a lock"),
        ModuleVariableKind::Module | ModuleVariableKind::Global => ("module state", "shared by all callers"),
    };
    Smell {
        kind: Kind::MutableSharedState,
        priority: if high || state.kind == ModuleVariableKind::StaticMut { Priority::P2 } else { Priority::P3 },
        severity: if high { Severity::High } else { Severity::Medium },
        confidence: Confidence::Medium,
        line_start: node.row + 1,
        line_end: node.end_row + 1,
        title: format!("{what} `{name}` is changed by {}", text::format_count(writers, "function")),
        explanation: format!(
            "{} change `{name}`, which is {scope}, and {} of this file touch it (limit {}).",
            writer_names(facts, state),
            text::format_count(state.touched_by.len(), "function"),
            limits.mutable_shared_state.min_writers
        ),
        subject: name.to_owned(),
        anchor: (node.row + 1, node.row + 1),
        figure: Some(writers as f64),
        quote: None,
        pattern: None,
        suggestion: None,
    }
}

/// Reports default arguments such as `def f(x=[])`: one list for all calls.
fn check_default_arguments(source: &ParsedFile<'_>, facts: &FileFacts, out: &mut Vec<Smell>) {
    let roles = SmellNodeRoles::for_language(source.language);
    let (fields, kinds) = (roles.fields, &roles.kinds);
    for (index, node) in source.nodes.iter().enumerate() {
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
        let is_test = facts.is_test_at(index);
        out.push(Smell {
            kind: Kind::MutableSharedState,
            priority: if is_test { Priority::P3 } else { Priority::P2 },
            severity: if is_test { Severity::Low } else { Severity::Medium },
            confidence: Confidence::High,
            line_start: node.row + 1,
            line_end: node.end_row + 1,
            title: format!("default `{parameter}={default}` of `{of}` is one object for all calls"),
            explanation: format!(
                "The default of `{parameter}` is made once, when `{of}` is defined: what one call puts into it the next call finds."
            ),
            subject: format!("default {of} {parameter}"),
            anchor: (node.row + 1, node.row + 1),
            figure: None,
            quote: None,
            pattern: None,
            suggestion: Some(suggest_none_default(source, roles, function, value, typed, parameter, default)),
        });
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

/// Reports collections in a class body that methods change through `self` or `cls`: one object for all instances.
fn check_class_attributes(source: &ParsedFile<'_>, facts: &FileFacts, out: &mut Vec<Smell>) {
    let roles = SmellNodeRoles::for_language(source.language);
    let (fields, kinds) = (roles.fields, &roles.kinds);
    let mut attributes: Vec<(NodeIndex, NodeIndex)> = Vec::new();
    let mut names = NameOccurrences::default();
    for (index, node) in source.nodes.iter().enumerate() {
        if roles.role(node.kind) != SmellNodeRole::Assignment || node.is_error() {
            continue;
        }
        let statement = source.nodes[node.parent as usize];
        let class = source.nodes[statement.parent as usize].parent as usize;
        let (Some(left), Some(right)) =
            (source.child_by_field(index, fields.left), source.child_by_field(index, fields.right))
        else {
            continue;
        };
        if kinds.class_definition.is(source.nodes[class].kind)
            && kinds.identifier.is(source.nodes[left].kind)
            && is_python_container(source, roles, right)
            && !facts.is_test_at(index)
        {
            names.request(source.bytes(&source.nodes[left]));
            attributes.push((left, class));
        }
    }
    if attributes.is_empty() {
        return;
    }
    names.scan(source);
    for (name, class) in attributes {
        let bytes = source.bytes(&source.nodes[name]);
        let end = source.nodes[class].end_index as usize;
        let mut changed: Vec<u32> = Vec::new();
        let mut own = false;
        for &place in names.occurrences_in(bytes, class, end) {
            let NameOccurrence::Name(node) = place else { continue };
            let member = source.nodes[node].parent as usize;
            let object = source.child_by_field(member, fields.object).map(|object| source.bytes(&source.nodes[object]));
            if !kinds.attribute.is(source.nodes[member].kind) || !matches!(object, Some(b"self" | b"cls")) {
                continue;
            }
            let parent = source.nodes[source.nodes[member].parent as usize];
            if roles.role(parent.kind) == SmellNodeRole::Assignment && source.nodes[member].field == fields.left {
                // Each instance has its own object.
                own |= object == Some(b"self");
            } else if is_changed(source, roles, member)
                && let Some(&function) = facts.innermost_function.get(node)
                && !changed.contains(&function)
            {
                changed.push(function);
            }
        }
        if own || changed.is_empty() {
            continue;
        }
        let node = &source.nodes[name];
        let (attribute, class) = (
            source.text(node),
            source.child_by_field(class, fields.name).map_or("", |name| source.text(&source.nodes[name])),
        );
        out.push(Smell {
            kind: Kind::MutableSharedState,
            priority: Priority::P2,
            severity: Severity::Medium,
            confidence: Confidence::Medium,
            line_start: node.row + 1,
            line_end: node.end_row + 1,
            title: format!("class attribute `{class}.{attribute}` is changed through its objects"),
            explanation: format!(
                "`{attribute}` is one object for all of `{class}`, and {} of it change it through `self` or `cls`.",
                text::format_count(changed.len(), "method")
            ),
            subject: format!("{class}.{attribute}"),
            anchor: (node.row + 1, node.row + 1),
            figure: Some(changed.len() as f64),
            quote: None,
            pattern: None,
            suggestion: None,
        });
    }
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
    use super::*;
    use crate::reviewers::analyzer::smells::global_variables;
    use crate::reviewers::analyzer::smells::tests::find_smells;

    #[test]
    fn state_that_several_functions_change() {
        for (path, code, expected) in [
            (
                "a.js",
                "let x = 0;\nconst m = new Map();\nconst r = [];\nexport function f() { x = 1; m.set(1, 2); }\nexport function g() { x++; m.delete(1); return r; }\n",
                &["x", "m"][..],
            ),
            (
                "a.js",
                "const m = new Map();\nexport function f() { m.set(1, 2); }\nexport function g() { return m.get(1); }\n",
                &[],
            ),
            (
                "a.ts",
                "const m: Record<string, string> = {};\nexport function f() { m['a'] = ''; }\nexport const g = () => { delete m['a']; };\n",
                &["m"],
            ),
            (
                "a.py",
                "cache = {}\nn = 0\ndef f(k):\n    cache[k] = 1\ndef g():\n    global n\n    cache.clear()\n    n += 1\ndef h():\n    global n\n    n = 0\ndef i(cache):\n    cache[1] = 2\n",
                &["cache", "n"],
            ),
            (
                "a.py",
                "cache = {}\ndef f(k):\n    with lock:\n        cache[k] = 1\ndef g(k):\n    with _lock:\n        del cache[k]\n",
                &[],
            ),
            (
                "a.go",
                "package a\nvar m = map[string]int{}\nvar n int\nfunc F() { m[\"a\"] = 1; n++ }\nfunc G() { delete(m, \"a\"); n = 0 }\n",
                &["m", "n"],
            ),
            (
                "a.go",
                "package a\nvar m = map[string]int{}\nvar mu sync.Mutex\nfunc F() { mu.Lock(); m[\"a\"] = 1 }\nfunc G() { mu.Lock(); delete(m, \"a\") }\n",
                &[],
            ),
            (
                "A.java",
                "class A { static int n; static final List<String> l = new ArrayList<>(); void f() { n++; l.add(\"a\"); } void g() { A.n = 0; l.clear(); } synchronized void h() { } }\n",
                &["n", "l"],
            ),
            (
                "a.cs",
                "class A { static int n; static readonly List<int> l = new(); void F() { n++; l.Add(1); } void G() { n = 0; l.Clear(); } }\n",
                &["n", "l"],
            ),
            (
                "a.c",
                "static int n;\nstatic struct s st;\nvoid f(void) { n = 1; st.a = 1; }\nvoid g(void) { n++; st.a = 2; }\n",
                &["n", "st"],
            ),
            ("a.rs", "static mut N: u32 = 0;\nfn f() { unsafe { N += 1 } }\nfn g() { unsafe { N = 0 } }\n", &["N"]),
            ("a.rb", "class A\n  @@x = 1\n  def f\n    @@x += 1\n  end\n  def g\n    @@y\n  end\nend\n", &["@@x"]),
            (
                "a.php",
                "<?php\nclass A { private static $n = 0; function f() { self::$n++; } function g() { self::$n = 0; $n = 1; } }\n",
                &["n"],
            ),
            ("a.sh", "n=0\nf() { n=1; }\ng() { n=2; }\n", &["n"]),
        ] {
            let smells = find_smells(Kind::MutableSharedState, path, code, check);
            let subjects: Vec<&str> = smells.iter().map(|smell| smell.subject.as_str()).collect();
            assert_eq!(subjects, expected, "{path}:\n{code}");
            let globals = find_smells(Kind::GlobalVariables, path, code, global_variables::check);
            assert!(globals.iter().all(|global| !expected.contains(&global.subject.as_str())), "both: {path}:\n{code}");
        }
    }

    #[test]
    fn default_arguments_are_made_once() {
        for (code, expected) in [
            ("def f(a, x=[], y={}, z=None, w=()):\n    return x\n", &["default f x", "default f y"][..]),
            ("def f(x: list = list(), *, y=set()): return x\n", &["default f x", "default f y"]),
            ("f = lambda x=[]: x\n", &[]),
        ] {
            let smells = find_smells(Kind::MutableSharedState, "a.py", code, check);
            let subjects: Vec<&str> = smells.iter().map(|smell| smell.subject.as_str()).collect();
            assert_eq!(subjects, expected, "{code}");
        }
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
            let smells = find_smells(Kind::MutableSharedState, "a.py", code, check);
            let suggestion = smells[0].suggestion.as_ref().expect("a suggestion");
            assert_eq!((suggestion.replacement.as_deref(), suggestion.lines), (expected, lines), "{code}");
        }
    }

    #[test]
    fn attributes_of_a_class_are_one_for_all_objects() {
        for (code, expected) in [
            ("class A:\n    x = []\n    def f(self):\n        self.x.append(1)\n", 1),
            ("class A:\n    x = {}\n    @classmethod\n    def f(cls):\n        cls.x['a'] = 1\n", 1),
            (
                "class A:\n    x = []\n    def __init__(self):\n        self.x = []\n    def f(self):\n        self.x.append(1)\n",
                0,
            ),
            ("class A:\n    x = ['a']\n    def f(self):\n        return self.x[0]\n", 0),
            ("class A:\n    x = 1\n    def f(self):\n        self.x += 1\n", 0),
        ] {
            assert_eq!(find_smells(Kind::MutableSharedState, "a.py", code, check).len(), expected, "{code}");
        }
    }
}
