//! Definition, arguments and result of any tool. To add a tool: one file in `tools/` and a line in its table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::handler::server::tool::{schema_for_input, schema_for_output};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::clean::clean_value;
use super::{RepositoryAccess, ToolFailure};

/// Effect of a tool on the store, for the annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffect {
    /// Changes nothing but the record of what the assistant has read.
    Reads,
    /// Adds a request, a claim or a note.
    Adds,
    /// Starts a review, which may send code to a model of the user's settings.
    StartsReview,
    /// Ends work under way.
    Ends,
}

/// A tool: texts for the assistant, schemas, and its function.
pub struct ToolDefinition {
    /// Name of the tool in the protocol.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Purpose of the tool, and the time to call it.
    pub description: &'static str,
    /// Effect of a call.
    pub effect: ToolEffect,
    /// Returns the schemas of arguments and result.
    pub schemas: fn() -> ToolSchemas,
    /// Executes a call.
    pub call: fn(&ToolContext<'_>, JsonObject) -> Result<ToolOutput, ToolFailure>,
}

/// JSON schemas of a tool.
pub struct ToolSchemas {
    input: Arc<JsonObject>,
    output: Arc<JsonObject>,
}

impl ToolSchemas {
    /// Derives the schemas from the types of arguments and result.
    pub fn derive<I: JsonSchema + 'static, O: JsonSchema + 'static>() -> Self {
        // Arguments are structs, whose schemas are always objects.
        let mut input = schema_for_input::<I>().unwrap_or_default();
        // Some clients miss the properties of a tool without arguments.
        Arc::make_mut(&mut input).entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
        remove_null_of_optional(Arc::make_mut(&mut input));
        let mut output = schema_for_output::<O>();
        for schema in [&mut input, &mut output] {
            Arc::make_mut(schema).values_mut().for_each(remove_formats);
        }
        Self { input, output }
    }
}

/// Gives optional arguments the plain type of their value: who gives none leaves the argument out. Some clients convert
/// what a user types by the name of the type, and know no lists of types.
fn remove_null_of_optional(schema: &mut JsonObject) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        if property.get("default").is_some_and(Value::is_null) {
            property.remove("default");
        }
        let Some(Value::Array(types)) = property.get("type") else { continue };
        let plain: Vec<&Value> = types.iter().filter(|name| *name != "null").collect();
        if let [plain] = plain[..] {
            let plain = plain.clone();
            property.insert("type".to_owned(), plain);
        }
    }
}

/// Removes the formats of numbers, such as `uint32`: JSON Schema does not know them, and clients warn about each.
fn remove_formats(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "format" || !value.is_string());
            fields.values_mut().for_each(remove_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_formats),
        _ => {}
    }
}

impl ToolDefinition {
    /// Returns the definition in the form of the protocol.
    pub fn to_protocol(&self) -> Tool {
        let ToolSchemas { input, output } = (self.schemas)();
        let (reads, destroys, idempotent, open) = match self.effect {
            ToolEffect::Reads => (true, false, true, false),
            ToolEffect::Adds => (false, false, true, false),
            ToolEffect::StartsReview => (false, false, true, true),
            ToolEffect::Ends => (false, true, true, false),
        };
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(reads)
            .destructive(destroys)
            .idempotent(idempotent)
            .open_world(open);
        let mut tool = Tool::new(self.name, self.description, input);
        tool.title = Some(self.title.to_owned());
        tool.output_schema = Some(output);
        tool.annotations = Some(annotations);
        tool
    }
}

/// State of a review that a call waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressStep {
    /// Part that is done, from 0 to 100.
    pub percent: f64,
    /// State in words.
    pub message: String,
}

/// Surroundings of one call.
pub struct ToolContext<'a> {
    /// Way to the repository.
    pub access: &'a RepositoryAccess,
    /// Name of the client, as it introduced itself; empty if unknown.
    pub client: &'a str,
    /// Set once the client no longer waits for the answer.
    pub cancelled: &'a AtomicBool,
    /// Receives the progress of a long call.
    pub progress: &'a dyn Fn(ProgressStep),
}

impl ToolContext<'_> {
    /// Returns true once the client no longer waits for the answer.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// Result that fits the schema, cleaned.
    pub structured: Value,
    /// Text for clients that show texts; `None` for the JSON of the result.
    pub text: Option<String>,
}

impl ToolOutput {
    /// Creates the output from a result, with all its texts cleaned.
    ///
    /// # Errors
    ///
    /// If the result cannot be encoded, which is a fault of revdeck.
    pub fn new(result: &impl serde::Serialize) -> Result<Self, ToolFailure> {
        Ok(Self { structured: clean_value(encode(result)?), text: None })
    }
}

/// Encodes a value as JSON.
///
/// # Errors
///
/// If the value cannot be encoded, which is a fault of revdeck.
pub fn encode(value: &impl serde::Serialize) -> Result<Value, ToolFailure> {
    serde_json::to_value(value).map_err(|error| ToolFailure::new(format!("the result cannot be encoded: {error}")))
}

/// Parses the arguments of a call.
///
/// # Errors
///
/// If an argument is missing, unknown or of a wrong type. The message names it.
pub fn parse_arguments<T: DeserializeOwned>(tool: &str, arguments: JsonObject) -> Result<T, ToolFailure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        ToolFailure::new(format!("the arguments of {tool} are wrong: {error}"))
            .hint(format!("call {tool} again with the arguments of its input schema"))
    })
}

/// Returns the trimmed text of an argument that must say something.
///
/// # Errors
///
/// If the text is empty or has more than `most` characters.
pub fn require_text<'a>(name: &str, text: &'a str, most: usize, purpose: &str) -> Result<&'a str, ToolFailure> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ToolFailure::new(format!("{name} is empty")).hint(format!("write {purpose}")));
    }
    match text.chars().count() {
        length if length > most => {
            Err(ToolFailure::new(format!("{name} has {length} characters, {most} are allowed")).hint("say it shorter"))
        }
        _ => Ok(text),
    }
}

/// Returns a number of rows or bytes, or its default.
///
/// # Errors
///
/// If the number is outside of the range.
pub fn check_range(
    name: &str,
    given: Option<usize>,
    default: usize,
    range: std::ops::RangeInclusive<usize>,
) -> Result<usize, ToolFailure> {
    match given {
        Some(given) if !range.contains(&given) => Err(ToolFailure::new(format!(
            "{name} is {given}, which is out of range"
        ))
        .hint(format!("allowed: {} to {}", range.start(), range.end()))),
        given => Ok(given.unwrap_or(default)),
    }
}

/// Parses the words of an argument.
///
/// # Errors
///
/// If a word is unknown. The message names the known ones.
pub fn parse_words<T: std::str::FromStr<Err = String>>(name: &str, given: &[String]) -> Result<Vec<T>, ToolFailure> {
    let parse = |word: &String| {
        word.parse::<T>().map_err(|error| ToolFailure::new(format!("{name}: {error}")).hint("write one of these words"))
    };
    given.iter().map(parse).collect()
}
