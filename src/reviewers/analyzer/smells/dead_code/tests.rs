use super::super::test_support::{check_samples, find_smells};
use super::*;
use crate::domain::Confidence;
use crate::reviewers::analyzer::Builtin;
use crate::reviewers::analyzer::other_files::FileSource;
use crate::syntax::source::Parsers;

/// Files with their texts.
struct UnusedSamples(&'static [(&'static str, &'static str)]);

impl FileSource for UnusedSamples {
    fn paths(&self) -> Vec<String> {
        self.0.iter().map(|(path, _)| (*path).to_owned()).collect()
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.0.iter().find(|(known, _)| *known == path).map(|(_, text)| text.as_bytes().to_vec())
    }
}

/// Returns the titles of the dead code of the first file, beside the others.
fn dead_code_beside(files: &'static [(&'static str, &'static str)]) -> Vec<String> {
    let (path, text) = files[0];
    let builtin = Builtin::default().with_other_files(Box::new(UnusedSamples(files)));
    let report = builtin.analyze_file(&mut Parsers::default(), path, text.as_bytes()).expect("a language of ours");
    report.smells.into_iter().filter(|smell| smell.kind == Kind::DeadCode).map(|smell| smell.title).collect()
}

#[test]
fn an_import_that_a_child_uses_hides_no_other_of_the_same_statement() {
    const CODE: &str = "mod child;\nuse std::collections::{BTreeMap, HashMap};\npub fn f() {}\n";
    const USER: &str = "use super::HashMap;\npub fn g(map: HashMap<u8, u8>) {}\n";
    assert_eq!(dead_code_beside(&[("a.rs", CODE), ("a/child.rs", USER)]), ["Unused import `BTreeMap`"]);
    assert_eq!(dead_code_beside(&[("a.rs", CODE), ("a/child.rs", "")]), ["Unused import `BTreeMap`, `HashMap`"]);
}

#[test]
fn unused_imports_of_scripts() {
    check_samples(
        &SMELL,
        r#"
//- a.py
import os //~ p3 unused import `os`
import sys
def f(): return sys.argv
//- a.py
from a import b, c as d //~ p3 unused import `d`
def f(): return b
//- a.py
from a import b
__all__ = ['b']
def f(): pass
//- a.py
from __future__ import annotations
def f(): pass
//- a.py
import os  # noqa: F401
import b as b
def f(): pass
//- a.py
try:
    import json
except ImportError:
    json = None
def f(): pass
//- pkg/__init__.py
from .a import b
def f(): pass
//- a.py
from a import b
x = None # type: b
def f(): return x
//- a.js
import a, { b as c, d } from 'x'; //~ p3 unused import `a`, `c`
import * as ns from 'y';
import 's';
d(ns);
//- a.tsx
import React from 'react';
import { A, B } from './a'; //~ p3 unused import `B`
export const x = () => <A/>;
//- a.ts
import type { T, U } from 'z'; //~ p3 unused import `U`
export const x: T = 1;
export { q } from 'r';
//- a.js
const fs = require('fs'); //~ p3 unused import `fs`
const path = require('path');
module.exports = path.join;
//- a.php
<?php
use A\B; //~ p3 unused import `B`
use A\{C, D as E};
/** @var E $x */
$x = new C();
//- a.rb
require 'set'
puts 1
"#,
    );
}

#[test]
fn unused_imports() {
    check_samples(
        &SMELL,
        r#"
//- a.go
package a
import (
	"fmt"
	"os" //~ p3 unused import `os`
	_ "embed"
	"math/rand/v2"
	"github.com/a/go-b"
)
func F() { fmt.Print(rand.Int()) }
//- A.java
import java.util.List;
import java.util.Map; //~ p3 unused import `Map`
import a.*;
class A { List<String> l; }
//- A.java
import a.B;
/** See {@link B}. */
class A {}
//- a.rs
use std::collections::{HashMap, HashSet}; //~ p3 unused import `HashSet`
use std::io::Write;
pub use a::b;
use std::fmt; //~ p3 unused import `fmt`
fn main() { let _m: HashMap<u8, u8>; }
//- a.rs
use std::io::{self, Read as _};
fn main() { io::stdin(); }
//- a.cs
using System;
using System.Linq;
class A {}
//- a.c
#include <stdio.h>
int main(void) { return 0; }
"#,
    );
}

#[test]
fn a_certain_import_is_removed_with_its_line() {
    let found = check_samples(
        &SMELL,
        r#"
//- a.py
import os //~ p3 unused import `os`
import a.b //~ p3 unused import `a`

def f(): pass
"#,
    );
    let suggestion = found[0].suggestion.as_ref().expect("a suggestion");
    assert_eq!(suggestion.replacement.as_deref(), Some(""));
    assert_eq!(suggestion.lines, Some(LineRange::new(1, 1)));
    assert_eq!(found[1].suggestion.as_ref().and_then(|suggestion| suggestion.replacement.clone()), None);
    assert_eq!(found[1].confidence, Confidence::Low);
}

#[test]
fn unused_locals_of_scripts() {
    check_samples(
        &SMELL,
        r#"
//- a.py
def f():
    x = 1 //~ p3 unused variable `x`
    y = 2
    _z = 3
    return y
//- a.py
def f():
    x = 1 //~ p3 unused variable `x`
    x = 2
//- a.py
def f():
    x = 1
    return locals()
def g():
    y = 1
    return f'{y}'
//- a.py
def f():
    global x
    x = 1
def g():
    y = 1
    def h(): return y
    return h
//- a.py
class A:
    x = 1
y = 2
//- a.js
function f(o) { const a = 1; const { b, c } = o; let d; return c + d; }
//~ p3 unused variable `a`
//~ p3 unused variable `b`
f();
//- a.js
function f(o) { const { b, ...c } = o; return c; }
f();
//- a.ts
const a = 1; //~ p3 unused variable `a`
const b = 2;
export const c = b;
//- a.js
var a = 1;
//- a.php
<?php
function f() { $x = 1; $y = 2; return $y; } //~ p3 unused variable `x`
function g() { $z = 1; return compact('z'); }
//- a.rb
def f
  x = 1 //~ p3 unused variable `x`
  y = 2
  puts y
end
def g
  z = 1
end
//- a.sh
f() {
  local a=1 b c=3 //~ p3 unused variable `a`
  echo "$b ${c}"
}
"#,
    );
}

#[test]
fn unused_locals() {
    check_samples(
        &SMELL,
        r#"
//- A.java
class A { void f() { int x = 1, y = 2; g(y); } } //~ p3 unused variable `x`
//- A.java
class A { void f() { try (X r = open()) { g(); } } }
//- a.cs
class A { void F() { var x = 1; using var y = G(); int z = 2; H(z); } } //~ p3 unused variable `x`
//- a.c
int f(void) { int x; int *y = 0, z = 1; char b[3]; (void)x; return z; }
//~ p3 unused variable `y`
//~ p3 unused variable `b`
//- a.cpp
int f() { std::lock_guard<std::mutex> g{m}; Timer t; int x = 1; return 0; } //~ p3 unused variable `x`
//- a.rs
fn main() { let x = 1; let y = 2; let _g = 3; println!("{y}"); } //~ p3 unused variable `x`
//- a.go
package a
func F() { x := 1; _ = x }
"#,
    );
}

#[test]
fn unused_parameters_of_scripts() {
    check_samples(
        &SMELL,
        r#"
//- a.py
def f(a, b): //~ p3 unused parameter `b` of `f`
    print(a)
    return a
f(1, 2)
//- a.py
def f(a, b):
    print(b)
    return b
f(1, 2)
//- a.py
def f(a, b):
    print(a)
    return a
register(f)
f(1, 2)
//- a.py
def f(a, b):
    raise NotImplementedError
f(1, 2)
//- a.py
def load(a, b):
    print(a)
    return a
json.load(1, 2)
//- a.py
def load(a, b): //~ p3 unused parameter `b` of `load`
    print(a)
    return a
load(1, 2)
map(json.load, x)
//- a.js
function load(a, b) { g(a); return a; }
api.load(1, 2);
//- a.py
class A(B):
    def f(self, a):
        print(1)
        return self.f(1)
//- a.js
function f(a, b) { g(a); return a; } //~ p3 unused parameter `b` of `f`
f(1, 2);
//- a.js
function f(err, b) { g(b); return b; }
f(1, 2); x.on('a', function (e) { g(); h(); });
//- a.ts
class A { constructor(private z: string) { super(); f(); } private m(a: number, b: number) { g(a); return a; } n() { this.m(1, 2); } }
//~ p3 unused parameter `b` of `m`
//- a.php
<?php
class A { private function f($a, $b) { g($a); return $a; } function k() { $this->f(1, 2); } }
//~ p3 unused parameter `b` of `f`
"#,
    );
}

#[test]
fn unused_parameters() {
    check_samples(
        &SMELL,
        r#"
//- a.go
package a
func load(a, b int) int { g(a); return a }
func H() { json.load(1, 2) }
//- a.rs
fn load(a: u8, b: u8) -> u8 { g(a); a }
fn main() { json::load(1, 2); x.load(1, 2) }
//- a.go
package a
func f(a, b int) int { g(a); return a } //~ p3 unused parameter `b` of `f`
func H() { f(1, 2) }
func (r *R) m(x int) { g(1); g(2) }
//- A.java
class A { private void f(int a, int b) { g(a); h(); } void k() { f(1, 2); } public void p(int x) { g(1); h(); } }
//~ p3 unused parameter `b` of `f`
//- a.cs
class A { private void F(int a, int b) { G(a); H(); } void K() { F(1, 2); } private void On(object s, EventArgs e) { G(1); H(); } void L() { x += On; } }
//~ p3 unused parameter `b` of `F`
//- a.c
static int f(int a, int b) { g(a); return a; } //~ p3 unused parameter `b` of `f`
static int cb(int a, int b) { g(a); return a; }
int h(void) { reg(cb); return f(1, 2); }
//- a.c
static int f(int a, int b) { (void)b; g(a); return a; }
int h(void) { return f(1, 2); }
//- a.rs
fn f(a: u8, b: u8) -> u8 { g(a); a } //~ p3 unused parameter `b` of `f`
fn main() { f(1, 2); }
//- a.rs
impl T for S { fn m(&self, u: u8) { a(); b(); } }
fn main() { s.m(1); }
"#,
    );
}

#[test]
fn unreachable_statements() {
    check_samples(
        &SMELL,
        r#"
//- a.py
def f():
    return 1
    g() //~ p2 `g()` is never reached
def h():
    raise X
    # c
//- a.py
def f():
    return
    yield
//- a.js
function f() { return g(); function g() {} }
function h() { throw x;
 f(); } //~ p2 `f();` is never reached
h();
//- a.ts
for (const x of y) { continue;
 f(x); } //~ p2 `f(x);` is never reached
switch (a) { case 1: return;
 break; }
//- a.go
package a
func F() int {
	return 1
	g() //~ p2 `g()` is never reached
}
//- A.java
class A { void f() { if (x) { return; } g(); } void h() { throw new X();
 } }
//- A.java
class A { void f() { return;
 g(); } } //~ p2 `g();` is never reached
//- a.c
int f(void) {
  goto end;
  g(); //~ p2 `g();` is never reached
end:
  return 1;
}
//- a.c
int f(int x) {
  switch (x) {
  case 1:
    return 1;
    break;
  default:
    break;
  }
  return 0;
}
//- a.cs
class A { void F() { return;
 G(); } } //~ p2 `G();` is never reached
//- a.rs
fn main() {
    return;
    g(); //~ p2 `g();` is never reached
}
fn g() { loop { break; } g(); }
//- a.rb
def f
  return 1
  g //~ p2 `g` is never reached
end
def h
  return if x
  g
end
//- a.php
<?php
function f() { return;
 g(); } //~ p2 `g();` is never reached
function h() { throw new X();
 g(); } //~ p2 `g();` is never reached
exit;
//- a.sh
f() {
  return 0
  echo x //~ p2 `echo x` is never reached
}
g() {
  [ -z "$1" ] && return 1
  echo y
}
if a; then
  exit 1
fi
f
"#,
    );
}

#[test]
fn constant_conditions() {
    check_samples(
        &SMELL,
        r#"
//- a.py
if True: //~ p3 the condition of `if True:` is always `True`
    f()
while True:
    g()
while 0: //~ p3 the condition of `while 0:` is always `0`
    h()
//- a.js
if (false) { f(); } //~ p3 the condition of `if (false) { f(); }` is always `false`
while (true) { g(); }
for (;;) {}
x = true ? 1 : 2; //~ p3 the condition of `true ? 1 : 2` is always `true`
//- a.go
package a
func F() { for { g() }
 if true { g() } } //~ p3 the condition of `if true { g() }` is always `true`
//- A.java
class A { void f() { while (true) { g(); } } void h() { if (false) { g(); } } }
//~ p3 the condition of `if (false) { g(); }` is always `false`
//- a.c
int f(void) { do { g(); } while (0); while (1) { g(); }
 if (0) { g(); } return 1; } //~ p3 the condition of `if (0) { g(); }` is always `0`
//- a.cpp
int f() { while (true) { g(); }
 if (1) { g(); } return 1; } //~ p3 the condition of `if (1) { g(); }` is always `1`
//- a.cs
class A { void F() { while (true) { G(); } } void H() { if (true) { G(); } } }
//~ p3 the condition of `if (true) { G(); }` is always `true`
//- a.rs
fn main() { loop { break }
 if false { main() } } //~ p3 the condition of `if false { main() }` is always `false`
//- a.rb
while true
  f
end
if false //~ p3 the condition of `if false` is always `false`
  g
end
//- a.php
<?php
while (true) { f(); }
if (true) { g(); } //~ p3 the condition of `if (true) { g(); }` is always `true`
//- a.sh
while true; do f; done
if false; then g; fi //~ p3 the condition of `if false; then g; fi` is always `false`
"#,
    );
}

#[test]
fn half_a_file_has_hardly_any_findings() {
    for (path, code) in [
        ("a.py", "import os\ndef f(a, b:\n    x = 1\n  return ("),
        ("a.js", "import { a from 'b'; function f( { let x = 1; return; g() "),
        ("a.rs", "use std::{fmt, ; fn f(a: u8 { let x = 1; "),
        ("a.c", "static int f( { int x; return 1; g(); "),
        ("a.php", "<?php use A\\; function f($a { $x = 1;"),
        ("a.sh", "f() { local x=1; if true; then"),
        ("A.java", "import ; class A { private void f( { int x = 1; return; g();"),
    ] {
        for end in 0..=code.len() {
            let found = find_smells(&SMELL, path, &code[..end]);
            assert!(found.len() <= 2, "{path}: {}\n{found:?}", &code[..end]);
        }
    }
}

/// False positives that were found by hand in real projects.
#[test]
fn constructs_that_were_once_reported_and_are_alive() {
    check_samples(
        &SMELL,
        r#"
//- ae_epoll.c
static int a(void) { return 1; }
static int b(void) { return 1; }
static int c(void) { return 1; }
//- a.c
#define M(x) do { \
  f(x); \
} while (0)
void g(void) { do { M(1); }
 while (0); }
//- a.c
#define SWAP if (kind) f()
int g(void) { int kind = 1; SWAP; return 0; }
//- a.ts
import { x } from 'x';
export const a = x({ setup() { return 1; }, onText(a, b) { x(a); return 2; } });
//- a.php
<?php
class A { private function add_x() { return 1; } function f($k) { $this->{"add_$k"}(); } }
//- A.java
class A { void f() { int unused1 = g(); int ignoredResult = g(); } }
//- a.rs
use std::io::prelude::*;
use std::sync::atomic::Ordering::{self, *};
fn main() { g(Ordering::SeqCst) }
//- a.rs
mod child;
use self::core::Cell; //~ p3 unused import `Cell`
pub fn f() {}
//- a.rs
#[allow(dead_code)]
impl A { fn f(&self) {} }
//- a.cs
class A { int F() { return 1;
#pragma warning restore 1998
 } }
//- docs/a.cs
class A { void F() { var pipeline = Build(); } }
"#,
    );
}

/// Applies every exact suggestion about a text and returns the result.
fn apply_suggestions(path: &str, code: &str) -> String {
    let mut smells = find_smells(&SMELL, path, code);
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
