//! What several smells need to know about a file: its functions and classes, with their figures.

use super::source::NodeIndex;

/// A function, method, closure with a name, or the like. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub node: NodeIndex,
    /// With the enclosing classes: `Parser.parse`.
    pub name: String,
    pub line_start: u32,
    pub line_end: u32,
    /// Code lines: neither blank nor comment.
    pub nloc: u32,
    pub cyclomatic: u32,
    pub cognitive: u32,
    pub parameters: u32,
    pub nesting: u32,
    /// The class it stands in.
    pub class: Option<usize>,
    /// The function it stands in.
    pub outer: Option<usize>,
    pub is_test: bool,
}

/// A class, struct with methods, trait, interface or module that holds functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    pub node: NodeIndex,
    pub name: String,
    pub line_start: u32,
    pub line_end: u32,
    pub nloc: u32,
    pub methods: u32,
    pub fields: u32,
}

/// The facts of one file.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// In document order.
    pub functions: Vec<Function>,
    pub classes: Vec<Class>,
    /// For every node the innermost function it stands in; `NONE` outside of functions.
    pub function_of: Vec<u32>,
    /// The whole file is test code, by its path or its content.
    pub is_test_file: bool,
}

impl Facts {
    pub const NONE: u32 = u32::MAX;

    /// The innermost function around a node.
    pub fn function_at(&self, node: NodeIndex) -> Option<&Function> {
        self.functions.get(*self.function_of.get(node)? as usize)
    }
}
