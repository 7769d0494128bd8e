//! Merges overlapping exports, so that each run of each job appears once.

use super::trace_job::TraceJob;

/// Sorts `jobs` by submission, and keeps the most complete of several rows about the same run.
/// Returns the number of rows dropped.
///
/// A requeued job has one row per run. Slurm gives the later run either its own submission time or
/// the same one. In the latter case the run is eligible when the previous run has ended.
pub(super) fn merge_exports(jobs: &mut Vec<TraceJob>) -> u64 {
    // Puts rows without a start last, and the most complete of several rows with the same start
    // first.
    jobs.sort_by_key(|job| {
        let start_s = job.start_s.get().unwrap_or(i64::MAX);
        (job.id, job.submit_s, start_s, std::cmp::Reverse(job.fate))
    });

    let (mut kept, mut repeats) = (0, 0);
    for place in 0..jobs.len() {
        let mut job = jobs[place];
        let last = jobs[..kept].last_mut();
        let earlier = last.filter(|last| (last.id, last.submit_s) == (job.id, job.submit_s));
        match earlier {
            Some(last) if job.start_s.get().is_none() || last.start_s == job.start_s => {
                // A row that was exported before the start adds nothing.
                repeats += 1;
                if last.fate < job.fate && last.start_s.get().is_none() {
                    *last = job;
                }
                continue;
            }
            Some(last) => {
                // A further run of the same submission: it could not start before the previous run
                // ended.
                let freed_s = last.end_s.get().unwrap_or(job.submit_s);
                let latest_s = job.start_s.get().unwrap_or(i64::MAX);
                job.eligible_s = job.eligible_s.max(freed_s).min(latest_s);
            }
            None => {}
        }
        jobs[kept] = job;
        kept += 1;
    }
    jobs.truncate(kept);
    jobs.sort_by_key(|job| (job.submit_s, job.id, job.start_s));
    repeats
}

#[cfg(test)]
mod tests {
    use super::super::trace_job::{JobFate, JobNumber};
    use super::*;

    fn job(number: u64, submit_s: i64, start_s: Option<i64>, fate: JobFate) -> TraceJob {
        let end_s = match fate {
            JobFate::Ended => start_s.map(|start_s| start_s + 50),
            JobFate::Cancelled => Some(submit_s + 70),
            JobFate::Pending | JobFate::Running => None,
        };
        TraceJob {
            id: JobNumber::single(number),
            user: 1,
            submit_s,
            eligible_s: submit_s,
            start_s: start_s.into(),
            end_s: end_s.into(),
            run_s: end_s.and(start_s).map(|_| 50).into(),
            limit_s: 60.into(),
            nodes: 1,
            fate,
        }
    }

    #[test]
    fn merging_keeps_the_most_complete_row() {
        let ended = job(1, 10, Some(20), JobFate::Ended);
        let cancelled = job(2, 11, None, JobFate::Cancelled);
        let mut jobs = vec![
            job(2, 11, None, JobFate::Pending),
            ended,
            job(1, 10, None, JobFate::Pending),
            cancelled,
            job(1, 10, Some(20), JobFate::Running),
            ended,
        ];
        assert_eq!(merge_exports(&mut jobs), 4);
        assert_eq!(jobs, [ended, cancelled]);
    }

    #[test]
    fn each_run_of_a_requeued_job_is_a_job() {
        let mut jobs = vec![
            job(1, 10, Some(100), JobFate::Ended),
            job(1, 10, Some(20), JobFate::Ended),
            job(1, 200, Some(300), JobFate::Running),
        ];
        assert_eq!(merge_exports(&mut jobs), 0);
        let eligible: Vec<i64> = jobs.iter().map(|job| job.eligible_s).collect();
        assert_eq!(eligible, [10, 70, 200]);
    }
}
