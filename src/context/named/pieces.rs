//! What is sent of that which a task names: of a file its best passage, of a declaration all of it, of a long one its head.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{Mention, Named};
use crate::context::chunk::{ChunkKind, Declaration, MOST_TOKENS};
use crate::context::pack::{Because, Count, Need, Piece, SectionKind};
use crate::context::retrieve::document::Document;
use crate::context::retrieve::task::Task;
use crate::context::retrieve::words::Vocabulary;
use crate::context::retrieve::{RankedFile, SourceFile};
use crate::context::score;
use crate::context::telling::Telling;
use crate::context::text::lines_of;
use crate::domain::LineRange;
use crate::provider::builtin::facts::is_test_path;

/// What is named has a score above that of what is likely; how far above, its file's probability says.
const LEAST_SCORE: f32 = score::CERTAIN;

/// Marks the best pieces of each file that is named by its path, of `most` tokens: what it declares before what stands around
/// that, since its words need not be the task's.
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
        let mut left = most;
        let mut fits = |at: &usize| {
            let rest = left.checked_sub(pieces[*at].tokens.unwrap_or(0));
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let best = of_file.first().copied();
        marked.extend(of_file.into_iter().filter(|at| fits(at) || Some(*at) == best));
    }
    for at in marked {
        let piece = &mut pieces[at];
        // What must be there is there in any case.
        piece.need = piece.need.min(Need::Named);
        piece.score = raised(piece.score);
        piece.because = because(&piece.because);
    }
}

/// The declarations that are named, of files that are ranked or in focus: what a change touches, its diff tells.
pub fn declarations(
    named: &Named<'_>,
    task: &Task,
    (ranked, files): (&[RankedFile], &[SourceFile]),
    telling: &Telling<'_>,
    because_of: &dyn Fn(&RankedFile) -> Because,
    (vocabulary, count): (&Vocabulary, Count<'_>),
) -> Vec<Piece> {
    let changed: HashSet<&str> = task.given.iter().map(|given| given.path.as_str()).collect();
    let declaring = named.declaring.iter().filter(|(path, _)| !changed.contains(path.as_str()));
    let wanted = declaring.filter_map(|(path, mentions)| {
        let file = files.iter().find(|file| file.path == *path)?;
        let known = ranked.iter().find(|file| file.path == *path);
        // Nobody asks for it: a file that may not be sent, or beyond those that are ranked.
        (known.is_some() || task.focus.iter().any(|focus| focus.path == *path)).then_some((file, known, mentions))
    });
    let wanted: Vec<_> = wanted.collect();
    let of_files: Vec<_> = wanted.iter().map(|(file, ..)| (file.path.clone(), file.blob.clone())).collect();
    telling.prepare(&of_files, &|| false);
    let mut pieces = Vec::new();
    for (file, known, mentions) in wanted {
        let path = &file.path;
        let told = known.map_or_else(|| telling.told(file), |known| known.told.clone());
        let text_of = |lines: LineRange| -> String {
            let numbers = file.document.passages.iter().enumerate();
            let overlapping = numbers.filter(|(_, place)| lines.overlaps(LineRange::new(place.start + 1, place.end)));
            overlapping.map(|(number, place)| lines_of(told.texts.get(number), place.start + 1, lines)).collect()
        };
        let declared = telling.declarations(path, &file.blob);
        let because = because(&known.map(because_of).unwrap_or_default());
        for mention in mentions {
            for (kind, lines, head) in places(*mention, &declared, &file.document, vocabulary) {
                let (mut lines, mut text) = (lines, text_of(lines));
                if count(&text) as u32 > MOST_TOKENS {
                    (lines, text) = (head, text_of(head));
                }
                pieces.push(Piece {
                    path: path.clone(),
                    lines: Some(lines),
                    kind: if is_test_path(path) { SectionKind::Test } else { kind },
                    text: text.into(),
                    tokens: None,
                    need: Need::Named,
                    score: raised(known.map_or(1.0, |known| score::of(known.probability))),
                    worth: 0.0,
                    first: 0.0,
                    because: Arc::clone(&because),
                });
            }
        }
    }
    pieces
}

/// The order stays.
fn raised(score: f32) -> f32 {
    LEAST_SCORE + (1.0 - LEAST_SCORE) * score
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
        return found.into_iter().map(|known| (kind(known.kind), known.lines, known.head)).collect();
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

fn kind(kind: ChunkKind) -> SectionKind {
    match kind {
        ChunkKind::Function => SectionKind::Function,
        ChunkKind::Class | ChunkKind::Interface | ChunkKind::Type => SectionKind::Type,
        ChunkKind::Test => SectionKind::Test,
        _ => SectionKind::Window,
    }
}
