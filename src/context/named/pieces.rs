//! What is sent of that which a task names: of a file its best passage, of a declaration all of it, of a long one its head.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{Mention, Named};
use crate::context::chunk::Declaration;
use crate::context::pack::{Because, Count, Need, Piece, SectionKind};
use crate::context::retrieve::document::Document;
use crate::context::retrieve::task::Task;
use crate::context::retrieve::weights::Weights;
use crate::context::retrieve::words::Vocabulary;
use crate::context::retrieve::{RankedFile, SourceFile};
use crate::context::score;
use crate::context::telling::Telling;
use crate::context::text::lines_of;
use crate::context::units::{in_order, kind};
use crate::context::worth::Worths;
use crate::domain::LineRange;
use crate::provider::builtin::facts::is_test_path;

/// Marks the best pieces of each file that is named by its path, of `most` tokens, and the best one in any case: what it
/// declares before what stands around that, since its words need not be the task's.
pub fn mark_files(pieces: &mut [Piece], named: &Named<'_>, most: u32) {
    let mut of_files: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| named.files.contains(&piece.path)) {
        of_files.entry(&piece.path).or_default().push(at);
    }
    let mut marked = Vec::new();
    for mut of_file in of_files.into_values() {
        let declares =
            |piece: &Piece| matches!(piece.kind, SectionKind::Function | SectionKind::Type | SectionKind::Test);
        of_file.sort_by(|a, b| {
            let (a, b) = (&pieces[*a], &pieces[*b]);
            declares(b).cmp(&declares(a)).then(b.worth.total_cmp(&a.worth)).then(a.lines.cmp(&b.lines))
        });
        let tokens = |at: &usize| pieces[*at].tokens.unwrap_or(0);
        let mut left = most.saturating_sub(of_file.first().map_or(0, tokens));
        let mut fits = |at: &usize| {
            let rest = left.checked_sub(tokens(at));
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        marked.extend(of_file.first());
        marked.extend(of_file.into_iter().skip(1).filter(|at| fits(at)));
    }
    for at in marked {
        let piece = &mut pieces[at];
        // What must be there is there in any case.
        piece.need = piece.need.min(Need::Named);
        piece.score = raised(piece.score);
        piece.because = because(&piece.because);
    }
}

/// What the declarations that are named are looked for in.
pub struct Asked<'a> {
    pub named: &'a Named<'a>,
    pub task: &'a Task,
    pub ranked: &'a [RankedFile],
    pub files: &'a [SourceFile],
    pub telling: &'a Telling<'a>,
    pub vocabulary: &'a Vocabulary,
    pub weights: &'a Weights,
    pub because_of: &'a dyn Fn(&RankedFile) -> Because,
    /// Of a declaration of more tokens the head is told.
    pub most: u32,
    pub count: Count<'a>,
    pub cancelled: &'a dyn Fn() -> bool,
}

/// A file that declares what is named.
struct Declaring<'a> {
    file: &'a SourceFile,
    /// Where it is ranked.
    known: Option<&'a RankedFile>,
    mentions: &'a [Mention<'a>],
}

impl Asked<'_> {
    /// The declarations that are named, of files that are ranked or in focus: what a change touches, its diff tells. Some of
    /// them once it is cancelled.
    pub fn declarations(&self) -> Vec<Piece> {
        let wanted = self.wanted();
        let of_files = wanted.iter().map(|wanted| (wanted.file.path.clone(), wanted.file.blob.clone()));
        self.telling.prepare(&of_files.collect::<Vec<_>>(), self.cancelled);
        wanted.iter().take_while(|_| !(self.cancelled)()).flat_map(|wanted| self.declared(wanted)).collect()
    }

    fn wanted(&self) -> Vec<Declaring<'_>> {
        let changed: HashSet<&str> = self.task.given.iter().map(|given| given.path.as_str()).collect();
        let declaring = self.named.declaring.iter().filter(|(path, _)| !changed.contains(path.as_str()));
        let wanted = declaring.filter_map(|(path, mentions)| {
            let file = self.files.iter().find(|file| file.path == *path)?;
            let known = self.ranked.iter().find(|file| file.path == *path);
            // Nobody asks for it: a file that may not be sent, or beyond those that are ranked.
            let is_wanted = known.is_some() || self.task.focus.iter().any(|focus| focus.path == *path);
            is_wanted.then_some(Declaring { file, known, mentions })
        });
        wanted.collect()
    }

    fn declared(&self, &Declaring { file, known, mentions }: &Declaring<'_>) -> Vec<Piece> {
        let path = &file.path;
        let told = known.map_or_else(|| self.telling.told(file), |known| known.told.clone());
        let text_of = |lines: LineRange| -> String {
            let numbers = file.document.passages.iter().enumerate();
            let overlapping = numbers.filter(|(_, place)| lines.overlaps(LineRange::new(place.start + 1, place.end)));
            overlapping.map(|(number, place)| lines_of(told.texts.get(number), place.start + 1, lines)).collect()
        };
        let declared = self.telling.declarations(path, &file.blob);
        let because = because(&known.map(self.because_of).unwrap_or_default());
        let worths = known.map(|known| Worths::of(known, self.weights));
        let worth_of = |lines: LineRange| match &worths {
            Some(worths) => worths.of_lines(lines).map_or((0.0, 0.0), |worth| (worth.worth, worth.first)),
            // What is in focus is not ranked: all of it is worth the same.
            None => (lines.count() as f32 / file.document.lines().max(1) as f32, 0.0),
        };
        let piece = |(kind, lines, head): (SectionKind, LineRange, LineRange)| {
            let (mut lines, mut text) = (lines, text_of(lines));
            if (self.count)(&text) as u32 > self.most {
                (lines, text) = (head, text_of(head));
            }
            let (worth, first) = worth_of(lines);
            Piece {
                path: path.clone(),
                lines: Some(lines),
                stands_for: None,
                kind: if is_test_path(path) { SectionKind::Test } else { kind },
                text: text.into(),
                tokens: None,
                need: Need::Named,
                score: raised(known.map_or(1.0, |known| score::of(known.probability))),
                worth,
                first,
                because: Arc::clone(&because),
            }
        };
        let places = mentions.iter().flat_map(|mention| places(*mention, &declared, &file.document, self.vocabulary));
        places.map(piece).collect()
    }
}

/// What is named has a score above that of what is as good as certain; how far above, its own says.
fn raised(score: f32) -> f32 {
    score::CERTAIN + (1.0 - score::CERTAIN) * score
}

fn because(of: &Because) -> Arc<Because> {
    let reason = if of.reason.is_empty() { String::new() } else { format!("; {}", of.reason) };
    Arc::new(Because { factors: of.factors.clone(), reason: format!("the task names it{reason}") })
}

/// Where a file declares a name: what it is, its lines and its head. By its syntax tree, else by the looks of it.
fn places(
    mention: Mention<'_>,
    declared: &[Declaration],
    document: &Document,
    vocabulary: &Vocabulary,
) -> Vec<(SectionKind, LineRange, LineRange)> {
    let mut found: Vec<&Declaration> = declared.iter().filter(|known| known.name == mention.name).collect();
    if found.iter().any(|known| known.scope == mention.owner) {
        found.retain(|known| mention.owner.is_empty() || known.scope == mention.owner);
    }
    if !found.is_empty() {
        let ordered = in_order(declared);
        let kind = |known: &Declaration| kind(known.kind, known.lines, &ordered).unwrap_or(SectionKind::Window);
        return found.into_iter().map(|known| (kind(known), known.lines, known.head)).collect();
    }
    let word = vocabulary.known(mention.name);
    let lines = document.declared.iter().filter(|(_, name)| Some(*name) == word).map(|(line, _)| *line);
    let passage = |line: u32| {
        let at = document.passages.partition_point(|place| place.end <= line);
        let place = document.passages.get(at)?;
        let lines = LineRange::new(place.start + 1, place.end);
        Some((SectionKind::Window, lines, lines))
    };
    lines.filter_map(passage).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::context::retrieve::task::Focus;
    use crate::domain::Encoding;
    use crate::git::Repo;

    #[test]
    fn nothing_is_looked_for_once_nobody_waits() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let repo = Repo::discover(folder.path()).expect("a repository");
        let text = "fn walk() {\n    step();\n}\n";
        let mut vocabulary = Vocabulary::default();
        let file = SourceFile {
            path: "a.rs".to_owned(),
            blob: git.blob(text.as_bytes()).expect("a blob").to_string(),
            document: Arc::new(Document::read(text, &mut vocabulary)),
        };
        let telling = Telling::open(&repo, Encoding::O200kBase, None);
        let mut named = Named::default();
        named.declaring.insert(file.path.clone(), vec![Mention { name: "walk", owner: "" }]);
        let task = Task { focus: vec![Focus { path: file.path.clone(), line: None }], ..Task::default() };
        let found = |is_cancelled: bool| {
            let asked = Asked {
                named: &named,
                task: &task,
                ranked: &[],
                files: std::slice::from_ref(&file),
                telling: &telling,
                vocabulary: &vocabulary,
                weights: Weights::built_in(),
                because_of: &|_| Because::default(),
                most: 100,
                count: &str::len,
                cancelled: &|| is_cancelled,
            };
            asked.declarations().iter().map(|piece| piece.worth).collect::<Vec<_>>()
        };
        // All of the file, which is in focus.
        assert_eq!((found(true), found(false)), (vec![], vec![1.0]));
    }

    #[rstest]
    #[case::all(&[30, 30, 40], &[1, 2, 3])]
    #[case::what_fits(&[60, 50, 30, 20], &[1, 3])]
    #[case::one_that_is_more_is_all(&[150, 50, 30], &[1])]
    #[case::one_that_is_as_much(&[100, 50], &[1])]
    fn of_a_named_file_as_much_is_marked_as_may_be(#[case] tokens: &[u32], #[case] expected: &[u32]) {
        let piece = |(number, tokens): (usize, &u32)| Piece {
            path: "a.rs".to_owned(),
            lines: Some(LineRange::new(number as u32 + 1, number as u32 + 1)),
            stands_for: None,
            kind: SectionKind::Function,
            text: String::new().into(),
            tokens: Some(*tokens),
            need: Need::Worth,
            score: 0.5,
            worth: 1.0 / (number + 1) as f32,
            first: 0.0,
            because: Arc::default(),
        };
        let mut pieces: Vec<Piece> = tokens.iter().enumerate().map(piece).collect();
        let named = Named { files: ["a.rs".to_owned()].into(), ..Named::default() };
        mark_files(&mut pieces, &named, 100);
        let marked = pieces.iter().filter(|piece| piece.need == Need::Named);
        assert_eq!(marked.filter_map(|piece| Some(piece.lines?.start)).collect::<Vec<_>>(), expected);
    }
}
