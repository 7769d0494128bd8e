//! Number of jobs that a user ran at once. A limit per user set by the site shows as a number that
//! several users reach and nobody exceeds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::trace_job::TraceJob;

/// Minimum number of users who must reach the maximum before it counts as a limit.
const MIN_LIMIT_USERS: usize = 5;

/// The largest number of jobs that a user ran at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BusiestUsers {
    /// Maximum number of jobs that any user ran at once.
    pub jobs: u32,
    /// Users who reached that maximum.
    pub users: usize,
}

impl BusiestUsers {
    /// Returns the limit per user that the site has probably set.
    pub fn likely_limit(&self) -> Option<u32> {
        Some(self.jobs).filter(|_| self.users >= MIN_LIMIT_USERS)
    }
}

/// Finds the maximum number of jobs that any user ran at once, and counts the users who reached it.
pub fn busiest_users(jobs: &[TraceJob]) -> BusiestUsers {
    let mut changes: Vec<(i64, i32, u64)> = Vec::with_capacity(2 * jobs.len());
    for job in jobs.iter().filter(|job| job.user != 0) {
        let Some(start_s) = job.start_s.get() else {
            continue;
        };
        let end_s = job.end_s.get().unwrap_or(i64::MAX);
        if end_s > start_s {
            changes.push((start_s, 1, job.user));
            changes.push((end_s, -1, job.user));
        }
    }
    // Within one second, ends sort before starts, because they make room.
    changes.sort_unstable();

    let mut running: BTreeMap<u64, (i32, i32)> = BTreeMap::new();
    for (_, change, user) in changes {
        let (now, most) = running.entry(user).or_insert((0, 0));
        *now += change;
        *most = (*most).max(*now);
    }
    let jobs = running.values().map(|(_, most)| *most).max().unwrap_or(0);
    let users = running.values().filter(|(_, most)| *most == jobs).count();
    BusiestUsers {
        jobs: jobs as u32,
        users,
    }
}
