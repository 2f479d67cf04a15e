//! Measures the built-in reviewer (`reviewers::analyzer`): all eleven smells, compared with tree-sitter parsing of
//! the same files, both on two threads. The ratio must stay at or below 1.6.
//!
//! ```text
//! cargo bench --bench smells                                      # a generated corpus of all languages
//! REVDECK_BENCH_CORPUS=~/src/project cargo bench --bench smells   # the files of a real folder
//! ```

#![allow(clippy::print_stdout)]

#[path = "support/corpus.rs"]
mod corpus;

use std::hint::black_box;
use std::time::{Duration, Instant};

use corpus::{File, corpus, on_threads, parse_all};
use divan::Bencher;
use revdeck::reviewers::analyzer::Builtin;
use revdeck::reviewers::analyzer::limits::Limits;
use revdeck::syntax::source::Parsers;

const ROUNDS: usize = 5;

fn main() {
    let lines: usize = corpus().iter().map(|file| file.text.split(|byte| *byte == b'\n').count()).sum();
    println!("{} files, {lines} lines", corpus().len());
    let best = |run: fn()| -> Duration {
        (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                run();
                start.elapsed()
            })
            .min()
            .unwrap_or_default()
    };
    let (parse, smells) = (best(parse_all), best(smells_all));
    let ratio = smells.as_secs_f64() / parse.as_secs_f64();
    println!("best of {ROUNDS}: parsing {parse:.1?}, all smells {smells:.1?}, ratio {ratio:.2} (limit 1.6)");
    divan::main();
}

#[divan::bench(sample_count = 5)]
fn parsing(bencher: Bencher<'_, '_>) {
    bencher.bench(parse_all);
}

#[divan::bench(sample_count = 5)]
fn all_smells(bencher: Bencher<'_, '_>) {
    bencher.bench(smells_all);
}

fn smells_all() {
    let builtin = Builtin::new(Limits::default());
    on_threads(|| {
        let mut parsers = Parsers::default();
        let builtin = &builtin;
        move |file: &File| {
            let _ = black_box(builtin.analyze_file(&mut parsers, &file.path, &file.text));
        }
    });
}
