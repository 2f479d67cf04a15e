//! What a reviewer is given of the code, what it may ask for, and how many tokens it is.
//!
//! Invariants: everything but a report of test coverage is read from a snapshot's objects, bounded, and the same for the
//! same question; secrets are masked, and files that hold them are not given away; no text of the code ends what quotes it.

mod bound;
pub mod chunk;
pub mod covered;
mod diff;
pub mod house_rules;
pub mod index;
mod links;
pub mod mask;
pub mod material;
mod secret_files;
mod text;
pub mod tokens;
pub mod tools;

pub use secret_files::is_secret_file;
pub use text::fence;
