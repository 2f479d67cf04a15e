//! HARDCODED_CONFIGURATION: reports secrets with the shape of a key, secrets by name and entropy, and addresses of
//! services.
//!
//! - No smell of any kind shows a part of a secret. It shows only the length of the secret: see [`FileRedactor`].
//! - In test code only keys with the shape of a provider's key are reported.

mod addresses;
mod plain_text;
mod redaction;
mod secrets;
mod struct_tags;
#[cfg(test)]
mod tests;

use serde::Deserialize;

use self::addresses::Address;
pub(crate) use self::plain_text::needs_parsing;
pub use self::redaction::{FileRedactor, FileSecrets};
use self::secrets::Secret;
use super::syntax::{SmellFieldIds, capitalize, compact, is_word_byte, last_identifier};
use super::{CheckedFile, GrowthComparison, Smell, SmellBuilder, SmellDefinition, SmellGrade};
use crate::domain::{Confidence, Kind, LineRange, Priority, Severity};
use crate::reviewers::analyzer::WorkLimit;
use crate::reviewers::analyzer::limits::Limits;
use crate::secrets::{NamedValue, TextForm};
use crate::syntax::definition::{PerLanguage, kind_groups};
use crate::syntax::facts::{FileFacts, is_test_path};
use crate::syntax::language::Language;
use crate::syntax::role_map::RoleMap;
use crate::syntax::source::{KindSet, NodeIndex, ParsedFile, Parsers};

/// HARDCODED_CONFIGURATION in the registry.
pub const SMELL: SmellDefinition =
    SmellDefinition { kind: Kind::HardcodedConfiguration, check, growth: GrowthComparison::None };

/// Thresholds of HARDCODED_CONFIGURATION: the table `hardcoded_configuration` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardcodedConfigurationLimits {
    pub enabled: bool,
    pub min_entropy: f64,
    pub min_hex_entropy: f64,
    pub min_password_entropy: f64,
    pub min_secret_length: u32,
    pub addresses: bool,
    pub document_hosts: Vec<String>,
    pub service_words: Vec<String>,
    pub address_words: Vec<String>,
    pub request_words: Vec<String>,
}

/// Node kinds and fields of one language that the search for literals needs.
struct LiteralKinds {
    texts: KindSet,
    roles: RoleMap<StringNodeRole>,
    /// Node kinds that may have a Go struct tag.
    tagged: KindSet,
    fields: SmellFieldIds,
}

/// Role of a node in the search for a string's name, see [`find_literal_name`]: the section `strings` of each language's
/// file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StringNodeRole {
    #[default]
    None,
    /// Names a string in it: a declaration, assignment, pair, keyword argument, default value, comparison.
    Naming,
    /// An argument list: the called function names the string.
    Arguments,
    /// A wrapper that the search passes through.
    Transparent,
    /// Code inside a string: the value of such a string is not known.
    Interpolation,
}

static LITERAL_KINDS: PerLanguage<LiteralKinds> = PerLanguage::new(|language| LiteralKinds {
    texts: KindSet::new(language, &kind_groups(language).string_literals),
    roles: RoleMap::from_section(language, "strings"),
    tagged: KindSet::new(language, &kind_groups(language).tagged),
    fields: SmellFieldIds::new(language),
});

/// Secrets and addresses of one file.
pub struct HardcodedValues<'a> {
    /// Sorted by position and without overlaps.
    secrets: Vec<Secret<'a>>,
    /// As (node, first byte in the file, address).
    addresses: Vec<(NodeIndex, usize, Address<'a>)>,
    text: &'a [u8],
    hidden: FileSecrets,
}

impl<'a> HardcodedValues<'a> {
    /// Scans a file. Test code is included: its secrets are redacted, even if they are not reported.
    pub fn scan(source: &ParsedFile<'a>, facts: &FileFacts, limits: &Limits) -> Self {
        let limits = &limits.hardcoded_configuration;
        let keys = crate::secrets::find_keys_by_rules(source.text);
        let mut secrets: Vec<Secret<'a>> =
            secrets::select_by_shape(source.text, crate::secrets::select_reported(&keys));
        let shaped = secrets.len();
        let mut addresses = Vec::new();
        let wants_addresses = limits.addresses && !is_lenient(source, facts);
        let shapes = LITERAL_KINDS.get(source.language);
        for (index, node) in source.walk() {
            if !shapes.texts.contains(node.kind) {
                continue;
            }
            let text = StringLiteral::from_node(source, index);
            let Some(content) = text.content else { continue };
            if let Some(secret) = text.find_secret(source, shapes, index, content, limits) {
                secrets.push(secret);
            } else if wants_addresses
                && let Some(address) =
                    addresses::find_address(content, limits, || find_literal_name(source, shapes, index))
                && !facts.is_test_at(index)
            {
                addresses.push((index, text.start, address));
            }
        }
        // If two secrets overlap, the one found by its shape wins over the one found by its name.
        let (by_shape, by_name) = secrets.split_at(shaped);
        let is_known = |secret: &Secret<'_>| {
            let at = by_shape.partition_point(|known| known.start + known.text.len() <= secret.start);
            by_shape.get(at).is_some_and(|known| known.overlaps(secret))
        };
        let mut all: Vec<Secret<'a>> = by_name.iter().copied().filter(|secret| !is_known(secret)).collect();
        all.extend_from_slice(by_shape);
        all.sort_by_key(|secret| secret.start);
        let mut end = 0;
        all.retain(|secret| {
            let is_apart = secret.start >= end;
            end = end.max(secret.start + secret.text.len());
            is_apart
        });
        let form = choose_text_form(Some(source.path), Some(source.language));
        let hidden = FileSecrets::new(&all, &keys, form);
        Self { secrets: all, addresses, text: source.text, hidden }
    }

    /// Returns the redactor of the file's secrets.
    pub fn redactor(&self) -> &FileRedactor {
        self.hidden.redactor(self.text)
    }

    pub fn into_secrets(self) -> FileSecrets {
        self.hidden
    }
}

/// Returns whether a file may contain made-up secrets: test code and samples.
fn is_lenient(source: &ParsedFile<'_>, facts: &FileFacts) -> bool {
    facts.is_test_file || is_sample(source.path)
}

/// Reports the secrets and addresses of a file. [`FileRedactor::redact_smells`] sets the quotes later, as for smells of
/// all kinds.
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, hardcoded: held, .. } = *file;
    let lenient = is_lenient(source, facts);
    let mut lines = ForwardLineCounter::new(source.text);
    for secret in &held.secrets {
        let in_test = lenient || facts.is_test_at(innermost_node_at(source, secret.start));
        if in_test && !secret.by_shape {
            continue;
        }
        out.push(build_secret_smell(secret, &mut lines, in_test));
    }
    for (index, start, address) in &held.addresses {
        let shown = held.redactor().redact_slice(address.text.as_bytes(), *start);
        out.push(build_address_smell(source, *index, &compact(&shown, 60), address, facts));
    }
}

/// Maximum size in bytes of a text that is searched for values with the name of a secret. Bundles and data are larger.
const MAX_NAMED_SEARCH_BYTES: usize = 4 << 20;

/// How test code is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestCodeCheck {
    /// By the path alone.
    Path,
    /// By the path and the syntax tree. Only a text with a new secret is parsed.
    Syntax,
}

/// Finds keys by their shape, and random values with the name of a secret, in a text of any language that the text before
/// the change (`old`, read when it is needed) did not have. The smells show no secret.
pub(crate) fn find_text_secrets(
    path: &str,
    text: &[u8],
    tests: TestCodeCheck,
    old: &dyn Fn() -> Option<Vec<u8>>,
) -> Vec<Smell> {
    let in_test = is_sample(path) || is_test_path(path);
    let mut secrets: Vec<Secret<'_>> = secrets::find_by_shape(text);
    if !in_test
        && text.len() <= MAX_NAMED_SEARCH_BYTES
        && let Ok(words) = std::str::from_utf8(text)
    {
        let form = choose_text_form(Some(path), Language::detect(path, text));
        let named = find_named_secrets(words, form);
        let is_known = |new: &Secret<'_>| secrets.iter().any(|known| known.overlaps(new));
        let named: Vec<Secret<'_>> = named.into_iter().filter(|new| !is_known(new)).collect();
        secrets.extend(named);
        secrets.sort_by_key(|secret| secret.start);
    }
    if secrets.is_empty() {
        return Vec::new();
    }
    if let Some(old) = old() {
        drop_known_secrets(&mut secrets, &old);
    }
    if secrets.is_empty() {
        return Vec::new();
    }
    let in_tests = match tests {
        TestCodeCheck::Syntax if !in_test && !secrets.is_empty() => find_secrets_in_tests(path, text, &secrets),
        _ => vec![in_test; secrets.len()],
    };
    let mut lines = ForwardLineCounter::new(text);
    let reported = secrets.iter().zip(in_tests).filter(|(secret, in_test)| secret.by_shape || !in_test);
    let mut smells: Vec<Smell> =
        reported.map(|(secret, in_test)| build_secret_smell(secret, &mut lines, in_test)).collect();
    let form = choose_text_form(Some(path), Language::detect(path, text));
    FileSecrets::from_text(text, form).redactor(text).redact_smells(&mut smells, text);
    smells
}

/// Removes the secrets that stand in the old text, which is searched once for all of them.
fn drop_known_secrets(secrets: &mut Vec<Secret<'_>>, old: &[u8]) {
    let Ok(search) = aho_corasick::AhoCorasick::new(secrets.iter().map(|secret| secret.text)) else { return };
    let mut is_known = vec![false; secrets.len()];
    search.find_overlapping_iter(old).for_each(|hit| is_known[hit.pattern().as_usize()] = true);
    let mut known = is_known.into_iter();
    secrets.retain(|_| !known.next().unwrap_or(false));
}

/// Returns for each secret whether it stands in test code by the syntax tree; false if the text cannot be parsed.
fn find_secrets_in_tests(path: &str, text: &[u8], secrets: &[Secret<'_>]) -> Vec<bool> {
    let parsed = Language::detect(path, text).and_then(|language| Parsers::default().parse(path, language, text).ok());
    let Some(mut source) = parsed else { return vec![false; secrets.len()] };
    source.limit_work(WorkLimit::default().budget(source.nodes.len(), text.len()));
    let facts = FileFacts::from_parsed(&source);
    secrets.iter().map(|secret| facts.is_test_at(innermost_node_at(&source, secret.start))).collect()
}

/// Finds the random values with the name of a secret.
fn find_named_secrets(text: &str, form: TextForm) -> Vec<Secret<'_>> {
    let named = crate::secrets::find_random_assignments(text, form).into_iter();
    let secret = |found: NamedValue| Secret {
        start: found.value.start,
        text: text.get(found.value).unwrap_or_default(),
        label: "a secret",
        name: last_identifier(text.get(found.name).unwrap_or_default().as_bytes()),
        certain: false,
        by_shape: false,
    };
    named.map(secret).collect()
}

/// Returns how a file writes values. In a shell script, and where no language is known, values need no quotes.
pub(crate) fn choose_text_form(path: Option<&str>, language: Option<Language>) -> TextForm {
    TextForm::from_path(path, language.is_some_and(|language| language != Language::Bash))
}

/// Returns whether a text may be a secret, by its shape, by a password in a URL or by its randomness. Other smells do
/// not show such texts.
pub(super) fn is_likely_secret(text: &str) -> bool {
    !secrets::find_by_shape(text.as_bytes()).is_empty()
        || addresses::find_url_password(text).is_some()
        || secrets::is_random_looking(text)
}

/// A string literal and its content.
struct StringLiteral<'a> {
    start: usize,
    content: Option<&'a str>,
    /// True if the string contains code, so that `content` is not its value.
    has_code: bool,
}

impl<'a> StringLiteral<'a> {
    fn from_node(source: &ParsedFile<'a>, index: NodeIndex) -> Self {
        let node = &source.nodes[index];
        let bytes = source.bytes(node);
        let quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`' | b'#');
        let first = bytes.iter().position(|byte| matches!(byte, b'"' | b'\'' | b'`')).unwrap_or(0);
        let first = first + bytes[first..].iter().take_while(|byte| quote(byte)).count();
        let last = bytes.len() - bytes.iter().rev().take_while(|byte| quote(byte)).count();
        let start = node.start as usize;
        let content = (first < last).then(|| source.slice_text(start + first, start + last));
        let roles = &LITERAL_KINDS.get(source.language).roles;
        let is_code = |inner: NodeIndex| roles.get(source.nodes[inner].kind) == StringNodeRole::Interpolation;
        let has_code = source.descendants(index).take_while(|_| source.work().spend(1)).any(is_code);
        Self { start: start + first, content: content.filter(|content| content.len() >= 4), has_code }
    }

    /// Finds a secret in the string: a password in a URL, or a value whose name is the name of a secret.
    fn find_secret(
        &self,
        source: &ParsedFile<'a>,
        shapes: &LiteralKinds,
        index: NodeIndex,
        content: &'a str,
        limits: &HardcodedConfigurationLimits,
    ) -> Option<Secret<'a>> {
        source.work().spend_bytes(content.len());
        if let Some(password) = addresses::find_url_password(content) {
            let start = self.start + (password.as_ptr() as usize - content.as_ptr() as usize);
            return Some(Secret {
                start,
                text: password,
                label: "a password in an address",
                name: "",
                certain: true,
                by_shape: false,
            });
        }
        if self.has_code || content.len() < 8 {
            return None;
        }
        let (name, _) = find_literal_name(source, shapes, index).filter(|(_, sort)| *sort == NameSource::Name)?;
        let is_tag = shapes.tagged.contains(source.nodes[source.parent(index)].kind);
        let tag = is_tag.then(|| struct_tags::parse_tag_values(content)).flatten();
        let mut texts = tag.unwrap_or_else(|| vec![content]).into_iter();
        texts.find(|text| secrets::is_secret(name, text, limits)).map(|text| Secret {
            start: self.start + (text.as_ptr() as usize - content.as_ptr() as usize),
            text,
            label: "a secret",
            name,
            certain: false,
            by_shape: false,
        })
    }
}

/// Source of a string's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameSource {
    /// A variable, a field, a key or a parameter.
    Name,
    /// The function that takes the string as an argument.
    Call,
}

/// Finds the name that a string is assigned to, or the function that it is passed to.
fn find_literal_name<'a>(
    source: &ParsedFile<'a>,
    shapes: &LiteralKinds,
    index: NodeIndex,
) -> Option<(&'a str, NameSource)> {
    let mut child = index;
    for _ in 0..4 {
        let parent = source.parent(child);
        let node = &source.nodes[parent];
        let head = source.text_up_to(node, &source.nodes[child]);
        match shapes.roles.get(node.kind) {
            StringNodeRole::Naming => {
                let field = [
                    shapes.fields.name,
                    shapes.fields.left,
                    shapes.fields.key,
                    shapes.fields.pattern,
                    shapes.fields.declarator,
                ];
                let name = field
                    .into_iter()
                    .find_map(|field| source.child_by_field(parent, field).filter(|&name| name < child));
                let name = match name {
                    Some(name) => source.bytes(&source.nodes[name]),
                    None => {
                        source.work().spend_bytes(head.len());
                        head.split(|&byte| matches!(byte, b'=' | b':')).next().unwrap_or(b"")
                    }
                };
                // `config["api_key"]` and `"api_key": …` take their name from the inner text.
                let name = last_identifier(trim_to_word(name));
                return (!name.is_empty()).then_some((name, NameSource::Name));
            }
            StringNodeRole::Arguments => {
                let call = &source.nodes[source.called_node(parent)];
                let name = last_identifier(source.text_up_to(call, node));
                return (!name.is_empty()).then_some((name, NameSource::Call));
            }
            StringNodeRole::Transparent => {
                // `password: "…"` or `password = "…"` of a named argument.
                match head.trim_ascii_end() {
                    [name @ .., b':'] => return Some((last_identifier(name), NameSource::Name)),
                    [name @ .., b'='] if !last_identifier(name).is_empty() => {
                        return Some((last_identifier(name), NameSource::Name));
                    }
                    _ => {}
                }
                child = parent;
            }
            StringNodeRole::None | StringNodeRole::Interpolation => return None,
        }
    }
    None
}

fn trim_to_word(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| is_word_byte(byte)).map_or(0, |at| at + 1);
    &text[..end]
}

/// Returns whether a file is a sample or documentation, which contain placeholders.
fn is_sample(path: &str) -> bool {
    path.split('/').rev().skip(1).any(|folder| {
        matches!(
            folder,
            "examples"
                | "example"
                | "samples"
                | "sample"
                | "docs"
                | "doc"
                | "playground"
                | "demo"
                | "fixtures"
                | "testdata"
                | "mocks"
        )
    })
}

/// Returns the innermost node around a byte.
fn innermost_node_at(source: &ParsedFile<'_>, start: usize) -> NodeIndex {
    source.nodes.partition_point(|node| node.start as usize <= start).saturating_sub(1)
}

/// Counter of lines that only moves forward.
struct ForwardLineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
}

impl<'a> ForwardLineCounter<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// Returns the line (1-based) of a byte, which must not be before the byte of the previous call.
    fn line_of_byte(&mut self, at: usize) -> u32 {
        let at = at.min(self.text.len());
        self.line += self.text[self.at.min(at)..at].iter().filter(|&&byte| byte == b'\n').count() as u32;
        self.at = at;
        self.line
    }
}

/// Returns the text that is shown instead of a secret: `…(20 characters)`.
fn mask_secret(secret: &str) -> String {
    format!("…({} characters)", secret.chars().count())
}

fn build_secret_smell(secret: &Secret<'_>, lines: &mut ForwardLineCounter<'_>, in_test: bool) -> Smell {
    let line = lines.line_of_byte(secret.start);
    let shown = mask_secret(secret.text);
    let of = if secret.name.is_empty() { String::new() } else { format!(" for `{}`", secret.name) };
    let grade = match (secret.certain, in_test) {
        (true, false) => SmellGrade::new(Priority::P0, Severity::Critical, Confidence::High),
        (false, false) => SmellGrade::new(Priority::P1, Severity::High, Confidence::Medium),
        (_, true) => SmellGrade::new(Priority::P2, Severity::Medium, Confidence::Low),
    };
    let why = match secret.certain {
        true => "it has the shape of one".to_owned(),
        false => {
            format!(
                "its name says so and it has {:.1} bits of entropy per character",
                secrets::shannon_entropy(secret.text)
            )
        }
    };
    let builder = SmellBuilder {
        kind: Kind::HardcodedConfiguration,
        grade,
        lines: LineRange::new(line, line),
        title: format!("{}{of} stands in the code: {shown}", capitalize(secret.label)),
        explanation: format!(
            "`{shown}` is taken for {}{of}: {why}. Whoever can read the repository or its history has it.",
            secret.label
        ),
        // A hash instead of the secret: another secret gives another subject.
        subject: format!("{}{of} {}", secret.label, &blake3::hash(secret.text.as_bytes()).to_hex()[..12]),
    };
    let advice = "Revoke it, read it from the environment or a secret store, and take it out of the history.";
    builder.build().with_advice(advice)
}

fn build_address_smell(
    source: &ParsedFile<'_>,
    index: NodeIndex,
    shown: &str,
    address: &Address<'_>,
    facts: &FileFacts,
) -> Smell {
    let line = source.nodes[index].row + 1;
    let place = facts.function_at(index).map_or(String::new(), |function| format!(" in `{}`", function.name));
    let confidence = if address.certain { Confidence::Medium } else { Confidence::Low };
    let builder = SmellBuilder {
        kind: Kind::HardcodedConfiguration,
        grade: SmellGrade::new(Priority::P3, Severity::Low, confidence),
        lines: LineRange::new(line, line),
        title: format!("{} is fixed in the code: {shown}", capitalize(address.label)),
        explanation: format!(
            "`{shown}`{place} is {} that changes with the place the program runs at, and only a new build changes it.",
            address.label
        ),
        subject: shown.to_owned(),
    };
    builder.build().with_advice("Read it from the settings or the environment.")
}
