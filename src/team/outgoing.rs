//! Decides what leaves this machine: which records, without which paths and texts.
//!
//! - Secrets never leave: every text is masked, as in what a model gets, and a path whose name holds a secret is left out.
//! - Code leaves only with [`ShareMode::All`]. Prompts and answers of models never do.
//! - A review of which a part is left out does not answer requests elsewhere: it does not say that the rest is clean.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::domain::{
    Actor, Coverage, Disposition, Finding, FindingCounts, FindingId, FindingStep, Kind, RunEnding, RunLinks, RunRecord,
    RunReuse, ShareMode, SharedDecision, SharedReview, TeamPerson, TeamRecord, Voice, content_hash, text::format_count,
};
use crate::masking::{Mask, has_secret_name};
use crate::team::segment::MAX_REASON_BYTES;

/// Prefix of the scope hash of a review of which a part is not shared.
const PARTIAL_SCOPE_PREFIX: &str = "part:";

/// Rules for the records that leave this machine: sharing mode and excluded paths.
pub struct OutgoingFilter {
    mode: ShareMode,
    excluded: Gitignore,
    /// True if learned patterns leave.
    shares_patterns: bool,
}

impl OutgoingFilter {
    /// Builds the filter. `excluded` are globs in `.gitignore` syntax for paths that never leave.
    ///
    /// # Errors
    /// Returns the globs' fault.
    pub fn new(mode: ShareMode, excluded: &[String]) -> Result<Self, ignore::Error> {
        let mut builder = GitignoreBuilder::new("");
        for glob in excluded {
            builder.add_line(None, glob)?;
        }
        Ok(Self { mode, excluded: builder.build()?, shares_patterns: false })
    }

    /// Lets learned patterns leave, or keeps them here.
    #[must_use]
    pub fn with_patterns(self, shares_patterns: bool) -> Self {
        Self { shares_patterns, ..self }
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
        !self.excluded.matched_path_or_any_parents(path, false).is_ignore() && !has_secret_name(path)
    }

    /// Returns true if paths are kept here.
    pub fn excludes_paths(&self) -> bool {
        !self.excluded.is_empty()
    }

    /// Masks the texts of a decision, and cuts them to the size that others read.
    pub fn clean_decision(&self, mut decision: SharedDecision) -> SharedDecision {
        decision.reason = self.mask_words(&decision.reason);
        decision.person = self.clean_person(decision.person);
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
                let SharedReview { machine, person, run, findings, coverage } = *review;
                let (run, findings, coverage) = self.clean_review(run, findings, coverage)?;
                let person = self.clean_person(person);
                Some(TeamRecord::Review(Box::new(SharedReview { machine, person, run, findings, coverage })))
            }
            TeamRecord::Patterns(mut patterns) => {
                patterns.person = self.clean_person(patterns.person);
                self.shares_patterns.then_some(TeamRecord::Patterns(patterns))
            }
        }
    }

    /// Masks the secrets in words, and the names of paths that stay here.
    fn mask_words(&self, text: &str) -> String {
        let masked = Mask::On.mask_words(text).into_owned();
        if !self.excludes_paths() {
            return masked;
        }
        let is_path_character = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
        let mut shown = String::with_capacity(masked.len());
        for part in masked.split_inclusive(|c: char| !is_path_character(c)) {
            let word = part.trim_end_matches(|c: char| !is_path_character(c)).trim_matches('.');
            match !word.is_empty() && word.contains(['/', '.']) && !self.may_name(word.trim_start_matches('/')) {
                true => shown.push_str(&part.replace(word, "«path»")),
                false => shown.push_str(part),
            }
        }
        shown
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
            run.outcome.finding_counts = FindingCounts::from_findings(&findings);
        }
        for finding in &mut findings {
            self.clean_finding(finding);
        }
        self.clean_run(&mut run);
        coverage.incomplete |= run.outcome.coverage.incomplete;
        Some((run, findings, coverage))
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
        }
        hidden
    }

    fn clean_person(&self, person: TeamPerson) -> TeamPerson {
        TeamPerson { name: self.mask_words(&person.name), email: self.mask_words(&person.email) }
    }

    /// Removes what is about this machine, and masks the texts.
    fn clean_run(&self, run: &mut RunRecord) {
        detach_from_machine(run);
        run.ending.error_summary = self.mask_words(&run.ending.error_summary);
        run.outcome.summary = self.mask_words(&run.outcome.summary);
        run.decision = self.mask_words(&run.decision);
        run.subject.branch = self.mask_words(&run.subject.branch);
        run.owner = self.mask_words(&run.owner);
        // A run under a masked name answers no request elsewhere.
        let by = &mut run.reviewed_by;
        for name in [&mut by.name, &mut by.model, &mut by.reasoning_effort].into_iter().chain(&mut by.prompt_set) {
            *name = self.mask_words(name);
        }
        for answerer in &mut run.usage.answered_by {
            answerer.reviewer = self.mask_words(&answerer.reviewer);
            answerer.model = self.mask_words(&answerer.model);
        }
    }

    fn clean_finding(&self, finding: &mut Finding) {
        let path = finding.repo_relative_path.clone();
        // The place of a secret is said, and nothing of its code.
        let shares_code = self.mode == ShareMode::All && finding.kind != Kind::HardcodedConfiguration;
        finding.title = self.mask_words(&finding.title);
        finding.explanation = self.mask_words(&finding.explanation);
        finding.symbol = finding.symbol.take().map(|symbol| self.mask_words(&symbol));
        finding.quoted_code = if shares_code { mask_code(&path, &finding.quoted_code) } else { String::new() };
        // A pattern is knowledge of this machine.
        finding.pattern = None;
        if let Some(suggestion) = &mut finding.suggestion {
            suggestion.text = self.mask_words(&suggestion.text);
            suggestion.replacement = match suggestion.replacement.take() {
                // A change with a masked part would not be the change that was proposed.
                Some(code) if shares_code && mask_code(&path, &code) == code => Some(code),
                _ => None,
            };
        }
        for text in finding.voices.iter_mut().flat_map(Voice::texts_mut) {
            *text = self.mask_words(text);
        }
        for step in &mut finding.steps {
            if let FindingStep::Ruled { reason, .. } = step {
                *reason = self.mask_words(reason);
            }
        }
    }
}

/// Keeps a review from answering requests of others: it does not say that what it does not name is clean.
pub fn make_partial(run: &mut RunRecord) {
    let identity = content_hash([run.run_id.as_str().as_bytes()]);
    run.subject.scope_hash = format!("{PARTIAL_SCOPE_PREFIX}{}", identity.get(..16).unwrap_or_default());
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
