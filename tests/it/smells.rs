//! Integration tests: smells.
