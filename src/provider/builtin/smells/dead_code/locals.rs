//! Unused locals: a variable that is declared, perhaps given a value, and mentioned nowhere else in its function.

use super::names::{self, Place};
use super::roles::Role;
use super::{Dead, Walk, shown};
use crate::domain::{Confidence, Priority, Severity};
use crate::provider::builtin::language::Language;
use crate::provider::builtin::smells::Smell;
use crate::provider::builtin::source::NodeIndex;

/// A declaration of a local name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Local {
    name: NodeIndex,
    /// The declaration or assignment.
    declaration: NodeIndex,
    /// Where it is looked for.
    start: NodeIndex,
    end: NodeIndex,
}

/// Calls that see locals by their names.
const REFLECTION: &[&str] = &[
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

impl Walk<'_, '_> {
    /// A declaration, by its node's kind.
    pub(super) fn declarator(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let node = source.nodes[index];
        let parent = source.nodes[node.parent as usize];
        match source.language {
            Language::Rust => {
                if let Some(pattern) = source.child_in(index, fields.pattern)
                    && kinds.identifier.is(source.nodes[pattern].kind)
                    && !self.before(index).is_some_and(|before| source.bytes(before).starts_with(b"#["))
                {
                    self.local(pattern, index);
                }
            }
            Language::JavaScript | Language::TypeScript | Language::Tsx => self.script_declarator(index),
            Language::Java => {
                if kinds.local_variable_declaration.is(parent.kind)
                    && let Some(name) = source.child_in(index, fields.name)
                {
                    self.local(name, node.parent as usize);
                }
            }
            Language::CSharp => {
                let outer = source.nodes[parent.parent as usize];
                if kinds.local_declaration_statement.is(outer.kind)
                    && !source.bytes(&outer).starts_with(b"using")
                    && !source.bytes(&outer).starts_with(b"await")
                    && let Some(name) = source.child_in(index, fields.name)
                {
                    self.local(name, parent.parent as usize);
                }
            }
            Language::C | Language::Cpp => self.c_declaration(index),
            Language::Bash => self.bash_declaration(index),
            // Go's compiler accepts no unused locals.
            _ => {}
        }
    }

    /// An assignment: in Python, Ruby and PHP it declares.
    pub(super) fn assignment(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let Some(left) = source.child_in(index, fields.left) else { return };
        let kind = source.nodes[left].kind;
        match source.language {
            Language::Python if kinds.identifier.is(kind) && self.in_function() => self.local(left, index),
            Language::Ruby if kinds.identifier.is(kind) && !self.is_value_of_block(index) => self.local(left, index),
            Language::Php if kinds.variable_name.is(kind) => {
                if let Some(name) = source.children(left).find(|&child| kinds.name.is(source.nodes[child].kind)) {
                    self.local(name, index);
                }
            }
            _ => {}
        }
    }

    /// The last statement of a Ruby method gives its value, and so does an assignment inside of an expression.
    fn is_value_of_block(&self, index: NodeIndex) -> bool {
        let source = self.source;
        let parent = source.nodes[index].parent as usize;
        self.roles.role(source.nodes[parent].kind) != Role::Block
            || source.nodes[index].end_index == source.nodes[parent].end_index
    }

    fn script_declarator(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let node = source.nodes[index];
        let declaration = node.parent as usize;
        let around = source.nodes[source.nodes[declaration].parent as usize];
        let Some(name) = source.child_in(index, fields.name) else { return };
        if kinds.export_statement.is(around.kind)
            || kinds.ambient_declaration.is(around.kind)
            || source.path.ends_with(".d.ts")
        {
            return;
        }
        let at_top = self.scopes.is_empty();
        if kinds.identifier.is(source.nodes[name].kind) {
            let value = source.child_in(index, fields.value);
            if at_top && value.is_some_and(|value| source.bytes(&source.nodes[value]).starts_with(b"require(")) {
                if self.limits.dead_code.unused_imports
                    && source.children(declaration).filter(|&child| child == index).count() == 1
                {
                    self.require(declaration, name);
                }
                return;
            }
            self.local(name, index);
        } else if kinds.object_pattern.is(source.nodes[name].kind) {
            let parts = || source.children(name).filter(|&child| source.nodes[child].is_named());
            // `const { a, ...rest } = x` takes `a` out of the rest.
            if parts().any(|part| kinds.rest_pattern.is(source.nodes[part].kind)) {
                return;
            }
            for part in parts() {
                if kinds.shorthand_property_identifier_pattern.is(source.nodes[part].kind) {
                    self.local(part, index);
                }
            }
        }
    }

    fn c_declaration(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let node = source.nodes[index];
        let parent = source.nodes[node.parent as usize];
        // Not in a head of `for` or `if`, and not at file scope.
        if !kinds.declaration.is(node.kind) || self.roles.role(parent.kind) != Role::Block {
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
        // An object of C++ may be there for its constructor and destructor.
        if source.language == Language::Cpp {
            let kind = source.child_in(index, fields.kind).map(|kind| source.bytes(&source.nodes[kind]));
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
                    self.local(inner, index);
                    break;
                }
                let Some(next) = source.child_in(inner, fields.declarator) else { break };
                inner = next;
            }
        }
    }

    fn bash_declaration(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        if !source.bytes(&source.nodes[index]).starts_with(b"local") {
            return;
        }
        for child in source.children(index).collect::<Vec<_>>() {
            let name = if kinds.variable_name.is(source.nodes[child].kind) {
                Some(child)
            } else {
                source.child_in(child, fields.name).filter(|&name| kinds.variable_name.is(source.nodes[name].kind))
            };
            if let Some(name) = name {
                self.local(name, index);
            }
        }
    }

    fn local(&mut self, name: NodeIndex, declaration: NodeIndex) {
        let source = self.source;
        if !self.limits.dead_code.unused_locals {
            return;
        }
        let is_script = matches!(source.language, Language::JavaScript | Language::TypeScript | Language::Tsx);
        let (start, end) = match self.function_scope() {
            // Functions that a function of the shell calls see its locals.
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
            for word in REFLECTION {
                self.names.want(word.as_bytes());
            }
        }
        self.names.want(bytes);
        self.locals.push(Local { name, declaration, start, end });
    }

    pub(super) fn report_locals(&self, out: &mut Vec<Smell>) {
        let source = self.source;
        if self.is_example() {
            return;
        }
        // A macro's text may mean any local.
        let macros_count = matches!(source.language, Language::C | Language::Cpp);
        let declared: Vec<NodeIndex> = {
            let mut nodes: Vec<NodeIndex> = self.locals.iter().map(|local| local.name).collect();
            nodes.sort_unstable();
            nodes
        };
        let is_declaration = |node: NodeIndex| declared.binary_search(&node).is_ok();
        for local in &self.locals {
            let bytes = source.bytes(&source.nodes[local.name]);
            let at_top = local.start == 0 && source.language != Language::Bash;
            if at_top && (!self.is_module || self.facts.is_test_file) {
                continue;
            }
            let places = self.names.places_in(bytes, local.start, local.end);
            let mut first = None;
            let mut declarations = 0;
            let is_used = places.iter().any(|&place| match place {
                Place::Comment(_) => false,
                Place::Text(_) => true,
                Place::Name(node) if is_declaration(node) => {
                    first.get_or_insert(node);
                    declarations += 1;
                    false
                }
                Place::Name(node) => !names::is_member(source, node),
            });
            let is_used = is_used
                || (macros_count && self.names.places(bytes).iter().any(|place| matches!(place, Place::Text(_))));
            // Several declarations of one name: one finding, at the first. In PHP a variable may be a reference.
            let only_one = matches!(source.language, Language::Php | Language::Bash | Language::Ruby);
            if is_used || first != Some(local.name) || (only_one && declarations > 1) {
                continue;
            }
            if self.has_error_in(local.start, local.end)
                || names::is_silenced(source, &source.nodes[local.declaration])
                || (local.start != 0 && self.sees_names(local))
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
            let place = if function.is_empty() { "the file".to_owned() } else { format!("`{}`", shown(function)) };
            out.push(
                Dead {
                    node: local.name,
                    priority: Priority::P3,
                    severity: Severity::Low,
                    confidence,
                    title: format!("unused variable `{}`", shown(name)),
                    explanation: format!("`{}` is set and stands nowhere else in {place}.", shown(name)),
                    subject: format!("local {function} {name}"),
                    suggestion: None,
                }
                .smell(source),
            );
        }
    }

    /// Whether the function asks for its locals by name.
    fn sees_names(&self, local: &Local) -> bool {
        matches!(self.source.language, Language::Python | Language::Php | Language::Ruby | Language::JavaScript)
            && REFLECTION.iter().any(|word| {
                self.names
                    .places_in(word.as_bytes(), local.start, local.end)
                    .iter()
                    .any(|place| matches!(place, Place::Name(_)))
            })
    }
}
