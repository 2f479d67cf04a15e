//! Builds the pages of a pattern, of a language, and of an empty knowledge view.

use std::borrow::Cow;

use super::{CONTEXT, KnowledgeView, LanguagePatterns, LearningMode, PatternLibrary, RankedPattern};
use crate::domain::{Kind, Time, text};
use crate::knowledge::descriptions;
use crate::knowledge::form::Form;
use crate::knowledge::pattern::{EditKind, MonthlyOutcomes, Pattern, PatternEvidence, PatternOrigin, PatternStance};
use crate::knowledge::rank::{Inclusion, PatternState};
use crate::knowledge::totals::KnowledgeTotals;
use crate::report::figures::{format_percent, format_thousands, render_sparkline};
use crate::tui::app::App;
use crate::tui::doc::TextColumns;
use crate::tui::doc::{Doc, DocLine, DocSpan};
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::pages::{NAMES, format_kind};
use crate::tui::theme::Role;

/// Greatest width of the success bar in columns.
const MAX_BAR_COLUMNS: usize = 40;
/// Greatest number of months in the bars, equal to the number of stored months.
const MAX_MONTHS: i32 = 24;

/// Builds the page, `width` columns wide.
pub(super) fn build_knowledge_page(app: &App, view: &KnowledgeView, width: usize) -> Doc {
    let mut doc = Doc::default();
    let Some(library) = &view.library else {
        doc.push(DocLine::styled(Role::Faint, "reading"));
        return doc;
    };
    match (view.selected_row(), view.selected_pattern()) {
        (_, Some((_, known))) => PatternPage { app, library, known, width }.render(&mut doc),
        (Some(row), None) => {
            if let Some(shelf) = view.language_patterns(row) {
                render_language(app, shelf, width, &mut doc);
            }
        }
        (None, None) if view.is_empty() => render_empty(library, width, &mut doc),
        (None, None) => {
            doc.push(DocLine::styled(Role::Strong, "No pattern passes the filter"));
            doc.push_blank();
            doc.push_paragraph(Role::Muted, &format!("{} takes it back.", key_label(app, Action::Back)), width);
        }
    }
    doc
}

fn key_label(app: &App, action: Action) -> String {
    app.keymap.key_text(KeyContext::View(&CONTEXT), action)
}

/// Returns the words for the stance of a pattern.
pub(super) fn name_stance(stance: PatternStance) -> &'static str {
    match stance {
        PatternStance::Mistake => "mistake",
        PatternStance::FalseAlarm => "known false alarm",
    }
}

/// Explains what knowledge is and how it grows.
fn render_empty(library: &PatternLibrary, width: usize, doc: &mut Doc) {
    let width = width.min(92);
    doc.push(DocLine::styled(Role::Strong, "Nothing is known yet"));
    doc.push_blank();
    doc.push_paragraph(
        Role::Normal,
        "Knowledge is what reviews have taught: abstract patterns of mistakes and of false alarms. Keywords, operators \
         and names of the standard library stay in them; names, texts, numbers and comments of your code never get in.",
        width,
    );
    doc.push_blank();
    if library.learning == LearningMode::Off {
        render_learning_off(width, doc);
        doc.push_blank();
    }
    doc.push_paragraph(Role::Normal, "It grows by itself:", width);
    for way in [
        "a finding is gone in a later review, and the edit that did it is why",
        "you put a suggestion or a fix into the files",
        "you dismiss a finding with a reason",
    ] {
        doc.push_field("  -", 4, Role::Normal, way, width);
    }
    doc.push_blank();
    doc.push_paragraph(Role::Normal, "Or at once:", width);
    const WAYS: [(&str, &str); 2] = [
        ("revdeck knowledge learn --history 500", "from commits that say they fix something"),
        ("revdeck knowledge import FILE", "from what others exported"),
    ];
    let widest = |texts: [&str; 2]| texts.iter().map(|text| text.width()).max().unwrap_or(0);
    let commands = widest(WAYS.map(|(command, _)| command)) + 3;
    let beside = 2 + commands + widest(WAYS.map(|(_, what)| what)) <= width;
    for (command, what) in WAYS {
        if beside {
            doc.push(DocLine::styled(Role::Accent, &format!("  {command:<commands$}")).with_span(Role::Muted, what));
        } else {
            doc.push_field("", 2, Role::Accent, command, width);
            doc.push_field("", 4, Role::Muted, what, width);
        }
    }
}

fn render_learning_off(width: usize, doc: &mut Doc) {
    doc.push_paragraph(
        Role::Warn,
        "Learning is switched off, by learning.enabled = false or --no-learning: what is known is used, and nothing new \
         is learned.",
        width,
    );
}

/// Renders the figures of a language's patterns.
fn render_language(app: &App, shelf: &LanguagePatterns, width: usize, doc: &mut Doc) {
    let mut figures = KnowledgeTotals::default();
    for known in &shelf.patterns {
        figures.add(&known.pattern, &known.standing);
    }
    doc.push(
        DocLine::styled(Role::Strong, shelf.language.name())
            .with_span(Role::Muted, &format!("   {}", text::format_count(figures.patterns, "pattern"))),
    );
    doc.push_blank();
    let dot = format!(" {} ", app.display.glyphs.dot);
    let stances = [(figures.mistakes, "mistake"), (figures.false_alarms, "false alarm")];
    let told = stances.iter().filter(|(n, _)| *n > 0).map(|(n, what)| text::format_count(*n, what));
    doc.push_field("holds", NAMES, Role::Normal, &told.collect::<Vec<_>>().join(&dot), width);
    let mut field = |name: &str, facts: [(usize, &str); 3]| {
        let facts: Vec<String> = facts
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{} {what}", format_thousands(*n as u64)))
            .collect();
        if !facts.is_empty() {
            doc.push_field(name, NAMES, Role::Normal, &facts.join(&dot), width);
        }
    };
    let states = [
        (figures.used, PatternState::Used),
        (figures.watched, PatternState::Watched),
        (figures.muted, PatternState::Muted),
    ];
    field("state", states.map(|(n, state)| (n, state.label())));
    field(
        "origin",
        [(figures.learned, "learned here"), (figures.base, "came with revdeck"), (figures.imported, "imported")],
    );
    let lowered: Vec<String> = shelf
        .lowered
        .iter()
        .map(|(kind, times)| format!("{} ({})", format_kind(kind.word()), text::format_count(*times as usize, "time")))
        .collect();
    if !lowered.is_empty() {
        let told = format!("always dismissed: {}", lowered.join(&dot));
        doc.push_field("lowered", NAMES, Role::Normal, &told, width);
    }
    if let (share @ Some(_), at_least) = figures.rates() {
        let rate = SuccessRate { successes: figures.successes, failures: figures.failures, share, at_least };
        render_rate(app, &rate, width, doc);
    }
    let mut months = std::collections::BTreeMap::<String, MonthlyOutcomes>::new();
    for (month, counted) in shelf.patterns.iter().flat_map(|known| &known.pattern.months) {
        let sum = months.entry(month.clone()).or_default();
        sum.successes = sum.successes.saturating_add(counted.successes);
        sum.failures = sum.failures.saturating_add(counted.failures);
    }
    render_months(app, &months, width, doc);
}

/// Page of one pattern.
struct PatternPage<'a> {
    app: &'a App,
    library: &'a PatternLibrary,
    known: &'a RankedPattern,
    width: usize,
}

impl PatternPage<'_> {
    fn render(&self, doc: &mut Doc) {
        self.render_heading(doc);
        doc.push_blank();
        render_forms(self.app, &self.known.pattern, self.width, doc);
        if !self.known.pattern.instruction.is_empty() {
            doc.push_blank();
            self.push_field("what to do", &self.known.pattern.instruction, doc);
        }
        self.render_outcomes(doc);
        self.render_dates(doc);
        self.render_origin(doc);
        self.render_relations(doc);
        if self.library.learning == LearningMode::Off {
            doc.push_blank();
            render_learning_off(self.width, doc);
        }
    }

    fn push_field(&self, name: &str, value: &str, doc: &mut Doc) {
        doc.push_field(name, NAMES, Role::Normal, value, self.width);
    }

    /// Returns the sign between two facts.
    fn dot(&self) -> String {
        format!(" {} ", self.app.display.glyphs.dot)
    }

    /// Renders stance, kind, language and state, then the headline.
    fn render_heading(&self, doc: &mut Doc) {
        let pattern = &self.known.pattern;
        let state = self.known.standing.state(pattern);
        let (sign, role) = (self.app.display.glyphs.stance(pattern.stance), Role::from_stance(pattern.stance));
        let stance = name_stance(pattern.stance);
        let facts = [format_kind(pattern.kind.word()), pattern.language.clone()].join(&self.dot());
        doc.push(
            DocLine::styled(role, &format!("{}{stance}", self.app.display.glyphs.sign_before_word(sign)))
                .with_span(Role::Faint, "   ")
                .with_span(Role::Muted, &facts)
                .with_tail(role_of_state(state), state.label()),
        );
        doc.push_blank();
        for line in crate::tui::doc::wrap_words(&text::sanitize_line(&build_headline(pattern)), self.width) {
            doc.push(DocLine::styled(Role::Strong, &line));
        }
    }

    /// Renders how often the pattern was seen, what came of it, and the confidence that follows.
    fn render_outcomes(&self, doc: &mut Doc) {
        let (pattern, standing) = (&self.known.pattern, &self.known.standing);
        let count = pattern.total_count();
        doc.push_heading("How it does", "");
        self.push_field("seen", &descriptions::describe_sightings(pattern), doc);
        let rate = SuccessRate {
            successes: count.successes.into(),
            failures: count.failures.into(),
            share: standing.success_rate,
            at_least: standing.at_least,
        };
        render_rate(self.app, &rate, self.width, doc);
        render_months(self.app, &pattern.months, self.width, doc);
        let confidence = format!("{:.2}{}{}", standing.confidence, self.dot(), describe_inclusion(self.known));
        self.push_field("confidence", &confidence, doc);
    }

    fn format_moment(&self, moment: Time) -> String {
        match moment == Time::UNIX_EPOCH {
            true => "not yet".to_owned(),
            false => self.app.format_date_time(moment),
        }
    }

    /// Renders when the pattern was seen, and when and where it matched last.
    fn render_dates(&self, doc: &mut Doc) {
        let pattern = &self.known.pattern;
        doc.push_heading("When", "");
        self.push_field("first seen", &self.format_moment(pattern.first_seen), doc);
        self.push_field("last seen", &self.format_moment(pattern.last_seen), doc);
        let place = self.library.locations.get(&pattern.id);
        let matched = pattern.last_matched.max(place.map(|place| place.at));
        let last_match = matched.map_or("not yet".to_owned(), |moment| self.format_moment(moment));
        self.push_field("last match", &last_match, doc);
        if let Some(place) = place {
            // The newest match may have been in another repository.
            let older = Some(place.at) < matched;
            let before = if older { format!(", {}", self.format_moment(place.at)) } else { String::new() };
            let found = format!("{}:{}{before}", place.path, place.line);
            doc.push_field("found at", NAMES, Role::Accent, &found, self.width);
        }
    }

    /// Renders how the pattern came to be known, and the evidence for it.
    fn render_origin(&self, doc: &mut Doc) {
        let pattern = &self.known.pattern;
        doc.push_heading("Where it comes from", pattern.id.as_str());
        let origin = match pattern.origin {
            PatternOrigin::Learned => "learned on this machine",
            PatternOrigin::Base => "came with revdeck",
            PatternOrigin::Imported => "imported from what somebody exported",
        };
        self.push_field("origin", origin, doc);
        let evidence = match pattern.evidence {
            PatternEvidence::Addressed => "a later review confirmed that the finding is gone",
            PatternEvidence::Applied => "a suggestion or a fix was put into the files",
            PatternEvidence::Dismissed => "the finding was dismissed with a reason",
            PatternEvidence::History => "a commit that says it fixes something",
            PatternEvidence::Curated => "curated",
        };
        self.push_field("evidence", evidence, doc);
    }

    /// Renders the related kinds, and the pattern that stands for this one or the number that this one stands for.
    fn render_relations(&self, doc: &mut Doc) {
        let pattern = &self.known.pattern;
        if !pattern.related.is_empty() {
            let kinds: Vec<String> = pattern.related.iter().map(|kind: &Kind| format_kind(kind.word())).collect();
            self.push_field("related", &kinds.join(&self.dot()), doc);
        }
        match &pattern.group {
            Some(leader) => {
                let of = self.library.pattern(leader).map(|known| known.pattern.description.as_str());
                self.push_field("similar to", of.unwrap_or(leader.as_str()), doc);
            }
            None if self.known.similar > 0 => {
                self.push_field("stands for", &text::format_count(self.known.similar, "similar pattern"), doc);
            }
            None => {}
        }
    }
}

/// Returns the description, or a shorter text if the description only repeats the forms, which are shown below.
fn build_headline(pattern: &Pattern) -> Cow<'_, str> {
    let made = pattern.parse_forms().map(|(broken, fixed)| {
        descriptions::build_description(pattern.stance, pattern.edit, pattern.kind, &broken, &fixed)
    });
    if made.as_ref() != Some(&pattern.description) {
        return Cow::Borrowed(&pattern.description);
    }
    match (pattern.stance, pattern.edit) {
        (PatternStance::FalseAlarm, _) => {
            format!("reported as {} and dismissed", format_kind(pattern.kind.word())).into()
        }
        (PatternStance::Mistake, EditKind::Other) => "corrected".into(),
        (PatternStance::Mistake, edit) => format_kind(edit.word()).into(),
    }
}

fn role_of_state(state: PatternState) -> Role {
    match state {
        PatternState::Muted => Role::Warn,
        PatternState::Used => Role::Good,
        PatternState::Watched => Role::Accent,
        PatternState::NotUsed => Role::Muted,
    }
}

fn describe_inclusion(known: &RankedPattern) -> &'static str {
    match known.standing.inclusion {
        _ if known.pattern.muted => "muted: not used",
        Inclusion::Now => "used from 0.85 on",
        Inclusion::AfterThree if known.pattern.evidence == PatternEvidence::Curated => "used from 0.65 on: curated",
        Inclusion::AfterThree => "used from 0.65 on after three times",
        Inclusion::Watched if known.pattern.evidence == PatternEvidence::Curated => {
            "watched; used from 0.65 on: curated"
        }
        Inclusion::Watched => "watched; used from 0.85, or 0.65 after three times",
        Inclusion::No => "not used below 0.45",
    }
}

/// Outcomes of patterns and the rate that follows from them.
struct SuccessRate {
    successes: u64,
    failures: u64,
    /// Share of the successes, 0 to 1; `None` without an outcome.
    share: Option<f64>,
    /// Lower bound of the share.
    at_least: Option<f64>,
}

/// Renders a success rate as a bar (lower bound, rate, rest), then the number of outcomes.
fn render_rate(app: &App, rate: &SuccessRate, width: usize, doc: &mut Doc) {
    let SuccessRate { successes, failures, share, at_least } = *rate;
    if successes + failures == 0 {
        return doc.push_field("success", NAMES, Role::Muted, "nothing came of it yet", width);
    }
    let dot = format!(" {} ", app.display.glyphs.dot);
    let told = format!("{}, at least {}", format_percent(share), format_percent(at_least));
    let room = width.saturating_sub(NAMES + 2 + told.width()).min(MAX_BAR_COLUMNS);
    if room >= 8 {
        let line = DocLine::styled(Role::Muted, &format!("{:<NAMES$}", "success"));
        doc.push(build_bar(line, app, rate, room).with_span(Role::Normal, &format!("  {told}")));
    } else {
        doc.push_field("success", NAMES, Role::Normal, &told, width);
    }
    let outcomes =
        [format!("{} succeeded", format_thousands(successes)), format!("{} failed", format_thousands(failures))];
    doc.push_field("", NAMES, Role::Muted, &outcomes.join(&dot), width);
}

/// Builds a bar of `cells` columns: lower bound, rate, rest.
fn build_bar(line: DocLine, app: &App, rate: &SuccessRate, cells: usize) -> DocLine {
    let of = |share: Option<f64>| (share.unwrap_or(0.0).clamp(0.0, 1.0) * cells as f64).round() as usize;
    let (certain, likely) = (of(rate.at_least), of(rate.share).max(of(rate.at_least)));
    line.with_span(Role::Filled, &app.display.glyphs.filled.repeat(certain))
        .with_span(Role::Muted, &app.display.glyphs.filled.repeat(likely - certain))
        .with_span(Role::Empty, &app.display.glyphs.empty.repeat(cells - likely))
}

/// Renders the success rate by month; a month without outcomes is a gap.
fn render_months(app: &App, months: &std::collections::BTreeMap<String, MonthlyOutcomes>, width: usize, doc: &mut Doc) {
    let counted: Vec<(i32, &MonthlyOutcomes)> =
        months.iter().filter_map(|(name, month)| Some((parse_month(name)?, month))).collect();
    let (Some(first), Some(last)) = (counted.iter().map(|(n, _)| *n).min(), counted.iter().map(|(n, _)| *n).max())
    else {
        return;
    };
    let first = first.max(last - MAX_MONTHS + 1);
    let mut values = vec![None; (last - first + 1) as usize];
    for (n, month) in counted.iter().filter(|(n, _)| *n >= first) {
        let outcomes = f64::from(month.successes) + f64::from(month.failures);
        if outcomes > 0.0 {
            values[(n - first) as usize] = Some(f64::from(month.successes) / outcomes);
        }
    }
    let name = |n: i32| format!("{}-{:02}", n.div_euclid(12), n.rem_euclid(12) + 1);
    let span =
        if first == last { name(first) } else { format!("{} {} {}", name(first), app.display.glyphs.dash, name(last)) };
    let room = width.saturating_sub(NAMES + 2 + span.width()).max(values.len());
    let line = render_sparkline(&values, Some(1.0), room.min(MAX_BAR_COLUMNS), &app.display.glyphs.eighths);
    doc.push(
        DocLine::styled(Role::Muted, &format!("{:<NAMES$}", "over time"))
            .with_span(Role::Accent, &line)
            .with_span(Role::Faint, &format!("  {span}")),
    );
}

/// Parses a month such as `2026-11` into a month number counted from year 0; `None` if the text is not a month.
fn parse_month(name: &str) -> Option<i32> {
    let (year, month) = name.split_once('-')?;
    let (year, month): (i32, i32) = (year.parse().ok()?, month.parse().ok()?);
    ((1970..10_000).contains(&year) && (1..=12).contains(&month)).then_some(year * 12 + month - 1)
}

/// Renders the broken and the fixed form as a small diff and highlights the tokens that differ.
fn render_forms(app: &App, pattern: &Pattern, width: usize, doc: &mut Doc) {
    let [broken, fixed] = [&pattern.broken, &pattern.fixed].map(|form| parse_tokens(form));
    if pattern.stance == PatternStance::FalseAlarm {
        return render_form(app.display.glyphs.bar, Role::Muted, None, &mark_all_same(&broken), width, doc);
    }
    let (before, after) = mark_differences(&broken, &fixed);
    render_form("-", Role::Removed, Some(Role::Removed), &before, width, doc);
    render_form("+", Role::Added, Some(Role::Added), &after, width, doc);
}

fn parse_tokens(form: &str) -> Vec<String> {
    match form.parse::<Form>() {
        Ok(form) => form.tokens().iter().map(|token| text::sanitize_line(&token.to_string()).into_owned()).collect(),
        // An invalid form is shown as plain words, so that the user sees the content.
        Err(_) => text::sanitize_line(form).split_whitespace().map(str::to_owned).collect(),
    }
}

/// Token and its mark: changed if the other side lacks it.
type MarkedToken<'a> = (&'a str, TokenMark);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenMark {
    Same,
    Changed,
}

fn mark_all_same(tokens: &[String]) -> Vec<MarkedToken<'_>> {
    tokens.iter().map(|token| (token.as_str(), TokenMark::Same)).collect()
}

/// Marks the tokens of both sides that are not in a longest common subsequence.
fn mark_differences<'a>(before: &'a [String], after: &'a [String]) -> (Vec<MarkedToken<'a>>, Vec<MarkedToken<'a>>) {
    let (rows, columns) = (before.len(), after.len());
    // Length of the common subsequence of the rests from `i` and `j`; a form has at most 64 tokens.
    let mut common = vec![vec![0_u16; columns + 1]; rows + 1];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            common[i][j] = match before[i] == after[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut old, mut new) = (Vec::with_capacity(rows), Vec::with_capacity(columns));
    let (mut i, mut j) = (0, 0);
    while i < rows || j < columns {
        if i < rows && j < columns && before[i] == after[j] {
            old.push((before[i].as_str(), TokenMark::Same));
            new.push((after[j].as_str(), TokenMark::Same));
            (i, j) = (i + 1, j + 1);
        } else if j == columns || (i < rows && common[i + 1][j] >= common[i][j + 1]) {
            old.push((before[i].as_str(), TokenMark::Changed));
            i += 1;
        } else {
            new.push((after[j].as_str(), TokenMark::Changed));
            j += 1;
        }
    }
    (old, new)
}

/// Renders one side, wrapped between tokens; changed tokens have the colour of the side.
fn render_form(sign: &str, role: Role, fill: Option<Role>, tokens: &[MarkedToken<'_>], width: usize, doc: &mut Doc) {
    if tokens.is_empty() {
        return;
    }
    let start = |sign: &str| DocLine { fill, ..DocLine::styled(role, sign).with_span(Role::Normal, " ") };
    let (mut line, mut used) = (start(sign), 2);
    for (token, state) in tokens {
        let size = token.width();
        if used > 2 && used + 1 + size > width {
            doc.push(std::mem::replace(&mut line, start(" ")));
            used = 2;
        }
        let role = if *state == TokenMark::Changed { role } else { Role::Normal };
        if used > 2 {
            // A blank between two changed tokens has their colour.
            let between = line.spans.last().filter(|last| last.role == role).map_or(Role::Normal, |_| role);
            line.spans.push(DocSpan { role: between, text: " ".to_owned() });
            used += 1;
        }
        line = line.with_span(role, token);
        used += size;
    }
    doc.push(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tokens_that_differ_are_marked() {
        for (before, after, expected) in [
            ("VARIABLE == None", "VARIABLE is None", ("==", "is")),
            ("a ( b )", "a ( b , c )", ("", ", c")),
            ("", "return x", ("", "return x")),
            ("x y", "", ("x y", "")),
            ("a b c", "a b c", ("", "")),
        ] {
            let (before, after) = (parse_tokens(before), parse_tokens(after));
            let (old, new) = mark_differences(&before, &after);
            let marked = |side: &[MarkedToken<'_>]| {
                let marked = side.iter().filter(|(_, state)| *state == TokenMark::Changed).map(|(token, _)| *token);
                marked.collect::<Vec<_>>().join(" ")
            };
            assert_eq!((marked(&old), marked(&new)), (expected.0.to_owned(), expected.1.to_owned()));
            assert_eq!((old.len(), new.len()), (before.len(), after.len()), "no token is lost");
        }
    }

    #[test]
    fn a_form_is_broken_between_tokens_only() {
        let long = ["VARIABLE", ".", "FUNCTION_NAME", "(", "VARIABLE_2", ")", "==", "NUMBER"].map(str::to_owned);
        for width in 18..60 {
            let mut doc = Doc::default();
            render_form("-", Role::Removed, Some(Role::Removed), &mark_all_same(&long), width, &mut doc);
            let lines: Vec<String> = doc.lines.iter().map(DocLine::plain_text).collect();
            assert!(lines.iter().all(|line| line.width() <= width), "{lines:?} at {width}");
            let words: Vec<&str> = lines.iter().flat_map(|line| line[2..].split(' ')).collect();
            assert_eq!(words, long, "at {width}");
        }
    }

    #[test]
    fn what_is_no_month_has_no_number() {
        for (name, expected) in [
            ("2026-11", Some(2026 * 12 + 10)),
            ("2026-13", None),
            ("2026-00", None),
            ("99999999999-01", None),
            ("2026", None),
            ("-5-01", None),
        ] {
            assert_eq!(parse_month(name), expected, "{name}");
        }
    }
}
