//! Builds the context pieces for mentions: the best passages of a mentioned file; a mentioned declaration completely,
//! or only its head if it is long.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{Mention, MentionedFiles};
use crate::context::file_analysis::FileAnalyzer;
use crate::context::pack::{ContextPiece, Need, ScoreExplanation, SectionKind, TokenCounter};
use crate::context::retrieve::RankedFile;
use crate::context::retrieve::task::RetrievalTask;
use crate::context::retrieve::weights::RankingWeights;
use crate::context::score;
use crate::context::text::slice_lines;
use crate::context::units::{classify_unit, sort_declarations};
use crate::context::utility::FileUtility;
use crate::domain::LineRange;
use crate::index::chunk::{ChunkKind, Declaration};
use crate::index::document::Document;
use crate::index::document_store::SourceFile;
use crate::index::vocabulary::Vocabulary;
use crate::syntax::facts::is_test_path;

/// Marks the best pieces of each file that is mentioned by its path, up to `most` tokens per file, and always at least
/// one piece. Declarations come before other code, because the words of a mentioned file need not match the task.
pub fn mark_files(pieces: &mut [ContextPiece], named: &MentionedFiles<'_>, most: u32) {
    let mut of_files: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| named.files.contains(&piece.path)) {
        of_files.entry(&piece.path).or_default().push(at);
    }
    let mut marked = Vec::new();
    for mut of_file in of_files.into_values() {
        let declares =
            |piece: &ContextPiece| matches!(piece.kind, SectionKind::Function | SectionKind::Type | SectionKind::Test);
        of_file.sort_by(|a, b| {
            let (a, b) = (&pieces[*a], &pieces[*b]);
            declares(b).cmp(&declares(a)).then(b.utility.total_cmp(&a.utility)).then(a.lines.cmp(&b.lines))
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
        // Keep a stronger need.
        piece.need = piece.need.min(Need::Mentioned);
        piece.score = raise_score(piece.score);
        piece.explanation = extend_reason(&piece.explanation);
    }
}

/// Inputs for finding the mentioned declarations.
pub struct MentionQuery<'a> {
    pub mentioned: &'a MentionedFiles<'a>,
    pub task: &'a RetrievalTask,
    pub ranked: &'a [RankedFile],
    pub files: &'a [SourceFile],
    pub analysis: &'a FileAnalyzer<'a>,
    pub vocabulary: &'a Vocabulary,
    pub weights: &'a RankingWeights,
    pub explain_file: &'a dyn Fn(&RankedFile) -> ScoreExplanation,
    /// Largest declaration in tokens that is included completely; of a longer one only the head is included.
    pub max_tokens: u32,
    pub count: TokenCounter<'a>,
    pub cancelled: &'a dyn Fn() -> bool,
}

/// File that declares a mentioned name.
struct DeclaringFile<'a> {
    file: &'a SourceFile,
    /// Its ranking, if it was ranked.
    ranked: Option<&'a RankedFile>,
    mentions: &'a [Mention<'a>],
}

impl MentionQuery<'_> {
    /// Returns pieces of the mentioned declarations in ranked files and focus files. Changed files are left out,
    /// because the diff shows them. Returns only a part if `cancelled` returns true.
    pub fn collect_declarations(&self) -> Vec<ContextPiece> {
        let wanted = self.declaring_files();
        let of_files = wanted.iter().map(|wanted| (wanted.file.path.clone(), wanted.file.blob.clone()));
        self.analysis.load_syntax(&of_files.collect::<Vec<_>>(), self.cancelled);
        wanted.iter().take_while(|_| !(self.cancelled)()).flat_map(|wanted| self.declaration_pieces(wanted)).collect()
    }

    fn declaring_files(&self) -> Vec<DeclaringFile<'_>> {
        let changed: HashSet<&str> = self.task.given.iter().map(|given| given.path.as_str()).collect();
        let declaring = self.mentioned.declarations.iter().filter(|(path, _)| !changed.contains(path.as_str()));
        let wanted = declaring.filter_map(|(path, mentions)| {
            let file = self.files.iter().find(|file| file.path == *path)?;
            let known = self.ranked.iter().find(|file| file.path == *path);
            // Skip files that must not be sent, and files that were neither ranked nor are in focus.
            let is_wanted = known.is_some() || self.task.focus.iter().any(|focus| focus.path == *path);
            is_wanted.then_some(DeclaringFile { file, ranked: known, mentions })
        });
        wanted.collect()
    }

    fn declaration_pieces(
        &self,
        &DeclaringFile { file, ranked: known, mentions }: &DeclaringFile<'_>,
    ) -> Vec<ContextPiece> {
        let path = &file.path;
        let told = known.map_or_else(|| self.analysis.mask_file(file), |known| known.masked.clone());
        let text_of = |lines: LineRange| -> String {
            let numbers = file.document.passages.iter().enumerate();
            let overlapping = numbers.filter(|(_, place)| lines.overlaps(LineRange::new(place.start + 1, place.end)));
            overlapping.map(|(number, place)| slice_lines(told.texts.get(number), place.start + 1, lines)).collect()
        };
        let declared = self.analysis.declarations(path, &file.blob);
        let because = extend_reason(&known.map(self.explain_file).unwrap_or_default());
        let worths = known.map(|known| FileUtility::new(known, self.weights));
        let worth_of = |lines: LineRange| match &worths {
            Some(worths) => worths.for_lines(lines).map_or((0.0, 0.0), |worth| (worth.utility, worth.first_bonus)),
            // A focus file is not ranked: all of its lines have the same utility.
            None => (lines.count() as f32 / file.document.line_count().max(1) as f32, 0.0),
        };
        let piece = |FoundDeclaration { kind, chunk, lines, head }: FoundDeclaration| {
            let (mut lines, mut text) = (lines, text_of(lines));
            if (self.count)(&text) as u32 > self.max_tokens {
                (lines, text) = (head, text_of(head));
            }
            let (worth, first) = worth_of(lines);
            ContextPiece {
                path: path.clone(),
                lines: Some(lines),
                stands_for: None,
                kind: if is_test_path(path) { SectionKind::Test } else { kind },
                chunk,
                text: text.into(),
                tokens: None,
                need: Need::Mentioned,
                score: raise_score(known.map_or(1.0, |known| score::from_probability(known.probability))),
                utility: worth,
                first_bonus: first,
                explanation: Arc::clone(&because),
            }
        };
        let places =
            mentions.iter().flat_map(|mention| find_declarations(*mention, &declared, &file.document, self.vocabulary));
        places.map(piece).collect()
    }
}

/// Raises the score of a mentioned piece above [`score::CERTAIN_SCORE`]; its own score decides how far.
fn raise_score(score: f32) -> f32 {
    score::CERTAIN_SCORE + (1.0 - score::CERTAIN_SCORE) * score
}

fn extend_reason(of: &ScoreExplanation) -> Arc<ScoreExplanation> {
    let reason = if of.reason.is_empty() { String::new() } else { format!("; {}", of.reason) };
    Arc::new(ScoreExplanation { factors: of.factors.clone(), reason: format!("the task names it{reason}") })
}

/// Declaration of a mentioned name.
struct FoundDeclaration {
    kind: SectionKind,
    /// Kind in the syntax tree, if there is one.
    chunk: Option<ChunkKind>,
    lines: LineRange,
    head: LineRange,
}

/// Finds the declarations of a name in a file. Uses the syntax tree, or else the heuristic
/// declarations of the document.
fn find_declarations(
    mention: Mention<'_>,
    declared: &[Declaration],
    document: &Document,
    vocabulary: &Vocabulary,
) -> Vec<FoundDeclaration> {
    let mut found: Vec<&Declaration> = declared.iter().filter(|known| known.name == mention.name).collect();
    if found.iter().any(|known| known.scope == mention.owner) {
        found.retain(|known| mention.owner.is_empty() || known.scope == mention.owner);
    }
    if !found.is_empty() {
        let ordered = sort_declarations(declared);
        let kind =
            |known: &Declaration| classify_unit(known.kind, known.lines, &ordered).unwrap_or(SectionKind::Window);
        let declaration = |known: &Declaration| FoundDeclaration {
            kind: kind(known),
            chunk: Some(known.kind),
            lines: known.lines,
            head: known.head,
        };
        return found.into_iter().map(declaration).collect();
    }
    let word = vocabulary.find(mention.name);
    let lines = document.declarations.iter().filter(|(_, name)| Some(*name) == word).map(|(line, _)| *line);
    let passage = |line: u32| {
        let at = document.passages.partition_point(|place| place.end <= line);
        let place = document.passages.get(at)?;
        let lines = LineRange::new(place.start + 1, place.end);
        Some(FoundDeclaration { kind: SectionKind::Window, chunk: None, lines, head: lines })
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
        let telling = FileAnalyzer::open(&repo, Encoding::O200kBase, None);
        let mut named = MentionedFiles::default();
        named.declarations.insert(file.path.clone(), vec![Mention { name: "walk", owner: "" }]);
        let task =
            RetrievalTask { focus: vec![Focus { path: file.path.clone(), line: None }], ..RetrievalTask::default() };
        let found = |is_cancelled: bool| {
            let asked = MentionQuery {
                mentioned: &named,
                task: &task,
                ranked: &[],
                files: std::slice::from_ref(&file),
                analysis: &telling,
                vocabulary: &vocabulary,
                weights: RankingWeights::built_in(),
                explain_file: &|_| ScoreExplanation::default(),
                max_tokens: 100,
                count: &str::len,
                cancelled: &|| is_cancelled,
            };
            asked.collect_declarations().iter().map(|piece| piece.utility).collect::<Vec<_>>()
        };
        // The complete focus file.
        assert_eq!((found(true), found(false)), (vec![], vec![1.0]));
    }

    #[rstest]
    #[case::all(&[30, 30, 40], &[1, 2, 3])]
    #[case::what_fits(&[60, 50, 30, 20], &[1, 3])]
    #[case::one_that_is_more_is_all(&[150, 50, 30], &[1])]
    #[case::one_that_is_as_much(&[100, 50], &[1])]
    fn of_a_named_file_as_much_is_marked_as_may_be(#[case] tokens: &[u32], #[case] expected: &[u32]) {
        let piece = |(number, tokens): (usize, &u32)| ContextPiece {
            path: "a.rs".to_owned(),
            lines: Some(LineRange::new(number as u32 + 1, number as u32 + 1)),
            stands_for: None,
            chunk: None,
            kind: SectionKind::Function,
            text: String::new().into(),
            tokens: Some(*tokens),
            need: Need::ByUtility,
            score: 0.5,
            utility: 1.0 / (number + 1) as f32,
            first_bonus: 0.0,
            explanation: Arc::default(),
        };
        let mut pieces: Vec<ContextPiece> = tokens.iter().enumerate().map(piece).collect();
        let named = MentionedFiles { files: ["a.rs".to_owned()].into(), ..MentionedFiles::default() };
        mark_files(&mut pieces, &named, 100);
        let marked = pieces.iter().filter(|piece| piece.need == Need::Mentioned);
        assert_eq!(marked.filter_map(|piece| Some(piece.lines?.start)).collect::<Vec<_>>(), expected);
    }
}
