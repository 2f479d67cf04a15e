//! What is sent, under an exact budget: what must be there first, then what is worth most for its tokens.
//!
//! Invariants: the sections together, as they are joined, are never more tokens than the budget; a piece is in whole or
//! not at all; no line of a file is in two sections; every piece that is not in is in `left_out` with the reason,
//! but where a budget is too small for anything.

mod merge;
mod said;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::compress::Strength;
use super::covered::Share;
use crate::domain::{LineRange, word_enum};

use merge::Taken;
pub use said::Said;

word_enum!(
    /// What a section is.
    SectionKind {
        Task = "task",
        Diff = "diff",
        /// The place that the task is about.
        Focus = "focus",
        /// What the project says about itself.
        Rules = "rules",
        Function = "function",
        Module = "module",
        Type = "type",
        Test = "test",
        Documentation = "documentation",
        Window = "window",
        /// The head of what did not fit.
        Summary = "summary",
        /// The folders of the tree.
        Overview = "overview",
    }
);

/// How much a piece is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The task, the diff, what the task names, and what is as good as certain; in the order they come.
    Must,
    /// Types that the change uses: they get a part of what is left, the best first.
    Type,
    /// By worth for its tokens.
    Worth,
    /// Where there is room left at the end.
    Filler,
}

/// Something that could be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Empty for what is of no file.
    pub path: String,
    /// Lines of the file, in whose text each has its line; without them the piece stands by itself.
    pub lines: Option<LineRange>,
    pub kind: SectionKind,
    pub text: Said,
    /// Of the text, when they are counted already.
    pub tokens: Option<u32>,
    pub need: Need,
    /// From 0 to 1.
    pub score: f32,
    /// What it is worth, on any scale.
    pub worth: f32,
    /// What it is worth besides when it is the first of its file.
    pub first: f32,
    pub because: Arc<Because>,
}

/// Why a piece has its score.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Because {
    /// The parts of the score, by signal.
    pub factors: Vec<(&'static str, f32)>,
    /// For people.
    pub reason: String,
}

/// Of what is left after the pieces that must be there, types may take so much, from 0 to 1.
const TYPES_PART: f32 = 0.1;

/// Why a piece is not in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Excluded {
    Budget,
    /// All of its lines are in another section; of a summary, its file is there itself.
    Contained,
}

impl Excluded {
    pub fn word(self) -> &'static str {
        match self {
            Self::Budget => "over the budget",
            Self::Contained => "in another section",
        }
    }
}

/// Text that is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    pub path: String,
    pub lines: Option<LineRange>,
    pub kind: SectionKind,
    /// As it is sent, its title included; ends with a line end.
    pub text: String,
    /// Of the text, exact.
    pub tokens: u32,
    pub score: f32,
    pub because: Arc<Because>,
    /// How many pieces it is made of.
    pub pieces: u32,
    /// What tests reached of it, where a report says so.
    pub coverage: Option<Share>,
}

/// A changed function that no test reaches, by a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untested {
    pub path: String,
    pub name: String,
    pub lines: LineRange,
}

/// A piece that is not in.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftAway {
    pub path: String,
    pub lines: Option<LineRange>,
    pub kind: SectionKind,
    pub tokens: u32,
    pub score: f32,
    pub reason: Excluded,
}

/// What is sent, and what is not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Packed {
    /// In the order in which they are sent.
    pub sections: Vec<Section>,
    pub left_out: Vec<LeftAway>,
    /// Of all sections joined, exact.
    pub total_tokens: u32,
    pub budget: u32,
    /// Pieces that are in.
    pub included: u32,
    /// How the code was compressed to have more of it.
    pub compression: Option<Strength>,
    pub untested: Vec<Untested>,
    /// What was done without, and why; a line each.
    pub notes: Vec<String>,
}

impl Packed {
    /// What is sent.
    pub fn text(&self) -> String {
        join(&self.sections)
    }

    /// From 0 to 1.
    pub fn utilization(&self) -> f32 {
        self.total_tokens as f32 / self.budget.max(1) as f32
    }
}

fn join(sections: &[Section]) -> String {
    sections.iter().map(|section| section.text.as_str()).collect()
}

/// An overview is worth having where so many tokens are left, a summary where so many are.
const OVERVIEW_ROOM: u32 = 1_000;
const SUMMARY_ROOM: u32 = 500;

/// How a token count is had.
pub type Count<'a> = &'a dyn Fn(&str) -> usize;

/// Takes pieces and makes sections of them, in at most `budget` tokens.
pub fn pack(pieces: &[Piece], budget: u32, count: Count<'_>) -> Packed {
    let prices = prices(pieces, count);
    let mut room = budget;
    // Prices are sums of parts; joined, parts are a few tokens more or less. What is sent is counted as a whole, and with
    // less room tried again when it is too much.
    loop {
        let (taken, excluded) = take(pieces, &prices, room);
        let mut sections = in_order(merge::sections(pieces, &taken));
        let mut total = count(&join(&sections)) as u32;
        if total > budget && room > 0 {
            room = room.saturating_sub((total - budget).max(room / 64).max(1));
            continue;
        }
        if total > budget {
            (sections, total) = (Vec::new(), 0);
        }
        for section in &mut sections {
            section.tokens = count(&section.text) as u32;
        }
        return Packed {
            included: if sections.is_empty() { 0 } else { taken.len() as u32 },
            sections,
            left_out: left_out(pieces, &prices, excluded),
            total_tokens: total,
            budget,
            compression: None,
            untested: Vec::new(),
            notes: Vec::new(),
        };
    }
}

fn left_out(pieces: &[Piece], prices: &[Price], excluded: Vec<(usize, Excluded)>) -> Vec<LeftAway> {
    let left = excluded.into_iter().map(|(at, reason)| LeftAway {
        path: pieces[at].path.clone(),
        lines: pieces[at].lines,
        kind: pieces[at].kind,
        tokens: prices[at].text,
        score: pieces[at].score,
        reason,
    });
    let mut left: Vec<LeftAway> = left.collect();
    left.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| (&a.path, a.lines).cmp(&(&b.path, b.lines))));
    left
}

/// What a piece costs, in tokens.
#[derive(Debug, Clone, Copy)]
struct Price {
    text: u32,
    /// Its title and its fences; pieces that touch pay it once.
    head: u32,
}

/// What each piece costs. Heads of a file whose line numbers are as long cost the same: an encoding cuts digits by threes.
fn prices<'a>(pieces: &'a [Piece], count: Count<'_>) -> Vec<Price> {
    let length = |line: u32| line.checked_ilog10().unwrap_or(0);
    let mut heads = HashMap::new();
    let price = |piece: &'a Piece| {
        let Piece { path, lines, kind, text, tokens, .. } = piece;
        let head = || count(&merge::frame(path, *lines, *kind, "")) as u32;
        let head = match lines {
            Some(lines) => {
                let shape = (path.as_str(), length(lines.start), length(lines.end), merge::is_fenced(*kind));
                *heads.entry(shape).or_insert_with(head)
            }
            None => head(),
        };
        Price { text: tokens.unwrap_or_else(|| count(text) as u32), head }
    };
    pieces.iter().map(price).collect()
}

impl Price {
    /// What it adds where it closes the gap between two sections.
    fn least(self) -> u32 {
        self.text.saturating_sub(self.head)
    }
}

/// The pieces to take, by number, and why the others are not.
fn take(pieces: &[Piece], prices: &[Price], room: u32) -> (Vec<usize>, Vec<(usize, Excluded)>) {
    let mut taken = Taken::new(room);
    let mut excluded = Vec::new();
    let of = |need: Need| (0..pieces.len()).filter(move |at| pieces[*at].need == need);
    let offer = |taken: &mut Taken, excluded: &mut Vec<(usize, Excluded)>, at: usize, room: u32| {
        if let Err(reason) = taken.try_take(at, &pieces[at], prices[at], room) {
            excluded.push((at, reason));
        }
    };
    for at in of(Need::Must) {
        offer(&mut taken, &mut excluded, at, room);
    }
    let for_types = taken.used() + ((room - taken.used()) as f32 * TYPES_PART) as u32;
    let mut types: Vec<usize> = of(Need::Type).collect();
    types.sort_by(|a, b| pieces[*b].score.total_cmp(&pieces[*a].score).then(a.cmp(b)));
    for at in types {
        offer(&mut taken, &mut excluded, at, for_types.min(room));
    }
    let rate = |at: usize, is_first: bool| {
        let piece = &pieces[at];
        let price = (prices[at].text + prices[at].head).max(1) as f32;
        let rate = (piece.worth + if is_first { piece.first } else { 0.0 }) / price;
        if rate.is_finite() { rate } else { 0.0 }
    };
    // No score is too low, measured: with a least one of 0.3, as it was once planned, half of the lines are lost, since
    // most of what is relevant is not likely to be, each by itself.
    let mut offers: BinaryHeap<Offer> =
        of(Need::Worth).map(|at| Offer { rate: rate(at, true), at, is_first: true }).collect();
    let mut sifted = room;
    while let Some(Offer { at, is_first, .. }) = offers.pop() {
        if is_first && taken.has(&pieces[at].path) {
            offers.push(Offer { rate: rate(at, false), at, is_first: false });
        } else {
            offer(&mut taken, &mut excluded, at, room);
        }
        // Most pieces never fit: they are taken out unsorted, each time that the room has halved.
        let left = room - taken.used();
        if left < sifted / 2 {
            sifted = left;
            offers.retain(|other| {
                let can_fit = prices[other.at].least() <= left;
                if !can_fit {
                    offer(&mut taken, &mut excluded, other.at, room);
                }
                can_fit
            });
        }
    }
    for at in of(Need::Filler) {
        let needed = match pieces[at].kind {
            SectionKind::Overview => OVERVIEW_ROOM,
            SectionKind::Summary => SUMMARY_ROOM,
            _ => 0,
        };
        if pieces[at].kind == SectionKind::Summary && taken.has(&pieces[at].path) {
            excluded.push((at, Excluded::Contained));
            continue;
        }
        let has_room = room - taken.used() >= needed;
        offer(&mut taken, &mut excluded, at, if has_room { room } else { 0 });
    }
    (taken.into_numbers(), excluded)
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
        self.rate.total_cmp(&other.rate).then(other.at.cmp(&self.at)).then(self.is_first.cmp(&other.is_first))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What must be there stays in front; of the other files the strongest comes first and the second strongest last, since
/// models overlook what stands in the middle, where fillers are.
fn in_order(sections: Vec<(Section, Need)>) -> Vec<Section> {
    let (must, mut others): (Vec<_>, Vec<_>) = sections.into_iter().partition(|(section, need)| {
        *need == Need::Must
            && matches!(section.kind, SectionKind::Task | SectionKind::Diff | SectionKind::Focus | SectionKind::Rules)
    });
    let is_filler = |kind| matches!(kind, SectionKind::Documentation | SectionKind::Overview | SectionKind::Summary);
    let fillers: Vec<_> = others.extract_if(.., |(section, _)| is_filler(section.kind)).collect();
    let best = best_of_files(&others);
    let strength = |section: &Section| best.get(section.path.as_str()).copied().unwrap_or(section.score);
    // Sections of a file stay together, by line; files by their best one.
    others.sort_by(|(a, _), (b, _)| {
        strength(b).total_cmp(&strength(a)).then_with(|| (&a.path, a.lines).cmp(&(&b.path, b.lines)))
    });
    let first = others.first().map(|(section, _)| section.path.clone());
    let second = others.iter().map(|(section, _)| &section.path).find(|path| Some(*path) != first.as_ref()).cloned();
    let last: Vec<_> = others.extract_if(.., |(section, _)| Some(&section.path) == second.as_ref()).collect();
    must.into_iter().chain(others).chain(fillers).chain(last).map(|(section, _)| section).collect()
}

fn best_of_files(sections: &[(Section, Need)]) -> HashMap<String, f32> {
    let mut best: HashMap<String, f32> = HashMap::new();
    for (section, _) in sections.iter().filter(|(section, _)| !section.path.is_empty()) {
        let known = best.entry(section.path.clone()).or_insert(section.score);
        *known = known.max(section.score);
    }
    best
}
