//! Reads the declarations of a file from its syntax tree: kinds, names, rows and nesting.
//!
//! - Makes one pass over the nodes, whatever their nesting. Function bodies are not visited.

use std::collections::HashSet;

use super::ChunkKind;
use super::lines::RowRange;
use super::roles::{OutlineRole, OutlineRoles};
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::source::{Node, NodeIndex, ParsedFile};

/// Declaration that may become a chunk.
pub struct OutlineItem<'a> {
    pub kind: ChunkKind,
    pub name: &'a str,
    /// Name of the enclosing item or of the owner type; may be empty.
    pub scope: &'a str,
    /// Index of the enclosing item.
    pub parent: Option<usize>,
    /// Includes the comments and attributes above the declaration.
    pub rows: RowRange,
    /// From the first word to the start of the body.
    pub head: RowRange,
}

/// A declared name.
pub struct OutlineName<'a> {
    pub text: &'a str,
    pub row: u32,
    /// Rows of a field or variable, at most a few; `None` for the name of an item.
    pub rows: Option<RowRange>,
    /// Index of the item with this name; for a field or variable, the enclosing item.
    pub item: Option<usize>,
}

/// Outline of a file; items and names are in source order.
#[derive(Default)]
pub struct Outline<'a> {
    pub items: Vec<OutlineItem<'a>>,
    pub names: Vec<OutlineName<'a>>,
}

/// Longest name in bytes; a longer text is not used as a name.
const MAX_NAME_BYTES: usize = 120;
/// Largest number of rows that are shown of a declaration's head and of a field.
const MAX_HEAD_ROWS: u32 = 12;
const MAX_FIELD_ROWS: u32 = 3;
/// A C variable that spans more rows than this is treated as a table and becomes a constant.
const MIN_TABLE_ROWS: u32 = 3;
/// Deepest nesting of C declarators that is followed; deeper nesting is not real code.
const MAX_DECLARATORS: usize = 16;

/// Node whose children are being visited.
struct OpenOutlineNode<'a> {
    end: usize,
    /// Innermost enclosing item, and its name.
    item: Option<usize>,
    name: &'a str,
}

/// Reads the outline of a file in one pass over its syntax nodes.
pub fn read_outline<'a>(source: &ParsedFile<'a>, facts: &FileFacts) -> Outline<'a> {
    let reader = OutlineReader {
        source,
        facts,
        test_classes: facts.classes.iter().filter(|class| class.is_test).map(|class| class.node).collect(),
        roles: OutlineRoles::for_language(source.language),
        outline: Outline::default(),
        open: Vec::new(),
        wrapper: None,
        leading: None,
        condition_row: None,
        code_row: None,
    };
    reader.run()
}

struct OutlineReader<'s, 'a> {
    source: &'s ParsedFile<'a>,
    facts: &'s FileFacts,
    test_classes: HashSet<NodeIndex>,
    roles: &'static OutlineRoles,
    outline: Outline<'a>,
    open: Vec<OpenOutlineNode<'a>>,
    /// Wrapper of the next declaration (for example an `export` statement): end index and rows.
    wrapper: Option<(usize, RowRange)>,
    /// Rows of the comments and attributes directly above.
    leading: Option<RowRange>,
    /// Row of the last preprocessor condition; nodes on this row belong to the condition itself.
    condition_row: Option<u32>,
    /// Last row on which another node ends.
    code_row: Option<u32>,
}

impl<'a> OutlineReader<'_, 'a> {
    fn run(mut self) -> Outline<'a> {
        let nodes = &self.source.nodes;
        let mut at = 1;
        while let Some(node) = nodes.get(at) {
            while self.open.last().is_some_and(|open| open.end <= at) {
                self.open.pop();
            }
            let end = node.end_index as usize;
            let role = self.role(node);
            if role == OutlineRole::Leading {
                self.add_leading((node.row, last_row(self.source, node)));
                at = end;
                continue;
            }
            if self.visit(at, node, role) && at + 1 < end {
                at += 1;
            } else {
                at = end;
                self.code_row = self.code_row.max(Some(last_row(self.source, node)));
            }
        }
        self.outline
    }

    fn role(&self, node: &Node) -> OutlineRole {
        match (node.is_error(), node.is_named()) {
            (true, _) => OutlineRole::Scope,
            (_, true) => self.roles.role(node.kind),
            (_, false) => OutlineRole::Token,
        }
    }

    /// Records a comment or attribute as leading the next declaration, unless it stands behind code on the same line.
    fn add_leading(&mut self, (first, last): RowRange) {
        let joins = self.leading.filter(|lead| lead.1 + 1 >= first);
        if self.code_row.is_none_or(|row| row < first) || joins.is_some() {
            self.leading = Some((joins.map_or(first, |lead| lead.0), last));
        }
    }

    /// Processes a node and returns true if its children must be visited.
    fn visit(&mut self, at: NodeIndex, node: &Node, role: OutlineRole) -> bool {
        match role {
            OutlineRole::Token | OutlineRole::Leading => {}
            OutlineRole::Other if self.condition_row == Some(node.row) => {
                self.leading = self.leading.map(|lead| (lead.0, last_row(self.source, node)));
            }
            OutlineRole::Other => self.leading = None,
            OutlineRole::Scope => {
                self.leading = None;
                return true;
            }
            OutlineRole::Condition => {
                self.add_leading((node.row, node.row));
                self.condition_row = Some(node.row);
                return true;
            }
            OutlineRole::TestScope => {
                self.leading = None;
                return self.innermost().is_some_and(|item| self.outline.items[item].kind == ChunkKind::Test);
            }
            OutlineRole::Namespace => {
                self.leading = None;
                let name = self.field_text(at, self.roles.fields.name);
                let item = self.innermost();
                return self.enter(node, item, name);
            }
            OutlineRole::Wrapper => {
                let rows = (self.take_first_row(node.row), last_row(self.source, node));
                self.wrapper = Some((node.end_index as usize, rows));
                return true;
            }
            OutlineRole::Function => {
                let (name, owner) = self.function_name(at);
                let kind = self.kind_or_test(at, ChunkKind::Function);
                self.declare(at, kind, name, owner);
            }
            OutlineRole::Class => return self.add_class(at, ChunkKind::Class),
            OutlineRole::Interface => return self.add_class(at, ChunkKind::Interface),
            OutlineRole::Type => return self.add_class(at, ChunkKind::Type),
            OutlineRole::Constant if self.is_in_class() => {
                self.add_fields(at);
                return true;
            }
            OutlineRole::Constant => {
                let name = self.declared_name(at);
                let item = self.declare(at, ChunkKind::Constant, name, "");
                return self.enter(node, Some(item), name);
            }
            OutlineRole::Field => self.add_fields(at),
            OutlineRole::Ambiguous => return self.add_ambiguous(at, node),
        }
        false
    }

    fn innermost(&self) -> Option<usize> {
        self.open.last().and_then(|open| open.item)
    }

    fn is_in_class(&self) -> bool {
        self.innermost().is_some_and(|item| self.outline.items[item].kind != ChunkKind::Test)
    }

    /// Returns the name of the innermost enclosing item.
    fn scope(&self) -> &'a str {
        self.open.last().map_or("", |open| open.name)
    }

    fn enter(&mut self, node: &Node, item: Option<usize>, name: &'a str) -> bool {
        let name = if name.is_empty() { self.scope() } else { name };
        self.open.push(OpenOutlineNode { end: node.end_index as usize, item, name });
        true
    }

    /// Returns [`ChunkKind::Test`] for test code, otherwise `kind`.
    fn kind_or_test(&self, at: NodeIndex, kind: ChunkKind) -> ChunkKind {
        match self.facts.is_test_at(at) || self.is_test_function(at) {
            true => ChunkKind::Test,
            false => kind,
        }
    }

    fn is_test_function(&self, at: NodeIndex) -> bool {
        let functions = &self.facts.functions;
        let found = functions.binary_search_by_key(&at, |function| function.node).ok();
        found.and_then(|found| functions.get(found)).is_some_and(|function| function.is_test)
    }

    fn add_class(&mut self, at: NodeIndex, kind: ChunkKind) -> bool {
        let (source, fields) = (self.source, &self.roles.fields);
        let node = &source.nodes[at];
        let name = self.declared_name(at);
        if matches!(source.language, Language::C | Language::Cpp) {
            if node.field == fields.kind {
                // `typedef struct a { ... } b;`: the typedef is the declaration.
                let item = self.innermost();
                self.outline.names.push(OutlineName { text: name, row: node.row, rows: None, item });
                return true;
            }
            let says_what = [fields.body, fields.declarator, fields.kind];
            if kind != ChunkKind::Interface && says_what.iter().all(|&field| source.child_by_field(at, field).is_none())
            {
                // `struct a;`
                self.leading = None;
                return false;
            }
        }
        let kind = match (source.language, kind) {
            (Language::Go, _) if self.has_type(at, b"interface") => ChunkKind::Interface,
            (Language::Python, _) if self.bases(at).any(|base| matches!(base, "Protocol" | "ABC")) => {
                ChunkKind::Interface
            }
            (_, ChunkKind::Class) if self.has_keyword(at, b"interface") => ChunkKind::Interface,
            _ => kind,
        };
        let is_test = kind == ChunkKind::Class && self.test_classes.contains(&at);
        let kind = if is_test { ChunkKind::Test } else { self.kind_or_test(at, kind) };
        let item = match source.language == Language::Rust && source.child_by_field(at, fields.name).is_none() {
            // An `impl` block declares no name.
            true => self.add_item(at, kind, name, ""),
            false => self.declare(at, kind, name, ""),
        };
        self.enter(node, Some(item), name)
    }

    /// Returns whether a keyword is a child of a node.
    fn has_keyword(&self, at: NodeIndex, keyword: &[u8]) -> bool {
        let mut children = self.source.children(at).map(|child| &self.source.nodes[child]);
        children.any(|child| !child.is_named() && self.source.bytes(child) == keyword)
    }

    fn has_type(&self, at: NodeIndex, starts: &[u8]) -> bool {
        let kind = self.source.child_by_field(at, self.roles.fields.kind);
        kind.is_some_and(|kind| self.source.bytes(&self.source.nodes[kind]).starts_with(starts))
    }

    fn bases(&self, at: NodeIndex) -> impl Iterator<Item = &'a str> + '_ {
        let list = self.source.child_by_field(at, self.roles.fields.superclasses);
        list.into_iter().flat_map(|list| self.source.children(list)).map(|base| {
            let text = self.source.text_prefix(&self.source.nodes[base], MAX_NAME_BYTES);
            let text = text.split('[').next().unwrap_or(text);
            text.rsplit('.').next().unwrap_or(text)
        })
    }

    /// Decides by its content whether a node is a declaration, and adds it. Returns true if its children must be
    /// visited.
    fn add_ambiguous(&mut self, at: NodeIndex, node: &Node) -> bool {
        let (source, fields) = (self.source, &self.roles.fields);
        match source.language {
            Language::C | Language::Cpp => {
                let kind = source.child_by_field(at, fields.kind);
                if let Some(kind) = kind.filter(|&kind| source.child_by_field(kind, fields.body).is_some()) {
                    let name = self.field_text(kind, fields.name);
                    let item = self.declare(at, ChunkKind::Type, name, "");
                    return self.enter(node, Some(item), name);
                }
                if last_row(source, node) - node.row >= MIN_TABLE_ROWS && !self.is_in_class() {
                    let (name, _) = self.function_name(at);
                    self.declare(at, ChunkKind::Constant, name, "");
                } else {
                    self.add_fields(at);
                }
            }
            Language::Python => {
                let left = source.children(at).next().and_then(|child| source.child_by_field(child, fields.left));
                let name = left.map_or("", |left| plain_name(source, left));
                self.add_variable(at, name, is_constant_name(name));
            }
            Language::Ruby => {
                if let Some(left) = source.child_by_field(at, fields.left) {
                    let name = plain_name(source, left);
                    self.add_variable(at, name, name.starts_with(|c: char| c.is_uppercase()));
                    return false;
                }
                return self.add_test_call(at, at, node);
            }
            _ => {
                let Some(child) = source.children(at).find(|&child| source.nodes[child].is_named()) else {
                    self.leading = None;
                    return false;
                };
                if self.roles.calls.contains(source.nodes[child].kind) {
                    return self.add_test_call(at, child, node);
                }
                // The grammar parses `namespace a {}` as a statement.
                if self.roles.role(source.nodes[child].kind) == OutlineRole::Namespace {
                    return true;
                }
                // `a.b = function () {}`, `const b = () => {}`, or `b = () => {}` in a class.
                let own = source.child_by_field(at, fields.value).map(|_| at);
                let holder = own.unwrap_or(child);
                let value =
                    [fields.right, fields.value].into_iter().find_map(|field| source.child_by_field(holder, field));
                let place =
                    [fields.left, fields.name].into_iter().find_map(|field| source.child_by_field(holder, field));
                let name =
                    place.map_or("", |place| last_word(source.text_prefix(&source.nodes[place], MAX_NAME_BYTES + 1)));
                let is_statement = source.child_by_field(holder, fields.left).is_some();
                match value.map(|value| self.value_kind(value)) {
                    Some(Some(kind)) if !name.is_empty() => {
                        let kind = self.kind_or_test(at, kind);
                        let item = self.declare(at, kind, name, "");
                        if kind == ChunkKind::Class {
                            return self.enter(node, Some(item), name);
                        }
                    }
                    _ if is_statement => self.leading = None,
                    _ => {
                        let is_constant = source.text_prefix(node, 6) == "const ";
                        self.add_variable(at, name, is_constant);
                    }
                }
            }
        }
        false
    }

    /// Returns the kind of a value that is a function, a class, or a call with a function argument such as `memo(() =>
    /// ...)`.
    fn value_kind(&self, value: NodeIndex) -> Option<ChunkKind> {
        let (source, roles) = (self.source, self.roles);
        let node = &source.nodes[value];
        if roles.functions.contains(node.kind) {
            return Some(ChunkKind::Function);
        }
        if roles.role(node.kind) == OutlineRole::Class {
            return Some(ChunkKind::Class);
        }
        let arguments = source.child_by_field(value, roles.fields.arguments)?;
        let given = source.children(arguments).any(|child| roles.functions.contains(source.nodes[child].kind));
        given.then_some(ChunkKind::Function)
    }

    fn add_variable(&mut self, at: NodeIndex, name: &'a str, is_constant: bool) {
        if name.is_empty() || self.innermost().is_some_and(|item| self.outline.items[item].kind == ChunkKind::Test) {
            self.leading = None;
        } else if is_constant && !self.is_in_class() {
            self.declare(at, ChunkKind::Constant, name, "");
        } else {
            self.add_field(at, name);
        }
    }

    /// Adds a test block such as `describe("name", () => { ... })` or `test "name" do ... end`.
    fn add_test_call(&mut self, at: NodeIndex, call: NodeIndex, node: &Node) -> bool {
        let (source, roles) = (self.source, self.roles);
        let fields = &roles.fields;
        let method = [fields.method, fields.function].into_iter().find_map(|field| source.child_by_field(call, field));
        let called = method.map_or("", |method| source.text_prefix(&source.nodes[method], 24));
        let called = called.split('.').next().unwrap_or(called);
        let is_name = matches!(
            called,
            "describe" | "context" | "it" | "test" | "suite" | "specify" | "feature" | "scenario" | "beforeEach"
        );
        let arguments = source.child_by_field(call, fields.arguments);
        let is_function = |child: NodeIndex| roles.functions.contains(source.nodes[child].kind);
        let has_function = source.children(call).any(is_function)
            || arguments.is_some_and(|arguments| source.children(arguments).any(is_function));
        if !is_name || !has_function {
            self.leading = None;
            return false;
        }
        let first = arguments.and_then(|list| source.children(list).find(|&child| source.nodes[child].is_named()));
        let title = first.map(|first| &source.nodes[first]).filter(|first| roles.strings.contains(first.kind));
        let title = title.map_or("", |title| source.text(title).trim_matches(['"', '\'', '`']));
        let title = if title.len() <= MAX_NAME_BYTES && !title.contains('\n') { title } else { "" };
        let item = self.add_item(at, ChunkKind::Test, title, "");
        // The head of a test block is its first line.
        if let Some(item) = self.outline.items.get_mut(item) {
            item.head = (node.row, node.row);
        }
        self.enter(node, Some(item), title)
    }

    /// Returns the first row of a declaration including the comments and attributes above it.
    fn take_first_row(&mut self, row: u32) -> u32 {
        let lead = self.leading.take().filter(|lead| lead.1 + 1 >= row);
        lead.map_or(row, |lead| lead.0.min(row))
    }

    fn declare(&mut self, at: NodeIndex, kind: ChunkKind, name: &'a str, owner: &'a str) -> usize {
        let item = self.add_item(at, kind, name, owner);
        if !name.is_empty() {
            let row = self.source.nodes[at].row;
            self.outline.names.push(OutlineName { text: name, row, rows: None, item: Some(item) });
        }
        item
    }

    /// Adds an item without exporting its name.
    fn add_item(&mut self, at: NodeIndex, kind: ChunkKind, name: &'a str, owner: &'a str) -> usize {
        let (source, fields) = (self.source, &self.roles.fields);
        let node = &source.nodes[at];
        let mut rows = (self.take_first_row(node.row), last_row(source, node));
        if let Some((_, wrapped)) = self.wrapper.take().filter(|(end, _)| at < *end) {
            rows = (rows.0.min(wrapped.0), rows.1.max(wrapped.1));
        }
        let body = source.child_by_field(at, fields.body).or_else(|| {
            // `const f = () => {`, or a struct in Go or C.
            let value = [fields.value, fields.kind].into_iter().find_map(|field| source.child_by_field(at, field))?;
            source.child_by_field(value, fields.body)
        });
        let head_end = match body.map(|body| &source.nodes[body]) {
            Some(body) if source.text.get(body.start as usize) == Some(&b'{') => body.row,
            Some(body) => body.row.saturating_sub(1).max(node.row),
            None => match kind {
                ChunkKind::Function | ChunkKind::Class | ChunkKind::Test => node.row,
                _ => node.row.max(rows.1.min(node.row + MAX_FIELD_ROWS - 1)),
            },
        };
        let scope = self.scope();
        self.outline.items.push(OutlineItem {
            kind,
            name,
            scope: if owner.is_empty() { scope } else { owner },
            parent: self.innermost(),
            rows,
            head: (node.row, head_end.min(node.row + MAX_HEAD_ROWS - 1)),
        });
        self.outline.items.len() - 1
    }

    /// Adds the names of a field or variable declaration, which may declare several names.
    fn add_fields(&mut self, at: NodeIndex) {
        let source = self.source;
        let name = self.declared_name(at);
        if !name.is_empty() {
            return self.add_field(at, name);
        }
        // `int a, b;`: the nodes with the names are one level below.
        let below: Vec<&str> = source.children(at).map(|child| self.declared_name(child)).collect();
        let mut is_named = false;
        for name in below.into_iter().filter(|name| !name.is_empty()) {
            is_named = true;
            self.add_field(at, name);
        }
        if !is_named {
            self.add_field(at, "");
        }
    }

    fn add_field(&mut self, at: NodeIndex, name: &'a str) {
        let node = &self.source.nodes[at];
        let last = last_row(self.source, node);
        let first = self.take_first_row(node.row).max(node.row);
        self.outline.names.push(OutlineName {
            text: name,
            row: node.row,
            rows: Some((first, last.min(node.row + MAX_FIELD_ROWS - 1))),
            item: self.innermost(),
        });
    }

    fn field_text(&self, at: NodeIndex, field: u16) -> &'a str {
        self.source
            .child_by_field(at, field)
            .map_or("", |child| name_or_empty(self.source.text(&self.source.nodes[child])))
    }

    /// Returns the declared name, whatever field holds it; empty if there is none.
    fn declared_name(&self, at: NodeIndex) -> &'a str {
        let (source, fields) = (self.source, &self.roles.fields);
        if let Some(name) = source.child_by_field(at, fields.name) {
            return name_or_empty(source.text(&source.nodes[name]));
        }
        if source.child_by_field(at, fields.declarator).is_some() {
            return self.function_name(at).0;
        }
        match source.language {
            // `impl a::B<T>`: `B`.
            Language::Rust => {
                let kind = source.child_by_field(at, fields.kind).map_or("", |kind| source.text(&source.nodes[kind]));
                let bare = kind.trim_start_matches(['&', '*']).split('<').next().unwrap_or_default();
                name_or_empty(bare.rsplit("::").next().unwrap_or_default().trim())
            }
            Language::Python => {
                let left = source.child_by_field(at, fields.left);
                left.map_or("", |left| plain_name(source, left))
            }
            Language::CSharp => {
                // A C# field declaration holds its declarators one level below.
                let list = source.children(at).find(|&child| source.child_by_field(child, fields.kind).is_some());
                let first = list
                    .and_then(|list| source.children(list).find_map(|child| source.child_by_field(child, fields.name)));
                first.map_or("", |name| name_or_empty(source.text(&source.nodes[name])))
            }
            Language::JavaScript => self.field_text(at, fields.property),
            _ => {
                let bound =
                    [fields.binding, fields.pattern].into_iter().find_map(|field| source.child_by_field(at, field));
                let name = bound.map(|bound| source.child_by_field(bound, fields.name).unwrap_or(bound));
                name.map_or("", |name| plain_name(source, name))
            }
        }
    }

    /// Returns a function's name and its owner type, if the head names one (`Owner::name`, a Go receiver); otherwise an
    /// empty owner.
    fn function_name(&self, at: NodeIndex) -> (&'a str, &'a str) {
        let (source, fields) = (self.source, &self.roles.fields);
        let mut innermost = at;
        for _ in 0..MAX_DECLARATORS {
            let field = source.child_by_field(innermost, fields.declarator);
            // A reference declarator holds its inner declarator without a field.
            let held = || {
                source
                    .children(innermost)
                    .find(|&child| innermost != at && source.child_by_field(child, fields.declarator).is_some())
            };
            match field.or_else(held) {
                Some(next) => innermost = next,
                None => break,
            }
        }
        if innermost != at {
            let text = name_or_empty(source.text(&source.nodes[innermost]));
            // `typedef int (a)(void);`
            let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).map_or(text, str::trim);
            return match text.rsplit_once("::") {
                Some((owner, name)) => (name, owner.rsplit("::").next().unwrap_or(owner)),
                None => (text, ""),
            };
        }
        let name = self.field_text(at, fields.name);
        let receiver = source.child_by_field(at, fields.receiver);
        let owner = receiver.filter(|_| source.language == Language::Go).map_or("", |receiver| {
            let text = source.text(&source.nodes[receiver]).trim_matches(['(', ')']);
            let bare = text.split('[').next().unwrap_or(text);
            name_or_empty(bare.rsplit([' ', '*']).next().unwrap_or_default())
        });
        (name, owner)
    }
}

fn name_or_empty(name: &str) -> &str {
    if name.len() <= MAX_NAME_BYTES && !name.contains('\n') { name } else { "" }
}

/// Returns the node's text if it is a plain name; otherwise an empty text.
fn plain_name<'a>(source: &ParsedFile<'a>, at: NodeIndex) -> &'a str {
    let text = source.text_prefix(&source.nodes[at], MAX_NAME_BYTES + 1);
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128);
    if is_name { name_or_empty(text) } else { "" }
}

/// Returns the last part of a path: `module.exports.x` gives `x`. Returns an empty text for patterns and computed
/// names.
fn last_word(text: &str) -> &str {
    let word = text.rsplit('.').next().unwrap_or(text).trim_start_matches('#');
    let is_name = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 128);
    if is_name { name_or_empty(word) } else { "" }
}

/// Returns true for names such as `MAX_SIZE`.
fn is_constant_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_uppercase() || c == '_') && !name.contains(|c: char| c.is_lowercase())
}

/// Returns the last row of a node. A node that ends with a line end ends on that line, not on the next one.
pub fn last_row(source: &ParsedFile<'_>, node: &Node) -> u32 {
    let ends_line = node.end > node.start && source.text.get(node.end as usize - 1) == Some(&b'\n');
    node.end_row.saturating_sub(u32::from(ends_line)).max(node.row)
}
