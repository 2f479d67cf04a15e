//! Text of a piece: its own, or a range of a text that several pieces share.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Byte range of a shared text. It dereferences to `str`.
#[derive(Clone)]
pub struct SharedText {
    shared: Arc<str>,
    range: Range<usize>,
}

impl SharedText {
    /// Creates a text from a byte range of `whole`. An invalid range gives an empty text.
    pub fn from_range(whole: &Arc<str>, range: Range<usize>) -> Self {
        Self { shared: Arc::clone(whole), range }
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        self.shared.get(self.range.clone()).unwrap_or_default()
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self { range: 0..text.len(), shared: text.into() }
    }
}

impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}
