//! `revdeck context`: what a review would send of a change and the code around it, why, and what it would leave out.
//!
//! Without `--at` and `--budget` it is what puts reviews together that is asked; with them the same parts are put together
//! for a tree and a budget that no review has.

use std::io::Read;

use clap::Args;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::{Value, json};

use super::arguments::PlainFormat;
use super::error::{CliError, Exit};
use super::output;
use super::session::Invocation;
use crate::config::Texts;
use crate::context::given::given;
use crate::context::index::Index;
use crate::context::mask::Mask;
use crate::context::material::{DiffPart, Measure, material};
use crate::context::pack::{Because, Need, Packed, Piece, Section, SectionKind};
use crate::context::retrieve::task::{Focus, Task};
use crate::context::retrieve::unified;
use crate::context::surroundings::{Options, Question, Rules, ToldDiff, surroundings};
use crate::context::tokens::{Encoding, count};
use crate::domain::{LineRange, Scope, text};
use crate::git::{Change, Filter, Repo};
use crate::report::{Look, Paint, Table, json};
use crate::runner::{NO_TASK, Runner, Wish, open_meaning, withheld};

/// What most models count in.
const USUAL: Encoding = Encoding::O200kBase;
/// The largest window that is used.
const LARGEST_WINDOW: u32 = 150_000;
/// Of the window, what is kept for the answer.
const FOR_THE_ANSWER: u32 = 20_000;
/// In less there is no place for anything.
const LEAST_BUDGET: u32 = 200;
/// Unchanged lines around each hunk, as in a review.
const DIFF_CONTEXT: u32 = 6;
/// A task that is read from standard input is cut behind so many bytes.
const MAX_TASK: u64 = 4 << 20;
/// Of what is left out, so much is listed.
const LISTED: usize = 200;

/// Arguments of `context`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// worktree, staged, commit:REV, range:A..B, branch[:BASE] or all; without one what `review` would take
    #[arg(value_name = "SCOPE", conflicts_with = "at")]
    scope: Option<Scope>,
    /// Search the tree of this revision, for --task and --focus
    #[arg(long, value_name = "REV")]
    at: Option<String>,
    /// A file that the task is about, with or without a line
    #[arg(long, value_name = "PATH[:LINE]")]
    focus: Vec<String>,
    /// What is to be done; where nothing is changed, a unified diff in it is taken for the change. `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    task: Option<String>,
    /// As for this reviewer; without one as for the default one
    #[arg(long, value_name = "NAME")]
    reviewer: Option<String>,
    /// At most this many tokens, the change included; without it what a review would send
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(i64::from(LEAST_BUDGET)..))]
    budget: Option<u32>,
    /// Without types that the change uses
    #[arg(long)]
    no_types: bool,
    /// Without tests
    #[arg(long)]
    no_tests: bool,
    /// Without what the project says about itself
    #[arg(long)]
    no_documentation: bool,
    /// Code only from files that a glob names, in the syntax of .gitignore
    #[arg(long, value_name = "GLOB")]
    files: Vec<String>,
    /// Code only of these kinds: function, type, module, test, window
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kinds: Vec<SectionKind>,
    /// Say why each section is there, and what was left out
    #[arg(long)]
    explain: bool,
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

pub fn run(invocation: &Invocation, arguments: &Arguments) -> Result<Exit, CliError> {
    // To unpack the table of an encoding takes 80 ms: others go on meanwhile.
    std::thread::spawn(|| count(USUAL, ""));
    let (runner, look) = invocation.session(Texts::None)?.into_runner();
    let wish = Wish {
        focus: arguments.focus.iter().map(|focus| parse_focus(focus)).collect::<Result<_, _>>()?,
        text: task_text(arguments.task.as_deref())?,
        options: Options {
            types: !arguments.no_types,
            tests: !arguments.no_tests,
            documentation: !arguments.no_documentation,
            rules: Rules::Quoted,
            files: globs(&arguments.files)?,
            kinds: arguments.kinds.clone(),
        },
    };
    let packed = match (&arguments.at, arguments.budget) {
        (None, None) => runner.preview(arguments.scope.clone(), arguments.reviewer.as_deref(), &wish)?,
        _ => fitted(&runner, arguments, wish)?,
    };
    for note in &packed.notes {
        output::note(note);
    }
    match arguments.format {
        PlainFormat::Json => output::print_json(&as_json(&packed))?,
        PlainFormat::Text if arguments.explain => output::print(&explained(&look, &packed))?,
        PlainFormat::Text => output::print(&text::lines(&packed.text(), 4))?,
    }
    Ok(Exit::Done)
}

/// What would be sent of a tree, or under a budget.
fn fitted(runner: &Runner, arguments: &Arguments, wish: Wish) -> Result<Packed, CliError> {
    let (repo, settings) = (&runner.repo, &runner.settings);
    let encoding = runner.encoding(arguments.reviewer.as_deref())?;
    let most = LARGEST_WINDOW - FOR_THE_ANSWER;
    let budget = arguments.budget.unwrap_or(settings.context.tokens).clamp(LEAST_BUDGET, most);
    let mut task = Task { given: Vec::new(), focus: wish.focus, text: wish.text };
    let mut notes = Vec::new();
    let mut change = None;
    let (tree, history) = match &arguments.at {
        Some(revision) => {
            let commit = repo.resolve_commit(revision)?;
            (commit.clone(), commit)
        }
        None => {
            let filter =
                Filter { max_file_bytes: settings.max_file_bytes, ignored_paths: settings.ignored_paths.clone() };
            let snapshot = match &arguments.scope {
                Some(scope) => repo.snapshot(scope, &filter)?,
                None => repo.snapshot_default(&filter)?,
            };
            task.given = given(repo, &snapshot.change.files)?;
            let history =
                if snapshot.head_commit.is_empty() { &snapshot.snapshot_commit } else { &snapshot.head_commit };
            let commits = (snapshot.snapshot_commit.clone(), history.clone());
            change = Some(snapshot.change);
            commits
        }
    };
    if task.given.is_empty() {
        task.given = unified::parse(&task.text);
    }
    if task.given.is_empty() && task.focus.is_empty() && task.text.is_empty() {
        notes.push(NO_TASK.to_owned());
    }
    let folder = runner.paths.history_folder(&repo.key());
    // No index is no error: smaller trees are read whole, larger ones as far as it goes.
    let index = Index::open(&runner.paths.index_folder(&repo.key()), repo, &tree).ok().flatten();
    let meaning = settings.context.embeddings.as_ref().map(|settings| open_meaning(settings, &runner.paths));
    if let Some(Err(error)) = &meaning {
        notes.push(format!("without what code means: {error}"));
    }
    let question = Question {
        tree: &tree,
        history: &history,
        task,
        diff: &|| change.as_ref().map(|change| told(repo, change, (budget, encoding))).unwrap_or_default(),
        budget,
        encoding,
        options: wish.options,
        folder: Some(&folder),
        index: index.as_ref(),
        meaning: meaning.as_ref().and_then(|meaning| meaning.as_ref().ok()),
    };
    let mut packed = surroundings(repo, question)?;
    notes.append(&mut packed.notes);
    packed.notes = notes;
    Ok(packed)
}

fn globs(lines: &[String]) -> Result<Gitignore, CliError> {
    let mut globs = GitignoreBuilder::new("");
    for line in lines {
        globs.add_line(None, line).map_err(|error| CliError::usage(format!("--files {line:?}: {error}")))?;
    }
    globs.build().map_err(|error| CliError::usage(format!("--files: {error}")))
}

fn parse_focus(focus: &str) -> Result<Focus, CliError> {
    let (path, line) = match focus.rsplit_once(':') {
        Some((path, line)) if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) => {
            let line = line.parse().ok().filter(|line| *line > 0);
            let line = line.ok_or_else(|| CliError::usage(format!("{focus:?} names no line; lines count from 1")))?;
            (path, Some(line))
        }
        _ => (focus, None),
    };
    Ok(Focus { path: path.trim_start_matches("./").to_owned(), line })
}

fn task_text(task: Option<&str>) -> Result<String, CliError> {
    match task {
        None => Ok(String::new()),
        Some("-") => {
            let mut text = Vec::new();
            std::io::stdin()
                .lock()
                .take(MAX_TASK)
                .read_to_end(&mut text)
                .map_err(|error| CliError::usage(format!("cannot read the task from standard input: {error}")))?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        Some(text) => Ok(text.to_owned()),
    }
}

/// The diff as a review tells it, at most half of the budget, and what of it is not there.
fn told(repo: &Repo, change: &Change, (budget, encoding): (u32, Encoding)) -> ToldDiff {
    let half = u64::from(budget / 2);
    let measure = Measure { budget_tokens: half, max_part_tokens: half, context_lines: DIFF_CONTEXT };
    let told = material(repo, change, measure, &|text| count(encoding, text) as u64, Mask::On, &|_, _| true);
    let left_out = [told.left_out, change.left_out.clone()].concat();
    ToldDiff { notes: withheld(&told.beyond, &left_out), pieces: told.parts.into_iter().map(piece).collect() }
}

fn piece(part: DiffPart) -> Piece {
    Piece {
        path: String::new(),
        lines: None,
        kind: SectionKind::Diff,
        text: part.text.into(),
        tokens: None,
        need: Need::Must,
        score: 1.0,
        worth: 1.0,
        first: 0.0,
        because: Because { factors: Vec::new(), reason: "the change".to_owned() }.into(),
    }
}

fn place(path: &str, lines: Option<LineRange>) -> (Value, Value, Value) {
    let path = if path.is_empty() { Value::Null } else { json!(path) };
    (path, json!(lines.map(|lines| lines.start)), json!(lines.map(|lines| lines.end)))
}

fn as_json(packed: &Packed) -> Value {
    let section = |section: &Section| {
        let (path, start, end) = place(&section.path, section.lines);
        let factors: serde_json::Map<String, Value> =
            section.because.factors.iter().map(|(name, part)| ((*name).to_owned(), json!(part))).collect();
        json!({
            "path": path,
            "start_line": start,
            "end_line": end,
            "tokens": section.tokens,
            "kind": section.kind.word(),
            "score": section.score,
            "coverage": section.coverage.map(|share| json!({"reached": share.reached, "of": share.of, "share": share.part()})),
            "factors": factors,
            "reason": section.because.reason,
            "text": section.text,
        })
    };
    let left_out: Vec<Value> = packed
        .left_out
        .iter()
        .take(LISTED)
        .map(|piece| {
            let (path, start, end) = place(&piece.path, piece.lines);
            json!({
                "path": path, "start_line": start, "end_line": end, "tokens": piece.tokens,
                "kind": piece.kind.word(), "score": piece.score, "reason": piece.reason.word(),
            })
        })
        .collect();
    let untested = packed.untested.iter().map(|function| {
        json!({
            "path": function.path, "name": function.name,
            "start_line": function.lines.start, "end_line": function.lines.end,
        })
    });
    json::versioned([
        ("sections", packed.sections.iter().map(section).collect()),
        ("left_out", left_out.into()),
        ("total_tokens", json!(packed.total_tokens)),
        ("budget", json!(packed.budget)),
        ("utilization", json!(packed.utilization())),
        ("compression", json!(packed.compression.map(|strength| strength.word()))),
        ("included_count", json!(packed.included)),
        ("excluded_count", json!(packed.left_out.len())),
        ("untested", untested.collect()),
        ("notes", json!(packed.notes)),
    ])
}

fn explained(look: &Look, packed: &Packed) -> String {
    let title = |path: &str, lines: Option<LineRange>| match lines {
        Some(lines) => format!("{path}:{}-{}", lines.start, lines.end),
        None => path.to_owned(),
    };
    let mut table = Table::default();
    for section in &packed.sections {
        let factors = section.because.factors.iter().map(|(name, part)| format!("{name} {part:+.1}"));
        let factors: Vec<String> = factors.collect();
        table.row([
            (Paint::Strong, title(&section.path, section.lines).as_str()),
            (Paint::Faint, section.kind.word()),
            (Paint::Plain, &section.tokens.to_string()),
            (Paint::Plain, &format!("{:.3}", section.score)),
            (Paint::Plain, &section.because.reason),
            (Paint::Faint, &factors.join(", ")),
        ]);
    }
    let mut left_out = Table::default();
    for piece in packed.left_out.iter().take(LISTED / 10) {
        left_out.row([
            (Paint::Faint, title(&piece.path, piece.lines).as_str()),
            (Paint::Faint, piece.kind.word()),
            (Paint::Faint, &piece.tokens.to_string()),
            (Paint::Faint, &format!("{:.3}", piece.score)),
            (Paint::Faint, piece.reason.word()),
        ]);
    }
    let mut untested = Table::default();
    for function in &packed.untested {
        let place = title(&function.path, Some(function.lines));
        untested.row([
            (Paint::Strong, place.as_str()),
            (Paint::Plain, &function.name),
            (Paint::Bad, "not covered by tests"),
        ]);
    }
    format!(
        "{}{}\n{} of {} tokens ({:.0} %), {}\n\nleft out: {}\n{}",
        table.render(look),
        untested.render(look),
        packed.total_tokens,
        packed.budget,
        packed.utilization() * 100.0,
        text::count(packed.sections.len(), "section"),
        text::count(packed.left_out.len(), "piece"),
        left_out.render(look),
    )
}
