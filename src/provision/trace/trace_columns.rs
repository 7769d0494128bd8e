//! Jobs as columns of a shard, and back.

use anyhow::{Result, ensure};

use super::trace_job::{JobFate, JobNumber, TraceJob};
use crate::column_table::column_table;
use crate::shard::Shard;

/// What is not known of a moment or a span.
const UNKNOWN_S: i64 = i64::MIN;

/// A job that is no part of an array or of a heterogeneous job.
const NO_PART: i32 = -1;

column_table! {
    /// Jobs as they are written, in order of submission.
    pub(super) struct TraceColumns from |job: &TraceJob|;
    /// Jobs as they are read.
    pub(super) struct TraceSlices<'a>;

    job_id: u64 = job.id.number,
    array_task: i32 = job.id.array_task.map_or(NO_PART, |task| task as i32),
    het_offset: i32 = job.id.het_offset.map_or(NO_PART, |offset| offset as i32),
    user: u64 = job.user,
    submit_s: i64 = job.submit_s,
    eligible_s: i64 = job.eligible_s,
    start_s: i64 = job.start_s.unwrap_or(UNKNOWN_S),
    end_s: i64 = job.end_s.unwrap_or(UNKNOWN_S),
    run_s: i64 = job.run_s.unwrap_or(UNKNOWN_S),
    limit_s: i64 = job.limit_s.unwrap_or(UNKNOWN_S),
    nodes: u32 = job.nodes,
    fate: u8 = job.fate.code(),
}

impl TraceSlices<'_> {
    /// Adds the jobs of `shard`, `count` in number, to `jobs`.
    pub(super) fn read_jobs(shard: &Shard, count: usize, jobs: &mut Vec<TraceJob>) -> Result<()> {
        let slices = TraceSlices::from_shard(shard)?;
        ensure!(
            slices.have_length(count),
            "`{}` does not hold as many jobs as its manifest says",
            shard.path().display()
        );
        for at in 0..count {
            jobs.push(slices.job(at)?);
        }
        Ok(())
    }

    fn job(&self, at: usize) -> Result<TraceJob> {
        let known = |value: i64| Some(value).filter(|value| *value != UNKNOWN_S);
        let part = |value: i32| u32::try_from(value).ok();
        let fate = JobFate::ALL.get(usize::from(self.fate[at]));
        let Some(fate) = fate else {
            anyhow::bail!("job {at} has the unknown fate {}", self.fate[at]);
        };
        Ok(TraceJob {
            id: JobNumber {
                number: self.job_id[at],
                array_task: part(self.array_task[at]),
                het_offset: part(self.het_offset[at]),
            },
            user: self.user[at],
            submit_s: self.submit_s[at],
            eligible_s: self.eligible_s[at],
            start_s: known(self.start_s[at]),
            end_s: known(self.end_s[at]),
            run_s: known(self.run_s[at]),
            limit_s: known(self.limit_s[at]),
            nodes: self.nodes[at],
            fate: *fate,
        })
    }
}
