//! Finds unused imports: imported names that nothing else in the file mentions.
//!
//! Imports that may be needed without a mention are left out: side effects, re-exports, traits, C# namespaces.

use std::collections::HashMap;

use super::{DeadCodeCollector, shorten_name};
use crate::domain::{Confidence, Kind, Priority, Severity, Suggestion, text};
use crate::reviewers::analyzer::smells::{Smell, SmellBuilder, SmellGrade};
use crate::syntax::language::Language;
use crate::syntax::occurrences::{self, NameOccurrence};
use crate::syntax::source::NodeIndex;

/// An imported name. A statement that imports several names has one entry for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportedName {
    /// The whole import statement.
    statement: NodeIndex,
    /// Byte range of the name in the file, end exclusive. In a Go path it is a part of a node.
    start: u32,
    end: u32,
    confidence: Confidence,
}

/// Types of Rust's standard library that are not traits. An imported trait may be in use without a mention, so other
/// types are not reported.
const RUST_STD_TYPES: &[&str] = &[
    "HashMap",
    "HashSet",
    "BTreeMap",
    "BTreeSet",
    "VecDeque",
    "BinaryHeap",
    "Arc",
    "Rc",
    "Weak",
    "RefCell",
    "Cell",
    "OnceCell",
    "OnceLock",
    "LazyLock",
    "Mutex",
    "RwLock",
    "Condvar",
    "Path",
    "PathBuf",
    "Duration",
    "Instant",
    "SystemTime",
    "File",
    "OpenOptions",
    "Ordering",
    "Cow",
    "PhantomData",
    "Range",
    "Command",
    "Stdio",
    "ExitCode",
    "OsStr",
    "OsString",
    "CString",
    "CStr",
    "AtomicUsize",
    "AtomicBool",
    "AtomicU32",
    "AtomicU64",
    "NonZeroU32",
    "NonZeroU64",
    "NonZeroUsize",
    "IpAddr",
    "Ipv4Addr",
    "Ipv6Addr",
    "SocketAddr",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "BufReader",
    "BufWriter",
    "Pin",
    "JoinHandle",
    "NonNull",
    "ManuallyDrop",
    "MaybeUninit",
];

/// Functions of Kotlin that are called without their names.
const KOTLIN_OPERATORS: &[&str] = &[
    "assign",
    "compareTo",
    "contains",
    "dec",
    "div",
    "divAssign",
    "equals",
    "get",
    "getValue",
    "hasNext",
    "inc",
    "invoke",
    "iterator",
    "minus",
    "minusAssign",
    "next",
    "not",
    "plus",
    "plusAssign",
    "provideDelegate",
    "rangeTo",
    "rangeUntil",
    "rem",
    "set",
    "setValue",
    "times",
    "timesAssign",
    "unaryMinus",
    "unaryPlus",
];

impl DeadCodeCollector<'_, '_> {
    /// Collects the names of an import, or of a part of one.
    pub(super) fn collect_import(&mut self, index: NodeIndex) {
        self.is_module = true;
        if !self.limits.dead_code.unused_imports || self.source.nodes[index].is_error() {
            return;
        }
        match self.source.language {
            Language::Python => self.collect_python_import(index),
            Language::JavaScript | Language::TypeScript | Language::Tsx => self.collect_script_import(index),
            Language::Go => self.collect_go_import(index),
            Language::Java => self.collect_java_import(index),
            Language::Rust => self.collect_rust_import(index),
            Language::Php => self.collect_php_import(index),
            Language::Kotlin => self.collect_kotlin_import(index),
            Language::Scala => self.collect_scala_import(index),
            // A C# namespace and a Swift module import names that only the compiler knows; C, C++, Ruby and Bash import
            // no names.
            _ => {}
        }
    }

    fn add_import(&mut self, statement: NodeIndex, name: NodeIndex, confidence: Confidence) {
        let node = self.source.nodes[name];
        self.add_import_bytes(statement, (node.start, node.end), confidence);
    }

    fn add_import_bytes(&mut self, statement: NodeIndex, (start, end): (u32, u32), confidence: Confidence) {
        let bytes = &self.source.text[start as usize..end as usize];
        if bytes.is_empty() || bytes.starts_with(b"_") {
            return;
        }
        self.names.request(bytes);
        self.imports.push(ImportedName { statement, start, end, confidence });
    }

    fn collect_python_import(&mut self, index: NodeIndex) {
        let path = self.source.path;
        let name = path.rsplit('/').next().unwrap_or(path);
        // `__init__.py` re-exports names, `conftest.py` provides fixtures, and a stub only declares.
        if name == "__init__.py" || name == "conftest.py" || name == "compat.py" || name.ends_with(".pyi") {
            return;
        }
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        // An import inside `try` checks if a module is available.
        let mut around = source.nodes[index].parent as usize;
        while around != 0 && source.work().spend(1) {
            if kinds.try_statement.is(source.nodes[around].kind) {
                return;
            }
            around = source.nodes[around].parent as usize;
        }
        for child in source.children(index).filter(|&child| source.nodes[child].field == fields.name) {
            let node = &source.nodes[child];
            if kinds.aliased_import.is(node.kind) {
                let (Some(alias), Some(name)) =
                    (source.child_by_field(child, fields.alias), source.child_by_field(child, fields.name))
                else {
                    continue;
                };
                // `import a as a` is the form of a re-export.
                if source.bytes(&source.nodes[alias]) != source.bytes(&source.nodes[name]) {
                    self.add_import(index, alias, Confidence::High);
                }
            } else if kinds.dotted_name.is(node.kind) {
                let mut parts = source.children(child).filter(|&part| kinds.identifier.is(source.nodes[part].kind));
                let Some(first) = parts.next() else { continue };
                // `import a.b` may be there for its side effects.
                let confidence = if parts.next().is_some() { Confidence::Low } else { Confidence::High };
                self.add_import(index, first, confidence);
            }
        }
    }

    fn collect_script_import(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        if source.path.ends_with(".d.ts") {
            return;
        }
        let Some(clause) = source.children(index).find(|&child| kinds.import_clause.is(source.nodes[child].kind))
        else {
            return;
        };
        for part in source.descendants(clause) {
            let node = &source.nodes[part];
            let parent = &source.nodes[node.parent as usize];
            let name = if kinds.import_specifier.is(node.kind) {
                source.child_by_field(part, fields.alias).or_else(|| source.child_by_field(part, fields.name))
            } else if kinds.identifier.is(node.kind)
                && (node.parent as usize == clause || kinds.namespace_import.is(parent.kind))
            {
                Some(part)
            } else {
                None
            };
            // JSX is compiled to calls of these names.
            if let Some(name) = name
                && !matches!(source.bytes(&source.nodes[name]), b"React" | b"h" | b"Fragment" | b"preact" | b"jsx")
            {
                self.add_import(index, name, Confidence::High);
            }
        }
    }

    /// Collects `const x = require('x')` at the top of a file.
    pub(super) fn add_require(&mut self, declaration: NodeIndex, name: NodeIndex) {
        self.imported.insert(self.source.bytes(&self.source.nodes[name]));
        self.add_import(declaration, name, Confidence::Medium);
    }

    fn collect_go_import(&mut self, index: NodeIndex) {
        let (source, fields) = (self.source, self.roles.fields);
        let Some(path) = source.child_by_field(index, fields.path) else { return };
        let path_node = source.nodes[path];
        let text = source.bytes(&path_node);
        if let Some(name) = source.child_by_field(index, fields.name) {
            if !matches!(source.bytes(&source.nodes[name]), b"_" | b".") {
                self.add_import(index, name, Confidence::Medium);
            }
            return;
        }
        let inside = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
        let mut parts = inside.rsplit(|&byte| byte == b'/');
        let mut last = parts.next().unwrap_or_default();
        let is_version = |part: &[u8]| part.len() > 1 && part[0] == b'v' && part[1..].iter().all(u8::is_ascii_digit);
        if is_version(last) {
            last = parts.next().unwrap_or_default();
        }
        let first = inside.split(|&byte| byte == b'/').next().unwrap_or_default();
        // Outside of the standard library the name of a package may differ from the end of its path. The Go compiler
        // rejects unused imports anyway.
        let is_standard = !first.contains(&b'.') && inside != b"C" && inside != b"embed";
        if is_standard && last.iter().all(u8::is_ascii_alphanumeric) {
            let offset = memchr::memmem::rfind(text, last).unwrap_or(1) as u32;
            let start = path_node.start + offset;
            self.add_import_bytes(index, (start, start + last.len() as u32), Confidence::Medium);
        }
    }

    fn collect_java_import(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        if source.children(index).any(|child| kinds.asterisk.is(source.nodes[child].kind)) {
            return;
        }
        let scoped = source.children(index).find(|&child| kinds.scoped_identifier.is(source.nodes[child].kind));
        if let Some(name) = scoped.and_then(|scoped| source.child_by_field(scoped, fields.name)) {
            self.add_import(index, name, Confidence::High);
        }
    }

    fn collect_kotlin_import(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let is_wildcard = source.bytes(&source.nodes[index]).trim_ascii_end().ends_with(b"*");
        let path = source.child_by_field(index, fields.path).filter(|_| !is_wildcard);
        let last =
            path.and_then(|path| source.children(path).filter(|&at| kinds.identifier.is(source.nodes[at].kind)).last());
        let Some(name) = source.child_by_field(index, fields.alias).or(last) else { return };
        // The compiler calls these functions for signs, loops and delegates.
        let text = source.text(&source.nodes[name]);
        let is_component = text.strip_prefix("component").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
        if !is_component && !KOTLIN_OPERATORS.contains(&text) {
            self.add_import(index, name, Confidence::High);
        }
    }

    fn collect_scala_import(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        // A file-local import may follow another one on the same line: `import a.b, c.d`.
        let is_name = |at: &NodeIndex| kinds.identifier.is(source.nodes[*at].kind);
        let selectors = source.children(index).find(|&at| kinds.namespace_selectors.is(source.nodes[at].kind));
        let names: Vec<NodeIndex> = match selectors {
            Some(selectors) => source
                .children(selectors)
                .filter_map(|at| source.child_by_field(at, fields.alias).or_else(|| is_name(&at).then_some(at)))
                .collect(),
            None if source.children(index).any(|at| {
                kinds.namespace_wildcard.is(source.nodes[at].kind) || source.bytes(&source.nodes[at]) == b","
            }) =>
            {
                Vec::new()
            }
            None => source.children(index).filter(is_name).last().into_iter().collect(),
        };
        for name in names {
            // The compiler uses given and implicit values without their names; their names begin in lower case.
            if source.text(&source.nodes[name]).starts_with(|c: char| c.is_uppercase()) {
                self.add_import(index, name, Confidence::Medium);
            }
        }
    }

    fn collect_php_import(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let name = source.child_by_field(index, fields.alias).or_else(|| {
            source
                .descendants(index)
                .filter(|&child| kinds.name.is(source.nodes[child].kind))
                .rfind(|&child| source.nodes[child].end == source.nodes[index].end)
        });
        if let Some(name) = name {
            self.add_import(index, name, Confidence::High);
        }
    }

    fn collect_rust_import(&mut self, index: NodeIndex) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        // Skip `pub use`, and imports with an attribute.
        let is_public = source.children(index).any(|child| source.bytes(&source.nodes[child]).starts_with(b"pub"));
        let attributed = self.prev_named_sibling(index).is_some_and(|before| source.bytes(before).starts_with(b"#["));
        if is_public || attributed {
            return;
        }
        let mut part = index + 1;
        let end = source.nodes[index].end_index as usize;
        while part < end {
            let node = source.nodes[part];
            let parent = &source.nodes[node.parent as usize];
            if kinds.use_as_clause.is(node.kind) {
                if let Some(alias) = source.child_by_field(part, fields.alias) {
                    self.add_rust_import(index, alias);
                }
                part = node.end_index as usize;
                continue;
            }
            if kinds.use_wildcard.is(node.kind) {
                part = node.end_index as usize;
                continue;
            }
            let is_last = kinds.identifier.is(node.kind)
                && if kinds.scoped_identifier.is(parent.kind) {
                    node.field == fields.name && !self.is_path_of_list(node.parent as usize)
                } else {
                    node.field != fields.path
                };
            if is_last {
                self.add_rust_import(index, part);
            }
            part += 1;
        }
    }

    /// Returns whether an `a::b` is the front part of a longer path.
    fn is_path_of_list(&self, scoped: NodeIndex) -> bool {
        self.source.nodes[scoped].field == self.roles.fields.path
    }

    fn add_rust_import(&mut self, statement: NodeIndex, name: NodeIndex) {
        let text = self.source.text(&self.source.nodes[name]);
        let is_type = text.starts_with(|c: char| c.is_ascii_uppercase());
        if !is_type || RUST_STD_TYPES.contains(&text) {
            self.add_import(statement, name, if is_type { Confidence::High } else { Confidence::Medium });
        }
    }

    pub(super) fn report_imports(&self, out: &mut Vec<Smell>) {
        let source = self.source;
        // A Python file with only imports collects names for other files.
        let gathers = matches!(source.language, Language::Python)
            && self.facts.functions.is_empty()
            && self.facts.classes.is_empty();
        // Comments can mention names that count as used: Javadoc, PHPDoc, JSDoc, Python's type comments.
        let comments_count = !matches!(source.language, Language::Rust | Language::Go);
        // In these languages an import does not use the name of another one.
        let mut used_elsewhere: HashMap<&[u8], bool> = HashMap::new();
        let groups = self.imports.chunk_by(|one, other| one.statement == other.statement);
        for group in groups.take_while(|_| source.work().spend(1)) {
            let mut unused: Vec<(&ImportedName, &str, Confidence)> = Vec::new();
            for import in group {
                let bytes = &source.text[import.start as usize..import.end as usize];
                let Ok(name) = std::str::from_utf8(bytes) else { continue };
                let statement = import.statement..source.nodes[import.statement].end_index as usize;
                let is_used = (comments_count && self.names.is_in_comment(bytes))
                    || match self.may_use_imports() {
                        true => self.names.has_code_outside(bytes, &statement),
                        false => *used_elsewhere.entry(bytes).or_insert_with(|| self.is_used_outside_of_imports(bytes)),
                    };
                // Child modules can use the imports of this file.
                let beside_children =
                    || self.confidence_beside_children(name.as_bytes(), &["super::"], import.confidence);
                if let Some(confidence) = (!is_used).then(beside_children).flatten() {
                    unused.push((import, name, confidence));
                }
            }
            let Some(&(first, ..)) = unused.first() else { continue };
            let node = &source.nodes[first.statement];
            if (gathers && group.len() > 1)
                || occurrences::is_suppressed(source, node)
                || self.has_error_in(first.statement, node.end_index as usize)
            {
                continue;
            }
            let names: Vec<String> = unused.iter().map(|(_, name, _)| format!("`{}`", shorten_name(name))).collect();
            let subject: Vec<&str> = unused.iter().map(|(_, name, _)| *name).collect();
            let least_certain = unused.iter().map(|(.., confidence)| *confidence).min();
            let confidence = least_certain.unwrap_or(first.confidence);
            let list = if names.len() > 4 {
                format!("{} and {} more", names[..3].join(", "), names.len() - 3)
            } else {
                names.join(", ")
            };
            let is_whole = unused.len() == group.len();
            let builder = SmellBuilder {
                kind: Kind::DeadCode,
                grade: SmellGrade::new(Priority::P3, Severity::Low, confidence),
                lines: source.node_lines(first.statement),
                title: format!("unused import {list}"),
                explanation: format!(
                    "{list} {} imported here and {} no other place of the file.",
                    if names.len() == 1 { "is" } else { "are" },
                    if names.len() == 1 { "stands in" } else { "stand in" },
                ),
                subject: format!("import {}", subject.join(" ")),
            };
            let suggestion = self.suggest_import_removal(first, confidence, is_whole, &list);
            let mut smell = builder.build().with_suggestion(Some(suggestion));
            if names.len() > 1 {
                smell = smell.with_figure(names.len() as f64);
                smell.explanation = smell
                    .explanation
                    .replace("are imported", &format!("are {} imported", text::format_count(names.len(), "name")));
            }
            out.push(smell);
        }
    }

    /// Returns whether an import can use a name that another one imports: `import a.b` or `use a::b` after an import of
    /// `a`. Elsewhere a second import of the same name does not use it.
    fn may_use_imports(&self) -> bool {
        matches!(self.source.language, Language::Python | Language::Rust | Language::Scala)
    }

    /// Returns whether code outside of all imports mentions a name.
    fn is_used_outside_of_imports(&self, name: &[u8]) -> bool {
        self.names.occurrences(name).iter().any(|&place| match place {
            NameOccurrence::Comment(_) => false,
            NameOccurrence::Name(node) | NameOccurrence::Text(node) => !self.is_in_import(node),
        })
    }

    /// Returns whether a node is in an import.
    fn is_in_import(&self, node: NodeIndex) -> bool {
        let at = self.imports.partition_point(|import| import.statement <= node);
        self.imports[..at].last().is_some_and(|import| node < self.source.nodes[import.statement].end_index as usize)
    }

    fn suggest_import_removal(
        &self,
        import: &ImportedName,
        confidence: Confidence,
        is_whole: bool,
        list: &str,
    ) -> Suggestion {
        let node = &self.source.nodes[import.statement];
        if is_whole
            && confidence == Confidence::High
            && let Some(lines) = self.own_lines(node)
        {
            let text = if lines.start == lines.end { "Remove the line." } else { "Remove the lines." };
            return Suggestion { text: text.to_owned(), replacement: Some(String::new()), lines: Some(lines) };
        }
        let text = if is_whole { "Remove the import.".to_owned() } else { format!("Remove {list} from the import.") };
        Suggestion { text, replacement: None, lines: None }
    }
}
