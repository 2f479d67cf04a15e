//! Reports out of a model's answer: the calls of `report_findings` and the JSON that stands anywhere in its text.
//!
//! A report is a claim by whoever wrote the text. Reviewed code that the model quotes may hold such JSON too, so what
//! comes out of here is only a finding once it stood up to [`super::examine()`]. Invariants: no answer makes this panic;
//! the work is linear in the answer; of an answer that was cut off every whole report comes out, and what does not is
//! said.

mod fields;
mod json;
mod marks;
mod report;
mod words;

#[cfg(test)]
mod tests;

use fields::{Fields, LISTS, object};
use json::{End, Object, Reader, Value};

use crate::domain::text::one_line;
use crate::domain::{Reported, Response};
use crate::review::dialog::REPORT_FINDINGS;

/// Lists in objects in lists are looked into this deep; own: an envelope, its files, their findings, with room.
const MAX_DEPTH: usize = 6;

/// So many problems are told one by one. Own: more say nothing new.
const MAX_PROBLEMS: usize = 20;

/// What an answer reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extracted {
    /// In the order of the answer, the tool calls first. One problem may be told twice.
    pub reports: Vec<Reported>,
    /// Lines for a person: what could not be read, and where in the answer it stands.
    pub problems: Vec<String>,
    /// Lists of reports, empty ones included: whether the answer says anything in the form that was asked for.
    pub lists: usize,
}

/// Reads all reports of an answer.
pub fn extract(response: &Response) -> Extracted {
    let mut collector = Collector::default();
    for call in response.calls.iter().filter(|call| call.name == REPORT_FINDINGS) {
        collector.read(&call.arguments, Source::Call);
    }
    collector.read(&response.text, Source::Text);
    collector.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Call,
    Text,
}

/// Whether an object is said to be a report, by standing in a list of reports, or has to look like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Report,
    Nothing,
}

/// Where something stands, to say so.
#[derive(Clone, Copy)]
struct Place<'t> {
    source: Source,
    text: &'t str,
    /// For JSON within a string of the text: where that stands.
    within: Option<usize>,
}

impl Place<'_> {
    fn of(self, at: usize) -> String {
        let before = self.text.as_bytes().get(..self.within.unwrap_or(at)).unwrap_or_default();
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        match self.source {
            Source::Call => format!("the arguments of {REPORT_FINDINGS}, line {line}"),
            Source::Text => format!("the answer, line {line}"),
        }
    }
}

#[derive(Default)]
struct Collector {
    extracted: Extracted,
    untold: usize,
}

impl Collector {
    fn read(&mut self, text: &str, source: Source) {
        let place = Place { source, text, within: None };
        let mut reader = Reader::new(text);
        let mut documents = 0;
        while let Some(value) = reader.next() {
            documents += 1;
            self.look(&value, "", place, MAX_DEPTH);
        }
        if source == Source::Call && documents == 0 && !text.trim().is_empty() {
            self.problem(|| {
                format!("the arguments of {REPORT_FINDINGS} are no JSON: nothing was reported by this call")
            });
        }
    }

    fn finish(self) -> Extracted {
        let mut extracted = self.extracted;
        if self.untold > 0 {
            extracted
                .problems
                .push(format!("{} more of this answer", crate::domain::text::count(self.untold, "problem")));
        }
        extracted
    }

    fn problem(&mut self, line: impl FnOnce() -> String) {
        match self.extracted.problems.len() < MAX_PROBLEMS {
            true => self.extracted.problems.push(line()),
            false => self.untold += 1,
        }
    }

    /// Looks for reports in a value; `path` is the file that the values around it are about.
    fn look(&mut self, value: &Value<'_>, path: &str, place: Place<'_>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Value::Object(object) => self.look_into(object, path, Said::Nothing, place, depth),
            Value::List(items) => {
                // Among reports the others are reports as well.
                let reports =
                    items.iter().filter_map(object).any(|item| report::looks_like_one(&Fields::of(item), path));
                let said = if reports { Said::Report } else { Said::Nothing };
                self.extracted.lists += usize::from(reports);
                for item in items {
                    match item {
                        Value::Object(object) => self.look_into(object, path, said, place, depth),
                        item => self.look(item, path, place, depth),
                    }
                }
            }
            _ => {}
        }
    }

    fn look_into(&mut self, object: &Object<'_>, path: &str, said: Said, place: Place<'_>, depth: usize) {
        let fields = Fields::of(object);
        let own_path = fields.path();
        let lists = || fields.under(LISTS).filter(|value| is_list(value));
        if lists().next().is_some() {
            let path = own_path.as_deref().unwrap_or(path);
            lists().for_each(|list| self.named(list, path, object.at, place, depth));
        } else if said == Said::Report || report::looks_like_one(&fields, path) {
            self.take(object, &fields, path, place);
        } else {
            let path = own_path.as_deref().unwrap_or(path);
            for (name, value) in fields.all() {
                match value {
                    // A tool call that was written out as text.
                    Value::Text(_) if name == "arguments" && is_list(value) => {
                        self.named(value, path, object.at, place, depth);
                    }
                    value => self.look(value, path, place, depth),
                }
            }
        }
    }

    /// Takes what stands under a name for reports; `at` is where the object around it begins.
    fn named(&mut self, list: &Value<'_>, path: &str, at: usize, place: Place<'_>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match list {
            Value::List(items) => {
                let before = self.extracted.reports.len();
                for (index, item) in items.iter().enumerate() {
                    match item {
                        Value::Object(object) => self.look_into(object, path, Said::Report, place, depth),
                        Value::Nothing => {}
                        _ => self.problem(|| format!("{}: report {} is no object", place.of(at), index + 1)),
                    }
                }
                // One that only holds what is no report (the prompt's own example) says nothing.
                let says = items.is_empty() || self.extracted.reports.len() > before;
                self.extracted.lists += usize::from(says);
            }
            Value::Object(object) => self.look_into(object, path, Said::Nothing, place, depth),
            // JSON that was written into a string once more.
            Value::Text(text) if place.within.is_none() => {
                let place = Place { within: Some(at), ..place };
                let mut reader = Reader::new(text);
                while let Some(value) = reader.next() {
                    self.named(&value, path, at, place, depth);
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, object: &Object<'_>, fields: &Fields<'_, '_>, path: &str, place: Place<'_>) {
        if object.end != End::Whole {
            // Nothing but a bracket: there is nothing to miss.
            if !object.members.is_empty() {
                let name = fields.text(fields::TITLE).or_else(|| fields.path()).unwrap_or_default();
                let name = one_line(report::start(&name, 80)).into_owned();
                let what = if object.end == End::Cut { "was cut off" } else { "cannot be read to its end" };
                self.problem(|| format!("{}: report {name:?} {what} and is dropped", place.of(object.at)));
            }
            return;
        }
        match report::read(fields, path) {
            report::Read::Report(report, notes) => {
                for note in notes {
                    self.problem(|| format!("{}: {:?}: {note}", place.of(object.at), report.title));
                }
                self.extracted.reports.push(*report);
            }
            report::Read::Nameless => {
                self.problem(|| {
                    format!("{}: a report that names neither a file nor a problem is dropped", place.of(object.at))
                });
            }
            report::Read::Example => {}
        }
    }
}

/// Whether a value can hold reports, also as JSON in a string.
fn is_list(value: &Value<'_>) -> bool {
    match value {
        Value::List(_) | Value::Object(_) => true,
        Value::Text(text) => text.trim_start().starts_with(['[', '{']),
        _ => false,
    }
}
