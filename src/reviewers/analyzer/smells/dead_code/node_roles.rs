//! Roles of node kinds for the smells about names and control flow, per language: one byte per kind id.

use std::sync::LazyLock;

use crate::syntax::language::Language;
use crate::syntax::source::fields;

/// Role of a node. All languages share one table: a kind name means the same in every grammar, with few exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SmellNodeRole {
    None,
    Comment,
    Import,
    Function,
    Class,
    /// Declares one name; in some languages through a list of declarators below it.
    Declarator,
    Assignment,
    /// `x += 1`, `x++`.
    Update,
    /// Makes later statements of the same block unreachable.
    Terminator,
    /// Has a condition and branches once.
    Branch,
    Loop,
    Call,
    /// `x.y`.
    Member,
    /// The `y` of `x.y`, if the grammar has a kind for it.
    MemberName,
    /// `x[y]`.
    Index,
    /// Holds statements in order.
    Block,
    /// Reachable even if the statement before it ends the block: declarations, labels, cases.
    Reachable,
}

const ROLE_KINDS: &[(SmellNodeRole, &[&str])] = &[
    (SmellNodeRole::Comment, &["comment", "line_comment", "block_comment", "doc_comment", "html_comment"]),
    (
        SmellNodeRole::Import,
        &[
            "import_statement",
            "import_from_statement",
            "import_declaration",
            "import_spec",
            "use_declaration",
            "namespace_use_clause",
            "using_directive",
        ],
    ),
    (
        SmellNodeRole::Function,
        &[
            "function_definition",
            "function_item",
            "function_declaration",
            "generator_function_declaration",
            "function_expression",
            "generator_function",
            "arrow_function",
            "method_definition",
            "method_declaration",
            "func_literal",
            "constructor_declaration",
            "destructor_declaration",
            "compact_constructor_declaration",
            "lambda_expression",
            "closure_expression",
            "lambda",
            "local_function_statement",
            "operator_declaration",
            "conversion_operator_declaration",
            "accessor_declaration",
            "anonymous_method_expression",
            "anonymous_function",
            "method",
            "singleton_method",
        ],
    ),
    (
        SmellNodeRole::Class,
        &[
            "class_definition",
            "class_declaration",
            "abstract_class_declaration",
            "class",
            "singleton_class",
            "module",
            "class_body",
            "interface_declaration",
            "enum_declaration",
            "record_declaration",
            "struct_declaration",
            "trait_declaration",
            "trait_item",
            "impl_item",
            "class_specifier",
            "struct_specifier",
            "namespace_definition",
            "anonymous_class",
        ],
    ),
    (
        SmellNodeRole::Declarator,
        &["variable_declarator", "let_declaration", "declaration", "var_spec", "declaration_command", "static_item"],
    ),
    (
        SmellNodeRole::Assignment,
        &["assignment", "assignment_expression", "assignment_statement", "variable_assignment"],
    ),
    (
        SmellNodeRole::Update,
        &[
            "augmented_assignment",
            "augmented_assignment_expression",
            "compound_assignment_expr",
            "operator_assignment",
            "update_expression",
            "inc_statement",
            "dec_statement",
            "postfix_unary_expression",
            "prefix_unary_expression",
        ],
    ),
    (
        SmellNodeRole::Terminator,
        &[
            "return_statement",
            "return_expression",
            "return",
            "raise_statement",
            "throw_statement",
            "throw_expression",
            "break_statement",
            "break_expression",
            "break",
            "continue_statement",
            "continue_expression",
            "next",
            "redo",
            "exit_statement",
            "goto_statement",
        ],
    ),
    (
        SmellNodeRole::Branch,
        &[
            "if_statement",
            "if_expression",
            "elif_clause",
            "else_if_clause",
            "if",
            "unless",
            "elsif",
            "if_modifier",
            "unless_modifier",
            "conditional_expression",
            "ternary_expression",
            "conditional",
        ],
    ),
    (SmellNodeRole::Loop, &["while_statement", "while_expression", "while", "until", "while_modifier"]),
    (
        SmellNodeRole::Call,
        &[
            "call",
            "call_expression",
            "method_invocation",
            "invocation_expression",
            "function_call_expression",
            "member_call_expression",
            "nullsafe_member_call_expression",
            "scoped_call_expression",
        ],
    ),
    (
        SmellNodeRole::Member,
        &[
            "member_expression",
            "attribute",
            "field_expression",
            "selector_expression",
            "member_access_expression",
            "field_access",
            "scoped_property_access_expression",
            "scoped_identifier",
            "qualified_identifier",
            "generic_function",
        ],
    ),
    (SmellNodeRole::MemberName, &["property_identifier", "field_identifier", "private_property_identifier"]),
    (
        SmellNodeRole::Index,
        &[
            "subscript",
            "subscript_expression",
            "index_expression",
            "element_access_expression",
            "array_access",
            "element_reference",
        ],
    ),
    (
        SmellNodeRole::Block,
        &[
            "block",
            "statement_block",
            "compound_statement",
            "statement_list",
            "body_statement",
            "block_body",
            "then",
            "else",
            "begin",
            "do_group",
            "program",
            "case_statement",
            "switch_case",
            "switch_default",
            "do",
            "switch_section",
        ],
    ),
    (
        SmellNodeRole::Reachable,
        &[
            "labeled_statement",
            "else_clause",
            "rescue",
            "ensure",
            "elif_clause",
            "interface_declaration",
            "type_alias_declaration",
            "function_signature",
            "empty_statement",
            "preproc_if",
            "preproc_ifdef",
            "preproc_else",
            "preproc_elif",
            "preproc_call",
            "preproc_def",
            "preproc_function_def",
            "preproc_include",
            "attribute_item",
            "attributed_statement",
            "const_item",
            "use_declaration",
            "struct_item",
            "enum_item",
            "macro_definition",
            "macro_invocation",
            "text_interpolation",
            "text",
            "php_tag",
            "heredoc_body",
            "const_declaration",
            "type_declaration",
            "yield",
            "fallthrough_statement",
            "local_function_statement",
            "visibility_modifier",
        ],
    ),
];

fields! {
    pub,
    name = "name", alias = "alias", parameters = "parameters", body = "body", left = "left", right = "right",
    pattern = "pattern", value = "value", condition = "condition", declarator = "declarator", function = "function",
    method = "method", attribute = "attribute", field = "field", object = "object", path = "path", kind = "type",
    receiver = "receiver", property = "property", superclass = "superclass",
}

/// Roles, field ids and kind ids of one language.
pub struct SmellNodeRoles {
    grammar: tree_sitter::Language,
    roles: Box<[SmellNodeRole]>,
    pub fields: Fields,
    pub kinds: Kinds,
}

/// Ids of a kind, at most four: aliases give a kind several ids.
#[derive(Debug, Clone, Copy)]
pub struct Ids([u16; 4]);

impl Ids {
    fn new(language: Language, name: &str) -> Self {
        let grammar = language.grammar();
        let mut ids = [u16::MAX; 4];
        let all = (0..grammar.node_kind_count() as u16)
            .filter(|&id| grammar.node_kind_is_named(id) && grammar.node_kind_for_id(id) == Some(name));
        for (slot, id) in ids.iter_mut().zip(all) {
            *slot = id;
        }
        Self(ids)
    }

    pub fn is(&self, kind: u16) -> bool {
        self.0.contains(&kind)
    }
}

macro_rules! kinds {
    ($($name:ident),+ $(,)?) => {
        /// Kinds that the smells look up by name.
        pub struct Kinds { $(pub $name: Ids),+ }

        impl Kinds {
            fn new(language: Language) -> Self {
                Self { $($name: Ids::new(language, stringify!($name))),+ }
            }
        }
    };
}

kinds! {
    aliased_import, ambient_declaration, arrow_function, asterisk, attribute, body_statement, break_statement, call,
    case_statement, class, class_body, class_definition, class_variable, command, declaration, decorated_definition,
    default_parameter, dictionary, dotted_name, export_statement, expression_statement, field_access,
    field_declaration, function_declarator, function_definition, function_expression, global_declaration,
    global_statement, global_variable, identifier, impl_item, import_clause, import_specifier, keyword_argument, list,
    local_declaration_statement, local_variable_declaration, member_access_expression, method_definition, mod_item,
    mutable_specifier, name, namespace_import, object_pattern, parenthesized_expression, property_declaration,
    rest_pattern, scoped_identifier, set, shorthand_property_identifier_pattern, statement_list, static_item,
    trait_item, try_statement, typed_default_parameter, use_as_clause, use_wildcard, variable_declaration,
    variable_name,
}

impl SmellNodeRoles {
    pub fn for_language(language: Language) -> &'static Self {
        static ALL: LazyLock<[SmellNodeRoles; 13]> = LazyLock::new(|| Language::ALL.map(SmellNodeRoles::new));
        &ALL[language.index()]
    }

    fn new(language: Language) -> Self {
        let grammar = language.grammar();
        let mut roles = vec![SmellNodeRole::None; grammar.node_kind_count()].into_boxed_slice();
        for (id, role) in roles.iter_mut().enumerate() {
            let Some(kind) = grammar.node_kind_for_id(id as u16) else { continue };
            if !grammar.node_kind_is_named(id as u16) {
                continue;
            }
            if let Some((found, _)) = ROLE_KINDS.iter().find(|(_, kinds)| kinds.contains(&kind)) {
                *role = *found;
            }
            // The same kind name has another meaning in these languages.
            *role = match (language, kind) {
                (Language::Rust, "attribute") | (Language::CSharp, "attribute" | "lambda") => SmellNodeRole::None,
                (Language::Python, "module") | (Language::Ruby, "program") => SmellNodeRole::Block,
                (Language::Ruby, "lambda") => SmellNodeRole::None,
                // In this grammar `module` is a namespace inside a file.
                (Language::Tsx | Language::TypeScript, "module") => SmellNodeRole::Class,
                (Language::Go, "return_statement") => SmellNodeRole::Terminator,
                (Language::Bash, "function_definition") => SmellNodeRole::Function,
                (Language::Cpp | Language::C, "field_expression") => SmellNodeRole::Member,
                _ => *role,
            };
        }
        Self { grammar: grammar.clone(), roles, fields: Fields::new(language), kinds: Kinds::new(language) }
    }

    /// Returns the grammar's name of a kind.
    pub fn kind_name(&self, kind: u16) -> &str {
        self.grammar.node_kind_for_id(kind).unwrap_or("")
    }

    pub fn role(&self, kind: u16) -> SmellNodeRole {
        self.roles.get(usize::from(kind)).copied().unwrap_or(SmellNodeRole::None)
    }
}
