//! Reads API keys and keeps them out of everything that revdeck shows or stores.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use memchr::memmem;
use secrecy::{ExposeSecret, SecretString};

use super::super::chat::ChatError;
use crate::config::ApiKeySource;
use crate::domain::ErrorClass;
use crate::domain::text::sanitize_line;

/// Time limit of `api_key_cmd`. It is long because a password manager may ask its user first.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a key. Longer output is not a key.
const MAX_KEY_BYTES: usize = 16 * 1024;
/// Maximum length of the error line of `api_key_cmd` that is shown.
const MAX_NOTE_CHARS: usize = 200;
/// Length from which a part of a key is redacted too, because servers echo truncated keys.
const MIN_REDACTED_PART_BYTES: usize = 8;
/// Minimum length of a key that is redacted in responses. Shorter keys ("none", "lm-studio") are words that a response
/// may use.
const MIN_KEY_BYTES_IN_RESPONSE: usize = 16;
const REDACTED_KEY: &str = "[key]";

/// Reads the key from the environment (through the `environment` callback) or from the command. The command gets no
/// input, 60 seconds and 16 KiB of output. Returns `None` for [`ApiKeySource::None`].
///
/// # Errors
///
/// Class `Auth`, with the next step for the user. The message contains the first line that the command wrote to its
/// standard error, never its standard output.
pub fn read_key(
    source: ApiKeySource<'_>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<SecretString>, ChatError> {
    let failed = |problem: String| ChatError::new(ErrorClass::Auth, problem);
    let key = match source {
        ApiKeySource::None => return Ok(None),
        ApiKeySource::Variable(name) => environment(name).filter(|key| !key.trim().is_empty()).ok_or_else(|| {
            failed(format!("the variable {name} is not set: put the key into it, or use api_key_cmd"))
        })?,
        ApiKeySource::Command(line) => run_key_command(line, COMMAND_TIMEOUT)
            .map_err(|problem| failed(format!("api_key_cmd {problem}: run it by hand to see why")))?,
    };
    let key = key.trim();
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(failed("the key holds spaces or characters that no header can carry: check its source".to_owned()));
    }
    Ok(Some(SecretString::from(key)))
}

/// Runs the command and returns its standard output, or a description of the problem.
fn run_key_command(line: &str, time: Duration) -> Result<String, String> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| format!("did not start: {error}"))?;
    let output = child.stdout.take().map(read_in_background);
    let notes = child.stderr.take().map(read_in_background);
    let deadline = Instant::now() + time;
    let output = output.and_then(|output| output.recv_timeout(deadline.duration_since(Instant::now())).ok());
    let status = output.is_some().then(|| wait_until(&mut child, deadline)).flatten();
    let (Some(output), Some(status)) = (output, status) else {
        kill_process_tree(&mut child);
        return Err(format!("took more than {} seconds", time.as_secs()));
    };
    // Checked before the exit status: a command whose output is truncated fails because of the closed pipe.
    if output.len() > MAX_KEY_BYTES {
        return Err(format!("printed more than {MAX_KEY_BYTES} bytes"));
    }
    let text = String::from_utf8_lossy(&output);
    if !status.success() {
        // Another process may still hold the standard error open: wait 200 ms at most.
        let notes = notes.and_then(|notes| notes.recv_timeout(Duration::from_millis(200)).ok()).unwrap_or_default();
        let notes = String::from_utf8_lossy(&notes);
        let first: String = notes.lines().next().unwrap_or("").trim().chars().take(MAX_NOTE_CHARS).collect();
        let first = sanitize_line(&redact_key(text.trim(), &first)).into_owned();
        return Err(if first.is_empty() {
            format!("failed ({status})")
        } else {
            format!("failed ({status}): {first}")
        });
    }
    match text.trim() {
        "" => Err("printed nothing".to_owned()),
        key => Ok(key.to_owned()),
    }
}

/// Reads the pipe on its own thread, because the pipe may stay open after the command has ended. Reads one byte more
/// than a key may have.
fn read_in_background(pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(MAX_KEY_BYTES as u64 + 1).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

/// Returns the exit status, or `None` if the command still runs at the deadline.
fn wait_until(child: &mut Child, deadline: Instant) -> Option<std::process::ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

/// Kills the command and every process of its group, and reaps the command.
fn kill_process_tree(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The API key of an endpoint, or none.
#[derive(Debug, Clone)]
pub(crate) struct ApiKey(Option<SecretString>);

impl ApiKey {
    /// Creates the key. An empty key counts as no key.
    pub fn new(key: Option<SecretString>) -> Self {
        Self(key.filter(|key| !key.expose_secret().is_empty()))
    }

    /// Returns the key in clear text. Only the code that builds the HTTP header may call this.
    pub fn expose(&self) -> Option<&str> {
        self.0.as_ref().map(ExposeSecret::expose_secret)
    }

    /// Returns an error text with the key, and every part of the key of 8 or more bytes, replaced by `[key]`.
    pub fn redact(&self, text: &str) -> String {
        redact_key(self.expose().unwrap_or(""), text)
    }

    /// Redacts the key in a part of a response, in case a server echoes the key.
    pub fn redact_in_place(&self, text: &mut String) {
        if let Some(key) = self.expose().filter(|_| self.is_in(text)) {
            *text = text.replace(key, REDACTED_KEY);
        }
    }

    /// Returns `true` if a part of a response contains the key.
    pub fn is_in(&self, text: &str) -> bool {
        let key = self.expose().filter(|key| key.len() >= MIN_KEY_BYTES_IN_RESPONSE);
        key.is_some_and(|key| memmem::find(text.as_bytes(), key.as_bytes()).is_some())
    }
}

fn redact_key(key: &str, text: &str) -> String {
    let (key, bytes) = (key.as_bytes(), text.as_bytes());
    let part = key.len().min(MIN_REDACTED_PART_BYTES);
    // A key of fewer than 4 bytes is no secret, and redacting it would damage ordinary words.
    if part < 4 {
        return text.to_owned();
    }
    let mut shown = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let mut end = at + part;
        if end > bytes.len() || memmem::find(key, &bytes[at..end]).is_none() {
            shown.push(bytes[at]);
            at += 1;
            continue;
        }
        while end < bytes.len() && memmem::find(key, &bytes[at..=end]).is_some() {
            end += 1;
        }
        shown.extend_from_slice(REDACTED_KEY.as_bytes());
        at = end;
    }
    String::from_utf8_lossy(&shown).into_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KEY: &str = "sk-proj-0123456789abcdefghij";

    #[rstest]
    #[case::whole("refused sk-proj-0123456789abcdefghij.", "refused [key].")]
    #[case::cut("Bearer sk-proj-0123456789…", "Bearer [key]…")]
    #[case::end("…6789abcdefghij", "…[key]")]
    #[case::twice("sk-proj-0123456789abcdefghijsk-proj-0123456789abcdefghij", "[key][key]")]
    #[case::short_parts_stay("sk-proj and 漢字", "sk-proj and 漢字")]
    fn hidden(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(ApiKey::new(Some(SecretString::from(KEY))).redact(text), shown);
    }

    #[test]
    fn placeholders_do_not_tear_words_apart() {
        assert_eq!(redact_key("x", "exact"), "exact");
        let mut text = "the lm-studio server".to_owned();
        ApiKey::new(Some(SecretString::from("lm-studio"))).redact_in_place(&mut text);
        assert_eq!(text, "the lm-studio server");
    }

    #[test]
    fn keys_come_from_the_environment_or_a_command() {
        let environment = |name: &str| (name == "MODEL_KEY").then(|| format!(" {KEY}\n"));
        let echo = format!("echo {KEY}");
        for source in [ApiKeySource::Variable("MODEL_KEY"), ApiKeySource::Command(&echo)] {
            let key = read_key(source, &environment).expect("a key").expect("not none");
            assert_eq!(key.expose_secret(), KEY);
            assert!(!format!("{key:?} {:?}", ApiKey::new(Some(key.clone()))).contains("sk-"));
        }
        assert!(read_key(ApiKeySource::None, &environment).expect("no error").is_none());
    }

    #[rstest]
    #[case::unset(ApiKeySource::Variable("OTHER"), "the variable OTHER is not set")]
    #[case::fails(
        ApiKeySource::Command("echo no vault >&2; echo second line >&2; exit 3"),
        "(exit status: 3): no vault"
    )]
    #[case::silent(ApiKeySource::Command("true"), "printed nothing")]
    #[case::torrent(ApiKeySource::Command("head -c 100000 /dev/zero | tr '\\0' x"), "printed more than 16384 bytes")]
    #[case::binary(ApiKeySource::Command("printf 'a\\001b'"), "no header can carry")]
    #[case::lines(ApiKeySource::Command("printf 'one\\ntwo'"), "no header can carry")]
    fn without_a_key_it_says_why(#[case] source: ApiKeySource<'_>, #[case] says: &str) {
        let error = read_key(source, &|_| None).expect_err("no key");
        assert_eq!(error.class, ErrorClass::Auth);
        assert!(error.summary.contains(says), "{}", error.summary);
        assert!(!error.summary.contains("second"), "only the first line: {}", error.summary);
    }

    #[test]
    fn a_failing_command_does_not_show_the_key() {
        let line = format!("echo {KEY}; echo \"+ echo {KEY}\" >&2; exit 1");
        let error = read_key(ApiKeySource::Command(&line), &|_| None).expect_err("it failed");
        assert!(error.summary.contains("[key]") && !error.summary.contains("0123456"), "{}", error.summary);
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let problem = run_key_command("sleep 600 & sleep 600", Duration::from_millis(100)).expect_err("it hangs");
        assert!(problem.contains("took more than"), "{problem}");
        let problem =
            run_key_command("echo key; exec >&-; sleep 600", Duration::from_millis(100)).expect_err("it hangs");
        assert!(problem.contains("took more than"), "{problem}");
    }
}
