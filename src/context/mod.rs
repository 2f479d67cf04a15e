//! What a reviewer is given of the code, what it may ask for, and how many tokens it is.
//!
//! Invariants: everything but a report of test coverage is read from a snapshot's objects, bounded, and the same for the
//! same question; secrets are masked, and files that hold them are not given away; no text of the code ends what quotes it.

mod bound;
mod candidates;
pub mod chunk;
pub mod compress;
pub mod covered;
mod diff;
mod disk;
pub mod evaluate;
mod focus;
pub mod given;
pub mod house_documents;
pub mod house_rules;
mod imports;
mod in_short;
pub mod index;
mod interner;
mod just_in_time;
mod library;
mod links;
pub mod mask;
pub mod material;
pub mod meaning;
mod named;
pub mod not_shown;
pub mod pack;
mod past;
mod remarks;
mod rest;
pub mod retrieve;
mod score;
mod secret_files;
mod shelf;
mod skeleton;
mod squeeze;
pub mod surroundings;
mod task_text;
mod telling;
mod text;
mod threads;
pub mod tokens;
pub mod tools;
mod units;
mod worth;

pub use secret_files::is_secret_file;
pub use text::{fence, visible};
