//! Finds promises of JavaScript and TypeScript that are not awaited and whose rejection is not handled.

use super::node_roles::ErrorNodeRole;
use super::{LostErrorCollector, LostErrorKind};
use crate::syntax::language::Language;
use crate::syntax::source::NodeIndex;

/// Maximum number of calls in a chain that are followed. Longer chains are not reported.
const MAX_CHAIN_CALLS: usize = 16;

fn has_promises(language: Language) -> bool {
    matches!(language, Language::JavaScript | Language::TypeScript | Language::Tsx)
}

/// Functions that the file declares `async`, and calls that are statements.
#[derive(Default)]
pub(super) struct FloatingPromises<'a> {
    /// `async` functions, as (name, true for a method).
    asynchronous: Vec<(&'a str, bool)>,
    /// Functions that are not `async`, in the same form.
    others: Vec<(&'a str, bool)>,
    /// Calls that are statements, as (node, name, true for a method).
    calls: Vec<(NodeIndex, &'a str, bool)>,
}

impl<'a> FloatingPromises<'a> {
    pub fn add_function(&mut self, reader: &LostErrorCollector<'a, '_>, index: NodeIndex) {
        let source = reader.source;
        let fields = &reader.roles.fields;
        if !has_promises(source.language) {
            return;
        }
        let Some(name) = source.child_by_field(index, fields.name) else { return };
        let (function, is_method) = match source.child_by_field(index, fields.value) {
            Some(value) if reader.roles.is_function_value(source.nodes[value].kind) => (value, false),
            Some(_) => return,
            None => match source.child_by_field(index, fields.body) {
                Some(_) => (
                    index,
                    !source.bytes(&source.nodes[index]).starts_with(b"function")
                        && !source.bytes(&source.nodes[index]).starts_with(b"async function"),
                ),
                None => return,
            },
        };
        let body = source.child_by_field(function, fields.body);
        let is_async = source
            .children(function)
            .take_while(|&child| Some(child) != body)
            .any(|child| source.bytes(&source.nodes[child]) == b"async");
        let name = reader.text(name);
        match is_async && !has_own_handler(reader, function) {
            true => self.asynchronous.push((name, is_method)),
            false => self.others.push((name, is_method)),
        }
    }

    pub fn add_statement(&mut self, reader: &LostErrorCollector<'a, '_>, index: NodeIndex) {
        let source = reader.source;
        let fields = &reader.roles.fields;
        if !has_promises(source.language) {
            return;
        }
        let Some(call) = reader.named_children(index).next().filter(|&call| reader.role(call) == ErrorNodeRole::Call)
        else {
            return;
        };
        let Some(function) = source.child_by_field(call, fields.function) else { return };
        if !reader.roles.is_member(source.nodes[function].kind) {
            self.calls.push((call, reader.text(function), false));
            return;
        }
        if let Some(method) = reader.text(function).strip_prefix("this.") {
            self.calls.push((call, method, true));
        }
        if is_floating_chain(reader, call) {
            self.calls.push((call, ".then", false));
        }
    }

    pub fn finish(mut self, reader: &mut LostErrorCollector<'a, '_>) {
        self.asynchronous.sort_unstable();
        self.others.sort_unstable();
        for (call, name, is_method) in self.calls {
            if name == ".then" {
                reader.push(call, LostErrorKind::FloatingThen, "");
            } else if self.asynchronous.binary_search(&(name, is_method)).is_ok()
                && self.others.binary_search(&(name, is_method)).is_err()
            {
                reader.push(call, LostErrorKind::FloatingCall, name);
            }
        }
    }
}

/// Returns whether the body of an async function is a single `try` statement: it can only reject in its handler.
fn has_own_handler(reader: &LostErrorCollector<'_, '_>, function: NodeIndex) -> bool {
    let source = reader.source;
    let Some(body) = source.child_by_field(function, reader.roles.fields.body) else { return false };
    let mut statements =
        reader.named_children(body).filter(|&statement| reader.role(statement) != ErrorNodeRole::Comment);
    let first = statements.next();
    statements.next().is_none() && first.is_some_and(|first| source.bytes(&source.nodes[first]).starts_with(b"try"))
}

/// Returns whether a chain has a `.then` with one argument, and neither a `.catch` nor a second argument.
fn is_floating_chain(reader: &LostErrorCollector<'_, '_>, call: NodeIndex) -> bool {
    let source = reader.source;
    let fields = &reader.roles.fields;
    let mut call = call;
    let mut waits = false;
    for _ in 0..MAX_CHAIN_CALLS {
        let Some(function) = source.child_by_field(call, fields.function) else { return waits };
        let Some(property) = source.child_by_field(function, fields.property) else { return waits };
        let arguments =
            source.child_by_field(call, fields.arguments).map_or(0, |list| reader.named_children(list).count());
        match source.bytes(&source.nodes[property]) {
            b"then" if arguments == 1 => waits = true,
            b"then" | b"catch" => return false,
            // Test tools such as Cypress have their own `then`.
            b"should" | b"expect" | b"get" if waits && reader.text(call).starts_with("cy.") => return false,
            _ => {}
        }
        let Some(object) = reader.named_children(function).next() else { return waits };
        if reader.role(object) != ErrorNodeRole::Call {
            return waits;
        }
        call = object;
    }
    false
}

impl LostErrorCollector<'_, '_> {
    /// Checks `.catch(() => {})`.
    pub(super) fn check_promise_handler(&mut self, call: NodeIndex, function: NodeIndex) {
        let source = self.source;
        let fields = &self.roles.fields;
        let Some(property) = source.child_by_field(function, fields.property) else { return };
        if source.bytes(&source.nodes[property]) != b"catch" {
            return;
        }
        let Some(handler) =
            source.child_by_field(call, fields.arguments).and_then(|list| self.named_children(list).next())
        else {
            return;
        };
        if !self.roles.is_function_value(source.nodes[handler].kind) {
            return;
        }
        let Some(body) = source.child_by_field(handler, fields.body) else { return };
        if self.roles.is_block(source.nodes[body].kind) && self.named_children(body).next().is_none() {
            self.push(handler, LostErrorKind::EmptyPromiseHandler, "");
        }
    }
}
