//! Runs the nodes of a DAG one by one on this machine. It imitates DAGMan and HTCondor where
//! `pipeline.dag` and its submit files use them. `ci/proof/end-to-end` runs the nodes on a pool.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::place::{Outcome, Place};

type Words = BTreeMap<String, String>;

#[derive(Default)]
struct Node {
    name: String,
    submit_file: String,
    macros: Words,
    is_noop: bool,
    /// Command of the PRE script.
    before: Option<Vec<String>>,
    /// Command of the POST script.
    after: Option<Vec<String>>,
}

/// Runs the DAG in `dir`, and returns the exit code of its FINAL node. In the file, each node
/// follows the nodes that it depends on.
pub(crate) fn run(place: &Place, dir: &str) -> i32 {
    run_and_list(place, dir).0
}

/// Like [`run`], but also returns the files that the last job of each node received.
pub(crate) fn run_and_list(place: &Place, dir: &str) -> (i32, BTreeMap<String, Vec<String>>) {
    let dir = place.path(dir);
    let text = fs_err::read_to_string(dir.join("pipeline.dag")).expect("read");
    let (mut failed, mut given) = (0, BTreeMap::new());
    for node in nodes(&text) {
        if !node.run(place, &dir, &mut given) {
            failed += 1;
        }
    }
    let report = text
        .lines()
        .find_map(|line| line.strip_prefix("SCRIPT POST report "))
        .expect("a report");
    let status = if failed == 0 { "0" } else { "2" };
    let report = report
        .replace("$DAG_STATUS", status)
        .replace("$FAILED_COUNT", &failed.to_string());
    (
        script(
            &dir,
            &report.split(' ').map(str::to_owned).collect::<Vec<_>>(),
        ),
        given,
    )
}

fn nodes(text: &str) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for line in text.lines() {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["JOB", name, submit_file, ..] => nodes.push(Node {
                name: name.to_owned(),
                submit_file: submit_file.to_owned(),
                is_noop: words.last().is_some_and(|word| word == "NOOP"),
                ..Node::default()
            }),
            ["VARS", ..] => nodes.last_mut().expect("a node").macros = macros(line),
            ["SCRIPT", _, "report", ..] => {}
            ["SCRIPT", "PRE", ..] => {
                nodes.last_mut().expect("a node").before = Some(words[3..].to_vec())
            }
            ["SCRIPT", "POST", ..] => {
                nodes.last_mut().expect("a node").after = Some(words[3..].to_vec())
            }
            _ => {}
        }
    }
    nodes
}

fn macros(line: &str) -> Words {
    let quoted: Vec<&str> = line.split('"').collect();
    let name = |before: &str| {
        before
            .rsplit(' ')
            .next()
            .expect("a name")
            .trim_end_matches('=')
            .to_lowercase()
    };
    quoted
        .chunks_exact(2)
        .map(|pair| (name(pair[0]), pair[1].to_owned()))
        .collect()
}

fn script(dir: &Path, words: &[String]) -> i32 {
    // DAGMan passes little more than this environment to scripts.
    let status = Command::new(&words[0])
        .args(&words[1..])
        .current_dir(dir)
        .env_clear()
        .env("HOME", dir.parent().expect("a place"))
        .env("PATH", "/usr/bin:/bin")
        .status()
        .expect("it starts");
    status.code().expect("a code")
}

impl Node {
    /// Runs the node with its scripts and retries. Returns true if the node succeeds as DAGMan sees
    /// it.
    fn run(&self, place: &Place, dir: &Path, given: &mut BTreeMap<String, Vec<String>>) -> bool {
        for retry in 0..=2 {
            match self
                .before
                .as_deref()
                .map_or(0, |before| script(dir, before))
            {
                0 => {}
                10 => return true,
                _ => continue,
            }
            let code = if self.is_noop {
                0
            } else {
                self.job(place, dir, given)
            };
            let decided = self.after.as_ref().map_or(code, |after| {
                let value = |word: &String| match word.as_str() {
                    "$JOB" => self.name.clone(),
                    "$RETURN" => code.to_string(),
                    "$RETRY" => retry.to_string(),
                    "$MAX_RETRIES" => "2".to_owned(),
                    _ => word.clone(),
                };
                script(dir, &after.iter().map(value).collect::<Vec<_>>())
            });
            match decided {
                0 => return true,
                2 => return false,
                _ => {}
            }
        }
        false
    }

    /// Runs the job of the node in a directory that holds only the transferred files. Returns its
    /// exit code.
    fn job(&self, place: &Place, dir: &Path, given: &mut BTreeMap<String, Vec<String>>) -> i32 {
        let commands = self.commands(dir);
        let list = |name: &str| -> Vec<String> {
            commands
                .get(name)
                .into_iter()
                .flat_map(|all| all.split(','))
                .map(|one| one.trim().to_owned())
                .collect()
        };
        let sandbox = tempfile::tempdir().expect("a directory");
        for input in list("transfer_input_files") {
            // HTCondor puts an input with an absolute path or an address at the top of the
            // directory.
            let path = input.strip_prefix("file://").unwrap_or(&input);
            let name = if path.starts_with('/') {
                path.rsplit('/').next().expect("a name")
            } else {
                path
            };
            copy(&dir.join(path), &sandbox.path().join(name));
        }
        given.insert(
            self.name.clone(),
            crate::place::files(sandbox.path()).into_keys().collect(),
        );
        let outcome = loop {
            let mut command = place.command(commands["arguments"].trim_matches('"'));
            let outcome = Outcome::of(
                command
                    .current_dir(sandbox.path())
                    .output()
                    .expect("it starts"),
            );
            if outcome.code
                != commands
                    .get("checkpoint_exit_code")
                    .map(|code| code.parse().expect("a code"))
            {
                break outcome;
            }
        };
        fs_err::write(dir.join(&commands["error"]), &outcome.stderr).expect("written");
        if outcome.code == Some(0) || commands["when_to_transfer_output"] == "ON_EXIT_OR_EVICT" {
            list("transfer_output_files")
                .iter()
                .for_each(|name| copy(&sandbox.path().join(name), &dir.join(name)));
        }
        outcome.code.expect("it was not killed")
    }

    /// Returns the submit commands of the job, with all macros replaced.
    fn commands(&self, dir: &Path) -> Words {
        let text = fs_err::read_to_string(dir.join(&self.submit_file)).expect("read");
        let mut commands = self.macros.clone();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for (name, value) in lines.filter_map(|line| line.split_once('=')) {
            commands.insert(name.trim().to_lowercase(), value.trim().to_owned());
        }
        commands
            .iter()
            .map(|(name, value)| (name.clone(), expanded(value, &commands)))
            .collect()
    }
}

/// Replaces the macros in `text`, which are `$(name)` or `$(name:default)`.
fn expanded(text: &str, commands: &Words) -> String {
    let Some((before, rest)) = text.split_once("$(") else {
        return text.to_owned();
    };
    let (name, after) = rest.split_once(')').expect("a macro ends");
    let (name, default) = name.split_once(':').unwrap_or((name, ""));
    let value = commands
        .get(&name.to_lowercase())
        .map_or(default, String::as_str);
    format!(
        "{before}{}{}",
        expanded(value, commands),
        expanded(after, commands)
    )
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs_err::create_dir_all(to.parent().expect("a parent")).expect("made");
        fs_err::copy(from, to).expect("copied");
        return;
    }
    fs_err::create_dir_all(to).expect("made");
    for entry in fs_err::read_dir(from)
        .expect("listed")
        .map(|entry| entry.expect("an entry"))
    {
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}
