//! Finds unreachable statements and constant conditions.

use super::{DeadCodeCollector, MAX_LINE_BYTES, shorten_name};
use crate::domain::{Confidence, Kind, LineRange, Priority, Severity, Suggestion};
use crate::reviewers::analyzer::smells::{SmellBuilder, SmellGrade};
use crate::syntax::language::Language;
use crate::syntax::node_roles::SmellNodeRole;
use crate::syntax::occurrences;
use crate::syntax::source::{MAX_SEARCHED_BYTES, Node, NodeIndex};

impl DeadCodeCollector<'_, '_> {
    /// Checks the statement that follows a `return` or similar in the same block.
    pub(super) fn check_terminator(&mut self, index: NodeIndex) {
        if !self.limits.dead_code.unreachable_statements {
            return;
        }
        let (source, kinds) = (self.source, &self.roles.kinds);
        let mut statement = index;
        let parent = source.nodes[index].parent as usize;
        // `return x;` of Rust and `throw` of PHP and C# are inside an expression statement.
        if kinds.expression_statement.is(source.nodes[parent].kind) {
            statement = parent;
        }
        self.check_unreachable(statement);
    }

    /// Checks `return`, `exit`, `break` and `continue`, which are commands in a shell.
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
        while next < end && source.work().spend(1) {
            let sibling = &source.nodes[next];
            if sibling.is_named() && roles.role(sibling.kind) != SmellNodeRole::Comment {
                found = Some((next, sibling));
                break;
            }
            // `return cond && a` without a separator and `a if b` are no separate statements.
            if !sibling.is_named() && !matches!(source.bytes(sibling), b";" | b"\n" | b"") {
                return;
            }
            next = sibling.end_index as usize;
        }
        let Some((dead, sibling)) = found else { return };
        if self.is_possibly_reachable(node, sibling) || self.has_error_in(block, end) {
            return;
        }
        let word = source.text_prefix(node, MAX_SEARCHED_BYTES).as_bytes();
        let word = word.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').next();
        let word = word.and_then(|word| std::str::from_utf8(word).ok()).unwrap_or("return");
        let text = source.text_prefix(sibling, MAX_LINE_BYTES).lines().next().unwrap_or_default().trim();
        let confidence = if source.language == Language::Bash { Confidence::Medium } else { Confidence::High };
        let builder = SmellBuilder {
            kind: Kind::DeadCode,
            grade: SmellGrade::new(Priority::P2, Severity::Medium, confidence),
            lines: source.node_lines(dead),
            title: format!("`{}` is never reached", shorten_name(text)),
            explanation: format!("The `{word}` in line {} ends the block before this statement can run.", node.row + 1),
            subject: format!("unreachable {}", crate::domain::text::normalize_code(text)),
        };
        self.flow.push(builder.build().with_suggestion(self.suggest_removal(dead, node.end_row, end)));
    }

    /// Suggests to remove the statement. `None` unless that is certain to be correct: the statement only calls
    /// something, no other code is on its lines, and nothing follows it in the block. A statement that declares a name
    /// or makes its function a generator may have an effect, and Go and C complain about names that are no longer used.
    fn suggest_removal(&self, dead: NodeIndex, terminator_row: u32, block_end: NodeIndex) -> Option<Suggestion> {
        let (source, roles) = (self.source, self.roles);
        let node = &source.nodes[dead];
        let certain = matches!(
            source.language,
            Language::Python
                | Language::Rust
                | Language::Java
                | Language::CSharp
                | Language::Kotlin
                | Language::Scala
                | Language::Swift
                | Language::JavaScript
                | Language::TypeScript
                | Language::Tsx
        );
        let text = source.bytes(node);
        let declares = [&b"="[..], b"yield", b"function", b"global", b"nonlocal", b"import", b"del ", b"var ", b"let "];
        if !certain
            || text.len() > MAX_SEARCHED_BYTES
            || declares.iter().any(|word| memchr::memmem::find(text, word).is_some())
        {
            return None;
        }
        let mut next = node.end_index as usize;
        while next < block_end && source.work().spend(1) {
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
        // In C and C++, two statements on one line are more often a macro or a misread construct.
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
            // `break` after a `return` is common style in a case.
            SmellNodeRole::Terminator if kinds.break_statement.is(sibling.kind) => return true,
            _ => {}
        }
        if kinds.case_statement.is(sibling.kind) || kinds.mod_item.is(sibling.kind) {
            return true;
        }
        let text = source.bytes(sibling);
        let starts = |words: &[&[u8]]| words.iter().any(|word| text.starts_with(word));
        match source.language {
            // Even an unreachable `yield` makes a function a generator.
            Language::Python => starts(&[b"yield"]),
            // `var` and functions are hoisted: they are known in the whole function.
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                starts(&[b"var ", b"function", b"async function"])
            }
            // Old Go compilers required a final `panic`. Code after a label is reachable.
            Language::Go => starts(&[b"panic("]),
            Language::C | Language::Cpp => {
                // A macro that looks like a call may be a label or a case: only real statements are certain.
                text.first().is_some_and(u8::is_ascii_uppercase)
                    || starts(&[b"case", b"default", b"__builtin_unreachable", b"assert"])
            }
            Language::Bash => starts(&[b"}", b";;"]),
            // `return` takes the expression on the next line, so what stands alone there is a part of `#if`.
            Language::Swift => starts(&[b"#"]),
            _ => false,
        }
    }

    /// Reports the condition of an `if` or a loop if it is constant.
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
        // `while true` and `until false` are deliberate endless loops; `do … while (0)` has another node kind.
        if is_loop && always != matches!(keyword, "until") {
            return;
        }
        let before = source.text[..source.nodes[index].start as usize].trim_ascii_end().last();
        // The end of a `do … while (0)`, complete or split by a macro.
        let is_foot = matches!(source.language, Language::C | Language::Cpp) && before == Some(&b'}');
        let is_test = self.facts.is_test_at(index);
        if (keyword == "while" && is_foot) || (is_test && !is_loop && keyword != "if") {
            return;
        }
        // Skip conditions with a suppression mark, and nodes with errors: often generated code or templates.
        if occurrences::is_suppressed(source, &source.nodes[index]) || node.is_error() {
            return;
        }
        let value = source.text(node);
        let line = source.text_prefix(&source.nodes[index], MAX_LINE_BYTES).lines().next().unwrap_or_default().trim();
        let confidence = if is_test { Confidence::Low } else { Confidence::High };
        let first = source.nodes[index].row + 1;
        let builder = SmellBuilder {
            kind: Kind::DeadCode,
            grade: SmellGrade::new(Priority::P3, Severity::Medium, confidence),
            lines: LineRange::new(first, (node.end_row + 1).max(first)),
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
        };
        self.flow.push(builder.build());
    }

    /// Returns whether a node is the clause in which C++ wraps a condition.
    fn is_condition_clause(&self, index: NodeIndex) -> bool {
        let bytes = self.source.bytes(&self.source.nodes[index]);
        bytes.first() == Some(&b'(') && bytes.last() == Some(&b')')
    }
}
