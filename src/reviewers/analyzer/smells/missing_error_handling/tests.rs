use super::*;
use crate::syntax::source::Parsers;

fn find_smells(path: &str, code: &str) -> Vec<Smell> {
    let language = Language::detect(path, code.as_bytes()).expect("a language");
    let mut parsers = Parsers::default();
    let source = parsers.parse(path, language, code.as_bytes()).expect("parses");
    let facts = FileFacts::from_parsed(&source);
    let mut out = Vec::new();
    check(&source, &facts, &Limits::default(), &mut out);
    out
}

#[test]
fn errors_that_are_ignored() {
    for (path, code, line, title) in [
        ("a.py", "try:\n    f()\nexcept:\n    g()\n", 3, "bare `except:`"),
        ("a.py", "try:\n    f()\nexcept Exception:\n    pass\n", 3, "swallows every error"),
        (
            "a.py",
            "try:\n    f()\nexcept (OSError, ValueError) as e:\n    ...\n",
            3,
            "a handler of `OSError, ValueError` is empty",
        ),
        ("a.rb", "begin\n  f\nrescue\nend\n", 3, "swallows every error"),
        ("a.rb", "def f\n  g\nrescue ArgumentError => e\n  nil\nend\n", 3, "is empty"),
        ("a.rb", "x = f rescue nil\n", 1, "`rescue nil`"),
        ("a.js", "try { f() } catch (e) {}", 1, "swallows"),
        ("a.js", "try { f() } catch {}", 1, "swallows"),
        ("a.ts", "f().catch(() => {})", 1, "`.catch()` with an empty function"),
        ("a.tsx", "try { f() } catch (e) { ; }", 1, "swallows"),
        ("a.js", "f().then(g)", 1, "no handler for its rejection"),
        ("a.js", "f().then(g).then(h).finally(i)", 1, "no handler for its rejection"),
        ("a.ts", "async function f() { await g() }\nfunction h() { f(); }", 2, "`f()` is asynchronous and not awaited"),
        ("a.js", "function h() { f(); }\nconst f = async () => { await g() }", 1, "`f()` is asynchronous"),
        ("a.ts", "class A { private async m() { await g() }\n n() { this.m(); } }", 2, "`m()` is asynchronous"),
        ("A.java", "class A { void f() { try { g(); } catch (Exception e) { } } }", 1, "swallows"),
        ("a.cs", "class A { void F() { try { G(); } catch { } } }", 1, "swallows"),
        ("a.cs", "class A { void F() { try { G(); } catch (IOException) { } } }", 1, "is empty"),
        ("a.cpp", "void f() { try { g(); } catch (...) { } }", 1, "swallows"),
        ("a.php", "<?php try { f(); } catch (Exception $e) { }", 1, "swallows"),
        ("a.php", "<?php @unlink($file);", 1, "`@unlink($file)` hides its errors"),
        ("a.go", "package a\nfunc f() { os.Remove(x) }", 2, "the error of `os.Remove` is ignored"),
        ("a.go", "package a\nfunc f() { _ = os.Remove(x) }", 2, "the result of `os.Remove` is thrown away"),
        (
            "a.go",
            "package a\nfunc f() { n, _ := strconv.Atoi(x); g(n) }",
            2,
            "the error of `strconv.Atoi` is assigned to `_`",
        ),
        (
            "a.go",
            "package a\nfunc f() { save(x) }\nfunc save(x T) error { return nil }",
            2,
            "the error of `save` is ignored",
        ),
        (
            "a.go",
            "package a\nfunc f() { v, _ := load(x); g(v) }\nfunc load(x T) (V, error) { return nil, nil }",
            2,
            "assigned to `_`",
        ),
        ("a.go", "package a\nfunc f() { if err := g(); err != nil { } }", 2, "does nothing"),
        ("a.py", "try:\n    f()\nexcept OSError:\n    pass  # TODO: log it\n", 3, "is empty"),
        ("a.js", "try { f() } catch (e) {\n  // FIXME handle\n  // this\n}", 1, "swallows"),
        ("a.go", "package a\nfunc f() { os.Remove(x) // XXX\n }", 2, "the error of `os.Remove` is ignored"),
        ("a.rs", "/// What it is.\nfn f() { g().unwrap(); }", 2, "`unwrap()` on `g()`"),
        ("a.rs", "fn f() {\n    // TODO: no panic\n    g().unwrap();\n}", 3, "`unwrap()` on `g()`"),
        ("a.rs", "fn f() { g().unwrap(); }", 1, "`unwrap()` on `g()`"),
        ("a.rs", "fn f() { std::fs::read(\"x\").unwrap(); }", 1, "`unwrap()` on `std::fs::read"),
        ("a.rs", "fn f() { File::open(\"x\").unwrap(); }", 1, "`unwrap()` on `File::open"),
        ("a.rs", "fn f() { g()\n.h()\n.unwrap(); }", 3, "`unwrap()` on"),
        ("a.rs", "fn f() { g().expect(\"\"); }", 1, "`expect(\"\")`"),
        ("a.rs", "fn f() { let _ = std::fs::remove_file(x); }", 1, "is thrown away"),
        ("a.rs", "fn f() { std::fs::remove_file(x).ok(); }", 1, "is thrown away"),
        ("a.rs", "fn f() { let _ = save(x); } fn save(x: T) -> io::Result<()> { Ok(()) }", 1, "the result of `save`"),
        ("a.c", "void f() {\n  read(fd, b, n);\n}", 2, "the return value of `read` is not checked"),
        ("a.c", "void f() {\n  char *p = malloc(n);\n  p[0] = 1;\n}", 2, "the result of `malloc` is used unchecked"),
        ("a.c", "void f() {\n  char *p;\n  p = (char *)malloc(n);\n  p[0] = 1;\n}", 3, "`malloc` is used unchecked"),
        ("a.cpp", "void f() {\n  FILE* in = fopen(name, mode);\n  use(in);\n}", 2, "`fopen` is used unchecked"),
        ("a.sh", "#!/bin/sh\ncd \"$x\"\nrm -rf *\n", 2, "may fail and the script goes on"),
        ("a.sh", "#!/bin/bash\nset -u\n(cd x; make)\n", 3, "`cd x` may fail"),
    ] {
        let found = find_smells(path, code);
        let shown: Vec<(u32, &str)> = found.iter().map(|smell| (smell.line_start, smell.title.as_str())).collect();
        assert!(found.len() == 1 && shown[0].0 == line && shown[0].1.contains(title), "{path}: {code}\n{shown:?}");
    }
}

#[test]
fn errors_that_are_handled() {
    for (path, code) in [
        ("a.py", "try:\n    f()\nexcept OSError:\n    pass  # it is gone already\n"),
        ("a.py", "try:\n    f()\nexcept OSError:\n    # it is gone already\n    pass\n"),
        ("a.py", "try:\n    import f\nexcept ImportError:\n    pass\n"),
        ("a.py", "try:\n    f()\nexcept:\n    g()\n    raise\n"),
        ("a.py", "try:\n    f()\nexcept Exception as e:\n    log(e)\n"),
        ("a.rb", "begin\n  f\nrescue\n  # it is gone already\nend\n"),
        ("a.rb", "begin\n  f\nrescue => e\n  log(e)\nend\nx = f rescue 1\n"),
        ("a.js", "try { f() } catch (e) { /* it is gone already */ }"),
        ("a.js", "f().then(g).catch(h); f().then(g, h); void f().then(g); x = f().then(g)"),
        (
            "a.ts",
            "async function f() { await g() }\nasync function h() { await f(); void f(); return f(); f().catch(i) }",
        ),
        ("a.js", "async function f() { try { await g() } catch (e) { log(e) } }\nf()"),
        ("A.java", "class A { void f() { try { g(); } catch (Exception ignored) { } } }"),
        ("a.cs", "class A { void F() { try { G(); } catch (OperationCanceledException) { } } }"),
        ("a.cpp", "void f() { try { g(); } catch (...) { // destructors must not throw\n } }"),
        ("a.php", "<?php if (@unlink($file) === false) { f(); } $x = @fopen($file); @trigger_error('x');"),
        (
            "a.go",
            "package a\nfunc f() error { defer x.Close(); _ = x.Close(); if err := os.Remove(x); err != nil { return err }; v, _ := m[k]; w, _ := x.(T); fmt.Println(v, w); return os.Remove(y) }",
        ),
        ("a.go", "package a\nfunc f() { _ = os.Remove(x) // it is gone already\n }"),
        ("a.go", "package a\nfunc f() { v, _ := os.LookupEnv(x); g(v) }"),
        (
            "a.rs",
            "fn f() -> R { g()?; g().expect(\"it was checked\"); x.lock().unwrap(); Regex::new(\"a\").unwrap(); write!(s, \"x\").unwrap(); g().unwrap_or(1) }",
        ),
        ("a.rs", "fn f() { if x.is_none() { return }\n x.unwrap(); }"),
        ("a.rs", "#[cfg(test)] mod tests { #[test] fn f() { g().unwrap(); } fn h() { g().unwrap(); } }"),
        ("a.rs", "fn f() {\n    // g is there: the TODO list says so.\n    g().unwrap();\n}"),
        ("a.rs", "fn f() { let _ = tx.send(x); let _guard = lock(); }"),
        (
            "a.c",
            "void f() { if (read(fd, b, n) < 0) g(); (void)write(fd, b, n); char *p = malloc(n);\n if (!p) return; p[0] = 1; }",
        ),
        ("a.c", "int f() { char *p = NULL; if ((p = malloc(n)) == NULL) return 1; return read(fd, p, n); }"),
        ("a.sh", "#!/bin/sh\ncd x || exit 1\ncd x && make\nif cd x; then :; fi\ncd -\ncd ..\ncd x # it is there\n"),
        ("a.sh", "#!/bin/sh\nset -eu\ncd x\n"),
        ("a.sh", "#!/bin/sh -e\ncd x\n"),
        ("a.sh", "#!/bin/bash\nset -o errexit\ncd x\n"),
        ("tests/a.py", "try:\n    f()\nexcept:\n    pass\n"),
    ] {
        let found = find_smells(path, code);
        let shown: Vec<(u32, &str)> = found.iter().map(|smell| (smell.line_start, smell.title.as_str())).collect();
        assert!(found.is_empty(), "{path}: {code}\n{shown:?}");
    }
}

#[test]
fn unwraps_of_one_function_are_not_a_flood() {
    let code =
        "fn f() {\n    a().unwrap();\n    b().unwrap();\n    c().unwrap();\n    d().unwrap();\n    e().unwrap();\n}\n";
    let found = find_smells("a.rs", code);
    assert_eq!(found.iter().map(|smell| smell.line_start).collect::<Vec<_>>(), [2, 3, 4]);
    assert!(found[2].figure == Some(5.0) && found[2].explanation.contains("more of them"), "{:?}", found[2]);
}

#[test]
fn broken_code_is_no_trouble() {
    for (path, code) in [
        ("a.rs", "fn f() { .unwrap() }"),
        ("a.py", "try:\nexcept"),
        ("a.js", "f().then(.catch("),
        ("a.go", "func f() { _ = "),
        ("a.rb", "begin rescue"),
        ("a.c", "p = malloc("),
        ("a.sh", "cd ("),
    ] {
        let _ = find_smells(path, code);
    }
}
