//! Reads the parts of declarations: names, receivers, parameters, fields, and marks of test code.

use super::conventions::{TestAttributeForm, conventions};
use super::language::Language;
use super::node_kinds::{self, NodeKinds};
use super::source::{MAX_SEARCHED_BYTES, Node, NodeIndex, ParsedFile};

/// Name of a listed closure without a name.
pub(super) const ANONYMOUS: &str = "(anonymous)";

/// Maximum length of the name of a function or class, in bytes. The names of methods repeat the name of their class.
const MAX_NAME_BYTES: usize = 400;

/// Cuts a name that is far longer than any name that a person writes.
pub(super) fn shorten(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}

/// Head of a function with a body.
pub(super) struct FunctionHead<'a> {
    /// Empty for an anonymous function.
    pub name: &'a str,
    /// Receiver type of a Go method.
    pub receiver: Option<&'a str>,
    /// Leaf at which the function begins for lizard.
    pub starts_at: NodeIndex,
    /// Node from which on decisions count for the function.
    pub counts_from: NodeIndex,
    pub parameters: Option<NodeIndex>,
}

/// Reads the head of the function at `index`; `None` if it has no body, except in Ruby.
pub(super) fn parse_head<'a>(source: &ParsedFile<'a>, spec: &NodeKinds, index: NodeIndex) -> Option<FunctionHead<'a>> {
    let fields = &spec.fields;
    let body = source.child_by_field(index, fields.body);
    let name = source.child_by_field(index, fields.name);
    let parameters = source.child_by_field(index, fields.parameters);
    if body.is_none() && source.language != Language::Ruby {
        return None;
    }
    let text = |at: Option<NodeIndex>| at.map_or("", |at| source.text(&source.nodes[at]));
    let mut head = FunctionHead {
        name: text(name),
        receiver: None,
        starts_at: name.map_or(index, |name| first_leaf(source, name)),
        counts_from: index,
        parameters,
    };
    match source.language {
        Language::Rust => head.starts_at = first_leaf(source, index),
        Language::Go => {
            head.starts_at = first_leaf(source, index);
            head.receiver =
                source.child_by_field(index, fields.receiver).and_then(|receiver| receiver_type(source, receiver));
            if name.is_none() {
                head.name = "";
            }
        }
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            complete_javascript_head(source, spec, index, &mut head)
        }
        Language::C | Language::Cpp => {
            let declarator = function_declarator(source, spec, index)?;
            let name = source.child_by_field(declarator, fields.declarator).unwrap_or(declarator);
            let node = &source.nodes[name];
            head.name = source.text(node);
            head.starts_at = first_leaf(source, name);
            head.parameters = source.child_by_field(declarator, fields.parameters);
            head.counts_from = body?;
        }
        Language::CSharp => {
            head.counts_from = body?;
            if name.is_none() {
                head.starts_at = parameters.map_or(index, |parameters| first_leaf(source, parameters));
                head.name = "operator";
            }
        }
        Language::Java => head.counts_from = body?,
        Language::Python | Language::Ruby | Language::Php | Language::Bash => {}
        _ => {
            if name.is_none() {
                head.name = conventions(source.language).constructors.first().map_or("", String::as_str);
            }
            // The parameters may stand in the function itself.
            let parameter = source.child_by_field(index, fields.parameter);
            head.parameters = parameters.or_else(|| parameter.map(|_| index));
            head.counts_from = body?;
        }
    }
    Some(head)
}

fn first_leaf(source: &ParsedFile<'_>, mut index: NodeIndex) -> NodeIndex {
    while source.nodes[index].end_index as usize > index + 1 {
        index += 1;
    }
    index
}

/// Finds the declarator with the parameters; `None` if the node only looks like a function: a class or a namespace
/// after a macro.
fn function_declarator(source: &ParsedFile<'_>, spec: &NodeKinds, index: NodeIndex) -> Option<NodeIndex> {
    let mut at = source.child_by_field(index, spec.fields.declarator)?;
    // Declarators of pointers and references wrap it, some in a `declarator` field and some as a plain child.
    for _ in 0..MAX_DECLARATORS {
        if source.child_by_field(at, spec.fields.parameters).is_some() {
            // `int (*f(int))(char)`: the inner declarator is the function.
            let inner = source.child_by_field(at, spec.fields.declarator);
            match inner.and_then(|inner| nested_declarator(source, spec, inner)) {
                Some(nested) => at = nested,
                None => return Some(at),
            }
            continue;
        }
        at = source.child_by_field(at, spec.fields.declarator).or_else(|| {
            source.children(at).find(|&child| {
                source.nodes[child].is_named() && source.child_by_field(child, spec.fields.parameters).is_some()
            })
        })?;
    }
    None
}

/// Reads the head of `TEST_CASE("name") { ... }`: a block after a call without a semicolon is the body of a function
/// that a macro defines.
pub(super) fn parse_macro_head<'a>(
    source: &ParsedFile<'a>,
    spec: &NodeKinds,
    index: NodeIndex,
) -> Option<FunctionHead<'a>> {
    let before = source.prev_sibling(index)?;
    let call = source.children(before).next()?;
    let semicolon = source.children(before).last()?;
    let is_open = source.nodes[semicolon].is_error() && spec.flags(source.nodes[call].kind) & node_kinds::CALL != 0;
    let function = is_open.then(|| source.child_by_field(call, spec.fields.function))??;
    Some(FunctionHead {
        name: source.text(&source.nodes[function]),
        receiver: None,
        starts_at: first_leaf(source, function),
        counts_from: index,
        parameters: None,
    })
}

/// Maximum depth of nested declarators. Deeper ones do not occur in real code.
const MAX_DECLARATORS: usize = 16;

fn nested_declarator(source: &ParsedFile<'_>, spec: &NodeKinds, index: NodeIndex) -> Option<NodeIndex> {
    source
        .descendants(index)
        .take(8)
        .find(|&below| source.nodes[below].is_named() && source.child_by_field(below, spec.fields.parameters).is_some())
}

/// Returns the type of a receiver: `Server` for `(s *Server[T])`.
fn receiver_type<'a>(source: &ParsedFile<'a>, receiver: NodeIndex) -> Option<&'a str> {
    let text = source.text(&source.nodes[receiver]).trim_start_matches('(').trim_end_matches(')');
    let last = text.rsplit([' ', '*']).find(|word| !word.is_empty())?;
    let name = if text.contains('[') {
        text.split('[').next()?.rsplit([' ', '*']).find(|word| !word.is_empty())?
    } else {
        last
    };
    (!name.is_empty()).then_some(name)
}

fn complete_javascript_head<'a>(
    source: &ParsedFile<'a>,
    spec: &NodeKinds,
    index: NodeIndex,
    head: &mut FunctionHead<'a>,
) {
    let fields = &spec.fields;
    let mut named_by_place = false;
    if head.name.is_empty() {
        let node = &source.nodes[index];
        let parent = node.parent as usize;
        let place = if node.field == fields.value && node.field != 0 {
            [fields.name, fields.key, fields.property]
                .into_iter()
                .find_map(|field| source.child_by_field(parent, field))
        } else if node.field == fields.right && node.field != 0 {
            source.child_by_field(parent, fields.left)
        } else {
            None
        };
        if let Some(place) = place {
            head.name = last_name_segment(source.text(&source.nodes[place]));
            named_by_place = !head.name.is_empty();
        }
    }
    let arrow = source.children(index).find(|&child| {
        let node = &source.nodes[child];
        !node.is_named() && source.bytes(node) == b"=>"
    });
    head.starts_at = match (head.parameters, arrow) {
        (Some(parameters), None) => first_leaf(source, parameters),
        (Some(parameters), Some(_)) if named_by_place => first_leaf(source, parameters),
        (_, Some(arrow)) => arrow,
        (None, None) => first_leaf(source, index),
    };
    if head.parameters.is_none() {
        head.parameters = source.child_by_field(index, fields.parameter);
    }
}

/// Returns the last segment of a name: `x` for `module.exports.x`, a quoted key without its quotes, and the empty
/// string for patterns and computed names.
fn last_name_segment(text: &str) -> &str {
    let word = text.trim_matches(['"', '\'', '`']).rsplit('.').next().unwrap_or(text);
    let is_name = word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '#' | '-' | ':' | '/'));
    if is_name && word.len() <= 80 { word } else { "" }
}

/// Returns the last row of a node (0-based), without trailing white space.
pub(super) fn last_row(source: &ParsedFile<'_>, node: &Node) -> u32 {
    let mut end = node.end as usize;
    let mut row = node.end_row;
    while end > node.start as usize && source.text.get(end - 1).is_some_and(u8::is_ascii_whitespace) {
        row -= u32::from(source.text[end - 1] == b'\n');
        end -= 1;
    }
    row.max(node.row)
}

/// Counts the parameters in a list, without the receiver.
pub(super) fn count_parameters(
    source: &ParsedFile<'_>,
    spec: &NodeKinds,
    list: Option<NodeIndex>,
    in_class: bool,
) -> u32 {
    let Some(list) = list else { return 0 };
    let mut count = 0;
    let node = &source.nodes[list];
    if node.field == spec.fields.parameter && node.field != 0 {
        return 1;
    }
    let is_parameter = |child: NodeIndex| source.nodes[child].field == spec.fields.parameter;
    let named = source.children(list).filter(|&child| spec.fields.parameter != 0 && is_parameter(child)).count();
    if named > 0 {
        return named as u32;
    }
    for child in source.children(list) {
        let node = &source.nodes[child];
        let bits = spec.flags(node.kind);
        if !node.is_named() || node.is_error() || bits & (node_kinds::COMMENT | node_kinds::NO_PARAMETER) != 0 {
            continue;
        }
        let text = source.bytes(node);
        let is_first = count == 0;
        match source.language {
            Language::Python if in_class && is_first && (text == b"self" || text == b"cls") => continue,
            Language::TypeScript | Language::Tsx if is_first && text.starts_with(b"this:") => continue,
            Language::C | Language::Cpp if text == b"void" => continue,
            Language::Go => {
                let names = source.children(child).filter(|&part| source.nodes[part].field == spec.fields.name).count();
                count += names.max(1) as u32;
                continue;
            }
            _ => {}
        }
        count += 1;
    }
    count
}

/// Returns the name of a class, of the type of a Rust `impl` or of a Go struct; `None` if the node is not a class.
pub(super) fn class_name<'a>(source: &ParsedFile<'a>, spec: &NodeKinds, index: NodeIndex) -> Option<&'a str> {
    let fields = &spec.fields;
    let name = source.child_by_field(index, fields.name);
    match source.language {
        Language::Rust if name.is_none() => {
            let kind = source.text(&source.nodes[source.child_by_field(index, fields.kind)?]);
            let bare = kind.trim_start_matches(['&', '*']).split('<').next()?;
            bare.rsplit("::").next()
        }
        Language::Go => {
            let kind = source.child_by_field(index, fields.kind)?;
            source.bytes(&source.nodes[kind]).starts_with(b"struct").then_some(())?;
            Some(source.text(&source.nodes[name?]))
        }
        Language::Cpp => {
            source.child_by_field(index, fields.body)?;
            Some(source.text(&source.nodes[name?]))
        }
        Language::JavaScript | Language::TypeScript | Language::Tsx => Some(match name {
            Some(name) => source.text(&source.nodes[name]),
            None => {
                let node = &source.nodes[index];
                let parent = node.parent as usize;
                let place =
                    source.child_by_field(parent, fields.name).or_else(|| source.child_by_field(parent, fields.left));
                place.map_or("class", |place| last_name_segment(source.text(&source.nodes[place])))
            }
        }),
        _ => Some(source.text(&source.nodes[name?])),
    }
}

/// Counts the fields that a declaration declares.
pub(super) fn count_fields(source: &ParsedFile<'_>, spec: &NodeKinds, index: NodeIndex) -> u32 {
    let text = source.text_prefix(&source.nodes[index], MAX_SEARCHED_BYTES);
    let has_word = |word: &str| {
        let head = text.split(['=', '{', ';', '(']).next().unwrap_or("");
        head.split_whitespace().any(|part| part == word)
    };
    match source.language {
        Language::Go | Language::Cpp | Language::Java | Language::CSharp | Language::Php => {
            if matches!(source.language, Language::Java | Language::CSharp | Language::Cpp | Language::Php)
                && (has_word("static") || has_word("const"))
            {
                return 0;
            }
            let mut count = 0;
            let mut below = index + 1;
            while below < source.nodes[index].end_index as usize && source.work().spend(1) {
                let node = &source.nodes[below];
                let is_function = source.child_by_field(below, spec.fields.parameters).is_some();
                let is_inner = spec.flags(node.kind) & (node_kinds::FIELD | node_kinds::CLASS) != 0;
                if is_function && source.language == Language::Cpp {
                    return 0;
                }
                if is_inner || is_function {
                    below = node.end_index as usize;
                    continue;
                }
                if node.is_named() && spec.flags(node.kind) & node_kinds::FIELD_NAME != 0 {
                    count += 1;
                    below = node.end_index as usize;
                    continue;
                }
                below += 1;
            }
            // An embedded type has no field name of its own.
            if source.language == Language::Go { count.max(1) } else { count }
        }
        // A parameter of a primary constructor is a property only with one of these words, or in a `case class`.
        Language::Kotlin | Language::Scala => {
            let has = |at: NodeIndex, words: &[&[u8]]| {
                source.children(at).any(|child| words.contains(&source.bytes(&source.nodes[child])))
            };
            let class = source.nodes[source.nodes[index].parent as usize].parent as usize;
            u32::from(has(index, &[b"val", b"var"]) || has(class, &[b"case"]))
        }
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            let value = source.child_by_field(index, spec.fields.value);
            let is_method = value.is_some_and(|value| spec.flags(source.nodes[value].kind) & node_kinds::FUNCTION != 0);
            u32::from(!is_method && !has_word("static"))
        }
        _ => 1,
    }
}

/// Returns the field name in `self.x = ...`, `this.x = ...` or `@x = ...`: `x`.
pub(super) fn assigned_field<'a>(source: &ParsedFile<'a>, spec: &NodeKinds, index: NodeIndex) -> Option<&'a str> {
    let left = source.child_by_field(index, spec.fields.left)?;
    let text = source.text(&source.nodes[left]);
    let name = match source.language {
        Language::Python => text.strip_prefix("self.")?,
        Language::Ruby => text.strip_prefix('@')?,
        _ => text.strip_prefix("this.")?,
    };
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128);
    is_name.then_some(name)
}

/// Returns whether a call is one of the function `name`, which may be qualified by its class: `name(..)`,
/// `self.name(..)`, `this.name(..)`.
pub(super) fn is_call_to(source: &ParsedFile<'_>, spec: &NodeKinds, index: NodeIndex, name: &str) -> bool {
    let (class, simple) = name.rsplit_once('.').map_or((None, name), |(class, simple)| (Some(class), simple));
    let fields = &spec.fields;
    let bytes = |at: NodeIndex| source.bytes(&source.nodes[at]);
    if let Some(function) = source.child_by_field(index, fields.function) {
        let text = bytes(function);
        // In Python, Rust and Go a bare name never calls a method of the own class.
        let is_bare = class.is_none() || !matches!(source.language, Language::Python | Language::Rust | Language::Go);
        if is_bare && text == simple.as_bytes() {
            return true;
        }
        let own = [b"self.".as_slice(), b"this.", b"this->", b"Self::", b"cls."];
        return class.is_some()
            && own.iter().any(|own| text.strip_prefix(*own).is_some_and(|rest| rest == simple.as_bytes()));
    }
    let called = source.child_by_field(index, fields.method).or_else(|| source.child_by_field(index, fields.name));
    let receiver =
        source.child_by_field(index, fields.object).or_else(|| source.child_by_field(index, fields.receiver));
    called.is_some_and(|called| bytes(called) == simple.as_bytes())
        && receiver.is_none_or(|receiver| matches!(bytes(receiver), b"this" | b"self" | b"$this"))
}

/// Returns whether a child of `break` or `continue` is a label.
pub(super) fn is_label(source: &ParsedFile<'_>, child: NodeIndex) -> bool {
    let node = &source.nodes[child];
    if !node.is_named() {
        return false;
    }
    match source.language {
        Language::Rust => source.bytes(node).first() == Some(&b'\''),
        _ => source.bytes(node).iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'),
    }
}

/// Returns whether a triple-quoted Python string is a statement of its own: documentation, or disabled code.
pub(super) fn is_doc_string(source: &ParsedFile<'_>, spec: &NodeKinds, index: NodeIndex) -> bool {
    let node = &source.nodes[index];
    let parent = &source.nodes[node.parent as usize];
    source.language == Language::Python
        && spec.flags(parent.kind) & node_kinds::EXPRESSION_STATEMENT != 0
        && (node.start, node.end) == (parent.start, parent.end)
        && {
            let text = source.bytes(node);
            let prefix = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
            text[prefix..].starts_with(b"\"\"\"") || text[prefix..].starts_with(b"'''")
        }
}

/// Maximum length of a mark that must not be the start of a longer name, in bytes: `@Before`, but not `@BeforeEach`.
const MAX_SHORT_MARK_BYTES: usize = 7;

/// Returns whether an attribute or annotation marks the next item as test code.
pub(super) fn is_test_attribute(source: &ParsedFile<'_>, node: &Node) -> bool {
    let text = source.text_prefix(node, MAX_SEARCHED_BYTES);
    let conventions = conventions(source.language);
    let is_listed = |word: &str| conventions.test_attributes.iter().any(|known| known == word);
    match conventions.test_attribute_form {
        TestAttributeForm::Path => {
            let inner = text.trim_start_matches(['#', '!', '[']).trim_end_matches(']');
            let path = inner.split(['(', '=']).next().unwrap_or("").trim();
            let last = path.rsplit("::").next().unwrap_or(path);
            is_listed(last) || (last == "cfg" && inner.contains("test") && !inner.contains("not(test"))
        }
        TestAttributeForm::Prefix => conventions.test_attributes.iter().any(|mark| {
            let is_end = |rest: &str| !rest.starts_with(char::is_alphanumeric) || mark.len() > MAX_SHORT_MARK_BYTES;
            text.match_indices(&**mark).any(|(at, _)| is_end(&text[at + mark.len()..]))
        }),
        TestAttributeForm::Word => text.split(|c: char| !c.is_alphanumeric()).any(is_listed),
    }
}

/// Returns whether an attribute inside a declaration marks it as test code.
pub(super) fn has_test_attribute(source: &ParsedFile<'_>, spec: &NodeKinds, index: NodeIndex) -> bool {
    // Annotations are the first children, but they are visited after the declaration that contains them.
    source.children(index).take(4).any(|child| {
        let node = &source.nodes[child];
        spec.flags(node.kind) & node_kinds::ATTRIBUTE != 0 && is_test_attribute(source, node)
    })
}

/// Returns whether the text between an attribute and its item has only white space, comments and other attributes.
pub(super) fn has_only_attributes(between: &[u8]) -> bool {
    between
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .all(|line| line.starts_with(b"#[") || line.starts_with(b"//") || matches!(line, b"" | b"]" | b")]" | b"pub"))
}

/// Returns whether test runners select functions of this name.
pub(super) fn is_test_name(language: Language, name: &str) -> bool {
    let follows =
        |prefix: &str| name.strip_prefix(prefix).is_some_and(|rest| !rest.starts_with(|c: char| c.is_lowercase()));
    match language {
        Language::Python => name.starts_with("test_"),
        Language::Go => follows("Test") || follows("Benchmark") || follows("Fuzz") || follows("Example"),
        Language::C | Language::Cpp => {
            matches!(name, "TEST" | "TEST_F" | "TEST_P" | "TEST_CASE" | "TYPED_TEST" | "SECTION" | "BENCHMARK")
        }
        _ => false,
    }
}

/// Returns whether test runners select a class, by its name or its base class.
pub(super) fn is_test_class(source: &ParsedFile<'_>, spec: &NodeKinds, index: NodeIndex, name: &str) -> bool {
    let node = &source.nodes[index];
    let head_end = source.child_by_field(index, spec.fields.body).map_or(node.end, |body| source.nodes[body].start);
    let head_end = (head_end.max(node.start) as usize).min(node.start as usize + MAX_SEARCHED_BYTES);
    let head = String::from_utf8_lossy(&source.text[node.start as usize..head_end]);
    let conventions = conventions(source.language);
    conventions.test_classes.iter().any(|start| name.starts_with(&**start))
        || conventions.test_bases.iter().any(|base| head.contains(&**base))
}

/// Returns whether a call is `describe(..)`, `it(..)`, `test(..)` or similar, with a function as an argument.
pub(super) fn is_test_block(source: &ParsedFile<'_>, spec: &NodeKinds, index: NodeIndex) -> bool {
    const MAX_NAME_BYTES: usize = "beforeEach.".len();
    let Some(function) = source.child_by_field(index, spec.fields.function) else { return false };
    // A called expression can be as long as the file and contain further calls, so only its start is read.
    let name = source.text_prefix(&source.nodes[function], MAX_NAME_BYTES).as_bytes();
    let name = name.split(|byte| *byte == b'.').next().unwrap_or(name);
    matches!(name, b"describe" | b"it" | b"test" | b"suite" | b"beforeEach" | b"afterEach" | b"beforeAll" | b"afterAll")
        && source.child_by_field(index, spec.fields.arguments).is_some_and(|arguments| {
            source.children(arguments).any(|child| spec.flags(source.nodes[child].kind) & node_kinds::FUNCTION != 0)
        })
}
