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

use std::collections::HashSet;

use serde::Deserialize;

use super::{CheckedFile, GrowthComparison, Smell, SmellDefinition};
use crate::domain::{Confidence, Kind, LineRange};
use crate::reviewers::analyzer::limits::Limits;
use crate::reviewers::analyzer::other_files::NeighbourFiles;
use crate::syntax::conventions::conventions;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::node_roles::{SmellNodeRole, SmellNodeRoles};
use crate::syntax::occurrences::{self, NameOccurrences};
use crate::syntax::source::{MAX_SEARCHED_BYTES, Node, NodeIndex, ParsedFile};

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
    let mut walk = DeadCodeCollector::new(file);
    let source = file.source;
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
    /// Rust: an attribute of this scope or of one around it allows unused code.
    allows_unused: bool,
    /// Rust: a trait, or the implementation of one.
    is_trait: bool,
}

/// Maximum length of a line of code that becomes a part of a finding, in bytes.
const MAX_LINE_BYTES: usize = 2_000;

/// A single pass over the nodes that collects what may be unused.
struct DeadCodeCollector<'a, 's> {
    source: &'a ParsedFile<'s>,
    facts: &'a FileFacts,
    limits: &'a Limits,
    roles: &'static SmellNodeRoles,
    names: NameOccurrences,
    scopes: Vec<LexicalScope>,
    /// Index in `scopes` of the outermost function.
    outer_function: Option<usize>,
    imports: Vec<imports::ImportedName>,
    locals: Vec<locals::LocalVariable>,
    functions: Vec<functions::UnusedFunctionCandidate>,
    flow: Vec<Smell>,
    /// Nodes that the parser could not interpret.
    errors: Vec<NodeIndex>,
    /// True if the file has imports or exports, so that other files do not see its top level.
    is_module: bool,
    /// Rust: true if other files are modules below this one, which may use its private names.
    child_modules: bool,
    /// Rust: true if an attribute may name the file of a child module: `#[path = "…"]`.
    has_path_attribute: bool,
    other_files: Option<&'a NeighbourFiles<'a>>,
    /// Names in the imports of the file.
    imported: HashSet<&'s [u8]>,
    /// Rust: true if the file has `#![allow(dead_code)]`.
    allows_dead_code: bool,
}

impl<'a, 's> DeadCodeCollector<'a, 's> {
    fn new(file: &CheckedFile<'a, 's>) -> Self {
        let CheckedFile { source, facts, limits, other_files, .. } = *file;
        Self {
            source,
            facts,
            limits,
            roles: SmellNodeRoles::for_language(source.language),
            names: NameOccurrences::default(),
            scopes: Vec::with_capacity(16),
            outer_function: None,
            imports: Vec::new(),
            locals: Vec::new(),
            functions: Vec::new(),
            flow: Vec::new(),
            errors: Vec::new(),
            is_module: false,
            child_modules: source.language == Language::Rust && has_child_modules(source),
            has_path_attribute: source.language == Language::Rust
                && memchr::memmem::find(source.text, b"#[path").is_some(),
            other_files,
            imported: HashSet::new(),
            allows_dead_code: source.language == Language::Rust
                && memchr::memmem::find(source.text, b"#![allow(dead_code").is_some(),
        }
    }

    fn collect(&mut self) {
        let source = self.source;
        for (index, node) in source.walk() {
            while self.scopes.last().is_some_and(|scope| scope.end <= index) {
                self.scopes.pop();
            }
            self.outer_function = self.outer_function.filter(|outer| *outer < self.scopes.len());
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
                SmellNodeRole::Import => {
                    let is_name =
                        |at: &NodeIndex| source.nodes[*at].end_index as usize == at + 1 && source.nodes[*at].is_named();
                    let leaves = source.descendants(index).filter(is_name).map(|at| source.bytes(&source.nodes[at]));
                    self.imported.extend(leaves.take_while(|_| source.work().spend(1)));
                    self.collect_import(index);
                }
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
        let is_rust = self.source.language == Language::Rust;
        let is_around = self.scopes.last().is_some_and(|scope| scope.allows_unused);
        let allows_unused = is_rust
            && (is_around
                || self.attribute_before(index).is_some_and(|text| memchr::memmem::find(text, b"allow").is_some()));
        if is_function && self.outer_function.is_none() {
            self.outer_function = Some(self.scopes.len());
        }
        let is_trait = is_rust && functions::is_trait(self.roles, self.source, node);
        let end = node.end_index as usize;
        self.scopes.push(LexicalScope { node: index, end, is_function, private: false, allows_unused, is_trait });
    }

    /// Returns the attribute of Rust that stands directly before a node.
    fn attribute_before(&self, index: NodeIndex) -> Option<&'s [u8]> {
        self.prev_named_sibling(index).map(|before| self.source.bytes(before)).filter(|text| text.starts_with(b"#["))
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
        self.outer_function.and_then(|outer| self.scopes.get(outer).copied())
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
        self.source.text.get(from..to.min(from + MAX_SEARCHED_BYTES)).unwrap_or_default()
    }

    /// Returns whether an occurrence names a member, so that it cannot use a variable of that name.
    fn is_only_member(&self, index: NodeIndex) -> bool {
        occurrences::is_member(self.source, index) && !conventions(self.source.language).members_may_be_variables
    }

    /// Returns the previous named sibling of a node, comments ignored.
    fn prev_named_sibling(&self, index: NodeIndex) -> Option<&'a Node> {
        let mut at = index;
        loop {
            at = self.source.prev_sibling(at).filter(|_| self.source.work().spend(1))?;
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

    /// Returns how certain it is that no child module of a Rust file uses one of its private names: `None` if one does,
    /// or if nobody knows where the children are; [`Confidence::Low`] if the other files are not known.
    fn confidence_beside_children(
        &self,
        name: &[u8],
        use_texts: &[&str],
        confidence: Confidence,
    ) -> Option<Confidence> {
        if !self.child_modules {
            return Some(confidence);
        }
        if self.has_path_attribute {
            return None;
        }
        // Without the other files, a child may use it.
        let Some(files) = self.other_files else { return Some(Confidence::Low) };
        let path = self.source.path;
        let (folder, file) =
            path.rsplit_once('/').map_or(("", path), |(_, file)| (&path[..path.len() - file.len()], file));
        let below = match file {
            "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
            _ => format!("{folder}{}/", file.trim_end_matches(".rs")),
        };
        let name = std::str::from_utf8(name).ok()?;
        let is_used = self.source.work().exclude_time(|| files.is_mentioned_below(&below, ".rs", name, use_texts));
        (!is_used).then_some(confidence)
    }

    /// Returns whether a name belongs to an imported module or class: `load` in `json.load`. It is no name of this file.
    fn is_of_import(&self, index: NodeIndex) -> bool {
        let Some(owner) = occurrences::qualifier(self.source, index) else { return false };
        // A child of a module may import the module itself.
        let is_own = self
            .source
            .path
            .rsplit('/')
            .take(2)
            .any(|part| part.split('.').next() == std::str::from_utf8(owner.name).ok());
        // `a.json.load`: the member of an object may have the name of a module.
        !owner.is_member && !is_own && self.imported.contains(owner.name)
    }

    fn report(mut self, out: &mut Vec<Smell>) {
        out.append(&mut self.flow);
        self.report_imports(out);
        self.report_locals(out);
        self.report_functions(out);
    }
}

/// Returns whether a file of Rust has child modules in other files: `mod name;`.
fn has_child_modules(source: &ParsedFile<'_>) -> bool {
    let kinds = &SmellNodeRoles::for_language(source.language).kinds;
    source.nodes.iter().any(|node| kinds.mod_item.is(node.kind) && source.bytes(node).ends_with(b";"))
}

/// Shortens a name to 60 characters, for a title.
fn shorten_name(name: &str) -> String {
    if name.chars().count() <= 60 { name.to_owned() } else { name.chars().take(59).chain(['…']).collect() }
}

#[cfg(test)]
mod function_tests;
#[cfg(test)]
mod tests;
