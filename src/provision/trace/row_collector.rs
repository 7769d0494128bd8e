//! Where the rows of a file go, whatever its form: jobs, and what is wrong with others.

use std::collections::HashMap;

use super::row_fault::{RowFault, RowFaults};
use super::trace_job::TraceJob;
use poolcast_base::salt::hash_name;

/// Names of users, hashed; none is kept.
#[derive(Debug)]
pub(super) struct UserHashes {
    salt: String,
    known: HashMap<String, u64>,
}

impl UserHashes {
    pub(super) fn new(salt: &str) -> UserHashes {
        UserHashes {
            salt: salt.to_owned(),
            known: HashMap::new(),
        }
    }

    /// The hash of `name`, as [`hash_user`] has it.
    pub(super) fn hash(&mut self, name: &str) -> u64 {
        if let Some(hash) = self.known.get(name) {
            return *hash;
        }
        let hash = hash_user(&self.salt, name);
        self.known.insert(name.to_owned(), hash);
        hash
    }
}

/// The hash of the user `name`; 0 stands for one that is not known.
pub(in crate) fn hash_user(salt: &str, name: &str) -> u64 {
    if name.is_empty() {
        return 0;
    }
    hash_name(salt, name.as_bytes()).max(1)
}

/// What a file comes to.
#[derive(Debug, Default)]
pub(super) struct RowCollector {
    pub(super) jobs: Vec<TraceJob>,
    pub(super) faults: RowFaults,
    /// Rows with a job, sound or not.
    pub(super) rows: u64,
    /// Rows of steps of jobs, and of bursts of checkpointed ones.
    pub(super) step_rows: u64,
    /// Jobs whose time limit is not known, for which their run time stands.
    pub(super) limits_from_runs: u64,
}

impl RowCollector {
    /// Takes the jobs of the row at `line`, or what is wrong with it.
    pub(super) fn add(&mut self, line: u64, found: Result<Vec<TraceJob>, RowFault>) {
        self.rows += 1;
        match found {
            Ok(jobs) => self.jobs.extend(jobs),
            Err(fault) => self.faults.add(fault, line),
        }
    }
}
