//! What a syntax node is to a literal inside of it, by language.

use super::super::syntax::{Fields, KindMap};
use crate::provider::builtin::language::Language;

/// The part a node plays for the literals in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// Nothing is known: the way up ends here.
    None,
    Number,
    /// A text in quotes.
    Text,
    Comment,
    /// Without a meaning of its own: parentheses, signs, casts, lists of one.
    Through,
    Binary,
    /// The list of a call's arguments.
    Arguments,
    /// A call, a member access, a constructor expression: the way up goes on.
    Call,
    /// Gives its value a name: declarations, assignments, keyword arguments, pairs, default values.
    Named,
    /// A declaration whose head may say `const`, `final`, `static`.
    Declaration,
    /// Explains or tabulates: lists of data, indices, ranges, enums, annotations, types, constants.
    Skip,
    /// A constant that is no number: true, false, null.
    Constant,
    /// What a text must not consist of to be counted: parts with code in them.
    Interpolation,
    /// A statement that is only an expression: for a text a documentation string.
    Statement,
    /// A key, a type, a path: a text in here is a name already.
    Key,
}

impl From<Role> for u8 {
    fn from(role: Role) -> u8 {
        role as u8
    }
}

impl Role {
    const ALL: [Self; 15] = [
        Self::None,
        Self::Number,
        Self::Text,
        Self::Comment,
        Self::Through,
        Self::Binary,
        Self::Arguments,
        Self::Call,
        Self::Named,
        Self::Declaration,
        Self::Skip,
        Self::Constant,
        Self::Interpolation,
        Self::Statement,
        Self::Key,
    ];
}

/// A language's roles and fields.
pub struct Roles {
    map: KindMap,
    pub fields: Fields,
}

impl Roles {
    pub fn new(language: Language) -> Self {
        Self { map: KindMap::new(language, table(language)), fields: Fields::new(language) }
    }

    pub fn of(&self, kind: u16) -> Role {
        Role::ALL.get(usize::from(self.map.get(kind))).copied().unwrap_or(Role::None)
    }
}

type Table = &'static [(Role, &'static [&'static str])];

fn table(language: Language) -> Table {
    match language {
        Language::Rust => &[
            (Role::Number, &["integer_literal", "float_literal"]),
            (Role::Text, &["string_literal", "raw_string_literal"]),
            (Role::Comment, &["line_comment", "block_comment"]),
            (
                Role::Through,
                &[
                    "parenthesized_expression",
                    "unary_expression",
                    "type_cast_expression",
                    "negative_literal",
                    "reference_expression",
                ],
            ),
            (Role::Binary, &["binary_expression", "compound_assignment_expr"]),
            (Role::Arguments, &["arguments"]),
            (
                Role::Call,
                &["call_expression", "field_expression", "try_expression", "await_expression", "if_expression"],
            ),
            (Role::Named, &["let_declaration", "assignment_expression", "field_initializer"]),
            (
                Role::Skip,
                &[
                    "const_item",
                    "static_item",
                    "array_expression",
                    "index_expression",
                    "range_expression",
                    "range_pattern",
                    "enum_variant",
                    "attribute_item",
                    "inner_attribute_item",
                    "type_arguments",
                    "array_type",
                    "match_pattern",
                    "const_parameter",
                    "tuple_expression",
                ],
            ),
            (Role::Constant, &["boolean_literal"]),
            (Role::Key, &["token_tree"]),
        ],
        Language::Python => &[
            (Role::Number, &["integer", "float"]),
            (Role::Text, &["string"]),
            (Role::Comment, &["comment"]),
            (Role::Through, &["parenthesized_expression", "unary_operator"]),
            (Role::Binary, &["binary_operator", "comparison_operator", "augmented_assignment", "boolean_operator"]),
            (Role::Arguments, &["argument_list"]),
            (Role::Call, &["call", "attribute", "await", "conditional_expression", "not_operator"]),
            (
                Role::Named,
                &[
                    "assignment",
                    "keyword_argument",
                    "pair",
                    "default_parameter",
                    "typed_default_parameter",
                    "named_expression",
                ],
            ),
            (
                Role::Skip,
                &[
                    "list",
                    "tuple",
                    "set",
                    "subscript",
                    "slice",
                    "decorator",
                    "type",
                    "case_pattern",
                    "case_clause",
                    "format_specifier",
                    "interpolation",
                    "expression_list",
                    "assert_statement",
                ],
            ),
            (Role::Constant, &["true", "false", "none"]),
            (Role::Interpolation, &["interpolation"]),
            (Role::Statement, &["expression_statement"]),
            (Role::Key, &["concatenated_string", "import_statement", "import_from_statement"]),
        ],
        Language::JavaScript | Language::TypeScript | Language::Tsx => &[
            (Role::Number, &["number"]),
            (Role::Text, &["string", "template_string"]),
            (Role::Comment, &["comment"]),
            (
                Role::Through,
                &[
                    "parenthesized_expression",
                    "unary_expression",
                    "as_expression",
                    "satisfies_expression",
                    "non_null_expression",
                ],
            ),
            (Role::Binary, &["binary_expression", "augmented_assignment_expression"]),
            (Role::Arguments, &["arguments"]),
            (
                Role::Call,
                &["call_expression", "new_expression", "member_expression", "await_expression", "ternary_expression"],
            ),
            (
                Role::Named,
                &[
                    "variable_declarator",
                    "assignment_expression",
                    "pair",
                    "field_definition",
                    "public_field_definition",
                    "assignment_pattern",
                    "object_assignment_pattern",
                    "required_parameter",
                    "optional_parameter",
                    "jsx_expression",
                ],
            ),
            (Role::Declaration, &["lexical_declaration", "variable_declaration"]),
            (
                Role::Skip,
                &[
                    "array",
                    "subscript_expression",
                    "enum_assignment",
                    "enum_body",
                    "decorator",
                    "literal_type",
                    "type_annotation",
                    "jsx_attribute",
                    "switch_case",
                    "template_substitution",
                ],
            ),
            (Role::Constant, &["true", "false", "null", "undefined"]),
            (Role::Interpolation, &["template_substitution"]),
            (Role::Statement, &["expression_statement"]),
            (
                Role::Key,
                &[
                    "import_statement",
                    "export_statement",
                    "import_attribute",
                    "computed_property_name",
                    "property_signature",
                    "import_require_clause",
                ],
            ),
        ],
        Language::Go => &[
            (Role::Number, &["int_literal", "float_literal"]),
            (Role::Text, &["interpreted_string_literal", "raw_string_literal"]),
            (Role::Comment, &["comment"]),
            (
                Role::Through,
                &["parenthesized_expression", "unary_expression", "expression_list", "type_conversion_expression"],
            ),
            (Role::Binary, &["binary_expression"]),
            (Role::Arguments, &["argument_list"]),
            (Role::Call, &["call_expression", "selector_expression"]),
            (Role::Named, &["var_spec", "short_var_declaration", "assignment_statement", "keyed_element"]),
            (
                Role::Skip,
                &[
                    "const_spec",
                    "const_declaration",
                    "literal_value",
                    "literal_element",
                    "index_expression",
                    "slice_expression",
                    "array_type",
                    "expression_case",
                    "import_spec",
                    "field_declaration",
                ],
            ),
            (Role::Constant, &["true", "false", "nil"]),
        ],
        Language::Java => &[
            (Role::Number, &["decimal_integer_literal", "decimal_floating_point_literal"]),
            (Role::Text, &["string_literal"]),
            (Role::Comment, &["line_comment", "block_comment"]),
            (Role::Through, &["parenthesized_expression", "unary_expression", "cast_expression"]),
            (Role::Binary, &["binary_expression"]),
            (Role::Arguments, &["argument_list"]),
            (Role::Call, &["method_invocation", "object_creation_expression", "field_access", "ternary_expression"]),
            (Role::Named, &["variable_declarator", "assignment_expression", "element_value_pair"]),
            (Role::Declaration, &["field_declaration", "local_variable_declaration"]),
            (
                Role::Skip,
                &[
                    "array_initializer",
                    "array_access",
                    "enum_constant",
                    "annotation",
                    "marker_annotation",
                    "annotation_argument_list",
                    "element_value_array_initializer",
                    "switch_label",
                    "dimensions_expr",
                    "array_creation_expression",
                    "constant_declaration",
                    "assert_statement",
                    "explicit_constructor_invocation",
                ],
            ),
            (Role::Constant, &["true", "false", "null_literal"]),
        ],
        Language::C | Language::Cpp => &[
            (Role::Number, &["number_literal"]),
            (Role::Text, &["string_literal", "raw_string_literal"]),
            (Role::Comment, &["comment"]),
            (Role::Through, &["parenthesized_expression", "unary_expression", "cast_expression"]),
            (Role::Binary, &["binary_expression"]),
            (Role::Arguments, &["argument_list"]),
            (Role::Call, &["call_expression", "new_expression", "field_expression", "conditional_expression"]),
            (
                Role::Named,
                &[
                    "init_declarator",
                    "assignment_expression",
                    "initializer_pair",
                    "field_initializer",
                    "optional_parameter_declaration",
                ],
            ),
            (Role::Declaration, &["declaration", "field_declaration"]),
            (
                Role::Skip,
                &[
                    "initializer_list",
                    "subscript_expression",
                    "enumerator",
                    "array_declarator",
                    "new_declarator",
                    "case_statement",
                    "bitfield_clause",
                    "preproc_def",
                    "preproc_if",
                    "preproc_elif",
                    "attribute",
                    "attribute_declaration",
                    "template_argument_list",
                    "static_assert_declaration",
                    "sizeof_expression",
                    "alignas_qualifier",
                    "gnu_asm_expression",
                    "subscript_designator",
                ],
            ),
            (Role::Constant, &["true", "false", "null", "char_literal"]),
            (Role::Key, &["preproc_include", "concatenated_string", "linkage_specification"]),
        ],
        Language::CSharp => &[
            (Role::Number, &["integer_literal", "real_literal"]),
            (Role::Text, &["string_literal", "verbatim_string_literal"]),
            (Role::Comment, &["comment"]),
            (Role::Through, &["parenthesized_expression", "prefix_unary_expression", "cast_expression"]),
            (Role::Binary, &["binary_expression"]),
            (Role::Arguments, &["argument_list"]),
            (
                Role::Call,
                &[
                    "invocation_expression",
                    "object_creation_expression",
                    "implicit_object_creation_expression",
                    "member_access_expression",
                    "conditional_access_expression",
                    "conditional_expression",
                    "await_expression",
                ],
            ),
            (
                Role::Named,
                &["variable_declarator", "assignment_expression", "parameter", "argument", "property_declaration"],
            ),
            (Role::Declaration, &["field_declaration", "local_declaration_statement"]),
            (
                Role::Skip,
                &[
                    "initializer_expression",
                    "element_access_expression",
                    "bracketed_argument_list",
                    "enum_member_declaration",
                    "attribute",
                    "attribute_list",
                    "constant_pattern",
                    "relational_pattern",
                    "switch_section",
                    "switch_expression_arm",
                    "array_rank_specifier",
                    "collection_expression",
                    "range_expression",
                    "is_pattern_expression",
                ],
            ),
            (Role::Constant, &["boolean_literal", "null_literal"]),
        ],
        Language::Ruby => &[
            (Role::Number, &["integer", "float"]),
            (Role::Text, &["string"]),
            (Role::Comment, &["comment"]),
            (Role::Through, &["parenthesized_statements", "unary"]),
            (Role::Binary, &["binary", "operator_assignment"]),
            (Role::Arguments, &["argument_list"]),
            (Role::Call, &["call", "conditional"]),
            (Role::Named, &["assignment", "pair", "optional_parameter", "keyword_parameter"]),
            (
                Role::Skip,
                &["array", "element_reference", "range", "pattern", "when", "in_clause", "string_array", "rational"],
            ),
            (Role::Constant, &["true", "false", "nil", "simple_symbol"]),
            (Role::Interpolation, &["interpolation"]),
            (Role::Key, &["chained_string"]),
        ],
        Language::Php => &[
            (Role::Number, &["integer", "float"]),
            (Role::Text, &["string", "encapsed_string"]),
            (Role::Comment, &["comment"]),
            (Role::Through, &["parenthesized_expression", "unary_op_expression", "cast_expression"]),
            (Role::Binary, &["binary_expression", "augmented_assignment_expression"]),
            (Role::Arguments, &["arguments"]),
            (
                Role::Call,
                &[
                    "function_call_expression",
                    "member_call_expression",
                    "nullsafe_member_call_expression",
                    "scoped_call_expression",
                    "object_creation_expression",
                    "member_access_expression",
                    "conditional_expression",
                ],
            ),
            (
                Role::Named,
                &[
                    "assignment_expression",
                    "property_element",
                    "simple_parameter",
                    "argument",
                    "property_promotion_parameter",
                    "static_variable_declaration",
                ],
            ),
            (Role::Declaration, &["property_declaration"]),
            (
                Role::Skip,
                &[
                    "const_element",
                    "array_creation_expression",
                    "array_element_initializer",
                    "subscript_expression",
                    "enum_case",
                    "attribute",
                    "attribute_list",
                    "case_statement",
                    "declare_directive",
                    "match_conditional_expression",
                ],
            ),
            (Role::Constant, &["boolean", "null"]),
            (Role::Interpolation, &["variable_name", "subscript_expression", "member_access_expression"]),
            (
                Role::Key,
                &[
                    "require_expression",
                    "require_once_expression",
                    "include_expression",
                    "include_once_expression",
                    "echo_statement",
                    "match_condition_list",
                ],
            ),
        ],
        Language::Bash => &[
            (Role::Number, &["number"]),
            (Role::Text, &["string", "raw_string"]),
            (Role::Comment, &["comment"]),
            (Role::Through, &["parenthesized_expression", "unary_expression"]),
            (Role::Binary, &["binary_expression"]),
            (Role::Call, &["arithmetic_expansion"]),
            (Role::Named, &["variable_assignment"]),
            (Role::Declaration, &["declaration_command"]),
            (Role::Skip, &["array", "subscript", "case_item"]),
            (Role::Interpolation, &["simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"]),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind that a grammar does not know is a typing error, but for the languages that share a table.
    #[test]
    fn every_kind_of_the_tables_exists() {
        for language in Language::ALL {
            let grammar = language.grammar();
            for (role, kinds) in table(language) {
                for kind in *kinds {
                    let known =
                        (0..grammar.node_kind_count() as u16).any(|id| grammar.node_kind_for_id(id) == Some(kind));
                    let shared = matches!(
                        language,
                        Language::JavaScript | Language::TypeScript | Language::Tsx | Language::C | Language::Cpp
                    );
                    assert!(known || shared, "{language:?} {role:?} {kind}");
                }
            }
        }
    }
}
