//! Selects the pieces to send.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::sections::SelectedPieces;
use super::{ContextPiece, ExclusionReason, Need, SectionKind, TokenPrice};

/// Divisor of the budget left after required pieces: mentioned pieces may use half of it.
const MENTIONED_BUDGET_DIVISOR: u32 = 2;
/// Divisor of the budget left after mentioned pieces: snippets may use a quarter of it.
const SNIPPET_BUDGET_DIVISOR: u32 = 4;
/// Share of the budget left after snippets that types may use, from 0 to 1.
const TYPES_BUDGET_SHARE: f32 = 0.1;
/// Minimum number of tokens left for an overview, and for a summary.
const MIN_OVERVIEW_ROOM: u32 = 1_000;
const MIN_SUMMARY_ROOM: u32 = 500;

/// Number of offers between two checks for cancellation: a few milliseconds of work.
const CANCEL_CHECK_INTERVAL: usize = 4_096;

/// Selects pieces within `room` tokens. Returns them with the reasons for all others. `None` after cancellation.
pub(super) fn select_pieces(
    pieces: &[ContextPiece],
    prices: &[TokenPrice],
    room: u32,
    cancelled: &dyn Fn() -> bool,
) -> Option<(SelectedPieces, Vec<(usize, ExclusionReason)>)> {
    let mut taker =
        PieceSelector { pieces, prices, room, for_named: 0, taken: SelectedPieces::new(room), excluded: Vec::new() };
    for at in taker.with_need(Need::Must) {
        taker.try_select(at, room);
    }
    taker.for_named = taker.remaining() / MENTIONED_BUDGET_DIVISOR;
    let mut beyond = taker.select_up_to(Need::Mentioned, taker.taken.used() + taker.for_named);
    let for_found = taker.taken.used() + taker.remaining() / SNIPPET_BUDGET_DIVISOR;
    beyond.extend(taker.select_up_to(Need::Snippet, for_found));
    let for_types = taker.taken.used() + (taker.remaining() as f32 * TYPES_BUDGET_SHARE) as u32;
    beyond.extend(taker.select_up_to(Need::Type, for_types.min(room)));
    beyond.extend(taker.with_need(Need::ByUtility));
    taker.select_by_utility(&beyond, cancelled)?;
    taker.select_fillers();
    taker.excluded.extend(taker.with_need(Need::Emptied).into_iter().map(|at| (at, ExclusionReason::Compressed)));
    let PieceSelector { taken, mut excluded, .. } = taker;
    for (at, reason) in &mut excluded {
        let piece = &pieces[*at];
        if piece.lines.is_some_and(|lines| taken.uncovered_span(&piece.path, lines).is_none()) {
            *reason = ExclusionReason::Contained;
        }
    }
    Some((taken, excluded))
}

struct PieceSelector<'a> {
    pieces: &'a [ContextPiece],
    prices: &'a [TokenPrice],
    room: u32,
    /// Limit for mentioned pieces, in tokens.
    for_named: u32,
    taken: SelectedPieces,
    excluded: Vec<(usize, ExclusionReason)>,
}

impl PieceSelector<'_> {
    fn remaining(&self) -> u32 {
        self.room - self.taken.used()
    }

    fn with_need(&self, need: Need) -> Vec<usize> {
        (0..self.pieces.len()).filter(|at| self.pieces[*at].need == need).collect()
    }

    /// Returns the indexes of pieces with a need, highest score first.
    fn sorted_by_score(&self, need: Need) -> Vec<usize> {
        let mut found = self.with_need(need);
        found.sort_by(|a, b| self.pieces[*b].score.total_cmp(&self.pieces[*a].score).then(a.cmp(b)));
        found
    }

    /// Selects pieces with a need, best first, while the total stays within `most` tokens. Returns those that do not
    /// fit.
    fn select_up_to(&mut self, need: Need, most: u32) -> Vec<usize> {
        let mut beyond = Vec::new();
        for at in self.sorted_by_score(need) {
            match self.taken.try_add(at, &self.pieces[at], self.prices[at], most) {
                Err(ExclusionReason::Contained) => self.excluded.push((at, ExclusionReason::Contained)),
                Err(_) => beyond.push(at),
                Ok(()) => {}
            }
        }
        beyond
    }

    /// Selects a piece if the total stays within `most` tokens, else records why not. Returns true if it was selected.
    fn try_select(&mut self, at: usize, most: u32) -> bool {
        let (piece, price) = (&self.pieces[at], self.prices[at]);
        let taken = self.taken.try_add(at, piece, price, most);
        if let Err(reason) = taken {
            // A piece that is too large alone was not excluded because of other mentioned pieces.
            let has_place = piece.need == Need::Mentioned && price.text + price.head <= self.for_named;
            let is_named = has_place && reason == ExclusionReason::Budget;
            self.excluded.push((at, if is_named { ExclusionReason::Named } else { reason }));
        }
        taken.is_ok()
    }

    /// Returns the utility per token of a piece.
    fn utility_per_token(&self, at: usize, is_first: bool) -> f32 {
        let (piece, price) = (&self.pieces[at], self.prices[at]);
        let worth = piece.utility + if is_first { piece.first_bonus } else { 0.0 };
        let rate = worth / (price.text + price.head).max(1) as f32;
        if rate.is_finite() { rate } else { 0.0 }
    }

    /// Selects pieces by utility per token. `None` after cancellation.
    fn select_by_utility(&mut self, offered: &[usize], cancelled: &dyn Fn() -> bool) -> Option<()> {
        let offer = |at: &usize| RatedPiece { rate: self.utility_per_token(*at, true), at: *at, is_first: true };
        let mut offers: BinaryHeap<RatedPiece> = offered.iter().map(offer).collect();
        let mut sifted = self.room;
        for look in 0.. {
            if look % CANCEL_CHECK_INTERVAL == 0 && cancelled() {
                return None;
            }
            let Some(RatedPiece { at, is_first, .. }) = offers.pop() else { break };
            match is_first && self.taken.has_file(&self.pieces[at].path) {
                true => offers.push(RatedPiece { rate: self.utility_per_token(at, false), at, is_first: false }),
                false => drop(self.try_select(at, self.room)),
            }
            // Most pieces never fit. They are removed unsorted each time the room has halved.
            let left = self.remaining();
            if left < sifted / 2 {
                sifted = left;
                offers.retain(|other| {
                    let can_fit = self.prices[other.at].min_tokens() <= left;
                    if !can_fit {
                        self.try_select(other.at, self.room);
                    }
                    can_fit
                });
            }
        }
        Some(())
    }

    /// Selects fillers if enough room is left.
    fn select_fillers(&mut self) {
        for at in self.with_need(Need::Filler) {
            let needed = match self.pieces[at].kind {
                SectionKind::Overview => MIN_OVERVIEW_ROOM,
                SectionKind::Summary => MIN_SUMMARY_ROOM,
                _ => 0,
            };
            let stands_for = self.pieces[at].stands_for;
            if stands_for.is_some_and(|lines| self.taken.uncovered_span(&self.pieces[at].path, lines).is_none()) {
                self.excluded.push((at, ExclusionReason::Contained));
                continue;
            }
            let has_room = self.remaining() >= needed;
            self.try_select(at, if has_room { self.room } else { 0 });
        }
    }
}

/// Piece that may be selected next.
#[derive(PartialEq)]
struct RatedPiece {
    /// Utility per token.
    rate: f32,
    at: usize,
    /// True if the rate includes the bonus for the first piece of a file.
    is_first: bool,
}

impl Eq for RatedPiece {}

impl Ord for RatedPiece {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rate.total_cmp(&other.rate).then((other.at, other.is_first).cmp(&(self.at, self.is_first)))
    }
}

impl PartialOrd for RatedPiece {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
