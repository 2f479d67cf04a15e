//! Makes a fix with a model over HTTP, in one conversation in which the model answers with exact edits. Edits that do
//! not fit are sent back to the model; after [`MAX_ANSWERS`] answers there is no fix.

use std::collections::BTreeMap;

use super::fixer_requests::FixDropWatch;
use super::fixer_worker::{FixAttempt, FixFailure, FixMaterial};
use crate::config::Prompt;
use crate::domain::{ChatMessage, ChatRequest, StopReason, text};
use crate::git::FileEdit;
use crate::masking::Mask;
use crate::review::{apply_edits, parse_edits};
use crate::runner::reviewer_access::reviewer_identity::connect;
use crate::runner::{Fixer, RunnerError};

/// Maximum number of answers.
const MAX_ANSWERS: u32 = 3;
/// Maximum number of tokens of code in the prompt. Not from the literature: half of a small model's window, and more
/// than a fix needs.
const MAX_CODE_TOKENS: u64 = 48_000;
/// Maximum number of lines of a file that is shown completely. Of a longer file, only the lines around the findings are
/// shown.
const MAX_WHOLE_FILE_LINES: usize = 600;
/// Lines shown before and behind a finding in a longer file.
const CONTEXT_LINES: usize = 80;
/// Longest answer, in tokens.
const MAX_ANSWER_TOKENS: u64 = 16_000;

impl Fixer<'_> {
    pub(super) fn make_with_model(&self, material: &FixMaterial) -> Result<FixAttempt, FixFailure> {
        let fix = &material.fix;
        let settings = self.services.reviewers().model_settings(&fix.reviewer)?;
        let facts = self.load_fixer_facts(&fix.reviewer)?;
        let wanted = FixDropWatch::new(self.services, fix);
        let mask = if settings.mask_secrets { Mask::On } else { Mask::Off };
        let texts = self.read_texts(material)?;
        let count = |text: &str| crate::tokens::count_tokens(facts.encoding, text) as u64;
        let code = render_code(material, &texts, mask);
        if count(&code) > MAX_CODE_TOKENS.min(facts.context_window / 2) {
            return Err(FixFailure::Reason(
                "the code of the findings is too much for one fix: fix fewer at once".to_owned(),
            ));
        }
        let prompts = self.services.reviewers().load_prompts()?;
        let findings = material.describe_findings();
        let task = Prompt::ResolveTask {
            findings: &mask.mask_key_shapes(&findings),
            code: &code,
            again: &mask.mask_key_shapes(&material.retry_reasons),
        };
        let mut request = ChatRequest {
            system: format!("{}\n\n{}", prompts.render(&Prompt::Resolve), prompts.render(&Prompt::ResolveEdits)),
            messages: vec![ChatMessage::User { text: prompts.render(&task) }],
            max_output: facts.max_output.min(MAX_ANSWER_TOKENS),
            pinned: 1,
            ..ChatRequest::default()
        };
        let root = self.services.repo.root();
        let chat = connect(&fix.reviewer, settings, &facts, &self.services.paths, &root).map_err(RunnerError::from)?;
        let mut chat = self.services.team().hold_to_budget(chat, &facts);
        let mut made = FixAttempt::default();
        let mut why = String::new();
        for _ in 0..MAX_ANSWERS {
            let answer = match self.ask_fixer(chat.as_mut(), &request, (material, &facts, &wanted), &mut made) {
                Ok(answer) => answer,
                Err(FixFailure::Reason(why)) => return Err(self.record_failed_attempt(material, made, why)),
                Err(other) => return Err(other),
            };
            let edits = match answer.stop {
                StopReason::Length | StopReason::Interrupted => {
                    Err(vec!["your answer was cut off: make it shorter".to_owned()])
                }
                _ => parse_edits(&answer.text).map_err(|why| vec![why]),
            };
            match edits.and_then(|edits| apply_edits(&edits, &texts)) {
                Ok(new) => {
                    let put = |content: String| FileEdit::Write { content: content.into_bytes(), executable: false };
                    made.changes = new.into_iter().map(|(path, content)| (path, put(content))).collect();
                    return Ok(made);
                }
                Err(wrong) => {
                    why = wrong.join("\n");
                    request.messages.push(answer.to_message());
                    let text = prompts.render(&Prompt::ResolveRefused { reasons: &why });
                    request.messages.push(ChatMessage::User { text });
                }
            }
        }
        let why = format!("its edits do not fit: {}", text::sanitize_line(&why));
        Err(self.record_unfit_attempt(material, made, why))
    }

    /// Reads the files that contain the findings, as text.
    fn read_texts(&self, material: &FixMaterial) -> Result<BTreeMap<String, String>, FixFailure> {
        let mut texts = BTreeMap::new();
        for finding in &material.findings {
            let path = &finding.repo_relative_path;
            if !texts.contains_key(path)
                && let Some(text) = self.read_text_at(material.base_commit(), path)?
            {
                texts.insert(path.clone(), text);
            }
        }
        match texts.is_empty() {
            true => Err(FixFailure::Reason("none of the files is a text in the snapshot".to_owned())),
            false => Ok(texts),
        }
    }
}

/// Renders the code for a model, with line numbers and masked secrets.
fn render_code(material: &FixMaterial, texts: &BTreeMap<String, String>, mask: Mask) -> String {
    let mut shown = String::new();
    for (path, content) in texts {
        let masked = mask.mask_text(Some(path), content);
        let lines: Vec<&str> = masked.lines().collect();
        let wanted = |row: usize| {
            lines.len() <= MAX_WHOLE_FILE_LINES
                || material.findings.iter().filter(|finding| finding.repo_relative_path == *path).any(|finding| {
                    let (first, last) = (finding.line_start as usize, finding.line_end as usize);
                    (first.saturating_sub(CONTEXT_LINES)..=last.saturating_add(CONTEXT_LINES)).contains(&(row + 1))
                })
        };
        shown.push_str(&format!("=== {}\n", text::sanitize_line(&mask.mask_key_shapes(path))));
        let mut gap = false;
        for (row, line) in lines.iter().enumerate() {
            if wanted(row) {
                if std::mem::take(&mut gap) {
                    shown.push_str("  ...\n");
                }
                shown.push_str(&format!("{:>6}  {line}\n", row + 1));
            } else {
                gap = true;
            }
        }
    }
    shown
}
