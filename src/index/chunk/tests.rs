use proptest::prelude::*;
use rstest::rstest;

use super::*;

/// Piece of a cut file with the names that it declares and uses; lines are 1-based.
#[derive(Debug)]
struct CutSample {
    lines: LineRange,
    kind: ChunkKind,
    name: String,
    parent: String,
    exports: Vec<String>,
    references: Vec<String>,
    outline: Vec<LineRange>,
}

fn cut_pieces(path: &str, code: &str) -> Vec<CutSample> {
    let cut = cut_text(&mut Parsers::default(), path, code, Language::detect(path, code.as_bytes()));
    let starts = line_starts(code);
    let mut uses = cut.uses.names.iter().peekable();
    let mut sample = |piece: &CutPiece<'_>| {
        let mut references: Vec<String> = Vec::new();
        let end = starts.get(piece.rows.1 as usize + 1).map_or(code.len(), |end| *end);
        while piece.kind != ChunkKind::Summary
            && let Some((_, name)) = uses.next_if(|(at, _)| (*at as usize) < end)
        {
            references.push((*name).to_owned());
        }
        CutSample {
            lines: lines::to_line_range(piece.rows),
            kind: piece.kind,
            name: piece.name.to_owned(),
            parent: piece.parent.to_owned(),
            exports: piece.exports.iter().map(|name| (*name).to_owned()).collect(),
            references,
            outline: piece.outline.iter().copied().map(lines::to_line_range).collect(),
        }
    };
    cut.pieces.iter().map(&mut sample).collect()
}

/// Returns the byte offset of each line.
fn line_starts(text: &str) -> Vec<usize> {
    text.split_inclusive('\n').scan(0, |at, line| Some(std::mem::replace(at, *at + line.len()))).collect()
}

fn cut_file(path: &str, code: &str) -> Vec<CutSample> {
    let found = cut_pieces(path, code);
    covers(code, &found).unwrap_or_else(|wrong| panic!("{path}: {wrong}"));
    found
}

/// Returns the text of the lines of the ranges.
fn text_of_lines(text: &str, ranges: &[LineRange]) -> String {
    let is_wanted = |line: u32| ranges.iter().any(|range| (range.start..=range.end).contains(&line));
    let lines = text.split_inclusive('\n').zip(1..).filter(|(_, number)| is_wanted(*number));
    lines.map(|(line, _)| line).collect()
}

/// Checks that the chunks without summaries cover all lines in order.
fn covers(text: &str, chunks: &[CutSample]) -> Result<(), String> {
    let mut next = 1;
    for chunk in chunks.iter().filter(|chunk| chunk.kind != ChunkKind::Summary) {
        if chunk.lines.start != next {
            return Err(format!("line {next} is followed by {chunk:?}"));
        }
        next = chunk.lines.end + 1;
    }
    match next == line_starts(text).len() as u32 + 1 {
        true => Ok(()),
        false => Err(format!("line {next} is not the end of {text:?}")),
    }
}

/// Formats chunks as `start-end kind parent.name`.
fn said(chunks: &[CutSample]) -> Vec<String> {
    let said = |chunk: &CutSample| {
        let dot = if chunk.parent.is_empty() { "" } else { "." };
        let name = format!("{}{dot}{}", chunk.parent, chunk.name);
        format!("{}-{} {} {name}", chunk.lines.start, chunk.lines.end, chunk.kind).trim_end().to_owned()
    };
    chunks.iter().map(said).collect()
}

#[rstest]
#[case::rust(
    "src/a.rs",
    "use a::{b, c::D};\nmod e;\n\n/// Of f.\n#[derive(Debug)]\nstruct F { g: u8 }\n\nimpl F {\n    fn h(&self) {}\n}\n\nconst I: u8 = 1;\n\ntrait J { fn k(); }\n\nfn l(m: u8) -> u8 {\n    m\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn n() {}\n}\n",
    &["1-3 module", "4-7 type F", "8-11 class F", "12-13 constant I", "14-15 interface J", "16-19 function l", "20-23 module", "24-26 test tests.n"],
)]
#[case::python(
    "a.py",
    "import os\nfrom .b import c\n\nLIMIT = 1\n\n@d\ndef e():\n    pass\n\n\nclass F(Protocol):\n    x: int = 1\n\nclass G:\n    # Of h.\n    def h(self):\n        pass\n\nif __name__ == '__main__':\n    e()\n",
    &["1-3 module", "4-5 constant LIMIT", "6-10 function e", "11-13 interface F", "14-18 class G", "19-20 module"],
)]
#[case::javascript(
    "a.js",
    "const a = require('./b');\n\nexport const C = 1;\n\n// Of d.\nexport const d = async () => {\n  a();\n};\n\nmodule.exports.e = function () {};\n\nclass F {\n  g() {}\n}\n",
    &["1-2 constant a", "3-4 constant C", "5-9 function d", "10-11 function e", "12-14 class F"],
)]
#[case::typescript(
    "a.ts",
    "import { x } from 'y';\n\nexport interface A { b: string }\n\ntype C = A | null;\n\nexport default class D {\n  e = () => { x(); };\n}\n\nenum F { G }\n\nnamespace H {\n  export function i() {}\n}\n",
    &["1-2 module", "3-4 interface A", "5-6 type C", "7-10 class D", "11-12 type F", "13-13 module", "14-15 function H.i"],
)]
#[case::test_blocks(
    "a.spec.ts",
    "import { x } from 'y';\n\ndescribe('a thing', () => {\n  it('works', () => {\n    x();\n  });\n});\n",
    &["1-2 module", "3-7 test a thing"],
)]
#[case::go(
    "a.go",
    "package a\n\nimport (\n\t\"fmt\"\n\tb \"c/d\"\n)\n\nconst (\n\tE = 1\n\tF\n)\n\n// G is.\ntype G struct {\n\tH int\n}\n\ntype I interface { J() }\n\nfunc (g *G) K() {}\n\nfunc l() {}\n",
    &["1-7 module", "8-12 constant", "13-17 type G", "18-19 interface I", "20-21 function G.K", "22-22 function l"],
)]
#[case::java(
    "A.java",
    "package a;\n\nimport b.C;\n\n/** Of A. */\npublic class A {\n  int d;\n  void e() {}\n}\n\ninterface F { void g(); }\n\nenum H { I }\n",
    &["1-4 module", "5-10 class A", "11-12 interface F", "13-13 type H"],
)]
#[case::c(
    "a.c",
    "#include <stdio.h>\n#include \"a.h\"\n\n#define B 1\n#define C(x) x\n\ntypedef struct d {\n    int e;\n} d_t;\n\nstatic int f(void);\n\nint *g(int h)\n{\n    return 0;\n}\n",
    &["1-3 module", "4-6 constant B", "7-10 type d_t", "11-12 module", "13-16 function g"],
)]
#[case::c_header(
    "a.h",
    "#ifndef A_H\n#define A_H\n\n#include <b.h>\n\n#if defined(C) && \\\n    D\n/* Of d. */\nint d(void)\n{\n    return 1;\n}\n#else // !C\n#define d() 0\n#endif\n\ntypedef int (e)(void);\n\nint f(void);\n# endif /* A_H */\n",
    &["1-3 constant A_H", "4-5 module", "6-13 function d", "14-16 constant d", "17-18 type e", "19-20 module"],
)]
#[case::cpp(
    "a.cpp",
    "#include <b>\nnamespace c {\n\nclass D;\n\ntemplate <typename T>\nclass E {\n  int f() { return 1; }\n};\n\nvoid E::g() {\n}\n\n}\n",
    &["1-5 module", "6-10 class c.E", "11-14 function E.g"],
)]
#[case::csharp(
    "A.cs",
    "using System;\n\nnamespace B\n{\n    public class C\n    {\n        public int D { get; set; }\n        void E() { }\n    }\n\n    interface F { }\n\n    enum G { H }\n}\n",
    &["1-4 module", "5-10 class B.C", "11-12 interface B.F", "13-14 type B.G"],
)]
#[case::ruby(
    "a.rb",
    "require 'b'\n\nmodule C\n  D = 1\n\n  # Of e.\n  class E < F\n    def g; end\n  end\n\n  def self.h\n  end\nend\n",
    &["1-3 module", "4-5 constant C.D", "6-10 class C.E", "11-13 function C.h"],
)]
#[case::ruby_tests(
    "a_spec.rb",
    "require 'b'\n\ndescribe 'C' do\n  it 'works' do\n  end\nend\n",
    &["1-2 module", "3-6 test C"],
)]
#[case::php(
    "a.php",
    "<?php\n\nnamespace A;\n\nuse B\\C;\n\ninterface D {}\n\nclass E\n{\n    function f() {}\n}\n\nfunction g() {}\n",
    &["1-6 module", "7-8 interface D", "9-13 class E", "14-14 function g"],
)]
#[case::bash("a.sh", "#!/bin/sh\n. ./b.sh\n\n# Of c.\nc() {\n  echo\n}\n\nc\n", &["1-3 module", "4-8 function c", "9-9 module"])]
#[case::no_declarations("a.py", "print(1)\n\nprint(2)\n", &["1-3 module"])]
#[case::unknown_language("a.md", "# A\n\nb\n", &["1-3 window"])]
#[case::settings("a.toml", "[a]\n\nb = 1\n", &["1-3 config"])]
#[case::broken("a.java", "]] }} (( <> ;; @@ ## $$ %% ^^ && ** !! ~~ ``\n)) {{ [[ \"\n", &["1-2 window"])]
#[case::blank("a.rs", "\n\n", &["1-2 module"])]
#[case::empty("a.rs", "", &[])]
#[case::two_on_a_line("a.rs", "fn a() {} fn b() {}\nfn c() {}", &["1-1 function a", "2-2 function c"])]
#[case::blank_first("a.rs", "\n\nfn a() {}\n", &["1-3 function a"])]
fn files_are_cut_along_their_declarations(#[case] path: &str, #[case] code: &str, #[case] expected: &[&str]) {
    assert_eq!(said(&cut_file(path, code)), expected);
}

#[test]
fn a_long_class_is_a_summary_and_its_methods() {
    let body = "        let total = self.first + self.second * 42;\n".repeat(60);
    let method =
        |name: &str| format!("    /// Of {name}.\n    fn {name}(&self) -> usize {{\n{body}        total\n    }}\n\n");
    let code = format!(
        "impl Long {{\n    const LIMIT: usize = 1;\n\n{}{}{}}}\n\nfn after() {{}}\n",
        method("first"),
        method("second"),
        method("third")
    );
    let found = cut_file("a.rs", &code);
    assert_eq!(
        said(&found),
        [
            "1-200 summary Long",
            "1-3 class Long.",
            "4-68 function Long.first",
            "69-133 function Long.second",
            "134-200 function Long.third",
            "201-201 function after",
        ]
    );
    let outline = "impl Long {\n    const LIMIT: usize = 1;\n    fn first(&self) -> usize {\n    fn second(&self) -> usize {\n    fn third(&self) -> usize {\n";
    assert_eq!(text_of_lines(&code, &found[0].outline), outline);
    assert_eq!(found[2].exports, ["first"]);
    assert_eq!(found[1].exports, ["LIMIT"]);
}

#[test]
fn a_long_function_is_a_summary_and_windows() {
    let code = format!("def f(a):\n{}", "    a.total = a.first + a.second * 42 # as it was\n".repeat(200));
    let found = cut_file("a.py", &code);
    assert_eq!(said(&found), ["1-201 summary f", "1-80 window f.", "81-160 window f.", "161-201 window f."]);
    assert_eq!(found[0].exports, ["f"]);
    assert_eq!(text_of_lines(&code, &found[0].outline), "def f(a):\n");
}

#[rstest]
#[case("a.rs", "use a::b::{self, c as d, e::*};\npub(crate) use f::g;\nextern crate h;\nmod i;\n", &["a::b", "a::b::c", "a::b::e", "f::g", "h", "self::i"])]
#[case("a.py", "import a.b as c, d\nfrom .e import f, g as h\nfrom . import i\nfrom j import *\n", &["a.b", "d", ".e.f", ".e.g", ".i", "j"])]
#[case("a.ts", "import a from './b';\nimport * as c from \"d\";\nexport * from './e';\nconst f = require('g');\nconst h = await import('./i');\n", &["./b", "d", "./e", "g", "./i"])]
#[case("a.go", "package a\nimport \"b/c\"\nimport (\n\td \"e\"\n)\n", &["b/c", "e"])]
#[case("A.java", "import a.b.C;\nimport static d.E.*;\n", &["a.b.C", "d.E"])]
#[case("a.c", "#include <a/b.h>\n#include \"c.h\"\n", &["a/b.h", "c.h"])]
#[case("A.cs", "using A.B;\nusing C = D.E;\nusing static F.G;\n", &["A.B", "D.E", "F.G"])]
#[case("a.rb", "require 'a/b'\nrequire_relative 'c'\nautoload :D, 'e'\n", &["a/b", "./c", "e"])]
#[case("a.php", "<?php\nuse A\\B;\nuse C\\{D, E as F};\nrequire __DIR__ . '/g.php';\n", &["A\\B", "C\\D", "C\\E", "g.php"])]
#[case("a.sh", "source a.sh\n. \"b.sh\"\n", &["a.sh", "b.sh"])]
fn imports_are_one_for_each_thing(#[case] path: &str, #[case] code: &str, #[case] expected: &[&str]) {
    let cut = cut_text(&mut Parsers::default(), path, code, Language::detect(path, code.as_bytes()));
    assert_eq!(cut.uses.imports, expected);
    assert_eq!(parse_syntax(&mut Parsers::default(), path, code).imports[..], *expected);
}

#[test]
fn names_that_are_declared_and_used() {
    let code = "struct Point { width: u8 }\n\nfn area(point: &Point) -> usize {\n    let side = point.width;\n    square(side)\n}\n";
    let found = cut_file("a.rs", code);
    assert_eq!(found[0].exports, ["Point", "width"]);
    assert_eq!(found[1].exports, ["area"]);
    for name in ["Point", "point", "width", "square"] {
        assert!(found[1].references.iter().any(|reference| reference == name), "{name}: {:?}", found[1].references);
    }
    let prose = cut_file("a.md", "The parse_all of Parser calls run() and getName, not this.\n");
    assert_eq!(prose[0].references, ["parse_all", "run", "getName"]);
}

#[test]
fn small_constants_that_stand_together_are_one_chunk() {
    let code = "#define A 1\n#define B 2\n#define C 3\n\n#define D 4\n";
    let found = cut_file("a.h", code);
    assert_eq!(said(&found), ["1-4 constant A", "5-5 constant D"]);
    assert_eq!(found[0].exports, ["A", "B", "C"]);
}

#[test]
fn lines_of_a_megabyte_and_nesting_cost_no_square() {
    let long = "x".repeat(1 << 20);
    for (path, code) in [
        ("a.js", format!("var a = '{long}';\nfunction b() {{}}\n")),
        ("a.min.js", "function a(b){return b+1}".repeat(40_000)),
        ("a.json", format!("[{}]", "1,".repeat(500_000))),
        ("a.rs", "mod a { ".repeat(20_000) + &"}".repeat(20_000)),
        ("a.java", "class A {\n".repeat(5_000) + &"}\n".repeat(5_000)),
        ("a.txt", "word_of ".repeat(130_000)),
        ("a.ts", "import {a} from 'b'\n".repeat(20_000)),
    ] {
        let found = cut_file(path, &code);
        assert!(!found.is_empty(), "{path}");
    }
}

/// Generates valid and broken code in many languages.
fn code() -> impl Strategy<Value = (&'static str, String)> {
    const PARTS: [&str; 24] = [
        "fn a() {\n",
        "}\n",
        "\n",
        "class B {\n",
        "  int c;\n",
        "def d(e):\n",
        "    return e\n",
        "end\n",
        "// of f\n",
        "# of g\n",
        "import h\n",
        "const I = 1;\n",
        "struct J { k: u8 }\n",
        "impl J {\n",
        "\"",
        "'",
        "/*",
        "*/",
        "public void l() { }\n",
        "x",
        "é\r\n",
        "it('m', () => {\n",
        "});\n",
        "#if N\n",
    ];
    let paths = prop::sample::select(vec![
        "a.rs", "a.py", "a.js", "a.ts", "a.tsx", "a.go", "A.java", "a.c", "a.cpp", "A.cs", "a.rb", "a.php", "a.sh",
        "a.md",
    ]);
    let long = (prop::sample::select(PARTS.to_vec()), 1usize..200).prop_map(|(part, count)| part.repeat(count));
    let part = prop_oneof![6 => prop::sample::select(PARTS.to_vec()).prop_map(str::to_owned), 1 => long];
    (paths, prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat()))
}

#[test]
fn an_outline_is_within_its_chunk() {
    let text = "int a() {\n    return 1;\n} int b(int x,\n    int y) {\n    return 2;\n}\n";
    let chunks = cut_pieces("a.c", text);
    assert!(chunks.iter().any(|chunk| chunk.name == "b" && !chunk.outline.is_empty()), "{chunks:#?}");
    for chunk in &chunks {
        let is_within = |range: &LineRange| range.start >= chunk.lines.start && range.end <= chunk.lines.end;
        assert!(chunk.outline.iter().all(is_within), "{chunk:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_lost_and_none_is_twice((path, code) in code()) {
        let found = cut_pieces(path, &code);
        if let Err(wrong) = covers(&code, &found) {
            return Err(TestCaseError::fail(wrong));
        }
    }
}
