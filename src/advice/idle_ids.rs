//! Names idle jobs in a command that people may paste later: by a constraint that is false for every
//! other job, and for a named job that has started since.

use super::held_ids::{MAX_IDS, is_one_of};
use super::job_command::JobId;
use super::unheld_job::UnheldJob;

/// Maximum number of ranges of ids in one command.
const MAX_RANGES: usize = 30;

/// An idle job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IdleId {
    pub(super) job: JobId,
    /// Time since which it has been idle, epoch s; 0 if it is unknown.
    pub(super) since_s: i64,
}

impl IdleId {
    pub(super) fn of(job: &UnheldJob) -> IdleId {
        IdleId {
            job: job.job,
            since_s: job.since_s,
        }
    }
}

/// Two ranges, of clusters and of procs. All jobs in both are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IdRange {
    clusters: (i32, i32),
    procs: (i32, i32),
}

/// Returns the commands `program JOBS arguments`, which affect exactly the `members` that are still
/// idle, and have been since they were seen. Returns none if it is unknown since when one of them has
/// been idle.
pub(super) fn commands(program: &str, mut members: Vec<IdleId>, arguments: &str) -> Vec<String> {
    members.sort_unstable();
    if members.iter().any(|one| one.since_s <= 0) {
        return Vec::new();
    }
    let Some(latest_s) = members.iter().map(|one| one.since_s).max() else {
        return Vec::new();
    };
    // A job that starts and is idle again has a later time.
    let command = |jobs: &str| {
        format!(
            "{program} -constraint 'JobStatus==1 && EnteredCurrentStatus<={latest_s} && {jobs}'{arguments}"
        )
    };
    let jobs: Vec<JobId> = members.iter().map(|one| one.job).collect();
    let ranges = ranges(&jobs);
    if ranges.len() > 1 && jobs.len() <= MAX_IDS {
        let ids: Vec<String> = jobs.iter().map(ToString::to_string).collect();
        return vec![command(&is_one_of(&ids.join(" ")))];
    }
    let parts = ranges.chunks(MAX_RANGES);
    parts.map(|part| command(&any_of(part))).collect()
}

/// Splits `jobs`, which are sorted, into ranges in which every id is one of them.
fn ranges(jobs: &[JobId]) -> Vec<IdRange> {
    let mut ranges: Vec<IdRange> = Vec::new();
    let follows =
        |a: &JobId, b: &JobId| a.cluster == b.cluster && a.proc.checked_add(1) == Some(b.proc);
    for run in jobs.chunk_by(follows) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let procs = (first.proc, last.proc);
        match ranges.last_mut() {
            Some(range)
                if range.procs == procs
                    && range.clusters.1.checked_add(1) == Some(first.cluster) =>
            {
                range.clusters.1 = first.cluster;
            }
            _ => ranges.push(IdRange {
                clusters: (first.cluster, first.cluster),
                procs,
            }),
        }
    }
    ranges
}

fn any_of(ranges: &[IdRange]) -> String {
    let texts: Vec<String> = ranges.iter().map(|range| range.expression()).collect();
    match &texts[..] {
        [only] => only.clone(),
        _ => format!("({})", texts.join(" || ")),
    }
}

impl IdRange {
    fn expression(&self) -> String {
        let within = |name: &str, (first, last): (i32, i32)| {
            if first == last {
                format!("{name}=={first}")
            } else {
                format!("{name}>={first} && {name}<={last}")
            }
        };
        let clusters = within("ClusterId", self.clusters);
        format!("{clusters} && {}", within("ProcId", self.procs))
    }

    #[cfg(test)]
    fn has(&self, job: JobId) -> bool {
        let is_in = |number, (first, last)| (first..=last).contains(&number);
        is_in(job.cluster, self.clusters) && is_in(job.proc, self.procs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hold_commands(members: Vec<IdleId>) -> Vec<String> {
        commands("condor_hold", members, "")
    }

    fn idle(cluster: i32, proc: i32) -> IdleId {
        IdleId {
            job: JobId { cluster, proc },
            since_s: 100 + i64::from(proc),
        }
    }

    #[test]
    fn commands_name_exactly_the_jobs() {
        let guard = |latest_s| {
            format!("condor_hold -constraint 'JobStatus==1 && EnteredCurrentStatus<={latest_s} && ")
        };
        assert_eq!(
            hold_commands(vec![idle(7, 2)]),
            [guard(102) + "ClusterId==7 && ProcId==2'"]
        );
        assert_eq!(
            hold_commands(vec![idle(8, 0), idle(7, 2)]),
            [guard(102) + "stringListMember(strcat(ClusterId,\".\",ProcId),\"7.2 8.0\")'"]
        );
        let many = (0..20).filter(|proc| *proc != 9).map(|proc| idle(7, proc));
        assert_eq!(
            hold_commands(many.collect()),
            [guard(119)
                + "(ClusterId==7 && ProcId>=0 && ProcId<=8 || ClusterId==7 && ProcId>=10 && ProcId<=19)'"]
        );
        let clusters = (1..=400).map(|cluster| idle(cluster, 0)).collect();
        assert_eq!(
            hold_commands(clusters),
            [guard(100) + "ClusterId>=1 && ClusterId<=400 && ProcId==0'"]
        );
        assert_eq!(
            commands("condor_qedit", vec![idle(7, 2)], " RequestMemory 128"),
            [
                guard(102).replace("hold", "qedit")
                    + "ClusterId==7 && ProcId==2' RequestMemory 128"
            ]
        );
        let scattered = (0..100).map(|number| idle(2 * number, 0)).collect();
        assert_eq!(hold_commands(scattered).len(), 4);
    }

    #[test]
    fn jobs_of_unknown_time_get_no_command() {
        let unknown = IdleId {
            since_s: 0,
            ..idle(1, 0)
        };
        assert_eq!(hold_commands(vec![unknown, idle(1, 1)]), [""; 0]);
        assert_eq!(hold_commands(Vec::new()), [""; 0]);
    }

    proptest! {
        #[test]
        fn ranges_have_their_members_alone(
            members in prop::collection::btree_set((0..6, 0..6), 1..30),
        ) {
            let job = |(cluster, proc)| JobId { cluster, proc };
            let jobs: Vec<JobId> = members.iter().copied().map(job).collect();
            let ranges = ranges(&jobs);
            for number in 0..36 {
                let one = job((number / 6, number % 6));
                let holders = ranges.iter().filter(|range| range.has(one)).count();
                prop_assert_eq!(holders, usize::from(jobs.contains(&one)), "{:?}", one);
            }
        }
    }
}
