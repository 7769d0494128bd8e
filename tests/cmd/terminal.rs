//! A pseudo-terminal for tests. `script` of util-linux makes it and runs the program on it.

use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::place::{Outcome, Place};

/// Runs the program in `place` with `args` on a terminal of `columns` and `lines`, and with
/// `variables` in its environment. The returned stdout is what the terminal received.
pub(crate) fn run_on_terminal(
    place: &Place,
    args: &str,
    (columns, lines): (u16, u16),
    variables: &[(&str, &str)],
) -> Outcome {
    let program = place.command(args);
    let words: Vec<String> = program
        .get_args()
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let call = format!(
        "stty cols {columns} rows {lines}; exec '{}' {} 2>stderr",
        program.get_program().to_string_lossy(),
        words.join(" ")
    );

    let mut script = Command::new("script");
    script.args(["-qec", &call, "/dev/null"]);
    script.env_clear().current_dir(place.path(""));
    for (name, value) in program.get_envs() {
        script.env(name, value.unwrap_or_default());
    }
    script
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .env("PATH", "/usr/bin:/bin")
        .envs(variables.iter().copied());
    let mut child = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`script` starts");

    // The input stays open, because `script` would send a key at its end.
    let input = child.stdin.take();
    let mut shown = Vec::new();
    let mut screen = child.stdout.take().expect("a pipe");
    screen.read_to_end(&mut shown).expect("read");
    let mut output = child.wait_with_output().expect("it ended");
    drop(input);
    let text = String::from_utf8(shown).expect("text");
    output.stdout = text.replace("\r\n", "\n").into_bytes();
    output.stderr = fs_err::read(place.path("stderr")).expect("read");
    Outcome::of(output)
}
