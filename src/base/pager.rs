//! Text that is longer than the terminal → a pager: the one that `POOLCAST_PAGER` or `PAGER` names,
//! else `less`.

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use signal_hook::consts::SIGINT;

use crate::output;
use crate::program::SECRET_WORDS;

/// The exit codes of a shell that cannot start a program, or does not find it.
const SHELL_FAILURES: [i32; 2] = [126, 127];

/// Shows `text`, which is as a terminal may have it, on stdout: in a pager where that is a terminal
/// with too few lines. Without a pager it is written as it is.
pub fn show(text: &str) -> Result<()> {
    let is_long =
        output::terminal_size().is_some_and(|(columns, lines)| shown_lines(text, columns) >= lines);
    if is_long
        && let Some(pager) = pager_command()
        && is_shown_by(pager, text)
    {
        return Ok(());
    }
    output::write(text)
}

/// How many lines of a terminal `text` takes, in which colours take no place.
fn shown_lines(text: &str, columns: usize) -> usize {
    let mut lines = 0;
    for line in text.lines() {
        let mut used = 0_usize;
        let mut is_colour = false;
        for c in line.chars() {
            match c {
                '\u{1b}' => is_colour = true,
                'm' if is_colour => is_colour = false,
                _ if is_colour => {}
                _ => used += 1,
            }
        }
        lines += usize::max(used.div_ceil(columns), 1);
    }
    lines
}

/// The pager; `None` where none is wanted, or the terminal can do no more than print.
fn pager_command() -> Option<Command> {
    let term = std::env::var_os("TERM")?;
    if term == "dumb" {
        return None;
    }

    let named = ["POOLCAST_PAGER", "PAGER"]
        .into_iter()
        .find_map(std::env::var_os);
    let mut pager = match named {
        Some(name) if name.is_empty() || name == "cat" => return None,
        // It may have options, as `less -S`.
        Some(name) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(name);
            shell
        }
        None => Command::new("less"),
    };

    for (name, _) in std::env::vars_os() {
        if has_secret(&name) {
            pager.env_remove(name);
        }
    }
    // As git sets them: end where all fits, show colours, leave the text on the terminal.
    for (name, usual) in [("LESS", "FRX"), ("LV", "-c")] {
        if std::env::var_os(name).is_none() {
            pager.env(name, usual);
        }
    }
    Some(pager)
}

/// Whether the environment variable `name` is not for other programs: one with a secret, or one of
/// ours, such as the salt of owners.
fn has_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    name.starts_with("poolcast_") || SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Gives `text` to `pager` and waits until that has ended. False if it could not be started; it may
/// end before it has read all.
fn is_shown_by(mut pager: Command, text: &str) -> bool {
    // Ctrl-C is for the pager: whoever dies of it would leave two programs at one terminal.
    let _ = signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
    let Ok(mut pager) = pager.stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut stdin) = pager.stdin.take() {
        let _ = stdin.write_all(text.as_bytes());
    }
    let ended = pager.wait().ok().and_then(|status| status.code());
    !ended.is_some_and(|code| SHELL_FAILURES.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_a_terminal_shows_them() {
        assert_eq!(shown_lines("", 10), 0);
        assert_eq!(shown_lines("a\n\nb\n", 10), 3);
        assert_eq!(shown_lines("0123456789\n0123456789a\n", 10), 3);
        assert_eq!(
            shown_lines("\u{1b}[1m\u{1b}[32m0123456789\u{1b}[0m\n", 10),
            1
        );
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "POOLCAST_OWNER_SALT",
            "WANDB_API_KEY",
            "GITHUB_TOKEN",
            "PGPASSWORD",
        ] {
            assert!(has_secret(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "LESS", "LESSKEY", "TERM", "HOME", "LC_ALL"] {
            assert!(!has_secret(OsStr::new(name)), "{name}");
        }
    }
}
