//! Integration tests: git.
