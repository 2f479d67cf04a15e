//! Functions, classes and their figures, read from the flat nodes in one pass.

use super::facts::Facts;
use super::source::Source;

pub(super) fn read(source: &Source<'_>) -> Facts {
    Facts {
        function_of: vec![Facts::NONE; source.nodes.len()],
        is_test_file: super::facts::is_test_path(source.path),
        ..Facts::default()
    }
}
