//! MUTABLE_SHARED_STATE: state that several functions change.

use super::Smell;
use crate::provider::builtin::facts::Facts;
use crate::provider::builtin::limits::Limits;
use crate::provider::builtin::source::Source;

/// See the module.
pub fn check(_source: &Source<'_>, _facts: &Facts, _limits: &Limits, _out: &mut Vec<Smell>) {}
