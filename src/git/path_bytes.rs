//! Paths as git has them, bytes, and the way to a file's path on disk and to shown text and back.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A path of git as a path of the platform.
#[cfg(unix)]
pub fn to_path(bytes: &[u8]) -> Cow<'_, Path> {
    use std::os::unix::ffi::OsStrExt;
    Cow::Borrowed(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

/// A path of git as a path of the platform.
#[cfg(not(unix))]
pub fn to_path(bytes: &[u8]) -> Cow<'_, Path> {
    Cow::Owned(PathBuf::from(String::from_utf8_lossy(bytes).into_owned()))
}

/// A path of the platform as bytes.
pub fn from_path(path: &Path) -> Vec<u8> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        path.as_os_str().as_bytes().to_vec()
    }
    #[cfg(not(unix))]
    {
        path.to_string_lossy().into_owned().into_bytes()
    }
}

/// `root` and a path of git below it.
pub fn join_path(root: &Path, bytes: &[u8]) -> PathBuf {
    root.join(to_path(bytes))
}

/// The bytes that a shown path may stand for, the likeliest first: as it reads, and with its `\xNN` undone.
pub fn from_text(text: &str) -> Vec<Vec<u8>> {
    let plain = text.as_bytes().to_vec();
    let undone = unescape(&plain);
    match undone == plain {
        true => vec![plain],
        false => vec![plain, undone],
    }
}

/// Undoes `\xNN` of 0x80 and above: valid UTF-8 is never escaped, and lower bytes always are valid.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        match rest {
            [b'\\', b'x', high, low, after @ ..] => {
                let byte = std::str::from_utf8(&[*high, *low]).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
                match byte {
                    Some(byte) if byte >= 0x80 => {
                        bytes.push(byte);
                        rest = after;
                        continue;
                    }
                    _ => bytes.push(first),
                }
            }
            _ => bytes.push(first),
        }
        rest = tail;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::text::path_from_bytes;

    #[test]
    fn shown_paths_lead_back_to_the_bytes() {
        let names: [&[u8]; 6] =
            [b"plain.rs", b"caf\xe9.rs", b"a\nb", b"\xff\xfe/\x80", "ünï/漢".as_bytes(), b"lit\\x41eral \xe9"];
        for bytes in names {
            assert!(from_text(&path_from_bytes(bytes)).iter().any(|guess| guess == bytes), "{bytes:?}");
        }
        assert_eq!(from_text("lit\\xe9eral"), [b"lit\\xe9eral".to_vec(), b"lit\xe9eral".to_vec()]);
        assert_eq!(from_text("end\\x"), [b"end\\x".to_vec()]);
    }
}
