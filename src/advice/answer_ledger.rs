//! Stores the given answers in a file beside the run, one JSON line per answer. The file has
//! neither the owners of jobs nor their hold reasons. Answers of the last 90 days are kept.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::job_advice::{AdviceGround, JobAdvice};
use super::job_command::{JobId, RaisedRequest};
use super::ledger_file::LedgerFile;
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::moment::DAY_MS;
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

/// Time for which answers are kept, in ms.
const KEPT_MS: i64 = 90 * DAY_MS;

/// Time for which an answer may outlast [`KEPT_MS`], in ms, so that the file is not replaced at each
/// call.
const SLACK_MS: i64 = DAY_MS;

/// Maximum size of the file, in bytes: about 300,000 answers. Beyond it, the newest half is kept.
const MAX_LEDGER_BYTES: u64 = 64 << 20;

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
            ap: advice.job.ap.as_str().to_owned(),
            cluster: advice.job.id.cluster,
            proc: advice.job.id.proc,
            submitted_ms: advice.job.submitted_ms,
            held_ms: advice.hold.since_ms,
            action: advice.verdict.action,
            firmness: advice.verdict.firmness,
            probability: advice.forecast.probability,
            asked_ms,
            probes: probes.of(advice).to_vec(),
            is_looked: advice.verdict.ground == AdviceGround::Look,
            raise: advice.verdict.raise,
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
                probed.0.entry(cause).or_default().push(one.job.id);
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
    for_each_answer(dir, |answer, _| answers.push(answer))?;
    Ok(answers)
}

/// Calls `take` with each answer stored in the directory of a run, like [`read_answers`], and with its
/// line.
fn for_each_answer(dir: &Path, mut take: impl FnMut(GivenAnswer, &[u8])) -> Result<()> {
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
            take(read_line(&path, &line)?, &line);
        }
        line.clear();
    }
    Ok(())
}

fn read_line(path: &Path, line: &[u8]) -> Result<GivenAnswer> {
    let answer = match serde_json::from_slice::<GivenAnswer>(line) {
        Ok(answer) if answer.version == LEDGER_VERSION => return Ok(answer),
        answer => answer,
    };
    let hint = "move it away: the next answers start a new file";
    let damaged = || hinted(format!("`{}` has a damaged line", path.display()), hint);
    let found: serde_json::Value = serde_json::from_slice(line).with_context(damaged)?;
    let version = &found["version"];
    ensure!(
        *version == LEDGER_VERSION,
        hinted(
            format!(
                "`{}` has version {version}, expected {LEDGER_VERSION}",
                path.display()
            ),
            hint
        )
    );
    answer.with_context(damaged)
}

/// Appends `advice`, given at `now_ms` for the prediction time `asked_ms`, to the answers in the
/// directory of a run. Skips an answer that equals the last one stored for the same hold, unless it
/// is a probe of other jobs. Answers that are older than 90 days leave the file. Returns its path.
///
/// # Errors
/// Fails if the file cannot be read or written.
pub fn record_answers(
    dir: &Path,
    advice: &[&JobAdvice],
    asked_ms: i64,
    now_ms: i64,
) -> Result<PathBuf> {
    let path = dir.join(LEDGER_FILE);
    let probes = ProbedJobs::new(advice);
    let StoredAnswers { oldest_ms, new } = StoredAnswers::compare(dir, advice, &probes)?;
    if new.is_empty() {
        return Ok(path);
    }

    let mut ledger = LedgerFile::lock(&path)?;
    // A log may claim to be from the future, and makes no answer old.
    let kept_from_ms = asked_ms.min(now_ms).saturating_sub(KEPT_MS);
    let is_long = fs_err::metadata(&path)?.len() > MAX_LEDGER_BYTES;
    let is_old = oldest_ms < kept_from_ms.saturating_sub(SLACK_MS);
    if (is_long || is_old) && ledger.may_be_replaced() {
        let mut lines = kept_lines(dir, kept_from_ms, MAX_LEDGER_BYTES)?;
        add_lines(&mut lines, &new, &probes, asked_ms)?;
        ledger.replace(&lines)?;
        return Ok(path);
    }
    let mut lines = Vec::new();
    // If a killed write left an unfinished line, end that line first.
    if !ends_with_line_feed(&path)? {
        lines.push(b'\n');
    }
    for answers in new.chunks(ANSWERS_PER_WRITE) {
        add_lines(&mut lines, answers, &probes, asked_ms)?;
        ledger.append(&lines)?;
        lines.clear();
    }
    Ok(path)
}

fn add_lines(
    lines: &mut Vec<u8>,
    answers: &[&JobAdvice],
    probes: &ProbedJobs,
    asked_ms: i64,
) -> Result<()> {
    for one in answers {
        serde_json::to_writer(
            &mut *lines,
            &GivenAnswer::from_advice(one, probes, asked_ms),
        )?;
        lines.push(b'\n');
    }
    Ok(())
}

/// Returns the lines of the answers that were given at or after `from_ms`. If they have more than
/// `max_bytes`, the newest of them with at most half of that are returned.
fn kept_lines(dir: &Path, from_ms: i64, max_bytes: u64) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for_each_answer(dir, |answer, line| {
        if answer.asked_ms >= from_ms {
            lines.extend_from_slice(line);
        }
    })?;
    if lines.len() as u64 > max_bytes {
        let cut = lines.len() - (max_bytes / 2) as usize;
        let end_of_line = lines[cut..].iter().position(|&byte| byte == b'\n');
        lines.drain(..end_of_line.map_or(lines.len(), |at| cut + at + 1));
    }
    Ok(lines)
}

/// What the stored answers say about those to store.
struct StoredAnswers<'a> {
    /// Prediction time of the oldest stored answer, epoch ms; `i64::MAX` without answers.
    oldest_ms: i64,
    /// The answers that differ from the last one stored for their hold.
    new: Vec<&'a JobAdvice>,
}

impl<'a> StoredAnswers<'a> {
    /// Compares the answers in `advice` with those that are stored in `dir`.
    fn compare(
        dir: &Path,
        advice: &[&'a JobAdvice],
        probes: &ProbedJobs,
    ) -> Result<StoredAnswers<'a>> {
        let hold_of = |one: &JobAdvice| {
            let ap = one.job.ap.clone();
            (
                ap,
                one.job.id.cluster,
                one.job.id.proc,
                one.job.submitted_ms,
                one.hold.since_ms,
            )
        };
        let holds = advice.iter().map(|one| (hold_of(one), None));
        let mut last: HashMap<_, Option<GivenAnswer>> = holds.collect();
        let mut oldest_ms = i64::MAX;
        for_each_answer(dir, |answer, _| {
            oldest_ms = oldest_ms.min(answer.asked_ms);
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
            (before.action, before.firmness, before.raise)
                != (one.verdict.action, one.verdict.firmness, one.verdict.raise)
                || !probes.is_empty() && probes != before.probes
        };
        let new = advice.iter().copied().filter(is_new).collect();
        Ok(StoredAnswers { oldest_ms, new })
    }
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
    use std::os::unix::fs::MetadataExt as _;

    use super::super::job_command::RequestAttribute;
    use super::*;

    /// Returns a job with the answer to try one of a cause, which is this job if `is_probe`.
    fn tried(cluster: i32, is_probe: bool) -> JobAdvice {
        let job = JobId { cluster, proc: 0 };
        JobAdvice::of_test_job().with(|one| {
            one.job.id = job;
            one.verdict.action = HoldAction::Probe;
            one.verdict.firmness = None;
            one.verdict.command.take_if(|_| !is_probe);
            one.verdict.probe_cause = Some((8, 77));
        })
    }

    /// Records `advice` in `dir`; returns the lines of the ledger, each as a cluster and its probes.
    fn recorded(dir: &Path, advice: &[JobAdvice]) -> Vec<(i32, Vec<String>)> {
        let said: Vec<&JobAdvice> = advice.iter().collect();
        record_answers(dir, &said, 5, 5).expect("recorded");
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
        let other_cause = tried(4, false).with(|one| one.verdict.probe_cause = Some((8, 78)));
        let other_ap = tried(5, false).with(|one| one.job.ap = "other".into());
        let lines = recorded(dir.path(), &[tried(3, true), other_cause, other_ap]);
        assert_eq!(lines[1..], [(4, Vec::new()), (5, Vec::new())]);
    }

    /// Returns the line of an answer about a hold of `cluster` that was given `age_ms` before `now_ms`.
    fn line(cluster: i32, now_ms: i64, age_ms: i64) -> String {
        let answer = GivenAnswer {
            asked_ms: now_ms - age_ms,
            ..GivenAnswer::of_test_job(cluster, 100, HoldAction::Later)
        };
        serde_json::to_string(&answer).expect("JSON") + "\n"
    }

    fn stored_clusters(dir: &Path) -> Vec<i32> {
        let answers = read_answers(dir).expect("read");
        answers.iter().map(|answer| answer.cluster).collect()
    }

    #[test]
    fn answers_older_than_ninety_days_leave_the_ledger() {
        let now_ms = 200 * DAY_MS;
        let dir = tempfile::tempdir().expect("a directory");
        let ages = [KEPT_MS + 2 * DAY_MS, KEPT_MS, KEPT_MS + 1, 0];
        let lines: String = (1..)
            .zip(ages)
            .map(|(cluster, age)| line(cluster, now_ms, age))
            .collect();
        let path = dir.path().join(LEDGER_FILE);
        fs_err::write(&path, lines).expect("written");
        record_answers(dir.path(), &[&tried(9, true)], i64::MAX, now_ms).expect("recorded");
        assert_eq!(stored_clusters(dir.path()), [2, 4, 9]);

        // An answer that is a little older waits for others, so that not each call writes all.
        let inode = || fs_err::metadata(&path).expect("there").ino();
        let before = inode();
        record_answers(
            dir.path(),
            &[&tried(10, true)],
            now_ms + DAY_MS,
            now_ms + DAY_MS,
        )
        .expect("recorded");
        assert_eq!(
            (stored_clusters(dir.path()), inode()),
            (vec![2, 4, 9, 10], before)
        );
    }

    #[test]
    fn ledger_that_is_too_long_keeps_its_newest_half() {
        let dir = tempfile::tempdir().expect("a directory");
        let lines: String = (10..50).map(|cluster| line(cluster, DAY_MS, 0)).collect();
        let max_bytes = lines.len() as u64 - 1;
        fs_err::write(dir.path().join(LEDGER_FILE), &lines).expect("written");
        let all = kept_lines(dir.path(), i64::MIN, max_bytes + 1).expect("read");
        assert_eq!(all, lines.as_bytes());
        let kept = kept_lines(dir.path(), i64::MIN, max_bytes).expect("read");
        let newest: String = (31..50).map(|cluster| line(cluster, DAY_MS, 0)).collect();
        assert_eq!(String::from_utf8(kept).expect("text"), newest);
    }

    /// Each thread adds an old answer and a new one, again and again, so that the others replace the
    /// file while it writes.
    #[test]
    fn writers_lose_no_answers_while_others_leave_out_old_ones() {
        const THREADS: i32 = 4;
        const ROUNDS: i32 = 10;
        let now_ms = 200 * DAY_MS;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(LEDGER_FILE);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let path = &path;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let old = line(0, now_ms, 2 * KEPT_MS);
                        let mut ledger = LedgerFile::lock(path).expect("locked");
                        ledger.append(old.as_bytes()).expect("written");
                        drop(ledger);
                        let new = tried(1 + thread * ROUNDS + round, true);
                        let dir = path.parent().expect("a directory");
                        record_answers(dir, &[&new], now_ms, now_ms).expect("recorded");
                    }
                });
            }
        });
        let mut clusters = stored_clusters(dir.path());
        clusters.retain(|&cluster| cluster > 0);
        clusters.sort_unstable();
        assert_eq!(clusters, (1..=THREADS * ROUNDS).collect::<Vec<_>>());
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
            let advice = JobAdvice::of_test_job().with(|one| {
                one.verdict.action = HoldAction::Fix;
                one.verdict.raise = Some(raise(number));
            });
            record_answers(dir.path(), &[&advice], 5, 5).expect("recorded");
            let answers = read_answers(dir.path()).expect("read");
            let raises = answers.iter().map(|answer| answer.raise);
            raises.collect::<Vec<_>>()
        };
        assert_eq!(kept(128), [Some(raise(128))]);
        assert_eq!(kept(128).len(), 1, "the same answer");
        assert_eq!(kept(256), [128, 256].map(|number| Some(raise(number))));
    }
}
