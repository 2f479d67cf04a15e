//! The identifiers of a file where they stand, and what it imports.
//!
//! Invariant: one pass over the nodes, or over the words of a text without a tree.

use std::collections::HashSet;
use std::ops::Range;

use super::roles::Roles;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::{NodeIndex, Source};

/// Identifiers have so many bytes.
const LENGTHS: Range<usize> = 2..65;
/// Imports are not longer, in bytes, a file has no more of them, and braces are not deeper.
const LONGEST_IMPORT: usize = 400;
const MAX_IMPORTS: usize = 2_000;
const MAX_BRACES: usize = 16;

/// An identifier and where it starts, the signs of its language left away.
pub type Use<'a> = (u32, &'a str);

/// What a file uses.
#[derive(Default)]
pub struct Uses<'a> {
    /// In order.
    pub names: Vec<Use<'a>>,
    pub imports: Vec<String>,
}

pub fn read<'a>(source: &Source<'a>) -> Uses<'a> {
    let roles = Roles::of(source.language);
    let mut uses = Uses::default();
    for (at, node) in source.nodes.iter().enumerate() {
        if !node.is_named() {
            continue;
        }
        if node.end_index as usize == at + 1 {
            if roles.names.contains(node.kind) {
                let name = identifier(source.text(node));
                uses.names.extend(name.map(|(signs, name)| (node.start + signs, name)));
            }
        } else {
            imported_at(source, roles, at, &mut uses.imports);
        }
    }
    sift(&mut uses.imports);
    uses
}

/// What a file imports, without the rest.
pub fn imports(source: &Source<'_>) -> Vec<String> {
    let roles = Roles::of(source.language);
    let mut imports = Vec::new();
    for at in 0..source.nodes.len() {
        imported_at(source, roles, at, &mut imports);
    }
    sift(&mut imports);
    imports
}

fn imported_at(source: &Source<'_>, roles: &Roles, at: NodeIndex, imports: &mut Vec<String>) {
    let node = &source.nodes[at];
    if !node.is_named() || node.end_index as usize == at + 1 || imports.len() >= MAX_IMPORTS {
        return;
    }
    if roles.imports.contains(node.kind) {
        import(source, roles, at, imports);
    } else if roles.calls.contains(node.kind) {
        imports.extend(called(source, roles, at));
    } else if roles.modules.contains(node.kind) {
        imports.extend(module(source, roles, at));
    }
}

/// Each once, and none that is too long.
fn sift(imports: &mut Vec<String>) {
    let mut seen = HashSet::new();
    imports.retain(|import| (1..LONGEST_IMPORT).contains(&import.len()) && seen.insert(import.clone()));
}

/// The words of a text that only code has: `snake_case`, `camelCase`, `called()`.
pub fn of_words(text: &str) -> Uses<'_> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut uses = Uses::default();
    let mut at = 0;
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while bytes.get(at).is_some_and(|byte| is_word(*byte)) {
            at += 1;
        }
        let Some((signs, name)) = text.get(start..at).and_then(identifier) else { continue };
        let word = name.as_bytes();
        let has_hump = word.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
        let has_seam = word[1..word.len() - 1].contains(&b'_');
        if has_hump || has_seam || bytes.get(at) == Some(&b'(') {
            uses.names.push((start as u32 + signs, name));
        }
    }
    uses
}

/// A name without the signs of its language, and how many bytes of them are before it; `None` for what is none.
fn identifier(text: &str) -> Option<(u32, &str)> {
    let bare = text.trim_start_matches(['$', '@', '#', ':']);
    let name = bare.trim_end_matches(['?', '!', ':']);
    let is_name = LENGTHS.contains(&name.len())
        && !name.as_bytes()[0].is_ascii_digit()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 128);
    is_name.then_some(((text.len() - bare.len()) as u32, name))
}

fn import(source: &Source<'_>, roles: &Roles, at: NodeIndex, imports: &mut Vec<String>) {
    let fields = &roles.fields;
    let node = &source.nodes[at];
    let text_in = |field: u16| source.child_in(at, field).map(|child| source.text(&source.nodes[child]));
    let text = source.start_of(node, LONGEST_IMPORT * 8);
    match source.language {
        Language::Rust => expand(after(text, &["pub", "use", "extern", "crate"]), "::", imports),
        Language::Php => expand(after(text, &["use", "function", "const"]), "\\", imports),
        Language::Java => imports
            .push(squeezed(after(text, &["import", "static"]).trim_end_matches(';')).trim_end_matches(".*").to_owned()),
        Language::CSharp => {
            let name = after(text, &["global", "using", "static", "unsafe"]).trim_end_matches(';');
            imports.push(squeezed(name.split_once('=').map_or(name, |(_, name)| name)));
        }
        Language::Python => python(source, roles, at, imports),
        Language::C | Language::Cpp | Language::Go => {
            imports.extend(text_in(fields.path).map(|path| unquoted(path).to_owned()));
        }
        _ => imports.extend(
            text_in(fields.source).or_else(|| first_string(source, roles, at)).map(|name| unquoted(name).to_owned()),
        ),
    }
}

/// `from a.b import c, d as e`: `a.b.c`, `a.b.d`.
fn python(source: &Source<'_>, roles: &Roles, at: NodeIndex, imports: &mut Vec<String>) {
    let fields = &roles.fields;
    let module = source.child_in(at, fields.module_name).map(|module| squeezed(source.text(&source.nodes[module])));
    let mut is_named = false;
    for child in source.children(at).filter(|&child| source.nodes[child].field == fields.name && fields.name != 0) {
        let inner = source.child_in(child, fields.name).unwrap_or(child);
        let name = squeezed(source.text(&source.nodes[inner]));
        is_named = true;
        imports.push(match &module {
            Some(module) if module.ends_with('.') => format!("{module}{name}"),
            Some(module) => format!("{module}.{name}"),
            None => name,
        });
    }
    if !is_named {
        imports.extend(module);
    }
}

/// What a call imports: `require("x")`, `require_relative "x"`, `source x`.
fn called(source: &Source<'_>, roles: &Roles, at: NodeIndex) -> Option<String> {
    const LONGEST: usize = 24;
    let fields = &roles.fields;
    let start_in = |field: u16| {
        source.child_in(at, field).map(|child| source.start_of(&source.nodes[child], LONGEST)).unwrap_or_default()
    };
    match source.language {
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            matches!(start_in(fields.function), "require" | "import").then_some(())?;
            Some(unquoted(first_string(source, roles, source.child_in(at, fields.arguments)?)?).to_owned())
        }
        Language::Ruby => {
            let method = start_in(fields.method);
            matches!(method, "require" | "require_relative" | "load" | "autoload").then_some(())?;
            let name = unquoted(first_string(source, roles, source.child_in(at, fields.arguments)?)?);
            let is_bare = method == "require_relative" && !name.starts_with('.');
            Some(if is_bare { format!("./{name}") } else { name.to_owned() })
        }
        Language::Php => Some(unquoted(first_string(source, roles, at)?).trim_start_matches('/').to_owned()),
        Language::Bash => {
            matches!(start_in(fields.name), "source" | ".").then_some(())?;
            let argument = source.children(at).find(|&child| source.nodes[child].field == fields.argument)?;
            Some(unquoted(source.text(&source.nodes[argument])).to_owned())
        }
        _ => None,
    }
}

/// `export ... from "x"`, `mod x;`.
fn module(source: &Source<'_>, roles: &Roles, at: NodeIndex) -> Option<String> {
    let fields = &roles.fields;
    match source.language {
        Language::Rust => {
            let name = source.child_in(at, fields.name).filter(|_| source.child_in(at, fields.body).is_none())?;
            Some(format!("self::{}", source.text(&source.nodes[name])))
        }
        _ => Some(unquoted(source.text(&source.nodes[source.child_in(at, fields.source)?])).to_owned()),
    }
}

fn first_string<'a>(source: &Source<'a>, roles: &Roles, at: NodeIndex) -> Option<&'a str> {
    let string = source.children(at).take(8).find(|&child| roles.strings.contains(source.nodes[child].kind));
    let below = || {
        let inner = source.children(at).take(8).filter(|&child| source.nodes[child].is_named());
        inner
            .flat_map(|child| source.children(child).take(8))
            .find(|&child| roles.strings.contains(source.nodes[child].kind))
    };
    string.or_else(below).map(|string| source.text(&source.nodes[string]))
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\'', '`', '<', '>'])
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// What follows the words that an import begins with; visibility in parentheses is such a word too.
fn after<'t>(text: &'t str, words: &[&str]) -> &'t str {
    let mut rest = text.trim_start();
    'words: loop {
        if let Some((_, inner)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            rest = inner.trim_start();
        }
        for word in words {
            if let Some(next) = rest.strip_prefix(word)
                && next.starts_with(|c: char| c.is_whitespace() || c == '(')
            {
                rest = next.trim_start();
                continue 'words;
            }
        }
        return rest;
    }
}

/// `a::{b, c::{d, self}, e as f};`: `a::b`, `a::c::d`, `a::c`, `a::e`.
fn expand(text: &str, separator: &str, imports: &mut Vec<String>) {
    let mut open: Vec<String> = Vec::new();
    let mut word = String::new();
    let finish = |open: &[String], word: &mut String, imports: &mut Vec<String>| {
        let name = word.split(" as ").next().unwrap_or_default().trim();
        let name = name.strip_suffix('*').map_or(name, |name| name.trim_end_matches(separator));
        let name = if name == "self" { "" } else { name };
        let before = open.last().map_or("", String::as_str);
        let whole = format!("{before}{}", squeezed(name));
        let whole = if name.is_empty() { whole.trim_end_matches(separator) } else { &whole };
        if !word.trim().is_empty() && imports.len() < MAX_IMPORTS {
            imports.push(whole.trim_start_matches('\\').to_owned());
        }
        word.clear();
    };
    for c in text.chars() {
        match c {
            '{' if open.len() < MAX_BRACES => {
                let before = open.last().map_or("", String::as_str);
                open.push(format!("{before}{}", squeezed(&word)));
                word.clear();
            }
            '{' => return,
            ',' => finish(&open, &mut word, imports),
            '}' => {
                finish(&open, &mut word, imports);
                open.pop();
            }
            ';' => break,
            '\n' | '\t' | '\r' => word.push(' '),
            c => word.push(c),
        }
        if word.len() > LONGEST_IMPORT {
            return;
        }
    }
    finish(&open, &mut word, imports);
}
