//! Counting tokens, against the reference: at least 3 times its speed, no other counts, and no text for which twice the
//! length takes much more than twice the time.
//!
//! ```text
//! cargo bench --bench tokens                                      # this repository's files
//! REVDECK_BENCH_CORPUS=~/src/project cargo bench --bench tokens   # those of another folder
//! ```

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use revdeck::context::tokens::{Encoding, count};

const ROUNDS: usize = 3;

fn main() {
    let folder = std::env::var_os("REVDECK_BENCH_CORPUS").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let texts = read(Path::new(&folder));
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("{} files, {:.1} MB, one core", texts.len(), bytes as f64 / 1e6);
    for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
        let reference = match encoding {
            Encoding::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
            _ => tiktoken_rs::o200k_base_singleton(),
        };
        for text in &texts {
            assert_eq!(count(encoding, text), reference.encode_ordinary(text).len(), "{:.40}", text);
        }
        let own = best(|| texts.iter().map(|text| count(encoding, text)).sum());
        let theirs = best(|| texts.iter().map(|text| reference.encode_ordinary(text).len()).sum());
        let speed = |took: Duration| bytes as f64 / 1e6 / took.as_secs_f64();
        println!(
            "{}: {:.0} MB/s, the reference {:.0} MB/s, ratio {:.1} (limit 3); the same counts",
            encoding.name(),
            speed(own),
            speed(theirs),
            theirs.as_secs_f64() / own.as_secs_f64()
        );
    }
    println!(
        "\nhostile texts, ms for 0.25, 0.5, 1, 2 MB; how much longer twice the text takes (limit 2, and what a run varies by)"
    );
    let of = |from: u32, of: u32| -> String {
        random(1 << 20).chars().filter_map(|c| char::from_u32(from + u32::from(c) % of)).collect()
    };
    for (name, unit) in [
        ("a", "a".to_owned()),
        ("spaces", " ".to_owned()),
        ("line ends", "\n".to_owned()),
        ("an emoji", "👩‍👩‍👧‍👦".to_owned()),
        ("an accent", "\u{301}".to_owned()),
        ("Chinese", "中".to_owned()),
        ("random Unicode", random(1 << 20)),
        ("random BMP", of(0, 0x1_0000)),
        ("random European", of(0xc0, 0x1c0)),
        ("random letters", of(u32::from('a'), 26)),
        ("random symbols", of(u32::from('!'), 15)),
        ("random Chinese", of(0x4e00, 0x5000)),
        ("digits", "7".to_owned()),
        ("=", "=".to_owned()),
        ("=-", "=-".to_owned()),
        ("broad blanks", "\u{3000}\u{3000}a".to_owned()),
    ] {
        let times = [1, 2, 4, 8].map(|quarters: usize| {
            let mut text = unit.repeat((quarters << 18) / unit.len() + 1);
            text.truncate(text.floor_char_boundary(quarters << 18));
            best(|| count(Encoding::O200kBase, &text)).as_secs_f64() * 1e3
        });
        let ratios: Vec<String> = times.windows(2).map(|pair| format!("{:.2}", pair[1] / pair[0])).collect();
        let times = times.map(|time| format!("{time:8.1}"));
        println!("{name:>15}: {}   x {}", times.join(" "), ratios.join(" "));
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

/// Characters of all planes, always the same.
fn random(bytes: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut text = String::with_capacity(bytes + 4);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.extend(char::from_u32((state % 0x11_0000) as u32));
    }
    text
}
