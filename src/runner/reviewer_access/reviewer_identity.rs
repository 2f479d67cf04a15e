//! Resolves a reviewer's name to the identity that the policy compares, and to a client.

use std::path::Path;
use std::time::Duration;

use secrecy::SecretString;

use crate::config::{EmbeddingSettings, ModelFacts, Paths, ReviewerKind, ReviewerSettings};
use crate::context::embeddings::EmbeddingScorer;
use crate::domain::{ErrorClass, ReviewSubject, RunRecord, RunReviewer};
use crate::reviewers::Reviewer;
use crate::reviewers::analyzer;
use crate::reviewers::analyzer::reviewer::{BuiltinReviewer, ReviewedSnapshot};
use crate::reviewers::chat::{AnswerTimeouts, Chat, ChatError};
use crate::reviewers::command::{self, FolderAccess, Program};
use crate::reviewers::http::{self, Embedder, Endpoint};
use crate::runner::{BUILTIN_REVIEWER, ReviewerAccess, RunnerError, process};

/// The identity of a reviewer, and the settings that influence its reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::runner) struct ReviewerIdentity {
    pub reviewer: String,
    pub model: String,
    pub effort: String,
    pub policy_version: String,
}

/// Estimated tokens for a changed line, and for every review in addition. Used only for estimates before a review. Not
/// from the literature: a line of code has about 10 tokens and a part of the diff is sent about twice; the prompt and
/// its tools have about 4,000 tokens.
const TOKENS_PER_LINE: u64 = 20;
const TOKENS_PER_REVIEW: u64 = 4_000;
/// Limit for a connection, including TLS. Not from the literature: a server that takes longer is not available.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

impl ReviewerAccess<'_> {
    /// Returns the identity of the reviewer with this name, or of the default reviewer.
    pub(in crate::runner) fn resolve_identity(&self, wanted: Option<&str>) -> Result<ReviewerIdentity, RunnerError> {
        let name = wanted.unwrap_or(&self.services.settings.default_reviewer);
        let builtin = ReviewerIdentity {
            reviewer: BUILTIN_REVIEWER.to_owned(),
            model: String::new(),
            effort: String::new(),
            policy_version: analyzer::reviewer::policy_version(&self.services.settings.smells),
        };
        if name == BUILTIN_REVIEWER {
            return Ok(builtin);
        }
        if let Some(panel) = self.find_panel(name)? {
            return self.panel_identity(&panel, |member| self.resolve_identity(Some(member)));
        }
        let settings = self.model_settings(name)?;
        // Refused before anything is recorded or queued.
        if settings.exposes_key() {
            let host = settings.host().unwrap_or_default();
            let text = format!("{name}: {}", http::describe_exposed_key(host));
            return Err(ChatError::new(ErrorClass::Configuration, text).into());
        }
        Ok(match settings.kind {
            ReviewerKind::Builtin => builtin,
            _ => ReviewerIdentity {
                reviewer: name.to_owned(),
                model: settings.model.clone(),
                effort: settings.effort.map_or(String::new(), |effort| effort.word().to_owned()),
                policy_version: RunReviewer::version_of_set(&self.model_policy_version(settings)?, self.prompt_set),
            },
        })
    }

    /// Returns the identity of a reviewer for the change from `base` (empty if there is none) to `snapshot`: the
    /// thresholds of the built-in reviewer are those at the base.
    pub(in crate::runner) fn resolve_identity_for(
        &self,
        wanted: Option<&str>,
        base: &str,
        snapshot: &str,
    ) -> Result<ReviewerIdentity, RunnerError> {
        let mut identity = self.resolve_identity(wanted)?;
        if let Some(panel) = self.find_panel(&identity.reviewer)? {
            return self.panel_identity(&panel, |member| self.resolve_identity_for(Some(member), base, snapshot));
        }
        if identity.reviewer == BUILTIN_REVIEWER {
            identity.policy_version =
                analyzer::reviewer::policy_version(&self.services.settings_for(base, snapshot).smells);
        }
        Ok(identity)
    }

    pub(in crate::runner) fn unknown_reviewer_error(&self, name: &str) -> RunnerError {
        let mut known = vec![BUILTIN_REVIEWER];
        known.extend(
            self.services.settings.reviewers.keys().map(String::as_str).filter(|name| *name != BUILTIN_REVIEWER),
        );
        RunnerError::UnknownReviewer { name: name.to_owned(), known: known.join(", ") }
    }

    /// Estimates the tokens for a review of `lines` changed lines.
    pub(in crate::runner) fn estimate_review_tokens(identity: &ReviewerIdentity, lines: u64) -> u64 {
        match identity.reviewer.as_str() {
            BUILTIN_REVIEWER => 0,
            _ => TOKENS_PER_REVIEW + lines.saturating_mul(TOKENS_PER_LINE),
        }
    }

    /// Opens the built-in reviewer for a run's snapshot.
    pub(in crate::runner) fn open_builtin(&self, record: &RunRecord) -> Result<Box<dyn Reviewer>, RunnerError> {
        let repo = self.services.repo.discover_again()?;
        let ReviewSubject { base_commit: base, snapshot_commit: commit, .. } = &record.subject;
        let snapshot = ReviewedSnapshot {
            run_id: record.run_id.clone(),
            commit: commit.clone(),
            base: repo.find_rules_commit(base, commit)?,
            filter: repo.resolve_filter(base, commit, &self.services.filter())?,
        };
        let known = self.services.indexer().open_fingerprints(&record.subject.snapshot_commit);
        let reviewer = BuiltinReviewer::new(repo, snapshot, &self.services.settings_for(base, commit).smells)?;
        Ok(Box::new(reviewer.with_learned_rules(self.services.learning().learned_rules()).with_fingerprints(known)))
    }
}

/// Estimates the tokens saved by not sending `lines` changed lines; `nothing_left` if no lines are left to send.
pub(in crate::runner) fn estimate_saved_tokens(reviewer: &str, lines: u64, nothing_left: bool) -> u64 {
    match (reviewer, nothing_left) {
        (BUILTIN_REVIEWER, _) => 0,
        (_, true) => TOKENS_PER_REVIEW + lines.saturating_mul(TOKENS_PER_LINE),
        (_, false) => lines.saturating_mul(TOKENS_PER_LINE),
    }
}

/// Creates a client for a reviewer that uses a model. Sends nothing yet. A command-line agent works in `folder`.
///
/// # Errors
///
/// A missing key, an invalid address, or a missing program.
pub fn connect(
    name: &str,
    settings: &ReviewerSettings,
    facts: &ModelFacts,
    paths: &Paths,
    folder: &Path,
) -> Result<Box<dyn Chat>, ChatError> {
    match settings.kind {
        ReviewerKind::Command => {
            return Ok(Box::new(command::open(build_program(name, settings, folder, FolderAccess::Read)?)));
        }
        ReviewerKind::Builtin => {
            let text = format!("{name} is the built-in reviewer: it talks to no model");
            return Err(ChatError::new(ErrorClass::Configuration, text));
        }
        _ => {}
    }
    let key = read_reviewer_key(settings)?;
    Ok(Box::new(http::open(Endpoint {
        kind: settings.kind,
        model: settings.model.clone(),
        base_url: settings.base_url.clone(),
        key,
        insecure_http: settings.insecure_http,
        // The model would reject an effort that it does not know.
        effort: settings.effort.filter(|effort| facts.effort.is_empty() || facts.effort.contains(effort)),
        connect_timeout: CONNECT_TIMEOUT.min(settings.total_timeout),
        timeouts: answer_timeouts(settings),
        attempts: settings.attempts,
        ca_file: settings.ca_file.as_ref().map(|file| paths.config.join(file)),
        name: name.to_owned(),
        window: Some(facts.context_window),
    })?))
}

fn answer_timeouts(settings: &ReviewerSettings) -> AnswerTimeouts {
    AnswerTimeouts { idle: settings.idle_timeout, total: settings.total_timeout }
}

/// Opens the embeddings of the settings, for at most `max_tokens` estimated tokens. Sends nothing yet.
///
/// # Errors
///
/// The errors of [`connect`].
pub(in crate::runner) fn open_embeddings(
    settings: &EmbeddingSettings,
    paths: &Paths,
    max_tokens: Option<u64>,
) -> Result<EmbeddingScorer, ChatError> {
    let (reviewer, patience) = (settings.as_reviewer(), settings.timeout());
    let embedder = Embedder::open(Endpoint {
        kind: settings.kind,
        model: settings.model.clone(),
        base_url: settings.base_url.clone(),
        key: read_reviewer_key(&reviewer)?,
        insecure_http: settings.insecure_http,
        effort: None,
        connect_timeout: patience / 2,
        timeouts: AnswerTimeouts { idle: patience, total: patience },
        attempts: 1,
        ca_file: None,
        name: "embeddings".to_owned(),
        window: None,
    })?;
    Ok(EmbeddingScorer::new(embedder, paths.vectors_folder(), patience).with_token_limit(max_tokens))
}

/// Reads a reviewer's key from the source in its settings.
fn read_reviewer_key(settings: &ReviewerSettings) -> Result<Option<SecretString>, ChatError> {
    http::read_key(settings.key_source(), &|name| std::env::var(name).ok())
}

/// Creates a command-line agent that makes a fix in `folder`. Starts no process yet.
pub(in crate::runner) fn open_fixer(
    name: &str,
    settings: &ReviewerSettings,
    folder: &Path,
) -> Result<command::Agent, ChatError> {
    Ok(command::open(build_program(name, settings, folder, FolderAccess::Write)?))
}

/// Describes a command-line agent that works in `folder`.
fn build_program(
    name: &str,
    settings: &ReviewerSettings,
    folder: &Path,
    access: FolderAccess,
) -> Result<Program, ChatError> {
    let ourselves = process::current_program().map_err(|error| {
        ChatError::new(
            ErrorClass::Internal,
            format!("{name}: revdeck does not find itself to keep the program: {error}"),
        )
    })?;
    Ok(Program {
        name: name.to_owned(),
        words: settings.command.clone(),
        dialect: settings.dialect(),
        model: Some(settings.model.clone()).filter(|model| !model.is_empty()),
        effort: settings.effort.map(|effort| effort.word().to_owned()),
        folder: folder.to_owned(),
        access,
        timeouts: answer_timeouts(settings),
        environment: Vec::new(),
        supervisor: (ourselves, vec!["keep".into(), "--".into()]),
    })
}
