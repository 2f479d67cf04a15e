//! The text of a piece: its own, or a part of one that others share.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

#[derive(Clone)]
pub struct Said {
    whole: Arc<str>,
    place: Range<usize>,
}

impl Said {
    /// Bytes of a text; nothing where there are none.
    pub fn part(whole: &Arc<str>, place: Range<usize>) -> Self {
        Self { whole: Arc::clone(whole), place }
    }
}

impl Deref for Said {
    type Target = str;

    fn deref(&self) -> &str {
        self.whole.get(self.place.clone()).unwrap_or_default()
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self { place: 0..text.len(), whole: text.into() }
    }
}

impl PartialEq for Said {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}
