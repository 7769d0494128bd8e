//! Stores the given answers in a file beside the run, one JSON line per answer. The file has
//! neither the owners of jobs nor their hold reasons.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::action::{AnswerFirmness, HoldAction};
use super::job_advice::JobAdvice;
use super::shared_text::SharedText;
use poolcast_base::error::hinted;
use poolcast_base::files;

/// Name of the ledger in the run's directory.
const LEDGER_FILE: &str = "answers.jsonl";

/// Version of the line format.
const LEDGER_VERSION: u32 = 1;

/// Answers that are written at once.
const ANSWERS_PER_WRITE: usize = 4096;

/// Maximum length of a line, in bytes. This program never writes a longer one.
const MAX_LINE_BYTES: u64 = 1 << 16;

/// One answer that was given on one hold, as stored in a line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenAnswer {
    version: u32,
    /// The job's access point.
    pub ap: String,
    /// The job's cluster.
    pub cluster: i32,
    /// The job's proc.
    pub proc: i32,
    /// Submission time of the job, epoch ms.
    pub submitted_ms: i64,
    /// Time of the hold, epoch ms.
    pub held_ms: i64,
    /// The recommended action.
    pub action: HoldAction,
    /// Certainty of the recommendation.
    pub firmness: Option<AnswerFirmness>,
    /// The probability of success.
    pub probability: Option<f64>,
    /// Prediction time of the answer, epoch ms.
    pub asked_ms: i64,
}

/// Key of one hold of one job: access point, cluster, proc, submission time and hold time.
pub(super) type HoldKey = (String, i32, i32, i64, i64);

impl GivenAnswer {
    fn from_advice(advice: &JobAdvice, asked_ms: i64) -> GivenAnswer {
        GivenAnswer {
            version: LEDGER_VERSION,
            ap: advice.ap.as_str().to_owned(),
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

    pub(super) fn hold(&self) -> HoldKey {
        (
            self.ap.clone(),
            self.cluster,
            self.proc,
            self.submitted_ms,
            self.held_ms,
        )
    }
}

/// Reads the answers stored in the directory of a run. Skips unfinished lines. Returns no answers
/// if there is no file.
///
/// # Errors
/// Fails if the file cannot be read, or if a line has another version or is damaged.
pub fn read_answers(dir: &Path) -> Result<Vec<GivenAnswer>> {
    let mut answers = Vec::new();
    for_each_answer(dir, |answer| answers.push(answer))?;
    Ok(answers)
}

/// Calls `take` with each answer stored in the directory of a run, like [`read_answers`].
fn for_each_answer(dir: &Path, mut take: impl FnMut(GivenAnswer)) -> Result<()> {
    let path = dir.join(LEDGER_FILE);
    if !path.exists() {
        return Ok(());
    }
    let mut file = BufReader::new(files::open_regular(&path, u64::MAX)?);
    let mut line = Vec::new();
    while file
        .by_ref()
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', &mut line)?
        > 0
    {
        // A line without this ending is the rest of a write that was killed: skip it.
        if line.ends_with(b"}\n") {
            take(read_line(&path, &line)?);
        }
        line.clear();
    }
    Ok(())
}

fn read_line(path: &Path, line: &[u8]) -> Result<GivenAnswer> {
    let hint = "move it away: the next answers start a new file";
    let answer: serde_json::Value = serde_json::from_slice(line)
        .with_context(|| hinted(format!("`{}` has a damaged line", path.display()), hint))?;
    ensure!(
        answer["version"] == LEDGER_VERSION,
        hinted(
            format!(
                "`{}` has version {}, expected {LEDGER_VERSION}",
                path.display(),
                answer["version"]
            ),
            hint
        )
    );
    serde_json::from_value(answer)
        .with_context(|| hinted(format!("`{}` has a damaged line", path.display()), hint))
}

/// Appends `advice`, given for the prediction time `asked_ms`, to the answers in the directory of a
/// run. Skips an answer that equals the last one stored for the same hold. Returns the path of the
/// file.
///
/// # Errors
/// Fails if the file cannot be read or written.
pub fn record_answers(dir: &Path, advice: &[&JobAdvice], asked_ms: i64) -> Result<PathBuf> {
    let new = new_answers(dir, advice)?;
    let path = dir.join(LEDGER_FILE);
    if new.is_empty() {
        return Ok(path);
    }

    let mut file = files::open_to_append(&path)?;
    let mut lines = Vec::new();
    // If a killed write left an unfinished line, end that line first.
    if !ends_with_line_feed(&path)? {
        lines.push(b'\n');
    }
    for answers in new.chunks(ANSWERS_PER_WRITE) {
        for one in answers {
            serde_json::to_writer(&mut lines, &GivenAnswer::from_advice(one, asked_ms))?;
            lines.push(b'\n');
        }
        // A single write of whole lines keeps the lines of concurrent calls apart.
        file.write_all(&lines)?;
        lines.clear();
    }
    Ok(path)
}

/// Returns those of `advice` that are not the last answer stored for their hold in `dir`.
fn new_answers<'a>(dir: &Path, advice: &[&'a JobAdvice]) -> Result<Vec<&'a JobAdvice>> {
    if !dir.join(LEDGER_FILE).exists() {
        return Ok(advice.to_vec());
    }
    let hold_of = |one: &JobAdvice| {
        let ap = one.ap.clone();
        (
            ap,
            one.cluster,
            one.proc,
            one.submitted_ms,
            one.held_since_ms,
        )
    };
    let holds = advice.iter().map(|one| (hold_of(one), None));
    let mut last: HashMap<_, Option<(HoldAction, Option<AnswerFirmness>)>> = holds.collect();
    for_each_answer(dir, |answer| {
        let (ap, cluster, proc, submitted_ms, held_ms) = answer.hold();
        let hold = (SharedText::from(ap), cluster, proc, submitted_ms, held_ms);
        if let Some(before) = last.get_mut(&hold) {
            *before = Some((answer.action, answer.firmness));
        }
    })?;
    let is_new = |one: &&JobAdvice| last[&hold_of(one)] != Some((one.action, one.firmness));
    Ok(advice.iter().copied().filter(is_new).collect())
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
