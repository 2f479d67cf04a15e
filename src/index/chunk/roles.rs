//! Maps the syntax node kinds of each language to roles for the outline: tables of kind names, converted once to a role
//! per kind id.
//!
//! - Every kind name in a table exists in its grammar; a test checks this.

use std::sync::LazyLock;

use crate::syntax::language::Language;
use crate::syntax::source::{KindSet, NAME_KINDS, fields};

/// Role of a node in the outline of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutlineRole {
    /// The node is skipped.
    Other,
    /// Punctuation or a keyword.
    Token,
    /// Contains declarations, but is none.
    Scope,
    /// Like [`OutlineRole::Scope`]; its first line also belongs to the next declaration.
    Condition,
    /// Like [`OutlineRole::Scope`]; its name is the scope of its content.
    Namespace,
    /// Like [`OutlineRole::Scope`], but only inside a test block.
    TestScope,
    /// Belongs to the single declaration that it contains.
    Wrapper,
    /// Belongs to the declaration that follows it.
    Leading,
    Function,
    Class,
    Interface,
    Type,
    Constant,
    /// Declares a name, but is not a chunk: a field or a variable.
    Field,
    /// May be a declaration; its content decides.
    Ambiguous,
}

use OutlineRole::{
    Ambiguous, Class, Condition, Constant, Field, Function, Interface, Leading, Namespace, Scope, TestScope, Type,
    Wrapper,
};

type OutlineRoleTable = &'static [(OutlineRole, &'static [&'static str])];

/// Roles and field ids of a language.
pub struct OutlineRoles {
    roles: Box<[OutlineRole]>,
    /// Leaf nodes that are names.
    pub names: KindSet,
    pub imports: KindSet,
    pub calls: KindSet,
    pub modules: KindSet,
    pub functions: KindSet,
    pub strings: KindSet,
    pub fields: Fields,
}

fields! {
    pub,
    name = "name", body = "body", declarator = "declarator", kind = "type", receiver = "receiver", left = "left",
    right = "right", value = "value", function = "function", method = "method", arguments = "arguments",
    source = "source", superclasses = "superclasses", property = "property",
    path = "path", module_name = "module_name", argument = "argument",
}

impl OutlineRoles {
    pub fn for_language(language: Language) -> &'static Self {
        static ROLES: LazyLock<Vec<OutlineRoles>> =
            LazyLock::new(|| Language::ALL.into_iter().map(OutlineRoles::new).collect());
        &ROLES[language.index()]
    }

    fn new(language: Language) -> Self {
        let grammar = language.grammar();
        let mut roles = vec![OutlineRole::Other; grammar.node_kind_count()].into_boxed_slice();
        for (id, role) in roles.iter_mut().enumerate().filter(|(id, _)| grammar.node_kind_is_named(*id as u16)) {
            let Some(kind) = grammar.node_kind_for_id(id as u16) else { continue };
            if let Some((of, _)) = role_table(language).iter().find(|(_, kinds)| kinds.contains(&kind)) {
                *role = *of;
            }
        }
        Self {
            roles,
            names: KindSet::new(language, &[NAME_KINDS, SYMBOLS].concat()),
            imports: KindSet::new(language, IMPORTS),
            calls: KindSet::new(language, CALLS),
            modules: KindSet::new(language, MODULES),
            functions: KindSet::new(language, FUNCTIONS),
            strings: KindSet::new(language, STRINGS),
            fields: Fields::new(language),
        }
    }

    /// Returns the role of a node kind id; [`OutlineRole::Scope`] for an unknown id.
    pub fn role(&self, kind: u16) -> OutlineRole {
        self.roles.get(usize::from(kind)).copied().unwrap_or(OutlineRole::Scope)
    }
}

/// Ruby symbols count as uses of the name.
const SYMBOLS: &[&str] = &["simple_symbol", "hash_key_symbol"];

const IMPORTS: &[&str] = &[
    "use_declaration",
    "extern_crate_declaration",
    "import_statement",
    "import_from_statement",
    "import_spec",
    "import_declaration",
    "preproc_include",
    "using_directive",
    "namespace_use_declaration",
];

/// Calls and commands that may import a file.
const CALLS: &[&str] = &[
    "call_expression",
    "call",
    "command",
    "require_expression",
    "require_once_expression",
    "include_expression",
    "include_once_expression",
];

/// Nodes that may name another file: `mod a;`, `export * from "a"`.
const MODULES: &[&str] = &["mod_item", "export_statement"];
const FUNCTIONS: &[&str] = &["arrow_function", "function_expression", "generator_function", "do_block", "block"];
const STRINGS: &[&str] = &["string", "template_string", "interpreted_string_literal", "encapsed_string", "raw_string"];

fn role_table(language: Language) -> OutlineRoleTable {
    match language {
        Language::Rust => RUST,
        Language::Python => PYTHON,
        Language::JavaScript => JAVASCRIPT,
        Language::TypeScript | Language::Tsx => TYPESCRIPT,
        Language::Go => GO,
        Language::Java => JAVA,
        Language::C => C,
        Language::Cpp => CPP,
        Language::CSharp => CSHARP,
        Language::Ruby => RUBY,
        Language::Php => PHP,
        Language::Bash => BASH,
    }
}

const RUST: OutlineRoleTable = &[
    (Leading, &["attribute_item", "line_comment", "block_comment"]),
    (Namespace, &["mod_item"]),
    (Scope, &["declaration_list", "foreign_mod_item", "field_declaration_list", "enum_variant_list"]),
    (Function, &["function_item", "function_signature_item", "macro_definition"]),
    (Class, &["impl_item"]),
    (Interface, &["trait_item"]),
    (Type, &["struct_item", "enum_item", "union_item", "type_item"]),
    (Constant, &["const_item", "static_item"]),
    (Field, &["field_declaration", "enum_variant", "associated_type"]),
];

const PYTHON: OutlineRoleTable = &[
    (Leading, &["comment"]),
    (Wrapper, &["decorated_definition"]),
    (Scope, &["block", "if_statement", "elif_clause", "else_clause"]),
    (Scope, &["try_statement", "except_clause", "finally_clause", "with_statement"]),
    (Function, &["function_definition"]),
    (Class, &["class_definition"]),
    (Type, &["type_alias_statement"]),
    (Ambiguous, &["expression_statement"]),
];

const JAVASCRIPT: OutlineRoleTable = &[
    (Leading, &["comment"]),
    (Wrapper, &["export_statement"]),
    (Scope, &["class_body"]),
    (TestScope, &["call_expression", "arguments", "arrow_function", "function_expression", "statement_block"]),
    (Function, &["function_declaration", "generator_function_declaration", "method_definition"]),
    (Class, &["class_declaration", "class"]),
    (Field, &["field_definition"]),
    (Ambiguous, &["lexical_declaration", "variable_declaration", "expression_statement"]),
];

const TYPESCRIPT: OutlineRoleTable = &[
    (Leading, &["comment"]),
    (Wrapper, &["export_statement", "ambient_declaration"]),
    (Namespace, &["internal_module", "module"]),
    (Scope, &["class_body", "interface_body", "object_type", "enum_body", "statement_block"]),
    (TestScope, &["call_expression", "arguments", "arrow_function", "function_expression"]),
    (Function, &["function_declaration", "generator_function_declaration", "method_definition", "function_signature"]),
    (Class, &["class_declaration", "abstract_class_declaration", "class"]),
    (Interface, &["interface_declaration"]),
    (Type, &["type_alias_declaration", "enum_declaration"]),
    (Field, &["property_signature", "enum_assignment", "method_signature", "abstract_method_signature"]),
    (Ambiguous, &["lexical_declaration", "variable_declaration", "expression_statement", "public_field_definition"]),
];

const GO: OutlineRoleTable = &[
    (Leading, &["comment"]),
    (Wrapper, &["type_declaration"]),
    (Scope, &["struct_type", "field_declaration_list", "interface_type", "var_declaration", "var_spec_list"]),
    (Function, &["function_declaration", "method_declaration"]),
    (Type, &["type_spec", "type_alias"]),
    (Constant, &["const_declaration"]),
    (Field, &["field_declaration", "method_elem", "const_spec", "var_spec"]),
];

const JAVA: OutlineRoleTable = &[
    (Leading, &["line_comment", "block_comment"]),
    (Scope, &["class_body", "interface_body", "enum_body", "enum_body_declarations", "annotation_type_body"]),
    (Function, &["method_declaration", "constructor_declaration", "compact_constructor_declaration"]),
    (Class, &["class_declaration", "record_declaration"]),
    (Interface, &["interface_declaration", "annotation_type_declaration"]),
    (Type, &["enum_declaration"]),
    (Field, &["field_declaration", "constant_declaration", "enum_constant"]),
];

const C: OutlineRoleTable = &[
    (Leading, &["comment"]),
    (Condition, &["preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef"]),
    (Scope, &["preproc_else"]),
    (Scope, &["linkage_specification", "declaration_list", "field_declaration_list", "enumerator_list"]),
    (Function, &["function_definition"]),
    (Type, &["struct_specifier", "union_specifier", "enum_specifier", "type_definition"]),
    (Constant, &["preproc_def", "preproc_function_def"]),
    (Field, &["field_declaration", "enumerator"]),
    (Ambiguous, &["declaration"]),
];

const CPP: OutlineRoleTable = &[
    (Leading, &["comment"]),
    (Wrapper, &["template_declaration"]),
    (Namespace, &["namespace_definition"]),
    (Condition, &["preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef"]),
    (Scope, &["preproc_else"]),
    (Scope, &["linkage_specification", "declaration_list", "field_declaration_list", "enumerator_list"]),
    (Function, &["function_definition"]),
    (Class, &["class_specifier", "struct_specifier"]),
    (Interface, &["concept_definition"]),
    (Type, &["union_specifier", "enum_specifier", "type_definition", "alias_declaration"]),
    (Constant, &["preproc_def", "preproc_function_def"]),
    (Field, &["field_declaration", "enumerator"]),
    (Ambiguous, &["declaration"]),
];

const CSHARP: OutlineRoleTable = &[
    (Leading, &["comment"]),
    (Namespace, &["namespace_declaration", "file_scoped_namespace_declaration"]),
    (Scope, &["declaration_list", "enum_member_declaration_list", "preproc_if", "preproc_else", "preproc_elif"]),
    (Function, &["method_declaration", "constructor_declaration", "destructor_declaration", "operator_declaration"]),
    (Function, &["conversion_operator_declaration", "indexer_declaration"]),
    (Class, &["class_declaration", "struct_declaration", "record_declaration"]),
    (Interface, &["interface_declaration"]),
    (Type, &["enum_declaration", "delegate_declaration"]),
    (Field, &["field_declaration", "event_field_declaration", "property_declaration", "event_declaration"]),
    (Field, &["enum_member_declaration"]),
];

const RUBY: OutlineRoleTable = &[
    (Leading, &["comment"]),
    (Namespace, &["module"]),
    (Scope, &["body_statement", "singleton_class", "begin"]),
    (TestScope, &["do_block", "block"]),
    (Function, &["method", "singleton_method"]),
    (Class, &["class"]),
    (Ambiguous, &["assignment", "call"]),
];

const PHP: OutlineRoleTable = &[
    (Leading, &["comment"]),
    (Namespace, &["namespace_definition"]),
    (Scope, &["compound_statement", "declaration_list", "enum_declaration_list"]),
    (Function, &["function_definition", "method_declaration"]),
    (Class, &["class_declaration", "trait_declaration"]),
    (Interface, &["interface_declaration"]),
    (Type, &["enum_declaration"]),
    (Constant, &["const_declaration"]),
    (Field, &["property_declaration", "enum_case", "const_element"]),
];

const BASH: OutlineRoleTable =
    &[(Leading, &["comment"]), (Function, &["function_definition"]), (Field, &["variable_assignment"])];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_table_exists_in_its_grammar() {
        for language in Language::ALL {
            for name in role_table(language).iter().flat_map(|(_, names)| names.iter()) {
                assert_ne!(language.grammar().id_for_node_kind(name, true), 0, "{language:?} has no {name:?}");
            }
        }
        for name in [NAME_KINDS, SYMBOLS, IMPORTS, CALLS, MODULES, FUNCTIONS, STRINGS].iter().copied().flatten() {
            let exists = Language::ALL.iter().any(|language| language.grammar().id_for_node_kind(name, true) != 0);
            assert!(exists, "no grammar has {name:?}");
        }
    }
}
