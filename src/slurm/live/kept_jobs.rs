//! Finds pending jobs that something keeps waiting which Slurm does not list: there has been room for them for minutes.

use std::collections::BTreeSet;

use anyhow::Result;

use super::advice_settings::{AdviceSettings, wait_forecast};
use super::listed_job::ListedJob;
use super::live_queue::{AskedPlace, ClusterView, LOOKED_AT_WITHIN_S, LiveQueue};

/// The jobs that something keeps which is not listed, as indices of the listing's jobs.
#[derive(Debug, Default)]
pub(super) struct KeptJobs {
    /// Jobs for which there is room beside all others.
    pub(super) jobs: BTreeSet<usize>,
    /// Jobs for which there is room only if those do not compete.
    behind: BTreeSet<usize>,
}

impl KeptJobs {
    /// Finds these jobs in the partition of `job`. By all that is listed they would start at once, and they have
    /// waited for so long that Slurm has looked at them.
    ///
    /// # Errors
    /// Fails if the number of nodes is unknown.
    pub(super) fn find(
        view: &ClusterView<'_>,
        job: &ListedJob,
        settings: &AdviceSettings,
    ) -> Result<KeptJobs> {
        let mut kept = KeptJobs::default();
        kept.jobs = kept.beside(view, job, settings)?;
        // Something may keep these, too, or Slurm may keep the room for the others: nobody knows. They still compete,
        // because one wrong guess would else empty the whole queue.
        if !kept.jobs.is_empty() {
            kept.behind = kept.beside(view, job, settings)?;
        }
        Ok(kept)
    }

    /// Returns the jobs for which there is room while the kept ones do not compete.
    fn beside(
        &self,
        view: &ClusterView<'_>,
        job: &ListedJob,
        settings: &AdviceSettings,
    ) -> Result<BTreeSet<usize>> {
        let queue = LiveQueue::new(view, job, job.end_s, AskedPlace::Nowhere, &self.jobs)?;
        let starts = wait_forecast(view, &queue, settings).starts_at_once(&queue.moment);
        let started = queue.rows.iter().zip(starts);
        let rows = started.filter_map(|(row, starts)| starts.then_some(*row));
        let is_kept = |row: &usize| {
            let job = &view.listing.jobs[*row];
            let waits_s = view.now_s - job.eligible_s.unwrap_or(job.submit_s);
            // Slurm knows when a job starts that it has planned.
            let is_planned = job.start_s.is_some_and(|start_s| start_s > view.now_s);
            waits_s > LOOKED_AT_WITHIN_S && !is_planned
        };
        Ok(rows.filter(is_kept).collect())
    }

    /// Returns the number of these jobs that wait in `queue`.
    pub(super) fn count_in(&self, queue: &LiveQueue) -> usize {
        let rows = queue.rows.iter();
        rows.filter(|row| self.jobs.contains(row)).count()
    }

    /// Returns true if something keeps `job`, or may keep it.
    pub(super) fn has(&self, view: &ClusterView<'_>, job: &ListedJob) -> bool {
        let mut rows = self.jobs.iter().chain(&self.behind);
        rows.any(|row| view.listing.jobs[*row].name() == job.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{NoAdviceReason, SubmissionAdvice, advise_submission};
    use crate::live::{NodeListing, PastRuns, QueueListing, StartAnswer, forecast_start};
    use poolcast_base::salt::OwnerSalt;
    use poolcast_provision::replay::SlurmReplay;

    const NOW_S: i64 = 1_700_000_000;

    /// A row of `squeue`: a job with this state, number of nodes, and minutes since it became eligible.
    fn row(id: u64, state: &str, nodes: u32, minutes: i64, more: &str) -> String {
        let since_s = NOW_S - 60 * minutes;
        format!(
            r#"{{"job_id": {id}, "job_state": "{state}", "state_reason": "Priority", "user_name": "u{id}", "partition": "all",
            "node_count": {nodes}, "time_limit": 60, "submit_time": {since_s}, "eligible_time": {since_s}, "priority": {},
            "comment": ""{more}}}"#,
            1000 - id
        )
    }

    /// A queue on four nodes, with `rows` beside a job on two nodes that runs for another 50 minutes.
    fn listing(rows: &[String]) -> QueueListing {
        let run = format!(
            r#", "nodes": "n[1-2]", "start_time": {}, "end_time": {}"#,
            NOW_S - 600,
            NOW_S + 3000
        );
        let run = row(1, "RUNNING", 2, 20, &run);
        let rows = [&[run], rows].concat().join(",");
        QueueListing::parse(format!("{{\"jobs\": [{rows}]}}").as_bytes()).expect("read")
    }

    fn with_view<T>(rows: &[String], check: impl Fn(&ClusterView<'_>, &AdviceSettings) -> T) -> T {
        let nodes = "NODELIST|STATE|PARTITION\nn[1-4]|idle|all\n";
        let view = ClusterView {
            now_s: NOW_S,
            listing: &listing(rows),
            nodes: Some(&NodeListing::parse(nodes.as_bytes()).expect("read")),
            settings: None,
            node_count: None,
            past: &PastRuns::default(),
            salt: &OwnerSalt::random().expect("a salt"),
            history_runs: 0,
        };
        let settings = AdviceSettings {
            replay: SlurmReplay {
                nodes: Vec::new(),
                max_jobs_per_user: Some(0),
                bf_interval_s: 1,
                bf_resolution_s: 1,
                bf_window_s: 86_400,
                bf_max_job_test: 100,
                turnaround_s: 0,
                priority_weight_age: 1,
                priority_weight_job_size: 0,
                priority_max_age_s: 86_400,
            },
            cost_ratio: 1.0,
            draws: 4,
            seed: 1,
            length_s: None,
            step_s: 60,
        };
        check(&view, &settings)
    }

    /// The start of the job `id`, in seconds from now, or why there is no forecast; and how many jobs are kept.
    fn start(rows: &[String], id: &str) -> (Result<i64, NoAdviceReason>, usize) {
        with_view(rows, |view, settings| {
            let job = view.listing.find(id).expect("listed");
            let forecast = forecast_start(view, job, settings, &[], |_, _| None).expect("a queue");
            let start = match forecast.answer {
                StartAnswer::Expected(times) => Ok(times.start_p50_s - NOW_S),
                StartAnswer::None { reason } => Err(reason),
                StartAnswer::Started => panic!("it has started"),
            };
            (start, forecast.queue.kept)
        })
    }

    fn advice(rows: &[String]) -> SubmissionAdvice {
        with_view(rows, |view, settings| {
            let job = view.listing.find("1").expect("listed");
            advise_submission(view, job, settings, None).expect("a queue")
        })
    }

    #[test]
    fn jobs_that_something_keeps_do_not_delay_others() {
        let kept = row(2, "PENDING", 2, 300, "");
        let new = row(3, "PENDING", 2, 5, "");
        // The first job would have started long ago, and the second one is new.
        assert_eq!(start(&[kept.clone(), new.clone()], "3"), (Ok(0), 1));
        assert_eq!(
            start(&[kept.clone(), new.clone()], "2").0,
            Err(NoAdviceReason::ShouldRun)
        );
        // Both are new.
        let other = row(2, "PENDING", 2, 5, "");
        assert_eq!(start(&[other, new.clone()], "3"), (Ok(3000), 0));
        // Slurm has planned the first one, or has had no time to look at what has become free.
        let planned = row(
            2,
            "PENDING",
            2,
            300,
            &format!(r#", "start_time": {}"#, NOW_S + 90),
        );
        assert_eq!(start(&[planned, new.clone()], "3"), (Ok(3000), 0));
        let end = format!(
            r#", "nodes": "n[3-4]", "start_time": {}, "end_time": {}"#,
            NOW_S - 900,
            NOW_S - 60
        );
        let ended = row(9, "COMPLETED", 2, 15, &end);
        assert_eq!(start(&[kept.clone(), new, ended], "3"), (Ok(3000), 0));

        // There is room for the second one once the first one does not compete: nobody knows what keeps it.
        let behind = row(3, "PENDING", 2, 200, "");
        let last = row(4, "PENDING", 2, 5, "");
        let rows = [kept, behind, last];
        assert_eq!(start(&rows, "3"), (Err(NoAdviceReason::ShouldRun), 1));
        assert_eq!(start(&rows, "4"), (Ok(3000), 1));
    }

    #[test]
    fn successors_are_submitted_as_if_all_jobs_competed() {
        let advice = advice(&[row(2, "PENDING", 2, 300, "")]);
        assert_eq!((advice.queue.kept, advice.queue.waiting), (1, 0));
        assert_eq!(advice.expected.map(|expected| expected.wait_s), Some(3000));
    }
}
