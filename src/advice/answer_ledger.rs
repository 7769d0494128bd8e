//! Stores the given answers in a file beside the run, one JSON line per answer. The file has
//! neither the owners of jobs nor their hold reasons.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::job_advice::{AdviceGround, JobAdvice};
use super::job_command::{JobId, RaisedRequest};
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::shared_text::SharedText;
use poolcast_holds::decision::{AnswerFirmness, HoldAction, ProbeCause};

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
    /// Version of the line format.
    pub(super) version: u32,
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
    /// The jobs of its cause that the command for a probe releases; empty for other answers, while
    /// the outcome of a released job is awaited, and in lines of earlier builds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<JobId>,
    /// True if the answer follows from a look at a file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_looked: bool,
    /// The request that the printed command sets before the release; absent for other answers, and in lines of
    /// earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) raise: Option<RaisedRequest>,
}

/// Key of one hold of one job: access point, cluster, proc, submission time and hold time.
pub(super) type HoldKey = (String, i32, i32, i64, i64);

impl GivenAnswer {
    fn from_advice(advice: &JobAdvice, probes: &ProbedJobs, asked_ms: i64) -> GivenAnswer {
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
            probes: probes.of(advice).to_vec(),
            is_looked: advice.ground == AdviceGround::Look,
            raise: advice.raise,
        }
    }

    /// Returns true if a success of the job shows that a person did what this answer, FIX, asks for: the printed
    /// command raises a request, or a look saw the fault that the next look at the same hold, for an answer in
    /// `next`, no longer found.
    pub(super) fn is_obeyed(&self, next: &[&GivenAnswer]) -> bool {
        let is_found =
            |answer: &&GivenAnswer| answer.is_looked && answer.action == HoldAction::Release;
        self.raise.is_some() || self.is_looked && next.iter().any(is_found)
    }

    /// Returns true if the command for a probe released this job.
    pub(super) fn is_probe(&self) -> bool {
        let job = JobId {
            cluster: self.cluster,
            proc: self.proc,
        };
        self.probes.contains(&job)
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

/// The jobs that the commands for probes release, by access point and cause.
#[derive(Debug, Default)]
struct ProbedJobs(HashMap<(SharedText, ProbeCause), Vec<JobId>>);

impl ProbedJobs {
    fn new(advice: &[&JobAdvice]) -> ProbedJobs {
        let mut probed = ProbedJobs::default();
        for one in advice {
            if let Some(cause) = one.tried_cause() {
                probed.0.entry(cause).or_default().push(one.job);
            }
        }
        for jobs in probed.0.values_mut() {
            jobs.sort_unstable();
        }
        probed
    }

    /// Returns the jobs that are released for the cause of `advice`.
    fn of(&self, advice: &JobAdvice) -> &[JobId] {
        let jobs = advice.probe_key().and_then(|cause| self.0.get(&cause));
        jobs.map_or(&[], Vec::as_slice)
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
/// run. Skips an answer that equals the last one stored for the same hold, unless it is a probe of
/// other jobs. Returns the path of the file.
///
/// # Errors
/// Fails if the file cannot be read or written.
pub fn record_answers(dir: &Path, advice: &[&JobAdvice], asked_ms: i64) -> Result<PathBuf> {
    let probes = ProbedJobs::new(advice);
    let new = new_answers(dir, advice, &probes)?;
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
            serde_json::to_writer(
                &mut lines,
                &GivenAnswer::from_advice(one, &probes, asked_ms),
            )?;
            lines.push(b'\n');
        }
        // A single write of whole lines keeps the lines of concurrent calls apart.
        file.write_all(&lines)?;
        lines.clear();
    }
    Ok(path)
}

/// Returns the answers in `advice` that differ from the last one stored for their hold in `dir`.
fn new_answers<'a>(
    dir: &Path,
    advice: &[&'a JobAdvice],
    probes: &ProbedJobs,
) -> Result<Vec<&'a JobAdvice>> {
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
    let mut last: HashMap<_, Option<GivenAnswer>> = holds.collect();
    for_each_answer(dir, |answer| {
        let (ap, cluster, proc, submitted_ms, held_ms) = answer.hold();
        let hold = (SharedText::from(ap), cluster, proc, submitted_ms, held_ms);
        if let Some(before) = last.get_mut(&hold) {
            *before = Some(answer);
        }
    })?;
    let is_new = |one: &&JobAdvice| {
        let Some(before) = &last[&hold_of(one)] else {
            return true;
        };
        let probes = probes.of(one);
        (before.action, before.firmness, before.raise) != (one.action, one.firmness, one.raise)
            || !probes.is_empty() && probes != before.probes
    };
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

#[cfg(test)]
impl GivenAnswer {
    /// Returns a firm answer about the hold at second `held_s` of a job of
    /// [`test_stores::TestLog`].
    pub(super) fn of_test_job(cluster: i32, held_s: i64, action: HoldAction) -> GivenAnswer {
        GivenAnswer {
            version: LEDGER_VERSION,
            ap: "ap".to_owned(),
            cluster,
            proc: 0,
            submitted_ms: 1000 * (held_s - 9),
            held_ms: 1000 * held_s,
            action,
            firmness: Some(AnswerFirmness::Firm),
            probability: None,
            asked_ms: 1000 * held_s,
            probes: Vec::new(),
            is_looked: false,
            raise: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_command::RequestAttribute;
    use super::*;

    /// Returns a job with the answer to try one of a cause, which is this job if `is_probe`.
    fn tried(cluster: i32, is_probe: bool) -> JobAdvice {
        let job = JobId { cluster, proc: 0 };
        let advice = JobAdvice::of_test_job();
        JobAdvice {
            job,
            cluster,
            action: HoldAction::Probe,
            firmness: None,
            command: advice.command.filter(|_| is_probe),
            probe_cause: Some((8, 77)),
            ..advice
        }
    }

    /// Records `advice` in `dir`; returns the lines of the ledger, each as a cluster and its probes.
    fn recorded(dir: &Path, advice: &[JobAdvice]) -> Vec<(i32, Vec<String>)> {
        let said: Vec<&JobAdvice> = advice.iter().collect();
        record_answers(dir, &said, 5).expect("recorded");
        let lines = read_answers(dir).expect("read").into_iter();
        lines
            .map(|line| {
                let probes = line.probes.iter().map(ToString::to_string);
                (line.cluster, probes.collect())
            })
            .collect()
    }

    #[test]
    fn answers_for_a_probe_name_the_released_job() {
        let dir = tempfile::tempdir().expect("a directory");
        let lines = recorded(dir.path(), &[tried(3, true), tried(4, false)]);
        let first = [(3, vec!["3.0".to_owned()]), (4, vec!["3.0".to_owned()])];
        assert_eq!(lines, first);

        // The outcome is awaited: no job is named, and no answer is new.
        let lines = recorded(dir.path(), &[tried(4, false)]);
        assert_eq!(lines, first);
        let lines = recorded(dir.path(), &[tried(4, true)]);
        assert_eq!(lines[2..], [(4, vec!["4.0".to_owned()])], "the next probe");
    }

    #[test]
    fn probes_of_other_causes_and_access_points_are_not_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let other_cause = JobAdvice {
            probe_cause: Some((8, 78)),
            ..tried(4, false)
        };
        let other_ap = JobAdvice {
            ap: "other".into(),
            ..tried(5, false)
        };
        let lines = recorded(dir.path(), &[tried(3, true), other_cause, other_ap]);
        assert_eq!(lines[1..], [(4, Vec::new()), (5, Vec::new())]);
    }

    #[test]
    fn lines_of_earlier_builds_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let line = r#"{"version":1,"ap":"ap","cluster":3,"proc":0,"submitted_ms":1,"held_ms":2,"action":"probe","firmness":null,"probability":0.5,"asked_ms":3}"#;
        fs_err::write(dir.path().join(LEDGER_FILE), format!("{line}\n")).expect("written");
        let answers = read_answers(dir.path()).expect("read");
        assert_eq!(answers[0].probes, []);
        assert!(!answers[0].is_probe());
        let written = serde_json::to_string(&answers[0]).expect("JSON");
        assert_eq!(written, line, "no empty list is written");
    }

    #[test]
    fn raised_request_is_kept() {
        let raise = |number| RaisedRequest {
            attribute: RequestAttribute::RequestMemory,
            number,
        };
        let dir = tempfile::tempdir().expect("a directory");
        let kept = |number| {
            let advice = JobAdvice {
                action: HoldAction::Fix,
                raise: Some(raise(number)),
                ..JobAdvice::of_test_job()
            };
            record_answers(dir.path(), &[&advice], 5).expect("recorded");
            let answers = read_answers(dir.path()).expect("read");
            let raises = answers.iter().map(|answer| answer.raise);
            raises.collect::<Vec<_>>()
        };
        assert_eq!(kept(128), [Some(raise(128))]);
        assert_eq!(kept(128).len(), 1, "the same answer");
        assert_eq!(kept(256), [128, 256].map(|number| Some(raise(number))));
    }
}
