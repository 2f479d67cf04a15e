use super::*;

/// Formats the shapes of the tokens: `n` name, `0` number, `s` string, `.` keyword or operator.
fn shape_string(language: Language, text: &str) -> String {
    tokenize(language, text.as_bytes())
        .iter()
        .map(|token| match token.shape {
            NAME_SHAPE => 'n',
            NUMBER_SHAPE => '0',
            STRING_SHAPE => 's',
            _ => '.',
        })
        .collect()
}

#[test]
fn constructs_that_a_simple_scanner_gets_wrong() {
    for (language, text, expected) in [
        (Language::Rust, "fn f<'a>(x: &'a str) -> char { 'x' } // c", ".n.n..n..nn..n.s."),
        (Language::Rust, "let s = r#\"a \" b\"#; /* a /* b */ c */ x", ".n.s.n"),
        (Language::Rust, "use a::{b, c};\nlet c = b'\\'';", ".n.s."),
        (Language::Python, "import os\nfrom a import (\n  b,\n  c)\nx = r'a\\d' # no", "n.s"),
        (Language::Python, "x = \"\"\"a\n'b' # \"\"\" + 1.5e-3", "n.s.0"),
        (Language::JavaScript, "import a from 'b'\nconst r = /a\\/[/]'/g, d = a / b / 2;", ".n.s.n.n.n.0."),
        (Language::TypeScript, "import { a,\n b } from \"x\";\nlet t = `a ${b} 'c`", "..n.s"),
        (Language::Go, "package a\nimport (\n\"fmt\"\n)\nvar s = `a\"b`", ".n.s"),
        (Language::Java, "package a;\nimport b.C;\nchar c = '\"'; /** d */", ".n.s."),
        (Language::Kotlin, "package a\nimport b.C\nval c = \"\"\"a\"b\"\"\" /* a /* b */ c */ + 'x'", ".n.s.s"),
        (
            Language::Scala,
            "package a\nimport b.{C, D => E}\nval c = s\"\"\"a\"b\"\"\" /* a /* b */ c */ + 'x'",
            ".n.ns.s",
        ),
        (Language::Swift, "import A\nlet c = \"\"\"\na\"b\n\"\"\" /* a /* b */ c */ + x", ".n.s.n"),
        (Language::C, "#include <a.h>\n#if A \\\n  B\nint x = 0x1F; // it's", ".n.0."),
        (Language::Cpp, "auto s = R\"x(a\" )\" )x\"; f();", ".n.s.n..."),
        (Language::CSharp, "using System;\nvar s = @\"a\\\"; n();", ".n..s.n..."),
        (Language::Ruby, "x = <<~SQL, 1\n  it's \"\nSQL\ny << z if a =~ /b'/", "n.s.0n.n.n.."),
        (Language::Php, "<b>it's</b><?php $a = <<<X\n it's\n X; # c\n ?> it's <?= $b", "n.s.n"),
        (Language::Bash, "x=1 # it's\necho ${#x} 'a' \"b\" <<EOF\nit's\nEOF\ny=2", ""),
    ] {
        if language == Language::Bash || language == Language::Ruby {
            let all = tokenize(language, text.as_bytes());
            let strings = all.iter().filter(|token| token.shape == STRING_SHAPE).count();
            assert!(
                strings <= 3 && all.last().is_some_and(|t| t.line as usize >= text.lines().count()),
                "{text}: {all:?}"
            );
            continue;
        }
        assert_eq!(shape_string(language, text), expected, "{language:?}: {text}");
    }
}

#[test]
fn any_bytes_are_lexed_and_lines_do_not_run_away() {
    for language in Language::ALL {
        for text in [
            &b"\"abc"[..],
            b"'",
            b"/*",
            b"r#\"",
            b"<<EOF",
            b"<<<EOF\n",
            b"#\\",
            b"R\"(",
            b"\xff\xfe\x00\"\n'\n`\n/\n",
            b"import (",
            b"=begin",
            b"0x",
            b"@\"",
            b"b'",
        ] {
            let lines = text.iter().filter(|&&byte| byte == b'\n').count() as u32 + 1;
            assert!(tokenize(language, text).iter().all(|token| token.line <= lines), "{language:?} {text:?}");
        }
    }
}
