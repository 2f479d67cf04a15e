//! Checks the source against the code map in `src/lib.rs`: the rooms are the folders of `src`, and a room imports only
//! rooms below it.

use std::fs;
use std::path::Path;

use crate::env::files_below;

/// Returns the rooms from top to bottom: the rows of the code map in the crate documentation.
fn rooms() -> Vec<&'static str> {
    let (_, map) = include_str!("../../src/lib.rs").split_once("# Code map").expect("a code map");
    let (map, _) = map.split_once("//! # ").expect("a section after the code map");
    let rows = map.lines().filter_map(|line| line.strip_prefix("//! | ")?.split_once(" | "));
    let names = rows.map(|(name, _)| name.trim_matches(['[', ']', '`']));
    names.filter(|name| *name != "room").collect()
}

/// Rooms that import only [`PURE_IMPORTS`], and nothing that reads a clock, a file or random numbers.
const PURE: [&str; 3] = ["review", "policy", "ledger"];
/// Rooms that a pure room imports: records, and threads that change no result.
const PURE_IMPORTS: [&str; 2] = ["domain", "parallel"];
const IMPURE: [&str; 7] = ["std::fs", "std::net", "std::process", "std::env", "SystemTime", "Instant", "::now("];

/// Returns the rooms that a line of code names as `crate::ROOM`.
fn imported(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).flat_map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        match rest[..end].is_empty() {
            false => vec![&rest[..end]],
            true => rest
                .trim_start_matches('{')
                .split([',', '}'])
                .map(|part| part.trim().split("::").next().unwrap_or(""))
                .collect(),
        }
    })
}

#[test]
fn imports_go_downward_only() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    let mut seen = 0;
    let rooms = rooms();
    for (level, room) in rooms.iter().enumerate() {
        for file in files_below(&source.join(room)) {
            if file.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = fs::read_to_string(&file).expect("a readable source file");
            for (number, line) in text.lines().enumerate() {
                if line.trim_start().starts_with("//") {
                    continue;
                }
                for import in imported(line) {
                    let Some(target) = rooms.iter().position(|name| *name == import) else { continue };
                    seen += 1;
                    let allowed = match PURE.contains(room) {
                        true => target == level || PURE_IMPORTS.contains(&import),
                        false => target >= level,
                    };
                    if !allowed {
                        wrong.push(format!("{}:{}: {room} imports {import}", file.display(), number + 1));
                    }
                }
                if (PURE.contains(room) || *room == "domain") && IMPURE.iter().any(|word| line.contains(word)) {
                    wrong.push(format!("{}:{}: {room} is pure, but: {}", file.display(), number + 1, line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 0, "the test sees no import at all: it no longer looks at the right files");
}

#[test]
fn folders_of_the_source_are_the_rooms() {
    let rooms = rooms();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for room in &rooms {
        assert!(source.join(room).is_dir(), "the table in src/lib.rs names {room}, which is no folder of src");
    }
    for entry in fs::read_dir(source).expect("src") {
        let entry = entry.expect("a readable entry");
        if entry.path().is_dir() {
            let name = entry.file_name().into_string().expect("a plain name");
            assert!(rooms.contains(&name.as_str()), "src/{name} is no room of the table in src/lib.rs");
        }
    }
}
