//! Decides what leaves this machine: which records, without which paths and texts.
//!
//! - Secrets never leave: every text is masked, as in what a model gets, and a path whose name holds a secret is left out.
//!   A secret of the code that a record is about is masked in all texts of the record, however they name it.
//! - Code leaves only with [`ShareMode::All`]. Prompts and answers of models never do.
//! - A review of which a part is left out does not answer requests elsewhere: it does not say that the rest is clean.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::domain::{
    Actor, Coverage, Disposition, Finding, FindingCounts, FindingId, FindingStep, HeldBackPlace, Kind, RunEnding,
    RunLinks, RunRecord, RunReuse, Scope, ShareMode, SharedDecision, SharedReview, TeamPerson, TeamRecord, Voice,
    content_hash, text::format_count,
};
use crate::masking::{KnownSecrets, Mask, has_secret_name};
use crate::team::excluded_names::ExcludedNames;
use crate::team::segment::MAX_REASON_BYTES;

/// Prefix of the scope hash of a review of which a part is not shared.
const PARTIAL_SCOPE_PREFIX: &str = "part:";

/// Facts about the repository, from which follows what a text must not name.
pub trait RepositoryFacts {
    /// Returns the content of a file in a commit, or else in HEAD; `None` if there is none.
    fn read_file(&self, commit: &str, path: &str) -> Option<String>;
    /// Returns the commit in which a finding was last reported, and its path there.
    fn locate_finding(&self, finding: &FindingId) -> Option<(String, String)>;
    /// Lists the paths of all files of HEAD.
    fn list_files(&self) -> Vec<String>;
}

/// Rules for the records that leave this machine: sharing mode and excluded paths.
pub struct OutgoingFilter<'a> {
    mode: ShareMode,
    excluded: Gitignore,
    /// True if learned patterns leave.
    shares_patterns: bool,
    /// Hash of the settings that keep decisions and reviews here.
    rules: String,
    facts: Option<Box<dyn RepositoryFacts + 'a>>,
    /// Names of excluded paths of HEAD.
    excluded_names: OnceCell<ExcludedNames>,
    /// Secrets of files, by commit and path.
    file_secrets: RefCell<HashMap<(String, String), Rc<KnownSecrets>>>,
}

/// Terms that are replaced in the texts of a record.
#[derive(Default)]
struct RedactedTerms {
    secrets: KnownSecrets,
    /// Names of excluded paths that the record itself has, beside those of HEAD.
    names: ExcludedNames,
}

impl<'a> OutgoingFilter<'a> {
    /// Builds the filter. `excluded` are globs in `.gitignore` syntax for paths that never leave.
    ///
    /// # Errors
    /// Returns the globs' fault.
    pub fn new(mode: ShareMode, excluded: &[String]) -> Result<Self, ignore::Error> {
        let mut builder = GitignoreBuilder::new("");
        for glob in excluded {
            builder.add_line(None, glob)?;
        }
        Ok(Self {
            mode,
            excluded: builder.build()?,
            shares_patterns: false,
            rules: hash_rules(mode, excluded),
            facts: None,
            excluded_names: OnceCell::new(),
            file_secrets: RefCell::default(),
        })
    }

    /// Lets the filter ask for the code that records are about, and for the paths of the repository.
    #[must_use]
    pub fn with_facts(self, facts: impl RepositoryFacts + 'a) -> Self {
        Self { facts: Some(Box::new(facts)), ..self }
    }

    /// Lets learned patterns leave, or keeps them here.
    #[must_use]
    pub fn with_patterns(self, shares_patterns: bool) -> Self {
        Self { shares_patterns, ..self }
    }

    /// Returns a fingerprint of the settings that keep decisions and reviews here. While it is the same, the same ones are.
    pub fn rules(&self) -> &str {
        &self.rules
    }

    /// Returns true if learned patterns leave this machine.
    pub fn shares_patterns(&self) -> bool {
        self.shares_patterns
    }

    /// Returns true if reviews leave this machine.
    pub fn shares_reviews(&self) -> bool {
        self.mode != ShareMode::Decisions
    }

    /// Returns true if a path may be named elsewhere.
    pub fn may_name(&self, path: &str) -> bool {
        !self.is_excluded(path) && !has_secret_name(path)
    }

    fn is_excluded(&self, path: &str) -> bool {
        self.excluded.matched_path_or_any_parents(path, false).is_ignore()
    }

    /// Returns true if paths are kept here.
    pub fn excludes_paths(&self) -> bool {
        !self.excluded.is_empty()
    }

    /// Masks the texts of a decision, and cuts them to the size that others read.
    pub fn clean_decision(&self, mut decision: SharedDecision) -> SharedDecision {
        let mut terms = RedactedTerms::default();
        if !decision.reason.is_empty()
            && let Some((commit, path)) =
                self.facts.as_ref().and_then(|facts| facts.locate_finding(&decision.finding_id))
        {
            terms.secrets.extend(&self.secrets_of_file(&commit, &path));
        }
        decision.reason = self.mask_words(&decision.reason, &terms);
        decision.person = self.clean_person(decision.person, &terms);
        if decision.reason.len() > MAX_REASON_BYTES {
            decision.reason.truncate(decision.reason.floor_char_boundary(MAX_REASON_BYTES));
        }
        decision
    }

    /// Returns a record that was made earlier as it may leave now; `None` if nothing of it may. The settings may have changed
    /// since.
    pub fn clean_record(&self, record: TeamRecord) -> Option<TeamRecord> {
        match record {
            TeamRecord::Decision(decision) => Some(TeamRecord::Decision(self.clean_decision(decision))),
            TeamRecord::Review(review) => {
                let SharedReview { machine, person, run, findings, coverage, held_back_places } = *review;
                let (mut run, findings, coverage) = self.clean_review(run, findings, coverage)?;
                let person = self.clean_person(person, &RedactedTerms::default());
                let held_back_places = self.clean_held_back(held_back_places);
                keep_sent_reports(&mut run, &findings, held_back_places.as_deref());
                let review = SharedReview { machine, person, run, findings, coverage, held_back_places };
                Some(TeamRecord::Review(Box::new(review)))
            }
            TeamRecord::Patterns(mut patterns) => {
                patterns.person = self.clean_person(patterns.person, &RedactedTerms::default());
                self.shares_patterns.then_some(TeamRecord::Patterns(patterns))
            }
        }
    }

    /// Returns the secrets of a file.
    fn secrets_of_file(&self, commit: &str, path: &str) -> Rc<KnownSecrets> {
        let key = (commit.to_owned(), path.to_owned());
        if let Some(known) = self.file_secrets.borrow().get(&key) {
            return Rc::clone(known);
        }
        let mut secrets = KnownSecrets::default();
        if let Some(code) = self.facts.as_ref().and_then(|facts| facts.read_file(commit, path)) {
            secrets.add_code(path, &code);
        }
        let secrets = Rc::new(secrets);
        self.file_secrets.borrow_mut().insert(key, Rc::clone(&secrets));
        secrets
    }

    /// Collects the terms to replace in the texts of a review: the secrets of the code of all its findings, and the names of
    /// its excluded paths.
    fn collect_redacted_terms(&self, run: &RunRecord, findings: &[Finding], coverage: &Coverage) -> RedactedTerms {
        let mut terms = RedactedTerms::default();
        let mut paths: Vec<&str> = Vec::new();
        for finding in findings {
            let path = finding.repo_relative_path.as_str();
            terms.secrets.add_code(path, &finding.quoted_code);
            if let Some(replacement) = finding.suggestion.as_ref().and_then(|change| change.replacement.as_deref()) {
                terms.secrets.add_code(path, replacement);
            }
            paths.push(path);
        }
        paths.sort_unstable();
        paths.dedup();
        for path in &paths {
            terms.secrets.extend(&self.secrets_of_file(&run.subject.snapshot_commit, path));
        }
        if self.excludes_paths() {
            paths.extend(run.subject.changed_paths.iter().map(String::as_str));
            for coverage in [coverage, &run.outcome.coverage] {
                paths.extend(coverage.files.iter().map(|file| file.path.as_str()));
                paths.extend(coverage.left_out.iter().map(|file| file.path.as_str()));
                paths.extend(coverage.carried.iter().map(|carried| carried.file.path.as_str()));
                paths.extend(coverage.partial.iter().map(String::as_str));
            }
            terms.names = ExcludedNames::new(paths, |path| self.is_excluded(path));
        }
        terms
    }

    /// Masks the secrets in words, and the names of paths that stay here.
    fn mask_words(&self, text: &str, terms: &RedactedTerms) -> String {
        let masked = terms.secrets.mask_words(text);
        if !self.excludes_paths() || masked.is_empty() {
            return masked;
        }
        let is_excluded = |path: &str| self.is_excluded(path);
        let of_head = self.excluded_names.get_or_init(|| {
            let paths = self.facts.as_ref().map(|facts| facts.list_files()).unwrap_or_default();
            ExcludedNames::new(paths.iter().map(String::as_str), is_excluded)
        });
        terms.names.mask(&of_head.mask(&masked, is_excluded), is_excluded)
    }

    /// Returns a review without what must not leave: the run, its findings and its coverage. `None` if nothing is left.
    pub fn clean_review(
        &self,
        mut run: RunRecord,
        findings: Vec<Finding>,
        mut coverage: Coverage,
    ) -> Option<(RunRecord, Vec<Finding>, Coverage)> {
        if !self.shares_reviews() {
            return None;
        }
        let terms = self.collect_redacted_terms(&run, &findings, &coverage);
        let before = findings.len();
        let mut findings: Vec<Finding> =
            findings.into_iter().filter(|finding| self.may_name(&finding.repo_relative_path)).collect();
        let hidden = before - findings.len() + self.drop_paths(&mut run, &mut coverage);
        if hidden > 0 {
            if findings.is_empty() && coverage.files.is_empty() && coverage.carried.is_empty() {
                return None;
            }
            make_partial(&mut run);
            coverage.incomplete = true;
            run.outcome.summary = format!("{} shared of a review of more", format_count(findings.len(), "finding"));
            let is_sent = |id: &FindingId| findings.iter().any(|finding| finding.finding_id == *id);
            run.outcome.finding_digests.retain(is_sent);
            run.outcome.scanned_findings.retain(is_sent);
            run.outcome.listed_as.retain(|report| is_sent(&report.finding_id));
            run.outcome.finding_counts = FindingCounts::from_findings(&findings);
        }
        for finding in &mut findings {
            self.clean_finding(finding, &terms);
        }
        self.clean_run(&mut run, &terms);
        coverage.incomplete |= run.outcome.coverage.incomplete;
        // Inodes say something about the files of this machine only.
        for file in coverage.left_out.iter_mut().chain(&mut run.outcome.coverage.left_out) {
            file.inode = None;
        }
        Some((run, findings, coverage))
    }

    /// Returns the places of reports that were held back, sorted, each once; `None` if one of them may not be named: a list
    /// without it would say that nothing was held back there.
    pub fn clean_held_back(&self, places: Option<Vec<HeldBackPlace>>) -> Option<Vec<HeldBackPlace>> {
        let mut places = places.filter(|places| places.iter().all(|place| self.may_name(&place.path)))?;
        places.sort();
        places.dedup();
        Some(places)
    }

    /// Removes paths that may not be named; returns how many there were.
    fn drop_paths(&self, run: &mut RunRecord, coverage: &mut Coverage) -> usize {
        let mut hidden = 0;
        let mut may_stay = |path: &str| {
            let may_stay = self.may_name(path);
            hidden += usize::from(!may_stay);
            may_stay
        };
        run.subject.changed_paths.retain(|path| may_stay(path));
        for coverage in [coverage, &mut run.outcome.coverage] {
            coverage.files.retain(|file| may_stay(&file.path));
            coverage.left_out.retain(|file| may_stay(&file.path));
            coverage.carried.retain(|carried| may_stay(&carried.file.path));
            coverage.partial.retain(|path| may_stay(path));
        }
        hidden
    }

    fn clean_person(&self, person: TeamPerson, terms: &RedactedTerms) -> TeamPerson {
        TeamPerson { name: self.mask_words(&person.name, terms), email: self.mask_words(&person.email, terms) }
    }

    /// Removes what is about this machine, and masks the texts.
    fn clean_run(&self, run: &mut RunRecord, terms: &RedactedTerms) {
        detach_from_machine(run);
        let mask_words = |text: &str| self.mask_words(text, terms);
        run.ending.error_summary = mask_words(&run.ending.error_summary);
        run.outcome.summary = mask_words(&run.outcome.summary);
        run.decision = mask_words(&run.decision);
        run.subject.branch = mask_words(&run.subject.branch);
        for revision in scope_revisions(&mut run.subject.scope) {
            if !is_commit_id(revision) {
                *revision = mask_words(revision);
            }
        }
        run.owner = mask_words(&run.owner);
        // A run under a masked name answers no request elsewhere.
        let by = &mut run.reviewed_by;
        for name in [&mut by.name, &mut by.model, &mut by.reasoning_effort].into_iter().chain(&mut by.prompt_set) {
            *name = mask_words(name);
        }
        for answerer in &mut run.usage.answered_by {
            answerer.reviewer = mask_words(&answerer.reviewer);
            answerer.model = mask_words(&answerer.model);
        }
    }

    fn clean_finding(&self, finding: &mut Finding, terms: &RedactedTerms) {
        let mask_words = |text: &str| self.mask_words(text, terms);
        let path = finding.repo_relative_path.clone();
        // The place of a secret is said, and nothing of its code.
        let shares_code = self.mode == ShareMode::All && finding.kind != Kind::HardcodedConfiguration;
        finding.title = mask_words(&finding.title);
        finding.explanation = mask_words(&finding.explanation);
        finding.symbol = finding.symbol.take().map(|symbol| mask_words(&symbol));
        finding.quoted_code = match shares_code {
            true => terms.secrets.mask_known(&mask_code(&path, &finding.quoted_code)),
            false => String::new(),
        };
        // A pattern is knowledge of this machine.
        finding.pattern = None;
        if let Some(suggestion) = &mut finding.suggestion {
            suggestion.text = mask_words(&suggestion.text);
            suggestion.replacement = match suggestion.replacement.take() {
                // A change with a masked part would not be the change that was proposed.
                Some(code) if shares_code && mask_code(&path, &code) == code && !terms.secrets.are_in(&code) => {
                    Some(code)
                }
                _ => None,
            };
        }
        for text in finding.voices.iter_mut().flat_map(Voice::texts_mut) {
            *text = mask_words(text);
        }
        for step in &mut finding.steps {
            if let FindingStep::Ruled { reason, .. } = step {
                *reason = mask_words(reason);
            }
        }
    }
}

fn hash_rules(mode: ShareMode, excluded: &[String]) -> String {
    // Between the other modes, no record is kept here or let go.
    let shares_reviews: &[u8] = if mode == ShareMode::Decisions { b"decisions" } else { b"reviews" };
    content_hash(std::iter::once(shares_reviews).chain(excluded.iter().map(String::as_bytes)))
}

/// Returns the revisions that a scope names.
fn scope_revisions(scope: &mut Scope) -> Vec<&mut String> {
    match scope {
        Scope::Commit(revision) | Scope::Branch(Some(revision)) => vec![revision],
        Scope::Range { from, to } | Scope::Since { from, to } => vec![from, to],
        Scope::Worktree | Scope::Staged | Scope::Branch(None) | Scope::All => Vec::new(),
    }
}

/// Returns true if a revision is an id and not the name of a branch or a tag. An id looks like a secret, and is none.
fn is_commit_id(revision: &str) -> bool {
    revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Keeps a review from answering requests of others: it does not say that what it does not name is clean.
pub fn make_partial(run: &mut RunRecord) {
    let identity = content_hash([run.run_id.as_str().as_bytes()]);
    run.subject.scope_hash = format!("{PARTIAL_SCOPE_PREFIX}{}", identity.get(..16).unwrap_or_default());
}

/// Keeps of the reports that a list has merged those of findings that the record names. The id of a report says no more than that of
/// its finding: both are about the same code.
pub fn keep_sent_reports(run: &mut RunRecord, findings: &[Finding], held_back: Option<&[HeldBackPlace]>) {
    let Some(reports) = &mut run.outcome.merged_reports else { return };
    let held_back = held_back.unwrap_or_default().iter().map(|place| &place.finding_id);
    let sent: HashSet<&FindingId> = findings.iter().map(|finding| &finding.finding_id).chain(held_back).collect();
    reports.retain(|report| sent.contains(&report.finding_id));
}

/// Removes what is about one machine alone: its folder, its counters, its other runs, and how it has used the run.
pub fn detach_from_machine(run: &mut RunRecord) {
    run.subject.worktree = String::new();
    run.subject.triage_bytes = None;
    run.subject.epoch = 0;
    run.reuse = RunReuse::default();
    run.links = RunLinks::default();
    run.follow_up_of = None;
    run.follow_up_count = 0;
    let ending = std::mem::take(&mut run.ending);
    run.ending = RunEnding {
        error_class: ending.error_class,
        error_summary: ending.error_summary,
        budget_stop: ending.budget_stop,
        ..RunEnding::default()
    };
    run.usage.reserved_cost = Default::default();
    run.team = None;
    run.paused = false;
}

fn mask_code(path: &str, code: &str) -> String {
    Mask::On.mask_text(Some(path), code).into_owned()
}

/// Returns true if a disposition is a decision for the team: by a person or an assistant of this machine.
pub fn is_own_decision(line: &Disposition) -> bool {
    line.team.is_none() && line.actor != Actor::Engine
}
