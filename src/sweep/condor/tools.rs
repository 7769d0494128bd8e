//! Runs HTCondor's own programs, and reads their output.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

use super::dagman_node::DagmanNode;
use super::layout::DAG_FILE;
use poolcast_base::error::hinted;
use poolcast_base::program::command_without_keys;

/// Maximum size of the error messages of a program that are kept, in bytes.
const MAX_ERROR_BYTES: u64 = 64 << 10;

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
    let mut constraint = "JobStatus==5".to_owned();
    if let Some(node) = node {
        constraint = format!("{constraint} && {}", node.constraint());
    }
    let mut condor_q = command_without_keys("condor_q")
        .args(["-allusers", "-constraint", &constraint, "-json"])
        .args(["-attributes", attributes])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(hinted(
            "cannot run `condor_q`",
            "run this on an access point; elsewhere, pass its output with `--queue FILE`",
        ))?;

    let errors = condor_q.stderr.take().map(|errors| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // The exit status shows whether `condor_q` failed.
            let _ = errors.take(MAX_ERROR_BYTES).read_to_end(&mut text);
            text
        })
    });
    let found = match condor_q.stdout.take() {
        Some(output) => {
            let mut output = BufReader::new(output);
            let found = read(&mut output);
            // A program whose output is not read to its end may report that as its own error.
            std::io::copy(&mut output, &mut std::io::sink())?;
            found
        }
        None => read(&mut std::io::empty()),
    };
    let status = condor_q.wait()?;
    let errors = errors.and_then(|errors| errors.join().ok());
    ensure!(
        status.success(),
        hinted(
            format!(
                "condor_q failed: {}",
                String::from_utf8_lossy(&errors.unwrap_or_default()).trim()
            ),
            "`condor_q -allusers` shows whether the queue answers"
        )
    );
    found
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
