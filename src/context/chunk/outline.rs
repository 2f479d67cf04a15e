//! The declarations of a file, read from its syntax tree: what they are, their names, their lines, what is in what.
//!
//! Invariant: one pass over the nodes, whatever their nesting; what is inside of functions is not looked at.

use std::collections::HashSet;

use super::ChunkKind;
use super::lines::Rows;
use super::roles::{Role, Roles};
use crate::provider::builtin::facts::Facts;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::{Node, NodeIndex, Source};

/// A declaration that may become a chunk.
pub struct Item<'a> {
    pub kind: ChunkKind,
    pub name: &'a str,
    /// The name of what it stands in or belongs to.
    pub scope: &'a str,
    /// The item it stands in.
    pub parent: Option<usize>,
    /// With the comments and attributes above it.
    pub rows: Rows,
    /// From its first word to where its body begins.
    pub head: Rows,
}

/// A declared name.
pub struct Name<'a> {
    pub text: &'a str,
    pub row: u32,
    /// Of a field or variable its rows, a few at most; `None` for an item's name.
    pub rows: Option<Rows>,
    /// The item whose name it is; else the one it stands in.
    pub item: Option<usize>,
}

/// By where they stand.
#[derive(Default)]
pub struct Outline<'a> {
    pub items: Vec<Item<'a>>,
    pub names: Vec<Name<'a>>,
}

/// Longer names are none, in bytes.
const LONGEST_NAME: usize = 120;
/// Lines of a head or a field that are shown at most.
const HEAD_ROWS: u32 = 12;
const FIELD_ROWS: u32 = 3;
/// A constant of C has more lines than this: a table.
const TABLE_ROWS: u32 = 3;
/// Deeper declarators are nonsense.
const MAX_DECLARATORS: usize = 16;

/// A node whose inside is being looked at.
struct Open<'a> {
    end: usize,
    /// The innermost item and name around what is inside.
    item: Option<usize>,
    name: &'a str,
}

pub fn read<'a>(source: &Source<'a>, facts: &Facts) -> Outline<'a> {
    let reader = Reader {
        source,
        facts,
        test_classes: facts.classes.iter().filter(|class| class.is_test).map(|class| class.node).collect(),
        roles: Roles::of(source.language),
        outline: Outline::default(),
        open: Vec::new(),
        wrap: None,
        lead: None,
        condition_row: None,
        code_row: None,
    };
    reader.run()
}

struct Reader<'s, 'a> {
    source: &'s Source<'a>,
    facts: &'s Facts,
    test_classes: HashSet<NodeIndex>,
    roles: &'static Roles,
    outline: Outline<'a>,
    open: Vec<Open<'a>>,
    /// What wraps the next declaration: its end as an index, its rows.
    wrap: Option<(usize, Rows)>,
    /// Comments and attributes just above.
    lead: Option<Rows>,
    /// The row of the last condition, on which it says what it is about.
    condition_row: Option<u32>,
    /// The last row on which something else ends.
    code_row: Option<u32>,
}

impl<'a> Reader<'_, 'a> {
    fn run(mut self) -> Outline<'a> {
        let nodes = &self.source.nodes;
        let mut at = 1;
        while let Some(node) = nodes.get(at) {
            while self.open.last().is_some_and(|open| open.end <= at) {
                self.open.pop();
            }
            let end = node.end_index as usize;
            let role = self.role(node);
            if role == Role::Leads {
                self.leads((node.row, last_row(self.source, node)));
                at = end;
                continue;
            }
            if self.enters(at, node, role) && at + 1 < end {
                at += 1;
            } else {
                at = end;
                self.code_row = self.code_row.max(Some(last_row(self.source, node)));
            }
        }
        self.outline
    }

    fn role(&self, node: &Node) -> Role {
        match (node.is_error(), node.is_named()) {
            (true, _) => Role::Scope,
            (_, true) => self.roles.role(node.kind),
            (_, false) => Role::Token,
        }
    }

    /// A comment or an attribute on lines of its own leads what comes next, one behind code nothing.
    fn leads(&mut self, (first, last): Rows) {
        let joins = self.lead.filter(|lead| lead.1 + 1 >= first);
        if self.code_row.is_none_or(|row| row < first) || joins.is_some() {
            self.lead = Some((joins.map_or(first, |lead| lead.0), last));
        }
    }

    /// Meets a node and says whether to look into it.
    fn enters(&mut self, at: NodeIndex, node: &Node, role: Role) -> bool {
        match role {
            Role::Token | Role::Leads => {}
            Role::Other if self.condition_row == Some(node.row) => {
                self.lead = self.lead.map(|lead| (lead.0, last_row(self.source, node)));
            }
            Role::Other => self.lead = None,
            Role::Scope => {
                self.lead = None;
                return true;
            }
            Role::Condition => {
                self.leads((node.row, node.row));
                self.condition_row = Some(node.row);
                return true;
            }
            Role::TestScope => {
                self.lead = None;
                return self.innermost().is_some_and(|item| self.outline.items[item].kind == ChunkKind::Test);
            }
            Role::Named => {
                self.lead = None;
                let name = self.text_in(at, self.roles.fields.name);
                let item = self.innermost();
                return self.enter(node, item, name);
            }
            Role::Wrap => {
                let rows = (self.first_row(node.row), last_row(self.source, node));
                self.wrap = Some((node.end_index as usize, rows));
                return true;
            }
            Role::Function => {
                let (name, owner) = self.function_name(at);
                let kind = self.kind(at, ChunkKind::Function);
                self.declare(at, kind, name, owner);
            }
            Role::Class => return self.class(at, ChunkKind::Class),
            Role::Interface => return self.class(at, ChunkKind::Interface),
            Role::Type => return self.class(at, ChunkKind::Type),
            Role::Constant if self.is_in_class() => {
                self.loose(at);
                return true;
            }
            Role::Constant => {
                let name = self.declared_name(at);
                let item = self.declare(at, ChunkKind::Constant, name, "");
                return self.enter(node, Some(item), name);
            }
            Role::Loose => self.loose(at),
            Role::Perhaps => return self.perhaps(at, node),
        }
        false
    }

    fn innermost(&self) -> Option<usize> {
        self.open.last().and_then(|open| open.item)
    }

    fn is_in_class(&self) -> bool {
        self.innermost().is_some_and(|item| self.outline.items[item].kind != ChunkKind::Test)
    }

    /// The name of what is around.
    fn scope(&self) -> &'a str {
        self.open.last().map_or("", |open| open.name)
    }

    fn enter(&mut self, node: &Node, item: Option<usize>, name: &'a str) -> bool {
        let name = if name.is_empty() { self.scope() } else { name };
        self.open.push(Open { end: node.end_index as usize, item, name });
        true
    }

    /// Test code is a test, whatever it is besides.
    fn kind(&self, at: NodeIndex, kind: ChunkKind) -> ChunkKind {
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

    fn class(&mut self, at: NodeIndex, kind: ChunkKind) -> bool {
        let (source, fields) = (self.source, &self.roles.fields);
        let node = &source.nodes[at];
        let name = self.declared_name(at);
        if matches!(source.language, Language::C | Language::Cpp) {
            if node.field == fields.kind {
                // `typedef struct a { ... } b;`: that is the declaration.
                let item = self.innermost();
                self.outline.names.push(Name { text: name, row: node.row, rows: None, item });
                return true;
            }
            let says_what = [fields.body, fields.declarator, fields.kind];
            if kind != ChunkKind::Interface && says_what.iter().all(|&field| source.child_in(at, field).is_none()) {
                // `struct a;`
                self.lead = None;
                return false;
            }
        }
        let kind = match (source.language, kind) {
            (Language::Go, _) if self.has_type(at, b"interface") => ChunkKind::Interface,
            (Language::Python, _) if self.bases(at).any(|base| matches!(base, "Protocol" | "ABC")) => {
                ChunkKind::Interface
            }
            _ => kind,
        };
        let is_test = kind == ChunkKind::Class && self.test_classes.contains(&at);
        let kind = if is_test { ChunkKind::Test } else { self.kind(at, kind) };
        let item = match source.language == Language::Rust && source.child_in(at, fields.name).is_none() {
            // `impl` declares nothing.
            true => self.place(at, kind, name, ""),
            false => self.declare(at, kind, name, ""),
        };
        self.enter(node, Some(item), name)
    }

    fn has_type(&self, at: NodeIndex, starts: &[u8]) -> bool {
        let kind = self.source.child_in(at, self.roles.fields.kind);
        kind.is_some_and(|kind| self.source.bytes(&self.source.nodes[kind]).starts_with(starts))
    }

    fn bases(&self, at: NodeIndex) -> impl Iterator<Item = &'a str> + '_ {
        let list = self.source.child_in(at, self.roles.fields.superclasses);
        list.into_iter().flat_map(|list| self.source.children(list)).map(|base| {
            let text = self.source.start_of(&self.source.nodes[base], LONGEST_NAME);
            let text = text.split('[').next().unwrap_or(text);
            text.rsplit('.').next().unwrap_or(text)
        })
    }

    /// A declaration or not, by what is in it.
    fn perhaps(&mut self, at: NodeIndex, node: &Node) -> bool {
        let (source, fields) = (self.source, &self.roles.fields);
        match source.language {
            Language::C | Language::Cpp => {
                let kind = source.child_in(at, fields.kind);
                if let Some(kind) = kind.filter(|&kind| source.child_in(kind, fields.body).is_some()) {
                    let name = self.text_in(kind, fields.name);
                    let item = self.declare(at, ChunkKind::Type, name, "");
                    return self.enter(node, Some(item), name);
                }
                if last_row(source, node) - node.row >= TABLE_ROWS && !self.is_in_class() {
                    let (name, _) = self.function_name(at);
                    self.declare(at, ChunkKind::Constant, name, "");
                } else {
                    self.loose(at);
                }
            }
            Language::Python => {
                let left = source.children(at).next().and_then(|child| source.child_in(child, fields.left));
                let name = left.map_or("", |left| plain_name(source, left));
                self.variable(at, name, is_constant_name(name));
            }
            Language::Ruby => {
                if let Some(left) = source.child_in(at, fields.left) {
                    let name = plain_name(source, left);
                    self.variable(at, name, name.starts_with(|c: char| c.is_uppercase()));
                    return false;
                }
                return self.test_call(at, at, node);
            }
            _ => {
                let Some(child) = source.children(at).find(|&child| source.nodes[child].is_named()) else {
                    self.lead = None;
                    return false;
                };
                if self.roles.calls.contains(source.nodes[child].kind) {
                    return self.test_call(at, child, node);
                }
                // `namespace a {}` is a statement to the grammar.
                if self.roles.role(source.nodes[child].kind) == Role::Named {
                    return true;
                }
                // `a.b = function () {}`, `const b = () => {}`, `b = () => {}` in a class.
                let own = source.child_in(at, fields.value).map(|_| at);
                let holder = own.unwrap_or(child);
                let value = [fields.right, fields.value].into_iter().find_map(|field| source.child_in(holder, field));
                let place = [fields.left, fields.name].into_iter().find_map(|field| source.child_in(holder, field));
                let name = place.map_or("", |place| last_word(source.start_of(&source.nodes[place], LONGEST_NAME + 1)));
                let is_statement = source.child_in(holder, fields.left).is_some();
                match value.map(|value| self.value_kind(value)) {
                    Some(Some(kind)) if !name.is_empty() => {
                        let kind = self.kind(at, kind);
                        let item = self.declare(at, kind, name, "");
                        if kind == ChunkKind::Class {
                            return self.enter(node, Some(item), name);
                        }
                    }
                    _ if is_statement => self.lead = None,
                    _ => {
                        let is_constant = source.start_of(node, 6) == "const ";
                        self.variable(at, name, is_constant);
                    }
                }
            }
        }
        false
    }

    /// A function, a class, or a call that is given a function: `memo(() => ...)`.
    fn value_kind(&self, value: NodeIndex) -> Option<ChunkKind> {
        let (source, roles) = (self.source, self.roles);
        let node = &source.nodes[value];
        if roles.functions.contains(node.kind) {
            return Some(ChunkKind::Function);
        }
        if roles.role(node.kind) == Role::Class {
            return Some(ChunkKind::Class);
        }
        let arguments = source.child_in(value, roles.fields.arguments)?;
        let given = source.children(arguments).any(|child| roles.functions.contains(source.nodes[child].kind));
        given.then_some(ChunkKind::Function)
    }

    fn variable(&mut self, at: NodeIndex, name: &'a str, is_constant: bool) {
        if name.is_empty() || self.innermost().is_some_and(|item| self.outline.items[item].kind == ChunkKind::Test) {
            self.lead = None;
        } else if is_constant && !self.is_in_class() {
            self.declare(at, ChunkKind::Constant, name, "");
        } else {
            self.name_loose(at, name);
        }
    }

    /// `describe("name", () => { ... })`, `test "name" do ... end`.
    fn test_call(&mut self, at: NodeIndex, call: NodeIndex, node: &Node) -> bool {
        let (source, roles) = (self.source, self.roles);
        let fields = &roles.fields;
        let method = [fields.method, fields.function].into_iter().find_map(|field| source.child_in(call, field));
        let called = method.map_or("", |method| source.start_of(&source.nodes[method], 24));
        let called = called.split('.').next().unwrap_or(called);
        let is_name = matches!(
            called,
            "describe" | "context" | "it" | "test" | "suite" | "specify" | "feature" | "scenario" | "beforeEach"
        );
        let arguments = source.child_in(call, fields.arguments);
        let is_function = |child: NodeIndex| roles.functions.contains(source.nodes[child].kind);
        let has_function = source.children(call).any(is_function)
            || arguments.is_some_and(|arguments| source.children(arguments).any(is_function));
        if !is_name || !has_function {
            self.lead = None;
            return false;
        }
        let first = arguments.and_then(|list| source.children(list).find(|&child| source.nodes[child].is_named()));
        let title = first.map(|first| &source.nodes[first]).filter(|first| roles.strings.contains(first.kind));
        let title = title.map_or("", |title| source.text(title).trim_matches(['"', '\'', '`']));
        let title = if title.len() <= LONGEST_NAME && !title.contains('\n') { title } else { "" };
        let item = self.place(at, ChunkKind::Test, title, "");
        // Its head is its first line.
        if let Some(item) = self.outline.items.get_mut(item) {
            item.head = (node.row, node.row);
        }
        self.enter(node, Some(item), title)
    }

    /// The row where a declaration begins, with what leads it and what wraps it.
    fn first_row(&mut self, row: u32) -> u32 {
        let lead = self.lead.take().filter(|lead| lead.1 + 1 >= row);
        lead.map_or(row, |lead| lead.0.min(row))
    }

    fn declare(&mut self, at: NodeIndex, kind: ChunkKind, name: &'a str, owner: &'a str) -> usize {
        let item = self.place(at, kind, name, owner);
        if !name.is_empty() {
            let row = self.source.nodes[at].row;
            self.outline.names.push(Name { text: name, row, rows: None, item: Some(item) });
        }
        item
    }

    /// An item without a name that others may use.
    fn place(&mut self, at: NodeIndex, kind: ChunkKind, name: &'a str, owner: &'a str) -> usize {
        let (source, fields) = (self.source, &self.roles.fields);
        let node = &source.nodes[at];
        let mut rows = (self.first_row(node.row), last_row(source, node));
        if let Some((_, wrapped)) = self.wrap.take().filter(|(end, _)| at < *end) {
            rows = (rows.0.min(wrapped.0), rows.1.max(wrapped.1));
        }
        let body = source.child_in(at, fields.body).or_else(|| {
            // `const f = () => {`, a struct of Go or C.
            let value = [fields.value, fields.kind].into_iter().find_map(|field| source.child_in(at, field))?;
            source.child_in(value, fields.body)
        });
        let head_end = match body.map(|body| &source.nodes[body]) {
            Some(body) if source.text.get(body.start as usize) == Some(&b'{') => body.row,
            Some(body) => body.row.saturating_sub(1).max(node.row),
            None => match kind {
                ChunkKind::Function | ChunkKind::Class | ChunkKind::Test => node.row,
                _ => node.row.max(rows.1.min(node.row + FIELD_ROWS - 1)),
            },
        };
        let scope = self.scope();
        self.outline.items.push(Item {
            kind,
            name,
            scope: if owner.is_empty() { scope } else { owner },
            parent: self.innermost(),
            rows,
            head: (node.row, head_end.min(node.row + HEAD_ROWS - 1)),
        });
        self.outline.items.len() - 1
    }

    /// A field or variable, perhaps several.
    fn loose(&mut self, at: NodeIndex) {
        let source = self.source;
        let name = self.declared_name(at);
        if !name.is_empty() {
            return self.name_loose(at, name);
        }
        // `int a, b;`: those who hold a name are one step below.
        let below: Vec<&str> = source.children(at).map(|child| self.declared_name(child)).collect();
        let mut is_named = false;
        for name in below.into_iter().filter(|name| !name.is_empty()) {
            is_named = true;
            self.name_loose(at, name);
        }
        if !is_named {
            self.name_loose(at, "");
        }
    }

    fn name_loose(&mut self, at: NodeIndex, name: &'a str) {
        let node = &self.source.nodes[at];
        let last = last_row(self.source, node);
        let first = self.first_row(node.row).max(node.row);
        self.outline.names.push(Name {
            text: name,
            row: node.row,
            rows: Some((first, last.min(node.row + FIELD_ROWS - 1))),
            item: self.innermost(),
        });
    }

    fn text_in(&self, at: NodeIndex, field: u16) -> &'a str {
        self.source.child_in(at, field).map_or("", |child| bounded(self.source.text(&self.source.nodes[child])))
    }

    /// The name that a declaration gives, whatever field it stands in.
    fn declared_name(&self, at: NodeIndex) -> &'a str {
        let (source, fields) = (self.source, &self.roles.fields);
        if let Some(name) = source.child_in(at, fields.name) {
            return bounded(source.text(&source.nodes[name]));
        }
        if source.child_in(at, fields.declarator).is_some() {
            return self.function_name(at).0;
        }
        match source.language {
            // `impl a::B<T>`: `B`.
            Language::Rust => {
                let kind = source.child_in(at, fields.kind).map_or("", |kind| source.text(&source.nodes[kind]));
                let bare = kind.trim_start_matches(['&', '*']).split('<').next().unwrap_or_default();
                bounded(bare.rsplit("::").next().unwrap_or_default().trim())
            }
            Language::Python => {
                let left = source.child_in(at, fields.left);
                left.map_or("", |left| plain_name(source, left))
            }
            Language::CSharp => {
                // A field's declaration holds its declarators one step below.
                let list = source.children(at).find(|&child| source.child_in(child, fields.kind).is_some());
                let first =
                    list.and_then(|list| source.children(list).find_map(|child| source.child_in(child, fields.name)));
                first.map_or("", |name| bounded(source.text(&source.nodes[name])))
            }
            Language::JavaScript => self.text_in(at, fields.property),
            _ => "",
        }
    }

    /// A function's name, and the type it belongs to where its head says so.
    fn function_name(&self, at: NodeIndex) -> (&'a str, &'a str) {
        let (source, fields) = (self.source, &self.roles.fields);
        let mut innermost = at;
        for _ in 0..MAX_DECLARATORS {
            let field = source.child_in(innermost, fields.declarator);
            // References hold their declarator without a field.
            let held = || {
                source
                    .children(innermost)
                    .find(|&child| innermost != at && source.child_in(child, fields.declarator).is_some())
            };
            match field.or_else(held) {
                Some(next) => innermost = next,
                None => break,
            }
        }
        if innermost != at {
            let text = bounded(source.text(&source.nodes[innermost]));
            // `typedef int (a)(void);`
            let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).map_or(text, str::trim);
            return match text.rsplit_once("::") {
                Some((owner, name)) => (name, owner.rsplit("::").next().unwrap_or(owner)),
                None => (text, ""),
            };
        }
        let name = self.text_in(at, fields.name);
        let receiver = source.child_in(at, fields.receiver);
        let owner = receiver.filter(|_| source.language == Language::Go).map_or("", |receiver| {
            let text = source.text(&source.nodes[receiver]).trim_matches(['(', ')']);
            let bare = text.split('[').next().unwrap_or(text);
            bounded(bare.rsplit([' ', '*']).next().unwrap_or_default())
        });
        (name, owner)
    }
}

fn bounded(name: &str) -> &str {
    if name.len() <= LONGEST_NAME && !name.contains('\n') { name } else { "" }
}

/// The text of a node that is nothing but a name.
fn plain_name<'a>(source: &Source<'a>, at: NodeIndex) -> &'a str {
    let text = source.start_of(&source.nodes[at], LONGEST_NAME + 1);
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128);
    if is_name { bounded(text) } else { "" }
}

/// `module.exports.x`: `x`; nothing for patterns and computed names.
fn last_word(text: &str) -> &str {
    let word = text.rsplit('.').next().unwrap_or(text).trim_start_matches('#');
    let is_name = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 128);
    if is_name { bounded(word) } else { "" }
}

/// `MAX_SIZE`.
fn is_constant_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_uppercase() || c == '_') && !name.contains(|c: char| c.is_lowercase())
}

/// The last row of a node; one that ends with a line end ends on that line.
pub fn last_row(source: &Source<'_>, node: &Node) -> u32 {
    let ends_line = node.end > node.start && source.text.get(node.end as usize - 1) == Some(&b'\n');
    node.end_row.saturating_sub(u32::from(ends_line)).max(node.row)
}
