use super::*;
use crate::syntax::source::Parsers;

/// Returns the reported literals in order, with repeated texts in quotes.
fn find_literals(path: &str, code: &str) -> Vec<String> {
    let language = Language::detect(path, code.as_bytes()).expect("a language");
    let mut parsers = Parsers::default();
    let source = parsers.parse(path, language, code.as_bytes()).expect("parses");
    let facts = FileFacts::from_parsed(&source);
    let mut out = Vec::new();
    check(&source, &facts, &Limits::default(), &FileRedactor::default(), &mut out);
    out.iter().map(|smell| smell.title.split(" is ").next().unwrap_or("").to_owned()).collect()
}

#[test]
fn numbers_that_nothing_explains() {
    for (path, code, expected) in [
        ("a.rs", "fn f(x: u32) -> u32 { if x > 37 { x * 41 } else { g(x, 43) } }", "37 41 43"),
        ("a.rs", "fn f(x: &mut u32) { *x *= 37; }", "37"),
        ("a.py", "def f(x):\n    if x > 37:\n        return x * 1.19\n    g(x, 43)\n", "37 1.19 43"),
        ("a.js", "function f(x) { if (x > 37) { return x * 41 } g(x, 43) }", "37 41 43"),
        ("a.ts", "function f(x: number) { if (x > 37) { return x * 41 } g(x, 43) }", "37 41 43"),
        ("a.tsx", "function F(x) { if (x > 37) return <p>{x * 41}</p>; }", "37 41"),
        ("a.go", "package a\nfunc f(x int) int { if x > 37 { return x * 41 }; g(x, 43); return 0 }", "37 41 43"),
        ("A.java", "class A { int f(int x) { if (x > 37) { return x * 41; } g(x, 43); return 0; } }", "37 41 43"),
        ("a.c", "int f(int x) { if (x > 37) { return x * 41; } g(x, 43); return 0; }", "37 41 43"),
        ("a.cpp", "int f(int x) { if (x > 37) { return x * 41; } g(x, 43); return 0; }", "37 41 43"),
        ("a.cs", "class A { int F(int x) { if (x > 37) { return x * 41; } G(x, 43); return 0; } }", "37 41 43"),
        ("a.rb", "def f(x)\n  return x * 41 if x > 37\n  g(x, 43)\nend\n", "41 37 43"),
        ("a.php", "<?php function f($x) { if ($x > 37) { return $x * 41; } g($x, 43); }", "37 41 43"),
        ("a.sh", "f() { if [ \"$1\" -gt 37 ]; then echo $(( $1 * 41 )); fi; }", "37 41"),
        ("a.py", "def f(x):\n    return x > 37 and y > 37\n", "37"),
    ] {
        let mut found = find_literals(path, code);
        let mut expected: Vec<&str> = expected.split(' ').collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{path}: {code}");
    }
}

#[test]
fn numbers_that_are_explained() {
    for (path, code) in [
        ("a.rs", "const A: u32 = 37 * 3; static B: [u8; 37] = [37; 37]; enum E { A = 37 }"),
        (
            "a.rs",
            "fn f() { let width = 37; let t = Duration::new(37, 0); Foo { size: 37 }; a[37]; 0..37; x & 37; x << 37; x == 0x37 }",
        ),
        (
            "a.rs",
            "fn f() { x == -1; x * 2; x * 100; x + 3; v.len() == 3; sleep(37); 37 * SECOND; x > 37 // the limit\n }",
        ),
        ("a.rs", "#[test] fn f() { assert(x > 37) } #[cfg(test)] mod tests { fn g() { x > 37; } }"),
        (
            "a.py",
            "LIMIT = 37\ndef f(a=37, *, b: int = 37):\n    g(timeout=37)\n    x = {'a': 37}\n    return [37, a > 37][37]\n",
        ),
        (
            "a.py",
            "def f():\n    if response.status_code == 404: abort(404)\n    return minutes * 60 + s[3:37] + '-' * 40\n",
        ),
        (
            "a.js",
            "const a = 37; function f(b = 37) { let c = 37; o = { d: 37 }; res.status(404); typeof x === 'number'; x[37] }",
        ),
        ("a.ts", "enum E { A = 37 } class C { size = 37; f() { setTimeout(g, 300) } }"),
        ("a.tsx", "const F = () => <Grid columns={37} />"),
        (
            "a.go",
            "package a\nconst A = 37\nvar b = T{C: 37}\nfunc f() { x := 37; time.Sleep(37 * time.Second); a[37] = []int{37}; c.JSON(404, x) }",
        ),
        (
            "A.java",
            "class A { static final int B = x * 37; @Ann(37) int[] c = {37}; enum E { A(37) } void f() { int size = 37; } }",
        ),
        (
            "a.c",
            "#define A 37\nenum E { B = 37 };\nstatic const int c = x * 37;\nint d[37] = {37};\nint f() { return strncmp(s, \"file:\", 5); }",
        ),
        (
            "a.cpp",
            "constexpr int a = x * 37; struct S { int b = 37; }; void f(int c = 37) { auto t = std::array<int, 37>(); }",
        ),
        (
            "a.cs",
            "class A { const int B = 37; [Ann(37)] void F(int x = 37) { G(timeout: 37, x); var size = new Size(37, 41); } enum E { A = 37 } }",
        ),
        (
            "a.rb",
            "LIMIT = 37\ndef f(a = 37, b: 37)\n  g(timeout: 37)\n  a[37]\n  x = 37\n  response.status == 404\nend\n",
        ),
        (
            "a.php",
            "<?php const A = 37; class B { const C = 37; private $d = 37; function f($e = 37) { g(timeout: 37); $x = ['a' => 37]; } }",
        ),
        ("a.sh", "LIMIT=37\nsleep 37\nhead -n 37\nexit 3\n"),
        ("tests/a.py", "def f(x):\n    return x > 37\n"),
        ("A.java", "class A { public int hashCode() { return 31 * a + b; } }"),
        ("a.c", "int f() { return g((unsigned char *) \"surname\", 7) || sizeof(x) == 8; }"),
        ("a.go", "package a\nfunc f() { w.WriteHeader(503); http.Error(w, s, 500) }"),
        ("a.js", "x = Math.random().toString(36); d = 24 * 60 * 60 * 1000 * days"),
    ] {
        assert_eq!(find_literals(path, code), Vec::<String>::new(), "{path}: {code}");
    }
}

#[test]
fn texts_that_are_written_out_three_times() {
    for (path, code, reported) in [
        ("a.py", "def f(a):\n    g('reader')\n    h('reader')\n    return a == 'reader'\n", true),
        ("a.py", "def f(a):\n    g('reader')\n    return a == 'reader'\n", false),
        ("a.py", "def f(a):\n    log('reader')\n    logger.info('reader')\n    print('reader')\n", false),
        ("a.py", "'reader'\nREADER = 'reader'\nx = {'reader': 1}\nf(**{'reader': 2})\n", false),
        ("a.py", "def f(a):\n    g('read')\n    h('read')\n    return a == 'read'\n", false),
        ("a.js", "f('reader'); g('reader'); if (h === 'reader') {}", true),
        ("a.js", "import a from 'reader'; import b from 'reader'; require('reader'); f(typeof x === 'reader')", false),
        ("a.ts", "type A = 'reader'; if (a === 'reader' || b === 'reader' || c === 'reader') {}", false),
        ("a.rs", "fn f() { g(\"reader\"); h(r\"reader\"); i(\"reader\"); }", true),
        ("a.go", "package a\nfunc f() { g(\"reader\"); h(\"reader\"); i(`reader`) }", true),
        ("A.java", "class A { void f() { g(\"reader\"); h(\"reader\"); i(\"reader\"); } }", true),
        ("a.c", "void f() { g(\"reader\"); h(\"reader\"); i(\"reader\"); }", true),
        ("a.c", "void f() { printf(\"reader\"); printf(\"reader\"); printf(\"reader\"); }", false),
        ("a.cs", "class A { void F() { G(\"reader\"); H(\"reader\"); I(@\"reader\"); } }", true),
        ("a.rb", "def f\n  g('reader')\n  h('reader')\n  i('reader')\nend\n", true),
        ("a.php", "<?php g('reader'); h('reader'); i('reader');", true),
        ("tests/a.js", "f('reader'); g('reader'); h('reader')", false),
    ] {
        let found = find_literals(path, code);
        let expected = if reported { "[\"\\\"reader\\\"\"]" } else { "[]" };
        assert_eq!(format!("{found:?}"), expected, "{path}: {code}");
    }
}

#[test]
fn one_finding_per_literal_and_not_many_per_function() {
    let code = "def f(x):\n    return x > 37 or x > 37 or x > 41 or x > 43 or x > 47 or x > 53\n";
    let mut parsers = Parsers::default();
    let source = parsers.parse("a.py", Language::Python, code.as_bytes()).expect("parses");
    let mut out = Vec::new();
    check(&source, &FileFacts::from_parsed(&source), &Limits::default(), &FileRedactor::default(), &mut out);
    assert_eq!(out.len(), 3);
    assert!(out[0].explanation.contains("2 times") && out[0].figure == Some(2.0), "{}", out[0].explanation);
    assert!(out[2].explanation.contains("2 more here: 47, 53"), "{}", out[2].explanation);
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
fn broken_code_is_no_trouble() {
    for (path, code) in [
        ("a.rs", "fn f( { x > 37"),
        ("a.py", "if x > 37"),
        ("a.js", "f(x,, 37 *"),
        ("a.go", "func ("),
        ("a.php", "<?php x("),
    ] {
        let _ = find_literals(path, code);
    }
}
