//! The settings: every one stands once, as a field with its type, its allowed values and who may set it.
//!
//! [`KEYS`] lists the fields under the names that the files use, so that files, environment and flags are checked
//! against them. `assets/config.toml` holds the default of each field and explains it to the user; a test compares
//! both. [`read_values`] reads the merged values with serde.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::keys::{SettingKey, SettingType as Form, SettingValue, setting_table};
use super::reviewers::EMBEDDING_WORDS;
use super::{
    CustomCommand, Dollars, KeyPreset, KeymapFile, PanelSettings, ReviewerKind, ReviewerSettings, SettingOrigin,
};
use crate::domain::{OmissionReason, Priority, QuietHours, Scope, ShareMode, WatchTrigger, word_enum};

word_enum!(
    /// When commands print in color.
    ColorChoice {
        /// Color on a terminal, unless `NO_COLOR` is set.
        Auto = "auto",
        /// Color everywhere, also in files and pipes.
        Always = "always",
        /// No color.
        Never = "never",
    }
);

word_enum!(
    /// Records of other machines that count.
    AcceptedRecords {
        /// All that stand at the place of the team.
        All = "all",
        /// Those in logs that are signed by a key which git's configuration trusts.
        Signed = "signed",
    }
);

word_enum!(
    /// Kind of the place where a team keeps its records.
    TeamBackendKind {
        /// Refs of a git remote.
        Git = "git",
        /// A database of PostgreSQL.
        Postgres = "postgres",
    }
);

word_enum!(
    /// Signing of the records for a team.
    SignChoice {
        /// As `commit.gpgSign` of git's configuration says.
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
);

word_enum!(
    /// Handling of changes that nobody has reviewed when the cockpit opens.
    OpeningMode {
        /// The built-in reviewer reviews them.
        Review = "review",
        /// They are named, and reviewed when the user asks.
        Offer = "offer",
        /// Nobody looks for them.
        Nothing = "nothing",
    }
);

word_enum!(
    /// Order of the cockpit's list of runs. A run that another one replaced stands below it in any order.
    #[derive(Default)]
    RunOrder {
        /// Newest first.
        #[default]
        Age = "age",
        /// A timeline for each branch, that with the newest run first.
        Branch = "branch",
    }
);

word_enum!(
    /// Order of the cockpit's list of findings. Equal findings follow by importance, path and line.
    #[derive(Default)]
    FindingSort {
        /// By priority, then the danger of the kind, as in the ledger.
        #[default]
        Priority = "priority",
        /// By path and line.
        File = "file",
        /// By the first report, newest first.
        Age = "age",
        /// By kind, most dangerous first.
        Kind = "kind",
        /// By the run of the last report, newest first.
        Run = "run",
    }
);

word_enum!(
    /// Groups of the cockpit's list of findings, each with a header.
    #[derive(Default)]
    FindingGrouping {
        /// One list without headers.
        None = "none",
        /// By priority, most urgent first.
        #[default]
        Priority = "priority",
        /// By file, in the order of the first finding of each.
        File = "file",
        /// By kind, in the order of the first finding of each.
        Kind = "kind",
        /// By the run of the last report, newest first.
        Run = "run",
    }
);

word_enum!(
    /// Order of the cockpit's list of files.
    #[derive(Default)]
    FileOrder {
        /// Files with the most urgent findings first.
        #[default]
        Findings = "findings",
        /// A tree of folders.
        Folders = "folders",
    }
);

word_enum!(
    /// Signal outside the screen when a run needs attention while the cockpit is open.
    NotifyMode {
        /// No signal; the message line tells it.
        Off = "none",
        /// The terminal's bell.
        Bell = "bell",
        /// A notification of the desktop, sent through the terminal.
        Desktop = "desktop",
    }
);

setting_table! {
    /// Effective settings.
    Settings at "" {
        /// Reviewer when a request names none: `builtin` or a key of `reviewers`.
        default_reviewer: String, Form::Text, User;
        /// Panel when a person's request names no reviewer: a key of `panels`; empty for the default reviewer.
        default_panel: String, Form::OptionalText, User;
        /// Scope to review by default; `None` means the worktree if it has changes, else HEAD's commit.
        #[serde(deserialize_with = "none_if_no_value")]
        default_scope: Option<Scope>, Form::Scope, Repository;
        /// Maximum number of runs that work at the same time, 1 to 64; further runs wait.
        max_parallel_runs: usize, Form::Count { min: 1, max: 64 }, User;
        /// Globs in .gitignore syntax for changed files that no review looks at.
        ignored_paths: Vec<String>, Form::Patterns, Repository;
        /// Size limit of a changed file in bytes; larger files are omitted as oversized.
        max_file_bytes: u64, Form::Count { min: 1, max: 1_000_000_000 }, Repository;
        /// Seconds that git, and a program that git starts, may write nothing before both are ended, 1 to 86,400.
        git_seconds: u64, Form::Count { min: 1, max: 86_400 }, User;
        /// Least urgent priority with which `review --wait` exits with 1; `None` for never.
        #[serde(deserialize_with = "none_if_no_value")]
        fail_on: Option<Priority>, Form::FailOn, Repository;
        /// Reasons for which a part of a change may stay unreviewed although `review --wait` must be complete.
        allow_unreviewed: Vec<OmissionReason>, Form::AnyOf(OmissionReason::WORDS), User;
        /// Maximum size of a ledger in `o200k_base` tokens, 0 to 1,200; 0 means no ledger.
        ledger_tokens: usize, Form::Count { min: 0, max: 1200 }, User;
        /// Least urgent priority of findings that a ledger names; `None` for no findings.
        #[serde(deserialize_with = "none_if_no_value")]
        ledger_priority: Option<Priority>, Form::FailOn, User;
        /// Handling of changes that nobody has reviewed when the cockpit opens. A reviewer that costs money is never
        /// started.
        on_open: OpeningMode, Form::OneOf(OpeningMode::WORDS), User;
        /// True to print what reviews did today when the cockpit is quit.
        quit_summary: bool, Form::Flag, User;
        /// Theme of the cockpit: `auto`, or the name of a theme of revdeck or of the user.
        theme: String, Form::Text, User;
        /// True to draw frames and glyphs with ASCII characters only.
        ascii: bool, Form::Flag, User;
        /// True if the cockpit takes clicks, drags and the wheel of the mouse.
        mouse: bool, Form::Flag, User;
        /// False if nothing on the screen moves by itself: clocks step by 10 seconds.
        motion: bool, Form::Flag, User;
        /// True to draw the cockpit as lines of text for a screen reader: one pane, no columns, no clocks.
        plain: bool, Form::Flag, User;
        /// True to continue long lines of a diff in the next row; false to cut them and to shift the code with keys.
        diff_wrap: bool, Form::Flag, User;
        /// True to leave changes of white space out of a diff.
        diff_ignore_space: bool, Form::Flag, User;
        /// Lines of a finding in the cockpit's list, 1 or 2.
        finding_rows: usize, Form::Count { min: 1, max: 2 }, User;
        /// Order of the cockpit's list of findings, or of those in a group.
        finding_order: FindingSort, Form::OneOf(FindingSort::WORDS), User;
        /// Groups of the cockpit's list of findings.
        finding_groups: FindingGrouping, Form::OneOf(FindingGrouping::WORDS), User;
        /// Order of the cockpit's list of runs.
        run_order: RunOrder, Form::OneOf(RunOrder::WORDS), User;
        /// Order of the cockpit's list of files.
        file_order: FileOrder, Form::OneOf(FileOrder::WORDS), User;
        /// Signal when a run ends, fails, loses its worker, reaches its budget or finds something urgent while the cockpit is open.
        notify: NotifyMode, Form::OneOf(NotifyMode::WORDS), User;
        /// Use of color by the commands and the cockpit.
        color: ColorChoice, Form::OneOf(ColorChoice::WORDS), User;
        /// Keys of the cockpit; the user's keymap lies over them.
        keys: KeyPreset, Form::OneOf(KeyPreset::WORDS), User;
    }
    besides {
        /// Table `[window]`.
        window: WindowSettings;
        /// Table `[budget]`.
        budget: BudgetSettings;
        /// Table `[policy]`.
        policy: PolicySettings;
        /// Table `[assistants]`.
        assistants: AssistantSettings;
        /// Table `[retention]`.
        retention: RetentionSettings;
        /// Table `[watch]`.
        watch: WatchSettings;
        /// Table `[resolve]`.
        resolve: ResolveSettings;
        /// Table `[context]`.
        context: ContextSettings;
        /// Table `[learning]`.
        learning: LearningSettings;
        /// Table `[worth]`.
        worth: WorthSettings;
        /// Table `[team]`.
        team: TeamSettings;
        /// User's `[reviewers]` tables by name; `builtin` needs no table.
        #[serde(skip)]
        reviewers: BTreeMap<String, ReviewerSettings>;
        /// User's `[panels]` tables by name.
        #[serde(skip)]
        panels: BTreeMap<String, PanelSettings>;
        /// `assets/smells.toml` with the user's and the repository's changes merged in, as TOML.
        #[serde(skip)]
        smells: String;
        /// User's `[commands]` tables, by name.
        #[serde(skip)]
        commands: Vec<CustomCommand>;
        /// User's `[filters]` of the cockpit, by name.
        #[serde(skip)]
        filters: BTreeMap<String, String>;
        /// Keymap files, lowest layer first.
        #[serde(skip)]
        keymap: Vec<KeymapFile>;
    }
}

setting_table! {
    /// Conversation window of a reviewer that talks to a model.
    #[derive(Copy, Eq)]
    WindowSettings at "window." {
        /// Maximum number of requests in one review, 1 to 20.
        max_turns: u32, Form::Count { min: 1, max: 20 }, User;
        /// Maximum size of a request in tokens.
        max_tokens: u64, Form::Count { min: 1000, max: 10_000_000 }, User;
        /// Number of turns after which the window may slide.
        slide_after_turn: u32, Form::Count { min: 1, max: 20 }, User;
        /// Number of messages above which the window slides.
        slide_over_messages: usize, Form::Count { min: 2, max: 1000 }, User;
        /// Number of messages that remain when the window has slid.
        keep_messages: usize, Form::Count { min: 1, max: 1000 }, User;
    }
}

setting_table! {
    /// Spending limits of reviewers. `None` means no limit.
    #[derive(Copy, Eq)]
    BudgetSettings at "budget." {
        /// Maximum tokens of one run.
        #[serde(deserialize_with = "none_if_zero")]
        run_tokens: Option<u64>, Form::Count { min: 0, max: 1_000_000_000_000 }, User;
        /// Maximum cost of one run.
        #[serde(deserialize_with = "none_if_zero")]
        run_cost: Option<Dollars>, Form::Money { max: 1_000_000 }, User;
        /// Maximum tokens of all runs since midnight.
        #[serde(deserialize_with = "none_if_zero")]
        day_tokens: Option<u64>, Form::Count { min: 0, max: 1_000_000_000_000 }, User;
        /// Maximum cost of all runs since midnight.
        #[serde(deserialize_with = "none_if_zero")]
        day_cost: Option<Dollars>, Form::Money { max: 1_000_000 }, User;
    }
}

setting_table! {
    /// Policy for runs that newer code makes outdated.
    #[derive(Copy, Eq)]
    PolicySettings at "policy." {
        /// Share of reviewed hunks in percent from which an outdated run may finish; see
        /// `policy::supersede::FinishRule`.
        finish_from: u32, Form::Count { min: 0, max: 101 }, User;
    }
}

setting_table! {
    /// Limits of what coding assistants may request. `None` means no limit.
    #[derive(Copy, Eq)]
    AssistantSettings at "assistants." {
        /// Maximum number of reviews that all assistants together may start in a repository within an hour.
        #[serde(deserialize_with = "none_if_zero")]
        reviews_per_hour: Option<u32>, Form::Count { min: 0, max: 10_000 }, User;
        /// Maximum number of reviews that one session of an assistant may start.
        #[serde(deserialize_with = "none_if_zero")]
        reviews_per_session: Option<u32>, Form::Count { min: 0, max: 10_000 }, User;
    }
}

setting_table! {
    /// Retention of journals and snapshots. `None` means forever.
    #[derive(Copy, Eq)]
    RetentionSettings at "retention." {
        /// Age in days below which a run is kept.
        #[serde(deserialize_with = "none_if_zero")]
        keep_days: Option<u32>, Form::Count { min: 0, max: 36_500 }, User;
        /// Number of newest runs that are kept at any age.
        #[serde(deserialize_with = "none_if_zero")]
        keep_runs: Option<usize>, Form::Count { min: 0, max: 1_000_000_000 }, User;
    }
}

setting_table! {
    /// Automatic reviews and their frequency. `None` means no limit.
    WatchSettings at "watch." {
        /// Changes in the repository that start a review.
        on: Vec<WatchTrigger>, Form::AnyOf(WatchTrigger::WORDS), User;
        /// Seconds without an edit before the worktree is reviewed.
        quiet_seconds: u64, Form::Count { min: 0, max: 86_400 }, User;
        /// Minimum seconds between two reviews of the worktree.
        interval_seconds: u64, Form::Count { min: 0, max: 86_400 }, User;
        /// Minimum number of added and removed lines for a review.
        min_changed_lines: u64, Form::Count { min: 0, max: 1_000_000 }, User;
        /// Hours in which no review starts by itself; `None` for no such hours.
        #[serde(deserialize_with = "none_if_no_value")]
        quiet_hours: Option<QuietHours>, Form::Hours, User;
        /// Globs in .gitignore syntax for files whose changes start no review.
        ignored_paths: Vec<String>, Form::Patterns, Repository;
        /// Reviewer of automatic reviews; `None` means the default reviewer.
        #[serde(deserialize_with = "none_if_auto")]
        reviewer: Option<String>, Form::Text, User;
        /// Maximum tokens per day, counting all runs.
        #[serde(deserialize_with = "none_if_zero")]
        day_tokens: Option<u64>, Form::Count { min: 0, max: 1_000_000_000_000 }, User;
        /// Maximum cost per day, counting all runs.
        #[serde(deserialize_with = "none_if_zero")]
        day_cost: Option<Dollars>, Form::Money { max: 1_000_000 }, User;
        /// True to poll instead of waiting for file events.
        poll: bool, Form::Flag, User;
        /// Seconds between two polls, 1 to 3,600.
        poll_seconds: u64, Form::Count { min: 1, max: 3600 }, User;
    }
}

setting_table! {
    /// Settings for making fixes.
    #[derive(Eq)]
    ResolveSettings at "resolve." {
        /// Reviewer that makes fixes; `None` means that only exact suggestions are applied.
        #[serde(deserialize_with = "none_if_zero")]
        reviewer: Option<String>, Form::OptionalText, User;
        /// Maximum number of times that a patch is made again because its review found a problem.
        follow_ups: u32, Form::Count { min: 0, max: 2 }, User;
    }
}

/// Words of `context.kinds`.
pub const CONTEXT_KINDS: &[&str] =
    &["function", "class", "interface", "type", "constant", "module", "test", "config", "window"];

setting_table! {
    /// Code context around a change for reviewers that talk to a model.
    #[derive(Eq)]
    ContextSettings at "context." {
        /// Maximum tokens of context; 0 turns it off.
        tokens: u32, Form::Count { min: 0, max: 130_000 }, User;
        /// Seconds that a context spends at most on reading history and files that no cache holds; with 0 it
        /// reads a first batch of each.
        reading_seconds: u64, Form::Count { min: 0, max: 600 }, User;
        /// True to send types that the change uses.
        types: bool, Form::Flag, Repository;
        /// True to send tests.
        tests: bool, Form::Flag, Repository;
        /// True to name documentation of the project.
        documentation: bool, Form::Flag, Repository;
        /// Globs in .gitignore syntax for files whose code is sent; empty for all files.
        files: Vec<String>, Form::Patterns, Repository;
        /// Kinds of code that are sent, in the words of `context::builder::CODE_KINDS`; empty for all kinds.
        kinds: Vec<String>, Form::AnyOf(CONTEXT_KINDS), Repository;
        /// True to compress code so that more of it fits.
        compression: bool, Form::Flag, Repository;
    }
    besides {
        /// Embedding server; `None` turns embeddings off.
        #[serde(deserialize_with = "none_if_off")]
        embeddings: Option<EmbeddingSettings>;
    }
}

setting_table! {
    /// Embedding server, configured like a reviewer.
    #[derive(Eq)]
    EmbeddingSettings at "context.embeddings." {
        /// One of [`ReviewerKind::WITH_EMBEDDINGS`].
        kind: ReviewerKind, Form::OneOf(EMBEDDING_WORDS), User;
        /// Name of the embedding model.
        model: String, Form::OptionalText, User;
        /// URL of the server; `None` for OpenAI's own service, or Ollama on this machine.
        #[serde(deserialize_with = "none_if_zero")]
        base_url: Option<String>, Form::OptionalText, User;
        /// Environment variable that holds the API key.
        #[serde(deserialize_with = "none_if_zero")]
        api_key_env: Option<String>, Form::OptionalText, User;
        /// Command that prints the API key.
        #[serde(deserialize_with = "none_if_zero")]
        api_key_cmd: Option<String>, Form::OptionalText, User;
        /// True to send a key over plain http to another machine.
        insecure_http: bool, Form::Flag, User;
        /// Maximum time that building a context waits for the server, over all requests.
        seconds: u64, Form::Count { min: 1, max: 600 }, User;
    }
}

setting_table! {
    /// Use of what reviewers are worth.
    #[derive(Eq)]
    WorthSettings at "worth." {
        /// True if kinds about which a reviewer is almost always wrong are lowered by one priority, and a model is warned.
        steer: bool, Form::Flag, User;
    }
}

setting_table! {
    /// Exchange of decisions and reviews with a team, once `revdeck team join` has begun it.
    #[derive(Eq)]
    TeamSettings at "team." {
        /// Kind of the place where the records are kept.
        backend: TeamBackendKind, Form::OneOf(TeamBackendKind::WORDS), User;
        /// Address of the database, for `postgres`.
        database: String, Form::OptionalText, User;
        /// Records that leave this machine.
        share: ShareMode, Form::OneOf(ShareMode::WORDS), User;
        /// Globs in .gitignore syntax for paths of which nothing leaves this machine.
        exclude: Vec<String>, Form::Patterns, User;
        /// True if learned patterns leave this machine, and those of others are taken over.
        patterns: bool, Form::Flag, User;
        /// Records of others that count.
        accept: AcceptedRecords, Form::OneOf(AcceptedRecords::WORDS), User;
        /// Signing of what leaves this machine, by the key of git's configuration.
        sign: SignChoice, Form::OneOf(SignChoice::WORDS), User;
    }
}

setting_table! {
    /// Switch for learning from reviews.
    #[derive(Eq)]
    LearningSettings at "learning." {
        /// True if reviews, fixes and history teach patterns.
        enabled: bool, Form::Flag, Repository;
    }
    besides {
        /// Layer that set `enabled`.
        #[serde(skip)]
        origin: SettingOrigin;
    }
}

const TABLES: [&[SettingKey]; 13] = [
    Settings::KEYS,
    WindowSettings::KEYS,
    BudgetSettings::KEYS,
    PolicySettings::KEYS,
    AssistantSettings::KEYS,
    RetentionSettings::KEYS,
    WatchSettings::KEYS,
    ResolveSettings::KEYS,
    ContextSettings::KEYS,
    EmbeddingSettings::KEYS,
    LearningSettings::KEYS,
    WorthSettings::KEYS,
    TeamSettings::KEYS,
];

const fn count_keys() -> usize {
    let (mut table, mut count) = (0, 0);
    while table < TABLES.len() {
        count += TABLES[table].len();
        table += 1;
    }
    count
}

const fn join_tables() -> [SettingKey; count_keys()] {
    let mut keys = [Settings::KEYS[0]; count_keys()];
    let (mut table, mut at) = (0, 0);
    while table < TABLES.len() {
        let mut row = 0;
        while row < TABLES[table].len() {
            keys[at] = TABLES[table][row];
            at += 1;
            row += 1;
        }
        table += 1;
    }
    keys
}

/// Every setting with a single value, in the order of `assets/config.toml`.
pub const KEYS: &[SettingKey] = &join_tables();

/// Reads a table from values that have the types of their keys.
///
/// # Errors
///
/// Returns an error if a field has no value, or a value that it cannot hold.
pub(super) fn read_values<'a, T: DeserializeOwned>(
    values: impl IntoIterator<Item = (&'a str, &'a SettingValue)>,
) -> Result<T, serde_json::Error> {
    insert_and_read(Value::Object(Map::new()), values)
}

/// Reads a table like [`read_values`]; a field without a value keeps its default.
///
/// # Errors
///
/// Returns an error if a field cannot hold its value.
pub(super) fn read_values_over<'a, T: Serialize + DeserializeOwned>(
    defaults: &T,
    values: impl IntoIterator<Item = (&'a str, &'a SettingValue)>,
) -> Result<T, serde_json::Error> {
    insert_and_read(serde_json::to_value(defaults)?, values)
}

fn insert_and_read<'a, T: DeserializeOwned>(
    mut root: Value,
    values: impl IntoIterator<Item = (&'a str, &'a SettingValue)>,
) -> Result<T, serde_json::Error> {
    if let Value::Object(table) = &mut root {
        for (name, value) in values {
            insert_value(table, name, serde_json::to_value(value)?);
        }
    }
    serde_json::from_value(root)
}

/// Inserts a value under its dotted name.
fn insert_value(table: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => drop(table.insert(name.to_owned(), value)),
        Some((group, rest)) => {
            if let Value::Object(inner) = table.entry(group).or_insert_with(|| Value::Object(Map::new())) {
                insert_value(inner, rest, value);
            }
        }
    }
}

/// Reads 0 and an empty text as `None`.
fn none_if_zero<'de, D: Deserializer<'de>, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de> + Default + PartialEq,
{
    Ok(Some(T::deserialize(deserializer)?).filter(|value| *value != T::default()))
}

/// Reads a word for nothing (`auto`, `none` or an empty text) as `None`: a word that is no value of the type.
pub(super) fn none_if_no_value<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|text| text.parse().ok()))
}

fn none_if_auto<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Some(String::deserialize(deserializer)?).filter(|text| text != "auto"))
}

/// Reads a table with `kind = "off"` as `None`.
fn none_if_off<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let table = Value::deserialize(deserializer)?;
    if table.get("kind").and_then(Value::as_str) == Some("off") {
        return Ok(None);
    }
    serde_json::from_value(table).map(Some).map_err(D::Error::custom)
}

impl EmbeddingSettings {
    /// Returns the maximum time that building a context waits for the server.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// Returns the settings of a reviewer at the same server, because the rules for the API key are the same.
    pub fn as_reviewer(&self) -> ReviewerSettings {
        ReviewerSettings {
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            api_key_env: self.api_key_env.clone(),
            api_key_cmd: self.api_key_cmd.clone(),
            insecure_http: self.insecure_http,
            ..ReviewerSettings::new(self.kind)
        }
    }
}

impl LearningSettings {
    /// Returns true if only this command's flag turned learning off. Processes that the command starts do not find
    /// this in the settings.
    pub fn is_refused_by_flag(&self) -> bool {
        !self.enabled && matches!(self.origin, SettingOrigin::Flag(_))
    }
}

impl Default for Settings {
    /// Returns the embedded defaults.
    fn default() -> Self {
        super::layers::load_defaults()
            .unwrap_or_else(|error| unreachable!("a test loads the embedded settings: {error}"))
    }
}
