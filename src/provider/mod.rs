//! Reviewers: who reads the code. `builtin` needs no network and no key.

pub mod builtin;
