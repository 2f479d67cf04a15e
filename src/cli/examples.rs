//! Examples of the commands, for `--help` and the man pages. A test parses each of them.

use clap::Command;

/// Command line, and what it does.
type Example = (&'static str, &'static str);

/// Examples of each command that users start themselves, by its name; the empty name is `revdeck` alone.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "",
        &[
            ("revdeck", "open the cockpit"),
            ("revdeck review --wait", "review what changed and print the findings"),
            ("revdeck review --commit HEAD --reviewer sonnet", "a model reviews the last commit"),
            ("revdeck findings --priority p1", "list what is urgent"),
            ("revdeck ledger", "what a coding assistant gets at its next turn"),
        ],
    ),
    (
        "review",
        &[
            ("revdeck review", "review what changed in the background"),
            ("revdeck review --range main...HEAD --wait --fail-on p1", "for CI: exit code 1 if it is urgent"),
            ("revdeck review --staged --wait", "before a commit"),
            ("revdeck review --commit HEAD~2 --reviewer sonnet", "one commit, by a model"),
            ("revdeck review --reviewer sonnet,builtin --wait", "by both, in one list"),
            ("revdeck review --reviewer sonnet --prompt-set strict", "with the prompts of prompts/strict/"),
        ],
    ),
    ("runs", &[("revdeck runs --limit 20", "the 20 newest runs"), ("revdeck runs --format json", "for a script")]),
    (
        "findings",
        &[
            ("revdeck findings", "what nobody has decided"),
            ("revdeck findings --priority p1 --path src/net", "what is urgent in a folder"),
            ("revdeck findings --status all --format sarif", "for another tool"),
        ],
    ),
    (
        "show",
        &[("revdeck show latest", "the newest run"), ("revdeck show f_3b1f", "a finding with its code and history")],
    ),
    (
        "details",
        &[
            ("revdeck details latest --max-bytes 20000", "the newest run, short enough for an assistant"),
            ("revdeck details latest f_3b1f", "one finding of it"),
        ],
    ),
    (
        "triage",
        &[
            ("revdeck triage f_3b1f addressed", "it is fixed"),
            ("revdeck triage f_3b1f f_77a0 dismissed --reason intended", "two findings are meant so"),
            ("revdeck triage f_3b1f snoozed --until 3d", "out of sight for three days"),
            ("revdeck triage f_3b1f rated --as p1", "more urgent than its reviewer thought"),
        ],
    ),
    ("undo", &[("revdeck undo", "take the last decision back")]),
    ("redo", &[("revdeck redo", "decide again what was undone last")]),
    (
        "fix",
        &[
            ("revdeck fix f_3b1f", "make a patch"),
            ("revdeck fix show f_3b1f", "look at it"),
            ("revdeck fix apply f_3b1f", "change your files; `revdeck fix undo f_3b1f` takes it back"),
        ],
    ),
    ("fixes", &[("revdeck fixes", "all patches and what became of them")]),
    (
        "ask",
        &[
            ("revdeck ask f_3b1f \"why is this a problem?\"", "it defends, explains or withdraws it"),
            ("revdeck ask f_3b1f \"the caller checks it\" --reviewer sonnet", "ask another model"),
            ("revdeck ask f_3b1f --stop", "stop a question that is on its way"),
        ],
    ),
    ("mute", &[("revdeck mute MAGIC_NUMBERS", "hold this kind back"), ("revdeck mute", "list what is muted")]),
    ("unmute", &[("revdeck unmute MAGIC_NUMBERS", "report this kind again")]),
    ("cancel", &[("revdeck cancel latest", "end the newest run; what it found stays")]),
    ("pause", &[("revdeck pause latest", "no further request to its model")]),
    ("resume", &[("revdeck resume latest", "go on where it paused")]),
    (
        "watch",
        &[
            ("revdeck watch", "review what changes until Ctrl-C"),
            ("revdeck watch --status", "is somebody watching?"),
            ("revdeck watch --stop", "end the watcher of this repository"),
        ],
    ),
    ("snooze", &[("revdeck snooze 2h", "no automatic reviews for two hours"), ("revdeck snooze off", "go on at once")]),
    (
        "status",
        &[("revdeck status --line", "for a prompt or a status line"), ("revdeck status --format json", "for a script")],
    ),
    ("repos", &[("revdeck repos", "what waits in each repository")]),
    (
        "ledger",
        &[
            ("revdeck ledger", "what an assistant gets"),
            ("revdeck ledger --max-tokens 600 --session s1 --record", "only what the session does not know"),
        ],
    ),
    ("mcp", &[("revdeck mcp --read-only", "an assistant may read, and request nothing")]),
    ("lsp", &[("revdeck lsp --priority p1", "show only what is urgent in the editor")]),
    (
        "stats",
        &[
            ("revdeck stats --since 7d", "cost, outcomes and precision of a week"),
            ("revdeck stats --by reviewer", "what each reviewer is worth"),
            ("revdeck stats --run latest", "one run"),
        ],
    ),
    (
        "compare",
        &[
            ("revdeck compare ar_01J8 latest", "two reviews of one change"),
            ("revdeck compare sonnet gpt --since 30d", "all changes of a month that both reviewed"),
            ("revdeck compare ar_01J8 ar_01J9 --format json", "for a script"),
            ("revdeck compare sonnet --prompt-set default,strict", "two prompt sets, on the latest change of both"),
        ],
    ),
    (
        "knowledge",
        &[
            ("revdeck knowledge list", "the patterns that reviews have taught"),
            ("revdeck knowledge export patterns.json", "for a colleague; the file contains no code"),
        ],
    ),
    (
        "context",
        &[
            ("revdeck context --commit HEAD --explain", "what a model would get, and why"),
            ("revdeck context --task \"retry on 429\" --budget 8000", "code for a task"),
        ],
    ),
    (
        "smells",
        &[("revdeck smells src", "any folder, without a repository"), ("revdeck smells src --metrics", "with figures")],
    ),
    (
        "store",
        &[
            ("revdeck store verify", "check every file"),
            ("revdeck store prune", "remove journals of old runs; findings stay"),
        ],
    ),
    (
        "import",
        &[
            ("revdeck import sarif report.sarif", "the findings of another tool"),
            ("revdeck import checkstyle lint.xml --tool lint", "name the tool"),
        ],
    ),
    (
        "publish",
        &[
            ("revdeck publish github --pr 42", "comment on a pull request"),
            ("revdeck publish gitlab --mr 7", "comment on a merge request"),
        ],
    ),
    (
        "team",
        &[
            ("revdeck team join", "take part: says what will leave this machine"),
            ("revdeck team join ../team.git", "keep the records in a bare repository"),
            ("revdeck team", "machines, what waits, about what people disagree"),
            ("revdeck team forget lovelace-3f9a2c1d", "read a machine no more"),
        ],
    ),
    (
        "sync",
        &[
            ("revdeck sync --dry-run --show", "print exactly what would be sent"),
            ("revdeck sync", "send what is new here, take over what is new elsewhere"),
        ],
    ),
    (
        "hook",
        &[
            ("revdeck hook install git", "review every commit"),
            ("revdeck hook install claude-code", "a coding assistant hears of findings"),
            ("revdeck hook status", "what is installed"),
        ],
    ),
    (
        "config",
        &[
            ("revdeck config show", "the settings and where they come from"),
            ("revdeck config path", "where your files are"),
        ],
    ),
    ("keys", &[("revdeck keys", "every key, and where your files bind it")]),
    (
        "reviewers",
        &[
            ("revdeck reviewers list", "who can review"),
            ("revdeck reviewers test sonnet", "one small request"),
            ("revdeck reviewers discover", "models of Ollama and llama.cpp on this machine"),
            ("revdeck reviewers discover qwen3-coder:30b --add", "make one of them a reviewer"),
        ],
    ),
    ("tokens", &[("revdeck tokens src/main.rs", "how large a file is for a model")]),
    ("doctor", &[("revdeck doctor", "what is wrong, and what to do")]),
    ("completions", &[("revdeck completions zsh", "a script for the shell to read")]),
    ("man", &[("revdeck man --out man1", "one page per command"), ("revdeck man", "the page of revdeck itself")]),
];

/// Adds the examples to the help of a command and its subcommands.
pub fn with_examples(mut command: Command) -> Command {
    for (name, examples) in EXAMPLES {
        command = match *name {
            "" => add(command, examples),
            name => command.mut_subcommand(name, |subcommand| add(subcommand, examples)),
        };
    }
    command
}

fn add(command: Command, examples: &[Example]) -> Command {
    let width = examples.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let mut text = "Examples:".to_owned();
    for (line, effect) in examples {
        text.push_str(&format!("\n  {line:<width$}   {effect}"));
    }
    let text = match command.get_after_help() {
        Some(before) => format!("{text}\n\n{before}"),
        None => text,
    };
    command.after_help(text)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::args::Cli;

    /// Splits a command line as a shell does, as far as the examples need it.
    fn split_words(line: &str) -> Vec<&str> {
        let parts = line.split('"').enumerate();
        parts.flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }).collect()
    }

    #[test]
    fn every_example_is_a_command_line_of_its_command() {
        for (name, examples) in EXAMPLES {
            let width = examples.iter().map(|(line, _)| line.len()).max().expect("an example");
            for (line, effect) in *examples {
                let words = split_words(line);
                assert!(Cli::try_parse_from(&words).is_ok(), "{line}: {:?}", Cli::try_parse_from(&words).err());
                assert!(name.is_empty() || words.get(1).is_some_and(|word| *word == *name), "{line}");
                assert!(!effect.is_empty(), "{line}");
                assert!(width + effect.len() + 5 <= 100, "wider than the help: {line}");
            }
        }
    }

    #[test]
    fn every_command_that_users_start_has_examples() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
        let evaluation = ["context-eval", "fit-weights", "replay"];
        for name in visible.map(Command::get_name).filter(|name| !evaluation.contains(name)) {
            assert!(EXAMPLES.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
