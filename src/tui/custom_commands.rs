//! Runs the user's own commands: a program in the root of the working tree, with fields of the selected item, and what the
//! user answers to its questions, as its arguments.
//!
//! - No shell reads a field or an answer. With `shell = true` it becomes a quoted variable of the environment in the command
//!   line, so that the name of a file cannot run anything.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use super::app::App;
use super::message::DetailSubject;
use crate::config::{CommandField, CommandPart, CommandPlace, CommandPrompt, CommandWord, CustomCommand};
use crate::domain::text;
use crate::masking::Mask;

/// Most bytes of a program's output that are kept for the message.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;
/// Most characters of output in a message.
const MAX_SHOWN_CHARACTERS: usize = 160;

/// Command with the values of its fields, ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandCall {
    /// Name of the command.
    pub name: String,
    /// Place in which the program runs.
    pub place: CommandPlace,
    /// True if its output in the terminal stays until the user presses Enter.
    pub pause: bool,
    /// Program and arguments.
    pub words: Vec<String>,
    /// Variables of the environment with the fields of the selected item and the answers.
    pub variables: Vec<(String, String)>,
}

/// Command with the fields of the selected item, which may still have to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandForm {
    command: CustomCommand,
    /// Fields that the selected item had when the command was called.
    fields: Vec<(CommandField, String)>,
    /// Answers to the first questions.
    answers: Vec<String>,
}

impl CommandForm {
    /// Takes the fields of the selected item.
    ///
    /// # Errors
    ///
    /// Returns the reason if a field that the command needs has no value.
    pub fn new(app: &App, command: &CustomCommand) -> Result<Self, String> {
        let known = CommandField::ALL.iter().filter_map(|field| Some((*field, field_value(app, *field)?)));
        let fields: Vec<(CommandField, String)> = known.collect();
        let mut used = command.run.iter().flat_map(|word| &word.0).filter_map(|part| match part {
            CommandPart::Field(field) => Some(*field),
            CommandPart::Text(_) | CommandPart::Answer(_) => None,
        });
        if let Some(missing) = used.find(|field| !fields.iter().any(|(known, _)| known == field)) {
            return Err(format!("{} needs {{{missing}}}, which nothing selected has", command.display_name()));
        }
        Ok(Self { command: command.clone(), fields, answers: Vec::new() })
    }

    /// Returns the name of the command, safe for a terminal.
    pub fn name(&self) -> String {
        self.command.display_name()
    }

    /// Returns the question that is asked next; `None` if all are answered.
    pub fn next_prompt(&self) -> Option<&CommandPrompt> {
        self.command.prompts.get(self.answers.len())
    }

    /// Returns the title of the next question, safe for a terminal.
    pub fn question(&self) -> String {
        let title = self.next_prompt().map_or("", |prompt| prompt.title.as_str());
        text::sanitize_line(title).into_owned()
    }

    /// Describes which of the questions is the next one, `2 of 3`; empty if there is only one.
    pub fn describe_step(&self) -> String {
        match self.command.prompts.len() {
            0 | 1 => String::new(),
            all => format!("{} of {all}", self.answers.len() + 1),
        }
    }

    /// Answers the next question.
    pub fn with_answer(&self, answer: &str) -> Self {
        let mut answered = self.clone();
        answered.answers.push(answer.to_owned());
        answered
    }

    /// Fills the arguments. A question without an answer has an empty one.
    pub fn into_call(self) -> CommandCall {
        let CustomCommand { run, prompts, shell, .. } = &self.command;
        let answers = prompts.iter().zip(self.answers.iter().map(String::as_str).chain(std::iter::repeat("")));
        let answers: Vec<(&str, &str)> = answers.map(|(prompt, answer)| (prompt.name.as_str(), answer)).collect();
        let fill_part = |part: &CommandPart| match part {
            CommandPart::Text(text) => text.clone(),
            CommandPart::Field(field) if *shell => quote_variable(&variable_name(*field)),
            CommandPart::Answer(name) if *shell => quote_variable(&answer_variable(name)),
            CommandPart::Field(field) => {
                let value = self.fields.iter().find(|(known, _)| known == field);
                value.map_or_else(String::new, |(_, value)| value.clone())
            }
            CommandPart::Answer(name) => {
                let value = answers.iter().find(|(known, _)| known == name);
                value.map_or_else(String::new, |(_, value)| (*value).to_owned())
            }
        };
        let fill_word = |word: &CommandWord| word.0.iter().map(fill_part).collect::<String>();
        let mut words: Vec<String> = run.iter().map(fill_word).collect();
        if *shell {
            words.splice(..0, ["sh".to_owned(), "-c".to_owned()]);
        }
        let variables = self.fields.iter().map(|(field, value)| (variable_name(*field), value.clone()));
        let answered = answers.iter().map(|(name, value)| (answer_variable(name), (*value).to_owned()));
        CommandCall {
            name: self.command.name.clone(),
            place: self.command.place,
            pause: self.command.pause,
            words,
            variables: variables.chain(answered).collect(),
        }
    }
}

/// Returns a variable in a command line of a shell, which does not parse its value.
fn quote_variable(name: &str) -> String {
    format!("\"${{{name}}}\"")
}

/// Returns the names of the variables with fields that a command of the user gets.
pub fn list_variables() -> Vec<String> {
    CommandField::ALL.iter().map(|field| variable_name(*field)).collect()
}

fn variable_name(field: CommandField) -> String {
    format!("REVDECK_{}", field.word().to_ascii_uppercase())
}

/// Beginning of the variables with answers; no setting of revdeck has a variable with it.
pub const ANSWER_VARIABLES: &str = "REVDECK_ANSWER_";

fn answer_variable(name: &str) -> String {
    format!("{ANSWER_VARIABLES}{}", name.to_ascii_uppercase())
}

/// Returns the value of a field for the item that the detail shows.
fn field_value(app: &App, field: CommandField) -> Option<String> {
    let finding = match &app.detail.subject {
        DetailSubject::Finding(id) => app.finding_by_id(id),
        _ => None,
    };
    match (field, &app.detail.subject) {
        (CommandField::Run, DetailSubject::Run(run) | DetailSubject::File { run, .. }) => Some(run.clone()),
        (CommandField::Run, _) => Some(finding?.last_run.to_owned()),
        (CommandField::Path, DetailSubject::File { path, .. }) => Some(protect_path(path)),
        (CommandField::Path, _) => Some(protect_path(finding?.path)),
        (CommandField::Line | CommandField::EndLine, DetailSubject::File { .. }) => Some("1".to_owned()),
        (CommandField::Line, _) => Some(finding?.line_start.to_string()),
        (CommandField::EndLine, _) => Some(finding?.line_end.to_string()),
        (CommandField::Id, _) => Some(finding?.id.to_owned()),
        (CommandField::Kind, _) => Some(finding?.kind.to_string()),
        (CommandField::Priority, _) => Some(finding?.priority.to_string()),
        (CommandField::Status, _) => finding.map(|finding| app.current_status(&finding).to_string()),
        (CommandField::Title, _) => Some(finding?.title.to_owned()),
    }
}

/// Returns a path that no program takes for an option.
fn protect_path(path: &str) -> String {
    if path.starts_with('-') { format!("./{path}") } else { path.to_owned() }
}

/// Runs a command beside the cockpit and returns its result in one line.
///
/// # Errors
///
/// Returns one line if the program cannot be started or fails.
pub fn run_in_background(call: &CommandCall, root: &Path) -> Result<String, String> {
    let mut command = build_command(call, root)?;
    // One pipe for both outputs keeps their lines in order.
    let piped = io::pipe().and_then(|(reader, writer)| Ok((reader, writer.try_clone()?, writer)));
    let (mut reader, output, errors) = piped.map_err(|error| describe(call, &error.to_string(), &[]))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let spawned = command.spawn();
    // The command holds the write ends until it is dropped.
    drop(command);
    let mut child =
        spawned.map_err(|error| describe(call, &format!("cannot start {}: {error}", call.words[0]), &[]))?;
    let mut printed = Vec::new();
    let _ = reader.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut printed);
    let _ = io::copy(&mut reader, &mut io::sink());
    judge(call, child.wait(), &printed)
}

/// Runs a command in the terminal, which the cockpit has released, and returns its result in one line.
///
/// # Errors
///
/// Returns one line if the program cannot be started or fails.
pub fn run_in_terminal(call: &CommandCall, root: &Path) -> Result<String, String> {
    judge(call, build_command(call, root)?.status(), &[])
}

/// Says how a program ended, and that Enter goes back. What was typed while the program ran is not an answer.
///
/// # Errors
///
/// Returns an error if there is no terminal.
pub fn ask_for_enter(said: &str) -> io::Result<()> {
    #[cfg(unix)]
    rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush)?;
    let mut terminal = io::stdout().lock();
    write!(terminal, "\n{said}. Enter goes back to revdeck. ")?;
    terminal.flush()
}

fn build_command(call: &CommandCall, root: &Path) -> Result<Command, String> {
    let Some((program, arguments)) = call.words.split_first() else {
        return Err(describe(call, "there is no program to run", &[]));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root).envs(call.variables.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

fn judge(call: &CommandCall, ended: io::Result<ExitStatus>, printed: &[u8]) -> Result<String, String> {
    match ended {
        Ok(status) if status.success() => Ok(describe(call, "done", printed)),
        Ok(status) => Err(describe(call, &format!("ended with {status}"), printed)),
        Err(error) => Err(describe(call, &format!("cannot run {}: {error}", call.words[0]), printed)),
    }
}

/// Describes a result with the last line that the program printed: that is where programs sum up.
fn describe(call: &CommandCall, outcome: &str, printed: &[u8]) -> String {
    let printed = String::from_utf8_lossy(printed);
    let printed = Mask::On.mask_text(None, &printed);
    let last = printed.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let last = text::sanitize_line(last);
    let shown: String = last.chars().take(MAX_SHOWN_CHARACTERS).collect();
    let name = text::sanitize_line(&call.name);
    match shown.as_str() {
        "" => format!("{name}: {outcome}"),
        shown => format!("{name}: {outcome}: {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(words: &[&str], path: &str) -> CommandCall {
        CommandCall {
            name: "mine".to_owned(),
            place: CommandPlace::Background,
            pause: false,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            variables: vec![("REVDECK_PATH".to_owned(), path.to_owned())],
        }
    }

    #[test]
    fn a_program_says_how_it_ended_in_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |words: &[&str]| run_in_background(&call(words, "a.rs"), folder.path());
        for (words, expected) in [
            (&["true"][..], Ok("mine: done")),
            (&["echo", "a b", "$REVDECK_PATH"], Ok("mine: done: a b $REVDECK_PATH")),
            (&["sh", "-c", "echo one; echo two; echo"], Ok("mine: done: two")),
            (&["sh", "-c", "echo two >&2; exit 3"], Err("mine: ended with exit status: 3: two")),
            (&["sh", "-c", "printf 'a\\033[31mb'"], Ok("mine: done: a\u{fffd}[31mb")),
            (&["sh", "-c", "yes | head -c 300000; echo"], Ok("mine: done: y")),
        ] {
            let said = run(words);
            let said = said.as_ref().map(String::as_str).map_err(String::as_str);
            assert_eq!(said, expected, "{words:?}");
        }
        let error = run(&["no-such-program-here"]).expect_err("there is no such program");
        assert!(error.starts_with("mine: cannot start no-such-program-here: "), "{error}");
    }

    #[test]
    fn the_name_of_a_file_runs_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in ["$(touch pwned)", "`touch pwned`", "\"; touch pwned; \"", "'; touch pwned; '", "a\ntouch pwned"] {
            for line in ["echo \"${REVDECK_PATH}\"", "echo \"in \"${REVDECK_PATH}\" here\""] {
                let said = run_in_background(&call(&["sh", "-c", line], path), folder.path());
                assert!(said.is_ok(), "{said:?}");
                assert!(!folder.path().join("pwned").exists(), "{path} in {line}");
            }
        }
        assert_eq!(protect_path("-rf"), "./-rf");
        assert_eq!(protect_path("src/-rf"), "src/-rf");
    }
}
