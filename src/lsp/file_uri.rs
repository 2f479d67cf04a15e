//! Addresses of files (`file:///…`), as clients write them.

use std::path::{Path, PathBuf};

use gen_lsp_types::Uri;
use url::Url;

/// Returns the path of a file's address; `None` for an address that is no file's, such as `untitled:1`.
pub fn path_from_uri(uri: &str) -> Option<PathBuf> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file")?;
    url.to_file_path().ok()
}

/// Returns the address of a file; `None` for a relative path.
pub fn uri_from_path(path: &Path) -> Option<Uri> {
    Url::from_file_path(path).ok().map(|url| Uri(url.into()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_paths_and_back() {
        for (uri, path) in [
            ("file:///a/b.rs", Some("/a/b.rs")),
            ("file:///a%20b/%C3%BC%23.rs", Some("/a b/ü#.rs")),
            ("untitled:Untitled-1", None),
            ("https://example.org/a", None),
            ("git:/a/b.rs", None),
            ("nonsense", None),
        ] {
            assert_eq!(path_from_uri(uri), path.map(PathBuf::from), "{uri}");
            if let Some(path) = path {
                assert_eq!(uri_from_path(Path::new(path)).map(|uri| uri.0).as_deref(), Some(uri));
            }
        }
        // Clients write the same address in several ways.
        assert_eq!(path_from_uri("file:///a%2Fb/%c3%bc"), Some(PathBuf::from("/a/b/ü")));
        assert_eq!(uri_from_path(Path::new("relative")), None);
    }
}
