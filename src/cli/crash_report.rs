//! Reports of panics and internal errors: the message, where the log is, and how to report the fault.
//!
//! Expected errors are one message and a hint, see [`super::error`]. A panic or an internal error is a fault of revdeck,
//! so its report says more: the place in the code, a backtrace where `RUST_BACKTRACE` asks for one, the folder of the
//! logs and what to send. The cockpit gives the terminal back before the report is printed, see
//! `tui::terminal::restore_on_panic`.

use std::fmt;
use std::panic::PanicHookInfo;

use color_eyre::Section;
use color_eyre::config::{HookBuilder, Theme};
use color_eyre::eyre::{Report, eyre};
use color_eyre::section::PanicMessage;

use super::output;
use crate::config::Paths;
use crate::domain::text;

/// Installs the hooks for panics and reports; a second call does nothing.
pub fn install() {
    let theme = if output::has_color_on_stderr() { Theme::dark() } else { Theme::new() };
    let builder = HookBuilder::blank()
        .theme(theme)
        .capture_span_trace_by_default(false)
        .display_env_section(false)
        .panic_message(HarmlessMessage)
        .panic_section(HowToReport);
    // Fails only when hooks are installed already; those stay.
    let _ = builder.install();
}

/// Returns the report of an error that only a fault of revdeck can cause. `message` may hold text from code or models:
/// it is made harmless for a terminal.
pub fn internal_error(message: &str) -> Report {
    eyre!("{}", text::sanitize_lines(message, 4)).with_section(how_to_report)
}

/// Words of [`how_to_report`], found only when they are printed: to find the folders takes a part of the start of each process.
struct HowToReport;

impl fmt::Display for HowToReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&how_to_report())
    }
}

/// Says where the log is and what a report of the fault needs.
fn how_to_report() -> String {
    let logs = match Paths::resolve(std::env::var_os(Paths::HOME_VARIABLE).as_deref()) {
        Ok(paths) => output::format_path(&paths.logs),
        Err(_) => "the logs folder".to_owned(),
    };
    format!(
        "This is a fault of revdeck. What reviews found is recorded; nothing of it is lost.\n\
         To report it, run the command again with REVDECK_LOG=debug and RUST_BACKTRACE=1. Send this text, the\n\
         output of `revdeck --version` and the newest file in\n  {logs}\n\
         Look through that file first: it may name files of yours."
    )
}

/// Prints a panic's message with no byte that a terminal could obey.
struct HarmlessMessage;

impl PanicMessage for HarmlessMessage {
    fn display(&self, panic: &PanicHookInfo<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = panic.payload();
        let message = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        write!(f, "revdeck panicked: {}", text::sanitize_lines(message, 4))?;
        panic.location().map_or(Ok(()), |place| write!(f, "\nat {place}"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use super::*;

    /// Set in the process that panics.
    const PANIC: &str = "REVDECK_TEST_PANIC";

    /// A panic hook belongs to a whole process, so the test starts itself again and reads what that process prints.
    #[test]
    fn faults_are_reported_with_the_place_of_the_log_and_no_control_bytes() {
        if std::env::var_os(PANIC).is_some() {
            install();
            let _ =
                writeln!(std::io::stderr(), "{:?}", internal_error("the engine of ar_1 stopped\u{7} without an end"));
            panic!("cannot read \u{1b}[2Jname");
        }
        let name = "cli::crash_report::tests::faults_are_reported_with_the_place_of_the_log_and_no_control_bytes";
        let output = Command::new(std::env::current_exe().expect("this test's program"))
            .args([name, "--exact", "--nocapture", "--test-threads=1"])
            .env(PANIC, "1")
            .env("REVDECK_HOME", "/home/user/revdeck")
            .env_remove("RUST_BACKTRACE")
            .env_remove("RUST_LIB_BACKTRACE")
            .output()
            .expect("the test's program starts");
        assert!(!output.status.success());
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(!text.contains('\u{7}'), "{text:?}");
        let from = text.find("the engine of").unwrap_or_else(|| panic!("no report in {text:?}"));
        let text = regex::Regex::new(r"rs:\d+(:\d+)?").expect("a pattern").replace_all(&text[from..], "rs:LINE");
        insta::assert_snapshot!(text.trim_end(), @"
        the engine of ar_1 stopped� without an end

        Location:
           src/cli/crash_report.rs:LINE

        This is a fault of revdeck. What reviews found is recorded; nothing of it is lost.
        To report it, run the command again with REVDECK_LOG=debug and RUST_BACKTRACE=1. Send this text, the
        output of `revdeck --version` and the newest file in
          /home/user/revdeck/logs
        Look through that file first: it may name files of yours.
        revdeck panicked: cannot read �[2Jname
        at src/cli/crash_report.rs:LINE

        This is a fault of revdeck. What reviews found is recorded; nothing of it is lost.
        To report it, run the command again with REVDECK_LOG=debug and RUST_BACKTRACE=1. Send this text, the
        output of `revdeck --version` and the newest file in
          /home/user/revdeck/logs
        Look through that file first: it may name files of yours.
        ");
    }
}
