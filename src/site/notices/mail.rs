//! Sends a notice by the local mail program.

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::mailed_page::MailedPage;
use super::notice::Notice;
use poolcast_base::error::hinted;
use poolcast_base::program::command_without_keys;

/// Names of the local mail program, in the order in which they are tried.
const PROGRAMS: [&str; 3] = ["sendmail", "/usr/sbin/sendmail", "/usr/lib/sendmail"];

/// Time within which the program must take a mail.
const LIMIT: Duration = Duration::from_secs(60);

/// Interval between checks whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Sends `notice` and `page` to `address`, which must be valid, as [`super::NoticeTarget`] checks it.
///
/// # Errors
/// Fails if there is no mail program, or if it does not take the mail.
pub fn send_mail(address: &str, notice: &Notice, page: &MailedPage) -> Result<()> {
    let mut child = begin()?;
    let message = message(address, notice, page);
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

/// Separates the parts of a mail. It cannot occur in quoted-printable text (RFC 2045, section 6.7).
const BOUNDARY: &str = "=_poolcast";

/// Maximum length of a line of quoted-printable text, in characters.
const MAX_LINE_LENGTH: usize = 76;

/// The mail with its headers: the same words as text and as HTML (RFC 2046, section 5.1.4). Only the address and the
/// subject are in headers, and neither has text of a log.
fn message(address: &str, notice: &Notice, page: &MailedPage) -> String {
    let headers = [
        format!("To: {address}"),
        format!("Subject: {}", notice.subject()),
        "Auto-Submitted: auto-generated".to_owned(),
        "MIME-Version: 1.0".to_owned(),
        format!("Content-Type: multipart/alternative; boundary=\"{BOUNDARY}\""),
    ];
    let (text, html) = page.with_notice(notice);
    let mut mail = headers.join("\n") + "\n";
    for (kind, part) in [("plain", &text), ("html", &html)] {
        mail += &format!(
            "\n--{BOUNDARY}\nContent-Type: text/{kind}; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n{}",
            quoted_printable(part)
        );
    }
    mail + &format!("\n--{BOUNDARY}--\n")
}

/// Encodes the lines of `text` for a mail (RFC 2045, section 6.7).
fn quoted_printable(text: &str) -> String {
    let mut encoded = String::new();
    for line in text.lines() {
        let mut length = 0;
        let mut bytes = line.bytes().peekable();
        while let Some(byte) = bytes.next() {
            let is_last = bytes.peek().is_none();
            let is_plain = match byte {
                b'=' => false,
                // A blank at the end of a line, and a line that is a dot or looks like a header of a mailbox.
                b' ' => !is_last,
                b'.' | b'F' => length > 0,
                _ => byte.is_ascii_graphic(),
            };
            let size = if is_plain { 1 } else { 3 };
            if length + size >= MAX_LINE_LENGTH {
                encoded.push_str("=\n");
                length = 0;
            }
            match is_plain {
                true => encoded.push(char::from(byte)),
                false => encoded.push_str(&format!("={byte:02X}")),
            }
            length += size;
        }
        encoded.push('\n');
    }
    encoded
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
        let mail = message("ada@example.org", &notice, &MailedPage::default());
        let (headers, body) = mail.split_once("\n\n").expect("a body");
        assert_eq!(headers.lines().count(), 5);
        assert!(!headers.contains("eve") && body.contains("eve"), "{mail}");
        assert!(
            body.lines()
                .all(|line| line != "." && !line.starts_with("Bcc")),
            "{mail}"
        );
    }

    #[test]
    fn quoted_lines_are_short_and_have_no_raw_bytes() {
        assert_eq!(
            quoted_printable("a=b \n.\nFrom é"),
            "a=3Db=20\n=2E\n=46rom =C3=A9\n"
        );
        let long = quoted_printable(&"é".repeat(100));
        assert!(long.lines().all(|line| line.len() <= MAX_LINE_LENGTH));
        assert_eq!(long.replace("=\n", "").matches("=C3=A9").count(), 100);
        let exact = quoted_printable(&"x".repeat(76));
        assert_eq!(exact, format!("{}=\nx\n", "x".repeat(75)));
    }
}
