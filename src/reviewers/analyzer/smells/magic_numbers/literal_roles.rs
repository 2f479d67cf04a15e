//! Roles of syntax nodes for the literals inside them, per language.

use super::super::syntax::{KindMap, SmellFieldIds};
use crate::syntax::language::Language;

/// Role of a node for the literals in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LiteralRole {
    /// Unknown: the walk up the tree ends here.
    None,
    Number,
    /// A quoted string.
    Text,
    Comment,
    /// Without its own meaning: parentheses, signs, casts, lists with one item.
    Transparent,
    Binary,
    /// The argument list of a call.
    Arguments,
    /// A call, a member access, a constructor expression: the walk up the tree continues.
    Call,
    /// Gives its value a name: declarations, assignments, keyword arguments, pairs, default values.
    Named,
    /// A declaration whose head may have `const`, `final` or `static`.
    Declaration,
    /// Explains or tabulates the literal: lists of data, indices, ranges, enums, annotations, types, constants.
    Skip,
    /// A constant that is not a number: true, false, null.
    Constant,
    /// Code inside a string: such a string does not count as a repetition.
    Interpolation,
    /// A statement that is only an expression: a string in it is a doc string.
    Statement,
    /// A key, a type or a path: a string in it is already a name.
    Key,
}

impl From<LiteralRole> for u8 {
    fn from(role: LiteralRole) -> u8 {
        role as u8
    }
}

impl LiteralRole {
    const ALL: [Self; 15] = [
        Self::None,
        Self::Number,
        Self::Text,
        Self::Comment,
        Self::Transparent,
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

/// Roles and field ids of one language.
pub struct LiteralRoles {
    map: KindMap,
    pub fields: SmellFieldIds,
}

impl LiteralRoles {
    pub fn new(language: Language) -> Self {
        Self { map: KindMap::new(language, role_table(language)), fields: SmellFieldIds::new(language) }
    }

    pub fn role(&self, kind: u16) -> LiteralRole {
        LiteralRole::ALL.get(usize::from(self.map.get(kind))).copied().unwrap_or(LiteralRole::None)
    }
}

type LiteralRoleTable = &'static [(LiteralRole, &'static [&'static str])];

fn role_table(language: Language) -> LiteralRoleTable {
    match language {
        Language::Rust => &[
            (LiteralRole::Number, &["integer_literal", "float_literal"]),
            (LiteralRole::Text, &["string_literal", "raw_string_literal"]),
            (LiteralRole::Comment, &["line_comment", "block_comment"]),
            (
                LiteralRole::Transparent,
                &[
                    "parenthesized_expression",
                    "unary_expression",
                    "type_cast_expression",
                    "negative_literal",
                    "reference_expression",
                ],
            ),
            (LiteralRole::Binary, &["binary_expression", "compound_assignment_expr"]),
            (LiteralRole::Arguments, &["arguments"]),
            (
                LiteralRole::Call,
                &["call_expression", "field_expression", "try_expression", "await_expression", "if_expression"],
            ),
            (LiteralRole::Named, &["let_declaration", "assignment_expression", "field_initializer"]),
            (
                LiteralRole::Skip,
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
            (LiteralRole::Constant, &["boolean_literal"]),
            (LiteralRole::Key, &["token_tree"]),
        ],
        Language::Python => &[
            (LiteralRole::Number, &["integer", "float"]),
            (LiteralRole::Text, &["string"]),
            (LiteralRole::Comment, &["comment"]),
            (LiteralRole::Transparent, &["parenthesized_expression", "unary_operator"]),
            (
                LiteralRole::Binary,
                &["binary_operator", "comparison_operator", "augmented_assignment", "boolean_operator"],
            ),
            (LiteralRole::Arguments, &["argument_list"]),
            (LiteralRole::Call, &["call", "attribute", "await", "conditional_expression", "not_operator"]),
            (
                LiteralRole::Named,
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
                LiteralRole::Skip,
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
            (LiteralRole::Constant, &["true", "false", "none"]),
            (LiteralRole::Interpolation, &["interpolation"]),
            (LiteralRole::Statement, &["expression_statement"]),
            (LiteralRole::Key, &["concatenated_string", "import_statement", "import_from_statement"]),
        ],
        Language::JavaScript | Language::TypeScript | Language::Tsx => &[
            (LiteralRole::Number, &["number"]),
            (LiteralRole::Text, &["string", "template_string"]),
            (LiteralRole::Comment, &["comment"]),
            (
                LiteralRole::Transparent,
                &[
                    "parenthesized_expression",
                    "unary_expression",
                    "as_expression",
                    "satisfies_expression",
                    "non_null_expression",
                ],
            ),
            (LiteralRole::Binary, &["binary_expression", "augmented_assignment_expression"]),
            (LiteralRole::Arguments, &["arguments"]),
            (
                LiteralRole::Call,
                &["call_expression", "new_expression", "member_expression", "await_expression", "ternary_expression"],
            ),
            (
                LiteralRole::Named,
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
            (LiteralRole::Declaration, &["lexical_declaration", "variable_declaration"]),
            (
                LiteralRole::Skip,
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
            (LiteralRole::Constant, &["true", "false", "null", "undefined"]),
            (LiteralRole::Interpolation, &["template_substitution"]),
            (LiteralRole::Statement, &["expression_statement"]),
            (
                LiteralRole::Key,
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
            (LiteralRole::Number, &["int_literal", "float_literal"]),
            (LiteralRole::Text, &["interpreted_string_literal", "raw_string_literal"]),
            (LiteralRole::Comment, &["comment"]),
            (
                LiteralRole::Transparent,
                &["parenthesized_expression", "unary_expression", "expression_list", "type_conversion_expression"],
            ),
            (LiteralRole::Binary, &["binary_expression"]),
            (LiteralRole::Arguments, &["argument_list"]),
            (LiteralRole::Call, &["call_expression", "selector_expression"]),
            (LiteralRole::Named, &["var_spec", "short_var_declaration", "assignment_statement", "keyed_element"]),
            (
                LiteralRole::Skip,
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
            (LiteralRole::Constant, &["true", "false", "nil"]),
        ],
        Language::Java => &[
            (LiteralRole::Number, &["decimal_integer_literal", "decimal_floating_point_literal"]),
            (LiteralRole::Text, &["string_literal"]),
            (LiteralRole::Comment, &["line_comment", "block_comment"]),
            (LiteralRole::Transparent, &["parenthesized_expression", "unary_expression", "cast_expression"]),
            (LiteralRole::Binary, &["binary_expression"]),
            (LiteralRole::Arguments, &["argument_list"]),
            (
                LiteralRole::Call,
                &["method_invocation", "object_creation_expression", "field_access", "ternary_expression"],
            ),
            (LiteralRole::Named, &["variable_declarator", "assignment_expression", "element_value_pair"]),
            (LiteralRole::Declaration, &["field_declaration", "local_variable_declaration"]),
            (
                LiteralRole::Skip,
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
            (LiteralRole::Constant, &["true", "false", "null_literal"]),
        ],
        Language::C | Language::Cpp => &[
            (LiteralRole::Number, &["number_literal"]),
            (LiteralRole::Text, &["string_literal", "raw_string_literal"]),
            (LiteralRole::Comment, &["comment"]),
            (LiteralRole::Transparent, &["parenthesized_expression", "unary_expression", "cast_expression"]),
            (LiteralRole::Binary, &["binary_expression"]),
            (LiteralRole::Arguments, &["argument_list"]),
            (LiteralRole::Call, &["call_expression", "new_expression", "field_expression", "conditional_expression"]),
            (
                LiteralRole::Named,
                &[
                    "init_declarator",
                    "assignment_expression",
                    "initializer_pair",
                    "field_initializer",
                    "optional_parameter_declaration",
                ],
            ),
            (LiteralRole::Declaration, &["declaration", "field_declaration"]),
            (
                LiteralRole::Skip,
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
            (LiteralRole::Constant, &["true", "false", "null", "char_literal"]),
            (LiteralRole::Key, &["preproc_include", "concatenated_string", "linkage_specification"]),
        ],
        Language::CSharp => &[
            (LiteralRole::Number, &["integer_literal", "real_literal"]),
            (LiteralRole::Text, &["string_literal", "verbatim_string_literal"]),
            (LiteralRole::Comment, &["comment"]),
            (LiteralRole::Transparent, &["parenthesized_expression", "prefix_unary_expression", "cast_expression"]),
            (LiteralRole::Binary, &["binary_expression"]),
            (LiteralRole::Arguments, &["argument_list"]),
            (
                LiteralRole::Call,
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
                LiteralRole::Named,
                &["variable_declarator", "assignment_expression", "parameter", "argument", "property_declaration"],
            ),
            (LiteralRole::Declaration, &["field_declaration", "local_declaration_statement"]),
            (
                LiteralRole::Skip,
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
            (LiteralRole::Constant, &["boolean_literal", "null_literal"]),
        ],
        Language::Ruby => &[
            (LiteralRole::Number, &["integer", "float"]),
            (LiteralRole::Text, &["string"]),
            (LiteralRole::Comment, &["comment"]),
            (LiteralRole::Transparent, &["parenthesized_statements", "unary"]),
            (LiteralRole::Binary, &["binary", "operator_assignment"]),
            (LiteralRole::Arguments, &["argument_list"]),
            (LiteralRole::Call, &["call", "conditional"]),
            (LiteralRole::Named, &["assignment", "pair", "optional_parameter", "keyword_parameter"]),
            (
                LiteralRole::Skip,
                &["array", "element_reference", "range", "pattern", "when", "in_clause", "string_array", "rational"],
            ),
            (LiteralRole::Constant, &["true", "false", "nil", "simple_symbol"]),
            (LiteralRole::Interpolation, &["interpolation"]),
            (LiteralRole::Key, &["chained_string"]),
        ],
        Language::Php => &[
            (LiteralRole::Number, &["integer", "float"]),
            (LiteralRole::Text, &["string", "encapsed_string"]),
            (LiteralRole::Comment, &["comment"]),
            (LiteralRole::Transparent, &["parenthesized_expression", "unary_op_expression", "cast_expression"]),
            (LiteralRole::Binary, &["binary_expression", "augmented_assignment_expression"]),
            (LiteralRole::Arguments, &["arguments"]),
            (
                LiteralRole::Call,
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
                LiteralRole::Named,
                &[
                    "assignment_expression",
                    "property_element",
                    "simple_parameter",
                    "argument",
                    "property_promotion_parameter",
                    "static_variable_declaration",
                ],
            ),
            (LiteralRole::Declaration, &["property_declaration"]),
            (
                LiteralRole::Skip,
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
            (LiteralRole::Constant, &["boolean", "null"]),
            (LiteralRole::Interpolation, &["variable_name", "subscript_expression", "member_access_expression"]),
            (
                LiteralRole::Key,
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
            (LiteralRole::Number, &["number"]),
            (LiteralRole::Text, &["string", "raw_string"]),
            (LiteralRole::Comment, &["comment"]),
            (LiteralRole::Transparent, &["parenthesized_expression", "unary_expression"]),
            (LiteralRole::Binary, &["binary_expression"]),
            (LiteralRole::Call, &["arithmetic_expansion"]),
            (LiteralRole::Named, &["variable_assignment"]),
            (LiteralRole::Declaration, &["declaration_command"]),
            (LiteralRole::Skip, &["array", "subscript", "case_item"]),
            (
                LiteralRole::Interpolation,
                &["simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"],
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind that a grammar does not have is a typo, except in languages that share a table.
    #[test]
    fn every_kind_of_the_tables_exists() {
        for language in Language::ALL {
            let grammar = language.grammar();
            for (role, kinds) in role_table(language) {
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
