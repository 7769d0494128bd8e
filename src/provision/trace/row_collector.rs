//! Collects the rows of a source file of any format: the jobs, and the faults of rejected rows.

use std::collections::HashMap;

use super::row_fault::{RowFault, RowFaults};
use super::trace_job::TraceJob;
use poolcast_base::salt::hash_name;

/// Maximum number of waiting array elements in a file. A row of a few bytes may name very many.
const MAX_ELEMENTS: usize = 500_000;

/// Cache of user hashes. User names never leave it.
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

    /// Returns the hash of `name`, like [`hash_user`].
    pub(super) fn hash(&mut self, name: &str) -> u64 {
        if let Some(hash) = self.known.get(name) {
            return *hash;
        }
        let hash = hash_user(&self.salt, name);
        self.known.insert(name.to_owned(), hash);
        hash
    }
}

/// Returns the salted hash of the user `name`. The result is 0 for an unknown user and only then.
pub fn hash_user(salt: &str, name: &str) -> u64 {
    if name.is_empty() {
        return 0;
    }
    hash_name(salt, name.as_bytes()).max(1)
}

/// The content of a file, as collected from its rows.
#[derive(Debug, Default)]
pub(super) struct RowCollector {
    pub(super) jobs: Vec<TraceJob>,
    pub(super) faults: RowFaults,
    /// Rows about a job, valid or not.
    pub(super) rows: u64,
    /// Skipped rows: steps of jobs, and bursts of checkpointed jobs.
    pub(super) step_rows: u64,
    /// Jobs without a time limit in the file, for which the run time is used as the limit.
    pub(super) limits_from_runs: u64,
    /// Jobs from rows that name several array elements.
    elements: usize,
}

impl RowCollector {
    /// Adds the jobs of the row at `line`, or its fault.
    pub(super) fn add(&mut self, line: u64, found: Result<Vec<TraceJob>, RowFault>) {
        self.rows += 1;
        match found {
            Ok(jobs) if self.elements + jobs.len() > MAX_ELEMENTS && jobs.len() > 1 => {
                self.faults.add(RowFault::ManyElements, line);
            }
            Ok(jobs) => {
                if jobs.len() > 1 {
                    self.elements += jobs.len();
                }
                self.jobs.extend(jobs);
            }
            Err(fault) => self.faults.add(fault, line),
        }
    }
}
