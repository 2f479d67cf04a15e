//! Splits a file into the units in which code is sent: the chunks of the index, each with its section kind.
//!
//! Invariants: the units of a file are in order, do not overlap, and each is a whole chunk.

use super::pack::SectionKind;
use crate::domain::LineRange;
use crate::index::chunk::{ChunkExtent, ChunkKind, Declaration, FileSyntax};

/// Lines that are sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeUnit {
    pub lines: LineRange,
    /// Section kind of a declaration. `None` for other code.
    pub kind: Option<SectionKind>,
    /// Kind of the chunk; a window if the chunks of the file are unknown.
    pub chunk: ChunkKind,
}

/// Returns the units of a file with `lines` lines. If its chunks are unknown, the whole file is one unit.
pub fn split_into_units(syntax: &FileSyntax, lines: u32) -> impl Iterator<Item = CodeUnit> {
    let is_unknown = syntax.chunks.is_empty() && lines > 0;
    let all = is_unknown.then(|| CodeUnit { lines: LineRange::new(1, lines), kind: None, chunk: ChunkKind::Window });
    let ordered = sort_declarations(&syntax.declarations);
    let unit = move |chunk: &ChunkExtent| CodeUnit {
        lines: chunk.lines,
        kind: classify_unit(chunk.kind, chunk.lines, &ordered),
        chunk: chunk.kind,
    };
    let is_in_file = move |chunk: &&ChunkExtent| chunk.lines.end <= lines;
    syntax.chunks.iter().filter(is_in_file).map(unit).chain(all)
}

/// Sorts declarations by their first line, outer ones before inner ones.
pub fn sort_declarations(declared: &[Declaration]) -> Vec<&Declaration> {
    let mut ordered: Vec<&Declaration> = declared.iter().collect();
    ordered.sort_by_key(|one| (one.lines.start, std::cmp::Reverse(one.lines.end)));
    ordered
}

/// Returns the section kind of lines with a chunk kind. `ordered` are the declarations of the file, sorted by
/// [`sort_declarations`]. A class with functions counts as a function, so that an option to leave out types does not
/// remove it. A part of a class between its functions has no kind.
pub fn classify_unit(kind: ChunkKind, lines: LineRange, ordered: &[&Declaration]) -> Option<SectionKind> {
    let within = || {
        let first = ordered.partition_point(|other| other.lines.start < lines.start);
        let within = ordered.iter().skip(first).take_while(|other| other.lines.start <= lines.end);
        within.filter(|other| lines.contains(other.lines))
    };
    match kind {
        ChunkKind::Function => Some(SectionKind::Function),
        ChunkKind::Test => Some(SectionKind::Test),
        ChunkKind::Class if within().any(|other| other.kind == ChunkKind::Function) => Some(SectionKind::Function),
        ChunkKind::Class if !within().any(|other| other.kind == ChunkKind::Class) => None,
        ChunkKind::Class | ChunkKind::Interface | ChunkKind::Type => Some(SectionKind::Type),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::domain::Encoding;
    use crate::index::chunk::{MAX_TOKENS_PER_CHUNK, parse_syntax};
    use crate::syntax::source::Parsers;

    fn declaration(kind: ChunkKind, start: u32, end: u32) -> Declaration {
        let lines = LineRange::new(start, end);
        Declaration { kind, name: String::new(), scope: String::new(), lines, head: lines }
    }

    #[rstest]
    #[case::function(ChunkKind::Function, &[], Some(SectionKind::Function))]
    #[case::a_test(ChunkKind::Test, &[(ChunkKind::Function, 2, 3)], Some(SectionKind::Test))]
    #[case::data(ChunkKind::Class, &[(ChunkKind::Class, 1, 9)], Some(SectionKind::Type))]
    #[case::code(ChunkKind::Class, &[(ChunkKind::Class, 1, 9), (ChunkKind::Function, 3, 5)], Some(SectionKind::Function))]
    #[case::between_functions(ChunkKind::Class, &[(ChunkKind::Class, 1, 90), (ChunkKind::Function, 11, 15)], None)]
    #[case::interface(ChunkKind::Interface, &[], Some(SectionKind::Type))]
    #[case::constant(ChunkKind::Constant, &[], None)]
    #[case::window(ChunkKind::Window, &[(ChunkKind::Function, 1, 90)], None)]
    fn what_a_chunk_is_as_a_section(
        #[case] of: ChunkKind,
        #[case] declared: &[(ChunkKind, u32, u32)],
        #[case] expected: Option<SectionKind>,
    ) {
        let declared: Vec<Declaration> =
            declared.iter().map(|(kind, start, end)| declaration(*kind, *start, *end)).collect();
        assert_eq!(classify_unit(of, LineRange::new(1, 10), &sort_declarations(&declared)), expected);
    }

    /// Returns a file with functions of these lengths in lines, in a Rust module or a Python class.
    fn code(path: &str, functions: &[u32]) -> String {
        let function = |(number, lines): (usize, &u32)| match path {
            "a.rs" => {
                let body = "        self.count = self.count.saturating_add(of(17));\n".repeat(*lines as usize);
                format!("    fn walk_{number}(&mut self) {{\n{body}    }}\n\n")
            }
            _ => {
                let body = "        self.count = min(self.count + of(17), most)\n".repeat(*lines as usize);
                format!("    def walk_{number}(self):\n{body}        return 1\n\n")
            }
        };
        let functions: String = functions.iter().enumerate().map(function).collect();
        match path {
            "a.rs" => format!("impl Walk {{\n{functions}}}\n"),
            _ => format!("class Walk:\n{functions}"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_line_is_in_one_unit_and_no_declaration_that_is_a_chunk_in_two(
            path in prop::sample::select(vec!["a.rs", "a.py", "a.txt"]),
            functions in proptest::collection::vec(1u32..200, 1..12),
        ) {
            let text = code(path, &functions);
            let syntax = parse_syntax(&mut Parsers::default(), path, &text);
            let units: Vec<CodeUnit> = split_into_units(&syntax, text.lines().count() as u32).collect();
            let mut next = 1;
            for unit in &units {
                prop_assert_eq!(unit.lines.start, next);
                next = unit.lines.end + 1;
            }
            prop_assert_eq!(next as usize, text.lines().count() + 1);
            let tokens = |lines: LineRange| {
                let said = text.split_inclusive('\n').skip(lines.start as usize - 1).take(lines.count() as usize);
                crate::tokens::count_tokens(Encoding::O200kBase, &said.collect::<String>())
            };
            for one in syntax.declarations.iter() {
                let is_whole = units.iter().any(|unit| unit.lines.contains(one.lines));
                prop_assert!(is_whole || tokens(one.lines) > MAX_TOKENS_PER_CHUNK as usize - 20, "{:?} in {:?}", one.lines, units);
            }
        }

        #[test]
        fn chunks_that_a_file_does_not_have_are_none(lines in 0u32..50) {
            let text = code("a.rs", &[3, 5, 300]);
            let syntax = parse_syntax(&mut Parsers::default(), "a.rs", &text);
            prop_assert!(split_into_units(&syntax, lines).all(|unit| unit.lines.end <= lines));
            let unknown: Vec<LineRange> = split_into_units(&FileSyntax::default(), lines).map(|unit| unit.lines).collect();
            prop_assert_eq!(unknown, if lines == 0 { vec![] } else { vec![LineRange::new(1, lines)] });
        }
    }
}
