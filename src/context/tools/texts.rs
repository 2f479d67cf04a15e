//! Texts of the snapshot's files, masked; kept for the next call, which is often about the same files.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Stopped, quoted};
use crate::context::mask::Mask;
use crate::context::text::{MAX_BYTES, Text, Unread, size};
use crate::git::{Entry, Repo};

/// More is forgotten, in bytes of text.
const MAX_KEPT: usize = 32 << 20;

pub struct Texts {
    mask: Mask,
    /// By path: what is masked depends on it.
    kept: HashMap<String, Arc<Text>>,
    bytes: usize,
}

impl Texts {
    pub fn new(mask: Mask) -> Self {
        Self { mask, kept: HashMap::new(), bytes: 0 }
    }

    pub fn mask(&self) -> Mask {
        self.mask
    }

    /// A file's text, binary ones included.
    pub fn get(&mut self, repo: &Repo, entry: &Entry) -> Result<Arc<Text>, Stopped> {
        if let Some(text) = self.kept.get(&entry.path) {
            return Ok(Arc::clone(text));
        }
        let text =
            Text::of(repo, &entry.id, &entry.path, self.mask).map_err(|unread| unreadable(&entry.path, unread))?;
        let text = Arc::new(text);
        if self.bytes > MAX_KEPT {
            self.kept.clear();
            self.bytes = 0;
        }
        self.bytes += text.as_str().len();
        self.kept.insert(entry.path.clone(), Arc::clone(&text));
        Ok(text)
    }
}

/// Why a file cannot be shown. What git says names folders of this machine, and is not for a model.
pub fn unreadable(path: &str, unread: Unread) -> Stopped {
    let path = quoted(path);
    Stopped::failed(match unread {
        Unread::TooLarge(bytes) => format!("{path} has {}; files above {} are not shown", size(bytes), size(MAX_BYTES)),
        Unread::Git(error) => {
            tracing::warn!(%error, "a tool cannot read a file of the snapshot");
            format!("{path} cannot be read: git does not have its content here")
        }
    })
}
