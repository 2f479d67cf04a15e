//! Looks up `.gitattributes` rules; the caller provides the files, from a git tree or the worktree.
//!
//! libgit2 reads attributes from the worktree only, but a review must give the same result after the worktree changed.

use std::collections::HashMap;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::path_bytes;

/// Attribute names that this crate uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttributeName {
    Generated,
    Vendored,
    Diff,
    Text,
    Crlf,
    Eol,
    Ident,
    Filter,
    Encoding,
}

impl AttributeName {
    const ALL: [(Self, &'static [u8]); 9] = [
        (Self::Generated, b"linguist-generated"),
        (Self::Vendored, b"linguist-vendored"),
        (Self::Diff, b"diff"),
        (Self::Text, b"text"),
        (Self::Crlf, b"crlf"),
        (Self::Eol, b"eol"),
        (Self::Ident, b"ident"),
        (Self::Filter, b"filter"),
        (Self::Encoding, b"working-tree-encoding"),
    ];

    fn parse(text: &[u8]) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(name, _)| *name)
    }
}

/// State of an attribute for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeState {
    Set,
    Unset,
    Value,
    /// The attribute is not mentioned, or reset with `!name`.
    Unspecified,
}

/// Path pattern of a line.
enum AttributePattern {
    All,
    /// A pattern `*.ext`: a suffix of the file name.
    Suffix(Vec<u8>),
    /// A file name without wildcards.
    Name(Vec<u8>),
    Glob(Box<Gitignore>),
}

impl AttributePattern {
    fn parse(text: &[u8]) -> Option<Self> {
        let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\' | b'/');
        Some(match text {
            [] | [b'!', ..] => return None,
            b"*" => Self::All,
            [b'*', suffix @ ..] if !suffix.iter().any(special) => Self::Suffix(suffix.to_vec()),
            name if !name.iter().any(special) => Self::Name(name.to_vec()),
            glob => {
                let mut builder = GitignoreBuilder::new("");
                let glob = String::from_utf8_lossy(glob);
                // In attributes, a leading `#` is a part of the pattern.
                let line = if glob.starts_with('#') { format!("\\{glob}") } else { glob.into_owned() };
                builder.add_line(None, &line).ok()?;
                Self::Glob(Box::new(builder.build().ok()?))
            }
        })
    }

    /// Returns true when the pattern matches `path`, which is relative to the folder of the attributes file.
    fn matches(&self, path: &[u8]) -> bool {
        let name = || path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        match self {
            Self::All => true,
            Self::Suffix(suffix) => name().ends_with(suffix),
            Self::Name(wanted) => name() == wanted,
            Self::Glob(glob) => glob.matched(path_bytes::to_path(path), false).is_ignore(),
        }
    }
}

struct AttributeLine {
    pattern: AttributePattern,
    /// Later assignments win.
    assignments: Vec<(AttributeName, AttributeState)>,
}

/// Lines of an attributes file; later lines win.
#[derive(Default)]
struct AttributeRules(Vec<AttributeLine>);

/// Macro definitions (`[attr]name ...`) with their assignments.
type AttributeMacros = HashMap<Vec<u8>, Vec<(AttributeName, AttributeState)>>;

impl AttributeRules {
    fn parse(content: &[u8], macros: &mut AttributeMacros) -> Self {
        let mut rules = Self::default();
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        for line in content.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let (pattern, rest) = split_pattern(line);
            let says = parse_assignments(rest, macros);
            if let Some(name) = pattern.strip_prefix(b"[attr]") {
                macros.insert(name.to_vec(), says);
            } else if !says.is_empty()
                && let Some(pattern) = AttributePattern::parse(&pattern)
            {
                rules.0.push(AttributeLine { pattern, assignments: says });
            }
        }
        rules
    }

    fn find_state(&self, path: &[u8], wanted: AttributeName) -> Option<AttributeState> {
        let lines = self.0.iter().rev();
        lines
            .filter_map(|line| {
                line.assignments.iter().rev().find(|(name, _)| *name == wanted).map(|(_, state)| (line, *state))
            })
            .find(|(line, _)| line.pattern.matches(path))
            .map(|(_, state)| state)
    }
}

fn split_pattern(line: &[u8]) -> (Vec<u8>, &[u8]) {
    if let Some(quoted) = line.strip_prefix(b"\"") {
        let mut word = Vec::new();
        let mut at = 0;
        while let Some(byte) = quoted.get(at) {
            match (byte, quoted.get(at + 1)) {
                (b'"', _) => return (word, quoted.get(at + 1..).unwrap_or_default()),
                (b'\\', Some(next)) => {
                    word.push(*next);
                    at += 1;
                }
                _ => word.push(*byte),
            }
            at += 1;
        }
    }
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    (word.to_vec(), rest)
}

fn parse_assignments(rest: &[u8], macros: &AttributeMacros) -> Vec<(AttributeName, AttributeState)> {
    let mut says = Vec::new();
    for word in rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        let (name, state) = match word {
            [b'-', name @ ..] => (name, AttributeState::Unset),
            [b'!', name @ ..] => (name, AttributeState::Unspecified),
            _ => match word.iter().position(|byte| *byte == b'=') {
                Some(at) => {
                    let (name, value) = word.split_at(at);
                    // `linguist-generated=true` is a common spelling of a set attribute.
                    match &value[1..] {
                        b"true" => (name, AttributeState::Set),
                        b"false" => (name, AttributeState::Unset),
                        _ => (name, AttributeState::Value),
                    }
                }
                None => (word, AttributeState::Set),
            },
        };
        if let Some(name) = AttributeName::parse(name) {
            says.push((name, state));
        } else if let Some(meaning) = macros.get(name) {
            match state {
                AttributeState::Set => says.extend_from_slice(meaning),
                _ => says.extend(meaning.iter().map(|(name, _)| (*name, AttributeState::Unspecified))),
            }
        }
    }
    says
}

/// Attribute lookup that reads the attributes file of each folder at most once.
pub struct AttributeLookup<S> {
    /// Returns the `.gitattributes` content of a folder. The folder has no trailing slash; the root is the empty path.
    source: S,
    folders: HashMap<Vec<u8>, AttributeRules>,
    /// Rules of `info/attributes`, which override all folders.
    overrides: AttributeRules,
    /// Rules of `core.attributesFile`, which all folders override.
    defaults: AttributeRules,
    macros: AttributeMacros,
}

impl<S: FnMut(&[u8]) -> Option<Vec<u8>>> AttributeLookup<S> {
    pub fn new(source: S, above: Option<Vec<u8>>, below: Option<Vec<u8>>) -> Self {
        let mut macros = AttributeMacros::from([(
            b"binary".to_vec(),
            vec![(AttributeName::Diff, AttributeState::Unset), (AttributeName::Text, AttributeState::Unset)],
        )]);
        let defaults = AttributeRules::parse(&below.unwrap_or_default(), &mut macros);
        let overrides = AttributeRules::parse(&above.unwrap_or_default(), &mut macros);
        Self { source, folders: HashMap::new(), overrides, defaults, macros }
    }

    /// Returns the state of each attribute in `wanted` for `path`.
    pub fn get<const N: usize>(&mut self, path: &[u8], wanted: [AttributeName; N]) -> [AttributeState; N] {
        let mut found = wanted.map(|name| self.overrides.find_state(path, name));
        let mut end = memchr::memrchr(b'/', path);
        loop {
            let folder = path.get(..end.unwrap_or(0)).unwrap_or_default();
            let relative = end.map_or(path, |at| path.get(at + 1..).unwrap_or_default());
            if !self.folders.contains_key(folder) {
                let rules = match (self.source)(folder) {
                    Some(content) => AttributeRules::parse(&content, &mut self.macros),
                    None => AttributeRules::default(),
                };
                self.folders.insert(folder.to_vec(), rules);
            }
            if let Some(rules) = self.folders.get(folder).filter(|rules| !rules.0.is_empty()) {
                for (found, name) in found.iter_mut().zip(wanted) {
                    *found = found.or_else(|| rules.find_state(relative, name));
                }
            }
            match end {
                Some(at) => end = memchr::memrchr(b'/', path.get(..at).unwrap_or_default()),
                None => break,
            }
        }
        let mut states = [AttributeState::Unspecified; N];
        for ((state, found), name) in states.iter_mut().zip(found).zip(wanted) {
            *state = found.or_else(|| self.defaults.find_state(path, name)).unwrap_or(AttributeState::Unspecified);
        }
        states
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_and_the_last_line_wins() {
        let root = b"# comment\n*.gen linguist-generated\nvendored/** linguist-vendored\n*.bin binary\n\
            [attr]made linguist-generated -diff\nmade.txt made\n/only-here text\n\"with space.c\" -text\n*.rs diff=rust\r\n";
        let sub = b"*.gen -linguist-generated\ndeep/*.x linguist-generated=true\nback.bin !diff\n";
        let mut attributes = AttributeLookup::new(
            |folder: &[u8]| match folder {
                b"" => Some(root.to_vec()),
                b"sub" => Some(sub.to_vec()),
                _ => None,
            },
            Some(b"top.gen -linguist-generated".to_vec()),
            Some(b"* eol=lf".to_vec()),
        );
        for (path, name, state) in [
            ("a.gen", AttributeName::Generated, AttributeState::Set),
            ("top.gen", AttributeName::Generated, AttributeState::Unset),
            ("sub/a.gen", AttributeName::Generated, AttributeState::Unset),
            ("sub/deep/a.x", AttributeName::Generated, AttributeState::Set),
            ("deep/a.x", AttributeName::Generated, AttributeState::Unspecified),
            ("vendored/x/y.c", AttributeName::Vendored, AttributeState::Set),
            ("x.bin", AttributeName::Diff, AttributeState::Unset),
            ("sub/back.bin", AttributeName::Diff, AttributeState::Unspecified),
            ("sub/back.bin", AttributeName::Text, AttributeState::Unset),
            ("sub/made.txt", AttributeName::Generated, AttributeState::Set),
            ("only-here", AttributeName::Text, AttributeState::Set),
            ("sub/only-here", AttributeName::Text, AttributeState::Unspecified),
            ("with space.c", AttributeName::Text, AttributeState::Unset),
            ("a.rs", AttributeName::Diff, AttributeState::Value),
            ("a.rs", AttributeName::Eol, AttributeState::Value),
        ] {
            assert_eq!(attributes.get(path.as_bytes(), [name]), [state], "{path} {name:?}");
        }
    }
}
