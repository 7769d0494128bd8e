//! Sends a notice by the local mail program.

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::notice::Notice;
use poolcast_base::error::hinted;
use poolcast_base::program::command_without_keys;

/// Names of the local mail program, in the order in which they are tried.
const PROGRAMS: [&str; 3] = ["sendmail", "/usr/sbin/sendmail", "/usr/lib/sendmail"];

/// Time within which the program must take a mail.
const LIMIT: Duration = Duration::from_secs(60);

/// Interval between checks whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Sends `notice` to `address`, which must be valid, as [`super::NoticeTarget`] checks it.
///
/// # Errors
/// Fails if there is no mail program, or if it does not take the mail.
pub fn send_mail(address: &str, notice: &Notice) -> Result<()> {
    let mut child = begin()?;
    let message = message(address, notice);
    let mut input = child
        .stdin
        .take()
        .context("the mail program has no input")?;
    // A program that hangs may also not read, and must not make this process hang.
    let writer = std::thread::spawn(move || input.write_all(message.as_bytes()));
    let end = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
            return Err(late).context("the mail program does not take the mail");
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    ensure!(status.success(), "the mail program failed: {status}");
    match writer.join() {
        Ok(written) => written.map_err(unread_mail),
        Err(_) => bail!("the mail was not written"),
    }
}

/// Describes the failure to write a mail. Its kind is dropped: as a broken pipe, it would count as the
/// end of the reader of this program's own output.
fn unread_mail(error: std::io::Error) -> anyhow::Error {
    let why = format!("the mail program has not read the mail: {error}");
    std::io::Error::other(why).into()
}

/// Starts the first mail program that is there.
fn begin() -> Result<Child> {
    for program in PROGRAMS {
        let child = command_without_keys(program)
            .args(["-t", "-i"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        match child {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            child => return child.with_context(|| format!("cannot run `{program}`")),
        }
    }
    bail!(hinted(
        "there is no `sendmail` here",
        "install a mail program that has it, or name a web address: --notify https://..."
    ))
}

/// The mail with its headers. Only the address and the subject are in headers, and neither has text
/// of a log.
fn message(address: &str, notice: &Notice) -> String {
    let subject = notice.subject();
    let headers = [
        format!("To: {address}"),
        format!("Subject: {subject}"),
        "Auto-Submitted: auto-generated".to_owned(),
        "MIME-Version: 1.0".to_owned(),
        "Content-Type: text/plain; charset=utf-8".to_owned(),
        "Content-Transfer-Encoding: 8bit".to_owned(),
    ];
    format!("{}\n\n{}", headers.join("\n"), notice.text())
}

#[cfg(test)]
mod tests {
    use super::super::notice::NoticeCause;
    use super::super::notice::tests::group;
    use super::*;

    #[test]
    fn unread_mail_is_not_a_closed_output() {
        let error = unread_mail(std::io::ErrorKind::BrokenPipe.into());
        assert!(!poolcast_base::error::is_broken_pipe(&error), "{error}");
    }

    #[test]
    fn text_of_a_log_never_reaches_the_headers() {
        let hostile = group("aaaaaa", "x\n\nSubject: y\r\nBcc: eve@example.org\n.\n");
        let notice = Notice {
            since_ms: None,
            asked_ms: 0,
            causes: vec![NoticeCause::new(&hostile, false)],
        };
        let mail = message("ada@example.org", &notice);
        let (headers, body) = mail.split_once("\n\n").expect("a body");
        assert_eq!(headers.lines().count(), 6);
        assert!(!headers.contains("eve") && body.contains("eve"), "{mail}");
        assert!(
            body.lines()
                .all(|line| line != "." && !line.starts_with("Bcc")),
            "{mail}"
        );
    }
}
