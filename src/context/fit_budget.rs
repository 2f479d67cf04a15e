//! Compresses selected pieces step by step, so that more code fits into a budget.
//!
//! The next step is taken while the budget is nearly used up and other code does not fit.
//!
//! Invariants:
//! - A line keeps its number.
//! - Required pieces, pieces that the task mentions and pieces that probably matter stay as they are.

use std::collections::{HashMap, HashSet};

use super::annotations::{DeclarationLookup, pack_with_part_titles};
use super::compress::{Strength, compress_chunk};
use super::file_analysis::FileAnalyzer;
use super::pack::{ContextPiece, Need, PackPlan, PackedContext, TokenCounter, pack_unless_cancelled, plan_packing};
use super::retrieve::RankedFile;
use crate::domain::LineRange;
use crate::index::chunk::ChunkKind;
use crate::parallel;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;
use crate::tokens::count_tokens;

/// Share of the budget from which it counts as used up.
const TIGHT_BUDGET_SHARE: f32 = 0.95;
/// Minimum score of a piece that is never compressed: a probability of 0.1. docs/retrieval.md says what other values
/// lose.
const MIN_SCORE_UNCOMPRESSED: f32 = 0.63;
/// Minimum score of a piece that keeps its function bodies: a probability of 0.01.
const MIN_SCORE_WITH_BODIES: f32 = 0.4;

/// Maximum number of tokens to compress, lowest scores first. To parse them takes some hundredths of a second.
const MAX_COMPRESSED_TOKENS: usize = 24_000;

/// Pieces to pack, and what the packing looks up about them.
pub struct PackInput<'a> {
    pub pieces: Vec<ContextPiece>,
    pub ranked: &'a [RankedFile],
    pub analyzer: &'a FileAnalyzer<'a>,
    /// Returns the declarations of a file, for titles.
    pub declared: DeclarationLookup<'a>,
    /// Budget in tokens of `count`.
    pub budget: u32,
    pub count: TokenCounter<'a>,
    pub cancelled: &'a dyn Fn() -> bool,
    /// True to compress code if the budget is tight.
    pub may_compress: bool,
}

impl PackInput<'_> {
    /// Packs the pieces into the budget. If the plan nearly uses up the budget and leaves out code, pieces are
    /// compressed first. `None` after cancellation.
    pub fn pack_compressed(mut self) -> Option<PackedContext> {
        let (budget, count) = (self.budget, self.count);
        let (mut compression, mut planned) = (None, self.plan()?);
        for strength in Strength::ALL.iter().filter(|_| self.may_compress) {
            if !is_tight(&planned, budget) {
                break;
            }
            let compressible =
                find_compressible_pieces(&self.pieces, &planned.taken, self.ranked, self.analyzer, *strength);
            let most: usize = compressible.iter().map(|one| count_tokens_at_most(&self.pieces[one.at])).sum();
            let is_last = *strength == Strength::Strong;
            // If even removing all of it would not make room for everything, the weaker steps are skipped and the
            // strongest is taken.
            let may_suffice = is_last || planned.excluded_tokens <= most as u64;
            if may_suffice && compress_pieces(&mut self.pieces, &compressible, self.analyzer) {
                compression = Some(*strength);
                if !is_last {
                    planned = self.plan()?;
                }
            }
        }
        let pack = |room| pack_unless_cancelled(self.cancelled, &self.pieces, room, count);
        Some(PackedContext { compression, ..pack_with_part_titles(&pack, self.declared, (budget, count))? })
    }

    fn plan(&self) -> Option<PackPlan> {
        plan_packing(self.cancelled, &self.pieces, self.budget, self.count)
    }
}

/// Returns true if the budget is nearly used up and code is left out.
fn is_tight(plan: &PackPlan, budget: u32) -> bool {
    plan.used as f32 > budget as f32 * TIGHT_BUDGET_SHARE && plan.excluded_tokens > 0
}

/// Returns the number of tokens, or the number of bytes as an upper bound if they are not counted yet.
fn count_tokens_at_most(piece: &ContextPiece) -> usize {
    piece.tokens.map_or(piece.text.len(), |tokens| tokens as usize)
}

/// A piece that may be compressed, and the strength for it.
struct CompressiblePiece {
    at: usize,
    language: Language,
    strength: Strength,
}

/// Returns the selected pieces that may be compressed, lowest scores first. Only whole chunks qualify, because a window
/// may begin inside a string literal.
fn find_compressible_pieces(
    pieces: &[ContextPiece],
    taken: &[usize],
    ranked: &[RankedFile],
    telling: &FileAnalyzer<'_>,
    strength: Strength,
) -> Vec<CompressiblePiece> {
    let files: HashMap<&str, &RankedFile> = ranked.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut chunks: HashMap<&str, Option<(Language, HashSet<LineRange>)>> = HashMap::new();
    let mut found = Vec::new();
    for at in taken.iter().copied() {
        let piece = &pieces[at];
        let (Some(file), Some(strength)) = (files.get(piece.path.as_str()), allowed_strength(piece, strength)) else {
            continue;
        };
        let of_file = chunks.entry(&file.path).or_insert_with(|| {
            let language = Language::detect(&file.path, file.masked.texts.all.as_bytes())?;
            let chunks = telling.syntax(&file.path, &file.blob).chunks;
            let whole = chunks.iter().filter(|chunk| !matches!(chunk.kind, ChunkKind::Window | ChunkKind::Config));
            Some((language, whole.map(|chunk| chunk.lines).collect()))
        });
        if let Some((language, whole)) = of_file
            && piece.lines.is_some_and(|lines| whole.contains(&lines))
        {
            found.push(CompressiblePiece { at, language: *language, strength });
        }
    }
    found.sort_by(|a, b| pieces[a.at].score.total_cmp(&pieces[b.at].score).then(a.at.cmp(&b.at)));
    let mut left = MAX_COMPRESSED_TOKENS;
    found.retain(|one| {
        let rest = left.checked_sub(count_tokens_at_most(&pieces[one.at]));
        left = rest.unwrap_or(left);
        rest.is_some()
    });
    found
}

/// Returns the strength with which a piece may be compressed, at most `strength`. `None` if it must stay as it is.
fn allowed_strength(piece: &ContextPiece, strength: Strength) -> Option<Strength> {
    match () {
        () if piece.need <= Need::Mentioned || piece.score >= MIN_SCORE_UNCOMPRESSED => None,
        // The words for which a snippet was selected may be in a function body.
        () if piece.need == Need::Snippet || piece.score >= MIN_SCORE_WITH_BODIES => {
            Some(strength.min(Strength::Medium))
        }
        () => Some(strength),
    }
}

/// Compresses pieces on several threads. Returns true if any became shorter. A piece without any word left is not sent,
/// because its title would be longer than its text.
fn compress_pieces(pieces: &mut [ContextPiece], squeezable: &[CompressiblePiece], telling: &FileAnalyzer<'_>) -> bool {
    let encoding = telling.encoding();
    let asked: Vec<(&CompressiblePiece, &str, usize)> =
        squeezable.iter().map(|one| (one, &*pieces[one.at].text, count_tokens_at_most(&pieces[one.at]))).collect();
    let shorter = parallel::map_init(&asked, Parsers::default, |parsers, (one, text, tokens)| {
        let text = compress_chunk(parsers, one.language, text, one.strength)?;
        let fewer = Some(count_tokens(encoding, &text)).filter(|fewer| fewer < tokens)?;
        Some((one.at, fewer as u32, text))
    });
    let mut is_shorter = false;
    for (at, tokens, text) in shorter.into_iter().flatten() {
        is_shorter = true;
        if !text.contains(char::is_alphanumeric) {
            pieces[at].need = Need::Emptied;
        }
        (pieces[at].text, pieces[at].tokens) = (text.into(), Some(tokens));
    }
    is_shorter
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;
    use crate::context::builder::standalone_piece;
    use crate::context::pack::{ExclusionReason, ScoreExplanation, SectionKind, SharedText, pack};
    use crate::context::retrieve::factors::FileFactors;
    use crate::context::retrieve::masked_text::MaskedFile;
    use crate::domain::Encoding;
    use crate::git::Repo;
    use crate::index::document::Document;
    use crate::index::vocabulary::Vocabulary;

    const TEXT: &str = "\
/// First.
pub fn first() -> u32 {
    // Why.
    one();
    two();
    3
}

/// Second.
pub fn second() -> u32 {
    // How.
    four();
    five();
    6
}

/// Third.
pub fn third() -> u32 {
    seven();
    eight();
    nine();
    ten();
    eleven();
    twelve();
    thirteen();
    fourteen();
    fifteen();
    sixteen();
    seventeen();
    eighteen();
    nineteen();
    twenty();
    many();
    more();
    23
}

// The end.
";

    #[rstest]
    #[case::code_does_not_fit(951, 1, true)]
    #[case::all_of_it_fits(990, 0, false)]
    #[case::room_is_left(950, 1, false)]
    fn room_is_needed_for_code_that_does_not_fit(#[case] used: u32, #[case] missed: u64, #[case] expected: bool) {
        assert_eq!(is_tight(&PackPlan { taken: Vec::new(), used, excluded_tokens: missed }, 1_000), expected);
    }

    #[rstest]
    #[case::what_must_be_there(Need::Must, 0.35, None)]
    #[case::what_is_named(Need::Mentioned, 0.35, None)]
    #[case::what_may_well_matter(Need::ByUtility, MIN_SCORE_UNCOMPRESSED, None)]
    #[case::what_may_matter(Need::ByUtility, MIN_SCORE_WITH_BODIES, Some(Strength::Medium))]
    #[case::what_was_found_for_its_words(Need::Snippet, 0.35, Some(Strength::Medium))]
    #[case::what_hardly_matters(Need::ByUtility, 0.35, Some(Strength::Strong))]
    fn what_matters_more_is_compressed_less(#[case] need: Need, #[case] score: f32, #[case] most: Option<Strength>) {
        let piece = ContextPiece { score, ..standalone_piece(SectionKind::Function, need, String::new(), "") };
        for strength in Strength::ALL {
            assert_eq!(allowed_strength(&piece, *strength), most.map(|most| most.min(*strength)));
        }
    }

    #[test]
    fn lines_keep_their_numbers_behind_what_must_be_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let blob = git.blob(TEXT.as_bytes()).expect("a blob").to_string();
        let repo = Repo::discover(folder.path()).expect("a repository");
        let telling = FileAnalyzer::open(&repo, Encoding::O200kBase, None);
        let document = Arc::new(Document::read(TEXT, &mut Vocabulary::default()));
        let file = RankedFile {
            path: "a.rs".to_owned(),
            blob,
            masked: MaskedFile::from_text(&document, TEXT, &str::len),
            document: Arc::clone(&document),
            probability: 0.5,
            factors: FileFactors::default(),
            passages: Vec::new(),
        };
        // The first function must be sent as it is, the second may matter a little, the third hardly matters.
        let sort = |line: u32| match line {
            1..=8 => (Need::Must, 1.0),
            9..=16 => (Need::ByUtility, 0.5),
            _ => (Need::ByUtility, 0.35),
        };
        let texts = &file.masked.texts;
        let chunk_piece = |lines: LineRange| ContextPiece {
            path: file.path.clone(),
            lines: Some(lines),
            stands_for: None,
            chunk: None,
            kind: SectionKind::Function,
            text: SharedText::from_range(&texts.all, texts.locate_lines(&document.passages, lines).0),
            tokens: None,
            need: sort(lines.start).0,
            score: sort(lines.start).1,
            utility: 0.5,
            first_bonus: 0.0,
            explanation: Arc::new(ScoreExplanation::default()),
        };
        let chunks = telling.syntax(&file.path, &file.blob).chunks;
        let mut pieces: Vec<ContextPiece> = chunks.iter().map(|chunk| chunk_piece(chunk.lines)).collect();
        // A window is no chunk: its beginning may be inside another construct.
        pieces.push(ContextPiece { score: 0.35, need: Need::ByUtility, ..chunk_piece(LineRange::new(10, 12)) });
        let (ranked, all) = ([file.clone()], pieces.len());
        for strength in Strength::ALL {
            let before: Vec<String> = pieces.iter().map(|piece| piece.text.to_string()).collect();
            let taken: Vec<usize> = (0..pieces.len()).collect();
            let squeezable = find_compressible_pieces(&pieces, &taken, &ranked, &telling, *strength);
            let is_shorter = compress_pieces(&mut pieces, &squeezable, &telling);
            let is_as_before = pieces.iter().map(|piece| &*piece.text).eq(before.iter().map(String::as_str));
            assert_ne!(is_shorter, is_as_before, "{strength:?}");
        }
        let silent = pieces.iter().filter(|piece| piece.need == Need::Emptied);
        assert!(pieces.len() == all && silent.eq(pieces.iter().filter(|piece| piece.text.trim().is_empty())));
        let sent = pack(&pieces, 10_000, &str::len);
        let left: Vec<_> = sent.left_out.iter().map(|left| (left.reason, left.lines)).collect();
        assert!(left.contains(&(ExclusionReason::Compressed, chunks.last().map(|chunk| chunk.lines))), "{left:?}");
        for piece in &pieces {
            let lines = piece.lines.expect("of a file");
            assert_eq!(piece.text.lines().count() as u32, lines.end - lines.start + 1, "{lines:?}");
            for (line, number) in piece.text.lines().zip(lines.start..).filter(|(line, _)| line.contains("fn ")) {
                assert!(
                    TEXT.lines().nth(number as usize - 1).is_some_and(|own| line.starts_with(own)),
                    "{number}: {line}"
                );
            }
        }
        let part = pieces.pop().expect("the part of a chunk");
        assert!(part.text.contains("// How."), "{part:?}");
        let told: String = pieces.iter().map(|piece| &*piece.text).collect();
        let has = |line: &str| told.contains(line);
        assert!(has("// Why.") && has("one();"), "{told}");
        assert!(!has("// How.") && has("five();"), "{told}");
        assert!(!has("eight();") && has("pub fn third"), "{told}");
    }
}
