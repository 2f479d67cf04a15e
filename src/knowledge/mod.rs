//! Knowledge: what findings, fixes and dismissals teach, as abstract patterns that hold none of the user's code.
//!
//! Invariants: every form consists of keywords, operators, placeholders and names of a published list only, and [`form`]
//! cannot make another; texts are revdeck's own, made from the forms, never a model's or a person's.

pub mod form;
pub mod pattern;
