//! Module and static state of a file: what is declared outside of functions, and which functions read and change it.
//!
//! GLOBAL_VARIABLES and MUTABLE_SHARED_STATE report from this list; [`State::is_shared`] decides which of the two does.

use std::collections::HashSet;

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
    pub(super) rebindable: bool,
    /// Holds a collection.
    pub(super) container: bool,
    /// Numbers of functions, each once.
    pub writers: Vec<u32>,
    /// Functions that mention it, writers included.
    pub touched_by: Vec<u32>,
    /// It is given a new value, not only another content.
    pub rebound: bool,
    /// Every function that changes it takes a lock or the like.
    pub(super) guarded: bool,
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

pub(super) struct Collector<'a, 's> {
    pub(super) source: &'a Source<'s>,
    pub(super) facts: &'a Facts,
    pub(super) roles: &'static Roles,
    pub(super) names: Names,
    pub(super) found: Vec<State>,
    pub(super) known: HashSet<&'s [u8]>,
    pub(super) has_errors: bool,
}

/// The state of a file. Test code is left out: its variables hold what one test needs.
pub fn collect(source: &Source<'_>, facts: &Facts) -> Vec<State> {
    if facts.is_test_file {
        return Vec::new();
    }
    let has_errors = source.nodes.iter().any(|node| node.is_error());
    let roles = Roles::of(source.language);
    let mut collector = Collector {
        source,
        facts,
        roles,
        names: Names::default(),
        found: Vec::new(),
        known: HashSet::new(),
        has_errors,
    };
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
