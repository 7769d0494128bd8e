//! Runs HTCondor's own programs, and reads their output.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::dagman_node::DagmanNode;
use super::layout::DAG_FILE;
use poolcast_base::error::hinted;
use poolcast_base::program::command_without_keys;

/// Maximum size of the error messages of a program that are kept, in bytes.
const MAX_ERROR_BYTES: u64 = 64 << 10;

/// A constraint on held jobs.
const HELD: &str = "JobStatus==5";

/// A constraint on idle and running jobs.
const UNHELD: &str = "JobStatus==1 || JobStatus==2";

/// A constraint on slots that are no parts of others.
const WHOLE_SLOTS: &str = "SlotType =!= \"Dynamic\"";

/// Time within which `condor_qedit` must have begun to answer.
const EDITS_WITHIN: Duration = Duration::from_secs(20);

/// Time within which `condor_config_val` must end. It reads files, which may be on a dead mount.
const SETTINGS_WITHIN: Duration = Duration::from_secs(10);

/// Maximum number of a user's jobs that are taken from the history.
const MAX_HISTORY_JOBS: &str = "10000";

/// Maximum number of jobs of the history that are examined for them.
const MAX_HISTORY_ADS: &str = "1000000";

/// Submits the DAG in `dir` as the batch `name`. A DAG that was removed or has failed continues
/// from its rescue file. Returns the output of `condor_submit_dag`.
///
/// # Errors
/// Fails if HTCondor's programs are missing or report an error.
pub fn submit_dag(dir: &Path, name: &str) -> Result<String> {
    let output = command_without_keys("condor_submit_dag")
        .args(["-batch-name", name, DAG_FILE])
        .current_dir(dir)
        .output();
    let output = output.context(hinted(
        "cannot run `condor_submit_dag`",
        format!(
            "run on an access point: cd {} && condor_submit_dag {DAG_FILE}",
            dir.display()
        ),
    ))?;
    let trimmed_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    ensure!(
        output.status.success(),
        hinted(
            format!(
                "condor_submit_dag failed: {}",
                [trimmed_text(&output.stderr), trimmed_text(&output.stdout)].join(" ")
            ),
            "`condor_q` shows whether the DAG is in the queue; to run a finished DAG again, write it to another directory"
        )
    );
    Ok(trimmed_text(&output.stdout))
}

/// Runs `condor_q -json` with the `attributes` of all held jobs, or of the held jobs of one node,
/// and lets `read` consume its output.
///
/// # Errors
/// Fails if the program is missing or reports an error, or if `read` fails.
pub fn read_held_jobs<T>(
    attributes: &str,
    node: Option<&DagmanNode>,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<T> {
    let mut constraint = HELD.to_owned();
    if let Some(node) = node {
        constraint = format!("{constraint} && {}", node.constraint());
    }
    read_jobs(&constraint, attributes, read)
}

/// Like [`read_held_jobs`], for all idle and running jobs.
///
/// # Errors
/// Fails if the program is missing or reports an error, or if `read` fails.
pub fn read_unheld_jobs<T>(
    attributes: &str,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<T> {
    read_jobs(UNHELD, attributes, read)
}

fn read_jobs<T>(
    constraint: &str,
    attributes: &str,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<T> {
    let condor_q = job_query(true, constraint, attributes);
    let output = RunningQuery::begin(condor_q).context(hinted(
        "cannot run `condor_q`",
        "run this on an access point; elsewhere, pass its output with `--queue FILE`",
    ))?;
    output.read(read)
}

/// Returns the call of `condor_q` that prints the `attributes` of the jobs for which `constraint` is
/// true, of this user or of all users.
fn job_query(is_of_all_users: bool, constraint: &str, attributes: &str) -> Command {
    let mut condor_q = command_without_keys("condor_q");
    condor_q.args(is_of_all_users.then_some("-allusers"));
    condor_q
        .args(["-constraint", constraint, "-json"])
        .args(["-attributes", attributes]);
    condor_q
}

/// Like [`read_held_jobs`], for the held jobs of this user, or of all users. Returns `None` if the
/// program is missing, or if it prints nothing within `limit`.
///
/// # Errors
/// Fails if the program reports an error, or if `read` fails.
pub fn ask_held_jobs<T>(
    attributes: &str,
    is_of_all_users: bool,
    limit: Duration,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<Option<T>> {
    let condor_q = job_query(is_of_all_users, HELD, attributes);
    let Ok(output) = RunningQuery::begin(condor_q) else {
        return Ok(None);
    };
    output.read_within(limit, read)
}

/// Like [`ask_held_jobs`], for the idle and running jobs.
///
/// # Errors
/// Fails if the program reports an error, or if `read` fails.
pub fn ask_unheld_jobs<T>(
    attributes: &str,
    is_of_all_users: bool,
    limit: Duration,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<Option<T>> {
    let condor_q = job_query(is_of_all_users, UNHELD, attributes);
    let Ok(output) = RunningQuery::begin(condor_q) else {
        return Ok(None);
    };
    output.read_within(limit, read)
}

/// Runs `condor_q -json` with the `attributes` of the jobs of this user, and lets `read` consume its
/// output.
///
/// # Errors
/// Fails if the program is missing or reports an error, or if `read` fails.
pub fn read_own_jobs<T>(
    attributes: &str,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<T> {
    let mut condor_q = command_without_keys("condor_q");
    condor_q.args(["-json", "-attributes", attributes]);
    RunningQuery::begin(condor_q)
        .context("cannot run `condor_q`")?
        .read(read)
}

/// Like [`read_own_jobs`], for the jobs of `user` that have left the queue, the latest first.
///
/// # Errors
/// Fails if the program is missing or reports an error, or if `read` fails.
pub fn read_own_history<T>(
    user: &str,
    attributes: &str,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<T> {
    let mut condor_history = command_without_keys("condor_history");
    condor_history
        .args([
            user,
            "-limit",
            MAX_HISTORY_JOBS,
            "-scanlimit",
            MAX_HISTORY_ADS,
        ])
        .args(["-json", "-attributes", attributes]);
    RunningQuery::begin(condor_history)
        .context("cannot run `condor_history`")?
        .read(read)
}

/// The ads of HTCondor's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryAds {
    /// One ad for each job that has left the queue.
    Jobs,
    /// One ad for each run of a job.
    Runs,
}

/// Runs `condor_history -json` with the `attributes` of the latest jobs or runs of all users, and lets
/// `read` consume its output.
///
/// # Errors
/// Fails if the program is missing or reports an error, or if `read` fails.
pub fn read_history<T>(
    ads: HistoryAds,
    attributes: &str,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<T> {
    let mut condor_history = command_without_keys("condor_history");
    condor_history.args((ads == HistoryAds::Runs).then_some("-epochs"));
    condor_history.args([
        "-scanlimit",
        MAX_HISTORY_ADS,
        "-json",
        "-attributes",
        attributes,
    ]);
    RunningQuery::begin(condor_history)
        .context(hinted(
            "cannot run `condor_history`",
            "run this on an access point; elsewhere, pass its output with `--history FILE`",
        ))?
        .read(read)
}

/// Asks the history for the `attributes` of the job that ended last, of any user. Returns `None` if
/// the program is missing, or if it prints nothing within `limit`.
///
/// # Errors
/// Fails if the program reports an error, or if `read` fails.
pub fn ask_latest_history<T>(
    attributes: &str,
    limit: Duration,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<Option<T>> {
    let mut condor_history = command_without_keys("condor_history");
    condor_history.args(["-limit", "1", "-json", "-attributes", attributes]);
    let Ok(output) = RunningQuery::begin(condor_history) else {
        return Ok(None);
    };
    output.read_within(limit, read)
}

/// Returns the value of `name` in HTCondor's configuration; `None` if it is not defined.
///
/// # Errors
/// Fails if `condor_config_val` cannot be run, if it finds no configuration, or if it does not end
/// within 10 s.
pub fn configured_value(name: &str) -> Result<Option<String>> {
    let output = ask_settings(&[name])?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    let is_undefined = |text: &str| text.starts_with("Not defined");
    if is_undefined(&errors) || is_undefined(&text) {
        return Ok(None);
    }
    ensure!(
        output.status.success(),
        "condor_config_val failed: {}",
        errors.trim()
    );
    let value = text.trim();
    Ok((!value.is_empty()).then(|| value.to_owned()))
}

/// Asks `condor_config_val` for the values of `names`, one per line.
fn ask_settings(names: &[&str]) -> Result<Output> {
    let mut condor_config_val = command_without_keys("condor_config_val");
    condor_config_val.args(names);
    RunningQuery::begin(condor_config_val)
        .context("cannot run `condor_config_val`")?
        .output_within(SETTINGS_WITHIN)
}

/// Prints the values of `attributes` of all held jobs, one job per line, and lets `read` consume
/// them.
///
/// # Errors
/// Fails if the program is missing or reports an error, or if `read` fails.
pub fn read_held_values<T>(
    attributes: &[&str],
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<T> {
    let mut condor_q = command_without_keys("condor_q");
    condor_q.args(["-allusers", "-constraint", HELD, "-af"]);
    condor_q.args(attributes);
    RunningQuery::begin(condor_q)
        .context("cannot run `condor_q`")?
        .read(read)
}

/// Sets attributes of the jobs that `constraint` names: `values` are pairs of an attribute and an
/// expression.
///
/// # Errors
/// Fails if the program is missing or reports an error, or if it prints nothing for 20 s.
pub fn edit_jobs(constraint: &str, values: &[(&str, &str)]) -> Result<()> {
    let mut condor_qedit = command_without_keys("condor_qedit");
    condor_qedit.args(["-constraint", constraint]);
    for (attribute, value) in values {
        condor_qedit.args([attribute, value]);
    }
    let query = RunningQuery::begin(condor_qedit).context("cannot run `condor_qedit`")?;
    let edited = query.read_within(EDITS_WITHIN, |output| {
        std::io::copy(output, &mut std::io::sink())?;
        Ok(())
    })?;
    edited.context("condor_qedit does not answer")
}

/// A program that was asked, and that may still print its answer.
struct RunningQuery {
    program: String,
    child: Child,
    /// Collects the error messages.
    errors: Option<JoinHandle<Vec<u8>>>,
}

impl RunningQuery {
    fn begin(mut command: Command) -> std::io::Result<RunningQuery> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let errors = child.stderr.take().map(|errors| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                // The exit status shows whether the program failed.
                let _ = errors.take(MAX_ERROR_BYTES).read_to_end(&mut text);
                text
            })
        });
        Ok(RunningQuery {
            program: command.get_program().to_string_lossy().into_owned(),
            child,
            errors,
        })
    }

    fn read<T>(mut self, read: impl FnOnce(&mut dyn BufRead) -> Result<T>) -> Result<T> {
        let Some(output) = self.child.stdout.take() else {
            return self.finish(read(&mut std::io::empty()));
        };
        self.consume(BufReader::new(output), read)
    }

    /// Like [`RunningQuery::read`]; ends the program and returns `None` if it prints nothing within
    /// `limit`.
    fn read_within<T>(
        mut self,
        limit: Duration,
        read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(output) = self.child.stdout.take() else {
            return self.finish(read(&mut std::io::empty())).map(Some);
        };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            // The reader reports a failure again.
            let _ = output.fill_buf();
            let _ = sender.send(output);
        });
        match receiver.recv_timeout(limit) {
            Ok(output) => self.consume(output, read).map(Some),
            Err(_) => {
                self.child.kill()?;
                self.child.wait()?;
                Ok(None)
            }
        }
    }

    /// Returns the whole output. Ends the program and fails if it takes longer than `limit`.
    fn output_within(mut self, limit: Duration) -> Result<Output> {
        let output = self.child.stdout.take();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // The exit status shows whether the program failed.
            let _ = output.map(|mut output| output.read_to_end(&mut text));
            let _ = sender.send(text);
        });
        let Ok(stdout) = receiver.recv_timeout(limit) else {
            self.child.kill()?;
            self.child.wait()?;
            bail!(
                "{} has not ended within {} s",
                self.program,
                limit.as_secs()
            );
        };
        let errors = self.errors.and_then(|errors| errors.join().ok());
        Ok(Output {
            status: self.child.wait()?,
            stdout,
            stderr: errors.unwrap_or_default(),
        })
    }

    fn consume<T>(
        self,
        mut output: BufReader<ChildStdout>,
        read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
    ) -> Result<T> {
        let found = read(&mut output);
        // A program whose output is not read to its end may report that as its own error.
        std::io::copy(&mut output, &mut std::io::sink())?;
        self.finish(found)
    }

    /// Waits for the program to end; returns `found` if it reports no error.
    fn finish<T>(mut self, found: Result<T>) -> Result<T> {
        let status = self.child.wait()?;
        let errors = self.errors.and_then(|errors| errors.join().ok());
        ensure!(
            status.success(),
            hinted(
                format!(
                    "{} failed: {}",
                    self.program,
                    String::from_utf8_lossy(&errors.unwrap_or_default()).trim()
                ),
                hint_after(&self.program)
            )
        );
        found
    }
}

/// Returns what to try after an error of `program`.
fn hint_after(program: &str) -> &'static str {
    match program {
        // HTCondor 25.14 takes users without a record for anonymous ones, also those in the list.
        "condor_qedit" => {
            "jobs of others are for the users in QUEUE_SUPER_USERS, each with a record: `condor_qusers -add NAME`, as root"
        }
        _ => "`condor_q -allusers` shows whether the queue answers",
    }
}

/// Returns the users who may act on the jobs of others; `None` if that is unknown, or if everyone
/// may.
pub fn queue_super_users() -> Option<Vec<String>> {
    let output = ask_settings(&["QUEUE_SUPER_USERS", "QUEUE_ALL_USERS_TRUSTED"]).ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| super_users(&text))?
}

/// Parses the values of `QUEUE_SUPER_USERS` and `QUEUE_ALL_USERS_TRUSTED`, one per line. Returns
/// `None` for names that stand for several users.
fn super_users(text: &str) -> Option<Vec<String>> {
    let mut lines = text.lines();
    let (names, trusts_all) = (lines.next()?, lines.next()?);
    let is_trusted = !trusts_all.trim().eq_ignore_ascii_case("false");
    if is_trusted || names.contains(['%', '*', '$']) {
        return None;
    }
    let names = names.split([',', ' ']).filter(|name| !name.is_empty());
    let without_domain = |name: &str| name.split('@').next().unwrap_or(name).to_owned();
    Some(names.map(without_domain).collect())
}

/// Returns true if `condor_q` asks the queue of another machine.
pub fn queue_is_elsewhere() -> bool {
    configured_value("SCHEDD_HOST").is_ok_and(|host| host.is_some())
}

/// Returns the names of the access point that HTCondor's programs ask by default;
/// none if HTCondor has no configuration here.
pub fn default_schedd_names() -> Vec<String> {
    let value = |name| configured_value(name).ok().flatten();
    if let Some(elsewhere) = value("SCHEDD_HOST") {
        return vec![elsewhere];
    }
    let Some(host) = value("FULL_HOSTNAME") else {
        return Vec::new();
    };
    let schedd = value("SCHEDD_NAME").map(|name| match name.split_once('@') {
        Some((_, of_host)) if !of_host.is_empty() => name,
        _ => format!("{}@{host}", name.trim_end_matches('@')),
    });
    std::iter::once(host).chain(schedd).collect()
}

/// Prints the values of `expressions` for all slots of the pool that are no parts of others, one slot per
/// line, and lets `read` consume them. Returns `None` if the program is missing, or if it prints nothing
/// within `limit`.
///
/// # Errors
/// Fails if the program reports an error, or if `read` fails.
pub fn ask_slots<T>(
    expressions: &[&str],
    limit: Duration,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T>,
) -> Result<Option<T>> {
    let mut condor_status = command_without_keys("condor_status");
    condor_status.args(["-constraint", WHOLE_SLOTS, "-af"]);
    condor_status.args(expressions);
    let Ok(output) = RunningQuery::begin(condor_status) else {
        return Ok(None);
    };
    output.read_within(limit, read)
}

/// Returns true if a slot of the pool can run SIF images now; `None` if the pool cannot be queried.
pub fn pool_runs_images() -> Option<bool> {
    let question = ["-constraint", "HasSIF", "-limit", "1", "-af", "Name"];
    let output = command_without_keys("condor_status")
        .args(question)
        .output()
        .ok()?;
    output.status.success().then_some(!output.stdout.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn super_users_are_named_one_by_one() {
        let found = super_users("root, condor@pool,ada\nfalse\n").expect("names");
        assert_eq!(found, ["root", "condor", "ada"]);
        assert_eq!(super_users("root, condor\ntrue\n"), None);
        assert_eq!(super_users("root, %admins\nFALSE\n"), None);
        assert_eq!(super_users("root\n"), None);
    }

    #[test]
    fn program_that_does_not_end_is_given_up() {
        let run = |script: &str, limit| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]);
            let query = RunningQuery::begin(shell).expect("it starts");
            query.output_within(limit)
        };
        assert!(run("echo a; exec sleep 60", Duration::from_millis(200)).is_err());
        let ended = run("echo a; echo b >&2; exit 1", Duration::from_secs(3600));
        let ended = ended.expect("it has ended");
        assert_eq!((&*ended.stdout, &*ended.stderr), (&b"a\n"[..], &b"b\n"[..]));
        assert_eq!(ended.status.code(), Some(1));
    }
}
