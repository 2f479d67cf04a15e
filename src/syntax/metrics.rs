//! Collects functions, classes and their metrics from the flat nodes in one pass.
//!
//! # Definitions
//!
//! Lines of code (nloc) and cyclomatic complexity follow lizard, which reads tokens and builds no tree:
//!
//! - The lines of a function begin at its name (`func` in Go, the parenthesis in JavaScript) and end with its body.
//! - A line belongs to the function in which its first token stands. The line of the name counts for the function too.
//! - Comments, blank lines, doc strings and lines of the preprocessor are not lines of code.
//! - Each of these adds one path: `if`, `for`, `while`, `case`, `catch` and similar keywords, `&&`, `||`, `?`, `#if`,
//!   the `for` and `if` of a comprehension, `except` and `finally`, the default value of a parameter in JavaScript.
//! - In JavaScript, TypeScript and Go a closure is a function of its own. In the other languages it counts into the
//!   enclosing function, as do local functions in C, C++ and C#.
//!
//! Rust's cyclomatic complexity follows rust-code-analysis (every match arm, every `?`, `loop`), without the 1 that it
//! adds for each closure. Cognitive complexity follows SonarSource's white paper (G. Ann Campbell, version 1.7), per
//! listed function. Nesting is the depth of control structures inside each other; an `else if` is not deeper than its
//! `if`.
//!
//! # Differences from other tools
//!
//! Compared with lizard 1.24 on flask, requests, httpx, fastapi (Python), express, lodash (JavaScript), gin, hugo (Go),
//! gson (Java), redis (C), fmt and nlohmann json (C++), and with rust-code-analysis 0.0.25 on ripgrep and tokio:
//!
//! - lizard loses its position in code that its token machines do not know (a return type over several lines in Python,
//!   an optimistic arrow function in JavaScript, a field with an initializer inside an anonymous class in Java, a macro
//!   between head and body of a C++ function). Its function then ends too early or includes the next one.
//! - In C, lizard counts one path less for `a && (b = c)`: it takes `&& ... =` for the declaration of a reference. This
//!   module follows the rule in C++, where such references exist, and not in C.
//! - For lizard, a triple-quoted Python string is code only after one of a few tokens. Here it is code unless it is a
//!   statement.
//! - `#if` with an `#else` that repeats an opening brace, and macros that hide braces, confuse both trees and tokens.
//! - lizard counts the `?` in Java's annotated type arguments (`<@Nullable ? extends T>`).
//! - lizard counts a path for a word after a dot that is a keyword elsewhere (`promise.catch(...)`). This module does
//!   not.
//! - rust-code-analysis counts only the first line of a string over several lines. This module counts all of them.

use std::collections::HashMap;

use super::conventions::conventions;
use super::declarations;
use super::facts::{Class, FileFacts, Function, is_test_path};
use super::language::Language;
use super::node_kinds::{self, FunctionNesting, KindFlags, NodeKinds};
use super::source::{Node, NodeIndex, ParsedFile};

/// State that applies to all nodes below a node, until its end.
struct NestingFrame {
    end: u32,
    /// Index of the listed function; [`FileFacts::NO_FUNCTION`] outside of functions.
    function: u32,
    /// Nesting level for cognitive complexity.
    level: u32,
    /// Depth of control structures inside each other.
    depth: u32,
}

/// A function or class of which not all nodes have been visited, by its index.
struct OpenNode {
    end: u32,
    function: u32,
}

/// The logical operators of one expression: the end of the expression and the kind of the last operator.
struct LogicalRun {
    end: u32,
    last: u16,
}

pub(super) fn collect_facts(source: &ParsedFile<'_>) -> FileFacts {
    let mut reader = MetricsCollector::new(source);
    reader.visit_nodes();
    reader.finish()
}

struct MetricsCollector<'s, 'a> {
    source: &'s ParsedFile<'a>,
    spec: &'static NodeKinds,
    facts: FileFacts,
    frames: Vec<NestingFrame>,
    /// Functions whose name or keyword comes later, as (first node whose lines belong to the function, function).
    announced: Vec<(u32, u32)>,
    /// Functions that own lines of code, innermost last.
    owners: Vec<OpenNode>,
    /// For each function, the node from which on decisions count.
    counts_from: Vec<u32>,
    /// For each function, true once a call to itself was counted.
    recursive: Vec<bool>,
    logic: Vec<LogicalRun>,
    /// Classes around the current node, innermost last.
    classes: Vec<OpenNode>,
    /// Fields created by assignment, as (class, field name).
    assigned: Vec<(u32, &'a str)>,
    class_by_name: HashMap<&'a str, u32>,
    /// Parts of classes for their lines of code, as (class, first row, last row).
    parts: Vec<(u32, u32, u32)>,
    /// One bit per row of the file, set if code stands on it.
    code_rows: Vec<u64>,
    /// First row that no token has claimed.
    next_row: u32,
    /// End of the current preprocessor directive in bytes; nodes before it belong to the directive.
    directive_end: u32,
    /// End of the last attribute that marks test code, in bytes. The item directly after it is test code.
    test_mark: Option<u32>,
}

impl<'s, 'a> MetricsCollector<'s, 'a> {
    fn new(source: &'s ParsedFile<'a>) -> Self {
        let rows = source.nodes.first().map_or(0, |root| root.end_row as usize + 1);
        Self {
            source,
            spec: NodeKinds::for_language(source.language),
            facts: FileFacts {
                innermost_function: vec![FileFacts::NO_FUNCTION; source.nodes.len()],
                is_test_file: is_test_path(source.path),
                ..FileFacts::default()
            },
            frames: Vec::with_capacity(32),
            announced: Vec::new(),
            owners: Vec::new(),
            counts_from: Vec::new(),
            recursive: Vec::new(),
            logic: Vec::new(),
            classes: Vec::new(),
            assigned: Vec::new(),
            class_by_name: HashMap::new(),
            parts: Vec::new(),
            code_rows: vec![0; rows.div_ceil(64)],
            next_row: 0,
            directive_end: 0,
            test_mark: None,
        }
    }

    fn visit_nodes(&mut self) {
        let nodes = &self.source.nodes;
        let count = nodes.len();
        self.frames.push(NestingFrame { end: u32::MAX, function: FileFacts::NO_FUNCTION, level: 0, depth: 0 });
        let mut index = 0;
        while index < count && self.source.work().spend(1) {
            let node = &nodes[index];
            let bits = self.node_flags(node);
            while self.frames.last().is_some_and(|frame| frame.end <= index as u32) {
                self.frames.pop();
            }
            while self.owners.last().is_some_and(|open| open.end <= index as u32) {
                self.owners.pop();
            }
            if bits & node_kinds::COMMENT != 0 {
                let function = self.frames.last().map_or(FileFacts::NO_FUNCTION, |frame| frame.function);
                self.facts.innermost_function[index..node.end_index as usize].fill(function);
                index = node.end_index as usize;
                continue;
            }
            if self.spec.preprocessor && self.is_directive(index, node) {
                self.facts.innermost_function[index] =
                    self.frames.last().map_or(FileFacts::NO_FUNCTION, |frame| frame.function);
                index += 1;
                continue;
            }
            self.enter_branch(index, node);
            if bits & !(node_kinds::LAYOUT | node_kinds::PARENTHESES) != 0 {
                self.visit_node(index, node, bits);
            }
            let function = self.frames.last().map_or(FileFacts::NO_FUNCTION, |frame| frame.function);
            self.facts.innermost_function[index] = function;
            let is_leaf = node.end_index as usize == index + 1;
            if (is_leaf || bits & node_kinds::STRING != 0) && bits & node_kinds::LAYOUT == 0 && node.start < node.end {
                self.claim_rows(node, bits, index);
            }
            while self.announced.last().is_some_and(|&(from, _)| from <= index as u32) {
                let Some((_, function)) = self.announced.pop() else { break };
                let end = nodes[self.facts.functions[function as usize].node].end_index;
                self.owners.push(OpenNode { end, function });
            }
            index += 1;
        }
    }

    /// Returns whether a node belongs to a preprocessor directive, whose lines are not code. Counts conditional
    /// directives as decisions, as lizard does.
    fn is_directive(&mut self, index: NodeIndex, node: &Node) -> bool {
        let is_leaf = node.end_index as usize == index + 1;
        if node.start < self.directive_end {
            // The nodes of a directive end with it, except the branches of a conditional.
            return is_leaf || node.end <= self.directive_end;
        }
        if !is_leaf || self.source.text.get(node.start as usize) != Some(&b'#') {
            return false;
        }
        let text = &self.source.text[node.start as usize..];
        let mut end = 0;
        for (at, _) in text.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            end = at;
            let line = text[..at].strip_suffix(b"\r").unwrap_or(&text[..at]);
            if !line.ends_with(b"\\") {
                break;
            }
        }
        self.directive_end = node.start + if end == 0 { text.len() } else { end } as u32;
        let word = text[1..].trim_ascii_start();
        let is_condition = [b"if".as_slice(), b"ifdef", b"elif"].iter().any(|name| {
            word.strip_prefix(*name).is_some_and(|rest| rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric()))
        });
        if is_condition {
            self.count_decision(index);
        }
        if word.starts_with(b"include") {
            self.claim_rows(node, 0, index);
        }
        true
    }

    /// Opens the nesting level of a control structure at each node below its head.
    fn enter_branch(&mut self, index: NodeIndex, node: &Node) {
        if !node.is_named() || self.spec.fields.is_head(node.field) {
            return;
        }
        let parent = &self.source.nodes[node.parent as usize];
        let bits = self.spec.flags(parent.kind);
        if bits & (node_kinds::NESTS | node_kinds::STRUCTURAL) == 0 || index == 0 || !parent.is_named() {
            return;
        }
        if bits & node_kinds::IF != 0 && self.is_else_if(parent) {
            return;
        }
        // The branch of an `else if` is below the first `if`, which has already opened the level.
        let Some(&NestingFrame { function, level, depth, .. }) = self.frames.last() else { return };
        let is_catch_or_ternary = bits & node_kinds::NESTS == 0;
        self.frames.push(NestingFrame {
            end: node.end_index,
            function,
            level: level + u32::from(bits & node_kinds::STRUCTURAL != 0),
            depth: depth + u32::from(!is_catch_or_ternary),
        });
    }

    fn is_else_if(&self, node: &Node) -> bool {
        let parent = &self.source.nodes[node.parent as usize];
        let bits = self.spec.flags(parent.kind);
        bits & node_kinds::ELSE_CLAUSE != 0
            || (bits & node_kinds::IF != 0 && node.field == self.spec.fields.alternative && node.field != 0)
    }

    /// Handles a node whose kind has a meaning for the metrics.
    fn visit_node(&mut self, index: NodeIndex, node: &Node, bits: KindFlags) {
        if bits & (node_kinds::FUNCTION | node_kinds::BLOCK) != 0 {
            self.visit_function(index, node, bits);
        } else if bits & node_kinds::LAMBDA != 0 {
            self.push_nesting(node);
        } else if bits & (node_kinds::CLASS | node_kinds::MODULE) != 0 {
            self.visit_class(index, node, bits);
        }
        let parent = named_node_flags(self.spec, self.source, node.parent as usize);
        if (bits & node_kinds::DECISION != 0 && !self.is_default_case(node, bits))
            || (bits & node_kinds::QUESTION != 0 && parent & node_kinds::TERNARY != 0)
            || (bits & node_kinds::EQUALS != 0 && parent & node_kinds::DEFAULTED != 0)
        {
            self.count_decision(index);
        }
        if bits & (node_kinds::NESTS | node_kinds::STRUCTURAL) != 0 {
            let is_else_if = bits & node_kinds::IF != 0 && self.is_else_if(node);
            if let Some((function, level, depth)) = self.current_function() {
                if bits & node_kinds::STRUCTURAL != 0 && !is_else_if {
                    function.cognitive += 1 + level;
                }
                if bits & node_kinds::NESTS != 0 {
                    function.nesting = function.nesting.max(depth + u32::from(!is_else_if));
                }
            }
        }
        let jumps = bits & node_kinds::GOTO != 0 || (bits & node_kinds::JUMP != 0 && self.has_label(index));
        if jumps || (bits & node_kinds::ELSE != 0 && parent & node_kinds::NO_ELSE == 0) {
            self.add_cognitive();
        }
        if bits & node_kinds::BINARY != 0 {
            self.visit_binary(index, node);
        }
        if bits & node_kinds::LOGICAL != 0 {
            self.visit_logical(index, node, parent);
        }
        if bits & (node_kinds::FIELD | node_kinds::ASSIGNMENT) != 0
            || (bits & node_kinds::MEMBER_FIELD != 0
                && self.is_in_class_body(node)
                && !self.is_computed(index)
                && !self.is_static(node))
        {
            self.visit_field(index, bits);
        }
        if bits & node_kinds::CALL != 0 {
            self.visit_call(index, node);
        }
        if bits & node_kinds::ATTRIBUTE != 0 && declarations::is_test_attribute(self.source, node) {
            self.test_mark = Some(node.end);
        }
    }

    /// Returns whether a case without its own `else` is the one for all other values.
    fn is_default_case(&self, node: &Node, bits: KindFlags) -> bool {
        let start = || self.source.text_prefix(node, "case _ =>".len());
        bits & node_kinds::NO_ELSE != 0
            && (start().starts_with("else") || start().starts_with("default") || start() == "case _ =>")
    }

    /// Returns whether a property has no value of its own, only code that computes it.
    fn is_computed(&self, index: NodeIndex) -> bool {
        let fields = &self.spec.fields;
        self.source.child_by_field(index, fields.accessor).is_some()
            && self.source.child_by_field(index, fields.value).is_none()
    }

    /// Returns whether the modifiers of a property say that it exists once for all objects.
    fn is_static(&self, node: &Node) -> bool {
        const MAX_MODIFIER_BYTES: usize = 64;
        let words = &conventions(self.source.language).static_words;
        let mut modifiers = self.source.text_prefix(node, MAX_MODIFIER_BYTES).split_whitespace().take(4);
        !words.is_empty() && modifiers.any(|word| words.iter().any(|known| known == word))
    }

    /// Returns whether the parent of a node is the body of a class.
    fn is_in_class_body(&self, node: &Node) -> bool {
        let body = &self.source.nodes[node.parent as usize];
        body.field != 0
            && body.field == self.spec.fields.body
            && named_node_flags(self.spec, self.source, body.parent as usize) & node_kinds::CLASS != 0
    }

    fn current_function(&mut self) -> Option<(&mut Function, u32, u32)> {
        let frame = self.frames.last()?;
        let function = self.facts.functions.get_mut(frame.function as usize)?;
        Some((function, frame.level, frame.depth))
    }

    fn add_cognitive(&mut self) {
        if let Some((function, _, _)) = self.current_function() {
            function.cognitive += 1;
        }
    }

    fn count_decision(&mut self, index: NodeIndex) {
        let Some(frame) = self.frames.last() else { return };
        let counts = self.counts_from.get(frame.function as usize).is_some_and(|&from| index as u32 >= from);
        if counts && let Some((function, _, _)) = self.current_function() {
            function.cyclomatic += 1;
        }
    }

    fn push_nesting(&mut self, node: &Node) {
        let Some(&NestingFrame { function, level, depth, .. }) = self.frames.last() else { return };
        self.frames.push(NestingFrame { end: node.end_index, function, level: level + 1, depth });
    }

    fn visit_function(&mut self, index: NodeIndex, node: &Node, bits: KindFlags) {
        let source = self.source;
        let outer = self.frames.last().map_or(FileFacts::NO_FUNCTION, |frame| frame.function);
        let head = match (
            bits & node_kinds::BLOCK != 0,
            outer != FileFacts::NO_FUNCTION && self.spec.style == FunctionNesting::Flat,
        ) {
            (true, true) => return,
            (false, true) => return self.push_nesting(node),
            (true, false) => declarations::parse_macro_head(source, self.spec, index),
            (false, false) => declarations::parse_head(source, self.spec, index),
        };
        let Some(mut head) = head else { return };
        head.name = declarations::shorten(head.name);
        while self.classes.last().is_some_and(|open| open.end <= index as u32) {
            self.classes.pop();
        }
        let class = match head.receiver {
            Some(receiver) => Some(self.find_or_add_class(declarations::shorten(receiver), index)),
            // A class outside of the enclosing function is not the class of this function.
            None => self.classes.last().map(|open| open.function).filter(|&class| {
                self.facts.functions.get(outer as usize).is_none_or(|outer| {
                    self.facts.classes.get(class as usize).is_some_and(|class| class.node > outer.node)
                })
            }),
        };
        let class_name =
            class.and_then(|class| self.facts.classes.get(class as usize)).map(|class| class.name.as_str());
        let name = match class_name {
            Some(class) if !head.name.is_empty() => format!("{class}.{}", head.name),
            _ if head.name.is_empty() => declarations::ANONYMOUS.to_owned(),
            _ => head.name.replace("::", "."),
        };
        let outer_is_test = self.facts.functions.get(outer as usize).is_some_and(|outer| outer.is_test)
            || class.and_then(|class| self.facts.classes.get(class as usize)).is_some_and(|class| class.is_test);
        let is_test = self.facts.is_test_file
            || outer_is_test
            || self.take_test_mark(index, node)
            || self.facts.test_ranges.last().is_some_and(|&(_, end)| (index as u32) < end)
            || declarations::is_test_name(source.language, head.name);
        let function = self.facts.functions.len() as u32;
        let head_row = source.nodes[head.starts_at].row;
        self.facts.functions.push(Function {
            node: index,
            name,
            line_start: head_row + 1,
            line_end: declarations::last_row(source, node).max(head_row) + 1,
            nloc: 1,
            cyclomatic: 1,
            cognitive: 0,
            parameters: declarations::count_parameters(source, self.spec, head.parameters, class.is_some()),
            nesting: 0,
            class: class.map(|class| class as usize),
            outer: (outer != FileFacts::NO_FUNCTION).then_some(outer as usize),
            is_test,
        });
        if let Some(class) = class.and_then(|class| self.facts.classes.get_mut(class as usize)) {
            class.methods += 1;
        }
        self.counts_from.push(head.counts_from as u32);
        self.recursive.push(false);
        self.announced.push((head.starts_at as u32, function));
        self.frames.push(NestingFrame { end: node.end_index, function, level: 0, depth: 0 });
    }

    /// Returns whether an attribute directly before a node marks it as test code, and then consumes the mark.
    fn take_test_mark(&mut self, index: NodeIndex, node: &Node) -> bool {
        // Modifiers of Java are inside the declaration; attributes of Rust are before it.
        if conventions(self.source.language).attributes_inside {
            return declarations::has_test_attribute(self.source, self.spec, index);
        }
        let Some(end) = self.test_mark else { return false };
        let between = self.source.text.get(end as usize..node.start as usize).unwrap_or(b"x");
        self.source.work().spend_bytes(between.len());
        let is_next = declarations::has_only_attributes(between);
        // Once a whole line between them is something else, it stays between them.
        let lines = memchr::memrchr(b'\n', between).map_or(&b""[..], |end| &between[..end]);
        if is_next || !declarations::has_only_attributes(lines) {
            self.test_mark = None;
        }
        is_next
    }

    fn find_or_add_class(&mut self, name: &'a str, index: NodeIndex) -> u32 {
        if let Some(&class) = self.class_by_name.get(name) {
            return class;
        }
        let class = self.facts.classes.len() as u32;
        let node = &self.source.nodes[index];
        self.facts.classes.push(Class {
            node: index,
            name: name.to_owned(),
            line_start: node.row + 1,
            line_end: node.row + 1,
            nloc: 0,
            methods: 0,
            fields: 0,
            is_test: self.facts.is_test_file,
        });
        self.class_by_name.insert(name, class);
        class
    }

    fn visit_class(&mut self, index: NodeIndex, node: &Node, bits: KindFlags) {
        let marked = self.take_test_mark(index, node);
        if marked {
            self.facts.test_ranges.push((index as u32, node.end_index));
        }
        if bits & node_kinds::MODULE != 0 {
            return;
        }
        let Some(name) = declarations::class_name(self.source, self.spec, index) else { return };
        let name = declarations::shorten(name);
        while self.classes.last().is_some_and(|open| open.end <= index as u32) {
            self.classes.pop();
        }
        let in_test = marked
            || self.facts.test_ranges.last().is_some_and(|&(_, end)| (index as u32) < end)
            || declarations::is_test_class(self.source, self.spec, index, name);
        // Equal names are one class only in languages in which a type may have several parts.
        let class = if matches!(self.source.language, Language::Rust | Language::Go) {
            self.find_or_add_class(name, index)
        } else {
            self.class_by_name.remove(name);
            self.find_or_add_class(name, index)
        };
        let last_row = declarations::last_row(self.source, node);
        if let Some(class) = self.facts.classes.get_mut(class as usize) {
            class.is_test |= in_test;
            // The largest part gives the node and the lines of the class.
            if last_row - node.row >= class.line_end - class.line_start {
                (class.node, class.line_start, class.line_end) = (index, node.row + 1, last_row + 1);
            }
        }
        self.parts.push((class, node.row, last_row));
        self.classes.push(OpenNode { end: node.end_index, function: class });
    }

    fn has_label(&self, index: NodeIndex) -> bool {
        self.source.children(index).any(|child| declarations::is_label(self.source, child))
    }

    fn visit_binary(&mut self, index: NodeIndex, node: &Node) {
        if !self.is_logical(index) {
            return;
        }
        let mut parent = node.parent as usize;
        while named_node_flags(self.spec, self.source, parent) & node_kinds::PARENTHESES != 0 {
            parent = self.source.nodes[parent].parent as usize;
        }
        let continues =
            named_node_flags(self.spec, self.source, parent) & node_kinds::BINARY != 0 && self.is_logical(parent);
        if !continues {
            self.logic.push(LogicalRun { end: node.end_index, last: 0 });
        }
    }

    fn is_logical(&self, index: NodeIndex) -> bool {
        self.source.children(index).any(|child| {
            let node = &self.source.nodes[child];
            let bits = self.node_flags(node);
            bits & node_kinds::LOGICAL != 0 && (!node.is_named() || bits & node_kinds::OPERATOR != 0)
        })
    }

    /// Returns the flags of a node; those of an operator depend on its text.
    fn node_flags(&self, node: &Node) -> KindFlags {
        let bits = self.spec.flags(node.kind);
        let is_logical = bits & node_kinds::OPERATOR != 0 && matches!(self.source.bytes(node), b"&&" | b"||");
        if is_logical { bits | node_kinds::LOGICAL | node_kinds::DECISION } else { bits }
    }

    fn visit_logical(&mut self, index: NodeIndex, node: &Node, parent: KindFlags) {
        if self.source.language == Language::Cpp && self.is_reference(index) {
            // lizard's rule: `&&` with a `=` before the end of the statement declares a reference.
            if let Some((function, _, _)) = self.current_function() {
                function.cyclomatic = function.cyclomatic.saturating_sub(1).max(1);
            }
        }
        if parent & node_kinds::BINARY == 0 {
            return;
        }
        while self.logic.last().is_some_and(|logic| logic.end <= index as u32) {
            self.logic.pop();
        }
        let Some(logic) = self.logic.last_mut() else { return };
        // The operators of Scala have one kind; `!` makes their first bytes differ from other kinds.
        let operator = match self.spec.flags(node.kind) & node_kinds::OPERATOR {
            0 => node.kind,
            _ => !u16::from(self.source.text[node.start as usize]),
        };
        if std::mem::replace(&mut logic.last, operator) != operator {
            self.add_cognitive();
        }
    }

    fn is_reference(&self, index: NodeIndex) -> bool {
        let from = self.source.nodes[index].end as usize;
        // An `=` next to certain characters belongs to another operator: `==`, `<=`, `!=` and similar.
        let rest = &self.source.text[from..];
        for (at, byte) in rest.iter().enumerate().take(2_000) {
            match byte {
                b';' | b'{' | b'}' | b')' => return false,
                b'=' => {
                    let before = if at == 0 { b' ' } else { rest[at - 1] };
                    let is_alone = rest.get(at + 1) != Some(&b'=') && !b"=!<>+-*/|&^%".contains(&before);
                    if is_alone {
                        return true;
                    }
                }
                _ => {}
            }
        }
        false
    }

    fn visit_field(&mut self, index: NodeIndex, bits: KindFlags) {
        while self.classes.last().is_some_and(|open| open.end <= index as u32) {
            self.classes.pop();
        }
        let Some(class) = self.classes.last().map(|open| open.function) else { return };
        if bits & node_kinds::ASSIGNMENT != 0 {
            if let Some(name) = declarations::assigned_field(self.source, self.spec, index) {
                self.assigned.push((class, name));
            }
        } else if let Some(class) = self.facts.classes.get_mut(class as usize) {
            class.fields += match bits & node_kinds::MEMBER_FIELD {
                0 => declarations::count_fields(self.source, self.spec, index),
                _ => 1,
            };
        }
    }

    fn visit_call(&mut self, index: NodeIndex, node: &Node) {
        let function = self.frames.last().map_or(FileFacts::NO_FUNCTION, |frame| frame.function);
        if let Some(called) = self.facts.functions.get(function as usize)
            && !self.recursive[function as usize]
            && declarations::is_call_to(self.source, self.spec, index, &called.name)
        {
            self.recursive[function as usize] = true;
            self.add_cognitive();
        }
        if matches!(self.source.language, Language::JavaScript | Language::TypeScript | Language::Tsx)
            && declarations::is_test_block(self.source, self.spec, index)
        {
            self.facts.test_ranges.push((index as u32, node.end_index));
        }
    }

    /// Assigns the rows of a token that no earlier token has claimed to the innermost function that owns lines.
    fn claim_rows(&mut self, node: &Node, bits: KindFlags, index: NodeIndex) {
        if bits & node_kinds::STRING != 0 && declarations::is_doc_string(self.source, self.spec, index) {
            self.next_row = self.next_row.max(node.end_row + 1);
            return;
        }
        let ends_with_line = self.source.text.get(node.end as usize - 1) == Some(&b'\n');
        let last = if ends_with_line && node.end_row > node.row { node.end_row - 1 } else { node.end_row };
        let first = node.row.max(self.next_row);
        if last < first {
            return;
        }
        self.next_row = last + 1;
        if let Some(function) = self.owners.last().and_then(|open| self.facts.functions.get_mut(open.function as usize))
        {
            function.nloc += last - first + 1;
        }
        for row in first..=last {
            if let Some(word) = self.code_rows.get_mut(row as usize / 64) {
                *word |= 1 << (row % 64);
            }
        }
    }

    fn finish(mut self) -> FileFacts {
        self.assigned.sort_unstable();
        self.assigned.dedup();
        for (class, _) in &self.assigned {
            if let Some(class) = self.facts.classes.get_mut(*class as usize) {
                class.fields += 1;
            }
        }
        // The parts of nested classes overlap, so that their rows are counted from the start of the file.
        let mut before: Vec<u32> = Vec::with_capacity(self.code_rows.len() + 1);
        before.push(0);
        for word in &self.code_rows {
            before.push(before.last().copied().unwrap_or(0) + word.count_ones());
        }
        let rows_before = |row: u32| {
            let (word, bit) = (row as usize / 64, row % 64);
            let inside = self.code_rows.get(word).map_or(0, |bits| (bits & ((1 << bit) - 1)).count_ones());
            before.get(word).map_or(before.last().copied().unwrap_or(0), |rows| rows + inside)
        };
        for &(class, first, last) in &self.parts {
            let rows = rows_before(last + 1) - rows_before(first);
            if let Some(class) = self.facts.classes.get_mut(class as usize) {
                class.nloc += rows;
            }
        }
        if self.source.language == Language::Go {
            for function in &self.facts.functions {
                if let Some(class) = function.class.and_then(|class| self.facts.classes.get_mut(class)) {
                    class.nloc += function.nloc;
                }
            }
        }
        // Nodes are nested or disjoint: a range that does not begin within the last kept range is separate.
        self.facts.test_ranges.sort_unstable_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
        let mut covered = 0;
        self.facts.test_ranges.retain(|&(start, end)| {
            let is_outer = start >= covered;
            covered = covered.max(end);
            is_outer
        });
        self.facts
    }
}

fn named_node_flags(spec: &NodeKinds, source: &ParsedFile<'_>, index: NodeIndex) -> KindFlags {
    let node = &source.nodes[index];
    if node.is_named() { spec.flags(node.kind) } else { 0 }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
