//! How many jobs a user ran at once: a limit that a site sets shows as the number that several users
//! reach, and none exceeds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::trace_job::TraceJob;

/// So many users have to reach a number, and none to exceed it, before it is taken for a limit.
const LEAST_USERS: usize = 5;

/// A user's running jobs at their most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BusiestUsers {
    /// The most jobs that any user ran at once.
    pub jobs: u32,
    /// How many users ran as many.
    pub users: usize,
}

impl BusiestUsers {
    /// The limit that the site seems to set.
    pub fn likely_limit(&self) -> Option<u32> {
        Some(self.jobs).filter(|_| self.users >= LEAST_USERS)
    }
}

/// The most jobs that any user ran at once, and how many users ran as many.
pub(in crate) fn busiest_users(jobs: &[TraceJob]) -> BusiestUsers {
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
    // Of one second ends come first, as they make room.
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
