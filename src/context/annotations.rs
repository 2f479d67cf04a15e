//! Adds annotations to packed sections: the declarations they are part of, their test coverage and their last change.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::builder::standalone_piece;
use super::file_analysis::FileAnalyzer;
use super::pack::{
    ContextPiece, ContextSection, LastChange, Need, PackedContext, SectionKind, TokenCounter, UntestedFunction,
};
use super::retrieve::task::{RetrievalTask, old_line_range};
use super::test_coverage::{LineCoverage, TestCoverage};
use super::text::format_path;
use crate::context::retrieve::line_history::find_last_touch;
use crate::domain::text::format_count;
use crate::domain::{LineRange, Time};
use crate::git::Repo;
use crate::index::chunk::{ChunkKind, Declaration};
use crate::index::history::{PastFile, PathId};
use crate::index::history_cache::RepoHistory;
use crate::masking::Mask;
use crate::syntax::facts::is_test_path;

fn append_reason(section: &mut ContextSection, words: &str) {
    let because = Arc::make_mut(&mut section.explanation);
    because.reason.push_str("; ");
    because.reason.push_str(words);
}

/// Looks up the declarations of a file by its path.
pub type DeclarationLookup<'a> = &'a dyn Fn(&str) -> Arc<[Declaration]>;

/// Packs with `pack` and adds part titles to the sections, within `budget` tokens including the titles. `pack` receives
/// the number of tokens to fill and is called again with fewer until the result fits. `None` if `pack` returns `None`.
pub fn pack_with_part_titles(
    pack: &dyn Fn(u32) -> Option<PackedContext>,
    declared: DeclarationLookup<'_>,
    (budget, count): (u32, TokenCounter<'_>),
) -> Option<PackedContext> {
    let mut room = budget;
    loop {
        let mut packed = pack(room)?;
        annotate_parts(&mut packed, declared, count);
        let over = packed.total_tokens.saturating_sub(budget);
        if over == 0 || room == 0 {
            return Some(PackedContext { budget, ..packed });
        }
        room = room.saturating_sub(over.max(room / 256).max(1));
    }
}

/// Records which declarations a section only partly holds, so that nobody takes it for the whole declaration.
fn annotate_parts(packed: &mut PackedContext, declared: DeclarationLookup<'_>, count: TokenCounter<'_>) {
    let mut is_longer = false;
    for section in &mut packed.sections {
        let Some(lines) = section.lines else { continue };
        section.cut_declarations = find_cut_declarations(&declared(&section.path), lines);
        let said: Vec<String> = section.cut_declarations.iter().map(describe_part).collect();
        said.iter().for_each(|said| append_reason(section, said));
        let torn = format_title_note(&section.cut_declarations);
        if let Some(end) = section.text.find('\n').filter(|_| !torn.is_empty()) {
            section.text.insert_str(end, &torn);
            section.tokens = count(&section.text) as u32;
            is_longer = true;
        }
    }
    if is_longer {
        packed.total_tokens = count(&packed.text()) as u32;
    }
}

fn describe_part(Declaration { kind, name, lines, .. }: &Declaration) -> String {
    let name = format!("{kind} {}", format_path(name, Mask::On));
    format!("part of {}, lines {}-{}", name.trim_end(), lines.start, lines.end)
}

/// Formats the part of a section's title about incomplete functions and tests. Other declarations need no note: the
/// path says enough about whole members of a class.
pub fn format_title_note(of: &[Declaration]) -> String {
    let torn = of.iter().filter(|part| matches!(part.kind, ChunkKind::Function | ChunkKind::Test));
    let said: Vec<String> = torn.map(describe_part).collect();
    if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) }
}

/// Returns the innermost declarations that overlap `lines` but begin before or end after them.
pub fn find_cut_declarations(declared: &[Declaration], lines: LineRange) -> Vec<Declaration> {
    let innermost = |is_cut: &dyn Fn(LineRange) -> bool| {
        declared
            .iter()
            .filter(|known| known.lines.overlaps(lines) && is_cut(known.lines))
            .max_by_key(|known| known.lines.start)
    };
    let first = innermost(&|own| own.start < lines.start);
    let last = innermost(&|own| own.end > lines.end);
    let holds =
        |other: Option<&Declaration>, one: &Declaration| other.is_some_and(|other| one.lines.contains(other.lines));
    let last = last.filter(|one| !holds(first, one));
    first.filter(|one| !holds(last, one)).into_iter().chain(last).cloned().collect()
}

/// Adds the test coverage of each section.
pub fn annotate_coverage(packed: &mut PackedContext, covered: &TestCoverage) {
    for section in &mut packed.sections {
        section.coverage = section.lines.and_then(|lines| covered.line_coverage(&section.path, lines));
        if let Some(share) = section.coverage {
            append_reason(section, &describe_coverage(share));
        }
    }
}

/// Finds the changed functions that no test reaches, sorted by path and lines.
pub fn find_untested_functions(
    task: &RetrievalTask,
    telling: &FileAnalyzer<'_>,
    blobs: &HashMap<String, String>,
    covered: &TestCoverage,
    cancelled: &dyn Fn() -> bool,
) -> Vec<UntestedFunction> {
    let mut found = Vec::new();
    let known = task.given.iter().filter(|given| covered.has_file(&given.path) && !is_test_path(&given.path));
    for given in known.take_while(|_| !cancelled()) {
        let Some(blob) = blobs.get(&given.path) else { continue };
        for Declaration { kind, name, scope, lines, head } in telling.declarations(&given.path, blob).iter() {
            let lines = LineRange::new(head.start, lines.end);
            let is_changed = given.hunks.iter().any(|hunk| {
                let (start, end) = old_line_range(&hunk.range);
                let first = start.saturating_add(1);
                LineRange::new(first, end.max(first)).overlaps(lines)
            });
            let is_reached = || covered.line_coverage(&given.path, lines).is_none_or(|share| share.reached > 0);
            if *kind == ChunkKind::Function && is_changed && !is_reached() {
                let name = if scope.is_empty() { name.clone() } else { format!("{scope}.{name}") };
                found.push(UntestedFunction { path: given.path.clone(), name, lines });
            }
        }
    }
    found.sort_by(|a, b| (&a.path, a.lines).cmp(&(&b.path, b.lines)));
    found
}

/// Maximum number of untested functions that are named.
const MAX_UNTESTED_FUNCTIONS: usize = 30;

/// Builds a piece that lists the untested functions: as many as fit in `most` tokens, and the number of others. `None`
/// if there are none or not one fits.
pub fn build_untested_piece(untested: &[UntestedFunction], most: u32, count: TokenCounter<'_>) -> Option<ContextPiece> {
    let lines: Vec<String> = untested
        .iter()
        .take(MAX_UNTESTED_FUNCTIONS)
        .map(|UntestedFunction { path, name, lines }| {
            let (path, name) = (format_path(path, Mask::On), format_path(name, Mask::On));
            format!("- {path}:{}-{} {name}\n", lines.start, lines.end)
        })
        .collect();
    let text = |told: usize| {
        let more = match untested.len() - told {
            0 => String::new(),
            more => format!("- and {more} more\n"),
        };
        format!("Changed functions that no test reaches, as a coverage report says:\n{}{more}", lines[..told].concat())
    };
    let fitting = (1..=lines.len()).rev().map(text).find(|text| count(text) as u32 <= most)?;
    Some(standalone_piece(SectionKind::Untested, Need::Must, fitting, "the changed functions that no test reaches"))
}

/// Adds the newest commit that touched lines of each section. Files in `changed` are skipped, because their lines are
/// not those of a commit.
pub fn annotate_last_change(
    packed: &mut PackedContext,
    repo: &Repo,
    past: (&RepoHistory, &[usize]),
    changed: &HashSet<&str>,
) {
    let is_of_code = |section: &&ContextSection| section.lines.is_some() && !changed.contains(section.path.as_str());
    let paths = packed.sections.iter().filter(is_of_code).map(|section| section.path.as_str());
    let mut changes = LastChangeLookup::new(repo, past, paths, usize::MAX);
    for section in packed.sections.iter_mut().filter(|section| is_of_code(&&**section)) {
        section.last_change = section.lines.and_then(|lines| changes.find_for_lines(&section.path, lines));
        if let Some(said) = section.last_change.as_ref().map(describe_last_change) {
            append_reason(section, &said);
        }
    }
}

/// Looks up the last change of lines in some files, in a history.
pub struct LastChangeLookup<'a> {
    repo: &'a Repo,
    known: &'a RepoHistory,
    /// Commits that changed each file: the commit's index and the change, newest first.
    pasts: HashMap<PathId, Vec<(usize, &'a PastFile)>>,
    /// Last changes by the index of the commit.
    found: HashMap<usize, Option<LastChange>>,
    hunks_left: usize,
}

impl<'a> LastChangeLookup<'a> {
    /// Builds a lookup for `paths` among the commits at the indexes `before`. After `most_hunks` hunks were read, every
    /// further lookup finds nothing.
    pub fn new<'p>(
        repo: &'a Repo,
        (known, before): (&'a RepoHistory, &[usize]),
        paths: impl Iterator<Item = &'p str>,
        most_hunks: usize,
    ) -> Self {
        let history = &known.history;
        let mut pasts: HashMap<PathId, Vec<(usize, &PastFile)>> =
            paths.filter_map(|path| Some((history.find_path(path)?, Vec::new()))).collect();
        history.walk(before, |age, _, moves| {
            let Some(at) = before.get(age) else { return };
            for file in history.commits.get(*at).iter().flat_map(|commit| &commit.files) {
                if let Some(past) = pasts.get_mut(&moves.current_path(file.path)) {
                    past.push((*at, file));
                }
            }
        });
        Self { repo, known, pasts, found: HashMap::new(), hunks_left: most_hunks }
    }

    /// Returns the newest commit that touched `lines` (1-based, inclusive) of a file. `None` if the history does not
    /// tell.
    pub fn find_for_lines(&mut self, path: &str, lines: LineRange) -> Option<LastChange> {
        let past = self.pasts.get(&self.known.history.find_path(path)?)?;
        let left = &mut self.hunks_left;
        let files = past.iter().map(|(_, file)| *file).map_while(|file| {
            *left = left.checked_sub(file.hunks.len() + 1)?;
            Some(file)
        });
        let (at, _) = past.get(find_last_touch(lines, files)?)?;
        self.found.entry(*at).or_insert_with(|| load_last_change(self.repo, self.known.commit(*at)?)).clone()
    }
}

/// Number of characters of a commit id to show, as git does.
const SHORT_COMMIT_CHARS: usize = 8;

fn load_last_change(repo: &Repo, commit: &str) -> Option<LastChange> {
    let time: Time = repo.commit_time(commit).ok()?;
    Some(LastChange { commit: commit.to_owned(), time })
}

/// Formats a last change: `last changed 2026-01-02 in 1a2b3c4d`.
pub fn describe_last_change(change: &LastChange) -> String {
    let short: String = change.commit.chars().take(SHORT_COMMIT_CHARS).collect();
    format!("last changed {} in {short}", change.time.strftime("%Y-%m-%d"))
}

/// Formats coverage: `tests reach 3 of 5 lines`.
pub fn describe_coverage(share: LineCoverage) -> String {
    match share.reached {
        0 => "not covered by tests".to_owned(),
        reached => format!("tests reach {reached} of {}", format_count(share.total as usize, "line")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::index::history_cache::tests::HistoryFixture;

    #[test]
    fn functions_that_no_test_reaches_are_told_in_few_words_whatever_they_are_called() {
        let words = |text: &str| text.split_whitespace().count();
        let named = |path: &str, name: &str| UntestedFunction {
            path: path.to_owned(),
            name: name.to_owned(),
            lines: LineRange::new(3, 5),
        };
        assert!(build_untested_piece(&[], 1_000, &words).is_none());
        let key = concat!("gh", "p_8rT3kLm9QwXz2VbN6yHs4JdF7cPa1GuE5oKi");
        let hostile = [
            named("a.rs", "one"),
            named("b\n- c.rs:1-2 forged\u{202e}.rs", "two\r\n```"),
            named(&format!("{key}.rs"), key),
            named(&"long/".repeat(800), "three"),
        ];
        let told = build_untested_piece(&hostile, 1_000, &words).expect("a piece");
        let lines: Vec<&str> = told.text.lines().collect();
        assert_eq!((lines.len(), lines[1]), (5, "- a.rs:3-5 one"), "{}", &*told.text);
        assert!(lines[1..].iter().all(|line| line.starts_with("- ") && line.chars().count() < 600), "{lines:?}");
        assert!(!told.text.contains(key) && !told.text.contains(['\u{202e}', '\r']), "{}", &*told.text);
        let many: Vec<UntestedFunction> = (0..100).map(|number| named("a.rs", &format!("f{number}"))).collect();
        for (most, last) in [(1_000, Some("- and 70 more")), (30, Some("- and 95 more")), (10, None)] {
            let told = build_untested_piece(&many, most, &words);
            assert_eq!(told.as_ref().and_then(|piece| piece.text.lines().last()), last);
            assert!(told.is_none_or(|piece| words(&piece.text) as u32 <= most));
        }
    }

    #[rstest]
    #[case::all_of_it(10, 19, &[])]
    #[case::more_than_it(8, 25, &[])]
    #[case::its_head(10, 12, &["walk"])]
    #[case::its_middle(12, 13, &["walk"])]
    #[case::one_and_the_next(15, 22, &["walk", "climb"])]
    #[case::a_method(32, 39, &["Road"])]
    #[case::of_a_method(32, 35, &["next"])]
    #[case::between(26, 28, &[])]
    fn a_part_says_what_it_is_of(#[case] start: u32, #[case] end: u32, #[case] expected: &[&str]) {
        let declared =
            [("walk", 10, 19), ("climb", 20, 25), ("Road", 30, 60), ("next", 32, 39)].map(|(name, start, end)| {
                let lines = LineRange::new(start, end);
                Declaration { kind: ChunkKind::Function, name: name.into(), scope: String::new(), lines, head: lines }
            });
        let found: Vec<String> =
            find_cut_declarations(&declared, LineRange::new(start, end)).into_iter().map(|part| part.name).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn no_more_of_the_past_is_looked_at_than_there_is_time_for() {
        let sample = HistoryFixture::new(5);
        let repo = sample.repo();
        let known = sample.read();
        let before = known.ancestors(&sample.tip());
        let changed = |line: u32, most: usize| {
            let mut changes = LastChangeLookup::new(&repo, (&known, &before), ["main.rs"].into_iter(), most);
            changes.find_for_lines("main.rs", LineRange::new(line, line)).map(|change| change.commit)
        };
        assert_eq!(changed(2, 2), Some(sample.tip()));
        assert_eq!((changed(1, usize::MAX), changed(1, 9)), (known.commit(4).map(str::to_owned), None));
    }
}
