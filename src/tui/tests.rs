//! The cockpit from the outside: messages in, commands and screens out; no terminal, no clock.

mod context;
mod fix;
mod flow;
mod knowledge;
mod librarian;
mod life;
mod screens;
mod stats;
mod support;
mod turns;
