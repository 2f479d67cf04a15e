//! Control of a run from outside its worker: cancelling, pausing, waiting for its end.

pub(super) mod cancel;
pub(super) mod pause;
pub(super) mod wait;
