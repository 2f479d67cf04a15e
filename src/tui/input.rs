//! Parses bytes from a terminal into keys. This parser exists because the terminal may reply to a query between
//! any two keys, and a reply must not be read as typing: crossterm 0.29 knows no OSC sequences and reads the reply
//! about the background colour as Alt-] and some twenty typed characters.
//!
//! - Every byte is consumed exactly once.
//! - An unknown escape sequence is dropped as a whole, never read as typing.

/// Key without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// A character, with Shift applied; also Space.
    Char(char),
    /// Enter, also on the number pad.
    Enter,
    /// Escape.
    Esc,
    /// Tab; Shift-Tab is this key with `shift`.
    Tab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Insert.
    Insert,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Function key with this number, 1 to 12.
    F(u8),
}

/// Key press with modifiers. A character contains Shift itself (`G`); for other keys `shift` is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyEvent {
    /// Key that was pressed.
    pub code: KeyCode,
    /// True when Ctrl was held.
    pub ctrl: bool,
    /// True when Alt was held.
    pub alt: bool,
    /// True when Shift was held; always false for a character.
    pub shift: bool,
}

impl KeyEvent {
    /// Creates a press of a key without modifiers.
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }

    const fn ctrl(code: KeyCode) -> Self {
        Self { code, ctrl: true, alt: false, shift: false }
    }
}

/// Event of the mouse at a cell of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MouseEvent {
    /// Movement of the button or the wheel.
    pub kind: MouseKind,
    /// Column of the pointer, 0-based.
    pub column: u16,
    /// Row of the pointer, 0-based.
    pub row: u16,
}

/// Movement of the left button or of the wheel. Other buttons belong to the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MouseKind {
    /// The button was pressed.
    Press,
    /// The pointer moved with the button held.
    Drag,
    /// The button was released.
    Release,
    /// The wheel moved away from the user.
    WheelUp,
    /// The wheel moved toward the user.
    WheelDown,
}

/// Input from a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalInput {
    /// A key press.
    Key(KeyEvent),
    /// The mouse was used. Only while the terminal was asked to report it.
    Mouse(MouseEvent),
    /// Text of a bracketed paste.
    Paste(String),
    /// Reply to the query for the background colour, or a report that it has become dark or light: red, green, blue.
    Background([u8; 3]),
    /// A key was released. Only terminals with the kitty keyboard protocol report it.
    Released,
    /// Reply to the query for the kitty keyboard protocol: the terminal reports released keys.
    ReportsReleases,
    /// Reply to the query for the device attributes, which nearly every terminal answers, and in the order of the
    /// queries: no answer to an earlier one follows.
    AnsweredAll,
    /// The same reply from Windows Terminal.
    AnsweredByWindowsTerminal,
    /// The terminal has the focus again. Only while it was asked to report it.
    FocusGained,
}

impl TerminalInput {
    /// Returns true for the reply to the query for the device attributes, behind which no answer to an earlier query comes.
    pub fn ends_answers(&self) -> bool {
        matches!(self, Self::AnsweredAll | Self::AnsweredByWindowsTerminal)
    }
}

/// Device attributes of Windows Terminal 1.25, which may be followed by further ones, such as that for the clipboard.
const WINDOWS_TERMINAL_ATTRIBUTES: &str = "?61;4;6;7;14;21;22;23;24;28;32;42";

/// Longest buffered sequence, in bytes; longer sequences are dropped.
const MAX_SEQUENCE_BYTES: usize = 4096;
/// Pauses after which an unfinished sequence is dropped: its end was lost, and it would swallow the keys that follow. With
/// the pauses of the event source it is half a second, in which also a slow link brings the end.
const MAX_PAUSES: u8 = 10;

/// Incremental parser; keeps an unfinished sequence until its remaining bytes arrive.
#[derive(Debug, Default)]
pub struct InputParser {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
    /// Pauses since the last bytes.
    pauses: u8,
}

enum ParseStep {
    /// Number of consumed bytes, and the input they encode, if any.
    Consumed(usize, Option<TerminalInput>),
    /// More bytes are needed.
    Incomplete,
}

impl InputParser {
    /// Returns true if a sequence is unfinished, so that [`InputParser::flush`] must follow a pause. A lone Esc also counts
    /// until then, and a paste never does.
    pub fn has_pending_bytes(&self) -> bool {
        self.paste.is_none() && !self.pending.is_empty()
    }

    /// Parses the bytes that arrived and appends the input to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<TerminalInput>) {
        self.pauses = 0;
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        while !rest.is_empty() {
            if let Some(mut paste) = self.paste.take() {
                const END: &[u8] = b"\x1b[201~";
                match rest.windows(END.len()).position(|window| window == END) {
                    Some(end) => {
                        paste.extend_from_slice(&rest[..end]);
                        out.push(TerminalInput::Paste(String::from_utf8_lossy(&paste).into_owned()));
                        rest = &rest[end + END.len()..];
                    }
                    None => {
                        // The end marker may be split: hold back as many bytes as may belong to it.
                        let keep = rest.len().saturating_sub(END.len() - 1);
                        paste.extend_from_slice(&rest[..keep]);
                        self.pending = rest[keep..].to_vec();
                        self.paste = Some(paste);
                        return;
                    }
                }
                continue;
            }
            match parse_step(rest) {
                ParseStep::Consumed(n, input) => {
                    if rest.starts_with(b"\x1b[200~") {
                        self.paste = Some(Vec::new());
                    }
                    out.extend(input);
                    rest = &rest[n.max(1)..];
                }
                ParseStep::Incomplete if rest.len() > MAX_SEQUENCE_BYTES => rest = &[],
                ParseStep::Incomplete => {
                    self.pending = rest.to_vec();
                    return;
                }
            }
        }
    }

    /// Ends the wait after a pause without bytes: a lone pending Esc byte becomes the Esc key, and another unfinished
    /// sequence is dropped after ten pauses.
    pub fn flush(&mut self, out: &mut Vec<TerminalInput>) {
        if !self.has_pending_bytes() {
            return;
        }
        if self.pending.first() == Some(&0x1b) && self.pending.len() <= 2 {
            out.push(TerminalInput::Key(KeyEvent::plain(KeyCode::Esc)));
            let rest = self.pending.split_off(1);
            self.pending.clear();
            if !rest.is_empty() && rest[0] != 0x1b {
                self.feed(&rest, out);
            } else if !rest.is_empty() {
                out.push(TerminalInput::Key(KeyEvent::plain(KeyCode::Esc)));
            }
            return;
        }
        self.pauses += 1;
        if self.pauses >= MAX_PAUSES {
            self.pending.clear();
            self.pauses = 0;
        }
    }
}

fn consume_key(n: usize, code: KeyCode) -> ParseStep {
    ParseStep::Consumed(n, Some(TerminalInput::Key(KeyEvent::plain(code))))
}

fn parse_step(bytes: &[u8]) -> ParseStep {
    match bytes[0] {
        0x1b => parse_escape(bytes),
        b'\r' => consume_key(1, KeyCode::Enter),
        b'\n' => ParseStep::Consumed(1, Some(TerminalInput::Key(KeyEvent::ctrl(KeyCode::Char('j'))))),
        b'\t' => consume_key(1, KeyCode::Tab),
        0x7f => consume_key(1, KeyCode::Backspace),
        0x08 => ParseStep::Consumed(1, Some(TerminalInput::Key(KeyEvent::ctrl(KeyCode::Char('h'))))),
        0 => ParseStep::Consumed(1, Some(TerminalInput::Key(KeyEvent::ctrl(KeyCode::Char(' '))))),
        c @ 0x01..=0x1a => {
            ParseStep::Consumed(1, Some(TerminalInput::Key(KeyEvent::ctrl(KeyCode::Char(char::from(c + 0x60))))))
        }
        c @ 0x1c..=0x1f => {
            ParseStep::Consumed(1, Some(TerminalInput::Key(KeyEvent::ctrl(KeyCode::Char(char::from(c + 0x40))))))
        }
        c if c < 0x80 => consume_key(1, KeyCode::Char(char::from(c))),
        c => {
            let length = match c {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => return ParseStep::Consumed(1, None),
            };
            match bytes.get(..length) {
                None => ParseStep::Incomplete,
                Some(part) => match std::str::from_utf8(part).ok().and_then(|text| text.chars().next()) {
                    Some(c) => consume_key(length, KeyCode::Char(c)),
                    None => ParseStep::Consumed(1, None),
                },
            }
        }
    }
}

fn parse_escape(bytes: &[u8]) -> ParseStep {
    match bytes.get(1) {
        None => ParseStep::Incomplete,
        Some(b'[') => parse_csi(bytes),
        Some(b'O') => match bytes.get(2) {
            None => ParseStep::Incomplete,
            Some(c) => match key_code_from_final_byte(*c) {
                Some(code) => consume_key(3, code),
                None => ParseStep::Consumed(3, None),
            },
        },
        // OSC, DCS, SOS, PM and APC strings end with BEL or ST.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let end = bytes[2..].iter().enumerate().find_map(|(i, byte)| match byte {
                0x07 => Some((i, 1)),
                0x1b if bytes.get(i + 3) == Some(&b'\\') => Some((i, 2)),
                // No string has such a byte: what began one was cut off, and this is a key.
                0x01..=0x1a => Some((i, 0)),
                _ => None,
            });
            match end {
                Some((i, 0)) => ParseStep::Consumed(2 + i, None),
                Some((i, n)) => ParseStep::Consumed(2 + i + n, parse_background(&bytes[1..2 + i])),
                None => ParseStep::Incomplete,
            }
        }
        Some(0x1b) => consume_key(1, KeyCode::Esc),
        Some(_) => match parse_step(&bytes[1..]) {
            ParseStep::Consumed(n, Some(TerminalInput::Key(key))) => {
                ParseStep::Consumed(n + 1, Some(TerminalInput::Key(KeyEvent { alt: true, ..key })))
            }
            ParseStep::Consumed(n, other) => ParseStep::Consumed(n + 1, other),
            ParseStep::Incomplete => ParseStep::Incomplete,
        },
    }
}

/// Parses `]11;rgb:RRRR/GGGG/BBBB` with one to four hexadecimal digits per colour.
fn parse_background(string: &[u8]) -> Option<TerminalInput> {
    let text = std::str::from_utf8(string).ok()?;
    let rest = text.strip_prefix("]11;rgb:").or_else(|| text.strip_prefix("]11;rgba:"))?;
    let mut parts = rest.split('/').map(|part| {
        let value = u64::from(u32::from_str_radix(part, 16).ok()?);
        let most = 16u64.checked_pow(u32::try_from(part.len()).ok()?)?.checked_sub(1)?;
        u8::try_from(value * 255 / most.max(1)).ok()
    });
    Some(TerminalInput::Background([parts.next()??, parts.next()??, parts.next()??]))
}

fn key_code_from_final_byte(c: u8) -> Option<KeyCode> {
    Some(match c {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P'..=b'S' => KeyCode::F(c - b'P' + 1),
        b'M' => KeyCode::Enter,
        _ => return None,
    })
}

fn parse_csi(bytes: &[u8]) -> ParseStep {
    // Some consoles send F1 to F5 as ESC [ [ A.
    if bytes.get(2) == Some(&b'[') {
        return match bytes.get(3) {
            Some(letter @ b'A'..=b'E') => consume_key(4, KeyCode::F(letter - b'A' + 1)),
            Some(_) => ParseStep::Consumed(4, None),
            None => ParseStep::Incomplete,
        };
    }
    let Some(end) = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return ParseStep::Incomplete;
    };
    let (parameters, last) = (&bytes[2..2 + end], bytes[2 + end]);
    let took = 3 + end;
    let text = std::str::from_utf8(parameters).unwrap_or("");
    if end == 0 && last == b'M' {
        // A report in the form of X10, from terminals without the form of SGR: button, column and row, each plus 32.
        return match bytes.get(3..6) {
            Some(&[button, column, row]) => {
                let place = |byte: u8| u16::from(byte).saturating_sub(32);
                let button = u16::from(button).saturating_sub(32);
                // The button is not named when it is released.
                let is_release = button & 0b100_0011 == 3;
                let event = parse_mouse(if is_release { 0 } else { button }, place(column), place(row), is_release);
                ParseStep::Consumed(took + 3, event)
            }
            _ => ParseStep::Incomplete,
        };
    }
    if let (b'M' | b'm', Some(report)) = (last, text.strip_prefix('<')) {
        let numbers: Vec<u16> = report.split(';').map_while(|number| number.parse().ok()).collect();
        let event = match numbers[..] {
            [button, column, row] => parse_mouse(button, column, row, last == b'm'),
            _ => None,
        };
        return ParseStep::Consumed(took, event);
    }
    // The terminal's colours have become dark or light, told without their shade.
    if let (b'n', Some(scheme)) = (last, text.strip_prefix("?997;")) {
        let shade = [("1", 0), ("2", 255)].into_iter().find(|(word, _)| *word == scheme).map(|(_, shade)| [shade; 3]);
        return ParseStep::Consumed(took, shade.map(TerminalInput::Background));
    }
    if let Some(flags) = text.strip_prefix('?').filter(|_| last == b'u') {
        let reports = flags.parse::<u32>().is_ok_and(|flags| flags & KITTY_EVENT_TYPES != 0);
        return ParseStep::Consumed(took, reports.then_some(TerminalInput::ReportsReleases));
    }
    match (text, last) {
        ("", b'I') => return ParseStep::Consumed(took, Some(TerminalInput::FocusGained)),
        (attributes, b'c') if attributes.starts_with('?') => {
            let further = attributes.strip_prefix(WINDOWS_TERMINAL_ATTRIBUTES);
            let answer = match further.is_some_and(|further| further.is_empty() || further.starts_with(';')) {
                true => TerminalInput::AnsweredByWindowsTerminal,
                false => TerminalInput::AnsweredAll,
            };
            return ParseStep::Consumed(took, Some(answer));
        }
        _ => {}
    }
    // The kitty keyboard protocol adds the kind of the event to the modifiers: `CSI 106;1:3u`.
    if text.split(';').nth(1).and_then(|part| part.split(':').nth(1)) == Some("3") {
        return ParseStep::Consumed(took, Some(TerminalInput::Released));
    }
    let number = |index: usize| -> Option<u32> { text.split(';').nth(index)?.split(':').next()?.parse().ok() };
    let held = number(1).unwrap_or(1).saturating_sub(1);
    let (shift, alt, ctrl) = (held & 1 != 0, held & 2 != 0, held & 4 != 0);
    let code = match last {
        b'~' => match number(0) {
            Some(1 | 7) => Some(KeyCode::Home),
            Some(2) => Some(KeyCode::Insert),
            Some(3) => Some(KeyCode::Delete),
            Some(4 | 8) => Some(KeyCode::End),
            Some(5) => Some(KeyCode::PageUp),
            Some(6) => Some(KeyCode::PageDown),
            Some(n @ 11..=15) => Some(KeyCode::F((n - 10) as u8)),
            Some(n @ 17..=21) => Some(KeyCode::F((n - 11) as u8)),
            Some(n @ 23..=24) => Some(KeyCode::F((n - 12) as u8)),
            _ => None,
        },
        b'Z' => {
            return ParseStep::Consumed(
                took,
                Some(TerminalInput::Key(KeyEvent { shift: true, ..KeyEvent::plain(KeyCode::Tab) })),
            );
        }
        b'u' => parse_key_field(text.split(';').next().unwrap_or_default(), shift, ctrl || alt),
        last if text.is_empty() || text.starts_with("1;") => {
            key_code_from_final_byte(last).filter(|code| *code != KeyCode::Enter)
        }
        _ => None,
    };
    let key = code.map(|code| match code {
        // A character contains Shift itself; control characters have none.
        KeyCode::Char(c) if ctrl => {
            KeyEvent { code: KeyCode::Char(c.to_lowercase().next().unwrap_or(c)), shift: false, alt, ctrl }
        }
        KeyCode::Char(c) if shift => {
            KeyEvent { code: KeyCode::Char(c.to_uppercase().next().unwrap_or(c)), shift: false, alt, ctrl }
        }
        KeyCode::Char(_) => KeyEvent { code, shift: false, alt, ctrl },
        // As in terminals without the protocol, Enter, Esc and Backspace are the same with Shift.
        KeyCode::Enter | KeyCode::Esc | KeyCode::Backspace => KeyEvent { code, shift: false, alt, ctrl },
        _ => KeyEvent { code, shift, alt, ctrl },
    });
    ParseStep::Consumed(took, key.map(TerminalInput::Key))
}

/// Returns the event of a mouse report with 1-based column and row; `None` for other buttons and for movement without a
/// button.
fn parse_mouse(button: u16, column: u16, row: u16, is_release: bool) -> Option<TerminalInput> {
    const MOVES: u16 = 32;
    // Shift, Alt and Ctrl have no meaning here.
    let kind = match (button & !0b1_1100, is_release) {
        (0, false) => MouseKind::Press,
        (0, true) => MouseKind::Release,
        (MOVES, false) => MouseKind::Drag,
        (64, false) => MouseKind::WheelUp,
        (65, false) => MouseKind::WheelDown,
        _ => return None,
    };
    let event = MouseEvent { kind, column: column.checked_sub(1)?, row: row.checked_sub(1)? };
    Some(TerminalInput::Mouse(event))
}

/// Flag of the kitty keyboard protocol: no key is mistaken for another one.
pub const KITTY_DISAMBIGUATE: u32 = 1;
/// Flag of the kitty keyboard protocol: the terminal reports repeated and released keys.
pub const KITTY_EVENT_TYPES: u32 = 2;
/// Flag of the kitty keyboard protocol: the terminal names a key also by what it types with Shift, and by what it types on
/// an American keyboard.
pub const KITTY_ALTERNATE_KEYS: u32 = 4;

/// Last letter of the Latin alphabets (block Latin Extended-B).
const LAST_LATIN_LETTER: char = '\u{24f}';

/// Parses the first field of a key in the kitty keyboard protocol: the code point of the key, that of the key with Shift,
/// and that of the key in its place on an American keyboard. The last two may be empty or missing.
fn parse_key_field(field: &str, shift: bool, is_shortcut: bool) -> Option<KeyCode> {
    let mut codes = field.split(':').map(|code| code.parse().ok().and_then(char::from_u32));
    let key = codes.next().flatten()?;
    let (shifted, american) = (codes.next().flatten(), codes.next().flatten());
    // Whoever types another script presses the key of Ctrl-c by its place. A Latin letter such as `ü` is a key of its own.
    let american = american.filter(|_| is_shortcut && key > LAST_LATIN_LETTER);
    key_code_from_codepoint(american.or(shifted.filter(|_| shift)).unwrap_or(key))
}

/// Returns the key of a code point in the kitty keyboard protocol, which has code points of its own for the number pad.
fn key_code_from_codepoint(c: char) -> Option<KeyCode> {
    const PAD_DIGITS: u32 = 57_399;
    Some(match u32::from(c) {
        13 | 57_414 => KeyCode::Enter,
        9 => KeyCode::Tab,
        27 => KeyCode::Esc,
        127 => KeyCode::Backspace,
        digit @ PAD_DIGITS..=57_408 => KeyCode::Char(char::from_digit(digit - PAD_DIGITS, 10)?),
        57_409 => KeyCode::Char('.'),
        57_410 => KeyCode::Char('/'),
        57_411 => KeyCode::Char('*'),
        57_412 => KeyCode::Char('-'),
        57_413 => KeyCode::Char('+'),
        57_417 => KeyCode::Left,
        57_418 => KeyCode::Right,
        57_419 => KeyCode::Up,
        57_420 => KeyCode::Down,
        57_421 => KeyCode::PageUp,
        57_422 => KeyCode::PageDown,
        57_423 => KeyCode::Home,
        57_424 => KeyCode::End,
        57_425 => KeyCode::Insert,
        57_426 => KeyCode::Delete,
        // Keys without a meaning here: modifiers, media keys.
        57_344..=63_743 => return None,
        _ => KeyCode::Char(c),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<TerminalInput> {
        let (mut parser, mut out) = (InputParser::default(), Vec::new());
        for chunk in chunks {
            parser.feed(chunk, &mut out);
        }
        parser.flush(&mut out);
        out
    }

    fn keys(text: &str) -> Vec<TerminalInput> {
        text.split_whitespace().map(|name| TerminalInput::Key(name.parse().unwrap_or_else(|e| panic!("{e}")))).collect()
    }

    #[test]
    fn bytes_become_keys() {
        for (bytes, expected) in [
            (&b"jG?"[..], "j G ?"),
            (b"\x04\x15\x12", "Ctrl-d Ctrl-u Ctrl-r"),
            (b"\r\t\x1b[Z\x7f ", "Enter Tab Shift-Tab Backspace Space"),
            (b"\x1b[A\x1bOB\x1b[1;5C\x1b[5~\x1b[H\x1b[F", "Up Down Ctrl-Right PageUp Home End"),
            (b"\x1b", "Esc"),
            (b"\x1b\x1b", "Esc Esc"),
            (b"\x1bx", "Alt-x"),
            (b"\x1bOP\x1b[15~\x1b[24~", "F1 F5 F12"),
            ("ü漢🦀".as_bytes(), "ü 漢 🦀"),
            (b"\x1b[27u\x1b[100;5u", "Esc Ctrl-d"),
            // The kitty keyboard protocol: presses, repeats, Shift, Num Lock, the number pad, keys without a meaning.
            (b"\x1b[27;1:1u\x1b[100;5:2u\x1b[120;4u\x1b[13;2u", "Esc Ctrl-d Alt-X Enter"),
            (b"\x1b[99;133u\x1b[1;129A\x1b[57414u\x1b[57400u\x1b[57441;2u", "Ctrl-c Up Enter 1"),
            // With the key under Shift, and with that of an American keyboard.
            (b"\x1b[44:60;4u\x1b[45:95;6u\x1b[100:68;6u\x1b[100:68;4u", "Alt-< Ctrl-_ Ctrl-d Alt-D"),
            (b"\x1b[55:47;6u\x1b[252:220:91;2u\x1b[97::113;5u\x1b[9::9;2u", "Ctrl-/ Ü Ctrl-a Shift-Tab"),
            (b"\x1b[1089::99;5u\x1b[1089:1057:99;6:2u\x1b[1092:1060:97;4u", "Ctrl-c Ctrl-c Alt-A"),
            (b"\x1b[1089::99u\x1b[1089:1057:99;2u\x1b[1089:;5u", "с С Ctrl-с"),
            (b"\x1b[252::91;3u", "Alt-ü"),
            (b"\x1b[>62;22c\x1b[O\xffj", "j"),
            // The Linux console, and strings that were cut off.
            (b"\x1b[[A\x1b[[E\x1b[[Zj", "F1 F5 j"),
            (b"\x1b]11;rgb:00\x03j", "Ctrl-c j"),
            (b"\x1bPabc\rj", "Enter j"),
        ] {
            assert_eq!(read(&[bytes]), keys(expected), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_sequence_without_an_end_swallows_no_key_after_a_while() {
        for unfinished in [&b"\x1b[1;"[..], b"\x1b]11;rgb:00", b"\x1bP+r", b"\x1b[M *", b"\x1b\x1b[3", b"\xe6\xbc"] {
            let name = String::from_utf8_lossy(unfinished);
            let (mut parser, mut out) = (InputParser::default(), Vec::new());
            parser.feed(unfinished, &mut out);
            out.clear();
            for pause in 1..MAX_PAUSES {
                parser.flush(&mut out);
                assert!(parser.has_pending_bytes(), "{name:?} after {pause} pauses");
            }
            parser.flush(&mut out);
            assert!(!parser.has_pending_bytes(), "{name:?}");
            parser.feed(b"j", &mut out);
            assert_eq!(out, keys("j"), "{name:?}");
        }
        // Bytes begin the wait anew.
        let (mut parser, mut out) = (InputParser::default(), Vec::new());
        for bytes in [&b"\x1b[1;"[..], b"5", b"C"] {
            parser.feed(bytes, &mut out);
            (1..MAX_PAUSES).for_each(|_| parser.flush(&mut out));
        }
        assert_eq!(out, keys("Ctrl-Right"));
        // A paste takes as long as it takes.
        let (mut parser, mut out) = (InputParser::default(), Vec::new());
        parser.feed(b"\x1b[200~a\x1b[20", &mut out);
        assert!(!parser.has_pending_bytes());
        (0..=MAX_PAUSES).for_each(|_| parser.flush(&mut out));
        parser.feed(b"1~", &mut out);
        assert_eq!(out, [TerminalInput::Paste("a".to_owned())]);
    }

    #[test]
    fn released_keys_are_told_and_never_typed() {
        use TerminalInput::{Released, ReportsReleases};
        assert_eq!(read(&[b"\x1b[96;2:3u\x1b[1;1:3A\x1b[3;1:3~"]), [Released, Released, Released]);
        assert_eq!(read(&[b"\x1b[96:126;2:3u\x1b[1105:126:96;2:3u\x1b[1105::96;1:3u"]), [Released, Released, Released]);
        assert_eq!(read(&[b"\x1b[?3u\x1b[?7u"]), [ReportsReleases, ReportsReleases]);
        assert_eq!(read(&[b"\x1b[?1u\x1b[?5u\x1b[?0u"]), [], "they are not reported");
    }

    #[test]
    fn the_focus_and_the_answer_behind_all_others_are_told() {
        use TerminalInput::{AnsweredAll, AnsweredByWindowsTerminal, FocusGained};
        assert_eq!(read(&[b"\x1b[", b"I\x1b[O\x1b[I"]), [FocusGained, FocusGained]);
        assert_eq!(read(&[b"\x1b[?62;2", b"2c\x1b[?6c"]), [AnsweredAll, AnsweredAll]);
        for (answer, expected) in [
            (&b"\x1b[?61;4;6;7;14;21;22;23;24;28;32;42c"[..], AnsweredByWindowsTerminal),
            (b"\x1b[?61;4;6;7;14;21;22;23;24;28;32;42;52c", AnsweredByWindowsTerminal),
            (b"\x1b[?61;4;6;7;14;21;22;23;24;28;32;420c", AnsweredAll),
            (b"\x1b[?61;4;6;7;14;21;22c", AnsweredAll),
            (b"\x1b[?1;2c", AnsweredAll),
        ] {
            assert_eq!(read(&[answer]), std::slice::from_ref(&expected), "{:?}", String::from_utf8_lossy(answer));
            assert!(expected.ends_answers());
        }
        assert!(!FocusGained.ends_answers());
    }

    #[test]
    fn mouse_reports_become_events_and_are_never_typed() {
        use MouseKind::{Drag, Press, Release, WheelDown, WheelUp};
        for (bytes, expected) in [
            (&b"\x1b[<0;10;7M"[..], Some((Press, 9, 6))),
            (b"\x1b[<0;10;7m", Some((Release, 9, 6))),
            (b"\x1b[<32;500;150M", Some((Drag, 499, 149))),
            (b"\x1b[<64;1;1M", Some((WheelUp, 0, 0))),
            (b"\x1b[<65;1;1M", Some((WheelDown, 0, 0))),
            // Ctrl, Alt and Shift are held.
            (b"\x1b[<28;3;4M", Some((Press, 2, 3))),
            // The right button, movement without a button, a wheel that moves sideways, no place, no report.
            (b"\x1b[<2;3;4M", None),
            (b"\x1b[<35;3;4M", None),
            (b"\x1b[<66;3;4M", None),
            (b"\x1b[<0;0;4M", None),
            (b"\x1b[<0;99999;4M", None),
            (b"\x1b[<0;3M", None),
            // The form of X10.
            (b"\x1b[M *'", Some((Press, 9, 6))),
            (b"\x1b[M#*'", Some((Release, 9, 6))),
            (b"\x1b[M`*'", Some((WheelUp, 9, 6))),
            (b"\x1b[M\"*'", None),
        ] {
            let expected = expected.map(|(kind, column, row)| TerminalInput::Mouse(MouseEvent { kind, column, row }));
            let typed = keys("j").remove(0);
            let expected: Vec<TerminalInput> = expected.into_iter().chain([typed]).collect();
            for cut in 0..bytes.len() {
                let (start, end) = bytes.split_at(cut);
                assert_eq!(read(&[start, end, b"j"]), expected, "{:?} cut at {cut}", String::from_utf8_lossy(bytes));
            }
        }
    }

    #[test]
    fn torn_sequences_and_answers_between_keys_are_never_typed() {
        let answer = b"j\x1b]11;rgb:1e1e/2e2e/ffff\x1b\\k";
        let expected = vec![keys("j").remove(0), TerminalInput::Background([0x1e, 0x2e, 0xff]), keys("k").remove(0)];
        for cut in 0..answer.len() {
            assert_eq!(read(&[&answer[..cut], &answer[cut..]]), expected, "cut at {cut}");
        }
        assert_eq!(read(&[b"\x1b]11;rgb:ff/80/00\x07"]), vec![TerminalInput::Background([255, 128, 0])]);
        assert_eq!(read(&[b"\x1b]11;rgb:fffffff/0/0\x07"]), vec![TerminalInput::Background([255, 0, 0])]);
        let reports = b"\x1b[?997;1n\x1b[?997;2n\x1b[?997;3n";
        assert_eq!(read(&[reports]), [TerminalInput::Background([0; 3]), TerminalInput::Background([255; 3])]);
        let paste = b"\x1b[200~a\x1b[31mb\nq\x1b[201~j";
        for cut in 0..paste.len() {
            let expected = vec![TerminalInput::Paste("a\x1b[31mb\nq".to_owned()), keys("j").remove(0)];
            assert_eq!(read(&[&paste[..cut], &paste[cut..]]), expected, "cut at {cut}");
        }
    }
}
