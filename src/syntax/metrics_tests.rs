//! Tests for functions and their exact metrics, per language.

use crate::syntax::facts::{FileFacts, symbol_around};
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Formats the functions as `name lines nloc cyclomatic cognitive parameters nesting`, one per line, with `test` at the
/// end for test code.
fn read_facts(path: &str, code: &str) -> FileFacts {
    let language = Language::detect(path, code.as_bytes()).expect("a language of ours");
    let mut parsers = Parsers::default();
    let source = parsers.parse(path, language, code.as_bytes()).expect("parses");
    FileFacts::from_parsed(&source)
}

fn figures(path: &str, code: &str) -> String {
    let rows: Vec<String> = read_facts(path, code)
        .functions
        .iter()
        .map(|f| {
            let test = if f.is_test { " test" } else { "" };
            let lines = format!("{}-{}", f.line_start, f.line_end);
            let figures = format!("{} {} {} {} {}", f.nloc, f.cyclomatic, f.cognitive, f.parameters, f.nesting);
            format!("{} {lines} {figures}{test}", f.name)
        })
        .collect();
    rows.join("\n")
}

fn check(path: &str, code: &str, expected: &[&str]) {
    assert_eq!(figures(path, code), expected.join("\n"), "{path}:\n{code}");
}

#[test]
fn a_line_has_the_name_of_the_innermost_function_with_a_name_unless_the_title_says_it() {
    let code = "package a\n\nfunc send() {\n\tgo func() {\n\t\tif a > b {\n\t\t\treturn\n\t\t}\n\t}()\n}\n";
    let functions = read_facts("a.go", code).functions;
    let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["send", "(anonymous)"]);
    for (line, title, expected) in [
        (1, "Dead code", None),
        (3, "Dead code", Some("send")),
        (6, "Dead code", Some("send")),
        (6, "`send` is long", None),
    ] {
        assert_eq!(symbol_around(&functions, line, title), expected, "{line}: {title}");
    }
}

#[test]
fn rust() {
    check(
        "a.rs",
        r#"
/// Documentation.
pub fn plain(a: u8, b: &str) -> u8 {
    // a comment

    if a > 1 && b.is_empty() || a == 7 {
        1
    } else if a == 2 {
        2
    } else {
        3
    }
}

struct Parser { at: usize }

impl Parser {
    fn next(&mut self, limit: usize) -> Option<u8> {
        for i in 0..limit {
            while i > 2 {
                match i {
                    3 => break,
                    4 | 5 if limit > 9 => continue,
                    _ => {}
                }
            }
        }
        let read = |x: usize| if x > 1 { 1 } else { 2 };
        let value = self.read()?;
        Some(value)
    }
}

fn labels() {
    'outer: loop {
        loop { break 'outer; }
    }
}

fn calls_itself(n: u64) -> u64 { if n == 0 { 1 } else { n * calls_itself(n - 1) } }

#[cfg(test)]
mod tests {
    fn helper() {}
    #[test]
    fn works() { assert!(true); }
}
"#,
        &[
            "plain 3-13 9 5 5 2 1",
            "Parser.next 18-31 14 9 9 1 3",
            "labels 34-38 5 3 4 0 2",
            "calls_itself 40-40 1 2 3 1 1",
            "helper 44-44 1 1 0 0 0 test",
            "works 46-46 1 1 0 0 0 test",
        ],
    );
}

#[test]
fn python() {
    check(
        "a.py",
        r#"
@decorated(
    1
)
def f(a, b=None, *args, c, **kw):
    """Documentation
    of two lines."""
    if a:  # why
        return [x for x in b if x]
    elif b and c or a:
        pass
    else:
        try:
            a()
        except (KeyError, ValueError):
            raise
        finally:
            b()

    text = """
    not documentation
    """
    return 1 if a else 2


class A:
    def g(self, x):
        def inner():
            while x:
                pass
        return inner

    async def h(cls): return lambda y: y or 1

def test_it(): pass
"#,
        &[
            "f 5-23 16 10 8 5 2",
            "A.g 27-31 3 1 0 1 0",
            "inner 28-30 3 2 1 0 1",
            "A.h 33-33 1 2 1 0 0",
            "test_it 35-35 1 1 0 0 0 test",
        ],
    );
    check(
        "b.py",
        "match x:\n  case 1: pass\ndef f(x):\n  match x:\n    case 1: pass\n    case _: pass\n",
        &["f 3-6 4 3 1 1 1"],
    );
}

#[test]
fn javascript_and_typescript() {
    let code = r#"
function f(a, b = 1, { c = 2 }) {
  /* a comment
     of two lines */
  if (a ?? b) return a ? 1 : 2;
  switch (a) {
    case 1:
    case 2: break;
    default: throw `
      ${a}`;
  }
}
const g = async (x) => {
  try { await x } catch (e) { return e || 1 }
};
class A extends B {
  field = 1;
  m() {
    return [1].map(x => x && 1);
  }
  static get n() { return 1 }
}
export default function () { outer: for (;;) { for (;;) continue outer; } }
obj.prop = function named() {};
"#;
    for path in ["a.js", "a.ts", "a.tsx", "a.mjs"] {
        check(
            path,
            code,
            &[
                "f 2-12 9 8 4 3 1",
                "g 13-15 3 3 2 1 1",
                "A.m 18-20 3 1 0 0 0",
                "(anonymous) 19-19 1 2 1 1 0",
                "A.n 21-21 1 1 0 0 0",
                "(anonymous) 23-23 1 3 4 0 2",
                "named 24-24 1 1 0 0 0",
            ],
        );
    }
    check(
        "b.ts",
        "interface I { f(): void }\nabstract class A {\n  constructor(private a: string, b?: number, c = 1) {}\n  abstract g(): void;\n}\ndeclare function d(): void;\nfunction h(this: A, x: number): x is 1 { return true }\n",
        &["A.constructor 3-3 1 2 0 3 0", "h 7-7 1 1 0 1 0"],
    );
    check("a.spec.ts", "it('works', () => {})\n", &["(anonymous) 1-1 1 1 0 0 0 test"]);
    check(
        "b.js",
        "describe('x', function () { const y = () => 1 })\n",
        &["(anonymous) 1-1 1 1 0 0 0 test", "y 1-1 1 1 0 0 0 test"],
    );
}

#[test]
fn go() {
    check(
        "a.go",
        r#"package a

type S struct {
	a, b int
}

func (s *S[T]) Do(a, b int, c string) (err error) {
	go func() {
		if a > b {
			return
		}
	}()
	for i := range c {
		select {
		case <-x:
		case y := <-z:
		default:
		}
	}
	switch {
	case a > 1 && b > 1:
	}
	return nil
}

func asm() int

func TestX(t *testing.T) {}
"#,
        &["S.Do 7-24 14 6 5 3 2", "(anonymous) 8-12 5 2 1 0 1", "TestX 28-28 1 1 0 1 0 test"],
    );
}

#[test]
fn java() {
    check(
        "A.java",
        r#"
class A {
    private int x;

    @Override
    public Map<String, ? extends B> f(int a, String... b) throws E {
        // a comment
        for (int i = 0; i < 3; i++) {
            if (a > 1 ? b : c) continue;
        }
        run(() -> { if (a) b(); });
        new Thread() {
            @Override
            public void run() {
                while (true) { }
            }
        };
        return switch (a) { case 1, 2 -> 1; default -> 2; };
    }

    A() { super(); }
    abstract void g();
    @Test void h() {}
}
"#,
        &["A.f 6-19 11 6 8 2 2", "run 14-16 3 2 1 0 1", "A.A 21-21 1 1 0 0 0", "A.h 23-23 1 1 0 0 0 test"],
    );
}

#[test]
fn c_and_cpp() {
    check(
        "a.c",
        r#"
#define TWICE(x) if (x) \
    x
static struct s *
f(int a, void (*b)(int), ...)
{
#ifdef DEBUG
    log();
#else
    nolog();
#endif
    do { a--; } while (a && b);
    switch (a) { case 1: case 2: goto out; }
out:
    return a ? 1 : 0;
}
int g(void) { return 1; }
int h(void);
"#,
        &["f 5-16 9 7 5 2 1", "g 17-17 1 1 0 0 0"],
    );
    check(
        "a.cpp",
        r#"
namespace n {
class A : public B {
  int x, y;
  static int z;
 public:
  explicit A(int v)
      : x(v) {}
  ~A() = default;
  template <typename T>
  bool operator==(const T&& o) const {
    auto&& r = o;
    for (auto& i : r) { if (i || x) return true; }
    return std::any_of(a, b, [&](int i) { return i ? 1 : 0; });
  }
};
void A::run(int i) { try { go(); } catch (...) { } }
}
TEST_CASE("x") {
  CHECK(1);
}
"#,
        &[
            "A.A 7-8 2 1 0 1 0",
            "A.operator== 11-15 5 5 6 1 2",
            "A.run 17-17 1 2 1 1 1",
            "TEST_CASE 19-21 3 1 0 0 0 test",
        ],
    );
}

#[test]
fn csharp() {
    check(
        "a.cs",
        r#"
class A {
    int x;
    public string Name { get; set; }
    public async Task<int> F(int a, string b = null) {
        foreach (var i in a) {
            if (i == 1) { continue; }
        }
        int Local(int y) => y > 1 ? 1 : 0;
        return a ?? Local(1);
    }
    public A(int a) : base(a) { }
    public static A operator +(A a, A b) => a;
    [Fact]
    public void T() { }
}
"#,
        &["A.F 5-11 7 5 5 2 2", "A.A 12-12 1 1 0 1 0", "A.operator 13-13 1 1 0 2 0", "A.T 15-15 1 1 0 0 0 test"],
    );
}

#[test]
fn ruby() {
    check(
        "a.rb",
        r#"
class A
  def f(a, b = 1, *c, &d)
    # a comment
    return 1 if a
    if a && b
      c.each { |x| puts x unless x }
    elsif b
      2
    else
      3
    end
  rescue E => e
    raise
  end

  def self.g
    while true do end
  end
end
"#,
        &["A.f 3-15 12 7 9 4 1", "A.g 17-19 3 2 1 0 1"],
    );
}

#[test]
fn php() {
    check(
        "a.php",
        r#"<?php
class A {
    private $x = 1;
    public function f($a, ?B $b = null): ?int {
        foreach ($a as $x) {
            if ($x && $b) { continue 2; } elseif ($b) { } else { }
        }
        $c = function () use ($a) { return $a ? 1 : 2; };
        return match ($a) { 1 => 2, default => 3 };
    }
    abstract function g();
}
function h() { try { } catch (E $e) { } }
"#,
        &["A.f 4-10 7 7 10 2 2", "h 13-13 1 2 1 0 1"],
    );
}

#[test]
fn bash() {
    check(
        "a.sh",
        r#"#!/bin/bash
# a comment
f() {
  if [ -z "$1" ] && true; then
    echo 1
  elif false; then
    for i in 1 2; do echo "$i"; done
  else
    case $1 in
      a) ;;
      b) ;;
    esac
  fi
}
function g { while read -r x; do cat <<EOT
text
EOT
done }
"#,
        &["f 3-14 12 7 8 0 2", "g 15-18 4 2 1 0 1"],
    );
}

#[test]
fn partial_trees_and_odd_texts_are_tolerated() {
    for (path, code) in [
        ("a.rs", "fn f( { if x { "),
        ("a.py", "def f(:\n  if\n"),
        ("a.js", "function (\n=> {{{"),
        ("a.go", "func ("),
        ("A.java", "class { void f( { @"),
        ("a.c", "#if\n#define X \\"),
        ("a.cpp", "template <class"),
        ("a.rb", "def"),
        ("a.php", "<?php class { function"),
        ("a.sh", "f() { if"),
        ("a.cs", "class A { int f( =>"),
        ("a.ts", "class A { m( {"),
        ("a.py", "\u{feff}\0\r\ndef \u{e9}(): '''"),
        ("a.c", ""),
    ] {
        for part in (0..=code.len()).filter_map(|cut| code.get(..cut)) {
            let lines = 1..=part.split('\n').count() as u32;
            for function in read_facts(path, part).functions {
                let within = lines.contains(&function.line_start) && lines.contains(&function.line_end);
                assert!(within && function.line_start <= function.line_end, "{path}: {part:?}: {function:?}");
                assert!(function.nloc <= *lines.end(), "{path}: {part:?}: {function:?}");
            }
        }
    }
}
