//! Shortens titles of findings for rows of a list: the symbol first, then the problem in a few words.
//!
//! The titles of the built-in reviewer follow patterns, which [`PATTERNS`] lists. Of any other title, such as one by a
//! model, the only quoted name is the symbol, and the whole title stays as it is. Without one, the symbol is the function
//! around the finding, which was recorded with it.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::store::FindingRow;

/// Title of a finding, split for a row of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortTitle<'a> {
    /// Function, class, variable or literal that the finding is about; empty if the title names none in a known place.
    pub symbol: &'a str,
    /// The problem in a few words, without the symbol; else the whole title.
    pub problem: Cow<'a, str>,
    /// The problem is the whole title, which names the symbol, too.
    pub is_whole_title: bool,
}

/// Pattern of a title and the short form of its problem. `{s}` is the symbol, `{a}` and `{b}` are further parts; each
/// part ends where the text after it begins. The first matching row counts.
type TitlePattern = (&'static str, &'static str);

const PATTERNS: &[TitlePattern] = &[
    ("function `{s}` is complex: {a}", "{a}"),
    ("function `{s}` got more complex: {a}", "{a}"),
    ("function `{s}` is {a} code lines long", "{a} lines"),
    ("function `{s}` grew from {a} to {b} code lines", "from {a} to {b} lines"),
    ("class `{s}` does too much: {a}", "{a}"),
    ("class `{s}` grew {a}", "{a}"),
    ("class attribute `{s}` is changed through its objects", "class attribute changed through objects"),
    ("unused parameter `{s}` of `{a}`", "unused parameter of {a}"),
    ("unused {a} `{s}`", "unused {a}"),
    ("the condition of `{s}` is always `{a}`", "always {a}"),
    ("`unwrap()` on `{s}` can panic", "unwrap() can panic"),
    ("`expect()` on `{s}` can panic", "expect() can panic"),
    ("`expect(\"\")` on `{s}` panics without a reason", "expect() without a reason"),
    ("`try?` drops the error of `{s}`", "try? drops its error"),
    ("`try!` on `{s}` can crash", "try! can crash"),
    ("the result of `{s}` is thrown away", "result thrown away"),
    ("the result of `{s}` is used unchecked", "result used unchecked"),
    ("the error of `{s}` is ignored", "error ignored"),
    ("the error of `{s}` is assigned to `_`", "error assigned to _"),
    ("the return value of `{s}` is not checked", "return value not checked"),
    ("`{s}()` is asynchronous and not awaited", "not awaited"),
    ("`{s}` is never reached", "never reached"),
    ("default `{a}` of `{s}` is one object for all calls", "default {a} is one object"),
    ("`static mut` `{s}`, touched by {a}", "static mut, touched by {a}"),
    ("{a} `{s}`, touched by {b}", "{a}, touched by {b}"),
    ("{a} `{s}` is changed by {b}", "changed by {b}"),
    ("{s} is not explained by a name", "unexplained number"),
    ("\"{s}\" is written out {a} times", "written out {a} times"),
    ("an {a} for `{s}` stands in the code: {b}", "hardcoded {a}"),
    ("a {a} for `{s}` stands in the code: {b}", "hardcoded {a}"),
    ("{a} of `{s}` stands in the code: {b}", "hardcoded {a}"),
    // What stands there is a hidden value.
    ("an {a} stands in the code: {b}", "hardcoded {a}"),
    ("a {a} stands in the code: {b}", "hardcoded {a}"),
    ("{a} is fixed in the code: {s}", "{a} in the code"),
    // The caught error is no symbol.
    ("a handler of `{a}` swallows every error", "handler of {a} swallows every error"),
    ("a handler of `{a}` is empty", "empty handler of {a}"),
    ("`if {a}` does nothing", "if {a} does nothing"),
    ("`{s}` {a}", "{a}"),
];

/// Splits the title of a finding. A title that names no symbol has that of the function around the finding.
pub fn shorten_finding<'a>(finding: &FindingRow<'a>) -> ShortTitle<'a> {
    let short = match shorten_repeat(finding.title, finding.path) {
        Some(problem) => ShortTitle { symbol: "", problem: problem.into(), is_whole_title: false },
        None => shorten_title(finding.title),
    };
    match short.symbol.is_empty() && !finding.symbol.is_empty() {
        true => ShortTitle { symbol: finding.symbol, is_whole_title: false, ..short },
        false => short,
    }
}

/// Returns the function around a finding whose title names no symbol; empty for another finding.
pub fn name_function_around<'a>(finding: &FindingRow<'a>) -> &'a str {
    if shorten_title(finding.title).symbol.is_empty() { finding.symbol } else { "" }
}

/// Splits a title into symbol and problem. The problem is the whole title if it follows no known pattern.
fn shorten_title(title: &str) -> ShortTitle<'_> {
    for pattern in SPLIT_PATTERNS.iter() {
        if let Some([symbol, a, b]) = match_parts(pattern, title)
            // Two symbols are no symbol.
            && !symbol.contains('`')
        {
            let problem = match pattern.short {
                "{a}" => a.into(),
                short if short.contains('{') => short.replace("{a}", a).replace("{b}", b).into(),
                short => short.into(),
            };
            return ShortTitle { symbol, problem: shorten_growth(problem), is_whole_title: false };
        }
    }
    ShortTitle { symbol: find_symbol(title).unwrap_or(""), problem: Cow::Borrowed(title), is_whole_title: true }
}

/// Shortens the place that the lines of a finding in `own_path` repeat, so that it fits into a row: `9 lines repeat :40, 96 %
/// the same` in the same file, `9 lines repeat scan.rs:40, to the letter` in another one, with its folder if it has the same
/// name. `None` for another title.
fn shorten_repeat(title: &str, own_path: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (lines, rest) = title.split_once(" repeat ")?;
    let (count, unit) = lines.split_once(' ')?;
    let (place, likeness) = rest.rsplit_once(", ")?;
    let (path, range) = place.rsplit_once(':')?;
    let (first, last) = range.split_once('-')?;
    if !matches!(unit, "line" | "lines") || ![count, first, last].into_iter().all(is_number) {
        return None;
    }
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let shown = match name(path) {
        _ if path == own_path => String::new(),
        shown if shown != name(own_path) => shown,
        shown => match path.rsplit('/').nth(1) {
            Some(folder) => format!("{folder}/{shown}"),
            None => shown,
        },
    };
    Some(format!("{lines} repeat {shown}:{first}, {likeness}"))
}

/// Returns the name of code that a title quotes, as in "the lock of `cache.entries` is never released". Other quoted
/// code, such as an expression, is no symbol; of two names, nobody knows which one is meant.
fn find_symbol(title: &str) -> Option<&str> {
    let (_, after) = title.split_once('`')?;
    let (quoted, rest) = after.split_once('`')?;
    let name = quoted.strip_suffix("()").unwrap_or(quoted);
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ':'))
        && !name.ends_with([':', '.']);
    (is_name && !rest.contains('`')).then_some(quoted)
}

/// [`TitlePattern`], split once: a list compares the title of each of its rows with all of them.
struct SplitPattern {
    /// Text before the first part.
    head: &'static str,
    /// Parts, each as its place in `s`, `a`, `b` and the text after it.
    parts: Vec<(usize, &'static str)>,
    short: &'static str,
}

static SPLIT_PATTERNS: LazyLock<Vec<SplitPattern>> =
    LazyLock::new(|| PATTERNS.iter().filter_map(split_pattern).collect());

/// Splits a pattern at its parts; `None` if it has none, or one with another name.
fn split_pattern((pattern, short): &TitlePattern) -> Option<SplitPattern> {
    let (head, rest) = pattern.split_once('{')?;
    let split_part = |part: &'static str| {
        let (name, after) = part.split_once('}')?;
        Some((["s", "a", "b"].iter().position(|known| *known == name)?, after))
    };
    Some(SplitPattern { head, parts: rest.split('{').map(split_part).collect::<Option<_>>()?, short })
}

/// Returns the texts at `{s}`, `{a}` and `{b}`; `None` if the title does not follow the pattern. The case of the first
/// letter does not matter. No part is empty.
fn match_parts<'t>(pattern: &SplitPattern, title: &'t str) -> Option<[&'t str; 3]> {
    let SplitPattern { head, parts, .. } = pattern;
    if !title.get(..head.len())?.eq_ignore_ascii_case(head) {
        return None;
    }
    let ((last, end), inner) = parts.split_last()?;
    let mut rest = title[head.len()..].strip_suffix(end)?;
    let mut found = [""; 3];
    for (place, after) in inner {
        let (part, behind) = rest.split_once(after)?;
        found[*place] = part;
        rest = behind;
    }
    found[*last] = rest;
    parts.iter().all(|(place, _)| !found[*place].is_empty()).then_some(found)
}

/// Replaces `grew from 17 to 19` and `from 17 to 19` by `17 → 19`, and takes away the word "complexity" where the figure
/// is named by the word before it.
fn shorten_growth(problem: Cow<'_, str>) -> Cow<'_, str> {
    if !problem.contains("from ") && !problem.contains("complexity") {
        return problem;
    }
    let mut short = String::with_capacity(problem.len());
    for (at, clause) in problem.split(", ").enumerate() {
        if at > 0 {
            short.push_str(", ");
        }
        let clause = clause.replace("cyclomatic complexity", "complexity").replace("cognitive complexity", "cognitive");
        match clause.split_once("from ").and_then(|(head, rest)| Some((head, rest.split_once(" to ")?))) {
            Some((head, (before, after))) if before.bytes().all(|byte| byte.is_ascii_digit()) => {
                let head = head.strip_suffix("grew ").unwrap_or(head);
                short.extend([head, before, " → ", after]);
            }
            _ => short.push_str(&clause),
        }
    }
    short.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_of_the_built_in_reviewer_begin_with_their_symbol() {
        for (title, symbol, problem) in [
            ("function `weigh` is complex: cyclomatic 21, 7 parameters", "weigh", "cyclomatic 21, 7 parameters"),
            (
                "Function `weigh` got more complex: cyclomatic complexity grew from 17 to 19, cognitive complexity grew \
                 from 42 to 50",
                "weigh",
                "complexity 17 → 19, cognitive 42 → 50",
            ),
            ("function `Parser.parse` is 84 code lines long", "Parser.parse", "84 lines"),
            ("Function `build_context` grew from 126 to 186 code lines", "build_context", "126 → 186 lines"),
            ("class `Engine` does too much: 31 methods, 20 fields", "Engine", "31 methods, 20 fields"),
            ("Class `Engine` grew from 20 to 31 methods", "Engine", "20 → 31 methods"),
            ("unused parameter `rate` of `total`", "rate", "unused parameter of total"),
            ("Unused import `Rc`", "Rc", "unused import"),
            ("unused import `a`, `b`", "", "unused import `a`, `b`"),
            ("unused import `a`, `b` and 2 more", "", "unused import `a`, `b` and 2 more"),
            ("unused function `old`", "old", "unused function"),
            ("`print(x)` is never reached", "print(x)", "never reached"),
            ("the condition of `if x` is always `false`", "if x", "always false"),
            ("the error of `parse` is ignored", "parse", "error ignored"),
            ("`unwrap()` on `lock` can panic", "lock", "unwrap() can panic"),
            ("`rm -r` may fail and the script goes on", "rm -r", "may fail and the script goes on"),
            ("mutable global `CACHE`, touched by 3 functions", "CACHE", "mutable global, touched by 3 functions"),
            ("`static mut` `CACHE`, touched by 3 functions", "CACHE", "static mut, touched by 3 functions"),
            ("mutable global `CACHE` is changed by 2 functions", "CACHE", "changed by 2 functions"),
            (
                "default `names=[]` of `collect` is one object for all calls",
                "collect",
                "default names=[] is one object",
            ),
            ("3600 is not explained by a name", "3600", "unexplained number"),
            ("\"text/html\" is written out 5 times", "text/html", "written out 5 times"),
            ("GitHub token of `TOKEN` stands in the code: ghp_…", "TOKEN", "hardcoded GitHub token"),
            ("A secret for `PASSWORD` stands in the code: …(22 characters)", "PASSWORD", "hardcoded secret"),
            ("An AWS access key for `key` stands in the code: …(20 characters)", "key", "hardcoded AWS access key"),
            ("A Stripe key stands in the code: …(32 characters)", "", "hardcoded Stripe key"),
            ("A URL is fixed in the code: http://db:80", "http://db:80", "A URL in the code"),
            (
                "13 lines repeat src/scan.rs:40-52, to the letter",
                "",
                "13 lines repeat src/scan.rs:40-52, to the letter",
            ),
        ] {
            let short = shorten_title(title);
            assert_eq!((short.symbol, short.problem.as_ref()), (symbol, problem), "{title}");
            assert_eq!(short.is_whole_title, problem == title, "{title}");
        }
    }

    #[test]
    fn a_title_without_a_symbol_has_that_of_the_function_around_the_finding() {
        use crate::tui::tests::support::finding_row;
        for (title, around, symbol, problem, is_whole) in [
            ("A bare `except:` catches everything", "load", "load", "A bare `except:` catches everything", false),
            ("A bare `except:` catches everything", "", "", "A bare `except:` catches everything", true),
            (
                "A handler of `Exception` swallows every error",
                "send",
                "send",
                "handler of Exception swallows every error",
                false,
            ),
            (
                "A handler of `OSError, ValueError` is empty",
                "send",
                "send",
                "empty handler of OSError, ValueError",
                false,
            ),
            ("`if err != nil` does nothing", "Send", "Send", "if err != nil does nothing", false),
            ("the error of `parse` is ignored", "load", "parse", "error ignored", false),
            ("Retries of `send` never stop", "run", "send", "Retries of `send` never stop", true),
            ("Retries never stop", "Client.run", "Client.run", "Retries never stop", false),
        ] {
            let row = FindingRow { title, symbol: around, ..finding_row("f_1", "ar_1") };
            let short = shorten_finding(&row);
            assert_eq!(
                (short.symbol, short.problem.as_ref(), short.is_whole_title),
                (symbol, problem, is_whole),
                "{title}"
            );
        }
    }

    #[test]
    fn repeated_lines_name_the_other_place_by_its_file() {
        use crate::tui::tests::support::finding_row;
        for (title, around, symbol, problem) in [
            (
                "13 lines repeat src/context/scan.rs:40-52, to the letter",
                "",
                "",
                "13 lines repeat scan.rs:40, to the letter",
            ),
            ("9 lines repeat src/mail/mod.rs:7-15, 96 % the same", "", "", "9 lines repeat :7, 96 % the same"),
            ("9 lines repeat src/net/mod.rs:7-15, 96 % the same", "", "", "9 lines repeat net/mod.rs:7, 96 % the same"),
            ("9 lines repeat mod.rs:7-15, 96 % the same", "", "", "9 lines repeat mod.rs:7, 96 % the same"),
            ("1 line repeat a.rs:7-7, to the letter", "send", "send", "1 line repeat a.rs:7, to the letter"),
            // Titles of models are no such ones.
            ("9 lines repeat src/mail/mod.rs:7, roughly", "", "", "9 lines repeat src/mail/mod.rs:7, roughly"),
            ("The lines repeat a.rs:7-15, roughly", "", "", "The lines repeat a.rs:7-15, roughly"),
            ("9 lines repeat", "", "", "9 lines repeat"),
        ] {
            let row = FindingRow { title, symbol: around, path: "src/mail/mod.rs", ..finding_row("f_1", "ar_1") };
            let short = shorten_finding(&row);
            assert_eq!((short.symbol, short.problem.as_ref()), (symbol, problem), "{title}");
        }
    }

    #[test]
    fn other_titles_stay_as_they_are() {
        for title in [
            "",
            "`",
            "``",
            "`` x",
            "a token in the source: ghp_…redacted",
            "Retries never stop when the server answers 429",
            "function `",
            "A bare `except:` catches everything",
            "the sum `a + b` overflows",
            "Retries of `send` never stop when `status` is 429",
            "Retries of `send never stop",
            "ü",
        ] {
            let short = shorten_title(title);
            assert_eq!((short.symbol, short.problem.as_ref()), ("", title));
        }
        for (title, symbol) in [
            ("The lock of `cache.entries` is never released", "cache.entries"),
            ("Größe: `unwrap()` on", "unwrap()"),
            ("Retries of `net::send` never stop", "net::send"),
            ("function `x` is complex: ", "x"),
        ] {
            let short = shorten_title(title);
            assert_eq!((short.symbol, short.problem.as_ref()), (symbol, title));
        }
    }
}
