//! HARDCODED_CONFIGURATION: secrets, credentials and addresses in the code.

use super::Smell;
use crate::provider::builtin::facts::Facts;
use crate::provider::builtin::limits::Limits;
use crate::provider::builtin::source::Source;

/// See the module.
pub fn check(_source: &Source<'_>, _facts: &Facts, _limits: &Limits, _out: &mut Vec<Smell>) {}

pub(super) fn looks_secret(_text: &str) -> bool {
    false
}
