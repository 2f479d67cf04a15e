//! Edits of a text that keep its line endings and its byte order mark.

use similar::{DiffOp, TextDiff};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Applies `edit` to the text with plain line feeds and without a byte order mark. Lines that the edit leaves alone keep
/// their ending; new lines get the most frequent ending of the text.
///
/// # Errors
///
/// Returns the error of `edit`.
pub(super) fn edit_lines<T, E>(
    text: &str,
    edit: impl FnOnce(&str) -> Result<(String, T), E>,
) -> Result<(String, T), E> {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let plain = body.replace("\r\n", "\n");
    let (edited, result) = edit(&plain)?;
    if edited == plain {
        return Ok((text.to_owned(), result));
    }
    let windows = body.matches("\r\n").count();
    if windows == 0 {
        return Ok((format!("{}{edited}", &text[..text.len() - body.len()]), result));
    }
    let ending = if windows * 2 > body.matches('\n').count() { "\r\n" } else { "\n" };
    let (old, new): (Vec<&str>, Vec<&str>) =
        (body.split_inclusive('\n').collect(), edited.split_inclusive('\n').collect());
    let mut kept = String::with_capacity(edited.len() + windows);
    kept.push_str(&text[..text.len() - body.len()]);
    for op in TextDiff::from_lines(plain.as_str(), edited.as_str()).ops() {
        match *op {
            DiffOp::Equal { old_index, len, .. } => kept.extend(old[old_index..old_index + len].iter().copied()),
            _ => {
                for line in &new[op.new_range()] {
                    match line.strip_suffix('\n') {
                        Some(line) => {
                            kept.push_str(line);
                            kept.push_str(ending);
                        }
                        None => kept.push_str(line),
                    }
                }
            }
        }
    }
    Ok((kept, result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_endings() {
        let edit = |text: &str| Ok::<_, ()>((text.replace("b\n", "b\nnew\n"), ()));
        let check = |text: &str, expected: &str| assert_eq!(edit_lines(text, edit), Ok((expected.to_owned(), ())));
        check("a\nb\nc", "a\nb\nnew\nc");
        check("\u{feff}a\r\nb\r\nc", "\u{feff}a\r\nb\r\nnew\r\nc");
        check("a\r\nb\nc\n", "a\r\nb\nnew\nc\n");
        check("a\r\nb\r\nc\n", "a\r\nb\r\nnew\r\nc\n");
        check("a\r\n", "a\r\n");
    }
}
