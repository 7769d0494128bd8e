//! Converts jobs to the columns of a shard, and back.

use anyhow::{Result, ensure};

use super::trace_job::{JobFate, JobNumber, JobPart, OptionalSeconds, TraceJob};
use poolcast_base::column_table;
use poolcast_base::shard::Shard;

/// The stored index of a job that is not an array element, or not a component of a heterogeneous
/// job.
const NO_PART: i32 = -1;

column_table! {
    /// Columns to write, in order of submission.
    pub(super) struct TraceColumns from |job: &TraceJob|;
    /// Columns as read from a shard.
    pub(super) struct TraceSlices<'a>;

    job_id: u64 = job.id.number,
    array_task: i32 = array_task(job.id.part),
    het_offset: i32 = het_offset(job.id.part),
    user: u64 = job.user,
    submit_s: i64 = job.submit_s,
    eligible_s: i64 = job.eligible_s,
    start_s: i64 = job.start_s.stored(),
    end_s: i64 = job.end_s.stored(),
    run_s: i64 = job.run_s.stored(),
    limit_s: i64 = job.limit_s.stored(),
    nodes: u32 = job.nodes,
    fate: u8 = job.fate.code(),
}

fn array_task(part: JobPart) -> i32 {
    match part {
        JobPart::ArrayTask(task) => task as i32,
        JobPart::Whole | JobPart::HetOffset(_) => NO_PART,
    }
}

fn het_offset(part: JobPart) -> i32 {
    match part {
        JobPart::HetOffset(offset) => offset as i32,
        JobPart::Whole | JobPart::ArrayTask(_) => NO_PART,
    }
}

fn part(array_task: i32, het_offset: i32) -> JobPart {
    match (u32::try_from(array_task), u32::try_from(het_offset)) {
        (Ok(task), _) => JobPart::ArrayTask(task),
        (Err(_), Ok(offset)) => JobPart::HetOffset(offset),
        (Err(_), Err(_)) => JobPart::Whole,
    }
}

impl TraceSlices<'_> {
    /// Appends the `count` jobs of `shard` to `jobs`.
    pub(super) fn read_jobs(shard: &Shard, count: usize, jobs: &mut Vec<TraceJob>) -> Result<()> {
        let slices = TraceSlices::from_shard(shard)?;
        ensure!(
            slices.have_length(count),
            "the number of jobs in `{}` differs from its manifest",
            shard.path().display()
        );
        for at in 0..count {
            jobs.push(slices.job(at)?);
        }
        Ok(())
    }

    fn job(&self, at: usize) -> Result<TraceJob> {
        let fate = JobFate::ALL.get(usize::from(self.fate[at]));
        let Some(fate) = fate else {
            anyhow::bail!("job {at} has the unknown outcome code {}", self.fate[at]);
        };
        Ok(TraceJob {
            id: JobNumber {
                number: self.job_id[at],
                part: part(self.array_task[at], self.het_offset[at]),
            },
            user: self.user[at],
            submit_s: self.submit_s[at],
            eligible_s: self.eligible_s[at],
            start_s: OptionalSeconds::from_stored(self.start_s[at]),
            end_s: OptionalSeconds::from_stored(self.end_s[at]),
            run_s: OptionalSeconds::from_stored(self.run_s[at]),
            limit_s: OptionalSeconds::from_stored(self.limit_s[at]),
            nodes: self.nodes[at],
            fate: *fate,
        })
    }
}
