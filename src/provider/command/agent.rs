//! One request to a program: from the text it is given to the answer, or the reason why there is none.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use super::invoke::{Missing, environment, find};
use super::keeper::Report;
use super::listen::{Listener, Transcript};
use super::running::{Heard, Running, Start};
use super::{Access, Dialect, Program, prompt, trouble};
use crate::domain::{ChatRequest, ErrorClass, Response, Stop};
use crate::provider::chat::{Chat, ChatError, Progress, Tools, Watch};

/// How often the watcher is asked whether to go on.
const LOOK: Duration = Duration::from_millis(50);
/// Output that is read at most; a program that writes more is ended. Most of it is not kept.
const OUTPUT_BYTES: u64 = 256 * 1024 * 1024;
/// How long the output may stay open after the program and all that descends from it are gone.
const LEFTOVERS: Duration = Duration::from_secs(1);

/// A program as a model to talk to; see [`super::open`].
pub struct Agent {
    program: Program,
    /// One that was asked to end. It is waited for before anything else is started, and with this value's end.
    ending: Option<Running>,
}

/// How a run of the program came to its end.
enum End {
    Exited(i32),
    Killed(i32),
    NotStarted(i32),
    /// The keeper is gone, nobody knows why.
    Lost,
    Idle,
    TooLong,
    /// It wrote more than anybody reads.
    Flood,
}

/// All that came out of a run.
struct Outcome {
    end: End,
    transcript: Transcript,
    /// The beginning of standard error.
    errors: Vec<u8>,
}

impl Chat for Agent {
    fn respond(&mut self, request: &ChatRequest, watch: &mut dyn Watch) -> Result<Response, ChatError> {
        self.ending = None;
        if watch.cancelled() {
            return Err(ChatError::cancelled());
        }
        let start = self.start(request)?;
        let environment = start.environment.clone();
        let running = Running::start(start)
            .map_err(|error| self.error(ErrorClass::Internal, format!("cannot start its keeper: {error}")))?;
        watch.progress(Progress::Sent);
        let outcome = self.listen(running, watch)?;
        self.answer(outcome, &environment)
    }

    fn tools(&self) -> Tools {
        Tools::None
    }
}

impl Agent {
    pub(super) fn new(program: Program) -> Self {
        Self { program, ending: None }
    }

    fn start(&self, request: &ChatRequest) -> Result<Start, ChatError> {
        let Program { words, dialect, model, effort, folder, access, environment: extra, .. } = &self.program;
        let Some((program, arguments)) = words.split_first() else {
            return Err(self.error(ErrorClass::Configuration, "has no `command` in its settings".to_owned()));
        };
        let environment = environment(std::env::vars_os(), folder, *dialect, extra);
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let program = find(program, path.as_deref().unwrap_or(OsStr::new("")))
            .map_err(|missing| self.missing(program, &missing, path.as_deref()))?;
        if !folder.is_dir() {
            let what = format!("its folder {} is gone; start the review again", folder.display());
            return Err(self.error(ErrorClass::Internal, what));
        }
        Ok(Start {
            keeper: self.program.keeper.clone(),
            program,
            arguments: dialect.arguments(arguments, model.as_deref(), effort.as_deref(), *access),
            folder: folder.clone(),
            environment,
            prompt: prompt::text(request),
        })
    }

    /// Follows a program to its end, or ends it.
    fn listen(&mut self, mut running: Running, watch: &mut dyn Watch) -> Result<Outcome, ChatError> {
        let mut listener = Listener::new(self.program.dialect);
        let (mut errors, mut read) = (Vec::new(), 0);
        let began = Instant::now();
        let (mut last, mut ended) = (began, None);
        let end = loop {
            match running.next(LOOK) {
                Heard::Output(bytes) => {
                    last = Instant::now();
                    read += bytes.len() as u64;
                    watch.progress(Progress::Bytes(bytes.len()));
                    listener.feed(&bytes, &mut |progress| watch.progress(progress));
                }
                Heard::Errors(bytes) => {
                    last = Instant::now();
                    read += bytes.len() as u64;
                    let room = trouble::ERRORS_BYTES.saturating_sub(errors.len());
                    errors.extend(bytes.iter().take(room));
                }
                Heard::Report(report) => {
                    let end = match report {
                        Report::Started(_) => continue,
                        Report::NotStarted(number) => End::NotStarted(number),
                        Report::Exited(code) => End::Exited(code),
                        Report::Killed(signal) => End::Killed(signal),
                    };
                    ended = Some((end, Instant::now()));
                }
                Heard::Lost => ended = Some((End::Lost, Instant::now())),
                Heard::Over => break ended.map_or(End::Lost, |(end, _)| end),
                Heard::Nothing => {}
            }
            if watch.cancelled() {
                running.stop();
                self.ending = Some(running);
                return Err(ChatError::cancelled());
            }
            match &ended {
                Some((_, at)) if at.elapsed() < LEFTOVERS => {}
                Some(_) => break ended.map_or(End::Lost, |(end, _)| end),
                None if read > OUTPUT_BYTES => break End::Flood,
                None if last.elapsed() >= self.program.timeouts.idle => break End::Idle,
                None if began.elapsed() >= self.program.timeouts.total => break End::TooLong,
                None => {}
            }
        };
        drop(running);
        let transcript = listener.finish(&mut |progress| watch.progress(progress));
        Ok(Outcome { end, transcript, errors })
    }

    /// An answer from what there is; an error when there is nothing that can be used.
    fn answer(&self, outcome: Outcome, environment: &[(OsString, OsString)]) -> Result<Response, ChatError> {
        // Whoever was to change files may have nothing to say.
        let did = self.program.access == Access::Write && matches!(outcome.end, End::Exited(0));
        let is_answer = outcome.is_answer() || (did && outcome.transcript.said.trouble.is_none());
        let Outcome { end, transcript: Transcript { said, stray, dialect }, errors } = outcome;
        let well = matches!(end, End::Exited(0)) && said.trouble.is_none();
        if is_answer {
            if !well {
                let why = self.why(&end, said.trouble.as_ref().map(|(_, words)| words.as_str()), &errors);
                tracing::warn!(reviewer = %self.program.name, why = %trouble::mask(&why, environment), "an answer was cut off");
            }
            let stop = match said.stop {
                Some(stop @ (Stop::Length | Stop::Refused)) => stop,
                _ if said.cut => Stop::Length,
                _ if !well => Stop::Interrupted,
                Some(stop) => stop,
                None if dialect == Dialect::Plain => Stop::Done,
                // It ended well without having said so.
                None => Stop::Unknown,
            };
            let asked_for = self.program.model.clone().unwrap_or_default();
            return Ok(Response {
                text: said.text,
                calls: Vec::new(),
                opaque: Vec::new(),
                stop,
                usage: said.usage,
                model: if said.model.is_empty() { asked_for } else { trouble::one_line(&said.model) },
            });
        }
        let (class, what) = match (&end, said.trouble) {
            (End::Idle | End::TooLong | End::Flood | End::Lost | End::NotStarted(_) | End::Killed(_), None) => {
                (class_of_end(&end), self.why(&end, None, &errors))
            }
            (_, Some((class, words))) => (class, self.why(&end, Some(&words), &errors)),
            (End::Exited(0), None) if well && said.stop == Some(Stop::Refused) => {
                (ErrorClass::Refused, "it refused".to_owned())
            }
            (End::Exited(0), None) if dialect != Dialect::Plain && said.events == 0 && !stray.is_empty() => {
                let first = trouble::telling_line(&stray).unwrap_or_default();
                let what = format!("what it writes are no events but {:?}", trouble::one_line(&first));
                (ErrorClass::Malformed, what)
            }
            (End::Exited(0), None) => (ErrorClass::Malformed, "it ended without an answer".to_owned()),
            (_, None) => {
                let words = trouble::telling_line(&errors).or_else(|| trouble::telling_line(&stray));
                let class = match (dialect, &words) {
                    (Dialect::Plain, _) | (_, None) => ErrorClass::Reviewer,
                    (_, Some(words)) => trouble::class_of(0, words),
                };
                (class, self.why(&end, words.as_deref(), &errors))
            }
        };
        Err(self.error(class, trouble::mask(&what, environment)))
    }

    /// What happened, in words.
    fn why(&self, end: &End, words: Option<&str>, errors: &[u8]) -> String {
        let from_errors = || trouble::telling_line(errors);
        let words = words.map(str::to_owned).or_else(from_errors).map(|words| trouble::one_line(&words));
        let words = words.as_deref().map(|words| words.trim_end_matches('.'));
        let said = words.filter(|words| !words.is_empty()).map_or(String::new(), |words| format!(": {words}"));
        let seconds = |duration: Duration| duration.as_secs();
        match end {
            End::Exited(code) => format!("ended with code {code}{said}"),
            End::Killed(signal) => format!("was ended by signal {signal}{said}"),
            End::NotStarted(number) => {
                let error = std::io::Error::from_raw_os_error(*number);
                format!("cannot be started: {error}; a script needs a first line with a program that is there")
            }
            End::Lost => "its keeper was killed".to_owned(),
            End::Idle => {
                format!("was silent for {} s and was ended{said}", seconds(self.program.timeouts.idle))
            }
            End::TooLong => {
                format!("took more than {} s and was ended{said}", seconds(self.program.timeouts.total))
            }
            End::Flood => format!("wrote more than {} MB and was ended", OUTPUT_BYTES >> 20),
        }
    }

    fn missing(&self, program: &str, missing: &Missing, path: Option<&OsStr>) -> ChatError {
        let program = trouble::one_line(program);
        let what = match missing {
            Missing::NotInPath => {
                let path = path.map(OsStr::to_string_lossy).unwrap_or_default();
                format!("there is no program {program:?} in PATH ({})", trouble::one_line(&path))
            }
            Missing::Relative => {
                format!("{program:?} would be looked for in the reviewed code; give a name in PATH or an absolute path")
            }
            Missing::NotThere(path) => format!("there is no program {}", path.display()),
            Missing::NotExecutable(path) => format!("{} is no program that may be executed", path.display()),
        };
        let install = match self.program.dialect {
            Dialect::Claude => "npm install -g @anthropic-ai/claude-code",
            Dialect::Codex => "npm install -g @openai/codex",
            Dialect::Gemini => "npm install -g @google/gemini-cli",
            Dialect::Plain => "",
        };
        let advice = match missing {
            Missing::NotInPath if !install.is_empty() => format!("install it (`{install}`), or name it with its path"),
            Missing::NotInPath | Missing::NotThere(_) => "install it, or correct `command` in its settings".to_owned(),
            Missing::Relative => "correct `command` in its settings".to_owned(),
            Missing::NotExecutable(_) => "`chmod +x` makes it one, or correct `command` in its settings".to_owned(),
        };
        ChatError::new(ErrorClass::Configuration, format!("{}: {what}; {advice}", self.program.name))
    }

    fn error(&self, class: ErrorClass, what: String) -> ChatError {
        let program = self.program.words.first().map(|program| trouble::one_line(program)).unwrap_or_default();
        let advice = trouble::advice(class, self.program.dialect);
        ChatError::new(class, format!("{}: {program} {what}; {advice}", self.program.name))
    }
}

impl Outcome {
    /// Whether there is something to go on with. Of a program of no known kind that failed, only what could hold
    /// findings: it may have written its complaints to the wrong place.
    fn is_answer(&self) -> bool {
        let said = &self.transcript.said;
        let failed = !matches!(self.end, End::Exited(0));
        let is_complaint = failed && self.transcript.dialect == Dialect::Plain && !said.text.contains(['{', '[']);
        !said.text.trim().is_empty() && !is_complaint
    }
}

fn class_of_end(end: &End) -> ErrorClass {
    match end {
        End::Idle | End::TooLong => ErrorClass::Timeout,
        End::Flood => ErrorClass::Malformed,
        End::NotStarted(_) => ErrorClass::Configuration,
        End::Lost => ErrorClass::Internal,
        End::Exited(_) | End::Killed(_) => ErrorClass::Reviewer,
    }
}
