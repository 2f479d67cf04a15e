//! Programs that make fixes.
