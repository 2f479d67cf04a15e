use super::super::test_support::{check_samples, find_smells};
use super::*;

#[test]
fn numbers_of_scripts_that_nothing_explains() {
    check_samples(
        &SMELL,
        r#"
//- a.py
def f(x):
    if x > 37: //~ p3 37 is not explained by a name
        return x * 1.19 //~ p3 1.19 is not explained by a name
    g(x, 43) //~ p3 43 is not explained by a name
//- a.js
function f(x) { if (x > 37) { return x * 41 } g(x, 43) }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//~ p3 43 is not explained by a name
//- a.ts
function f(x: number) { if (x > 37) { return x * 41 } g(x, 43) }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//~ p3 43 is not explained by a name
//- a.tsx
function F(x) { if (x > 37) return <p>{x * 41}</p>; }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//- a.rb
def f(x)
  return x * 41 if x > 37
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
  g(x, 43) //~ p3 43 is not explained by a name
end
//- a.php
<?php function f($x) { if ($x > 37) { return $x * 41; } g($x, 43); }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//~ p3 43 is not explained by a name
//- a.sh
f() { if [ "$1" -gt 37 ]; then echo $(( $1 * 41 )); fi; }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//- a.py
def f(x):
    return x > 37 and y > 37 //~ p3 37 is not explained by a name
"#,
    );
}

#[test]
fn numbers_that_nothing_explains() {
    check_samples(
        &SMELL,
        r#"
//- a.rs
fn f(x: u32) -> u32 { if x > 37 { x * 41 } else { g(x, 43) } }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//~ p3 43 is not explained by a name
//- a.rs
fn f(x: &mut u32) { *x *= 37; } //~ p3 37 is not explained by a name
//- a.go
package a
func f(x int) int { if x > 37 { return x * 41 }; g(x, 43); return 0 }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//~ p3 43 is not explained by a name
//- A.java
class A { int f(int x) { if (x > 37) { return x * 41; } g(x, 43); return 0; } }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//~ p3 43 is not explained by a name
//- a.c
int f(int x) { if (x > 37) { return x * 41; } g(x, 43); return 0; }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//~ p3 43 is not explained by a name
//- a.cpp
int f(int x) { if (x > 37) { return x * 41; } g(x, 43); return 0; }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//~ p3 43 is not explained by a name
//- a.cs
class A { int F(int x) { if (x > 37) { return x * 41; } G(x, 43); return 0; } }
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//~ p3 43 is not explained by a name
"#,
    );
}

#[test]
fn numbers_of_scripts_that_are_explained() {
    check_samples(
        &SMELL,
        r#"
//- a.py
LIMIT = 37
def f(a=37, *, b: int = 37):
    g(timeout=37)
    x = {'a': 37}
    return [37, a > 37][37]
//- a.py
def f():
    if response.status_code == 404: abort(404)
    return minutes * 60 + s[3:37] + '-' * 40
//- a.js
const a = 37; function f(b = 37) { let c = 37; o = { d: 37 }; res.status(404); typeof x === 'number'; x[37] }
//- a.ts
enum E { A = 37 } class C { size = 37; f() { setTimeout(g, 300) } }
//- a.tsx
const F = () => <Grid columns={37} />
//- a.rb
LIMIT = 37
def f(a = 37, b: 37)
  g(timeout: 37)
  a[37]
  x = 37
  response.status == 404
end
//- a.php
<?php const A = 37; class B { const C = 37; private $d = 37; function f($e = 37) { g(timeout: 37); $x = ['a' => 37]; } }
//- a.sh
LIMIT=37
sleep 37
head -n 37
exit 3
//- tests/a.py
def f(x):
    return x > 37
//- a.js
x = Math.random().toString(36); d = 24 * 60 * 60 * 1000 * days
"#,
    );
}

#[test]
fn numbers_that_are_explained() {
    check_samples(
        &SMELL,
        r#"
//- a.rs
const A: u32 = 37 * 3; static B: [u8; 37] = [37; 37]; enum E { A = 37 }
//- a.rs
fn f() { let width = 37; let t = Duration::new(37, 0); Foo { size: 37 }; a[37]; 0..37; x & 37; x << 37; x == 0x37 }
//- a.rs
fn f() { x == -1; x * 2; x * 100; x + 3; v.len() == 3; sleep(37); 37 * SECOND; x > 37 // the limit
 }
//- a.rs
#[test] fn f() { assert(x > 37) } #[cfg(test)] mod tests { fn g() { x > 37; } }
//- a.go
package a
const A = 37
var b = T{C: 37}
func f() { x := 37; time.Sleep(37 * time.Second); a[37] = []int{37}; c.JSON(404, x) }
//- A.java
class A { static final int B = x * 37; @Ann(37) int[] c = {37}; enum E { A(37) } void f() { int size = 37; } }
//- a.c
#define A 37
enum E { B = 37 };
static const int c = x * 37;
int d[37] = {37};
int f() { return strncmp(s, "file:", 5); }
//- a.cpp
constexpr int a = x * 37; struct S { int b = 37; }; void f(int c = 37) { auto t = std::array<int, 37>(); }
//- a.cs
class A { const int B = 37; [Ann(37)] void F(int x = 37) { G(timeout: 37, x); var size = new Size(37, 41); } enum E { A = 37 } }
//- A.java
class A { public int hashCode() { return 31 * a + b; } }
//- a.c
int f() { return g((unsigned char *) "surname", 7) || sizeof(x) == 8; }
//- a.go
package a
func f() { w.WriteHeader(503); http.Error(w, s, 500) }
"#,
    );
}

#[test]
fn texts_that_are_written_out_three_times() {
    check_samples(
        &SMELL,
        r#"
//- a.py
def f(a):
    g('reader')
    h('reader')
    return a == 'reader' //~ p3 "reader" is written out 3 times
//- a.py
def f(a):
    g('reader')
    return a == 'reader'
//- a.py
def f(a):
    log('reader')
    logger.info('reader')
    print('reader')
//- a.py
'reader'
READER = 'reader'
x = {'reader': 1}
f(**{'reader': 2})
//- a.py
def f(a):
    g('read')
    h('read')
    return a == 'read'
//- a.js
f('reader'); g('reader'); if (h === 'reader') {} //~ p3 "reader" is written out 3 times
//- a.js
import a from 'reader'; import b from 'reader'; require('reader'); f(typeof x === 'reader')
//- a.ts
type A = 'reader'; if (a === 'reader' || b === 'reader' || c === 'reader') {}
//- a.rs
fn f() { g("reader"); h(r"reader"); i("reader"); } //~ p3 "reader" is written out 3 times
//- a.go
package a
func f() { g("reader"); h("reader"); i(`reader`) } //~ p3 "reader" is written out 3 times
//- A.java
class A { void f() { g("reader"); h("reader"); i("reader"); } } //~ p3 "reader" is written out 3 times
//- a.c
void f() { g("reader"); h("reader"); i("reader"); } //~ p3 "reader" is written out 3 times
//- a.c
void f() { printf("reader"); printf("reader"); printf("reader"); }
//- a.cs
class A { void F() { G("reader"); H("reader"); I(@"reader"); } } //~ p3 "reader" is written out 3 times
//- a.rb
def f
  g('reader')
  h('reader')
  i('reader') //~ p3 "reader" is written out 3 times
end
//- a.php
<?php g('reader'); h('reader'); i('reader'); //~ p3 "reader" is written out 3 times
//- tests/a.js
f('reader'); g('reader'); h('reader')
"#,
    );
}

#[test]
fn one_finding_per_literal_and_not_many_per_function() {
    let found = check_samples(
        &SMELL,
        r#"
//- a.py
def f(x):
    return x > 37 or x > 37 or x > 41 or x > 43 or x > 47 or x > 53
//~ p3 37 is not explained by a name
//~ p3 41 is not explained by a name
//~ p3 43 is not explained by a name
"#,
    );
    assert_eq!(found[0].figure, Some(2.0));
    assert!(found[0].explanation.contains("2 times"), "{}", found[0].explanation);
    assert!(found[2].explanation.contains("2 more here: 47, 53"), "{}", found[2].explanation);
}

#[test]
fn literals_have_values() {
    for (literal, value) in [
        ("37", Some(37.0)),
        ("1_000u32", Some(1000.0)),
        ("3.5f", Some(3.5)),
        ("1e3", Some(1000.0)),
        ("30L", Some(30.0)),
        ("0", Some(0.0)),
        ("0.5", Some(0.5)),
        ("0x1F", None),
        ("0755", None),
        ("0b1", None),
        ("", None),
        ("$x", None),
    ] {
        assert_eq!(parse_literal(literal), value, "{literal}");
    }
}

#[test]
fn broken_code_has_only_the_numbers_that_can_be_read() {
    for (path, code, expected) in [
        ("a.rs", "fn f( { x > 37", &["37 is not explained by a name"][..]),
        ("a.py", "if x > 37", &["37 is not explained by a name"]),
        ("a.js", "f(x,, 37 *", &[]),
        ("a.go", "func (", &[]),
        ("a.php", "<?php x(", &[]),
    ] {
        let found = find_smells(&SMELL, path, code);
        let titles: Vec<&str> = found.iter().map(|smell| smell.title.as_str()).collect();
        assert_eq!(titles, expected, "{path}: {code}");
    }
}
