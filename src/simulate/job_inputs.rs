//! The input files of jobs, as their ads list them and as hold reasons name them.

use super::hold_cause::HoldCause;
use super::pool::{SimulatedPool, shared_name};
use super::pool_user::PoolUser;
use super::submissions::JobCluster;

/// Factor between the number of a cluster and the numbers in the URLs that its jobs get wrong. No cluster
/// has as many jobs.
const WRONG_PARTS: u32 = 1000;

impl JobCluster {
    /// The file in the owner's home directory that job `proc` reads. Clusters read the same files, but a file
    /// that is missing is no other cluster's. It is that of one job unless all jobs of the cluster miss it.
    pub(super) fn home_file(&self, proc: u32) -> String {
        let (directory, file, id) = (&self.iwd, self.file, self.id);
        if self.fault != Some(HoldCause::MissingInput) {
            format!("{directory}/in/{file}")
        } else if self.supply.is_some() {
            format!("{directory}/in/{id}/{file}")
        } else {
            format!("{directory}/in/{id}/{proc}/{file}")
        }
    }

    /// The file on the owner's shared file system.
    pub(super) fn mount_file(&self, pool: &SimulatedPool, user: &PoolUser) -> String {
        let mount = shared_name(&pool.mounts, user.mount, "project");
        format!("/project/{mount}/{}", self.file)
    }

    /// The URL in `origin` from which job `proc` gets its input, or to which it sends its output. A wrong
    /// address is in a directory from which other jobs read.
    pub(super) fn url(&self, origin: &str, user: &PoolUser, proc: u32, is_wrong: bool) -> String {
        let part = if is_wrong {
            WRONG_PARTS * self.id + proc
        } else {
            proc
        };
        let (name, directory) = (&user.name, &self.directory);
        format!("osdf:///{origin}/{name}/{directory}/part{part}.tar.gz")
    }

    /// The value of `TransferInput` for job `proc`, which has the permanent fault `fault`.
    pub(super) fn transfer_input(
        &self,
        pool: &SimulatedPool,
        user: &PoolUser,
        proc: u32,
        fault: Option<HoldCause>,
    ) -> String {
        let mut files = Vec::new();
        if let Some(origin) = user.input {
            let is_wrong = fault == Some(HoldCause::WrongUrl);
            files.push(self.url(pool.origins[origin].name, user, proc, is_wrong));
        }
        if self.reads_mount {
            files.push(self.mount_file(pool, user));
        }
        if !self.reads_mount || self.fault == Some(HoldCause::MissingInput) {
            let file = self.home_file(proc);
            let in_iwd = file
                .strip_prefix(&self.iwd)
                .and_then(|rest| rest.strip_prefix('/'));
            files.push(in_iwd.unwrap_or(&file).to_owned());
        }
        files.join(", ")
    }
}
