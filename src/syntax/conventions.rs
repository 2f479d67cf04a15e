//! Habits of a language that its grammar does not show: the section `conventions` of each language's file.

use serde::Deserialize;

use super::definition;
use super::language::Language;
use crate::domain::Confidence;

/// Names, texts and switches for the readers of syntax trees.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Conventions {
    /// Lines before and after a part of a file with which that part may parse, in the order of the attempts; empty for a
    /// part that parses alone.
    pub wrappers: Vec<[String; 2]>,
    /// True if white space at the beginning of a line has a meaning.
    pub meaningful_indentation: bool,
    /// Beginnings of a member of the object itself: `this.`. An empty text stands for any target.
    pub own_members: Vec<String>,
    /// True if a constructor may give a member its value by its bare name.
    pub bare_members: bool,
    /// Names of functions that make an object; empty if the syntax tells them.
    pub constructors: Vec<String>,
    /// True if only a constructor gives members their first values, and no declaration does.
    pub members_only_in_constructors: bool,
    /// True if a call of a class makes an object: `Shop()`.
    pub objects_by_calls: bool,
    /// Nodes that name a member and no variable, as the kind of their parent and their field.
    pub member_names: Vec<[String; 2]>,
    /// True if attributes are children of the declaration that they describe.
    pub attributes_inside: bool,
    /// Kinds of declarations whose only object holds their members.
    pub singletons: Vec<String>,
    /// Modifiers of a member that exists once for all objects.
    pub static_words: Vec<String>,
    /// Beginnings of values that hold others and can change, such as `mutableListOf`.
    pub mutable_values: Vec<String>,
    /// True if what follows the dot may be a variable: a function that is called on a receiver.
    pub members_may_be_variables: bool,
    /// True if a member of a number names its unit: `30.seconds`.
    pub units_follow_numbers: bool,
    /// True if `values(5)` may be the item of a collection.
    pub indices_look_like_calls: bool,
    /// Functions whose arguments are the items of a collection.
    pub collection_calls: Vec<String>,
    /// Beginnings of the names of test classes.
    pub test_classes: Vec<String>,
    /// Texts in the head of a test class, such as the name of its base.
    pub test_bases: Vec<String>,
    /// Attributes and annotations of test code.
    pub test_attributes: Vec<String>,
    pub test_attribute_form: TestAttributeForm,
    /// Text that stands for a removed body between its braces, if the usual comment is none in this language.
    pub body_mark_in_braces: Option<String>,
    /// Text that stands for a removed body without braces; `None` if such a body stays.
    pub body_mark: Option<String>,
    /// True if nothing may follow [`Self::body_mark`] on its line.
    pub body_mark_ends_line: bool,
    /// True if a string in a body documents it and is no code.
    pub body_may_be_text: bool,
    pub module_variables: ModuleVariableForm,
    pub private_functions: PrivateFunctions,
}

/// Rules for functions that nothing outside of their file can call; empty for a language whose modifiers do not tell.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrivateFunctions {
    /// Modifiers of which one makes a function private.
    pub words: Vec<String>,
    /// Modifiers of functions that others call all the same.
    pub called_words: Vec<String>,
    /// Texts among the modifiers of such functions, such as the sign of an annotation.
    pub called_texts: Vec<String>,
    /// Names of functions that a runtime calls.
    pub called_names: Vec<String>,
    /// Beginnings of such names.
    pub called_prefixes: Vec<String>,
    /// Confidence that a private function without a use in its file is unused.
    pub confidence: Confidence,
}

impl Default for PrivateFunctions {
    fn default() -> Self {
        Self {
            words: Vec::new(),
            called_words: Vec::new(),
            called_texts: Vec::new(),
            called_names: Vec::new(),
            called_prefixes: Vec::new(),
            confidence: Confidence::High,
        }
    }
}

/// How an attribute tells that it marks test code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestAttributeForm {
    /// One of its words is listed.
    #[default]
    Word,
    /// It contains a listed text, after which a short one must end.
    Prefix,
    /// The last name of its path is listed, or it is a `cfg` for tests.
    Path,
}

/// How a language declares the variables that outlive calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModuleVariableForm {
    /// It has none.
    #[default]
    None,
    /// `static mut`.
    StaticMut,
    /// An assignment outside of classes and functions.
    Assignments,
    /// An assignment of a shell script that belongs to no command.
    ShellAssignments,
    /// `let` and `const` at the top of a script.
    ScriptDeclarations,
    /// A declaration that lists its names.
    ListedNames,
    /// Fields with the modifier `static`.
    StaticFields,
    /// C declarators at file scope.
    Declarators,
    /// Properties outside of objects, or of the only object of its kind.
    Properties,
    /// Names with a sigil: `$x`, `@@x`.
    Sigils,
    /// `global $x`, and properties with the modifier `static`.
    GlobalStatements,
}

/// Returns the conventions of a language.
pub fn conventions(language: Language) -> &'static Conventions {
    &definition::sections(language).conventions
}
