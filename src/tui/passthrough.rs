//! Wraps control sequences for the terminal in which GNU screen runs. screen keeps sequences that it does not know to
//! itself, and prints strings of more than 767 bytes (`MAXSTR` of its source) on the screen.

/// Start of a string that screen passes on.
const DCS: &str = "\x1bP";
/// End of a string.
const ST: &str = "\x1b\\";
/// Longest string that is sent to screen, in bytes with [`DCS`] and [`ST`]: well below what it takes.
const MAX_PIECE_BYTES: usize = 500;

/// Wraps a sequence in strings that screen passes on one behind the other. An [`ST`] at its end becomes BEL, because screen
/// would take it for the end of its own string.
pub fn wrap_for_screen(sequence: &str) -> String {
    let sequence = match sequence.strip_suffix(ST) {
        Some(unterminated) => format!("{unterminated}\x07"),
        None => sequence.to_owned(),
    };
    let mut wrapped = String::new();
    let mut rest = sequence.as_str();
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(MAX_PIECE_BYTES - DCS.len() - ST.len()));
        wrapped.extend([DCS, piece, ST]);
        rest = behind;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_gets_short_pieces_and_the_terminal_the_whole_sequence() {
        assert_eq!(wrap_for_screen("\x1b]9;done\x07"), "\x1bP\x1b]9;done\x07\x1b\\");
        assert_eq!(wrap_for_screen("\x1b]52;c;YQ==\x1b\\"), "\x1bP\x1b]52;c;YQ==\x07\x1b\\");
        assert_eq!(wrap_for_screen(""), "");
        for (letter, count) in [("a", 400), ("a", 491), ("a", 492), ("a", 767), ("ü", 5_000), ("漢", 1_000)] {
            let sequence = format!("\x1b]9;{}\x07", letter.repeat(count));
            let wrapped = wrap_for_screen(&sequence);
            let pieces: Vec<&str> = wrapped.split_inclusive(ST).collect();
            assert!(pieces.iter().all(|piece| piece.len() <= MAX_PIECE_BYTES), "{count} of {letter}");
            let passed_on: Option<String> =
                pieces.iter().map(|piece| piece.strip_prefix(DCS)?.strip_suffix(ST)).collect();
            assert_eq!(passed_on.as_deref(), Some(sequence.as_str()), "{count} of {letter}");
        }
    }
}
