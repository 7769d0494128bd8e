//! Reads the idle and running jobs from the output of `condor_q -json`.

use std::io::BufRead;

use anyhow::Result;

use super::listed_jobs::{SkippedJobs, read_listed_jobs};
use super::unheld_job::{CommonInputs, UnheldJob};
use poolcast_holds::job_ads::ListedAd;

/// The attributes of idle and running jobs that this program requests from `condor_q`.
pub const UNHELD_ATTRIBUTES: &str = "ClusterId,ProcId,JobStatus,GlobalJobId,Owner,JobBatchName,EnteredCurrentStatus,JobUniverse,Iwd,Cmd,\
    TransferExecutable,CopyToSpool,In,TransferIn,TransferInput,ShouldTransferFiles,StageInStart,ContainerImageFullPath,\
    RequestMemory,RetryRequestMemory,RequestDisk,RequestCpus,RequestGPUs,Requirements";

/// The idle and running jobs in a queue.
#[derive(Debug, Clone, Default)]
pub struct UnheldJobs {
    /// The jobs, sorted by access point and id.
    pub(super) jobs: Vec<UnheldJob>,
    skipped: Option<SkippedJobs>,
}

impl UnheldJobs {
    /// Reads the output of `condor_q -json` from `input`. An empty input means an empty queue. Jobs
    /// that cannot be read are skipped and counted, and a job that is listed twice counts once.
    ///
    /// # Errors
    /// Fails if `input` cannot be read, or if it is not a complete JSON list.
    pub fn read(input: impl BufRead) -> Result<UnheldJobs> {
        let mut common = CommonInputs::new();
        let query = format!("condor_q -json -attributes {UNHELD_ATTRIBUTES}");
        let read_job = |ad: &ListedAd| UnheldJob::from_ad(ad, &mut common);
        let (jobs, skipped) = read_listed_jobs(input, query, read_job)?;
        let mut found = UnheldJobs { jobs, skipped };
        found.sort();
        Ok(found)
    }

    /// Sorts the jobs by access point and id, and drops those that were listed before.
    fn sort(&mut self) {
        self.jobs
            .sort_by(|a, b| (&a.ap, a.job).cmp(&(&b.ap, b.job)));
        self.jobs
            .dedup_by(|later, first| (&later.ap, later.job) == (&first.ap, first.job));
    }

    /// Drops the jobs for which `is_wanted` returns false.
    pub fn retain(&mut self, is_wanted: impl FnMut(&UnheldJob) -> bool) {
        self.jobs.retain(is_wanted);
    }

    /// The jobs.
    pub fn jobs(&self) -> &[UnheldJob] {
        &self.jobs
    }

    /// The number of idle jobs.
    pub fn idle_count(&self) -> usize {
        self.jobs.iter().filter(|job| job.is_idle).count()
    }

    /// The jobs that were skipped, if there are any.
    pub fn skipped(&self) -> Option<SkippedJobs> {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_running_jobs_are_read_once() {
        let job = |proc, status| {
            format!(
                r#"{{"ClusterId": 1, "ProcId": {proc}, "JobStatus": {status}, "GlobalJobId": "ap#1.{proc}#9"}}"#
            )
        };
        let all = [
            job(1, 2),
            job(0, 1),
            job(2, 5),
            job(0, 1),
            job(3, 4),
            "7".to_owned(),
        ];
        let text = format!("[{}]", all.join(","));
        let found = UnheldJobs::read(text.as_bytes()).expect("a queue");
        let ids: Vec<String> = found.jobs().iter().map(|job| job.job.to_string()).collect();
        assert_eq!(
            (ids, found.idle_count()),
            (vec!["1.0".to_owned(), "1.1".to_owned()], 1)
        );
        let skipped = found.skipped().expect("one job");
        assert_eq!((skipped.count, skipped.first), (1, 6));
        assert!(UnheldJobs::read(&b"{}"[..]).is_err());
    }
}
