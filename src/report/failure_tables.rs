//! Tables of failed trials and of failed jobs of a DAG, by kind and reason.

use std::collections::BTreeMap;

use super::document::{ReportCell, ReportTable};
use super::inputs::ReportInputs;
use super::words;
use poolcast_sweep::condor;

/// Maximum number of reasons with their own row, per kind.
const MAX_REASONS: usize = 10;

/// Counts the trials without a model, by kind and error; `None` if all have one.
pub(super) fn failed_trials(inputs: &ReportInputs) -> Option<ReportTable> {
    let mut failures = FailureCounts::default();
    for trial in inputs.trials.iter().filter(|trial| trial.failure.is_some()) {
        let why = trial.error.as_deref().filter(|_| !inputs.is_anonymous);
        failures.add(&trial.ended, why, trial.trial.into());
    }
    failures.into_table("Trials without a model", ["kind", "trials"])
}

/// Counts the DAG's jobs that failed for good, by step and reason; `None` if there are none. Node
/// names may contain file names, so an anonymous report omits them.
pub(super) fn failed_jobs(inputs: &ReportInputs) -> Option<ReportTable> {
    let mut failures = FailureCounts::default();
    for (node, why) in &inputs.failed_nodes {
        let (why, name) = if inputs.is_anonymous {
            (None, ReportCell::Empty)
        } else {
            (Some(words::shown(why)), words::shown(node).into())
        };
        let step = words::shown(condor::step_of_node(node));
        failures.add(&step, why.as_deref(), name);
    }
    failures.into_table("Jobs of the DAG that failed", ["step", "jobs"])
}

/// Number of failures for one reason, and the first failure.
struct FailureCount {
    count: usize,
    first: ReportCell,
}

/// Failures by kind, and by reason within a kind.
#[derive(Default)]
struct FailureCounts(BTreeMap<String, BTreeMap<Option<String>, FailureCount>>);

impl FailureCounts {
    /// Counts a failure of the trial or job `name`, with its `kind` and the reason `why`.
    fn add(&mut self, kind: &str, why: Option<&str>, name: ReportCell) {
        let reasons = self.0.entry(kind.to_owned()).or_default();
        let new = || FailureCount {
            count: 0,
            first: name,
        };
        reasons
            .entry(why.map(str::to_owned))
            .or_insert_with(new)
            .count += 1;
    }

    /// Makes a table with one row per reason, the most frequent reason of each kind first. The rare
    /// reasons of a kind share a row. Returns `None` if nothing failed.
    fn into_table(
        self,
        title: &str,
        [kind_column, count_column]: [&str; 2],
    ) -> Option<ReportTable> {
        if self.0.is_empty() {
            return None;
        }
        let columns = [
            (kind_column, 0),
            (count_column, 0),
            ("first", 0),
            ("reason", 0),
        ];
        let mut table = ReportTable::new(title, &columns);
        for (kind, reasons) in self.0 {
            let mut reasons: Vec<(Option<String>, FailureCount)> = reasons.into_iter().collect();
            reasons.sort_by_key(|(_, failure)| std::cmp::Reverse(failure.count));
            let others = reasons.split_off(reasons.len().min(MAX_REASONS));
            for (why, failure) in reasons {
                table.push([
                    kind.clone().into(),
                    failure.count.into(),
                    failure.first,
                    why.into(),
                ]);
            }
            if !others.is_empty() {
                let count: usize = others.iter().map(|(_, failure)| failure.count).sum();
                let why = format!("{} other reasons", others.len());
                table.push([kind.into(), count.into(), ReportCell::Empty, why.into()]);
            }
        }
        Some(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_reasons_share_a_row() {
        let mut failures = FailureCounts::default();
        for trial in 1..=30_usize {
            let why = if trial % 2 == 0 {
                "it is full".to_owned()
            } else {
                format!("reason {trial}")
            };
            failures.add("failed: error", Some(&why), trial.into());
        }
        failures.add("failed: it took too long", None, 31_usize.into());
        let table = failures
            .into_table("What failed", ["kind", "trials"])
            .expect("a table");
        assert_eq!(table.rows.len(), MAX_REASONS + 2);
        let most = [
            "failed: error".into(),
            15_usize.into(),
            2_usize.into(),
            "it is full".into(),
        ];
        assert_eq!(table.rows[0], most);
        let rest = [
            "failed: error".into(),
            6_usize.into(),
            ReportCell::Empty,
            "6 other reasons".into(),
        ];
        assert_eq!(table.rows[MAX_REASONS], rest);
        assert_eq!(table.rows[MAX_REASONS + 1][1], 1_usize.into());
        assert!(
            FailureCounts::default()
                .into_table("What failed", ["kind", "trials"])
                .is_none()
        );
    }
}
