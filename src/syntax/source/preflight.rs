//! Checks a text before it is parsed, and refuses texts that were made to exhaust the parser.
//!
//! The progress callback of [`super::parsers`] stops a parse between two steps. A single step may take memory and time
//! by the square of what is open at that point: brackets, a chain of operators with two meanings (`a<b<c` may
//! be generics or comparisons), quotes without text between them. With the caps below, one step takes half a gigabyte
//! and some seconds at most, for all of the thousands of repetitions of one to three tokens that were tried.
//!
//! The scan reads the text once, at 400 MB/s. It knows neither strings nor comments, so a hostile text may hide from it;
//! the memory limit of the worker process stands behind it, see [`crate::syntax::parse_log`].
//!
//! Measured on 93,000 files (1.3 GB) of all languages, among them efcore, rails, symfony, playwright, folly, redis and
//! generated parsers: none is refused.

/// Maximum length of a text, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 20;
/// Maximum length of a line, in bytes. Programs write bundles of some megabytes on one line.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Maximum number of brackets of one shape that are open at once. Brackets that are closed later cost as much as others
/// while the parser recovers from an error: 2,857 in Python 66 s and 8 GB. In 78,000 files of all languages at most 507
/// are open, in a table that a program wrote.
const MAX_OPEN_BRACKETS: u32 = 1_000;
/// Maximum number of NULs. The scanner of Bash looks ahead to the end of the text from each of them.
const MAX_NULS: u32 = 500;
/// Maximum number of operators in a chain. A chain ends at `;` or `,`, between two lines without an operator on either
/// side, at a comment line, and at `</` or `/>`, because markup in a long string is no chain.
const MAX_CHAINED_OPERATORS: u32 = 1_000;
/// Maximum number of `*` that end a line behind another operator, with nothing to multiply: `/*` in Python, which may be
/// a broken division or the beginning of an unpacked value. 1,000 of them take 320 MB, by the square of their number.
const MAX_LONE_STARS: usize = 300;
/// Maximum number of operators that follow a comma, with nothing on their left: `a,>b` in C. Each is an error that the
/// parser recovers from at a cost that grows with those before it: 2,000 take 0.15 s, 10,000 4 s.
const MAX_LEADING_OPERATORS: usize = 2_000;
/// Maximum number of double quotes in a row. The other quotes cost nothing, however many there are.
const MAX_ADJACENT_QUOTES: u32 = 4_096;

/// Meaning of a byte for the scan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    /// Part of a name, a number or anything else that the scan does not count.
    Plain,
    Space,
    LineEnd,
    /// An opening bracket, with the index of its shape.
    Open(u8),
    Close(u8),
    Quote,
    Nul,
    /// An operator that lengthens a chain.
    Operator,
    /// The end of a statement, which ends a chain.
    Semicolon,
    /// Ends a chain, but leaves `<` unmatched: `a<b, c<d, …` may be nested generics.
    Comma,
}

/// Returns whether a text is within the caps. `chain_operators` are the bytes whose repetition makes the grammar of the
/// text ambiguous.
pub(super) fn is_within_caps(text: &[u8], chain_operators: &[u8]) -> bool {
    text.len() <= MAX_TEXT_BYTES && Scan::new(chain_operators).run(text)
}

/// Returns whether a text has few enough lines that end with `*` behind one of the `operators`. Spaces, line ends and a
/// comment with `#` may stand around the `*`.
pub(super) fn has_few_lone_stars(text: &[u8], operators: &[u8]) -> bool {
    if operators.is_empty() {
        return true;
    }
    let is_lone = |at: &usize| {
        let before = text.get(..*at).unwrap_or_default().trim_ascii_end().last();
        let behind = text.get(at + 1..).unwrap_or_default().iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        before.is_some_and(|byte| operators.contains(byte)) && matches!(behind, None | Some(b'\n' | b'#'))
    };
    memchr::memchr_iter(b'*', text).filter(is_lone).nth(MAX_LONE_STARS).is_none()
}

/// Returns whether a text has few enough of the `operators` behind a comma. Spaces and line ends may stand between them;
/// a comment is no operator.
pub(super) fn has_few_leading_operators(text: &[u8], operators: &[u8]) -> bool {
    if operators.is_empty() {
        return true;
    }
    let is_leading = |at: &usize| match text.get(at + 1..).unwrap_or_default().trim_ascii_start() {
        [b'/', b'/' | b'*', ..] => false,
        rest => rest.first().is_some_and(|byte| operators.contains(byte)),
    };
    memchr::memchr_iter(b',', text).filter(is_leading).nth(MAX_LEADING_OPERATORS).is_none()
}

/// State of the scan.
struct Scan {
    classes: [ByteClass; 256],
    open: [u32; 3],
    chained: u32,
    /// Number of `<` without `>` since the last bracket or end of a statement.
    angles: u32,
    quotes: u32,
    nuls: u32,
    line_start: usize,
    /// True until the first byte of a line that is no space.
    is_line_head: bool,
    /// Class of the last byte that is no space.
    last: ByteClass,
}

impl Scan {
    fn new(chain_operators: &[u8]) -> Self {
        let mut classes = [ByteClass::Plain; 256];
        let mut set = |bytes: &[u8], class| bytes.iter().for_each(|&byte| classes[usize::from(byte)] = class);
        set(b" \t\r\x0c", ByteClass::Space);
        set(b"\n", ByteClass::LineEnd);
        set(b"\"", ByteClass::Quote);
        set(b"\0", ByteClass::Nul);
        set(b";", ByteClass::Semicolon);
        set(b",", ByteClass::Comma);
        for (shape, [open, close]) in [b"()", b"[]", b"{}"].into_iter().enumerate() {
            set(&[*open], ByteClass::Open(shape as u8));
            set(&[*close], ByteClass::Close(shape as u8));
        }
        set(chain_operators, ByteClass::Operator);
        Self {
            classes,
            open: [0; 3],
            chained: 0,
            angles: 0,
            quotes: 0,
            nuls: 0,
            line_start: 0,
            is_line_head: true,
            last: ByteClass::Plain,
        }
    }

    /// Returns whether no cap is exceeded anywhere in the text.
    fn run(mut self, text: &[u8]) -> bool {
        let mut next = 0;
        while let Some(&byte) = text.get(next) {
            let (at, class) = (next, self.classes[usize::from(byte)]);
            next += 1;
            if class == ByteClass::Space {
                self.quotes = 0;
                continue;
            }
            if class == ByteClass::LineEnd {
                if at - self.line_start > MAX_LINE_BYTES {
                    return false;
                }
                (self.line_start, self.is_line_head, self.quotes) = (at + 1, true, 0);
                continue;
            }
            if std::mem::take(&mut self.is_line_head) && !self.is_continuation(class, &text[at..]) {
                (self.chained, self.angles) = (0, 0);
            }
            self.last = class;
            if class == ByteClass::Plain {
                self.quotes = 0;
                // Most of a text is words.
                let classes = &self.classes;
                next += text[next..].iter().take_while(|&&byte| classes[usize::from(byte)] == ByteClass::Plain).count();
                continue;
            }
            if !self.count(class, text, at) {
                return false;
            }
        }
        text.len() - self.line_start <= MAX_LINE_BYTES
    }

    /// Returns whether a line that begins with `rest` continues a chain of the lines above.
    fn is_continuation(&self, class: ByteClass, rest: &[u8]) -> bool {
        let is_open = class == ByteClass::Operator || matches!(self.last, ByteClass::Operator | ByteClass::Comma);
        is_open && !is_comment_start(rest)
    }

    /// Counts the byte at `at`. Returns false if a cap is exceeded.
    fn count(&mut self, class: ByteClass, text: &[u8], at: usize) -> bool {
        self.quotes = if class == ByteClass::Quote { self.quotes + 1 } else { 0 };
        match class {
            ByteClass::Open(shape) => {
                self.open[usize::from(shape)] += 1;
                self.angles = 0;
                return self.open[usize::from(shape)] <= MAX_OPEN_BRACKETS;
            }
            ByteClass::Close(shape) => {
                let open = &mut self.open[usize::from(shape)];
                *open = open.saturating_sub(1);
                self.angles = 0;
            }
            ByteClass::Operator if is_tag_end(text, at) => (self.chained, self.angles) = (0, 0),
            ByteClass::Operator => {
                self.chained += 1;
                match text[at] {
                    b'<' => self.angles += 1,
                    b'>' => self.angles = self.angles.saturating_sub(1),
                    _ => {}
                }
            }
            ByteClass::Semicolon => (self.chained, self.angles) = (0, 0),
            ByteClass::Comma => self.chained = 0,
            ByteClass::Nul => {
                self.nuls += 1;
                return self.nuls <= MAX_NULS;
            }
            ByteClass::Quote | ByteClass::Plain | ByteClass::Space | ByteClass::LineEnd => {}
        }
        self.quotes <= MAX_ADJACENT_QUOTES && self.chained.max(self.angles) <= MAX_CHAINED_OPERATORS
    }
}

/// Returns whether a line that begins with `rest` is a comment, in any of the languages, or an example of a Python
/// session.
fn is_comment_start(rest: &[u8]) -> bool {
    matches!(rest, [b'#' | b'*', ..] | [b'/', b'/' | b'*', ..] | [b'>', b'>', b'>', ..])
}

/// Returns whether the operator at `at` belongs to `</` or `/>`.
fn is_tag_end(text: &[u8], at: usize) -> bool {
    match text[at] {
        b'<' => text.get(at + 1) == Some(&b'/'),
        b'>' => at > 0 && text[at - 1] == b'/',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(text: &str) -> bool {
        is_within_caps(text.as_bytes(), b"<=>&?")
    }

    #[test]
    fn each_cap_is_the_largest_number_that_passes() {
        let brackets = |count: u32| "([{".repeat(count as usize);
        let chain = |count: u32| "a<".repeat(count as usize);
        let quotes = |count: u32| "\"".repeat(count as usize);
        let nuls = |count: u32| "a\0".repeat(count as usize);
        for (text, cap) in [
            (&brackets as &dyn Fn(u32) -> String, MAX_OPEN_BRACKETS),
            (&chain, MAX_CHAINED_OPERATORS),
            (&quotes, MAX_ADJACENT_QUOTES),
            (&nuls, MAX_NULS),
        ] {
            assert!(passes(&text(cap)), "{cap} of {:?}", text(1));
            assert!(!passes(&text(cap + 1)), "{cap} and one of {:?}", text(1));
        }
        assert!(passes(&"x".repeat(MAX_LINE_BYTES)) && !passes(&"x".repeat(MAX_LINE_BYTES + 1)));
        assert!(passes(&"x\n".repeat(MAX_TEXT_BYTES / 2)) && !passes(&"x\n".repeat(MAX_TEXT_BYTES / 2 + 1)));
    }

    #[test]
    fn long_code_is_no_chain_and_leaves_nothing_open() {
        assert!(passes(&format!("{}{}", "[(".repeat(1_000), ")]".repeat(1_000)).repeat(5)), "deep brackets");
        for unit in [
            "if (a < b) { c(d[0]); }\n",
            "case x) a && b\n;;\n",
            "x = a > b\n",
            "flags = A &\n  B;\n",
            "    /// <summary>\n    /// <c>a</c>\n",
            "a = b, ",
            "f(a < b), ",
            "    >>> a = b\n",
            "<td><b>a</b>\n<br/>\n",
            "s = '' + \"\"\n",
        ] {
            assert!(passes(&unit.repeat(5_000)), "{unit:?}");
        }
    }

    #[test]
    fn stars_without_a_factor_are_few() {
        let passes = |text: &str| has_few_lone_stars(text.as_bytes(), b"/|");
        for unit in ["/*\n", "/ * # a\n", "//\n*\n", "a |* \r\n"] {
            assert!(passes(&unit.repeat(MAX_LONE_STARS)), "{unit:?}");
            assert!(!passes(&unit.repeat(MAX_LONE_STARS + 1)), "{unit:?}");
        }
        for unit in ["'a/*'\n", "f(*a)\n", "a * b / c\n", "**\n", "+*\n", "/* a\n"] {
            assert!(passes(&unit.repeat(2 * MAX_LONE_STARS)), "{unit:?}");
        }
        assert!(has_few_lone_stars("/*\n".repeat(2 * MAX_LONE_STARS).as_bytes(), b""));
    }

    #[test]
    fn operators_without_a_left_side_are_few() {
        let passes = |text: &str| has_few_leading_operators(text.as_bytes(), b">|/%^");
        for unit in [">'a',", "| a , ", "/a,\n"] {
            assert!(passes(&unit.repeat(MAX_LEADING_OPERATORS)), "{unit:?}");
            assert!(!passes(&unit.repeat(MAX_LEADING_OPERATORS + 2)), "{unit:?}");
        }
        for unit in ["a, // b\n", "1, /* c */\n", "a > b, ", "a,-b,"] {
            assert!(passes(&unit.repeat(2 * MAX_LEADING_OPERATORS)), "{unit:?}");
        }
        assert!(has_few_leading_operators(">a,".repeat(2 * MAX_LEADING_OPERATORS).as_bytes(), b""));
    }

    #[test]
    fn line_ends_and_spaces_do_not_hide_a_chain() {
        for unit in ["a<b, ", "a>b\n  => ", "a <\n", "a <\n\n", "a\t= ", "a <= b =\n   c >\r\n"] {
            assert!(!passes(&unit.repeat(2_000)), "{unit:?}");
        }
    }
}
