//! A fix by a model over HTTP: one conversation in which it says exact edits. Edits that do not fit are refused and said
//! back; after [`TRIES`] answers there is no fix.

use std::collections::BTreeMap;

use super::make::{Made, Material, NoPatch};
use super::spend::Wanted;
use crate::config::Prompt;
use crate::context::mask::Mask;
use crate::domain::{ChatRequest, Message, Stop, text};
use crate::git::Put;
use crate::review::{edits_in, make_edits};
use crate::runner::identity::connect;
use crate::runner::{Runner, RunnerError};

/// Answers that are looked at.
const TRIES: u32 = 3;
/// Tokens of code that are shown; own: half of what a small model takes, and more than a fix needs.
const CODE_TOKENS: u64 = 48_000;
/// A file up to so many lines is shown whole; of a longer one what stands around the problems.
const WHOLE_LINES: usize = 600;
/// Lines shown before and behind a problem.
const AROUND_LINES: usize = 80;
/// The longest answer. Tokens.
const ANSWER_TOKENS: u64 = 16_000;

impl Runner {
    pub(super) fn make_by_model(&self, material: &Material) -> Result<Made, NoPatch> {
        let fix = &material.fix;
        let settings = self.model_settings(&fix.reviewer)?;
        let facts = self.fixer_facts(&fix.reviewer)?;
        let wanted = Wanted::new(self, fix);
        let mask = if settings.mask_secrets { Mask::On } else { Mask::Off };
        let texts = self.texts(material)?;
        let count = |text: &str| crate::context::tokens::count(facts.encoding, text) as u64;
        let code = shown(material, &texts, mask);
        if count(&code) > CODE_TOKENS.min(facts.context_window / 2) {
            return Err(NoPatch::Because(
                "the code of the findings is too much for one fix: fix fewer at once".to_owned(),
            ));
        }
        let prompts = self.prompts()?;
        let task = Prompt::ResolveTask { findings: &material.in_words(), code: &code, again: &material.again };
        let mut request = ChatRequest {
            system: format!("{}\n\n{}", prompts.render(&Prompt::Resolve), prompts.render(&Prompt::ResolveEdits)),
            messages: vec![Message::User { text: prompts.render(&task) }],
            max_output: facts.max_output.min(ANSWER_TOKENS),
            pinned: 1,
            ..ChatRequest::default()
        };
        let root = self.repo.root();
        let mut chat = connect(&fix.reviewer, settings, &facts, &self.paths, &root).map_err(RunnerError::from)?;
        let mut made = Made::default();
        let mut why = String::new();
        for _ in 0..TRIES {
            let answer = match self.ask_fixer(chat.as_mut(), &request, (material, &facts, &wanted), &mut made) {
                Ok(answer) => answer,
                Err(NoPatch::Because(why)) => return Err(self.paid_for_nothing(material, made, why)),
                Err(other) => return Err(other),
            };
            let edits = match answer.stop {
                Stop::Length | Stop::Interrupted => Err(vec!["your answer was cut off: make it shorter".to_owned()]),
                _ => edits_in(&answer.text).map_err(|why| vec![why]),
            };
            match edits.and_then(|edits| make_edits(&edits, &texts)) {
                Ok(new) => {
                    let put = |content: String| Put::File { content: content.into_bytes(), executable: false };
                    made.changes = new.into_iter().map(|(path, content)| (path, put(content))).collect();
                    return Ok(made);
                }
                Err(wrong) => {
                    why = wrong.join("\n");
                    request.messages.push(answer.message());
                    let text = prompts.render(&Prompt::ResolveRefused { reasons: &why });
                    request.messages.push(Message::User { text });
                }
            }
        }
        let why = format!("its edits do not fit: {}", text::one_line(&why));
        Err(self.paid_for_nothing(material, made, why))
    }

    /// The files that the findings are in, as text.
    fn texts(&self, material: &Material) -> Result<BTreeMap<String, String>, NoPatch> {
        let mut texts = BTreeMap::new();
        for finding in &material.findings {
            let path = &finding.repo_relative_path;
            if !texts.contains_key(path)
                && let Some(text) = self.text_at(material.on(), path)?
            {
                texts.insert(path.clone(), text);
            }
        }
        match texts.is_empty() {
            true => Err(NoPatch::Because("none of the files is a text in the snapshot".to_owned())),
            false => Ok(texts),
        }
    }
}

/// The code that a model is shown, with line numbers and without secrets.
fn shown(material: &Material, texts: &BTreeMap<String, String>, mask: Mask) -> String {
    let mut shown = String::new();
    for (path, content) in texts {
        let masked = mask.text(Some(path), content);
        let lines: Vec<&str> = masked.lines().collect();
        let wanted = |row: usize| {
            lines.len() <= WHOLE_LINES
                || material.findings.iter().filter(|finding| finding.repo_relative_path == *path).any(|finding| {
                    let (first, last) = (finding.line_start as usize, finding.line_end as usize);
                    (first.saturating_sub(AROUND_LINES)..=last.saturating_add(AROUND_LINES)).contains(&(row + 1))
                })
        };
        shown.push_str(&format!("=== {}\n", text::one_line(path)));
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
