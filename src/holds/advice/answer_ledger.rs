//! Answers that were given ⇄ a file beside the run, a line each: whose job it is and why it is held
//! stands nowhere in it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::action::{AnswerFirmness, HoldAction};
use super::job_advice::JobAdvice;
use poolcast_base::error::hinted;
use poolcast_base::files;

/// Its name in a directory.
const LEDGER_FILE: &str = "answers.jsonl";

/// The version of its lines.
const LEDGER_VERSION: u32 = 1;

/// A longer line is none of ours.
const MOST_LINE_BYTES: u64 = 1 << 16;

/// An answer that was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenAnswer {
    version: u32,
    /// The access point.
    pub ap: String,
    /// The job's cluster.
    pub cluster: i32,
    /// The job's proc.
    pub proc: i32,
    /// When it was submitted, epoch ms.
    pub submitted_ms: i64,
    /// When it was held, epoch ms.
    pub held_ms: i64,
    /// What was said.
    pub action: HoldAction,
    /// How firmly.
    pub firmness: Option<AnswerFirmness>,
    /// The probability of success.
    pub probability: Option<f64>,
    /// The moment that it was asked about, epoch ms.
    pub asked_ms: i64,
}

/// One hold of one job.
pub(super) type HoldOfJob = (String, i32, i32, i64, i64);

impl GivenAnswer {
    fn of_advice(advice: &JobAdvice, asked_ms: i64) -> GivenAnswer {
        GivenAnswer {
            version: LEDGER_VERSION,
            ap: advice.ap.clone(),
            cluster: advice.cluster,
            proc: advice.proc,
            submitted_ms: advice.submitted_ms,
            held_ms: advice.held_since_ms,
            action: advice.action,
            firmness: advice.firmness,
            probability: advice.probability,
            asked_ms,
        }
    }

    pub(super) fn hold(&self) -> HoldOfJob {
        (
            self.ap.clone(),
            self.cluster,
            self.proc,
            self.submitted_ms,
            self.held_ms,
        )
    }

    fn is_same_answer(&self, other: &GivenAnswer) -> bool {
        (self.action, self.firmness) == (other.action, other.firmness)
    }
}

/// The answers in the directory of a run; lines may be unfinished, and do not count.
///
/// # Errors
/// Fails where the file cannot be read, or has lines of another version.
pub fn read_answers(dir: &Path) -> Result<Vec<GivenAnswer>> {
    let path = dir.join(LEDGER_FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut file = BufReader::new(files::open_regular(&path, u64::MAX)?);
    let (mut answers, mut line) = (Vec::new(), Vec::new());
    while file
        .by_ref()
        .take(MOST_LINE_BYTES)
        .read_until(b'\n', &mut line)?
        > 0
    {
        // What a killed call has left is no line of ours.
        if line.ends_with(b"}\n") {
            answers.push(read_line(&path, &line)?);
        }
        line.clear();
    }
    Ok(answers)
}

fn read_line(path: &Path, line: &[u8]) -> Result<GivenAnswer> {
    let anew = "move it away, and the next answers begin another";
    let answer: serde_json::Value = serde_json::from_slice(line)
        .with_context(|| hinted(format!("`{}` has a damaged line", path.display()), anew))?;
    ensure!(
        answer["version"] == LEDGER_VERSION,
        hinted(
            format!(
                "`{}` is of version {}, and this build reads {LEDGER_VERSION}",
                path.display(),
                answer["version"]
            ),
            anew
        )
    );
    serde_json::from_value(answer)
        .with_context(|| hinted(format!("`{}` has a damaged line", path.display()), anew))
}

/// Adds `advice`, asked about at `asked_ms`, to the answers in the directory of a run. An answer that
/// was the last one to this hold is not added again. Returns the file.
///
/// # Errors
/// Fails where it cannot be read or written.
pub fn record_answers(dir: &Path, advice: &[&JobAdvice], asked_ms: i64) -> Result<PathBuf> {
    let mut last: HashMap<HoldOfJob, GivenAnswer> = HashMap::new();
    for answer in read_answers(dir)? {
        last.insert(answer.hold(), answer);
    }

    let mut lines = Vec::new();
    for one in advice {
        let answer = GivenAnswer::of_advice(one, asked_ms);
        let before = last.get(&answer.hold());
        if before.is_none_or(|before| !before.is_same_answer(&answer)) {
            serde_json::to_writer(&mut lines, &answer)?;
            lines.push(b'\n');
        }
    }

    let path = dir.join(LEDGER_FILE);
    if !lines.is_empty() {
        let mut file = files::open_to_append(&path)?;
        // What a killed call has left ends here.
        if !ends_with_line_feed(&path)? {
            lines.insert(0, b'\n');
        }
        // One write, so that lines of several calls do not mix.
        file.write_all(&lines)?;
    }
    Ok(path)
}

fn ends_with_line_feed(path: &Path) -> Result<bool> {
    use std::io::{Seek as _, SeekFrom};
    let mut file = files::open_regular(path, u64::MAX)?;
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
