//! Generates the token count tables, which are the words of the encodings and the classes of all characters, the default
//! settings without their comments, and the program's own data as JSON.
//!
//! The words come from a crate that contains them compressed. The build unpacks them and makes the tables in which they
//! are found, so that no process has to do it at run time.

use std::collections::HashMap;
use std::path::Path;
use std::{env, fs, io};

use regex_syntax::hir::{Class, HirKind};
use serde_json::{Map, Value};

#[path = "src/tokens/sorts.rs"]
mod sorts;
#[path = "src/tokens/vocabulary_format.rs"]
mod vocabulary_format;
#[path = "build/vocabulary_tables.rs"]
mod vocabulary_tables;

use sorts::{BLANK, BLOCK, BLOCKS, LEAD, LETTER, LINE_END, LOWER, NUMBER, SIGN, UPPER};
use vocabulary_tables::{ByteOrder, VocabularyTables};

/// Files of data in `assets/`, which people write as TOML and no user changes in place. A process reads them as JSON, in a
/// tenth of the time.
const DATA_FILES: [&str; 5] = ["models", "retrieval", "secrets", "smells", "tool_rules"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/vocabulary_tables.rs");
    println!("cargo::rerun-if-changed=src/tokens/sorts.rs");
    println!("cargo::rerun-if-changed=src/tokens/vocabulary_format.rs");
    link_tests_at_fixed_addresses();
    let folder = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let folder = Path::new(&folder);
    let is_big_endian = env::var("CARGO_CFG_TARGET_ENDIAN").is_ok_and(|order| order == "big");
    let order = if is_big_endian { ByteOrder::Big } else { ByteOrder::Little };
    VocabularyTables::new(&tiktoken::encoding::o200k_base()).write(folder, "o200k", order)?;
    VocabularyTables::new(&tiktoken::encoding::cl100k_base()).write(folder, "cl100k", order)?;
    fs::write(folder.join("sorts"), sorts())?;
    println!("cargo::rerun-if-changed=assets/config.toml");
    fs::write(folder.join("defaults.toml"), strip_comments(&fs::read_to_string("assets/config.toml")?))?;
    for name in DATA_FILES {
        let file = format!("assets/{name}.toml");
        println!("cargo::rerun-if-changed={file}");
        write_json(&folder.join(format!("{name}.json")), read_data(Path::new(&file))?)?;
    }
    println!("cargo::rerun-if-changed=assets/languages");
    fs::create_dir_all(folder.join("languages"))?;
    for file in fs::read_dir("assets/languages")? {
        let file = file?.path();
        // An editor may leave other files there.
        if file.extension().is_some_and(|ending| ending == "toml") {
            write_language(&file, &folder.join("languages"))?;
        }
    }
    Ok(())
}

/// Writes the head of a language's file and its sections to two files: every process reads all heads, and the sections of
/// the languages that it meets.
fn write_language(file: &Path, folder: &Path) -> io::Result<()> {
    let (sections, head): (Map<_, _>, Map<_, _>) =
        read_data(file)?.into_iter().partition(|(_, value)| value.is_object());
    let path = |ending: &str| folder.join(file.file_name().expect("a name")).with_extension(ending);
    write_json(&path("head.json"), head)?;
    write_json(&path("sections.json"), sections)
}

/// Reads a file of data. A mistake in it ends the build with its file and line.
fn read_data(file: &Path) -> io::Result<Map<String, Value>> {
    let data = toml::from_str(&fs::read_to_string(file)?);
    Ok(data.unwrap_or_else(|error| panic!("{}: {error}", file.display())))
}

fn write_json(file: &Path, data: Map<String, Value>) -> io::Result<()> {
    fs::write(file, Value::Object(data).to_string())
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
