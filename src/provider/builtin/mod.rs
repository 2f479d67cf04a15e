//! The built-in reviewer: eleven smells over tree-sitter syntax trees, offline.
//!
//! A file is parsed once, its tree flattened once into [`source::Node`]s, and every smell reads that array.

pub mod facts;
pub mod language;
pub mod limits;
mod metrics;
pub mod smells;
pub mod source;
