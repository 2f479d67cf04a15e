//! Reads the identifiers of a file with their positions, and its imports.
//!
//! - Makes one pass over the syntax nodes, or over the words of a text without a tree.

use std::collections::HashSet;
use std::ops::Range;

use super::roles::OutlineRoles;
use crate::syntax::import_rules::{ImportForm, import_rules};
use crate::syntax::source::{NodeIndex, ParsedFile};

/// Length of an identifier in bytes.
const IDENTIFIER_BYTES: Range<usize> = 2..65;
/// Longest import in bytes, most imports per file, and deepest nesting of braces in an import.
const MAX_IMPORT_BYTES: usize = 400;
const MAX_IMPORTS: usize = 2_000;
const MAX_BRACES: usize = 16;

/// An identifier without language sigils such as `$`, and its byte offset.
pub type IdentifierUse<'a> = (u32, &'a str);

/// Identifiers and imports of a file.
#[derive(Default)]
pub struct FileUses<'a> {
    /// In source order.
    pub names: Vec<IdentifierUse<'a>>,
    pub imports: Vec<String>,
}

/// Reads the identifiers and imports of a file from its syntax tree.
pub fn read_uses<'a>(source: &ParsedFile<'a>) -> FileUses<'a> {
    let roles = OutlineRoles::for_language(source.language);
    let mut uses = FileUses::default();
    for (at, node) in source.nodes.iter().enumerate() {
        if !node.is_named() {
            continue;
        }
        if node.end_index as usize == at + 1 {
            if roles.names.contains(node.kind) {
                let name = parse_identifier(source.text(node));
                uses.names.extend(name.map(|(signs, name)| (node.start + signs, name)));
            }
        } else {
            collect_imports(source, roles, at, &mut uses.imports);
        }
    }
    dedup_imports(&mut uses.imports);
    uses
}

/// Reads only the imports of a file.
pub fn read_imports(source: &ParsedFile<'_>) -> Vec<String> {
    let roles = OutlineRoles::for_language(source.language);
    let mut imports = Vec::new();
    for at in 0..source.nodes.len() {
        collect_imports(source, roles, at, &mut imports);
    }
    dedup_imports(&mut imports);
    imports
}

fn collect_imports(source: &ParsedFile<'_>, roles: &OutlineRoles, at: NodeIndex, imports: &mut Vec<String>) {
    let node = &source.nodes[at];
    if !node.is_named() || node.end_index as usize == at + 1 || imports.len() >= MAX_IMPORTS {
        return;
    }
    if roles.imports.contains(node.kind) {
        add_imports(source, roles, at, imports);
    } else if roles.calls.contains(node.kind) {
        imports.extend(import_from_call(source, roles, at));
    } else if roles.modules.contains(node.kind) {
        imports.extend(import_from_module(source, roles, at));
    }
}

/// Removes duplicates, empty imports and imports that are too long.
fn dedup_imports(imports: &mut Vec<String>) {
    let mut seen = HashSet::new();
    imports.retain(|import| (1..MAX_IMPORT_BYTES).contains(&import.len()) && seen.insert(import.clone()));
}

/// Reads words that occur only in code from a text without a syntax tree: `snake_case`, `camelCase`, `called()`.
pub fn read_uses_from_words(text: &str) -> FileUses<'_> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut uses = FileUses::default();
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
        let Some((signs, name)) = text.get(start..at).and_then(parse_identifier) else { continue };
        let word = name.as_bytes();
        let has_hump = word.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
        let has_seam = word[1..word.len() - 1].contains(&b'_');
        if has_hump || has_seam || bytes.get(at) == Some(&b'(') {
            uses.names.push((start as u32 + signs, name));
        }
    }
    uses
}

/// Strips sigils from a name and returns the length of the leading sigils in bytes and the name; `None` if the text is
/// not an identifier.
fn parse_identifier(text: &str) -> Option<(u32, &str)> {
    let bare = text.trim_start_matches(['$', '@', '#', ':']);
    let name = bare.trim_end_matches(['?', '!', ':']);
    let is_name = IDENTIFIER_BYTES.contains(&name.len())
        && !name.as_bytes()[0].is_ascii_digit()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 128);
    is_name.then_some(((text.len() - bare.len()) as u32, name))
}

/// Adds the imports of an import statement.
fn add_imports(source: &ParsedFile<'_>, roles: &OutlineRoles, at: NodeIndex, imports: &mut Vec<String>) {
    let (fields, rules) = (&roles.fields, import_rules(source.language));
    let text_in = |field: u16| source.child_by_field(at, field).map(|child| source.text(&source.nodes[child]));
    let text = strip_keywords(source.text_prefix(&source.nodes[at], MAX_IMPORT_BYTES * 8), &rules.keywords);
    let first = imports.len();
    match rules.form {
        ImportForm::Braces => match &rules.rename {
            Some(sign) => expand_braces(&text.replace(&**sign, " as "), &rules.separator, imports),
            None => expand_braces(text, &rules.separator, imports),
        },
        ImportForm::Path => {
            let path = text.split(" as ").next().unwrap_or_default().trim_end_matches(';');
            imports.push(strip_whitespace(path.split_once('=').map_or(path, |(_, path)| path)));
        }
        ImportForm::LastWord => imports.extend(text.split_whitespace().last().map(str::to_owned)),
        ImportForm::ModuleAndNames => add_module_and_names(source, roles, at, imports),
        ImportForm::Field => imports.extend(text_in(fields.path).map(|path| strip_quotes(path).to_owned())),
        ImportForm::Source => {
            let source_text = text_in(fields.source).or_else(|| first_string(source, roles, at));
            imports.extend(source_text.map(|name| strip_quotes(name).to_owned()));
        }
    }
    for import in &mut imports[first..] {
        let package = rules.wildcards.iter().fold(import.as_str(), |path, all| path.trim_end_matches(&**all));
        import.truncate(package.len());
    }
}

/// Adds a module with names: `from a.b import c, d as e` gives `a.b.c` and `a.b.d`.
fn add_module_and_names(source: &ParsedFile<'_>, roles: &OutlineRoles, at: NodeIndex, imports: &mut Vec<String>) {
    let fields = &roles.fields;
    let module = source
        .child_by_field(at, fields.module_name)
        .map(|module| strip_whitespace(source.text(&source.nodes[module])));
    let mut is_named = false;
    for child in source.children(at).filter(|&child| source.nodes[child].field == fields.name && fields.name != 0) {
        let inner = source.child_by_field(child, fields.name).unwrap_or(child);
        let name = strip_whitespace(source.text(&source.nodes[inner]));
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

/// Returns the file that a call imports: `require("x")`, `require_relative "x"`, `source x`.
fn import_from_call(source: &ParsedFile<'_>, roles: &OutlineRoles, at: NodeIndex) -> Option<String> {
    const MAX_CALLEE_BYTES: usize = 24;
    let (fields, rules) = (&roles.fields, import_rules(source.language));
    if rules.any_call {
        return Some(strip_quotes(first_string(source, roles, at)?).trim_start_matches('/').to_owned());
    }
    let callee =
        [fields.function, fields.method, fields.name].into_iter().find_map(|f| source.child_by_field(at, f))?;
    let callee = source.text_prefix(&source.nodes[callee], MAX_CALLEE_BYTES);
    let has = |names: &[String]| names.iter().any(|name| name == callee);
    let is_relative = has(&rules.relative_calls);
    (is_relative || has(&rules.calls)).then_some(())?;
    let argument = match source.child_by_field(at, fields.arguments) {
        Some(arguments) => first_string(source, roles, arguments)?,
        None => source.text(&source.nodes[source.child_by_field(at, fields.argument)?]),
    };
    let name = strip_quotes(argument);
    Some(if is_relative && !name.starts_with('.') { format!("./{name}") } else { name.to_owned() })
}

/// Returns the module named by `export ... from "x"` or `mod x;`.
fn import_from_module(source: &ParsedFile<'_>, roles: &OutlineRoles, at: NodeIndex) -> Option<String> {
    let fields = &roles.fields;
    let text_in = |field: u16| source.child_by_field(at, field).map(|child| source.text(&source.nodes[child]));
    match &import_rules(source.language).child_modules {
        Some(start) => {
            let name = text_in(fields.name).filter(|_| source.child_by_field(at, fields.body).is_none())?;
            Some(format!("{start}{name}"))
        }
        None => Some(strip_quotes(text_in(fields.source)?).to_owned()),
    }
}

fn first_string<'a>(source: &ParsedFile<'a>, roles: &OutlineRoles, at: NodeIndex) -> Option<&'a str> {
    let string = source.children(at).take(8).find(|&child| roles.strings.contains(source.nodes[child].kind));
    let below = || {
        let inner = source.children(at).take(8).filter(|&child| source.nodes[child].is_named());
        inner
            .flat_map(|child| source.children(child).take(8))
            .find(|&child| roles.strings.contains(source.nodes[child].kind))
    };
    string.or_else(below).map(|string| source.text(&source.nodes[string]))
}

fn strip_quotes(text: &str) -> &str {
    text.trim_matches(['"', '\'', '`', '<', '>'])
}

fn strip_whitespace(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Returns the text after the leading keywords `words`. A visibility in parentheses, as in `pub(crate)`, counts as a
/// keyword.
fn strip_keywords<'t>(text: &'t str, words: &[String]) -> &'t str {
    let mut rest = text.trim_start();
    'words: loop {
        if let Some((_, inner)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            rest = inner.trim_start();
        }
        for word in words {
            if let Some(next) = rest.strip_prefix(&**word)
                && next.starts_with(|c: char| c.is_whitespace() || c == '(')
            {
                rest = next.trim_start();
                continue 'words;
            }
        }
        return rest;
    }
}

/// Expands braces in an import: `a::{b, c::{d, self}, e as f};` gives `a::b`, `a::c::d`, `a::c` and `a::e`.
fn expand_braces(text: &str, separator: &str, imports: &mut Vec<String>) {
    let mut open: Vec<String> = Vec::new();
    let mut word = String::new();
    let finish = |open: &[String], word: &mut String, imports: &mut Vec<String>| {
        let name = word.split(" as ").next().unwrap_or_default().trim();
        let name = name.strip_suffix('*').map_or(name, |name| name.trim_end_matches(separator));
        let name = if name == "self" { "" } else { name };
        let before = open.last().map_or("", String::as_str);
        let whole = format!("{before}{}", strip_whitespace(name));
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
                open.push(format!("{before}{}", strip_whitespace(&word)));
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
        if word.len() > MAX_IMPORT_BYTES {
            return;
        }
    }
    finish(&open, &mut word, imports);
}
