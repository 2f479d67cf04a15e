//! What is said of sections besides their text: of which declaration they are a part, what tests reach of them, when their
//! lines changed last.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::chunk::Declaration;
use super::covered::Covered;
use super::pack::{Declared, LastChange, Packed, Section, Untested};
use super::past::Known;
use super::retrieve::history::{PastFile, PathId, last_touch};
use super::retrieve::task::{Task, old_lines};
use crate::domain::text::count;
use crate::domain::{LineRange, Time};
use crate::git::Repo;
use crate::provider::builtin::facts::Facts;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::Parsers;

fn say(section: &mut Section, words: &str) {
    let because = Arc::make_mut(&mut section.because);
    because.reason.push_str("; ");
    because.reason.push_str(words);
}

/// Of which declarations each section is a part, so that nobody takes it for all of them.
pub fn tell_parts(packed: &mut Packed, declared: Declared<'_>) {
    for section in &mut packed.sections {
        let Some(lines) = section.lines else { continue };
        section.of = cut(&declared(&section.path), lines);
        let said = |part: &Declaration| {
            let Declaration { kind, name, lines, .. } = part;
            format!("part of {}, lines {}-{}", format!("{kind} {name}").trim_end(), lines.start, lines.end)
        };
        let said: Vec<String> = section.of.iter().map(said).collect();
        said.iter().for_each(|said| say(section, said));
    }
}

/// The innermost declarations that begin before some lines or end behind them, and have lines among these.
fn cut(declared: &[Declaration], lines: LineRange) -> Vec<Declaration> {
    let innermost = |is_cut: &dyn Fn(LineRange) -> bool| {
        declared
            .iter()
            .filter(|known| known.lines.overlaps(lines) && is_cut(known.lines))
            .max_by_key(|known| known.lines.start)
    };
    let first = innermost(&|own| own.start < lines.start);
    let last = innermost(&|own| own.end > lines.end);
    let holds =
        |other: Option<&Declaration>, one: &Declaration| other.is_some_and(|other| one.lines.holds(other.lines));
    let last = last.filter(|one| !holds(first, one));
    first.filter(|one| !holds(last, one)).into_iter().chain(last).cloned().collect()
}

/// What tests reached of each section.
pub fn tell_coverage(packed: &mut Packed, covered: &Covered) {
    for section in &mut packed.sections {
        section.coverage = section.lines.and_then(|lines| covered.share(&section.path, lines));
        if let Some(share) = section.coverage {
            let said = match share.reached {
                0 => "not covered by tests".to_owned(),
                reached => format!("tests reach {reached} of {}", count(share.of as usize, "line")),
            };
            say(section, &said);
        }
    }
}

/// The changed functions that no test reaches.
pub fn untested(repo: &Repo, task: &Task, blobs: &HashMap<String, String>, covered: &Covered) -> Vec<Untested> {
    let mut parsers = Parsers::default();
    let mut found = Vec::new();
    for given in &task.given {
        let content = blobs.get(&given.path).and_then(|blob| repo.blob(blob).ok());
        let Some(content) = content.filter(|_| covered.has(&given.path)) else { continue };
        let language = Language::detect(&given.path, &content);
        let parsed = language.and_then(|language| parsers.parse(&given.path, language, &content).ok());
        for function in parsed.map(|source| Facts::of(&source).functions).unwrap_or_default() {
            let lines = LineRange::new(function.line_start, function.line_end);
            let is_changed = given.hunks.iter().any(|hunk| {
                let (start, end) = old_lines(&hunk.place);
                let first = start.saturating_add(1);
                LineRange::new(first, end.max(first)).overlaps(lines)
            });
            let share = covered.share(&given.path, lines);
            if is_changed && !function.is_test && share.is_some_and(|share| share.reached == 0) {
                found.push(Untested { path: given.path.clone(), name: function.name, lines });
            }
        }
    }
    found
}

/// The newest commit, among those that `before` has of the history, that touched lines of each section. Lines of the
/// files that `changed` has are not those of a commit.
pub fn tell_last_change(
    packed: &mut Packed,
    repo: &Repo,
    (known, before): (&Known, &[usize]),
    changed: &HashSet<&str>,
) {
    let history = &known.history;
    let is_of_code = |section: &&Section| section.lines.is_some() && !changed.contains(section.path.as_str());
    let paths = packed.sections.iter().filter(is_of_code).filter_map(|section| history.known(&section.path));
    let mut pasts: HashMap<PathId, Vec<(usize, &PastFile)>> = paths.map(|path| (path, Vec::new())).collect();
    history.walk(before, |age, _, moves| {
        let Some(at) = before.get(age) else { return };
        for file in history.commits.get(*at).iter().flat_map(|commit| &commit.files) {
            if let Some(past) = pasts.get_mut(&moves.today(file.path)) {
                past.push((*at, file));
            }
        }
    });
    let mut times: HashMap<usize, Option<LastChange>> = HashMap::new();
    for section in packed.sections.iter_mut().filter(|section| is_of_code(&&**section)) {
        let past = history.known(&section.path).and_then(|path| pasts.get(&path));
        let Some((lines, past)) = section.lines.zip(past) else { continue };
        let Some((at, _)) = last_touch(lines, past.iter().map(|(_, file)| *file)).and_then(|age| past.get(age)) else {
            continue;
        };
        section.last_change = times.entry(*at).or_insert_with(|| change(repo, known.commit(*at)?)).clone();
        if let Some(change) = &section.last_change {
            let short: String = change.commit.chars().take(SHORT).collect();
            let said = format!("last changed {} in {short}", change.time.strftime("%Y-%m-%d"));
            say(section, &said);
        }
    }
}

/// As many characters of a commit's id as git shows of it.
const SHORT: usize = 8;

fn change(repo: &Repo, commit: &str) -> Option<LastChange> {
    let time: Time = repo.commit_time(commit).ok()?;
    Some(LastChange { commit: commit.to_owned(), time })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::context::chunk::ChunkKind;

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
        let found: Vec<String> = cut(&declared, LineRange::new(start, end)).into_iter().map(|part| part.name).collect();
        assert_eq!(found, expected);
    }
}
