//! Parses the arguments of a tool call, which a model wrote as JSON. Each mistake gets a one-line answer with the
//! correct form.

use serde_json::{Map, Value};

use super::{ToolError, quote};
use crate::domain::ToolSpec;

/// Largest arguments in bytes; longer text is not a question.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;
/// Largest page number; a model that needs more pages must ask more narrowly.
const MAX_PAGE_NUMBER: u32 = 100;

/// Arguments of one call.
pub struct ToolArguments {
    tool: String,
    values: Map<String, Value>,
}

impl ToolArguments {
    /// Parses the arguments.
    ///
    /// # Errors
    /// Fails if the text is too long, is not one JSON object, or has an argument that the tool does not know.
    pub fn parse(spec: &ToolSpec, text: &str) -> Result<Self, ToolError> {
        let tool = spec.name.clone();
        if text.len() > MAX_ARGUMENT_BYTES {
            return Err(ToolError::failed(format!(
                "the arguments of {tool} are longer than {MAX_ARGUMENT_BYTES} bytes"
            )));
        }
        // Some providers send an empty text for no arguments.
        let text = if text.trim().is_empty() { "{}" } else { text };
        let value: Value = serde_json::from_str(text).map_err(|error| {
            let what = if error.is_eof() { "end too early" } else { "are no valid JSON" };
            ToolError::failed(format!("the arguments of {tool} {what} ({error}); send one JSON object"))
        })?;
        let Value::Object(mut values) = value else {
            return Err(ToolError::failed(format!("the arguments of {tool} must be one JSON object")));
        };
        values.retain(|_, value| !value.is_null());
        let known = spec.parameters.get("properties").and_then(Value::as_object);
        let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
        if let Some(name) = values.keys().find(|name| !is_known(name)) {
            let names: Vec<&str> = known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
            return Err(ToolError::failed(format!(
                "{tool} has no argument {}; it has {}",
                quote(name),
                names.join(", ")
            )));
        }
        Ok(Self { tool, values })
    }

    /// Takes a text argument; `None` if it is absent.
    ///
    /// # Errors
    /// Fails if the value is not a string.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>, ToolError> {
        match self.values.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(name, "a string", &other)),
        }
    }

    /// Takes a text argument that must be present and not blank.
    ///
    /// # Errors
    /// Fails if the value is absent, blank or not a string.
    pub fn take_required_text(&mut self, name: &str) -> Result<String, ToolError> {
        self.take_text(name)?
            .filter(|text| !text.trim().is_empty())
            .ok_or_else(|| ToolError::failed(format!("{} needs `{name}`", self.tool)))
    }

    /// Takes a whole number from 1; `None` if it is absent.
    ///
    /// # Errors
    /// Fails if the value is not a whole number from 1.
    pub fn take_number(&mut self, name: &str) -> Result<Option<u32>, ToolError> {
        let Some(value) = self.values.remove(name) else { return Ok(None) };
        // Some models write every number with a decimal point.
        let whole =
            value.as_u64().or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && *n > 0.0).map(|n| n as u64));
        let number = whole.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
        number.map(Some).ok_or_else(|| self.wrong_type(name, "a whole number from 1 on", &value))
    }

    /// Takes a boolean argument; false if it is absent.
    ///
    /// # Errors
    /// Fails if the value is not a boolean.
    pub fn take_flag(&mut self, name: &str) -> Result<bool, ToolError> {
        match self.values.remove(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(self.wrong_type(name, "true or false", &other)),
        }
    }

    /// Takes the requested page number; 1 if it is absent.
    ///
    /// # Errors
    /// Fails if the value is not a whole number from 1 to [`MAX_PAGE_NUMBER`].
    pub fn take_page(&mut self) -> Result<u32, ToolError> {
        match self.take_number("page")?.unwrap_or(1) {
            page if page <= MAX_PAGE_NUMBER => Ok(page),
            page => Err(ToolError::failed(format!("there is no page {page}; ask more narrowly"))),
        }
    }

    fn wrong_type(&self, name: &str, expected: &str, value: &Value) -> ToolError {
        ToolError::failed(format!("`{name}` of {} must be {expected}, not {}", self.tool, quote(&value.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::domain::ToolOutcome;

    fn parse(text: &str) -> Result<ToolArguments, ToolError> {
        let parameters = json!({"properties": {"path": {}, "line": {}, "regex": {}, "page": {}}});
        ToolArguments::parse(&ToolSpec { name: "tool".into(), description: String::new(), parameters }, text)
    }

    /// Reads all four kinds of arguments and returns the text of the first mistake.
    fn mistake(text: &str) -> Option<String> {
        let read = || {
            let mut arguments = parse(text)?;
            arguments.take_required_text("path")?;
            arguments.take_number("line")?;
            arguments.take_flag("regex")?;
            arguments.take_page()
        };
        read().err().map(|stopped| {
            assert_eq!(stopped.outcome, ToolOutcome::Failed);
            stopped.text
        })
    }

    #[rstest]
    #[case("", "tool needs `path`")]
    #[case("{}", "tool needs `path`")]
    #[case("{\"path\": \"  \"}", "tool needs `path`")]
    #[case("{\"path\": null}", "tool needs `path`")]
    #[case("{\"path\": \"a", "the arguments of tool end too early")]
    #[case("path=a", "the arguments of tool are no valid JSON")]
    #[case("[1]", "the arguments of tool must be one JSON object")]
    #[case("{\"path\": 3}", "`path` of tool must be a string, not `3`")]
    #[case("{\"path\": \"a\", \"line\": \"12\"}", "`line` of tool must be a whole number from 1 on, not `\"12\"`")]
    #[case("{\"path\": \"a\", \"line\": 0}", "`line` of tool must be a whole number")]
    #[case("{\"path\": \"a\", \"line\": -4}", "`line` of tool must be a whole number")]
    #[case("{\"path\": \"a\", \"line\": 1.5}", "`line` of tool must be a whole number")]
    #[case("{\"path\": \"a\", \"line\": 1e300}", "`line` of tool must be a whole number")]
    #[case("{\"path\": \"a\", \"regex\": \"yes\"}", "`regex` of tool must be true or false")]
    #[case("{\"path\": \"a\", \"page\": 99999}", "there is no page 99999")]
    #[case(
        "{\"path\": \"a\", \"file\\u001b\": 1}",
        "tool has no argument `file\\u{1b}`; it has path, line, regex, page"
    )]
    fn mistakes_are_answered_with_what_is_right(#[case] text: &str, #[case] answer: &str) {
        let said = mistake(text).expect("a mistake");
        assert!(said.starts_with(answer), "{said}");
        assert!(!said.contains('\n') && !said.chars().any(char::is_control), "{said:?}");
    }

    #[test]
    fn what_is_right_is_taken() {
        for text in [
            "{\"path\": \"a\"}",
            "{\"path\": \"a\", \"line\": 12, \"regex\": true, \"page\": 2}",
            "{\"path\": \"a\", \"line\": 12.0, \"regex\": null}",
        ] {
            assert_eq!(mistake(text), None, "{text}");
        }
        assert!(mistake(&format!("{}{}", "[".repeat(5_000), "]".repeat(5_000))).is_some());
        assert!(mistake(&format!("{{\"path\": \"{}\"}}", "x".repeat(MAX_ARGUMENT_BYTES))).is_some());
    }
}
