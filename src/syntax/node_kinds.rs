//! Maps the node kinds of each language to their meaning for the metrics: tables of kind names, compiled once into bit
//! flags per kind id.
//!
//! Invariant: every name in a table exists in its grammar; a test checks it.

use std::sync::LazyLock;

use super::language::Language;
use super::source::fields;

pub(super) type KindFlags = u32;

/// Function with its own entry and metrics, if it has a body.
pub(super) const FUNCTION: KindFlags = 1;
/// Closure that counts into the enclosing function.
pub(super) const LAMBDA: KindFlags = 1 << 1;
/// Container of methods and fields.
pub(super) const CLASS: KindFlags = 1 << 2;
/// Comment: not code, and its children are skipped.
pub(super) const COMMENT: KindFlags = 1 << 3;
/// String: all of its lines are code, even lines without a leaf node.
pub(super) const STRING: KindFlags = 1 << 4;
/// Decision: one more path through the function (cyclomatic complexity).
pub(super) const DECISION: KindFlags = 1 << 5;
/// Control structure that counts for the nesting depth.
pub(super) const NESTS: KindFlags = 1 << 6;
/// Adds 1 plus the nesting level to cognitive complexity, and opens a nesting level.
pub(super) const STRUCTURAL: KindFlags = 1 << 7;
/// `else`, `elif`: adds 1 to cognitive complexity at any nesting level.
pub(super) const ELSE: KindFlags = 1 << 8;
/// `if`: directly below an `else` it is an `else if`.
pub(super) const IF: KindFlags = 1 << 9;
/// Wrapper of the branch after an `else`.
pub(super) const ELSE_CLAUSE: KindFlags = 1 << 10;
/// Binary expression, possibly a logical one.
pub(super) const BINARY: KindFlags = 1 << 11;
/// `&&`, `||`, `and`, `or`: sequences of them count for cognitive complexity.
pub(super) const LOGICAL: KindFlags = 1 << 12;
/// `break` or `continue`: adds 1 to cognitive complexity if a label follows.
pub(super) const JUMP: KindFlags = 1 << 13;
/// `goto`: adds 1 to cognitive complexity.
pub(super) const GOTO: KindFlags = 1 << 14;
/// Conditional expression: its `?` is a decision.
pub(super) const TERNARY: KindFlags = 1 << 15;
/// `?`: a decision below a [`TERNARY`].
pub(super) const QUESTION: KindFlags = 1 << 16;
/// Parameter or pattern with a default value: its `=` is a decision.
pub(super) const DEFAULTED: KindFlags = 1 << 17;
/// `=`: a decision below a [`DEFAULTED`].
pub(super) const EQUALS: KindFlags = 1 << 18;
/// Declaration of one or several fields of the enclosing class.
pub(super) const FIELD: KindFlags = 1 << 19;
/// Name in a [`FIELD`]: each name is one field.
pub(super) const FIELD_NAME: KindFlags = 1 << 20;
/// Assignment, possibly `self.x = ...`, which creates a field.
pub(super) const ASSIGNMENT: KindFlags = 1 << 21;
/// Attribute that may mark the next item as test code.
pub(super) const ATTRIBUTE: KindFlags = 1 << 22;
/// Call.
pub(super) const CALL: KindFlags = 1 << 23;
/// Node whose own `else` does not count: conditional expressions, `case`.
pub(super) const NO_ELSE: KindFlags = 1 << 24;
/// Rust's `mod`, which may have `#[cfg(test)]`.
pub(super) const MODULE: KindFlags = 1 << 25;
/// Token with text that is not code: a line end.
pub(super) const LAYOUT: KindFlags = 1 << 26;
/// Statement that is only an expression: a string in it is a doc string.
pub(super) const EXPRESSION_STATEMENT: KindFlags = 1 << 27;
/// Child of a parameter list that is not a parameter: the receiver, separators.
pub(super) const NO_PARAMETER: KindFlags = 1 << 28;
/// Parentheses, which do not end a sequence of logical operators.
pub(super) const PARENTHESES: KindFlags = 1 << 29;
/// Block: outside of functions it may be the body of a function that a macro defines.
pub(super) const BLOCK: KindFlags = 1 << 30;

type KindTable = &'static [(KindFlags, &'static [&'static str])];

/// Kinds of anonymous nodes, written as in the code, and kinds of named nodes.
struct KindTables {
    tokens: KindTable,
    nodes: KindTable,
}

/// How functions inside of functions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FunctionNesting {
    /// Metrics begin at the function's name; inner functions count into the outer one (C, C++, C#).
    Flat,
    /// Metrics begin at the function's name or keyword; inner functions have their own metrics.
    Nested,
}

/// Meaning of the node kinds and fields of one language.
pub(super) struct NodeKinds {
    bits: Box<[KindFlags]>,
    pub style: FunctionNesting,
    pub fields: Fields,
    /// True if lines that begin with `#` belong to the preprocessor.
    pub preprocessor: bool,
}

fields! {
    pub(super),
    name = "name", parameters = "parameters", parameter = "parameter", body = "body", receiver = "receiver",
    declarator = "declarator", alternative = "alternative", condition = "condition", initializer = "initializer",
    update = "update", increment = "increment", init = "init", left = "left", right = "right", value = "value",
    subject = "subject", pattern = "pattern", kind = "type", key = "key", property = "property", function = "function",
    object = "object", method = "method", resources = "resources", arguments = "arguments",
}

impl Fields {
    /// Returns whether a field belongs to the head of a control structure, so that its node is not nested in the
    /// structure.
    pub fn is_head(&self, field: u16) -> bool {
        field != 0
            && [
                self.condition,
                self.initializer,
                self.update,
                self.increment,
                self.init,
                self.left,
                self.right,
                self.value,
                self.subject,
                self.pattern,
                self.kind,
                self.name,
                self.declarator,
                self.resources,
            ]
            .contains(&field)
    }
}

impl NodeKinds {
    pub fn for_language(language: Language) -> &'static Self {
        static SPECS: LazyLock<Vec<NodeKinds>> =
            LazyLock::new(|| Language::ALL.into_iter().map(NodeKinds::new).collect());
        &SPECS[language.index()]
    }

    fn new(language: Language) -> Self {
        let grammar = language.grammar();
        let mut bits = vec![0; grammar.node_kind_count()].into_boxed_slice();
        let tables = kind_tables(language);
        for (id, bits) in bits.iter_mut().enumerate() {
            let Some(kind) = grammar.node_kind_for_id(id as u16) else { continue };
            let table = if grammar.node_kind_is_named(id as u16) { tables.nodes } else { tables.tokens };
            for (meaning, kinds) in table {
                if kinds.contains(&kind) {
                    *bits |= meaning;
                }
            }
            if kind.trim().is_empty() {
                *bits |= LAYOUT;
            }
        }
        Self {
            bits,
            style: match language {
                Language::C | Language::Cpp | Language::CSharp => FunctionNesting::Flat,
                _ => FunctionNesting::Nested,
            },
            fields: Fields::new(language),
            preprocessor: matches!(language, Language::C | Language::Cpp | Language::CSharp),
        }
    }

    pub fn flags(&self, kind: u16) -> KindFlags {
        self.bits.get(usize::from(kind)).copied().unwrap_or(0)
    }
}

fn kind_tables(language: Language) -> KindTables {
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

const LOGIC: KindFlags = DECISION | LOGICAL;
const LOOP: KindFlags = NESTS | STRUCTURAL;
const IF_STATEMENT: KindFlags = NESTS | STRUCTURAL | IF;
const CONDITIONAL: KindFlags = STRUCTURAL | TERNARY | NO_ELSE;

const RUST: KindTables = KindTables {
    tokens: &[(DECISION, &["if", "for", "while", "loop"]), (LOGIC, &["&&", "||"]), (ELSE, &["else"])],
    nodes: &[
        (FUNCTION, &["function_item"]),
        (LAMBDA, &["closure_expression"]),
        (CLASS, &["struct_item", "enum_item", "union_item", "trait_item", "impl_item"]),
        (MODULE, &["mod_item"]),
        (COMMENT, &["line_comment", "block_comment"]),
        (STRING, &["string_literal", "raw_string_literal"]),
        (DECISION, &["match_arm", "try_expression"]),
        (IF_STATEMENT, &["if_expression"]),
        (LOOP, &["for_expression", "while_expression", "loop_expression", "match_expression"]),
        (ELSE_CLAUSE, &["else_clause"]),
        (BINARY, &["binary_expression", "let_chain"]),
        (PARENTHESES, &["parenthesized_expression"]),
        (JUMP, &["break_expression", "continue_expression"]),
        (FIELD, &["field_declaration"]),
        (ATTRIBUTE, &["attribute_item", "inner_attribute_item"]),
        (CALL, &["call_expression"]),
        (NO_PARAMETER, &["self_parameter", "attribute_item"]),
    ],
};

const PYTHON: KindTables = KindTables {
    tokens: &[
        (DECISION, &["if", "elif", "for", "while", "except", "finally", "case"]),
        (LOGIC, &["and", "or"]),
        (ELSE, &["else", "elif"]),
    ],
    nodes: &[
        (FUNCTION, &["function_definition"]),
        (LAMBDA, &["lambda"]),
        (CLASS, &["class_definition"]),
        (COMMENT, &["comment"]),
        (STRING, &["string"]),
        (IF_STATEMENT, &["if_statement"]),
        (LOOP, &["for_statement", "while_statement", "match_statement"]),
        (NESTS, &["try_statement"]),
        (STRUCTURAL, &["except_clause"]),
        (CONDITIONAL, &["conditional_expression"]),
        (BINARY, &["boolean_operator"]),
        (PARENTHESES, &["parenthesized_expression"]),
        (ASSIGNMENT, &["assignment"]),
        (CALL, &["call"]),
        (EXPRESSION_STATEMENT, &["expression_statement"]),
        (NO_PARAMETER, &["keyword_separator", "positional_separator"]),
    ],
};

const JAVASCRIPT: KindTables = KindTables {
    tokens: &[
        (DECISION, &["if", "for", "while", "case", "catch", "??", "&&=", "||=", "??="]),
        (LOGIC, &["&&", "||"]),
        (QUESTION, &["?"]),
        (EQUALS, &["="]),
        (ELSE, &["else"]),
    ],
    nodes: &[
        (
            FUNCTION,
            &[
                "function_declaration",
                "generator_function_declaration",
                "function_expression",
                "generator_function",
                "arrow_function",
                "method_definition",
            ],
        ),
        (CLASS, &["class_declaration", "class"]),
        (COMMENT, &["comment", "html_comment", "hash_bang_line"]),
        (STRING, &["string", "template_string", "jsx_text"]),
        (IF_STATEMENT, &["if_statement"]),
        (LOOP, &["for_statement", "for_in_statement", "while_statement", "do_statement", "switch_statement"]),
        (NESTS, &["try_statement"]),
        (STRUCTURAL, &["catch_clause"]),
        (CONDITIONAL, &["ternary_expression"]),
        (ELSE_CLAUSE, &["else_clause"]),
        (BINARY, &["binary_expression"]),
        (PARENTHESES, &["parenthesized_expression"]),
        (JUMP, &["break_statement", "continue_statement"]),
        (DEFAULTED, &["assignment_pattern", "object_assignment_pattern"]),
        (FIELD, &["field_definition"]),
        (ASSIGNMENT, &["assignment_expression"]),
        (CALL, &["call_expression"]),
    ],
};

const TYPESCRIPT: KindTables = KindTables {
    tokens: JAVASCRIPT.tokens,
    nodes: &[
        (
            FUNCTION,
            &[
                "function_declaration",
                "generator_function_declaration",
                "function_expression",
                "generator_function",
                "arrow_function",
                "method_definition",
            ],
        ),
        (CLASS, &["class_declaration", "class", "abstract_class_declaration"]),
        (COMMENT, &["comment", "html_comment", "hash_bang_line"]),
        (STRING, &["string", "template_string", "jsx_text"]),
        (IF_STATEMENT, &["if_statement"]),
        (LOOP, &["for_statement", "for_in_statement", "while_statement", "do_statement", "switch_statement"]),
        (NESTS, &["try_statement"]),
        (STRUCTURAL, &["catch_clause"]),
        (CONDITIONAL, &["ternary_expression"]),
        (ELSE_CLAUSE, &["else_clause"]),
        (BINARY, &["binary_expression"]),
        (PARENTHESES, &["parenthesized_expression"]),
        (JUMP, &["break_statement", "continue_statement"]),
        (DEFAULTED, &["assignment_pattern", "object_assignment_pattern", "required_parameter", "optional_parameter"]),
        (FIELD, &["public_field_definition"]),
        (ASSIGNMENT, &["assignment_expression"]),
        (CALL, &["call_expression"]),
    ],
};

const GO: KindTables = KindTables {
    tokens: &[(DECISION, &["if", "for", "case"]), (LOGIC, &["&&", "||"]), (ELSE, &["else"])],
    nodes: &[
        (FUNCTION, &["function_declaration", "method_declaration", "func_literal"]),
        (CLASS, &["type_spec"]),
        (COMMENT, &["comment"]),
        (STRING, &["interpreted_string_literal", "raw_string_literal"]),
        (IF_STATEMENT, &["if_statement"]),
        (LOOP, &["for_statement", "expression_switch_statement", "type_switch_statement", "select_statement"]),
        (BINARY, &["binary_expression"]),
        (PARENTHESES, &["parenthesized_expression"]),
        (JUMP, &["break_statement", "continue_statement"]),
        (GOTO, &["goto_statement"]),
        (FIELD, &["field_declaration"]),
        (FIELD_NAME, &["field_identifier"]),
        (CALL, &["call_expression"]),
    ],
};

const JAVA: KindTables = KindTables {
    tokens: &[
        (DECISION, &["if", "for", "while", "case", "catch"]),
        (LOGIC, &["&&", "||"]),
        (QUESTION, &["?"]),
        (ELSE, &["else"]),
    ],
    nodes: &[
        (FUNCTION, &["method_declaration", "constructor_declaration", "compact_constructor_declaration"]),
        (LAMBDA, &["lambda_expression"]),
        (CLASS, &["class_declaration", "interface_declaration", "enum_declaration", "record_declaration"]),
        (COMMENT, &["line_comment", "block_comment"]),
        (STRING, &["string_literal"]),
        (IF_STATEMENT, &["if_statement"]),
        (LOOP, &["for_statement", "enhanced_for_statement", "while_statement", "do_statement", "switch_expression"]),
        (NESTS, &["try_statement", "try_with_resources_statement"]),
        (STRUCTURAL, &["catch_clause"]),
        (CONDITIONAL, &["ternary_expression"]),
        (BINARY, &["binary_expression"]),
        (PARENTHESES, &["parenthesized_expression"]),
        (JUMP, &["break_statement", "continue_statement"]),
        (FIELD, &["field_declaration"]),
        (FIELD_NAME, &["variable_declarator"]),
        (ATTRIBUTE, &["modifiers"]),
        (CALL, &["method_invocation"]),
        (NO_PARAMETER, &["receiver_parameter"]),
    ],
};

const C: KindTables = KindTables {
    tokens: &[
        (DECISION, &["if", "for", "while", "case"]),
        (LOGIC, &["&&", "||"]),
        (QUESTION, &["?"]),
        (ELSE, &["else"]),
    ],
    nodes: &[
        (FUNCTION, &["function_definition"]),
        (COMMENT, &["comment"]),
        (STRING, &["string_literal"]),
        (IF_STATEMENT, &["if_statement"]),
        (LOOP, &["for_statement", "while_statement", "do_statement", "switch_statement"]),
        (CONDITIONAL, &["conditional_expression"]),
        (ELSE_CLAUSE, &["else_clause"]),
        (BINARY, &["binary_expression"]),
        (PARENTHESES, &["parenthesized_expression"]),
        (GOTO, &["goto_statement"]),
        (CALL, &["call_expression"]),
        (NO_PARAMETER, &["variadic_parameter"]),
    ],
};

const CPP: KindTables = KindTables {
    tokens: &[
        (DECISION, &["if", "for", "while", "case", "catch"]),
        (LOGIC, &["&&", "||"]),
        (QUESTION, &["?"]),
        (ELSE, &["else"]),
    ],
    nodes: &[
        (FUNCTION, &["function_definition"]),
        (BLOCK, &["compound_statement"]),
        (LAMBDA, &["lambda_expression"]),
        (CLASS, &["class_specifier", "struct_specifier", "union_specifier"]),
        (COMMENT, &["comment"]),
        (STRING, &["string_literal", "raw_string_literal"]),
        (IF_STATEMENT, &["if_statement"]),
        (LOOP, &["for_statement", "for_range_loop", "while_statement", "do_statement", "switch_statement"]),
        (NESTS, &["try_statement"]),
        (STRUCTURAL, &["catch_clause"]),
        (CONDITIONAL, &["conditional_expression"]),
        (ELSE_CLAUSE, &["else_clause"]),
        (BINARY, &["binary_expression"]),
        (PARENTHESES, &["parenthesized_expression"]),
        (GOTO, &["goto_statement"]),
        (FIELD, &["field_declaration"]),
        (FIELD_NAME, &["field_identifier"]),
        (CALL, &["call_expression"]),
    ],
};

const CSHARP: KindTables = KindTables {
    tokens: &[
        (DECISION, &["if", "for", "foreach", "while", "case", "catch", "??"]),
        (LOGIC, &["&&", "||"]),
        (QUESTION, &["?"]),
        (ELSE, &["else"]),
    ],
    nodes: &[
        (
            FUNCTION,
            &[
                "method_declaration",
                "constructor_declaration",
                "destructor_declaration",
                "operator_declaration",
                "conversion_operator_declaration",
                "local_function_statement",
            ],
        ),
        (LAMBDA, &["lambda_expression", "anonymous_method_expression"]),
        (CLASS, &["class_declaration", "struct_declaration", "interface_declaration", "record_declaration"]),
        (COMMENT, &["comment"]),
        (
            STRING,
            &["string_literal", "verbatim_string_literal", "raw_string_literal", "interpolated_string_expression"],
        ),
        (DECISION, &["switch_expression_arm"]),
        (IF_STATEMENT, &["if_statement"]),
        (
            LOOP,
            &[
                "for_statement",
                "foreach_statement",
                "while_statement",
                "do_statement",
                "switch_statement",
                "switch_expression",
            ],
        ),
        (NESTS, &["try_statement"]),
        (STRUCTURAL, &["catch_clause"]),
        (CONDITIONAL, &["conditional_expression"]),
        (BINARY, &["binary_expression"]),
        (PARENTHESES, &["parenthesized_expression"]),
        (GOTO, &["goto_statement"]),
        (FIELD, &["field_declaration"]),
        (FIELD_NAME, &["variable_declarator"]),
        (ATTRIBUTE, &["attribute_list"]),
        (CALL, &["invocation_expression"]),
        (NO_PARAMETER, &["attribute_list"]),
    ],
};

const RUBY: KindTables = KindTables {
    tokens: &[
        (DECISION, &["if", "unless", "elsif", "while", "until", "for", "rescue", "ensure", "when"]),
        (LOGIC, &["&&", "||", "and", "or"]),
        (QUESTION, &["?"]),
        (ELSE, &["else", "elsif"]),
    ],
    nodes: &[
        (FUNCTION, &["method", "singleton_method"]),
        (LAMBDA, &["block", "do_block", "lambda"]),
        (CLASS, &["class", "module"]),
        (COMMENT, &["comment"]),
        (STRING, &["string", "heredoc_body", "string_array", "symbol_array"]),
        (DECISION, &["in_clause"]),
        (IF_STATEMENT, &["if"]),
        (LOOP, &["unless", "while", "until", "for", "case", "case_match"]),
        (
            STRUCTURAL,
            &["rescue", "if_modifier", "unless_modifier", "while_modifier", "until_modifier", "rescue_modifier"],
        ),
        (CONDITIONAL, &["conditional"]),
        (NO_ELSE, &["case", "case_match", "begin", "body_statement"]),
        (BINARY, &["binary"]),
        (PARENTHESES, &["parenthesized_statements"]),
        (ASSIGNMENT, &["assignment"]),
        (CALL, &["call"]),
    ],
};

const PHP: KindTables = KindTables {
    tokens: &[
        (DECISION, &["if", "elseif", "for", "foreach", "while", "case", "catch", "??"]),
        (LOGIC, &["&&", "||", "and", "or"]),
        (QUESTION, &["?"]),
        (ELSE, &["else", "elseif"]),
    ],
    nodes: &[
        (FUNCTION, &["function_definition", "method_declaration"]),
        (LAMBDA, &["anonymous_function", "arrow_function"]),
        (CLASS, &["class_declaration", "trait_declaration", "interface_declaration", "enum_declaration"]),
        (COMMENT, &["comment"]),
        (STRING, &["string", "encapsed_string", "heredoc", "nowdoc"]),
        (DECISION, &["match_conditional_expression"]),
        (IF_STATEMENT, &["if_statement"]),
        (
            LOOP,
            &[
                "for_statement",
                "foreach_statement",
                "while_statement",
                "do_statement",
                "switch_statement",
                "match_expression",
            ],
        ),
        (NESTS, &["try_statement"]),
        (STRUCTURAL, &["catch_clause"]),
        (CONDITIONAL, &["conditional_expression"]),
        (ELSE_CLAUSE, &["else_clause"]),
        (BINARY, &["binary_expression"]),
        (PARENTHESES, &["parenthesized_expression"]),
        (JUMP, &["break_statement", "continue_statement"]),
        (GOTO, &["goto_statement"]),
        (FIELD, &["property_declaration"]),
        (FIELD_NAME, &["property_element"]),
        (CALL, &["function_call_expression", "member_call_expression", "scoped_call_expression"]),
    ],
};

const BASH: KindTables = KindTables {
    tokens: &[
        (DECISION, &["if", "elif", "for", "while", "until", "select"]),
        (LOGIC, &["&&", "||"]),
        (ELSE, &["else", "elif"]),
    ],
    nodes: &[
        (FUNCTION, &["function_definition"]),
        (COMMENT, &["comment"]),
        (STRING, &["string", "raw_string", "heredoc_body", "ansi_c_string"]),
        (DECISION, &["case_item"]),
        (IF_STATEMENT, &["if_statement"]),
        (LOOP, &["for_statement", "c_style_for_statement", "while_statement", "case_statement"]),
        (BINARY, &["list", "binary_expression"]),
        (PARENTHESES, &["parenthesized_expression"]),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_table_exists_in_its_grammar() {
        for language in Language::ALL {
            let grammar = language.grammar();
            let tables = kind_tables(language);
            for (table, named) in [(tables.tokens, false), (tables.nodes, true)] {
                for name in table.iter().flat_map(|(_, names)| names.iter()) {
                    assert_ne!(grammar.id_for_node_kind(name, named), 0, "{language:?} has no {name:?}");
                }
            }
        }
    }
}
