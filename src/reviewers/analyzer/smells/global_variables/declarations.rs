//! Collects the variables that a file declares outside of functions and that could change, per language.

use super::module_variables::{ModuleVariable, ModuleVariableCollector, ModuleVariableKind};
use crate::syntax::conventions::{ModuleVariableForm, conventions};
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::node_roles::{SmellNodeRole, SmellNodeRoles};
use crate::syntax::occurrences;
use crate::syntax::source::{MAX_SEARCHED_BYTES, NodeIndex, ParsedFile};

impl ModuleVariableCollector<'_, '_> {
    pub(super) fn collect_declarations(&mut self) {
        let source = self.source;
        let form = conventions(source.language).module_variables;
        for (index, node) in source.walk() {
            if self.roles.role(node.kind) == SmellNodeRole::Class && index > 0 {
                self.class_end = self.class_end.max(node.end_index as usize);
            }
            if node.is_error() {
                continue;
            }
            match form {
                ModuleVariableForm::None => return,
                ModuleVariableForm::Sigils => self.collect_sigil(index),
                ModuleVariableForm::GlobalStatements => self.collect_global_statement(index),
                _ => match self.roles.role(node.kind) {
                    role @ (SmellNodeRole::Declarator | SmellNodeRole::Assignment)
                        if self.enclosing_function(index).is_none() =>
                    {
                        self.collect_by_form(form, role, index)
                    }
                    _ => {}
                },
            }
        }
    }

    /// Collects a declaration or an assignment outside of functions.
    fn collect_by_form(&mut self, form: ModuleVariableForm, role: SmellNodeRole, index: NodeIndex) {
        let is_declarator = role == SmellNodeRole::Declarator;
        match form {
            ModuleVariableForm::StaticMut if is_declarator => self.collect_static_mut(index),
            ModuleVariableForm::Assignments if !is_declarator => self.collect_assignment(index),
            ModuleVariableForm::ShellAssignments if !is_declarator => self.collect_shell_assignment(index),
            ModuleVariableForm::ScriptDeclarations if is_declarator => self.collect_script(index),
            ModuleVariableForm::ListedNames if is_declarator => self.collect_listed_names(index),
            ModuleVariableForm::StaticFields if is_declarator => self.collect_static_field(index),
            ModuleVariableForm::Declarators if is_declarator => self.collect_declarator(index),
            ModuleVariableForm::Properties if is_declarator => self.collect_property(index),
            _ => {}
        }
    }

    pub(super) fn enclosing_function(&self, index: NodeIndex) -> Option<u32> {
        self.facts.innermost_function.get(index).copied().filter(|&function| function != FileFacts::NO_FUNCTION)
    }

    /// Returns the outermost function around a node.
    pub(super) fn outermost_function(&self, index: NodeIndex) -> Option<u32> {
        self.outermost.get(self.enclosing_function(index)? as usize).copied()
    }

    fn add_variable(&mut self, sort: ModuleVariableKind, name: NodeIndex, rebindable: bool, container: bool) {
        let bytes = self.source.bytes(&self.source.nodes[name]);
        if bytes.is_empty() || bytes == b"_" || bytes.starts_with(b"__") {
            return;
        }
        if !self.known.insert(bytes) {
            return;
        }
        self.names.request(bytes);
        self.found.push(ModuleVariable {
            kind: sort,
            name,
            rebindable,
            container,
            writers: Vec::new(),
            touched_by: Vec::new(),
            other_functions: 0,
            other_files: 0,
            rebound: false,
            guarded: false,
        });
    }

    fn collect_static_mut(&mut self, index: NodeIndex) {
        let (source, kinds) = (self.source, &self.roles.kinds);
        let is_mut = source.children(index).any(|child| kinds.mutable_specifier.is(source.nodes[child].kind));
        if kinds.static_item.is(source.nodes[index].kind)
            && is_mut
            && let Some(name) = source.child_by_field(index, self.roles.fields.name)
        {
            self.add_variable(ModuleVariableKind::StaticMut, name, true, false);
        }
    }

    fn collect_assignment(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let Some(left) = source.child_by_field(index, fields.left) else { return };
        if !kinds.identifier.is(source.nodes[left].kind) || index < self.class_end {
            return;
        }
        let value = source.child_by_field(index, fields.right);
        let container = value.is_some_and(|value| is_python_container(source, self.roles, value));
        self.add_variable(ModuleVariableKind::Module, left, true, container);
    }

    fn collect_script(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let declaration = source.nodes[index].parent as usize;
        let Some(name) = source.child_by_field(index, fields.name) else { return };
        let around = &source.nodes[source.nodes[declaration].parent as usize];
        let at_top = source.nodes[declaration].parent == 0 || kinds.export_statement.is(around.kind);
        if !kinds.identifier.is(source.nodes[name].kind) || !at_top || source.path.ends_with(".d.ts") {
            return;
        }
        let is_const = source.bytes(&source.nodes[declaration]).starts_with(b"const");
        let value =
            source.child_by_field(index, fields.value).map_or(&b""[..], |value| source.bytes(&source.nodes[value]));
        let container = value.starts_with(b"[")
            || value.starts_with(b"{")
            || value.starts_with(b"new Map")
            || value.starts_with(b"new Set")
            || value.starts_with(b"Object.create(");
        self.add_variable(ModuleVariableKind::Module, name, !is_const, container);
    }

    fn collect_listed_names(&mut self, index: NodeIndex) {
        let (source, fields) = (self.source, self.roles.fields);
        let names = source.children(index).filter(|&child| source.nodes[child].field == fields.name);
        for name in names.collect::<Vec<_>>() {
            self.add_variable(ModuleVariableKind::Module, name, true, true);
        }
    }

    /// Collects a static field of Java or C#.
    fn collect_static_field(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let mut declaration = source.nodes[index].parent as usize;
        if kinds.variable_declaration.is(source.nodes[declaration].kind) {
            declaration = source.nodes[declaration].parent as usize;
        }
        let Some(name) = source.child_by_field(index, fields.name) else { return };
        if !kinds.field_declaration.is(source.nodes[declaration].kind) {
            return;
        }
        // The modifiers and the type stand before the first of the declared names.
        if self.field_head.is_none_or(|(known, _)| known != declaration) {
            self.field_head = Some((declaration, source.nodes[name].start));
        }
        let end = self.field_head.map_or(0, |(_, end)| end as usize);
        let head = source.text.get(source.nodes[declaration].start as usize..end).unwrap_or_default();
        let head = &head[..head.len().min(MAX_SEARCHED_BYTES)];
        source.work().spend_bytes(10 * head.len());
        let fixed = ["final", "readonly", "const"].iter().any(|word| occurrences::has_word(head, word));
        let own_thread =
            ["volatile", "ThreadLocal", "ThreadStatic", "AsyncLocal"].iter().any(|w| occurrences::has_word(head, w));
        if !occurrences::has_word(head, "static") || own_thread {
            return;
        }
        let has = |part: &str| memchr::memmem::find(head, part.as_bytes()).is_some();
        let container =
            ["List", "Map", "Set", "Dictionary", "Queue", "Deque", "Stack", "Collection"].iter().any(|t| has(t))
                && !["Concurrent", "Immutable", "ReadOnly", "Synchronized"].iter().any(|t| has(t));
        self.add_variable(ModuleVariableKind::Static, name, !fixed, container);
    }

    fn collect_declarator(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let node = &source.nodes[index];
        if !kinds.declaration.is(node.kind) {
            return;
        }
        // In a C++ file with syntax errors, members and macros look like variables.
        let torn = source.language == Language::Cpp && self.has_errors && !source.bytes(node).starts_with(b"static");
        if torn {
            return;
        }
        // Accept declarations at file scope, in a namespace, in `extern "C"` or in `#if`.
        let mut at = index;
        while at != 0 && source.work().spend(1) {
            at = source.nodes[at].parent as usize;
            let role = self.roles.role(source.nodes[at].kind);
            let bytes = source.bytes(&source.nodes[at]);
            if role == SmellNodeRole::Function
                || role == SmellNodeRole::Block
                || (role == SmellNodeRole::Class && !bytes.starts_with(b"namespace"))
            {
                return;
            }
        }
        let text = source.bytes(node);
        let text = &text[..text.len().min(MAX_SEARCHED_BYTES)];
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
        if fixed.iter().any(|word| occurrences::has_word(head, word) && !(*word == "const" && pointer))
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
                    self.add_variable(ModuleVariableKind::Module, inner, true, true);
                    break;
                }
                let Some(next) = source.child_by_field(inner, fields.declarator) else { break };
                inner = next;
            }
        }
    }

    /// Collects a property outside of objects, or of the only object of its kind, by the conventions of the language.
    fn collect_property(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let conventions = conventions(source.language);
        let parent = source.nodes[index].parent as usize;
        let declaration = if kinds.property_declaration.is(source.nodes[parent].kind) { parent } else { index };
        let name = [fields.name, fields.pattern].into_iter().find_map(|field| source.child_by_field(index, field));
        let Some(mut name) = name else { return };
        while source.nodes[name].end_index as usize == name + 2 {
            name += 1;
        }
        // A pattern that declares several names is no plain variable.
        if source.nodes[name].end_index as usize != name + 1 {
            return;
        }
        let head = source.text.get(source.nodes[declaration].start as usize..source.nodes[name].start as usize);
        let has = |word: &str| head.is_some_and(|head| occurrences::has_word(head, word));
        let body = source.nodes[declaration].parent as usize;
        let owner = source.nodes[body].parent as usize;
        let is_singleton =
            conventions.singletons.iter().any(|kind| kind == self.roles.kind_name(source.nodes[owner].kind));
        let is_static = conventions.static_words.iter().any(|word| has(word));
        let kind = match (body == 0, is_singleton || is_static) {
            (true, _) => ModuleVariableKind::Module,
            (false, true) if source.nodes[body].field == fields.body => ModuleVariableKind::Static,
            _ => return,
        };
        let text = &source.text[source.nodes[declaration].start as usize..source.nodes[declaration].end as usize];
        source.work().spend_bytes(text.len());
        let is_guarded = ["Atomic", "Mutex", "Lock", "ThreadLocal", "olatile", "TaskLocal", "Concurrent"]
            .iter()
            .any(|mark| memchr::memmem::find(text, mark.as_bytes()).is_some());
        let value =
            source.child_by_field(declaration, fields.value).map_or("", |value| source.text(&source.nodes[value]));
        let value = value.trim_start_matches("new ");
        let container = conventions.mutable_values.iter().any(|start| value.starts_with(&**start));
        if !is_guarded && (has("var") || container) {
            self.add_variable(kind, name, has("var"), container);
        }
    }

    fn collect_shell_assignment(&mut self, index: NodeIndex) {
        let source = self.source;
        let parent = source.nodes[index].parent;
        let Some(name) = source.child_by_field(index, self.roles.fields.name) else { return };
        // Skip the environment of a single command, and constants.
        if parent == 0 && self.roles.kinds.variable_name.is(source.nodes[name].kind) {
            self.add_variable(ModuleVariableKind::Module, name, true, false);
        }
    }

    fn collect_sigil(&mut self, index: NodeIndex) {
        let (source, kinds) = (self.source, &self.roles.kinds);
        let node = &source.nodes[index];
        if kinds.class_variable.is(node.kind) {
            self.add_variable(ModuleVariableKind::ClassVariable, index, true, true);
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
                self.add_variable(ModuleVariableKind::Global, index, true, false);
            }
        }
    }

    fn collect_global_statement(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let node = &source.nodes[index];
        let name_in =
            |variable: NodeIndex| source.children(variable).find(|&child| kinds.name.is(source.nodes[child].kind));
        if kinds.global_declaration.is(node.kind) {
            let variables = source.children(index).filter(|&child| kinds.variable_name.is(source.nodes[child].kind));
            for name in variables.filter_map(name_in).collect::<Vec<_>>() {
                self.add_variable(ModuleVariableKind::Global, name, true, false);
            }
        } else if kinds.property_declaration.is(node.kind) {
            let elements = source.children(index).filter(|&child| source.child_by_field(child, fields.name).is_some());
            for element in elements.collect::<Vec<_>>() {
                let name = source.child_by_field(element, fields.name).and_then(name_in);
                let head = &source.text[node.start as usize..source.nodes[element].start as usize];
                let head = &head[..head.len().min(MAX_SEARCHED_BYTES)];
                if let Some(name) = name.filter(|_| occurrences::has_word(head, "static")) {
                    self.add_variable(ModuleVariableKind::Static, name, true, true);
                }
            }
        }
    }
}

/// Returns whether a value is a new collection: `[]`, `{}`, `set()`, `defaultdict(list)` and similar.
pub fn is_python_container(source: &ParsedFile<'_>, roles: &SmellNodeRoles, value: NodeIndex) -> bool {
    let node = &source.nodes[value];
    let kinds = &roles.kinds;
    if kinds.list.is(node.kind) || kinds.dictionary.is(node.kind) || kinds.set.is(node.kind) {
        return true;
    }
    let makers: &[&[u8]] =
        &[b"list", b"dict", b"set", b"defaultdict", b"OrderedDict", b"deque", b"Counter", b"bytearray"];
    kinds.call.is(node.kind)
        && source
            .child_by_field(value, roles.fields.function)
            .map(|function| source.bytes(&source.nodes[function]))
            .is_some_and(|name| {
                makers.iter().any(|maker| name == *maker || name.strip_prefix(b"collections.") == Some(maker))
            })
}
