//! Functions and classes of a file with their metrics, shared by several smells.

use super::definition;
use super::language::Language;
use super::source::{NodeIndex, ParsedFile};

/// A function, a method or a listed closure, with its metrics. Lines are 1-based and inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub node: NodeIndex,
    /// Name with the enclosing class: `Parser.parse`. `(anonymous)` for a listed closure without a name.
    pub name: String,
    pub line_start: u32,
    pub line_end: u32,
    /// Number of code lines: lines that are neither blank nor comment.
    pub nloc: u32,
    pub cyclomatic: u32,
    pub cognitive: u32,
    pub parameters: u32,
    pub nesting: u32,
    /// Index in [`FileFacts::classes`] of the class around it.
    pub class: Option<usize>,
    /// Index in [`FileFacts::functions`] of the function around it.
    pub outer: Option<usize>,
    pub is_test: bool,
}

/// A class, a struct with methods, a trait, an interface or a module with functions. Lines are 1-based and inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    pub node: NodeIndex,
    pub name: String,
    pub line_start: u32,
    pub line_end: u32,
    pub nloc: u32,
    pub methods: u32,
    pub fields: u32,
    pub is_test: bool,
}

/// Functions, classes and test code of one file.
#[derive(Debug, Clone, Default)]
pub struct FileFacts {
    /// In document order.
    pub functions: Vec<Function>,
    pub classes: Vec<Class>,
    /// For every node, the index of the innermost function around it; [`FileFacts::NO_FUNCTION`] outside of functions.
    pub innermost_function: Vec<u32>,
    /// Parts of the file that are test code as a whole, such as `#[cfg(test)] mod`: ranges of node indices, end
    /// exclusive, in document order and without overlaps.
    pub test_ranges: Vec<(u32, u32)>,
    /// True if the path says that the whole file is test code.
    pub is_test_file: bool,
}

impl FileFacts {
    /// Function index of a node outside of functions.
    pub const NO_FUNCTION: u32 = u32::MAX;

    /// Collects the facts of a parsed file in one pass.
    pub fn from_parsed(source: &ParsedFile<'_>) -> Self {
        super::metrics::collect_facts(source)
    }

    /// Returns the innermost function around a node.
    pub fn function_at(&self, node: NodeIndex) -> Option<&Function> {
        self.functions.get(*self.innermost_function.get(node)? as usize)
    }

    /// Returns whether a node is test code: in a test file, a test function or a test range.
    pub fn is_test_at(&self, node: NodeIndex) -> bool {
        if self.is_test_file || self.function_at(node).is_some_and(|function| function.is_test) {
            return true;
        }
        let node = node as u32;
        let after = self.test_ranges.partition_point(|&(start, _)| start <= node);
        after.checked_sub(1).and_then(|last| self.test_ranges.get(last)).is_some_and(|&(_, end)| node < end)
    }
}

/// Returns the name of the innermost function with a name around a line (1-based), unless a title says it: `Parser.parse`.
/// `functions` are all functions of a file, in document order. A function around the line is the last one that has begun, or one
/// around that: so only those are looked at, however many the file has.
pub fn symbol_around<'f>(functions: &'f [Function], line: u32, title: &str) -> Option<&'f str> {
    let begun = functions.partition_point(|function| function.line_start <= line);
    let outer = |at: &usize| functions.get(*at)?.outer.filter(|outer| outer < at);
    let mut candidates = std::iter::successors(begun.checked_sub(1), outer).filter_map(|at| functions.get(at));
    let is_around = |function: &&Function| function.line_end >= line && !function.name.starts_with('(');
    let name = candidates.find(is_around)?.name.as_str();
    (!title.contains(&format!("`{name}`"))).then_some(name)
}

/// Extensions of code files that have no parser here.
const CODE_EXTENSIONS: [&str; 65] = [
    "asm", "astro", "clj", "cljc", "cljs", "cmake", "coffee", "cr", "cu", "cuh", "d", "dart", "el", "elm", "erl", "ex",
    "exs", "f90", "fs", "fsx", "glsl", "gql", "gradle", "graphql", "groovy", "hlsl", "hrl", "hs", "jl", "kt", "kts",
    "lisp", "lua", "m", "metal", "ml", "mli", "mm", "move", "nim", "nix", "pas", "pl", "pm", "proto", "ps1", "purs",
    "r", "rkt", "s", "scala", "scm", "sol", "sql", "sv", "svelte", "swift", "tcl", "tf", "thrift", "v", "vhd", "vue",
    "wgsl", "zig",
];

/// Returns true if the path is that of a code file.
pub fn is_code_path(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    Language::detect(path, b"").is_some() || CODE_EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str())
}

/// Returns whether a path is one of test code, by its file name or one of its folders: `tests/`, `test_x.py`,
/// `x_test.go`, `x.spec.ts`, `XTest.java`, `x_spec.rb`, `x.unittest.cpp`, `testutil.rs`, `__tests__/`. Folders of
/// benchmarks and fixtures count too.
pub fn is_test_path(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let name = parts.next().unwrap_or(path);
    if parts.any(|folder| {
        matches!(
            folder,
            "test"
                | "tests"
                | "__tests__"
                | "__mocks__"
                | "spec"
                | "specs"
                | "testdata"
                | "test_data"
                | "test-data"
                | "testing"
                | "testutil"
                | "testutils"
                | "test_util"
                | "test_utils"
                | "test-util"
                | "test-utils"
                | "fixture"
                | "fixtures"
                | "__fixtures__"
                | "unittest"
                | "benches"
                | "e2e"
                | "cypress"
                | "unittests"
                | "unit_tests"
                | "integration_tests"
        )
    }) {
        return true;
    }
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    if matches!(
        stem,
        "test"
            | "tests"
            | "conftest"
            | "test_helper"
            | "spec_helper"
            | "testutil"
            | "testutils"
            | "test_util"
            | "test_utils"
            | "unittest"
            | "unittests"
    ) || stem.split(['.', '_', '-']).any(|part| matches!(part, "unittest" | "unittests"))
    {
        return true;
    }
    let lower_parts =
        |marks: &[&str]| marks.iter().any(|mark| stem.strip_suffix(mark).is_some_and(|rest| !rest.is_empty()));
    stem.starts_with("test_")
        || stem.starts_with("test-")
        || lower_parts(&["_test", "_tests", "_spec", "-test", "-spec", ".test", ".spec", "_testutil", "_test_util"])
        || Language::from_extension(extension).is_some_and(|language| {
            let head = definition::head(language);
            let marks: Vec<&str> = head.test_files.iter().map(String::as_str).collect();
            let mut folders = path.split('/').rev().skip(1);
            lower_parts(&marks) || folders.any(|folder| head.test_folders.iter().any(|mark| folder.ends_with(&**mark)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::language::Language;
    use crate::syntax::source::Parsers;

    #[test]
    fn test_blocks_inside_of_each_other_are_one() {
        let code = "describe('a', () => { it('b', () => { f(1) }); g(2) });\nh(3);\nit('c', () => { k(4) });\n";
        let source = Parsers::default().parse("a.js", Language::JavaScript, code.as_bytes()).expect("parses");
        let facts = FileFacts::from_parsed(&source);
        assert_eq!(facts.test_ranges.len(), 2);
        let is_test = |text: &str| {
            let at = (0..source.nodes.len()).find(|&at| source.text(&source.nodes[at]) == text);
            facts.is_test_at(at.expect("a node"))
        };
        assert_eq!(["1", "2", "3", "4"].map(is_test), [true, true, false, true]);
    }

    #[test]
    fn the_function_around_a_line_is_found_without_a_look_at_those_before_it() {
        let block =
            |name: usize| format!("def f{name}():\n    def g{name}():\n        a()\n    b()\n    h(lambda: c())\n\n");
        let code: String = (0..30).map(block).collect();
        let source = Parsers::default().parse("a.py", Language::Python, code.as_bytes()).expect("parses");
        let functions = FileFacts::from_parsed(&source).functions;
        for line in 1..=code.lines().count() as u32 {
            let has_name = |function: &&Function| !function.name.starts_with('(');
            let mut around =
                functions.iter().filter(|function| (function.line_start..=function.line_end).contains(&line));
            let innermost = around.rfind(has_name).map(|function| function.name.as_str());
            assert_eq!(symbol_around(&functions, line, ""), innermost, "{line}");
        }
        // Functions that are not around it have no say: the first one claims to end with the file.
        let mut functions = functions;
        functions[0].line_end = 180;
        assert_eq!(symbol_around(&functions, 180, ""), None);
    }

    #[test]
    fn test_files_are_known_by_their_paths() {
        for path in [
            "tests/it/main.rs",
            "src/parser/tests.rs",
            "test_views.py",
            "pkg/conftest.py",
            "router_test.go",
            "src/app.spec.ts",
            "src/App.test.tsx",
            "src/test/java/org/x/Helper.java",
            "FooTest.java",
            "FooTests.cs",
            "spec/models/user_spec.rb",
            "web/__tests__/a.js",
            "testdata/x.c",
            "crates/searcher/src/testutil.rs",
            "crates/searcher/src/testutil/mod.rs",
            "net/test_util.h",
            "net/url_test_util.cc",
            "base/files.unittest.cc",
            "base/files_unittest.cc",
            "base/files.unittest.in.cc",
            "web/fixtures/user.rb",
            "pkg/testdata/a/b.go",
        ] {
            assert!(is_test_path(path), "{path}");
        }
        for path in [
            "src/main.rs",
            "latest.py",
            "contest.go",
            "src/attestation/a.ts",
            "Test.java.rs",
            "testify.go",
            "src/Testament.java",
            "src/testutility.rs",
            "src/fixtures.py",
        ] {
            assert!(!is_test_path(path), "{path}");
        }
    }
}
