//! Tests the forms learned from edits in each language, and the form of each place.

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::syntax::language::Language;
use crate::syntax::language::Language::*;
use crate::syntax::source::Parsers;

fn learned(language: Language, before: &str, after: &str) -> Vec<String> {
    let edits = extract_edits(&mut Parsers::default(), language, before.as_bytes(), after.as_bytes());
    edits.iter().map(|edit| format!("{}: {} => {}", edit.edit.word(), edit.broken, edit.fixed)).collect()
}

/// Wraps code in a function of the language.
fn around(language: Language, code: &str) -> String {
    let indented = |code: &str| code.lines().map(|line| format!("    {line}\n")).collect::<String>();
    match language {
        Rust => format!("fn f() {{\n{code}\n}}\n"),
        Python => format!("def f():\n{}", indented(code)),
        JavaScript | TypeScript | Tsx => format!("function f() {{\n{code}\n}}\n"),
        Go => format!("package p\n\nfunc f() {{\n{code}\n}}\n"),
        Java | CSharp => format!("class A {{\n  void f() {{\n{code}\n  }}\n}}\n"),
        Kotlin => format!("fun f() {{\n{code}\n}}\n"),
        Scala => format!("def f() = {{\n{code}\n}}\n"),
        Swift => format!("func f() {{\n{code}\n}}\n"),
        C | Cpp => format!("void f() {{\n{code}\n}}\n"),
        Ruby => format!("def f\n{}end\n", indented(code)),
        Php => format!("<?php\nfunction f() {{\n{code}\n}}\n"),
        Bash => format!("f() {{\n{code}\n}}\n"),
    }
}

#[rstest]
#[case(
    Java,
    "if (name == null) { return; }",
    "if (name != null) { return; }",
    "wrong_operator: VARIABLE == null => VARIABLE != null"
)]
#[case(
    Java,
    "if (name == null) { return; }",
    "if (name != null) { return; }",
    "wrong_operator: if ( VARIABLE == null ) BODY => if ( VARIABLE != null ) BODY"
)]
#[case(
    Java,
    "for (int i = 0; i <= n; i++) { g(i); }",
    "for (int i = 0; i < n; i++) { g(i); }",
    "wrong_operator: VARIABLE <= VARIABLE_2 => VARIABLE < VARIABLE_2"
)]
#[case::kotlin(
    Kotlin,
    "val x = list.first()",
    "val x = list.firstOrNull() ?: return",
    "wrong_call: VARIABLE . first ( ) => VARIABLE . firstOrNull ( ) ?: return"
)]
#[case::scala(
    Scala,
    "val x = list.filter(p).headOption",
    "val x = list.find(p)",
    "wrong_call: VARIABLE . filter ( VARIABLE_2 ) . headOption => VARIABLE . find ( VARIABLE_2 )"
)]
#[case::swift(
    Swift,
    "let x = list.filter { $0.a }.first",
    "let x = list.first { $0.a }",
    "wrong_value: VARIABLE . filter { VARIABLE_2 . VARIABLE_3 } . first => VARIABLE . first { VARIABLE_2 . VARIABLE_3 }"
)]
#[case::wrapped(
    Java,
    "user.save(secret, 3);",
    "if (user != null) { user.save(secret, 3); }",
    "missing_check: VARIABLE . FUNCTION_NAME ( VARIABLE_2 , NUMBER ) ; => if ( VARIABLE != null ) { VARIABLE . FUNCTION_NAME ( VARIABLE_2 , NUMBER ) ; }"
)]
#[case::put_before(
    Java,
    "int x = list.get(i);",
    "if (list.isEmpty()) { return; } int x = list.get(i);",
    "missing_check: int VARIABLE = VARIABLE_2 . get ( VARIABLE_3 ) ; => if ( VARIABLE_2 . isEmpty ( ) ) { return ; } int VARIABLE = VARIABLE_2 . get ( VARIABLE_3 ) ;"
)]
#[case::put_after(
    Java,
    "lock.lock(); a = g(b);",
    "lock.lock(); a = g(b); lock.unlock();",
    "missing_statement: VARIABLE = FUNCTION_NAME ( VARIABLE_2 ) ; => VARIABLE = FUNCTION_NAME ( VARIABLE_2 ) ; VARIABLE_3 . unlock ( ) ;"
)]
#[case::taken_out(Java, "a = 1; b.close();", "a = 1;", "needless_statement: VARIABLE . close ( ) ; => ")]
#[case(
    Java,
    "return a.b(c).toString();",
    "return String.valueOf(a.b(c));",
    "wrong_call: return EXPRESSION . toString ( ) ; => return String . valueOf ( EXPRESSION ) ;"
)]
#[case(
    Python,
    "if x == None:\n    g()",
    "if x is None:\n    g()",
    "wrong_operator: VARIABLE == None => VARIABLE is None"
)]
#[case(
    Python,
    "if x not in y:\n    g()",
    "if x in y:\n    g()",
    "wrong_operator: VARIABLE not in VARIABLE_2 => VARIABLE in VARIABLE_2"
)]
#[case(
    Python,
    "a = x.get(k)",
    "try:\n    a = x.get(k)\nexcept KeyError:\n    a = None",
    "missing_error_handling: VARIABLE = VARIABLE_2 . get ( VARIABLE_3 ) => try : VARIABLE = VARIABLE_2 . get ( VARIABLE_3 ) except KeyError : VARIABLE = None"
)]
#[case(Python, "return len(x) - 1", "return len(x)", "wrong_value: return EXPRESSION - NUMBER => return EXPRESSION")]
#[case(
    Rust,
    "let y = x.unwrap();",
    "let y = x.unwrap_or(0);",
    "wrong_call: VARIABLE . unwrap ( ) => VARIABLE . unwrap_or ( NUMBER )"
)]
#[case(
    Rust,
    "let y = g(x);",
    "let y = g(x)?;",
    "wrong_operator: let VARIABLE = FUNCTION_NAME ( VARIABLE_2 ) ; => let VARIABLE = FUNCTION_NAME ( VARIABLE_2 ) ? ;"
)]
#[case(
    JavaScript,
    "return a == b.c.d(e)",
    "return a === b.c.d(e)",
    "wrong_operator: VARIABLE == EXPRESSION => VARIABLE === EXPRESSION"
)]
#[case(
    TypeScript,
    "const b = g(a);",
    "const b = await g(a);",
    "other: const VARIABLE = FUNCTION_NAME ( VARIABLE_2 ) ; => const VARIABLE = await FUNCTION_NAME ( VARIABLE_2 ) ;"
)]
#[case(Tsx, "return b as Foo", "return b as string", "wrong_type: VARIABLE as TYPE_NAME => VARIABLE as string")]
#[case(
    Go,
    "x, err := g()\nh := x.y",
    "x, err := g()\nif err != nil {\n\treturn\n}\nh := x.y",
    "missing_check: VARIABLE := VARIABLE_2 . VARIABLE_3 => if VARIABLE_4 != nil { return } VARIABLE := VARIABLE_2 . VARIABLE_3"
)]
#[case(C, "if (p = 0) return;", "if (p == 0) return;", "wrong_operator: VARIABLE = NUMBER => VARIABLE == NUMBER")]
#[case(
    C,
    "memcpy(a, b, sizeof(p));",
    "memcpy(a, b, sizeof(*p));",
    "wrong_operator: sizeof ( VARIABLE ) => sizeof ( * VARIABLE )"
)]
#[case(
    Cpp,
    "std::string s = g->h(1);",
    "std::string s = g->h(1, x);",
    "missing_argument: std :: string VARIABLE = VARIABLE_2 -> FUNCTION_NAME ( NUMBER ) ; => std :: string VARIABLE = VARIABLE_2 -> FUNCTION_NAME ( NUMBER , VARIABLE_3 ) ;"
)]
#[case(CSharp, "return y.Count;", "return y.Length;", "wrong_value: VARIABLE . Count => VARIABLE . Length")]
#[case(
    Ruby,
    "a.foo(1)",
    "a.foo(1) if a",
    "missing_check: VARIABLE . FUNCTION_NAME ( NUMBER ) => VARIABLE . FUNCTION_NAME ( NUMBER ) if VARIABLE"
)]
#[case(
    Php,
    "if (isset($a['x'])) { g(); }",
    "if (!empty($a['x'])) { g(); }",
    "wrong_call: isset ( $ VARIABLE [ STRING ] ) => ! empty ( $ VARIABLE [ STRING ] )"
)]
#[case::twice_the_same(
    C,
    "if (a == a) b();",
    "if (a == c) b();",
    "wrong_value: VARIABLE == VARIABLE => VARIABLE == VARIABLE_2"
)]
#[case::swapped(
    Java,
    "g(a, b);",
    "g(b, a);",
    "wrong_argument: FUNCTION_NAME ( VARIABLE , VARIABLE_2 ) => FUNCTION_NAME ( VARIABLE_2 , VARIABLE )"
)]
#[case(Bash, "rm -rf $y", "rm -rf \"$y\"", "wrong_value: rm -rf $ VARIABLE => rm -rf STRING")]
fn edits_teach(#[case] language: Language, #[case] before: &str, #[case] after: &str, #[case] expected: &str) {
    let learned = learned(language, &around(language, before), &around(language, after));
    assert!(learned.iter().any(|line| line == expected), "{learned:#?}");
}

#[rstest]
#[case::moved(
    Java,
    "import a.b.C;",
    "import a.b.d.C;",
    "import VARIABLE . VARIABLE_2 . VARIABLE_3 ; => import VARIABLE . VARIABLE_2 . VARIABLE_4 . VARIABLE_3 ;"
)]
#[case::a_known_name(
    Java,
    "import java.util.Date;",
    "import java.time.Instant;",
    "import java . util . Date ; => import java . VARIABLE . Instant ;"
)]
#[case::without_annotations(
    Java,
    "class A { @Deprecated\nprivate int a; }",
    "class A { @Deprecated\nprivate final int a; }",
    "private int VARIABLE ; => private final int VARIABLE ;"
)]
#[case::without_the_body(
    Java,
    "class A { void f(int a) { g(); } }",
    "class A { public void f(int a) { g(); } }",
    "void FUNCTION_NAME ( int VARIABLE ) BODY => public void FUNCTION_NAME ( int VARIABLE ) BODY"
)]
#[case(
    Python,
    "def f(a):\n    return a\n",
    "async def f(a):\n    return a\n",
    "def FUNCTION_NAME ( VARIABLE ) : BODY => async def FUNCTION_NAME ( VARIABLE ) : BODY"
)]
#[case(Rust, "fn f() { g(); }", "pub fn f() { g(); }", "fn FUNCTION_NAME ( ) BODY => pub fn FUNCTION_NAME ( ) BODY")]
fn heads_teach(#[case] language: Language, #[case] before: &str, #[case] after: &str, #[case] expected: &str) {
    let learned = learned(language, before, after);
    assert!(learned.contains(&format!("wrong_declaration: {expected}")), "{learned:#?}");
}

#[test]
fn a_head_stands_on_the_line_of_its_first_word_and_is_no_code() {
    let code = "class A {\n  @Deprecated\n  void f() {\n    a = b + c;\n  }\n}\n";
    let source = Parsers::default().parse("", Java, code.as_bytes()).expect("parses");
    let mut heads = Vec::new();
    visit_sites(&source, None, &mut |site| {
        if site.kind() == CodeSiteKind::Head && site.form().to_string().starts_with("void") {
            heads.push((site.lines, site.form().to_string()));
        }
    });
    assert_eq!(heads, [(LineRange::new(3, 3), "void FUNCTION_NAME ( ) BODY".to_owned())]);
}

#[rstest]
#[case::layout(Java, "a = g( b,c );", "a = g(b,\n  c);")]
#[case::a_comment(Java, "a = g(b); // one", "a = g(b); /* two */")]
#[case::a_name(Python, "a = b", "a = c")]
#[case::a_number(Python, "a = b + 1", "a = b + 2")]
#[case::does_not_parse(Java, "a = g(b;", "a = g(c;")]
#[case::beside_what_does_not_parse(Java, "if (a == ) { } b = 1 + c;", "if (a == ) { } b = 2 + c;")]
fn nothing_is_learned_of(#[case] language: Language, #[case] before: &str, #[case] after: &str) {
    let learned = learned(language, &around(language, before), &around(language, after));
    assert!(learned.is_empty(), "{learned:#?}");
}

#[rstest]
#[case(Java, "if (name == null) {\n  g(name);\n}", 3..=3, Some("if ( VARIABLE == null ) { FUNCTION_NAME ( VARIABLE ) ; }"))]
#[case(Java, "int a = g(1,\n  b);", 4..=4, Some("int VARIABLE = FUNCTION_NAME ( NUMBER , VARIABLE_2 ) ;"))]
#[case::more_than_a_statement(Java, "int a = g(1);\nint b = 2;", 3..=4, None)]
#[case::only_the_end_of_a_block(Java, "a = 1;\n", 5..=5, None)]
#[case::no_code(Java, "a = 1;\n// b\n", 4..=4, None)]
fn a_place_has_the_form_of_its_smallest_site(
    #[case] language: Language,
    #[case] code: &str,
    #[case] lines: std::ops::RangeInclusive<u32>,
    #[case] expected: Option<&str>,
) {
    let code = around(language, code);
    let source = Parsers::default().parse("", language, code.as_bytes()).map_err(|unread| unread.to_string());
    let form = LineForms::new(&source.expect("parses")).form_at(LineRange::new(*lines.start(), *lines.end()));
    assert_eq!(form.map(|form| form.to_string()).as_deref(), expected);
}

#[test]
fn sites_within_lines_are_those_of_all_that_share_a_line() {
    let code = around(Java, "a = g(1);\nif (b == null) {\n  c = g(2);\n  d = g(3);\n}\n");
    let source = Parsers::default().parse("", Java, code.as_bytes()).expect("parses");
    let lines = |within: Option<&[LineRange]>| {
        let mut found = Vec::new();
        visit_sites(&source, within, &mut |site| found.push((site.lines, site.form().to_string())));
        found
    };
    let (all, wanted) = (lines(None), LineRange::new(5, 5));
    let some = lines(Some(&[wanted]));
    assert!(!some.is_empty() && some.len() < all.len(), "{some:#?}");
    assert_eq!(some, all.into_iter().filter(|(lines, _)| lines.overlaps(wanted)).collect::<Vec<_>>());
}

#[test]
fn changes_in_one_statement_are_one_change() {
    let (before, after) =
        (around(Java, "a = g(b == 1, c < 2);\nd = e == 1;"), around(Java, "a = g(b != 1, c > 2);\nd = e != 1;"));
    let edits = extract_edits(&mut Parsers::default(), Java, before.as_bytes(), after.as_bytes());
    let mut hunks: Vec<(usize, u32)> = edits.iter().map(|edit| (edit.hunk, edit.lines.start)).collect();
    hunks.dedup();
    assert_eq!(hunks, [(0, 3), (1, 4)]);
}

#[test]
fn what_is_made_to_take_long_is_done_soon() {
    let deep = format!("class A {{ int f() {{ return {}1{}; }} }}", "(".repeat(3_000), ")".repeat(3_000));
    let strings = format!("x = {}1{}", "f'{".repeat(2_000), "}'".repeat(2_000));
    let wide = "a = b + c\n".repeat(20_000);
    let other = "d = e - f\n".repeat(20_000);
    for (language, before, after) in [
        (Java, deep.clone(), deep.replace('1', "2 + 3")),
        (Python, strings.clone(), strings.replace('1', "2 + 3")),
        (Python, wide, other),
    ] {
        // The test is about time; the result does not matter.
        extract_edits(&mut Parsers::default(), language, before.as_bytes(), after.as_bytes());
    }
    // A syntax error, and all other code in a statement that does not stand next to it.
    let nested = format!("{}1{},", "[\n".repeat(900), "]\n".repeat(900));
    let broken = format!("a = 1\nb = 2\nx = [{}]\na = 1\nb = 2\ndef (:\n", nested.repeat(44));
    let source = Parsers::default().parse("", Python, broken.as_bytes()).expect("parses");
    let mut found = 0;
    visit_sites(&source, None, &mut |_| found += 1);
    assert!(found > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Code that differs only in names, literals, comments and layout has the same forms.
    #[test]
    fn forms_know_no_names(name in "[a-z]{3,8}_x", other in "[a-z]{3,8}_y", text in "[a-z ]{0,9}", number in 0u32..999) {
        let code = |name: &str, other: &str, text: &str, number: u32, gap: &str| {
            format!("class A {{ int f(int {name}) {{ /* {text} */ if ({name} > {number} &&{gap}{other}.size() == {name}) {{{gap}return g({other}, \"{text}\"); }} return {number}; }} }}")
        };
        let forms = |code: String| {
            let source = Parsers::default().parse("", Java, code.as_bytes()).map_err(|unread| unread.to_string()).expect("parses");
            let mut forms = Vec::new();
            visit_sites(&source, None, &mut |site| forms.push((site.digest, site.form())));
            forms
        };
        let plain = forms(code("a", "b", "c", 7, " "));
        prop_assert!(plain.len() > 5);
        prop_assert_eq!(forms(code(&name, &other, &text, number, "\n  ")), plain);
    }
}
