//! Extracts reports from a model's answer: from the calls of `report_findings` and from JSON anywhere in its text.
//!
//! A report is an untrusted claim: reviewed code that the model quotes may contain such JSON, too. A report becomes a
//! finding only through [`super::validate_report()`].
//!
//! - No answer causes a panic.
//! - The work is linear in the size of the answer.
//! - A truncated answer still yields every complete report, and a message about each incomplete one.

mod field_names;
mod json_lexemes;
mod labels;
mod lenient_json;
mod question_answer;
mod report_fields;

#[cfg(test)]
mod tests;

pub use question_answer::parse_question_answer;
pub(super) use report_fields::TAB_COLUMNS;

use field_names::{LISTS, ReportFields, as_object};
use lenient_json::{LenientJsonReader, LenientObject, LenientValue, ParseEnd};

use crate::domain::text::sanitize_line;
use crate::domain::{ChatResponse, ReportedProblem};
use crate::review::conversation::REPORT_FINDINGS_TOOL;

/// Maximum nesting in which lists are searched. Not from the literature: an envelope, its files, their findings, and
/// some reserve.
const MAX_LIST_DEPTH: usize = 6;

/// Maximum number of problems that are listed. Not from the literature: more add nothing new.
const MAX_PROBLEMS: usize = 20;

/// The reports of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractedReports {
    /// In the order of the answer, tool calls first. The same problem may occur twice.
    pub reports: Vec<ReportedProblem>,
    /// Messages for the user: unreadable parts and their position in the answer.
    pub problems: Vec<String>,
    /// Number of lists of reports, including empty lists. Zero means that the answer does not have the requested form.
    pub lists: usize,
}

/// Extracts all reports of an answer.
pub fn extract_reports(response: &ChatResponse) -> ExtractedReports {
    let mut collector = ReportCollector::default();
    for call in response.calls.iter().filter(|call| call.name == REPORT_FINDINGS_TOOL) {
        collector.read_text(&call.arguments, AnswerPart::Call);
    }
    collector.read_text(&response.text, AnswerPart::Text);
    collector.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerPart {
    Call,
    Text,
}

/// States whether an object is in a list of reports, or must look like a report by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportHint {
    Report,
    Nothing,
}

/// A position in the answer, for messages.
#[derive(Clone, Copy)]
struct AnswerLocation<'t> {
    source: AnswerPart,
    text: &'t str,
    /// For JSON inside a string of the text: the byte offset of that string.
    within: Option<usize>,
}

impl AnswerLocation<'_> {
    fn describe(self, at: usize) -> String {
        let before = self.text.as_bytes().get(..self.within.unwrap_or(at)).unwrap_or_default();
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        match self.source {
            AnswerPart::Call => format!("the arguments of {REPORT_FINDINGS_TOOL}, line {line}"),
            AnswerPart::Text => format!("the answer, line {line}"),
        }
    }
}

#[derive(Default)]
struct ReportCollector {
    extracted: ExtractedReports,
    unlisted_problems: usize,
}

impl ReportCollector {
    fn read_text(&mut self, text: &str, source: AnswerPart) {
        let place = AnswerLocation { source, text, within: None };
        let mut reader = LenientJsonReader::new(text);
        let mut documents = 0;
        while let Some(value) = reader.next_value() {
            documents += 1;
            self.visit_value(&value, "", place, MAX_LIST_DEPTH);
        }
        if source == AnswerPart::Call && documents == 0 && !text.trim().is_empty() {
            self.push_problem(|| {
                format!("the arguments of {REPORT_FINDINGS_TOOL} are no JSON: nothing was reported by this call")
            });
        }
    }

    fn finish(self) -> ExtractedReports {
        let mut extracted = self.extracted;
        if self.unlisted_problems > 0 {
            extracted.problems.push(format!(
                "{} more of this answer",
                crate::domain::text::format_count(self.unlisted_problems, "problem")
            ));
        }
        extracted
    }

    fn push_problem(&mut self, line: impl FnOnce() -> String) {
        match self.extracted.problems.len() < MAX_PROBLEMS {
            true => self.extracted.problems.push(line()),
            false => self.unlisted_problems += 1,
        }
    }

    /// Searches for reports in a value; `path` is the file that the surrounding values are about.
    fn visit_value(&mut self, value: &LenientValue<'_>, path: &str, place: AnswerLocation<'_>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            LenientValue::Object(object) => self.visit_object(object, path, ReportHint::Nothing, place, depth),
            LenientValue::List(items) => {
                // If one object in a list is a report, all others are reports, too.
                let reports = items
                    .iter()
                    .filter_map(as_object)
                    .any(|item| report_fields::looks_like_report(&ReportFields::from_object(item), path));
                let said = if reports { ReportHint::Report } else { ReportHint::Nothing };
                self.extracted.lists += usize::from(reports);
                for item in items {
                    match item {
                        LenientValue::Object(object) => self.visit_object(object, path, said, place, depth),
                        item => self.visit_value(item, path, place, depth),
                    }
                }
            }
            _ => {}
        }
    }

    fn visit_object(
        &mut self,
        object: &LenientObject<'_>,
        path: &str,
        said: ReportHint,
        place: AnswerLocation<'_>,
        depth: usize,
    ) {
        let fields = ReportFields::from_object(object);
        let own_path = fields.path();
        let lists = || fields.values_of(LISTS).filter(|value| can_hold_reports(value));
        if lists().next().is_some() {
            let path = own_path.as_deref().unwrap_or(path);
            lists().for_each(|list| self.visit_named_list(list, path, object.at, place, depth));
        } else if said == ReportHint::Report || report_fields::looks_like_report(&fields, path) {
            self.take_report(object, &fields, path, place);
        } else {
            let path = own_path.as_deref().unwrap_or(path);
            for (name, value) in fields.iter() {
                match value {
                    // A tool call that was written as text.
                    LenientValue::Text(_) if name == "arguments" && can_hold_reports(value) => {
                        self.visit_named_list(value, path, object.at, place, depth);
                    }
                    value => self.visit_value(value, path, place, depth),
                }
            }
        }
    }

    /// Reads the value of a known list name as reports; `at` is the byte offset of the surrounding object.
    fn visit_named_list(
        &mut self,
        list: &LenientValue<'_>,
        path: &str,
        at: usize,
        place: AnswerLocation<'_>,
        depth: usize,
    ) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match list {
            LenientValue::List(items) => {
                let before = self.extracted.reports.len();
                for (index, item) in items.iter().enumerate() {
                    match item {
                        LenientValue::Object(object) => {
                            self.visit_object(object, path, ReportHint::Report, place, depth)
                        }
                        LenientValue::Null => {}
                        _ => self.push_problem(|| format!("{}: report {} is no object", place.describe(at), index + 1)),
                    }
                }
                // A list with nothing but the prompt's own example counts as no list.
                let says = items.is_empty() || self.extracted.reports.len() > before;
                self.extracted.lists += usize::from(says);
            }
            LenientValue::Object(object) => self.visit_object(object, path, ReportHint::Nothing, place, depth),
            // JSON that was encoded as a string again.
            LenientValue::Text(text) if place.within.is_none() => {
                let place = AnswerLocation { within: Some(at), ..place };
                let mut reader = LenientJsonReader::new(text);
                while let Some(value) = reader.next_value() {
                    self.visit_named_list(&value, path, at, place, depth);
                }
            }
            _ => {}
        }
    }

    fn take_report(
        &mut self,
        object: &LenientObject<'_>,
        fields: &ReportFields<'_, '_>,
        path: &str,
        place: AnswerLocation<'_>,
    ) {
        if object.end != ParseEnd::Whole {
            // An empty object lost nothing.
            if !object.members.is_empty() {
                let name = fields.text(field_names::TITLE).or_else(|| fields.path()).unwrap_or_default();
                let name = sanitize_line(report_fields::first_chars(&name, 80)).into_owned();
                let what = if object.end == ParseEnd::Cut { "was cut off" } else { "cannot be read to its end" };
                self.push_problem(|| format!("{}: report {name:?} {what} and is dropped", place.describe(object.at)));
            }
            return;
        }
        match report_fields::parse_report(fields, path) {
            report_fields::ReportParseResult::Report(report, notes) => {
                for note in notes {
                    self.push_problem(|| format!("{}: {:?}: {note}", place.describe(object.at), report.title));
                }
                self.extracted.reports.push(*report);
            }
            report_fields::ReportParseResult::Nameless => {
                self.push_problem(|| {
                    format!(
                        "{}: a report that names neither a file nor a problem is dropped",
                        place.describe(object.at)
                    )
                });
            }
            report_fields::ReportParseResult::Example => {}
        }
    }
}

/// Returns `true` if a value can contain reports, including JSON in a string.
fn can_hold_reports(value: &LenientValue<'_>) -> bool {
    match value {
        LenientValue::List(_) | LenientValue::Object(_) => true,
        LenientValue::Text(text) => text.trim_start().starts_with(['[', '{']),
        _ => false,
    }
}
