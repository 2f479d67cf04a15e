//! Which pieces are taken.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::merge::Taken;
use super::{Excluded, Need, Piece, Price, SectionKind};

/// Of what is left after the pieces that must be there, what the task names may take the half.
const NAMED_PART: u32 = 2;
/// Of what is left then, what is found just in time may take a quarter.
const FOUND_PART: u32 = 4;
/// Of what is left then, types may take so much, from 0 to 1.
const TYPES_PART: f32 = 0.1;
/// An overview is worth having where so many tokens are left, a summary where so many are.
const OVERVIEW_ROOM: u32 = 1_000;
const SUMMARY_ROOM: u32 = 500;

/// Whether anybody still waits is looked at each time that so many offers were looked at: a few milliseconds' work.
const LOOK: usize = 4_096;

/// What is taken, and of the pieces that are not why; `None` once it is cancelled.
pub(super) fn take(
    pieces: &[Piece],
    prices: &[Price],
    room: u32,
    cancelled: &dyn Fn() -> bool,
) -> Option<(Taken, Vec<(usize, Excluded)>)> {
    let mut taker = Taker { pieces, prices, room, for_named: 0, taken: Taken::new(room), excluded: Vec::new() };
    for at in taker.of(Need::Must) {
        taker.offer(at, room);
    }
    taker.for_named = taker.left() / NAMED_PART;
    let mut beyond = taker.take_below(Need::Named, taker.taken.used() + taker.for_named);
    let for_found = taker.taken.used() + taker.left() / FOUND_PART;
    beyond.extend(taker.take_below(Need::Found, for_found));
    let for_types = taker.taken.used() + (taker.left() as f32 * TYPES_PART) as u32;
    beyond.extend(taker.take_below(Need::Type, for_types.min(room)));
    beyond.extend(taker.of(Need::Worth));
    taker.by_worth(&beyond, cancelled)?;
    taker.fill();
    taker.excluded.extend(taker.of(Need::Nothing).into_iter().map(|at| (at, Excluded::Compressed)));
    let Taker { taken, mut excluded, .. } = taker;
    for (at, reason) in &mut excluded {
        let piece = &pieces[*at];
        if piece.lines.is_some_and(|lines| taken.missing(&piece.path, lines).is_none()) {
            *reason = Excluded::Contained;
        }
    }
    Some((taken, excluded))
}

struct Taker<'a> {
    pieces: &'a [Piece],
    prices: &'a [Price],
    room: u32,
    /// What the task names may take.
    for_named: u32,
    taken: Taken,
    excluded: Vec<(usize, Excluded)>,
}

impl Taker<'_> {
    fn left(&self) -> u32 {
        self.room - self.taken.used()
    }

    fn of(&self, need: Need) -> Vec<usize> {
        (0..self.pieces.len()).filter(|at| self.pieces[*at].need == need).collect()
    }

    /// The best first.
    fn by_score(&self, need: Need) -> Vec<usize> {
        let mut found = self.of(need);
        found.sort_by(|a, b| self.pieces[*b].score.total_cmp(&self.pieces[*a].score).then(a.cmp(b)));
        found
    }

    /// Takes what is needed so, the best first, up to `most`; returns what is beyond that.
    fn take_below(&mut self, need: Need, most: u32) -> Vec<usize> {
        let mut beyond = Vec::new();
        for at in self.by_score(need) {
            match self.taken.try_take(at, &self.pieces[at], self.prices[at], most) {
                Err(Excluded::Contained) => self.excluded.push((at, Excluded::Contained)),
                Err(_) => beyond.push(at),
                Ok(()) => {}
            }
        }
        beyond
    }

    /// Takes a piece where there is room for it below `most`.
    fn offer(&mut self, at: usize, most: u32) -> bool {
        let (piece, price) = (&self.pieces[at], self.prices[at]);
        let taken = self.taken.try_take(at, piece, price, most);
        if let Err(reason) = taken {
            // Of what is too much by itself nothing else that is named is in the way.
            let has_place = piece.need == Need::Named && price.text + price.head <= self.for_named;
            let is_named = has_place && reason == Excluded::Budget;
            self.excluded.push((at, if is_named { Excluded::Named } else { reason }));
        }
        taken.is_ok()
    }

    /// The worth of a piece by token.
    fn rate(&self, at: usize, is_first: bool) -> f32 {
        let (piece, price) = (&self.pieces[at], self.prices[at]);
        let worth = piece.worth + if is_first { piece.first } else { 0.0 };
        let rate = worth / (price.text + price.head).max(1) as f32;
        if rate.is_finite() { rate } else { 0.0 }
    }

    /// Takes pieces by what they are worth for their tokens. `None` once it is cancelled.
    fn by_worth(&mut self, offered: &[usize], cancelled: &dyn Fn() -> bool) -> Option<()> {
        let offer = |at: &usize| Offer { rate: self.rate(*at, true), at: *at, is_first: true };
        let mut offers: BinaryHeap<Offer> = offered.iter().map(offer).collect();
        let mut sifted = self.room;
        for look in 0.. {
            if look % LOOK == 0 && cancelled() {
                return None;
            }
            let Some(Offer { at, is_first, .. }) = offers.pop() else { break };
            match is_first && self.taken.has(&self.pieces[at].path) {
                true => offers.push(Offer { rate: self.rate(at, false), at, is_first: false }),
                false => drop(self.offer(at, self.room)),
            }
            // Most pieces never fit: they are taken out unsorted, each time that the room has halved.
            let left = self.left();
            if left < sifted / 2 {
                sifted = left;
                offers.retain(|other| {
                    let can_fit = self.prices[other.at].least() <= left;
                    if !can_fit {
                        self.offer(other.at, self.room);
                    }
                    can_fit
                });
            }
        }
        Some(())
    }

    /// Takes what is worth having where room is left.
    fn fill(&mut self) {
        for at in self.of(Need::Filler) {
            let needed = match self.pieces[at].kind {
                SectionKind::Overview => OVERVIEW_ROOM,
                SectionKind::Summary => SUMMARY_ROOM,
                _ => 0,
            };
            let stands_for = self.pieces[at].stands_for;
            if stands_for.is_some_and(|lines| self.taken.missing(&self.pieces[at].path, lines).is_none()) {
                self.excluded.push((at, Excluded::Contained));
                continue;
            }
            let has_room = self.left() >= needed;
            self.offer(at, if has_room { self.room } else { 0 });
        }
    }
}

/// A piece that may be taken next.
#[derive(PartialEq)]
struct Offer {
    /// Worth by token.
    rate: f32,
    at: usize,
    /// It was rated as the first of its file.
    is_first: bool,
}

impl Eq for Offer {}

impl Ord for Offer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rate.total_cmp(&other.rate).then((other.at, other.is_first).cmp(&(self.at, self.is_first)))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
