//! What was learned, as the built-in reviewer is taught it: of each language the patterns that may be used, read when the
//! first file of the language comes.
//!
//! Invariant: knowledge that cannot be read costs the lessons and nothing else.

use std::sync::{Arc, OnceLock};

use super::Runner;
use crate::domain::{Kind, LineRange, PatternId, Time};
use crate::knowledge::cache::{Cache, Known};
use crate::knowledge::matcher::{Matcher, Used};
use crate::knowledge::rank;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::lessons::{Dismissed, Lesson, Lessons};
use crate::provider::builtin::source::Source;

impl Runner {
    /// What was learned by now, for the built-in reviewer.
    pub(super) fn lessons(&self) -> Arc<dyn Lessons> {
        let cache = Cache::open(&self.paths.knowledge);
        Arc::new(Remembered { cache, now: self.ambient.now(), matchers: Default::default() })
    }
}

struct Remembered {
    cache: Cache,
    now: Time,
    matchers: [OnceLock<Matcher>; Language::ALL.len()],
}

impl Remembered {
    fn of(&self, language: Language) -> &Matcher {
        self.matchers[language.index()].get_or_init(|| match self.cache.known(language) {
            Ok(Known { patterns, kinds, .. }) => {
                let used = patterns.into_iter().filter(|pattern| !pattern.muted).filter_map(|pattern| {
                    let standing = rank::standing(&pattern, self.now);
                    standing.inclusion.is_used().then_some(Used { pattern, confidence: standing.confidence })
                });
                Matcher::new(used).of_kinds(language, &kinds)
            }
            Err(error) => {
                tracing::warn!(%error, "the review goes on without what was learned");
                Matcher::default()
            }
        })
    }
}

impl Lessons for Remembered {
    fn mistakes(&self, source: &Source<'_>) -> Vec<Lesson> {
        self.of(source.language).mistakes(source)
    }

    fn dismissed(&self, source: &Source<'_>, asked: &[(Kind, LineRange)]) -> Vec<Option<Dismissed>> {
        self.of(source.language).dismissed(source, asked)
    }

    fn places_of(&self, pattern: &PatternId, source: &Source<'_>) -> Option<Vec<LineRange>> {
        self.of(source.language).places_of(pattern, source)
    }
}
