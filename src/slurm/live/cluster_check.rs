//! Examines what a user can know of a cluster, and which limits a chain meets there.

use std::collections::BTreeSet;

use super::obstacle::ClusterListing;
use super::past_runs::PastRuns;
use super::slurm_programs::{plan_script, query_limits, query_priority_factors};
use super::slurm_settings::SlurmSettings;
use super::slurm_state::QueueState;
use poolcast_base::finding::Finding;
use poolcast_base::output::{counted, time_span};

/// A cluster, as a user sees it.
#[derive(Debug)]
pub struct ClusterCheck<'a> {
    /// What Slurm's programs have listed.
    pub cluster: ClusterListing<'a>,
    /// The settings of the cluster.
    pub settings: &'a SlurmSettings,
    /// The partition.
    pub partition: &'a str,
    /// The runs that have ended, from the accounting.
    pub past: &'a PastRuns,
    /// The name of the user.
    pub user: &'a str,
    /// The time of the listing, epoch seconds.
    pub now_s: i64,
}

impl ClusterCheck<'_> {
    /// Examines the cluster. Asks Slurm for limits, for factors of priorities and for a plan; submits nothing.
    pub fn findings(&self) -> Vec<Finding> {
        vec![
            self.queue_finding(),
            self.accounting_finding(),
            self.nodes_finding(),
            self.priority_finding(),
            self.limits_finding(),
            self.plan_finding(),
        ]
    }

    fn queue_finding(&self) -> Finding {
        if self.settings.hides_jobs(rustix::process::getuid().as_raw()) {
            let words =
                "PrivateData hides the jobs of other users from you: their queue is unknown";
            let todo = "as an administrator, in slurm.conf: PrivateData without `jobs`";
            return Finding::bad("queue", words, todo);
        }
        let jobs = self.cluster.queue.jobs.iter();
        let alive = jobs.filter(|job| job.state != QueueState::Ended);
        let users: BTreeSet<&str> = alive.clone().map(|job| job.user.as_str()).collect();
        let (jobs, users) = (counted(alive.count(), "job"), counted(users.len(), "user"));
        Finding::good(
            "queue",
            format!("`squeue` shows all users: {jobs} of {users}"),
        )
    }

    fn accounting_finding(&self) -> Finding {
        let runs = &self.past.runs;
        let users: BTreeSet<u64> = runs.iter().map(|run| run.user).collect();
        let (runs, known) = (counted(runs.len(), "run"), counted(users.len(), "user"));
        let words =
            format!("`sacct` lists {runs} of {known} in 30 days: run times are drawn from these");
        match users.len() {
            0 => Finding::fact(
                "accounting",
                "no past runs are known: jobs are assumed to run to their limits",
            ),
            1 => Finding::fact(
                "accounting",
                format!("{words} (PrivateData in slurmdbd.conf may hide others)"),
            ),
            _ => Finding::good("accounting", words),
        }
    }

    fn nodes_finding(&self) -> Finding {
        let (partition, nodes) = (self.partition, self.cluster.nodes);
        let hosts = nodes.and_then(|nodes| nodes.hosts_in_partition(partition));
        let usable = hosts.map_or(0, BTreeSet::len);
        let limit = self.settings.max_time(partition).unwrap_or("UNLIMITED");
        let words = format!(
            "{} of the partition {partition} can be used; MaxTime={limit}",
            counted(usable, "node")
        );
        match self.settings.sharing(partition) {
            _ if usable == 0 => Finding::bad("nodes", words, "sinfo --Node --long"),
            None => Finding::good("nodes", format!("{words}; each job has whole nodes")),
            Some(why) => Finding::good("nodes", format!("{words}; jobs share nodes ({why})")),
        }
    }

    fn priority_finding(&self) -> Finding {
        let kind = &self.settings.priority_type;
        if kind != "priority/multifactor" {
            let words = format!("{kind}: jobs wait in the order of their submission");
            return Finding::good("priority", words);
        }
        let factors = match query_priority_factors() {
            Ok(()) => "`sprio` and `sshare` show its factors".to_owned(),
            Err(fault) => format!("its factors cannot be read ({fault})"),
        };
        let words = format!("{kind}: jobs wait in the order that `squeue` lists; {factors}");
        if self.settings.fair_share_weight == 0 {
            return Finding::good("priority", words);
        }
        let fair_share = "fair-share lets later jobs pass, which no forecast foresees";
        Finding::fact("priority", format!("{words}; {fair_share}"))
    }

    fn limits_finding(&self) -> Finding {
        if !self.settings.enforces_limits {
            let words = "accounts and users have none (AccountingStorageEnforce)";
            return Finding::good("limits", words);
        }
        match query_limits(self.user) {
            Ok((accounts, qualities)) => limits_finding(&accounts, &qualities),
            Err(fault) => Finding::fact("limits", format!("your limits are unknown: {fault}")),
        }
    }

    fn plan_finding(&self) -> Finding {
        let jobs = self.cluster.queue.jobs.iter();
        let pending = jobs.filter(|job| job.state == QueueState::Pending);
        let planned = pending.clone().filter(|job| job.start_s > Some(self.now_s));
        let (planned, pending) = (planned.count(), counted(pending.count(), "waiting job"));
        let listed = format!("`squeue --start` has a start for {planned} of {pending}");
        let partition = format!("--partition={}", self.partition);
        match plan_script(&[partition, "--wrap=true".to_owned()]) {
            Ok(plan) => {
                let wait = time_span((plan.start_s - self.now_s).max(0) * 1000);
                let words = format!("`sbatch --test-only` plans a small job in {wait}; {listed}");
                Finding::good("plan", words)
            }
            Err(fault) => Finding::bad(
                "plan",
                format!(
                    "{fault}: a chain asks it before it submits a link by a forecast; {listed}"
                ),
                "if your jobs need an account: export SBATCH_ACCOUNT=NAME, and check again",
            ),
        }
    }
}

/// Says what a user's smallest limits mean for a chain. `accounts` are rows `QOS|MaxJobs|MaxSubmitJobs`, and `qualities`
/// are rows `NAME|MaxJobsPU|MaxSubmitJobsPU`; the ones that the user may use count.
fn limits_finding(accounts: &str, qualities: &str) -> Finding {
    let names = accounts.lines().filter_map(|row| row.split('|').next());
    let own: BTreeSet<&str> = names.flat_map(|names| names.split(',')).collect();
    let is_own = |row: &&str| row.split('|').next().is_some_and(|name| own.contains(name));
    let rows = accounts.lines().chain(qualities.lines().filter(is_own));
    let smallest = |column: usize| {
        let fields = rows.clone().filter_map(|row| row.split('|').nth(column));
        fields.filter_map(|field| field.parse::<u32>().ok()).min()
    };
    let (running, submitted) = (smallest(1), smallest(2));
    let shown = |limit: Option<u32>| limit.map_or("none".to_owned(), |most| most.to_string());
    let words = format!(
        "MaxJobs {}, MaxSubmitJobs {}",
        shown(running),
        shown(submitted)
    );
    match (running, submitted) {
        (_, Some(0..=1)) => Finding::bad(
            "limits",
            format!("{words}: a link is submitted only once the one before has ended"),
            "ask an administrator for MaxSubmitJobs=2",
        ),
        (Some(0..=1), _) => Finding::fact(
            "limits",
            format!("{words}: a link starts only once the one before has ended"),
        ),
        _ => Finding::good("limits", format!("{words}: a chain has two jobs at a time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_limits_of_the_user_count() {
        for (accounts, qualities, words) in [
            (
                "normal||",
                "normal||",
                "MaxJobs none, MaxSubmitJobs none: a chain has two",
            ),
            (
                "normal||1",
                "",
                "MaxJobs none, MaxSubmitJobs 1: a link is submitted only",
            ),
            (
                "normal,long|9|8\nnormal|7|",
                "long|1|20\nother|1|1",
                "MaxJobs 1, MaxSubmitJobs 8: a link starts only",
            ),
            ("", "normal|1|1", "MaxJobs none, MaxSubmitJobs none"),
            ("normal|x", "normal", "MaxJobs none, MaxSubmitJobs none"),
        ] {
            let finding = limits_finding(accounts, qualities);
            assert!(finding.words.starts_with(words), "{finding:?}");
        }
    }
}
