//! Measures token counting against the reference implementation. Targets: at least 3 times its speed on files and on
//! random Unicode, the same counts, and no text where twice the length takes much more than twice the time. It
//! measures the first text; the files of a folder; random Unicode and random and repeated texts of other sorts, short
//! and long; and the growth of these times.
//!
//! ```text
//! cargo bench --bench tokens                                      # this repository's files
//! REVDECK_BENCH_CORPUS=~/src/project cargo bench --bench tokens   # those of another folder
//! ```

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use revdeck::tokens::{Encoding, count_tokens};
use tiktoken_rs::CoreBPE;

const ROUNDS: usize = 3;
const BOTH: [Encoding; 2] = [Encoding::O200kBase, Encoding::Cl100kBase];
const MEGABYTE: usize = 1 << 20;
/// The names of the texts that are random over all of Unicode.
const OF_UNICODE: [&str; 4] = ["all planes", "BMP", "any::<String>()", "any::<char>()"];

fn main() {
    first_use();
    corpus();
    sorts();
    growth();
}

fn reference(encoding: Encoding) -> &'static CoreBPE {
    match encoding {
        Encoding::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
        _ => tiktoken_rs::o200k_base_singleton(),
    }
}

/// Measures the time to load the tables at their first use.
fn first_use() {
    for encoding in BOTH {
        let start = Instant::now();
        black_box(count_tokens(encoding, ""));
        println!("{}: the first text takes {:.1} ms", encoding.name(), start.elapsed().as_secs_f64() * 1e3);
    }
}

fn corpus() {
    let folder = std::env::var_os("REVDECK_BENCH_CORPUS").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let texts = read(Path::new(&folder));
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("\n{} files, {:.1} MB, one core", texts.len(), bytes as f64 / 1e6);
    for encoding in BOTH {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (own, theirs) = speeds(encoding, &texts);
        println!(
            "{}: {own:.0} MB/s, the reference {theirs:.0} MB/s, ratio {:.1} (limit 3); the same counts",
            encoding.name(),
            own / theirs
        );
    }
}

/// Returns the speed in MB/s of this crate and of the reference, and checks that the counts are equal.
fn speeds(encoding: Encoding, texts: &[&str]) -> (f64, f64) {
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let reference = reference(encoding);
    for text in texts {
        assert_eq!(count_tokens(encoding, text), reference.encode_ordinary(text).len(), "{:.40}", text);
    }
    let own = best(|| texts.iter().map(|text| count_tokens(encoding, text)).sum());
    let theirs = best(|| texts.iter().map(|text| reference.encode_ordinary(text).len()).sum());
    let speed = |took: Duration| bytes as f64 / 1e6 / took.as_secs_f64();
    (speed(own), speed(theirs))
}

fn sorts() {
    println!("\nratio to the reference, in texts of 100 bytes, 1 KB and 1 MB; in brackets our MB/s for the last");
    println!("(* texts of 4 KB instead of 1 MB: the reference takes quadratic time)");
    let head = BOTH.map(|encoding| format!("{:^30}", encoding.name()));
    println!("{:>20}  {}", "", head.join("   "));
    let mut least = [f64::MAX; 2];
    for (name, text, is_quadratic) in texts() {
        let is_unicode = usize::from(OF_UNICODE.contains(&name));
        let longest = if is_quadratic { 4 << 10 } else { text.len() };
        let ratios = BOTH.map(|encoding| {
            let mut speed = 0.0;
            let ratios = [100, 1 << 10, longest].map(|length| {
                let most = if length == longest && !is_quadratic { MEGABYTE } else { MEGABYTE / 4 };
                let (own, theirs) = speeds(encoding, &chunks(&text[..text.floor_char_boundary(most)], length));
                least[is_unicode] = least[is_unicode].min(own / theirs);
                speed = own;
                format!("{:6.1}", own / theirs)
            });
            format!("{} {:>9}", ratios.join(" "), format!("({speed:.0})"))
        });
        println!("{name:>20}{} {}", if is_quadratic { '*' } else { ' ' }, ratios.join("   "));
    }
    let [of_others, of_unicode] = least;
    println!(
        "the least of random Unicode ({}): {of_unicode:.1} (limit 3); of the others: {of_others:.1}",
        OF_UNICODE.join(", ")
    );
}

fn chunks(text: &str, length: usize) -> Vec<&str> {
    let (mut rest, mut chunks) = (text, Vec::new());
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at(rest.ceil_char_boundary(length));
        chunks.push(chunk);
        rest = behind;
    }
    chunks
}

/// Returns texts of about 1 MB, each with a flag that is true if the reference takes quadratic time for it.
fn texts() -> Vec<(&'static str, String, bool)> {
    let of = |from: char, to: char| random(MEGABYTE, from as u32, to as u32 - from as u32 + 1);
    let mut texts = vec![
        ("all planes", of('\0', char::MAX), false),
        ("BMP", of('\0', '\u{ffff}'), false),
        ("any::<String>()", drawn(any::<String>()), false),
        ("any::<char>()", drawn(proptest::collection::vec(any::<char>(), 40).prop_map(String::from_iter)), false),
        ("European", of('\u{c0}', '\u{27f}'), false),
        ("Cyrillic", of('\u{400}', '\u{45f}'), false),
        ("Arabic", of('\u{620}', '\u{64a}'), false),
        ("Devanagari", of('\u{900}', '\u{97f}'), false),
        ("Chinese", of('\u{4e00}', '\u{9fff}'), false),
        ("Japanese", of('\u{3041}', '\u{30ff}'), false),
        ("Korean", of('\u{ac00}', '\u{d7a3}'), false),
        ("emoji", of('\u{1f300}', '\u{1f6ff}'), false),
        ("ASCII letters", of('a', 'z'), false),
        ("both cases", drawn(proptest::string::string_regex("[a-zA-Z]{40}").expect("an expression")), false),
        ("hexadecimal", drawn(proptest::string::string_regex("[0-9a-f]{40}").expect("an expression")), false),
        ("base64", drawn(proptest::string::string_regex("[0-9a-zA-Z+/]{40}").expect("an expression")), false),
        ("ASCII words", drawn(proptest::string::string_regex("([a-z]{1,12} ){6}").expect("an expression")), false),
        ("all of ASCII", of(' ', '~'), false),
        ("with controls", of('\0', '\x7f'), false),
        ("symbols", of('!', '/'), false),
        ("digits", of('0', '9'), false),
        ("blanks", drawn(proptest::string::string_regex("[ \t\n]{40}").expect("an expression")), false),
        (
            "European words",
            drawn(proptest::string::string_regex("([a-zà-öø-ÿ]{1,12} ){6}").expect("an expression")),
            false,
        ),
        (
            "Chinese clauses",
            drawn(proptest::string::string_regex("([一-龥]{1,12}[，。]){4}").expect("an expression")),
            false,
        ),
        (
            "a mixture",
            drawn(
                proptest::string::string_regex(
                    "([a-zA-Z]{1,8}|[一-龥]{1,3}|[!-/]{1,3}|[0-9]{1,4}|[α-ω]{1,5}|[😀-😿]| ){9}",
                )
                .expect("an expression"),
            ),
            false,
        ),
    ];
    let long = [("a…", "a", false), ("=…", "=", false), ("=-…", "=-", false), ("7…", "7", false), ("中…", "中", false)];
    let long = long.into_iter().chain([
        ("an accent…", "\u{301}", false),
        ("a family…", "👩‍👩‍👧‍👦", false),
        ("spaces…", " ", true),
        ("line ends…", "\n", true),
        ("broad blanks…", "\u{3000}\u{3000}a", true),
    ]);
    texts.extend(long.map(|(name, unit, is_quadratic)| (name, unit.repeat(MEGABYTE / unit.len()), is_quadratic)));
    texts
}

/// Returns a text of 1 MB that a strategy generates, always the same.
fn drawn(strategy: impl Strategy<Value = String>) -> String {
    let mut runner = TestRunner::deterministic();
    let mut text = String::with_capacity(MEGABYTE + 200);
    while text.len() < MEGABYTE {
        text.push_str(&strategy.new_tree(&mut runner).expect("a value").current());
    }
    text
}

fn growth() {
    println!(
        "\nhostile texts, ms for 0.25, 0.5, 1, 2 MB; how much longer twice the text takes (limit 2, and what a run varies by)"
    );
    for (name, text, _) in texts() {
        let text = text.repeat(2);
        let times = [1, 2, 4, 8].map(|quarters: usize| {
            let text = &text[..text.floor_char_boundary(quarters << 18)];
            best(|| count_tokens(Encoding::O200kBase, text)).as_secs_f64() * 1e3
        });
        let ratios: Vec<String> = times.windows(2).map(|pair| format!("{:.2}", pair[1] / pair[0])).collect();
        let times = times.map(|time| format!("{time:8.1}"));
        println!("{name:>20}: {}   x {}", times.join(" "), ratios.join(" "));
    }
}

fn best(run: impl Fn() -> usize) -> Duration {
    let took = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    });
    took.min().unwrap_or_default()
}

fn read(folder: &Path) -> Vec<String> {
    let files =
        ignore::Walk::new(folder).flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect()
}

/// Returns a text of at least `bytes` bytes with characters from the `of` code points that start at `from`,
/// always the same.
fn random(bytes: usize, from: u32, of: u32) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut text = String::with_capacity(bytes + 4);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.extend(char::from_u32(from + ((state >> 32) as u32) % of));
    }
    text
}
