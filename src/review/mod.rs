//! The engine: a pure state machine from events to effects. No IO, no clock, no randomness; imports `domain` only.
