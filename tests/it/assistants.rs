//! Integration tests: the settings of coding assistants, and the process that they call at their turns.

mod settings;
mod turns;
