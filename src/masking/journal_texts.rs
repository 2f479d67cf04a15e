//! Masks the words of models and servers in journal entries.

use super::Mask;
use crate::domain::RunEvent;

/// Masks keys in the sentences of an entry that a model or a server has written: notes, failures and opinions. Answers
/// stay as they came; whoever shows one masks it.
pub fn mask_event_words(event: &mut RunEvent) {
    let (RunEvent::Note { text }
    | RunEvent::Failed { summary: text, .. }
    | RunEvent::Unanswered { summary: text, .. }
    | RunEvent::Judged { reason: text, .. }
    | RunEvent::Waiting { reason: text, .. }) = event
    else {
        if let RunEvent::Rejected { rejected, .. } = event {
            mask_words(&mut rejected.reason);
        }
        return;
    };
    mask_words(text);
}

fn mask_words(text: &mut String) {
    if let std::borrow::Cow::Owned(masked) = Mask::On.mask_key_shapes(text) {
        *text = masked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ErrorClass, Opinion};

    #[test]
    fn a_key_in_the_words_of_a_model_is_masked_and_other_words_stay() {
        let key = ["AKIA", "Q7RT2YPZ", "LK4WN6ZC"].concat();
        let finding_id = "f_0000000000000001".parse().expect("an id");
        let opinion = Opinion::Real;
        for event in [
            RunEvent::Note { text: format!("the key {key} is used") },
            RunEvent::Failed { class: ErrorClass::Auth, summary: format!("wrong key {key}") },
            RunEvent::Unanswered { turn: 1, class: ErrorClass::Auth, summary: format!("wrong key {key}") },
            RunEvent::Judged { finding_id, opinion, reason: format!("it holds {key}") },
        ] {
            let mut masked = event.clone();
            mask_event_words(&mut masked);
            let said = format!("{masked:?}");
            assert!(!said.contains(&key) && said.contains("«secret"), "{said}");
        }
        let mut plain = RunEvent::Note { text: "a.py is left out".to_owned() };
        mask_event_words(&mut plain);
        assert_eq!(plain, RunEvent::Note { text: "a.py is left out".to_owned() });
    }
}
