//! Stores questions about findings in `questions.ndjson`: one line for each question, with its answer or the reason why
//! there is none. The file is append-only.
//!
//! A question without a result stands in `questions/FINDING`. The process that asks holds the lock of this file and
//! empties it after it has appended the line. A file that nobody holds and that is not empty means that the process died,
//! or that the disk had no room for its line: then the file has the line, because it was made long enough for one before
//! anything was paid.
//!
//! `questions/FINDING.stop` has the time of a question that the user wants to stop.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use serde::Serialize;

use super::extents::TrackedFile;
use super::files::{self, ExistingPolicy};
use super::{Store, StoreError, StoreView, lines, lock};
use crate::domain::{FindingId, FindingQuestion, QuestionRequest, Time};

/// Bytes of a file with a question, filled up with blanks, so that a paid answer has room on a full disk. Own choice: an
/// answer has at most 8,000 characters, a question 2,000.
const RESERVED_BYTES: usize = 64 << 10;

/// Content of the file of a question without a line in `questions.ndjson`.
#[derive(Debug, PartialEq)]
pub enum UnsettledQuestion {
    /// Nothing is known of a result.
    Asked(QuestionRequest),
    /// The line, which could not be appended.
    Answered(Box<FindingQuestion>),
}

/// Right to ask about a finding: the exclusive lock on its file of a question. The process that asks inherits the
/// locked file as its standard input.
#[derive(Debug)]
pub struct QuestionLock {
    file: File,
    path: PathBuf,
}

impl QuestionLock {
    /// Writes the question that is asked from now on, synced.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn write_request(&mut self, request: &QuestionRequest) -> Result<(), StoreError> {
        let bytes = encode_padded(request)?;
        self.replace_content(&bytes)
    }

    /// Keeps the line of a question in place of the question, in the bytes that [`QuestionLock::write_request`] has
    /// reserved.
    fn write_line(&mut self, line: &FindingQuestion) -> Result<(), StoreError> {
        let bytes = encode_padded(line)?;
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| {
            self.file.write_all(&bytes)?;
            self.file.sync_all()
        });
        written.map_err(StoreError::io("write", &self.path))
    }

    /// Empties the file, because the question has its result.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn clear_request(&mut self) -> Result<(), StoreError> {
        self.replace_content(&[])
    }

    /// Returns the locked file for the process that asks. The lock holds until both have released it.
    ///
    /// # Errors
    /// Returns an error when the system has no file descriptor left.
    pub fn clone_file(&self) -> Result<File, StoreError> {
        self.file.try_clone().map_err(StoreError::io("open again", &self.path))
    }

    /// Releases the lock at once, also if another process is inheriting the file just now.
    pub fn release(self) {
        let _ = self.file.unlock();
    }

    fn replace_content(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.set_len(0).and_then(|()| {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(bytes)?;
            self.file.sync_all()
        });
        written.map_err(StoreError::io("write", &self.path))
    }
}

/// Encodes a value as JSON with blanks behind it.
fn encode_padded(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let encoded = serde_json::to_vec(value).map_err(|source| StoreError::Encode { what: "a question", source });
    encoded.map(|mut bytes| {
        bytes.resize(bytes.len().max(RESERVED_BYTES), b' ');
        bytes
    })
}

impl Store {
    fn question_stop_path(&self, id: &FindingId) -> PathBuf {
        self.root.join("questions").join(format!("{id}.stop"))
    }

    /// Asks the process of a question to stop.
    ///
    /// # Errors
    /// Returns an error when the store cannot be written.
    pub fn stop_question(&self, request: &QuestionRequest) -> Result<(), StoreError> {
        self.prepare_for_write()?;
        let (path, at) = (self.question_stop_path(&request.finding_id), request.at.to_string());
        files::write_atomically(&path, at.as_bytes(), ExistingPolicy::Replace)
    }

    /// Returns true when the user wants this question to stop.
    pub fn is_question_stopped(&self, request: &QuestionRequest) -> bool {
        let stopped = std::fs::read_to_string(self.question_stop_path(&request.finding_id));
        stopped.is_ok_and(|at| at == request.at.to_string())
    }

    fn question_lock_path(&self, id: &FindingId) -> PathBuf {
        self.root.join("questions").join(id.as_str())
    }

    /// Takes the right to ask about a finding; `None` when a question about it has no result yet.
    ///
    /// # Errors
    /// Returns an error when the lock file cannot be created or locked.
    pub fn lock_question(&self, id: &FindingId) -> Result<Option<QuestionLock>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("questions"))?;
        let path = self.question_lock_path(id);
        Ok(lock::try_lock_file(&path)?.map(|file| QuestionLock { file, path }))
    }

    /// Returns the question about a finding that has no line in `questions.ndjson`; `None` when there is none.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn unsettled_question(&self, id: &FindingId) -> Result<Option<UnsettledQuestion>, StoreError> {
        let Some(bytes) = files::read(&self.question_lock_path(id))? else { return Ok(None) };
        let line = serde_json::from_slice(&bytes).map(UnsettledQuestion::Answered);
        Ok(line.or_else(|_| serde_json::from_slice(&bytes).map(UnsettledQuestion::Asked)).ok())
    }

    /// Returns the findings with a question that has no result.
    ///
    /// # Errors
    /// Returns an error when the folder of the questions cannot be read.
    pub fn unanswered_findings(&self) -> Result<Vec<FindingId>, StoreError> {
        let asked = self.list_folder("questions")?.into_iter();
        let asked = asked.filter(|path| path.metadata().is_ok_and(|data| data.len() > 0));
        Ok(asked.filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect())
    }

    /// Returns the question about a finding that a process is asking now.
    ///
    /// # Errors
    /// Returns an error when the lock cannot be tested or the file cannot be read.
    pub fn pending_question(&self, id: &FindingId) -> Result<Option<QuestionRequest>, StoreError> {
        if !lock::is_held(&self.question_lock_path(id))? {
            return Ok(None);
        }
        Ok(match self.unsettled_question(id)? {
            Some(UnsettledQuestion::Asked(request)) => Some(request),
            Some(UnsettledQuestion::Answered(_)) | None => None,
        })
    }

    /// Returns the questions that processes are asking now.
    ///
    /// # Errors
    /// Returns an error when the folder or a file cannot be read.
    pub fn pending_questions(&self) -> Result<Vec<QuestionRequest>, StoreError> {
        let pending = self.unanswered_findings()?.into_iter().map(|id| self.pending_question(&id));
        pending.filter_map(Result::transpose).collect()
    }

    /// Returns true when the standard input of this process is the lock of the question, which only the process has that
    /// the runner started for it. Always true where files have no identity.
    pub fn is_question_worker(&self, id: &FindingId) -> bool {
        #[cfg(unix)]
        {
            use std::os::fd::AsFd;
            let input = std::io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from);
            let identity = |data: std::io::Result<std::fs::Metadata>| data.ok().map(|data| files::file_identity(&data));
            let input = identity(input.and_then(|file| file.metadata()));
            input.is_some() && input == identity(std::fs::metadata(self.question_lock_path(id)))
        }
        #[cfg(not(unix))]
        {
            let _ = id;
            true
        }
    }

    /// Waits until no process asks about a finding any more.
    ///
    /// # Errors
    /// Returns an error when the lock cannot be waited for.
    pub fn wait_for_question(&self, id: &FindingId) -> Result<(), StoreError> {
        let path = self.question_lock_path(id);
        let Some(file) = files::open_read(&path)? else { return Ok(()) };
        file.lock_shared().map_err(StoreError::io("wait for the lock", &path))?;
        file.unlock().map_err(StoreError::io("unlock", &path))
    }

    /// Appends the line of a question with its result, synced, and empties the question's own file. Only the holder of
    /// the question's lock may call this. A question that has its line gets no second one. A line that cannot be appended
    /// is kept in the question's own file, for the next call of [`Store::unsettled_question`].
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn append_question(&self, line: &FindingQuestion) -> Result<(), StoreError> {
        let FindingQuestion { request: QuestionRequest { finding_id, at, .. }, .. } = line;
        let appended = self.with_lock(|_| {
            if self.question_at(finding_id, *at)?.is_some() {
                return Ok(());
            }
            let bytes = lines::encode("a question about a finding", std::slice::from_ref(line))?;
            self.append_tracked(TrackedFile::Questions, &bytes)
        });
        let path = self.question_lock_path(finding_id);
        let mut own = QuestionLock { file: files::open_lock_file(&path)?, path };
        if let Err(error) = appended {
            own.write_line(line)?;
            return Err(error);
        }
        own.clear_request()?;
        files::remove(&self.question_stop_path(finding_id))
    }

    /// Returns the line of the question about a finding that was asked at this time.
    ///
    /// # Errors
    /// Returns an error when `questions.ndjson` cannot be read.
    pub fn question_at(&self, id: &FindingId, at: Time) -> Result<Option<FindingQuestion>, StoreError> {
        Ok(self.questions(id)?.into_iter().find(|line| line.request.at == at))
    }

    /// Returns the questions about a finding, oldest first.
    ///
    /// # Errors
    /// Returns an error when `questions.ndjson` cannot be read.
    pub fn questions(&self, id: &FindingId) -> Result<Vec<FindingQuestion>, StoreError> {
        let mut questions = self.question_log()?;
        questions.retain(|line| line.request.finding_id == *id);
        Ok(questions)
    }

    /// Returns the questions about the problem of a finding, oldest first: those about the finding, and about reports of a panel's
    /// members that it stands for. Of such a report they are those of the finding.
    ///
    /// # Errors
    /// Returns an error when `questions.ndjson`, or decisions about their findings, cannot be read.
    pub fn questions_about(&self, view: &StoreView, id: &FindingId) -> Result<Vec<FindingQuestion>, StoreError> {
        let mut questions = self.question_log()?;
        let asked = questions.iter().map(|line| &line.request.finding_id);
        let ids = self.list_same_problem(view, id, asked)?;
        questions.retain(|line| ids.contains(&line.request.finding_id));
        Ok(questions)
    }

    /// Returns the question about the problem of a finding that a process is asking now, see [`Store::questions_about`].
    ///
    /// # Errors
    /// Returns an error when the files of questions, or decisions about their findings, cannot be read.
    pub fn pending_question_about(
        &self,
        view: &StoreView,
        id: &FindingId,
    ) -> Result<Option<QuestionRequest>, StoreError> {
        let pending = self.pending_questions()?;
        let ids = self.list_same_problem(view, id, pending.iter().map(|request| &request.finding_id))?;
        Ok(pending.into_iter().find(|request| ids.contains(&request.finding_id)))
    }

    /// Returns every readable line, oldest first.
    ///
    /// # Errors
    /// Returns an error when `questions.ndjson` cannot be read.
    pub fn question_log(&self) -> Result<Vec<FindingQuestion>, StoreError> {
        lines::read_all(&self.questions_path())
    }

    /// Returns the length of `questions.ndjson` in bytes; 0 without the file.
    pub fn questions_bytes(&self) -> u64 {
        files::length_at(&self.questions_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RepoInfo;

    fn request(question: &str, second: i64) -> QuestionRequest {
        QuestionRequest {
            finding_id: "f_0000000000000001".parse().expect("an id"),
            run_id: "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id"),
            question: question.to_owned(),
            reviewer: "m".to_owned(),
            at: Time::from_second(second).expect("a time"),
            reserved_tokens: 0,
            reserved_microdollars: 0,
            reported_as: None,
        }
    }

    #[test]
    fn a_question_waits_for_its_line_and_the_file_is_checked_and_repaired() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "n".into(), common_dir: "/n".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        let first = request("Why?", 1);
        let id = first.finding_id.clone();
        assert_eq!(store.questions(&id).expect("no file"), []);
        assert_eq!(store.pending_question(&id).expect("no file"), None);
        let mut lock = store.lock_question(&id).expect("asked").expect("free");
        lock.write_request(&first).expect("written");
        assert_eq!(store.pending_question(&id).expect("read"), Some(first.clone()));
        assert!(store.lock_question(&id).expect("asked").is_none(), "one question at a time");
        assert_eq!(store.unanswered_findings().expect("listed"), std::slice::from_ref(&id));
        let line = FindingQuestion::failed(first.clone(), "no network".to_owned());
        store.append_question(&line).expect("stored");
        store.append_question(&line).expect("stored already");
        lock.release();
        assert_eq!(store.pending_question(&id).expect("read"), None);
        assert_eq!(store.unsettled_question(&id).expect("read"), None);
        assert_eq!(store.unanswered_findings().expect("listed"), []);
        assert_eq!(store.questions(&id).expect("read"), std::slice::from_ref(&line));

        // No room for the line: it is kept in the bytes of the question's own file.
        let third = request("Then?", 3);
        let mut lock = store.lock_question(&id).expect("asked").expect("free");
        lock.write_request(&third).expect("written");
        let (log, aside) = (store.questions_path(), folder.path().join("aside"));
        std::fs::rename(&log, &aside).and_then(|()| std::fs::create_dir(&log)).expect("in the way");
        let own = store.question_lock_path(&id);
        let length = std::fs::metadata(&own).expect("there").len();
        let paid = FindingQuestion { cost: 0.25, ..FindingQuestion::failed(third.clone(), "the answer".to_owned()) };
        store.append_question(&paid).expect_err("there is no room");
        assert_eq!(std::fs::metadata(&own).expect("there").len(), length, "not one byte more");
        std::fs::remove_dir(&log).and_then(|()| std::fs::rename(&aside, &log)).expect("room again");
        assert_eq!(store.pending_question(&id).expect("read"), None, "nobody has to be waited for");
        let kept = UnsettledQuestion::Answered(Box::new(paid.clone()));
        assert_eq!(store.unsettled_question(&id).expect("read"), Some(kept));
        store.append_question(&paid).expect("stored");
        lock.release();
        assert_eq!(store.unsettled_question(&id).expect("read"), None);
        assert_eq!(store.questions(&id).expect("read"), [line.clone(), paid.clone()]);

        let fourth = request("Stop?", 4);
        let mut lock = store.lock_question(&id).expect("asked").expect("free");
        lock.write_request(&fourth).expect("written");
        store.stop_question(&third).expect("written");
        assert!(!store.is_question_stopped(&fourth), "that was another question");
        store.stop_question(&fourth).expect("written");
        assert!(store.is_question_stopped(&fourth));
        let stopped = FindingQuestion::failed(fourth, "stopped".to_owned());
        store.append_question(&stopped).expect("stored");
        lock.release();
        assert!(!store.question_stop_path(&id).exists());

        let second = FindingQuestion::failed(request("And?", 5), "died".to_owned());
        store.append_question(&second).expect("stored");
        assert!(store.verify().expect("verified").is_clean());
        let path = store.questions_path();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(b"{\"torn").expect("written");
        assert!(!store.verify().expect("verified").is_clean());
        assert!(store.repair().expect("repaired").problems.iter().all(|problem| problem.repaired));
        assert_eq!(store.questions(&id).expect("read"), [line, paid, stopped, second]);
        std::fs::write(&path, b"").expect("emptied");
        let problems = store.verify().expect("verified").problems;
        assert_eq!(
            problems.iter().map(|problem| problem.what.as_str()).collect::<Vec<_>>(),
            ["was emptied; it had 4 lines"]
        );
    }
}
