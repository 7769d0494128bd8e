//! Checks words of a user for DAGs and submit files. Words with a special meaning for HTCondor are
//! rejected with a reason.

use anyhow::{Result, ensure};

use crate::config::{SubmitCommand, SubmitCommands};
use poolcast_base::error::hinted;

/// Reserved names: submit commands in the templates of `condor/`, macros that the DAG sets, and the
/// job attributes that result from both. Jobs with other values would not work. The names have no
/// underscores, like the results of [`bare_command_name`].
const RESERVED_COMMANDS: [&str; 60] = [
    "args",
    "arguments",
    "checkpointexitcode",
    "cmd",
    "config",
    "containerimage",
    "dagmanjobid",
    "dagmannodeslog",
    "dagnodename",
    "dockerimage",
    "env",
    "environment",
    "err",
    "error",
    "executable",
    "getenv",
    "image",
    "in",
    "include",
    "initialdir",
    "input",
    "inputs",
    "iwd",
    "job",
    "jobuniverse",
    "log",
    "logs",
    "maxretries",
    "names",
    "onexithold",
    "onexitremove",
    "options",
    "out",
    "output",
    "part",
    "preserverelativepaths",
    "queue",
    "retryuntil",
    "shouldtransferfiles",
    "singularityimage",
    "source",
    "successcheckpointexitcode",
    "successexitcode",
    "tensors",
    "transfercheckpoint",
    "transfercheckpointfiles",
    "transferexecutable",
    "transferin",
    "transferinput",
    "transferinputfiles",
    "transferout",
    "transferoutput",
    "transferoutputfiles",
    "transferoutputremaps",
    "trials",
    "universe",
    "userlog",
    "wantcontainer",
    "wantdocker",
    "whentotransferoutput",
];

/// Commands with a size in bytes. Without a unit, some of them count megabytes and others
/// kilobytes.
const BYTES: [&str; 4] = [
    "request_memory",
    "retry_request_memory",
    "request_disk",
    "gpus_minimum_memory",
];

/// Number by which the memory of a retry exceeds the request, as in the templates.
const RETRY_FACTOR: f64 = 4.0;

/// Returns true if DAGMan, submit files and lists of files to transfer read `text` literally, and
/// no program reads it as an option.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-+=:@~".contains(c))
}

/// Rejects `text` if it is not plain. `what` names it in the message.
pub(super) fn check_plain(what: &str, text: &str) -> Result<()> {
    ensure!(
        is_plain(text),
        hinted(
            format!(
                "{what} `{text}` has a character with a special meaning in a DAG or a submit file"
            ),
            "use letters, digits and `/._-+=:@~`; for a file elsewhere, make a symbolic link with such a name"
        )
    );
    Ok(())
}

/// Rejects a name that no node of a DAG may have.
pub(super) fn check_node_name(name: &str) -> Result<()> {
    let is_name = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    ensure!(
        is_name && !name.is_empty(),
        hinted(
            format!("`{name}` is not a valid name of a DAG node"),
            "use letters, digits, `-` and `_`"
        )
    );
    Ok(())
}

/// The lines of `commands`. `place` names their source in messages.
pub(super) fn command_lines(place: &str, commands: &SubmitCommands) -> Result<String> {
    let line = |(name, value): (&String, &SubmitCommand)| {
        let value = value.to_string();
        check_command(place, name, &value)?;
        Ok(command_line(name, &value))
    };
    commands.iter().map(line).collect()
}

fn command_line(name: &str, value: &str) -> String {
    format!("{name:<23} = {value}\n")
}

/// The memory for a retry, if the `lines` of a site and of a configuration request memory, and none for a retry: a template
/// requests more for its own request, which these replace. Empty otherwise.
pub(super) fn retry_line(lines: &str) -> String {
    let mut requested = None;
    for (name, value) in lines.lines().filter_map(|line| line.split_once('=')) {
        match &*bare_command_name(name) {
            "requestmemory" => requested = Some(value),
            "retryrequestmemory" => return String::new(),
            _ => {}
        }
    }
    let retry = requested.map(|value| retry_memory(value).unwrap_or_default());
    retry.map_or(String::new(), |retry| {
        command_line("retry_request_memory", &retry)
    })
}

/// Returns the memory for the retry of a job that requests `requested`, a number with a unit. `None` for an expression:
/// the job then has no retry.
fn retry_memory(requested: &str) -> Option<String> {
    let requested = requested.trim();
    let digits = requested.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let number: f64 = digits.parse().ok()?;
    let retry = RETRY_FACTOR * number;
    let unit = requested[digits.len()..].trim();
    retry.is_finite().then(|| format!("{retry}{unit}"))
}

/// The lines of the site file `text`: comments and submit commands. `place` names the file in
/// messages.
pub(super) fn site_lines(place: &str, text: &str) -> Result<String> {
    let mut lines = String::new();
    for (number, line) in text.lines().enumerate() {
        let place = format!("{place}, line {}", number + 1);
        let line = line.trim_end();
        if !line.is_empty() && !line.trim_start().starts_with('#') {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            check_command(&place, name.trim(), value.trim())?;
            ensure!(
                !line.ends_with('\\'),
                "{place}: a command must be on one line"
            );
        }
        lines += line;
        lines.push('\n');
    }
    Ok(lines)
}

/// Normalizes a command's name like HTCondor does. `+Name` and `MY.Name` set the attribute `Name`
/// of the job, case is ignored, and most commands are known with and without underscores.
fn bare_command_name(name: &str) -> String {
    let joined: String = name.to_ascii_lowercase().split_ascii_whitespace().collect();
    let mut bare = &*joined;
    while let Some(rest) = bare.strip_prefix('+').or_else(|| bare.strip_prefix("my.")) {
        bare = rest;
    }
    bare.replace('_', "")
}

fn check_command(place: &str, name: &str, value: &str) -> Result<()> {
    let bare = name.strip_prefix('+').unwrap_or(name);
    let has_scope = bare
        .get(..3)
        .is_some_and(|scope| scope.eq_ignore_ascii_case("my."));
    let bare = if has_scope { &bare[3..] } else { bare };
    let first = name.split_ascii_whitespace().next().unwrap_or_default();
    let is_reserved = [name, first]
        .iter()
        .any(|name| RESERVED_COMMANDS.contains(&&*bare_command_name(name)));
    ensure!(
        !is_reserved,
        hinted(
            format!("{place}: `{name}` is set by poolcast"),
            "set only resources and policies, such as `request_memory: 4GB`"
        )
    );
    ensure!(
        bare.starts_with(|c: char| c.is_ascii_alphabetic())
            && bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        hinted(
            format!("{place}: `{name}` is not a submit command"),
            "write `NAME = VALUE`, as in `request_disk = 4GB`"
        )
    );
    ensure!(
        !value.is_empty() && !value.contains(['\n', '\r']),
        hinted(
            format!("{place}: `{name}` needs a value on one line"),
            "write `NAME = VALUE`"
        )
    );
    let counts_bytes = BYTES.contains(&&*bare.to_ascii_lowercase());
    ensure!(
        !counts_bytes || value.trim().parse::<f64>().is_err(),
        hinted(
            format!("{place}: `{name}` needs a unit"),
            format!("write for example `{value}GB`")
        )
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_rejected() {
        for text in [
            "", "a b", "a,b", "$(x)", "a\"b", "a\nb", "a'b", "a\\b", "a;b", "ä", "a#b", "-o",
        ] {
            assert!(check_plain("the log", text).is_err(), "{text}");
        }
        assert!(check_plain("the log", "/home/me/logs-1/EventLog.2+a=b~").is_ok());
        for name in ["", "a.b", "a+b", "a b", "tensors/x"] {
            assert!(check_node_name(name).is_err(), "{name}");
        }
        assert!(check_node_name("tensors-j20-m20_t60").is_ok());
    }

    #[test]
    fn requests_of_memory_have_a_larger_one_for_the_retry() {
        for (requested, retry) in [
            ("8GB", "32GB"),
            ("1.5 GB", "6GB"),
            ("512M", "2048M"),
            ("ifThenElse(x, 1, 2)", ""),
            ("1e309GB", ""),
        ] {
            let last = format!("retry_request_memory    = {retry}\n");
            assert_eq!(retry_line(&format!("Request_Memory = {requested}\n")), last);
        }
        let given = "request_memory = 8GB\nretry_request_memory = 9GB\n";
        assert_eq!(retry_line(given), "");
        assert_eq!(retry_line("request_gpus = 1\n"), "");

        // The configuration comes behind the site.
        let both = "# A site = with = signs\nrequest_memory = 8GB\n# Mine\nrequest_memory = 1GB\n";
        assert_eq!(retry_line(both), "retry_request_memory    = 4GB\n");
    }

    #[test]
    fn submit_commands_are_checked_by_name_and_value() {
        let refusal = |name: &str, value: &str| {
            let commands = [(name.to_owned(), SubmitCommand::Text(value.to_owned()))].into();
            poolcast_base::error::render(
                &command_lines("`dag.submit.train`", &commands).expect_err("refused"),
            )
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
        error: `dag.submit.train`: `Universe` is set by poolcast

        hint: set only resources and policies, such as `request_memory: 4GB`
        error: `dag.submit.train`: `queue 5` is set by poolcast

        hint: set only resources and policies, such as `request_memory: 4GB`
        error: `dag.submit.train`: `request_memory` needs a unit

        hint: write for example `4GB`
        error: `dag.submit.train`: `request_cpus` needs a value on one line

        hint: write `NAME = VALUE`
        error: `dag.submit.train`: `a-b` is not a submit command

        hint: write `NAME = VALUE`, as in `request_disk = 4GB`
        ");
        let commands = [
            (
                "+ProjectName".to_owned(),
                SubmitCommand::Text("\"x\"".to_owned()),
            ),
            ("request_gpus".to_owned(), SubmitCommand::Whole(1)),
        ];
        assert_eq!(
            command_lines("there", &commands.into()).expect("taken"),
            "+ProjectName            = \"x\"\nrequest_gpus            = 1\n"
        );
    }

    #[test]
    fn site_files_allow_only_comments_and_commands() {
        let text = "# OSPool\n\n+JobDurationCategory = \"Medium\"\nrequirements = (Microarch >= \"x86_64-v2\")\n";
        assert_eq!(site_lines("`s`", text).expect("taken"), text);
        for text in [
            "queue",
            "queue 3",
            "executable = /bin/sh",
            "if true",
            "include : other",
            "a = \\\n  b",
        ] {
            assert!(site_lines("`s`", text).is_err(), "{text}");
        }
    }

    #[test]
    fn reserved_commands_are_rejected_in_every_spelling() {
        let spellings = [
            "Environment",
            "+Environment",
            "+ environment",
            "MY.Environment",
            "My.ENVIRONMENT",
            "+MY.Environment",
            "MY . Env",
            "+TransferInput",
            "transfer_Input_Files",
            "TransferOutput",
            "+ContainerImage",
            "+SingularityImage",
            "my.Cmd",
            "+Iwd",
            "+DAGNodeName",
            "+JobUniverse",
            "environment @",
        ];
        for name in spellings {
            assert!(
                site_lines("`s`", &format!("{name} = \"x\"")).is_err(),
                "{name}"
            );
        }
        for name in [
            "+ProjectName",
            "MY.WantGPULab",
            "my.is_resumable",
            "requirements",
            "+environments",
        ] {
            assert!(
                site_lines("`s`", &format!("{name} = \"x\"")).is_ok(),
                "{name}"
            );
        }
    }
}
