//! Copies text to the clipboard of the system, on a thread of its own.
//!
//! - A program that takes the text and ends well has put it into the clipboard: that is known, and said.
//! - Without such a program, the text is sent to the terminal with OSC 52. Terminals do not answer, and many ignore it.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crossterm::Command as _;
use crossterm::clipboard::CopyToClipboard;

use super::passthrough::wrap_for_screen;
use super::screen::Screen;
use super::terminal::is_gnu_screen;

/// Time that a program may take. Not from the literature: they need milliseconds; a person waits for the answer.
const MAX_COPY_TIME: Duration = Duration::from_secs(2);
/// Interval between two checks whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Program that copies its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClipboardProgram {
    words: &'static [&'static str],
    /// Environment variable without which the program has no clipboard; empty for none.
    needs: &'static str,
}

/// Programs in the order in which they are tried. Inside tmux, its buffer is what the user pastes from; `-w` hands it
/// on to the terminal.
const PROGRAMS: [ClipboardProgram; 6] = [
    ClipboardProgram { words: &["tmux", "load-buffer", "-w", "-"], needs: "TMUX" },
    ClipboardProgram { words: &["tmux", "load-buffer", "-"], needs: "TMUX" },
    ClipboardProgram { words: &["wl-copy"], needs: "WAYLAND_DISPLAY" },
    ClipboardProgram { words: &["xclip", "-selection", "clipboard", "-in"], needs: "DISPLAY" },
    ClipboardProgram { words: &["xsel", "--clipboard", "--input"], needs: "DISPLAY" },
    ClipboardProgram { words: &["pbcopy"], needs: "" },
];

/// Copies a text with the first program that takes it. Returns its name, or `None` if there is none.
pub fn copy_with_program(text: &str, variable: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    let usable = PROGRAMS.iter().filter(|program| program.needs.is_empty() || variable(program.needs));
    usable.filter_map(|program| run(program.words, text)).next()
}

/// Encodes a text for the clipboard of the terminal as OSC 52, also for the terminal around GNU screen.
pub fn encode_clipboard(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut sequence = String::new();
    // Writing to memory does not fail.
    let _ = CopyToClipboard::to_clipboard_from(text).write_ansi(&mut sequence);
    if is_gnu_screen(variable) { wrap_for_screen(&sequence) } else { sequence }
}

/// Encodes a text for the clipboard of the terminal, see [`encode_clipboard`]. The next frame of `screen` is drawn as a whole
/// where GNU screen may print a part of the text: over SSH, only the type of the terminal says that it runs around this, and
/// it prints a long text.
pub fn encode_with_redraw(text: &str, screen: &mut Screen, variable: impl Fn(&str) -> Option<String>) -> String {
    if variable("TERM").is_some_and(|term| term.starts_with("screen")) {
        screen.invalidate();
    }
    encode_clipboard(text, variable)
}

/// Runs a program with the text as its input. Returns its name if it ended well in time.
fn run(words: &'static [&'static str], text: &str) -> Option<&'static str> {
    let (name, arguments) = words.split_first()?;
    // `wl-copy` and `xclip` leave a process behind, which must hold no pipe of ours.
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut input = child.stdin.take()?;
    let bytes = text.as_bytes().to_vec();
    // A program that does not read must not hold this thread.
    let writer = std::thread::spawn(move || input.write_all(&bytes).is_ok());
    let has_ended = wait_until(&mut child, Instant::now() + MAX_COPY_TIME);
    if has_ended.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let is_written = writer.join().unwrap_or(false);
    has_ended.filter(|succeeded| *succeeded && is_written).map(|_| *name)
}

/// Waits for the end of a program. Returns whether it succeeded, or `None` if it has not ended at the deadline.
fn wait_until(child: &mut Child, deadline: Instant) -> Option<bool> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
            Ok(None) | Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn a_screen_that_may_show_a_part_of_the_text_is_drawn_anew_once() {
        for (pairs, is_wrapped, is_redrawn) in [
            (&[("TERM", "xterm-256color")][..], false, false),
            (&[("TERM", "tmux-256color"), ("TMUX", "/tmp/tmux-1/default,1,0")], false, false),
            (&[("TERM", "xterm-256color"), ("STY", "1.pts-0.host")], true, false),
            (&[("TERM", "screen.xterm-256color"), ("STY", "1.pts-0.host")], true, true),
            // Over SSH, the variable of GNU screen does not arrive.
            (&[("TERM", "screen-256color")], false, true),
            (&[("TERM", "screen"), ("STY", "")], false, true),
            (&[], false, false),
        ] {
            let variable = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            let draw = |screen: &mut Screen| {
                let bytes = screen.draw_frame(|buffer| {
                    buffer.set_string(0, 1, "a row", Style::new());
                    None
                });
                String::from_utf8_lossy(bytes).into_owned()
            };
            let mut screen = Screen::new(20, 2);
            assert!(draw(&mut screen).contains("a row"), "{pairs:?}");
            assert_eq!(draw(&mut screen), "", "{pairs:?}: nothing has changed");
            let sequence = encode_with_redraw("text", &mut screen, variable);
            assert_eq!(sequence.starts_with("\x1bP"), is_wrapped, "{pairs:?}: {sequence:?}");
            assert!(sequence.contains("\x1b]52;c;dGV4dA=="), "{pairs:?}: {sequence:?}");
            assert_eq!(draw(&mut screen).contains("a row"), is_redrawn, "{pairs:?}");
            assert_eq!(draw(&mut screen), "", "{pairs:?}: once is enough");
        }
    }

    #[test]
    fn gnu_screen_hands_a_text_of_any_length_to_its_terminal() {
        for (bytes, session, pieces) in [
            (7, None, 0),
            (3_000, None, 0),
            (3_000, Some(""), 0),
            (7, Some("1.pts-0.host"), 1),
            (3_000, Some("1.pts-0.host"), 9),
        ] {
            let variable = |name: &str| session.filter(|_| name == "STY").map(str::to_owned);
            let sequence = encode_clipboard(&"x".repeat(bytes), variable);
            assert_eq!(sequence.matches("\x1bP").count(), pieces, "{sequence:?}");
            assert_eq!(sequence.matches("\x1b]52;c;").count(), 1, "{sequence:?}");
            assert!(pieces == 0 || sequence.ends_with("\x07\x1b\\"), "{sequence:?}");
        }
    }
}
