//! Generates the token count tables, the words of the encodings and the classes of all characters, and the default settings
//! without their comments.
//!
//! The words come from a crate that contains them compressed. The build unpacks them and computes the split of each
//! into two other words once, so that no process has to do it at run time.

use std::collections::HashMap;
use std::path::Path;
use std::{env, fs, io};

use regex_syntax::hir::{Class, HirKind};
use tiktoken::CoreBpe;

#[path = "src/tokens/sorts.rs"]
mod sorts;

use sorts::{BLANK, BLOCK, BLOCKS, LEAD, LETTER, LINE_END, LOWER, NUMBER, SIGN, UPPER};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/tokens/sorts.rs");
    link_tests_at_fixed_addresses();
    let folder = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let folder = Path::new(&folder);
    fs::write(folder.join("o200k.words"), words(&tiktoken::encoding::o200k_base()))?;
    fs::write(folder.join("cl100k.words"), words(&tiktoken::encoding::cl100k_base()))?;
    fs::write(folder.join("sorts"), sorts())?;
    println!("cargo::rerun-if-changed=assets/config.toml");
    fs::write(folder.join("defaults.toml"), strip_comments(&fs::read_to_string("assets/config.toml")?))
}

/// Returns the lines of a settings file without comments and empty lines: nine tenths of `assets/config.toml` are for readers,
/// and every process parses it.
fn strip_comments(text: &str) -> String {
    let is_value = |line: &&str| !line.trim_start().is_empty() && !line.trim_start().starts_with('#');
    text.lines().filter(is_value).flat_map(|line| [line, "\n"]).collect()
}

/// Links debug builds at fixed addresses. Otherwise each process fills in 264,000 addresses before it begins, which is
/// 40 % of the time of `revdeck --version`, and tests start thousands of processes. Release builds stay at random addresses.
fn link_tests_at_fixed_addresses() {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg=-no-pie");
    }
}

/// Returns, by rank and in three bytes each, the two words that a word consists of, or a byte and all ones.
fn words(core: &CoreBpe) -> Vec<u8> {
    let words: Vec<Vec<u8>> = (0..core.vocab_size() as u32).map(|rank| core.decode(&[rank])).collect();
    let ranks: HashMap<&[u8], u32> = words.iter().map(Vec::as_slice).zip(0..).collect();
    let halves = words.iter().flat_map(|word| match word[..] {
        [byte] => [u32::from(byte), u32::MAX],
        _ => {
            let (left, right) = word.split_at(split(word, &ranks));
            [ranks[left], ranks[right]]
        }
    });
    halves.flat_map(|half| half.to_le_bytes().into_iter().take(3)).collect()
}

/// Returns the position of the last merge in a word.
fn split(word: &[u8], ranks: &HashMap<&[u8], u32>) -> usize {
    let mut ends: Vec<usize> = (0..=word.len()).collect();
    while ends.len() > 3 {
        let pairs = ends.windows(3).enumerate();
        let ranked = pairs.filter_map(|(at, ends)| Some((ranks.get(&word[ends[0]..ends[2]])?, at)));
        let Some((_, at)) = ranked.min() else { panic!("{word:?} is not made of two words") };
        ends.remove(at + 1);
    }
    ends[1]
}

/// Returns a two-stage table: the leading bits of a character select a block of character classes; equal blocks are
/// stored once.
fn sorts() -> Vec<u8> {
    let classes = [
        (UPPER, r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
        (LOWER, r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"),
        (LETTER, r"\p{L}"),
        (NUMBER, r"\p{N}"),
        (BLANK, r"\s"),
        (LINE_END, r"[\r\n]"),
        (SIGN, r"[^\s\p{L}\p{N}]"),
        (LEAD, r"[^\r\n\p{L}\p{N}]"),
    ];
    let mut all = vec![0; BLOCK * BLOCKS];
    for (sort, class) in classes {
        let class = regex_syntax::parse(class).expect("an expression");
        let HirKind::Class(Class::Unicode(class)) = class.kind() else { panic!("{class:?} is no class") };
        for range in class.ranges() {
            all[range.start() as usize..=range.end() as usize].iter_mut().for_each(|sorts| *sorts |= sort);
        }
    }
    let mut known = HashMap::new();
    let mut blocks = Vec::new();
    let places = all.chunks(BLOCK).map(|block| {
        *known.entry(block).or_insert_with(|| {
            blocks.extend_from_slice(block);
            u8::try_from(blocks.len() / BLOCK - 1).expect("few blocks")
        })
    });
    let mut table: Vec<u8> = places.collect();
    table.extend(blocks);
    table
}
