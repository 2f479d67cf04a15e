//! Module and static state of a file: what is declared outside of functions, and which functions read and change it.
//!
//! GLOBAL_VARIABLES and MUTABLE_SHARED_STATE report from this list; [`State::is_shared`] decides which of the two does.

use crate::provider::builtin::facts::Facts;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::limits::Limits;
use crate::provider::builtin::smells::dead_code::names::{self, Names, Place};
use crate::provider::builtin::smells::dead_code::roles::{Role, Roles};
use crate::provider::builtin::source::{NodeIndex, Source};

/// What sort of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A variable of a module, package, file or script.
    Module,
    /// A static field of a class.
    Static,
    /// Rust's `static mut`: each use is unsafe.
    StaticMut,
    /// Ruby's `$x`, PHP's `global $x`.
    Global,
    /// Ruby's `@@x`: one value for a class and all that inherit from it.
    ClassVariable,
}

/// A variable that outlives calls, with the functions that touch it.
#[derive(Debug, Clone)]
pub struct State {
    pub sort: Sort,
    /// The node with its name where it is declared, or where it stands first.
    pub name: NodeIndex,
    /// Can be given another value; otherwise only its content can change.
    rebindable: bool,
    /// Holds a collection.
    container: bool,
    /// Numbers of functions, each once.
    pub writers: Vec<u32>,
    /// Functions that mention it, writers included.
    pub touched_by: Vec<u32>,
    /// It is given a new value, not only another content.
    pub rebound: bool,
    /// Every function that changes it takes a lock or the like.
    guarded: bool,
}

impl State {
    /// Whether MUTABLE_SHARED_STATE reports it, and not GLOBAL_VARIABLES: several functions change it.
    pub fn is_shared(&self, limits: &Limits) -> bool {
        let enough = self.writers.len() as u32 >= limits.mutable_shared_state.min_writers;
        !self.guarded && (enough || (self.sort == Sort::ClassVariable && !self.writers.is_empty()))
    }

    /// Whether GLOBAL_VARIABLES reports it: it is given new values, by one function only.
    pub fn is_global(&self, limits: &Limits) -> bool {
        !self.guarded
            && !self.is_shared(limits)
            && (self.rebound || self.sort == Sort::StaticMut)
            && (!self.writers.is_empty() || self.sort == Sort::StaticMut)
            && self.touched_by.len() as u32
                >= limits.global_variables.min_functions.min(match self.sort {
                    Sort::StaticMut => 0,
                    _ => u32::MAX,
                })
    }
}

/// Methods that change the content of what they are called on.
const MUTATORS: &[&str] = &[
    "append",
    "extend",
    "insert",
    "update",
    "setdefault",
    "add",
    "discard",
    "remove",
    "pop",
    "popitem",
    "clear",
    "push",
    "unshift",
    "shift",
    "splice",
    "set",
    "delete",
    "put",
    "putAll",
    "addAll",
    "removeAll",
    "putIfAbsent",
    "offer",
    "poll",
    "computeIfAbsent",
    "push_back",
    "emplace",
    "emplace_back",
    "erase",
    "pop_back",
    "Add",
    "AddRange",
    "Remove",
    "Clear",
    "Insert",
    "Push",
    "Enqueue",
    "Dequeue",
    "store",
    "concat!",
    "merge!",
    "delete_if",
    "appendleft",
    "popleft",
];

/// Words in a function that say that it takes care of other threads.
const GUARDS: &[&str] = &[
    "Lock(",
    ".lock(",
    "synchronized",
    "_lock",
    "lock:",
    "mutex",
    "Mutex",
    "atomic",
    "Atomic",
    "Once",
    "call_once",
    "Interlocked",
    "lock (",
    "lock_guard",
    "Semaphore",
    "synchronize",
];

struct Collector<'a, 's> {
    source: &'a Source<'s>,
    facts: &'a Facts,
    roles: &'static Roles,
    names: Names,
    found: Vec<State>,
    has_errors: bool,
}

/// The state of a file. Test code is left out: its variables hold what one test needs.
pub fn collect(source: &Source<'_>, facts: &Facts) -> Vec<State> {
    if facts.is_test_file {
        return Vec::new();
    }
    let has_errors = source.nodes.iter().any(|node| node.is_error());
    let roles = Roles::of(source.language);
    let mut collector = Collector { source, facts, roles, names: Names::default(), found: Vec::new(), has_errors };
    collector.declarations();
    if collector.found.is_empty() {
        return Vec::new();
    }
    collector.names.fill(source);
    let mut found = std::mem::take(&mut collector.found);
    for state in &mut found {
        collector.uses(state);
    }
    found.retain(|state| !facts.is_test_at(state.name));
    found
}

impl Collector<'_, '_> {
    fn declarations(&mut self) {
        let source = self.source;
        for (index, node) in source.nodes.iter().enumerate() {
            let role = self.roles.role(node.kind);
            if node.is_error() {
                continue;
            }
            match source.language {
                Language::Ruby => self.ruby(index),
                Language::Php => self.php(index),
                _ => {}
            }
            let interesting = matches!(role, Role::Declarator | Role::Assignment);
            if !interesting || self.function_of(index).is_some() {
                continue;
            }
            match (source.language, role) {
                (Language::Rust, Role::Declarator) => self.rust(index),
                (Language::Python, Role::Assignment) => self.python(index),
                (Language::JavaScript | Language::TypeScript | Language::Tsx, Role::Declarator) => self.script(index),
                (Language::Go, Role::Declarator) => self.go(index),
                (Language::Java | Language::CSharp, Role::Declarator) => self.field(index),
                (Language::C | Language::Cpp, Role::Declarator) => self.c(index),
                (Language::Bash, Role::Assignment) => self.bash(index),
                _ => {}
            }
        }
    }

    fn function_of(&self, index: NodeIndex) -> Option<u32> {
        self.facts.function_of.get(index).copied().filter(|&function| function != Facts::NONE)
    }

    /// The outermost function around a node.
    fn outermost(&self, index: NodeIndex) -> Option<u32> {
        let mut function = self.function_of(index)?;
        while let Some(outer) = self.facts.functions.get(function as usize).and_then(|function| function.outer) {
            function = outer as u32;
        }
        Some(function)
    }

    fn add(&mut self, sort: Sort, name: NodeIndex, rebindable: bool, container: bool) {
        let bytes = self.source.bytes(&self.source.nodes[name]);
        if bytes.is_empty() || bytes == b"_" || bytes.starts_with(b"__") {
            return;
        }
        let known = self.found.iter().any(|state| self.source.bytes(&self.source.nodes[state.name]) == bytes);
        if known {
            return;
        }
        self.names.want(bytes);
        self.found.push(State {
            sort,
            name,
            rebindable,
            container,
            writers: Vec::new(),
            touched_by: Vec::new(),
            rebound: false,
            guarded: false,
        });
    }

    fn rust(&mut self, index: NodeIndex) {
        let (source, kinds) = (self.source, &self.roles.kinds);
        let is_mut = source.children(index).any(|child| kinds.mutable_specifier.is(source.nodes[child].kind));
        if kinds.static_item.is(source.nodes[index].kind)
            && is_mut
            && let Some(name) = source.child_in(index, self.roles.fields.name)
        {
            self.add(Sort::StaticMut, name, true, false);
        }
    }

    fn python(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let Some(left) = source.child_in(index, fields.left) else { return };
        if !kinds.identifier.is(source.nodes[left].kind) || self.is_inside_class(index) {
            return;
        }
        let value = source.child_in(index, fields.right);
        let container = value.is_some_and(|value| is_python_container(source, self.roles, value));
        self.add(Sort::Module, left, true, container);
    }

    fn is_inside_class(&self, index: NodeIndex) -> bool {
        let mut at = index;
        loop {
            let parent = self.source.nodes[at].parent as usize;
            if parent == at || parent == 0 {
                return false;
            }
            if self.roles.role(self.source.nodes[parent].kind) == Role::Class {
                return true;
            }
            at = parent;
        }
    }

    fn script(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let declaration = source.nodes[index].parent as usize;
        let Some(name) = source.child_in(index, fields.name) else { return };
        let around = &source.nodes[source.nodes[declaration].parent as usize];
        let at_top = source.nodes[declaration].parent == 0 || kinds.export_statement.is(around.kind);
        if !kinds.identifier.is(source.nodes[name].kind) || !at_top || source.path.ends_with(".d.ts") {
            return;
        }
        let is_const = source.bytes(&source.nodes[declaration]).starts_with(b"const");
        let value = source.child_in(index, fields.value).map_or(&b""[..], |value| source.bytes(&source.nodes[value]));
        let container = value.starts_with(b"[")
            || value.starts_with(b"{")
            || value.starts_with(b"new Map")
            || value.starts_with(b"new Set")
            || value.starts_with(b"Object.create(");
        self.add(Sort::Module, name, !is_const, container);
    }

    fn go(&mut self, index: NodeIndex) {
        let (source, fields) = (self.source, self.roles.fields);
        let names = source.children(index).filter(|&child| source.nodes[child].field == fields.name);
        for name in names.collect::<Vec<_>>() {
            self.add(Sort::Module, name, true, true);
        }
    }

    /// A static field of Java or C#.
    fn field(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let mut declaration = source.nodes[index].parent as usize;
        if kinds.variable_declaration.is(source.nodes[declaration].kind) {
            declaration = source.nodes[declaration].parent as usize;
        }
        let Some(name) = source.child_in(index, fields.name) else { return };
        if !kinds.field_declaration.is(source.nodes[declaration].kind) {
            return;
        }
        let head = &source.text[source.nodes[declaration].start as usize..source.nodes[name].start as usize];
        let fixed = ["final", "readonly", "const"].iter().any(|word| names::has_word(head, word));
        let own_thread =
            ["volatile", "ThreadLocal", "ThreadStatic", "AsyncLocal"].iter().any(|w| names::has_word(head, w));
        if !names::has_word(head, "static") || own_thread {
            return;
        }
        let has = |part: &str| memchr::memmem::find(head, part.as_bytes()).is_some();
        let container =
            ["List", "Map", "Set", "Dictionary", "Queue", "Deque", "Stack", "Collection"].iter().any(|t| has(t))
                && !["Concurrent", "Immutable", "ReadOnly", "Synchronized"].iter().any(|t| has(t));
        self.add(Sort::Static, name, !fixed, container);
    }

    fn c(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let node = &source.nodes[index];
        if !kinds.declaration.is(node.kind) {
            return;
        }
        // Half a file of C++ leaves members and macros that look like variables.
        let torn = source.language == Language::Cpp && self.has_errors && !source.bytes(node).starts_with(b"static");
        if torn {
            return;
        }
        // At file scope, in a namespace, in `extern "C"` or in `#if`.
        let mut at = index;
        while at != 0 {
            at = source.nodes[at].parent as usize;
            let role = self.roles.role(source.nodes[at].kind);
            let bytes = source.bytes(&source.nodes[at]);
            if role == Role::Function
                || role == Role::Block
                || (role == Role::Class && !bytes.starts_with(b"namespace"))
            {
                return;
            }
        }
        let text = source.bytes(node);
        let end = memchr::memchr3(b'=', b'{', b'(', text).unwrap_or(text.len());
        let head = &text[..end];
        let fixed = [
            "extern",
            "const",
            "constexpr",
            "constinit",
            "typedef",
            "thread_local",
            "_Thread_local",
            "__thread",
            "atomic",
        ];
        let pointer = head.contains(&b'*');
        if fixed.iter().any(|word| names::has_word(head, word) && !(*word == "const" && pointer))
            || memchr::memmem::find(head, b"atomic").is_some()
            || memchr::memmem::find(head, b"mutex").is_some()
        {
            return;
        }
        for declarator in
            source.children(index).filter(|&child| source.nodes[child].field == fields.declarator).collect::<Vec<_>>()
        {
            let mut inner = declarator;
            for _ in 0..6 {
                if kinds.function_declarator.is(source.nodes[inner].kind) {
                    break;
                }
                if kinds.identifier.is(source.nodes[inner].kind) {
                    self.add(Sort::Module, inner, true, true);
                    break;
                }
                let Some(next) = source.child_in(inner, fields.declarator) else { break };
                inner = next;
            }
        }
    }

    fn bash(&mut self, index: NodeIndex) {
        let source = self.source;
        let parent = source.nodes[index].parent;
        let Some(name) = source.child_in(index, self.roles.fields.name) else { return };
        // Environment for one command, and constants, are something else.
        if parent == 0 && self.roles.kinds.variable_name.is(source.nodes[name].kind) {
            self.add(Sort::Module, name, true, false);
        }
    }

    fn ruby(&mut self, index: NodeIndex) {
        let (source, kinds) = (self.source, &self.roles.kinds);
        let node = &source.nodes[index];
        if kinds.class_variable.is(node.kind) {
            self.add(Sort::ClassVariable, index, true, true);
        } else if kinds.global_variable.is(node.kind) {
            let text = source.bytes(node);
            let predefined: &[&[u8]] = &[
                b"$stdout",
                b"$stderr",
                b"$stdin",
                b"$LOAD_PATH",
                b"$LOADED_FEATURES",
                b"$VERBOSE",
                b"$DEBUG",
                b"$PROGRAM_NAME",
                b"$FILENAME",
                b"$SAFE",
                b"$KCODE",
            ];
            let is_special = text.len() < 2 || predefined.contains(&text) || !text[1].is_ascii_alphabetic();
            if !is_special {
                self.add(Sort::Global, index, true, false);
            }
        }
    }

    fn php(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let node = &source.nodes[index];
        let name_in =
            |variable: NodeIndex| source.children(variable).find(|&child| kinds.name.is(source.nodes[child].kind));
        if kinds.global_declaration.is(node.kind) {
            let variables = source.children(index).filter(|&child| kinds.variable_name.is(source.nodes[child].kind));
            for name in variables.filter_map(name_in).collect::<Vec<_>>() {
                self.add(Sort::Global, name, true, false);
            }
        } else if kinds.property_declaration.is(node.kind) {
            let elements = source.children(index).filter(|&child| source.child_in(child, fields.name).is_some());
            for element in elements.collect::<Vec<_>>() {
                let name = source.child_in(element, fields.name).and_then(name_in);
                let head = &source.text[node.start as usize..source.nodes[element].start as usize];
                if let Some(name) = name.filter(|_| names::has_word(head, "static")) {
                    self.add(Sort::Static, name, true, true);
                }
            }
        }
    }

    /// Reads who touches and who changes a variable.
    fn uses(&self, state: &mut State) {
        let source = self.source;
        let bytes = source.bytes(&source.nodes[state.name]);
        let places = self.names.places(bytes);
        let mut shadowed: Vec<u32> = Vec::new();
        let mut declared_global: Vec<u32> = Vec::new();
        for &place in places {
            if let Place::Name(node) = place
                && let Some(function) = self.outermost(node)
            {
                if self.is_global_statement(node) {
                    declared_global.push(function);
                } else if node != state.name && self.declares(state, node) {
                    shadowed.push(function);
                }
            }
        }
        let needs_global =
            source.language == Language::Python || (source.language == Language::Php && state.sort == Sort::Global);
        let mut unguarded = false;
        for &place in places {
            let Place::Name(node) = place else { continue };
            let Some(function) = self.outermost(node) else { continue };
            let is_global_here = declared_global.contains(&function);
            if (shadowed.contains(&function) && !is_global_here) || !self.means(state, node) {
                continue;
            }
            if needs_global && source.language == Language::Php && !is_global_here {
                continue;
            }
            if !state.touched_by.contains(&function) {
                state.touched_by.push(function);
            }
            let change = self.change(state, node);
            if change == Change::None || (change == Change::Rebound && needs_global && !is_global_here) {
                continue;
            }
            // Before anything else runs, nobody shares it.
            let name = self.facts.functions.get(function as usize).map_or("", |function| function.name.as_str());
            if source.language == Language::Go && name == "init" {
                continue;
            }
            state.rebound |= change == Change::Rebound;
            if !state.writers.contains(&function) {
                state.writers.push(function);
                unguarded |= !self.is_guarded(function);
            }
        }
        state.guarded = !state.writers.is_empty() && !unguarded;
    }

    fn is_global_statement(&self, node: NodeIndex) -> bool {
        let (nodes, kinds) = (&self.source.nodes, &self.roles.kinds);
        let parent = nodes[node].parent as usize;
        kinds.global_statement.is(nodes[parent].kind)
            || kinds.global_declaration.is(nodes[nodes[parent].parent as usize].kind)
            || kinds.global_declaration.is(nodes[parent].kind)
    }

    /// Whether a place of the name means the variable and not a member or a local of that name.
    fn means(&self, state: &State, node: NodeIndex) -> bool {
        let source = self.source;
        let parent = &source.nodes[source.nodes[node].parent as usize];
        match state.sort {
            Sort::Static if source.language == Language::Php => {
                // `self::$x`, not `$x`.
                let outer = &source.nodes[parent.parent as usize];
                self.roles.role(outer.kind) == Role::Member
            }
            Sort::Static => true,
            _ => !names::is_member(source, node),
        }
    }

    /// Whether a place of the name declares a local or a parameter.
    fn declares(&self, state: &State, node: NodeIndex) -> bool {
        let (source, fields) = (self.source, self.roles.fields);
        if matches!(state.sort, Sort::Global | Sort::ClassVariable) {
            return false;
        }
        let mut at = node;
        for _ in 0..4 {
            let this = source.nodes[at];
            let parent = source.nodes[this.parent as usize];
            if this.field != 0 && this.field == fields.parameters {
                return true;
            }
            match self.roles.role(parent.kind) {
                Role::Declarator => {
                    let f = this.field;
                    let named = f != 0 && (f == fields.name || f == fields.declarator || f == fields.pattern);
                    // `local x=1`, `declare x`.
                    return named || source.language == Language::Bash;
                }
                Role::Assignment => {
                    let is_left = this.field != 0 && this.field == fields.left;
                    return match source.language {
                        // Without `global` an assignment makes a local.
                        Language::Python => is_left && at == node,
                        Language::Bash => {
                            let outer = source.nodes[parent.parent as usize];
                            self.roles.role(outer.kind) == Role::Declarator
                        }
                        _ => false,
                    };
                }
                Role::Function | Role::Call | Role::Block => return false,
                _ => {}
            }
            let grammar_name = self.kind_name(parent.kind);
            let binds = matches!(
                grammar_name,
                "short_var_declaration"
                    | "range_clause"
                    | "for_in_statement"
                    | "for_statement"
                    | "for_in_clause"
                    | "as_pattern_target"
                    | "catch_clause"
                    | "enhanced_for_statement"
                    | "for_each_statement"
                    | "foreach_statement"
                    | "parameter_declaration"
                    | "formal_parameter"
                    | "parameter"
                    | "required_parameter"
                    | "optional_parameter"
                    | "catch_formal_parameter"
                    | "for_range_loop"
                    | "receive_statement"
            );
            let head = this.field != 0
                && (this.field == fields.left
                    || this.field == fields.name
                    || this.field == fields.declarator
                    || this.field == fields.pattern);
            if binds && (head || grammar_name == "as_pattern_target" || grammar_name == "parameter") {
                return true;
            }
            at = this.parent as usize;
        }
        false
    }

    fn kind_name(&self, kind: u16) -> &'static str {
        self.roles.kind_name(kind)
    }

    /// What happens to the variable where its name stands.
    fn change(&self, state: &State, node: NodeIndex) -> Change {
        let (source, fields) = (self.source, self.roles.fields);
        let nodes = &source.nodes;
        let mut at = node;
        let mut inside = false;
        // PHP's and C#'s wrappers, then `x.y[z]` around the name.
        for _ in 0..6 {
            let this = nodes[at];
            let parent_index = this.parent as usize;
            let parent = nodes[parent_index];
            match self.roles.role(parent.kind) {
                Role::Member => {
                    let f = this.field;
                    let is_member = at == node
                        && f != 0
                        && (f == fields.property || f == fields.field || f == fields.name || f == fields.attribute);
                    // `a::n` is a longer name of the variable.
                    let is_path = matches!(self.kind_name(parent.kind), "qualified_identifier" | "scoped_identifier");
                    if is_member && is_path {
                    } else if is_member {
                        // `A.count`, `self::$n`: a member is what the name is.
                        if state.sort != Sort::Static {
                            return Change::None;
                        }
                    } else {
                        // `x.push(y)`
                        let outer = nodes[parent.parent as usize];
                        if self.roles.role(outer.kind) == Role::Call
                            && parent.field != 0
                            && parent.field == fields.function
                        {
                            return if self.has_mutator(state, parent_index) { Change::Content } else { Change::None };
                        }
                        inside = true;
                    }
                }
                Role::Index => {
                    let is_base = this.start == parent.start;
                    if !is_base {
                        return Change::None;
                    }
                    inside = true;
                }
                // `x.add(y)` in Java, `x.push(y)` in Ruby and PHP.
                Role::Call => {
                    let f = this.field;
                    if f != 0 && (f == fields.object || f == fields.receiver) {
                        return if self.has_mutator(state, parent_index) { Change::Content } else { Change::None };
                    }
                    return Change::None;
                }
                Role::Assignment | Role::Update => {
                    let is_left = this.field == 0 || this.field != fields.right && this.field != fields.value;
                    let is_unary = self.roles.role(parent.kind) == Role::Update && self.is_real_update(&parent);
                    let is_target = match self.roles.role(parent.kind) {
                        Role::Assignment => this.field != 0 && (this.field == fields.left || this.field == fields.name),
                        _ => is_left && is_unary,
                    };
                    if !is_target {
                        return Change::None;
                    }
                    return self.write(state, inside);
                }
                _ => {
                    let kind = self.kind_name(parent.kind);
                    match kind {
                        // Go's and Python's lists of targets, PHP's variable around its name.
                        "expression_list"
                        | "pattern_list"
                        | "variable_name"
                        | "parenthesized_expression"
                        | "tuple_pattern" => {}
                        "delete_statement" | "unary_expression" => {
                            return if inside && source.bytes(&parent).starts_with(b"del") {
                                self.write(state, inside)
                            } else {
                                Change::None
                            };
                        }
                        // `@@list << x` in Ruby.
                        "binary" if state.container && this.field == fields.left => {
                            let shift = source.bytes(&parent)[(this.end - parent.start) as usize..]
                                .trim_ascii_start()
                                .starts_with(b"<<");
                            return if shift { Change::Content } else { Change::None };
                        }
                        "argument_list" if source.language == Language::Go => {
                            let call = nodes[parent.parent as usize];
                            let first = source.bytes(&call).starts_with(b"delete(") && this.start <= parent.start + 1;
                            return if first { self.write(state, true) } else { Change::None };
                        }
                        _ => return Change::None,
                    }
                }
            }
            at = parent_index;
        }
        Change::None
    }

    /// `x++`, `x += 1`, but not `-x` or `!x`, which C# has under one kind.
    fn is_real_update(&self, parent: &crate::provider::builtin::source::Node) -> bool {
        let text = self.source.bytes(parent);
        let kind = self.kind_name(parent.kind);
        !kind.ends_with("unary_expression")
            || text.starts_with(b"++")
            || text.starts_with(b"--")
            || text.ends_with(b"++")
            || text.ends_with(b"--")
    }

    fn write(&self, state: &State, inside: bool) -> Change {
        // Members of values change the variable; of objects only their content.
        let is_value = matches!(self.source.language, Language::C | Language::Cpp | Language::Rust);
        match inside {
            false if state.rebindable => Change::Rebound,
            true if is_value => Change::Rebound,
            true if state.container => Change::Content,
            _ => Change::None,
        }
    }

    fn has_mutator(&self, state: &State, member: NodeIndex) -> bool {
        let (source, fields) = (self.source, self.roles.fields);
        let method = [fields.property, fields.field, fields.attribute, fields.name, fields.method]
            .into_iter()
            .find_map(|field| source.child_in(member, field));
        // Go and C have no methods of collections; a struct's method is its own business.
        let counts = state.container && !matches!(source.language, Language::Go | Language::C);
        counts && method.is_some_and(|method| MUTATORS.contains(&source.text(&source.nodes[method])))
    }

    fn is_guarded(&self, function: u32) -> bool {
        let Some(function) = self.facts.functions.get(function as usize) else { return false };
        let node = &self.source.nodes[function.node];
        let text = self.source.bytes(node);
        GUARDS.iter().any(|guard| memchr::memmem::find(text, guard.as_bytes()).is_some())
    }
}

/// What a place does to a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Content,
    Rebound,
}

/// `[]`, `{}`, `set()`, `defaultdict(list)` and the like.
pub fn is_python_container(source: &Source<'_>, roles: &Roles, value: NodeIndex) -> bool {
    let node = &source.nodes[value];
    let kinds = &roles.kinds;
    if kinds.list.is(node.kind) || kinds.dictionary.is(node.kind) || kinds.set.is(node.kind) {
        return true;
    }
    let makers: &[&[u8]] =
        &[b"list", b"dict", b"set", b"defaultdict", b"OrderedDict", b"deque", b"Counter", b"bytearray"];
    kinds.call.is(node.kind)
        && source
            .child_in(value, roles.fields.function)
            .map(|function| source.bytes(&source.nodes[function]))
            .is_some_and(|name| {
                makers.iter().any(|maker| name == *maker || name.strip_prefix(b"collections.") == Some(maker))
            })
}
