//! The memory that the next submission of a batch should request, so that few GiB hours are reserved
//! and no job is held for memory.
//!
//! HTCondor starts a job once more with `retry_request_memory` if it used more than
//! `request_memory`, and holds it only if that is not enough, either (`condor_submit`'s manual).

use std::collections::BTreeSet;

use poolcast_base::output;
use serde::Serialize;

/// Largest request of memory in a job ad that is believed, MB.
pub(super) const MAX_REQUEST_MB: u64 = 1 << 32;

/// Maximum share of jobs that may need a second run. A retry is meant for few jobs: HTCondor's
/// documentation names 20 %.
const MAX_RETRY_SHARE: f64 = 0.2;

/// Share of its request that a job uses at least, unless the request is far too high.
const HIGH_REQUEST_USE: f64 = 0.15;

/// Share of the GiB hours that a retry must save. Otherwise one request for all is simpler.
const MIN_SAVED_SHARE: f64 = 0.05;

/// GiB hours from which on they are compared.
const MIN_SHOWN_GIB_H: f64 = 0.1;

/// The memory that the jobs of a batch need, and what they would have reserved with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryPlan {
    /// Clusters of the batch that were asked about.
    pub clusters: BTreeSet<i32>,
    /// Jobs of the batch that the plan follows from: those that succeeded, and those that were held
    /// for memory.
    pub jobs: usize,
    /// Jobs among them that were held for memory and never succeeded. Their need is assumed to be
    /// 1.5 times what they used or requested.
    pub assumed_jobs: usize,
    /// `request_memory`, MB.
    pub request_mb: u64,
    /// Jobs for which that is enough.
    pub fitting_jobs: usize,
    /// `retry_request_memory`, MB, which is enough for all jobs; absent if `request_mb` is.
    pub retry_mb: Option<u64>,
    /// Memory times run time that the jobs would have reserved with these requests, second runs
    /// included, GiB hours.
    pub planned_gib_h: f64,
    /// Memory times run time that the runs of the jobs did reserve, GiB hours; absent if their
    /// requests are unknown.
    pub requested_gib_h: Option<f64>,
    /// Memory that each of the jobs used, MB.
    #[serde(skip)]
    pub(super) used_mb: Vec<u64>,
}

/// The need of one job of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobNeed {
    /// A request that is enough, MB.
    pub(super) need_mb: u64,
    /// Memory that it used, MB; one MB more than is known if it was held for memory.
    pub(super) used_mb: u64,
    /// Duration of a whole run, ms.
    pub(super) run_ms: u64,
    /// Duration of a run that ends because its request is exceeded, ms.
    pub(super) exceeded_ms: u64,
}

/// The requests for a first and a second run.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryRequests {
    pub(super) first_mb: u64,
    /// Request of the second run; `None` if no job needs one.
    pub(super) retry_mb: Option<u64>,
    /// Memory times run time that all jobs reserve, MB ms.
    pub(super) cost_mb_ms: f64,
}

/// Returns the requests with which `needs`, in ascending order, reserve the least memory times run
/// time: one request for all jobs unless a second one for few of them saves much.
pub(super) fn cheapest_requests(needs: &[JobNeed]) -> Option<MemoryRequests> {
    let largest_mb = needs.last()?.need_mb;
    let all_ms: f64 = needs.iter().map(|need| need.run_ms as f64).sum();
    let one = MemoryRequests {
        first_mb: largest_mb,
        retry_mb: None,
        cost_mb_ms: largest_mb as f64 * all_ms,
    };
    let mut best = one;
    let (mut fitting_ms, mut exceeded_ms) = (all_ms, 0.0);
    let mut over = 0;
    for alike in needs.chunk_by(|a, b| a.need_mb == b.need_mb).rev() {
        let first_mb = alike[0].need_mb;
        if over as f64 > MAX_RETRY_SHARE * needs.len() as f64 {
            break;
        }
        // The jobs above `first_mb` run twice.
        let first = first_mb as f64 * (fitting_ms + exceeded_ms);
        let cost_mb_ms = first + largest_mb as f64 * (all_ms - fitting_ms);
        if over > 0 && cost_mb_ms < best.cost_mb_ms {
            best = MemoryRequests {
                first_mb,
                retry_mb: Some(largest_mb),
                cost_mb_ms,
            };
        }
        over += alike.len();
        fitting_ms -= alike.iter().map(|need| need.run_ms as f64).sum::<f64>();
        exceeded_ms += alike
            .iter()
            .map(|need| need.exceeded_ms as f64)
            .sum::<f64>();
    }
    let saves_much = best.cost_mb_ms <= (1.0 - MIN_SAVED_SHARE) * one.cost_mb_ms;
    Some(if saves_much { best } else { one })
}

impl MemoryPlan {
    /// Counts the jobs that used more than `mb`; `None` if these are so few that a request of `mb`
    /// does for the batch.
    pub(super) fn many_over(&self, mb: u64) -> Option<usize> {
        let over = self.used_mb.iter().filter(|used_mb| **used_mb > mb).count();
        let is_many = over as f64 > MAX_RETRY_SHARE * self.jobs as f64;
        (is_many && self.request_mb > mb).then_some(over)
    }

    /// Returns true if no job used as much as [`HIGH_REQUEST_USE`] of `mb`.
    pub(super) fn is_far_below(&self, mb: u64) -> bool {
        let largest_mb = self.used_mb.iter().max().copied().unwrap_or(mb);
        self.request_mb < mb && (largest_mb as f64) < HIGH_REQUEST_USE * mb as f64
    }

    /// Returns the lines of a submit file that request the memory.
    pub fn submit_lines(&self) -> Vec<String> {
        let first = format!("request_memory = {}", size_words(self.request_mb));
        let retry = self
            .retry_mb
            .map(|mb| format!("retry_request_memory = {}", size_words(mb)));
        std::iter::once(first).chain(retry).collect()
    }

    /// Describes the effect that the plan would have had.
    pub fn outcome_words(&self) -> String {
        let jobs = output::counted(self.jobs, "job");
        let served = match self.retry_mb {
            None => format!("it serves all of {jobs} seen"),
            Some(_) => format!(
                "the first serves {} of {jobs} seen, the second the others",
                output::with_commas(self.fitting_jobs as u64)
            ),
        };
        let is_shown = |gib_h: &f64| *gib_h >= MIN_SHOWN_GIB_H;
        let Some(requested_gib_h) = self.requested_gib_h.filter(is_shown) else {
            return served;
        };
        let less = requested_gib_h - self.planned_gib_h;
        let word = if less < 0.0 { "more" } else { "less" };
        format!(
            "{served}; {} GiB hours {word} than the {} that their runs have reserved",
            hours_words(less.abs()),
            hours_words(requested_gib_h)
        )
    }
}

/// Formats MB in the unit in which they are a whole number.
fn size_words(mb: u64) -> String {
    if mb.is_multiple_of(1024) {
        return format!("{}GB", mb / 1024);
    }
    format!("{mb}MB")
}

/// Formats GiB hours with two or three digits.
fn hours_words(hours: f64) -> String {
    match hours {
        0.0..9.95 => format!("{hours:.1}"),
        _ => output::with_commas(hours.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the needs of `count` jobs with a run of an hour, which ends after half an hour if its
    /// request is exceeded.
    fn alike(count: usize, need_mb: u64) -> Vec<JobNeed> {
        let need = JobNeed {
            need_mb,
            used_mb: need_mb,
            run_ms: 3_600_000,
            exceeded_ms: 1_800_000,
        };
        vec![need; count]
    }

    fn requests(needs: &[Vec<JobNeed>]) -> (u64, Option<u64>, f64) {
        let found = cheapest_requests(&needs.concat()).expect("jobs");
        (found.first_mb, found.retry_mb, found.cost_mb_ms / 3.6e6)
    }

    #[test]
    fn few_large_jobs_get_a_retry() {
        // 90 hours at 1 GB, 10 half hours at 1 GB and 10 hours at 4 GB.
        let cost = 90.0 * 1024.0 + 5.0 * 1024.0 + 10.0 * 4096.0;
        let found = requests(&[alike(90, 1024), alike(10, 4096)]);
        assert_eq!(found, (1024, Some(4096), cost));
    }

    #[test]
    fn many_large_jobs_or_a_small_gain_get_one_request() {
        let cost = 100.0 * 4096.0;
        let found = requests(&[alike(79, 1024), alike(21, 4096)]);
        assert_eq!(found, (4096, None, cost));
        let found = requests(&[alike(90, 3968), alike(10, 4096)]);
        assert_eq!(found, (4096, None, cost));
        assert_eq!(requests(&[alike(3, 128)]), (128, None, 3.0 * 128.0));
        assert!(cheapest_requests(&[]).is_none());
    }

    #[test]
    fn first_request_is_the_cheapest_of_several() {
        let (first_mb, retry_mb, _) = requests(&[alike(85, 1024), alike(10, 1280), alike(5, 8192)]);
        assert_eq!((first_mb, retry_mb), (1280, Some(8192)));
    }

    #[test]
    fn words_name_the_jobs_and_what_is_saved() {
        let plan = MemoryPlan {
            clusters: BTreeSet::from([7]),
            jobs: 100,
            assumed_jobs: 2,
            request_mb: 1024,
            fitting_jobs: 90,
            retry_mb: Some(4224),
            planned_gib_h: 136.3,
            requested_gib_h: Some(400.0),
            used_mb: Vec::new(),
        };
        let lines = ["request_memory = 1GB", "retry_request_memory = 4224MB"];
        assert_eq!(plan.submit_lines(), lines);
        let words = "the first serves 90 of 100 jobs seen, the second the others; \
                     264 GiB hours less than the 400 that their runs have reserved";
        assert_eq!(plan.outcome_words(), words);
        let unknown = MemoryPlan {
            retry_mb: None,
            requested_gib_h: None,
            ..plan
        };
        assert_eq!(unknown.submit_lines(), ["request_memory = 1GB"]);
        assert_eq!(unknown.outcome_words(), "it serves all of 100 jobs seen");
    }
}
