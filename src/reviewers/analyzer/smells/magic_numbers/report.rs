//! Builds smells from unexplained numbers (one per literal and function) and from repeated texts (one per text and
//! file).

use super::super::hardcoded_configuration::is_likely_secret;
use super::super::syntax::compact;
use super::super::{Smell, SmellBuilder, SmellGrade};
use super::{CountedText, NumberUse, UnexplainedNumber};
use crate::domain::{Confidence, Kind, LineRange, Priority, Severity};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::FileFacts;

/// Maximum number of lines of a repeated text, or of further literals, that an explanation names.
const MAX_LINES_NAMED: usize = 6;

pub(super) fn report_numbers(
    mut hits: Vec<UnexplainedNumber<'_>>,
    facts: &FileFacts,
    limits: &Limits,
    out: &mut Vec<Smell>,
) {
    hits.sort_by(|a, b| (a.function, a.literal, a.row).cmp(&(b.function, b.literal, b.row)));
    let mut groups: Vec<&[UnexplainedNumber<'_>]> =
        hits.chunk_by(|a, b| a.function == b.function && a.literal == b.literal).collect();
    groups.sort_by_key(|group| (group[0].function, group[0].row));
    for function in groups.chunk_by(|a, b| a[0].function == b[0].function) {
        let shown = (limits.magic_numbers.max_per_function as usize).min(function.len());
        let place = match facts.functions.get(function[0][0].function as usize) {
            Some(function) => format!("`{}`", function.name),
            None => "the file's top level".to_owned(),
        };
        for (position, group) in function[..shown].iter().enumerate() {
            let first = &group[0];
            let rest = &function[shown..];
            let more = if position + 1 == shown && !rest.is_empty() {
                let others: Vec<&str> = rest.iter().take(MAX_LINES_NAMED).map(|group| group[0].literal).collect();
                let dots = if rest.len() > MAX_LINES_NAMED { ", …" } else { "" };
                format!("; {} more here: {}{dots}", rest.len(), others.join(", "))
            } else {
                String::new()
            };
            let times = match group.len() {
                1 => String::new(),
                count => format!(" {count} times"),
            };
            let confidence = if first.usage == NumberUse::Argument { Confidence::Low } else { Confidence::Medium };
            let builder = SmellBuilder {
                kind: Kind::MagicNumbers,
                grade: SmellGrade::new(Priority::P3, Severity::Low, confidence),
                lines: LineRange::new(first.row + 1, first.row + 1),
                title: format!("{} is not explained by a name", first.literal),
                explanation: format!(
                    "{} stands{times} {} in {place} and neither a name nor a comment on its line says what it means{more}.",
                    first.literal,
                    first.usage.phrase(),
                ),
                subject: format!("{place}: {}", first.literal),
            };
            let advice = format!("Give {} a name that says what it means, as a constant.", first.literal);
            out.push(builder.build().with_figure(group.len() as f64).with_advice(advice));
        }
    }
}

/// Reports the texts that the file repeats. `is_secret` tells which texts no smell may show; it is asked only about texts
/// that are repeated often enough.
pub(super) fn report_repeated_texts(
    mut texts: Vec<CountedText<'_>>,
    is_secret: impl Fn(&CountedText<'_>) -> bool,
    limits: &Limits,
    out: &mut Vec<Smell>,
) {
    let min_repeats = limits.magic_numbers.min_string_repeats.max(2) as usize;
    texts.sort_unstable();
    for group in texts.chunk_by(|a, b| a.content == b.content).filter(|group| group.len() >= min_repeats) {
        let group: Vec<&CountedText<'_>> = group.iter().filter(|text| !is_secret(text)).collect();
        // Report the occurrence that reaches the limit: after a change it is most often the added one.
        let Some(reported) = group.get(min_repeats - 1) else { continue };
        let Ok(text) = std::str::from_utf8(reported.content) else { continue };
        if is_likely_secret(text) {
            continue;
        }
        let row = reported.row + 1;
        let lines: Vec<String> = group.iter().take(MAX_LINES_NAMED).map(|text| (text.row + 1).to_string()).collect();
        let dots = if group.len() > MAX_LINES_NAMED { ", …" } else { "" };
        let short = compact(text, 40);
        let builder = SmellBuilder {
            kind: Kind::MagicNumbers,
            grade: SmellGrade::new(Priority::P3, Severity::Low, Confidence::Medium),
            lines: LineRange::new(row, row),
            title: format!("\"{short}\" is written out {} times", group.len()),
            explanation: format!(
                "\"{short}\" stands {} times in this file (lines {}{dots}); from {} on one constant keeps them the same.",
                group.len(),
                lines.join(", "),
                limits.magic_numbers.min_string_repeats,
            ),
            subject: format!("\"{}\"", compact(text, 200)),
        };
        let smell = builder.build().with_figure(group.len() as f64);
        out.push(smell.with_advice("Declare it once as a constant and use the name."));
    }
}
