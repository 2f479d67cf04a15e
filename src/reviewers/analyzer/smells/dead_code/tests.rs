use super::*;
use crate::reviewers::analyzer::smells::tests::find_smells;

/// Returns the titles of the smells, sorted by line.
fn find_titles(path: &str, code: &str) -> Vec<String> {
    let mut smells = find_smells(Kind::DeadCode, path, code, check);
    smells.sort_by_key(|smell| smell.line_start);
    smells.into_iter().map(|smell| smell.title).collect()
}

fn assert_titles(rows: &[(&str, &str, &[&str])]) {
    for (path, code, expected) in rows {
        assert_eq!(find_titles(path, code), *expected, "{path}:\n{code}");
    }
}

#[test]
fn unused_imports() {
    assert_titles(&[
        ("a.py", "import os\nimport sys\ndef f(): return sys.argv\n", &["unused import `os`"]),
        ("a.py", "from a import b, c as d\ndef f(): return b\n", &["unused import `d`"]),
        ("a.py", "from a import b\n__all__ = ['b']\ndef f(): pass\n", &[]),
        ("a.py", "from __future__ import annotations\ndef f(): pass\n", &[]),
        ("a.py", "import os  # noqa: F401\nimport b as b\ndef f(): pass\n", &[]),
        ("a.py", "try:\n    import json\nexcept ImportError:\n    json = None\ndef f(): pass\n", &[]),
        ("pkg/__init__.py", "from .a import b\ndef f(): pass\n", &[]),
        ("a.py", "from a import b\nx = None # type: b\ndef f(): return x\n", &[]),
        (
            "a.js",
            "import a, { b as c, d } from 'x';\nimport * as ns from 'y';\nimport 's';\nd(ns);\n",
            &["unused import `a`, `c`"],
        ),
        (
            "a.tsx",
            "import React from 'react';\nimport { A, B } from './a';\nexport const x = () => <A/>;\n",
            &["unused import `B`"],
        ),
        (
            "a.ts",
            "import type { T, U } from 'z';\nexport const x: T = 1;\nexport { q } from 'r';\n",
            &["unused import `U`"],
        ),
        (
            "a.js",
            "const fs = require('fs');\nconst path = require('path');\nmodule.exports = path.join;\n",
            &["unused import `fs`"],
        ),
        (
            "a.go",
            "package a\nimport (\n\t\"fmt\"\n\t\"os\"\n\t_ \"embed\"\n\t\"math/rand/v2\"\n\t\"github.com/a/go-b\"\n)\nfunc F() { fmt.Print(rand.Int()) }\n",
            &["unused import `os`"],
        ),
        (
            "A.java",
            "import java.util.List;\nimport java.util.Map;\nimport a.*;\nclass A { List<String> l; }\n",
            &["unused import `Map`"],
        ),
        ("A.java", "import a.B;\n/** See {@link B}. */\nclass A {}\n", &[]),
        (
            "a.rs",
            "use std::collections::{HashMap, HashSet};\nuse std::io::Write;\npub use a::b;\nuse std::fmt;\nfn main() { let _m: HashMap<u8, u8>; }\n",
            &["unused import `HashSet`", "unused import `fmt`"],
        ),
        ("a.rs", "use std::io::{self, Read as _};\nfn main() { io::stdin(); }\n", &[]),
        ("a.php", "<?php\nuse A\\B;\nuse A\\{C, D as E};\n/** @var E $x */\n$x = new C();\n", &["unused import `B`"]),
        ("a.cs", "using System;\nusing System.Linq;\nclass A {}\n", &[]),
        ("a.rb", "require 'set'\nputs 1\n", &[]),
        ("a.c", "#include <stdio.h>\nint main(void) { return 0; }\n", &[]),
    ]);
}

#[test]
fn a_certain_import_is_removed_with_its_line() {
    let smells = find_smells(Kind::DeadCode, "a.py", "import os\nimport a.b\n\ndef f(): pass\n", check);
    let suggestion = smells[0].suggestion.as_ref().expect("a suggestion");
    assert_eq!(suggestion.replacement.as_deref(), Some(""));
    assert_eq!(suggestion.lines, Some(LineRange::new(1, 1)));
    assert_eq!(smells[1].suggestion.as_ref().and_then(|s| s.replacement.clone()), None);
    assert_eq!(smells[1].confidence, Confidence::Low);
}

#[test]
fn unused_locals() {
    assert_titles(&[
        ("a.py", "def f():\n    x = 1\n    y = 2\n    _z = 3\n    return y\n", &["unused variable `x`"]),
        ("a.py", "def f():\n    x = 1\n    x = 2\n", &["unused variable `x`"]),
        ("a.py", "def f():\n    x = 1\n    return locals()\ndef g():\n    y = 1\n    return f'{y}'\n", &[]),
        ("a.py", "def f():\n    global x\n    x = 1\ndef g():\n    y = 1\n    def h(): return y\n    return h\n", &[]),
        ("a.py", "class A:\n    x = 1\ny = 2\n", &[]),
        (
            "a.js",
            "function f(o) { const a = 1; const { b, c } = o; let d; return c + d; }\nf();\n",
            &["unused variable `a`", "unused variable `b`"],
        ),
        ("a.js", "function f(o) { const { b, ...c } = o; return c; }\nf();\n", &[]),
        ("a.ts", "const a = 1;\nconst b = 2;\nexport const c = b;\n", &["unused variable `a`"]),
        ("a.js", "var a = 1;\n", &[]),
        ("A.java", "class A { void f() { int x = 1, y = 2; g(y); } }\n", &["unused variable `x`"]),
        ("A.java", "class A { void f() { try (X r = open()) { g(); } } }\n", &[]),
        ("a.cs", "class A { void F() { var x = 1; using var y = G(); int z = 2; H(z); } }\n", &["unused variable `x`"]),
        (
            "a.c",
            "int f(void) { int x; int *y = 0, z = 1; char b[3]; (void)x; return z; }\n",
            &["unused variable `y`", "unused variable `b`"],
        ),
        (
            "a.cpp",
            "int f() { std::lock_guard<std::mutex> g{m}; Timer t; int x = 1; return 0; }\n",
            &["unused variable `x`"],
        ),
        ("a.rs", "fn main() { let x = 1; let y = 2; let _g = 3; println!(\"{y}\"); }\n", &["unused variable `x`"]),
        (
            "a.php",
            "<?php\nfunction f() { $x = 1; $y = 2; return $y; }\nfunction g() { $z = 1; return compact('z'); }\n",
            &["unused variable `x`"],
        ),
        ("a.rb", "def f\n  x = 1\n  y = 2\n  puts y\nend\ndef g\n  z = 1\nend\n", &["unused variable `x`"]),
        ("a.sh", "f() {\n  local a=1 b c=3\n  echo \"$b ${c}\"\n}\n", &["unused variable `a`"]),
        ("a.go", "package a\nfunc F() { x := 1; _ = x }\n", &[]),
    ]);
}

#[test]
fn unused_parameters() {
    assert_titles(&[
        ("a.py", "def f(a, b):\n    print(a)\n    return a\nf(1, 2)\n", &["unused parameter `b` of `f`"]),
        ("a.py", "def f(a, b):\n    print(b)\n    return b\nf(1, 2)\n", &[]),
        ("a.py", "def f(a, b):\n    print(a)\n    return a\nregister(f)\nf(1, 2)\n", &[]),
        ("a.py", "def f(a, b):\n    raise NotImplementedError\nf(1, 2)\n", &[]),
        // A call of another object's function with the same name is no evidence.
        ("a.py", "def load(a, b):\n    print(a)\n    return a\njson.load(1, 2)\n", &[]),
        (
            "a.py",
            "def load(a, b):\n    print(a)\n    return a\nload(1, 2)\nmap(json.load, x)\n",
            &["unused parameter `b` of `load`"],
        ),
        ("a.js", "function load(a, b) { g(a); return a; }\napi.load(1, 2);\n", &[]),
        ("a.go", "package a\nfunc load(a, b int) int { g(a); return a }\nfunc H() { json.load(1, 2) }\n", &[]),
        ("a.rs", "fn load(a: u8, b: u8) -> u8 { g(a); a }\nfn main() { json::load(1, 2); x.load(1, 2) }\n", &[]),
        ("a.py", "class A(B):\n    def f(self, a):\n        print(1)\n        return self.f(1)\n", &[]),
        ("a.js", "function f(a, b) { g(a); return a; }\nf(1, 2);\n", &["unused parameter `b` of `f`"]),
        ("a.js", "function f(err, b) { g(b); return b; }\nf(1, 2); x.on('a', function (e) { g(); h(); });\n", &[]),
        (
            "a.ts",
            "class A { constructor(private z: string) { super(); f(); } private m(a: number, b: number) { g(a); return a; } n() { this.m(1, 2); } }\n",
            &["unused parameter `b` of `m`"],
        ),
        (
            "a.go",
            "package a\nfunc f(a, b int) int { g(a); return a }\nfunc H() { f(1, 2) }\nfunc (r *R) m(x int) { g(1); g(2) }\n",
            &["unused parameter `b` of `f`"],
        ),
        (
            "A.java",
            "class A { private void f(int a, int b) { g(a); h(); } void k() { f(1, 2); } public void p(int x) { g(1); h(); } }\n",
            &["unused parameter `b` of `f`"],
        ),
        (
            "a.cs",
            "class A { private void F(int a, int b) { G(a); H(); } void K() { F(1, 2); } private void On(object s, EventArgs e) { G(1); H(); } void L() { x += On; } }\n",
            &["unused parameter `b` of `F`"],
        ),
        (
            "a.c",
            "static int f(int a, int b) { g(a); return a; }\nstatic int cb(int a, int b) { g(a); return a; }\nint h(void) { reg(cb); return f(1, 2); }\n",
            &["unused parameter `b` of `f`"],
        ),
        ("a.c", "static int f(int a, int b) { (void)b; g(a); return a; }\nint h(void) { return f(1, 2); }\n", &[]),
        ("a.rs", "fn f(a: u8, b: u8) -> u8 { g(a); a }\nfn main() { f(1, 2); }\n", &["unused parameter `b` of `f`"]),
        ("a.rs", "impl T for S { fn m(&self, u: u8) { a(); b(); } }\nfn main() { s.m(1); }\n", &[]),
        (
            "a.php",
            "<?php\nclass A { private function f($a, $b) { g($a); return $a; } function k() { $this->f(1, 2); } }\n",
            &["unused parameter `b` of `f`"],
        ),
    ]);
}

#[test]
fn unused_private_functions() {
    assert_titles(&[
        (
            "a.rs",
            "fn used() {}\nfn unused() { unused() }\npub fn main() { used() }\n#[test]\nfn t() {}\nimpl T for S { fn m(&self) {} }\nimpl S { fn n(&self) {} }\n",
            &["unused function `unused`", "unused function `n`"],
        ),
        ("a.rs", "mod child;\nfn for_the_child() {}\n", &[]),
        (
            "a.py",
            "def f():\n    def g(): pass\n    def h(): pass\n    return h\nclass A:\n    def __m(self): pass\n    def __init__(self): pass\n    def _p(self): pass\n",
            &["unused function `g`", "unused function `__m`"],
        ),
        (
            "a.js",
            "import x from 'x';\nfunction f() {}\nexport function g() {}\nfunction h() { x(); }\nh();\n",
            &["unused function `f`"],
        ),
        ("a.js", "function onclick() {}\n", &[]),
        ("a.js", "class A { #p() {} #q() {} r() { this.#q(); } }\n", &["unused function `#p`"]),
        (
            "A.java",
            "class A { private void f() {} private void g() {} @Inject private void h() {} private A() {} void k() { g(); } }\n",
            &["unused function `f`"],
        ),
        (
            "a.cs",
            "class A { private void F() {} private void G() {} void K() { G(); } [Test] private void H() {} }\npartial class B { private void F2() {} }\n",
            &["unused function `F`"],
        ),
        (
            "a.c",
            "static void f(void) {}\nstatic void g(void) {}\nvoid h(void) { g(); }\n#define M() m()\nstatic void m(void) {}\n",
            &["unused function `f`"],
        ),
        ("a.h", "static void f(void) {}\n", &[]),
        (
            "a.php",
            "<?php\nclass A { private function f() {} private function g() {} public function h() { $this->g(); } private function __clone() {} }\n",
            &["unused function `f`"],
        ),
        (
            "a.rb",
            "class A\n  def a; b; end\n  private\n  def b; 1; end\n  def c; 2; end\n  public\n  def d; 3; end\nend\n",
            &["unused function `c`"],
        ),
        ("a.go", "package a\nfunc f() {}\n", &[]),
    ]);
}

#[test]
fn unreachable_statements() {
    assert_titles(&[
        ("a.py", "def f():\n    return 1\n    g()\ndef h():\n    raise X\n    # c\n", &["`g()` is never reached"]),
        ("a.py", "def f():\n    return\n    yield\n", &[]),
        (
            "a.js",
            "function f() { return g(); function g() {} }\nfunction h() { throw x;\n f(); }\nh();\n",
            &["`f();` is never reached"],
        ),
        (
            "a.ts",
            "for (const x of y) { continue;\n f(x); }\nswitch (a) { case 1: return;\n break; }\n",
            &["`f(x);` is never reached"],
        ),
        ("a.go", "package a\nfunc F() int {\n\treturn 1\n\tg()\n}\n", &["`g()` is never reached"]),
        ("A.java", "class A { void f() { if (x) { return; } g(); } void h() { throw new X();\n } }\n", &[]),
        ("A.java", "class A { void f() { return;\n g(); } }\n", &["`g();` is never reached"]),
        ("a.c", "int f(void) {\n  goto end;\n  g();\nend:\n  return 1;\n}\n", &["`g();` is never reached"]),
        (
            "a.c",
            "int f(int x) {\n  switch (x) {\n  case 1:\n    return 1;\n    break;\n  default:\n    break;\n  }\n  return 0;\n}\n",
            &[],
        ),
        ("a.cs", "class A { void F() { return;\n G(); } }\n", &["`G();` is never reached"]),
        (
            "a.rs",
            "fn main() {\n    return;\n    g();\n}\nfn g() { loop { break; } g(); }\n",
            &["`g();` is never reached"],
        ),
        ("a.rb", "def f\n  return 1\n  g\nend\ndef h\n  return if x\n  g\nend\n", &["`g` is never reached"]),
        (
            "a.php",
            "<?php\nfunction f() { return;\n g(); }\nfunction h() { throw new X();\n g(); }\nexit;\n",
            &["`g();` is never reached", "`g();` is never reached"],
        ),
        (
            "a.sh",
            "f() {\n  return 0\n  echo x\n}\ng() {\n  [ -z \"$1\" ] && return 1\n  echo y\n}\nif a; then\n  exit 1\nfi\nf\n",
            &["`echo x` is never reached"],
        ),
    ]);
}

#[test]
fn constant_conditions() {
    assert_titles(&[
        (
            "a.py",
            "if True:\n    f()\nwhile True:\n    g()\nwhile 0:\n    h()\n",
            &["the condition of `if True:` is always `True`", "the condition of `while 0:` is always `0`"],
        ),
        (
            "a.js",
            "if (false) { f(); }\nwhile (true) { g(); }\nfor (;;) {}\nx = true ? 1 : 2;\n",
            &[
                "the condition of `if (false) { f(); }` is always `false`",
                "the condition of `true ? 1 : 2` is always `true`",
            ],
        ),
        (
            "a.go",
            "package a\nfunc F() { for { g() }\n if true { g() } }\n",
            &["the condition of `if true { g() }` is always `true`"],
        ),
        (
            "A.java",
            "class A { void f() { while (true) { g(); } } void h() { if (false) { g(); } } }\n",
            &["the condition of `if (false) { g(); }` is always `false`"],
        ),
        (
            "a.c",
            "int f(void) { do { g(); } while (0); while (1) { g(); }\n if (0) { g(); } return 1; }\n",
            &["the condition of `if (0) { g(); }` is always `0`"],
        ),
        (
            "a.cpp",
            "int f() { while (true) { g(); }\n if (1) { g(); } return 1; }\n",
            &["the condition of `if (1) { g(); }` is always `1`"],
        ),
        (
            "a.cs",
            "class A { void F() { while (true) { G(); } } void H() { if (true) { G(); } } }\n",
            &["the condition of `if (true) { G(); }` is always `true`"],
        ),
        (
            "a.rs",
            "fn main() { loop { break }\n if false { main() } }\n",
            &["the condition of `if false { main() }` is always `false`"],
        ),
        ("a.rb", "while true\n  f\nend\nif false\n  g\nend\n", &["the condition of `if false` is always `false`"]),
        (
            "a.php",
            "<?php\nwhile (true) { f(); }\nif (true) { g(); }\n",
            &["the condition of `if (true) { g(); }` is always `true`"],
        ),
        (
            "a.sh",
            "while true; do f; done\nif false; then g; fi\n",
            &["the condition of `if false; then g; fi` is always `false`"],
        ),
    ]);
}

#[test]
fn half_a_file_does_no_harm() {
    for (path, code) in [
        ("a.py", "import os\ndef f(a, b:\n    x = 1\n  return ("),
        ("a.js", "import { a from 'b'; function f( { let x = 1; return; g() "),
        ("a.rs", "use std::{fmt, ; fn f(a: u8 { let x = 1; "),
        ("a.c", "static int f( { int x; return 1; g(); "),
        ("a.php", "<?php use A\\; function f($a { $x = 1;"),
        ("a.sh", "f() { local x=1; if true; then"),
        ("A.java", "import ; class A { private void f( { int x = 1; return; g();"),
    ] {
        let _ = find_titles(path, code);
        for end in 0..code.len() {
            let _ = find_titles(path, &code[..end]);
        }
    }
}

/// False positives that were found by hand in real projects.
#[test]
fn constructs_that_were_once_reported_and_are_alive() {
    assert_titles(&[
        // A C file that another one includes.
        (
            "ae_epoll.c",
            "static int a(void) { return 1; }\nstatic int b(void) { return 1; }\nstatic int c(void) { return 1; }\n",
            &[],
        ),
        ("a.c", "#define M(x) do { \\\n  f(x); \\\n} while (0)\nvoid g(void) { do { M(1); }\n while (0); }\n", &[]),
        ("a.c", "#define SWAP if (kind) f()\nint g(void) { int kind = 1; SWAP; return 0; }\n", &[]),
        (
            "a.ts",
            "import { x } from 'x';\nexport const a = x({ setup() { return 1; }, onText(a, b) { x(a); return 2; } });\n",
            &[],
        ),
        (
            "a.php",
            "<?php\nclass A { private function add_x() { return 1; } function f($k) { $this->{\"add_$k\"}(); } }\n",
            &[],
        ),
        ("A.java", "class A { void f() { int unused1 = g(); int ignoredResult = g(); } }\n", &[]),
        (
            "a.rs",
            "use std::io::prelude::*;\nuse std::sync::atomic::Ordering::{self, *};\nfn main() { g(Ordering::SeqCst) }\n",
            &[],
        ),
        ("a.rs", "mod child;\nuse self::core::Cell;\npub fn f() {}\n", &[]),
        ("a.rs", "#[allow(dead_code)]\nimpl A { fn f(&self) {} }\n", &[]),
        ("a.cs", "class A { int F() { return 1;\n#pragma warning restore 1998\n } }\n", &[]),
        ("docs/a.cs", "class A { void F() { var pipeline = Build(); } }\n", &[]),
    ]);
}

/// Applies every exact suggestion about a text and returns the result.
fn apply_suggestions(path: &str, code: &str) -> String {
    let mut smells = find_smells(Kind::DeadCode, path, code, check);
    smells.sort_by_key(|smell| std::cmp::Reverse(smell.line_start));
    let mut lines: Vec<&str> = code.split_inclusive('\n').collect();
    for suggestion in smells.iter().filter_map(|smell| smell.suggestion.as_ref()) {
        if let (Some(""), Some(gone)) = (suggestion.replacement.as_deref(), suggestion.lines) {
            lines.drain(gone.start as usize - 1..gone.end as usize);
        }
    }
    lines.concat()
}

#[test]
fn what_can_go_for_certain_is_said_exactly() {
    for (path, code, left) in [
        ("a.py", "import a, b\nimport c\nc()\ndef f(): pass\n", "import c\nc()\ndef f(): pass\n"),
        ("a.py", "from a import (\n    b,\n    c,\n)\ndef f(): pass\n", "def f(): pass\n"),
        ("a.js", "import {\n  a,\n  b,\n} from 'x';\nf();\n", "f();\n"),
        ("a.py", "import a; g()\ndef f(): pass\n", "import a; g()\ndef f(): pass\n"),
        ("a.py", "def f():\n    return 1\n    g(\n        2,\n    )\n", "def f():\n    return 1\n"),
        ("A.java", "class A { void f() {\n return;\n g();\n } }\n", "class A { void f() {\n return;\n } }\n"),
        ("a.rs", "fn f() -> u8 {\n    return 1;\n    g();\n}\n", "fn f() -> u8 {\n    return 1;\n}\n"),
    ] {
        assert_eq!(apply_suggestions(path, code), left, "{code}");
    }
    for (path, code) in [
        // A generator, a name that becomes global, a name that Go requires to be used, code that follows, one line for
        // both.
        ("a.py", "def f():\n    return 1\n    for x in g(): yield x\n"),
        ("a.py", "def f():\n    return x\n    x = 2\n"),
        ("a.go", "package a\nfunc F(x int) int {\n\treturn 1\n\tg(x)\n}\n"),
        ("a.py", "def f():\n    return 1\n    g()\n    h()\n"),
        ("A.java", "class A { void f() { return; g(); } }\n"),
    ] {
        assert_eq!(apply_suggestions(path, code), code);
    }
}
