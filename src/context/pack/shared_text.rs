//! The text of a piece: its own, or a part of one that others share.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

#[derive(Clone)]
pub struct SharedText {
    shared: Arc<str>,
    range: Range<usize>,
}

impl SharedText {
    /// Bytes of a text; nothing where there are none.
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
