//! Sends one request to a command-line agent and converts its output into an answer or an error.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use super::arguments::{AgentOptions, build_arguments};
use super::dialect::{self, AgentDialect};
use super::invoke::{FindProgramError, build_environment, find_program};
use super::output_parser::{AgentOutput, OutputParser};
use super::process::{AgentCommand, AgentProcess, ProcessEvent};
use super::supervisor::ProcessReport;
use super::{FolderAccess, Program, error_text, prompt};
use crate::domain::{ChatRequest, ChatResponse, ErrorClass, StopReason};
use crate::reviewers::chat::{CANCEL_CHECK_INTERVAL, Chat, ChatError, ChatObserver, ChatProgress, ToolSupport};
use crate::reviewers::error_class::classify_agent_error;

/// Maximum number of output bytes that are read. A program that writes more is ended. Most of the output is not kept.
const MAX_OUTPUT_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum time that the output may stay open after the program and all its descendants are gone.
const OUTPUT_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A command-line agent as a chat model; [`super::open`] creates it.
pub struct Agent {
    program: Program,
    /// A process that was asked to end. It is awaited before the next start, and when this value is dropped.
    ending: Option<AgentProcess>,
}

/// The way in which a run of the program ended.
enum AgentExit {
    Exited(i32),
    Killed(i32),
    NotStarted(i32),
    /// The supervisor ended for an unknown reason.
    SupervisorLost,
    Idle,
    TooLong,
    /// The program wrote more than [`MAX_OUTPUT_BYTES`].
    TooMuchOutput,
}

/// The complete output of a run.
struct AgentOutcome {
    end: AgentExit,
    transcript: AgentOutput,
    /// The beginning of standard error.
    errors: Vec<u8>,
}

impl Chat for Agent {
    fn respond(&mut self, request: &ChatRequest, watch: &mut dyn ChatObserver) -> Result<ChatResponse, ChatError> {
        self.ending = None;
        if watch.is_cancelled() {
            return Err(ChatError::cancelled());
        }
        let start = self.build_command(request)?;
        let environment = start.environment.clone();
        let running = AgentProcess::spawn(start)
            .map_err(|error| self.build_error(ErrorClass::Internal, format!("cannot start its keeper: {error}")))?;
        watch.on_progress(ChatProgress::Sent);
        let outcome = self.collect_output(running, watch)?;
        self.build_response(outcome, &environment)
    }

    fn tool_support(&self) -> ToolSupport {
        ToolSupport::None
    }
}

impl Agent {
    pub(super) fn new(program: Program) -> Self {
        Self { program, ending: None }
    }

    fn dialect(&self) -> &'static dyn AgentDialect {
        dialect::from_setting(self.program.dialect)
    }

    fn build_command(&self, request: &ChatRequest) -> Result<AgentCommand, ChatError> {
        let Program { words, model, effort, folder, access, environment: extra, .. } = &self.program;
        let dialect = self.dialect();
        let Some((program, arguments)) = words.split_first() else {
            return Err(self.build_error(ErrorClass::Configuration, "has no `command` in its settings".to_owned()));
        };
        let environment = build_environment(std::env::vars_os(), folder, dialect, extra);
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let program = find_program(program, path.as_deref().unwrap_or(OsStr::new("")))
            .map_err(|missing| self.missing_program_error(program, &missing, path.as_deref()))?;
        if !folder.is_dir() {
            let what = format!("its folder {} is gone; start the review again", folder.display());
            return Err(self.build_error(ErrorClass::Internal, what));
        }
        let options = AgentOptions { model: model.as_deref(), effort: effort.as_deref(), access: *access };
        Ok(AgentCommand {
            supervisor: self.program.supervisor.clone(),
            program,
            arguments: build_arguments(dialect, arguments, &options),
            folder: folder.clone(),
            environment,
            prompt: prompt::render(request),
        })
    }

    /// Collects the output until the program ends, or ends the program at a limit.
    fn collect_output(
        &mut self,
        mut running: AgentProcess,
        watch: &mut dyn ChatObserver,
    ) -> Result<AgentOutcome, ChatError> {
        let mut listener = OutputParser::new(self.dialect());
        let (mut errors, mut read) = (Vec::new(), 0);
        let began = Instant::now();
        let (mut last, mut ended) = (began, None);
        let end = loop {
            match running.next_event(CANCEL_CHECK_INTERVAL) {
                ProcessEvent::Output(bytes) => {
                    last = Instant::now();
                    read += bytes.len() as u64;
                    watch.on_progress(ChatProgress::Bytes(bytes.len()));
                    listener.feed(&bytes, &mut |progress| watch.on_progress(progress));
                }
                ProcessEvent::Errors(bytes) => {
                    last = Instant::now();
                    read += bytes.len() as u64;
                    let room = error_text::MAX_STDERR_BYTES.saturating_sub(errors.len());
                    errors.extend(bytes.iter().take(room));
                }
                ProcessEvent::Report(report) => {
                    let end = match report {
                        ProcessReport::Started(_) => continue,
                        ProcessReport::NotStarted(number) => AgentExit::NotStarted(number),
                        ProcessReport::Exited(code) => AgentExit::Exited(code),
                        ProcessReport::Killed(signal) => AgentExit::Killed(signal),
                    };
                    ended = Some((end, Instant::now()));
                }
                ProcessEvent::SupervisorLost => ended = Some((AgentExit::SupervisorLost, Instant::now())),
                ProcessEvent::Closed => break ended.map_or(AgentExit::SupervisorLost, |(end, _)| end),
                ProcessEvent::TimedOut => {}
            }
            if watch.is_cancelled() {
                running.request_stop();
                self.ending = Some(running);
                return Err(ChatError::cancelled());
            }
            match &ended {
                Some((_, at)) if at.elapsed() < OUTPUT_CLOSE_TIMEOUT => {}
                Some(_) => break ended.map_or(AgentExit::SupervisorLost, |(end, _)| end),
                None if read > MAX_OUTPUT_BYTES => break AgentExit::TooMuchOutput,
                None if last.elapsed() >= self.program.timeouts.idle => break AgentExit::Idle,
                None if began.elapsed() >= self.program.timeouts.total => break AgentExit::TooLong,
                None => {}
            }
        };
        drop(running);
        let transcript = listener.finish(&mut |progress| watch.on_progress(progress));
        Ok(AgentOutcome { end, transcript, errors })
    }

    /// Builds a response from the output, or an error if the output is unusable.
    fn build_response(
        &self,
        outcome: AgentOutcome,
        environment: &[(OsString, OsString)],
    ) -> Result<ChatResponse, ChatError> {
        // A program that was allowed to change files may end well without any text.
        let did = self.program.access == FolderAccess::Write && matches!(outcome.end, AgentExit::Exited(0));
        let is_answer = outcome.is_answer() || (did && outcome.transcript.said.error.is_none());
        let AgentOutcome { end, transcript: AgentOutput { said, stray, dialect }, errors } = outcome;
        let well = matches!(end, AgentExit::Exited(0)) && said.error.is_none();
        if is_answer {
            if !well {
                let why = self.describe_exit(&end, said.error.as_ref().map(|(_, words)| words.as_str()), &errors);
                tracing::warn!(reviewer = %self.program.name, why = %error_text::mask_keys(&why, environment), "an answer was cut off");
            }
            let stop = match said.stop {
                Some(stop @ (StopReason::Length | StopReason::Refused)) => stop,
                _ if said.is_truncated => StopReason::Length,
                _ if !well => StopReason::Interrupted,
                Some(stop) => stop,
                None if !dialect.writes_events() => StopReason::Done,
                // The program ended well but reported no stop reason.
                None => StopReason::Unknown,
            };
            let asked_for = self.program.model.clone().unwrap_or_default();
            return Ok(ChatResponse {
                text: said.text,
                calls: Vec::new(),
                opaque: Vec::new(),
                stop,
                usage: said.usage,
                model: if said.model.is_empty() { asked_for } else { error_text::to_one_line(&said.model) },
            });
        }
        let (class, what) = match (&end, said.error) {
            (
                AgentExit::Idle
                | AgentExit::TooLong
                | AgentExit::TooMuchOutput
                | AgentExit::SupervisorLost
                | AgentExit::NotStarted(_)
                | AgentExit::Killed(_),
                None,
            ) => (classify_exit(&end), self.describe_exit(&end, None, &errors)),
            (_, Some((class, words))) => (class, self.describe_exit(&end, Some(&words), &errors)),
            (AgentExit::Exited(0), None) if well && said.stop == Some(StopReason::Refused) => {
                (ErrorClass::Refused, "it refused".to_owned())
            }
            (AgentExit::Exited(0), None) if dialect.writes_events() && said.events == 0 && !stray.is_empty() => {
                let first = error_text::find_error_line(&stray).unwrap_or_default();
                let what = format!("what it writes are no events but {:?}", error_text::to_one_line(&first));
                (ErrorClass::Malformed, what)
            }
            (AgentExit::Exited(0), None) => (ErrorClass::Malformed, "it ended without an answer".to_owned()),
            (_, None) => {
                let words = error_text::find_error_line(&errors).or_else(|| error_text::find_error_line(&stray));
                let class = match &words {
                    Some(words) if dialect.writes_events() => classify_agent_error(0, words),
                    _ => ErrorClass::Reviewer,
                };
                (class, self.describe_exit(&end, words.as_deref(), &errors))
            }
        };
        Err(self.build_error(class, error_text::mask_keys(&what, environment)))
    }

    /// Describes the end of the run in words.
    fn describe_exit(&self, end: &AgentExit, words: Option<&str>, errors: &[u8]) -> String {
        let from_errors = || error_text::find_error_line(errors);
        let words = words.map(str::to_owned).or_else(from_errors).map(|words| error_text::to_one_line(&words));
        let words = words.as_deref().map(|words| words.trim_end_matches('.'));
        let said = words.filter(|words| !words.is_empty()).map_or(String::new(), |words| format!(": {words}"));
        let seconds = |duration: Duration| duration.as_secs();
        match end {
            AgentExit::Exited(code) => format!("ended with code {code}{said}"),
            AgentExit::Killed(signal) => format!("was ended by signal {signal}{said}"),
            AgentExit::NotStarted(number) => {
                let error = std::io::Error::from_raw_os_error(*number);
                format!("cannot be started: {error}; a script needs a first line with a program that is there")
            }
            AgentExit::SupervisorLost => "its keeper was killed".to_owned(),
            AgentExit::Idle => {
                format!("was silent for {} s and was ended{said}", seconds(self.program.timeouts.idle))
            }
            AgentExit::TooLong => {
                format!("took more than {} s and was ended{said}", seconds(self.program.timeouts.total))
            }
            AgentExit::TooMuchOutput => format!("wrote more than {} MB and was ended", MAX_OUTPUT_BYTES >> 20),
        }
    }

    fn missing_program_error(&self, program: &str, missing: &FindProgramError, path: Option<&OsStr>) -> ChatError {
        let program = error_text::to_one_line(program);
        let what = match missing {
            FindProgramError::NotInPath => {
                let path = path.map(OsStr::to_string_lossy).unwrap_or_default();
                format!("there is no program {program:?} in PATH ({})", error_text::to_one_line(&path))
            }
            FindProgramError::Relative => {
                format!("{program:?} would be looked for in the reviewed code; give a name in PATH or an absolute path")
            }
            FindProgramError::NotThere(path) => format!("there is no program {}", path.display()),
            FindProgramError::NotExecutable(path) => format!("{} is no program that may be executed", path.display()),
        };
        let advice = match (missing, self.dialect().install_command()) {
            (FindProgramError::NotInPath, Some(install)) => {
                format!("install it (`{install}`), or name it with its path")
            }
            (FindProgramError::NotInPath | FindProgramError::NotThere(_), _) => {
                "install it, or correct `command` in its settings".to_owned()
            }
            (FindProgramError::Relative, _) => "correct `command` in its settings".to_owned(),
            (FindProgramError::NotExecutable(_), _) => {
                "`chmod +x` makes it one, or correct `command` in its settings".to_owned()
            }
        };
        ChatError::new(ErrorClass::Configuration, format!("{}: {what}; {advice}", self.program.name))
    }

    fn build_error(&self, class: ErrorClass, what: String) -> ChatError {
        let program = self.program.words.first().map(|program| error_text::to_one_line(program)).unwrap_or_default();
        let advice = error_text::advice(class, self.dialect());
        ChatError::new(class, format!("{}: {program} {what}; {advice}", self.program.name))
    }
}

impl AgentOutcome {
    /// Returns `true` if the text is a usable answer. If a program of unknown kind failed, the text must contain a
    /// bracket that could begin findings, because the program may have written its error message to standard output.
    fn is_answer(&self) -> bool {
        let said = &self.transcript.said;
        let failed = !matches!(self.end, AgentExit::Exited(0));
        let is_complaint = failed && !self.transcript.dialect.writes_events() && !said.text.contains(['{', '[']);
        !said.text.trim().is_empty() && !is_complaint
    }
}

fn classify_exit(end: &AgentExit) -> ErrorClass {
    match end {
        AgentExit::Idle | AgentExit::TooLong => ErrorClass::Timeout,
        AgentExit::TooMuchOutput => ErrorClass::Malformed,
        AgentExit::NotStarted(_) => ErrorClass::Configuration,
        AgentExit::SupervisorLost => ErrorClass::Internal,
        AgentExit::Exited(_) | AgentExit::Killed(_) => ErrorClass::Reviewer,
    }
}
