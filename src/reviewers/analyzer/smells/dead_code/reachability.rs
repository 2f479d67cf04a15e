//! Statements that are never reached, and conditions that are always the same.

use super::node_roles::SmellNodeRole;
use super::occurrences;
use super::{DeadCodeCollector, DeadCodeSmell, shorten_name};
use crate::domain::{Confidence, Priority, Severity, Suggestion};
use crate::reviewers::analyzer::language::Language;
use crate::reviewers::analyzer::source::{Node, NodeIndex};

impl DeadCodeCollector<'_, '_> {
    /// A `return` or the like: looks at what stands behind it in its block.
    pub(super) fn check_terminator(&mut self, index: NodeIndex) {
        if !self.limits.dead_code.unreachable_statements {
            return;
        }
        let (source, kinds) = (self.source, &self.roles.kinds);
        let mut statement = index;
        let parent = source.nodes[index].parent as usize;
        // `return x;` as an expression in Rust, `throw` in PHP and C#.
        if kinds.expression_statement.is(source.nodes[parent].kind) {
            statement = parent;
        }
        self.check_unreachable(statement);
    }

    /// `return` and `exit` are commands of a shell.
    pub(super) fn check_bash_command(&mut self, index: NodeIndex) {
        let source = self.source;
        let name = source.child_by_field(index, self.roles.fields.name).map(|name| source.bytes(&source.nodes[name]));
        if self.limits.dead_code.unreachable_statements
            && matches!(name, Some(b"return" | b"exit" | b"break" | b"continue"))
        {
            self.check_unreachable(index);
        }
    }

    fn check_unreachable(&mut self, statement: NodeIndex) {
        let (source, roles) = (self.source, self.roles);
        let node = &source.nodes[statement];
        let block = node.parent as usize;
        let is_block = roles.role(source.nodes[block].kind) == SmellNodeRole::Block
            // The root is its own parent.
            && statement != block;
        if !is_block || node.is_error() || source.nodes[block].is_error() {
            return;
        }
        let end = source.nodes[block].end_index as usize;
        let mut next = node.end_index as usize;
        let mut found = None;
        while next < end {
            let sibling = &source.nodes[next];
            if sibling.is_named() && roles.role(sibling.kind) != SmellNodeRole::Comment {
                found = Some((next, sibling));
                break;
            }
            // `return cond && a` without a separator, `a if b`: not a statement of its own.
            if !sibling.is_named() && !matches!(source.bytes(sibling), b";" | b"\n" | b"") {
                return;
            }
            next = sibling.end_index as usize;
        }
        let Some((dead, sibling)) = found else { return };
        if self.is_possibly_reachable(node, sibling) || self.has_error_in(block, end) {
            return;
        }
        let word = source.bytes(node).split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').next();
        let word = word.and_then(|word| std::str::from_utf8(word).ok()).unwrap_or("return");
        let text = source.text(sibling).lines().next().unwrap_or_default().trim();
        self.flow.push(
            DeadCodeSmell {
                node: dead,
                priority: Priority::P2,
                severity: Severity::Medium,
                confidence: if source.language == Language::Bash { Confidence::Medium } else { Confidence::High },
                title: format!("`{}` is never reached", shorten_name(text)),
                explanation: format!(
                    "The `{word}` in line {} ends the block before this statement can run.",
                    node.row + 1
                ),
                subject: format!("unreachable {}", crate::domain::text::normalize_code(text)),
                suggestion: self.suggest_removal(dead, node.end_row, end),
            }
            .into_smell(source),
        );
    }

    /// That the statement can go: exact when it does nothing but call, its lines are its own, and nothing else of the block
    /// comes behind it. What declares something, or makes its function a generator, is not certain to be without effect,
    /// and neither is what uses a name that Go or C want used.
    fn suggest_removal(&self, dead: NodeIndex, terminator_row: u32, block_end: NodeIndex) -> Option<Suggestion> {
        let (source, roles) = (self.source, self.roles);
        let node = &source.nodes[dead];
        let certain = matches!(
            source.language,
            Language::Python
                | Language::Rust
                | Language::Java
                | Language::CSharp
                | Language::JavaScript
                | Language::TypeScript
                | Language::Tsx
        );
        let text = source.bytes(node);
        let declares = [&b"="[..], b"yield", b"function", b"global", b"nonlocal", b"import", b"del ", b"var ", b"let "];
        if !certain || declares.iter().any(|word| memchr::memmem::find(text, word).is_some()) {
            return None;
        }
        let mut next = node.end_index as usize;
        while next < block_end {
            let sibling = &source.nodes[next];
            if sibling.is_named() && roles.role(sibling.kind) != SmellNodeRole::Comment {
                return None;
            }
            next = sibling.end_index as usize;
        }
        let lines = self.own_lines(node).filter(|lines| lines.start > terminator_row + 1)?;
        Some(Suggestion {
            text: "Remove the statement.".to_owned(),
            replacement: Some(String::new()),
            lines: Some(lines),
        })
    }

    fn is_possibly_reachable(&self, terminator: &Node, sibling: &Node) -> bool {
        let (source, roles, kinds) = (self.source, self.roles, &self.roles.kinds);
        if sibling.is_error() || sibling.end <= sibling.start {
            return true;
        }
        // Two statements on one line are more often a macro or a misread construct.
        if terminator.end_row == sibling.row
            && source.language != Language::Bash
            && matches!(source.language, Language::C | Language::Cpp)
        {
            return true;
        }
        if roles.kind_name(sibling.kind).starts_with("preproc") {
            return true;
        }
        match roles.role(sibling.kind) {
            SmellNodeRole::Reachable | SmellNodeRole::Class | SmellNodeRole::Import => return true,
            SmellNodeRole::Function => return !kinds.arrow_function.is(sibling.kind),
            // `break` behind a `return` in a case is a habit.
            SmellNodeRole::Terminator if kinds.break_statement.is(sibling.kind) => return true,
            _ => {}
        }
        if kinds.case_statement.is(sibling.kind) || kinds.mod_item.is(sibling.kind) {
            return true;
        }
        let text = source.bytes(sibling);
        let starts = |words: &[&[u8]]| words.iter().any(|word| text.starts_with(word));
        match source.language {
            // A `yield` that is never reached makes a function a generator.
            Language::Python => starts(&[b"yield"]),
            // `var` and functions are known in all of the function.
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                starts(&[b"var ", b"function", b"async function"])
            }
            // The compiler once wanted it; labels make the rest reachable.
            Language::Go => starts(&[b"panic("]),
            Language::C | Language::Cpp => {
                // A macro that looks like a call may be a label or a case: only of real statements we can be sure.
                text.first().is_some_and(u8::is_ascii_uppercase)
                    || starts(&[b"case", b"default", b"__builtin_unreachable", b"assert"])
            }
            Language::Bash => starts(&[b"}", b";;"]),
            _ => false,
        }
    }

    /// The condition of an `if` or a loop.
    pub(super) fn check_condition(&mut self, index: NodeIndex, is_loop: bool) {
        if !self.limits.dead_code.constant_conditions {
            return;
        }
        let (source, fields, kinds) = (self.source, self.roles.fields, &self.roles.kinds);
        let Some(mut condition) = source.child_by_field(index, fields.condition) else { return };
        for _ in 0..3 {
            let inner = source.children(condition).find(|&child| source.nodes[child].is_named());
            match inner {
                Some(inner)
                    if kinds.parenthesized_expression.is(source.nodes[condition].kind)
                        || self.is_condition_clause(condition) =>
                {
                    condition = inner;
                }
                _ => break,
            }
        }
        let node = &source.nodes[condition];
        let always = match source.bytes(node) {
            b"true" | b"True" | b"TRUE" | b"1" => true,
            b"false" | b"False" | b"FALSE" | b"0" | b"null" | b"nil" | b"None" | b"NULL" | b"nullptr" => false,
            _ => return,
        };
        let keyword = source.bytes(&source.nodes[index]).split(|byte| !byte.is_ascii_alphabetic()).next();
        let keyword =
            keyword.and_then(|word| std::str::from_utf8(word).ok()).filter(|word| !word.is_empty()).unwrap_or("if");
        // `while true` and `until false` are loops without an end; `do … while (0)` is another kind of node.
        if is_loop && always != matches!(keyword, "until") {
            return;
        }
        let before = source.text[..source.nodes[index].start as usize].trim_ascii_end().last();
        // The foot of a `do … while (0)`, whole or torn by a macro.
        let is_foot = matches!(source.language, Language::C | Language::Cpp) && before == Some(&b'}');
        let is_test = self.facts.is_test_at(index);
        if (keyword == "while" && is_foot) || (is_test && !is_loop && keyword != "if") {
            return;
        }
        // A code generator's or a template's business.
        if occurrences::is_suppressed(source, &source.nodes[index]) || node.is_error() {
            return;
        }
        let value = source.text(node);
        let line = source.text(&source.nodes[index]).lines().next().unwrap_or_default().trim();
        let mut smell = DeadCodeSmell {
            node: condition,
            priority: Priority::P3,
            severity: Severity::Medium,
            confidence: if is_test { Confidence::Low } else { Confidence::High },
            title: format!("the condition of `{}` is always `{value}`", shorten_name(line)),
            explanation: format!(
                "The condition is the literal `{value}`: {}.",
                match (is_loop, always) {
                    (true, _) => "the body of the loop never runs",
                    (false, true) => "the branch always runs, and an `else` never does",
                    (false, false) => "the branch never runs",
                }
            ),
            subject: format!("constant condition {}", crate::domain::text::normalize_code(line)),
            suggestion: None,
        }
        .into_smell(source);
        smell.line_start = source.nodes[index].row + 1;
        smell.anchor = (smell.line_start, smell.line_start);
        smell.line_end = smell.line_end.max(smell.line_start);
        self.flow.push(smell);
    }

    /// C++ wraps conditions once more.
    fn is_condition_clause(&self, index: NodeIndex) -> bool {
        let bytes = self.source.bytes(&self.source.nodes[index]);
        bytes.first() == Some(&b'(') && bytes.last() == Some(&b')')
    }
}
