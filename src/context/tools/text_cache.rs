//! Cache of the masked texts of snapshot files. The next call is often about the same files.

use std::collections::HashMap;
use std::sync::Arc;

use super::{ToolError, quote};
use crate::context::text::{BlobText, MAX_TEXT_BYTES, ReadTextError, format_size};
use crate::git::{Repo, TreeListingEntry};
use crate::masking::Mask;

/// Cached text in bytes above which the cache is emptied.
const MAX_CACHED_BYTES: usize = 32 << 20;

/// Cache of masked texts by path.
pub struct MaskedTextCache {
    mask: Mask,
    /// Keyed by path, because masking depends on the path.
    texts: HashMap<String, Arc<BlobText>>,
    bytes: usize,
}

impl MaskedTextCache {
    pub fn new(mask: Mask) -> Self {
        Self { mask, texts: HashMap::new(), bytes: 0 }
    }

    pub fn mask(&self) -> Mask {
        self.mask
    }

    /// Returns the masked text of a file, also of a binary file.
    ///
    /// # Errors
    /// Fails if the file is too large or git cannot read it.
    pub fn get(&mut self, repo: &Repo, entry: &TreeListingEntry) -> Result<Arc<BlobText>, ToolError> {
        if let Some(text) = self.texts.get(&entry.path) {
            return Ok(Arc::clone(text));
        }
        let text = BlobText::from_blob(repo, &entry.id, &entry.path, self.mask)
            .map_err(|unread| unreadable_error(&entry.path, unread))?;
        let text = Arc::new(text);
        if self.bytes > MAX_CACHED_BYTES {
            self.texts.clear();
            self.bytes = 0;
        }
        self.bytes += text.as_str().len();
        self.texts.insert(entry.path.clone(), Arc::clone(&text));
        Ok(text)
    }
}

/// Builds the answer for a file that cannot be read. A git error may contain local folder names and is not shown to the
/// model.
pub fn unreadable_error(path: &str, unread: ReadTextError) -> ToolError {
    let path = quote(path);
    ToolError::failed(match unread {
        ReadTextError::TooLarge(bytes) => {
            format!("{path} has {}; files above {} are not shown", format_size(bytes), format_size(MAX_TEXT_BYTES))
        }
        ReadTextError::Git(error) => {
            tracing::warn!(%error, "a tool cannot read a file of the snapshot");
            format!("{path} cannot be read: git does not have its content here")
        }
    })
}
