//! A folder with scripts that play programs, and a watcher that receives their answers.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use revdeck::domain::{ChatMessage, ChatRequest};
use revdeck::reviewers::chat::{AnswerTimeouts, ChatObserver, ChatProgress};
use revdeck::reviewers::command::{self, Agent, CommandDialect, FolderAccess, Program};

/// A timeout that no operation here reaches, even on a busy machine.
const LONG: Duration = Duration::from_secs(120);

pub struct Place {
    folder: PathBuf,
    /// Deletes the folder on drop; `None` if another process does that.
    _own: Option<tempfile::TempDir>,
}

impl Place {
    pub fn new() -> Self {
        let own = tempfile::tempdir().expect("a temporary folder");
        let place = Self { folder: own.path().to_owned(), _own: Some(own) };
        for folder in [place.folder(), place.programs()] {
            std::fs::create_dir(folder).expect("a folder");
        }
        place
    }

    /// Opens a folder that another process has created.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder, _own: None }
    }

    /// Returns the folder in which the programs run.
    pub fn folder(&self) -> PathBuf {
        self.folder.join("checkout")
    }

    pub fn programs(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// Reads a file that a program wrote in its folder.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the number in a file that a program wrote in its folder, or `None` if there is none yet.
    pub fn number(&self, name: &str) -> Option<u32> {
        std::fs::read_to_string(self.folder().join(name)).ok()?.strip_suffix('\n')?.trim().parse().ok()
    }

    pub fn write(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        let file = self.programs().join(name);
        std::fs::write(&file, content).expect("a file");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("a mode");
        file
    }

    /// Creates a shell script and returns it as a reviewer.
    pub fn program(&self, name: &str, script: &str) -> Program {
        self.write(name, &format!("#!/bin/sh\n{script}\n"), 0o755);
        self.words(&[name])
    }

    pub fn words(&self, words: &[&str]) -> Program {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.programs()].into_iter().chain(std::env::split_paths(&path));
        let pair = |name: &str, value: OsString| (OsString::from(name), value);
        Program {
            name: "reviewer".to_owned(),
            dialect: words.first().map_or(CommandDialect::Plain, |program| CommandDialect::from_program(program)),
            words,
            model: None,
            effort: None,
            folder: self.folder(),
            access: FolderAccess::Read,
            timeouts: AnswerTimeouts { idle: LONG, total: LONG },
            environment: vec![
                pair("PATH", std::env::join_paths(folders).expect("a path")),
                pair("HOME", self.folder.as_os_str().to_owned()),
                pair("EXTRA", OsString::from("1")),
            ],
            supervisor: keeper(),
        }
    }

    pub fn open(&self, program: Program) -> Agent {
        command::open(program)
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }
}

/// Returns the command line that starts revdeck as the keeper.
pub fn keeper() -> (PathBuf, Vec<OsString>) {
    (PathBuf::from(env!("CARGO_BIN_EXE_revdeck")), vec!["keep".into(), "--".into()])
}

pub fn request(text: &str) -> ChatRequest {
    let messages = vec![ChatMessage::User { text: text.to_owned() }];
    ChatRequest { system: "Review.".to_owned(), messages, pinned: 1, ..ChatRequest::default() }
}

/// A watcher that records what it receives and cancels when `until` returns true.
#[derive(Default)]
pub struct Watcher<'a> {
    pub seen: Vec<ChatProgress>,
    pub until: Option<Box<dyn Fn() -> bool + 'a>>,
}

impl<'a> Watcher<'a> {
    pub fn until(condition: impl Fn() -> bool + 'a) -> Self {
        Self { seen: Vec::new(), until: Some(Box::new(condition)) }
    }
}

impl ChatObserver for Watcher<'_> {
    fn on_progress(&mut self, progress: ChatProgress) {
        self.seen.push(progress);
    }

    fn is_cancelled(&self) -> bool {
        self.until.as_ref().is_some_and(|until| until())
    }
}
