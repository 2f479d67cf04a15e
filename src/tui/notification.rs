//! Encodes the signals that reach a user who does not look at the screen: the terminal's bell, and notifications of the
//! desktop.

use super::passthrough::wrap_for_screen;
use super::terminal::{is_gnu_screen, is_windows_terminal};
use crate::config::NotifyMode;
use crate::domain::text;

/// Starts of `TERM` and `TERM_PROGRAM` of terminals that know `OSC 777`, as urxvt defined it. Windows Terminal knows it, too,
/// and takes `OSC 9` for commands of ConEmu. The others get `OSC 9`, as iTerm2 defined it; a terminal that does not know a
/// sequence ignores it.
const OSC_777_TERMINALS: [&str; 5] = ["foot", "rxvt", "ghostty", "xterm-ghostty", "contour"];

/// Encodes a notification for the terminal; empty if the user wants none.
pub fn encode_notification(mode: NotifyMode, message: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    match mode {
        NotifyMode::Off => String::new(),
        NotifyMode::Bell => "\x07".to_owned(),
        NotifyMode::Desktop => {
            let message = text::sanitize_line(message);
            let is_known = |name: &str| {
                let value = variable(name).unwrap_or_default().to_ascii_lowercase();
                OSC_777_TERMINALS.iter().any(|known| value.starts_with(known))
            };
            let sequence = match is_known("TERM") || is_known("TERM_PROGRAM") || is_windows_terminal(&variable) {
                // A semicolon ends a field.
                true => format!("\x1b]777;notify;revdeck;{}\x07", message.replace(';', ",")),
                false => format!("\x1b]9;revdeck: {message}\x07"),
            };
            match variable("TMUX").is_some_and(|value| !value.is_empty()) {
                true => format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")),
                false if is_gnu_screen(&variable) => wrap_for_screen(&sequence),
                false => sequence,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_terminal_gets_the_sequence_that_it_knows() {
        let said = "done; 1 P0\x1b]0;evil\x07";
        let safe = "done; 1 P0\u{fffd}]0;evil\u{fffd}";
        let fields = safe.replace(';', ",");
        for (mode, variables, expected) in [
            (NotifyMode::Off, &[][..], String::new()),
            (NotifyMode::Bell, &[("TERM", "foot")], "\x07".to_owned()),
            (NotifyMode::Desktop, &[("TERM", "xterm-kitty")], format!("\x1b]9;revdeck: {safe}\x07")),
            (NotifyMode::Desktop, &[("TERM", "foot-extra")], format!("\x1b]777;notify;revdeck;{fields}\x07")),
            (
                NotifyMode::Desktop,
                &[("TERM", "tmux-256color"), ("TERM_PROGRAM", "ghostty"), ("TMUX", "/tmp/s,1,0")],
                format!("\x1bPtmux;\x1b\x1b]777;notify;revdeck;{fields}\x07\x1b\\"),
            ),
            (
                NotifyMode::Desktop,
                &[("TERM", "xterm-256color"), ("WT_SESSION", "2c2b8f4e")],
                format!("\x1b]777;notify;revdeck;{fields}\x07"),
            ),
            (
                NotifyMode::Desktop,
                &[("TERM", "screen-256color"), ("STY", "1.pts-0.host")],
                format!("\x1bP\x1b]9;revdeck: {safe}\x07\x1b\\"),
            ),
            (
                NotifyMode::Desktop,
                &[("TERM", "screen"), ("STY", "1.pts-0.host"), ("WT_SESSION", "2c2b8f4e")],
                format!("\x1bP\x1b]777;notify;revdeck;{fields}\x07\x1b\\"),
            ),
        ] {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(encode_notification(mode, said, variable), expected);
        }
    }
}
