//! Finds definitions and references of a name in a file's syntax tree. Comments and strings do not count.

use serde::Deserialize;

use crate::domain::LineRange;
use crate::index::chunk::last_row;
use crate::syntax::definition::{PerLanguage, kind_groups};
use crate::syntax::role_map::RoleMap;
use crate::syntax::source::{KindSet, NodeIndex, ParsedFile, field_id};

/// Role of a name at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolRole {
    /// The name is defined here; the value is the kind of definition.
    Definition(&'static str),
    Reference,
}

/// Occurrence of a name in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolOccurrence {
    pub line: u32,
    /// 1-based lines: the whole definition, or the line of a reference.
    pub lines: LineRange,
    pub role: SymbolRole,
}

/// Definition of a name: a role in the section `symbols` of each language's file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DefiningRole {
    /// The node defines no name.
    #[default]
    None,
    Function,
    Method,
    Class,
    Type,
    Interface,
    Module,
    Macro,
    Constant,
    Field,
    Variable,
    Parameter,
}

impl DefiningRole {
    /// Returns the word for the definition in answers.
    fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::None => return None,
            Self::Function => "function",
            Self::Method => "method",
            Self::Class => "class",
            Self::Type => "type",
            Self::Interface => "interface",
            Self::Module => "module",
            Self::Macro => "macro",
            Self::Constant => "constant",
            Self::Field => "field",
            Self::Variable => "variable",
            Self::Parameter => "parameter",
        })
    }
}

/// Most parent steps from a name to its definition.
const MAX_PARENT_STEPS: usize = 6;

struct SymbolKinds {
    names: KindSet,
    through: KindSet,
    with_body: KindSet,
    function_declarator: KindSet,
    /// Definitions whose name is the first child without a field.
    name_first: KindSet,
    defining: RoleMap<DefiningRole>,
    /// Fields that hold the defined name.
    fields: Vec<u16>,
    body: u16,
}

static SYMBOL_KINDS: PerLanguage<SymbolKinds> = PerLanguage::new(|language| {
    let groups = kind_groups(language);
    SymbolKinds {
        names: KindSet::new(language, &groups.names),
        through: KindSet::new(language, &groups.declarators),
        with_body: KindSet::new(language, &groups.types_with_body),
        function_declarator: KindSet::new(language, &groups.function_declarators),
        name_first: KindSet::new(language, &groups.name_first),
        defining: RoleMap::from_section(language, "symbols"),
        fields: ["name", "declarator", "pattern", "left", "property"].map(|name| field_id(language, name)).to_vec(),
        body: field_id(language, "body"),
    }
});

/// Finds the occurrences of `name`, at most one per line: the first definition on the line, otherwise a reference.
pub fn find_occurrences(source: &ParsedFile<'_>, name: &str) -> Vec<SymbolOccurrence> {
    let shapes = SYMBOL_KINDS.get(source.language);
    let mut places: Vec<SymbolOccurrence> = Vec::new();
    for (index, node) in source.nodes.iter().enumerate() {
        let is_leaf = node.end_index as usize == index + 1;
        if !is_leaf || !node.is_named() || !shapes.names.contains(node.kind) || strip_sigils(source.text(node)) != name
        {
            continue;
        }
        let (role, defined) = classify_occurrence(source, shapes, index);
        let defined = defined.map_or(node, |defined| &source.nodes[defined]);
        let lines = LineRange::new(defined.row + 1, last_row(source, defined) + 1);
        let place = SymbolOccurrence { line: node.row + 1, lines, role };
        match places.last_mut().filter(|last| last.line == place.line) {
            Some(last) if last.role == SymbolRole::Reference => *last = place,
            Some(_) => {}
            None => places.push(place),
        }
    }
    places
}

/// Strips language sigils from a name.
pub fn strip_sigils(name: &str) -> &str {
    name.trim_start_matches(['$', '@', '#'])
}

/// Returns the role of a name node and, for a definition, the defining node.
fn classify_occurrence(
    source: &ParsedFile<'_>,
    shapes: &SymbolKinds,
    index: NodeIndex,
) -> (SymbolRole, Option<NodeIndex>) {
    const REFERENCE: (SymbolRole, Option<NodeIndex>) = (SymbolRole::Reference, None);
    let (mut child, mut is_function) = (index, false);
    for _ in 0..MAX_PARENT_STEPS {
        let parent = source.nodes[child].parent as usize;
        let (node, field) = (&source.nodes[parent], source.nodes[child].field);
        let is_its_name = match field {
            0 => shapes.name_first.contains(node.kind) && child == parent + 1,
            field => shapes.fields.contains(&field),
        };
        if is_its_name && let Some(sort) = shapes.defining.get(node.kind).name() {
            let is_named_only =
                shapes.with_body.contains(node.kind) && source.child_by_field(parent, shapes.body).is_none();
            return match (is_named_only, is_function) {
                (true, _) => REFERENCE,
                // `int f(void);` has the syntax of a variable declaration.
                (false, true) => (SymbolRole::Definition("function"), Some(parent)),
                (false, false) => (SymbolRole::Definition(sort), Some(parent)),
            };
        }
        is_function |= is_its_name && shapes.function_declarator.contains(node.kind);
        // Lists and some declarators have no field for their content.
        if !shapes.through.contains(node.kind) || !(is_its_name || field == 0) {
            return REFERENCE;
        }
        child = parent;
    }
    REFERENCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::language::Language;
    use crate::syntax::source::Parsers;

    /// Formats each occurrence of `name` as `line kind`; `-` for a reference.
    fn found(path: &str, code: &str, name: &str) -> Vec<String> {
        let language = Language::detect(path, code.as_bytes()).expect("a language");
        let mut parsers = Parsers::default();
        let source = parsers.parse(path, language, code.as_bytes()).expect("parses");
        let said = |place: &SymbolOccurrence| match place.role {
            SymbolRole::Definition(sort) => format!("{} {sort}", place.line),
            SymbolRole::Reference => format!("{} -", place.line),
        };
        find_occurrences(&source, name).iter().map(said).collect()
    }

    #[test]
    fn definitions_are_told_from_references_in_every_language() {
        for (path, code, expected) in [
            ("a.rs", "fn it() {}\nfn g() { it() }\n// it\nconst S: &str = \"it\";\n", &["1 function", "2 -"][..]),
            (
                "a.rs",
                "struct it { it: u8 }\nimpl it {}\nenum E { it }\ntrait it {}\nmod it {}\ntype it = u8;",
                &["1 type", "2 -", "3 constant", "4 interface", "5 module", "6 type"],
            ),
            (
                "a.rs",
                "macro_rules! it { () => {} }\nfn f(it: u8) {}\nfn g() { let it = 1; it }\nstatic it: u8 = 1;",
                &["1 macro", "2 parameter", "3 variable", "4 variable"],
            ),
            (
                "a.py",
                "def it(): pass\nclass it: pass\nit = 1\nit()\nx.it()\n",
                &["1 function", "2 class", "3 variable", "4 -", "5 -"],
            ),
            (
                "a.js",
                "function it() {}\nconst it = () => 1;\nclass A { it() {} }\nit();\nfoo.it = 2;\n",
                &["1 function", "2 variable", "3 method", "4 -", "5 -"],
            ),
            (
                "a.ts",
                "interface it { it(): void }\ntype it = 1;\nenum E { it = 1 }\nclass B { private it = 1 }\nlet x: it;\n",
                &["1 interface", "2 type", "3 constant", "4 field", "5 -"],
            ),
            ("a.tsx", "const it = () => <div/>;\nconst x = <it />;\n", &["1 variable", "2 -"]),
            (
                "a.go",
                "package a\nfunc it() {}\nfunc (s *S) it() {}\ntype it struct { it int }\nconst it = 1\nvar it = 2\nfunc g() { it := 1; it() }\n",
                &["2 function", "3 method", "4 type", "5 constant", "6 variable", "7 variable"],
            ),
            (
                "A.java",
                "class it {\n  int it;\n  void it() {}\n  void g() { it(); }\n  it() {}\n}\n",
                &["1 class", "2 variable", "3 method", "4 -", "5 method"],
            ),
            (
                "a.c",
                "int it(void);\nint *it(int a) { return 0; }\nstruct it { int it; };\nstruct it x;\n#define it 1\ntypedef int it;\nint y = it;\n",
                &["1 function", "2 function", "3 type", "4 -", "5 macro", "6 type", "7 -"],
            ),
            (
                "a.cpp",
                "class it { void it(); };\nvoid A::it() {}\nnamespace it {}\nauto x = it(1);\n",
                &["1 class", "2 function", "3 module", "4 -"],
            ),
            (
                "a.cs",
                "class it {\n int it;\n void it() {}\n int it { get; }\n void g() { it(); }\n}\n",
                &["1 class", "2 variable", "3 method", "4 field", "5 -"],
            ),
            ("a.rb", "def it; end\nit = 1\nit()\n@it = 2\n", &["1 method", "2 variable", "3 -", "4 variable"]),
            (
                "a.php",
                "<?php\nfunction it() {}\nclass it {\n private $it;\n function it() {}\n const it = 1;\n}\nfunction g($it) {}\n$x->it();\necho $it;\n",
                &["2 function", "3 class", "4 field", "5 method", "6 constant", "8 parameter", "9 -", "10 -"],
            ),
            ("a.sh", "it() { :; }\nit=1\nit\necho $it\n", &["1 function", "2 variable", "3 -", "4 -"]),
        ] {
            assert_eq!(found(path, code, "it"), expected, "{path}: {code}");
        }
    }

    #[test]
    fn of_a_definition_all_lines_are_told_of_a_reference_its_own() {
        let mut parsers = Parsers::default();
        for (path, language, code, expected) in [
            (
                "a.rs",
                Language::Rust,
                "fn it(\n    a: u8,\n) -> u8 {\n    a\n}\n\nfn g() {\n    it(\n        1,\n    );\n}\n",
                &[(1, 5), (8, 8)][..],
            ),
            // The node ends with the line end.
            ("a.c", Language::C, "#define it 1\nint y = it;\n", &[(1, 1), (2, 2)]),
            ("a.c", Language::C, "#define it(x) \\\n    (x)\nint y;\n", &[(1, 2)]),
            ("a.cpp", Language::Cpp, "#define it 1\n\nint y;\n", &[(1, 1)]),
        ] {
            let source = parsers.parse(path, language, code.as_bytes()).expect("parses");
            let lines: Vec<_> =
                find_occurrences(&source, "it").iter().map(|place| (place.lines.start, place.lines.end)).collect();
            assert_eq!(lines, expected, "{code}");
        }
    }

    #[test]
    fn every_language_defines_functions() {
        for language in Language::ALL {
            let defining = &SYMBOL_KINDS.get(language).defining;
            let roles = (0..language.grammar().node_kind_count() as u16).map(|kind| defining.get(kind));
            let mut functions = roles.filter(|role| matches!(role, DefiningRole::Function | DefiningRole::Method));
            assert!(functions.next().is_some(), "{language:?}");
        }
    }
}
