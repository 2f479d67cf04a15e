//! Collects the module and static variables of a file: declarations outside of functions, and the functions that read
//! and change them.
//!
//! GLOBAL_VARIABLES and MUTABLE_SHARED_STATE both report from this list; [`ModuleVariable::is_shared`] decides between
//! them.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::super::CheckedFile;
use crate::domain::text;
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::node_roles::{SmellNodeRole, SmellNodeRoles};
use crate::syntax::occurrences::{self, NameOccurrence, NameOccurrences};
use crate::syntax::source::{NodeIndex, ParsedFile};

/// Kind of a module variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleVariableKind {
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

/// A variable that outlives calls, with the functions that use it.
#[derive(Debug, Clone)]
pub struct ModuleVariable {
    pub kind: ModuleVariableKind,
    /// Node of the name in its declaration, or else at its first occurrence.
    pub name: NodeIndex,
    /// True if it can be assigned; otherwise only its content can change.
    pub(super) rebindable: bool,
    /// True if it holds a collection.
    pub(super) container: bool,
    /// Indices of the functions that change it, without repeats.
    pub writers: Vec<u32>,
    /// Indices of the functions that mention it, writers included.
    pub touched_by: Vec<u32>,
    /// Number of functions of other files that mention it, and of these files.
    pub other_functions: u32,
    pub other_files: u32,
    /// True if a function assigns it, and does not only change its content.
    pub rebound: bool,
    /// True if every function that changes it takes a lock or similar.
    pub(super) guarded: bool,
}

impl ModuleVariable {
    /// Describes the functions that mention it: "5 functions", "5 functions in 3 files".
    pub fn describe_uses(&self) -> String {
        let functions = text::format_count(self.count_functions() as usize, "function");
        match self.other_files {
            0 => functions,
            others => format!("{functions} in {}", text::format_count(others as usize + 1, "file")),
        }
    }

    /// Returns the number of functions that mention it, in all files.
    pub fn count_functions(&self) -> u32 {
        self.touched_by.len() as u32 + self.other_functions
    }

    /// Returns whether MUTABLE_SHARED_STATE reports it instead of GLOBAL_VARIABLES: at least `min_writers` functions
    /// change it, or it is a Ruby class variable that any function changes, and not all writers take a lock.
    pub fn is_shared(&self, limits: &Limits) -> bool {
        let enough = self.writers.len() as u32 >= limits.mutable_shared_state.min_writers;
        !self.guarded && (enough || (self.kind == ModuleVariableKind::ClassVariable && !self.writers.is_empty()))
    }

    /// Returns whether GLOBAL_VARIABLES reports it: functions assign it, not all of them under a lock, at least
    /// `min_functions` functions use it, and [`Self::is_shared`] does not hold. A `static mut` needs no user.
    pub fn is_global(&self, limits: &Limits) -> bool {
        !self.guarded
            && !self.is_shared(limits)
            && (self.rebound || self.kind == ModuleVariableKind::StaticMut)
            && (!self.writers.is_empty() || self.kind == ModuleVariableKind::StaticMut)
            && self.touched_by.len() as u32
                >= limits.global_variables.min_functions.min(match self.kind {
                    ModuleVariableKind::StaticMut => 0,
                    _ => u32::MAX,
                })
    }
}

/// Methods that change the content of their receiver.
const MUTATING_METHODS: &[&str] = &[
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

/// Texts in a function that show that it synchronizes with other threads.
const LOCK_MARKS: &[&str] = &[
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

/// Collector of the module variables of one file.
pub(super) struct ModuleVariableCollector<'a, 's> {
    pub(super) source: &'a ParsedFile<'s>,
    pub(super) facts: &'a FileFacts,
    pub(super) roles: &'static SmellNodeRoles,
    pub(super) names: NameOccurrences,
    pub(super) found: Vec<ModuleVariable>,
    pub(super) known: HashSet<&'s [u8]>,
    pub(super) has_errors: bool,
    /// End of the innermost class around the current node; 0 outside of classes.
    pub(super) class_end: NodeIndex,
    /// Last declaration of fields, and the end of its head in bytes.
    pub(super) field_head: Option<(NodeIndex, u32)>,
    /// For each function, the outermost function around it.
    pub(super) outermost: Vec<u32>,
    /// For each function that was asked about, true if it takes a lock.
    guards: RefCell<HashMap<u32, bool>>,
}

/// Collects the module variables of a file. Test code is left out: its variables serve a single test.
pub fn collect(file: &CheckedFile<'_, '_>) -> Vec<ModuleVariable> {
    let CheckedFile { source, facts, .. } = *file;
    if facts.is_test_file {
        return Vec::new();
    }
    let mut collector = ModuleVariableCollector::new(source, facts);
    collector.collect_declarations();
    if collector.found.is_empty() {
        return Vec::new();
    }
    collector.names.scan(source);
    let mut found = std::mem::take(&mut collector.found);
    for state in found.iter_mut().take_while(|_| source.work().spend(1)) {
        collector.record_uses(state);
    }
    found.retain(|state| !facts.is_test_at(state.name));
    found
}

/// Returns the outermost function around each function, by their indices.
fn find_outermost(facts: &FileFacts) -> Vec<u32> {
    let mut outermost: Vec<u32> = Vec::with_capacity(facts.functions.len());
    for (index, function) in facts.functions.iter().enumerate() {
        let outer = function.outer.and_then(|outer| outermost.get(outer).copied());
        outermost.push(outer.unwrap_or(index as u32));
    }
    outermost
}

impl<'a, 's> ModuleVariableCollector<'a, 's> {
    /// Creates a collector that has found nothing yet.
    pub(super) fn new(source: &'a ParsedFile<'s>, facts: &'a FileFacts) -> Self {
        Self {
            source,
            facts,
            roles: SmellNodeRoles::for_language(source.language),
            names: NameOccurrences::default(),
            found: Vec::new(),
            known: HashSet::new(),
            has_errors: source.nodes.iter().any(|node| node.is_error()),
            class_end: 0,
            field_head: None,
            outermost: find_outermost(facts),
            guards: RefCell::default(),
        }
    }
}

impl ModuleVariableCollector<'_, '_> {
    /// Records which functions use a variable and which change it.
    fn record_uses(&self, state: &mut ModuleVariable) {
        let source = self.source;
        let bytes = source.bytes(&source.nodes[state.name]);
        let places = self.names.occurrences(bytes);
        let mut shadowed: HashSet<u32> = HashSet::new();
        let mut declared_global: HashSet<u32> = HashSet::new();
        let (mut touching, mut writing) = (HashSet::new(), HashSet::new());
        for &place in places.iter().take_while(|_| source.work().spend(1)) {
            if let NameOccurrence::Name(node) = place
                && let Some(function) = self.outermost_function(node)
            {
                if self.is_global_statement(node) {
                    declared_global.insert(function);
                } else if node != state.name && self.declares_local(state, node) {
                    shadowed.insert(function);
                }
            }
        }
        let needs_global = source.language == Language::Python
            || (source.language == Language::Php && state.kind == ModuleVariableKind::Global);
        let mut unguarded = false;
        for &place in places.iter().take_while(|_| source.work().spend(1)) {
            let NameOccurrence::Name(node) = place else { continue };
            let Some(function) = self.outermost_function(node) else { continue };
            let is_global_here = declared_global.contains(&function);
            if (shadowed.contains(&function) && !is_global_here) || !self.is_reference_to(state, node) {
                continue;
            }
            if needs_global && source.language == Language::Php && !is_global_here {
                continue;
            }
            if touching.insert(function) {
                state.touched_by.push(function);
            }
            let change = self.classify_change(state, node);
            if change == VariableChange::None || (change == VariableChange::Rebound && needs_global && !is_global_here)
            {
                continue;
            }
            // `init` runs before all other code, so nothing shares the variable yet.
            let name = self.facts.functions.get(function as usize).map_or("", |function| function.name.as_str());
            if source.language == Language::Go && name == "init" {
                continue;
            }
            state.rebound |= change == VariableChange::Rebound;
            if writing.insert(function) {
                state.writers.push(function);
                unguarded |= !self.is_guarded(function);
            }
        }
        state.guarded = !state.writers.is_empty() && !unguarded;
    }

    pub(super) fn is_global_statement(&self, node: NodeIndex) -> bool {
        let (nodes, kinds) = (&self.source.nodes, &self.roles.kinds);
        let parent = nodes[node].parent as usize;
        kinds.global_statement.is(nodes[parent].kind)
            || kinds.global_declaration.is(nodes[nodes[parent].parent as usize].kind)
            || kinds.global_declaration.is(nodes[parent].kind)
    }

    /// Returns whether an occurrence of the name is the variable, and not a member or a local with that name.
    fn is_reference_to(&self, state: &ModuleVariable, node: NodeIndex) -> bool {
        let source = self.source;
        let parent = &source.nodes[source.nodes[node].parent as usize];
        match state.kind {
            ModuleVariableKind::Static if source.language == Language::Php => {
                // `self::$x`, not `$x`.
                let outer = &source.nodes[parent.parent as usize];
                self.roles.role(outer.kind) == SmellNodeRole::Member
            }
            ModuleVariableKind::Static => true,
            _ => !occurrences::is_member(source, node),
        }
    }

    /// Returns whether an occurrence of the name declares a local or a parameter.
    pub(super) fn declares_local(&self, state: &ModuleVariable, node: NodeIndex) -> bool {
        let (source, fields) = (self.source, self.roles.fields);
        if matches!(state.kind, ModuleVariableKind::Global | ModuleVariableKind::ClassVariable) {
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
                SmellNodeRole::Declarator => {
                    let f = this.field;
                    let named = f != 0 && (f == fields.name || f == fields.declarator || f == fields.pattern);
                    // `local x=1`, `declare x`.
                    return named || source.language == Language::Bash;
                }
                SmellNodeRole::Assignment => {
                    let is_left = this.field != 0 && this.field == fields.left;
                    return match source.language {
                        // Without `global` an assignment declares a local.
                        Language::Python => is_left && at == node,
                        Language::Bash => {
                            let outer = source.nodes[parent.parent as usize];
                            self.roles.role(outer.kind) == SmellNodeRole::Declarator
                        }
                        _ => false,
                    };
                }
                SmellNodeRole::Function | SmellNodeRole::Call | SmellNodeRole::Block => return false,
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

    /// Classifies how the variable changes at an occurrence of its name. Goes up through the wrappers of PHP and C#, then
    /// through `x.y[z]` around the name.
    fn classify_change(&self, state: &ModuleVariable, name: NodeIndex) -> VariableChange {
        const MAX_ANCESTORS: usize = 6;
        let mut way = ChangeWalk { name, at: name, inside: false };
        for _ in 0..MAX_ANCESTORS {
            let parent = self.source.nodes[way.at].parent as usize;
            let step = match self.roles.role(self.source.nodes[parent].kind) {
                SmellNodeRole::Member => self.step_out_of_member(state, way),
                SmellNodeRole::Index => self.step_out_of_index(way),
                SmellNodeRole::Call => self.step_out_of_call(state, way),
                SmellNodeRole::Assignment | SmellNodeRole::Update => self.step_out_of_assignment(state, way),
                _ => self.step_out_of_other(state, way),
            };
            match step {
                ChangeStep::Done(change) => return change,
                ChangeStep::Up => {}
                ChangeStep::UpFromContent => way.inside = true,
            }
            way.at = parent;
        }
        VariableChange::None
    }

    /// Steps from `x` to `x.y`, or from a member to its path.
    fn step_out_of_member(&self, state: &ModuleVariable, way: ChangeWalk) -> ChangeStep {
        let (nodes, fields) = (&self.source.nodes, self.roles.fields);
        let this = nodes[way.at];
        let parent = nodes[this.parent as usize];
        let field = this.field;
        let is_member = way.at == way.name
            && field != 0
            && (field == fields.property || field == fields.field || field == fields.name || field == fields.attribute);
        if is_member {
            // `a::n` is a qualified name of the variable. In `A.count` and `self::$n` the name itself is a member.
            let is_path = matches!(self.kind_name(parent.kind), "qualified_identifier" | "scoped_identifier");
            return match is_path || state.kind == ModuleVariableKind::Static {
                true => ChangeStep::Up,
                false => ChangeStep::Done(VariableChange::None),
            };
        }
        // `x.push(y)`
        let outer = nodes[parent.parent as usize];
        let is_called =
            self.roles.role(outer.kind) == SmellNodeRole::Call && parent.field != 0 && parent.field == fields.function;
        match is_called {
            true => ChangeStep::Done(self.classify_method_call(state, this.parent as usize)),
            false => ChangeStep::UpFromContent,
        }
    }

    /// Steps from `x` to `x[y]`; an index `y` changes nothing.
    fn step_out_of_index(&self, way: ChangeWalk) -> ChangeStep {
        let this = self.source.nodes[way.at];
        let is_base = this.start == self.source.nodes[this.parent as usize].start;
        if is_base { ChangeStep::UpFromContent } else { ChangeStep::Done(VariableChange::None) }
    }

    /// Ends at a call: `x.add(y)` in Java, `x.push(y)` in Ruby and PHP.
    fn step_out_of_call(&self, state: &ModuleVariable, way: ChangeWalk) -> ChangeStep {
        let (this, fields) = (self.source.nodes[way.at], self.roles.fields);
        // `x[1] = y` of Swift, whose subscripts look like calls.
        let call = self.source.nodes[this.parent as usize];
        let target = self.kind_name(self.source.nodes[call.parent as usize].kind);
        if this.field != 0 && this.field == fields.function && target == "directly_assignable_expression" {
            return ChangeStep::UpFromContent;
        }
        let is_object = this.field != 0 && (this.field == fields.object || this.field == fields.receiver);
        ChangeStep::Done(match is_object {
            true => self.classify_method_call(state, this.parent as usize),
            false => VariableChange::None,
        })
    }

    /// Ends at an assignment or an update, which changes its target.
    fn step_out_of_assignment(&self, state: &ModuleVariable, way: ChangeWalk) -> ChangeStep {
        let (this, fields) = (self.source.nodes[way.at], self.roles.fields);
        let parent = self.source.nodes[this.parent as usize];
        let is_target = match self.roles.role(parent.kind) {
            SmellNodeRole::Assignment => this.field != 0 && (this.field == fields.left || this.field == fields.name),
            _ => {
                let is_left = this.field == 0 || this.field != fields.right && this.field != fields.value;
                is_left && self.is_real_update(this.parent as usize, &parent)
            }
        };
        // `buffer += item` of Scala changes what the buffer holds.
        let is_appended = state.container && !state.rebindable && self.kind_name(parent.kind) == "infix_expression";
        ChangeStep::Done(match is_target {
            true if is_appended => VariableChange::Content,
            true => self.classify_write(state, way.inside),
            false => VariableChange::None,
        })
    }

    /// Steps through target lists and parentheses; ends at statements and operators that change their operand.
    fn step_out_of_other(&self, state: &ModuleVariable, way: ChangeWalk) -> ChangeStep {
        let source = self.source;
        let this = source.nodes[way.at];
        let parent = source.nodes[this.parent as usize];
        let change = match self.kind_name(parent.kind) {
            // Target lists of Go and Python, and the variable node of PHP around the name.
            "expression_list"
            | "pattern_list"
            | "variable_name"
            | "directly_assignable_expression"
            | "navigation_suffix"
            | "parenthesized_expression"
            | "tuple_pattern" => return ChangeStep::Up,
            "delete_statement" | "unary_expression" if way.inside && source.bytes(&parent).starts_with(b"del") => {
                self.classify_write(state, true)
            }
            // `@@list << x` in Ruby.
            "binary" if state.container && this.field == self.roles.fields.left => {
                let behind = &source.bytes(&parent)[(this.end - parent.start) as usize..];
                let is_shift = behind.trim_ascii_start().starts_with(b"<<");
                if is_shift { VariableChange::Content } else { VariableChange::None }
            }
            "argument_list" if source.language == Language::Go => {
                let call = source.nodes[parent.parent as usize];
                let is_deleted = source.bytes(&call).starts_with(b"delete(") && this.start <= parent.start + 1;
                if is_deleted { self.classify_write(state, true) } else { VariableChange::None }
            }
            _ => VariableChange::None,
        };
        ChangeStep::Done(change)
    }

    /// Returns the change by a call of a method of the variable; `member` is the node with the method's name.
    fn classify_method_call(&self, state: &ModuleVariable, member: NodeIndex) -> VariableChange {
        if self.has_mutator(state, member) { VariableChange::Content } else { VariableChange::None }
    }

    /// Returns whether an update is `x++` or `x += 1`, and not `-x` or `!x`, which have the same node kind in C#.
    fn is_real_update(&self, parent_index: NodeIndex, parent: &crate::syntax::source::Node) -> bool {
        let text = self.source.bytes(parent);
        let kind = self.kind_name(parent.kind);
        if kind == "infix_expression" {
            // Any operator of Scala that ends with `=` assigns, except comparisons.
            let operator = self.source.child_by_field(parent_index, self.roles.fields.operator);
            let operator = operator.map_or("", |operator| self.source.text(&self.source.nodes[operator]));
            return operator.ends_with('=') && !matches!(operator, "==" | "!=" | "<=" | ">=" | "=" | "===" | "=!=");
        }
        !kind.ends_with("unary_expression")
            || text.starts_with(b"++")
            || text.starts_with(b"--")
            || text.ends_with(b"++")
            || text.ends_with(b"--")
    }

    fn classify_write(&self, state: &ModuleVariable, inside: bool) -> VariableChange {
        // A write to a member changes the variable if it is a value, and only the content if it is an object.
        let is_value = matches!(self.source.language, Language::C | Language::Cpp | Language::Rust | Language::Swift);
        match inside {
            false if state.rebindable => VariableChange::Rebound,
            true if is_value => VariableChange::Rebound,
            true if state.container => VariableChange::Content,
            _ => VariableChange::None,
        }
    }

    fn has_mutator(&self, state: &ModuleVariable, member: NodeIndex) -> bool {
        let (source, fields) = (self.source, self.roles.fields);
        let method = [fields.property, fields.field, fields.attribute, fields.name, fields.method]
            .into_iter()
            .find_map(|field| source.child_by_field(member, field));
        // Collections of Go and C have no methods, and a method of a struct need not change it.
        let counts = state.container && !matches!(source.language, Language::Go | Language::C);
        counts
            && method.is_some_and(|method| {
                MUTATING_METHODS.contains(&source.text(&source.nodes[method]).trim_start_matches('.'))
            })
    }

    fn is_guarded(&self, function: u32) -> bool {
        let takes_lock = || {
            let function = self.facts.functions.get(function as usize)?;
            let text = self.source.bytes(&self.source.nodes[function.node]);
            self.source.work().spend_bytes(LOCK_MARKS.len() * text.len());
            Some(LOCK_MARKS.iter().any(|guard| memchr::memmem::find(text, guard.as_bytes()).is_some()))
        };
        *self.guards.borrow_mut().entry(function).or_insert_with(|| takes_lock().unwrap_or(false))
    }
}

/// Position on the way up from an occurrence of a name.
#[derive(Debug, Clone, Copy)]
struct ChangeWalk {
    name: NodeIndex,
    at: NodeIndex,
    /// True if `at` stands for a member or an element of the variable, and not for the variable.
    inside: bool,
}

/// Result of one step of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeStep {
    /// The parent stands for the same value.
    Up,
    /// The parent stands for a member or an element.
    UpFromContent,
    Done(VariableChange),
}

/// Effect of an occurrence of a name on the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VariableChange {
    None,
    Content,
    Rebound,
}
