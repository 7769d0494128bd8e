//! Shows text that does not fit on the terminal in a pager: the one in `POOLCAST_PAGER` or `PAGER`,
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

/// Exit codes of a shell that cannot start a program (126), or does not find it (127).
const SHELL_FAILURES: [i32; 2] = [126, 127];

/// Shows `text` on stdout, in a pager if stdout is a terminal with too few lines. If there is no
/// pager, the text is written directly. The caller must have escaped it for a terminal.
pub fn show(text: &str) -> Result<()> {
    let is_long =
        output::terminal_size().is_some_and(|(columns, lines)| shown_lines(text, columns) >= lines);
    if is_long
        && let Some(pager) = pager_command()
        && run_pager(pager, text)
    {
        return Ok(());
    }
    output::write(text)
}

/// Counts the lines that `text` takes on a terminal. Colour codes have no width.
fn shown_lines(text: &str, columns: usize) -> usize {
    let lines = text.lines().map(textwrap::core::display_width);
    lines.map(|used| used.div_ceil(columns).max(1)).sum()
}

/// Returns the command of the pager; `None` if the user wants none, or the terminal cannot do more
/// than print.
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
        // The value may have options, such as `less -S`, so a shell splits it.
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
    // The same defaults as git's: quit if the text fits, show colours, leave the text on the
    // terminal.
    for (name, usual) in [("LESS", "FRX"), ("LV", "-c")] {
        if std::env::var_os(name).is_none() {
            pager.env(name, usual);
        }
    }
    Some(pager)
}

/// Returns true if the environment variable `name` must not be passed to other programs: it may
/// hold a secret, or it is one of poolcast's own, such as the salt of owners.
fn has_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    name.starts_with("poolcast_") || SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Runs `pager` with `text` as its input and waits until it ends. Returns false if it could not be
/// started. A pager that ends before it has read all of its input is not an error.
fn run_pager(mut pager: Command, text: &str) -> bool {
    // Ctrl-C is meant for the pager. If this process died of it, the pager and the shell would both
    // read from the terminal.
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
    fn line_count_includes_wrapped_lines_and_ignores_colours() {
        assert_eq!(shown_lines("", 10), 0);
        assert_eq!(shown_lines("a\n\nb\n", 10), 3);
        assert_eq!(shown_lines("0123456789\n0123456789a\n", 10), 3);
        assert_eq!(
            shown_lines("\u{1b}[1m\u{1b}[32m0123456789\u{1b}[0m\n", 10),
            1
        );
    }

    #[test]
    fn secret_variables_are_recognized_by_name() {
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
