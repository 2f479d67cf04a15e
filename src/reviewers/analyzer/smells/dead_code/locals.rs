//! Finds unused locals: variables that are declared, perhaps assigned, and mentioned nowhere else in their function.

use std::collections::HashMap;

use super::{DeadCodeCollector, shorten_name};
use crate::domain::{Confidence, Kind, Priority, Severity};
use crate::reviewers::analyzer::smells::{Smell, SmellBuilder, SmellGrade};
use crate::syntax::language::Language;
use crate::syntax::node_roles::SmellNodeRole;
use crate::syntax::occurrences::{self, NameOccurrence};
use crate::syntax::source::{MAX_SEARCHED_BYTES, NodeIndex};

/// A declaration of a local name.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalVariable {
    name: NodeIndex,
    /// The declaration or assignment.
    declaration: NodeIndex,
    /// Range of nodes in which the name is searched, end exclusive.
    start: NodeIndex,
    end: NodeIndex,
}

/// Calls that can read locals by name.
const REFLECTION_CALLS: &[&str] = &[
    "locals",
    "vars",
    "eval",
    "exec",
    "compact",
    "extract",
    "get_defined_vars",
    "binding",
    "local_variables",
    "include",
    "require",
];

impl DeadCodeCollector<'_, '_> {
    /// Collects a declaration, by the kind of its node.
    pub(super) fn collect_declarator(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let node = source.nodes[index];
        let parent = source.nodes[node.parent as usize];
        match source.language {
            Language::Rust => {
                if let Some(pattern) = source.child_by_field(index, fields.pattern)
                    && kinds.identifier.is(source.nodes[pattern].kind)
                    && !self.prev_named_sibling(index).is_some_and(|before| source.bytes(before).starts_with(b"#["))
                {
                    self.add_local(pattern, index);
                }
            }
            Language::JavaScript | Language::TypeScript | Language::Tsx => self.collect_script_declarator(index),
            Language::Java => {
                if kinds.local_variable_declaration.is(parent.kind)
                    && let Some(name) = source.child_by_field(index, fields.name)
                {
                    self.add_local(name, node.parent as usize);
                }
            }
            Language::CSharp => {
                let outer = source.nodes[parent.parent as usize];
                if kinds.local_declaration_statement.is(outer.kind)
                    && !source.bytes(&outer).starts_with(b"using")
                    && !source.bytes(&outer).starts_with(b"await")
                    && let Some(name) = source.child_by_field(index, fields.name)
                {
                    self.add_local(name, parent.parent as usize);
                }
            }
            Language::C | Language::Cpp => self.collect_c_declaration(index),
            Language::Kotlin => {
                // A delegate may act without a reader.
                let has_delegate = || {
                    let mut parts = source.children(node.parent as usize);
                    parts.any(|part| kinds.property_delegate.is(source.nodes[part].kind))
                };
                if kinds.property_declaration.is(parent.kind)
                    && self.is_in_function()
                    && !has_delegate()
                    && let Some(name) = source.child_by_field(index, fields.name)
                {
                    self.add_local(name, node.parent as usize);
                }
            }
            Language::Swift => {
                // `x` of `let x = 1`; a tuple of names is left out.
                let name =
                    source.child_by_field(index, fields.name).and_then(|pattern| source.children(pattern).next());
                if let Some(name) = name
                    && kinds.statements.is(parent.kind)
                    && self.is_in_function()
                    && kinds.simple_identifier.is(source.nodes[name].kind)
                    && !source.bytes(&node).starts_with(b"@")
                {
                    self.add_local(name, index);
                }
            }
            Language::Scala => {
                let head = source.bytes(&node);
                let head = &head[..head.len().min(MAX_SEARCHED_BYTES)];
                let head = &head[..memchr::memchr(b'=', head).unwrap_or(head.len())];
                let is_plain = !head.contains(&b'@') && !occurrences::has_word(head, "implicit");
                if let Some(name) = source.child_by_field(index, fields.pattern)
                    && is_plain
                    && self.is_in_function()
                    && self.roles.role(parent.kind) == SmellNodeRole::Block
                    && kinds.identifier.is(source.nodes[name].kind)
                {
                    self.add_local(name, index);
                }
            }
            Language::Bash => self.collect_bash_declaration(index),
            // The Go compiler rejects unused locals.
            _ => {}
        }
    }

    /// Collects an assignment, which declares a variable in Python, Ruby and PHP.
    pub(super) fn collect_assignment(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let Some(left) = source.child_by_field(index, fields.left) else { return };
        let kind = source.nodes[left].kind;
        match source.language {
            Language::Python if kinds.identifier.is(kind) && self.is_in_function() => self.add_local(left, index),
            Language::Ruby if kinds.identifier.is(kind) && !self.is_value_of_block(index) => {
                self.add_local(left, index)
            }
            Language::Php if kinds.variable_name.is(kind) => {
                if let Some(name) = source.children(left).find(|&child| kinds.name.is(source.nodes[child].kind)) {
                    self.add_local(name, index);
                }
            }
            _ => {}
        }
    }

    /// Returns whether an assignment gives a value: as the last statement of a Ruby block, or inside an expression.
    fn is_value_of_block(&self, index: NodeIndex) -> bool {
        let source = self.source;
        let parent = source.nodes[index].parent as usize;
        self.roles.role(source.nodes[parent].kind) != SmellNodeRole::Block
            || source.nodes[index].end_index == source.nodes[parent].end_index
    }

    fn collect_script_declarator(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let node = source.nodes[index];
        let declaration = node.parent as usize;
        let around = source.nodes[source.nodes[declaration].parent as usize];
        let Some(name) = source.child_by_field(index, fields.name) else { return };
        if kinds.export_statement.is(around.kind)
            || kinds.ambient_declaration.is(around.kind)
            || source.path.ends_with(".d.ts")
        {
            return;
        }
        let at_top = self.scopes.is_empty();
        if kinds.identifier.is(source.nodes[name].kind) {
            let value = source.child_by_field(index, fields.value);
            if at_top && value.is_some_and(|value| source.bytes(&source.nodes[value]).starts_with(b"require(")) {
                self.add_require(declaration, name);
                return;
            }
            self.add_local(name, index);
        } else if kinds.object_pattern.is(source.nodes[name].kind) {
            let parts = || source.children(name).filter(|&child| source.nodes[child].is_named());
            // `const { a, ...rest } = x` takes `a` out of the rest.
            if parts().any(|part| kinds.rest_pattern.is(source.nodes[part].kind)) {
                return;
            }
            for part in parts() {
                if kinds.shorthand_property_identifier_pattern.is(source.nodes[part].kind) {
                    self.add_local(part, index);
                }
            }
        }
    }

    fn collect_c_declaration(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let node = source.nodes[index];
        let parent = source.nodes[node.parent as usize];
        // Skip the heads of `for` and `if`, and the file scope.
        if !kinds.declaration.is(node.kind) || self.roles.role(parent.kind) != SmellNodeRole::Block {
            return;
        }
        let text = source.bytes(&node);
        let head = &text[..text.len().min(200)];
        if ["extern", "unused", "UNUSED", "typedef", "__attribute__", "cleanup"]
            .iter()
            .any(|word| memchr::memmem::find(head, word.as_bytes()).is_some())
        {
            return;
        }
        // A C++ object may be there only for its constructor and destructor.
        if source.language == Language::Cpp {
            let kind = source.child_by_field(index, fields.kind).map(|kind| source.bytes(&source.nodes[kind]));
            let plain = kind.is_some_and(|kind| {
                matches!(
                    kind,
                    b"int"
                        | b"bool"
                        | b"char"
                        | b"double"
                        | b"float"
                        | b"long"
                        | b"short"
                        | b"size_t"
                        | b"unsigned"
                        | b"uint32_t"
                        | b"int32_t"
                        | b"uint64_t"
                        | b"int64_t"
                        | b"uint8_t"
                )
            });
            if !plain {
                return;
            }
        }
        for declarator in source.children(index).filter(|&child| source.nodes[child].field == fields.declarator) {
            let mut inner = declarator;
            for _ in 0..6 {
                if kinds.function_declarator.is(source.nodes[inner].kind) {
                    break;
                }
                if kinds.identifier.is(source.nodes[inner].kind) {
                    self.add_local(inner, index);
                    break;
                }
                let Some(next) = source.child_by_field(inner, fields.declarator) else { break };
                inner = next;
            }
        }
    }

    fn collect_bash_declaration(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        if !source.bytes(&source.nodes[index]).starts_with(b"local") {
            return;
        }
        for child in source.children(index).collect::<Vec<_>>() {
            let name = if kinds.variable_name.is(source.nodes[child].kind) {
                Some(child)
            } else {
                source
                    .child_by_field(child, fields.name)
                    .filter(|&name| kinds.variable_name.is(source.nodes[name].kind))
            };
            if let Some(name) = name {
                self.add_local(name, index);
            }
        }
    }

    fn add_local(&mut self, name: NodeIndex, declaration: NodeIndex) {
        let source = self.source;
        if !self.limits.dead_code.unused_locals {
            return;
        }
        let is_script = matches!(source.language, Language::JavaScript | Language::TypeScript | Language::Tsx);
        let (start, end) = match self.function_scope() {
            // A shell function sees the locals of its caller.
            Some(_) if source.language == Language::Bash => (0, source.nodes.len()),
            Some(scope) => (scope.node, scope.end),
            None if is_script && self.scopes.is_empty() => (0, source.nodes.len()),
            None => return,
        };
        let bytes = source.bytes(&source.nodes[name]);
        let says_so = [&b"_"[..], b"unused", b"ignore", b"dummy"].iter().any(|start| bytes.starts_with(start));
        if says_so || bytes.is_empty() {
            return;
        }
        if self.locals.is_empty() {
            for word in REFLECTION_CALLS {
                self.names.request(word.as_bytes());
            }
        }
        self.names.request(bytes);
        self.locals.push(LocalVariable { name, declaration, start, end });
    }

    pub(super) fn report_locals(&self, out: &mut Vec<Smell>) {
        let source = self.source;
        if self.is_example() {
            return;
        }
        // The text of a macro may mean any local.
        let macros_count = matches!(source.language, Language::C | Language::Cpp);
        let declared: Vec<NodeIndex> = {
            let mut nodes: Vec<NodeIndex> = self.locals.iter().map(|local| local.name).collect();
            nodes.sort_unstable();
            nodes
        };
        let is_declaration = |node: NodeIndex| declared.binary_search(&node).is_ok();
        // Several declarations of one name in one function have one finding, at the first.
        let mut firsts: HashMap<(&[u8], NodeIndex), NodeIndex> = HashMap::with_capacity(self.locals.len());
        for local in &self.locals {
            let first = firsts.entry((source.bytes(&source.nodes[local.name]), local.start)).or_insert(local.name);
            *first = local.name.min(*first);
        }
        for local in self.locals.iter().take_while(|_| source.work().spend(1)) {
            let bytes = source.bytes(&source.nodes[local.name]);
            let at_top = local.start == 0 && source.language != Language::Bash;
            let is_first = firsts.get(&(bytes, local.start)) == Some(&local.name);
            if !is_first || (at_top && (!self.is_module || self.facts.is_test_file)) {
                continue;
            }
            let places = self.names.occurrences_in(bytes, local.start, local.end);
            let mut first = None;
            let mut declarations = 0;
            source.work().spend(places.len());
            let is_used = places.iter().any(|&place| match place {
                NameOccurrence::Comment(_) => false,
                NameOccurrence::Text(_) => true,
                NameOccurrence::Name(node) if is_declaration(node) => {
                    first.get_or_insert(node);
                    declarations += 1;
                    false
                }
                NameOccurrence::Name(node) => !self.is_only_member(node),
            });
            let is_used = is_used || (macros_count && self.names.is_in_text(bytes));
            // In PHP a variable may be a reference.
            let only_one = matches!(source.language, Language::Php | Language::Bash | Language::Ruby);
            if is_used || first != Some(local.name) || (only_one && declarations > 1) {
                continue;
            }
            if self.has_error_in(local.start, local.end)
                || occurrences::is_suppressed(source, &source.nodes[local.declaration])
                || (local.start != 0 && self.uses_reflection(local))
            {
                continue;
            }
            let name = source.text(&source.nodes[local.name]);
            let function =
                self.facts.function_at(local.name).map(|function| function.name.as_str()).unwrap_or_default();
            let confidence = match source.language {
                Language::Ruby | Language::Php | Language::Bash => Confidence::Medium,
                _ if at_top => Confidence::Medium,
                _ => Confidence::High,
            };
            let place =
                if function.is_empty() { "the file".to_owned() } else { format!("`{}`", shorten_name(function)) };
            out.push(
                SmellBuilder {
                    kind: Kind::DeadCode,
                    grade: SmellGrade::new(Priority::P3, Severity::Low, confidence),
                    lines: source.node_lines(local.name),
                    title: format!("unused variable `{}`", shorten_name(name)),
                    explanation: format!("`{}` is set and stands nowhere else in {place}.", shorten_name(name)),
                    subject: format!("local {function} {name}"),
                }
                .build(),
            );
        }
    }

    /// Returns whether the function reads its locals by name.
    fn uses_reflection(&self, local: &LocalVariable) -> bool {
        matches!(self.source.language, Language::Python | Language::Php | Language::Ruby | Language::JavaScript)
            && REFLECTION_CALLS.iter().any(|word| {
                let places = self.names.occurrences_in(word.as_bytes(), local.start, local.end);
                self.source.work().spend(places.len());
                places.iter().any(|place| matches!(place, NameOccurrence::Name(_)))
            })
    }
}
