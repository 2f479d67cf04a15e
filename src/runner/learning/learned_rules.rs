//! Provides learned patterns to the built-in reviewer, per language. Loads them with the first file of the language.
//!
//! Invariant: unreadable knowledge costs the learned rules and nothing else.

use std::sync::{Arc, OnceLock};

use crate::domain::{Kind, LineRange, PatternId, Time};
use crate::knowledge::cache::{KnowledgeCache, LanguageKnowledge};
use crate::knowledge::matcher::{PatternMatcher, TrustedPattern};
use crate::knowledge::rank;
use crate::reviewers::analyzer::learned_rules::{DismissalRule, LearnedMatch, LearnedRules};
use crate::runner::Learning;
use crate::syntax::language::Language;
use crate::syntax::source::ParsedFile;

impl Learning<'_> {
    /// Returns the learned rules as of now, for the built-in reviewer.
    pub(in crate::runner) fn learned_rules(&self) -> Arc<dyn LearnedRules> {
        let cache = KnowledgeCache::open(&self.services.paths.knowledge);
        Arc::new(CachedLearnedRules { cache, now: self.services.ambient.now(), matchers: Default::default() })
    }
}

struct CachedLearnedRules {
    cache: KnowledgeCache,
    now: Time,
    matchers: [OnceLock<PatternMatcher>; Language::ALL.len()],
}

impl CachedLearnedRules {
    fn matcher(&self, language: Language) -> &PatternMatcher {
        self.matchers[language.index()].get_or_init(|| match self.cache.load_language(language) {
            Ok(LanguageKnowledge { patterns, kinds, .. }) => {
                let used = patterns.into_iter().filter(|pattern| !pattern.muted).filter_map(|pattern| {
                    let standing = rank::assess_pattern(&pattern, self.now);
                    standing.inclusion.is_used().then_some(TrustedPattern { pattern, confidence: standing.confidence })
                });
                PatternMatcher::new(used).with_kinds(language, &kinds)
            }
            Err(error) => {
                tracing::warn!(%error, "the review goes on without what was learned");
                PatternMatcher::default()
            }
        })
    }
}

impl LearnedRules for CachedLearnedRules {
    fn find_mistakes(&self, source: &ParsedFile<'_>) -> Vec<LearnedMatch> {
        self.matcher(source.language).find_mistakes(source)
    }

    fn find_dismissed(&self, source: &ParsedFile<'_>, asked: &[(Kind, LineRange)]) -> Vec<Option<DismissalRule>> {
        self.matcher(source.language).find_dismissed(source, asked)
    }

    fn locate_pattern(&self, pattern: &PatternId, source: &ParsedFile<'_>) -> Option<Vec<LineRange>> {
        self.matcher(source.language).locate_pattern(pattern, source)
    }
}
