//! Tests the cockpit from the outside: messages in, commands and screens out, without terminal and clock.

mod comments;
mod context;
mod diff;
mod fix;
mod flow;
mod knowledge;
mod librarian;
mod life;
mod lists;
mod live;
mod looks;
mod mouse;
mod opening;
mod palette;
mod plain;
mod questions;
mod random_events;
mod review_form;
mod screens;
mod sequences;
mod sizes;
mod stats;
pub mod support;
mod team;
mod triage;
mod triage_mode;
mod turns;
