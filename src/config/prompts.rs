//! Provides the prompts for models: `assets/prompts/*.md`, each replaced by the user's own `prompts/NAME.md` if it
//! exists.
//!
//! | file | placeholders, optional ones in brackets |
//! |---|---|
//! | `system.md`, `system-short.md` | none: the reviewer's role, what to report and how; the short one for small windows |
//! | `task.md` | `diff`, [`scope`, `rules`, `patterns`, `known`, `not_shown`, `context`, `later`] |
//! | `more.md` | `diff`, `[later]` |
//! | `turn-investigate.md`, `turn-analyse.md`, `turn-finish.md` | [`turn`, `of`] |
//! | `last.md`, `cut.md`, `retry-empty.md`, `agent.md` | none |
//! | `uncovered.md` | `hunks` |
//! | `retry-refused.md`, `retry-unreadable.md` | `[reason]` |
//! | `summarize.md` | `text`, `[tokens]` |
//! | `masked.md` | `call`, `[tokens]` |
//! | `critic.md` | `finding`, `code` |
//! | `judge.md` | `findings` |
//! | `resolve.md`, `resolve-agent.md`, `resolve-edits.md` | none: the fixer's role and how it works |
//! | `resolve-task.md` | `findings`, [`code`, `again`] |
//! | `resolve-refused.md` | `reasons` |
//! | `ask.md` | none: how a question about a finding is answered |
//! | `ask-task.md` | `finding`, `question`, [`code`, `hunk`, `earlier`] |
//!
//! - A repository cannot set a prompt.
//! - A prompt set ([`super::prompt_sets`]) replaces the prompts further, for the reviews that name it.
//! - A loaded prompt can always be rendered.
//! - Placeholders inside a value are never expanded.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::closest_word::did_you_mean;
use super::settings_file::{SettingsFile, SymlinkPolicy};
use super::{ConfigError, Paths};
use crate::domain::content_hash;

macro_rules! prompts {
    ($($(#[$doc:meta])* $name:ident $file:literal [$($needed:literal),*] [$($optional:literal),*]),+ $(,)?) => {
        /// Name of a prompt.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum PromptName {
            $(
                $(#[$doc])*
                #[doc = concat!("Text: `assets/prompts/", $file, ".md`.")]
                $name
            ),+
        }

        impl PromptName {
            /// All prompts, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Returns the file name without `.md`.
            pub fn file(self) -> &'static str {
                match self { $(Self::$name => $file),+ }
            }

            /// Returns the embedded text.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => include_str!(concat!("../../assets/prompts/", $file, ".md"))),+ }
            }

            /// Returns the placeholders that the text must contain.
            pub fn needed(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$($needed),*]),+ }
            }

            /// Returns the placeholders that the text may leave out.
            pub fn optional(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$($optional),*]),+ }
            }
        }
    };
}

impl PromptName {
    /// Returns true for a prompt of a review or of its second opinions; the others are for fixes and questions.
    pub fn is_of_review(self) -> bool {
        !matches!(
            self,
            Self::Resolve
                | Self::ResolveAgent
                | Self::ResolveEdits
                | Self::ResolveTask
                | Self::ResolveRefused
                | Self::Ask
                | Self::AskTask
        )
    }
}

prompts! {
    /// The reviewer's role, what to report and how.
    System "system" [] [],
    /// The same in a third of the tokens, for a model with a small window and without tools.
    SystemShort "system-short" [] [],
    /// The pinned task.
    Task "task" ["diff"] ["scope", "rules", "patterns", "known", "not_shown", "context", "later"],
    /// The next part of the diff.
    More "more" ["diff"] ["later"],
    TurnInvestigate "turn-investigate" [] ["turn", "of"],
    TurnAnalyse "turn-analyse" [] ["turn", "of"],
    TurnFinish "turn-finish" [] ["turn", "of"],
    /// The last allowed turn.
    Last "last" [] [],
    /// The model says it is done, but changed lines are not reviewed yet.
    Uncovered "uncovered" ["hunks"] [],
    /// The answer was cut at its token limit.
    Cut "cut" [] [],
    RetryEmpty "retry-empty" [] [],
    RetryRefused "retry-refused" [] ["reason"],
    RetryUnreadable "retry-unreadable" [] ["reason"],
    /// Asks the model for a summary of the messages that slide out of the window.
    Summarize "summarize" ["text"] ["tokens"],
    /// Replaces an old tool result.
    Masked "masked" ["call"] ["tokens"],
    /// Asks for a second opinion about one finding.
    Critic "critic" ["finding", "code"] [],
    /// Asks for second opinions about findings of a panel.
    Judge "judge" ["findings"] [],
    /// For agents with their own tools.
    Agent "agent" [] [],
    /// The fixer's role, and what a fix is.
    Resolve "resolve" [] [],
    /// For agents that make a fix in a copy of the files.
    ResolveAgent "resolve-agent" [] [],
    /// For models that make a fix as a list of replacements.
    ResolveEdits "resolve-edits" [] [],
    /// The findings to fix.
    ResolveTask "resolve-task" ["findings"] ["code", "again"],
    /// Edits that could not be applied.
    ResolveRefused "resolve-refused" ["reasons"] [],
    /// How a question about a finding is answered.
    Ask "ask" [] [],
    /// The finding, its code and the question.
    AskTask "ask-task" ["finding", "question"] ["code", "hunk", "earlier"],
}

/// Prompt with the values of its placeholders.
#[derive(Debug, Clone, Copy)]
pub enum Prompt<'a> {
    System,
    SystemShort,
    Task {
        /// Reviewed scope in words.
        scope: &'a str,
        /// The user's and the project's review guidelines; may be empty.
        rules: &'a str,
        /// Learned patterns; may be empty.
        patterns: &'a str,
        /// Earlier findings in parts of the change that are not sent again; may be empty.
        known: &'a str,
        /// Changed files that are not in the diff, by name; may be empty.
        not_shown: &'a str,
        diff: &'a str,
        /// Code around the change; may be empty.
        context: &'a str,
        /// Parts of the diff that follow in later prompts; may be empty.
        later: &'a str,
    },
    More {
        diff: &'a str,
        /// Parts of the diff that follow in later prompts; may be empty.
        later: &'a str,
    },
    TurnInvestigate {
        turn: u32,
        of: u32,
    },
    TurnAnalyse {
        turn: u32,
        of: u32,
    },
    TurnFinish {
        turn: u32,
        of: u32,
    },
    Last,
    Uncovered {
        /// Paths and lines, one hunk per line.
        hunks: &'a str,
    },
    Cut,
    RetryEmpty,
    RetryRefused {
        reason: &'a str,
    },
    RetryUnreadable {
        reason: &'a str,
    },
    Summarize {
        text: &'a str,
        tokens: u64,
    },
    Masked {
        /// Name and arguments of the tool, on one line.
        call: &'a str,
        tokens: u64,
    },
    Critic {
        finding: &'a str,
        code: &'a str,
    },
    Judge {
        /// Numbered findings with what was said about each, and their code.
        findings: &'a str,
    },
    Agent,
    Resolve,
    ResolveAgent,
    ResolveEdits,
    ResolveTask {
        /// Problems with ids, locations and explanations.
        findings: &'a str,
        /// Code around the problems, for models that cannot read files; may be empty.
        code: &'a str,
        /// Findings of the review of an earlier attempt; may be empty.
        again: &'a str,
    },
    ResolveRefused {
        reasons: &'a str,
    },
    Ask,
    AskTask {
        /// The finding as it was reported.
        finding: &'a str,
        /// Code around the finding; empty if it is not shown.
        code: &'a str,
        /// Part of the diff at the finding; may be empty.
        hunk: &'a str,
        /// Earlier questions and answers, oldest first; may be empty.
        earlier: &'a str,
        question: &'a str,
    },
}

impl<'a> Prompt<'a> {
    pub fn name(&self) -> PromptName {
        match self {
            Self::System => PromptName::System,
            Self::SystemShort => PromptName::SystemShort,
            Self::Task { .. } => PromptName::Task,
            Self::More { .. } => PromptName::More,
            Self::TurnInvestigate { .. } => PromptName::TurnInvestigate,
            Self::TurnAnalyse { .. } => PromptName::TurnAnalyse,
            Self::TurnFinish { .. } => PromptName::TurnFinish,
            Self::Last => PromptName::Last,
            Self::Uncovered { .. } => PromptName::Uncovered,
            Self::Cut => PromptName::Cut,
            Self::RetryEmpty => PromptName::RetryEmpty,
            Self::RetryRefused { .. } => PromptName::RetryRefused,
            Self::RetryUnreadable { .. } => PromptName::RetryUnreadable,
            Self::Summarize { .. } => PromptName::Summarize,
            Self::Masked { .. } => PromptName::Masked,
            Self::Critic { .. } => PromptName::Critic,
            Self::Judge { .. } => PromptName::Judge,
            Self::Agent => PromptName::Agent,
            Self::Resolve => PromptName::Resolve,
            Self::ResolveAgent => PromptName::ResolveAgent,
            Self::ResolveEdits => PromptName::ResolveEdits,
            Self::ResolveTask { .. } => PromptName::ResolveTask,
            Self::ResolveRefused { .. } => PromptName::ResolveRefused,
            Self::Ask => PromptName::Ask,
            Self::AskTask { .. } => PromptName::AskTask,
        }
    }

    /// Returns the placeholders with their values.
    fn values(&self) -> Vec<(&'static str, Cow<'a, str>)> {
        let text = |text: &'a str| if text.trim().is_empty() { "none" } else { text }.into();
        let number = |number: u64| Cow::Owned(number.to_string());
        match *self {
            Self::System | Self::SystemShort | Self::Last | Self::Cut | Self::RetryEmpty | Self::Agent => Vec::new(),
            Self::Resolve | Self::ResolveAgent | Self::ResolveEdits | Self::Ask => Vec::new(),
            Self::ResolveTask { findings, code, again } => {
                vec![("findings", text(findings)), ("code", text(code)), ("again", text(again))]
            }
            Self::ResolveRefused { reasons } => vec![("reasons", text(reasons))],
            Self::AskTask { finding, code, hunk, earlier, question } => vec![
                ("finding", text(finding)),
                ("code", text(code)),
                ("hunk", text(hunk)),
                ("earlier", text(earlier)),
                ("question", text(question)),
            ],
            Self::Task { scope, rules, patterns, known, not_shown, diff, context, later } => vec![
                ("scope", text(scope)),
                ("rules", text(rules)),
                ("patterns", text(patterns)),
                ("known", text(known)),
                ("not_shown", text(not_shown)),
                ("diff", text(diff)),
                ("context", text(context)),
                ("later", text(later)),
            ],
            Self::More { diff, later } => vec![("diff", text(diff)), ("later", text(later))],
            Self::TurnInvestigate { turn, of } | Self::TurnAnalyse { turn, of } | Self::TurnFinish { turn, of } => {
                vec![("turn", number(turn.into())), ("of", number(of.into()))]
            }
            Self::Uncovered { hunks } => vec![("hunks", text(hunks))],
            Self::RetryRefused { reason } | Self::RetryUnreadable { reason } => vec![("reason", text(reason))],
            Self::Summarize { text: messages, tokens } => vec![("text", text(messages)), ("tokens", number(tokens))],
            Self::Masked { call, tokens } => vec![("call", text(call)), ("tokens", number(tokens))],
            Self::Critic { finding, code } => vec![("finding", text(finding)), ("code", text(code))],
            Self::Judge { findings } => vec![("findings", text(findings))],
        }
    }
}

/// Prompt texts in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    /// Texts in the order of [`PromptName::ALL`].
    texts: Vec<String>,
}

impl Default for Prompts {
    /// Returns the embedded texts.
    fn default() -> Self {
        Self { texts: PromptName::ALL.iter().map(|name| name.text().trim_end().to_owned()).collect() }
    }
}

impl Prompts {
    /// Loads the embedded texts, replaced by the user's files where they exist.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, is empty, has an unknown placeholder or lacks a required placeholder.
    pub fn load(paths: &Paths) -> Result<Self, ConfigError> {
        let mut prompts = Self::default();
        prompts.replace_from(&paths.prompts_folder(), PromptName::ALL.iter().copied())?;
        Ok(prompts)
    }

    /// Replaces these prompts by the files of a folder, where they exist.
    pub(super) fn replace_from(
        &mut self,
        folder: &Path,
        names: impl Iterator<Item = PromptName>,
    ) -> Result<(), ConfigError> {
        for name in names {
            if let Some(document) = SettingsFile::read(prompt_file(folder, name), SymlinkPolicy::Follow)? {
                check_placeholders(name, &document)?;
                document.text.trim_end().clone_into(&mut self.texts[name as usize]);
            }
        }
        Ok(())
    }

    /// Describes the Markdown files in the folder of the user's prompts that are no prompts, one line each.
    pub fn find_unknown_files(paths: &Paths) -> Vec<String> {
        let unknown = list_prompt_files(&paths.prompts_folder()).into_iter();
        let unknown = unknown.filter(|name| PromptName::ALL.iter().all(|known| known.file() != name));
        unknown.map(|name| describe_unknown_file(&name, PromptName::ALL.iter().copied())).collect()
    }

    /// Returns the prompt with its placeholders filled in.
    pub fn render(&self, prompt: &Prompt<'_>) -> String {
        fill_placeholders(&self.texts[prompt.name() as usize], &prompt.values())
    }

    /// Returns true if the text has this placeholder; the user's own text may leave out optional ones.
    pub fn has_placeholder(&self, name: PromptName, placeholder: &str) -> bool {
        find_placeholders(&self.texts[name as usize]).any(|(_, _, found)| found == placeholder)
    }

    /// Returns a hash (16 hexadecimal digits) that changes with any of the texts that decide what a review reports. It is
    /// the prompt-policy version of reviewers that talk to a model.
    pub fn version(&self) -> String {
        // What is asked after the reviews of a panel is no part of them.
        let named = PromptName::ALL.iter().zip(&self.texts).filter(|(name, _)| **name != PromptName::Judge);
        let parts = named.flat_map(|(name, text)| [name.file().as_bytes(), text.as_bytes()]);
        content_hash(parts).chars().take(16).collect()
    }

    /// Returns a hash (16 hexadecimal digits) of the text with which second opinions on the list of a panel are asked for.
    pub fn judge_version(&self) -> String {
        content_hash([self.texts[PromptName::Judge as usize].as_bytes()]).chars().take(16).collect()
    }
}

/// Returns the path of the file for a prompt in a folder of prompts.
pub(super) fn prompt_file(folder: &Path, name: PromptName) -> PathBuf {
    folder.join(format!("{}.md", name.file()))
}

/// Lists the Markdown files of a folder by their names without `.md`, sorted.
pub(super) fn list_prompt_files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".md").map(str::to_owned));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Describes a Markdown file that is none of these prompts.
pub(super) fn describe_unknown_file(name: &str, known: impl Iterator<Item = PromptName> + Clone) -> String {
    let meant = did_you_mean(name, known.clone().map(PromptName::file));
    let known: Vec<String> = known.map(|name| format!("{}.md", name.file())).collect();
    format!("{name}.md is no prompt; there are: {}{meant}", known.join(", "))
}

fn check_placeholders(name: PromptName, document: &SettingsFile) -> Result<(), ConfigError> {
    let known: Vec<&str> = name.needed().iter().chain(name.optional()).copied().collect();
    let braces = |names: &[&str]| names.iter().map(|name| format!("{{{{{name}}}}}")).collect::<Vec<_>>().join(", ");
    let allowed = if known.is_empty() { "no placeholder".to_owned() } else { braces(&known) };
    let found: Vec<(usize, &str)> = find_placeholders(&document.text).map(|(start, _, name)| (start, name)).collect();
    let wrong = |offset: usize, problem: String| {
        let place = document.location_at(offset);
        Err(ConfigError::Content { place, problem, allowed: allowed.clone() })
    };
    if document.text.trim().is_empty() {
        return wrong(0, "is empty".to_owned());
    }
    if let Some((start, unknown)) = found.iter().find(|(_, name)| !known.contains(name)) {
        return wrong(*start, format!("{{{{{unknown}}}}} is no placeholder of {}.md", name.file()));
    }
    match name.needed().iter().find(|needed| found.iter().all(|(_, name)| name != *needed)) {
        Some(missing) => wrong(0, format!("{}.md needs {{{{{missing}}}}}", name.file())),
        None => Ok(()),
    }
}

/// Finds the placeholders of a text: start byte, end byte (exclusive) and name. Braces around anything but a name
/// stay text.
fn find_placeholders(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + text.get(from..)?.find("{{")?;
            // In a longer run of opening braces, the last two count.
            let start = start + text[start..].bytes().take_while(|byte| *byte == b'{').count() - 2;
            let end = start + 2 + text[start + 2..].find("}}")?;
            let name = text[start + 2..end].trim();
            if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            {
                from = end + 2;
                return Some((start, end + 2, name));
            }
            from = start + 2;
        }
    })
}

/// Replaces the placeholders of a text by their values; a placeholder without a value stays as it is.
fn fill_placeholders(text: &str, values: &[(&'static str, Cow<'_, str>)]) -> String {
    let mut filled = String::with_capacity(text.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>());
    let mut from = 0;
    for (start, end, name) in find_placeholders(text) {
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
            filled.push_str(&text[from..start]);
            filled.push_str(value);
            from = end;
        }
    }
    filled.push_str(&text[from..]);
    filled
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    /// Returns every prompt, with each value marked so that the test can find it.
    fn marked() -> Vec<Prompt<'static>> {
        vec![
            Prompt::System,
            Prompt::SystemShort,
            Prompt::Task {
                scope: "=scope=",
                rules: "=rules=",
                patterns: "=patterns=",
                known: "=known=",
                not_shown: "=not_shown=",
                diff: "=diff=",
                context: "=context=",
                later: "=later=",
            },
            Prompt::More { diff: "=diff=", later: "=later=" },
            Prompt::TurnInvestigate { turn: 71, of: 72 },
            Prompt::TurnAnalyse { turn: 71, of: 72 },
            Prompt::TurnFinish { turn: 71, of: 72 },
            Prompt::Last,
            Prompt::Uncovered { hunks: "=hunks=" },
            Prompt::Cut,
            Prompt::RetryEmpty,
            Prompt::RetryRefused { reason: "=reason=" },
            Prompt::RetryUnreadable { reason: "=reason=" },
            Prompt::Summarize { text: "=text=", tokens: 73 },
            Prompt::Masked { call: "=call=", tokens: 73 },
            Prompt::Critic { finding: "=finding=", code: "=code=" },
            Prompt::Judge { findings: "=findings=" },
            Prompt::Agent,
            Prompt::Resolve,
            Prompt::ResolveAgent,
            Prompt::ResolveEdits,
            Prompt::ResolveTask { findings: "=findings=", code: "=code=", again: "=again=" },
            Prompt::ResolveRefused { reasons: "=reasons=" },
            Prompt::Ask,
            Prompt::AskTask {
                finding: "=finding=",
                code: "=code=",
                hunk: "=hunk=",
                earlier: "=earlier=",
                question: "=question=",
            },
        ]
    }

    #[test]
    fn every_prompt_renders_with_exactly_its_placeholders() {
        let (prompts, marked) = (Prompts::default(), marked());
        assert_eq!(marked.iter().map(Prompt::name).collect::<Vec<_>>(), PromptName::ALL);
        for prompt in &marked {
            let (name, values) = (prompt.name(), prompt.values());
            let mut declared = [name.needed(), name.optional()].concat();
            let mut given: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
            let mut used: Vec<&str> = find_placeholders(name.text()).map(|(_, _, name)| name).collect();
            for names in [&mut declared, &mut given, &mut used] {
                names.sort_unstable();
            }
            assert_eq!(declared, given, "{name:?}: what is declared is given");
            assert_eq!(declared, used, "{name:?}: what is declared stands in the text, once");
            let rendered = prompts.render(prompt);
            assert!(values.iter().all(|(_, value)| rendered.contains(&**value)), "{rendered}");
            assert_eq!(find_placeholders(&rendered).count(), 0, "{rendered}");
            assert!(!rendered.ends_with('\n') && !rendered.contains('\r'), "{name:?}");
        }
    }

    #[test]
    fn a_value_is_never_expanded_again() {
        let prompts = Prompts::default();
        let hostile = "{{later}} {{diff}} {{scope}}";
        let rendered = prompts.render(&Prompt::Task {
            scope: hostile,
            rules: "",
            patterns: " ",
            known: "",
            not_shown: "",
            diff: hostile,
            context: "",
            later: "LATER",
        });
        assert_eq!(rendered.matches(hostile).count(), 2, "{rendered}");
        assert_eq!(rendered.matches("LATER").count(), 1, "{rendered}");
        assert!(rendered.contains("<rules>\nnone\n</rules>") && rendered.contains("<patterns>\nnone\n"), "{rendered}");
    }

    #[test]
    fn braces_that_are_none_of_ours_are_text() {
        let values = [("a", Cow::Borrowed("1")), ("b", Cow::Borrowed("{{a}}"))];
        for (text, expected) in [
            ("", ""),
            ("{{a}}", "1"),
            ("x{{ a }}y{{a}}", "x1y1"),
            ("{{{a}}}", "{1}"),
            ("{{}} {{a b}} {{a", "{{}} {{a b}} {{a"),
            ("{{ {{a}} }}", "{{ 1 }}"),
            ("{{b}}{{a}}", "{{a}}1"),
            ("ü{{a}}ü", "ü1ü"),
            ("{{c}}", "{{c}}"),
        ] {
            assert_eq!(fill_placeholders(text, &values), expected, "{text:?}");
        }
    }

    #[test]
    fn the_users_own_texts_are_checked() {
        let home = tempfile::tempdir().expect("a folder");
        let paths = Paths::from_home(home.path());
        assert_eq!(Prompts::load(&paths).expect("none"), Prompts::default());
        fs::create_dir_all(paths.prompts_folder()).expect("a folder");
        let with = |name: PromptName, text: &str| {
            fs::write(prompt_file(&paths.prompts_folder(), name), text).expect("a file");
            let loaded = Prompts::load(&paths).map_err(|error| format!("{error}; {}", error.hint()));
            fs::remove_file(prompt_file(&paths.prompts_folder(), name)).expect("a file");
            loaded
        };
        let own = with(PromptName::More, "More.\n{{diff}}\n\n").expect("sound");
        assert_eq!(own.render(&Prompt::More { diff: "D", later: "L" }), "More.\nD");
        assert_ne!(own.version(), Prompts::default().version());
        for (name, text, problem) in [
            (
                PromptName::More,
                "{{diff}}\nx {{dif}}",
                "more.md:2:3: {{dif}} is no placeholder of more.md; allowed: {{diff}}, {{later}}",
            ),
            (PromptName::Task, "Review it.", "task.md:1:1: task.md needs {{diff}}"),
            (
                PromptName::System,
                "Hello {{name}}",
                "system.md:1:7: {{name}} is no placeholder of system.md; allowed: no placeholder",
            ),
            (PromptName::Last, " \n", "last.md:1:1: is empty"),
        ] {
            let error = with(name, text).expect_err(text);
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn the_version_depends_on_every_text() {
        let prompts = Prompts::default();
        assert_eq!(prompts.version().len(), 16);
        for index in 0..prompts.texts.len() {
            let mut other = prompts.clone();
            other.texts[index].push('.');
            let is_outside = PromptName::ALL[index] == PromptName::Judge;
            assert_eq!(other.version() == prompts.version(), is_outside, "{:?}", PromptName::ALL[index]);
        }
    }

    #[test]
    fn the_system_prompt_names_every_kind_and_priority() {
        let text = PromptName::System.text();
        for kind in crate::domain::Kind::ALL {
            assert_eq!(text.matches(&format!("- {}: ", kind.word())).count(), 1, "{kind}");
        }
        for priority in crate::domain::Priority::ALL {
            assert!(text.contains(&format!("- {priority}: ")), "{priority}");
        }
        let short = PromptName::SystemShort.text();
        for kind in crate::domain::Kind::ALL {
            assert!(short.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == kind.word()), "{kind}");
        }
        for priority in crate::domain::Priority::ALL {
            assert!(short.contains(&format!("{priority} ")), "{priority}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn filling_never_panics_and_keeps_values(text in "[{}a b\\PC]{0,40}", value in "[{}a]{0,12}") {
            let values = [("a", Cow::Borrowed(value.as_str()))];
            let filled = fill_placeholders(&text, &values);
            let count = find_placeholders(&text).filter(|(_, _, name)| *name == "a").count();
            prop_assert!(filled.matches(value.as_str()).count() >= count || value.is_empty());
        }
    }
}
