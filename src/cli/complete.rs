//! Completion in shells: the script of `revdeck completions SHELL` asks this process for candidates, so that ids of runs,
//! findings, fixes and patterns, and the names of reviewers, complete.
//!
//! - A shell waits for [`MAX_WAIT`] at most: candidates that come later are left out.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::CommandFactory;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};

use super::args::Cli;
use super::knowledge::pattern_output::format_forms;
use super::session::read_variable;
use crate::config::{self, MistakePolicy, Paths, RepositorySource, RequiredAssets, Settings, SettingsSources};
use crate::domain::text::sanitize_line;
use crate::git::Repo;
use crate::knowledge::builtin_patterns;
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::pattern::Pattern;
use crate::masking::mask_name;
use crate::runner::open_store;
use crate::store::{FindingRow, Store, StoreView};

/// Environment variable in which the script names its shell.
pub const SHELL_VARIABLE: &str = "REVDECK_COMPLETE";
/// Longest wait for candidates: a person who presses Tab feels more.
const MAX_WAIT: Duration = Duration::from_millis(40);
/// Maximum number of runs, and of their findings, among the candidates.
const MAX_LISTED_RUNS: usize = 40;
const MAX_LISTED_FINDINGS: usize = 200;

/// Answers a shell that asks for candidates and ends the process; returns if no shell asks.
pub fn answer_shell() {
    CompleteEnv::with_factory(Cli::command).var(SHELL_VARIABLE).bin("revdeck").complete();
}

/// Returns the script that makes a shell ask; `None` for an unknown shell.
pub fn registration_script(shell: &str) -> Option<Vec<u8>> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    shells.completer(shell)?.write_registration(SHELL_VARIABLE, "revdeck", "revdeck", "revdeck", &mut script).ok()?;
    Some(script)
}

/// Lists the newest runs.
pub fn list_runs() -> Vec<CompletionCandidate> {
    list_in_time(|| {
        let view = open()?.recent_view(MAX_LISTED_RUNS).ok()?;
        Some(run_candidates(&view))
    })
}

/// Lists the findings of the newest runs.
pub fn list_findings() -> Vec<CompletionCandidate> {
    list_in_time(|| {
        let view = open()?.recent_view(MAX_LISTED_RUNS).ok()?;
        Some(finding_candidates(&view))
    })
}

/// Lists the newest runs and their findings.
pub fn list_runs_and_findings() -> Vec<CompletionCandidate> {
    list_in_time(|| {
        let view = open()?.recent_view(MAX_LISTED_RUNS).ok()?;
        let mut listed = run_candidates(&view);
        listed.extend(finding_candidates(&view));
        Some(listed)
    })
}

fn run_candidates(view: &StoreView) -> Vec<CompletionCandidate> {
    let runs = (0..view.run_count().min(MAX_LISTED_RUNS)).map(|index| view.run(index));
    let listed = runs.map(|run| candidate(run.id, &format!("{} {} {}", run.status, run.scope, run.reviewer)));
    std::iter::once(candidate("latest", "the newest run")).chain(listed).collect()
}

fn finding_candidates(view: &StoreView) -> Vec<CompletionCandidate> {
    let findings = (0..view.finding_count().min(MAX_LISTED_FINDINGS)).map(|index| view.finding(index));
    let describe = |finding: &FindingRow<'_>| format!("{}:{} {}", finding.path, finding.line_start, finding.title);
    findings.map(|finding| candidate(finding.id, &describe(&finding))).collect()
}

/// Lists the fixes.
pub fn list_fixes() -> Vec<CompletionCandidate> {
    list_in_time(|| {
        let fixes = open()?.fixes().ok()?;
        let listed = fixes.iter().take(MAX_LISTED_RUNS).map(|fix| candidate(fix.fix_id.as_str(), fix.status.word()));
        Some(std::iter::once(candidate("latest", "the newest fix")).chain(listed).collect())
    })
}

/// Lists the reviewers.
pub fn list_reviewers() -> Vec<CompletionCandidate> {
    list_in_time(|| {
        let reviewers = load_settings()?.reviewers;
        let named = reviewers.iter().filter(|(name, _)| *name != "builtin");
        let named =
            named.map(|(name, reviewer)| candidate(name, &format!("{} {}", reviewer.kind.word(), reviewer.model)));
        Some(std::iter::once(candidate("builtin", "offline, at no cost")).chain(named).collect())
    })
}

/// Lists the panels.
pub fn list_panels() -> Vec<CompletionCandidate> {
    list_in_time(|| {
        let panels = load_settings()?.panels;
        Some(panels.values().map(|panel| candidate(&panel.name, &panel.reviewers.join(", "))).collect())
    })
}

/// Lists the prompt sets.
pub fn list_prompt_sets() -> Vec<CompletionCandidate> {
    list_in_time(|| {
        let paths = Paths::resolve(std::env::var_os(Paths::HOME_VARIABLE).as_deref()).ok()?;
        let sets = config::list_prompt_sets(&paths);
        let listed = sets.iter().map(|set| candidate(set, "a folder of prompts"));
        Some(
            std::iter::once(candidate(config::DEFAULT_PROMPT_SET, "the prompts outside of a set"))
                .chain(listed)
                .collect(),
        )
    })
}

/// Loads the user's settings, as far as they can be read.
fn load_settings() -> Option<Settings> {
    let paths = Paths::resolve(std::env::var_os(Paths::HOME_VARIABLE).as_deref()).ok()?;
    let sources = SettingsSources {
        paths: &paths,
        repository: RepositorySource::None,
        environment: &read_variable,
        flags: &[],
        texts: RequiredAssets::None,
        mistakes: MistakePolicy::Warn,
    };
    Some(config::load_settings(sources).ok()?.settings)
}

/// Lists the patterns of the knowledge cache.
pub fn list_patterns() -> Vec<CompletionCandidate> {
    list_in_time(|| Some(known_patterns()?.0))
}

/// Lists the patterns, and the kinds that were counted, for commands that take both.
pub fn list_patterns_and_kinds() -> Vec<CompletionCandidate> {
    list_in_time(|| {
        let (mut listed, kinds) = known_patterns()?;
        listed.extend(kinds);
        Some(listed)
    })
}

/// Returns the patterns of all languages, and the counted kinds.
fn known_patterns() -> Option<(Vec<CompletionCandidate>, Vec<CompletionCandidate>)> {
    let paths = Paths::resolve(std::env::var_os(Paths::HOME_VARIABLE).as_deref()).ok()?;
    let cache = KnowledgeCache::open(&paths.knowledge);
    let (mut patterns, mut kinds) = (Vec::new(), Vec::new());
    for language in builtin_patterns::languages() {
        let known = cache.load_language(language).ok()?;
        let help = |pattern: &Pattern| format!("{} {}", language.name(), format_forms(pattern));
        patterns.extend(known.patterns.iter().map(|pattern| candidate(pattern.id.as_str(), &help(pattern))));
        kinds.extend(known.kinds.keys().map(|kind| candidate(&format!("{}/{kind}", language.name()), "kind")));
    }
    Some((patterns, kinds))
}

/// Builds a candidate; its help may name a path or a branch, so its keys are masked.
fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(sanitize_line(&mask_name(help)).into_owned().into()))
}

/// Opens the store of the repository around the folder of `-C`, or around the current folder.
fn open() -> Option<Store> {
    let paths = Paths::resolve(std::env::var_os(Paths::HOME_VARIABLE).as_deref()).ok()?;
    let folder = find_folder(std::env::args_os().skip(1)).unwrap_or_else(|| PathBuf::from("."));
    let repo = Repo::discover(&folder).ok()?;
    open_store(&repo, &paths).ok()
}

/// Returns the folder that a command line names with `-C` or `--directory`.
fn find_folder(words: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    let mut words = words.peekable();
    let mut found = None;
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if matches!(&*text, "-C" | "--directory") {
            found = words.peek().map(PathBuf::from).or(found);
        } else if let Some(folder) = text.strip_prefix("--directory=").or_else(|| text.strip_prefix("-C")) {
            found = Some(PathBuf::from(folder));
        }
    }
    found
}

/// Runs a search on a thread of its own; returns nothing if it takes too long.
fn list_in_time(
    search: impl FnOnce() -> Option<Vec<CompletionCandidate>> + Send + 'static,
) -> Vec<CompletionCandidate> {
    let (sender, found) = channel();
    // The thread ends with the process.
    std::thread::spawn(move || sender.send(search().unwrap_or_default()));
    found.recv_timeout(MAX_WAIT).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_command_line_is_found() {
        for (line, expected) in [
            ("-- revdeck show f_", None),
            ("-- revdeck -C /a show f_", Some("/a")),
            ("-- revdeck --directory=/a -C/b show", Some("/b")),
            ("-- revdeck show -C", None),
        ] {
            let words = line.split(' ').map(OsString::from);
            assert_eq!(find_folder(words), expected.map(PathBuf::from), "{line}");
        }
    }
}
