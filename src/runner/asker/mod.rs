//! Asks: questions of the user to the reviewer of a finding. A model over HTTP answers from the code of the run's
//! snapshot, never from the files of the user.
//!
//! | step | process | record |
//! |---|---|---|
//! | [`Asker::prepare_question`] | the cockpit or the command line | none; checks reviewer, key and budgets |
//! | [`Asker::ask`] | the same | the question, in a file that the worker holds locked |
//! | [`Asker::run_asker`] | a separate worker, so that no quit loses a paid answer | the spending, then the line in `questions.ndjson` |
//! | [`Asker::stop_question`] | any | a mark for the worker, which ends its request and stores a failure |
//! | [`wait_for_answer`], [`Asker::reconcile_questions`] | any process | a failure, if the worker died; the answer, if the worker had no room for its line |
//!
//! An answer changes no status, also if it withdraws the report.

mod asker_worker;
mod error;
mod question_material;
mod request_question;

pub(crate) use error::AskError;
pub(crate) use request_question::{PreparedQuestion, QuestionPlan, wait_for_answer};

use crate::runner::Services;

/// Service that asks reviewers about their findings.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    pub(in crate::runner) services: &'a Services,
}
