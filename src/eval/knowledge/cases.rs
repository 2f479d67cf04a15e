//! Reads one-line fixes from a folder of tasks with solutions, from the histories of repositories, or from two
//! folders of files before and after a fix.
//!
//! - Cases are ordered by time, as far as the source has times.
//! - Only the location of a case is kept in memory; its text is read on demand.
//! - Nothing that is read is written anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::EvaluateError;
use super::file_features::code_tokens;
use crate::domain::Time;
use crate::git::Repo;
use crate::knowledge::history_mining::{MAX_FILES_PER_FIX, is_code, is_fix};
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Maximum file size in bytes; larger files are not written by hand.
const MAX_BYTES: u64 = 1 << 20;
/// Divisor of the test part: the newest quarter of a source's cases.
const TEST_FRACTION: usize = 4;

/// One-line fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixCase {
    pub language: Language,
    pub before: Vec<u8>,
    pub after: Vec<u8>,
    /// Fixed line (1-based).
    pub line: u32,
}

/// Location of a case.
#[derive(Debug, Clone)]
enum FixCaseLocation {
    Task { task: PathBuf, solution: PathBuf, language: Language },
    Fix { repo: usize, path: String, before: String, after: String, line: u32 },
    Pair { before: PathBuf, line: u32, fixed: Vec<u8> },
}

/// Cases of a source, oldest first, and the start of the later part.
pub struct FixCases {
    places: Vec<FixCaseLocation>,
    split: usize,
    repos: Vec<Mutex<Repo>>,
}

/// Part of a source on which the evaluation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvaluationSplit {
    /// Learns from the earlier part and tests on the later one.
    Test,
    /// Leaves the later part out and splits the earlier part again; for tuning.
    Validation,
}

impl FixCases {
    /// Returns true if a folder has tasks for [`FixCases::from_folder`]; the folder may also be inside a repository.
    pub fn is_task_folder(folder: &Path) -> bool {
        find_datasets(folder).is_ok_and(|datasets| !datasets.is_empty())
    }

    /// Reads tasks from a folder in CodRep's layout. `Tasks/N.txt` holds the fixed line, an empty line and the file
    /// before the fix; `Solutions/N.txt` holds the number of the replaced line (1-based). Of several task folders,
    /// the one with the largest number is the later part; of a single one, the last quarter of its tasks.
    ///
    /// # Errors
    ///
    /// Fails if a folder cannot be read, or if there are too few cases.
    pub fn from_folder(folder: &Path, language: Language, part: EvaluationSplit) -> Result<Self, EvaluateError> {
        let mut datasets = find_datasets(folder)?;
        if part == EvaluationSplit::Validation && datasets.len() > 2 {
            datasets.pop();
        }
        let mut places = Vec::new();
        let mut starts = Vec::new();
        for dataset in &datasets {
            starts.push(places.len());
            for name in list_numbered(&dataset.join("Tasks"))? {
                let (task, solution) = (dataset.join("Tasks").join(&name), dataset.join("Solutions").join(&name));
                places.push(FixCaseLocation::Task { task, solution, language });
            }
        }
        let last = starts.last().copied().filter(|start| *start > 0);
        Self { places, split: 0, repos: Vec::new() }.with_split(last, part, folder)
    }

    /// Finds one-line fixes in the histories of repositories, merged in order of time: commits that say they fix
    /// something, and of their files those in which one line is replaced by one other. The newest quarter is the
    /// later part. `None` for `language` means all languages.
    ///
    /// # Errors
    ///
    /// Fails if a history cannot be read, or if there are too few cases.
    pub fn from_repositories(
        repos: Vec<Repo>,
        commits: usize,
        language: Option<Language>,
        part: EvaluationSplit,
    ) -> Result<Self, EvaluateError> {
        let source = repos.first().map(Repo::root).unwrap_or_default();
        let mut fixes = Vec::new();
        for (number, repo) in repos.iter().enumerate() {
            fixes.extend(find_one_line_fixes(repo, number, commits, language)?);
        }
        // The sort is stable: fixes of the same time keep their order.
        fixes.sort_by_key(|(made, _)| *made);
        let places = fixes.into_iter().map(|(_, place)| place).collect();
        Self { places, split: 0, repos: repos.into_iter().map(Mutex::new).collect() }.with_split(None, part, &source)
    }

    /// Combines all cases of `sources` as the earlier part. The later part has the files with the same name in both
    /// folders whose code differs in exactly one line.
    ///
    /// # Errors
    ///
    /// Fails if a folder cannot be read, or if no pair differs in one line.
    pub fn from_pairs(sources: Vec<Self>, broken: &Path, fixed: &Path) -> Result<Self, EvaluateError> {
        let mut all = Self { places: Vec::new(), split: 0, repos: Vec::new() };
        for source in sources {
            let first = all.repos.len();
            all.repos.extend(source.repos);
            all.places.extend(source.places.into_iter().map(|place| match place {
                FixCaseLocation::Fix { repo, path, before, after, line } => {
                    FixCaseLocation::Fix { repo: first + repo, path, before, after, line }
                }
                other => other,
            }));
        }
        all.split = all.places.len();
        let mut parsers = Parsers::default();
        for name in list_numbered(broken)? {
            let before = broken.join(&name);
            let (Some(old), Some(new)) = (read_bounded(&before), read_bounded(&fixed.join(&name))) else { continue };
            if let Some((line, fixed)) = find_changed_line(&mut parsers, &name, &old, &new) {
                all.places.push(FixCaseLocation::Pair { before, line, fixed });
            }
        }
        if all.split == all.places.len() {
            return Err(EvaluateError::TooFew { source_path: broken.to_owned(), cases: 0 });
        }
        Ok(all)
    }

    fn with_split(mut self, last: Option<usize>, part: EvaluationSplit, source: &Path) -> Result<Self, EvaluateError> {
        let split = |count: usize| count - count / TEST_FRACTION;
        match (last, part) {
            (Some(last), _) => self.split = last,
            (None, EvaluationSplit::Test) => self.split = split(self.places.len()),
            (None, EvaluationSplit::Validation) => {
                self.places.truncate(split(self.places.len()));
                self.split = split(self.places.len());
            }
        }
        if self.split == 0 || self.split == self.places.len() {
            return Err(EvaluateError::TooFew { source_path: source.to_owned(), cases: self.places.len() });
        }
        Ok(self)
    }

    /// Returns the indexes of the cases to learn from.
    pub fn training_range(&self) -> std::ops::Range<usize> {
        0..self.split
    }

    /// Returns the indexes of the cases to test.
    pub fn test_range(&self) -> std::ops::Range<usize> {
        self.split..self.places.len()
    }

    /// Reads a case. `None` if the line does not exist, the file is too large, or its language is unknown.
    pub fn read_case(&self, number: usize) -> Option<FixCase> {
        match self.places.get(number)? {
            FixCaseLocation::Task { task, solution, language } => {
                read_task(&read_bounded(task)?, &read_bounded(solution)?, *language)
            }
            FixCaseLocation::Pair { before, line, fixed } => {
                let text = read_bounded(before)?;
                let language = Language::detect(before.to_str()?, &text)?;
                replace_line(&text, *line, fixed, language)
            }
            FixCaseLocation::Fix { repo, path, before, after, line } => {
                let repo = self.repos.get(*repo)?.lock().unwrap_or_else(PoisonError::into_inner);
                let text = |commit: &str| repo.file_at(commit, path).ok().flatten();
                let (before, after) = (text(before)?, text(after)?);
                let language = Language::detect(path, &before).filter(|_| before.len() as u64 <= MAX_BYTES)?;
                Some(FixCase { language, before, after, line: *line })
            }
        }
    }
}

/// Finds the one-line fixes in a repository's history from HEAD with their times, oldest first.
fn find_one_line_fixes(
    repo: &Repo,
    number: usize,
    commits: usize,
    language: Option<Language>,
) -> Result<Vec<(Time, FixCaseLocation)>, EvaluateError> {
    let is_asked = |path: &str| language.is_none_or(|language| Language::detect(path, b"") == Some(language));
    let is_wanted = |path: &str| is_code(path) && is_asked(path);
    let mut fixes = Vec::new();
    for ancestor in repo.ancestors(&repo.resolve_commit("HEAD")?, commits)? {
        let [parent] = ancestor.parents.as_slice() else { continue };
        let Ok((message, made)) = repo.commit_message(&ancestor.commit) else { continue };
        if !is_fix(&message) {
            continue;
        }
        for change in repo.commit_changes(&ancestor.commit, MAX_FILES_PER_FIX, &is_wanted)?.changes {
            let [hunk] = change.hunks.as_slice() else { continue };
            if hunk.range.old_lines == 1 && hunk.range.new_lines == 1 {
                let (before, after) = (parent.clone(), ancestor.commit.clone());
                let (repo, line) = (number, hunk.range.old_start);
                fixes.push((made, FixCaseLocation::Fix { repo, path: change.path, before, after, line }));
            }
        }
    }
    fixes.reverse();
    Ok(fixes)
}

fn read_bounded(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path).ok()?.take(MAX_BYTES + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= MAX_BYTES).then_some(text)
}

fn read_task(task: &[u8], solution: &[u8], language: Language) -> Option<FixCase> {
    let line: u32 = std::str::from_utf8(solution).ok()?.trim().parse().ok()?;
    let (fixed, rest) = task.split_at(memchr::memchr(b'\n', task)?);
    let before = &rest[1..];
    let before = before.strip_prefix(b"\n").or_else(|| before.strip_prefix(b"\r\n"))?;
    replace_line(before, line, fixed, language)
}

/// Builds the case of a file with one replaced line.
fn replace_line(before: &[u8], line: u32, fixed: &[u8], language: Language) -> Option<FixCase> {
    let mut start = 0;
    for _ in 1..line {
        start += memchr::memchr(b'\n', before.get(start..)?)? + 1;
    }
    let end = start + memchr::memchr(b'\n', before.get(start..)?).unwrap_or(before.len() - start);
    let old = &before[start..end];
    let indent = old.len() - old.trim_ascii_start().len();
    let after = [&before[..start + indent], fixed.trim_ascii(), &before[end..]].concat();
    Some(FixCase { language, before: before.to_vec(), after, line }).filter(|_| !old.trim_ascii().is_empty())
}

/// Finds the only line whose code differs between two files: its number in the first file (1-based) and its text in
/// the second. Blank lines, comments and layout make no difference.
fn find_changed_line(parsers: &mut Parsers, name: &str, before: &[u8], after: &[u8]) -> Option<(u32, Vec<u8>)> {
    let language = Language::detect(name, before)?;
    let mut lines = |text: &[u8]| -> Option<Vec<(u32, Vec<u8>)>> {
        let source = parsers.parse("", language, text).ok()?;
        let mut lines = BTreeMap::<u32, Vec<u8>>::new();
        for (line, token) in code_tokens(&source) {
            let code = lines.entry(line).or_default();
            code.extend(token);
            code.push(b' ');
        }
        Some(lines.into_iter().collect())
    };
    let (old, new) = (lines(before)?, lines(after)?);
    let mut differ = old.iter().zip(&new).filter(|((_, was), (_, is))| was != is);
    let (&(line, _), &(fixed, _)) = differ.next()?;
    let is_one = old.len() == new.len() && differ.next().is_none();
    is_one.then(|| after.split(|byte| *byte == b'\n').nth(fixed as usize - 1).map(|text| (line, text.to_vec())))?
}

/// Finds the folders with tasks: this folder, or its subfolders or those of its `Datasets`, sorted by number.
fn find_datasets(folder: &Path) -> Result<Vec<PathBuf>, EvaluateError> {
    let has_tasks = |folder: &Path| folder.join("Tasks").is_dir() && folder.join("Solutions").is_dir();
    if has_tasks(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let inner = Some(folder.join("Datasets")).filter(|inner| inner.is_dir()).unwrap_or_else(|| folder.to_owned());
    let all =
        list_numbered(&inner)?.into_iter().map(|name| inner.join(name)).filter(|folder| has_tasks(folder)).collect();
    Ok(all)
}

/// Lists the names in a folder, sorted by the number in the name, then by name.
fn list_numbered(folder: &Path) -> Result<Vec<String>, EvaluateError> {
    let failed = |error| EvaluateError::Folder { path: folder.to_owned(), error };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            let digits: String = name.chars().filter(char::is_ascii_digit).collect();
            names.push((digits.parse::<u64>().unwrap_or(u64::MAX), name));
        }
    }
    names.sort();
    Ok(names.into_iter().map(|(_, name)| name).collect())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::inside(b"b();\n\nf();\n  a();\ng();\n", b"2", Some((2, "f();\n  b();\ng();\n")))]
    #[case::the_last_line_without_an_end(b"b();\n\nf();\na();", b"2\n", Some((2, "f();\nb();")))]
    #[case::behind_the_end(b"b();\n\nf();\n", b"9", None)]
    #[case::a_blank_line(b"b();\n\nf();\n\n", b"2", None)]
    #[case::no_number(b"b();\n\nf();\n", b"x", None)]
    #[case::no_empty_line(b"b();\nf();\n", b"1", None)]
    fn tasks(#[case] task: &[u8], #[case] solution: &[u8], #[case] expected: Option<(u32, &str)>) {
        let case = read_task(task, solution, Language::Java);
        let expected = expected.map(|(line, after)| (line, after.as_bytes().to_vec()));
        assert_eq!(case.map(|case| (case.line, case.after)), expected);
    }

    #[test]
    fn the_last_dataset_is_the_test_and_validation_never_sees_it() {
        let folder = tempfile::tempdir().expect("a folder");
        for dataset in [1, 2, 10] {
            for name in ["Tasks", "Solutions"] {
                let inner = folder.path().join(format!("Datasets/Dataset{dataset}/{name}"));
                fs::create_dir_all(&inner).expect("a folder");
                for task in 1..=dataset {
                    let text = if name == "Tasks" { "b();\n\na();\n" } else { "1" };
                    fs::write(inner.join(format!("{task}.txt")), text).expect("a file");
                }
            }
        }
        let is_folder = |inner: &str| FixCases::is_task_folder(&folder.path().join(inner));
        let found = ["", "Datasets", "Datasets/Dataset10", "Datasets/Dataset10/Tasks", "none"].map(is_folder);
        assert_eq!(found, [true, true, true, false, false]);
        let parts = |part| {
            let cases = FixCases::from_folder(folder.path(), Language::Java, part).expect("cases");
            (cases.training_range(), cases.test_range())
        };
        assert_eq!(parts(EvaluationSplit::Test), (0..3, 3..13));
        assert_eq!(parts(EvaluationSplit::Validation), (0..1, 1..3));
        let one =
            FixCases::from_folder(&folder.path().join("Datasets/Dataset10"), Language::Java, EvaluationSplit::Test)
                .expect("cases");
        assert_eq!((one.training_range(), one.test_range()), (0..8, 8..10));
        assert!(one.read_case(9).is_some_and(|case| case.after == b"b();\n"));
    }

    #[test]
    fn pairs_are_those_whose_code_differs_in_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let pairs = [
            ("one.py", "# a\na = 1\nb = a\n", "a = 1\n\nb = a + 1  # c\n"),
            ("two.py", "a = 1\nb = 2\n", "a = 2\nb = 3\n"),
            ("more.py", "a = 1\n", "a = 1\nb = 2\n"),
            ("same.py", "a = 1\n", "a = 1 # b\n"),
        ];
        for side in ["broken", "fixed"] {
            fs::create_dir(folder.path().join(side)).expect("a folder");
        }
        for (name, before, after) in pairs {
            fs::write(folder.path().join("broken").join(name), before).expect("a file");
            fs::write(folder.path().join("fixed").join(name), after).expect("a file");
        }
        let [broken, fixed] = ["broken", "fixed"].map(|side| folder.path().join(side));
        let cases = FixCases::from_pairs(Vec::new(), &broken, &fixed).expect("cases");
        let case = cases.read_case(0).expect("a case");
        assert_eq!((cases.test_range(), case.language, case.line), (0..1, Language::Python, 3));
        assert_eq!(String::from_utf8_lossy(&case.after), "# a\na = 1\nb = a + 1  # c\n");
        assert!(FixCases::from_pairs(Vec::new(), &fixed, &fixed).is_err(), "none differs");
    }
}
