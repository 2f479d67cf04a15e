//! Converts git's paths, which are bytes, to platform paths and to displayed text, and back.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Converts a git path to a platform path.
#[cfg(unix)]
pub fn to_path(bytes: &[u8]) -> Cow<'_, Path> {
    use std::os::unix::ffi::OsStrExt;
    Cow::Borrowed(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

/// Converts a git path to a platform path.
#[cfg(not(unix))]
pub fn to_path(bytes: &[u8]) -> Cow<'_, Path> {
    Cow::Owned(PathBuf::from(String::from_utf8_lossy(bytes).into_owned()))
}

/// Converts a platform path to bytes.
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

/// Joins `root` and a git path.
pub fn join_path(root: &Path, bytes: &[u8]) -> PathBuf {
    root.join(to_path(bytes))
}

/// Returns the bytes that a displayed path may stand for, most likely first: the text itself, then the text with `\xNN`
/// unescaped.
pub fn from_text(text: &str) -> Vec<Vec<u8>> {
    let plain = text.as_bytes().to_vec();
    let undone = unescape(&plain);
    match undone == plain {
        true => vec![plain],
        false => vec![plain, undone],
    }
}

/// Unescapes `\xNN` for values from 0x80. Lower bytes are valid UTF-8 and are never escaped.
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
