//! Tests which functions are reported as unused.

use super::super::test_support::check_samples;
use super::*;

#[test]
fn unused_private_functions_of_scripts() {
    check_samples(
        &SMELL,
        r#"
//- a.py
def f():
    def g(): pass //~ p3 unused function `g`
    def h(): pass
    return h
class A:
    def __m(self): pass //~ p3 unused function `__m`
    def __init__(self): pass
    def _p(self): pass
//- a.js
import x from 'x';
function f() {} //~ p3 unused function `f`
export function g() {}
function h() { x(); }
h();
//- a.js
function onclick() {}
//- a.js
class A { #p() {} #q() {} r() { this.#q(); } } //~ p3 unused function `#p`
//- a.php
<?php
class A { private function f() {} private function g() {} public function h() { $this->g(); } private function __clone() {} }
//~ p3 unused function `f`
//- a.rb
class A
  def a; b; end
  private
  def b; 1; end
  def c; 2; end //~ p3 unused function `c`
  public
  def d; 3; end
end
"#,
    );
}

#[test]
fn unused_private_functions() {
    check_samples(
        &SMELL,
        r#"
//- a.rs
fn used() {}
fn unused() { unused() } //~ p3 unused function `unused`
pub fn main() { used() }
#[test]
fn t() {}
impl T for S { fn m(&self) {} }
impl S { fn n(&self) {} } //~ p3 unused function `n`
//- a.rs
mod child;
fn for_the_child() {} //~ p3 unused function `for_the_child`
//- a.rs
#[path = "other.rs"]
mod child;
fn for_the_child() {}
//- A.java
class A { private void f() {} private void g() {} @Inject private void h() {} private A() {} void k() { g(); } }
//~ p3 unused function `f`
//- a.cs
class A { private void F() {} private void G() {} void K() { G(); } [Test] private void H() {} }
//~ p3 unused function `F`
partial class B { private void F2() {} }
//- a.c
static void f(void) {} //~ p3 unused function `f`
static void g(void) {}
void h(void) { g(); }
#define M() m()
static void m(void) {}
//- a.h
static void f(void) {}
//- a.go
package a
func f() {}
"#,
    );
}

#[test]
fn a_call_of_an_imported_module_uses_no_function_of_the_file() {
    check_samples(
        &SMELL,
        r#"
//- a.py
import json
def f():
    def load(x): return x //~ p3 unused function `load`
    return json.load(1)
//- a.py
import json
def f():
    def load(x): return x
    return self.json.load(1)
//- a.js
import * as json from 'json';
function load(a) { return a; } //~ p3 unused function `load`
export function f() { return json.load(1); }
//- a.ts
import json from 'json';
function load(a: number) { return a; } //~ p3 unused function `load`
export function f() { return json.load(1); }
//- a.js
const json = require('json');
function load(a) { return a; } //~ p3 unused function `load`
export function f() { return json.load(1); }
//- a.rs
use crate::json;
fn load() {} //~ p3 unused function `load`
pub fn f() { json::load() }
//- json.rs
fn load() {}
mod tests {
    use crate::json;
    pub fn f() { json::load() }
}
//- A.java
import a.Json;
class A { private void load() {} void f() { Json.load(); } } //~ p3 unused function `load`
//- a.kt
import a.Json
private fun load() {} //~ p3 unused function `load`
fun f() { Json.load() }
//- a.scala
import a.Json
object A {
  private def load() = 1 //~ p3 unused function `load`
  def f() = Json.load()
}
//- a.swift
import Json
private func load() {} //~ p3 unused function `load`
func f() { Json.load() }
//- a.php
<?php
use A\Json;
class A { private function load() { return 1; } function f() { return Json::load(); } }
//~ p3 unused function `load`
//- A.cs
using Json = A.Json;
class A { private void Load() {} void F() { Json.Load(); } } //~ p3 unused function `Load`
"#,
    );
}
