//! Maps kinds of syntax nodes to their roles: one table for all grammars, because they name similar things alike, and
//! a few exceptions per language.
//!
//! - Every name in a table exists in a grammar (tested).

use std::sync::OnceLock;

use crate::syntax::language::Language;
use crate::syntax::source::field_id;

pub(super) type NodeRoleBits = u32;

/// Node that is not code and is not descended into.
pub(super) const COMMENT: NodeRoleBits = 1;
/// Node that becomes one STRING, whatever it contains.
pub(super) const STRING: NodeRoleBits = 1 << 1;
/// Node that becomes one NUMBER. A single character is a NUMBER too: code may compare it by value, which is often
/// wrong for strings.
pub(super) const NUMBER: NodeRoleBits = 1 << 2;
/// Expression: may be a site, and may become EXPRESSION inside another node.
pub(super) const EXPRESSION: NodeRoleBits = 1 << 3;
/// Expression that says little by itself: its contents are written as if they stood alone.
pub(super) const THIN: NodeRoleBits = 1 << 4;
/// Statement: a site, and the end of the way up from a change.
pub(super) const STATEMENT: NodeRoleBits = 1 << 5;
/// Block of statements, which may become BODY.
pub(super) const BLOCK: NodeRoleBits = 1 << 6;
/// List of arguments or parameters, which may become ARGS.
pub(super) const ARGS: NodeRoleBits = 1 << 7;
/// Wrapper of one argument or element.
pub(super) const ITEM: NodeRoleBits = 1 << 8;
/// Call; the name in it is a function name.
pub(super) const CALL: NodeRoleBits = 1 << 9;
/// Declaration of a function.
pub(super) const FUNCTION: NodeRoleBits = 1 << 10;
/// Node whose direct names are type names.
pub(super) const TYPE: NodeRoleBits = 1 << 11;
/// Path or member access; its last name is the one that it refers to.
pub(super) const MEMBER: NodeRoleBits = 1 << 12;
/// Node whose children are statements.
pub(super) const LIST: NodeRoleBits = 1 << 13;
/// Declaration or import, which is never a missing or needless statement.
pub(super) const DECLARATION: NodeRoleBits = 1 << 14;
/// Node that is a type name by itself.
pub(super) const TYPE_NAME: NodeRoleBits = 1 << 15;
/// Brackets around an expression, without a form of their own.
pub(super) const BRACKETS: NodeRoleBits = 1 << 16;
/// Declaration whose head is a site.
pub(super) const HEAD: NodeRoleBits = 1 << 17;
/// Head that names a path.
pub(super) const IMPORT: NodeRoleBits = 1 << 19;
/// Annotation before a declaration; a site of its own.
pub(super) const ANNOTATION: NodeRoleBits = 1 << 18;

/// Roles with the node kinds that have them, separated by one space.
type NodeRoleTable = &'static [(NodeRoleBits, &'static str)];

const COMMON_ROLES: NodeRoleTable = &[
    (
        COMMENT,
        "comment line_comment block_comment html_comment hash_bang_line shebang shebang_directive doc_comment \
         php_tag php_end_tag line_continuation heredoc_body uninterpreted heredoc_content heredoc_end",
    ),
    (
        STRING,
        "string string_literal raw_string_literal template_string \
         interpreted_string_literal encapsed_string heredoc nowdoc heredoc_beginning character \
         regex verbatim_string_literal interpolated_string_expression string_array symbol_array simple_symbol \
         delimited_symbol bare_string bare_symbol chained_string jsx_text html_character_reference \
         system_lib_string ansi_c_string translated_string raw_string concatenation extglob_pattern \
         heredoc_redirect herestring_redirect shell_command_expression template_literal_type string_content \
         string_fragment escape_sequence text",
    ),
    (
        NUMBER,
        "integer float number integer_literal float_literal int_literal imaginary_literal number_literal \
         decimal_integer_literal hex_integer_literal octal_integer_literal binary_integer_literal \
         decimal_floating_point_literal hex_floating_point_literal real_literal rational complex \
         negative_literal user_defined_literal file_descriptor char_literal character_literal rune_literal",
    ),
    (
        EXPRESSION,
        "array array_access array_creation_expression array_expression array_initializer arrow_function \
         as_expression anonymous_function anonymous_method_expression anonymous_object_creation_expression \
         alignof_expression binary binary_expression binary_operator boolean_operator call call_expression \
         cast_expression class_constant_access_expression class_literal closure_expression \
         collection_expression comma_expression command_substitution comparison_operator composite_literal \
         compound_literal_expression conditional conditional_access_expression conditional_expression \
         default_expression delete_expression dictionary dictionary_comprehension element_access_expression \
         element_reference expansion expression_list field_access field_expression fold_expression \
         func_literal function_call_expression function_expression generator_expression hash \
         implicit_array_creation_expression implicit_object_creation_expression index_expression \
         initializer_expression initializer_list instanceof_expression invocation_expression is_expression \
         is_pattern_expression jsx_element jsx_self_closing_element lambda lambda_expression let_chain \
         let_condition list list_comprehension list_literal macro_invocation member_access_expression \
         member_call_expression member_expression method_invocation method_reference new_expression \
         non_null_expression nullsafe_member_access_expression nullsafe_member_call_expression object \
         object_creation_expression offsetof_expression pair pointer_expression postfix_expression \
         query_expression range range_expression satisfies_expression scoped_call_expression \
         scoped_property_access_expression selector_expression sequence_expression set set_comprehension \
         sizeof_expression slice_expression struct_expression subscript subscript_expression \
         switch_expression ternary_expression tuple tuple_expression type_assertion_expression \
         type_cast_expression type_conversion_expression typeof_expression with_expression command pipeline \
         test_command array_pattern match_expression checked_expression keyword_argument \
         lambda_capture_specifier",
    ),
    (
        EXPRESSION | THIN,
        "parenthesized_expression parenthesized_statements unary unary_expression unary_operator not_operator \
         unary_op_expression prefix_unary_expression postfix_unary_expression await_expression await \
         try_expression reference_expression error_suppression_expression clone_expression spread_element \
         update_expression negated_command assignment assignment_expression augmented_assignment \
         augmented_assignment_expression compound_assignment_expr operator_assignment \
         reference_assignment_expression named_expression co_await_expression throw_expression \
         yield_expression yield ref_expression splat_argument block_argument list_splat dictionary_splat \
         variable_assignment print_intrinsic include_expression include_once_expression require_expression \
         require_once_expression if_guard if_clause condition_clause",
    ),
    (BRACKETS, "parenthesized_expression parenthesized_statements condition_clause"),
    (
        STATEMENT,
        "assert_statement assignment_statement break_expression break_statement c_style_for_statement case \
         case_match case_statement catch_clause checked_statement co_return_statement co_yield_statement \
         continue_expression continue_statement dec_statement declaration_command defer_statement \
         delete_statement do_statement echo_statement enhanced_for_statement else_if_clause elif_clause elsif \
         except_clause exec_statement exit_statement expression_statement expression_switch_statement \
         fixed_statement for for_expression for_in_statement for_range_loop for_statement foreach_statement \
         global_statement go_statement goto_statement if if_expression if_modifier if_statement inc_statement \
         labeled_statement let_declaration lexical_declaration local_declaration_statement \
         local_variable_declaration lock_statement loop_expression match_arm match_statement \
         nonlocal_statement pass_statement raise_statement receive_statement redirected_statement rescue \
         rescue_modifier return return_expression return_statement next break select_statement send_statement \
         short_var_declaration switch_statement synchronized_statement throw_statement try_statement \
         try_with_resources_statement type_switch_statement unless unless_modifier unless_guard unset_command \
         unset_statement until until_modifier unsafe_statement using_statement var_declaration \
         variable_declaration while while_expression while_modifier while_statement with_statement \
         yield_statement explicit_constructor_invocation declaration global_declaration \
         function_static_declaration print_statement",
    ),
    (
        BLOCK,
        "statement_block compound_statement class_body interface_body enum_body enum_body_declarations \
         annotation_type_body declaration_list field_declaration_list enumerator_list enum_variant_list \
         switch_block switch_body match_block do_group do_block body_statement constructor_body begin_block \
         accessor_list enum_member_declaration_list ordered_field_declaration_list enum_declaration_list \
         module_body class_static_block do then block_body begin block unsafe_block async_block",
    ),
    (
        LIST,
        "block statement_block compound_statement program module source_file translation_unit \
         compilation_unit statement_list switch_block_statement_group switch_case switch_default \
         switch_section case_statement default_statement expression_case default_case type_case \
         communication_case constructor_body do_group do then body_statement begin block_body do_block ensure \
         case_item colon_block subshell else global_statement",
    ),
    (
        ARGS,
        "arguments argument_list formal_parameters parameters parameter_list method_parameters token_tree \
         annotation_argument_list attribute_argument_list closure_parameters lambda_parameters \
         block_parameters inferred_parameters",
    ),
    (
        ITEM,
        "argument keyword_argument pair element_value_pair keyed_element literal_element field_initializer \
         array_element_initializer initializer_pair variadic_unpacking",
    ),
    (
        CALL,
        "call_expression call method_invocation function_call_expression member_call_expression \
         nullsafe_member_call_expression scoped_call_expression invocation_expression macro_invocation \
         command",
    ),
    (
        FUNCTION,
        "function_item function_signature_item function_definition function_declaration method_definition \
         method_declaration constructor_declaration method singleton_method function_declarator \
         generator_function_declaration local_function_statement function_expression generator_function \
         macro_definition destructor_declaration method_elem function_signature method_signature \
         abstract_method_signature",
    ),
    (
        TYPE,
        "class_declaration class_definition class class_specifier struct_specifier enum_specifier \
         union_specifier struct_item enum_item trait_item union_item interface_declaration enum_declaration \
         record_declaration struct_declaration abstract_class_declaration type_spec type_alias type_item \
         trait_declaration superclass enum_variant type generic_type type_arguments array_type pointer_type \
         reference_type nullable_type named_type scoped_type_identifier qualified_type type_annotation \
         type_list super_interfaces extends_interfaces throws catch_type base_list class_heritage \
         extends_clause implements_clause union_type optional_type type_parameter type_argument_list \
         type_bound trait_bounds type_descriptor nested_type_identifier tuple_type function_type base_clause \
         class_interface_clause marker_annotation annotation object_creation_expression new_expression \
         struct_expression composite_literal array_creation_expression class_literal exceptions \
         type_alias_declaration template_type type_constraint intersection_type type_parameters slice_type \
         map_type channel_type",
    ),
    (
        MEMBER,
        "field_expression selector_expression member_expression member_access_expression scoped_identifier \
         qualified_identifier member_binding_expression field_access nullsafe_member_access_expression \
         scoped_property_access_expression scope_resolution generic_function generic_name template_function \
         template_method command_name conditional_access_expression qualified_name dependent_name \
         instantiation_expression class_constant_access_expression nested_identifier dotted_name \
         alias_qualified_name",
    ),
    (
        DECLARATION,
        "import_statement import_from_statement future_import_statement import_declaration \
         package_declaration package_clause use_declaration extern_crate_declaration preproc_include \
         preproc_def preproc_function_def using_directive using_declaration namespace_use_declaration \
         namespace_definition export_statement function_item function_definition function_declaration \
         class_declaration class_definition method_declaration class method module struct_item enum_item \
         impl_item trait_item mod_item const_item static_item decorated_definition type_alias_declaration \
         interface_declaration enum_declaration local_function_statement labeled_statement const_declaration \
         type_declaration declaration_list global_statement nonlocal_statement",
    ),
    (
        HEAD,
        "import_declaration package_declaration class_declaration interface_declaration enum_declaration \
         annotation_type_declaration record_declaration method_declaration constructor_declaration \
         field_declaration constant_declaration annotation marker_annotation import_statement \
         import_from_statement using_directive namespace_use_declaration use_declaration preproc_include \
         class_definition function_definition function_item struct_item enum_item trait_item impl_item \
         const_item static_item mod_item function_declaration method_definition property_declaration \
         struct_declaration namespace_definition decorator attribute_item const_declaration type_spec \
         class_specifier struct_specifier",
    ),
    (
        IMPORT,
        "import_declaration package_declaration import_statement import_from_statement using_directive \
         namespace_use_declaration use_declaration",
    ),
    (ANNOTATION, "annotation marker_annotation attribute_item decorator attribute_list"),
    (
        TYPE_NAME,
        "type_identifier constant predefined_type primitive_type void_type integral_type floating_point_type \
         boolean_type sized_type_specifier",
    ),
];

/// Returns the roles that a language adds, and the node kinds for which the common table does not apply.
fn language_overrides(language: Language) -> (NodeRoleTable, &'static [&'static str]) {
    match language {
        Language::Python => (&[(EXPRESSION | MEMBER, "attribute")], &["pair"]),
        Language::Bash => (&[(LIST, "list")], &[]),
        Language::Rust => {
            (&[(BLOCK, "field_initializer_list"), (STATEMENT, "match_expression")], &["match_expression"])
        }
        Language::CSharp => (
            &[
                (TYPE, "attribute"),
                (COMMENT, "preproc_pragma preproc_region preproc_endregion preproc_line preproc_nullable"),
            ],
            &["global_statement", "variable_declaration"],
        ),
        Language::Ruby => (&[(EXPRESSION | MEMBER, "scope_resolution")], &["subshell"]),
        _ => (&[], &[]),
    }
}

/// Ids of the fields that hold names; 0 if the language has no such field.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeFieldIds {
    pub function: u16,
    pub method: u16,
    pub name: u16,
    pub macro_: u16,
    pub declarator: u16,
    pub kind: u16,
    pub return_type: u16,
    pub returns: u16,
    pub result: u16,
    pub trait_: u16,
    pub field: u16,
    pub property: u16,
    pub attribute: u16,
    pub body: u16,
    pub consequence: u16,
    pub alternative: u16,
    pub constructor: u16,
}

/// Roles of node kinds and ids of fields in one language.
pub(super) struct NodeRoles {
    bits: Box<[NodeRoleBits]>,
    pub fields: NodeFieldIds,
}

impl NodeRoles {
    pub fn for_language(language: Language) -> &'static Self {
        // Built on first use: a review needs one or two languages, and each takes a while.
        static ALL: [OnceLock<NodeRoles>; Language::ALL.len()] = [const { OnceLock::new() }; Language::ALL.len()];
        ALL[language.index()].get_or_init(|| Self::new(language))
    }

    fn new(language: Language) -> Self {
        let grammar = language.grammar();
        let (added, gone) = language_overrides(language);
        let bits = (0..grammar.node_kind_count()).map(|id| {
            let id = id as u16;
            let kind = grammar.node_kind_for_id(id).unwrap_or("");
            if !grammar.node_kind_is_named(id) {
                return 0;
            }
            let common = if gone.contains(&kind) { &[] } else { COMMON_ROLES };
            let said = common.iter().chain(added).filter(|(_, names)| names.split(' ').any(|name| name == kind));
            said.fold(0, |all, (bits, _)| all | bits)
        });
        let field = |name| field_id(language, name);
        let fields = NodeFieldIds {
            function: field("function"),
            method: field("method"),
            name: field("name"),
            macro_: field("macro"),
            declarator: field("declarator"),
            kind: field("type"),
            return_type: field("return_type"),
            returns: field("returns"),
            result: field("result"),
            trait_: field("trait"),
            field: field("field"),
            property: field("property"),
            attribute: field("attribute"),
            body: field("body"),
            consequence: field("consequence"),
            alternative: field("alternative"),
            constructor: field("constructor"),
        };
        Self { bits: bits.collect(), fields }
    }

    /// Returns the roles of a node kind; 0 for a kind without a role.
    pub fn roles_of(&self, kind: u16) -> NodeRoleBits {
        self.bits.get(usize::from(kind)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_table_exists_in_a_grammar() {
        let exists = |language: Language, name: &str| language.grammar().id_for_node_kind(name, true) != 0;
        for name in COMMON_ROLES.iter().flat_map(|(_, names)| names.split(' ')) {
            assert!(Language::ALL.into_iter().any(|language| exists(language, name)), "no grammar has {name:?}");
        }
        for language in Language::ALL {
            let (added, gone) = language_overrides(language);
            for name in added.iter().flat_map(|(_, names)| names.split(' ')).chain(gone.iter().copied()) {
                assert!(exists(language, name), "{language:?} has no {name:?}");
            }
        }
    }
}
