//! Words of a user's → words that DAGMan and submit files take as they are, or why they are refused.

use anyhow::{Result, ensure};

use crate::config::{Command, Commands};
use crate::error::hinted;

/// Submit commands that `condor/` decides, and macros that the DAG sets; jobs that did otherwise would not work.
const RESERVED: [&str; 38] = [
    "arguments",
    "args",
    "checkpoint_exit_code",
    "config",
    "container_image",
    "docker_image",
    "environment",
    "env",
    "err",
    "error",
    "executable",
    "getenv",
    "image",
    "include",
    "initialdir",
    "initial_dir",
    "input",
    "job",
    "log",
    "logs",
    "max_retries",
    "names",
    "on_exit_hold",
    "on_exit_remove",
    "options",
    "output",
    "queue",
    "retry_until",
    "should_transfer_files",
    "tensors",
    "transfer_checkpoint_files",
    "transfer_executable",
    "transfer_input_files",
    "transfer_output_files",
    "transfer_output_remaps",
    "trial",
    "universe",
    "when_to_transfer_output",
];

/// Commands that count bytes. Without a unit one of them counts megabytes and another kilobytes.
const BYTES: [&str; 3] = ["request_memory", "request_disk", "gpus_minimum_memory"];

/// Whether no program between here and the job reads `text` as anything but itself: neither DAGMan, nor a submit file, nor a
/// list of files to transfer, nor as an option.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+=:@~".contains(c))
}

/// Refuses `text`, which is `what`, if it is not plain.
pub(super) fn check_plain(what: &str, text: &str) -> Result<()> {
    ensure!(
        is_plain(text),
        hinted(
            format!("{what} `{text}` has a character that DAGMan or a submit file reads as something else"),
            "use letters, digits and `/._-+=:@~`; for a file elsewhere, make a symbolic link with such a name"
        )
    );
    Ok(())
}

/// Refuses a name that no node of a DAG may have.
pub(super) fn check_node(name: &str) -> Result<()> {
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    ensure!(
        is_name && !name.is_empty(),
        hinted(format!("no node of a DAG may be called `{name}`"), "use letters, digits, `-` and `_`")
    );
    Ok(())
}

/// The lines of `commands`, which stand at `place`.
pub(super) fn lines(place: &str, commands: &Commands) -> Result<String> {
    let line = |(name, value): (&String, &Command)| {
        let value = value.to_string();
        check_command(place, name, &value)?;
        Ok(format!("{name:<23} = {value}\n"))
    };
    commands.iter().map(line).collect()
}

/// The lines of the site file `text`, which is called `place`: comments and submit commands.
pub(super) fn site(place: &str, text: &str) -> Result<String> {
    let mut lines = String::new();
    for (number, line) in text.lines().enumerate() {
        let place = format!("{place}, line {}", number + 1);
        let line = line.trim_end();
        if !line.is_empty() && !line.trim_start().starts_with('#') {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            check_command(&place, name.trim(), value.trim())?;
            ensure!(!line.ends_with('\\'), "{place}: a command must stand on one line");
        }
        lines += line;
        lines.push('\n');
    }
    Ok(lines)
}

fn check_command(place: &str, name: &str, value: &str) -> Result<()> {
    let bare = name.strip_prefix('+').unwrap_or(name);
    let bare = bare.strip_prefix("MY.").or(bare.strip_prefix("my.")).unwrap_or(bare);
    let first = name.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    ensure!(
        !RESERVED.contains(&first.as_str()),
        hinted(
            format!("{place}: `{first}` is decided by poolcast"),
            "name resources and policies only, such as `request_memory: 4GB`"
        )
    );
    ensure!(
        bare.starts_with(|c: char| c.is_ascii_alphabetic())
            && bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        hinted(format!("{place}: `{name}` is no submit command"), "write `NAME = VALUE`, as in `request_disk = 4GB`")
    );
    ensure!(
        !value.is_empty() && !value.contains(['\n', '\r']),
        hinted(format!("{place}: `{name}` needs a value on one line"), "write `NAME = VALUE`")
    );
    let without_unit = BYTES.contains(&first.as_str()) && value.trim().parse::<f64>().is_ok();
    ensure!(
        !without_unit,
        hinted(format!("{place}: `{name}` has no unit"), format!("say what is meant, such as `{value}GB`"))
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_programs_would_read_otherwise_is_refused() {
        for text in ["", "a b", "a,b", "$(x)", "a\"b", "a\nb", "a'b", "a\\b", "a;b", "ä", "a#b", "-o"] {
            assert!(check_plain("the log", text).is_err(), "{text}");
        }
        assert!(check_plain("the log", "/home/me/logs-1/EventLog.2+a=b~").is_ok());
        for name in ["", "a.b", "a+b", "a b", "tensors/x"] {
            assert!(check_node(name).is_err(), "{name}");
        }
        assert!(check_node("tensors-j20-m20_t60").is_ok());
    }

    #[test]
    fn submit_commands_are_checked_by_name_and_value() {
        let refusal = |name: &str, value: &str| {
            let commands = [(name.to_owned(), Command::Text(value.to_owned()))].into();
            crate::error::render(&lines("`dag.submit.train`", &commands).expect_err("refused"))
        };
        insta::assert_snapshot!(
            [
                refusal("Universe", "vanilla"),
                refusal("queue 5", ""),
                refusal("request_memory", "4"),
                refusal("request_cpus", "1\nqueue 100"),
                refusal("a-b", "1"),
            ]
            .concat(), @"
        error: `dag.submit.train`: `universe` is decided by poolcast

        hint: name resources and policies only, such as `request_memory: 4GB`
        error: `dag.submit.train`: `queue` is decided by poolcast

        hint: name resources and policies only, such as `request_memory: 4GB`
        error: `dag.submit.train`: `request_memory` has no unit

        hint: say what is meant, such as `4GB`
        error: `dag.submit.train`: `request_cpus` needs a value on one line

        hint: write `NAME = VALUE`
        error: `dag.submit.train`: `a-b` is no submit command

        hint: write `NAME = VALUE`, as in `request_disk = 4GB`
        ");
        let commands = [
            ("+ProjectName".to_owned(), Command::Text("\"x\"".to_owned())),
            ("request_gpus".to_owned(), Command::Whole(1)),
        ];
        assert_eq!(
            lines("there", &commands.into()).expect("taken"),
            "+ProjectName            = \"x\"\nrequest_gpus            = 1\n"
        );
    }

    #[test]
    fn a_site_file_holds_comments_and_commands() {
        let text = "# OSPool\n\n+JobDurationCategory = \"Medium\"\nrequirements = (Microarch >= \"x86_64-v2\")\n";
        assert_eq!(site("`s`", text).expect("taken"), text);
        for text in ["queue", "queue 3", "executable = /bin/sh", "if true", "include : other", "a = \\\n  b"] {
            assert!(site("`s`", text).is_err(), "{text}");
        }
    }
}
