//! Builds the arguments of an agent.
//!
//! - The options restrict an agent to reading, or to writing files of its folder for a fix. They disable other tools,
//!   and settings, hooks and servers from the folder.
//! - The user's arguments come first and win.

use super::FolderAccess;
use super::dialect::AgentDialect;

/// Choices for one run of an agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentOptions<'a> {
    pub model: Option<&'a str>,
    pub effort: Option<&'a str>,
    pub access: FolderAccess,
}

/// The user's arguments, followed by the options that make the program a reviewer.
#[derive(Debug)]
pub struct ArgumentList<'a> {
    theirs: &'a [String],
    /// Alternative names of options.
    aliases: &'static [(&'static str, &'static str)],
    words: Vec<String>,
}

impl ArgumentList<'_> {
    /// Adds an option, unless the user gave it.
    pub fn add(&mut self, option: &[&str]) {
        if !self.is_given(option) {
            self.words.extend(option.iter().map(|&word| word.to_owned()));
        }
    }

    /// Adds each option that the user did not give.
    pub fn add_all(&mut self, options: &[&[&str]]) {
        options.iter().for_each(|option| self.add(option));
    }

    /// Adds the model, for programs that take it as `--model`.
    pub fn add_model(&mut self, model: Option<&str>) {
        if let Some(model) = model.filter(|model| !model.is_empty()) {
            self.add(&["--model", model]);
        }
    }

    /// Returns `true` if the user's arguments contain the option. For `-c key=value` the key is compared.
    fn is_given(&self, option: &[&str]) -> bool {
        let name = match option {
            ["-c", pair] => pair.split('=').next().unwrap_or_default(),
            [name, ..] => name,
            [] => return true,
        };
        let aliases = self.aliases.iter().filter(|(option, _)| *option == name).map(|(_, alias)| *alias);
        let is_of = |word: &str, name| {
            word.strip_prefix(name).is_some_and(|rest: &str| rest.is_empty() || rest.starts_with('='))
        };
        aliases.chain([name]).any(|name| self.theirs.iter().any(|word| is_of(word, name)))
    }
}

/// Builds the arguments of a program: the user's own first, then the options of a reviewer that the user did not give.
pub fn build_arguments(dialect: &dyn AgentDialect, theirs: &[String], options: &AgentOptions<'_>) -> Vec<String> {
    let mut arguments = ArgumentList { theirs, aliases: dialect.option_aliases(), words: theirs.to_vec() };
    dialect.add_options(options, &mut arguments);
    arguments.words
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::dialect::from_setting;
    use super::*;
    use crate::config::CommandDialect;

    fn render_arguments(dialect: CommandDialect, theirs: &[&str]) -> String {
        let theirs: Vec<String> = theirs.iter().map(|&word| word.to_owned()).collect();
        let options = AgentOptions { model: Some("m-1"), effort: Some("high"), access: FolderAccess::Read };
        build_arguments(from_setting(dialect), &theirs, &options).join(" ")
    }

    #[rstest]
    #[case(CommandDialect::Claude, &["--permission-mode acceptEdits", "--tools Read,Grep,Glob,Edit,Write"], &["plan", "Bash"])]
    #[case(CommandDialect::Codex, &["--sandbox workspace-write", "exclude_slash_tmp=true"], &["read-only", "danger"])]
    #[case(CommandDialect::Gemini, &["--approval-mode auto_edit"], &["plan", "yolo"])]
    fn agents_that_fix_write_files_and_do_nothing_else(
        #[case] dialect: CommandDialect,
        #[case] has: &[&str],
        #[case] has_not: &[&str],
    ) {
        let options = AgentOptions { model: None, effort: None, access: FolderAccess::Write };
        let words = build_arguments(from_setting(dialect), &[], &options).join(" ");
        assert!(has.iter().all(|word| words.contains(word)), "{words}");
        assert!(!has_not.iter().any(|word| words.contains(word)), "{words}");
        assert_eq!(build_arguments(from_setting(dialect), &["--tools=Read".to_owned()], &options)[0], "--tools=Read");
    }

    #[test]
    fn agents_are_called_to_read_only() {
        assert_eq!(
            render_arguments(CommandDialect::Claude, &[]),
            "-p --output-format stream-json --verbose --include-partial-messages --strict-mcp-config --setting-sources \
             user --disable-slash-commands --no-session-persistence --permission-mode plan --tools Read,Grep,Glob \
             --model m-1 --effort high"
        );
        assert_eq!(
            render_arguments(CommandDialect::Codex, &[]),
            "exec --json --sandbox read-only --skip-git-repo-check --ephemeral --color never -c \
             project_doc_max_bytes=0 -c web_search=\"disabled\" --model m-1 -c model_reasoning_effort=\"high\" -"
        );
        assert_eq!(
            render_arguments(CommandDialect::Gemini, &[]),
            "--approval-mode plan --output-format stream-json --allowed-mcp-server-names none --extensions none -p Do \
             what the text from standard input says. --model m-1"
        );
        assert_eq!(render_arguments(CommandDialect::Plain, &["--x", "y"]), "--x y");
    }

    #[rstest]
    #[case(CommandDialect::Claude, &["--tools=Read", "--model", "other"], &["--tools Read,Grep,Glob", "m-1"])]
    #[case(CommandDialect::Claude, &["--print"], &["-p"])]
    #[case(CommandDialect::Codex, &["exec", "-s", "workspace-write"], &["exec exec", "read-only"])]
    #[case(CommandDialect::Codex, &["-c", "web_search=\"live\"", "-c", "model_reasoning_effort=low"], &["disabled", "high"])]
    #[case(CommandDialect::Gemini, &["-m", "other", "-o", "json"], &["m-1", "stream-json"])]
    fn what_the_user_chose_is_not_said_again(
        #[case] dialect: CommandDialect,
        #[case] theirs: &[&str],
        #[case] absent: &[&str],
    ) {
        let words = render_arguments(dialect, theirs);
        assert!(words.starts_with(&theirs.join(" ")), "{words}");
        for absent in absent {
            assert!(!format!("{words} ").contains(&format!("{absent} ")), "{words}");
        }
    }
}
