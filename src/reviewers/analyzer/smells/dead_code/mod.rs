//! DEAD_CODE: reports unused imports, locals, parameters and private functions, unreachable statements, and constant
//! conditions.
//!
//! A name counts as used if it occurs anywhere else in its scope, even in a string: findings are certain rather than
//! complete. Locals and parameters in code with syntax errors are not reported; unused functions of a file with syntax
//! errors have low confidence.

mod functions;
mod imports;
mod locals;
mod reachability;

use serde::Deserialize;

use super::{CheckedFile, GrowthComparison, Smell, SmellDefinition};
use crate::domain::{Kind, LineRange};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::conventions::conventions;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::node_roles::{SmellNodeRole, SmellNodeRoles};
use crate::syntax::occurrences::{self, NameOccurrences};
use crate::syntax::source::{Node, NodeIndex, ParsedFile};

/// DEAD_CODE in the registry.
pub const SMELL: SmellDefinition = SmellDefinition { kind: Kind::DeadCode, check, growth: GrowthComparison::None };

/// Thresholds of DEAD_CODE: the table `dead_code` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadCodeLimits {
    pub enabled: bool,
    pub unused_imports: bool,
    pub unused_locals: bool,
    pub unused_parameters: bool,
    pub unused_private_functions: bool,
    pub unreachable_statements: bool,
    pub constant_conditions: bool,
}

/// Reports the dead code of a file.
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, limits, .. } = *file;
    let mut walk = DeadCodeCollector::new(source, facts, limits);
    walk.collect();
    walk.names.scan(source);
    walk.report(out);
}

/// A function or class around the current node.
#[derive(Debug, Clone, Copy)]
struct LexicalScope {
    node: NodeIndex,
    end: NodeIndex,
    is_function: bool,
    /// Ruby: methods from here on are private.
    private: bool,
}

/// A single pass over the nodes that collects what may be unused.
struct DeadCodeCollector<'a, 's> {
    source: &'a ParsedFile<'s>,
    facts: &'a FileFacts,
    limits: &'a Limits,
    roles: &'static SmellNodeRoles,
    names: NameOccurrences,
    scopes: Vec<LexicalScope>,
    imports: Vec<imports::ImportedName>,
    locals: Vec<locals::LocalVariable>,
    functions: Vec<functions::UnusedFunctionCandidate>,
    flow: Vec<Smell>,
    /// Nodes that the parser could not interpret.
    errors: Vec<NodeIndex>,
    /// True if the file has imports or exports, so that other files do not see its top level.
    is_module: bool,
    /// Rust: true if other files are modules below this one; `None` until first needed.
    child_modules: Option<bool>,
    /// Rust: true if the file has `#![allow(dead_code)]`.
    allows_dead_code: bool,
}

impl<'a, 's> DeadCodeCollector<'a, 's> {
    fn new(source: &'a ParsedFile<'s>, facts: &'a FileFacts, limits: &'a Limits) -> Self {
        Self {
            source,
            facts,
            limits,
            roles: SmellNodeRoles::for_language(source.language),
            names: NameOccurrences::default(),
            scopes: Vec::with_capacity(16),
            imports: Vec::new(),
            locals: Vec::new(),
            functions: Vec::new(),
            flow: Vec::new(),
            errors: Vec::new(),
            is_module: false,
            child_modules: None,
            allows_dead_code: source.language == Language::Rust
                && memchr::memmem::find(source.text, b"#![allow(dead_code").is_some(),
        }
    }

    fn collect(&mut self) {
        let nodes = &self.source.nodes;
        for (index, node) in nodes.iter().enumerate() {
            while self.scopes.last().is_some_and(|scope| scope.end <= index) {
                self.scopes.pop();
            }
            if node.is_error() {
                self.errors.push(index);
            }
            match self.roles.role(node.kind) {
                SmellNodeRole::None => {
                    if self.source.language == Language::Ruby {
                        self.apply_ruby_visibility(index, node);
                    } else if self.roles.kinds.export_statement.is(node.kind) {
                        self.is_module = true;
                    } else if self.source.language == Language::Bash && self.roles.kinds.command.is(node.kind) {
                        self.check_bash_command(index);
                    }
                }
                SmellNodeRole::Import => self.collect_import(index),
                SmellNodeRole::Function => {
                    self.collect_function(index);
                    self.open_scope(index, node, true);
                }
                SmellNodeRole::Class => self.open_scope(index, node, false),
                SmellNodeRole::Declarator => self.collect_declarator(index),
                SmellNodeRole::Assignment => self.collect_assignment(index),
                SmellNodeRole::Terminator => self.check_terminator(index),
                SmellNodeRole::Branch => self.check_condition(index, false),
                SmellNodeRole::Loop => self.check_condition(index, true),
                _ => {}
            }
        }
    }

    fn open_scope(&mut self, index: NodeIndex, node: &Node, is_function: bool) {
        self.scopes.push(LexicalScope { node: index, end: node.end_index as usize, is_function, private: false });
    }

    /// Handles `private`, `public` and `protected` without arguments in a Ruby class.
    fn apply_ruby_visibility(&mut self, index: NodeIndex, node: &Node) {
        if self.roles.kinds.identifier.is(node.kind)
            && self.roles.kinds.body_statement.is(self.source.nodes[node.parent as usize].kind)
            && let Some(scope) = self.scopes.last_mut()
            && !scope.is_function
            && self.source.nodes[node.parent as usize].parent as usize == scope.node
        {
            match self.source.bytes(&self.source.nodes[index]) {
                b"private" => scope.private = true,
                b"public" | b"protected" => scope.private = false,
                _ => {}
            }
        }
    }

    /// Returns the outermost function around the current node. Its names are searched in all of it.
    fn function_scope(&self) -> Option<LexicalScope> {
        self.scopes.iter().copied().find(|scope| scope.is_function)
    }

    /// Returns whether the current node is in a function, and not in a class inside that function.
    fn is_in_function(&self) -> bool {
        self.scopes.last().is_some_and(|scope| scope.is_function)
    }

    fn has_error_in(&self, start: NodeIndex, end: NodeIndex) -> bool {
        let first = self.errors.partition_point(|&error| error < start);
        self.errors.get(first).is_some_and(|&error| error < end)
    }

    /// Returns whether the file is an example for readers, whose variables only show what one can write.
    fn is_example(&self) -> bool {
        self.source.path.rsplit('/').skip(1).any(|folder| {
            let folder = folder.to_ascii_lowercase();
            matches!(
                folder.as_str(),
                "examples" | "example" | "snippets" | "samples" | "sample" | "docs" | "demo" | "demos" | "docs_src"
            )
        })
    }

    /// Returns the bytes from the start of a node to the start of another node in it: modifiers, annotations.
    fn head_bytes(&self, from: NodeIndex, to: NodeIndex) -> &'s [u8] {
        let (from, to) = (self.source.nodes[from].start as usize, self.source.nodes[to].start as usize);
        self.source.text.get(from..to).unwrap_or_default()
    }

    /// Returns whether an occurrence names a member, so that it cannot use a variable of that name.
    fn is_only_member(&self, index: NodeIndex) -> bool {
        occurrences::is_member(self.source, index) && !conventions(self.source.language).members_may_be_variables
    }

    /// Returns the previous named sibling of a node, comments ignored.
    fn prev_named_sibling(&self, index: NodeIndex) -> Option<&'a Node> {
        let mut at = index;
        loop {
            at = self.source.prev_sibling(at)?;
            let node = &self.source.nodes[at];
            if node.is_named() && self.roles.role(node.kind) != SmellNodeRole::Comment {
                return Some(node);
            }
        }
    }

    /// Returns the lines of a statement; `None` if other code is on them.
    fn own_lines(&self, node: &Node) -> Option<LineRange> {
        let before = self.source.text.get(..node.start as usize)?;
        let behind = self.source.text.get(node.end as usize..)?;
        let line_before = memchr::memrchr(b'\n', before).map_or(before, |at| &before[at + 1..]);
        let line_behind = memchr::memchr(b'\n', behind).map_or(behind, |at| &behind[..at]);
        let is_alone = line_before.trim_ascii().is_empty() && matches!(line_behind.trim_ascii(), b"" | b";");
        // A node may include its own line end.
        let last = if self.source.bytes(node).ends_with(b"\n") { node.end_row } else { node.end_row + 1 };
        is_alone.then(|| LineRange::new(node.row + 1, last.max(node.row + 1)))
    }

    fn report(mut self, out: &mut Vec<Smell>) {
        out.append(&mut self.flow);
        self.report_imports(out);
        self.report_locals(out);
        if self.source.language == Language::Rust {
            self.has_child_modules();
        }
        self.report_functions(out);
    }
}

/// Shortens a name to 60 characters, for a title.
fn shorten_name(name: &str) -> String {
    if name.chars().count() <= 60 { name.to_owned() } else { name.chars().take(59).chain(['…']).collect() }
}

#[cfg(test)]
mod tests;
