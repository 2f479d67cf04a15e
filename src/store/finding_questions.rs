//! Stores questions about findings in `questions.ndjson`: one line for each question, with its answer or the reason why
//! there is none. The file is append-only.
//!
//! A question without a result stands in `questions/FINDING`. The process that asks holds the lock of this file and
//! empties it after it has appended the line. A file that nobody holds and that is not empty means that the process died.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::extents::TrackedFile;
use super::{Store, StoreError, files, lines, lock};
use crate::domain::{FindingId, FindingQuestion, QuestionRequest, Time};

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
        let bytes = serde_json::to_vec(request).map_err(|source| StoreError::Encode { what: "a question", source })?;
        self.replace_content(&bytes)
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

impl Store {
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

    /// Returns the question about a finding that has no result; `None` when there is none.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn unanswered_question(&self, id: &FindingId) -> Result<Option<QuestionRequest>, StoreError> {
        let bytes = files::read(&self.question_lock_path(id))?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
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
        match lock::is_held(&self.question_lock_path(id))? {
            true => self.unanswered_question(id),
            false => Ok(None),
        }
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
    /// the question's lock may call this. A question that has its line gets no second one.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn append_question(&self, line: &FindingQuestion) -> Result<(), StoreError> {
        let FindingQuestion { request: QuestionRequest { finding_id, at, .. }, .. } = line;
        self.with_lock(|_| {
            if self.question_at(finding_id, *at)?.is_some() {
                return Ok(());
            }
            let bytes = lines::encode("a question about a finding", std::slice::from_ref(line))?;
            self.append_tracked(TrackedFile::Questions, &bytes)
        })?;
        let path = self.question_lock_path(finding_id);
        let file = files::open_lock_file(&path)?;
        QuestionLock { file, path }.clear_request()
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
        assert_eq!(store.unanswered_question(&id).expect("read"), None);
        assert_eq!(store.unanswered_findings().expect("listed"), []);
        assert_eq!(store.questions(&id).expect("read"), std::slice::from_ref(&line));

        let second = FindingQuestion::failed(request("And?", 2), "died".to_owned());
        store.append_question(&second).expect("stored");
        assert!(store.verify().expect("verified").is_clean());
        let path = store.questions_path();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(b"{\"torn").expect("written");
        assert!(!store.verify().expect("verified").is_clean());
        assert!(store.repair().expect("repaired").problems.iter().all(|problem| problem.repaired));
        assert_eq!(store.questions(&id).expect("read"), [line, second]);
        std::fs::write(&path, b"").expect("emptied");
        let problems = store.verify().expect("verified").problems;
        assert_eq!(
            problems.iter().map(|problem| problem.what.as_str()).collect::<Vec<_>>(),
            ["was emptied; it had 2 lines"]
        );
    }
}
