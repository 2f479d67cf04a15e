//! What a reviewer is given of the code, and how many tokens it is.

mod bound;
pub mod mask;
pub mod tokens;
