//! Texts that were made to keep the built-in reviewer busy: repeated tokens, long lists, deep nesting of everything that
//! nests, unfinished strings, NULs. Each is checked in a time in proportion to its length, or left out by name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use revdeck::reviewers::analyzer::{Builtin, WorkLimit};
use revdeck::syntax::ParseFailure;
use revdeck::syntax::language::Language;
use revdeck::syntax::source::Parsers;

/// Steps per node of the tree that the checks of every text together may need: less than half of what a review allows.
const MAX_STEPS_PER_NODE: u64 = 150;

/// Length of the texts of the test that always runs, in bytes: enough to tell a square from a line.
const SHORT_BYTES: usize = 6_000;

/// For each language, in the order of [`Language::ALL`], the extension and the beginnings and ends between which a text
/// stands: the file itself, the body of a function, a returned value, and a variable that a function changes.
const PLACES: [(&str, &[(&str, &str)]); Language::ALL.len()] = [
    ("rs", &[("", ""), ("fn f() {\n", "\n}\n"), ("fn f() -> u8 { return ", ";\n}\n"), ("static mut A: u8 = ", ";\n")]),
    ("py", &[("", ""), ("def f():\n    return ", "\n"), ("x = ", "\ndef g():\n    global x\n    x = 1\n")]),
    ("js", SCRIPT),
    ("ts", SCRIPT),
    ("tsx", SCRIPT),
    (
        "go",
        &[("package a\n", ""), ("package a\nfunc f() {\n", "\n}\n"), ("package a\nvar x = ", "\nfunc g() { x = 1 }\n")],
    ),
    ("java", CLASS),
    ("kt", &[("", ""), ("fun f() {\n", "\n}\n"), ("var x = ", "\nfun g() { x = 1 }\n")]),
    (
        "scala",
        &[("", ""), ("object A { def f() = {\n", "\n} }\n"), ("object A { var x = ", "\ndef g() = { x = 1 } }\n")],
    ),
    ("swift", &[("", ""), ("func f() {\n", "\n}\n"), ("var x = ", "\nfunc g() { x = 1 }\n")]),
    ("c", FUNCTION),
    ("cpp", FUNCTION),
    ("cs", CLASS),
    ("rb", &[("", ""), ("def f\n", "\nend\n"), ("$x = ", "\ndef g\n$x = 1\nend\n")]),
    (
        "php",
        &[
            ("<?php ", ""),
            ("<?php function f() {\n", "\n}\n"),
            ("<?php $x = ", ";\nfunction g() { global $x; $x = 1; }\n"),
        ],
    ),
    ("sh", &[("", ""), ("f() {\n", "\n}\n"), ("x=", "\ng() { x=1; }\n"), ("echo \"", "\"\n")]),
];
const SCRIPT: &[(&str, &str)] = &[
    ("", ""),
    ("function f() {\n", "\n}\n"),
    ("function f() { return ", ";\n}\n"),
    ("let x = ", ";\nfunction g() { x = 1 }\n"),
];
const CLASS: &[(&str, &str)] = &[
    ("", ""),
    ("class A { int f() {\n", "\n} }\n"),
    ("class A { int f() { return ", ";\n} }\n"),
    ("class A { static int x = ", ";\n void g() { x = 1; } }\n"),
];
const FUNCTION: &[(&str, &str)] =
    &[("", ""), ("int f() {\n", "\n}\n"), ("int f() { return ", ";\n}\n"), ("int x = ", ";\nint g() { x = 1; }\n")];

/// Units that a text repeats, alone and with others. Each means something in one of the languages at least.
const UNITS: &[&str] = &[
    "a,",
    "a ",
    "a\n",
    "37,",
    "37 + ",
    "a == 37, ",
    "1 + a, ",
    "\"a\",",
    "\"abcd\" + ",
    "'a',",
    "\"",
    "'",
    "`",
    "\\",
    "\0",
    "\0\n",
    ";",
    "a;",
    "a = 1;\n",
    "a = ",
    "a = 1,",
    "a.b",
    "a.b(",
    "a(1)",
    "f(37, ",
    "x++;",
    "x += 37;",
    "- ",
    "!",
    "?",
    "a ? b : ",
    "a && b || ",
    "=> ",
    "-> ",
    "::",
    "a: 1, ",
    "@",
    "@A ",
    "#",
    "# a\n",
    "// a\n",
    "/* a */",
    "/*",
    "*/",
    "<!-- ",
    "*",
    "&",
    "<",
    ">",
    "a<b, ",
    "$a",
    "${",
    "#{",
    "\\(",
    "$(",
    "$((",
    "`a`",
    "f\"{",
    "f'{a}'",
    "$\"{",
    "@\"",
    "\"${",
    "\"\"\"",
    "'''",
    "r#\"",
    "<<A\n",
    "<<~A\n",
    "A\n",
    "%w(",
    "/a/",
    "=/[",
    "import a\n",
    "import a;\n",
    "import a.b.C;\n",
    "use a;\n",
    "from a import b\n",
    "return a,",
    "return a;\n",
    "return;",
    "if (1) {}\n",
    "if (a) {",
    "else ",
    "for (;;) {",
    "while (1) {",
    "case 1: ",
    "try {",
    "catch (e) {}\n",
    "throw a;",
    "class A {",
    "class A: pass\n",
    "def f(a): pass\n",
    "fn f(a: u8) {}\n",
    "static void f(int a) {}\n",
    "private void f() {}\n",
    "function f() {}\n",
    "async function f() {}\n",
    "func f() {}\n",
    "int x = 1;\n",
    "static int x;\n",
    "var x = 1;\n",
    "let x = 1;\n",
    "x := 1\n",
    "x = []\n",
    "self.x.append(1)\n",
    "this.a = new A();\n",
    "mod a;\n",
    "impl A {",
    "namespace A {",
    "#[a]\n",
    "#[test]\n",
    "#if A\n",
    "#endif\n",
    "#define A \\\n",
    ".unwrap()",
    "let _ = f();\n",
    "cd a\n",
    "cd a > b\n",
    "@@a = 1\n",
    "rescue nil ",
    "<?php ",
    "?>",
    "$x = 1;\n",
    "global $x;\n",
    "$a->",
    "try? ",
    "require('a'), ",
    "p = malloc(1);\n",
    "os.Remove(x)\n",
    "\u{e9}",
    "\t",
    "\r\n",
    "a b c d ",
    "(int)",
    "new A(",
];

/// Pairs of a beginning and an end that nest.
const NESTINGS: &[(&str, &str)] = &[
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ("f(", ")"),
    ("a[", "]"),
    ("{a: ", "}"),
    ("(a, ", ")"),
    ("f(37, ", ")"),
    ("a + (", ")"),
    ("-", ""),
    ("!", ""),
    ("not ", ""),
    ("a ? b : ", ""),
    ("a = ", ""),
    ("a.b(", ")"),
    ("37 + ", ""),
    ("if (a) {", "}"),
    ("if (1) {\n", "}"),
    ("return; {", "}"),
    ("while (a) {", "}"),
    ("try {", "} catch (e) {}"),
    ("class A {", "}"),
    ("class A { void f() {", "}}"),
    ("function f() {", "}"),
    ("fn f() {", "}"),
    ("mod a {", "}"),
    ("impl A {", "}"),
    ("namespace A {", "}"),
    ("/*", "*/"),
    ("\"${", "}\""),
    ("`${", "}`"),
    ("f\"{", "}\""),
    ("$\"{", "}\""),
    ("\"#{", "}\""),
    ("\"\\(", ")\""),
    ("\"$(", ")\""),
    ("${a:-", "}"),
    ("$((", "))"),
    ("<a>", "</a>"),
    ("A<", ">"),
    ("@A(", ")"),
    ("(a) => ", ""),
    ("lambda: ", ""),
    ("def f\n", "end\n"),
    ("if a; then\n", "fi\n"),
    ("do |a|\n", "end\n"),
    ("object A {", "}"),
    ("<<A\n#{", "}\nA\n"),
    ("%w(", ")"),
    ("a match { case _ => ", "}"),
];

/// Generator of numbers that depend on the seed only: SplitMix64.
struct SeededNumbers(u64);

impl SeededNumbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

/// A text with the name of its file, which says how it was made.
struct HostileText {
    name: String,
    text: String,
}

fn nest(language: usize, place: usize, nesting: usize, bytes: usize) -> HostileText {
    let (extension, places) = PLACES[language];
    let (head, tail) = places[place % places.len()];
    let (open, close) = NESTINGS[nesting];
    let depth = bytes / (open.len() + close.len());
    let text = format!("{head}{}a{}{tail}", open.repeat(depth), close.repeat(depth));
    HostileText { name: format!("nesting{nesting}-{}.{extension}", place % places.len()), text }
}

fn repeat(language: usize, place: usize, units: &[usize], bytes: usize) -> HostileText {
    let (extension, places) = PLACES[language];
    let (head, tail) = places[place % places.len()];
    let unit: String = units.iter().map(|unit| UNITS[*unit]).collect();
    let text = format!("{head}{}{tail}", unit.repeat(bytes / unit.len()));
    let numbers: Vec<String> = units.iter().map(ToString::to_string).collect();
    HostileText { name: format!("units{}-{}.{extension}", numbers.join("-"), place % places.len()), text }
}

#[test]
fn hostile_texts_are_checked_in_steps_in_proportion_to_their_length() {
    let limit = WorkLimit { steps_per_node: MAX_STEPS_PER_NODE, min_time: Duration::MAX, ..WorkLimit::default() };
    let builtin = Builtin::default().with_work_limit(limit);
    let mut parsers = Parsers::default();
    let mut too_complex = Vec::new();
    let mut checked = 0;
    for language in 0..PLACES.len() {
        // Every other kind at one of the places; another half and another place in the next language.
        let nestings = (language % 2..NESTINGS.len()).step_by(2);
        let texts = nestings.map(|kind| nest(language, kind + language, kind, SHORT_BYTES));
        let texts = texts.chain(
            (language % 6..UNITS.len())
                .step_by(6)
                .map(|kind| repeat(language, kind + language / 3, &[kind], SHORT_BYTES)),
        );
        for HostileText { name, text } in texts {
            match builtin.analyze_file(&mut parsers, &name, text.as_bytes()) {
                Ok(_) => checked += 1,
                Err(ParseFailure::TooComplexToCheck) => too_complex.push(name),
                Err(why) => assert_eq!(why, ParseFailure::TooComplex, "{name}"),
            }
        }
    }
    assert_eq!(too_complex, [""; 0], "{checked} other texts are checked");
    assert!(checked > 250, "{checked} texts are checked, the others are too complex to parse");
}

#[test]
fn a_file_that_takes_too_long_is_left_out_by_name_and_the_others_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let code = "def f():\n    password = os.remove(x)\n    return 1\n    g()\n";
    for name in ["a.py", "b.py"] {
        fs::write(folder.path().join(name), code.repeat(if name == "a.py" { 3_000 } else { 1 })).expect("a file");
    }
    fn clock() -> Duration {
        thread_local!(static CALLS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
        CALLS.set(CALLS.get() + 1);
        Duration::from_secs(CALLS.get())
    }
    // The clock moves a second at each look, and only the long file is looked at more than once.
    let limit =
        WorkLimit { min_time: Duration::from_secs(2), time_per_byte: Duration::ZERO, clock, ..WorkLimit::default() };
    let builtin = Builtin::default().with_work_limit(limit);
    let report = builtin.analyze_paths(&[folder.path().to_owned()], u64::MAX).expect("a report");
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let checked: Vec<String> = report.files.iter().map(|file| name(Path::new(&file.path))).collect();
    let left_out: Vec<(String, &str)> = report.left_out.iter().map(|(path, why)| (name(path), why.as_str())).collect();
    assert_eq!(checked, ["b.py"]);
    assert_eq!(left_out, [("a.py".to_owned(), "it is too complex to check")]);
}

/// Number of texts of repeated units for each language: 23,040 together.
const TEXTS_PER_LANGUAGE: usize = 1_440;
const TEXT_BYTES: usize = 60_000;
/// Number of nestings for each language: 704 together.
const NESTINGS_PER_LANGUAGE: usize = 44;
const NESTING_BYTES: usize = 150_000;
/// Time in which `revdeck smells` must end on each text, from its start to its end.
const MAX_TIME: Duration = Duration::from_secs(1);

/// Number of times that a text is run again after it took longer than [`MAX_TIME`]. Other processes on the machine only
/// add time, so the shortest time counts.
const MAX_REPEATS: usize = 5;

/// Runs a command, and again while it takes longer than [`MAX_TIME`]. Returns the shortest time and the last output.
fn run_fastest(command: &mut Command, max_repeats: usize) -> (Duration, Output) {
    let mut run_once = || {
        let started = Instant::now();
        let output = command.output().expect("revdeck runs");
        (started.elapsed(), output)
    };
    let (mut fastest, mut output) = run_once();
    for _ in 0..max_repeats {
        if fastest <= MAX_TIME {
            break;
        }
        let (time, repeated) = run_once();
        (fastest, output) = (fastest.min(time), repeated);
    }
    (fastest, output)
}

/// Runs `revdeck smells` on 23,040 texts of 60 KB and 704 nestings of 150 KB, one process each, and prints the figures.
///
/// Run it with a binary that is built with optimisation; it takes about half an hour on two cores:
///
/// ```text
/// cargo build --release
/// REVDECK_CAMPAIGN_BINARY=target/release/revdeck cargo test --test it -- --ignored --nocapture campaign_hostile_texts
/// ```
///
/// `REVDECK_CAMPAIGN_PART=N` runs every Nth text only, `REVDECK_CAMPAIGN_ONLY=NAME,NAME` the named ones, whose files stay in
/// the folder `REVDECK_CAMPAIGN_FOLDER`. Without `REVDECK_CAMPAIGN_BINARY` every hundredth text is given to
/// the binary of the tests, and the times are printed only.
#[test]
#[ignore = "takes half an hour with a release binary in REVDECK_CAMPAIGN_BINARY"]
#[allow(clippy::print_stdout, reason = "a campaign prints its figures")]
fn campaign_hostile_texts() {
    let release = std::env::var_os("REVDECK_CAMPAIGN_BINARY").map(PathBuf::from);
    let is_release = release.is_some();
    let binary = release.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_revdeck")));
    let binary = fs::canonicalize(binary).expect("the binary is there");
    let default_part = if is_release { 1 } else { 100 };
    let part: usize =
        std::env::var("REVDECK_CAMPAIGN_PART").map_or(default_part, |part| part.parse().expect("a number"));
    let only = std::env::var("REVDECK_CAMPAIGN_ONLY").ok();
    let only: Option<Vec<&str>> = only.as_deref().map(|names| names.split(',').collect());
    let kept = std::env::var_os("REVDECK_CAMPAIGN_FOLDER").map(PathBuf::from);
    let folder = tempfile::tempdir().expect("a folder");
    let mut numbers = SeededNumbers(19);
    let mut times: Vec<(Duration, String)> = Vec::new();
    let (mut left_out, mut failed) = (0, Vec::new());
    for language in 0..PLACES.len() {
        let mut texts = Vec::new();
        for number in 0..NESTINGS_PER_LANGUAGE {
            let nesting = (number + language * NESTINGS_PER_LANGUAGE) % NESTINGS.len();
            texts.push(nest(language, numbers.below(4), nesting, NESTING_BYTES));
        }
        for number in 0..TEXTS_PER_LANGUAGE {
            let more = numbers.below(3);
            let mut units = vec![number % UNITS.len()];
            units.extend((0..more).map(|_| numbers.below(UNITS.len())));
            texts.push(repeat(language, numbers.below(4), &units, TEXT_BYTES));
        }
        for HostileText { name, text } in texts.into_iter().step_by(part) {
            if only.as_ref().is_some_and(|only| !only.contains(&name.as_str())) {
                continue;
            }
            let path = folder.path().join(&name);
            if let (Some(kept), Some(_)) = (&kept, &only) {
                fs::write(kept.join(&name), &text).expect("a file that stays");
            }
            fs::write(&path, text).expect("a file");
            let mut command = Command::new(&binary);
            command.args(["smells", "--format", "json"]).arg(&path).env("REVDECK_HOME", folder.path().join("home"));
            command.stdin(Stdio::null());
            let (time, output) = run_fastest(&mut command, if is_release { MAX_REPEATS } else { 0 });
            times.push((time, name.clone()));
            left_out += usize::from(String::from_utf8_lossy(&output.stderr).contains("left out"));
            // A text that is left out was not checked.
            if !matches!(output.status.code(), Some(0 | 3)) {
                failed.push(name);
            }
            fs::remove_file(&path).expect("it is there");
        }
    }
    times.sort();
    let total: Duration = times.iter().map(|(time, _)| *time).sum();
    println!("{} texts in {total:.0?}, {left_out} left out", times.len());
    println!("median {:.0?}, slowest:", times[times.len() / 2].0);
    times.iter().rev().take(20).for_each(|(time, name)| println!("  {time:.0?} {name}"));
    assert_eq!(failed, [""; 0]);
    let slow: Vec<&(Duration, String)> = times.iter().filter(|(time, _)| *time > MAX_TIME).collect();
    // Without optimisation a parse alone takes seconds.
    if is_release {
        assert!(slow.is_empty(), "{} texts take longer than {MAX_TIME:?}: {slow:?}", slow.len());
    }
}
