//! Formats, finds and removes the block of lines that revdeck adds to a hook.
//!
//! Invariants:
//! - The functions are pure.
//! - Inserting and removing the block restores the original bytes.
//! - The block consists of whole lines with the file's own line ends. Its first and last line identify it among the
//!   lines of other authors.
//! - In a script, the block cannot fail, print anything, or keep an open file of its caller.

use std::ops::Range;

/// Prefix of the block's first line.
const BEGIN_MARKER: &[u8] = b"# >>> revdeck >>> ";
/// Prefix of the block's last line.
const END_MARKER: &[u8] = b"# <<< revdeck <<<";
/// Length of the hash of the file without the block, in hexadecimal digits. The hash shows later edits of the file.
const HASH_DIGITS: usize = 12;

/// Way in which the block came into its file; stored as text in the block's first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOrigin {
    /// revdeck created the file.
    CreatedFile,
    /// The block was inserted into an existing file.
    Inserted,
    /// The existing file could not take the block; it was moved aside and is called after the block.
    MovedAside,
}

impl BlockOrigin {
    fn marker_text(self) -> &'static str {
        match self {
            Self::CreatedFile => "made this file",
            Self::Inserted => "added these lines",
            Self::MovedAside => "calls the hook that was here",
        }
    }

    fn parse(line: &[u8]) -> Option<Self> {
        [Self::CreatedFile, Self::Inserted, Self::MovedAside]
            .into_iter()
            .find(|origin| line.starts_with(origin.marker_text().as_bytes()))
    }
}

/// Language of the file with the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookLanguage {
    Shell,
    /// Settings file of lefthook.
    Yaml,
}

/// A hook of git that revdeck installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookName {
    /// Runs after each commit: the commit is reviewed.
    PostCommit,
    /// Runs after `git commit --amend` and `git rebase`: reviews of commits that are gone end.
    PostRewrite,
}

impl HookName {
    /// All hooks, in the order of their installation.
    pub const ALL: [Self; 2] = [Self::PostCommit, Self::PostRewrite];

    /// Returns the name of the hook's file in git's hooks folder.
    pub fn word(self) -> &'static str {
        match self {
            Self::PostCommit => "post-commit",
            Self::PostRewrite => "post-rewrite",
        }
    }

    /// Returns the purpose, for the block's first line.
    fn purpose(self) -> &'static str {
        match self {
            Self::PostCommit => "for a review of each commit",
            Self::PostRewrite => "to notice amended and rebased commits",
        }
    }
}

/// The command that a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCall {
    /// Path of the revdeck program. When it is `None` or the file is missing, the hook calls `revdeck` from `PATH`; if
    /// that is missing too, the hook does nothing.
    pub program: Option<Vec<u8>>,
    /// Value of `REVDECK_HOME` for callers that do not set it, such as graphical programs.
    pub home: Option<Vec<u8>>,
}

/// Position, origin and language of a block.
#[derive(Debug, Clone, Copy)]
pub struct BlockPlace {
    /// Byte offset in the file without the block: a line start, or the end.
    pub at: usize,
    pub origin: BlockOrigin,
    pub language: HookLanguage,
}

impl HookCall {
    /// Returns the lines of the command. The hook's caller waits only for `revdeck hook run`, which returns at once.
    fn script_lines(&self, hook: HookName, language: HookLanguage) -> Vec<Vec<u8>> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        // husky before v9 runs a hook twice; it sets this variable in the first run.
        let guard: &[u8] = match language {
            HookLanguage::Shell => b"[ -n \"${husky_skip_init-}\" ] || (",
            HookLanguage::Yaml => b"(",
        };
        lines.push(guard.to_vec());
        if let Some(program) = &self.program {
            lines.push([b"  revdeck=", quote_for_shell(program).as_slice()].concat());
            lines.push(b"  [ -x \"$revdeck\" ] || revdeck=revdeck".to_vec());
        }
        if let Some(home) = &self.home {
            lines.push(
                [
                    b"  [ -n \"${REVDECK_HOME-}\" ] || REVDECK_HOME=",
                    quote_for_shell(home).as_slice(),
                    b"; export REVDECK_HOME",
                ]
                .concat(),
            );
        }
        let program: &[u8] = if self.program.is_some() { b"\"$revdeck\"" } else { b"revdeck" };
        lines.push([b"  exec ", program, b" hook run ", hook.word().as_bytes()].concat());
        lines.push(b") </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- || :".to_vec());
        lines
    }

    /// Returns the lines of the block. The settings of lefthook name all hooks in one block.
    fn block_lines(&self, hook: HookName, origin: BlockOrigin, hash: &str, language: HookLanguage) -> Vec<Vec<u8>> {
        let first =
            format!("{} ({hash}) {}; `revdeck hook uninstall git` takes it back", origin.marker_text(), hook.purpose());
        let mut lines = vec![[BEGIN_MARKER, first.as_bytes()].concat()];
        match language {
            HookLanguage::Shell => lines.extend(self.script_lines(hook, language)),
            HookLanguage::Yaml => {
                for hook in HookName::ALL {
                    lines.push([hook.word().as_bytes(), b":"].concat());
                    lines.extend(["  commands:", "    revdeck:", "      run: |"].map(|line| line.into()));
                    let script = self.script_lines(hook, language);
                    lines.extend(script.into_iter().map(|line| [b"        ", line.as_slice()].concat()));
                }
            }
        }
        lines.push(END_MARKER.to_vec());
        lines
    }

    /// Inserts the block into `around`.
    pub fn insert_into(&self, hook: HookName, around: &[u8], place: BlockPlace) -> Vec<u8> {
        self.insert_with_hash(hook, around, place, &content_hash(around))
    }

    /// Rewrites the block with the current command; the stored hash is kept, so that later edits are still detected.
    pub fn update_block(&self, hook: HookName, found: &HookBlock, language: HookLanguage) -> Vec<u8> {
        let place = BlockPlace { at: found.at, origin: found.origin, language };
        self.insert_with_hash(hook, &found.around, place, &found.hash)
    }

    fn insert_with_hash(&self, hook: HookName, around: &[u8], place: BlockPlace, hash: &str) -> Vec<u8> {
        let BlockPlace { at, origin, language } = place;
        let (before, after) = around.split_at(at.min(around.len()));
        let end: &[u8] = if detect_line_ending(around) == LineEnding::CrLf { b"\r\n" } else { b"\n" };
        let block = self.block_lines(hook, origin, hash, language).join(end);
        // When the last line has no line end, the block gets none either, so that removing it restores the file.
        let unended = !before.is_empty() && !before.ends_with(b"\n");
        match unended {
            true => [before, end, &block, after].concat(),
            false => [before, &block, end, after].concat(),
        }
    }
}

/// A block found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookBlock {
    pub origin: BlockOrigin,
    /// The file without the block.
    pub around: Vec<u8>,
    /// Byte offset of the block in `around`.
    pub at: usize,
    /// Hash of the file without the block, from the time of its installation.
    hash: String,
    pub state: BlockState,
    /// Path of the program that the block calls.
    pub program: Option<Vec<u8>>,
}

/// State of the rest of the file since the block was inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockState {
    Untouched,
    Edited,
}

/// Result of a search for the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockSearch {
    None,
    Found(HookBlock),
    /// Only a part of the block exists, or its first line is not valid.
    Damaged,
}

/// Searches a file for the block.
pub fn find_block(content: &[u8]) -> BlockSearch {
    let (mut first, mut last): (Option<Range<usize>>, Option<Range<usize>>) = (None, None);
    let mut start = 0;
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        let range = start..start + line.len();
        start = range.end;
        if line.starts_with(BEGIN_MARKER) && first.is_none() {
            first = Some(range);
        } else if line.starts_with(END_MARKER) && last.is_none() {
            last = Some(range);
        }
    }
    let (first, last) = match (first, last) {
        (None, None) => return BlockSearch::None,
        (Some(first), Some(last)) if first.start < last.start => (first, last),
        _ => return BlockSearch::Damaged,
    };
    let said = &content[first.start + BEGIN_MARKER.len()..first.end];
    let Some(origin) = BlockOrigin::parse(said) else { return BlockSearch::Damaged };
    let mut from = first.start;
    if !content[last.clone()].ends_with(b"\n") && from > 0 {
        from -= 1;
        if said.ends_with(b"\r\n") && content[..from].ends_with(b"\r") {
            from -= 1;
        }
    }
    let around = [&content[..from], &content[last.end..]].concat();
    let then = said[origin.marker_text().len()..].strip_prefix(b" (").and_then(|rest| rest.get(..HASH_DIGITS));
    let then = String::from_utf8_lossy(then.unwrap_or_default()).into_owned();
    let state = if then == content_hash(&around) { BlockState::Untouched } else { BlockState::Edited };
    let program = parse_program(&content[first.end..last.start]);
    BlockSearch::Found(HookBlock { origin, at: from.min(around.len()), around, hash: then, state, program })
}

fn content_hash(content: &[u8]) -> String {
    let mut hash = blake3::hash(content).to_hex().to_string();
    hash.truncate(HASH_DIGITS);
    hash
}

/// Quotes a text as a shell word.
fn quote_for_shell(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in text {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Parses the path of the program from the lines of a block.
fn parse_program(lines: &[u8]) -> Option<Vec<u8>> {
    let lines = lines.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let word = lines.filter_map(|line| line.strip_prefix(b"revdeck='")).find_map(|rest| rest.strip_suffix(b"'"))?;
    let mut program = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, tail)) = rest.split_first() {
        match rest.strip_prefix(b"'\\''") {
            Some(after) => {
                program.push(b'\'');
                rest = after;
            }
            None => {
                program.push(byte);
                rest = tail;
            }
        }
    }
    Some(program)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnding {
    Lf,
    CrLf,
}

/// Returns the line ending of a file's first line.
fn detect_line_ending(content: &[u8]) -> LineEnding {
    let first = content.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    if first.ends_with(b"\r\n") { LineEnding::CrLf } else { LineEnding::Lf }
}

/// Returns the byte offset for the block in an existing script: after a first line that names a shell, or 0 for a
/// script without a first `#!` line, which git runs with the shell. Returns `None` when the script cannot take the
/// block.
///
/// The block stands at the beginning, because a script may end early, for example with `exit` or `exec`.
pub fn insertion_offset(script: &[u8]) -> Option<usize> {
    if script.contains(&0) || is_polyglot(script) {
        return None;
    }
    let first = script.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(line) = first.strip_prefix(b"#!") else {
        let text = std::str::from_utf8(script).is_ok_and(|text| !text.starts_with('\u{feff}'));
        return text.then_some(0);
    };
    // On systems with `#!` support, a carriage return is a part of the program's name.
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = if cfg!(windows) { line.trim_ascii_end() } else { line };
    let mut words = std::str::from_utf8(line).ok()?.split([' ', '\t']).filter(|word| !word.is_empty());
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let mut shell = name(words.next()?);
    if shell == "env" {
        shell = name(words.find(|word| !word.starts_with('-') && !word.contains('='))?);
    } else if shell == "busybox" {
        shell = name(words.next()?);
    }
    matches!(shell.as_str(), "sh" | "bash" | "dash" | "ash" | "ksh" | "mksh").then_some(first.len())
}

/// Returns true for a shell script that runs the same file with another program; the block would be invalid there.
fn is_polyglot(script: &[u8]) -> bool {
    let lines = script.split(|byte| *byte == b'\n');
    lines.into_iter().any(|line| {
        let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
        has(b"exec") && has(b"$0") && !has(b"dirname") && !has(b"${0%")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn sample_call() -> HookCall {
        HookCall { program: Some(b"/opt/it's/revdeck".to_vec()), home: Some(b"/home/a b".to_vec()) }
    }

    #[rstest]
    #[case::sh(b"#!/bin/sh\necho\n", Some(10))]
    #[case::options(b"#! /bin/bash -e\necho\n", Some(16))]
    #[case::env(b"#!/usr/bin/env -S A=1 bash\n", Some(27))]
    #[case::busybox(b"#!/bin/busybox sh\n", Some(18))]
    #[case::no_line_end(b"#!/bin/sh", Some(9))]
    #[case::unnamed(b"echo\n", Some(0))]
    #[case::empty(b"", Some(0))]
    #[case::python(b"#!/usr/bin/env python3\nprint()\n", None)]
    #[case::zsh(b"#!/bin/zsh\n", None)]
    #[case::binary(b"\x7fELF\0", None)]
    #[case::marked(b"\xef\xbb\xbf#!/bin/sh\n", None)]
    #[case::polyglot(b"#!/bin/sh\n'''exec' python3 \"$0\" \"$@\"\n'''\n", None)]
    #[case::next_to_it(b"#!/bin/sh\nexec \"$(dirname \"$0\")/other\"\n", Some(10))]
    fn the_block_stands_in_front(#[case] script: &[u8], #[case] at: Option<usize>) {
        assert_eq!(insertion_offset(script), at);
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_whose_name_has_a_carriage_return_is_none() {
        assert_eq!(insertion_offset(b"#!/bin/sh\r\necho\r\n"), None);
    }

    #[test]
    fn the_program_is_read_back_and_edits_are_seen() {
        let around = b"#!/bin/sh\necho\n";
        let place = BlockPlace { at: 10, origin: BlockOrigin::Inserted, language: HookLanguage::Shell };
        let with = sample_call().insert_into(HookName::PostCommit, around, place);
        let BlockSearch::Found(found) = find_block(&with) else { panic!("{}", String::from_utf8_lossy(&with)) };
        assert_eq!((found.origin, found.at, found.state), (BlockOrigin::Inserted, 10, BlockState::Untouched));
        assert_eq!(found.program, sample_call().program);
        let edited = [with.as_slice(), b"more\n"].concat();
        let BlockSearch::Found(found) = find_block(&edited) else { panic!("found") };
        assert_eq!((found.state, found.around.as_slice()), (BlockState::Edited, b"#!/bin/sh\necho\nmore\n".as_slice()));
        let half = with.iter().position(|byte| *byte == b'<').map(|at| &with[..at]);
        assert_eq!(half.map(find_block), Some(BlockSearch::Damaged));
    }

    proptest! {
        #[test]
        fn what_is_put_in_comes_out(
            content in prop_oneof![
                "(#!/bin/sh|#!/bin/bash -e|echo|#|)(\r?\n|)([a-z #$]{0,8}(\r?\n|)){0,6}".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..64),
            ],
            end in any::<bool>(),
        ) {
            let at = if end { content.len() } else { insertion_offset(&content).unwrap_or(0) };
            let languages = [HookLanguage::Shell, HookLanguage::Yaml];
            for (language, hook) in languages.into_iter().flat_map(|language| HookName::ALL.map(|hook| (language, hook))) {
                let place = BlockPlace { at, origin: BlockOrigin::Inserted, language };
                let with = sample_call().insert_into(hook, &content, place);
                let BlockSearch::Found(found) = find_block(&with) else { return Err(TestCaseError::fail("not found")) };
                prop_assert_eq!(&found.around, &content);
                prop_assert_eq!(found.state, BlockState::Untouched);
                prop_assert_eq!(sample_call().update_block(hook, &found, language), with);
            }
        }
    }
}
