//! Finds unused private functions and unused parameters.
//!
//! - A function is private if no other file can reach it. A Go package or a C++ class spans several files, so their
//!   functions are not reported.
//! - Parameters are reported only if the author decides about the signature: the function is private or called here, is
//!   never passed as a value, and no later parameter is used.

use super::{DeadCodeCollector, LexicalScope, shorten_name};
use crate::domain::{Confidence, Kind, LineRange, Priority, Severity};
use crate::reviewers::analyzer::smells::{Smell, SmellBuilder, SmellGrade};
use crate::syntax::conventions::{PrivateFunctions, conventions};
use crate::syntax::language::Language;
use crate::syntax::node_roles::{SmellNodeRole, SmellNodeRoles};
use crate::syntax::occurrences::{self, NameOccurrence};
use crate::syntax::source::{MAX_SEARCHED_BYTES, Node, NodeIndex, ParsedFile, is_added_field};

/// A function that may be unused or have unused parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnusedFunctionCandidate {
    node: NodeIndex,
    name: NodeIndex,
    /// Confidence that nothing outside of the file can name it; `None` if it is visible outside.
    private: Option<Confidence>,
    /// True if nothing else determines its parameters, such as an interface.
    own_signature: bool,
    /// True if it is called through an object, a class or a namespace.
    is_member: bool,
}

/// A function with everything that tells who can name it.
struct DeclaredFunction<'a> {
    index: NodeIndex,
    name: &'a [u8],
    /// Text before the name: modifiers and annotations.
    head: &'a [u8],
    parent: &'a Node,
    scope: Option<&'a LexicalScope>,
}

impl DeclaredFunction<'_> {
    fn head_has(&self, word: &str) -> bool {
        occurrences::has_word(self.head, word)
    }

    fn head_contains(&self, text: &str) -> bool {
        memchr::memmem::find(self.head, text.as_bytes()).is_some()
    }

    /// Returns whether a modifier makes the function private.
    fn is_marked(&self, rules: &PrivateFunctions) -> bool {
        rules.words.iter().any(|word| self.head_has(word))
    }

    /// Returns whether others than its callers in the file call the function.
    fn is_called_by_others(&self, rules: &PrivateFunctions) -> bool {
        rules.called_words.iter().any(|word| self.head_has(word))
            || rules.called_texts.iter().any(|text| self.head_contains(text))
            || rules.called_names.iter().any(|name| self.name == name.as_bytes())
            || rules.called_prefixes.iter().any(|prefix| self.name.starts_with(prefix.as_bytes()))
    }

    /// Returns whether the package of a function in Scala sees it: `private[shop]`.
    fn is_private_in_package(&self) -> bool {
        self.head_contains("private[") && !self.head_contains("private[this]")
    }
}

impl DeadCodeCollector<'_, '_> {
    /// Collects a function, before its scope is opened.
    pub(super) fn collect_function(&mut self, index: NodeIndex) {
        let source = self.source;
        let limit = &self.limits.dead_code;
        if !(limit.unused_private_functions || limit.unused_parameters) || source.nodes[index].is_error() {
            return;
        }
        let Some(name) = self.function_name(index) else { return };
        let bytes = source.bytes(&source.nodes[name]);
        if bytes.is_empty() || source.child_by_field(index, self.roles.fields.body).is_none() {
            return;
        }
        let head = self.head_bytes(index, name);
        let private = self.private_confidence(index, name, head);
        let own_signature = self.owns_signature(index, head, private.is_some());
        if private.is_none() && !own_signature {
            return;
        }
        self.names.request(bytes);
        if own_signature && limit.unused_parameters {
            let mut wanted = Vec::new();
            self.for_each_parameter(index, &mut |name| wanted.push(name));
            for name in wanted.into_iter().flatten() {
                self.names.request(source.bytes(&source.nodes[name]));
            }
        }
        let is_member = self.scopes.last().is_some_and(|scope| !scope.is_function)
            || self.roles.kinds.method_definition.is(source.nodes[index].kind);
        self.functions.push(UnusedFunctionCandidate { node: index, name, private, own_signature, is_member });
    }

    fn function_name(&self, index: NodeIndex) -> Option<NodeIndex> {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        if matches!(source.language, Language::C | Language::Cpp) {
            let mut inner = source.child_by_field(index, fields.declarator)?;
            for _ in 0..6 {
                if kinds.identifier.is(source.nodes[inner].kind) {
                    return Some(inner);
                }
                inner = source.child_by_field(inner, fields.declarator)?;
            }
            return None;
        }
        if let Some(name) = source.child_by_field(index, fields.name) {
            return Some(name);
        }
        // `const f = () => …`
        let parent = source.nodes[index].parent as usize;
        let is_value =
            kinds.arrow_function.is(source.nodes[index].kind) || kinds.function_expression.is(source.nodes[index].kind);
        (is_value && self.roles.role(source.nodes[parent].kind) == SmellNodeRole::Declarator)
            .then(|| source.child_by_field(parent, fields.name))?
    }

    /// Returns the confidence that only this file can name a function; `None` if other files can.
    fn private_confidence(&self, index: NodeIndex, name: NodeIndex, head: &[u8]) -> Option<Confidence> {
        let source = self.source;
        let declared = DeclaredFunction {
            index,
            name: source.bytes(&source.nodes[name]),
            head,
            parent: &source.nodes[source.nodes[index].parent as usize],
            scope: self.scopes.last(),
        };
        let rules = &conventions(source.language).private_functions;
        let is_called = declared.is_called_by_others(rules);
        let is_private = match source.language {
            Language::Rust => self.is_private_rust(&declared),
            Language::Python => return self.private_confidence_python(&declared),
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                return self.private_confidence_script(&declared);
            }
            Language::CSharp => return self.private_confidence_csharp(&declared),
            Language::C | Language::Cpp => declared.is_marked(rules) && !self.is_shared_c(&declared),
            Language::Ruby => self.is_private_ruby(&declared),
            Language::Scala => declared.is_marked(rules) && !declared.is_private_in_package(),
            _ => declared.is_marked(rules),
        };
        ((is_private || self.is_local(&declared)) && !is_called).then_some(rules.confidence)
    }

    /// Returns whether a function stands among the statements of another one.
    fn is_local(&self, declared: &DeclaredFunction<'_>) -> bool {
        let (parent, kinds) = (declared.parent.kind, &self.roles.kinds);
        match self.source.language {
            Language::Kotlin => declared.scope.is_some() && kinds.block.is(parent),
            Language::Scala => {
                declared.scope.is_some_and(|scope| scope.is_function) && self.roles.role(parent) == SmellNodeRole::Block
            }
            Language::Swift => kinds.statements.is(parent),
            _ => false,
        }
    }

    /// Returns whether a static function of C or C++ stands in a header or in a class.
    fn is_shared_c(&self, declared: &DeclaredFunction<'_>) -> bool {
        let source = self.source;
        let is_header = matches!(source.path.rsplit('.').next(), Some("h" | "hh" | "hpp" | "hxx" | "inl" | "ipp"));
        let in_class = declared.scope.is_some_and(|scope| {
            !scope.is_function && !source.bytes(&source.nodes[scope.node]).starts_with(b"namespace")
        });
        is_header || in_class
    }

    fn is_private_rust(&self, declared: &DeclaredFunction<'_>) -> bool {
        !declared.scope.is_some_and(|scope| scope.is_trait || scope.allows_unused)
            && self.attribute_before(declared.index).is_none()
    }

    fn private_confidence_python(&self, declared: &DeclaredFunction<'_>) -> Option<Confidence> {
        if self.roles.kinds.decorated_definition.is(declared.parent.kind) || declared.name.ends_with(b"__") {
            return None;
        }
        match declared.scope {
            Some(scope) if scope.is_function => Some(Confidence::High),
            Some(_) if declared.name.starts_with(b"__") => Some(Confidence::Medium),
            _ => None,
        }
    }

    fn private_confidence_script(&self, declared: &DeclaredFunction<'_>) -> Option<Confidence> {
        let kinds = &self.roles.kinds;
        let kind = self.source.nodes[declared.index].kind;
        // Arrow functions in variables are reported as unused variables; a method of an object literal is a value.
        let is_variable = self.roles.role(declared.parent.kind) == SmellNodeRole::Declarator;
        let in_class = kinds.class_body.is(declared.parent.kind);
        if is_variable || (kinds.method_definition.is(kind) && !in_class) {
            return None;
        }
        let is_declaration = !kinds.function_expression.is(kind);
        match declared.scope {
            Some(scope) if scope.is_function => is_declaration.then_some(Confidence::High),
            Some(_) => {
                let hidden = declared.name.starts_with(b"#") || declared.head_has("private");
                (hidden && !declared.head.contains(&b'@')).then_some(Confidence::Medium)
            }
            None => {
                let exported = kinds.export_statement.is(declared.parent.kind);
                (!exported && is_declaration && !self.source.path.ends_with(".d.ts")).then_some(Confidence::Medium)
            }
        }
    }

    fn private_confidence_csharp(&self, declared: &DeclaredFunction<'_>) -> Option<Confidence> {
        let class = declared.scope.map(|scope| self.source.bytes(&self.source.nodes[scope.node]))?;
        let class = &class[..class.len().min(MAX_SEARCHED_BYTES)];
        let class_head = &class[..memchr::memchr(b'{', class).unwrap_or(class.len())];
        let whole = !occurrences::has_word(class_head, "partial");
        // A framework may call the methods of a class with a base by name.
        let confidence = if class_head.contains(&b':') { Confidence::Low } else { Confidence::High };
        (declared.head_has("private") && whole && !declared.head.contains(&b'[')).then_some(confidence)
    }

    fn is_private_ruby(&self, declared: &DeclaredFunction<'_>) -> bool {
        let (source, kinds) = (self.source, &self.roles.kinds);
        let around = &source.nodes[declared.parent.parent as usize];
        let inline = kinds.call.is(around.kind) && source.bytes(around).starts_with(b"private ");
        // The parent of a class, or the user of a module, may call its methods.
        let is_alone = |class: &LexicalScope| {
            kinds.class.is(source.nodes[class.node].kind)
                && source.child_by_field(class.node, self.roles.fields.superclass).is_none()
        };
        let class = declared.scope.filter(|scope| !scope.is_function);
        class.is_some_and(|class| (class.private || inline) && is_alone(class))
    }

    /// Returns whether nothing else determines the parameters of a function.
    fn owns_signature(&self, index: NodeIndex, head: &[u8], private: bool) -> bool {
        let (source, kinds) = (self.source, &self.roles.kinds);
        if self.facts.is_test_at(index) {
            return false;
        }
        let parent = source.nodes[source.nodes[index].parent as usize];
        let in_class = self.scopes.last().is_some_and(|scope| !scope.is_function);
        match source.language {
            Language::Rust | Language::Java | Language::CSharp | Language::Php => private,
            Language::Kotlin | Language::Scala | Language::Swift => private,
            Language::C | Language::Cpp => private || (occurrences::has_word(head, "static") && !in_class),
            Language::Python => !kinds.decorated_definition.is(parent.kind) && !in_class,
            Language::JavaScript | Language::TypeScript | Language::Tsx => !in_class || private,
            // Most methods belong to interfaces.
            Language::Go => {
                self.roles.fields.receiver == 0 || source.child_by_field(index, self.roles.fields.receiver).is_none()
            }
            Language::Ruby | Language::Bash => false,
        }
    }

    /// Calls `give` with the parameters in order, and with `None` for a parameter without a name of its own.
    fn for_each_parameter(&self, index: NodeIndex, give: &mut dyn FnMut(Option<NodeIndex>)) {
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let mut holder = index;
        if matches!(source.language, Language::C | Language::Cpp) {
            let Some(name) = self.function_name(index) else { return };
            holder = source.nodes[name].parent as usize;
        }
        let identifier = |index: NodeIndex| {
            kinds.identifier.is(source.nodes[index].kind) || kinds.simple_identifier.is(source.nodes[index].kind)
        };
        // Where the grammar has a field for each parameter, default values may stand between them.
        let has_field = is_added_field(source.language, "parameter");
        let list = source.child_by_field(holder, fields.parameters).or_else(|| has_field.then_some(holder));
        let Some(list) = list else { return };
        let has_start = |at: NodeIndex, starts: &[&[u8]]| {
            starts.iter().any(|start| source.bytes(&source.nodes[at]).starts_with(start))
        };
        let is_parameter = |child: &NodeIndex| match has_field {
            true => source.nodes[*child].field == fields.parameter,
            false => source.nodes[*child].is_named(),
        };
        for parameter in source.children(list).filter(is_parameter) {
            match source.language {
                _ if self.roles.role(source.nodes[parameter].kind) == SmellNodeRole::Comment => {}
                Language::Go => {
                    for name in source.children(parameter).filter(|&child| source.nodes[child].field == fields.name) {
                        give(Some(name));
                    }
                }
                Language::C | Language::Cpp => {
                    let mut inner = source.child_by_field(parameter, fields.declarator);
                    let mut found = None;
                    for _ in 0..6 {
                        let Some(next) = inner else { break };
                        if identifier(next) {
                            found = Some(next);
                            break;
                        }
                        let named = || source.children(next).find(|&child| source.nodes[child].is_named());
                        inner = source.child_by_field(next, fields.declarator).or_else(named);
                    }
                    give(found);
                }
                Language::Php => {
                    let name = source.child_by_field(parameter, fields.name);
                    give(
                        name.and_then(|name| {
                            source.children(name).find(|&child| kinds.name.is(source.nodes[child].kind))
                        }),
                    );
                }
                // The compiler gives these arguments and may use them for other calls.
                Language::Scala if has_start(list, &[b"(implicit", b"(using"]) => give(None),
                _ if identifier(parameter) => give(Some(parameter)),
                Language::Rust | Language::TypeScript | Language::Tsx => {
                    // `constructor(private x)` declares a field.
                    let pattern =
                        source.child_by_field(parameter, fields.pattern).filter(|&pattern| identifier(pattern));
                    give(pattern);
                }
                Language::JavaScript => {
                    give(source.child_by_field(parameter, fields.left).filter(|&left| identifier(left)))
                }
                _ => give(source.child_by_field(parameter, fields.name).filter(|&name| identifier(name))),
            }
        }
    }

    pub(super) fn report_functions(&self, out: &mut Vec<Smell>) {
        if self.is_example() || self.is_included_elsewhere() || self.calls_by_computed_names() {
            return;
        }
        for candidate in self.functions.iter().take_while(|_| self.source.work().spend(1)) {
            let unused = self.limits.dead_code.unused_private_functions && self.report_unused_function(candidate, out);
            if !unused && candidate.own_signature && self.limits.dead_code.unused_parameters {
                self.report_unused_parameters(candidate, out);
            }
        }
    }

    /// Returns whether a C file is likely a part that another file includes: most of its static functions are unused.
    fn is_included_elsewhere(&self) -> bool {
        if !matches!(self.source.language, Language::C | Language::Cpp) {
            return false;
        }
        let private = || self.functions.iter().filter(|candidate| candidate.private.is_some());
        let unused = private().filter(|candidate| !self.is_mentioned(candidate)).count();
        unused >= 3 && unused * 2 > private().count()
    }

    /// Returns whether PHP code calls methods by computed names, such as `$this->{"add_$x"}()`: any method may be
    /// meant.
    fn calls_by_computed_names(&self) -> bool {
        let has = |mark: &[u8]| memchr::memmem::find(self.source.text, mark).is_some();
        self.source.language == Language::Php
            && ["->{", "->$", "::$method", "static::{", "call_user_func", "[$this,"]
                .iter()
                .any(|mark| has(mark.as_bytes()))
    }

    /// Returns whether anything but the function itself mentions its name.
    fn is_mentioned(&self, candidate: &UnusedFunctionCandidate) -> bool {
        // A function that only calls itself is unused.
        let own = candidate.node..self.source.nodes[candidate.node].end_index as usize;
        let name = self.source.bytes(&self.source.nodes[candidate.name]);
        let mut places = self.names.occurrences(name).iter().take_while(|_| self.source.work().spend(1));
        self.names.has_code_outside(name, &own)
            && places.any(|&place| match place {
                NameOccurrence::Comment(_) => false,
                NameOccurrence::Text(index) => !own.contains(&index),
                NameOccurrence::Name(index) => !own.contains(&index) && !self.is_of_import(index),
            })
    }

    fn report_unused_function(&self, candidate: &UnusedFunctionCandidate, out: &mut Vec<Smell>) -> bool {
        let source = self.source;
        let Some(confidence) = candidate.private else { return false };
        let bytes = source.bytes(&source.nodes[candidate.name]);
        let node = &source.nodes[candidate.node];
        if self.is_mentioned(candidate)
            || bytes.starts_with(b"_") && source.language != Language::Python
            || self.facts.is_test_at(candidate.node)
            || occurrences::is_suppressed(source, node)
            || self.is_reachable_from_outside(candidate)
        {
            return false;
        }
        // Modules below this one can use what is private here.
        let Some(confidence) = self.confidence_beside_children(bytes, &[], confidence) else { return false };
        let confidence = if self.errors.is_empty() { confidence } else { Confidence::Low };
        let name = source.text(&source.nodes[candidate.name]);
        let lines = node.end_row - node.row + 1;
        let builder = SmellBuilder {
            kind: Kind::DeadCode,
            grade: SmellGrade::new(Priority::P3, Severity::Medium, confidence),
            lines: LineRange::new(source.nodes[candidate.name].row + 1, node.end_row + 1),
            title: format!("unused function `{}`", shorten_name(name)),
            explanation: format!(
                "`{}` ({}) can only be used in this file, and no other place of it mentions it.",
                shorten_name(name),
                crate::domain::text::format_count(lines as usize, "line")
            ),
            subject: format!("function {name}"),
        };
        out.push(builder.build());
        true
    }

    fn is_reachable_from_outside(&self, candidate: &UnusedFunctionCandidate) -> bool {
        let source = self.source;
        match source.language {
            Language::Rust => self.allows_dead_code,
            // Without imports and exports, other scripts of the page can use the top level.
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                let parent = source.nodes[candidate.node].parent as usize;
                parent == 0 && !self.is_module
            }
            _ => false,
        }
    }

    fn report_unused_parameters(&self, candidate: &UnusedFunctionCandidate, out: &mut Vec<Smell>) {
        let source = self.source;
        let node = &source.nodes[candidate.node];
        let (start, end) = (candidate.node, node.end_index as usize);
        let name_bytes = source.bytes(&source.nodes[candidate.name]);
        if self.has_error_in(start, end) || occurrences::is_suppressed(source, node) || self.is_stub(candidate.node) {
            return;
        }
        let mut calls = 0;
        for &place in self.names.occurrences(name_bytes).iter().take_while(|_| source.work().spend(1)) {
            match place {
                NameOccurrence::Comment(_) => {}
                NameOccurrence::Name(index) if index == candidate.name => {}
                // `json.load(...)` proves nothing about a function `load` of this file.
                NameOccurrence::Name(index) if !candidate.is_member && occurrences::is_qualified(source, index) => {}
                NameOccurrence::Name(index) if self.is_of_import(index) => {}
                NameOccurrence::Name(index) if occurrences::is_called(source, index) => calls += 1,
                // Passed as a value, declared earlier or exported by name: other code depends on the signature.
                NameOccurrence::Name(_) | NameOccurrence::Text(_) => return,
            }
        }
        if calls == 0 {
            return;
        }
        let mut parameters = Vec::new();
        self.for_each_parameter(candidate.node, &mut |name| parameters.push(name));
        for parameter in parameters.into_iter().rev() {
            let Some(name) = parameter else { return };
            let bytes = source.bytes(&source.nodes[name]);
            let is_used = bytes.starts_with(b"_")
                || matches!(bytes, b"self" | b"this" | b"cls" | b"args" | b"kwargs" | b"unused" | b"ignored")
                || self.names.occurrences_in(bytes, start, end).iter().any(|&place| match place {
                    NameOccurrence::Comment(_) => false,
                    NameOccurrence::Text(_) => true,
                    NameOccurrence::Name(index) => index != name && !self.is_only_member(index),
                });
            if is_used {
                return;
            }
            let (text, function) = (source.text(&source.nodes[name]), source.text(&source.nodes[candidate.name]));
            out.push(
                SmellBuilder {
                    kind: Kind::DeadCode,
                    grade: SmellGrade::new(Priority::P3, Severity::Low, Confidence::Medium),
                    lines: source.node_lines(name),
                    title: format!("unused parameter `{}` of `{}`", shorten_name(text), shorten_name(function)),
                    explanation: format!(
                        "`{}` never mentions its parameter `{}`, and {} a value.",
                        shorten_name(function),
                        shorten_name(text),
                        if calls == 1 {
                            "the call here gives it".to_owned()
                        } else {
                            format!("all {calls} calls here give it")
                        }
                    ),
                    subject: format!("parameter {function} {text}"),
                }
                .build(),
            );
        }
    }

    /// Returns whether a function has a short body of at most one statement: such a body is often a placeholder.
    fn is_stub(&self, function: NodeIndex) -> bool {
        let source = self.source;
        let Some(mut body) = source.child_by_field(function, self.roles.fields.body) else { return true };
        let statements = |body: NodeIndex| {
            source.children(body).filter(|&child| {
                let node = &source.nodes[child];
                node.is_named() && self.roles.role(node.kind) != SmellNodeRole::Comment
            })
        };
        if let Some(list) = statements(body).find(|&child| self.roles.kinds.statement_list.is(source.nodes[child].kind))
        {
            body = list;
        }
        statements(body).count() <= 1 && source.nodes[body].end_index as usize - body < 40
    }
}

/// Returns whether a node of Rust is a trait or implements one.
pub(super) fn is_trait(roles: &SmellNodeRoles, source: &ParsedFile<'_>, node: &Node) -> bool {
    let header = || {
        let text = source.bytes(node);
        let text = &text[..text.len().min(MAX_SEARCHED_BYTES)];
        &text[..memchr::memchr(b'{', text).unwrap_or(text.len())]
    };
    roles.kinds.trait_item.is(node.kind)
        || (roles.kinds.impl_item.is(node.kind) && occurrences::has_word(header(), "for"))
}
