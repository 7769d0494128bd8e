//! The journal of forecast starts: a JSON line for each forecast, in a file of the user, and what became of them.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::start_forecast::{StartAnswer, StartForecast};
use super::submission_advice::PLAN_MARGIN_S;
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::stats::interpolated_quantile;
use poolcast_provision::trace::{JobFate, TraceJob};

/// Name of the journal in the user's directory.
const JOURNAL_FILE: &str = "starts.jsonl";

/// Version of the line format.
const JOURNAL_VERSION: u32 = 1;

/// Maximum size of the journal, in bytes: about 300,000 forecasts.
const MAX_JOURNAL_BYTES: u64 = 64 << 20;

/// One forecast. Times are in epoch seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct JournalEntry {
    version: u32,
    asked_s: i64,
    job: String,
    /// Submission of the job. Slurm uses the numbers of jobs again.
    submit_s: i64,
    start_p10_s: i64,
    start_p50_s: i64,
    start_p90_s: i64,
}

/// The forecasts of a user.
#[derive(Debug, Default)]
pub struct StartJournal {
    entries: Vec<JournalEntry>,
}

/// What became of the forecasts of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StartRecord {
    /// Number of forecasts.
    pub forecasts: usize,
    /// Number of jobs that they are about.
    pub jobs: usize,
    /// Time of the first forecast, epoch seconds; `None` without forecasts.
    pub since_s: Option<i64>,
    /// Number of forecasts whose job has started, or still waits after the 90 % quantile.
    pub settled: usize,
    /// Settled forecasts whose job started between the 10 % and the 90 % quantile, or within a minute of them.
    pub within: usize,
    /// Settled forecasts whose job started earlier.
    pub earlier: usize,
    /// Settled forecasts whose job started later, or still waits.
    pub later: usize,
    /// Median of the time between start and forecast median, over jobs that have started, seconds; `None` if there are
    /// none.
    pub error_p50_s: Option<i64>,
}

impl StartJournal {
    /// Reads the journal in `dir`, which need not exist. A line that is not complete is skipped.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read(dir: &Path) -> Result<StartJournal> {
        let path = dir.join(JOURNAL_FILE);
        if !path.try_exists()? {
            return Ok(StartJournal::default());
        }
        let bytes = files::read_regular(&path, MAX_JOURNAL_BYTES)?;
        let lines = bytes.split(|byte| *byte == b'\n');
        let entries = lines.filter_map(|line| serde_json::from_slice(line).ok());
        let is_known = |entry: &JournalEntry| entry.version == JOURNAL_VERSION;
        Ok(StartJournal {
            entries: entries.filter(is_known).collect(),
        })
    }

    /// Adds `forecast` to the journal in `dir`, unless it has no start. The job was submitted at `submit_s`, epoch
    /// seconds.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or if it is full.
    pub fn add(dir: &Path, forecast: &StartForecast, submit_s: i64) -> Result<()> {
        let StartAnswer::Expected(times) = &forecast.answer else {
            return Ok(());
        };
        let entry = JournalEntry {
            version: JOURNAL_VERSION,
            asked_s: forecast.now_s,
            job: forecast.job.id.clone(),
            submit_s,
            start_p10_s: times.start_p10_s,
            start_p50_s: times.start_p50_s,
            start_p90_s: times.start_p90_s,
        };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');

        fs_err::create_dir_all(dir)?;
        let path = dir.join(JOURNAL_FILE);
        let mut file = files::open_to_append(&path)?;
        ensure!(
            file.metadata()?.len() + line.len() as u64 <= MAX_JOURNAL_BYTES,
            hinted(
                format!("`{}` is full", path.display()),
                "move it to another directory: a new one then begins"
            )
        );
        // One write, so that lines of programs at work at the same time do not mix.
        file.write_all(&line)?;
        Ok(())
    }

    /// Returns the jobs of the forecasts among `jobs`.
    pub fn jobs_among(&self, jobs: &[TraceJob]) -> Vec<TraceJob> {
        let submits_s: HashSet<i64> = self.entries.iter().map(|entry| entry.submit_s).collect();
        let named: HashSet<(&str, i64)> = self.entries.iter().map(JournalEntry::job).collect();
        let is_named = |job: &&TraceJob| {
            // Few of all jobs of a cluster have such a time, and texts of their ids take longer.
            submits_s.contains(&job.submit_s)
                && named.contains(&(job.id.to_string().as_str(), job.submit_s))
        };
        jobs.iter().filter(is_named).copied().collect()
    }

    /// Compares the forecasts with the starts of their `jobs`. A job that waits then does so until `now_s`, epoch seconds;
    /// `None` if that is not known.
    pub fn record(&self, jobs: &[TraceJob], now_s: Option<i64>) -> StartRecord {
        let ids: Vec<String> = jobs.iter().map(|job| job.id.to_string()).collect();
        let keys = ids.iter().map(String::as_str);
        let starts: HashMap<(&str, i64), &TraceJob> = keys
            .zip(jobs)
            .map(|(id, job)| ((id, job.submit_s), job))
            .collect();
        let named: HashSet<(&str, i64)> = self.entries.iter().map(JournalEntry::job).collect();

        let mut record = StartRecord {
            forecasts: self.entries.len(),
            jobs: named.len(),
            since_s: self.entries.iter().map(|entry| entry.asked_s).min(),
            settled: 0,
            within: 0,
            earlier: 0,
            later: 0,
            error_p50_s: None,
        };
        let mut errors_s = Vec::new();
        for entry in &self.entries {
            let job = starts.get(&entry.job());
            let Some(start) = job.and_then(|job| JobStart::of(job, now_s)) else {
                continue;
            };
            let Some(order) = entry.compare(start) else {
                continue;
            };
            record.settled += 1;
            match order {
                Ordering::Less => record.earlier += 1,
                Ordering::Equal => record.within += 1,
                Ordering::Greater => record.later += 1,
            }
            if let JobStart::At(start_s) = start {
                errors_s.push((start_s - entry.start_p50_s).abs() as f64);
            }
        }
        errors_s.sort_by(f64::total_cmp);
        if !errors_s.is_empty() {
            record.error_p50_s = Some(interpolated_quantile(&errors_s, 0.5) as i64);
        }
        record
    }
}

/// The known start of a job, in epoch seconds.
#[derive(Debug, Clone, Copy)]
enum JobStart {
    /// The job started then.
    At(i64),
    /// The job still waits then.
    After(i64),
}

impl JobStart {
    /// Returns the start of `job`. If it waits, it does so until `now_s`.
    fn of(job: &TraceJob, now_s: Option<i64>) -> Option<JobStart> {
        match job.fate {
            JobFate::Running | JobFate::Ended => job.start_s.get().map(JobStart::At),
            JobFate::Pending => now_s.map(JobStart::After),
            JobFate::Cancelled => None,
        }
    }
}

impl JournalEntry {
    /// The job, which its number alone does not name.
    fn job(&self) -> (&str, i64) {
        (&self.job, self.submit_s)
    }

    /// Compares the start with the range between the quantiles; `None` if it may still be within.
    fn compare(&self, start: JobStart) -> Option<Ordering> {
        let range = self.start_p10_s - PLAN_MARGIN_S..=self.start_p90_s + PLAN_MARGIN_S;
        match start {
            JobStart::At(start_s) | JobStart::After(start_s) if start_s > *range.end() => {
                Some(Ordering::Greater)
            }
            JobStart::After(_) => None,
            JobStart::At(start_s) if start_s < *range.start() => Some(Ordering::Less),
            JobStart::At(_) => Some(Ordering::Equal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_provision::trace::{JobNumber, OptionalSeconds};

    fn entry(job: u64, start_p50_s: i64) -> JournalEntry {
        JournalEntry {
            version: JOURNAL_VERSION,
            asked_s: 1000,
            job: job.to_string(),
            submit_s: 900,
            start_p10_s: start_p50_s - 600,
            start_p50_s,
            start_p90_s: start_p50_s + 600,
        }
    }

    fn job(id: u64, submit_s: i64, fate: JobFate, start_s: Option<i64>) -> TraceJob {
        TraceJob {
            id: JobNumber::single(id),
            user: 0,
            submit_s,
            eligible_s: submit_s,
            start_s: start_s.into(),
            end_s: OptionalSeconds::UNKNOWN,
            run_s: OptionalSeconds::UNKNOWN,
            limit_s: OptionalSeconds::UNKNOWN,
            nodes: 1,
            fate,
        }
    }

    #[test]
    fn forecasts_are_settled_by_starts_and_by_waits_that_are_too_long() {
        let journal = StartJournal {
            entries: (1..=7).map(|id| entry(id, 5000)).collect(),
        };
        let jobs = [
            job(1, 900, JobFate::Running, Some(5100)),
            job(2, 900, JobFate::Ended, Some(4339)),
            job(3, 900, JobFate::Ended, Some(5661)),
            job(4, 900, JobFate::Pending, None),
            job(5, 900, JobFate::Cancelled, None),
            // Another job, for which Slurm used the number again.
            job(6, 901, JobFate::Running, Some(5000)),
        ];
        let early = journal.record(&jobs, Some(5660));
        assert_eq!(
            (early.forecasts, early.jobs, early.since_s),
            (7, 7, Some(1000))
        );
        let counts = (early.settled, early.within, early.earlier, early.later);
        assert_eq!((counts, early.error_p50_s), ((3, 1, 1, 1), Some(661)));
        assert_eq!(journal.record(&jobs, Some(5661)).later, 2);
        assert_eq!(journal.record(&jobs, None), early);
        let own = journal.jobs_among(&jobs);
        assert_eq!(own, jobs[..5]);
        assert_eq!(journal.record(&own, Some(5660)), early);
        assert_eq!(
            StartJournal::default().record(&jobs, None).error_p50_s,
            None
        );
    }

    #[test]
    fn torn_lines_and_other_versions_are_skipped() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(
            StartJournal::read(dir.path())
                .expect("read")
                .entries
                .is_empty()
        );
        let line = |entry: &JournalEntry| serde_json::to_string(entry).expect("JSON");
        let other = JournalEntry {
            version: 2,
            ..entry(3, 5000)
        };
        let text = format!(
            "{}\n{}\n\u{0}x\n{}\n{{\"version\": 1, \"as",
            line(&entry(1, 5000)),
            line(&other),
            line(&entry(2, 6000))
        );
        fs_err::write(dir.path().join(JOURNAL_FILE), text).expect("written");
        let journal = StartJournal::read(dir.path()).expect("read");
        assert_eq!(journal.entries, [entry(1, 5000), entry(2, 6000)]);
    }
}
