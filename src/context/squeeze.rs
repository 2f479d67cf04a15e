//! More code in the same tokens: files that may be sent are compressed, step by step, while the budget is as good as used up
//! and other code does not fit.
//!
//! Invariants: a line has the same number as before; pieces that must be there, those that the task names and those that
//! may well matter stay as they are.

use std::collections::HashMap;

use super::compress::Strength;
use super::pack::{Excluded, LeftAway, Need, Packed, Piece, Said};
use super::retrieve::RankedFile;
use super::telling::Telling;
use crate::domain::LineRange;

/// From here on a budget is as good as used up.
const FULL: f32 = 0.95;
/// What has this score stays as it is: a probability of 0.022. With 0.54 a line in two hundred more would be lost, see
/// docs/retrieval.md.
const KEPT: f32 = 0.48;
/// Files of which nothing below [`KEPT`] has this score are not compressed, that is hardly ever sent: a probability of 0.02.
const WORTH_SQUEEZING: f32 = 0.47;

/// Lets another thread find out what can be taken away from files, where not all pieces of code will have room.
pub fn expect(pieces: &[Piece], ranked: &[RankedFile], budget: u32, telling: &Telling<'_>) {
    if pieces.iter().map(tokens).sum::<usize>() > budget as usize {
        telling.expect_cuts(squeezable(pieces, ranked).iter().map(|one| one.file));
    }
}

/// Packs, and while the budget is as good as used up and code is left out, compresses and packs again. `None` once it is
/// cancelled.
pub fn packed(
    mut pieces: Vec<Piece>,
    ranked: &[RankedFile],
    telling: &Telling<'_>,
    pack: &dyn Fn(&[Piece]) -> Option<Packed>,
    cancelled: &dyn Fn() -> bool,
) -> Option<Packed> {
    let mut packed = pack(&pieces)?;
    for strength in Strength::ALL {
        if !is_tight(&packed) {
            break;
        }
        let squeezable = squeezable(&pieces, ranked);
        let most: usize = squeezable.iter().flat_map(|one| &one.pieces).map(|at| tokens(&pieces[*at])).sum();
        // Were all of it gone, there would not be room for everything: the strongest step is taken at once.
        if *strength != Strength::Strong && missed(&packed).map(|left| left.tokens as usize).sum::<usize>() > most {
            continue;
        }
        if squeeze(&mut pieces, &squeezable, *strength, telling, cancelled) {
            let shorter = pack(&pieces)?;
            packed = Packed { compression: Some(*strength), ..shorter };
        }
    }
    Some(packed)
}

fn is_tight(packed: &Packed) -> bool {
    packed.utilization() > FULL && missed(packed).next().is_some()
}

/// Code that did not fit.
fn missed(packed: &Packed) -> impl Iterator<Item = &LeftAway> {
    packed.left_out.iter().filter(|left| left.lines.is_some() && left.reason == Excluded::Budget)
}

/// At most, where nobody has counted them.
fn tokens(piece: &Piece) -> usize {
    piece.tokens.map_or(piece.text.len(), |tokens| tokens as usize)
}

/// A file that may be compressed: which pieces of it, and which lines stay as they are.
struct Squeezable<'a> {
    file: &'a RankedFile,
    pieces: Vec<usize>,
    needed: Vec<LineRange>,
}

fn squeezable<'a>(pieces: &[Piece], ranked: &'a [RankedFile]) -> Vec<Squeezable<'a>> {
    let mut by_path: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.lines.is_some()) {
        by_path.entry(&piece.path).or_default().push(at);
    }
    let is_fixed = |at: &usize| pieces[*at].need <= Need::Named || pieces[*at].score >= KEPT;
    let of_file = |file: &'a RankedFile| {
        let (fixed, pieces_of): (Vec<usize>, Vec<usize>) =
            by_path.remove(file.path.as_str())?.into_iter().partition(is_fixed);
        let is_worth_it = pieces_of.iter().any(|at| pieces[*at].score >= WORTH_SQUEEZING);
        let needed = fixed.iter().filter_map(|at| pieces[*at].lines).collect();
        is_worth_it.then_some(Squeezable { file, pieces: pieces_of, needed })
    };
    ranked.iter().filter_map(of_file).collect()
}

/// Compresses code and says whether anything became shorter; stays where it is once it is cancelled. Of what is left out with
/// all it says nothing stays: its title would say more than it.
fn squeeze(
    pieces: &mut Vec<Piece>,
    squeezable: &[Squeezable<'_>],
    strength: Strength,
    telling: &Telling<'_>,
    cancelled: &dyn Fn() -> bool,
) -> bool {
    let files: Vec<(&RankedFile, &[LineRange])> =
        squeezable.iter().map(|one| (one.file, one.needed.as_slice())).collect();
    let (mut is_shorter, mut empty) = (false, vec![false; pieces.len()]);
    for (one, texts) in squeezable.iter().zip(telling.compressed(&files, strength, cancelled)) {
        for at in &one.pieces {
            let Some(lines) = pieces[*at].lines else { continue };
            let (place, tokens) = texts.lines(&one.file.document.passages, lines);
            let text = Said::part(&texts.all, place);
            if *text != *pieces[*at].text {
                (is_shorter, empty[*at]) = (true, !text.contains(char::is_alphanumeric));
                (pieces[*at].text, pieces[*at].tokens) = (text, Some(tokens));
            }
        }
    }
    let mut empty = empty.into_iter();
    pieces.retain(|_| !empty.next().unwrap_or(false));
    is_shorter
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;
    use crate::context::pack::{Because, SectionKind};
    use crate::context::retrieve::document::Document;
    use crate::context::retrieve::factors::FileFactors;
    use crate::context::retrieve::told::Told;
    use crate::context::retrieve::words::Vocabulary;
    use crate::domain::Encoding;
    use crate::git::Repo;

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
";

    #[rstest]
    #[case::code(Some((1, 8)), Excluded::Budget, 951, true)]
    #[case::an_overview(None, Excluded::Budget, 990, false)]
    #[case::in_another_section(Some((1, 8)), Excluded::Contained, 990, false)]
    #[case::room_is_left(Some((1, 8)), Excluded::Budget, 950, false)]
    fn room_is_needed_for_code_that_did_not_fit(
        #[case] lines: Option<(u32, u32)>,
        #[case] reason: Excluded,
        #[case] total_tokens: u32,
        #[case] expected: bool,
    ) {
        let lines = lines.map(|(start, end)| LineRange::new(start, end));
        let kind = SectionKind::Window;
        let left = LeftAway { path: String::new(), lines, kind, tokens: 100, score: 0.5, reason };
        let packed = Packed { left_out: vec![left], total_tokens, budget: 1_000, ..Packed::default() };
        assert_eq!(is_tight(&packed), expected);
    }

    #[test]
    fn lines_keep_their_numbers_behind_what_must_be_there() {
        let folder = tempfile::tempdir().expect("a folder");
        git2::Repository::init_bare(folder.path()).expect("a repository");
        let repo = Repo::discover(folder.path()).expect("a repository");
        let telling = Telling::open(&repo, Encoding::O200kBase, None);
        let document = Arc::new(Document::read(TEXT, &mut Vocabulary::default()));
        let file = RankedFile {
            path: "a.rs".to_owned(),
            blob: "0".repeat(40),
            told: Told::plain(&document, TEXT, &str::len),
            document: Arc::clone(&document),
            probability: 0.5,
            factors: FileFactors::default(),
            passages: Vec::new(),
        };
        // The first function must be there as it is, the second may matter, the third hardly does.
        let sort = |line: u32| match line {
            1..=8 => (Need::Must, 1.0),
            9..=15 => (Need::Worth, 0.7),
            _ => (Need::Worth, 0.475),
        };
        let texts = &file.told.texts;
        let piece = |(number, place): (usize, &crate::context::retrieve::document::Passage)| Piece {
            path: file.path.clone(),
            lines: Some(LineRange::new(place.start + 1, place.end)),
            kind: SectionKind::Function,
            text: Said::part(&texts.all, texts.place(number)),
            tokens: None,
            need: sort(place.start + 1).0,
            score: sort(place.start + 1).1,
            worth: 0.5,
            first: 0.0,
            because: Arc::new(Because::default()),
        };
        let mut pieces: Vec<Piece> = document.passages.iter().enumerate().map(piece).collect();
        let (ranked, all) = ([file.clone()], pieces.len());
        for strength in Strength::ALL {
            let before: Vec<String> = pieces.iter().map(|piece| piece.text.to_string()).collect();
            let squeezable = squeezable(&pieces, &ranked);
            let is_shorter = squeeze(&mut pieces, &squeezable, *strength, &telling, &|| false);
            let is_as_before = pieces.iter().map(|piece| &*piece.text).eq(before.iter().map(String::as_str));
            assert_ne!(is_shorter, is_as_before, "{strength:?}");
        }
        assert!(pieces.len() < all && pieces.iter().all(|piece| !piece.text.trim().is_empty()));
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
        let told: String = pieces.iter().map(|piece| &*piece.text).collect();
        let has = |line: &str| told.contains(line);
        assert!(has("// Why.") && has("one();") && has("five();") && !has("eight();") && has("pub fn third"), "{told}");
    }
}
