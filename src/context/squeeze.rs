//! More code in the same tokens: what is sent is compressed, step by step, while the budget is as good as used up and other
//! code does not fit.
//!
//! Invariants: a line has the same number as before; pieces that must be there, those that the task names and those that
//! may well matter stay as they are.

use std::collections::HashMap;

use super::compress::Strength;
use super::pack::{Excluded, LeftAway, Need, Packed, Piece};
use super::retrieve::RankedFile;
use super::telling::{Telling, ToShorten};
use crate::domain::LineRange;

/// From here on a budget is as good as used up.
const FULL: f32 = 0.95;
/// What has this score stays as it is: a probability of 0.1. See docs/retrieval.md for what each loses.
const KEPT: f32 = 0.63;
/// What has this score keeps the bodies of its functions: a probability of 0.01.
const KEEPS_BODIES: f32 = 0.4;

/// Files are parsed to compress what is sent of them: so many tokens of them together, which takes some hundredths of a
/// second. Of large files little is sent.
const MOST_PARSED: usize = 60_000;

/// Lets another thread find out what can be taken away from the files that will be sent, as far as that can be told,
/// where not all code will have room.
pub fn expect(pieces: &[Piece], ranked: &[RankedFile], budget: u32, telling: &Telling<'_>) {
    if pieces.iter().map(tokens).sum::<usize>() <= budget as usize {
        return;
    }
    let rate = |piece: &Piece| (piece.worth + piece.first) / tokens(piece).max(1) as f32;
    let mut best: Vec<(f32, usize)> = pieces.iter().map(rate).zip(0..).collect();
    best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut used = 0;
    let fits = |at: &usize| {
        used += tokens(&pieces[*at]);
        used <= budget as usize
    };
    let sent = best.into_iter().map(|(_, at)| at).take_while(fits).collect();
    telling.expect_cuts(squeezable(pieces, sent, ranked, Strength::Strong).iter().map(|one| &one.asked));
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
        let squeezable = squeezable(&pieces, sent(&pieces, &packed), ranked, *strength);
        let most: usize = squeezable.iter().flat_map(|one| &one.pieces).map(|at| tokens(&pieces[*at])).sum();
        // Were all of it gone, there would not be room for everything: the strongest step is taken at once.
        if *strength != Strength::Strong && missed(&packed).map(|left| left.tokens as usize).sum::<usize>() > most {
            continue;
        }
        if squeeze(&mut pieces, squeezable, telling, cancelled) {
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

/// A file that may be compressed, and which pieces of it.
struct Squeezable<'a> {
    asked: ToShorten<'a>,
    pieces: Vec<usize>,
}

/// The pieces that are sent.
fn sent(pieces: &[Piece], packed: &Packed) -> Vec<usize> {
    let mut sections: HashMap<&str, Vec<LineRange>> = HashMap::new();
    for section in &packed.sections {
        sections.entry(&section.path).or_default().extend(section.lines);
    }
    let is_sent = |piece: &Piece| {
        let of_file = sections.get(piece.path.as_str()).map_or(&[][..], Vec::as_slice);
        piece.lines.is_some_and(|lines| of_file.iter().any(|section| section.holds(lines)))
    };
    (0..pieces.len()).filter(|at| is_sent(&pieces[*at])).collect()
}

/// Of some pieces those that may be compressed so, by file.
fn squeezable<'a>(
    pieces: &[Piece],
    sent: Vec<usize>,
    ranked: &'a [RankedFile],
    strength: Strength,
) -> Vec<Squeezable<'a>> {
    let mut by_path: HashMap<&str, Vec<usize>> = HashMap::new();
    for at in sent.into_iter().filter(|at| pieces[*at].lines.is_some()) {
        by_path.entry(&pieces[at].path).or_default().push(at);
    }
    let how_much = |at: &usize| match &pieces[*at] {
        piece if piece.need <= Need::Named || piece.score >= KEPT => None,
        piece if strength == Strength::Strong && piece.score >= KEEPS_BODIES => Some(Strength::Medium),
        _ => Some(strength),
    };
    let of_file = |file: &'a RankedFile| {
        let of_file = by_path.remove(file.path.as_str())?;
        let lines = |at: &usize| pieces[*at].lines;
        let needed = of_file.iter().filter(|at| how_much(at) != Some(Strength::Strong)).filter_map(lines).collect();
        let parts = of_file.iter().filter_map(|at| Some((*at, (lines(at)?, how_much(at)?))));
        let (pieces, parts): (Vec<usize>, Vec<(LineRange, Strength)>) = parts.unzip();
        (!pieces.is_empty()).then_some(Squeezable { asked: ToShorten { file, parts, needed }, pieces })
    };
    bounded(ranked.iter().filter_map(of_file).collect(), &|at| tokens(&pieces[at]))
}

/// Of files those of which most can be compressed, in their order, as many as may be parsed.
fn bounded<'a>(files: Vec<Squeezable<'a>>, tokens: &dyn Fn(usize) -> usize) -> Vec<Squeezable<'a>> {
    let all = |one: &Squeezable<'_>| one.asked.file.told.tokens.iter().map(|tokens| *tokens as usize).sum::<usize>();
    let share =
        |one: &Squeezable<'_>| one.pieces.iter().map(|at| tokens(*at)).sum::<usize>() as f32 / all(one).max(1) as f32;
    let mut best: Vec<usize> = (0..files.len()).collect();
    best.sort_by(|a, b| share(&files[*b]).total_cmp(&share(&files[*a])).then(a.cmp(b)));
    let (mut left, mut is_in) = (MOST_PARSED, vec![false; files.len()]);
    for at in best {
        if let Some(rest) = left.checked_sub(all(&files[at])) {
            (left, is_in[at]) = (rest, true);
        }
    }
    files.into_iter().zip(is_in).filter_map(|(file, is_in)| is_in.then_some(file)).collect()
}

/// Compresses code and says whether anything became shorter; stays where it is once it is cancelled. Of what is left out with
/// all it says nothing stays: its title would say more than it.
fn squeeze(
    pieces: &mut Vec<Piece>,
    squeezable: Vec<Squeezable<'_>>,
    telling: &Telling<'_>,
    cancelled: &dyn Fn() -> bool,
) -> bool {
    let (asked, of_files): (Vec<ToShorten<'_>>, Vec<Vec<usize>>) =
        squeezable.into_iter().map(|one| (one.asked, one.pieces)).unzip();
    let (mut is_shorter, mut empty) = (false, vec![false; pieces.len()]);
    for (of_file, parts) in of_files.into_iter().zip(telling.shortened(&asked, cancelled)) {
        for (at, part) in of_file.into_iter().zip(parts) {
            let Some((text, tokens)) = part.filter(|(text, _)| **text != *pieces[at].text) else { continue };
            (is_shorter, empty[at]) = (true, !text.contains(char::is_alphanumeric));
            (pieces[at].text, pieces[at].tokens) = (text, Some(tokens));
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
    use crate::context::pack::{Because, Said, SectionKind, pack};
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

    #[rstest]
    #[case::all_of_a_section((1, 8), true)]
    #[case::a_part_of_one((3, 5), true)]
    #[case::a_part_of_it((5, 12), false)]
    #[case::elsewhere((20, 22), false)]
    fn a_piece_is_sent_with_the_section_that_has_all_of_it(#[case] (start, end): (u32, u32), #[case] expected: bool) {
        let piece = |path: &str, start, end| Piece {
            path: path.to_owned(),
            lines: Some(LineRange::new(start, end)),
            kind: SectionKind::Function,
            text: "x\n".to_owned().into(),
            tokens: None,
            need: Need::Worth,
            score: 0.5,
            worth: 0.5,
            first: 0.0,
            because: Arc::new(Because::default()),
        };
        let packed = pack(&[piece("a.rs", 1, 8)], 1_000, &str::len);
        let alone = Piece { lines: None, ..piece("a.rs", 1, 1) };
        let pieces = [piece("b.rs", start, end), piece("a.rs", start, end), alone];
        assert_eq!(sent(&pieces, &packed), if expected { vec![1] } else { vec![] });
    }

    #[test]
    fn files_of_which_most_is_sent_are_compressed_as_far_as_they_may_be_parsed() {
        let document = Arc::new(Document::read(TEXT, &mut Vocabulary::default()));
        let file = |path: &str, tokens: usize| {
            let told = Told { tokens: vec![tokens as u32], ..Told::default() };
            let (path, blob, factors) = (path.to_owned(), String::new(), FileFactors::default());
            let document = Arc::clone(&document);
            RankedFile { path, blob, told, document, probability: 0.5, factors, passages: Vec::new() }
        };
        let files = [file("large.rs", MOST_PARSED), file("a.rs", 1_000), file("b.rs", MOST_PARSED - 1_000)];
        let squeezable = files.iter().zip([0usize, 1, 2]).map(|(file, at)| Squeezable {
            asked: ToShorten { file, parts: Vec::new(), needed: Vec::new() },
            pieces: vec![at],
        });
        // Of each so many tokens are sent.
        let found = bounded(squeezable.collect(), &|at| [500, 500, 5_000][at]);
        assert_eq!(found.iter().map(|one| one.asked.file.path.as_str()).collect::<Vec<_>>(), ["a.rs", "b.rs"]);
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
        // The first function must be there as it is, the second may matter a little, the third hardly does.
        let sort = |line: u32| match line {
            1..=8 => (Need::Must, 1.0),
            9..=16 => (Need::Worth, 0.5),
            _ => (Need::Worth, 0.35),
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
            let squeezable = squeezable(&pieces, (0..pieces.len()).collect(), &ranked, *strength);
            let is_shorter = squeeze(&mut pieces, squeezable, &telling, &|| false);
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
        assert!(has("// Why.") && has("one();"), "{told}");
        assert!(!has("// How.") && has("five();"), "{told}");
        assert!(!has("eight();") && has("pub fn third"), "{told}");
    }
}
