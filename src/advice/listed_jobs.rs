//! Reads jobs from the output of `condor_q`, with `-json` or `-l`. Jobs that cannot be read are skipped and counted.

use std::io::BufRead;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use poolcast_base::error::hinted;
use poolcast_collect::CondorText;
use poolcast_holds::job_ads::{ListedAd, for_each_ad};

/// Jobs in the output of `condor_q` that cannot be read, and get no advice from the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SkippedJobs {
    /// Number of these jobs.
    pub count: usize,
    /// Position of the first of them in the list; 1 is the first job.
    pub first: usize,
    /// The reason why the first of them cannot be read.
    pub why: &'static str,
}

/// Reads the output of `condor_q` from `input`, which is an empty queue if it is empty. Returns
/// the jobs that `read_job` makes of the ads; it returns `None` for jobs that are not wanted.
/// `query` is a command with such output, for the message.
///
/// # Errors
/// Fails if `input` cannot be read, or if it is no complete list.
pub(super) fn read_listed_jobs<T>(
    mut input: impl BufRead,
    query: String,
    mut read_job: impl FnMut(&ListedAd) -> Result<Option<T>, &'static str>,
) -> Result<(Vec<T>, Option<SkippedJobs>)> {
    let mut jobs = Vec::new();
    let mut skipped: Option<SkippedJobs> = None;
    let mut number = 0;
    let begin = input.fill_buf().context("cannot read the list of jobs")?;
    let other = CondorText::of(&String::from_utf8_lossy(begin));
    let other = other.filter(|kind| *kind != CondorText::Ads);
    let hint = other.map_or(query, |other| other.words().to_owned());
    let not_jobs = || {
        hinted(
            "cannot parse the text as output of `condor_q`, with `-json` or `-l`",
            hint.clone(),
        )
    };
    // An event log has lines that look like attributes of jobs.
    ensure!(other.is_none(), not_jobs());
    for_each_ad(input, |ad| {
        number += 1;
        match ad.and_then(|ad| read_job(&ad)) {
            Ok(job) => jobs.extend(job),
            Err(why) => {
                let first = SkippedJobs {
                    count: 0,
                    first: number,
                    why,
                };
                skipped.get_or_insert(first).count += 1;
            }
        }
    })
    .with_context(not_jobs)?;
    Ok((jobs, skipped))
}
