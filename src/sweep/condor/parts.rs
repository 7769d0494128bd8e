//! Divides the trials of a DAG among jobs, so that each job has enough work.

use std::collections::BTreeMap;

use crate::config::DagConfig;

/// Duration of a trial, in seconds, by the pipeline or network that it fits.
pub type TrialSeconds = BTreeMap<String, f64>;

/// Minimum work of a job, in seconds. With less work, a job spends most of its time on the start of
/// its container.
const MIN_JOB_S: f64 = 60.0;

/// Maximum work of a job, in seconds, for any number of trials and `max_jobs` jobs.
const MAX_JOB_S: f64 = 600.0;

/// A kind of trials, which may share a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TrialKind {
    /// The tensors that the trials need, if they are made from logs.
    pub(super) tensors: Option<String>,
    /// The pipeline that the trials fit, or `network`.
    pub(super) fits: String,
}

/// The trials of one job.
#[derive(Debug, Clone)]
pub struct PlannedPart {
    /// The name of its node.
    pub name: String,
    /// The trials, counted from 1, in ascending order.
    pub trials: Vec<usize>,
    /// The pipeline that the trials fit, or `network`.
    pub fits: String,
    /// The tensors that the trials need, if they are made from logs.
    pub tensors: Option<String>,
}

impl PlannedPart {
    /// The trials in the format of [`parse_trial_ranges`]: `1-8,12`.
    pub fn ranges(&self) -> String {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for &trial in &self.trials {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == trial => *last = trial,
                _ => ranges.push((trial, trial)),
            }
        }
        let word = |(first, last): (usize, usize)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        ranges.into_iter().map(word).collect::<Vec<_>>().join(",")
    }
}

/// Parses the trials, counted from 1, in `ranges` such as `1-8,12`; `None` for any other format.
pub fn parse_trial_ranges(ranges: &str) -> Option<Vec<usize>> {
    let range = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (1 <= first && first <= last && last - first < 1_000_000).then_some(first..=last)
    };
    let ranges = ranges.split(',').map(range).collect::<Option<Vec<_>>>()?;
    Some(ranges.into_iter().flatten().collect())
}

/// Divides the trials with these `kinds` into parts. The first trial has index 0 in `kinds`.
pub(super) fn divide_trials(
    dag: &DagConfig,
    kinds: &[TrialKind],
    measured: &TrialSeconds,
) -> Vec<PlannedPart> {
    let mut by_kind: BTreeMap<&TrialKind, Vec<usize>> = BTreeMap::new();
    kinds
        .iter()
        .zip(1..)
        .for_each(|(kind, trial)| by_kind.entry(kind).or_default().push(trial));

    let seconds = |kind: &TrialKind| measured.get(&kind.fits).copied();
    let total_s: f64 = kinds.iter().filter_map(seconds).sum();
    let job_s = (total_s / dag.max_jobs as f64).clamp(MIN_JOB_S, MAX_JOB_S);
    let per_job = |kind: &TrialKind| match (dag.per_epoch, dag.trials_per_job) {
        (true, _) => 1,
        (_, Some(given)) => given,
        _ => seconds(kind).map_or(1, |trial_s| (job_s / trial_s).round().max(1.0) as usize),
    };

    let mut parts: Vec<(Vec<usize>, &TrialKind)> = Vec::new();
    for (kind, trials) in by_kind {
        // Use chunks of equal size, so that the last one is not much smaller than the others.
        let count = trials.len().div_ceil(per_job(kind));
        parts.extend(
            trials
                .chunks(trials.len().div_ceil(count))
                .map(|chunk| (chunk.to_vec(), kind)),
        );
    }
    parts.sort();
    let part = |((trials, kind), number): ((Vec<usize>, &TrialKind), usize)| PlannedPart {
        name: format!("trials-{number:04}"),
        trials,
        fits: kind.fits.clone(),
        tensors: kind.tensors.clone(),
    };
    parts.into_iter().zip(1..).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn divided(
        changes: &[(&'static str, serde_json::Value)],
        fits: &[&str],
        measured: &[(&str, f64)],
    ) -> Vec<(String, String)> {
        let changes = changes.iter().cloned().collect();
        let config = Config::load(None, &changes).expect("a configuration");
        let kinds: Vec<TrialKind> = fits
            .iter()
            .map(|fits| TrialKind {
                tensors: None,
                fits: (*fits).to_owned(),
            })
            .collect();
        let measured = measured
            .iter()
            .map(|(fits, seconds)| ((*fits).to_owned(), *seconds))
            .collect();
        let parts = divide_trials(&config.dag, &kinds, &measured);
        parts
            .into_iter()
            .map(|part| (part.ranges(), part.fits))
            .collect()
    }

    fn sizes(
        changes: &[(&'static str, serde_json::Value)],
        count: usize,
        seconds: f64,
    ) -> Vec<usize> {
        let parts = divided(changes, &vec!["lasso"; count], &[("lasso", seconds)]);
        parts
            .iter()
            .map(|(ranges, _)| parse_trial_ranges(ranges).expect("ranges").len())
            .collect()
    }

    #[test]
    fn jobs_have_at_least_a_minute_of_work() {
        assert_eq!(sizes(&[], 60, 1.5), [30, 30]);
        assert_eq!(sizes(&[], 3, 0.001), [3]);
        assert_eq!(sizes(&[], 3, 400.0), [1, 1, 1]);
        // With a hundred jobs at once, each has more than a minute of work. With five jobs, each
        // has at most ten minutes.
        assert_eq!(sizes(&[], 10_000, 1.0), [100; 100]);
        let few = sizes(&[("dag.max_jobs", 5.into())], 10_000, 1.0);
        assert!(
            few.len() == 17 && few.iter().all(|size| (500..=600).contains(size)),
            "{few:?}"
        );
        assert_eq!(
            sizes(&[("dag.trials_per_job", 4.into())], 10, 400.0),
            [4, 4, 2]
        );
        assert_eq!(sizes(&[("dag.per_epoch", true.into())], 2, 1.0), [1, 1]);
        assert_eq!(
            divided(&[], &["network"; 2], &[]).len(),
            2,
            "what was not measured is a job of its own"
        );
    }

    #[test]
    fn trials_of_one_kind_share_a_job() {
        let found = divided(
            &[("dag.trials_per_job", 2.into())],
            &["a", "b", "a", "a", "b"],
            &[],
        );
        let word = |ranges: &str, fits: &str| (ranges.to_owned(), fits.to_owned());
        assert_eq!(found, [word("1,3", "a"), word("2,5", "b"), word("4", "a")]);
    }

    #[test]
    fn invalid_trial_ranges_are_rejected() {
        assert_eq!(parse_trial_ranges("1-3,7"), Some(vec![1, 2, 3, 7]));
        for text in ["", "0", "3-1", "1-", "a", "1,,2", "1-99999999"] {
            assert_eq!(parse_trial_ranges(text), None, "{text}");
        }
    }
}
