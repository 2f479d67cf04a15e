//! `revdeck context`: prints what a review would send to a model (change, related code, rules), why, and what it would
//! leave out.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;

use clap::Args;
use clap_complete::ArgValueCandidates;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::{Value, json};

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::scope_args::ScopeArgs;
use super::session::Invocation;
use super::{complete, output, repo_path};
use crate::config::{ContextSettings, RequiredAssets};
use crate::context::builder::{CODE_KINDS, ContextOptions};
use crate::context::escape_unsafe;
use crate::context::pack::{ContextSection, PackedContext, PartialSources, ReadShare};
use crate::context::retrieve::task::Focus;
use crate::domain::{LineRange, text};
use crate::index::chunk::ChunkKind;
use crate::masking::mask_name;
use crate::report::{TextOptions, TextStyle, TextTable, json};
use crate::runner::{
    BUDGET_RANGE, ContextRequest, ContextTarget, ContextTaskInput, Preview, context_options, limit_memory,
};

/// Maximum size in bytes of a task from standard input; the rest is ignored.
const MAX_TASK_BYTES: u64 = 4 << 20;
/// Maximum number of omitted pieces that JSON lists.
const MAX_LISTED: usize = 200;
/// Maximum number of omitted pieces that `--explain` lists.
const MAX_EXPLAINED: usize = 20;

/// Arguments of `context`.
#[derive(Debug, Args)]
pub struct ContextArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Search the tree of this revision instead of a change; for --task and --focus
    #[arg(long, value_name = "REV", conflicts_with = "scope")]
    at: Option<String>,
    /// File that the task is about, optionally with a line; relative to the current folder or the repository root, or
    /// absolute; may be repeated
    #[arg(long, value_name = "PATH[:LINE]", allow_hyphen_values = true)]
    focus: Vec<String>,
    /// Description of the task. Without a change, a unified diff in the text is used as the change. `-` reads standard
    /// input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    task: Option<String>,
    /// Show the context for this reviewer [default: the default reviewer]
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::list_reviewers))]
    reviewer: Option<String>,
    /// Token limit for everything, including the change [default: the limits of a review]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(budgets()))]
    budget: Option<u32>,
    /// Leave out types that the change uses
    #[arg(long)]
    no_types: bool,
    /// Leave out tests
    #[arg(long)]
    no_tests: bool,
    /// Leave out documentation of the project
    #[arg(long)]
    no_documentation: bool,
    /// Include code only from matching files, in .gitignore syntax; may be repeated
    #[arg(long, value_name = "GLOB")]
    files: Vec<String>,
    /// Include only these kinds of code: function, class, interface, type, constant, module, test, config, window
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind_of_code)]
    kinds: Vec<ChunkKind>,
    /// Do not compress code so that more of it fits
    #[arg(long)]
    no_compression: bool,
    /// Explain why each section is included, and list what was left out
    #[arg(long)]
    explain: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

impl ContextArgs {
    /// Returns the filters of the settings, with those of the flags instead where there are any.
    fn options(&self, settings: &ContextSettings) -> Result<ContextOptions, CliError> {
        let set = context_options(settings);
        Ok(ContextOptions {
            types: set.types && !self.no_types,
            tests: set.tests && !self.no_tests,
            documentation: set.documentation && !self.no_documentation,
            files: if self.files.is_empty() { set.files } else { build_globs(&self.files)? },
            kinds: if self.kinds.is_empty() { set.kinds } else { self.kinds.clone() },
            compression: set.compression && !self.no_compression,
        })
    }
}

/// Runs `revdeck context`.
///
/// # Errors
///
/// Returns an error if an argument is invalid or the context cannot be built.
pub fn run(invocation: &Invocation, arguments: &ContextArgs) -> Result<CliExitCode, CliError> {
    // Before any thread starts.
    limit_memory();
    let (services, look) = invocation.open_session(RequiredAssets::None)?.into_runner();
    let root = services.repo.root();
    let wish = ContextTaskInput {
        focus: arguments.focus.iter().map(|focus| parse_focus(focus, &root)).collect::<Result<_, _>>()?,
        text: read_task(arguments.task.as_deref())?,
        options: arguments.options(&services.settings.context)?,
    };
    let target = match &arguments.at {
        Some(revision) => ContextTarget::Tree(revision.clone()),
        None => ContextTarget::Scope(arguments.scope.scope()?),
    };
    let request = ContextRequest { target, reviewer: arguments.reviewer.clone(), budget: arguments.budget };
    let preview = services.launcher().preview(&request, &wish)?;
    for note in &preview.packed.notes {
        output::print_note(note);
    }
    match arguments.format {
        PlainFormat::Json => output::print_json(&as_json(&preview))?,
        PlainFormat::Text if arguments.explain => output::print(&explain(&look, &preview))?,
        PlainFormat::Text => output::print(&sanitize_text(&preview.packed.text()))?,
    }
    if let Some(sources) = &preview.unread {
        services.indexer().spawn_indexer(sources);
    }
    Ok(CliExitCode::Done)
}

fn kind_of_code(word: &str) -> Result<ChunkKind, String> {
    CODE_KINDS.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
        let words = CODE_KINDS.map(ChunkKind::word).join(", ");
        format!("{word:?} is no kind of code; there are {words}")
    })
}

fn budgets() -> RangeInclusive<i64> {
    i64::from(*BUDGET_RANGE.start())..=i64::from(*BUDGET_RANGE.end())
}

/// Replaces characters that a terminal would interpret. Keeps line ends.
fn sanitize_text(text: &str) -> String {
    let line = |line: &str| match line.strip_suffix("\r\n").or_else(|| line.strip_suffix('\n')) {
        Some(line_only) => format!("{}{}", escape_unsafe(line_only), &line[line_only.len()..]),
        None => escape_unsafe(line).into_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

fn build_globs(lines: &[String]) -> Result<Gitignore, CliError> {
    let mut globs = GitignoreBuilder::new("");
    for line in lines {
        globs.add_line(None, line).map_err(|error| CliError::usage(format!("--files {line:?}: {error}")))?;
    }
    globs.build().map_err(|error| CliError::usage(format!("--files: {error}")))
}

fn parse_focus(focus: &str, root: &Path) -> Result<Focus, CliError> {
    let (path, line) = match focus.rsplit_once(':') {
        Some((path, line)) if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) => {
            let line = line.parse().ok().filter(|line| *line > 0);
            let line = line.ok_or_else(|| CliError::usage(format!("{focus:?} names no line; lines count from 1")))?;
            (path, Some(line))
        }
        _ => (focus, None),
    };
    let place = repo_path::path_from_root(path, root, &Invocation::current_folder()?);
    let path = place.map_err(|_| CliError::usage(format!("{path:?} is outside of {}", root.display())))?;
    Ok(Focus { path, line })
}

fn read_task(task: Option<&str>) -> Result<String, CliError> {
    match task {
        None => Ok(String::new()),
        Some("-") => {
            let mut text = Vec::new();
            std::io::stdin()
                .lock()
                .take(MAX_TASK_BYTES)
                .read_to_end(&mut text)
                .map_err(|error| CliError::usage(format!("cannot read the task from standard input: {error}")))?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        Some(text) => Ok(text.to_owned()),
    }
}

fn location_to_json(path: &str, lines: Option<LineRange>) -> (Value, Value, Value) {
    let path = if path.is_empty() { Value::Null } else { json!(path) };
    (path, json!(lines.map(|lines| lines.start)), json!(lines.map(|lines| lines.end)))
}

fn as_json(Preview { packed, reviewer, encoding, .. }: &Preview) -> Value {
    let section = |section: &ContextSection| {
        let (path, start, end) = location_to_json(&section.path, section.lines);
        let factors: serde_json::Map<String, Value> =
            section.explanation.factors.iter().map(|(name, part)| ((*name).to_owned(), json!(part))).collect();
        let of = section.cut_declarations.iter().map(|part| {
            json!({
                "kind": part.kind.word(), "name": part.name,
                "start_line": part.lines.start, "end_line": part.lines.end,
            })
        });
        json!({
            "path": path,
            "start_line": start,
            "end_line": end,
            "tokens": section.tokens,
            "kind": section.kind_word,
            "score": section.score,
            "coverage": section.coverage.map(|share| json!({"reached": share.reached, "of": share.total, "share": share.ratio()})),
            "of": of.collect::<Vec<Value>>(),
            "last_change": section.last_change.as_ref().map(|change| json!({"commit": change.commit, "time": change.time})),
            "factors": factors,
            "reason": mask_name(&section.explanation.reason),
            "text": section.text,
        })
    };
    let left_out: Vec<Value> = packed
        .left_out
        .iter()
        .take(MAX_LISTED)
        .map(|piece| {
            let (path, start, end) = location_to_json(&piece.path, piece.lines);
            json!({
                "path": path, "start_line": start, "end_line": end, "tokens": piece.tokens,
                "kind": piece.kind_word, "score": piece.score, "reason": piece.reason.word(),
            })
        })
        .collect();
    let untested = packed.untested.iter().map(|function| {
        json!({
            "path": function.path, "name": function.name,
            "start_line": function.lines.start, "end_line": function.lines.end,
        })
    });
    let own = [
        ("reviewer", json!(reviewer)),
        ("encoding", json!(encoding.name())),
        ("approximate", json!(encoding.is_approximate())),
        ("sections", packed.sections.iter().map(section).collect()),
        ("left_out", left_out.into()),
        ("total_tokens", json!(packed.total_tokens)),
        ("budget", json!(packed.budget)),
        ("utilization", json!(packed.utilization())),
        ("compression", json!(packed.compression.map(|strength| strength.word()))),
        ("included_count", json!(packed.included)),
        ("excluded_count", json!(packed.left_out.len())),
        ("excluded", count_excluded(packed)),
        ("untested", untested.collect()),
        ("notes", json!(packed.notes)),
    ];
    let partial = (!packed.partial.is_whole()).then(|| ("partial", partial_to_json(packed.partial)));
    json::build_versioned(own.into_iter().chain(partial))
}

fn partial_to_json(PartialSources { commits, files }: PartialSources) -> Value {
    let share = |share: Option<ReadShare>| share.map(|share| json!({"read": share.read, "of": share.total}));
    let shares = [("commits", share(commits)), ("files", share(files))];
    shares.into_iter().filter_map(|(name, share)| Some((name.to_owned(), share?))).collect()
}

/// Counts the omitted pieces by reason, including pieces that filters removed before packing.
fn count_excluded(packed: &PackedContext) -> Value {
    let mut reasons: BTreeMap<&str, u32> = BTreeMap::new();
    for piece in &packed.left_out {
        *reasons.entry(piece.reason.word()).or_default() += 1;
    }
    let said = |reason: String, count: u32| json!({"reason": reason, "count": count});
    let left_out = reasons.into_iter().map(|(reason, count)| said(reason.to_owned(), count));
    let filtered = packed.filtered.iter().map(|(filter, count)| said(format!("filtered: {}", filter.word()), *count));
    left_out.chain(filtered).collect()
}

fn explain(look: &TextOptions, Preview { packed, reviewer, encoding, .. }: &Preview) -> String {
    let made_for = reviewer.as_deref().map_or_else(|| "any model".to_owned(), |name| format!("reviewer {name}"));
    let counted = match encoding.is_approximate() {
        true => "counted approximately".to_owned(),
        false => format!("counted exactly ({})", encoding.name()),
    };
    let title = |path: &str, lines: Option<LineRange>| match lines {
        Some(lines) => format!("{}:{}-{}", mask_name(path), lines.start, lines.end),
        None => mask_name(path).into_owned(),
    };
    let mut table = TextTable::default();
    for section in &packed.sections {
        let factors = section.explanation.factors.iter().map(|(name, part)| format!("{name} {part:+.1}"));
        let factors: Vec<String> = factors.collect();
        table.push_row([
            (TextStyle::Strong, title(&section.path, section.lines).as_str()),
            (TextStyle::Faint, section.kind_word),
            (TextStyle::Plain, &section.tokens.to_string()),
            (TextStyle::Plain, &format!("{:.3}", section.score)),
            (TextStyle::Plain, &mask_name(&section.explanation.reason)),
            (TextStyle::Faint, &factors.join(", ")),
        ]);
    }
    let mut left_out = TextTable::default();
    for piece in packed.left_out.iter().take(MAX_EXPLAINED) {
        left_out.push_row([
            (TextStyle::Faint, title(&piece.path, piece.lines).as_str()),
            (TextStyle::Faint, piece.kind_word),
            (TextStyle::Faint, &piece.tokens.to_string()),
            (TextStyle::Faint, &format!("{:.3}", piece.score)),
            (TextStyle::Faint, piece.reason.word()),
        ]);
    }
    let mut untested = TextTable::default();
    for function in &packed.untested {
        let place = title(&function.path, Some(function.lines));
        untested.push_row([
            (TextStyle::Strong, place.as_str()),
            (TextStyle::Plain, &function.name),
            (TextStyle::Bad, "not covered by tests"),
        ]);
    }
    let filtered: Vec<String> = packed.filtered.iter().map(|(filter, count)| filter.describe_count(*count)).collect();
    let filtered = if filtered.is_empty() { String::new() } else { format!("\nfiltered: {}", filtered.join(", ")) };
    let more = match packed.left_out.len().saturating_sub(MAX_EXPLAINED) {
        0 => String::new(),
        more => format!("and {more} more, none of them stronger\n"),
    };
    format!(
        "{}{}\n{} of {} tokens ({:.0} %), {}\nfor {made_for}, {counted}\n{filtered}\nleft out: {}\n{}{more}",
        table.render(look),
        untested.render(look),
        packed.total_tokens,
        packed.budget,
        packed.utilization() * 100.0,
        text::format_count(packed.sections.len(), "section"),
        text::format_count(packed.left_out.len(), "piece"),
        left_out.render(look),
    )
}
