//! Measures masking (`masking`): the search for secrets in texts that leave the machine.
//!
//! ```text
//! cargo bench --bench masking                                      # a generated corpus of all languages
//! REVDECK_BENCH_CORPUS=~/src/project cargo bench --bench masking   # the files of a real folder
//! ```

#![allow(clippy::print_stdout)]

#[path = "support/corpus.rs"]
#[allow(dead_code)]
mod corpus;

use std::hint::black_box;

use corpus::corpus;
use divan::Bencher;
use divan::counter::BytesCount;
use revdeck::masking::{Mask, blank_secrets};

fn main() {
    divan::main();
}

fn texts() -> Vec<(&'static str, String)> {
    corpus().iter().map(|file| (file.path.as_str(), String::from_utf8_lossy(&file.text).into_owned())).collect()
}

fn count_bytes(texts: &[(&str, String)]) -> BytesCount {
    BytesCount::from(texts.iter().map(|(_, text)| text.len()).sum::<usize>())
}

/// Masks all files, as they are sent to a model.
#[divan::bench(sample_count = 5)]
fn masked_files(bencher: Bencher<'_, '_>) {
    let texts = texts();
    bencher.counter(count_bytes(&texts)).bench(|| {
        texts.iter().for_each(|(path, text)| drop(black_box(Mask::On.mask_text(Some(path), text))));
    });
}

/// Blanks the secrets of all files by their text alone, as an index keeps them.
#[divan::bench(sample_count = 5)]
fn blanked_files(bencher: Bencher<'_, '_>) {
    let texts = texts();
    bencher.counter(count_bytes(&texts)).bench(|| {
        texts.iter().for_each(|(path, text)| drop(black_box(blank_secrets(Some(path), text))));
    });
}
