use super::super::test_support::{check_samples, find_smells};
use super::*;

#[test]
fn promises_that_nobody_handles() {
    check_samples(
        &SMELL,
        r#"
//- a.ts
f().catch(() => {}) //~ p2 `.catch()` with an empty function swallows rejections
//- a.js
f().then(g) //~ p2 a promise has no handler for its rejection
//- a.js
f().then(g).then(h).finally(i) //~ p2 a promise has no handler for its rejection
//- a.ts
async function f() { await g() }
function h() { f(); } //~ p2 `f()` is asynchronous and not awaited
//- a.js
function h() { f(); } //~ p2 `f()` is asynchronous and not awaited
const f = async () => { await g() }
//- a.ts
class A { private async m() { await g() }
 n() { this.m(); } } //~ p2 `m()` is asynchronous and not awaited
"#,
    );
}

#[test]
fn results_that_are_ignored() {
    check_samples(
        &SMELL,
        r#"
//- a.go
package a
func f() { os.Remove(x) } //~ p2 the error of `os.Remove` is ignored
//- a.go
package a
func f() { _ = os.Remove(x) } //~ p3 the result of `os.Remove` is thrown away
//- a.go
package a
func f() { n, _ := strconv.Atoi(x); g(n) } //~ p2 the error of `strconv.Atoi` is assigned to `_`
//- a.go
package a
func f() { save(x) } //~ p2 the error of `save` is ignored
func save(x T) error { return nil }
//- a.go
package a
func f() { v, _ := load(x); g(v) } //~ p2 the error of `load` is assigned to `_`
func load(x T) (V, error) { return nil, nil }
//- a.go
package a
func f() { if err := g(); err != nil { } } //~ p2 `if err != nil` does nothing
//- a.go
package a
func f() { os.Remove(x) // XXX //~ p2 the error of `os.Remove` is ignored
 }
//- a.rs
/// Calls `g`.
fn f() { g().unwrap(); } //~ p3 `unwrap()` on `g()` can panic
//- a.rs
fn f() {
    // TODO: no panic
    g().unwrap(); //~ p3 `unwrap()` on `g()` can panic
}
//- a.rs
fn f() { g().unwrap(); } //~ p3 `unwrap()` on `g()` can panic
//- a.rs
fn f() { std::fs::read("x").unwrap(); } //~ p3 `unwrap()` on `std::fs::read("x")` can panic
//- a.rs
fn f() { File::open("x").unwrap(); } //~ p3 `unwrap()` on `File::open("x")` can panic
//- a.rs
fn f() { g()
.h()
.unwrap(); } //~ p3 `unwrap()` on `g() .h()` can panic
//- a.rs
fn f() { g().expect(""); } //~ p3 `expect("")` on `g()` panics without a reason
//- a.rs
fn f() { let _ = std::fs::remove_file(x); } //~ p3 the result of `std::fs::remove_file` is thrown away
//- a.rs
fn f() { std::fs::remove_file(x).ok(); } //~ p3 the result of `std::fs::remove_file` is thrown away
//- a.rs
fn f() { let _ = save(x); } fn save(x: T) -> io::Result<()> { Ok(()) }
//~ p3 the result of `save` is thrown away
"#,
    );
}

#[test]
fn return_values_that_are_not_checked() {
    check_samples(
        &SMELL,
        r#"
//- a.c
void f() {
  read(fd, b, n); //~ p2 the return value of `read` is not checked
}
//- a.c
void f() {
  char *p = malloc(n); //~ p2 the result of `malloc` is used unchecked
  p[0] = 1;
}
//- a.c
void f() {
  char *p;
  p = (char *)malloc(n); //~ p2 the result of `malloc` is used unchecked
  p[0] = 1;
}
//- a.cpp
void f() {
  FILE* in = fopen(name, mode); //~ p2 the result of `fopen` is used unchecked
  use(in);
}
//- a.sh
#!/bin/sh
cd "$x" //~ p3 `cd "$x"` may fail and the script goes on
rm -rf *
//- a.sh
#!/bin/bash
set -u
(cd x; make) //~ p3 `cd x` may fail and the script goes on
"#,
    );
}

#[test]
fn handlers_that_do_nothing() {
    check_samples(
        &SMELL,
        r#"
//- a.py
try:
    f()
except: //~ p2 a bare `except:` catches everything
    g()
//- a.py
try:
    f()
except Exception: //~ p2 a handler of `Exception` swallows every error
    pass
//- a.py
try:
    f()
except (OSError, ValueError) as e: //~ p3 a handler of `OSError, ValueError` is empty
    ...
//- a.rb
begin
  f
rescue //~ p2 a handler swallows every error
end
//- a.rb
def f
  g
rescue ArgumentError => e //~ p3 a handler of `ArgumentError` is empty
  nil
end
//- a.rb
x = f rescue nil //~ p3 `rescue nil` hides every error
//- a.js
try { f() } catch (e) {} //~ p2 a handler of `e` swallows every error
//- a.js
try { f() } catch {} //~ p2 a handler swallows every error
//- a.tsx
try { f() } catch (e) { ; } //~ p2 a handler of `e` swallows every error
//- A.java
class A { void f() { try { g(); } catch (Exception e) { } } }
//~ p2 a handler of `Exception e` swallows every error
//- a.cs
class A { void F() { try { G(); } catch { } } } //~ p2 a handler swallows every error
//- a.cs
class A { void F() { try { G(); } catch (IOException) { } } } //~ p3 a handler of `IOException` is empty
//- a.cpp
void f() { try { g(); } catch (...) { } } //~ p2 a handler of `...` swallows every error
//- a.php
<?php try { f(); } catch (Exception $e) { } //~ p2 a handler of `Exception $e` swallows every error
//- a.php
<?php @unlink($file); //~ p3 `@unlink($file)` hides its errors
//- a.py
try:
    f()
except OSError: //~ p3 a handler of `OSError` is empty
    pass  # TODO: log it
//- a.js
try { f() } catch (e) { //~ p2 a handler of `e` swallows every error
  // FIXME handle
  // this
}
"#,
    );
}

#[test]
fn promises_that_are_handled() {
    check_samples(
        &SMELL,
        r#"
//- a.js
f().then(g).catch(h); f().then(g, h); void f().then(g); x = f().then(g)
//- a.ts
async function f() { await g() }
async function h() { await f(); void f(); return f(); f().catch(i) }
//- a.js
async function f() { try { await g() } catch (e) { log(e) } }
f()
"#,
    );
}

#[test]
fn results_that_are_handled() {
    check_samples(
        &SMELL,
        r#"
//- a.go
package a
func f() error { defer x.Close(); _ = x.Close(); if err := os.Remove(x); err != nil { return err }; v, _ := m[k]; w, _ := x.(T); fmt.Println(v, w); return os.Remove(y) }
//- a.go
package a
func f() { _ = os.Remove(x) // it is gone already
 }
//- a.go
package a
func f() { v, _ := os.LookupEnv(x); g(v) }
//- a.rs
fn f() -> R { g()?; g().expect("it was checked"); x.lock().unwrap(); Regex::new("a").unwrap(); write!(s, "x").unwrap(); g().unwrap_or(1) }
//- a.rs
fn f() { if x.is_none() { return }
 x.unwrap(); }
//- a.rs
#[cfg(test)] mod tests { #[test] fn f() { g().unwrap(); } fn h() { g().unwrap(); } }
//- a.rs
fn f() {
    // g is there: the TODO list says so.
    g().unwrap();
}
//- a.rs
fn f() { let _ = tx.send(x); let _guard = lock(); }
"#,
    );
}

#[test]
fn return_values_that_are_checked() {
    check_samples(
        &SMELL,
        r#"
//- a.c
void f() { if (read(fd, b, n) < 0) g(); (void)write(fd, b, n); char *p = malloc(n);
 if (!p) return; p[0] = 1; }
//- a.c
int f() { char *p = NULL; if ((p = malloc(n)) == NULL) return 1; return read(fd, p, n); }
//- a.sh
#!/bin/sh
cd x || exit 1
cd x && make
if cd x; then :; fi
cd -
cd ..
cd x # it is there
//- a.sh
#!/bin/sh
set -eu
cd x
//- a.sh
#!/bin/sh -e
cd x
//- a.sh
#!/bin/bash
set -o errexit
cd x
"#,
    );
}

#[test]
fn methods_of_other_types_with_the_name_of_one_that_fails() {
    check_samples(
        &SMELL,
        r#"
//- a.rs
impl A { fn unwrap(self) -> B { self.0 } }
fn f(a: A) { a.unwrap(); }
//- a.rs
fn f() { let g = changed.wait_timeout(guard, limit).unwrap(); }
//- a.go
package a
func (w *writer) Write(b []byte) (int, error) { return 0, nil }
func f() { c.Write(zap.Error(err)) }
func g() { _, _ = c.Write(b) }
func (w *writer) save() error { return nil }
func h(w *writer) { w.save() } //~ p2 the error of `w.save` is ignored
"#,
    );
}

#[test]
fn announced_work_justifies_nothing() {
    check_samples(
        &SMELL,
        r#"
//- a.py
try:
    f()
except Exception: //~ p2 a handler of `Exception` swallows every error
    pass  # HACK
//- a.py
try:
    f()
except OSError: //~ p3 a handler of `OSError` is empty
    # todo(ann): log it
    pass
//- a.rb
begin
  f
rescue ArgumentError => e //~ p3 a handler of `ArgumentError` is empty
  # HACK: until the next release
end
//- a.js
try { f() } catch (e) { /* not yet, FIXME */ } //~ p2 a handler of `e` swallows every error
//- a.ts
try { f() } catch (e) { // todo: report
//~ p2 a handler of `e` swallows every error
}
//- A.java
class A { void f() { try { g(); } catch (Exception e) { /* HACK */ } } }
//~ p2 a handler of `Exception e` swallows every error
//- a.kt
fun f() { try { g() } catch (e: Exception) { /* HACK */ } } //~ p2 a handler of `e: Exception` swallows every error
//- A.cs
class A { void F() { try { G(); } catch { /* HACK */ } } } //~ p2 a handler swallows every error
//- a.cpp
void f() { try { g(); } catch (...) { /* HACK */ } } //~ p2 a handler of `...` swallows every error
//- a.php
<?php try { f(); } catch (Exception $e) { /* HACK */ } //~ p2 a handler of `Exception $e` swallows every error
//- a.go
package a
func f() { _ = os.Remove(x) } // HACK: the file may be open //~ p3 the result of `os.Remove` is thrown away
//- a.rs
fn f() {
    // HACK: until the next release
    g().unwrap(); //~ p3 `unwrap()` on `g()` can panic
}
//- a.c
void f(void) {
  read(fd, b, n); // hack: no //~ p2 the return value of `read` is not checked
}
//- a.sh
cd a # fixme: stop //~ p3 `cd a` may fail and the script goes on
//- a.py
try:
    f()
except OSError:
    pass  # the todo list is empty then
"#,
    );
}

#[test]
fn handlers_that_do_something() {
    check_samples(
        &SMELL,
        r#"
//- a.py
try:
    f()
except OSError:
    pass  # it is gone already
//- a.py
try:
    f()
except OSError:
    # it is gone already
    pass
//- a.py
try:
    import f
except ImportError:
    pass
//- a.py
try:
    f()
except:
    g()
    raise
//- a.py
try:
    f()
except Exception as e:
    log(e)
//- a.rb
begin
  f
rescue
  # it is gone already
end
//- a.rb
begin
  f
rescue => e
  log(e)
end
x = f rescue 1
//- a.js
try { f() } catch (e) { /* it is gone already */ }
//- A.java
class A { void f() { try { g(); } catch (Exception ignored) { } } }
//- a.cs
class A { void F() { try { G(); } catch (OperationCanceledException) { } } }
//- a.cpp
void f() { try { g(); } catch (...) { // destructors must not throw
 } }
//- a.php
<?php if (@unlink($file) === false) { f(); } $x = @fopen($file); @trigger_error('x');
//- tests/a.py
try:
    f()
except:
    pass
"#,
    );
}

#[test]
fn unwraps_of_one_function_are_not_a_flood() {
    let found = check_samples(
        &SMELL,
        r#"
//- a.rs
fn f() {
    a().unwrap(); //~ p3 `unwrap()` on `a()` can panic
    b().unwrap(); //~ p3 `unwrap()` on `b()` can panic
    c().unwrap(); //~ p3 `unwrap()` on `c()` can panic
    d().unwrap();
    e().unwrap();
}
"#,
    );
    assert_eq!(found[2].figure, Some(5.0));
    assert!(found[2].explanation.contains("more of them"), "{:?}", found[2]);
}

#[test]
fn broken_code_has_no_findings() {
    for (path, code) in [
        ("a.rs", "fn f() { .unwrap() }"),
        ("a.py", "try:\nexcept"),
        ("a.js", "f().then(.catch("),
        ("a.go", "func f() { _ = "),
        ("a.rb", "begin rescue"),
        ("a.c", "p = malloc("),
        ("a.sh", "cd ("),
    ] {
        assert_eq!(find_smells(&SMELL, path, code), [], "{path}: {code}");
    }
}
