//! The paths, changed lines and symbols of a scope, against which reports are validated.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::LineRange;
use crate::domain::text::{is_unsafe, sanitize_line};

/// The files of a scope with their changed lines on the new side.
#[derive(Debug, Clone, Default)]
pub struct ScopeLines {
    files: BTreeMap<String, Vec<LineRange>>,
    /// Paths by file name.
    by_name: BTreeMap<String, Vec<String>>,
    symbols: BTreeSet<String>,
    roots: Vec<String>,
}

impl ScopeLines {
    /// Creates a scope from paths and their changed lines on the new side.
    pub fn new(files: impl IntoIterator<Item = (String, Vec<LineRange>)>) -> Self {
        let mut scope = Self::default();
        for (path, lines) in files {
            scope.by_name.entry(file_name(&path).to_owned()).or_default().push(path.clone());
            scope.files.insert(path, lines);
        }
        scope
    }

    /// Sets the folders that mean the repository in absolute paths: its own root and the copy in which an agent works.
    pub fn with_roots(mut self, roots: impl IntoIterator<Item = String>) -> Self {
        self.roots.extend(roots.into_iter().map(|root| root.trim_end_matches('/').to_owned()));
        self
    }

    /// Sets the names of changed functions and types. Skips names that may be ordinary words (`new`, `Store`).
    pub fn with_symbols(mut self, symbols: impl IntoIterator<Item = String>) -> Self {
        self.symbols.extend(symbols.into_iter().filter(|symbol| is_code_name(symbol)));
        self
    }

    /// Returns the files with their changed lines, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[LineRange])> {
        self.files.iter().map(|(path, lines)| (path.as_str(), lines.as_slice()))
    }

    /// Returns `true` if a report is about no file in scope. Its text must then name a file in scope or a symbol.
    pub fn is_outside(&self, reported: &str) -> bool {
        self.candidate_paths(reported).is_ok_and(|paths| paths.iter().all(|path| self.lines(path).is_none()))
    }

    /// Returns the changed lines of a file; `None` if the file is not in scope.
    pub fn lines(&self, path: &str) -> Option<&[LineRange]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Returns the repository paths that a report's path may mean, the most likely first: the path itself; the path
    /// without the prefix of a diff; the only changed path of which the report's path is a suffix or which is a
    /// suffix of the report's path; and the only changed path with characters that a model does not get as they are, which the
    /// report names as it was shown.
    ///
    /// # Errors
    ///
    /// The reason why the path is invalid, for the user.
    pub fn candidate_paths(&self, reported: &str) -> Result<Vec<String>, String> {
        let path = reported.trim().strip_prefix("file://").unwrap_or(reported.trim());
        if path.is_empty() {
            return Err("it names no file".to_owned());
        }
        let as_shown = path;
        let path = path.replace('\\', "/");
        let absolute = path.starts_with('/') || path.get(1..3) == Some(":/");
        let inside = || self.roots.iter().find_map(|root| path.strip_prefix(root.as_str())?.strip_prefix('/'));
        let path = match absolute {
            true => inside().ok_or_else(|| format!("{reported} is not in the repository"))?,
            false => path.as_str(),
        };
        if path.split('/').any(|part| part == "..") {
            return Err(format!("{reported} leads out of the repository"));
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let plain = parts.join("/");
        let mut paths = Vec::new();
        if let ["a" | "b", rest @ ..] = parts.as_slice() {
            paths.push(rest.join("/"));
        }
        let ends_with = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'));
        let like = |known: &&String| ends_with(known, &plain) || ends_with(&plain, known);
        let named = self.by_name.get(file_name(&plain)).map(Vec::as_slice).unwrap_or_default();
        let mut alike = named.iter().filter(like);
        if let (Some(only), None) = (alike.next(), alike.next())
            && !absolute
        {
            paths.push(only.clone());
        }
        let mut shown = self.files.keys().filter(|known| is_shown_as(known, as_shown));
        if let (Some(only), None) = (shown.next(), shown.next()) {
            paths.push(only.clone());
        }
        paths.insert(0, plain);
        paths.retain(|path| !path.is_empty());
        Ok(paths)
    }

    /// Returns `true` if a text names a changed file or symbol.
    pub fn is_named_in(&self, text: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        text.split(|c: char| !is_part(c)).map(|word| word.trim_matches('.')).any(|word| {
            let name = file_name(word);
            self.files.contains_key(word)
                || (name.contains('.') && self.by_name.contains_key(name))
                || word.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| self.symbols.contains(word))
        })
    }
}

/// Returns `true` if a name is no ordinary word: it contains an underscore, a digit, or a capital after a small letter.
fn is_code_name(name: &str) -> bool {
    let capital_within = || name.chars().zip(name.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    name.contains(|c: char| c == '_' || c.is_ascii_digit()) || capital_within()
}

/// Returns `true` if a path with characters that are not shown as they are ends a report's path in one of the forms in which they
/// are shown: as in a safe text, or with `\u{200d}` for each of them as in a request to a model.
fn is_shown_as(path: &str, reported: &str) -> bool {
    let ends = |shown: &str| reported.strip_suffix(shown).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    if !path.contains(is_unsafe) {
        return false;
    }
    let mut escaped = String::with_capacity(path.len() + 16);
    for c in path.chars() {
        match is_unsafe(c) {
            true => escaped.extend(c.escape_unicode()),
            false => escaped.push(c),
        }
    }
    ends(&sanitize_line(path)) || ends(&escaped)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn scope() -> ScopeLines {
        let paths = ["src/a.rs", "src/store/mod.rs", "src/git/mod.rs", "b/c.rs", "Makefile"];
        ScopeLines::new(paths.map(|path| (path.to_owned(), vec![LineRange::new(1, 2)])))
            .with_roots(["/home/u/repo/".to_owned(), "/tmp/copy".to_owned()])
            .with_symbols(["parse_all", "parseAll", "parse", "Store", "new"].map(str::to_owned))
    }

    #[rstest]
    #[case::as_it_is("src/a.rs", &["src/a.rs"])]
    #[case::dotted("./src/./a.rs", &["src/a.rs"])]
    #[case::of_a_diff("b/src/a.rs", &["b/src/a.rs", "src/a.rs"])]
    #[case::a_folder_named_b("b/c.rs", &["b/c.rs", "c.rs"])]
    #[case::absolute("/home/u/repo/src/x.rs", &["src/x.rs"])]
    #[case::in_a_copy("file:///tmp/copy/src/x.rs", &["src/x.rs"])]
    #[case::the_other_slash("src\\a.rs", &["src/a.rs"])]
    #[case::only_a_name("a.rs", &["a.rs", "src/a.rs"])]
    #[case::a_folder_too_many("repo/src/a.rs", &["repo/src/a.rs", "src/a.rs"])]
    #[case::a_name_of_two("mod.rs", &["mod.rs"])]
    #[case::an_end_of_one("git/mod.rs", &["git/mod.rs", "src/git/mod.rs"])]
    fn paths_of_the_repository(#[case] reported: &str, #[case] expected: &[&str]) {
        let mut paths = scope().candidate_paths(reported).expect("a path");
        paths.dedup();
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_path_that_is_not_shown_as_it_is_is_found_in_the_forms_in_which_it_is_shown() {
        let family = "src/👨\u{200d}👩.py";
        let names = [family, "src/a\tb.py", "src/a b.py", "src/c\u{202e}d.py"];
        let scope = ScopeLines::new(names.map(|path| (path.to_owned(), vec![LineRange::new(1, 2)])))
            .with_roots(["/home/u/repo".to_owned()]);
        for (reported, expected) in [
            ("src/👨👩.py", Some(family)),
            (r"src/👨\u{200d}👩.py", Some(family)),
            (r"b/src/👨\u{200d}👩.py", Some(family)),
            ("/home/u/repo/src/👨👩.py", Some(family)),
            ("src/c\u{fffd}d.py", Some("src/c\u{202e}d.py")),
            (r"src/a\u{9}b.py", Some("src/a\tb.py")),
            // Its own name goes before the one that is shown like it.
            ("src/a b.py", Some("src/a b.py")),
            ("mysrc/👨👩.py", None),
            ("src/👨.py", None),
        ] {
            let paths = scope.candidate_paths(reported).expect("a path");
            let found = paths.iter().find(|path| scope.lines(path).is_some());
            assert_eq!(found.map(String::as_str), expected, "{reported:?}: {paths:?}");
        }
    }

    #[rstest]
    #[case("", "it names no file")]
    #[case("/etc/passwd", "/etc/passwd is not in the repository")]
    #[case("/home/u/repository/src/a.rs", "/home/u/repository/src/a.rs is not in the repository")]
    #[case("C:\\Windows\\a.rs", "C:\\Windows\\a.rs is not in the repository")]
    #[case("src/../../a.rs", "src/../../a.rs leads out of the repository")]
    #[case("/home/u/repo/../x", "/home/u/repo/../x leads out of the repository")]
    fn paths_of_elsewhere(#[case] reported: &str, #[case] why: &str) {
        assert_eq!(scope().candidate_paths(reported), Err(why.to_owned()));
    }

    #[rstest]
    #[case("Called from src/a.rs:12 with nothing.", true)]
    #[case("The caller in `a.rs` passes null.", true)]
    #[case("It breaks parse_all().", true)]
    #[case("parseAll is called twice.", true)]
    #[case("Store a new value where you parse it.", false)]
    #[case("It breaks parse_all2 and xsrc/a.rsx.", false)]
    #[case("See the Makefile.", true)]
    #[case("An unrelated problem.", false)]
    fn names_in_texts(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(scope().is_named_in(text), expected);
    }
}
